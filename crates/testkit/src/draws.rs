//! Seeds of random tests: other ones every day, for as long as a budget of time allows.
//!
//! A test in the gate draws at least as many programs as its claims need, and then more until its seconds are used up or its full count is
//! reached. The first seed is that of the day, so that every day examines other programs, and all runs of a day examine the same ones. What
//! was drawn is printed with the command that repeats it. `SEED` and `COUNT` of the environment decide instead, without a limit of time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seeds between the first ones of two days.
const DAY: u64 = 1_000_000;

/// The seeds that one test draws; an iterator.
#[derive(Debug)]
pub struct Draws {
    name: &'static str,
    first: u64,
    taken: u64,
    least: u64,
    most: u64,
    begin: Instant,
    time: Duration,
}

/// The seeds of a test: from `least` on as many as take so many seconds, and at most `most`.
///
/// The environment's `COUNT` replaces both numbers, `SEED` the first seed (then `COUNT` is `most` if it is not given).
pub fn draws(name: &'static str, (least, most): (u64, u64), seconds: u64) -> Draws {
    let given = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let (seed, count) = (given("SEED"), given("COUNT"));
    let exactly = count.or(seed.map(|_| most));
    let first = seed.unwrap_or_else(|| if count.is_some() { 0 } else { day() * DAY });
    let (least, most) = exactly.map_or((least, most), |n| (n, n));
    Draws::from(name, first, (least, most), Duration::from_secs(seconds))
}

/// Days since 1970, in universal time. A clock before that says 0.
fn day() -> u64 {
    day_of(SystemTime::now())
}

/// The day of a time.
pub fn day_of(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()) / 86_400
}

/// Which of so many shares of a list a test takes: another one every day, or `SEED`. It is printed.
pub fn share(of: usize) -> usize {
    let share = crate::number("SEED", day()) as usize % of;
    eprintln!("share {share} of {of}; again: SEED={share} STEP={of}");
    share
}

/// The share of a list that is due today ([`share`]): one item of so many, and of how many. `STEP` decides instead; `STEP=1` takes all.
pub fn some_of<T>(items: impl IntoIterator<Item = T>, step: usize) -> (Vec<T>, usize) {
    let step = crate::number("STEP", step as u64) as usize;
    (items.into_iter().skip(share(step)).step_by(step).collect(), step)
}

impl Draws {
    /// Seeds from this one on, whatever the day and the environment say.
    pub fn from(name: &'static str, first: u64, (least, most): (u64, u64), time: Duration) -> Draws {
        Draws { name, first, taken: 0, least, most, begin: Instant::now(), time }
    }
    /// How many have been drawn.
    pub fn drawn(&self) -> u64 {
        self.taken
    }
}

impl Iterator for Draws {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        let goes_on = self.taken < self.least || self.taken < self.most && self.begin.elapsed() < self.time;
        goes_on.then(|| {
            self.taken += 1;
            self.first + self.taken - 1
        })
    }
}

impl Drop for Draws {
    fn drop(&mut self) {
        let Draws { name, first, taken, .. } = self;
        let seconds = self.begin.elapsed().as_secs_f64();
        eprintln!("{name}: {taken} seeds from {first} in {seconds:.1} s; again: SEED={first} COUNT={taken}");
    }
}
