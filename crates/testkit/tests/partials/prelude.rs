//! Functions of the prelude for statistics and machine learning: values, gradients and Hessians in all modes, by all algorithms and
//! executors, at arguments of any size; what they give where there is no derivative.
//!
//! The numbers of the tables were computed with 900 digits by mpmath 1.4.1 from the definitions beside them, and rounded once.

#![allow(
    clippy::approx_constant,
    reason = "logarithms of 2 are values of the table, not constants of the program"
)]

use super::compare::{by_algorithm, jacobian};
use pullback_ad::on_lambda;
use pullback_core::Value;
use pullback_driver::{Backend, Session, Settings, Sweep, Wrt};
use pullback_interp::core::Options;
use pullback_testkit::nested::{Function, second};
use std::collections::BTreeSet;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Function, arguments, value, gradient, Hessian row by row.
type Row = (&'static str, &'static [f64], f64, &'static [f64], &'static [f64]);

/// `1 / (1 + exp (-x))`, `log (1 + exp x)`, `log (1 - exp x)`.
const UNARY: &[Row] = &[
    ("sigmoid", &[0.0], 0.5, &[0.25], &[0.0]),
    ("sigmoid", &[1.0], 0.7310585786300049, &[0.19661193324148185], &[-0.09085774767294841]),
    ("sigmoid", &[-1.0], 0.2689414213699951, &[0.19661193324148185], &[0.09085774767294841]),
    ("sigmoid", &[2.5], 0.9241418199787564, &[0.07010371654510816], &[-0.05946783584543407]),
    ("sigmoid", &[1e-10], 0.500000000025, &[0.25], &[-1.25e-11]),
    ("sigmoid", &[-20.0], 2.0611536181902037e-09, &[2.061153613941849e-09], &[2.061153605445141e-09]),
    ("sigmoid", &[20.0], 0.9999999979388464, &[2.061153613941849e-09], &[-2.061153605445141e-09]),
    ("sigmoid", &[40.0], 1.0, &[4.248354255291589e-18], &[-4.248354255291589e-18]),
    ("sigmoid", &[-40.0], 4.248354255291589e-18, &[4.248354255291589e-18], &[4.248354255291589e-18]),
    ("sigmoid", &[700.0], 1.0, &[9.85967654375977e-305], &[-9.85967654375977e-305]),
    ("sigmoid", &[-700.0], 9.85967654375977e-305, &[9.85967654375977e-305], &[9.85967654375977e-305]),
    ("sigmoid", &[740.0], 1.0, &[4.2e-322], &[-4.2e-322]),
    ("sigmoid", &[-740.0], 4.2e-322, &[4.2e-322], &[4.2e-322]),
    ("softplus", &[0.0], 0.6931471805599453, &[0.5], &[0.25]),
    ("softplus", &[1.0], 1.3132616875182228, &[0.7310585786300049], &[0.19661193324148185]),
    ("softplus", &[-1.0], 0.3132616875182228, &[0.2689414213699951], &[0.19661193324148185]),
    ("softplus", &[2.5], 2.5788897342925496, &[0.9241418199787564], &[0.07010371654510816]),
    ("softplus", &[1e-10], 0.6931471806099453, &[0.500000000025], &[0.25]),
    ("softplus", &[-20.0], 2.061153620314381e-09, &[2.0611536181902037e-09], &[2.061153613941849e-09]),
    ("softplus", &[20.0], 20.000000002061153, &[0.9999999979388464], &[2.061153613941849e-09]),
    ("softplus", &[40.0], 40.0, &[1.0], &[4.248354255291589e-18]),
    ("softplus", &[-40.0], 4.248354255291589e-18, &[4.248354255291589e-18], &[4.248354255291589e-18]),
    ("softplus", &[700.0], 700.0, &[1.0], &[9.85967654375977e-305]),
    ("softplus", &[-700.0], 9.85967654375977e-305, &[9.85967654375977e-305], &[9.85967654375977e-305]),
    ("softplus", &[-740.0], 4.2e-322, &[4.2e-322], &[4.2e-322]),
    ("softplus", &[740.0], 740.0, &[1.0], &[4.2e-322]),
    ("log1mexp", &[-1e-300], -690.7755278982137, &[-9.999999999999999e299], &[-INF]),
    ("log1mexp", &[-1e-20], -46.051701859880914, &[-1e20], &[-1.0000000000000002e40]),
    ("log1mexp", &[-1e-10], -23.025850929990458, &[-9999999999.5], &[-1e20]),
    ("log1mexp", &[-0.1], -2.3521684610440907, &[-9.50833194477505], &[-99.91670831680472]),
    ("log1mexp", &[-0.5], -0.9327521295671886, &[-1.5414940825367982], &[-3.917698089032764]),
    ("log1mexp", &[-0.6931471805599453], -0.6931471805599453, &[-1.0], &[-2.0]),
    ("log1mexp", &[-0.6931471805599454], -0.6931471805599452, &[-0.9999999999999998], &[-1.9999999999999996]),
    ("log1mexp", &[-0.7], -0.6863410028083852, &[-0.9864338636344634], &[-1.9594856309592785]),
    ("log1mexp", &[-1.0], -0.4586751453870819, &[-0.5819767068693265], &[-0.9206735942077923]),
    ("log1mexp", &[-10.0], -4.540096037048921e-05, &[-4.5401991009687765e-05], &[-4.540405235047541e-05]),
    ("log1mexp", &[-40.0], -4.248354255291589e-18, &[-4.248354255291589e-18], &[-4.248354255291589e-18]),
    ("log1mexp", &[-700.0], -9.85967654375977e-305, &[-9.85967654375977e-305], &[-9.85967654375977e-305]),
    ("log1mexp", &[-740.0], -4.2e-322, &[-4.2e-322], &[-4.2e-322]),
];

/// `log (exp x + exp y)`, `x log y`, `x log (1 + y)`.
const BINARY: &[Row] = &[
    ("logaddexp", &[0.0, 0.0], 0.6931471805599453, &[0.5, 0.5], &[0.25, -0.25, -0.25, 0.25]),
    (
        "logaddexp",
        &[1.0, 2.0],
        2.313261687518223,
        &[0.2689414213699951, 0.7310585786300049],
        &[0.19661193324148185, -0.19661193324148185, -0.19661193324148185, 0.19661193324148185],
    ),
    (
        "logaddexp",
        &[2.0, 1.0],
        2.313261687518223,
        &[0.7310585786300049, 0.2689414213699951],
        &[0.19661193324148185, -0.19661193324148185, -0.19661193324148185, 0.19661193324148185],
    ),
    (
        "logaddexp",
        &[-3.0, 5.0],
        5.000335406372896,
        &[0.0003353501304664781, 0.9996646498695335],
        &[0.00033523767075647424, -0.00033523767075647424, -0.00033523767075647424, 0.00033523767075647424],
    ),
    (
        "logaddexp",
        &[1000.0, 1001.0],
        1001.3132616875182,
        &[0.2689414213699951, 0.7310585786300049],
        &[0.19661193324148185, -0.19661193324148185, -0.19661193324148185, 0.19661193324148185],
    ),
    (
        "logaddexp",
        &[-1000.0, -1000.5],
        -999.5259230158199,
        &[0.6224593312018546, 0.37754066879814546],
        &[0.2350037122015945, -0.2350037122015945, -0.2350037122015945, 0.2350037122015945],
    ),
    (
        "logaddexp",
        &[700.0, -30.0],
        700.0,
        &[1.0, 9.226315e-318],
        &[9.226315e-318, -9.226315e-318, -9.226315e-318, 9.226315e-318],
    ),
    ("logaddexp", &[0.5, 0.5], 1.1931471805599454, &[0.5, 0.5], &[0.25, -0.25, -0.25, 0.25]),
    ("logaddexp", &[1e300, 1e300], 1e300, &[0.5, 0.5], &[0.25, -0.25, -0.25, 0.25]),
    (
        "logaddexp",
        &[-2.0, -2.25],
        -1.4240605801211563,
        &[0.5621765008857981, 0.4378234991142019],
        &[0.24613408273759835, -0.24613408273759835, -0.24613408273759835, 0.24613408273759835],
    ),
    ("xlogy", &[0.5, 2.0], 0.34657359027997264, &[0.6931471805599453, 0.25], &[0.0, 0.5, 0.5, -0.125]),
    (
        "xlogy",
        &[2.0, 1e-300],
        -1381.5510557964274,
        &[-690.7755278982137, 1.9999999999999998e300],
        &[0.0, 9.999999999999999e299, 9.999999999999999e299, -INF],
    ),
    ("xlogy", &[0.0, 2.0], 0.0, &[0.6931471805599453, 0.0], &[0.0, 0.5, 0.5, 0.0]),
    ("xlogy", &[0.0, 1e300], 0.0, &[690.7755278982137, 0.0], &[0.0, 1e-300, 1e-300, 0.0]),
    (
        "xlogy",
        &[1e-150, 1e-150],
        -3.453877639491069e-148,
        &[-345.38776394910684, 1.0],
        &[0.0, 1e150, 1e150, -1e150],
    ),
    ("xlogy", &[3.0, 1.0], 0.0, &[0.0, 3.0], &[0.0, 1.0, 1.0, -3.0]),
    ("xlogy", &[-1.5, 0.25], 2.0794415416798357, &[-1.3862943611198906, -6.0], &[0.0, 4.0, 4.0, 24.0]),
    ("xlog1py", &[2.0, 1e-20], 2e-20, &[1e-20, 2.0], &[0.0, 1.0, 1.0, -2.0]),
    (
        "xlog1py",
        &[0.0, 0.5],
        0.0,
        &[0.4054651081081644, 0.0],
        &[0.0, 0.6666666666666666, 0.6666666666666666, 0.0],
    ),
    ("xlog1py", &[3.0, -0.5], -2.0794415416798357, &[-0.6931471805599453, 6.0], &[0.0, 2.0, 2.0, -12.0]),
    ("xlog1py", &[-1.5, 4.0], -2.4141568686511508, &[1.6094379124341003, -0.3], &[0.0, 0.2, 0.2, 0.06]),
    (
        "xlog1py",
        &[0.25, 1e300],
        172.69388197455342,
        &[690.7755278982137, 2.5e-301],
        &[0.0, 1e-300, 1e-300, -0.0],
    ),
];

/// `log (sum exp)`, the length.
const ARRAY: &[Row] = &[
    (
        "logsumexp",
        &[1.0, 2.0, 3.0],
        3.40760596444438,
        &[0.09003057317038046, 0.24472847105479764, 0.6652409557748219],
        &[
            0.08192506906499322,
            -0.022033044520174298,
            -0.059892024544818935,
            -0.022033044520174298,
            0.1848364465099787,
            -0.16280340198980442,
            -0.059892024544818935,
            -0.16280340198980442,
            0.22269542653462335,
        ],
    ),
    (
        "logsumexp",
        &[1000.0, 1001.0, 999.0],
        1001.4076059644444,
        &[0.24472847105479764, 0.6652409557748219, 0.09003057317038046],
        &[
            0.1848364465099787,
            -0.16280340198980442,
            -0.022033044520174298,
            -0.16280340198980442,
            0.22269542653462335,
            -0.059892024544818935,
            -0.022033044520174298,
            -0.059892024544818935,
            0.08192506906499322,
        ],
    ),
    (
        "logsumexp",
        &[-1000.0, -1001.0],
        -999.6867383124818,
        &[0.7310585786300049, 0.2689414213699951],
        &[0.19661193324148185, -0.19661193324148185, -0.19661193324148185, 0.19661193324148185],
    ),
    (
        "logsumexp",
        &[0.0, 0.0, 0.0, 0.0],
        1.3862943611198906,
        &[0.25, 0.25, 0.25, 0.25],
        &[
            0.1875, -0.0625, -0.0625, -0.0625, -0.0625, 0.1875, -0.0625, -0.0625, -0.0625, -0.0625, 0.1875,
            -0.0625, -0.0625, -0.0625, -0.0625, 0.1875,
        ],
    ),
    ("logsumexp", &[5.0], 5.0, &[1.0], &[0.0]),
    (
        "logsumexp",
        &[800.0, -800.0, 1.0],
        800.0,
        &[1.0, 0.0, 0.0],
        &[0.0, -0.0, -0.0, -0.0, 0.0, -0.0, -0.0, -0.0, 0.0],
    ),
    (
        "logsumexp",
        &[-745.0, -746.0],
        -744.6867383124818,
        &[0.7310585786300049, 0.2689414213699951],
        &[0.19661193324148185, -0.19661193324148185, -0.19661193324148185, 0.19661193324148185],
    ),
    ("norm", &[3.0, 4.0], 5.0, &[0.6, 0.8], &[0.128, -0.096, -0.096, 0.072]),
    (
        "norm",
        &[3e200, 4e200],
        4.9999999999999995e200,
        &[0.6, 0.8],
        &[1.28e-201, -9.6e-202, -9.6e-202, 7.2e-202],
    ),
    ("norm", &[3e-200, 4e-200], 5e-200, &[0.6, 0.8], &[1.28e199, -9.6e198, -9.6e198, 7.2e198]),
    ("norm", &[1e308, 1e308], 1.4142135623730951e308, &[0.7071067811865476, 0.7071067811865476], &[]),
    (
        "norm",
        &[1e-300, 2e-300, -2e-300],
        3e-300,
        &[0.3333333333333333, 0.6666666666666666, -0.6666666666666666],
        &[],
    ),
    ("norm", &[-2.0], 2.0, &[-1.0], &[0.0]),
    ("norm", &[1.0, 0.0, 0.0], 1.0, &[1.0, 0.0, 0.0], &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
    ("norm", &[1e150, 1e-150], 1e150, &[1.0, 1e-300], &[0.0, -0.0, -0.0, 1e-150]),
    ("norm", &[3e-310, 4e-310], 5e-310, &[0.6, 0.8], &[]),
];

/// The components of `softmax` and of its logarithm, with the weights 1, -2, 1/2.
const WEIGHTED: &[Row] = &[
    (
        "softmax",
        &[1.0, 2.0, 3.0],
        -0.0668058910518039,
        &[0.09604514583293236, -0.47310763853503396, 0.37706249270210157],
        &[
            0.078751146773789,
            0.019089170176665678,
            -0.09784031695045467,
            0.019089170176665678,
            -0.2415418204889845,
            0.2224526503123188,
            -0.09784031695045467,
            0.2224526503123188,
            -0.12461233336186414,
        ],
    ),
    (
        "softmax",
        &[1000.0, 1001.0, 999.5],
        -0.9557173492183316,
        &[0.4522085881335203, -0.6563647698388186, 0.20415618170529834],
        &[
            0.24308572356063693,
            -0.13246022099788887,
            -0.11062550256274807,
            -0.13246022099788887,
            0.16872738459483225,
            -0.036267163596943375,
            -0.11062550256274807,
            -0.036267163596943375,
            0.14689266615969146,
        ],
    ),
    (
        "softmax",
        &[-1000.0, -1001.0, -1000.25],
        0.30448946322378445,
        &[0.3239935454389944, -0.3949234200521227, 0.07092987461312833],
        &[
            0.02213811137846054,
            0.12844617120844096,
            -0.15058428258690149,
            0.12844617120844096,
            -0.25956631801748437,
            0.13112014680904344,
            -0.15058428258690149,
            0.13112014680904344,
            0.019464135777858053,
        ],
    ),
    (
        "softmax",
        &[0.5, 0.5, 0.5],
        -0.16666666666666666,
        &[0.3888888888888889, -0.6111111111111112, 0.2222222222222222],
        &[
            0.12962962962962962,
            0.07407407407407407,
            -0.2037037037037037,
            0.07407407407407407,
            -0.2037037037037037,
            0.12962962962962962,
            -0.2037037037037037,
            0.12962962962962962,
            0.07407407407407407,
        ],
    ),
    (
        "log_softmax",
        &[1.0, 2.0, 3.0],
        0.20380298222219015,
        &[1.0450152865851903, -1.8776357644726012, 0.8326204778874109],
        &[
            0.04096253453249661,
            -0.011016522260087149,
            -0.029946012272409468,
            -0.011016522260087149,
            0.09241822325498936,
            -0.08140170099490221,
            -0.029946012272409468,
            -0.08140170099490221,
            0.11134771326731167,
        ],
    ),
    (
        "log_softmax",
        &[1000.0, 1001.0, 999.5],
        -1.5178156079460277,
        &[1.1156119488110745, -1.6857341403941188, 0.5701221915830442],
        &[
            0.0888797033952855,
            -0.07266577694764695,
            -0.016213926447638544,
            -0.07266577694764695,
            0.11673979857823433,
            -0.04407402163058738,
            -0.016213926447638544,
            -0.04407402163058738,
            0.06028794807822592,
        ],
    ),
    (
        "log_softmax",
        &[-1000.0, -1001.0, -1000.25],
        2.2569612835346433,
        &[1.232917783633263, -1.9143143359181043, 0.6813965522848413],
        &[
            0.12441639576799997,
            -0.03991542993419888,
            -0.08450096583380108,
            -0.03991542993419888,
            0.07100159802358476,
            -0.031086168089385885,
            -0.08450096583380108,
            -0.031086168089385885,
            0.11558713392318697,
        ],
    ),
    (
        "log_softmax",
        &[0.5, 0.5, 0.5],
        0.5493061443340549,
        &[1.1666666666666667, -1.8333333333333333, 0.6666666666666666],
        &[
            0.1111111111111111,
            -0.05555555555555555,
            -0.05555555555555555,
            -0.05555555555555555,
            0.1111111111111111,
            -0.05555555555555555,
            -0.05555555555555555,
            -0.05555555555555555,
            0.1111111111111111,
        ],
    ),
];

/// What is given where there is no derivative, or one that is infinite (`docs/book/kinks.md`).
const CONVENTIONS: &[Row] = &[
    ("sigmoid", &[INF], 1.0, &[0.0], &[0.0]),
    ("sigmoid", &[-INF], 0.0, &[0.0], &[0.0]),
    ("softplus", &[INF], INF, &[1.0], &[0.0]),
    ("softplus", &[-INF], 0.0, &[0.0], &[0.0]),
    ("log1mexp", &[0.0], -INF, &[-INF], &[]),
    ("log1mexp", &[-INF], 0.0, &[0.0], &[0.0]),
    ("log1mexp", &[1.0], NAN, &[], &[]),
    ("logaddexp", &[-INF, 2.0], 2.0, &[0.0, 1.0], &[0.0; 4]),
    ("logaddexp", &[2.0, -INF], 2.0, &[1.0, 0.0], &[0.0; 4]),
    ("logaddexp", &[-INF, -INF], -INF, &[0.0, 0.0], &[0.0; 4]),
    ("logaddexp", &[INF, 2.0], INF, &[1.0, 0.0], &[0.0; 4]),
    ("logaddexp", &[INF, INF], INF, &[0.5, 0.5], &[0.0; 4]),
    ("logaddexp", &[NAN, 1.0], NAN, &[], &[]),
    ("logaddexp", &[NAN, INF], NAN, &[], &[]),
    ("xlogy", &[0.0, 0.0], 0.0, &[-INF, 0.0], &[]),
    ("xlogy", &[0.0, -1.0], 0.0, &[NAN, 0.0], &[]),
    ("xlogy", &[2.0, 0.0], -INF, &[-INF, INF], &[]),
    ("xlog1py", &[0.0, -1.0], 0.0, &[-INF, 0.0], &[]),
    ("logsumexp", &[], -INF, &[], &[]),
    ("logsumexp", &[-INF, -INF], -INF, &[0.0, 0.0], &[0.0; 4]),
    ("logsumexp", &[-INF, 3.0], 3.0, &[0.0, 1.0], &[0.0; 4]),
    ("logsumexp", &[1.0, INF, INF], INF, &[0.0, 1.0, 0.0], &[0.0; 9]),
    ("logsumexp", &[NAN, 1.0], NAN, &[], &[]),
    ("norm", &[], 0.0, &[], &[]),
    ("norm", &[0.0, -0.0], 0.0, &[0.0, 0.0], &[0.0; 4]),
    ("norm", &[-INF, 1.0], INF, &[0.0, 0.0], &[0.0; 4]),
    ("norm", &[NAN, 0.0], NAN, &[], &[]),
];

/// How far values, first and second derivatives may be off, relative to the number; of arrays relative to the largest number, and where
/// terms cancel, relative to those.
const ROUNDING: [f64; 3] = [1e-15, 4e-15, 2e-14];

/// A function of `x`, with so many arguments.
fn call(name: &str, args: &[f64]) -> String {
    let call = match name {
        "logsumexp" | "norm" => "f64.NAME x",
        "softmax" | "log_softmax" => "f64.sum (map2 (*) (f64.NAME x) ([1.0, -2.0, 0.5] :> [n]f64))",
        _ if args.len() == 1 => "f64.NAME x[0]",
        _ => "f64.NAME x[0] x[1]",
    };
    call.replace("NAME", name)
}

/// `entry main` for a function of so many arguments.
fn program(name: &str, args: &[f64]) -> (String, Vec<Value>) {
    // A function of the user's with one of the names hides none of those of the module.
    let call = call(name, args);
    let text = format!("def {name} (x: i64): i64 = x + 1\nentry main [n] (x: [n]f64): f64 = {call}");
    (text, vec![Value::f64s(args)])
}

fn near(what: &str, expected: &[f64], found: &[f64], rounding: f64, scale: f64) {
    assert_eq!(expected.len(), found.len(), "{what}: {found:?}");
    for (e, f) in expected.iter().zip(found) {
        let close = (e - f).abs() <= rounding * e.abs().max(scale) + 2.0 * f64::from_bits(1);
        assert!(e == f || (e.is_nan() && f.is_nan()) || close, "{what}: {found:?}, expected {expected:?}");
    }
}

/// The largest number of an array, or of terms that cancel, in values and derivatives of the first and second order.
fn scale(row: &Row, order: usize) -> f64 {
    let (name, args, _, gradient, hessian) = *row;
    let largest = |xs: &[f64]| xs.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    match (name, order) {
        ("logsumexp" | "logaddexp" | "log_softmax" | "softmax", 0) => largest(args).max(1.0),
        ("log_softmax" | "softmax", _) => 1.0,
        // The curve of a sigmoid is a difference of two that is 0 in the middle.
        ("sigmoid", 2) if args[0].abs() < 1.0 => 0.1,
        ("logsumexp" | "norm", 1) => largest(gradient),
        ("logsumexp" | "norm", 2) => largest(hessian),
        _ => 0.0,
    }
}

/// Values and derivatives in all modes and mixes, on the interpreter and the vm, optimised and not.
fn examine(row: &Row) {
    let (name, args, value, gradient, hessian) = *row;
    let (text, values) = program(name, args);
    for (optimise, backend) in [(false, Backend::Interp), (true, Backend::Interp), (true, Backend::Vm)] {
        let what = format!("{name} {args:?}, {backend:?}, optimised {optimise}");
        let settings = Settings { optimise, backend, ..Settings::default() };
        let session =
            Session::compile("prelude.fut", &text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
        let entry = session.entry(None).expect("an entry point");
        let ready = session.primal(&entry).expect("a program");
        let found = ready.run(&values, &Options::default()).expect("a value").results[0].floats();
        near(&what, &[value], &found, ROUNDING[0], scale(row, 0));
        if gradient.len() == args.len() {
            for sweep in [Sweep::Reverse, Sweep::Forward] {
                let found = jacobian(&text, &values, (optimise, backend), sweep).expect("a gradient");
                near(&format!("{what}, {sweep:?}"), gradient, &found, ROUNDING[1], scale(row, 1));
            }
        }
        if !args.is_empty() && hessian.len() == args.len() * args.len() && backend == Backend::Interp {
            let selected = session.select(&entry, &Wrt::default()).expect("what to differentiate");
            for (k, column) in hessian.chunks(args.len()).enumerate() {
                let unit: Vec<f64> = (0..args.len()).map(|i| if i == k { 1.0 } else { 0.0 }).collect();
                let f =
                    Function { session: &session, entry: &entry, selected: &selected, differences: false };
                let mixes = second(f, &values, (&[Value::f64(1.0)], &[Value::f64s(&unit)]));
                for (mix, found) in mixes.expect("second derivatives") {
                    let expected = if found.len() == 1 { &column[k..=k] } else { column };
                    near(&format!("{what}, column {k}, {mix}"), expected, &found, ROUNDING[2], scale(row, 2));
                }
            }
        }
    }
    for algorithm in on_lambda::all() {
        let found = by_algorithm(&text, &values, algorithm.id).expect("a gradient");
        if let Some(found) = found
            && gradient.len() == args.len()
        {
            near(&format!("{name} {args:?}, {}", algorithm.id), gradient, &found, ROUNDING[1], scale(row, 1));
        }
    }
}

#[test]
fn functions_of_one_number_are_accurate() {
    UNARY.iter().for_each(examine);
}

#[test]
fn functions_of_two_numbers_are_accurate() {
    BINARY.iter().for_each(examine);
}

#[test]
fn functions_of_arrays_are_accurate() {
    ARRAY.iter().for_each(examine);
}

#[test]
fn functions_to_arrays_are_accurate() {
    WEIGHTED.iter().for_each(examine);
}

#[test]
fn edges_are_as_the_book_says() {
    CONVENTIONS.iter().for_each(examine);
}

/// The functions of the other module, at rows with numbers of ordinary size. Rounding is 6e-8, of the arguments too.
#[test]
fn single_precision_has_the_same_functions() {
    let is_ordinary = |x: &f64| *x == 0.0 || (1e-3..=40.0).contains(&x.abs());
    let mut names = BTreeSet::new();
    for row in [UNARY, BINARY, ARRAY, WEIGHTED].into_iter().flatten() {
        let (name, args, value, gradient, _) = *row;
        if !args.iter().all(is_ordinary) {
            continue;
        }
        names.insert(name);
        let call = call(name, args).replace("f64", "f32");
        let function = format!(
            "def f [n] (y: [n]f64): f64 = let x = map f32.f64 y in f64.f32 ({call})\nentry main [n] (x: [n]f64)"
        );
        let values = [Value::f64s(args)];
        for backend in [Backend::Interp, Backend::Vm] {
            let what = format!("f32.{name} {args:?}, {backend:?}");
            // The value as a derivative, so that one way serves both.
            let found = jacobian(
                &format!("{function} (w: f64): f64 = w * f x"),
                &[values[0].clone(), Value::f64(1.0)],
                (true, backend),
                Sweep::Reverse,
            );
            let found = found.expect("a value and a gradient");
            let (slopes, found) = found.split_at(args.len());
            near(&what, &[value], found, 2e-6, scale(row, 0));
            near(&what, gradient, slopes, 2e-6, scale(row, 1));
            let slopes =
                jacobian(&format!("{function}: f64 = f x"), &values, (true, backend), Sweep::Forward);
            near(&what, gradient, &slopes.expect("a gradient"), 2e-6, scale(row, 1));
        }
    }
    assert_eq!(names.len(), 10, "{names:?}");
}
