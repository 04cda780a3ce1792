//! Random programs and their gradients on the native executors, optimised and not, against the interpreter. `cargo xtask soak
//! native` does the same for more of them, in more ways.

use pullback_base::SourceMap;
use pullback_core::check::{Rules, check};
use pullback_core::{Array, Buffer, Value, read};
use pullback_cpu::Level;
use pullback_testkit::draws::draws;
use pullback_testkit::native::soak::{Counts, many};
use pullback_testkit::native::{Programs, Run, Verdict, Way, examine};

/// Nothing is wrong, and of so many functions more than half decided something.
fn assert_right(counts: &Counts, functions: u64) {
    eprint!("{}", counts.render());
    let failures: Vec<String> =
        counts.failures.iter().take(4).map(|(seed, text)| format!("{seed}: {text}")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let compared = counts.compared();
    assert!(2 * compared > functions, "too few were compared: {compared} of {functions}");
    assert!(counts.of("lost") * 50 <= compared, "too many sizes are lost");
    assert!(counts.of("unstable") * 10 <= compared, "too many decide nothing");
}

/// The first function of a program gives the interpreter's bits for these arguments in all of these ways.
fn assert_bits(what: &str, text: &str, args: Vec<Value>, ways: &[Way]) {
    let id = SourceMap::new().add("test.core", text);
    let program = read::read(id, text).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    check(&program, Rules::SURFACE).unwrap_or_else(|e| panic!("{what}: {e}"));
    let fun = program.funs.ids().next().expect("a function");
    let run = Run { what: what.to_string(), program, fun, args: vec![args], empties: false };
    for way in ways {
        let verdict = examine(&run, *way);
        assert!(matches!(verdict, Verdict::Bits | Verdict::Skipped), "{what}, {way:?}: {verdict:?}");
    }
}

#[test]
fn the_vm_computes_what_the_interpreter_computes() {
    let mut seeds = draws("vm", (100, 600), 6);
    let ways = |seed: u64, _: usize| {
        let lanes = [4, 64, 512][(seed / 2 % 3) as usize];
        vec![if seed.is_multiple_of(2) { Way::Vm(lanes) } else { Way::VmDefault }]
    };
    let counts = many(&Programs::usual(), &mut seeds, &ways);
    assert_right(&counts, 4 * seeds.drawn());
}

#[test]
fn machine_code_computes_what_the_interpreter_computes() {
    let mut seeds = draws("machine code", (20, 100), 7);
    // LLVM takes most of the time: what is optimised in one seed is not in the next.
    let ways = |seed: u64, k: usize| match (seed + k as u64) % 2 {
        0 => Way::of_llvm(seed, Level::O1).into_iter().skip(1).collect(),
        _ => Vec::new(),
    };
    let counts = many(&Programs::usual(), &mut seeds, &ways);
    if counts.of("skipped") > 0 && counts.compared() == 0 {
        eprintln!("skipped: no LLVM was found");
        return;
    }
    assert_right(&counts, 2 * seeds.drawn());
}

/// Bodies that end in branches, gradients, second derivatives, and gradients for which recursive calls give up their tapes.
#[test]
fn programs_that_end_in_branches_keep_their_memory() {
    let mut seeds = draws("memory at endings", (6, 24), 6);
    let ways = |seed: u64, k: usize| Way::in_turn(seed, k, Some(Level::O1));
    let counts = many(&Programs::endings(), &mut seeds, &ways);
    assert_right(&counts, 5 * seeds.drawn());
}

/// Threads give the memory of their parts back: a sum that makes arrays inside of its elements is not cut into parts.
#[test]
fn sums_of_elements_with_arrays_inside_keep_their_memory() {
    let some = |x: &str| format!("inject(1, {x}): (#none | #some []f64)");
    let made = |name: &str, by: &str| {
        format!(
            "let {name}: [](#none | #some []f64) = map n [a] ({name}_x: f64) {{
                let {name}_y: f64 = mul.f64({name}_x, {by})
                let {name}_r: []f64 = replicate([3i64], {name}_y)
                let {name}_e: (#none | #some []f64) = {}
                in {name}_e
            }}",
            some(&format!("{name}_r"))
        )
    };
    let text = format!(
        "fun f(a: []f64): []f64 {{
            let n: i64 = size(a, 0)
            {}
            {}
            let s: [](#none | #some []f64) = plus(one, two)
            let rs: []f64 = map n [s] (e: (#none | #some []f64)) {{
                let r: f64 = match e
                    case () {{ in 0.0f64 }}
                    case (row: []f64) {{ let last: f64 = row[2i64] in last }}
                in r
            }}
            in rs
        }}",
        made("one", "1.0f64"),
        made("two", "2.0f64")
    );
    let ways = [Way::VmDefault, Way::Llvm(Level::O1, 4, 1), Way::Llvm(Level::O1, 8, 2)];
    for n in [3, 33, 200] {
        let a: Vec<f64> = (0..n).map(f64::from).collect();
        assert_bits(&format!("{n}"), &text, vec![Value::f64s(&a)], &ways);
    }
}

/// Pieces give their frames back, but not what a row of pointers points to that one of them fills.
#[test]
fn rows_that_are_filled_with_a_pointer_keep_what_it_points_to() {
    let text = "fun f(a: []f64): []f64 {
        let n: i64 = size(a, 0)
        let rows: [][](#some []f64 | #none f64) = map n [a] (x: f64) {
            let y: f64 = mul.f64(x, x)
            let z: f64 = add.f64(y, x)
            let row: []f64 = replicate([2i64], z)
            let e: (#some []f64 | #none f64) = inject(0, row): (#some []f64 | #none f64)
            let es: [](#some []f64 | #none f64) = replicate([2i64], e)
            in es
        }
        let sums: []f64 = map n [rows] (held: [](#some []f64 | #none f64)) {
            let second: (#some []f64 | #none f64) = held[1i64]
            let r: f64 = match second
                case (kept: []f64) {
                    let s: f64 = reduce_comm 2i64 [0.0f64] [kept] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
                    in s
                }
                case (other: f64) { in other }
            in r
        }
        in sums
    }";
    let ways = [Way::VmDefault, Way::Llvm(Level::O1, 8, 1), Way::Llvm(Level::O1, 32, 2)];
    for n in [1, 3, 40] {
        let a: Vec<f64> = (1..=n).map(f64::from).collect();
        assert_bits(&format!("{n}"), text, vec![Value::f64s(&a)], &ways);
    }
}

/// Bins hold what their operator makes, or what it picks of the values or from outside, after the iteration that stored it.
#[test]
fn bins_keep_arrays_that_their_operator_makes() {
    let option = "(#none | #some []f64)";
    let operators = [
        ("plus(x, y)", ""),
        ("inject(1, made)", "let made: []f64 = replicate([3i64], 4.0f64)"),
        ("inject(1, both)", "let both: []f64 = map n [a] (b: f64) { let c: f64 = add.f64(b, 1.0f64) in c }"),
        ("inject(1, a)", ""),
        ("inject(1, outside)", ""),
        ("y", "let unused: i64 = size(a, 0)"),
    ];
    for (result, before) in operators {
        let text = format!(
            "fun f(a: []f64, ix: []i64): []f64 {{
                let n: i64 = size(a, 0)
                let m: i64 = size(ix, 0)
                let outside: []f64 = map n [a] (o: f64) {{ let o_2: f64 = mul.f64(o, 5.0f64) in o_2 }}
                let none: {option} = inject(0): {option}
                let bins: []{option} = replicate([2i64], none)
                let values: []{option} = map m [ix] (j: i64) {{
                    let f: f64 = convert.i64.f64(j)
                    let row: []f64 = replicate([n], f)
                    let e: {option} = inject(1, row): {option}
                    in e
                }}
                let filled: []{option} = hist m [none] [bins] ix [values] (x: {option}, y: {option}) {{
                    {before}
                    let z: {option} = {result}
                    in z
                }}
                let others: []f64 = replicate([64i64], 7.0f64)
                let unused_2: i64 = size(others, 0)
                let outside_2: []f64 = update(outside, [0i64], 8.0f64)
                let rs: []f64 = map 2i64 [filled] (bin: {option}) {{
                    let total: f64 = match bin
                        case () {{ in 0.0f64 }}
                        case (kept: []f64) {{
                            let sum: f64 = reduce n [0.0f64] [kept] (p: f64, q: f64) {{ let s: f64 = add.f64(p, q) in s }}
                            in sum
                        }}
                    in total
                }}
                let last: f64 = outside_2[0i64]
                let all: []f64 = map 2i64 [rs] (t: f64) {{ let u: f64 = add.f64(t, last) in u }}
                in all
            }}",
            result = if result.starts_with("inject") { format!("{result}: {option}") } else { result.into() },
        );
        let args = vec![Value::f64s(&[1.0, 2.0, 3.0]), Value::i64s(&[0, 1, 5, 1, 0, 0])];
        let ways = [Way::VmPlain, Way::VmDefault, Way::Llvm(Level::O1, 4, 1), Way::Llvm(Level::O1, 8, 2)];
        assert_bits(result, &text, args, &ways);
    }
}

/// What an iteration makes in its row of a collected array, and keeps by pointer as well (in a sum, or as the next state), stays there: the array is
/// not written over as long as the other is needed.
#[test]
fn rows_that_something_points_to_are_not_written_over() {
    let row = "let row: []f64 = scan 2i64 [0.0f64] [p] (x: f64, y: f64) {
                   let t: f64 = add.f64(x, y)
                   let u: f64 = mul.f64(x, y)
                   let v: f64 = add.f64(t, u)
                   in v
               }";
    let half_more = "let more: [][]f64, trips: i64 = loop (s: [][]f64 = rows, k: i64 = 0i64) while {
                         let again: bool = lt.i64(k, 2i64)
                         in again
                     } {
                         let next: [][]f64 = map n [s] (r: []f64) {
                             let r_next: []f64 = map 2i64 [r] (e: f64) { let e_next: f64 = add.f64(e, 0.5f64) in e_next }
                             in r_next
                         }
                         let k_next: i64 = add.i64(k, 1i64)
                         in next, k_next
                     }";
    let programs = [
        // In a sum.
        format!(
            "fun f(p: []f64, n: i64): [][]f64, []f64 {{
                let rows: [][]f64, kept: [](#some []f64) = map n [] () {{
                    {row}
                    let box: (#some []f64) = inject(0, row): (#some []f64)
                    in row, box
                }}
                {half_more}
                let lasts: []f64 = map n [kept] (b: (#some []f64)) {{
                    let last: f64 = match b case (a: []f64) {{ let a_last: f64 = a[1i64] in a_last }}
                    in last
                }}
                in more, lasts
            }}"
        ),
        // As the next state.
        format!(
            "fun f(p: []f64, n: i64): [][]f64, []f64 {{
                let end: []f64, rows: [][]f64 = loop (state: []f64 = p) for i: i64 < n collect 1 {{
                    {row}
                    let longer: bool = lt.i64(9i64, i)
                    let here: []f64 = if longer {{ in state }} else {{ in row }}
                    in here, row
                }}
                {half_more}
                in more, end
            }}"
        ),
    ];
    for (k, text) in programs.iter().enumerate() {
        let ways = [Way::VmPlain, Way::VmDefault, Way::Llvm(Level::O1, 4, 1), Way::Llvm(Level::O1, 8, 2)];
        for n in [1, 2, 7] {
            let args = vec![Value::f64s(&[0.25, -0.5]), Value::i64(n)];
            assert_bits(&format!("{k}, {n}"), text, args, &ways);
        }
    }
}

/// Rows and columns of small matrices begin at the same places; what lanes copy to have side by side must hold both.
#[test]
fn rows_and_columns_that_begin_together() {
    let sum = |name: &str, of: &str| {
        format!(
            "let {name}: f64 = reduce_comm 2i64 [0.0f64] [{of}] ({name}_x: f64, {name}_y: f64) {{
                let {name}_z: f64 = add.f64({name}_x, {name}_y)
                in {name}_z
            }}"
        )
    };
    let text = format!(
        "fun f(given: [][][]f64): []f64 {{
            let n: i64 = size(given, 0)
            let made: [][][]f64 = map n [given] (g: [][]f64) {{
                let h: [][]f64 = map 2i64 [g] (g_row: []f64) {{
                    let h_row: []f64 = map 2i64 [g_row] (g_x: f64) {{
                        let h_x: f64 = mul.f64(g_x, 2.0f64)
                        in h_x
                    }}
                    in h_row
                }}
                in h
            }}
            let a: [][][]f64 = update(made, [0i64, 1i64, 0i64], 0.5f64)
            let rs: []f64 = map n [a] (m: [][]f64) {{
                let t: [][]f64 = rearrange([1, 0], m)
                let sums: []f64 = map 2i64 [m, t] (row: []f64, column: []f64) {{
                    {}
                    {}
                    let p: f64 = mul.f64(of_row, 3.0f64)
                    let q: f64 = add.f64(p, of_column)
                    in q
                }}
                {}
                in both
            }}
            in rs
        }}",
        sum("of_row", "row"),
        sum("of_column", "column"),
        sum("both", "sums")
    );
    let ways = [Way::Vm(4), Way::VmDefault, Way::Llvm(Level::O1, 4, 1), Way::Llvm(Level::O1, 8, 2)];
    for n in [1, 2, 7, 33] {
        let data: Vec<f64> = (0..4 * n).map(|k| f64::from(k % 13) + 1.0).collect();
        let a = Array::new(vec![n as usize, 2, 2], Buffer::F64(data));
        assert_bits(&format!("{n}"), &text, vec![Value::Array(a)], &ways);
    }
}
