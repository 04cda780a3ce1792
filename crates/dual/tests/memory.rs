//! What is kept of tapes: a process of its own, since threads share it.

use pullback_dual::{Settings, grad, kept_memory, release_memory};

#[test]
fn memory_is_used_again_and_given_back() {
    let long = || Settings::new().value_and_grad(|&[x, z]| (0..100_000).fold(x, |y, _| y + z), &[1.0, 1.0]);
    let outcome = long().expect("memory");
    let first = kept_memory();
    // Tape and cotangents, in whole blocks.
    assert!(first >= outcome.report.tape_bytes + outcome.report.cotangent_bytes, "{first}");
    assert!(first < outcome.report.tape_bytes + (5 << 20), "{first}");
    for _ in 0..10 {
        long().expect("memory");
        assert_eq!(kept_memory(), first);
    }
    // A panic gives everything back too.
    for _ in 0..10 {
        let panic = std::panic::catch_unwind(|| {
            grad(
                |&[x, z]| {
                    (0..100_000).fold(x, |y, i| {
                        if i == 99_999 { std::panic::resume_unwind(Box::new(0)) } else { y + z }
                    })
                },
                &[1.0, 1.0],
            )
        });
        assert!(panic.is_err());
        assert_eq!(kept_memory(), first);
    }
    release_memory();
    assert_eq!(kept_memory(), 0);
}
