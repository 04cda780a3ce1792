//! How many parts a loop is divided into: by its work, of which all is counted that is known before it.

use crate::common::compiled;
use crate::common::counted::{all, loops, named};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{Block, Function, Ins, Module, Operand, Reg, lower, print};
use pullback_prim::{Op, Prim};
use std::collections::BTreeSet;

/// The code of a step over a grid of this size.
fn step(rows: i64, columns: i64) -> Module {
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
    module
}

/// The first loop in parts: their number.
fn parts(f: &Function) -> Operand {
    let count = |ins: &Ins| if let Ins::Chunks { count, .. } = ins { Some(*count) } else { None };
    all(&f.body).into_iter().find_map(count).expect("parts")
}

/// What the number of parts of the first loop in parts is computed from.
fn made_of(f: &Function) -> BTreeSet<Reg> {
    let mut found: BTreeSet<Reg> = parts(f).as_reg().into_iter().collect();
    loop {
        let before = found.len();
        for ins in all(&f.body) {
            if ins.blocks().is_empty() && ins.sets().iter().any(|r| found.contains(r)) {
                ins.reads(&mut |a| found.extend(a.as_reg()));
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether there is a loop over the two sides of a loop that was cut.
fn is_cut(module: &Module) -> bool {
    named(module, "side").into_iter().any(loops)
}

/// Inner loops that are cut at their borders end at numbers that the loop around them computes.
#[test]
fn the_work_of_cut_rows_counts() {
    let code = step(512, 1024);
    assert!(is_cut(&code), "{}", print(&code));
    let f = code.functions.iter().next().expect("a function");
    let found = made_of(f);
    assert!(found.contains(&f.params[1]) && found.contains(&f.params[2]), "{found:?}\n{}", print(&code));
}

/// A loop that is one part finds that out without a division: in small calls these would take longer than the loop.
#[test]
fn one_part_is_found_without_divisions() {
    let code = step(512, 1024);
    let mut depths = (Vec::new(), Vec::new());
    code.functions.iter().for_each(|f| depths_of(&f.body, 0, &mut depths));
    let (parts, divisions) = depths;
    let first = parts.first().expect("parts");
    assert!(!divisions.is_empty() && divisions.iter().all(|d| d > first), "{divisions:?}\n{}", print(&code));
}

/// In how many blocks calls for parts are, and divisions by what is no constant.
fn depths_of(block: &Block, depth: usize, found: &mut (Vec<usize>, Vec<usize>)) {
    for ins in block {
        match ins {
            Ins::Chunks { .. } => found.0.push(depth),
            Ins::Prim { prim: Prim::Op(Op::Quot, _), args, .. } if args[1].as_i64().is_none() => {
                found.1.push(depth);
            }
            _ => {}
        }
        for inner in ins.blocks() {
            depths_of(inner, depth + 1, found);
        }
    }
}

/// Few long rows are cut at their borders; very few, and short ones, are not.
#[test]
fn few_long_rows_are_cut() {
    let is_cut = |rows, columns| is_cut(&step(rows, columns));
    assert!(is_cut(16, 1024) && is_cut(8, 64) && is_cut(64, 64));
    assert!(!is_cut(4, 1024) && !is_cut(4, 4));
}
