//! `pullback code` and `pullback doctor`: compiled code, and what compiles it.

use crate::Failure;
use crate::args::{CodeArgs, StageName};
use crate::commands::{failed, load, print_json};
use crate::inputs::values_if_given;
use crate::output::say;
use pullback_base::Diagnostic;
use pullback_driver::backend::{cache_contents, cache_folder, libraries};
use pullback_driver::code::{
    Form, Outcome, PIPELINE, Passes, Stage, code_text, one_pass, optional, pipeline_text, row,
};
use pullback_driver::vm::machines;
use serde_json::{Value as Json, json};
use std::path::Path;

/// `pullback code`
pub(crate) fn code(args: &CodeArgs) -> Result<(), Failure> {
    let Some(file) = args.file.as_ref().filter(|_| !args.print_pipeline) else {
        say(pipeline_text().trim_end());
        return Ok(());
    };
    if let Some(pass) = &args.pass {
        return pass_on_text(file, row_of(pass)?);
    }
    if file.extension().is_some_and(|e| e == "kernel") {
        let file = file.display();
        return Err(Failure::input(format!("{file} is kernel text: --pass NAME runs one pass on it")));
    }
    let row = args.after.as_deref().map(row_of).transpose()?;
    let without: Vec<&str> = args.without.iter().map(|name| left_out(name)).collect::<Result<_, _>>()?;
    if !without.is_empty() && args.stage == StageName::Kernel && row.is_none() && !args.passes {
        let message =
            "--without leaves out passes of scheduling, and this is the code before them: add --stage lanes";
        return Err(Failure::input(message));
    }
    let form = if args.whole { Form::Whole } else { Form::Short };
    let mut session = load(file, &args.algorithm, true)?;
    session.settings.lowered = true;
    session.settings.floats = args.floats.policy();
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let sizes = values_if_given(&entry, &args.args, &args.input)?;
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
        StageName::Lanes => Stage::Lanes,
        StageName::Llvm => Stage::Llvm,
        StageName::Assembly => Stage::Assembly,
    };
    let text = match row {
        _ if args.passes => Passes::new(&ready, &sizes, &without).map(|passes| table(&passes)),
        Some(row) => Passes::new(&ready, &sizes, &without).map(|passes| passes.after(row, form)),
        None => code_text(&ready, (stage, form), &sizes, &without),
    };
    say(text.map_err(|d| failed(&session, &d))?.trim_end());
    Ok(())
}

/// The row of the table of passes that is meant.
fn row_of(wanted: &str) -> Result<usize, Failure> {
    row(wanted).ok_or_else(|| {
        let mut names: Vec<&str> = Vec::new();
        for row in PIPELINE {
            if !names.contains(&row.step.name) {
                names.push(row.step.name);
            }
        }
        Failure::input(format!("no pass `{wanted}`; there are {}, and their numbers", names.join(", ")))
    })
}

/// The pass that is left out, or the part of one.
fn left_out(wanted: &str) -> Result<&'static str, Failure> {
    optional().into_iter().find(|name| *name == wanted).ok_or_else(|| {
        let why = row(wanted).map_or("no such pass", |_| "what follows needs this pass");
        let names = optional().join(", ");
        Failure::input(format!("--without {wanted}: {why}; these can be left out: {names}"))
    })
}

/// What each pass did.
fn table(passes: &Passes) -> String {
    let mut out = format!("{:>2} {:24} {:8} {:>12} {:>10}", "", "pass", "", "instructions", "ms");
    for (k, (row, (outcome, instructions, seconds))) in PIPELINE.iter().zip(passes.table()).enumerate() {
        let did = match outcome {
            Outcome::Changed => "changed",
            Outcome::Same => "same",
            Outcome::LeftOut => "left out",
        };
        let (number, name, ms) = (k + 1, row.step.name, 1e3 * seconds);
        out += &format!("\n{number:>2} {name:24} {did:8} {instructions:>12} {ms:>10.3}");
    }
    out
}

fn pass_on_text(file: &Path, row: usize) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::input(format!("cannot read {}: {e}", file.display())))?;
    let shown = |d: Diagnostic| Failure::new(d.code.fault(), format!("{}: {}", file.display(), d.message));
    say(one_pass(&text, row).map_err(shown)?.trim_end());
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
            &json!({"interp": true, "vm": machines().0.name(), "llvm": used.is_some(), "libraries": list.collect::<Vec<_>>(),
                                  "cache": cache_folder().map(|f| cache_json(&f))}),
        );
    }
    say("interp: always there; runs every program, counts steps, finds NaNs");
    let (machine, lacking) = machines();
    let lacking: Vec<&str> = lacking.iter().map(|m| m.name()).collect();
    let why = match lacking.as_slice() {
        [] => "the best that it knows".to_string(),
        names => format!("this processor has no {}", names.join(", no ")),
    };
    say(&format!(
        "vm: always there; runs native programs at once, with kernels for {} ({why})",
        machine.name()
    ));
    match used.map(|k| &all[k]) {
        Some(l) => {
            if let Ok((version, processor)) = &l.usable {
                say(&format!("llvm: {version}, code for {processor}\n  {}", l.path.display()));
            }
        }
        None => {
            say("llvm: not there, so long runs stay on the vm");
            say(
                "  install LLVM 15 or later or a Rust toolchain, or set PULLBACK_LLVM to the path of libLLVM",
            );
        }
    }
    say(&cache_text());
    for (_, l) in all.iter().enumerate().filter(|(k, _)| Some(*k) != used) {
        let why = match &l.usable {
            Ok((version, _)) => format!("{version}, not needed"),
            Err(e) => format!("cannot be used: {e}"),
        };
        say(&format!("  also {}: {why}", l.path.display()));
    }
}

fn cache_json(folder: &Path) -> Json {
    let found = cache_contents(folder);
    json!({"folder": folder.display().to_string(), "objects": found.objects, "bytes": found.bytes,
           "error": found.error})
}

/// Where machine code is kept, or why it is not.
fn cache_text() -> String {
    let Some(folder) = cache_folder() else {
        return "  machine code is not kept: there is no home folder; set XDG_CACHE_HOME".to_string();
    };
    let (found, folder) = (cache_contents(&folder), folder.display());
    match found.error {
        Some(e) => format!(
            "  machine code is not kept, so every run compiles: {folder} cannot be written to: {e}\n  set XDG_CACHE_HOME to another folder"
        ),
        None => format!(
            "  machine code is kept in {folder} (it may be deleted at any time): {} programs, {:.1} MiB",
            found.objects,
            found.bytes as f64 / (1 << 20) as f64
        ),
    }
}
