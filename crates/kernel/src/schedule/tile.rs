//! A contraction in tiles: both factors laid out for it, sums of a tile in registers, blocks for the caches.
//!
//! ```text
//! columns of the second factor in panels of a tile's width: panel, contracted, column
//! for each block of rows, in any order
//!   rows of the first factor in strips of a tile's height: strip, contracted, row
//!   for each part of the contracted range, each panel, each strip
//!     tile of sums += strip * panel
//!   what is done with each sum
//! ```
//!
//! Elements of factors are computed when they are laid out, once each. The tile is as high and wide as the registers allow: each
//! step loads its width in vectors and multiplies it by each number of its height. The part of the contracted range is such that a panel
//! stays in the first cache and the strips of a block in the second. The last strip and the last panel may be empty in part: what is
//! computed there is not used; a last panel takes only as many vectors as it has.
//!
//! One piece of more than 500 lines: the layout of the factors and the loops that read it change together.
//!
//! Assumes a nest whose bounds are the same in all its loops ([`Roles`]). Guarantees the nest's results under the condition that it
//! gives along, but for the order of sums. Under it no size is zero, so every element that is laid out would have been computed by
//! the nest, and every check made.

use super::contract::{End, Nest, Roles, Set, one};
use super::cost::Model;
use crate::ir::{Block, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::lower::with_mark;
use pullback_base::index::{IdMap, IndexVec};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Elements of the contracted range that are taken at once.
const DEPTH: i64 = 192;
/// Rows of a block.
const HEIGHT: i64 = 96;
/// Sizes are at most so large together; there is no memory for more.
const MOST: f64 = (1u64 << 48) as f64;

/// The size of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    /// Lanes of a vector.
    lanes: usize,
    /// Its width in vectors.
    vectors: usize,
    /// Its height.
    rows: usize,
    /// See [`Model::tiles`].
    least: [f64; 4],
}

impl Tiles {
    /// What the registers of a machine hold: sums in three quarters of them. `lanes`: of eight bytes, in a register. `None`: the
    /// executor has no registers.
    pub(super) fn of(model: Model, lanes: usize, ty: Ty) -> Option<Tiles> {
        (model.registers >= 8).then(|| Tiles {
            lanes: lanes * 8 / ty.bytes(),
            vectors: 3,
            rows: model.registers / 4,
            least: model.tiles,
        })
    }
    fn width(self) -> i64 {
        (self.lanes * self.vectors) as i64
    }
    fn height(self) -> i64 {
        self.rows as i64
    }
}

/// What is done before the nest, a condition, and the nest in tiles if it holds. `None`: bounds are computed in the nest.
pub(super) fn tiled(
    nest: &Nest,
    roles: &Roles,
    tiles: Tiles,
    regs: &mut IndexVec<Reg, RegInfo>,
) -> Option<(Block, Operand, Block)> {
    let mut e = Emit { nest, roles, tiles, regs, names: IdMap::new() };
    let mut before = e.bounds()?;
    let sizes = e.sizes(&mut before);
    let condition = e.condition(&mut before, &sizes);
    let mut then = Vec::new();
    e.product(&mut then, &sizes);
    Some((before, condition, e.batch(then)))
}

/// Numbers of iterations.
struct Sizes {
    row: Operand,
    column: Operand,
    /// Of each contracted loop.
    each: Vec<Operand>,
    /// Of all of them.
    contracted: Operand,
}

struct Emit<'a> {
    nest: &'a Nest,
    roles: &'a Roles,
    tiles: Tiles,
    regs: &'a mut IndexVec<Reg, RegInfo>,
    /// Registers of the nest that have a new name everywhere.
    names: IdMap<Reg, Reg>,
}

/// A panel or a strip: elements of a factor for each contracted index side by side.
struct Layout {
    /// Which factor, and the loop that lies side by side.
    factor: usize,
    side: usize,
    /// So many side by side.
    width: i64,
}

impl Emit<'_> {
    // --- instructions ---

    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.regs.push(RegInfo::new(ty, hint))
    }
    fn int(&mut self, out: &mut Block, op: Op, args: [Operand; 2]) -> Operand {
        let number = |a: Operand| a.as_i64();
        match (op, number(args[0]), number(args[1])) {
            (Op::Add | Op::Sub, _, Some(0)) | (Op::Mul, _, Some(1)) => return args[0],
            (Op::Add, Some(0), _) | (Op::Mul, Some(1), _) => return args[1],
            _ => {}
        }
        let to = self.reg(Ty::I64, "t");
        out.push(Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: args.to_vec() });
        to.into()
    }
    fn less(&mut self, out: &mut Block, args: [Operand; 2]) -> Operand {
        let to = self.reg(Ty::BOOL, "less");
        out.push(Ins::Prim { to, prim: Prim::Op(Op::Lt, Scalar::I64), args: args.to_vec() });
        to.into()
    }
    fn offset(&mut self, out: &mut Block, pointer: Reg, index: Operand, hint: &str) -> Reg {
        let (to, ty) = (self.reg(Ty::Pointer, hint), self.nest.ty);
        out.push(Ins::Offset { to, pointer: pointer.into(), index, ty, room: None });
        to
    }
    fn alloc(&mut self, out: &mut Block, counts: &[Operand], hint: &str) -> (Reg, Operand) {
        let count = counts[1..].iter().fold(counts[0], |n, m| self.int(out, Op::Mul, [n, *m]));
        let (to, ty) = (self.reg(Ty::Pointer, hint), self.nest.ty);
        out.push(Ins::Alloc { to, count, ty });
        (to, count)
    }
    fn fill(&self, out: &mut Block, pointer: Reg, count: Operand) {
        let ty = self.nest.ty;
        let value = Operand::Const(ty.scalar().map_or(ScalarValue::F64(0.0), Scalar::zero));
        out.push(Ins::Fill { pointer: pointer.into(), count, value, ty });
    }
    /// `a` in groups of `n`: how many.
    fn groups(&mut self, out: &mut Block, a: Operand, n: i64) -> Operand {
        let more = self.int(out, Op::Add, [a, Operand::i64(n - 1)]);
        self.int(out, Op::Quot, [more, Operand::i64(n)])
    }
    fn any(i: Reg, to: Operand, body: Block) -> Ins {
        Ins::For { i, from: Operand::i64(0), to, body, order: Order::Any(Vec::new()) }
    }
    fn given(i: Reg, to: Operand, body: Block) -> Ins {
        Ins::For { i, from: Operand::i64(0), to, body, order: Order::Given }
    }

    // --- the nest's instructions ---

    fn named(&self, a: Operand, names: &IdMap<Reg, Reg>) -> Operand {
        let name = |r: Reg| names.get(&r).or_else(|| self.names.get(&r)).copied().unwrap_or(r);
        a.as_reg().map_or(a, |r| name(r).into())
    }
    fn again(&mut self, ins: &Ins, names: &mut IdMap<Reg, Reg>) -> Ins {
        let mut ins = ins.clone();
        ins.reads_mut(&mut |a| *a = self.named(*a, names));
        if let Ins::Offset { room, .. } = &mut ins {
            *room = None;
        }
        for r in ins.sets_mut() {
            let fresh = self.regs.push(self.regs[*r].clone());
            names.insert(*r, fresh);
            *r = fresh;
        }
        ins
    }
    /// What is computed for some values, and all checks that can be made: for each of some nested loops what belongs there, with
    /// what belongs outside of them first.
    fn parts(&mut self, values: &[Operand], loops: &[usize], names: &mut IdMap<Reg, Reg>) -> Vec<Block> {
        let nest = self.nest;
        let needed = nest.needed(values);
        let inside: Set = loops.iter().chain(&self.roles.batch).map(|l| one(*l)).sum();
        let mut out = vec![Vec::new(); loops.len() + 1];
        for ins in &nest.made {
            let depends = nest.depends_ins(ins);
            let is_check = matches!(ins, Ins::Fail { .. }) && depends & !inside == 0;
            // A check may need what no value needs.
            let wanted = is_check || ins.sets().iter().any(|r| needed.contains(r));
            if wanted {
                let level = loops.iter().rposition(|l| depends & one(*l) != 0).map_or(0, |p| p + 1);
                let ins = self.again(ins, names);
                out[level].push(ins);
            }
        }
        out
    }
    /// The operands of all checks that can be made inside of some loops.
    fn checks(&self, loops: &[usize]) -> Vec<Operand> {
        let inside: Set = loops.iter().chain(&self.roles.batch).map(|l| one(*l)).sum();
        let mut out = Vec::new();
        for ins in &self.nest.made {
            if matches!(ins, Ins::Fail { .. }) && self.nest.depends_ins(ins) & !inside == 0 {
                ins.reads(&mut |a| out.push(a));
            }
        }
        out
    }

    // --- sizes ---

    /// What the bounds of loops need. `None`: something that may not be computed where no iteration runs.
    fn bounds(&mut self) -> Option<Block> {
        let all: Vec<Operand> = self.nest.loops.iter().flat_map(|l| [l.from, l.to]).collect();
        let needed = self.nest.needed(&all);
        let (mut out, mut names) = (Vec::new(), IdMap::new());
        for ins in &self.nest.made {
            if ins.sets().iter().any(|r| needed.contains(r)) {
                let is_safe = match ins {
                    Ins::Set { .. } => true,
                    Ins::Prim { prim: Prim::Op(op, _), .. } => {
                        matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max)
                    }
                    _ => false,
                };
                is_safe.then_some(())?;
                out.push(self.again(ins, &mut names));
            }
        }
        self.names = names;
        Some(out)
    }
    fn sizes(&mut self, out: &mut Block) -> Sizes {
        let mut size = |e: &mut Self, l: usize| {
            let (from, to) = (e.nest.loops[l].from, e.nest.loops[l].to);
            let (from, to) = (e.named(from, &IdMap::new()), e.named(to, &IdMap::new()));
            let n = e.int(out, Op::Sub, [to, from]);
            e.int(out, Op::Max, [n, Operand::i64(0)])
        };
        let row = size(self, self.roles.row.0);
        let column = size(self, self.roles.column);
        let each: Vec<Operand> = self.roles.contracted.iter().map(|l| size(self, *l)).collect();
        let contracted = each[1..].iter().fold(each[0], |n, m| self.int(out, Op::Mul, [n, *m]));
        Sizes { row, column, each, contracted }
    }
    /// Whether there is much to do, and the sizes of what is laid out are numbers.
    fn condition(&mut self, out: &mut Block, sizes: &Sizes) -> Operand {
        let float = |e: &mut Self, out: &mut Block, a: Operand| {
            let to = e.reg(Ty::Scalar(Scalar::F64), "size");
            let prim = Prim::Convert(Scalar::I64, Scalar::F64);
            out.push(Ins::Prim { to, prim, args: vec![a] });
            Operand::Reg(to)
        };
        let prim = |e: &mut Self, out: &mut Block, op: Op, s: Scalar, args: [Operand; 2]| {
            let prim = Prim::Op(op, s);
            let to = e.reg(Ty::Scalar(prim.result()), "size");
            out.push(Ins::Prim { to, prim, args: args.to_vec() });
            Operand::Reg(to)
        };
        let number = |x: f64| Operand::Const(ScalarValue::F64(x));
        let each: Vec<Operand> = sizes.each.iter().map(|n| float(self, out, *n)).collect();
        let sum = each[1..].iter().fold(each[0], |n, m| prim(self, out, Op::Mul, Scalar::F64, [n, *m]));
        let (row, column) = (float(self, out, sizes.row), float(self, out, sizes.column));
        let results = prim(self, out, Op::Mul, Scalar::F64, [row, column]);
        let all = prim(self, out, Op::Mul, Scalar::F64, [results, sum]);
        let mut condition = Operand::bool(true);
        let mut and = |e: &mut Self, out: &mut Block, test: Operand| {
            condition = match condition {
                Operand::Reg(_) => prim(e, out, Op::And, Scalar::Bool, [condition, test]),
                _ => test,
            };
        };
        // At least one of each, whatever the model says.
        for (n, least) in [row, column, sum, all].into_iter().zip(self.tiles.least) {
            let test = prim(self, out, Op::Le, Scalar::F64, [number(least.max(1.0)), n]);
            and(self, out, test);
        }
        let larger = prim(self, out, Op::Max, Scalar::F64, [row, column]);
        let larger = prim(self, out, Op::Max, Scalar::F64, [larger, number(HEIGHT as f64)]);
        let layout = prim(self, out, Op::Mul, Scalar::F64, [larger, sum]);
        let block = prim(self, out, Op::Mul, Scalar::F64, [column, number(HEIGHT as f64)]);
        for memory in [layout, block] {
            let test = prim(self, out, Op::Lt, Scalar::F64, [memory, number(MOST)]);
            and(self, out, test);
        }
        condition
    }
    /// The loops of the batch, around the rest.
    fn batch(&self, inner: Block) -> Block {
        self.roles.batch.iter().rev().fold(inner, |body, l| {
            let level = self.nest.loops[*l];
            let bound = |a: Operand| self.named(a, &IdMap::new());
            let i = self.named(level.i.into(), &IdMap::new()).as_reg().unwrap_or(level.i);
            let (from, to) = (bound(level.from), bound(level.to));
            vec![Ins::For { i, from, to, body, order: Order::Any(Vec::new()) }]
        })
    }

    // --- the product ---

    fn product(&mut self, out: &mut Block, sizes: &Sizes) {
        for l in self.roles.batch.clone() {
            let i = self.reg(Ty::I64, "i");
            self.names.insert(self.nest.loops[l].i, i);
        }
        let (width, height) = (self.tiles.width(), self.tiles.height());
        let (row, factor) = self.roles.row;
        let depth = sizes.contracted;
        let mut body = Vec::new();
        let panels = self.groups(&mut body, sizes.column, width);
        let (columns, _) = self.alloc(&mut body, &[panels, Operand::i64(width), depth], "columns");
        let layout = Layout { factor: 1 - factor, side: self.roles.column, width };
        let zero = Operand::i64(0);
        self.laid_out(&mut body, &layout, (columns, zero, sizes.column), sizes);

        let blocks = self.groups(&mut body, sizes.row, HEIGHT);
        let padded = self.int(&mut body, Op::Mul, [panels, Operand::i64(width)]);
        let all = self.groups(&mut body, sizes.row, height);
        let all = self.int(&mut body, Op::Mul, [all, Operand::i64(height)]);
        let most = self.int(&mut body, Op::Min, [all, Operand::i64(HEIGHT)]);
        let block = self.reg(Ty::I64, "block");
        let mut b = Vec::new();
        let first = self.int(&mut b, Op::Mul, [block.into(), Operand::i64(HEIGHT)]);
        let left = self.int(&mut b, Op::Sub, [sizes.row, first]);
        let here = self.int(&mut b, Op::Min, [left, Operand::i64(HEIGHT)]);
        let (rows, _) = self.alloc(&mut b, &[most, depth], "rows");
        let (sums, count) = self.alloc(&mut b, &[most, padded], "sums");
        self.fill(&mut b, sums, count);
        let layout = Layout { factor, side: row, width: height };
        self.laid_out(&mut b, &layout, (rows, first, here), sizes);
        self.tiles(&mut b, (rows, columns, sums), (here, panels, padded), sizes);
        self.ends(&mut b, (sums, padded), (first, here), sizes);
        let b = with_mark(b, self.regs);
        body.push(Emit::any(block, blocks, b));
        out.extend(with_mark(body, self.regs));
    }
    /// Elements of a factor in groups of a width: those of `count` iterations from `first` on.
    fn laid_out(
        &mut self,
        out: &mut Block,
        layout: &Layout,
        (to, first, count): (Reg, Operand, Operand),
        sizes: &Sizes,
    ) {
        let width = Operand::i64(layout.width);
        let groups = self.groups(out, count, layout.width);
        let size = self.int(out, Op::Mul, [sizes.contracted, width]);
        let g = self.reg(Ty::I64, "group");
        let mut b = Vec::new();
        let at = self.int(&mut b, Op::Mul, [g.into(), size]);
        let to = self.offset(&mut b, to, at, "packed");
        let before = self.int(&mut b, Op::Mul, [g.into(), width]);
        let left = self.int(&mut b, Op::Sub, [count, before]);
        let here = self.int(&mut b, Op::Min, [left, width]);
        let mut empty = Vec::new();
        self.fill(&mut empty, to, size);
        let condition = self.less(&mut b, [here, width]);
        b.push(Ins::If { condition, then: empty, otherwise: Vec::new() });
        let start = self.int(&mut b, Op::Add, [first, before]);

        let value = self.nest.factors[layout.factor];
        let mut loops = self.roles.contracted.clone();
        loops.push(layout.side);
        let mut names = IdMap::new();
        let counters: Vec<Reg> = loops.iter().map(|_| self.reg(Ty::I64, "i")).collect();
        let mut inner: Vec<Block> = vec![Vec::new(); loops.len() + 1];
        for (k, l) in loops.iter().enumerate() {
            let from = self.named(self.nest.loops[*l].from, &IdMap::new());
            let block = &mut inner[k + 1];
            let offset = if *l == layout.side {
                self.int(block, Op::Add, [counters[k].into(), start])
            } else {
                counters[k].into()
            };
            let i = self.reg(Ty::I64, "i");
            let args = vec![offset, from];
            block.push(Ins::Prim { to: i, prim: Prim::Op(Op::Add, Scalar::I64), args });
            names.insert(self.nest.loops[*l].i, i);
        }
        let mut values = self.checks(&loops);
        values.push(value);
        for (block, part) in inner.iter_mut().zip(self.parts(&values, &loops, &mut names)) {
            block.extend(part);
        }
        // The place: contracted counters as digits.
        let (last, mut place) = (loops.len(), Operand::from(counters[0]));
        for (n, i) in sizes.each.iter().zip(&counters).skip(1) {
            place = self.int(&mut inner[last], Op::Mul, [place, *n]);
            place = self.int(&mut inner[last], Op::Add, [place, (*i).into()]);
        }
        place = self.int(&mut inner[last], Op::Mul, [place, width]);
        place = self.int(&mut inner[last], Op::Add, [place, counters[last - 1].into()]);
        let (value, ty) = (self.named(value, &names), self.nest.ty);
        inner[last].push(Ins::Store { pointer: to.into(), index: place, value, ty });

        let mut ends = sizes.each.clone();
        ends.push(here);
        let mut code = Vec::new();
        for k in (0..last).rev() {
            let mut body = std::mem::take(&mut inner[k + 1]);
            body.extend(code);
            code = vec![Emit::any(counters[k], ends[k], body)];
        }
        b.extend(std::mem::take(&mut inner[0]));
        b.extend(code);
        out.push(Emit::any(g, groups, b));
    }
    /// The tiles of a block of rows.
    fn tiles(
        &mut self,
        out: &mut Block,
        (rows, columns, sums): (Reg, Reg, Reg),
        (here, panels, padded): (Operand, Operand, Operand),
        sizes: &Sizes,
    ) {
        let (width, height) = (Operand::i64(self.tiles.width()), Operand::i64(self.tiles.height()));
        let depth = sizes.contracted;
        let (part, panel, strip) =
            (self.reg(Ty::I64, "part"), self.reg(Ty::I64, "panel"), self.reg(Ty::I64, "strip"));
        let parts = self.groups(out, depth, DEPTH);
        let strips = self.groups(out, here, self.tiles.height());
        let panel_size = self.int(out, Op::Mul, [depth, width]);
        let strip_size = self.int(out, Op::Mul, [depth, height]);
        let sums_size = self.int(out, Op::Mul, [padded, height]);

        let mut for_part = Vec::new();
        let first = self.int(&mut for_part, Op::Mul, [part.into(), Operand::i64(DEPTH)]);
        let left = self.int(&mut for_part, Op::Sub, [depth, first]);
        let steps = self.int(&mut for_part, Op::Min, [left, Operand::i64(DEPTH)]);
        let in_panel = self.int(&mut for_part, Op::Mul, [first, width]);
        let in_strip = self.int(&mut for_part, Op::Mul, [first, height]);

        let mut for_panel = Vec::new();
        let at = self.int(&mut for_panel, Op::Mul, [panel.into(), panel_size]);
        let at = self.int(&mut for_panel, Op::Add, [at, in_panel]);
        let columns = self.offset(&mut for_panel, columns, at, "panel");
        let column = self.int(&mut for_panel, Op::Mul, [panel.into(), width]);
        let used = self.int(&mut for_panel, Op::Sub, [sizes.column, column]);
        let sums = self.offset(&mut for_panel, sums, column, "sums");

        let mut for_strip = Vec::new();
        let at = self.int(&mut for_strip, Op::Mul, [strip.into(), strip_size]);
        let at = self.int(&mut for_strip, Op::Add, [at, in_strip]);
        let rows = self.offset(&mut for_strip, rows, at, "strip");
        let at = self.int(&mut for_strip, Op::Mul, [strip.into(), sums_size]);
        let sums = self.offset(&mut for_strip, sums, at, "tile");

        // As many vectors as the panel has.
        let mut code = self.tile(1, (rows, columns, sums), (steps, padded));
        for vectors in 2..=self.tiles.vectors {
            let more = self.tile(vectors, (rows, columns, sums), (steps, padded));
            let fewer = Operand::i64(((vectors - 1) * self.tiles.lanes) as i64);
            let condition = self.less(&mut for_panel, [fewer, used]);
            code = vec![Ins::If { condition, then: more, otherwise: code }];
        }
        for_strip.extend(code);
        for_panel.push(Emit::given(strip, strips, for_strip));
        for_part.push(Emit::given(panel, panels, for_panel));
        out.push(Emit::given(part, parts, for_part));
    }
    /// `sums += rows * columns` for a tile with so many vectors.
    fn tile(
        &mut self,
        vectors: usize,
        (rows, columns, sums): (Reg, Reg, Reg),
        (steps, padded): (Operand, Operand),
    ) -> Block {
        let Tiles { lanes, rows: height, .. } = self.tiles;
        let (width, ty) = (self.tiles.width(), self.nest.ty);
        let s = ty.scalar().unwrap_or(Scalar::F64);
        let wide = Ty::Lanes(s, lanes);
        let one = Operand::i64(1);
        let at = |v: usize| Operand::i64((v * lanes) as i64);
        let (mut before, mut after, mut body) = (Vec::new(), Vec::new(), Vec::new());
        let mut tile = Vec::new();
        for r in 0..height {
            let by = self.int(&mut before, Op::Mul, [padded, Operand::i64(r as i64)]);
            let row = self.offset(&mut before, sums, by, "row");
            for v in 0..vectors {
                let to = self.reg(wide, "sum");
                let pointer = row.into();
                before.push(Ins::LoadLanes { to, pointer, index: at(v), stride: one, mask: None });
                let value = to.into();
                after.push(Ins::StoreLanes { pointer, index: at(v), stride: one, value, ty, mask: None });
                tile.push(to);
            }
        }
        let step = self.reg(Ty::I64, "step");
        let place = self.int(&mut body, Op::Mul, [step.into(), Operand::i64(width)]);
        let vector: Vec<Reg> = (0..vectors)
            .map(|v| {
                let index = self.int(&mut body, Op::Add, [place, at(v)]);
                let to = self.reg(wide, "column");
                body.push(Ins::LoadLanes { to, pointer: columns.into(), index, stride: one, mask: None });
                to
            })
            .collect();
        let place = self.int(&mut body, Op::Mul, [step.into(), Operand::i64(height as i64)]);
        for r in 0..height {
            let index = self.int(&mut body, Op::Add, [place, Operand::i64(r as i64)]);
            let x = self.reg(ty, "x");
            body.push(Ins::Load { to: x, pointer: rows.into(), index });
            for (v, column) in vector.iter().enumerate() {
                let (product, sum) = (self.reg(wide, "product"), self.reg(wide, "sum"));
                let to = tile[r * vectors + v];
                let args = vec![x.into(), (*column).into()];
                body.push(Ins::Prim { to: product, prim: Prim::Op(Op::Mul, s), args });
                let args = vec![to.into(), product.into()];
                body.push(Ins::Prim { to: sum, prim: Prim::Op(Op::Add, s), args });
                body.push(Ins::Set { to, value: sum.into() });
            }
        }
        before.push(Emit::given(step, steps, body));
        before.extend(after);
        before
    }
    /// What is done with the sums of a block of rows.
    fn ends(
        &mut self,
        out: &mut Block,
        (sums, padded): (Reg, Operand),
        (first, here): (Operand, Operand),
        sizes: &Sizes,
    ) {
        let loops = [self.roles.row.0, self.roles.column];
        let mut names = IdMap::new();
        let (r, c) = (self.reg(Ty::I64, "row"), self.reg(Ty::I64, "column"));
        let (mut in_row, mut in_column) = (Vec::new(), Vec::new());
        let from = |e: &Self, l: usize| e.named(e.nest.loops[l].from, &IdMap::new());
        let start = self.int(&mut in_row, Op::Add, [first, from(self, loops[0])]);
        let args = vec![r.into(), start];
        let i = self.reg(Ty::I64, "i");
        in_row.push(Ins::Prim { to: i, prim: Prim::Op(Op::Add, Scalar::I64), args });
        let at = self.int(&mut in_row, Op::Mul, [r.into(), padded]);
        let sums = self.offset(&mut in_row, sums, at, "row");
        names.insert(self.nest.loops[loops[0]].i, i);
        let j = self.reg(Ty::I64, "j");
        let args = vec![c.into(), from(self, loops[1])];
        in_column.push(Ins::Prim { to: j, prim: Prim::Op(Op::Add, Scalar::I64), args });
        names.insert(self.nest.loops[loops[1]].i, j);
        let mut values = self.checks(&loops);
        values.extend(self.nest.used_after());
        let parts = self.parts(&values, &loops, &mut names);
        let [outside, of_row, of_column] = &parts[..] else { return };
        out.extend(outside.iter().cloned());
        in_row.extend(of_row.iter().cloned());
        in_column.extend(of_column.iter().cloned());
        let (sum, ty) = (self.reg(self.nest.ty, "sum"), self.nest.ty);
        in_column.push(Ins::Load { to: sum, pointer: sums.into(), index: c.into() });
        match &self.nest.end {
            End::Then(state, then) => {
                names.insert(*state, sum);
                for ins in then {
                    let ins = self.again(ins, &mut names);
                    in_column.push(ins);
                }
            }
            End::Add { pointer, index } => {
                let (pointer, index) = (self.named(*pointer, &names), self.named(*index, &names));
                if self.nest.is_apart(self.roles) {
                    let (old, new) = (self.reg(ty, "x"), self.reg(ty, "x"));
                    let prim = Prim::Op(Op::Add, ty.scalar().unwrap_or(Scalar::F64));
                    in_column.push(Ins::Load { to: old, pointer, index });
                    in_column.push(Ins::Prim { to: new, prim, args: vec![old.into(), sum.into()] });
                    in_column.push(Ins::Store { pointer, index, value: new.into(), ty });
                } else {
                    in_column.push(Ins::Accumulate { pointer, index, value: sum.into(), ty, atomic: false });
                }
            }
        }
        in_row.push(Emit::any(c, sizes.column, in_column));
        out.push(Emit::any(r, here, in_row));
    }
}
