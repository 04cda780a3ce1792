//! Files are written whole or not at all.

use pullback_driver::files::{Scratch, write_whole};
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
