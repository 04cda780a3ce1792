//! The property of loop attributes: whatever the loops of a program keep for their reverse, the derivative is the same.

use crate::properties::{
    Case, Check, Reverse, Skip, Stop, Subject, adjoint, primal, symmetric, text_round_trip,
};
use crate::rng::Rng;
use pullback_core::{Body, Exp, LoopAttrs, LoopForm, Program, TapePolicy};

/// More iterations than a generated `while` loop has.
const BOUND: u64 = 4;

/// `checkpoints`: the first derivative is right, bit-equal in its first results, and sometimes the second is right too,
/// when every loop has an attribute drawn at random.
pub(crate) fn checkpoints(case: &Case, reverse: Reverse<'_>) -> Check {
    let mut changed = case.clone();
    let mut rng = Rng::new(case.seed ^ 0xC4EC);
    if change_attributes(&mut changed.program, &mut rng) == 0 {
        return Err(Stop::Skip(Skip::NotApplicable));
    }
    text_round_trip(&changed.program)?;
    let of = Subject::new(&changed, reverse);
    limited(primal(&of))?;
    limited(adjoint(&of))?;
    if case.seed.is_multiple_of(16) {
        match limited(symmetric(&of)) {
            Err(Stop::Skip(_)) => {}
            other => return other,
        }
    }
    Ok(())
}

/// A limit may be too small for a program; then it says so.
fn limited(check: Check) -> Check {
    match check {
        Err(Stop::Fail(text)) if text.contains("the tape of this loop needs at least") => {
            Err(Stop::Skip(Skip::TooLarge))
        }
        check => check,
    }
}

/// Gives every loop an attribute at random; returns the number of loops.
pub fn change_attributes(program: &mut Program, rng: &mut Rng) -> usize {
    let mut loops = 0;
    for fun in program.funs.iter_mut() {
        loops += change_body(&mut fun.body, rng);
    }
    loops
}

fn change_body(body: &mut Body, rng: &mut Rng) -> usize {
    let mut loops = 0;
    for stm in &mut body.stms {
        if let Exp::Loop(l) = &mut stm.exp {
            loops += 1;
            let bound = matches!(l.form, LoopForm::While(_)) && rng.chance(0.3);
            l.attrs = LoopAttrs { bound: bound.then_some(BOUND), ..attributes(rng) };
        }
        for scope in stm.exp.bodies_mut() {
            loops += change_body(scope.body, rng);
        }
    }
    loops
}

fn attributes(rng: &mut Rng) -> LoopAttrs {
    let (tape, stripmine) = match rng.below(14) {
        0 => (Some(TapePolicy::All), None),
        1 | 2 => (Some(TapePolicy::Carry), None),
        3 | 4 => (Some(TapePolicy::Sqrt), None),
        5 | 6 => (None, Some(rng.range(1, 3) as u32)),
        7 => (None, Some(40)),
        8 | 9 => (Some(TapePolicy::Revolve(rng.range(1, 3) as u32)), None),
        10 => (Some(TapePolicy::All), Some(2)),
        11 | 12 => {
            let near = TapePolicy::Near { bytes: 16 << rng.below(6), least: rng.range(1, 2) as u32 };
            (Some(near), None)
        }
        _ => (Some(TapePolicy::Limit(100 << rng.below(6))), None),
    };
    LoopAttrs { tape, stripmine, bound: None }
}
