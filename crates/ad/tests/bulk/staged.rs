//! Staging (4.10): one program text, four meanings.

use super::build::*;
use super::generate::{Indices, Random, program as any_program, seeds};
use pullback_ad::bulk::a_core::{Names, Program, Term, Ty, Var};
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_ad::bulk::d_arrays::vjp;
use pullback_ad::bulk::e_symbolic;
use pullback_ad::bulk::evaluate::{Algebra, evaluate, interpret};
use pullback_ad::bulk::f_staged::{self, Inputs, Staged, index_function};
use pullback_ad::bulk::partials::Zeros;
use pullback_ad::bulk::sizes::Size;
use pullback_ad::bulk::values::Tensor;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

fn f64_(op: Op) -> Prim {
    Prim::Op(op, Scalar::F64)
}
fn vector() -> (Inputs, Size) {
    let mut inputs = Inputs::default();
    let n = inputs.size("n");
    inputs.input("x", Scalar::F64, std::slice::from_ref(&n));
    (inputs, n)
}
fn one() -> Value {
    reals(&[], &[1.0])
}
fn numbers(a: &Option<Value>) -> Vec<f64> {
    a.as_ref().map(Value::to_f64s).unwrap_or_default()
}

/// All meanings of a program of bulk operations, for a result of one number: its value and its gradient.
fn meanings(inputs: &Inputs, p: &impl Staged, arguments: &[Value]) -> (f64, Vec<f64>) {
    let (value, _) = f_staged::values(inputs, p, arguments).unwrap_or_else(|why| panic!("{why}"));
    let program = f_staged::program(inputs, p).unwrap_or_else(|why| panic!("{why}"));
    let read = evaluate(&program, arguments).unwrap_or_else(|why| panic!("{why}")).0;
    let tape =
        f_staged::tape(inputs, p, arguments, &one(), Zeros::Stop).unwrap_or_else(|why| panic!("{why}"));
    let derivative = f_staged::derivative(inputs, p, Zeros::Stop).unwrap_or_else(|why| panic!("{why}"));
    let run = derivative.run(&[arguments, &[one()]].concat()).unwrap_or_else(|why| panic!("{why}"));
    for other in [&read, &tape.value, &run.value] {
        assert_eq!(&value, other, "{program}");
    }
    assert_eq!(tape.inputs, run.cotangents, "{program}");
    (value.to_f64s()[0], tape.inputs.iter().flat_map(numbers).collect())
}

/// A recursive function of Rust makes a text as long as its recursion (O12): plus one, doubled, plus one, ..
struct Alternating(usize);

impl Alternating {
    fn layers<T: Algebra>(&self, alg: &mut T, layers: usize, n: &Size, x: T::Array) -> T::Array {
        if layers == 0 {
            return x;
        }
        let is_sum = (self.0 - layers).is_multiple_of(2);
        let (op, number) = if is_sum { (Op::Add, 1.0) } else { (Op::Mul, 2.0) };
        let number = alg.constant(&Tensor::scalar(ScalarValue::F64(number)));
        let numbers = alg.replicate(n, &number);
        let y = alg.op(f64_(op), &[x, numbers]);
        self.layers(alg, layers - 1, n, y)
    }
}
impl Staged for Alternating {
    fn run<T: Algebra>(&self, alg: &mut T, _: &mut Names, inputs: &[T::Array]) -> T::Array {
        let y = self.layers(alg, self.0, &vector().1, inputs[0].clone());
        alg.sum_outer(&y)
    }
}

#[test]
fn loops_of_rust_are_part_of_the_text() {
    let (inputs, _) = vector();
    let of = |layers| meanings(&inputs, &Alternating(layers), &[reals(&[2], &[1.0, 2.0])]);
    assert_eq!(of(3), (12.0, vec![2.0, 2.0]));
    assert_eq!(of(0), (3.0, vec![1.0, 1.0]));
    let nodes = |layers| f_staged::program(&inputs, &Alternating(layers)).expect("fits").body.nodes();
    assert_eq!(nodes(9) - nodes(6), nodes(6) - nodes(3));
}

/// T14: an array is reversed, and three of its elements are added; once with `share`, once without.
struct ThreeOfReversed(bool);

impl Staged for ThreeOfReversed {
    fn run<T: Algebra>(&self, alg: &mut T, names: &mut Names, inputs: &[T::Array]) -> T::Array {
        let (_, n) = vector();
        let back = index_function(names, 1, &[], |is, _| vec![sub(&sub(&Term::size(&n), &int(1)), &is[0])]);
        let mut reversed = alg.gather(std::slice::from_ref(&n), &inputs[0], &back);
        if self.0 {
            reversed = alg.share(reversed);
        }
        let elements = [0, 1, 2].map(|i| {
            let i = alg.constant(&Tensor::scalar(ScalarValue::I64(i)));
            alg.index(&reversed, &[i])
        });
        let [a, b, c] = elements;
        let sum = alg.op(f64_(Op::Add), &[a, b]);
        alg.op(f64_(Op::Add), &[sum, c])
    }
}

#[test]
fn what_is_shared_is_made_once() {
    let (inputs, _) = vector();
    for (is_shared, times) in [(true, 1), (false, 3)] {
        let p = ThreeOfReversed(is_shared);
        let (value, gradient) = meanings(&inputs, &p, &[one_to(5)]);
        assert_eq!((value, gradient), (12.0, vec![0.0, 0.0, 1.0, 1.0, 1.0]));
        let text = f_staged::program(&inputs, &p).expect("fits").to_string();
        assert_eq!(text.matches("(gather").count(), times, "{text}");
        // Five elements by each gather, one by each of three indices, one by each of two sums.
        let touched = |p: &Program| evaluate(p, &[one_to(5)]).expect("fits").1;
        let gathers = |p: &Program| (touched(p) - 5) / 5;
        let program = f_staged::program(&inputs, &p).expect("fits");
        // The index function takes two subtractions at each of the five.
        assert_eq!(gathers(&program), 3 * times as u64);
        // Dual arrays share what they make: there the array is made once in any case.
        let derivative = f_staged::derivative(&inputs, &p, Zeros::Stop).expect("fits").to_string();
        assert_eq!(derivative.matches("(gather").count(), 1, "{derivative}");
    }
}

/// `sum_i w_i sin (x_(k_i))`, with an index function that reads an array of the program.
struct Gathered;

impl Gathered {
    fn inputs() -> Inputs {
        let mut inputs = Inputs::default();
        let (n, m) = (inputs.size("n"), inputs.size("m"));
        inputs.input("x", Scalar::F64, std::slice::from_ref(&n));
        inputs.input("k", Scalar::I64, std::slice::from_ref(&m));
        inputs.input("w", Scalar::F64, &[m]);
        inputs
    }
}
impl Staged for Gathered {
    fn run<T: Algebra>(&self, alg: &mut T, names: &mut Names, inputs: &[T::Array]) -> T::Array {
        let mut sizes = Inputs::default();
        let (_, m) = (sizes.size("n"), sizes.size("m"));
        let ks = (Ty::new(vec![m.clone()], Scalar::I64), inputs[1].clone());
        let f = index_function(names, 1, &[ks], |is, read| vec![index(&read[0], &[is[0].clone()])]);
        let xs = alg.gather(&[m], &inputs[0], &f);
        let sines = alg.op(f64_(Op::Sin), &[xs]);
        let products = alg.op(f64_(Op::Mul), &[sines, inputs[2].clone()]);
        alg.sum_outer(&products)
    }
}

#[test]
fn index_functions_read_arrays_of_the_program() {
    let (x, w) = ([0.3, 1.1, -0.4], [2.0, -1.0, 0.5, 3.0]);
    let k = Tensor::new(Scalar::I64, vec![4], [2, 0, 7, 0].map(ScalarValue::I64).to_vec());
    let arguments = [reals(&[3], &x), k, reals(&[4], &w)];
    let (value, gradient) = meanings(&Gathered::inputs(), &Gathered, &arguments);
    // The third index is outside of the array: its sine is that of zero.
    let wanted = 2.0 * x[2].sin() + 2.0 * x[0].sin();
    assert!((value - wanted).abs() < 1e-15);
    let of_x = [2.0 * x[0].cos(), 0.0, 2.0 * x[2].cos()];
    let of_w = [x[2].sin(), x[0].sin(), 0.0, x[0].sin()];
    let all: Vec<f64> = of_x.into_iter().chain(of_w).collect();
    assert!(gradient.iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-15), "{gradient:?} {all:?}");
    assert_eq!(gradient.len(), all.len());
}

/// Second derivatives by dual arrays over dual arrays: of `sum_i w_i sin (x_(k_i))` by hand.
#[test]
fn dual_arrays_over_dual_arrays_give_second_derivatives() {
    let (x, w) = ([0.3, 1.1, -0.4], [2.0, -1.0, 0.5, 3.0]);
    let (dx, dw) = ([1.0, -2.0, 0.7], [0.1, 0.2, 0.3, -0.4]);
    let k = Tensor::new(Scalar::I64, vec![4], [2, 0, 7, 0].map(ScalarValue::I64).to_vec());
    let arguments = [reals(&[3], &x), k.clone(), reals(&[4], &w)];
    let direction = [reals(&[3], &dx), k, reals(&[4], &dw)];
    let inputs = Gathered::inputs();
    let second = f_staged::hessian_vector(&inputs, &Gathered, &arguments, &direction, Zeros::Stop);
    let second = second.unwrap_or_else(|why| panic!("{why}"));
    let read = [2usize, 0, 7, 0];
    let mut of_x = [0.0; 3];
    for (i, k) in read.into_iter().enumerate().filter(|(_, k)| *k < 3) {
        of_x[k] += dw[i] * x[k].cos() - w[i] * x[k].sin() * dx[k];
    }
    let of_w = read.map(|k| if k < 3 { x[k].cos() * dx[k] } else { 0.0 });
    for (found, wanted) in [(&second.inputs[0], &of_x[..]), (&second.inputs[2], &of_w[..])] {
        let found = numbers(found);
        assert_eq!(found.len(), wanted.len());
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?} {wanted:?}");
    }
    assert_eq!(second.inputs[1], None);
    let wrong = [direction[0].clone(), direction[1].clone(), one_to(3)];
    let refused = f_staged::hessian_vector(&inputs, &Gathered, &arguments, &wrong, Zeros::Stop);
    assert!(refused.is_err_and(|why| why.0.contains("input `w`")));
}

/// `x_0 x_1`, by two reads.
struct Product;

impl Staged for Product {
    fn run<T: Algebra>(&self, alg: &mut T, _: &mut Names, inputs: &[T::Array]) -> T::Array {
        let [a, b] = [0, 1].map(|i| {
            let i = alg.constant(&Tensor::scalar(ScalarValue::I64(i)));
            alg.index(&inputs[0], &[i])
        });
        alg.op(f64_(Op::Mul), &[a, b])
    }
}

/// The gradient of a read is an array with one element that is not zero; it has a derivative as well.
#[test]
fn arrays_with_one_element_are_differentiated_again() {
    let (inputs, _) = vector();
    let x = [reals(&[3], &[2.0, 5.0, 7.0])];
    let along = [reals(&[3], &[10.0, 3.0, 1.0])];
    let second = f_staged::hessian_vector(&inputs, &Product, &x, &along, Zeros::Stop).expect("fits");
    assert_eq!(numbers(&second.inputs[0]), [3.0, 10.0, 0.0]);
}

/// A program of the fragment, as a staged one.
struct Text(Program);

impl Text {
    fn inputs(&self) -> Inputs {
        Inputs::of(&self.0)
    }
}
impl Staged for Text {
    fn run<T: Algebra>(&self, alg: &mut T, _: &mut Names, inputs: &[T::Array]) -> T::Array {
        let mut env = self.0.inputs.iter().map(Var::id).zip(inputs.iter().cloned()).collect();
        interpret(alg, &mut env, &self.0.body)
    }
}

/// Interpretation is a homomorphism: random programs as staged ones mean the same in all algebras, `build1` and its bindings included. After the bulk-operation transformation
/// also over dual arrays.
#[test]
fn random_programs_mean_the_same_in_all_algebras() {
    let mut derivatives = 0;
    for (seed, indices) in seeds(150).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = any_program(seed, indices);
        let text = Text(source.clone());
        let wanted = value(&source, &arguments);
        let found = f_staged::values(&text.inputs(), &text, &arguments).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(found.0, wanted, "seed {seed}\n{source}");
        let again = f_staged::program(&text.inputs(), &text).unwrap_or_else(|why| panic!("{why}\n{source}"));
        assert_eq!(value(&again, &arguments), wanted, "seed {seed}\n{source}\n{again}");
        if !source.body.ty().is_float() {
            continue;
        }
        derivatives += 1;
        let bulk = transform(&source, Rules::Guarded).0;
        let staged = Text(bulk.clone());
        let mut random = Random(seed);
        let count = wanted.elements.len();
        let c = reals(&wanted.shape, &(0..count).map(|_| random.unit()).collect::<Vec<f64>>());
        let by_tape = vjp(&bulk, &arguments, &c, Zeros::Stop).expect("fits");
        let tape = f_staged::tape(&staged.inputs(), &staged, &arguments, &c, Zeros::Stop).expect("fits");
        assert_eq!((&tape.value, &tape.inputs), (&by_tape.value, &by_tape.inputs), "seed {seed}\n{source}");
        let all = [arguments.as_slice(), std::slice::from_ref(&c)].concat();
        let by_program = e_symbolic::vjp(&bulk, Zeros::Stop).expect("fits").run(&all).expect("fits");
        let derivative = f_staged::derivative(&staged.inputs(), &staged, Zeros::Stop).expect("fits");
        let run = derivative.run(&all).expect("fits");
        assert_eq!((run.value, run.cotangents), (by_program.value, by_program.cotangents), "seed {seed}");
    }
    assert!(derivatives > 0);
}

/// An operation on arrays of two shapes, by an author of a program.
struct Unequal;

impl Staged for Unequal {
    fn run<T: Algebra>(&self, alg: &mut T, _: &mut Names, inputs: &[T::Array]) -> T::Array {
        let sum = alg.sum_outer(&inputs[0]);
        alg.op(f64_(Op::Add), &[inputs[0].clone(), sum])
    }
}
/// An index function that is given something else than it says.
struct Mistaken;

impl Staged for Mistaken {
    fn run<T: Algebra>(&self, alg: &mut T, names: &mut Names, inputs: &[T::Array]) -> T::Array {
        let (_, n) = vector();
        let reads = [(Ty::index(), inputs[0].clone())];
        let f = index_function(names, 1, &reads, |_, read| vec![read[0].clone()]);
        alg.gather(&[n], &inputs[0], &f)
    }
}
/// `build1` over dual arrays.
struct Built;

impl Staged for Built {
    fn run<T: Algebra>(&self, alg: &mut T, _: &mut Names, inputs: &[T::Array]) -> T::Array {
        let ty = Ty::new(vec![vector().1], Scalar::F64);
        let squares = alg.build1(&ty, &mut |alg, i| {
            let x = alg.index(&inputs[0], &[i]);
            let x = alg.share(x);
            alg.op(f64_(Op::Mul), &[x.clone(), x])
        });
        alg.sum_outer(&squares)
    }
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let (inputs, _) = vector();
    let refused =
        |why: Option<String>, part: &str| assert!(why.is_some_and(|why| why.contains(part)), "{part}");
    let x = [one_to(3)];
    refused(f_staged::values(&inputs, &Unequal, &x).err().map(|e| e.0), "add.f64");
    refused(f_staged::tape(&inputs, &Unequal, &x, &one(), Zeros::Stop).err().map(|e| e.0), "add.f64");
    refused(f_staged::derivative(&inputs, &Unequal, Zeros::Stop).err().map(|e| e.0), "add.f64");
    refused(f_staged::program(&inputs, &Mistaken).err().map(|e| e.0), "an index function takes");
    refused(f_staged::values(&inputs, &Alternating(2), &[one()]).err().map(|e| e.0), "input `x`");
    // Values and term of `build1` are there; the binding that its body shares stays in it.
    let (value, _) = f_staged::values(&inputs, &Built, &x).expect("values");
    let program = f_staged::program(&inputs, &Built).expect("a term");
    assert_eq!(
        (value.to_f64s(), evaluate(&program, &x).expect("fits").0.to_f64s()),
        (vec![14.0], vec![14.0])
    );
    refused(f_staged::tape(&inputs, &Built, &x, &one(), Zeros::Stop).err().map(|e| e.0), "`build1`");
    refused(f_staged::derivative(&inputs, &Built, Zeros::Stop).err().map(|e| e.0), "`build1`");
}
