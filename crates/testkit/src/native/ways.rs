//! Ways to run a program natively.

use super::{Run, Verdict, same};
use pullback_base::RuntimeError;
use pullback_core::{Type, Value};
use pullback_cpu::Level;
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::verify::verify;
use pullback_kernel::{FunctionId, Module, NotNative, lower, lower_unproved, lower_with_parts};
use pullback_llvm::{Floats, Functions, Llvm, pieces, text};
use pullback_vm::{LANES, Limits, Machine};
use std::num::NonZeroUsize;

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the vm, loops as they are, functions of the primitive table.
    VmPlain,
    /// On the vm, as many loops as possible in so many lanes.
    Vm(usize),
    /// On the vm, as programs are run.
    VmDefault,
    /// On the vm with this instruction set, in so many lanes, compared with the reference executor of kernel IR bit by bit.
    VmReference(usize, Machine),
    /// Machine code, loops as they are, functions of the primitive table, no freedom about floats.
    LlvmPlain(Level),
    /// Machine code, as many loops as possible in so many lanes, in parts that are as small as possible, on so many threads.
    Llvm(Level, usize, usize),
    /// Machine code, as programs are run.
    LlvmDefault(Level),
}

impl Way {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Way::VmPlain => "vm, plain",
            Way::Vm(_) => "vm, lanes",
            Way::VmDefault => "vm, default",
            Way::VmReference(..) => "vm, reference",
            Way::LlvmPlain(_) => "llvm, plain",
            Way::Llvm(..) => "llvm, lanes",
            Way::LlvmDefault(_) => "llvm, default",
        }
    }
    /// Whether values have the bits of the interpreter.
    pub fn is_plain(self) -> bool {
        matches!(self, Way::VmPlain | Way::LlvmPlain(_))
    }
    /// The ways of a soak run for number `k` of the programs of a seed: through both executors, as machine code (which takes most of the time)
    /// plain or in lanes in turns; `None`: not as machine code. The numbers of lanes and threads change from seed to seed.
    pub fn of_soak(seed: u64, k: usize, level: Option<Level>) -> Vec<Way> {
        let mut ways = Way::of_vm(seed);
        let turn = (seed / 12 + k as u64) % 2;
        ways.extend(level.map(|level| Way::of_llvm(seed, level)[turn as usize]));
        ways
    }
    /// One way for function number `k` of a seed, in turn; for every eighth also one as machine code.
    pub fn in_turn(seed: u64, k: usize, level: Option<Level>) -> Vec<Way> {
        let turn = seed + k as u64;
        let mut ways = vec![Way::of_vm(seed)[(turn % 3) as usize]];
        if let Some(level) = level.filter(|_| turn.is_multiple_of(8)) {
            ways.push(Way::of_llvm(seed, level)[(seed / 8 % 2) as usize]);
        }
        ways
    }
    /// Those through the vm.
    pub fn of_vm(seed: u64) -> Vec<Way> {
        let lanes = [4, 8, 64, 512][(seed % 4) as usize];
        vec![Way::VmPlain, Way::Vm(lanes), Way::VmDefault]
    }
    /// Those through LLVM.
    pub fn of_llvm(seed: u64, level: Level) -> Vec<Way> {
        let lanes = [2, 8, 16, 32][(seed / 3 % 4) as usize];
        let threads = [1, 2, 4][(seed % 3) as usize];
        vec![Way::LlvmPlain(level), Way::Llvm(level, lanes, threads)]
    }
}

enum Made {
    Vm(pullback_vm::Executable),
    Llvm(pullback_cpu::Executable),
}

/// A program made ready to run one way.
pub struct Executable<'a> {
    run: &'a Run,
    way: Way,
    made: Made,
    /// What the reference executor runs.
    module: Option<Module>,
    id: FunctionId,
    params: Vec<Type>,
}

impl<'a> Executable<'a> {
    /// Makes it. Errors: verdicts about programs that cannot be run this way.
    pub fn new(run: &'a Run, way: Way) -> Result<Executable<'a>, Verdict> {
        Executable::of(run, way, lower(&run.program, run.fun))
    }
    /// The same, with reductions that keep their order in one part however long they are, as the interpreter does them.
    pub fn in_one_part(run: &'a Run, way: Way) -> Result<Executable<'a>, Verdict> {
        Executable::of(run, way, lower_with_parts(&run.program, run.fun, 1 << 40))
    }
    fn of(
        run: &'a Run,
        way: Way,
        lowered: Result<(Module, FunctionId), Box<NotNative>>,
    ) -> Result<Executable<'a>, Verdict> {
        let (mut module, id) = match lowered {
            Ok(lowered) => lowered,
            Err(e) if e.is_internal() => return Err(Verdict::Fails(e.to_string())),
            Err(_) => return Err(Verdict::Foreign),
        };
        let f = &run.program.funs[run.fun];
        let params: Vec<Type> = f.params.iter().map(|p| run.program.vars[*p].ty.clone()).collect();
        let first: Vec<(&Type, &Value)> = params.iter().zip(&run.args[0]).collect();
        let sizes = vec![(id, pullback_abi::sizes(&first))];
        let free = Model { block: 0.0, lane: 0.0, apart: 0.01, registers: 8, tiles: [1.0; 4], near: Some(0) };
        let mut in_lanes = |lanes: usize, most: usize, model: Model, grain: Option<f64>| {
            let (relaxed, sizes) = (false, sizes.clone());
            schedule(
                &mut module,
                &schedule::Options { lanes, most, model, grain, relaxed, sizes, without: Vec::new() },
            );
        };
        match way {
            Way::VmPlain | Way::LlvmPlain(_) | Way::LlvmDefault(_) => {}
            Way::Vm(lanes) | Way::VmReference(lanes, _) => {
                in_lanes(lanes, lanes, Model { tiles: [f64::INFINITY; 4], ..free }, None)
            }
            Way::VmDefault => in_lanes(LANES, LANES, Model::interpreter(), None),
            Way::Llvm(_, lanes, _) => in_lanes(lanes, 2 * lanes, free, Some(2.0)),
        }
        // Builds without debug assertions go on where the verifier has an alarm; tests do not.
        if !module.fallbacks.is_empty() {
            let first = lower_unproved(&run.program, run.fun).map(|(made, _)| verify(&made).alarms);
            let alarm = first.iter().flatten().next().map_or(String::new(), ToString::to_string);
            return Err(Verdict::Fails(format!(
                "the verifier has an alarm: {:?}: {alarm}",
                module.fallbacks
            )));
        }
        let on_vm = |functions, machine| {
            let options = pullback_vm::Options { functions, machine, poison: true, ..Default::default() };
            Ok(Made::Vm(pullback_vm::Executable::new(&module, &options)))
        };
        // Half of the programs in lanes are cut into as many pieces as possible, as only large ones are by themselves.
        let pieces = match way {
            Way::Llvm(_, 8 | 32, _) => pieces::Limits::SMALL,
            _ => pieces::Limits::default(),
        };
        let compiled = |level, threads: usize, strict: bool| {
            if Llvm::find().is_err() {
                return Err(Verdict::Skipped);
            }
            let strict_text =
                text::Options { floats: Floats::Strict, functions: Functions::Table, ..Default::default() };
            let options = pullback_cpu::Options {
                level,
                text: if strict {
                    strict_text
                } else {
                    text::Options { pieces: pieces.clone(), ..Default::default() }
                },
                lanes: strict.then_some(0),
                sizes: sizes.clone(),
                threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
                ..Default::default()
            };
            let made = pullback_cpu::Executable::new(&module, &options);
            made.map(Made::Llvm).map_err(|e| Verdict::Fails(format!("LLVM: {e}")))
        };
        let made = match way {
            Way::VmPlain => on_vm(pullback_vm::Functions::Table, Machine::best())?,
            Way::Vm(_) | Way::VmDefault => on_vm(pullback_vm::Functions::Lanes, Machine::best())?,
            Way::VmReference(_, machine) => on_vm(pullback_vm::Functions::Table, machine)?,
            Way::LlvmPlain(level) => compiled(level, 1, true)?,
            Way::Llvm(level, _, threads) => compiled(level, threads, false)?,
            Way::LlvmDefault(level) => compiled(level, 1, false)?,
        };
        let module = matches!(way, Way::VmReference(..)).then_some(module);
        Ok(Executable { run, way, made, module, id, params })
    }

    /// The way.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Runs it twice in one session.
    ///
    /// # Errors
    /// A text if the second run gives other bits than the first one, or the first one others than the reference executor.
    pub fn twice(&self, args: &[Value]) -> Result<Result<Vec<Value>, RuntimeError>, String> {
        let types = &self.run.program.funs[self.run.fun].results;
        let typed: Vec<(&Type, &Value)> = self.params.iter().zip(args).collect();
        let [first, second] = match &self.made {
            Made::Vm(executable) => {
                let mut session = executable.session();
                [(); 2].map(|()| {
                    let out = session.call(self.id, &typed, types, Limits::default());
                    out.map(|o| o.results)
                })
            }
            Made::Llvm(executable) => {
                let mut session = executable.session();
                [(); 2].map(|()| session.call(self.id, &typed, types, None).map(|o| o.results))
            }
        };
        if !equal(&first, &second) {
            return Err(format!("not the same in the second run: {first:?}\nthen {second:?}"));
        }
        if let Some(module) = &self.module {
            let expected = self.reference(module, args);
            if !equal(&expected, &first) {
                return Err(format!("the reference executor gives {expected:?}\nfound {first:?}"));
            }
        }
        Ok(first)
    }

    /// The reference executor of kernel IR.
    fn reference(&self, module: &Module, args: &[Value]) -> Result<Vec<Value>, RuntimeError> {
        let mut memory = Memory::new(1 << 24);
        let mut words: Vec<Word> = Vec::new();
        for (ty, value) in self.params.iter().zip(args) {
            to_words(&mut memory, value, ty, &mut words)?;
        }
        let options = run::Options { steps: 400_000_000, backwards: false };
        let mut words = run(module, self.id, &words, &mut memory, options)?.into_iter();
        let types = &self.run.program.funs[self.run.fun].results;
        types.iter().map(|t| from_words(&memory, t, &mut words)).collect()
    }
}

fn equal(a: &Result<Vec<Value>, RuntimeError>, b: &Result<Vec<Value>, RuntimeError>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Err(a), Err(b)) => (&a.kind, &a.message) == (&b.kind, &b.message),
        _ => false,
    }
}
