//! Small lambda programs in the source language's part of lambda, with arguments and what they give, worked out by hand.
//! The lambda interpreter is tested on them here, and against lowered core in the crate that lowers.

use pullback_base::RuntimeErrorKind;
use pullback_core::{Array, Buffer, Value};
use pullback_prim::ScalarValue;
use std::sync::Arc;

/// A program whose function `main` is called.
pub(crate) struct Case {
    /// What it is about.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
    /// The arguments.
    pub(crate) args: Vec<Value>,
    /// The result, or the kind of error and a part of its message.
    pub(crate) expected: Result<Value, (RuntimeErrorKind, &'static str)>,
}

pub(crate) fn f(x: f64) -> Value {
    Value::f64(x)
}
pub(crate) fn i(x: i64) -> Value {
    Value::i64(x)
}
pub(crate) fn b(x: bool) -> Value {
    Value::Scalar(ScalarValue::Bool(x))
}
pub(crate) fn t(items: Vec<Value>) -> Value {
    Value::Tuple(items)
}
pub(crate) fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
pub(crate) fn is(xs: &[i64]) -> Value {
    Value::i64s(xs)
}
pub(crate) fn mat(shape: &[usize], xs: &[f64]) -> Value {
    Value::f64_array(shape, xs)
}
pub(crate) fn sum(k: usize, items: Vec<Value>) -> Value {
    Value::Sum(k, Arc::new(items))
}

fn good(name: &'static str, text: &'static str, args: Vec<Value>, result: Value) -> Case {
    Case { name, text, args, expected: Ok(result) }
}
fn bad(
    name: &'static str,
    text: &'static str,
    args: Vec<Value>,
    kind: RuntimeErrorKind,
    part: &'static str,
) -> Case {
    Case { name, text, args, expected: Err((kind, part)) }
}

const LIST: &str = "type $0 list = {#nil | #cons f64 $0}
def main (xs: $0): f64 = match xs { #nil -> 0.0f64 | #cons x rest -> add.f64(x, @main(rest)) }";

fn scalars() -> Vec<Case> {
    vec![
        good("constant", "def main (): f64 = 1.5f64", vec![], f(1.5)),
        good(
            "primitives of each kind",
            "def main (x: f64, n: i64, c: bool): (f64, i64, bool, f64, i32) =
               (sub.f64(x, 1.0f64), div.i64(n, 3i64), lt.f64(x, 0.0f64), select.f64(c, x, 9.0f64), convert.i64.i32(n))",
            vec![f(2.5), i(-7), b(false)],
            t(vec![f(1.5), i(-3), b(false), f(9.0), Value::Scalar(ScalarValue::I32(-7))]),
        ),
        good(
            "let, lambda, application, capture",
            "def main (x: f64): f64 =
               let f = fun y: f64 -> fun z: f64 -> sub.f64(mul.f64(x, y), z) in
               let x2 = 100.0f64 in
               add.f64(f(2.0f64)(3.0f64), f(0.0f64)(x2))",
            vec![f(5.0)],
            f(-93.0),
        ),
        good(
            "functions chosen at run time",
            "def main (c: bool, x: f64): f64 =
               let f = if c then fun y: f64 -> mul.f64(y, x) else fun y: f64 -> add.f64(y, x) in f(f(2.0f64))",
            vec![b(true), f(3.0)],
            f(18.0),
        ),
        good(
            "functions that take functions",
            "def twice (f: <f64 -> f64>, x: f64): f64 = f(f(x))
             def main (x: f64): f64 = @twice(fun y: f64 -> mul.f64(y, x), 2.0f64)",
            vec![f(3.0)],
            f(18.0),
        ),
        good(
            "recursion",
            "def main (n: i64): i64 = if le.i64(n, 0i64) then 1i64 else mul.i64(n, @main(sub.i64(n, 1i64)))",
            vec![i(10)],
            i(3_628_800),
        ),
        good(
            "a recursive call between two uses of a variable",
            "def main (n: i64): i64 =
               if le.i64(n, 0i64) then 0i64 else
               let m = mul.i64(n, n) in let r = @main(sub.i64(n, 1i64)) in add.i64(add.i64(m, r), n)",
            vec![i(3)],
            i(9 + 3 + 4 + 2 + 1 + 1),
        ),
        good(
            "products",
            "def main (p: (f64, (i64, f64))): (f64, (f64, i64)) = (p.1.1, (p.0, p.1.0))",
            vec![t(vec![f(1.0), t(vec![i(2), f(3.0)])])],
            t(vec![f(3.0), t(vec![f(1.0), i(2)])]),
        ),
        good(
            "sums",
            "def main (x: {#a | #b f64 i64 | #c f64}): {#no | #yes f64} =
               match x { #a -> inject[{#no | #yes f64}, 0]()
                       | #b y n -> inject[{#no | #yes f64}, 1](mul.f64(y, convert.i64.f64(n)))
                       | #c y -> inject[{#no | #yes f64}, 1](y) }",
            vec![sum(1, vec![f(1.5), i(4)])],
            sum(1, vec![f(6.0)]),
        ),
        good(
            "a recursive type",
            LIST,
            vec![sum(1, vec![f(1.0), sum(1, vec![f(2.5), sum(0, vec![])])])],
            f(3.5),
        ),
    ]
}

fn control() -> Vec<Case> {
    vec![
        good(
            "for",
            "def main (n: i64): (i64, i64) =
               loop s = (0i64, 1i64) for k < n do (s.1, add.i64(s.0, add.i64(s.1, mul.i64(0i64, k))))",
            vec![i(10)],
            t(vec![i(55), i(89)]),
        ),
        good("for, counter", "def main (n: i64): i64 = loop s = 0i64 for k < n do add.i64(s, k)", vec![i(5)], i(10)),
        good("for, never", "def main (n: i64): i64 = loop s = 7i64 for k < n do k", vec![i(-5)], i(7)),
        good(
            "while",
            "def main (x: f64): f64 = loop s = x while lt.f64(1.0f64, s) do div.f64(s, 2.0f64)",
            vec![f(10.0)],
            f(0.625),
        ),
        good(
            "loop in loop with closures",
            "def main (n: i64): i64 =
               loop s = 0i64 for a < n do
                 let f = fun x: i64 -> add.i64(x, a) in
                 loop u = s for b < a do f(add.i64(u, b))",
            vec![i(4)],
            // Rounds of a = 1, 2, 3 add a per round and 0 + .. + (a - 1).
            i(1 + (4 + 1) + (9 + 3)),
        ),
        good(
            "assert that holds, equal sizes, marks",
            "def main (x: f64): f64 =
               assert[\"positive\"](lt.f64(0.0f64, x), same_size[\"sizes\"](3i64, 3i64, recompute(store(mul.f64(x, x)))))",
            vec![f(2.0)],
            f(4.0),
        ),
        good(
            "par",
            "def main (x: f64): (f64, (i64, f64)) = par(add.f64(x, x), par(1i64, mul.f64(x, x)))",
            vec![f(3.0)],
            t(vec![f(6.0), t(vec![i(1), f(9.0)])]),
        ),
        bad(
            "assert",
            "def main (x: f64): f64 = assert[\"x is positive\"](lt.f64(0.0f64, x), x)",
            vec![f(-2.0)],
            RuntimeErrorKind::AssertFailed,
            "assertion failed: x is positive",
        ),
        bad(
            "division by zero",
            "def main (n: i64): i64 = div.i64(7i64, n)",
            vec![i(0)],
            RuntimeErrorKind::DivisionByZero,
            "division of 7 by zero",
        ),
        bad(
            "negative exponent",
            "def main (n: i64): i64 = pow.i64(2i64, n)",
            vec![i(-1)],
            RuntimeErrorKind::AssertFailed,
            "the integer 2 raised to the negative power -1",
        ),
        bad(
            "recursion without end",
            "def main (n: i64): i64 = add.i64(1i64, @main(add.i64(n, 1i64)))",
            vec![i(0)],
            RuntimeErrorKind::Limit,
            "calls are open",
        ),
    ]
}

fn arrays() -> Vec<Case> {
    let m = || mat(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let v = || fs(&[1.0, 2.0, 3.0, 4.0]);
    vec![
        good("array literal", "def main (x: f64): []f64 = array[f64](x, 2.0f64)", vec![f(1.0)], fs(&[1.0, 2.0])),
        good(
            "literal of rows",
            "def main (x: []f64): [][]f64 = array[[]f64](x, x)",
            vec![fs(&[1.0, 2.0])],
            mat(&[2, 2], &[1.0, 2.0, 1.0, 2.0]),
        ),
        good(
            "index",
            "def main (a: [][]f64): (f64, []f64) = (index(a, 1i64, 2i64), index(a, 1i64))",
            vec![m()],
            t(vec![f(6.0), fs(&[4.0, 5.0, 6.0])]),
        ),
        good(
            "slices",
            "def main (a: []f64): ([]f64, []f64, []f64) =
               (slice(a, 1i64, 2i64, 1i64), slice(a, 3i64, 4i64, -1i64), slice(a, 0i64, 2i64, 2i64))",
            vec![v()],
            t(vec![fs(&[2.0, 3.0]), fs(&[4.0, 3.0, 2.0, 1.0]), fs(&[1.0, 3.0])]),
        ),
        good(
            "a slice of a row of a slice",
            "def main (a: [][]f64): []f64 = slice(index(slice(a, 1i64, 1i64, 1i64), 0i64), 1i64, 2i64, 1i64)",
            vec![m()],
            fs(&[5.0, 6.0]),
        ),
        good(
            "update leaves the old array alone",
            "def main (a: []f64): ([]f64, []f64) = let b = update(a, 1i64, 9.0f64) in (a, b)",
            vec![v()],
            t(vec![v(), fs(&[1.0, 9.0, 3.0, 4.0])]),
        ),
        good(
            "update of a row by a row of the same array",
            "def main (a: [][]f64): [][]f64 = update(a, 0i64, index(a, 1i64))",
            vec![m()],
            mat(&[2, 3], &[4.0, 5.0, 6.0, 4.0, 5.0, 6.0]),
        ),
        good(
            "updates in a loop",
            "def main (n: i64): []i64 =
               loop a = replicate(n, 0i64) for k < n do
                 update(a, k, add.i64(mul.i64(k, k), index(a, if lt.i64(0i64, k) then sub.i64(k, 1i64) else 0i64)))",
            vec![i(4)],
            is(&[0, 1, 5, 14]),
        ),
        good(
            "update of a slice",
            "def main (a: []f64): []f64 = update_slice(a, 3i64, 2i64, -2i64, array[f64](7.0f64, 8.0f64))",
            vec![v()],
            fs(&[1.0, 8.0, 3.0, 7.0]),
        ),
        good(
            "gather",
            "def main (a: []f64, ix: []i64): []f64 = gather(a, ix)",
            vec![v(), is(&[3, 0, 3])],
            fs(&[4.0, 1.0, 4.0]),
        ),
        good("sizes", "def main (a: [][]f64): (i64, i64) = (size[0](a), size[1](a))", vec![m()], t(vec![i(2), i(3)])),
        good(
            "iota and replicate",
            "def main (n: i64): ([]i64, [][]f64) = (iota(n), replicate(2i64, replicate(n, 1.5f64)))",
            vec![i(3)],
            t(vec![is(&[0, 1, 2]), mat(&[2, 3], &[1.5; 6])]),
        ),
        good(
            "replicate of nothing keeps the inner size",
            "def main (a: []f64): i64 = size[1](replicate(0i64, a))",
            vec![v()],
            i(4),
        ),
        good(
            "transposition",
            "def main (a: [][]f64): [][]f64 = rearrange[1, 0](a)",
            vec![m()],
            mat(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        ),
        good(
            "transposition of outer dimensions",
            "def main (a: [][]f64): [][][]f64 = rearrange[1, 0](reshape[2](3i64, 1i64, 2i64, a))",
            vec![m()],
            mat(&[1, 3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ),
        good(
            "reshape",
            "def main (a: [][]f64): ([]f64, [][]f64) = (reshape[2](6i64, a), reshape[2](3i64, 2i64, a))",
            vec![m()],
            t(vec![fs(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), mat(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]),
        ),
        good(
            "concat",
            "def main (a: []f64): []f64 = concat(a, array[f64](), array[f64](9.0f64), a)",
            vec![fs(&[1.0, 2.0])],
            fs(&[1.0, 2.0, 9.0, 1.0, 2.0]),
        ),
        good(
            "reverse and rotate",
            "def main (a: []f64, k: i64): ([]f64, []f64) = (reverse(a), rotate(k, a))",
            vec![v(), i(-5)],
            t(vec![fs(&[4.0, 3.0, 2.0, 1.0]), fs(&[4.0, 1.0, 2.0, 3.0])]),
        ),
        good(
            "arrays of products",
            "def main (a: []f64, n: []i64): ((f64, i64), [](f64, i64), ([]f64, []i64)) =
               let z = zip(a, n) in
               let y = update(z, 0i64, (7.0f64, 8i64)) in
               (index(z, 1i64), concat(reverse(z), slice(y, 0i64, 1i64, 1i64)), unzip(y))",
            vec![fs(&[1.0, 2.0]), is(&[3, 4])],
            t(vec![
                t(vec![f(2.0), i(4)]),
                t(vec![fs(&[2.0, 1.0, 7.0]), is(&[4, 3, 8])]),
                t(vec![fs(&[7.0, 2.0]), is(&[8, 4])]),
            ]),
        ),
        good(
            "arrays of products of arrays",
            "def main (a: [][]f64): [](([]f64, i64), f64) =
               map(fun r: []f64 -> ((reverse(r), size[0](r)), index(r, 0i64)), a)",
            vec![m()],
            t(vec![t(vec![mat(&[2, 3], &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0]), is(&[3, 3])]), fs(&[1.0, 4.0])]),
        ),
        good(
            "arrays of sums",
            "def main (xs: []{#a f64 | #b}): []f64 = map(fun x: {#a f64 | #b} -> match x { #a y -> y | #b -> 0.5f64 }, xs)",
            vec![Value::Array(Array::new(
                vec![3],
                Buffer::Boxed(vec![sum(0, vec![f(2.0)]), sum(1, vec![]), sum(0, vec![f(3.0)])]),
            ))],
            fs(&[2.0, 0.5, 3.0]),
        ),
        good(
            "an empty matrix",
            "def main (n: i64): (i64, i64, i64) =
               let a = map(fun k: i64 -> replicate(5i64, k), iota(n)) in
               (size[0](a), size[0](reshape[2](0i64, a)), size[0](concat(a, replicate(1i64, iota(2i64)))))",
            vec![i(0)],
            t(vec![i(0), i(0), i(1)]),
        ),
        good(
            "other element types",
            "def main (n: i64): ([]bool, []u8, []f32) =
               (map(fun k: i64 -> lt.i64(k, 1i64), iota(n)), map(fun k: i64 -> convert.i64.u8(sub.i64(0i64, k)), iota(n)),
                map(fun k: i64 -> convert.i64.f32(k), iota(n)))",
            vec![i(2)],
            t(vec![
                Value::Array(Array::new(vec![2], Buffer::Bool(vec![true, false]))),
                Value::Array(Array::new(vec![2], Buffer::U8(vec![0, 255]))),
                Value::Array(Array::new(vec![2], Buffer::F32(vec![0.0, 1.0]))),
            ]),
        ),
    ]
}

fn array_errors() -> Vec<Case> {
    use RuntimeErrorKind::{Limit, NegativeSize, OutOfBounds, ShapeMismatch};
    let v = || fs(&[1.0, 2.0, 3.0, 4.0]);
    let m = || mat(&[2, 3], &[1.0; 6]);
    vec![
        bad(
            "index",
            "def main (a: []f64): f64 = index(a, 4i64)",
            vec![v()],
            OutOfBounds,
            "index 4 is out of bounds for an array of size 4",
        ),
        bad(
            "negative index",
            "def main (a: []f64): f64 = index(a, -1i64)",
            vec![v()],
            OutOfBounds,
            "index -1 is",
        ),
        bad(
            "two indices",
            "def main (a: [][]f64): f64 = index(a, 1i64, 3i64)",
            vec![m()],
            OutOfBounds,
            "index [1, 3] is out of bounds for an array of shape [2][3]",
        ),
        bad(
            "update",
            "def main (a: []f64): []f64 = update(a, 9i64, 1.0f64)",
            vec![v()],
            OutOfBounds,
            "index 9 is",
        ),
        bad(
            "slice",
            "def main (a: []f64): []f64 = slice(a, 2i64, 3i64, 1i64)",
            vec![v()],
            OutOfBounds,
            "a slice of 3 elements from index 2 is out of bounds for an array of size 4",
        ),
        bad(
            "slice backwards",
            "def main (a: []f64): []f64 = slice(a, 2i64, 3i64, -2i64)",
            vec![v()],
            OutOfBounds,
            "a slice of 3 elements from index 2 in steps of -2 is out of bounds for an array of size 4",
        ),
        bad(
            "gather",
            "def main (a: []f64): []f64 = gather(a, array[i64](0i64, 4i64))",
            vec![v()],
            OutOfBounds,
            "index 4 is",
        ),
        bad(
            "row of another size",
            "def main (a: [][]f64, r: []f64): [][]f64 = update(a, 0i64, r)",
            vec![m(), v()],
            ShapeMismatch,
            "update of a part of an array: shapes [3] and [4] differ",
        ),
        bad(
            "slice of another size",
            "def main (a: []f64): []f64 = update_slice(a, 0i64, 3i64, 1i64, a)",
            vec![v()],
            ShapeMismatch,
            "update of a slice: shapes [3] and [4] differ",
        ),
        bad(
            "reshape",
            "def main (a: []f64): [][]f64 = reshape[1](2i64, 3i64, a)",
            vec![v()],
            ShapeMismatch,
            "reshape: [4] has 4 elements, [2][3] has 6",
        ),
        bad(
            "concat",
            "def main (a: [][]f64, r: []f64): [][]f64 = concat(a, array[[]f64](r))",
            vec![m(), v()],
            ShapeMismatch,
            "concat: shapes [3] and [4] differ",
        ),
        bad(
            "map of two sizes",
            "def main (a: []f64, n: []i64): []f64 = map(fun x: f64 -> fun k: i64 -> x, a, n)",
            vec![v(), is(&[1])],
            ShapeMismatch,
            "arrays of sizes 4 and 1 are combined",
        ),
        bad(
            "zip of two sizes",
            "def main (a: []f64, n: []i64): i64 = size[0](zip(a, n))",
            vec![v(), is(&[1])],
            ShapeMismatch,
            "zip of arrays of different sizes: sizes 4 and 1 differ",
        ),
        bad(
            "sizes that must agree",
            "def main (a: []f64, n: i64): i64 = same_size[\"n is the size of a\"](size[0](a), n, n)",
            vec![v(), i(3)],
            ShapeMismatch,
            "n is the size of a: sizes 4 and 3 differ",
        ),
        bad(
            "irregular",
            "def main (n: i64): [][]i64 = map(fun k: i64 -> iota(k), iota(n))",
            vec![i(3)],
            ShapeMismatch,
            "irregular array: shapes",
        ),
        bad(
            "scatter of two sizes",
            "def main (a: []f64): []f64 = scatter(a, array[i64](1i64), a)",
            vec![v()],
            ShapeMismatch,
            "scatter: shapes [1] and [4] differ",
        ),
        bad(
            "negative iota",
            "def main (n: i64): []i64 = iota(n)",
            vec![i(-3)],
            NegativeSize,
            "-3 is not the size of an array",
        ),
        bad(
            "negative replicate",
            "def main (n: i64): []i64 = replicate(n, n)",
            vec![i(-1)],
            NegativeSize,
            "-1 is not",
        ),
        bad("memory", "def main (n: i64): []i64 = iota(n)", vec![i(1 << 50)], Limit, "out of memory"),
        bad(
            "memory of rows",
            "def main (n: i64): [][]f64 = replicate(n, replicate(n, 1.0f64))",
            vec![i(1 << 20)],
            Limit,
            "out of memory",
        ),
    ]
}

fn soacs() -> Vec<Case> {
    let v = || fs(&[1.0, 2.0, 3.0, 4.0]);
    vec![
        good(
            "map",
            "def main (a: []f64, w: f64): []f64 = map(fun x: f64 -> mul.f64(x, w), a)",
            vec![v(), f(2.0)],
            fs(&[2.0, 4.0, 6.0, 8.0]),
        ),
        good(
            "map of several arrays",
            "def main (a: []f64, n: []i64): []f64 = map(fun x: f64 -> fun k: i64 -> mul.f64(x, convert.i64.f64(k)), a, n)",
            vec![v(), is(&[1, 0, -1, 2])],
            fs(&[1.0, 0.0, -3.0, 8.0]),
        ),
        good(
            "map of rows",
            "def main (a: []f64): [][]f64 = map(fun x: f64 -> map(fun y: f64 -> mul.f64(x, y), a), slice(a, 0i64, 2i64, 1i64))",
            vec![v()],
            mat(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 2.0, 4.0, 6.0, 8.0]),
        ),
        good(
            "reduce",
            "def main (a: []f64): f64 = reduce(fun x: f64 -> fun y: f64 -> add.f64(x, y), 0.0f64, a)",
            vec![v()],
            f(10.0),
        ),
        good(
            "reduce of nothing",
            "def main (n: i64): i64 = reduce_comm(fun x: i64 -> fun y: i64 -> mul.i64(x, y), 1i64, iota(n))",
            vec![i(0)],
            i(1),
        ),
        good(
            "reduce with an operator that does not commute",
            // (a, b) is x -> a x + b; the composition of x + 1, 2 x, x - 3 in this order.
            "def main (a: []f64, b: []f64): (f64, f64) =
               reduce(fun p: (f64, f64) -> fun q: (f64, f64) ->
                        (mul.f64(p.0, q.0), add.f64(mul.f64(q.0, p.1), q.1)),
                      (1.0f64, 0.0f64), zip(a, b))",
            vec![fs(&[1.0, 2.0, 1.0]), fs(&[1.0, 0.0, -3.0])],
            t(vec![f(2.0), f(-1.0)]),
        ),
        good(
            "scan",
            "def main (a: []f64): []f64 = scan(fun x: f64 -> fun y: f64 -> add.f64(x, y), 0.0f64, a)",
            vec![v()],
            fs(&[1.0, 3.0, 6.0, 10.0]),
        ),
        good(
            "scan of products",
            "def main (n: i64): [](i64, i64) =
               scan(fun p: (i64, i64) -> fun q: (i64, i64) -> (add.i64(p.0, q.0), max.i64(p.1, q.1)),
                    (0i64, 0i64), zip(iota(n), reverse(iota(n))))",
            vec![i(3)],
            t(vec![is(&[0, 1, 3]), is(&[2, 2, 2])]),
        ),
        good(
            "reduce_by_index",
            "def main (d: []f64, ix: []i64, a: []f64): []f64 =
               hist(fun x: f64 -> fun y: f64 -> add.f64(x, y), 0.0f64, d, ix, a)",
            vec![fs(&[10.0, 20.0]), is(&[1, 0, 1, -1]), v()],
            fs(&[12.0, 24.0]),
        ),
        good(
            "reduce_by_index of rows",
            "def main (d: [][]f64, ix: []i64): [][]f64 =
               hist(fun x: []f64 -> fun y: []f64 -> map(fun u: f64 -> fun v: f64 -> add.f64(u, v), x, y),
                    replicate(2i64, 0.0f64), d, ix, d)",
            vec![mat(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), is(&[0, 0])],
            mat(&[2, 2], &[5.0, 8.0, 3.0, 4.0]),
        ),
        good(
            "scatter",
            "def main (d: []f64, ix: []i64, a: []f64): []f64 = scatter(d, ix, a)",
            vec![fs(&[9.0, 9.0, 9.0]), is(&[1, 5, 1, 0]), v()],
            fs(&[4.0, 3.0, 9.0]),
        ),
        good(
            "scatter of products",
            "def main (n: i64): [](i64, i64) =
               let z = zip(iota(n), reverse(iota(n))) in scatter(z, array[i64](0i64), slice(z, 2i64, 1i64, 1i64))",
            vec![i(3)],
            t(vec![is(&[2, 1, 2]), is(&[0, 1, 0])]),
        ),
        bad(
            "an error inside a map",
            "def main (a: []f64, ix: []i64): []f64 = map(fun k: i64 -> index(a, k), ix)",
            vec![v(), is(&[0, 7])],
            RuntimeErrorKind::OutOfBounds,
            "index 7 is",
        ),
    ]
}

fn derivatives() -> Vec<Case> {
    vec![
        good(
            "vjp",
            "def main (x: f64, y: f64): (f64, (f64, f64)) =
               vjp(fun p: (f64, f64) -> mul.f64(p.0, mul.f64(p.0, p.1)), (x, y), 1.0f64)",
            vec![f(3.0), f(2.0)],
            t(vec![f(18.0), t(vec![f(12.0), f(9.0)])]),
        ),
        good(
            "jvp",
            "def main (x: f64, y: f64): (f64, f64) =
               jvp(fun p: (f64, f64) -> mul.f64(p.0, mul.f64(p.0, p.1)), (x, y), (1.0f64, 10.0f64))",
            vec![f(3.0), f(2.0)],
            t(vec![f(18.0), f(12.0 + 90.0)]),
        ),
        good(
            "vjp of arrays",
            "def main (a: []f64): ([]f64, []f64) =
               vjp(fun v: []f64 -> map(fun x: f64 -> mul.f64(x, index(v, 0i64)), v), a, map(fun x: f64 -> 1.0f64, a))",
            vec![fs(&[2.0, 3.0])],
            // (a0^2, a0 a1): the cotangent (1, 1) gives (2 a0 + a1, a0).
            t(vec![fs(&[4.0, 6.0]), fs(&[7.0, 2.0])]),
        ),
        good(
            "nested derivatives",
            "def main (x: f64): (f64, f64) =
               jvp(fun y: f64 -> vjp(fun z: f64 -> mul.f64(z, mul.f64(z, z)), y, 1.0f64).1, x, 1.0f64)",
            vec![f(2.0)],
            t(vec![f(12.0), f(12.0)]),
        ),
        good(
            "perturbations are not confused",
            // d/dx (x * d/dy (x + y)) = 1, not 2.
            "def main (x: f64): f64 =
               jvp(fun x: f64 -> mul.f64(x, jvp(fun y: f64 -> add.f64(x, y), 1.0f64, 1.0f64).1), x, 1.0f64).1",
            vec![f(5.0)],
            f(1.0),
        ),
        good(
            "stop_gradient",
            "def main (x: f64): f64 = vjp(fun y: f64 -> mul.f64(y, stop_gradient(y)), x, 1.0f64).1",
            vec![f(5.0)],
            f(5.0),
        ),
        good(
            "a custom derivative means its function",
            "def main (x: f64): f64 =
               custom(fun y: f64 -> mul.f64(y, y), fun y: f64 -> fun r: f64 -> fun d: f64 -> mul.f64(mul.f64(2.0f64, y), d), x)",
            vec![f(5.0)],
            f(25.0),
        ),
        good(
            "discrete parts",
            "def main (x: f64, n: i64): ((f64, i64), (f64, i64)) =
               vjp(fun p: (f64, i64) -> (mul.f64(p.0, convert.i64.f64(p.1)), add.i64(p.1, 1i64)), (x, n), (2.0f64, 77i64))",
            vec![f(3.0), i(4)],
            t(vec![t(vec![f(12.0), i(5)]), t(vec![f(8.0), i(0)])]),
        ),
    ]
}

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    [scalars(), control(), arrays(), array_errors(), soacs(), derivatives()].into_iter().flatten().collect()
}
