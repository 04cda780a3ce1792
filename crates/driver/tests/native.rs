//! Every program is native: those whose derivatives add up values with alternatives, or give parts of what is added to, too.

use pullback_core::Value;
use pullback_driver::{Backend, Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;

/// A program of one argument `x`, a number or an array, and what it gives with its gradient; `second`: the gradient of its entry `slope`.
struct Row {
    text: &'static str,
    x: Value,
    value: f64,
    gradient: Vec<f64>,
    slope: f64,
    second: Vec<f64>,
}

/// Functions as the state of a loop, chosen in it: 2 x + 1. `slope` is 2 x^2.
const CHOSEN: &str = "
    def f (x: f64) : f64 =
      let g = loop g = (\\(y: f64) -> y + x) for i < 3i32 do if i % 2 == 0 then (\\(y: f64) -> y * x + 1) else g
      in g 2
    entry value (x: f64) : f64 = f x
    entry slope (x: f64) : f64 = x * x * vjp f x 1";

/// A function that holds the one before: 2 x^3 + x.
const CHAINED: &str = "
    def f (x: f64) : f64 = let g = loop g = (\\(y: f64) -> y + x) for _i < 3i32 do (\\(y: f64) -> g (y * x)) in g 2
    entry value (x: f64) : f64 = f x
    entry slope (x: f64) : f64 = vjp f x 1";

/// Elements of an array of cases, by number: x1^2 + 2 (2 x2^2) + 0.
const CASES: &str = "
    type shape = #circle f64 | #rectangle f64 f64 | #nothing
    def f (x: [3]f64) : f64 =
      let shapes = map (\\a -> if a > 1 then #circle a else if a > 0 then #rectangle a (2 * a) else #nothing : shape) x
      let area (s: shape) : f64 = match s case #circle r -> r * r case #rectangle p q -> p * q case #nothing -> 0
      in f64.sum (map (\\i -> area shapes[i]) [0, 1, 1, 2])
    entry value (x: [3]f64) : f64 = f x
    entry slope (x: [3]f64) : f64 = f64.sum (vjp f x 1)";

/// Arrays in cases, one of them taken twice: with s = x1 + x2, 3 (s x1 + s x2) = 3 s^2.
const ARRAYS: &str = "
    type some = #none | #some ([2]f64)
    def f (x: [2]f64) : f64 =
      let all = map (\\i -> if i == 0 then #none else #some (map (* (x[0] + x[1])) x) : some) (iota 3)
      in f64.sum (map (\\i -> match all[i] case #none -> 0 case #some row -> f64.sum row) [1, 0, 1, 2])
    entry value (x: [2]f64) : f64 = f x
    entry slope (x: [2]f64) : f64 = f64.sum (vjp f x 1)";

/// A list that is read twice: 21 x^2 (1 + x).
const LIST: &str = "
    type list = #nil | #cons f64 list
    def sum (l: list) : f64 = match l case #nil -> 0 case #cons x r -> x * x + sum r
    def make (x: f64) (n: i64) : list = if n == 0 then #nil else #cons x (make (2 * x) (n - 1))
    def f (x: f64) : f64 = let l = make x 3 in sum l + x * sum l
    entry value (x: f64) : f64 = f x
    entry slope (x: f64) : f64 = vjp f x 1";

/// A branch that gives a rotated array: x1 x3 + x2 x1 + x3 x2 where x1 > 0, else the squares.
const ROTATED: &str = "
    def f (x: [3]f64) : f64 = f64.sum (map2 (*) x (if x[0] > 0 then rotate (-1) x else x))
    entry value (x: [3]f64) : f64 = f x
    entry slope (x: [3]f64) : f64 = let g = vjp f x 1 in g[0] * g[0]";

fn rows() -> Vec<Row> {
    let one = |x: f64| Value::f64(x);
    let row = |text, x: Value, value, gradient: &[f64], slope, second: &[f64]| Row {
        text,
        x,
        value,
        gradient: gradient.to_vec(),
        slope,
        second: second.to_vec(),
    };
    vec![
        row(CHOSEN, one(1.5), 4.0, &[2.0], 4.5, &[6.0]),
        row(CHAINED, one(1.5), 8.25, &[14.5], 14.5, &[18.0]),
        // The gradient is (2 x1, 8 x2, 0).
        row(CASES, Value::f64s(&[1.5, 0.5, -1.0]), 3.25, &[3.0, 4.0, 0.0], 7.0, &[2.0, 8.0, 0.0]),
        row(ARRAYS, Value::f64s(&[0.5, 1.0]), 6.75, &[9.0, 9.0], 18.0, &[12.0, 12.0]),
        row(LIST, one(1.5), 118.125, &[204.75], 204.75, &[231.0]),
        // The square of x2 + x3; of 2 x1.
        row(ROTATED, Value::f64s(&[1.0, 2.0, 3.0]), 11.0, &[5.0, 4.0, 3.0], 25.0, &[0.0, 10.0, 10.0]),
        row(ROTATED, Value::f64s(&[-1.0, 2.0, 3.0]), 14.0, &[-2.0, 4.0, 6.0], 4.0, &[-8.0, 0.0, 0.0]),
    ]
}

#[test]
fn derivatives_that_add_up_cases_are_native() {
    for Row { text, x, value, gradient, slope, second } in rows() {
        for backend in [Backend::Interp, Backend::Vm, Backend::Llvm] {
            let settings = Settings { backend, ..Settings::default() };
            let session =
                Session::compile("row.fut", text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
            for (name, value, gradient) in [("value", value, &gradient), ("slope", slope, &second)] {
                let entry = session.entry(Some(name)).expect("an entry point");
                let wanted = session.select(&entry, &Wrt::default()).expect("selected");
                let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {});
                let ready = ready.unwrap_or_else(|e| panic!("{backend:?} {name}: {}\n{text}", e.message));
                let out = match ready.run(&[x.clone(), Value::f64(1.0)], &Options::default()) {
                    Err(e) if e.message.starts_with("no native code") => {
                        eprintln!("skipped: {e}");
                        continue;
                    }
                    out => out.unwrap_or_else(|e| panic!("{backend:?} {name}: {e}\n{text}")).results,
                };
                let found: Vec<f64> = out.iter().flat_map(Value::floats).collect();
                let expected: Vec<f64> = std::iter::once(value).chain(gradient.iter().copied()).collect();
                let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
                assert!(
                    found.len() == expected.len() && found.iter().zip(&expected).all(close),
                    "{backend:?} {name}: {found:?} instead of {expected:?}\n{text}"
                );
            }
        }
    }
}
