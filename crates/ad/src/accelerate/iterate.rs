//! The derivative of `iterate`: a loop backwards over the states, whose body has both phases of the step. It is ours; the text has no loops.
//!
//! The rule stands in `dual`. The state of the loop backwards is the adjoint of the state, and of each array that the step reads from outside the sum of what was contributed so far.
//!
//! Cost: that of the loop, but for the arrays that a step reads from outside: each iteration adds to their adjoints as a whole. The values of a step are computed once more for each loop around it.

use super::contributions::{Contribution, Contributions, sum_contributions};
use super::dual::State;
use super::label::{Key, Label};
use super::language::{AVar, Arr, ArrForm, ArrTy, Exp, Slice, Step, Ty, made};
use super::primal::{Env, Lets, Pass};
use super::rows::{integer, moved};
use super::zeros::{addition, gen_zero, lambda};
use pullback_prim::{Op, Scalar};

impl Pass<'_> {
    /// The step in the output, and its let-stack without the result.
    pub(super) fn primal_step(&mut self, n: Label, step: &Step<Label>, env: &mut Env) -> (Step, Lets) {
        let (state, counter) = (self.names.again(&step.state), self.names.again(&step.counter));
        env.insert(step.state.clone(), Key::State(n));
        env.insert(step.counter.clone(), Key::Counter(n));
        self.keys.insert(state.clone(), Key::State(n));
        self.loops.insert(n, [state.clone(), counter.clone()]);
        let (mut inner, mut stored) = (Lets::new(), Vec::new());
        self.primal(&step.body, env, &mut inner, &mut stored);
        let body = made(Arr::lets(inner.clone(), self.value(&step.body)));
        (Step { state, counter, body }, inner)
    }

    /// The array of the output that has these contributions.
    fn holder(&self, key: Key) -> AVar {
        match key {
            Key::Node(m) => self.values[&m].clone(),
            Key::State(n) => self.loops[&n][0].clone(),
            Key::Counter(n) => self.loops[&n][1].clone(),
            Key::Argument => match self.keys.iter().find(|(_, k)| **k == Key::Argument) {
                Some((a, _)) => a.clone(),
                None => unreachable!("the argument is known from the beginning"),
            },
        }
    }

    pub(super) fn dual_iterate(
        &mut self,
        (e, step, m): (&Exp, &Step<Label>, &Arr<Label>),
        (u, d): (&Arr<Label>, &AVar),
        env: &mut Env,
        s: &mut State<'_>,
    ) {
        let n = *u.label();
        let (e, states) = (self.exp(e, env), self.values[&n].clone());
        let (own, mut inner) = self.primal_step(n, step, env);
        let given = self.names.fresh("given", own.state.ty().clone());
        let mut map = Contributions::default();
        map.add(Key::Node(*step.body.label()), Contribution::full(Arr::var(&given)));
        self.dual(&step.body, env, &mut map, &mut inner, &mut Vec::new());
        let of_state = map.take(Key::State(n));
        let mut results = vec![sum_contributions(self.names, &mut inner, &of_state, &own.state)];
        let (keys, mut holders) = (map.keys(), Vec::new());
        for key in &keys {
            let (cs, holder) = (map.take(*key), self.holder(*key));
            results.push(sum_contributions(self.names, &mut inner, &cs, &holder));
            holders.push(holder);
        }
        let value = self.values[m.label()].clone();
        let zeros = std::iter::once(&value).chain(&holders).map(|a| gen_zero(self.names, a)).collect();
        let zeros = Arr::tuple(zeros);

        // The loop backwards.
        let state = self.names.fresh("back", zeros.ty().clone());
        let counter = self.names.fresh("k", ArrTy::Array(Ty::Scalar(Scalar::I64), 0));
        let k = made(Exp::index(&counter, Exp::tuple(Vec::new())));
        let j = integer(Op::Sub, moved(e.clone(), -1), k);
        let number = lambda(self.names, "i", Ty::index(0), |_, _| j.clone());
        let number = made(Arr::new(ArrForm::Generate(Exp::tuple(Vec::new()), number)));
        let arrives = self.sum_of(&at_outer(&Arr::var(d), &moved(j.clone(), 1)), &Arr::var(&state).proj(0));
        let mut lets =
            vec![(own.state, at_outer(&Arr::var(&states), &j)), (own.counter, number), (given, arrives)];
        lets.extend(inner);
        for (k, sum) in results.iter_mut().enumerate().skip(1) {
            *sum = self.sum_of(&Arr::var(&state).proj(k), sum);
        }
        let body = made(Arr::lets(lets, Arr::tuple(results)));
        let back = ArrForm::Iterate(e.clone(), Step { state, counter, body }, zeros);
        let back = Arr::var(&self.bind("back", made(Arr::new(back)), s.lets));
        let first = self.sum_of(&at_outer(&Arr::var(d), &Exp::i64(0)), &at_outer(&back.proj(0), &e));
        s.give(m, first);
        for (k, key) in keys.into_iter().enumerate() {
            let sum = self.bind("given", at_outer(&back.proj(k + 1), &e), s.lets);
            s.stored.push(sum.clone());
            s.map.add(key, Contribution::full(Arr::var(&sum)));
        }
    }

    /// The sum of two terms of one type.
    fn sum_of(&mut self, u: &Arr, v: &Arr) -> Arr {
        match u.ty() {
            ArrTy::Tuple(ts) => {
                Arr::tuple((0..ts.len()).map(|k| self.sum_of(&u.proj(k), &v.proj(k))).collect())
            }
            ArrTy::Array(elem, _) => {
                let plus = addition(self.names, elem);
                made(Arr::new(ArrForm::ZipWith(plus, u.clone(), v.clone())))
            }
        }
    }
}

/// The part of each array at this outer index.
pub(super) fn at_outer(u: &Arr, at: &Exp) -> Arr {
    match u.ty() {
        ArrTy::Tuple(ts) => Arr::tuple((0..ts.len()).map(|k| at_outer(&u.proj(k), at)).collect()),
        ArrTy::Array(_, rank) => {
            let slc: Slice = std::iter::once(Some(at.clone())).chain((1..*rank).map(|_| None)).collect();
            made(Arr::new(ArrForm::Slice(slc, u.clone())))
        }
    }
}
