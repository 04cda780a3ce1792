//! What is evaluated how often, and what goes to memory.

use super::build::*;
use pullback_ad::accelerate::language::{AVar, Arr, Program};
use pullback_core::metrics::metrics;
use pullback_core::print::print;
use pullback_core::{Exp, Soac, Value};
use pullback_prim::{Op, Prim, Scalar};

/// Scalar operations of a run; the sine counts 8 of them.
fn flops(program: &Program, args: &[Value]) -> u64 {
    counted(program, args).1.flops
}
/// Statements of this construct, or of this operation at any type.
fn constructs(program: &Program, name: &str) -> usize {
    let all = metrics(&lowered(program).0).constructs;
    let is_named =
        |found: &str| found == name || found.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    all.iter().filter(|(found, _)| is_named(found)).map(|(_, n)| n).sum()
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
        let to = |i: E| (truth(true), tuple([i.get(0).rem(&size(x, 0))]));
        b.permute(|x, y| x + y, &zeros, to, &b.map(|x| x.sin(), &var(x)))
    });
    assert_eq!((constructs(&sent, "map"), constructs(&sent, "withacc")), (1, 1));
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

/// The sum over all elements of a matrix goes over its rows: nothing is divided.
#[test]
fn a_sum_of_a_flat_array_is_a_sum_of_sums() {
    let b = Draft::default();
    let flat = |u: &Arr, x: &AVar| reshape(&tuple([size(x, 0) * size(x, 1)]), u);
    let all = |fold: &dyn Fn(&Arr) -> Arr| {
        b.program(matrix(real()), |x| fold(&b.map(|x| x * r(2.0), &flat(&b.map(|x| x + r(1.0), &var(x)), x))))
    };
    let total = all(&sum);
    let last = all(&|u: &Arr| b.fold(|_, y| y, &r(9.0), u));
    let most = all(&|u: &Arr| b.fold1(|x, y| x.max(&y), u));
    for program in [&total, &last, &most] {
        assert_eq!((constructs(program, "mod"), constructs(program, "div")), (0, 0));
        assert_eq!(constructs(program, "reduce"), 2);
    }
    let of = |program, shape: &[usize], xs: &[f64]| run(program, &[reals_of(shape, xs)]);
    assert_eq!(of(&total, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [Value::f64(54.0)]);
    assert_eq!(of(&last, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [Value::f64(14.0)]);
    assert_eq!(of(&last, &[2, 0], &[]), [Value::f64(9.0)]);
    assert_eq!(of(&last, &[0, 2], &[]), [Value::f64(9.0)]);
    assert_eq!(of(&most, &[2, 3], &[1.0, 2.0, 7.0, 4.0, 5.0, 6.0]), [Value::f64(16.0)]);
    stops(&most, &[reals_of(&[2, 0], &[])]);
    // The inner dimensions only: [2, 3, 4] as [2, 12].
    let inner = b.program(array(real(), 3), |x| {
        let shape = tuple([size(x, 0), size(x, 1) * size(x, 2)]);
        sum(&reshape(&shape, &b.map(|x| x + r(1.0), &var(x))))
    });
    let xs: Vec<f64> = (0..24).map(f64::from).collect();
    assert_eq!(run(&inner, &[reals_of(&[2, 3, 4], &xs)]), [reals(&[78.0, 222.0])]);
    assert_eq!(constructs(&inner, "mod"), 0);
}

#[test]
fn a_reshape_divides_only_where_it_is_read_at_indices() {
    let b = Draft::default();
    let flat = |x: &AVar| {
        let shape = tuple([size(x, 0) * size(x, 1)]);
        b.map(|x| x * r(2.0), &reshape(&shape, &b.map(|x| x + r(1.0), &var(x))))
    };
    let whole = b.program(matrix(real()), flat);
    let scanned = b.program(matrix(real()), |x| b.scanl1(|x, y| x + y, &flat(x)));
    let read = b.program(matrix(real()), |x| b.backpermute(&ix([2]), |i| i, &flat(x)));
    let of = |program| run(program, &[reals_of(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(of(&whole), [reals(&[4.0, 6.0, 8.0, 10.0])]);
    assert_eq!(of(&scanned), [reals(&[4.0, 10.0, 18.0, 28.0])]);
    assert_eq!(of(&read), [reals(&[4.0, 6.0])]);
    assert_eq!([&whole, &scanned, &read].map(|program| constructs(program, "mod")), [0, 0, 1]);
    for shape in [[0, 3], [3, 0]] {
        assert_eq!(run(&whole, &[reals_of(&shape, &[])]), [reals(&[])]);
        assert_eq!(run(&scanned, &[reals_of(&shape, &[])]), [reals(&[])]);
    }
}

/// What says where an adjoint goes is not stored beside it, and what one reader needs is evaluated there.
#[test]
fn leaves_that_are_cheap_or_have_one_reader_do_not_go_to_memory() {
    let b = Draft::default();
    let sent = |readers: usize| {
        b.program(matrix(real()), |x| {
            let info = b.generate(&shape(x), |i| {
                let where_to = tuple([i.get(0) + n(1), i.get(1)]);
                tuple([at(x, &i).sin(), truth(true), where_to, at(x, &i)])
            });
            b.alet(&info, |info| {
                let zeros = b.generate(&tuple([size(x, 0) + n(1), size(x, 1)]), |_| r(0.0));
                let to = |i: E| (at(info, &i).get(1), at(info, &i).get(2));
                let values = b.map(|p| p.get(0) + p.get(3), &var(info));
                let again = |u, _| b.zip_with(|x, p| x + p.get(0), &u, &var(info));
                b.permute(|x, y| x + y, &zeros, to, &(1..readers).fold(values, again))
            })
        })
    };
    // The sines, if they are stored, and the additions; each a nest of two.
    for (readers, maps) in [(1, 2), (2, 4)] {
        let program = sent(readers);
        let xs = reals_of(&[1, 2], &[0.0, 0.0]);
        assert_eq!(run(&program, &[xs]), [reals_of(&[2, 2], &[0.0; 4])]);
        assert_eq!(
            (constructs(&program, "map"), constructs(&program, "sin"), constructs(&program, "assert")),
            (maps, 1, 0),
            "{readers}"
        );
        let (core, f) = lowered(&program);
        let maps = core.funs[f].body.stms.iter().filter(|s| matches!(s.exp, Exp::Soac(Soac::Map { .. })));
        assert!(maps.into_iter().all(|s| s.pat.len() == 1), "{}", print(&core));
    }
}

/// Readers of two leaves evaluate them where they are read, but for what both need, if that is costly.
#[test]
fn what_two_leaves_share_is_evaluated_once_if_it_is_costly() {
    let b = Draft::default();
    let of = |shared: fn(&E) -> E| {
        b.program(vector(real()), |x| {
            let both = b.map(
                |x| {
                    b.let_(&shared(&x), |y| {
                        tuple([y.clone() * r(2.0) * y.clone(), y.clone() * r(3.0) * y.clone()])
                    })
                },
                &var(x),
            );
            b.alet(&both, |both| {
                let part = |k: usize| b.map(|p| p.get(k), &var(both));
                atuple([sum(&part(0)), sum(&part(1))])
            })
        })
    };
    let costly = of(|x| x.sin() + r(1.0));
    assert_eq!(constructs(&costly, "sin"), 1);
    assert_eq!(run(&costly, &[reals(&[0.0, 0.0])]), [4.0, 6.0].map(Value::f64));
    // Nothing but the two sums is left: each makes its own elements.
    let cheap = of(|x| x.clone() + r(1.0));
    let stored = |program: &Program| {
        let (core, f) = lowered(program);
        let maps = core.funs[f].body.stms.iter().filter(|s| matches!(s.exp, Exp::Soac(Soac::Map { .. })));
        maps.map(|s| s.pat.len()).collect::<Vec<_>>()
    };
    assert_eq!((stored(&costly), stored(&cheap)), (vec![2], vec![1, 1]));
    assert_eq!(run(&cheap, &[reals(&[0.0, 1.0])]), [10.0, 15.0].map(Value::f64));
    // A leaf with two readers is stored, another one with one reader is not.
    let uneven = b.program(vector(real()), |x| {
        b.alet(&b.map(|x| tuple([x.sin(), x.exp()]), &var(x)), |both| {
            let part = |k: usize| b.map(|p| p.get(k), &var(both));
            atuple([sum(&part(0)), sum(&b.map(|x| x + r(1.0), &part(0))), sum(&part(1))])
        })
    });
    assert_eq!((constructs(&uneven, "sin"), constructs(&uneven, "exp")), (1, 1));
    assert_eq!(run(&uneven, &[reals(&[0.0, 0.0])]), [0.0, 2.0, 2.0].map(Value::f64));
}

/// A branch reads what is bound before it, rows too.
#[test]
fn a_branch_is_evaluated_again_with_what_it_reads() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        let both = b.generate(&shape(x), |i| {
            let y = at(x, &i) * r(2.0) + r(1.0);
            b.let_(&y, |y| {
                tuple([cond(&i.get(0).lt(&n(1)), &(y.clone() * y.clone()), &r(0.0)), y.clone() * r(5.0) * y])
            })
        });
        b.alet(&both, |both| {
            let part = |k: usize| b.map(|p| p.get(k), &var(both));
            atuple([sum(&part(0)), sum(&part(1))])
        })
    });
    let (core, f) = lowered(&program);
    let maps = core.funs[f].body.stms.iter().filter(|s| matches!(s.exp, Exp::Soac(Soac::Map { .. })));
    assert!(maps.into_iter().all(|s| s.pat.len() == 1), "{}", print(&core));
    // (2 + 1)^2 = 9, and 5 (9 + 25) = 170.
    assert_eq!(run(&program, &[reals(&[1.0, 2.0])]), [9.0, 170.0].map(Value::f64));
}

#[test]
fn a_component_of_a_stored_array_is_no_new_array() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        b.alet(&b.map(|x| tuple([x.sin(), x.exp()]), &var(x)), |both| {
            let part = |k: usize| b.map(|p| b.let_(&p, |p| p.get(k)), &var(both));
            atuple([part(1), sum(&part(0)), part(0)])
        })
    });
    assert_eq!((constructs(&program, "map"), constructs(&program, "reduce")), (1, 1));
    let results = run(&program, &[reals(&[0.0, 0.0])]);
    assert_eq!(results, [reals(&[1.0, 1.0]), Value::f64(0.0), reals(&[0.0, 0.0])]);
}

/// Sizes that are the same are the same atom, so that conditions at counters are known.
#[test]
fn sums_of_sizes_with_constants_are_compared() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        let shorter = || tuple([size(x, 0) - n(1)]);
        let init = b.backpermute(&shorter(), |i| i, &b.map(|x| x.sin(), &var(x)));
        let tail = b.backpermute(&shorter(), |i| tuple([i.get(0) + n(1)]), &b.map(|x| x.exp(), &var(x)));
        let all = b.scanl(|x, y| x + y, &r(0.0), &b.zip_with(|x, y| x * y, &init, &tail));
        b.alet(&all, |all| {
            b.generate(&shape(x), |i| cond(&i.get(0).lt(&size(all, 0)), &at(all, &i), &r(-1.0)))
        })
    });
    for name in ["check", "min", "if", "lt", "select"] {
        assert_eq!(constructs(&program, name), 0, "{name}");
    }
    assert_eq!(run(&program, &[reals(&[0.0, 0.0])]), [reals(&[0.0, 0.0])]);
}

/// What a size needs of a loop is not known after it.
#[test]
fn sizes_in_loops_and_branches_stay_there() {
    let b = Draft::default();
    let program = b.program(vector(int()), |x| {
        let shifted = b.map(|y| &y + n(1), &var(x));
        let total = sum(&b.generate(&tuple([size(x, 0) + n(1)]), |i| i.get(0) * size(x, 0)));
        b.alet(&atuple([total, shifted]), |p| {
            b.alet(&aproj(&var(p), 0), |total| {
                let length = || at(total, &ix([])) * size(x, 0);
                let longer = b.generate(&tuple([length()]), |i| i.get(0));
                let either =
                    acond(&length().lt(&n(5)), &b.generate(&tuple([size(x, 0) * n(7)]), |_| n(1)), &longer);
                atuple([either, b.generate(&tuple([size(x, 0) * n(7)]), |_| n(2))])
            })
        })
    });
    // The sum is 0 * 1 + 1 * 1, so the length 1.
    assert_eq!(run(&program, &[ints(&[4])]), [ints(&[1; 7]), ints(&[2; 7])]);
    // 0 + 2 + 4 = 6, twice.
    let longer = ints(&(0..12).collect::<Vec<i64>>());
    assert_eq!(run(&program, &[ints(&[4, 4])]), [longer, ints(&[2; 14])]);
}

/// How a function is written does not matter: what it does is looked at.
#[test]
fn operators_are_recognised_through_bindings() {
    let b = Draft::default();
    let added = |x: E, y: E| b.let_(&tuple([x, y]), |p| b.let_(&p.get(0), |x| x + p.get(1)));
    let summed = b.program(vector(real()), |x| b.fold(added, &r(0.0), &var(x)));
    assert_eq!((constructs(&summed, "if"), constructs(&summed, "reduce")), (0, 1));
    assert_eq!(run(&summed, &[reals(&[1.0, 2.0])]), [Value::f64(3.0)]);
    let sent = b.program(vector(real()), |x| {
        let zeros = constants(&[2], &[0.0, 1.0]);
        b.permute(added, &zeros, |i| (truth(true), tuple([i.get(0).rem(&n(2))])), &var(x))
    });
    assert_eq!((constructs(&sent, "hist"), constructs(&sent, "withacc")), (0, 1));
    assert_eq!(run(&sent, &[reals(&[1.0, 2.0, 3.0])]), [reals(&[4.0, 3.0])]);
}

/// Where each element has a place of its own, nothing is added up in memory.
#[test]
fn a_permutation_to_all_places_is_a_map() {
    let b = Draft::default();
    let turned = b.program(matrix(real()), |x| {
        let target = b.generate(&tuple([size(x, 1), size(x, 0)]), |i| to_real(&i.get(0)));
        let to = |i: E| (i.get(0).lt(&n(1)), tuple([i.get(1), i.get(0)]));
        b.permute(|x, y| x + y, &target, to, &b.map(|x| x * r(10.0), &var(x)))
    });
    assert_eq!((constructs(&turned, "withacc"), constructs(&turned, "map")), (0, 2));
    let of = |xs: &[f64], shape: &[usize]| run(&turned, &[reals_of(shape, xs)]);
    assert_eq!(of(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), [reals_of(&[2, 2], &[10.0, 0.0, 21.0, 1.0])]);
    assert_eq!(of(&[1.0, 2.0], &[1, 2]), [reals_of(&[2, 1], &[10.0, 21.0])]);
    let same = b.program(vector(real()), |x| {
        let target = b.generate(&shape(x), |_| r(5.0));
        b.permute(|x, y| x * y, &target, |i| (truth(true), i), &var(x))
    });
    assert_eq!(constructs(&same, "hist"), 0);
    assert_eq!(run(&same, &[reals(&[1.0, 2.0])]), [reals(&[5.0, 10.0])]);
    // Two dimensions to one place is no such permutation.
    let diagonal = b.program(matrix(real()), |x| {
        let target = b.generate(&shape(x), |_| r(0.0));
        b.permute(|x, y| x + y, &target, |i| (truth(true), tuple([i.get(0), i.get(0)])), &var(x))
    });
    let expected = reals_of(&[2, 2], &[3.0, 0.0, 0.0, 7.0]);
    assert_eq!(run(&diagonal, &[reals_of(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]), [expected]);
}

/// A permutation that adds up inner dimensions is a sum for each element that is left; one that adds up rows goes through them in the order of memory.
#[test]
fn a_permutation_that_forgets_inner_dimensions_is_a_sum() {
    let b = Draft::default();
    let sent = |kept: usize| {
        b.program(matrix(real()), |x| {
            let target = b.generate(&tuple([size(x, kept)]), |i| to_real(&i.get(0)));
            let to = |i: E| (truth(true), tuple([i.get(kept)]));
            b.permute(|x, y| x + y, &target, to, &b.map(|x| x * r(10.0), &var(x)))
        })
    };
    let xs = [reals_of(&[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    for (kept, accumulators, expected) in [(0, 0, [30.0, 71.0]), (1, 1, [40.0, 61.0])] {
        let program = sent(kept);
        assert_eq!(constructs(&program, "withacc"), accumulators);
        assert_eq!(run(&program, &xs), [reals(&expected)]);
    }
    // Of no columns the target is left, of no rows nothing.
    assert_eq!(run(&sent(0), &[reals_of(&[2, 0], &[])]), [reals(&[0.0, 1.0])]);
    assert_eq!(run(&sent(1), &[reals_of(&[0, 2], &[])]), [reals(&[0.0, 1.0])]);
    // Where an element may go nowhere it is no sum.
    let some = b.program(matrix(real()), |x| {
        let target = b.generate(&tuple([size(x, 0)]), |_| r(0.0));
        let to = |i: E| (i.get(1).lt(&n(1)), tuple([i.get(0)]));
        b.permute(|x, y| x + y, &target, to, &var(x))
    });
    assert_eq!(run(&some, &xs), [reals(&[1.0, 3.0])]);
}

#[test]
fn of_a_binding_that_is_only_measured_nothing_is_evaluated() {
    let b = Draft::default();
    let program = b.program(matrix(real()), |x| {
        b.alet(&b.map(|x| x.sin(), &var(x)), |u| {
            let longer = b.scanl(|x, y| x + y, &r(0.0), &var(u));
            let turned = b.zip_with(|x, y| x + y, &longer, &longer);
            let either = acond(&size(u, 0).lt(&n(2)), &turned, &slice([None, None], &turned));
            b.alet(&atuple([either.clone(), sum(&either)]), |s| {
                b.alet(&aproj(&var(s), 0), |p| {
                    b.alet(&aproj(&var(s), 1), |q| {
                        b.generate(&ix([]), |_| tuple([size(p, 0), size(p, 1), size(q, 0)]))
                    })
                })
            })
        })
    });
    for name in ["scan", "sin", "map"] {
        assert_eq!(constructs(&program, name), 0);
    }
    let sizes = [2, 4, 2].map(Value::i64);
    assert_eq!(run(&program, &[reals_of(&[2, 3], &[0.0; 6])]), sizes);
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
        Arr::lets(bindings, var(&last)).unwrap()
    });
    assert_eq!(run(&program, &[reals(&[0.0, 0.0])]), [reals(&[0.0, 0.0])]);
}

/// Reversals and shifts are turned around, so that nothing is added up in memory. Where sizes are not known to fit, that is asked first.
#[test]
fn permutations_that_move_are_turned_around() {
    let b = Draft::default();
    let add = |x: E, y: E| x + y;
    let moved = |shape: fn(&AVar) -> E, place: fn(&AVar, E) -> E| {
        b.program(vector(real()), |x| {
            let target = b.generate(&shape(x), |i| to_real(&i.get(0)));
            b.permute(
                add,
                &target,
                |i| (truth(true), tuple([place(x, i.get(0))])),
                &b.map(|x| x * r(10.0), &var(x)),
            )
        })
    };
    let xs = [reals(&[1.0, 2.0, 3.0])];
    let reversed = moved(shape, |x, i| size(x, 0) - n(1) - i);
    assert_eq!(
        (constructs(&reversed, "withacc"), constructs(&reversed, "assert"), constructs(&reversed, "if")),
        (0, 0, 0)
    );
    assert_eq!(run(&reversed, &xs), [reals(&[30.0, 21.0, 12.0])]);
    let shifted = moved(|x| tuple([size(x, 0) + n(2)]), |_, i| i + n(1));
    assert_eq!((constructs(&shifted, "withacc"), constructs(&shifted, "assert")), (0, 0));
    assert_eq!(run(&shifted, &xs), [reals(&[0.0, 11.0, 22.0, 33.0, 4.0])]);
    assert_eq!(run(&shifted, &[reals(&[])]), [reals(&[0.0, 1.0])]);
    // The place of the last element is outside of the target, or that of the first one.
    for (place, fits) in [(1, false), (0, true), (-1, false)] {
        let program = b.program(vector(real()), |x| {
            let target = b.generate(&ix([3]), |_| r(0.0));
            b.permute(add, &target, |i| (truth(true), tuple([i.get(0) + n(place)])), &var(x))
        });
        assert_eq!(constructs(&program, "withacc"), 0);
        if fits {
            assert_eq!(run(&program, &xs), xs);
        } else {
            assert!(stops(&program, &xs).contains("outside of its target"), "{place}");
        }
        // Of no elements none goes outside.
        assert_eq!(run(&program, &[reals(&[])]), [reals(&[0.0; 3])]);
    }
    let back = |last: i64| {
        b.program(vector(real()), |x| {
            let target = b.generate(&ix([4]), |_| r(0.0));
            b.permute(add, &target, |i| (truth(true), tuple([n(last) - i.get(0)])), &var(x))
        })
    };
    assert_eq!(run(&back(3), &xs), [reals(&[0.0, 3.0, 2.0, 1.0])]);
    for last in [1, 4] {
        assert!(stops(&back(last), &xs).contains("outside of its target"), "{last}");
    }
    // Two components with one counter, or twice a counter, is no such permutation.
    let doubled = b.program(vector(real()), |x| {
        let target = b.generate(&ix([5]), |_| r(0.0));
        b.permute(add, &target, |i| (truth(true), tuple([i.get(0) + i.get(0)])), &var(x))
    });
    assert_eq!(run(&doubled, &xs), [reals(&[1.0, 0.0, 2.0, 0.0, 3.0])]);
}
