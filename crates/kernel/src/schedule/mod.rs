//! Which loops run side by side.
//!
//! Place in the pipeline: after the lowering, before an executor. First large contractions are put in tiles (`contract`,
//! `tile`). Of any other nest of loops that allow any order, the one is chosen whose iterations side by side are expected to cost
//! least (`cost`); the loops around it stay loops, those inside it too, but run for all lanes at once (`lanes`).
//!
//! Guarantees: the values of the module before, but for the order in which floats are added and multiplied by loops that
//! declare that any order will do ([`crate::Fold`], [`crate::Ins::Accumulate`]); which of several errors a program stops with
//! may change.

mod added;
mod blocks;
mod borders;
mod checks;
mod chunks;
mod contract;
mod cost;
mod jam;
mod join;
mod lanes;
mod numbers;
mod own;
mod places;
mod ranges;
mod rows;
mod small;
mod split;
mod sums;
mod tile;
mod trials;
mod uses;
mod watch;
mod width;

use crate::ir::{Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty};
use crate::verify::Fallback;
pub use chunks::without_chunks;
use cost::Costs;
pub use cost::Model;
use numbers::{Reach, number};
use pullback_base::index::{IdMap, IdSet, Index, IndexVec};
use pullback_prim::{Op, Prim, Scalar};
pub(crate) use small::ELEMENTS as SMALL;
use std::collections::BTreeSet;
use watch::Watch;

/// Parts of scheduling that can be left out: no value depends on them, but for the order of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Small memory becomes registers (decision 22).
    Small,
    /// Checks move out of loops (decision 21).
    Checks,
    /// Contractions are put in tiles (decision 23).
    Contract,
    /// Loops that follow each other become one (decision 27).
    Join,
    /// Results may be larger where that joins loops (decision 45).
    Larger,
    /// Loops that follow each other run in blocks (decision 47).
    Blocks,
    /// Several steps of a loop over them run in each block (decision 52).
    Steps,
    /// Loops are cut where what they ask at their borders is settled (decision 41).
    Borders,
    /// Loops become several (decision 20).
    Split,
    /// Memory is interleaved (decision 17).
    Rows,
    /// Rows that are read often are filled where lanes lie side by side (decision 40).
    Fill,
    /// Loops get more lanes than the fewest (decision 19).
    Widths,
    /// Parts that add to rows of their own have no copies (decision 50).
    Own,
    /// Iterations of outer loops run together (decision 20).
    Jam,
    /// What a block adds to an element several times is summed in a register (decision 56).
    Sums,
}

impl Pass {
    /// All, in their order.
    pub const ALL: [Pass; 15] = [
        Pass::Small,
        Pass::Checks,
        Pass::Contract,
        Pass::Join,
        Pass::Larger,
        Pass::Blocks,
        Pass::Steps,
        Pass::Borders,
        Pass::Split,
        Pass::Rows,
        Pass::Fill,
        Pass::Widths,
        Pass::Own,
        Pass::Jam,
        Pass::Sums,
    ];
}

/// How loops are scheduled.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many iterations run side by side: a power of two.
    pub lanes: usize,
    /// In loops that much of the time is expected to go into, at most so many: as many as registers and the number of iterations
    /// allow. A power of two.
    pub most: usize,
    /// What the executor takes.
    pub model: Model,
    /// Loops are split into parts that threads can share, each of so much work ([`Model`]); `None`: they are not.
    pub grain: Option<f64>,
    /// Parts may add to memory at the same time where copies of it would cost too much: the order of sums of floats is not fixed.
    pub relaxed: bool,
    /// What the arguments of functions are expected to be, if they are sizes. Only the choice of loops depends on it.
    pub sizes: Vec<(FunctionId, Vec<Option<i64>>)>,
    /// What is left out: nothing, but for tests and to see what a part does.
    pub without: Vec<Pass>,
}

impl Options {
    /// So many lanes in all loops, no parts for threads, nothing known about sizes.
    pub fn new(lanes: usize, model: Model) -> Options {
        let (most, grain, relaxed) = (lanes, None, false);
        Options { lanes, most, model, grain, relaxed, sizes: Vec::new(), without: Vec::new() }
    }
    fn does(&self, pass: Pass) -> bool {
        !self.without.contains(&pass)
    }
}

/// So much larger results may be where loops over what they are sums of are joined.
const LARGER: i64 = 64;

/// What a byte costs that is written and read again by another loop over more than caches hold, in instructions ([`Model`]). That loop goes over
/// all results for every few elements, which leave the first cache: so more than what memory takes alone (decision 45).
const FAR: f64 = 2.0;

/// Puts loops of all functions into lanes. The module has none yet. If the verifier has an alarm on what came of it, the module stays as it was
/// ([`Fallback::AsLowered`]). Cost: the size of the module, times the depth of its nests.
///
/// # Panics
/// In builds with debug assertions, if the verifier has an alarm after one of the passes: an internal error.
pub fn schedule(module: &mut Module, options: &Options) {
    let before = module.clone();
    let mut watch = Watch::new(module, options);
    in_lanes(module, options, &mut watch);
    if watch.has_alarm(module) {
        *module = before;
        module.fallbacks.push(Fallback::AsLowered);
    }
}

fn in_lanes(module: &mut Module, options: &Options, watch: &mut Watch) {
    module.lanes = options.lanes.max(options.most);
    let mut made = chunks::Made::after(module.functions.len());
    for (k, f) in module.functions.iter_mut().enumerate() {
        let choices = f.regs.ids().filter(|r| f.regs[*r].facts.choice).collect();
        let body = std::mem::take(&mut f.body);
        let body = if options.does(Pass::Small) { small::small(f, body) } else { body };
        let body = watch.after("small", f, body);
        let (defined, _) = registers(f, &body);
        let body =
            if options.does(Pass::Checks) { checks::hoisted(body, &defined, &mut f.regs) } else { body };
        let body = watch.after("checks", f, body);
        let body = numbered(f, body);
        let body = watch.after("numbers", f, body);
        let expected = options.sizes.iter().find(|(id, _)| id.index() == k).map_or(&[][..], |(_, s)| s);
        let mut expected = Expected { args: expected, counters: Vec::new(), parts: IdSet::new() };
        let (body, owned) = joined(body, &choices, (options, &expected), f);
        let body = watch.after("join", f, body);
        owned.into_iter().for_each(|r| f.regs[r].facts.owned = true);
        let body = if options.does(Pass::Blocks) {
            blocks::in_blocks(body, options, &mut expected, f)
        } else {
            body
        };
        let body = watch.after("blocks", f, body);
        let expected = &expected;
        let body =
            if options.does(Pass::Borders) { without_borders(body, (options, expected), f) } else { body };
        let body = watch.after("borders", f, body);
        let mut s = Scheduler::new(options, f, &body, expected);
        let body = if options.does(Pass::Split) { s.split(body) } else { body };
        f.regs = s.regs;
        let body = watch.after("split", f, body);
        let body = numbered(f, body);
        let body = watch.after("numbers after split", f, body);
        let (defined, _) = registers(f, &body);
        let rows = if options.does(Pass::Rows) { rows::candidates(&body, &defined) } else { Vec::new() };
        let is_asked = options.grain.is_some() && options.does(Pass::Own) && added::adds(&body);
        let places = is_asked.then(|| places::Places::of(f, &body));
        let mut s = Scheduler::new(options, f, &body, expected);
        s.choose_rows(rows, &body, &f.results);
        if options.most > options.lanes && options.does(Pass::Widths) {
            s.choose_widths(&body);
        }
        let body = s.room(body);
        let (counts, _) = added::pointers(&body, &s.defined, &s.regs);
        let before = made.functions.len();
        let mut t = Top { s, name: &f.name, counts, places, made: &mut made, times: 1.0 };
        f.body = if options.grain.is_some() { t.block(body) } else { t.s.block(body) };
        let Scheduler { regs, mut sizes, .. } = t.s;
        f.regs = regs;
        watch.parts("lanes", f, &made.functions);
        let mut pointers: Option<sums::Pointers> = None;
        for f in [f].into_iter().chain(&mut made.functions[before..]) {
            let uses = uses::Uses::of_function(f);
            let body = std::mem::take(&mut f.body);
            let body = if options.does(Pass::Jam) {
                jam::block(body, &mut f.regs, uses, (options.model, options.lanes), &mut sizes)
            } else {
                body
            };
            let body = watch.after("jam", f, body);
            let body = if options.does(Pass::Sums) {
                // A part has the registers of the function that it is of.
                let known = sums::Pointers::of(f, &body, pointers.as_ref());
                let body = sums::sums(body, &mut f.regs, &known);
                pointers.get_or_insert(known);
                body
            } else {
                body
            };
            let body = watch.after("sums", f, body);
            let (defined, _) = registers(f, &body);
            let body = number(body, Reach::Code, (&defined, &f.regs), &f.results);
            f.body = watch.after("numbers of code", f, body);
        }
    }
    for f in made.functions {
        module.functions.push(f);
    }
}

/// The body of a function with the ways that are taken for the expected sizes, contractions in tiles, and loops joined; memory
/// that became rows of iterations.
///
/// Where results are too large to go over them for each element of a sum, but loops over these elements could be joined, both are tried: in a joined loop
/// they are gone over once for all elements in lanes.
fn joined(
    body: Block,
    choices: &IdSet<Reg>,
    (options, expected): (&Options, &Expected<'_>),
    f: &mut Function,
) -> (Block, BTreeSet<Reg>) {
    let way = |body: Block, f: &mut Function| {
        let mut owned = BTreeSet::new();
        let mut s = Scheduler::new(options, f, &body, expected);
        let body = if options.does(Pass::Contract) { s.contract(body) } else { body };
        f.regs = s.regs;
        let body = if options.does(Pass::Join) {
            join::join(body, (options, expected), f, &mut owned)
        } else {
            body
        };
        (body, owned)
    };
    // Where no memory is near all results are large: so tests see small ones.
    let free = options.model.near == Some(0);
    let s = Scheduler::new(options, f, &body, expected);
    let try_both = options.does(Pass::Join) && options.does(Pass::Larger) && !choices.is_empty();
    let far = try_both.then(|| s.chosen(body.clone(), choices, LARGER));
    let near = s.chosen(body, choices, i64::from(!free));
    f.regs = s.regs;
    let far = far.filter(|far| *far != near);
    let (near, owned) = way(near, f);
    let Some(far) = far else { return (near, owned) };
    let (far, more) = way(far, f);
    let mut cost = |body: &Block| {
        let mut s = Scheduler::new(options, f, body, expected);
        let cost = s.tried(body, &[]);
        let sizes = std::mem::take(&mut s.sizes);
        f.regs = s.regs;
        let places = places::Places::of(f, body);
        let bytes: i64 = more.difference(&owned).filter_map(|r| places.bytes(*r, &sizes)).sum();
        cost + FAR * bytes as f64
    };
    let pays = free || cost(&far) <= join::TOLERANCE * cost(&near);
    if more.len() > owned.len() && pays { (far, more) } else { (near, owned) }
}

/// The body of a function with loops cut at their borders.
fn without_borders(body: Block, (options, expected): (&Options, &Expected<'_>), f: &mut Function) -> Block {
    let mut s = Scheduler::new(options, f, &body, expected);
    let (body, is_cut) = borders::cut(&mut s, body);
    f.regs = s.regs;
    if !is_cut {
        return body;
    }
    // What branches hid is there for all iterations now.
    let (defined, _) = registers(f, &body);
    let body = if options.does(Pass::Checks) { checks::hoisted(body, &defined, &mut f.regs) } else { body };
    numbered(f, body)
}

/// The part of the expected time of a function from which on threads share a loop: for less they gain nothing that could be
/// noticed, and each such loop is a function more.
const SHARE: f64 = 0.005;

/// The part of a grain from which on threads may share a loop that is started again and again: below, to find out how many parts it
/// is takes too much of its time. For larger sizes than expected it may be many.
const AGAIN: f64 = 0.1;

/// The loops of a function that are in no other loop in any order: threads share them. Those inside of loops whose iterations come one
/// after the other are started again and again: threads share those that are not small.
struct Top<'a> {
    s: Scheduler<'a>,
    name: &'a str,
    counts: added::Sizes,
    /// What is known about places before loops were put in lanes; none where nothing is added to them.
    places: Option<places::Places>,
    made: &'a mut chunks::Made,
    /// How often the present loops are expected to be started.
    times: f64,
}

impl Top<'_> {
    fn block(&mut self, block: Block) -> Block {
        block.into_iter().flat_map(|ins| self.ins(ins)).collect()
    }
    fn ins(&mut self, ins: Ins) -> Block {
        match ins {
            Ins::For { i, from, to, body, order: Order::Any(folds) } => {
                let order = Order::Any(folds.clone());
                let apart = self.places.as_ref().map_or_else(IdSet::new, |places| places.apart(i, &body));
                let code = self.s.for_loop(i, from, to, body, order);
                let wide = |x: &Ins| match x {
                    Ins::Lanes { i: j, lanes, .. } if *j == i => Some(*lanes),
                    _ => None,
                };
                let together = code.iter().find_map(wide).unwrap_or(1);
                let total = self.s.widths.as_ref().map_or(0.0, |w| w.total);
                let cost = self.s.cost(&code);
                let grain = self.s.options.grain.unwrap_or(f64::INFINITY);
                if self.times * cost < SHARE * total || (self.s.depth > 0 && cost < AGAIN * grain) {
                    return code;
                }
                let l = chunks::Scheduled { i, from, to, folds: &folds, code: code.clone(), together };
                let mut regs = self.s.regs.clone();
                let known = chunks::Known {
                    costs: self.s.costs(),
                    lanes: self.s.options.lanes,
                    grain,
                    relaxed: self.s.options.relaxed,
                    roots: &self.s.roots,
                    counts: &self.counts,
                    offsets: &self.s.offsets,
                    apart: &apart,
                };
                match chunks::outline(&l, &known, &mut regs, (self.name, self.made)) {
                    Some(code) => {
                        self.s.regs = regs;
                        code
                    }
                    None => code,
                }
            }
            Ins::For { i, from, to, body, order: Order::Given } => {
                let trips = self.s.costs().trips(from, to);
                let body = self.inside(body, trips);
                vec![Ins::For { i, from, to, body, order: Order::Given }]
            }
            Ins::While { condition, test, body } => {
                let (condition, body) = (self.inside(condition, cost::TRIPS), self.inside(body, cost::TRIPS));
                vec![Ins::While { condition, test, body }]
            }
            Ins::If { condition, then, otherwise } => {
                vec![Ins::If { condition, then: self.block(then), otherwise: self.block(otherwise) }]
            }
            other => self.s.ins(other),
        }
    }
    /// What is in a loop whose iterations, so many, come one after the other.
    fn inside(&mut self, block: Block, trips: f64) -> Block {
        self.s.depth += 1;
        let times = self.times;
        self.times = times * trips;
        let block = self.block(block);
        self.times = times;
        self.s.depth -= 1;
        block
    }
}

/// What registers of a function are expected to hold.
struct Expected<'a> {
    /// Its parameters, if that is known.
    args: &'a [Option<i64>],
    counters: Vec<(Reg, i64)>,
    /// Counters of loops over parts, which are for threads only.
    parts: IdSet<Reg>,
}

struct Scheduler<'a> {
    options: &'a Options,
    regs: IndexVec<Reg, RegInfo>,
    /// How often each register of the function before is set.
    defined: IndexVec<Reg, usize>,
    /// The memory that a pointer points into: the register of an argument or allocation.
    roots: IndexVec<Reg, Option<Reg>>,
    /// Pointers that are offsets: pointer, index, type.
    offsets: added::Offsets,
    ranges: ranges::Ranges,
    /// What registers are expected to hold.
    sizes: IdMap<Reg, i64>,
    /// Interleaved memory: see [`lanes::Known::rows`].
    rows: IdMap<Reg, Operand>,
    /// Which loops have been chosen, if they have.
    widths: Option<width::Widths>,
    /// How many loops, with iterations one after the other, are around.
    depth: usize,
    /// Loops that are not put in lanes.
    parts: IdSet<Reg>,
}

/// Copies of fewer elements are loops of lanes where they are made again and again, not calls.
const SHORT: i64 = 128;

impl<'a> Scheduler<'a> {
    fn new(options: &'a Options, f: &mut Function, body: &Block, expected: &Expected<'_>) -> Scheduler<'a> {
        let (defined, roots) = registers(f, body);
        let mut sizes = IdMap::new();
        sizes.extend(f.params.iter().zip(expected.args).filter_map(|(r, n)| Some((*r, (*n)?))));
        sizes.extend(expected.counters.iter().copied());
        cost::follow(body, &defined, &mut sizes);
        let (_, offsets) = added::pointers(body, &defined, &f.regs);
        let regs = std::mem::take(&mut f.regs);
        let ranges = ranges::Ranges::of(body, &defined);
        let (rows, widths, depth, parts) = (IdMap::new(), None, 0, expected.parts.clone());
        Scheduler { options, regs, defined, roots, offsets, ranges, sizes, rows, widths, depth, parts }
    }
    /// The block without the ways that are not taken for the expected sizes, where either would do.
    /// `times`: how much larger than they say results may be.
    fn chosen(&self, block: Block, choices: &IdSet<Reg>, times: i64) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            for inner in ins.blocks_mut() {
                *inner = self.chosen(std::mem::take(inner), choices, times);
            }
            match ins {
                Ins::If { condition: Operand::Reg(c), then, otherwise } if choices.contains(&c) => {
                    let sides = match self.ranges.op(c.into()) {
                        Some((Op::Le, [a, b])) => self.costs().size(*a).zip(self.costs().size(*b)),
                        _ => None,
                    };
                    match sides {
                        Some((a, b)) => {
                            out.extend(if a <= b.saturating_mul(times) { then } else { otherwise })
                        }
                        None => out.push(Ins::If { condition: Operand::Reg(c), then, otherwise }),
                    }
                }
                _ => out.push(ins),
            }
        }
        out
    }
    /// Loops that no other loop in any order is around, as several where that should cost less.
    fn split(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            let Ins::For { i, from, to, body, order: Order::Any(folds) } = &ins else {
                for inner in ins.blocks_mut() {
                    *inner = self.split(std::mem::take(inner));
                }
                out.push(ins);
                continue;
            };
            if self.parts.contains(i) {
                out.push(ins);
                continue;
            }
            let l = lanes::Loop { i: *i, from: *from, to: *to, body, folds };
            let roots = &self.roots;
            let others = split::alternatives(&l, &mut self.regs, &|r| roots.get(r).copied().flatten());
            let mut best = None;
            if !others.is_empty() {
                let mut least = self.tried(std::slice::from_ref(&ins), &[]);
                for (code, regs) in others {
                    let cost = self.tried(&code, &regs);
                    if cost < least {
                        (least, best) = (cost, Some((code, regs)));
                    }
                }
            }
            match best {
                None => out.push(ins),
                Some((code, regs)) => {
                    self.learn(&code, &regs);
                    out.extend(self.split(code));
                }
            }
        }
        out
    }
    /// What a block is expected to cost when it is scheduled. `added`: the registers that it has more.
    fn tried(&mut self, block: &[Ins], added: &[RegInfo]) -> f64 {
        let (given, sizes) = (self.regs.len(), self.sizes.clone());
        self.learn(block, added);
        let code = self.block(block.to_vec());
        let (uses, machine) = (uses::Uses::of(&code), (self.options.model, self.options.lanes));
        let code = jam::block(code, &mut self.regs, uses, machine, &mut self.sizes);
        let cost = self.cost(&code);
        self.sizes = sizes;
        self.regs.truncate(given);
        self.defined.truncate(given);
        self.roots.truncate(given);
        cost
    }
    /// Of registers that other code has made since, nothing is known: not how often they are set, and not where they point.
    fn catch_up(&mut self) {
        for _ in self.defined.len()..self.regs.len() {
            self.defined.push(0);
        }
        for _ in self.roots.len()..self.regs.len() {
            self.roots.push(None);
        }
    }
    /// Takes registers over that were added for a block; each is set once.
    fn learn(&mut self, block: &[Ins], added: &[RegInfo]) {
        self.catch_up();
        for info in added {
            self.regs.push(info.clone());
            self.defined.push(1);
            self.roots.push(None);
        }
        find_roots(block, &self.defined, &mut self.roots);
    }
    /// A register that is set once.
    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.catch_up();
        self.defined.push(1);
        self.regs.push(RegInfo::new(ty, hint))
    }
    /// The value of a primitive, in a new register.
    fn prim(&mut self, out: &mut Block, prim: Prim, args: &[Operand], hint: &str) -> Operand {
        let to = self.reg(Ty::Scalar(prim.result()), hint);
        out.push(Ins::Prim { to, prim, args: args.to_vec() });
        to.into()
    }
    /// Other registers for these.
    fn other_names(&mut self, set: impl IntoIterator<Item = Reg>) -> IdMap<Reg, Reg> {
        self.catch_up();
        let mut names = IdMap::new();
        for r in set {
            let (info, times) = (self.regs[r].clone(), self.defined[r]);
            let copy = self.regs.push(info);
            self.defined.push(times);
            names.insert(r, copy);
        }
        names
    }
    /// Interleaved memory has room for whole blocks of rows; for none where there are no rows, however long they would be.
    fn room(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            for inner in ins.blocks_mut() {
                *inner = self.room(std::mem::take(inner));
            }
            if let Ins::Alloc { to, count, .. } = &mut ins
                && let Some(row) = self.rows.get(to)
            {
                let mut with = |op: Op, args: [Operand; 2]| {
                    let to = self.regs.push(RegInfo::new(Ty::I64, "room"));
                    let prim = Prim::Op(op, Scalar::I64);
                    out.push(Ins::Prim { to, prim, args: args.to_vec() });
                    Operand::Reg(to)
                };
                let row = with(Op::Min, [*row, Operand::i64(1 << 50)]);
                let row = with(Op::Min, [row, *count]);
                let lanes = self.widths.as_ref().map_or(self.options.lanes, |w| w.of_memory(*to));
                let more = with(Op::Mul, [row, Operand::i64(lanes as i64)]);
                *count = with(Op::Add, [*count, more]);
            }
            out.push(ins);
        }
        out
    }
    fn block(&mut self, block: Block) -> Block {
        block.into_iter().flat_map(|ins| self.ins(ins)).collect()
    }
    fn costs(&self) -> Costs<'_> {
        Costs { model: self.options.model, regs: &self.regs, sizes: &self.sizes }
    }
    fn cost(&self, block: &Block) -> f64 {
        self.costs().of(block)
    }
    fn ins(&mut self, ins: Ins) -> Block {
        match ins {
            Ins::For { i, from, to, body, order } => self.for_loop(i, from, to, body, order),
            Ins::While { condition, test, body } => {
                self.depth += 1;
                let (condition, body) = (self.block(condition), self.block(body));
                self.depth -= 1;
                vec![Ins::While { condition, test, body }]
            }
            Ins::If { condition, then, otherwise } => {
                vec![Ins::If { condition, then: self.block(then), otherwise: self.block(otherwise) }]
            }
            Ins::Copy { count, ty, .. } | Ins::Fill { count, ty, .. } if self.is_short(count, ty) => {
                self.in_lanes(&ins).unwrap_or_else(|| vec![ins])
            }
            other => vec![other],
        }
    }
    /// Whether a copy of so many elements is worth a loop of lanes.
    fn is_short(&self, count: Operand, ty: Ty) -> bool {
        let machine = self.options.model.registers > 0;
        let few = self.costs().size(count).is_some_and(|n| n <= SHORT);
        machine && self.depth > 0 && few && ty.scalar().is_some()
    }
    /// A copy as a loop of lanes.
    fn in_lanes(&mut self, ins: &Ins) -> Option<Block> {
        let (to, value, count, ty) = match *ins {
            Ins::Copy { to, from, count, ty } => (to, Err(from), count, ty),
            Ins::Fill { pointer, count, value, ty } => (pointer, Ok(value), count, ty),
            _ => return None,
        };
        let i = self.regs.push(RegInfo::new(Ty::I64, "i"));
        let index = i.into();
        let mut body = Vec::new();
        let value = value.unwrap_or_else(|pointer| {
            let to = self.regs.push(RegInfo::new(ty, "x"));
            body.push(Ins::Load { to, pointer, index });
            to.into()
        });
        body.push(Ins::Store { pointer: to, index, value, ty });
        let l = lanes::Loop { i, from: Operand::i64(0), to: count, body: &body, folds: &[] };
        self.side_by_side(&l, self.options.lanes).ok()
    }
    fn side_by_side(&mut self, l: &lanes::Loop<'_>, lanes: usize) -> Result<Block, lanes::No> {
        if self.parts.contains(&l.i) {
            return Err(lanes::No::Parts);
        }
        let roots = &self.roots;
        let root = |r: Reg| roots.get(r).copied().flatten();
        let (defined, rows, offsets) = (&self.defined, &self.rows, &self.offsets);
        let fills = self.options.does(Pass::Fill);
        let known = lanes::Known { defined, root: &root, rows, offsets, ranges: &self.ranges, fills };
        lanes::side_by_side(l, lanes, &mut self.regs, &known)
    }
    fn for_loop(&mut self, i: Reg, from: Operand, to: Operand, body: Block, order: Order) -> Block {
        let lanes = match &self.widths {
            Some(widths) => widths.of_loop(i),
            None => Some(self.options.lanes),
        };
        let wide = match (&order, lanes) {
            (Order::Any(folds), Some(lanes)) => {
                let l = lanes::Loop { i, from, to, body: &body, folds };
                let wide = self.side_by_side(&l, lanes);
                if self.widths.is_some() {
                    return wide.unwrap_or_else(|no| panic!("{no:?}: the loop was in lanes before"));
                }
                wide.ok()
            }
            _ => None,
        };
        self.depth += 1;
        let body = self.block(body);
        self.depth -= 1;
        let plain = vec![Ins::For { i, from, to, body, order }];
        let Some(wide) = wide else { return plain };
        let (wide_cost, plain_cost) = (self.cost(&wide), self.cost(&plain));
        if plain_cost <= wide_cost { plain } else { wide }
    }
}

/// A body with equal places in one register.
fn numbered(f: &Function, body: Block) -> Block {
    let (defined, _) = registers(f, &body);
    number(body, Reach::Places, (&defined, &f.regs), &f.results)
}

/// How often each register is set, and where pointers that are set once point into.
fn registers(f: &Function, body: &Block) -> (IndexVec<Reg, usize>, IndexVec<Reg, Option<Reg>>) {
    let mut defined: IndexVec<Reg, usize> = f.regs.iter().map(|_| 0).collect();
    let mut roots: IndexVec<Reg, Option<Reg>> = f.regs.iter().map(|_| None).collect();
    for p in &f.params {
        defined[*p] += 1;
        if f.regs[*p].ty == Ty::Pointer {
            roots[*p] = Some(*p);
        }
    }
    count(body, &mut defined);
    find_roots(body, &defined, &mut roots);
    (defined, roots)
}

fn count(block: &Block, defined: &mut IndexVec<Reg, usize>) {
    for ins in block {
        for &to in ins.sets() {
            defined[to] += 1;
        }
        ins.blocks().into_iter().for_each(|b| count(b, defined));
    }
}

fn find_roots(block: &[Ins], defined: &IndexVec<Reg, usize>, roots: &mut IndexVec<Reg, Option<Reg>>) {
    for ins in block {
        match ins {
            Ins::Alloc { to, .. } if defined[*to] == 1 => roots[*to] = Some(*to),
            Ins::Offset { to, pointer: Operand::Reg(from), .. }
            | Ins::Set { to, value: Operand::Reg(from) }
                if defined[*to] == 1 =>
            {
                roots[*to] = roots[*from];
            }
            _ => {}
        }
        ins.blocks().into_iter().for_each(|b| find_roots(b, defined, roots));
    }
}
