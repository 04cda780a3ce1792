//! Running entry points of example programs, reading number files, comparing.

use pullback_core::Value;
use pullback_driver::{Backend, EntryPoint, Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;
use std::path::{Path, PathBuf};

pub(crate) const TOLERANCE: f64 = 1e-10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn data_folder() -> PathBuf {
    root().join("../shared/data/adbench")
}

/// A program of the repository and one of its entry points.
pub(crate) struct Problem {
    pub(crate) session: Session,
    pub(crate) entry: EntryPoint,
}

impl Problem {
    /// Runs in the interpreter.
    pub(crate) fn new(file: &str, entry: &str) -> Problem {
        Problem::with(file, entry, Settings::default())
    }
    /// Runs as machine code where there is an LLVM, else on the vm.
    pub(crate) fn compiled(file: &str, entry: &str) -> Problem {
        Problem::with(file, entry, Settings { backend: Backend::Auto, ..Settings::default() })
    }
    fn with(file: &str, entry: &str, settings: Settings) -> Problem {
        let text = std::fs::read_to_string(root().join(file)).expect(file);
        let session = Session::compile(file, &text, settings);
        let session = session.unwrap_or_else(|failed| panic!("{}", failed.render()));
        let entry = session.entry(Some(entry)).unwrap_or_else(|d| panic!("{}", d.message));
        Problem { session, entry }
    }
    pub(crate) fn run(&self, args: &[Value]) -> Vec<Value> {
        let ready = self.session.primal(&self.entry).unwrap_or_else(|d| panic!("{}", d.message));
        ready.run(args, &Options::default()).unwrap_or_else(|e| panic!("{e}")).results
    }
    /// Value and gradient with respect to the parameters that `wrt` selects, one value per leaf.
    pub(crate) fn gradient(&self, wrt: &str, args: &[Value]) -> (f64, Vec<Value>) {
        let mut results = self.derivative(Kind::Vjp, wrt, args, &[Value::f64(1.0)]);
        let gradient = results.split_off(1);
        (results[0].floats()[0], gradient)
    }
    pub(crate) fn derivative(&self, kind: Kind, wrt: &str, args: &[Value], seeds: &[Value]) -> Vec<Value> {
        let selected =
            self.session.select(&self.entry, &Wrt::parse(wrt)).unwrap_or_else(|d| panic!("{}", d.message));
        let ready = self.session.derivative(&self.entry, kind, &selected, &mut |_, _| {});
        let ready = ready.unwrap_or_else(|d| panic!("{}", d.message));
        let all: Vec<Value> = args.iter().chain(seeds).cloned().collect();
        ready.run(&all, &Options::default()).unwrap_or_else(|e| panic!("{e}")).results
    }
}

/// The whitespace-separated numbers of a file of the data folder, taken one after the other.
pub(crate) struct Numbers {
    items: Vec<f64>,
    at: usize,
}

impl Numbers {
    pub(crate) fn read(file: &str) -> Numbers {
        let text = std::fs::read_to_string(data_folder().join(file)).expect(file);
        let items = text.split_ascii_whitespace().map(|w| w.parse().expect(w)).collect();
        Numbers { items, at: 0 }
    }
    pub(crate) fn take(&mut self, n: usize) -> Vec<f64> {
        self.at += n;
        self.items[self.at - n..self.at].to_vec()
    }
    pub(crate) fn one(&mut self) -> f64 {
        self.take(1)[0]
    }
    pub(crate) fn size(&mut self) -> usize {
        self.one() as usize
    }
}

/// A block of the reference file.
pub(crate) struct Reference {
    pub(crate) objective: Vec<f64>,
    pub(crate) norm: f64,
    pub(crate) sum: f64,
    pub(crate) first: Vec<f64>,
    pub(crate) last: Vec<f64>,
}

impl Reference {
    pub(crate) fn find(header: &str) -> Reference {
        let text =
            std::fs::read_to_string(data_folder().join("reference_values.txt")).expect("reference values");
        let mut lines = text.lines().skip_while(|l| !l.starts_with(&format!("## {header} "))).skip(1);
        let mut line = || lines.next().expect(header).to_string();
        let numbers = |l: &str| {
            l.split(|c: char| c.is_whitespace() || c == ',')
                .filter_map(|w| w.parse::<f64>().ok())
                .collect::<Vec<_>>()
        };
        let objective = numbers(&line());
        let summary = numbers(&line());
        Reference {
            objective,
            norm: summary[1],
            sum: summary[2],
            first: numbers(&line()),
            last: numbers(&line()),
        }
    }
    pub(crate) fn check_gradient(&self, gradient: &[f64]) {
        close("norm", norm(gradient), self.norm);
        let scale = self.norm.max(1.0);
        let sum: f64 = gradient.iter().sum();
        assert!(
            (sum - self.sum).abs() <= TOLERANCE * scale * (gradient.len() as f64).sqrt(),
            "sum {sum} {}",
            self.sum
        );
        entries("first", &gradient[..self.first.len()], &self.first, gradient);
        entries("last", &gradient[gradient.len() - self.last.len()..], &self.last, gradient);
    }
}

/// Entries agree relative to the largest entry of the whole gradient.
fn entries(what: &str, got: &[f64], want: &[f64], all: &[f64]) {
    let scale = all.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= TOLERANCE * scale, "{what}[{i}]: {g} is not {w}");
    }
}

pub(crate) fn norm(xs: &[f64]) -> f64 {
    xs.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Equal but for 1e-10 relative.
pub(crate) fn close(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= TOLERANCE * want.abs().max(1e-300), "{what}: {got} is not {want}");
}

pub(crate) fn all_close(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}: lengths");
    entries(what, got, want, want);
}
