//! The page: tables and pictures that open in any browser, in one file.

use crate::cliffs;
use crate::costs::{Costs, of_row, step_ratio};
use crate::plots;
use crate::results::{Reached, Results, Row, Times, time};
use anyhow::Result;
use std::fmt::Write;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1320px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ddd }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } th { text-align: right; font-weight: 600 }
td, th { padding: .15em .7em; border-bottom: 1px solid #eee; text-align: right } td:first-child, th:first-child { text-align: left }
td.text, th.text { text-align: left } td.failed { color: #b00; text-align: left } .note { color: #666; max-width: 60em } pre { white-space: pre-wrap }
.pictures { display: flex; flex-wrap: wrap; gap: 1em } figure { margin: 0 } figcaption { font-weight: 600 } svg { max-width: 100%; height: auto }
";

/// The page as HTML.
pub(crate) fn page(results: &Results, costs: &[Costs]) -> Result<String> {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Pullback benchmarks</title>\n<style>{STYLE}</style>\n<h1>Pullback benchmarks</h1>\n"
    );
    let rates = &results.rates;
    let listed = |f: &dyn Fn(&(f64, f64)) -> String| rates.bytes.iter().map(f).collect::<Vec<_>>().join(", ");
    writeln!(
        out,
        "<p>{}. One thread of our own programs reaches {:.0} GFLOP/s in double and {:.0} in single precision (products of two 256 × 256 matrices), \
         and copies {} GB/s (read and written) where arrays have {} together. <em>Shares</em> are of the rates of sums and products and of memory, the last one, and count \
         only what a function or derivative cannot avoid: more than 100 % of the bytes are those of a workload that stays in a cache. A call of a function that does nothing, \
         read clock included, takes {}, which every time contains.</p>",
        escape(&results.machine),
        rates.flops / 1e9,
        rates.single_flops / 1e9,
        listed(&|(_, rate)| format!("{:.0}", rate / 1e9)),
        listed(&|(size, _)| plots::bytes(*size)),
        time(rates.call)
    )?;
    let names: Vec<String> = results.tools.iter().map(|(name, _)| escape(name)).collect();
    write!(out, "<details><summary>Tools: {}</summary><ul>", names.join(", "))?;
    for (name, command) in &results.tools {
        writeln!(out, "<li><b>{}</b>: <code>{}</code></li>", escape(name), escape(command))?;
    }
    out.push_str("</ul></details>\n<p class=\"note\">Times are the least of all runs, as one call from arrays to arrays, with results in memory of ours that calls use again; reading, compiling and \
         conversions are left out. <em>First</em> is the first run, whose memory is new. <em>Off</em> is the largest difference from the first tool, relative to the largest number. \
         Functions that give a value with its derivative are derivatives here. Steps are those of the reference interpreter; where there are too many to count, they are \
         those of both at smaller sizes of the same problem, which stand beside the ratio.</p>\n");
    for (title, note, svg) in [
        (
            "Derivatives and the machine's limits",
            "Lines are rates of copying, by how much is copied (caches, memory), and of sums and products.",
            plots::roofline(results)?,
        ),
        (
            "Derivatives over their functions",
            "With the first tool; lower is better.",
            plots::ratios(results)?,
        ),
        ("Threads", "Higher is better.", plots::speedups(results)?),
    ] {
        if let Some(svg) = svg {
            writeln!(out, "<h2>{title}</h2>\n<p class=\"note\">{note}</p>\n<figure>{svg}</figure>")?;
        }
    }
    let mut problems: Vec<&str> = results.rows.iter().map(|r| r.problem.as_str()).collect();
    problems.dedup();
    curves(&mut out, results)?;
    growth(&mut out, results, costs)?;
    compiling(&mut out, costs)?;
    for problem in &problems {
        writeln!(out, "<h2 id=\"{problem}\">{problem}</h2>")?;
        let made = results.defined.iter().filter(|(_, p, _)| p == problem);
        let made: Vec<String> = made.map(|(t, _, s)| format!("{}: {}", escape(t), time(*s))).collect();
        writeln!(out, "<p>Made ready (checked, differentiated, optimised) in {}.</p>", made.join(", "))?;
        table(&mut out, results, costs, problem)?;
    }
    Ok(out)
}

/// Pictures of every series of sizes.
fn curves(out: &mut String, results: &Results) -> Result<()> {
    let mut shown: Vec<(String, String)> = Vec::new();
    for s in cliffs::series(results) {
        if !shown.contains(&(s.problem.clone(), s.along.clone())) {
            shown.push((s.problem, s.along));
        }
    }
    if shown.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Time over size</h2>\n<p class=\"note\">On the left, straight lines of slope 1 are cost in proportion to the work; on the right, level lines. \
         The first tool's lines are whole, those of others dashed, with the same colours on both sides.</p>\n<div class=\"pictures\">\n");
    for (problem, along) in shown {
        let title = if along.is_empty() { problem.clone() } else { format!("{problem}, over {along}") };
        for (svg, what) in [
            (plots::scaling(results, &problem, &along)?, ""),
            (plots::per_operation(results, &problem, &along)?, ", for each operation"),
        ] {
            if let Some(svg) = svg {
                writeln!(out, "<figure><figcaption>{title}{what}</figcaption>{svg}</figure>")?;
            }
        }
    }
    out.push_str("</div>\n");
    Ok(())
}

/// For every series: how the time of a unit of work changes from the smallest size to the largest, and its largest step.
fn growth(out: &mut String, results: &Results, costs: &[Costs]) -> Result<()> {
    let all = cliffs::series(results);
    if all.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>How cost grows</h2>\n<p class=\"note\">A cliff is a size at which an operation takes at least twice as long as at the size before.</p>\n\
         <table>\n<tr><th>problem<th class=\"text\">over<th class=\"text\">function<th class=\"text\">tool<th>sizes<th>smallest, one operation<th>largest<th>largest step<th>at<th>cliffs</tr>\n");
    for s in all {
        let (Some(worst), Some(first), Some(last)) = (s.worst(), s.sizes.first(), s.sizes.last()) else {
            continue;
        };
        let [problem, along, function, tool] =
            [&s.problem, &s.along, &s.function, &s.tool].map(|t| escape(t));
        let count = s.steps().into_iter().filter(|step| step.is_cliff()).count();
        let cliffs = match count {
            0 => "<td>none".to_string(),
            n => format!("<td class=\"failed\">{n}"),
        };
        writeln!(
            out,
            "<tr><td>{problem}<td class=\"text\">{along}<td class=\"text\">{function}<td class=\"text\">{tool}<td>{}<td>{}<td>{}<td>{:.2}<td>{}{cliffs}</tr>",
            s.sizes.len(),
            precise(first.time / first.work),
            precise(last.time / last.work),
            worst.growth,
            escape(&s.sizes[worst.to].name)
        )?;
    }
    writeln!(out, "</table>\n<pre class=\"note\">{}</pre>", escape(&cliffs::text(results, costs)))?;
    Ok(())
}

/// A time that may be less than a nanosecond.
fn precise(seconds: f64) -> String {
    format!("{:.3} ns", 1e9 * seconds)
}

/// How long functions take until they can be called.
fn compiling(out: &mut String, costs: &[Costs]) -> Result<()> {
    let ready: Vec<_> = costs.iter().filter_map(|c| Some((c, c.ready?))).collect();
    if ready.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Compiling</h2>\n<p class=\"note\">From the text to a function that can be called, prelude, checking and differentiation included, nothing on disk; the least of three.</p>\n\
         <table>\n<tr><th>problem<th class=\"text\">function<th>on the vm<th>as machine code</tr>\n");
    for (c, (vm, native)) in ready {
        let shown = |seconds: Option<f64>| seconds.map_or("–".to_string(), time);
        let [problem, function] = [&c.problem, &c.function].map(|t| escape(t));
        writeln!(
            out,
            "<tr><td>{problem}<td class=\"text\">{function}<td>{}<td>{}</tr>",
            shown(vm),
            shown(native)
        )?;
    }
    out.push_str("</table>\n");
    Ok(())
}

fn table(out: &mut String, results: &Results, costs: &[Costs], problem: &str) -> Result<()> {
    out.push_str(
        "<table>\n<tr><th>workload<th class=\"text\">function<th class=\"text\">tool<th>least<th>median<th>mean<th>first<th>runs<th>before<th>/ primal\
         <th>steps / primal<th>tape<th>memory<th>GFLOP/s<th>share<th>GB/s<th>share<th>off</tr>\n",
    );
    for row in results.rows.iter().filter(|r| r.problem == problem) {
        let [workload, function, tool] = [&row.workload, &row.function, &row.tool].map(|t| escape(t));
        write!(out, "<tr><td>{workload}<td class=\"text\">{function}<td class=\"text\">{tool}")?;
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
    let ratio = results.ratio(row, t).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let own = of_row(costs, row);
    let step_ratio = match step_ratio(costs, results, row) {
        Some((ratio, at)) if at == row.workload => format!("{ratio:.2}"),
        Some((ratio, at)) => format!("{ratio:.2} ({})", escape(&at)),
        None => String::new(),
    };
    let memory = |f: &dyn Fn(&Costs) -> u64| own.map(|c| size(f(c))).unwrap_or_default();
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
    for reached in results.reached(row, t) {
        match reached {
            Some(Reached { each_second, share }) => {
                write!(out, "<td>{:.1}<td>{:.0} %", each_second / 1e9, 100.0 * share)?;
            }
            None => out.push_str("<td><td>"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Rates;

    #[test]
    fn rows_have_shares_and_the_size_at_which_steps_were_counted() {
        let row = |function: &str, is_derivative| Row {
            problem: "ba".into(),
            workload: "p3000".into(),
            function: function.into(),
            tool: "ours".into(),
            least: (5e8, 2e9),
            is_derivative,
            outcome: Ok(Times::of(&[0.5], 0.0, 0.0)),
            ..Row::default()
        };
        let cost = |function: &str, steps: f64, at: &str| Costs {
            problem: "ba".into(),
            workload: "p3000".into(),
            function: function.into(),
            steps: Some((steps, at.into())),
            peak_bytes: 0,
            tape_bytes: 0,
            ready: None,
        };
        let results = Results {
            rates: Rates { flops: 1e10, single_flops: 2e10, bytes: vec![(1e8, 5e9)], call: 2e-8 },
            rows: vec![row("objective", false), row("jacobian", true)],
            ..Results::default()
        };
        let shown = |at: &str| {
            let mut out = String::new();
            table(&mut out, &results, &[cost("objective", 10.0, at), cost("jacobian", 25.0, at)], "ba")
                .expect("a table");
            out
        };
        let smaller = shown("p30");
        assert!(smaller.contains("<td>2.50 (p30)<td>"), "{smaller}");
        assert!(shown("p3000").contains("<td>2.50<td>"));
        // 1e9 operations and 4e9 bytes in a second, of the function and of its derivative.
        assert_eq!(smaller.matches("<td>1.0<td>10 %<td>4.0<td>80 %").count(), 2, "{smaller}");
    }
}
