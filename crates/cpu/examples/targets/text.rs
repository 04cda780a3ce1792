//! Lines of LLVM IR, one call each: what the kernels of this example are written with.
//!
//! Values are names (`%v7`) or constants. `lanes` numbers lie side by side in a vector; with one lane a vector is a
//! scalar. Variables are memory of the stack, which LLVM turns into registers.

use pullback_llvm::Llvm;
use pullback_llvm::maths::{self, Definition, Machine, Precision, Shape};
use pullback_maths::Function;
use std::collections::BTreeMap;

/// A name or a constant.
pub(crate) type V = String;

/// How a kernel is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Numbers side by side.
    pub(crate) lanes: usize,
    /// A product and a sum may become one instruction.
    pub(crate) contract: bool,
    /// Sums may be taken in any order.
    pub(crate) reassociate: bool,
    /// The bits of vectors that LLVM should use.
    pub(crate) width: usize,
}

/// Eight numbers, everything that is fast.
pub(crate) const WIDE: Style = Style { lanes: 8, contract: true, reassociate: true, width: 512 };

/// The text of a kernel so far.
pub(crate) struct Text {
    pub(crate) style: Style,
    body: String,
    variables: String,
    names: usize,
    functions: BTreeMap<String, Definition>,
    declarations: std::collections::BTreeSet<String>,
}

impl Text {
    pub(crate) fn new(style: Style) -> Text {
        Text {
            style,
            body: String::new(),
            variables: String::new(),
            names: 0,
            functions: BTreeMap::new(),
            declarations: Default::default(),
        }
    }

    /// The type of `lanes` numbers.
    pub(crate) fn vector(&self) -> String {
        self.lanes_of("double")
    }
    fn lanes_of(&self, scalar: &str) -> String {
        match self.style.lanes {
            1 => scalar.to_owned(),
            lanes => format!("<{lanes} x {scalar}>"),
        }
    }
    fn suffix(&self) -> String {
        match self.style.lanes {
            1 => "f64".to_owned(),
            lanes => format!("v{lanes}f64"),
        }
    }
    fn flags(&self) -> String {
        let mut flags = String::new();
        if self.style.contract {
            flags += "contract ";
        }
        if self.style.reassociate {
            flags += "reassoc nsz ";
        }
        flags
    }

    pub(crate) fn raw(&mut self, line: &str) {
        self.body += "  ";
        self.body += line;
        self.body.push('\n');
    }
    pub(crate) fn line(&mut self, value: &str) -> V {
        let name = format!("%v{}", self.names);
        self.names += 1;
        self.raw(&format!("{name} = {value}"));
        name
    }
    fn fresh(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    // Integers.
    pub(crate) fn iadd(&mut self, a: &str, b: &str) -> V {
        self.line(&format!("add nsw i64 {a}, {b}"))
    }
    pub(crate) fn isub(&mut self, a: &str, b: &str) -> V {
        self.line(&format!("sub nsw i64 {a}, {b}"))
    }
    pub(crate) fn imul(&mut self, a: &str, b: &str) -> V {
        self.line(&format!("mul nsw i64 {a}, {b}"))
    }
    pub(crate) fn idiv(&mut self, a: &str, b: &str) -> V {
        self.line(&format!("sdiv i64 {a}, {b}"))
    }

    // Lanes.
    fn binary(&mut self, op: &str, a: &str, b: &str) -> V {
        let line = format!("{op} {}{} {a}, {b}", self.flags(), self.vector());
        self.line(&line)
    }
    pub(crate) fn add(&mut self, a: &str, b: &str) -> V {
        self.binary("fadd", a, b)
    }
    pub(crate) fn sub(&mut self, a: &str, b: &str) -> V {
        self.binary("fsub", a, b)
    }
    pub(crate) fn mul(&mut self, a: &str, b: &str) -> V {
        self.binary("fmul", a, b)
    }
    pub(crate) fn div(&mut self, a: &str, b: &str) -> V {
        self.binary("fdiv", a, b)
    }
    /// `a * b + c`, in one step if contraction is on.
    pub(crate) fn mul_add(&mut self, a: &str, b: &str, c: &str) -> V {
        let product = self.mul(a, b);
        self.add(&product, c)
    }
    /// `c - a * b`
    pub(crate) fn mul_sub(&mut self, a: &str, b: &str, c: &str) -> V {
        let product = self.mul(a, b);
        self.sub(c, &product)
    }
    pub(crate) fn neg(&mut self, a: &str) -> V {
        let line = format!("fneg {} {a}", self.vector());
        self.line(&line)
    }
    pub(crate) fn max(&mut self, a: &str, b: &str) -> V {
        let ty = self.vector();
        let less = self.line(&format!("fcmp olt {ty} {a}, {b}"));
        self.select(&less, b, a)
    }
    pub(crate) fn compare(&mut self, how: &str, a: &str, b: &str) -> V {
        let ty = self.vector();
        self.line(&format!("fcmp {how} {ty} {a}, {b}"))
    }
    pub(crate) fn select(&mut self, mask: &str, a: &str, b: &str) -> V {
        let (truth, ty) = (self.lanes_of("i1"), self.vector());
        self.line(&format!("select {truth} {mask}, {ty} {a}, {ty} {b}"))
    }
    pub(crate) fn constant(&self, x: f64) -> V {
        let bits = format!("0x{:016X}", x.to_bits());
        match self.style.lanes {
            1 => bits,
            lanes => format!("<{}>", vec![format!("double {bits}"); lanes].join(", ")),
        }
    }
    /// The same number in all lanes.
    pub(crate) fn splat(&mut self, x: &str) -> V {
        let lanes = self.style.lanes;
        if lanes == 1 {
            return x.to_owned();
        }
        let one = self.line(&format!("insertelement <{lanes} x double> poison, double {x}, i64 0"));
        self.line(&format!(
            "shufflevector <{lanes} x double> {one}, <{lanes} x double> poison, <{lanes} x i32> zeroinitializer"
        ))
    }
    /// The sum over the lanes.
    pub(crate) fn sum(&mut self, v: &str) -> V {
        if self.style.lanes == 1 {
            return v.to_owned();
        }
        let (ty, suffix) = (self.vector(), self.suffix());
        self.declarations.insert(format!("declare double @llvm.vector.reduce.fadd.{suffix}(double, {ty})"));
        self.line(&format!("call reassoc double @llvm.vector.reduce.fadd.{suffix}(double -0.0, {ty} {v})"))
    }
    /// The largest of the lanes.
    pub(crate) fn largest(&mut self, v: &str) -> V {
        if self.style.lanes == 1 {
            return v.to_owned();
        }
        let (ty, suffix) = (self.vector(), self.suffix());
        self.declarations.insert(format!("declare double @llvm.vector.reduce.fmax.{suffix}({ty})"));
        self.line(&format!("call double @llvm.vector.reduce.fmax.{suffix}({ty} {v})"))
    }
    /// A function of the project's vector mathematics, as a call that is inlined; eight lanes at a time.
    pub(crate) fn call(&mut self, function: Function, x: &str) -> V {
        let lanes = self.style.lanes;
        let is_wide = lanes >= 8 && lanes.is_multiple_of(8);
        let here = Llvm::find().map_or(Machine::Generic, Llvm::instructions);
        let machine = if is_wide { here } else { Machine::Generic };
        let shape = Shape { precision: Precision::Double, lanes: lanes.min(8), machine };
        let name = maths::name(function, shape);
        self.functions.entry(name.clone()).or_insert_with(|| maths::definition(function, shape, ""));
        let ty = self.vector();
        if lanes <= 8 {
            return self.line(&format!("call {ty} @{name}({ty} {x})"));
        }
        let picks = |from: usize, count: usize| {
            let list: Vec<_> = (from..from + count).map(|i| format!("i32 {i}")).collect();
            format!("<{count} x i32> <{}>", list.join(", "))
        };
        let mut parts: Vec<V> = (0..lanes / 8)
            .map(|p| {
                let part = self.line(&format!("shufflevector {ty} {x}, {ty} poison, {}", picks(8 * p, 8)));
                self.line(&format!("call <8 x double> @{name}(<8 x double> {part})"))
            })
            .collect();
        let mut width = 8;
        while parts.len() > 1 {
            let pair = |c: &[V]| {
                self.line(&format!(
                    "shufflevector <{width} x double> {}, <{width} x double> {}, {}",
                    c[0],
                    c[1],
                    picks(0, 2 * width)
                ))
            };
            parts = parts.chunks(2).map(pair).collect();
            width *= 2;
        }
        parts.remove(0)
    }
    /// A function of LLVM on lanes.
    pub(crate) fn intrinsic(&mut self, name: &str, x: &str) -> V {
        let (ty, suffix) = (self.vector(), self.suffix());
        self.declarations.insert(format!("declare {ty} @llvm.{name}.{suffix}({ty})"));
        self.line(&format!("call {ty} @llvm.{name}.{suffix}({ty} {x})"))
    }
    pub(crate) fn declare(&mut self, line: String) {
        self.declarations.insert(line);
    }

    // Memory.
    pub(crate) fn at(&mut self, pointer: &str, index: &str) -> V {
        self.line(&format!("getelementptr inbounds double, ptr {pointer}, i64 {index}"))
    }
    pub(crate) fn load(&mut self, pointer: &str, index: &str) -> V {
        let at = self.at(pointer, index);
        self.line(&format!("load double, ptr {at}, align 8"))
    }
    pub(crate) fn store(&mut self, x: &str, pointer: &str, index: &str) {
        let at = self.at(pointer, index);
        self.raw(&format!("store double {x}, ptr {at}, align 8"));
    }
    /// Lanes from consecutive numbers; `index` counts numbers.
    pub(crate) fn load_lanes(&mut self, pointer: &str, index: &str) -> V {
        let (at, ty) = (self.at(pointer, index), self.vector());
        self.line(&format!("load {ty}, ptr {at}, align 8"))
    }
    pub(crate) fn store_lanes(&mut self, x: &str, pointer: &str, index: &str) {
        let (at, ty) = (self.at(pointer, index), self.vector());
        self.raw(&format!("store {ty} {x}, ptr {at}, align 8"));
    }
    /// Lane `w` from `pointer[index + w * stride]`.
    pub(crate) fn gather(&mut self, pointer: &str, index: &str, stride: &str) -> V {
        let lanes = self.style.lanes;
        if lanes == 1 {
            return self.load(pointer, index);
        }
        let steps = self.line(&format!("insertelement <{lanes} x i64> poison, i64 {stride}, i64 0"));
        let steps = self.line(&format!(
            "shufflevector <{lanes} x i64> {steps}, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
        ));
        let numbers: Vec<_> = (0..lanes).map(|w| format!("i64 {w}")).collect();
        let steps = self.line(&format!("mul <{lanes} x i64> {steps}, <{}>", numbers.join(", ")));
        let base = self.at(pointer, index);
        self.gather_at(&base, &steps)
    }
    /// Lane `w` from `pointer[indices[w]]`.
    pub(crate) fn gather_at(&mut self, pointer: &str, indices: &str) -> V {
        let lanes = self.style.lanes;
        let at = self.line(&format!("getelementptr double, ptr {pointer}, <{lanes} x i64> {indices}"));
        self.declarations.insert(format!(
            "declare <{lanes} x double> @llvm.masked.gather.v{lanes}f64.v{lanes}p0(<{lanes} x ptr>, i32, <{lanes} x i1>, <{lanes} x double>)"
        ));
        let all = format!("<{}>", vec!["i1 true"; lanes].join(", "));
        self.line(&format!(
            "call <{lanes} x double> @llvm.masked.gather.v{lanes}f64.v{lanes}p0(<{lanes} x ptr> {at}, i32 8, <{lanes} x i1> {all}, <{lanes} x double> poison)"
        ))
    }

    /// As `gather`, by scalar loads.
    pub(crate) fn strided(&mut self, pointer: &str, index: &str, stride: &str) -> V {
        let (lanes, vector) = (self.style.lanes, self.vector());
        if lanes == 1 {
            return self.load(pointer, index);
        }
        let mut all = "poison".to_owned();
        let mut at = index.to_owned();
        for w in 0..lanes {
            let x = self.load(pointer, &at);
            all = self.line(&format!("insertelement {vector} {all}, double {x}, i64 {w}"));
            at = self.iadd(&at, stride);
        }
        all
    }

    // Lanes of integers.
    pub(crate) fn integers(&self) -> String {
        self.lanes_of("i64")
    }
    pub(crate) fn integer(&self, x: i64) -> V {
        match self.style.lanes {
            1 => x.to_string(),
            lanes => format!("<{}>", vec![format!("i64 {x}"); lanes].join(", ")),
        }
    }
    pub(crate) fn splat_integer(&mut self, x: &str) -> V {
        let lanes = self.style.lanes;
        if lanes == 1 {
            return x.to_owned();
        }
        let one = self.line(&format!("insertelement <{lanes} x i64> poison, i64 {x}, i64 0"));
        self.line(&format!(
            "shufflevector <{lanes} x i64> {one}, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
        ))
    }
    pub(crate) fn select_integers(&mut self, mask: &str, a: &str, b: &str) -> V {
        let (truth, ty) = (self.lanes_of("i1"), self.integers());
        self.line(&format!("select {truth} {mask}, {ty} {a}, {ty} {b}"))
    }

    // Variables and control.
    pub(crate) fn variable(&mut self, ty: &str, value: &str) -> V {
        let name = format!("%x{}", self.fresh());
        self.variables += &format!("  {name} = alloca {ty}, align 64\n");
        self.raw(&format!("store {ty} {value}, ptr {name}, align 8"));
        name
    }
    pub(crate) fn get(&mut self, ty: &str, variable: &str) -> V {
        self.line(&format!("load {ty}, ptr {variable}, align 8"))
    }
    pub(crate) fn set(&mut self, ty: &str, variable: &str, value: &str) {
        self.raw(&format!("store {ty} {value}, ptr {variable}, align 8"));
    }
    /// `for i in (from..to).step_by(step)`; the body runs at least once only if `from < to`.
    pub(crate) fn each(&mut self, from: &str, to: &str, step: usize, body: impl FnOnce(&mut Text, &str)) {
        let id = self.fresh();
        let counter = self.variable("i64", from);
        self.raw(&format!("br label %test{id}"));
        self.body += &format!("test{id}:\n");
        let i = self.get("i64", &counter);
        let more = self.line(&format!("icmp slt i64 {i}, {to}"));
        self.raw(&format!("br i1 {more}, label %body{id}, label %end{id}"));
        self.body += &format!("body{id}:\n");
        body(self, &i);
        let next = self.iadd(&i, &step.to_string());
        self.set("i64", &counter, &next);
        self.raw(&format!("br label %test{id}"));
        self.body += &format!("end{id}:\n");
    }
    /// The module: `@kernel` with parameters that do not alias, and `@entry`, which takes them as words.
    pub(crate) fn module(self, pointers: &[&str], sizes: &[&str]) -> String {
        let Text { style, body, variables, functions, mut declarations, .. } = self;
        let definitions: Vec<Definition> = functions.into_values().collect();
        for definition in &definitions {
            for need in &definition.needs {
                declarations.remove(need);
            }
        }
        let mut text = maths::module(&definitions);
        for line in declarations {
            text += &line;
            text.push('\n');
        }
        let parameters: Vec<String> = pointers
            .iter()
            .map(|p| format!("ptr noalias %{p}"))
            .chain(sizes.iter().map(|s| format!("i64 %{s}")))
            .collect();
        text += &format!(
            "define internal void @kernel({}) noinline nounwind \"prefer-vector-width\"=\"{}\" {{\n{variables}{body}  ret void\n}}\n",
            parameters.join(", "),
            style.width
        );
        text += "define void @entry(ptr %words) nounwind {\n";
        let mut arguments = Vec::new();
        for (i, ty) in pointers.iter().map(|_| "ptr").chain(sizes.iter().map(|_| "i64")).enumerate() {
            text += &format!(
                "  %p{i} = getelementptr i64, ptr %words, i64 {i}\n  %a{i} = load {ty}, ptr %p{i}\n"
            );
            arguments.push(format!("{ty} %a{i}"));
        }
        text += &format!("  call void @kernel({})\n  ret void\n}}\n", arguments.join(", "));
        text
    }
}
