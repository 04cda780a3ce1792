//! Derivatives inside optimisers inside derivatives: the particle and saddle problems in all four mixes of modes, and the
//! first problem of the suite. Reference values are those of the suite's own programs.

use crate::golden;
use crate::problem::{Problem, close};
use pullback_core::Value;
use pullback_driver::Kind;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("gradbench::hello", hello),
    ("gradbench::particle::path", particle_path),
    ("gradbench::particle", particle),
    ("gradbench::saddle", saddle),
];

fn hello() {
    let (square, double) = (
        Problem::new("benches/programs/hello.fut", "square"),
        Problem::new("benches/programs/hello.fut", "double"),
    );
    let mut x = 1.0;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let y = square.run(&[Value::f64(x)])[0].floats()[0];
        x = double.run(&[Value::f64(y)])[0].floats()[0];
        seen.extend([y, x]);
    }
    assert_eq!(seen, golden::hello::SEEN);
}

fn particle_path() {
    let problem = Problem::new("examples/particle.fut", "path");
    for (w, value, slope) in
        [(0.0, 3.199079002508199, -19.404636450028175), (0.1, 1.1717792850669058, -18.554209133466394)]
    {
        let (path, g) = problem.gradient("w", &[Value::f64(w)]);
        close("path", path, value);
        close("slope", g[0].floats()[0], slope);
        let dual = problem.derivative(Kind::Jvp, "w", &[Value::f64(w)], &[Value::f64(1.0)]);
        close("slope by forward mode", dual[1].floats()[0], slope);
    }
}

fn particle() {
    for mix in ["rr", "ff", "fr", "rf"] {
        let w = Problem::new("examples/particle.fut", mix).run(&[Value::f64(0.0)])[0].floats()[0];
        close(mix, w, golden::particle::CONTROL);
    }
}

/// The suite's own tolerance would accept zeros.
fn saddle() {
    for mix in ["rr", "ff", "fr", "rf"] {
        let points = Problem::new("examples/saddle.fut", mix).run(&[Value::f64s(&[1.0, 1.0])])[0].floats();
        assert_eq!(points.len(), 4);
        for x in points {
            close(mix, x, golden::saddle::POINT);
        }
    }
}
