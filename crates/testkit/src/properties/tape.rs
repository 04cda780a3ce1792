//! `tape`: what bodies store for the reverse sweep changes nothing but the cost.
//!
//! Configurations: everything stored, everything computed again, the cut, a random mix per body; each with and without
//! sparse maps and views of accumulators; tapes of recursive calls kept or given up, with calls reversed where they run or not; tapes of
//! long loops near or not; each as it comes and optimised. A program is examined in as many of them as the
//! caller says, beginning with one drawn from its seed, so that a few per program cover all of them.

use super::{Check, Reversed, Skip, Stop, Subject, close, fail, finite, rng_of};
use pullback_ad::fast_chad::{Config, Tape, vjp_with};
use pullback_core::check::{Rules, check};

/// The configurations a program is examined in.
const EXAMINED: u64 = 2;
const ALL: u64 = 16;

/// Configuration number `k` of [`ALL`], and whether the derivative is optimised.
fn configuration(k: u64, seed: u64) -> (Config, bool) {
    let tape = [Tape::Recompute, Tape::Random(seed), Tape::Store, Tape::Cut][(k % 4) as usize];
    let production = (k / 4).is_multiple_of(2);
    let kept_calls = [-1, 0, 3, Config::default().kept_calls][(seed / ALL % 4) as usize];
    let [at_once, near] = [4, 8].map(|turns| (seed / ALL / turns).is_multiple_of(2));
    let (sparse_map, views) = (production, production);
    let config = Config { tape, sparse_map, views, kept_calls, at_once, near, ..Config::default() };
    (config, k / 8 % 2 == 1)
}

pub(super) fn tape(of: &Subject<'_>) -> Check {
    let case = of.case;
    let reference = of.reversed()?;
    let mut rng = rng_of(case);
    let bars = reference.cotangents(&mut rng);
    let (_, expected) = reference.run(case, &bars)?;
    finite(&expected)?;
    let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for k in 0..EXAMINED {
        // Neighbours in the order of tapes: a program sees two policies.
        let (config, optimised) = configuration((case.seed + k * 5) % ALL, case.seed);
        let Config { tape, views, kept_calls, at_once, near, .. } = &config;
        let what = format!(
            "{tape:?}, views {views}, kept calls {kept_calls}, at once {at_once}, near {near}, optimised {optimised}"
        );
        let mut r = Reversed::new(case, &|p, l, w| vjp_with(p, l, w, &config))?;
        if optimised {
            use pullback_opt::{CSE, INLINE, PRUNE, SIMPLIFY, UNBOX};
            for pass in [&INLINE, &SIMPLIFY, &CSE, &PRUNE, &UNBOX, &SIMPLIFY] {
                (pass.run)(&mut r.program, &pullback_opt::Ctx::default());
            }
            if let Err(e) = check(&r.program, Rules::NO_AD) {
                return fail(format!("{what}: malformed after optimisation: {e}"));
            }
        }
        let (primal, found) = r.run(case, &bars).map_err(|stop| match stop {
            Stop::Fail(text) => Stop::Fail(format!("{what}: {text}")),
            Stop::Skip(skip) => Stop::Skip(skip),
        })?;
        if primal != reference.results {
            return fail(format!("{what}: primal results changed"));
        }
        if found.len() != expected.len() {
            return Err(Stop::Skip(Skip::LostShape));
        }
        for (i, (x, y)) in found.iter().zip(&expected).enumerate() {
            close(&format!("{what}: entry {i} of the gradient"), *x, *y, size, case.tolerance())?;
        }
    }
    Ok(())
}
