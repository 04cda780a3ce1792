//! The programs of the Accelerate thesis (Smeding, Utrecht University 2021, Appendix A) are compared with numbers of a prototype.
//! Programs with names that begin with `x_` are not of the thesis, and each is directed at one thing. Reverse mode is also compared with
//! forward mode at random inputs.
//!
//! A program is `programs/accelerate/NAME.fut`. The expected numbers are `accelerate_goldens.json` in `shared/data` beside the repository.
//! Without that file the first test says how many programs it leaves out. A program has whole numbers first. Then it has one or two
//! vectors, in which it is differentiated:
//!
//! | program | whole numbers before the vectors |
//! |---|---|
//! | `slice_2` | the two places of the row |
//! | `backpermute_1`, `backpermute_2` | the number of rows |
//! | `neural` | the sizes of the two hidden layers |
//!
//! A name with `_friendly` at its end is the program without that ending. The thesis gives it other inputs, where differences are exact enough.
//!
//! The folds of the thesis begin at any number. Reductions here begin at a neutral element, so the other number is applied to
//! the result. An operator without a neutral element gets flags.

use pullback_ad::accelerate::from_core::{ALGORITHM, VARIANTS};
use pullback_core::Value;
use pullback_driver::{Backend, EntryPoint, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options;
use pullback_llvm::Llvm;
use pullback_testkit::draws::draws;
use pullback_testkit::generate::Config;
use pullback_testkit::on_all_processors;
use pullback_testkit::properties::Property;
use pullback_testkit::rng::Rng;
use pullback_testkit::soak::soak_with;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Each of these algorithms for reverse derivatives must give the gradients.
pub(crate) const ALGORITHMS: [&str; 4] =
    ["fast_chad", "accelerate", "accelerate-store", "accelerate-recompute"];

/// Numbers may differ by this much, relative to the expected number or to 1, whichever is larger.
const TOLERANCE: f64 = 1e-9;

/// So many names have expected numbers.
const EXPECTED: usize = 90;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/accelerate")
}

/// Lists the names of all programs.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the programs");
    let name = |file: std::io::Result<std::fs::DirEntry>| {
        file.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = files.map(name).collect();
    names.sort();
    names
}

/// This is a compiled program with its entry point.
struct Program {
    name: String,
    session: Session,
    entry: EntryPoint,
    /// Marks the vectors, in which the program is differentiated.
    wanted: Vec<bool>,
}

impl Program {
    fn new(name: &str) -> Program {
        let text = std::fs::read_to_string(folder().join(format!("{name}.fut"))).expect(name);
        let session = Session::compile(name, &text, Settings::default());
        let session = session.unwrap_or_else(|e| panic!("{name}: {}", e.render()));
        let entry = session.entry(Some("main")).unwrap_or_else(|e| panic!("{name}: {}", e.message));
        let wanted = session.select(&entry, &Wrt::default()).expect("vectors");
        Program { name: name.into(), session, entry, wanted }
    }
    /// Counts the whole numbers and the vectors that it takes.
    fn counts(&self) -> (usize, usize) {
        let vectors = self.wanted.iter().filter(|w| **w).count();
        (self.wanted.len() - vectors, vectors)
    }
    fn derivative(&mut self, kind: Kind, algorithm: Option<&str>, backend: Backend) -> Ready {
        self.session.settings.choice.reverse = algorithm.map(Into::into);
        self.session.settings.backend = backend;
        let made = self.session.derivative(&self.entry, kind, &self.wanted, &mut |_, _| {});
        made.unwrap_or_else(|e| panic!("{}, {algorithm:?}, {backend:?}: {}", self.name, e.message))
    }
    fn reverse(&mut self, algorithm: &str, backend: Backend) -> Ready {
        self.derivative(Kind::Vjp, Some(algorithm), backend)
    }
    fn forward(&mut self) -> Ready {
        self.derivative(Kind::Jvp, None, Backend::Interp)
    }
}

/// A program runs on these inputs.
#[derive(Clone, Debug)]
struct Inputs {
    ints: Vec<i64>,
    vectors: Vec<Vec<f64>>,
}

impl Inputs {
    fn values(&self) -> Vec<Value> {
        let ints = self.ints.iter().map(|k| Value::i64(*k));
        ints.chain(self.vectors.iter().map(|v| Value::f64s(v))).collect()
    }
}

/// The gradient has one number per element of the vectors.
#[derive(Clone, Debug)]
struct Derivative {
    value: f64,
    gradient: Vec<f64>,
}

impl Derivative {
    fn is_near(&self, expected: &Derivative) -> bool {
        self.gradient.len() == expected.gradient.len()
            && is_near(self.value, expected.value)
            && self.gradient.iter().zip(&expected.gradient).all(|(x, y)| is_near(*x, *y))
    }
}

fn is_near(x: f64, expected: f64) -> bool {
    x == expected
        || x.is_nan() && expected.is_nan()
        || (x - expected).abs() <= TOLERANCE * expected.abs().max(1.0)
}

/// Runs a program and lists the floats of its results.
fn floats(ready: &Ready, args: &[Value]) -> Vec<f64> {
    let out = ready.run(args, &Options::default()).unwrap_or_else(|e| panic!("{args:?}: {e}"));
    out.results.iter().flat_map(Value::floats).collect()
}

/// Runs the reverse derivative once.
fn reverse(ready: &Ready, inputs: &Inputs) -> Derivative {
    let mut args = inputs.values();
    args.push(Value::f64(1.0));
    let mut gradient = floats(ready, &args);
    Derivative { value: gradient.remove(0), gradient }
}

/// Runs the forward derivative once for each element of the vectors, whose tangent is 1 there, and once more for the value.
fn forward(ready: &Ready, inputs: &Inputs) -> Derivative {
    let mut tangents: Vec<Vec<f64>> = inputs.vectors.iter().map(|v| vec![0.0; v.len()]).collect();
    let run = |tangents: &[Vec<f64>]| {
        let mut args = inputs.values();
        args.extend(tangents.iter().map(|t| Value::f64s(t)));
        floats(ready, &args)
    };
    let mut gradient = Vec::new();
    for k in 0..tangents.len() {
        for i in 0..tangents[k].len() {
            tangents[k][i] = 1.0;
            gradient.push(run(&tangents)[1]);
            tangents[k][i] = 0.0;
        }
    }
    Derivative { value: run(&tangents)[0], gradient }
}

/// Reads the expected numbers. NaN becomes null, which JSON has.
fn goldens() -> Option<Json> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/accelerate_goldens.json");
    let text = std::fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text.replace("NaN", "null")).expect("JSON"))
}

fn number(json: &Json) -> f64 {
    json.as_f64().unwrap_or(f64::NAN)
}
fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().expect("numbers").iter().map(number).collect()
}

/// Gives the inputs of a program for the first vector of this name, and the derivative to expect.
fn case(goldens: &Json, name: &str, input: &str) -> (Inputs, Derivative) {
    let (base, inputs) = (base(name), &goldens["inputs"]);
    let expected = &goldens["tests"][name][input];
    let gradients: Vec<Vec<f64>> =
        expected["grad"].as_array().expect("gradients").iter().map(numbers).collect();
    let ints = inputs["ints"].get(base).map_or(Vec::new(), numbers);
    let names = [if input == "a" { "a" } else { "neg_a" }, "b"];
    let vectors = names.iter().take(gradients.len()).map(|v| numbers(&inputs[*v])).collect();
    let inputs = Inputs { ints: ints.iter().map(|k| *k as i64).collect(), vectors };
    (inputs, Derivative { value: number(&expected["value"]), gradient: gradients.concat() })
}

/// Gives the program that a name stands for.
fn base(name: &str) -> &str {
    name.strip_suffix("_friendly").unwrap_or(name)
}

#[test]
fn programs_have_the_values_and_gradients_of_the_prototype() {
    let Some(goldens) = goldens() else {
        return eprintln!("skipped: no expected numbers are found, {EXPECTED} programs are not compared");
    };
    let tests = goldens["tests"].as_object().expect("tests");
    assert_eq!(tests.len(), EXPECTED);
    let bases: BTreeSet<&str> = tests.keys().map(|name| base(name)).collect();
    let programs = names();
    assert!(programs.iter().eq(bases), "the programs are not those with expected numbers: {programs:?}");
    let wrong: Vec<String> = on_all_processors(programs, |name| differences(&goldens, &name)).concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lists the differences between a program and the expected numbers.
fn differences(goldens: &Json, name: &str) -> Vec<String> {
    let mut program = Program::new(name);
    let by_forward = program.forward();
    let mut by_reverse: Vec<(String, Ready)> = Vec::new();
    for algorithm in ALGORITHMS {
        // Variants that store or compute again differ in core only.
        let is_variant = algorithm.starts_with("accelerate-");
        for backend in backends().into_iter().filter(|b| !is_variant || *b == Backend::Interp) {
            by_reverse.push((format!("{algorithm}, {backend:?}"), program.reverse(algorithm, backend)));
        }
    }
    let friendly = format!("{name}_friendly");
    let names = [name, &friendly].into_iter().filter(|name| goldens["tests"].get(name).is_some());
    let mut wrong = Vec::new();
    for (name, input) in names.flat_map(|name| [(name, "a"), (name, "-a")]) {
        let (inputs, expected) = case(goldens, name, input);
        let mut compare = |way: &str, found: Derivative| {
            if !found.is_near(&expected) {
                wrong.push(format!("{name} at {input}, {way}: {found:?}, not {expected:?}"));
            }
        };
        compare("forward", forward(&by_forward, &inputs));
        for (way, ready) in &by_reverse {
            compare(way, reverse(ready, &inputs));
        }
    }
    wrong
}

/// Lists the executors of this machine.
pub(crate) fn backends() -> Vec<Backend> {
    let mut backends = vec![Backend::Interp, Backend::Vm];
    backends.extend(Llvm::find().is_ok().then_some(Backend::Llvm));
    backends
}

/// Gives the least lengths of the vectors of a program.
fn least(name: &str) -> [usize; 2] {
    match name {
        "aindex_map_1" | "x_nested_cond_index" | "x_fold_2d" => [3, 0],
        "x_backperm_dup" => [5, 0],
        "neural" => [1, 4],
        "tuple2" | "tuple3" => [1, 1],
        "acond_cond1" | "aindex_only" | "backpermute_1" | "backpermute_2" | "fold1_1" | "fold1_2"
        | "logsumexp1" | "logsumexp2" | "logsumexp3" | "slice_2" | "x_fold1_2d" | "x_fold1_first"
        | "x_index_arg_acond" | "x_slice_all" => [1, 0],
        _ => [0, 0],
    }
}

/// Gives the least and the largest of the whole numbers of a program.
fn span(name: &str) -> [usize; 2] {
    match name {
        "slice_2" => [0, 61],
        "backpermute_1" | "backpermute_2" => [5, 15],
        _ => [1, 15],
    }
}

/// Draws inputs for which a program is defined.
fn draw(program: &Program, rng: &mut Rng) -> Inputs {
    let (ints, vectors) = program.counts();
    let [low, high] = span(&program.name);
    let ints = (0..ints).map(|_| rng.range(low, high) as i64).collect();
    let vectors = least(&program.name).into_iter().take(vectors).map(|least| {
        let length = rng.range(least, 20);
        let is_even = matches!(program.name.as_str(), "reshape_1" | "reshape_2");
        (0..if is_even { length / 2 * 2 } else { length }).map(|_| 10.0 * rng.signed()).collect()
    });
    Inputs { ints, vectors: vectors.collect() }
}

#[test]
fn reverse_mode_is_forward_mode_at_random_inputs() {
    let seeds: Vec<u64> = draws("Accelerate", (8, 8), 0).collect();
    let wrong: Vec<String> = on_all_processors(names(), |name| {
        let mut program = Program::new(&name);
        let by_forward = program.forward();
        let by_reverse = ALGORITHMS.map(|a| (a, program.reverse(a, Backend::Interp)));
        let mut wrong = Vec::new();
        for &seed in &seeds {
            let inputs = draw(&program, &mut Rng::new(seed));
            let expected = forward(&by_forward, &inputs);
            for (algorithm, ready) in &by_reverse {
                let found = reverse(ready, &inputs);
                if !found.is_near(&expected) {
                    wrong.push(format!("{name}, {algorithm}, {inputs:?}: {found:?}, not {expected:?}"));
                }
            }
        }
        wrong
    })
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Random functions of core: the algorithm is right where it does not refuse one, in all variants.
#[test]
fn reverse_ad_for_accelerate_is_right_or_refuses() {
    for (k, (algorithm, _)) in VARIANTS.into_iter().enumerate() {
        // Usually two of five are taken.
        let seeds = draws(algorithm.id, if k == 0 { (120, 500) } else { (30, 120) }, 3);
        let report =
            soak_with(seeds, &Config::accelerate(), &Property::OF_A_TRANSLATION, &algorithm.transform);
        println!("{}", report.render());
        assert!(report.failures.is_empty(), "{}", report.render());
        let held = report.holds(Property::Adjoint) as f64;
        assert!(held >= 0.1 * report.programs as f64, "too many are refused:\n{}", report.render());
    }
}

/// As machine code and on the vm the gradients are those of the interpreter, where they are those of Fast CHAD.
#[test]
fn gradients_by_accelerate_are_native() {
    // Usually 0.4 of the programs are taken, each as it is and optimised.
    crate::bulk::gradients_are_native(ALGORITHM, (30, 400), 0.4);
}
