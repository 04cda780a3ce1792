//! Objects on disk, so that a program is compiled once.
//!
//! A file holds an object together with everything that it was made from: the text, the compiler, the processor, the level. It
//! is used only if all of that is equal, so a clash of names does no harm. Damaged files are not used. Nothing here fails:
//! without a folder to write to, every program is compiled.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The first bytes of a file: its format.
const HEADER: &[u8] = b"pullback object 1\n";

/// The oldest files go when all together have more bytes than this.
const MOST_BYTES: u64 = 256 << 20;

/// The folder for objects of this user: `pullback` in `XDG_CACHE_HOME` or in `~/.cache`.
pub fn folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|p| !p.is_empty()).map(PathBuf::from);
    Some(base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?.join("pullback"))
}

/// The file of what is made from a source.
fn file(folder: &Path, source: &str) -> PathBuf {
    folder.join(format!("{:016x}.object", hash(source.as_bytes())))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The object that was made from this source, if it is there.
pub(crate) fn read(folder: &Path, source: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(file(folder, source)).ok()?;
    let rest = bytes.strip_prefix(HEADER)?;
    let (length, rest) = rest.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (of, object) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let is_whole = of == source.as_bytes() && hash(object) == u64::from_le_bytes(*sum);
    is_whole.then(|| object.to_vec())
}

/// Keeps an object. The file appears whole or not at all, also where several processes write it.
pub(crate) fn write(folder: &Path, source: &str, object: &[u8]) {
    let mut bytes = HEADER.to_vec();
    bytes.extend((source.len() as u64).to_le_bytes());
    bytes.extend(hash(object).to_le_bytes());
    bytes.extend(source.as_bytes());
    bytes.extend(object);
    let to = file(folder, source);
    let unfinished = to.with_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&unfinished, bytes))
        .and_then(|()| fs::rename(&unfinished, &to));
    if written.is_err() {
        // A disk may be full, or the folder not ours: then nothing is kept.
        let _ = fs::remove_file(&unfinished);
        return;
    }
    trim(folder, MOST_BYTES);
}

/// Removes the oldest files until the others have at most so many bytes.
fn trim(folder: &Path, most: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let about = fs::metadata(&path).ok()?;
            let is_ours = path.extension().is_some_and(|e| e == "object");
            is_ours.then_some((about.modified().ok()?, about.len(), path))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in files {
        if total <= most {
            return;
        }
        if fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{file, read, trim, write};
    use std::fs;
    use std::path::PathBuf;

    /// A new folder.
    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pullback-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn what_was_written_is_read_for_the_same_source_only() {
        let folder = folder("read");
        assert_eq!(read(&folder, "a"), None);
        write(&folder, "a", b"object of a");
        assert_eq!(read(&folder, "a").as_deref(), Some(&b"object of a"[..]));
        assert_eq!(read(&folder, "b"), None);
        // As if the names of the two clashed.
        fs::rename(file(&folder, "a"), file(&folder, "b")).expect("renamed");
        assert_eq!(read(&folder, "b"), None);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn damaged_files_are_not_used() {
        let folder = folder("damaged");
        write(&folder, "a", b"object of a");
        let whole = fs::read(file(&folder, "a")).expect("written");
        for k in 0..whole.len() {
            let mut changed = whole.clone();
            changed[k] ^= 1;
            fs::write(file(&folder, "a"), changed).expect("written");
            assert_eq!(read(&folder, "a"), None, "byte {k}");
            fs::write(file(&folder, "a"), &whole[..k]).expect("written");
            assert_eq!(read(&folder, "a"), None, "{k} bytes");
        }
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn the_oldest_files_go_first() {
        let folder = folder("oldest");
        for source in ["a", "b", "c"] {
            write(&folder, source, &[7; 1000]);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        trim(&folder, 2500);
        let left = ["a", "b", "c"].map(|source| read(&folder, source).is_some());
        assert_eq!(left, [false, true, true]);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
