//! The page of the book and its pictures, from the result file.

use super::GIB;
use super::cases::{Problem, Sizes};
use super::results::{Curve, Measured, Report, Row, slope};
use crate::plots::{self, Shown};
use crate::results::time;
use anyhow::{Context, Result};
use std::fmt::Write;

/// How often a case may take as long as before without being a difference, in the thesis.
const INSIGNIFICANT: f64 = 1.2;

/// Numbers of points of mixtures, each a picture and its tables.
const POINTS: [usize; 2] = [1000, 10_000];

/// The files of `docs/book`: name and text.
pub(crate) fn files(report: &Report) -> Result<Vec<(String, String)>> {
    let mut pictures = Vec::new();
    for (problem, n) in mixtures() {
        let curves = report.curves(problem, &|s| s[0] == n);
        pictures.push((picture_name(problem, n), picture(problem, &curves)?));
    }
    let curves = report.curves(Problem::Ba, &|_| true);
    pictures.push((picture_name(Problem::Ba, 0), picture(Problem::Ba, &curves)?));
    let mut files = vec![("accelerate-experiments.md".to_string(), page(report)?)];
    files.extend(pictures.into_iter().filter_map(|(name, svg)| Some((name, svg?))));
    Ok(files)
}

/// Both forms of mixtures, with each number of points.
fn mixtures() -> impl Iterator<Item = (Problem, usize)> {
    Problem::MIXTURES.into_iter().flat_map(|problem| POINTS.map(|n| (problem, n)))
}

fn picture_name(problem: Problem, n: usize) -> String {
    match problem {
        Problem::Ba => "accelerate-ba.svg".to_string(),
        form => format!("accelerate-{}-{n}.svg", form.name()),
    }
}

/// Seconds over numbers of independent variables, with a line of slope 1 through the middle of the first curve.
fn picture(problem: Problem, curves: &[Curve]) -> Result<Option<String>> {
    let shown = |c: &Curve| Shown {
        name: c.name.to_string(),
        colour: colour(c.name),
        is_dashed: c.name.ends_with("1 thread"),
        points: points(problem, c),
    };
    let shown: Vec<Shown> = curves.iter().map(shown).filter(|s| !s.points.is_empty()).collect();
    plots::over_variables(&shown)
}

/// Versions of one algorithm have one colour.
fn colour(version: &str) -> usize {
    ["store", "recompute", "default"].iter().position(|name| version.starts_with(name)).unwrap_or(3)
}

/// Independent variables and seconds, in the order of the variables.
fn points(problem: Problem, curve: &Curve) -> Vec<(f64, f64)> {
    let point = |(s, m): &(Sizes, Measured)| (problem.variables(*s) as f64, m.derivative.least);
    let mut points: Vec<(f64, f64)> = curve.points.iter().map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn page(report: &Report) -> Result<String> {
    let mut out = String::from(HEAD);
    for (name, text) in &report.about {
        writeln!(out, "- {name}: {text}")?;
    }
    out.push_str(METHOD);
    kernels(&mut out, report)?;
    forms(&mut out, report)?;
    slopes(&mut out, report)?;
    for (problem, n) in mixtures() {
        let all: Vec<Sizes> = problem.sizes().into_iter().filter(|s| s[0] == n).collect();
        writeln!(out, "\n## Gaussian mixtures, `{}`, {n} points\n", problem.name())?;
        tables(&mut out, report, problem, &all)?;
    }
    writeln!(out, "\n## Bundle adjustment\n\n{BUNDLE}\n")?;
    tables(&mut out, report, Problem::Ba, &Problem::Ba.sizes())?;
    memory(&mut out, report)?;
    repeated(&mut out, report)?;
    Ok(out)
}

const HEAD: &str = "\
# Experiments with reverse AD for Accelerate

Chapter 5 of the thesis measures two problems of ADBench: Gaussian mixtures and bundle adjustment. The programs are `benches/accelerate/gmm.fut` and `ba.fut`, with the formulas and sizes of the thesis. This page has our times and memory for them. `cargo xtask bench accelerate --twice` measures, and writes `benches/accelerate/results.json` and this page.

";

const METHOD: &str = "
Inputs are random, and of double precision. The thesis has single precision. A process of its own runs each case. The first call of a function is not timed, since its memory is new. Times are the least of the timed calls. Memory is what the calling thread has in use at most, results included and arguments not.

`store` keeps temporaries of scalar functions (`--ad accelerate-store`), `recompute` computes them and the largest arrays again (`--ad accelerate-recompute`), and `default` decides for each function (`--ad accelerate`). They use all threads where no other number stands. `fast_chad` is our production algorithm.

The thesis has two forms of the triangular matrices of a mixture. In `generate` each element is read where it stands, or is zero. In `gather` a zero stands before the elements, and each place reads one number. Each point has its own matrices in both. `apart` is ours: matrices are made once for each component.
";

const GROWTH: &str = "\
The slope is that of the logarithm of time over the logarithm of the number of independent variables, by least squares over the upper half of the sizes. A slope of 1 is expected. The last file of bundle adjustment has fewer observations than points. So its slope is over the numbers that the Jacobian stores.

Ratios of times grow where arrays over points leave the caches, which the objective does not need. Ratios of steps do not grow (`crates/ad/tests/accelerate/growth.rs`).";

const BUNDLE: &str = "\
Each observation is differentiated alone, in one map: two rows of 15 derivatives. The result is the Jacobian in compressed rows. Temporaries are numbers here, so `store` and `recompute` are the same.";

/// Array operations after fusion.
fn kernels(out: &mut String, report: &Report) -> Result<()> {
    let mut programs: Vec<&str> = report.kernels.iter().map(|k| k.0.as_str()).collect();
    programs.dedup();
    let of = |program: &str| report.kernels.iter().filter(|k| k.0 == *program).cloned().collect::<Vec<_>>();
    let algorithms: Vec<String> =
        of(programs.first().context("programs")?).into_iter().map(|k| k.1).collect();
    writeln!(
        out,
        "\n## Array operations\n\nA gradient consists of so many array operations after fusion. The thesis counts 1 for its Fig. 2, and 282 for the mixture.\n"
    )?;
    writeln!(out, "| gradient | {} |\n|---|{}", algorithms.join(" | "), "---|".repeat(algorithms.len()))?;
    for program in programs {
        let counts: Vec<String> = of(program).iter().map(|k| k.2.to_string()).collect();
        writeln!(out, "| {program} | {} |", counts.join(" | "))?;
    }
    Ok(())
}

/// Forms of mixtures at a few sizes.
fn forms(out: &mut String, report: &Report) -> Result<()> {
    writeln!(
        out,
        "\n## Forms of the matrix\n\nOn one thread. The thesis measures `gather`, which was faster there than `generate`.\n"
    )?;
    writeln!(
        out,
        "| n | d | k | form | algorithm | objective | gradient | gradient / objective | memory |\n|{}",
        "---|".repeat(9)
    )?;
    for row in &report.forms {
        let cells = match &row.outcome {
            Ok(m) => {
                let (objective, gradient) = (m.objective.least, m.derivative.least);
                let ratio = gradient / objective;
                format!(
                    "{} | {} | {ratio:.1} | {}",
                    time(objective),
                    time(gradient),
                    plots::bytes(m.workspace)
                )
            }
            Err(why) => format!("{why} | | |"),
        };
        let sizes = row.sizes.map(|s| s.to_string()).join(" | ");
        writeln!(out, "| {sizes} | {} | {} | {cells} |", row.problem.name(), row.version)?;
    }
    Ok(())
}

/// Logarithms of time over logarithms of variables, for the upper half of the sizes.
fn slopes(out: &mut String, report: &Report) -> Result<()> {
    writeln!(out, "\n## Growth\n\n{GROWTH}\n")?;
    writeln!(
        out,
        "| problem | version | sizes | slope | gradient / objective, least | median | largest |\n|---|---|---|---|---|---|---|"
    )?;
    let mut table = |name: String, problem: Problem, curves: Vec<Curve>| -> Result<()> {
        for c in curves.iter().filter(|c| c.points.len() > 3) {
            let point = |(s, m): &(Sizes, Measured)| (problem.work(*s), m.derivative.least);
            let points: Vec<(f64, f64)> = c.points.iter().map(point).collect();
            let upper = &points[points.len() / 2..];
            let mut ratios: Vec<f64> =
                c.points.iter().map(|(_, m)| m.derivative.least / m.objective.least).collect();
            ratios.sort_by(f64::total_cmp);
            writeln!(
                out,
                "| {name} | {} | {} | {:.2} | {:.1} | {:.1} | {:.1} |",
                c.name,
                points.len(),
                slope(upper),
                ratios[0],
                ratios[ratios.len() / 2],
                ratios[ratios.len() - 1]
            )?;
        }
        Ok(())
    };
    for (problem, n) in mixtures() {
        let name = format!("{}, {n} points", problem.name());
        table(name, problem, report.curves(problem, &|s| s[0] == n))?;
    }
    table("bundle adjustment".to_string(), Problem::Ba, report.curves(Problem::Ba, &|_| true))
}

/// A title, and what a cell below it shows.
type Part<'a> = (&'a str, &'a dyn Fn(&Measured) -> String);

/// The picture, and tables of times, ratios and memory.
fn tables(out: &mut String, report: &Report, problem: Problem, sizes: &[Sizes]) -> Result<()> {
    let name = picture_name(problem, sizes.first().map_or(0, |s| s[0]));
    writeln!(out, "![Seconds over independent variables]({name})\n")?;
    let versions: Vec<&str> = report.curves(problem, &|_| true).into_iter().map(|c| c.name).collect();
    let heading = match problem {
        Problem::Ba => "cameras | points | observations",
        _ => "d | k",
    };
    let parts: [Part<'_>; 3] = [
        ("Time of the derivative.", &|m| time(m.derivative.least)),
        ("The derivative takes so many times as long as the objective.", &|m| {
            format!("{:.1}", m.derivative.least / m.objective.least)
        }),
        ("Memory of the derivative.", &|m| plots::bytes(m.workspace)),
    ];
    for (title, shown) in parts {
        writeln!(out, "{title}\n\n| {heading} | variables | {} |", versions.join(" | "))?;
        let columns = heading.split('|').count() + 1 + versions.len();
        writeln!(out, "|{}", "---|".repeat(columns))?;
        for s in sizes {
            let measured = |v: &&str| report.measured(problem, *s, v);
            if !versions.iter().any(|v| measured(v).is_some()) {
                continue;
            }
            let cell = |v: &&str| measured(v).map_or("–".into(), |m| shown(&m));
            let cells: Vec<String> = versions.iter().map(cell).collect();
            let own: &[usize] = if problem == Problem::Ba { s } else { &s[1..] };
            let own: Vec<String> = own.iter().map(ToString::to_string).collect();
            writeln!(out, "| {} | {} | {} |", own.join(" | "), problem.variables(*s), cells.join(" | "))?;
        }
        out.push('\n');
    }
    not_run(out, report, problem, sizes)
}

/// The cases without numbers, with their reasons.
fn not_run(out: &mut String, report: &Report, problem: Problem, sizes: &[Sizes]) -> Result<()> {
    let (mut left_out, mut too_large) = (Vec::new(), Vec::new());
    for s in sizes {
        let own: &[usize] = if problem == Problem::Ba { s } else { &s[1..] };
        let shown = own.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        let rows = report.rows.iter().filter(|r| r.turn == 0 && r.problem == problem && r.sizes == *s);
        let rows: Vec<&Row> = rows.collect();
        let reason = |r: &&Row| Some((r.version.clone(), r.outcome.clone().err()?));
        let reasons: Vec<(String, String)> = rows.iter().filter_map(reason).collect();
        if rows.is_empty() {
            left_out.push(shown);
        } else if !reasons.is_empty() {
            let listed: Vec<String> =
                reasons.iter().map(|(version, why)| format!("{version} ({why})")).collect();
            too_large.push(format!("- {shown}: {}", listed.join("; ")));
        }
    }
    if !left_out.is_empty() {
        writeln!(out, "Left out, since only a part of the sizes was asked for: {}.\n", left_out.join(", "))?;
    }
    match too_large.is_empty() {
        true => writeln!(out, "No other case was left out.")?,
        false => writeln!(
            out,
            "Not run, with the reason. A prediction is from the largest case before.\n\n{}",
            too_large.join("\n")
        )?,
    }
    Ok(())
}

/// Memory and time of the two variants.
fn memory(out: &mut String, report: &Report) -> Result<()> {
    writeln!(
        out,
        "\n## Stored or computed again\n\nThe thesis found that `recompute` needs less memory and less time.\n"
    )?;
    for problem in Problem::MIXTURES {
        let ratio = |s: Sizes| {
            let of = |version| report.measured(problem, s, version).map(|m| m.workspace);
            Some((s, of("recompute, 1 thread")? / of("store, 1 thread")?))
        };
        let mut ratios: Vec<(Sizes, f64)> = problem.sizes().into_iter().filter_map(ratio).collect();
        ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
        let below = ratios.iter().filter(|(_, ratio)| *ratio < 1.0).count();
        let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { continue };
        let shown = |(s, ratio): &(Sizes, f64)| format!("{ratio:.3} (n {}, d {}, k {})", s[0], s[1], s[2]);
        writeln!(
            out,
            "- `{}`: the memory of `recompute` is below that of `store` at {below} of {} sizes, on one thread. It is {} to {} times as much.",
            problem.name(),
            ratios.len(),
            shown(least),
            shown(most),
        )?;
    }
    let largest =
        report.rows.iter().filter_map(|r| r.outcome.as_ref().ok()).map(|m| m.workspace).fold(0.0, f64::max);
    writeln!(out, "\nThe largest call of any version had {:.1} GiB in use.\n\n{WHY}", largest / GIB)?;
    let names = Problem::MIXTURES.map(Problem::name);
    writeln!(
        out,
        "\nGeometric means of times over the sizes that both have:\n\n| time | {} |\n|---|{}",
        names.join(" | "),
        "---|".repeat(names.len())
    )?;
    for (a, b) in [
        ("recompute, 1 thread", "store, 1 thread"),
        ("recompute", "store"),
        ("store", "store, 1 thread"),
        ("recompute", "recompute, 1 thread"),
        ("default", "recompute"),
        ("default", "fast_chad"),
    ] {
        let means = Problem::MIXTURES.map(|problem| format!("{:.2}", mean_ratio(report, problem, a, b)));
        writeln!(out, "| {a} / {b} | {} |", means.join(" | "))?;
    }
    Ok(())
}

/// The geometric mean of times of one version over those of another.
fn mean_ratio(report: &Report, problem: Problem, a: &str, b: &str) -> f64 {
    let ratio = |s: Sizes| {
        let of = |version| report.measured(problem, s, version).map(|m| m.derivative.least);
        Some(of(a)? / of(b)?)
    };
    let logs: Vec<f64> = problem.sizes().into_iter().filter_map(ratio).map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

const WHY: &str = "\
A mixture consists of sums, products, squares, exponentials and logarithms. Their temporaries are their arguments and results. Such a temporary is an array of the program already, and the thesis stores it a second time. Here it is one array. So `recompute` goes further than the thesis: it computes the values of the largest arrays again, too, and keeps only sums of fewer dimensions. In `generate` that is a third of all memory. In `gather` most memory holds adjoints of the matrices of all points, which both have.";

/// How times repeat.
fn repeated(out: &mut String, report: &Report) -> Result<()> {
    let of = |ratios: Vec<f64>| ratios.into_iter().map(|r| r.max(1.0 / r)).collect::<Vec<f64>>();
    let ways = [
        ("medians", of(report.repeated(|t| t.median))),
        ("means", of(report.repeated(|t| t.mean))),
        ("least times", of(report.repeated(|t| t.least))),
    ];
    if ways[0].1.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Repeated\n\nThe suite was run twice. `r` is the second time of a derivative over the first one. The thesis, on a machine without other work, has 98 % of the means below {INSIGNIFICANT}, and none above 1.73.\n"
    )?;
    let edges = [1.05, 1.1, INSIGNIFICANT, 1.5, 2.0, f64::INFINITY];
    let names: Vec<String> =
        edges.iter().map(|e| if e.is_finite() { format!("below {e}") } else { "more".into() }).collect();
    writeln!(
        out,
        "| max(r, 1/r) of | {} | share below {INSIGNIFICANT} | largest |\n|---|{}",
        names.join(" | "),
        "---|".repeat(edges.len() + 2)
    )?;
    for (name, ratios) in &ways {
        let count = |high: f64| ratios.iter().filter(|r| **r < high).count();
        let mut low = 0;
        let bins: Vec<String> =
            edges.iter().map(|e| (count(*e) - std::mem::replace(&mut low, count(*e))).to_string()).collect();
        let share = 100.0 * count(INSIGNIFICANT) as f64 / ratios.len() as f64;
        let most = ratios.iter().copied().fold(0.0, f64::max);
        writeln!(out, "| {name} | {} | {share:.0} % | {most:.2} |", bins.join(" | "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerate::results::Timed;
    use crate::accelerate::{RESULTS, root};

    #[test]
    fn the_page_is_that_of_the_results() {
        let report = Report::read(&root().join(RESULTS)).expect("the result file");
        for (name, text) in files(&report).expect("the page") {
            let found =
                std::fs::read_to_string(root().join("docs/book").join(&name)).expect("a file of the book");
            assert!(found == text, "{name} is out of date: run `cargo xtask bench accelerate --page`");
        }
    }

    #[test]
    fn ratios_of_two_turns_are_counted_in_bins() {
        let row = |k: usize, turn: usize, seconds: f64| {
            let timed = Timed { runs: 1, least: seconds, median: seconds, mean: seconds };
            let measured = Measured { derivative: timed, ..Measured::default() };
            Row {
                problem: Problem::Gather,
                sizes: [1000, 2, k],
                version: "store".into(),
                turn,
                outcome: Ok(measured),
            }
        };
        // The largest of 2, 1.25 and 1.0 is that of a time that halves.
        let rows = [(5, 1.0, 0.5), (10, 1.0, 1.25), (25, 3.0, 3.0)];
        let rows = rows.into_iter().flat_map(|(k, first, second)| [row(k, 0, first), row(k, 1, second)]);
        let report = Report { rows: rows.collect(), ..Report::default() };
        let mut out = String::new();
        repeated(&mut out, &report).expect("a table");
        assert!(out.contains("| medians | 1 | 0 | 0 | 1 | 0 | 1 | 33 % | 2.00 |"), "{out}");
    }

    #[test]
    fn slopes_are_of_the_upper_half() {
        // Level up to the middle, then in proportion.
        let row = |k: usize, seconds: f64| {
            let timed = Timed { runs: 1, least: seconds, median: seconds, mean: seconds };
            let measured = Measured { derivative: timed, objective: timed, ..Measured::default() };
            Row {
                problem: Problem::Gather,
                sizes: [1000, 2, k],
                version: "store".into(),
                turn: 0,
                outcome: Ok(measured),
            }
        };
        let rows =
            [(5, 7.0), (10, 7.0), (25, 7.0), (50, 7.0), (100, 14.0), (200, 28.0)].map(|(k, s)| row(k, s));
        let report = Report { rows: rows.to_vec(), ..Report::default() };
        let mut out = String::new();
        slopes(&mut out, &report).expect("a table");
        assert!(out.contains("| gather, 1000 points | store | 6 | 1.00 | 1.0 | 1.0 | 1.0 |"), "{out}");
    }
}
