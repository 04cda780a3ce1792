//! Small functions as kernel text, with what is expected of their claims.

use pullback_kernel::verify::verify;
use pullback_kernel::{Module, read};
use std::path::Path;

/// A file of a folder of the tests.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) module: Module,
    /// How many claims are shown, and why others are not: `// shown 2, open Row Base`.
    pub(crate) expected: (usize, Vec<String>),
}

/// The files of a folder, in which the verifier has no alarm.
pub(crate) fn files(folder: &str) -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).expect("a folder").flatten().map(|file| file.path()).collect();
    paths.sort();
    let file = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a text");
        let path = path.display().to_string();
        let module = read(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
        let alarms = verify(&module).alarms;
        assert!(alarms.is_empty(), "{path}: {}", alarms[0]);
        File { path, module, expected: expected(&text) }
    };
    paths.iter().map(file).collect()
}

fn expected(text: &str) -> (usize, Vec<String>) {
    let line = text.lines().next().and_then(|line| line.strip_prefix("// shown ")).expect("what is expected");
    let (shown, open) = line.split_once(", open ").unwrap_or((line, ""));
    (shown.parse().expect("a number"), open.split_whitespace().map(str::to_string).collect())
}
