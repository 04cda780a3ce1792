//! What is called injective is, by brute force: coordinates of random nests.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_opt::{Affine, Polynomial, is_injective};
use std::collections::BTreeSet;

/// A dimension, by its number.
type Dim = usize;

/// A small generator of numbers: the same sequence in every run.
struct Numbers(u64);
impl Numbers {
    fn below(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n) as i64
    }
}

/// Brute force: every point of the nest, and whether two have the same coordinates.
fn distinct(coordinates: &[(i64, Vec<i64>)], extents: &[i64]) -> bool {
    let mut seen = BTreeSet::new();
    let total: i64 = extents.iter().product();
    (0..total).all(|mut k| {
        let mut point = Vec::new();
        for n in extents {
            point.push(k % n);
            k /= n;
        }
        let place: Vec<i64> = coordinates
            .iter()
            .map(|(rest, strides)| rest + strides.iter().zip(&point).map(|(s, p)| s * p).sum::<i64>())
            .collect();
        seen.insert(place)
    })
}

fn random(numbers: &mut Numbers) -> (Vec<(i64, Vec<i64>)>, Vec<i64>) {
    let dims = 1 + numbers.below(3) as usize;
    let rows = 1 + numbers.below(3);
    let extents: Vec<i64> = (0..dims).map(|_| 1 + numbers.below(4)).collect();
    let stride = |numbers: &mut Numbers| match numbers.below(3) {
        0 => 0,
        1 => numbers.below(5) - 2,
        _ => numbers.below(25) - 12,
    };
    let rows =
        (0..rows).map(|_| (numbers.below(5) - 2, (0..dims).map(|_| stride(numbers)).collect())).collect();
    (rows, extents)
}

fn affine_of((rest, strides): &(i64, Vec<i64>)) -> Affine {
    let strides = strides.iter().enumerate().filter(|(_, s)| **s != 0);
    Affine {
        rest: Polynomial::constant(*rest),
        strides: strides.map(|(d, s)| (d, Polynomial::constant(*s))).collect(),
    }
}

/// Of random nests: one that is called injective and is not; else how many are called so, and how many are.
fn claims(
    is_injective: impl Fn(&[Affine], &BTreeSet<Dim>, &dyn Fn(Dim) -> Polynomial) -> bool,
) -> Result<(u32, u32), String> {
    let mut numbers = Numbers(1);
    let (mut yes, mut really) = (0, 0);
    for _ in 0..20_000 {
        let (rows, extents) = random(&mut numbers);
        let coordinates: Vec<Affine> = rows.iter().map(affine_of).collect();
        let dims = (0..extents.len()).collect();
        let extent = |d: Dim| Polynomial::constant(extents[d]);
        let claim = is_injective(&coordinates, &dims, &extent);
        let truth = distinct(&rows, &extents);
        if claim && !truth {
            return Err(format!("{rows:?} over {extents:?} is not injective"));
        }
        yes += u32::from(claim);
        really += u32::from(truth);
    }
    Ok((yes, really))
}

#[test]
fn what_is_called_injective_is() {
    let (yes, really) = claims(is_injective).unwrap();
    // The conditions are not complete, but they are not empty either.
    assert!(yes * 10 > really * 6, "{yes} of {really} injective nests are recognised");
}

#[test]
fn conditions_that_claim_too_much_are_found_out() {
    // Other conditions than those of the rule: any nest, and one coordinate that tells two dimensions apart at most.
    assert!(claims(|_, _, _| true).is_err());
    assert!(claims(|c, dims, extent| dims.len() < 2 || is_injective(c, dims, extent)).is_err());
}

#[test]
fn strides_that_only_the_run_knows_may_be_zero() {
    // `p * s` and `p * s + q` with `s = 0` are the same everywhere.
    let extent = |_: Dim| Polynomial::constant(2);
    let s = Polynomial::of(7);
    let one = [Affine { rest: Polynomial::default(), strides: [(0, s.clone())].into_iter().collect() }];
    let two = [Affine {
        rest: Polynomial::default(),
        strides: [(0, s), (1, Polynomial::constant(1))].into_iter().collect(),
    }];
    assert!(!distinct(&[(0, vec![0])], &[2]) && !distinct(&[(0, vec![0, 1])], &[2, 2]));
    let (first, both): (BTreeSet<Dim>, BTreeSet<Dim>) = ([0].into(), [0, 1].into());
    assert!(!is_injective(&one, &first, &extent));
    assert!(!is_injective(&two, &both, &extent));
}

/// Strides that are products of extents which only the run knows: every value of the extents.
#[test]
fn mixed_radix_with_extents_as_variables_is_injective_for_all_of_them() {
    let (m, n) = (Polynomial::of(7), Polynomial::of(8));
    let extent = |d: Dim| if d == 0 { m.clone() } else { n.clone() };
    let row = |a: Polynomial, b: Polynomial| {
        [Affine { rest: Polynomial::default(), strides: [(0, a), (1, b)].into_iter().collect() }]
    };
    let dims: BTreeSet<Dim> = [0, 1].into();
    let one = Polynomial::constant(1);
    let right = row(n.clone(), one.clone());
    assert!(is_injective(&right, &dims, &extent));
    let wrong = [row(m.clone(), one.clone()), row(one.clone(), n.clone()), row(one.clone(), one)];
    for coordinates in wrong {
        assert!(!is_injective(&coordinates, &dims, &extent));
    }
    // `p * m + q` with `p < m`, `q < n` repeats itself at m = 1, n = 2: as brute force says.
    assert!(!distinct(&[(0, vec![1, 1])], &[2, 2]));
    for (m, n) in [(1, 1), (1, 4), (2, 3), (4, 2)] {
        assert!(distinct(&[(0, vec![n, 1])], &[m, n]));
    }
}
