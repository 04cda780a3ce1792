//! Primitives as instructions, of scalars and of lanes alike. Their meaning is the evaluation in the primitive table, which
//! tests compare bit by bit.
//!
//! What IEEE 754 or integer arithmetic defines exactly is an instruction or an intrinsic. Other float functions are those of
//! `pullback-maths`, defined in the module (see `functions`); the few that are not there are calls of symbols that the run
//! time binds to the functions of the table.

use super::form::{Form, splat};
use super::{Emitter, Floats};
use pullback_kernel::Reg;
use pullback_prim::{Op, Prim, Scalar};

/// A product that is zero at some factors.
#[derive(Debug)]
pub(super) struct Stopped {
    /// Where it is not.
    goes_on: String,
    /// The plain product.
    product: String,
}

impl Emitter<'_> {
    /// The value of a primitive on so many lanes (1: on scalars).
    pub(super) fn prim(&mut self, prim: Prim, lanes: usize, args: &[String]) -> String {
        let form = |scalar: Scalar| Form { scalar, lanes };
        match (prim, args) {
            (Prim::Convert(from, to), [x]) => self.convert(form(from), form(to), x),
            (Prim::Op(op, s), [x]) => self.unary(op, form(s), x),
            (Prim::Op(op, s), [x, y]) => self.binary(op, form(s), x, y),
            (Prim::Op(_, s), [c, x, y]) => self.select(form(s), c, x, y),
            _ => panic!("a primitive has as many arguments as its row says"),
        }
    }

    /// `x` where the condition holds, else `y`.
    pub(super) fn select(&mut self, k: Form, condition: &str, x: &str, y: &str) -> String {
        let (t, truth) = (k.ty(), k.truth());
        self.let_(format_args!("select {truth} {condition}, {t} {x}, {t} {y}"))
    }

    /// What LLVM may do with arithmetic of floats.
    fn freedom(&self) -> &'static str {
        match self.options.floats {
            Floats::Contract if self.is_fold => " reassoc contract",
            Floats::Contract => " contract",
            Floats::Strict => "",
            Floats::Fast => " fast",
        }
    }

    fn unary(&mut self, op: Op, k: Form, x: &str) -> String {
        let t = k.ty();
        match op {
            Op::Neg if k.is_float() => self.let_(format_args!("fneg{} {t} {x}", self.freedom())),
            Op::Neg => self.let_(format_args!("sub {t} {}, {x}", k.number(0))),
            Op::Abs if k.is_float() => self.intrinsic("fabs", k, &[x]),
            Op::Abs if k.is_signed() => {
                let name = format!("llvm.abs.{}", k.suffix());
                self.declare(&format!("declare {t} @{name}({t}, i1)"));
                self.let_(format_args!("call {t} @{name}({t} {x}, i1 false)"))
            }
            Op::Abs => x.to_string(),
            Op::Sgn => self.sign(k, x),
            Op::Sqrt => self.intrinsic("sqrt", k, &[x]),
            Op::Floor => self.intrinsic("floor", k, &[x]),
            Op::Ceil => self.intrinsic("ceil", k, &[x]),
            Op::Trunc => self.intrinsic("trunc", k, &[x]),
            Op::Round => self.intrinsic("roundeven", k, &[x]),
            Op::IsNan => self.let_(format_args!("fcmp uno {t} {x}, {x}")),
            Op::IsInf => {
                let size = self.intrinsic("fabs", k, &[x]);
                let infinity = k.constant(k.scalar.from_f64(f64::INFINITY));
                self.let_(format_args!("fcmp oeq {t} {size}, {infinity}"))
            }
            Op::Not if k.scalar == Scalar::Bool => {
                self.let_(format_args!("xor {t} {x}, {}", splat(k.lanes, "i1", "true")))
            }
            Op::Not => self.let_(format_args!("xor {t} {x}, {}", k.number(-1))),
            _ => self.call_function(op, k, &[x]),
        }
    }

    fn binary(&mut self, op: Op, k: Form, x: &str, y: &str) -> String {
        let t = k.ty();
        let (f, free) = if k.is_float() { ("f", self.freedom()) } else { ("", "") };
        match op {
            Op::Add => self.let_(format_args!("{f}add{free} {t} {x}, {y}")),
            Op::Sub => self.let_(format_args!("{f}sub{free} {t} {x}, {y}")),
            Op::Mul => self.let_(format_args!("{f}mul{free} {t} {x}, {y}")),
            Op::Div if k.is_float() => self.let_(format_args!("fdiv{free} {t} {x}, {y}")),
            Op::Mod if k.is_float() => self.call_function(op, k, &[x, y]),
            Op::Div | Op::Mod | Op::Quot | Op::Rem => self.division(op, k, x, y),
            Op::Pow if k.scalar.is_integer() => self.integer_power(k, x, y),
            Op::Min | Op::MinFirst => self.extremum(k, x, y, "lt", "slt"),
            Op::Max | Op::MaxFirst => self.extremum(k, x, y, "gt", "sge"),
            Op::StrongMul => self.stopped_product(k, (x, y), &[x]),
            Op::MutualMul => self.stopped_product(k, (x, y), &[x, y]),
            Op::And => self.let_(format_args!("and {t} {x}, {y}")),
            Op::Or => self.let_(format_args!("or {t} {x}, {y}")),
            Op::Xor => self.let_(format_args!("xor {t} {x}, {y}")),
            Op::Shl | Op::Shr => self.shift(op, k, x, y),
            Op::Eq => self.compare(k, x, y, "oeq", "eq"),
            Op::Ne => self.compare(k, x, y, "une", "ne"),
            Op::Lt => self.compare(k, x, y, "olt", if k.is_signed() { "slt" } else { "ult" }),
            Op::Le => self.compare(k, x, y, "ole", if k.is_signed() { "sle" } else { "ule" }),
            _ => self.call_function(op, k, &[x, y]),
        }
    }

    /// The product of floats; zero where one of `stops` is.
    fn stopped_product(&mut self, k: Form, (x, y): (&str, &str), stops: &[&str]) -> String {
        let stopped = self.stopped(k, (x, y), (String::new(), stops));
        self.select(k, &stopped.goes_on, &stopped.product, &k.constant(k.scalar.zero()))
    }

    /// The parts of a product that is zero where one of `stops` is, and where something else, if it is not empty, does not go on.
    fn stopped(&mut self, k: Form, (x, y): (&str, &str), (mut goes_on, stops): (String, &[&str])) -> Stopped {
        let (t, free, zero) = (k.ty(), self.freedom(), k.constant(k.scalar.zero()));
        let product = self.let_(format_args!("fmul{free} {t} {x}, {y}"));
        for stop in stops {
            let here = self.let_(format_args!("fcmp une {t} {stop}, {zero}"));
            goes_on = match goes_on.as_str() {
                "" => here,
                before => self.let_(format_args!("and {} {before}, {here}", k.truth())),
            };
        }
        Stopped { goes_on, product }
    }

    /// The value of a primitive on lanes, which a register is set to. Where instructions take masks, a strong product that only a sum reads is
    /// one instruction with it: where the product stops, the sum is its other term. A zero may then have another sign.
    pub(super) fn prim_in_lanes(&mut self, to: Reg, prim: Prim, args: &[String]) -> String {
        let lanes = self.width();
        if self.speculation.is_some() || !self.is_masked() {
            return self.prim_in_line(prim, lanes, args);
        }
        match (prim, args) {
            (Prim::Op(op @ (Op::StrongMul | Op::MutualMul), scalar), [x, y]) => {
                let k = Form { scalar, lanes };
                let stopped = match self.stopped.remove(x) {
                    // Where the factor stops so does the product: its plain product is compared, without waiting for it.
                    Some(factor) if op == Op::StrongMul => {
                        let product = factor.product;
                        self.stopped(k, (&product, y), (factor.goes_on, &[&product]))
                    }
                    _ if op == Op::MutualMul => self.stopped(k, (x, y), (String::new(), &[x, y])),
                    _ => self.stopped(k, (x, y), (String::new(), &[x])),
                };
                let value = self.select(k, &stopped.goes_on, &stopped.product, &k.constant(scalar.zero()));
                if self.reads[to] == 1 {
                    self.stopped.insert(value.clone(), stopped);
                }
                value
            }
            (Prim::Op(op @ (Op::Add | Op::Sub), scalar), [x, y]) if scalar.is_float() => {
                let (rest, stopped) = match (self.stopped.remove(y), op) {
                    (Some(stopped), _) => (x, Some(stopped)),
                    (None, Op::Add) => (y, self.stopped.remove(x)),
                    (None, _) => (x, None),
                };
                let Some(Stopped { goes_on, product }) = stopped else {
                    return self.prim(prim, lanes, args);
                };
                let sum = self.prim(prim, lanes, &[rest.clone(), product]);
                self.select(Form { scalar, lanes }, &goes_on, &sum, rest)
            }
            _ => self.prim(prim, lanes, args),
        }
    }

    fn compare(&mut self, k: Form, x: &str, y: &str, of_floats: &str, of_others: &str) -> String {
        let t = k.ty();
        if k.is_float() {
            self.let_(format_args!("fcmp {of_floats} {t} {x}, {y}"))
        } else {
            self.let_(format_args!("icmp {of_others} {t} {x}, {y}"))
        }
    }

    /// -1, 0 or 1; NaN as it is.
    fn sign(&mut self, k: Form, x: &str) -> String {
        let (t, s) = (k.ty(), k.scalar);
        if k.is_float() {
            let (zero, one) = (k.constant(s.zero()), k.constant(s.one()));
            let minus_one = k.constant(s.from_f64(-1.0));
            let is_nan = self.let_(format_args!("fcmp uno {t} {x}, {x}"));
            let is_above = self.let_(format_args!("fcmp ogt {t} {x}, {zero}"));
            let is_below = self.let_(format_args!("fcmp olt {t} {x}, {zero}"));
            let rest = self.select(k, &is_nan, x, &zero);
            let rest = self.select(k, &is_below, &minus_one, &rest);
            return self.select(k, &is_above, &one, &rest);
        }
        let is_not_zero = self.let_(format_args!("icmp ne {t} {x}, {}", k.number(0)));
        let one = self.let_(format_args!("zext {} {is_not_zero} to {t}", k.truth()));
        if !k.is_signed() {
            return one;
        }
        let signs = self.let_(format_args!("ashr {t} {x}, {}", k.number(8 * s.bytes() as i64 - 1)));
        self.let_(format_args!("or {t} {signs}, {one}"))
    }

    /// `x` if `y` is NaN, if the comparison of floats holds, or at equal numbers if the comparison of the bits of `x` with 0
    /// holds; else `y`. Zeros are ordered by their signs.
    fn extremum(&mut self, k: Form, x: &str, y: &str, order: &str, sign: &str) -> String {
        let (t, truth) = (k.ty(), k.truth());
        if !k.is_float() {
            let u = if k.is_signed() { "s" } else { "u" };
            let first = self.let_(format_args!("icmp {u}{order} {t} {x}, {y}"));
            return self.select(k, &first, x, y);
        }
        let bits = k.bits();
        let zero = splat(k.lanes, &format!("i{}", 8 * k.scalar.bytes()), "0");
        let is_nan = self.let_(format_args!("fcmp uno {t} {y}, {y}"));
        let is_before = self.let_(format_args!("fcmp o{order} {t} {x}, {y}"));
        let is_equal = self.let_(format_args!("fcmp oeq {t} {x}, {y}"));
        let as_bits = self.let_(format_args!("bitcast {t} {x} to {bits}"));
        let has_sign = self.let_(format_args!("icmp {sign} {bits} {as_bits}, {zero}"));
        let at_tie = self.let_(format_args!("and {truth} {is_equal}, {has_sign}"));
        let first = self.let_(format_args!("or {truth} {is_nan}, {is_before}"));
        let first = self.let_(format_args!("or {truth} {first}, {at_tie}"));
        self.select(k, &first, x, y)
    }

    /// Division of integers. The divisors 0 (never used) and -1 (of which the smallest number has no quotient) are replaced by
    /// 1, so that the instruction is defined everywhere; by -1 the quotient is then the negation.
    fn division(&mut self, op: Op, k: Form, x: &str, y: &str) -> String {
        let (t, truth) = (k.ty(), k.truth());
        let (zero, one) = (k.number(0), k.number(1));
        // Lanes that are not active may hold nothing at all, which is no divisor either.
        let frozen = (k.lanes > 1).then(|| self.let_(format_args!("freeze {t} {y}")));
        let y = frozen.as_deref().unwrap_or(y);
        if !k.is_signed() {
            let is_zero = self.let_(format_args!("icmp eq {t} {y}, {zero}"));
            let divisor = self.select(k, &is_zero, &one, y);
            let of = if matches!(op, Op::Div | Op::Quot) { "udiv" } else { "urem" };
            return self.let_(format_args!("{of} {t} {x}, {divisor}"));
        }
        // A positive constant is neither of them.
        let is_plain = k.lanes == 1 && y.parse().is_ok_and(|y: i64| y > 0);
        let is_special = (!is_plain).then(|| {
            let above = self.let_(format_args!("add {t} {y}, {one}"));
            self.let_(format_args!("icmp ult {t} {above}, {}", k.number(2)))
        });
        let divisor = match &is_special {
            Some(is_special) => self.select(k, is_special, &one, y),
            None => y.to_string(),
        };
        let quotient = |to: &mut Self| {
            let quotient = to.let_(format_args!("sdiv {t} {x}, {divisor}"));
            let Some(is_special) = &is_special else { return quotient };
            let negated = to.let_(format_args!("sub {t} {zero}, {x}"));
            to.select(k, is_special, &negated, &quotient)
        };
        if op == Op::Quot {
            return quotient(self);
        }
        let remainder = self.let_(format_args!("srem {t} {x}, {divisor}"));
        if op == Op::Rem {
            return remainder;
        }
        // Whether the remainder is not zero and its sign is not that of the divisor.
        let differ = self.let_(format_args!("xor {t} {remainder}, {divisor}"));
        let differ = self.let_(format_args!("icmp slt {t} {differ}, {zero}"));
        let is_inexact = self.let_(format_args!("icmp ne {t} {remainder}, {zero}"));
        let corrected = self.let_(format_args!("and {truth} {is_inexact}, {differ}"));
        if op == Op::Mod {
            let added = self.select(k, &corrected, &divisor, &zero);
            return self.let_(format_args!("add {t} {remainder}, {added}"));
        }
        let quotient = quotient(self);
        let one = self.let_(format_args!("zext {truth} {corrected} to {t}"));
        self.let_(format_args!("sub {t} {quotient}, {one}"))
    }

    /// The shift by the width or more is 0, or the sign in all bits. The instruction has no value there, which is not used.
    fn shift(&mut self, op: Op, k: Form, x: &str, y: &str) -> String {
        let (t, width) = (k.ty(), 8 * k.scalar.bytes() as i64);
        let fits = self.let_(format_args!("icmp ult {t} {y}, {}", k.number(width)));
        if op == Op::Shr && k.is_signed() {
            let by = self.select(k, &fits, y, &k.number(width - 1));
            return self.let_(format_args!("ashr {t} {x}, {by}"));
        }
        let shift = if op == Op::Shl { "shl" } else { "lshr" };
        let shifted = self.let_(format_args!("{shift} {t} {x}, {y}"));
        self.select(k, &fits, &shifted, &k.number(0))
    }

    /// Repeated squaring, as a function of the module: as long as some lane needs it.
    fn integer_power(&mut self, k: Form, x: &str, y: &str) -> String {
        let (t, truth, lanes) = (k.ty(), k.truth(), k.lanes);
        let (zero, one) = (k.number(0), k.number(1));
        let name = format!("pb_power_{}", k.suffix());
        let any = if lanes == 1 {
            String::new()
        } else {
            format!("  %each = bitcast {truth} %more to i{lanes}\n  %any = icmp ne i{lanes} %each, 0\n")
        };
        let go_on = if lanes == 1 { "%more" } else { "%any" };
        // All bits of the exponent are looked at as those of an unsigned number: negative ones never come here.
        let text = format!(
            "define internal {t} @{name}({t} %x, {t} %y) #0 {{\nentry:\n  br label %head\nhead:\n  \
             %base = phi {t} [ %x, %entry ], [ %square, %inside ]\n  \
             %exponent = phi {t} [ %y, %entry ], [ %half, %inside ]\n  \
             %product = phi {t} [ {one}, %entry ], [ %next, %inside ]\n  \
             %more = icmp ne {t} %exponent, {zero}\n{any}  br i1 {go_on}, label %inside, label %done\ninside:\n  \
             %bit = and {t} %exponent, {one}\n  %odd = icmp ne {t} %bit, {zero}\n  %times = mul {t} %product, %base\n  \
             %next = select {truth} %odd, {t} %times, {t} %product\n  %square = mul {t} %base, %base\n  \
             %half = lshr {t} %exponent, {one}\n  br label %head\ndone:\n  ret {t} %product\n}}"
        );
        self.declare(&text);
        // The loop needs an exponent in lanes that hold nothing, too.
        let frozen = (lanes > 1).then(|| self.let_(format_args!("freeze {t} {y}")));
        let y = frozen.as_deref().unwrap_or(y);
        self.let_(format_args!("call {t} @{name}({t} {x}, {t} {y})"))
    }

    /// Each pair of types has its own instruction: going through a third type would round twice.
    fn convert(&mut self, from: Form, to: Form, x: &str) -> String {
        let (f, t) = (from.ty(), to.ty());
        match (from.is_float(), to.is_float()) {
            _ if from == to => x.to_string(),
            (true, _) if to.scalar == Scalar::Bool => {
                let zero = from.constant(from.scalar.zero());
                self.let_(format_args!("fcmp une {f} {x}, {zero}"))
            }
            (false, _) if to.scalar == Scalar::Bool => {
                self.let_(format_args!("icmp ne {f} {x}, {}", from.number(0)))
            }
            (true, true) => {
                let change = if from.scalar == Scalar::F32 { "fpext" } else { "fptrunc" };
                self.let_(format_args!("{change} {f} {x} to {t}"))
            }
            (true, false) => {
                let sign = if to.is_signed() { "s" } else { "u" };
                let name = format!("llvm.fpto{sign}i.sat.{}.{}", to.suffix(), from.suffix());
                self.declare(&format!("declare {t} @{name}({f})"));
                self.let_(format_args!("call {t} @{name}({f} {x})"))
            }
            (false, true) => {
                let change = if from.is_signed() { "sitofp" } else { "uitofp" };
                self.let_(format_args!("{change} {f} {x} to {t}"))
            }
            (false, false) => {
                let bits = |k: Form| if k.scalar == Scalar::Bool { 1 } else { 8 * k.scalar.bytes() };
                match bits(from).cmp(&bits(to)) {
                    std::cmp::Ordering::Equal => x.to_string(),
                    std::cmp::Ordering::Greater => self.let_(format_args!("trunc {f} {x} to {t}")),
                    std::cmp::Ordering::Less => {
                        // A signed integer in a wider unsigned type gets zeros in front.
                        let extend = if from.is_signed() && to.is_signed() { "sext" } else { "zext" };
                        self.let_(format_args!("{extend} {f} {x} to {t}"))
                    }
                }
            }
        }
    }

    /// An intrinsic of LLVM on floats.
    fn intrinsic(&mut self, name: &str, k: Form, args: &[&str]) -> String {
        let name = format!("llvm.{name}.{}", k.suffix());
        self.call_of_floats(&name, k, args, "")
    }

    /// A call of a function that is declared.
    pub(super) fn call_of_floats(&mut self, name: &str, k: Form, args: &[&str], attributes: &str) -> String {
        let t = k.ty();
        let types = vec![t.as_str(); args.len()].join(", ");
        self.declare(&format!("declare {t} @{name}({types}){attributes}"));
        let args = args.iter().map(|a| format!("{t} {a}")).collect::<Vec<_>>().join(", ");
        self.let_(format_args!("call {t} @{name}({args})"))
    }
}
