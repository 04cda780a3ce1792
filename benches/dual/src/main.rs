//! pullback-dual and other libraries, timed in one run: `cargo run --release [-- WORDS]`, programs whose names contain a word.
//!
//! All libraries run the same generic programs (`programs.rs`) on the same inputs; before timing, the gradients must agree. Rounds of the
//! libraries alternate, and the least time of the rounds counts: other processes make times longer, never shorter. `--threads` times the
//! particles on one and two threads instead, `--large` makes a tape of a hundred million rows.

mod num;
mod programs;

use num::{Num, Rows};
use programs as p;
use pullback_dual::parallel::{self, Parallel};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A library running a program: a value and its gradient, as one list.
struct Runner<'a> {
    name: &'static str,
    run: Box<dyn FnMut(&mut Vec<f64>) + 'a>,
}

fn runner<'a>(name: &'static str, run: impl FnMut(&mut Vec<f64>) + 'a) -> Runner<'a> {
    Runner { name, run: Box::new(run) }
}

/// What makes a gradient by this library of a generic program.
macro_rules! gradients {
    ($xs:expr, |$v:ident: $t:ident| $program:expr) => {{
        let xs: &[f64] = $xs;
        vec![
            runner("pullback-dual", move |out| {
                type $t<'t> = pullback_dual::Var<'t>;
                let (y, g) = pullback_dual::value_and_grad(|$v: &Vec<$t<'_>>| $program, xs);
                out.push(y);
                out.extend_from_slice(&g);
            }),
            runner("pullback-dual, dot rows", move |out| {
                let (y, g) = pullback_dual::value_and_grad(
                    |xs| {
                        let $v: &Vec<Rows<'_>> = &xs.iter().map(|x| Rows(*x)).collect();
                        let y = $program;
                        y.0
                    },
                    xs,
                );
                out.push(y);
                out.extend_from_slice(&g);
            }),
            runner("pullback-dual, parallel type", move |out| {
                type $t<'t> = parallel::Var<'t>;
                let (y, g) = parallel::value_and_grad(|$v: &Vec<$t<'_>>| $program, xs);
                out.push(y);
                out.extend_from_slice(&g);
            }),
            runner("aad", move |out| {
                let tape = aad::Tape::default();
                let $v: &Vec<aad::Variable<'_, f64>> = &tape.create_variables_iter(xs).collect();
                let y = $program;
                out.push(y.value());
                let gradients = y.compute_gradients().expect("gradients");
                out.extend($v.iter().map(|x| gradients.get_gradient(x).expect("a gradient")));
            }),
            runner("reverse", move |out| {
                let tape = reverse::Tape::new();
                let $v: &Vec<reverse::Var<'_>> = &tape.add_vars(xs);
                let y = $program;
                out.push(y.val);
                let gradients = y.grad();
                out.extend(reverse::Gradient::wrt(&gradients, $v));
            }),
            runner("RustQuant_autodiff", move |out| {
                let graph = RustQuant_autodiff::Graph::default();
                let $v: &Vec<RustQuant_autodiff::Variable<'_>> = &xs.iter().map(|x| graph.var(*x)).collect();
                let y = $program;
                out.push(y.value());
                let gradients = RustQuant_autodiff::Accumulate::accumulate(&y);
                out.extend(RustQuant_autodiff::Gradient::wrt(&gradients, $v));
            }),
            runner("easy-ml", move |out| {
                let list = easy_ml::differentiation::WengertList::new();
                let $v: &Vec<easy_ml::differentiation::Record<'_, f64>> =
                    &xs.iter().map(|x| list.variable(*x)).collect();
                let y = $program;
                out.push(y.number);
                let gradients = y.derivatives();
                out.extend($v.iter().map(|x| gradients.at(x)));
            }),
        ]
    }};
}

struct Case<'a> {
    name: &'static str,
    /// Times are for this many units.
    units: f64,
    unit: &'static str,
    target: Option<f64>,
    runners: Vec<Runner<'a>>,
}

fn least(runners: &mut [Runner<'_>]) -> Vec<f64> {
    let mut out = Vec::new();
    let mut repeats = Vec::new();
    for r in &mut *runners {
        // As often as takes 5 ms.
        let mut n = 1_u32;
        loop {
            let time = repeat(r, n, &mut out);
            if time > Duration::from_millis(5) || n > 1 << 20 {
                break;
            }
            n *= 2;
        }
        repeats.push(n);
    }
    let mut best = vec![f64::INFINITY; runners.len()];
    for _ in 0..15 {
        for ((r, n), best) in runners.iter_mut().zip(&repeats).zip(&mut best) {
            *best = best.min(repeat(r, *n, &mut out).as_secs_f64() / f64::from(*n));
        }
    }
    best
}

fn repeat(r: &mut Runner<'_>, n: u32, out: &mut Vec<f64>) -> Duration {
    let start = Instant::now();
    for _ in 0..n {
        out.clear();
        (r.run)(black_box(out));
        black_box(&*out);
    }
    start.elapsed()
}

fn check(case: &mut Case<'_>) {
    let mut lists = Vec::new();
    for r in &mut case.runners {
        let mut out = Vec::new();
        (r.run)(&mut out);
        lists.push(out);
    }
    for (r, list) in case.runners.iter().zip(&lists) {
        assert_eq!(list.len(), lists[0].len(), "{}: {}", case.name, r.name);
        for (i, (a, b)) in lists[0].iter().zip(list).enumerate() {
            let close = (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()));
            assert!(close, "{}: {} gives {b} in place {i}, not {a}", case.name, r.name);
        }
    }
}

fn rotate_jacobian<'a>() -> Vec<Runner<'a>> {
    const XS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    vec![
        runner("pullback-dual", |out| {
            let (y, rows) = pullback_dual::jacobian(|xs| p::rotate(xs).to_vec(), black_box(&XS));
            out.extend(y);
            rows.iter().for_each(|row| out.extend(row));
        }),
        runner("pullback-dual, forward, 7 tangents", |out| {
            // The result is a list of three: three gradients would run the program thrice, so it is run on numbers of seven tangents.
            let mut rows = [[0.0; 7]; 3];
            let mut y = [0.0; 3];
            pullback_dual::gradient_forward::<7, _, _, _>(
                |xs| {
                    let r = p::rotate(xs);
                    for i in 0..3 {
                        y[i] = r[i].val();
                        rows[i] = r[i].tangent();
                    }
                    r[0]
                },
                black_box(&XS),
            );
            out.extend(y);
            rows.iter().for_each(|row| out.extend(row));
        }),
        runner("num-dual, 7 tangents", |out| {
            let mut at = 0;
            let xs = black_box(&XS).map(|x| {
                let mut eps = nalgebra::SVector::<f64, 7>::zeros();
                eps[at] = 1.0;
                at += 1;
                num_dual::DualSVec64::<7>::new(x, num_dual::Derivative::some(eps))
            });
            let r = p::rotate(&xs);
            out.extend(r.iter().map(|r| r.re));
            for r in r {
                out.extend(r.eps.unwrap_generic(nalgebra::Const::<7>, nalgebra::Const::<1>).iter());
            }
        }),
        runner("aad", |out| {
            let tape = aad::Tape::default();
            let xs = tape.create_variables(black_box(&XS));
            let r = p::rotate(&xs);
            out.extend(r.iter().map(|r| r.value()));
            for r in r {
                let gradients = r.compute_gradients().expect("gradients");
                out.extend(xs.iter().map(|x| gradients.get_gradient(x).expect("a gradient")));
            }
        }),
        runner("reverse", |out| {
            let tape = reverse::Tape::new();
            let xs = tape.add_vars(black_box(&XS));
            let r = p::rotate(&xs);
            out.extend(r.iter().map(|r| Num::val(*r)));
            for r in r {
                out.extend(reverse::Gradient::wrt(&r.grad(), &xs));
            }
        }),
    ]
}

/// The derivative of a long chain with respect to one number.
fn forward<'a>() -> Vec<Runner<'a>> {
    fn chain<T: Num>(x: T) -> T {
        let mut y = x;
        for _ in 0..1000 {
            y = (y * x).plus(0.25) / (y + x).plus(3.0);
            y = y + (-y).exp().times(0.125);
        }
        y
    }
    vec![
        runner("pullback-dual", |out| {
            let (y, d) = pullback_dual::derivative(|x| chain(x), black_box(0.7));
            out.extend([y, d]);
        }),
        runner("num-dual", |out| {
            let y = chain(num_dual::Dual64::from(black_box(0.7)).derivative());
            out.extend([y.re, y.eps]);
        }),
        runner("autodiff", |out| {
            let y = chain(autodiff::F1::var(black_box(0.7)));
            out.extend([y.x, y.dx]);
        }),
    ]
}

/// Particles on one and two threads, and beside them plain arithmetic: what the machine has left for a second thread.
fn threads() {
    let xs: Vec<Vec<f64>> = p::particles_inputs().chunks(4).map(<[f64]>::to_vec).collect();
    let pools = [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a pool"));
    let least = |run: &(dyn Fn() + Sync)| {
        let mut best = [f64::INFINITY; 2];
        // Many runs on one pool, then on the other: a pool that begins finds nothing in its caches.
        for _ in 0..4 {
            for (pool, best) in pools.iter().zip(&mut best) {
                pool.install(|| {
                    for _ in 0..200 {
                        let start = Instant::now();
                        run();
                        *best = best.min(start.elapsed().as_secs_f64());
                    }
                });
            }
        }
        best
    };
    let plain = least(&|| {
        black_box(f64::sum(&xs, 1, |x| (0..10).map(|_| p::particle(black_box(x), 1000)).sum()));
    });
    let gradient = least(&|| {
        black_box(parallel::value_and_grad(|xs| Parallel::sum(xs, 1, |x| p::particle(x, 1000)), &xs));
    });
    for (name, [one, two]) in [("plain", plain), ("particles", gradient)] {
        println!(
            "{name}: 1 thread {:.3} ms, 2 threads {:.3} ms, ratio {:.2}",
            one * 1e3,
            two * 1e3,
            one / two
        );
    }
}

/// A tape of a hundred million rows, whose memory is reported, and the same under a limit.
fn large() {
    const ROWS: usize = 100_000_000;
    let run = |limit: usize| {
        let settings = pullback_dual::Settings::new().tape_limit(limit);
        let start = Instant::now();
        let outcome =
            settings.value_and_grad(|&[x, z]| (0..ROWS).fold(x, |y, _| y * z + 1e-6), &[0.5, 0.999_999]);
        (outcome, start.elapsed().as_secs_f64())
    };
    let (outcome, time) = run(usize::MAX);
    println!("{outcome:?}, {time:.2} s");
    let (outcome, time) = run(1 << 30);
    println!("with a limit of 1 GiB: {outcome:?}, {time:.2} s");
    if let Err(error) = outcome {
        println!("{error}");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|w| w == "--threads") {
        return threads();
    }
    if words.iter().any(|w| w == "--large") {
        return large();
    }
    let pair = [3.0, 4.0];
    let dots: Vec<f64> =
        (1..=1000).map(f64::from).chain((0..1000).map(|i| 3.0 + 2.0 * f64::from(i))).collect();
    let matrix: Vec<f64> =
        (1..=1024).map(f64::from).chain((0..32).map(|i| 3.0 + 2.0 * f64::from(i))).collect();
    let network = p::neural_inputs();
    let particles = p::particles_inputs();
    let (d, k) = (10, 5);
    let points = p::random(1, 1000 * d);
    let mixture = p::random(2, k + 2 * k * d + k * d * (d - 1) / 2);
    let b = 14;
    let (state, sequence, weights) =
        (p::random(3, 4 * b), p::random(4, 1024 * b), p::random(5, 16 * b + 3 * b));
    let (points, state, sequence) = (&*points, &*state, &*sequence);
    let mut cases = vec![
        Case {
            name: "mult",
            units: 1.0,
            unit: "us",
            target: Some(0.05),
            runners: {
                let mut all = gradients!(&pair, |xs: T| xs[0] * xs[1]);
                all.insert(
                    1,
                    runner("pullback-dual, array", |out| {
                        let (y, g) = pullback_dual::value_and_grad(|&[x, y]| x * y, black_box(&[3.0, 4.0]));
                        out.push(y);
                        out.extend(g);
                    }),
                );
                all
            },
        },
        Case {
            name: "dot 1000, per pair",
            units: 1000.0,
            unit: "ns",
            target: Some(20.0),
            runners: gradients!(&dots, |xs: T| p::dot(xs)),
        },
        Case {
            name: "sum-mat-vec 32, per element",
            units: 1024.0,
            unit: "ns",
            target: Some(15.0),
            runners: gradients!(&matrix, |xs: T| p::sum_mat_vec(xs, 32)),
        },
        Case {
            name: "rotate, Jacobian",
            units: 1.0,
            unit: "us",
            target: Some(0.5),
            runners: rotate_jacobian(),
        },
        Case {
            name: "neural",
            units: 1.0,
            unit: "ms",
            target: Some(0.25),
            runners: gradients!(&network, |xs: T| p::neural(xs)),
        },
        Case {
            name: "particles",
            units: 1.0,
            unit: "ms",
            target: Some(0.5),
            runners: gradients!(&particles, |xs: T| p::particles(xs)),
        },
        Case {
            name: "gmm 1k d10 K5",
            units: 1.0,
            unit: "ms",
            target: None,
            runners: gradients!(&mixture, |xs: T| p::gmm(xs, points, d, k)),
        },
        Case {
            name: "lstm l2 c1024",
            units: 1.0,
            unit: "ms",
            target: None,
            runners: gradients!(&weights, |xs: T| p::lstm(xs, state, sequence, b)),
        },
        Case { name: "forward, chain of 1000", units: 1.0, unit: "us", target: None, runners: forward() },
    ];
    println!("| program | library | time | of pullback-dual's | target |\n|---|---|---|---|---|");
    for case in &mut cases {
        if !words.is_empty() && !words.iter().any(|w| case.name.contains(w.as_str())) {
            continue;
        }
        check(case);
        let times = least(&mut case.runners);
        let scale = match case.unit {
            "ns" => 1e9,
            "us" => 1e6,
            _ => 1e3,
        } / case.units;
        for (i, (r, time)) in case.runners.iter().zip(&times).enumerate() {
            let target =
                case.target.filter(|_| i == 0).map_or(String::new(), |t| format!("{t} {}", case.unit));
            println!(
                "| {} | {} | {:.3} {} | {:.2} | {target} |",
                case.name,
                r.name,
                time * scale,
                case.unit,
                time / times[0]
            );
        }
    }
}
