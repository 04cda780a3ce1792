//! The type of a term, from the types of its subterms: the typing rules of lambda.
//!
//! Used by the builder (to record types) and by the checker (to verify them). Costs O(1) per node but for the size of
//! the types compared. Never panics: an ill-typed term is an error text.

use crate::term::{Derivative, Exp, LoopForm, Program, Seeds, SliceDim, Soac, Term};
use crate::types::{Type, TypeId, Variant};
use pullback_prim::{Prim, Scalar};
use std::sync::Arc;

/// What is wrong with an ill-typed term.
pub type TypeError = String;

type Typed = Result<Type, TypeError>;

impl Program {
    /// The alternatives of a sum type, looking through names.
    pub fn variants<'a>(&'a self, ty: &'a Type) -> Option<&'a [Variant]> {
        match ty {
            Type::Sum(vs) => Some(vs),
            Type::Named(id) => self.types.get(*id).map(|d| d.variants.as_slice()),
            Type::Scalar(_)
            | Type::Tuple(_)
            | Type::Array(_)
            | Type::Fun(..)
            | Type::Linear(..)
            | Type::SparseTuple(_)
            | Type::SparseSum(_)
            | Type::Bag(_)
            | Type::Evm(..)
            | Type::Staged(_)
            | Type::Map(_)
            | Type::Io(_)
            | Type::MutArray(_) => None,
        }
    }
    /// Whether values of the type hold floats, outside functions and computations.
    pub fn has_floats(&self, ty: &Type) -> bool {
        self.some_part(ty, &mut Vec::new(), &|t| t.scalar().is_some_and(Scalar::is_float))
    }
    /// Whether values of the type are data: no functions, computations, maps or mutable arrays inside.
    pub fn is_data(&self, ty: &Type) -> bool {
        !self.some_part(ty, &mut Vec::new(), &|t| {
            !matches!(
                t,
                Type::Scalar(_)
                    | Type::Tuple(_)
                    | Type::Sum(_)
                    | Type::Named(_)
                    | Type::Array(_)
                    | Type::SparseTuple(_)
                    | Type::SparseSum(_)
                    | Type::Bag(_)
            )
        })
    }
    /// Whether `found` holds of the type or of a part of it, looking through names but not into functions.
    fn some_part(&self, ty: &Type, seen: &mut Vec<TypeId>, found: &dyn Fn(&Type) -> bool) -> bool {
        if found(ty) {
            return true;
        }
        match ty {
            Type::Scalar(_)
            | Type::Fun(..)
            | Type::Linear(..)
            | Type::Evm(..)
            | Type::Staged(_)
            | Type::Map(_)
            | Type::Io(_)
            | Type::MutArray(_) => false,
            Type::Tuple(ts) | Type::SparseTuple(ts) | Type::SparseSum(ts) => {
                ts.iter().any(|t| self.some_part(t, seen, found))
            }
            Type::Array(t) | Type::Bag(t) => self.some_part(t, seen, found),
            Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).any(|t| self.some_part(t, seen, found)),
            Type::Named(id) => {
                if seen.contains(id) {
                    return false;
                }
                seen.push(*id);
                let Some(def) = self.types.get(*id) else { return false };
                def.variants.iter().flat_map(|v| &v.fields).any(|t| self.some_part(t, seen, found))
            }
        }
    }
    /// Whether the type has zero and addition: floats; the discrete types, trivially; products, arrays, bags, sparse
    /// values, staged calls; maps to such values; functions and computations with such results.
    pub fn is_additive(&self, ty: &Type) -> bool {
        match ty {
            Type::Scalar(_) | Type::SparseTuple(_) | Type::SparseSum(_) | Type::Staged(_) => true,
            Type::Tuple(ts) => ts.iter().all(|t| self.is_additive(t)),
            Type::Array(t) | Type::Bag(t) => self.is_additive(t),
            Type::Fun(_, b) | Type::Linear(_, b) | Type::Evm(_, b) | Type::Io(b) | Type::Map(b) => {
                self.is_additive(b)
            }
            Type::Sum(_) | Type::Named(_) | Type::MutArray(_) => false,
        }
    }
}

/// The sum `#none | #some fields`.
pub fn option_type(fields: Vec<Type>) -> Type {
    Type::sum([("none", vec![]), ("some", fields)])
}

fn expect(what: &str, expected: &Type, found: &Type) -> Result<(), TypeError> {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected type {expected}, found {found}")) }
}

fn i64s(what: &str, ts: &[Term]) -> Result<(), TypeError> {
    ts.iter().try_for_each(|t| expect(what, &Type::I64, t.ty()))
}

fn elem<'a>(what: &str, t: &'a Term) -> Result<&'a Type, TypeError> {
    t.ty().elem().ok_or_else(|| format!("{what}: expected an array, found type {}", t.ty()))
}

fn function<'a>(what: &str, t: &'a Term) -> Result<(&'a Type, &'a Type), TypeError> {
    match t.ty() {
        Type::Fun(a, b) => Ok((a, b)),
        other => Err(format!("{what}: expected a function, found type {other}")),
    }
}

fn types(ts: &[Term]) -> Vec<Type> {
    ts.iter().map(|t| t.ty().clone()).collect()
}

/// The type of `exp`; its subterms have been typed already.
pub fn type_of(p: &Program, exp: &Exp) -> Typed {
    match exp {
        Exp::Var(v) => Ok(p.vars.get(*v).ok_or("an unknown variable")?.ty.clone()),
        Exp::Const(c) => Ok(c.scalar().into()),
        Exp::Prim(prim, args) => prim_type(*prim, args),
        Exp::Sign(x) => {
            expect("sign", &Type::F64, x.ty())?;
            Ok(Type::sign())
        }
        Exp::Let(v, a, b) => {
            expect("let", &p.vars[*v].ty, a.ty())?;
            Ok(b.ty().clone())
        }
        Exp::Lam(v, b) => Ok(Type::fun(p.vars[*v].ty.clone(), b.ty().clone())),
        Exp::App(f, a) => {
            let (param, result) = function("application", f)?;
            expect("argument", param, a.ty())?;
            Ok(result.clone())
        }
        Exp::Call(f, args) => {
            let fun = p.funs.get(*f).ok_or("call of an unknown function")?;
            if fun.params.len() != args.len() {
                return Err(format!(
                    "call of {}: {} parameters, {} arguments",
                    fun.name,
                    fun.params.len(),
                    args.len()
                ));
            }
            for (v, a) in fun.params.iter().zip(args) {
                expect(&format!("argument of {}", fun.name), &p.vars[*v].ty, a.ty())?;
            }
            Ok(fun.result.clone())
        }
        Exp::Tuple(ts) | Exp::Par(ts) => Ok(Type::tuple(types(ts))),
        Exp::Proj(t, i) => {
            let items = t.ty().items().ok_or_else(|| format!("component of a value of type {}", t.ty()))?;
            items.get(*i).cloned().ok_or_else(|| format!("no component {i} in {}", t.ty()))
        }
        Exp::Inject(ty, k, fields) => {
            let v = p.variants(ty).and_then(|vs| vs.get(*k));
            let v = v.ok_or_else(|| format!("no alternative {k} in {ty}"))?;
            if v.fields.len() != fields.len() {
                return Err(format!("#{} has {} fields, not {}", v.name, v.fields.len(), fields.len()));
            }
            v.fields
                .iter()
                .zip(fields)
                .try_for_each(|(t, f)| expect(&format!("field of #{}", v.name), t, f.ty()))?;
            Ok(ty.clone())
        }
        Exp::Match(x, arms) => match_type(p, x, arms),
        Exp::If(c, a, b) => {
            expect("condition", &Type::BOOL, c.ty())?;
            expect("else branch", a.ty(), b.ty())?;
            Ok(a.ty().clone())
        }
        Exp::Loop(l) => {
            let state = &p.vars[l.state].ty;
            expect("initial state", state, l.init.ty())?;
            expect("loop body", state, l.body.ty())?;
            match &l.form {
                LoopForm::For(i, n) => {
                    expect("loop counter", &p.vars[*i].ty, n.ty())?;
                    if !n.ty().scalar().is_some_and(Scalar::is_integer) {
                        return Err(format!("number of iterations of type {}", n.ty()));
                    }
                }
                LoopForm::While(c) => expect("loop condition", &Type::BOOL, c.ty())?,
            }
            Ok(state.clone())
        }
        Exp::Assert { condition, body, .. } => {
            expect("assert", &Type::BOOL, condition.ty())?;
            Ok(body.ty().clone())
        }
        Exp::SameSize { left, right, body, .. } => {
            expect("size", &Type::I64, left.ty())?;
            expect("size", &Type::I64, right.ty())?;
            Ok(body.ty().clone())
        }
        Exp::Vjp(d) => derivative_type(d, true),
        Exp::Jvp(d) => derivative_type(d, false),
        Exp::Custom { f, rule, arg, tape } => {
            let (a, b) = function("custom derivative", f)?;
            expect("argument", a, arg.ty())?;
            let about = match (tape, b) {
                (false, _) => b,
                (true, Type::Tuple(parts)) if parts.len() == 2 => &parts[1],
                (true, _) => return Err(format!("custom derivative: a tape and a result, not {b}")),
            };
            expect("custom rule", &Type::funs([a.clone(), b.clone(), about.clone()], a.clone()), rule.ty())?;
            Ok(b.clone())
        }
        Exp::Marked(_, t) | Exp::StopGradient(t) => Ok(t.ty().clone()),
        Exp::Soac(soac) => soac_type(soac),
        Exp::ArrayLit(..)
        | Exp::Index(..)
        | Exp::Slice(..)
        | Exp::Update(..)
        | Exp::UpdateSlice(..)
        | Exp::Gather(..)
        | Exp::Size(..)
        | Exp::Iota(_)
        | Exp::Replicate(..)
        | Exp::Rearrange(..)
        | Exp::Reshape { .. }
        | Exp::Concat(_)
        | Exp::Reverse(_)
        | Exp::Rotate(..)
        | Exp::Zip(_)
        | Exp::Unzip(_) => array_type(exp),
        Exp::LinearLam(..)
        | Exp::LinearApp(..)
        | Exp::Zero(_)
        | Exp::Plus(..)
        | Exp::SparseTuple(_)
        | Exp::SparseProj(..)
        | Exp::SparseInject(..)
        | Exp::SparseCast(..)
        | Exp::BagOne(..)
        | Exp::BagArray(..)
        | Exp::BagScatter(..)
        | Exp::EvmReturn(..)
        | Exp::EvmBind(..)
        | Exp::EvmAdd { .. }
        | Exp::EvmScope(..)
        | Exp::EvmRun(..)
        | Exp::EvmPar(_)
        | Exp::EvmSequence(..)
        | Exp::StagedCotangent(_)
        | Exp::StagedCall(..)
        | Exp::StagedResolve(_) => cotangent_type(p, exp),
        Exp::MapEmpty(_)
        | Exp::MapInsert { .. }
        | Exp::MapLookup(..)
        | Exp::MapPopMax(_)
        | Exp::IoReturn(_)
        | Exp::IoBind(..)
        | Exp::IoRun(_)
        | Exp::IoPar(_)
        | Exp::MutNew(..)
        | Exp::MutGet(..)
        | Exp::MutSet(..)
        | Exp::MutModify(..)
        | Exp::MutPush(..)
        | Exp::MutSize(_)
        | Exp::MutFreeze(_) => effect_type(exp),
    }
}

fn match_type(p: &Program, x: &Term, arms: &[crate::term::Arm]) -> Typed {
    let vs = p.variants(x.ty()).ok_or_else(|| format!("match on a value of type {}", x.ty()))?;
    if vs.len() != arms.len() {
        return Err(format!("match with {} arms on {} alternatives", arms.len(), vs.len()));
    }
    for (v, arm) in vs.iter().zip(arms) {
        if v.fields.len() != arm.params.len() {
            return Err(format!(
                "arm of #{}: {} fields, {} variables",
                v.name,
                v.fields.len(),
                arm.params.len()
            ));
        }
        for (t, x) in v.fields.iter().zip(&arm.params) {
            expect(&format!("field of #{}", v.name), t, &p.vars[*x].ty)?;
        }
        expect("match arm", arms[0].body.ty(), arm.body.ty())?;
    }
    Ok(arms.first().ok_or("match without arms")?.body.ty().clone())
}

fn derivative_type(d: &Derivative, reverse: bool) -> Typed {
    let (a, b) = function("derivative", &d.f)?;
    expect("point of the derivative", a, d.arg.ty())?;
    let (seed, result) = if reverse { (b, a) } else { (a, b) };
    let stacked = |t: &Type| match d.seeds {
        Seeds::One => t.clone(),
        Seeds::Many => Type::array(t.clone()),
    };
    expect(if reverse { "cotangent" } else { "tangent" }, &stacked(seed), d.seed.ty())?;
    Ok(Type::tuple([b.clone(), stacked(result)]))
}

/// Whether a primitive exists at these argument types, and its result.
fn prim_type(prim: Prim, args: &[Term]) -> Typed {
    let bad = || {
        Err(format!("{prim} at {}", types(args).iter().map(Type::to_string).collect::<Vec<_>>().join(", ")))
    };
    let params = prim.params();
    let found: Vec<Option<Scalar>> = match args {
        [one] if params.len() > 1 => one.ty().items().unwrap_or_default().iter().map(Type::scalar).collect(),
        args => args.iter().map(|a| a.ty().scalar()).collect(),
    };
    let fits = params.len() == found.len() && params.iter().zip(found).all(|(s, found)| found == Some(*s));
    if !prim.is_valid() || !fits {
        return bad();
    }
    Ok(prim.result().into())
}

fn slice_dim(d: &SliceDim) -> Result<(), TypeError> {
    [&d.start, &d.len, &d.stride].into_iter().try_for_each(|t| expect("slice", &Type::I64, t.ty()))
}

fn indexed(a: &Term, ix: &[Term]) -> Typed {
    i64s("index", ix)?;
    a.ty().peel(ix.len()).cloned().ok_or_else(|| format!("{} indices into type {}", ix.len(), a.ty()))
}

fn array_type(exp: &Exp) -> Typed {
    match exp {
        Exp::ArrayLit(t, items) => {
            items.iter().try_for_each(|i| expect("array element", t, i.ty()))?;
            Ok(Type::array(t.clone()))
        }
        Exp::Index(a, ix) => indexed(a, ix),
        Exp::Slice(a, d) => {
            slice_dim(d)?;
            elem("slice", a).map(|_| a.ty().clone())
        }
        Exp::Update(a, ix, v) => {
            expect("update", &indexed(a, ix)?, v.ty())?;
            Ok(a.ty().clone())
        }
        Exp::UpdateSlice(a, d, v) => {
            slice_dim(d)?;
            elem("update", a)?;
            expect("update", a.ty(), v.ty())?;
            Ok(a.ty().clone())
        }
        Exp::Gather(a, ix) => {
            elem("gather", a)?;
            expect("gather indices", &Type::array(Type::I64), ix.ty())?;
            Ok(a.ty().clone())
        }
        Exp::Size(a, d) => {
            a.ty().peel(d + 1).map(|_| Type::I64).ok_or_else(|| format!("dimension {d} of {}", a.ty()))
        }
        Exp::Iota(n) => expect("iota", &Type::I64, n.ty()).map(|()| Type::array(Type::I64)),
        Exp::Replicate(n, v) => expect("replicate", &Type::I64, n.ty()).map(|()| Type::array(v.ty().clone())),
        Exp::Rearrange(perm, a) => {
            let mut sorted = perm.clone();
            sorted.sort_unstable();
            if sorted.iter().copied().ne(0..perm.len()) || a.ty().rank() < perm.len() {
                return Err(format!("rearrange by {perm:?} of type {}", a.ty()));
            }
            Ok(a.ty().clone())
        }
        Exp::Reshape { shape, from, array } => {
            i64s("shape", shape)?;
            let inner = array.ty().peel(*from).filter(|_| *from > 0 && !shape.is_empty());
            let inner = inner.ok_or_else(|| format!("reshape of {from} dimensions of {}", array.ty()))?;
            Ok(Type::array_of_rank(inner.clone(), shape.len()))
        }
        Exp::Concat(ts) => {
            let first = ts.first().ok_or("concat of nothing")?;
            elem("concat", first)?;
            ts.iter().try_for_each(|t| expect("concat", first.ty(), t.ty()))?;
            Ok(first.ty().clone())
        }
        Exp::Reverse(a) => elem("reverse", a).map(|_| a.ty().clone()),
        Exp::Rotate(k, a) => {
            expect("rotate", &Type::I64, k.ty())?;
            elem("rotate", a).map(|_| a.ty().clone())
        }
        Exp::Zip(ts) => {
            if ts.is_empty() {
                return Err("zip of nothing".into());
            }
            let elems = ts.iter().map(|t| elem("zip", t).cloned()).collect::<Result<Vec<_>, _>>()?;
            Ok(Type::array(Type::tuple(elems)))
        }
        Exp::Unzip(a) => match elem("unzip", a)?.items() {
            Some(ts) if !ts.is_empty() => {
                Ok(Type::tuple(ts.iter().cloned().map(Type::array).collect::<Vec<_>>()))
            }
            _ => Err(format!("unzip of {}", a.ty())),
        },
        _ => Err("not an array operation".into()),
    }
}

fn soac_type(soac: &Soac) -> Typed {
    let operator = |op: &Term, neutral: &Term| {
        let t = neutral.ty();
        expect("operator", &Type::funs([t.clone(), t.clone()], t.clone()), op.ty())
    };
    match soac {
        Soac::Map { f, arrays } => {
            if arrays.is_empty() {
                return Err("map over nothing".into());
            }
            let mut t = f.ty();
            for a in arrays {
                match t {
                    Type::Fun(param, result) => {
                        expect("mapped array", param, elem("map", a)?)?;
                        t = result;
                    }
                    other => return Err(format!("map: expected a function, found type {other}")),
                }
            }
            Ok(Type::array(t.clone()))
        }
        Soac::Reduce { op, neutral, array, .. } => {
            operator(op, neutral)?;
            expect("reduce", neutral.ty(), elem("reduce", array)?)?;
            Ok(neutral.ty().clone())
        }
        Soac::Scan { op, neutral, array } => {
            operator(op, neutral)?;
            expect("scan", neutral.ty(), elem("scan", array)?)?;
            Ok(array.ty().clone())
        }
        Soac::Hist { op, neutral, dst, indices, values } => {
            operator(op, neutral)?;
            expect("reduce_by_index", neutral.ty(), elem("reduce_by_index", dst)?)?;
            expect("reduce_by_index", dst.ty(), values.ty())?;
            expect("indices", &Type::array(Type::I64), indices.ty())?;
            Ok(dst.ty().clone())
        }
        Soac::Scatter { dst, indices, values } => {
            elem("scatter", dst)?;
            expect("scatter", dst.ty(), values.ty())?;
            expect("indices", &Type::array(Type::I64), indices.ty())?;
            Ok(dst.ty().clone())
        }
    }
}

fn cotangent_type(p: &Program, exp: &Exp) -> Typed {
    let additive = |t: &Type| {
        if p.is_additive(t) { Ok(()) } else { Err(format!("type {t} has no addition")) }
    };
    match exp {
        Exp::LinearLam(v, b) => Ok(Type::linear(p.vars[*v].ty.clone(), b.ty().clone())),
        Exp::LinearApp(f, a) => match f.ty() {
            Type::Linear(param, result) => {
                expect("argument", param, a.ty())?;
                Ok(Type::clone(result))
            }
            other => Err(format!("expected a linear function, found type {other}")),
        },
        Exp::Zero(t) => additive(t).map(|()| t.clone()),
        Exp::Plus(a, b) => {
            additive(a.ty())?;
            expect("plus", a.ty(), b.ty())?;
            Ok(a.ty().clone())
        }
        Exp::SparseTuple(ts) => Ok(Type::SparseTuple(types(ts).into())),
        Exp::SparseProj(t, i) => match t.ty() {
            Type::SparseTuple(ts) => {
                ts.get(*i).cloned().ok_or_else(|| format!("no component {i} in {}", t.ty()))
            }
            other => Err(format!("expected a sparse product, found type {other}")),
        },
        Exp::SparseInject(ty, k, t) => match ty {
            Type::SparseSum(ts) if *k < ts.len() => {
                expect("sparse sum", &ts[*k], t.ty()).map(|()| ty.clone())
            }
            _ => Err(format!("no alternative {k} in {ty}")),
        },
        Exp::SparseCast(t, k) => match t.ty() {
            Type::SparseSum(ts) => {
                ts.get(*k).cloned().ok_or_else(|| format!("no alternative {k} in {}", t.ty()))
            }
            other => Err(format!("expected a sparse sum, found type {other}")),
        },
        Exp::BagOne(i, t) => {
            expect("position", &Type::I64, i.ty())?;
            additive(t.ty()).map(|()| Type::bag(t.ty().clone()))
        }
        Exp::BagArray(ix, ts) => {
            expect("positions", &Type::array(Type::I64), ix.ty())?;
            let t = elem("bag", ts)?;
            additive(t).map(|()| Type::bag(t.clone()))
        }
        Exp::BagScatter(n, bag) => {
            expect("size", &Type::I64, n.ty())?;
            match bag.ty() {
                Type::Bag(t) => Ok(Type::array(Type::clone(t))),
                other => Err(format!("expected a bag, found type {other}")),
            }
        }
        Exp::EvmReturn(env, t) => Ok(Type::evm(env.clone(), t.ty().clone())),
        Exp::EvmBind(m, k) => match (m.ty(), k.ty()) {
            (Type::Evm(env, a), Type::Fun(param, next)) => match &**next {
                Type::Evm(env2, _) if env == env2 => expect("bind", a, param).map(|()| Type::clone(next)),
                other => Err(format!("bind: the continuation gives type {other}")),
            },
            (m, k) => Err(format!("bind of {m} and {k}")),
        },
        Exp::EvmAdd { env, cell, value } => {
            let t = env.get(*cell).ok_or_else(|| format!("no cell {cell}"))?;
            expect("addition to a cell", t, value.ty())?;
            additive(t)?;
            Ok(Type::evm(env.clone(), Type::unit()))
        }
        Exp::EvmScope(zero, m) => match m.ty() {
            Type::Evm(env, a) => {
                let (cell, rest) = env.split_first().ok_or("scope of a computation without cells")?;
                expect("new cell", cell, zero.ty())?;
                Ok(Type::evm(Arc::<[Type]>::from(rest), Type::tuple([cell.clone(), Type::clone(a)])))
            }
            other => Err(format!("scope of {other}")),
        },
        Exp::EvmRun(m, initial) => match m.ty() {
            Type::Evm(env, a) => {
                expect("cells", &Type::Tuple(env.clone()), initial.ty())?;
                Ok(Type::tuple([Type::clone(a), Type::Tuple(env.clone())]))
            }
            other => Err(format!("run of {other}")),
        },
        Exp::EvmPar(ms) => {
            let Some(Type::Evm(env, _)) = ms.first().map(Term::ty) else {
                return Err("no computations in parallel".into());
            };
            let results = ms.iter().map(|m| evm_result(env, m.ty())).collect::<Result<Vec<_>, _>>()?;
            Ok(Type::evm(env.clone(), Type::tuple(results)))
        }
        Exp::EvmSequence(env, ms) => {
            let result = evm_result(env, elem("sequence", ms)?)?;
            Ok(Type::evm(env.clone(), Type::array(result)))
        }
        Exp::StagedCotangent(t) => additive(t.ty()).map(|()| Type::Staged(Arc::new(t.ty().clone()))),
        Exp::StagedCall(id, f, a) => {
            expect("identity", &Type::I64, id.ty())?;
            match f.ty() {
                Type::Linear(param, staged) | Type::Fun(param, staged)
                    if matches!(**staged, Type::Staged(_)) =>
                {
                    expect("staged argument", param, a.ty())?;
                    Ok(Type::clone(staged))
                }
                other => Err(format!("staged call of {other}")),
            }
        }
        Exp::StagedResolve(t) => match t.ty() {
            Type::Staged(c) => Ok(Type::clone(c)),
            other => Err(format!("resolve of {other}")),
        },
        _ => Err("not a cotangent operation".into()),
    }
}

/// What a computation over these cells returns.
fn evm_result(env: &Arc<[Type]>, ty: &Type) -> Typed {
    match ty {
        Type::Evm(cells, t) if cells == env => Ok(Type::clone(t)),
        other => Err(format!("expected a computation over other cells, found type {other}")),
    }
}

fn map_value(t: &Term) -> Result<&Type, TypeError> {
    if let Type::Map(v) = t.ty() { Ok(v) } else { Err(format!("expected a map, found type {}", t.ty())) }
}

fn io_result(t: &Term) -> Result<&Type, TypeError> {
    if let Type::Io(a) = t.ty() {
        Ok(a)
    } else {
        Err(format!("expected a computation, found type {}", t.ty()))
    }
}

fn cell(t: &Term) -> Result<&Type, TypeError> {
    match t.ty() {
        Type::MutArray(a) => Ok(a),
        other => Err(format!("expected a mutable array, found type {other}")),
    }
}

fn effect_type(exp: &Exp) -> Typed {
    match exp {
        Exp::MapEmpty(t) => Ok(Type::Map(Arc::new(t.clone()))),
        Exp::MapInsert { combine, map, key, value } => {
            let v = map_value(map)?;
            expect("key", &Type::I64, key.ty())?;
            expect("map value", v, value.ty())?;
            expect("combine", &Type::funs([v.clone(), v.clone()], v.clone()), combine.ty())?;
            Ok(map.ty().clone())
        }
        Exp::MapLookup(map, key) => {
            expect("key", &Type::I64, key.ty())?;
            Ok(option_type(vec![map_value(map)?.clone()]))
        }
        Exp::MapPopMax(map) => Ok(option_type(vec![Type::I64, map_value(map)?.clone(), map.ty().clone()])),
        Exp::IoReturn(t) => Ok(Type::io(t.ty().clone())),
        Exp::IoBind(m, k) => {
            let a = io_result(m)?;
            let (param, next) = function("bind", k)?;
            expect("bind", a, param)?;
            if matches!(next, Type::Io(_)) {
                Ok(next.clone())
            } else {
                Err(format!("bind: the continuation gives type {next}"))
            }
        }
        Exp::IoRun(m) => io_result(m).cloned(),
        Exp::IoPar(ms) => {
            let results = ms.iter().map(|m| io_result(m).cloned()).collect::<Result<Vec<_>, _>>()?;
            Ok(Type::io(Type::tuple(results)))
        }
        Exp::MutNew(n, v) => {
            expect("number of cells", &Type::I64, n.ty())?;
            Ok(Type::io(Type::MutArray(Arc::new(v.ty().clone()))))
        }
        Exp::MutGet(a, i) => {
            expect("index", &Type::I64, i.ty())?;
            Ok(Type::io(cell(a)?.clone()))
        }
        Exp::MutSet(a, i, v) => {
            expect("index", &Type::I64, i.ty())?;
            expect("cell", cell(a)?, v.ty())?;
            Ok(Type::io(Type::unit()))
        }
        Exp::MutModify(a, i, f) => {
            expect("index", &Type::I64, i.ty())?;
            let t = cell(a)?;
            expect("modification", &Type::fun(t.clone(), t.clone()), f.ty())?;
            Ok(Type::io(t.clone()))
        }
        Exp::MutPush(a, v) => {
            expect("cell", cell(a)?, v.ty())?;
            Ok(Type::io(Type::I64))
        }
        Exp::MutSize(a) => cell(a).map(|_| Type::io(Type::I64)),
        Exp::MutFreeze(a) => Ok(Type::io(Type::array(cell(a)?.clone()))),
        _ => Err("not an effect".into()),
    }
}
