//! Random programs in which the sizes of arrays matter and their elements may be missing.
//!
//! A program makes one array of arrays out of an argument by operations that move, nest and repeat elements. Its result is `w` times a number in
//! which every size has a place of its own, and the sum of the elements. The sizes are known where the program is made, also those of
//! arrays in arrays without elements, so that the derivative in `w` is known without running anything.

use crate::rng::Rng;
use pullback_core::Value;

/// A program, its arguments, and the derivative in the last of them.
#[derive(Clone, Debug)]
pub struct Case {
    /// With one entry point `f`.
    pub text: String,
    /// An array, and `w`.
    pub args: Vec<Value>,
    /// The derivative in `w`.
    pub in_w: f64,
}

/// A random one.
pub fn case(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let rank = rng.range(1, 3);
    let shape: Vec<usize> = (0..rank).map(|_| *rng.choose(&[0, 0, 1, 2, 3])).collect();
    let count = shape.iter().product();
    let numbers: Vec<f64> = (0..count).map(|_| rng.signed()).collect();
    let mut maker = Maker { rng, names: 0 };
    let start = if rank == 2 && maker.rng.chance(0.3) {
        ("(scan (\\a b -> map2 (+) a b) (replicate n1 0.0) x)".to_string(), shape.clone())
    } else {
        ("x".to_string(), shape.clone())
    };
    let steps = maker.rng.range(1, 4);
    let (array, sizes) = (0..steps).fold(start, |(e, sizes), _| maker.step(&e, &sizes));
    let places = ["length a", "length (transpose a)", "length (transpose (map transpose a))"];
    let factors = [1, 10, 1000];
    let number: Vec<String> =
        places.iter().zip(factors).take(sizes.len()).map(|(p, k)| format!("{k} * {p}")).collect();
    let flat = (1..sizes.len()).fold("a".to_string(), |a, _| format!("(flatten {a})"));
    let names: Vec<String> = (0..rank).map(|k| format!("[n{k}]")).collect();
    let names = names.concat();
    let text = format!(
        "def pairs [n] 't (xs: [n]t) : [n][2]t = map (\\v -> [v, v]) xs\n\
         def again [n] 't (k: i64) (xs: [n]t) : [n]t = loop ys = xs for _i < k do reverse (again (k - 1) ys)\n\
         entry f {names} (x: {names}f64) (w: f64) : f64 =\n  let a = {array}\n  in w * f64.i64 ({}) + f64.sum {flat}",
        number.join(" + ")
    );
    let in_w = sizes.iter().zip(factors).map(|(n, k)| (n * k) as f64).sum();
    Case { text, args: vec![Value::f64_array(&shape, &numbers), Value::f64(0.5)], in_w }
}

struct Maker {
    rng: Rng,
    names: usize,
}

impl Maker {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("r{}", self.names)
    }
    /// An operation on an array of these sizes, with the sizes of the result.
    fn step(&mut self, e: &str, sizes: &[usize]) -> (String, Vec<usize>) {
        let (rank, outer, inner) = (sizes.len(), sizes[0], &sizes[1..]);
        let nested = |k: usize| [&[outer, k], inner].concat();
        let k = self.rng.below(3);
        match self.rng.below(15) {
            0 if rank < 3 => (format!("(map (\\v -> replicate {k} v) {e})"), nested(k)),
            1 if rank < 3 => (format!("(map (\\v -> [v, v, v]) {e})"), nested(3)),
            2 if rank < 3 => (format!("(pairs {e})"), nested(2)),
            3 if rank < 3 => (format!("(replicate {k} {e})"), [&[k], sizes].concat()),
            4 | 5 if rank > 1 => (format!("(transpose {e})"), [&[sizes[1], outer], &sizes[2..]].concat()),
            6 if rank > 1 => (format!("(flatten {e})"), [&[outer * sizes[1]], &sizes[2..]].concat()),
            7 if rank == 2 => (format!("(map f64.sum {e})"), vec![outer]),
            8 => (format!("({e} ++ {e})"), [&[2 * outer], inner].concat()),
            9 => (format!("(reverse {e})"), sizes.to_vec()),
            10 => {
                let v = self.name();
                (format!("(loop {v} = {e} for i < {k} do reverse {v})"), sizes.to_vec())
            }
            // Of a call that is part of itself nothing is known, but for the state with which a loop around it begins.
            11 => (format!("(again {k} {e})"), sizes.to_vec()),
            12 if rank > 1 => {
                let v = self.name();
                let (body, made) = self.step(&v, inner);
                (format!("(unzip (map (\\{v} -> ({v}, {body})) {e})).1"), [&[outer], &made[..]].concat())
            }
            _ if rank > 1 => {
                let v = self.name();
                let (body, made) = self.step(&v, inner);
                (format!("(map (\\{v} -> {body}) {e})"), [&[outer], &made[..]].concat())
            }
            _ => (format!("(map (\\v -> v * v) {e})"), sizes.to_vec()),
        }
    }
}
