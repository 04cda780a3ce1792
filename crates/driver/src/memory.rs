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
// Only tests have another root.
#[doc(hidden)]
pub fn available_below(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| free_of_machine(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups =
        groups.lines().flat_map(|line| group_folders(root, line)).filter_map(|f| free_of_group(&f));
    machine.into_iter().chain(of_groups).min()
}

/// What Linux estimates can be taken without swapping.
// Only tests have such a text.
#[doc(hidden)]
pub fn free_of_machine(text: &str) -> Option<u64> {
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
