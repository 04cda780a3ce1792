//! How reverse AD for Accelerate makes a derivative, as text: the function in Idealised Accelerate, and its gradient there.
//!
//! Assumes a checked program before derivatives are expanded.

use crate::bulk_steps::{collect, expanded};
use pullback_ad::Unsupported;
use pullback_ad::accelerate::combine::Gradient;
use pullback_ad::accelerate::from_core::{self, Translated};
use pullback_ad::differentiate::Choice;
use pullback_core::Program;

/// The steps of all derivatives of the program by this algorithm in one of its variants, and the title of what they become; nothing where there is none.
pub(crate) fn text(program: &Program, choice: &Choice) -> String {
    let mut out = String::new();
    for (algorithm, keep) in from_core::VARIANTS {
        let mut functions = Vec::new();
        program.funs.iter().for_each(|fun| collect(&fun.body, choice, algorithm.id, &mut functions));
        for lam in functions {
            let mut program = program.clone();
            let made = expanded(&mut program, choice, lam)
                .and_then(|lam| from_core::steps(&mut program, &lam, &vec![true; lam.params.len()], keep));
            out += &shown(made);
        }
    }
    if out.is_empty() { out } else { out + "The derivative, as a function of core\n" }
}

fn shown(made: Result<(Translated, Gradient), Unsupported>) -> String {
    match made {
        Ok((translated, gradient)) => format!(
            "The function, in Idealised Accelerate\n{}\n\nValue and gradient, in Idealised Accelerate; {} is the cotangent of the result\n{}\n\n",
            translated.source, gradient.seed, gradient.program
        ),
        Err(why) => format!("A function without steps: {why}\n\n"),
    }
}
