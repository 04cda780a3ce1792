//! Where libraries of LLVM are looked for, and what their names say.

use pullback_llvm::internals::{libraries, major};
use pullback_llvm::load::candidates;
use std::path::Path;

#[test]
fn versions_are_read_from_names_and_folders() {
    let of = |path: &str| major(Path::new(path));
    assert_eq!(of("/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1"), Some(15));
    assert_eq!(of("/usr/lib/x86_64-linux-gnu/libLLVM.so.22.1"), Some(22));
    assert_eq!(of("/usr/lib/llvm-19/lib/libLLVM.so"), Some(19));
    assert_eq!(of("/opt/lib/libLLVM.so"), None);
}

#[test]
fn no_library_is_found_twice() {
    let real: Vec<_> = candidates().iter().filter_map(|p| p.canonicalize().ok()).collect();
    for (k, path) in real.iter().enumerate() {
        assert!(!real[..k].contains(path), "{}", path.display());
    }
}

#[test]
fn linker_scripts_are_no_libraries() {
    let folder = std::env::temp_dir().join(format!("pullback-find-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    std::fs::write(folder.join("libLLVM-22.so"), "INPUT(libLLVM.so.22.1)").expect("written");
    let large = folder.join("libLLVM.so.22.1");
    std::fs::write(&large, vec![0; 1 << 20]).expect("written");
    let mut found = Vec::new();
    libraries(&folder, &mut found);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(found, [large]);
}
