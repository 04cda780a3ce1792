//! Objects on disk: read for the same source only, and never damaged ones.

use pullback_cpu::cache::{ABANDONED, contents, file, files, read, trim, unfinished, write};
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
