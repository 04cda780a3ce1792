//! What the gradient does not have: adjoints of nodes that need none, zeros that are written out, and sums that are too general. These are differences of cost only.

use super::build::*;
use super::catalogue::{ONE, one};
use super::directed::DIRECTED;
use super::gradients::*;
use pullback_ad::accelerate::expression::{Split, Temporaries};
use pullback_ad::accelerate::language::{AVar, Arr, ArrForm, ArrTy, Exp, ExpForm, Program, Ty, arrs};
use pullback_prim::Op;

fn named_one(name: &str) -> Program {
    let found = ONE.iter().chain(DIRECTED).find(|(known, _)| *known == name);
    one(found.unwrap_or_else(|| panic!("{name}")).1)
}

/// How many bindings at any depth have this name.
fn bound(program: &Program, name: &str) -> usize {
    let mut count = 0;
    each_arr(&program.body, &mut |u| {
        if let ArrForm::Let(bindings, _) = u.form() {
            count += bindings.iter().filter(|(a, _)| a.name() == name).count();
        }
    });
    count
}

/// The adjoints, and the functions that are run for them.
fn adjoints(program: &Program) -> [usize; 3] {
    let g = derived(program, TRIMMED).program;
    ["d", "both", "info"].map(|name| bound(&g, name))
}

#[test]
fn what_is_not_used_has_no_adjoint() {
    // The sum and the variable.
    assert_eq!(adjoints(&named_one("x_unused_let")), [2, 0, 0]);
    // The result does not read the argument.
    assert_eq!(adjoints(&named_one("a_ignore_argument")), [1, 0, 0]);
}

#[test]
fn what_is_discrete_has_no_adjoint() {
    let b = Draft::default();
    let scaled = b.program(vector(real()), |a| {
        let whole = b.map(|x| to_int(&op1(Op::Round, &x)), &var(a));
        sum(&b.zip_with(|k, x| to_real(&k) * x, &whole, &var(a)))
    });
    // The sum, the zip, and the variable in it.
    assert_eq!(adjoints(&scaled), [3, 1, 0]);
    // Places are read, but not differentiated; elements are.
    let read = b.program(vector(real()), |a| {
        b.alet(&b.map(|x| to_int(&op1(Op::Round, &x)), &var(a)), |k| {
            sum(&b.generate(&shape(a), |i| at1(a, &at(k, &i))))
        })
    });
    assert_eq!(adjoints(&read), [2, 0, 1]);
    let a = b.avar("a", vector(real()));
    let f = b.fun(real(), |x| {
        let below = at1(&a, &to_int(&at1(&a, &n(1)))).lt(&r(1.0));
        cond(&below, &x, &to_real(&to_int(&at1(&a, &n(2)))))
    });
    let split = Split::new(&mut b.names.borrow_mut(), &f, Temporaries::All, false);
    assert!(split.reads.is_empty());
    let f = b.fun(real(), |x| b.let_(&at1(&a, &n(0)), |_| x));
    let split = Split::new(&mut b.names.borrow_mut(), &f, Temporaries::All, false);
    assert!(split.reads.is_empty());
}

#[test]
fn arrays_that_do_not_vary_get_nothing() {
    let b = Draft::default();
    let c = b.avar("c", vector(real()));
    let program =
        b.program_with(vec![c.clone()], vector(real()), |a| sum(&b.map(|x| x * at1(&c, &n(0)), &var(a))));
    assert_eq!(adjoints(&program), [3, 1, 0]);
    expect(&program, &[reals(&[5.0]), reals(&[1.0, 2.0])], 15.0, &[5.0, 5.0], 0.0);
}

/// What is gathered, read at computed places, or replicated over dimensions that are no inner ones is permuted; all else has an adjoint of its own form.
#[test]
fn permutations_are_of_gathers_and_reads() {
    let expected = [
        ("map", 0),
        ("fold_1", 0),
        ("fold1_2", 0),
        ("replicate_1", 0),
        ("replicate_2", 1),
        ("replicate_3", 1),
        ("replicate_4", 1),
        ("slice_1", 1),
        ("slice_2", 1),
        ("reshape_1", 0),
        ("reshape_2", 0),
        ("backpermute_1", 1),
        ("backpermute_2", 2),
        ("aindex_generate_2", 2),
        ("aindex_generate_3", 1),
        ("acond_1", 0),
        ("logsumexp1", 0),
        ("x_slice_mid", 1),
        ("x_two_index_same", 4),
        ("x_zip2d", 1),
        ("x_repl_all", 0),
        ("x_matmul", 2),
        ("x_fold_2d", 2),
        ("x_sq_of_the", 2),
    ];
    for (name, permutations) in expected {
        for options in variants() {
            let g = derived(&named_one(name), options).program;
            assert_eq!(forms(&g.body, is_permute), permutations, "{name}\n{g}");
        }
    }
}

/// The inserted dimensions are summed where they stand last; else elements are added where they came from.
#[test]
fn replicate_is_summed_over_what_was_inserted() {
    let b = Draft::default();
    let of = |inner: bool| {
        let entries = if inner { [None, Some(n(3))] } else { [Some(n(3)), None] };
        let program = b.program(vector(real()), |a| replicate(entries.clone(), &var(a)));
        let g = derived(&program, TRIMMED).program;
        let count = |has: fn(&ArrForm<()>) -> bool| forms(&g.body, has);
        (count(|f| matches!(f, ArrForm::Sum(_))), count(is_permute))
    };
    assert_eq!((of(true), of(false)), ((1, 0), (0, 1)));
}

/// Contributions that are summed with bounds: each is bound first.
fn padded(program: &Program) -> usize {
    bound(&derived(program, TRIMMED).program, "v")
}

#[test]
fn contributions_of_the_full_shape_are_added_as_they_are() {
    let b = Draft::default();
    let twice = |u: &Arr| b.map(|x| x * r(2.0), u);
    // Three uses outside of conditionals.
    let uses = b.program(vector(real()), |a| {
        b.alet(&twice(&var(a)), |c| atuple([twice(&var(c)), sum(&var(c)), slice([Some(n(0))], &var(c))]))
    });
    assert_eq!(padded(&uses), 0);
    // One of the zip's, which is its only one; both arguments are padded.
    let zipped = b.program(vector(real()), |a| b.zip_with(|x, y| x * y, &twice(&var(a)), &twice(&var(a))));
    assert_eq!(padded(&zipped), 2);
    // What was contributed before a conditional is of the full shape after it.
    let c = |a: &AVar| size(a, 0).lt(&n(2));
    let before = b.program(vector(real()), |a| {
        b.alet(&twice(&var(a)), |u| {
            b.alet(&twice(&var(a)), |v| atuple([twice(&var(u)), acond(&c(a), &var(v), &twice(&var(v)))]))
        })
    });
    // The two of the branches to `v`.
    assert_eq!(padded(&before), 2);
}

#[test]
fn tuples_are_summed_by_components_only_where_they_differ() {
    let parts = |program: &Program| bound(&derived(program, TRIMMED).program, "part");
    // Of the conditional, whose first component is used; the tuples in its branches have its adjoint as it is.
    let b = Draft::default();
    let chosen = b.program(vector(real()), |a| {
        let (first, second) = (b.map(|x| x * r(2.0), &var(a)), var(a));
        let both = [atuple([first.clone(), second.clone()]), atuple([second, first])];
        sum(&aproj(&acond(&size(a, 0).lt(&n(2)), &both[0], &both[1]), 0))
    });
    assert_eq!(parts(&chosen), 2);
    let whole =
        b.program(ArrTy::Tuple(vec![vector(real()); 2]), |p| b.alet(&var(p), |q| b.alet(&var(q), var)));
    assert_eq!(parts(&whole), 0);
}

/// The operations of the dual lambda of a function of a pair.
fn operations(f: impl FnOnce(&Draft, E, E) -> E) -> usize {
    let b = Draft::default();
    let f = b.fun2(real(), real(), |x, y| f(&b, x, y));
    let split = Split::new(&mut b.names.borrow_mut(), &f, Temporaries::Needed, false);
    let mut count = 0;
    each_exp(&split.dual.body, &mut |e| count += usize::from(matches!(e.form(), ExpForm::Prim(..))));
    count
}

#[test]
fn the_dual_lambda_adds_and_multiplies_what_is_needed() {
    assert_eq!(operations(|_, x, y| x + y), 0);
    assert_eq!(operations(|_, x, y| x - y), 1);
    assert_eq!(operations(|_, x, y| x * y), 2);
    assert_eq!(operations(|_, x, _| x.clone() * x), 3);
    assert_eq!(operations(|_, _, _| r(3.0)), 0);
    assert_eq!(operations(|_, x, y| tuple([x, y]).get(1)), 0);
    // A value that is bound and not used has no adjoint.
    assert_eq!(operations(|b, x, y| b.let_(&(&x * y), |_| x)), 0);
    // A value that is bound and used twice is differentiated once.
    assert_eq!(operations(|b, x, y| b.let_(&(x * y), |u| u.clone() + u)), 3);
    // A constant has no adjoint.
    assert_eq!(operations(|_, x, _| x * r(3.0)), 1);
    // One is negated, and the second argument gets a sum from both branches.
    assert_eq!(operations(|_, x, y| cond(&x.lt(&y), &(&x + &y), &(-y))), 2);
}

/// Components of tuples without an adjoint are zeros, which are not bound; a pair of bound numbers passes through.
#[test]
fn zeros_are_not_bound() {
    let b = Draft::default();
    let f = b.fun(pair(real(), pair(real(), int())), |p| p.get(1).get(0) * r(2.0));
    let split = Split::new(&mut b.names.borrow_mut(), &f, Temporaries::Needed, false);
    let ExpForm::Let(bindings, out) = split.dual.body.form() else { panic!("a let") };
    // The adjoint of the result, those of both projections and the argument, and the number of the product.
    let zero = |e: &Exp| matches!(e.form(), ExpForm::Const(_));
    assert!(zero(&out.proj(0).proj(0)) && zero(&out.proj(0).proj(1).proj(1)), "{}", split.dual);
    assert!(bindings.iter().all(|(x, u)| !zero(u) && !matches!(x.ty(), Ty::Tuple(_))), "{}", split.dual);
}

/// In a recomputed variant each function is run for its value and for its temporaries, and `arrs` shows both.
#[test]
fn recomputing_runs_the_function_twice() {
    use pullback_ad::accelerate::primal::{Keep, Options};
    let maps_in_maps = |keep| {
        let g = derived(&named_one("map"), Options { keep, ..TRIMMED }).program;
        let is_map = |u: &Arr| matches!(u.form(), ArrForm::Map(..));
        let mut count = 0;
        each_arr(&g.body, &mut |u| {
            count += usize::from(is_map(u) && arrs(u.form()).into_iter().any(is_map));
        });
        count
    };
    assert_eq!((maps_in_maps(Keep::Store), maps_in_maps(Keep::Recompute)), (0, 2));
}
