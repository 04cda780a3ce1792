//! Scalar dual numbers (4.1, 4.3.1) and their evaluators.

use super::arrays::dot_product;
use super::build::*;
use super::generate::{Indices, differences, scalar_program, seeds};
use pullback_ad::bulk::a_core::Program;
use pullback_ad::bulk::c_scalar::{Evaluator, Gradient, gradient};
use pullback_ad::bulk::counts::Nodes;
use pullback_ad::bulk::partials::Zeros;
use pullback_prim::Op;
use std::collections::BTreeMap;

const ALL: [Evaluator; 5] =
    [Evaluator::Directions, Evaluator::Vectors, Evaluator::Changes, Evaluator::Inwards, Evaluator::Shared];

fn of(program: &Program, arguments: &[Value], evaluator: Evaluator) -> Gradient {
    gradient(program, arguments, evaluator, Zeros::Stop).unwrap_or_else(|why| panic!("{why}\n{program}"))
}
fn first(g: &Gradient) -> Vec<f64> {
    g.inputs[0].as_ref().map(Value::to_f64s).unwrap_or_default()
}

/// `x_1 = x + x`, `x_j = x_(j-1) + x_(j-1)`, so often.
pub(super) fn doubling(times: usize) -> Program {
    fn more(
        d: &mut Draft,
        x: &pullback_ad::bulk::a_core::Term,
        times: usize,
    ) -> pullback_ad::bulk::a_core::Term {
        match times {
            1 => add(x, x),
            _ => d.let_(&add(x, x), |d, y| more(d, &y, times - 1)),
        }
    }
    let mut d = Draft::default();
    let x = d.reals("x", &[]);
    let body = more(&mut d, &x, times);
    d.program(body)
}

/// T1 of the notes, with its numbers.
#[test]
fn sharing_makes_a_chain_of_doublings_linear() {
    let program = doubling(16);
    let x = [reals(&[], &[1.0])];
    let shared = of(&program, &x, Evaluator::Shared);
    assert_eq!((shared.value, first(&shared)), (65536.0, vec![65536.0]));
    assert_eq!((shared.nodes.all, shared.visits.all), (33, 49));
    assert_eq!(of(&program, &x, Evaluator::Inwards).visits.all, 131_071);
    assert_eq!(first(&of(&program, &x, Evaluator::Inwards)), [65536.0]);
}

/// `let y = exp x in let z = log y in y + sin z / cos z`: Fig. 4.4.
pub(super) fn figure_4_4() -> Program {
    let mut d = Draft::default();
    let x = d.reals("x", &[]);
    let body = d.let_(&op1(Op::Exp, &x), |d, y| {
        d.let_(&op1(Op::Log, &y), |_, z| add(&y, &op2(Op::Div, &op1(Op::Sin, &z), &op1(Op::Cos, &z))))
    });
    d.program(body)
}

/// T2: the derivative is `e^x + 1 / cos(x)^2`. Identities are 1 to 6: exp, log, sin, cos, div, add. Without sharing the input and the term of exp are evaluated three times, with sharing once.
///
/// By hand, exp has the nodes Share, Scale and Input; log, sin and cos have Share and Scale; div has Share, Add and two Scale; add has Share and Add. These are 15. The term itself has 13 nodes.
/// The evaluator with sharing visits each node once, and the shared nodes of exp and log once more: 17. Without sharing, log and all below it are evaluated twice, exp three times: 14 nodes that are no Share.
#[test]
fn sharing_visits_each_node_once() {
    let x = [reals(&[], &[0.5])];
    let program = figure_4_4();
    assert_eq!(program.body.nodes(), 13);
    for evaluator in ALL {
        let g = of(&program, &x, evaluator);
        assert!((g.value - 2.195_023_760_543_919).abs() < 1e-14, "{evaluator:?}");
        assert!((first(&g)[0] - 2.947_167_681_109_653).abs() < 1e-13, "{evaluator:?}");
        assert_eq!(g.nodes, Nodes { all: 15, shares: 6, inputs: 1 });
        let is_shared = evaluator == Evaluator::Shared;
        let (all, opened, input) = if is_shared { (17, [1; 6], 1) } else { (14, [3, 2, 1, 1, 1, 1], 3) };
        assert_eq!(g.visits.all, all, "{evaluator:?}");
        assert_eq!(g.visits.shared, (1..).zip(opened).collect(), "{evaluator:?}");
        assert_eq!(g.visits.inputs, BTreeMap::from([(0, input)]), "{evaluator:?}");
    }
}

/// T3 and claim C4: `5n` nodes and those of `2n` inputs; `n + 1` of them `Share`. The evaluator visits each node once: nothing but an input is used twice.
#[test]
fn a_dot_product_has_nodes_for_each_number() {
    let program = dot_product();
    assert_eq!(program.body.nodes(), 9);
    for n in [1, 4, 30] {
        let g = of(&program, &[one_to(n), one_to(n)], Evaluator::Shared);
        let k = n as u64;
        assert_eq!(g.nodes, Nodes { all: 5 * k + 2 * k, shares: k + 1, inputs: 2 * k });
        assert_eq!(g.visits.all, 7 * k);
        assert!(g.visits.shared.values().chain(g.visits.inputs.values()).all(|times| *times == 1));
        assert_eq!((g.visits.shared.len() as u64, g.visits.inputs.len() as u64), (k + 1, 2 * k));
        assert_eq!(first(&g), one_to(n).to_f64s());
    }
}

/// Claim C2: `eval_0` runs once for each number of the inputs.
#[test]
fn directions_are_evaluated_one_by_one() {
    let mut d = Draft::default();
    let k = d.size("n");
    let a = d.reals("a", std::slice::from_ref(&k));
    let program = d.program(sum(&op1(Op::Sin, &a)));
    let visits = |n, evaluator| of(&program, &[one_to(n)], evaluator).visits.all;
    // A sum of n terms of two nodes each, under n - 1 additions.
    assert_eq!(visits(10, Evaluator::Vectors), 29);
    assert_eq!(visits(10, Evaluator::Directions), 290);
    assert_eq!(visits(20, Evaluator::Directions), 20 * 59);
}

#[test]
fn evaluators_agree_with_differences() {
    for (seed, indices) in seeds(100).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (program, arguments) = scalar_program(seed, indices);
        let shared = of(&program, &arguments, Evaluator::Shared);
        let numeric = differences(&program, &arguments);
        for (k, (a, b)) in shared.inputs.iter().zip(&numeric).enumerate() {
            let (Some(a), Some(b)) = (a, b) else { continue };
            assert!(agree(a, b, 1e-5), "seed {seed}, {indices:?}, input {k}: {a:?} {b:?}\n{program}");
        }
        if shared.visits.all > 400 {
            continue;
        }
        for evaluator in ALL {
            let g = of(&program, &arguments, evaluator);
            for (a, b) in g.inputs.iter().zip(&shared.inputs) {
                let same = a.as_ref().zip(b.as_ref()).is_none_or(|(a, b)| agree(a, b, 1e-11));
                assert!(same, "seed {seed}, {evaluator:?}: {a:?} {b:?}\n{program}");
            }
        }
    }
}

#[test]
fn results_that_are_no_number_are_refused() {
    let mut d = Draft::default();
    let a = d.reals("a", &[n(2)]);
    let program = d.program(a);
    let refused = gradient(&program, &[one_to(2)], Evaluator::Shared, Zeros::Stop);
    assert!(refused.is_err_and(|why| why.0.contains("one floating-point number")));
}
