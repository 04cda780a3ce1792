//! Float operations as compiled functions, for executors that call them from machine code.

/// An operation as a function of the platform's calling convention. Its value is that of the evaluation in the table.
#[derive(Clone, Copy, Debug)]
pub enum Function<T> {
    /// Of one argument.
    One(extern "C" fn(T) -> T),
    /// Of two arguments.
    Two(extern "C" fn(T, T) -> T),
}

impl<T> Function<T> {
    /// The number of arguments.
    pub fn arity(&self) -> usize {
        match self {
            Function::One(_) => 1,
            Function::Two(_) => 2,
        }
    }
    /// Where it is.
    pub fn address(&self) -> usize {
        match self {
            Function::One(f) => *f as usize,
            Function::Two(f) => *f as usize,
        }
    }
}
