//! `pullback explain`: source statement | rule | result; see [`pullback_driver::explain`].

use crate::Failure;
use crate::args::{DerivativeKind, ExplainArgs};
use crate::commands::{failed, load};
use crate::output::say;
use pullback_driver::Kind;

/// `pullback explain`
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let session = load(&args.file, args.algorithm.ad.as_deref(), true)?;
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let selected = session.select(&entry, &args.wrt.parse()).map_err(|d| failed(&session, &d))?;
    let kind = match args.mode {
        DerivativeKind::Vjp => Kind::Vjp,
        DerivativeKind::Jvp => Kind::Jvp,
    };
    let table = pullback_driver::explain::explain(&session, &entry, kind, &selected);
    say(table.map_err(|d| failed(&session, &d))?.trim_end());
    Ok(())
}
