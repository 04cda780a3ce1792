//! Proves that kernel IR keeps its rules, without running it.
//!
//! Place in the pipeline: after the lowering, and after scheduling; in builds with debug assertions after each pass of it. A wrong decision about
//! memory is found for all inputs, where a run finds it for some. This header is the specification of kernel IR; `ir` says what each
//! instruction does.
//!
//! # Registers
//! A register is set before it is read, on every way. What one arm of a branch sets may be read where the same condition has the same value, until
//! the condition is set again. Nothing is asked of code behind a [`crate::Ins::Fail`] whose condition is the constant `true`.
//!
//! # Types
//! Operands have the types that their instruction needs, and so have the registers that it sets; arguments and results are those of the callee. Elements of
//! memory are scalars and pointers. A pointer is used for elements of the type that some memory which it may point to was allocated for.
//!
//! # Lanes
//! Loops of lanes are not inside of each other in a function, and have at most as many lanes as the module. All registers of lanes that an
//! instruction mentions have equally many: inside of a loop of lanes, as many as the loop. Conditions, bounds and pointers are scalars.
//!
//! # Loops
//! A counter is set by its loop, and by nothing else but loops that are neither inside of it nor around. In a loop in any order ([`crate::Order::Any`]) an iteration sets what it reads of
//! what the body sets, but for the states of folds; after the loop only these may be read. A fold takes together states that the body sets. An iteration gives back
//! all memory that it allocates. Iterations in any order do not use memory that others write, but that several may add to it: what can be shown of that is in [`order`], and no alarm
//! here is about it.
//!
//! # Memory
//! Memory is there from its [`crate::Ins::Alloc`] to the [`crate::Ins::Release`] of a mark set before. It may be loaded from, stored to, filled, copied and added to while it is
//! there. Arguments of calls reach only memory that is there: what they point to, what that holds, and so on; so do results, and what the caller's memory holds
//! when a function ends. A call may leave memory behind; a part of [`crate::Ins::Chunks`] may not, since that is given back. A pointer that is not used, or only
//! moved ([`crate::Ins::Offset`]), may point anywhere.
//!
//! # Marks
//! A mark is released while it is open: it was set, no mark before it has been released or set again since, and it was not set again itself. A release knows
//! its mark. A mark is not stored, nor given to a call.
//!
//! # How
//! Types, lanes and counters are looked at instruction by instruction (`types`). Registers and memory need an abstract interpretation (`flow`, `loops`, `regions`) over
//! *sites*: instructions that make memory. A site has three faces: what it made last, what it made before, and what was given back (recency abstraction: Balakrishnan and Reps,
//! SAS 2006). Loops are gone through until nothing is new; alarms are noted in one pass more, since some are of states that are not final. Of calls it is known which pointers they store where (`stored`).
//!
//! Guarantees: code without an alarm breaks no rule above in any run. An alarm may be false. No alarm is about bounds of accesses: [`bounds`] shows those that it can and lists
//! the others. Not looked at: whether elements were written before they are read. Nor are uses of the null pointer, and of the caller's memory for elements of another type: what was allocated for numbers is taken to hold no pointers. Nor is it looked at
//! whether a value is the one that the program means: of code that says which variable lies where, [`values`] proves that none is read after it was written over.
//!
//! Cost: instructions times the depth of their nest, and a few passes per loop. A branch costs what its arms change, a visit of a loop that brings nothing new
//! what the loop mentions ([`Verified::work`]).

mod alarm;
pub mod bounds;
mod cells;
mod flow;
mod layout;
mod loops;
pub mod order;
mod ranges;
mod regions;
mod sets;
mod stored;
mod types;
pub mod values;

use crate::ir::{Block, Function, FunctionId, Ins, Module, Ty};
pub use alarm::{Alarm, Rule};
use flow::Flow;
use pullback_base::index::{IdSet, Index};
use stored::Summary;

/// What came of looking at code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// The rules that are broken, or may be.
    pub alarms: Vec<Alarm>,
    /// What it cost: instructions gone through, facts looked at, written, put back and compared, elements of sets made.
    pub work: u64,
}

/// What is given up for code without an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Updates in place, and memory that is given back early.
    Plain,
    /// The schedule of loops.
    AsLowered,
    /// Native code.
    Interpreted,
}

impl Fallback {
    /// All.
    pub const ALL: [Fallback; 3] = [Fallback::Plain, Fallback::AsLowered, Fallback::Interpreted];
    /// What is given up, as kernel text has it.
    pub fn name(self) -> &'static str {
        match self {
            Fallback::Plain => "updates",
            Fallback::AsLowered => "schedule",
            Fallback::Interpreted => "code",
        }
    }
    /// What a report says of it.
    pub fn text(self) -> &'static str {
        match self {
            Fallback::Plain => "lowered without updates in place",
            Fallback::AsLowered => "loops are as they were lowered",
            Fallback::Interpreted => "interpreted",
        }
    }
}

/// What callers of a function know of it.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    name: String,
    params: Vec<Ty>,
    results: Vec<Ty>,
    summary: Summary,
}

/// What a function needs to know of its module.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    callees: Vec<Callee>,
    /// How many functions the module had at first.
    given: usize,
    messages: usize,
    lanes: usize,
}

impl Around {
    /// Of a module; `None` if there is an alarm on it.
    pub(crate) fn of(module: &Module) -> Option<Around> {
        let (around, verified) = all(module);
        verified.alarms.is_empty().then_some(around)
    }
    /// The same for a module that has loops of at most so many lanes.
    pub(crate) fn with_lanes(self, lanes: usize) -> Around {
        Around { lanes, ..self }
    }
    /// What a function does with memory of its callers ([`stored`]); the work. One that is not whole, since registers are not there, may do anything.
    fn summary(&self, f: &Function, whole: bool) -> (Summary, u64) {
        if whole { stored::of(f, &self.callees) } else { (Summary::any(f), 0) }
    }
    /// Learns that of the functions of a module; the work.
    fn learn_stores(&mut self, module: &Module, types: &[(Vec<Alarm>, bool)]) -> u64 {
        let mut work = 0;
        let order = callees_first(module);
        let mut grows = true;
        while std::mem::take(&mut grows) {
            for id in &order {
                let k = id.index();
                let (summary, cost) = self.summary(&module.functions[*id], types[k].1);
                work += cost;
                grows |= self.callees[k].summary != summary && summary_matters(module, *id, &order);
                self.callees[k].summary = summary;
            }
        }
        work
    }
    /// Of a module, as if no function stored pointers.
    fn unknown(module: &Module) -> Around {
        let callees: Vec<Callee> =
            module.functions.iter().map(|f| Callee::new(f, Summary::default())).collect();
        Around { given: callees.len(), callees, messages: module.messages.len(), lanes: module.lanes }
    }
    /// Looks at a function.
    pub(crate) fn function(&self, f: &Function) -> Verified {
        self.typed(f, types::types(f, self))
    }
    /// The same, once its types are looked at: the alarms, and whether it is whole.
    fn typed(&self, f: &Function, (mut alarms, whole): (Vec<Alarm>, bool)) -> Verified {
        if !whole {
            return Verified { alarms, work: crate::size(&f.body) as u64 };
        }
        let mut flow = Flow::new(f, &self.callees);
        flow.pass();
        flow.reports = true;
        flow.pass();
        let work = flow.work();
        alarms.extend(flow.alarms);
        Verified { alarms, work }
    }
    /// Takes functions over that were added to the module, those of before too; looks at those that are new.
    pub(crate) fn learn(&mut self, added: &[Function]) -> Vec<Verified> {
        let from = self.callees.len() - self.given;
        let new = added.get(from..).unwrap_or_default();
        self.callees.extend(new.iter().map(|f| Callee::new(f, Summary::default())));
        let first = self.given + from;
        let mut found = Vec::new();
        // A part may call parts that were made before it.
        for (k, f) in new.iter().enumerate() {
            let types = types::types(f, self);
            self.callees[first + k].summary = self.summary(f, types.1).0;
            found.push(self.typed(f, types));
        }
        found
    }
}

impl Callee {
    fn new(f: &Function, summary: Summary) -> Callee {
        let types = |regs: &[crate::Reg]| {
            regs.iter().map(|r| f.regs.get(*r).map_or(Ty::Pointer, |info| info.ty)).collect()
        };
        Callee { name: f.name.clone(), params: types(&f.params), results: types(&f.results), summary }
    }
}

/// Looks at a module. Cost: see above.
pub fn verify(module: &Module) -> Verified {
    all(module).1
}

fn all(module: &Module) -> (Around, Verified) {
    let mut around = Around::unknown(module);
    let types: Vec<(Vec<Alarm>, bool)> = module.functions.iter().map(|f| types::types(f, &around)).collect();
    let work = around.learn_stores(module, &types);
    let mut all = Verified { alarms: Vec::new(), work };
    for (f, types) in module.functions.iter().zip(types) {
        let Verified { alarms, work } = around.typed(f, types);
        all.alarms.extend(alarms);
        all.work += work;
    }
    (around, all)
}

/// Whether callers that come before a function in this order are to be looked at again.
fn summary_matters(module: &Module, callee: FunctionId, order: &[FunctionId]) -> bool {
    let before = order.iter().take_while(|id| **id != callee).chain([&callee]);
    before.into_iter().any(|id| calls(&module.functions[*id].body).contains(&callee))
}

/// The functions of a module, each after those that it calls, as far as they do not call it.
fn callees_first(module: &Module) -> Vec<FunctionId> {
    let mut seen: IdSet<FunctionId> = IdSet::new();
    let mut out = Vec::new();
    for root in module.functions.ids() {
        // A function, and its callees that are still to come.
        let mut open: Vec<(FunctionId, Vec<FunctionId>)> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(id) = next.take().filter(|id| seen.insert(*id)) {
                open.push((id, calls(&module.functions[id].body)));
            }
            let Some((id, left)) = open.last_mut() else { break };
            next = left.pop();
            if next.is_none() {
                out.push(*id);
                open.pop();
            }
        }
    }
    out
}

fn calls(block: &Block) -> Vec<FunctionId> {
    let mut out = Vec::new();
    crate::walk(block, &mut |ins| {
        if let Ins::Call { function, .. } | Ins::Chunks { function, .. } = ins {
            out.push(*function);
        }
    });
    out
}
