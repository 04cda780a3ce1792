//! Primitives as instructions. Their meaning is the evaluation in the primitive table, which tests compare bit by bit.
//!
//! What IEEE 754 or integer arithmetic defines exactly is an instruction or an intrinsic; all other float functions are calls
//! of symbols that the run time binds to the functions of the table.

use super::{Emitter, Symbol, constant, scalar};
use pullback_prim::{Op, Prim, Scalar};

impl Emitter<'_> {
    /// The value of a primitive.
    pub(super) fn prim(&mut self, prim: Prim, args: &[String]) -> String {
        match (prim, args) {
            (Prim::Convert(from, to), [x]) => self.convert(from, to, x),
            (Prim::Op(op, s), [x]) => self.unary(op, s, x),
            (Prim::Op(op, s), [x, y]) => self.binary(op, s, x, y),
            (Prim::Op(_, s), [c, x, y]) => {
                let t = scalar(s);
                self.let_(format_args!("select i1 {c}, {t} {x}, {t} {y}"))
            }
            _ => panic!("a primitive has as many arguments as its row says"),
        }
    }

    fn unary(&mut self, op: Op, s: Scalar, x: &str) -> String {
        let t = scalar(s);
        match op {
            Op::Neg if s.is_float() => self.let_(format_args!("fneg {t} {x}")),
            Op::Neg => self.let_(format_args!("sub {t} 0, {x}")),
            Op::Abs if s.is_float() => self.intrinsic("fabs", s, &[x]),
            Op::Abs if s.is_signed() => {
                self.declare(&format!("declare {t} @llvm.abs.{t}({t}, i1)"));
                self.let_(format_args!("call {t} @llvm.abs.{t}({t} {x}, i1 false)"))
            }
            Op::Abs => x.to_string(),
            Op::Sgn => self.sign(s, x),
            Op::Sqrt => self.intrinsic("sqrt", s, &[x]),
            Op::Floor => self.intrinsic("floor", s, &[x]),
            Op::Ceil => self.intrinsic("ceil", s, &[x]),
            Op::Trunc => self.intrinsic("trunc", s, &[x]),
            Op::Round => self.intrinsic("roundeven", s, &[x]),
            Op::IsNan => self.let_(format_args!("fcmp uno {t} {x}, {x}")),
            Op::IsInf => {
                let size = self.intrinsic("fabs", s, &[x]);
                let infinity = constant(s.from_f64(f64::INFINITY));
                self.let_(format_args!("fcmp oeq {t} {size}, {infinity}"))
            }
            Op::Not => {
                let ones = if s == Scalar::Bool { "true" } else { "-1" };
                self.let_(format_args!("xor {t} {x}, {ones}"))
            }
            _ => self.symbol(op, s, &[x]),
        }
    }

    fn binary(&mut self, op: Op, s: Scalar, x: &str, y: &str) -> String {
        let t = scalar(s);
        let f = if s.is_float() { "f" } else { "" };
        match op {
            Op::Add => self.let_(format_args!("{f}add {t} {x}, {y}")),
            Op::Sub => self.let_(format_args!("{f}sub {t} {x}, {y}")),
            Op::Mul => self.let_(format_args!("{f}mul {t} {x}, {y}")),
            Op::Div if s.is_float() => self.let_(format_args!("fdiv {t} {x}, {y}")),
            Op::Mod if s.is_float() => self.symbol(op, s, &[x, y]),
            Op::Div | Op::Mod | Op::Quot | Op::Rem => self.division(op, s, x, y),
            Op::Pow if s.is_integer() => self.integer_power(s, x, y),
            Op::Min => self.extremum(s, x, y, "lt", "slt"),
            Op::Max => self.extremum(s, x, y, "gt", "sge"),
            Op::And => self.let_(format_args!("and {t} {x}, {y}")),
            Op::Or => self.let_(format_args!("or {t} {x}, {y}")),
            Op::Xor => self.let_(format_args!("xor {t} {x}, {y}")),
            Op::Shl | Op::Shr => self.shift(op, s, x, y),
            Op::Eq => self.compare(s, x, y, "oeq", "eq"),
            Op::Ne => self.compare(s, x, y, "une", "ne"),
            Op::Lt => self.compare(s, x, y, "olt", if s.is_signed() { "slt" } else { "ult" }),
            Op::Le => self.compare(s, x, y, "ole", if s.is_signed() { "sle" } else { "ule" }),
            _ => self.symbol(op, s, &[x, y]),
        }
    }

    fn compare(&mut self, s: Scalar, x: &str, y: &str, of_floats: &str, of_others: &str) -> String {
        let t = scalar(s);
        if s.is_float() {
            self.let_(format_args!("fcmp {of_floats} {t} {x}, {y}"))
        } else {
            self.let_(format_args!("icmp {of_others} {t} {x}, {y}"))
        }
    }

    /// -1, 0 or 1; NaN as it is.
    fn sign(&mut self, s: Scalar, x: &str) -> String {
        let t = scalar(s);
        if s.is_float() {
            let (zero, one) = (constant(s.zero()), constant(s.one()));
            let minus_one = constant(s.from_f64(-1.0));
            let is_nan = self.let_(format_args!("fcmp uno {t} {x}, {x}"));
            let is_above = self.let_(format_args!("fcmp ogt {t} {x}, {zero}"));
            let is_below = self.let_(format_args!("fcmp olt {t} {x}, {zero}"));
            let rest = self.let_(format_args!("select i1 {is_nan}, {t} {x}, {t} {zero}"));
            let rest = self.let_(format_args!("select i1 {is_below}, {t} {minus_one}, {t} {rest}"));
            return self.let_(format_args!("select i1 {is_above}, {t} {one}, {t} {rest}"));
        }
        let is_not_zero = self.let_(format_args!("icmp ne {t} {x}, 0"));
        let one = self.let_(format_args!("zext i1 {is_not_zero} to {t}"));
        if !s.is_signed() {
            return one;
        }
        let signs = self.let_(format_args!("ashr {t} {x}, {}", 8 * s.bytes() - 1));
        self.let_(format_args!("or {t} {signs}, {one}"))
    }

    /// `x` if `y` is NaN, if the comparison of floats holds, or at equal numbers if the comparison of the bits of `x` with 0
    /// holds; else `y`. Zeros are ordered by their signs.
    fn extremum(&mut self, s: Scalar, x: &str, y: &str, order: &str, sign: &str) -> String {
        let t = scalar(s);
        if !s.is_float() {
            let u = if s.is_signed() { "s" } else { "u" };
            let first = self.let_(format_args!("icmp {u}{order} {t} {x}, {y}"));
            return self.let_(format_args!("select i1 {first}, {t} {x}, {t} {y}"));
        }
        let bits = format!("i{}", 8 * s.bytes());
        let is_nan = self.let_(format_args!("fcmp uno {t} {y}, {y}"));
        let is_before = self.let_(format_args!("fcmp o{order} {t} {x}, {y}"));
        let is_equal = self.let_(format_args!("fcmp oeq {t} {x}, {y}"));
        let as_bits = self.let_(format_args!("bitcast {t} {x} to {bits}"));
        let has_sign = self.let_(format_args!("icmp {sign} {bits} {as_bits}, 0"));
        let at_tie = self.let_(format_args!("and i1 {is_equal}, {has_sign}"));
        let first = self.let_(format_args!("or i1 {is_nan}, {is_before}"));
        let first = self.let_(format_args!("or i1 {first}, {at_tie}"));
        self.let_(format_args!("select i1 {first}, {t} {x}, {t} {y}"))
    }

    /// Division of integers. The divisors 0 (never used) and -1 (of which the smallest number has no quotient) are replaced by
    /// 1, so that the instruction is defined everywhere; by -1 the quotient is then the negation.
    fn division(&mut self, op: Op, s: Scalar, x: &str, y: &str) -> String {
        let t = scalar(s);
        if !s.is_signed() {
            let is_zero = self.let_(format_args!("icmp eq {t} {y}, 0"));
            let divisor = self.let_(format_args!("select i1 {is_zero}, {t} 1, {t} {y}"));
            let of = if matches!(op, Op::Div | Op::Quot) { "udiv" } else { "urem" };
            return self.let_(format_args!("{of} {t} {x}, {divisor}"));
        }
        let above = self.let_(format_args!("add {t} {y}, 1"));
        let is_special = self.let_(format_args!("icmp ult {t} {above}, 2"));
        let divisor = self.let_(format_args!("select i1 {is_special}, {t} 1, {t} {y}"));
        let remainder = self.let_(format_args!("srem {t} {x}, {divisor}"));
        if op == Op::Rem {
            return remainder;
        }
        // Whether the remainder is not zero and its sign is not that of the divisor.
        let differ = self.let_(format_args!("xor {t} {remainder}, {divisor}"));
        let differ = self.let_(format_args!("icmp slt {t} {differ}, 0"));
        let is_inexact = self.let_(format_args!("icmp ne {t} {remainder}, 0"));
        let corrected = self.let_(format_args!("and i1 {is_inexact}, {differ}"));
        if op == Op::Mod {
            let added = self.let_(format_args!("select i1 {corrected}, {t} {divisor}, {t} 0"));
            return self.let_(format_args!("add {t} {remainder}, {added}"));
        }
        let quotient = self.let_(format_args!("sdiv {t} {x}, {divisor}"));
        let negated = self.let_(format_args!("sub {t} 0, {x}"));
        let quotient = self.let_(format_args!("select i1 {is_special}, {t} {negated}, {t} {quotient}"));
        if op == Op::Quot {
            return quotient;
        }
        let one = self.let_(format_args!("zext i1 {corrected} to {t}"));
        self.let_(format_args!("sub {t} {quotient}, {one}"))
    }

    /// The shift by the width or more is 0, or the sign in all bits. The instruction has no value there, which is not used.
    fn shift(&mut self, op: Op, s: Scalar, x: &str, y: &str) -> String {
        let (t, width) = (scalar(s), 8 * s.bytes());
        let fits = self.let_(format_args!("icmp ult {t} {y}, {width}"));
        if op == Op::Shr && s.is_signed() {
            let by = self.let_(format_args!("select i1 {fits}, {t} {y}, {t} {}", width - 1));
            return self.let_(format_args!("ashr {t} {x}, {by}"));
        }
        let shift = if op == Op::Shl { "shl" } else { "lshr" };
        let shifted = self.let_(format_args!("{shift} {t} {x}, {y}"));
        self.let_(format_args!("select i1 {fits}, {t} {shifted}, {t} 0"))
    }

    /// Repeated squaring, as a function of the module.
    fn integer_power(&mut self, s: Scalar, x: &str, y: &str) -> String {
        let t = scalar(s);
        // All bits of the exponent are looked at as those of an unsigned number: negative ones never come here.
        let text = format!(
            "define internal {t} @pb_power_{t}({t} %x, {t} %y) #0 {{\nentry:\n  br label %head\nhead:\n  \
             %base = phi {t} [ %x, %entry ], [ %square, %inside ]\n  \
             %exponent = phi {t} [ %y, %entry ], [ %half, %inside ]\n  \
             %product = phi {t} [ 1, %entry ], [ %next, %inside ]\n  \
             %more = icmp ne {t} %exponent, 0\n  br i1 %more, label %inside, label %done\ninside:\n  \
             %bit = and {t} %exponent, 1\n  %odd = icmp ne {t} %bit, 0\n  %times = mul {t} %product, %base\n  \
             %next = select i1 %odd, {t} %times, {t} %product\n  %square = mul {t} %base, %base\n  \
             %half = lshr {t} %exponent, 1\n  br label %head\ndone:\n  ret {t} %product\n}}"
        );
        self.declare(&text);
        self.let_(format_args!("call {t} @pb_power_{t}({t} {x}, {t} {y})"))
    }

    /// Each pair of types has its own instruction: going through a third type would round twice.
    fn convert(&mut self, from: Scalar, to: Scalar, x: &str) -> String {
        let (f, t) = (scalar(from), scalar(to));
        match (from.is_float(), to.is_float()) {
            _ if from == to => x.to_string(),
            (true, _) if to == Scalar::Bool => {
                let zero = constant(from.zero());
                self.let_(format_args!("fcmp une {f} {x}, {zero}"))
            }
            (false, _) if to == Scalar::Bool => self.let_(format_args!("icmp ne {f} {x}, 0")),
            (true, true) => {
                let change = if from == Scalar::F32 { "fpext" } else { "fptrunc" };
                self.let_(format_args!("{change} {f} {x} to {t}"))
            }
            (true, false) => {
                let name = format!(
                    "llvm.fpto{}i.sat.{t}.f{}",
                    if to.is_signed() { "s" } else { "u" },
                    8 * from.bytes()
                );
                self.declare(&format!("declare {t} @{name}({f})"));
                self.let_(format_args!("call {t} @{name}({f} {x})"))
            }
            (false, true) => {
                let change = if from.is_signed() { "sitofp" } else { "uitofp" };
                self.let_(format_args!("{change} {f} {x} to {t}"))
            }
            (false, false) => {
                let bits = |s: Scalar| if s == Scalar::Bool { 1 } else { 8 * s.bytes() };
                match bits(from).cmp(&bits(to)) {
                    std::cmp::Ordering::Equal => x.to_string(),
                    std::cmp::Ordering::Greater => self.let_(format_args!("trunc {f} {x} to {t}")),
                    std::cmp::Ordering::Less => {
                        let extend = if from.is_signed() { "sext" } else { "zext" };
                        self.let_(format_args!("{extend} {f} {x} to {t}"))
                    }
                }
            }
        }
    }

    /// An intrinsic of LLVM on floats.
    fn intrinsic(&mut self, name: &str, s: Scalar, args: &[&str]) -> String {
        let name = format!("llvm.{name}.f{}", 8 * s.bytes());
        self.call_of_floats(&name, s, args, "")
    }

    /// A function that the run time provides.
    fn symbol(&mut self, op: Op, s: Scalar, args: &[&str]) -> String {
        let name = format!("pb_{}_{}", op.name(), s.name());
        self.shared
            .symbols
            .entry(name.clone())
            .or_insert_with(|| Symbol { name: name.clone(), prim: Prim::Op(op, s) });
        self.call_of_floats(&name, s, args, " #2")
    }

    fn call_of_floats(&mut self, name: &str, s: Scalar, args: &[&str], attributes: &str) -> String {
        let t = scalar(s);
        let types = vec![t; args.len()].join(", ");
        self.declare(&format!("declare {t} @{name}({types}){attributes}"));
        let args = args.iter().map(|a| format!("{t} {a}")).collect::<Vec<_>>().join(", ");
        self.let_(format_args!("call {t} @{name}({args})"))
    }
}
