//! Random programs in lanes, cut into pieces: the reference executor of kernel IR gives the same bits for both.

use pullback_core::Type;
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Ins, Module, Operand, Order, lower, print, walk};
use pullback_llvm::pieces::{Limits, cut};
use pullback_prim::ScalarValue;
use pullback_testkit::draws::draws;
use pullback_testkit::kernel_text::round_trip;
use pullback_testkit::native::{Programs, Run, same};

fn results(
    module: &Module,
    id: FunctionId,
    run_of: &Run,
    k: usize,
    steps: u64,
) -> Result<Vec<pullback_core::Value>, String> {
    let f = &run_of.program.funs[run_of.fun];
    let mut memory = Memory::new(1 << 22);
    let mut words = Vec::new();
    for (p, value) in f.params.iter().zip(&run_of.args[k]) {
        let ty: &Type = &run_of.program.vars[*p].ty;
        to_words(&mut memory, value, ty, &mut words).map_err(|e| e.to_string())?;
    }
    let options = run::Options { steps, backwards: false };
    let words = run(module, id, &words, &mut memory, options).map_err(|e| e.to_string())?;
    let mut words = words.into_iter();
    f.results.iter().map(|t| from_words(&memory, t, &mut words).map_err(|e| e.to_string())).collect()
}

/// Loops in any order have no frames: iterations would write the same memory.
fn frames_are_of_one_iteration(module: &Module) {
    for f in module.functions.iter() {
        let is_frame = |a: &Operand| a.as_reg().is_some_and(|r| f.regs[r].hint == "frame");
        walk(&f.body, &mut |ins| {
            let Ins::For { order: Order::Any(_), body, .. } = ins else { return };
            walk(body, &mut |ins| {
                let takes = matches!(ins, Ins::Call { args, .. } if args.iter().any(is_frame));
                assert!(!takes, "{}: a loop in any order has a frame", f.name);
            });
        });
    }
}

/// The most steps of a whole program.
const STEPS: u64 = 4_000_000;

#[test]
fn pieces_do_what_the_whole_does() {
    let mut seeds = draws("pieces", (10, 60), 4);
    let programs = Programs::usual();
    let (mut pieces, mut merged, mut compared) = (0, 0, 0);
    for seed in seeds.by_ref() {
        for run_of in programs.runs_of_seed(seed) {
            let Ok((mut module, id)) = lower(&run_of.program, run_of.fun) else { continue };
            let lanes = [0, 4, 8][(seed % 3) as usize];
            if lanes > 0 {
                let model = Model {
                    block: 0.0,
                    lane: 0.0,
                    apart: 0.01,
                    registers: 8,
                    tiles: [1.0; 4],
                    near: Some(0),
                };
                let (most, grain, relaxed) = (2 * lanes, Some(2.0), false);
                let sizes = Vec::new();
                schedule(
                    &mut module,
                    &schedule::Options { lanes, most, model, grain, relaxed, sizes, without: Vec::new() },
                );
            }
            let limits = Limits { most: [3, 8, 40][(seed / 3 % 3) as usize], ..Limits::SMALL };
            let pieces_of = cut(&module, &limits);
            round_trip(&pieces_of.module).unwrap_or_else(|e| panic!("{seed}: {e}"));
            frames_are_of_one_iteration(&pieces_of.module);
            pieces += pieces_of.module.functions.len() - module.functions.len();
            merged += pieces_of
                .same
                .iter()
                .zip(pieces_of.module.functions.ids())
                .filter(|(same, f)| *same != f)
                .count();
            for k in 0..run_of.args.len() {
                let whole = results(&module, id, &run_of, k, STEPS);
                if whole.as_ref().is_err_and(|e| e.contains("too many steps")) {
                    continue;
                }
                // Calls are steps too, and so is what they hand to each other.
                let cut = results(&pieces_of.module, id, &run_of, k, 20 * STEPS);
                match (&whole, &cut) {
                    (Err(a), Err(b)) if a == b => {}
                    (Ok(a), Ok(b)) if a.iter().zip(b).all(|(a, b)| same(a, b)) => compared += 1,
                    _ => panic!(
                        "{seed}, arguments {k}: {whole:?} in pieces {cut:?}\n{}\n{}",
                        print(&module),
                        print(&pieces_of.module)
                    ),
                }
            }
        }
    }
    eprintln!("{compared} calls agree, {pieces} pieces, {merged} functions were there already");
    let count = seeds.drawn();
    assert!(compared > count && pieces > 3 * count as usize);
}

/// A function that is cut gives its frames back, but not if it, or what it calls, has written a pointer: by a store, a fill or a copy.
#[test]
fn written_pointers_outlive_the_function_that_is_cut() {
    let leaf = |write: &str| {
        format!(
            "memory_1: pointer = alloc 1i64 f64
            memory_1[0i64]: f64 = 2.5f64
            row_2: pointer = alloc 1i64 pointer
            {write}"
        )
    };
    let long = "a_4: f64 = mul.f64(x_3, x_3)
        b_5: f64 = mul.f64(a_4, x_3)
        c_6: f64 = mul.f64(b_5, a_4)
        d_7: f64 = mul.f64(c_6, b_5)
        e_8: f64 = mul.f64(d_7, c_6)
        g_9: f64 = add.f64(a_4, b_5)
        h_10: f64 = add.f64(g_9, c_6)
        k_11: f64 = add.f64(h_10, d_7)
        y_12 = add.f64(k_11, e_8)";
    let store = "p_0[0i64]: pointer = memory_1";
    let fill = "fill p_0[0 .. 1i64]: pointer = memory_1";
    let copy = "row_2[0i64]: pointer = memory_1\n copy p_0[0 .. 1i64]: pointer = row_2";
    for write in [store, fill, copy] {
        let leaf = leaf(write);
        for (name, begin) in [
            ("calls", "register memory_1: pointer\n register row_2: pointer\n call leaf(p_0)"),
            ("writes", leaf.as_str()),
        ] {
            let text = format!(
                "function leaf(p_0: pointer) -> () {{\n {leaf}\n }}
                function middle(p_0: pointer, x_3: f64) -> (y_12: f64) {{\n {begin}\n {long}\n }}
                function main(x_0: f64) -> (r_8: f64) {{
                    p_1: pointer = alloc 1i64 pointer
                    y_2: f64 = call middle(p_1, x_0)
                    other_3: pointer = alloc 8i64 f64
                    fill other_3[0 .. 8i64]: f64 = 7.0f64
                    q_4: pointer = p_1[0i64]
                    s_5: f64 = q_4[0i64]
                    z_6: f64 = other_3[0i64]
                    t_7: f64 = add.f64(s_5, z_6)
                    r_8 = add.f64(t_7, y_2)
                }}"
            );
            let module = pullback_kernel::read(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
            let main = module.functions.ids().last().expect("functions");
            let pieces = cut(&module, &Limits::SMALL);
            assert!(pieces.module.functions.len() > 5, "{name}: nothing is cut");
            for module in [&module, &pieces.module] {
                let (mut memory, words) = (Memory::new(1 << 16), [Word::Scalar(ScalarValue::F64(0.5))]);
                let options = run::Options { steps: STEPS, backwards: false };
                let found = run(module, main, &words, &mut memory, options);
                let found = found.unwrap_or_else(|e| panic!("{name}, {write}: {e}\n{}", print(module)));
                // 0.25 + 0.125 + 1/32 + 1/256 + 1/8192
                let expected = 2.5 + 7.0 + 0.25 + 0.125 + 0.03125 + 0.00390625 + 0.0001220703125;
                assert_eq!(
                    found,
                    [Word::Scalar(ScalarValue::F64(expected))],
                    "{name}, {write}\n{}",
                    print(module)
                );
            }
        }
    }
}
