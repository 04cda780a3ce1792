//! Compiled derivatives agree with those written by hand in C (`benches/baseline`), at awkward sizes.
//!
//! The two share nothing but the generator of inputs. Skipped, with a line that says so, where there is no gcc or no LLVM.

#[path = "common/workload.rs"]
mod workload;

use pullback_testkit::baseline::Baseline;
use pullback_testkit::workloads::WORKLOADS;
use workload::{Ready, difference, flat};

/// Sums in another order, and functions of another library: to so much of the largest entry.
const TOLERANCE: f64 = 1e-11;

#[test]
fn derivatives_agree_with_c_by_hand() {
    if pullback_llvm::Llvm::find().is_err() {
        eprintln!("skipped: no libLLVM was found");
        return;
    }
    let Some(baseline) = Baseline::build().expect("the C programs compile") else {
        eprintln!("skipped: no gcc was found");
        return;
    };
    for workload in WORKLOADS {
        for sizes in workload.small {
            let expected = baseline.results(workload, sizes).expect("the C program runs");
            let found = flat(&Ready::new(workload, sizes).call().results);
            // The value and the derivatives have scales of their own.
            let split = usize::from(workload.wrt.is_some()).min(expected.len()).min(found.len());
            let value = difference(&found[..split], &expected[..split]);
            let derivatives = difference(&found[split..], &expected[split..]);
            assert!(
                value <= TOLERANCE && derivatives <= TOLERANCE,
                "{} {sizes:?}: value off by {value:e}, derivatives by {derivatives:e}",
                workload.name
            );
        }
    }
}
