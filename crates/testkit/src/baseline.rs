//! The C programs of `benches/baseline`: built by gcc if there is one, run as processes.

use crate::workloads::Workload;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How the programs are compiled.
pub const FLAGS: &[&str] = &["-O3", "-march=native", "-ffast-math"];

/// The built program. Its folder is removed when it is dropped.
#[derive(Debug)]
pub struct Baseline {
    folder: PathBuf,
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // What is left behind is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The times of some runs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The least.
    pub minimum: f64,
    /// The middle one.
    pub median: f64,
}

impl Baseline {
    /// Compiles all workloads; `None` where there is no gcc.
    ///
    /// # Errors
    /// What gcc says about programs it does not compile, and files that cannot be written.
    pub fn build() -> Result<Option<Baseline>, String> {
        static BUILT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("pullback-baseline-{}-{}", std::process::id(), BUILT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let baseline = Baseline { folder };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/baseline");
        let listed = std::fs::read_dir(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let mut files: Vec<PathBuf> = listed
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "c"))
            .collect();
        files.sort();
        let gcc =
            Command::new("gcc").args(FLAGS).args(files).arg("-lm").arg("-o").arg(baseline.program()).output();
        match gcc {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("gcc: {error}")),
            Ok(output) if output.status.success() => Ok(Some(baseline)),
            Ok(output) => Err(format!("gcc: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn program(&self) -> PathBuf {
        self.folder.join("baseline")
    }

    /// The times of so many runs.
    ///
    /// # Errors
    /// A process that fails, or says nothing of its times.
    pub fn times(&self, workload: &Workload, sizes: &[usize], runs: usize) -> Result<Times, String> {
        self.run(workload, sizes, runs, Path::new("-"))
    }

    /// The results.
    ///
    /// # Errors
    /// As [`Baseline::times`].
    pub fn results(&self, workload: &Workload, sizes: &[usize]) -> Result<Vec<f64>, String> {
        let file = self.folder.join("results");
        self.run(workload, sizes, 1, &file)?;
        let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let number = |b: &[u8]| f64::from_ne_bytes(b.try_into().unwrap_or_default());
        Ok(bytes.chunks_exact(8).map(number).collect())
    }

    fn run(&self, workload: &Workload, sizes: &[usize], runs: usize, file: &Path) -> Result<Times, String> {
        let output = Command::new(self.program())
            .args([workload.name, &runs.to_string()])
            .arg(file)
            .args(sizes.iter().map(usize::to_string))
            .output()
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let seconds = |name: &str| {
            let rest = text.split(&format!("\"{name}\": ")).nth(1)?;
            let number: String = rest.chars().take_while(|c| c.is_ascii_digit()).collect();
            number.parse::<f64>().ok().map(|ns| ns * 1e-9)
        };
        match (seconds("minimum_ns"), seconds("median_ns")) {
            (Some(minimum), Some(median)) if output.status.success() => Ok(Times { minimum, median }),
            _ => {
                Err(format!("{} {sizes:?}: {text}{}", workload.name, String::from_utf8_lossy(&output.stderr)))
            }
        }
    }
}
