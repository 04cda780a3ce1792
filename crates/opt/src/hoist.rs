//! Code that does not depend on the iteration moves in front of loops and array operations.
//!
//! Two kinds of code move. *Cheap* code costs a constant and cannot stop the program: primitives (not integer division
//! and powers unless the divisor is a constant other than zero), components, and sizes, those of a row of an argument of
//! `map` included, for arrays are regular. It moves as it is; an operation that runs zero times gains a constant cost, all
//! others lose it. *Expensive* code is array operations, loops and calls that depend on nothing in the body, with what
//! they need. It moves under the condition that the operation runs at all (`if 0 < width`), so it neither stops a program
//! that would not have stopped, nor adds work; a width known to be positive needs no condition.
//!
//! Code leaves bodies of loops, conditions of `while` loops (cheap code only), and operators of `map`, `reduce`, `scan`,
//! `reduce_by_index`; it does not leave branches, marked bodies, accumulator scopes or functions under a derivative.
//! Arrays leave only where the body reads them and does not write, return or carry them: elsewhere each iteration needs
//! one of its own. Assertions, checks and accumulations stay.
//!
//! Source: classic; the guard is that of loop inversion.

use crate::Ctx;
use crate::effects::{accumulates, mentions};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_stms, substitute_atom};
use pullback_core::traverse::{free_vars_exp, used_vars};
use pullback_core::{Atom, Body, Exp, Loop, LoopForm, Origin, Program, Soac, Stm, Type, Var, VarInfo};
use pullback_prim::{Op, Prim, Scalar};

/// Runs the pass. Cost: the size of the program times the nesting depth of the code that moves.
pub fn hoist(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        hoist_in(program, &mut body);
        program.funs[id].body = body;
    }
}

fn hoist_in(program: &mut Program, body: &mut Body) {
    let mut out = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        for scope in stm.exp.bodies_mut() {
            hoist_in(program, scope.body);
        }
        if let Some(trip) = trip(&stm.exp) {
            let rows = rows(&stm.exp);
            for scope in stm.exp.bodies_mut() {
                let varying: IdSet<Var> = scope.binds.iter().collect();
                take_cheap(scope.body, varying.clone(), &rows, &mut out);
                take_expensive(program, scope.body, varying, trip, &mut out);
            }
        }
        out.push(stm);
    }
    body.stms = out;
}

/// How often the bodies of an operation run.
#[derive(Clone, Copy)]
enum Trip {
    /// So often.
    Width(Atom),
    /// Nobody knows; the condition of a `while` loop decides.
    Unknown,
}

fn trip(exp: &Exp) -> Option<Trip> {
    match exp {
        Exp::Loop(Loop { form: LoopForm::For { n, .. }, .. }) => Some(Trip::Width(*n)),
        Exp::Loop(_) => Some(Trip::Unknown),
        Exp::Soac(soac) => match soac {
            Soac::Map { width, .. } | Soac::Fused { width, .. } => Some(Trip::Width(*width)),
            // An operator need not run where there is one element; a condition for that is not worth it.
            Soac::Reduce { .. } | Soac::Scan { .. } | Soac::Hist { .. } => Some(Trip::Unknown),
            Soac::Scatter { .. } => None,
        },
        _ => None,
    }
}

/// The arrays whose rows the parameters of a `map` are.
fn rows(exp: &Exp) -> IdMap<Var, Atom> {
    match exp {
        Exp::Soac(Soac::Map { lam, arrays, .. } | Soac::Fused { pre: lam, arrays, .. }) => {
            lam.params.iter().copied().zip(arrays.iter().copied()).collect()
        }
        _ => IdMap::new(),
    }
}

/// Moves the cheap statements of `body` that depend on nothing in `varying` to `out`.
fn take_cheap(body: &mut Body, mut varying: IdSet<Var>, rows: &IdMap<Var, Atom>, out: &mut Vec<Stm>) {
    out.extend(body.stms.extract_if(.., |stm| {
        if let Exp::Size(Atom::Var(row), d) = stm.exp
            && let Some(array) = rows.get(&row)
        {
            stm.exp = Exp::Size(*array, d + 1);
        }
        let moves = is_cheap_and_safe(&stm.exp) && !mentions(&stm.exp, &|v| varying.contains(&v));
        if !moves {
            varying.extend(&stm.pat);
        }
        moves
    }));
}

/// Whether the expression costs a constant and cannot stop the program.
pub(crate) fn is_cheap_and_safe(exp: &Exp) -> bool {
    match exp {
        Exp::Prim(prim, args) if prim.may_stop() => match (prim, args.get(1)) {
            (Prim::Op(Op::Pow, _), Some(Atom::Const(c))) => c.as_i64() >= 0,
            (_, Some(Atom::Const(c))) => c.as_i64() != 0,
            _ => false,
        },
        Exp::Prim(..) => true,
        Exp::Size(..) | Exp::Proj(..) => true,
        _ => false,
    }
}

/// The most steps that are made in any case instead of in one branch.
const LITTLE: u64 = 4;

/// Whether statements may run in any case instead of in one branch: few steps, and none can stop the program.
pub(crate) fn holds_little<'a>(stms: impl IntoIterator<Item = &'a Stm>) -> bool {
    let cost = |stm: &Stm| match &stm.exp {
        Exp::Prim(prim, _) if is_cheap_and_safe(&stm.exp) => Some(prim.cost()),
        _ => None,
    };
    stms.into_iter().map(cost).sum::<Option<u64>>().is_some_and(|cost| cost <= LITTLE)
}

/// Moves array operations, loops and calls that depend on nothing in `varying`, with what they need, to `out`.
fn take_expensive(
    program: &mut Program,
    body: &mut Body,
    varying: IdSet<Var>,
    trip: Trip,
    out: &mut Vec<Stm>,
) {
    let Trip::Width(width) = trip else { return };
    let always = matches!(width, Atom::Const(n) if n.as_i64() > 0);
    if !body.stms.iter().any(|s| is_expensive(&s.exp)) {
        return;
    }
    let moving = movable(program, body, varying, always);
    if !moving.contains(&true) {
        return;
    }
    let mut flags = moving.into_iter();
    let (group, kept): (Vec<Stm>, Vec<Stm>) =
        std::mem::take(&mut body.stms).into_iter().partition(|_| flags.next().unwrap_or(false));
    body.stms = kept;
    if always {
        out.extend(group);
    } else {
        let used = used_vars(body);
        let pat: Vec<Var> = group.iter().flat_map(|s| &s.pat).copied().filter(|v| used.contains(v)).collect();
        guard(program, width, group, pat, out);
    }
}

/// Which statements of the body move: the invariant pure ones that an expensive one of them needs, and the expensive
/// ones whose results may be shared by all iterations.
fn movable(program: &Program, body: &Body, mut varying: IdSet<Var>, always: bool) -> Vec<bool> {
    let mut moving: Vec<bool> = Vec::with_capacity(body.stms.len());
    for stm in &body.stms {
        let moves = !mentions(&stm.exp, &|v| varying.contains(&v)) && is_pure(program, &stm.exp);
        if !moves {
            varying.extend(&stm.pat);
        }
        moving.push(moves);
    }
    // Only what an expensive one needs moves.
    if !body.stms.iter().zip(&moving).any(|(s, moves)| *moves && is_expensive(&s.exp)) {
        return vec![false; body.stms.len()];
    }
    let free = |(s, moves): (&Stm, &bool)| if *moves { free_vars_exp(&s.exp) } else { IdSet::new() };
    // Of those that may move.
    let free: Vec<IdSet<Var>> = body.stms.iter().zip(&moving).map(free).collect();
    // Results that stay behind's users must be sharable; what an expensive statement does not need stays.
    loop {
        let outside = shared(body, &moving);
        let mut needed = IdSet::new();
        let mut changed = false;
        for k in (0..body.stms.len()).rev() {
            if !moving[k] {
                continue;
            }
            let stm = &body.stms[k];
            let escapes: Vec<Var> = stm.pat.iter().copied().filter(|v| outside.used.contains(v)).collect();
            let sharable = escapes.iter().all(|v| match &program.vars[*v].ty {
                Type::Scalar(_) => true,
                Type::Array(_) => !outside.written.contains(v) && (always || is_nested(&stm.exp)),
                Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Acc(_) => false,
            });
            let inner = stm.pat.iter().any(|v| needed.contains(v));
            let wanted = (is_expensive(&stm.exp) && !escapes.is_empty()) || inner;
            if sharable && wanted && depends_on_moving(body, &free[k], &moving, k) {
                needed.extend(free[k].iter().copied());
            } else {
                moving[k] = false;
                changed = true;
            }
        }
        if !changed {
            return moving;
        }
    }
}

/// Whether everything of this body that statement `k` mentions moves too.
fn depends_on_moving(body: &Body, free: &IdSet<Var>, moving: &[bool], k: usize) -> bool {
    let mut before = body.stms[..k].iter().zip(moving);
    before.all(|(s, moves)| *moves || s.pat.iter().all(|v| !free.contains(v)))
}

/// What the statements that stay, and the results, do with variables.
struct Shared {
    used: IdSet<Var>,
    /// Used in another way than by reading elements.
    written: IdSet<Var>,
}

fn shared(body: &Body, moving: &[bool]) -> Shared {
    let mut out = Shared { used: IdSet::new(), written: IdSet::new() };
    for (stm, moves) in body.stms.iter().zip(moving) {
        if !moves {
            out.exp(&stm.exp);
        }
    }
    out.results(&body.result);
    out
}

impl Shared {
    fn results(&mut self, atoms: &[Atom]) {
        let vars = atoms.iter().filter_map(|a| a.var());
        self.used.extend(vars.clone());
        self.written.extend(vars);
    }
    fn exp(&mut self, exp: &Exp) {
        let reads = matches!(
            exp,
            Exp::Index(..)
                | Exp::Size(..)
                | Exp::Gather(..)
                | Exp::Soac(Soac::Map { .. } | Soac::Reduce { .. } | Soac::Fused { .. })
        );
        exp.for_each_atom(|a| {
            if let Atom::Var(v) = a {
                self.used.insert(v);
                if !reads {
                    self.written.insert(v);
                }
            }
        });
        for scope in exp.bodies() {
            for stm in &scope.body.stms {
                self.exp(&stm.exp);
            }
            self.results(&scope.body.result);
        }
    }
}

fn is_expensive(exp: &Exp) -> bool {
    matches!(exp, Exp::Soac(_) | Exp::Loop(_) | Exp::Call(..))
}

/// Whether each step of the operation runs another one.
fn is_nested(exp: &Exp) -> bool {
    is_expensive(exp) && exp.bodies().iter().any(|scope| scope.body.stms.iter().any(|s| is_expensive(&s.exp)))
}

/// Whether the statement only computes its results, and no mark asks to leave it where it is.
fn is_pure(program: &Program, exp: &Exp) -> bool {
    let stays = matches!(
        exp,
        Exp::Assert(..)
            | Exp::Check(..)
            | Exp::Marked(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Vjp { .. }
            | Exp::Jvp { .. }
            | Exp::Custom { .. }
            | Exp::StopGradient(_)
    );
    !stays && !accumulates(program, exp)
}

/// `if 0 < width` around the statements; `pat` are those of their variables that are used behind it.
fn guard(program: &mut Program, width: Atom, group: Vec<Stm>, pat: Vec<Var>, out: &mut Vec<Stm>) {
    let mut subst = Subst::new();
    let stms = copy_stms(program, &group, &mut subst);
    let result = pat.iter().map(|v| substitute_atom((*v).into(), &subst)).collect();
    let mut rest = Body::default();
    for v in &pat {
        let ty = program.vars[*v].ty.clone();
        rest.result.push(match &ty {
            Type::Scalar(s) => Atom::Const(s.zero()),
            Type::Array(elem) => {
                let empty = fresh(program, &ty, "empty");
                rest.stms.push(Stm { pat: vec![empty], exp: Exp::ArrayLit(Type::clone(elem), Vec::new()) });
                empty.into()
            }
            Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Acc(_) => {
                unreachable!("only scalars and arrays are shared")
            }
        });
    }
    let scalar = program.atom_type(width).scalar().unwrap_or(Scalar::I64);
    let runs = fresh(program, &Type::BOOL, "runs");
    let positive = Exp::Prim(Prim::Op(Op::Lt, scalar), vec![Atom::Const(scalar.zero()), width]);
    out.push(Stm { pat: vec![runs], exp: positive });
    let then = Body { stms, result };
    out.push(Stm { pat, exp: Exp::If(runs.into(), then, rest) });
}

fn fresh(program: &mut Program, ty: &Type, hint: &str) -> Var {
    program.vars.push(VarInfo { ty: ty.clone(), hint: hint.into(), origin: Origin::default() })
}
