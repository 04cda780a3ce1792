//! The code of a group: parts of blocks, seams between them, windows on memory that only the group uses, and cells for what code between its loops finds.

use super::{Blocks, Group, PARTS, Place, Sizes, Stage, allocated};
use crate::ir::{Block, Ins, Operand, Order, Reg, Ty};
use crate::lower::with_mark;
use crate::schedule::distribution::rename;
use crate::schedule::uses::Uses;
use pullback_base::index::{IdMap, IdSet};
use pullback_prim::{Op, Prim, Scalar};

impl Blocks<'_, '_> {
    pub(super) fn emit(&mut self, group: Group, out: &mut Block) {
        let Group { mut early, mut stages, late, to: n, sizes, .. } = group;
        let moved = self.sink(&mut early, &mut stages, out);
        let windows = self.windows((&stages, &moved), &sizes, (out, &early));
        out.retain(|ins| !is_window(ins, &windows));
        out.extend(early.into_iter().filter(|ins| !is_window(ins, &windows)));
        let cells = self.cells(&mut stages, out);
        let mut layout = self.layout(windows, (n, sizes), None, out);
        self.parts(&mut stages, &mut layout, out);
        for (cell, r) in cells {
            out.push(Ins::Load { to: r, pointer: cell.into(), index: Operand::i64(0) });
        }
        out.extend(late);
    }

    /// Stages in parts and seams.
    pub(super) fn parts(&mut self, stages: &mut [Stage], layout: &mut Layout, out: &mut Block) {
        let part = self.part(stages, layout);
        out.push(part);
        let seams = self.seams(stages, layout);
        out.push(seams);
    }

    /// Parts of whole blocks, the last one longer, and memory for what seams need.
    pub(super) fn layout(
        &mut self,
        windows: Vec<Window>,
        (n, sizes): (Operand, Sizes),
        steps: Option<Steps>,
        out: &mut Block,
    ) -> Layout {
        let number = Operand::i64;
        let (block, reach) = (sizes.block, windows.first().map_or(0, |w| w.reach));
        let blocks = self.int(out, Op::Div, [n, number(block)]);
        let each = self.int(out, Op::Div, [blocks, number(PARTS)]);
        let each = self.int(out, Op::Add, [each, number(1)]);
        let each = self.int(out, Op::Max, [each, number(sizes.part)]);
        let length = self.int(out, Op::Mul, [each, number(block)]);
        let parts = self.int(out, Op::Div, [n, length]);
        let parts = self.int(out, Op::Max, [parts, number(1)]);
        let last = self.int(out, Op::Sub, [parts, number(1)]);
        let (most, further) = steps.as_ref().map_or((1, 0), |s| (s.most, s.most * (s.after + s.before)));
        let seam = 2 * reach + further;
        let mut kept = |w: &Window| {
            let count = self.int(out, Op::Mul, [parts, number(most * seam)]);
            let count = self.room(out, count, n, w);
            self.alloc(out, count, w.ty, "seams")
        };
        let kept = windows.iter().map(&mut kept).collect();
        let names = IdMap::new();
        Layout { n, block, reach, seam, each, length, parts, last, windows, kept, names, steps }
    }

    /// The loop over parts, each of them a loop over blocks. Stages use the windows then.
    fn part(&mut self, stages: &mut [Stage], layout: &mut Layout) -> Ins {
        let (number, block) = (Operand::i64, layout.block);
        let i = self.counter("part", 0);
        self.made.parts.push(i);
        let mut body = Block::new();
        let room = number(layout.room() * layout.most());
        let mut own = |w: &Window| {
            let room = self.room(&mut body, room, layout.n, w);
            self.alloc(&mut body, room, w.ty, "window")
        };
        let own = layout.windows.iter().map(&mut own).collect();
        let start = self.int(&mut body, Op::Mul, [i.into(), layout.length]);
        let is_first = self.int(&mut body, Op::Eq, [i.into(), number(0)]);
        let is_last = self.int(&mut body, Op::Eq, [i.into(), layout.last]);
        // The last block of all is shorter, and runs what is left of all stages.
        let left = self.int(&mut body, Op::Sub, [layout.n, start]);
        let left = self.int(&mut body, Op::Div, [left, number(block)]);
        let left = self.int(&mut body, Op::Add, [left, number(1)]);
        let left = self.int(&mut body, Op::Max, [left, number(1)]);
        let count = self.select(&mut body, is_last, left, layout.each);
        let part = Part { i: i.into(), own, start, is_first, is_last, count };
        let blocks = self.blocks(stages, layout, &part, &mut body);
        body.push(blocks);
        // What the seam behind it needs.
        let mut copies = Block::new();
        if !layout.windows.is_empty() {
            let t = self.counter("step", 0);
            let step = self.step(&mut copies, layout, t);
            let own = self.own(&mut copies, layout, &part, &step);
            let behind = self.int(&mut copies, Op::Add, [part.i, number(1)]);
            let place = self.seam(&mut copies, behind, layout, &step);
            for ((w, own), kept) in layout.windows.iter().zip(own).zip(&layout.kept) {
                let to = self.beside(&mut copies, *kept, place, w);
                let from = self.beside(&mut copies, own, number(block), w);
                let count = self.elements(&mut copies, number(w.reach - w.after), w);
                copies.push(Ins::Copy { to, from, count, ty: w.ty });
            }
            copies = layout.in_steps(t, copies);
        }
        body.push(Ins::If { condition: is_last, then: Vec::new(), otherwise: copies });
        let body = with_mark(body, &mut self.s.regs);
        Ins::For { i, from: number(0), to: layout.parts, body, order: Order::Any(Vec::new()) }
    }

    /// The loop over the blocks of a part.
    fn blocks(&mut self, stages: &mut [Stage], layout: &mut Layout, part: &Part, out: &mut Block) -> Ins {
        let (number, block, n) = (Operand::i64, layout.block, layout.n);
        let end = self.int(out, Op::Sub, [part.count, number(1)]);
        let i = self.counter("block", 1);
        let mut body = Block::new();
        let far = self.int(&mut body, Op::Mul, [i.into(), number(block)]);
        let from = self.int(&mut body, Op::Add, [part.start, far]);
        let next = self.int(&mut body, Op::Add, [from, number(block)]);
        let is_new = self.int(&mut body, Op::Eq, [i.into(), number(0)]);
        let is_end = self.int(&mut body, Op::Eq, [i.into(), end]);
        let is_end = self.both(&mut body, part.is_last, is_end);
        let goes_on = self.no(&mut body, is_end);
        let mut code = Block::new();
        let t = layout.steps.as_ref().map_or(i, |steps| steps.t);
        let step = self.step(&mut code, layout, t);
        let own = self.own(&mut code, layout, part, &step);
        let (from, next) = match &step {
            Some(step) => (
                self.int(&mut code, Op::Sub, [from, step.after]),
                self.int(&mut code, Op::Sub, [next, step.after]),
            ),
            None => (from, next),
        };
        // The windows move.
        let mut moves = Block::new();
        for (w, own) in layout.windows.iter().zip(&own) {
            let from = self.beside(&mut moves, *own, number(block), w);
            let count = number(w.reach - w.after);
            let count = self.elements(&mut moves, count, w);
            moves.push(Ins::Copy { to: (*own).into(), from, count, ty: w.ty });
        }
        code.push(Ins::If { condition: is_new, then: Vec::new(), otherwise: moves });
        let by = self.int(&mut code, Op::Sub, [number(layout.reach), from]);
        layout.names = self.moved(&mut code, &layout.windows, &own, by);
        code.extend(layout.steps.iter().flat_map(|steps| steps.early.clone()));
        for stage in stages {
            rename(&mut stage.body, &layout.names);
            let body = stage.body.clone();
            let Some(i) = stage.i else {
                let condition = self.both(&mut code, part.is_first, is_new);
                code.push(Ins::If { condition, then: body, otherwise: Vec::new() });
                continue;
            };
            let mut least = self.int(&mut code, Op::Add, [part.start, number(stage.before)]);
            if let Some(step) = &step {
                least = self.int(&mut code, Op::Add, [least, step.before]);
            }
            let least = self.select(&mut code, part.is_first, number(0), least);
            let low = self.int(&mut code, Op::Sub, [from, number(stage.after)]);
            let low = self.int(&mut code, Op::Max, [low, least]);
            let low = self.int(&mut code, Op::Max, [low, number(0)]);
            let high = self.int(&mut code, Op::Sub, [next, number(stage.after)]);
            let high = self.select(&mut code, goes_on, high, n);
            let high = self.int(&mut code, Op::Min, [high, n]);
            code.push(Ins::For { i, from: low, to: high, body, order: Order::Any(Vec::new()) });
        }
        // What the seam before the part needs.
        let mut copies = Block::new();
        if !layout.windows.is_empty() {
            let place = self.seam(&mut copies, part.i, layout, &step);
            for ((w, own), kept) in layout.windows.iter().zip(&own).zip(&layout.kept) {
                let mut begin = number(w.reach + w.before);
                if let Some(step) = &step {
                    let further = self.int(&mut copies, Op::Add, [step.after, step.before]);
                    begin = self.int(&mut copies, Op::Add, [begin, further]);
                }
                let place = self.int(&mut copies, Op::Add, [place, begin]);
                let to = self.beside(&mut copies, *kept, place, w);
                let from = self.beside(&mut copies, *own, begin, w);
                let count = self.elements(&mut copies, number(w.reach - w.before), w);
                copies.push(Ins::Copy { to, from, count, ty: w.ty });
            }
        }
        let begins = self.no(&mut code, part.is_first);
        let begins = self.both(&mut code, is_new, begins);
        code.push(Ins::If { condition: begins, then: copies, otherwise: Vec::new() });
        body.extend(layout.in_steps(t, code));
        Ins::For { i, from: number(0), to: part.count, body, order: Order::Given }
    }

    /// The loop over the seams between parts. These are longer than a seam and what it reads, so that one does not need another.
    fn seams(&mut self, stages: &[Stage], layout: &Layout) -> Ins {
        let number = Operand::i64;
        let i = self.counter("seam", 1);
        self.made.parts.push(i);
        let mut body = Block::new();
        let place = self.int(&mut body, Op::Mul, [i.into(), layout.length]);
        let mut code = Block::new();
        let t = self.counter("step", 1);
        let step = self.step(&mut code, layout, t);
        let (mut from, mut to) = (place, place);
        if let Some(step) = &step {
            from = self.int(&mut code, Op::Sub, [place, step.after]);
            to = self.int(&mut code, Op::Add, [place, step.before]);
        }
        let by = self.seam(&mut code, i.into(), layout, &step);
        let by = self.int(&mut code, Op::Add, [by, number(layout.reach)]);
        let by = self.int(&mut code, Op::Sub, [by, from]);
        let kept = self.moved(&mut code, &layout.windows, &layout.kept, by);
        let mut again: Block = layout.steps.iter().flat_map(|steps| steps.early.clone()).collect();
        for stage in stages {
            let Some(i) = stage.i else { continue };
            let low = self.int(&mut code, Op::Sub, [from, number(stage.after)]);
            let high = self.int(&mut code, Op::Add, [to, number(stage.before)]);
            let high = self.int(&mut code, Op::Min, [high, layout.n]);
            again.push(Ins::For { i, from: low, to: high, body: stage.body.clone(), order: Order::Given });
        }
        let mut names = self.s.other_names(Uses::of(&again).set());
        names.extend(layout.windows.iter().map(|w| (layout.names[&w.root], kept[&w.root])));
        names.extend(layout.steps.iter().map(|steps| (steps.t, t)));
        rename(&mut again, &names);
        code.extend(again);
        body.extend(layout.in_steps(t, code));
        Ins::For { i, from: number(1), to: layout.parts, body, order: Order::Any(Vec::new()) }
    }

    /// What the iteration of a counter adds, where there are several; none elsewhere.
    fn step(&mut self, out: &mut Block, layout: &Layout, t: Reg) -> Option<Step> {
        let steps = layout.steps.as_ref()?;
        let number = self.int(out, Op::Sub, [t.into(), steps.from]);
        let mut times = |n: i64| self.int(out, Op::Mul, [number, Operand::i64(n)]);
        Some(Step { after: times(steps.after), before: times(steps.before), number })
    }
    /// The windows of a part, those of this step.
    fn own(&mut self, out: &mut Block, layout: &Layout, part: &Part, step: &Option<Step>) -> Vec<Reg> {
        let Some(step) = step.as_ref().filter(|_| !part.own.is_empty()) else { return part.own.clone() };
        let by = self.int(out, Op::Mul, [step.number, Operand::i64(layout.room())]);
        let memory = layout.windows.iter().zip(&part.own);
        memory.filter_map(|(w, own)| self.beside(out, *own, by, w).as_reg()).collect()
    }
    /// Where the memory of a seam begins, that of this step.
    fn seam(&mut self, out: &mut Block, seam: Operand, layout: &Layout, step: &Option<Step>) -> Operand {
        let at = match step {
            Some(step) => {
                let first = self.int(out, Op::Mul, [seam, Operand::i64(layout.most())]);
                self.int(out, Op::Add, [first, step.number])
            }
            None => seam,
        };
        self.int(out, Op::Mul, [at, Operand::i64(layout.seam)])
    }
}

/// Parts and blocks of a group.
pub(super) struct Layout {
    /// How many iterations there are.
    n: Operand,
    /// The iterations of a block.
    block: i64,
    reach: i64,
    /// How many of them a seam may reach.
    seam: i64,
    /// How many blocks a part has, how many iterations, how many parts there are, and the last one.
    each: Operand,
    length: Operand,
    parts: Operand,
    last: Operand,
    windows: Vec<Window>,
    /// For each window, what is needed of it on both sides of each seam.
    kept: Vec<Reg>,
    /// For the memory of each window, the pointer that stands for it in a block.
    names: IdMap<Reg, Reg>,
    /// The iterations around them that each block runs.
    steps: Option<Steps>,
}

impl Layout {
    /// How many steps a block runs at most.
    fn most(&self) -> i64 {
        self.steps.as_ref().map_or(1, |steps| steps.most)
    }
    /// How many elements or rows a window has. The last block of all goes to the end in all steps, however far behind they are.
    fn room(&self) -> i64 {
        self.block + self.reach + self.steps.as_ref().map_or(0, |steps| steps.most * steps.after)
    }
    /// Code for each step.
    fn in_steps(&self, t: Reg, code: Block) -> Block {
        match &self.steps {
            Some(s) => vec![Ins::For { i: t, from: s.from, to: s.to, body: code, order: Order::Given }],
            None => code,
        }
    }
}

/// Iterations of a loop around a group that blocks run ([`steps`]).
pub(super) struct Steps {
    pub(super) t: Reg,
    /// What each begins with.
    pub(super) early: Block,
    /// The first one that blocks run now, and where they end.
    pub(super) from: Operand,
    pub(super) to: Operand,
    /// How many that are at most.
    pub(super) most: i64,
    /// How much later than the one before each runs in blocks, and how much more it leaves out at the beginning of a part.
    pub(super) after: i64,
    pub(super) before: i64,
}

/// One of them: its number among them, and how far it is behind the first.
struct Step {
    number: Operand,
    after: Operand,
    before: Operand,
}

/// A part in its loop.
struct Part {
    i: Operand,
    /// The memory of its windows.
    own: Vec<Reg>,
    /// Its first iteration.
    start: Operand,
    is_first: Operand,
    is_last: Operand,
    /// How many blocks it has.
    count: Operand,
}

/// Memory that only a group uses.
pub(super) struct Window {
    pub(super) root: Reg,
    pub(super) ty: Ty,
    /// The elements of a row; 1 where loops are no nests.
    pub(super) row: Operand,
    /// How many elements or rows are reached to both sides.
    pub(super) reach: i64,
    /// How many at both ends of a part its stages leave out.
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Blocks<'_, '_> {
    /// Moves pointers into memory that is allocated here, and that only stages use, into these. Gives of what they were computed, and in how many stages they are.
    pub(super) fn sink(
        &mut self,
        early: &mut Block,
        stages: &mut [Stage],
        before: &Block,
    ) -> Vec<(Reg, usize)> {
        let mut moved = Vec::new();
        let made: IdSet<Reg> = allocated(before.iter().chain(&*early)).map(|(root, _)| root).collect();
        for k in (0..early.len()).rev() {
            let Ins::Offset { to, pointer: Operand::Reg(pointer), .. } = early[k] else { continue };
            let inside: usize = stages.iter().map(|s| Uses::of(&s.body).reads(to)).sum();
            let is_into = self.root(to.into()).is_some_and(|root| made.contains(&root));
            if !is_into || inside != self.uses.reads(to) {
                continue;
            }
            let ins = early.remove(k);
            let users: Vec<&mut Stage> =
                stages.iter_mut().filter(|s| Uses::of(&s.body).reads(to) > 0).collect();
            moved.push((pointer, users.len()));
            for stage in users {
                stage.body.insert(0, ins.clone());
                let names = self.s.other_names([to]);
                rename(&mut stage.body, &names);
            }
        }
        moved
    }
    /// The memory that is allocated here, for an element or a row of each iteration, and that nothing but the stages uses.
    /// `moved`: pointers that are in so many stages instead of before them ([`Blocks::sink`]).
    pub(super) fn windows(
        &self,
        (stages, moved): (&[Stage], &[(Reg, usize)]),
        sizes: &Sizes,
        (before, early): (&Block, &Block),
    ) -> Vec<Window> {
        let inside: Vec<Uses> = stages.iter().map(|s| Uses::of(&s.body)).collect();
        let mut windows = Vec::new();
        let mut reach = 0;
        for (root, ty) in allocated(before.iter().chain(early)) {
            let row = stages.iter().flat_map(|s| &s.accesses).find(|a| a.root == root).map(|a| a.row);
            let Some(row) = row else { continue };
            let all: usize = inside.iter().map(|u| u.reads(root)).sum();
            // As many as there were, but for those that there are several of now, or none.
            let (mut found, mut given) = (all, self.uses.reads(root));
            for (_, times) in moved.iter().filter(|(pointer, _)| *pointer == root) {
                (found, given) = (found + 1, given + times);
            }
            let mut fits = all > 0 && found == given;
            let (mut before, mut after) = (i64::MAX, i64::MAX);
            for stage in stages {
                for access in stage.accesses.iter().filter(|a| a.root == root) {
                    if access.writes {
                        (before, after) = (before.min(stage.before), after.min(stage.after));
                    }
                    fits &= access.base.is_empty() && access.ty == ty && access.row == row;
                    match access.place {
                        Place::Beside(first, last) => {
                            fits &= !access.writes || (first, last) == (0, 0);
                            reach = reach.max(stage.after - first).max(stage.before + last);
                        }
                        Place::Fixed(_) => {}
                        Place::Unknown => fits = false,
                    }
                }
            }
            if fits && after < i64::MAX {
                windows.push(Window { root, ty, row, reach: 0, before, after });
            }
        }
        let reach = sizes.aligned(reach).max(1);
        if 2 * reach > sizes.block {
            return Vec::new();
        }
        windows.iter_mut().for_each(|w| w.reach = reach);
        windows
    }
    /// Cells for what code between the loops hands on: with the registers that are to hold it after the group.
    fn cells(&mut self, stages: &mut [Stage], out: &mut Block) -> Vec<(Reg, Reg)> {
        let mut cells = Vec::new();
        for stage in stages.iter_mut().filter(|s| s.i.is_none()) {
            let inside = Uses::of(&stage.body);
            let handed_on: Vec<Reg> =
                inside.set().into_iter().filter(|r| self.uses.reads(*r) > inside.reads(*r)).collect();
            let names = self.s.other_names(inside.set());
            rename(&mut stage.body, &names);
            for r in handed_on {
                let ty = self.s.regs[r].ty;
                let cell = self.alloc(out, Operand::i64(1), ty, "cell");
                let (pointer, index, value) = (cell.into(), Operand::i64(0), names[&r].into());
                stage.body.push(Ins::Store { pointer, index, value, ty });
                cells.push((cell, r));
            }
        }
        cells
    }
    /// Pointers to memory of which the first element is so much further.
    fn moved(&mut self, out: &mut Block, windows: &[Window], memory: &[Reg], by: Operand) -> IdMap<Reg, Reg> {
        let mut names = IdMap::new();
        for (w, memory) in windows.iter().zip(memory) {
            if let Operand::Reg(to) = self.beside(out, *memory, by, w) {
                names.insert(w.root, to);
            }
        }
        names
    }
    /// So many elements or rows.
    fn elements(&mut self, out: &mut Block, count: Operand, w: &Window) -> Operand {
        if w.row.as_i64() == Some(1) { count } else { self.int(out, Op::Mul, [count, w.row]) }
    }
    /// How many elements memory for them has: none where the group has no iterations, however long rows would be.
    fn room(&mut self, out: &mut Block, count: Operand, n: Operand, w: &Window) -> Operand {
        if w.row.as_i64() == Some(1) {
            return count;
        }
        let some = self.int(out, Op::Min, [n, Operand::i64(1)]);
        let count = self.int(out, Op::Mul, [count, some]);
        self.elements(out, count, w)
    }
    /// A pointer to what is so many elements or rows further.
    fn beside(&mut self, out: &mut Block, memory: Reg, by: Operand, w: &Window) -> Operand {
        let by = self.elements(out, by, w);
        self.offset(out, memory.into(), by, w.ty)
    }
    /// A counter that is expected to be this.
    pub(super) fn counter(&mut self, hint: &str, expected: i64) -> Reg {
        let counter = self.s.reg(Ty::I64, hint);
        self.made.counters.push((counter, expected));
        counter
    }
    fn alloc(&mut self, out: &mut Block, count: Operand, ty: Ty, hint: &str) -> Reg {
        let to = self.s.reg(Ty::Pointer, hint);
        out.push(Ins::Alloc { to, count, ty });
        to
    }
    fn offset(&mut self, out: &mut Block, pointer: Operand, index: Operand, ty: Ty) -> Operand {
        let to = self.s.reg(Ty::Pointer, "place");
        out.push(Ins::Offset { to, pointer, index, ty, room: None });
        to.into()
    }
    pub(super) fn int(&mut self, out: &mut Block, op: Op, args: [Operand; 2]) -> Operand {
        self.s.prim(out, Prim::Op(op, Scalar::I64), &args, "block")
    }
    fn select(&mut self, out: &mut Block, condition: Operand, a: Operand, b: Operand) -> Operand {
        self.s.prim(out, Prim::Op(Op::Select, Scalar::I64), &[condition, a, b], "block")
    }
    fn both(&mut self, out: &mut Block, a: Operand, b: Operand) -> Operand {
        self.s.prim(out, Prim::Op(Op::And, Scalar::Bool), &[a, b], "block")
    }
    fn no(&mut self, out: &mut Block, a: Operand) -> Operand {
        self.s.prim(out, Prim::Op(Op::Not, Scalar::Bool), &[a], "block")
    }
}

/// Whether an instruction makes memory that windows stand for.
pub(super) fn is_window(ins: &Ins, windows: &[Window]) -> bool {
    matches!(ins, Ins::Alloc { to, .. } if windows.iter().any(|w| w.root == *to))
}
