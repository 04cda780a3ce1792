//! Passes on random programs and on their reverse derivatives: well-formed afterwards, and the same values, bit for bit.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_core::check::{Rules, check};
use pullback_core::{Body, Exp, FunId, Program, TapePolicy, Value, print, read, renumber};
use pullback_interp::core::{Options, Outcome, run};
use pullback_opt::{
    CSE, Ctx, ELIMINATE_ACCUMULATORS, FUSE, HOIST, INLINE, PASSES, PRUNE, Pass, REMATERIALISE, SIMPLIFY,
    UNBOX,
};
use pullback_prim::{Scalar, ScalarValue};
use pullback_testkit::generate::{Config, generate};
use pullback_testkit::properties::{Case, reverse_program};

const PROGRAMS: u64 = 80;

fn outcome(program: &Program, main: FunId, args: &[Value]) -> Option<Outcome> {
    let options = Options { work_limit: 3_000_000, ..Options::default() };
    run(program, main, args.to_vec(), &options).ok()
}

/// The arguments of a case's derivative: those of the case, and a random cotangent for each of its results that has one.
fn with_cotangents(case: &Case, results: &[Value], seed: u64) -> Vec<Value> {
    let mut rng = pullback_testkit::rng::Rng::new(seed);
    let results = results.iter().zip(&case.program.funs[case.main].results);
    let cotangents = results.filter_map(|(v, t)| {
        pullback_testkit::flat::random_cotangent(v, case.program.is_active(t), &mut rng)
    });
    case.args.iter().cloned().chain(cotangents).collect()
}

/// Equal up to the rounding of another order of summation, which accumulators leave open.
fn close(a: &Value, b: &Value) -> bool {
    let near = |x: ScalarValue, y: ScalarValue| {
        let (p, q) = (x.as_f64(), y.as_f64());
        let tolerance = if x.scalar() == Scalar::F32 { 1e-3 } else { 1e-9 };
        x == y
            || (x.scalar() == y.scalar()
                && x.scalar().is_float()
                && (p == q
                    || (p.is_nan() && q.is_nan())
                    || (p - q).abs() <= tolerance * p.abs().max(q.abs()).max(1.0)))
    };
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => near(*x, *y),
        (Value::Array(a), Value::Array(b)) => {
            a.count() == b.count()
                && (a.count() == 0 || a.shape == b.shape)
                && (0..a.count()).all(|i| close(&a.data.get(i), &b.data.get(i)))
        }
        (Value::Tuple(xs), Value::Tuple(ys)) => {
            xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| close(x, y))
        }
        (Value::Sum(j, xs), Value::Sum(k, ys)) => {
            j == k && xs.len() == ys.len() && xs.iter().zip(ys.iter()).all(|(x, y)| close(x, y))
        }
        _ => false,
    }
}

/// Equal bit for bit. An array without elements may know its inner sizes in one program and not in the other: a `map`
/// over nothing cannot tell them.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.count() == 0 => {
            b.count() == 0 && a.shape.len() == b.shape.len() && a.data.scalar() == b.data.scalar()
        }
        (Value::Tuple(xs), Value::Tuple(ys)) => {
            xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| same(x, y))
        }
        (Value::Sum(j, xs), Value::Sum(k, ys)) => {
            j == k && xs.len() == ys.len() && xs.iter().zip(ys.iter()).all(|(x, y)| same(x, y))
        }
        (a, b) => a == b,
    }
}

fn compare(
    seed: u64,
    what: &str,
    before: &Program,
    main: FunId,
    args: &[Value],
    passes: &[&Pass],
    ctx: &Ctx,
) {
    let Some(first) = outcome(before, main, args) else { return };
    let mut after = before.clone();
    for pass in passes {
        (pass.run)(&mut after, ctx);
        if let Err(e) = check(&after, Rules::SURFACE) {
            panic!("seed {seed}, {what}: {}\n{}", e.after(pass.name), print(&after));
        }
    }
    let Some(second) = outcome(&after, main, args) else {
        panic!("seed {seed}, {what}: stops\n{}\n=>\n{}", print(before), print(&after));
    };
    let regroups = passes.iter().any(|p| p.name == "eliminate_accumulators");
    let agree = if regroups { close } else { same };
    let equal = first.results.iter().zip(&second.results).all(|(a, b)| agree(a, b));
    assert!(
        equal && first.results.len() == second.results.len(),
        "seed {seed}, {what}: {:?} and {:?}\n{}\n=>\n{}",
        first.results,
        second.results,
        print(before),
        print(&after)
    );
}

fn pipelines() -> Vec<(&'static str, Vec<&'static Pass>)> {
    let mut out: Vec<_> = PASSES.iter().map(|p| (p.name, vec![*p])).collect();
    out.push(("standard", vec![&INLINE, &SIMPLIFY, &CSE, &PRUNE, &HOIST, &SIMPLIFY, &CSE, &PRUNE]));
    out.push((
        "with fusion",
        vec![&INLINE, &SIMPLIFY, &CSE, &PRUNE, &HOIST, &FUSE, &SIMPLIFY, &FUSE, &CSE, &PRUNE],
    ));
    let after = vec![&SIMPLIFY, &CSE, &PRUNE, &ELIMINATE_ACCUMULATORS, &SIMPLIFY, &CSE, &PRUNE];
    out.push(("after differentiation", after));
    out.push(("without boxes", vec![&SIMPLIFY, &CSE, &PRUNE, &FUSE, &SIMPLIFY, &UNBOX, &SIMPLIFY, &HOIST]));
    out
}

/// One to eight passes, drawn from the seed.
fn some_passes(seed: u64) -> Vec<&'static Pass> {
    let mut rng = pullback_testkit::rng::Rng::new(seed ^ 0x5eed);
    (0..1 + rng.below(8)).map(|_| PASSES[rng.below(PASSES.len())]).collect()
}

#[test]
fn random_programs_keep_their_values() {
    for seed in 0..PROGRAMS {
        let case = Case::of(&generate(seed, &Config::default()));
        for (name, passes) in pipelines() {
            compare(seed, name, &case.program, case.main, &case.args, &passes, &Ctx::default());
        }
        for k in 0..3 {
            let passes = some_passes(3 * seed + k);
            let names: Vec<_> = passes.iter().map(|p| p.name).collect();
            compare(seed, &names.join(" "), &case.program, case.main, &case.args, &passes, &Ctx::default());
        }
    }
}

#[test]
fn derivatives_of_random_programs_keep_their_values() {
    let reverse = |p: &mut Program, lam: &pullback_core::Lam, wanted: &[bool]| {
        let algorithm = pullback_ad::contract::algorithm(pullback_ad::contract::Mode::Reverse, None).unwrap();
        (algorithm.transform)(p, lam, wanted)
    };
    let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
    let mut ran = 0;
    for seed in 0..PROGRAMS {
        let case = Case::of(&generate(seed, &Config::default()));
        let Ok((program, id)) = reverse_program(&case, &reverse) else { continue };
        check(&program, Rules::NO_AD).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let Some(primal) = outcome(&case.program, case.main, &case.args) else { continue };
        let args = with_cotangents(&case, &primal.results, seed);
        ran += usize::from(outcome(&program, id, &args).is_some());
        for (name, passes) in pipelines() {
            compare(seed, name, &program, id, &args, &passes, &ctx);
        }
        for k in 0..3 {
            let passes = some_passes(3 * seed + k);
            let names: Vec<_> = passes.iter().map(|p| p.name).collect();
            compare(seed, &names.join(" "), &program, id, &args, &passes, &ctx);
        }
    }
    assert!(ran as u64 > PROGRAMS / 2, "only {ran} derivatives ran");
}

/// Loops of which blocks run again: in each other, in maps, branches and functions.
#[test]
fn blocks_of_tapes_keep_their_values() {
    fn near(body: &mut Body, bytes: u64) {
        for stm in &mut body.stms {
            if let Exp::Loop(l) = &mut stm.exp {
                l.attrs.tape = Some(TapePolicy::Near { bytes, least: 1 });
            }
            stm.exp.bodies_mut().into_iter().for_each(|scope| near(scope.body, bytes));
        }
    }
    let fast_chad = |p: &mut Program, lam: &pullback_core::Lam, wanted: &[bool]| {
        pullback_ad::fast_chad::vjp(p, lam, wanted)
    };
    let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
    let pipelines: [&[&Pass]; 2] = [
        &[&SIMPLIFY, &CSE, &PRUNE, &ELIMINATE_ACCUMULATORS, &SIMPLIFY, &CSE, &PRUNE, &HOIST, &SIMPLIFY],
        &[&SIMPLIFY, &CSE, &PRUNE, &FUSE, &SIMPLIFY, &UNBOX, &SIMPLIFY, &HOIST, &REMATERIALISE, &SIMPLIFY],
    ];
    let mut ran = 0;
    for seed in 0..4 * PROGRAMS {
        let mut case = Case::of(&generate(seed, &Config::default()));
        for fun in case.program.funs.iter_mut() {
            near(&mut fun.body, 16 << (seed % 5));
        }
        let Ok((program, id)) = reverse_program(&case, &fast_chad) else { continue };
        if !print(&program).contains("recompute {") {
            continue;
        }
        let Some(primal) = outcome(&case.program, case.main, &case.args) else { continue };
        let args = with_cotangents(&case, &primal.results, seed);
        for passes in pipelines {
            compare(seed, "blocks", &program, id, &args, passes, &ctx);
        }
        ran += 1;
    }
    assert!(ran > 20, "{ran} programs");
}

/// The text form holds everything about random programs and their derivatives.
#[test]
fn random_programs_survive_printing() {
    for seed in 0..PROGRAMS {
        let program = generate(seed, &Config::default()).program;
        let text = print(&program);
        let mut sources = pullback_base::SourceMap::new();
        let file = sources.add("text", &text);
        let again = read(file, &text).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
        assert_eq!(print(&again), text);
        let plain = |mut p: Program| {
            p.vars.iter_mut().for_each(|i| i.origin = Default::default());
            p
        };
        assert_eq!(plain(again), plain(renumber(&program)));
    }
}

/// Optimised code does not do much more: a copy where the original updated in place would show. (A result of a map that
/// does not vary becomes a replicate, which the cost model charges by the element and further results of a map not.)
#[test]
fn the_standard_passes_do_not_add_work() {
    for seed in 0..PROGRAMS {
        let case = Case::of(&generate(seed, &Config::default()));
        let mut after = case.program.clone();
        for pass in [&INLINE, &SIMPLIFY, &CSE, &PRUNE] {
            (pass.run)(&mut after, &Ctx::default());
        }
        let derivative = |s: &pullback_core::Stm| matches!(s.exp, Exp::Vjp { .. } | Exp::Jvp { .. });
        let mut skip = false;
        for fun in case.program.funs.iter() {
            pullback_core::traverse::for_each_stm(&fun.body, &mut |s| skip |= derivative(s));
        }
        if skip {
            continue;
        }
        for args in std::iter::once(&case.args).chain(&case.growing) {
            let (Some(a), Some(b)) =
                (outcome(&case.program, case.main, args), outcome(&after, case.main, args))
            else {
                continue;
            };
            let text = || format!("{}\n=>\n{}", print(&case.program), print(&after));
            assert!(
                b.counts.work <= a.counts.work + a.counts.work / 10 + 8,
                "seed {seed}: work {} after {}\n{}",
                b.counts.work,
                a.counts.work,
                text()
            );
        }
    }
}

/// Fusion moves code and copies none: not one step more, in programs and in their derivatives.
#[test]
fn fusion_does_not_add_a_step() {
    let reverse = |p: &mut Program, lam: &pullback_core::Lam, wanted: &[bool]| {
        let algorithm = pullback_ad::contract::algorithm(pullback_ad::contract::Mode::Reverse, None).unwrap();
        (algorithm.transform)(p, lam, wanted)
    };
    let (mut fused, mut saved) = (0, 0);
    for seed in 0..PROGRAMS {
        let case = Case::of(&generate(seed, &Config::default()));
        let mut programs = vec![(case.program.clone(), case.main, case.args.clone())];
        if let Ok((program, id)) = reverse_program(&case, &reverse)
            && let Some(primal) = outcome(&case.program, case.main, &case.args)
        {
            programs.push((program, id, with_cotangents(&case, &primal.results, seed)));
        }
        for (mut before, main, args) in programs {
            for pass in [&INLINE, &SIMPLIFY, &CSE, &PRUNE] {
                (pass.run)(&mut before, &Ctx::default());
            }
            let mut after = before.clone();
            (FUSE.run)(&mut after, &Ctx::default());
            fused += usize::from(after != before);
            let (Some(a), Some(b)) = (outcome(&before, main, &args), outcome(&after, main, &args)) else {
                continue;
            };
            assert!(
                b.counts.work <= a.counts.work,
                "seed {seed}: work {} after {}\n{}\n=>\n{}",
                b.counts.work,
                a.counts.work,
                print(&before),
                print(&after)
            );
            saved += a.counts.work - b.counts.work;
        }
    }
    assert!(fused as u64 > PROGRAMS / 4 && saved > 0, "{fused} programs changed, {saved} steps saved");
}

/// Hoisting adds a constant per execution of a loop or array operation that runs no iteration, and a condition in front of
/// expensive code.
#[test]
fn hoisting_adds_little() {
    for seed in 0..PROGRAMS {
        let case = Case::of(&generate(seed, &Config::default()));
        let mut after = case.program.clone();
        (HOIST.run)(&mut after, &Ctx::default());
        for args in std::iter::once(&case.args).chain(&case.growing) {
            let (Some(a), Some(b)) =
                (outcome(&case.program, case.main, args), outcome(&after, case.main, args))
            else {
                continue;
            };
            assert!(
                b.counts.work <= a.counts.work + a.counts.work / 10 + 8,
                "seed {seed}: work {} after {}",
                b.counts.work,
                a.counts.work
            );
        }
    }
}

/// Passes before differentiation: the derivative is the same function, up to rounding.
#[test]
fn derivatives_after_random_passes_agree() {
    let reverse = |p: &mut Program, lam: &pullback_core::Lam, wanted: &[bool]| {
        let algorithm = pullback_ad::contract::algorithm(pullback_ad::contract::Mode::Reverse, None).unwrap();
        (algorithm.transform)(p, lam, wanted)
    };
    let gradient = |case: &Case, primal: &[Value], seed: u64| -> Option<Vec<f64>> {
        let (program, id) = reverse_program(case, &reverse).ok()?;
        let fun = &case.program.funs[case.main];
        let args = with_cotangents(case, primal, seed);
        let out = outcome(&program, id, &args)?;
        let active = case.args.iter().zip(&fun.params);
        let active = active.filter(|(_, p)| case.program.is_active(&case.program.vars[**p].ty));
        let bars = active.zip(&out.results[primal.len()..]);
        let floats = bars.map(|((x, _), bar)| pullback_testkit::flat::cotangent_floats(x, bar));
        Some(floats.collect::<Result<Vec<_>, _>>().ok()?.concat())
    };
    let (mut compared, mut lost) = (0, 0);
    for seed in 0..PROGRAMS {
        let case = Case::of(&generate(seed, &Config::default()));
        let single = case.program.vars.iter().any(|v| format!("{:?}", v.ty).contains("F32"));
        let Some(primal) = outcome(&case.program, case.main, &case.args) else { continue };
        let Some(expected) = gradient(&case, &primal.results, seed) else { continue };
        for k in 0..2 {
            let mut passes = some_passes(2 * seed + k + 1_000_000);
            // Numbers of functions stay; fusion is for after differentiation.
            passes.retain(|p| p.name != "drop_unused_functions" && p.name != "fuse");
            let mut changed = case.clone();
            for pass in &passes {
                (pass.run)(&mut changed.program, &Ctx::default());
            }
            let names: Vec<_> = passes.iter().map(|p| p.name).collect();
            let Some(found) = gradient(&changed, &primal.results, seed) else {
                // Arrays without elements may lose their other sizes, as they may in compiled code.
                if case.empties {
                    lost += 1;
                    continue;
                }
                panic!("seed {seed}: no derivative after {names:?}\n{}", print(&changed.program))
            };
            assert_eq!(expected.len(), found.len());
            let scale = expected.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
            let limit = scale * if single { 2e-3 } else { 1e-8 };
            for (a, b) in expected.iter().zip(&found) {
                let close = (a - b).abs() <= limit || (a.is_nan() && b.is_nan()) || a == b;
                assert!(close || !scale.is_finite(), "seed {seed}: {a} and {b} after {names:?}");
            }
            compared += 1;
        }
    }
    assert!(compared > PROGRAMS, "only {compared} derivatives were compared");
    assert!(lost * 50 <= compared, "{lost} of {compared} lost sizes of empty arrays");
}
