//! How much memory there is to take.
//!
//! Systems promise more memory than they have, and stop a process that uses it; so runs are held to what is left before they
//! take any: of the machine, and of the container or session (control group) that the process is in. Where a system does not
//! say, there is no such limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that this process can take now; `None` if the system does not say.
pub fn available() -> Option<u64> {
    available_below(Path::new("/"))
}

/// The same, from files below another root.
fn available_below(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| free_of_machine(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups =
        groups.lines().flat_map(|line| group_folders(root, line)).filter_map(|f| free_of_group(&f));
    machine.into_iter().chain(of_groups).min()
}

/// What Linux estimates can be taken without swapping.
fn free_of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The folders of the memory of a group and of those around it, from a line `number:controllers:/path`. In a container the
/// path may be that of the host: then the group is where the folders begin.
fn group_folders(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let bases: &[&str] = match controllers {
        "" => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
        c if c.split(',').any(|c| c == "memory") => &["sys/fs/cgroup/memory"],
        _ => &[],
    };
    let inside = Path::new(path.trim_start_matches('/'));
    let below = |base: &&str| {
        let base = root.join(base);
        inside.ancestors().map(move |a| base.join(a)).collect::<Vec<_>>()
    };
    bases.iter().flat_map(below).collect()
}

/// What a group has left: its limit, without what is in use and cannot be dropped.
fn free_of_group(folder: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    // The second version of control groups, then the first.
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let field = |name: &str| {
        stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let files = field("total_inactive_file").or_else(|| field("inactive_file")).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::{available, available_below, free_of_machine};
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
}
