//! The output of the chapters' algorithms, written by hand as text: the checker accepts it, reader and printer invert
//! each other on it.

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

#[test]
fn printer_and_reader_invert_each_other() {
    for text in [EFFICIENT_CHAD, STAGED, MUTABLE, DELTA] {
        let program = accepted(text);
        let again = accepted(&print(&program));
        assert_eq!(print(&again), print(&program));
    }
}
