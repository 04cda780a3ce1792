//! Delayed arrays: what one element of an array is, as an expression of the iteration it is asked for.
//!
//! The elements of an accumulation are evaluated symbolically: parameters of maps become elements of their arrays,
//! views become index arithmetic, columns that a forward sweep stored become what was stored. What cannot be followed
//! (results of reductions, loops, branches on sums) is a [`Node::Local`]: a value that the nest has to hand out.
//!
//! Assumes unique names. Guarantees: a node of some dimensions has, at each point of the nest where the original code
//! was run, the value that the code computed; nothing is followed that costs more than constant time per element, and
//! floating-point code only where it ran once per point of the whole nest anyway. Source: delayed (pull) arrays.

mod elements;
mod sizes;
mod split;
pub(in crate::accumulators) mod sums;

use super::index::Polynomial;
use pullback_base::Table;
use pullback_base::index::{IdMap, IdSet, IdTable};
use pullback_core::traverse::Scope;
use pullback_core::{Atom, Body, Exp, Lam, Loop, LoopForm, Program, Soac, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A node of a [`Delayed`] table.
pub(super) type Id = usize;
/// A dimension of the nest: its position in [`Delayed::widths`].
pub(super) type Dim = usize;
/// An instance of a lambda: what its parameters stand for.
pub(super) type Env = usize;

/// The environment in which only what is in scope at the nest is known.
pub(super) const OUTSIDE: Env = 0;
/// A dimension that stands for "some index": what depends on it is not known.
const SOME: Dim = usize::MAX;
/// From here on: the positions in maps around the nest, which need not have a name.
const AROUND: Dim = usize::MAX / 2;
/// How many expressions are looked at for one accumulation.
const BUDGET: usize = 50_000;

/// A scalar as a function of the point of the nest.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Const(ScalarValue),
    /// A scalar in scope at the nest.
    Var(Var),
    /// The position in a dimension.
    Dim(Dim),
    Prim(Prim, Vec<Id>),
    /// A size of an array in scope at the nest.
    Size(Var, usize),
    /// An element of an array in scope at the nest.
    Read(Var, Vec<Id>),
    If(Id, Id, Id),
    /// A variable that is bound in the nest and cannot be followed: positions in the maps around it, then indices.
    Local(Var, Vec<Id>),
}

/// What a lambda parameter stands for.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// This scalar.
    Scalar(Id),
    /// The element of an array (of an environment) at an index.
    Element(Atom, Env, Id),
    /// Not known.
    Opaque,
}

struct Instance {
    parent: Env,
    binds: IdMap<Var, Binding>,
    /// Everything bound in the lambda but its parameters: its places in the order of binding.
    contains: Range<u32>,
    dims: BTreeSet<Dim>,
    /// Of an element of a map: its position and the width of the map.
    place: Option<(Id, Option<Id>)>,
}

#[derive(Clone, Copy)]
enum Definition<'a> {
    Result(&'a Exp, usize),
    Payload(Atom, usize),
    State(&'a Loop, usize),
}

/// The order in which a function binds its variables. It is the same for all attempts on the function as it is.
pub(super) struct Order {
    places: IdTable<Var, u32>,
    count: u32,
}

impl Order {
    pub(super) fn of(program: &Program, body: &Body) -> Order {
        let mut out = Order { places: IdTable::with_room(program.vars.len()), count: 0 };
        out.body(body);
        out
    }
    fn body(&mut self, body: &Body) {
        for stm in &body.stms {
            self.bind(stm.pat.iter().copied());
            for scope in stm.exp.bodies() {
                self.bind(scope.binds.iter());
                self.body(scope.body);
            }
        }
    }
    fn bind(&mut self, vars: impl Iterator<Item = Var>) {
        for v in vars {
            self.places.insert(v, self.count);
            self.count += 1;
        }
    }
    /// A new variable is bound next to another one.
    pub(super) fn add_beside(&mut self, new: Var, other: Var) {
        if let Some(place) = self.places.get(other).copied() {
            self.places.insert(new, place);
        }
    }
    fn get(&self, v: Var) -> Option<u32> {
        self.places.get(v).copied()
    }
    /// The places in the order of what is bound in a body.
    fn inside(&self, body: &Body) -> Range<u32> {
        let place = |v: Option<Var>| v.and_then(|v| self.get(v));
        let first = place(body.stms.first().and_then(|s| s.pat.first().copied()));
        let last = place(body.stms.last().and_then(last_bound));
        first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
    }
}

/// What variables are. What is bound inside a statement is only noted when the statement is looked at: nests are small, and
/// programs large.
struct Definitions<'a> {
    stms: IdTable<Var, Bound<'a>>,
}

/// A statement that binds a variable, as what it returns or inside.
#[derive(Clone, Copy)]
struct Bound<'a> {
    stm: &'a Stm,
    /// Whether what is inside has been noted.
    is_open: bool,
}

impl<'a> Definitions<'a> {
    /// The variables of the bodies around a nest, and of the nest.
    fn around(program: &Program, body: &'a Body, path: &[(usize, usize)]) -> Definitions<'a> {
        let (mut out, mut body) = (Definitions { stms: IdTable::with_room(program.vars.len()) }, body);
        for (n, (at, scope)) in path.iter().enumerate() {
            for (k, stm) in body.stms.iter().enumerate() {
                if k != *at {
                    out.bind(stm.pat.iter().copied(), Bound { stm, is_open: false });
                }
            }
            let stm = &body.stms[*at];
            if n + 1 == path.len() {
                out.stm(stm);
                break;
            }
            out.bind(stm.pat.iter().copied(), Bound { stm, is_open: true });
            for (k, inner) in stm.exp.bodies().into_iter().enumerate() {
                out.bind(inner.binds.iter(), Bound { stm, is_open: true });
                if k == *scope {
                    body = inner.body;
                } else {
                    out.body(inner.body);
                }
            }
        }
        out
    }
    fn body(&mut self, body: &'a Body) {
        body.stms.iter().for_each(|stm| self.stm(stm));
    }
    fn stm(&mut self, stm: &'a Stm) {
        let bound = Bound { stm, is_open: true };
        self.bind(stm.pat.iter().copied(), bound);
        for scope in stm.exp.bodies() {
            self.bind(scope.binds.iter(), bound);
            self.body(scope.body);
        }
    }
    fn bind(&mut self, vars: impl Iterator<Item = Var>, bound: Bound<'a>) {
        vars.for_each(|v| {
            self.stms.insert(v, bound);
        });
    }
    /// What binds a variable; what is inside can be asked for from now on.
    fn open(&mut self, v: Var) -> Option<Definition<'a>> {
        let bound = *self.stms.get(v)?;
        if !bound.is_open {
            self.stm(bound.stm);
        }
        self.get(&v)
    }
    fn get(&self, v: &Var) -> Option<Definition<'a>> {
        let stm = self.stms.get(*v)?.stm;
        if let Some(k) = stm.pat.iter().position(|p| p == v) {
            return Some(Definition::Result(&stm.exp, k));
        }
        match &stm.exp {
            Exp::Match(scrutinee, arms) => match &arms[..] {
                [arm] => arm.params.iter().position(|p| p == v).map(|k| Definition::Payload(*scrutinee, k)),
                _ => None,
            },
            Exp::Loop(l) => l.params.iter().position(|p| p.0 == *v).map(|k| Definition::State(l, k)),
            _ => None,
        }
    }
}

/// The variable that is bound last by a statement or in it.
fn last_bound(stm: &Stm) -> Option<Var> {
    let in_body = |body: &Body| body.stms.last().and_then(last_bound);
    let in_scope = |scope: &Scope<'_>| in_body(scope.body).or_else(|| scope.binds.iter().next_back());
    stm.exp.bodies().iter().rev().find_map(in_scope).or_else(|| stm.pat.last().copied())
}

/// What a nest could hand out, and through how many maps.
fn homes(nest: &Stm) -> Table<Var, u32> {
    fn inside(stm: &Stm, depth: u32, first: bool, out: &mut Table<Var, u32>) {
        let depth = match &stm.exp {
            Exp::Soac(Soac::Map { .. }) => depth + 1,
            Exp::Loop(l) if first && matches!(l.form, LoopForm::For { .. }) => depth + 1,
            Exp::If(..) | Exp::Match(..) | Exp::WithAcc(..) | Exp::Marked(..) => depth,
            _ => return,
        };
        for scope in stm.exp.bodies() {
            for v in scope.binds.iter() {
                out.insert(v, depth);
            }
            for s in &scope.body.stms {
                for v in &s.pat {
                    out.insert(*v, depth);
                }
                inside(s, depth, false, out);
            }
        }
    }
    let mut out = Table::new();
    inside(nest, 0, true, &mut out);
    out
}

/// What a node is, as a key: constants by their bits.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Const(Scalar, u64),
    Var(Var),
    Dim(Dim),
    Prim(Prim, Vec<Id>),
    Size(Var, usize),
    Read(Var, Vec<Id>),
    If(Id, Id, Id),
    Local(Var, Vec<Id>),
}

impl Key {
    fn of(node: &Node) -> Key {
        match node {
            Node::Const(c) => Key::Const(c.scalar(), bits(*c)),
            Node::Var(v) => Key::Var(*v),
            Node::Dim(d) => Key::Dim(*d),
            Node::Prim(prim, ids) => Key::Prim(*prim, ids.clone()),
            Node::Size(v, axis) => Key::Size(*v, *axis),
            Node::Read(v, ids) => Key::Read(*v, ids.clone()),
            Node::If(c, a, b) => Key::If(*c, *a, *b),
            Node::Local(v, ids) => Key::Local(*v, ids.clone()),
        }
    }
}

/// The bits of a constant. Numbers that are no numbers are the same.
fn bits(c: ScalarValue) -> u64 {
    match c {
        ScalarValue::F64(x) if x.is_nan() => f64::NAN.to_bits(),
        ScalarValue::F64(x) => x.to_bits(),
        ScalarValue::F32(x) if x.is_nan() => f64::NAN.to_bits(),
        ScalarValue::F32(x) => f64::from(x).to_bits(),
        ScalarValue::U64(x) => x,
        other => other.as_i64().cast_unsigned(),
    }
}

/// The table of nodes and what is known of the program around and in a nest.
pub(super) struct Delayed<'a> {
    pub(super) program: &'a Program,
    definitions: Definitions<'a>,
    order: &'a Order,
    /// Variables in scope where the nest stands.
    available: IdTable<Var, ()>,
    /// The nest.
    outermost: &'a Stm,
    /// For variables that the nest can hand out: how many maps of the path enclose them.
    homes: OnceCell<Table<Var, u32>>,
    /// The fields of values of sum types in scope at the nest.
    payloads: Table<Var, (Vec<Atom>, Env)>,
    /// The sizes of arrays in scope at the nest.
    sizes: Table<(Var, usize), Id>,
    /// Scalars in scope at the nest.
    scalars: Table<Var, Id>,
    nodes: Vec<Node>,
    dims: Vec<BTreeSet<Dim>>,
    table: Table<Key, Id>,
    equal: Table<usize, Id>,
    /// Sizes that agree if the code that needs it was reached at all.
    agree: BTreeSet<(Id, Id)>,
    instances: Vec<Instance>,
    /// The environment of the body of the nest.
    pub(super) nest: Env,
    /// Shapes of what [`Node::Local`] would hand out.
    pub(super) local_shapes: IdMap<Var, Vec<Id>>,
    /// Extents of the dimensions; they depend on no dimension.
    pub(super) widths: Vec<Id>,
    /// What was split.
    flats: Vec<split::Flat>,
    /// All dimensions of the accumulation in question.
    pub(super) full: BTreeSet<Dim>,
    assumed: BTreeMap<Id, bool>,
    /// Scalars in scope at the nest that hold a node's value: it need not be computed again.
    names: BTreeMap<Id, Var>,
    /// Sizes of loop states that are being proved.
    hypotheses: BTreeMap<(Var, usize), Option<Id>>,
    /// How many conditions the code in question stands under.
    pub(super) conditions: usize,
    budget: usize,
}

impl<'a> Delayed<'a> {
    /// Of a nest: the path leads from the body of the function to it.
    pub(super) fn new(
        program: &'a Program,
        (body, path): (&'a Body, &[(usize, usize)]),
        order: &'a Order,
        (available, outermost): (IdTable<Var, ()>, &'a Stm),
    ) -> Delayed<'a> {
        let outside = Instance {
            parent: OUTSIDE,
            binds: IdMap::new(),
            contains: 0..0,
            dims: BTreeSet::new(),
            place: None,
        };
        Delayed {
            program,
            definitions: Definitions::around(program, body, path),
            order,
            available,
            outermost,
            homes: OnceCell::new(),
            payloads: Table::new(),
            sizes: Table::new(),
            scalars: Table::new(),
            nodes: Vec::new(),
            dims: Vec::new(),
            table: Table::new(),
            equal: Table::new(),
            agree: BTreeSet::new(),
            instances: vec![outside],
            nest: OUTSIDE,
            local_shapes: IdMap::new(),
            widths: Vec::new(),
            flats: Vec::new(),
            full: BTreeSet::new(),
            assumed: BTreeMap::new(),
            names: BTreeMap::new(),
            hypotheses: BTreeMap::new(),
            conditions: 0,
            budget: BUDGET,
        }
    }

    // ---- nodes ----

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }
    pub(super) fn dims(&self, id: Id) -> &BTreeSet<Dim> {
        &self.dims[id]
    }
    /// Whether the node means something at the nest.
    fn is_placed(&self, id: Id) -> bool {
        self.dims[id].range(AROUND..).next().is_none()
    }
    /// The nest stands in a map with these parameters and arrays.
    pub(super) fn surround(&mut self, params: &[Var], arrays: &[Atom]) {
        let is_iota = |a: &Atom| a.var().is_some_and(|v| matches!(self.expression(v), Some(Exp::Iota(_))));
        let named = arrays.iter().position(is_iota).map(|k| Node::Var(params[k]));
        let unnamed = Node::Dim(AROUND + self.instances[OUTSIDE].binds.len());
        let here = self.intern(named.unwrap_or(unnamed));
        for (p, a) in params.iter().zip(arrays) {
            self.instances[OUTSIDE].binds.insert(*p, Binding::Element(*a, OUTSIDE, here));
        }
    }
    fn representative(&self, id: Id) -> Id {
        let mut id = id;
        while let Some(next) = self.equal.get(&id) {
            id = *next;
        }
        id
    }
    pub(super) fn intern(&mut self, node: Node) -> Id {
        if let Node::If(c, a, b) = node {
            match self.assumed.get(&c) {
                Some(true) => return a,
                Some(false) => return b,
                None if a == b => return a,
                None => {}
            }
        }
        if let Some(known) = self.folded(&node) {
            return known;
        }
        let key = Key::of(&node);
        if let Some(id) = self.table.get(&key) {
            return self.representative(*id);
        }
        let mut dims = BTreeSet::new();
        match &node {
            Node::Dim(d) => {
                dims.insert(*d);
            }
            Node::Prim(_, ids) | Node::Read(_, ids) | Node::Local(_, ids) => {
                ids.iter().for_each(|i| dims.extend(self.dims[*i].iter().copied()));
            }
            Node::If(a, b, c) => {
                [a, b, c].iter().for_each(|i| dims.extend(self.dims[**i].iter().copied()));
            }
            Node::Const(_) | Node::Var(_) | Node::Size(..) => {}
        }
        let id = self.nodes.len();
        self.nodes.push(node);
        self.dims.push(dims);
        self.table.insert(key, id);
        id
    }
    fn folded(&mut self, node: &Node) -> Option<Id> {
        let Node::Prim(Prim::Op(op, s), ids) = node else { return None };
        if !s.is_integer() {
            return None;
        }
        let constant = |id: &Id| match self.nodes[*id] {
            Node::Const(c) => Some(c.as_i64()),
            _ => None,
        };
        let [x, y] = ids[..] else { return None };
        match (op, constant(&x), constant(&y)) {
            (Op::Mul, Some(0), _) => Some(x),
            (Op::Add, Some(0), _) | (Op::Mul, Some(1), _) => Some(y),
            (Op::Add | Op::Sub, _, Some(0)) | (Op::Mul, _, Some(1)) => Some(x),
            _ => None,
        }
    }
    pub(super) fn int(&mut self, k: i64) -> Id {
        self.intern(Node::Const(ScalarValue::I64(k)))
    }
    pub(super) fn dim(&mut self, d: Dim) -> Id {
        self.intern(Node::Dim(d))
    }
    pub(super) fn op2(&mut self, op: Op, s: Scalar, x: Id, y: Id) -> Id {
        self.intern(Node::Prim(Prim::Op(op, s), vec![x, y]))
    }

    // ---- facts ----

    /// The two are equal wherever the nest is reached.
    pub(super) fn unite(&mut self, a: Id, b: Id) {
        let (a, b) = (self.representative(a), self.representative(b));
        match a.cmp(&b) {
            std::cmp::Ordering::Less => self.equal.insert(b, a),
            std::cmp::Ordering::Greater => self.equal.insert(a, b),
            std::cmp::Ordering::Equal => None,
        };
    }
    pub(super) fn same(&self, a: Id, b: Id) -> bool {
        self.representative(a) == self.representative(b)
    }
    /// Whether two sizes agree if the code that combines them has been reached.
    pub(super) fn agree(&self, a: Id, b: Id) -> bool {
        let (a, b) = (self.representative(a), self.representative(b));
        a == b || self.agree.contains(&(a.min(b), a.max(b)))
    }
    fn note_agreement(&mut self, a: Id, b: Id) {
        if self.conditions > 0 {
            return;
        }
        let (a, b) = (self.representative(a), self.representative(b));
        self.agree.insert((a.min(b), a.max(b)));
    }
    /// Whether what is found now of something in scope at the nest holds from now on: nothing is assumed for it.
    fn holds(&self) -> bool {
        self.conditions == 0 && self.assumed.is_empty() && self.hypotheses.is_empty() && self.budget > 0
    }
    /// The expression that defines a variable.
    pub(super) fn expression(&self, v: Var) -> Option<&'a Exp> {
        match self.definitions.get(&v)? {
            Definition::Result(exp, _) => Some(exp),
            Definition::Payload(..) | Definition::State(..) => None,
        }
    }
    /// The variables that [`Node::Local`] nodes of this node mean.
    pub(super) fn locals(&self, id: Id, out: &mut IdSet<Var>) {
        match &self.nodes[id] {
            Node::Local(v, _) => {
                out.insert(*v);
            }
            Node::Prim(_, ids) | Node::Read(_, ids) => ids.iter().for_each(|i| self.locals(*i, out)),
            Node::If(a, b, c) => [a, b, c].iter().for_each(|i| self.locals(**i, out)),
            Node::Const(_) | Node::Var(_) | Node::Dim(_) | Node::Size(..) => {}
        }
    }
    /// The node with elements of columns in place of what was handed out.
    pub(super) fn replace_locals(&mut self, id: Id, columns: &IdMap<Var, Var>) -> Id {
        let node = match self.nodes[id].clone() {
            Node::Local(v, ids) => match columns.get(&v) {
                Some(column) => Node::Read(*column, self.replace_all(&ids, columns)),
                None => return id,
            },
            Node::Prim(prim, ids) => Node::Prim(prim, self.replace_all(&ids, columns)),
            Node::Read(v, ids) => Node::Read(v, self.replace_all(&ids, columns)),
            Node::If(a, b, c) => {
                let ids = self.replace_all(&[a, b, c], columns);
                Node::If(ids[0], ids[1], ids[2])
            }
            Node::Const(_) | Node::Var(_) | Node::Dim(_) | Node::Size(..) => return id,
        };
        self.intern(node)
    }
    fn replace_all(&mut self, ids: &[Id], columns: &IdMap<Var, Var>) -> Vec<Id> {
        ids.iter().map(|i| self.replace_locals(*i, columns)).collect()
    }
    /// A polynomial as a node.
    pub(super) fn sum_of(&mut self, p: &Polynomial) -> Id {
        let mut sum = self.int(0);
        for (monomial, k) in p.monomials() {
            let mut product = self.int(k);
            for factor in monomial {
                product = self.op2(Op::Mul, Scalar::I64, product, *factor);
            }
            sum = self.op2(Op::Add, Scalar::I64, sum, product);
        }
        sum
    }
    /// Notes that the variable, in scope at the nest, has this value. Under assumptions the node is only part of it.
    fn note_name(&mut self, v: Var, id: Id) {
        if self.assumed.is_empty() && self.dims[id].is_empty() {
            self.names.entry(id).or_insert(v);
        }
    }
    /// A variable in scope at the nest that has this value.
    pub(super) fn name(&self, id: Id) -> Option<Var> {
        self.names.get(&id).copied()
    }
    /// Whether evaluating the node anywhere cannot stop the program.
    pub(super) fn is_safe(&self, id: Id) -> bool {
        match self.node(id) {
            _ if self.names.contains_key(&id) => true,
            Node::Const(_) | Node::Var(_) | Node::Dim(_) | Node::Size(..) => true,
            Node::Prim(Prim::Op(op, _), ids) => {
                !matches!(op, Op::Div | Op::Mod | Op::Quot | Op::Rem | Op::Pow)
                    && ids.iter().all(|i| self.is_safe(*i))
            }
            Node::Prim(Prim::Convert(..), ids) => ids.iter().all(|i| self.is_safe(*i)),
            Node::Read(..) | Node::If(..) | Node::Local(..) => false,
        }
    }
    /// Whether the node is made of counters and numbers in scope at the nest only: nothing is read for it.
    pub(super) fn counts(&self, id: Id) -> bool {
        match self.node(id) {
            Node::Const(_) | Node::Var(_) | Node::Dim(_) | Node::Size(..) => true,
            Node::Prim(_, ids) => self.is_safe(id) && ids.iter().all(|i| self.counts(*i)),
            Node::Read(..) | Node::If(..) | Node::Local(..) => false,
        }
    }
    /// What the node is under a condition, if it is zero otherwise: the condition, whether it has to hold, the value.
    pub(super) fn guarded(&self, id: Id) -> Option<(Id, bool, Id)> {
        let is_zero = |id: Id| matches!(self.node(id), Node::Const(c) if c.is_float_zero());
        match *self.node(id) {
            Node::If(c, x, y) if is_zero(y) => Some((c, true, x)),
            Node::If(c, x, y) if is_zero(x) => Some((c, false, y)),
            _ => None,
        }
    }
    /// The value under conditions, zero of this type where one does not hold: the opposite of [`Delayed::guarded`].
    pub(super) fn guard(&mut self, value: Id, conditions: &[(Id, bool)], scalar: Scalar) -> Id {
        let zero = self.intern(Node::Const(scalar.zero()));
        conditions.iter().rev().fold(value, |v, (c, holds)| {
            self.intern(if *holds { Node::If(*c, v, zero) } else { Node::If(*c, zero, v) })
        })
    }
    /// Nothing is assumed of the condition any more.
    pub(super) fn forget(&mut self, condition: Id) {
        self.assumed.remove(&condition);
    }
    /// In what follows the condition has this value.
    pub(super) fn assume(&mut self, condition: Id, value: bool) {
        self.assumed.insert(condition, value);
    }
    /// Facts have been learnt; what follows has as much time.
    pub(super) fn begin(&mut self) {
        self.budget = BUDGET;
    }
    /// What statements that have been run before the nest say about sizes.
    pub(super) fn learn(&mut self, stm: &Stm) {
        match &stm.exp {
            Exp::Assert(Atom::Var(c), _, _) => {
                if let Some(Definition::Result(Exp::Prim(Prim::Op(Op::Eq, Scalar::I64), args), _)) =
                    self.definitions.get(c)
                    && let (Some(a), Some(b)) =
                        (self.element(args[0], OUTSIDE, &[]), self.element(args[1], OUTSIDE, &[]))
                {
                    self.unite(a, b);
                }
            }
            Exp::Soac(Soac::Map { width, arrays, .. }) => {
                for a in arrays {
                    if let (Some(n), Some(size)) =
                        (self.element(*width, OUTSIDE, &[]), self.size(*a, OUTSIDE, 0))
                    {
                        self.unite(n, size);
                    }
                }
            }
            _ => {}
        }
    }

    // ---- environments ----

    fn instance(
        &mut self,
        lam: &'a Body,
        parent: Env,
        binds: Vec<(Var, Binding)>,
        place: Option<(Id, Option<Id>)>,
    ) -> Env {
        let contains = self.order.inside(lam);
        let mut dims = self.instances[parent].dims.clone();
        if let Some((index, _)) = place {
            dims.extend(self.dims[index].iter().copied());
        }
        self.instances.push(Instance { parent, binds: binds.into_iter().collect(), contains, dims, place });
        self.instances.len() - 1
    }
    /// The environment of the elements of a map at an index.
    pub(super) fn enter(&mut self, width: Atom, lam: &'a Lam, arrays: &[Atom], env: Env, index: Id) -> Env {
        let binds = lam.params.iter().zip(arrays).map(|(p, a)| (*p, Binding::Element(*a, env, index)));
        let binds = binds.collect();
        let width = self.element(width, env, &[]).filter(|w| self.dims[*w].is_empty());
        if let Some(width) = width {
            self.note_inputs(arrays, env, width);
        }
        self.instance(&lam.body, env, binds, Some((index, width)))
    }
    /// The environment of an iteration of a counted loop.
    pub(super) fn iterate(&mut self, l: &'a Loop, env: Env, index: Id) -> Option<Env> {
        let LoopForm::For { i, n } = &l.form else { return None };
        (self.program.atom_type(*n) == Type::I64).then_some(())?;
        let width = self.element(*n, env, &[]).filter(|w| self.dims[*w].is_empty());
        let state = l.params.iter().map(|(v, _)| (*v, Binding::Opaque));
        let binds = state.chain([(*i, Binding::Scalar(index))]).collect();
        Some(self.instance(&l.body, env, binds, Some((index, width))))
    }
    /// The environment of an iteration of a loop of which nothing is known.
    pub(super) fn some_iteration(&mut self, l: &'a Loop, env: Env) -> Env {
        let state = l.params.iter().map(|(v, _)| (*v, Binding::Opaque)).collect();
        self.instance(&l.body, env, state, None)
    }
    /// Notes that the arrays of a map have its width, if the map is reached.
    fn note_inputs(&mut self, arrays: &[Atom], env: Env, width: Id) {
        for a in arrays {
            if let Some(size) = self.size(*a, env, 0) {
                self.note_agreement(size, width);
            }
        }
    }
    fn owner(&self, v: Var, env: Env) -> Env {
        let mut env = env;
        let place = self.order.get(v);
        let is_in = |i: &Instance| i.binds.contains_key(&v) || place.is_some_and(|p| i.contains.contains(&p));
        while env != OUTSIDE && !is_in(&self.instances[env]) {
            env = self.instances[env].parent;
        }
        env
    }
}
