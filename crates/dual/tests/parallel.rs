//! Fork and join: closed forms, random programs on several threads, the edge rule, misuse.

#![cfg(feature = "parallel")]

use crate::common::{Random, close, panics};
use pullback_dual::parallel::{Parallel, Report, Settings, Var, grad, value_and_grad};
use pullback_dual::{Custom, Dual, Error, Function, Real, Scalar, gradient_forward};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

#[test]
fn a_number_of_one_branch_is_used_by_two_later_ones() {
    // X23 of the specification of dual-numbers AD.
    fn f<S: Parallel + Real>(&[x, y]: &[S; 2]) -> S {
        let (a, b) = S::join(|| x * y, || y.sin());
        let (c, d) = S::join(|| a * a, || a * b);
        c * d
    }
    let (value, [dx, dy]) = value_and_grad(|x| f(x), &[1.2, 0.7]);
    close(value, 0.381_830_400_096_528_3);
    // By hand: x^3 y^3 sin y.
    let (x, y): (f64, f64) = (1.2, 0.7);
    close(dx, 3.0 * x * x * y.powi(3) * y.sin());
    close(dy, x.powi(3) * (3.0 * y * y * y.sin() + y.powi(3) * y.cos()));
}

#[test]
fn rotations_in_parallel() {
    // Two times 300 rotations: the derivative is 2 cos A for both, A the sum of the angles.
    fn f<S: Parallel + Real>(&[x, y]: &[S; 2]) -> S {
        let rotated = |(mut x, mut y): (S, S)| {
            for i in 1..=300 {
                let angle = 0.1 + 0.05 * f64::from(i).sin();
                (x, y) = (x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos());
            }
            (x, y)
        };
        let ((a, b), (c, d)) = S::join(|| rotated((x, y)), || rotated((x, y)));
        a + b + c + d
    }
    let angle: f64 = (1..=300).map(|i| 0.1 + 0.05 * f64::from(i).sin()).sum();
    let [dx, dy] = grad(|x| f(x), &[0.3, 0.4]);
    close(dx, 2.0 * (angle.cos() + angle.sin()));
    close(dy, 2.0 * (angle.cos() - angle.sin()));
}

/// A random program of nested forks, determined by the seed: branches use what came before in any way, results of branches are
/// used after, some of them in both branches of a later fork.
fn forks<S: Parallel + Real>(seed: u64, x: &[S]) -> S {
    fn part<S: Parallel + Real>(seed: u64, size: usize, known: &[S]) -> Vec<S> {
        let mut random = Random(seed);
        let mut known = known.to_vec();
        let before = known.len();
        let steps = 1 + random.below(3);
        for step in 0..steps {
            for _ in 0..random.below(4) {
                let mut pick = || known[known.len() - 1 - random.below(known.len().min(9))];
                let (a, b) = (pick(), pick());
                known.push(a * b / (a * a + b * b + 1.0) + a.sin() * 0.5);
            }
            if size > 1 {
                let (l, r) = (random.next(), random.next());
                let here = &known;
                // Empty branches too.
                let run =
                    |seed: u64| if seed.is_multiple_of(7) { Vec::new() } else { part(seed, size / 2, here) };
                let (l, r) = S::join(|| run(l), || run(r));
                let sums = l.iter().zip(&r).map(|(l, r)| *l * 0.9 + *r).collect::<Vec<S>>();
                known.extend(l);
                known.extend(r);
                known.extend(sums);
            }
            let _ = step;
        }
        known.split_off(before)
    }
    let all = part(seed, 8, x);
    all.iter().map(|y| y.tanh()).sum::<S>() + x[0]
}

/// Checks the gradients of random forks on pools of 1, 2 and 4 threads: with forward mode, and bit by bit among each other. How many tasks
/// and imports they had.
fn check_random_forks(seeds: std::ops::Range<u64>) -> (usize, usize) {
    let pools = [pool(1), pool(2), pool(4)];
    let (mut tasks, mut imports) = (0, 0);
    for seed in seeds {
        let x = [0.3, -0.6, 0.9];
        let (value, expected) =
            gradient_forward::<3, _, _, _>(|x: &[Dual<'_, f64, 3>; 3]| forks(seed, x), &x);
        let mut bits = None;
        for (settings, exact) in [(Settings::new(), true), (Settings::new().relaxed(), false)] {
            for pool in &pools {
                let outcome =
                    pool.install(|| settings.value_and_grad(|x| forks(seed, x), &x)).expect("no limit");
                assert_eq!(outcome.value, value, "seed {seed}");
                for (a, b) in outcome.gradient.iter().zip(&expected) {
                    assert!(
                        (a - b).abs() <= 1e-9 * (1.0 + b.abs()),
                        "seed {seed}: {:?} {expected:?}",
                        outcome.gradient
                    );
                }
                if exact {
                    let now = outcome.gradient.map(f64::to_bits);
                    assert_eq!(*bits.get_or_insert(now), now, "seed {seed}: bits depend on threads");
                }
                tasks += outcome.report.tasks;
                imports += outcome.report.imports;
            }
        }
    }
    (tasks, imports)
}

#[test]
fn random_forks_have_the_gradients_of_forward_mode() {
    let (tasks, imports) = check_random_forks(0..300);
    // The programs do fork, and branches do use what is not theirs.
    assert!(tasks > 300 * 6 * 10 && imports > tasks, "{tasks} tasks, {imports} imports");
}

/// The same while other threads take the processors away: branches stop in the middle, and others steal them.
#[test]
fn random_forks_under_load_have_the_gradients_of_forward_mode() {
    let busy = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for kind in 0..6u64 {
            let busy = &busy;
            scope.spawn(move || {
                let mut random = Random(kind);
                while busy.load(Ordering::Relaxed) {
                    // Work without a pause, or in short bursts.
                    let spins = 1 << (8 + random.below(12));
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    if kind % 2 == 1 {
                        std::thread::sleep(std::time::Duration::from_micros(random.below(200) as u64));
                    }
                }
            });
        }
        // Also if it fails.
        let result = std::panic::catch_unwind(|| check_random_forks(1000..1100));
        busy.store(false, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_million_contributions_to_one_number_are_all_counted() {
    let items: Vec<u32> = (0..100_000).collect();
    for threads in [2, 4] {
        for settings in [Settings::new(), Settings::new().relaxed()] {
            let outcome = pool(threads).install(|| {
                settings.value_and_grad(
                    |&w| {
                        Parallel::sum(&items, 100, |i| {
                            (0..10).map(|_| w).sum::<Var<'_>>() * f64::from(*i % 2)
                        })
                    },
                    &1.0,
                )
            });
            assert_eq!(outcome.unwrap().gradient, 500_000.0);
        }
    }
}

/// Branches that do nothing but hand over, all to the same numbers at the same time: where additions are not atomic and should be, some
/// are lost.
#[test]
fn no_contribution_is_lost_where_branches_meet() {
    let items: Vec<u32> = (0..4096).collect();
    for settings in [Settings::new().relaxed(), Settings::new()] {
        for threads in [2, 4] {
            for _ in 0..4 {
                let outcome = pool(threads).install(|| {
                    settings
                        .value_and_grad(|ws| Parallel::sum(&items, 1, |_| Scalar::total(ws)), &vec![1.0; 128])
                        .expect("memory")
                });
                assert_eq!(outcome.gradient, vec![4096.0; 128]);
            }
        }
    }
}

#[test]
fn many_forks_one_after_another() {
    let outcome = Settings::new()
        .value_and_grad(
            |&x| {
                (0..20_000).fold(x, |y, _| {
                    let (a, b) = <Var<'_>>::join(|| y * 0.5, || y * 0.5);
                    a + b
                })
            },
            &1.0,
        )
        .unwrap();
    assert_eq!((outcome.value, outcome.gradient), (1.0, 1.0));
    assert_eq!(outcome.report.tasks, 40_001);
}

/// Forks in forks: to the left, to the right, on both sides by turns, in loops, with other functions between.
#[test]
fn forks_may_be_nested_deep() {
    fn deep<S: Parallel + Real>(kind: u32, n: u32, x: S) -> S {
        if n == 0 {
            return x * x;
        }
        let (a, b) = match (kind, n % 2) {
            (0, _) | (2, 0) => S::join(|| deep(kind, n - 1, x), || x * x),
            (1, _) | (2, _) => S::join(|| x * x, || deep(kind, n - 1, x)),
            // Something on the stack of each level.
            (3, _) => {
                let list = [n; 200];
                S::join(|| deep(kind, n - 1, x) * f64::from(list[n as usize % 200] / n), || x * x)
            }
            _ => {
                let parts = S::map(&[n - 1, 0], 1, |m| deep(kind, *m, x));
                (parts[0], parts[1])
            }
        };
        a + b
    }
    // n + 1 squares.
    let depth = 4000;
    for kind in 0..5 {
        for threads in [1, 2] {
            pool(threads).install(|| {
                assert_eq!(deep(kind, depth, 3.0), 9.0 * f64::from(depth + 1), "plain, {kind}");
                let outcome =
                    Settings::new().value_and_grad(|&x| deep(kind, depth, x), &3.0).expect("memory");
                let squares = f64::from(depth + 1);
                assert_eq!(
                    (outcome.value, outcome.gradient),
                    (9.0 * squares, 6.0 * squares),
                    "{kind}, {threads} threads"
                );
                assert_eq!(outcome.report.tasks, 2 * depth as usize + 1);
                let relaxed = Settings::new().relaxed().value_and_grad(|&x| deep(kind, depth, x), &3.0);
                assert_eq!(relaxed.expect("memory").gradient, 6.0 * squares);
                let forward = pullback_dual::derivative(|x| deep(kind, depth, x), 3.0).1;
                assert_eq!(forward, 6.0 * squares);
            });
        }
    }
    // On threads with a small stack too.
    let small = std::thread::Builder::new().stack_size(64 << 10);
    let run = move || grad(|&x| deep(0, depth, x), &3.0);
    assert_eq!(small.spawn(run).expect("a thread").join().expect("no panic"), 6.0 * f64::from(depth + 1));
}

/// What a task takes beside its rows: blocks of 256 bytes where there is little.
#[test]
fn small_tasks_take_little_memory() {
    let items: Vec<u32> = (0..1000).collect();
    let outcome = Settings::new()
        .value_and_grad(|&w| Parallel::sum(&items, 1, |i| (w * f64::from(*i)).sin() * w), &0.3)
        .expect("memory");
    let Report { tasks, tape_bytes, .. } = outcome.report;
    assert_eq!(tasks, 1999);
    assert!(tape_bytes <= 256 * tasks, "{tape_bytes} bytes of tape for {tasks} tasks");
    // A few more rows take a few more bytes.
    for (rows, most) in [(40, 1280), (160, 5376), (640, 21760)] {
        let outcome = Settings::new()
            .value_and_grad(
                |&[w, v]| Parallel::sum(&[1.0, 2.0], 1, |i| (0..rows).fold(w * *i, |y, _| y * v)),
                &[0.3, 0.5],
            )
            .expect("memory");
        assert!(
            outcome.report.tape_bytes <= 2 * most + 256,
            "{rows} rows: {} bytes",
            outcome.report.tape_bytes
        );
    }
}

#[test]
fn forks_at_the_start_and_branches_that_are_the_result() {
    assert_eq!(grad(|&x| <Var<'_>>::join(|| x, || x).0, &2.0), 1.0);
    assert_eq!(grad(|&x| <Var<'_>>::join(|| Var::lift(1.0), || x * x).1, &2.0), 4.0);
    assert_eq!(grad(|_| <Var<'_>>::join(|| Var::lift(1.0), || 2).0, &2.0), 0.0);
    let x: [f32; 2] = grad(
        |&[x, y]| {
            let (a, b) = <Var<'_, f32>>::join(|| x * y, || y);
            a * b
        },
        &[3.0f32, 2.0],
    );
    assert_eq!(x, [4.0, 12.0]);
    assert_eq!(f32::map(&[1.0f32, 2.0], 1, |x| x + 1.0), [2.0, 3.0]);
}

#[derive(Clone)]
struct Square;
impl Custom for Square {
    fn value<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        vec![x[0] * x[0]]
    }
    fn vjp<S: Scalar>(&self, x: &[S], _y: &[S], y_bar: &[S]) -> Vec<S> {
        vec![y_bar[0] * x[0] * S::from_f64(20.0)]
    }
}
impl Function for Square {
    fn call<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        vec![x[0] * x[0]]
    }
}

#[test]
fn functions_with_their_own_reverse_inside_of_branches() {
    let g = grad(
        |&[x, y]| {
            let (a, b) = <Var<'_>>::join(
                || Scalar::custom(&Square, &[x])[0],
                || Scalar::checkpoint(&Square, &[y * x])[0],
            );
            let dot = Scalar::dot(&[a, b, x], &[x, y, y]);
            Scalar::with_partials(a.value(), &[(a, 1.0), (dot, 1.0)])
        },
        &[2.0, 3.0],
    );
    // a = x^2 with the derivative 20 x, b = x^2 y^2; a + (a x + b y + x y):
    // d/dx = 20x (1 + x) + a + 2 x y^3 + y, d/dy = 3 x^2 y^2 + x.
    assert_eq!(g, [40.0 * 3.0 + 4.0 + 2.0 * 2.0 * 27.0 + 3.0, 3.0 * 4.0 * 9.0 + 2.0]);
}

#[test]
fn forward_over_parallel_reverse() {
    fn f<S: Parallel + Real>(x: S, y: S) -> S {
        let (a, b) = S::join(|| x * x * y, || y.exp());
        a * b
    }
    // The gradient of the derivative along x: of 2 x y e^y.
    let [dx, dy] = grad(|&[x, y]| pullback_dual::derivative(|x| f(x, Dual::lift(y)), x).1, &[1.5, 0.5]);
    close(dx, 0.5f64.exp());
    close(dy, 2.0 * 1.5 * 1.5 * 0.5f64.exp());
}

#[test]
fn derivatives_inside_of_branches() {
    // Each branch differentiates a function of its own: plain numbers, on any thread.
    let g = grad(
        |&x| {
            Parallel::sum(&[1.0, 2.0, 3.0], 1, |c: &f64| {
                let inner = grad(|&y| y * y * *c, c);
                x * inner
            })
        },
        &1.0,
    );
    assert_eq!(g, 2.0 + 8.0 + 18.0);
    // Sequentially, numbers of an outer run may be used in an inner function.
    let g = grad(
        |&x| {
            let mut z = x;
            let d = grad(
                |&y| {
                    z = x * x;
                    y * 3.0
                },
                &1.0,
            );
            z * d
        },
        &5.0,
    );
    assert_eq!(g, 30.0);
}

#[test]
fn numbers_do_not_go_from_branch_to_branch() {
    for threads in [1, 2] {
        let text = panics(|| {
            pool(threads).install(|| {
                grad(
                    |&[x, z]| {
                        let there = Mutex::new(None);
                        let put = || *there.lock().unwrap() = Some(x * z);
                        let take = || loop {
                            if let Some(y) = there.lock().unwrap().take() {
                                return y * x;
                            }
                            std::thread::yield_now();
                        };
                        if threads == 1 { <Var<'_>>::join(put, take).1 } else { <Var<'_>>::join(take, put).0 }
                    },
                    &[3.0, 4.0],
                )
            })
        });
        assert!(text.contains("from one branch of a fork to another"), "{text}");
    }
    let text = panics(|| {
        grad(
            |&[x, z]| {
                std::thread::scope(|s| s.spawn(move || x * z).join().map_err(std::panic::resume_unwind))
                    .unwrap_or(x)
            },
            &[3.0, 4.0],
        )
    });
    assert!(text.contains("Parallel::join"), "{text}");
    assert_eq!(grad(|&x| x * x, &3.0), 6.0);
}

#[test]
fn panics_and_limits_in_branches_leave_everything_usable() {
    for i in 0..50 {
        let text = panics(|| {
            grad(
                |&x| {
                    Parallel::sum(&[1, 2, 3, 4], 1, |n| {
                        assert!(*n != 3, "user {i}");
                        x * f64::from(*n)
                    })
                },
                &1.0,
            )
        });
        assert!(text.contains("user"), "{text}");
        let outcome = Settings::new().tape_limit(1 << 20).value_and_grad(
            |&[x, z]| Parallel::sum(&[1, 2, 3, 4], 1, |_| (0..1 << 16).fold(x, |y, _| y + z)),
            &[1.0, 1.0],
        );
        assert!(matches!(outcome, Err(Error::TapeLimit { limit: 0x0010_0000, .. })), "{outcome:?}");
        assert_eq!(grad(|&x| Parallel::sum(&[1, 2], 1, |n| x * f64::from(*n)), &1.0), 3.0);
    }
}
