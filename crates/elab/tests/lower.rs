//! Lowered programs are well-formed core and compute what the lambda text says. Expected values are worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::{Code, Diagnostic, RuntimeErrorKind, SourceMap};
use pullback_core::{Rules, Value};
use pullback_interp::core::{Options, run};
use pullback_lambda::Type;
use pullback_prim::ScalarValue;

fn source(text: &str) -> pullback_lambda::Program {
    let mut sources = SourceMap::new();
    let file = sources.add("test.lambda", text);
    let program = pullback_lambda::read::read(text, Some(file)).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    pullback_lambda::check::check(&program).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    program
}

fn lower(text: &str) -> Result<pullback_core::Program, Vec<Diagnostic>> {
    let core = pullback_elab::lower::lower(&source(text))?;
    if let Err(e) = pullback_core::check(&core, Rules::SURFACE) {
        panic!("{text}\n{e:?}\n{}", pullback_core::print(&core));
    }
    Ok(core)
}

/// Runs `main` lowered to core. The interpreter of lambda must agree.
fn eval(text: &str, args: &[Value]) -> Vec<Value> {
    let core = lower(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let f = core.funs.ids().find(|f| core.funs[*f].name.as_str() == "main").expect("a function main");
    let results = match run(&core, f, args.to_vec(), &Options::default()) {
        Ok(outcome) => outcome.results,
        Err(e) => panic!("{text}\n{e:?}\n{}", pullback_core::print(&core)),
    };
    let lambda = source(text);
    let f = lambda.funs.ids().find(|f| lambda.funs[*f].name.as_str() == "main").expect("a function main");
    let mut leaves = args.iter().cloned();
    let params = &lambda.funs[f].params;
    let args = params.iter().map(|v| nested(&lambda.vars[*v].ty, &mut leaves)).collect();
    match pullback_interp::lambda::run(&lambda, f, args, &Options::default()) {
        Ok(outcome) => {
            let mut flat = Vec::new();
            flatten(&outcome.result, &mut flat);
            let mut expected = Vec::new();
            results.iter().for_each(|v| flatten(v, &mut expected));
            assert_eq!(flat, expected, "{text}");
        }
        Err(e) => panic!("{text}\n{e:?}"),
    }
    results
}

/// The value of a type made of its leaves.
fn nested(ty: &Type, leaves: &mut dyn Iterator<Item = Value>) -> Value {
    match ty {
        Type::Tuple(items) => Value::Tuple(items.iter().map(|t| nested(t, leaves)).collect()),
        _ => leaves.next().expect("as many leaves as the type has"),
    }
}

/// The leaves of a value; payloads of sums likewise.
fn flatten(value: &Value, out: &mut Vec<Value>) {
    match value {
        Value::Tuple(items) => items.iter().for_each(|v| flatten(v, out)),
        Value::Sum(k, items) => {
            let mut fields = Vec::new();
            items.iter().for_each(|v| flatten(v, &mut fields));
            out.push(Value::Sum(*k, fields.into()));
        }
        Value::Array(a) => out.push(Value::Array(a.clone())),
        Value::Scalar(_) | Value::Acc(_) => out.push(value.clone()),
    }
}

fn main(params: &str, result: &str, body: &str) -> String {
    format!("def main ({params}): {result} = {body}")
}

fn floats(values: &[Value]) -> Vec<f64> {
    values.iter().flat_map(Value::floats).collect()
}

#[test]
fn products_are_flattened() {
    let text = main(
        "p: (f64, (i64, f64))",
        "(f64, (f64, f64))",
        "let q = (p.1.1, (p.0, 2.0f64)) in (q.1.0, (q.0, q.1.1))",
    );
    let out = eval(&text, &[Value::f64(3.0), Value::i64(4), Value::f64(5.0)]);
    assert_eq!(floats(&out), [3.0, 5.0, 2.0]);
}

#[test]
fn known_functions_are_inlined() {
    let text = "
        def compose (f: <f64 -> f64>, g: <f64 -> f64>): <f64 -> f64> = fun x: f64 -> f(g(x))
        def main (a: f64): f64 =
          let twice = fun f: <f64 -> f64> -> fun x: f64 -> f(f(x))
          in let add = fun y: f64 -> fun x: f64 -> add.f64(x, y)
          in let k = (add(a), 10.0f64)
          in @compose(twice(twice(k.0)), fun x: f64 -> mul.f64(x, k.1))(2.0f64)";
    // 2 * 10 + 4 a
    assert_eq!(eval(text, &[Value::f64(1.5)]), [Value::f64(26.0)]);
    let core = lower(text).unwrap();
    assert_eq!(core.funs.len(), 1, "{}", pullback_core::print(&core));
}

#[test]
fn functions_chosen_at_run_time_become_sums() {
    let text = main(
        "c: bool, d: bool, a: f64",
        "(f64, f64)",
        "let f = if c then (fun x: f64 -> mul.f64(x, a)) else (fun x: f64 -> add.f64(x, 1.0f64))
         in let g = if d then f else (fun x: f64 -> neg.f64(f(x)))
         in (g(3.0f64), f(4.0f64))",
    );
    let run = |c: bool, d: bool| {
        let b = |x| Value::Scalar(ScalarValue::Bool(x));
        floats(&eval(&text, &[b(c), b(d), Value::f64(5.0)]))
    };
    assert_eq!(run(true, true), [15.0, 20.0]);
    assert_eq!(run(true, false), [-15.0, 20.0]);
    assert_eq!(run(false, true), [4.0, 5.0]);
    assert_eq!(run(false, false), [-4.0, 5.0]);
}

#[test]
fn a_choice_among_functions_of_functions() {
    let text = main(
        "c: bool",
        "f64",
        "let h = if c then (1.0f64, fun f: <f64 -> f64> -> fun x: f64 -> f(f(x)))
                      else (2.0f64, fun f: <f64 -> f64> -> fun x: f64 -> f(add.f64(x, 1.0f64)))
         in h.1(fun x: f64 -> mul.f64(x, 3.0f64))(h.0)",
    );
    let run = |c: bool| eval(&text, &[Value::Scalar(ScalarValue::Bool(c))]);
    assert_eq!(run(true), [Value::f64(9.0)]);
    assert_eq!(run(false), [Value::f64(9.0)]);
}

#[test]
fn recursive_functions_are_specialised_for_their_function_arguments() {
    let text = "
        def iterate (f: <f64 -> f64>, n: i64, x: f64): f64 =
          if le.i64(n, 0i64) then x else @iterate(f, sub.i64(n, 1i64), f(x))
        def main (a: f64): (f64, f64) =
          (@iterate(fun x: f64 -> mul.f64(x, a), 5i64, 1.0f64), @iterate(fun x: f64 -> add.f64(x, 1.0f64), 7i64, a))";
    assert_eq!(floats(&eval(text, &[Value::f64(2.0)])), [32.0, 9.0]);
}

#[test]
fn recursive_sums_and_match() {
    let text = "
        type $0 list = {#nil | #cons (f64, i64) $0}
        def build (n: i64): $0 =
          if le.i64(n, 0i64) then inject[$0, 0]()
          else inject[$0, 1]((convert.i64.f64(n), n), @build(sub.i64(n, 1i64)))
        def sum (l: $0): (f64, i64) =
          match l { #nil -> (0.0f64, 0i64)
                  | #cons x rest -> let s = @sum(rest) in (add.f64(x.0, s.0), add.i64(x.1, s.1)) }
        def main (n: i64): (f64, i64) = @sum(@build(n))";
    assert_eq!(eval(text, &[Value::i64(4)]), [Value::f64(10.0), Value::i64(10)]);
}

#[test]
fn arrays_of_products_are_products_of_arrays() {
    let text = main(
        "xs: []f64, is: []i64",
        "(f64, i64, []f64)",
        "let ps = zip(xs, is)
         in let qs = update(ps, 0i64, (100.0f64, 7i64))
         in let best = reduce(fun a: (f64, i64) -> fun b: (f64, i64) -> if lt.f64(a.0, b.0) then b else a,
                              (-f64.inf, -1i64), qs)
         in let scaled = map(fun p: (f64, i64) -> (mul.f64(p.0, convert.i64.f64(p.1)), p), qs)
         in (best.0, best.1, unzip(scaled).0)",
    );
    let out = eval(&text, &[Value::f64s(&[1.0, 2.0, 3.0]), Value::i64s(&[4, 5, 6])]);
    assert_eq!(out, [Value::f64(100.0), Value::i64(7), Value::f64s(&[700.0, 10.0, 18.0])]);
}

#[test]
fn large_tables_of_numbers_are_one_array() {
    let row = |i: usize| format!("array[f64]({i}.0f64, 0.5f64, -{i}.25f64)");
    let table = |n: usize| format!("array[[]f64]({})", (0..n).map(row).collect::<Vec<_>>().join(", "));
    let text = |n: usize| {
        main(
            "i: i64",
            "(f64, i64, []f64)",
            &format!("let t = {} in (index(t, i, 2i64), size[1](t), index(t, i))", table(n)),
        )
    };
    for n in [3, 200] {
        let out = eval(&text(n), &[Value::i64(2)]);
        assert_eq!(out, [Value::f64(-2.25), Value::i64(3), Value::f64s(&[2.0, 0.5, -2.25])]);
    }
    let literals = |n: usize| pullback_core::print(&lower(&text(n)).unwrap()).matches("array").count();
    assert!(literals(3) > 3 && literals(200) == 1, "{}, {}", literals(3), literals(200));
    // Rows of different lengths are an error of the program still.
    let text = main(
        "",
        "f64",
        &format!(
            "index(array[[]f64]({}, array[f64](1.0f64)), 0i64, 0i64)",
            (0..200).map(row).collect::<Vec<_>>().join(", ")
        ),
    );
    let core = lower(&text).unwrap();
    let error =
        run(&core, core.funs.ids().next().unwrap(), Vec::new(), &Options::default()).expect_err("irregular");
    assert!(error.message.contains("irregular"), "{error}");
}

#[test]
fn arrays_of_units_keep_their_size() {
    let text = main(
        "n: i64",
        "(i64, i64)",
        "let us = replicate(n, ())
         in let vs = map(fun u: () -> (), us)
         in let both = unzip(zip(iota(n), vs))
         in (size[0](both.1), size[0](concat(us, both.1, array[()]((), ()))))",
    );
    assert_eq!(eval(&text, &[Value::i64(3)]), [Value::i64(3), Value::i64(8)]);
}

#[test]
fn loops_carry_products() {
    let text = main(
        "n: i64",
        "(i64, i64)",
        "let fib = loop s = (0i64, 1i64) for i < n do (s.1, add.i64(s.0, s.1))
         in loop s = (fib.0, 0i64) while lt.i64(s.0, 1000i64) do (mul.i64(s.0, 2i64), add.i64(s.1, 1i64))",
    );
    // The tenth Fibonacci number is 55; 55 * 2^5 = 1760.
    assert_eq!(eval(&text, &[Value::i64(10)]), [Value::i64(1760), Value::i64(5)]);
}

#[test]
fn scans_histograms_and_scatters_of_products() {
    let text = main(
        "xs: []f64, is: []i64",
        "([](f64, i64), [](f64, i64), [](f64, i64))",
        "let op = fun a: (f64, i64) -> fun b: (f64, i64) -> (add.f64(a.0, b.0), add.i64(a.1, b.1))
         in let ps = map(fun x: f64 -> (x, 1i64), xs)
         in (scan(op, (0.0f64, 0i64), ps),
             hist(op, (0.0f64, 0i64), replicate(2i64, (0.0f64, 10i64)), is, ps),
             scatter(replicate(3i64, (0.0f64, 0i64)), is, ps))",
    );
    let out = eval(&text, &[Value::f64s(&[1.0, 2.0, 4.0]), Value::i64s(&[1, 5, 1])]);
    let expected = [
        Value::f64s(&[1.0, 3.0, 7.0]),
        Value::i64s(&[1, 2, 3]),
        Value::f64s(&[0.0, 5.0]),
        Value::i64s(&[10, 12]),
        Value::f64s(&[0.0, 4.0, 0.0]),
        Value::i64s(&[0, 1, 0]),
    ];
    assert_eq!(out, expected);
}

#[test]
fn what_has_no_core_form_is_unsupported_with_its_position() {
    for body in ["io_run(io_return(x))", "staged_resolve(staged_cotangent(x))"] {
        let errors = lower(&main("x: f64", "f64", body)).expect_err(body);
        assert_eq!(errors[0].code, Code::Unsupported, "{body}");
        assert!(errors[0].span.is_some(), "{body}");
    }
}

#[test]
fn functions_may_be_data() {
    // In an array of which only one element is applied, in one made of several lambdas, in the state of a loop, and in a sum.
    for (body, expected) in [
        ("index(map(fun y: f64 -> fun z: f64 -> add.f64(y, z), replicate(2i64, x)), 0i64)(x)", 6.0),
        (
            "index(array[<f64 -> f64>](fun y: f64 -> add.f64(y, x), fun z: f64 -> mul.f64(z, x)), 1i64)(x)",
            9.0,
        ),
        ("(loop f = (fun y: f64 -> add.f64(y, 1.0f64)) for i < 3i64 do (fun y: f64 -> f(f(y))))(x)", 11.0),
        (
            "match inject[{#none | #some <f64 -> f64>}, 1](fun y: f64 -> mul.f64(y, x))
             { #none -> x | #some f -> f(f(x)) }",
            27.0,
        ),
    ] {
        assert_eq!(eval(&main("x: f64", "f64", body), &[Value::f64(3.0)]), [Value::f64(expected)], "{body}");
    }
}

#[test]
fn arrays_of_different_functions_may_come_from_branches() {
    // One branch captures `x` in each element, the other an element of an array: indexed, mapped over, taken apart, in a product.
    let array = "(if c then map(fun y: f64 -> fun z: f64 -> add.f64(y, z), replicate(2i64, x))
                  else map(fun y: f64 -> fun z: f64 -> mul.f64(z, x), replicate(3i64, x)))";
    let apply = "map(fun g: <f64 -> f64> -> g(x), fs)";
    let pairs = "(if c then map(fun y: f64 -> (y, fun z: f64 -> add.f64(y, z)), replicate(2i64, x))
                  else map(fun y: f64 -> (y, fun z: f64 -> mul.f64(z, x)), replicate(3i64, x)))";
    for (body, added, multiplied) in [
        (format!("let fs = {array} in index(fs, 1i64)(x)"), vec![6.0], vec![9.0]),
        (format!("let fs = {array} in {apply}"), vec![6.0; 2], vec![9.0; 3]),
        (format!("let p = ({array}, x) in let fs = p.0 in {apply}"), vec![6.0; 2], vec![9.0; 3]),
        (format!("let ps = {pairs} in let fs = unzip(ps).1 in {apply}"), vec![6.0; 2], vec![9.0; 3]),
    ] {
        let result = if body.ends_with("fs)") { "[]f64" } else { "f64" };
        let text = main("c: bool, x: f64", result, &body);
        for (c, expected) in [(true, added), (false, multiplied)] {
            let out = eval(&text, &[Value::Scalar(ScalarValue::Bool(c)), Value::f64(3.0)]);
            assert_eq!(floats(&out), expected, "{text}");
        }
    }
}

#[test]
fn functions_of_an_array_may_capture_arrays_of_different_shapes() {
    // Each captures `0 .. k - 1` and takes element `i`, for k = 2 and 3: applied in a map, by index, as data, after `unzip`.
    let made = "map(fun k: i64 -> let is = iota(k) in fun i: i64 -> index(is, i), ks)";
    let pairs = "map(fun k: i64 -> let is = iota(k) in (k, fun i: i64 -> index(is, i)), ks)";
    for (body, expected) in [
        (format!("map(fun f: <i64 -> i64> -> fun k: i64 -> f(sub.i64(k, 1i64)), {made}, ks)"), vec![1, 2]),
        (format!("let fs = {made} in array[i64](index(fs, 0i64)(1i64), index(fs, 1i64)(2i64))"), vec![1, 2]),
        (
            format!(
                "let fs = if c then {made} else array[<i64 -> i64>](fun i: i64 -> i) in map(fun f: <i64 -> i64> -> f(1i64), fs)"
            ),
            vec![1, 1],
        ),
        (
            format!(
                "let ps = unzip({pairs}) in map(fun f: <i64 -> i64> -> fun k: i64 -> f(sub.i64(k, 1i64)), ps.1, ps.0)"
            ),
            vec![1, 2],
        ),
    ] {
        let text = main("c: bool, ks: []i64", "[]i64", &body);
        let out = eval(&text, &[Value::Scalar(ScalarValue::Bool(true)), Value::i64s(&[2, 3])]);
        assert_eq!(out, [Value::i64s(&expected)], "{text}");
    }
}

#[test]
fn functions_that_call_themselves_may_return_functions() {
    let text = "
        def f (n: i64): <f64 -> f64> =
          if le.i64(n, 0i64) then (fun x: f64 -> add.f64(x, 1.0f64))
          else (let g = @f(sub.i64(n, 1i64)) in fun x: f64 -> g(g(x)))
        def main (n: i64): f64 = @f(n)(1.0f64)";
    // Two to the third times one is added.
    assert_eq!(eval(text, &[Value::i64(3)]), [Value::f64(9.0)]);
}

#[test]
fn accumulating_computations_run_over_the_leaves_of_their_cells() {
    // A cell of its own inside of branches; what was added is read when the computation has run.
    let text = main(
        "x: f64, b: bool",
        "(f64, f64)",
        "let back = fun d: f64 ->
             evm_bind(evm_scope(0.0f64, evm_add[0][f64, f64](d)), fun r: (f64, ()) -> evm_add[0][f64](mul.f64(r.0, x)))
         in let both = if b then back else (fun d: f64 -> evm_return[f64](()))
         in let ran = evm_run(evm_bind(both(2.0f64), fun u: () -> back(5.0f64)), (1.0f64,))
         in (ran.1.0, lproj[1](lpair(x, mul.f64(x, x))))",
    );
    let run = |b: bool| eval(&text, &[Value::f64(3.0), Value::Scalar(pullback_prim::ScalarValue::Bool(b))]);
    assert_eq!(run(true), [Value::f64(1.0 + 6.0 + 15.0), Value::f64(9.0)]);
    assert_eq!(run(false), [Value::f64(1.0 + 15.0), Value::f64(9.0)]);
}

/// Each call asks for a function of another shape: from the fourth on they are data.
#[test]
fn functions_that_a_recursion_wraps_become_data() {
    let text = "
        def f (g: <f64 -> f64>, n: i64): f64 =
          if le.i64(n, 0i64) then g(1.0f64) else @f(fun x: f64 -> g(g(x)), sub.i64(n, 1i64))
        def main (n: i64): f64 = @f(fun x: f64 -> add.f64(x, 1.0f64), n)";
    // 2^n functions that add one.
    for (n, sum) in [(0, 2.0), (1, 3.0), (3, 9.0), (7, 129.0)] {
        assert_eq!(eval(text, &[Value::i64(n)]), [Value::f64(sum)]);
    }
    assert!(lower(text).unwrap().funs.len() < 8, "three versions of f, one of data, and what applies it");
}

#[test]
fn explosion_by_inlining_is_unsupported() {
    let mut text = String::from("def f0 (g: <f64 -> f64>, x: f64): f64 = g(g(x))\n");
    for i in 1..40 {
        let previous = i - 1;
        text += &format!("def f{i} (g: <f64 -> f64>, x: f64): f64 = @f{previous}(g, @f{previous}(g, x))\n");
    }
    text += "def main (x: f64): f64 = @f39(fun y: f64 -> sin.f64(y), x)";
    assert_eq!(lower(&text).unwrap_err()[0].code, Code::Unsupported);
}

#[test]
fn positions_reach_core() {
    let text = main("x: f64", "f64", "let y = sin.f64(x) in mul.f64(y, y)");
    let core = lower(&text).unwrap();
    let place = text.find("sin").unwrap() as u32;
    let sine = core.vars.iter().find(|v| v.hint.as_str() == "y").expect("a variable y");
    assert_eq!(sine.origin.span.map(|s| s.start), Some(place));
}

#[test]
fn cotangents_have_the_types_of_their_values() {
    // f (x, k, xs) = (x * k * sum xs, k)
    let text = main(
        "x: f64, k: i64, xs: []f64",
        "((f64, i64), (f64, i64, []f64))",
        "vjp(fun p: (f64, i64, []f64) ->
               let s = reduce_comm(fun a: f64 -> fun b: f64 -> add.f64(a, b), 0.0f64, p.2)
               in (mul.f64(mul.f64(p.0, convert.i64.f64(p.1)), s), p.1),
             (x, k, xs), (10.0f64, 77i64))",
    );
    let out = eval(&text, &[Value::f64(2.0), Value::i64(3), Value::f64s(&[4.0, 5.0])]);
    let expected =
        [Value::f64(54.0), Value::i64(3), Value::f64(270.0), Value::i64(0), Value::f64s(&[60.0, 60.0])];
    assert_eq!(out, expected);
}

#[test]
fn tangents_have_the_types_of_their_values() {
    let text = main(
        "x: f64, k: i64",
        "((f64, []i64), (f64, []i64))",
        "jvp(fun p: (f64, i64) -> (mul.f64(p.0, p.0), iota(p.1)), (x, k), (1.0f64, 5i64))",
    );
    let out = eval(&text, &[Value::f64(3.0), Value::i64(2)]);
    assert_eq!(out, [Value::f64(9.0), Value::i64s(&[0, 1]), Value::f64(6.0), Value::i64s(&[0, 0])]);
}

#[test]
fn cotangents_of_sums() {
    // The argument is an array of sums; f adds the squares of #some and ignores #none.
    let text = main(
        "x: f64, n: i64",
        "[]{#none i64 | #some f64 i64}",
        "let values = map(fun i: i64 -> if eq.i64(i, 1i64) then inject[{#none i64 | #some f64 i64}, 0](i)
                                       else inject[{#none i64 | #some f64 i64}, 1](add.f64(x, convert.i64.f64(i)), i),
                          iota(n))
         in let f = fun vs: []{#none i64 | #some f64 i64} ->
              reduce_comm(fun a: f64 -> fun b: f64 -> add.f64(a, b), 0.0f64,
                map(fun v: {#none i64 | #some f64 i64} -> match v { #none k -> 0.0f64 | #some y k -> mul.f64(y, y) }, vs))
         in vjp(f, values, 1.0f64).1",
    );
    let out = eval(&text, &[Value::f64(10.0), Value::i64(3)]);
    let some = |x: f64| Value::Sum(1, vec![Value::f64(x), Value::i64(0)].into());
    let none = Value::Sum(0, vec![Value::i64(0)].into());
    let Value::Array(a) = &out[0] else { panic!("{out:?}") };
    assert_eq!(a.elements().collect::<Vec<_>>(), [some(20.0), none, some(24.0)]);
}

/// Runs `main` after its derivatives have been expanded by the AD crate, which uses custom rules.
fn expanded(text: &str, args: &[Value]) -> Vec<Value> {
    let mut core = lower(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let choice = pullback_ad::differentiate::Choice::default();
    pullback_ad::differentiate(&mut core, &choice).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    if let Err(e) = pullback_core::check(&core, Rules::NO_AD) {
        panic!("{text}\n{e:?}\n{}", pullback_core::print(&core));
    }
    let f = core.funs.ids().find(|f| core.funs[*f].name.as_str() == "main").expect("a function main");
    match run(&core, f, args.to_vec(), &Options::default()) {
        Ok(outcome) => outcome.results,
        Err(e) => panic!("{text}\n{e:?}\n{}", pullback_core::print(&core)),
    }
}

#[test]
fn custom_rules_see_cotangents_of_the_types_of_the_values() {
    // The rule says 1000 instead of 2 y, so that its use is seen; its integer cotangent is ignored.
    let text = main(
        "x: f64",
        "(f64, f64)",
        "vjp(fun y: f64 ->
               custom(fun p: (f64, i64) -> (mul.f64(p.0, p.0), p.1),
                      fun p: (f64, i64) -> fun q: (f64, i64) -> fun bar: (f64, i64) ->
                        (mul.f64(1000.0f64, add.f64(bar.0, convert.i64.f64(bar.1))), 7i64),
                      (y, 3i64)).0,
             x, 1.0f64)",
    );
    assert_eq!(floats(&expanded(&text, &[Value::f64(3.0)])), [9.0, 1000.0]);
}

#[test]
fn custom_rules_see_cotangents_of_sums() {
    let text = main(
        "x: f64",
        "(f64, f64)",
        "vjp(fun y: f64 ->
               match custom(fun a: f64 -> if lt.f64(a, 0.0f64) then inject[{#none | #some f64}, 0]()
                                          else inject[{#none | #some f64}, 1](mul.f64(a, a)),
                            fun a: f64 -> fun c: {#none | #some f64} -> fun bar: {#none | #some f64} ->
                              match bar { #none -> -1.0f64 | #some b -> mul.f64(1000.0f64, b) },
                            y)
               { #none -> 5.0f64 | #some z -> mul.f64(z, 2.0f64) },
             x, 1.0f64)",
    );
    assert_eq!(floats(&expanded(&text, &[Value::f64(3.0)])), [18.0, 2000.0]);
}

#[test]
fn constants_are_computed_once() {
    let text = "
        def table (): []f64 = map(fun i: i64 -> sqrt.f64(convert.i64.f64(i)), iota(@count()))
        def count (): i64 = 10i64
        def main (is: []i64): []f64 = map(fun i: i64 -> add.f64(index(@table(), i), index(@table(), 9i64)), is)";
    assert_eq!(eval(text, &[Value::i64s(&[0, 4])]), [Value::f64s(&[3.0, 5.0])]);
    let core = pullback_core::print(&lower(text).unwrap());
    // Once in the function `table` itself, once in `main`.
    assert_eq!(core.matches("sqrt").count(), 2, "{core}");
}

#[test]
fn sizes_that_differ_are_shown_by_both_interpreters() {
    let text = "def main (xs: []f64, n: i64): f64 = same_size[\"the rows\"](size[0](xs), n, 1.0f64)";
    assert_eq!(eval(text, &[Value::f64s(&[1.0, 2.0]), Value::i64(2)]), [Value::f64(1.0)]);
    let core = lower(text).expect("a core program");
    let args = vec![Value::f64s(&[1.0, 2.0]), Value::i64(3)];
    let f = core.funs.ids().next().expect("main");
    let e = run(&core, f, args.clone(), &Options::default()).expect_err("different sizes");
    assert_eq!(
        (e.kind.clone(), e.message.as_str()),
        (RuntimeErrorKind::ShapeMismatch, "the rows: sizes 2 and 3 differ")
    );
    assert!(e.span.is_some());
    let lambda = source(text);
    let f = lambda.funs.ids().next().expect("main");
    assert_eq!(pullback_interp::lambda::run(&lambda, f, args, &Options::default()), Err(e));
    let text = pullback_core::print(&core);
    let file = SourceMap::new().add("core", &text);
    let again = pullback_core::read(file, &text).expect("the text of a program");
    assert_eq!(pullback_core::print(&again), pullback_core::print(&core));
}

#[test]
fn deep_nesting_is_too_deep() {
    let mut body = String::from("x");
    for i in 0..2500 {
        body = format!("if lt.f64(x, {i}.0f64) then {i}.5f64 else ({body})");
    }
    assert_eq!(lower(&main("x: f64", "f64", &body)).unwrap_err()[0].code, Code::TooDeep);
    let mut body = String::from("x");
    for _ in 0..5000 {
        body = format!("sin.f64({body})");
    }
    assert_eq!(lower(&main("x: f64", "f64", &body)).unwrap().vars.len(), 5001);
}
