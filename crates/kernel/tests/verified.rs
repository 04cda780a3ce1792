//! The verifier has no alarm on code that the compiler makes: programs of the repository and random ones with their derivatives, lowered and scheduled.

use pullback_kernel::schedule::schedule;
use pullback_kernel::verify::verify;
use pullback_testkit::kernels::{Item, of_repository, of_seed};
use pullback_testkit::native::Programs;
use pullback_testkit::{number, on_all_processors};

/// What was looked at.
#[derive(Default)]
struct Seen {
    modules: usize,
    alarms: Vec<String>,
    instructions: usize,
    times: [f64; 3],
}

impl Seen {
    fn look(&mut self, item: &Item) {
        let clock = std::time::Instant::now;
        let start = clock();
        let Some((module, id)) = item.lowered() else { return };
        self.times[0] += start.elapsed().as_secs_f64();
        self.modules += 1;
        let note = |seen: &mut Seen, way: &str, module: &pullback_kernel::Module| {
            let start = clock();
            let verified = verify(module);
            let time = start.elapsed().as_secs_f64();
            seen.times[if way.is_empty() { 1 } else { 2 }] += time;
            let n: usize = module.functions.iter().map(|f| pullback_kernel::size(&f.body)).sum();
            if way.is_empty() {
                seen.instructions += n;
            }
            if std::env::var("SHOW").is_ok() && (time > 0.02 || verified.work as usize > 100 * n.max(100)) {
                println!("{} {way}: {n} {time:.4} {}", item.what, verified.work);
            }
            seen.alarms
                .extend(verified.alarms.iter().map(|a| format!("{} {way}: {:?} {a}", item.what, a.rule)));
        };
        note(self, "", &module);
        if std::env::var("PRINT").is_ok_and(|p| item.what.contains(&p)) {
            println!("=== {}\n{}", item.what, pullback_kernel::print(&module));
        }
        for (way, options) in item.ways(id) {
            let mut module = module.clone();
            schedule(&mut module, &options);
            let before = self.alarms.len();
            note(self, way, &module);
            if self.alarms.len() > before && std::env::var("PRINT").is_ok_and(|p| item.what.contains(&p)) {
                println!("{}\n{}", self.alarms[before], pullback_kernel::print(&module));
            }
        }
    }
    fn of(items: impl IntoIterator<Item = Item>) -> Seen {
        let mut seen = Seen::default();
        items.into_iter().for_each(|item| seen.look(&item));
        seen
    }
    fn and(mut self, other: Seen) -> Seen {
        self.modules += other.modules;
        self.alarms.extend(other.alarms);
        self.instructions += other.instructions;
        for (a, b) in self.times.iter_mut().zip(other.times) {
            *a += b;
        }
        self
    }
}

fn report(seen: Seen) {
    println!(
        "{} modules, {} instructions, {:?}, {} alarms",
        seen.modules,
        seen.instructions,
        seen.times,
        seen.alarms.len()
    );
    let mut rules = std::collections::BTreeMap::<&str, (usize, Vec<&String>)>::new();
    for a in &seen.alarms {
        let rule = ["Unset", "Memory", "Mark", "Escape", "Leaves", "Type", "Lanes", "Counter", "Fold"]
            .into_iter()
            .find(|r| a.contains(&format!(": {r} ")))
            .unwrap();
        let e = rules.entry(rule).or_default();
        e.0 += 1;
        if e.1.len() < 8 && e.1.last().is_none_or(|l| l[..20.min(l.len())] != a[..20.min(a.len())]) {
            e.1.push(a)
        };
    }
    for (r, (n, e)) in rules {
        println!("## {r} {n}");
        for e in e {
            println!("   {e}")
        }
    }
    let most = number("MOST", 20) as usize;
    assert!(seen.alarms.is_empty(), "{}", seen.alarms[..seen.alarms.len().min(most)].join("\n"));
}

#[test]
fn programs_of_the_repository_keep_the_rules() {
    let seen = on_all_processors(of_repository(), |item| Seen::of([item]));
    report(seen.into_iter().fold(Seen::default(), Seen::and));
}

#[test]
fn random_programs_keep_the_rules() {
    let (count, seed) = (number("COUNT", 60), number("SEED", 0));
    let of = |seed: u64| {
        let programs = if seed.is_multiple_of(2) { Programs::usual() } else { Programs::endings() };
        Seen::of(of_seed(&programs, seed))
    };
    report(on_all_processors(seed..seed + count, of).into_iter().fold(Seen::default(), Seen::and));
}
