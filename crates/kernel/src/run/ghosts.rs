//! Events of the lowering in the reference executor: each run is a test of ownership, whatever the values are.
//!
//! A variable is a time: it shows what was written until then. A pointer is read for one variable at a time; what is made of it (moved, stored, passed
//! on, copied to another register) is read for the same variable. So nothing has to be noted of elements but when they were written.

use super::memory::{Pointer, Seen, Word, wrong};
use super::{Held, Machine, Regs, Res};
use crate::ghosts::Ghost;
use crate::ir::{Operand, Reg};
use pullback_base::index::Index;

impl Machine<'_> {
    /// What an event says of the pointer in a register, of which another one is a copy.
    pub(super) fn note(&mut self, ghost: &Ghost, regs: &mut Regs, (to, value): (Reg, Operand)) -> Res<()> {
        let now = self.memory.clock;
        let of = value.as_reg().ok_or_else(|| wrong("an event of no register"))?;
        let p = self.pointer(regs, value)?;
        match ghost {
            Ghost::Bind { name, .. } => {
                let seen = Seen { name: *name, time: p.seen.map_or(now, |seen| seen.time) };
                read_for(regs, to, p, Some(seen));
            }
            Ghost::Read { of: variable } => {
                let seen = self.pointer(regs, (*variable).into())?.seen;
                read_for(regs, of, p, seen);
            }
            Ghost::Check { shape } => {
                let size =
                    |(n, stride): &(Operand, Operand)| Ok((self.i64(regs, *n)?, self.i64(regs, *stride)?));
                let shape = shape.iter().map(size).collect::<Res<Vec<_>>>()?;
                self.compare(p, 0, &shape)?;
                // What was right until now is what is there now.
                read_for(regs, of, p, p.seen.map(|seen| Seen { time: now, ..seen }));
            }
            Ghost::Own => read_for(regs, of, p, None),
        }
        Ok(())
    }
    /// Compares all elements of an array of this shape.
    fn compare(&self, p: Pointer, at: i64, shape: &[(i64, i64)]) -> Res<()> {
        match shape {
            _ if p.seen.is_none() => Ok(()),
            [] => self.memory.compare(p, at),
            [(n, stride), rest @ ..] => (0..*n).try_for_each(|k| self.compare(p, at + k * stride, rest)),
        }
    }
}

fn read_for(regs: &mut Regs, r: Reg, p: Pointer, seen: Option<Seen>) {
    regs[r.index()] = Held::One(Word::Pointer(Pointer { seen, ..p }).printed());
}
