//! Random well-typed terms, typed by goal: of the thesis' language, or of all that Efficient CHAD takes.

use super::{Case, cotangent, value};
use crate::rng::Rng;
use pullback_ad::chad::c_accumulating::interface;
use pullback_core::Value;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::{Builder, Exp, FunId, Program, Soac, Term, Type, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Which terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// That of the thesis: products and sums of two, primitives of one argument.
    Thesis,
    /// Also products of three, alternatives with any number of fields, primitives of several arguments, conditionals, calls, also recursive ones,
    /// and `stop_gradient`.
    Wide,
    /// As [`Language::Wide`], without calls, but with functions as values: those of one argument, and those of two, which may capture the former.
    Functions,
    /// As [`Language::Wide`], with arrays of any of its types. Every array has [`ROWS`] elements.
    Arrays,
}

/// The size of every dimension of a random array.
pub const ROWS: usize = 3;

/// A random function of up to four parameters with arguments, a cotangent and cells, all compatible; `None` if it has no value. `float`: whether
/// its result is a number.
pub fn case(seed: u64, float: bool, language: Language) -> Option<Case> {
    let (program, f, args, primal, mut rng) = applied(seed, float, language)?;
    let (bars, seed_type) = interface(&program, f).ok()?;
    let seed = cotangent(&mut rng, &primal, &seed_type);
    let cells = args.iter().zip(&bars).map(|(v, t)| cotangent(&mut rng, v, t)).collect();
    Some(Case { program, f, args, seed, cells })
}

/// A random function, its arguments and its value; `None` if it has none.
pub fn applied(
    seed: u64,
    float: bool,
    language: Language,
) -> Option<(Program, FunId, Vec<Value>, Value, Rng)> {
    let mut rng = Rng::new(seed);
    let mut program = Program::default();
    let mut b = Builder::new(&mut program);
    let mut helpers = Vec::new();
    let calls = matches!(language, Language::Wide | Language::Arrays);
    let count = if calls { rng.below(3) } else { 0 };
    for _ in 0..count {
        let recursive = rng.chance(0.3);
        let goal = rng.chance(0.6).then_some(Type::F64);
        let (f, after, next) = function(b, rng, "g", 6, goal, recursive, &helpers, language);
        (b, rng) = (after, next);
        helpers.push(f);
    }
    let goal = float.then_some(Type::F64);
    let (f, b, mut rng) = function(b, rng, "f", 24, goal, false, &helpers, language);
    assert!(b.errors.is_empty(), "seed {seed}: {:?}", b.errors);
    let params: Vec<Type> = b.params(f).iter().map(|p| b.program.vars[*p].ty.clone()).collect();
    // As in programs that people write: forward mode has this rule of ties built in.
    pullback_lambda::choose::operators_choose(&mut program, f);
    let args: Vec<Value> = params.iter().map(|t| value(&mut rng, t)).collect();
    let primal = run(&program, f, args.clone(), &Options::default()).ok()?.result;
    Some((program, f, args, primal, rng))
}

/// A function with up to four parameters. A recursive one counts its first parameter down.
#[allow(clippy::too_many_arguments, reason = "what a function is made of")]
fn function<'p>(
    mut b: Builder<'p>,
    mut rng: Rng,
    name: &str,
    most: usize,
    goal: Option<Type>,
    recursive: bool,
    helpers: &[FunId],
    language: Language,
) -> (FunId, Builder<'p>, Rng) {
    let count = 1 + rng.below(4);
    let mut params: Vec<Type> = (0..count).map(|_| ty(&mut rng, 2, language)).collect();
    if recursive {
        params.insert(0, Type::I64);
    }
    let goal = goal.unwrap_or_else(|| ty(&mut rng, 2, language));
    let named: Vec<(&str, Type)> = params.iter().map(|t| ("x", t.clone())).collect();
    let name = format!("{name}{}", helpers.len());
    let f = b.declare(&name, &named, goal.clone(), None);
    let scope = b.params(f);
    let fuel = 2 + rng.below(most) as i64;
    let mut maker = Maker { b, rng, scope: scope.clone(), fuel, helpers: helpers.to_vec(), language };
    let mut body = maker.term(&goal);
    if recursive {
        // if x > 0 && x < 4 then let y = f (x - 1) .. in body else body
        maker.fuel = 4;
        let x = scope[0];
        let (n, zero, one, four) = (maker.b.var(x), maker.b.i64(0), maker.b.i64(1), maker.b.i64(4));
        let above = maker.b.op2(Op::Lt, zero, n.clone());
        let below = maker.b.op2(Op::Lt, n.clone(), four);
        let more = maker.b.op2(Op::And, above, below);
        let less = maker.b.op2(Op::Sub, n, one);
        let rest = params[1..].iter().map(|t| maker.term(t));
        let args = std::iter::once(less).chain(rest).collect();
        let call = maker.b.call(f, args);
        let y = maker.b.fresh(goal.clone(), "y");
        let inside = maker.under(&[y], |m| m.term(&goal));
        let again = maker.b.term(Exp::Let(y, call, inside));
        body = maker.b.if_(more, again, body);
    }
    let Maker { mut b, rng, .. } = maker;
    b.define(f, body);
    (f, b, rng)
}

/// A random type.
fn ty(rng: &mut Rng, depth: usize, language: Language) -> Type {
    let wide = language != Language::Thesis;
    let ty = |rng: &mut Rng, depth| ty(rng, depth, language);
    if language == Language::Arrays && depth > 0 && rng.chance(0.35) {
        return Type::array(ty(rng, depth - 1));
    }
    match rng.below(if depth == 0 {
        4
    } else if wide {
        10
    } else {
        8
    }) {
        0..=2 => Type::F64,
        3 => [Type::I64, Type::unit()][rng.below(2)].clone(),
        4 | 5 => Type::tuple([ty(rng, depth - 1), ty(rng, depth - 1)]),
        8 => Type::tuple([ty(rng, depth - 1), Type::F64, ty(rng, depth - 1)]),
        9 => Type::sum([
            ("none", vec![]),
            ("one", vec![ty(rng, depth - 1)]),
            ("two", vec![ty(rng, depth - 1), Type::F64]),
        ]),
        6 => Type::sum([("inl", vec![ty(rng, depth - 1)]), ("inr", vec![ty(rng, depth - 1)])]),
        _ => Type::sign(),
    }
}

/// The types of functions as values.
fn function_types() -> [Type; 2] {
    [Type::fun(Type::F64, Type::F64), Type::fun(Type::tuple([Type::F64, Type::F64]), Type::F64)]
}

struct Maker<'p> {
    b: Builder<'p>,
    rng: Rng,
    scope: Vec<Var>,
    fuel: i64,
    helpers: Vec<FunId>,
    language: Language,
}

impl Maker<'_> {
    fn term(&mut self, goal: &Type) -> Term {
        self.fuel -= 1;
        if self.language == Language::Functions && self.fuel > 0 {
            if self.rng.chance(0.15) {
                return self.function(goal);
            }
            if *goal == Type::F64
                && self.rng.chance(0.4)
                && let Some(applied) = self.applied()
            {
                return applied;
            }
        }
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
        if self.language == Language::Arrays && self.rng.chance(0.3) {
            return self.read(goal);
        }
        let wide = self.language != Language::Thesis;
        match self.rng.below(if wide { 13 } else { 10 }) {
            0 | 1 => self.let_(goal),
            2 => self.case(goal),
            3 => self.projection(goal),
            10 => self.conditional(goal),
            11 => self.call(goal),
            12 if self.rng.chance(0.2) => {
                let inner = self.term(goal);
                self.b.term(Exp::StopGradient(inner))
            }
            _ => self.constructor(goal),
        }
    }
    /// `let h = \x. body in` a term of the goal.
    fn function(&mut self, goal: &Type) -> Term {
        let [one, two] = function_types();
        let large = self.rng.chance(0.4);
        let (ty, param) =
            if large { (two.clone(), Type::tuple([Type::F64, Type::F64])) } else { (one.clone(), Type::F64) };
        // A function captures no function of its type, nor one that might capture such.
        let hidden = |t: &Type| *t == two || (*t == one && !large);
        let all = self.scope.clone();
        self.scope.retain(|v| !hidden(&self.b.program.vars[*v].ty));
        let x = self.b.fresh(param, "v");
        let body = self.under(&[x], |m| m.term(&Type::F64));
        self.scope = all;
        let lam = self.b.term(Exp::Lam(x, body));
        let lam = match self.rng.chance(0.2) {
            // One of two functions, chosen at run time.
            true => {
                let (a, b) = (self.term(&Type::F64), self.term(&Type::F64));
                let c = self.b.op2(Op::Lt, a, b);
                let here = self.scope.iter().rev().find(|v| self.b.program.vars[**v].ty == ty).copied();
                match here {
                    Some(other) => {
                        let other = self.b.var(other);
                        self.b.if_(c, lam, other)
                    }
                    None => lam,
                }
            }
            false => lam,
        };
        let h = self.b.fresh(ty, "h");
        let rest = self.under(&[h], |m| m.term(goal));
        self.b.term(Exp::Let(h, lam, rest))
    }
    /// A function of the scope, applied.
    fn applied(&mut self) -> Option<Term> {
        let [one, two] = function_types();
        let of_function = |v: &Var| [&one, &two].contains(&&self.b.program.vars[*v].ty);
        let functions: Vec<Var> = self.scope.iter().copied().filter(of_function).collect();
        let f = *functions.get(self.rng.below(functions.len()))?;
        let Type::Fun(param, _) = self.b.program.vars[f].ty.clone() else { return None };
        let arg = self.term(&param);
        let f = self.b.var(f);
        Some(self.b.apply(f, [arg]))
    }
    /// An element of an array, or what an array is reduced to.
    fn read(&mut self, goal: &Type) -> Term {
        let array = self.term(&Type::array(goal.clone()));
        if self.rng.chance(0.5) {
            let ix = self.position();
            return self.b.index(array, vec![ix]);
        }
        let neutral = self.leaf(goal);
        let (x, y) = (self.b.fresh(goal.clone(), "l"), self.b.fresh(goal.clone(), "r"));
        let body = self.under(&[x, y], |m| m.term(goal));
        let op = self.b.term(Exp::Lam(y, body));
        let op = self.b.term(Exp::Lam(x, op));
        self.b.term(Exp::Soac(Soac::Reduce { op, neutral, array, commutative: false }))
    }
    /// An index of every array.
    fn position(&mut self) -> Term {
        let (i, n) = (self.term(&Type::I64), self.b.i64(ROWS as i64));
        self.b.op2(Op::Mod, i, n)
    }
    fn array(&mut self, element: &Type) -> Term {
        let whole = Type::array(element.clone());
        let n = self.b.i64(ROWS as i64);
        match self.rng.below(9) {
            0 => {
                let items = (0..ROWS).map(|_| self.term(element)).collect();
                self.b.term(Exp::ArrayLit(element.clone(), items))
            }
            1 => {
                let value = self.term(element);
                self.b.term(Exp::Replicate(n, value))
            }
            2 => {
                let array = self.term(&whole);
                self.b.term(Exp::Reverse(array))
            }
            3 => {
                let (k, array) = (self.term(&Type::I64), self.term(&whole));
                self.b.term(Exp::Rotate(k, array))
            }
            4 => {
                let array = self.term(&whole);
                let positions = (0..ROWS).map(|_| self.position()).collect();
                let ix = self.b.term(Exp::ArrayLit(Type::I64, positions));
                self.b.term(Exp::Gather(array, ix))
            }
            5 if let Type::Tuple(ts) = element
                && !ts.is_empty() =>
            {
                let columns = ts.iter().map(|t| self.term(&Type::array(t.clone()))).collect();
                self.b.term(Exp::Zip(columns))
            }
            5 | 6 => {
                let other = self.ty(1);
                let array = self.term(&Type::array(other.clone()));
                self.map(&[other], vec![array], element)
            }
            7 => {
                let (one, two) = (self.ty(1), self.ty(1));
                let arrays = vec![self.term(&Type::array(one.clone())), self.term(&Type::array(two.clone()))];
                self.map(&[one, two], arrays, element)
            }
            _ => {
                let all = self.b.term(Exp::Iota(n));
                self.map(&[Type::I64], vec![all], element)
            }
        }
    }
    fn map(&mut self, params: &[Type], arrays: Vec<Term>, element: &Type) -> Term {
        let xs: Vec<Var> = params.iter().map(|t| self.b.fresh(t.clone(), "e")).collect();
        let body = self.under(&xs, |m| m.term(element));
        let f = xs.iter().rev().fold(body, |f, x| self.b.term(Exp::Lam(*x, f)));
        self.b.map(f, arrays)
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
                let fields = variants[k].fields.iter().map(|t| self.leaf(t)).collect();
                self.b.term(Exp::Inject(goal.clone(), k, fields))
            }
            Type::Scalar(Scalar::F64) => {
                let x = super::number(&mut self.rng);
                self.b.constant(ScalarValue::F64(x))
            }
            Type::Array(element) => {
                let items = (0..ROWS).map(|_| self.leaf(element)).collect();
                self.b.term(Exp::ArrayLit(Type::clone(element), items))
            }
            // There are no integer literals in the language: a variable, or the payload of one, is found, or zero is counted.
            _ => self.b.i64(1),
        }
    }
    fn ty(&mut self, depth: usize) -> Type {
        ty(&mut self.rng, depth, self.language)
    }
    fn conditional(&mut self, goal: &Type) -> Term {
        let (x, y) = (self.term(&Type::F64), self.term(&Type::F64));
        let c = self.b.op2(Op::Lt, x, y);
        let (then, otherwise) = (self.term(goal), self.term(goal));
        self.b.if_(c, then, otherwise)
    }
    /// A call of a helper with this result, if there is one.
    fn call(&mut self, goal: &Type) -> Term {
        let fits = |f: &&FunId| self.b.program.funs[**f].result == *goal;
        let Some(f) = self.helpers.iter().find(fits).copied() else { return self.constructor(goal) };
        let types: Vec<Type> = self.b.params(f).iter().map(|p| self.b.program.vars[*p].ty.clone()).collect();
        let args = types.iter().map(|t| self.term(t)).collect();
        self.b.call(f, args)
    }
    fn under<T>(&mut self, vars: &[Var], f: impl FnOnce(&mut Self) -> T) -> T {
        self.scope.extend(vars);
        let out = f(self);
        self.scope.truncate(self.scope.len() - vars.len());
        out
    }
    fn let_(&mut self, goal: &Type) -> Term {
        let bound = self.ty(2);
        let value = self.term(&bound);
        let v = self.b.fresh(bound, "y");
        let body = self.under(&[v], |m| m.term(goal));
        self.b.term(Exp::Let(v, value, body))
    }
    fn case(&mut self, goal: &Type) -> Term {
        let sum = match self.rng.below(3) {
            0 => Type::sign(),
            1 if matches!(self.language, Language::Wide | Language::Arrays) => {
                Type::sum([("none", vec![]), ("one", vec![self.ty(1)]), ("two", vec![self.ty(1), Type::F64])])
            }
            _ => Type::sum([("inl", vec![self.ty(1)]), ("inr", vec![self.ty(1)])]),
        };
        let scrutinee = self.term(&sum);
        let Type::Sum(variants) = &sum else { return scrutinee };
        let arms = variants.iter().map(|variant| {
            let params: Vec<Var> = variant.fields.iter().map(|t| self.b.fresh(t.clone(), "p")).collect();
            let body = self.under(&params, |m| m.term(goal));
            pullback_lambda::Arm { params, body }
        });
        let arms = arms.collect();
        self.b.term(Exp::Match(scrutinee, arms))
    }
    fn projection(&mut self, goal: &Type) -> Term {
        let other = self.ty(1);
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
            Type::Array(element) => self.array(element),
            Type::Sum(variants) => {
                if *goal == Type::sign() && self.rng.chance(0.7) {
                    let x = self.term(&Type::F64);
                    return self.b.term(Exp::Sign(x));
                }
                let k = self.rng.below(variants.len());
                let fields = variants[k].fields.iter().map(|t| self.term(t)).collect();
                self.b.term(Exp::Inject(goal.clone(), k, fields))
            }
            Type::Scalar(Scalar::F64) if self.language != Language::Thesis && self.rng.chance(0.6) => {
                let ops =
                    [Op::Add, Op::Sub, Op::Mul, Op::Sin, Op::Tanh, Op::Atan2, Op::Min, Op::Max, Op::Abs];
                let prim = Prim::Op(ops[self.rng.below(ops.len())], Scalar::F64);
                let args = prim.params().iter().map(|_| self.term(goal)).collect();
                self.b.term(Exp::Prim(prim, args))
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
