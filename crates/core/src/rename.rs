//! Copies of bodies with fresh variables, and substitution.
//!
//! A body may be used twice only if the second use is a copy: variables are bound once in the whole program. Copies
//! keep type, hint and origin of each variable. Substitution is simultaneous and does not look into the replacements.
//!
//! Assumes that no replacement mentions a variable bound inside the copied code (it would not be in scope there).

use crate::ir::{Atom, Body, Exp, Lam, LoopForm, Program, Stm, Var};
use pullback_base::index::IdMap;

/// What to put in place of variables.
pub type Subst = IdMap<Var, Atom>;

/// The atom that stands for `a`.
pub fn substitute_atom(a: Atom, subst: &Subst) -> Atom {
    a.replaced(|v| subst.get(&v).copied())
}

/// Replaces variables in a body, nested bodies included. The replaced variables must not be bound in it.
pub fn substitute_body(body: &mut Body, subst: &Subst) {
    if subst.is_empty() {
        return;
    }
    for stm in &mut body.stms {
        substitute_exp(&mut stm.exp, subst);
    }
    for a in &mut body.result {
        *a = substitute_atom(*a, subst);
    }
}

/// Replaces variables in an expression, nested bodies included.
pub fn substitute_exp(exp: &mut Exp, subst: &Subst) {
    exp.map_atoms(|a| substitute_atom(a, subst));
    for scope in exp.bodies_mut() {
        substitute_body(scope.body, subst);
    }
}

/// A new variable with the type, hint and origin of another.
pub fn fresh_like(program: &mut Program, v: Var) -> Var {
    let info = program.vars[v].clone();
    program.vars.push(info)
}

/// A copy of a body in which everything bound is fresh; `subst` says what to put for free variables (others stay).
pub fn copy_body(program: &mut Program, body: &Body, subst: &Subst) -> Body {
    let mut copier = Copier { program, subst: subst.clone() };
    copier.body(body)
}

/// A copy of a lambda with fresh parameters; as [`copy_body`].
pub fn copy_lam(program: &mut Program, lam: &Lam, subst: &Subst) -> Lam {
    let mut copier = Copier { program, subst: subst.clone() };
    copier.lam(lam)
}

/// A copy of an expression in which everything bound is fresh; as [`copy_body`].
pub fn copy_exp(program: &mut Program, exp: &Exp, subst: &Subst) -> Exp {
    let mut copier = Copier { program, subst: subst.clone() };
    copier.exp(exp)
}

/// A copy of statements; their bound variables become fresh, and `subst` is extended by what stands for them.
pub fn copy_stms(program: &mut Program, stms: &[Stm], subst: &mut Subst) -> Vec<Stm> {
    let mut copier = Copier { program, subst: std::mem::take(subst) };
    let out = stms.iter().map(|s| copier.stm(s)).collect();
    *subst = copier.subst;
    out
}

/// The statements of a copy of `lam` applied to `args`, and its results.
pub fn copy_applied(program: &mut Program, lam: &Lam, args: &[Atom], subst: &Subst) -> Body {
    let mut subst = subst.clone();
    for (p, a) in lam.params.iter().zip(args) {
        subst.insert(*p, *a);
    }
    let mut copier = Copier { program, subst };
    copier.body(&lam.body)
}

// The substitution only grows: variables are bound once, so an entry can never be wrong in another scope.
struct Copier<'p> {
    program: &'p mut Program,
    subst: Subst,
}

impl Copier<'_> {
    fn fresh(&mut self, v: Var) -> Var {
        let copy = fresh_like(self.program, v);
        self.subst.insert(v, Atom::Var(copy));
        copy
    }
    fn body(&mut self, body: &Body) -> Body {
        let stms = body.stms.iter().map(|s| self.stm(s)).collect();
        Body { stms, result: body.result.iter().map(|a| substitute_atom(*a, &self.subst)).collect() }
    }
    fn lam(&mut self, lam: &Lam) -> Lam {
        let params = lam.params.iter().map(|p| self.fresh(*p)).collect();
        Lam { params, body: self.body(&lam.body) }
    }
    fn stm(&mut self, stm: &Stm) -> Stm {
        let exp = self.exp(&stm.exp);
        Stm { pat: stm.pat.iter().map(|v| self.fresh(*v)).collect(), exp }
    }
    // The clone is cheap to get right: binders and bodies are replaced one by one in the copy.
    fn exp(&mut self, exp: &Exp) -> Exp {
        match exp {
            Exp::Match(a, arms) => {
                let a = substitute_atom(*a, &self.subst);
                Exp::Match(a, arms.iter().map(|l| self.lam(l)).collect())
            }
            Exp::Loop(l) => {
                let mut copy = crate::ir::Loop {
                    params: Vec::with_capacity(l.params.len()),
                    form: LoopForm::While(Body::default()),
                    body: Body::default(),
                    collect: l.collect,
                    attrs: l.attrs.clone(),
                };
                let inits: Vec<Atom> =
                    l.params.iter().map(|(_, a)| substitute_atom(*a, &self.subst)).collect();
                for ((v, _), init) in l.params.iter().zip(inits) {
                    copy.params.push((self.fresh(*v), init));
                }
                copy.form = match &l.form {
                    LoopForm::For { i, n } => {
                        let n = substitute_atom(*n, &self.subst);
                        LoopForm::For { i: self.fresh(*i), n }
                    }
                    LoopForm::While(cond) => LoopForm::While(self.body(cond)),
                };
                copy.body = self.body(&l.body);
                Exp::Loop(copy)
            }
            Exp::If(c, a, b) => {
                let c = substitute_atom(*c, &self.subst);
                Exp::If(c, self.body(a), self.body(b))
            }
            Exp::WithAcc(inits, lam) => {
                let inits = inits.iter().map(|a| substitute_atom(*a, &self.subst)).collect();
                Exp::WithAcc(inits, self.lam(lam))
            }
            Exp::Soac(_) | Exp::Vjp { .. } | Exp::Jvp { .. } | Exp::Custom { .. } => {
                let mut copy = exp.clone();
                copy.map_atoms(|a| substitute_atom(a, &self.subst));
                for lam in copy.lams_mut() {
                    *lam = self.lam(lam);
                }
                copy
            }
            Exp::Marked(mark, body) => Exp::Marked(*mark, self.body(body)),
            Exp::Par(bodies) => Exp::Par(bodies.iter().map(|b| self.body(b)).collect()),
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
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
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => {
                let mut copy = exp.clone();
                copy.map_atoms(|a| substitute_atom(a, &self.subst));
                copy
            }
        }
    }
}

impl Exp {
    /// The lambda operands, in the order in which they are written.
    pub fn lams_mut(&mut self) -> Vec<&mut Lam> {
        use crate::ir::Soac;
        match self {
            Exp::Match(_, arms) => arms.iter_mut().collect(),
            Exp::Soac(
                Soac::Map { lam, .. }
                | Soac::Reduce { lam, .. }
                | Soac::Scan { lam, .. }
                | Soac::Hist { lam, .. },
            )
            | Exp::WithAcc(_, lam)
            | Exp::Vjp { lam, .. }
            | Exp::Jvp { lam, .. } => vec![lam],
            Exp::Soac(Soac::Fused { pre, lam, .. }) => vec![pre, lam],
            Exp::Custom { primal, rule, args: _, tape: _ } => vec![primal, rule],
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::If(..)
            | Exp::Loop(_)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
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
            | Exp::Soac(Soac::Scatter { .. })
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::Marked(..)
            | Exp::StopGradient(_)
            | Exp::Par(_)
            | Exp::Assert(..)
            | Exp::Check(..) => Vec::new(),
        }
    }
}
