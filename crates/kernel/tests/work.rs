//! How many parts a loop is divided into: by its work, of which all is counted that is known before it.

#[path = "common/scheduled.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod scheduled;

use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{lower, print};
use scheduled::compiled;
use std::collections::BTreeSet;

/// The code of a step over a grid of this size.
fn step(rows: i64, columns: i64) -> String {
    let text = "
entry main [n] [m] (a: [n][m]f64) : [n][m]f64 =
  tabulate_2d n m (\\i j ->
    if i == 0 || i == n - 1 || j == 0 || j == m - 1 then a[i, j]
    else a[i - 1, j] + a[i + 1, j] + a[i, j - 1] * a[i, j + 1])";
    let program = compiled(text);
    let (mut module, id) = lower(&program.0, program.1).expect("native");
    let sizes = vec![(id, vec![None, Some(rows), Some(columns)])];
    let grain = Some(30000.0);
    let options = schedule::Options { sizes, grain, ..schedule::Options::new(8, Model::machine(8)) };
    schedule(&mut module, &options);
    print(&module)
}

/// The names in a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.contains('_'))
}

/// What the number of parts of the first loop in parts is computed from.
fn made_of(code: &str) -> BTreeSet<String> {
    let count = code.lines().find_map(|l| l.trim().strip_prefix("chunks 0 .. ")).expect("parts");
    let mut found: BTreeSet<String> = names(count).take(1).map(String::from).collect();
    loop {
        let before = found.len();
        for (name, value) in code.lines().filter_map(|l| l.trim().split_once(" = ")) {
            if found.contains(name) {
                found.extend(names(value).map(String::from));
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Inner loops that are cut at their borders end at numbers that the loop around them computes.
#[test]
fn the_work_of_cut_rows_counts() {
    let code = step(512, 1024);
    assert!(code.contains("side_"), "{code}");
    let found = made_of(&code);
    assert!(found.contains("a_1") && found.contains("a_2"), "{found:?}\n{code}");
}

/// A loop that is one part finds that out without a division: in small calls these would take longer than the loop.
#[test]
fn one_part_is_found_without_divisions() {
    let code = step(512, 1024);
    let depth = |l: &str| l.len() - l.trim_start().len();
    let parts = code.lines().find(|l| l.contains("chunks 0 .. ")).map(depth).expect("parts");
    let divisions: Vec<&str> = code.lines().filter(|l| l.contains("quot.i64(")).collect();
    let by_constant = |l: &&&str| l.trim_end().ends_with("i64)");
    let (constant, others): (Vec<&str>, Vec<&str>) = divisions.iter().partition(by_constant);
    assert!(!others.is_empty(), "{constant:?}\n{code}");
    assert!(others.iter().all(|l| depth(l) > parts), "{others:?}\n{code}");
}

/// Few long rows are cut at their borders; very few, and short ones, are not.
#[test]
fn few_long_rows_are_cut() {
    let is_cut = |rows, columns| step(rows, columns).contains("side_");
    assert!(is_cut(16, 1024) && is_cut(8, 64) && is_cut(64, 64));
    assert!(!is_cut(4, 1024) && !is_cut(4, 4));
}
