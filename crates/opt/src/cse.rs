//! Common subexpressions: an expression equal to one computed before, whose variables are in scope, is replaced by it.
//!
//! Equal means: the same construct with the same operands (constants by their bits), types and attributes, and bodies
//! that are the same but for the names bound in them. Anything that does not touch an outer accumulator is
//! a candidate: a second `assert` of the same condition is redundant, a second call with the same arguments gives the same
//! results or does not end either. Sizes are equal if they have the same name (`pullback_core::shapes`). Inside a `#[recompute]` body nothing from outside is reused, for the mark asks
//! exactly for that; so recomputing code keeps its cost in memory as long as it keeps its mark.

use crate::Ctx;
use pullback_base::index::{IdMap, IdSet, IdTable, Index};
use pullback_core::metrics::construct;
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::{Atom, Body, Exp, FusedForm, LoopForm, Mark, Program, Soac, Stm, Var, View};
use pullback_prim::ScalarValue;

/// Runs the pass. Cost: the size of the program, and that of what is replaced.
pub fn cse(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let shapes = shapes(program, &program.funs[id].params, &program.funs[id].body);
        let mut body = std::mem::take(&mut program.funs[id].body);
        let table = Table::new(crate::size(&body));
        let mut pass = Cse { program, shapes, subst: IdTable::new(), table };
        pass.body(&mut body, None);
        program.funs[id].body = body;
    }
}

struct Cse<'p> {
    program: &'p Program,
    shapes: Shapes,
    subst: IdTable<Var, Atom>,
    table: Table,
}

/// The bodies around a place, the innermost first: their statements before it.
struct Frame<'f> {
    depth: usize,
    before: &'f [Stm],
    outer: Option<&'f Frame<'f>>,
}

impl Frame<'_> {
    fn stm(&self, place: Place) -> &Stm {
        match self.outer {
            Some(outer) if place.depth < self.depth => outer.stm(place),
            _ => &self.before[place.index],
        }
    }
}

/// Where a statement in scope is: the nesting depth of its body, and its number in it.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    index: usize,
}

/// The statements in scope by hashes of their expressions.
struct Table {
    /// By the last bits of the hash: one past the number of the last entry; 0 if there is none.
    last: Vec<u32>,
    /// Hash, one past the number of the entry before with the same last bits, statement.
    entries: Vec<(u64, u32, Place)>,
    /// Entries before this one are hidden.
    hidden: usize,
}

impl Table {
    fn new(statements: usize) -> Table {
        let last = vec![0; statements.next_power_of_two()];
        Table { last, entries: Vec::with_capacity(statements), hidden: 0 }
    }
    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.last.len() - 1)
    }
    fn insert(&mut self, hash: u64, place: Place) {
        let bucket = self.bucket(hash);
        self.entries.push((hash, self.last[bucket], place));
        self.last[bucket] = self.entries.len() as u32;
    }
    /// Only the first `count` entries are in scope any more.
    fn leave(&mut self, count: usize) {
        while self.entries.len() > count
            && let Some((hash, before, _)) = self.entries.pop()
        {
            let bucket = self.bucket(hash);
            self.last[bucket] = before;
        }
    }
    /// The variables of the statement in scope that is as wanted; else this place is that of the first.
    fn known(
        &mut self,
        hash: Hash,
        place: Place,
        frame: &Frame<'_>,
        is: impl Fn(&Stm) -> bool,
    ) -> Option<Vec<Var>> {
        let mut next = self.last[self.bucket(hash.0)] as usize;
        while next > self.hidden {
            let (other, before, place) = self.entries[next - 1];
            if other == hash.0 && is(frame.stm(place)) {
                return Some(frame.stm(place).pat.clone());
            }
            next = before as usize;
        }
        self.insert(hash.0, place);
        None
    }
}

/// What is known of a body.
#[derive(Default)]
struct Inside {
    /// A hash that bodies have in common which differ in names.
    hash: Hash,
    /// Accumulators that it mentions.
    accs: IdSet<Var>,
    /// Accumulators that its statements bind.
    bound: Vec<Var>,
}

impl Cse<'_> {
    fn atom(&self, a: Atom) -> Atom {
        a.replaced(|v| self.subst.get(v).copied())
    }
    fn body(&mut self, body: &mut Body, outer: Option<&Frame<'_>>) -> Inside {
        let depth = outer.map_or(0, |f| f.depth + 1);
        let entered = self.table.entries.len();
        let mut gone = vec![false; body.stms.len()];
        let mut out = Inside::default();
        for (index, gone) in gone.iter_mut().enumerate() {
            let (before, rest) = body.stms.split_at_mut(index);
            let frame = Frame { depth, before, outer };
            *gone = self.stm(&mut rest[0], &frame, Place { depth, index }, &mut out);
        }
        if gone.contains(&true) {
            let mut gone = gone.into_iter();
            body.stms.retain(|_| !gone.next().unwrap_or(false));
        }
        for a in &mut body.result {
            *a = self.atom(*a);
            out.hash.shape(*a);
            out.accs.extend(self.acc(*a));
        }
        self.table.leave(entered);
        out.bound.iter().for_each(|v| {
            out.accs.remove(v);
        });
        out
    }
    fn acc(&self, a: Atom) -> Option<Var> {
        a.var().filter(|v| self.program.vars[*v].ty.is_acc())
    }

    /// Whether another statement's variables stand for those of this one. `around`: of the body that holds it.
    fn stm(&mut self, stm: &mut Stm, frame: &Frame<'_>, place: Place, around: &mut Inside) -> bool {
        let Stm { pat, exp } = stm;
        exp.map_atoms(|a| self.atom(a));
        let (mut exact, mut accs) = (Hash::of(exp), Vec::new());
        let mut shape = exact;
        exp.for_each_atom(|a| {
            exact.atom(a);
            shape.shape(a);
            accs.extend(self.acc(a));
        });
        let hidden = self.table.hidden;
        if let Exp::Marked(Mark::Recompute, _) = exp {
            self.table.hidden = self.table.entries.len();
        }
        for scope in exp.bodies_mut() {
            let inside = self.body(scope.body, Some(frame));
            accs.extend(inside.accs.into_iter().filter(|v| !scope.binds.contains(*v)));
            exact.add(inside.hash.0);
            shape.add(inside.hash.0);
        }
        self.table.hidden = hidden;
        let accumulates = match exp {
            Exp::AccView(..) | Exp::Atom(_) => false,
            _ => !accs.is_empty(),
        };
        if !accs.is_empty() {
            around.accs.extend(accs);
            around.bound.extend(pat.iter().filter_map(|v| self.acc((*v).into())));
        }
        let known = if accumulates || matches!(exp, Exp::Atom(_)) {
            None
        } else if let Exp::Size(..) = exp {
            // The name of the size that it asks for.
            let name = self.shapes.name(pat[0].into());
            if let Dim::Const(n) = name {
                self.subst.insert(pat[0], Atom::i64(n));
                return true;
            }
            let is = |s: &Stm| matches!(s.exp, Exp::Size(..)) && self.shapes.name(s.pat[0].into()) == name;
            self.table.known(Hash::of_size(name), place, frame, is)
        } else {
            let program = self.program;
            self.table.known(exact, place, frame, |s| Same::new(program).exp(&s.exp, exp))
        };
        let known = known.or_else(|| Some(vec![self.reduced_before(exp, frame)?]));
        match known {
            Some(known) => {
                self.subst.extend(pat.iter().zip(known).map(|(v, w)| (*v, Atom::Var(w))));
                true
            }
            None => {
                around.hash.add(shape.0);
                false
            }
        }
    }
}

impl Cse<'_> {
    /// The result of a reduction, if the operation of this body that made its column reduces the elements of the column in the same way.
    fn reduced_before(&self, exp: &Exp, frame: &Frame<'_>) -> Option<Var> {
        let Exp::Soac(Soac::Reduce { width, lam, neutral, arrays, commutative }) = exp else { return None };
        let column = arrays.first()?.var().filter(|_| arrays.len() == 1)?;
        let stm = frame.before.iter().rev().find(|s| s.pat.contains(&column))?;
        let Exp::Soac(Soac::Fused { form, width: other_width, pre, lam: other, neutral: start, .. }) =
            &stm.exp
        else {
            return None;
        };
        let k = stm.pat.iter().position(|v| *v == column)?;
        let is_same = start.len() == 1
            && k >= 1
            && width == other_width
            && *form == (FusedForm::Reduce { commutative: *commutative })
            && pre.body.result[k] == pre.body.result[0]
            && neutral == start;
        let mut same = Same::new(self.program);
        let is_same = is_same
            && same.bind(other.params.iter().copied(), lam.params.iter().copied())
            && same.body(&other.body, &lam.body);
        is_same.then(|| stm.pat[0])
    }
}

/// A hash of expressions: equal ones have equal hashes.
#[derive(Clone, Copy, Default)]
struct Hash(u64);

impl Hash {
    fn of(exp: &Exp) -> Hash {
        use std::hash::Hash as _;
        let mut hash = Hash::default();
        std::mem::discriminant(exp).hash(&mut hash);
        match exp {
            Exp::Prim(prim, _) => prim.hash(&mut hash),
            Exp::Proj(_, k) | Exp::Inject(_, k, _) => hash.add(*k as u64),
            Exp::Soac(soac) => std::mem::discriminant(soac).hash(&mut hash),
            _ => {}
        }
        hash
    }
    fn of_size(name: Dim) -> Hash {
        let mut hash = Hash(1);
        match name {
            Dim::Const(n) => hash.add(n.cast_unsigned()),
            Dim::Value(v) => hash.atom(v.into()),
            Dim::Size(v, k) => {
                hash.atom(v.into());
                hash.add(k as u64);
            }
            Dim::Unknown => {}
        }
        hash
    }
    fn add(&mut self, word: u64) {
        // A product moves differences up, the shift brings them down again.
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
    fn atom(&mut self, a: Atom) {
        match a {
            Atom::Var(v) => self.add(v.index() as u64),
            Atom::Const(_) => self.shape(a),
        }
    }
    /// Variables may have other names.
    fn shape(&mut self, a: Atom) {
        match a {
            Atom::Var(_) => self.add(1 << 32),
            Atom::Const(ScalarValue::F64(x)) => self.add(x.to_bits()),
            Atom::Const(ScalarValue::F32(x)) => self.add(x.to_bits().into()),
            Atom::Const(c) => self.add(c.as_i64().cast_unsigned()),
        }
    }
}

impl std::hash::Hasher for Hash {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.add(u64::from(*b)));
    }
    fn write_isize(&mut self, word: isize) {
        self.add(word.cast_unsigned() as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Whether two expressions are the same but for the names of what is bound inside.
struct Same<'p> {
    program: &'p Program,
    /// What is bound inside the first, and what stands for it in the second.
    bound: IdMap<Var, Var>,
}

impl Same<'_> {
    fn new(program: &Program) -> Same<'_> {
        Same { program, bound: IdMap::new() }
    }
    fn exp(&mut self, one: &Exp, other: &Exp) -> bool {
        let alike = match (one, other) {
            (Exp::Prim(p, _), Exp::Prim(q, _)) => p == q,
            _ => construct(one) == construct(other) && detail(one) == detail(other),
        };
        let (scopes, others) = (one.bodies(), other.bodies());
        alike
            && self.atoms(&one.atoms(), &other.atoms())
            && scopes.len() == others.len()
            && scopes
                .into_iter()
                .zip(others)
                .all(|(a, b)| self.bind(a.binds.iter(), b.binds.iter()) && self.body(a.body, b.body))
    }
    fn body(&mut self, one: &Body, other: &Body) -> bool {
        one.stms.len() == other.stms.len()
            && one.stms.iter().zip(&other.stms).all(|(a, b)| {
                self.exp(&a.exp, &b.exp) && self.bind(a.pat.iter().copied(), b.pat.iter().copied())
            })
            && self.atoms(&one.result, &other.result)
    }
    fn atoms(&self, ones: &[Atom], others: &[Atom]) -> bool {
        let same = |a: Atom, b: Atom| match (a, b) {
            (Atom::Var(v), Atom::Var(w)) => *self.bound.get(&v).unwrap_or(&v) == w,
            _ => a == b,
        };
        ones.len() == others.len() && ones.iter().zip(others).all(|(a, b)| same(*a, *b))
    }
    fn bind(&mut self, ones: impl Iterator<Item = Var>, others: impl Iterator<Item = Var>) -> bool {
        let (mut ones, mut others) = (ones, others);
        loop {
            match (ones.next(), others.next()) {
                (None, None) => return true,
                (Some(v), Some(w)) if self.program.vars[v].ty == self.program.vars[w].ty => {
                    self.bound.insert(v, w);
                }
                _ => return false,
            }
        }
    }
}

/// What tells two expressions of the same construct with the same operands apart: static parts, and the lengths of
/// operand lists that follow one another.
fn detail(exp: &Exp) -> String {
    match exp {
        Exp::Proj(_, i) | Exp::Size(_, i) => format!(" #{i}"),
        Exp::Inject(t, k, _) => format!(" #{k} {t:?}"),
        Exp::ArrayLit(t, _) => format!(" {t:?}"),
        Exp::Rearrange(perm, _) => format!(" {perm:?}"),
        Exp::Reshape { shape, from, array: _ } => format!(" #{} #{from}", shape.len()),
        Exp::Call(f, _) => format!(" {f:?}"),
        Exp::Loop(l) => {
            let form = match &l.form {
                LoopForm::For { .. } => "for",
                LoopForm::While(_) => "while",
            };
            format!(" {form} #{} #{} {:?}", l.params.len(), l.collect, l.attrs)
        }
        Exp::Soac(soac) => match soac {
            Soac::Map { arrays, .. } => format!(" #{}", arrays.len()),
            Soac::Reduce { neutral, commutative, .. } => format!(" #{} {commutative}", neutral.len()),
            Soac::Fused { form, neutral, arrays, .. } => {
                format!(" {form:?} #{} #{}", neutral.len(), arrays.len())
            }
            Soac::Scan { neutral, .. } | Soac::Hist { neutral, .. } => format!(" #{}", neutral.len()),
            Soac::Scatter { .. } => String::new(),
        },
        Exp::AccView(_, view) => match view {
            View::Index(ix) => format!(" index #{}", ix.len()),
            View::Slice(_) => " slice".to_string(),
            View::Proj(i) => format!(" proj #{i}"),
            View::Rearrange(perm) => format!(" rearrange {perm:?}"),
            View::Reshape { shape, from } => format!(" reshape #{} #{from}", shape.len()),
            View::Reverse => " reverse".to_string(),
            View::Rotate(_) => " rotate".to_string(),
        },
        Exp::Vjp { args, seeds, algorithm, .. } | Exp::Jvp { args, seeds, algorithm, .. } => {
            format!(" #{} {} {algorithm:?}", args.len(), seeds.is_some())
        }
        Exp::Marked(mark, _) => format!(" {mark:?}"),
        Exp::Assert(_, message, _) => format!(" {message:?}"),
        Exp::Check(check, args) => format!(" {check:?} #{}", args.len()),
        Exp::Custom { tape, .. } => format!(" #{tape}"),
        Exp::Atom(_)
        | Exp::Prim(..)
        | Exp::Tuple(_)
        | Exp::Match(..)
        | Exp::If(..)
        | Exp::Index(..)
        | Exp::Slice(..)
        | Exp::Update(..)
        | Exp::UpdateSlice(..)
        | Exp::Gather(..)
        | Exp::Iota(_)
        | Exp::Replicate(..)
        | Exp::Concat(_)
        | Exp::Reverse(_)
        | Exp::Rotate(..)
        | Exp::WithAcc(..)
        | Exp::AccAdd(..)
        | Exp::Plus(..)
        | Exp::StopGradient(_)
        | Exp::Par(_) => String::new(),
    }
}
