//! Programs that are right, with the types of their definitions as Futhark would print them.

use crate::common::check;

/// Checks a program and compares the types of its definitions.
#[track_caller]
fn types(text: &str, expected: &[(&str, &str)]) {
    let checked = check(text);
    assert!(checked.diagnostics.is_empty(), "{}", checked.messages());
    for (name, ty) in expected {
        assert_eq!(&checked.type_of(name), ty, "type of {name}");
    }
}

#[test]
fn literals_default_to_i32_and_f64() {
    types(
        "def a = 1
         def b = 1.5
         def c = 2i8
         def d = 1f32
         def e = true
         def f = 'x'
         def g = \"abc\"
         def h = -3
         def i = 1 + 2.0
         def j = [1, 2.5]",
        &[
            ("a", "i32"),
            ("b", "f64"),
            ("c", "i8"),
            ("d", "f32"),
            ("e", "bool"),
            ("f", "u8"),
            ("g", "[3]u8"),
            ("h", "i32"),
            ("i", "f64"),
            ("j", "[2]f64"),
        ],
    );
}

#[test]
fn operators_take_the_type_of_their_operands() {
    types(
        "def add x y = x + y
         def half (x: f64) = x / 2
         def less (x: i64) = x < 3
         def odd (x: u8) = x % 2 == 1
         def bits (x: i32) = (x & 7) ^ (x << 2)
         def eq (x: (i32, bool)) = x == (1, true)
         def flip_sign (x: f32) = -x
         def same 'a (x: a) = x",
        &[
            ("add", "i32 -> i32 -> i32"),
            ("half", "f64 -> f64"),
            ("less", "i64 -> bool"),
            ("odd", "u8 -> bool"),
            ("bits", "i32 -> i32"),
            ("eq", "(i32, bool) -> bool"),
            ("flip_sign", "f32 -> f32"),
            ("same", "a -> a"),
        ],
    );
}

#[test]
fn negation_takes_integers_and_truth_values() {
    types(
        "def bits (xs: []i32) = map (\\a -> !a) xs
         def words (xs: []u8) = map (\\a -> !a & 3) xs
         def none (ps: []bool) = all (\\p -> !p) ps
         def both (n: i64) (p: bool) = (let f x = !x in f n, let g x = !x in g p)
         def unknown x = !x",
        &[
            ("bits", "[]i32 -> []i32"),
            ("words", "[]u8 -> []u8"),
            ("none", "[]bool -> bool"),
            ("both", "i64 -> bool -> (i64, bool)"),
            ("unknown", "i32 -> i32"),
        ],
    );
}

#[test]
fn long_literals_take_linear_time() {
    // Minutes, if each element cost what those before it did.
    let n = 100_000;
    let numbers = vec!["1.5"; n].join(", ");
    let rows = vec!["f 2"; n].join(", ");
    types(
        &format!("def a = [{numbers}] def f (x: f64) = (x, #none : #none | #some f64) def b = [{rows}]"),
        &[("a", "[100000]f64"), ("b", "[100000](f64, #none | #some f64)")],
    );
}

#[test]
fn functions_without_annotations_are_generalised() {
    types(
        "def twice f x = f (f x)
         def pair x y = (x, y)
         def apply2 = \\f (x, y) -> f x y
         def count xs = length xs
         def compose = map >-> map",
        &[
            ("twice", "(t0 -> t0) -> t0 -> t0"),
            ("pair", "t0 -> t1 -> (t0, t1)"),
            ("apply2", "(t0 -> t1 -> t2) -> (t0, t1) -> t2"),
            ("count", "[]t0 -> i64"),
            ("compose", "(t0 -> t1) -> [][]t0 -> [][]t1"),
        ],
    );
}

#[test]
fn local_functions_are_polymorphic() {
    types(
        "def f (x: i32) (y: f64) =
           let swap 'a 'b (p: (a, b)) : (b, a) = (p.1, p.0)
           let same z = z
           in (swap (same x, same y), same true)",
        &[("f", "i32 -> f64 -> ((f64, i32), bool)")],
    );
}

#[test]
fn sizes_follow_arrays() {
    types(
        "def dot [n] (xs: [n]f64) (ys: [n]f64) = f64.sum (map2 (*) xs ys)
         def matmul [n][m][p] (a: [n][m]f64) (b: [m][p]f64) = map (\\r -> map (dot r) (transpose b)) a
         def square (n: i64) = tabulate_2d n n (\\i j -> i * j)
         def ends [n] (xs: [n]f64) = (xs[1:], xs[:n - 1], xs[2:5], xs[::-1])
         def ones (n: i64) = replicate (n + 1) 1.0
         def upto (n: i64) = 0..<n
         def three = [[1, 2], [3, 4], [5, 6]]",
        &[
            ("dot", "[n]f64 -> [n]f64 -> f64"),
            ("matmul", "[n][m]f64 -> [m][p]f64 -> [n][p]f64"),
            ("square", "(n: i64) -> [n][n]i64"),
            ("ends", "[n]f64 -> ([n - 1]f64, [n - 1]f64, [3]f64, []f64)"),
            ("ones", "i64 -> [n + 1]f64"),
            ("upto", "(n: i64) -> [n]i64"),
            ("three", "[3][2]i32"),
        ],
    );
}

#[test]
fn computed_sizes_survive_calls() {
    types(
        "def longer [n] (xs: [n]f64) : [n + 1]f64 = [0.0] ++ xs :> [n + 1]f64
         def twice [k] (ys: [k]f64) = longer (longer ys)
         def use (m: i64) (zs: [m + 2]f64) = map2 (+) zs (longer (longer (replicate m 0)))",
        &[("twice", "[k]f64 -> [k + 2]f64"), ("use", "i64 -> [m + 2]f64 -> [m + 2]f64")],
    );
}

#[test]
fn records_sums_and_abbreviations() {
    types(
        "type point = {x: f64, y: f64}
         type shape = #circle point f64 | #segment point point | #nothing
         type pair 'a 'b = (a, b)
         type vec [n] = [n]f64
         type matrix [n] [m] 'a = [n][m]a
         def norm (p: point) = f64.sqrt (p.x * p.x + p.y * p.y)
         def size (s: shape) = match s
           case #circle _ r -> r
           case #segment {x = a, y = b} q -> norm q - a + b
           case #nothing -> 0
         def move (p: point) = p with x = p.x + 1
         def origin : point = {y = 0, x = 0}
         def both : pair i32 bool = (1, true)
         def first [k] (v: vec [k]) = v[0]
         def row [a][b] (m: matrix [a] [b] i32) = m[0]
         def xs [n] (ps: [n]point) = map (.x) ps",
        &[
            ("norm", "{x: f64, y: f64} -> f64"),
            (
                "size",
                "(#circle {x: f64, y: f64} f64 | #nothing | #segment {x: f64, y: f64} {x: f64, y: f64}) -> f64",
            ),
            ("move", "{x: f64, y: f64} -> {x: f64, y: f64}"),
            ("origin", "{x: f64, y: f64}"),
            ("both", "(i32, bool)"),
            ("first", "[k]f64 -> f64"),
            ("row", "[a][b]i32 -> [b]i32"),
            ("xs", "[n]{x: f64, y: f64} -> [n]f64"),
        ],
    );
}

#[test]
fn recursion() {
    types(
        "type list = #nil | #cons f64 list
         type tree = #leaf | #node forest
         type forest = [](f64, tree)
         def total (l: list) : f64 = match l
           case #nil -> 0
           case #cons x rest -> x + total rest
         def power x n = if n == 0i32 then 1 else x * power x (n - 1)
         def even (n: i64) : bool = if n == 0 then true else odd (n - 1)
         def odd (n: i64) : bool = if n == 0 then false else even (n - 1)
         def build (n: i64) : list = if n == 0 then #nil else #cons 1 (build (n - 1))
         def depth (t: tree) : i64 = match t
           case #leaf -> 0
           case #node f -> 1 + i64.maximum (map (\\p -> depth p.1) f)",
        &[
            ("total", "list -> f64"),
            ("power", "i32 -> i32 -> i32"),
            ("even", "i64 -> bool"),
            ("build", "i64 -> list"),
            ("depth", "tree -> i64"),
        ],
    );
    let checked = check("def f (n: i64) : i64 = g n\n def g (n: i64) : i64 = f n\n def h (n: i64) = g n");
    assert!(checked.def("f").recursive && checked.def("g").recursive && !checked.def("h").recursive);
    let group = checked.program.groups.iter().find(|g| g.len() == 2).map(Vec::len);
    assert_eq!(group, Some(2));
}

#[test]
fn derivatives() {
    types(
        "def f (x: f64, v: [3]f64) = x * f64.sum v
         def g (x: (f64, [3]f64)) = vjp f x 1
         def h (x: (f64, [3]f64)) = jvp2 f x x
         def n x = vjp (\\y -> jvp f64.exp y 1) x 1
         def c x = with_vjp (\\y -> y * y) (\\r (bar: f64) -> 2 * f64.sqrt r * bar) x
         def k x = with_rule (\\y -> y * y) (\\y (bar: f64) -> 2 * y * bar) x
         def t x = with_vjp_tape (\\(y: f64) -> ((y, 3i64), f64.exp y)) (\\((y, _), bar) -> f64.exp y * bar) x
         def s x = stop_gradient (x + 1.0)
         def p (x: f64) = par (f64.sin x, f64.cos x)
         def m [n] (x: f64) (ds: [n]f64) = jmp f64.log x ds",
        &[
            ("g", "(f64, [3]f64) -> (f64, [3]f64)"),
            ("h", "(f64, [3]f64) -> (f64, f64)"),
            ("n", "f64 -> f64"),
            ("c", "f64 -> f64"),
            ("k", "f64 -> f64"),
            ("t", "f64 -> f64"),
            ("s", "f64 -> f64"),
            ("p", "f64 -> (f64, f64)"),
            ("m", "f64 -> [n]f64 -> [n]f64"),
        ],
    );
}

#[test]
fn loops_updates_and_slices() {
    types(
        "def fib (n: i64) = loop (a, b) = (0i64, 1) for _i < n do (b, a + b)
         def newton (x: f64) = (loop (y, k) = (x, 0i32) while y * y - x > 1e-9 do ((y + x / y) / 2, k + 1)).0
         def sums [n] (xs: *[n]f64) = loop xs for i < n - 1 do
           let xs[i + 1] = xs[i] + xs[i + 1]
           in xs
         def total [n] (xs: [n]f64) = loop acc = 0 for x in xs do acc + x
         def put [n][m] (a: *[n][m]f64) (r: [m]f64) = a with [0] = r with [1, 0:2] = [1, 2]
         def grow [n] (xs: [n]i32) = loop ys = xs for _i < 3i32 do ys ++ ys
         def push (n: i64) = loop acc = [0.0] for i < n do
           let longer = acc ++ [f64.i64 i]
           in map2 (+) longer (replicate (length longer) 1)
         def pick [n] (b: bool) (xs: [n]i32) = if b then xs else xs[1:]
         def at [n] (xs: [n]f64) (i: i32) (j: u8) = xs[i] + xs[j]",
        &[
            ("fib", "i64 -> (i64, i64)"),
            ("newton", "f64 -> f64"),
            ("sums", "[n]f64 -> [n]f64"),
            ("total", "[n]f64 -> f64"),
            ("put", "[n][m]f64 -> [m]f64 -> [n][m]f64"),
            ("grow", "[n]i32 -> []i32"),
            ("push", "i64 -> []f64"),
            ("pick", "bool -> [n]i32 -> []i32"),
            ("at", "[n]f64 -> i32 -> u8 -> f64"),
        ],
    );
}

#[test]
fn operators_sections_pipes_and_user_operators() {
    types(
        "def (+^) (a: (f64, f64)) (b: (f64, f64)) = (a.0 + b.0, a.1 + b.1)
         def v = (1, 2) +^ (3, 4)
         def inc [n] (xs: [n]f64) = map (+1) xs |> map (2*) |> map (`f64.max` 0)
         def cmp = (>)
         def ge3 (x: i32) = (>= 3) x && !(x != 7) || false
         def chain = f64.sin >-> f64.cos <-< f64.i64
         def range (n: i64) = [1...3, 3..2...1, 0..>(-3)]",
        &[
            ("v", "(f64, f64)"),
            ("inc", "[n]f64 -> [n]f64"),
            ("cmp", "i32 -> i32 -> bool"),
            ("ge3", "i32 -> bool"),
            ("range", "i64 -> [3][]i32"),
        ],
    );
}

#[test]
fn scalar_modules() {
    types(
        "def a (n: i64) = f64.i64 n + f64.pi
         def b (x: f32) = i32.f32 x
         def c = f64.inf
         def d (x: f64) = f64.lgamma (f64.max x 1)
         def e = i64.highest
         def f [n] (xs: [n]f32) = (f32.sum xs, f32.minimum xs, f32.maximum xs, f32.product xs)
         def g = f64.isnan
         def h = f64.from_fraction 1 2
         def i = map2 (f64.+) [1] [2]
         def j (x: f64) = f64.to_i64 x
         def k (b: bool) = i64.bool b",
        &[
            ("a", "i64 -> f64"),
            ("b", "f32 -> i32"),
            ("c", "f64"),
            ("d", "f64 -> f64"),
            ("e", "i64"),
            ("f", "[n]f32 -> (f32, f32, f32, f32)"),
            ("g", "f64 -> bool"),
            ("h", "f64"),
            ("i", "[1]f64"),
            ("j", "f64 -> i64"),
            ("k", "bool -> i64"),
        ],
    );
}

#[test]
fn existential_sizes_and_size_bindings() {
    types(
        "def positive [n] (xs: [n]f64) = filter (> 0) xs
         def count [n] (xs: [n]f64) =
           let [k] (ys: [k]f64) = filter (> 0) xs
           in (k, map2 (+) ys (replicate k 1))
         def both [n] (xs: [n]f64) (ys: [n]f64) = zip (positive xs) (positive ys)
         def forced [n] (xs: [n]f64) = positive xs :> [n]f64
         def square (n: i64) (xs: [n * n]f64) : [n][n]f64 = unflatten xs",
        &[
            ("positive", "[n]f64 -> []f64"),
            ("count", "[n]f64 -> (i64, []f64)"),
            ("both", "[n]f64 -> [n]f64 -> [](f64, f64)"),
            ("forced", "[n]f64 -> [n]f64"),
            ("square", "(n: i64) -> [n * n]f64 -> [n][n]f64"),
        ],
    );
}

#[test]
fn sizes_of_combined_arrays_are_computed() {
    types(
        "def join [n][m] (a: [n]f64) (b: [m]f64) = a ++ b
         def flat [n][m] (a: [n][m]f64) = flatten a
         def old [k] (xs: [k]f64) (n: i64) (m: i64) = unflatten n m xs
         def back [n][m] (a: [n][m]f64) : [n][m]f64 = unflatten (flatten a)",
        &[
            ("join", "[n]f64 -> [m]f64 -> [n + m]f64"),
            ("flat", "[n][m]f64 -> [n * m]f64"),
            ("old", "[k]f64 -> (n: i64) -> (m: i64) -> [n][m]f64"),
            ("back", "[n][m]f64 -> [n][m]f64"),
        ],
    );
}

#[test]
fn unflatten_takes_the_sizes_that_its_result_is_used_at_or_that_were_written() {
    types(
        "def use [l][d] (xs: [l][2][d]f64) = f64.sum (map (\\x -> x[0, 0] + x[1, 0]) xs)
         def by_use [l][d] (xs: [l * 2][d]f64) = let ys = unflatten xs in use ys
         def as_written [d] (n: i64) (xs: [d]f64) = map (\\p -> p[0] + p[1]) (unflatten (sized (n * 2) xs))
         def inner [l][d] (w: [l * 2][4 * d]f64) (b: [l][2][4][d]f64) = zip b (unflatten (map unflatten w))",
        &[
            ("by_use", "[2 * l][d]f64 -> f64"),
            ("as_written", "i64 -> [d]f64 -> []f64"),
            ("inner", "[2 * l][4 * d]f64 -> [l][2][4][d]f64 -> [l]([2][4][d]f64, [][][]f64)"),
        ],
    );
}

#[test]
fn the_style_of_futhark_programs() {
    types(
        "def (+^) = map2 (f64.+)
         def fst (x, _) = x
         def sum_by 'a (f: a -> f64) (xs: []a) : f64 = map f xs |> f64.sum
         def lse = sum_by f64.exp >-> f64.log
         def norms (m: [][]f64) = flatten m |> map (** 2) |> f64.sum
         def eye n = tabulate_2d n n (\\i j -> f64.bool (i == j))
         def weighted [k] (qs: [k]([][]f64, f64)) g = sum_by (fst >-> norms) qs * g + f64.i64 k
         def wishart (a: f64) (p: i64) = (1...p) |> sum_by (\\j -> f64.lgamma (a + 0.5 * f64.i64 (1 - j)))
         def grad f x = vjp f x 1f64
         def both [n][d] (xs: [n][d]f64) = grad (\\(a, b) -> lse a + norms b) (xs[0], xs)
         type~ model [b] [v] = {parents: [b]i32, weights: [b][v]f64, triangles: [][3]i32, flip: bool}
         def parents [b][v] (m: model [b] [v]) = map i64.i32 m.parents
         def absolutes [n] (rel: [n][4][4]f64) (parents: [n]i32) : [n][4][4]f64 =
           loop abs : *[n][4][4]f64 = replicate n (eye 4)
           for i < n do abs with [i] = if parents[i] == -1 then rel[i] else copy abs[parents[i]]
         def columns [n] (m: [3][n]f64) (i: i32) = m[:, i] +^ map (* m[0, 1]) m[:, 0]
         def poses (theta: []f64) (bones: i64) : [][]f64 =
           tabulate (3 + bones) (\\i -> match i
                                      case 0 -> take 3 theta[0:]
                                      case 1 -> [1, 1, 1]
                                      case j -> if j % 4 == 0 then [0, 0, 0] else [theta[j], 0, 0])
         def last_rows [n][d] (k: i64) (p: [n][d]f64) =
           let c = take k (reverse p)
           let (a, b) = jvp2 (\\x -> vjp norms x 1) c (replicate k (replicate d 1))
           in map2 (map2 (/)) a b
         entry lighthouse nu gamma omega t =
           let f (nu, gamma, omega, t) = (nu * f64.tan (omega * t)) / (gamma - f64.tan (omega * t))
           in vjp f (nu, gamma, omega, t) 1",
        &[
            ("lse", "[]f64 -> f64"),
            ("eye", "(n: i64) -> [n][n]f64"),
            ("weighted", "[k]([][]f64, f64) -> f64 -> f64"),
            ("grad", "(t0 -> f64) -> t0 -> t0"),
            ("both", "[n][d]f64 -> ([d]f64, [n][d]f64)"),
            ("absolutes", "[n][4][4]f64 -> [n]i32 -> [n][4][4]f64"),
            ("columns", "[3][n]f64 -> i32 -> [3]f64"),
            ("last_rows", "(k: i64) -> [n][d]f64 -> [k][d]f64"),
            ("lighthouse", "f64 -> f64 -> f64 -> f64 -> (f64, f64, f64, f64)"),
        ],
    );
}

#[test]
fn sizes_of_the_body_are_not_asked_for_at_entry() {
    let text = "def g (x: i64) = x * x
                def f xs = let k = g 3 in map2 (+) xs (iota k)
                def h (y: i64) = let f xs = (let k = g y in map2 (+) xs (iota k)) in f (iota 4)";
    let checked = check(text);
    assert!(checked.diagnostics.is_empty(), "{}", checked.messages());
    assert!(checked.def("f").fun.checks.is_empty(), "{:?}", checked.def("f").fun.checks);
    types("def f n xs = map2 (+) xs (iota n)", &[("f", "(n: i64) -> [n]i64 -> [n]i64")]);
    let late = "def f [d] (xs: [d]i32) = let ys = unflatten xs let k = d / 2 let j = k * k
                in map2 (\\y z -> (y[0], z)) ys (iota j)";
    let checked = check(late);
    assert!(checked.messages().contains("the sizes of the result of unflatten are not known"));
}

#[test]
fn names_of_the_user_hide_those_of_the_prelude() {
    types(
        "def three = head [3i8]
         def head (x: bool) = x
         def map (x: i32) = x + 1
         def use = (head true, map 3)",
        &[("three", "i8"), ("use", "(bool, i32)")],
    );
}

#[test]
fn entry_points_keep_names_and_order_of_the_user() {
    use pullback_front::typed::EntryType;
    use pullback_prim::Scalar;
    let checked = check(
        "type params [k] = {mu: [k]f64, alpha: f64}
         entry main [k] (p: params [k]) (n: i64) (_: bool) : (f64, {z: i32, a: i32}) = (p.alpha, {a = 1, z = 2})",
    );
    assert!(checked.diagnostics.is_empty(), "{}", checked.messages());
    let entry = checked.def("main").entry.clone().expect("an entry point");
    let names: Vec<&str> = entry.params.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["p", "n", "arg2"]);
    let f64 = EntryType::Scalar(Scalar::F64);
    let mu = EntryType::Array(Some("k".into()), Box::new(f64.clone()));
    assert_eq!(entry.params[0].1, EntryType::Record(vec![("mu".into(), mu), ("alpha".into(), f64.clone())]));
    let i32 = EntryType::Scalar(Scalar::I32);
    let record = EntryType::Record(vec![("z".into(), i32.clone()), ("a".into(), i32)]);
    assert_eq!(entry.result, EntryType::Tuple(vec![f64, record]));
}

#[test]
fn checks_are_kept_only_where_they_may_fail() {
    let sure = check("def f [n] (a: [n]i32) (b: [n]i32) = a[0] + b[0]\n def g [n] (a: [n]i32) = f a a");
    assert_eq!(sure.def("f").fun.checks.len(), 1);
    assert!(!sure.def("f").fun.needs_checks);
    let unsure = check(
        "def f [n] (a: [n]i32) (b: [n]i32) = a[0] + b[0]
         def g (a: []i32) = f (filter (> 0) a) a",
    );
    assert!(unsure.diagnostics.is_empty(), "{}", unsure.messages());
    assert!(unsure.def("f").fun.needs_checks);
    let entry = check("entry f [n] (a: [n]i32) (b: [n]i32) = a[0] + b[0]");
    assert!(entry.def("f").fun.needs_checks);
}
