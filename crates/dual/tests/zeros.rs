//! What does not count cannot spoil what counts: zero tangents and cotangents stop at partial derivatives that are infinite or no number,
//! in all modes and nests of them; and nothing is lost where partial derivatives are finite.

use crate::common::{Random, count, expression};
use pullback_dual::{
    Custom, Dual, Scalar, Second, derivative, grad, gradient_forward, hessian, hvp, jvp, value_and_grad,
};

/// A function of one number with a partial derivative that is infinite or no number somewhere.
#[derive(Clone, Copy, Debug)]
struct Steep {
    name: &'static str,
    /// A point where the derivative is not finite.
    at: f64,
    /// A point where it is.
    regular: f64,
    /// Whether the value at the first point is finite.
    is_finite: bool,
}

const STEEP: &[Steep] = {
    const fn steep(name: &'static str, at: f64, regular: f64, is_finite: bool) -> Steep {
        Steep { name, at, regular, is_finite }
    }
    &[
        steep("sqrt", 0.0, 1.0, true),
        steep("cbrt", 0.0, 8.0, true),
        steep("asin", -1.0, 0.5, true),
        steep("acos", 1.0, -0.5, true),
        steep("acosh", 1.0, 2.0, true),
        steep("atan2", 0.0, 0.75, true),
        steep("powf", 0.0, 4.0, true),
        steep("pow", 0.0, 2.0, true),
        steep("given", 0.0, 3.0, true),
        steep("custom", 0.0, 4.0, true),
        steep("ln", 0.0, 2.0, false),
        steep("log2", 0.0, 3.0, false),
        steep("log10", 0.0, 5.0, false),
        steep("ln_1p", -1.0, 1.0, false),
        steep("atanh", 1.0, 0.25, false),
        steep("recip", 0.0, 2.0, false),
        steep("one over", 0.0, 0.5, false),
        steep("over", 0.0, 0.5, false),
        steep("over zero", 1.0, f64::NAN, false),
        steep("powi", 0.0, 1.5, false),
        steep("exponent", 5000.0, 1.5, false),
        steep("exp", 1000.0, 0.5, false),
        steep("exp2", 2000.0, 0.5, false),
        steep("exp_m1", 1000.0, -0.5, false),
        steep("sinh", 1000.0, 1.0, false),
        steep("cosh", -1000.0, 1.0, false),
    ]
};

/// The square root, with a rule of its own.
#[derive(Clone)]
struct Root;
impl Custom for Root {
    fn value<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        vec![x[0].sqrt()]
    }
    fn vjp<S: Scalar>(&self, _x: &[S], y: &[S], y_bar: &[S]) -> Vec<S> {
        vec![y_bar[0].strong_mul((y[0] + y[0]).recip())]
    }
}

fn number<S: Scalar>(x: f64) -> S::Float {
    <S::Float as pullback_dual::Float>::of_f64(x)
}

fn steep<S: Scalar>(name: &str, x: S) -> S {
    let c = S::from_f64;
    match name {
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "acosh" => x.acosh(),
        "atan2" => x.atan2(x + x),
        "powf" => x.powf(number::<S>(0.5)),
        "pow" => x.pow(x + c(0.25)),
        "given" => S::with_partials(
            x.value(),
            &[(x, number::<S>(if x.value() == S::zero().value() { f64::INFINITY } else { 1.0 }))],
        ),
        "custom" => S::custom(&Root, &[x])[0],
        "ln" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "ln_1p" => x.ln_1p(),
        "atanh" => x.atanh(),
        "recip" => x.recip(),
        "one over" => S::one() / x,
        "over" => (x + c(1.0)) / x,
        "over zero" => x / S::zero(),
        "powi" => x.powi(-3),
        "exponent" => c(2.0).pow(x),
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "exp_m1" => x.exp_m1(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        _ => panic!("no such function: {name}"),
    }
}

/// A steep function between others that are not: `way` says which.
fn wrapped<S: Scalar>(f: &Steep, way: u64, x: S) -> S {
    let c = S::from_f64;
    let x = match way % 4 {
        0 => x,
        1 => x * c(2.0) * c(0.5),
        2 => -(-x),
        _ => (x + c(1.0)) - c(1.0),
    };
    let y = steep(f.name, x);
    match way / 4 % 5 {
        0 => y,
        // What is infinite itself is a partial derivative of the product, at an argument that is not finite.
        1 if f.is_finite => y * c(3.0) + c(1.0),
        1 => y + c(1.0),
        2 => -y,
        // At infinity the sine itself has no derivative.
        3 if f.is_finite => (y + c(2.0)).sin(),
        _ => y / c(2.0) + y,
    }
}

const ORDINARY: usize = 4;

/// A random function of four numbers, plus a steep one of the fifth; without it if there is none.
fn apart<S: Scalar>(seed: u64, f: Option<&Steep>, x: &[S]) -> S {
    let y = expression(seed, &x[..ORDINARY]);
    f.map_or(y, |f| y + wrapped(f, seed, x[ORDINARY]))
}

/// The second derivatives along `i` and each number, in the four mixes of modes.
fn mixes(f: impl Mixed, i: usize, x: &[f64]) -> [(&'static str, Vec<f64>); 4] {
    [
        ("forward over reverse", hessian(|x: &Vec<Second<'_, f64, 4>>| f.call(x), x)[i].clone()),
        ("reverse over reverse", grad(|x| grad(|y| f.call(y), x)[i], x)),
        ("reverse over forward", grad(|x| gradient_forward::<2, _, _, _>(|y| f.call(y), x).1[i], x)),
        (
            "forward over forward",
            gradient_forward::<2, _, _, _>(|x| gradient_forward::<3, _, _, _>(|y| f.call(y), x).1[i], x).1,
        ),
    ]
}

/// A function for every type of numbers.
trait Mixed: Copy {
    fn call<S: Scalar>(self, x: &[S]) -> S;
}

#[derive(Clone, Copy)]
struct Apart<'a>(u64, Option<&'a Steep>);
impl Mixed for Apart<'_> {
    fn call<S: Scalar>(self, x: &[S]) -> S {
        apart(self.0, self.1, x)
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * (1.0 + b.abs())
}

/// The numbers of a random function have its derivatives, whatever the derivative of what is added to it.
#[test]
fn what_does_not_depend_on_a_number_leaves_its_derivatives_alone() {
    for seed in 0..count(400) {
        let f = &STEEP[seed as usize % STEEP.len()];
        let mut random = Random(seed);
        let mut x: Vec<f64> = (0..ORDINARY).map(|_| random.number()).collect();
        let expected = grad(|x| apart(seed, None, x), &x);
        let at = x.len();
        x.push(f.at);
        let check = |mode: &str, found: &[f64]| {
            let right = found.iter().zip(&expected).all(|(a, b)| near(*a, *b));
            assert!(right, "seed {seed}, {mode}, beside {}: {found:?}, alone {expected:?}", f.name);
        };
        check("reverse", &grad(|x| apart(seed, Some(f), x), &x)[..at]);
        let forward = gradient_forward::<3, _, _, _>(|x| apart(seed, Some(f), x), &x).1;
        check("forward", &forward[..at]);
        #[cfg(feature = "parallel")]
        check("parallel", &pullback_dual::parallel::grad(|x| apart(seed, Some(f), x), &x)[..at]);
        let directions: Vec<f64> = (0..at)
            .map(|i| {
                let direction: Vec<f64> = (0..=at).map(|j| f64::from(u8::from(i == j))).collect();
                let (_, d): (f64, f64) = jvp(|x| apart(seed, Some(f), x), &x, &direction).expect("one shape");
                d
            })
            .collect();
        check("one direction", &directions);
        let i = random.below(at);
        let alone = mixes(Apart(seed, None), i, &x[..at]);
        for ((mode, found), (_, alone)) in mixes(Apart(seed, Some(f)), i, &x).iter().zip(&alone) {
            let right = found.iter().zip(alone).all(|(a, b)| near(*a, *b));
            assert!(right, "seed {seed}, {mode}, along {i}, beside {}: {found:?}, alone {alone:?}", f.name);
            assert_eq!(found[at], 0.0, "seed {seed}, {mode}, along {i} and the number of {}", f.name);
        }
    }
}

/// A random function of four numbers, plus a product of the fifth and a steep function of the sixth.
#[derive(Clone, Copy)]
struct Product<'a>(u64, &'a Steep);
impl Mixed for Product<'_> {
    fn call<S: Scalar>(self, x: &[S]) -> S {
        expression(self.0, &x[..ORDINARY]) + x[ORDINARY] * wrapped(self.1, self.0, x[ORDINARY + 1])
    }
}

/// What counts by zero has the gradient zero, however steep; and its derivative along the number that makes it count is that of what is
/// counted.
#[test]
fn what_counts_by_zero_has_no_part_in_the_gradient() {
    let finite: Vec<&Steep> = STEEP.iter().filter(|f| f.is_finite).collect();
    for seed in 0..count(400) {
        let f = finite[seed as usize % finite.len()];
        let mut random = Random(seed);
        let mut x: Vec<f64> = (0..ORDINARY).map(|_| random.number()).collect();
        let alone = grad(|x| expression(seed, x), &x);
        let (z, w) = (x.len(), x.len() + 1);
        x.extend([0.0, f.at]);
        let (h, slope) = derivative(|w| wrapped(f, seed, w), f.at);
        let program = Product(seed, f);
        let gradient = grad(|x| program.call(x), &x);
        let label = format!("seed {seed}, {}", f.name);
        assert!(
            gradient.iter().zip(&alone).all(|(a, b)| near(*a, *b)),
            "{label}: {gradient:?}, alone {alone:?}"
        );
        assert_eq!(gradient[z..], [h, 0.0], "{label}");
        #[cfg(feature = "parallel")]
        assert_eq!(pullback_dual::parallel::grad(|x| program.call(x), &x), gradient, "{label}");
        // Along z: the slope is infinite, or the same number in all mixes. The rule by hand has no derivative where its partial
        // derivative, which is a constant, jumps.
        for (mode, along) in mixes(program, z, &x) {
            assert!(along[..w].iter().all(|d| *d == 0.0), "{label}, {mode}: {along:?}");
            let same = along[w] == slope || slope.is_nan() && along[w].is_nan();
            assert!(same, "{label}, {mode}: {} and the slope {slope}", along[w]);
        }
        let mut direction = vec![0.0; x.len()];
        direction[z] = 1.0;
        let (_, _, along) = hvp(|x: &Vec<Second<'_>>| program.call(x), &x, &direction).expect("one shape");
        assert!(along[..w].iter().all(|d| *d == 0.0), "{label}: {along:?}");
        // Along w what counts by zero is there only for the gradient along z.
        for (mode, along) in mixes(program, w, &x).into_iter().take(2) {
            assert!(along[..z].iter().all(|d| *d == 0.0) && along[w] == 0.0, "{label}, {mode}: {along:?}");
        }
    }
}

/// A power of the distance of a function from its value somewhere.
#[derive(Clone, Copy)]
struct Power<'a> {
    f: &'a Steep,
    way: u64,
    at: f64,
    power: i32,
}
impl Mixed for Power<'_> {
    fn call<S: Scalar>(self, x: &[S]) -> S {
        let value = wrapped(self.f, self.way, S::from_f64(self.at));
        let distance = wrapped(self.f, self.way, x[0]) - value.stop_gradient();
        (1..self.power).fold(distance, |product, _| product * distance)
    }
}

/// Zero times a finite partial derivative is a product: `(f x - f c)^2` has the second derivative `2 f'(c)^2`, the third power the third
/// derivative `6 f'(c)^3`.
#[test]
fn nothing_is_lost_where_partial_derivatives_are_finite() {
    let regular = STEEP.iter().filter(|f| !f.regular.is_nan() && f.name != "given");
    for (f, way) in regular.flat_map(|f| (0..20).map(move |way| (f, way))) {
        let at = f.regular;
        let slope = derivative(|x| wrapped(f, way, x), at).1;
        let label = format!("{}, wrapped {way}", f.name);
        let squared = Power { f, way, at, power: 2 };
        for (mode, found) in mixes(squared, 0, &[at]) {
            assert!(
                near(found[0], 2.0 * slope * slope),
                "{label}, {mode}: {found:?}, {}",
                2.0 * slope * slope
            );
        }
        let cubed = Power { power: 3, ..squared };
        let expected = 6.0 * slope.powi(3);
        let found = [
            grad(|x| hessian(|y: &Vec<Second<'_, _, 4>>| cubed.call(y), std::slice::from_ref(x))[0][0], &at),
            grad(|x| grad(|y| grad(|z| cubed.call(&[*z]), y), x), &at),
            grad(|x| grad(|y| derivative(|z| cubed.call(&[z]), *y).1, x), &at),
            grad(|x| derivative(|y| grad(|z| cubed.call(&[*z]), &y), *x).1, &at),
            derivative(|x| grad(|y| derivative(|z| cubed.call(&[z]), *y).1, &x), at).1,
            derivative(|x| derivative(|y| grad(|z| cubed.call(&[*z]), &y), x).1, at).1,
            derivative(|x| derivative(|y| derivative(|z| cubed.call(&[z]), y).1, x).1, at).1,
            derivative(|x| grad(|y| grad(|z| cubed.call(&[*z]), y), &x), at).1,
        ];
        assert!(found.iter().all(|d| near(*d, expected)), "{label}: {found:?}, expected {expected}");
    }
}

/// The programs that showed the fault, and five of each kind.
#[test]
fn zeros_stop() {
    // A constant at the kink.
    assert_eq!(derivative(|x| Dual::constant(0.0).sqrt() + x, 1.0).1, 1.0);
    assert_eq!(derivative(|x| Dual::constant(0.0).ln() + x, 1.0).1, 1.0);
    assert_eq!(derivative(|x| Dual::constant(1.0) / Dual::constant(0.0) + x, 1.0).1, 1.0);
    assert_eq!(derivative(|x| Dual::constant(1.0).acosh() * x, 3.0), (0.0, 0.0));
    assert_eq!(derivative(|x| Dual::constant(0.0).atan2(Scalar::zero()) + x * x, 3.0).1, 6.0);
    assert_eq!(derivative(|x| Dual::constant(0.0).powf(0.5) + x.pow(Scalar::from_f64(2.0)), 3.0).1, 6.0);
    // By hand: z sqrt x has the Hessian ((0, 1/(2 sqrt x)), (1/(2 sqrt x), -z/(4 x^(3/2)))).
    let at = [0.0, 0.0];
    let product = |d: &[f64; 2]| hvp(|&[z, x]: &[Second<'_>; 2]| z * x.sqrt(), &at, d).expect("one shape");
    assert_eq!(product(&[1.0, 0.0]), (0.0, [0.0, 0.0], [0.0, f64::INFINITY]));
    assert_eq!(product(&[0.0, 1.0]), (0.0, [0.0, 0.0], [f64::INFINITY, 0.0]));
    assert_eq!(product(&[0.0, 0.0]), (0.0, [0.0, 0.0], [0.0, 0.0]));
    // The norm at the origin, chosen or not: the cosine is not.
    fn cosine<S: Scalar>(x: &[S]) -> S {
        let r = S::dot(x, x).sqrt();
        if r > S::zero() { r.cos() } else { S::one() }
    }
    let origin = vec![0.0; 3];
    assert_eq!(grad(|x| cosine(x), &origin), [0.0; 3]);
    assert_eq!(gradient_forward::<2, _, _, _>(|x| cosine(x), &origin).1, [0.0; 3]);
    assert_eq!(hessian(|x: &Vec<Second<'_, f64, 4>>| cosine(x), &origin), vec![vec![0.0; 3]; 3]);
    // In forward mode the tangent of the sum of squares is zero: there is nothing for the root to multiply.
    assert_eq!(gradient_forward::<2, _, _, _>(|x| Scalar::dot(x, x).sqrt(), &origin).1, [0.0; 3]);
    // (sqrt x - 1)^2 at 1.
    assert_eq!(hessian(|x| (x.sqrt() - 1.0) * (x.sqrt() - 1.0), &1.0), [[0.5]]);
    // Masks: computed before it is chosen.
    fn masked<S: Scalar>(x: &[S]) -> S {
        let roots: Vec<S> = x.iter().map(|x| x.sqrt()).collect();
        x.iter().zip(&roots).map(|(x, r)| if *x > S::zero() { *r } else { S::zero() }).sum()
    }
    let (value, gradient) = value_and_grad(|x| masked(x), &vec![0.0, 4.0, 0.0]);
    assert_eq!((value, gradient), (2.0, vec![0.0, 0.25, 0.0]));
    assert_eq!(gradient_forward::<2, _, _, _>(|x| masked(x), &vec![0.0, 4.0, 0.0]).1, [0.0, 0.25, 0.0]);
}

#[test]
fn the_product_with_a_partial_derivative_is_a_product_where_it_is_finite() {
    let infinite = f64::INFINITY;
    for (d, partial, expected) in
        [(0.0, infinite, 0.0), (0.0, f64::NAN, 0.0), (-0.0, -infinite, 0.0), (2.0, infinite, infinite)]
    {
        assert_eq!(d.strong_mul(partial), expected);
    }
    assert!(
        2f64.strong_mul(f64::NAN).is_nan()
            && f64::NAN.strong_mul(0.0).is_nan()
            && infinite.strong_mul(0.0).is_nan()
    );
    // Its derivatives are those of the product.
    assert_eq!(grad(|&[d, p]| d.strong_mul(p), &[0.0, 5.0]), [5.0, 0.0]);
    assert_eq!(gradient_forward::<2, _, _, _>(|&[d, p]| d.strong_mul(p), &[0.0, 5.0]).1, [5.0, 0.0]);
    assert_eq!(hessian(|&[d, p]| d.strong_mul(p), &[0.0, 5.0]), [[0.0, 1.0], [1.0, 0.0]]);
    // At an infinite one nothing depends on the partial derivative.
    assert_eq!(grad(|&[d, x]| d.strong_mul(x.recip()), &[0.0, 0.0]), [infinite, 0.0]);
    assert_eq!(
        gradient_forward::<1, _, _, _>(|&[d, x]| d.strong_mul(x.recip()), &[0.0, 0.0]).1,
        [infinite, 0.0]
    );
}
