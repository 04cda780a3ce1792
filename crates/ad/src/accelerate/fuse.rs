//! Combinators whose scalar functions are joined, before they are differentiated.
//!
//! Source: MSc thesis, 6.1 ("Optimise before AD"): fuse first, then differentiate. The rules are ours.
//!
//! Why: a joined function is one node, so there are fewer of them, and gradients are shorter. A value between two functions is a temporary only if the dual lambda reads it. [`expression`](super::expression) differentiates
//! the joined function as a whole, and may compute it again as a whole.
//!
//! Judgement: a program `\a. u` becomes a program of the same type and value. It may assume that each array variable is bound once.
//!
//! Notation: `f . g` first `g`, then `f` · `s` a *simple* expression: a constant, a variable, a component of a simple one, a tuple of such
//!
//! Rules of array terms:
//! ```text
//! map        map f (map g u)              =>  map (f . g) u
//! zip_with   map f (zipWith g u v)        =>  zipWith (f . g) u v
//! generate   map f (generate e g)         =>  generate e (f . g)
//! first      zipWith f (map g u) v        =>  zipWith (\p. f (g p.0, p.1)) u v
//! second     zipWith f u (map g v)        =>  zipWith (\p. f (p.0, g p.1)) u v
//! identity   map (\x. x) u                =>  u
//! let        let a = u in .. a ..         =>  .. u ..       if a rule above takes `u` there, this is the only use of `a`, and both stand in the same branches and loops
//! ```
//!
//! Rules of functions that are joined:
//! ```text
//! apply      (\x. e) s                    =>  e, with s for x
//! copy       let x = s in e               =>  e, with s for x
//! tuple      (\x. e) (u, s)               =>  let y = u in (\x. e) (y, s)
//! bind       (\x. e) u                    =>  let y = u in (\x. e) y
//! component  (s_1, .., s_n).k             =>  s_k
//! ```
//!
//! An array that a function reads (`a ! e`, `shape a`) stays: it is evaluated as a whole. A function is moved, and not copied; so no element is evaluated more often.
//!
//! Guarantee: floats are the same to the last bit, and bindings are not more. A second run changes nothing. Cost: the size of the program, times the width of its tuples.

use super::language::{
    AVar, Arr, ArrForm, EVar, Exp, ExpForm, Fun, Names, Program, Ty, arrs, exps, funs, made,
};
use super::rename::with_arrs;
use std::collections::{BTreeMap, BTreeSet};

/// The program with joined functions.
pub fn fuse(program: &Program) -> Program {
    let mut uses = Uses::default();
    uses.arr(&program.body, By::Other, 0);
    let mut pass = Fuse { names: program.names.clone(), uses, moved: BTreeMap::new() };
    let body = pass.arr(&program.body);
    made(Program::new(program.param.clone(), program.free.clone(), body, pass.names))
}

/// Which combinator takes an array.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum By {
    Map,
    ZipWith,
    #[default]
    Other,
}

/// How an array variable is used.
#[derive(Default)]
struct Use {
    /// How often it is bound, and the body or branch where it is.
    bound: (u32, usize),
    /// How often it is a term, and the body or branch of the last one.
    terms: (u32, usize),
    by: By,
    /// Whether a function or an expression reads it.
    is_read: bool,
}

/// The uses of all array variables.
#[derive(Default)]
struct Uses {
    all: BTreeMap<AVar, Use>,
    /// How many bodies of loops and branches there are.
    places: usize,
}

impl Uses {
    fn at(&mut self, a: &AVar) -> &mut Use {
        self.all.entry(a.clone()).or_default()
    }

    fn arr(&mut self, u: &Arr, by: By, place: usize) {
        exps(u.form()).into_iter().for_each(|e| self.exp(e));
        funs(u.form()).into_iter().for_each(|f| self.exp(&f.body));
        match u.form() {
            ArrForm::Var(a) => {
                let of = self.at(a);
                of.terms = (of.terms.0 + 1, place);
                of.by = by;
            }
            ArrForm::Let(bindings, body) => {
                for (a, v) in bindings {
                    self.arr(v, By::Other, place);
                    let of = self.at(a);
                    of.bound = (of.bound.0 + 1, place);
                }
                self.arr(body, By::Other, place);
            }
            ArrForm::Cond(_, u, v) => [u, v].into_iter().for_each(|u| self.inside(u)),
            ArrForm::Iterate(_, step, first) => {
                self.arr(first, By::Other, place);
                self.inside(&step.body);
            }
            ArrForm::Map(_, u) => self.arr(u, By::Map, place),
            ArrForm::ZipWith(_, u, v) => [u, v].into_iter().for_each(|u| self.arr(u, By::ZipWith, place)),
            form => arrs(form).into_iter().for_each(|u| self.arr(u, By::Other, place)),
        }
    }

    /// A branch, or the body of a loop.
    fn inside(&mut self, u: &Arr) {
        self.places += 1;
        self.arr(u, By::Other, self.places);
    }

    fn exp(&mut self, e: &Exp) {
        match e.form() {
            ExpForm::Const(_) | ExpForm::Var(_) => {}
            ExpForm::Let(bindings, e) => {
                bindings.iter().for_each(|(_, u)| self.exp(u));
                self.exp(e);
            }
            ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| self.exp(e)),
            ExpForm::Proj(e, _) => self.exp(e),
            ExpForm::Index(a, e) => {
                self.at(a).is_read = true;
                self.exp(e);
            }
            ExpForm::Shape(a) => self.at(a).is_read = true,
            ExpForm::Cond(c, t, e) => [c, t, e].into_iter().for_each(|e| self.exp(e)),
        }
    }

    // [accelerate.fuse.let]
    /// Whether a binding goes where it is used.
    fn moves(&self, a: &AVar, u: &Arr) -> bool {
        let Some(of) = self.all.get(a) else { return false };
        let is_taken = match u.form() {
            ArrForm::Map(..) => of.by != By::Other,
            ArrForm::ZipWith(..) | ArrForm::Generate(..) => of.by == By::Map,
            _ => false,
        };
        is_taken && !of.is_read && of.terms.0 == 1 && of.bound.0 == 1 && of.bound.1 == of.terms.1
    }
}

struct Fuse {
    names: Names,
    uses: Uses,
    /// Bindings that go where they are used, as they were.
    moved: BTreeMap<AVar, Arr>,
}

impl Fuse {
    fn arr(&mut self, u: &Arr) -> Arr {
        match u.form() {
            ArrForm::Let(bindings, body) => {
                let mut all = Vec::new();
                for (a, v) in bindings {
                    if self.uses.moves(a, v) {
                        self.moved.insert(a.clone(), v.clone());
                    } else {
                        all.push((a.clone(), self.arr(v)));
                    }
                }
                made(Arr::lets(all, self.arr(body)))
            }
            ArrForm::Map(..) | ArrForm::ZipWith(..) | ArrForm::Generate(..) => {
                let (fs, u) = self.maps(u);
                self.mapped(fs, &u)
            }
            form => made(Arr::new(with_arrs(form, &mut |v| self.arr(v)))),
        }
    }

    /// The functions of maps around a term, the inner one first, and the term.
    fn maps(&mut self, u: &Arr) -> (Vec<Fun>, Arr) {
        let (mut fs, mut u) = (Vec::new(), u.clone());
        loop {
            let inner = match u.form() {
                ArrForm::Map(f, v) => {
                    fs.push(f.clone());
                    v.clone()
                }
                ArrForm::Var(a) => match self.moved.remove(a) {
                    Some(v) => v,
                    None => break,
                },
                _ => break,
            };
            u = inner;
        }
        fs.reverse();
        (fs, u)
    }

    /// These functions, one after the other, of a term that is no map.
    fn mapped(&mut self, fs: Vec<Fun>, u: &Arr) -> Arr {
        let form = match u.form() {
            // [accelerate.fuse.zip_with]
            ArrForm::ZipWith(g, v, w) => {
                let ((first, v), (second, w)) = (self.argument(v), self.argument(w));
                ArrForm::ZipWith(self.zipped(g, [first, second], &fs), v, w)
            }
            // [accelerate.fuse.generate]
            ArrForm::Generate(e, g) => ArrForm::Generate(e.clone(), self.joined(g, &fs)),
            _ => {
                let v = self.arr(u);
                let Some((f, others)) = fs.split_first() else { return v };
                // [accelerate.fuse.map]
                let f = self.joined(f, others);
                // [accelerate.fuse.identity]
                if matches!(f.body.form(), ExpForm::Var(x) if *x == f.param) {
                    return v;
                }
                ArrForm::Map(f, v)
            }
        };
        made(Arr::new(form))
    }

    /// An argument of `zipWith`: functions that may be joined, and their argument.
    fn argument(&mut self, u: &Arr) -> (Vec<Fun>, Arr) {
        let (fs, u) = self.maps(u);
        match u.form() {
            ArrForm::ZipWith(..) | ArrForm::Generate(..) => (Vec::new(), self.mapped(fs, &u)),
            _ => (fs, self.arr(&u)),
        }
    }

    /// One function, and then the others.
    fn joined(&mut self, f: &Fun, others: &[Fun]) -> Fun {
        if others.is_empty() {
            return f.clone();
        }
        let mut body = Body::new(&mut self.names, &f.param);
        let first = body.call(f, Exp::var(&f.param));
        body.then(first, others, &f.param)
    }

    /// A function of a pair, after others of its components and before others.
    fn zipped(&mut self, f: &Fun, inner: [Vec<Fun>; 2], others: &[Fun]) -> Fun {
        if inner.iter().all(Vec::is_empty) {
            return self.joined(f, others);
        }
        let own = Exp::var(&f.param);
        let element = |k: usize| inner[k].first().map_or(own.proj(k).ty().clone(), |g| g.param.ty().clone());
        let elements = [element(0), element(1)];
        let param = self.names.fresh(f.param.name(), Ty::Tuple(elements.to_vec()));
        let mut body = Body::new(&mut self.names, &param);
        // [accelerate.fuse.first] [accelerate.fuse.second]
        let parts = [0, 1].map(|k| {
            let component = Exp::var(&param).proj(k);
            inner[k].iter().fold(component, |e, g| {
                let e = body.simple(e, g.param.name());
                body.call(g, e)
            })
        });
        body.then(Exp::tuple(parts.to_vec()), std::slice::from_ref(f).iter().chain(others), &param)
    }
}

/// The body of a function that is being joined.
struct Body<'n> {
    names: &'n mut Names,
    bindings: Vec<(EVar, Exp)>,
    /// The variables that it binds: a function may stand at several places.
    bound: BTreeSet<EVar>,
}

type Env = BTreeMap<EVar, Exp>;

impl<'n> Body<'n> {
    fn new(names: &'n mut Names, param: &EVar) -> Self {
        Body { names, bindings: Vec::new(), bound: BTreeSet::from([param.clone()]) }
    }

    /// The function with this parameter that gives the value of these functions, one after the other.
    fn then<'f>(mut self, first: Exp, others: impl IntoIterator<Item = &'f Fun>, param: &EVar) -> Fun {
        let result = others.into_iter().fold(first, |e, f| {
            let e = self.simple(e, f.param.name());
            self.call(f, e)
        });
        Fun { param: param.clone(), body: made(Exp::lets(self.bindings, result)) }
    }

    // [accelerate.fuse.apply]
    /// The function of a simple expression.
    fn call(&mut self, f: &Fun, argument: Exp) -> Exp {
        let (mut env, mut e) = (Env::from([(f.param.clone(), argument)]), &f.body);
        while let ExpForm::Let(bindings, body) = e.form() {
            let all = self.copied(bindings, &mut env);
            self.bindings.extend(all);
            e = body;
        }
        self.exp(e, &mut env)
    }

    /// A simple expression of the same value.
    fn simple(&mut self, e: Exp, name: &str) -> Exp {
        match e.form() {
            _ if is_simple(&e) => e,
            // [accelerate.fuse.tuple]
            ExpForm::Tuple(es) => Exp::tuple(es.iter().map(|e| self.simple(e.clone(), name)).collect()),
            // [accelerate.fuse.bind]
            _ => {
                let y = self.names.fresh(name, e.ty().clone());
                self.bindings.push((y.clone(), e));
                Exp::var(&y)
            }
        }
    }

    /// The bindings that are no copies.
    fn copied(&mut self, bindings: &[(EVar, Exp)], env: &mut Env) -> Vec<(EVar, Exp)> {
        let mut all = Vec::new();
        for (x, u) in bindings {
            let u = self.exp(u, env);
            // [accelerate.fuse.copy]
            if is_simple(&u) {
                env.insert(x.clone(), u);
                continue;
            }
            let y = if self.bound.insert(x.clone()) { x.clone() } else { self.names.again(x) };
            env.insert(x.clone(), Exp::var(&y));
            all.push((y, u));
        }
        all
    }

    fn exp(&mut self, e: &Exp, env: &mut Env) -> Exp {
        let form = match e.form() {
            ExpForm::Const(_) | ExpForm::Shape(_) => return e.clone(),
            ExpForm::Var(x) => return env.get(x).unwrap_or(e).clone(),
            ExpForm::Let(bindings, body) => {
                let all = self.copied(bindings, env);
                let body = self.exp(body, env);
                return made(Exp::lets(all, body));
            }
            ExpForm::Tuple(es) => ExpForm::Tuple(es.iter().map(|e| self.exp(e, env)).collect()),
            ExpForm::Proj(e, k) => {
                let e = self.exp(e, env);
                // [accelerate.fuse.component]
                if is_simple(&e) {
                    return e.proj(*k);
                }
                ExpForm::Proj(e, *k)
            }
            ExpForm::Prim(op, es) => ExpForm::Prim(*op, es.iter().map(|e| self.exp(e, env)).collect()),
            ExpForm::Index(a, e) => ExpForm::Index(a.clone(), self.exp(e, env)),
            ExpForm::Cond(c, t, e) => ExpForm::Cond(self.exp(c, env), self.exp(t, env), self.exp(e, env)),
        };
        made(Exp::new(form))
    }
}

/// Whether it is a constant, a variable, a component of a simple expression, or a tuple of such.
fn is_simple(e: &Exp) -> bool {
    match e.form() {
        ExpForm::Const(_) | ExpForm::Var(_) => true,
        ExpForm::Proj(e, _) => is_simple(e),
        ExpForm::Tuple(es) => es.iter().all(is_simple),
        ExpForm::Let(..) | ExpForm::Prim(..) | ExpForm::Index(..) | ExpForm::Shape(_) | ExpForm::Cond(..) => {
            false
        }
    }
}
