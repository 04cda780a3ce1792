//! The commands, one function each.

use crate::Failure;
use crate::args::{
    AlgorithmArgs, CheckArgs, CoreArgs, GradArgs, GradcheckArgs, InputArgs, JvpArgs, ProgramArgs, RunArgs,
    VjpArgs,
};
use crate::inputs::{arguments, read_value, split};
use crate::output::{norm, note_lost, say, summary, write_file, write_value};
use crate::progress::with_progress;
use crate::report::{cost_json, cost_text, ratio_text, run_json, run_text};
use pullback_base::{Code, Diagnostic, Fault, RuntimeError, Severity, SourceMap};
use pullback_core::{Program, Value};
use pullback_driver::gradcheck::{self, index_text};
use pullback_driver::leaves::cotangent_type;
use pullback_driver::report::timed;
use pullback_driver::values::{Sizes, as_large_as, decode, encode, json, type_text};
use pullback_driver::{EntryPoint, Kind, Leaf, Session, Settings, Wrt};
use pullback_interp::core::Options;
use serde_json::{Map, Value as Json, json};
use std::path::Path;

/// Reads and compiles a program; prints its warnings.
pub(crate) fn load(file: &Path, algorithm: &AlgorithmArgs, optimise: bool) -> Result<Session, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::input(format!("cannot read {}: {e}", file.display())))?;
    let ad = algorithm.ad.as_deref();
    if let Some(name) = ad {
        let known: Vec<&str> = pullback_driver::reverse_algorithms().iter().map(|a| a.id).collect();
        if !known.contains(&name) {
            return Err(Failure::input(format!(
                "no algorithm `{name}` for reverse mode; there are {}",
                known.join(", ")
            )));
        }
    }
    let mut settings = Settings { optimise, ..Settings::default() };
    settings.choice.reverse = ad.map(Into::into);
    settings.choice.ieee_partials = algorithm.ieee_partials;
    let session = Session::compile(&file.display().to_string(), &text, settings).map_err(|failed| {
        let worst = failed.diagnostics.iter().map(|d| d.code.fault()).max().unwrap_or(Fault::Program);
        let report = failed.diagnostics.iter().map(|d| diagnostic_json(&failed.sources, d)).collect();
        Failure { report, ..Failure::new(worst, failed.render()) }
    })?;
    for warning in &session.warnings {
        eprint!("{}", warning.render(&session.sources));
    }
    Ok(session)
}

/// Stops at an option of a run that the algorithms on lambda, or their interpreter, do not have.
pub(crate) fn can_run(session: &Session, inputs: &InputArgs) -> Result<(), Failure> {
    let Some(algorithm) = session.algorithm_on_lambda() else { return Ok(()) };
    let on_lambda = session.settings.runs_on_lambda();
    let (message, option) = if session.settings.choice.tape_limit.is_some() {
        (format!("`{}` keeps no tapes that could be limited", algorithm.id), "--tape-limit")
    } else if on_lambda && inputs.check_nan {
        (format!("what `{}` makes runs without looking for NaN", algorithm.id), "--check-nan")
    } else {
        return Ok(());
    };
    let d = Diagnostic::global(Code::Unsupported, message).hint(format!("leave out {option} or --ad"));
    Err(failed(session, &d))
}

pub(crate) fn load_program(args: &ProgramArgs) -> Result<(Session, EntryPoint), Failure> {
    let mut session = load(&args.file, &args.algorithm, !args.no_optimise)?;
    session.settings.choice.tape_limit = args.tape_limit;
    session.settings.cache = if args.no_cache { None } else { pullback_driver::backend::cache_folder() };
    session.settings.floats = args.floats.policy();
    session.settings.threads = args.threads;
    session.settings.relaxed = args.relaxed;
    session.settings.backend = args.backend.into();
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    Ok((session, entry))
}

pub(crate) fn failed(session: &Session, d: &Diagnostic) -> Failure {
    let report = vec![diagnostic_json(&session.sources, d)];
    Failure { report, ..Failure::new(d.code.fault(), d.render(&session.sources)) }
}

/// A diagnostic as JSON: code, message, place and hints.
fn diagnostic_json(sources: &SourceMap, d: &Diagnostic) -> Json {
    let place = d.span.map(|s| {
        let (line, column) = sources.line_column(s.file, s.start);
        json!({"file": sources.name(s.file), "line": line, "column": column, "start": s.start, "end": s.end})
    });
    json!({"code": d.code.as_str(), "error": d.severity == Severity::Error, "message": d.message,
           "place": place, "hints": d.hints})
}

fn stopped(session: &Session) -> impl Fn(RuntimeError) -> Failure + '_ {
    |e| failed(session, &e.to_diagnostic())
}

pub(crate) fn print_json(value: &Json) {
    say(&format!("{value:#}"));
}

/// `pullback run`
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let (session, entry) = load_program(&args.program)?;
    let values = arguments(&entry, &args.inputs)?;
    let ready = session.primal(&entry).map_err(|d| failed(&session, &d))?;
    let run = || with_progress(&args.inputs, "running", |o| ready.run(&values, o));
    let (outcome, seconds) = timed(run);
    let outcome = outcome.map_err(stopped(&session))?;
    let data = decode(&entry.entry.result, &outcome.results);
    if let Some(path) = &args.output {
        write_value(path, &data)?;
    }
    if args.program.json {
        let (value, lost) = json::write(&data);
        note_lost(lost);
        let mut report = Map::from_iter([("result".to_string(), value)]);
        if args.report {
            report.insert("cost".into(), cost_json(&outcome));
            report.insert("run".into(), run_json(&ready, &outcome));
            report.insert("seconds".into(), json!(seconds));
        }
        print_json(&Json::Object(report));
    } else {
        if args.output.is_none() {
            say(&summary(&data));
        }
        if args.report {
            say(&cost_text(&entry.name, &outcome));
            say(&run_text(&ready, &outcome));
            say(&format!("time: {seconds:.6} s"));
        }
    }
    Ok(())
}

/// `pullback check`
pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|e| Failure::input(format!("cannot read {name}: {e}")))?;
    let (sources, diagnostics, session) = match Session::compile(&name, &text, Settings::default()) {
        Ok(session) => (session.sources.clone(), session.warnings.clone(), Some(session)),
        Err(failed) => (failed.sources, failed.diagnostics, None),
    };
    if args.json {
        let list: Vec<Json> = diagnostics.iter().map(|d| diagnostic_json(&sources, d)).collect();
        let entries: Vec<Json> = session.iter().flat_map(Session::entries).map(|e| entry_json(&e)).collect();
        print_json(&json!({"ok": session.is_some(), "diagnostics": list, "entries": entries}));
    } else {
        for d in &diagnostics {
            eprintln!("{}", d.render(&sources));
        }
        let entries: Vec<EntryPoint> = session.iter().flat_map(Session::entries).collect();
        entries.iter().for_each(|e| say(&entry_text(e)));
        if session.is_some() && entries.is_empty() {
            say("the program is fine; it has no entry point, so there is nothing to run");
        }
    }
    match session {
        Some(_) => Ok(()),
        None => {
            let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
            let fault = errors.clone().map(|d| d.code.fault()).max().unwrap_or(Fault::Program);
            let count = errors.count();
            Err(Failure::new(fault, format!("{name}: {count} error{}", if count == 1 { "" } else { "s" })))
        }
    }
}

fn entry_text(e: &EntryPoint) -> String {
    let params = e.entry.params.iter().map(|(n, t)| format!(" ({n}: {})", type_text(t)));
    format!("entry {}{} : {}", e.name, params.collect::<String>(), type_text(&e.entry.result))
}

fn entry_json(e: &EntryPoint) -> Json {
    let params = e.entry.params.iter().map(|(n, t)| json!({"name": n.as_str(), "type": type_text(t)}));
    json!({"name": e.name, "parameters": params.collect::<Vec<_>>(), "result": type_text(&e.entry.result)})
}

/// The cotangents of the selected parameters, by path.
struct Gradient {
    parts: Vec<(Leaf, Value)>,
}

impl Gradient {
    fn new(entry: &EntryPoint, selected: &[bool], values: &[Value]) -> Gradient {
        let leaves = entry.parameters.iter().zip(selected).filter(|(_, s)| **s);
        let leaves = leaves.map(|(l, _)| Leaf { path: l.path.clone(), ty: cotangent_type(&l.ty) });
        Gradient { parts: leaves.zip(values.iter().cloned()).collect() }
    }
    fn json(&self) -> Json {
        let mut lost = 0;
        let part = |(leaf, value): &(Leaf, Value)| {
            let (json, n) = json::write(&decode(&leaf.ty, std::slice::from_ref(value)));
            lost += n;
            (leaf.path.clone(), json)
        };
        let map: Map<String, Json> = self.parts.iter().map(part).collect();
        note_lost(lost);
        Json::Object(map)
    }
    fn print(&self, top: usize) {
        let mut all: Vec<(String, f64)> = Vec::new();
        let width = self.parts.iter().map(|(l, _)| l.path.len()).max().unwrap_or(0);
        for (leaf, value) in &self.parts {
            let floats = value.floats();
            let shape = type_text(&leaf.ty);
            say(&format!(
                "  {:width$}  norm {:<22.15e} {} numbers, {shape}",
                leaf.path,
                norm(&floats),
                floats.len()
            ));
            let name = |j: usize| format!("{}{}", leaf.path, index_text(value, j));
            all.extend(floats.iter().enumerate().map(|(j, x)| (name(j), *x)));
        }
        let bad = all.iter().filter(|(_, x)| !x.is_finite()).count();
        if bad > 0 {
            say(&format!(
                "  {bad} entries are NaN or infinite; first: {}",
                all.iter().find(|(_, x)| !x.is_finite()).map_or("", |e| &e.0)
            ));
        }
        all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        if top > 0 && all.len() > 1 {
            say("largest entries");
            for (name, x) in all.iter().take(top) {
                say(&format!("  {name:<24} {x:.15e}"));
            }
        }
    }
}

/// `pullback grad`
pub(crate) fn grad(args: &GradArgs) -> Result<(), Failure> {
    let (session, entry) = load_program(&args.program)?;
    can_run(&session, &args.inputs)?;
    let is_scalar = matches!(&entry.entry.result, pullback_core::EntryType::Scalar(s) if s.is_float());
    if !is_scalar {
        let ty = type_text(&entry.entry.result);
        return Err(Failure::input(format!(
            "`{}` returns {ty}; a gradient needs a scalar float\n  hint: `pullback jacobian` gives the whole derivative, `pullback vjp` a combination of its rows",
            entry.name
        )));
    }
    let wrt = args.wrt.parse();
    let selected = session.select(&entry, &wrt).map_err(|d| failed(&session, &d))?;
    let values = arguments(&entry, &args.inputs)?;
    let vjp =
        session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).map_err(|d| failed(&session, &d))?;
    let seed = one_like(&entry);
    let all: Vec<Value> = values.iter().cloned().chain([seed]).collect();
    let outcome = with_progress(&args.inputs, "gradient", |o| vjp.run(&all, o)).map_err(stopped(&session))?;
    let objective = outcome.results[0].clone();
    let gradient = Gradient::new(&entry, &selected, &outcome.results[1..]);
    let primal = if args.report {
        let ready = session.primal_beside(&entry, &vjp).map_err(|d| failed(&session, &d))?;
        let run =
            with_progress(&args.inputs, "objective", |o| ready.run(&values, o)).map_err(stopped(&session))?;
        Some((ready, run))
    } else {
        None
    };
    let report = if args.check {
        let run = |o: &Options<'_>| gradcheck::gradcheck(&session, &entry, &selected, &values, o);
        Some(with_progress(&args.inputs, "gradcheck", run).map_err(|d| failed(&session, &d))?)
    } else {
        None
    };
    let objective_data = decode(&entry.entry.result, std::slice::from_ref(&objective));
    let mut whole = Map::new();
    let wants_json = args.program.json || args.output.is_some();
    if wants_json {
        let (value, lost) = json::write(&objective_data);
        note_lost(lost);
        whole.insert("objective".into(), value);
        whole.insert("gradient".into(), gradient.json());
        if let Some(report) = &report {
            whole.insert("gradcheck".into(), report_json(report));
        }
        if let Some((ready, run)) = &primal {
            let (cost, how) = (cost_json(run), run_json(ready, run));
            whole.insert("cost".into(), json!({"primal": cost, "gradient": cost_json(&outcome)}));
            whole.insert("run".into(), json!({"primal": how, "gradient": run_json(&vjp, &outcome)}));
        }
    }
    let whole = Json::Object(whole);
    if let Some(path) = &args.output {
        write_file(path, format!("{whole:#}\n").as_bytes())?;
    }
    if args.program.json {
        print_json(&whole);
    } else {
        let value = objective.floats().first().copied().unwrap_or(f64::NAN);
        say(&format!("{} = {value:?}", entry.name));
        say("gradient");
        gradient.print(args.top);
        if let Some((ready, run)) = &primal {
            for (what, ready, run) in [("objective", ready, run), ("objective and gradient", &vjp, &outcome)]
            {
                say(&cost_text(what, run));
                say(&run_text(ready, run));
            }
            say(&ratio_text(run, &outcome));
        }
        if let Some(report) = &report {
            print_report(report, false);
        }
    }
    verdict(report.as_ref())
}

fn one_like(entry: &EntryPoint) -> Value {
    match entry.result_types.first().and_then(|t| t.scalar()) {
        Some(s) => Value::Scalar(s.one()),
        None => Value::f64(1.0),
    }
}

/// `pullback vjp`
pub(crate) fn vjp(args: &VjpArgs) -> Result<(), Failure> {
    let (session, entry) = load_program(&args.program)?;
    can_run(&session, &args.inputs)?;
    let wrt = args.wrt.parse();
    let selected = session.select(&entry, &wrt).map_err(|d| failed(&session, &d))?;
    let values = arguments(&entry, &args.inputs)?;
    let ready =
        session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).map_err(|d| failed(&session, &d))?;
    let seeds = match &args.cotangent {
        Some(written) => {
            let ty = cotangent_type(&entry.entry.result);
            let data = read_value(&ty, written, "cotangent")?;
            let seeds = encode(&ty, &data, &mut Sizes::new(), "cotangent");
            seeds.map_err(|e| Failure::input(format!("cotangent: {e}")))?
        }
        None => ones(&session, &entry, &values, &args.inputs)?,
    };
    let seeds = only_active(session.lowered(), &entry.result_types, seeds);
    let all: Vec<Value> = values.iter().cloned().chain(seeds.iter().cloned()).collect();
    let outcome = match with_progress(&args.inputs, "vjp", |o| ready.run(&all, o)) {
        Ok(outcome) => outcome,
        Err(e) => {
            return Err(
                wrong_shape(&session, &entry, &values, &seeds, args).unwrap_or_else(|| stopped(&session)(e))
            );
        }
    };
    let (results, x_bars) = outcome.results.split_at(entry.result_types.len());
    if let Some(failure) = shapes_differ(&session, &entry, results, &seeds) {
        return Err(failure);
    }
    let gradient = Gradient::new(&entry, &selected, x_bars);
    let (value, lost) = json::write(&decode(&entry.entry.result, results));
    note_lost(lost);
    let whole = json!({"result": value, "cotangents": gradient.json()});
    if let Some(path) = &args.output {
        write_file(path, format!("{whole:#}\n").as_bytes())?;
    }
    if args.program.json {
        print_json(&whole);
    } else {
        say(&format!("result {}", summary(&decode(&entry.entry.result, results))));
        for (leaf, value) in &gradient.parts {
            let data = decode(&leaf.ty, std::slice::from_ref(value));
            say(&format!("{}_bar {}", leaf.path, summary(&data)));
        }
    }
    Ok(())
}

/// Cotangents one. Only results that are arrays have to be computed first, for their shapes.
pub(crate) fn ones(
    session: &Session,
    entry: &EntryPoint,
    values: &[Value],
    inputs: &InputArgs,
) -> Result<Vec<Value>, Failure> {
    let scalars: Option<Vec<Value>> =
        entry.result_types.iter().map(|t| t.scalar().map(|s| Value::Scalar(s.one()))).collect();
    if let Some(ones) = scalars {
        return Ok(ones);
    }
    let primal = session.primal(entry).map_err(|d| failed(session, &d))?;
    let results = with_progress(inputs, "running", |o| primal.run(values, o));
    let results = results.map_err(stopped(session))?.results;
    let ones: Option<Vec<Value>> = results.iter().map(|v| gradcheck::filled(v, 1.0)).collect();
    ones.ok_or_else(|| Failure::input("the result holds sums: give its --cotangent"))
}

/// The error of a cotangent whose shape is not that of the result it belongs to.
fn shapes_differ(
    session: &Session,
    entry: &EntryPoint,
    results: &[Value],
    seeds: &[Value],
) -> Option<Failure> {
    let results = only_active(session.lowered(), &entry.result_types, results.to_vec());
    let shape = |v: &Value| match v {
        Value::Array(a) => a.shape.clone(),
        Value::Scalar(_) | Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => Vec::new(),
    };
    let (r, s) = results.iter().zip(seeds).find(|(r, s)| shape(r) != shape(s))?;
    Some(Failure::input(format!(
        "the cotangent has shape {:?}, the result {:?}: they must agree",
        shape(s),
        shape(r)
    )))
}

/// Whether the derivative stopped because a cotangent has another shape than its result: only then is the program run alone.
fn wrong_shape(
    session: &Session,
    entry: &EntryPoint,
    values: &[Value],
    seeds: &[Value],
    args: &VjpArgs,
) -> Option<Failure> {
    args.cotangent.as_ref()?;
    let primal = session.primal(entry).ok()?;
    let results = with_progress(&args.inputs, "running", |o| primal.run(values, o)).ok()?.results;
    shapes_differ(session, entry, &results, seeds)
}

pub(crate) fn only_active(
    program: &Program,
    types: &[pullback_core::Type],
    values: Vec<Value>,
) -> Vec<Value> {
    types.iter().zip(values).filter(|(t, _)| program.is_active(t)).map(|(_, v)| v).collect()
}

/// `pullback jvp`
pub(crate) fn jvp(args: &JvpArgs) -> Result<(), Failure> {
    let (session, entry) = load_program(&args.program)?;
    let values = arguments(&entry, &args.inputs)?;
    let mut names = Vec::new();
    let mut tangents: Vec<(usize, Value)> = Vec::new();
    for tangent in &args.tangents {
        let (name, written) = split(tangent)?;
        names.push(name.to_string());
        let at = entry.parameters.iter().position(|l| l.path == name);
        let Some(at) = at else {
            let known: Vec<&str> = entry.parameters.iter().map(|l| l.path.as_str()).collect();
            return Err(Failure::input(format!(
                "no argument or field `{name}`; there are {}",
                known.join(", ")
            )));
        };
        let ty = cotangent_type(&entry.parameters[at].ty);
        let data = read_value(&ty, written, name)?;
        let encoded = encode(&ty, &data, &mut Sizes::new(), name);
        let mut encoded = encoded.map_err(|e| Failure::input(format!("tangent `{name}`: {e}")))?;
        let value = as_large_as(encoded.remove(0), &values[at]);
        let same = match (&value, &values[at]) {
            (Value::Array(a), Value::Array(b)) => a.shape == b.shape,
            _ => true,
        };
        if !same {
            return Err(Failure::input(format!("tangent `{name}` and the argument have different shapes")));
        }
        tangents.push((at, value));
    }
    let selected = session.select(&entry, &Wrt { paths: names }).map_err(|d| failed(&session, &d))?;
    tangents.sort_by_key(|t| t.0);
    let ready =
        session.derivative(&entry, Kind::Jvp, &selected, &mut |_, _| {}).map_err(|d| failed(&session, &d))?;
    let all: Vec<Value> = values.into_iter().chain(tangents.into_iter().map(|t| t.1)).collect();
    let outcome = with_progress(&args.inputs, "jvp", |o| ready.run(&all, o)).map_err(stopped(&session))?;
    let (results, y_dots) = outcome.results.split_at(entry.result_types.len());
    let active =
        entry.results.iter().zip(&entry.result_types).filter(|(_, t)| session.lowered().is_active(t));
    let mut tangent = Map::new();
    let mut lines = Vec::new();
    for ((leaf, _), value) in active.zip(y_dots) {
        let data = decode(&cotangent_type(&leaf.ty), std::slice::from_ref(value));
        let name = if leaf.path.is_empty() { "result".to_string() } else { leaf.path.clone() };
        let (json, lost) = json::write(&data);
        note_lost(lost);
        lines.push(format!("{name}_dot {}", summary(&data)));
        tangent.insert(name, json);
    }
    let (value, lost) = json::write(&decode(&entry.entry.result, results));
    note_lost(lost);
    let whole = json!({"result": value, "tangents": tangent});
    if let Some(path) = &args.output {
        write_file(path, format!("{whole:#}\n").as_bytes())?;
    }
    if args.program.json {
        print_json(&whole);
    } else {
        say(&format!("result {}", summary(&decode(&entry.entry.result, results))));
        lines.iter().for_each(|l| say(l));
    }
    Ok(())
}

/// `pullback gradcheck`
pub(crate) fn gradcheck(args: &GradcheckArgs) -> Result<(), Failure> {
    let (session, entry) = load_program(&args.program)?;
    can_run(&session, &args.inputs)?;
    let wrt = args.wrt.parse();
    let selected = session.select(&entry, &wrt).map_err(|d| failed(&session, &d))?;
    let values = arguments(&entry, &args.inputs)?;
    let run = |o: &Options<'_>| gradcheck::gradcheck(&session, &entry, &selected, &values, o);
    let report = with_progress(&args.inputs, "gradcheck", run).map_err(|d| failed(&session, &d))?;
    if args.program.json {
        print_json(&report_json(&report));
    } else {
        print_report(&report, true);
    }
    verdict(Some(&report))
}

fn verdict(report: Option<&gradcheck::Report>) -> Result<(), Failure> {
    match report {
        Some(r) if !r.passed => Err(Failure::new(
            Fault::Program,
            "gradcheck failed: near a kink, or with values so large that differences lose their digits, the differences are wrong; if forward and reverse mode disagree, please report it",
        )),
        _ => Ok(()),
    }
}

fn report_json(r: &gradcheck::Report) -> Json {
    let finite = |x: f64| serde_json::Number::from_f64(x).map_or(Json::Null, Json::Number);
    let one = |c: &gradcheck::Comparison| json!({"what": c.what, "reverse": finite(c.reverse), "forward": c.forward.map(finite), "difference": finite(c.difference)});
    json!({"passed": r.passed, "worst_against_forward": finite(r.worst_forward),
           "worst_against_differences": finite(r.worst_difference),
           "comparisons": r.comparisons.iter().map(one).collect::<Vec<_>>()})
}

fn print_report(r: &gradcheck::Report, details: bool) {
    if details {
        say(&format!("{:<24} {:>22} {:>22} {:>22}", "", "reverse", "forward", "differences"));
        for c in &r.comparisons {
            let forward = c.forward.map_or("-".into(), |x| format!("{x:.13e}"));
            say(&format!(
                "{:<24} {:>22} {forward:>22} {:>22}",
                c.what,
                format!("{:.13e}", c.reverse),
                format!("{:.13e}", c.difference)
            ));
        }
    }
    let verdict = if r.passed { "passed" } else { "FAILED" };
    say(&format!(
        "gradcheck {verdict}: reverse against forward mode {:.1e} (limit {:.0e}), against central differences {:.1e} (limit {:.0e})",
        r.worst_forward, r.limits.forward, r.worst_difference, r.limits.difference
    ));
}

/// `pullback core`
pub(crate) fn core(args: &CoreArgs) -> Result<(), Failure> {
    if args.print_pipeline {
        for step in pullback_driver::pipeline::STANDARD {
            say(&format!("{:<14} {}", step.name(), step.description()));
        }
        return Ok(());
    }
    let Some(file) = &args.file else {
        return Err(Failure::input("give a program, or --print-pipeline"));
    };
    if let Some(pass) = &args.pass {
        return one_pass(file, pass);
    }
    let mut session = load(file, &args.algorithm, true)?;
    session.settings.lowered = true;
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let mut shown: Option<Program> = None;
    let mut seen = Vec::new();
    let mut watch = |name: &'static str, program: &Program| {
        seen.push(name);
        if args.after.as_deref().is_none_or(|wanted| wanted == name) {
            shown = Some(program.clone());
        }
    };
    match args.derivative {
        None => session.watch(&entry, &mut watch),
        Some(kind) => {
            let wrt = args.wrt.parse();
            let selected = session.select(&entry, &wrt).map_err(|d| failed(&session, &d))?;
            session.derivative(&entry, kind.into(), &selected, &mut watch)
        }
    }
    .map_err(|d| failed(&session, &d))?;
    match shown {
        Some(program) => {
            say(&pullback_core::print::print(&program));
            Ok(())
        }
        None => {
            let wanted = args.after.as_deref().unwrap_or("");
            Err(Failure::input(format!("no pass `{wanted}`; there are {}", seen.join(", "))))
        }
    }
}

fn one_pass(file: &Path, pass: &str) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::input(format!("cannot read {}: {e}", file.display())))?;
    let mut sources = pullback_base::SourceMap::new();
    let id = sources.add(&file.display().to_string(), &text);
    let shown = |d: Diagnostic| Failure::new(Fault::Program, d.render(&sources));
    let mut program = pullback_core::read::read(id, &text).map_err(shown)?;
    let steps = pullback_driver::pipeline::STANDARD;
    let Some(step) = steps.iter().find(|s| s.name() == pass) else {
        let known: Vec<&str> = steps.iter().map(|s| s.name()).collect();
        return Err(Failure::input(format!("no pass `{pass}`; there are {}", known.join(", "))));
    };
    let choice = pullback_driver::Settings::default().choice;
    let run = pullback_driver::pipeline::run(&mut program, &[*step], &choice, &mut |_, _| {});
    run.map_err(|d| Failure::new(d.code.fault(), d.render(&sources)))?;
    say(&pullback_core::print::print(&program));
    Ok(())
}
