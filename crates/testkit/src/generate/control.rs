//! Control flow to a value of any type: conditionals, matches, loops, calls, components, nested derivatives.

use super::shape::{Dim, Shaped};
use super::{Generator, LIMIT, Val};
use pullback_core::{Atom, Body, Builder, Exp, Loop, LoopAttrs, LoopForm, Mark, Type, Var};
use pullback_prim::{Op, Scalar};

impl Generator<'_> {
    /// A value of the goal by control flow; `None` where the chosen way does not lead there.
    pub(crate) fn control(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Option<Val> {
        if self.nesting >= self.config.nesting {
            return None;
        }
        let w = &self.config.control_weights;
        let weights =
            [w.if_, w.match_, w.for_loop, w.while_loop, w.call, w.project, w.vjp, w.jvp, w.marked, w.par];
        match self.rng.weighted(&weights) {
            0 => Some(self.conditional(b, goal)),
            1 => Some(self.match_sum(b, goal)),
            2 => Some(self.for_loop(b, goal)),
            3 => Some(self.while_loop(b, goal)),
            4 => self.call(b, goal),
            5 => Some(self.project(b, goal)),
            6 => self.reverse_derivative(b, goal),
            7 => self.forward_derivative(b, goal),
            8 => Some(self.marked(b, goal)),
            _ => Some(self.par(b, goal)),
        }
    }

    /// The goal and sometimes further results.
    fn with_extra(&mut self, goal: &Shaped) -> Vec<Shaped> {
        let mut results = vec![goal.clone()];
        if self.rng.chance(0.25) {
            let extra = self.random_shape(true);
            results.push(extra);
        }
        results
    }

    /// A body with these results; bounds are joined into `bounds`.
    fn body(&mut self, b: &mut Builder<'_>, results: &[Shaped], bounds: &mut [f64]) -> Body {
        b.scope(|b| {
            self.maybe(|g| {
                let mark = g.scope.len();
                g.bounded(b, results, bounds, mark)
            })
        })
    }

    /// Values of a body; their bounds are joined into `bounds`.
    fn bounded(
        &mut self,
        b: &mut Builder<'_>,
        results: &[Shaped],
        bounds: &mut [f64],
        mark: usize,
    ) -> Vec<Atom> {
        let values = self.body_values(b, results, &vec![LIMIT; results.len()], mark);
        values.iter().zip(bounds).for_each(|(v, bound)| *bound = bound.max(v.bound));
        values.into_iter().map(|v| v.atom).collect()
    }

    /// The first result as a value; the others go into the scope.
    fn keep(&mut self, out: &[Var], shapes: &[Shaped], bounds: &[f64]) -> Val {
        for k in 1..out.len() {
            self.push(&out[k..=k], &shapes[k..=k], bounds[k], false);
        }
        Val { atom: out[0].into(), bound: bounds[0] }
    }

    fn conditional(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let c = self.value(b, &Shaped::BOOL);
        let results = self.with_extra(goal);
        let mut bounds = vec![0.0; results.len()];
        let then = self.body(b, &results, &mut bounds);
        let otherwise = self.body(b, &results, &mut bounds);
        self.features.conditional += 1;
        let out = b.emit_all(Exp::If(c.atom, then, otherwise), "if");
        self.keep(&out, &results, &bounds)
    }

    /// A sum, of the scope if there is one, and its alternatives.
    pub(crate) fn sum_to_match(&mut self) -> (Shaped, Vec<Vec<Shaped>>) {
        let sums = self.scope.iter().rev().filter_map(|e| match &e.shape {
            Shaped::Sum(alternatives) => Some(alternatives.clone()),
            _ => None,
        });
        let in_scope: Vec<_> = sums.take(2).collect();
        let alternatives = if !in_scope.is_empty() && self.rng.chance(0.7) {
            self.rng.choose(&in_scope).clone()
        } else {
            vec![vec![Shaped::F64], vec![Shaped::F64, Shaped::F64], vec![]]
        };
        (Shaped::Sum(alternatives.clone()), alternatives)
    }

    fn match_sum(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let (sum, alternatives) = self.sum_to_match();
        let scrutinee = self.value(b, &sum);
        let results = self.with_extra(goal);
        let mut bounds = vec![0.0f64; results.len()];
        self.features.sums += 1;
        let out = b.match_(scrutinee.atom, |b, k, payload| {
            self.maybe(|g| {
                let mark = g.scope.len();
                g.push(payload, &alternatives[k], scrutinee.bound, false);
                g.bounded(b, &results, &mut bounds, mark)
            })
        });
        self.keep(&out, &results, &bounds)
    }

    /// State for a loop: the goal and up to two further values, with their initial values and invariant bounds.
    fn state(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> (Vec<Shaped>, Vec<Atom>, Vec<f64>) {
        let mut shapes = vec![goal.clone()];
        for _ in 0..self.rng.weighted(&[0.5, 0.35, 0.15]) {
            let extra = self.random_shape(true);
            shapes.push(extra);
        }
        let mut init = Vec::new();
        let mut bounds = Vec::new();
        for t in &shapes {
            let v = self.value(b, t);
            init.push(v.atom);
            bounds.push(v.bound.max(1.5));
        }
        (shapes, init, bounds)
    }

    fn next_state(
        &mut self,
        b: &mut Builder<'_>,
        shapes: &[Shaped],
        bounds: &[f64],
        mark: usize,
    ) -> Vec<Atom> {
        self.body_values(b, shapes, bounds, mark).into_iter().map(|v| v.atom).collect()
    }

    fn for_loop(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let (shapes, init, bounds) = self.state(b, goal);
        let narrow = self.rng.chance(0.15);
        let count = match self.rng.below(4) {
            0 => Dim::N,
            1 => Dim::M,
            _ => Dim::constant(self.rng.below(4)),
        };
        let width = self.dim(b, count);
        let n = if narrow { b.convert(width, Scalar::I32) } else { width };
        let keeps = self.rng.chance(self.config.kept);
        let mut kept = None;
        self.features.for_loop += 1;
        let out = b.for_loop(n, &init, |b, i, state| {
            self.maybe(|g| {
                let mark = g.scope.len();
                let counter = if narrow { Shaped::Scalar(Scalar::I32) } else { Shaped::I64 };
                g.push(&[i], &[counter], 0.0, true);
                for (k, v) in state.iter().enumerate() {
                    g.push(&[*v], &shapes[k..=k], bounds[k], false);
                }
                let mut next = g.next_state(b, &shapes, &bounds, mark);
                if keeps && let Some((shape, v)) = g.array_of_body((&next, &shapes, &bounds), mark) {
                    let sum = Shaped::Sum(vec![vec![shape], vec![]]);
                    next.push(b.emit(Exp::Inject(sum.ty(), 0, vec![v.atom]), "kept"));
                    kept = Some((sum, v.bound));
                }
                next
            })
        });
        if let Some((sum, bound)) = kept {
            self.read_kept(b, out[shapes.len()], (width, count), &sum, bound);
        }
        self.keep(&out[..shapes.len()], &shapes, &bounds)
    }

    /// An array that a body of a loop has, be it a state, something made there or the next state.
    fn array_of_body(
        &mut self,
        (next, shapes, bounds): (&[Atom], &[Shaped], &[f64]),
        mark: usize,
    ) -> Option<(Shaped, Val)> {
        let is_array = |shape: &Shaped| shape.rank() > 0 && shape.is_numeric();
        let here = self.scope[mark..].iter().map(|e| (e.shape.clone(), Val { atom: e.atom, bound: e.bound }));
        let next = next.iter().zip(shapes).zip(bounds);
        let next = next.map(|((a, shape), limit)| (shape.clone(), Val { atom: *a, bound: *limit }));
        let mut all: Vec<_> = here.chain(next).filter(|(shape, _)| is_array(shape)).collect();
        if all.is_empty() {
            return None;
        }
        Some(all.swap_remove(self.rng.below(all.len())))
    }

    /// The arrays that a loop kept, in scope as one array.
    fn read_kept(
        &mut self,
        b: &mut Builder<'_>,
        kept: Var,
        (width, count): (Atom, Dim),
        sum: &Shaped,
        bound: f64,
    ) {
        let Shaped::Sum(alternatives) = sum else { return };
        let shape = &alternatives[0][0];
        let mut largest = bound;
        // Of no arrays at all the sizes are not known.
        self.features.empty_arrays += usize::from(count.as_constant() == Some(0));
        let out = b.map(width, &[kept.into()], |b, e| {
            let read = b.match_(e[0].into(), |b, k, payload| {
                if k == 0 {
                    return vec![payload[0].into()];
                }
                self.inner(|g| {
                    let v = g.leaf(b, shape);
                    largest = largest.max(v.bound);
                    vec![v.atom]
                })
            });
            vec![read[0].into()]
        });
        self.features.sums += 1;
        self.push(&out, &[Shaped::array(count, shape.clone())], largest, false);
    }

    /// A while loop: an integer counts up to a small number, and a float may end it before.
    fn while_loop(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let (mut shapes, mut init, mut bounds) = self.state(b, goal);
        shapes.push(Shaped::I64);
        init.push(Atom::i64(0));
        bounds.push(0.0);
        let params: Vec<(Var, Atom)> =
            shapes.iter().zip(&init).map(|(t, a)| (b.fresh(t.ty(), "s"), *a)).collect();
        let counter: Atom = params[params.len() - 1].0.into();
        let most = self.rng.below(4) as i64;
        let float =
            params.iter().zip(&shapes).find(|(_, t)| **t == Shaped::F64).map(|(p, _)| Atom::from(p.0));
        let last = shapes.len() - 1;
        let condition = b.scope(|b| {
            let more = b.op2(Op::Lt, counter, Atom::i64(most));
            let number = match float {
                Some(x) if self.rng.chance(0.35) => Some(x),
                _ if self.rng.chance(0.4) => Some(self.tested(b, &params, &shapes, &bounds)),
                _ => None,
            };
            let small = number.map(|x| b.op2(Op::Lt, x, Atom::f64(0.912_345_6)));
            vec![small.map_or(more, |small| b.op2(Op::And, more, small))]
        });
        let body = b.scope(|b| {
            self.maybe(|g| {
                let mark = g.scope.len();
                for (k, (v, _)) in params.iter().enumerate() {
                    g.push(&[*v], &shapes[k..=k], bounds[k], k == last);
                }
                let mut next = g.next_state(b, &shapes[..last], &bounds[..last], mark);
                next.push(b.op2(Op::Add, counter, Atom::i64(1)));
                next
            })
        });
        self.features.while_loop += 1;
        let form = LoopForm::While(condition);
        let exp = Exp::Loop(Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() });
        let out = b.emit_all(exp, "w");
        self.keep(&out, &shapes, &bounds)
    }

    /// A number that the condition of a loop makes of the states: work on arrays, which leaves the states as they are.
    fn tested(
        &mut self,
        b: &mut Builder<'_>,
        params: &[(Var, Atom)],
        shapes: &[Shaped],
        bounds: &[f64],
    ) -> Atom {
        self.discretely(|g| {
            g.inner(|g| {
                let mark = g.scope.len();
                for (k, (v, _)) in params.iter().enumerate() {
                    g.push(&[*v], &shapes[k..=k], bounds[k], false);
                }
                g.body_value(b, &Shaped::F64, LIMIT, mark).atom
            })
        })
    }

    fn call(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Option<Val> {
        let fitting: Vec<usize> =
            (0..self.helpers.len()).filter(|&k| self.helpers[k].results.contains(goal)).collect();
        let any: Vec<usize> = (0..self.helpers.len()).collect();
        let helper = if fitting.is_empty() {
            // A call whose results only go into the scope.
            if any.is_empty() || self.nesting > 0 {
                return None;
            }
            self.helpers[*self.rng.choose(&any)].clone()
        } else {
            self.helpers[*self.rng.choose(&fitting)].clone()
        };
        let mut args = vec![self.size_atoms.0, self.size_atoms.1];
        for (k, t) in helper.params.iter().enumerate() {
            if helper.recursive && k == 0 {
                args.push(Atom::i64(self.rng.below(4) as i64));
            } else {
                let v = self.value(b, t);
                args.push(self.limit(b, t, v, helper.bound).atom);
            }
        }
        self.features.calls += 1;
        let out = b.emit_all(Exp::Call(helper.id, args), "call");
        let hit = helper.results.iter().position(|t| t == goal);
        for (k, v) in out.iter().enumerate() {
            if Some(k) != hit {
                self.push(&[*v], &helper.results[k..=k], helper.bound, false);
            }
        }
        hit.map(|k| Val { atom: out[k].into(), bound: helper.bound })
    }

    /// A component of a tuple in scope, or of one generated for this.
    fn project(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let in_scope =
            self.scope.iter().rposition(|e| matches!(&e.shape, Shaped::Tuple(items) if items.contains(goal)));
        let (atom, items, bound) = match in_scope {
            Some(k) => {
                self.scope[k].used |= self.rng.chance(0.3);
                let entry = self.scope[k].clone();
                let Shaped::Tuple(items) = entry.shape else { return self.leaf(b, goal) };
                (entry.atom, items, entry.bound)
            }
            None => {
                let mut items = vec![goal.clone()];
                let other = self.random_shape(true);
                items.insert(self.rng.below(2), other);
                let v = self.value(b, &Shaped::Tuple(items.clone()));
                (v.atom, items, v.bound)
            }
        };
        let k = items.iter().position(|t| t == goal).unwrap_or(0);
        self.features.tuples += 1;
        Val { atom: b.emit(Exp::Proj(atom, k), "proj"), bound }
    }

    /// The gradient of a generated function of one argument of the goal's type.
    fn reverse_derivative(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Option<Val> {
        if !goal.is_numeric() || self.nesting > 1 {
            return None;
        }
        let at = self.value(b, goal);
        let lam = b.lam(&[goal.ty()], "u", |b, p| {
            self.inner(|g| {
                let mark = g.scope.len();
                g.push(p, std::slice::from_ref(goal), at.bound, false);
                let out = g.body_values(b, &[Shaped::F64], &[LIMIT], mark);
                out.into_iter().map(|v| v.atom).collect()
            })
        });
        let (cotangents, seeds) = self.seeds(b, goal, 0.75);
        self.features.derivatives += 1;
        let out =
            b.emit_all(Exp::Vjp { lam, args: vec![at.atom], cotangents, seeds, algorithm: None }, "vjp");
        self.push(&out[..1], &[Shaped::F64], LIMIT, false);
        let atom = last_of(b, out[1].into(), seeds);
        Some(self.limit(b, goal, Val { atom, bound: 60.0 }, LIMIT))
    }

    /// The directional derivative of a generated function from a float to the goal's type.
    fn forward_derivative(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Option<Val> {
        if !goal.is_numeric() || self.nesting > 1 {
            return None;
        }
        let at = self.value(b, &Shaped::F64);
        let lam = b.lam(&[Type::F64], "u", |b, p| {
            self.inner(|g| {
                let mark = g.scope.len();
                g.push(p, &[Shaped::F64], at.bound, false);
                let out = g.body_values(b, std::slice::from_ref(goal), &[LIMIT], mark);
                out.into_iter().map(|v| v.atom).collect()
            })
        });
        let (tangents, seeds) = self.seeds(b, goal, 0.5);
        self.features.derivatives += 1;
        let out = b.emit_all(Exp::Jvp { lam, args: vec![at.atom], tangents, seeds, algorithm: None }, "jvp");
        self.push(&out[..1], std::slice::from_ref(goal), LIMIT, false);
        let atom = last_of(b, out[1].into(), seeds);
        Some(self.limit(b, goal, Val { atom, bound: 60.0 }, LIMIT))
    }

    /// One float to differentiate along, or two at once.
    fn seeds(&mut self, b: &mut Builder<'_>, goal: &Shaped, seed: f64) -> (Vec<Atom>, Option<Atom>) {
        if matches!(goal, Shaped::Tuple(_)) || !self.rng.chance(0.4) {
            return (vec![Atom::f64(seed)], None);
        }
        let both = vec![Atom::f64(-0.25), Atom::f64(seed)];
        let seeds = b.emit(Exp::ArrayLit(Type::F64, both), "seeds");
        (vec![seeds], Some(Atom::i64(2)))
    }

    fn marked(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let mark = if self.rng.chance(0.5) { Mark::Recompute } else { Mark::Store };
        let results = self.with_extra(goal);
        let mut bounds = vec![0.0; results.len()];
        let body = self.body(b, &results, &mut bounds);
        let out = b.emit_all(Exp::Marked(mark, body), "mark");
        self.keep(&out, &results, &bounds)
    }

    fn par(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        let shapes = vec![goal.clone(), self.random_shape(true)];
        let mut bodies = Vec::new();
        let mut bounds = vec![0.0; 2];
        for k in 0..2 {
            bodies.push(self.body(b, &shapes[k..=k], &mut bounds[k..=k]));
        }
        let out = b.emit_all(Exp::Par(bodies), "par");
        self.keep(&out, &shapes, &bounds)
    }
}

/// The derivative along the last of several seeds.
fn last_of(b: &mut Builder<'_>, derivative: Atom, seeds: Option<Atom>) -> Atom {
    if seeds.is_some() { b.index(derivative, &[Atom::i64(1)]) } else { derivative }
}
