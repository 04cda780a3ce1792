//! Size of programs: statements per construct. For tests of structure and for reports.

use crate::ir::{Body, Exp, FusedForm, Program, Soac};
use crate::traverse::for_each_stm;
use std::collections::BTreeMap;
use std::fmt;

/// Counts of one program or body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Statements, nested ones included.
    pub statements: usize,
    /// Statements and operands: the size of the code.
    pub size: usize,
    /// Deepest nesting of bodies; the body itself is 1.
    pub depth: usize,
    /// Statements per construct, by its name in the text form; primitives by their own name.
    pub constructs: BTreeMap<String, usize>,
}

impl Metrics {
    /// How many statements of this construct there are.
    pub fn count(&self, construct: &str) -> usize {
        self.constructs.get(construct).copied().unwrap_or(0)
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} statements, size {}, depth {}", self.statements, self.size, self.depth)?;
        for (name, count) in &self.constructs {
            writeln!(f, "{count:8} {name}")?;
        }
        Ok(())
    }
}

/// Counts all functions of a program.
pub fn metrics(program: &Program) -> Metrics {
    let mut out = Metrics::default();
    for fun in program.funs.iter() {
        add(&mut out, &fun.body);
    }
    out
}

/// Counts a body.
pub fn body_metrics(body: &Body) -> Metrics {
    let mut out = Metrics::default();
    add(&mut out, body);
    out
}

fn add(out: &mut Metrics, body: &Body) {
    for_each_stm(body, &mut |stm| {
        out.statements += 1;
        out.size += 1;
        stm.exp.for_each_atom(|_| out.size += 1);
        *out.constructs.entry(construct(&stm.exp)).or_insert(0) += 1;
    });
    out.depth = out.depth.max(depth(body));
}

fn depth(body: &Body) -> usize {
    let inner = body.stms.iter().flat_map(|s| s.exp.bodies()).map(|s| depth(s.body)).max();
    1 + inner.unwrap_or(0)
}

/// The name of the construct of an expression, as in the text form.
pub fn construct(exp: &Exp) -> String {
    let name = match exp {
        Exp::Prim(prim, _) => return prim.name(),
        Exp::Atom(_) => "atom",
        Exp::Tuple(_) => "tuple",
        Exp::Proj(..) => "proj",
        Exp::Inject(..) => "inject",
        Exp::Match(..) => "match",
        Exp::If(..) => "if",
        Exp::Loop(_) => "loop",
        Exp::Call(..) => "call",
        Exp::ArrayLit(..) => "array",
        Exp::Index(..) => "index",
        Exp::Slice(..) => "slice",
        Exp::Update(..) => "update",
        Exp::UpdateSlice(..) => "update_slice",
        Exp::Gather(..) => "gather",
        Exp::Size(..) => "size",
        Exp::Iota(_) => "iota",
        Exp::Replicate(..) => "replicate",
        Exp::Rearrange(..) => "rearrange",
        Exp::Reshape { .. } => "reshape",
        Exp::Concat(_) => "concat",
        Exp::Reverse(_) => "reverse",
        Exp::Rotate(..) => "rotate",
        Exp::Soac(Soac::Map { .. }) => "map",
        Exp::Soac(Soac::Reduce { .. }) => "reduce",
        Exp::Soac(Soac::Scan { .. }) => "scan",
        Exp::Soac(Soac::Fused { form: FusedForm::Reduce { .. }, .. }) => "map_reduce",
        Exp::Soac(Soac::Fused { form: FusedForm::Scan, .. }) => "map_scan",
        Exp::Soac(Soac::Hist { .. }) => "hist",
        Exp::Soac(Soac::Scatter { .. }) => "scatter",
        Exp::WithAcc(..) => "withacc",
        Exp::AccView(..) => "view",
        Exp::AccAdd(..) => "add_to",
        Exp::Plus(..) => "plus",
        Exp::Vjp { .. } => "vjp",
        Exp::Jvp { .. } => "jvp",
        Exp::Custom { .. } => "custom",
        Exp::Marked(..) => "marked",
        Exp::StopGradient(_) => "stop_gradient",
        Exp::Par(_) => "par",
        Exp::Assert(..) => "assert",
        Exp::Check(..) => "check",
    };
    name.to_string()
}
