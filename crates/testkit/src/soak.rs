//! Many random programs, all properties, on several threads, with statistics.
//!
//! Guarantees: the report depends on the seeds only, not on the number of threads.

use crate::generate::{Config, Features, Generated, generate};
use crate::on_all_processors;
use crate::properties::{Case, Property, Reverse, Skip, Subject, Verdict};
use pullback_core::Value;
use std::collections::BTreeMap;

/// A property that failed on a program.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The program's seed.
    pub seed: u64,
    /// The property.
    pub property: Property,
    /// What happened.
    pub text: String,
}

/// What came of a number of random programs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of programs.
    pub programs: u64,
    /// How often each property held.
    pub held: BTreeMap<Property, u64>,
    /// How often each property was skipped, by reason.
    pub skipped: BTreeMap<(Property, Skip), u64>,
    /// Every failure, in order of seeds.
    pub failures: Vec<Failure>,
    /// Number of programs that contain each feature at least once.
    pub features: BTreeMap<&'static str, u64>,
    /// Programs one of whose float arguments had a zero gradient.
    pub zero_gradients: u64,
    /// Programs for which the gradient was looked at.
    pub gradients: u64,
    /// Programs with a construct that the algorithm does not cover.
    pub unsupported: u64,
}

impl Report {
    /// The share of programs with a feature.
    pub fn share(&self, feature: &str) -> f64 {
        self.features.get(feature).copied().unwrap_or(0) as f64 / self.programs.max(1) as f64
    }
    /// How often a property held.
    pub fn holds(&self, property: Property) -> u64 {
        self.held.get(&property).copied().unwrap_or(0)
    }
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.programs += 1;
        for (property, verdict) in &outcome.verdicts {
            match verdict {
                Verdict::Holds => *self.held.entry(*property).or_default() += 1,
                Verdict::Skipped(skip) => {
                    *self.skipped.entry((*property, skip.clone())).or_default() += 1;
                }
                Verdict::Fails(text) => {
                    self.failures.push(Failure { seed, property: *property, text: text.clone() });
                }
            }
        }
        let unsupported = |v: &Verdict| matches!(v, Verdict::Skipped(Skip::Unsupported(_)));
        self.unsupported += u64::from(outcome.verdicts.iter().any(|(_, v)| unsupported(v)));
        for name in &outcome.features {
            *self.features.entry(name).or_default() += 1;
        }
        if let Some(zero) = outcome.zero_gradient {
            self.gradients += 1;
            self.zero_gradients += u64::from(zero);
        }
    }
    /// The report as text.
    pub fn render(&self) -> String {
        let mut out = format!("{} random programs\n", self.programs);
        out += "property        held  skipped (reasons)  failed\n";
        for property in Property::ALL {
            let skips: Vec<String> = self
                .skipped
                .iter()
                .filter(|((p, _), _)| *p == property)
                .map(|((_, skip), n)| format!("{skip:?}: {n}"))
                .collect();
            let failed = self.failures.iter().filter(|f| f.property == property).count();
            let held = self.holds(property);
            out += &format!("{:<14} {held:>6}  ({})  {failed}\n", property.name(), skips.join(", "));
        }
        out += "share of programs with:";
        for (name, n) in &self.features {
            out += &format!(" {name} {:.1} %,", 100.0 * *n as f64 / self.programs.max(1) as f64);
        }
        out += &format!(
            "\nan argument with zero gradient: {} of {}; unsupported: {}\n",
            self.zero_gradients, self.gradients, self.unsupported
        );
        for f in self.failures.iter().take(20) {
            out += &format!("seed {}: {}: {}\n", f.seed, f.property.name(), f.text);
        }
        out
    }
}

/// What came of one program.
struct Outcome {
    verdicts: Vec<(Property, Verdict)>,
    features: Vec<&'static str>,
    zero_gradient: Option<bool>,
}

/// The programs of some seeds, all properties, under the production algorithm, on all processors.
pub fn soak(seeds: impl IntoIterator<Item = u64, IntoIter: Send>) -> Report {
    soak_with(seeds, &Config::default(), &Property::ALL, &pullback_ad::fast_chad::vjp)
}

/// The programs of some seeds with the given properties and algorithm.
pub fn soak_with(
    seeds: impl IntoIterator<Item = u64, IntoIter: Send>,
    config: &Config,
    properties: &[Property],
    reverse: Reverse<'_>,
) -> Report {
    let mut report = Report::default();
    let examined = |seed| (seed, examine(seed, config, properties, reverse));
    for (seed, outcome) in on_all_processors(seeds, examined) {
        report.add(seed, &outcome);
    }
    report
}

fn examine(seed: u64, config: &Config, properties: &[Property], reverse: Reverse<'_>) -> Outcome {
    let generated = generate(seed, config);
    let case = Case::of(&generated);
    let subject = Subject::new(&case, reverse);
    let verdicts = properties.iter().map(|p| (*p, guarded(*p, &subject))).collect();
    let zero_gradient = if generated.ties || generated.sizes.m == 0 { None } else { zero_gradient(&case) };
    Outcome { verdicts, features: feature_names(&generated), zero_gradient }
}

/// A panic is a failure of the program under test, with its message.
fn guarded(property: Property, of: &Subject<'_>) -> Verdict {
    let run = std::panic::AssertUnwindSafe(|| property.check_on(of));
    std::panic::catch_unwind(run).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_string()))
            .unwrap_or_default();
        Verdict::Fails(format!("panic: {text}"))
    })
}

/// Whether some non-empty float argument has no influence on the results, by the oracle.
fn zero_gradient(case: &Case) -> Option<bool> {
    use pullback_interp::core::{Compiled, Options};
    use pullback_interp::dual::{count_floats, directional};
    let code = Compiled::new(&case.program);
    let total = count_floats(&case.args);
    let mut at = 0;
    for value in &case.args {
        let n = value.floats().len();
        if n > 0 && !matches!(value, Value::Sum(..)) {
            let mut u = vec![0.0; total];
            // A direction without symmetry, so that cancellation is improbable.
            (0..n).for_each(|k| u[at + k] = 1.0 + 0.37 * k as f64);
            let run = directional(&code, case.main, &case.args, &u, &Options::default()).ok()?;
            if run.tangent.iter().all(|x| *x == 0.0) {
                return Some(true);
            }
        }
        at += n;
    }
    Some(false)
}

fn feature_names(generated: &Generated) -> Vec<&'static str> {
    let Features {
        map,
        nested_map,
        reduce,
        scan,
        hist,
        scatter,
        for_loop,
        while_loop,
        conditional,
        sums,
        tuples,
        calls,
        recursion,
        with_acc,
        derivatives,
        updates,
        indexing,
        shape_operations,
        general_operators,
        singles,
        stop_gradients,
        empty_arrays,
        endings,
    } = generated.features;
    let named = [
        ("map", map),
        ("nested map", nested_map),
        ("reduce", reduce),
        ("scan", scan),
        ("hist", hist),
        ("scatter", scatter),
        ("for loop", for_loop),
        ("while loop", while_loop),
        ("conditional", conditional),
        ("sum", sums),
        ("tuple", tuples),
        ("call", calls),
        ("recursion", recursion),
        ("with_acc", with_acc),
        ("vjp or jvp", derivatives),
        ("update", updates),
        ("indexing", indexing),
        ("shape operation", shape_operations),
        ("general operator", general_operators),
        ("f32", singles),
        ("stop_gradient", stop_gradients),
        ("empty array", empty_arrays),
        ("branch at the end", endings),
        ("ties", usize::from(generated.ties)),
    ];
    named.into_iter().filter(|(_, n)| *n > 0).map(|(name, _)| name).collect()
}
