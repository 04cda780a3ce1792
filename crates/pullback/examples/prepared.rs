//! Machine code called with buffers of the caller, and the time of such a call.
//!
//! `cargo run --release -p pullback --example prepared`
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use pullback::{Argument, Kind, Place, Program, Ready, Wrt};
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
        &[Argument::array(&xs, &[3]), Argument::scalar(2.0), Argument::scalar(1.0)],
        &mut [Place::scalar(&mut value), Place::array(&mut xs_bar, &mut shape), Place::scalar(&mut w_bar)],
    )?;
    assert_eq!((value, xs_bar, w_bar), (17.0, [-2.0, 0.0, 8.0], -6.0));
    Ok(())
}

/// The least time of a call, of ten times many. Loops this short are the same for all sizes, so that no arguments are shown.
fn time(
    what: &str,
    ready: &Ready,
    args: &[Argument<'_>],
    results: &mut [Place<'_>],
) -> Result<(), Box<dyn Error>> {
    const CALLS: u32 = 100_000;
    let mut prepared = ready.prepare(&[], 1 << 30).map_err(|d| d.message)?;
    let mut least = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..CALLS {
            prepared.call(args, results, None)?;
        }
        least = least.min(start.elapsed().as_secs_f64() / f64::from(CALLS));
    }
    println!("{what}: {:.1} ns per call", least * 1e9);
    Ok(())
}
