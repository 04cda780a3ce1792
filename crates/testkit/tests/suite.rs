//! Runs every case of every suite file: `cargo test --test suite`, `cargo test --test suite 'vjp[fast_chad]'`.

fn main() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suite");
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = pullback_testkit::suite::tests(std::path::Path::new(root))
        .into_iter()
        .map(|test| {
            let run = test.run;
            libtest_mimic::Trial::test(test.name, move || run().map_err(Into::into))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
