//! `pullback profile`: where the time of a run goes, as text, as JSON and as a picture; see [`pullback_driver::profile`].

use crate::Failure;
use crate::args::{ProfileArgs, Profiled};
use crate::commands::{can_run, failed, load_program, ones, only_active, print_json};
use crate::inputs::arguments;
use crate::output::{say, write_file};
use crate::profile_page::page;
use crate::progress::with_progress;
use pullback_base::Span;
use pullback_driver::profile::{Advice, Profile, Row, last_cache, profile as measure, sweep};
use pullback_driver::{Kind, Session};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// Rows of the table.
const SHOWN: usize = 20;

/// Characters of a source line that the table shows.
const SOURCE: usize = 44;

/// `pullback profile`
pub(crate) fn profile(args: &ProfileArgs) -> Result<(), Failure> {
    if args.inputs.schedule.is_some() || args.inputs.check_nan {
        return Err(Failure::input(
            "`--schedule` and `--check-nan` need the interpreter, which has no profile\n  hint: leave them out",
        ));
    }
    let (mut session, entry) = load_program(&args.program)?;
    can_run(&session, &args.inputs)?;
    session.settings.lowered = true;
    let of_session = |d: pullback_base::Diagnostic| failed(&session, &d);
    let mut values = arguments(&entry, &args.inputs)?;
    let ready = match args.derivative {
        Profiled::None => session.primal(&entry).map_err(of_session)?,
        Profiled::Vjp => {
            let selected = session.select(&entry, &args.wrt.parse()).map_err(of_session)?;
            let seeds = ones(&session, &entry, &values, &args.inputs)?;
            values.extend(only_active(session.lowered(), &entry.result_types, seeds));
            session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).map_err(of_session)?
        }
    };
    let run = || with_progress(&args.inputs, "profile", |o| measure(&ready, &values, o, args.runs.get()));
    let profile = run().map_err(|d| failed(&session, &d))?;
    let what = match args.derivative {
        Profiled::None => entry.name.clone(),
        Profiled::Vjp => format!("{} and its reverse derivative", entry.name),
    };
    let shown = Shown { session: &session, what, advice: profile.advice(last_cache()), profile };
    if let Some(path) = &args.html {
        write_file(path, page(&shown).as_bytes())?;
    }
    if args.program.json {
        print_json(&shown.json());
    } else {
        say(shown.text().trim_end());
    }
    Ok(())
}

/// A profile and what its places are places of.
pub(crate) struct Shown<'a> {
    session: &'a Session,
    /// What was run.
    pub(crate) what: String,
    pub(crate) profile: Profile,
    pub(crate) advice: Vec<Advice>,
}

impl Shown<'_> {
    /// `file:line:column` of a row.
    pub(crate) fn place(&self, row: &Row) -> Option<String> {
        let span = row.slot.site?.span?;
        let (line, column) = self.session.sources.line_column(span.file, span.start);
        Some(format!("{}:{line}:{column}", self.session.sources.name(span.file)))
    }
    /// The source text of a row on one line.
    pub(crate) fn source(&self, row: &Row) -> String {
        let span = row.slot.site.and_then(|s| s.span);
        let text = span.map_or("", |s| self.session.sources.snippet(s));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
    /// The construct of a row.
    pub(crate) fn construct(row: &Row) -> &'static str {
        match (row.slot.parent, row.slot.site) {
            (None, _) => "whole call",
            (_, Some(site)) => site.construct,
            (_, None) => "unknown",
        }
    }
    /// Other lines that the same loops work for; of other files with their name.
    pub(crate) fn also(&self, row: &Row) -> Vec<String> {
        let line = |s: Span| (s.file, self.session.sources.line_column(s.file, s.start).0);
        let own = row.slot.site.and_then(|s| s.span).map(line);
        let others: BTreeSet<_> = row.slot.others.iter().map(|s| line(*s)).collect();
        let others = others.into_iter().filter(|l| Some(*l) != own);
        let text = |(file, line)| match own {
            Some((f, _)) if f == file => format!("{line}"),
            _ => format!("{}:{line}", self.session.sources.name(file)),
        };
        others.map(text).collect()
    }
    /// How a row is run, in words.
    pub(crate) fn how(&self, row: &Row) -> String {
        let form = row.slot.form;
        let words = [(form.in_lanes, "lanes"), (form.in_parts && self.profile.threads > 1, "threads")];
        words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    }
    /// What was measured, on one line.
    pub(crate) fn head(&self) -> String {
        let p = &self.profile;
        format!(
            "{}, run by {} on {} thread{}, {} times",
            self.what,
            p.executor.name(),
            p.threads,
            if p.threads == 1 { "" } else { "s" },
            p.runs
        )
    }
    /// What looking cost, and how much it saw.
    pub(crate) fn honesty(&self) -> String {
        let p = &self.profile;
        let more = 100.0 * (p.clocked_seconds / p.plain_seconds.max(f64::MIN_POSITIVE) - 1.0);
        format!(
            "a call takes {} without clocks, {} with them ({more:+.0} %); the constructs below are {:.0} % of the time with them; at most {} of workspace",
            time(p.plain_seconds),
            time(p.clocked_seconds),
            100.0 * p.covered(),
            bytes(p.peak_bytes)
        )
    }
    /// A piece of advice as a sentence.
    pub(crate) fn advised(&self, a: &Advice) -> String {
        let row = &self.profile.rows[a.row];
        let what = match self.place(row) {
            Some(place) => format!("{place}: {} ({})", Shown::construct(row), sweep(&row.slot)),
            None => Shown::construct(row).to_string(),
        };
        format!("{what}: {}; {}", a.found, a.remedy)
    }
    /// The rows that took time or memory, those that took most time first.
    pub(crate) fn sorted(&self) -> Vec<&Row> {
        let rows = self.profile.rows.iter().skip(1);
        let mut rows: Vec<&Row> = rows.filter(|r| r.count > 0 || r.bytes > 0).collect();
        rows.sort_by(|a, b| b.own_seconds.total_cmp(&a.own_seconds));
        rows
    }

    fn text(&self) -> String {
        let mut out = format!("{}\n{}\n\n", self.head(), self.honesty());
        let rows = self.sorted();
        let cells: Vec<[String; 8]> = rows.iter().take(SHOWN).map(|r| self.cells(r)).collect();
        let names =
            ["share", "time", "runs", "bytes", "sweep", "construct", "place", "source"].map(String::from);
        let width = |k: usize| {
            let all = cells.iter().chain([&names]).map(|row| row[k].chars().count());
            all.max().unwrap_or(0)
        };
        let widths: [usize; 8] = std::array::from_fn(width);
        for row in [&names].into_iter().chain(&cells) {
            let mut line = String::new();
            for (k, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[k] - cell.chars().count());
                // Numbers to the right, words to the left.
                line += &if k < 4 { format!("{pad}{cell}  ") } else { format!("{cell}{pad}  ") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        if rows.len() > SHOWN {
            out +=
                &format!("and {} more with less time (`--json` and `--html` have all)\n", rows.len() - SHOWN);
        }
        if !self.advice.is_empty() {
            out += "\nadvice\n";
            self.advice.iter().for_each(|a| out += &format!("  {}\n", self.advised(a)));
        }
        out
    }
    fn cells(&self, row: &Row) -> [String; 8] {
        let how = self.how(row);
        let how = if how.is_empty() { how } else { format!(" ({how})") };
        let source = self.source(row);
        let short: String = source.chars().take(SOURCE).collect();
        let cut = if short.len() < source.len() { "…" } else { "" };
        [
            format!("{:.1} %", 100.0 * self.profile.share(row)),
            time(row.own_seconds),
            row.count.to_string(),
            if row.bytes == 0 { String::new() } else { bytes(row.bytes) },
            sweep(&row.slot).to_string(),
            format!("{}{how}", Shown::construct(row)),
            self.place(row).unwrap_or_default(),
            format!("{short}{cut}"),
        ]
    }

    fn json(&self) -> Json {
        let p = &self.profile;
        let row = |r: &Row| {
            let place = r.slot.site.and_then(|s| s.span).map(|s| {
                let (line, column) = self.session.sources.line_column(s.file, s.start);
                json!({"file": self.session.sources.name(s.file), "line": line, "column": column})
            });
            json!({"parent": r.slot.parent, "construct": Shown::construct(r), "sweep": sweep(&r.slot), "place": place,
                   "source": self.source(r), "also": self.also(r), "seconds": r.seconds, "own_seconds": r.own_seconds,
                   "share": p.share(r), "runs": r.count, "bytes": r.bytes, "tape_bytes": r.tape_bytes,
                   "lanes": r.slot.form.in_lanes, "parts": r.slot.form.in_parts})
        };
        let advice = self.advice.iter().map(|a| json!({"row": a.row, "found": a.found, "remedy": a.remedy}));
        json!({"what": self.what, "executor": p.executor.name(), "threads": p.threads, "runs": p.runs,
               "plain_seconds": p.plain_seconds, "clocked_seconds": p.clocked_seconds, "covered": p.covered(),
               "peak_bytes": p.peak_bytes, "rows": p.rows.iter().map(row).collect::<Vec<_>>(),
               "advice": advice.collect::<Vec<_>>()})
    }
}

/// Seconds for people.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

/// Bytes for people.
pub(crate) fn bytes(n: u64) -> String {
    let x = n as f64;
    match n {
        n if n >= 1 << 30 => format!("{:.1} GiB", x / (1u64 << 30) as f64),
        n if n >= 1 << 20 => format!("{:.1} MiB", x / (1u64 << 20) as f64),
        n if n >= 1 << 10 => format!("{:.1} KiB", x / 1024.0),
        n => format!("{n} B"),
    }
}
