//! The contribution map: of each node, what has been contributed to its adjoint.
//!
//! Source: MSc thesis, 3.4.4; `EltwiseEIsum` is 2.6 of our notes.
//!
//! Rules, of the adjoint of a node whose primal value is `a`:
//! ```text
//! none      no contribution            =>  zeros as `a`
//! one       one, of the full shape     =>  itself
//! plain     all of the full shape      =>  zipWith (+) u_1 u_2, and so on                                               (ours)
//! padded    others                     =>  generate (shape a) (\i. x_1 + .. + x_n)   where x_k = cond (i < shape u_k) (u_k ! i) 0
//! tuple     a : (T_1, .., T_n)         =>  of each component the sum of what was contributed to it
//! ```
//!
//! An array is smaller than the node if a branch was not taken, where it is empty, or if a `zipWith` has cut it off. Only such contributions are padded; the text pads all.
//! Contributions to a component of a tuple are kept as such, where the text has tuples of zeros.

use super::label::Key;
use super::language::{AVar, Arr, ArrForm, ArrTy, EVar, Exp, Names, Ty, made};
use super::zeros::{addition, gen_zero, lambda, plus, zero_value};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// A contribution to an adjoint.
#[derive(Clone, Debug)]
pub enum Contribution {
    /// An array term of the node's type; whether it has the full shape of the node.
    Whole(Arr, bool),
    /// A contribution to this component.
    Component(usize, Box<Contribution>),
}

/// The contribution map. It is ordered, so that programs come out alike.
#[derive(Clone, Debug, Default)]
pub struct Contributions(BTreeMap<Key, Vec<Contribution>>);

impl Contributions {
    /// One more contribution.
    pub fn add(&mut self, to: Key, c: Contribution) {
        self.0.entry(to).or_default().push(c);
    }
    /// What was contributed to a node, which is asked for once.
    pub fn take(&mut self, of: Key) -> Vec<Contribution> {
        self.0.remove(&of).unwrap_or_default()
    }
    /// What has contributions.
    pub fn keys(&self) -> Vec<Key> {
        self.0.keys().copied().collect()
    }
    /// How many contributions each node has.
    pub fn counts(&self) -> BTreeMap<Key, usize> {
        self.0.iter().map(|(k, cs)| (*k, cs.len())).collect()
    }
    /// Contributions that came after these counts may be empty from now on: they were made in a branch.
    pub fn leave_branch(&mut self, before: &BTreeMap<Key, usize>) {
        for (key, cs) in &mut self.0 {
            cs.iter_mut().skip(before.get(key).copied().unwrap_or(0)).for_each(Contribution::may_be_empty);
        }
    }
}

impl Contribution {
    /// A contribution of the full shape.
    pub fn full(u: Arr) -> Contribution {
        Contribution::Whole(u, true)
    }
    fn may_be_empty(&mut self) {
        match self {
            Contribution::Whole(_, full) => *full = false,
            Contribution::Component(_, c) => c.may_be_empty(),
        }
    }
    fn component(&self, k: usize) -> Option<Contribution> {
        match self {
            Contribution::Whole(u, full) => Some(Contribution::Whole(u.proj(k), *full)),
            Contribution::Component(j, c) => (*j == k).then(|| (**c).clone()),
        }
    }
}

/// The adjoint of a node with the primal value `a`: bindings go to `lets`.
pub fn sum_contributions(
    names: &mut Names,
    lets: &mut Vec<(AVar, Arr)>,
    cs: &[Contribution],
    a: &AVar,
) -> Arr {
    let elem = match a.ty() {
        // [accelerate.sum.tuple]
        ArrTy::Tuple(ts) => {
            if let [Contribution::Whole(u, true)] = cs {
                return u.clone();
            }
            let component = |(k, ty): (usize, &ArrTy)| {
                let part = names.fresh("part", ty.clone());
                lets.push((part.clone(), Arr::var(a).proj(k)));
                let of: Vec<Contribution> = cs.iter().filter_map(|c| c.component(k)).collect();
                sum_contributions(names, lets, &of, &part)
            };
            return Arr::tuple(ts.iter().enumerate().map(component).collect());
        }
        ArrTy::Array(elem, _) => elem.clone(),
    };
    let terms = cs.iter().map(|c| match c {
        Contribution::Whole(u, full) => (u.clone(), *full),
        Contribution::Component(..) => unreachable!("a component of an array"),
    });
    let terms: Vec<(Arr, bool)> = terms.collect();
    match &terms[..] {
        // [accelerate.sum.none]
        [] => gen_zero(names, a),
        // [accelerate.sum.one]
        [(u, true)] => u.clone(),
        // [accelerate.sum.plain]
        [(first, true), rest @ ..] if rest.iter().all(|(_, full)| *full) => {
            rest.iter().fold(first.clone(), |x, (y, _)| {
                made(Arr::new(ArrForm::ZipWith(addition(names, &elem), x, y.clone())))
            })
        }
        // [accelerate.sum.padded]
        _ => padded(names, lets, terms.into_iter().map(|(u, _)| u), (a, &elem)),
    }
}

fn padded(
    names: &mut Names,
    lets: &mut Vec<(AVar, Arr)>,
    terms: impl Iterator<Item = Arr>,
    (a, elem): (&AVar, &Ty),
) -> Arr {
    let terms: Vec<AVar> = terms
        .map(|u| {
            let v = names.fresh("v", u.ty().clone());
            lets.push((v.clone(), u));
            v
        })
        .collect();
    let shape = made(Exp::shape(a));
    let body = |names: &mut Names, i: Exp| {
        let read = |v: &AVar| {
            let here = made(Exp::index(v, i.clone()));
            let x = made(Exp::cond(is_inside(&i, v), here, zero_value(elem)));
            (names.fresh("x", elem.clone()), x)
        };
        let bindings: Vec<(EVar, Exp)> = terms.iter().map(read).collect();
        let all = bindings.iter().fold(zero_value(elem), |sum, (x, _)| plus(&sum, &Exp::var(x)));
        made(Exp::lets(bindings, all))
    };
    let f = lambda(names, "i", shape.ty().clone(), body);
    made(Arr::new(ArrForm::Generate(shape, f)))
}

/// `i < shape v`, in every dimension.
fn is_inside(i: &Exp, v: &AVar) -> Exp {
    let shape = made(Exp::shape(v));
    let rank = i.ty().rank().unwrap_or(0);
    let below = |k: usize| made(Exp::prim(Prim::Op(Op::Lt, Scalar::I64), vec![i.proj(k), shape.proj(k)]));
    let both = |x: Exp, y: Exp| made(Exp::prim(Prim::Op(Op::And, Scalar::Bool), vec![x, y]));
    (0..rank).map(below).reduce(both).unwrap_or_else(|| Exp::bool(true))
}
