//! Checks without their operations: see [`Check`].

use super::arrays::{agree, mismatch, out_of_bounds, same_count};
use super::code::{Arg, SliceCode};
use super::machine::{Machine, Res, internal};
use super::num::Domain;
use super::value::Val;
use pullback_core::{Check, Shaped};

impl<D: Domain> Machine<'_, D> {
    pub(super) fn check(&mut self, check: Check, args: &[Arg]) -> Res<Val<D>> {
        match check {
            Check::Index(count) => {
                let (ix, shape) = args.split_at(count);
                let shape = self.sizes(shape)?;
                self.flat(&shape, ix)?;
            }
            Check::Slice => {
                let [start, len, stride, n] = args else { return Err(internal("a check of no slice")) };
                let n = self.size(*n)?;
                self.span1(&SliceCode { start: *start, len: *len, stride: *stride }, n)?;
            }
            Check::Gather => {
                let shape = self.sizes(&args[1..])?;
                let indices = self.indices(args[0])?;
                self.tick(indices.len() as u64)?;
                for i in indices {
                    if i < 0 || i as u64 >= shape[0] as u64 {
                        return Err(out_of_bounds(&[i], &shape));
                    }
                }
            }
            Check::Prim(prim) => {
                let args = args.iter().map(|&a| self.num(a)).collect::<Res<Vec<_>>>()?;
                self.prim(prim, &args)?;
            }
            Check::Sizes => {
                self.sizes(args)?;
            }
            Check::Reshape(count) => {
                let (old, new) = args.split_at(count);
                let (new, old) = (self.sizes(new)?, self.sizes(old)?);
                same_count(&old, &new)?;
            }
            Check::Shapes(of, rank) => {
                let (left, right) = args.split_at(rank);
                let (left, right) = (self.sizes(left)?, self.sizes(right)?);
                if !agree(&left, &right) {
                    return Err(mismatch(of.words(), &left, &right));
                }
            }
            Check::Rows => {
                let columns = args.iter().map(|&a| self.indices(a)).collect::<Res<Vec<_>>>()?;
                let rows = columns.first().map_or(0, Vec::len);
                self.tick(rows as u64)?;
                let shape = |k: usize| columns.iter().map(|c| c[k] as usize).collect::<Vec<_>>();
                for k in 1..rows {
                    if !agree(&shape(0), &shape(k)) {
                        return Err(mismatch(Shaped::Row.words(), &shape(0), &shape(k)));
                    }
                }
            }
        }
        Ok(Val::Unit)
    }
    fn sizes(&self, args: &[Arg]) -> Res<Vec<usize>> {
        args.iter().map(|&n| self.size(n)).collect()
    }
}
