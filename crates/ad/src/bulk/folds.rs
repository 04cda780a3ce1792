//! What `scanl` with a closed function is as a linear function: its derivative is known before it runs.
//!
//! Source: T. Smeding, thesis, 4.7 and 4.8: a fold whose function captures nothing. `horde-ad` has it as `mapAccumL`, whose reverse derivative is a fold from the other end; here it is a `scanl` and a bulk operation.
//!
//! Judgement: `f = \a xs. t` closed. Its symbolic pass ([`super::e_symbolic`]) gives terms `f'_a` and `f'_j` for the cotangents of `a` and of `x_j`, for a cotangent of its result.
//!
//! Notation: `y = scanl k f z ts`, so `y_(i+1) = f y_i (ts_i)` · `c` a cotangent of `y` · `rev t` is `gather t (\[i]. [k - 1 - i])`
//!
//! Rules:
//! ```text
//! backwards  b = scanl k (\b [c, a, xs ..]. c + f'_a a xs b) c_k [rev c, rev y, rev ts ..]:    b_j is the cotangent of y_(k-j), with all that comes after it
//! start      the cotangent of z is b_k
//! element    the cotangent of t_j is build1 k (\i. f'_j y_i ts_i b_(k-1-i)),  in bulk operations
//! forwards   the tangent of y is scanl k (\d [a, xs .., dxs ..]. f' a xs d dxs) dz [y, ts .., dts ..]
//! ```
//!
//! Guarantee: as many iterations as `scanl` has, and memory for all states and their cotangents. No delta term is made in a loop.

use super::a_core::{Exp, Fold, IndexFn, Names, Program, Term, Ty, Var, made};
use super::b_bot::{Rules, transform};
use super::d_arrays::{Delta, Duals, Forward};
use super::e_symbolic::{Terms, vjp};
use super::evaluate::{Algebra, Closure, Env, Mismatch, interpret};
use super::partials::Zeros;
use super::sizes::Size;
use super::terms::{copied_fold, substitute_all};
use pullback_prim::{Op, Prim};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The derivative of `scanl` with one function.
#[derive(Debug)]
pub(super) struct Linear {
    size: Size,
    state: Ty,
    step: Arc<Fold>,
    /// For each array of floats, a term over states, arrays and cotangents of the next states.
    elements: Vec<Option<Program>>,
    forwards: Arc<Fold>,
}

/// What a `scanl` was applied to, and gave.
#[derive(Clone, Debug)]
pub(super) struct States<A> {
    pub(super) states: A,
    pub(super) arrays: Vec<A>,
    pub(super) start: Delta<A>,
    /// For each array of floats.
    pub(super) deltas: Vec<Option<Delta<A>>>,
}

/// A cotangent for each array of floats.
type OfArrays<A> = Vec<Option<A>>;

impl Linear {
    /// The names are of where its terms may be put.
    ///
    /// # Errors
    /// [`Mismatch`] where the function has no derivative.
    pub(super) fn new(f: &Fold, names: &mut Names, zeros: Zeros) -> Result<Linear, Mismatch> {
        let program = Program {
            sizes: Vec::new(),
            inputs: f.params.clone(),
            body: f.body.clone(),
            names: names.clone(),
        };
        let derivative = vjp(&program, zeros)?;
        *names = derivative.names().clone();
        let of = |k: usize| derivative.cotangents[k].as_ref().map(|t| derivative.term(t));
        let Some(of_state) = of(0) else { return Err(Mismatch("a state that does not vary".to_string())) };
        let next = derivative.inputs[f.params.len()].clone();
        let elements = (1..f.params.len()).map(|k| {
            let t = of(k)?;
            Some(for_all(names, f, &next, &t))
        });
        let elements = elements.collect();
        let step = step(names, f, &next, &of_state);
        let forwards = forwards(&f.params, f, names, zeros)?;
        let state = f.params[0].ty().clone();
        Ok(Linear {
            size: f.size.clone(),
            state,
            step: Arc::new(step),
            elements,
            forwards: Arc::new(forwards),
        })
    }

    // [bulk_folds.backwards]  the cotangents of all states, from the last one on
    pub(super) fn backwards<T: Algebra>(
        &self,
        alg: &mut T,
        s: &States<T::Array>,
        c: T::Array,
    ) -> (T::Array, OfArrays<T::Array>) {
        let c = alg.share(c);
        let last = alg.size(&self.size);
        let start = alg.index(&c, std::slice::from_ref(&last));
        let around = [&c, &s.states].into_iter().chain(&s.arrays);
        let tys = self.step.params[1..].iter().map(Var::ty);
        let turned: Vec<T::Array> = around.zip(tys).map(|(t, ty)| self.turned(alg, t, ty)).collect();
        let all = alg.scanl(&self.step, &start, &turned);
        let all = alg.share(all);
        // [bulk_folds.start]  b_k
        let of_start = alg.index(&all, &[last]);
        let before = self.moved(alg, &s.states, &self.state, |_, i| i);
        let after = self.turned(alg, &all, &self.state);
        let (before, after) = (alg.share(before), alg.share(after));
        let given: Vec<T::Array> =
            std::iter::once(before).chain(s.arrays.iter().cloned()).chain([after]).collect();
        // [bulk_folds.element]  f'_j of all iterations
        let of_arrays = self.elements.iter().map(|program| {
            let program = program.as_ref()?;
            let mut env: Env<T::Array> =
                program.inputs.iter().map(Var::id).zip(given.iter().cloned()).collect();
            Some(interpret(alg, &mut env, &program.body))
        });
        (of_start, of_arrays.collect())
    }

    // [bulk_folds.forwards]  the tangents of all states
    pub(super) fn forwards<T: Algebra>(
        &self,
        alg: &mut T,
        s: &States<T::Array>,
        (start, along): (T::Array, Vec<T::Array>),
    ) -> T::Array {
        let before = self.moved(alg, &s.states, &self.state, |_, i| i);
        let given: Vec<T::Array> =
            std::iter::once(before).chain(s.arrays.iter().cloned()).chain(along).collect();
        alg.scanl(&self.forwards, &start, &given)
    }

    /// The first `k` rows, the last of them first.
    fn turned<T: Algebra>(&self, alg: &mut T, t: &T::Array, row: &Ty) -> T::Array {
        self.moved(alg, t, row, |k, i| {
            let last = Term::size(&k.minus(&Size::constant(1)));
            made(Exp::Op(Prim::Op(Op::Sub, last.ty().scalar), vec![last, i]))
        })
    }

    /// `k` rows of an array, each from the place that a function says.
    fn moved<T: Algebra>(
        &self,
        alg: &mut T,
        t: &T::Array,
        row: &Ty,
        from: impl FnOnce(&Size, Term) -> Term,
    ) -> T::Array {
        let i = Names::default().index("i");
        let index = vec![from(&self.size, Term::var(&i))];
        let f = Closure { fun: IndexFn { params: vec![i], index }, env: Env::new() };
        alg.gather(&[std::slice::from_ref(&self.size), &row.shape].concat(), t, &f)
    }
}

/// `\b [c, a, xs ..]. c + f'_a a xs b`
fn step(names: &mut Names, f: &Fold, next: &Var, of_state: &Term) -> Fold {
    let c = names.again(next);
    let body = made(Exp::Op(Prim::Op(Op::Add, c.ty().scalar), vec![Term::var(&c), of_state.clone()]));
    let params = [&[next.clone(), c], f.params.as_slice()].concat();
    copied_fold(names, &Fold { size: f.size.clone(), params, body })
}

/// `build1 k (\i. t)` in bulk operations, where the variables are elements of inputs.
fn for_all(names: &mut Names, f: &Fold, next: &Var, t: &Term) -> Program {
    let i = names.index("i");
    let inner: Vec<Var> = f.params.iter().chain([next]).cloned().collect();
    let many = |x: &Var| Ty::new([std::slice::from_ref(&f.size), &x.ty().shape].concat(), x.ty().scalar);
    let inputs: Vec<Var> = inner.iter().map(|x| names.fresh(x.name(), many(x))).collect();
    let at = |x: &Var| made(Exp::Index(Term::var(x), vec![Term::var(&i)]));
    let map: BTreeMap<u32, Term> = inner.iter().map(Var::id).zip(inputs.iter().map(at)).collect();
    let body = substitute_all(names, t, &map);
    let body = made(Exp::Build1(f.size.clone(), i, body));
    let program = Program { sizes: Vec::new(), inputs, body, names: names.clone() };
    let program = transform(&program, Rules::Guarded).0;
    *names = program.names.clone();
    program
}

/// `\d [a, xs .., dxs ..]. f' a xs d dxs`
fn forwards(params: &[Var], f: &Fold, names: &mut Names, zeros: Zeros) -> Result<Fold, Mismatch> {
    let mut terms = Terms::new(names.clone());
    let along: Vec<Var> = params.iter().map(|x| terms.names.again(x)).collect();
    let mut duals = Duals::new(&mut terms, zeros);
    let inputs = duals.inputs(params.iter().map(|x| (x, Term::var(x))));
    let mut env = params.iter().map(Var::id).zip(inputs).collect();
    let delta = interpret(&mut duals, &mut env, &f.body).delta();
    duals.finish()?;
    let tangents: Vec<Term> = along.iter().map(Term::var).collect();
    let tangent = Forward::new(&mut terms, &tangents).eval(&delta);
    let (body, all) = terms.finish(&tangent).map_err(|why| Mismatch(why.0))?;
    *names = all;
    let floats = along[1..].iter().filter(|x| x.ty().is_float());
    let params = along[..1].iter().chain(params).chain(floats).cloned().collect();
    Ok(Fold { size: f.size.clone(), params, body })
}
