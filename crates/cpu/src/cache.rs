//! Objects on disk, so that a program is compiled once.
//!
//! A file holds the objects of a program together with everything that they were made from: the texts, the compiler, the processor, the level. It
//! is used only if all of that is equal, and holds verified code only, so a clash of names does no harm. Damaged files are not used. A file is written
//! beside its place and then renamed, so that it is there whole or not at all, whoever else writes it and whenever the process
//! is killed; what a killed process leaves is removed later. Nothing here fails: without a folder to write to, every program
//! is compiled.

// What is hidden from the documentation is for executables, and for the tests of this crate.

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
#[doc(hidden)]
pub const ABANDONED: Duration = Duration::from_secs(600);

/// The folder for objects of this user: `pullback` in `XDG_CACHE_HOME` or in `~/.cache`.
pub fn folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|p| !p.is_empty()).map(PathBuf::from);
    Some(base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?.join("pullback"))
}

/// The file of what is made from a source.
#[doc(hidden)]
pub fn file(folder: &Path, source: &str) -> PathBuf {
    folder.join(format!("{:016x}.{WHOLE}", hash(source.as_bytes())))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The objects that were made from this source, if they are there.
#[doc(hidden)]
pub fn read(folder: &Path, source: &str) -> Option<Vec<Vec<u8>>> {
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
#[doc(hidden)]
pub fn write(folder: &Path, source: &str, objects: &[Vec<u8>]) {
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
#[doc(hidden)]
pub fn unfinished(to: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    to.with_extension(format!("{}-{number}.{PART}", std::process::id()))
}

/// A file of ours in the folder.
#[doc(hidden)]
#[derive(Debug)]
pub struct Kept {
    modified: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// The files with this ending, the oldest first.
#[doc(hidden)]
pub fn files(folder: &Path, ending: &str) -> Vec<Kept> {
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
#[doc(hidden)]
pub fn trim(folder: &Path, most: u64, abandoned: Duration) {
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
