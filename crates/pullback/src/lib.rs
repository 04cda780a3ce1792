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
//! [`Program::parameters`] gives; an array of records is an array per field. Who calls often prepares machine code once, and
//! calls it with buffers of his own (`Ready::prepare`; the example `prepared`), or reads results where they were made (`Prepared::view`). For everything else (pipelines, other
//! derivatives, formats) there is [`Program::session`].

/// Derivatives of ordinary Rust code: the crate `pullback-dual`. Types of your own say where it is:
/// `#[derive(Differentiable)] #[differentiable(crate = pullback::dual)]`.
pub use pullback_dual as dual;

pub use pullback_core::{Array, Buffer, Value};
pub use pullback_driver::{
    Argument, Block, Entries, EntryPoint, Kind, Matrix, Outcome, Place, Prepared, Product, Ready, Session,
    Settings, Sweep, View, Views, Wrt,
};
pub use pullback_interp::core::{Counts, Options};

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

    /// The Jacobian of an entry point with respect to what `wrt` names (see [`Program::gradient`]): a row per float of the
    /// result, a column per float of the arguments. The program runs once; then one sweep per row or per column, whichever
    /// are fewer.
    ///
    /// ```
    /// use pullback::{Program, Value};
    /// # fn main() -> Result<(), pullback::Error> {
    /// let program = Program::compile("entry f (x: f64) (y: f64) : [2]f64 = [x * y, x + y]")?;
    /// let jacobian = program.jacobian("f", "", &[Value::f64(2.0), Value::f64(3.0)])?;
    /// assert_eq!(jacobian.shape(), (2, 2));
    /// assert_eq!(Value::Array(jacobian.dense()), Value::f64_array(&[2, 2], &[3.0, 2.0, 1.0, 1.0]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn jacobian(&self, entry: &str, wrt: &str, args: &[Value]) -> Result<Matrix, Error> {
        let (entry, selected) = self.selected(entry, wrt)?;
        let matrix = self.session.jacobian(&entry, &selected, args, Sweep::Auto, &Options::default());
        matrix.map_err(|d| self.error(&d))
    }
    /// The Hessian of an entry point with one float as result. Cost: the gradient, and one tangent sweep over it per column.
    ///
    /// ```
    /// use pullback::{Program, Value};
    /// # fn main() -> Result<(), pullback::Error> {
    /// let program = Program::compile("entry f (x: f64) (y: f64) : f64 = x * x * y")?;
    /// let hessian = program.hessian("f", "", &[Value::f64(2.0), Value::f64(3.0)])?;
    /// assert_eq!(hessian.get(0, 0), Some(6.0));
    /// assert_eq!(hessian.get(0, 1), Some(4.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hessian(&self, entry: &str, wrt: &str, args: &[Value]) -> Result<Matrix, Error> {
        let (entry, selected) = self.selected(entry, wrt)?;
        let matrix = self.session.hessian(&entry, &selected, args, &Options::default());
        matrix.map_err(|d| self.error(&d))
    }
    /// Gradient and Hessian times a direction, which has a value for each argument or field that `wrt` names. Cost: a
    /// constant times the program.
    ///
    /// ```
    /// use pullback::{Program, Value};
    /// # fn main() -> Result<(), pullback::Error> {
    /// let program = Program::compile("entry f (x: f64) (y: f64) : f64 = x * x * y")?;
    /// let args = [Value::f64(2.0), Value::f64(3.0)];
    /// let along = program.hvp("f", "", &args, &[Value::f64(1.0), Value::f64(0.0)])?;
    /// assert_eq!(along.first, [Value::f64(12.0), Value::f64(4.0)]);
    /// assert_eq!(along.product, [Value::f64(6.0), Value::f64(4.0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn hvp(&self, entry: &str, wrt: &str, args: &[Value], direction: &[Value]) -> Result<Product, Error> {
        let (entry, selected) = self.selected(entry, wrt)?;
        let product = self.session.hvp(&entry, &selected, args, direction, &Options::default());
        product.map_err(|d| self.error(&d))
    }
    /// `J v` and `Jᵀ J v` for the residuals that an entry point returns. Cost: a constant times the program.
    ///
    /// ```
    /// use pullback::{Program, Value};
    /// # fn main() -> Result<(), pullback::Error> {
    /// let program = Program::compile("entry f (x: f64) (y: f64) : [2]f64 = [x * y, x + y]")?;
    /// let args = [Value::f64(2.0), Value::f64(3.0)];
    /// let along = program.gauss_newton("f", "", &args, &[Value::f64(1.0), Value::f64(0.0)])?;
    /// assert_eq!(along.first, [Value::f64s(&[3.0, 1.0])]);
    /// assert_eq!(along.product, [Value::f64(10.0), Value::f64(7.0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn gauss_newton(
        &self,
        entry: &str,
        wrt: &str,
        args: &[Value],
        direction: &[Value],
    ) -> Result<Product, Error> {
        let (entry, selected) = self.selected(entry, wrt)?;
        let product = self.session.gauss_newton(&entry, &selected, args, direction, &Options::default());
        product.map_err(|d| self.error(&d))
    }
    /// The matrix `Jᵀ J` for the residuals that an entry point returns.
    ///
    /// ```
    /// use pullback::{Program, Value};
    /// # fn main() -> Result<(), pullback::Error> {
    /// let program = Program::compile("entry f (x: f64) (y: f64) : [2]f64 = [x * y, x + y]")?;
    /// let matrix = program.gauss_newton_matrix("f", "", &[Value::f64(2.0), Value::f64(3.0)])?;
    /// assert_eq!((matrix.get(0, 0), matrix.get(0, 1), matrix.get(1, 1)), (Some(10.0), Some(7.0), Some(5.0)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn gauss_newton_matrix(&self, entry: &str, wrt: &str, args: &[Value]) -> Result<Matrix, Error> {
        let (entry, selected) = self.selected(entry, wrt)?;
        let matrix = self.session.gauss_newton_matrix(&entry, &selected, args, &Options::default());
        matrix.map_err(|d| self.error(&d))
    }

    fn selected(&self, entry: &str, wrt: &str) -> Result<(EntryPoint, Vec<bool>), Error> {
        let entry = self.entry(entry)?;
        let selected = self.session.select(&entry, &Wrt::parse(wrt)).map_err(|d| self.error(&d))?;
        Ok((entry, selected))
    }
    fn entry(&self, name: &str) -> Result<EntryPoint, Error> {
        self.session.entry(Some(name)).map_err(|d| self.error(&d))
    }
    fn error(&self, d: &pullback_base::Diagnostic) -> Error {
        Error { text: d.render(&self.session.sources) }
    }
}
