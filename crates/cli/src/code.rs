//! `pullback code` and `pullback doctor`: compiled code, and what compiles it.

use crate::Failure;
use crate::args::{CodeArgs, StageName};
use crate::commands::{failed, load, print_json};
use crate::output::say;
use pullback_driver::backend::{Stage, cache_folder, code_text, libraries};
use serde_json::{Value as Json, json};

/// `pullback code`
pub(crate) fn code(args: &CodeArgs) -> Result<(), Failure> {
    let session = load(&args.file, args.algorithm.ad.as_deref(), true)?;
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let ready = match args.derivative {
        None => session.primal(&entry),
        Some(kind) => {
            let selected = session.select(&entry, &args.wrt.parse()).map_err(|d| failed(&session, &d))?;
            session.derivative(&entry, kind.into(), &selected, &mut |_, _| {})
        }
    }
    .map_err(|d| failed(&session, &d))?;
    let stage = match args.stage {
        StageName::Kernel => Stage::Kernel,
        StageName::Llvm => Stage::Llvm,
        StageName::Assembly => Stage::Assembly,
    };
    say(&code_text(&ready, stage).map_err(|d| failed(&session, &d))?);
    Ok(())
}

/// `pullback doctor`
pub(crate) fn doctor(as_json: bool) {
    let all = libraries();
    let used = all.iter().position(|l| l.usable.is_ok());
    if as_json {
        let list = all.iter().enumerate().map(|(k, l)| {
            let (version, processor, error) = match &l.usable {
                Ok((version, processor)) => (json!(version), json!(processor), Json::Null),
                Err(e) => (Json::Null, Json::Null, json!(e)),
            };
            json!({"path": l.path.display().to_string(), "version": version, "processor": processor,
                   "error": error, "used": used == Some(k)})
        });
        return print_json(
            &json!({"interp": true, "llvm": used.is_some(), "libraries": list.collect::<Vec<_>>(),
                                  "cache": cache_folder().map(|f| f.display().to_string())}),
        );
    }
    say("interp: always there; runs every program, counts steps, finds NaNs");
    match used.map(|k| &all[k]) {
        Some(l) => {
            if let Ok((version, processor)) = &l.usable {
                say(&format!("llvm: {version}, code for {processor}\n  {}", l.path.display()));
            }
        }
        None => {
            say("llvm: not there, so programs are interpreted");
            say(
                "  install LLVM 15 or later or a Rust toolchain, or set PULLBACK_LLVM to the path of libLLVM",
            );
        }
    }
    if let Some(folder) = cache_folder() {
        say(&format!("  machine code is kept in {} (it may be deleted at any time)", folder.display()));
    }
    for (_, l) in all.iter().enumerate().filter(|(k, _)| Some(*k) != used) {
        let why = match &l.usable {
            Ok((version, _)) => format!("{version}, not needed"),
            Err(e) => format!("cannot be used: {e}"),
        };
        say(&format!("  also {}: {why}", l.path.display()));
    }
}
