//! Operators of reduce, scan and histogram: what they are, taking them apart, and applying them.
//!
//! Source: Schenck et al., SC 2022, section IV (special operators); Schenck et al., IFL 2023, sections 3.2 and 5.3
//! (vectorised operators). Assumes checked lambdas of two groups of parameters, in which minimum and maximum of floats choose
//! (`pullback_core::choose`). Guarantees: an operator is called an
//! addition, a choice or vectorised only if it is exactly that; everything else is left to the general rules.

use pullback_base::index::{IdMap, IdSet};
use pullback_core::prune::prune_body;
use pullback_core::rename::{Subst, copy_applied, copy_body, copy_lam};
use pullback_core::traverse::{for_each_stm, free_vars_exp};
use pullback_core::{Atom, Body, Builder, Exp, Lam, Program, Soac, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

/// A reduction or a scan.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) width: Atom,
    pub(crate) lam: Lam,
    pub(crate) neutral: Vec<Atom>,
    pub(crate) arrays: Vec<Atom>,
    /// `None` of a scan; of a reduction, whether its operator is declared commutative.
    pub(crate) commutative: Option<bool>,
}

impl Fold {
    pub(crate) fn new(
        width: Atom,
        lam: &Lam,
        neutral: &[Atom],
        arrays: &[Atom],
        commutative: Option<bool>,
    ) -> Fold {
        Fold { width, lam: lam.clone(), neutral: neutral.to_vec(), arrays: arrays.to_vec(), commutative }
    }
    pub(crate) fn exp(&self) -> Exp {
        let Fold { width, lam, neutral, arrays, commutative } = self.clone();
        Exp::Soac(match commutative {
            Some(commutative) => Soac::Reduce { width, lam, neutral, arrays, commutative },
            None => Soac::Scan { width, lam, neutral, arrays },
        })
    }
    /// The number of components.
    pub(crate) fn count(&self) -> usize {
        self.neutral.len()
    }
    pub(crate) fn left(&self, k: usize) -> Var {
        self.lam.params[k]
    }

    /// Components in groups such that no component depends on one of another group: each group is an operator.
    pub(crate) fn groups(&self) -> Vec<Vec<usize>> {
        let count = self.count();
        let mut sources: IdMap<Var, IdSet<Var>> = IdMap::new();
        let of = |sources: &IdMap<Var, IdSet<Var>>, v: Var| -> Vec<Var> {
            let known = sources.get(&v).map(|set| set.iter().copied().collect());
            known.unwrap_or_else(|| if self.lam.params.contains(&v) { vec![v] } else { Vec::new() })
        };
        for stm in &self.lam.body.stms {
            if matches!(stm.exp, Exp::Assert(..) | Exp::Check(..) | Exp::AccAdd(..) | Exp::AccView(..)) {
                return vec![(0..count).collect()];
            }
            let from: IdSet<Var> = free_vars_exp(&stm.exp).iter().flat_map(|&v| of(&sources, v)).collect();
            for &v in &stm.pat {
                sources.insert(v, from.clone());
            }
        }
        // `group[k]`: the smallest component known to belong together with `k`.
        let mut group: Vec<usize> = (0..count).collect();
        for (k, r) in self.lam.body.result.iter().enumerate() {
            for p in r.var().map(|v| of(&sources, v)).unwrap_or_default() {
                let Some(at) = self.lam.params.iter().position(|&q| q == p) else { continue };
                let (a, b) = (group[k], group[at % count]);
                for g in &mut group {
                    *g = if *g == a.max(b) { a.min(b) } else { *g };
                }
            }
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (k, &leader) in group.iter().enumerate() {
            match groups.iter_mut().find(|g| group[g[0]] == leader) {
                Some(g) => g.push(k),
                None => groups.push(vec![k]),
            }
        }
        groups
    }

    /// The operation on these components only (a union of groups); its operator is a copy.
    pub(crate) fn part(&self, program: &mut Program, components: &[usize]) -> Fold {
        let copy = copy_lam(program, &self.lam, &Subst::new());
        let count = self.count();
        let params = components.iter().chain(components).enumerate();
        let params = params.map(|(at, &k)| copy.params[if at < components.len() { k } else { count + k }]);
        let params = params.collect();
        let result = components.iter().map(|&k| copy.body.result[k]).collect();
        let mut body = Body { result, ..copy.body };
        prune_body(program, &mut body);
        Fold {
            width: self.width,
            lam: Lam { params, body },
            neutral: components.iter().map(|&k| self.neutral[k]).collect(),
            arrays: components.iter().map(|&k| self.arrays[k]).collect(),
            commutative: self.commutative,
        }
    }

    /// If the operator returns, of the given components, either all from the left or all from the right: the operator
    /// that also carries along an index, that of the chosen side.
    pub(crate) fn choosing(&self, b: &mut Builder<'_>, components: &[usize]) -> Option<Choice> {
        let lam = copy_lam(b.program, &self.lam, &Subst::new());
        let count = self.count();
        let wanted: Vec<Wanted> =
            components.iter().map(|&k| (lam.body.result[k], lam.params[k], lam.params[count + k])).collect();
        let mut body = lam.body.clone();
        let (i, j) = (b.fresh(Type::I64, "i"), b.fresh(Type::I64, "i"));
        let by_index = self.commutative.is_some() && extremum(&body, &wanted).is_some();
        let chosen = if by_index {
            let (r, left, right) = wanted[0];
            emitted(b, &mut body, |b| {
                let mut attained = |x: Var, i: Var| {
                    let here = b.op2(Op::Eq, x.into(), r);
                    b.select(here, i.into(), Atom::i64(NOBODY))
                };
                let (i, j) = (attained(left, i), attained(right, j));
                b.op2(Op::Min, i, j)
            })
        } else {
            let from_left = side(b, &mut body, &wanted)?;
            emitted(b, &mut body, |b| b.select(from_left, i.into(), j.into()))
        };
        body.result.push(chosen);
        let mut params = lam.params;
        params.insert(count, i);
        params.push(j);
        Some(Choice { lam: Lam { params, body }, by_index })
    }

    /// If the operator combines arrays element by element: the same operation on each column.
    pub(crate) fn by_columns(&self) -> Option<Columns<'_>> {
        let body = &self.lam.body;
        let first = body.result.first()?.var()?;
        let (last, before) = body.stms.split_last()?;
        let Exp::Soac(Soac::Map { lam, arrays, .. }) = &last.exp else { return None };
        let of_map = |r: &Atom| r.var().is_some_and(|v| last.pat.contains(&v));
        if !last.pat.contains(&first) || !body.result.iter().all(of_map) {
            return None;
        }
        let is_param = |v: &Var| self.lam.params.contains(v);
        // What stands before the map may look at sizes of the arguments only: it is the same for all columns.
        let varying: IdSet<Var> = self.lam.params.iter().copied().collect();
        for stm in before {
            let sizes_only = matches!(&stm.exp, Exp::Size(Atom::Var(v), _) if is_param(v));
            if !sizes_only && free_vars_exp(&stm.exp).iter().any(|v| varying.contains(v)) {
                return None;
            }
        }
        let own = |a: &Atom| a.var().is_some_and(|v| is_param(&v) || !varying.contains(&v));
        let inner = pullback_core::traverse::free_vars_lam(lam);
        let fits = arrays.iter().all(own) && !inner.iter().any(|v| varying.contains(v));
        fits.then_some(Columns { fold: self, before, map: lam, pat: &last.pat, operands: arrays })
    }
}

/// An operator that chooses one of its arguments and carries its index along.
pub(crate) struct Choice {
    pub(crate) lam: Lam,
    /// Of a minimum or maximum: at ties the smaller index is taken, wherever it stands, so that elements may be taken in any
    /// order if the operator allowed that before. The index is [`NOBODY`] if all numbers are NaN, the neutral one too.
    pub(crate) by_index: bool,
}

/// The index where no number is equal to the result.
pub(crate) const NOBODY: i64 = i64::MAX;

/// The operation, if there is one component and it is the minimum or maximum of the two floats in this order.
pub(crate) fn extremum(body: &Body, wanted: &[Wanted]) -> Option<Op> {
    let [(result, l, r)] = wanted else { return None };
    body.stms.iter().find_map(|stm| match &stm.exp {
        Exp::Prim(Prim::Op(op @ (Op::MinFirst | Op::MaxFirst), _), args)
            if stm.pat.iter().any(|&v| *result == v.into()) =>
        {
            (args[..] == [(*l).into(), (*r).into()]).then_some(*op)
        }
        _ => None,
    })
}

/// A component of the result, and the component of the left and of the right argument.
pub(crate) type Wanted = (Atom, Var, Var);

/// Emits into the body whether its results are the left components; nothing if that cannot be said.
fn side(b: &mut Builder<'_>, body: &mut Body, wanted: &[Wanted]) -> Option<Atom> {
    if wanted.iter().all(|&(r, l, _)| r == l.into()) {
        return Some(Atom::bool(true));
    }
    if wanted.iter().all(|&(r, _, right)| r == right.into()) {
        return Some(Atom::bool(false));
    }
    let first = wanted.first()?.0.var()?;
    let at = body.stms.iter().position(|s| s.pat.contains(&first))?;
    let inner = |stm: &Stm, branch: &Body| -> Option<Vec<Wanted>> {
        let result = |&(r, l, right): &Wanted| {
            let k = stm.pat.iter().position(|&v| r == v.into())?;
            Some((*branch.result.get(k)?, l, right))
        };
        wanted.iter().map(result).collect()
    };
    match &body.stms[at].exp {
        Exp::Atom(a) if wanted.len() == 1 => {
            let (_, l, r) = wanted[0];
            let a = *a;
            side(b, body, &[(a, l, r)])
        }
        Exp::If(_, x, y) => {
            let (x_wanted, y_wanted) = (inner(&body.stms[at], x)?, inner(&body.stms[at], y)?);
            let mut stm = body.stms[at].clone();
            let Exp::If(_, x, y) = &mut stm.exp else { return None };
            let (from_x, from_y) = (side(b, x, &x_wanted)?, side(b, y, &y_wanted)?);
            x.result.push(from_x);
            y.result.push(from_y);
            let from_left = b.fresh(Type::BOOL, "left");
            stm.pat.push(from_left);
            body.stms[at] = stm;
            Some(from_left.into())
        }
        Exp::Prim(Prim::Op(Op::Select, _), args) => {
            let condition = args[0];
            let mut arms = [Vec::new(), Vec::new()];
            for &(r, l, right) in wanted {
                let stm = body.stms.iter().find(|s| s.pat.len() == 1 && r == s.pat[0].into())?;
                let Exp::Prim(Prim::Op(Op::Select, _), args) = &stm.exp else { return None };
                if args[0] != condition {
                    return None;
                }
                arms[0].push((args[1], l, right));
                arms[1].push((args[2], l, right));
            }
            let (x, y) = (side(b, body, &arms[0])?, side(b, body, &arms[1])?);
            Some(emitted(b, body, |b| b.select(condition, x, y)))
        }
        Exp::Prim(Prim::Op(Op::MinFirst | Op::MaxFirst, _), _) => {
            let op = extremum(body, wanted)?;
            let (_, l, r) = wanted[0];
            // As the derivative in the table of primitives: at ties the first one, and any number against NaN.
            let (l, r) = (l.into(), r.into());
            Some(emitted(b, body, |b| {
                let wins = if op == Op::MinFirst { b.op2(Op::Le, l, r) } else { b.op2(Op::Le, r, l) };
                let other_is_nan = b.op1(Op::IsNan, r);
                b.op2(Op::Or, wins, other_is_nan)
            }))
        }
        _ => None,
    }
}

/// Emits at the end of the body.
fn emitted(b: &mut Builder<'_>, body: &mut Body, f: impl FnOnce(&mut Builder<'_>) -> Atom) -> Atom {
    b.open();
    let out = f(b);
    body.stms.extend(b.close(Vec::new()).stms);
    out
}

/// An operator on arrays that is a map of an operator on their elements.
pub(crate) struct Columns<'a> {
    fold: &'a Fold,
    /// Statements that are the same for all columns.
    before: &'a [Stm],
    map: &'a Lam,
    pat: &'a [Var],
    operands: &'a [Atom],
}

impl Columns<'_> {
    /// Emits `map (fold op) (transpose as)`, of a scan transposed back; returns the results.
    pub(crate) fn interchanged(&self, b: &mut Builder<'_>) -> Vec<Atom> {
        let Fold { width, lam, neutral, arrays, commutative } = self.fold;
        let count = neutral.len();
        let columns = b.size(neutral[0], 0);
        let turn = Exp::Rearrange;
        // A matrix without rows may have forgotten how many columns it has.
        let turned = arrays.iter().map(|&array| {
            let whole = b.emit(Exp::Reshape { shape: vec![*width, columns], from: 2, array }, "rows");
            b.emit(turn(vec![1, 0], whole), "columns")
        });
        let turned: Vec<Atom> = turned.collect();
        let mut subst = Subst::new();
        for (k, &p) in lam.params.iter().enumerate() {
            subst.insert(p, neutral[k % count]);
        }
        for stm in pullback_core::rename::copy_stms(b.program, self.before, &mut subst) {
            b.emit_stm(stm);
        }
        let side_of = |a: &Atom| a.var().and_then(|v| lam.params.iter().position(|&p| p == v));
        let others: Vec<Atom> = self.operands.iter().filter(|a| side_of(a).is_none()).copied().collect();
        let others: Vec<Atom> =
            others.into_iter().map(|a| pullback_core::rename::substitute_atom(a, &subst)).collect();
        let inputs: Vec<Atom> = neutral.iter().chain(&turned).chain(&others).copied().collect();
        let out = b.map(columns, &inputs, |b, params| {
            let (starts, rest) = params.split_at(count);
            let (column, extra) = rest.split_at(count);
            let types: Vec<Type> = starts.iter().chain(starts).map(|&v| b.ty(v.into())).collect();
            let inner = b.lam(&types, "x", |b, xs| {
                let mut subst = subst.clone();
                let mut extra = extra.iter();
                for (&p, a) in self.map.params.iter().zip(self.operands) {
                    let value = match side_of(a) {
                        Some(k) => Some(xs[k]),
                        None => extra.next().copied(),
                    };
                    subst.extend(value.map(|v| (p, Atom::Var(v))));
                }
                let body = copy_body(b.program, &self.map.body, &subst);
                for stm in body.stms {
                    b.emit_stm(stm);
                }
                let at = |r: &Atom| self.pat.iter().position(|&v| *r == v.into()).unwrap_or(0);
                lam.body.result.iter().map(|r| body.result[at(r)]).collect()
            });
            let inner = Fold {
                width: *width,
                lam: inner,
                neutral: starts.iter().map(|&v| v.into()).collect(),
                arrays: column.iter().map(|&v| v.into()).collect(),
                commutative: *commutative,
            };
            b.emit_all(inner.exp(), "y").into_iter().map(Atom::Var).collect()
        });
        let back = |y: Var, b: &mut Builder<'_>| match commutative {
            Some(_) => y.into(),
            None => b.emit(Exp::Rearrange(vec![1, 0], y.into()), "rows"),
        };
        out.into_iter().map(|y| back(y, b)).collect()
    }
}

/// What an operator does to a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Add,
    Mul,
    Min,
    Max,
    Other,
}

/// The kind of each component of an operator.
pub(crate) fn kinds(lam: &Lam) -> Vec<Kind> {
    let count = lam.params.len() / 2;
    let results = lam.body.result.iter().enumerate();
    let of = |k: usize| [lam.params[k], lam.params[count + k]];
    results.map(|(k, &r)| operation(&lam.body, r, of(k), Scalar::is_float)).collect()
}

/// The kind of a result of a body as an operation on the two variables, which are scalars of these types or arrays of them.
pub(crate) fn operation(body: &Body, result: Atom, [x, y]: [Var; 2], of: fn(Scalar) -> bool) -> Kind {
    let in_order = |args: &[Atom]| args == [x.into(), y.into()];
    let is_pair = |args: &[Atom]| in_order(args) || args == [y.into(), x.into()];
    let found = |stm: &&Stm| stm.pat.iter().any(|&v| result == v.into());
    let Some(stm) = body.stms.iter().find(found) else { return Kind::Other };
    match &stm.exp {
        Exp::Prim(Prim::Op(op, s), args) if is_pair(args) && of(*s) => match op {
            Op::Add => Kind::Add,
            Op::Mul => Kind::Mul,
            // Exchanged, the last of equal elements is the minimum: that is no rule of its own.
            Op::MinFirst if in_order(args) => Kind::Min,
            Op::MaxFirst if in_order(args) => Kind::Max,
            _ => Kind::Other,
        },
        Exp::Plus(a, b) if is_pair(&[*a, *b]) => Kind::Add,
        // An operator on arrays that adds elementwise is an addition.
        Exp::Soac(Soac::Map { lam, arrays, .. }) => {
            let at = stm.pat.iter().position(|&v| result == v.into());
            let result = at.and_then(|at| lam.body.result.get(at));
            let element = |v: Var| arrays.iter().position(|&a| a == v.into()).map(|at| lam.params[at]);
            match (result, element(x), element(y)) {
                (Some(&r), Some(x), Some(y)) if operation(&lam.body, r, [x, y], of) == Kind::Add => Kind::Add,
                _ => Kind::Other,
            }
        }
        _ => Kind::Other,
    }
}

/// The scalar type of a float component, if it is a scalar.
pub(crate) fn float_scalar(ty: &Type) -> Option<Scalar> {
    ty.scalar().filter(|s| s.is_float())
}

/// Whether a body is a line of primitives: then its forward part is itself.
pub(crate) fn is_straight(body: &Body) -> bool {
    let mut straight = true;
    for_each_stm(body, &mut |stm| straight &= matches!(stm.exp, Exp::Prim(..) | Exp::Atom(_)));
    straight
}

/// Emits a copy of the operator applied to arguments; returns its results.
pub(crate) fn applied(b: &mut Builder<'_>, lam: &Lam, args: &[Atom]) -> Vec<Atom> {
    let Body { stms, result } = copy_applied(b.program, lam, args, &Subst::new());
    for stm in stms {
        b.emit_stm(stm);
    }
    result
}
