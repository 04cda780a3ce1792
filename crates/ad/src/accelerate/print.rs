//! Programs of Idealised Accelerate as text, for readers: a binding in each line.

use super::language::{
    Arr, ArrForm, Direction, Exp, ExpForm, Fun, Program, Slice, Variable, arrs, exps, funs,
};
use pullback_prim::{Op, Prim};
use std::fmt::{self, Write};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\\{}.", name(&self.param))?;
        body(f, &self.body, 1)
    }
}

impl<L> fmt::Display for Exp<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&exp(self))
    }
}

impl fmt::Display for Fun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fun(self))
    }
}

impl<L> fmt::Display for Arr<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        body(f, self, 0)
    }
}

impl<T> fmt::Display for Variable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self))
    }
}

/// The name, with the number that tells it from others.
fn name<T>(x: &Variable<T>) -> String {
    format!("{}{}", x.name(), x.id())
}

fn body<L>(f: &mut fmt::Formatter<'_>, u: &Arr<L>, indent: usize) -> fmt::Result {
    let new = "\n".to_string() + &"  ".repeat(indent);
    match u.form() {
        ArrForm::Let(bindings, u) => {
            for (a, v) in bindings {
                write!(f, "{new}let {} = ", name(a))?;
                body(f, v, indent + 1)?;
            }
            write!(f, "{new}in ")?;
            body(f, u, indent + 1)
        }
        ArrForm::Cond(c, u, v) => {
            write!(f, "acond {}", atom(c))?;
            for branch in [u, v] {
                write!(f, "{new}(")?;
                body(f, branch, indent + 1)?;
                f.write_char(')')?;
            }
            Ok(())
        }
        ArrForm::Iterate(e, step, first) => {
            write!(f, "iterate {} (\\({}, {}).", atom(e), name(&step.state), name(&step.counter))?;
            body(f, &step.body, indent + 1)?;
            write!(f, ") {}", inner(first))
        }
        _ => f.write_str(&arr(u)),
    }
}

fn arr<L>(u: &Arr<L>) -> String {
    let operator = match u.form() {
        ArrForm::Use(elements, shape, _) => {
            let elements: Vec<String> = elements.iter().map(|c| format!("{c}")).collect();
            return format!("use [{}] {shape:?}", elements.join(", "));
        }
        ArrForm::Var(a) => return name(a),
        ArrForm::Let(bindings, u) => {
            let lets: Vec<String> =
                bindings.iter().map(|(a, v)| format!("let {} = {}", name(a), arr(v))).collect();
            return format!("({} in {})", lets.join(" "), arr(u));
        }
        ArrForm::Tuple(us) => return format!("({})", us.iter().map(arr).collect::<Vec<_>>().join(", ")),
        ArrForm::Proj(u, k) => return format!("{}.{k}", inner(u)),
        ArrForm::Reshape(..) => "reshape",
        ArrForm::Replicate(slc, u) => return format!("replicate {} {}", slice(slc), inner(u)),
        ArrForm::Slice(slc, u) => return format!("slice {} {}", slice(slc), inner(u)),
        ArrForm::Generate(..) => "generate",
        ArrForm::Map(..) => "map",
        ArrForm::ZipWith(..) => "zipWith",
        ArrForm::Sum(_) => "sum",
        ArrForm::Foldl(..) => "foldl",
        ArrForm::Fold1(..) => "fold1",
        ArrForm::Scanl(..) => "scanl",
        ArrForm::Scanr(..) => "scanr",
        ArrForm::Scanl1(..) => "scanl1",
        ArrForm::Collect(Direction::Left, ..) => "collectl",
        ArrForm::Collect(Direction::Right, ..) => "collectr",
        ArrForm::Iterate(e, step, first) => {
            let (state, counter) = (name(&step.state), name(&step.counter));
            let step = format!("\\({state}, {counter}). {}", arr(&step.body));
            return format!("iterate {} ({step}) {}", atom(e), inner(first));
        }
        ArrForm::Permute(c, d, to, u) => {
            return format!("permute ({}) {} ({}) {}", fun(c), inner(d), fun(to), inner(u));
        }
        ArrForm::Backpermute(..) => "backpermute",
        ArrForm::Cond(..) => "acond",
    };
    let es = exps(u.form()).into_iter().map(atom);
    let fs = funs(u.form()).into_iter().map(|f| format!("({})", fun(f)));
    let us = arrs(u.form()).into_iter().map(inner);
    // The shape of `generate` and `backpermute` stands before the function, the first value of a fold after it.
    let parts: Vec<String> = match u.form() {
        ArrForm::Foldl(..) | ArrForm::Scanl(..) | ArrForm::Scanr(..) => fs.chain(es).chain(us).collect(),
        _ => es.chain(fs).chain(us).collect(),
    };
    format!("{operator} {}", parts.join(" "))
}

fn inner<L>(u: &Arr<L>) -> String {
    match u.form() {
        ArrForm::Var(_) | ArrForm::Let(..) | ArrForm::Tuple(_) | ArrForm::Proj(..) => arr(u),
        _ => format!("({})", arr(u)),
    }
}

fn slice(slc: &Slice) -> String {
    let entries = slc.iter().map(|e| e.as_ref().map_or("All".to_string(), exp));
    format!("({})", entries.collect::<Vec<_>>().join(", "))
}

fn fun(f: &Fun) -> String {
    format!("\\{}. {}", name(&f.param), exp(&f.body))
}

fn exp<L>(e: &Exp<L>) -> String {
    let all = |es: &[Exp<L>]| es.iter().map(exp).collect::<Vec<_>>().join(", ");
    match e.form() {
        ExpForm::Const(c) => format!("{c}"),
        ExpForm::Var(x) => name(x),
        ExpForm::Let(bindings, e) => {
            let lets: Vec<String> =
                bindings.iter().map(|(x, u)| format!("let {} = {}", name(x), exp(u))).collect();
            format!("{} in {}", lets.join(" "), exp(e))
        }
        ExpForm::Tuple(es) => format!("({})", all(es)),
        ExpForm::Proj(e, k) => format!("{}.{k}", atom(e)),
        ExpForm::Prim(op, es) => match (infix(*op), &es[..]) {
            (Some(sign), [x, y]) => format!("{} {sign} {}", atom(x), atom(y)),
            _ => format!("{op}({})", all(es)),
        },
        ExpForm::Index(a, e) => format!("{} ! {}", name(a), atom(e)),
        ExpForm::Shape(a) => format!("shape {}", name(a)),
        ExpForm::Cond(c, t, e) => format!("cond {} {} {}", atom(c), atom(t), atom(e)),
    }
}

fn atom<L>(e: &Exp<L>) -> String {
    match e.form() {
        ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Tuple(_) | ExpForm::Proj(..) => exp(e),
        ExpForm::Prim(op, es) if infix(*op).is_none() || es.len() != 2 => exp(e),
        _ => format!("({})", exp(e)),
    }
}

fn infix(op: Prim) -> Option<&'static str> {
    let Prim::Op(op, _) = op else { return None };
    match op {
        Op::Add => Some("+"),
        Op::Sub => Some("-"),
        Op::Mul => Some("*"),
        Op::Div => Some("/"),
        Op::Lt => Some("<"),
        Op::Le => Some("<="),
        Op::Eq => Some("=="),
        Op::And => Some("&&"),
        _ => None,
    }
}
