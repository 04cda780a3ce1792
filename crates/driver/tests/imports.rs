//! Programs of several files: what each sees of the others, and what can be wrong.

use pullback_base::Code;
use pullback_core::Value;
use pullback_driver::{Session, Settings};
use pullback_interp::core::Options;
use std::collections::BTreeMap;
use std::path::Path;

/// Codes and texts of errors.
type Wrong = Vec<(Code, String)>;

/// A program of files in memory; the first one is the program. How often each other file was read.
fn compile(files: &[(&str, &str)]) -> (Result<Session, Wrong>, BTreeMap<String, usize>) {
    let mut reads = BTreeMap::new();
    let mut read = |path: &Path| {
        let name = path.display().to_string();
        *reads.entry(name.clone()).or_default() += 1;
        let found = files.iter().find(|(n, _)| *n == name);
        found.map(|(_, text)| text.to_string()).ok_or_else(|| "there is none".to_string())
    };
    let (name, text) = files[0];
    let session = Session::compile_with(name, text, &mut read, Settings::default());
    let session = session.map_err(|failed| {
        assert!(failed.diagnostics.iter().all(|d| !d.hints.is_empty()), "what to do next");
        failed.diagnostics.iter().map(|d| (d.code, d.render(&failed.sources))).collect()
    });
    (session, reads)
}

/// The result of the program's only entry point.
fn result(files: &[(&str, &str)], args: &[Value]) -> Vec<Value> {
    let session = compile(files).0.unwrap_or_else(|e| panic!("{e:?}"));
    let entry = session.entry(None).unwrap_or_else(|d| panic!("{}", d.message));
    let ready = session.primal(&entry).unwrap_or_else(|d| panic!("{}", d.message));
    ready.interpret(args, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message)).results
}

/// The code of the only error, and its text.
fn error(files: &[(&str, &str)]) -> (Code, String) {
    let mut found = compile(files).0.err().unwrap_or_else(|| panic!("no error in {files:?}"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_file_sees_what_it_imports() {
    let main = ("a/main.fut", "import \"lib/more\"\nentry f (x: f64) : pair = (twice x, n)");
    let more = (
        "a/lib/more.fut",
        "type pair = (f64, i64)\ndef n = 3i64\ndef twice (x: f64) = x + x\nentry g = 1i32",
    );
    assert_eq!(result(&[main, more], &[Value::f64(2.0)]), [Value::f64(4.0), Value::i64(3)]);
}

#[test]
fn a_file_that_two_others_import_is_read_once() {
    let files = [
        ("main.fut", "import \"b\"\nimport \"./c\"\nentry f = b + c"),
        ("b.fut", "import \"x/../d\"\ndef b = d + 1"),
        ("c.fut", "import \"d\"\ndef c = d + 10"),
        ("d.fut", "def d = 100i64"),
    ];
    assert_eq!(result(&files, &[]), [Value::i64(211)]);
    assert!(compile(&files).1.values().all(|n| *n == 1));
}

#[test]
fn imports_do_not_reach_through() {
    let files = [
        ("main.fut", "import \"b\"\nentry f = c"),
        ("b.fut", "import \"c\"\ndef b = c"),
        ("c.fut", "def c = 1i64\ntype t = i64"),
    ];
    assert_eq!(error(&files).0, Code::UnknownName);
    let types = [("main.fut", "import \"b\"\nentry f (x: t) = x"), files[1], files[2]];
    assert_eq!(error(&types).0, Code::UnknownName);
}

#[test]
fn later_names_hide_earlier_ones_and_change_nothing_elsewhere() {
    let lib =
        ("lib.fut", "def n = 2i64\ntype v = [2]f64\ntype w = (v, v)\ndef sum (x: f64) (y: f64) = x + y");
    let other = ("other.fut", "def n = 3i64");
    // The user's `v` is not that of `w`.
    let main = "import \"lib\"\nimport \"other\"\ntype v = i64\ndef sum (x: i64) = x + n\n\
                entry f (w: w) (v: v) : f64 = w.0[1] + f64.i64 (sum v)";
    let values = [Value::f64s(&[1.0, 2.0]), Value::f64s(&[0.0, 0.0]), Value::i64(4)];
    assert_eq!(result(&[("main.fut", main), lib, other], &values), [Value::f64(9.0)]);
    // Before its own definition, an imported name means what was imported.
    let main = "import \"lib\"\ndef m = n\ndef n = 7i64\nentry f = (m, n)";
    assert_eq!(result(&[("main.fut", main), lib], &[]), [Value::i64(2), Value::i64(7)]);
    // A name of the prelude that an import hides.
    let main = "import \"lib\"\nentry f (x: f64) : f64 = sum x 1";
    assert_eq!(result(&[("main.fut", main), lib], &[Value::f64(2.0)]), [Value::f64(3.0)]);
}

#[test]
fn operators_can_be_imported() {
    let lib = ("lib.fut", "def (+) (x: f64) (y: f64) = x * y\ndef (+^) (x: f64) (y: f64) = x - y");
    let main = ("main.fut", "import \"lib\"\nentry f (x: f64) (y: f64) = (x + y) +^ 1");
    assert_eq!(result(&[main, lib], &[Value::f64(3.0), Value::f64(5.0)]), [Value::f64(14.0)]);
}

#[test]
fn types_of_imports_may_be_recursive_or_have_equal_names() {
    let lib = ("lib.fut", "type list = #nil | #cons i64 list\ntype a = (b, b)\ntype b = i64");
    let main = "import \"lib\"\ntype b = a\ndef sum (l: list) : i64 = match l case #nil -> 0 case #cons x r -> x + sum r\n\
                entry f (x: b) : i64 = sum (#cons x.0 (#cons x.1 #nil))";
    let values = [Value::i64(3), Value::i64(4)];
    assert_eq!(result(&[("main.fut", main), lib], &values), [Value::i64(7)]);
}

#[test]
fn entry_points_are_those_of_the_program_itself() {
    let lib = ("lib.fut", "entry objective (x: f64) = x\ndef main = 1i64");
    let (session, _) =
        compile(&[("main.fut", "import \"lib\"\nentry jacobian (x: f64) = vjp objective x 1"), lib]);
    let entries = session.map(|s| s.entries().into_iter().map(|e| e.name).collect::<Vec<_>>());
    assert_eq!(entries, Ok(vec!["jacobian".to_string()]));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let (code, text) = error(&[("main.fut", "import \"no\"\nentry f = 1i64")]);
    assert_eq!(code, Code::Import);
    assert!(text.contains("main.fut:1:1") && text.contains("cannot read no.fut: there is none"), "{text}");
    let circle = [("a.fut", "import \"b\"\ndef a = 1i64"), ("b.fut", "import \"a\"\ndef b = 2i64")];
    let (code, text) = error(&circle);
    assert_eq!(code, Code::Import);
    assert!(text.contains("b.fut:1:1") && text.contains("a.fut imports itself"), "{text}");
    let lib = ("lib.fut", "def g (x: i64) = y");
    let (code, text) = error(&[("main.fut", "import \"lib\"\nentry f = 1i64"), lib]);
    assert_eq!(code, Code::UnknownName);
    assert!(text.contains("lib.fut:1:18"), "{text}");
    for text in ["import", "import x", "import 3", "entry f = 1i64\nimport \"lib\"", "open import \"lib\""] {
        let code = error(&[("main.fut", text), ("lib.fut", "def g = 1i64")]).0;
        assert!(matches!(code, Code::Syntax | Code::Unsupported), "{text}");
    }
}

#[test]
fn files_of_the_disk_are_found_from_the_folder_of_the_program() {
    let folder = std::env::temp_dir().join(format!("pullback-imports-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("lib")).expect("a folder for temporary files");
    std::fs::write(folder.join("lib/x.fut"), "def x = 5i64").expect("a file can be written");
    std::fs::write(folder.join("binary.fut"), [0xff, 0xfe, 0]).expect("a file can be written");
    let name = folder.join("main.fut").display().to_string();
    let good = Session::compile(&name, "import \"lib/x\"\nentry f = x", Settings::default());
    let code = |text| {
        let failed = Session::compile(&name, text, Settings::default()).expect_err("a wrong path");
        failed.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    let (folder_itself, no_text) = (code("import \"../.\""), code("import \"binary\""));
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    assert!(good.is_ok());
    assert_eq!((folder_itself, no_text), (vec![Code::Import], vec![Code::Import]));
}

#[test]
fn definitions_of_the_prelude_that_only_an_import_names_are_there() {
    let lib = ("lib.fut", "def least [n] (xs: [n]f64) : f64 = head (f64.sort xs)");
    let main = ("main.fut", "import \"lib\"\nentry main (x: f64) : f64 = least [3, x, 2]");
    let out = result(&[main, lib], &[Value::f64(1.5)]);
    assert_eq!(out, [Value::f64(1.5)]);
}

#[test]
fn messages_suggest_names_of_the_prelude_that_the_program_does_not_use() {
    let (_, text) = error(&[("main.fut", "entry main (n: i64) : []i64 = tabulat n (\\i -> i)")]);
    assert!(text.contains("did you mean tabulate?"), "{text}");
}
