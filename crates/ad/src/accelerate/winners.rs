//! The derivative of `permute` by the larger or smaller number: each place gives its adjoint to one element, or keeps it. It is ours; the thesis has no `permute` as input.
//!
//! Source: Schenck et al., IFL 2023, section 4, for histograms.
//!
//! The rule stands in `dual`. The *winner* of a place is the first element that attains the result, and the target stands before all elements. Where nothing attains it, it is not a number, and the adjoint stays with the target.

use super::dual::State;
use super::label::Label;
use super::language::{AVar, Arr, ArrForm, Exp, Fun, Ty, made};
use super::primal::Pass;
use super::rows::{elements, integer, number, rank};
use super::zeros::{lambda, zero_value};
use pullback_prim::{Op, Prim, Scalar};

impl Pass<'_> {
    // [accelerate.dual.permute_extremum]
    pub(super) fn at_winners(
        &mut self,
        f: &Fun,
        (u, d): (&Arr<Label>, &AVar),
        (target, m): (&Arr<Label>, &Arr<Label>),
        s: &mut State<'_>,
    ) {
        let [all, from, a] = [u, target, m].map(|u| self.values[u.label()].clone());
        let nobody = elements(&self.shape(m));
        let first = lambda(self.names, "j", Ty::index(rank(&all)), |_, j| {
            let attains = equal(read(&from, j.clone()), read(&all, j));
            made(Exp::cond(attains, Exp::i64(-1), nobody.clone()))
        });
        let first = made(Arr::new(ArrForm::Generate(self.shape(target), first)));
        let shape = self.shape(m);
        let numbers = lambda(self.names, "i", Ty::index(rank(&a)), |_, i| number(&shape, &i));
        let numbers = made(Arr::new(ArrForm::Generate(self.shape(m), numbers)));
        let to = self.sent_where(f, |p, i| equal(read(&a, i), read(&all, p.proj(1))));
        let pair = Ty::Tuple(vec![Ty::Scalar(Scalar::I64); 2]);
        let least = lambda(self.names, "p", pair, |_, p| integer(Op::Min, p.proj(0), p.proj(1)));
        let winners = made(Arr::new(ArrForm::Permute(least, first, to, numbers)));
        let winners = self.bind("winners", winners, s.lets);
        let zero = zero_value(made(d.ty().array()).0);
        let kept = lambda(self.names, "j", Ty::index(rank(&all)), |_, j| {
            let winner = read(&winners, j.clone());
            let is_own = made(Exp::prim(
                Prim::Op(Op::Or, Scalar::Bool),
                vec![equal(winner.clone(), Exp::i64(-1)), equal(winner, nobody)],
            ));
            made(Exp::cond(is_own, read(d, j), zero.clone()))
        });
        s.give(target, made(Arr::new(ArrForm::Generate(self.shape(target), kept))));
        let given = self.sent_where(f, |p, i| equal(read(&winners, p.proj(1)), number(&shape, &i)));
        let p = self.names.fresh("p", given.body.ty().clone());
        let at = made(Exp::cond(Exp::var(&p).proj(0), read(d, Exp::var(&p).proj(1)), zero));
        let body = made(Exp::lets(vec![(p, given.body)], at));
        let given = Fun { param: given.param, body };
        s.give(m, made(Arr::new(ArrForm::Generate(self.shape(m), given))));
    }

    /// `\i. let p = f i in (p.0 and this, p.1)`, where this is not asked if the element goes nowhere.
    fn sent_where(&mut self, f: &Fun, is: impl FnOnce(&Exp, Exp) -> Exp) -> Fun {
        let p = self.names.fresh("p", f.body.ty().clone());
        let place = Exp::var(&p);
        let goes = made(Exp::cond(place.proj(0), is(&place, Exp::var(&f.param)), Exp::bool(false)));
        let body = Exp::tuple(vec![goes, place.proj(1)]);
        Fun { param: f.param.clone(), body: made(Exp::lets(vec![(p, f.body.clone())], body)) }
    }
}

fn read(a: &AVar, at: Exp) -> Exp {
    made(Exp::index(a, at))
}

fn equal(x: Exp, y: Exp) -> Exp {
    let Ty::Scalar(s) = x.ty() else { unreachable!("numbers") };
    let s = *s;
    made(Exp::prim(Prim::Op(Op::Eq, s), vec![x, y]))
}
