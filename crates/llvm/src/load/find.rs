//! Where a libLLVM may be.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A library and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// As `22.1.2`, or what its name says.
    pub version: String,
}

/// Versions that are known to work, best first.
const VERSIONS: std::ops::RangeInclusive<u32> = 15..=22;

/// The variable of the environment that names a library. If it is set, no other is looked for.
const VARIABLE: &str = "PULLBACK_LLVM";

/// Files smaller than this are linker scripts.
const SMALLEST: u64 = 1 << 20;

/// Libraries in the order in which they are tried: the one that `PULLBACK_LLVM` names, alone; else those of the toolchains of
/// rustup, a stable one first, or that of another Rust; those of the system, the newest version first.
pub fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|p| !p.is_empty()) {
        return vec![path.into()];
    }
    let mut out = Vec::new();
    for folder in toolchains() {
        libraries(&folder.join("lib"), &mut out);
    }
    // Asking the compiler takes longer than all the rest, so it comes after looking.
    if out.is_empty()
        && let Some(sysroot) = sysroot()
    {
        libraries(&sysroot.join("lib"), &mut out);
    }
    let mut of_system = Vec::new();
    for folder in system_folders() {
        libraries(&folder, &mut of_system);
    }
    of_system.retain(|path| major(path).is_some_and(|v| VERSIONS.contains(&v)));
    of_system.sort_by_key(|path| std::cmp::Reverse(major(path)));
    out.extend(of_system);
    let mut seen = Vec::new();
    out.retain(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    out
}

/// The toolchains of rustup, stable ones first.
fn toolchains() -> Vec<PathBuf> {
    let home = std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".rustup")));
    let mut out = home.map_or_else(Vec::new, |home| folders_in(&home.join("toolchains")));
    let is_stable = |path: &PathBuf| {
        path.file_name().and_then(|n| n.to_str()).is_some_and(|name| name.starts_with("stable"))
    };
    out.sort_by_key(|path| !is_stable(path));
    out
}

/// The folder of the Rust in use, if there is one.
fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    (output.status.success() && path.is_absolute()).then_some(path)
}

/// The folders of a system that may have a libLLVM.
fn system_folders() -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = VERSIONS.rev().map(|v| format!("/usr/lib/llvm-{v}/lib").into()).collect();
    let fixed = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
        "/opt/homebrew/opt/llvm/lib",
        "/usr/local/opt/llvm/lib",
    ];
    out.extend(fixed.iter().map(PathBuf::from));
    out
}

/// The linkers that come with toolchains of Rust, in the order of their libraries. They need `-flavor gnu`.
pub fn linkers() -> Vec<PathBuf> {
    let mut out = Vec::new();
    for toolchain in toolchains() {
        for target in folders_in(&toolchain.join("lib/rustlib")) {
            let linker = target.join("bin/rust-lld");
            if linker.is_file() {
                out.push(linker);
            }
        }
    }
    out
}

/// What a folder holds, in order of names; nothing if it cannot be read.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut out: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    out.sort();
    out
}

/// The libraries of LLVM in a folder.
pub fn libraries(folder: &Path, out: &mut Vec<PathBuf>) {
    for path in folders_in(folder) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let rest = name.strip_prefix("libLLVM").unwrap_or("");
        let is_library = rest.starts_with(['.', '-']) && (rest.contains(".so") || rest.ends_with(".dylib"));
        if is_library && std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() >= SMALLEST) {
            out.push(path);
        }
    }
}

/// The version that a path says: the first number of the name of the file, or of a folder `llvm-15`.
pub fn major(path: &Path) -> Option<u32> {
    let first_number = |text: &str| {
        let digits: String =
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let name = path.file_name()?.to_str()?;
    first_number(name).or_else(|| {
        let folder =
            path.components().filter_map(|c| c.as_os_str().to_str()).find_map(|c| c.strip_prefix("llvm-"));
        folder.and_then(first_number)
    })
}

/// The version of a library that cannot say it.
pub(super) fn version_in_name(path: &Path) -> String {
    let real = path.canonicalize();
    match major(real.as_deref().unwrap_or(path)) {
        Some(version) => version.to_string(),
        None => "of unknown version".to_string(),
    }
}
