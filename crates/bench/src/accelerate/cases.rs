//! What the experiments run: problems, sizes, inputs, and the versions of the algorithm.

use anyhow::{Context, Result, anyhow};
use pullback_core::{Array, Buffer, Value};
use pullback_driver::{Backend, Ready, Session, Settings};
use pullback_testkit::problems::{mixture_in_forms, uniform};
use std::path::Path;

/// A problem of the thesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Problem {
    /// Gaussian mixtures in the form that the thesis measures, in its other form, and in ours; sizes are points, dimensions, components.
    Gather,
    Generate,
    Apart,
    /// Bundle adjustment; sizes are cameras, points, observations.
    Ba,
}

/// Three sizes of a problem.
pub(crate) type Sizes = [usize; 3];

/// Points, dimensions and components of mixtures: all combinations.
const GMM: (&[usize], &[usize], &[usize]) =
    (&[1000, 10_000], &[2, 10, 20, 32, 64, 128], &[5, 10, 25, 50, 100, 200]);

/// Cameras, points and observations: the files of the thesis, in its order.
const BA: [Sizes; 20] = [
    [49, 7776, 31843],
    [21, 11315, 36455],
    [161, 48126, 182_072],
    [372, 47423, 204_472],
    [257, 65132, 225_911],
    [539, 65220, 277_273],
    [93, 61203, 287_451],
    [88, 64298, 383_937],
    [810, 88814, 393_775],
    [1197, 126_327, 563_734],
    [1723, 156_502, 678_718],
    [253, 163_691, 899_155],
    [245, 198_739, 1_091_386],
    [356, 226_730, 1_255_268],
    [1102, 780_462, 4_052_340],
    [1544, 942_409, 4_750_193],
    [1778, 993_923, 5_001_946],
    [1936, 649_673, 5_213_733],
    [4585, 1_324_582, 9_125_125],
    [13682, 4_456_117, 2_987_644],
];

impl Problem {
    /// Those that are measured at all sizes.
    pub(crate) const ALL: [Problem; 3] = [Problem::Gather, Problem::Generate, Problem::Ba];
    /// The forms of the thesis.
    pub(crate) const MIXTURES: [Problem; 2] = [Problem::Gather, Problem::Generate];
    /// All forms of mixtures.
    pub(crate) const FORMS: [Problem; 3] = [Problem::Generate, Problem::Gather, Problem::Apart];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Problem::Gather => "gather",
            Problem::Generate => "generate",
            Problem::Apart => "apart",
            Problem::Ba => "ba",
        }
    }
    pub(crate) fn named(name: &str) -> Result<Problem> {
        Problem::FORMS
            .into_iter()
            .chain([Problem::Ba])
            .find(|p| p.name() == name)
            .with_context(|| format!("no problem `{name}`"))
    }
    /// All sizes, in the order of the thesis.
    pub(crate) fn sizes(self) -> Vec<Sizes> {
        let (points, dimensions, components) = GMM;
        let of = |n: usize| dimensions.iter().flat_map(move |d| components.iter().map(move |k| [n, *d, *k]));
        match self {
            Problem::Ba => BA.to_vec(),
            _ => points.iter().flat_map(|n| of(*n)).collect(),
        }
    }
    /// The numbers that are differentiated in.
    pub(crate) fn variables(self, [a, b, c]: Sizes) -> usize {
        match self {
            Problem::Ba => 11 * a + 3 * b + c,
            _ => c * (1 + b + b * (b + 1) / 2),
        }
    }
    /// What time and memory grow with.
    pub(crate) fn work(self, sizes: Sizes) -> f64 {
        match self {
            Problem::Ba => 31.0 * sizes[2] as f64,
            _ => sizes[0] as f64 * self.variables(sizes) as f64,
        }
    }
    /// The program, and its entry points for the objective and its derivative.
    fn program(self) -> (&'static str, [String; 2]) {
        let name = self.name();
        match self {
            Problem::Ba => ("benches/accelerate/ba.fut", ["objective", "jacobian"].map(str::to_string)),
            _ => ("benches/accelerate/gmm.fut", [name.to_string(), format!("{name}_gradient")]),
        }
    }
    /// Objective and derivative, compiled.
    pub(crate) fn ready(self, algorithm: &str, settings: Settings) -> Result<[Ready; 2]> {
        let (file, entries) = self.program();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        compiled(file, &text, entries, algorithm, settings)
    }
    /// Random arguments of objective and derivative.
    pub(crate) fn args(self, sizes: Sizes) -> [Vec<Value>; 2] {
        match self {
            Problem::Ba => ba(sizes),
            _ => gmm(sizes),
        }
    }
}

/// Two entry points as machine code, whose derivatives are by this algorithm.
pub(crate) fn compiled(
    file: &str,
    text: &str,
    entries: [String; 2],
    algorithm: &str,
    settings: Settings,
) -> Result<[Ready; 2]> {
    let mut settings = Settings { backend: Backend::Llvm, ..settings };
    settings.choice.reverse = Some(algorithm.into());
    let session = Session::compile(file, text, settings).map_err(|e| anyhow!(e.render()))?;
    let ready = |name: String| -> Result<Ready> {
        let entry = session.entry(Some(&name)).map_err(|d| anyhow!(d.message))?;
        session.primal(&entry).map_err(|d| anyhow!(d.message))
    };
    let [objective, derivative] = entries.map(ready);
    Ok([objective?, derivative?])
}

fn array(shape: &[usize], numbers: Vec<f64>) -> Value {
    Value::f64_array(shape, &numbers)
}

fn gmm(sizes: Sizes) -> [Vec<Value>; 2] {
    let of_gradient = mixture_in_forms(sizes);
    let mut objective = of_gradient.clone();
    // The constant, which changes no time.
    objective.insert(3, Value::f64(0.0));
    [objective, of_gradient]
}

/// Cameras that look at points in front of them. Observations go round, as in the files.
fn ba([n, m, p]: Sizes) -> [Vec<Value>; 2] {
    let near = |seed: u32, count: usize, centres: &[f64], width: f64| {
        let off = uniform(seed, count * centres.len());
        off.iter()
            .zip(centres.iter().cycle())
            .map(|(x, centre)| centre + width * (x - 0.5))
            .collect::<Vec<f64>>()
    };
    let camera = [0.1, -0.2, 0.3, 0.5, -0.4, 0.2, 1.5, 0.05, -0.07, 0.01, -0.002];
    let obs = (0..p).flat_map(|i| [(i % n) as i64, (i % m) as i64]).collect();
    let args = vec![
        array(&[n, 11], near(1, n, &camera, 0.1)),
        array(&[m, 3], near(2, m, &[0.3, 0.8, 4.0], 1.0)),
        array(&[p], near(3, p, &[0.7], 0.2)),
        array(&[p, 2], near(4, p, &[0.11, -0.23], 0.2)),
        Value::Array(Array::new(vec![p, 2], Buffer::I64(obs))),
    ];
    [args.clone(), args]
}

/// One algorithm with a number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Its name in tables.
    pub(crate) name: &'static str,
    pub(crate) algorithm: &'static str,
    pub(crate) is_parallel: bool,
    pub(crate) problems: &'static [Problem],
}

impl Version {
    const fn new(name: &'static str, algorithm: &'static str, problems: &'static [Problem]) -> Version {
        Version { name, algorithm, is_parallel: true, problems }
    }
    const fn on_one_thread(self) -> Version {
        Version { is_parallel: false, ..self }
    }
}

/// The four of the thesis, our choice for each function, and what we use in production.
pub(crate) const VERSIONS: [Version; 7] = [
    Version::new("store, 1 thread", "accelerate-store", &Problem::MIXTURES).on_one_thread(),
    Version::new("store", "accelerate-store", &Problem::MIXTURES),
    Version::new("recompute, 1 thread", "accelerate-recompute", &Problem::MIXTURES).on_one_thread(),
    Version::new("recompute", "accelerate-recompute", &Problem::MIXTURES),
    Version::new("default, 1 thread", "accelerate", &[Problem::Ba]).on_one_thread(),
    Version::new("default", "accelerate", &Problem::ALL),
    Version::new("fast_chad", "fast_chad", &Problem::ALL),
];

/// At these sizes they are compared.
pub(crate) const OF_FORMS: [Sizes; 3] = [[1000, 2, 5], [1000, 10, 25], [1000, 32, 25]];

/// All algorithms.
pub(crate) const ALGORITHMS: [&str; 4] =
    ["accelerate-store", "accelerate-recompute", "accelerate", "fast_chad"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of variables are those of a table in our notes; sizes of a Jacobian are columns of another.
    #[test]
    fn sizes_have_the_variables_of_the_thesis() {
        let gmm = |d: usize, k: usize| Problem::Gather.variables([1000, d, k]);
        assert_eq!((gmm(2, 5), gmm(10, 25), gmm(128, 200)), (30, 1650, 1_677_000));
        assert_eq!(Problem::Gather.sizes().len(), 72);
        let ba: Vec<usize> = BA.iter().map(|s| Problem::Ba.variables(*s)).collect();
        assert_eq!((ba.len(), ba[0], ba[19]), (20, 55_710, 16_506_497));
        assert_eq!(Problem::Ba.work(BA[0]), 987_133.0);
    }

    #[test]
    fn versions_are_both_variants_on_one_thread_and_all() {
        for algorithm in ["accelerate-store", "accelerate-recompute"] {
            let of = |v: &&Version| v.algorithm == algorithm && v.problems == Problem::MIXTURES;
            let threads: Vec<bool> = VERSIONS.iter().filter(of).map(|v| v.is_parallel).collect();
            assert_eq!(threads, [false, true], "{algorithm}");
        }
        // Bundle adjustment differentiates expressions only.
        let of = |v: &&Version| v.algorithm == "accelerate" && v.problems.contains(&Problem::Ba);
        let threads: Vec<bool> = VERSIONS.iter().filter(of).map(|v| v.is_parallel).collect();
        assert_eq!(threads, [false, true]);
    }

    /// The last observation of the smallest file sees the camera and the point that a division by hand gives.
    #[test]
    fn observations_go_round() {
        let [_, args] = Problem::Ba.args(BA[0]);
        let Value::Array(obs) = &args[4] else { panic!("an array") };
        let Buffer::I64(places) = &*obs.data else { panic!("whole numbers") };
        // 31842 = 649 * 49 + 41 = 4 * 7776 + 738.
        assert_eq!(places[places.len() - 2..], [41, 738]);
        // A Jacobian where all errors are finite needs points before cameras.
        assert!(args.iter().take(4).all(|v| v.floats().iter().all(|x| x.is_finite())));
    }
}
