//! Random programs are well formed, and depend on nothing but their seed.

use pullback_core::check::{Rules, check};
use pullback_testkit::generate::{Config, generate};

#[test]
fn generated_programs_are_well_formed() {
    let config = Config::default();
    for seed in 0..300 {
        let generated = generate(seed, &config);
        if let Err(e) = check(&generated.program, Rules::SURFACE) {
            panic!("seed {seed}: {e:?}\n{}", pullback_core::print::print(&generated.program));
        }
    }
}

#[test]
fn equal_seeds_give_equal_programs() {
    let config = Config::default();
    for seed in 0..20 {
        assert!(generate(seed, &config).program == generate(seed, &config).program);
    }
}
