//! A process that was forked has no workers: its launches do without.

#![cfg(all(unix, not(miri)))]
#![allow(unsafe_code, reason = "the process is forked; see the blocks")]

use pullback_pool::{Pool, shared};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// 0 if a launch works.
fn sum_is_right(pool: &Pool, threads: usize) -> bool {
    let sum = AtomicU64::new(0);
    let result = pool.launch(threads, 100, |chunk| {
        sum.fetch_add(u64::from(chunk.index), Relaxed);
        Ok::<(), ()>(())
    });
    result.is_ok() && sum.into_inner() == 4950
}

#[test]
fn launches_work_in_a_forked_process() {
    let pool = Pool::new(NonZeroUsize::new(2).expect("2"));
    let never_used = Pool::new(NonZeroUsize::new(3).expect("3"));
    assert!(sum_is_right(&pool, 2) && sum_is_right(shared(), 3));
    // SAFETY: no other thread of this test holds a lock at this point; the child only launches and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let works = (0..100).all(|_| sum_is_right(&pool, 2) && sum_is_right(shared(), 4));
        let works = works && sum_is_right(&never_used, 3);
        drop((pool, never_used));
        // SAFETY: ends the process without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!works)) }
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut status = 0;
    loop {
        // SAFETY: `status` is a place for the child's status.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            break;
        }
        if std::time::Instant::now() > deadline {
            // SAFETY: the child is ours, and has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    assert!(sum_is_right(&pool, 2) && sum_is_right(shared(), 4));
}
