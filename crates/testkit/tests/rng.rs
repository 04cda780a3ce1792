//! The generator of random numbers: decisions by bytes, and weights.

use pullback_testkit::rng::Rng;

#[test]
fn exhausted_bytes_decide_for_the_first_alternative() {
    let mut rng = Rng::from_bytes(vec![]);
    assert_eq!(rng.below(7), 0);
    assert!(!rng.chance(0.9));
    assert_eq!(rng.weighted(&[1.0, 2.0]), 0);
}

#[test]
fn weights_are_respected() {
    let mut rng = Rng::new(1);
    let mut counts = [0; 3];
    for _ in 0..3000 {
        counts[rng.weighted(&[1.0, 0.0, 2.0])] += 1;
    }
    assert_eq!(counts[1], 0);
    assert!((800..1200).contains(&counts[0]), "{counts:?}");
}
