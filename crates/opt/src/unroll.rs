//! Small array operations over arrays whose elements are known, and short loops, become straight-line code.
//!
//! An array is known by its elements if it is written as a literal, an `iota` or a `replicate` of constant size, or the
//! result of an operation that was unrolled. `map` and `reduce` over such arrays, and `for` loops with a constant number
//! of iterations, are replaced by copies of their bodies, first element first: the values are the same bit for bit. So
//! indices stay constants, and cotangents of small vectors stay scalars under reverse mode.
//!
//! Steps: one less per iteration; an array that somebody reads as a whole costs a literal, which is one more than a
//! `map`, so operations with several arrays as results stay. Code: an
//! operation grows to at most [`GROWTH`] statements and a function by at most [`BUDGET`], so code stays linear in the
//! source. Operations with attributes (`#[tape(..)]`) stay; so does what is under a mark.
//!
//! Source: classic; the Fast CHAD specification asks for it before differentiation (section 3.3, hand tracking).

use crate::{Ctx, size};
use pullback_base::index::IdMap;
use pullback_core::rename::{Subst, copy_applied, copy_stms, substitute_atom};
use pullback_core::{Atom, Body, Exp, Lam, Loop, LoopAttrs, LoopForm, Program, Soac, Stm, Type, Var};

/// The most statements that one operation may become.
const GROWTH: usize = 32;
/// The most statements that all operations of a function may become.
const BUDGET: usize = 2_000;

/// Runs the pass. Cost: the size of the result.
pub fn unroll(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        let mut pass = Unroll { program, known: IdMap::new(), budget: BUDGET };
        pass.body(&mut body);
        program.funs[id].body = body;
    }
}

struct Unroll<'p> {
    program: &'p mut Program,
    /// The elements of arrays.
    known: IdMap<Var, Vec<Atom>>,
    budget: usize,
}

impl Unroll<'_> {
    fn body(&mut self, body: &mut Body) {
        let mut out = Vec::with_capacity(body.stms.len());
        for mut stm in std::mem::take(&mut body.stms) {
            if !matches!(stm.exp, Exp::Marked(..)) {
                // Inner operations first: what they become counts for the outer ones.
                for scope in stm.exp.bodies_mut() {
                    self.body(scope.body);
                }
            }
            match stm.exp {
                Exp::Soac(Soac::Map { width, lam, arrays }) => {
                    match self.rows(stm.pat.len(), width, &lam, &arrays) {
                        Some(rows) => self.map(stm.pat, &lam, rows, &mut out),
                        None => {
                            out.push(Stm { pat: stm.pat, exp: Exp::Soac(Soac::Map { width, lam, arrays }) })
                        }
                    }
                }
                Exp::Soac(Soac::Reduce { width, lam, neutral, arrays, commutative }) => {
                    match self.rows(1, width, &lam, &arrays) {
                        Some(rows) => self.reduce(stm.pat, &lam, neutral, rows, &mut out),
                        None => {
                            let soac = Soac::Reduce { width, lam, neutral, arrays, commutative };
                            out.push(Stm { pat: stm.pat, exp: Exp::Soac(soac) });
                        }
                    }
                }
                Exp::Loop(l) => match self.iterations(&l) {
                    Some(n) => self.loop_(stm.pat, l, n, &mut out),
                    None => out.push(Stm { pat: stm.pat, exp: Exp::Loop(l) }),
                },
                exp => {
                    self.note(&stm.pat, &exp);
                    out.push(Stm { pat: stm.pat, exp });
                }
            }
        }
        body.stms = out;
    }

    fn note(&mut self, pat: &[Var], exp: &Exp) {
        let elements = match exp {
            Exp::ArrayLit(_, items) => items.clone(),
            Exp::Iota(Atom::Const(n)) if (0..=GROWTH as i64).contains(&n.as_i64()) => {
                (0..n.as_i64()).map(Atom::i64).collect()
            }
            Exp::Replicate(shape, x) => match shape[..] {
                [Atom::Const(n)] if (0..=GROWTH as i64).contains(&n.as_i64()) => {
                    vec![*x; n.as_i64() as usize]
                }
                _ => return,
            },
            Exp::Atom(Atom::Var(v)) => match self.known.get(v) {
                Some(items) => items.clone(),
                None => return,
            },
            _ => return,
        };
        self.known.insert(pat[0], elements);
    }

    /// The arguments of each application, if there is at most one array to write, all are known and the copies are within the limits.
    fn rows(&mut self, results: usize, width: Atom, lam: &Lam, arrays: &[Atom]) -> Option<Vec<Vec<Atom>>> {
        let Atom::Const(n) = width else { return None };
        if results > 1 {
            return None;
        }
        let n = usize::try_from(n.as_i64()).ok().filter(|n| (1..=GROWTH).contains(n))?;
        let columns: Vec<&Vec<Atom>> =
            arrays.iter().map(|a| self.known.get(&a.var()?)).collect::<Option<_>>()?;
        if columns.iter().any(|c| c.len() != n) {
            return None;
        }
        let rows = (0..n).map(|k| columns.iter().map(|c| c[k]).collect()).collect();
        self.allows(n, &lam.body).then_some(rows)
    }
    fn iterations(&mut self, l: &Loop) -> Option<usize> {
        let LoopForm::For { i: _, n: Atom::Const(n) } = &l.form else { return None };
        let n = usize::try_from(n.as_i64()).ok().filter(|n| (1..=GROWTH).contains(n))?;
        (l.attrs == LoopAttrs::default() && l.collect <= 1 && self.allows(n, &l.body)).then_some(n)
    }
    fn allows(&mut self, times: usize, body: &Body) -> bool {
        let cost = times * size(body).max(1);
        let fits = cost <= GROWTH && cost <= self.budget;
        if fits {
            self.budget -= cost;
        }
        fits
    }

    fn map(&mut self, pat: Vec<Var>, lam: &Lam, rows: Vec<Vec<Atom>>, out: &mut Vec<Stm>) {
        let mut columns = vec![Vec::with_capacity(rows.len()); pat.len()];
        for row in rows {
            let copy = copy_applied(self.program, lam, &row, &Subst::new());
            out.extend(copy.stms);
            columns.iter_mut().zip(copy.result).for_each(|(c, a)| c.push(a));
        }
        self.literals(pat, columns, out);
    }

    fn reduce(
        &mut self,
        pat: Vec<Var>,
        lam: &Lam,
        neutral: Vec<Atom>,
        rows: Vec<Vec<Atom>>,
        out: &mut Vec<Stm>,
    ) {
        let mut total = neutral;
        for row in rows {
            let args: Vec<Atom> = total.into_iter().chain(row).collect();
            let copy = copy_applied(self.program, lam, &args, &Subst::new());
            out.extend(copy.stms);
            total = copy.result;
        }
        out.extend(pat.into_iter().zip(total).map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
    }

    fn loop_(&mut self, pat: Vec<Var>, l: Loop, times: usize, out: &mut Vec<Stm>) {
        let LoopForm::For { i, n } = l.form else { unreachable!("`iterations` asks for a `for` loop") };
        let scalar = self.program.atom_type(n).scalar();
        let mut state: Vec<Atom> = l.params.iter().map(|p| p.1).collect();
        let mut columns = vec![Vec::with_capacity(times); l.collect];
        for k in 0..times {
            let mut subst: Subst = l.params.iter().map(|p| p.0).zip(state).collect();
            subst.insert(
                i,
                Atom::Const(scalar.map_or_else(|| unreachable!("a size"), |s| s.from_i64(k as i64))),
            );
            out.extend(copy_stms(self.program, &l.body.stms, &mut subst));
            let mut results = l.body.result.iter().map(|a| substitute_atom(*a, &subst));
            state = results.by_ref().take(l.params.len()).collect();
            columns.iter_mut().zip(results).for_each(|(c, a)| c.push(a));
        }
        let mut pat = pat;
        let stacked = pat.split_off(state.len());
        out.extend(pat.into_iter().zip(state).map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
        self.literals(stacked, columns, out);
    }

    fn literals(&mut self, pat: Vec<Var>, columns: Vec<Vec<Atom>>, out: &mut Vec<Stm>) {
        for (v, items) in pat.into_iter().zip(columns) {
            let Type::Array(elem) = self.program.vars[v].ty.clone() else {
                unreachable!("results of maps and stacked values are arrays")
            };
            self.known.insert(v, items.clone());
            out.push(Stm { pat: vec![v], exp: Exp::ArrayLit(Type::clone(&elem), items) });
        }
    }
}
