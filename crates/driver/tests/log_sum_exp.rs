//! Library functions that are stable because they subtract the maximum: the maximum is stopped, and costs the derivative nothing.

use pullback_core::traverse::for_each_stm;
use pullback_core::{Exp, Fun, Program, Soac, Value};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;

fn source(maximum: &str) -> String {
    format!(
        "def lse [n] (xs: [n]f64) : f64 =
           let m = {maximum}
           in m + f64.log (f64.sum (map (\\x -> f64.exp (x - m)) xs))
         entry main [n] (xs: [n]f64) : f64 = lse xs"
    )
}

/// The derivative's function and the gradient at a point.
fn derivative(text: &str, xs: &[f64]) -> (Fun, Vec<f64>) {
    let session = Session::compile("lse.fut", text, Settings::default()).expect("compiles");
    let entry = session.entry(None).expect("an entry point");
    let selected = session.select(&entry, &Wrt::default()).expect("floats");
    let mut unfused = None;
    let mut watch = |pass: &'static str, program: &Program| {
        if pass == "differentiate" {
            let mut program = program.clone();
            pullback_core::prune::prune_program(&mut program);
            unfused = Some(program);
        }
    };
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut watch).expect("supported");
    let out = ready.run(&[Value::f64s(xs), Value::f64(1.0)], &Options::default()).expect("runs");
    (unfused.expect("the pass runs").funs[ready.fun].clone(), out.results[1].floats())
}

/// How many values the reductions of a function carry, in order.
fn reductions(fun: &Fun) -> Vec<usize> {
    let mut out = Vec::new();
    for_each_stm(&fun.body, &mut |stm| {
        if let Exp::Soac(Soac::Reduce { neutral, .. }) = &stm.exp {
            out.push(neutral.len());
        }
    });
    out
}

#[test]
fn a_stopped_maximum_changes_no_gradient_and_needs_no_position() {
    // exp of the arguments: 1, 3, 4; softmax: 1/8, 3/8, 4/8.
    let xs = [0.0, 3.0_f64.ln(), 4.0_f64.ln()];
    let (stopped, gradient) = derivative(&source("stop_gradient (f64.maximum xs)"), &xs);
    for (x, y) in gradient.iter().zip([0.125, 0.375, 0.5]) {
        assert!((x - y).abs() < 1e-15, "{gradient:?}");
    }
    // The maximum and the sum of the primal; the sum for the derivative of a free variable is not needed either.
    assert_eq!(reductions(&stopped), [1, 1]);
    let (plain, same) = derivative(&source("f64.maximum xs"), &xs);
    for (x, y) in gradient.iter().zip(same) {
        assert!((x - y).abs() < 1e-15);
    }
    assert!(reductions(&plain).contains(&2), "without it the position of the maximum is looked for");
}
