//! Functions for C programs: the text of a shared library around modules of kernel IR, and its header.
//!
//! A library has one text for each function ([`function`]): the module, an exported function of C types around its entry, and
//! what it says when it stops; and one text that all share ([`shared`]): workspaces, and the functions of the primitive table
//! that the modules call. Nothing of Pullback or Rust is needed by the programs that use it, only the C library.
//!
//! Assumes modules whose entry has a word layout as in `pullback-abi`. Guarantees: equal descriptions give equal text.

pub(crate) mod explain;
mod header;
mod shared;
mod wrapper;

pub use header::header;
pub use shared::{shared, unavailable};
pub use wrapper::function;

use pullback_prim::Scalar;

/// A function of a library.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Its name in C.
    pub symbol: String,
    /// What it computes, in lines.
    pub about: Vec<String>,
    /// The sizes that arrays share, by their names in C: one argument each.
    pub sizes: Vec<String>,
    /// The parameters.
    pub params: Vec<Item>,
    /// The results.
    pub results: Vec<Item>,
}

/// A parameter or result: a scalar, or an array of scalars in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its name in C.
    pub name: String,
    /// What it is made of.
    pub scalar: Scalar,
    /// Its dimensions; none for a scalar.
    pub dims: Vec<Dim>,
}

/// The size of a dimension of a parameter. Those of results are what the function finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// One of the sizes that arrays share.
    Shared(usize),
    /// The value of a parameter that is an `i64`.
    Parameter(usize),
    /// A constant.
    Constant(i64),
    /// An argument of its own.
    Own,
}

/// What a function of a library gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The number.
    pub code: i32,
    /// Its name in C, after that of the library.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
}

macro_rules! statuses {
    ($($constant:ident = $code:literal, $about:literal;)*) => {
        $(pub(crate) const $constant: i32 = $code;)*
        /// All of them.
        pub const STATUSES: &[Status] =
            &[$(Status { code: $code, name: stringify!($constant), about: $about }),*];
    };
}
statuses! {
    OK = 0, "the results are there";
    OUT_OF_BOUNDS = 1, "an index or slice outside its array";
    SHAPE_MISMATCH = 2, "arrays whose shapes must agree and do not";
    DIVISION_BY_ZERO = 3, "integer division by zero";
    ASSERT_FAILED = 4, "an assertion of the program";
    EMPTY_REDUCTION = 5, "a reduction of nothing where that has no value";
    NEGATIVE_SIZE = 6, "a negative size";
    LIMIT = 7, "memory, open calls or stack: see the message for how much is needed";
    CANCELLED = 8, "cancelled";
    INVALID = 9, "an argument that is NULL or negative where it may not be";
    CAPACITY = 10, "a result that does not fit into its buffer; its sizes are set, no result is written";
    INTERNAL = 11, "a mistake of the compiler: please report it";
}

/// Offsets of what a library keeps after the context of a call, and bytes of all.
pub(crate) mod offsets {
    use crate::abi::Context;
    /// The workspace.
    pub(crate) const START: usize = size_of::<Context>().next_multiple_of(8);
    /// Its bytes.
    pub(crate) const BYTES: usize = START + 8;
    /// The flag for cancellation.
    pub(crate) const FLAG: usize = START + 16;
    /// How much of the stack recursive functions may use.
    pub(crate) const STACK: usize = START + 24;
    /// What is said about the last call.
    pub(crate) const MESSAGE: usize = START + 32;
    /// The most bytes of it, with the zero at its end.
    pub(crate) const MESSAGE_BYTES: usize = 1024;
    /// All bytes.
    pub(crate) const ALL: usize = MESSAGE + MESSAGE_BYTES;
}

/// The type of a scalar in C.
pub(crate) fn c_type(s: Scalar) -> &'static str {
    match s {
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::I8 => "int8_t",
        Scalar::I16 => "int16_t",
        Scalar::I32 => "int32_t",
        Scalar::I64 => "int64_t",
        Scalar::U8 => "uint8_t",
        Scalar::U16 => "uint16_t",
        Scalar::U32 => "uint32_t",
        Scalar::U64 => "uint64_t",
        Scalar::Bool => "bool",
    }
}

/// A text of C as a constant of LLVM, with its zero.
// Only this crate and its tests use it.
#[doc(hidden)]
pub fn constant(name: &str, text: &str) -> String {
    let mut bytes = String::new();
    for b in text.bytes() {
        match b {
            b' '..=b'~' if b != b'"' && b != b'\\' => bytes.push(char::from(b)),
            _ => bytes += &format!("\\{b:02X}"),
        }
    }
    format!("@{name} = private unnamed_addr constant [{} x i8] c\"{bytes}\\00\"\n", text.len() + 1)
}
