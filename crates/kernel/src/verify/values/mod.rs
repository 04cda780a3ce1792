//! Proves, without running code, that no variable is read after one of its elements was written over.
//!
//! Place in the pipeline: beside [`super::verify`], on lowered code that says which variable lies where and is read ([`crate::lower_with_ghosts`]). It has nothing of the
//! rules that decide who owns memory: it knows instructions and events only. Begin with `moments`; `calls` is about functions, `places` makes it finer.
//!
//! # Moments
//! A *moment* is a time at which a variable got its value: at a `Bind` of memory that is nobody's, at a `Check`, at the beginning of the function for what arguments show, and at a call for what that makes. A moment
//! is a site as memory is ([`super`]), and travels with pointers: through moves, memory and calls. Its recent face is of the last time, its old one of those before. Memory
//! that was just made shows nothing: it is *nobody's*. For each face of memory it is known which moments are *bound* there, and which are *lost*: the memory was written since. A load, a
//! `Check`, an argument or a result through a pointer with a moment that is lost where it points is an alarm.
//!
//! # Places
//! In functions where that leaves alarms, places count. The walk of [`super::order`] knows pointers as sums. A write loses no moment of a variable that is apart: before or behind it, in another place in
//! turn, or in other memory on all ways on which the two pointers got their values; nor one that has no elements. That holds for the iteration in which the variable was bound: in the next one its moment is old, and has no place.
//! An arm that the walk does not come into, since its sums decide the condition, is left out.
//!
//! # Loops
//! In a loop in any order an iteration loses nothing for the others: that is [`super::order`]'s to show. It is looked at here for values that are used as a whole, since these are no loads. In a loop in given order the
//! same rule is tried: if iterations keep to their rows, they lose nothing for each other either. Memory that an iteration makes is old in the next one; where that is too coarse, the other way to tell (`Ages`) may do.
//!
//! # Calls
//! A function is looked at for itself. What parameters point to is different memory; an argument that shares memory with another through which the callee writes is an alarm. A function says what it writes,
//! and where its results point to. Its callers say whether arguments are read for variables. Functions are looked at until nothing of that is new.
//!
//! Assumes: code without an alarm of [`super::verify`]; that events are right; that claims of loops in any order are right; what [`super::order`] believes of rooms and extents, where places count.
//!
//! Guarantees: code without an alarm reads no variable in any run of which an element was written over since the variable had its value; no run with versions ([`crate::run::run_with_ghosts`]) stops for it. An alarm may
//! be false. It is not shown that a value is right when it is bound, nor is anything said of scheduled code.
//!
//! Cost: passes of [`super::verify`] over code with events, two for most functions; where places count, one walk of [`super::order`] and two to six passes more ([`Values::work`]).

mod calls;
mod moments;
pub(super) mod places;

use super::flow::Flow;
use super::layout::Events;
use super::order::uses::Looking;
use super::{Callee, callees_first, calls, types};
use crate::ghosts::{Ghost, Ghosts};
use crate::ir::{Block, Function, FunctionId, Module, Reg};
use places::{Noting, Places};
use pullback_base::index::{IdMap, Index};
use std::collections::{BTreeMap, BTreeSet};

/// A variable that is read after it was written over, or may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Late {
    /// The name of the function.
    pub function: String,
    /// The instructions around, the outermost first, and the instruction itself; empty at the end of the function.
    pub path: Vec<String>,
    /// The variable, as far as it is known.
    pub variable: String,
    /// The register that it is read through.
    pub register: Option<String>,
    /// Why.
    pub reason: String,
}

impl std::fmt::Display for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.path.is_empty() { "its end".to_string() } else { self.path.join(" > ") };
        write!(f, "function {}, {place}: {} {}", self.function, self.variable, self.reason)
    }
}

/// What came of looking at values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The variables that may be read after they were written over.
    pub alarms: Vec<Late>,
    /// What it cost, counted as in [`super::Verified::work`].
    pub work: u64,
}

/// What a function does with memory of its callers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Effects {
    /// It writes what these parameters point to.
    params: Vec<bool>,
    /// It writes what is reached from there.
    beyond: bool,
    /// It binds variables to what these parameters point to.
    binds: Vec<bool>,
    /// Where its results point to.
    results: Vec<Target>,
    /// Where memory points to that it made and that results reach.
    holds: Target,
}

/// Where a pointer that a function gives points to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Target {
    /// To what these parameters do.
    params: Vec<bool>,
    /// To what is reached from there.
    beyond: bool,
    /// To memory that the function made.
    own: bool,
    /// It is read for what an argument was read for, or for something else.
    entry: bool,
    now: bool,
}

impl Target {
    fn add(&mut self, other: &Target) {
        self.params.iter_mut().zip(&other.params).for_each(|(a, b)| *a |= b);
        self.beyond |= other.beyond;
        self.own |= other.own;
        self.entry |= other.entry;
        self.now |= other.now;
    }
}

/// What is known of an argument of all calls: it is read for a variable; it is nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Given {
    named: bool,
    nobody: bool,
}

impl Effects {
    fn new(f: &Function) -> Effects {
        let none = vec![false; f.params.len()];
        let result = Target { params: none.clone(), ..Target::default() };
        let results = vec![result.clone(); f.results.len()];
        Effects { binds: none.clone(), params: none, beyond: false, results, holds: result }
    }
}

/// In which loops all that an iteration made is old in the next one; in the others only what is made anew. What is right in one way is right.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ages {
    /// In those with a counter: an iteration that makes memory on some ways does not take that of the one before for its own.
    Counted,
    /// In those around the innermost one: an array that grows in a loop is not taken for one that grew there before.
    Around,
    /// In those that hold loops which make memory, too: an array that grows in a loop, in one whose state was made in the iteration before.
    Nests,
}

/// What is known of values in a function.
pub(super) struct Layer<'a> {
    pub(super) events: &'a Events,
    names: &'a [String],
    effects: &'a [Effects],
    own: Effects,
    /// Of each parameter.
    given: &'a [Given],
    /// What is given to functions that are called.
    gives: BTreeMap<(FunctionId, usize), Given>,
    /// The bindings of each pointer.
    bindings: IdMap<Reg, Vec<u32>>,
    /// The number of a binding, and the site of its moment.
    bound: IdMap<Reg, (u32, u32)>,
    /// What is known of places, if that was looked at.
    places: Places,
    ages: Ages,
    late: BTreeSet<Late>,
}

impl<'a> Layer<'a> {
    fn new(
        f: &Function,
        (events, names): (&'a Events, &'a [String]),
        effects: &'a [Effects],
        given: &'a [Given],
    ) -> Layer<'a> {
        let mut bound = IdMap::new();
        for (r, ghost) in events.iter() {
            if let Ghost::Bind { .. } | Ghost::Check { .. } = ghost {
                bound.insert(*r, (0, 0));
            }
        }
        let (bindings, places, late) = (IdMap::new(), Places::default(), BTreeSet::new());
        let (own, gives) = (Effects::new(f), BTreeMap::new());
        Layer {
            events,
            names,
            effects,
            own,
            given,
            gives,
            bindings,
            bound,
            places,
            ages: Ages::Counted,
            late,
        }
    }
    /// Whether no run comes into an arm, if places were looked at.
    pub(super) fn is_dead(&self, arm: &Block) -> bool {
        self.places.is_dead(arm)
    }
    /// How many there are.
    pub(super) fn bindings(&self) -> usize {
        self.bound.len()
    }
}

/// Looks at the values of a module. Cost: see above. Of a function with registers that are not there nothing is said: [`super::verify`] has an alarm.
pub fn look(module: &Module, ghosts: &Ghosts) -> Values {
    let (around, verified) = super::all(module);
    let functions = &module.functions;
    let mut found = Values { alarms: Vec::new(), work: verified.work };
    let mut effects: Vec<Effects> = functions.iter().map(Effects::new).collect();
    let mut given: Vec<Vec<Given>> = first_given(module);
    let mut late: Vec<BTreeSet<Late>> = vec![BTreeSet::new(); functions.len()];
    // Functions that are to be looked at.
    let mut open: Vec<bool> = functions.iter().map(|f| types::types(f, &around).1).collect();
    let callees: Vec<Vec<FunctionId>> = functions.iter().map(|f| calls(&f.body)).collect();
    let order = callees_first(module);
    let none = Events::new();
    while open.contains(&true) {
        for id in &order {
            let (k, f) = (id.index(), &functions[*id]);
            if !std::mem::take(&mut open[k]) {
                continue;
            }
            let events = (ghosts.events.get(id).unwrap_or(&none), &ghosts.names[..]);
            let Some((layer, work)) = function((f, &around.callees), events, (&effects, &given[k])) else {
                continue;
            };
            found.work += work;
            let Layer { own, gives, late: found_late, .. } = layer;
            late[k] = found_late;
            if own != effects[k] {
                effects[k] = own;
                callees.iter().zip(&mut open).for_each(|(callees, open)| *open |= callees.contains(id));
            }
            for ((callee, at), more) in gives {
                let Some(known) = given[callee.index()].get_mut(at) else { continue };
                let both = Given { named: known.named || more.named, nobody: known.nobody || more.nobody };
                open[callee.index()] |= both != *known;
                *known = both;
            }
        }
    }
    found.alarms = late.into_iter().flatten().collect();
    found
}

/// Functions that nobody calls are given variables.
fn first_given(module: &Module) -> Vec<Vec<Given>> {
    let mut called = vec![false; module.functions.len()];
    for f in module.functions.iter() {
        calls(&f.body).into_iter().for_each(|id| called[id.index()] = true);
    }
    let given =
        |(f, called): (&Function, bool)| vec![Given { named: !called, nobody: false }; f.params.len()];
    module.functions.iter().zip(called).map(given).collect()
}

/// Looks at a function: first as if all of an array were written at once; if there is an alarm, with places.
fn function<'a>(
    (f, callees): (&'a Function, &'a [Callee]),
    (events, names): (&'a Events, &'a [String]),
    (effects, given): (&'a [Effects], &'a [Given]),
) -> Option<(Layer<'a>, u64)> {
    let layer = || Layer::new(f, (events, names), effects, given);
    let flow = Flow::valued(f, callees, layer());
    let (first, work) = (flow.values.as_ref()?, flow.work());
    if first.late.is_empty() {
        return flow.values.map(|layer| (layer, work));
    }
    let uses = places::uses_of(effects);
    let (places, cost) = Looking::noting(&flow, &uses, Noting::new(first));
    let finer = Flow::valued(f, callees, Layer { places, ..layer() });
    let (mut work, mut found) = (work + cost + finer.work(), finer.values?);
    for ages in [Ages::Around, Ages::Nests] {
        if found.late.is_empty() {
            break;
        }
        // A variable that is read too late is found in any way.
        let place = |late: &Late| (late.path.clone(), late.register.clone());
        let late: BTreeSet<_> = found.late.iter().map(place).collect();
        let other = Flow::valued(f, callees, Layer { places: found.places, ages, ..layer() });
        work += other.work();
        found = other.values?;
        found.late.retain(|late_too| late.contains(&place(late_too)));
    }
    Some((found, work))
}
