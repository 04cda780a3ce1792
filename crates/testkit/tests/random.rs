//! Random programs with all properties, and what they contain.

use pullback_ad::fast_chad;
use pullback_core::Value;
use pullback_driver::session::{Session, Settings};
use pullback_testkit::draws::draws;
use pullback_testkit::generate::Config;
use pullback_testkit::generate::own_rules::own_rules;
use pullback_testkit::nested::{Compared, Function, agree};
use pullback_testkit::on_all_processors;
use pullback_testkit::properties::{Property, Stop, case_of_seed, mixes};
use pullback_testkit::rng::Rng;
use pullback_testkit::soak::{soak, soak_with};
use pullback_testkit::stops;

#[test]
fn all_properties_hold_on_random_programs() {
    let report = soak(draws("properties", (350, 2_000), 9));
    println!("{}", report.render());
    assert!(report.failures.is_empty(), "{}", report.render());

    // What was examined. A generator that stops making something, or a property that stops applying, fails here.
    let shares = [
        ("map", 0.6),
        ("nested map", 0.2),
        ("reduce", 0.4),
        ("scan", 0.2),
        ("hist", 0.15),
        ("scatter", 0.15),
        ("for loop", 0.4),
        ("while loop", 0.15),
        ("conditional", 0.4),
        ("sum", 0.4),
        ("tuple", 0.4),
        ("update", 0.3),
        ("indexing", 0.5),
        ("shape operation", 0.4),
        ("general operator", 0.3),
        ("call", 0.05),
        ("with_acc", 0.08),
        ("vjp or jvp", 0.05),
        ("empty array", 0.1),
        ("ties", 0.08),
        ("f32", 0.04),
    ];
    for (feature, least) in shares {
        assert!(report.share(feature) >= least, "too few programs with {feature}:\n{}", report.render());
    }
    assert!(
        (report.zero_gradients as f64) < 0.13 * report.gradients as f64,
        "too many arguments without influence:\n{}",
        report.render()
    );
    assert!(50 * report.unsupported < report.programs, "too much is unsupported:\n{}", report.render());
    // Of all programs.
    let least = [
        (Property::Checked, 0.95),
        (Property::RoundTrip, 1.0),
        (Property::OptPreserves, 0.95),
        (Property::Primal, 0.95),
        (Property::Adjoint, 0.95),
        (Property::Agree, 0.95),
        (Property::Outside, 0.5),
        (Property::Linear, 0.95),
        (Property::Symmetric, 0.075),
        (Property::Mixes, 0.008),
        (Property::Many, 0.9),
        (Property::Schedules, 0.95),
        (Property::Cost, 0.75),
        (Property::Checkpoints, 0.3),
        (Property::Tape, 0.95),
        (Property::InPlace, 0.95),
    ];
    for (property, least) in least {
        assert!(
            report.holds(property) as f64 >= least * report.programs as f64,
            "{} held only {} times:\n{}",
            property.name(),
            report.holds(property),
            report.render()
        );
    }
}

/// Bodies that end in branches about what was made before them: all properties but those of cost, and second derivatives by all mixes.
#[test]
fn programs_that_end_in_branches_have_their_derivatives() {
    let seeds = || draws("endings", (48, 64), 8);
    let properties: Vec<Property> = Property::ALL
        .into_iter()
        .filter(|p| !matches!(p, Property::Cost | Property::Checkpoints | Property::Values))
        .collect();
    let report = soak_with(seeds(), &Config::endings(), &properties, &fast_chad::vjp);
    println!("{}", report.render());
    assert!(report.failures.is_empty(), "{}", report.render());
    let shares =
        [("branch at the end", 0.9), ("sum", 0.6), ("call", 0.3), ("recursion", 0.12), ("tuple", 0.4)];
    for (feature, least) in shares {
        assert!(report.share(feature) >= least, "too few programs with {feature}:\n{}", report.render());
    }
    let mut seeds = seeds();
    let all = on_all_processors(&mut seeds, |seed| (seed, mixes(&case_of_seed(seed, &Config::endings()))));
    let count = seeds.drawn();
    let held = all.iter().filter(|(_, check)| check.is_ok()).count() as u64;
    println!("second derivatives of {held} programs");
    let failed = |(seed, check): (u64, Result<(), Stop>)| match check {
        Err(Stop::Fail(text)) => Some(format!("{seed}: {text}")),
        _ => None,
    };
    let failures: Vec<String> = all.into_iter().filter_map(failed).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(16 * held > count, "too few second derivatives");
}

/// Functions with rules of their own, each the true derivative: second derivatives in all mixes of modes, and for a third of the
/// programs third ones, are those of the same program without the rules.
#[test]
fn own_rules_change_no_derivative() {
    let mut seeds = draws("own rules", (20, 60), 3);
    let checked = on_all_processors(&mut seeds, |seed| {
        let made = own_rules(seed);
        let settings = || Settings { optimise: !seed.is_multiple_of(4), ..Settings::default() };
        let compiled = |text: &str| {
            let session = Session::compile("rules.fut", text, settings());
            session.unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e.render()))
        };
        let sessions = [compiled(&made.with), compiled(&made.without)];
        let entries = sessions.each_ref().map(|s| s.entry(None).expect("one entry point"));
        let functions: Vec<Function<'_>> = sessions
            .iter()
            .zip(&entries)
            .map(|(session, entry)| Function { session, entry, selected: &[true; 3], differences: false })
            .collect();
        let mut rng = Rng::new(seed ^ 0x5eed);
        let mut number = || rng.signed();
        let args =
            vec![Value::f64(number()), Value::f64(number()), Value::f64s(&[number(), number(), number()])];
        let mut compared = Compared::default();
        for order in if seed.is_multiple_of(3) { 2..=3 } else { 2..=2 } {
            match agree(&functions, order, std::slice::from_ref(&args), &[]) {
                Ok(more) => compared += more,
                Err(e) => panic!("seed {seed}: {e}\n{}", made.with),
            }
        }
        (made.made, compared)
    });
    let count = seeds.drawn();
    let made = checked.iter().fold([0; 3], |sum: [usize; 3], (m, _)| std::array::from_fn(|k| sum[k] + m[k]));
    let compared = checked.iter().fold(Compared::default(), |mut sum, (_, c)| {
        sum += *c;
        sum
    });
    println!("with_rule, with_vjp, with_vjp_tape: {made:?}; {compared:?}");
    assert!(made.iter().all(|n| *n as u64 > count / 2), "{made:?}");
    assert!(compared.left_out == 0 && compared.values as u64 >= 8 * count, "{compared:?}");
}

/// A derivative stops where its function stops, as it is written, with the same kind of error at the same place, and nowhere else.
#[test]
fn derivatives_stop_where_their_functions_stop() {
    let mut seeds = draws("stops", (30, 100), 4);
    let mut all = stops::Compared::default();
    on_all_processors(&mut seeds, stops::one).into_iter().for_each(|one| all.extend(one));
    let count = seeds.drawn();
    for (way, [stop, end, refused]) in &all.ways {
        println!("{way}: {stop} stop, {end} do not, {refused} programs refused");
    }
    all.failures.iter().for_each(|f| println!("{}", f.lines().take(2).collect::<Vec<_>>().join("; ")));
    let some: Vec<&str> = all.failures.iter().take(3).map(String::as_str).collect();
    assert!(some.is_empty(), "{} of {count}:\n{}", all.failures.len(), some.join("\n\n"));
    let default = |way: &str| way.contains("default") && !way.contains("Llvm");
    for (way, [stop, end, _]) in all.ways.iter().filter(|(way, _)| default(way)) {
        assert!(*stop.min(end) as u64 >= count / 2, "{way}: {stop} stop, {end} do not");
    }
}
