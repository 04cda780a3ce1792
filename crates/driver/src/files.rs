//! Output files: there whole or not at all, and nothing else is lost by writing them.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Links are followed as far as systems do.
const MOST_LINKS: usize = 40;

/// Writes a file whole or not at all: first beside it, then renamed. A link stays a link, the file it names is written;
/// a file that exists keeps its permissions. What is no file (a device such as `/dev/null`, a pipe, `/dev/stdout`) is written
/// into: a file in its place would be the end of it.
///
/// `begin` is told the name of the file that is not yet in its place; what it gives is dropped when there is no such file any
/// more.
///
/// # Errors
/// Those of the system; a file that nobody may write is not replaced. A file that was there is then as it was.
pub fn write_whole<G>(path: &Path, bytes: &[u8], begin: impl FnOnce(&Path) -> G) -> Result<()> {
    let before = fs::metadata(path).ok();
    let path = match destination(path) {
        Some(file) if before.as_ref().is_none_or(fs::Metadata::is_file) => file,
        _ => return fs::write(path, bytes),
    };
    if before.as_ref().is_some_and(|b| b.permissions().readonly()) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let _begun = begin(&beside);
    let keep = || before.map_or(Ok(()), |b| fs::set_permissions(&beside, b.permissions()));
    let written = fs::write(&beside, bytes).and_then(|()| keep()).and_then(|()| fs::rename(&beside, &path));
    written.inspect_err(|_| {
        // Best effort: the file beside it is of no use, and the first error is the one to report.
        let _ = fs::remove_file(&beside);
    })
}

/// The file that a name stands for when links are followed, whether it exists or not; `None` where the way leads through names
/// of open files.
fn destination(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if path.starts_with("/proc") || path.starts_with("/dev/fd") {
            return None;
        }
        match fs::read_link(&path) {
            // A relative link starts at the folder of its file.
            Ok(to) => path = path.with_file_name("").join(to),
            Err(_) => return Some(path),
        }
    }
    None
}

/// A folder for temporary files that is removed in the end.
// Tests need one, too; it is nothing for users.
#[doc(hidden)]
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new folder of this process.
    pub fn new() -> Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("pullback-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: it is a folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
