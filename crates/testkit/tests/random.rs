//! 2,000 random programs with all properties, and what they contain.

use pullback_testkit::properties::Property;
use pullback_testkit::soak::soak;

#[test]
fn all_properties_hold_on_random_programs() {
    let report = soak(2_000, 0);
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
        (report.zero_gradients as f64) < 0.1 * report.gradients as f64,
        "too many arguments without influence:\n{}",
        report.render()
    );
    assert!(report.unsupported < 40, "too much is unsupported:\n{}", report.render());
    let least = [
        (Property::Checked, 1_900),
        (Property::RoundTrip, 2_000),
        (Property::OptPreserves, 1_900),
        (Property::Primal, 1_900),
        (Property::Adjoint, 1_900),
        (Property::Agree, 1_900),
        (Property::Outside, 1_000),
        (Property::Linear, 1_900),
        (Property::Symmetric, 150),
        (Property::Many, 1_800),
        (Property::Schedules, 1_900),
        (Property::Cost, 1_500),
        (Property::Checkpoints, 600),
        (Property::Tape, 1_900),
        (Property::InPlace, 1_900),
    ];
    for (property, least) in least {
        assert!(
            report.holds(property) >= least,
            "{} held only {} times:\n{}",
            property.name(),
            report.holds(property),
            report.render()
        );
    }
}
