//! The stated errors hold: against series with 256 bits, over arguments of every kind.

#[path = "reference/points.rs"]
mod points;
use crate::reference;

use points::{Random, point};
use pullback_maths::portable::{Many, One};
use pullback_maths::{Function, MAX_ULP_SINGLE, apply, apply_single, count};
use reference::big::Big;
use reference::{ulps, value};

/// Points per function in the gate; `cargo run --release -p pullback-maths --bin accuracy` takes more.
const POINTS: usize = 4000;

fn double(function: Function, args: &[f64]) -> f64 {
    apply(&One, function, args).expect("as many arguments as the arity")
}

fn single(function: Function, args: &[f32]) -> f32 {
    apply_single(&One, function, args).expect("as many arguments as the arity")
}

#[test]
fn errors_are_at_most_the_stated_ones() {
    for function in Function::ALL.iter().copied() {
        let facts = function.facts();
        assert!(facts.max_ulp <= 2.0, "{}: more than 2 ulp", facts.name);
        let mut random = Random(0x6d61_7468);
        for _ in 0..POINTS {
            let args = point(function, &mut random);
            let computed = double(function, &args);
            let error = ulps(computed, value(function, &args));
            assert!(error <= facts.max_ulp, "{} {args:?}: {computed:?} errs by {error} ulp", facts.name);
        }
    }
}

/// At negative arguments `lgamma` has zeros that are no simple numbers: there the error is absolute.
#[test]
fn lgamma_of_negative_numbers_errs_absolutely_near_its_zeros() {
    let facts = Function::Lgamma.facts();
    let mut random = Random(17);
    for i in 0..2 * POINTS {
        let size = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let x = if i % 3 == 0 { -200.0 * size } else { -6.0 * size };
        let computed = double(Function::Lgamma, &[x]);
        let exact = value(Function::Lgamma, &[x]);
        let difference = Big::from_f64(computed).sub(exact).abs().to_f64();
        let bound = facts.max_ulp * f64::EPSILON * exact.abs().to_f64() + 1e-16;
        assert!(difference <= bound, "lgamma {x:?}: {computed:?} errs by {difference:e}");
    }
}

/// A walk over all bit patterns of `f32` in equal strides. Exponents outside the domain are passed over.
#[test]
fn errors_of_single_precision_are_hardly_more_than_half_a_unit() {
    const STRIDE: usize = 2_000_003;
    for function in Function::ALL.iter().copied() {
        for (i, bits) in (1..u32::MAX).step_by(STRIDE).enumerate() {
            let x = f32::from_bits(bits);
            let y = f32::from_bits((i as u32).wrapping_mul(2_654_435_761) & 0x8fff_ffff | 0x3800_0000);
            let args = &[x, y][..function.facts().arity];
            let computed = single(function, args);
            let wide: Vec<_> = args.iter().map(|x| f64::from(*x)).collect();
            if !points::is_inside(function, &wide) {
                continue;
            }
            let exact = value(function, &wide);
            let error = single_ulps(computed, exact);
            let name = function.facts().name;
            assert!(error <= MAX_ULP_SINGLE, "{name} {args:?}: {computed:?} errs by {error} ulp");
        }
    }
}

/// The distance in units in the last place of `f32`.
fn single_ulps(computed: f32, exact: Big<4>) -> f64 {
    if computed.is_infinite() {
        let agrees = exact.abs().to_f64() >= 3.402_823_567e38 && (computed < 0.0) == exact.is_negative;
        return if agrees { 0.0 } else { f64::INFINITY };
    }
    let unit = if exact.is_zero() { -149 } else { (exact.magnitude() - 23).max(-149) };
    let difference = Big::from_f64(f64::from(computed)).sub(exact).abs();
    if difference.is_zero() || difference.magnitude() < unit - 100 {
        0.0
    } else {
        difference.shift(-unit).to_f64()
    }
}

/// Values by mpmath 1.3 with 50 digits, so that the reference itself is compared with something.
#[test]
fn the_reference_agrees_with_an_independent_tool() {
    for (function, args, digits) in KNOWN {
        let exact = value(*function, args);
        // Twice the precision of a float: two floats that sum to the digits.
        let (high, low) = digits.split_once(" + ").expect("two numbers");
        let parts = [high, low].map(|p| Big::from_f64(p.parse().expect("a number")));
        let difference = exact.sub(parts[0]).sub(parts[1]);
        let is_close = difference.is_zero() || difference.magnitude() < exact.magnitude() - 100;
        assert!(is_close, "{} {args:?}", function.facts().name);
    }
}

#[test]
fn many_lanes_give_what_one_gives() {
    for function in Function::ALL.iter().copied() {
        let mut random = Random(3);
        for _ in 0..60 {
            let args: Vec<Vec<f64>> = (0..8).map(|_| point(function, &mut random)).collect();
            let lanes: Vec<[f64; 8]> =
                (0..function.facts().arity).map(|j| std::array::from_fn(|i| args[i][j])).collect();
            let together = apply(&Many::<8>, function, &lanes).expect("as many arguments as the arity");
            for (args, result) in args.iter().zip(together) {
                let alone = double(function, args);
                assert_eq!(alone.to_bits(), result.to_bits(), "{} {args:?}", function.facts().name);
            }
        }
    }
}

#[test]
fn a_wrong_number_of_arguments_has_no_value() {
    assert_eq!(apply(&One, Function::Exp, &[]), None);
    assert_eq!(apply(&One, Function::Exp, &[1.0, 2.0]), None);
    assert_eq!(apply(&One, Function::Pow, &[1.0]), None);
    assert_eq!(apply_single(&One, Function::Pow, &[1.0]), None);
}

/// The table of the front page has the counts and the stated errors.
#[test]
fn the_front_page_has_the_costs() {
    let page = include_str!("../src/lib.rs");
    for function in Function::ALL.iter().copied() {
        let (facts, counts) = (function.facts(), count::operations(function));
        let row = page.lines().find(|l| l.starts_with(&format!("//! | `{}` |", facts.name)));
        let cells: Vec<_> = row.unwrap_or("").split('|').map(str::trim).collect();
        let costs = [counts.arithmetic, counts.divisions, counts.bits, counts.tables, counts.rare];
        let costs = costs.map(|n| n.to_string()).join(" | ");
        let expected = format!("//! | `{}` | {} | .. | {costs} |", facts.name, facts.max_ulp);
        assert_eq!(cells.get(2).copied(), Some(facts.max_ulp.to_string().as_str()), "{expected}");
        assert_eq!(cells.get(4..9).map(|c| c.join(" | ")), Some(costs), "{expected}");
    }
}

/// Function, arguments, and the value as a sum of two floats.
const KNOWN: &[(Function, &[f64], &str)] = &[
    (Function::Exp, &[1.5], "4.4816890703380645 + 3.0481759556536343e-16"),
    (Function::Expm1, &[1e-09], "1.0000000005000001e-09 + -7.443897403844588e-26"),
    (Function::Exp2, &[0.3], "1.2311444133449163 + -3.572339831433251e-17"),
    (Function::Log, &[3.7], "1.308332819650179 + -8.256475934401426e-17"),
    (Function::Log, &[1.0000000000000002], "2.2204460492503128e-16 + 3.649214750845877e-48"),
    (Function::Log2, &[0.3], "-1.7369655941662063 + 1.0829022389854901e-16"),
    (Function::Log10, &[1e+200], "200.0 + -1.3144738007546854e-17"),
    (Function::Log1p, &[1e-05], "9.999950000333332e-06 + -2.3868637284493416e-22"),
    (Function::Sin, &[1e+22], "-0.8522008497671888 + -6.7806825896773284e-18"),
    (Function::Sin, &[1.7976931348623157e+308], "0.004961954789184062 + -2.5049377676494104e-19"),
    (Function::Cos, &[5.319372648326541e+255], "-4.687165924254628e-19 + 4.3720557429382733e-36"),
    (Function::Tan, &[1.5], "14.101419947171719 + 6.270315165067482e-16"),
    (Function::Asin, &[-0.7], "-0.775397496610753 + -3.395027444633425e-17"),
    (Function::Acos, &[-0.7], "2.3461938234056494 + 2.0620491686621757e-16"),
    (Function::Atan, &[3.3], "1.2765617616837088 + -1.3021564387368126e-18"),
    (Function::Atan2, &[-1.5, -2.5], "-2.601173153319209 + -1.92805387078992e-17"),
    (Function::Sinh, &[0.01], "0.010000166667500003 + -5.644562789430375e-19"),
    (Function::Cosh, &[3.5], "16.572824671057315 + 8.545688543850304e-16"),
    (Function::Tanh, &[0.3], "0.2913126124515909 + -6.4602656586469586e-18"),
    (Function::Asinh, &[-0.2], "-0.19869011034924142 + -6.850334806769482e-19"),
    (Function::Acosh, &[1.01], "0.14130376948564863 + 1.1841489656402898e-17"),
    (Function::Atanh, &[0.6], "0.6931471805599453 + -1.1504001381073145e-17"),
    (Function::Pow, &[1.1, 333.3], "62543468616071.97 + -0.00011140853471292375"),
    (Function::Pow, &[-3.0, -7.0], "-0.0004572473708276177 + -1.5343418947611505e-20"),
    (Function::Cbrt, &[-7.1], "-1.9219973427746713 + -5.429708751603557e-17"),
    (Function::Hypot, &[1.25, 7.5], "7.603453162872775 + -2.285481795006579e-16"),
    (Function::Erf, &[0.4], "0.42839235504666845 + 2.711758748308591e-17"),
    (Function::Erf, &[2.6], "0.9997639655834707 + -4.196501214677855e-17"),
    (Function::Erfc, &[5.9], "7.190409783550478e-17 + -5.8011527471643384e-33"),
    (Function::Erfc, &[7.0], "4.183825607779414e-23 + 1.889076310043994e-39"),
    (Function::Lgamma, &[1.1], "-0.049872441259839764 + 2.4973350906591948e-18"),
    (Function::Lgamma, &[123.4], "469.3360974421906 + 7.772450604511947e-15"),
    (Function::Lgamma, &[-2.3], "0.36956666345500805 + -1.1251747704374314e-17"),
    (Function::Sigmoid, &[-2.2], "0.09975048911968513 + -3.499988036491274e-18"),
];
