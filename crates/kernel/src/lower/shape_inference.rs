//! The sizes that the results of a body would have, found without running it: for arrays made by no iterations.
//!
//! A map over nothing whose function returns arrays has a result `[0][m]`. Where `m` has no name outside of the body, what
//! the body says about it is followed back to what is known outside: `concat` is as long as its parts together, a `filter`
//! that was asserted to have `b` elements has `b`. Sizes that depend on what only an iteration knows stay unknown; the rules
//! are those of `interp/core/shapes.rs`. Nothing that is computed here can stop the program.

use super::Lower;
use super::rep::Rep;
use crate::ir::Operand;
use pullback_base::index::IdMap;
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Body, Exp, FusedForm, Lam, Loop, LoopForm, Soac, Var};
use pullback_prim::{Op, Prim, Scalar};

/// How many variables one question may ask for.
const FUEL: usize = 500;

/// What a variable bound inside of the body is, as far as its sizes matter.
#[derive(Clone, Copy)]
enum Def<'b> {
    /// This result of an expression.
    Of(&'b Exp, usize),
    /// An element of an array.
    Row(Atom),
    /// As large as this.
    Like(Atom),
    Unknown,
}

/// What is known inside of a body that is not run.
pub(super) struct Inside<'b> {
    /// What variables are; none: they are bound outside.
    defs: IdMap<Var, Def<'b>>,
    /// Scalars that an assertion says are equal: the second is what a type says.
    equal: Vec<(Atom, Atom)>,
    /// What is being asked for.
    asked: Vec<(Var, Option<usize>)>,
    fuel: usize,
}

impl<'b> Inside<'b> {
    fn new() -> Self {
        Inside { defs: IdMap::new(), equal: Vec::new(), asked: Vec::new(), fuel: FUEL }
    }
    /// Inside of a function that is applied to the elements of arrays.
    pub(super) fn rows(lam: &'b Lam, arrays: &[Atom]) -> Self {
        let mut inside = Inside::new();
        inside.enter_rows(lam, arrays);
        inside
    }
    /// Inside of an operator with this neutral element: without elements it is what there is.
    pub(super) fn operator(lam: &'b Lam, neutral: &[Atom]) -> Self {
        let mut inside = Inside::new();
        inside.enter_lam(lam, neutral.iter().chain(neutral).map(|a| Def::Like(*a)));
        let results = lam.body.result.iter().zip(neutral);
        inside.defs.extend(results.filter_map(|(r, a)| Some((r.var()?, Def::Like(*a)))));
        inside
    }
    /// Inside of the first iteration of a loop.
    pub(super) fn iteration(l: &'b Loop, is_array: impl Fn(Var) -> bool) -> Self {
        let mut inside = Inside::new();
        inside.enter_loop(l, is_array);
        inside
    }
    fn enter(&mut self, body: &'b Body) {
        for stm in &body.stms {
            for (k, v) in stm.pat.iter().enumerate() {
                self.defs.insert(*v, Def::Of(&stm.exp, k));
            }
            if let Exp::Assert(Atom::Var(condition), ..) = &stm.exp
                && let Some(Def::Of(Exp::Prim(Prim::Op(Op::Eq, Scalar::I64), args), _)) =
                    self.defs.get(condition)
                && let [a, b] = args[..]
            {
                self.equal.push((a, b));
            }
        }
    }
    fn enter_lam(&mut self, lam: &'b Lam, params: impl IntoIterator<Item = Def<'b>>) {
        let rest = std::iter::repeat(Def::Unknown);
        self.defs.extend(lam.params.iter().copied().zip(params.into_iter().chain(rest)));
        self.enter(&lam.body);
    }
    fn enter_rows(&mut self, lam: &'b Lam, arrays: &[Atom]) {
        self.enter_lam(lam, arrays.iter().map(|a| Def::Row(*a)));
    }
    /// `is_like`: whether a state is as large as the first one.
    fn enter_loop(&mut self, l: &'b Loop, is_like: impl Fn(Var) -> bool) {
        for (p, init) in &l.params {
            let def = if is_like(*p) { Def::Like(*init) } else { Def::Unknown };
            self.defs.insert(*p, def);
        }
        if let LoopForm::For { i, .. } = l.form {
            self.defs.insert(i, Def::Unknown);
        }
        self.enter(&l.body);
    }
    /// What assertions say that a scalar is equal to: what types say first.
    fn equals(&self, is_it: impl Fn(Atom) -> bool) -> Vec<Atom> {
        let types = self.equal.iter().filter(|(a, _)| is_it(*a)).map(|(_, b)| *b);
        let others = self.equal.iter().filter(|(_, b)| is_it(*b)).map(|(a, _)| *a);
        types.chain(others).collect()
    }
    /// The same for a size of an array.
    fn equals_size(&self, v: Var, k: usize) -> Vec<Atom> {
        self.equals(|a| {
            let def = a.var().and_then(|s| self.defs.get(&s));
            matches!(def, Some(Def::Of(Exp::Size(Atom::Var(of), d), _)) if *of == v && *d == k)
        })
    }
}

impl<'p> Lower<'p> {
    /// Dimension `k` of a variable of the body or of one around it.
    pub(super) fn extent<'b>(&mut self, x: &mut Inside<'b>, a: Atom, k: usize) -> Option<Operand>
    where
        'p: 'b,
    {
        let v = a.var()?;
        self.asking(x, (v, Some(k)), |s, x| match x.defs.get(&v).copied() {
            Some(Def::Of(exp, which)) => {
                let others = x.equals_size(v, k);
                let said = others.into_iter().find_map(|other| s.length(x, other));
                said.or_else(|| s.extent_of(x, exp, which, k))
            }
            Some(Def::Row(array)) => s.extent(x, array, k + 1),
            Some(Def::Like(array)) => s.extent(x, array, k),
            Some(Def::Unknown) => None,
            None => s.resolve(Dim::Size(v, k)),
        })
    }
    /// The answer to a question, unless it is part of itself or there were too many.
    fn asking<'b>(
        &mut self,
        x: &mut Inside<'b>,
        question: (Var, Option<usize>),
        answer: impl FnOnce(&mut Self, &mut Inside<'b>) -> Option<Operand>,
    ) -> Option<Operand>
    where
        'p: 'b,
    {
        if x.asked.contains(&question) {
            return None;
        }
        x.fuel = x.fuel.checked_sub(1)?;
        x.asked.push(question);
        let found = answer(self, x);
        x.asked.pop();
        found
    }
    /// Dimension `k` of a result of an expression.
    fn extent_of<'b>(&mut self, x: &mut Inside<'b>, exp: &'b Exp, which: usize, k: usize) -> Option<Operand>
    where
        'p: 'b,
    {
        match exp {
            Exp::Atom(a)
            | Exp::StopGradient(a)
            | Exp::Update(a, ..)
            | Exp::UpdateSlice(a, ..)
            | Exp::Reverse(a)
            | Exp::Rotate(a, _) => self.extent(x, *a, k),
            Exp::Plus(a, b) => self.extent(x, *a, k).or_else(|| self.extent(x, *b, k)),
            Exp::Iota(n) => self.length(x, *n),
            Exp::Replicate(shape, a) => match shape.get(k) {
                Some(n) => self.length(x, *n),
                None => self.extent(x, *a, k - shape.len()),
            },
            // It may stand for an array that is not there.
            Exp::ArrayLit(_, items) if items.is_empty() => None,
            Exp::ArrayLit(_, items) if k == 0 => Some(Operand::i64(items.len() as i64)),
            Exp::ArrayLit(_, items) => items.iter().find_map(|a| self.extent(x, *a, k - 1)),
            Exp::Index(a, ix) => self.extent(x, *a, k + ix.len()),
            Exp::Slice(_, s) if k == 0 => self.length(x, s.len),
            Exp::Slice(a, _) => self.extent(x, *a, k),
            Exp::Gather(_, is) if k == 0 => self.extent(x, *is, 0),
            Exp::Gather(a, _) => self.extent(x, *a, k),
            Exp::Rearrange(perm, a) => self.extent(x, *a, perm.get(k).copied().unwrap_or(k)),
            Exp::Reshape { shape, from, array } => match shape.get(k) {
                Some(n) => self.length(x, *n),
                None => self.extent(x, *array, k - shape.len() + from),
            },
            Exp::Concat(arrays) if k == 0 => {
                let rows: Option<Vec<Operand>> = arrays.iter().map(|a| self.extent(x, *a, 0)).collect();
                // Too many rows to count are not known.
                let (sum, bad) = self.sum(&rows?);
                Some(self.op(Op::Select, Scalar::I64, &[bad, Operand::i64(0), sum]))
            }
            Exp::Concat(arrays) => arrays.iter().find_map(|a| self.extent(x, *a, k)),

            Exp::If(c, then, otherwise) => {
                x.enter(then);
                let one = self.extent(x, then.result[which], k);
                x.enter(otherwise);
                let other = self.extent(x, otherwise.result[which], k);
                // Where the condition is not known, both should have the same size.
                match (one, other) {
                    (Some(one), Some(other)) if one != other => {
                        self.selected(x, *c, Scalar::I64, [one, other]).or(Some(one))
                    }
                    (one, other) => one.or(other),
                }
            }
            Exp::Match(_, arms) => arms.iter().find_map(|arm| {
                x.enter_lam(arm, []);
                self.extent(x, arm.body.result[which], k)
            }),
            Exp::Loop(l) => match (l.params.get(which), &l.form) {
                (Some((v, init)), _) if self.is_fixed(*v) => self.extent(x, *init, k),
                // A size that the first state and the next one have; one that only one of them tells is that of both.
                (Some((_, init)), _) => {
                    let first = self.extent(x, *init, k);
                    x.enter_loop(l, |v| self.program.vars[v].ty.rank() > 0);
                    match (first, self.extent(x, *l.body.result.get(which)?, k)) {
                        (Some(first), Some(next)) if first != next => {
                            let same = self.op(Op::Eq, Scalar::I64, &[first, next]);
                            Some(self.op(Op::Select, Scalar::I64, &[same, first, Operand::i64(0)]))
                        }
                        (first, next) => first.or(next),
                    }
                }
                (None, LoopForm::For { n, .. }) if k == 0 => self.length(x, *n),
                (None, LoopForm::While(_)) if k == 0 => None,
                (None, LoopForm::For { .. } | LoopForm::While(_)) => {
                    x.enter_loop(l, |v| self.is_fixed(v));
                    self.extent(x, *l.body.result.get(which)?, k - 1)
                }
            },
            Exp::Call(f, args) => {
                let program = self.program;
                let fun = &program.funs[*f];
                // Not once more inside of itself.
                let known = |v: &Var| x.defs.contains_key(v) || self.env.contains_key(v);
                if fun.params.iter().any(known) {
                    return None;
                }
                let before = x.defs.clone();
                x.defs.extend(fun.params.iter().copied().zip(args.iter().map(|a| Def::Like(*a))));
                x.enter(&fun.body);
                let found = self.extent(x, fun.body.result[which], k);
                x.defs = before;
                found
            }
            Exp::Soac(soac) => self.extent_of_soac(x, soac, which, k),
            Exp::WithAcc(inits, lam) => match inits.get(which) {
                Some(init) => self.extent(x, *init, k),
                None => {
                    x.enter_lam(lam, []);
                    self.extent(x, lam.body.result[which - inits.len()], k)
                }
            },
            Exp::Custom { primal, args, rule: _, tape: _ } => {
                x.enter_lam(primal, args.iter().map(|a| Def::Like(*a)));
                self.extent(x, primal.body.result[which], k)
            }
            Exp::Marked(_, body) => {
                x.enter(body);
                self.extent(x, body.result[which], k)
            }
            Exp::Par(bodies) => {
                bodies.iter().for_each(|body| x.enter(body));
                let result = bodies.iter().flat_map(|body| &body.result).nth(which);
                self.extent(x, *result?, k)
            }
            Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::Size(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Vjp { .. }
            | Exp::Jvp { .. }
            | Exp::Assert(..)
            | Exp::Check(..) => None,
        }
    }
    fn extent_of_soac<'b>(
        &mut self,
        x: &mut Inside<'b>,
        soac: &'b Soac,
        which: usize,
        k: usize,
    ) -> Option<Operand>
    where
        'p: 'b,
    {
        match soac {
            Soac::Map { width, .. } if k == 0 => self.length(x, *width),
            Soac::Map { lam, arrays, .. } => {
                x.enter_rows(lam, arrays);
                self.extent(x, lam.body.result[which], k - 1)
            }
            Soac::Reduce { neutral, .. } => self.extent(x, neutral[which], k),
            Soac::Scan { width, .. } if k == 0 => self.length(x, *width),
            Soac::Scan { neutral, .. } => self.extent(x, neutral[which], k - 1),
            Soac::Fused { form: FusedForm::Reduce { .. }, neutral, .. } if which < neutral.len() => {
                self.extent(x, neutral[which], k)
            }
            Soac::Fused { width, .. } if k == 0 => self.length(x, *width),
            Soac::Fused { neutral, .. } if which < neutral.len() => self.extent(x, neutral[which], k - 1),
            Soac::Fused { pre, arrays, .. } => {
                x.enter_rows(pre, arrays);
                self.extent(x, pre.body.result[which], k - 1)
            }
            Soac::Hist { dst, .. } => self.extent(x, dst[which], k),
            Soac::Scatter { dst, .. } => self.extent(x, *dst, k),
        }
    }

    /// A scalar that is the size of an array or the number of iterations.
    fn length<'b>(&mut self, x: &mut Inside<'b>, n: Atom) -> Option<Operand>
    where
        'p: 'b,
    {
        let value = self.known_scalar(x, n)?;
        let value = match self.atom_type(n).scalar()? {
            Scalar::I64 => value,
            s => self.prim(Prim::Convert(s, Scalar::I64), vec![value], "n"),
        };
        Some(self.op(Op::Max, Scalar::I64, &[value, Operand::i64(0)]))
    }
    /// A scalar of the body or of one around it.
    fn known_scalar<'b>(&mut self, x: &mut Inside<'b>, a: Atom) -> Option<Operand>
    where
        'p: 'b,
    {
        let v = match a {
            Atom::Const(c) => return Some(Operand::Const(c)),
            Atom::Var(v) => v,
        };
        self.asking(x, (v, None), |s, x| match x.defs.get(&v).copied() {
            // A `filter` of nothing has no elements, but as many as its type says if a type says it.
            Some(Def::Of(exp, which)) => {
                let others = x.equals(|a| a == Atom::Var(v));
                let said = others.into_iter().find_map(|other| s.known_scalar(x, other));
                said.or_else(|| s.scalar_of(x, exp, which))
            }
            Some(Def::Like(other)) => s.known_scalar(x, other),
            Some(Def::Row(_) | Def::Unknown) => None,
            None => match s.env.get(&v)? {
                Rep::Scalar(operand) => Some(*operand),
                _ => None,
            },
        })
    }
    fn scalar_of<'b>(&mut self, x: &mut Inside<'b>, exp: &'b Exp, which: usize) -> Option<Operand>
    where
        'p: 'b,
    {
        match exp {
            Exp::Atom(a) | Exp::StopGradient(a) => self.known_scalar(x, *a),
            Exp::Size(a, k) => self.extent(x, *a, *k),
            Exp::Prim(prim, args) => {
                let mut args =
                    args.iter().map(|a| self.known_scalar(x, *a)).collect::<Option<Vec<Operand>>>()?;
                if prim.may_stop() {
                    // A size divided by none: whatever it is, no iteration would have come to it.
                    let (Prim::Op(Op::Div | Op::Mod | Op::Quot | Op::Rem, s), [_, by]) =
                        (*prim, &mut args[..])
                    else {
                        return None;
                    };
                    if by.as_i64().is_none_or(|by| by == 0) {
                        *by = self.op(Op::Max, s, &[*by, Operand::Const(s.one())]);
                    }
                }
                Some(self.prim(*prim, args, "size"))
            }
            Exp::If(c, then, otherwise) => {
                x.enter(then);
                let one = self.known_scalar(x, then.result[which])?;
                x.enter(otherwise);
                let other = self.known_scalar(x, otherwise.result[which])?;
                let s = self.atom_type(then.result[which]).scalar()?;
                if one == other { Some(one) } else { self.selected(x, *c, s, [one, other]) }
            }
            Exp::Marked(_, body) => {
                x.enter(body);
                self.known_scalar(x, body.result[which])
            }
            _ => None,
        }
    }
    /// The first scalar if the condition, which must be known, holds; else the second.
    fn selected<'b>(
        &mut self,
        x: &mut Inside<'b>,
        c: Atom,
        s: Scalar,
        [one, other]: [Operand; 2],
    ) -> Option<Operand>
    where
        'p: 'b,
    {
        let c = self.known_scalar(x, c)?;
        Some(self.op(Op::Select, s, &[c, one, other]))
    }
}
