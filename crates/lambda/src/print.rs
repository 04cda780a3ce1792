//! The text form of lambda programs. [`crate::read::read`] inverts it.
//!
//! Variables are numbered in the order in which the text binds them, so that equal programs print equally and
//! `print(read(print(p))) = print(p)`. Source positions are not printed.
//! Grammar by example (static parts in brackets, subterms in parentheses):
//!
//! ```text
//! type $0 list = {#nil | #cons f64 $0}
//! def sum (xs_0: $0): f64 = match xs_0 { #nil -> 0.0f64 | #cons x_1 rest_2 -> add.f64(x_1, @sum(rest_2)) }
//! entry main (v_3: []f64): f64 signature (v: [n]f64): f64 =
//!   let w_4 = map(fun x_5: f64 -> mul.f64(x_5, x_5), v_3)
//!   in reduce(fun a_6: f64 -> fun b_7: f64 -> add.f64(a_6, b_7), 0.0f64, w_4)
//! ```

use crate::term::{
    Derivative, Entry, EntryType, Exp, Fun, FunId, Loop, LoopAttrs, LoopForm, Mark, Program, Seeds, Soac,
    TapePolicy, Term, Var,
};
use crate::types::Type;
use pullback_base::index::IdMap;
use std::fmt::Write;

/// The text of a program. Uses no stack in the length of chains of `let`; other nesting grows the stack as needed.
pub fn print(program: &Program) -> String {
    let mut printer = Printer { program, out: String::new(), names: IdMap::new() };
    for (id, def) in program.types.iter_enumerated() {
        let sum = Type::Sum(def.variants.clone().into());
        let number = pullback_base::index::Index::index(id);
        let _ = writeln!(printer.out, "type ${number} {} = {sum}", quoted(def.name.as_str()));
    }
    for fun in program.funs.iter() {
        printer.fun(fun);
    }
    printer.out
}

/// The text of a function and of those that it calls.
pub fn print_reachable(program: &Program, f: FunId) -> String {
    let mut printer = Printer { program, out: String::new(), names: IdMap::new() };
    for f in program.reachable(f) {
        printer.fun(&program.funs[f]);
    }
    printer.out
}

/// The text of one term of a program.
pub fn print_term(program: &Program, term: &Term) -> String {
    let mut printer = Printer { program, out: String::new(), names: IdMap::new() };
    printer.term(term, 0);
    printer.out
}

/// A name as it is, if it is an identifier, else between quotes.
pub(crate) fn quoted(name: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '\'';
    let identifier =
        name.chars().all(word) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if identifier && !crate::read::is_keyword(name) { name.to_string() } else { format!("{name:?}") }
}

struct Printer<'p> {
    program: &'p Program,
    out: String,
    names: IdMap<Var, usize>,
}

/// Deeper lines are not indented further.
const MAX_INDENT: usize = 30;

impl Printer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }
    fn name(&mut self, v: Var) {
        let next = self.names.len();
        let number = *self.names.entry(v).or_insert(next);
        let hint = self.program.vars.get(v).map_or("unbound", |info| info.hint.as_str());
        let word: String = hint.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let word = if word.starts_with(|c: char| c.is_ascii_alphabetic()) { word } else { "x" };
        let _ = write!(self.out, "{word}_{number}");
    }
    /// A variable with its type.
    fn binder(&mut self, v: Var) {
        self.name(v);
        match self.program.vars.get(v) {
            Some(info) => {
                let _ = write!(self.out, ": {}", info.ty);
            }
            None => self.push(": ()"),
        }
    }
    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent.min(MAX_INDENT) * 2));
    }
    fn fun(&mut self, fun: &Fun) {
        self.push(if fun.entry.is_some() { "entry " } else { "def " });
        self.push(&quoted(fun.name.as_str()));
        self.push(" (");
        for (i, &v) in fun.params.iter().enumerate() {
            self.push(if i == 0 { "" } else { ", " });
            self.binder(v);
        }
        let _ = write!(self.out, "): {}", fun.result);
        if let Some(Entry { params, result }) = &fun.entry {
            self.push(" signature (");
            for (i, (name, ty)) in params.iter().enumerate() {
                let _ = write!(self.out, "{}{}: {ty}", if i == 0 { "" } else { ", " }, quoted(name.as_str()));
            }
            let _ = write!(self.out, "): {result}");
        }
        self.push(" =");
        self.line(1);
        match &fun.body {
            Some(body) => self.term(body, 1),
            None => self.push("undefined"),
        }
        self.push("\n");
    }
    fn list<'t>(&mut self, ts: impl IntoIterator<Item = &'t Term>, indent: usize) {
        self.push("(");
        for (i, t) in ts.into_iter().enumerate() {
            self.push(if i == 0 { "" } else { ", " });
            self.term(t, indent);
        }
        self.push(")");
    }
    /// `head(subterms)`.
    fn call<'t>(&mut self, head: &str, ts: impl IntoIterator<Item = &'t Term>, indent: usize) {
        self.push(head);
        self.list(ts, indent);
    }
    /// A term where one that extends to the right as far as possible needs parentheses.
    fn closed(&mut self, t: &Term, indent: usize) {
        let open =
            matches!(**t, Exp::Let(..) | Exp::Lam(..) | Exp::LinearLam(..) | Exp::If(..) | Exp::Loop(_));
        if open {
            self.call("", [t], indent);
        } else {
            self.term(t, indent);
        }
    }
    fn term(&mut self, t: &Term, indent: usize) {
        let mut t = t;
        while let Exp::Let(v, value, body) = &**t {
            self.push("let ");
            self.name(*v);
            self.push(" = ");
            self.closed(value, indent + 1);
            self.line(indent);
            self.push("in ");
            t = body;
        }
        crate::with_stack(|| self.exp(t, indent));
    }
    fn exp(&mut self, exp: &Exp, indent: usize) {
        match exp {
            Exp::Var(v) => self.name(*v),
            Exp::Const(c) => self.push(&c.to_string()),
            Exp::Prim(prim, ts) => self.call(&prim.name(), ts, indent),
            Exp::Let(..) => unreachable!("handled by the caller"),
            Exp::Lam(v, b) | Exp::LinearLam(v, b) => {
                self.push(if matches!(exp, Exp::Lam(..)) { "fun " } else { "lin " });
                self.binder(*v);
                self.push(" -> ");
                self.term(b, indent + 1);
            }
            Exp::App(f, a) => {
                self.closed(f, indent);
                self.list([a], indent);
            }
            Exp::Call(f, ts) => {
                let name = self.program.funs.get(*f).map_or("unknown", |f| f.name.as_str());
                self.call(&format!("@{}", quoted(name)), ts, indent);
            }
            Exp::Tuple(ts) => {
                self.push("(");
                for (i, t) in ts.iter().enumerate() {
                    self.push(if i == 0 { "" } else { ", " });
                    self.term(t, indent);
                }
                self.push(if ts.len() == 1 { ",)" } else { ")" });
            }
            Exp::Proj(t, i) => {
                self.closed(t, indent);
                let _ = write!(self.out, ".{i}");
            }
            Exp::Match(x, arms) => {
                self.push("match ");
                self.closed(x, indent);
                self.push(" {");
                for (k, arm) in arms.iter().enumerate() {
                    self.line(indent + 1);
                    let name = self
                        .program
                        .variants(x.ty())
                        .and_then(|vs| vs.get(k))
                        .map(|v| quoted(v.name.as_str()));
                    let _ =
                        write!(self.out, "{}#{}", if k == 0 { "" } else { "| " }, name.unwrap_or_default());
                    for &v in &arm.params {
                        self.push(" ");
                        self.name(v);
                    }
                    self.push(" -> ");
                    self.term(&arm.body, indent + 2);
                }
                self.push(" }");
            }
            Exp::If(c, a, b) => {
                self.push("if ");
                self.closed(c, indent);
                self.push(" then ");
                self.closed(a, indent + 1);
                self.push(" else ");
                self.term(b, indent + 1);
            }
            Exp::Loop(l) => self.loop_(l, indent),
            Exp::Assert { condition, message, body } => {
                self.call(&format!("assert[{:?}]", message.as_str()), [condition, body], indent);
            }
            Exp::SameSize { left, right, message, body } => {
                self.call(&format!("same_size[{:?}]", message.as_str()), [left, right, body], indent);
            }
            Exp::Vjp(d) => self.derivative(["vjp", "mjp"], d, indent),
            Exp::Jvp(d) => self.derivative(["jvp", "jmp"], d, indent),
            Exp::Soac(soac) => self.soac(soac, indent),
            other => {
                let head = head(other);
                self.push(&head);
                let mut children = Vec::new();
                other.children(&mut |t| children.push(t));
                self.list(children, indent);
            }
        }
    }
    fn loop_(&mut self, l: &Loop, indent: usize) {
        let LoopAttrs { tape, stripmine, bound } = &l.attrs;
        self.push("loop");
        let tape = tape.map(|t| match t {
            TapePolicy::All => "tape all".to_string(),
            TapePolicy::Carry => "tape carry".to_string(),
            TapePolicy::Sqrt => "tape sqrt".to_string(),
            TapePolicy::Revolve(s) => format!("tape revolve {s}"),
        });
        let attrs = [tape, stripmine.map(|k| format!("stripmine {k}")), bound.map(|b| format!("bound {b}"))];
        let attrs: Vec<String> = attrs.into_iter().flatten().collect();
        if !attrs.is_empty() {
            let _ = write!(self.out, "[{}]", attrs.join(", "));
        }
        self.push(" ");
        self.name(l.state);
        self.push(" = ");
        self.closed(&l.init, indent + 1);
        match &l.form {
            LoopForm::For(i, n) => {
                self.push(" for ");
                self.name(*i);
                self.push(" < ");
                self.closed(n, indent + 1);
            }
            LoopForm::While(c) => {
                self.push(" while ");
                self.closed(c, indent + 1);
            }
        }
        self.push(" do");
        self.line(indent + 1);
        self.term(&l.body, indent + 1);
    }
    fn derivative(&mut self, [one, many]: [&str; 2], d: &Derivative, indent: usize) {
        self.push(match d.seeds {
            Seeds::One => one,
            Seeds::Many => many,
        });
        if let Some(algorithm) = &d.algorithm {
            let _ = write!(self.out, "[{:?}]", algorithm.as_str());
        }
        self.list([&d.f, &d.arg, &d.seed], indent);
    }
    fn soac(&mut self, soac: &Soac, indent: usize) {
        match soac {
            Soac::Map { f, arrays } => self.call("map", std::iter::once(f).chain(arrays), indent),
            Soac::Reduce { op, neutral, array, commutative } => {
                self.call(if *commutative { "reduce_comm" } else { "reduce" }, [op, neutral, array], indent);
            }
            Soac::Scan { op, neutral, array } => self.call("scan", [op, neutral, array], indent),
            Soac::Hist { op, neutral, dst, indices, values } => {
                self.call("hist", [op, neutral, dst, indices, values], indent);
            }
            Soac::Scatter { dst, indices, values } => self.call("scatter", [dst, indices, values], indent),
        }
    }
}

/// The word and the static part of a term whose subterms follow in the order of [`Exp::children`].
fn head(exp: &Exp) -> String {
    let list = |ts: &[Type]| ts.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
    match exp {
        Exp::Inject(t, k, _) => format!("inject[{t}, {k}]"),
        Exp::ArrayLit(t, _) => format!("array[{t}]"),
        Exp::Index(..) => "index".into(),
        Exp::Slice(..) => "slice".into(),
        Exp::Update(..) => "update".into(),
        Exp::UpdateSlice(..) => "update_slice".into(),
        Exp::Gather(..) => "gather".into(),
        Exp::Size(_, d) => format!("size[{d}]"),
        Exp::Iota(_) => "iota".into(),
        Exp::Replicate(..) => "replicate".into(),
        Exp::Rearrange(perm, _) => {
            format!("rearrange[{}]", perm.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
        }
        Exp::Reshape { from, .. } => format!("reshape[{from}]"),
        Exp::Concat(_) => "concat".into(),
        Exp::Sign(_) => "sign".into(),
        Exp::Reverse(_) => "reverse".into(),
        Exp::Rotate(..) => "rotate".into(),
        Exp::Zip(_) => "zip".into(),
        Exp::Unzip(_) => "unzip".into(),
        Exp::Custom { tape: false, .. } => "custom".into(),
        Exp::Custom { tape: true, .. } => "custom_tape".into(),
        Exp::Marked(Mark::Recompute, _) => "recompute".into(),
        Exp::Marked(Mark::Store, _) => "store".into(),
        Exp::StopGradient(_) => "stop_gradient".into(),
        Exp::Par(_) => "par".into(),
        Exp::LinearApp(..) => "lapp".into(),
        Exp::Zero(t) => format!("zero[{t}]"),
        Exp::Plus(..) => "plus".into(),
        Exp::SparseTuple(_) => "lpair".into(),
        Exp::SparseProj(_, i) => format!("lproj[{i}]"),
        Exp::SparseInject(t, k, _) => format!("linj[{t}, {k}]"),
        Exp::SparseCast(_, k) => format!("lcast[{k}]"),
        Exp::BagOne(..) => "bag_one".into(),
        Exp::BagArray(..) => "bag_array".into(),
        Exp::BagScatter(..) => "bag_scatter".into(),
        Exp::EvmReturn(env, _) => format!("evm_return[{}]", list(env)),
        Exp::EvmBind(..) => "evm_bind".into(),
        Exp::EvmAdd { env, cell, .. } => format!("evm_add[{cell}][{}]", list(env)),
        Exp::EvmScope(..) => "evm_scope".into(),
        Exp::EvmRun(..) => "evm_run".into(),
        Exp::EvmPar(_) => "evm_par".into(),
        Exp::EvmSequence(env, _) => format!("evm_sequence[{}]", list(env)),
        Exp::StagedCotangent(_) => "staged_cotangent".into(),
        Exp::StagedCall(..) => "staged_call".into(),
        Exp::StagedResolve(_) => "staged_resolve".into(),
        Exp::MapEmpty(t) => format!("map_empty[{t}]"),
        Exp::MapInsert { .. } => "map_insert".into(),
        Exp::MapLookup(..) => "map_lookup".into(),
        Exp::MapPopMax(_) => "map_pop_max".into(),
        Exp::IoReturn(_) => "io_return".into(),
        Exp::IoBind(..) => "io_bind".into(),
        Exp::IoRun(_) => "io_run".into(),
        Exp::IoPar(_) => "io_par".into(),
        Exp::MutNew(..) => "mut_new".into(),
        Exp::MutGet(..) => "mut_get".into(),
        Exp::MutSet(..) => "mut_set".into(),
        Exp::MutModify(..) => "mut_modify".into(),
        Exp::MutPush(..) => "mut_push".into(),
        Exp::MutSize(_) => "mut_size".into(),
        Exp::MutFreeze(_) => "mut_freeze".into(),
        Exp::Var(_)
        | Exp::Const(_)
        | Exp::Prim(..)
        | Exp::Let(..)
        | Exp::Lam(..)
        | Exp::App(..)
        | Exp::Call(..)
        | Exp::Tuple(_)
        | Exp::Proj(..)
        | Exp::Match(..)
        | Exp::If(..)
        | Exp::Loop(_)
        | Exp::Assert { .. }
        | Exp::SameSize { .. }
        | Exp::Vjp(_)
        | Exp::Jvp(_)
        | Exp::Soac(_)
        | Exp::LinearLam(..) => unreachable!("printed by its own rule"),
    }
}

impl std::fmt::Display for EntryType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = |i: usize| if i == 0 { "" } else { ", " };
        match self {
            EntryType::Scalar(s) => write!(f, "{s}"),
            EntryType::Array(None, t) => write!(f, "[]{t}"),
            EntryType::Array(Some(n), t) => write!(f, "[{}]{t}", quoted_size(n.as_str())),
            EntryType::Tuple(ts) => {
                f.write_str("(")?;
                for (i, t) in ts.iter().enumerate() {
                    write!(f, "{}{t}", separator(i))?;
                }
                f.write_str(if ts.len() == 1 { ",)" } else { ")" })
            }
            EntryType::Record(fields) => {
                f.write_str("record(")?;
                for (i, (name, t)) in fields.iter().enumerate() {
                    write!(f, "{}{}: {t}", separator(i), quoted(name.as_str()))?;
                }
                f.write_str(")")
            }
            EntryType::Sum(variants) => {
                f.write_str("{")?;
                for (i, (name, fields)) in variants.iter().enumerate() {
                    write!(f, "{}#{}", if i == 0 { "" } else { " | " }, quoted(name.as_str()))?;
                    fields.iter().try_for_each(|t| write!(f, " {t}"))?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted_size(size: &str) -> String {
    if !size.is_empty() && size.chars().all(|c| c.is_ascii_digit()) { size.to_string() } else { quoted(size) }
}
