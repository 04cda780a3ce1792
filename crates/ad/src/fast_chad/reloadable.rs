//! Arrays that reverse code may read again instead of storing what was read.
//!
//! Reading `a[i]` a second time keeps `a` in use until then. That is free if `a` is bound once for the whole lambda
//! (a parameter, a captured variable, or bound outside every loop and every function of an array operation) and nothing
//! wants to overwrite it: a write in place to an array still in use copies all of it. It is as free for parts of such
//! arrays, which are found again without storing anything.
//!
//! Which arrays may share storage is decided by one flow-insensitive partition of the variables: names, views, parts of
//! products and sums, the values that meet in branches and loops. A partition with a write in it does not last. Writes
//! are those whose cost is less than the size of the array: `with`, `scatter`, `reduce_by_index`, accumulators that
//! take over an array, and calls.

use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::{for_each_stm, free_vars_lam};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Program, Soac, Stm, Type, Var};

/// Whether values of the type hold data of unknown size.
pub(crate) fn holds_arrays(ty: &Type) -> bool {
    match ty {
        Type::Scalar(_) => false,
        Type::Tuple(items) => items.iter().any(holds_arrays),
        Type::Sum(variants) => variants.iter().flat_map(|v| &v.fields).any(holds_arrays),
        Type::Array(_) | Type::Named(_) | Type::Acc(_) => true,
    }
}

/// The variables of a lambda, by how long their arrays are there.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    /// May be read again anywhere.
    pub(crate) lasting: IdSet<Var>,
    /// Hold arrays and are bound inside a loop or a function of an array operation.
    pub(crate) repeated: IdSet<Var>,
    /// Are a part of another array, or one of its elements.
    pub(crate) parts: IdSet<Var>,
    /// Can be arguments of calls that may run again: nothing writes to them, and they last, or making them cost their size.
    pub(crate) kept: IdSet<Var>,
}

/// See [`Lifetimes`]. `only_read`: a function only reads its argument of this number.
pub(crate) fn lifetimes(program: &Program, lam: &Lam, only_read: &OnlyRead<'_>) -> Lifetimes {
    let sharing = Sharing::of(program, lam, only_read);
    let mut found = Lifetimes::default();
    let outside: Vec<Var> = lam.params.iter().copied().chain(free_vars_lam(lam)).collect();
    let mut candidates: IdSet<Var> = outside.into_iter().filter(|&v| sharing.holds(v)).collect();
    collect(&sharing, &lam.body, true, &mut candidates, &mut found);
    let written: IdSet<Var> = sharing.written.iter().map(|&v| sharing.find(v)).collect();
    let stays = |v: &Var| !written.contains(&sharing.find(*v));
    found.lasting = candidates.into_iter().filter(stays).collect();
    let mut made = IdSet::new();
    for_each_stm(&lam.body, &mut |stm| {
        if is_made(&stm.exp) {
            made.extend(stm.pat.iter().copied().filter(stays));
        }
    });
    found.kept = found.lasting.iter().copied().chain(made).collect();
    found
}

type OnlyRead<'a> = dyn Fn(FunId, usize) -> bool + 'a;

/// `once`: the body runs at most once per run of the lambda.
fn collect(s: &Sharing<'_>, body: &Body, once: bool, lasting: &mut IdSet<Var>, found: &mut Lifetimes) {
    for stm in &body.stms {
        let whole = part_of(&stm.exp);
        for &v in stm.pat.iter().filter(|v| s.holds(**v)) {
            if once || whole.is_some_and(|a| lasting.contains(&a)) {
                lasting.insert(v);
            }
            if whole.is_some() {
                found.parts.insert(v);
            }
            if !once {
                found.repeated.insert(v);
            }
        }
        let once = once && !matches!(stm.exp, Exp::Loop(_) | Exp::Soac(_));
        if let Exp::Soac(Soac::Map { lam, arrays, .. }) = &stm.exp {
            for (&row, a) in lam.params.iter().zip(arrays).filter(|(row, _)| s.holds(**row)) {
                found.parts.insert(row);
                if a.var().is_some_and(|a| lasting.contains(&a)) {
                    lasting.insert(row);
                }
            }
        }
        for scope in stm.exp.bodies() {
            if !once {
                found.repeated.extend(scope.binds.iter().filter(|v| s.holds(*v)));
            }
            collect(s, scope.body, once, lasting, found);
        }
    }
}

/// Whether the expression makes arrays, at a cost of their size or more.
fn is_made(exp: &Exp) -> bool {
    matches!(
        exp,
        Exp::Soac(Soac::Map { .. } | Soac::Scan { .. })
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Gather(..)
            | Exp::ArrayLit(..)
    )
}

/// The array that the expression is or is a part of, found in constant time.
fn part_of(exp: &Exp) -> Option<Var> {
    match exp {
        Exp::Atom(a)
        | Exp::Index(a, _)
        | Exp::Slice(a, _)
        | Exp::Rearrange(_, a)
        | Exp::Reshape { array: a, .. }
        | Exp::Proj(a, _)
        | Exp::StopGradient(a) => a.var(),
        _ => None,
    }
}

/// The partition, as a forest, and the variables written to.
struct Sharing<'p> {
    program: &'p Program,
    only_read: &'p OnlyRead<'p>,
    parent: IdMap<Var, Var>,
    written: IdSet<Var>,
}

impl<'p> Sharing<'p> {
    fn of(program: &'p Program, lam: &Lam, only_read: &'p OnlyRead<'p>) -> Sharing<'p> {
        let mut sharing = Sharing { program, only_read, parent: IdMap::new(), written: IdSet::new() };
        sharing.body(&lam.body);
        sharing
    }
    fn holds(&self, v: Var) -> bool {
        holds_arrays(&self.program.vars[v].ty)
    }
    fn find(&self, mut v: Var) -> Var {
        while let Some(&up) = self.parent.get(&v) {
            v = up;
        }
        v
    }
    fn join(&mut self, a: impl Into<Atom>, b: impl Into<Atom>) {
        let (Atom::Var(a), Atom::Var(b)) = (a.into(), b.into()) else { return };
        if self.holds(a) && self.holds(b) {
            let (a, b) = (self.find(a), self.find(b));
            if a != b {
                self.parent.insert(a.max(b), a.min(b));
            }
        }
    }
    fn join_all(&mut self, xs: &[Var], ys: &[Atom]) {
        for (&x, &y) in xs.iter().zip(ys) {
            self.join(x, y);
        }
    }
    fn write(&mut self, a: Atom) {
        self.written.extend(a.var());
    }
    fn body(&mut self, body: &Body) {
        for stm in &body.stms {
            self.stm(stm);
        }
    }
    fn lam(&mut self, lam: &Lam, args: &[Atom], pat: &[Var]) {
        self.join_all(&lam.params, args);
        self.body(&lam.body);
        self.join_all(pat, &lam.body.result);
    }

    fn stm(&mut self, stm: &Stm) {
        let pat = &stm.pat;
        match &stm.exp {
            Exp::Update(a, _, _) | Exp::UpdateSlice(a, _, _) => self.write(*a),
            Exp::Call(f, args) => {
                for (k, a) in args.iter().enumerate() {
                    if !(self.only_read)(*f, k) {
                        self.write(*a);
                    }
                }
            }
            Exp::WithAcc(inits, lam) => {
                inits.iter().for_each(|a| self.write(*a));
                self.lam(lam, &[], &pat[inits.len()..]);
            }
            Exp::Soac(soac) => self.soac(soac, pat),
            Exp::If(_, x, y) => {
                for body in [x, y] {
                    self.body(body);
                    self.join_all(pat, &body.result);
                }
            }
            Exp::Match(z, arms) => {
                for arm in arms {
                    arm.params.iter().for_each(|&p| self.join(p, *z));
                    self.lam(arm, &[], pat);
                }
            }
            Exp::Loop(l) => {
                for ((v, init), &y) in l.params.iter().zip(pat) {
                    self.join(*v, *init);
                    self.join(*v, y);
                }
                for scope in stm.exp.bodies() {
                    self.body(scope.body);
                }
                self.join_all(pat, &l.body.result);
            }
            Exp::Marked(_, body) => {
                self.body(body);
                self.join_all(pat, &body.result);
            }
            Exp::Par(bodies) => {
                bodies.iter().for_each(|body| self.body(body));
                let results: Vec<Atom> = bodies.iter().flat_map(|b| b.result.clone()).collect();
                self.join_all(pat, &results);
            }
            Exp::Custom { primal, rule, args, tape: _ } => {
                self.lam(primal, args, pat);
                self.lam(rule, args, &[]);
            }
            Exp::Vjp { lam, args, .. } | Exp::Jvp { lam, args, .. } => self.lam(lam, args, pat),
            _ => {}
        }
        // Whatever else takes an array and gives one may give the same one.
        if !matches!(stm.exp, Exp::Soac(_) | Exp::Size(..) | Exp::Gather(..) | Exp::Iota(_)) {
            stm.exp.for_each_atom(|a| pat.iter().for_each(|&v| self.join(v, a)));
        }
    }

    fn soac(&mut self, soac: &Soac, pat: &[Var]) {
        match soac {
            Soac::Map { width: _, lam, arrays } => self.lam(lam, arrays, pat),
            Soac::Reduce { lam, neutral, arrays, .. } | Soac::Scan { lam, neutral, arrays, .. } => {
                self.operator(lam, neutral, arrays, pat);
            }
            Soac::Fused { form: _, width: _, pre, lam, neutral, arrays } => {
                self.lam(pre, arrays, pat);
                self.operator(lam, neutral, &pre.body.result[..neutral.len()], pat);
            }
            Soac::Hist { width: _, lam, neutral: _, dst, indices: _, values } => {
                dst.iter().for_each(|a| self.write(*a));
                self.operator(lam, dst, values, pat);
                self.join_all(pat, dst);
            }
            Soac::Scatter { width: _, dst, indices: _, values: _ } => {
                self.write(*dst);
                self.join_all(pat, &[*dst]);
            }
        }
    }

    fn operator(&mut self, lam: &Lam, left: &[Atom], right: &[Atom], pat: &[Var]) {
        let args: Vec<Atom> = left.iter().chain(right).copied().collect();
        self.lam(lam, &args, pat);
        self.join_all(&lam.params, &lam.body.result);
    }
}
