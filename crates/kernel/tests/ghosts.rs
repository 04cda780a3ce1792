//! Every run is a test of ownership: no variable is read after it was written over, whatever its values are.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use crate::common::{alarm_in, compiled, parse};
use pullback_base::RuntimeErrorKind;
use pullback_base::index::{Index, IndexVec};
use pullback_core::Value;
use pullback_kernel::run::{Memory, Options, Word, run_with_ghosts};
use pullback_kernel::verify::values::look;
use pullback_kernel::{
    Block, Function, FunctionId, Ghost, Ghosts, Ins, Module, Operand, Order, Reg, RegInfo, Ty,
    lower_with_ghosts, lower_with_parts, print,
};
use pullback_testkit::draws::draws;
use pullback_testkit::kernels::{of_repository, of_suite, runs_of_seed};
use pullback_testkit::native::Run;
use pullback_testkit::on_all_processors;

// --- events change no code ---

/// The module without the instructions that say something, and without their registers.
fn without_events(module: &Module, ghosts: &Ghosts) -> Module {
    let mut module = module.clone();
    for id in module.functions.ids().collect::<Vec<FunctionId>>() {
        let f = &mut module.functions[id];
        let is_event = |r: Reg| ghosts.of(id, r).is_some();
        let mut numbers: IndexVec<Reg, Reg> = IndexVec::new();
        let mut regs = IndexVec::new();
        for (r, info) in f.regs.iter_enumerated() {
            numbers.push(Reg::new(regs.len()));
            if !is_event(r) {
                regs.push(info.clone());
            }
        }
        f.regs = regs;
        for size in f.regs.iter_mut().filter_map(|info| info.facts.array.as_mut()).flat_map(|a| &mut a.sizes)
        {
            if let Operand::Reg(r) = size {
                *r = numbers[*r];
            }
        }
        strip(&mut f.body, &is_event, &numbers);
        f.params.iter_mut().chain(&mut f.results).for_each(|r| *r = numbers[*r]);
    }
    module
}

fn strip(block: &mut Block, is_event: &dyn Fn(Reg) -> bool, numbers: &IndexVec<Reg, Reg>) {
    block.retain(|ins| !ins.sets().iter().any(|r| is_event(*r)));
    for ins in block {
        ins.sets_mut().iter_mut().for_each(|r| *r = numbers[*r]);
        ins.reads_mut(&mut |a| {
            if let Operand::Reg(r) = a {
                *r = numbers[*r];
            }
        });
        if let Ins::For { order: Order::Any(folds), .. } = ins {
            for fold in folds {
                for r in fold.state.iter_mut().chain(&mut fold.left).chain(&mut fold.right) {
                    *r = numbers[*r];
                }
                let inside = &mut fold.combine;
                inside.retain(|ins| !ins.sets().iter().any(|r| is_event(*r)));
                inside.iter_mut().flat_map(|ins| ins.sets_mut()).for_each(|r| *r = numbers[*r]);
            }
        }
        ins.blocks_mut().into_iter().for_each(|inside| strip(inside, is_event, numbers));
    }
}

/// How many events there are in a program of which the code is the same without them; `None`: it is not native.
fn events(what: &str, program: &pullback_core::Program, fun: pullback_core::FunId) -> Option<usize> {
    let (plain, id) = lower_with_parts(program, fun, 64).ok()?;
    let (module, same, ghosts) = lower_with_ghosts(program, fun, 64).expect("native");
    let stripped = without_events(&module, &ghosts);
    if (&stripped, same) != (&plain, id) {
        let (found, expected) = (print(&stripped), print(&plain));
        let line = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        panic!("{what}: events change the code: {line:?}");
    }
    Some(ghosts.names.len())
}

#[test]
fn events_change_no_code() {
    let of_item = |item: &pullback_testkit::kernels::Item| events(&item.what, &item.program, item.fun);
    let known: usize = on_all_processors(of_repository(), of_item).into_iter().flatten().sum();
    let mut seeds = draws("events", (10, 40), 3);
    let of_run = |run: &Run| events(&run.what, &run.program, run.fun);
    let of_seed = |seed| runs_of_seed(seed).iter().filter_map(of_run).sum::<usize>();
    let random: usize = on_all_processors(&mut seeds, of_seed).into_iter().sum();
    println!("{known} variables of the repository and {random} of random programs are bound");
    assert!(known > 10_000 && random > 1_000, "{known}, {random}");
}

// --- no alarm ---

/// How many runs there were of a function with all its arguments, and their alarms; values are not looked at.
fn alarms(run: &Run) -> (usize, Vec<String>) {
    let (mut runs, mut alarms) = (0, Vec::new());
    // Reductions in short parts, and loops in any order from their end.
    for (part, backwards) in [(64, false), (2, true)] {
        let Ok((module, id, ghosts)) = lower_with_ghosts(&run.program, run.fun, part) else { continue };
        for args in &run.args {
            let code = (&module, id, &ghosts);
            runs += 1;
            if let Some(text) = alarm_in((&run.program, run.fun), code, args, (3_000_000, backwards)) {
                alarms.push(format!("{}: {text}", run.what));
            }
        }
    }
    (runs, alarms)
}

fn no_alarm(all: Vec<(usize, Vec<String>)>, least: usize) {
    let runs: usize = all.iter().map(|(runs, _)| runs).sum();
    let alarms: Vec<String> = all.into_iter().flat_map(|(_, alarms)| alarms).collect();
    println!("{runs} runs, {} alarms", alarms.len());
    assert!(alarms.is_empty(), "{} alarms:\n{}", alarms.len(), alarms[..alarms.len().min(12)].join("\n"));
    assert!(runs >= least, "{runs} runs");
}

#[test]
fn no_variable_of_random_programs_is_written_over() {
    let mut seeds = draws("written over", (20, 400), 4);
    let of_seed = |seed| runs_of_seed(seed).iter().map(alarms).collect::<Vec<_>>();
    let all = on_all_processors(&mut seeds, of_seed);
    no_alarm(all.into_iter().flatten().collect(), 5 * seeds.drawn() as usize);
}

#[test]
fn no_variable_of_the_suite_is_written_over() {
    no_alarm(on_all_processors(of_suite(), alarms), 1_000);
}

fn run_of(
    what: &str,
    (program, fun): (pullback_core::Program, pullback_core::FunId),
    args: Vec<Value>,
) -> Run {
    Run { what: what.to_string(), program, fun, args: vec![args], empties: false }
}

fn no_alarm_of(program: (pullback_core::Program, pullback_core::FunId), args: Vec<Value>) {
    let (module, _, ghosts) = lower_with_ghosts(&program.0, program.1, 64).expect("native");
    no_alarm(vec![alarms(&run_of("the program", program, args))], 2);
    let found = look(&module, &ghosts).alarms;
    assert!(found.is_empty(), "without a run: {}", found[0]);
}

// One program for each condition that random ones rarely meet.

/// Two states that change places: each is read before it is written over.
#[test]
fn states_that_change_places_are_read_first() {
    let program = compiled(
        "entry f [n] (a: [n]f64) (b: [n]f64) (k: i64) : ([n]f64, [n]f64) =
           loop (x, y) = (copy a, copy b) for i < k do (y with [0] = x[0], x with [0] = 1)",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0, 3.0]), Value::f64s(&[4.0, 5.0, 6.0]), Value::i64(3)]);
}

/// States that others were one and two iterations ago need three places.
#[test]
fn states_of_before_are_not_written_over() {
    let program = compiled(
        "def new [n] (a: [n]f64) (b: [n]f64) : [n]f64 = map (\\i -> a[(i + 1) % n] - b[i / 2]) (iota n)
         entry f [n] (steps: i64) (u: [n]f64) (v: [n]f64) (w: [n]f64) : ([n]f64, [n]f64, [n]f64) =
           loop (u, v, w) for i < steps do (new u w, u, v)",
    );
    let state = |x: f64| Value::f64s(&[x, x + 1.0, x + 2.0]);
    no_alarm_of(program, vec![Value::i64(4), state(1.0), state(5.0), state(9.0)]);
}

#[test]
fn what_other_parallel_bodies_read_is_not_written_over() {
    let program = parse(
        "fun f(a: []f64): []f64, []f64, []f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let p: []f64, q: []f64, r: []f64 = par {
                let us: []f64 = update(ys, [0i64], 7.0f64)
                in us
            } {
                let vs: []f64 = map n [ys] (s: f64) { let v: f64 = neg.f64(s) in v }
                in vs
            } {
                let ws: []f64 = update(ys, [1i64], 9.0f64)
                in ws
            }
            in p, q, r
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0])]);
}

#[test]
fn what_a_condition_reads_is_not_written_over() {
    let program = parse(
        "fun f(a: []f64): []f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 0.0f64) in y }
            let r: []f64 = loop (s: []f64 = ys) while {
                let t: []f64 = update(s, [0i64], 5.0f64)
                let x0: f64 = t[0i64]
                let x1: f64 = t[1i64]
                let sum: f64 = add.f64(x0, x1)
                let go: bool = lt.f64(sum, 20.0f64)
                in go
            } {
                let next: []f64 = map n [s] (u: f64) { let v: f64 = mul.f64(u, 2.0f64) in v }
                in next
            }
            in r
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 3.0])]);
}

#[test]
fn elements_that_are_collected_are_not_written_over() {
    let program = parse(
        "fun f(xs: [][]f64): []f64, [][]f64 {
            let n: i64 = size(xs, 0)
            let zeros: []f64 = replicate([2i64], 0.0f64)
            let all: []f64, ys: [][]f64 = map_reduce n [zeros] [xs] (r: []f64) {
                let q: []f64 = map 2i64 [r] (x: f64) { let y: f64 = mul.f64(x, 2.0f64) in y }
                in q, q
            } with (a: []f64, b: []f64) {
                let c: []f64 = map 2i64 [b] (u: f64) { let v: f64 = neg.f64(u) in v }
                let d: []f64 = map 2i64 [a, c] (s: f64, t: f64) { let w: f64 = sub.f64(s, t) in w }
                in d
            }
            in all, ys
        }",
    );
    no_alarm_of(program, vec![Value::f64_array(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
}

/// The first element becomes the third, then the third what the first was.
#[test]
fn a_part_of_an_array_that_is_written_to_it_is_read_first() {
    let program = parse(
        "fun f(a: []f64): []f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let part: []f64 = slice(ys, 2i64, 3i64, -1i64)
            let zs: []f64 = update_slice(ys, 0i64, 3i64, 1i64, part)
            in zs
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0, 3.0, 4.0])]);
}

#[test]
fn what_a_state_began_with_is_not_written_over() {
    for rest in [
        "let t: ([]f64,) = tuple(a)
         let last: ([]f64,) = loop (s: ([]f64,) = t) for i: i64 < n { in s }
         let b: []f64 = update(a, [0i64], 100.0f64)
         let c: []f64 = proj(last, 0)",
        "let c: []f64 = loop (s: []f64 = a) for i: i64 < n { let u: []f64 = update(s, [i], 5.0f64) in u }
         let b: []f64 = reverse(a)",
    ] {
        let program = parse(&format!(
            "fun f(n: i64, xs: []f64): []f64, []f64 {{
                let a: []f64 = map n [xs] (x: f64) {{ let y: f64 = mul.f64(x, 2.0f64) in y }}
                {rest}
                in b, c
            }}"
        ));
        no_alarm_of(program, vec![Value::i64(3), Value::f64s(&[1.0, 5.0, 7.0])]);
    }
}

/// The next state of `t` lies in the memory of the state `s`.
#[test]
fn a_state_that_lies_in_another_is_put_aside() {
    let program = parse(
        "fun f(a: []f64, b: []f64): []f64, []f64 {
            let n: i64 = size(a, 0)
            let k: []f64, l: []f64 = loop (s: []f64 = a, t: []f64 = b) for i: i64 < 3i64 {
                let u: []f64 = map n [t] (x: f64) { let y: f64 = add.f64(x, 100.0f64) in y }
                let v: []f64 = map n [s] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
                in u, v
            }
            in k, l
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0]), Value::f64s(&[10.0, 20.0])]);
}

#[test]
fn bins_that_change_places_are_read_first() {
    let program = parse(
        "fun f(xs: [][]f64): [][]f64, [][]f64 {
            let n: i64 = size(xs, 0)
            let zeros: []f64 = replicate([2i64], 0.0f64)
            let ones: []f64 = replicate([2i64], 1.0f64)
            let p0: [][]f64 = replicate([1i64], zeros)
            let q0: [][]f64 = replicate([1i64], ones)
            let is: []i64 = replicate([n], 0i64)
            let p1: [][]f64, q1: [][]f64 = hist n [zeros, zeros] [p0, q0] is [xs, xs]
                (p: []f64, q: []f64, v: []f64, w: []f64) { in q, p }
            in p1, q1
        }",
    );
    no_alarm_of(program, vec![Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
}

/// A tuple that is a state holds what an array state was, which is written over in the next iteration.
#[test]
fn what_a_state_holds_of_another_is_kept() {
    let program = parse(
        "fun f(a: []f64): []f64, f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let first: (f64, []f64) = tuple(0.5f64, a)
            let e: []f64, t: (f64, []f64) = loop (b: []f64 = ys, s: (f64, []f64) = first) for k: i64 < 3i64 {
                let kf: f64 = convert.i64.f64(k)
                let c: []f64 = update(b, [0i64], kf)
                let o: []f64 = proj(s, 1)
                let x: f64 = o[0i64]
                let next: (f64, []f64) = tuple(x, c)
                in c, next
            }
            let z: f64 = proj(t, 0)
            in e, z
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0])]);
}

/// What is collected holds, in a tuple or alone, a state that two places hold in turn.
#[test]
fn what_is_collected_of_states_in_turn_is_kept() {
    let alone = ("let h: []f64 = z", "[]f64", "let r: []f64 = w");
    let inside = ("let h: (f64, []f64) = tuple(0.5f64, z)", "(f64, []f64)", "let r: []f64 = proj(w, 1)");
    // In two places in turn, and in one that is written over element by element.
    let (turns, over) = ("let first: f64 = u[0i64]", "let first: f64 = neg.f64(p)");
    for (first, (hold, ty, item)) in [(turns, alone), (turns, inside), (over, alone), (over, inside)] {
        let program = parse(&format!(
            "fun f(a: []f64): []f64, []f64 {{
                let n: i64 = size(a, 0)
                let s: []f64, t: [](#t {ty}) = loop (u: []f64 = a) for k: i64 < 4i64 collect 1 {{
                    let z: []f64 = map n [u] (p: f64) {{
                        {first}
                        let q: f64 = add.f64(p, first)
                        in q
                    }}
                    {hold}
                    let e: (#t {ty}) = inject(0, h): (#t {ty})
                    in z, e
                }}
                let e0: (#t {ty}) = t[0i64]
                let g: []f64 = match e0 case (w: {ty}) {{ {item} in r }}
                in s, g
            }}"
        ));
        no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0])]);
    }
}

/// Nobody writes over a part while the whole is needed, nor over the whole while a part is.
#[test]
fn parts_and_wholes_are_not_written_over() {
    for (rest, results) in [
        ("let d: []f64 = update(ys, [0i64], 9.0f64)", "c, d"),
        ("let d: []f64 = update(c, [3i64], 9.0f64)", "d, zs"),
        ("let d: []f64 = map n [ys] (p: f64) { let q: f64 = neg.f64(p) in q }", "c, d"),
        ("let d: []f64 = concat(zs, c, zs)", "d, ys"),
    ] {
        let program = parse(&format!(
            "fun f(a: []f64): []f64, []f64 {{
                let n: i64 = size(a, 0)
                let ys: []f64 = map n [a] (x: f64) {{ let y: f64 = add.f64(x, 1.0f64) in y }}
                let zs: []f64 = map n [a] (v: f64) {{ let z: f64 = mul.f64(v, 2.0f64) in z }}
                let c: []f64 = concat(ys, zs)
                {rest}
                in {results}
            }}"
        ));
        no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0])]);
    }
}

/// What a statement reads, it does not write over: here the elements in reverse.
#[test]
fn what_a_statement_reads_is_not_written_over() {
    let program = parse(
        "fun f(a: []f64): []f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let back: []f64 = reverse(ys)
            let is: []i64 = iota(n)
            let zs: []f64 = scatter(n, ys, is, back)
            in zs
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0, 3.0])]);
}

/// What all iterations read, none writes over.
#[test]
fn what_other_iterations_read_is_not_written_over() {
    let program = parse(
        "fun f(a: []f64): [][]f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let m: [][]f64 = map n [a] (v: f64) { let zs: []f64 = update(ys, [0i64], v) in zs }
            in m
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0, 3.0])]);
}

/// A function does not know whether its caller needs the argument.
#[test]
fn arguments_are_not_written_over() {
    let program = parse(
        "fun f(a: []f64): []f64, []f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let zs: []f64 = call g(ys)
            in ys, zs
        }
        fun g(b: []f64): []f64 { let c: []f64 = update(b, [0i64], 7.0f64) in c }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0])]);
}

/// An arm does not write over what is needed after the branch.
#[test]
fn what_is_needed_after_a_branch_is_not_written_over() {
    let program = parse(
        "fun f(a: []f64, i: i64): []f64, []f64 {
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let some: bool = le.i64(0i64, i)
            let zs: []f64 = if some { let u: []f64 = update(ys, [i], 7.0f64) in u } else { in a }
            in ys, zs
        }",
    );
    no_alarm_of(program, vec![Value::f64s(&[1.0, 2.0]), Value::i64(1)]);
}

/// Rows of a state that two places hold in turn, which are collected.
#[test]
fn rows_of_states_in_turn_that_are_collected_are_kept() {
    let program = parse(
        "fun f(a: [][]f64): [][]f64, []f64 {
            let m: i64 = size(a, 0)
            let n: i64 = size(a, 1)
            let s: [][]f64, t: [][](#t []f64) = loop (x: [][]f64 = a) for k: i64 < 3i64 collect 1 {
                let zs: [][]f64, es: [](#t []f64) = map m [x] (u: []f64) {
                    let z: []f64 = map n [u] (p: f64) { let q: f64 = add.f64(p, 1.0f64) in q }
                    let e: (#t []f64) = inject(0, z): (#t []f64)
                    in z, e
                }
                in zs, es
            }
            let e0: [](#t []f64) = t[0i64]
            let e1: (#t []f64) = e0[1i64]
            let r: []f64 = match e1 case (w: []f64) { in w }
            in s, r
        }",
    );
    no_alarm_of(program, vec![Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
}

// --- what events mean ---

/// What is done with memory of two elements that the pointer `p` points to.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An element is written.
    Write(i64),
    /// An element is loaded through `p`, and used.
    Load(i64),
    /// An element is loaded through `p`.
    Dead(i64),
    /// A variable is bound to what `p` shows.
    Bind(char),
    /// `p` is read for a variable.
    Read(char),
    /// All elements are used.
    Check,
    /// The memory is nobody's.
    Own,
    /// `p` moves to the other element and back.
    Moved,
    /// `p` is stored, and loaded.
    Stored,
    /// The memory is given back, and asked for again.
    Anew,
    /// `p` points to other memory of two elements, which is asked for.
    Other,
    /// `p` and a second pointer change places.
    Swap,
    /// Two times, one after the other.
    Twice(Vec<Step>),
    /// One or the other, as the argument is.
    Either(Vec<Step>, Vec<Step>),
}

/// A function of some steps, and one argument, while it is written.
struct Steps {
    regs: IndexVec<Reg, RegInfo>,
    ghosts: Ghosts,
    bound: std::collections::BTreeMap<char, Reg>,
    /// A mark, `p`, the second pointer and one to exchange them by, and a place for one.
    pointers: [Reg; 5],
    /// What was loaded, and what was used of it.
    values: [Reg; 2],
    argument: Reg,
}

const ONE: Operand = Operand::Const(pullback_prim::ScalarValue::I64(1));
const TWO: Operand = Operand::Const(pullback_prim::ScalarValue::I64(2));

impl Steps {
    fn event(&mut self, ghost: Ghost, body: &mut Block) -> Reg {
        let to = self.regs.push(RegInfo::new(Ty::Pointer, "r"));
        self.ghosts.add(FunctionId::new(0), to, ghost);
        body.push(Ins::Set { to, value: self.pointers[1].into() });
        to
    }
    fn all(&mut self, steps: &[Step]) -> Block {
        let mut body = Block::new();
        steps.iter().for_each(|step| self.step(step, &mut body));
        body
    }
    fn memory(&self) -> [Ins; 2] {
        let [mark, p, ..] = self.pointers;
        [Ins::Mark { to: mark }, Ins::Alloc { to: p, count: TWO, ty: Ty::I64 }]
    }
    fn fill(&self) -> Ins {
        Ins::Fill { pointer: self.pointers[1].into(), count: TWO, value: ONE, ty: Ty::I64 }
    }
    fn step(&mut self, step: &Step, body: &mut Block) {
        let [mark, p, q, other, place] = self.pointers;
        let [x, used] = self.values;
        match step {
            Step::Write(k) => {
                let index = Operand::i64(*k);
                body.push(Ins::Store { pointer: p.into(), index, value: TWO, ty: Ty::I64 });
            }
            Step::Load(k) => {
                body.push(Ins::Load { to: x, pointer: p.into(), index: Operand::i64(*k) });
                body.push(Ins::Set { to: used, value: x.into() });
            }
            // What nobody uses may be anything.
            Step::Dead(k) => body.push(Ins::Load { to: x, pointer: p.into(), index: Operand::i64(*k) }),
            Step::Bind(v) => {
                let name = *v as u32 - 'a' as u32;
                let to = self.event(Ghost::Bind { name, shape: Some(vec![(TWO, ONE)]) }, body);
                self.bound.insert(*v, to);
            }
            Step::Read(v) => {
                if let Some(of) = self.bound.get(v).copied() {
                    self.event(Ghost::Read { of }, body);
                }
            }
            Step::Check => _ = self.event(Ghost::Check { shape: vec![(TWO, ONE)] }, body),
            Step::Own => _ = self.event(Ghost::Own, body),
            Step::Moved => body.extend([1, -1].map(|k| {
                let index = Operand::i64(k);
                Ins::Offset { to: p, pointer: p.into(), index, ty: Ty::I64, room: None }
            })),
            Step::Stored => {
                let (pointer, index) = (place.into(), Operand::i64(0));
                body.push(Ins::Store { pointer, index, value: p.into(), ty: Ty::Pointer });
                body.push(Ins::Load { to: p, pointer, index });
            }
            Step::Anew => {
                body.push(Ins::Release { mark: mark.into() });
                body.extend(self.memory());
            }
            Step::Other => {
                body.push(Ins::Alloc { to: p, count: TWO, ty: Ty::I64 });
                body.push(self.fill());
            }
            Step::Swap => {
                let set = |to: Reg, from: Reg| Ins::Set { to, value: from.into() };
                body.extend([set(other, p), set(p, q), set(q, other)]);
            }
            Step::Twice(steps) => {
                let i = self.regs.push(RegInfo::new(Ty::I64, "i"));
                let inside = self.all(steps);
                let (from, order) = (Operand::i64(0), Order::Given);
                body.push(Ins::For { i, from, to: TWO, body: inside, order });
            }
            Step::Either(then, otherwise) => {
                let (then, otherwise) = (self.all(then), self.all(otherwise));
                body.push(Ins::If { condition: self.argument.into(), then, otherwise });
            }
        }
    }
}

/// The code of these steps.
pub(crate) fn code_of(steps: &[Step]) -> (Module, Ghosts) {
    let mut regs: IndexVec<Reg, RegInfo> = IndexVec::new();
    let mut reg = |ty| regs.push(RegInfo::new(ty, "r"));
    let pointers = [(); 5].map(|()| reg(Ty::Pointer));
    let values = [(); 2].map(|()| reg(Ty::I64));
    let argument = reg(Ty::BOOL);
    let (ghosts, bound) = (Ghosts::default(), std::collections::BTreeMap::new());
    let mut code = Steps { regs, ghosts, bound, pointers, values, argument };
    let [_, p, q, _, place] = pointers;
    let mut body = vec![Ins::Alloc { to: place, count: ONE, ty: Ty::Pointer }];
    body.push(Ins::Alloc { to: p, count: TWO, ty: Ty::I64 });
    body.extend([code.fill(), Ins::Set { to: q, value: p.into() }]);
    body.extend(code.memory());
    body.push(code.fill());
    body.extend(code.all(steps));
    let Steps { regs, mut ghosts, .. } = code;
    ghosts.names = vec!["`a`".to_string(), "`b`".to_string()];
    let mut module = Module::default();
    module.functions.push(Function {
        name: "f".to_string(),
        params: vec![argument],
        results: Vec::new(),
        regs,
        body,
    });
    (module, ghosts)
}

/// The alarm of a run of these steps.
pub(crate) fn alarm_of(code: (&Module, &Ghosts), argument: bool) -> Option<String> {
    let options = Options { steps: 1_000, backwards: false };
    let args = [Word::Scalar(pullback_prim::ScalarValue::Bool(argument))];
    let e = run_with_ghosts(code, FunctionId::new(0), &args, &mut Memory::new(100), options).err()?;
    assert_eq!(e.kind, RuntimeErrorKind::Internal, "{e}");
    Some(e.message)
}

#[test]
fn what_was_written_since_a_variable_was_bound_is_not_read_for_it() {
    use Step::*;
    let cases: [(&[Step], Option<char>); 19] = [
        (&[Bind('a'), Read('a'), Load(0)], None),
        (&[Bind('a'), Write(0), Read('a'), Load(0)], Some('a')),
        (&[Bind('a'), Read('a'), Write(0), Load(0)], Some('a')),
        // The other element, and no load.
        (&[Bind('a'), Write(1), Read('a'), Load(0)], None),
        (&[Bind('a'), Write(0), Read('a')], None),
        (&[Bind('a'), Write(0), Read('a'), Dead(0), Load(1)], None),
        // Used as a whole: before, after, and not again.
        (&[Bind('a'), Write(1), Read('a'), Check], Some('a')),
        (&[Bind('a'), Read('a'), Check, Write(1), Load(1)], Some('a')),
        (&[Bind('a'), Read('a'), Check, Write(1), Load(0)], None),
        // Another name is the same value; what was made is another one.
        (&[Bind('a'), Read('a'), Bind('b'), Write(0), Read('b'), Load(0)], Some('b')),
        (&[Bind('a'), Read('a'), Write(0), Bind('b'), Read('b'), Load(0)], Some('b')),
        (&[Bind('a'), Read('a'), Write(0), Own, Bind('b'), Read('b'), Load(0)], None),
        (&[Bind('a'), Read('a'), Write(0), Own, Bind('b'), Read('a'), Load(0)], Some('a')),
        (&[Bind('a'), Read('a'), Write(0), Own, Load(0)], None),
        // Pointers that are moved and stored know for whom they are read.
        (&[Bind('a'), Read('a'), Moved, Write(0), Load(0)], Some('a')),
        (&[Bind('a'), Read('a'), Stored, Write(0), Load(0)], Some('a')),
        (&[Bind('a'), Read('a'), Stored, Own, Write(0), Load(0)], None),
        // Memory that is made anew is nobody's.
        (&[Bind('a'), Read('a'), Anew, Write(0), Load(0)], None),
        (&[Anew, Write(0), Bind('a'), Read('a'), Load(0), Write(0), Load(0)], Some('a')),
    ];
    for (steps, expected) in cases {
        let (module, ghosts) = code_of(steps);
        let found = alarm_of((&module, &ghosts), true);
        match (expected, &found) {
            (None, None) => {}
            (Some(v), Some(text)) => {
                let names = text.contains(&format!("of `{v}`")) && text.ends_with("of f");
                assert!(names && text.contains("was written over"), "{steps:?}: {text}");
            }
            _ => panic!("{steps:?}: {found:?}"),
        }
    }
}
