//! Rows that are copied or cleared for nothing.
//!
//! Reverse mode cannot know what comes after it: where it reads a row of an array that is written later it copies the row, and where a row
//! was overwritten it clears the cotangent. When all code is there, two of these are seen to be for nothing:
//!
//! - *Clearing a row that is written again* before anybody reads it: `update(update(a, i, z), i, v)` is `update(a, i, v)`. What is
//!   read of other rows in between is read before.
//! - *Copying a row that is read only before the array is written next*: it is read where it lies.
//!
//! Copies that a loop collects stay copies: as further results of the map that reads the elements anyway they took longer
//! (`docs/decisions/0043-columns-made-again.md`).
//!
//! Assumes: nothing. Guarantees: the same values bit for bit; no array lives beyond a statement that may write it. A row that nobody reads is
//! not checked any more (`docs/decisions/0006-errors-of-unused-values.md`). Source: dead stores and copy forwarding are classic.

use crate::Ctx;
use crate::effects::mentions;
use crate::fuse::writes;
use pullback_base::index::IdMap;
use pullback_core::rename::{Subst, substitute_exp};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Exp, Program, Type, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Runs the pass. Cost: for each copy, the size of the body it is in.
pub fn elide_copies(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        let known = Known::of(&body);
        uncopy_in(program, &known, &mut body);
        program.funs[id].body = body;
    }
}

fn uncopy_in(program: &Program, known: &Known, body: &mut Body) {
    // What is cleared is written: rows before it could not be read where they lie.
    without(body, |body, k| clears_for_nothing(known, body, k));
    without(body, |body, k| reads_in_place(program, known, body, k));
    for stm in &mut body.stms {
        for scope in stm.exp.bodies_mut() {
            uncopy_in(program, known, scope.body);
        }
    }
}

/// The body without the statements that turn out to be for nothing.
fn without(body: &mut Body, mut nothing: impl FnMut(&mut Body, usize) -> bool) {
    let mut k = 0;
    while k < body.stms.len() {
        if nothing(body, k) {
            body.stms.remove(k);
        } else {
            k += 1;
        }
    }
}

/// What is known of integers and arrays of them, by name, in a whole function.
struct Known {
    /// Another integer and the distance from it.
    from: IdMap<Var, (Var, i64)>,
    /// The one element of an array.
    single: IdMap<Var, Atom>,
}

impl Known {
    fn of(body: &Body) -> Known {
        let mut known = Known { from: IdMap::new(), single: IdMap::new() };
        for_each_stm(body, &mut |stm| {
            let v = stm.pat[0];
            match &stm.exp {
                Exp::Prim(Prim::Op(Op::Add, Scalar::I64), args) => match args[..] {
                    [Atom::Var(a), Atom::Const(ScalarValue::I64(c))]
                    | [Atom::Const(ScalarValue::I64(c)), Atom::Var(a)] => {
                        known.from.insert(v, (a, c));
                    }
                    _ => {}
                },
                Exp::Prim(Prim::Op(Op::Sub, Scalar::I64), args) => {
                    if let [Atom::Var(a), Atom::Const(ScalarValue::I64(c))] = args[..] {
                        known.from.insert(v, (a, c.wrapping_neg()));
                    }
                }
                Exp::ArrayLit(Type::Scalar(Scalar::I64), items) if items.len() == 1 => {
                    known.single.insert(v, items[0]);
                }
                _ => {}
            }
        });
        known
    }
    /// The integer as one without a definition here (none: zero), and the distance from it.
    fn place(&self, a: Atom) -> Option<(Option<Var>, i64)> {
        let (mut v, mut distance) = match a {
            Atom::Var(v) => (v, 0i64),
            Atom::Const(ScalarValue::I64(c)) => return Some((None, c)),
            Atom::Const(_) => return None,
        };
        while let Some((from, more)) = self.from.get(&v) {
            (v, distance) = (*from, distance.wrapping_add(*more));
        }
        Some((Some(v), distance))
    }
    /// Whether the two are certainly different (also where sums wrap around).
    fn differ(&self, a: Atom, b: Atom) -> bool {
        match (self.place(a), self.place(b)) {
            (Some((v, i)), Some((w, j))) => v == w && i != j,
            _ => false,
        }
    }
    /// The index of the row of which the statement makes a copy, with one row in it.
    fn row<'e>(&self, exp: &'e Exp) -> Option<(&'e Atom, Atom)> {
        match exp {
            Exp::Gather(a, Atom::Var(is)) => Some((a, *self.single.get(is)?)),
            _ => None,
        }
    }
}

/// The statements of a body after `k` that mention a variable; `None` if a result of the body does.
fn users(body: &Body, k: usize, v: Var) -> Option<Vec<usize>> {
    if body.result.contains(&v.into()) {
        return None;
    }
    let after = k + 1..body.stms.len();
    Some(after.filter(|&j| mentions(&body.stms[j].exp, &|w| w == v)).collect())
}

/// Whether statement `k` writes an element or row that is written again before it is read. If so, what reads the array now reads
/// the one before.
fn clears_for_nothing(known: &Known, body: &mut Body, k: usize) -> bool {
    let Exp::Update(a, ix, _) = &body.stms[k].exp else { return false };
    let (a, cleared) = (*a, body.stms[k].pat[0]);
    let Some(users) = users(body, k, cleared) else { return false };
    let mut again = 0;
    for &j in &users {
        let other_row = match &body.stms[j].exp {
            Exp::Update(b, same, value) if *b == cleared.into() && same == ix => {
                again += 1;
                *value != cleared.into()
            }
            exp => known.row(exp).is_some_and(|(_, i)| ix.len() == 1 && known.differ(i, ix[0])),
        };
        if !other_row {
            return false;
        }
    }
    if again != 1 {
        return false;
    }
    let subst = Subst::from_iter([(cleared, a)]);
    for j in users {
        substitute_exp(&mut body.stms[j].exp, &subst);
    }
    true
}

/// Whether statement `k` copies a row of numbers that is read elementwise, and only before any array is written. If so it is
/// read from the array itself.
fn reads_in_place(program: &Program, known: &Known, body: &mut Body, k: usize) -> bool {
    let Some((&a, i)) = known.row(&body.stms[k].exp) else { return false };
    let Some(&[at]) = users(body, k, body.stms[k].pat[0]).as_deref() else { return false };
    let Exp::Index(_, ix) = &body.stms[at].exp else { return false };
    let row = body.stms[at].pat[0];
    if ix[..] != [Atom::i64(0)] || !is_row(program, row) {
        return false;
    }
    let Some(readers) = users(body, at, row) else { return false };
    let only_elements = readers.iter().all(|&j| match &body.stms[j].exp {
        Exp::Plus(..) => true,
        exp => exp.elementwise().is_some_and(|(lam, arrays)| {
            arrays.contains(&row.into()) && !lam.body.stms.iter().any(|s| mentions(&s.exp, &|v| v == row))
        }),
    });
    let Some(&last) = readers.last() else { return false };
    let stays = body.stms[k + 1..=last].iter().all(|s| !writes(&s.exp) && !matches!(s.exp, Exp::Loop(_)));
    if !only_elements || !stays {
        return false;
    }
    body.stms[at].exp = Exp::Index(a, vec![i]);
    true
}

fn is_row(program: &Program, v: Var) -> bool {
    matches!(&program.vars[v].ty, Type::Array(elem) if elem.scalar().is_some())
}
