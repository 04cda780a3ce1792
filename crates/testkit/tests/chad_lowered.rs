//! What the algorithms on lambda make, lowered to core: it computes what the reference interpreter of lambda computes, through the pipeline, on the vm and
//! as machine code, on one thread and on several; its work stays in proportion.

use pullback_ad::chad::d_arrays;
use pullback_ad::chad::dense::dense_vjp;
use pullback_ad::on_lambda;
use pullback_core::check::{Rules, check};
use pullback_core::{Array, Buffer, Value};
use pullback_driver::pipeline;
use pullback_driver::{Backend, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options;
use pullback_lambda::{FunId, Program, Type};
use pullback_llvm::Level;
use pullback_llvm::Llvm;
use pullback_testkit::chad::like;
use pullback_testkit::chad::price::Gradients;
use pullback_testkit::chad::terms::{Language, applied};
use pullback_testkit::draws::{draws, share};
use pullback_testkit::native::{Run, Verdict, Way, examine, near};
use pullback_testkit::problems::PROBLEMS;

/// The leaves of a value as core has them: of products the parts, also inside of sums; units have none.
fn leaves(value: &Value, ty: &Type, out: &mut Vec<Value>) {
    let mut base = ty;
    while let Type::Array(t) = base {
        base = t;
    }
    match (value, base) {
        (Value::Tuple(parts), Type::Tuple(types)) => {
            let rank = ty.rank();
            let all_empty = rank > 0 && types.iter().all(has_none);
            // An array of units is one array; beside other arrays it is none.
            for (v, t) in parts.iter().zip(types.iter()).filter(|(_, t)| rank == 0 || !has_none(t)) {
                leaves(v, &Type::array_of_rank(t.clone(), rank), out);
            }
            if all_empty && let Some(first) = parts.first() {
                leaves(first, &Type::array_of_rank(types[0].clone(), rank), out);
            }
        }
        (Value::Sum(k, parts), Type::Sum(variants)) => {
            let mut fields = Vec::new();
            parts.iter().zip(&variants[*k].fields).for_each(|(v, t)| leaves(v, t, &mut fields));
            out.push(Value::Sum(*k, fields.into()));
        }
        (Value::Array(a), Type::Sum(_)) => {
            let mut elements = Vec::new();
            let flat = Array { shape: vec![a.count()], ..a.clone() };
            flat.elements().for_each(|v| leaves(&v, base, &mut elements));
            out.push(Value::Array(Array::new(a.shape.clone(), Buffer::Boxed(elements))));
        }
        (v, _) => out.push(v.clone()),
    }
}

fn has_none(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(ts) if ts.iter().all(has_none))
}

fn floats(values: &[Value]) -> Value {
    Value::f64s(&values.iter().flat_map(Value::floats).collect::<Vec<f64>>())
}

/// A function on lambda, what it gives, and its arguments.
struct Case {
    program: Program,
    f: FunId,
    args: Vec<Value>,
    expected: Value,
}

/// The steps that a random derivative may take.
const WORK_LIMIT: u64 = 2_000_000;

/// Algorithms without effects on finite maps or growable arrays, and without staged calls: these have no core form.
const COMPILED: &[&str] = &[
    "chad",
    "chad-accumulating",
    "chad-arrays",
    "chad-closures",
    "dual-naive",
    "dual-taping",
    "delta-direct",
    "delta-vectors",
    "delta-changes",
    "delta-inwards",
];

/// What else has no core form: values of the didactic algorithms.
const NOT_LOWERED: &[&str] =
    &["an array of arrays of functions", "the zero of a sum, whose alternative is not known"];

/// A random function, and its derivative by this algorithm if it takes it.
fn case(seed: u64, language: Language, algorithm: &pullback_ad::on_lambda::OnLambda) -> Option<Case> {
    let (mut program, f, args, primal, mut rng) = applied(seed, seed.is_multiple_of(2), language)?;
    let made = (algorithm.vjp)(&mut program, f).ok()?;
    let g = dense_vjp(&mut program, f, made);
    let args: Vec<Value> = args.into_iter().chain([like(&mut rng, &primal)]).collect();
    // What is exponential is not waited for.
    let options = pullback_interp::lambda::Options { work_limit: WORK_LIMIT, ..Default::default() };
    let expected = pullback_interp::lambda::run(&program, g, args.clone(), &options).ok()?.result;
    Some(Case { program, f: g, args, expected })
}

/// Random terms of three languages by every algorithm: lowered, they compute what they compute on lambda, before and after all passes, and compiled.
#[test]
fn random_derivatives_compute_the_same_when_lowered() {
    let mut seeds = draws("lowered", (15, 80), 4);
    let algorithms: Vec<_> = on_lambda::all().collect();
    let mut lowered = vec![[0u64; 3]; algorithms.len()];
    let (mut compiled, mut rounded) = (0u64, 0u64);
    for seed in seeds.by_ref() {
        for language in [Language::Wide, Language::Functions, Language::Arrays] {
            for (k, algorithm) in algorithms.iter().enumerate() {
                let Some(case) = case(seed, language, algorithm) else { continue };
                let what = || format!("{seed}, {language:?}, {}", algorithm.id);
                let (core, funs) = match pullback_elab::lower_functions(&case.program, &[case.f]) {
                    Ok(made) => made,
                    Err(errors) => {
                        let said = &errors[0].message;
                        let effects = said.contains("a map cannot") || said.contains("a mutable array");
                        let other = NOT_LOWERED.iter().any(|construct| said.contains(construct));
                        assert!(effects || other, "{}: {said}", what());
                        lowered[k][if other { 2 } else { 1 }] += 1;
                        continue;
                    }
                };
                lowered[k][0] += 1;
                check(&core, Rules::SURFACE).unwrap_or_else(|e| panic!("{}: {e}", what()));
                let mut args = Vec::new();
                let params = &case.program.funs[case.f].params;
                for (v, p) in case.args.iter().zip(params) {
                    leaves(v, &case.program.vars[*p].ty, &mut args);
                }
                let (plain, roots) = pipeline::keep_reachable(&core, &funs);
                let mut optimised = plain.clone();
                let steps = pipeline::steps(true);
                let choice = Settings::default().choice;
                let fun = pipeline::run_for(&mut optimised, roots[0], steps, &choice, &mut |_, _| {})
                    .unwrap_or_else(|d| panic!("{}: {}", what(), d.message));
                for (program, fun) in [(plain, roots[0]), (optimised.clone(), fun)] {
                    let ready = Ready::new(program, fun, Backend::Interp);
                    let out = ready.interpret(&args, &Options::default());
                    let out = out.unwrap_or_else(|e| panic!("{}: {e:?}", what()));
                    let (found, expected) =
                        (floats(&out.results), floats(std::slice::from_ref(&case.expected)));
                    assert!(near(&expected, &found, 1e-11), "{}: {found:?} instead of {expected:?}", what());
                }
                if seed.is_multiple_of(3) {
                    let run = Run { what: what(), program: optimised, fun, args: vec![args], empties: false };
                    let way =
                        if seed.is_multiple_of(2) { Way::VmDefault } else { Way::Llvm(Level::O1, 4, 2) };
                    match examine(&run, way) {
                        Verdict::Bits => compiled += 1,
                        Verdict::Rounded | Verdict::Unstable => rounded += 1,
                        Verdict::Skipped => {}
                        verdict => panic!("{}, {way:?}: {verdict:?}", what()),
                    }
                }
            }
        }
    }
    for (algorithm, [made, refused, other]) in algorithms.iter().zip(&lowered) {
        println!("{}: {made} lowered, {other} not, {refused} with effects", algorithm.id);
    }
    for (algorithm, [made, refused, other]) in algorithms.iter().zip(&lowered) {
        let found = (*made > seeds.drawn() / 4, *made == 0, *refused == 0);
        let expected =
            if COMPILED.contains(&algorithm.id) { (true, false, true) } else { (false, true, false) };
        let staged = algorithm.id == "dual-staged" && *made == 0 && *other > 0;
        assert!(found == expected || staged, "{}: {made}, {refused}, {other}", algorithm.id);
        // The naive one makes arrays of arrays of functions of matrices: of a fifth, and of a small sample by chance a few more.
        let chance = 8 * made.isqrt();
        assert!(staged || 4 * other <= *made + chance, "{}: {other} of {made}", algorithm.id);
    }
    assert!(compiled > rounded, "{compiled} {rounded}");
}

/// The problems of the benchmark: gradients of Fast CHAD, and work in proportion to the program's. Half of them run on the vm with one thread and as
/// machine code, the others on the vm with two, in turns from day to day; and the machine code with one thread or with two.
#[test]
fn problems_have_the_gradients_of_fast_chad_when_lowered() {
    let (mut taken, mut compiled, share) = (0, 0, share(4));
    for problem in PROBLEMS {
        let Ok(gradients) = Gradients::of(problem, d_arrays::ID) else { continue };
        taken += 1;
        let [small, large] = [8, 32].map(|size| gradients.priced(size, Backend::Interp, 1, 0));
        let ratio = |p: &pullback_testkit::chad::price::Lowered| p.work[1] as f64 / p.work[0] as f64;
        assert!(
            ratio(&large) <= 1.15 * ratio(&small),
            "{}: {} {}",
            problem.name,
            ratio(&small),
            ratio(&large)
        );
        let executors = if (taken + share) % 2 == 0 {
            &[(Backend::Vm, 1), (Backend::Llvm, 1 + share / 2)][..]
        } else {
            &[(Backend::Vm, 2)]
        };
        for &(backend, threads) in executors {
            if backend == Backend::Llvm && Llvm::find().is_err() {
                continue;
            }
            let made = gradients.priced(32, backend, threads, 0);
            compiled += 1;
            let [found, expected] = &made.results;
            assert_eq!(found.len(), expected.len(), "{}", problem.name);
            for (found, expected) in found.iter().zip(expected) {
                let close = near(expected, found, 1e-10);
                assert!(close, "{}, {backend:?}, {threads}: {found:?} instead of {expected:?}", problem.name);
            }
        }
    }
    assert!(taken >= 11 && compiled >= taken, "{taken} {compiled}");
}

/// Loops, which became functions that call themselves: their backpropagators are recursive sums. Also what has no floats.
#[test]
fn loops_and_discrete_results_are_lowered() {
    let text = "
entry power (x: f64) (n: i64): (f64, i64, f64) =
  let y = loop y = 1 for _i < n do y * x
  let (z, k) = loop (z, k) = (y, 0) while z > 1 do (z / 2, k + 1)
  in (y, k, z)";
    let mut settings = Settings { lowered: true, ..Settings::default() };
    settings.choice.reverse = Some(d_arrays::ID.into());
    let mut session =
        Session::compile("power.fut", text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
    let entry = session.entry(None).expect("one entry point");
    let wanted = session.select(&entry, &Wrt::parse("x")).expect("a parameter");
    let args = [Value::f64(3.0), Value::i64(4), Value::f64(1.0), Value::f64(32.0)];
    for backend in [Backend::Interp, Backend::Vm] {
        session.settings.backend = backend;
        let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).expect("a derivative");
        let out = ready.run(&args, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
        // 81 is halved seven times; the derivative of x^4 is 4 x^3 = 108, and 32 / 128 of it comes from the last result.
        let expected = [Value::f64(81.0), Value::i64(7), Value::f64(81.0 / 128.0), Value::f64(108.0 * 1.25)];
        assert_eq!(out.results, expected, "{backend:?}");
    }
}

/// Every element of a map adds to the cell of the same variable, whose first value is zero: compiled, threads share the map, and nothing that one of them
/// adds is lost. All sums are whole numbers, so that any order gives the same bits.
#[test]
fn what_threads_add_to_one_cell_is_all_there() {
    let text = "entry f (n: i64) (x: f64) (y: f64): [n]f64 = map (\\i -> x * f64.i64 i + (if i % 2 == 0 then y else x)) (iota n)";
    let mut settings = Settings { lowered: true, ..Settings::default() };
    settings.choice.reverse = Some(d_arrays::ID.into());
    let mut session =
        Session::compile("cells.fut", text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
    let entry = session.entry(None).expect("one entry point");
    let wanted = session.select(&entry, &Wrt::parse("x,y")).expect("parameters");
    for (backend, threads) in [(Backend::Interp, 1), (Backend::Vm, 2), (Backend::Llvm, 1), (Backend::Llvm, 4)]
    {
        session.settings.backend = backend;
        session.settings.threads = std::num::NonZeroUsize::new(threads);
        let ready = match session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}) {
            Ok(ready) => ready,
            Err(d) if backend == Backend::Llvm && d.message.contains("LLVM") => continue,
            Err(d) => panic!("{}", d.message),
        };
        for n in [0i64, 1, 1000, 200_000] {
            let seeds = vec![1.0; n as usize];
            let args = [Value::i64(n), Value::f64(0.5), Value::f64(2.0), Value::f64s(&seeds)];
            let out = ready.run(&args, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
            let odd = n / 2;
            let expected = [(n * (n - 1) / 2 + odd) as f64, (n - odd) as f64].map(Value::f64);
            assert_eq!(out.results[1..], expected, "{backend:?}, {threads}, {n}");
        }
    }
}
