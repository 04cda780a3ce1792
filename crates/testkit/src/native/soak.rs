//! Many random programs through native executors, with counts.

use super::{Programs, Verdict, Way, examine};
use crate::on_all_processors;
use std::collections::BTreeMap;

/// What came of some programs.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// How often each way came to each verdict: the names of both.
    pub verdicts: BTreeMap<(String, String), u64>,
    /// Seeds and what was wrong.
    pub failures: Vec<(u64, String)>,
}

impl Counts {
    /// Those of both.
    pub fn extend(&mut self, other: Counts) {
        for (key, n) in other.verdicts {
            *self.verdicts.entry(key).or_default() += n;
        }
        self.failures.extend(other.failures);
        self.failures.sort();
    }
    /// How often there was a verdict, all ways together.
    pub fn of(&self, verdict: &str) -> u64 {
        self.verdicts.iter().filter(|((_, v), _)| v == verdict).map(|(_, n)| n).sum()
    }
    /// How often functions were run and compared.
    pub fn compared(&self) -> u64 {
        ["bits", "rounded", "unstable", "lost"].iter().map(|v| self.of(v)).sum()
    }
    /// A line for each way.
    pub fn render(&self) -> String {
        let mut lines: BTreeMap<&str, String> = BTreeMap::new();
        for ((way, verdict), n) in &self.verdicts {
            *lines.entry(way).or_default() += &format!(" {verdict} {n},");
        }
        lines.iter().map(|(way, text)| format!("{way}:{}\n", text.trim_end_matches(','))).collect()
    }
}

/// Ways to run number `k` of the programs of a seed, from both numbers.
pub type Ways<'a> = &'a (dyn Fn(u64, usize) -> Vec<Way> + Sync);

/// What is run of the program of a seed.
pub fn one(programs: &Programs, seed: u64, ways: Ways<'_>) -> Counts {
    let mut counts = Counts::default();
    let others = programs.by.as_ref().map_or_else(Vec::new, |by| programs.against_fast_chad(by, seed));
    for verdict in others {
        let way = "interpreter, Fast CHAD".to_string();
        *counts.verdicts.entry((way, verdict.name().into())).or_default() += 1;
        if let Verdict::Fails(text) = verdict {
            counts.failures.push((seed, format!("{text:.3000}")));
        }
    }
    for (k, run) in programs.runs_of_seed(seed).into_iter().enumerate() {
        for way in ways(seed, k) {
            let verdict = examine(&run, way);
            *counts.verdicts.entry((way.name().into(), verdict.name().into())).or_default() += 1;
            if let Verdict::Fails(text) = verdict {
                counts.failures.push((seed, format!("{}, {way:?}: {text:.3000}", run.what)));
            }
        }
    }
    counts
}

/// The programs of some seeds, on all processors.
pub fn many(
    programs: &Programs,
    seeds: impl IntoIterator<Item = u64, IntoIter: Send>,
    ways: Ways<'_>,
) -> Counts {
    let mut all = Counts::default();
    on_all_processors(seeds, |seed| one(programs, seed, ways)).into_iter().for_each(|c| all.extend(c));
    all
}
