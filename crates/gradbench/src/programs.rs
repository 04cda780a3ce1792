//! The programs of the suite's problems, built into this crate.

use std::path::Path;

/// A file that is built in: its path in the repository, and its text.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

/// The problems by name, each with its program.
pub const PROBLEMS: &[(&str, &str)] = &[
    ("hello", "benches/programs/hello.fut"),
    ("gmm", "benches/gradbench/gmm.fut"),
    ("ba", "benches/gradbench/ba.fut"),
    ("ht", "benches/gradbench/ht.fut"),
    ("lstm", "benches/gradbench/lstm.fut"),
    ("kmeans", "benches/gradbench/kmeans.fut"),
    ("llsq", "examples/llsq.fut"),
    ("lse", "examples/lse.fut"),
    ("ode", "examples/ode.fut"),
    ("det", "benches/gradbench/det.fut"),
    ("particle", "examples/particle.fut"),
    ("saddle", "examples/saddle.fut"),
];

const FILES: &[(&str, &str)] = files!(
    "benches/programs/hello.fut",
    "benches/gradbench/gmm.fut",
    "benches/gradbench/ba.fut",
    "benches/gradbench/ht.fut",
    "benches/gradbench/lstm.fut",
    "benches/gradbench/kmeans.fut",
    "benches/gradbench/det.fut",
    "examples/gmm.fut",
    "examples/ba.fut",
    "examples/hand.fut",
    "examples/lstm.fut",
    "examples/kmeans.fut",
    "examples/det.fut",
    "examples/llsq.fut",
    "examples/lse.fut",
    "examples/ode.fut",
    "examples/particle.fut",
    "examples/saddle.fut",
);

/// The text of a built-in file; the error says that there is none.
pub fn read(path: &Path) -> Result<String, String> {
    let found = FILES.iter().find(|(name, _)| Path::new(name) == path);
    found.map(|(_, text)| text.to_string()).ok_or_else(|| "it is not built in".to_string())
}
