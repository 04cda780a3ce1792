//! Checks a reverse derivative against forward mode and against central differences.
//!
//! Along each of a few fixed pseudo-random directions `u` and cotangents `w` it compares `⟨Jᵀ w, u⟩` (reverse mode) with
//! `⟨w, J u⟩` (forward mode) and with `⟨w, f(x + h u) - f(x - h u)⟩ / 2h`. For a scalar result it also compares each of the
//! largest gradient entries with its own difference quotient. Programs that compute with f32 anywhere in the arguments
//! or results are judged by the digits that f32 has.

use crate::derive::Kind;
use crate::session::{EntryPoint, Session};
use pullback_base::{Code, Diagnostic};
use pullback_core::{Array, Buffer, Value};
use pullback_interp::core::Options;
use pullback_prim::ScalarValue;

/// One comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What was compared: `direction 1` or `params.alpha[2]`.
    pub what: String,
    /// By reverse mode.
    pub reverse: f64,
    /// By forward mode (absent for single entries).
    pub forward: Option<f64>,
    /// By central differences.
    pub difference: f64,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// All comparisons.
    pub comparisons: Vec<Comparison>,
    /// Largest relative difference between reverse and forward mode.
    pub worst_forward: f64,
    /// Largest relative difference between reverse mode and differences.
    pub worst_difference: f64,
    /// The limits that they are judged by.
    pub limits: Limits,
    /// Whether both are within their limits.
    pub passed: bool,
}

/// How a check steps and what differences it allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Between reverse and forward mode, which differ by rounding only.
    pub forward: f64,
    /// Between reverse mode and central differences, which lose about two thirds of the digits.
    pub difference: f64,
    /// The step of the central differences: about the cube root of the precision.
    pub step: f64,
}

impl Limits {
    /// For arguments and results of f64.
    pub const DOUBLE: Limits = Limits { forward: 1e-9, difference: 1e-4, step: 1e-5 };
    /// If an f32 is among them: about 7 digits, of which the differences keep 4 or 5. The step is a power of two.
    pub const SINGLE: Limits = Limits { forward: 1e-4, difference: 1e-2, step: 0.00390625 };

    fn of<'a>(values: impl IntoIterator<Item = &'a Value>) -> Limits {
        if values.into_iter().any(has_single) { Limits::SINGLE } else { Limits::DOUBLE }
    }
}

const DIRECTIONS: usize = 3;
const ENTRIES: usize = 5;

/// Runs the check at these arguments.
pub fn gradcheck(
    session: &Session,
    entry: &EntryPoint,
    selected: &[bool],
    args: &[Value],
    options: &Options<'_>,
) -> Result<Report, Diagnostic> {
    let primal = session.primal(entry)?;
    let vjp = session.derivative(entry, Kind::Vjp, selected, &mut |_, _| {})?;
    let jvp = session.derivative(entry, Kind::Jvp, selected, &mut |_, _| {})?;
    let stopped = |e: pullback_base::RuntimeError| e.to_diagnostic();
    let value = primal.run(args, options).map_err(stopped)?.results;
    let no_sums = |v: &Value| seed_like(v, &mut |_| 0.0).is_some();
    let inputs: Vec<usize> = (0..args.len()).filter(|&i| selected[i]).collect();
    if !inputs.iter().all(|&i| no_sums(&args[i])) || !value.iter().all(no_sums) {
        return Err(Diagnostic::global(Code::Unsupported, "gradcheck of inputs or results of sum type")
            .hint("freeze them with --wrt, or wrap the function in an entry point on numbers and arrays"));
    }
    if !value.iter().any(has_floats) {
        return Err(Diagnostic::global(Code::Unsupported, "gradcheck of results that hold no floats")
            .hint("choose an entry point that returns f64 or f32"));
    }
    if inputs.iter().any(|&i| args[i].floats().iter().any(|x| !x.is_finite())) {
        return Err(Diagnostic::global(Code::Input, "gradcheck at a NaN or an infinity")
            .hint("derivatives are compared with differences, which need finite arguments"));
    }
    let mut random = SplitMix(0x9e37_79b9);
    let limits = Limits::of(args.iter().chain(&value));
    let step = limits.step;
    let mut report =
        Report { comparisons: Vec::new(), worst_forward: 0.0, worst_difference: 0.0, limits, passed: true };
    let mut gradient: Vec<Value> = Vec::new();
    let scalar = value.len() == 1 && matches!(value[0], Value::Scalar(_));
    for k in 0..DIRECTIONS {
        let w: Vec<Value> = active(&value, &mut |_| if scalar { 1.0 } else { random.symmetric() });
        let chosen: Vec<Value> = inputs.iter().map(|&i| args[i].clone()).collect();
        let u: Vec<Value> = active(&chosen, &mut |_| random.symmetric());
        let run = |ready: &crate::session::Ready, extra: &[Value]| -> Result<Vec<Value>, Diagnostic> {
            let all: Vec<Value> = args.iter().chain(extra).cloned().collect();
            Ok(ready.run(&all, options).map_err(stopped)?.results.split_off(value.len()))
        };
        let x_bars = run(&vjp, &w)?;
        let y_dots = run(&jvp, &u)?;
        let moved = |sign: f64| -> Result<Vec<Value>, Diagnostic> {
            let mut at = args.to_vec();
            for (&i, d) in inputs.iter().zip(&u) {
                at[i] = shifted(&args[i], d, sign);
            }
            Ok(primal.run(&at, options).map_err(stopped)?.results)
        };
        let (plus, minus) = (moved(step)?, moved(-step)?);
        let comparison = Comparison {
            what: format!("direction {}", k + 1),
            reverse: dot(&x_bars, &u),
            forward: Some(dot(&w, &y_dots)),
            difference: change(&w, &floats_only(&plus), &floats_only(&minus)) / (2.0 * step),
        };
        report.comparisons.push(comparison);
        gradient = x_bars;
    }
    if scalar {
        entries(&primal, entry, args, &inputs, &gradient, options, &mut report)?;
    }
    // Differences are judged against the largest derivative seen: small ones drown in the rounding of large values.
    let scale = report.comparisons.iter().map(|c| c.reverse.abs()).fold(1.0, f64::max);
    for c in &report.comparisons {
        if let Some(forward) = c.forward {
            report.worst_forward = worst(report.worst_forward, relative(c.reverse, forward, 1.0));
        }
        report.worst_difference = worst(report.worst_difference, relative(c.reverse, c.difference, scale));
    }
    report.passed = report.worst_forward <= limits.forward && report.worst_difference <= limits.difference;
    Ok(report)
}

/// The larger one; NaN if either is.
fn worst(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

fn relative(a: f64, b: f64, scale: f64) -> f64 {
    (a - b).abs() / a.abs().max(b.abs()).max(scale)
}

fn entries(
    primal: &crate::session::Ready,
    entry: &EntryPoint,
    args: &[Value],
    inputs: &[usize],
    gradient: &[Value],
    options: &Options<'_>,
    report: &mut Report,
) -> Result<(), Diagnostic> {
    let mut largest: Vec<(usize, usize, f64)> = Vec::new();
    for (&i, g) in inputs.iter().zip(gradient) {
        largest.extend(g.floats().into_iter().enumerate().map(|(j, x)| (i, j, x)));
    }
    largest.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));
    largest.truncate(ENTRIES);
    for (i, j, reverse) in largest {
        let moved = |sign: f64| -> Result<f64, Diagnostic> {
            let mut at = args.to_vec();
            let mut position = 0;
            let hot = seed_like(&args[i], &mut |_| {
                position += 1;
                if position == j + 1 { 1.0 } else { 0.0 }
            });
            if let Some(hot) = hot {
                at[i] = shifted(&args[i], &hot, sign);
            }
            let results = primal.run(&at, options).map_err(|e| e.to_diagnostic())?.results;
            Ok(results[0].floats().first().copied().unwrap_or(f64::NAN))
        };
        let step = report.limits.step;
        let difference = (moved(step)? - moved(-step)?) / (2.0 * step);
        let what = format!("{}{}", entry.parameters[i].path, index_text(&args[i], j));
        report.comparisons.push(Comparison { what, reverse, forward: None, difference });
    }
    Ok(())
}

/// `[2][3]` for the flat position `j` of an array, nothing for a scalar.
pub fn index_text(value: &Value, j: usize) -> String {
    let Value::Array(a) = value else { return String::new() };
    let mut rest = j;
    let mut ix: Vec<usize> = Vec::new();
    for &n in a.shape.iter().rev() {
        ix.push(rest % n.max(1));
        rest /= n.max(1);
    }
    ix.iter().rev().map(|i| format!("[{i}]")).collect()
}

/// A value of the same shape with the floats that `f` gives; discrete values give nothing. `None` for sums.
fn seed_like(value: &Value, f: &mut dyn FnMut(f64) -> f64) -> Option<Value> {
    Some(match value {
        Value::Scalar(s) if s.scalar().is_float() => Value::Scalar(s.scalar().from_f64(f(s.as_f64()))),
        Value::Scalar(_) => value.clone(),
        Value::Array(a) => match &*a.data {
            Buffer::F64(_) | Buffer::F32(_) => {
                let s = a.data.scalar()?;
                let mut buffer = Buffer::with_capacity(Some(s), a.count());
                for x in a.elements() {
                    if let Value::Scalar(x) = x {
                        buffer.push(Value::Scalar(s.from_f64(f(x.as_f64()))));
                    }
                }
                Value::Array(Array::new(a.shape.clone(), buffer))
            }
            Buffer::Boxed(_) => return None,
            _ => value.clone(),
        },
        Value::Tuple(items) => Value::Tuple(items.iter().map(|v| seed_like(v, f)).collect::<Option<_>>()?),
        Value::Sum(..) | Value::Acc(_) => return None,
    })
}

/// Seeds for those values that hold floats, in order.
fn active(values: &[Value], f: &mut dyn FnMut(f64) -> f64) -> Vec<Value> {
    values.iter().filter(|v| has_floats(v)).filter_map(|v| seed_like(v, f)).collect()
}

fn has_floats(value: &Value) -> bool {
    match value {
        Value::Scalar(s) => s.scalar().is_float(),
        Value::Array(a) => matches!(&*a.data, Buffer::F64(_) | Buffer::F32(_)),
        Value::Tuple(items) => items.iter().any(has_floats),
        Value::Sum(..) | Value::Acc(_) => false,
    }
}

fn has_single(value: &Value) -> bool {
    match value {
        Value::Scalar(s) => matches!(s, ScalarValue::F32(_)),
        Value::Array(a) => match &*a.data {
            Buffer::F32(_) => true,
            Buffer::Boxed(items) => items.iter().any(has_single),
            _ => false,
        },
        Value::Tuple(items) => items.iter().any(has_single),
        Value::Sum(_, items) => items.iter().any(has_single),
        Value::Acc(_) => false,
    }
}

fn floats_only(values: &[Value]) -> Vec<Value> {
    values.iter().filter(|v| has_floats(v)).cloned().collect()
}

fn shifted(value: &Value, direction: &Value, by: f64) -> Value {
    let mut steps = direction.floats().into_iter();
    let moved = seed_like(value, &mut |x| x + by * steps.next().unwrap_or(0.0));
    moved.unwrap_or_else(|| value.clone())
}

fn dot(a: &[Value], b: &[Value]) -> f64 {
    let flat = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
    flat(a).iter().zip(flat(b)).map(|(x, y)| x * y).sum()
}

/// `⟨w, plus - minus⟩`; what is the same on both sides has not changed, even if it is infinite.
fn change(w: &[Value], plus: &[Value], minus: &[Value]) -> f64 {
    let flat = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
    let sides = flat(plus).into_iter().zip(flat(minus));
    flat(w).iter().zip(sides).filter(|(_, (p, m))| p != m).map(|(w, (p, m))| w * (p - m)).sum()
}

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct SplitMix(u64);

impl SplitMix {
    fn symmetric(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ScalarValue::F64((z >> 11) as f64 / (1u64 << 52) as f64 - 1.0).as_f64()
    }
}

/// A value of the same shape with every float `x`; `None` for sums.
pub fn filled(value: &Value, x: f64) -> Option<Value> {
    seed_like(value, &mut |_| x)
}
