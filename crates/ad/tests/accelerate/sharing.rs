//! What is evaluated how often, and what goes to memory.

use super::build::*;
use pullback_core::metrics::metrics;
use pullback_prim::{Op, Prim, Scalar};

/// Scalar operations of a run; the sine counts 8 of them.
fn flops(program: &pullback_ad::accelerate::language::Program, args: &[pullback_core::Value]) -> u64 {
    counted(program, args).1.flops
}
fn constructs(program: &pullback_ad::accelerate::language::Program, name: &str) -> usize {
    metrics(&lowered(program).0).count(name)
}

#[test]
fn a_binding_that_is_used_twice_is_evaluated_once() {
    let sine = Prim::Op(Op::Sin, Scalar::F64).cost();
    let xs = [reals(&[0.0; 10])];
    let b = Draft::default();
    let twice = b.program(vector(real()), |x| {
        b.alet(&b.map(|x| x.sin(), &var(x)), |a| b.zip_with(|x, y| x + y, &var(a), &var(a)))
    });
    assert_eq!(flops(&twice, &xs), 10 * (sine + 1));
    let replicated = b.program(vector(real()), |x| {
        sum(&sum(&replicate([Some(n(10)), None], &b.map(|x| x.sin(), &var(x)))))
    });
    assert!(flops(&replicated, &xs) < 10 * sine + 150);
    let indexed = b.program(vector(real()), |x| {
        b.alet(&b.map(|x| x.sin(), &var(x)), |a| b.generate(&ix([10]), |i| at1(a, &i.get(0).rem(&n(2)))))
    });
    assert!(flops(&indexed, &xs) < 10 * sine + 50);
    let folded = b.program(matrix(real()), |x| {
        b.alet(&sum(&b.map(|x| x.sin(), &var(x))), |a| b.generate(&ix([5]), |_| at1(a, &n(0))))
    });
    assert!(flops(&folded, &[reals_of(&[2, 5], &[0.0; 10])]) < 10 * sine + 50);
    let scalar = b.program(vector(real()), |x| {
        b.alet(&sum(&b.map(|x| x.sin(), &var(x))), |s| b.map(|x| x * at(s, &ix([])), &var(x)))
    });
    assert!(flops(&scalar, &xs) < 10 * sine + 50);
}

#[test]
fn a_chain_is_one_map() {
    let b = Draft::default();
    let chain = b.program(vector(real()), |x| {
        b.alet(&b.map(|x| x.sin(), &var(x)), |a| {
            b.alet(&b.map(|x| x.exp(), &var(a)), |c| b.generate(&shape(c), |i| at(c, &i) + r(1.0)))
        })
    });
    assert_eq!((constructs(&chain, "map"), constructs(&chain, "check")), (1, 0));
    // A permutation that adds has no array but its target.
    let sent = b.program(vector(real()), |x| {
        let zeros = b.generate(&shape(x), |_| r(0.0));
        b.permute(|x, y| x + y, &zeros, |i| (truth(true), i), &b.map(|x| x.sin(), &var(x)))
    });
    assert_eq!(
        (constructs(&sent, "map"), constructs(&sent, "assert"), constructs(&sent, "check")),
        (1, 0, 0)
    );
}

#[test]
fn conditions_at_counters_are_known() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        b.alet(&b.map(|x| x.sin(), &var(x)), |a| {
            b.generate(&shape(x), |i| cond(&i.get(0).lt(&size(a, 0)), &at(a, &i), &r(0.0)))
        })
    });
    assert_eq!(
        (constructs(&program, "map"), constructs(&program, "if"), constructs(&program, "lt")),
        (1, 0, 0)
    );
    // The smaller size is below both.
    let zipped = b.program_with(Vec::new(), vector(real()), |x| {
        let zipped = b.zip_with(|x, y| x + y, &var(x), &constants(&[3], &[1.0, 2.0, 3.0]));
        b.alet(&zipped, |a| b.generate(&shape(a), |i| cond(&i.get(0).lt(&size(x, 0)), &at(a, &i), &r(0.0))))
    });
    assert_eq!(constructs(&zipped, "if"), 0);
}

#[test]
fn an_unused_binding_is_not_evaluated() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        b.alet(&b.scanl1(|x, y| x + y, &var(x)), |s| b.alet(&b.map(|x| x.sin(), &var(s)), |_| var(x)))
    });
    assert_eq!((constructs(&program, "scan"), constructs(&program, "map")), (0, 0));
}

#[test]
fn of_an_alternative_in_an_expression_nothing_is_evaluated_unless_it_is_chosen() {
    let sine = Prim::Op(Op::Sin, Scalar::F64).cost();
    let b = Draft::default();
    let program = b.program(vector(real()), |x| b.map(|x| cond(&x.lt(&r(0.0)), &x.sin(), &r(0.0)), &var(x)));
    assert_eq!(flops(&program, &[reals(&[1.0, -1.0, 1.0, 1.0])]), sine + 4);
}

/// A long chain of bindings costs no stack, and no more than its length.
#[test]
fn a_long_let_is_lowered_in_a_loop() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        let mut bindings = Vec::new();
        let mut last = x.clone();
        for _ in 0..3000 {
            let next = b.avar("a", vector(real()));
            bindings.push((next.clone(), b.zip_with(|x, y| x + y, &var(&last), &var(&last))));
            last = next;
        }
        pullback_ad::accelerate::language::Arr::lets(bindings, var(&last)).unwrap()
    });
    assert_eq!(run(&program, &[reals(&[0.0, 0.0])]), [reals(&[0.0, 0.0])]);
}
