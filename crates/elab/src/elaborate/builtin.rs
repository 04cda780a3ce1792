//! The built-in functions.

use super::Elaborator;
use pullback_base::Code;
use pullback_front::intrinsics::Intrinsic;
use pullback_lambda::term::{Derivative, Seeds, Soac};
use pullback_lambda::{Arm, Exp, FunId, Term, Type};
use pullback_prim::{Op, Prim, ScalarValue};

/// The number of arguments after which a built-in function gives its result.
fn arity(intrinsic: Intrinsic) -> usize {
    match intrinsic {
        Intrinsic::Prim(prim) => prim.arity(),
        Intrinsic::Zip(n) => n,
        Intrinsic::Unzip(_)
        | Intrinsic::Iota
        | Intrinsic::Transpose
        | Intrinsic::Flatten
        | Intrinsic::Reverse
        | Intrinsic::Length
        | Intrinsic::StopGradient
        | Intrinsic::Par => 1,
        Intrinsic::Equal | Intrinsic::Map | Intrinsic::Replicate | Intrinsic::Concat | Intrinsic::Rotate => 2,
        Intrinsic::Reduce
        | Intrinsic::ReduceComm
        | Intrinsic::Scan
        | Intrinsic::Scatter
        | Intrinsic::Unflatten
        | Intrinsic::Vjp
        | Intrinsic::Vjp2
        | Intrinsic::Jvp
        | Intrinsic::Jvp2
        | Intrinsic::Mjp
        | Intrinsic::Mjp2
        | Intrinsic::Jmp
        | Intrinsic::Jmp2
        | Intrinsic::WithRule
        | Intrinsic::WithVjp
        | Intrinsic::WithVjpTape => 3,
        Intrinsic::ReduceByIndex | Intrinsic::Hist => 5,
    }
}

impl Elaborator<'_, '_> {
    /// A built-in function of this (function) type applied to as many arguments as there are.
    pub(super) fn intrinsic(&mut self, intrinsic: Intrinsic, arguments: Vec<Term>, ty: &Type) -> Term {
        let mut params = Vec::new();
        let mut rest = ty;
        while params.len() < arity(intrinsic) {
            let Type::Fun(param, result) = rest else {
                self.broken(format!("the built-in function {intrinsic:?} has the type {ty}"));
                return self.b.unit();
            };
            params.push(Type::clone(param));
            rest = result;
        }
        self.needs_floats(intrinsic, &params);
        self.saturate(params, arguments, |e, all| e.saturated(intrinsic, all))
    }

    /// Reports a derivative at a point, or with a tangent or cotangent, in which no number can move: it would be zero whatever the
    /// function is.
    fn needs_floats(&mut self, intrinsic: Intrinsic, params: &[Type]) {
        use Intrinsic::{Jmp, Jmp2, Jvp, Jvp2, Mjp, Mjp2, Vjp, Vjp2};
        let seed = match intrinsic {
            Vjp | Vjp2 | Mjp | Mjp2 => "cotangent",
            Jvp | Jvp2 | Jmp | Jmp2 => "tangent",
            _ => return,
        };
        for (what, ty) in ["point", seed].into_iter().zip(&params[1..]) {
            if !self.b.program.has_floats(ty) {
                let message =
                    format!("this derivative has a {what} without floating-point numbers (its type is {ty})");
                let hint = match what {
                    "point" => "let the function take floats, and make integers of them inside",
                    _ => "let the function give floats: f64.i64 makes one of an integer",
                };
                self.report(Code::Unsupported, message, hint);
                return;
            }
        }
    }

    /// A built-in function with exactly its arguments.
    fn saturated(&mut self, intrinsic: Intrinsic, arguments: Vec<Term>) -> Term {
        let algorithm = self.algorithm.take();
        let mut rest = arguments.into_iter();
        // `intrinsic` has made sure of the number of arguments.
        let unit = self.b.unit();
        let mut next = || rest.next().unwrap_or_else(|| unit.clone());
        let exp = match intrinsic {
            Intrinsic::Prim(prim) => Exp::Prim(prim, rest.collect()),
            Intrinsic::Equal => {
                let (a, b) = (next(), next());
                return self.equal_values(a, b);
            }
            Intrinsic::Map => Exp::Soac(Soac::Map { f: next(), arrays: rest.collect() }),
            Intrinsic::Reduce | Intrinsic::ReduceComm => {
                let commutative = intrinsic == Intrinsic::ReduceComm;
                Exp::Soac(Soac::Reduce { op: next(), neutral: next(), array: next(), commutative })
            }
            Intrinsic::Scan => Exp::Soac(Soac::Scan { op: next(), neutral: next(), array: next() }),
            Intrinsic::ReduceByIndex => {
                let (dst, op, neutral) = (next(), next(), next());
                Exp::Soac(Soac::Hist { op, neutral, dst, indices: next(), values: next() })
            }
            Intrinsic::Hist => {
                let arguments = [next(), next(), next(), next(), next()];
                return self.histogram(arguments);
            }
            Intrinsic::Scatter => Exp::Soac(Soac::Scatter { dst: next(), indices: next(), values: next() }),
            Intrinsic::Zip(_) => Exp::Zip(rest.collect()),
            Intrinsic::Unzip(_) => Exp::Unzip(next()),
            Intrinsic::Iota => Exp::Iota(next()),
            Intrinsic::Replicate => Exp::Replicate(next(), next()),
            Intrinsic::Transpose => Exp::Rearrange(vec![1, 0], next()),
            Intrinsic::Flatten => {
                let array = next();
                return self.flatten(array);
            }
            Intrinsic::Unflatten => {
                let shape = vec![next(), next()];
                Exp::Reshape { shape, from: 1, array: next() }
            }
            Intrinsic::Concat => Exp::Concat(rest.collect()),
            Intrinsic::Reverse => Exp::Reverse(next()),
            Intrinsic::Rotate => Exp::Rotate(next(), next()),
            Intrinsic::Length => Exp::Size(next(), 0),
            Intrinsic::Vjp | Intrinsic::Vjp2 | Intrinsic::Jvp | Intrinsic::Jvp2 => {
                let (f, arg, seed) = (next(), next(), next());
                let derivative = Derivative { f, arg, seed, seeds: Seeds::One, algorithm };
                return self.derivative(intrinsic, derivative);
            }
            Intrinsic::Mjp | Intrinsic::Mjp2 | Intrinsic::Jmp | Intrinsic::Jmp2 => {
                let (f, arg, seed) = (next(), next(), next());
                let derivative = Derivative { f, arg, seed, seeds: Seeds::Many, algorithm };
                return self.derivative(intrinsic, derivative);
            }
            Intrinsic::WithRule => {
                let arguments = [next(), next(), next()];
                return self.with_rule(arguments, 0);
            }
            Intrinsic::WithVjp => {
                let arguments = [next(), next(), next()];
                return self.with_rule(arguments, 1);
            }
            Intrinsic::WithVjpTape => {
                let arguments = [next(), next(), next()];
                return self.with_vjp_tape(arguments);
            }
            Intrinsic::StopGradient => Exp::StopGradient(next()),
            Intrinsic::Par => return next(),
        };
        self.b.term(exp)
    }

    fn derivative(&mut self, intrinsic: Intrinsic, derivative: Derivative) -> Term {
        use Intrinsic::{Jmp, Jvp, Mjp, Mjp2, Vjp, Vjp2};
        let reverse = matches!(intrinsic, Vjp | Vjp2 | Mjp | Mjp2);
        let both = self.b.term(if reverse { Exp::Vjp(derivative) } else { Exp::Jvp(derivative) });
        if matches!(intrinsic, Vjp | Jvp | Mjp | Jmp) { self.b.proj(both, 1) } else { both }
    }

    /// `with_rule f rule x` and `with_vjp f rule x`: the rule gets one of the argument (number 0) and the result (number 1), and the
    /// cotangent.
    fn with_rule(&mut self, [f, rule, arg]: [Term; 3], given: usize) -> Term {
        let Type::Fun(a, b) = f.ty().clone() else { return self.b.unit() };
        let mut wraps = Vec::new();
        let rule = self.atom(rule, "rule", &mut wraps);
        let rule = self.b.lams(
            &[("x", Type::clone(&a)), ("y", Type::clone(&b)), ("y_bar", Type::clone(&b))],
            |b, p| {
                let (given, y_bar) = (b.var(p[given]), b.var(p[2]));
                b.apply(rule, [given, y_bar])
            },
        );
        let result = self.b.term(Exp::Custom { f, rule, arg, tape: false });
        self.close(wraps, result)
    }

    /// `with_vjp_tape f rule x`: `f` gives the tape and the result; the rule gets the pair of the tape and the cotangent.
    fn with_vjp_tape(&mut self, [f, rule, arg]: [Term; 3]) -> Term {
        let Type::Fun(a, both) = f.ty().clone() else { return self.b.unit() };
        let Some([_, b]) = both.items() else { return self.b.unit() };
        let b = b.clone();
        let mut wraps = Vec::new();
        let rule = self.atom(rule, "rule", &mut wraps);
        let rule = self.b.lams(&[("x", Type::clone(&a)), ("y", Type::clone(&both)), ("bar", b)], |b, p| {
            let (y, bar) = (b.var(p[1]), b.var(p[2]));
            let tape = b.proj(y, 0);
            let pair = b.tuple(vec![tape, bar]);
            b.apply(rule, [pair])
        });
        let result = self.b.term(Exp::Custom { f, rule, arg, tape: true });
        let result = self.b.proj(result, 1);
        self.close(wraps, result)
    }

    /// `hist op neutral k indices values`.
    fn histogram(&mut self, [op, neutral, k, indices, values]: [Term; 5]) -> Term {
        let mut wraps = Vec::new();
        let neutral = self.atom(neutral, "neutral", &mut wraps);
        let dst = self.b.term(Exp::Replicate(k, neutral.clone()));
        let result = self.b.term(Exp::Soac(Soac::Hist { op, neutral, dst, indices, values }));
        self.close(wraps, result)
    }

    fn flatten(&mut self, array: Term) -> Term {
        let mut wraps = Vec::new();
        let array = self.atom(array, "xs", &mut wraps);
        let (n, m) = (self.b.size(array.clone(), 0), self.b.size(array.clone(), 1));
        let size = self.b.op2(Op::Mul, n, m);
        let result = self.b.term(Exp::Reshape { shape: vec![size], from: 2, array });
        self.close(wraps, result)
    }

    // ---- structural equality

    fn equal_values(&mut self, a: Term, b: Term) -> Term {
        let mut wraps = Vec::new();
        let a = self.atom(a, "a", &mut wraps);
        let b = self.atom(b, "b", &mut wraps);
        let result = self.equal(a, b);
        self.close(wraps, result)
    }

    /// Whether two variables or constants are equal.
    fn equal(&mut self, a: Term, b: Term) -> Term {
        let ty = a.ty().clone();
        match &ty {
            Type::Scalar(s) => self.b.term(Exp::Prim(Prim::Op(Op::Eq, *s), vec![a, b])),
            Type::Tuple(items) => {
                let pairs = (0..items.len())
                    .map(|i| (self.b.proj(a.clone(), i), self.b.proj(b.clone(), i)))
                    .collect::<Vec<_>>();
                self.all_equal(pairs)
            }
            Type::Array(element) => self.equal_arrays(a, b, element),
            Type::Sum(_) => self.equal_sums(a, b),
            Type::Named(_) => {
                let fun = self.equality(&ty);
                self.b.call(fun, vec![a, b])
            }
            other => {
                self.broken(format!("equality of values of type {other}"));
                self.b.constant(ScalarValue::Bool(false))
            }
        }
    }

    /// Whether all pairs are equal; later ones are not looked at after a difference.
    fn all_equal(&mut self, pairs: Vec<(Term, Term)>) -> Term {
        let mut result = None;
        for (a, b) in pairs.into_iter().rev() {
            let same = self.equal_values(a, b);
            result = Some(match result {
                None => same,
                Some(rest) => {
                    let no = self.b.constant(ScalarValue::Bool(false));
                    self.b.if_(same, rest, no)
                }
            });
        }
        result.unwrap_or_else(|| self.b.constant(ScalarValue::Bool(true)))
    }

    fn equal_arrays(&mut self, a: Term, b: Term, element: &Type) -> Term {
        let (n, m) = (self.b.size(a.clone(), 0), self.b.size(b.clone(), 0));
        let same_size = self.b.op2(Op::Eq, n, m);
        let (x, y) = (self.b.fresh(element.clone(), "x"), self.b.fresh(element.clone(), "y"));
        let (x_term, y_term) = (self.b.var(x), self.b.var(y));
        let body = self.equal(x_term, y_term);
        let f = self.b.term(Exp::Lam(y, body));
        let f = self.b.term(Exp::Lam(x, f));
        let each = self.b.map(f, vec![a, b]);
        let op = self.b.lams(&[("p", Type::BOOL), ("q", Type::BOOL)], |b, vars| {
            let (p, q) = (b.var(vars[0]), b.var(vars[1]));
            b.op2(Op::And, p, q)
        });
        let neutral = self.b.constant(ScalarValue::Bool(true));
        let all = self.b.term(Exp::Soac(Soac::Reduce { op, neutral, array: each, commutative: true }));
        let no = self.b.constant(ScalarValue::Bool(false));
        self.b.if_(same_size, all, no)
    }

    fn equal_sums(&mut self, a: Term, b: Term) -> Term {
        let ty = a.ty().clone();
        let variants = self.b.program.variants(&ty).map(<[_]>::to_vec).unwrap_or_default();
        let mut outer = Vec::new();
        for (i, variant) in variants.iter().enumerate() {
            let xs: Vec<_> = variant.fields.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
            let mut inner = Vec::new();
            for (j, other) in variants.iter().enumerate() {
                let ys: Vec<_> = other.fields.iter().map(|t| self.b.fresh(t.clone(), "y")).collect();
                let body = if i == j {
                    let pairs: Vec<_> =
                        xs.iter().zip(&ys).map(|(x, y)| (self.b.var(*x), self.b.var(*y))).collect();
                    self.all_equal(pairs)
                } else {
                    self.b.constant(ScalarValue::Bool(false))
                };
                inner.push(Arm { params: ys, body });
            }
            let body = self.b.term(Exp::Match(b.clone(), inner));
            outer.push(Arm { params: xs, body });
        }
        self.b.term(Exp::Match(a, outer))
    }

    /// The function that compares values of a recursive type.
    fn equality(&mut self, ty: &Type) -> FunId {
        if let Some(fun) = self.equalities.get(ty) {
            return *fun;
        }
        let name = format!("equal.{}", self.equalities.len());
        let fun = self.b.declare(&name, &[("a", ty.clone()), ("b", ty.clone())], Type::BOOL, None);
        self.equalities.insert(ty.clone(), fun);
        let params = self.b.params(fun);
        let (a, b) = (self.b.var(params[0]), self.b.var(params[1]));
        let body = self.equal_sums(a, b);
        self.b.define(fun, body);
        fun
    }
}
