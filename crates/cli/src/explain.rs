//! `pullback explain`: source statement | rule | result, and what it costs; see [`pullback_driver::explain`].

use crate::Failure;
use crate::args::ExplainArgs;
use crate::commands::{failed, load};
use crate::inputs::values_if_given;
use crate::output::say;
use pullback_driver::explain;

/// `pullback explain`
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let session = load(&args.file, &args.algorithm, true)?;
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let selected = session.select(&entry, &args.wrt.parse()).map_err(|d| failed(&session, &d))?;
    let at = values_if_given(&entry, &args.args, &args.input)?;
    let table = explain::explain(&session, &entry, args.mode.into(), &selected);
    say(table.map_err(|d| failed(&session, &d))?.trim_end());
    if !at.is_empty() {
        let costs = explain::costs(&session, &entry, args.mode.into(), &selected, &at);
        say(&format!("\n{}", costs.map_err(|d| failed(&session, &d))?.trim_end()));
    }
    Ok(())
}
