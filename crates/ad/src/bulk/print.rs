//! Terms as text, in the notation of the figures. What is printed is for readers; nothing reads it.

use super::a_core::{Exp, Extremum, IndexFn, Program, Term, Ty, Var};
use super::sizes::Size;
use std::fmt;

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array {} {}", shape(&self.shape), self.scalar)
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name(), self.id())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.exp()))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, name) in self.sizes.iter().enumerate() {
            writeln!(f, "size n{k} = {name}")?;
        }
        for x in &self.inputs {
            writeln!(f, "input {x} : {}", x.ty())?;
        }
        writeln!(f, "{}", self.body)
    }
}

fn shape(sh: &[Size]) -> String {
    format!("[{}]", sh.iter().map(Size::to_string).collect::<Vec<_>>().join(", "))
}

/// The term.
pub(super) fn show(exp: &Exp) -> String {
    match exp {
        Exp::Const(c) if c.shape.is_empty() => {
            c.elements.first().map_or_else(String::new, ToString::to_string)
        }
        Exp::Const(c) => {
            let some: Vec<String> = c.elements.iter().take(8).map(ToString::to_string).collect();
            let more = if c.elements.len() > 8 { ", .." } else { "" };
            format!("(constant {} [{}{more}])", c.ty(), some.join(", "))
        }
        Exp::Size(n) => format!("({n})"),
        Exp::Iota(k) => format!("(iota ({k}))"),
        Exp::Var(x) => x.to_string(),
        Exp::Let(x, u, v) => format!("let {x} = {u} in\n{v}"),
        Exp::Cond(b, u, v) => format!("(cond {b} {u} {v})"),
        Exp::Op(op, ts) => format!("({op} {})", list(ts, " ")),
        Exp::Index(t, ix) => format!("(index {t} [{}])", list(ix, ", ")),
        Exp::SumOuter(t) => format!("(sumOuter {t})"),
        Exp::ArgOuter(Extremum::Min, t) => format!("(argMin {t})"),
        Exp::ArgOuter(Extremum::Max, t) => format!("(argMax {t})"),
        Exp::Gather(sh, t, f) => format!("(gather {} {t} {})", shape(sh), function(f)),
        Exp::Scatter(sh, t, f) => format!("(scatter {} {t} {})", shape(sh), function(f)),
        Exp::ArgScatter(which, sh, t, f) => {
            let name = if *which == Extremum::Min { "argMinAt" } else { "argMaxAt" };
            format!("({name} {} {t} {})", shape(sh), function(f))
        }
        Exp::Stack(ts) => format!("[{}]", list(ts, ", ")),
        Exp::Replicate(k, t) => format!("(replicate ({k}) {t})"),
        Exp::Transpose(j, t) => {
            let j: Vec<String> = j.iter().map(ToString::to_string).collect();
            format!("(tr_{{{}}} {t})", j.join(","))
        }
        Exp::Reshape(sh, t) => format!("(reshape {} {t})", shape(sh)),
        Exp::Scanl(f, z, ts) => {
            let xs: Vec<String> = f.params[1..].iter().map(Var::to_string).collect();
            let (a, xs) = (&f.params[0], xs.join(", "));
            format!("(scanl ({}) (\\{a} [{xs}]. {}) {z} [{}])", f.size, f.body, list(ts, ", "))
        }
        Exp::Build1(k, i, t) => format!("(build1 ({k}) (\\{i}. {t}))"),
    }
}

fn list(ts: &[Term], between: &str) -> String {
    ts.iter().map(Term::to_string).collect::<Vec<_>>().join(between)
}

fn function(f: &IndexFn) -> String {
    let params: Vec<String> = f.params.iter().map(Var::to_string).collect();
    format!("(\\[{}]. [{}])", params.join(", "), list(&f.index, ", "))
}
