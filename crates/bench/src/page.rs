//! The page: tables and pictures that open in any browser, in one file.

use crate::costs::Costs;
use crate::plots;
use crate::results::{Results, Row, Times, time};
use anyhow::Result;
use std::fmt::Write;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1320px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ddd }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } th { text-align: right; font-weight: 600 }
td, th { padding: .15em .7em; border-bottom: 1px solid #eee; text-align: right } td:first-child, th:first-child { text-align: left }
td.failed { color: #b00; text-align: left } .note { color: #666; max-width: 60em }
.pictures { display: flex; flex-wrap: wrap; gap: 1em } figure { margin: 0 } figcaption { font-weight: 600 } svg { max-width: 100%; height: auto }
";

/// The page as HTML.
pub(crate) fn page(results: &Results, costs: &[Costs]) -> Result<String> {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Pullback benchmarks</title>\n<style>{STYLE}</style>\n<h1>Pullback benchmarks</h1>\n"
    );
    let (flops, bytes) = results.rates;
    writeln!(
        out,
        "<p>{}. One thread of our own programs reaches {:.0} GFLOP/s (a product of two 256 × 256 matrices) and {:.0} GB/s (an array of 64 MB, \
         read and written): <em>shares</em> are of these, and count only what the derivative cannot avoid.</p>",
        escape(&results.machine),
        flops / 1e9,
        bytes / 1e9
    )?;
    out.push_str("<ul>\n");
    for (name, command) in &results.tools {
        writeln!(out, "<li><b>{}</b>: <code>{}</code></li>", escape(name), escape(command))?;
    }
    out.push_str("</ul>\n<p class=\"note\">Times are the least of all runs, as one call from arrays to arrays; reading, compiling and conversions are left out. \
         <em>First</em> is the first run, whose memory is new. <em>Off</em> is the largest difference from the first tool, relative to the largest number.</p>\n");
    if let Some(svg) = plots::roofline(results)? {
        writeln!(out, "<h2>Derivatives and the machine's limits</h2>\n<figure>{svg}</figure>")?;
    }
    let mut problems: Vec<&str> = results.rows.iter().map(|r| r.problem.as_str()).collect();
    problems.dedup();
    out.push_str("<h2>Time over size</h2>\n<p class=\"note\">Straight lines of slope 1 are cost in proportion to the work.</p>\n<div class=\"pictures\">\n");
    for problem in &problems {
        if let Some(svg) = plots::scaling(results, problem)? {
            writeln!(out, "<figure><figcaption>{problem}</figcaption>{svg}</figure>")?;
        }
    }
    out.push_str("</div>\n");
    for problem in &problems {
        writeln!(out, "<h2 id=\"{problem}\">{problem}</h2>")?;
        let made = results.defined.iter().filter(|(_, p, _)| p == problem);
        let made: Vec<String> = made.map(|(t, _, s)| format!("{}: {}", escape(t), time(*s))).collect();
        writeln!(out, "<p>Made ready (checked, differentiated, optimised) in {}.</p>", made.join(", "))?;
        table(&mut out, results, costs, problem)?;
    }
    Ok(out)
}

fn table(out: &mut String, results: &Results, costs: &[Costs], problem: &str) -> Result<()> {
    out.push_str(
        "<table>\n<tr><th>workload<th>function<th>tool<th>least<th>median<th>mean<th>first<th>runs<th>compiling<th>/ primal\
         <th>steps / primal<th>tape<th>memory<th>GFLOP/s<th>share<th>GB/s<th>share<th>off</tr>\n",
    );
    for row in results.rows.iter().filter(|r| r.problem == problem) {
        let [workload, function, tool] = [&row.workload, &row.function, &row.tool].map(|t| escape(t));
        write!(out, "<tr><td>{workload}<td>{function}<td>{tool}")?;
        match &row.outcome {
            Ok(times) => cells(out, results, costs, row, times)?,
            Err(e) => {
                let first = e.lines().next().unwrap_or_default();
                write!(out, "<td class=\"failed\" colspan=\"15\" title=\"{}\">{}", escape(e), escape(first))?;
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    Ok(())
}

fn cells(out: &mut String, results: &Results, costs: &[Costs], row: &Row, t: &Times) -> Result<()> {
    let ratio = results.primal_of(row).map(|p| format!("{:.2}", t.least / p.least)).unwrap_or_default();
    let own = |function: &str| {
        costs.iter().find(|c| {
            (&c.problem, &c.workload, c.function.as_str()) == (&row.problem, &row.workload, function)
        })
    };
    let primal = results.rows.iter().find(|r| r.problem == row.problem && r.workload == row.workload);
    let steps = own(&row.function).and_then(|c| c.steps);
    let primal_steps =
        primal.filter(|_| row.is_derivative).and_then(|p| own(&p.function)).and_then(|c| c.steps);
    let step_ratio = steps.zip(primal_steps).map(|(d, p)| format!("{:.2}", d / p)).unwrap_or_default();
    let memory = |f: &dyn Fn(&Costs) -> u64| own(&row.function).map(|c| size(f(c))).unwrap_or_default();
    write!(
        out,
        "<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{ratio}<td>{step_ratio}<td>{}<td>{}",
        time(t.least),
        time(t.median),
        time(t.mean),
        time(t.first),
        t.runs,
        time(t.before),
        memory(&|c| c.tape_bytes),
        memory(&|c| c.peak_bytes)
    )?;
    let (flops, bytes) = row.least;
    for (amount, rate) in [(flops, results.rates.0), (bytes, results.rates.1)] {
        if amount > 0.0 {
            let reached = amount / t.least;
            write!(out, "<td>{:.1}<td>{:.0} %", reached / 1e9, 100.0 * reached / rate)?;
        } else {
            out.push_str("<td><td>");
        }
    }
    write!(out, "<td>{:.0e}", t.off)?;
    Ok(())
}

/// A number of bytes with a unit.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e4 => format!("{b:.0} B"),
        b if b < 1e7 => format!("{:.0} kB", b / 1e3),
        b => format!("{:.0} MB", b / 1e6),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
