//! Reverse AD of scalar functions: a primal lambda that leaves temporaries, and a dual lambda that takes them.
//!
//! Source: MSc thesis, 3.4.1 and 3.5; 2.5, 2.11 and 2.12 of our notes, errata E3 and E4 corrected.
//!
//! Judgement: of `f : t -> t'`
//! ```text
//! P(f) : t -> (t', tmp)                 the result, and the temporaries
//! D(f) : (t', tmp) -> (t, info)         of the adjoint of the result and the temporaries: the adjoint of the argument, and of each array read in `f` (adjoint, index, was it read)
//! ```
//!
//! Notation: `n` the label of the node · `t_n` its value · `j_n`, and `@` in a row, its adjoint: the sum of its contributions · `exec_n` whether an array was read there · `m -> e` a contribution to node `m` · `s_1`, `s_2` what the branches store
//!
//! Primal phase, of node `n` after its arguments:
//! ```text
//! const, shape           let t_n = the same
//! var x                  t_n is the value that x is bound to
//! tuple, proj, prim      let t_n = the same of the values of the arguments
//! index a m              let t_n = a ! t_m        let exec_n = true
//! let x = m in body      that of m, then that of body with x as m
//! cond c m1 m2           let all = cond t_c (let .. in (t_m1, s_1, zeros)) (let .. in (t_m2, zeros, s_2))      let t_n = all.0      and those of s_1 and s_2 again
//! ```
//!
//! Dual phase, of node `n` before its arguments:
//! ```text
//! const, shape           nothing
//! var x                  let j_n = @                                        what x is bound to -> j_n
//! tuple m_1 ..           let j_n = @                                        m_k -> j_n.k
//! proj m k               let j_n = @                                        m -> (0, .., j_n, .., 0)
//! prim op m_1 ..         let j_n = @                                        m_k -> j_n * the partial derivative by argument k
//! index a m              let j_n = @, which is stored                       nothing: an index is discrete
//! let x = m in body      that of body, then that of m
//! cond c m1 m2           let j_n = @      m1 -> j_n, m2 -> j_n              let all = cond t_c (let .. in (s_1, zeros)) (let .. in (zeros, s_2))
//! ```
//!
//! Differences from the paper:
//! 1. Nodes of a discrete type, and those without contributions, are not visited: arrays that are read below them are not in `info`.
//! 2. [`Temporaries::Needed`] keeps those temporaries that the dual lambda reads; [`Temporaries::All`] is the text.
//! 3. A variable has no temporary of its own, where the text copies it. An adjoint that is a tuple with zeros is bound by its other components.
//! 4. A product with a partial derivative stops at a zero adjoint where the table says so, as in all algorithms of this crate.
//!
//! `primal` and `dual` are longer than other functions: an arm for each row.

use super::label::{Key, Label, label_exp};
use super::language::{AVar, EVar, Exp, ExpForm, Fun, Names, Ty, made};
use super::zeros::{is_zero, sum, zero_value};
use pullback_prim::{Op, Partial, Prim, Product, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Which values of the primal lambda are temporaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temporaries {
    /// The values of all nodes: the text.
    All,
    /// Those that the dual lambda reads.
    Needed,
}

/// A function in two: see the module.
#[derive(Clone, Debug)]
pub struct Split {
    /// `P(f)`
    pub primal: Fun,
    /// `D(f)`
    pub dual: Fun,
    /// The arrays that are read, one for each entry of `info`.
    pub reads: Vec<AVar>,
    /// How many operations `f` has.
    pub operations: usize,
}

impl Split {
    /// `P(f)` and `D(f)`. Zeros stop at partial derivatives unless `ieee`. Cost: the size of the function, times the depth of its conditionals.
    pub fn new(names: &mut Names, f: &Fun, temporaries: Temporaries, ieee: bool) -> Split {
        let body = label_exp(&f.body, &mut 0);
        let mut pass =
            Pass { names, ieee, values: BTreeMap::new(), read: BTreeMap::new(), reads: Vec::new() };
        let mut env = BTreeMap::from([(f.param.clone(), Key::Argument)]);
        let (mut forwards, mut stored) = (Vec::new(), vec![f.param.clone()]);
        pass.primal(&body, &mut env.clone(), &mut forwards, &mut stored);
        let operations = forwards.len();
        let result = pass.value(&body);

        let adjoint = pass.names.fresh("adjoint", f.body.ty().clone());
        let mut map = Map::from([(Key::Node(*body.label()), vec![Exp::var(&adjoint)])]);
        let (mut backwards, mut kept) = (Vec::new(), Vec::new());
        pass.dual(&body, &mut env, &mut map, &mut backwards, &mut kept);
        let of_argument = sum(f.param.ty(), &map.remove(&Key::Argument).unwrap_or_default());
        let info = pass
            .reads
            .iter()
            .map(|r| Exp::tuple(vec![r.adjoint.clone(), r.index.clone(), Exp::var(&r.exec)]));
        let out = Exp::tuple(vec![of_argument, Exp::tuple(info.collect())]);

        if temporaries == Temporaries::Needed {
            let mut needed = BTreeSet::new();
            backwards.iter().for_each(|(_, e)| free(e, &mut needed));
            free(&out, &mut needed);
            stored.retain(|x: &EVar| needed.contains(&x.id()));
        }
        let reads = pass.reads.iter().map(|r| r.array.clone()).collect();
        let tmp = Exp::tuple(stored.iter().map(Exp::var).collect());
        let given = names.fresh("given", Ty::Tuple(vec![f.body.ty().clone(), tmp.ty().clone()]));
        let taken = Exp::var(&given);
        let restored = stored.iter().enumerate().map(|(k, x)| (x.clone(), taken.proj(1).proj(k)));
        let mut bindings: Vec<(EVar, Exp)> = vec![(adjoint, taken.proj(0))];
        bindings.extend(restored);
        bindings.extend(backwards);
        let dual = Fun { param: given, body: made(Exp::lets(bindings, out)) };
        let body = made(Exp::lets(forwards, Exp::tuple(vec![result, tmp])));
        Split { primal: Fun { param: f.param.clone(), body }, dual, reads, operations }
    }
}

/// The free variables, and those that are bound inside.
fn free(e: &Exp, out: &mut BTreeSet<u32>) {
    match e.form() {
        ExpForm::Const(_) | ExpForm::Shape(_) => {}
        ExpForm::Var(x) => {
            out.insert(x.id());
        }
        ExpForm::Let(bindings, e) => {
            bindings.iter().for_each(|(_, u)| free(u, out));
            free(e, out);
        }
        ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| free(e, out)),
        ExpForm::Proj(e, _) | ExpForm::Index(_, e) => free(e, out),
        ExpForm::Cond(c, t, e) => [c, t, e].into_iter().for_each(|e| free(e, out)),
    }
}

type Lets = Vec<(EVar, Exp)>;
type Env = BTreeMap<EVar, Key>;
type Map = BTreeMap<Key, Vec<Exp>>;

/// An array that is read.
struct Read {
    array: AVar,
    adjoint: Exp,
    index: Exp,
    exec: EVar,
}

struct Pass<'n> {
    names: &'n mut Names,
    ieee: bool,
    /// `t_n`
    values: BTreeMap<Label, EVar>,
    /// `exec_n`
    read: BTreeMap<Label, EVar>,
    reads: Vec<Read>,
}

impl Pass<'_> {
    fn value(&self, e: &Exp<Label>) -> Exp {
        match e.form() {
            ExpForm::Const(c) => Exp::constant(*c),
            _ => Exp::var(&self.values[e.label()]),
        }
    }

    fn bind(&mut self, name: &str, e: Exp, lets: &mut Lets) -> EVar {
        let x = self.names.fresh(name, e.ty().clone());
        lets.push((x.clone(), e));
        x
    }

    /// Binds an adjoint; of a tuple that is written out, each component that is not zero.
    fn bind_adjoint(&mut self, e: Exp, lets: &mut Lets, bound: &mut Vec<EVar>) -> Exp {
        match e.form() {
            _ if is_zero(&e) => zero_value(e.ty()),
            ExpForm::Tuple(es) => {
                Exp::tuple(es.iter().map(|e| self.bind_adjoint(e.clone(), lets, bound)).collect())
            }
            _ => {
                let j = self.bind("j", e, lets);
                bound.push(j.clone());
                Exp::var(&j)
            }
        }
    }

    fn primal(&mut self, e: &Exp<Label>, env: &mut Env, lets: &mut Lets, stored: &mut Vec<EVar>) {
        let value = match e.form() {
            // [accelerate.exp_primal.const]
            ExpForm::Const(c) => Exp::constant(*c),
            // [accelerate.exp_primal.var]
            ExpForm::Var(x) => {
                let bound = match env.get(x) {
                    Some(Key::Node(m)) => self.values.get(m).cloned(),
                    Some(Key::Argument | Key::State(_) | Key::Counter(_)) | None => Some(x.clone()),
                };
                self.values.extend(bound.map(|t| (*e.label(), t)));
                return;
            }
            // [accelerate.exp_primal.let]
            ExpForm::Let(bindings, body) => {
                for (x, u) in bindings {
                    self.primal(u, env, lets, stored);
                    env.insert(x.clone(), Key::Node(*u.label()));
                }
                return self.primal(body, env, lets, stored);
            }
            // [accelerate.exp_primal.tuple]
            ExpForm::Tuple(es) => {
                es.iter().for_each(|e| self.primal(e, env, lets, stored));
                Exp::tuple(es.iter().map(|e| self.value(e)).collect())
            }
            // [accelerate.exp_primal.proj]
            ExpForm::Proj(m, k) => {
                self.primal(m, env, lets, stored);
                self.value(m).proj(*k)
            }
            // [accelerate.exp_primal.prim]
            ExpForm::Prim(op, es) => {
                es.iter().for_each(|e| self.primal(e, env, lets, stored));
                made(Exp::prim(*op, es.iter().map(|e| self.value(e)).collect()))
            }
            // [accelerate.exp_primal.index]
            ExpForm::Index(a, m) => {
                self.primal(m, env, lets, stored);
                let value = made(Exp::index(a, self.value(m)));
                let exec = self.bind("exec", Exp::bool(true), lets);
                self.read.insert(*e.label(), exec.clone());
                stored.push(exec);
                value
            }
            // [accelerate.exp_primal.shape]
            ExpForm::Shape(a) => made(Exp::shape(a)),
            // [accelerate.exp_primal.cond]
            ExpForm::Cond(c, m1, m2) => {
                self.primal(c, env, lets, stored);
                let mut branch = |m: &Exp<Label>| {
                    let (mut inner, mut s) = (Lets::new(), Vec::new());
                    self.primal(m, env, &mut inner, &mut s);
                    (inner, self.value(m), s)
                };
                let ((b1, v1, s1), (b2, v2, s2)) = (branch(m1), branch(m2));
                let then = made(Exp::lets(b1, Exp::tuple(vec![v1, here(&s1), absent(&s2)])));
                let other = made(Exp::lets(b2, Exp::tuple(vec![v2, absent(&s1), here(&s2)])));
                let all = made(Exp::cond(self.value(c), then, other));
                let all = Exp::var(&self.bind("all", all, lets));
                restore(lets, &s1, &all.proj(1));
                restore(lets, &s2, &all.proj(2));
                stored.extend(s1.into_iter().chain(s2));
                all.proj(0)
            }
        };
        let t = self.bind("t", value, lets);
        self.values.insert(*e.label(), t.clone());
        stored.push(t);
    }

    fn dual(
        &mut self,
        e: &Exp<Label>,
        env: &mut Env,
        map: &mut Map,
        lets: &mut Lets,
        stored: &mut Vec<EVar>,
    ) {
        // [accelerate.exp_dual.let]
        if let ExpForm::Let(bindings, body) = e.form() {
            for (x, u) in bindings {
                env.insert(x.clone(), Key::Node(*u.label()));
            }
            self.dual(body, env, map, lets, stored);
            return bindings.iter().rev().for_each(|(_, u)| self.dual(u, env, map, lets, stored));
        }
        let contributed = map.remove(&Key::Node(*e.label())).unwrap_or_default();
        let adjoint = sum(e.ty(), &contributed);
        // [accelerate.exp_dual.const]
        if is_zero(&adjoint) || matches!(e.form(), ExpForm::Const(_) | ExpForm::Shape(_)) {
            return;
        }
        let mut bound = Vec::new();
        let at = self.bind_adjoint(adjoint, lets, &mut bound);
        let mut give = |to: Key, e: Exp| map.entry(to).or_default().push(e);
        match e.form() {
            ExpForm::Const(_) | ExpForm::Shape(_) | ExpForm::Let(..) => {}
            // [accelerate.exp_dual.var]
            ExpForm::Var(x) => {
                if let Some(key) = env.get(x) {
                    give(*key, at);
                }
                stored.extend(bound);
            }
            // [accelerate.exp_dual.tuple]
            ExpForm::Tuple(ms) => {
                ms.iter().enumerate().for_each(|(k, m)| give(Key::Node(*m.label()), at.proj(k)));
                ms.iter().for_each(|m| self.dual(m, env, map, lets, stored));
            }
            // [accelerate.exp_dual.proj]
            ExpForm::Proj(m, k) => {
                let Ty::Tuple(ts) = m.ty() else { unreachable!("a component of a tuple") };
                let part = |(i, t): (usize, &Ty)| if i == *k { at.clone() } else { zero_value(t) };
                give(Key::Node(*m.label()), Exp::tuple(ts.iter().enumerate().map(part).collect()));
                self.dual(m, env, map, lets, stored);
            }
            // [accelerate.exp_dual.prim]
            ExpForm::Prim(op, ms) => {
                let args: Vec<Exp> = ms.iter().map(|m| self.value(m)).collect();
                let result = self.value(e);
                for (m, c) in ms.iter().zip(products(*op, &args, &result, &at, self.ieee)) {
                    if let (Some(c), false) = (c, matches!(m.form(), ExpForm::Const(_))) {
                        give(Key::Node(*m.label()), c);
                    }
                }
                ms.iter().for_each(|m| self.dual(m, env, map, lets, stored));
            }
            // [accelerate.exp_dual.index]
            ExpForm::Index(a, m) => {
                let (index, exec) = (self.value(m), self.read[e.label()].clone());
                self.reads.push(Read { array: a.clone(), adjoint: at, index, exec });
                stored.extend(bound);
            }
            // [accelerate.exp_dual.cond]
            ExpForm::Cond(c, m1, m2) => {
                give(Key::Node(*m1.label()), at.clone());
                give(Key::Node(*m2.label()), at);
                let mut branch = |m: &Exp<Label>, map: &mut Map| {
                    let (mut inner, mut s) = (Lets::new(), Vec::new());
                    self.dual(m, env, map, &mut inner, &mut s);
                    // The adjoints of a branch are read outside of it.
                    (inner, s)
                };
                let (b1, s1) = branch(m1, map);
                let (b2, s2) = branch(m2, map);
                let then = made(Exp::lets(b1, Exp::tuple(vec![here(&s1), absent(&s2)])));
                let other = made(Exp::lets(b2, Exp::tuple(vec![absent(&s1), here(&s2)])));
                let all = made(Exp::cond(self.value(c), then, other));
                let all = Exp::var(&self.bind("all", all, lets));
                restore(lets, &s1, &all.proj(0));
                restore(lets, &s2, &all.proj(1));
                stored.extend(s1.into_iter().chain(s2));
            }
        }
    }
}

/// The variables as a tuple.
fn here(s: &[EVar]) -> Exp {
    Exp::tuple(s.iter().map(Exp::var).collect())
}

/// Zeros for the variables of the branch that is not taken.
fn absent(s: &[EVar]) -> Exp {
    Exp::tuple(s.iter().map(|x| zero_value(x.ty())).collect())
}

/// The variables again, after the conditional.
fn restore(lets: &mut Lets, s: &[EVar], from: &Exp) {
    lets.extend(s.iter().enumerate().map(|(k, x)| (x.clone(), from.proj(k))));
}

/// The products of an adjoint and the partial derivatives by each argument; `None` where the result does not vary with it.
fn products(op: Prim, args: &[Exp], result: &Exp, at: &Exp, ieee: bool) -> Vec<Option<Exp>> {
    let params = op.params();
    let known: Vec<_> = args
        .iter()
        .map(|e| match e.form() {
            ExpForm::Const(c) => Some(*c),
            _ => None,
        })
        .collect();
    let of = |(k, partial): (usize, &'static Partial)| {
        if !params[k].is_float() || *partial == Partial::Const(0.0) {
            return None;
        }
        let product = if ieee { Product::Plain } else { op.product(k, &known) };
        let scalar = op.result();
        let product = scaled((scalar, product), partial, args, result, at);
        Some(if params[k] == scalar { product } else { convert(product, params[k]) })
    };
    match op.partials() {
        Some(partials) => partials.iter().enumerate().map(of).collect(),
        None => vec![None; args.len()],
    }
}

fn convert(e: Exp, to: Scalar) -> Exp {
    let Ty::Scalar(from) = e.ty() else { unreachable!("a scalar") };
    made(Exp::prim(Prim::Convert(*from, to), vec![e]))
}

/// The product; where the partial derivative chooses, the choice is between products.
fn scaled((s, product): (Scalar, Product), partial: &Partial, args: &[Exp], result: &Exp, at: &Exp) -> Exp {
    let prim = |op, es| made(Exp::prim(Prim::Op(op, s), es));
    match partial {
        Partial::Const(0.0) => Exp::constant(s.zero()),
        Partial::Const(1.0) => at.clone(),
        Partial::Const(-1.0) => prim(Op::Neg, vec![at.clone()]),
        Partial::Op(Op::Select, [c, p, q]) => {
            let [p, q] = [p, q].map(|p| scaled((s, product), p, args, result, at));
            prim(Op::Select, vec![partial_value(s, c, args, result), p, q])
        }
        Partial::Arg(_) | Partial::Result | Partial::Const(_) | Partial::Op(..) => {
            let d = partial_value(s, partial, args, result);
            match product {
                Product::Plain => prim(Op::Mul, vec![d, at.clone()]),
                Product::Strong => prim(Op::StrongMul, vec![at.clone(), d]),
                Product::Mutual => prim(Op::MutualMul, vec![at.clone(), d]),
            }
        }
    }
}

fn partial_value(s: Scalar, partial: &Partial, args: &[Exp], result: &Exp) -> Exp {
    match partial {
        Partial::Arg(i) => args[usize::from(*i)].clone(),
        Partial::Result => result.clone(),
        Partial::Const(c) => Exp::constant(s.from_f64(*c)),
        Partial::Op(op, parts) => {
            let parts = parts.iter().map(|p| partial_value(s, p, args, result)).collect();
            made(Exp::prim(Prim::Op(*op, s), parts))
        }
    }
}
