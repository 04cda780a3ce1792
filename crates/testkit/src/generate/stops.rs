//! Random source programs that may stop with an error, at one place.
//!
//! What may stop them is one operation: an index, a slice, a division, a size, a shape, an assertion. Whether it does depends on the
//! arguments. It stands in straight-line code, maps, loops, branches, calls, operators and under derivatives, and often nobody needs
//! its value, or its value is linear, so that no derivative needs it.

use crate::rng::Rng;

/// A program that may stop, and arguments.
#[derive(Clone, Debug)]
pub struct Stops {
    /// Its text; the entry point is `main` with the parameters `xs: [3]f64`, `x: f64`, `is: [3]i64` and `k: i64`.
    pub text: String,
    /// Values of `is` and `k`.
    pub args: Vec<([i64; 3], i64)>,
    /// The number of the operation, and those of what is around it.
    pub made: (usize, Vec<usize>),
}

/// How many kinds of operations there are.
pub const OPERATIONS: usize = 24;
/// How many kinds of places there are for them.
pub const PLACES: usize = 16;

/// The program of a seed.
pub fn stops(seed: u64) -> Stops {
    let mut rng = Rng::new(seed);
    let operation = rng.below(OPERATIONS);
    let depth = rng.range(1, 2);
    let places: Vec<usize> = (0..depth).map(|_| rng.below(PLACES)).collect();
    // Counters of loops around are in scope: the innermost one is `i`.
    let counts = places.iter().any(|p| matches!(p, 2 | 3 | 5 | 8 | 10));
    let index = match rng.below(4) {
        0 if counts => "(k + i)",
        1 if counts => "is[i]",
        2 => "is[1]",
        _ => "k",
    };
    let mut text = one_that_stops(operation, index);
    let mut functions = String::new();
    for (level, place) in places.iter().enumerate() {
        text = around(&mut rng, *place, &text, level, &mut functions);
    }
    let body = match rng.below(3) {
        0 => format!("f64.sin ({text}) + x * f64.sum xs"),
        1 => format!("({text}) * x"),
        _ => format!("({text}) + x"),
    };
    let main = format!("entry main [n] [m] (xs: [n]f64) (x: f64) (is: [m]i64) (k: i64) : f64 =\n  {body}\n");
    let lists = [[0, 1, 2], [2, 1, 1], [1, 5, 0], [0, -1, 2], [2, 0, 7]];
    let numbers = [-1, 0, 1, 2, 3, 6];
    let args = (0..4).map(|_| (*rng.choose(&lists), *rng.choose(&numbers))).collect();
    Stops { text: functions + &main, args, made: (operation, places) }
}

/// An operation that may have no value where it depends on this integer, as a number.
fn one_that_stops(operation: usize, j: &str) -> String {
    match operation {
        0 => format!("xs[{j}]"),
        1 => format!("f64.i64 (12 / {j})"),
        2 => format!("f64.i64 (12 % {j})"),
        3 => format!("f64.i64 (12 // {j} + 12 %% 5)"),
        4 => format!("f64.i64 (2 ** {j})"),
        5 => format!("f64.sum xs[{j}:{j} + 2]"),
        6 => format!("f64.sum xs[0:{j}]"),
        7 => format!("f64.i64 (length (iota {j}))"),
        8 => format!("f64.sum (replicate {j} x)"),
        9 => format!("(copy xs with [{j}] = x)[0]"),
        10 => format!("assert ({j} > 0) x"),
        11 => format!("f64.sum (map2 (*) xs (map f64.i64 (iota (i64.max 0 {j})) :> [n]f64))"),
        12 => format!("f64.sum (copy xs with [{j}:{j} + 2] = [x, 2 * x])"),
        13 => format!("f64.i64 (length (map (\\a -> iota ({j} * a)) [1, 2]))"),
        14 => format!("f64.i32 (7 / i32.i64 ({j}))"),
        15 => format!(
            "(let c = {j} let rows = unflatten xs :> [c][1]f64 in f64.sum (map (\\row -> row[0]) rows))"
        ),
        16 => format!("xs[is[{j} % 3]]"),
        17 => format!("(map (\\z -> z * x) xs)[{j}]"),
        18 => format!("(loop s = x for a < {j} do s + xs[a])"),
        19 => format!("f64.sum (map (\\a -> xs[a]) (iota (i64.max 0 {j})))"),
        20 => format!("(scan (+) 0 xs)[{j}]"),
        21 => format!("(map (\\a -> xs[a * {j}]) (iota 3))[0]"),
        22 => format!("(filter (\\z -> z > 0) xs)[{j}]"),
        _ => format!("f64.sum (map (\\a -> xs[a + {j}]) [0, 1])"),
    }
}

/// A number made of another one, `functions`: definitions that it needs.
fn around(rng: &mut Rng, place: usize, inner: &str, level: usize, functions: &mut String) -> String {
    let attribute = *rng.choose(&[
        "",
        "",
        "#[tape(carry)] ",
        "#[tape(sqrt)] ",
        "#[tape(revolve(2))] ",
        "#[stripmine(2)] ",
    ]);
    match place {
        0 => inner.into(),
        1 => format!("(let _unused = {inner} in x * x)"),
        2 => format!("f64.sum (map (\\i -> {inner}) (iota n))"),
        3 => format!("({attribute}loop s = x for i < 3 do s + {inner})"),
        4 => format!("(if {} then {inner} else x)", rng.choose(&["x > 0", "k > 1", "is[0] > 0"])),
        5 => format!("({attribute}loop (s, i) = (x, 0) while i < 2 do (s * x + {inner}, i + 1)).0"),
        6 => format!("(let h (y: f64) = y * {inner} in h x)"),
        7 => format!("({} (\\x -> x * ({inner})) x 1)", rng.choose(&["vjp", "jvp"])),
        8 => {
            let name = format!("down{level}");
            *functions += &format!(
                "def {name} [n] [m] (xs: [n]f64) (is: [m]i64) (k: i64) (i: i64) (x: f64) : f64 =\n  \
                 if i < 0 then x else x * {name} xs is k (i - 1) x + {inner}\n"
            );
            format!("({name} xs is k 2 x)")
        }
        9 => format!("(x * x, {inner}).0"),
        10 => format!("f64.maximum (map (\\i -> {inner}) (iota 2))"),
        11 => format!("(reduce (\\a b -> a + b + 0 * ({inner})) 0 xs)"),
        12 => format!("(let ys = map (\\z -> z * ({inner})) xs in ys[1])"),
        13 => format!("(#[recompute] ({inner}) * x)"),
        14 => format!("(let (p, _q) = unzip (map (\\z -> (z * x, {inner})) xs) in f64.sum p)"),
        _ => format!("(loop (s, _dead) = (x, 0) for _a < 2 do (s * x, {inner})).0"),
    }
}
