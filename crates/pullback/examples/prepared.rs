//! Machine code called with buffers of the caller, and the time of such a call.
//!
//! `cargo run --release -p pullback --example prepared`
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use pullback::{Argument, Kind, Place, Program, Ready, Value, Wrt};
use std::error::Error;
use std::time::Instant;

const TEXT: &str = "
entry line (x: f64) (y: f64) : f64 = x * y + x
entry loss [n] (xs: [n]f64) (w: f64) : f64 = f64.sum (map (\\x -> (x - w) ** 2) xs)
";

fn main() -> Result<(), Box<dyn Error>> {
    let program = Program::compile(TEXT)?;
    let session = program.session();
    let ready = |d: pullback_base::Diagnostic| -> Box<dyn Error> { d.render(&session.sources).into() };

    let line = session.entry(Some("line")).and_then(|entry| session.primal(&entry)).map_err(ready)?;
    let mut y = 0.0;
    time(
        "line, two numbers to one",
        &line,
        &[],
        &[Argument::scalar(3.0), Argument::scalar(4.0)],
        &mut [Place::scalar(&mut y)],
    )?;
    assert_eq!(y, 15.0);

    let entry = session.entry(Some("loss")).map_err(ready)?;
    let selected = session.select(&entry, &Wrt::parse("")).map_err(ready)?;
    let gradient = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).map_err(ready)?;
    let xs = [1.0, 2.0, 6.0];
    let (mut value, mut xs_bar, mut shape, mut w_bar) = (0.0, [0.0; 3], [0], 0.0);
    time(
        "loss of three numbers with its gradient",
        &gradient,
        &[],
        &[Argument::array(&xs, &[3]), Argument::scalar(2.0), Argument::scalar(1.0)],
        &mut [Place::scalar(&mut value), Place::array(&mut xs_bar, &mut shape), Place::scalar(&mut w_bar)],
    )?;
    assert_eq!((value, xs_bar, w_bar), (17.0, [-2.0, 0.0, 8.0], -6.0));
    dot()?;
    rotate()?;
    neural()
}

/// A program of `benches/programs`.
fn program(name: &str) -> Result<Program, Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/programs");
    Ok(Program::compile(&std::fs::read_to_string(format!("{folder}/{name}.fut"))?)?)
}

/// An entry point of it, which gives the value and the derivatives.
fn derivative(program: &Program, name: &str) -> Result<Ready, Box<dyn Error>> {
    let session = program.session();
    let ready = session.entry(Some(name)).and_then(|entry| session.primal(&entry));
    ready.map_err(|d| d.render(&session.sources).into())
}

fn dot() -> Result<(), Box<dyn Error>> {
    const N: usize = 1000;
    let gradient = derivative(&program("dot")?, "gradient")?;
    let a: Vec<f64> = (0..N).map(|i| (i + 1) as f64).collect();
    let b: Vec<f64> = (0..N).map(|i| (2 * i + 3) as f64).collect();
    let (mut value, mut a_bar, mut b_bar) = (0.0, vec![0.0; N], vec![0.0; N]);
    let (mut a_shape, mut b_shape) = ([0], [0]);
    time(
        "dot product of 1000 numbers with its gradient",
        &gradient,
        &[Value::f64s(&a), Value::f64s(&b)],
        &[Argument::array(&a, &[N]), Argument::array(&b, &[N])],
        &mut [
            Place::scalar(&mut value),
            Place::array(&mut a_bar, &mut a_shape),
            Place::array(&mut b_bar, &mut b_shape),
        ],
    )?;
    assert_eq!((value, a_bar, b_bar), (668_167_500.0, b, a));
    Ok(())
}

fn rotate() -> Result<(), Box<dyn Error>> {
    let jacobian = derivative(&program("rotate")?, "jacobian")?;
    let args = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(Argument::scalar);
    let (mut value, mut columns, mut shapes) = ([0.0; 3], [[0.0; 3]; 7], [[0]; 7]);
    let scalars = value.iter_mut().map(Place::scalar);
    let arrays = columns.iter_mut().zip(&mut shapes).map(|(c, shape)| Place::array(c, shape));
    let mut places: Vec<Place<'_>> = scalars.chain(arrays).collect();
    time("rotation by a quaternion with its Jacobian", &jacobian, &[], &args, &mut places)?;
    assert_eq!((value, columns[0]), ([270.0, 180.0, 342.0], [4.0, 124.0, -22.0]));
    Ok(())
}

/// Layers 50 to 100 to 50; the value is 1.
fn neural() -> Result<(), Box<dyn Error>> {
    const SHAPES: [&[usize]; 5] = [&[100, 50], &[100], &[50, 100], &[50], &[50]];
    let gradient = derivative(&program("neural")?, "gradient")?;
    let cell = |shape: &[usize], k: usize| match shape {
        [_, n] => ((k / n + k % n) as f64).sin(),
        _ => (0.41 * k as f64).sin(),
    };
    let given = SHAPES.map(|s| (0..s.iter().product()).map(|k| cell(s, k)).collect::<Vec<f64>>());
    let args: Vec<Argument<'_>> = given.iter().zip(SHAPES).map(|(xs, s)| Argument::array(xs, s)).collect();
    let like: Vec<Value> = given.iter().zip(SHAPES).map(|(xs, s)| Value::f64_array(s, xs)).collect();
    let mut value = 0.0_f64;
    let (mut found, mut shapes) = (given.clone(), SHAPES.map(<[usize]>::to_vec));
    let arrays = found.iter_mut().zip(&mut shapes).map(|(xs, s)| Place::array(xs, s));
    let mut places: Vec<Place<'_>> = std::iter::once(Place::scalar(&mut value)).chain(arrays).collect();
    time("network of two layers with its gradient", &gradient, &like, &args, &mut places)?;
    assert!((value - 1.0).abs() < 1e-14);
    Ok(())
}

/// The least time of a call, of many times many: on a busy machine some of them are left alone. Loops are chosen for arguments of the sizes of `like`; none: for sizes that are not known.
fn time(
    what: &str,
    ready: &Ready,
    like: &[Value],
    args: &[Argument<'_>],
    results: &mut [Place<'_>],
) -> Result<(), Box<dyn Error>> {
    const CALLS: u32 = 1000;
    let mut prepared = ready.prepare(like, 1 << 30).map_err(|d| d.message)?;
    let mut least = f64::INFINITY;
    for _ in 0..500 {
        let start = Instant::now();
        for _ in 0..CALLS {
            prepared.call(args, results, None)?;
        }
        least = least.min(start.elapsed().as_secs_f64() / f64::from(CALLS));
    }
    println!("{what}: {:.1} ns per call", least * 1e9);
    Ok(())
}
