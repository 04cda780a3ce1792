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
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Scratch> {
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

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test")]
mod tests {
    use super::{Scratch, write_whole};
    use std::fs;

    #[test]
    fn a_file_is_written_beside_its_place_and_then_renamed() {
        let Scratch(folder) = &Scratch::new().expect("a folder");
        let file = folder.join("a.txt");
        fs::write(&file, "before").expect("written");
        let mut told = None;
        write_whole(&file, b"after", |beside| told = Some(beside.to_path_buf())).expect("written");
        assert_eq!(fs::read(&file).expect("read"), b"after");
        let told = told.expect("a name");
        assert!(told.parent() == Some(folder) && told != file && !told.exists());
        // Where no file can be, nothing is left.
        write_whole(&folder.join("none").join("a.txt"), b"x", |_| ()).expect_err("no folder");
        write_whole(folder, b"x", |_| ()).expect_err("a folder");
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_files_and_stay() {
        use std::os::unix::fs::symlink;
        let Scratch(folder) = &Scratch::new().expect("a folder");
        fs::create_dir(folder.join("inner")).expect("a folder");
        for (link, to) in [("a", "inner/b"), ("inner/b", "c"), ("again", "a"), ("x", "y"), ("y", "x")] {
            symlink(to, folder.join(link)).expect("a link");
        }
        // The file isn't there the first time.
        for (name, text) in [("a", "1"), ("again", "2")] {
            write_whole(&folder.join(name), text.as_bytes(), |_| ()).expect("written");
            let file = folder.join("inner/c");
            assert!(fs::symlink_metadata(&file).expect("a file").is_file());
            assert_eq!(fs::read_to_string(&file).expect("read"), text);
        }
        write_whole(&folder.join("x"), b"3", |_| ()).expect_err("links in a circle");
        for link in ["a", "inner/b", "again", "x", "y"] {
            assert!(fs::symlink_metadata(folder.join(link)).expect("a link").is_symlink(), "{link}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let Scratch(folder) = &Scratch::new().expect("a folder");
        let place = folder.join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&place).expect("a socket");
        write_whole(&place, b"x", |_| ()).expect_err("a socket is not opened as a file");
        assert!(fs::metadata(&place).expect("there").file_type().is_socket());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let Scratch(folder) = &Scratch::new().expect("a folder");
        let file = folder.join("a");
        fs::write(&file, "before").expect("written");
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
        mode(0o640);
        write_whole(&file, b"after", |_| ()).expect("written");
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
        mode(0o440);
        write_whole(&file, b"lost", |_| ()).expect_err("read-only");
        assert_eq!(fs::read(&file).expect("read"), b"after");
    }
}
