//! Matrices of derivatives and their products: Jacobians, Hessians, Gauss-Newton.
//!
//! Assumes entry points whose selected arguments and results are numbers and arrays of numbers. Guarantees: the entry point's
//! forward sweep runs once for a block of directions (see `pullback_ad::many`), and blocks are as large as memory allows, so
//! that a matrix costs one program and a reverse (or tangent) sweep per row (or column).

use crate::derive::Kind;
use crate::session::{EntryPoint, Ready, Session};
use pullback_base::{Code, Diagnostic, RuntimeError};
use pullback_core::{Array, Buffer, Value, count_elements};
use pullback_interp::core::{Counts, Options};
use pullback_prim::Scalar;

/// A matrix of derivatives with the names of its rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// What the rows are: one block per leaf, a row per float.
    pub rows: Vec<Block>,
    /// What the columns are.
    pub columns: Vec<Block>,
    /// The numbers.
    pub entries: Entries,
}

/// Consecutive rows or columns that belong to one argument, field or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its name: `params.alpha`; empty for a result that is not a tuple or record.
    pub path: String,
    /// Its shape; empty for a number.
    pub shape: Vec<usize>,
}

impl Block {
    /// The number of rows or columns.
    pub fn len(&self) -> usize {
        count_elements(&self.shape)
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The entries of a [`Matrix`]. More forms may come (a pattern with the values of its nonzeros): match with a default arm, or
/// use [`Matrix::dense`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Entries {
    /// All of them, row by row.
    Dense(Vec<f64>),
}

impl Matrix {
    /// Numbers of rows and of columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows.iter().map(Block::len).sum(), self.columns.iter().map(Block::len).sum())
    }
    /// All entries as an array of rank 2, whatever form they are stored in.
    pub fn dense(&self) -> Array {
        let (rows, columns) = self.shape();
        match &self.entries {
            Entries::Dense(entries) => Array::new(vec![rows, columns], Buffer::F64(entries.clone())),
        }
    }
    /// The entry in a row and a column, if there are such.
    pub fn get(&self, row: usize, column: usize) -> Option<f64> {
        let (rows, columns) = self.shape();
        match &self.entries {
            Entries::Dense(entries) if row < rows && column < columns => {
                entries.get(row * columns + column).copied()
            }
            Entries::Dense(_) => None,
        }
    }
}

/// A matrix-free product.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// The results of the entry point.
    pub results: Vec<Value>,
    /// Of a Hessian: the gradient, by selected argument. Of Gauss-Newton: `J v`, by result with floats.
    pub first: Vec<Value>,
    /// `H v` or `Jᵀ J v`, by selected argument.
    pub product: Vec<Value>,
    /// What the run cost.
    pub counts: Counts,
}

/// Which sweep computes a Jacobian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweep {
    /// Forward if there are at most as many columns as rows, else reverse.
    #[default]
    Auto,
    /// A tangent per column.
    Forward,
    /// A cotangent per row.
    Reverse,
}

impl Session {
    /// The Jacobian of an entry point with respect to the selected parameters. Cost: the program, and one tangent sweep per
    /// column or one reverse sweep per row; once more the program where the number of rows is not known before.
    ///
    /// Errors: arguments or results of sum type, constructs without derivative, and whatever stops the program.
    pub fn jacobian(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        sweep: Sweep,
        options: &Options<'_>,
    ) -> Result<Matrix, Diagnostic> {
        let inputs = self.numeric_inputs(entry, selected, args, "the Jacobian")?;
        let scalars = entry.result_types.iter().all(|t| t.scalar().is_some());
        let results: Vec<Value> = if scalars {
            entry.result_types.iter().filter_map(|t| t.scalar().map(|s| Value::Scalar(s.zero()))).collect()
        } else {
            self.primal(entry)?.run(args, options).map_err(stopped)?.results
        };
        let outputs = numeric(&results).ok_or_else(|| {
            unsupported(
                "the Jacobian of a result of sum type",
                "take the sum apart in an entry point of its own",
            )
        })?;
        let of_results = entry.results.iter().zip(&results).filter(|(_, v)| scalar_of(v).is_some());
        let rows: Vec<Block> = of_results.map(|(l, v)| block(&l.path, v)).collect();
        let columns = blocks(entry, selected, args);
        let mut matrix = Dense::new(&rows, &columns);
        let reverse = match sweep {
            Sweep::Auto => matrix.columns > matrix.rows,
            Sweep::Forward => false,
            Sweep::Reverse => true,
        };
        let (kind, seeded) = if reverse { (Kind::VjpMany, &outputs) } else { (Kind::JvpMany, &inputs) };
        let along = self.along(entry, selected, kind)?;
        in_blocks(&along, args, &[], seeded, options, |start, k, derivatives| {
            if reverse {
                matrix.set_rows(start, k, &derivatives[results.len()..]);
            } else {
                matrix.set_columns(start, k, &derivatives[results.len()..]);
            }
        })?;
        Ok(Matrix { rows, columns, entries: Entries::Dense(matrix.entries) })
    }

    /// The Hessian of an entry point with one float as result, by forward over reverse. Cost: the gradient, and one tangent
    /// sweep over it per column. Errors: as [`Session::jacobian`], and a result that is not one float.
    pub fn hessian(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        options: &Options<'_>,
    ) -> Result<Matrix, Diagnostic> {
        let one = one_for(entry, "a Hessian")?;
        let inputs = self.numeric_inputs(entry, selected, args, "the Hessian")?;
        self.square(entry, selected, args, Kind::HvpMany, (&[one], &inputs), options)
    }

    /// The Gauss-Newton matrix `Jᵀ J` of an entry point. Cost: as for a Jacobian by tangents and one by cotangents, but only
    /// for as many directions as there are columns. Errors: as [`Session::jacobian`].
    pub fn gauss_newton_matrix(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        options: &Options<'_>,
    ) -> Result<Matrix, Diagnostic> {
        let inputs = self.numeric_inputs(entry, selected, args, "the Gauss-Newton matrix")?;
        self.square(entry, selected, args, Kind::GaussNewtonMany, (&[], &inputs), options)
    }

    /// Gradient and Hessian times a direction, by forward over reverse: a constant times the cost of the program.
    /// `direction` has a value of the form of each selected argument. Errors: as [`Session::hessian`], and a direction of
    /// another form.
    pub fn hvp(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        direction: &[Value],
        options: &Options<'_>,
    ) -> Result<Product, Diagnostic> {
        let one = one_for(entry, "a Hessian")?;
        let more = std::iter::once(&one).chain(direction).cloned().collect();
        self.product(entry, selected, args, (Kind::Hvp, direction, more), options)
    }

    /// `J v` and `Jᵀ J v`: forward, then reverse. Arguments and errors as for [`Session::hvp`]; any result with floats will do.
    pub fn gauss_newton(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        direction: &[Value],
        options: &Options<'_>,
    ) -> Result<Product, Diagnostic> {
        self.product(entry, selected, args, (Kind::GaussNewton, direction, direction.to_vec()), options)
    }

    fn product(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        (kind, direction, more): (Kind, &[Value], Vec<Value>),
        options: &Options<'_>,
    ) -> Result<Product, Diagnostic> {
        self.same_form(entry, selected, args, direction)?;
        let ready = self.derivative(entry, kind, selected, &mut |_, _| {})?;
        let all: Vec<Value> = args.iter().cloned().chain(more).collect();
        let outcome = ready.run(&all, options).map_err(stopped)?;
        let mut results = outcome.results;
        let mut first = results.split_off(entry.result_types.len());
        let product = first.split_off(first.len() - direction.len());
        Ok(Product { results, first, product, counts: outcome.counts })
    }

    /// A derivative in many directions at once, or in one where no algorithm takes many.
    fn along(&self, entry: &EntryPoint, selected: &[bool], many: Kind) -> Result<(Kind, Ready), Diagnostic> {
        let ready = |kind| Ok((kind, self.derivative(entry, kind, selected, &mut |_, _| {})?));
        ready(many)
            .or_else(|e: Diagnostic| if e.code == Code::Unsupported { ready(many.one()) } else { Err(e) })
    }

    /// A square matrix over the inputs, from products with all unit vectors.
    fn square(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        kind: Kind,
        (weights, inputs): (&[Value], &[Value]),
        options: &Options<'_>,
    ) -> Result<Matrix, Diagnostic> {
        let names = blocks(entry, selected, args);
        let mut matrix = Dense::new(&names, &names);
        let along = self.along(entry, selected, kind)?;
        in_blocks(&along, args, weights, inputs, options, |start, k, results| {
            matrix.set_columns(start, k, &results[results.len() - inputs.len()..]);
        })?;
        Ok(Matrix { rows: names.clone(), columns: names, entries: Entries::Dense(matrix.entries) })
    }

    /// The selected arguments, if they are numbers and arrays of numbers.
    fn numeric_inputs(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        what: &str,
    ) -> Result<Vec<Value>, Diagnostic> {
        let chosen = entry.parameters.iter().zip(args).zip(selected).filter(|(_, s)| **s).map(|(p, _)| p);
        let mut out = Vec::new();
        for (leaf, value) in chosen {
            if scalar_of(value).is_none() {
                return Err(unsupported(
                    &format!("{what} with respect to `{}`, which is a sum", leaf.path),
                    "leave it out with --wrt, or take the sum apart in an entry point of its own",
                ));
            }
            out.push(value.clone());
        }
        Ok(out)
    }

    /// Whether a direction has a value of the form of each selected argument.
    fn same_form(
        &self,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        direction: &[Value],
    ) -> Result<(), Diagnostic> {
        let wrong = |message: String| Diagnostic::global(Code::Input, message);
        let chosen: Vec<_> =
            entry.parameters.iter().zip(args).zip(selected).filter(|(_, s)| **s).map(|(p, _)| p).collect();
        if chosen.len() != direction.len() {
            let names: Vec<&str> = chosen.iter().map(|(l, _)| l.path.as_str()).collect();
            return Err(wrong(format!(
                "the direction has {} values; it needs one for each of {}",
                direction.len(),
                names.join(", ")
            )));
        }
        for ((leaf, value), along) in chosen.into_iter().zip(direction) {
            if let (Some(a), Some(b)) = (scalar_of(value), scalar_of(along))
                && (a != b || shape_of(value) != shape_of(along))
            {
                return Err(wrong(format!(
                    "the direction for `{}` is {}{}, the argument {}{}: they must agree",
                    leaf.path,
                    shape_text(along),
                    b.name(),
                    shape_text(value),
                    a.name()
                )));
            }
        }
        Ok(())
    }
}

fn stopped(e: RuntimeError) -> Diagnostic {
    e.to_diagnostic()
}

fn unsupported(what: &str, hint: &str) -> Diagnostic {
    Diagnostic::global(Code::Unsupported, what.to_string()).hint(hint.to_string())
}

/// The cotangent one of a result that is one float.
fn one_for(entry: &EntryPoint, what: &str) -> Result<Value, Diagnostic> {
    match entry.result_types.first().and_then(|t| t.scalar()) {
        Some(s) if s.is_float() && entry.result_types.len() == 1 => Ok(Value::Scalar(s.one())),
        _ => {
            let ty = crate::values::type_text(&entry.entry.result);
            let message = format!("`{}` returns {ty}; {what} needs a scalar float", entry.name);
            Err(Diagnostic::global(Code::Input, message)
                .hint("for a vector of residuals, `gauss-newton` gives the product with JᵀJ"))
        }
    }
}

/// The scalar type of a number or an array of numbers.
fn scalar_of(value: &Value) -> Option<Scalar> {
    let scalar = match value {
        Value::Scalar(s) => Some(s.scalar()),
        Value::Array(a) => a.data.scalar(),
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => None,
    };
    scalar.filter(|s| s.is_float())
}

/// The values with floats, unless one is a sum.
fn numeric(values: &[Value]) -> Option<Vec<Value>> {
    let sums = |v: &Value| match v {
        Value::Scalar(_) => false,
        Value::Array(a) => a.data.scalar().is_none(),
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => true,
    };
    if values.iter().any(sums) {
        return None;
    }
    Some(values.iter().filter(|v| scalar_of(v).is_some()).cloned().collect())
}

fn shape_of(value: &Value) -> &[usize] {
    match value {
        Value::Array(a) => &a.shape,
        Value::Scalar(_) | Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => &[],
    }
}

fn shape_text(value: &Value) -> String {
    shape_of(value).iter().map(|n| format!("[{n}]")).collect()
}

fn block(path: &str, value: &Value) -> Block {
    Block { path: path.to_string(), shape: shape_of(value).to_vec() }
}

fn blocks(entry: &EntryPoint, selected: &[bool], args: &[Value]) -> Vec<Block> {
    let chosen = entry.parameters.iter().zip(args).zip(selected).filter(|(_, s)| **s);
    chosen.map(|((l, v), _)| block(&l.path, v)).collect()
}

/// The most floats that the seeds of one block of directions may hold.
const SEED_CELLS: usize = 1 << 22;

/// Runs a derivative in all unit directions of the seeded values, as many at a time as fit and as it takes; `take` gets the
/// number of the first direction, how many there are, and the results.
fn in_blocks(
    (kind, ready): &(Kind, Ready),
    args: &[Value],
    weights: &[Value],
    seeded: &[Value],
    options: &Options<'_>,
    mut take: impl FnMut(usize, usize, &[Value]),
) -> Result<(), Diagnostic> {
    let total: usize = seeded.iter().map(count).sum();
    let most = if kind.is_many() { (SEED_CELLS / total.max(1)).max(1) } else { 1 };
    let mut start = 0;
    while start < total {
        let k = most.min(total - start);
        let mut all: Vec<Value> = args.to_vec();
        all.extend(kind.is_many().then_some(Value::i64(k as i64)));
        all.extend_from_slice(weights);
        let stacks = unit_vectors(seeded, start, k).into_iter();
        all.extend(stacks.map(|s| if kind.is_many() { Value::Array(s) } else { s.at(&[0]) }));
        take(start, k, &ready.run(&all, options).map_err(stopped)?.results);
        start += k;
    }
    Ok(())
}

fn count(value: &Value) -> usize {
    count_elements(shape_of(value))
}

/// Directions `start .. start + k` of the unit vectors over all floats of the values: one stack per value.
fn unit_vectors(values: &[Value], start: usize, k: usize) -> Vec<Array> {
    let mut before = 0;
    let stack = |value: &Value| {
        let n = count(value);
        let scalar = scalar_of(value).unwrap_or(Scalar::F64);
        let mut data = Buffer::with_capacity(Some(scalar), k * n);
        for i in 0..k * n {
            let hot = start + i / n.max(1) == before + i % n.max(1);
            data.push(Value::Scalar(if hot { scalar.one() } else { scalar.zero() }));
        }
        before += n;
        let shape = std::iter::once(k).chain(shape_of(value).iter().copied()).collect();
        Array::new(shape, data)
    };
    values.iter().map(stack).collect()
}

/// A matrix that is filled by stacks of rows or columns.
struct Dense {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
}

impl Dense {
    fn new(rows: &[Block], columns: &[Block]) -> Dense {
        let (rows, columns) = (rows.iter().map(Block::len).sum(), columns.iter().map(Block::len).sum());
        Dense { rows, columns, entries: vec![0.0; rows * columns] }
    }
    fn set_rows(&mut self, start: usize, k: usize, stacks: &[Value]) {
        let columns = self.columns;
        each_entry(k, stacks, |i, j, x| self.entries[(start + i) * columns + j] = x);
    }
    fn set_columns(&mut self, start: usize, k: usize, stacks: &[Value]) {
        let columns = self.columns;
        each_entry(k, stacks, |i, j, x| self.entries[j * columns + start + i] = x);
    }
}

/// Calls `set(direction, position, x)` for every number in stacks of `k` directions, positions counted over all stacks.
fn each_entry(k: usize, stacks: &[Value], mut set: impl FnMut(usize, usize, f64)) {
    let mut before = 0;
    for stack in stacks {
        let floats = stack.floats();
        let n = floats.len() / k.max(1);
        for (i, x) in floats.into_iter().enumerate() {
            set(i / n.max(1), before + i % n.max(1), x);
        }
        before += n;
    }
}
