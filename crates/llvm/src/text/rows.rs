//! Rows that lanes write whole: elements 0, 1, 2, .. of a row by each lane, rows at equal distances.
//!
//! Element by element that is a scalar store for each lane. Here eight (or four) elements of all lanes are transposed in registers, and
//! each lane's part of its row is one store of a vector. Where the number of elements is no multiple of that, the last
//! vectors begin before the others end, and some elements are stored twice.
//!
//! Assumes stores of a loop in any order: lanes write different memory, so their order does not matter.

use super::form::{Form, vector};
use super::scopes::Scopes;
use super::{Emitter, in_memory, line};
use pullback_kernel::{Ins, Operand, Reg, Ty};
use std::fmt::Write;

/// Stores of a row that follow each other.
pub(super) struct Row {
    /// Instructions, some of which may compute values in between.
    pub(super) length: usize,
    pointer: Operand,
    first: i64,
    stride: Operand,
    ty: Ty,
    values: Vec<Operand>,
}

/// So many stores are worth it.
const FEW: usize = 4;

/// The row that is stored by the first instructions of a block, all of whose lanes are active. What is loaded in between is from elsewhere.
pub(super) fn row(block: &[Ins], scopes: &Scopes) -> Option<Row> {
    let Ins::StoreLanes { pointer, index, stride, ty, mask: None, .. } = block.first()? else { return None };
    let (pointer, first, stride, ty) = (*pointer, index.as_i64()?, *stride, *ty);
    let plain = ty.scalar().is_some_and(|s| s.bytes() >= 4);
    if !plain || matches!(stride.as_i64(), Some(-1..=1)) {
        return None;
    }
    let mut row = Row { length: 0, pointer, first, stride, ty, values: Vec::new() };
    // Pointers that are this one, moved by so many elements.
    let mut moved: Vec<(Reg, i64)> = Vec::new();
    let place = |pointer: Operand, moved: &[(Reg, i64)]| match pointer {
        _ if pointer == row.pointer => Some(0),
        Operand::Reg(r) => moved.iter().find(|(p, _)| *p == r).map(|(_, at)| *at),
        Operand::Const(_) | Operand::Null => None,
    };
    for (k, ins) in block.iter().enumerate() {
        match ins {
            Ins::StoreLanes { pointer, index, stride, value, ty, mask: None } => {
                let at = place(*pointer, &moved).zip(index.as_i64()).and_then(|(a, b)| a.checked_add(b));
                let next = row.first.checked_add(row.values.len() as i64);
                if at.is_none() || at != next || (*stride, *ty) != (row.stride, row.ty) {
                    break;
                }
                row.values.push(*value);
                row.length = k + 1;
            }
            Ins::Offset { to, pointer, index, ty, .. } if !row.reads(*to) => {
                moved.retain(|(r, _)| r != to);
                if *ty == row.ty
                    && let Some((a, b)) = place(*pointer, &moved).zip(index.as_i64())
                {
                    moved.extend(a.checked_add(b).map(|at| (*to, at)));
                }
            }
            Ins::Prim { to, .. } | Ins::Set { to, .. } if !row.reads(*to) => {}
            Ins::LoadLanes { to, pointer, .. }
                if !row.reads(*to) && scopes.are_apart(*pointer, row.pointer) => {}
            _ => break,
        }
    }
    (row.values.len() >= FEW).then_some(row)
}

impl Row {
    /// Whether the row needs what a register holds.
    fn reads(&self, r: Reg) -> bool {
        [self.pointer, self.stride].iter().chain(&self.values).any(|a| *a == r.into())
    }
}

impl Emitter<'_> {
    /// How many elements are stored at once.
    pub(super) fn together(&self, row: &Row) -> Option<usize> {
        match self.lanes {
            _ if self.active.is_some() => None,
            Some(8) if row.values.len() >= 8 => Some(8),
            Some(4 | 8) => Some(4),
            _ => None,
        }
    }

    /// Stores a row, so many elements at once. What is computed in between comes first.
    pub(super) fn store_row(&mut self, block: &[Ins], row: &Row, together: usize) {
        for ins in &block[..row.length] {
            if !matches!(ins, Ins::StoreLanes { .. }) {
                self.ins(ins);
            }
        }
        let Some(scalar) = row.ty.scalar() else { return };
        let scope = self.scopes.suffix(row.pointer).to_string();
        let k = self.lanes_of(scalar);
        let (pointer, stride) = (self.value(row.pointer), self.value(row.stride));
        let values: Vec<String> = row.values.iter().map(|v| self.wide_value(*v)).collect();
        let (t, bytes, part) = (in_memory(row.ty), scalar.bytes(), Form { scalar, lanes: together }.ty());
        let last = values.len() - together;
        for start in (0..values.len()).step_by(together).map(|start| start.min(last)) {
            let rows = self.transposed(&values[start..start + together], k);
            let first = row.first + start as i64;
            let first = self.let_(format_args!("getelementptr {t}, ptr {pointer}, i64 {first}"));
            for (lane, x) in rows.iter().enumerate() {
                let to = self.one(&first, &stride, scalar, lane);
                line!(self, "store {part} {x}, ptr {to}, align {bytes}{scope}");
            }
        }
    }

    /// Vectors of lanes, four or eight of them, as one vector for each lane.
    fn transposed(&mut self, values: &[String], k: Form) -> Vec<String> {
        let n = k.lanes;
        // Pairs of elements of every second lane, from lane 0 on and from lane 1 on.
        let mut halves = [Vec::new(), Vec::new()];
        for pair in values.chunks_exact(2) {
            for (odd, half) in halves.iter_mut().enumerate() {
                let which: Vec<usize> = (0..n / 2).flat_map(|l| [2 * l + odd, n + 2 * l + odd]).collect();
                half.push(self.shuffled(&pair[0], &pair[1], k, &which));
            }
        }
        let mut rows = vec![String::new(); n];
        for (odd, half) in halves.iter().enumerate() {
            if let [a, b] = &half[..] {
                for l in 0..n / 2 {
                    let which = [2 * l, 2 * l + 1, n + 2 * l, n + 2 * l + 1];
                    rows[2 * l + odd] = self.shuffled(a, b, k, &which);
                }
                continue;
            }
            // Every second pair of two vectors, twice: lanes 0 and 4 or 2 and 6, then one lane.
            for second in 0..2 {
                let (low, high) =
                    (self.every_second(&half[..2], second, k), self.every_second(&half[2..], second, k));
                for later in 0..2 {
                    let row = self.every_second(&[low.clone(), high.clone()], later, k);
                    rows[2 * second + 4 * later + odd] = row;
                }
            }
        }
        rows
    }
    /// The pairs 0, 2, .. or 1, 3, .. of two vectors.
    fn every_second(&mut self, two: &[String], from: usize, k: Form) -> String {
        let which: Vec<usize> =
            (0..k.lanes / 2).flat_map(|l| [4 * l + 2 * from, 4 * l + 2 * from + 1]).collect();
        self.shuffled(&two[0], &two[1], k, &which)
    }
    fn shuffled(&mut self, a: &str, b: &str, k: Form, which: &[usize]) -> String {
        let (t, n, which) = (k.ty(), which.len(), vector("i32", which.iter().copied()));
        self.let_(format_args!("shufflevector {t} {a}, {t} {b}, <{n} x i32> {which}"))
    }
}
