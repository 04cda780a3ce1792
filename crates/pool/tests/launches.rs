//! Launches: every chunk once, whatever the sizes, threads, callers and failures. What is expected is arithmetic on the chunk
//! numbers.

use pullback_pool::{Chunk, Pool, available_threads, part, shared};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// Awkward numbers of chunks.
const CHUNKS: [u32; 10] = [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000];
const THREADS: [usize; 5] = [1, 2, 3, 4, 8];

/// Fewer where every step is interpreted.
const ROUNDS: usize = if cfg!(miri) { 2 } else { 50 };

fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).expect("a thread"))
}

fn counters(chunks: u32) -> Vec<AtomicU64> {
    (0..chunks).map(|_| AtomicU64::new(0)).collect()
}

#[test]
fn every_chunk_is_run_once_and_its_writes_are_seen() {
    for threads in THREADS {
        let pool = pool(threads);
        assert_eq!(pool.threads(), threads);
        for round in 0..ROUNDS {
            for chunks in CHUNKS.into_iter().filter(|n| !cfg!(miri) || *n < 100) {
                let seen = counters(chunks);
                // Written without synchronisation of its own.
                let squares: Vec<Mutex<u64>> = (0..chunks).map(|_| Mutex::new(0)).collect();
                pool.run(chunks, |k| {
                    seen[k as usize].fetch_add(1, Relaxed);
                    *squares[k as usize].try_lock().expect("nobody else has the chunk") = u64::from(k).pow(2);
                });
                assert!(seen.iter().all(|n| n.load(Relaxed) == 1), "{chunks} chunks, {threads} threads");
                for (k, square) in (0..).zip(squares) {
                    assert_eq!(square.into_inner().expect("whole"), u64::pow(k, 2));
                }
            }
            // So that workers sleep in some of the rounds.
            if round % 8 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn a_worker_runs_one_chunk_at_a_time() {
    let pool = pool(4);
    for threads in 1..=4 {
        for _ in 0..ROUNDS {
            let in_use: Vec<AtomicBool> = (0..threads).map(|_| AtomicBool::new(false)).collect();
            let chunk = |c: Chunk| -> Result<(), ()> {
                assert!(!in_use[c.worker].swap(true, SeqCst), "two chunks use the memory of one worker");
                for _ in 0..20 {
                    std::hint::spin_loop();
                }
                in_use[c.worker].store(false, SeqCst);
                Ok(())
            };
            pool.launch(threads, 40, chunk).expect("no failure");
        }
    }
}

#[test]
fn several_threads_do_take_part() {
    let pool = pool(3);
    // Two chunks that end only when both have begun.
    for _ in 0..ROUNDS {
        let begun = AtomicUsize::new(0);
        pool.run(2, |_| {
            begun.fetch_add(1, SeqCst);
            let is_alone = || begun.load(SeqCst) < 2;
            while is_alone() {
                std::thread::yield_now();
            }
        });
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_launch_inside_a_chunk_runs_there() {
    let pool = pool(4);
    let other = self::pool(2);
    let total = AtomicU64::new(0);
    pool.run(16, |outer| {
        for inner in [&pool, &other] {
            let here = std::thread::current().id();
            let order = Mutex::new(Vec::new());
            inner.run(9, |k| {
                assert_eq!(std::thread::current().id(), here);
                order.lock().expect("whole").push(k);
                total.fetch_add(u64::from(outer) * u64::from(k), Relaxed);
            });
            let order = order.into_inner().expect("whole");
            assert_eq!(order, (0..9).collect::<Vec<_>>());
        }
    });
    // Two times the sum of 0..16 by the sum of 0..9.
    assert_eq!(total.into_inner(), 2 * 120 * 36);
}

#[test]
fn callers_at_once_get_their_results_and_no_more_threads_than_callers_and_workers() {
    let (callers, threads) = (4, 3);
    let pool = pool(threads);
    let (active, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for caller in 0..callers {
            let (pool, active, most) = (&pool, &active, &most);
            scope.spawn(move || {
                for round in 0..4 * ROUNDS as u64 {
                    let sum = AtomicU64::new(0);
                    pool.run(20, |k| {
                        most.fetch_max(active.fetch_add(1, SeqCst) + 1, SeqCst);
                        sum.fetch_add(u64::from(k) * (caller + round), Relaxed);
                        active.fetch_sub(1, SeqCst);
                    });
                    assert_eq!(sum.into_inner(), 190 * (caller + round));
                }
            });
        }
    });
    assert!(most.into_inner() < callers as usize + threads);
}

#[test]
fn the_first_failing_chunk_is_the_result_for_any_number_of_threads() {
    for threads in THREADS {
        let pool = pool(threads);
        for round in 0..4 * ROUNDS as u32 {
            // Chunks 3, 3 + step, ..: the first is always 3, or there is none.
            let chunks = CHUNKS[round as usize % CHUNKS.len()].min(200);
            let step = 1 + round % 13;
            let fails = |k: u32| k >= 3 && (k - 3).is_multiple_of(step);
            let begun = counters(chunks);
            let result = pool.launch(threads, chunks, |chunk| {
                begun[chunk.index as usize].fetch_add(1, Relaxed);
                if fails(chunk.index) { Err(chunk.index) } else { Ok(()) }
            });
            assert_eq!(result, if chunks > 3 { Err(3) } else { Ok(()) });
            // All before it were run.
            assert!(begun.iter().take(4).all(|n| n.load(Relaxed) == 1));
            assert!(begun.iter().all(|n| n.load(Relaxed) <= 1));
        }
    }
}

#[test]
fn chunks_after_a_failed_one_are_not_begun() {
    let pool = pool(2);
    let (has_failed, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    let result = pool.launch(2, 100_000, |chunk| {
        begun.fetch_add(1, Relaxed);
        if chunk.index == 0 {
            has_failed.store(true, SeqCst);
            return Err("stop");
        }
        let waits = || !has_failed.load(SeqCst);
        while waits() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    });
    assert_eq!(result, Err("stop"));
    // At most one other when it failed, and one more for each millisecond that this took to be seen.
    assert!(begun.into_inner() < 1000);
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_is_usable() {
    for threads in THREADS {
        let pool = pool(threads);
        for round in 0..ROUNDS as u32 {
            let first = round % 20;
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(20, |k| {
                    if k >= first {
                        std::panic::panic_any(k);
                    }
                });
            }));
            let payload = caught.expect_err("a panic");
            assert_eq!(payload.downcast_ref(), Some(&first), "{threads} threads");
            let sum = AtomicU64::new(0);
            pool.run(100, |k| {
                sum.fetch_add(u64::from(k), Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950);
        }
    }
}

#[test]
fn the_earlier_of_a_panic_and_an_error_wins() {
    let pool = pool(3);
    for panics in [2, 9] {
        let launch = || {
            pool.launch(3, 12, |chunk| match chunk.index {
                5 => Err("error"),
                k if k == panics => std::panic::panic_any("panic"),
                _ => Ok(()),
            })
        };
        match catch_unwind(AssertUnwindSafe(launch)) {
            Ok(result) => assert_eq!((panics, result), (9, Err("error"))),
            Err(payload) => assert_eq!((panics, payload.downcast_ref()), (2, Some(&"panic"))),
        }
    }
}

#[test]
fn workers_end_with_the_pool() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    struct Guard(Cell<bool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            if self.0.get() {
                ENDED.fetch_add(1, SeqCst);
            }
        }
    }
    thread_local! {
        static GUARD: Guard = const { Guard(Cell::new(false)) };
    }
    let pool = pool(3);
    let (begun, caller) = (AtomicUsize::new(0), std::thread::current().id());
    // Three chunks that need three threads.
    pool.run(3, |_| {
        if std::thread::current().id() != caller {
            GUARD.with(|g| g.0.set(true));
        }
        begun.fetch_add(1, SeqCst);
        let is_alone = || begun.load(SeqCst) < 3;
        while is_alone() {
            std::thread::yield_now();
        }
    });
    assert_eq!(ENDED.load(SeqCst), 0);
    drop(pool);
    assert_eq!(ENDED.load(SeqCst), 2);
}

#[test]
fn the_pool_of_the_process_takes_any_number_of_threads() {
    assert!(std::ptr::eq(shared(), shared()));
    assert_eq!(shared().threads(), available_threads().get().min(256));
    for threads in [0, 1, 2, 4, 100_000] {
        let threads = if cfg!(miri) { threads.min(4) } else { threads };
        let seen = counters(65);
        let result = shared().launch(threads, 65, |chunk| {
            assert!(chunk.worker < threads.max(1));
            seen[chunk.index as usize].fetch_add(1, Relaxed);
            Ok::<(), ()>(())
        });
        assert_eq!(result, Ok(()));
        assert!(seen.iter().all(|n| n.load(Relaxed) == 1));
    }
}

#[test]
fn parts_follow_each_other_and_differ_by_at_most_one() {
    for count in [0, 1, 7, 8, 9, 63, 64, 65, 1_000_003, usize::MAX] {
        for chunks in [1, 2, 3, 8, 64, u32::MAX] {
            let (least, first) = (count / chunks as usize, part(0, chunks, count));
            assert_eq!(first.start, 0);
            assert_eq!(part(chunks - 1, chunks, count).end, count);
            let some = (0..chunks.min(100)).chain(chunks - chunks.min(100)..chunks);
            for k in some {
                let here = part(k, chunks, count);
                assert!(here.len() == least || here.len() == least + 1, "{here:?}");
                if k + 1 < chunks {
                    assert_eq!(here.end, part(k + 1, chunks, count).start);
                }
            }
        }
    }
}

/// A pool can be shared by threads and kept anywhere.
const _: () = {
    const fn is_shareable<T: Send + Sync + std::panic::UnwindSafe + 'static>() {}
    is_shareable::<Pool>();
};
