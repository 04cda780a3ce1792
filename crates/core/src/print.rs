//! The text form of core, and renumbering. [`crate::read()`] is the inverse.
//!
//! ```text
//! program  ::= ("type" name "=" alt ("|" alt)*)* function*
//! function ::= "fun" name "(" binders ")" ":" types body
//!            | "entry" name "interface" "(" (name ":" etype),* ")" "->" etype "(" binders ")" ":" types body
//! body     ::= "{" ("let" binders "=" exp)* "in" atoms "}"
//! binders  ::= (variable ":" type),*            lam ::= "(" binders ")" body
//! type     ::= f64 | .. | "[]" type | "(" types ")" | "(" "#" name type* ("|" "#" name type*)* ")" | name | "acc" type
//! atom     ::= variable | 1.5f64 | -2i64 | true | f64.nan | f64.nan(bits) | -f64.inf ..
//! exp      ::= atom | a[i, j] | add.f64(x, y) | convert.i64.f64(x)
//!   | tuple(x, y) | proj(t, 0) | inject(alternative, x, ..): type | array(x, ..): type
//!   | if c body body | match x (case lam)* | call f(x, ..)
//!   | loop attribute* (s: t = init, ..) (for i: i64 < n | while body) [collect k] body
//!   | slice(a, start, len, stride) | update(a, [i], v) | update_slice(a, start, len, stride, v) | gather(a, is)
//!   | size(a, 0) | iota(n) | replicate([n, m], v) | rearrange([1, 0], a) | reshape([n], from, a) | concat(a, b)
//!   | reverse(a) | rotate(a, k)
//!   | map n [arrays] lam | reduce n [neutral] [arrays] lam | reduce_comm n [neutral] [arrays] lam
//!   | scan n [neutral] [arrays] lam | hist n [neutral] [dst] indices [values] lam | scatter(n, dst, indices, values)
//!   | withacc [inits] lam | add_to(acc, [i], v) | view_index(acc, [i]) | view_slice(acc, start, len, stride)
//!   | view_proj(acc, 0) | view_rearrange(acc, [1, 0]) | view_reshape(acc, [n], from) | view_reverse(acc)
//!   | view_rotate(acc, k) | plus(x, y)
//!   | vjp [#[ad(name)]] [args] [cotangents] lam | jvp [#[ad(name)]] [args] [tangents] lam | custom [tape n] [args] lam lam
//!   | recompute body | store body | stop_gradient(x) | par body* | assert(c, "message")
//!   | check_index(1, i, n, m) | check_slice(start, len, stride, n) | check_gather(is, n, m) | check_div.i64(x, y)
//!   | check_sizes(n, ..) | check_reshape(2, n, m, nm) | check_rows(ns, ..) | check_shapes_row(1, n, m)
//! etype    ::= f64 | "[" (name | number)? "]" etype | "(" etypes ")" | "{" (name ":" etype),* "}" | "(" #name etype* | .. ")"
//! attribute ::= #[tape(all | carry | sqrt | revolve(k) | limit(k))] | #[stripmine(k)] | #[bound(b)]
//! ```
//! A product of one component is written `(t,)`. Names that are no identifiers are written as strings. `//` starts a
//! comment. Variables are printed as hint and number, `x_3`, numbered in the order in which they are bound in the
//! text, so the text does not depend on how the program was made. Numbers without a suffix are part of the construct,
//! not atoms. Origins are not printed, except, on request, rule tags as comments.

use crate::ir::{
    Atom, Body, Check, EntryType, Exp, Fun, FunId, FusedForm, Lam, Loop, LoopForm, Mark, Program, SliceDim,
    Soac, Stm, TapePolicy, Var, VarInfo, View,
};
use crate::rename::{Subst, substitute_atom};
use crate::types::{Type, Variant};
use pullback_base::Symbol;
use pullback_base::index::{IdMap, SharedVec};
use pullback_prim::{Scalar, ScalarValue};

/// The numbers of variables in the text form.
#[derive(Clone, Debug, Default)]
pub struct Names {
    numbers: IdMap<Var, usize>,
}

impl Names {
    /// Numbers the variables of a program in the order in which they are bound in the text.
    pub fn of(program: &Program) -> Names {
        let mut names = Names::default();
        for fun in program.funs.iter() {
            names.fun(fun);
        }
        names
    }
    /// Numbers the variables of one function from 0.
    pub fn of_function(program: &Program, id: FunId) -> Names {
        let mut names = Names::default();
        names.fun(&program.funs[id]);
        names
    }
    /// The printed name of a variable: `x_3`; `x_unbound3` if nothing binds it.
    pub fn name(&self, program: &Program, v: Var) -> String {
        use pullback_base::index::Index;
        let hint = program.vars.get(v).map_or(String::new(), |i| clean(i.hint.as_str()));
        match self.numbers.get(&v) {
            Some(n) => format!("{hint}_{n}"),
            None => format!("{hint}_unbound{}", v.index()),
        }
    }
    /// Whether the variable is bound in what was numbered.
    pub fn knows(&self, v: Var) -> bool {
        self.numbers.contains_key(&v)
    }
    fn add(&mut self, v: Var) {
        let next = self.numbers.len();
        self.numbers.entry(v).or_insert(next);
    }
    fn fun(&mut self, fun: &Fun) {
        fun.params.iter().for_each(|p| self.add(*p));
        self.body(&fun.body);
    }
    fn body(&mut self, body: &Body) {
        for stm in &body.stms {
            stm.pat.iter().for_each(|v| self.add(*v));
            for scope in stm.exp.bodies() {
                scope.binds.iter().for_each(|v| self.add(v));
                self.body(scope.body);
            }
        }
    }
}

/// A hint as it is printed: letters, digits, `_` and `'` only, and no digit at the start.
fn clean(hint: &str) -> String {
    let mut out: String =
        hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '\'' { c } else { '_' }).collect();
    if out.starts_with(|c: char| c.is_ascii_digit() || c == '\'') {
        out.insert(0, '_');
    }
    out
}

/// The program with variables renumbered in the order in which they are bound, hints as they are printed, and
/// variables that nothing binds dropped. `read(print(p))` is `renumber(p)` but for origins, which the text does not hold.
///
/// The program need not be well-formed, except that every variable it mentions must be in its table.
pub fn renumber(program: &Program) -> Program {
    let names = Names::of(program);
    let mut order: Vec<(usize, Var)> = names.numbers.iter().map(|(v, n)| (*n, *v)).collect();
    order.sort_unstable();
    let mut vars: SharedVec<Var, VarInfo> = SharedVec::new();
    let mut subst = Subst::new();
    for (_, v) in order {
        let info = &program.vars[v];
        let copy = VarInfo { hint: clean(info.hint.as_str()).into(), ..info.clone() };
        subst.insert(v, Atom::Var(vars.push(copy)));
    }
    // Mentioned but not bound: kept behind the others, so that the checker can say so.
    for fun in program.funs.iter() {
        for v in crate::traverse::used_vars(&fun.body) {
            subst.entry(v).or_insert_with(|| Atom::Var(vars.push(program.vars[v].clone())));
        }
    }
    let mut out = Program { vars, ..program.clone() };
    for fun in out.funs.iter_mut() {
        rebind(&mut fun.params, &subst);
        renumber_body(&mut fun.body, &subst);
    }
    out
}

fn rebind(vars: &mut [Var], subst: &Subst) {
    for v in vars {
        if let Some(Atom::Var(new)) = subst.get(v) {
            *v = *new;
        }
    }
}

fn renumber_body(body: &mut Body, subst: &Subst) {
    for stm in &mut body.stms {
        rebind(&mut stm.pat, subst);
        stm.exp.map_atoms(|a| substitute_atom(a, subst));
        if let Exp::Loop(l) = &mut stm.exp {
            for (p, _) in &mut l.params {
                rebind(std::slice::from_mut(p), subst);
            }
            if let LoopForm::For { i, n: _ } = &mut l.form {
                rebind(std::slice::from_mut(i), subst);
            }
        }
        for lam in stm.exp.lams_mut() {
            rebind(&mut lam.params, subst);
        }
        for scope in stm.exp.bodies_mut() {
            renumber_body(scope.body, subst);
        }
    }
    for a in &mut body.result {
        *a = substitute_atom(*a, subst);
    }
}

/// What to print besides the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// Rule tags of AD rules and passes, as comments at the end of the line.
    pub rules: bool,
}

/// The text form of a program.
pub fn print(program: &Program) -> String {
    print_with(program, PrintOptions::default())
}

/// The text form of a program, with options.
pub fn print_with(program: &Program, options: PrintOptions) -> String {
    let names = Names::of(program);
    let mut p = Printer { program, names: &names, options, out: String::new(), indent: 0 };
    for def in program.types.iter() {
        p.out += &format!("type {} = {}\n", type_name(&def.name), alternatives(program, &def.variants));
    }
    for (k, fun) in program.funs.iter().enumerate() {
        if k > 0 || !program.types.is_empty() {
            p.out.push('\n');
        }
        p.fun(fun);
    }
    p.out
}

/// The text form of one function.
pub fn print_function(program: &Program, id: FunId, options: PrintOptions) -> String {
    let names = Names::of_function(program, id);
    let mut p = Printer { program, names: &names, options, out: String::new(), indent: 0 };
    p.fun(&program.funs[id]);
    p.out
}

/// The text form of a statement, one line per statement inside, without a line break at the end.
pub fn print_stm(program: &Program, names: &Names, stm: &Stm, options: PrintOptions) -> String {
    let mut p = Printer { program, names, options, out: String::new(), indent: 0 };
    p.stm(stm);
    p.out.trim_end().to_string()
}

/// The text form of a type.
pub fn print_type(program: &Program, t: &Type) -> String {
    match t {
        Type::Scalar(s) => s.name().to_string(),
        Type::Tuple(ts) if ts.len() == 1 => format!("({},)", print_type(program, &ts[0])),
        Type::Tuple(ts) => format!("({})", commas(ts.iter().map(|t| print_type(program, t)))),
        Type::Sum(vs) => format!("({})", alternatives(program, vs)),
        Type::Named(id) => match program.types.get(*id) {
            Some(def) => type_name(&def.name),
            None => format!("{:?}", format!("{id:?}")),
        },
        Type::Array(t) => format!("[]{}", print_type(program, t)),
        Type::Acc(t) => format!("acc {}", print_type(program, t)),
    }
}

fn alternatives(program: &Program, variants: &[Variant]) -> String {
    let one = |v: &Variant| {
        let fields: String = v.fields.iter().map(|t| format!(" {}", print_type(program, t))).collect();
        format!("#{}{fields}", symbol(&v.name))
    };
    if variants.is_empty() {
        return "#".to_string();
    }
    variants.iter().map(one).collect::<Vec<_>>().join(" | ")
}

fn entry_type(t: &EntryType) -> String {
    match t {
        EntryType::Scalar(s) => s.name().to_string(),
        EntryType::Array(None, t) => format!("[]{}", entry_type(t)),
        EntryType::Array(Some(n), t) => {
            let plain = !n.as_str().is_empty() && n.as_str().chars().all(|c| c.is_ascii_digit());
            let size = if plain { n.to_string() } else { symbol(n) };
            format!("[{size}]{}", entry_type(t))
        }
        EntryType::Tuple(ts) if ts.len() == 1 => format!("({},)", entry_type(&ts[0])),
        EntryType::Tuple(ts) => format!("({})", commas(ts.iter().map(entry_type))),
        EntryType::Record(fs) => {
            format!("{{{}}}", commas(fs.iter().map(|(n, t)| format!("{}: {}", symbol(n), entry_type(t)))))
        }
        EntryType::Sum(vs) if vs.is_empty() => "(#)".to_string(),
        EntryType::Sum(vs) => {
            let one = |(n, fields): &(Symbol, Vec<EntryType>)| {
                let fields: String = fields.iter().map(|t| format!(" {}", entry_type(t))).collect();
                format!("#{}{fields}", symbol(n))
            };
            format!("({})", vs.iter().map(one).collect::<Vec<_>>().join(" | "))
        }
    }
}

fn commas(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A name: as it is if it is an identifier, else as a string.
fn symbol(name: &Symbol) -> String {
    let text = name.as_str();
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let reserved = crate::read::RESERVED.contains(&text);
    let identifier = first && !reserved && chars.all(|c| c.is_ascii_alphanumeric() || "_'.".contains(c));
    if identifier { text.to_string() } else { string(text) }
}

/// The name of a type: as a string also where it looks like a scalar type or a keyword of types.
fn type_name(name: &Symbol) -> String {
    let text = name.as_str();
    if Scalar::from_name(text).is_some() || text == "acc" { string(text) } else { symbol(name) }
}

fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            c if c.is_control() => out += &format!("\\u{{{:x}}}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A constant. Payloads of NaN are kept: folding may produce other than the usual one.
fn constant(c: ScalarValue) -> String {
    match c {
        ScalarValue::F64(x) if x.is_nan() && x.to_bits() != f64::NAN.to_bits() => {
            format!("f64.nan({})", x.to_bits())
        }
        ScalarValue::F32(x) if x.is_nan() && x.to_bits() != f32::NAN.to_bits() => {
            format!("f32.nan({})", x.to_bits())
        }
        c => c.to_string(),
    }
}

fn shown(numbers: &[usize]) -> String {
    commas(numbers.iter().map(|n| n.to_string()))
}

struct Printer<'a> {
    program: &'a Program,
    names: &'a Names,
    options: PrintOptions,
    out: String,
    indent: usize,
}

impl Printer<'_> {
    fn atom(&self, a: Atom) -> String {
        match a {
            Atom::Var(v) => self.names.name(self.program, v),
            Atom::Const(c) => constant(c),
        }
    }
    fn atoms(&self, atoms: &[Atom]) -> String {
        commas(atoms.iter().map(|a| self.atom(*a)))
    }
    fn binder(&self, v: Var) -> String {
        let ty = print_type(self.program, &self.program.vars[v].ty);
        format!("{}: {ty}", self.names.name(self.program, v))
    }
    fn binders(&self, vars: &[Var]) -> String {
        commas(vars.iter().map(|v| self.binder(*v)))
    }
    fn line(&mut self) {
        self.out.push('\n');
        self.out += &"  ".repeat(self.indent);
    }

    fn fun(&mut self, fun: &Fun) {
        match &fun.entry {
            None => self.out += &format!("fun {}", symbol(&fun.name)),
            Some(entry) => {
                let params =
                    commas(entry.params.iter().map(|(n, t)| format!("{}: {}", symbol(n), entry_type(t))));
                let result = entry_type(&entry.result);
                self.out += &format!("entry {}\n  interface ({params}) -> {result}\n  ", symbol(&fun.name));
            }
        }
        let results = commas(fun.results.iter().map(|t| print_type(self.program, t)));
        self.out += &format!("({}): {results} ", self.binders(&fun.params));
        self.body(&fun.body);
        self.out.push('\n');
    }

    fn body(&mut self, body: &Body) {
        self.out.push('{');
        self.indent += 1;
        for stm in &body.stms {
            self.line();
            self.stm(stm);
        }
        self.line();
        self.out += &format!("in {}", self.atoms(&body.result));
        self.indent -= 1;
        if body.result.is_empty() {
            self.out.truncate(self.out.trim_end().len());
        }
        self.line();
        self.out.push('}');
    }
    fn lam(&mut self, lam: &Lam) {
        self.out += &format!("({}) ", self.binders(&lam.params));
        self.body(&lam.body);
    }

    fn stm(&mut self, stm: &Stm) {
        self.out += &format!("let {} = ", self.binders(&stm.pat));
        // The tag goes where the line ends: behind the statement, which for bodies is behind the closing brace.
        self.exp(&stm.exp);
        if self.options.rules
            && let Some(info) = stm.pat.first().and_then(|v| self.program.vars.get(*v))
            && let Some((rule, of)) = info.origin.rule
        {
            self.out += &format!("  // {rule}");
            if let Some(v) = of {
                self.out += &format!(" of {}", self.names.name(self.program, v));
            }
        }
    }

    fn call(&mut self, name: &str, args: &[Atom]) {
        self.out += &format!("{name}({})", self.atoms(args));
    }

    fn exp(&mut self, exp: &Exp) {
        match exp {
            Exp::Atom(a) => self.out += &self.atom(*a),
            Exp::Prim(prim, args) => self.call(&prim.name(), args),
            Exp::Tuple(items) => self.call("tuple", items),
            Exp::Proj(a, i) => self.out += &format!("proj({}, {i})", self.atom(*a)),
            Exp::Inject(t, k, fields) => {
                let fields: String = fields.iter().map(|a| format!(", {}", self.atom(*a))).collect();
                self.out += &format!("inject({k}{fields}): {}", print_type(self.program, t));
            }
            Exp::Match(a, arms) => {
                self.out += &format!("match {}", self.atom(*a));
                self.indent += 1;
                for arm in arms {
                    self.line();
                    self.out += "case ";
                    self.lam(arm);
                }
                self.indent -= 1;
            }
            Exp::If(c, then, otherwise) => {
                self.out += &format!("if {} ", self.atom(*c));
                self.body(then);
                self.out += " else ";
                self.body(otherwise);
            }
            Exp::Loop(l) => self.loop_(l),
            Exp::Call(f, args) => {
                let name =
                    self.program.funs.get(*f).map_or_else(|| format!("{f:?}").into(), |f| f.name.clone());
                self.call(&format!("call {}", symbol(&name)), args);
            }
            Exp::Soac(soac) => self.soac(soac),
            Exp::WithAcc(inits, lam) => {
                self.out += &format!("withacc [{}] ", self.atoms(inits));
                self.lam(lam);
            }
            Exp::AccView(acc, view) => self.view(*acc, view),
            Exp::AccAdd(acc, ix, v) => {
                self.out += &format!("add_to({}, [{}], {})", self.atom(*acc), self.atoms(ix), self.atom(*v));
            }
            Exp::Plus(a, b) => self.call("plus", &[*a, *b]),
            Exp::Vjp { lam, args, cotangents: more, seeds, algorithm } => {
                self.derivative("vjp", lam, (args, more, *seeds), algorithm);
            }
            Exp::Jvp { lam, args, tangents: more, seeds, algorithm } => {
                self.derivative("jvp", lam, (args, more, *seeds), algorithm);
            }
            Exp::Custom { primal, rule, args, tape } => {
                self.out += "custom ";
                if *tape > 0 {
                    self.out += &format!("tape {tape} ");
                }
                self.out += &format!("[{}] ", self.atoms(args));
                self.lam(primal);
                self.out.push(' ');
                self.lam(rule);
            }
            Exp::Marked(mark, body) => {
                self.out += match mark {
                    Mark::Recompute => "recompute ",
                    Mark::Store => "store ",
                };
                self.body(body);
            }
            Exp::StopGradient(a) => self.call("stop_gradient", &[*a]),
            Exp::Par(bodies) => {
                self.out += "par";
                for body in bodies {
                    self.out.push(' ');
                    self.body(body);
                }
            }
            Exp::Assert(c, message, values) => {
                self.out += &format!("assert({}, {}", self.atom(*c), string(message.as_str()));
                values.iter().for_each(|v| self.out += &format!(", {}", self.atom(*v)));
                self.out.push(')');
            }
            Exp::Check(check, args) => {
                let (word, number) = match check {
                    Check::Index(count) => ("index".to_string(), Some(count)),
                    Check::Slice => ("slice".into(), None),
                    Check::Gather => ("gather".into(), None),
                    Check::Prim(prim) => (prim.name(), None),
                    Check::Sizes => ("sizes".into(), None),
                    Check::Reshape(count) => ("reshape".into(), Some(count)),
                    Check::Rows => ("rows".into(), None),
                    Check::Shapes(of, rank) => (format!("shapes_{}", of.name()), Some(rank)),
                };
                let number = number.map_or(String::new(), |n| format!("{n}, "));
                self.out += &format!("check_{word}({number}{})", self.atoms(args));
            }
            Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..) => {
                let text = self.array_exp(exp);
                self.out += &text;
            }
        }
    }

    fn array_exp(&self, exp: &Exp) -> String {
        let atom = |a: &Atom| self.atom(*a);
        match exp {
            Exp::ArrayLit(t, items) => {
                format!("array({}): {}", self.atoms(items), print_type(self.program, t))
            }
            Exp::Index(a, ix) => format!("{}[{}]", atom(a), self.atoms(ix)),
            Exp::Slice(a, s) => format!("slice({}, {})", atom(a), self.slice(s)),
            Exp::Update(a, ix, v) => format!("update({}, [{}], {})", atom(a), self.atoms(ix), atom(v)),
            Exp::UpdateSlice(a, s, v) => format!("update_slice({}, {}, {})", atom(a), self.slice(s), atom(v)),
            Exp::Gather(a, is) => format!("gather({}, {})", atom(a), atom(is)),
            Exp::Size(a, d) => format!("size({}, {d})", atom(a)),
            Exp::Iota(n) => format!("iota({})", atom(n)),
            Exp::Replicate(shape, v) => format!("replicate([{}], {})", self.atoms(shape), atom(v)),
            Exp::Rearrange(perm, a) => format!("rearrange([{}], {})", shown(perm), atom(a)),
            Exp::Reshape { shape, from, array } => {
                format!("reshape([{}], {from}, {})", self.atoms(shape), atom(array))
            }
            Exp::Concat(arrays) => format!("concat({})", self.atoms(arrays)),
            Exp::Reverse(a) => format!("reverse({})", atom(a)),
            Exp::Rotate(a, k) => format!("rotate({}, {})", atom(a), atom(k)),
            _ => String::new(),
        }
    }
    fn slice(&self, s: &SliceDim) -> String {
        self.atoms(&[s.start, s.len, s.stride])
    }
    fn view(&mut self, acc: Atom, view: &View) {
        let acc = self.atom(acc);
        self.out += &match view {
            View::Index(ix) => format!("view_index({acc}, [{}])", self.atoms(ix)),
            View::Slice(s) => format!("view_slice({acc}, {})", self.slice(s)),
            View::Proj(i) => format!("view_proj({acc}, {i})"),
            View::Rearrange(perm) => format!("view_rearrange({acc}, [{}])", shown(perm)),
            View::Reshape { shape, from } => format!("view_reshape({acc}, [{}], {from})", self.atoms(shape)),
            View::Reverse => format!("view_reverse({acc})"),
            View::Rotate(k) => format!("view_rotate({acc}, {})", self.atom(*k)),
        };
    }

    fn derivative(
        &mut self,
        name: &str,
        lam: &Lam,
        (args, more, seeds): (&[Atom], &[Atom], Option<Atom>),
        algorithm: &Option<Symbol>,
    ) {
        self.out += name;
        if let Some(algorithm) = algorithm {
            self.out += &format!(" #[ad({})]", symbol(algorithm));
        }
        if let Some(seeds) = seeds {
            self.out += &format!(" seeds {}", self.atom(seeds));
        }
        self.out += &format!(" [{}] [{}] ", self.atoms(args), self.atoms(more));
        self.lam(lam);
    }

    fn loop_(&mut self, l: &Loop) {
        self.out += "loop";
        match l.attrs.tape {
            None => {}
            Some(TapePolicy::All) => self.out += " #[tape(all)]",
            Some(TapePolicy::Carry) => self.out += " #[tape(carry)]",
            Some(TapePolicy::Sqrt) => self.out += " #[tape(sqrt)]",
            Some(TapePolicy::Revolve(k)) => self.out += &format!(" #[tape(revolve({k}))]"),
            Some(TapePolicy::Limit(k)) => self.out += &format!(" #[tape(limit({k}))]"),
            Some(TapePolicy::Near { bytes, least }) => {
                self.out += &format!(" #[tape(near({bytes}, {least}))]");
            }
        }
        if let Some(k) = l.attrs.stripmine {
            self.out += &format!(" #[stripmine({k})]");
        }
        if let Some(b) = l.attrs.bound {
            self.out += &format!(" #[bound({b})]");
        }
        let params = commas(l.params.iter().map(|(v, a)| format!("{} = {}", self.binder(*v), self.atom(*a))));
        self.out += &format!(" ({params}) ");
        match &l.form {
            LoopForm::For { i, n } => self.out += &format!("for {} < {} ", self.binder(*i), self.atom(*n)),
            LoopForm::While(cond) => {
                self.out += "while ";
                self.body(cond);
                self.out.push(' ');
            }
        }
        if l.collect > 0 {
            self.out += &format!("collect {} ", l.collect);
        }
        self.body(&l.body);
    }

    fn soac(&mut self, soac: &Soac) {
        match soac {
            Soac::Map { width, lam, arrays } => {
                self.out += &format!("map {} [{}] ", self.atom(*width), self.atoms(arrays));
                self.lam(lam);
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                let name = if *commutative { "reduce_comm" } else { "reduce" };
                let head = format!("{name} {} [{}] ", self.atom(*width), self.atoms(neutral));
                self.out += &format!("{head}[{}] ", self.atoms(arrays));
                self.lam(lam);
            }
            Soac::Scan { width, lam, neutral, arrays } => {
                let head = format!("scan {} [{}] ", self.atom(*width), self.atoms(neutral));
                self.out += &format!("{head}[{}] ", self.atoms(arrays));
                self.lam(lam);
            }
            Soac::Fused { form, width, pre, lam, neutral, arrays } => {
                let name = match form {
                    FusedForm::Reduce { commutative: true } => "map_reduce_comm",
                    FusedForm::Reduce { commutative: false } => "map_reduce",
                    FusedForm::Scan => "map_scan",
                };
                let head = format!("{name} {} [{}] ", self.atom(*width), self.atoms(neutral));
                self.out += &format!("{head}[{}] ", self.atoms(arrays));
                self.lam(pre);
                self.out += " with ";
                self.lam(lam);
            }
            Soac::Hist { width, lam, neutral, dst, indices, values } => {
                let head = format!("hist {} [{}] ", self.atom(*width), self.atoms(neutral));
                let rest = format!("[{}] {} [{}] ", self.atoms(dst), self.atom(*indices), self.atoms(values));
                self.out += &head;
                self.out += &rest;
                self.lam(lam);
            }
            Soac::Scatter { width, dst, indices, values } => {
                self.call("scatter", &[*width, *dst, *indices, *values]);
            }
        }
    }
}
