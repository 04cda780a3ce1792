//! Words of arguments, as users of an executor give them.

use super::{Make, Setup, floats};
use pullback_base::index::Index;
use pullback_base::{FileId, RuntimeErrorKind};
use pullback_core::{FunId, read};
use pullback_kernel::lower;

const PROGRAM: &str = "
fun main(p: (f64, []f64), a: [][]f64): f64 {
  let x: f64 = proj(p, 0)
  let w: []f64 = proj(p, 1)
  let n: i64 = size(w, 0)
  let rows: []f64 = map n [a, w] (row: []f64, v: f64) {
    let m: i64 = size(row, 0)
    let first: f64 = reduce m [0.0f64] [row] (s: f64, t: f64) {
      let twice: f64 = mul.f64(2.0f64, s)
      let u: f64 = add.f64(twice, t)
      in u
    }
    let y: f64 = mul.f64(first, v)
    in y
  }
  let sum: f64 = reduce n [0.0f64] [rows] (s: f64, t: f64) { let u: f64 = add.f64(s, t) in u }
  let z: f64 = mul.f64(x, sum)
  in z
}
";

/// Arrays whose strides are not those of row-major order stop the call; those of a matrix without elements are any.
pub fn arguments_in_another_order_are_refused(make: Make<'_>) {
    let program = read(FileId::new(0), PROGRAM).expect("a program");
    let fun: FunId = program.funs.ids().next().expect("a function");
    let (module, id) = lower(&program, fun).expect("native");
    // 0.5, the weights 1, 10, 100; the rows (1, 2), (3, 4), (5, 6).
    let (w, a) = (floats(&[1.0, 10.0, 100.0]), floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let (w, a) = (w.as_ptr().expose_provenance() as u64, a.as_ptr().expose_provenance() as u64);
    let x = 0.5f64.to_bits();
    for executable in make(&module, Setup::default()) {
        let mut session = executable.session();
        let mut call = |args: [u64; 9]| {
            let mut results = [0];
            // SAFETY: all words are those of numbers that are alive, and no place is outside of them.
            unsafe { session.call(id, &args, &mut results, None) }.map(|()| f64::from_bits(results[0]))
        };
        let name = executable.name();
        // (2 + 2) + 10 (6 + 4) + 100 (10 + 6)
        assert_eq!(call([x, w, 3, 1, a, 3, 2, 2, 1]), Ok(852.0), "{name}");
        // One row, one column, and none.
        assert_eq!(call([x, w, 1, 1, a, 1, 2, 2, 1]), Ok(2.0), "{name}");
        assert_eq!(call([x, w, 3, 1, a, 3, 1, 1, 1]), Ok(0.5 * 321.0), "{name}");
        assert_eq!(call([x, w, 0, 1, a, 0, 2, 7, 7]), Ok(0.0), "{name}");
        assert_eq!(call([x, w, 3, 1, a, 3, 0, 7, 7]), Ok(0.0), "{name}");
        // The transposition of two rows, every second row, columns backwards, every second weight, one weight for all.
        let backwards = (-1i64) as u64;
        for words in [
            [x, w, 3, 1, a, 3, 2, 1, 3],
            [x, w, 2, 1, a, 2, 1, 2, 1],
            [x, w, 3, 1, a + 8, 3, 2, 2, backwards],
            [x, w, 2, 2, a, 2, 2, 2, 1],
            [x, w, 3, 0, a, 3, 2, 2, 1],
        ] {
            let e = call(words).expect_err("other strides");
            assert_eq!(e.kind, RuntimeErrorKind::ShapeMismatch, "{name}: {words:?}");
            assert!(e.message.contains("it must be in row-major order"), "{name}: {e}");
        }
    }
}
