//! Right programs: every construct gives the tree that the language reference of Futhark prescribes.

#[allow(dead_code, unreachable_pub)]
use crate::support;
use support::{expression, program};

#[track_caller]
fn check(text: &str, tree: &str) {
    assert_eq!(expression(text), tree, "for {text}");
}

#[track_caller]
fn check_program(text: &str, trees: &[&str]) {
    assert_eq!(program(text), trees, "for {text}");
}

#[test]
fn literals() {
    check("1", "1");
    check("1_000i64", "1000i64");
    check("0xff", "255");
    check("0xffu8", "255u8");
    check("0b101", "5");
    check("1.5", "1.5");
    check("1e-3", "0.001");
    check("1.5e2f32", "150.0f32");
    check("2f64", "2.0f64");
    check("0x1.8p3", "12.0");
    check("18446744073709551615u64", "18446744073709551615u64");
    check("true", "true");
    check("'a'", "'a'");
    check("\"ab\\n\"", "\"ab\\n\"");
    check("-1", "(neg 1)");
}

#[test]
fn names_and_application() {
    check("f x y", "(f x y)");
    check("x'", "x'");
    check("f64.exp x", "(f64.exp x)");
    check("f (g x) y", "(f (g x) y)");
    check("x.y.z", "(. (. x y) z)");
    check("x.0.1", "(. (. x 0) 1)");
    check("f x.0", "(f (. x 0))");
    check("(f x).a", "(. (f x) a)");
    check("f64.sum xs[0]", "(f64.sum (index xs 0))");
}

#[test]
fn indexing_needs_no_space_before_the_bracket() {
    check("f[i]", "(index f i)");
    check("f [i]", "(f [i])");
    check("f xs[i] ys", "(f (index xs i) ys)");
    check("a[i][j]", "(index (index a i) j)");
    check("a[i, j:k:s]", "(index a i j:k:s)");
    check("a[:]", "(index a ::)");
    check("a[1:]", "(index a 1::)");
    check("a[:n-1]", "(index a :(- n 1):)");
    check("a[::-1]", "(index a ::(neg 1))");
    check("r.xs[0]", "(index (. r xs) 0)");
    check("(f x)[0]", "(index (f x) 0)");
}

#[test]
fn precedence() {
    check("a + b * c", "(+ a (* b c))");
    check("a * b + c", "(+ (* a b) c)");
    check("a - b - c", "(- (- a b) c)");
    check("a ** b * c", "(* (** a b) c)");
    check("a < b && c > d || e", "(|| (&& (< a b) (> c d)) e)");
    check("a == b & c", "(== a (& b c))");
    check("a + b << c", "(<< (+ a b) c)");
    check("a | b ^ c & d", "(& (^ (| a b) c) d)");
    check("a |> f |> g", "(|> (|> a f) g)");
    check("f <| g <| a", "(<| f (<| g a))");
    check("a + 1 |> f", "(|> (+ a 1) f)");
    check("f >-> g >-> h", "(>-> (>-> f g) h)");
    check("x |> f >-> g", "(|> x (>-> f g))");
    check("-x * y", "(* (neg x) y)");
    check("-f x + y", "(+ (neg (f x)) y)");
    check("f -x", "(- f x)");
    check("!a && b", "(&& (not a) b)");
    check("a `f` b + c", "(f a (+ b c))");
    check("f x + g y", "(+ (f x) (g y))");
    check("a // b %% c % d", "(% (%% (// a b) c) d)");
}

#[test]
fn user_operators_take_the_precedence_of_their_first_characters() {
    check("a +^ b * c", "(+^ a (* b c))");
    check("a *^ b + c", "(+ (*^ a b) c)");
    check("a |>| b + c", "(|>| a (+ b c))");
    check("a &&& b == c", "(&&& a (== b c))");
    check("a <*> b + c", "(<*> a (+ b c))");
}

#[test]
fn sections() {
    check("(+)", "+");
    check("(f64.+)", "f64.+");
    check("(+ 1)", "(right + 1)");
    check("(1 +)", "(left 1 +)");
    check("(a * b +)", "(left (* a b) +)");
    check("(- 1)", "(neg 1)");
    check("(x -)", "(left x -)");
    check("(-)", "-");
    check("(.x)", "(.x)");
    check("(.x.0)", "(.x 0)");
    check("(.[i, 1:])", "(.[i 1::])");
    check("(`f` x)", "(right f x)");
    check("(x `f`)", "(left x f)");
    check("(x `i32.max`)", "(left x i32.max)");
    check("map (*2) xs", "(map (right * 2) xs)");
    check("reduce (+) 0 xs", "(reduce + 0 xs)");
}

#[test]
fn let_chains_are_flat() {
    check("let x = 1 in x", "(let x = 1; x)");
    check("let x = 1 let y = x in y", "(let x = 1; y = x; y)");
    check("let x = 1 in let y = x in y", "(let x = 1; y = x; y)");
    check("let (a, b) = p in a", "(let (tuple a b) = p; a)");
    check("let {x, y = z} = p in z", "(let {x y=z} = p; z)");
    check("let x : i32 = 1 in x", "(let (: x i32) = 1; x)");
    check("let f x = x + 1 in f 2", "(let f x = (+ x 1);; (f 2))".replace(";;", ";").as_str());
    check("let f [n] 'a (x: [n]a) : a = x[0] in f", "(let f [n] 'a (: x [n]a) : a = (index x 0); f)");
    check("let a[i, 0] = 1 in a", "(let a[i 0] = 1; a)");
    check("let [n] (xs: [n]i64) = f 1 in n", "(let [n] (: xs [n]i64) = (f 1); n)");
    check("let (+^) x y = x in 1 +^ 2", "(let +^ x y = x; (+^ 1 2))");
    check("let _ = f x in 1", "(let _ = (f x); 1)");
    check("1 + let x = 1 in x + 2", "(+ 1 (let x = 1; (+ x 2)))");
}

#[test]
fn control() {
    check("if a then b else c + 1", "(if a b (+ c 1))");
    check("if a then b else if c then d else e", "(if a b (if c d e))");
    check("match x case #some y -> y case #none -> 0", "(match x ((#some y) -> y) ((#none ) -> 0))");
    check("match p case (1, -2.5) -> a case _ -> b", "(match p ((tuple 1 -2.5) -> a) (_ -> b))");
    check("match p case x : i32 -> x", "(match p ((: x i32) -> x))");
    check("loop x = 1 for i < n do x * i", "(loop x = 1 for i < n do (* x i))");
    check(
        "loop (a, b) = (1, 2) for x in xs do (b, a)",
        "(loop (tuple a b) = (tuple 1 2) for x in xs do (tuple b a))",
    );
    check("loop (x: i32) while x < 5 do x + 1", "(loop (: x i32) while (< x 5) do (+ x 1))");
    check(
        "loop acc for (a, b) in zip xs ys do acc + a",
        "(loop acc for (tuple a b) in (zip xs ys) do (+ acc a))",
    );
    check("assert (a == b) c", "(assert (== a b) c)");
    check("#[recompute] f x + 1", "(attr recompute (+ (f x) 1))");
    check("#[tape(revolve 3)] f", "(attr tape(revolve(3)) f)");
    check("#[tape(all)] f", "(attr tape(all) f)");
}

#[test]
fn data() {
    check("[1, 2]", "[1 2]");
    check("[]", "[]");
    check("(1, 2, 3)", "(tuple 1 2 3)");
    check("()", "(tuple )");
    check("{x, y = 1}", "{x y=1}");
    check("{}", "{}");
    check("#some 1", "(#some 1)");
    check("f #none (#some x)", "(f (#none ) (#some x))");
    check("r with x.y = 1 + 2", "(with r .x y (+ 1 2))");
    check("a with [i] = a[i] + 1 with [j] = 0", "(with (with a [i] (+ (index a i) 1)) [j] 0)");
    check("copy a with [0] = 1", "(with (copy a) [0] 1)");
}

#[test]
fn ranges() {
    check("0..<n", "(range 0..<n)");
    check("1...n", "(range 1...n)");
    check("0..2..<n", "(range 0..2..<n)");
    check("n-1..n-2...0", "(range (- n 1)..(- n 2)...0)");
    check("n..>0", "(range n..>0)");
    check("map f (0..<n)", "(map f (range 0..<n))");
}

#[test]
fn lambdas_and_types() {
    check("\\x -> x + 1", "(\\x -> (+ x 1))");
    check("\\x (y, z) : i32 -> x", "(\\x (tuple y z) :i32 -> x)");
    check("map (\\(x: f64) -> -x) xs", "(map (\\(: x f64) -> (neg x)) xs)");
    check("xs |> map (\\x -> x) |> f", "(|> (|> xs (map (\\x -> x))) f)");
    check("e : i32", "(: e i32)");
    check("e :> [n]i32", "(:> e [n]i32)");
    check("e : *[n][m]t", "(: e *[n][m]t)");
    check("e : {x: i32, y: (a, b)}", "(: e {x:i32 y:(tuple a b)})");
    check("e : (a -> b) -> (x: c) -> d", "(: e (-> (-> a b) (-> x:c d)))");
    check("e : #some t | #none", "(: e (sum (#some t) (#none )))");
    check("e : t [n*2] f64", "(: e (t [(* n 2)] f64))");
    check("e : ?[n].[n]t", "(: e (? n [n]t))");
    check("e : []t", "(: e []t)");
}

#[test]
fn declarations() {
    check_program(
        "-- a comment\ndef f [n] 'a '^b (xs: [n]a) (g: a -> b) : [n]b = map g xs\nentry main x = f x\n",
        &["def f [n] 'a '^b (: xs [n]a) (: g (-> a b)) : [n]b = (map g xs)", "entry main x = (f x)"],
    );
    check_program("type t = i32\ntype~ u [n] 'a = [n]a", &["type t = i32", "type u [n] 'a = [n]a"]);
    check_program("def (+^) x y = x\ndef a *^ b = a", &["def +^ x y = x", "def *^ a b = a"]);
    check_program("def x &&& (y: i32) = x", &["def &&& x (: y i32) = x"]);
    check_program("let old (x: i32) = x\n let more = 2", &["def old (: x i32) = x", "def more  = 2"]);
    check_program("#[noinline]\ndef f = 1", &["#[noinline] def f  = 1"]);
    check_program("def main x =\nlet y = x\nin y", &["def main x = (let y = x; y)"]);
    check_program("", &[]);
    check_program("-- nothing", &[]);
    check_program("def f (x: i32, y) _ = x", &["def f (tuple (: x i32) y) _ = x"]);
}

#[test]
fn the_examples_parse() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the examples are in the repository") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|e| e == "fut") {
            program(&std::fs::read_to_string(&path).expect("readable"));
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn the_prelude_parses() {
    assert!(program(pullback_syntax::PRELUDE).len() > 40);
}
