//! Products of matrices in tiles, as machine code: values and gradients are those of plain loops, exactly where sums are exact.

use pullback_core::value::{Array, Buffer};
use pullback_core::{Type, Value};
use pullback_cpu::{Executable, Options};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::{FunctionId, lower, print};
use std::num::NonZeroUsize;

const TEXT: &str = "
entry product [n] [k] [m] (a: [n][k]f64) (b: [k][m]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose b)) a
";

/// A matrix and its numbers of rows and columns.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    elements: Vec<f64>,
}

impl Matrix {
    /// Small whole numbers: sums of products are exact in both types.
    fn whole(seed: usize, rows: usize, columns: usize) -> Matrix {
        let element = |k: usize| ((k * k + (seed + 3) * k + k / 7) % 13) as f64 - 6.0;
        Matrix { rows, columns, elements: (0..rows * columns).map(element).collect() }
    }
    fn at(&self, i: usize, j: usize) -> f64 {
        self.elements[i * self.columns + j]
    }
    fn transposed(&self) -> Matrix {
        let element = |p: usize| self.at(p % self.rows, p / self.rows);
        let elements = (0..self.elements.len()).map(element).collect();
        Matrix { rows: self.columns, columns: self.rows, elements }
    }
    fn times(&self, other: &Matrix) -> Matrix {
        let sum = |i: usize, j: usize| (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum();
        let element = |p: usize| sum(p / other.columns, p % other.columns);
        let elements = (0..self.rows * other.columns).map(element).collect();
        Matrix { rows: self.rows, columns: other.columns, elements }
    }
    fn value(&self, ty: &str) -> Value {
        let shape = vec![self.rows, self.columns];
        match ty {
            "f64" => Value::f64_array(&shape, &self.elements),
            _ => Value::Array(Array::new(
                shape,
                Buffer::F32(self.elements.iter().map(|x| *x as f32).collect()),
            )),
        }
    }
}

/// The product or its gradient, compiled for some sizes.
struct Compiled {
    executable: Executable,
    function: FunctionId,
    params: Vec<Type>,
    results: Vec<Type>,
}

impl Compiled {
    /// `None`: there is no LLVM. `tiles`: so many products at least are put in tiles.
    fn new(ty: &str, gradient: bool, args: &[Value], threads: usize, tiles: usize) -> Option<Compiled> {
        let text = TEXT.replace("f64", ty);
        let session = Session::compile("product.fut", &text, Settings::default()).expect("it compiles");
        let entry = session.entry(None).expect("the entry point");
        let ready = if gradient {
            let wanted = session.select(&entry, &Wrt::parse("a,b")).expect("the parameters");
            session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {})
        } else {
            session.primal(&entry)
        };
        let ready = ready.expect("it is differentiable");
        let (module, function) = lower(&ready.program, ready.fun).expect("native");
        let f = &ready.program.funs[ready.fun];
        let params: Vec<Type> = f.params.iter().map(|p| ready.program.vars[*p].ty.clone()).collect();
        let given: Vec<(&Type, &Value)> = params.iter().zip(args).collect();
        let sizes = vec![(function, pullback_abi::sizes(&given))];
        let threads = NonZeroUsize::new(threads).expect("a thread");
        let executable = Executable::new(&module, &Options { sizes, threads, ..Options::default() }).ok()?;
        let text = print(executable.module());
        let found = text.lines().filter(|l| l.trim().starts_with("columns_") && l.contains("= alloc"));
        // Additions to a matrix are there in two orders, of which the size of the matrix chooses.
        assert!(found.count() >= tiles, "{text}");
        Some(Compiled { executable, function, params, results: f.results.clone() })
    }
    fn call(&self, args: &[Value]) -> Vec<f64> {
        let args: Vec<(&Type, &Value)> = self.params.iter().zip(args).collect();
        let mut session = self.executable.session();
        let out = session.call(self.function, &args, &self.results, None).expect("it runs");
        out.results.iter().flat_map(Value::floats).collect()
    }
}

fn same(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (k, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!(x == y || (x.is_nan() && y.is_nan()), "element {k}: {x} instead of {y}");
    }
}

/// Around the sizes of tiles, blocks of rows and parts of the sum.
const SIZES: [[usize; 3]; 5] = [[64, 200, 49], [97, 193, 72], [200, 33, 100], [33, 800, 33], [96, 192, 48]];

#[test]
fn products_and_their_gradients_are_exact_on_any_number_of_threads() {
    for ty in ["f64", "f32"] {
        for [n, k, m] in SIZES {
            let (a, b, seed) = (Matrix::whole(1, n, k), Matrix::whole(2, k, m), Matrix::whole(3, n, m));
            let args = [&a, &b, &seed].map(|x| x.value(ty));
            let mut expected = a.times(&b).elements;
            for threads in [1, 2, 4] {
                let Some(product) = Compiled::new(ty, false, &args[..2], threads, 1) else {
                    println!("skipped: no LLVM");
                    return;
                };
                same(&product.call(&args[..2]), &expected);
            }
            expected.extend(seed.times(&b.transposed()).elements);
            expected.extend(a.transposed().times(&seed).elements);
            let gradient = Compiled::new(ty, true, &args, 2, 3);
            same(&gradient.expect("as before").call(&args), &expected);
        }
    }
}

#[test]
fn code_for_large_products_takes_small_and_empty_ones() {
    let args = |n, k, m| [Matrix::whole(1, n, k), Matrix::whole(2, k, m)];
    let large = args(64, 64, 64).map(|x| x.value("f64"));
    let Some(product) = Compiled::new("f64", false, &large, 1, 1) else {
        println!("skipped: no LLVM");
        return;
    };
    for [n, k, m] in [[0, 5, 5], [5, 0, 5], [5, 5, 0], [1, 1, 1], [7, 9, 8], [65, 63, 64], [300, 40, 31]] {
        let [a, b] = args(n, k, m);
        same(&product.call(&[a.value("f64"), b.value("f64")]), &a.times(&b).elements);
    }
}

#[test]
fn what_is_not_a_number_stays_in_its_row_and_column() {
    let (mut a, mut b) = (Matrix::whole(1, 45, 70), Matrix::whole(2, 70, 51));
    (a.elements[44 * 70 + 69], b.elements[50]) = (f64::NAN, f64::INFINITY);
    (a.elements[5 * 70], a.elements[6 * 70]) = (0.0, -1.0);
    let args = [a.value("f64"), b.value("f64")];
    if let Some(product) = Compiled::new("f64", false, &args, 1, 1) {
        let (found, expected) = (product.call(&args), a.times(&b).elements);
        same(&found, &expected);
        // Zero times infinity is not a number, and the last row is not one; nothing else.
        assert!(found[5 * 51 + 50].is_nan() && found[6 * 51 + 50] == f64::NEG_INFINITY);
        assert_eq!(found.iter().filter(|x| x.is_nan()).count(), 51 + zeros(&a));
    }
}

/// Rows but the last one that begin with a zero.
fn zeros(a: &Matrix) -> usize {
    (0..a.rows - 1).filter(|i| a.at(*i, 0) == 0.0).count()
}
