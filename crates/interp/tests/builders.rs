//! Small programs of core for tests.

use pullback_core::{Atom, Builder, FunId, Program, Type, Var};

/// An array of floats.
pub(crate) fn vec_f64() -> Type {
    Type::array(Type::F64)
}

/// A program with one function.
pub(crate) fn build(
    params: &[(&str, Type)],
    results: Vec<Type>,
    f: impl FnOnce(&mut Builder<'_>, &[Var]) -> Vec<Atom>,
) -> (Program, FunId) {
    let mut program = Program::default();
    let fun = Builder::function(&mut program, "main", params, results, f);
    (program, fun)
}

/// Variables as operands.
pub(crate) fn vars(vs: Vec<Var>) -> Vec<Atom> {
    vs.into_iter().map(Atom::Var).collect()
}

/// An integer as an operand.
pub(crate) fn i(x: i64) -> Atom {
    Atom::i64(x)
}
