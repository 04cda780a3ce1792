//! Accesses of memory: that they stay inside is shown for the code that the compiler makes, and not where it is wrong.
//!
//! The files of `accesses/` are small functions, right ones and wrong ones. Their first line is what is expected: how many claims are shown, and why others are not.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use crate::common::claims::{File, files};
use crate::common::compiled;
use pullback_kernel::verify::bounds::{Kind, Reason, look};
use pullback_kernel::{lower, print, read};
use pullback_testkit::draws::draws;
use pullback_testkit::kernels::{Item, of_repository, of_seed};
use pullback_testkit::on_all_processors;
use std::collections::BTreeMap;

// --- small functions ---

#[test]
fn small_functions_stay_inside_where_they_say() {
    let (mut right, mut wrong) = (0, BTreeMap::new());
    for File { path, module, expected } in files("accesses") {
        let claims = look(&module);
        let reasons = claims.not_shown.iter().map(|open| format!("{:?}", open.reason)).collect();
        assert_eq!((claims.count_shown(), reasons), expected, "{path}: {:#?}", claims.not_shown);
        right += usize::from(claims.not_shown.is_empty());
        claims.not_shown.iter().for_each(|open| *wrong.entry(open.reason).or_insert(0) += 1);
    }
    assert!(right > 15 && wrong.len() == 4, "{right} are right; {wrong:?}");
}

#[test]
fn an_access_that_is_not_shown_is_told() {
    let module = read(include_str!("accesses/wrong_next.kernel")).expect("a text");
    let claims = look(&module);
    let [open] = &claims.not_shown[..] else { panic!("{claims:?}") };
    assert_eq!(open.to_string(), "function f: store(a_2, next_4, 0.0f64): Access is not shown: End");
    assert_eq!(open.path, ["i_3 = for(0i64, n_0)", "store(a_2, next_4, 0.0f64)"]);
}

// --- programs ---

/// What was looked at.
#[derive(Default)]
struct Seen {
    modules: usize,
    /// Those of which all claims are shown.
    whole: usize,
    /// For each, which share of its claims is not shown.
    shares: Vec<f64>,
    shown: BTreeMap<Kind, usize>,
    open: BTreeMap<(Kind, Reason), Vec<String>>,
}

impl Seen {
    fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Seen {
        let mut seen = Seen::default();
        for item in items {
            let Some((module, _)) = item.lowered() else { continue };
            let claims = look(&module);
            seen.modules += 1;
            seen.whole += usize::from(claims.not_shown.is_empty());
            let (shown, open) = (claims.count_shown() as f64, claims.not_shown.len() as f64);
            seen.shares.push(open / (shown + open).max(1.0));
            for (kind, count) in claims.shown {
                *seen.shown.entry(kind).or_default() += count;
            }
            for open in claims.not_shown {
                let text = format!("{}: {open}", item.what);
                seen.open.entry((open.kind, open.reason)).or_default().push(text);
            }
        }
        seen
    }
    fn and(mut self, other: Seen) -> Seen {
        self.modules += other.modules;
        self.whole += other.whole;
        self.shares.extend(other.shares);
        for (kind, count) in other.shown {
            *self.shown.entry(kind).or_default() += count;
        }
        for (why, open) in other.open {
            self.open.entry(why).or_default().extend(open);
        }
        self
    }
    fn count(&self) -> usize {
        self.shown.values().sum()
    }
    /// All together. Of each reason why a claim is not shown the first ones are printed.
    fn all(all: Vec<Seen>) -> Seen {
        let seen = all.into_iter().fold(Seen::default(), Seen::and);
        let open: usize = seen.open.values().map(Vec::len).sum();
        let (shown, whole) = (seen.count(), seen.whole);
        println!(
            "{} modules, {whole} of them wholly: {shown} claims are shown, {open} are not",
            seen.modules
        );
        println!("shown: {:?}", seen.shown);
        for ((kind, reason), open) in &seen.open {
            println!("{kind:?}, {reason:?}: {}", open.len());
            open.iter().take(8).for_each(|text| println!("    {text}"));
        }
        seen
    }
    /// How many claims of a thousand are not shown.
    fn open_of_thousand(&self) -> usize {
        let open: usize = self.open.values().map(Vec::len).sum();
        1_000 * open / (self.count() + open)
    }
    /// The same in the mean of the modules, so that a large one counts as much as a small one.
    fn mean_of_thousand(&self) -> f64 {
        1_000.0 * self.shares.iter().sum::<f64>() / self.shares.len() as f64
    }
}

#[test]
fn accesses_of_programs_of_the_repository_are_shown() {
    let seen = Seen::all(on_all_processors(of_repository(), |item| Seen::of([item])));
    assert!(seen.open_of_thousand() <= 97, "{} of a thousand claims are not shown", seen.open_of_thousand());
    assert!(
        seen.modules > 900 && seen.count() > 10_000,
        "{} claims of {} modules",
        seen.count(),
        seen.modules
    );
}

#[test]
fn accesses_of_random_programs_are_shown() {
    let mut seeds = draws("accesses", (15, 60), 5);
    let all = on_all_processors(&mut seeds, |seed| Seen::of(&of_seed(seed)));
    let seen = Seen::all(all);
    let open = seen.mean_of_thousand();
    println!("in the mean of the modules {open:.0} of a thousand claims are not shown");
    assert!(open <= 100.0, "{open} of a thousand claims are not shown");
    assert!(seen.count() > 100 * seeds.drawn() as usize, "{} claims", seen.count());
}

// --- what the lowering asks ---

/// All claims of a program are shown.
fn all_shown(text: &str) {
    let (program, f) = compiled(text);
    let (module, _) = lower(&program, f).expect("native");
    let claims = look(&module);
    assert!(claims.not_shown.is_empty(), "{}\n{}", claims.not_shown[0], print(&module));
    assert!(claims.count_shown() > 0);
}

#[test]
fn indices_are_asked_about() {
    all_shown("entry main [n][m] (xs: [n][m]f64) (i: i64) (j: i64) : f64 = xs[i, j]");
    all_shown("entry main [n] (xs: *[n]f64) (i: i64) : [n]f64 = xs with [i] = 1.0");
}

#[test]
fn rows_that_are_gathered_are_asked_about() {
    all_shown("entry main [n][m][k] (xs: [n][m]f64) (is: [k]i64) : [k][m]f64 = map (\\i -> xs[i]) is");
}

#[test]
fn slices_are_asked_about() {
    all_shown("entry main [n] (xs: [n]f64) (i: i64) (j: i64) : []f64 = map (+ 1.0) xs[i:j]");
}

#[test]
fn elements_are_counted_before_they_are_made() {
    all_shown(
        "entry main (n: i64) (m: i64) (x: f64) : [][]f64 = tabulate_2d n m (\\i j -> x + f64.i64 (i * j))",
    );
    all_shown("entry main [n][m] (xs: [n]f64) (ys: [m]f64) : []f64 = concat xs ys");
}

#[test]
fn bins_and_places_outside_are_left_out() {
    all_shown(
        "entry main [n] (is: [n]i64) (xs: [n]f64) : [8]f64 = reduce_by_index (replicate 8 0.0) (+) 0.0 is xs",
    );
    all_shown("entry main [n] (is: [n]i64) (xs: [n]f64) : [8]f64 = scatter (replicate 8 0.0) is xs");
}
