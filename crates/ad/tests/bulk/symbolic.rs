//! The gradient as a program (4.6).

use super::arrays::{dot_product, self_convolution};
use super::build::*;
use super::costs::grows_like_the_program;
use super::generate::{Indices, Random, differences, program as any_program, scalar_program, seeds};
use super::scalar::doubling;
use pullback_ad::bulk::a_core::{Exp, Program, Term};
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_ad::bulk::counts::Nodes;
use pullback_ad::bulk::d_arrays::{jvp, vjp};
use pullback_ad::bulk::e_symbolic::{self, Derivative, Run};
use pullback_ad::bulk::partials::Zeros;
use pullback_ad::bulk::separation::separated;
use std::collections::BTreeMap;

fn derivative(program: &Program) -> Derivative {
    let bulk = transform(program, Rules::Guarded).0;
    let derivative = e_symbolic::vjp(&bulk, Zeros::Stop).unwrap_or_else(|why| panic!("{why}\n{program}"));
    for t in std::iter::once(&derivative.value).chain(derivative.cotangents.iter().flatten()) {
        let of = derivative.program(t.clone());
        of.check().unwrap_or_else(|why| panic!("{why}\n{derivative}"));
        assert!(of.body.is_normal(), "bulk operations only: {derivative}");
    }
    derivative
}
fn run(derivative: &Derivative, arguments: &[Value], cotangent: &Value) -> Run {
    let all = [arguments, std::slice::from_ref(cotangent)].concat();
    derivative.run(&all).unwrap_or_else(|why| panic!("{why}\n{derivative}"))
}
fn one() -> Value {
    reals(&[], &[1.0])
}

/// T9 and claim C10: cotangents of a chain of doublings. With names for what is used twice there is a binding for each step; written out, they double.
#[test]
fn cotangents_that_are_used_twice_have_names() {
    let text = derivative(&doubling(3)).to_string();
    let expected = "let s4 = (add.f64 x1 x1)\nlet s5 = (add.f64 s4 s4)\nlet s6 = (add.f64 s5 s5)\n\
        let s8 = (add.f64 c7 c7)\nlet s9 = (add.f64 s8 s8)\nvalue s6\ncotangent of x1 (add.f64 s9 s9)\n";
    assert_eq!(text, expected);
    for steps in [4, 8, 16] {
        let d = derivative(&doubling(steps));
        assert_eq!(d.bindings.len(), 2 * steps - 1);
        let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
        for (x, t) in &d.bindings {
            let Exp::Op(_, ts) = t.exp() else { panic!("a sum") };
            let of = |t: &Term| t.free().iter().next().and_then(|x| nodes.get(x)).copied().unwrap_or(1);
            let sum = 1 + ts.iter().map(of).sum::<u64>();
            nodes.insert(x.id(), sum);
        }
        let largest = nodes.into_values().max().unwrap_or(0);
        assert_eq!(largest, (1 << (steps + 1)) - 1, "nodes without names");
        assert_eq!(run(&d, &[one()], &one()).cotangents, [Some(reals(&[], &[f64::from(1 << steps)]))]);
    }
}

/// E1 to E4 of 4.6.1: the transformation gives primal bindings and one delta term over them, on random programs, and on the dot product with the nodes of T3.
#[test]
fn primal_and_delta_are_apart() {
    let mut nodes = 0;
    for (seed, indices) in seeds(200).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, _) = any_program(seed, indices);
        let bulk = transform(&source, Rules::Guarded).0;
        if !bulk.body.ty().is_float() {
            continue;
        }
        for zeros in [Zeros::Stop, Zeros::StopAll, Zeros::Multiply] {
            let separated = separated(&bulk, zeros).unwrap_or_else(|why| panic!("{why}\n{bulk}"));
            separated.check().unwrap_or_else(|why| panic!("seed {seed}, {zeros:?}: {why}\n{bulk}"));
            nodes += separated.nodes().all;
        }
    }
    assert!(nodes > 3000, "{nodes}");
    let dot = transform(&dot_product(), Rules::Guarded).0;
    let of_dot = separated(&dot, Zeros::Stop).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(of_dot.nodes(), Nodes { all: 12, shares: 4, inputs: 2 });
    // Two gathers, which are identities, have no binding. The product and the sum have.
    assert_eq!(of_dot.bindings.len(), 2);
}

/// Appendix A of the notes, where the first gather is left out; and the dot product, whose gradient is what one would write.
#[test]
fn gradients_of_the_text() {
    let text = derivative(&self_convolution()).to_string();
    let back = |i: u32| format!("(\\[i{i}]. [(sub.i64 (sub.i64 (n0) 1i64) i{i})])");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(lines[0].starts_with("let s") && lines[0].contains(" = (gather [n0] x1 (\\["), "{text}");
    assert!(lines[1].contains("(mul.f64 x1 s") && lines[2].contains("(sumOuter s"), "{text}");
    assert!(lines[3].contains("(replicate (n0) c"), "{text}");
    assert!(lines[4].starts_with("value s"), "{text}");
    assert!(lines[5].contains("(add.f64 (scatter [n0] (mul.f64 s"), "{text}");
    assert!((0..40).any(|i| lines[5].contains(&back(i))), "{text}");
    let d = derivative(&self_convolution());
    let r = run(&d, &[reals(&[4], &[1.0, 2.0, 3.0, 5.0])], &one());
    assert_eq!((r.value.to_f64s()[0], r.cotangents), (22.0, vec![Some(reals(&[4], &[10.0, 6.0, 4.0, 2.0]))]));

    let text = derivative(&dot_product()).to_string();
    assert!(text.contains("cotangent of a1 (mul.f64 s") && text.contains(" b2)"), "{text}");
    assert!(!text.contains("gather") && !text.contains("scatter"), "{text}");
}

/// T17 and claim C11: made once, run for several arguments and sizes; the same as the tape. Work is that of the tape, or less.
#[test]
fn one_program_serves_all_arguments() {
    let source = self_convolution();
    let d = derivative(&source);
    let bulk = transform(&source, Rules::Guarded).0;
    for n in [0, 1, 2, 7, 30] {
        for scale in [1.0, -0.5] {
            let xs: Vec<f64> = one_to(n).to_f64s().iter().map(|x| x * scale).collect();
            let (x, c) = (reals(&[n], &xs), reals(&[], &[1.5]));
            let (r, g) =
                (run(&d, std::slice::from_ref(&x), &c), vjp(&bulk, &[x], &c, Zeros::Stop).expect("fits"));
            assert_eq!((&r.value, &r.cotangents), (&g.value, &g.inputs));
            assert!(r.touched <= g.touched, "{} {}", r.touched, g.touched);
        }
    }
    let refused = d.run(&[one_to(3), one_to(3)]).expect_err("a cotangent of another shape");
    assert!(refused.0.contains("input `c`"), "{refused}");
}

/// The symbolic pass and the tape, on random programs with results of any shape: the same operations, so the same numbers.
#[test]
fn the_program_is_the_tape() {
    for (seed, indices) in seeds(200).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = any_program(seed, indices);
        if !source.body.ty().is_float() {
            continue;
        }
        let bulk = transform(&source, Rules::Guarded).0;
        let shape = value(&source, &arguments).shape;
        let mut random = Random(seed);
        let c = reals(&shape, &(0..shape.iter().product()).map(|_| random.unit()).collect::<Vec<f64>>());
        let tape = vjp(&bulk, &arguments, &c, Zeros::Stop).expect("fits");
        let r = run(&derivative(&source), &arguments, &c);
        assert!(agree(&r.value, &tape.value, 1e-13), "seed {seed}\n{source}");
        for (a, b) in r.cotangents.iter().zip(&tape.inputs) {
            let same = a.as_ref().zip(b.as_ref()).is_none_or(|(a, b)| agree(a, b, 1e-13));
            assert!(same && a.is_some() == b.is_some(), "seed {seed}: {a:?} {b:?}\n{source}");
        }
        // Of inputs that do not matter, the tape makes zeros without counting.
        let inputs: usize = arguments.iter().map(|a| a.elements.len()).sum();
        assert!(
            r.touched <= 2 * (tape.touched + inputs as u64),
            "seed {seed}: {} {}",
            r.touched,
            tape.touched
        );
    }
}

fn count(d: &Derivative, what: &str) -> usize {
    d.to_string().matches(what).count()
}

/// T14: an array that is made once and read three times is made once in the gradient; without `let` it is made three times.
#[test]
fn what_has_a_name_is_made_once() {
    let program = |is_named: bool| {
        let mut d = Draft::default();
        let k = d.size("n");
        let a = d.reals("a", std::slice::from_ref(&k));
        let back = |d: &mut Draft| {
            d.gather(std::slice::from_ref(&k), &a, 1, |_, i| vec![sub(&sub(&Term::size(&k), &int(1)), &i[0])])
        };
        let body = if is_named {
            let r = back(&mut d);
            d.let_(&r, |_, r| add(&add(&index(&r, &[int(0)]), &index(&r, &[int(1)])), &index(&r, &[int(2)])))
        } else {
            let [r, s, t] = [back(&mut d), back(&mut d), back(&mut d)];
            add(&add(&index(&r, &[int(0)]), &index(&s, &[int(1)])), &index(&t, &[int(2)]))
        };
        e_symbolic::vjp(&d.program(body), Zeros::Stop).expect("bulk operations")
    };
    assert_eq!(count(&program(true), "(gather"), 1);
    assert_eq!(count(&program(false), "(gather"), 3);
    let r = run(&program(true), &[one_to(5)], &one());
    assert_eq!(
        (r.value.to_f64s(), r.cotangents),
        (vec![12.0], vec![Some(reals(&[5], &[0.0, 0.0, 1.0, 1.0, 1.0]))])
    );
}

/// Claim C7 says: not more arrays with one element that is not zero than `index` in the source. I5 copies an index to both operands, so it is not so: one `index` of a sum of three arrays makes three.
#[test]
fn one_index_of_an_operation_makes_an_array_for_each_operand() {
    let mut d = Draft::default();
    let k = d.size("n");
    let [a, b, c] = ["a", "b", "c"].map(|name| d.reals(name, std::slice::from_ref(&k)));
    let source = d.program(index(&add(&add(&a, &b), &c), &[int(0)]));
    assert_eq!(count(&derivative(&source), "(\\[]. ["), 3);
    let printed =
        e_symbolic::vjp(&transform(&source, Rules::Printed).0, Zeros::Stop).expect("bulk operations");
    assert_eq!(count(&printed, "(\\[]. ["), 3, "no rule of ours is needed for it");
    let at = e_symbolic::vjp(&source, Zeros::Stop).expect("bulk operations");
    assert_eq!(count(&at, "(\\[]. ["), 1, "without the transformation");
}

/// Gradients cost a constant times the program, for growing sizes (claim C1 for arrays).
#[test]
fn gradients_cost_a_constant_times_the_program() {
    grows_like_the_program(|source, arguments| run(&derivative(source), arguments, &one()).touched);
}

/// Second derivatives: the gradient is a program of bulk operations. `sum_k g_k v_k` of all inputs with this gradient, differentiated in reverse and forwards, against differences.
#[test]
fn gradients_are_differentiated_again() {
    let mut tried = 0;
    for seed in seeds(60) {
        let (source, arguments) = scalar_program(seed, Indices::Anywhere);
        let d = derivative(&source);
        let mut random = Random(seed);
        let mut sum = real(0.0);
        for g in d.cotangents.clone().into_iter().flatten() {
            let v = real((random.unit() * 4.0).round() / 4.0);
            let v = g.ty().shape.clone().iter().rev().fold(v, |v, k| replicate(k, &v));
            sum = add(&sum, &total(&mul(&g, &v)));
        }
        let along = d.program(sum);
        if along.body.nodes() > 3000 {
            continue;
        }
        let arguments = [arguments, vec![one()]].concat();
        let second = run(&derivative(&along), &arguments, &one());
        let numeric = differences(&along, &arguments);
        for (a, b) in second.cotangents.iter().zip(&numeric) {
            let same = a.as_ref().zip(b.as_ref()).is_none_or(|(a, b)| agree(a, b, 1e-5));
            assert!(same, "seed {seed}: {a:?} {b:?}\n{source}");
        }
        let like = |a: &Value| {
            if a.scalar.is_float() { reals(&a.shape, &vec![0.5; a.elements.len()]) } else { a.clone() }
        };
        let tangents: Vec<Value> = arguments.iter().map(like).collect();
        let forwards = jvp(&along, &arguments, &tangents).expect("fits").tangent.to_f64s()[0];
        let backwards: f64 =
            second.cotangents.iter().flatten().flat_map(Value::to_f64s).map(|x| 0.5 * x).sum();
        assert!(
            (forwards - backwards).abs() <= 1e-9 * (1.0 + forwards.abs()),
            "seed {seed}: {forwards} {backwards}"
        );
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
