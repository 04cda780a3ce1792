//! Bodies that end in a branch: functions above all, also those of loops, maps and derivatives.
//!
//! What was made before the branch is read in its arms, and arms make more: so it must still be there, and where an arm gives it as a
//! result, it must stay. An arm names what is there, works with it, gives constants, or ends in a branch itself. Results are of every
//! kind, several at once, some of which lie in memory and some of which do not.

use super::shape::Shaped;
use super::{Generator, LIMIT, Val};
use pullback_core::{Atom, Builder, Exp, FunId};
use pullback_prim::Op;

/// What an arm does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    /// It works with what was made before.
    Works,
    /// It gives variables that are there.
    Names,
    /// It gives what lies in no memory.
    Constant,
    /// It ends in a branch.
    Branches,
}

impl Generator<'_> {
    /// Whether a function ends in a branch.
    pub(crate) fn ends(&mut self) -> bool {
        self.config.ending > 0.0 && self.rng.chance(self.config.ending)
    }

    /// The values of a body, bounded by these limits; now and then by a branch. See [`Self::body_value`].
    pub(crate) fn body_values(
        &mut self,
        b: &mut Builder<'_>,
        goals: &[Shaped],
        limits: &[f64],
        mark: usize,
    ) -> Vec<Val> {
        if self.config.ending > 0.0 && self.rng.chance(0.5 * self.config.ending) {
            return self.ending(b, goals, limits, mark);
        }
        goals.iter().zip(limits).map(|(t, limit)| self.body_value(b, t, *limit, mark)).collect()
    }

    /// The results of the main function by a branch, and now and then what was made before it too.
    pub(crate) fn main_ending(&mut self, b: &mut Builder<'_>) -> Vec<Atom> {
        let goals = self.result_shapes();
        let mut out: Vec<Atom> = Vec::new();
        let scalars_only = self.rng.chance(0.6);
        if self.rng.chance(0.4) {
            let fits = |shape: &Shaped| !scalars_only || matches!(shape, Shaped::Scalar(_));
            out.extend(self.scope.iter().rev().find(|e| fits(&e.shape)).map(|e| e.atom));
        }
        let limits = vec![f64::INFINITY; goals.len()];
        let ends = self.ending(b, &goals, &limits, 0);
        let at = if self.rng.chance(0.5) { 0 } else { out.len() };
        out.splice(at..at, ends.into_iter().map(|v| v.atom));
        out
    }

    /// The body of a helper function with these results.
    pub(crate) fn helper_ending(&mut self, b: &mut Builder<'_>, results: &[Shaped]) -> Vec<Atom> {
        for _ in 0..self.rng.range(1, 3) {
            self.statement(b);
        }
        let limits = vec![LIMIT; results.len()];
        self.ending(b, results, &limits, 0).into_iter().map(|v| v.atom).collect()
    }

    /// The body of a function that calls itself in an arm of its last branch, once or twice, with work before the branch and behind
    /// the calls. Its first parameter counts down.
    pub(crate) fn branching_body(
        &mut self,
        b: &mut Builder<'_>,
        id: FunId,
        (params, results): (&[Shaped], &[Shaped]),
    ) -> Vec<Atom> {
        let counter = self.scope[0].atom;
        for _ in 0..self.rng.below(3) {
            self.statement(b);
        }
        let stop = b.op2(Op::Le, counter, Atom::i64(0));
        let (limits, mut bounds) = (vec![LIMIT; results.len()], vec![0.0; results.len()]);
        let last = b.scope(|b| self.arm(b, (results, &limits), 0, &mut bounds, &[]));
        let calls = self.rng.range(1, 2);
        let more = b.scope(|b| {
            self.maybe(|g| {
                let less = b.op2(Op::Sub, counter, Atom::i64(1));
                for _ in 0..calls {
                    let mut args = vec![g.size_atoms.0, g.size_atoms.1, less];
                    for t in &params[1..] {
                        g.fuel = g.rng.range(1, 4) as i64;
                        let v = g.value(b, t);
                        args.push(g.limit(b, t, v, LIMIT).atom);
                    }
                    let out = b.emit_all(Exp::Call(id, args), "r");
                    g.push(&out, results, LIMIT, false);
                }
                g.arm(b, (results, &limits), 0, &mut bounds, &[])
            })
        });
        self.features.endings += 1;
        b.emit_all(Exp::If(stop, last, more), "end").into_iter().map(Atom::from).collect()
    }

    /// Types of results: more often than elsewhere those that lie in memory by parts.
    fn result_shapes(&mut self) -> Vec<Shaped> {
        let count = 1 + self.rng.weighted(&[0.5, 0.35, 0.15]);
        (0..count)
            .map(|_| if self.rng.chance(0.35) { Shaped::F64 } else { self.random_shape(true) })
            .collect()
    }

    /// Values of these types within these limits by a branch. Unused floats of the scope from `mark` on flow into arms that work.
    fn ending(&mut self, b: &mut Builder<'_>, goals: &[Shaped], limits: &[f64], mark: usize) -> Vec<Val> {
        self.features.endings += 1;
        let mut bounds = vec![0.0; goals.len()];
        self.fuel = self.fuel.max(4);
        let out = if self.rng.chance(0.3) {
            let (sum, alternatives) = self.sum_to_match();
            let scrutinee = self.value(b, &sum);
            self.features.sums += 1;
            b.match_(scrutinee.atom, |b, k, payload| {
                let fields: Vec<_> = payload.iter().zip(&alternatives[k]).collect();
                let given: Vec<(Atom, Shaped, f64)> =
                    fields.into_iter().map(|(v, t)| ((*v).into(), t.clone(), scrutinee.bound)).collect();
                self.arm(b, (goals, limits), mark, &mut bounds, &given)
            })
        } else {
            let c = self.value(b, &Shaped::BOOL);
            self.features.conditional += 1;
            let arms = [(); 2].map(|()| b.scope(|b| self.arm(b, (goals, limits), mark, &mut bounds, &[])));
            let [then, otherwise] = arms;
            b.emit_all(Exp::If(c.atom, then, otherwise), "end")
        };
        out.into_iter().zip(bounds).map(|(v, bound)| Val { atom: v.into(), bound }).collect()
    }

    /// The results of an arm; `given`: what it matches.
    fn arm(
        &mut self,
        b: &mut Builder<'_>,
        (goals, limits): (&[Shaped], &[f64]),
        mark: usize,
        bounds: &mut [f64],
        given: &[(Atom, Shaped, f64)],
    ) -> Vec<Atom> {
        let deep = if self.nesting + 1 < self.config.nesting { 0.2 } else { 0.0 };
        let way = [Arm::Works, Arm::Names, Arm::Constant, Arm::Branches]
            [self.rng.weighted(&[0.5, 0.2, 0.15, deep])];
        self.maybe(|g| {
            for (atom, shape, bound) in given {
                g.scope.push(super::Entry { atom: *atom, shape: shape.clone(), bound: *bound, used: false });
            }
            if way == Arm::Branches {
                let out = g.ending(b, goals, limits, mark);
                out.iter().zip(bounds).for_each(|(v, bound)| *bound = bound.max(v.bound));
                return out.into_iter().map(|v| v.atom).collect();
            }
            let statements = if way == Arm::Works { g.rng.below(3) } else { 0 };
            for _ in 0..statements {
                g.statement(b);
            }
            let one = |g: &mut Self, b: &mut Builder<'_>, t: &Shaped, limit: f64| {
                let v = match way {
                    Arm::Names => g.leaf(b, t),
                    Arm::Constant => g.constant(b, t),
                    Arm::Works | Arm::Branches => {
                        g.fuel = g.rng.range(2, 6) as i64;
                        let v = g.value(b, t);
                        g.absorb(b, t, v, mark)
                    }
                };
                g.limit(b, t, v, limit)
            };
            let mut out = Vec::new();
            for ((t, limit), bound) in goals.iter().zip(limits).zip(bounds) {
                let v = one(g, b, t, *limit);
                *bound = bound.max(v.bound);
                out.push(v.atom);
            }
            out
        })
    }

    /// A value that lies in no memory that was made before.
    fn constant(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        match goal {
            Shaped::Scalar(s) => {
                let x = self.rng.range(1, 3) as f64 * 0.375;
                let atom = if s.is_float() { s.from_f64(x) } else { s.from_i64(self.rng.below(2) as i64) };
                Val { atom: Atom::Const(atom), bound: x }
            }
            Shaped::Tuple(items) => {
                let parts: Vec<Val> = items.iter().map(|t| self.constant(b, t)).collect();
                self.build_tuple(b, &parts)
            }
            Shaped::Sum(alternatives) => {
                let k = (0..alternatives.len()).min_by_key(|k| alternatives[*k].len()).unwrap_or(0);
                let fields: Vec<Val> = alternatives[k].iter().map(|t| self.constant(b, t)).collect();
                let bound = fields.iter().fold(0.0, |m: f64, v| m.max(v.bound));
                let fields = fields.iter().map(|v| v.atom).collect();
                Val { atom: b.emit(Exp::Inject(goal.ty(), k, fields), "s"), bound }
            }
            Shaped::Array(..) => {
                let element = self.constant(b, goal.innermost());
                let shape: Vec<Atom> = goal.dims().into_iter().map(|d| self.dim(b, d)).collect();
                Val { atom: b.emit(Exp::Replicate(shape, element.atom), "rep"), bound: element.bound }
            }
        }
    }
}
