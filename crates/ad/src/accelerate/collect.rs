//! The derivative of `collect`: a walk over each row from the other end. It is ours; the text has no loops.
//!
//! The rule stands in `dual`. Of a row with states `x_(k+1) = f (x_k, y_k)` and their adjoints `d_k`, the adjoint of a state is what arrives at it, and what the step after it gives back:
//! ```text
//! back_k = D(f) (d_(k+1) + back_(k+1).0.0, P(f) (x_k, y_k))
//! ```
//! where `back.0` is what the step gives to its state and to its element, and `back.1` the info of the arrays that it reads. Temporaries are computed again, so states are all that is kept.
//! What is discrete in a state has no adjoint.

use super::dual::State;
use super::expression::{Split, Temporaries};
use super::label::Label;
use super::language::{AVar, Arr, ArrForm, Direction, Exp, Fun, Ty, made};
use super::primal::Pass;
use super::rows::{element_of_rows, inner_size, moved, outer_shape, shortened};
use super::zeros::{lambda, map, map_projection, plus, zero_value};

impl Pass<'_> {
    /// The contributions of the states of loops.
    pub(super) fn collected(
        &mut self,
        (from, f): (Direction, &Fun),
        (u, d): (&Arr<Label>, &AVar),
        (first, m): (&Arr<Label>, &Arr<Label>),
        s: &mut State<'_>,
    ) {
        let split = Split::new(self.names, f, Temporaries::Needed, self.options.ieee);
        let all = self.values[u.label()].clone();
        // Beside the element of a step: the state before it, and the adjoint of the state after it.
        let (before, after) = match from {
            Direction::Left => (Arr::var(&all), shortened(self.names, d, 1, true)),
            Direction::Right => (shortened(self.names, &all, 1, true), Arr::var(d)),
        };
        let given = self.paired(after, before);
        let steps = self.paired(given, self.value(m));
        let step = self.step_back(&split, made(steps.ty().array()).0);
        let back = step.body.ty().clone();
        let outer = outer_shape(d);
        let none = lambda(self.names, "i", outer.ty().clone(), |_, _| zero_value(&back));
        let none = made(Arr::new(ArrForm::Generate(outer, none)));
        let opposite = if from == Direction::Left { Direction::Right } else { Direction::Left };
        let walk = made(Arr::new(ArrForm::Collect(opposite, step, none, steps)));
        let walk = self.bind("back", walk, s.lets);
        // What each step gives back, and what the first one gives to the first state.
        let (each, end) = match from {
            Direction::Left => (shortened(self.names, &walk, 0, true), Exp::i64(0)),
            Direction::Right => (shortened(self.names, &walk, 1, true), moved(inner_size(&all), -1)),
        };
        let (given, own) = (element_of_rows(&walk, end.clone()), element_of_rows(d, end));
        let given = map(lambda(self.names, "p", back.clone(), |_, p| p.proj(0).proj(0)), given);
        let sum = self.zipped(own, given, |x, y| plus(&x, &y));
        s.give_part(first, sum);
        let element = lambda(self.names, "p", back, |_, p| p.proj(0).proj(1));
        s.give_part(m, map(element, each.clone()));
        let info = map_projection(self.names, 1, each);
        self.reads_of(&split.reads, info, s);
    }

    /// `\(s, ((d, x), y)). D(f) (d + s.0.0, P(f) (x, y))`
    fn step_back(&mut self, split: &Split, element: &Ty) -> Fun {
        let Split { primal, dual, .. } = split;
        let state = dual.body.ty().clone();
        lambda(self.names, "p", Ty::Tuple(vec![state, element.clone()]), |names, p| {
            let (s, given) = (p.proj(0), p.proj(1));
            let value = names.fresh("value", primal.body.ty().clone());
            let adjoint = plus(&given.proj(0).proj(0), &s.proj(0).proj(0));
            let argument = Exp::tuple(vec![given.proj(0).proj(1), given.proj(1)]);
            let both = Exp::tuple(vec![adjoint, Exp::var(&value).proj(1)]);
            let bindings = vec![
                (primal.param.clone(), argument),
                (value, primal.body.clone()),
                (dual.param.clone(), both),
            ];
            made(Exp::lets(bindings, dual.body.clone()))
        })
    }

    /// The elements of two arrays as pairs.
    fn paired(&mut self, u: Arr, v: Arr) -> Arr {
        self.zipped(u, v, |x, y| Exp::tuple(vec![x, y]))
    }

    fn zipped(&mut self, u: Arr, v: Arr, f: impl FnOnce(Exp, Exp) -> Exp) -> Arr {
        let elem = |u: &Arr| made(u.ty().array()).0.clone();
        let pair = Ty::Tuple(vec![elem(&u), elem(&v)]);
        let f = lambda(self.names, "p", pair, |_, p| f(p.proj(0), p.proj(1)));
        made(Arr::new(ArrForm::ZipWith(f, u, v)))
    }
}
