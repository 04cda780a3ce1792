//! Functions such as `exp`: those of `pullback-maths` as definitions of the module, all others as calls.
//!
//! A definition is made for each form in which the module uses a function, so that scalar code and lanes run the same
//! algorithm and give the same bits. LLVM decides which calls become the body of the function. Where a function is not there
//! for lanes, it is called for one lane after the other.

use super::form::{Form, vector};
use super::{Emitter, Functions, Symbol};
use crate::maths::{self, Precision, Shape};
use pullback_maths::Function;
use pullback_prim::{Op, Prim, Scalar};

/// So many lanes are the argument of a function: more are several calls. Functions have many constants and values of their own.
const TOGETHER: usize = 8;

impl Emitter<'_> {
    /// A float function of the primitive table.
    pub(super) fn call_function(&mut self, op: Op, k: Form, args: &[&str]) -> String {
        match Function::of_op(op) {
            Some(function) if self.options.functions == Functions::Own => self.own(function, k, args),
            _ if k.lanes == 1 => self.symbol(op, k.scalar, args),
            _ => self.lane_by_lane(op, k, args),
        }
    }

    fn own(&mut self, function: Function, k: Form, args: &[&str]) -> String {
        if k.lanes > TOGETHER && (k.lanes / TOGETHER).is_power_of_two() && k.lanes.is_multiple_of(TOGETHER) {
            let part = Form { lanes: TOGETHER, ..k };
            let each = (0..k.lanes / TOGETHER).map(|p| {
                let args: Vec<String> =
                    args.iter().map(|a| self.part(a, k, p * TOGETHER, TOGETHER)).collect();
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                self.own(function, part, &args)
            });
            let each = each.collect();
            return self.joined(part, each);
        }
        let precision = if k.scalar == Scalar::F32 { Precision::Single } else { Precision::Double };
        let shape = Shape { precision, lanes: k.lanes, machine: self.options.machine };
        let name = maths::name(function, shape);
        if !self.shared.declarations.contains_key(&name) {
            let definition = maths::definition(function, shape, "#3");
            for need in &definition.needs {
                self.declare(need);
            }
            self.shared.declarations.insert(name.clone(), definition.text);
        }
        let t = k.ty();
        let args = args.iter().map(|a| format!("{t} {a}")).collect::<Vec<_>>().join(", ");
        self.let_(format_args!("call {t} @{name}({args})"))
    }

    /// Lanes one after the other, equally many of each; there are a power of two of them.
    fn joined(&mut self, k: Form, mut each: Vec<String>) -> String {
        let mut n = k.lanes;
        while each.len() > 1 {
            let t = Form { lanes: n, ..k }.ty();
            let which = vector("i32", 0..2 * n);
            let join = |pair: &[String]| {
                let two = format!("{t} {}, {t} {}", pair[0], pair[1]);
                self.let_(format_args!("shufflevector {two}, <{} x i32> {which}", 2 * n))
            };
            each = each.chunks_exact(2).map(join).collect();
            n *= 2;
        }
        each.swap_remove(0)
    }

    /// A function that the run time provides.
    fn symbol(&mut self, op: Op, s: Scalar, args: &[&str]) -> String {
        let name = format!("pb_{}_{}", op.name(), s.name());
        self.shared
            .symbols
            .entry(name.clone())
            .or_insert_with(|| Symbol { name: name.clone(), prim: Prim::Op(op, s) });
        self.call_of_floats(&name, Form { scalar: s, lanes: 1 }, args, " #2")
    }

    fn lane_by_lane(&mut self, op: Op, k: Form, args: &[&str]) -> String {
        let t = k.ty();
        let mut out = "poison".to_string();
        for lane in 0..k.lanes {
            let each: Vec<String> =
                args.iter().map(|a| self.let_(format_args!("extractelement {t} {a}, i64 {lane}"))).collect();
            let each: Vec<&str> = each.iter().map(String::as_str).collect();
            let value = self.symbol(op, k.scalar, &each);
            let one = super::scalar(k.scalar);
            out = self.let_(format_args!("insertelement {t} {out}, {one} {value}, i64 {lane}"));
        }
        out
    }
}
