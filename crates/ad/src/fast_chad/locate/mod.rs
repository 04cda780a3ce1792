//! Locations: loops, branches and functions that hand on names of arrays hand on where those arrays lie.
//!
//! Source: own design. Reverse mode gives an array that a loop carries a cotangent that is carried too, as a dense array. The state may be but
//!   another name for an array from outside: `loop (s, v) = (0, x) for i < n do (s + v[i], w)`. Then that costs an array of zeros and
//!   an addition of arrays per iteration, and the program nothing. So such loops carry *locations* instead: which array, and
//!   which part of it. The array itself is found by a branch on the location, and the rules of branches and names send every
//!   contribution where it belongs: into the accumulator of the array from outside, or into the cotangent of a slot.
//!   [`functions`] does the same for results of functions.
//! Judgement: source to source, before the reverse transformation. `L(e)` is the location of the array `e`; see [`rewrite`].
//! Assumes: core without `vjp`, `jvp` and fused operations; the set of arrays that depend on what is differentiated.
//! Guarantees: the same results, bit by bit. Work grows by a constant factor. After it, in bodies that run many times, no carried array is a
//!   name of an array from outside. Nor is the result of a branch that a function inside uses as a whole. Arrays that are made are
//!   carried in slots, each in one.

mod choose;
mod flow;
mod forms;
mod functions;
mod lend;
mod places;
mod results;
mod rewrite;
mod unbox;
mod wide;

use super::reads::Reads;
use crate::activity::active_variables;
use flow::Flow;
use places::Class;
use pullback_base::index::IdSet;
use pullback_core::prune::prune_body;
use pullback_core::{Atom, Builder, Exp, Lam, Program, Type, Var};
use results::Places;
use rewrite::{Needed, Rewriter, Rewritten};

pub(crate) use flow::Lends;
pub(crate) use functions::locate_functions;

/// A lambda with locations.
pub(crate) struct Located {
    pub(crate) lam: Lam,
    /// The slots: they hold arrays that depend on what is differentiated, and others.
    pub(crate) slots: Vec<Var>,
    /// Arrays that do not depend on it, of which a carried array may be another name. There must be somewhere to add what
    /// belongs to them; nobody asks for it.
    pub(crate) constants: IdSet<Var>,
    /// Those of them that are no state of a loop: what belongs to one goes nowhere. A state's cotangent is carried from iteration to
    /// iteration as others are, so that its zeros are made once.
    pub(crate) unread: IdSet<Var>,
}

/// What a function returns as locations.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted<'a> {
    /// For each result where it may lie, if it becomes a location.
    results: &'a [Option<Places>],
    /// The parameters that are no places.
    written: &'a [bool],
    /// The parameters that are only read, a copy being overwritten.
    kept: &'a [bool],
    /// Arrays that must have accumulators if one of these results depends on the inputs: functions choose them among others.
    asked: &'a [(Var, Vec<Var>)],
}

/// How a lambda gets locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locate {
    /// It runs once.
    Once,
    /// It may run many times.
    Repeated,
    /// It has some already: only the constants are looked for.
    Done,
}

/// The lambda with locations where that saves work in its derivative with respect to `inputs`.
pub(crate) fn locate(
    program: &mut Program,
    lam: Lam,
    inputs: &[Var],
    reads: &mut Reads,
    (how, lends): (Locate, Lends),
) -> Located {
    let lam = if how == Locate::Done { lam } else { unbox::unbox(program, lam) };
    let asked = reads.asked(program, &lam.body);
    rewritten(program, lam, inputs, (how, lends), &Wanted { asked: &asked, ..Wanted::default() })
}

/// What flows where in a lambda, and the arrays in it that do not depend on `inputs` but come to where others do, those `asked` for among them.
fn flow_of<'a>(
    program: &Program,
    lam: &'a Lam,
    inputs: &[Var],
    asked: &[(Var, Vec<Var>)],
) -> (Flow<'a>, IdSet<Var>) {
    let active = active_variables(program, lam, inputs);
    let asked =
        asked.iter().filter(|(v, results)| !active.contains(v) && results.iter().any(|r| active.contains(r)));
    let mut constants: IdSet<Var> = asked.map(|(v, _)| *v).collect();
    let mut flow = Flow::of(program, lam, &active.iter().chain(&constants).copied().collect());
    loop {
        let more = flow.others();
        if more.is_empty() {
            return (flow, constants);
        }
        constants.extend(more);
        flow = Flow::of(program, lam, &active.iter().chain(&constants).copied().collect());
    }
}

fn rewritten(
    program: &mut Program,
    lam: Lam,
    inputs: &[Var],
    (how, lends): (Locate, Lends),
    wanted: &Wanted<'_>,
) -> Located {
    let once = how == Locate::Once;
    let (mut flow, mut constants) = flow_of(program, &lam, inputs, wanted.asked);
    flow.hand_over(&lam.params, (wanted.written, wanted.kept), lends);
    let asked = lam.body.result.iter().zip(wanted.results).filter(|(_, places)| places.is_some());
    let mut merges = flow.merges_of(&asked.map(|(a, _)| *a).collect::<Vec<_>>());
    merges.extend(flow.lent_merges());
    let classes = || match how {
        Locate::Done => Vec::new(),
        Locate::Once | Locate::Repeated => {
            let groups = choose::groups(&flow, once, &merges);
            groups.into_iter().map(|g| Class::of(&flow, g)).collect::<Vec<_>>()
        }
    };
    let mut all = classes();
    let wide: IdSet<Var> = all.iter_mut().flat_map(|class| class.wide(&flow)).collect();
    // In functions that return locations this has been done, since it is known already where what they return lies.
    if !wide.is_empty() && wanted.results.iter().all(Option::is_none) {
        let lends = std::mem::take(&mut flow.lends);
        let lam = wide::one_by_one(program, lam, &wide);
        return rewritten(program, lam, inputs, (how, lends), wanted);
    }
    let mut named = choose::named(&flow, once, &all);
    named.extend(all.iter().flat_map(Class::roots));
    wanted.asked.iter().for_each(|(v, _)| named.extend(flow.way_of(*v)));
    constants.retain(|v| named.contains(v));
    let unread = constants.iter().copied().filter(|&v| !flow.is_state(v)).collect();
    if all.is_empty() && wanted.results.iter().all(Option::is_none) {
        return Located { lam, slots: Vec::new(), constants, unread };
    }
    // How many slots are needed is known when all is written.
    let mut counts = Vec::new();
    let mut all = Some(all);
    let (mut lam, slots) = loop {
        let start = program.vars.len();
        let here = all.take().unwrap_or_else(classes);
        let rewriter = Rewriter::new(Builder::new(program), &flow, here, &counts);
        let Rewritten { lam, needed, slots } = rewriter.lambda(&lam, wanted);
        let enough = |(n, c): (&Needed, &Needed)| n == c;
        let first = counts.is_empty() && needed.iter().all(|n| n.values().all(|&count| count <= 1));
        if first || (!counts.is_empty() && needed.iter().zip(&counts).all(enough)) {
            break (lam, slots);
        }
        program.vars.truncate(start);
        counts = needed;
    };
    // Arrays that are found at their places and not looked at: an accumulator must not be opened for them.
    prune_body(program, &mut lam.body);
    Located { lam, slots, constants, unread }
}

/// An array without elements, which says nothing of the sizes of others in its place.
fn nothing(b: &mut Builder<'_>, ty: &Type) -> Atom {
    let element = ty.peel(1).unwrap_or(ty).clone();
    b.emit(Exp::ArrayLit(element, Vec::new()), "empty")
}
