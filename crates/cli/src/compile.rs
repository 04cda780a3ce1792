//! `pullback compile`: machine code before it is run, in the cache or as a library for C programs.

use crate::Failure;
use crate::args::CompileArgs;
use crate::commands::{failed, load};
use crate::inputs::values_if_given;
use crate::output::{say, write_file};
use crate::report::stages_text;
use pullback_base::Diagnostic;
use pullback_core::Value;
use pullback_driver::backend::cache_folder;
use pullback_driver::library::{self, Parts, c_name, file_name, folder_and_name};
use pullback_driver::{EntryPoint, Kind, Ready, Session};
use std::path::Path;

/// `pullback compile`
pub(crate) fn compile(args: &CompileArgs) -> Result<(), Failure> {
    let mut session = load(&args.file, &args.algorithm, true)?;
    session.settings.lowered = true;
    session.settings.cache = cache_folder();
    session.settings.floats = args.floats.policy();
    let names: Vec<Option<&str>> = if args.entry.is_empty() {
        vec![None]
    } else {
        args.entry.iter().map(|e| Some(e.as_str())).collect()
    };
    let mut kinds: Vec<Kind> = args.derivative.iter().map(|k| (*k).into()).collect();
    kinds.sort();
    kinds.dedup();
    let mut entries = Vec::new();
    for name in names {
        let entry = session.entry(name).map_err(|d| failed(&session, &d))?;
        let selected = if kinds.is_empty() {
            vec![false; entry.parameters.len()]
        } else {
            session.select(&entry, &args.wrt.parse()).map_err(|d| failed(&session, &d))?
        };
        entries.push((entry, selected));
    }
    let made = match &args.output {
        Some(path) => {
            let parts = if args.object { Parts::SharedAndObject } else { Parts::Shared };
            return write(&session, path, &entries, &kinds, parts);
        }
        None => {
            let inputs =
                |(entry, _): &(EntryPoint, Vec<bool>)| values_if_given(entry, &args.args, &args.input);
            let inputs = entries.iter().map(inputs).collect::<Result<Vec<_>, _>>()?;
            warm(&session, &entries, &inputs, &kinds)
        }
    };
    made.map_err(|d| failed(&session, &d))
}

/// Compiles into the cache.
fn warm(
    session: &Session,
    entries: &[(EntryPoint, Vec<bool>)],
    inputs: &[Vec<Value>],
    kinds: &[Kind],
) -> Result<(), Diagnostic> {
    let one = |what: &str, ready: &Ready, args: &[Value]| -> Result<(), Diagnostic> {
        let report = ready.native(args).map_err(|d| *d)?.report();
        let how = if report.was_kept { "was there already" } else { "is compiled" };
        say(&format!("{what} {how} by {}: {}", report.compiler, stages_text(ready, Some(report))));
        Ok(())
    };
    for ((entry, selected), args) in entries.iter().zip(inputs) {
        one(&entry.name, &session.primal(entry)?, args)?;
        for kind in kinds {
            let ready = session.derivative(entry, *kind, selected, &mut |_, _| {})?;
            one(&format!("{kind:?} of {}", entry.name), &ready, args)?;
        }
    }
    match &session.settings.cache {
        Some(folder) => say(&format!("machine code is kept in {}; see `pullback doctor`", folder.display())),
        None => say("machine code is not kept: there is no home folder; set XDG_CACHE_HOME"),
    }
    Ok(())
}

/// Writes a library.
fn write(
    session: &Session,
    path: &Path,
    entries: &[(EntryPoint, Vec<bool>)],
    kinds: &[Kind],
    parts: Parts,
) -> Result<(), Failure> {
    let Some((folder, name)) = folder_and_name(path) else {
        return Err(Failure::input(format!("{} is no name of a library", path.display())));
    };
    if c_name(&name) != name {
        return Err(Failure::input(format!(
            "`{name}` begins the names of functions in C, so it is made of letters, digits and _: {} would do",
            c_name(&name)
        )));
    }
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(Failure::input(format!("there is no folder {}", folder.display())));
    }
    let shared = file_name(&name);
    let made = library::library(session, (&shared, &name), entries, kinds, parts);
    let made = made.map_err(|d| failed(session, &d))?;
    let mut files = vec![(shared, made.shared), (format!("{name}.h"), made.header.into_bytes())];
    files.extend(made.object.map(|object| (format!("{name}.o"), object)));
    for (file, bytes) in &files {
        let path = folder.join(file);
        write_file(&path, bytes)?;
        say(&path.display().to_string());
    }
    Ok(())
}
