//! Objects on disk, so that a program is compiled once.
//!
//! A file holds the objects of a program together with everything that they were made from: the texts, the compiler, the processor, the level. It
//! is used only if all of that is equal, and holds verified code only, so a clash of names does no harm. Damaged files are not used. A file is written
//! beside its place and then renamed, so that it is there whole or not at all, whoever else writes it and whenever the process
//! is killed; what a killed process leaves is removed later. Nothing here fails: without a folder to write to, every program
//! is compiled.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The first bytes of a file: its format.
const HEADER: &[u8] = b"pullback object 3\n";

/// The oldest files go when all together have more bytes than this.
const MOST_BYTES: u64 = 256 << 20;

/// The ending of whole files.
const WHOLE: &str = "object";

/// The ending of files that are being written.
const PART: &str = "part";

/// A file that is being written for longer than this belongs to a process that was killed.
const ABANDONED: Duration = Duration::from_secs(600);

/// The folder for objects of this user: `pullback` in `XDG_CACHE_HOME` or in `~/.cache`.
pub fn folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|p| !p.is_empty()).map(PathBuf::from);
    Some(base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?.join("pullback"))
}

/// The file of what is made from a source.
fn file(folder: &Path, source: &str) -> PathBuf {
    folder.join(format!("{:016x}.{WHOLE}", hash(source.as_bytes())))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The objects that were made from this source, if they are there.
pub(crate) fn read(folder: &Path, source: &str) -> Option<Vec<Vec<u8>>> {
    let bytes = fs::read(file(folder, source)).ok()?;
    let rest = bytes.strip_prefix(HEADER)?;
    let (length, rest) = rest.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (of, mut objects) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    if of != source.as_bytes() || hash(objects) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut out = Vec::new();
    while let Some((length, rest)) = objects.split_first_chunk() {
        let (object, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        out.push(object.to_vec());
        objects = rest;
    }
    Some(out)
}

/// Keeps objects. The file appears whole or not at all, also where several processes write it.
pub(crate) fn write(folder: &Path, source: &str, objects: &[Vec<u8>]) {
    let mut all = Vec::new();
    for object in objects {
        all.extend((object.len() as u64).to_le_bytes());
        all.extend(object);
    }
    let mut bytes = HEADER.to_vec();
    bytes.extend((source.len() as u64).to_le_bytes());
    bytes.extend(hash(&all).to_le_bytes());
    bytes.extend(source.as_bytes());
    bytes.extend(all);
    let to = file(folder, source);
    let unfinished = unfinished(&to);
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&unfinished, bytes))
        .and_then(|()| fs::rename(&unfinished, &to));
    if written.is_err() {
        // A disk may be full, or the folder not ours: then nothing is kept.
        let _ = fs::remove_file(&unfinished);
        return;
    }
    trim(folder, MOST_BYTES, ABANDONED);
}

/// A name beside a file that no other process and no other thread of this one writes.
fn unfinished(to: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    to.with_extension(format!("{}-{number}.{PART}", std::process::id()))
}

/// A file of ours in the folder.
struct Kept {
    modified: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// The files with this ending, the oldest first.
fn files(folder: &Path, ending: &str) -> Vec<Kept> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut out: Vec<Kept> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let about = fs::metadata(&path).ok()?;
            let is_ours = about.is_file() && path.extension().is_some_and(|e| e == ending);
            is_ours.then_some(Kept { modified: about.modified().ok()?, bytes: about.len(), path })
        })
        .collect();
    out.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
    out
}

/// Removes what killed processes left, and the oldest files until the others have at most so many bytes.
fn trim(folder: &Path, most: u64, abandoned: Duration) {
    for part in files(folder, PART) {
        if part.modified.elapsed().is_ok_and(|age| age > abandoned) {
            let _ = fs::remove_file(part.path);
        }
    }
    let whole = files(folder, WHOLE);
    let mut total: u64 = whole.iter().map(|kept| kept.bytes).sum();
    for kept in whole {
        if total <= most {
            return;
        }
        if fs::remove_file(kept.path).is_ok() {
            total -= kept.bytes;
        }
    }
}

/// What the folder of a user holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Objects.
    pub objects: usize,
    /// All their bytes.
    pub bytes: u64,
    /// Why nothing can be written there, if that is so.
    pub error: Option<String>,
}

/// Looks at a folder, and tries to write to it.
pub fn contents(folder: &Path) -> Contents {
    let probe = unfinished(&folder.join("probe"));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&probe, HEADER));
    let _ = fs::remove_file(&probe);
    let whole = files(folder, WHOLE);
    Contents {
        objects: whole.len(),
        bytes: whole.iter().map(|kept| kept.bytes).sum(),
        error: written.err().map(|e| e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{ABANDONED, contents, file, files, read, trim, unfinished, write};
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    /// The objects of a program.
    fn objects() -> Vec<Vec<u8>> {
        vec![b"object of a".to_vec(), Vec::new(), b"another".to_vec()]
    }

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
        write(&folder, "a", &objects());
        assert_eq!(read(&folder, "a"), Some(objects()));
        assert_eq!(read(&folder, "b"), None);
        // As if the names of the two clashed.
        fs::rename(file(&folder, "a"), file(&folder, "b")).expect("renamed");
        assert_eq!(read(&folder, "b"), None);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn damaged_files_are_not_used() {
        let folder = folder("damaged");
        write(&folder, "a", &objects());
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
            write(&folder, source, &[vec![7; 1000]]);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        trim(&folder, 2500, ABANDONED);
        let left = ["a", "b", "c"].map(|source| read(&folder, source).is_some());
        assert_eq!(left, [false, true, true]);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_others_write_is_not() {
        let folder = folder("killed");
        write(&folder, "a", &objects());
        let part = unfinished(&file(&folder, "b"));
        fs::write(&part, b"half").expect("written");
        // Others may be writing it.
        trim(&folder, 2500, ABANDONED);
        assert!(part.exists());
        assert_eq!(read(&folder, "b"), None);
        std::thread::sleep(Duration::from_millis(20));
        trim(&folder, 2500, Duration::from_millis(1));
        assert!(!part.exists());
        assert!(read(&folder, "a").is_some());
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_kept_and_it_is_said() {
        let folder = folder("file");
        fs::write(&folder, b"a file, no folder").expect("written");
        write(&folder, "a", &objects());
        assert_eq!(read(&folder, "a"), None);
        assert!(contents(&folder).error.is_some());
        fs::remove_file(&folder).expect("removed");
        write(&folder, "a", &objects());
        let found = contents(&folder);
        assert_eq!((found.objects, found.error), (1, None));
        assert!(found.bytes > 11);
        // A folder where the file belongs.
        fs::create_dir_all(file(&folder, "b").join("inside")).expect("a folder");
        write(&folder, "b", &objects());
        assert_eq!(read(&folder, "b"), None);
        assert_eq!(files(&folder, "part").len(), 0);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
