//! Cotangents as the transformation knows them: a descriptor and the atoms it asks for; and the code that adds and
//! converts them.
//!
//! Source: T. Smeding, PhD thesis, section 7.5.1.2, `generatePlus`. Everything here is decided at compile time; only
//! the options and sums that occur in a descriptor are inspected by the emitted code.
//! Guarantee: the code for one addition is linear in the size of the two descriptors.

use super::desc::{Alternative, Desc, Entry, as_hot, sum};
use crate::tangent::unit;
use pullback_core::{Atom, Builder, Exp, Type, Var};
use pullback_prim::Op;

/// A cotangent.
#[derive(Clone, Debug)]
pub struct Cotangent {
    /// What represents it.
    pub desc: Desc,
    /// The values that it is made of.
    pub atoms: Vec<Atom>,
}

impl Cotangent {
    pub(crate) fn absent() -> Cotangent {
        Cotangent { desc: Desc::Absent, atoms: Vec::new() }
    }
    /// The cotangent of this descriptor that has these atoms.
    pub fn new(desc: Desc, atoms: Vec<Atom>) -> Cotangent {
        debug_assert_eq!(desc.count(), atoms.len(), "{desc:?}");
        if desc.is_absent() { Cotangent::absent() } else { Cotangent { desc, atoms } }
    }
    pub(crate) fn is_absent(&self) -> bool {
        self.desc.is_absent()
    }
    /// One element of an array (its size is `len`), elsewhere zero.
    pub(crate) fn hot(len: Atom, index: Atom, maybe: bool, payload: Cotangent) -> Cotangent {
        if payload.is_absent() {
            return Cotangent::absent();
        }
        let entry = Entry { maybe, payload: payload.desc };
        let mut atoms = vec![len, index];
        atoms.extend(payload.atoms);
        Cotangent { desc: Desc::Hot { dense: Box::new(Desc::Absent), entries: vec![entry] }, atoms }
    }
    /// The cotangents of the components of a product, `count` of them.
    pub(crate) fn components(&self, count: usize) -> Vec<Cotangent> {
        match &self.desc {
            Desc::Product(items) => split(items, &self.atoms),
            Desc::Absent
            | Desc::Real(_)
            | Desc::Choice(_)
            | Desc::Tree(_)
            | Desc::Array(_)
            | Desc::Maybe(_)
            | Desc::Hot { .. } => vec![Cotangent::absent(); count],
        }
    }
    /// Length, dense part and entries (index and payload) of a multi-hot array.
    pub(crate) fn hot_parts(&self) -> Option<HotParts> {
        let Desc::Hot { dense, entries } = &self.desc else { return None };
        let (len, rest) = self.atoms.split_first()?;
        let (base, mut rest) = rest.split_at(dense.count());
        let base = Cotangent::new((**dense).clone(), base.to_vec());
        let mut list = Vec::with_capacity(entries.len());
        for e in entries {
            let (index, after) = rest.split_first()?;
            let (payload, after) = after.split_at(e.payload.count());
            let payload = Cotangent::new(e.payload.clone(), payload.to_vec());
            list.push(HotEntry { maybe: e.maybe, index: *index, payload });
            rest = after;
        }
        Some(HotParts { len: *len, dense: base, entries: list })
    }
}

/// The parts of a multi-hot cotangent.
pub(crate) struct HotParts {
    pub(crate) len: Atom,
    pub(crate) dense: Cotangent,
    pub(crate) entries: Vec<HotEntry>,
}
/// An entry of a multi-hot cotangent.
pub(crate) struct HotEntry {
    pub(crate) maybe: bool,
    pub(crate) index: Atom,
    pub(crate) payload: Cotangent,
}

/// Distributes atoms over descriptors.
pub(crate) fn split(descs: &[Desc], atoms: &[Atom]) -> Vec<Cotangent> {
    let mut rest = atoms;
    let mut out = Vec::with_capacity(descs.len());
    for d in descs {
        let (mine, others) = rest.split_at(d.count());
        out.push(Cotangent::new(d.clone(), mine.to_vec()));
        rest = others;
    }
    out
}

/// The atoms as one value.
pub fn pack(b: &mut Builder<'_>, c: &Cotangent) -> Atom {
    match &c.desc {
        Desc::Absent => unit(b),
        Desc::Product(items) => {
            let parts = split(items, &c.atoms).iter().map(|p| pack(b, p)).collect();
            b.emit(Exp::Tuple(parts), "x_bar")
        }
        Desc::Real(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Maybe(_)
        | Desc::Hot { .. } => {
            if let [atom] = c.atoms[..] {
                atom
            } else {
                b.emit(Exp::Tuple(c.atoms.clone()), "x_bar")
            }
        }
    }
}

/// The inverse of [`pack`].
pub(crate) fn unpack(b: &mut Builder<'_>, desc: &Desc, value: Atom) -> Cotangent {
    let atoms = match desc {
        Desc::Absent => Vec::new(),
        Desc::Product(items) => {
            let mut atoms = Vec::new();
            for (i, item) in items.iter().enumerate() {
                if !item.is_absent() {
                    let part = b.emit(Exp::Proj(value, i), "x_bar");
                    atoms.extend(unpack(b, item, part).atoms);
                }
            }
            atoms
        }
        Desc::Real(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Maybe(_)
        | Desc::Hot { .. } => match desc.count() {
            1 => vec![value],
            n => (0..n).map(|i| b.emit(Exp::Proj(value, i), "x_bar")).collect(),
        },
    };
    Cotangent::new(desc.clone(), atoms)
}

/// Whether a zero of this descriptor can be written without knowing shapes.
fn has_zero(desc: &Desc) -> bool {
    match desc {
        Desc::Absent | Desc::Real(_) | Desc::Choice(_) | Desc::Tree(_) | Desc::Maybe(_) => true,
        Desc::Product(items) => items.iter().all(has_zero),
        Desc::Array(_) => false,
        Desc::Hot { dense, entries } => has_zero(dense) && entries.iter().all(|e| has_zero(&e.payload)),
    }
}

/// The zero of a descriptor that has one without shapes.
pub(crate) fn zero(b: &mut Builder<'_>, desc: &Desc) -> Vec<Atom> {
    match desc {
        Desc::Absent => Vec::new(),
        Desc::Real(s) => vec![Atom::Const(s.zero())],
        Desc::Product(items) => items.iter().flat_map(|d| zero(b, d)).collect(),
        Desc::Choice(_) | Desc::Tree(_) | Desc::Maybe(_) => {
            let ty = desc.types().swap_remove(0);
            vec![b.emit(Exp::Inject(ty, 0, Vec::new()), "zero")]
        }
        Desc::Hot { dense, entries } => {
            let mut atoms = vec![Atom::i64(0)];
            atoms.extend(zero(b, dense));
            for e in entries {
                atoms.push(Atom::i64(-1));
                atoms.extend(zero(b, &e.payload));
            }
            atoms
        }
        Desc::Array(_) => panic!("a zero array without a shape: {desc:?}"),
    }
}

/// Converts a cotangent to a wider descriptor (one that [`sum`] or [`super::desc::join`] computed from it, or the
/// shape-free representation below sums).
pub fn coerce(b: &mut Builder<'_>, c: &Cotangent, to: &Desc) -> Vec<Atom> {
    if c.desc == *to {
        return c.atoms.clone();
    }
    match (&c.desc, to) {
        (Desc::Absent, _) => zero(b, to),
        (Desc::Maybe(item), Desc::Maybe(wide)) => {
            let ty = to.types().swap_remove(0);
            vec![
                on_option(b, item, c.atoms[0], std::slice::from_ref(&ty), |b, x| match x {
                    None => zero(b, to),
                    Some(x) => {
                        let atoms = coerce(b, &x, wide);
                        vec![b.emit(Exp::Inject(ty.clone(), 1, atoms), "some")]
                    }
                })[0],
            ]
        }
        // An absent array that was padded to a multi-hot one does not know its length and says 0: absent again.
        (Desc::Hot { .. }, Desc::Maybe(wide)) => {
            let ty = to.types().swap_remove(0);
            let known = b.op2(Op::Lt, Atom::i64(0), c.atoms[0]);
            let some = |b: &mut Builder<'_>| {
                let atoms = coerce(b, c, wide);
                vec![b.emit(Exp::Inject(ty.clone(), 1, atoms), "some")]
            };
            vec![b.if_(known, some, |b| zero(b, to))[0].into()]
        }
        (_, Desc::Maybe(wide)) => {
            let atoms = coerce(b, c, wide);
            vec![b.emit(Exp::Inject(to.types().swap_remove(0), 1, atoms), "some")]
        }
        (_, Desc::Hot { dense, entries }) => coerce_to_hot(b, c, dense, entries),
        (Desc::Hot { .. }, Desc::Array(item)) => hot_to_array(b, c, item),
        (Desc::Product(items), Desc::Product(wide)) => {
            let parts = split(items, &c.atoms);
            parts.iter().zip(wide).flat_map(|(p, w)| coerce(b, p, w)).collect()
        }
        (Desc::Choice(xs), Desc::Choice(ys)) => {
            let ty = to.types().swap_remove(0);
            let out = b.match_(c.atoms[0], |b, k, fields| {
                let Some(k) = k.checked_sub(1) else { return zero(b, to) };
                let converted = fields.iter().zip(&xs[k].fields).zip(&ys[k].fields).map(|((f, x), y)| {
                    let field = unpack(b, x, (*f).into());
                    let atoms = coerce(b, &field, y);
                    pack(b, &Cotangent::new(y.clone(), atoms))
                });
                let converted = converted.collect();
                vec![b.emit(Exp::Inject(ty.clone(), k + 1, converted), "x_bar")]
            });
            vec![out[0].into()]
        }
        (Desc::Array(item), Desc::Array(wide)) => {
            map_atoms(b, &c.atoms, |b, row| coerce(b, &Cotangent::new((**item).clone(), row), wide))
        }
        (from, to) => panic!("no conversion from {from:?} to {to:?}"),
    }
}

fn coerce_to_hot(b: &mut Builder<'_>, c: &Cotangent, dense: &Desc, entries: &[Entry]) -> Vec<Atom> {
    let parts = c.hot_parts();
    let (len, base, hots) = match parts {
        Some(parts) => (parts.len, parts.dense, parts.entries),
        None => (length(b, c), c.clone(), Vec::new()),
    };
    let mut atoms = vec![len];
    atoms.extend(coerce(b, &base, dense));
    let payloads: Vec<&Desc> = hots.iter().map(|h| &h.payload.desc).collect();
    let places =
        slots(&payloads, entries).unwrap_or_else(|| panic!("no conversion from {:?} to {entries:?}", c.desc));
    for (slot, e) in entries.iter().enumerate() {
        match places.iter().position(|&p| p == slot) {
            Some(i) => {
                atoms.push(hots[i].index);
                atoms.extend(coerce(b, &hots[i].payload, &e.payload));
            }
            None => {
                atoms.push(Atom::i64(-1));
                atoms.extend(zero(b, &e.payload));
            }
        }
    }
    atoms
}

/// A slot for each entry. A sum lists the entries of its first side, then those of its second, so an entry need not have
/// the slot at its own position. The first slot that holds it will do: the slot it was made for is at or after it.
fn slots(payloads: &[&Desc], entries: &[Entry]) -> Option<Vec<usize>> {
    let mut places = Vec::with_capacity(payloads.len());
    for payload in payloads {
        let free =
            (0..entries.len()).find(|s| !places.contains(s) && holds(&entries[*s].payload, payload))?;
        places.push(free);
    }
    Some(places)
}

/// Whether [`coerce`] converts without loss from a descriptor to another.
fn holds(to: &Desc, from: &Desc) -> bool {
    match (from, to) {
        (from, to) if from == to => true,
        (_, Desc::Absent) => false,
        (Desc::Absent, to) => has_zero(to),
        (Desc::Maybe(item), Desc::Maybe(wide)) => holds(wide, item),
        (from, Desc::Maybe(wide)) => holds(wide, from),
        (from, Desc::Hot { dense, entries }) => {
            let (base, hots) = as_hot(from);
            let payloads: Vec<&Desc> = hots.iter().map(|e| &e.payload).collect();
            holds(dense, &base) && slots(&payloads, entries).is_some()
        }
        (Desc::Hot { dense, entries }, Desc::Array(item)) => {
            has_zero(item) && dense_fits(dense, to) && entries.iter().all(|e| holds(item, &e.payload))
        }
        (Desc::Product(items), Desc::Product(wide)) => {
            items.len() == wide.len() && items.iter().zip(wide).all(|(x, w)| holds(w, x))
        }
        (Desc::Choice(xs), Desc::Choice(ys)) => {
            let fields = |(x, y): (&Alternative, &Alternative)| {
                x.fields.iter().zip(&y.fields).all(|(x, y)| holds(y, x))
            };
            xs.len() == ys.len() && xs.iter().zip(ys).all(fields)
        }
        (Desc::Array(item), Desc::Array(wide)) => holds(wide, item),
        _ => false,
    }
}

/// The dense part of a multi-hot array that becomes an array: an absent one becomes zeros.
fn dense_fits(dense: &Desc, array: &Desc) -> bool {
    match dense {
        Desc::Absent => true,
        Desc::Maybe(item) => holds(array, item),
        Desc::Real(_)
        | Desc::Product(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Hot { .. } => holds(array, dense),
    }
}

/// The length of an array cotangent, 0 if nobody knows (an absent option).
fn length(b: &mut Builder<'_>, c: &Cotangent) -> Atom {
    match &c.desc {
        Desc::Array(_) => b.size(c.atoms[0], 0),
        Desc::Maybe(item) => on_option(b, item, c.atoms[0], &[Type::I64], |b, x| match x {
            None => vec![Atom::i64(0)],
            Some(x) => vec![length(b, &x)],
        })[0],
        Desc::Hot { .. } => c.atoms[0],
        Desc::Absent | Desc::Real(_) | Desc::Product(_) | Desc::Choice(_) | Desc::Tree(_) => Atom::i64(0),
    }
}

/// A dense array from a multi-hot one whose elements have a zero without shapes.
fn hot_to_array(b: &mut Builder<'_>, c: &Cotangent, item: &Desc) -> Vec<Atom> {
    let Some(parts) = c.hot_parts() else { return c.atoms.clone() };
    let to = Desc::Array(Box::new(item.clone()));
    let zeros = |b: &mut Builder<'_>| -> Vec<Atom> {
        assert!(has_zero(item), "a zero array without a shape: {item:?}");
        let zeros = zero(b, item);
        zeros.into_iter().map(|z| b.emit(Exp::Replicate(vec![parts.len], z), "zeros")).collect()
    };
    let mut arrays = match &parts.dense.desc {
        Desc::Absent => zeros(b),
        Desc::Maybe(inner) => on_option(b, inner, parts.dense.atoms[0], &to.types(), |b, x| match x {
            None => zeros(b),
            Some(x) => coerce(b, &x, &to),
        }),
        Desc::Real(_)
        | Desc::Product(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Hot { .. } => coerce(b, &parts.dense, &to),
    };
    for e in parts.entries {
        let atoms = coerce(b, &e.payload, item);
        let inside = b.op2(Op::Le, Atom::i64(0), e.index);
        let old = arrays.clone();
        let add = |b: &mut Builder<'_>| -> Vec<Atom> {
            let pairs = old.iter().zip(&atoms);
            pairs
                .map(|(&array, &x)| {
                    let before = b.index(array, &[e.index]);
                    let after = b.emit(Exp::Plus(before, x), "x_bar");
                    b.emit(Exp::Update(array, vec![e.index], after), "x_bar")
                })
                .collect()
        };
        arrays = if e.maybe {
            let keep = old.clone();
            let out = b.if_(inside, add, |_| keep);
            out.into_iter().map(Atom::Var).collect()
        } else {
            add(b)
        };
    }
    arrays
}

/// Adds two cotangents of one variable.
pub fn plus(b: &mut Builder<'_>, x: Cotangent, y: Cotangent) -> Cotangent {
    if x.is_absent() {
        return y;
    }
    if y.is_absent() {
        return x;
    }
    let desc = sum(&x.desc, &y.desc, true, true);
    let atoms = add(b, &x, &y, &desc);
    Cotangent::new(desc, atoms)
}

/// `x + y` at descriptor `to`.
fn add(b: &mut Builder<'_>, x: &Cotangent, y: &Cotangent, to: &Desc) -> Vec<Atom> {
    if x.is_absent() {
        return coerce(b, y, to);
    }
    if y.is_absent() {
        return coerce(b, x, to);
    }
    if x.desc == y.desc && x.desc == *to && to.is_plain() {
        let pairs = x.atoms.iter().zip(&y.atoms);
        return pairs
            .map(|(&x, &y)| match b.ty(x) {
                Type::Scalar(_) => b.op2(Op::Add, x, y),
                Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => {
                    b.emit(Exp::Plus(x, y), "x_bar")
                }
            })
            .collect();
    }
    match (&x.desc, &y.desc) {
        (Desc::Hot { .. }, _) | (_, Desc::Hot { .. }) => add_hot(b, x, y, to),
        (Desc::Maybe(item), _) => on_option(b, item, x.atoms[0], &to.types(), |b, x| match x {
            None => coerce(b, y, to),
            Some(x) => add_inside(b, &x, y, to),
        }),
        (_, Desc::Maybe(item)) => on_option(b, item, y.atoms[0], &to.types(), |b, y| match y {
            None => coerce(b, x, to),
            Some(y) => add_inside(b, x, &y, to),
        }),
        (Desc::Product(xs), Desc::Product(ys)) => {
            let Desc::Product(to) = to else { panic!("a product's sum is a product: {to:?}") };
            let pairs = split(xs, &x.atoms).into_iter().zip(split(ys, &y.atoms));
            pairs.zip(to).flat_map(|((x, y), t)| add(b, &x, &y, t)).collect()
        }
        (Desc::Choice(_), Desc::Choice(_)) => add_choice(b, x, y, to),
        (Desc::Array(x_item), Desc::Array(y_item)) => {
            let Desc::Array(to) = to else { panic!("an array's sum is an array: {to:?}") };
            let atoms: Vec<Atom> = x.atoms.iter().chain(&y.atoms).copied().collect();
            map_atoms(b, &atoms, |b, row| {
                let (left, right) = row.split_at(x_item.count());
                let left = Cotangent::new((**x_item).clone(), left.to_vec());
                let right = Cotangent::new((**y_item).clone(), right.to_vec());
                add(b, &left, &right, to)
            })
        }
        (s, t) => panic!("cotangents of one variable: {s:?} and {t:?}"),
    }
}

/// Adds where one side was an option that is there.
fn add_inside(b: &mut Builder<'_>, x: &Cotangent, y: &Cotangent, to: &Desc) -> Vec<Atom> {
    match to {
        Desc::Maybe(wide) => {
            let atoms = add(b, x, y, wide);
            vec![b.emit(Exp::Inject(to.types().swap_remove(0), 1, atoms), "some")]
        }
        Desc::Absent
        | Desc::Real(_)
        | Desc::Product(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Hot { .. } => add(b, x, y, to),
    }
}

fn add_hot(b: &mut Builder<'_>, x: &Cotangent, y: &Cotangent, to: &Desc) -> Vec<Atom> {
    let lift = |b: &mut Builder<'_>, c: &Cotangent| {
        let (dense, entries) = as_hot(&c.desc);
        if c.hot_parts().is_some() {
            return c.clone();
        }
        let mut atoms = vec![length(b, c)];
        atoms.extend(c.atoms.iter().copied());
        Cotangent::new(Desc::Hot { dense: Box::new(dense), entries }, atoms)
    };
    let (x, y) = (lift(b, x), lift(b, y));
    let (Some(x), Some(y)) = (x.hot_parts(), y.hot_parts()) else { panic!("lifted to multi-hot") };
    let (to_dense, to_entries) = as_hot(to);
    // An absent side has length 0 (it was padded), so the larger length is the right one.
    let len = if x.len == y.len { x.len } else { b.op2(Op::Max, x.len, y.len) };
    let mut atoms = vec![len];
    atoms.extend(add(b, &x.dense, &y.dense, &to_dense));
    for (h, e) in x.entries.iter().chain(&y.entries).zip(&to_entries) {
        atoms.push(h.index);
        atoms.extend(coerce(b, &h.payload, &e.payload));
    }
    atoms
}

fn add_choice(b: &mut Builder<'_>, x: &Cotangent, y: &Cotangent, to: &Desc) -> Vec<Atom> {
    let (Desc::Choice(xs), Desc::Choice(ys), Desc::Choice(alternatives)) = (&x.desc, &y.desc, to) else {
        panic!("choices expected");
    };
    let ty = to.types().swap_remove(0);
    let out = b.match_(x.atoms[0], |b, k, left| {
        let Some(k) = k.checked_sub(1) else { return coerce(b, y, to) };
        let out = b.match_(y.atoms[0], |b, j, right| {
            // Two cotangents of one value have its alternative; the other pairs cannot happen.
            if j != k + 1 {
                return coerce(b, x, to);
            }
            let mut fields = Vec::new();
            for (i, t) in alternatives[k].fields.iter().enumerate() {
                let l = unpack(b, &xs[k].fields[i], left[i].into());
                let r = unpack(b, &ys[k].fields[i], right[i].into());
                let atoms = add(b, &l, &r, t);
                fields.push(pack(b, &Cotangent::new(t.clone(), atoms)));
            }
            vec![b.emit(Exp::Inject(ty.clone(), k + 1, fields), "x_bar")]
        });
        vec![out[0].into()]
    });
    vec![out[0].into()]
}

/// Looks into an option. Both arms must return values of the given types.
pub(crate) fn on_option(
    b: &mut Builder<'_>,
    item: &Desc,
    option: Atom,
    results: &[Type],
    mut arm: impl FnMut(&mut Builder<'_>, Option<Cotangent>) -> Vec<Atom>,
) -> Vec<Atom> {
    if results.is_empty() {
        return Vec::new();
    }
    let out = b.match_(option, |b, k, fields| match k {
        0 => arm(b, None),
        _ => {
            let atoms = fields.iter().map(|&v: &Var| v.into()).collect();
            arm(b, Some(Cotangent::new(item.clone(), atoms)))
        }
    });
    out.into_iter().map(Atom::Var).collect()
}

/// Maps over arrays that have the same length.
pub(crate) fn map_atoms(
    b: &mut Builder<'_>,
    arrays: &[Atom],
    f: impl FnOnce(&mut Builder<'_>, Vec<Atom>) -> Vec<Atom>,
) -> Vec<Atom> {
    let width = b.size(arrays[0], 0);
    let out = b.map(width, arrays, |b, row| f(b, row.iter().map(|&v| v.into()).collect()));
    out.into_iter().map(Atom::Var).collect()
}
