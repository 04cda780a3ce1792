//! What the sizes of arrays are called: every dimension of every array variable as a constant, a variable, or the size of
//! an array that is bound as far out as possible.
//!
//! Arrays are regular, so the size of a row inside a `map` is a size of the whole array outside. The state of a loop is
//! taken to keep its shape, which is checked on the body; a dimension that changes is a name of its own.
//!
//! A box (a sum with one alternative and one field, see [`Type::boxed`]) is looked through: the dimensions of a value are those of
//! its arrays, then those of the arrays in its boxes, and so on. Boxes in one array may hold arrays of different shapes; their
//! dimensions have a name only if all are equal and the name is in scope where the array is.
//!
//! Sizes that an assertion found equal have one name in what is bound after it.
//!
//! Guarantees: two dimensions with equal names are equal in every run that does not stop with an error, and where both are in
//! scope an assertion that says so has been passed.

use crate::ir::{Atom, Body, Exp, FusedForm, Lam, Loop, LoopForm, Program, Soac, Var, View};
use crate::types::Type;
use pullback_base::index::{IdMap, IdTable};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// The name of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dim {
    /// This number.
    Const(i64),
    /// The value of an `i64` variable.
    Value(Var),
    /// A dimension of an array variable.
    Size(Var, usize),
    /// Not known. Once the analysis is done: the arrays in the boxes of an array need not agree on it.
    Unknown,
}

/// The sizes of all arrays of a function.
#[derive(Debug, Default)]
pub struct Shapes {
    /// The dimensions of all variables, one after the other.
    dims: Vec<Dim>,
    /// Where those of a variable are, of all levels of boxes, and how many of them are before the first box.
    places: IdTable<Var, Place>,
    /// Scalars that are sizes.
    names: IdMap<Var, Dim>,
    /// How deeply the binding of a variable is nested.
    depth: IdTable<Var, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    end: u32,
    rank: u32,
}

/// The sizes in a function with these parameters and this body. Cost: linear in the program, times the nesting of loops whose
/// state changes its shape.
pub fn shapes(program: &Program, params: &[Var], body: &Body) -> Shapes {
    let shapes = Shapes {
        places: IdTable::with_room(program.vars.len()),
        depth: IdTable::with_room(program.vars.len()),
        ..Shapes::default()
    };
    let mut analysis = Analysis { program, shapes, depth: 0, comparisons: IdMap::new(), equal: Vec::new() };
    for p in params {
        analysis.opaque(*p);
    }
    analysis.body(body);
    analysis.shapes
}

impl Shapes {
    /// The dimensions of an array (or of the array that an accumulator is for); empty for what is none. All have names.
    pub fn of(&self, v: Var) -> &[Dim] {
        self.places.get(v).map_or(&[], |p| &self.dims[p.start as usize..][..p.rank as usize])
    }
    /// The dimensions of a value, those of what is in boxes included.
    pub fn through(&self, v: Var) -> &[Dim] {
        self.places.get(v).map_or(&[], |p| &self.dims[p.start as usize..p.end as usize])
    }
    /// The name of a scalar as a size.
    pub fn name(&self, a: Atom) -> Dim {
        match a {
            Atom::Const(ScalarValue::I64(n)) => Dim::Const(n),
            Atom::Const(c) => Dim::Const(if c.scalar().is_integer() { c.as_i64() } else { 0 }),
            Atom::Var(v) => self.names.get(&v).copied().unwrap_or(Dim::Value(v)),
        }
    }
    fn of_atom(&self, a: Atom) -> Vec<Dim> {
        a.var().map_or(Vec::new(), |v| self.through(v).to_vec())
    }
}

/// The rank of what can be indexed: arrays, and accumulators for them.
fn rank(ty: &Type) -> usize {
    match ty {
        Type::Acc(t) => t.rank(),
        t => t.rank(),
    }
}

/// How many dimensions a type has outside of all boxes, inside the first one, inside the next one in that ..
pub fn levels(ty: &Type) -> Vec<usize> {
    let mut out = vec![rank(ty)];
    let mut base = ty.base();
    while let Some(inside) = base.boxed() {
        out.push(inside.rank());
        base = inside.base();
    }
    out
}

struct Analysis<'p> {
    program: &'p Program,
    shapes: Shapes,
    depth: usize,
    /// Conditions that are `a == b`.
    comparisons: IdMap<Var, (Atom, Atom)>,
    /// Sizes that an assertion before this place has found equal: the first is called the second.
    equal: Vec<(Dim, Dim)>,
}

impl Analysis<'_> {
    /// The name after the assertions before this place.
    fn called(&self, d: Dim) -> Dim {
        let next = |d: &Dim| self.equal.iter().find(|(from, _)| from == d).map(|(_, to)| *to);
        std::iter::successors(Some(d), next).last().unwrap_or(d)
    }
    fn name(&self, a: Atom) -> Dim {
        self.called(self.shapes.name(a))
    }
    fn of(&self, a: Atom) -> Vec<Dim> {
        self.shapes.of_atom(a).into_iter().map(|d| self.called(d)).collect()
    }
    /// Two sizes are equal from here to the end of the body. The name from further out is kept.
    fn note_equal(&mut self, (a, b): (Atom, Atom)) {
        let (a, b) = (self.name(a), self.name(b));
        let depth = |d: Dim| match d {
            Dim::Const(_) => None,
            Dim::Unknown => Some(u32::MAX),
            Dim::Value(v) | Dim::Size(v, _) => self.shapes.depth.get(v).copied(),
        };
        match (a, b) {
            // (Of two different numbers: the program has stopped.)
            (Dim::Const(_), Dim::Const(_)) => {}
            _ if a == b => {}
            _ if depth(a) < depth(b) => self.equal.push((b, a)),
            _ => self.equal.push((a, b)),
        }
    }
    fn opaque(&mut self, v: Var) {
        self.bind(v, Vec::new());
    }
    /// Binds a variable to dimensions. A dimension that is not known, or whose name is not in scope, gets the variable's own.
    fn bind(&mut self, v: Var, dims: Vec<Dim>) {
        self.shapes.depth.insert(v, self.depth as u32);
        if let Type::Scalar(_) = self.program.vars[v].ty {
            return;
        }
        let start = self.shapes.dims.len() as u32;
        for (k, own) in self.own(v).into_iter().enumerate() {
            let known = dims.get(k).copied().filter(|d| self.in_scope(*d));
            self.shapes.dims.push(known.unwrap_or(own));
        }
        let (end, rank) = (self.shapes.dims.len() as u32, rank(&self.program.vars[v].ty) as u32);
        self.shapes.places.insert(v, Place { start, end, rank });
    }
    /// The dimensions of a variable named after it. In boxes of an array they have no name.
    fn own(&self, v: Var) -> Vec<Dim> {
        let levels = levels(&self.program.vars[v].ty);
        let first = levels.iter().position(|n| *n > 0).unwrap_or(0);
        let named: usize = levels.iter().take(first + 1).sum();
        let name = |k: usize| if k < named { Dim::Size(v, k) } else { Dim::Unknown };
        (0..levels.iter().sum()).map(name).collect()
    }
    fn in_scope(&self, d: Dim) -> bool {
        match d {
            Dim::Const(_) => true,
            Dim::Unknown => false,
            Dim::Value(v) | Dim::Size(v, _) => {
                self.shapes.depth.get(v).is_some_and(|depth| *depth as usize <= self.depth)
            }
        }
    }
    /// Analyses a nested body whose parameters `enter` binds.
    fn nested<T>(&mut self, enter: impl FnOnce(&mut Self) -> T, body: &Body) -> (T, Vec<Vec<Dim>>) {
        self.depth += 1;
        let out = enter(self);
        self.body(body);
        // By the names from before the body: an executor may make a result where it belongs before an assertion inside.
        let results = body.result.iter().map(|a| self.of(*a)).collect();
        self.depth -= 1;
        (out, results)
    }
    fn lam(&mut self, lam: &Lam, params: Vec<Vec<Dim>>) -> Vec<Vec<Dim>> {
        let enter = |s: &mut Self| {
            // Those of which nothing is known have names too.
            let mut params = params.into_iter();
            for p in &lam.params {
                s.bind(*p, params.next().unwrap_or_default());
            }
        };
        self.nested(enter, &lam.body).1
    }
    fn body(&mut self, body: &Body) {
        let before = self.equal.len();
        for stm in &body.stms {
            let results = self.exp(&stm.exp);
            for (k, v) in stm.pat.iter().enumerate() {
                self.bind(*v, results.get(k).cloned().unwrap_or_default());
            }
            if let [v] = stm.pat[..] {
                self.scalar(v, &stm.exp);
            }
        }
        self.equal.truncate(before);
    }
    fn scalar(&mut self, v: Var, exp: &Exp) {
        let name = match exp {
            Exp::Size(a, k) => self.of(*a).get(*k).copied(),
            Exp::Atom(a) if self.program.vars[v].ty == Type::I64 => Some(self.name(*a)),
            Exp::Prim(Prim::Op(Op::Eq, Scalar::I64), args) => {
                self.comparisons.insert(v, (args[0], args[1]));
                None
            }
            Exp::Assert(condition, ..) => {
                let equal = condition.var().and_then(|c| self.comparisons.get(&c)).copied();
                equal.into_iter().for_each(|equal| self.note_equal(equal));
                None
            }
            _ => None,
        };
        if let Some(name) = name {
            self.shapes.names.insert(v, name);
        }
    }
    fn exp(&mut self, exp: &Exp) -> Vec<Vec<Dim>> {
        let of = |s: &Self, a: &Atom| s.of(*a);
        let name = |s: &Self, a: &Atom| s.name(*a);
        let outer = |n: Dim, mut rest: Vec<Dim>| {
            rest.insert(0, n);
            rest
        };
        let tail = |dims: Vec<Dim>, n: usize| dims.into_iter().skip(n).collect::<Vec<_>>();
        match exp {
            Exp::Atom(a) | Exp::StopGradient(a) => vec![of(self, a)],
            Exp::Reverse(a) | Exp::Rotate(a, _) => vec![of(self, a)],
            Exp::Update(a, _, value) | Exp::UpdateSlice(a, _, value) | Exp::Plus(a, value) => {
                vec![self.written(*a, *value)]
            }
            Exp::Iota(n) => vec![vec![name(self, n)]],
            Exp::Replicate(shape, a) => {
                vec![shape.iter().map(|n| name(self, n)).chain(of(self, a)).collect()]
            }
            Exp::ArrayLit(_, items) => {
                let inner = items.first().map_or(Vec::new(), |a| of(self, a));
                let all = outer(Dim::Const(items.len() as i64), inner);
                let rank = items.first().map_or(0, |a| 1 + self.program.atom_type(*a).rank());
                vec![items.iter().fold(all, |all, a| boxes_agree(all, rank, &of(self, a)))]
            }
            Exp::Index(a, ix) => vec![tail(of(self, a), ix.len())],
            Exp::Slice(a, s) => vec![outer(name(self, &s.len), tail(of(self, a), 1))],
            Exp::Gather(a, is) => {
                let n = of(self, is);
                vec![n.into_iter().take(1).chain(tail(of(self, a), 1)).collect()]
            }
            Exp::Rearrange(perm, a) => vec![rearranged(perm, of(self, a))],
            Exp::Reshape { shape, from, array } => {
                vec![shape.iter().map(|n| name(self, n)).chain(tail(of(self, array), *from)).collect()]
            }
            Exp::Soac(soac) => self.soac(soac),
            Exp::Loop(l) => self.looped(l),
            Exp::If(_, then, otherwise) => {
                let (_, a) = self.nested(|_| {}, then);
                let (_, b) = self.nested(|_| {}, otherwise);
                agreeing(vec![a, b])
            }
            Exp::Match(a, arms) => {
                let inside = match self.program.atom_type(*a).boxed() {
                    Some(_) => vec![of(self, a)],
                    None => Vec::new(),
                };
                let arms: Vec<_> = arms.iter().map(|arm| self.lam(arm, inside.clone())).collect();
                agreeing(arms)
            }
            Exp::Inject(ty, _, fields) if ty.boxed().is_some() => vec![of(self, &fields[0])],
            Exp::Concat(arrays) => {
                let mut tails = arrays.iter().map(|a| tail(of(self, a), 1));
                let first = tails.next().unwrap_or_default();
                let inner = tails.fold(first, |all, other| boxes_agree(all, 0, &other));
                let mut sizes = arrays.iter().map(|a| of(self, a).first().copied());
                let rows = sizes.try_fold(0i64, |sum, size| match size {
                    // (One below zero stops the program, but others may be made before.)
                    Some(Dim::Const(n)) if n >= 0 => sum.checked_add(n),
                    _ => None,
                });
                let rows = rows.map_or(Dim::Unknown, Dim::Const);
                vec![outer(rows, inner)]
            }
            Exp::WithAcc(inits, lam) => {
                let rank = |a: &Atom| rank(&self.program.atom_type(*a));
                let inits: Vec<Vec<Dim>> =
                    inits.iter().map(|a| of(self, a).into_iter().take(rank(a)).collect()).collect();
                let results = self.lam(lam, inits.clone());
                inits.into_iter().chain(results).collect()
            }
            Exp::AccView(acc, view) => vec![self.view(of(self, acc), view)],
            Exp::Marked(_, body) => self.nested(|_| {}, body).1,
            Exp::Par(bodies) => bodies.iter().flat_map(|b| self.nested(|_| {}, b).1).collect(),
            Exp::Custom { primal, rule, args, tape: _ } => {
                let args: Vec<_> = args.iter().map(|a| of(self, a)).collect();
                self.lam(rule, args.clone());
                self.lam(primal, args)
            }
            // The results of the function come first; of the others nothing is said.
            Exp::Vjp { lam, args, .. } | Exp::Jvp { lam, args, .. } => {
                let args = args.iter().map(|a| of(self, a)).collect();
                self.lam(lam, args)
            }
            Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::Size(..)
            | Exp::AccAdd(..)
            | Exp::Assert(..)
            | Exp::Check(..) => Vec::new(),
        }
    }
    /// The dimensions of an array after values were written into or added to it: in its boxes, those that they agree on.
    fn written(&self, a: Atom, value: Atom) -> Vec<Dim> {
        let rank = self.program.atom_type(a).rank();
        boxes_agree(self.of(a), rank, &self.of(value))
    }
    fn view(&self, dims: Vec<Dim>, view: &View) -> Vec<Dim> {
        let name = |a: &Atom| self.name(*a);
        match view {
            View::Index(ix) => dims.into_iter().skip(ix.len()).collect(),
            View::Slice(s) => std::iter::once(name(&s.len)).chain(dims.into_iter().skip(1)).collect(),
            View::Proj(_) => Vec::new(),
            View::Rearrange(perm) => rearranged(perm, dims),
            View::Reshape { shape, from } => {
                shape.iter().map(name).chain(dims.into_iter().skip(*from)).collect()
            }
            View::Reverse | View::Rotate(_) => dims,
        }
    }
    fn rows(&self, arrays: &[Atom]) -> Vec<Vec<Dim>> {
        arrays.iter().map(|a| self.of(*a).into_iter().skip(1).collect()).collect()
    }
    fn soac(&mut self, soac: &Soac) -> Vec<Vec<Dim>> {
        let stacked = |n: Dim, dims: Vec<Dim>| std::iter::once(n).chain(dims).collect::<Vec<_>>();
        match soac {
            Soac::Map { width, lam, arrays } => {
                let n = self.name(*width);
                let rows = self.rows(arrays);
                self.lam(lam, rows).into_iter().map(|d| stacked(n, d)).collect()
            }
            Soac::Reduce { lam, neutral, arrays, .. } => {
                let rows = self.rows(arrays);
                self.operator(lam, neutral, rows)
            }
            Soac::Scan { width, lam, neutral, arrays } => {
                let n = self.name(*width);
                let rows = self.rows(arrays);
                self.operator(lam, neutral, rows).into_iter().map(|d| stacked(n, d)).collect()
            }
            Soac::Fused { form, width, pre, lam, neutral, arrays } => {
                let n = self.name(*width);
                let rows = self.rows(arrays);
                let mut made = self.lam(pre, rows);
                let others = made.split_off(neutral.len());
                let mut combined = self.operator(lam, neutral, made);
                if *form == FusedForm::Scan {
                    combined = combined.into_iter().map(|d| stacked(n, d)).collect();
                }
                combined.extend(others.into_iter().map(|d| stacked(n, d)));
                combined
            }
            Soac::Hist { lam, dst, values, .. } => {
                let dsts: Vec<Vec<Dim>> = dst.iter().map(|a| self.of(*a)).collect();
                let cells = dsts.iter().map(|d| d.iter().skip(1).copied().collect::<Vec<_>>());
                let params = cells.chain(self.rows(values)).collect();
                let cells = self.lam(lam, params);
                let rank = |a: &Atom| self.program.atom_type(*a).rank();
                let written = dsts.into_iter().zip(&cells).zip(dst);
                written.map(|((d, cell), a)| boxes_agree(d, rank(a), cell)).collect()
            }
            Soac::Scatter { dst, values, .. } => vec![self.written(*dst, *values)],
        }
    }
    /// The shapes of what an operator combines, starting from its neutral element.
    fn operator(&mut self, lam: &Lam, neutral: &[Atom], rows: Vec<Vec<Dim>>) -> Vec<Vec<Dim>> {
        let mut state: Vec<Vec<Dim>> = neutral.iter().map(|a| self.of(*a)).collect();
        let params: Vec<Var> = lam.params.iter().copied().take(neutral.len()).collect();
        loop {
            let all = state.iter().cloned().chain(rows.clone()).collect();
            let results = self.lam(lam, all);
            if !self.forget_changed(&params, &mut state, &results) {
                return state;
            }
        }
    }
    fn looped(&mut self, l: &Loop) -> Vec<Vec<Dim>> {
        let params: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        let mut state: Vec<Vec<Dim>> = l.params.iter().map(|p| self.of(p.1)).collect();
        let n = match &l.form {
            LoopForm::For { n, .. } => Some(*n),
            LoopForm::While(_) => None,
        };
        loop {
            let dims = state.clone();
            let enter = |s: &mut Self| {
                for (p, dims) in params.iter().zip(dims) {
                    s.bind(*p, dims);
                }
                match &l.form {
                    LoopForm::For { i, n: _ } => s.opaque(*i),
                    LoopForm::While(condition) => s.body(condition),
                }
            };
            let (_, results) = self.nested(enter, &l.body);
            if self.forget_changed(&params, &mut state, &results) {
                continue;
            }
            let width = match n {
                Some(Atom::Const(c)) => Dim::Const(c.as_i64().max(0)),
                // May be negative, when there is no element. Whoever allocates by this name takes care of that.
                Some(n) => self.name(n),
                None => Dim::Unknown,
            };
            let collected = results.into_iter().skip(params.len());
            let collected: Vec<_> = collected.map(|d| std::iter::once(width).chain(d).collect()).collect();
            return state.into_iter().chain(collected).collect();
        }
    }
    /// Where a result's dimension is not that of the state, the state's becomes unknown. Whether that happened.
    fn forget_changed(&self, params: &[Var], state: &mut [Vec<Dim>], results: &[Vec<Dim>]) -> bool {
        let mut changed = false;
        for (p, (dims, result)) in params.iter().zip(state.iter_mut().zip(results)) {
            let seen = self.shapes.through(*p).to_vec();
            for (k, own) in self.own(*p).into_iter().enumerate() {
                let expected = seen.get(k).copied();
                if result.get(k).copied() != expected && dims.get(k).is_some_and(|d| *d != own) {
                    dims[k] = own;
                    changed = true;
                }
            }
        }
        changed
    }
}

/// The dimensions `all`, of which the first `rank` are equal anyway, where they are those of a part (aligned at the end) too.
fn boxes_agree(mut all: Vec<Dim>, rank: usize, part: &[Dim]) -> Vec<Dim> {
    let missing = all.len().saturating_sub(part.len());
    for (k, d) in all.iter_mut().enumerate().skip(rank) {
        if k.checked_sub(missing).and_then(|k| part.get(k)) != Some(d) {
            *d = Dim::Unknown;
        }
    }
    all
}

fn rearranged(perm: &[usize], dims: Vec<Dim>) -> Vec<Dim> {
    (0..dims.len()).map(|i| dims[perm.get(i).copied().unwrap_or(i)]).collect()
}

/// Dimensions on which all branches agree.
fn agreeing(arms: Vec<Vec<Vec<Dim>>>) -> Vec<Vec<Dim>> {
    let Some((first, rest)) = arms.split_first() else { return Vec::new() };
    (0..first.len())
        .map(|r| {
            let agree =
                |k: usize, d: Dim| rest.iter().all(|arm| arm.get(r).and_then(|a| a.get(k)) == Some(&d));
            first[r].iter().enumerate().map(|(k, d)| if agree(k, *d) { *d } else { Dim::Unknown }).collect()
        })
        .collect()
}
