//! The gradient as a program: the primal let-stack, the dual one, and the sum of what was contributed to the argument.
//!
//! Source: MSc thesis, 3.4.5; 2.10 of our notes.
//!
//! Rule:
//! ```text
//! \a. u  =>  \a. let (primal phase of u) (dual phase of u, where the root has the adjoint `seed`) in (the value of u, the sum of the contributions to a)
//! ```
//!
//! Between the phases stand those values that are computed again (`primal`).
//!
//! Differences from the paper: the value is returned, too; results are of any type, with an adjoint that is given (`seed`, a free variable), where the text has one number and 1.
//!
//! Guarantee: variables of the result are bound where they are read ([`Program::new`] checks it).

use super::contributions::{Contribution, Contributions, sum_contributions};
use super::label::{Key, label_arr};
use super::language::{AVar, Arr, Program, made};
use super::primal::{Keep, Options, Pass};
use super::sequential::sequential;
use std::collections::{BTreeMap, BTreeSet};

/// The gradient of a program.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// Its result is a pair: the value, and the adjoint of the argument.
    pub program: Program,
    /// The free variable with the adjoint of the value.
    pub seed: AVar,
    /// Array variables whose elements are evaluated once, although it costs memory: those with temporaries, if these are stored by choice.
    pub stored: BTreeSet<AVar>,
}

/// The gradient. Cost: the size of the program, times the depth of its conditionals.
pub fn gradient(program: &Program, options: Options) -> Gradient {
    let mut names = program.names.clone();
    let body = label_arr(&sequential(program, &mut names), &mut 0);
    let seed = names.fresh("seed", program.body.ty().clone());
    let argument = program.param.clone();
    let mut pass = Pass {
        names: &mut names,
        options,
        values: BTreeMap::new(),
        splits: BTreeMap::new(),
        loops: BTreeMap::new(),
        keys: BTreeMap::from([(argument.clone(), Key::Argument)]),
        chosen: BTreeSet::new(),
        again: None,
    };
    let env = BTreeMap::from([(argument.clone(), Key::Argument)]);
    let (mut lets, mut stored) = (Vec::new(), Vec::new());
    pass.primal(&body, &mut env.clone(), &mut lets, &mut stored);
    let value = pass.value(&body);
    if options.keep == Keep::Checkpoints {
        pass.primal_again(&body, &mut env.clone(), &mut lets);
    }
    let mut map = Contributions::default();
    map.add(Key::Node(*body.label()), Contribution::full(Arr::var(&seed)));
    pass.dual(&body, &mut env.clone(), &mut map, &mut lets, &mut stored);
    let contributed = map.take(Key::Argument);
    let chosen = pass.chosen;
    let of_argument = sum_contributions(&mut names, &mut lets, &contributed, &argument);
    let body = made(Arr::lets(lets, Arr::tuple(vec![value, of_argument])));
    let free = program.free.iter().cloned().chain([seed.clone()]).collect();
    let program = made(Program::new(argument, free, body, names));
    Gradient { program, seed, stored: chosen }
}
