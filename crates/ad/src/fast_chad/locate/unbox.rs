//! Arrays in products and sums are carried beside them.
//!
//! A value of a product or sum with arrays inside is its *skeleton*, in which the arrays are left out, and the arrays. There is one variable for
//! each place of an array in the type; where the value has another alternative, it is an array without elements. Then what is to be said about
//! names of arrays is said about variables alone.
//!
//! ```text
//! z = #some w                    =>  z' = #some;  a = w
//! match z of #some v -> b        =>  match z' of #some -> v = a; b
//! z given by an operation, a call =>  z', a = match z of #some v -> #some, v | #none -> #none, []
//! f (z)                           =>  f' (z', a), if f calls itself
//! z wanted by one                =>  z = match z' of #some -> #some a | #none -> #none
//! ```
//!
//! Assumes core without `vjp` and `jvp`. Guarantees the same values; taking apart and putting together cost a constant. Values of
//! recursive types, and products and sums inside of arrays, stay as they are.
//!
//! More than 500 lines: a rule for every construct, each small, and the same for functions.

use crate::tangent::fresh_function_name;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::{for_each_stm, free_vars, reachable_functions};
use pullback_core::{
    Atom, Body, Builder, Exp, Fun, FunId, Lam, Loop, Program, Soac, Stm, Type, Var, Variant,
};

/// Whether arrays are inside of values of a type that is no array.
fn holds(ty: &Type) -> bool {
    match ty {
        Type::Tuple(items) => items.iter().any(|t| is_leaf(t) || holds(t)),
        Type::Sum(variants) => variants.iter().flat_map(|v| &v.fields).any(|t| is_leaf(t) || holds(t)),
        Type::Scalar(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => false,
    }
}
fn is_leaf(ty: &Type) -> bool {
    ty.rank() > 0
}

/// The types of the arrays beside a value.
fn leaves(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Array(_) => vec![ty.clone()],
        Type::Tuple(items) => items.iter().flat_map(leaves).collect(),
        Type::Sum(variants) => variants.iter().flat_map(|v| &v.fields).flat_map(leaves).collect(),
        Type::Scalar(_) | Type::Named(_) | Type::Acc(_) => Vec::new(),
    }
}

/// The type of the skeleton of a value.
fn skeleton(ty: &Type) -> Type {
    match ty {
        Type::Tuple(items) => Type::tuple(bones(items)),
        Type::Sum(variants) => Type::Sum(
            variants.iter().map(|v| Variant { name: v.name.clone(), fields: bones(&v.fields) }).collect(),
        ),
        Type::Scalar(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => ty.clone(),
    }
}
fn bones(types: &[Type]) -> Vec<Type> {
    types.iter().filter(|t| !is_leaf(t)).map(skeleton).collect()
}

/// A value taken apart.
#[derive(Clone, Debug)]
struct Parts {
    skeleton: Atom,
    leaves: Vec<Atom>,
}

/// Whether it matters: such values, but for boxes (sums with one alternative, in which tapes keep arrays), are made here, or a loop or a
/// function of an operation has one as its state or from outside.
fn is_needed(program: &Program, body: &Body) -> bool {
    // Also of values that do not depend on what is differentiated: a branch may take an array out of one, or another array.
    let dear = |v: &Var| holds(&program.vars[*v].ty) && program.is_active(&program.vars[*v].ty);
    let mut found = false;
    for_each_stm(body, &mut |stm| {
        let inside = match &stm.exp {
            Exp::Loop(l) => {
                found |= l.params.iter().any(|(v, _)| dear(v));
                Some(free_vars(&l.body))
            }
            Exp::Soac(Soac::Map { lam, .. }) => Some(free_vars(&lam.body)),
            Exp::Inject(ty, ..) => {
                found |= ty.boxed().is_none() && dear(&stm.pat[0]);
                None
            }
            Exp::Tuple(_) => {
                found |= dear(&stm.pat[0]);
                None
            }
            _ => None,
        };
        found |= inside.is_some_and(|vs| vs.iter().any(dear));
    });
    found
}

/// The lambda with arrays beside products and sums, where that matters.
pub(super) fn unbox(program: &mut Program, lam: Lam) -> Lam {
    if !is_needed(program, &lam.body) {
        return lam;
    }
    lambda(program, lam, &IdMap::new())
}

/// The lambda, and the functions that it reaches, in which those of `inside` have arrays beside products and sums, and take and return
/// them so: what is called instead of each.
pub(super) fn unbox_functions(
    program: &mut Program,
    lam: Lam,
    reached: &IdSet<FunId>,
    inside: &IdSet<FunId>,
) -> (Lam, IdMap<FunId, FunId>) {
    let mut instead: IdMap<FunId, FunId> = reached.iter().map(|f| (*f, *f)).collect();
    let dear = |program: &Program, ty: &Type| holds(ty) && program.is_active(ty);
    let takes = |f: &FunId| {
        let fun = &program.funs[*f];
        let params = fun.params.iter().map(|v| &program.vars[*v].ty);
        params.chain(&fun.results).any(|ty| dear(program, ty)) || is_needed(program, &fun.body)
    };
    let taking: Vec<FunId> = inside.iter().copied().filter(takes).collect();
    if taking.is_empty() {
        return (lam, instead);
    }
    let leads = |f: &FunId| {
        let from = reachable_functions(program, [*f]);
        taking.iter().any(|g| from.contains(g))
    };
    let changed: Vec<FunId> = reached.iter().copied().filter(leads).collect();
    let mut apart = IdMap::new();
    for &f in &changed {
        let Fun { name, results, .. } = program.funs[f].clone();
        let results = if inside.contains(&f) { apart_types(&results) } else { results };
        let name = fresh_function_name(program, &format!("{name}_apart"));
        let empty = Fun { name, params: Vec::new(), body: Body::default(), results, entry: None };
        apart.insert(f, Apart { instead: program.funs.push(empty), signature: inside.contains(&f) });
    }
    for &f in &changed {
        let Fun { params, body, .. } = program.funs[f].clone();
        let lam = copy_lam(program, &Lam { params, body }, &Subst::new());
        let Apart { instead: new, signature } = apart[&f];
        let Lam { params, body } = if signature {
            let mut unboxing = Unboxing { b: Builder::new(program), parts: IdMap::new(), functions: &apart };
            let params = unboxing.pattern(&lam.params);
            let body = unboxing.apart(&lam.body, |_| {});
            Lam { params, body }
        } else {
            lambda(program, lam, &apart)
        };
        (program.funs[new].params, program.funs[new].body) = (params, body);
        instead.insert(f, new);
    }
    (lambda(program, lam, &apart), instead)
}

/// The types of the skeletons, then those of the arrays beside them.
fn apart_types(types: &[Type]) -> Vec<Type> {
    let held = types.iter().filter(|t| holds(t)).flat_map(leaves);
    types.iter().map(|t| if holds(t) { skeleton(t) } else { t.clone() }).chain(held).collect()
}

fn lambda(program: &mut Program, lam: Lam, functions: &IdMap<FunId, Apart>) -> Lam {
    let mut unboxing = Unboxing { b: Builder::new(program), parts: IdMap::new(), functions };
    let params = lam.params.clone();
    // What comes from outside is taken apart where all bodies see it.
    let outside = free_vars(&lam.body).into_iter().filter(|v| !params.contains(v));
    let given: Vec<Var> = params.iter().copied().chain(outside).collect();
    let body = unboxing.body(&lam.body, &given);
    Lam { params, body }
}

/// What is called instead of a function.
#[derive(Clone, Copy)]
struct Apart {
    instead: FunId,
    /// Whether it takes and returns arrays beside products and sums.
    signature: bool,
}

struct Unboxing<'a, 'p> {
    b: Builder<'p>,
    /// The values that are apart.
    parts: IdMap<Var, Parts>,
    functions: &'a IdMap<FunId, Apart>,
}

impl Unboxing<'_, '_> {
    fn holds(&self, v: Var) -> bool {
        holds(&self.b.program.vars[v].ty)
    }

    /// A body whose results are whole values. `given`: what it gets from outside.
    fn body(&mut self, body: &Body, given: &[Var]) -> Body {
        self.b.open();
        given.iter().for_each(|&v| self.take_apart(v));
        self.stms(&body.stms);
        let result = body.result.iter().map(|&a| self.whole(a)).collect();
        self.b.close(result)
    }
    /// A body whose results are apart.
    fn apart(&mut self, body: &Body, bind: impl FnOnce(&mut Self)) -> Body {
        self.b.open();
        bind(self);
        self.stms(&body.stms);
        let result = self.results(&body.result);
        self.b.close(result)
    }
    fn results(&mut self, atoms: &[Atom]) -> Vec<Atom> {
        let mut skeletons = Vec::new();
        let mut leaves = Vec::new();
        for &a in atoms {
            let parts = self.parts(a);
            skeletons.push(parts.skeleton);
            leaves.extend(parts.leaves);
        }
        [skeletons, leaves].concat()
    }
    /// New variables for these, then for the arrays beside them.
    fn pattern(&mut self, vs: &[Var]) -> Vec<Var> {
        let mut pat = Vec::new();
        let mut arrays = Vec::new();
        for &v in vs {
            if !self.holds(v) {
                pat.push(v);
                continue;
            }
            let ty = self.b.program.vars[v].ty.clone();
            let skeleton = self.b.fresh(skeleton(&ty), "bones");
            let mine: Vec<Var> = leaves(&ty).into_iter().map(|t| self.b.fresh(t, "part")).collect();
            let atoms = mine.iter().map(|&v| v.into()).collect();
            self.parts.insert(v, Parts { skeleton: skeleton.into(), leaves: atoms });
            pat.push(skeleton);
            arrays.extend(mine);
        }
        pat.extend(arrays);
        pat
    }

    fn stms(&mut self, stms: &[Stm]) {
        for stm in stms {
            self.b.origin = self.b.program.vars[stm.pat[0]].origin.clone();
            self.stm(stm);
        }
    }

    fn stm(&mut self, stm: &Stm) {
        let y = stm.pat[0];
        match &stm.exp {
            Exp::Atom(a) if self.holds(y) => {
                let parts = self.parts(*a);
                self.parts.insert(y, parts);
            }
            Exp::Tuple(items) if self.holds(y) => {
                let (bones, leaves) = self.fields(items);
                let skeleton = self.b.emit(Exp::Tuple(bones), "bones");
                self.parts.insert(y, Parts { skeleton, leaves });
            }
            Exp::Inject(ty, k, fields) if holds(ty) => {
                let parts = self.inject(ty, *k, fields);
                self.parts.insert(y, parts);
            }
            Exp::Proj(a, i) if holds(&self.b.ty(*a)) => self.component(y, *a, *i),
            Exp::If(c, x, z) => {
                let (then, otherwise) = (self.apart(x, |_| {}), self.apart(z, |_| {}));
                let pat = self.pattern(&stm.pat);
                self.b.emit_to(pat, Exp::If(*c, then, otherwise));
            }
            Exp::Match(a, arms) => self.matched(stm, *a, arms),
            Exp::Marked(mark, body) => {
                let body = self.apart(body, |_| {});
                let pat = self.pattern(&stm.pat);
                self.b.emit_to(pat, Exp::Marked(*mark, body));
            }
            Exp::Loop(l) => self.loop_(stm, l),
            Exp::Call(f, args) if self.functions.get(f).is_some_and(|f| f.signature) => {
                let operands = self.results(args);
                let pat = self.pattern(&stm.pat);
                self.b.emit_to(pat, Exp::Call(self.functions[f].instead, operands));
            }
            exp => {
                let mut exp = exp.clone();
                if let Exp::Call(f, _) = &mut exp
                    && let Some(apart) = self.functions.get(f)
                {
                    *f = apart.instead;
                }
                exp.map_atoms(|a| self.whole(a));
                let mut bodies = Vec::new();
                for scope in exp.bodies() {
                    let given: Vec<Var> = scope.binds.iter().collect();
                    bodies.push(self.body(scope.body, &given));
                }
                for (scope, body) in exp.bodies_mut().into_iter().zip(bodies) {
                    *scope.body = body;
                }
                self.b.emit_to(stm.pat.clone(), exp);
                stm.pat.iter().for_each(|&v| self.take_apart(v));
            }
        }
    }

    /// Fields without arrays, and the arrays.
    fn fields(&mut self, fields: &[Atom]) -> (Vec<Atom>, Vec<Atom>) {
        let (mut bones, mut leaves) = (Vec::new(), Vec::new());
        for &a in fields {
            if is_leaf(&self.b.ty(a)) {
                leaves.push(a);
            } else {
                let parts = self.parts(a);
                bones.push(parts.skeleton);
                leaves.extend(parts.leaves);
            }
        }
        (bones, leaves)
    }
    fn inject(&mut self, ty: &Type, k: usize, fields: &[Atom]) -> Parts {
        let (bones, mine) = self.fields(fields);
        let skeleton = self.b.emit(Exp::Inject(skeleton(ty), k, bones), "bones");
        let leaves = self.beside(ty, k, mine);
        Parts { skeleton, leaves }
    }
    /// The arrays beside a value of alternative `k`, of which these are its own.
    fn beside(&mut self, ty: &Type, k: usize, mine: Vec<Atom>) -> Vec<Atom> {
        let variants = variants(ty);
        let mut out = Vec::new();
        let mut mine = Some(mine);
        for (j, v) in variants.iter().enumerate() {
            match mine.take_if(|_| j == k) {
                Some(mine) => out.extend(mine),
                None => {
                    for ty in v.fields.iter().flat_map(leaves) {
                        out.push(super::nothing(&mut self.b, &ty));
                    }
                }
            }
        }
        out
    }

    /// The parts of an atom; what is no such value is its own skeleton.
    fn parts(&mut self, a: Atom) -> Parts {
        let Some(v) = a.var().filter(|&v| self.holds(v)) else {
            return Parts { skeleton: a, leaves: Vec::new() };
        };
        self.parts[&v].clone()
    }
    /// Takes a whole value apart.
    fn take_apart(&mut self, v: Var) {
        if self.holds(v) {
            let parts = self.apart_of(v.into());
            self.parts.insert(v, parts);
        }
    }
    fn apart_of(&mut self, a: Atom) -> Parts {
        let ty = self.b.ty(a);
        if let Type::Tuple(items) = &ty {
            let fields: Vec<Atom> = (0..items.len()).map(|i| self.b.emit(Exp::Proj(a, i), "part")).collect();
            for f in &fields {
                f.var().into_iter().for_each(|v| self.take_apart(v));
            }
            let (bones, leaves) = self.fields(&fields);
            let skeleton = self.b.emit(Exp::Tuple(bones), "bones");
            return Parts { skeleton, leaves };
        }
        let mut arms = Vec::new();
        for (k, v) in variants(&ty).iter().enumerate() {
            let params: Vec<Var> = v.fields.iter().map(|t| self.b.fresh(t.clone(), "field")).collect();
            self.b.open();
            params.iter().for_each(|&p| self.take_apart(p));
            let fields: Vec<Atom> = params.iter().map(|&p| p.into()).collect();
            let parts = self.inject(&ty, k, &fields);
            let body = self.b.close([vec![parts.skeleton], parts.leaves].concat());
            arms.push(Lam { params, body });
        }
        let out = self.b.emit_all(Exp::Match(a, arms), "part");
        let mut out = out.into_iter().map(Atom::Var);
        let skeleton = out.next().unwrap_or(a);
        Parts { skeleton, leaves: out.collect() }
    }
    /// The whole value.
    fn whole(&mut self, a: Atom) -> Atom {
        let Some(v) = a.var().filter(|&v| self.holds(v)) else { return a };
        let ty = self.b.program.vars[v].ty.clone();
        let parts = self.parts(a);
        self.together(&ty, &parts)
    }
    fn together(&mut self, ty: &Type, parts: &Parts) -> Atom {
        let mut leaves = parts.leaves.iter().copied();
        if let Type::Tuple(items) = ty {
            let mut bones = 0;
            let mut fields = Vec::new();
            for t in items.iter() {
                let bone = |s: &mut Self, at: usize| s.b.emit(Exp::Proj(parts.skeleton, at), "part");
                fields.push(self.field(t, &mut leaves, &mut bones, bone));
            }
            return self.b.emit(Exp::Tuple(fields), "whole");
        }
        let mut arms = Vec::new();
        for (k, v) in variants(ty).iter().enumerate() {
            let params: Vec<Var> = bones(&v.fields).into_iter().map(|t| self.b.fresh(t, "field")).collect();
            self.b.open();
            let mut at = 0;
            let mut fields = Vec::new();
            for t in &v.fields {
                fields.push(self.field(t, &mut leaves, &mut at, |_, at| params[at].into()));
            }
            let whole = self.b.emit(Exp::Inject(ty.clone(), k, fields), "whole");
            arms.push(Lam { params, body: self.b.close(vec![whole]) });
        }
        self.b.emit_all(Exp::Match(parts.skeleton, arms), "whole")[0].into()
    }
    /// A whole field of the next arrays, or of the next bone.
    fn field(
        &mut self,
        ty: &Type,
        leaves_left: &mut dyn Iterator<Item = Atom>,
        at: &mut usize,
        bone: impl FnOnce(&mut Self, usize) -> Atom,
    ) -> Atom {
        if is_leaf(ty) {
            return leaves_left.next().unwrap_or(Atom::bool(false));
        }
        let skeleton = bone(self, *at);
        *at += 1;
        if !holds(ty) {
            return skeleton;
        }
        let mine = leaves_left.take(leaves(ty).len()).collect();
        self.together(ty, &Parts { skeleton, leaves: mine })
    }

    fn component(&mut self, y: Var, a: Atom, i: usize) {
        let Type::Tuple(items) = self.b.ty(a) else { return };
        let parts = self.parts(a);
        let before: usize = items[..i].iter().map(|t| leaves(t).len()).sum();
        let mine = &parts.leaves[before..before + leaves(&items[i]).len()];
        if is_leaf(&items[i]) {
            return self.b.emit_to(vec![y], Exp::Atom(mine[0]));
        }
        let bone = items[..i].iter().filter(|t| !is_leaf(t)).count();
        let exp = Exp::Proj(parts.skeleton, bone);
        if !holds(&items[i]) {
            return self.b.emit_to(vec![y], exp);
        }
        let skeleton = self.b.emit(exp, "bones");
        self.parts.insert(y, Parts { skeleton, leaves: mine.to_vec() });
    }

    fn matched(&mut self, stm: &Stm, a: Atom, arms: &[Lam]) {
        let apart = a.var().is_some_and(|v| self.holds(v));
        let parts = self.parts(a);
        let mut rest = parts.leaves.clone().into_iter();
        let mut lams = Vec::new();
        for arm in arms {
            let mut params = Vec::new();
            let mut named: Vec<(Var, Atom)> = Vec::new();
            let mut wholes: Vec<Var> = Vec::new();
            for &p in &arm.params {
                let ty = self.b.program.vars[p].ty.clone();
                if !apart {
                    // Of a recursive type, or without arrays.
                    wholes.push(p);
                    params.push(p);
                } else if is_leaf(&ty) {
                    named.extend(rest.next().map(|leaf| (p, leaf)));
                } else if holds(&ty) {
                    let bone = self.b.fresh(skeleton(&ty), "bones");
                    let mine = rest.by_ref().take(leaves(&ty).len()).collect();
                    self.parts.insert(p, Parts { skeleton: bone.into(), leaves: mine });
                    params.push(bone);
                } else {
                    params.push(p);
                }
            }
            let body = self.apart(&arm.body, |s| {
                for (p, leaf) in named {
                    s.b.emit_to(vec![p], Exp::Atom(leaf));
                }
                wholes.into_iter().for_each(|p| s.take_apart(p));
            });
            lams.push(Lam { params, body });
        }
        let pat = self.pattern(&stm.pat);
        self.b.emit_to(pat, Exp::Match(parts.skeleton, lams));
    }

    fn loop_(&mut self, stm: &Stm, l: &Loop) {
        let count = l.params.len();
        let inits = l.params.iter().map(|p| p.1).collect::<Vec<_>>();
        let inits = self.results(&inits);
        let states = l.params.iter().map(|p| p.0).collect::<Vec<_>>();
        let params = self.pattern(&states);
        let params: Vec<(Var, Atom)> = params.into_iter().zip(inits).collect();
        let mut form = l.form.clone();
        if let pullback_core::LoopForm::While(condition) = &mut form {
            *condition = self.body(condition, &[]);
        }
        self.b.open();
        self.stms(&l.body.stms);
        let mut result = self.results(&l.body.result[..count]);
        for &a in &l.body.result[count..] {
            let whole = self.whole(a);
            result.push(whole);
        }
        let body = self.b.close(result);
        let mut pat = self.pattern(&stm.pat[..count]);
        pat.extend(&stm.pat[count..]);
        let (collect, attrs) = (l.collect, l.attrs.clone());
        self.b.emit_to(pat, Exp::Loop(Loop { params, form, body, collect, attrs }));
    }
}

fn variants(ty: &Type) -> Vec<Variant> {
    match ty {
        Type::Sum(variants) => variants.to_vec(),
        Type::Scalar(_) | Type::Tuple(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => Vec::new(),
    }
}
