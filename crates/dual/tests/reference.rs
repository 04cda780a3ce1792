//! Values and partial derivatives against numbers that mpmath made (`reference.py`), at arguments of every size.

use pullback_dual::{Dual, Scalar, Var, derivative, grad, gradient_forward, value_and_grad};

#[path = "common/functions.rs"]
mod functions;
use functions::{binary, unary};

const REFERENCE: &str = include_str!("reference.txt");

/// The distance in units of the last place of what is right; next to zero, of the least number. A quotient of a quotient (`div`, `atan2`)
/// cannot be better than the first one, which may lie next to zero: the unit is at least the least number over `divisor`.
fn ulps(found: f64, right: f64, divisor: f64) -> f64 {
    if found == right {
        return 0.0;
    }
    let least = f64::from_bits(1);
    let unit = (right.abs().next_up() - right.abs()).max(least).max(least / divisor);
    if right.is_infinite() { f64::INFINITY } else { (found - right).abs() / unit }
}

/// What a partial derivative is divided by last.
fn divisor(name: &str, arguments: &[f64]) -> f64 {
    match (name, arguments) {
        ("div", [_, y]) => y.abs(),
        ("atan2", [x, y]) => x.hypot(*y),
        _ => f64::INFINITY,
    }
}

/// What is allowed, in units of the last place: `f64`, then `f32` (the reference is rounded to its argument and its result).
///
/// A partial derivative is one to four operations on functions that err by 1 or 2 units; where a power of a function enters (`cbrt`, `tan`, `tanh`), its error counts
/// twice and more.
fn allowed(name: &str, is_value: bool) -> f64 {
    match (name, is_value) {
        (_, true) => 3.0,
        ("tanh" | "sigmoid" | "tan", false) => 16.0,
        _ => 4.0,
    }
}

struct Line<'a> {
    name: &'a str,
    arguments: Vec<f64>,
    value: f64,
    partials: Vec<f64>,
}

fn lines() -> impl Iterator<Item = Line<'static>> {
    REFERENCE.lines().map(|line| {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        let bits = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).expect("bits"));
        let mut numbers: Vec<f64> = words.map(bits).collect();
        let arity = (numbers.len() - 1) / 2;
        let partials = numbers.split_off(arity + 1);
        let value = numbers.pop().expect("a value");
        Line { name, arguments: numbers, value, partials }
    })
}

#[test]
fn values_and_partial_derivatives_are_accurate_at_arguments_of_every_size() {
    let mut worst: Vec<(&str, f64, f64)> = Vec::new();
    let mut compared = 0;
    for Line { name, arguments, value, partials } in lines() {
        let (found, reverse, forward) = match arguments[..] {
            [x] => {
                let (value, d) = value_and_grad(|x: &Var<'_>| unary(name, *x), &x);
                (value, vec![d], vec![derivative(|x| unary(name, x), x).1])
            }
            [x, y] => {
                let (value, d) = value_and_grad(|&[x, y]| binary(name, x, y), &[x, y]);
                let forward = gradient_forward::<2, _, _, _>(
                    |&[x, y]: &[Dual<'_, f64, 2>; 2]| binary(name, x, y),
                    &[x, y],
                );
                (value, d.to_vec(), forward.1.to_vec())
            }
            _ => panic!("{name}: {arguments:?}"),
        };
        let divisor = divisor(name, &arguments);
        let error = ulps(found, value, f64::INFINITY);
        assert!(error <= allowed(name, true), "{name} {arguments:?}: {found:e}, right is {value:e}");
        for (found, right) in reverse.iter().chain(&forward).zip(partials.iter().cycle()) {
            let error = ulps(*found, *right, divisor);
            assert!(
                error <= allowed(name, false),
                "{name} {arguments:?}: partial derivative {found:e}, right is {right:e}"
            );
        }
        let off = reverse.iter().zip(&partials).map(|(a, b)| ulps(*a, *b, divisor)).fold(0.0, f64::max);
        match worst.iter_mut().find(|(n, ..)| *n == name) {
            Some(row) => *row = (name, row.1.max(error), row.2.max(off)),
            None => worst.push((name, error, off)),
        }
        compared += 1;
    }
    assert!(compared > 2500, "{compared} lines");
    assert_eq!(worst.len(), 27, "{worst:?}");
}

/// In single precision formulas overflow and cancel elsewhere.
#[test]
fn single_precision_is_as_accurate() {
    let mut compared = 0;
    for Line { name, arguments, value, partials } in lines() {
        let exact = |x: &f64| f64::from(*x as f32) == *x;
        if !arguments.iter().all(exact) {
            continue;
        }
        let near = |found: f32, right: f64, allowed: f64| {
            let right = right as f32;
            let unit = f64::from((right.abs().next_up() - right.abs()).max(f32::from_bits(1)));
            found == right || (f64::from(found) - f64::from(right)).abs() <= allowed * unit
        };
        let x: Vec<f32> = arguments.iter().map(|x| *x as f32).collect();
        let (found, d) = match x[..] {
            [x] => {
                let (value, d) = value_and_grad(|x: &Var<'_, f32>| unary(name, *x), &x);
                (value, vec![d])
            }
            [x, y] => {
                let (value, d) = value_and_grad(|&[x, y]| binary(name, x, y), &[x, y]);
                (value, d.to_vec())
            }
            _ => panic!("{name}: {arguments:?}"),
        };
        assert!(near(found, value, allowed(name, true)), "{name} {x:?}: {found:e}, right is {value:e}");
        for (found, right) in d.iter().zip(&partials) {
            assert!(
                near(*found, *right, allowed(name, false)),
                "{name} {x:?}: {found:e}, right is {right:e}"
            );
        }
        compared += 1;
    }
    assert!(compared > 1000, "{compared} lines");
    assert_eq!(grad(|x| x.asinh(), &1e30f32), 1e-30);
}
