//! Programs whose scalar functions are joined before they are differentiated: each rule and each refusal by hand, and random programs.

use super::build::*;
use super::generate::{Random, in_pieces, seeds};
use super::gradients::*;
use super::laws::adjoints;
use pullback_ad::accelerate::fuse::fuse;
use pullback_ad::accelerate::language::{AVar, Arr, ArrForm, ArrTy, Program};
use pullback_core::Value;

/// The text of the program, with lets in a row, and the numbers of variables in the order of their first place.
fn text(program: &Program) -> String {
    let all = program.to_string();
    let (mut out, mut known, mut word) = (String::new(), Vec::<String>::new(), String::new());
    for c in all.chars().chain(['\n']) {
        if c.is_alphanumeric() || c == '.' && word.starts_with(|c: char| c.is_ascii_digit()) {
            word.push(c);
            continue;
        }
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_variable = letters.len() < word.len() && letters.chars().all(char::is_alphabetic);
        if is_variable && !letters.is_empty() {
            let k = known.iter().position(|w| *w == word).unwrap_or_else(|| {
                known.push(word.clone());
                known.len() - 1
            });
            out.push_str(&format!("{letters}{k}"));
        } else {
            out.push_str(&word);
        }
        word.clear();
        out.push(c);
    }
    // Lets in lets are as lets of several variables.
    out.trim().replace(" in let ", " let ")
}

/// Both programs are the same but for numbers of variables, and running the pass again changes nothing.
#[track_caller]
fn becomes(program: &Program, expected: &Program) {
    let fused = fuse(program);
    assert_eq!(text(&fused), text(expected), "of {program}");
    assert_eq!(fuse(&fused).to_string(), fused.to_string());
}

#[track_caller]
fn stays(program: &Program) {
    assert_eq!(fuse(program).to_string(), program.to_string());
}

fn written(ty: ArrTy, body: impl FnOnce(&Draft, &AVar) -> Arr) -> Program {
    let b = Draft::default();
    b.program(ty, |x| body(&b, x))
}

fn of_vector(body: impl FnOnce(&Draft, &AVar) -> Arr) -> Program {
    written(vector(real()), body)
}

fn double(x: E) -> E {
    x * r(2.0)
}
fn sine(x: E) -> E {
    x.sin()
}

#[test]
fn maps_of_maps_are_one_map() {
    let program = of_vector(|b, a| b.map(|x| x.exp(), &b.map(sine, &b.map(double, &var(a)))));
    let expected =
        of_vector(|b, a| b.map(|x| b.let_(&double(x), |y| b.let_(&y.sin(), |z| z.exp())), &var(a)));
    becomes(&program, &expected);
}

#[test]
fn a_map_of_a_zip_is_a_zip() {
    let program = of_vector(|b, a| b.map(sine, &b.zip_with(|x, y| x * y, &var(a), &var(a))));
    let expected = of_vector(|b, a| b.zip_with(|x, y| b.let_(&(x * y), |z| z.sin()), &var(a), &var(a)));
    becomes(&program, &expected);
}

#[test]
fn a_map_of_what_is_generated_is_generated() {
    let program = of_vector(|b, a| b.map(sine, &b.generate(&shape(a), |i| at(a, &i))));
    let expected = of_vector(|b, a| b.generate(&shape(a), |i| b.let_(&at(a, &i), |x| x.sin())));
    becomes(&program, &expected);
}

#[test]
fn maps_in_arguments_of_zips_are_part_of_the_zip() {
    let first = of_vector(|b, a| b.zip_with(|x, y| x - y, &b.map(double, &var(a)), &var(a)));
    let expected =
        of_vector(|b, a| b.zip_with(|x, y| b.let_(&double(x), |z| z - y.clone()), &var(a), &var(a)));
    becomes(&first, &expected);
    let second = of_vector(|b, a| b.zip_with(|x, y| x - y, &var(a), &b.map(double, &var(a))));
    let expected = of_vector(|b, a| b.zip_with(|x, y| b.let_(&double(y), |z| &x - z), &var(a), &var(a)));
    becomes(&second, &expected);
    let all = of_vector(|b, a| {
        let both = b.zip_with(|x, y| x - y, &b.map(double, &var(a)), &b.map(sine, &var(a)));
        b.map(|x| x.exp(), &both)
    });
    let expected = of_vector(|b, a| {
        let f = |x: E, y: E| b.let_(&double(x), |x| b.let_(&y.sin(), |y| b.let_(&(&x - y), |z| z.exp())));
        b.zip_with(f, &var(a), &var(a))
    });
    becomes(&all, &expected);
}

/// Generated arrays and zips stay where only maps are joined; a map of one joins it.
#[test]
fn zips_of_zips_stay() {
    stays(&of_vector(|b, a| {
        let inner = b.zip_with(|x, y| x * y, &var(a), &var(a));
        b.zip_with(|x, y| x - y, &inner, &b.generate(&shape(a), |i| at(a, &i)))
    }));
    let program = of_vector(|b, a| {
        let inner = b.map(sine, &b.zip_with(|x, y| x * y, &var(a), &var(a)));
        b.zip_with(|x, y| x - y, &inner, &var(a))
    });
    let expected = of_vector(|b, a| {
        let inner = b.zip_with(|x, y| b.let_(&(x * y), |z| z.sin()), &var(a), &var(a));
        b.zip_with(|x, y| x - y, &inner, &var(a))
    });
    becomes(&program, &expected);
}

#[test]
fn the_identity_is_no_map() {
    becomes(&of_vector(|b, a| sum(&b.map(|x| x, &var(a)))), &of_vector(|_, a| sum(&var(a))));
    // Only the whole of it is one.
    let program = of_vector(|b, a| {
        let pairs = b.map(|x| tuple([x.sin(), x]), &var(a));
        sum(&b.map(|p| p.get(1), &pairs))
    });
    let expected = of_vector(|b, a| sum(&b.map(|x| b.let_(&x.sin(), |_| x), &var(a))));
    becomes(&program, &expected);
    let program = of_vector(|b, a| sum(&b.map(|p| p.get(1), &b.map(|x| tuple([r(1.0), x]), &var(a)))));
    becomes(&program, &of_vector(|_, a| sum(&var(a))));
}

/// Tuples that a zip builds are gone, and what is no variable in them is bound once.
#[test]
fn tuples_between_functions_vanish() {
    let program = of_vector(|b, a| {
        let pairs = b.zip_with(|x, y| tuple([y, x]), &var(a), &var(a));
        b.map(|p| p.get(0) - p.get(1), &pairs)
    });
    becomes(&program, &of_vector(|b, a| b.zip_with(|x, y| y - x, &var(a), &var(a))));
    let program = of_vector(|b, a| {
        let pairs = b.zip_with(|x, y| tuple([x * r(3.0), y]), &var(a), &var(a));
        b.map(|p| p.get(0) * p.get(0) - p.get(1), &pairs)
    });
    let expected = of_vector(|b, a| {
        let f = |x: E, y: E| b.let_(&(x * r(3.0)), |z| &z * &z - y);
        b.zip_with(f, &var(a), &var(a))
    });
    becomes(&program, &expected);
}

/// Lets of functions stay lets, but for copies.
#[test]
fn copies_in_functions_that_are_joined_vanish() {
    let program = of_vector(|b, a| {
        let f = |x: E| b.let_(&x, |y| b.let_(&(&y * &y), |z| z + y));
        b.map(f, &b.map(sine, &var(a)))
    });
    let expected = of_vector(|b, a| b.map(|x| b.let_(&x.sin(), |y| b.let_(&(&y * &y), |z| z + y)), &var(a)));
    becomes(&program, &expected);
}

#[test]
fn what_is_bound_and_used_once_is_joined() {
    let program = of_vector(|b, a| b.alet(&b.map(double, &var(a)), |c| sum(&b.map(sine, &var(c)))));
    let joined = of_vector(|b, a| sum(&b.map(|x| b.let_(&double(x), |y| y.sin()), &var(a))));
    becomes(&program, &joined);
    let program = of_vector(|b, a| {
        let f = |c: &AVar| b.alet(&b.map(sine, &var(c)), |d| sum(&b.map(|x| x.exp(), &var(d))));
        b.alet(&b.zip_with(|x, y| x * y, &var(a), &var(a)), f)
    });
    let expected = of_vector(|b, a| {
        let f = |x, y: E| b.let_(&(&x * y), |y| b.let_(&y.sin(), |z| z.exp()));
        sum(&b.zip_with(|x: E, y| f(x, y), &var(a), &var(a)))
    });
    becomes(&program, &expected);
    let program =
        of_vector(|b, a| b.alet(&b.map(double, &var(a)), |c| b.zip_with(|x, y| x - y, &var(a), &var(c))));
    let expected = of_vector(|b, a| b.zip_with(|x, y| b.let_(&double(y), |z| &x - z), &var(a), &var(a)));
    becomes(&program, &expected);
}

#[test]
fn what_is_used_twice_stays() {
    stays(&of_vector(|b, a| {
        b.alet(&b.map(double, &var(a)), |c| atuple([b.map(sine, &var(c)), sum(&var(c))]))
    }));
    stays(&of_vector(|b, a| b.alet(&b.map(double, &var(a)), |c| b.zip_with(|x, y| x * y, &var(c), &var(c)))));
}

#[test]
fn what_is_read_by_index_stays() {
    stays(&of_vector(|b, a| b.alet(&b.map(double, &var(a)), |c| b.map(|x| x * at1(c, &n(0)), &var(c)))));
}

#[test]
fn what_is_asked_for_its_shape_stays() {
    stays(&of_vector(|b, a| {
        b.alet(&b.map(double, &var(a)), |c| b.map(|x| x * to_real(&size(c, 0)), &var(c)))
    }));
    stays(&of_vector(|b, a| {
        b.alet(&b.map(double, &var(a)), |c| atuple([b.map(sine, &var(c)), b.generate(&shape(c), |_| r(1.0))]))
    }));
}

/// The elements would be evaluated in each iteration.
#[test]
fn what_a_loop_takes_from_outside_stays() {
    let zipped = |b: &Draft, s: &AVar, c: &AVar| b.zip_with(|x, y| x * y, &var(s), &var(c));
    stays(&of_vector(|b, a| {
        b.alet(&b.map(double, &var(a)), |c| b.iterate(&n(3), &var(a), |s, _| zipped(b, s, c)))
    }));
    // Inside of the body it is joined, and so is the first state.
    let program = of_vector(|b, a| {
        b.iterate(&n(3), &b.map(sine, &b.map(double, &var(a))), |s, _| {
            b.alet(&b.map(double, &var(a)), |c| zipped(b, s, c))
        })
    });
    let expected = of_vector(|b, a| {
        b.iterate(&n(3), &b.map(|x| b.let_(&double(x), |y| y.sin()), &var(a)), |s, _| {
            b.zip_with(|x, y| b.let_(&double(y), |y| &x * y), &var(s), &var(a))
        })
    });
    becomes(&program, &expected);
}

#[test]
fn what_a_branch_takes_from_outside_stays() {
    let few = |a: &AVar| size(a, 0).lt(&n(2));
    stays(&of_vector(|b, a| {
        b.alet(&b.map(double, &var(a)), |c| acond(&few(a), &b.map(sine, &var(c)), &var(a)))
    }));
    stays(&of_vector(|b, a| {
        b.alet(&b.map(double, &var(a)), |c| acond(&few(a), &var(a), &b.map(sine, &var(c))))
    }));
    let program = of_vector(|b, a| {
        let inner = b.alet(&b.map(double, &var(a)), |c| b.map(sine, &var(c)));
        acond(&few(a), &inner, &var(a))
    });
    let expected =
        of_vector(|b, a| acond(&few(a), &b.map(|x| b.let_(&double(x), |y| y.sin()), &var(a)), &var(a)));
    becomes(&program, &expected);
}

/// Other combinators take arrays as they are.
#[test]
fn what_other_combinators_take_stays() {
    stays(&of_vector(|b, a| {
        let c = b.map(double, &var(a));
        let all = replicate([Some(n(2)), None], &c);
        let turned = b.backpermute(&ix([2]), |i| tuple([n(0), i.get(0)]), &all);
        b.map(sine, &turned)
    }));
}

/// A function may stand at several places: then its variables have other names, and derivatives are right.
#[test]
fn a_function_that_is_joined_with_itself_has_variables_of_its_own() {
    let program = of_vector(|b, a| {
        let f = b.fun(real(), |x| b.let_(&(&x * &x), |y| &x * y));
        let map = |u: Arr| Arr::new(ArrForm::Map(f.clone(), u)).expect("a map");
        sum(&map(map(var(a))))
    });
    // (x^3)^3
    let slopes = |x: f64| 9.0 * x.powi(8);
    expect(&fuse(&program), &[reals(&[1.0, 2.0])], 513.0, &[slopes(1.0), slopes(2.0)], 1e-12);
    let expected = of_vector(|b, a| {
        let cube = |x: E, next: &dyn Fn(E) -> E| b.let_(&(&x * &x), |y| next(&x * y));
        sum(&b.map(|x| cube(x, &|z| b.let_(&z, |z| cube(z, &|w| w))), &var(a)))
    });
    becomes(&program, &expected);
}

/// Sizes are those of the shorter array, before and after.
#[test]
fn shorter_arrays_give_the_size() {
    let program = of_vector(|b, a| {
        let c = b.map(double, &b.generate(&ix([2]), |i| to_real(&i.get(0))));
        sum(&b.map(sine, &b.zip_with(|x, y| x + y, &b.map(double, &var(a)), &c)))
    });
    let args = [reals(&[0.5, 0.25, 7.0])];
    let value = 1.0f64.sin() + 2.5f64.sin();
    expect(&fuse(&program), &args, value, &[2.0 * 1.0f64.cos(), 2.0 * 2.5f64.cos(), 0.0], 1e-12);
}

fn combinators(program: &Program) -> usize {
    forms(&program.body, |form| {
        matches!(form, ArrForm::Map(..) | ArrForm::ZipWith(..) | ArrForm::Generate(..))
    })
}

fn bits(values: &[Value]) -> Vec<u64> {
    floats(values).iter().map(|x| x.to_bits()).collect()
}

#[test]
fn fused_random_programs_have_the_same_values_and_gradients() {
    let (mut all, mut fewer) = (0, 0);
    for seed in seeds(100) {
        let (program, args) = in_pieces(seed);
        let fused = fuse(&program);
        let why = || format!("SEED={seed} COUNT=1\n{program}\n{fused}");
        assert_eq!(fuse(&fused).to_string(), fused.to_string(), "{}", why());
        assert!(lets(&fused.body) <= lets(&program.body), "{}", why());
        assert!(combinators(&fused) <= combinators(&program), "{}", why());
        all += 1;
        fewer += usize::from(combinators(&fused) < combinators(&program));
        let (before, after) = (run(&program, &args), run(&fused, &args));
        assert_eq!(bits(&before), bits(&after), "{}", why());
        assert!(before.iter().zip(&after).all(|(x, y)| agree(x, y)), "{}", why());
        let seeds = adjoints(&before, &mut Random(seed));
        let all = with_seeds(&program, &args, &seeds);
        let reference = floats(&counted(&derived(&program, variants()[0]).program, &all).0);
        for options in variants() {
            let found = floats(&counted(&derived(&fused, options).program, &all).0);
            let near = |(x, e): (&f64, &f64)| !e.is_finite() || is_near(*x, *e, 1e-7);
            let is_same = found.len() == reference.len() && found.iter().zip(&reference).all(near);
            assert!(is_same, "{options:?}: {found:?}, not {reference:?}\n{}", why());
        }
    }
    assert!(all < 50 || fewer * 3 > all, "only {fewer} of {all} are joined");
}
