//! A term as core.
//!
//! More than 500 lines: every term has its rule, and so has every frame.

use super::terms::{
    Calls, Cond, Expr, Frame, INPUTS, Read, SORTS, Sort, Start, Term, Trips, Writes, mentions,
};
use pullback_base::Symbol;
use pullback_core::{
    Atom, Body, Builder, Exp, Fun, FunId, Lam, Loop, LoopAttrs, LoopForm, Program, SliceDim, Soac, Type,
    Value, Var,
};
use pullback_prim::{Op, Scalar};
use std::sync::Arc;

/// Lanes of [`Frame::Lanes`].
const LANES: i64 = 3;
/// Rows of a matrix.
const ROWS: i64 = 4;

fn type_of(sort: Sort) -> Type {
    let vector = || Type::array(Type::F64);
    match sort {
        Sort::Vector => vector(),
        Sort::Matrix => Type::array(vector()),
        Sort::Option => Type::sum([("none", vec![]), ("some", vec![vector()])]),
    }
}

/// The program of a term, and its main function.
pub fn program(term: &Term) -> (Program, FunId) {
    let mut program = Program::default();
    let (vector, matrix) = (type_of(Sort::Vector), type_of(Sort::Matrix));
    let params = [
        ("n", Type::I64),
        ("x", vector.clone()),
        ("w", vector.clone()),
        ("rows", matrix.clone()),
        ("cols", matrix),
        ("wide", vector.clone()),
        ("flat", vector),
    ];
    let go = matches!(term.frame, Frame::Calls(_)).then(|| recursion(&mut program, term));
    let main = Builder::function(&mut program, "main", &params, vec![Type::F64], |b, p| {
        let mut p: Vec<Atom> = p.iter().map(|&v| v.into()).collect();
        p.push(b.emit(Exp::Replicate(vec![p[0]], Atom::f64(0.3)), "fixed"));
        let mut scope = Scope::new(&p, term);
        vec![scope.frame(b, go)]
    });
    (program, main)
}

/// Arguments of a size. Equal positions hold equal numbers at all sizes.
pub fn args(n: usize) -> Vec<Value> {
    let floats = |len: usize, phase: f64| -> Vec<f64> {
        (0..len).map(|i| 0.4 * (i as f64 * 0.37 + phase).sin() + 0.05).collect()
    };
    vec![
        Value::i64(n as i64),
        Value::f64s(&floats(n, 0.0)),
        Value::f64s(&floats(n, 1.0)),
        Value::f64_array(&[4, n], &floats(4 * n, 2.0)),
        Value::f64_array(&[n, 4], &floats(4 * n, 3.0)),
        Value::f64s(&floats(2 * n, 4.0)),
        Value::f64s(&floats(4 * n, 5.0)),
    ]
}

/// The function that calls itself, or the first of two that call each other: counter, sum, states and all inputs to the last sum and states.
fn recursion(program: &mut Program, term: &Term) -> FunId {
    let states = term.states.iter().map(|s| type_of(*s));
    let results: Vec<Type> = std::iter::once(Type::F64).chain(states).collect();
    let names: &[&str] = if term.frame == Frame::Calls(Calls::Mutual) { &["go", "back"] } else { &["go"] };
    let empty = |name: &&str| Fun {
        name: Symbol::new(name),
        params: Vec::new(),
        body: Body::default(),
        results: results.clone(),
        entry: None,
    };
    let all: Vec<FunId> = names.iter().map(|name| program.funs.push(empty(name))).collect();
    for (k, &go) in all.iter().enumerate() {
        one_of_recursion(program, term, go, all[(k + 1) % all.len()]);
    }
    all[0]
}
fn one_of_recursion(program: &mut Program, term: &Term, go: FunId, calls: FunId) {
    let results = program.funs[go].results.clone();
    let mut b = Builder::new(program);
    let inputs = [Type::I64, type_of(Sort::Vector), type_of(Sort::Vector)];
    let others = [Sort::Matrix, Sort::Matrix, Sort::Vector, Sort::Vector, Sort::Vector].map(type_of);
    let inputs: Vec<Var> = inputs.into_iter().chain(others).map(|t| b.fresh(t, "p")).collect();
    let k = b.fresh(Type::I64, "k");
    let state: Vec<Var> = results.iter().map(|t| b.fresh(t.clone(), "state")).collect();
    let params: Vec<Var> = inputs.iter().copied().chain([k]).chain(state.iter().copied()).collect();
    let atoms: Vec<Atom> = inputs.iter().map(|&v| v.into()).collect();
    let body = b.scope(|b| {
        let go_on = b.op2(Op::Lt, k.into(), atoms[0]);
        let out = b.if_(
            go_on,
            |b| {
                let mut scope = Scope::new(&atoms, term);
                let next = scope.iteration(b, k.into(), &state);
                let after = b.op2(Op::Add, k.into(), Atom::i64(1));
                let args = [atoms.clone(), vec![after], next].concat();
                let mut out: Vec<Atom> =
                    b.emit_all(Exp::Call(calls, args), "r").into_iter().map(Atom::Var).collect();
                if term.frame != Frame::Calls(Calls::Last) {
                    scope.i = k.into();
                    out[0] = scope.elements(b, &out);
                }
                match term.frame {
                    Frame::Calls(Calls::Writes) => scope.backwards(b, &out),
                    Frame::Calls(Calls::Same) => {
                        let first = |sort: &Sort| term.states.iter().position(|s| s == sort).unwrap_or(0);
                        std::iter::once(out[0]).chain(term.states.iter().map(|s| out[1 + first(s)])).collect()
                    }
                    _ => out,
                }
            },
            |_| state.iter().map(|&v| v.into()).collect(),
        );
        out.into_iter().map(Atom::Var).collect()
    });
    let fun = &mut program.funs[go];
    (fun.params, fun.body) = (params, body);
}

#[derive(Clone, Copy)]
struct Inputs {
    n: Atom,
    rows: Atom,
    cols: Atom,
    wide: Atom,
    flat: Atom,
    fixed: Atom,
}

#[derive(Clone)]
struct Scope<'t> {
    inputs: Inputs,
    all: Vec<Atom>,
    /// By sort.
    names: [Vec<Atom>; 3],
    /// The counter of the iteration, below n.
    i: Atom,
    /// The sum so far.
    s: Atom,
    term: &'t Term,
}

impl<'t> Scope<'t> {
    fn new(p: &[Atom], term: &'t Term) -> Scope<'t> {
        let inputs = Inputs { n: p[0], rows: p[3], cols: p[4], wide: p[5], flat: p[6], fixed: p[7] };
        let names = [vec![p[1], p[2]], Vec::new(), Vec::new()];
        debug_assert_eq!(SORTS.map(|s| names[s as usize].len()), INPUTS);
        Scope { inputs, all: p.to_vec(), names, i: Atom::i64(0), s: Atom::f64(0.1), term }
    }

    fn frame(&mut self, b: &mut Builder<'_>, go: Option<FunId>) -> Atom {
        let n = self.inputs.n;
        match self.term.frame {
            Frame::For => self.whole(b, n),
            Frame::While => {
                let init = self.first(b);
                let mut params: Vec<(Var, Atom)> =
                    init.iter().map(|&a| (b.fresh(b.ty(a), "state"), a)).collect();
                let states: Vec<Var> = params.iter().map(|p| p.0).collect();
                let k = b.fresh(Type::I64, "k");
                params.push((k, Atom::i64(0)));
                let mut inner = self.clone();
                let condition = b.scope(|b| vec![b.op2(Op::Lt, k.into(), n)]);
                let body = b.scope(|b| {
                    let mut next = inner.iteration(b, k.into(), &states);
                    next.push(b.op2(Op::Add, k.into(), Atom::i64(1)));
                    next
                });
                let form = LoopForm::While(condition);
                let l = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
                let out = b.emit_all(Exp::Loop(l), "s");
                let out: Vec<Atom> = out.into_iter().take(init.len()).map(Atom::Var).collect();
                self.elements(b, &out)
            }
            Frame::Nested(trips) => {
                let out = b.for_loop(n, &[self.s], |b, i, s| {
                    let mut inner = Scope { i: i.into(), s: s[0].into(), ..self.clone() };
                    let n = inner.trips(b, trips);
                    vec![inner.whole(b, n)]
                });
                out[0].into()
            }
            Frame::Lanes => self.lanes(b, |lane, b| lane.whole(b, n)),
            Frame::Calls(Calls::Lanes) => self.lanes(b, |lane, b| lane.called(b, go)),
            Frame::Calls(_) => self.called(b, go),
        }
    }

    /// The sum of what some lanes give that start with different sums.
    fn lanes(&self, b: &mut Builder<'_>, lane: impl FnOnce(&mut Self, &mut Builder<'_>) -> Atom) -> Atom {
        let width = Atom::i64(LANES);
        let lanes = b.emit(Exp::Iota(width), "lanes");
        let out = b.map(width, &[lanes], |b, number| {
            let by = b.convert(number[0].into(), Scalar::F64);
            let by = b.op2(Op::Mul, by, Atom::f64(0.1));
            let s = b.op2(Op::Add, self.s, by);
            vec![lane(&mut Scope { s, ..self.clone() }, b)]
        });
        b.sum(width, out[0].into())
    }

    /// The recursion, and what comes of it.
    fn called(&mut self, b: &mut Builder<'_>, go: Option<FunId>) -> Atom {
        let args = [self.all.clone(), vec![Atom::i64(0)], self.first(b)].concat();
        let out = go.map_or(Vec::new(), |go| b.emit_all(Exp::Call(go, args), "r"));
        let out: Vec<Atom> = out.into_iter().map(Atom::Var).collect();
        self.elements(b, &out)
    }

    /// The loop of `trips` iterations, and what comes of it.
    fn whole(&mut self, b: &mut Builder<'_>, trips: Atom) -> Atom {
        let init = self.first(b);
        let outer = self.i;
        let product = self.term.start == Start::Product;
        let carried =
            if product { vec![init[0], b.emit(Exp::Tuple(init[1..].to_vec()), "both")] } else { init };
        let out = b.for_loop(trips, &carried, |b, i, states| {
            // Iterations of an inner loop differ.
            let i = b.op2(Op::Add, i.into(), outer);
            let i = b.op2(Op::Mod, i, self.inputs.n);
            let states = if product { self.unpacked(b, states) } else { states.to_vec() };
            let next = self.clone().iteration(b, i, &states);
            if product { vec![next[0], b.emit(Exp::Tuple(next[1..].to_vec()), "both")] } else { next }
        });
        let out = if product { self.unpacked(b, &out) } else { out };
        let out: Vec<Atom> = out.into_iter().map(Atom::Var).collect();
        self.elements(b, &out)
    }
    fn unpacked(&self, b: &mut Builder<'_>, states: &[Var]) -> Vec<Var> {
        let mut out = vec![states[0]];
        for k in 0..self.term.states.len() {
            out.extend(b.emit_all(Exp::Proj(states[1].into(), k), "one"));
        }
        out
    }

    fn first(&mut self, b: &mut Builder<'_>) -> Vec<Atom> {
        let mut init = vec![self.s];
        for (k, sort) in self.term.states.iter().enumerate() {
            let k = if self.term.start == Start::Same { 0 } else { k % 2 };
            let vector = if self.term.start == Start::Fixed { self.inputs.fixed } else { self.names[0][k] };
            init.push(match sort {
                Sort::Vector => vector,
                Sort::Matrix => self.inputs.rows,
                Sort::Option => b.emit(Exp::Inject(type_of(*sort), 1, vec![vector]), "some"),
            });
        }
        init
    }

    /// The sum and an element of each last state.
    fn elements(&mut self, b: &mut Builder<'_>, out: &[Atom]) -> Atom {
        let mut s = out[0];
        for (&a, sort) in out[1..].iter().zip(&self.term.states) {
            let e = match sort {
                Sort::Vector => b.index(a, &[self.i]),
                Sort::Matrix => b.index(a, &[Atom::i64(1), self.i]),
                Sort::Option => {
                    let i = self.i;
                    let out = b.match_(a, |b, _, inside| match inside {
                        [v] => vec![b.index((*v).into(), &[i])],
                        _ => vec![Atom::f64(0.2)],
                    });
                    out[0].into()
                }
            };
            let e = b.op2(Op::Mul, e, Atom::f64(0.5));
            s = b.op2(Op::Add, s, e);
        }
        s
    }

    /// The sum and the last states, of each array an element overwritten, backwards.
    fn backwards(&mut self, b: &mut Builder<'_>, out: &[Atom]) -> Vec<Atom> {
        let mut written = vec![out[0]];
        for (&a, sort) in out[1..].iter().zip(&self.term.states) {
            let names = &mut self.names[*sort as usize];
            names.push(a);
            let name = Arc::new(Expr::Name(*sort, names.len() - 1));
            written.push(match sort {
                Sort::Vector | Sort::Matrix => self.expr(b, &Expr::Back(Arc::new(Expr::With(name)))),
                Sort::Option => a,
            });
        }
        written
    }

    fn iteration(&mut self, b: &mut Builder<'_>, i: Atom, states: &[Var]) -> Vec<Atom> {
        self.i = i;
        self.s = states[0].into();
        for (sort, &v) in self.term.states.iter().zip(&states[1..]) {
            self.names[*sort as usize].push(v.into());
        }
        self.lets(b);
        let (read, a) = &self.term.read;
        let a = self.expr(b, a);
        let e = self.read(b, *read, a);
        let t = b.op2(Op::Add, self.s, e);
        let s = b.op1(Op::Sin, t);
        let next: Vec<Atom> = self.term.next.iter().map(|a| self.expr(b, a)).collect();
        [vec![s], next].concat()
    }

    fn lets(&mut self, b: &mut Builder<'_>) {
        let lets = &self.term.lets;
        let mut k = 0;
        while let Some(first) = lets.get(k) {
            let name = Expr::Name(Sort::Vector, self.names[0].len());
            match (&**first, lets.get(k + 1).map(|a| &**a)) {
                (Expr::If(c, x, y), Some(second @ Expr::If(d, z, w)))
                    if self.term.joined && c == d && !mentions(second, &name) =>
                {
                    let c = self.condition(b, *c);
                    let then = self.arm(b, [x, z]);
                    let otherwise = self.arm(b, [y, w]);
                    let both = b.emit_all(Exp::If(c, then, otherwise), "either");
                    self.names[0].extend(both.into_iter().map(Atom::Var));
                    k += 2;
                }
                (Expr::With(x), Some(second @ Expr::With(y)))
                    if self.term.joined && !mentions(second, &name) =>
                {
                    let x = self.expr(b, x);
                    self.names[0].push(x);
                    let y = self.expr(b, y);
                    self.names[0].pop();
                    let both = self.written_together(b, [x, y]);
                    self.names[0].extend(both.into_iter().map(Atom::Var));
                    k += 2;
                }
                _ => {
                    let a = self.expr(b, first);
                    self.names[0].push(a);
                    k += 1;
                }
            }
        }
    }
    /// Two arrays with something added to one element each, by one statement.
    fn written_together(&self, b: &mut Builder<'_>, dst: [Atom; 2]) -> Vec<Var> {
        let indices = b.emit(Exp::ArrayLit(Type::I64, vec![self.i]), "at");
        let value = b.emit(Exp::ArrayLit(Type::F64, vec![self.s]), "value");
        let params: Vec<Var> = (0..4).map(|_| b.fresh(Type::F64, "x")).collect();
        let body = b.scope(|b| {
            let sum = |b: &mut Builder<'_>, k: usize| b.op2(Op::Add, params[k].into(), params[k + 2].into());
            vec![sum(b, 0), sum(b, 1)]
        });
        let lam = Lam { params, body };
        let (width, neutral) = (Atom::i64(1), vec![Atom::f64(0.0); 2]);
        let hist = Soac::Hist { width, lam, neutral, dst: dst.into(), indices, values: vec![value; 2] };
        b.emit_all(Exp::Soac(hist), "written")
    }
    /// An element of a vector, or a row of a matrix, overwritten as a slice, by a scatter or by a histogram of one.
    fn written_at_once(&self, b: &mut Builder<'_>, dst: Atom) -> Atom {
        let (one, is_vector) = (Atom::i64(1), b.ty(dst).rank() == 1);
        let at = if is_vector { self.i } else { self.below(b, ROWS) };
        let shape = if is_vector { vec![one] } else { vec![one, self.inputs.n] };
        let values = b.emit(Exp::Replicate(shape, self.s), "values");
        let element = b.elem(dst);
        let soac = match self.term.writes {
            Writes::Element | Writes::Slice => {
                let slice = SliceDim { start: at, len: one, stride: one };
                return b.emit(Exp::UpdateSlice(dst, slice, values), "written");
            }
            Writes::Scatter => {
                let indices = b.emit(Exp::ArrayLit(Type::I64, vec![at]), "at");
                Soac::Scatter { width: one, dst, indices, values }
            }
            Writes::Histogram => {
                let indices = b.emit(Exp::ArrayLit(Type::I64, vec![at]), "at");
                let zero = Atom::f64(0.0);
                let neutral =
                    if is_vector { zero } else { b.emit(Exp::Replicate(vec![self.inputs.n], zero), "zeros") };
                let lam = b.lam(&[element.clone(), element], "x", |b, p| {
                    let (x, y) = (p[0].into(), p[1].into());
                    if is_vector {
                        return vec![b.op2(Op::Add, x, y)];
                    }
                    let sum = |b: &mut Builder<'_>, p: &[Var]| vec![b.op2(Op::Add, p[0].into(), p[1].into())];
                    b.map(self.inputs.n, &[x, y], sum).into_iter().map(Atom::Var).collect()
                });
                Soac::Hist {
                    width: one,
                    lam,
                    neutral: vec![neutral],
                    dst: vec![dst],
                    indices,
                    values: vec![values],
                }
            }
        };
        b.emit(Exp::Soac(soac), "written")
    }
    /// What a branch gives two lets; the second counts the name of the first as in scope.
    fn arm(&self, b: &mut Builder<'_>, [x, y]: [&Expr; 2]) -> Body {
        let mut inner = self.clone();
        b.scope(|b| {
            let x = inner.expr(b, x);
            inner.names[0].push(x);
            vec![x, inner.expr(b, y)]
        })
    }

    fn read(&self, b: &mut Builder<'_>, read: Read, a: Atom) -> Atom {
        let i = self.i;
        match read {
            Read::Element => {
                let e = b.index(a, &[i]);
                b.op2(Op::Mul, e, e)
            }
            Read::Lane => {
                let one = Atom::i64(1);
                let at = b.emit(Exp::ArrayLit(Type::I64, vec![i]), "at");
                let out = b.map(one, &[at], |b, k| {
                    let e = b.index(a, &[k[0].into()]);
                    vec![b.op2(Op::Mul, e, e)]
                });
                b.sum(one, out[0].into())
            }
            Read::Chosen | Read::Beside => {
                let even = self.condition(b, Cond::Even);
                let last = self.names[0].last().copied().unwrap_or(a);
                let there = |b: &mut Builder<'_>| {
                    let e = self.read(b, Read::Lane, a);
                    if read == Read::Chosen {
                        return vec![e];
                    }
                    let n = b.size(last, 0);
                    let sines = b.map(n, &[last], |b, x| vec![b.op1(Op::Sin, x[0].into())]);
                    let sum = b.sum(n, sines[0].into());
                    let both = b.op2(Op::Mul, e, sum);
                    vec![b.op1(Op::Sin, both)]
                };
                b.if_(even, there, |_| vec![Atom::f64(0.5)])[0].into()
            }
            Read::Written => {
                let even = self.condition(b, Cond::Even);
                let at = b.emit(Exp::ArrayLit(Type::I64, vec![i]), "at");
                let out = b.map(Atom::i64(1), &[at], |b, _| {
                    let write =
                        |b: &mut Builder<'_>| vec![b.emit(Exp::Update(a, vec![i], self.s), "written")];
                    let either = b.if_(even, write, |_| vec![a])[0];
                    vec![self.read(b, Read::Lane, either.into())]
                });
                b.sum(Atom::i64(1), out[0].into())
            }
            Read::Gather => {
                let at = b.emit(Exp::ArrayLit(Type::I64, vec![i]), "at");
                let part = b.emit(Exp::Gather(a, at), "part");
                b.sum(Atom::i64(1), part)
            }
            Read::Sum => {
                let e = b.sum(self.inputs.n, a);
                b.op1(Op::Sin, e)
            }
        }
    }

    fn below(&self, b: &mut Builder<'_>, n: i64) -> Atom {
        b.op2(Op::Mod, self.i, Atom::i64(n))
    }

    fn expr(&mut self, b: &mut Builder<'_>, a: &Expr) -> Atom {
        let Inputs { n, rows, cols, wide, flat, fixed } = self.inputs;
        let step = Atom::i64(1);
        match a {
            Expr::Name(sort, k) => self.names[*sort as usize][*k],
            Expr::Row => {
                let k = self.below(b, ROWS);
                b.index(rows, &[k])
            }
            Expr::Column => {
                let k = self.below(b, ROWS);
                let turned = b.emit(Exp::Rearrange(vec![1, 0], cols), "turned");
                b.index(turned, &[k])
            }
            Expr::Slice => b.slice(wide, self.i, n, step),
            Expr::Fixed => fixed,
            Expr::New => b.emit(Exp::Replicate(vec![n], Atom::f64(0.3)), "new"),
            Expr::RowOf(m) => {
                let m = self.expr(b, m);
                let k = self.below(b, ROWS);
                b.index(m, &[k])
            }
            Expr::Window(m) => {
                let array = self.expr(b, m);
                let all = b.op2(Op::Mul, n, Atom::i64(ROWS));
                let array = b.emit(Exp::Reshape { shape: vec![all], from: 2, array }, "flat");
                b.slice(array, self.i, n, step)
            }
            Expr::Get(o, other) => {
                let o = self.expr(b, o);
                let other = self.expr(b, other);
                let out = b.match_(o, |_, _, inside| match inside {
                    [v] => vec![(*v).into()],
                    _ => vec![other],
                });
                out[0].into()
            }
            Expr::Rows => rows,
            Expr::Cols => b.emit(Exp::Rearrange(vec![1, 0], cols), "turned"),
            Expr::Flat => {
                let shape = vec![Atom::i64(ROWS), n];
                b.emit(Exp::Reshape { shape, from: 1, array: flat }, "rows")
            }
            Expr::WithRow(m, a) => {
                let m = self.expr(b, m);
                let a = self.expr(b, a);
                let k = self.below(b, ROWS);
                b.emit(Exp::Update(m, vec![k], a), "written")
            }
            Expr::Some(a) => {
                let a = self.expr(b, a);
                b.emit(Exp::Inject(type_of(Sort::Option), 1, vec![a]), "some")
            }
            Expr::None => b.emit(Exp::Inject(type_of(Sort::Option), 0, vec![]), "none"),
            Expr::If(c, x, y) => {
                let c = self.condition(b, *c);
                let then = b.scope(|b| vec![self.clone().expr(b, x)]);
                let otherwise = b.scope(|b| vec![self.clone().expr(b, y)]);
                b.emit(Exp::If(c, then, otherwise), "either")
            }
            Expr::Map(a) => {
                let a = self.expr(b, a);
                self.new_numbers(b, a)
            }
            Expr::With(a) if self.term.writes != Writes::Element => {
                let a = self.expr(b, a);
                self.written_at_once(b, a)
            }
            Expr::With(a) => {
                let a = self.expr(b, a);
                let mut ix = vec![self.i];
                if b.ty(a).rank() == 2 {
                    ix.insert(0, self.below(b, ROWS));
                }
                b.emit(Exp::Update(a, ix, self.s), "written")
            }
            Expr::Back(a) => {
                let a = self.expr(b, a);
                let n = b.size(a, 0);
                let last = b.op2(Op::Sub, n, step);
                b.slice(a, last, n, Atom::i64(-1))
            }
            Expr::Loop(trips, init, body) => {
                let init = self.expr(b, init);
                let ty = b.ty(init);
                let sort = SORTS.into_iter().find(|s| type_of(*s) == ty).unwrap_or(Sort::Vector);
                let trips = self.trips(b, *trips);
                let out = b.for_loop(trips, &[init], |b, j, u| {
                    let i = b.op2(Op::Add, j.into(), self.i);
                    let i = b.op2(Op::Mod, i, n);
                    let mut inner = Scope { i, ..self.clone() };
                    inner.names[sort as usize].push(u[0].into());
                    vec![inner.expr(b, body)]
                });
                out[0].into()
            }
        }
    }

    /// The sines of all numbers of an array after the sum so far is added.
    fn new_numbers(&self, b: &mut Builder<'_>, a: Atom) -> Atom {
        let n = b.size(a, 0);
        let rank = b.ty(a).rank();
        let out = b.map(n, &[a], |b, e| {
            if rank > 1 {
                return vec![self.new_numbers(b, e[0].into())];
            }
            let t = b.op2(Op::Add, e[0].into(), self.s);
            vec![b.op1(Op::Sin, t)]
        });
        out[0].into()
    }

    fn condition(&self, b: &mut Builder<'_>, c: Cond) -> Atom {
        match c {
            Cond::Even => {
                let k = self.below(b, 2);
                b.op2(Op::Eq, k, Atom::i64(0))
            }
            Cond::Once => {
                let half = b.op2(Op::Div, self.inputs.n, Atom::i64(2));
                b.op2(Op::Eq, self.i, half)
            }
            Cond::Small => b.op2(Op::Lt, self.s, Atom::f64(0.5)),
        }
    }

    fn trips(&mut self, b: &mut Builder<'_>, t: Trips) -> Atom {
        match t {
            Trips::Two => Atom::i64(2),
            Trips::Odd => self.below(b, 2),
        }
    }
}
