//! Conditions that only ask whether a place exists go from additions to it.
//!
//! ```text
//! if i - 1 < 0 then () else acc[i - 1] += v      =>      acc[i - 1] += v
//! ```
//!
//! What is added to a place that an accumulator does not have is ignored. Stencils that ask at their borders leave such
//! conditions in their derivatives, where they would become arrays of their own: of one value, with zeros at other borders.
//!
//! Assumes a checked program. Guarantees: the same additions in the same order. What is computed for the addition alone is
//! computed where it is ignored, too; it is a few operations that cannot stop the program.

use crate::Ctx;
use crate::beside::{Beside, beside};
use crate::hoist::holds_little;
use pullback_base::index::IdMap;
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Exp, Program, Stm, Var};
use pullback_prim::{Op, Prim, Scalar};

/// Runs the pass. Cost: the size of the program.
pub fn eliminate_guards(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut guards = false;
        for_each_stm(&program.funs[id].body, &mut |s| guards |= guarded(&s.exp).is_some());
        if !guards {
            continue;
        }
        let mut body = std::mem::take(&mut program.funs[id].body);
        let shapes = shapes(program, &program.funs[id].params, &body);
        Unguard { shapes, tests: IdMap::new() }.body(&mut body);
        program.funs[id].body = body;
    }
}

/// A condition under which something is added, and nothing else is done: the condition, what it is then, and the arm that adds.
fn guarded(exp: &Exp) -> Option<(Var, bool, &Body)> {
    let Exp::If(Atom::Var(c), then, otherwise) = exp else { return None };
    let (holds, arm) = match (&then.stms[..], &otherwise.stms[..]) {
        ([], [_, ..]) => (false, otherwise),
        ([_, ..], []) => (true, then),
        _ => return None,
    };
    let same = then.result == otherwise.result && arm.result.iter().all(|a| a.var().is_none());
    let adds = arm.stms.iter().any(|s| matches!(s.exp, Exp::AccAdd(..)));
    (same && adds).then_some((*c, holds, arm))
}

struct Unguard {
    shapes: Shapes,
    /// How truth values and integers are computed.
    tests: IdMap<Var, Exp>,
}

/// A place in an axis of an accumulator, and how long the axis is.
#[derive(Clone, Copy)]
struct Place {
    at: Beside,
    size: Dim,
}

impl Unguard {
    fn body(&mut self, body: &mut Body) {
        let mut out = Vec::with_capacity(body.stms.len());
        for mut stm in std::mem::take(&mut body.stms) {
            if let (Exp::Prim(Prim::Op(_, Scalar::I64 | Scalar::Bool), _), [v]) = (&stm.exp, &stm.pat[..]) {
                self.tests.insert(*v, stm.exp.clone());
            }
            for scope in stm.exp.bodies_mut() {
                self.body(scope.body);
            }
            let redundant = guarded(&stm.exp).is_some_and(|(c, holds, arm)| self.is_redundant(c, holds, arm));
            let Stm { pat, exp } = stm;
            match exp {
                Exp::If(_, then, otherwise) if redundant => {
                    let result = then.result;
                    out.extend(then.stms.into_iter().chain(otherwise.stms));
                    out.extend(
                        pat.into_iter().zip(result).map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }),
                    );
                }
                exp => out.push(Stm { pat, exp }),
            }
        }
        body.stms = out;
    }

    /// Whether the arm does nothing where it does not run: what it adds has no place there.
    fn is_redundant(&self, c: Var, holds: bool, arm: &Body) -> bool {
        let rest = arm.stms.iter().filter(|s| !matches!(s.exp, Exp::AccAdd(..)));
        holds_little(rest)
            && arm.stms.iter().all(|s| match &s.exp {
                Exp::AccAdd(Atom::Var(acc), ix, _) => {
                    self.places(*acc, ix).iter().any(|p| self.misses(c, !holds, *p))
                }
                _ => true,
            })
    }
    /// The places of an addition, as far as they are known.
    fn places(&self, acc: Var, ix: &[Atom]) -> Vec<Place> {
        let place = |(i, size): (&Atom, &Dim)| Some(Place { at: self.beside(*i)?, size: *size });
        ix.iter().zip(self.shapes.of(acc)).filter_map(place).collect()
    }
    fn beside(&self, a: Atom) -> Option<Beside> {
        beside(a, |v| self.tests.get(&v))
    }

    /// Whether a place does not exist where the truth value is this.
    fn misses(&self, c: Var, is: bool, place: Place) -> bool {
        let Some(Exp::Prim(Prim::Op(op, s), args)) = self.tests.get(&c) else { return false };
        let of = |k: usize, is: bool| args[k].var().is_some_and(|c| self.misses(c, is, place));
        match (op, s, is) {
            (Op::Not, ..) => of(0, !is),
            (Op::And, Scalar::Bool, true) | (Op::Or, Scalar::Bool, false) => of(0, is) || of(1, is),
            (Op::And, Scalar::Bool, false) | (Op::Or, Scalar::Bool, true) => of(0, is) && of(1, is),
            (Op::Lt, Scalar::I64, true) => self.misses_below(args[0], args[1], 1, place),
            (Op::Lt, Scalar::I64, false) => self.misses_below(args[1], args[0], 0, place),
            (Op::Le, Scalar::I64, true) => self.misses_below(args[0], args[1], 0, place),
            (Op::Le, Scalar::I64, false) => self.misses_below(args[1], args[0], 1, place),
            (Op::Eq, Scalar::I64, true) | (Op::Ne, Scalar::I64, false) => {
                let below = |a: usize, b: usize| self.misses_below(args[a], args[b], 0, place);
                below(0, 1) || below(1, 0)
            }
            _ => false,
        }
    }
    /// Whether a place does not exist where `a + gap <= b`.
    fn misses_below(&self, a: Atom, b: Atom, gap: i64, place: Place) -> bool {
        self.misses_low(a, b, gap, place) || self.misses_high(a, b, gap, place)
    }
    /// Whether a place beside `a` is before the first, where `a + gap <= b`. (Where `a` is near the least of all numbers, the
    /// place may be near the largest: no axis is that long.)
    fn misses_low(&self, a: Atom, b: Atom, gap: i64, place: Place) -> bool {
        let (Some(a), Some(b)) = (self.beside(a), self.beside(b)) else { return false };
        a.base == place.at.base && b.base.is_none() && b.number - gap - a.number + place.at.number < 0
    }
    /// Whether a place beside `b` is behind the last, where `a + gap <= b`.
    fn misses_high(&self, a: Atom, b: Atom, gap: i64, place: Place) -> bool {
        let (Some(a), Some(b)) = (self.beside(a), self.beside(b)) else { return false };
        // What `a` is more than the size.
        let more = match (a.base, place.size) {
            (None, Dim::Const(n)) => a.number - n,
            (Some(v), size) if size != Dim::Unknown && self.shapes.name(v.into()) == size => a.number,
            _ => return false,
        };
        b.base == place.at.base && more + gap - b.number + place.at.number >= 0
    }
}
