//! Large functions cut into pieces, and equal ones made one.
//!
//! LLVM's time grows faster than the size of a function, and functions can be compiled at the same time. So loops and branches at
//! the outer levels of a large function become functions of their own, called where they stood, and so do runs of the blocks that are
//! long all the same. Then functions that differ in names only are compiled once: derivatives and unrolled programs have many.
//!
//! Assumes a module that has been scheduled. Guarantees: the same operations in the same order, equal results for equal modules; functions
//! of the module keep their numbers, and pieces come after them. Recursive functions stay as they are: they count their
//! calls.

mod live;
mod runs;
mod same;

use crate::text::uses;
use live::{Uses, Walk};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet, Index, IndexVec};
use pullback_kernel::walk;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Reg, Ty, recursive, size};
use same::{Compact, Same};

/// What is cut, in instructions of kernel IR.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Functions that are smaller stay whole.
    pub whole: usize,
    /// A loop or branch that is smaller is no piece: a call is some instructions itself. Loops of few instructions may be much text,
    /// since lanes are stored and added one by one.
    pub least: usize,
    /// The same inside of a loop, where the call is made again and again.
    pub least_inside: usize,
    /// A loop or branch that is larger is cut inside first.
    pub most: usize,
    /// A block that is longer without its large loops and branches is cut into runs.
    pub longest: usize,
    /// So long is a run.
    pub run: usize,
    /// So much is worth a text of its own.
    pub text: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { whole: 300, least: 8, least_inside: 24, most: 1200, longest: 1200, run: 400, text: 500 }
    }
}

impl Limits {
    /// As many pieces as possible: for tests.
    pub const SMALL: Limits =
        Limits { whole: 0, least: 2, least_inside: 2, most: 8, longest: 6, run: 4, text: 40 };
}

/// A module in pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The functions of the module, then the pieces of them.
    pub module: Module,
    /// Where an allocation of a piece was, if its register has another number now.
    pub places: IdMap<(FunctionId, Reg), (FunctionId, Reg)>,
    /// The function that has the same code, for each function: itself, or an earlier one that is called instead.
    pub same: IndexVec<FunctionId, FunctionId>,
    /// How many functions the module had before: those that may be called from outside.
    pub whole: usize,
}

/// Cuts the functions of a module.
pub fn cut(module: &Module, limits: &Limits) -> Pieces {
    let (recursive, parts) = (recursive(module), uses::parts(module));
    let mut same = Same::default();
    let mut out = Pieces {
        module: module.clone(),
        places: IdMap::new(),
        same: IndexVec::new(),
        whole: module.functions.len(),
    };
    for (id, f) in module.functions.iter_enumerated() {
        // What may be called from outside stays.
        let first = match parts.contains(&id) && !recursive[id] {
            true => {
                let code = same::compact(f, f.body.clone(), (&f.params, &f.results));
                same.find(&code, &spans(module, id, &code), id)
            }
            false => id,
        };
        out.same.push(first);
    }
    out.module.functions.iter_mut().for_each(|f| out_of_one(&mut f.body, &out.same));
    for id in module.functions.ids() {
        if recursive[id] || out.same[id] != id || size(&module.functions[id].body) < limits.whole {
            continue;
        }
        let body = std::mem::take(&mut out.module.functions[id].body);
        let f = &out.module.functions[id];
        let uses = Uses::new(f, &body);
        let f = f.clone();
        let mut known = Walk::default();
        known.set.extend(&f.params);
        let (least, whole, fresh) = (limits.least, size(&body), IdSet::new());
        let mut knife =
            Knife { f, id, limits, least, whole, uses, known, fresh, out: &mut out, same: &mut same };
        let mut body = knife.block(body);
        let first = knife.fresh.iter().map(|r| Ins::Set { to: *r, value: nothing(knife.f.regs[*r].ty) });
        body.splice(0..0, first.collect::<Vec<_>>());
        out.module.functions[id].body = body;
    }
    let (called, open) = (called(&out.module), runs::open(&out.module));
    for id in out.module.functions.ids().collect::<Vec<_>>() {
        let is_recursive = recursive.get(id).copied().unwrap_or(false);
        let is_called = called.contains(&id);
        if !is_recursive && out.same[id] == id && !(is_called && open.contains(&id)) {
            runs::cut(id, is_called, limits, &mut out, &mut same);
        }
    }
    out
}

/// The functions that others call.
fn called(module: &Module) -> IdSet<FunctionId> {
    let mut called = IdSet::new();
    for f in module.functions.iter() {
        walk(&f.body, &mut |ins| {
            if let Ins::Call { function, .. } = ins {
                called.insert(*function);
            }
        });
    }
    called
}

/// Any value of a type.
fn nothing(ty: Ty) -> Operand {
    ty.scalar().map_or(Operand::Null, |s| Operand::Const(s.zero()))
}

/// Where allocations of a function's code are in the source program.
fn spans(module: &Module, id: FunctionId, code: &Compact) -> Vec<(Reg, Span)> {
    let place = |(from, to): (&Reg, &Reg)| Some((*to, module.facts(id, *from)?.place?));
    code.numbers.iter().filter_map(place).collect()
}

/// Calls of a function become calls of the one that has the same code.
fn out_of_one(block: &mut Block, same: &IndexVec<FunctionId, FunctionId>) {
    for ins in block {
        if let Ins::Call { function, .. } | Ins::Chunks { function, .. } = ins {
            *function = same[*function];
        }
        ins.blocks_mut().into_iter().for_each(|b| out_of_one(b, same));
    }
}

/// An instruction and those inside.
fn size_of(ins: &Ins) -> usize {
    size(std::slice::from_ref(ins))
}

/// Cuts one function.
struct Knife<'a> {
    /// The function without its body.
    f: Function,
    id: FunctionId,
    limits: &'a Limits,
    /// Smaller loops and branches are no pieces at the present place.
    least: usize,
    /// The size of the function.
    whole: usize,
    /// What the whole function reads and sets.
    uses: Uses,
    /// What is set for sure at the present place.
    known: Walk,
    /// Registers that pieces take, though it may be that nothing has set them.
    fresh: IdSet<Reg>,
    out: &'a mut Pieces,
    same: &'a mut Same,
}

impl Knife<'_> {
    fn block(&mut self, block: Block) -> Block {
        block.into_iter().map(|ins| self.ins(ins)).collect()
    }

    fn ins(&mut self, mut ins: Ins) -> Ins {
        let uncut = size_of(&ins);
        let may_be_cut = matches!(ins, Ins::For { .. } | Ins::While { .. } | Ins::If { .. });
        if may_be_cut && uncut > self.limits.most {
            let counter = ins.sets().to_vec();
            let outside = self.least;
            if !matches!(ins, Ins::If { .. }) {
                self.least = self.limits.least_inside;
            }
            for inner in ins.blocks_mut() {
                let before = self.known.set.clone();
                self.known.set.extend(&counter);
                *inner = self.block(std::mem::take(inner));
                self.known.set = before;
            }
            self.least = outside;
        }
        let may_be_piece = may_be_cut || matches!(ins, Ins::Lanes { .. });
        let is_large = size_of(&ins) >= self.least;
        // What is nearly the whole function is no smaller as a piece of it, and would be called once more.
        let is_part = self.whole - uncut >= self.limits.least;
        let ins = if may_be_piece && is_large && is_part { self.piece(ins) } else { ins };
        self.known.ins(&ins);
        ins
    }

    /// The call of a new function, or the instruction if it cannot be one.
    fn piece(&mut self, ins: Ins) -> Ins {
        let Some(live) = live::interface(std::slice::from_ref(&ins), &self.f, &self.uses, &|_| false) else {
            return ins;
        };
        self.fresh.extend(live.params.iter().filter(|r| !self.known.set.contains(r)));
        // The function has the call instead.
        self.uses.remove(&ins);
        let args = live.params.iter().map(|r| (*r).into()).collect();
        let body = live.before.into_iter().chain([ins]).collect();
        let code = same::compact(&self.f, body, (&live.params, &live.results));
        let function = add(self.out, self.same, self.id, &self.f.name, code);
        let call = Ins::Call { to: live.results, function, args };
        self.uses.add(&call);
        call
    }
}

/// The function with this code, which was a part of another one.
fn add(out: &mut Pieces, same: &mut Same, of: FunctionId, name: &str, mut code: Compact) -> FunctionId {
    let new = FunctionId::new(out.module.functions.len());
    let spans = spans(&out.module, of, &code);
    let there = same.find(&code, &spans, new);
    if there == new {
        for (from, to) in &code.numbers {
            out.places.insert((new, *to), (of, *from));
        }
        code.function.name = format!("{name}:{}", new.index());
        out.module.functions.push(code.function);
        out.same.push(new);
    }
    there
}
