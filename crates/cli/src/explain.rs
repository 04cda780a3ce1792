//! `pullback explain`: source statement | rule | result; see [`pullback_driver::explain`].

use crate::Failure;
use crate::args::ExplainArgs;
use crate::commands::{failed, load};
use crate::output::say;

/// `pullback explain`
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let session = load(&args.file, args.algorithm.ad.as_deref(), true)?;
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let selected = session.select(&entry, &args.wrt.parse()).map_err(|d| failed(&session, &d))?;
    let table = pullback_driver::explain::explain(&session, &entry, args.mode.into(), &selected);
    say(table.map_err(|d| failed(&session, &d))?.trim_end());
    Ok(())
}
