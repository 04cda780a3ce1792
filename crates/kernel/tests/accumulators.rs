//! Accumulators of every type, and views of them that leave a branch.

use crate::common::{parse, results};
use pullback_core::Value;
use pullback_prim::ScalarValue;

fn check(text: &str, args: &[Value], expected: &[Value]) {
    let program = parse(text);
    for (part, lanes) in [(64, 0), (64, 2), (1, 8)] {
        assert_eq!(results(&program, args, part, lanes), expected, "{lanes} lanes: {text}");
    }
}

fn truth(holds: bool) -> Value {
    Value::Scalar(ScalarValue::Bool(holds))
}

fn matrix(rows: usize, columns: usize, numbers: &[f64]) -> Value {
    Value::f64_array(&[rows, columns], numbers)
}

/// Element `i` of a rotated view is element `i + k` of the accumulator. What the branch gives is added to after it, and so is the accumulator.
#[test]
fn a_rotated_view_leaves_a_branch() {
    let branch = "if c { let turned: acc []f64 = view_rotate(acc, k) in turned } else { in acc }";
    let nested = "if c {
            let inner: acc []f64 = if d { let turned: acc []f64 = view_rotate(acc, k) in turned } else {
                let back: acc []f64 = view_rotate(acc, 2i64)
                let unused: () = add_to(back, [], zs)
                in back
            }
            in inner
        } else { in acc }";
    let text = |there: &str| {
        format!(
            "fun f(base: []f64, xs: []f64, ys: []f64, k: i64, c: bool, d: bool): []f64 {{
                let zs: []f64 = map 3i64 [xs] (z: f64) {{ let w: f64 = mul.f64(z, 0.0f64) in w }}
                let sum: []f64 = withacc [base] (acc: acc []f64) {{
                    let there: acc []f64 = {there}
                    let a: () = add_to(there, [], xs)
                    let b: () = add_to(acc, [], ys)
                    let e: () = add_to(there, [0i64], 1000.0f64)
                    in
                }}
                in sum
            }}"
        )
    };
    let numbers = [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]].map(|xs| Value::f64s(&xs));
    let cases = [
        (branch, true, true, [131.0, 1212.0, 323.0]),
        (branch, false, true, [1111.0, 222.0, 333.0]),
        (nested, true, true, [131.0, 1212.0, 323.0]),
        (nested, true, false, [121.0, 232.0, 1313.0]),
        (nested, false, false, [1111.0, 222.0, 333.0]),
    ];
    for (there, c, d, expected) in cases {
        let mut args = numbers.to_vec();
        args.extend([Value::i64(1), truth(c), truth(d)]);
        check(&text(there), &args, &[Value::f64s(&expected)]);
    }
}

/// In every iteration of a loop another arm: nothing, the transposed accumulator in a row, the accumulator in a row.
#[test]
fn reshaped_views_leave_the_arms_of_a_match_in_a_loop() {
    let text = "fun f(base: [][]f64, xs: []f64): [][]f64 {
        let sum: [][]f64 = withacc [base] (acc: acc [][]f64) {
            let is: []i64 = iota(3i64)
            let done: []() = map 3i64 [is] (i: i64) {
                let none: (#a | #b | #c) = inject(0): (#a | #b | #c)
                let first: bool = eq.i64(i, 1i64)
                let second: bool = eq.i64(i, 2i64)
                let way: (#a | #b | #c) = if first {
                    let b: (#a | #b | #c) = inject(1): (#a | #b | #c)
                    in b
                } else {
                    let later: (#a | #b | #c) = if second {
                        let c: (#a | #b | #c) = inject(2): (#a | #b | #c)
                        in c
                    } else { in none }
                    in later
                }
                let row: acc []f64 = match way
                    case () {
                        let empty: acc [][]f64 = view_slice(acc, 0i64, 0i64, 1i64)
                        let part: acc []f64 = view_reshape(empty, [0i64], 2)
                        in part
                    }
                    case () {
                        let turned: acc [][]f64 = view_rearrange(acc, [1, 0])
                        let part_1: acc []f64 = view_reshape(turned, [4i64], 2)
                        in part_1
                    }
                    case () {
                        let part_2: acc []f64 = view_reshape(acc, [4i64], 2)
                        in part_2
                    }
                let some: bool = lt.i64(0i64, i)
                let u: () = if some { let v: () = add_to(row, [], xs) in v } else { let no: () = tuple() in no }
                in u
            }
            in
        }
        in sum
    }";
    // (1, 2, 3, 4) as rows and as columns.
    let args = [matrix(2, 2, &[0.5; 4]), Value::f64s(&[1.0, 2.0, 3.0, 4.0])];
    check(text, &args, &[matrix(2, 2, &[2.5, 5.5, 5.5, 8.5])]);
}

const OPTION: &str = "(#none | #some f64 []f64)";

/// `f` of numbers, with `adds` in an iteration of `x` and `i`; the sums are read after other memory was taken.
fn options(adds: &str, functions: &str) -> String {
    let read = |name: &str, of: &str| {
        format!(
            "let {name}: f64 = match {of}
                case () {{ in -1.0f64 }}
                case ({name}_x: f64, {name}_row: []f64) {{
                    let {name}_last: f64 = {name}_row[1i64]
                    let {name}_tens: f64 = mul.f64({name}_last, 10.0f64)
                    let {name}_sum: f64 = add.f64({name}_x, {name}_tens)
                    in {name}_sum
                }}"
        )
    };
    format!(
        "fun f(a: []f64): f64, []f64, []f64 {{
            let n: i64 = size(a, 0)
            let none: {OPTION} = inject(0): {OPTION}
            let cells: []{OPTION} = replicate([2i64], none)
            let is: []i64 = iota(n)
            let one: {OPTION}, all: []{OPTION} = withacc [none, cells] (p: acc {OPTION}, q: acc []{OPTION}) {{
                let done: []() = map n [a, is] (x: f64, i: i64) {{
                    {adds}
                    in u
                }}
                in
            }}
            let others: []f64 = map n [a] (o: f64) {{ let o_2: f64 = mul.f64(o, 7.0f64) in o_2 }}
            {}
            let rs: []f64 = map 2i64 [all] (cell: {OPTION}) {{
                {}
                in r
            }}
            in s, rs, others
        }}
        {functions}",
        read("s", "one"),
        read("r", "cell")
    )
}

const MADE: &str = "let twice: f64 = mul.f64(x, 2.0f64)
    let column: []i64 = iota(2i64)
    let row: []f64 = map 2i64 [column] (j: i64) {
        let j_f: f64 = convert.i64.f64(j)
        let y: f64 = add.f64(twice, j_f)
        in y
    }";

/// Iterations that add arrays keep them, and come in their order.
#[test]
fn arrays_in_cases_are_added() {
    let here = format!(
        "{MADE}
        let e: {OPTION} = inject(1, x, row): {OPTION}
        let t: () = add_to(p, [], e)
        let half: i64 = div.i64(i, 2i64)
        let u: () = add_to(q, [half], e)"
    );
    let called = "let u: () = call g(p, q, x, i)";
    let g = format!(
        "fun g(p: acc {OPTION}, q: acc []{OPTION}, x: f64, i: i64): () {{
            {MADE}
            let e: {OPTION} = inject(1, x, row): {OPTION}
            let small: bool = lt.i64(i, 100i64)
            let half: i64 = div.i64(i, 2i64)
            let t: () = add_to(p, [], e)
            let u: () = if small {{ let v: () = add_to(q, [half], e) in v }} else {{ let no: () = tuple() in no }}
            in u
        }}"
    );
    // Of x = 1, 2, 3, 4 the rows end in 3, 5, 7, 9; cells take two each, and there is no third one.
    let cases = [
        (vec![], -1.0, [-1.0, -1.0], vec![]),
        (vec![3.0], 73.0, [73.0, -1.0], vec![21.0]),
        (vec![1.0, 2.0, 3.0, 4.0], 250.0, [83.0, 167.0], vec![7.0, 14.0, 21.0, 28.0]),
        (vec![1.0, 2.0, 3.0, 4.0, 5.0], 365.0, [83.0, 167.0], vec![7.0, 14.0, 21.0, 28.0, 35.0]),
    ];
    for (a, one, all, others) in cases {
        let expected = [Value::f64(one), Value::f64s(&all), Value::f64s(&others)];
        check(&options(&here, ""), &[Value::f64s(&a)], &expected);
        check(&options(called, &g), &[Value::f64s(&a)], &expected);
    }
}

/// What was added stays as it is: the array that a case holds is not written over when nobody else needs it.
#[test]
fn arrays_that_were_added_are_not_written_over() {
    let adds = format!(
        "{MADE}
        let e: {OPTION} = inject(1, x, row): {OPTION}
        let t: () = add_to(p, [], e)
        let over: []f64 = update(row, [1i64], 100.0f64)
        let y_0: f64 = over[1i64]
        let e_2: {OPTION} = inject(1, y_0, over): {OPTION}
        let u: () = add_to(q, [0i64], e_2)"
    );
    let expected = [Value::f64(73.0), Value::f64s(&[1100.0, -1.0]), Value::f64s(&[21.0])];
    check(&options(&adds, ""), &[Value::f64s(&[3.0])], &expected);
}

/// Elements of an array of sums through views that meet in one element, and that are set apart.
#[test]
fn views_of_sums() {
    let text = "fun f(xs: []f64, k: i64): []f64 {
        let zero: (#zero | #one f64) = inject(0): (#zero | #one f64)
        let cells: [](#zero | #one f64) = replicate([3i64], zero)
        let given: [](#zero | #one f64) = map 3i64 [xs] (x: f64) {
            let e: (#zero | #one f64) = inject(1, x): (#zero | #one f64)
            in e
        }
        let all: [](#zero | #one f64) = withacc [cells] (acc: acc [](#zero | #one f64)) {
            let still: acc [](#zero | #one f64) = view_slice(acc, 1i64, 3i64, 0i64)
            let a: () = add_to(still, [], given)
            let turned: acc [](#zero | #one f64) = view_rotate(acc, k)
            let b: () = add_to(turned, [], given)
            in
        }
        let rs: []f64 = map 3i64 [all] (cell: (#zero | #one f64)) {
            let r: f64 = match cell case () { in 0.0f64 } case (y: f64) { in y }
            in r
        }
        in rs
    }";
    let args = [Value::f64s(&[1.0, 2.0, 4.0]), Value::i64(1)];
    check(text, &args, &[Value::f64s(&[4.0, 8.0, 2.0])]);
}

/// Values of a recursive type add up cell by cell; the longer one gives the rest.
#[test]
fn recursive_values_are_added() {
    let text = "type list = #zero | #cons f64 []f64 list
    fun f(n: i64, m: i64): f64, f64 {
        let zero: list = inject(0): list
        let sum: list, rows: []list = withacc [zero, zeros] (p: acc list, q: acc []list) {
            let one: list = call make(n, 1.0f64)
            let two: list = call make(m, 10.0f64)
            let a: () = add_to(p, [], one)
            let b: () = add_to(p, [], two)
            let c: () = add_to(q, [1i64], one)
            let turned: acc []list = view_rotate(q, 1i64)
            let d: () = add_to(turned, [0i64], two)
            in
        }
        let both: list = plus(sum, sum)
        let s: f64 = call total(both, 1.0f64)
        let row: list = rows[1i64]
        let r: f64 = call total(row, 1.0f64)
        in s, r
    }
    fun make(k: i64, x: f64): list {
        let over: bool = le.i64(k, 0i64)
        let l: list = if over {
            let end: list = inject(0): list
            in end
        } else {
            let less: i64 = sub.i64(k, 1i64)
            let y: f64 = add.f64(x, 1.0f64)
            let rest: list = call make(less, y)
            let made: []f64 = replicate([2i64], x)
            let all: list = inject(1, x, made, rest): list
            in all
        }
        in l
    }
    fun total(l_1: list, weight: f64): f64 {
        let t: f64 = match l_1
            case () { in 0.0f64 }
            case (head: f64, row_1: []f64, tail: list) {
                let w: f64 = mul.f64(weight, 100.0f64)
                let more: f64 = call total(tail, w)
                let second: f64 = row_1[1i64]
                let both_1: f64 = add.f64(head, second)
                let here: f64 = mul.f64(both_1, weight)
                let sum_1: f64 = add.f64(here, more)
                in sum_1
            }
        in t
    }";
    let text = text.replace(
        "let sum: list, rows",
        "let zeros: []list = replicate([2i64], zero)\n        let sum: list, rows",
    );
    // (1, 2) and (10, 11, 12) are (11, 13, 12); each head counts twice, as does the sum.
    let row = 22.0 + 26e2 + 24e4;
    check(&text, &[Value::i64(2), Value::i64(3)], &[Value::f64(2.0 * row), Value::f64(row)]);
    check(&text, &[Value::i64(0), Value::i64(1)], &[Value::f64(40.0), Value::f64(20.0)]);
}
