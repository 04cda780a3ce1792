//! Vectors added at moved places become maps: what a stencil of one dimension adds to the cotangent of its input.
//!
//! ```text
//! withacc [y] { acc[i + 1] += v[i] for all i }      =>      map (\i -> if 1 <= i then y[i] + v[i - 1] else y[i])
//! ```
//!
//! A map can be joined with what makes `y` and `v`, and with what takes the sum; additions cannot.
//!
//! Assumes a checked program. Only vectors that are as long as the accumulator and moved by a few elements are treated: then a map costs what the additions
//! do. Guarantees: each element gets the numbers of before in their order, but for the zero of an accumulator that begins with zeros (as in
//! `accumulators`, a sum of one number is that number). Arrays of arrays are
//! left to the lowering of the kernel (`gather`), which does the same to several additions.

use crate::Ctx;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Builder, Exp, Lam, Program, Soac, Stm, Type, Var, View};
use pullback_prim::{Op, ScalarValue};

/// How far a vector may be moved.
const FAR: i64 = 8;

/// Runs the pass. Cost: the size of the program.
pub fn gather(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut moves = false;
        for_each_stm(&program.funs[id].body, &mut |s| {
            moves |= matches!(s.exp, Exp::AccView(_, View::Slice(_)))
        });
        if !moves {
            continue;
        }
        let mut body = std::mem::take(&mut program.funs[id].body);
        let shapes = shapes(program, &program.funs[id].params, &body);
        let mut g = Gather { program, shapes, zeros: IdSet::new(), counters: Vec::new() };
        g.body(&mut body);
        program.funs[id].body = body;
    }
}

struct Gather<'p> {
    program: &'p mut Program,
    shapes: Shapes,
    zeros: IdSet<Var>,
    /// Arrays of 0, 1, 2, .. in scope, with their sizes.
    counters: Vec<(Atom, Var)>,
}

/// A sum of vectors at several places.
struct Moved {
    /// What is added to.
    first: Atom,
    /// How many elements it and each of the vectors has.
    length: Atom,
    /// Where each vector begins, and the vector.
    terms: Vec<(i64, Atom)>,
}

impl Gather<'_> {
    fn body(&mut self, body: &mut Body) {
        let mut out = Vec::with_capacity(body.stms.len());
        let outside = self.counters.len();
        for mut stm in std::mem::take(&mut body.stms) {
            for scope in stm.exp.bodies_mut() {
                self.body(scope.body);
            }
            if let Exp::Replicate(_, Atom::Const(c)) = stm.exp
                && c.is_float_zero()
            {
                self.zeros.extend(stm.pat.iter().copied());
            }
            if let Exp::Iota(n) = stm.exp {
                self.counters.extend(stm.pat.iter().map(|v| (n, *v)));
            }
            match self.moved(&stm) {
                Some(moved) => self.write(stm.pat[0], &moved, &mut out),
                None => out.push(stm),
            }
        }
        self.counters.truncate(outside);
        body.stms = out;
    }

    /// What is added to an accumulator; `None` if it is used in another way, or nothing is moved.
    fn moved(&self, stm: &Stm) -> Option<Moved> {
        let Exp::WithAcc(inits, Lam { params, body }) = &stm.exp else { return None };
        let ([init], [acc], []) = (&inits[..], &params[..], &body.result[..]) else { return None };
        let Type::Array(elem) = self.program.atom_type(*init) else { return None };
        let [size] = self.shapes.of(init.var()?) else { return None };
        (elem.scalar().is_some_and(|s| s.is_float()) && *size != Dim::Unknown).then_some(())?;
        let mut starts = IdMap::from([(*acc, 0)]);
        let (mut length, mut terms) = (None, Vec::new());
        for s in &body.stms {
            match &s.exp {
                Exp::AccView(Atom::Var(a), View::Slice(slice)) if a == acc => {
                    let Atom::Const(ScalarValue::I64(start)) = slice.start else { return None };
                    let whole = self.shapes.name(slice.len) == *size && slice.stride == Atom::i64(1);
                    (whole && start != 0 && (-FAR..=FAR).contains(&start)).then_some(())?;
                    length = length.or(Some(slice.len));
                    starts.insert(s.pat[0], start);
                }
                Exp::AccAdd(Atom::Var(a), ix, v) if starts.contains_key(a) && ix.is_empty() => {
                    terms.push((starts[a], *v));
                }
                _ => return None,
            }
        }
        Some(Moved { first: *init, length: length?, terms })
    }

    /// Binds `v` to the sum.
    fn write(&mut self, v: Var, moved: &Moved, out: &mut Vec<Stm>) {
        let (first, n) = (moved.first, moved.length);
        let zeros = first.var().is_some_and(|v| self.zeros.contains(&v));
        let mut b = Builder::new(self.program);
        b.origin = b.program.vars[v].origin.clone();
        let counter = self.counters.iter().find(|(size, _)| *size == n);
        let mut arrays = vec![counter.map_or_else(|| b.emit(Exp::Iota(n), "is"), |(_, v)| (*v).into())];
        arrays.extend((!zeros).then_some(first));
        let zero = b.elem(first).scalar().map(|s| Atom::Const(s.zero()));
        let elements: Vec<Type> = arrays.iter().map(|a| b.elem(*a)).collect();
        let lam = b.lam(&elements, "x", |b, params| {
            let i: Atom = params[0].into();
            let mut sum = params.get(1).map(|x| Atom::Var(*x));
            for (start, vector) in &moved.terms {
                sum = Some(term(b, (i, n), sum, (*start, *vector), zero));
            }
            sum.or(zero).into_iter().collect()
        });
        b.emit_to(vec![v], Exp::Soac(Soac::Map { width: n, lam, arrays }));
        out.extend(b.finish());
    }
}

/// The sum with the element of a moved vector that belongs to place `i` of `n`, if it has one.
fn term(
    b: &mut Builder<'_>,
    (i, n): (Atom, Atom),
    sum: Option<Atom>,
    (start, vector): (i64, Atom),
    zero: Option<Atom>,
) -> Atom {
    let place = if start == 0 { i } else { b.op2(Op::Sub, i, Atom::i64(start)) };
    let added = |b: &mut Builder<'_>| {
        let x = b.index(vector, &[place]);
        sum.map_or(x, |sum| b.op2(Op::Add, sum, x))
    };
    let there = match start {
        0 => return added(b),
        1.. => b.op2(Op::Le, Atom::i64(0), place),
        _ => b.op2(Op::Lt, place, n),
    };
    b.if_(there, |b| vec![added(b)], |_| sum.or(zero).into_iter().collect())[0].into()
}
