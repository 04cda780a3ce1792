//! The forward pass of a derivative alone, to count what it costs.
//!
//! Assumes what an algorithm of [`super::ON_LAMBDA`] made: a function that first makes a pair of value and backpropagator, in a `let` that does not know
//! the cotangent, or calls another function that does so with the same arguments.

use pullback_lambda::{Builder, Exp, FunId, Program, Type};

/// A program with a function `(s1, .., sn) -> ()` that makes value and backpropagator and drops them. Its cost is 2 more (the `let`, and the unit value).
/// `None`: the function is not of this form. Cost: the size of the program.
pub fn forward_pass(program: &Program, made: FunId) -> Option<(Program, FunId)> {
    let mut alone = program.clone();
    let mut f = made;
    loop {
        let fun = alone.funs[f].clone();
        let (seed, params) = fun.params.split_last()?;
        let body = fun.body?;
        let Exp::Let(pair, value, _) = body.exp() else { return None };
        if value.free_vars().contains(seed) {
            let Exp::Call(g, _) = value.exp() else { return None };
            // What made the call is not run any more; its call would lack the cotangent.
            alone.funs[f].body = None;
            f = *g;
            continue;
        }
        let mut b = Builder::new(&mut alone);
        let unit = b.unit();
        let body = b.term(Exp::Let(*pair, value.clone(), unit));
        let fun = &mut alone.funs[f];
        (fun.params, fun.result, fun.body) = (params.to_vec(), Type::unit(), Some(body));
        return Some((alone, f));
    }
}
