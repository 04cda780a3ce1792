//! Deliberate errors in what dual-numbers reverse AD and delta terms make: each changes one kind of piece of the functions that were added, as a wrong rule or a
//! wrong function beside it would have made it.

use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type};
use pullback_prim::{Op, Prim, ScalarValue};

/// A deliberate error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A staged call is lost.
    CallLost,
    /// All staged calls have one identity.
    CallsAreOne,
    /// Of two staged values that are added, the second is lost.
    SumLost,
    /// What an argument gets is zero.
    OneHotLost,
    /// What an argument gets is at the other end of the arguments.
    OneHotTurned,
    /// What is put where something is already replaces it.
    Replaced,
    /// What is put where something is already is dropped.
    Dropped,
    /// What is put into a map is lost.
    InsertLost,
    /// Numbers are looked up one place further on.
    LookedUpBeside,
    /// Changes of mutable cells forget what was there.
    CellReplaced,
    /// Changes of mutable cells are not made.
    CellUnchanged,
    /// Changes of mutable cells go to the first cell.
    CellIsFirst,
    /// Cells start at one.
    CellsStartAtOne,
    /// Of two computations in turn, the first is lost.
    FirstLost,
    /// Of computations in parallel the last is the first again.
    TaskLost,
    /// Resolution ends before the first identity.
    EndsEarly,
    /// Resolution starts before the last identity.
    StartsLate,
    /// Identities are not counted.
    IdentityStays,
    /// Rows of contributions lack their last entry.
    EntryLost,
    /// The factors of the first and the last entry of a row are exchanged.
    FactorsTurned,
    /// The identity 0 counts as a constant.
    FirstIsConstant,
    /// Cotangents are not scaled by what is on the tape, or in a contribution.
    Unscaled,
    /// Terms are not scaled.
    ScaleLost,
    /// Sums of terms lack the second.
    AddLost,
    /// Shared terms have one identity.
    ShareIsOne,
    /// Inputs are those beside them.
    InputBeside,
    /// Cotangents of numbers lose their sign on the way.
    SignLost,
    /// Every job has the first job's number.
    JobIsFirst,
    /// A fork forgets the job before it.
    HistoryLost,
}

impl Mutation {
    /// All of them.
    pub const ALL: &[Mutation] = &[
        Mutation::CallLost,
        Mutation::CallsAreOne,
        Mutation::SumLost,
        Mutation::OneHotLost,
        Mutation::OneHotTurned,
        Mutation::Replaced,
        Mutation::Dropped,
        Mutation::InsertLost,
        Mutation::LookedUpBeside,
        Mutation::CellReplaced,
        Mutation::CellUnchanged,
        Mutation::CellIsFirst,
        Mutation::CellsStartAtOne,
        Mutation::FirstLost,
        Mutation::TaskLost,
        Mutation::EndsEarly,
        Mutation::StartsLate,
        Mutation::IdentityStays,
        Mutation::EntryLost,
        Mutation::FactorsTurned,
        Mutation::FirstIsConstant,
        Mutation::Unscaled,
        Mutation::ScaleLost,
        Mutation::AddLost,
        Mutation::ShareIsOne,
        Mutation::InputBeside,
        Mutation::SignLost,
        Mutation::JobIsFirst,
        Mutation::HistoryLost,
    ];
}

/// The program with the error in the functions from number `first` on, and how many pieces it changed.
pub fn mutated(program: &Program, first: usize, mutation: Mutation) -> (Program, usize) {
    let mut changed = program.clone();
    let funs: Vec<FunId> = changed.funs.ids().skip(first).collect();
    let mut b = Builder::new(&mut changed);
    let mut count = 0;
    for f in funs {
        let Some(body) = b.program.funs[f].body.clone() else { continue };
        let name = b.program.funs[f].name.to_string();
        let mut m = Mutator { b: &mut b, mutation, name: &name, backward: false, count: 0 };
        let body = m.term(&body);
        count += m.count;
        b.define(f, body);
    }
    (changed, count)
}

struct Mutator<'m, 'p> {
    b: &'m mut Builder<'p>,
    mutation: Mutation,
    /// Of the function.
    name: &'m str,
    /// Inside of a function of a cotangent.
    backward: bool,
    count: usize,
}

impl Mutator<'_, '_> {
    fn term(&mut self, t: &Term) -> Term {
        let outer = self.backward;
        if let Exp::Lam(x, _) = t.exp() {
            self.backward |= self.hint(*x) == "z";
        }
        let mut exp = t.exp().clone();
        exp.children_mut(&mut |child| *child = pullback_lambda::with_stack(|| self.term(child)));
        let before = self.b.term(exp.clone());
        let after = self.changed(exp);
        self.count += usize::from(before != after);
        self.backward = outer;
        after
    }
    fn hint(&self, x: pullback_lambda::Var) -> String {
        self.b.program.vars[x].hint.to_string()
    }
    fn changed(&mut self, exp: Exp) -> Term {
        use Mutation as M;
        match (self.mutation, exp) {
            (M::CallLost, Exp::StagedCall(_, f, _)) => {
                let staged = if let Type::Fun(_, t) = f.ty() { Type::clone(t) } else { Type::unit() };
                self.b.term(Exp::Zero(staged))
            }
            (M::CallsAreOne, Exp::StagedCall(_, f, x)) => {
                let zero = self.b.i64(0);
                self.b.term(Exp::StagedCall(zero, f, x))
            }
            (M::SumLost, Exp::Plus(a, b)) if matches!(a.ty(), Type::Staged(_)) => {
                let zero = self.b.term(Exp::Zero(b.ty().clone()));
                self.b.term(Exp::Plus(a, zero))
            }
            (M::OneHotLost, Exp::StagedCotangent(x)) => {
                let zero = self.b.term(Exp::Zero(x.ty().clone()));
                self.b.term(Exp::StagedCotangent(zero))
            }
            (M::OneHotTurned, Exp::StagedCotangent(x)) => {
                let x = match x.exp() {
                    Exp::Tuple(items) if items.first().map(Term::ty) == items.last().map(Term::ty) => {
                        let items = items.iter().rev().cloned().collect();
                        self.reversed_if_typed(items, &x)
                    }
                    _ => x,
                };
                self.b.term(Exp::StagedCotangent(x))
            }
            (M::Replaced | M::Dropped, Exp::MapInsert { combine, map, key, value }) => {
                let keep = usize::from(self.mutation == M::Replaced);
                let ty = value.ty().clone();
                // Terms of a shared identity are the same.
                let combine = if matches!(ty, Type::Named(_)) {
                    combine
                } else {
                    self.b.lams(&[("old", ty.clone()), ("new", ty)], |b, v| b.var(v[keep]))
                };
                self.b.term(Exp::MapInsert { combine, map, key, value })
            }
            (M::InsertLost, Exp::MapInsert { map, .. }) => map,
            (M::LookedUpBeside, Exp::MapLookup(map, key)) => {
                let one = self.b.i64(1);
                let key = self.b.op2(Op::Add, key, one);
                self.b.term(Exp::MapLookup(map, key))
            }
            (M::CellReplaced, Exp::MutModify(m, i, f)) if !is_counter(&m) => {
                let Type::Fun(cell, _) = f.ty().clone() else { return self.b.term(Exp::MutModify(m, i, f)) };
                // `f` of a cell whose number is zero: `\_. f 0`, or `\old. f (old.0, 0)`.
                let f = self.b.lam("old", Type::clone(&cell), |b, old| {
                    let (old, zero) = (b.var(old), b.f64(0.0));
                    if *cell == Type::F64 {
                        return b.apply(f, [zero]);
                    }
                    let first = b.proj(old, 0);
                    let empty = b.tuple(vec![first, zero]);
                    b.apply(f, [empty])
                });
                self.b.term(Exp::MutModify(m, i, f))
            }
            (M::CellUnchanged, Exp::MutModify(m, i, _)) if !is_counter(&m) => self.b.term(Exp::MutGet(m, i)),
            (M::CellIsFirst, Exp::MutModify(m, _, f)) if !is_counter(&m) => {
                let zero = self.b.i64(0);
                self.b.term(Exp::MutModify(m, zero, f))
            }
            (M::CellsStartAtOne, Exp::MutNew(n, x)) => {
                let x = match (x.ty().clone(), x.exp()) {
                    (Type::Scalar(s), _) if s.is_float() => self.b.constant(s.one()),
                    (Type::Tuple(_), Exp::Tuple(parts)) if parts.len() == 2 => {
                        let one = self.b.f64(1.0);
                        self.b.tuple(vec![parts[0].clone(), one])
                    }
                    _ => x,
                };
                self.b.term(Exp::MutNew(n, x))
            }
            (M::FirstLost, Exp::IoBind(m, k))
                if *m.ty() == Type::io(Type::unit()) && self.returns_unit(&k) =>
            {
                let unit = self.b.unit();
                let nothing = self.b.term(Exp::IoReturn(unit));
                self.b.term(Exp::IoBind(nothing, k))
            }
            (M::TaskLost, Exp::IoPar(mut ms)) => {
                if let (Some(first), true) = (ms.first().cloned(), ms.len() > 1) {
                    let last = ms.len() - 1;
                    if ms[last].ty() == first.ty() {
                        ms[last] = first;
                    }
                }
                self.b.term(Exp::IoPar(ms))
            }
            (M::EndsEarly, Exp::Prim(Prim::Op(Op::Lt, s), args)) if self.name.starts_with("resolve") => {
                let one = self.b.constant(s.one());
                let end = self.b.op2(Op::Add, args[1].clone(), one);
                self.b.term(Exp::Prim(Prim::Op(Op::Lt, s), vec![args[0].clone(), end]))
            }
            (M::StartsLate, Exp::Call(f, mut args))
                if self.calls(f, "resolve") && !self.name.starts_with("resolve_") =>
            {
                if *args[0].ty() == Type::I64 {
                    let one = self.b.i64(1);
                    args[0] = self.b.op2(Op::Sub, args[0].clone(), one);
                }
                self.b.call(f, args)
            }
            (M::IdentityStays, Exp::Let(v, value, body))
                if ["id", "next", "n"].contains(&self.hint(v).as_str()) && is_increment(&value) =>
            {
                let Exp::Prim(_, args) = value.exp() else { return self.b.term(Exp::Let(v, value, body)) };
                let same = args[0].clone();
                self.b.term(Exp::Let(v, same, body))
            }
            (M::EntryLost, Exp::ArrayLit(ty, mut items)) if is_entry(&ty) => {
                items.pop();
                self.b.term(Exp::ArrayLit(ty, items))
            }
            (M::FactorsTurned, Exp::ArrayLit(ty, mut items)) if is_entry(&ty) && items.len() > 1 => {
                let last = items.len() - 1;
                let (a, b) = (self.b.proj(items[0].clone(), 0), self.b.proj(items[last].clone(), 0));
                for (k, factor) in [(0, b), (last, a)] {
                    let rest =
                        (1..ty.items().map_or(1, <[Type]>::len)).map(|i| self.b.proj(items[k].clone(), i));
                    let parts = std::iter::once(factor).chain(rest).collect();
                    items[k] = self.b.tuple(parts);
                }
                self.b.term(Exp::ArrayLit(ty, items))
            }
            (M::FirstIsConstant, Exp::Prim(Prim::Op(Op::Le, s), args))
                if matches!(args[0].exp(), Exp::Const(ScalarValue::I64(0))) =>
            {
                let one = self.b.i64(1);
                self.b.term(Exp::Prim(Prim::Op(Op::Le, s), vec![one, args[1].clone()]))
            }
            (M::Unscaled, Exp::Prim(Prim::Op(Op::Mul, s), args)) => {
                let is_contribution = self.name.starts_with("contribute")
                    || self.name.contains("taping_vjp")
                    || self.name.starts_with("eval");
                if is_contribution || self.backward {
                    // The cotangent is the first of the two, but in `contribute`.
                    args[usize::from(self.name.starts_with("contribute"))].clone()
                } else {
                    self.b.term(Exp::Prim(Prim::Op(Op::Mul, s), args))
                }
            }
            (M::ScaleLost, Exp::Inject(ty, 3, fields)) if self.is_delta(&ty) => {
                let one = self.b.f64(1.0);
                self.b.term(Exp::Inject(ty, 3, vec![one, fields[1].clone()]))
            }
            (M::AddLost, Exp::Inject(ty, 2, fields)) if self.is_delta(&ty) => {
                let zero = self.b.term(Exp::Inject(ty.clone(), 0, Vec::new()));
                self.b.term(Exp::Inject(ty, 2, vec![fields[0].clone(), zero]))
            }
            (M::ShareIsOne, Exp::Inject(ty, 4, fields)) if self.is_delta(&ty) => {
                let zero = self.b.i64(0);
                self.b.term(Exp::Inject(ty, 4, vec![zero, fields[1].clone()]))
            }
            (M::InputBeside, Exp::Inject(ty, 1, fields)) if self.is_delta(&ty) => {
                let zero = self.b.i64(0);
                let first = self.b.op2(Op::Max, fields[0].clone(), zero);
                let one = self.b.i64(1);
                let beside = self.b.op2(Op::Add, first, one);
                self.b.term(Exp::Inject(ty, 1, vec![beside]))
            }
            (M::SignLost, Exp::Prim(Prim::Op(Op::Neg, _), args)) if self.backward => args[0].clone(),
            (M::JobIsFirst, Exp::Let(v, value, body))
                if self.hint(v) == "j" && is_increment_of_job(&value) =>
            {
                let one = self.b.i64(1);
                self.b.term(Exp::Let(v, one, body))
            }
            (M::HistoryLost, Exp::Inject(ty, 1, fields))
                if fields.len() == 3 && matches!(&ty, Type::Named(_)) =>
            {
                self.b.term(Exp::Inject(ty, 0, Vec::new()))
            }
            (_, exp) => self.b.term(exp),
        }
    }
    fn reversed_if_typed(&mut self, items: Vec<Term>, before: &Term) -> Term {
        let turned = self.b.tuple(items);
        if turned.ty() == before.ty() { turned } else { before.clone() }
    }
    fn returns_unit(&self, k: &Term) -> bool {
        matches!(k.ty(), Type::Fun(_, t) if **t == Type::io(Type::unit()))
    }
    fn calls(&self, f: FunId, prefix: &str) -> bool {
        self.b.program.funs[f].name.as_str().starts_with(prefix)
    }
    fn is_delta(&self, ty: &Type) -> bool {
        matches!(ty, Type::Named(id) if self.b.program.types[*id].name.as_str().starts_with("delta"))
    }
}

/// The cell with the number of the next job.
fn is_counter(m: &Term) -> bool {
    matches!(m.ty(), Type::MutArray(t) if **t == Type::I64)
}

/// `x + 1`
fn is_increment(t: &Term) -> bool {
    matches!(t.exp(), Exp::Prim(Prim::Op(Op::Add, _), args) if matches!(args[1].exp(), Exp::Const(ScalarValue::I64(1))))
}

/// `j + 0`, `j + 1`, `j + 2`
fn is_increment_of_job(t: &Term) -> bool {
    matches!(t.exp(), Exp::Prim(Prim::Op(Op::Add, _), args) if matches!(args[1].exp(), Exp::Const(ScalarValue::I64(0..3))))
}

/// `(f64, identity, ..)`
fn is_entry(ty: &Type) -> bool {
    ty.items().is_some_and(|ts| ts.len() >= 2 && ts[0] == Type::F64 && ts[1] != Type::F64)
}
