//! Maps, reductions, histograms and scatters of core as terms.
//!
//! A map is a `build1` of its body, where a parameter is an element. If there are several results, or many statements, each statement of the body becomes an
//! array first (B3): results share it, and terms stay small.
//!
//! Assumes and guarantees what `forms` does.

use super::forms::{Translated, WRITTEN_OUT, integer, primitive};
use super::{FromCore, Part};
use crate::bulk::a_core::{Exp as Form, Extremum, IndexFn, Term, Var as Variable, made};
use crate::bulk::sizes::Size;
use crate::bulk::terms::substitute_all;
use crate::fast_chad::operator::{Kind, extremum, operation};
use pullback_core::{Atom, Body, Exp, Lam, Soac, Stm, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// How many bindings the body of a `build1` may have: terms are walked by recursion. A choice, not measured.
const NESTED: usize = 64;

impl FromCore<'_> {
    pub(super) fn soac(&mut self, soac: &Soac, live: &[bool]) -> Translated<Vec<Part>> {
        match soac {
            // [bulk.map]  build1 n (\i. f (index as [i]))
            Soac::Map { width, lam, arrays } => {
                let (n, arrays) = (self.width(*width)?, self.arrays(arrays)?);
                self.map(&n, lam, &arrays, live)
            }
            // [bulk.reduce]  z + sumOuter a;  cond (z wins) z (index a [argMax a]);  of an operator that compares, the same place for all components;  of the operator that argMax is in core, that
            Soac::Reduce { width, lam, neutral, arrays, commutative: _ } => {
                let (n, arrays) = (self.width(*width)?, self.arrays(arrays)?);
                self.reduce((&n, lam), neutral, &arrays, live)
            }
            // [bulk.scan]  the states after the first one of `scanl`
            Soac::Scan { width, lam, neutral, arrays } => {
                let (n, arrays) = (self.width(*width)?, self.arrays(arrays)?);
                self.scan(&n, lam, (neutral, &arrays))
            }
            Soac::Fused { .. } => self.refuse("a fused operation in a called function"),
            // [bulk.hist]  dst + scatter (shape dst) vs (\[i]. [index is [i]]);  build1 k (\p. cond (j < 0 or index vs [j] <= index dst [p]) (index dst [p]) (index vs [j]))
            Soac::Hist { width, lam, neutral: _, dst, indices, values } => {
                let (n, indices) = (self.width(*width)?, self.array(*indices)?);
                self.histograms((&n, lam), &indices, (dst, values), live)
            }
            // [bulk.scatter]  build1 k (\p. cond (j < 0) (index dst [p]) (index vs [j]))
            Soac::Scatter { width, dst, indices, values } => {
                let (n, dst) = (self.width(*width)?, self.array(*dst)?);
                let (indices, values) = (self.array(*indices)?, self.array(*values)?);
                Ok(vec![Part::Array(self.scattered(&n, dst, &indices, &values))])
            }
        }
    }

    fn map(&mut self, n: &Size, lam: &Lam, arrays: &[Term], live: &[bool]) -> Translated<Vec<Part>> {
        let i = self.names.index("i");
        let at = Term::var(&i);
        for (p, a) in lam.params.iter().zip(arrays) {
            let element = match a.exp() {
                Form::Iota(_) => at.clone(),
                _ => made(Form::Index(a.clone(), vec![at.clone()])),
            };
            self.parts.insert(*p, Part::Array(element));
        }
        self.scopes.push(Vec::new());
        let parts = self.body(&lam.body, live)?;
        let inside = self.scopes.pop().unwrap_or_default();
        let mut results = Vec::new();
        for part in parts {
            match part {
                Part::Array(t) => results.push(Some(t)),
                Part::AtHand => results.push(None),
                Part::Tuple(_) => return self.refuse("a product, as a whole"),
            }
        }
        let is_nested = results.iter().flatten().count() <= 1 && inside.len() <= NESTED;
        let results: Vec<Option<Term>> = if is_nested {
            let bind = |body: Term, (x, t): (Variable, Term)| made(Form::Let(x, t, body));
            let lets = |t: Term| inside.iter().cloned().rev().fold(t, bind);
            let each = |t: Term| made(Form::Build1(n.clone(), i.clone(), lets(t)));
            results.into_iter().map(|t| t.map(each)).collect()
        } else {
            self.split(n, &i, inside, results)
        };
        Ok(results.into_iter().map(|t| t.map_or(Part::AtHand, Part::Array)).collect())
    }

    // B3: each binding is an array, and the results take its elements.
    fn split(
        &mut self,
        n: &Size,
        i: &Variable,
        inside: Vec<(Variable, Term)>,
        results: Vec<Option<Term>>,
    ) -> Vec<Option<Term>> {
        let mut elements: BTreeMap<u32, Term> = BTreeMap::new();
        for (x, t) in inside {
            let t = substitute_all(&mut self.names, &t, &elements);
            let varies = t.has_free(i);
            let t = if varies { self.each(n, i, &t) } else { t };
            let all = self.let_(x.name(), t);
            let element = if varies { made(Form::Index(all, vec![Term::var(i)])) } else { all };
            elements.insert(x.id(), element);
        }
        let mut of = |t: Term| {
            let t = substitute_all(&mut self.names, &t, &elements);
            self.each(n, i, &t)
        };
        results.into_iter().map(|t| t.map(&mut of)).collect()
    }

    /// `build1 n (\i. t)` beside another one of the same `i`.
    pub(super) fn each(&mut self, n: &Size, i: &Variable, t: &Term) -> Term {
        let j = self.names.again(i);
        let t = substitute_all(&mut self.names, t, &BTreeMap::from([(i.id(), Term::var(&j))]));
        made(Form::Build1(n.clone(), j, t))
    }

    fn reduce(
        &mut self,
        (n, lam): (&Size, &Lam),
        neutral: &[Atom],
        arrays: &[Term],
        live: &[bool],
    ) -> Translated<Vec<Part>> {
        let (lefts, rights) = lam.params.split_at(neutral.len());
        let at = |k: usize| component(&lam.body, lam.body.result[k], lefts[k], rights[k]);
        let all: Option<Vec<Component>> = live
            .iter()
            .enumerate()
            .map(|(k, is)| if *is { at(k) } else { Some(Component::AtHand) })
            .collect();
        if let Some(all) = all {
            let of = |((z, a), component): ((&Atom, &Term), Component)| match component {
                Component::Sum => self.sum_from(*z, n, a).map(Part::Array),
                Component::Extremum(which) => self.extremum_from(which, *z, n, a).map(Part::Array),
                Component::AtHand => Ok(Part::AtHand),
            };
            return neutral.iter().zip(arrays).zip(all).map(of).collect();
        }
        if let Some(which) = counted(lam, neutral, arrays) {
            return self.place_from(which, n, (neutral, arrays));
        }
        if let Some(best) = better(lam) {
            return self.best_from(best, n, (neutral, arrays));
        }
        let Some(count) = n.as_constant().filter(|n| *n <= WRITTEN_OUT) else {
            return self.reduced(n, lam, (neutral, arrays));
        };
        let mut state: Vec<Part> = neutral.iter().map(|z| self.part(*z)).collect::<Translated<_>>()?;
        for k in 0..count {
            for (p, part) in lefts.iter().zip(state) {
                self.parts.insert(*p, part);
            }
            for (q, a) in rights.iter().zip(arrays) {
                let element = made(Form::Index(a.clone(), vec![Term::i64(k)]));
                self.parts.insert(*q, Part::Array(element));
            }
            state = self.body(&lam.body, &vec![true; lam.body.result.len()])?;
        }
        Ok(state)
    }

    /// `z + sumOuter a` of so many rows.
    fn sum_from(&mut self, z: Atom, n: &Size, a: &Term) -> Translated<Term> {
        let sh = [std::slice::from_ref(n), &a.ty().shape[1..]].concat();
        let sum = made(Form::SumOuter(self.as_shape(a, &sh)));
        if matches!(z, Atom::Const(z) if z == z.scalar().zero()) {
            return Ok(sum);
        }
        let z = self.array(z)?;
        let sum = self.as_shape(&sum, &z.ty().shape);
        Ok(primitive(Prim::Op(Op::Add, z.ty().scalar), vec![z, sum]))
    }

    /// The first of the smallest or largest of so many numbers, or `z`, which comes before them: an element, as an operator chooses it.
    fn extremum_from(&mut self, which: Extremum, z: Atom, n: &Size, a: &Term) -> Translated<Term> {
        let z = self.array(z)?;
        let a = self.as_shape(a, std::slice::from_ref(n));
        let a = self.shared("a", a);
        let place = self.shared("place", made(Form::ArgOuter(which, a.clone())));
        let x = self.shared("best", made(Form::Index(a, vec![place.clone()])));
        let is_nobody = integer(Op::Lt, &place, &Term::i64(0));
        // A start that is worse than all numbers stays only where no place is found.
        if matches!(z.exp(), Form::Const(c) if c.elements[..] == [which.worst(z.ty().scalar)]) {
            return Ok(made(Form::Cond(is_nobody, z, x)));
        }
        let stays = either(is_nobody, is_at_most(which, &x, &z));
        Ok(made(Form::Cond(stays, z, x)))
    }

    /// What stands at the first of the best numbers, or what the reduction starts from, if none is better than that.
    fn best_from(
        &mut self,
        (k, which): (usize, Extremum),
        n: &Size,
        (neutral, arrays): (&[Atom], &[Term]),
    ) -> Translated<Vec<Part>> {
        let z = self.array(neutral[k])?;
        let a = self.as_shape(&arrays[k], std::slice::from_ref(n));
        let a = self.shared("a", a);
        let place = self.shared("place", made(Form::ArgOuter(which, a.clone())));
        let x = made(Form::Index(a, vec![place.clone()]));
        let (lower, higher) = if which == Extremum::Min { (x, z) } else { (z, x) };
        let is_better = made(Form::Op(Prim::Op(Op::Lt, lower.ty().scalar), vec![lower, higher]));
        let is_there = integer(Op::Le, &Term::i64(0), &place);
        let wins = made(Form::Op(Prim::Op(Op::And, Scalar::Bool), vec![is_there, is_better]));
        let wins = self.shared("wins", wins);
        let of = |(z, a): (&Atom, &Term)| {
            let z = self.array(*z)?;
            let sh = [std::slice::from_ref(n), &a.ty().shape[1..]].concat();
            let x = made(Form::Index(self.as_shape(a, &sh), vec![place.clone()]));
            let x = self.as_shape(&x, &z.ty().shape);
            Ok(Part::Array(made(Form::Cond(wins.clone(), x, z))))
        };
        neutral.iter().zip(arrays).map(of).collect()
    }

    /// The best of so many numbers, and its counter.
    fn place_from(
        &mut self,
        which: Extremum,
        n: &Size,
        (neutral, arrays): (&[Atom], &[Term]),
    ) -> Translated<Vec<Part>> {
        let best = self.extremum_from(which, neutral[0], n, &arrays[0])?;
        let column = self.as_shape(&arrays[0], std::slice::from_ref(n));
        Ok([best, made(Form::ArgOuter(which, column))].map(Part::Array).to_vec())
    }

    /// A variable for a term that is used more than once.
    fn shared(&mut self, name: &str, t: Term) -> Term {
        if t.is_atom() { t } else { self.let_(name, t) }
    }

    fn histograms(
        &mut self,
        (n, lam): (&Size, &Lam),
        indices: &Term,
        (dst, values): (&[Atom], &[Atom]),
        live: &[bool],
    ) -> Translated<Vec<Part>> {
        let (lefts, rights) = lam.params.split_at(dst.len());
        let mut all = Vec::new();
        for (k, is_live) in live.iter().enumerate() {
            if !is_live {
                all.push(Part::AtHand);
                continue;
            }
            let (dst, values) = (self.array(dst[k])?, self.array(values[k])?);
            let of = component(&lam.body, lam.body.result[k], lefts[k], rights[k]);
            all.push(Part::Array(match of {
                Some(Component::Sum) if dst.ty().is_float() => self.histogram(n, &dst, indices, &values),
                Some(Component::Sum) => return self.refuse("a histogram of integers, in an inner body"),
                Some(Component::Extremum(which)) => self.extrema_at(which, n, dst, (indices, &values)),
                Some(Component::AtHand) | None => {
                    return self.refuse("a histogram with another operator than `+`, `min` or `max`");
                }
            }));
        }
        Ok(all)
    }

    /// Sums of what is sent to each place.
    fn histogram(&mut self, n: &Size, dst: &Term, indices: &Term, values: &Term) -> Term {
        let sh = dst.ty().shape.clone();
        let values = self.as_shape(values, &[std::slice::from_ref(n), &sh[1..]].concat());
        let sent = Form::Scatter(sh, values, self.sent_to(indices));
        primitive(Prim::Op(Op::Add, dst.ty().scalar), vec![dst.clone(), made(sent)])
    }

    /// The first of the smallest or largest numbers that are sent to each place, if it is better than what is there.
    fn extrema_at(
        &mut self,
        which: Extremum,
        n: &Size,
        dst: Term,
        (indices, values): (&Term, &Term),
    ) -> Term {
        let values = self.as_shape(values, std::slice::from_ref(n));
        let values = self.shared("vs", values);
        let sent = Form::ArgScatter(which, dst.ty().shape.clone(), values.clone(), self.sent_to(indices));
        self.chosen_at(dst, made(sent), &values, |x, z| Some(is_at_most(which, x, z)))
    }

    /// The last of the rows that are sent to each place, if there is one.
    fn scattered(&mut self, n: &Size, dst: Term, indices: &Term, values: &Term) -> Term {
        let values = self.as_shape(values, &[std::slice::from_ref(n), &dst.ty().shape[1..]].concat());
        let values = self.shared("vs", values);
        let (room, counters) = (dst.ty().shape[..1].to_vec(), made(Form::Iota(n.clone())));
        let sent = Form::ArgScatter(Extremum::Max, room, counters, self.sent_to(indices));
        self.chosen_at(dst, made(sent), &values, |_, _| None)
    }

    /// `\[i]. [index is [i]]`
    fn sent_to(&mut self, indices: &Term) -> IndexFn {
        let i = self.names.index("i");
        let index = vec![made(Form::Index(indices.clone(), vec![Term::var(&i)]))];
        IndexFn { params: vec![i], index }
    }

    /// At each place the row whose counter is given, if there is one; else what is there, also if a condition says of both that it stays.
    fn chosen_at(
        &mut self,
        dst: Term,
        counters: Term,
        values: &Term,
        stays: impl FnOnce(&Term, &Term) -> Option<Term>,
    ) -> Term {
        let (dst, counters) = (self.shared("dst", dst), self.shared("place", counters));
        let p = self.names.index("p");
        let here = vec![Term::var(&p)];
        let counter = made(Form::Index(counters, here.clone()));
        let old = made(Form::Index(dst.clone(), here));
        let new = made(Form::Index(values.clone(), vec![counter.clone()]));
        let is_nobody = integer(Op::Lt, &counter, &Term::i64(0));
        let stays = match stays(&new, &old) {
            Some(other) => either(is_nobody, other),
            None => is_nobody,
        };
        made(Form::Build1(dst.ty().shape[0].clone(), p, made(Form::Cond(stays, old, new))))
    }
}

/// `x <= z` for the largest of both, `z <= x` for the smallest.
fn is_at_most(which: Extremum, x: &Term, z: &Term) -> Term {
    let (lower, higher) = if which == Extremum::Min { (z, x) } else { (x, z) };
    made(Form::Op(Prim::Op(Op::Le, z.ty().scalar), vec![lower.clone(), higher.clone()]))
}

fn either(a: Term, b: Term) -> Term {
    made(Form::Op(Prim::Op(Op::Or, Scalar::Bool), vec![a, b]))
}

/// What a component of a reduction is.
#[derive(Clone, Copy)]
enum Component {
    Sum,
    Extremum(Extremum),
    /// Nobody asks for it.
    AtHand,
}

/// What a result of an operator is of these two; of floats, minimum and maximum are those that choose the first one.
fn component(body: &Body, result: Atom, p: Var, q: Var) -> Option<Component> {
    if is_sum(body, result, p, q) {
        return Some(Component::Sum);
    }
    let op = extremum(body, &[(result, p, q)]).or_else(|| extremum_of_integers(body, result, p, q));
    match op? {
        Op::Min | Op::MinFirst => Some(Component::Extremum(Extremum::Min)),
        Op::Max | Op::MaxFirst => Some(Component::Extremum(Extremum::Max)),
        _ => None,
    }
}

/// Of an operator `\ps qs. if p_k < q_k then qs else ps`, or with `q_k < p_k`: which component it compares, and what is better.
fn better(lam: &Lam) -> Option<(usize, Extremum)> {
    let (ps, qs) = lam.params.split_at(lam.body.result.len());
    let mut condition = None;
    for ((result, p), q) in lam.body.result.iter().zip(ps).zip(qs) {
        let (c, u, v) = choice(&lam.body, *result)?;
        if *condition.get_or_insert(c) != c || u != (*q).into() || v != (*p).into() {
            return None;
        }
    }
    let Exp::Prim(Prim::Op(Op::Lt, scalar), args) = &binding(&lam.body, condition?)?.exp else { return None };
    let compared = |(k, (p, q)): (usize, (&Var, &Var))| {
        let (p, q) = (Atom::from(*p), Atom::from(*q));
        let is_larger = args[..] == [p, q];
        let which = if is_larger { Extremum::Max } else { Extremum::Min };
        let is_compared = *scalar != Scalar::Bool && (is_larger || args[..] == [q, p]);
        is_compared.then_some((k, which))
    };
    ps.iter().zip(qs).enumerate().find_map(compared)
}

/// Of the operator that `argMax` is in core: what is better. Each number has a counter, and the least one of the best numbers stays.
fn counted(lam: &Lam, neutral: &[Atom], arrays: &[Term]) -> Option<Extremum> {
    let ([p, i, q, j], [best, place]) = (&lam.params[..], &lam.body.result[..]) else { return None };
    let Component::Extremum(which) = component(&lam.body, *best, *p, *q)? else { return None };
    let Exp::Prim(Prim::Op(Op::Min, Scalar::I64), two) = &binding(&lam.body, *place)?.exp else {
        return None;
    };
    let is_kept = |at: Atom, x: Var, i: Var| {
        let of = choice(&lam.body, at).filter(|(_, u, v)| *u == i.into() && *v == Atom::i64(i64::MAX));
        let condition = of.and_then(|(c, ..)| binding(&lam.body, c)).map(|stm| &stm.exp);
        matches!(condition, Some(Exp::Prim(Prim::Op(Op::Eq, _), args)) if args[..] == [x.into(), *best])
    };
    let worst = Atom::Const(which.worst(arrays[0].ty().scalar));
    let is_counter = matches!(arrays[1].exp(), Form::Iota(_)) && *neutral == [worst, Atom::i64(-1)];
    (is_counter && is_kept(two[0], *p, *i) && is_kept(two[1], *q, *j)).then_some(which)
}

/// `if c then u else v`, where both are there already.
fn choice(body: &Body, result: Atom) -> Option<(Atom, Atom, Atom)> {
    let stm = binding(body, result)?;
    match &stm.exp {
        Exp::If(c, then, other) if then.stms.is_empty() && other.stms.is_empty() => {
            let k = stm.pat.iter().position(|v| result == (*v).into())?;
            Some((*c, then.result[k], other.result[k]))
        }
        Exp::Prim(Prim::Op(Op::Select, _), args) => Some((args[0], args[1], args[2])),
        _ => None,
    }
}

fn binding(body: &Body, x: Atom) -> Option<&Stm> {
    body.stms.iter().find(|stm| stm.pat.iter().any(|v| x == (*v).into()))
}

fn extremum_of_integers(body: &Body, result: Atom, p: Var, q: Var) -> Option<Op> {
    match &binding(body, result)?.exp {
        Exp::Prim(Prim::Op(op @ (Op::Min | Op::Max), s), args)
            if s.is_integer() && (args[..] == [p.into(), q.into()] || args[..] == [q.into(), p.into()]) =>
        {
            Some(*op)
        }
        _ => None,
    }
}

/// Whether a result of an operator is the sum of these two, of integers too, elementwise if they are arrays.
fn is_sum(body: &Body, result: Atom, p: Var, q: Var) -> bool {
    operation(body, result, [p, q], |_| true) == Kind::Add
}
