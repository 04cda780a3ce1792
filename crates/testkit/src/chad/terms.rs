//! Random well-typed terms of the thesis' language, typed by goal.

use super::{Case, cotangent, value};
use crate::rng::Rng;
use pullback_ad::chad::c_accumulating::interface;
use pullback_core::Value;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::{Builder, Exp, Program, Term, Type, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// A random function of up to four parameters with arguments, a cotangent and cells, all compatible; `None` if it has no value. `float`: whether
/// its result is a number.
pub fn case(seed: u64, float: bool) -> Option<Case> {
    let mut rng = Rng::new(seed);
    let mut program = Program::default();
    let count = 1 + rng.below(4);
    let params: Vec<Type> = (0..count).map(|_| ty(&mut rng, 2)).collect();
    let goal = if float { Type::F64 } else { ty(&mut rng, 2) };
    let mut b = Builder::new(&mut program);
    let named: Vec<(&str, Type)> = params.iter().map(|t| ("x", t.clone())).collect();
    let f = b.declare("f", &named, goal.clone(), None);
    let scope = b.params(f);
    let fuel = 2 + rng.below(24) as i64;
    let mut maker = Maker { b, rng, scope, fuel };
    let body = maker.term(&goal);
    let Maker { mut b, mut rng, .. } = maker;
    b.define(f, body);
    assert!(b.errors.is_empty(), "seed {seed}: {:?}", b.errors);
    let args: Vec<Value> = params.iter().map(|t| value(&mut rng, t)).collect();
    let primal = run(&program, f, args.clone(), &Options::default()).ok()?.result;
    let (bars, seed_type) = interface(&program, f).ok()?;
    let seed = cotangent(&mut rng, &primal, &seed_type);
    let cells = args.iter().zip(&bars).map(|(v, t)| cotangent(&mut rng, v, t)).collect();
    Some(Case { program, f, args, seed, cells })
}

/// A random type.
fn ty(rng: &mut Rng, depth: usize) -> Type {
    match rng.below(if depth == 0 { 4 } else { 8 }) {
        0..=2 => Type::F64,
        3 => [Type::I64, Type::unit()][rng.below(2)].clone(),
        4 | 5 => Type::tuple([ty(rng, depth - 1), ty(rng, depth - 1)]),
        6 => Type::sum([("inl", vec![ty(rng, depth - 1)]), ("inr", vec![ty(rng, depth - 1)])]),
        _ => Type::sign(),
    }
}

struct Maker<'p> {
    b: Builder<'p>,
    rng: Rng,
    scope: Vec<Var>,
    fuel: i64,
}

impl Maker<'_> {
    fn term(&mut self, goal: &Type) -> Term {
        self.fuel -= 1;
        let here: Vec<Var> =
            self.scope.iter().copied().filter(|v| self.b.program.vars[*v].ty == *goal).collect();
        if self.fuel <= 0 || self.rng.chance(0.2) {
            // The innermost ones more often.
            if let Some(k) = here.len().checked_sub(1) {
                let back = self.rng.below(here.len()).min(self.rng.below(here.len()));
                return self.b.var(here[k - back]);
            }
            if self.fuel <= 0 {
                return self.leaf(goal);
            }
        }
        match self.rng.below(10) {
            0 | 1 => self.let_(goal),
            2 => self.case(goal),
            3 => self.projection(goal),
            _ => self.constructor(goal),
        }
    }
    /// Without further fuel.
    fn leaf(&mut self, goal: &Type) -> Term {
        match goal {
            Type::Tuple(ts) => {
                let items = ts.iter().map(|t| self.leaf(t)).collect();
                self.b.tuple(items)
            }
            Type::Sum(variants) => {
                let k = self.rng.below(variants.len());
                let payload = self.leaf(&variants[k].fields[0]);
                self.b.term(Exp::Inject(goal.clone(), k, vec![payload]))
            }
            Type::Scalar(Scalar::F64) => {
                let x = super::number(&mut self.rng);
                self.b.constant(ScalarValue::F64(x))
            }
            // There are no integer literals in the language: a variable, or the payload of one, is found, or zero is counted.
            _ => self.b.i64(1),
        }
    }
    fn under<T>(&mut self, vars: &[Var], f: impl FnOnce(&mut Self) -> T) -> T {
        self.scope.extend(vars);
        let out = f(self);
        self.scope.truncate(self.scope.len() - vars.len());
        out
    }
    fn let_(&mut self, goal: &Type) -> Term {
        let bound = ty(&mut self.rng, 2);
        let value = self.term(&bound);
        let v = self.b.fresh(bound, "y");
        let body = self.under(&[v], |m| m.term(goal));
        self.b.term(Exp::Let(v, value, body))
    }
    fn case(&mut self, goal: &Type) -> Term {
        let sum = match self.rng.below(3) {
            0 => Type::sign(),
            _ => Type::sum([("inl", vec![ty(&mut self.rng, 1)]), ("inr", vec![ty(&mut self.rng, 1)])]),
        };
        let scrutinee = self.term(&sum);
        let Type::Sum(variants) = &sum else { return scrutinee };
        let arms = variants.iter().map(|variant| {
            let v = self.b.fresh(variant.fields[0].clone(), "p");
            let body = self.under(&[v], |m| m.term(goal));
            pullback_lambda::Arm { params: vec![v], body }
        });
        let arms = arms.collect();
        self.b.term(Exp::Match(scrutinee, arms))
    }
    fn projection(&mut self, goal: &Type) -> Term {
        let other = ty(&mut self.rng, 1);
        let k = self.rng.below(2);
        let items = if k == 0 { [goal.clone(), other] } else { [other, goal.clone()] };
        let product = self.term(&Type::tuple(items));
        self.b.proj(product, k)
    }
    fn constructor(&mut self, goal: &Type) -> Term {
        match goal {
            Type::Tuple(ts) => {
                let items = ts.iter().map(|t| self.term(t)).collect();
                self.b.tuple(items)
            }
            Type::Sum(variants) => {
                if *goal == Type::sign() && self.rng.chance(0.7) {
                    let x = self.term(&Type::F64);
                    return self.b.term(Exp::Sign(x));
                }
                let k = self.rng.below(variants.len());
                let payload = self.term(&variants[k].fields[0]);
                self.b.term(Exp::Inject(goal.clone(), k, vec![payload]))
            }
            Type::Scalar(s) => {
                let op = match self.rng.below(6) {
                    0 | 1 => Op::Add,
                    2 | 3 => Op::Mul,
                    4 => Op::Neg,
                    _ => return self.leaf(goal),
                };
                let arg = match op {
                    Op::Neg => self.term(goal),
                    _ => self.term(&Type::tuple([goal.clone(), goal.clone()])),
                };
                self.b.term(Exp::Prim(Prim::Op(op, *s), vec![arg]))
            }
            other => self.leaf(other),
        }
    }
}
