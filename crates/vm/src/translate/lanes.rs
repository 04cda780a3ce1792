//! Instructions on lanes: kernels, accesses to memory, lanes taken together.

use super::*;

impl Translator<'_, '_> {
    pub(super) fn copy_lanes(&mut self, s: Scalar, side: Side, to: At, from: At) {
        let kernel = kernels::identity(s, side, self.shared.options.machine);
        let kernel = self.shared.kernel(kernel);
        self.emit(Op::ApplyLanes { kernel, to, a: from, b: from, c: from });
    }
    /// A register of lanes with the value of an operand: its own, or a spare one.
    pub(super) fn in_lanes(&mut self, a: Operand, s: Scalar, spare: usize) -> At {
        let at = self.at(a);
        if self.is_lanes(a) {
            return at;
        }
        let to = self.spare_lanes[spare];
        self.copy_lanes(s, Side::Scalar, to, at);
        to
    }
    pub(super) fn on_lanes(&mut self, to: Reg, prim: Prim, args: &[Operand]) {
        let place = self.places[to];
        if let (Prim::Op(PrimOp::Select, s), [condition, x, y]) = (prim, args)
            && !self.is_lanes(*condition)
        {
            return self.choose_lanes(place, s, *condition, *x, *y);
        }
        if let Some(other) = self.counted_from(prim, args) {
            let from = self.at(other);
            return self.emit(Op::Count { to: place, from });
        }
        if self.with_the_last(place, prim, args) || self.is_counted(place, prim, args) {
            return;
        }
        let Some(kernel) = self.chosen(prim, &self.sides(args)) else {
            return self.table(Place { at: place, is_lanes: true }, prim, args);
        };
        let mut views = 0;
        let at: Vec<At> = (args.iter().enumerate()).map(|(k, a)| self.argument(*a, k, &mut views)).collect();
        let [a, b, c] = padded(&at);
        self.apply(kernel, views, place, [a, b, c]);
        if let (Prim::Op(op, Scalar::F64), [x, y]) = (prim, args) {
            let side = |a: &Operand| if self.is_lanes(*a) { Side::Lanes } else { Side::Scalar };
            let ins = self.out.ops.len() - 1;
            self.operation = Some(Operation { ins, op, to, sides: [side(x), side(y)] });
        }
    }
    /// The place of argument `k` of a kernel; of lanes that stay in memory the word with their address, which is marked.
    fn argument(&self, a: Operand, k: usize, views: &mut u8) -> At {
        match a.as_reg().and_then(|r| self.views.get(&r)) {
            Some(view) => {
                *views |= 1 << k;
                *view
            }
            None => self.at(a),
        }
    }
    fn apply(&mut self, kernel: Kernel, views: u8, to: At, [a, b, c]: [At; 3]) {
        let kernel = self.shared.kernel(kernel);
        self.emit(match views {
            0 => Op::ApplyLanes { kernel, to, a, b, c },
            _ => Op::ApplyViews { kernel, views, to, a, b, c },
        });
    }
    /// Does an operation of two doubles together with the last instruction, if that gives what only this one reads.
    fn with_the_last(&mut self, to: At, prim: Prim, args: &[Operand]) -> bool {
        let (Prim::Op(op, Scalar::F64), [x, y], Some(last)) = (prim, args, &self.operation) else {
            return false;
        };
        let made = Operand::Reg(last.to);
        let is_last = last.ins + 1 == self.out.ops.len() && last.ins >= self.barrier;
        let side = |a: Operand| if self.is_lanes(a) { Side::Lanes } else { Side::Scalar };
        let (taken, other) = match (*x == made, *y == made) {
            (true, true) => (Taken::Both, None),
            (true, false) => (Taken::First(side(*y)), Some(*y)),
            (false, true) => (Taken::Second(side(*x)), Some(*x)),
            (false, false) => return false,
        };
        let reads = if other.is_none() { 2 } else { 1 };
        if !is_last || self.counts.reads[last.to] != reads || self.counts.sets[last.to] != 1 {
            return false;
        }
        let machine = self.shared.options.machine;
        let Some(kernel) = pairs::two((last.op, last.sides), (op, taken), machine) else { return false };
        let (mut views, a, b) = match self.out.ops[last.ins] {
            Op::ApplyLanes { a, b, .. } => (0, a, b),
            Op::ApplyViews { views, a, b, .. } => (views & 3, a, b),
            _ => return false,
        };
        let c = other.map_or(a, |c| self.argument(c, 2, &mut views));
        self.out.ops.pop();
        self.apply(kernel, views, to, [a, b, c]);
        self.operation = None;
        true
    }
    /// The scalar that lane numbers are added to.
    pub(super) fn counted_from(&self, prim: Prim, args: &[Operand]) -> Option<Operand> {
        match (prim, args) {
            (Prim::Op(PrimOp::Add, Scalar::I64), [Operand::Reg(r), other] | [other, Operand::Reg(r)]) => {
                (self.counters.contains(r) && !self.is_lanes(*other)).then_some(*other)
            }
            _ => None,
        }
    }
    /// Compares lanes that the last instruction counts, if only this one reads them.
    fn is_counted(&mut self, to: At, prim: Prim, args: &[Operand]) -> bool {
        let (Prim::Op(PrimOp::Eq, Scalar::I64), [x, y]) = (prim, args) else { return false };
        let Some(Op::Count { to: counted, from }) = self.last() else { return false };
        let (x, y) = if self.is_lanes(*x) { (*x, *y) } else { (*y, *x) };
        if self.at(x) != counted || !self.is_read_once(x) || self.is_lanes(y) {
            return false;
        }
        self.out.ops.pop();
        let is = self.at(y);
        self.emit(Op::CountIs { to, from, is });
        true
    }
    /// One of two registers, for all lanes.
    pub(super) fn choose_lanes(&mut self, to: At, s: Scalar, condition: Operand, x: Operand, y: Operand) {
        let copy = |t: &mut Self, a: Operand| {
            let side = if t.is_lanes(a) { Side::Lanes } else { Side::Scalar };
            let from = t.at(a);
            t.copy_lanes(s, side, to, from);
        };
        let other = self.jump_if_not(condition);
        copy(self, x);
        let end = self.here();
        self.emit(Op::Jump { to: 0 });
        self.land(other);
        copy(self, y);
        self.land(end);
    }
    pub(super) fn accumulate(&self, s: Scalar) -> Option<MemoryKernel> {
        let sums = match self.shared.options.functions {
            Functions::Lanes => Sums::Together,
            Functions::Table => Sums::InOrder,
        };
        kernels::accumulate(s, sums, self.shared.options.machine)
    }
    pub(super) fn access(
        &mut self,
        kernel: MemoryKernel,
        s: Scalar,
        register: At,
        (pointer, index, stride): (Operand, Operand, Operand),
        mask: Option<Operand>,
    ) {
        let around = match mask {
            Some(m) if !self.is_lanes(m) => Some(self.jump_if_not(m)),
            _ => None,
        };
        let mask = mask.filter(|m| self.is_lanes(*m)).map_or(NOWHERE, |m| self.at(m));
        let kernel = self.shared.memory(kernel);
        let (pointer, at, stride) = (self.at(pointer), self.at(index), self.at(stride));
        self.emit(if self.is_lanes(index) {
            Op::AccessAt { kernel, register, pointer, indices: at, stride, mask }
        } else {
            Op::AccessLanes {
                kernel,
                shift: shift(Ty::Scalar(s)),
                register,
                pointer,
                index: at,
                stride,
                mask,
            }
        });
        if let Some(jump) = around {
            self.land(jump);
        }
    }
    pub(super) fn fold(
        &mut self,
        to: Reg,
        prim: Prim,
        neutral: Operand,
        from: Operand,
        mask: Option<Operand>,
    ) {
        let s = prim.result();
        if let (Prim::Op(op @ (PrimOp::And | PrimOp::Or), Scalar::Bool), None, true) =
            (prim, mask, self.is_lanes(from))
            && neutral == Operand::bool(op == PrimOp::And)
        {
            let wanted = u8::from(op == PrimOp::Or);
            let (to, from) = (self.places[to], self.at(from));
            return self.emit(Op::AnyLanes { to, from, wanted });
        }
        let mask = mask.map_or(NOWHERE, |m| self.in_lanes(m, Scalar::Bool, 1));
        let kernel = |prim: Prim, sides: &[Side]| {
            kernels::exact(prim, sides, self.shared.options.machine)
                .expect("lanes are folded by exact operations")
        };
        let from = self.in_lanes(from, s, 0);
        let site = FoldSite {
            to: self.places[to],
            from,
            mask,
            scratch: self.spare_lanes[2],
            neutral: self.at(neutral),
            prim,
            scalar: s,
            both: kernel(prim, &[Side::Lanes, Side::Lanes]),
            with_word: kernel(prim, &[Side::Lanes, Side::Scalar]),
            taken: kernels::identity(s, Side::Lanes, self.shared.options.machine),
            chosen: kernel(Prim::Op(PrimOp::Select, s), &[Side::Lanes, Side::Lanes, Side::Scalar]),
            fill: kernels::identity(s, Side::Scalar, self.shared.options.machine),
        };
        self.out.folds.push(site);
        self.emit(Op::FoldLanes { site: self.out.folds.len() as u32 - 1 });
    }
    pub(super) fn lane(&mut self, to: Reg, from: Operand, lane: usize) {
        let to_at = self.places[to];
        let at = self.at(from);
        if !self.is_lanes(from) {
            return self.emit(Op::Copy { to: to_at, from: at });
        }
        let ty = self.f.regs[to].ty;
        let is_signed = ty.scalar().is_some_and(Scalar::is_signed);
        let from = at + (lane * ty.bytes()) as At;
        self.emit(Op::Lane { shift: shift(ty), is_signed, to: to_at, from });
    }
}

/// Registers that are set once, to lane numbers, and only read to be added to a scalar.
pub(super) fn counters(f: &Function) -> BTreeSet<Reg> {
    let (mut numbers, mut twice) = (BTreeSet::new(), BTreeSet::new());
    walk(&f.body, &mut |ins| {
        if let Ins::LaneNumber { to } = ins
            && !numbers.insert(*to)
        {
            twice.insert(*to);
        }
    });
    let is_lanes = |a: Operand| matches!(a, Operand::Reg(r) if f.regs[r].ty.is_lanes());
    walk(&f.body, &mut |ins| match ins {
        Ins::LaneNumber { to } if twice.contains(to) => {
            numbers.remove(to);
        }
        Ins::LaneNumber { .. } => {}
        ins => {
            ins.sets().iter().for_each(|r| {
                numbers.remove(r);
            });
            match ins {
                Ins::Prim { prim: Prim::Op(PrimOp::Add, Scalar::I64), args, .. }
                    if args.iter().filter(|a| is_lanes(**a)).count() == 1 => {}
                _ => reads(ins, &mut |r| {
                    numbers.remove(&r);
                }),
            }
        }
    });
    numbers
}
