//! Two analyses of operators: whether they are smooth, and whether their cost depends on values; and what follows from both.
//!
//! Assumes checked code. All err on the safe side: they say yes only if it is so. Source: T. Smeding,
//! PhD thesis, section 6.6 (a fold inside the operator of a fold), for the reason why cost matters.

use pullback_base::index::IdSet;
use pullback_core::traverse::{for_each_stm, free_vars_exp};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Loop, LoopForm, Program, SliceDim, Soac, Stm, Var};
use pullback_prim::{Op, Prim};

/// Whether the derivative of an associative operator may be taken with other brackets than those of the program: neither
/// the derivative nor the cost depends on them.
pub fn may_be_bracketed_anew(program: &Program, lam: &Lam) -> bool {
    is_smooth(&lam.body) && is_steady(program, lam) && keeps_sizes(&lam.body)
}

/// Whether no result is put together or cut: such an operator may give rows of another length than those it takes.
fn keeps_sizes(body: &Body) -> bool {
    let resizes = |stm: &Stm| matches!(stm.exp, Exp::Concat(_) | Exp::Slice(..));
    let made = body.stms.iter().filter(|stm| resizes(stm)).flat_map(|stm| &stm.pat);
    made.into_iter().all(|v| !body.result.contains(&Atom::Var(*v)))
}

/// Whether the derivative does not depend on how an associative operator is bracketed. At a kink it may: `min_first` and
/// `max_first` give everything to their first argument on a tie, and other brackets have other ties.
pub fn is_smooth(body: &Body) -> bool {
    let mut smooth = true;
    for_each_stm(body, &mut |stm| {
        smooth &= match &stm.exp {
            Exp::If(..) | Exp::Match(..) => false,
            Exp::Prim(Prim::Op(op, s), _) => {
                !s.is_float()
                    || !matches!(
                        op,
                        Op::Abs
                            | Op::Sgn
                            | Op::Min
                            | Op::Max
                            | Op::MinFirst
                            | Op::MaxFirst
                            | Op::Floor
                            | Op::Ceil
                            | Op::Round
                            | Op::Trunc
                            | Op::Mod
                            | Op::Rem
                            | Op::Quot
                            | Op::Pow
                            | Op::Hypot
                            | Op::Select
                    )
            }
            Exp::Loop(l) => matches!(l.form, LoopForm::For { .. }),
            _ => true,
        };
    });
    smooth
}

/// Whether the work of a lambda depends only on the shapes of its arguments: no trip count, no width and no choice
/// between arms with loops depends on their values. Arguments of one parameter have one shape.
pub fn is_steady(program: &Program, lam: &Lam) -> bool {
    let mut walk = Walk {
        program,
        values: lam.params.iter().copied().collect(),
        shapes: IdSet::new(),
        calls: Vec::new(),
    };
    walk.body(&lam.body)
}

struct Walk<'p> {
    program: &'p Program,
    /// What depends on the arguments.
    values: IdSet<Var>,
    /// Arrays whose shapes depend on the values of the arguments.
    shapes: IdSet<Var>,
    calls: Vec<FunId>,
}

impl Walk<'_> {
    fn varies(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.values.contains(&v))
    }
    fn body(&mut self, body: &Body) -> bool {
        body.stms.iter().all(|stm| self.stm(stm))
    }
    fn stm(&mut self, stm: &Stm) -> bool {
        let used = free_vars_exp(&stm.exp);
        let resized = used.iter().any(|v| self.shapes.contains(v));
        let varies = match &stm.exp {
            Exp::Size(..) => resized,
            _ => used.iter().any(|v| self.values.contains(v)),
        };
        let sizes: &[Atom] = match &stm.exp {
            Exp::Iota(n) => std::slice::from_ref(n),
            Exp::Slice(_, SliceDim { len, .. }) => std::slice::from_ref(len),
            Exp::Replicate(shape, _) | Exp::Reshape { shape, .. } => shape,
            _ => &[],
        };
        let resized = resized || sizes.iter().any(|&n| self.varies(n));
        if varies && !self.inside(&stm.exp) {
            return false;
        }
        if varies {
            self.values.extend(stm.pat.iter().copied());
        }
        if resized {
            self.shapes.extend(stm.pat.iter().copied());
        }
        true
    }
    /// What runs inside an expression that depends on the arguments.
    fn inside(&mut self, exp: &Exp) -> bool {
        match exp {
            Exp::Loop(l) => {
                let LoopForm::For { n, .. } = &l.form else { return false };
                if self.varies(*n) {
                    return false;
                }
            }
            Exp::Soac(soac) => {
                let (Soac::Map { width, .. }
                | Soac::Reduce { width, .. }
                | Soac::Scan { width, .. }
                | Soac::Fused { width, .. }
                | Soac::Hist { width, .. }
                | Soac::Scatter { width, .. }) = soac;
                if self.varies(*width) {
                    return false;
                }
            }
            Exp::If(c, ..) | Exp::Match(c, _)
                if self.varies(*c) && exp.bodies().iter().any(|s| has_loops(s.body)) =>
            {
                return false;
            }
            Exp::Call(f, _) => {
                if self.calls.contains(f) {
                    return false;
                }
                let fun = &self.program.funs[*f];
                self.calls.push(*f);
                self.values.extend(fun.params.iter().copied());
                let steady = self.body(&fun.body);
                self.calls.pop();
                return steady;
            }
            _ => {}
        }
        for scope in exp.bodies() {
            self.values.extend(scope.binds.iter());
        }
        if let Exp::Loop(Loop { form: LoopForm::For { i, .. }, .. }) = exp {
            self.values.remove(i);
        }
        exp.bodies().iter().all(|scope| self.body(scope.body))
    }
}

fn has_loops(body: &Body) -> bool {
    let mut found = false;
    for_each_stm(body, &mut |stm| {
        found |= matches!(stm.exp, Exp::Loop(_) | Exp::Soac(_) | Exp::Call(..));
    });
    found
}
