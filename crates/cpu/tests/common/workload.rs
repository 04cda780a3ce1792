//! A workload of the test kit as machine code, and what it gives.

use pullback_core::{Program, Type, Value};
use pullback_cpu::{Executable, Options, Outcome};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::{FunctionId, Module, lower};
use pullback_testkit::workloads::Workload;
use std::path::Path;

/// A compiled workload with its inputs.
#[allow(dead_code, reason = "each user needs some of it")]
pub(crate) struct Ready {
    pub(crate) module: Module,
    pub(crate) executable: Executable,
    pub(crate) function: FunctionId,
    pub(crate) args: Vec<(Type, Value)>,
    pub(crate) results: Vec<Type>,
}

impl Ready {
    /// Compiles what gives value and derivatives, for one thread or `THREADS` in the environment. With a derivative, the last
    /// argument is its seed, one.
    pub(crate) fn new(workload: &Workload, sizes: &[usize]) -> Ready {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = std::fs::read_to_string(root.join(workload.file)).expect("the program is there");
        let session = Session::compile(workload.file, &text, Settings::default()).expect("it compiles");
        let entry = session.entry(Some(workload.entry)).expect("it has the entry point");
        let mut args = (workload.args)(sizes);
        let ready = match workload.wrt {
            None => session.primal(&entry),
            Some(wrt) => {
                args.push(Value::f64(1.0));
                let selected = session.select(&entry, &Wrt::parse(wrt)).expect("the parameters are there");
                session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {})
            }
        };
        let ready = ready.expect("it is differentiable");
        let program: &Program = &ready.program;
        let (module, function) = lower(program, ready.fun).expect("it is native");
        let f = &program.funs[ready.fun];
        let types = f.params.iter().map(|p| program.vars[*p].ty.clone());
        let args: Vec<(Type, Value)> = types.zip(args).collect();
        let given: Vec<(&Type, &Value)> = args.iter().map(|(ty, value)| (ty, value)).collect();
        let sizes = vec![(function, pullback_abi::sizes(&given))];
        let threads = std::env::var("THREADS").ok().and_then(|n| n.parse().ok());
        let threads = threads.unwrap_or(std::num::NonZeroUsize::MIN);
        let options = Options { sizes, threads, ..Options::default() };
        let executable = Executable::new(&module, &options).expect("LLVM compiles it");
        Ready { module, executable, function, args, results: f.results.clone() }
    }

    /// The arguments as a call takes them.
    fn arguments(&self) -> Vec<(&Type, &Value)> {
        self.args.iter().map(|(ty, value)| (ty, value)).collect()
    }

    /// One call.
    pub(crate) fn call(&self) -> Outcome {
        let mut session = self.executable.session();
        session.call(self.function, &self.arguments(), &self.results, None).expect("it runs")
    }
}

/// All floats, in order.
pub(crate) fn flat(values: &[Value]) -> Vec<f64> {
    let mut out = Vec::new();
    for value in values {
        match value {
            Value::Array(a) => out.extend(a.elements().flat_map(|v| flat(&[v]))),
            Value::Scalar(s) => out.push(s.as_f64()),
            Value::Tuple(fields) => out.extend(flat(fields)),
            Value::Sum(..) | Value::Acc(_) => {}
        }
    }
    out
}

/// The largest difference, relative to the largest number of the second; infinite if the lengths differ or one is not a number.
pub(crate) fn difference(found: &[f64], expected: &[f64]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let largest = expected.iter().fold(0.0f64, |m, x| m.max(x.abs())).max(f64::MIN_POSITIVE);
    let difference =
        |(x, y): (&f64, &f64)| if x.is_finite() { (x - y).abs() / largest } else { f64::INFINITY };
    found.iter().zip(expected).map(difference).fold(0.0, f64::max)
}
