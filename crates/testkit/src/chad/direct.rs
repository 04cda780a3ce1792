//! Efficient CHAD once more, in direct style and without terms: the value of a term with a trace of what was evaluated, and the trace
//! backwards. Nothing is shared with the transformation, nor with the interpreter, but the terms themselves.
//!
//! Cotangents are moved and never copied, which the type says: [`Lin`] is not `Clone`. What the transformed term must cost, once amortised, is a
//! sum over the trace.

use pullback_ad::chad::c_accumulating::interface;
use pullback_base::index::IdMap;
use pullback_core::Value;
use pullback_lambda::{Exp, Program, Term, Type, Var};
use pullback_prim::{Op, Prim};
use std::sync::Arc;

/// A cotangent.
#[derive(Debug)]
pub enum Lin {
    /// The zero of a product or sum.
    Zero,
    /// That of a discrete value.
    Unit,
    /// That of a number.
    Real(f64),
    /// That of a product of two.
    Pair(Box<(Lin, Lin)>),
    /// That of an alternative.
    Alternative(usize, Box<Lin>),
}

impl Lin {
    /// The zero of cotangents of this type's values.
    pub fn zero(t: &Type) -> Lin {
        match t {
            Type::Scalar(s) if s.is_float() => Lin::Real(0.0),
            Type::Tuple(ts) if !ts.is_empty() => Lin::Zero,
            Type::Sum(_) => Lin::Zero,
            _ => Lin::Unit,
        }
    }
    /// From the form that values of lambda have.
    pub fn of(bar: &Value, ty: &Type) -> Lin {
        match (bar, ty) {
            (Value::Sum(0, _), _) => Lin::Zero,
            (Value::Sum(_, parts), Type::SparseTuple(ts)) => {
                Lin::Pair(Box::new((Lin::of(&parts[0], &ts[0]), Lin::of(&parts[1], &ts[1]))))
            }
            (Value::Sum(k, part), Type::SparseSum(ts)) => {
                Lin::Alternative(k - 1, Box::new(Lin::of(&part[0], &ts[k - 1])))
            }
            (Value::Scalar(x), _) => Lin::Real(x.as_f64()),
            _ => Lin::Unit,
        }
    }
    /// To the form that values of lambda have.
    pub fn value(self) -> Value {
        match self {
            Lin::Zero => Value::Sum(0, Arc::default()),
            Lin::Unit => Value::Tuple(Vec::new()),
            Lin::Real(x) => Value::f64(x),
            Lin::Pair(parts) => Value::Sum(1, Arc::new(vec![parts.0.value(), parts.1.value()])),
            Lin::Alternative(k, part) => Value::Sum(k + 1, Arc::new(vec![part.value()])),
        }
    }
    /// Its size, which is its potential.
    pub fn size(&self) -> i64 {
        match self {
            Lin::Zero | Lin::Unit | Lin::Real(_) => 1,
            Lin::Pair(parts) => 1 + parts.0.size() + parts.1.size(),
            Lin::Alternative(_, part) => 1 + part.size(),
        }
    }
    /// The sum, and its cost: one per pair of nodes that meet.
    ///
    /// # Panics
    /// If the two belong to different alternatives.
    pub fn plus(self, other: Lin, cost: &mut i64) -> Lin {
        *cost += 1;
        match (self, other) {
            (Lin::Zero, x) | (x, Lin::Zero) => x,
            (Lin::Real(x), Lin::Real(y)) => Lin::Real(x + y),
            (Lin::Unit, Lin::Unit) => Lin::Unit,
            (Lin::Pair(x), Lin::Pair(y)) => {
                let ((a, b), (c, d)) = (*x, *y);
                Lin::Pair(Box::new((a.plus(c, cost), b.plus(d, cost))))
            }
            (Lin::Alternative(k, x), Lin::Alternative(j, y)) if k == j => {
                Lin::Alternative(k, Box::new(x.plus(*y, cost)))
            }
            (x, y) => panic!("{x:?} and {y:?} are cotangents of different values"),
        }
    }
}

/// What was evaluated.
#[derive(Debug)]
enum Trace {
    Var(Var),
    Literal,
    Unit,
    /// And the types of the components.
    Pair(Box<(Trace, Trace)>, [Type; 2]),
    /// Which component, and the type of the other one.
    Proj(usize, Type, Box<Trace>),
    /// And the type of the payload.
    Inject(Box<Trace>, Type),
    /// The variable bound, its type; what it is bound to and what it is used in. For a case also the alternative.
    Bind(Var, Type, Option<usize>, Box<(Trace, Trace)>),
    /// The values of the arguments.
    Prim(Prim, Vec<f64>, Box<Trace>),
    Sign(Box<Trace>),
}

/// What a term is and does.
#[derive(Debug)]
pub struct Derived {
    /// Its value.
    pub value: Value,
    /// The final cells, one per parameter.
    pub cells: Vec<Value>,
    /// What forward pass, backpropagator and run cost in the terms of Agda once amortised (3.8.6 of the specification).
    pub amortised: i64,
    /// How many nodes were evaluated.
    pub nodes: i64,
    /// How many of them are literals.
    pub literals: i64,
}

/// Runs a function of the thesis' language and its derivative.
///
/// # Panics
/// If the function is of another language.
pub fn derive(case: &super::Case) -> Derived {
    let fun = &case.program.funs[case.f];
    let mut s = State {
        program: &case.program,
        env: IdMap::new(),
        cells: IdMap::new(),
        weight: 0,
        nodes: 0,
        literals: 0,
    };
    for (p, v) in fun.params.iter().zip(&case.args) {
        s.env.insert(*p, v.clone());
    }
    let Some(body) = &fun.body else { panic!("a function without a body") };
    let (value, trace) = s.eval(body);
    let (bars, seed) = interface(&case.program, case.f).unwrap_or_else(|e| panic!("{e}"));
    for ((p, cell), bar) in fun.params.iter().zip(&case.cells).zip(&bars) {
        s.cells.insert(*p, Lin::of(cell, bar));
    }
    s.back(trace, Lin::of(&case.seed, &seed));
    let cells =
        fun.params.iter().map(|p| s.cells.remove(p).map_or(Value::Tuple(Vec::new()), Lin::value)).collect();
    Derived { value, cells, amortised: s.weight, nodes: s.nodes, literals: s.literals }
}

struct State<'p> {
    program: &'p Program,
    env: IdMap<Var, Value>,
    cells: IdMap<Var, Lin>,
    weight: i64,
    nodes: i64,
    literals: i64,
}

impl State<'_> {
    fn eval(&mut self, t: &Term) -> (Value, Trace) {
        self.nodes += 1;
        match t.exp() {
            Exp::Var(x) => (self.env[x].clone(), Trace::Var(*x)),
            Exp::Const(c) => {
                self.literals += 1;
                (Value::Scalar(*c), Trace::Literal)
            }
            Exp::Tuple(items) => match &items[..] {
                [] => (Value::Tuple(Vec::new()), Trace::Unit),
                [a, b] => {
                    let types = [a.ty().clone(), b.ty().clone()];
                    let ((x, a), (y, b)) = (self.eval(a), self.eval(b));
                    (Value::Tuple(vec![x, y]), Trace::Pair(Box::new((a, b)), types))
                }
                _ => panic!("a product of another size"),
            },
            Exp::Proj(e, i) => {
                let Some([a, b]) = e.ty().items() else { panic!("a product of another size") };
                let other = if *i == 0 { b } else { a };
                let (Value::Tuple(mut parts), trace) = self.eval(e) else { panic!("no product") };
                (parts.swap_remove(*i), Trace::Proj(*i, other.clone(), Box::new(trace)))
            }
            Exp::Inject(_, k, fields) => {
                let (x, trace) = self.eval(&fields[0]);
                (Value::Sum(*k, Arc::new(vec![x])), Trace::Inject(Box::new(trace), fields[0].ty().clone()))
            }
            Exp::Let(x, a, b) => {
                let (value, a) = self.eval(a);
                self.env.insert(*x, value);
                let (value, b) = self.eval(b);
                let ty = self.program.vars[*x].ty.clone();
                (value, Trace::Bind(*x, ty, None, Box::new((a, b))))
            }
            Exp::Match(e, arms) => {
                let (Value::Sum(k, payload), a) = self.eval(e) else { panic!("no sum") };
                let x = arms[k].params[0];
                self.env.insert(x, payload[0].clone());
                let (value, b) = self.eval(&arms[k].body);
                let ty = self.program.vars[x].ty.clone();
                (value, Trace::Bind(x, ty, Some(k), Box::new((a, b))))
            }
            Exp::Prim(prim, args) => {
                let (value, trace) = self.eval(&args[0]);
                let parts = match value {
                    Value::Tuple(parts) => parts,
                    one => vec![one],
                };
                let scalars: Vec<_> = parts
                    .iter()
                    .filter_map(|v| if let Value::Scalar(s) = v { Some(*s) } else { None })
                    .collect();
                let result = prim.eval(&scalars).unwrap_or_else(|e| panic!("{e}"));
                let floats = scalars.iter().map(|s| s.as_f64()).collect();
                (Value::Scalar(result), Trace::Prim(*prim, floats, Box::new(trace)))
            }
            Exp::Sign(e) => {
                let (Value::Scalar(x), trace) = self.eval(e) else { panic!("no number") };
                let (x, unit) = (x.as_f64(), Value::Tuple(Vec::new()));
                let sum = |k: usize, v: Value| Value::Sum(k, Arc::new(vec![v]));
                let value = if x < 0.0 {
                    sum(0, sum(0, unit))
                } else if x > 0.0 {
                    sum(0, sum(1, unit))
                } else {
                    sum(1, unit)
                };
                (value, Trace::Sign(Box::new(trace)))
            }
            _ => panic!("a term of another language"),
        }
    }

    fn back(&mut self, trace: Trace, d: Lin) {
        let is_zero = matches!(d, Lin::Zero);
        self.weight += match &trace {
            Trace::Var(_) => 7,
            Trace::Unit => 6,
            // A primitive, 16, of the unit value, 6; one less than in Agda, as the literal is written down again.
            Trace::Literal => 21,
            Trace::Pair(..) => {
                if is_zero {
                    32
                } else {
                    28
                }
            }
            Trace::Proj(_, other, _) => 14 + of_zero(other),
            Trace::Inject(..) => {
                if is_zero {
                    13
                } else {
                    11
                }
            }
            Trace::Bind(_, ty, None, _) => 26 + of_zero(ty),
            Trace::Bind(_, ty, Some(_), _) => 28 + of_zero(ty),
            Trace::Prim(prim, ..) => match prim {
                Prim::Op(Op::Add | Op::Mul, s) if !s.is_float() => 20,
                Prim::Op(Op::Add, _) => 20,
                Prim::Op(Op::Mul, _) => 28,
                Prim::Op(Op::Neg, s) => {
                    if s.is_float() {
                        17
                    } else {
                        16
                    }
                }
                other => panic!("{other} is not of the language"),
            },
            Trace::Sign(_) => 18 - d.size(),
        };
        match trace {
            Trace::Var(x) => {
                let cell = self.cells.remove(&x).unwrap_or(Lin::Unit);
                let mut cost = 0;
                let before = d.size() + cell.size();
                let sum = d.plus(cell, &mut cost);
                assert_eq!(cost, before - sum.size(), "an addition costs what it takes away");
                self.cells.insert(x, sum);
            }
            Trace::Literal | Trace::Unit => {}
            Trace::Pair(parts, types) => {
                let (a, b) = *parts;
                let (da, db) = match d {
                    Lin::Pair(parts) => *parts,
                    _ => (Lin::zero(&types[0]), Lin::zero(&types[1])),
                };
                self.back(a, da);
                self.back(b, db);
            }
            Trace::Proj(i, other, e) => {
                let other = Lin::zero(&other);
                let parts = if i == 0 { (d, other) } else { (other, d) };
                self.back(*e, Lin::Pair(Box::new(parts)));
            }
            Trace::Inject(e, ty) => {
                let payload = match d {
                    Lin::Alternative(_, payload) => *payload,
                    _ => Lin::zero(&ty),
                };
                self.back(*e, payload);
            }
            Trace::Bind(x, ty, k, parts) => {
                let (a, b) = *parts;
                self.cells.insert(x, Lin::zero(&ty));
                self.back(b, d);
                let dx = self.cells.remove(&x).unwrap_or(Lin::Unit);
                self.back(
                    a,
                    match k {
                        None => dx,
                        Some(k) => Lin::Alternative(k, Box::new(dx)),
                    },
                );
            }
            Trace::Prim(prim, args, e) => {
                let both = |a: Lin, b: Lin| Lin::Pair(Box::new((a, b)));
                let d = match (prim, d) {
                    (Prim::Op(Op::Add, _), Lin::Real(d)) => both(Lin::Real(d), Lin::Real(d)),
                    (Prim::Op(Op::Mul, _), Lin::Real(d)) => {
                        both(Lin::Real(d * args[1]), Lin::Real(d * args[0]))
                    }
                    (_, Lin::Real(d)) => Lin::Real(-d),
                    (Prim::Op(Op::Neg, _), _) => Lin::Unit,
                    _ => both(Lin::Unit, Lin::Unit),
                };
                self.back(*e, d);
            }
            Trace::Sign(e) => self.back(*e, Lin::Real(0.0)),
        }
    }
}

/// What the zero of a type's cotangents costs.
fn of_zero(t: &Type) -> i64 {
    if matches!(t, Type::Scalar(s) if s.is_float()) { 2 } else { 1 }
}
