//! Small programs from source text to the results of the reference interpreter. Expected results are derived by hand
//! from the meaning of the language.

use pullback_base::{Severity, SourceMap};
use pullback_core::{Array, Value};
use pullback_interp::core::{Options, run};

/// Results of `main`, separated by `; `. Products are flat in core, so a tuple shows as its components.
fn evaluate(text: &str) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let prelude_file = sources.add(pullback_syntax::PRELUDE_NAME, pullback_syntax::PRELUDE);
    let file = sources.add("test.fut", text);
    let (prelude, mut diagnostics) = pullback_syntax::parse(prelude_file, pullback_syntax::PRELUDE);
    let (user, more) = pullback_syntax::parse(file, text);
    diagnostics.extend(more);
    let (typed, more) = pullback_front::check_program(&prelude, &user);
    diagnostics.extend(more);
    diagnostics.retain(|d| d.severity == Severity::Error);
    let render = |ds: Vec<pullback_base::Diagnostic>| {
        ds.iter().map(|d| d.render(&sources)).collect::<Vec<_>>().join("\n")
    };
    if !diagnostics.is_empty() {
        return Err(render(diagnostics));
    }
    let lambda = pullback_elab::elaborate(&typed).map_err(render)?;
    pullback_lambda::check::check(&lambda).map_err(render)?;
    let core = pullback_elab::lower(&lambda).map_err(render)?;
    pullback_core::check::check(&core, pullback_core::check::Rules::SURFACE).map_err(|m| m.to_string())?;
    let main = core.funs.iter_enumerated().find(|(_, f)| f.entry.is_some() && f.name.as_str() == "main");
    let (main, _) = main.ok_or("no entry point main")?;
    let outcome = run(&core, main, Vec::new(), &Options::default()).map_err(|e| {
        format!("stopped at {}: {e}", e.span.map_or("nowhere".to_string(), |s| sources.position(s)))
    })?;
    Ok(outcome.results.iter().map(show).collect::<Vec<_>>().join("; "))
}

fn show(value: &Value) -> String {
    match value {
        Value::Scalar(s) => s.to_string(),
        Value::Tuple(items) => format!("({})", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Sum(k, items) => format!("#{k}({})", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Array(array) => show_array(array, &array.shape, array.offset),
        Value::Acc(_) => "an accumulator".to_string(),
    }
}

fn show_array(array: &Array, shape: &[usize], offset: usize) -> String {
    let stride: usize = shape[1..].iter().product();
    let items = (0..shape[0]).map(|i| {
        let at = offset + i * stride;
        if shape.len() == 1 { show(&array.data.get(at)) } else { show_array(array, &shape[1..], at) }
    });
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

#[track_caller]
fn check(text: &str, expected: &str) {
    match evaluate(text) {
        Ok(found) => assert_eq!(found, expected, "for\n{text}"),
        Err(message) => panic!("{message}\nfor\n{text}"),
    }
}

/// The same for an expression.
#[track_caller]
fn value(text: &str, expected: &str) {
    check(&format!("entry main = {text}"), expected);
}

#[track_caller]
fn stops(text: &str, part: &str) {
    match evaluate(&format!("entry main = {text}")) {
        Ok(found) => panic!("gave {found} for {text}"),
        Err(message) => {
            assert!(message.contains("stopped") && message.contains(part), "{message} for {text}")
        }
    }
}

#[test]
fn scalars_and_operators() {
    value("1i32 + 2 * 3", "7i32");
    value("7i64 / 2", "3i64");
    value("-7i64 / 2", "-4i64");
    value("-7i64 % 2", "1i64");
    value("-7i64 // 2", "-3i64");
    value("-7i64 %% 2", "-1i64");
    value("2f64 ** 10", "1024.0f64");
    value("2i32 ** 10", "1024i32");
    value("(1i32 < 2, 1f64 >= 2, true && false, true || false, !true)", "true; false; false; true; false");
    value("6i32 & 3 | 8 ^ 1", "11i32");
    value("1i32 << 4 >> 1", "8i32");
    value("f64.i64 3 + f64.sqrt 16", "7.0f64");
    value("i64.f64 3.9", "3i64");
    value("(f64.max 1 2, i32.min 1 2, f64.abs (-3))", "2.0f64; 1i32; 3.0f64");
    value("false && 1i32 / 0 == 1", "false");
    value(
        "(i64.sum [1, 2, 3], f64.product [2, 3], f64.maximum [1, 5, 2], i32.minimum [4, 3])",
        "6i64; 6.0f64; 5.0f64; 3i32",
    );
    value("'a'", "97u8");
}

#[test]
fn functions() {
    check("def f (x: i64) (y: i64) = x - y\nentry main = f 5 3", "2i64");
    check("def f (x: i64) (y: i64) = x - y\nentry main = map (f 10) [1, 2]", "[9i64, 8i64]");
    check("def twice '^a (f: a -> a) (x: a) = f (f x)\nentry main = twice (\\x -> x * 3) 2i64", "18i64");
    check("def twice '^a (f: a -> a) (x: a) = f (f x)\nentry main = twice twice (+ 1) 0i64", "4i64");
    check(
        "def pair 'a 'b (x: a) (y: b) = (x, y)\nentry main = (pair 1i32 true, pair 2f32 3i8)",
        "1i32; true; 2.0f32; 3i8",
    );
    check("def sum = reduce (+) 0i64\nentry main = sum [1, 2, 3]", "6i64");
    check("def (+^) (x: i64) (y: i64) = x * 10 + y\nentry main = 1 +^ 2 +^ 3", "123i64");
    check("def x |+| (y: i64) = x + y\nentry main = 1 |+| 2", "3i64");
    check("entry main = let id 'a (x: a) = x in (id 1i32, id true, id 2i32)", "1i32; true; 2i32");
    check(
        "entry main = let k = 5i64 let f 'a (x: a) = (x, k) let g 'b (y: b) = f y in (g 1i32, g true)",
        "1i32; 5i64; true; 5i64",
    );
    check(
        "def fact (n: i64) : i64 = if n == 0 then 1 else n * fact (n - 1)\nentry main = fact 10",
        "3628800i64",
    );
    value("let f x = x + 1i64 let g = f >-> f <-< f in g 1", "4i64");
    value("[3i64, 1] |> map (+ 1) |> reduce (*) 1", "8i64");
    value("(\\(x, y) -> x - y) <| (5i64, 2)", "3i64");
    value("map (2i64 -) [1, 2]", "[1i64, 0i64]");
    value("map (`i64.max` 2) [1, 3]", "[2i64, 3i64]");
    value("10i64 `i64.min` 3", "3i64");
    value("map (uncurry (-)) [(3i64, 1i64)]", "[2i64]");
}

#[test]
fn products() {
    value("(1i32, (2i64, true))", "1i32; 2i64; true");
    value("(1i32, 2i64).1", "2i64");
    value("{b = 1i32, a = 2i64}.b", "1i32");
    value("let r = {b = 1i32, a = 2i64} in (r with b = 5).b", "5i32");
    value(
        "let r = {p = {q = 1i32, s = 2i32}, t = 3i32} let r = r with p.q = 9 in (r.p.q, r.p.s, r.t)",
        "9i32; 2i32; 3i32",
    );
    value("let {x, y = z} = {y = 1i32, x = 2i32} in (x, z)", "2i32; 1i32");
    value("map (.x) [{x = 1i32, y = true}, {x = 2, y = false}]", "[1i32, 2i32]");
    value("map (\\(a, (b, _)) -> a + b) [(1i32, (2i32, true))]", "[3i32]");
    value("(1i32, true) == (1, true)", "true");
    value("[1i32, 2] == [1, 3]", "false");
    value("[[1i32], [2]] == [[1], [2]]", "true");
}

#[test]
fn the_interface_keeps_the_declared_order_of_fields() {
    check("entry main : {b: i32, a: i64} = {a = 1, b = 2}", "2i32; 1i64");
    check(
        "entry main : [2]{b: i32, a: i64} = [{a = 1, b = 2}, {b = 4, a = 3}]",
        "[2i32, 4i32]; [1i64, 3i64]",
    );
}

#[test]
fn sums() {
    let program = |e: &str| {
        format!(
            "type shape = #circle i64 | #rect i64 i64 | #empty\n\
             def area (s: shape) : i64 = match s case #circle r -> 3 * r * r case #rect a b -> a * b case #empty -> 0\n\
             entry main = {e}"
        )
    };
    check(&program("area (#rect 3 4)"), "12i64");
    check(&program("map area [#circle 2, #empty]"), "[12i64, 0i64]");
    check(&program("(#empty : shape) == #empty"), "true");
    check(&program("(#rect 1 2 : shape) == #rect 1 3"), "false");
    value("match (1i64, true) case (0, _) -> 10i64 case (_, false) -> 20 case (n, true) -> n", "1i64");
    value("match 3i32 case 1 -> 10i32 case 3 -> 30 case _ -> 0", "30i32");
    value("match -1i32 case -1 -> true case _ -> false", "true");
    check(
        "type t = #a i64 | #b\n\
         def f (x: t) (y: t) : i64 = match (x, y) case (#a i, #a j) -> i + j case (#b, #a j) -> j case (#a i, #b) -> -i case (#b, #b) -> 0\n\
         entry main = (f (#a 1) (#a 2), f #b (#a 5), f (#a 7) #b, f #b #b)",
        "3i64; 5i64; -7i64; 0i64",
    );
    check(
        "type list = #nil | #cons i64 list\n\
         def sum (l: list) : i64 = match l case #nil -> 0 case #cons x rest -> x + sum rest\n\
         entry main = sum (#cons 1 (#cons 2 #nil))",
        "3i64",
    );
}

#[test]
fn arrays() {
    value("[[1i32, 2], [3, 4]][1, 0]", "3i32");
    value("[[1i32, 2], [3, 4]][1]", "[3i32, 4i32]");
    value(
        "let a = [1i32, 2, 3, 4, 5] in (a[1:3], a[:2], a[3:], a[::2], a[::-1], a[3:0:-2])",
        "[2i32, 3i32]; [1i32, 2i32]; [4i32, 5i32]; [1i32, 3i32, 5i32]; [5i32, 4i32, 3i32, 2i32, 1i32]; [4i32, 2i32]",
    );
    value("let k = 9223372036854775807i64 let a = [1i32, 2, 3] in (a[::k], a[::-k])", "[1i32]; [3i32]");
    value(
        "let a = [[1i32, 2], [3, 4]] in (a[:, 1], a[0, :], a[1:, :1])",
        "[2i32, 4i32]; [1i32, 2i32]; [[3i32]]",
    );
    value("[1i32, 2, 3] with [1] = 9", "[1i32, 9i32, 3i32]");
    value("[1i32, 2, 3, 4] with [1:3] = [8, 9]", "[1i32, 8i32, 9i32, 4i32]");
    value("[[1i32, 2], [3, 4]] with [:, 0] = [8, 9]", "[[8i32, 2i32], [9i32, 4i32]]");
    value("[[1i32, 2], [3, 4]] with [1] = [8, 9]", "[[1i32, 2i32], [8i32, 9i32]]");
    value("[[1i32, 2], [3, 4]] with [1, 0:1] = [8]", "[[1i32, 2i32], [8i32, 4i32]]");
    value("let a = [1i32, 2] let a[0] = 5 in a", "[5i32, 2i32]");
    value("(iota 3, replicate 2 true, length [1i32, 2])", "[0i64, 1i64, 2i64]; [true, true]; 2i64");
    value("transpose [[1i32, 2, 3], [4, 5, 6]]", "[[1i32, 4i32], [2i32, 5i32], [3i32, 6i32]]");
    value("flatten [[1i32, 2], [3, 4]]", "[1i32, 2i32, 3i32, 4i32]");
    value(
        "([1i32] ++ [2, 3], concat [1i32] [2], reverse [1i32, 2], rotate 1 [1i32, 2, 3])",
        "[1i32, 2i32, 3i32]; [1i32, 2i32]; [2i32, 1i32]; [2i32, 3i32, 1i32]",
    );
    value("scan (+) 0 [1i32, 2, 3]", "[1i32, 3i32, 6i32]");
    value("scatter [0i32, 0, 0] [2, 5, 0] [7, 8, 9]", "[9i32, 0i32, 7i32]");
    value("reduce_by_index [1i32, 1] (+) 0 [0, 0, 1, 7] [1, 2, 3, 4]", "[4i32, 4i32]");
    value("hist (+) 0i32 3 [0, 2, 0] [1, 2, 3]", "[4i32, 0i32, 2i32]");
    value("zip [1i32, 2] [true, false]", "[1i32, 2i32]; [true, false]");
    value("unzip [(1i32, true), (2, false)]", "[1i32, 2i32]; [true, false]");
    value("map2 (+) [1i32, 2] [3, 4]", "[4i32, 6i32]");
    value("map3 (\\a b c -> a + b * c) [1i32] [2] [3]", "[7i32]");
    value("map (\\(i, x) -> i + x) (zip (iota 2) [5, 6])", "[5i64, 7i64]");
    value("reduce (\\(a, b) (c, d) -> (a + c, b * d)) (0, 1) [(1i32, 2i32), (3, 4)]", "4i32; 8i32");
}

#[test]
fn ranges() {
    value(
        "(0..<3, 1...3, 5..>2, 1..3...6, 1..3..<7, 5..3..>0, 3..2...1)",
        "[0i32, 1i32, 2i32]; [1i32, 2i32, 3i32]; [5i32, 4i32, 3i32]; [1i32, 3i32, 5i32]; [1i32, 3i32, 5i32]; [5i32, 3i32, 1i32]; [3i32, 2i32, 1i32]",
    );
    value("(2..<2, 1i32...2)", "[]; [1i32, 2i32]");
    value("(0..2..<5, 0..2..<4, 6..4..>1)", "[0i32, 2i32, 4i32]; [0i32, 2i32]; [6i32, 4i32, 2i32]");
    // Steps that do not fit the type of the elements.
    value("(7u8..5u8...2u8, 7u8..5u8..>1u8)", "[7u8, 5u8, 3u8]; [7u8, 5u8, 3u8]");
    value("(-100i8..100i8...127i8, 100i8..-100i8..>-128i8)", "[-100i8, 100i8]; [100i8, -100i8]");
    // Steps that do not fit a size together with the distance.
    value("let s = 1i64 << 62 in (0..s..<9223372036854775807)", "[0i64, 4611686018427387904i64]");
    stops("let n = 0i64 in 3..<n", "wrong way");
    stops("let n = 1i64 in 1..n...5", "wrong way");
}

#[test]
fn loops() {
    value("loop x = 1i64 for i < 4 do x * (i + 1)", "24i64");
    value("loop x = 1i64 while x < 100 do x * 3", "243i64");
    value("loop (a, b) = (0i64, 1i64) for _i < 5 do (b, a + b)", "5i64; 8i64");
    value("loop acc = 0i64 for x in [1, 2, 3] do acc * 10 + x", "123i64");
    value("loop acc = 0i64 for (x, y) in zip [1, 2] [3, 4] do acc + x * y", "11i64");
    value("let acc = 5i64 in loop acc for i < 3 do acc + i", "8i64");
    value("loop x = 7i64 for i < 0 do x + i", "7i64");
    value("loop xs = [0i64, 0] for i < 2 do xs with [i] = i + 1", "[1i64, 2i64]");
    value("#[tape(sqrt)] loop x = 1i64 for i < 3 do x + i", "4i64");
    value("loop x = 0i32 for i < 3i32 do x + i", "3i32");
}

#[test]
fn the_prelude() {
    value("(head [1i32, 2], last [1i32, 2], tail [1i32, 2], init [1i32, 2])", "1i32; 2i32; [2i32]; [1i32]");
    value("(take 2 [1i32, 2, 3], drop 2 [1i32, 2, 3], null [1i32])", "[1i32, 2i32]; [3i32]; false");
    value("(all (> 0) [1i32, 2], any (> 1) [0i32, 1], and [], or [])", "true; false; true; false");
    value("(foldl (-) 10 [1i32, 2], foldr (-) 10 [1i32, 2])", "7i32; 9i32");
    value("filter (\\x -> x % 2 == 0) [1i64, 2, 3, 4]", "[2i64, 4i64]");
    value("filter (> 5) [1i64]", "[]");
    value("partition (< 3) [5i64, 1, 4, 2]", "[1i64, 2i64]; [5i64, 4i64]");
    value("tabulate_2d 2 3 (\\i j -> i * 10 + j)", "[[0i64, 1i64, 2i64], [10i64, 11i64, 12i64]]");
    value("tabulate_3d 1 2 2 (\\i j k -> i + j * 2 + k)", "[[[0i64, 1i64], [2i64, 3i64]]]");
    value("flatten_3d [[[1i32, 2]], [[3, 4]]]", "[1i32, 2i32, 3i32, 4i32]");
    value("(unflatten (iota 4) : [2][2]i64)", "[[0i64, 1i64], [2i64, 3i64]]");
    value("(swap (1i32, true), const 1i32 true, flip (-) 1i32 5)", "true; 1i32; 1i32; 4i32");
    value("(f64.lerp 1 3 0.5, f64.bool true, spread 3 0i32 [1] [5])", "2.0f64; 1.0f64; [0i32, 5i32, 0i32]");
    value("indices [5i32, 6]", "[0i64, 1i64]");
}

#[test]
fn sizes() {
    check("def f [n] (xs: [n]i32) (_: [n]bool) = n\nentry main = f [1, 2] [true, false]", "2i64");
    check("def f [n] [m] (xss: [n][m]i32) = (n, m)\nentry main = f [[1, 2, 3], [4, 5, 6]]", "2i64; 3i64");
    check("entry main = let [n] (xs: [n]i64) = filter (> 1) [1, 2, 3] in n", "2i64");
    check("def dup (n: i64) : [n]i64 = replicate n 7\nentry main = dup 2", "[7i64, 7i64]");
    check("def f [n] (xs: [n](i32, [2]bool)) = n\nentry main = f [(1, [true, false])]", "1i64");
    stops("let xs = filter (> 0) [1i64, 2, 0] in (xs :> [3]i64)", "size");
    stops("map2 (+) (filter (> 0) [1i64, 2]) (filter (> 0) [1i64] :> [2]i64)", "size");
}

#[test]
fn mistakes_at_run_time() {
    stops("let i = 3i64 in [1i32, 2][i]", "3");
    stops("let n = 0i64 in 1 / n", "zero");
    stops("let n = -1i64 in iota n", "-1");
    stops("let c = false in assert c 1i32", "assertion failed");
    stops("head (filter (> 5) [1i64])", "0");
    // What stops inside the prelude is reported where the user called it.
    stops("head (filter (> 5) [1i64])", "at test.fut:1:14");
    stops("1i64 + last (filter (> 5) [1i64])", "at test.fut:1:21");
    stops("map (\\n -> head (iota n)) [2i64, 0]", "at test.fut:1:25");
}

#[test]
fn sizes_are_solved_for_their_parameters() {
    let f = "def f [l] (xs: [2 * l + 1]f64) = (l, xs[0])\n";
    check(&format!("{f}entry main = f [5, 6, 7]"), "1i64; 5.0f64");
    let even = evaluate(&format!("{f}entry main = f (filter (> 0) [5.0, 6.0])")).expect_err("an even size");
    assert!(even.contains("stopped"), "{even}");
    check(
        "def g [l][d] (xs: [l * 2][d]f64) = map (\\p -> p[0, 0] - p[1, 0]) (unflatten xs)
         def h [n][d] (xs: [n][d]f64) = g (sized (n / 2 * 2) xs)
         entry main = h [[5, 0], [3, 0], [2, 0], [4, 0]]",
        "[2.0f64, -2.0f64]",
    );
}

#[test]
fn long_and_deep_programs_pass_through_on_a_small_stack() {
    let work = || {
        let lets: String = (0..5000).map(|i| format!("let x{} = x{i} + 1\n", i + 1)).collect();
        check(&format!("entry main = let x0 = 0i64\n{lets}in x5000"), "5000i64");
        let sum = "1 + ".repeat(400) + "1i64";
        check(&format!("entry main = {sum}"), "401i64");
        let nested = "(".repeat(200) + "1i64" + &")".repeat(200);
        check(&format!("entry main = {nested}"), "1i64");
        let ifs: String = (0..200).map(|i| format!("if n == {i} then {i} * 2 else ")).collect();
        check(&format!("def f (n: i64) : i64 = {ifs} 0\nentry main = f 150"), "300i64");
        let calls = "f (".repeat(200) + "1i64" + &")".repeat(200);
        check(&format!("def f (x: i64) = x + 1\nentry main = {calls}"), "201i64");
        let defs: String = (0..300).map(|i| format!("def f{} (x: i64) = f{i} x + 1\n", i + 1)).collect();
        check(&format!("def f0 (x: i64) = x\n{defs}entry main = f300 0"), "300i64");
        let tuple: String = (0..300).map(|i| format!("{i}i32, ")).collect();
        check(&format!("entry main = ({tuple} 300i32).300"), "300i32");
        let cases: String = (0..150).map(|i| format!(" case {i} -> {}", i + 1)).collect();
        check(&format!("def f (n: i64) : i64 = match n{cases} case _ -> 0\nentry main = f 149"), "150i64");
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread");
    assert!(thread.join().is_ok());
}

#[track_caller]
fn refused(text: &str, part: &str) {
    match evaluate(&format!("entry main = {text}")) {
        Ok(found) => panic!("gave {found} for {text}"),
        Err(message) => {
            assert!(message.contains(part) && !message.contains("bug"), "{message} for {text}");
        }
    }
}

#[test]
fn a_slice_in_steps_of_0_stops_at_the_step() {
    for part in
        ["[1i32, 2][:2:k]", "([1i32, 2] with [::k] = [1, 2])", "[[1i32], [2]][0, ::k]", "[1i32, 2][::0]"]
    {
        let text = format!("let k = 0i64 in {part}");
        // After the last colon; columns begin with 1.
        let step = "entry main = ".len() + text.rfind(':').expect("a step") + 2;
        refused(&text, &format!("1:{step}: assertion failed: this slice goes in steps of 0"));
    }
    value("let k = -1 in [1i32, 2, 3][::k]", "[3i32, 2i32, 1i32]");
}

#[test]
fn attributes() {
    value("#[recompute] 1i32 + 1", "2i32");
    value("#[unknown] 1i32", "1i32");
    value("#[tape(all)] #[store] #[stripmine(4)] loop x = 1i64 for i < 3 do x + i", "4i64");
    value("#[bound(10)] loop x = 1i64 while x < 4 do x + x", "4i64");
    refused("#[tape(all)] 1i32", "no loop");
    refused("#[tape(most)] loop x = 1i64 for i < 3 do x + i", "tape(carry)");
    refused("#[tape(revolve 0)] loop x = 1i64 for i < 3 do x + i", "revolve");
    refused("#[stripmine] loop x = 1i64 for i < 3 do x + i", "stripmine(k)");
    refused("#[ad(chad)] 1i32", "vjp");
}

#[test]
fn functions_of_the_runtime_keep_their_values() {
    value("par (1i32 + 1, true)", "2i32; true");
    value("stop_gradient 2f64", "2.0f64");
    value("with_rule (\\x -> x * 2f64) (\\_ y_bar -> y_bar) 3", "6.0f64");
    value("with_vjp (\\x -> x * 2f64) (\\_ y_bar -> y_bar) 3", "6.0f64");
    value("with_vjp_tape (\\x -> (true, x * 2f64)) (\\(_, y_bar) -> y_bar) 3", "6.0f64");
    check("def f (x: i64) = par (x, x + 1)\nentry main = f 1", "1i64; 2i64");
}
