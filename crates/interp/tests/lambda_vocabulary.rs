//! The vocabulary of the algorithms' chapters in the lambda interpreter; costs, limits, and values at the boundary.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use pullback_base::{RuntimeError, RuntimeErrorKind, SourceMap};
use pullback_core::{Array, Buffer, Value};
use pullback_interp::lambda::{Options, Outcome, run};
use pullback_lambda::check::check;
use pullback_lambda::read::read;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn try_with(text: &str, args: Vec<Value>, options: &Options<'_>) -> Result<Outcome, RuntimeError> {
    let program = read(text, None).unwrap_or_else(|e| panic!("{text}: {e:#?}"));
    check(&program).unwrap_or_else(|e| panic!("{text}: {e:#?}"));
    let main = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == "main").unwrap().0;
    run(&program, main, args, options)
}
fn try_run(text: &str, args: Vec<Value>) -> Result<Outcome, RuntimeError> {
    try_with(text, args, &Options::default())
}
fn eval(text: &str, args: Vec<Value>) -> Value {
    try_run(text, args).unwrap_or_else(|e| panic!("{text}: {e:?}")).result
}
fn work(text: &str, args: Vec<Value>) -> u64 {
    try_run(text, args).unwrap().counts.work
}
fn fails(text: &str, args: Vec<Value>, kind: RuntimeErrorKind, part: &str) {
    let error = try_run(text, args).expect_err(text);
    assert_eq!(error.kind, kind, "{text}: {error:?}");
    assert!(error.message.contains(part), "{text}: {error:?}");
}
fn f(x: f64) -> Value {
    Value::f64(x)
}
fn i(x: i64) -> Value {
    Value::i64(x)
}
fn t(items: Vec<Value>) -> Value {
    Value::Tuple(items)
}
fn sum(k: usize, items: Vec<Value>) -> Value {
    Value::Sum(k, Arc::new(items))
}

#[test]
fn zero_and_plus_of_each_type() {
    let two = |ty: &str, a: Value, b: Value| {
        eval(&format!("def main (a: {ty}, b: {ty}): {ty} = plus(a, b)"), vec![a, b])
    };
    assert_eq!(two("f64", f(1.0), f(2.5)), f(3.5));
    assert_eq!(two("i64", i(1), i(2)), i(1));
    assert_eq!(
        two(
            "(f64, (i64, f64))",
            t(vec![f(1.0), t(vec![i(1), f(2.0)])]),
            t(vec![f(1.0), t(vec![i(5), f(3.0)])])
        ),
        t(vec![f(2.0), t(vec![i(1), f(5.0)])])
    );
    let array = |xs: &[f64]| Value::f64s(xs);
    assert_eq!(two("[]f64", array(&[1.0, 2.0]), array(&[3.0, 4.0])), array(&[4.0, 6.0]));
    let (zero, some) = (|| sum(0, vec![]), |x: f64, y: f64| sum(1, vec![f(x), f(y)]));
    assert_eq!(two("sparse(f64, f64)", zero(), some(1.0, 2.0)), some(1.0, 2.0));
    assert_eq!(two("sparse(f64, f64)", some(1.0, 2.0), zero()), some(1.0, 2.0));
    assert_eq!(two("sparse(f64, f64)", some(1.0, 2.0), some(3.0, 4.0)), some(4.0, 6.0));
    assert_eq!(two("sparse(f64, f64)", zero(), zero()), zero());
    let alternative = |k: usize, x: f64| sum(k + 1, vec![f(x)]);
    assert_eq!(two("oneof(f64, f64)", zero(), alternative(1, 2.0)), alternative(1, 2.0));
    assert_eq!(two("oneof(f64, f64)", alternative(1, 1.0), alternative(1, 2.0)), alternative(1, 3.0));
    fails(
        "def main (a: oneof(f64, f64), b: oneof(f64, f64)): oneof(f64, f64) = plus(a, b)",
        vec![alternative(0, 1.0), alternative(1, 2.0)],
        RuntimeErrorKind::Internal,
        "alternatives 0 and 1",
    );
    fails(
        "def main (a: []f64, b: []f64): []f64 = plus(a, b)",
        vec![array(&[1.0]), array(&[1.0, 2.0])],
        RuntimeErrorKind::ShapeMismatch,
        "addition of cotangents: shapes [1] and [2] differ",
    );
    // Zero is neutral for every type, whatever the sizes of the other.
    for (ty, x) in [
        ("f64", f(1.5)),
        ("(f64, ())", t(vec![f(1.5), t(vec![])])),
        ("sparse(f64, f64)", some(1.0, 2.0)),
        ("oneof(f64, f64)", alternative(0, 1.0)),
        ("[]f64", array(&[1.0, 2.0])),
        ("[](f64, []f64)", t(vec![array(&[1.0, 2.0]), Value::f64_array(&[2, 1], &[3.0, 4.0])])),
    ] {
        for sides in ["zero[TY](), a", "a, zero[TY]()"] {
            let text = format!("def main (a: {ty}): {ty} = plus({})", sides.replace("TY", ty));
            assert_eq!(eval(&text, vec![x.clone()]), x, "{text}");
        }
    }
    let text = "def main (x: f64): f64 =
        plus(plus(fun y: f64 -> mul.f64(y, x), fun y: f64 -> y), zero[<f64 -> f64>]())(10.0f64)";
    assert_eq!(eval(text, vec![f(3.0)]), f(40.0));
    let text =
        "def main (x: f64): f64 = lapp(plus(lin y: f64 -> mul.f64(y, x), zero[<f64 -o f64>]()), 10.0f64)";
    assert_eq!(eval(text, vec![f(3.0)]), f(30.0));
}

#[test]
fn sparse_values() {
    let text = "def main (d: sparse(f64, i64)): (f64, i64) = (lproj[0](d), lproj[1](d))";
    assert_eq!(eval(text, vec![sum(0, vec![])]), t(vec![f(0.0), i(0)]));
    assert_eq!(eval(text, vec![sum(1, vec![f(2.0), i(3)])]), t(vec![f(2.0), i(3)]));
    let text = "def main (x: f64): sparse(f64, f64) = lpair(x, zero[f64]())";
    assert_eq!(eval(text, vec![f(2.0)]), sum(1, vec![f(2.0), f(0.0)]));
    let text = "def main (d: oneof(f64, sparse(f64, f64))): sparse(f64, f64) = lcast[1](d)";
    assert_eq!(eval(text, vec![sum(0, vec![])]), sum(0, vec![]));
    assert_eq!(eval(text, vec![sum(2, vec![sum(0, vec![])])]), sum(0, vec![]));
    fails(
        text,
        vec![sum(1, vec![f(1.0)])],
        RuntimeErrorKind::Internal,
        "alternative 0 where one of alternative 1",
    );
    let text = "def main (x: f64): oneof((), f64) = linj[oneof((), f64), 1](x)";
    assert_eq!(eval(text, vec![f(2.0)]), sum(2, vec![f(2.0)]));
}

#[test]
fn accumulating_computations_add_and_commute() {
    let cells = || t(vec![f(1.0), f(2.0)]);
    let evm = |m: &str, ty: &str| {
        let text = format!("def main (x: f64, e: (f64, f64)): ({ty}, (f64, f64)) = evm_run({m}, e)");
        let outcome = try_run(&text, vec![f(10.0), cells()]).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        (outcome.result, outcome.counts.work)
    };
    let (result, cost) = evm("evm_return[f64, f64](x)", "f64");
    assert_eq!(result, t(vec![f(10.0), cells()]));
    // Run, return, variable, variable; 1 for each cell and 1; 1 for the return.
    assert_eq!(cost, 4 + 3 + 1);
    let add = |cell: usize| format!("evm_add[{cell}][f64, f64](x)");
    let (result, cost) = evm(&add(1), "()");
    assert_eq!(result, t(vec![t(vec![]), t(vec![f(1.0), f(12.0)])]));
    assert_eq!(cost, 4 + 3 + 2);
    let both = |a: &str, b: &str| format!("evm_bind({a}, fun u: () -> {b})");
    let (left, cost) = evm(&both(&add(0), &add(1)), "()");
    assert_eq!(left, t(vec![t(vec![]), t(vec![f(11.0), f(12.0)])]));
    assert_eq!(
        cost,
        1 + 1 + 2 + 2 + 1 + 3 + (1 + 2 + 2 + 2),
        "one captured variable; the continuation costs 2"
    );
    assert_eq!(evm(&both(&add(1), &add(0)), "()").0, left);
    assert_eq!(evm(&format!("plus({}, {})", add(1), add(0)), "()").0, left);
    assert_eq!(evm("zero[evm[f64, f64](())]()", "()").0, t(vec![t(vec![]), cells()]));
    // A scope's cell is number 0 inside; outside nothing moved. Its value comes first.
    let inner = "evm_bind(evm_add[0][f64, f64, f64](x), fun u: () -> evm_bind(evm_add[1][f64, f64, f64](x),
                   fun u: () -> evm_return[f64, f64, f64](7i64)))";
    let (result, _) = evm(&format!("evm_scope(0.5f64, {inner})"), "(f64, i64)");
    assert_eq!(result, t(vec![t(vec![f(10.5), i(7)]), t(vec![f(11.0), f(2.0)])]));
    // Additions into cells are counted.
    let text = "def main (x: f64): (f64,) = evm_run(evm_add[0][f64](x), (x,)).1";
    assert_eq!(try_run(text, vec![f(1.0)]).unwrap().counts.acc_adds, 1);
}

#[test]
fn bags_of_values_at_positions() {
    let scattered = |bag: &str| {
        let text = format!("def main (x: f64, is: []i64, a: []f64): []f64 = bag_scatter(3i64, {bag})");
        let args = vec![f(10.0), Value::i64s(&[2, 0, 2]), Value::f64s(&[1.0, 2.0, 4.0])];
        let outcome = try_run(&text, args).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        (outcome.result.floats(), outcome.counts.work)
    };
    let (empty, one, all) = ("zero[bag(f64)]()", "bag_one(1i64, x)", "bag_array(is, a)");
    let plus = |a: &str, b: &str| format!("plus({a}, {b})");
    assert_eq!(scattered(empty).0, [0.0, 0.0, 0.0]);
    assert_eq!(scattered(one).0, [0.0, 10.0, 0.0]);
    assert_eq!(scattered(all).0, [2.0, 0.0, 5.0]);
    assert_eq!(scattered(&plus(one, all)).0, [2.0, 10.0, 5.0]);
    // Up to the order, bags are a commutative monoid.
    for (a, b) in [
        (plus(one, all), plus(all, one)),
        (plus(one, empty), one.to_string()),
        (plus(empty, all), all.to_string()),
        (plus(&plus(one, all), one), plus(one, &plus(all, one))),
    ] {
        assert_eq!(scattered(&a).0, scattered(&b).0, "{a}, {b}");
    }
    // One step each: the scatter, its three places, a node, the position that is a constant two, the variable, the bag of one.
    assert_eq!(scattered(one).1, 1 + 2 + (1 + 2 + 1) + 3 + 1);
    // A sum is one node more, and one step to evaluate and one to make; two values at one place are added.
    assert_eq!(scattered(&plus(one, one)).1, 1 + 2 + 2 * (1 + 2 + 1) + 2 + 3 + 3 + 1);
    assert_eq!(scattered(all).1, 1 + 2 + 3 + 3 + 1 + 3 + 1);
    let of = |bag: &str| format!("def main (x: f64): []f64 = bag_scatter(3i64, {bag})");
    for bag in ["bag_one(3i64, x)", "bag_one(-1i64, x)"] {
        fails(&of(bag), vec![f(1.0)], RuntimeErrorKind::Internal, "of a bag for 3 elements");
    }
    let unequal = of("bag_array(iota(2i64), replicate(3i64, x))");
    fails(&unequal, vec![f(1.0)], RuntimeErrorKind::ShapeMismatch, "a bag");
    // Values of any type with addition; bags in bags; in and out of the interpreter as pairs.
    let text = "def main (b: bag(sparse(f64, bag(f64)))): bag(sparse(f64, bag(f64))) =
                  plus(b, bag_one(7i64, lpair(1.0f64, bag_one(0i64, 2.0f64))))";
    let boxed = |items: Vec<Value>| Value::Array(Array::new(vec![items.len()], Buffer::Boxed(items)));
    let at = |k: i64, x: Value| t(vec![i(k), x]);
    let given = vec![at(1, sum(0, vec![])), at(1, sum(1, vec![f(0.5), boxed(vec![])]))];
    let mut expected = given.clone();
    expected.push(at(7, sum(1, vec![f(1.0), boxed(vec![at(0, f(2.0))])])));
    assert_eq!(eval(text, vec![boxed(given)]), boxed(expected));
}

#[test]
fn computations_in_parallel() {
    let evm = |m: &str, ty: &str| {
        let text = format!("def main (x: f64, n: i64, e: (f64, f64)): ({ty}, (f64, f64)) = evm_run({m}, e)");
        let args = |n| vec![f(10.0), i(n), t(vec![f(1.0), f(2.0)])];
        let outcomes =
            [1, 8, 64].map(|n| try_run(&text, args(n)).unwrap_or_else(|e| panic!("{text}: {e:?}")));
        outcomes.map(|o| (o.result, o.counts.span))
    };
    let add = |cell: usize| format!("evm_add[{cell}][f64, f64](x)");
    let both = evm(&format!("evm_par({}, {}, evm_return[f64, f64](3i64))", add(0), add(1)), "((), (), i64)");
    assert_eq!(both[0].0, t(vec![t(vec![t(vec![]), t(vec![]), i(3)]), t(vec![f(11.0), f(12.0)])]));
    // As many additions to one cell as there are elements: the span is that of one, and a logarithm.
    let scope = "evm_scope(0.0f64, evm_bind(evm_add[1][f64, f64, f64](x), fun u: () -> evm_add[0][f64, f64, f64](x)))";
    let all = evm(&format!("evm_sequence[f64, f64](map(fun k: i64 -> {scope}, iota(n)))"), "[](f64, ())");
    let cells: Vec<Vec<f64>> = all.iter().map(|(v, _)| v.floats()).collect();
    assert_eq!(cells[0], [10.0, 11.0, 2.0]);
    assert_eq!(cells[1][8..], [81.0, 2.0]);
    assert!(cells[1][..8].iter().all(|x| *x == 10.0), "a scope for each");
    assert_eq!((all[1].1 - all[0].1, all[2].1 - all[1].1), (3, 3));
}

#[test]
fn staged_calls_run_highest_first_and_merged() {
    // f9 calls f1 twice, the program once: one call of f1, at the sum, after f9.
    let text = "def f (x: f64, g: <f64 -o staged(f64)>, h: <f64 -o staged(f64)>): f64 =
        staged_resolve(plus(staged_call(1i64, g, x), plus(staged_cotangent(100.0f64), staged_call(9i64, h, x))))
      def main (x: f64): f64 =
        let g = lin z: f64 -> staged_cotangent(mul.f64(z, 10.0f64)) in
        let h = lin z: f64 -> plus(staged_call(1i64, g, z), staged_call(1i64, g, z)) in @f(x, g, h)";
    assert_eq!(eval(text, vec![f(2.0)]), f(100.0 + 10.0 * (2.0 + 2.0 + 2.0)));
    // How often functions run is seen in the flops: g once, although it was called three times; 2 additions are no flops.
    assert_eq!(try_run(text, vec![f(2.0)]).unwrap().counts.flops, 1);
    assert_eq!(eval("def main (x: f64): f64 = staged_resolve(zero[staged(f64)]())", vec![f(1.0)]), f(0.0));
}

#[test]
fn maps() {
    let text = "def main (n: i64): (i64, {#none | #some f64}, {#none | #some f64}, i64) =
        let add = fun a: f64 -> fun b: f64 -> add.f64(a, mul.f64(2.0f64, b)) in
        let m = loop m = map_empty[f64]() for k < n do map_insert(add, m, mod.i64(k, 3i64), convert.i64.f64(k)) in
        match map_pop_max(m) {
          #none -> (-1i64, map_lookup(m, 0i64), map_lookup(m, 5i64), 0i64)
        | #some key value rest ->
            (key, map_lookup(rest, 0i64), map_lookup(rest, key),
             match map_pop_max(rest) { #none -> 0i64 | #some second v r -> second }) }";
    // Key 0: 0, then 0 + 2 * 3.
    let none = || sum(0, vec![]);
    assert_eq!(eval(text, vec![i(5)]), t(vec![i(2), sum(1, vec![f(6.0)]), none(), i(1)]));
    assert_eq!(eval(text, vec![i(0)]), t(vec![i(-1), none(), none(), i(0)]));
    // Persistent: the old map is as it was.
    let text = "def main (n: i64): {#none | #some i64} =
        let keep = fun a: i64 -> fun b: i64 -> b in
        let m = map_insert(keep, map_empty[i64](), 1i64, n) in
        let m2 = map_insert(keep, m, 1i64, 99i64) in map_lookup(m, 1i64)";
    assert_eq!(eval(text, vec![i(5)]), sum(1, vec![i(5)]));
}

#[test]
fn mutable_arrays() {
    let text = "def main (x: f64): (f64, f64, i64, i64, []f64) =
      io_run(
        io_bind(mut_new(2i64, x), fun a: mut(f64) ->
        io_bind(mut_set(a, 1i64, 5.0f64), fun u: () ->
        io_bind(mut_modify(a, 0i64, fun y: f64 -> add.f64(y, 1.0f64)), fun old: f64 ->
        io_bind(mut_push(a, 9.0f64), fun p: i64 ->
        io_bind(mut_size(a), fun n: i64 ->
        io_bind(mut_get(a, 1i64), fun y: f64 ->
        io_bind(mut_freeze(a), fun all: []f64 ->
        io_return((old, y, p, n, all))))))))))";
    assert_eq!(eval(text, vec![f(3.0)]), t(vec![f(3.0), f(5.0), i(2), i(3), Value::f64s(&[4.0, 5.0, 9.0])]));
    let cell = |action: &str| {
        format!(
            "def main (i: i64): () = io_run(io_bind(mut_new(2i64, 0.0f64), fun a: mut(f64) -> io_bind({action}, fun u: f64 -> io_return(()))))"
        )
    };
    for action in [
        "mut_get(a, i)",
        "mut_modify(a, i, fun x: f64 -> x)",
        "io_bind(mut_set(a, i, 1.0f64), fun u: () -> io_return(0.0f64))",
    ] {
        for at in [-1, 2] {
            let part = format!("index {at} is out of bounds for an array of size 2");
            fails(&cell(action), vec![i(at)], RuntimeErrorKind::OutOfBounds, &part);
        }
    }
    fails(
        "def main (n: i64): i64 = io_run(io_bind(mut_new(n, n), fun a: mut(i64) -> mut_size(a)))",
        vec![i(-2)],
        RuntimeErrorKind::NegativeSize,
        "-2 is not the size of an array",
    );
    // Computations in parallel see the same cells; under every schedule the additions add up.
    let text = "def main (n: i64): ([]i64, (i64, i64, i64)) =
      let bump = fun a: mut(i64) -> fun k: i64 -> mut_modify(a, 0i64, fun x: i64 -> add.i64(x, k)) in
      io_run(io_bind(mut_new(1i64, 0i64), fun a: mut(i64) ->
        io_bind(io_par(bump(a)(1i64), bump(a)(10i64), bump(a)(100i64)), fun olds: (i64, i64, i64) ->
          io_bind(mut_freeze(a), fun all: []i64 -> io_return((all, olds))))))";
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let options = Options { schedule_seed: Some(seed), ..Options::default() };
        let Value::Tuple(items) = try_with(text, vec![i(0)], &options).unwrap().result else {
            panic!("no product")
        };
        assert_eq!(items[0], Value::i64s(&[111]));
        orders.insert(format!("{:?}", items[1]));
    }
    assert!(orders.len() > 2, "schedules differ: {orders:?}");
    let text = "def main (x: i64): i64 = io_run(plus(zero[io(i64)](), io_return(x)))";
    assert_eq!(eval(text, vec![i(3)]), i(0), "integers have a trivial addition");
}

#[test]
fn delta_terms_are_recursive_sums() {
    let text = "type $0 delta = {#zero | #input | #scale f64 $0 | #add $0 $0}
      def reverse (c: f64, d: $0): f64 =
        match d { #zero -> 0.0f64 | #input -> c | #scale a e -> @reverse(mul.f64(a, c), e)
                | #add a b -> add.f64(@reverse(c, a), @reverse(c, b)) }
      def main (x: f64): f64 =
        let input = inject[$0, 1]() in
        let square = inject[$0, 3](inject[$0, 2](x, input), inject[$0, 2](x, input)) in
        @reverse(1.0f64, inject[$0, 3](inject[$0, 2](cos.f64(mul.f64(x, x)), square), inject[$0, 0]()))";
    let Value::Scalar(found) = eval(text, vec![f(1.5)]) else { panic!("no scalar") };
    assert!((found.as_f64() - 3.0 * (2.25f64).cos()).abs() < 1e-14);
}

#[test]
fn costs_of_the_first_order_vocabulary() {
    let cost = |term: &str| {
        work(
            &format!("def main (x: f64, p: (f64, f64), s: {{#l f64 | #r}}): f64 = {term}"),
            vec![f(3.0), t(vec![f(1.0), f(2.0)]), sum(0, vec![f(1.0)])],
        )
    };
    for (term, expected) in [
        ("x", 1),
        ("3.0f64", 2),
        ("neg.f64(x)", 2),
        ("mul.f64(x, x)", 4),
        ("let y = mul.f64(x, x) in add.f64(y, x)", 9),
        ("p.0", 2),
        ("(x, x).0", 4),
        ("(x, x, x).0", 1 + 2 + 3),
        // Of a match and an if only the branch taken.
        ("match s { #l a -> mul.f64(a, a) | #r -> mul.f64(sin.f64(x), sin.f64(x)) }", 6),
        ("match inject[{#l f64 | #r}, 1]() { #l a -> a | #r -> 0.5f64 }", 1 + 2 + 2),
        ("if lt.f64(x, x) then mul.f64(x, x) else x", 1 + 4 + 1),
        // A lambda that captures one variable, and its application.
        ("let f = fun y: f64 -> add.f64(x, y) in f(x)", 1 + 2 + (1 + 1 + 1 + 4)),
        ("zero[f64]()", 2),
        ("lproj[0](zero[sparse(f64, f64)]())", 1 + 1 + 1),
        ("lproj[0](lpair(x, x))", 1 + 3),
        ("plus(x, x)", 1 + 2 + 1),
        ("lproj[0](plus(lpair(x, x), lpair(x, x)))", 1 + 1 + 6 + 3),
        ("lproj[0](plus(lpair(x, x), zero[sparse(f64, f64)]()))", 1 + 1 + 3 + 1 + 1),
    ] {
        assert_eq!(cost(term), expected, "{term}");
    }
}

#[test]
fn span_is_that_of_the_longest() {
    let run = |text: &str, n: i64| try_run(text, vec![i(n)]).unwrap().counts;
    let counts = run("def main (n: i64): (i64, i64) = par(loop s = n for k < n do k, n)", 100);
    let alone = run("def main (n: i64): i64 = loop s = n for k < n do k", 100);
    assert_eq!(counts.span, alone.span + 1);
    assert!(counts.work > counts.span);
    let map = "def main (n: i64): []i64 = map(fun k: i64 -> mul.i64(k, k), iota(n))";
    assert_eq!(run(map, 10).span, run(map, 1000).span);
    assert!(run(map, 1000).work >= 1000 * 5);
    let reduce = "def main (n: i64): i64 = reduce(fun a: i64 -> fun b: i64 -> add.i64(a, b), 0i64, iota(n))";
    let (small, large) = (run(reduce, 15).span, run(reduce, 255).span);
    assert!(large > small && large <= 2 * small, "{small} {large}: twice the depth");
}

#[test]
fn limits() {
    let endless = "def main (x: f64): f64 = loop s = x while true do s";
    let options = Options { work_limit: 10_000, ..Options::default() };
    let error = try_with(endless, vec![f(1.0)], &options).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (RuntimeErrorKind::Limit, "the limit of 10000 steps is reached")
    );
    let cancel = AtomicBool::new(true);
    let options = Options { cancel: Some(&cancel), ..Options::default() };
    assert_eq!(try_with(endless, vec![f(1.0)], &options).unwrap_err().kind, RuntimeErrorKind::Cancelled);
    let steps = Cell::new(0);
    let progress = |n: u64| steps.set(n);
    let options = Options { progress: Some(&progress), work_limit: 100_000, ..Options::default() };
    assert!(try_with(endless, vec![f(1.0)], &options).is_err());
    assert!(steps.get() > 50_000);
    // A function value that applies itself through a recursive type never ends either.
    let text = "type $0 t = {#t <$0 -> f64>}
      def main (x: f64): f64 =
        let f = fun y: $0 -> match y { #t g -> add.f64(x, g(y)) } in f(inject[$0, 0](f))";
    fails(
        text,
        vec![f(1.0)],
        RuntimeErrorKind::Limit,
        "more than 10000 calls are open (in a function value)",
    );
    let text =
        "def main (n: i64): []f64 = io_run(io_bind(mut_new(n, 0.0f64), fun a: mut(f64) -> mut_freeze(a)))";
    fails(text, vec![i(1 << 40)], RuntimeErrorKind::Limit, "out of memory");
}

#[test]
fn deep_values_drop_and_deep_computations_run() {
    let text = "type $0 list = {#nil | #cons f64 $0}
      def main (n: i64): f64 =
        match (loop s = inject[$0, 0]() for k < n do inject[$0, 1](1.0f64, s)) { #nil -> 0.0f64 | #cons x rest -> x }";
    assert_eq!(eval(text, vec![i(300_000)]), f(1.0));
    // Closures that capture closures.
    let text = "def main (n: i64): i64 =
      let f = loop f = fun x: i64 -> x for k < n do fun x: i64 -> f(x) in n";
    assert_eq!(eval(text, vec![i(300_000)]), i(300_000));
    // Binds nested to the left and to the right.
    let text = "def main (n: i64): (f64,) =
      let one = evm_add[0][f64](1.0f64) in
      let left = loop m = evm_return[f64](()) for k < n do evm_bind(m, fun u: () -> one) in
      let both = loop m = left for k < n do evm_bind(one, fun u: () -> m) in
      evm_run(both, (0.0f64,)).1";
    let options = Options { call_depth_limit: 1_000_000, ..Options::default() };
    assert_eq!(try_with(text, vec![i(100_000)], &options).unwrap().result, t(vec![f(200_000.0)]));
    let text = "type $0 list = {#nil | #cons f64 $0}
      def main (n: i64): $0 = loop s = inject[$0, 0]() for k < n do inject[$0, 1](1.0f64, s)";
    fails(text, vec![i(5_000)], RuntimeErrorKind::Limit, "a result is nested more than 2000 levels deep");
    // A million iterations of `let`, deep chains of them.
    let chain: String = (0..5_000).map(|k| format!("let y{k} = add.f64(x, 1.0f64) in ")).collect();
    assert_eq!(eval(&format!("def main (x: f64): f64 = {chain} y4999"), vec![f(1.0)]), f(2.0));
}

#[test]
fn arguments_and_results() {
    let units = |n: usize| Value::Array(Array::new(vec![n], Buffer::Boxed(vec![t(vec![]); n])));
    assert_eq!(
        eval("def main (a: []()): ([](), i64) = (concat(a, a), size[0](a))", vec![units(2)]),
        t(vec![units(4), i(2)])
    );
    for (text, args, part) in [
        ("def main (x: f64): f64 = x", vec![], "takes 1 arguments, not 0"),
        (
            "def main (x: f64): f64 = x",
            vec![i(1)],
            "argument 0 (x) of function main: a value that is not of type f64",
        ),
        ("def main (x: []f64): f64 = 1.0f64", vec![Value::f64_array(&[1, 1], &[1.0])], "not of type []f64"),
        ("def main (x: []f64): f64 = 1.0f64", vec![Value::i64s(&[1])], "not of type []f64"),
        ("def main (x: {#a f64}): f64 = 1.0f64", vec![sum(1, vec![])], "not of type {#a f64}"),
        ("def main (x: (f64, f64)): f64 = 1.0f64", vec![t(vec![f(1.0)])], "not of type (f64, f64)"),
        ("def main (x: <f64 -> f64>): f64 = 1.0f64", vec![f(1.0)], "not of type <f64 -> f64>"),
        ("def main (x: f64): <f64 -> f64> = fun y: f64 -> y", vec![f(1.0)], "found a function"),
    ] {
        fails(text, args, RuntimeErrorKind::Internal, part);
    }
    let text = "def main (x: [](f64, i64)): [](f64, i64) = x";
    let array = || t(vec![Value::f64s(&[1.0, 2.0]), Value::i64s(&[3, 4])]);
    assert_eq!(eval(text, vec![array()]), array());
    fails(
        text,
        vec![t(vec![Value::f64s(&[1.0]), Value::i64s(&[3, 4])])],
        RuntimeErrorKind::ShapeMismatch,
        "components of an array of products: shapes [1] and [2] differ",
    );
}

#[test]
fn errors_know_their_place() {
    let text = "def main (a: []f64): f64 = add.f64(1.0f64, index(a, 7i64))";
    let mut sources = SourceMap::default();
    let file = sources.add("main.lambda", text);
    let program = read(text, Some(file)).unwrap();
    let main = program.funs.ids().next().unwrap();
    let error = run(&program, main, vec![Value::f64s(&[1.0])], &Options::default()).unwrap_err();
    let span = error.span.expect("a place");
    assert_eq!(sources.snippet(span), "index");
}

#[test]
fn derivatives_of_data_of_each_kind() {
    let text =
        "def main (x: {#a f64 | #b i64}, d: {#a f64 | #b i64}): ({#a f64 | #b i64}, {#a f64 | #b i64}) =
      vjp(fun y: {#a f64 | #b i64} ->
            match y { #a z -> inject[{#a f64 | #b i64}, 0](mul.f64(z, z)) | #b n -> y }, x, d)";
    let a = |x: f64| sum(0, vec![f(x)]);
    assert_eq!(eval(text, vec![a(3.0), a(1.0)]), t(vec![a(9.0), a(6.0)]));
    assert_eq!(
        eval(text, vec![sum(1, vec![i(5)]), sum(1, vec![i(9)])]),
        t(vec![sum(1, vec![i(5)]), sum(1, vec![i(0)])])
    );
    fails(text, vec![a(3.0), sum(1, vec![i(1)])], RuntimeErrorKind::Internal, "a tangent of alternative 1");
    // Arrays of products and of sums, f32, through mutable arrays.
    let text = "def main (x: []f64, y: []f64): ([](f64, f64), [](f64, f64)) =
      let z = zip(x, y) in
      jvp(fun v: [](f64, f64) -> map(fun p: (f64, f64) -> (mul.f64(p.0, p.1), p.0), v), z, zip(y, x))";
    let v = |xs: &[f64]| Value::f64s(xs);
    // (x y, x) in the direction (y, x): (y y + x x, y).
    assert_eq!(
        eval(text, vec![v(&[1.0, 2.0]), v(&[3.0, 4.0])]),
        t(vec![t(vec![v(&[3.0, 8.0]), v(&[1.0, 2.0])]), t(vec![v(&[10.0, 20.0]), v(&[3.0, 4.0])])])
    );
    let text = "def main (x: f64): (f64, f64) =
      vjp(fun y: f64 -> io_run(io_bind(mut_new(1i64, y), fun a: mut(f64) ->
            io_bind(mut_modify(a, 0i64, fun z: f64 -> mul.f64(z, z)), fun old: f64 -> mut_get(a, 0i64)))), x, 1.0f64)";
    assert_eq!(eval(text, vec![f(4.0)]), t(vec![f(16.0), f(8.0)]));
    let text = "def main (x: f64): (f64, f64) =
      jvp(fun y: f64 -> evm_run(evm_add[0][f64](mul.f64(y, y)), (y,)).1.0, x, 1.0f64)";
    assert_eq!(eval(text, vec![f(4.0)]), t(vec![f(20.0), f(9.0)]));
    fails(
        "def main (x: []f64, y: []f64): ([]f64, []f64) = jvp(fun v: []f64 -> v, x, y)",
        vec![v(&[1.0]), v(&[1.0, 2.0])],
        RuntimeErrorKind::ShapeMismatch,
        "tangent of an array: shapes [1] and [2] differ",
    );
}

#[test]
fn writes_at_the_last_use_are_in_place() {
    let run =
        |text: &str, n: i64| try_run(text, vec![i(n)]).unwrap_or_else(|e| panic!("{text}: {e:?}")).counts;
    // The array is looked at by the value that is written, and not used afterwards.
    let text = "def main (n: i64): []i64 =
      let a = iota(n) in
      loop s = a for k < n do update(s, k, add.i64(k, index(s, k)))";
    assert_eq!(run(text, 1000).copied_cells, 0);
    let (small, large) = (run(text, 1000).work, run(text, 2000).work);
    assert!(large <= 2 * small, "{small} {large}");
    // Through a function, a branch, a match and a tuple of state.
    let text = "def set (a: []i64, k: i64): []i64 = if lt.i64(k, 2i64) then a else update(a, k, 7i64)
      def main (n: i64): ([]i64, i64) =
        loop s = (iota(n), 0i64) for k < n do
          let a = s.0 in let b = @set(a, k) in (b, add.i64(s.1, 1i64))";
    // The product keeps the array of the state alive.
    assert!(run(text, 10).copied_cells > 0);
    let text = "def set (a: []i64, k: i64): []i64 = if lt.i64(k, 2i64) then a else update(a, k, 7i64)
      def main (n: i64): []i64 = loop s = iota(n) for k < n do let b = @set(s, k) in b";
    assert_eq!(run(text, 100).copied_cells, 0);
    // The old array is used later: one copy.
    let text = "def main (n: i64): i64 =
      let a = iota(n) in let b = update(a, 0i64, 5i64) in add.i64(index(a, 0i64), index(b, 0i64))";
    assert_eq!(run(text, 10).copied_cells, 10);
    assert_eq!(eval(text, vec![i(10)]), i(5));
    // Used in the next iteration; in either order of parallel terms; by a closure.
    let text = "def main (n: i64): i64 =
      let a = iota(3i64) in
      loop s = 0i64 for k < n do add.i64(s, index(update(a, 0i64, k), 0i64))";
    assert_eq!(eval(text, vec![i(4)]), i(6));
    let text = "def main (n: i64): (i64, i64) =
      let a = iota(3i64) in par(index(update(a, 1i64, n), 1i64), index(update(a, 1i64, 5i64), 1i64))";
    for seed in 0..4 {
        let options = Options { schedule_seed: Some(seed), ..Options::default() };
        assert_eq!(try_with(text, vec![i(9)], &options).unwrap().result, t(vec![i(9), i(5)]));
    }
    let text = "def main (n: i64): i64 =
      let a = iota(3i64) in let f = fun k: i64 -> index(update(a, k, 8i64), 0i64) in
      add.i64(add.i64(f(0i64), f(1i64)), f(2i64))";
    assert_eq!(eval(text, vec![i(0)]), i(8));
    let text = "def main (n: i64): []i64 = loop s = iota(3i64) while lt.i64(index(s, 0i64), n) do update(s, 0i64, add.i64(1i64, index(s, 0i64)))";
    assert_eq!(eval(text, vec![i(5)]), Value::i64s(&[5, 1, 2]));
    assert_eq!(run(text, 5).copied_cells, 0);
}
