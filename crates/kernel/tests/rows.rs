//! Memory whose rows are made by lanes may lie interleaved, if all that reads it stays in the row of its lane. Programs that do and that
//! do not, as text; values are those of the interpreter, in every bit: nothing here may be added in another order.

use crate::common;

use pullback_core::{FunId, Program, Value};
use pullback_driver::{Session, Settings};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::lower;
use pullback_kernel::schedule::{self, Model, schedule};

/// Rows of `ROW` numbers, which `READ` reads for number `i`, once all of them are there. The last `LAST` numbers are left out.
const PROGRAM: &str = "
entry main [n] [m] (x: [n]f64) (z: [m]f64) : []f64 =
  let ys = map (\\a -> scan (+) 0 (map (\\k -> f64.exp (a * f64.i64 k) + z[0]) (iota ROW))) x
  let most = f64.maximum (map (\\y -> y[0]) ys)
  let flat = flatten ys
  in tabulate (n - LAST) (\\i -> f64.min most (READ))
";

struct Case {
    row: &'static str,
    last: usize,
    read: String,
}

impl Case {
    fn text(&self) -> String {
        let last = self.last.to_string();
        PROGRAM.replace("LAST", &last).replace("READ", &self.read).replace("ROW", self.row)
    }
    fn compile(&self) -> (Program, FunId) {
        let session = Session::compile("rows.fut", &self.text(), Settings::default());
        let session = session.unwrap_or_else(|e| panic!("{}", e.render()));
        let entry = session.entry(None).expect("an entry");
        let ready = session.primal(&entry).expect("no derivatives");
        (ready.program.clone(), ready.fun)
    }
    /// The values at some sizes; whether memory lies interleaved.
    fn check(&self) -> bool {
        let (program, fun) = self.compile();
        let compiled = Compiled::new(&program);
        for n in [self.last, self.last + 1, 8, 9, 37] {
            for m in [5, 6] {
                let x: Vec<f64> = (0..n.max(self.last)).map(|i| ((i * 13) % 29) as f64 * 0.05).collect();
                let args = [Value::f64s(&x), Value::f64s(&vec![0.25; m])];
                let expected = compiled.run(fun, &args, &Options::default()).expect("it runs").results;
                for lanes in [2, 8] {
                    let found = common::results_with(
                        &(program.clone(), fun),
                        &args,
                        1 << 20,
                        lanes,
                        Model::machine(8),
                    );
                    assert_eq!(found, expected, "{n} rows of {m}, {lanes} lanes\n{}", self.text());
                }
            }
        }
        let (mut module, _) = lower(&program, fun).expect("native");
        let model = Model::machine(8);
        let (lanes, most, grain, relaxed, sizes) = (8, 8, None, false, Vec::new());
        schedule(
            &mut module,
            &schedule::Options { lanes, most, model, grain, relaxed, sizes, without: Vec::new() },
        );
        // There is room for a last block of rows.
        module.functions.iter().any(|f| f.regs.iter().any(|r| r.hint == "room"))
    }
}

/// Of a part of the numbers or rows.
fn within(part: &str, count: &str, read: &str) -> String {
    format!("let w = {part} in {}", each(count, read))
}
fn each(count: &str, read: &str) -> String {
    format!("loop s = 0 for j < {count} do s * 0.5 + {read}")
}

#[test]
fn what_stays_in_its_row_may_lie_interleaved() {
    for row in ["5", "m"] {
        let reads = [
            each("ROW", "ys[i, j]"),
            each("ROW", "ys[i, ROW - 1 - j]"),
            each("ROW - 1", "(ys[i, j + 1] - ys[i, j])"),
            each("ROW", "(loop t = 0 for l < j do t * 0.5 + ys[i, l])"),
            each("ROW", "(loop t = 0 for l < j do t * 0.5 + ys[i, j - 1 - l])"),
            within("ys[i, 1 : ROW]", "ROW - 1", "w[j]"),
            within("flat[i * ROW : i * ROW + ROW]", "ROW", "w[j]"),
            each("ROW", "ys[i, (i64.f64 (x[i] * 7) + j) % ROW]"),
        ];
        // Not seen of a row of `m`: that it has more than 3 elements, because the program has not stopped.
        for read in reads.into_iter().chain((row == "5").then(|| each("4", "ys[i, 3]"))) {
            let case = Case { row, last: 0, read };
            assert!(case.check(), "not interleaved: {}", case.text());
        }
    }
}

#[test]
fn what_leaves_its_row_does_not_lie_interleaved() {
    for row in ["5", "m"] {
        let reads = [
            // Windows over two rows.
            within("flat[i * ROW : i * ROW + 2 * ROW]", "2 * ROW", "w[j]"),
            within("flat[i * ROW : i * ROW + 2 * ROW]", "ROW + 1", "w[j]"),
            within("flat[i * ROW : i * ROW + 2 * ROW]", "ROW", "w[j + 1]"),
            within("flat[i * ROW : i * ROW + 2 * ROW]", "ROW", "w[2 * j]"),
            within("flat[i * ROW : i * ROW + 2 * ROW]", "ROW", "w[2 * ROW - 1 - j]"),
            within("flat[i * ROW : i * ROW + 2 * ROW]", "2 * ROW", "w[(i64.f64 (x[i] * 7) + j) % (2 * ROW)]"),
            "let zs = flat[i * ROW : i * ROW + 2 * ROW] in zs[7] - zs[2] * zs[5]".to_string(),
            // In the row in one arm only.
            within(
                "flat[i * ROW : i * ROW + 2 * ROW]",
                "3",
                "(let t = (i64.f64 (x[i] * 7) + j) % (2 * ROW) in if t < ROW then ys[i, t] * 3 else w[t])",
            ),
            // Rows from the one of its number on.
            within("ys[i : i + 3]", "3", "w[j, 1]"),
            within("ys[i : i + 3]", "3", "loop s for l < ROW do s * 0.5 + w[j, l]"),
            within("ys[i + 1 : i + 3]", "ROW", "w[0, j]"),
        ];
        for read in reads {
            let case = Case { row, last: 3, read };
            assert!(!case.check(), "interleaved: {}", case.text());
        }
    }
}

/// Reads at random places: whether they stay in the row is whether the greatest and the least do.
#[test]
fn random_reads_have_the_values_of_the_interpreter() {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let count = std::env::var("COUNT").ok().and_then(|s| s.parse().ok()).unwrap_or(40);
    let mut state: u64 = seed;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..count {
        // Two loops, an index linear in their counters, in a window over four rows.
        let (row, elements) = [(4, "4"), (5, "5"), (6, "6")][below(3) as usize];
        let (a, b) = (1 + below(4) as i64, 1 + below(4) as i64);
        let (p, q) = (below(7) as i64 - 3, below(3) as i64 - 1);
        let least = p.min(0) * (a - 1) + q.min(0) * (b - 1);
        let shift = -least + below(4) as i64;
        let most = p.max(0) * (a - 1) + q.max(0) * (b - 1) + shift;
        let window = 4 * row;
        assert!(most < window);
        let index = format!("{p} * j + {q} * l + {shift}");
        let read = format!(
            "let w = flat[i * ROW : i * ROW + {window}] in loop s = 0 for j < {a} do loop s for l < {b} do s * 0.5 + w[{index}]"
        );
        let case = Case { row: elements, last: 4, read };
        let interleaved = case.check();
        assert!(!interleaved || most < row, "{}", case.text());
        inside += usize::from(interleaved);
        outside += usize::from(!interleaved);
    }
    assert!(inside > count / 8 && outside > count / 8, "{inside} interleaved, {outside} not");
}
