//! What derivatives cost, forwards and backwards: exactly where one can count by hand, and as sizes grow.

use super::arrays::{dot_product, self_convolution};
use super::bot::product;
use super::build::*;
use super::generate::{Indices, program as any_program, seeds};
use super::scalar::doubling;
use pullback_ad::bulk::a_core::Program;
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_ad::bulk::counts::Nodes;
use pullback_ad::bulk::d_arrays::{Pushforward, jvp, vjp};
use pullback_ad::bulk::partials::Zeros;

fn bulk(program: &Program) -> Program {
    transform(program, Rules::Guarded).0
}
/// Along the direction in which all numbers grow alike.
fn forwards(program: &Program, arguments: &[Value]) -> Pushforward {
    let ones = |a: &Value| {
        if a.scalar.is_float() { reals(&a.shape, &vec![1.0; a.elements.len()]) } else { a.clone() }
    };
    let tangents: Vec<Value> = arguments.iter().map(ones).collect();
    jvp(program, arguments, &tangents).unwrap_or_else(|why| panic!("{why}\n{program}"))
}
fn backwards(program: &Program, arguments: &[Value]) -> u64 {
    let one = reals(&[], &[1.0]);
    vjp(program, arguments, &one, Zeros::Stop).unwrap_or_else(|why| panic!("{why}\n{program}")).touched
}
/// `a_0 b_0 + a_1 b_1 + ..`, written out: an un-vectorised dot product.
fn written_out(k: usize) -> Program {
    let mut d = Draft::default();
    let (a, b) = (d.reals("a", &[n(k as i64)]), d.reals("b", &[n(k as i64)]));
    let products = (0..k as i64).map(|i| mul(&index(&a, &[int(i)]), &index(&b, &[int(i)])));
    let body = products.reduce(|t, u| add(&t, &u)).expect("at least one");
    d.program(body)
}

/// T1 forwards: each shared node is evaluated once, so tangents take as many calls as cotangents. A sum for each value, and one for each tangent.
#[test]
fn tangents_of_doublings_are_linear() {
    for (steps, nodes, evals) in [(16, 33, 49), (3, 7, 10)] {
        let g = forwards(&doubling(steps), &[reals(&[], &[1.0])]);
        assert_eq!((g.nodes.all, g.evals), (nodes, evals));
        let twice = f64::from(1 << steps);
        assert_eq!((g.value.to_f64s(), g.tangent.to_f64s()), (vec![twice], vec![twice]));
        assert_eq!(g.touched, 2 * steps as u64);
    }
}

/// T3 in both directions, by hand. Values: two gathers and a product of n, a sum that reads n and writes one. Tangents: two gathers, two products, their sum, and a sum that reads n and writes one. Cotangents: see `nodes_are_of_array_operations`.
#[test]
fn a_dot_product_is_linear_in_both_directions() {
    let program = bulk(&dot_product());
    for n in [1, 10, 100] {
        let (arguments, k) = ([one_to(n), one_to(n)], n as u64);
        let g = forwards(&program, &arguments);
        assert_eq!((g.nodes, g.evals), (Nodes { all: 12, shares: 4, inputs: 2 }, 12));
        assert_eq!(g.tangent.to_f64s(), [2.0 * one_to(n).to_f64s().iter().sum::<f64>()]);
        assert_eq!(cost(&program, &arguments), 4 * k + 1);
        assert_eq!(g.touched, (4 * k + 1) + (6 * k + 1));
        assert_eq!(backwards(&program, &arguments), (4 * k + 1) + 7 * k);
    }
}

/// Claim C6, in both directions, by hand: without bulk operations a dot product is quadratic backwards, and only there. Values: two elements, a product and a sum for each of n, but one sum less. Tangents: two elements, two products and two sums
/// for each of n, but one sum less. Cotangents: two products for each of n; two arrays with one element that is not zero; these are added up.
#[test]
fn a_dot_product_that_is_written_out_is_quadratic_backwards_only() {
    for n in [1, 10, 20, 40] {
        let (arguments, k) = ([one_to(n), one_to(n)], n as u64);
        let program = written_out(n);
        assert_eq!(cost(&program, &arguments), 4 * k - 1);
        assert_eq!(forwards(&program, &arguments).touched, (4 * k - 1) + (6 * k - 1));
        let one_hot = 2 * k * k;
        assert_eq!(backwards(&program, &arguments), (4 * k - 1) + (2 * k + one_hot + 2 * k * (k - 1)));
    }
}

/// Whether something about a program costs a constant times the program, for growing sizes: how many elements it touches.
pub(super) fn grows_like_the_program(touched: impl Fn(&Program, &[Value]) -> u64) {
    let mut d = Draft::default();
    let (k, m, n) = (d.size("k"), d.size("m"), d.size("n"));
    let matrices = product(&k, &m, &n, d);
    let square = |n: usize| reals(&[n, n], &vec![0.5; n * n]);
    type Arguments<'a> = &'a dyn Fn(usize) -> Vec<Value>;
    let programs: [(Program, Arguments<'_>); 3] = [
        (self_convolution(), &|n| vec![one_to(n)]),
        (dot_product(), &|n| vec![one_to(n), one_to(n)]),
        (matrices, &|n| vec![square(n), square(n)]),
    ];
    for (source, arguments) in programs {
        let ratio = |n: usize| {
            let arguments = arguments(n);
            touched(&source, &arguments) as f64 / cost(&source, &arguments) as f64
        };
        let ratios = [4, 8, 16, 32].map(ratio);
        assert!(ratios.iter().all(|r| *r < 4.0) && ratios[3] < 1.1 * ratios[1], "{ratios:?}\n{source}");
    }
}

/// Tangents cost a constant times the program, for growing sizes.
#[test]
fn tangents_cost_a_constant_times_the_program() {
    grows_like_the_program(|source, arguments| forwards(&bulk(source), arguments).touched);
}

/// Of random programs too: an elementwise operation takes at most 14 for each element. It is one for its value. Each of two arguments takes at most five for a partial derivative and one for a product, and there is a sum.
#[test]
fn tangents_of_random_programs_cost_a_constant_times_the_program() {
    for (seed, indices) in seeds(200).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = any_program(seed, indices);
        if !source.body.ty().is_float() {
            continue;
        }
        let program = bulk(&source);
        let g = forwards(&program, &arguments);
        // What is read of an array that does not vary is read of zeros, which are made.
        let inputs: usize = arguments.iter().map(|a| a.elements.len()).sum();
        let values = cost(&program, &arguments) + inputs as u64;
        assert!(g.touched <= 14 * values, "seed {seed}: {} {values}\n{program}", g.touched);
        assert!(agree(&g.value, &value(&source, &arguments), 1e-13), "seed {seed}\n{program}");
    }
}
