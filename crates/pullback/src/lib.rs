//! Pullback as a library: compile a program, run it, differentiate it.
//!
//! ```
//! use pullback::{Program, Value};
//!
//! # fn main() -> Result<(), pullback::Error> {
//! let program = Program::compile("
//!     entry loss [n] (xs: [n]f64) (w: f64) : f64 = f64.sum (map (\\x -> (x - w) ** 2) xs)
//! ")?;
//! let args = [Value::f64s(&[1.0, 2.0, 6.0]), Value::f64(2.0)];
//! assert_eq!(program.run("loss", &args)?, [Value::f64(17.0)]);
//! let gradient = program.gradient("loss", "w", &args)?;
//! assert_eq!(gradient.value, 17.0);
//! assert_eq!(gradient.parts, [("w".to_string(), Value::f64(-6.0))]);
//! # Ok(())
//! # }
//! ```
//!
//! Arguments and results are flat: a record or tuple argument is one [`Value`] per field, in the order that
//! [`Program::parameters`] gives; an array of records is an array per field. For everything else (pipelines, other
//! derivatives, formats) there is [`Program::session`].

pub use pullback_core::{Array, Buffer, Value};
pub use pullback_driver::{EntryPoint, Kind, Session, Settings, Wrt};
pub use pullback_interp::core::{Counts, Options, Outcome};

use std::fmt;

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    session: Session,
}

/// What went wrong, as text for people: the message with the source line and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The whole text.
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl std::error::Error for Error {}

/// A value with its gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// The value of the entry point.
    pub value: f64,
    /// The gradient by parameter or field (`params.alpha`), each of the shape of that parameter.
    pub parts: Vec<(String, Value)>,
    /// What the run cost, value and gradient together.
    pub counts: Counts,
}

impl Program {
    /// Compiles a source text. Errors: everything that is wrong with it, with places and hints.
    pub fn compile(text: &str) -> Result<Program, Error> {
        let session = Session::compile("program.fut", text, Settings::default());
        session.map(|session| Program { session }).map_err(|failed| Error { text: failed.render() })
    }
    /// The session underneath.
    pub fn session(&self) -> &Session {
        &self.session
    }
    /// The names of an entry point's flat parameters, in order.
    pub fn parameters(&self, entry: &str) -> Result<Vec<String>, Error> {
        Ok(self.entry(entry)?.parameters.into_iter().map(|leaf| leaf.path).collect())
    }
    /// Runs an entry point in the reference interpreter. Errors: wrong arguments, and whatever stops the program.
    pub fn run(&self, entry: &str, args: &[Value]) -> Result<Vec<Value>, Error> {
        let entry = self.entry(entry)?;
        let ready = self.session.primal(&entry).map_err(|d| self.error(&d))?;
        let outcome = ready.run(args, &Options::default());
        outcome.map(|o| o.results).map_err(|e| self.error(&e.to_diagnostic()))
    }
    /// Value and gradient of an entry point with a scalar `f64` result, with respect to the parameters and fields that
    /// `wrt` names (separated by commas; empty: all). Cost: a constant times the value. Errors: a result that is no
    /// `f64`, a name that does not exist, a construct without derivative, and whatever stops the program.
    pub fn gradient(&self, entry: &str, wrt: &str, args: &[Value]) -> Result<Gradient, Error> {
        let entry = self.entry(entry)?;
        if entry.result_types != [pullback_core::Type::F64] {
            return Err(Error {
                text: format!("`{}` does not return one f64: it has no gradient", entry.name),
            });
        }
        let selected = self.session.select(&entry, &Wrt::parse(wrt)).map_err(|d| self.error(&d))?;
        let ready = self.session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {});
        let ready = ready.map_err(|d| self.error(&d))?;
        let all: Vec<Value> = args.iter().cloned().chain([Value::f64(1.0)]).collect();
        let outcome = ready.run(&all, &Options::default()).map_err(|e| self.error(&e.to_diagnostic()))?;
        let mut results = outcome.results.into_iter();
        let value = results.next().and_then(|v| v.floats().first().copied()).unwrap_or(f64::NAN);
        let names = entry.parameters.into_iter().zip(selected).filter(|(_, s)| *s).map(|(leaf, _)| leaf.path);
        Ok(Gradient { value, parts: names.zip(results).collect(), counts: outcome.counts })
    }

    fn entry(&self, name: &str) -> Result<EntryPoint, Error> {
        self.session.entry(Some(name)).map_err(|d| self.error(&d))
    }
    fn error(&self, d: &pullback_base::Diagnostic) -> Error {
        Error { text: d.render(&self.session.sources) }
    }
}
