//! Claims and programs of the notes (sections 7.1, 7.2 and 8) that no other file has, with numbers by hand.

use super::build::*;
use super::generate::{Random, differences};
use crate::common::{first, parse};
use pullback_ad::bulk::a_core::{Exp, Program, Term};
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_ad::bulk::d_arrays::{jvp, vjp};
use pullback_ad::bulk::e_symbolic;
use pullback_ad::bulk::from_core::{Steps, steps};
use pullback_ad::bulk::partials::Zeros;
use pullback_core::Lam;
use pullback_prim::{Op, Partial, Prim, Scalar};

fn dot(a: &Value, b: &Value) -> f64 {
    a.to_f64s().iter().zip(b.to_f64s()).map(|(x, y)| x * y).sum()
}

/// Whole numbers from -4 to 4: their sums and products are exact.
fn whole(random: &mut Random, shape: &[usize]) -> Value {
    let xs: Vec<f64> = (0..shape.iter().product()).map(|_: usize| random.below(9) as f64 - 4.0).collect();
    reals(shape, &xs)
}

/// `<P x, y> = <x, P' y>`, where `P x` is the value and `P' y` the cotangent; both to the bit.
fn is_transposed(name: &str, shape: &[usize], operation: &dyn Fn(&mut Draft, &Term) -> Term) {
    let mut d = Draft::default();
    let sizes: Vec<_> = shape.iter().map(|k| n(*k as i64)).collect();
    let x = d.reals("x", &sizes);
    let body = operation(&mut d, &x);
    let program = d.program(body);
    let mut random = Random(7);
    for _ in 0..20 {
        let x = whole(&mut random, shape);
        let image = value(&program, std::slice::from_ref(&x));
        let y = whole(&mut random, &image.shape);
        let back = vjp(&program, std::slice::from_ref(&x), &y, Zeros::Multiply).expect("fits");
        let back = back.inputs[0].clone().expect("floats");
        assert_eq!(dot(&image, &y), dot(&x, &back), "{name}: {x:?} {y:?}\n{program}");
    }
}

/// An index function from a table, some of whose entries are outside of an array of `below` elements.
fn table(random: &mut Random, length: usize, below: usize) -> Term {
    let places: Vec<i64> = (0..length).map(|_| random.below(below + 3) as i64 - 1).collect();
    term(Exp::Const(Value::i64s(&[length], &places)))
}

/// T15: each linear operation and its transpose.
#[test]
fn linear_operations_and_their_transposes() {
    for i in -1..4 {
        is_transposed("index of a row", &[3, 4], &|_, x| index(x, &[int(i)]));
        is_transposed("index of an element", &[3, 4], &|_, x| index(x, &[int(2), int(i)]));
    }
    is_transposed("sumOuter", &[3, 4], &|_, x| sum(x));
    is_transposed("replicate", &[4], &|_, x| replicate(&n(3), x));
    is_transposed("stack", &[2], &|_, x| stack(&[x.clone(), add(x, x)]));
    is_transposed("reshape", &[2, 6], &|_, x| reshape(&[n(3), n(4)], x));
    for j in [&[1, 0][..], &[0, 2, 1], &[2, 0, 1], &[1, 2, 0]] {
        is_transposed("tr", &[2, 3, 4], &|_, x| transpose(j, x));
    }
    let mut random = Random(11);
    for _ in 0..10 {
        let places = table(&mut random, 6, 5);
        let at = |i: &[Term]| vec![index(&places, &i[..1])];
        is_transposed("gather", &[5, 2], &|d, x| d.gather(&[n(6), n(2)], x, 1, |_, i| at(i)));
        is_transposed("scatter", &[6, 2], &|d, x| d.scatter(&[n(5), n(2)], x, 1, |_, i| at(i)));
        let both = |i: &[Term]| vec![i[1].clone(), index(&places, &i[..1])];
        is_transposed("gather of two indices", &[3, 5], &|d, x| {
            d.gather(&[n(6), n(3)], x, 2, |_, i| both(i))
        });
        is_transposed("scatter of two indices", &[6, 3], &|d, x| {
            d.scatter(&[n(3), n(5)], x, 2, |_, i| both(i))
        });
    }
}

/// Each operation that has partial derivatives, on arrays, where it is smooth: against differences.
#[test]
fn every_primitive_has_the_slope_of_differences() {
    let mut tried = 0;
    for op in Op::ALL {
        let prim = Prim::Op(*op, Scalar::F64);
        let row = op.row();
        let is_of_floats = row.allows(Scalar::F64) && prim.params().iter().all(|s| *s == Scalar::F64);
        let (true, Some(partials)) = (is_of_floats, row.partials) else { continue };
        for region in row.tested {
            let mut d = Draft::default();
            let inputs: Vec<Term> = region.iter().map(|_| d.reals("x", &[n(5)])).collect();
            let program = d.program(sum(&term(Exp::Op(prim, inputs))));
            // Without derivative, as the order of a polygamma function is: whole numbers.
            let is_order = |k: usize| partials[k] == Partial::Const(0.0) && partials.len() == 2;
            let points = |(k, (low, high)): (usize, &(f64, f64))| {
                // The second argument grows where the first one falls.
                let place = |p: usize| if k % 2 == 0 { p } else { 4 - p } as f64;
                let xs = [0, 1, 2, 3, 4].map(|p| low + (high - low) * (place(p) + 0.5) / 5.0);
                reals(&[5], &xs.map(|x| if is_order(k) { x.round() } else { x }))
            };
            let arguments: Vec<Value> = region.iter().enumerate().map(points).collect();
            let g = vjp(&program, &arguments, &reals(&[], &[1.0]), Zeros::Stop).expect("fits");
            for (k, (a, b)) in g.inputs.iter().zip(differences(&program, &arguments)).enumerate() {
                if is_order(k) {
                    assert_eq!(a.as_ref().map(Value::to_f64s), Some(vec![0.0; 5]), "{}", row.name);
                    continue;
                }
                let same = a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| agree(a, b, 1e-5));
                assert!(same, "{}: {a:?} {b:?}", row.name);
            }
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

/// The Jacobian of `(x_i x_(n-1-i))_i`, by rows in reverse and by columns forwards; at (1, 2, 3) by hand.
#[test]
fn a_jacobian_by_rows_and_by_columns() {
    let mut d = Draft::default();
    let k = d.size("n");
    let x = d.reals("x", std::slice::from_ref(&k));
    let body = d.build(&k, |_, i| {
        let back = sub(&sub(&Term::size(&k), &int(1)), &i);
        mul(&index(&x, &[i]), &index(&x, &[back]))
    });
    let program = transform(&d.program(body), Rules::Guarded).0;
    let at = [reals(&[3], &[1.0, 2.0, 3.0])];
    let wanted = [[3.0, 0.0, 1.0], [0.0, 4.0, 0.0], [3.0, 0.0, 1.0]];
    let unit = |j: usize| reals(&[3], &[0, 1, 2].map(|i| if i == j { 1.0 } else { 0.0 }));
    let symbolic = e_symbolic::vjp(&program, Zeros::Stop).expect("bulk operations");
    for (i, row) in wanted.iter().enumerate() {
        let g = vjp(&program, &at, &unit(i), Zeros::Stop).expect("fits");
        assert_eq!(g.inputs, [Some(reals(&[3], row))]);
        assert_eq!(symbolic.run(&[at[0].clone(), unit(i)]).expect("fits").cotangents, g.inputs);
        let column = jvp(&program, &at, &[unit(i)]).expect("fits");
        assert_eq!(column.tangent.to_f64s(), wanted.map(|row| row[i]));
    }
}

fn count(program: &Program, what: &str) -> usize {
    let made = e_symbolic::vjp(&transform(program, Rules::Guarded).0, Zeros::Stop);
    made.expect("bulk operations").to_string().matches(what).count()
}

/// Claim C7 and T4: a loop that is written out has as many `index` as iterations, so as many arrays with one element that is not zero. With `build1` there is one `index` and none of them.
#[test]
fn a_loop_that_is_written_out_makes_an_array_for_each_iteration() {
    let sines = |k: i64| {
        let mut d = Draft::default();
        let x = d.reals("x", &[n(k)]);
        let terms = (0..k).map(|i| op1(Op::Sin, &index(&x, &[int(i)])));
        let body = terms.reduce(|a, b| add(&a, &b)).expect("at least one");
        d.program(body)
    };
    const ONE_HOT: &str = "(\\[]. [";
    for k in [1, 5, 20] {
        assert_eq!(count(&sines(k), ONE_HOT), k as usize);
    }
    let mut d = Draft::default();
    let k = d.size("n");
    let x = d.reals("x", std::slice::from_ref(&k));
    let body = d.build(&k, |_, i| op1(Op::Sin, &index(&x, &[i])));
    assert_eq!(count(&d.program(sum(&body)), ONE_HOT), 0);
}

/// Claim C8: time stays, memory may not. By BI4 all three scatters of T10 are there at once, in one array of 3 times 4 elements.
#[test]
fn all_scatters_of_a_loop_are_one_array() {
    let mut d = Draft::default();
    let x = d.reals("x", &[n(4)]);
    let body = d.build(&n(3), |d, i| {
        let sent = d.scatter(&[n(4)], &x, 1, |_, j| vec![op2(Op::Mod, &mul(&j[0], &i), &int(4))]);
        index(&sent, &[op2(Op::Mod, &mul(&int(2), &i), &int(4))])
    });
    let source = d.program(body);
    let text = transform(&source, Rules::Guarded).0.to_string();
    assert!(text.contains("(scatter [3, 4] (replicate (3) x"), "{text}");
    assert!(source.to_string().contains("(scatter [4] x"), "{source}");
}

/// The sum of two of three of four elements, each nest of `build1` indexed by the next outer index (a regression test of `horde-ad`, O21): `v_0 + v_1`.
#[test]
fn nests_of_build1_that_are_indexed() {
    let mut d = Draft::default();
    let v = d.reals("v", &[n(5)]);
    let outer = d.build(&n(2), |d, i| {
        let middle = d.build(&n(3), |d, j| {
            let inner = d.build(&n(4), |_, k| index(&v, &[k]));
            index(&inner, &[j])
        });
        index(&middle, &[i])
    });
    let program = transform(&d.program(sum(&outer)), Rules::Guarded).0;
    let at = [reals(&[5], &[1.1, 2.2, 3.3, 4.0, -5.22])];
    let g = vjp(&program, &at, &reals(&[], &[1.0]), Zeros::Stop).expect("fits");
    assert!((g.value.to_f64s()[0] - 3.3).abs() < 1e-15);
    assert_eq!(g.inputs, [Some(reals(&[5], &[1.0, 1.0, 0.0, 0.0, 0.0]))]);
}

fn of_core(text: &str) -> Steps {
    let mut program = parse(text);
    let fun = program.funs[first(&program)].clone();
    let lam = Lam { params: fun.params, body: fun.body };
    steps(&mut program, &lam, &[true]).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// Claim C12: what is made has the size of the program with its calls written out. Of `k` squares one after another the function makes all values;
/// the reverse pass names each cotangent but the first, which is given.
#[test]
fn calls_cost_what_their_bodies_cost() {
    let chain = |call: &str, k: usize| {
        let lines: String =
            (0..k).map(|i| format!("let x{}: f64 = {call} ", i + 1).replace('_', &format!("x{i}"))).collect();
        format!(
            "fun f(x0: f64): f64 {{ {lines} in x{k} }} fun g(p: f64): f64 {{ let r: f64 = mul.f64(p, p) in r }}"
        )
    };
    for k in [1, 2, 5, 20] {
        for call in ["call g(_)", "mul.f64(_, _)"] {
            let made = of_core(&chain(call, k));
            assert_eq!(
                (made.bulk.bindings.len(), made.reverse.bindings.len()),
                (k, k - 1),
                "{call}, {k}: {:?}",
                made.reverse
            );
        }
    }
}

/// What [`steps`] tells of the self-convolution of Appendix A: two arrays are gathered, one of them as it is.
#[test]
fn steps_of_the_self_convolution() {
    let made = of_core(
        "fun f(a: []f64): f64 {
            let n: i64 = size(a, 0)
            let is: []i64 = iota(n)
            let last: i64 = sub.i64(n, 1i64)
            let p: []f64 = map n [is] (i: i64) {
                let x: f64 = a[i]
                let j: i64 = sub.i64(last, i)
                let y: f64 = a[j]
                let z: f64 = mul.f64(x, y)
                in z
            }
            let s: f64 = reduce n [0.0f64] [p] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
            in s
        }",
    );
    let rules: Vec<&str> = made.applied.iter().map(|s| s.rule).collect();
    for rule in ["B5", "BI1"] {
        assert!(rules.contains(&rule), "{rules:?}");
    }
    let text = |listing: &pullback_ad::bulk::from_core::Listing| {
        let lines = listing.bindings.iter().map(|(x, t)| format!("{x} = {t}\n"));
        lines.chain(listing.results.iter().map(|t| format!("{t}\n"))).collect::<String>()
    };
    let (source, bulk, reverse) = (text(&made.source), text(&made.bulk), text(&made.reverse));
    assert!(source.contains("(build1 (n0)") && source.contains("(index a"), "{source}");
    assert!(
        bulk.contains("(gather [n0] a") && !bulk.contains("build1") && !bulk.contains("(index "),
        "{bulk}"
    );
    assert_eq!(reverse.matches("(scatter [n0]").count(), 1, "the other one is the identity: {reverse}");
    assert_eq!((made.sizes.len(), made.inputs.len(), made.wanted.len(), made.seeds.len()), (1, 1, 1, 1));
}
