//! What of a function the analysis has facts about: its blocks, loops and sites, and where a register is mentioned.
//!
//! The *home* of a register is the innermost block that all mentions of it are in. Whenever its home begins, a register counts as not set:
//! when it first begins, nothing has set it, so that code which reads it before it sets it is wrong in any case. What is known of a
//! register therefore never leaves its home, and branches and loops hand on little.

use crate::ghosts::Ghost;
use crate::ir::{Block, Fold, Function, Ins, Operand, Order, Reg, Ty};
use pullback_base::index::{IdMap, IndexVec};
use pullback_prim::ScalarValue;
use std::ops::Range;

/// A place in the text of a function that makes memory or marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) makes: Makes,
    /// The register that the first of it is in.
    pub(super) to: Option<Reg>,
    /// The innermost loop around; 0 is the function.
    pub(super) around: u32,
    /// It makes memory that has no elements.
    pub(super) is_empty: bool,
}

/// What a site makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Makes {
    /// The pointer to nothing.
    Null,
    /// All memory that was there before the call.
    Caller,
    /// Memory of elements of this type; `None`: of any types.
    Memory(Option<Ty>),
    /// A mark: marks have levels from 1 on, in the order of the text.
    Mark(u32),
    /// A moment at which a variable got its value ([`super::values`]).
    Moment,
}

/// The site of the pointer to nothing.
pub(super) const NULL: u32 = 0;
/// The site of what arguments point to; where there are events, of what that holds.
pub(super) const CALLER: u32 = 1;
/// Where there are events, the sites that follow: no moment, for what is nobody's; the moment when the function began; and one site for what each
/// parameter points to.
pub(super) const NOBODY: u32 = 2;
pub(super) const ENTRY: u32 = 3;

/// What is said of values in a function.
pub(super) type Events = IdMap<Reg, Ghost>;

pub(super) struct BlockInfo {
    pub(super) parent: u32,
    pub(super) depth: u32,
    /// The innermost loop around; 0 is the function.
    pub(super) around: u32,
    /// Its first point.
    pub(super) first: usize,
}

/// An instruction that has facts of its own: a site, a loop or a branch.
#[derive(Clone, Copy, Default)]
pub(super) struct Point {
    /// The number of the site or of the loop.
    pub(super) number: u32,
    /// The blocks inside, in the order in which they run.
    pub(super) blocks: [u32; 2],
    /// The block of the first fold; those of others follow in [`Layout::combines`].
    pub(super) combines: usize,
}

#[derive(Default)]
pub(super) struct LoopInfo {
    pub(super) sites: Range<u32>,
    /// The registers that the body of a loop in any order sets and that are mentioned outside of it, but for states of folds.
    pub(super) sets: Vec<Reg>,
    /// Whether a value is used as a whole in it.
    pub(super) checks: bool,
}

pub(super) struct Layout {
    pub(super) blocks: Vec<BlockInfo>,
    pub(super) points: Vec<Point>,
    pub(super) sites: Vec<Site>,
    pub(super) loops: Vec<LoopInfo>,
    /// The blocks of folds.
    pub(super) combines: Vec<u32>,
    /// The site of each mark, by level.
    pub(super) marks: Vec<u32>,
    /// The home of each register.
    pub(super) homes: IndexVec<Reg, u32>,
    /// Which registers choose between blocks.
    pub(super) chooses: IndexVec<Reg, bool>,
    /// Where there are events, the sites of what parameters point to.
    pub(super) params: IdMap<Reg, u32>,
    /// How often values are used as a whole.
    checks: u32,
}

/// No block has been found.
const NOWHERE: u32 = u32::MAX;
/// The body of the function.
const BODY: u32 = 0;

impl Layout {
    /// `events`: those that have a moment get a site for it.
    pub(super) fn of(f: &Function, events: Option<&Events>) -> Layout {
        let site = |makes, to| Site { makes, to, around: 0, is_empty: false };
        let mut sites = [Makes::Null, Makes::Caller].map(|makes| site(makes, None)).to_vec();
        let mut params = IdMap::new();
        if events.is_some() {
            sites.extend([Makes::Moment, Makes::Moment].map(|makes| site(makes, None)));
            for p in f.params.iter().filter(|p| f.regs[**p].ty == Ty::Pointer) {
                params.insert(*p, sites.len() as u32);
                sites.push(site(Makes::Caller, Some(*p)));
            }
        }
        let mut l = Layout {
            blocks: vec![BlockInfo { parent: BODY, depth: 0, around: 0, first: 0 }],
            points: Vec::new(),
            sites,
            loops: vec![LoopInfo::default()],
            combines: Vec::new(),
            marks: vec![NULL],
            homes: f.regs.iter().map(|_| NOWHERE).collect(),
            chooses: f.regs.iter().map(|_| false).collect(),
            params,
            checks: 0,
        };
        f.params.iter().chain(&f.results).for_each(|r| l.mention(*r, BODY));
        l.block(&f.body, BODY, events);
        l.loops[0].sites = 0..l.sites.len() as u32;
        let seen = f.regs.iter().map(|_| 0).collect();
        Search { f, seen, in_lanes: false }.block(&f.body, BODY, &mut l);
        l
    }
    fn mention(&mut self, r: Reg, block: u32) {
        let (mut a, mut b) = (self.homes[r], block);
        if a == NOWHERE {
            self.homes[r] = block;
            return;
        }
        while a != b {
            if self.blocks[a as usize].depth < self.blocks[b as usize].depth {
                b = self.blocks[b as usize].parent;
            } else {
                a = self.blocks[a as usize].parent;
            }
        }
        self.homes[r] = a;
    }
    fn mentions(&mut self, operands: &[Operand], block: u32) {
        operands.iter().filter_map(|a| a.as_reg()).for_each(|r| self.mention(r, block));
    }
    fn inside(&mut self, parent: u32, around: u32) -> u32 {
        let depth = self.blocks[parent as usize].depth + 1;
        self.blocks.push(BlockInfo { parent, depth, around, first: 0 });
        self.blocks.len() as u32 - 1
    }
    fn block(&mut self, block: &Block, id: u32, events: Option<&Events>) {
        let mut at = self.points.len();
        self.blocks[id as usize].first = at;
        let count = block.iter().filter(|ins| has_point(ins)).count();
        self.points.resize(at + count, Point::default());
        for ins in block {
            match ins {
                Ins::For { i, from, to, body, order } => {
                    self.mentions(&[*from, *to], id);
                    self.points[at] = self.repeated(Some(*i), [None, Some(body)], id, events);
                    if let Order::Any(folds) = order {
                        let (first, around) = (self.combines.len(), self.blocks[id as usize].around);
                        self.points[at].combines = first;
                        for _ in folds {
                            let inside = self.inside(id, around);
                            self.combines.push(inside);
                        }
                        for (k, fold) in folds.iter().enumerate() {
                            self.fold(fold, id, self.combines[first + k], events);
                        }
                    }
                }
                Ins::Lanes { i, from, to, body, .. } => {
                    self.mentions(&[*from, *to], id);
                    self.points[at] = self.repeated(Some(*i), [None, Some(body)], id, events);
                }
                Ins::While { condition, test, body } => {
                    self.mentions(&[*test], id);
                    self.points[at] = self.repeated(None, [Some(condition), Some(body)], id, events);
                }
                Ins::If { condition, then, otherwise } => {
                    self.mentions(&[*condition], id);
                    if let Operand::Reg(c) = condition {
                        self.chooses[*c] = true;
                    }
                    let around = self.blocks[id as usize].around;
                    let blocks = [self.inside(id, around), self.inside(id, around)];
                    self.points[at].blocks = blocks;
                    self.block(then, blocks[0], events);
                    self.block(otherwise, blocks[1], events);
                }
                _ => {
                    ins.sets().iter().for_each(|r| self.mention(*r, id));
                    ins.reads(&mut |a| self.mentions(&[a], id));
                    if has_point(ins) {
                        self.points[at].number = self.site(ins, id);
                    }
                    if let Some(events) = events {
                        self.event(ins, events, id);
                    }
                }
            }
            at += usize::from(has_point(ins));
        }
    }
    fn site(&mut self, ins: &Ins, id: u32) -> u32 {
        let number = self.sites.len() as u32;
        let makes = match ins {
            Ins::Alloc { ty, .. } => Makes::Memory(Some(*ty)),
            Ins::Mark { .. } => {
                self.marks.push(number);
                Makes::Mark(self.marks.len() as u32 - 1)
            }
            _ => Makes::Memory(None),
        };
        let around = self.blocks[id as usize].around;
        let is_empty = matches!(ins, Ins::Alloc { count: Operand::Const(ScalarValue::I64(0)), .. });
        self.sites.push(Site { makes, to: ins.sets().first().copied(), around, is_empty });
        number
    }
    /// The site of a moment: when a variable gets a value, when one is used as it is then, and when a call makes one; this is just behind the memory.
    fn event(&mut self, ins: &Ins, events: &Events, id: u32) {
        for to in ins.sets() {
            if let Some(Ghost::Read { of }) = events.get(to) {
                self.mention(*of, id);
            }
        }
        let is_checked = |to: &Reg| matches!(events.get(to), Some(Ghost::Check { .. }));
        self.checks += u32::from(ins.sets().iter().any(is_checked));
        let is_bound = |to: &Reg| matches!(events.get(to), Some(Ghost::Bind { .. } | Ghost::Check { .. }));
        if matches!(ins, Ins::Call { .. } | Ins::Chunks { .. }) || ins.sets().iter().any(is_bound) {
            let (makes, around) = (Makes::Moment, self.blocks[id as usize].around);
            let to = ins.sets().first().copied();
            self.sites.push(Site { makes, to, around, is_empty: false });
        }
    }
    /// A loop: what runs before each test, and its body.
    fn repeated(
        &mut self,
        i: Option<Reg>,
        code: [Option<&Block>; 2],
        id: u32,
        events: Option<&Events>,
    ) -> Point {
        let (number, first) = (self.loops.len() as u32, self.sites.len() as u32);
        let checks = self.checks;
        self.loops.push(LoopInfo::default());
        let blocks = [self.inside(id, number), self.inside(id, number)];
        i.iter().for_each(|i| self.mention(*i, blocks[1]));
        for (code, id) in code.into_iter().zip(blocks) {
            code.iter().for_each(|code| self.block(code, id, events));
        }
        self.loops[number as usize].sites = first..self.sites.len() as u32;
        self.loops[number as usize].checks = self.checks > checks;
        Point { number, blocks, combines: 0 }
    }
    /// How a loop takes its states together, as a block of its own beside the body.
    fn fold(&mut self, fold: &Fold, id: u32, inside: u32, events: Option<&Events>) {
        fold.state.iter().for_each(|r| self.mention(*r, id));
        self.mentions(&fold.neutral, id);
        fold.left.iter().chain(&fold.right).for_each(|r| self.mention(*r, inside));
        self.mentions(&fold.out, inside);
        self.block(&fold.combine, inside, events);
    }
    /// The innermost loop around the home of a register.
    pub(super) fn loop_of(&self, r: Reg) -> u32 {
        let home = self.homes[r];
        if home == NOWHERE { 0 } else { self.blocks[home as usize].around }
    }
}

/// Finds [`LoopInfo::sets`], once homes are known.
struct Search<'a> {
    f: &'a Function,
    /// The last loop for which a register was noted.
    seen: IndexVec<Reg, u32>,
    in_lanes: bool,
}

impl Search<'_> {
    fn block(&mut self, block: &Block, id: u32, l: &mut Layout) {
        let mut at = l.blocks[id as usize].first;
        for ins in block {
            let point = if has_point(ins) { l.points[at] } else { Point::default() };
            at += usize::from(has_point(ins));
            match ins {
                Ins::For { body, order, .. } => {
                    self.block(body, point.blocks[1], l);
                    if let Order::Any(folds) = order {
                        folds.iter().flat_map(|f| &f.state).for_each(|r| self.seen[*r] = point.number);
                        l.loops[point.number as usize].sets = self.sets(body, point, l);
                    }
                }
                Ins::Lanes { body, .. } => {
                    let around = std::mem::replace(&mut self.in_lanes, true);
                    self.block(body, point.blocks[1], l);
                    self.in_lanes = around;
                }
                Ins::While { condition: one, body: two, .. } | Ins::If { then: one, otherwise: two, .. } => {
                    self.block(one, point.blocks[0], l);
                    self.block(two, point.blocks[1], l);
                }
                _ => {}
            }
        }
    }
    fn sets(&mut self, body: &Block, point: Point, l: &Layout) -> Vec<Reg> {
        let depth = l.blocks[point.blocks[1] as usize].depth;
        let mut found = Vec::new();
        crate::walk(body, &mut |ins| {
            for r in ins.sets() {
                let is_outside = l.blocks[l.homes[*r] as usize].depth < depth;
                let may_stay = self.in_lanes && self.f.regs[*r].ty.is_lanes();
                if is_outside && !may_stay && self.seen[*r] != point.number {
                    self.seen[*r] = point.number;
                    found.push(*r);
                }
            }
        });
        found
    }
}

/// Whether an instruction makes memory, or has blocks inside.
pub(super) fn has_point(ins: &Ins) -> bool {
    matches!(
        ins,
        Ins::Alloc { .. }
            | Ins::Mark { .. }
            | Ins::Call { .. }
            | Ins::Chunks { .. }
            | Ins::For { .. }
            | Ins::Lanes { .. }
            | Ins::While { .. }
            | Ins::If { .. }
    )
}
