//! What memory a machine and a control group have left, from files as Linux has them.

use pullback_driver::memory::{available, available_below, free_of_machine};
use std::path::{Path, PathBuf};

/// A root with these files.
fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = std::env::temp_dir().join(format!("pullback-memory-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    root
}

fn found(name: &str, files: &[(&str, &str)]) -> Option<u64> {
    let root = root(name, files);
    let found = available_below(&root);
    let _ = std::fs::remove_dir_all(&root);
    found
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal:   24684092 kB\nMemFree:  100 kB\nMemAvailable:   2000 kB\n");

#[test]
fn what_the_machine_has_left() {
    assert_eq!(free_of_machine(MEMINFO.1), Some(2_048_000));
    assert_eq!(free_of_machine("MemTotal: 3 kB\n"), None);
    assert_eq!(found("machine", &[MEMINFO]), Some(2_048_000));
    assert_eq!(found("nothing", &[]), None);
    if cfg!(target_os = "linux") {
        assert!(available().is_some_and(|n| n > 1 << 20 && n < 1 << 50));
    }
}

#[test]
fn what_a_group_has_left() {
    let second = [
        MEMINFO,
        ("proc/self/cgroup", "0::/user/job\n"),
        ("sys/fs/cgroup/user/job/memory.max", "max\n"),
        ("sys/fs/cgroup/user/job/memory.current", "500\n"),
        ("sys/fs/cgroup/user/memory.max", "10000\n"),
        ("sys/fs/cgroup/user/memory.current", "7000\n"),
        ("sys/fs/cgroup/user/memory.stat", "anon 5000\ninactive_file 1000\n"),
    ];
    // 10000 without the 6000 of 7000 that are no files.
    assert_eq!(found("second", &second), Some(4000));
    let first = [
        MEMINFO,
        ("proc/self/cgroup", "4:cpu:/\n3:memory,hugetlb:/docker/1234\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "3500\n"),
    ];
    assert_eq!(found("first", &first), Some(0), "the path of the host is not there");
    let unlimited = [
        MEMINFO,
        ("proc/self/cgroup", "3:memory:/\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "3500\n"),
    ];
    assert_eq!(found("unlimited", &unlimited), Some(2_048_000));
}

#[test]
fn a_group_without_files_says_nothing() {
    assert_eq!(found("none", &[("proc/self/cgroup", "0::/\nnonsense\n")]), None);
    assert!(!Path::new("/nowhere").exists());
}
