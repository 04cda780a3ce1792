//! The output of the chapters' algorithms, written by hand as text: the checker accepts it, reader and printer invert
//! each other on it, and the interpreter runs it to gradients worked out by hand.

use pullback_core::Value;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::Program;
use pullback_lambda::check::check;
use pullback_lambda::print::print;
use pullback_lambda::read::read;

const EFFICIENT_CHAD: &str = include_str!("programs/efficient_chad.lambda");
const STAGED: &str = include_str!("programs/staged_dual_numbers.lambda");
const MUTABLE: &str = include_str!("programs/mutable_dual_numbers.lambda");
const DELTA: &str = include_str!("programs/delta_terms.lambda");

fn accepted(text: &str) -> Program {
    let program = read(text, None).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(check(&program), Ok(()));
    program
}

/// Every float of the result, in order.
fn floats(text: &str, function: &str, args: &[Value]) -> Vec<f64> {
    let program = accepted(text);
    let f = program.funs.ids().find(|f| program.funs[*f].name.as_str() == function).expect(function);
    match run(&program, f, args.to_vec(), &Options::default()) {
        Ok(outcome) => outcome.result.floats(),
        Err(e) => panic!("{function}: {e:?}"),
    }
}

fn f(x: f64) -> Value {
    Value::f64(x)
}

#[test]
fn printer_and_reader_invert_each_other() {
    for text in [EFFICIENT_CHAD, STAGED, MUTABLE, DELTA] {
        let program = accepted(text);
        let again = accepted(&print(&program));
        assert_eq!(print(&again), print(&program));
    }
}

#[test]
fn efficient_chad() {
    // v x^2 at x = 3, v = 5: derivatives 2 v x and x^2.
    assert_eq!(floats(EFFICIENT_CHAD, "left", &[f(3.0), f(5.0), f(1.0)]), [45.0, 30.0, 9.0]);
    assert_eq!(floats(EFFICIENT_CHAD, "left", &[f(3.0), f(5.0), f(2.0)]), [45.0, 60.0, 18.0]);
    // x^2
    assert_eq!(floats(EFFICIENT_CHAD, "right", &[f(3.0), f(1.0)]), [9.0, 6.0]);
}

#[test]
fn efficient_chad_with_sparse_pairs() {
    // a b + a b = 2 a b at a = 3, b = 7.
    assert_eq!(floats(EFFICIENT_CHAD, "products", &[f(3.0), f(7.0)]), [42.0, 14.0, 6.0]);
}

#[test]
fn staged_dual_numbers() {
    // x (x + y) at (3, 4): derivatives 2 x + y and x.
    assert_eq!(floats(STAGED, "gradient", &[f(3.0), f(4.0), f(1.0)]), [21.0, 10.0, 3.0]);
    assert_eq!(floats(STAGED, "gradient", &[f(3.0), f(4.0), f(-2.0)]), [21.0, -20.0, -6.0]);
}

#[test]
fn staged_calls_are_factored() {
    // 2^40 x + y: with one call for each path the reverse pass would not end.
    let out = floats(STAGED, "doubled", &[Value::i64(40), f(1.5), f(0.25), f(1.0)]);
    let factor = (1u64 << 40) as f64;
    assert_eq!(out, [1.5 * factor + 0.25, factor, 1.0]);
}

#[test]
fn dual_numbers_with_mutable_arrays() {
    // sin (y x^5) at x = 2, y = 3: the argument is 96; derivatives cos 96 * 240 and cos 96 * 32.
    let out = floats(MUTABLE, "gradient", &[Value::i64(5), f(2.0), f(3.0), f(1.0)]);
    let (sine, cosine) = 96f64.sin_cos();
    let expected = [sine, 240.0 * cosine, 32.0 * cosine];
    for (found, expected) in out.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{out:?}");
    }
    assert_eq!(out.len(), 3);
}

#[test]
fn delta_terms_share() {
    // 2^40 x (x + y) at (3, 4)
    let factor = (1u64 << 40) as f64;
    let out = floats(DELTA, "gradient", &[Value::i64(40), f(3.0), f(4.0), f(1.0)]);
    assert_eq!(out, [21.0 * factor, 10.0 * factor, 3.0 * factor]);
}

#[test]
fn damaged_texts_are_errors_or_programs_but_never_panics() {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let pieces = [
        "(", ")", "[", "]", "$0", "$9", "let", "in", ".", "99", "1f64", "@", "#", "\"", "ä", "io(", "-",
        "lin",
    ];
    let mut refused = 0;
    for round in 0..3000 {
        let text = [EFFICIENT_CHAD, STAGED, MUTABLE, DELTA][round % 4];
        let tokens: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
        let (at, other) = (below(tokens.len()), below(tokens.len()));
        let mut damaged = tokens.clone();
        match below(3) {
            0 => {
                damaged.remove(at);
            }
            1 => damaged.swap(at, other),
            _ => damaged.insert(at, pieces[below(pieces.len())]),
        }
        let ok = read(&damaged.concat(), None).is_ok_and(|program| {
            let _ = print(&program);
            check(&program).is_ok()
        });
        refused += usize::from(!ok);
    }
    assert!(refused > 1500, "{refused}");
}
