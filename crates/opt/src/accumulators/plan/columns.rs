//! E3 for records: numbers that are added to all components of one row, whose index depends on data, are one histogram
//! over columns.
//!
//! ```text
//! acc[k, 0] += v0;  acc[k, 1] += v1;  ..     in a nest
//!     =>   c0, c1, .. = hist (+) at k of v0, v1, ..  after the scope;   acc = rows (c0, c1, ..)
//! ```
//!
//! Assumes that the additions stand in one body, and that the row is known to have as many components as are added to.
//! Cost: per point two steps more than adding one by one, and once the size of the accumulator.

use super::{Plan, at, at_mut, extent};
use crate::accumulators::delayed::{Dim, OUTSIDE, Order};
use crate::accumulators::nest::Nest;
use crate::accumulators::sites::{self, Attempt, Site};
use pullback_core::{Atom, Body, Builder, Exp, FunId, Program, Soac, Stm, Type, Var, VarInfo, View};
use pullback_prim::{Op, ScalarValue};

/// How many components a row may have.
const LIMIT: usize = 32;

/// What is added to a row.
struct Row {
    key: Var,
    components: Vec<Var>,
}

/// The program in which this addition, and those to the other components of the row, have left their nest.
pub(super) fn apply(program: &Program, id: FunId, site: &Site, attempt: Attempt) -> Option<Program> {
    let found = Found::of(program, id, site)?;
    let mut before = program.clone();
    let row = gather(&mut before, id, site, &found)?;
    let alone = sites::find(&before, id).into_iter().find(|s| s.done == site.done)?.alone;
    let order = Order::of(&before, &before.funs[id].body);
    let mut plan = Plan::new(&before, id, site, attempt, &order)?;
    let mut work = before.clone();
    plan.columns(&mut work, &row, alone)?;
    Some(work)
}

/// The additions to the components of one row, in one body.
struct Found {
    root: Var,
    key: Atom,
    /// Statement, component and value of each.
    additions: Vec<(usize, usize, Atom)>,
    /// How many components there are.
    count: usize,
}

impl Found {
    /// Those with which this site is the first.
    fn of(program: &Program, id: FunId, site: &Site) -> Option<Found> {
        let fun = &program.funs[id];
        let scope = &at(&fun.body, &site.path[..site.root]).stms[site.path[site.root].0];
        let Exp::WithAcc(_, lam) = &scope.exp else { return None };
        let root = lam.params[site.number];
        let body = at(&fun.body, &site.path);
        let (key, _, _) = address(body, &body.stms[site.at], root)?;
        let additions = body.stms.iter().enumerate().filter_map(|(at, stm)| {
            let (k, component, value) = address(body, stm, root)?;
            (k == key).then_some((at, component, value))
        });
        let additions: Vec<(usize, usize, Atom)> = additions.collect();
        let count = 1 + additions.iter().map(|f| f.1).max()?;
        let complete = (0..count).all(|c| additions.iter().any(|f| f.1 == c));
        let is_float = |a: &Atom| program.atom_type(*a).scalar().is_some_and(|s| s.is_float());
        let is_first = additions.first()?.0 == site.at;
        (is_first && complete && (2..=LIMIT).contains(&count)).then_some(())?;
        additions.iter().all(|f| is_float(&f.2)).then_some(())?;
        Some(Found { root, key, additions, count })
    }
}

/// Names the index and the components behind the last addition, and leaves one addition in place of all.
fn gather(program: &mut Program, id: FunId, site: &Site, row: &Found) -> Option<Row> {
    let Found { root, key, additions: found, count } = row;
    let (first, last) = (found.first()?.0, found.last()?.0);
    let mut b = Builder::new(program);
    b.origin = b.program.vars[site.done].origin.clone();
    let key = b.emit(Exp::Atom(*key), "i").var()?;
    let mut components = Vec::new();
    for c in 0..*count {
        let terms = found.iter().filter(|f| f.1 == c).map(|f| f.2);
        let sum = terms.reduce(|x, y| b.op2(Op::Add, x, y))?;
        components.push(b.emit(Exp::Atom(sum), "v").var()?);
    }
    let mut stms = b.finish();
    let ix = vec![key.into(), Atom::i64(0)];
    stms.push(Stm { pat: vec![site.done], exp: Exp::AccAdd((*root).into(), ix, components[0].into()) });
    let body = at_mut(&mut program.funs[id].body, &site.path);
    found.iter().for_each(|f| body.stms[f.0].exp = Exp::Tuple(Vec::new()));
    body.stms.splice(last + 1..last + 1, stms);
    body.stms.remove(first);
    Some(Row { key, components })
}

/// The index of the row, the component and the value of an addition of a number to a matrix, or to a view of a row.
fn address(body: &Body, stm: &Stm, root: Var) -> Option<(Atom, usize, Atom)> {
    let Exp::AccAdd(acc, ix, value) = &stm.exp else { return None };
    let (key, component) = match ix[..] {
        [key, component] if *acc == Atom::Var(root) => (key, component),
        [component] => {
            let view = body.stms.iter().find(|s| s.pat.first().copied() == acc.var())?;
            let Exp::AccView(base, View::Index(jx)) = &view.exp else { return None };
            let [key] = jx[..] else { return None };
            (*base == Atom::Var(root)).then_some((key, component))?
        }
        _ => return None,
    };
    let Atom::Const(ScalarValue::I64(component)) = component else { return None };
    Some((key, usize::try_from(component).ok()?, *value))
}

impl Plan<'_> {
    fn columns(&mut self, work: &mut Program, row: &Row, alone: bool) -> Option<()> {
        let components = self.values.size(self.init, OUTSIDE, 1)?;
        let count = self.values.int(row.components.len() as i64);
        (!self.is_loop && self.values.same(components, count)).then_some(())?;
        let mut ids = vec![match self.guards[..] {
            [] => self.values.element(row.key.into(), self.env, &[])?,
            // Under a condition an index may mean nothing where the condition does not hold.
            _ => self.values.local(row.key, self.env, &[])?,
        }];
        for v in &row.components {
            ids.push(self.values.local(*v, self.env, &[])?);
        }
        let keys: Vec<Dim> = (0..self.values.widths.len()).collect();
        let (parts, shapes) = self.hand_out(work, &ids)?;
        let mut b = Builder::new(work);
        b.origin = self.values.program.vars[self.site.done].origin.clone();
        let given = self.extents(&mut b)?;
        let mut known = given.clone();
        let mut nest =
            Nest { values: &mut self.values, loops: keys.clone(), kept: keys.len(), shapes: &shapes, given };
        let width = extent(&mut nest, &mut b, &keys, &mut known)?;
        let mut columns = Vec::new();
        for part in parts {
            let array = nest.emit(&mut b, part)?;
            let flat = Exp::Reshape { shape: vec![width], from: keys.len(), array };
            columns.push(if keys.len() > 1 { b.emit(flat, "vs") } else { array });
        }
        let stms = b.finish();
        self.insert(work, stms);
        let zero = alone && self.is_zero();
        self.rows_after_scope(work, width, &columns, zero)
    }

    /// The histogram of what the scope returns; `columns`: indices, then the components. `zero`: the scope returns zeros.
    fn rows_after_scope(&self, work: &mut Program, width: Atom, columns: &[Atom], zero: bool) -> Option<()> {
        let entry = self.site.path[self.site.root].0;
        let origin = work.vars[self.site.done].origin.clone();
        let inner: Vec<Atom> = std::iter::once(width).chain(columns.iter().copied()).collect();
        let mut outside = |a: &Atom| {
            let info = VarInfo { ty: work.atom_type(*a), hint: "vs".into(), origin: origin.clone() };
            work.vars.push(info)
        };
        let outer: Vec<Var> = inner.iter().map(&mut outside).collect();
        let [width, indices, values @ ..] = &outer[..] else { return None };
        let holder = at(&work.funs[self.function].body, &self.site.path[..self.site.root]);
        let old = holder.stms[entry].pat[self.site.number];
        let info = work.vars[old].clone();
        let elem: Type = info.ty.peel(2)?.clone();
        let zero_number = Atom::Const(elem.scalar()?.zero());
        let fresh = work.vars.push(info);
        let mut b = Builder::new(work);
        b.origin = origin;
        let n = b.size(fresh.into(), 0);
        let count = values.len();
        let dst: Vec<Atom> = if zero {
            vec![b.emit(Exp::Replicate(vec![n], zero_number), "zeros"); count]
        } else {
            let turned = b.emit(Exp::Rearrange(vec![1, 0], fresh.into()), "xs");
            (0..count).map(|c| b.index(turned, &[Atom::i64(c as i64)])).collect()
        };
        let lam = b.lam(&vec![elem.clone(); 2 * count], "x", |b, p| {
            (0..count).map(|c| b.op2(Op::Add, p[c].into(), p[count + c].into())).collect()
        });
        let hist = Soac::Hist {
            width: (*width).into(),
            lam,
            neutral: vec![zero_number; count],
            dst,
            indices: (*indices).into(),
            values: values.iter().map(|v| (*v).into()).collect(),
        };
        let sums: Vec<Atom> = b.emit_all(Exp::Soac(hist), "x_bar").into_iter().map(Atom::Var).collect();
        let lam = b.lam(&vec![elem.clone(); count], "x", |b, p| {
            vec![b.emit(Exp::ArrayLit(elem.clone(), p.iter().map(|v| (*v).into()).collect()), "x_bar")]
        });
        b.emit_to(vec![old], Exp::Soac(Soac::Map { width: n, lam, arrays: sums }));
        let after = b.finish();
        let holder = at_mut(&mut work.funs[self.function].body, &self.site.path[..self.site.root]);
        let scope = &mut holder.stms[entry];
        let Exp::WithAcc(_, lam) = &mut scope.exp else { return None };
        lam.body.result.extend(inner);
        scope.pat[self.site.number] = fresh;
        scope.pat.extend(outer);
        holder.stms.splice(entry + 1..entry + 1, after);
        Some(())
    }
}
