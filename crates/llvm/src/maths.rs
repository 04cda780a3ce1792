//! The functions of `pullback-maths` as definitions in LLVM IR.
//!
//! The emitter is one more implementation of `Lanes`: every operation becomes a line, its result a name, so that
//! compiled code runs the very algorithm of the portable functions and gives the same bits. No line has a fast-math flag.
//! `rarely` becomes a branch that is taken if any lane asks for it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use pullback_maths::{Function, Lanes, SingleLanes, apply, apply_single, scale_in_two_steps};

/// What instructions there are beyond those that LLVM chooses by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Machine {
    /// Nothing is assumed.
    #[default]
    Generic,
    /// x86 with AVX-512F and AVX-512DQ: tables in registers, and scaling by powers of two, if there are 8 lanes.
    Avx512,
}

/// The type of arguments and results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Precision {
    /// `float`
    Single,
    /// `double`
    Double,
}

/// For what a function is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Shape {
    /// The type of arguments and results.
    pub precision: Precision,
    /// The number of lanes; 1 is the scalar type and no vector.
    pub lanes: usize,
    /// The instructions.
    pub machine: Machine,
}

/// A definition, and the declarations and constants it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Its name, without `@`.
    pub name: String,
    /// The text, `define` and all.
    pub text: String,
    /// Lines of the module: declarations of intrinsics, and tables.
    pub needs: BTreeSet<String>,
}

/// The name of a function: `pb_exp_f64x8`.
pub fn name(function: Function, shape: Shape) -> String {
    let bits = match shape.precision {
        Precision::Single => 32,
        Precision::Double => 64,
    };
    format!("pb_{}_f{bits}x{}", function.facts().name, shape.lanes)
}

/// The definition of a function, with these attributes: it does not unwind, and neither reads nor writes memory that changes.
pub fn definition(function: Function, shape: Shape, attributes: &str) -> Definition {
    let emitter = Emitter::new(shape);
    let arity = function.facts().arity;
    let result = match shape.precision {
        Precision::Double => {
            let args: Vec<_> = (0..arity).map(Float::Argument).collect();
            apply(&emitter, function, &args).map(|r| emitter.float_text(r))
        }
        Precision::Single => {
            let args: Vec<_> = (0..arity).map(Single::Argument).collect();
            apply_single(&emitter, function, &args).map(|r| r.to_string())
        }
    };
    let result = result.expect("as many arguments as the arity");
    let ty = emitter.ty(match shape.precision {
        Precision::Single => "float",
        Precision::Double => "double",
    });
    let params: Vec<_> = (0..arity).map(|i| format!("{ty} %a{i}")).collect();
    let name = name(function, shape);
    let text = format!(
        "define internal {ty} @{name}({}) {attributes} {{\nentry:\n{}  ret {ty} {result}\n}}\n",
        params.join(", "),
        emitter.text.into_inner(),
    );
    Definition { name, text, needs: emitter.needs.into_inner() }
}

/// Definitions together with what they need, each line once.
pub fn module(definitions: &[Definition]) -> String {
    let needs: BTreeSet<_> = definitions.iter().flat_map(|d| &d.needs).collect();
    let mut text = String::new();
    for line in needs {
        text += line;
        text.push('\n');
    }
    for definition in definitions {
        text += &definition.text;
    }
    text
}

/// Lanes of `double`: a constant, or a name.
#[derive(Clone, Copy)]
enum Float {
    Constant(f64),
    Argument(usize),
    Name(usize),
}

/// Lanes of `i64`.
#[derive(Clone, Copy)]
enum Int {
    Constant(i64),
    Name(usize),
}

/// Lanes of `float`.
#[derive(Clone, Copy)]
enum Single {
    Argument(usize),
    Name(usize),
}

impl std::fmt::Display for Single {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Single::Argument(i) => write!(f, "%a{i}"),
            Single::Name(i) => write!(f, "%v{i}"),
        }
    }
}

/// Lanes of `i1`.
#[derive(Clone, Copy)]
struct Truth(usize);

/// The text so far.
struct Emitter {
    shape: Shape,
    text: RefCell<String>,
    names: Cell<usize>,
    needs: RefCell<BTreeSet<String>>,
    /// The label of the block that is being written.
    block: RefCell<String>,
}

impl Emitter {
    fn new(shape: Shape) -> Emitter {
        Emitter {
            shape,
            text: RefCell::default(),
            names: Cell::new(0),
            needs: RefCell::default(),
            block: RefCell::new("entry".to_owned()),
        }
    }

    /// The type of lanes of this type.
    fn ty(&self, scalar: &str) -> String {
        let lanes = self.shape.lanes;
        if lanes == 1 { scalar.to_owned() } else { format!("<{lanes} x {scalar}>") }
    }

    /// The same constant in all lanes.
    fn splat(&self, scalar: &str, constant: &str) -> String {
        let lanes = self.shape.lanes;
        if lanes == 1 {
            return constant.to_owned();
        }
        let one = format!("{scalar} {constant}");
        format!("<{}>", vec![one; lanes].join(", "))
    }

    fn float_text(&self, x: Float) -> String {
        match x {
            Float::Constant(x) => self.splat("double", &float_constant(x)),
            Float::Argument(i) => format!("%a{i}"),
            Float::Name(i) => format!("%v{i}"),
        }
    }

    fn int_text(&self, x: Int) -> String {
        match x {
            Int::Constant(x) => self.splat("i64", &x.to_string()),
            Int::Name(i) => format!("%v{i}"),
        }
    }

    fn raw(&self, line: &str) {
        let mut text = self.text.borrow_mut();
        text.push_str(line);
        text.push('\n');
    }

    /// A line that defines the next name.
    fn line(&self, value: &str) -> usize {
        let name = self.names.get();
        self.names.set(name + 1);
        self.raw(&format!("  %v{name} = {value}"));
        name
    }

    fn float_op(&self, op: &str, x: Float, y: Float) -> Float {
        let ty = self.ty("double");
        Float::Name(self.line(&format!("{op} {ty} {}, {}", self.float_text(x), self.float_text(y))))
    }

    fn int_op(&self, op: &str, x: Int, y: Int) -> Int {
        let ty = self.ty("i64");
        Int::Name(self.line(&format!("{op} {ty} {}, {}", self.int_text(x), self.int_text(y))))
    }

    fn truth_op(&self, op: &str, a: Truth, b: &str) -> Truth {
        let ty = self.ty("i1");
        Truth(self.line(&format!("{op} {ty} %v{}, {b}", a.0)))
    }

    fn compare(&self, how: &str, x: Float, y: Float) -> Truth {
        let ty = self.ty("double");
        Truth(self.line(&format!("fcmp {how} {ty} {}, {}", self.float_text(x), self.float_text(y))))
    }

    /// A call of `llvm.NAME` on lanes of `double`.
    fn intrinsic(&self, name: &str, args: &[Float]) -> Float {
        let lanes = self.shape.lanes;
        let suffix = if lanes == 1 { "f64".to_owned() } else { format!("v{lanes}f64") };
        let ty = self.ty("double");
        let types = vec![ty.as_str(); args.len()].join(", ");
        let texts: Vec<_> = args.iter().map(|x| format!("{ty} {}", self.float_text(*x))).collect();
        self.need(format!("declare {ty} @llvm.{name}.{suffix}({types})"));
        Float::Name(self.line(&format!("call {ty} @llvm.{name}.{suffix}({})", texts.join(", "))))
    }

    fn need(&self, line: String) {
        self.needs.borrow_mut().insert(line);
    }

    fn has_registers_of_8(&self) -> bool {
        self.shape.machine == Machine::Avx512 && self.shape.lanes == 8
    }

    /// Sixteen numbers are two registers, of which one instruction picks.
    fn table_in_registers(&self, table: &[f64], index: Int) -> Float {
        const NAME: &str = "@llvm.x86.avx512.vpermi2var.pd.512";
        self.need(format!("declare <8 x double> {NAME}(<8 x double>, <8 x i64>, <8 x double>)"));
        let half = |numbers: &[f64]| {
            let texts: Vec<_> = numbers.iter().map(|x| format!("double {}", float_constant(*x))).collect();
            format!("<8 x double> <{}>", texts.join(", "))
        };
        let (low, high) = (half(&table[..8]), half(&table[8..]));
        let index = self.int_text(index);
        Float::Name(self.line(&format!("call <8 x double> {NAME}({low}, <8 x i64> {index}, {high})")))
    }

    /// Every lane loads its number.
    fn table_in_memory(&self, table: &[f64], index: Int) -> Float {
        let numbers: Vec<_> = table.iter().map(|x| format!("double {}", float_constant(*x))).collect();
        let (length, numbers) = (table.len(), numbers.join(", "));
        let global = format!("@pb_table_{:016x}", hash(table));
        self.need(format!(
            "{global} = internal unnamed_addr constant [{length} x double] [{numbers}], align 64"
        ));
        let lowest = length.cast_signed() as i64 - 1;
        let index = self.int_text(self.int_and(index, Int::Constant(lowest)));
        let load = |index: &str| {
            let at = self.line(&format!("getelementptr inbounds double, ptr {global}, i64 {index}"));
            self.line(&format!("load double, ptr %v{at}, align 8"))
        };
        let lanes = self.shape.lanes;
        if lanes == 1 {
            return Float::Name(load(&index));
        }
        let mut all = "poison".to_owned();
        for lane in 0..lanes {
            let i = self.line(&format!("extractelement <{lanes} x i64> {index}, i64 {lane}"));
            let number = load(&format!("%v{i}"));
            let vector = format!("insertelement <{lanes} x double> {all}, double %v{number}, i64 {lane}");
            all = format!("%v{}", self.line(&vector));
        }
        Float::Name(self.names.get() - 1)
    }

    fn label(&self, label: &str) {
        self.raw(&format!("{label}:"));
        *self.block.borrow_mut() = label.to_owned();
    }
}

/// The constant by its bits, so that nothing is rounded.
fn float_constant(x: f64) -> String {
    format!("0x{:016X}", x.to_bits())
}

/// A name for the contents of a table (FNV-1a).
fn hash(table: &[f64]) -> u64 {
    table
        .iter()
        .flat_map(|x| x.to_bits().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Lanes for Emitter {
    type F = Float;
    type I = Int;
    type M = Truth;

    fn float(&self, x: f64) -> Float {
        Float::Constant(x)
    }
    fn int(&self, x: i64) -> Int {
        Int::Constant(x)
    }
    fn add(&self, x: Float, y: Float) -> Float {
        self.float_op("fadd", x, y)
    }
    fn sub(&self, x: Float, y: Float) -> Float {
        self.float_op("fsub", x, y)
    }
    fn mul(&self, x: Float, y: Float) -> Float {
        self.float_op("fmul", x, y)
    }
    fn div(&self, x: Float, y: Float) -> Float {
        self.float_op("fdiv", x, y)
    }
    fn fma(&self, x: Float, y: Float, z: Float) -> Float {
        self.intrinsic("fma", &[x, y, z])
    }
    fn sqrt(&self, x: Float) -> Float {
        self.intrinsic("sqrt", &[x])
    }
    fn round(&self, x: Float) -> Float {
        self.intrinsic("roundeven", &[x])
    }
    fn neg(&self, x: Float) -> Float {
        match x {
            Float::Constant(x) => Float::Constant(-x),
            _ => Float::Name(self.line(&format!("fneg {} {}", self.ty("double"), self.float_text(x)))),
        }
    }
    fn abs(&self, x: Float) -> Float {
        self.intrinsic("fabs", &[x])
    }
    fn lt(&self, x: Float, y: Float) -> Truth {
        self.compare("olt", x, y)
    }
    fn le(&self, x: Float, y: Float) -> Truth {
        self.compare("ole", x, y)
    }
    fn eq(&self, x: Float, y: Float) -> Truth {
        self.compare("oeq", x, y)
    }
    fn any_bit(&self, x: Int, mask: i64) -> Truth {
        let bits = self.int_and(x, Int::Constant(mask));
        let zero = self.splat("i64", "0");
        Truth(self.line(&format!("icmp ne {} {}, {zero}", self.ty("i64"), self.int_text(bits))))
    }
    fn both(&self, a: Truth, b: Truth) -> Truth {
        self.truth_op("and", a, &format!("%v{}", b.0))
    }
    fn either(&self, a: Truth, b: Truth) -> Truth {
        self.truth_op("or", a, &format!("%v{}", b.0))
    }
    fn not(&self, a: Truth) -> Truth {
        self.truth_op("xor", a, &self.splat("i1", "true"))
    }
    fn select(&self, m: Truth, x: Float, y: Float) -> Float {
        let (truth, ty) = (self.ty("i1"), self.ty("double"));
        let (x, y) = (self.float_text(x), self.float_text(y));
        Float::Name(self.line(&format!("select {truth} %v{}, {ty} {x}, {ty} {y}", m.0)))
    }
    fn bits(&self, x: Float) -> Int {
        match x {
            Float::Constant(x) => Int::Constant(x.to_bits().cast_signed()),
            _ => {
                let (from, to) = (self.ty("double"), self.ty("i64"));
                Int::Name(self.line(&format!("bitcast {from} {} to {to}", self.float_text(x))))
            }
        }
    }
    fn float_of_bits(&self, x: Int) -> Float {
        let (from, to) = (self.ty("i64"), self.ty("double"));
        Float::Name(self.line(&format!("bitcast {from} {} to {to}", self.int_text(x))))
    }
    fn int_add(&self, x: Int, y: Int) -> Int {
        self.int_op("add", x, y)
    }
    fn int_sub(&self, x: Int, y: Int) -> Int {
        self.int_op("sub", x, y)
    }
    fn int_and(&self, x: Int, y: Int) -> Int {
        self.int_op("and", x, y)
    }
    fn int_xor(&self, x: Int, y: Int) -> Int {
        self.int_op("xor", x, y)
    }
    fn shift_left(&self, x: Int, by: u32) -> Int {
        self.int_op("shl", x, Int::Constant(i64::from(by)))
    }
    fn shift_right(&self, x: Int, by: u32) -> Int {
        self.int_op("lshr", x, Int::Constant(i64::from(by)))
    }
    fn table(&self, table: &'static [f64], index: Int) -> Float {
        if self.has_registers_of_8() && table.len() == 16 {
            self.table_in_registers(table, index)
        } else {
            self.table_in_memory(table, index)
        }
    }

    fn scale(&self, x: Float, n: Int) -> Float {
        if !self.has_registers_of_8() {
            return scale_in_two_steps(self, x, n);
        }
        const NAME: &str = "@llvm.x86.avx512.mask.scalef.pd.512";
        let v = "<8 x double>";
        self.need(format!("declare {v} {NAME}({v}, {v}, {v}, i8, i32)"));
        let exponent = self.line(&format!("sitofp <8 x i64> {} to {v}", self.int_text(n)));
        // No lane is masked, and the rounding is the current one.
        let x = self.float_text(x);
        let call = format!("call {v} {NAME}({v} {x}, {v} %v{exponent}, {v} zeroinitializer, i8 -1, i32 4)");
        Float::Name(self.line(&call))
    }

    fn rarely<const N: usize>(
        &self,
        m: Truth,
        usual: [Float; N],
        unusual: impl FnOnce() -> [Float; N],
    ) -> [Float; N] {
        let lanes = self.shape.lanes;
        let any = if lanes == 1 {
            m.0
        } else {
            let packed = self.line(&format!("bitcast <{lanes} x i1> %v{} to i{lanes}", m.0));
            self.line(&format!("icmp ne i{lanes} %v{packed}, 0"))
        };
        let before = self.block.borrow().clone();
        self.raw(&format!("  br i1 %v{any}, label %rare{any}, label %after{any}"));
        self.label(&format!("rare{any}"));
        let others = unusual();
        let chosen: [Float; N] = std::array::from_fn(|i| self.select(m, others[i], usual[i]));
        let inside = self.block.borrow().clone();
        self.raw(&format!("  br label %after{any}"));
        self.label(&format!("after{any}"));
        let ty = self.ty("double");
        std::array::from_fn(|i| {
            let (x, y) = (self.float_text(usual[i]), self.float_text(chosen[i]));
            Float::Name(self.line(&format!("phi {ty} [ {x}, %{before} ], [ {y}, %{inside} ]")))
        })
    }
}

impl SingleLanes for Emitter {
    type S = Single;

    fn widen(&self, x: Single) -> Float {
        let (from, to) = (self.ty("float"), self.ty("double"));
        Float::Name(self.line(&format!("fpext {from} {x} to {to}")))
    }
    fn narrow(&self, x: Float) -> Single {
        let (from, to) = (self.ty("double"), self.ty("float"));
        Single::Name(self.line(&format!("fptrunc {from} {} to {to}", self.float_text(x))))
    }
}
