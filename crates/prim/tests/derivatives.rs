//! Every row of the table: its derivatives of orders one to three against central differences on its domain.
//!
//! Higher orders come from differentiating the partials symbolically, with the table's own partials as the rules: that
//! is possible only because the table is closed under differentiation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use pullback_prim::{Op, Partial, Prim, Product, Scalar, ScalarValue, eval_partial};

fn differentiable() -> impl Iterator<Item = Op> {
    Op::ALL.iter().copied().filter(|&op| Prim::Op(op, Scalar::F64).partials().is_some())
}

/// Points of a box spread evenly and deterministically: multiples of irrational numbers, modulo one.
fn points(region: &[(f64, f64)], count: u32) -> impl Iterator<Item = Vec<f64>> + '_ {
    const STEPS: [f64; 3] = [0.7548776662466927, 0.5698402909980532, 0.6180339887498949];
    (1..=count).map(move |i| {
        let fraction = |k: usize| (f64::from(i) * STEPS[k]).fract();
        region.iter().enumerate().map(|(k, (low, high))| low + (high - low) * fraction(k)).collect()
    })
}

/// Whether the argument only chooses the function: a condition, or the order of polygamma.
fn is_choice(op: Op, argument: usize) -> bool {
    argument == 0 && matches!(op, Op::Select | Op::Polygamma)
}

/// The arguments as scalars of type `s`.
fn scalars(op: Op, s: Scalar, point: &[f64]) -> Vec<ScalarValue> {
    let value = |(i, &x): (usize, &f64)| match op {
        Op::Select if i == 0 => ScalarValue::Bool(x > 0.5),
        Op::Polygamma if i == 0 => s.from_f64(x.floor()),
        _ => s.from_f64(x),
    };
    point.iter().enumerate().map(value).collect()
}

fn eval(op: Op, args: &[ScalarValue]) -> f64 {
    Prim::Op(op, Scalar::F64).eval(args).unwrap().as_f64()
}

/// The fourth-order central difference of `f` at `x`.
fn difference(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    let h = 2e-4;
    (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h)
}

/// Compares the derivative expression of `f` with respect to each argument with differences of `f`.
fn compare(
    op: Op,
    points_per_region: u32,
    f: &dyn Fn(&[ScalarValue]) -> f64,
    derivative: &dyn Fn(usize, &[ScalarValue]) -> f64,
) -> usize {
    let row = op.row();
    assert!(!row.tested.is_empty(), "{op:?} has no domain");
    let mut compared = 0;
    for region in row.tested {
        assert_eq!(region.len(), row.arity, "{op:?}");
        for point in points(region, points_per_region) {
            let args = scalars(op, Scalar::F64, &point);
            for i in (0..row.arity).filter(|&i| !is_choice(op, i)) {
                let want = difference(args[i].as_f64(), |x| {
                    let mut moved = args.clone();
                    moved[i] = ScalarValue::F64(x);
                    f(&moved)
                });
                let got = derivative(i, &args);
                let scale = 1.0 + want.abs() + f(&args).abs();
                assert!(
                    (got - want).abs() <= 1e-8 * scale,
                    "{op:?} by {i} at {args:?}: {got} against {want}"
                );
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn first_derivatives_are_those_of_central_differences() {
    let mut compared = 0;
    for op in differentiable() {
        let partials = Prim::Op(op, Scalar::F64).partials().unwrap();
        assert_eq!(partials.len(), op.row().arity, "{op:?}");
        compared += compare(op, 300, &|args| eval(op, args), &|i, args| {
            eval_partial(&partials[i], args, ScalarValue::F64(eval(op, args))).unwrap()
        });
    }
    assert!(compared > 20_000, "{compared}");
}

/// An expression with operands that live as long as the test program.
fn node(op: Op, operands: Vec<Partial>) -> Partial {
    use Partial::Const;
    match (op, operands.as_slice()) {
        (Op::Mul, [Const(0.0), _] | [_, Const(0.0)]) => Const(0.0),
        (Op::Mul, [Const(1.0), x] | [x, Const(1.0)]) | (Op::Add, [Const(0.0), x] | [x, Const(0.0)]) => *x,
        _ => Partial::Op(op, Box::leak(operands.into_boxed_slice())),
    }
}

/// `rule`, a partial of an operation, with operands and result of an application put in.
fn substitute(rule: &Partial, operands: &[Partial], result: Partial) -> Partial {
    match *rule {
        Partial::Arg(i) => operands[usize::from(i)],
        Partial::Result => result,
        Partial::Const(c) => Partial::Const(c),
        Partial::Op(op, inner) => node(op, inner.iter().map(|e| substitute(e, operands, result)).collect()),
    }
}

/// The derivative of `expression` with respect to argument `i` of the operation whose partials are `own`.
fn differentiate(expression: &Partial, i: usize, own: &[Partial]) -> Partial {
    match *expression {
        Partial::Arg(j) => Partial::Const(if usize::from(j) == i { 1.0 } else { 0.0 }),
        Partial::Result => own[i],
        Partial::Const(_) => Partial::Const(0.0),
        Partial::Op(op, operands) => {
            let rules = Prim::Op(op, Scalar::F64).partials();
            let rules = rules.unwrap_or_else(|| panic!("{op:?} is used where it is differentiated"));
            let mut sum = Partial::Const(0.0);
            for (rule, operand) in rules.iter().zip(operands) {
                if *rule != Partial::Const(0.0) {
                    let inner = differentiate(operand, i, own);
                    let term = node(Op::Mul, vec![substitute(rule, operands, *expression), inner]);
                    sum = node(Op::Add, vec![sum, term]);
                }
            }
            sum
        }
    }
}

#[test]
fn second_and_third_derivatives_are_those_of_central_differences() {
    for op in differentiable() {
        let own = Prim::Op(op, Scalar::F64).partials().unwrap();
        let smooth = || (0..own.len()).filter(|&i| !is_choice(op, i));
        let value = |e: &Partial, args: &[ScalarValue]| {
            eval_partial(e, args, ScalarValue::F64(eval(op, args))).unwrap()
        };
        for i in smooth() {
            let seconds: Vec<Partial> = (0..own.len()).map(|j| differentiate(&own[i], j, own)).collect();
            compare(op, 40, &|args| value(&own[i], args), &|j, args| value(&seconds[j], args));
            for j in smooth() {
                let thirds: Vec<Partial> =
                    (0..own.len()).map(|k| differentiate(&seconds[j], k, own)).collect();
                compare(op, 20, &|args| value(&seconds[j], args), &|k, args| value(&thirds[k], args));
            }
        }
    }
}

#[test]
fn second_derivatives_are_numbers_where_formulas_are_chosen() {
    let own = Prim::Op(Op::Pow, Scalar::F64).partials().unwrap();
    let second = |i: usize, j: usize, x: f64, y: f64| {
        let args = [ScalarValue::F64(x), ScalarValue::F64(y)];
        eval_partial(&differentiate(&own[i], j, own), &args, ScalarValue::F64(eval(Op::Pow, &args))).unwrap()
    };
    // x^2 and x^1 at negative x and at 0; the mixed derivative is 0 by the convention for x <= 0.
    assert_eq!(second(0, 0, -3.0, 2.0), 2.0);
    assert_eq!(second(0, 0, 0.0, 2.0), 2.0);
    assert_eq!(second(0, 0, 0.0, 3.0), 0.0);
    assert_eq!(second(1, 0, -3.0, 2.0), 0.0);
    assert_eq!(second(1, 1, -3.0, 2.0), 0.0);
    assert_eq!(second(0, 0, 0.0, 0.0), 0.0);
    assert_eq!(second(0, 1, 0.0, 0.0), 0.0);
    // x^y at y = 0: d/dx d/dy = 1 / x in both orders.
    assert_eq!(second(0, 1, 4.0, 0.0), 0.25);
    assert_eq!(second(1, 0, 4.0, 0.0), 0.25);
}

/// Adds the operations that an expression uses.
fn operations_of(expression: &Partial, found: &mut BTreeSet<Op>) {
    if let Partial::Op(op, operands) = expression {
        found.insert(*op);
        operands.iter().for_each(|operand| operations_of(operand, found));
    }
}

/// Arguments at which functions have poles, borders of their domains, or overflow.
const EDGES: [f64; 24] = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-310, -1e-310, 1e-40, 1e-20, 1e20, -1e20, 88.9,
    200.0, 800.0, -800.0, 1e200, -1e200, 1.7e308, -1.7e308,
];

/// A partial that is not marked never makes a NaN out of a zero; one that is marked needlessly costs a comparison. The factors
/// of a strong product are as large as its arguments: they are marked for what is put in there.
#[test]
fn partials_are_marked_where_they_are_not_finite() {
    for op in differentiable().filter(|op| !matches!(op, Op::StrongMul | Op::MutualMul)) {
        for s in [Scalar::F64, Scalar::F32] {
            let prim = Prim::Op(op, s);
            let edges = || EDGES.iter().copied().filter(|x| s.from_f64(*x).as_f64().is_finite());
            let points: Vec<Vec<f64>> = match op.row().arity {
                1 => edges().map(|x| vec![x]).collect(),
                2 => edges().flat_map(|x| edges().map(move |y| vec![x, y])).collect(),
                _ => edges().flat_map(|x| edges().map(move |y| vec![1.0, x, y])).collect(),
            };
            let mut infinite = vec![false; op.row().arity];
            for point in points {
                let args = scalars(op, s, &point);
                let result = prim.eval(&args).unwrap();
                for (i, partial) in prim.partials().unwrap().iter().enumerate() {
                    infinite[i] |= !eval_partial(partial, &args, result).unwrap().is_finite();
                }
            }
            assert_eq!(infinite, op.row().singular, "{prim}");
        }
    }
}

#[test]
fn products_are_strong_where_a_factor_may_be_infinite() {
    let of = |op, i, known: &[Option<f64>]| {
        let known: Vec<_> = known.iter().map(|x| x.map(ScalarValue::F64)).collect();
        Prim::Op(op, Scalar::F64).product(i, &known)
    };
    assert_eq!(of(Op::Mul, 0, &[None, None]), Product::Plain);
    assert_eq!(of(Op::Div, 0, &[None, None]), Product::Strong);
    assert_eq!(of(Op::Div, 1, &[Some(1.0), None]), Product::Strong);
    // A constant that is finite is no pole; zero is one.
    assert_eq!(of(Op::Div, 0, &[None, Some(2.0)]), Product::Plain);
    assert_eq!(of(Op::Div, 0, &[None, Some(0.0)]), Product::Strong);
    // The square is a product, the root is not.
    assert_eq!(of(Op::Pow, 0, &[None, Some(2.0)]), Product::Plain);
    assert_eq!(of(Op::Pow, 0, &[None, Some(0.5)]), Product::Strong);
    assert_eq!(of(Op::Pow, 0, &[None, Some(-1.0)]), Product::Strong);
    assert_eq!(of(Op::Pow, 1, &[None, Some(2.0)]), Product::Strong);
    assert_eq!(of(Op::StrongMul, 0, &[None, None]), Product::Strong);
    assert_eq!(of(Op::StrongMul, 1, &[None, None]), Product::Mutual);
    assert_eq!([0, 1].map(|i| of(Op::MutualMul, i, &[None, None])), [Product::Mutual; 2]);
}

#[test]
fn the_table_is_closed_under_differentiation() {
    for op in differentiable() {
        let mut used = BTreeSet::new();
        op.row().partials.unwrap().iter().for_each(|partial| operations_of(partial, &mut used));
        for inner in used {
            let prim = Prim::Op(inner, Scalar::F64);
            assert!(prim.is_valid(), "{op:?} uses {inner:?}");
            assert!(prim.partials().is_some() || prim.result() == Scalar::Bool, "{op:?} uses {inner:?}");
        }
    }
}

#[test]
fn derivatives_cost_at_most_eight_times_the_operation() {
    for op in differentiable() {
        let cost: u64 = op.row().partials.unwrap().iter().map(Partial::cost).sum();
        assert!(cost <= 8 * op.row().cost, "{op:?}: {cost}");
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for &op in Op::ALL {
        let narrow = Prim::Op(op, Scalar::F32);
        let Some(partials) = narrow.partials() else { continue };
        for region in op.row().tested {
            for point in points(region, 100) {
                let args = scalars(op, Scalar::F32, &point);
                let result = narrow.eval(&args).unwrap();
                assert_eq!(result.scalar(), Scalar::F32);
                let exact: Vec<f64> = args.iter().map(|x| x.as_f64()).collect();
                let wide = scalars(op, Scalar::F64, &exact);
                let wide_result = ScalarValue::F64(eval(op, &wide));
                let close = |got: f64, want: f64| (got - want).abs() <= 2e-5 * (1.0 + want.abs());
                assert!(close(result.as_f64(), wide_result.as_f64()), "{narrow} {args:?}");
                for partial in partials {
                    let got = eval_partial(partial, &args, result).unwrap();
                    let want = eval_partial(partial, &wide, wide_result).unwrap();
                    assert!(close(got, want), "partial of {narrow} at {args:?}: {got} against {want}");
                }
            }
        }
    }
}
