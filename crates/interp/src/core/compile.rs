//! From core to [`super::code`]: slots and last uses.
//!
//! Assumes a checked program. A body that runs at most once per run of its surroundings (branches, `with_acc`) may move
//! variables of its surroundings; a body that may run several times (lambdas of SOACs, loops, derivatives) may move only what
//! it binds itself, and what it used of its surroundings dies after the whole statement. Cost: linear in the program.

use super::code::*;
use pullback_base::index::Index;
use pullback_core::{Atom, Body, Exp, Fun, Lam, Loop, LoopForm, Program, SliceDim, Soac, Type, Var, View};
use pullback_prim::Scalar;

/// The functions of a program in order of their ids.
pub(crate) fn compile(program: &Program) -> Vec<FunCode> {
    let n = program.vars.len();
    let mut c = Compiler {
        program,
        slot: vec![0; n],
        level: vec![0; n],
        live: vec![false; n],
        log: Vec::new(),
        captured: Vec::new(),
        depth: 0,
        slots: 0,
    };
    program.funs.iter().map(|f| c.fun(f)).collect()
}

struct Compiler<'p> {
    program: &'p Program,
    slot: Vec<Slot>,
    /// How many repeated bodies of its function are around the binding of a variable.
    level: Vec<u32>,
    /// Whether the variable is read later; walked backwards.
    live: Vec<bool>,
    /// Variables made live, oldest first: lets branches undo and compare.
    log: Vec<Var>,
    /// Per open repeated body: the variables of its surroundings that it reads.
    captured: Vec<Vec<Var>>,
    depth: u32,
    slots: u32,
}

/// Grows the stack where nesting is deep.
pub(crate) fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 * 1024, 4 * 1024 * 1024, f)
}

impl Compiler<'_> {
    fn fun(&mut self, fun: &Fun) -> FunCode {
        self.slots = 0;
        self.depth = 0;
        for &p in &fun.params {
            self.bind(p);
        }
        self.bind_body(&fun.body);
        let lam = self.lam_parts(&fun.params, &fun.body);
        FunCode { name: fun.name.clone(), slots: self.slots as usize, lam }
    }

    // First pass, forwards: slots and levels.

    fn bind(&mut self, v: Var) {
        self.slot[v.index()] = self.slots;
        self.level[v.index()] = self.depth;
        self.slots += 1;
    }
    fn bind_lam(&mut self, lam: &Lam) {
        lam.params.iter().for_each(|&p| self.bind(p));
        self.bind_body(&lam.body);
    }
    fn bind_repeated(&mut self, lam: &Lam) {
        self.depth += 1;
        self.bind_lam(lam);
        self.depth -= 1;
    }
    fn bind_body(&mut self, body: &Body) {
        for stm in &body.stms {
            deep(|| self.bind_exp(&stm.exp));
            stm.pat.iter().for_each(|&v| self.bind(v));
        }
    }
    fn bind_exp(&mut self, exp: &Exp) {
        match exp {
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
            | Exp::Check(..)
            | Exp::Soac(Soac::Scatter { .. }) => {}
            Exp::Match(_, arms) => arms.iter().for_each(|l| self.bind_lam(l)),
            Exp::If(_, a, b) => {
                self.bind_body(a);
                self.bind_body(b);
            }
            Exp::Loop(l) => {
                self.depth += 1;
                l.params.iter().for_each(|p| self.bind(p.0));
                match &l.form {
                    LoopForm::For { i, .. } => self.bind(*i),
                    LoopForm::While(cond) => self.bind_body(cond),
                }
                self.bind_body(&l.body);
                self.depth -= 1;
            }
            Exp::Soac(
                Soac::Map { lam, .. }
                | Soac::Reduce { lam, .. }
                | Soac::Scan { lam, .. }
                | Soac::Hist { lam, .. },
            )
            | Exp::Vjp { lam, .. }
            | Exp::Jvp { lam, .. } => self.bind_repeated(lam),
            Exp::Soac(Soac::Fused { pre, lam, .. }) => {
                self.bind_repeated(pre);
                self.bind_repeated(lam);
            }
            // The rule of a custom derivative is never run here.
            Exp::WithAcc(_, lam) | Exp::Custom { primal: lam, .. } => self.bind_lam(lam),
            Exp::Marked(_, body) => self.bind_body(body),
            Exp::Par(bodies) => {
                self.depth += 1;
                bodies.iter().for_each(|b| self.bind_body(b));
                self.depth -= 1;
            }
        }
    }

    // Second pass, backwards: last uses.

    fn use_var(&mut self, v: Var) -> Arg {
        let slot = self.slot[v.index()];
        if self.level[v.index()] != self.depth {
            if let Some(captured) = self.captured.last_mut() {
                captured.push(v);
            }
            return Arg::Keep(slot);
        }
        if self.live[v.index()] {
            return Arg::Keep(slot);
        }
        self.make_live(v);
        Arg::Move(slot)
    }
    fn make_live(&mut self, v: Var) {
        self.live[v.index()] = true;
        self.log.push(v);
    }
    fn arg(&mut self, a: Atom) -> Arg {
        match a {
            Atom::Var(v) => self.use_var(v),
            Atom::Const(c) => Arg::Const(c),
        }
    }
    /// Operands in evaluation order: the last occurrence is the last use.
    fn args(&mut self, atoms: &[Atom]) -> Box<[Arg]> {
        let mut out: Vec<Arg> = atoms.iter().rev().map(|&a| self.arg(a)).collect();
        out.reverse();
        out.into()
    }
    fn slice(&mut self, s: &SliceDim) -> SliceCode {
        let stride = self.arg(s.stride);
        let len = self.arg(s.len);
        SliceCode { start: self.arg(s.start), len, stride }
    }
    fn body(&mut self, body: &Body) -> BodyCode {
        let result = self.args(&body.result);
        let mut stms: Vec<StmCode> = Vec::with_capacity(body.stms.len());
        for stm in body.stms.iter().rev() {
            let mut drops = Vec::new();
            for &v in &stm.pat {
                if !std::mem::take(&mut self.live[v.index()]) {
                    drops.push(self.slot[v.index()]);
                }
            }
            let exp = deep(|| self.exp(&stm.exp, &mut drops));
            let pat: Box<[Slot]> = stm.pat.iter().map(|v| self.slot[v.index()]).collect();
            let origin = stm.pat.first().map(|v| &self.program.vars[*v].origin);
            let span = origin.and_then(|o| o.span);
            let rule = origin.and_then(|o| o.rule).map(|r| r.0);
            let tapes = stm.pat.iter().filter(|v| self.program.vars[**v].origin.is_tape());
            let tapes = tapes.map(|v| self.slot[v.index()]).collect();
            stms.push(StmCode { pat, exp, span, rule, tapes, drops });
        }
        stms.reverse();
        BodyCode { drops: Vec::new(), stms, result }
    }
    /// A body with parameters; parameters that it does not use are dropped first.
    fn lam_parts(&mut self, params: &[Var], body: &Body) -> LamCode {
        let mut code = self.body(body);
        for &p in params {
            if !std::mem::take(&mut self.live[p.index()]) {
                code.drops.push(self.slot[p.index()]);
            }
        }
        LamCode { params: params.iter().map(|p| self.slot[p.index()]).collect(), body: code }
    }
    fn lam(&mut self, lam: &Lam) -> LamCode {
        self.lam_parts(&lam.params, &lam.body)
    }
    /// Compiles something that may run several times; returns what it reads of its surroundings.
    fn repeated<T>(&mut self, drops: &mut Vec<Slot>, f: impl FnOnce(&mut Self) -> T) -> (T, Vec<Slot>) {
        self.depth += 1;
        self.captured.push(Vec::new());
        let code = f(self);
        self.depth -= 1;
        let mut captured = self.captured.pop().unwrap_or_default();
        captured.sort_unstable();
        captured.dedup();
        let slots = captured.iter().map(|v| self.slot[v.index()]).collect();
        for v in captured {
            if let Arg::Move(slot) = self.use_var(v) {
                drops.push(slot);
            }
        }
        (code, slots)
    }
    fn repeated_lam(&mut self, lam: &Lam, drops: &mut Vec<Slot>) -> LamCode {
        self.repeated(drops, |c| c.lam(lam)).0
    }
    /// Compiles alternatives of which one runs: each drops what only the others use.
    fn branches(&mut self, n: usize, mut f: impl FnMut(&mut Self, usize) -> LamCode) -> Vec<LamCode> {
        let mut codes = Vec::with_capacity(n);
        let mut used: Vec<Vec<Var>> = Vec::with_capacity(n);
        for k in 0..n {
            let mark = self.log.len();
            codes.push(f(self, k));
            let mut mine: Vec<Var> = self.log.split_off(mark);
            mine.retain(|v| std::mem::take(&mut self.live[v.index()]));
            mine.sort_unstable();
            mine.dedup();
            used.push(mine);
        }
        let mut all: Vec<Var> = used.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        for (code, mine) in codes.iter_mut().zip(&used) {
            let others = all.iter().filter(|v| mine.binary_search(v).is_err());
            code.body.drops.extend(others.map(|v| self.slot[v.index()]));
        }
        for v in all {
            self.make_live(v);
        }
        codes
    }

    fn elem(&self, ty: &Type) -> Elem {
        Elem { kind: ty.base().scalar(), rank: ty.rank() }
    }
    fn result_elems(&self, lam: &Lam) -> Box<[Elem]> {
        lam.body.result.iter().map(|&a| self.elem(&self.program.atom_type(a))).collect()
    }
    fn types(&self, atoms: &[Atom]) -> Vec<Type> {
        atoms.iter().map(|&a| self.program.atom_type(a)).collect()
    }

    fn exp(&mut self, exp: &Exp, drops: &mut Vec<Slot>) -> ExpCode {
        match exp {
            Exp::Match(..)
            | Exp::If(..)
            | Exp::Loop(_)
            | Exp::Call(..)
            | Exp::Soac(
                Soac::Map { .. }
                | Soac::Reduce { .. }
                | Soac::Scan { .. }
                | Soac::Fused { .. }
                | Soac::Hist { .. },
            )
            | Exp::WithAcc(..)
            | Exp::Vjp { .. }
            | Exp::Jvp { .. }
            | Exp::Custom { .. }
            | Exp::Marked(..)
            | Exp::Par(_) => ExpCode::Compound(Box::new(self.compound(exp, drops))),
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
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
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => ExpCode::Simple(self.simple(exp)),
        }
    }

    /// The operands of each expression are resolved last to first, because last uses are found walking backwards.
    fn simple(&mut self, exp: &Exp) -> Simple {
        match exp {
            Exp::Atom(a) => Simple::Atom(self.arg(*a)),
            Exp::Prim(prim, atoms) => match &*self.args(atoms) {
                [x] => Simple::Prim1(*prim, *x),
                [x, y] => Simple::Prim2(*prim, *x, *y),
                more => Simple::PrimN(*prim, more.into()),
            },
            Exp::Tuple(items) => Simple::Tuple(self.args(items)),
            Exp::Proj(a, i) => Simple::Proj(self.arg(*a), *i),
            Exp::Inject(_, k, items) => Simple::Inject(*k, self.args(items)),
            Exp::ArrayLit(t, items) => Simple::ArrayLit(self.elem(t), self.args(items)),
            Exp::Index(a, ix) => {
                let ix = self.args(ix);
                Simple::Index(self.arg(*a), ix)
            }
            Exp::Slice(a, s) => {
                let s = self.slice(s);
                Simple::Slice(self.arg(*a), s)
            }
            Exp::Update(a, ix, v) => {
                let v = self.arg(*v);
                let ix = self.args(ix);
                Simple::Update(self.arg(*a), ix, v)
            }
            Exp::UpdateSlice(a, s, v) => {
                let v = self.arg(*v);
                let s = self.slice(s);
                Simple::UpdateSlice(self.arg(*a), s, v)
            }
            Exp::Gather(a, ix) => {
                let ix = self.arg(*ix);
                Simple::Gather(self.arg(*a), ix)
            }
            Exp::Size(a, d) => Simple::Size(self.arg(*a), *d),
            Exp::Iota(n) => Simple::Iota(self.arg(*n)),
            Exp::Replicate(shape, a) => {
                let elem = self.elem(&self.program.atom_type(*a));
                let a = self.arg(*a);
                Simple::Replicate(elem, self.args(shape), a)
            }
            Exp::Rearrange(perm, a) => Simple::Rearrange(perm.as_slice().into(), self.arg(*a)),
            Exp::Reshape { shape, from, array } => {
                let array = self.arg(*array);
                Simple::Reshape(self.args(shape), *from, array)
            }
            Exp::Concat(arrays) => Simple::Concat(self.args(arrays)),
            Exp::Reverse(a) => Simple::Reverse(self.arg(*a)),
            Exp::Rotate(a, k) => {
                let k = self.arg(*k);
                Simple::Rotate(self.arg(*a), k)
            }
            Exp::Soac(Soac::Scatter { width, dst, indices, values }) => {
                let values = self.arg(*values);
                let indices = self.arg(*indices);
                let dst = self.arg(*dst);
                Simple::Scatter { width: self.arg(*width), dst, indices, values }
            }
            Exp::AccView(acc, view) => {
                let view = self.view(view);
                Simple::AccView(self.arg(*acc), view)
            }
            Exp::AccAdd(acc, ix, v) => {
                // The value is taken before the indices are read.
                let ix = self.args(ix);
                let v = self.arg(*v);
                Simple::AccAdd(self.arg(*acc), ix, v)
            }
            Exp::Plus(a, b) => {
                let b = self.arg(*b);
                Simple::Plus(self.arg(*a), b)
            }
            Exp::StopGradient(a) => Simple::StopGradient(self.arg(*a)),
            Exp::Assert(c, message, values) => {
                let values = self.args(values);
                Simple::Assert(self.arg(*c), message.clone(), values)
            }
            Exp::Check(check, args) => Simple::Check(*check, self.args(args)),
            Exp::Match(..)
            | Exp::If(..)
            | Exp::Loop(_)
            | Exp::Call(..)
            | Exp::Soac(
                Soac::Map { .. }
                | Soac::Reduce { .. }
                | Soac::Scan { .. }
                | Soac::Fused { .. }
                | Soac::Hist { .. },
            )
            | Exp::WithAcc(..)
            | Exp::Vjp { .. }
            | Exp::Jvp { .. }
            | Exp::Custom { .. }
            | Exp::Marked(..)
            | Exp::Par(_) => unreachable!("compound expressions are compiled by `compound`"),
        }
    }

    fn view(&mut self, view: &View) -> ViewCode {
        match view {
            View::Index(ix) => ViewCode::Index(self.args(ix)),
            View::Slice(s) => ViewCode::Slice(self.slice(s)),
            View::Proj(i) => ViewCode::Proj(*i),
            View::Rearrange(perm) => ViewCode::Rearrange(perm.as_slice().into()),
            View::Reshape { shape, from } => ViewCode::Reshape(self.args(shape), *from),
            View::Reverse => ViewCode::Reverse,
            View::Rotate(k) => ViewCode::Rotate(self.arg(*k)),
        }
    }

    fn compound(&mut self, exp: &Exp, drops: &mut Vec<Slot>) -> Compound {
        match exp {
            Exp::Match(x, arms) => {
                let arms = self.branches(arms.len(), |c, k| c.lam(&arms[k]));
                Compound::Match(self.arg(*x), arms)
            }
            Exp::If(c, then, otherwise) => {
                let mut arms =
                    self.branches(2, |c, k| c.lam_parts(&[], if k == 0 { then } else { otherwise }));
                let otherwise = arms.pop().map(|l| l.body);
                let then = arms.pop().map(|l| l.body);
                let empty = || BodyCode { drops: Vec::new(), stms: Vec::new(), result: Box::new([]) };
                Compound::If(self.arg(*c), then.unwrap_or_else(empty), otherwise.unwrap_or_else(empty))
            }
            Exp::Loop(l) => Compound::Loop(self.loop_(l, drops)),
            Exp::Call(f, args) => Compound::Call(f.index(), self.args(args)),
            Exp::Soac(soac) => self.soac(soac, drops),
            Exp::WithAcc(inits, lam) => {
                let lam = self.lam(lam);
                Compound::WithAcc(self.args(inits), lam)
            }
            Exp::Vjp { lam, args, cotangents, seeds, .. } => {
                Compound::Diff(self.diff(true, lam, args, (cotangents, *seeds), drops))
            }
            Exp::Jvp { lam, args, tangents, seeds, .. } => {
                Compound::Diff(self.diff(false, lam, args, (tangents, *seeds), drops))
            }
            Exp::Custom { primal, args, .. } => {
                let lam = self.lam(primal);
                Compound::Apply(lam, self.args(args))
            }
            Exp::Marked(_, body) => Compound::Body(self.body(body)),
            Exp::Par(bodies) => {
                // The bodies may run in any order, so none of them may move what another one reads.
                let (codes, _) =
                    self.repeated(drops, |c| bodies.iter().map(|b| c.body(b)).collect::<Vec<_>>());
                Compound::Par(codes)
            }
            _ => unreachable!("simple expressions are compiled by `simple`"),
        }
    }

    fn diff(
        &mut self,
        reverse: bool,
        lam: &Lam,
        args: &[Atom],
        (directions, seeds): (&[Atom], Option<Atom>),
        drops: &mut Vec<Slot>,
    ) -> DiffCode {
        let arg_types = self.types(args);
        let result_types = self.types(&lam.body.result);
        let (lam, captures) = self.repeated(drops, |c| c.lam(lam));
        let seeds = seeds.map(|k| self.arg(k));
        let directions = self.args(directions);
        let args = self.args(args);
        DiffCode { reverse, lam, captures, args, directions, seeds, arg_types, result_types }
    }

    fn loop_(&mut self, l: &Loop, drops: &mut Vec<Slot>) -> LoopCode {
        let params: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        let collected = l.body.result.get(params.len()..).unwrap_or(&[]);
        let collect = collected.iter().map(|&a| self.elem(&self.program.atom_type(a))).collect();
        let ((body, cond), _) = self.repeated(drops, |c| {
            let mut bound = params.clone();
            if let LoopForm::For { i, .. } = l.form {
                bound.push(i);
            }
            let body = c.lam_parts(&bound, &l.body).body;
            let cond = match &l.form {
                LoopForm::While(cond) => {
                    // The condition runs before the body, on the same state.
                    params.iter().for_each(|&p| c.make_live(p));
                    let cond = c.body(cond);
                    params.iter().for_each(|p| c.live[p.index()] = false);
                    Some(cond)
                }
                LoopForm::For { .. } => None,
            };
            (body, cond)
        });
        // The first state is taken before the number of iterations is read.
        let form = match (&l.form, cond) {
            (LoopForm::For { i, n }, _) => FormCode::For {
                i: self.slot[i.index()],
                n: self.arg(*n),
                scalar: self.program.atom_type(*n).scalar().unwrap_or(Scalar::I64),
            },
            (LoopForm::While(_), Some(cond)) => FormCode::While(cond),
            (LoopForm::While(_), None) => unreachable!("the condition was compiled above"),
        };
        let init: Vec<Atom> = l.params.iter().map(|p| p.1).collect();
        let init = self.args(&init);
        let params = params.iter().map(|p| self.slot[p.index()]).collect();
        LoopCode { params, init, form, body, collect }
    }

    fn soac(&mut self, soac: &Soac, drops: &mut Vec<Slot>) -> Compound {
        match soac {
            Soac::Map { width, lam, arrays } => {
                let elems = self.result_elems(lam);
                let lam = self.repeated_lam(lam, drops);
                let arrays = self.args(arrays);
                Compound::Map { width: self.arg(*width), lam, arrays, elems }
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                let lam = self.repeated_lam(lam, drops);
                let arrays = self.args(arrays);
                let neutral = self.args(neutral);
                let width = self.arg(*width);
                Compound::Reduce { width, lam, neutral, arrays, commutative: *commutative }
            }
            Soac::Scan { width, lam, neutral, arrays } => {
                let elems = self.result_elems(lam);
                let lam = self.repeated_lam(lam, drops);
                let arrays = self.args(arrays);
                let neutral = self.args(neutral);
                Compound::Scan { width: self.arg(*width), lam, neutral, arrays, elems }
            }
            Soac::Fused { form, width, pre, lam, neutral, arrays } => {
                let elems = self.result_elems(pre);
                let ((pre, lam), _) = self.repeated(drops, |c| {
                    let lam = c.lam(lam);
                    (c.lam(pre), lam)
                });
                let arrays = self.args(arrays);
                let neutral = self.args(neutral);
                let width = self.arg(*width);
                Compound::Fused(FusedCode { form: *form, width, pre, lam, neutral, arrays, elems })
            }
            Soac::Hist { width, lam, neutral, dst, indices, values } => {
                let lam = self.repeated_lam(lam, drops);
                let values = self.args(values);
                let indices = self.arg(*indices);
                let dst = self.args(dst);
                let neutral = self.args(neutral);
                let width = self.arg(*width);
                Compound::Hist(HistCode { width, lam, neutral, dst, indices, values })
            }
            Soac::Scatter { .. } => unreachable!("scatter is compiled by `simple`"),
        }
    }
}
