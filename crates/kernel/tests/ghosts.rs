//! Every run is a test of ownership: no variable is read after it was written over, whatever its values are.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use crate::common::{Found, compiled, run_with_events};
use pullback_base::index::{Index, IndexVec};
use pullback_core::Value;
use pullback_kernel::{
    Block, FunctionId, Ghosts, Ins, Module, Operand, Reg, lower_with_ghosts, lower_with_parts, print,
};
use pullback_testkit::draws::draws;
use pullback_testkit::kernels::{of_repository, of_suite};
use pullback_testkit::native::{Programs, Run};
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
        if let Ins::For { order: pullback_kernel::Order::Any(folds), .. } = ins {
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
    let of_item = |item: pullback_testkit::kernels::Item| events(&item.what, &item.program, item.fun);
    let known: usize = on_all_processors(of_repository(), of_item).into_iter().flatten().sum();
    let mut seeds = draws("events", (10, 40), 10);
    let of_run = |run: &Run| events(&run.what, &run.program, run.fun);
    let of_seed = |seed| programs(seed).runs_of_seed(seed).iter().filter_map(of_run).sum::<usize>();
    let random: usize = on_all_processors(&mut seeds, of_seed).into_iter().sum();
    println!("{known} variables of the repository and {random} of random programs are bound");
    assert!(known > 10_000 && random > 1_000, "{known}, {random}");
}

// --- no alarm ---

fn programs(seed: u64) -> Programs {
    if seed.is_multiple_of(2) { Programs::usual() } else { Programs::endings() }
}

/// How many runs there were of a function with all its arguments, and their alarms.
fn alarms(run: &Run) -> (usize, Vec<String>) {
    let (mut runs, mut alarms) = (0, Vec::new());
    for part in [64, 2] {
        let Ok((module, id, ghosts)) = lower_with_ghosts(&run.program, run.fun, part) else { continue };
        for args in &run.args {
            for backwards in [false, true] {
                let code = (&module, id, &ghosts);
                let found = run_with_events((&run.program, run.fun), code, args, (3_000_000, backwards));
                runs += 1;
                if let Found::Alarm(text) = found {
                    alarms.push(format!("{}: {text}", run.what));
                }
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
    let mut seeds = draws("written over", (30, 400), 25);
    let of_seed = |seed| programs(seed).runs_of_seed(seed).iter().map(alarms).collect::<Vec<_>>();
    let all = on_all_processors(&mut seeds, of_seed);
    no_alarm(all.into_iter().flatten().collect(), 10 * seeds.drawn() as usize);
}

#[test]
fn no_variable_of_the_suite_is_written_over() {
    no_alarm(on_all_processors(of_suite(), |run| alarms(&run)), 1_000);
}

/// Two states that change places: each is read before it is written over.
#[test]
fn states_that_change_places_are_read_first() {
    let program = compiled(
        "entry f [n] (a: [n]f64) (b: [n]f64) (k: i64) : ([n]f64, [n]f64) =
           loop (x, y) = (copy a, copy b) for i < k do (y with [0] = x[0], x with [0] = 1)",
    );
    let args = vec![Value::f64s(&[1.0, 2.0, 3.0]), Value::f64s(&[4.0, 5.0, 6.0]), Value::i64(3)];
    let what = "states that change places".to_string();
    let run = Run { what, program: program.0, fun: program.1, args: vec![args], empties: false };
    no_alarm(vec![alarms(&run)], 4);
}
