//! Random well-typed terms are accepted by the checker, and the reader inverts the printer on them.

#![allow(clippy::unwrap_used, reason = "a failure of a test")]

use pullback_lambda::check::check;
use pullback_lambda::print::print;
use pullback_lambda::read::read;
use pullback_lambda::{
    Arm, Builder, Derivative, Exp, Loop, LoopAttrs, LoopForm, Mark, Program, Seeds, SliceDim, Soac,
    TapePolicy, Term, Type, Var,
};
use pullback_prim::{Op, ScalarValue};
use std::collections::BTreeSet;

/// xorshift64.
struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

struct Generator<'p> {
    b: Builder<'p>,
    random: Random,
    scope: Vec<Var>,
    seen: BTreeSet<&'static str>,
}

impl Generator<'_> {
    fn ty(&mut self, depth: usize) -> Type {
        match self.random.below(if depth == 0 { 3 } else { 8 }) {
            0 => Type::F64,
            1 => Type::I64,
            2 => Type::BOOL,
            3 => Type::array(self.ty(depth - 1)),
            4 => Type::fun(self.ty(depth - 1), self.ty(depth - 1)),
            5 => Type::sum([("none", vec![]), ("both", vec![self.ty(depth - 1), Type::F64])]),
            6 => Type::SparseTuple([self.ty(0), self.ty(0)].into()),
            _ => {
                let n = self.random.below(4);
                Type::tuple((0..n).map(|_| self.ty(depth - 1)).collect::<Vec<_>>())
            }
        }
    }
    fn bound(&mut self, v: Var, f: impl FnOnce(&mut Self) -> Term) -> Term {
        self.scope.push(v);
        let t = f(self);
        self.scope.pop();
        t
    }
    /// A term of the type that uses constructors of the type only.
    fn value(&mut self, ty: &Type, fuel: usize) -> Term {
        match ty {
            Type::Scalar(s) => {
                let x = self.random.below(40) as f64 - 20.0;
                let specials = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, 1e-300, 0.1, 1e300];
                let x =
                    if self.random.below(4) == 0 { specials[self.random.below(specials.len())] } else { x };
                self.b.constant(s.from_f64(x))
            }
            Type::Tuple(ts) => {
                let items = ts.iter().map(|t| self.term(t, fuel / 2)).collect();
                self.b.tuple(items)
            }
            Type::Sum(vs) => {
                let k = self.random.below(vs.len());
                let fields = vs[k].fields.iter().map(|t| self.term(t, fuel / 2)).collect();
                self.b.term(Exp::Inject(ty.clone(), k, fields))
            }
            Type::Array(t) => {
                let n = self.random.below(3);
                let items = (0..n).map(|_| self.term(t, fuel / 3)).collect();
                self.b.term(Exp::ArrayLit(Type::clone(t), items))
            }
            Type::Fun(a, b) => {
                let v = self.b.fresh(Type::clone(a), "a_b'");
                let body = self.bound(v, |g| g.term(b, fuel / 2));
                self.b.term(Exp::Lam(v, body))
            }
            Type::SparseTuple(ts) => {
                let items = ts.iter().map(|t| self.term(t, fuel / 2)).collect();
                self.b.term(Exp::SparseTuple(items))
            }
            other => panic!("no values of {other} are generated"),
        }
    }
    fn term(&mut self, ty: &Type, fuel: usize) -> Term {
        if fuel == 0 || self.random.below(6) == 0 {
            let fitting: Vec<Var> =
                self.scope.iter().copied().filter(|v| self.b.program.vars[*v].ty == *ty).collect();
            if !fitting.is_empty() {
                let v = fitting[self.random.below(fitting.len())];
                return self.b.var(v);
            }
            return self.value(ty, fuel);
        }
        let fuel = fuel - 1;
        let half = fuel / 2;
        let choice = self.random.below(22);
        let mut note = |name| self.seen.insert(name);
        match choice {
            0 => {
                note("let");
                let t = self.ty(2);
                let a = self.term(&t, half);
                let v = self.b.fresh(t, "let");
                let body = self.bound(v, |g| g.term(ty, fuel));
                self.b.term(Exp::Let(v, a, body))
            }
            1 => {
                note("application");
                let t = self.ty(1);
                let f = self.term(&Type::fun(t.clone(), ty.clone()), half);
                let a = self.term(&t, half);
                self.b.term(Exp::App(f, a))
            }
            2 => {
                note("component");
                let others = [self.ty(1), ty.clone(), self.ty(0)];
                let t = self.term(&Type::tuple(others.to_vec()), half);
                self.b.proj(t, 1)
            }
            3 => {
                note("if");
                let c = self.term(&Type::BOOL, half);
                let (a, b) = (self.term(ty, half), self.term(ty, half));
                self.b.if_(c, a, b)
            }
            4 => {
                note("match");
                let sum = Type::sum([("none", vec![]), ("both", vec![self.ty(1), Type::F64])]);
                let x = self.term(&sum, half);
                let fields = self.b.program.variants(&sum).unwrap().to_vec();
                let arms = fields
                    .iter()
                    .map(|v| {
                        let params: Vec<Var> =
                            v.fields.iter().map(|t| self.b.fresh(t.clone(), "p")).collect();
                        self.scope.extend(&params);
                        let body = self.term(ty, half);
                        self.scope.truncate(self.scope.len() - params.len());
                        Arm { params, body }
                    })
                    .collect();
                self.b.term(Exp::Match(x, arms))
            }
            5 => {
                note("for");
                let (init, n) = (self.term(ty, half), self.term(&Type::I64, half));
                let i = self.b.fresh(Type::I64, "");
                let state = self.b.fresh(ty.clone(), "state");
                let body = self.bound(i, |g| g.bound(state, |g| g.term(ty, half)));
                let attrs = LoopAttrs { tape: Some(TapePolicy::Revolve(3)), stripmine: Some(2), bound: None };
                self.b.term(Exp::Loop(Loop { state, init, form: LoopForm::For(i, n), body, attrs }))
            }
            6 => {
                note("while");
                let init = self.term(ty, half);
                let state = self.b.fresh(ty.clone(), "state");
                self.scope.push(state);
                let (c, body) = (self.term(&Type::BOOL, half), self.term(ty, half));
                self.scope.pop();
                let attrs = LoopAttrs { tape: None, stripmine: None, bound: Some(9) };
                self.b.term(Exp::Loop(Loop { state, init, form: LoopForm::While(c), body, attrs }))
            }
            7 => {
                note("index");
                let a = self.term(&Type::array(ty.clone()), half);
                let i = self.term(&Type::I64, half);
                self.b.index(a, vec![i])
            }
            8 => {
                note("assert");
                let (c, body) = (self.term(&Type::BOOL, half), self.term(ty, half));
                self.b.assert(c, "a \"quoted\"\nmessage ä", body)
            }
            9 => {
                note("same_size");
                let (l, r) = (self.term(&Type::I64, half), self.term(&Type::I64, half));
                let body = self.term(ty, half);
                self.b.same_size(l, r, "sizes", body)
            }
            10 => {
                note("reduce");
                let op = self.term(&Type::funs([ty.clone(), ty.clone()], ty.clone()), half);
                let neutral = self.term(ty, half);
                let array = self.term(&Type::array(ty.clone()), half);
                let commutative = self.random.below(2) == 0;
                self.b.term(Exp::Soac(Soac::Reduce { op, neutral, array, commutative }))
            }
            11 => {
                note("marks");
                let body = self.term(ty, half);
                let body = self.b.term(Exp::Marked(Mark::Recompute, body));
                self.b.term(Exp::StopGradient(body))
            }
            12 => {
                note("derivatives");
                let t = self.ty(1);
                let f = self.term(&Type::fun(t.clone(), ty.clone()), half);
                let (arg, seed) = (self.term(&t, half), self.term(ty, half));
                let d = self.b.term(Exp::Vjp(Derivative {
                    f,
                    arg,
                    seed,
                    seeds: Seeds::One,
                    algorithm: Some("fast \"chad\"".into()),
                }));
                self.b.proj(d, 0)
            }
            13 => {
                note("sparse");
                let t = self.term(&Type::SparseTuple([Type::F64, ty.clone()].into()), half);
                self.b.term(Exp::SparseProj(t, 1))
            }
            14 if self.b.program.is_additive(ty) => {
                note("plus");
                let (a, z) = (self.term(ty, half), self.b.term(Exp::Zero(ty.clone())));
                self.b.term(Exp::Plus(a, z))
            }
            15 => {
                note("accumulation");
                let env: std::sync::Arc<[Type]> = [Type::F64, Type::I64].into();
                let t = self.term(ty, half);
                let x = self.term(&Type::F64, half);
                let one = self.b.term(Exp::EvmAdd { env: env.clone(), cell: 0, value: x });
                let last = self.b.term(Exp::EvmReturn(env, t));
                let k = self.b.lam("u", Type::unit(), |_, _| last);
                let m = self.b.term(Exp::EvmBind(one, k));
                let zero = self.b.f64(0.0);
                let m = self.b.term(Exp::EvmScope(zero, m));
                let cell = self.b.i64(7);
                let cells = self.b.tuple(vec![cell]);
                let run = self.b.term(Exp::EvmRun(m, cells));
                let both = self.b.proj(run, 0);
                self.b.proj(both, 1)
            }
            16 => {
                note("mutation");
                let (x, n) = (self.term(ty, half), self.b.i64(3));
                let new = self.b.term(Exp::MutNew(n, x));
                let cells = Type::MutArray(std::sync::Arc::new(ty.clone()));
                let k = self.b.lam("cells", cells, |b, v| {
                    let (a, i) = (b.var(v), b.i64(1));
                    b.term(Exp::MutGet(a, i))
                });
                let m = self.b.term(Exp::IoBind(new, k));
                self.b.term(Exp::IoRun(m))
            }
            17 => {
                note("maps");
                let map = self.b.term(Exp::MapEmpty(ty.clone()));
                let popped = self.b.term(Exp::MapPopMax(map));
                let other = self.term(ty, half);
                self.b.match_(popped, |b, k, fields| if k == 0 { other.clone() } else { b.var(fields[1]) })
            }
            18 => {
                note("par");
                let others = [ty.clone(), self.ty(1)];
                let items = others.iter().map(|t| self.term(t, half)).collect();
                let par = self.b.term(Exp::Par(items));
                self.b.proj(par, 0)
            }
            _ => self.special(ty, half),
        }
    }
    fn special(&mut self, ty: &Type, half: usize) -> Term {
        match ty {
            Type::Scalar(s) if s.is_float() => {
                self.seen.insert("primitive");
                let (a, b) = (self.term(ty, half), self.term(ty, half));
                self.b.op2(Op::Pow, a, b)
            }
            Type::Scalar(s) if s.is_integer() => {
                self.seen.insert("size");
                let t = self.ty(1);
                let a = self.term(&Type::array(Type::array(t)), half);
                self.b.size(a, 1)
            }
            Type::Scalar(_) => {
                self.seen.insert("test");
                let (a, b) = (self.term(&Type::F64, half), self.term(&Type::F64, half));
                self.b.op2(Op::Lt, a, b)
            }
            Type::Array(t) => match self.random.below(4) {
                0 => {
                    self.seen.insert("map");
                    let (x, y) = (self.ty(1), self.ty(0));
                    let f = self.term(&Type::funs([x.clone(), y.clone()], Type::clone(t)), half);
                    let arrays = [x, y].map(|t| self.term(&Type::array(t), half)).to_vec();
                    self.b.map(f, arrays)
                }
                1 => {
                    self.seen.insert("slice");
                    let a = self.term(ty, half);
                    let [start, len, stride] = [1, 2, -1].map(|i| self.b.i64(i));
                    self.b.term(Exp::Slice(a, SliceDim { start, len, stride }))
                }
                2 => {
                    self.seen.insert("update");
                    let (a, v) = (self.term(ty, half), self.term(t, half));
                    let i = self.b.constant(ScalarValue::I64(-1));
                    self.b.term(Exp::Update(a, vec![i], v))
                }
                _ => {
                    self.seen.insert("reshape");
                    let (a, n) = (self.term(ty, half), self.term(&Type::I64, half));
                    self.b.term(Exp::Reshape { shape: vec![n], from: 1, array: a })
                }
            },
            other => self.value(other, half),
        }
    }
}

#[test]
fn reader_inverts_printer_on_random_terms() {
    let mut seen = BTreeSet::new();
    for seed in 1..=400u64 {
        let mut program = Program::default();
        let b = Builder::new(&mut program);
        let mut g = Generator {
            b,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            scope: Vec::new(),
            seen: BTreeSet::new(),
        };
        let params = [("x", g.ty(2)), ("y_3", Type::F64)];
        let result = g.ty(2);
        let f = g.b.declare("f", &params, result.clone(), None);
        g.scope = g.b.params(f);
        let body = g.term(&result, 14);
        g.b.define(f, body);
        assert!(g.b.errors.is_empty(), "seed {seed}: {:?}", g.b.errors);
        seen.append(&mut g.seen);
        assert_eq!(check(&program), Ok(()), "seed {seed}\n{}", print(&program));
        let text = print(&program);
        let again = read(&text, None).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        assert_eq!(check(&again), Ok(()), "seed {seed}");
        assert_eq!(print(&again), text, "seed {seed}");
        assert_eq!(read(&print(&again), None), Ok(again), "seed {seed}");
    }
    assert_eq!(seen.len(), 26, "every kind of term came up: {seen:?}");
}

#[test]
fn deep_terms_are_refused_and_dropped_without_stack() {
    let mut program = Program::default();
    let mut b = Builder::new(&mut program);
    let f = b.declare("f", &[("x", Type::F64)], Type::F64, None);
    let x = b.params(f)[0];
    let mut body = b.var(x);
    for _ in 0..200_000 {
        body = b.op1(Op::Neg, body);
    }
    b.define(f, body);
    let errors = check(&program).unwrap_err();
    assert_eq!(errors[0].code, pullback_base::Code::TooDeep);
}

#[test]
fn long_chains_of_let_are_accepted() {
    let mut program = Program::default();
    let mut b = Builder::new(&mut program);
    let f = b.declare("f", &[("x", Type::F64)], Type::F64, None);
    let x = b.params(f)[0];
    let vars: Vec<Var> = (0..100_000).map(|_| b.fresh(Type::F64, "v")).collect();
    let mut body = b.var(vars[vars.len() - 1]);
    for (i, &v) in vars.iter().enumerate().rev() {
        let previous = b.var(if i == 0 { x } else { vars[i - 1] });
        body = b.term(Exp::Let(v, previous, body));
    }
    b.define(f, body);
    assert_eq!(check(&program), Ok(()));
    let again = read(&print(&program), None).unwrap();
    assert_eq!(print(&again), print(&program));
}
