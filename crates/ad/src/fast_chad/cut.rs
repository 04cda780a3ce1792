//! Store or compute again: what a body keeps for its reverse code, by a minimum cut.
//!
//! Source: T. Smeding, PhD thesis, section 7.5.1.5 (recompute) and the future work of 7.6 (its placement); Schenck et
//!   al., SC 2022, section III (redundant execution). The cut itself is the textbook one for choosing what to buy.
//! Assumes: the reverse code is pruned, so that it reads only what it needs; forward statements without effects give the
//!   same values whenever they run on the same values; names bound around the body can be read by the reverse code.
//! Guarantees: everything the reverse code reads is stored or computed again from what is stored or at hand. No loop and
//!   no operation with a function of unknown extent, call, custom rule, accumulator or assertion runs again; what runs
//!   again does so under the branches of the forward code, once per execution of the body, so costs stay within a constant
//!   factor. Nothing makes an array live longer that a sublinear write may want to overwrite (see `lasting`). Of equally
//!   dear choices the one that stores least is taken; equal inputs give equal choices.
//!
//! The network: per value a node "wanted", per statement a node "runs again"; the side of the sink is "yes". Cutting
//! source → statement pays for running it, cutting statement → value pays for storing the value, and an edge without
//! limit from a value to the statement that uses it says that running needs the operands. The maximum flow is that of
//! E. A. Dinic (1970): all shortest paths at once. Bodies that programs write have thousands of statements, but few lengths of
//! paths. The cut nearest to the source is the same for every maximum flow.

use super::config::Tape;
use super::reloadable::holds_arrays;
use super::reverse::Reverse;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::{free_vars, free_vars_exp};
use pullback_core::{Atom, Body, Exp, Loop, LoopForm, Soac, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

/// The unit of cost is one simple scalar operation (`Prim::cost`). A byte on the tape is written once and read once, at
/// half a unit each way while the tape fits the cache (four when it does not), so a stored `f64` is worth eight units.
const BYTE: u64 = 1;
/// Running any statement again, besides its operation: an operand moved, a register taken. In steps of the interpreter,
/// where values stored by maps are free, chains of more than two statements would not pay.
const STATEMENT: u64 = 2;
/// Reading an element of an array again.
const READ: u64 = 2;
/// An array of unknown size: dearer than all scalars of a body together.
const ARRAY: u64 = 1 << 32;
/// The size taken for arrays of unknown size that are cheap to make again, such as `iota`.
const EXTENT: u64 = 64;
/// More than any sum of the above.
pub const NEVER: u64 = 1 << 48;
/// Maps and loops of more iterations than this do not run again, whatever their body.
const ITERATIONS: i64 = 16;

/// What becomes of a body's values in its reverse code.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Stored by the forward code.
    pub(crate) stored: Vec<Var>,
    /// Forward statements that the reverse code runs again first, in their order.
    pub(crate) again: Vec<Stm>,
}

impl<'p> Reverse<'p> {
    /// Plans for a body with these forward statements, of which `reverse` is the reverse code. `state`: further values
    /// that the forward code can store (loop state). Other names bound around the body are at hand.
    pub(crate) fn plan(&mut self, reverse: &Body, forward: &[Stm], state: &[Var]) -> Plan {
        let reads: IdSet<Var> =
            free_vars(reverse).into_iter().filter(|v| !self.b.program.vars[*v].ty.is_acc()).collect();
        let tape = self.next_tape();
        let mut values: IdMap<Var, usize> = IdMap::new();
        for &v in forward.iter().flat_map(|s| &s.pat).chain(state) {
            let next = values.len();
            values.insert(v, next);
        }
        let mut needed: IdSet<Var> = reads.iter().copied().filter(|v| values.contains_key(v)).collect();
        let names = self.other_names(&mut needed);
        if tape == Tape::Store {
            return Plan { stored: needed.into_iter().collect(), again: names };
        }
        let steps: Vec<Step> = forward
            .iter()
            .map(|stm| Step {
                cost: if self.may_run_again(stm, &values, &reads, tape) {
                    self.cost(&stm.exp, tape)
                } else {
                    NEVER
                },
                operands: free_vars_exp(&stm.exp).iter().filter_map(|v| values.get(v)).copied().collect(),
                results: stm.pat.iter().map(|v| values[v]).collect(),
            })
            .collect();
        let mut store = vec![0; values.len()];
        for (v, &k) in &values {
            store[k] = self.weight(&self.b.program.vars[*v].ty);
        }
        let wanted: Vec<usize> = needed.iter().map(|v| values[v]).collect();
        let again = cheapest(&steps, &store, &wanted);
        let mut plan = Plan::of(forward, &steps, &again, &values, &needed);
        // A branch that runs again gives its slots itself.
        let bound: IdSet<Var> = plan.again.iter().flat_map(|s| s.pat.clone()).collect();
        plan.again.extend(names.into_iter().filter(|s| !bound.contains(&s.pat[0])));
        plan
    }

    /// What passes through a branch and is needed outside as well is not needed twice.
    fn other_names(&self, needed: &mut IdSet<Var>) -> Vec<Stm> {
        let twice = needed.iter().filter_map(|slot| Some((*slot, *self.passed.get(slot)?)));
        let twice: Vec<(Var, Var)> = twice.filter(|(_, v)| needed.contains(v)).collect();
        twice.iter().for_each(|(slot, _)| {
            needed.remove(slot);
        });
        twice.into_iter().map(|(slot, v)| Stm { pat: vec![slot], exp: Exp::Atom(v.into()) }).collect()
    }

    /// The policy for the next body.
    fn next_tape(&mut self) -> Tape {
        self.planned += 1;
        match self.config.tape {
            Tape::Random(seed) => {
                let mixed = (seed ^ self.planned).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                [Tape::Store, Tape::Recompute, Tape::Cut][(mixed >> 33) as usize % 3]
            }
            tape => tape,
        }
    }

    /// Whether a forward statement may be part of the reverse code: no effects, and its operands can be had.
    fn may_run_again(&self, stm: &Stm, values: &IdMap<Var, usize>, reads: &IdSet<Var>, tape: Tape) -> bool {
        if self.has_effects(&stm.exp) || stm.pat.iter().any(|v| self.pinned.contains(v)) {
            return false;
        }
        // An array that no reverse code reads as a whole must not be stored, or kept from being overwritten, for the
        // sake of a part of it. Operations that take it over completely are as good as the array itself.
        let whole = matches!(
            stm.exp,
            Exp::Atom(_)
                | Exp::Tuple(_)
                | Exp::Inject(..)
                | Exp::Rearrange(..)
                | Exp::Reshape { .. }
                | Exp::Reverse(_)
                | Exp::Rotate(..)
                | Exp::Concat(_)
        );
        tape == Tape::Recompute
            || free_vars_exp(&stm.exp).iter().all(|v| {
                !holds_arrays(&self.b.program.vars[*v].ty)
                    || self.lifetimes.lasting.contains(v)
                    || reads.contains(v)
                    || (whole && values.contains_key(v))
            })
    }

    /// What storing a value of a type costs.
    fn weight(&self, ty: &Type) -> u64 {
        if holds_arrays(ty) { ARRAY } else { BYTE * bytes(ty) }
    }

    /// What running an expression once more costs.
    fn cost(&self, exp: &Exp, tape: Tape) -> u64 {
        if tape == Tape::Recompute {
            return 0;
        }
        let all = |body: &Body| body.stms.iter().map(|s| self.cost(&s.exp, tape)).sum::<u64>();
        let cost = match exp {
            // What hangs on two answers is dearer to store than to make of them: truth values on tapes hold up loops in lanes.
            Exp::Prim(prim, _) if is_connective(*prim) => return prim.cost(),
            Exp::Prim(prim, _) => prim.cost(),
            Exp::Atom(_)
            | Exp::Proj(..)
            | Exp::Size(..)
            | Exp::StopGradient(_)
            | Exp::Slice(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. } => 0,
            Exp::Tuple(items) | Exp::Inject(_, _, items) | Exp::ArrayLit(_, items) => items.len() as u64,
            Exp::Index(..) => READ,
            Exp::Reverse(_) | Exp::Rotate(..) | Exp::Concat(_) | Exp::Iota(_) | Exp::Replicate(..) => EXTENT,
            Exp::Gather(..) | Exp::Plus(..) => READ * EXTENT,
            Exp::If(_, x, y) => all(x).max(all(y)),
            Exp::Match(_, arms) => arms.iter().map(|arm| all(&arm.body)).max().unwrap_or(0),
            Exp::Marked(_, body) => all(body),
            Exp::Par(bodies) => bodies.iter().map(all).sum(),
            Exp::Soac(Soac::Map { width: n, lam, arrays: _ }) => repeated(*n, all(&lam.body)),
            Exp::Loop(Loop { form: LoopForm::For { n, .. }, body, .. }) => repeated(*n, all(body)),
            Exp::Loop(_)
            | Exp::Soac(_)
            | Exp::Call(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::WithAcc(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Vjp { .. }
            | Exp::Jvp { .. }
            | Exp::Custom { .. }
            | Exp::Assert(..)
            | Exp::Check(..) => NEVER,
        };
        (STATEMENT + cost).min(NEVER)
    }
}

/// The cost of `n` iterations.
fn repeated(n: Atom, once: u64) -> u64 {
    match n {
        Atom::Const(n) if n.as_i64() <= ITERATIONS => n.as_i64().max(0).unsigned_abs() * (STATEMENT + once),
        Atom::Const(_) | Atom::Var(_) => NEVER,
    }
}

/// Whether a primitive makes a truth value of others.
fn is_connective(prim: Prim) -> bool {
    matches!(prim, Prim::Op(Op::And | Op::Or | Op::Not, Scalar::Bool))
}

/// Bytes of a value without arrays.
fn bytes(ty: &Type) -> u64 {
    match ty {
        Type::Scalar(s) => scalar_bytes(*s),
        Type::Tuple(items) => items.iter().map(bytes).sum(),
        Type::Sum(variants) => {
            let payload = |fields: &[Type]| fields.iter().map(bytes).sum::<u64>();
            1 + variants.iter().map(|v| payload(&v.fields)).max().unwrap_or(0)
        }
        Type::Array(_) | Type::Named(_) | Type::Acc(_) => ARRAY,
    }
}

/// Integers and truth values count as a word whatever their width: they are conditions and indices, cheap to make again.
fn scalar_bytes(s: Scalar) -> u64 {
    if s == Scalar::F32 { 4 } else { 8 }
}

impl Plan {
    /// Of the statements chosen those that are needed, and the values that remain to be stored.
    fn of(
        forward: &[Stm],
        steps: &[Step],
        again: &[bool],
        values: &IdMap<Var, usize>,
        needed: &IdSet<Var>,
    ) -> Plan {
        let mut wanted = vec![false; values.len()];
        for v in needed {
            wanted[values[v]] = true;
        }
        let mut plan = Plan::default();
        for ((stm, step), &again) in forward.iter().zip(steps).zip(again).rev() {
            if again && step.results.iter().any(|&v| wanted[v]) {
                plan.again.push(stm.clone());
                step.results.iter().for_each(|&v| wanted[v] = false);
                step.operands.iter().for_each(|&v| wanted[v] = true);
            }
        }
        plan.again.reverse();
        plan.stored = values.iter().filter(|(_, k)| wanted[**k]).map(|(v, _)| *v).collect();
        plan
    }
}

/// A statement, as far as the cut is concerned; values are numbers.
#[derive(Clone, Debug)]
pub struct Step {
    /// What running it once more costs; [`NEVER`]: it may not run again.
    pub cost: u64,
    /// The values that it reads.
    pub operands: Vec<usize>,
    /// The values that it makes.
    pub results: Vec<usize>,
}

/// Which statements to run again so that the `wanted` values are there at least cost: `store[v]` for every value that is
/// wanted and not computed, and the cost of every statement that runs. Among the cheapest choices: the most statements.
pub fn cheapest(steps: &[Step], store: &[u64], wanted: &[usize]) -> Vec<bool> {
    const SOURCE: usize = 0;
    const SINK: usize = 1;
    let value = |v: usize| 2 + v;
    let step = |s: usize| 2 + store.len() + s;
    let mut flow = Network::new(2 + store.len() + steps.len());
    let mut bound = vec![false; store.len()];
    for (s, Step { cost, operands, results }) in steps.iter().enumerate() {
        flow.edge(SOURCE, step(s), *cost);
        for &v in operands {
            flow.edge(value(v), step(s), u64::MAX);
        }
        for &v in results {
            bound[v] = true;
            flow.edge(step(s), value(v), store[v]);
        }
    }
    for (v, _) in bound.iter().enumerate().filter(|(_, bound)| !**bound) {
        flow.edge(SOURCE, value(v), store[v]);
    }
    for &v in wanted {
        flow.edge(value(v), SINK, u64::MAX);
    }
    let from_source = flow.saturate(SOURCE, SINK);
    (0..steps.len()).map(|s| steps[s].cost < NEVER && !from_source[step(s)]).collect()
}

/// A flow network: edge `2k` and its reverse `2k + 1`, with what they can still carry.
struct Network {
    from: Vec<Vec<usize>>,
    to: Vec<usize>,
    room: Vec<u64>,
}

impl Network {
    fn new(nodes: usize) -> Network {
        Network { from: vec![Vec::new(); nodes], to: Vec::new(), room: Vec::new() }
    }
    fn edge(&mut self, a: usize, b: usize, capacity: u64) {
        self.from[a].push(self.to.len());
        self.from[b].push(self.to.len() + 1);
        self.to.extend([b, a]);
        self.room.extend([capacity, 0]);
    }
    /// Sends as much as possible from `a` to `b`; returns which nodes `a` still reaches then.
    fn saturate(&mut self, a: usize, b: usize) -> Vec<bool> {
        loop {
            let far = self.distances(a);
            if far[b] == usize::MAX {
                return far.into_iter().map(|d| d != usize::MAX).collect();
            }
            self.block(a, b, &far);
        }
    }
    /// How many edges with room each node is away from `a`.
    fn distances(&self, a: usize) -> Vec<usize> {
        let mut far = vec![usize::MAX; self.from.len()];
        far[a] = 0;
        let mut queue = vec![a];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for &e in &self.from[node] {
                let to = self.to[e];
                if self.room[e] > 0 && far[to] == usize::MAX {
                    far[to] = far[node] + 1;
                    queue.push(to);
                }
            }
        }
        far
    }
    /// Fills shortest paths from `a` to `b` until each has an edge without room. An edge that leads nowhere is looked at once.
    fn block(&mut self, a: usize, b: usize, far: &[usize]) {
        let mut tried = vec![0; self.from.len()];
        let mut path: Vec<usize> = Vec::new();
        loop {
            let node = path.last().map_or(a, |&e| self.to[e]);
            if node == b {
                let amount = path.iter().map(|&e| self.room[e]).min().unwrap_or(0);
                for &e in &path {
                    self.room[e] -= amount;
                    self.room[e ^ 1] = self.room[e ^ 1].saturating_add(amount);
                }
                // Back to where the first edge has no room any more.
                let full = path.iter().position(|&e| self.room[e] == 0).unwrap_or(0);
                path.truncate(full);
                continue;
            }
            let edges = self.from[node].get(tried[node]..).unwrap_or_default();
            let leads = |e: &usize| self.room[*e] > 0 && far[self.to[*e]] == far[node] + 1;
            match edges.iter().position(leads) {
                Some(k) => {
                    tried[node] += k;
                    path.push(edges[k]);
                }
                None => {
                    let Some(e) = path.pop() else { return };
                    tried[self.to[e ^ 1]] += 1;
                }
            }
        }
    }
}
