//! `pullback gradbench`

use crate::args::GradbenchArgs;
use crate::{Failure, interrupt};
use pullback_driver::{Settings, backend};
use pullback_gradbench::Tool;
use pullback_interp::core::Options;
use std::io::{stdin, stdout};

/// Answers messages until there are no more.
pub(crate) fn gradbench(args: &GradbenchArgs) -> Result<(), Failure> {
    let settings = Settings {
        backend: args.backend.into(),
        threads: args.threads,
        cache: if args.no_cache { None } else { backend::cache_folder() },
        ..Settings::default()
    };
    // No more memory is taken than there is; the suite sets no limit.
    let options = Options { cancel: Some(interrupt::flag()), memory_limit: u64::MAX, ..Options::default() };
    let mut tool = Tool::new(settings, options).with_programs(args.programs.iter().cloned());
    let served = tool.serve(&mut stdin().lock(), &mut stdout().lock());
    served.map_err(|e| Failure::input(format!("the exchange of messages ended: {e}")))?;
    match interrupt::stopped() {
        Some((failure, _)) => Err(failure),
        None => Ok(()),
    }
}
