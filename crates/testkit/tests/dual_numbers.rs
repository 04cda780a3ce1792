//! Dual-numbers reverse AD: gradients by hand, by forward mode and of Fast CHAD, on written programs of every construct and on random terms; what steps
//! of the chapter cost as programs grow.

use pullback_ad::chad::dense::dense_vjp;
use pullback_ad::dual_numbers::{a_naive, b_staged, f_taping, g_parallel};
use pullback_ad::on_lambda;

use pullback_core::Value;
use pullback_driver::{Backend, Kind, Session, Settings, Wrt};
use pullback_interp::lambda::{Options, run};
use pullback_llvm::Llvm;
use pullback_testkit::chad::price::{Gradients, price};
use pullback_testkit::chad::terms::{Language, applied};
use pullback_testkit::chad::{by_dual_numbers, like};
use pullback_testkit::draws::{draws, share};
use pullback_testkit::empties;
use pullback_testkit::fork_join;
use pullback_testkit::native::near;
use pullback_testkit::number;
use pullback_testkit::on_all_processors;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::stages::{EXPONENTIAL, all};

/// Value and gradient of an entry point by an algorithm, for a cotangent of ones; and the steps they took.
fn gradient(text: &str, algorithm: &str, args: &[Value]) -> Result<(Vec<Value>, u64), String> {
    gradient_by(Settings::default(), text, algorithm, args)
}

/// The same with these settings.
fn gradient_by(
    mut settings: Settings,
    text: &str,
    algorithm: &str,
    args: &[Value],
) -> Result<(Vec<Value>, u64), String> {
    settings.choice.reverse = Some(algorithm.into());
    let session = Session::compile("program.fut", text, settings).map_err(|e| e.render())?;
    let entry = session.entry(None).map_err(|d| d.message)?;
    let wanted = session.select(&entry, &Wrt::default()).map_err(|d| d.message)?;
    let options = pullback_interp::core::Options::default();
    let primal = session.primal(&entry).map_err(|d| d.message)?.interpret(args, &options);
    let ones = primal.map_err(|e| e.message.to_string())?.results.into_iter().filter_map(|v| match v {
        Value::Array(a) => Some(Value::f64_array(&a.shape, &vec![1.0; a.count()])),
        Value::Scalar(s) if s.scalar().is_float() => Some(Value::f64(1.0)),
        _ => None,
    });
    let all: Vec<Value> = args.iter().cloned().chain(ones).collect();
    let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).map_err(|d| d.message)?;
    let out = ready.run(&all, &options).map_err(|e| e.message.to_string())?;
    Ok((out.results, out.counts.work))
}

/// The steps that a random program may take: what is exponential is not waited for.
fn limit(id: &str) -> u64 {
    if EXPONENTIAL.contains(&id) { 200_000 } else { 30_000_000 }
}

fn close(found: &[Value], expected: &[f64], rounding: f64) -> bool {
    let found: Vec<f64> = found.iter().flat_map(Value::floats).collect();
    near(&Value::f64s(expected), &Value::f64s(&found), rounding)
}

/// Programs of the texts, with values and gradients worked out there or by hand.
#[test]
fn programs_of_the_texts() {
    let f = Value::f64;
    let (e, sin3, cos3) = (0.5f64.exp(), 0.3f64.sin(), 0.3f64.cos());
    let rows: Vec<(&str, Vec<Value>, Vec<f64>)> = vec![
        // Fig. 3.1: (2 x + y, x).
        (
            "entry f (x: f64) (y: f64): f64 = let z = x + y in x * z",
            vec![f(12.0), f(13.0)],
            vec![300.0, 37.0, 12.0],
        ),
        // 3.4: (2 x1 + x2 + 1, x1 + 1).
        (
            "entry f (x1: f64) (x2: f64): f64 = let x3 = x1 + x2 in x3 * x1 + x3",
            vec![f(2.0), f(3.0)],
            vec![15.0, 8.0, 3.0],
        ),
        // (2.12) to (2.14).
        (
            "entry f (x: f64) (y: f64): f64 = let a = x * y let b = x + a in b * a",
            vec![f(2.0), f(3.0)],
            vec![48.0, 48.0, 28.0],
        ),
        // 2.2.3: 2 d (6 + 35 a^4) + 1.
        (
            "entry f (a: f64): f64 = let b = 2 * a let c = 3 * b + 7 * a * a * a * a * a let d = c + 1 in d * d + a",
            vec![f(1.5)],
            vec![3990.2119140625, 23139.87109375],
        ),
        // (2.17), on both sides.
        (
            "entry f (a: f64): f64 = let b = a + 1 in if b > 0 then a * b else b",
            vec![f(0.5)],
            vec![0.75, 2.0],
        ),
        (
            "entry f (a: f64): f64 = let b = a + 1 in if b > 0 then a * b else b",
            vec![f(-3.0)],
            vec![-2.0, 1.0],
        ),
        // 2.2.10: 2 + z + (x + 1) z with z = exp x; functions that capture.
        (
            "entry f (x: f64): f64 = let g = \\y -> y + 1 let h = let z = f64.exp x in \\y -> z * y in g (2 * x) + h (x + 1)",
            vec![f(0.5)],
            vec![2.0 + 1.5 * e, 2.0 + e + 1.5 * e],
        ),
        // Slides of Krawiec et al.
        (
            "entry f (x: f64) (y: f64) (z: f64): f64 = x * f64.sin y + 10 * x * z",
            vec![f(2.0), f(0.3), f(5.0)],
            vec![2.0 * sin3 + 100.0, sin3 + 50.0, 2.0 * cos3, 20.0],
        ),
        // Duplicated, and dropped; an integer; a record.
        (
            "entry f (p: {a: f64, b: f64}) (n: i64): (f64, f64, i64) = (p.a, p.a, n)",
            vec![f(3.0), f(4.0), Value::i64(7)],
            vec![3.0, 3.0, 2.0, 0.0],
        ),
    ];
    for (text, args, expected) in rows {
        for stage in all() {
            let id = stage.id;
            let (found, _) = gradient(text, id, &args).unwrap_or_else(|e| panic!("{id}, {text}: {e}"));
            assert!(close(&found, &expected, 1e-14), "{id}, {text}: {found:?} instead of {expected:?}");
        }
    }
}

/// Every construct that keeps numbers in a structure, against Fast CHAD.
#[test]
fn constructs_keep_their_structure() {
    let f = Value::f64;
    let xs = || Value::f64s(&[0.5, -1.5, 2.0]);
    let rows: Vec<(&str, Vec<Value>)> = vec![
        ("entry f (a: [3]f64): f64 = f64.sum (map (\\x -> x * x) a) + f64.maximum a", vec![xs()]),
        ("entry f (a: [3]f64): []f64 = scan (*) 1 a", vec![xs()]),
        ("entry f (a: [3]f64): []f64 = scan (\\x y -> x + y * y) 0 (reverse a)", vec![xs()]),
        (
            "entry f [n] (a: [n]f64) (b: [n]f64): []f64 = map2 (\\x y -> x * y) a (rotate 1 b)",
            vec![xs(), xs()],
        ),
        (
            "entry f (a: [3]f64): []f64 = reduce_by_index [1.0, 2.0] (+) 0 [1, 0, 1] (map f64.sin a)",
            vec![xs()],
        ),
        ("entry f (a: [3]f64): []f64 = scatter (copy a) [2, 5, 0] (map (* 3) a)", vec![xs()]),
        ("entry f (a: [3]f64): []f64 = a with [1] = a[0] * a[2]", vec![xs()]),
        (
            "entry f (a: [3]f64): []f64 = loop b = copy a for i < 2 do b with [i + 1] = b[i] * b[i + 1]",
            vec![xs()],
        ),
        ("entry f (a: [3]f64): [][]f64 = map (\\x -> map (* x) a) a", vec![xs()]),
        (
            "entry f (m: [][]f64): f64 = f64.sum (map (\\r -> f64.product r) (transpose m))",
            vec![Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25])],
        ),
        (
            "entry f (m: [2][3]f64): []f64 = map (\\x -> x * x) (flatten m)",
            vec![Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25])],
        ),
        (
            "entry f (x: f64): (f64, i64) = loop (y, k) = (x, 0) while y < 100 do (y * y + 1, k + 1)",
            vec![f(1.5)],
        ),
        (
            "def power (x: f64) (n: i64): f64 = if n == 0 then 1 else x * power x (n - 1) entry f (x: f64): f64 = power x 5",
            vec![f(1.5)],
        ),
        (
            "type shape = #circle f64 | #box f64 f64
             def area (s: shape): f64 = match s case #circle r -> 3 * r * r case #box a b -> a * b
             entry f (x: f64): f64 = f64.sum (map area [#circle x, #box x (x + 1), #circle (2 * x)])",
            vec![f(2.0)],
        ),
        ("entry f (x: f64): f64 = let twice g y = g (g y) in twice (\\y -> y * y * x) x", vec![f(1.25)]),
        (
            "entry f (a: [3](f64, i64)): f64 = f64.sum (map (\\(x, k) -> x * f64.i64 k) a)",
            vec![xs(), Value::i64s(&[1, 2, 3])],
        ),
        ("entry f (a: [3]f64): []f64 = map (\\i -> a[i] * a[2 - i]) (iota 3)", vec![xs()]),
        ("entry f (a: [3]f64): []f64 = [a[0], 2.0, a[1] * a[1]] ++ a[1:] ++ a[::-1]", vec![xs()]),
        ("entry f (a: [3]f64): f64 = f64.atan2 a[0] a[1] + a[2] ** 1.5 + f64.f32 (f32.f64 a[0])", vec![xs()]),
        ("entry f (a: [3]f64): []f64 = filter (> 0) a |> map (* 2) |> \\b -> b ++ [a[1]]", vec![xs()]),
    ];
    for (text, args) in rows {
        let (expected, _) = gradient(text, "fast_chad", &args).unwrap_or_else(|e| panic!("{text}: {e}"));
        let expected: Vec<f64> = expected.iter().flat_map(Value::floats).collect();
        for stage in all() {
            let id = stage.id;
            let (found, _) = gradient(text, id, &args).unwrap_or_else(|e| panic!("{id}, {text}: {e}"));
            assert!(close(&found, &expected, 1e-13), "{id}, {text}: {found:?} instead of {expected:?}");
        }
    }
}

/// How often each way of running them has these floats as value and gradient, for every algorithm that takes the program: on lambda, lowered to
/// core, compiled. The program itself has the value, too.
fn by_all_algorithms(text: &str, args: &[Value], expected: &[f64]) -> [u64; 3] {
    let ways = [(Backend::Interp, false), (Backend::Interp, true), (Backend::Vm, true)];
    let mut ran = [0; 3];
    for backend in [Backend::Interp, Backend::Vm] {
        let session = Session::compile("program.fut", text, Settings { backend, ..Settings::default() });
        let session = session.unwrap_or_else(|e| panic!("{}", e.render()));
        let program = session.primal(&session.entry(None).expect("one")).expect("compiled");
        let found = program.run(args, &pullback_interp::core::Options::default()).expect("runs").results;
        assert!(close(&found, &expected[..1], 1e-12), "{found:?}, {backend:?}, {args:?}\n{text}");
    }
    for id in std::iter::once("fast_chad").chain(on_lambda::all().map(|a| a.id)) {
        for (ran, (backend, lowered)) in ran.iter_mut().zip(ways) {
            let settings = Settings { backend, lowered, ..Settings::default() };
            let what = || format!("{id}, {backend:?}, lowered: {lowered}, {args:?}\n{text}");
            match gradient_by(settings, text, id, args) {
                Ok((found, _)) => {
                    assert!(close(&found, expected, 1e-12), "{found:?}, not {expected:?}: {}", what());
                    *ran += 1;
                }
                Err(e) if e.contains("cannot differentiate") || e.contains("cannot be compiled") => {}
                Err(e) => panic!("{e}: {}", what()),
            }
        }
    }
    ran
}

/// Random programs of arrays of arrays, which may have no elements: the sizes of these are those of the program.
#[test]
fn arrays_without_elements_have_sizes() {
    let mut seeds = draws("empty arrays", (20, 60), 3);
    let done = on_all_processors(&mut seeds, |seed| {
        let case = empties::case(seed);
        let expected = gradient(&case.text, "fast_chad", &case.args);
        let (expected, _) = expected.unwrap_or_else(|e| panic!("{seed}: {e}\n{}", case.text));
        let expected: Vec<f64> = expected.iter().flat_map(Value::floats).collect();
        assert_eq!(expected.last(), Some(&case.in_w), "{seed}: {:?}\n{}", case.args[0], case.text);
        by_all_algorithms(&case.text, &case.args, &expected)
    });
    let count = seeds.drawn();
    let ran = [0, 1, 2].map(|k| done.iter().map(|ran| ran[k]).sum::<u64>());
    assert!(ran[0] > 14 * count && ran[1] > 6 * count && ran[2] > 6 * count, "{ran:?}");
}

/// Values and derivatives by hand: numbers times sizes, and sums of nothing.
#[test]
fn sizes_of_arrays_without_elements_by_hand() {
    let none = |shape: &[usize]| Value::f64_array(shape, &[]);
    let rows = [
        ("entry f [n][k] (x: [n][k]f64) (w: f64): f64 = w * f64.i64 k", none(&[0, 4]), [4.0, 4.0]),
        (
            "entry f [n] (x: [n]f64) (w: f64): f64 = w * f64.i64 (length (transpose (map (\\a -> [a, a]) x)))",
            none(&[0]),
            [2.0, 2.0],
        ),
        ("entry f [n] (x: [n][2]f64) (w: f64): f64 = w + f64.sum (map f64.sum x)", none(&[0, 2]), [1.0, 1.0]),
        (
            "entry f [n][k] (x: [n][k]f64) (w: f64): f64 =
               w * f64.i64 (length (transpose (scan (map2 (+)) (replicate k 0) x)))",
            none(&[0, 4]),
            [4.0, 4.0],
        ),
        (
            "entry f [n][k][m] (x: [n][k][m]f64) (w: f64): f64 =
               w * f64.i64 (k + 10 * length (transpose (map (\\a -> flatten (map (\\r -> r ++ r) a)) x)))",
            none(&[0, 3, 2]),
            [123.0, 123.0],
        ),
        (
            "def halves [k] (r: [k]f64) (n: i64): [k]f64 = if n == 0 then r else halves (map (/ 2) r) (n - 1)
             entry f [n][k] (x: [n][k]f64) (w: f64): f64 = w * f64.i64 (length (transpose (map (\\r -> halves r 9) x)))",
            none(&[0, 4]),
            [4.0, 4.0],
        ),
        (
            "def again [n] 't (i: i64) (xs: [n]t): [n]t = loop ys = xs for _i < i do reverse (again (i - 1) ys)
             entry f [n][k] (x: [n][k]f64) (w: f64): f64 = w * f64.i64 (length (transpose (map (again 2) x)))",
            none(&[0, 4]),
            [4.0, 4.0],
        ),
        // (Not to be run: calls of calls are too many, and go too deep.)
        (
            "def twice [n] 't (i: i64) (xs: [n]t): [n]t =
               if i > 20 then xs else let ys = twice (i + 1) xs in twice (i + 1) (reverse ys)
             entry f [n][k] (x: [n][k]f64) (w: f64): f64 = w * f64.i64 (length (transpose (map (twice 2) x)))",
            none(&[0, 4]),
            [4.0, 4.0],
        ),
        (
            "entry f [n][k] (x: [n][k](f64, f64)) (w: f64): f64 =
               w * f64.i64 (length (transpose (map (\\r -> (unzip r).1) x)))",
            none(&[0, 4]),
            [4.0, 4.0],
        ),
    ];
    for (text, x, [value, in_w]) in rows {
        let mut args = vec![x.clone()];
        if text.contains("(f64, f64)") {
            args.push(x);
        }
        args.push(Value::f64(1.0));
        let ran = by_all_algorithms(text, &args, &[value, in_w]);
        assert!(ran[0] >= 15 && ran[1] >= 6 && ran[2] >= 6, "{ran:?}\n{text}");
    }
}

/// What has no rule is named; nothing is left behind in the program.
#[test]
fn what_has_no_rule_is_named() {
    for text in [
        "entry f (x: f64): f64 = vjp (\\y -> y * y) x 1",
        "entry f (x: f64): f64 = jvp (\\y -> y * y) x 1 + vjp (\\y -> y) x 1",
    ] {
        let said = gradient(text, a_naive::ID, &[Value::f64(1.0)]).expect_err(text);
        assert!(said.contains("dual-naive") && said.contains("inside of a program"), "{said}");
    }
    let text = "entry f (x: f64): f64 = jvp (\\y -> y * y) x 1";
    let said = gradient(text, a_naive::ID, &[Value::f64(1.0)]).expect_err(text);
    assert!(said.contains("dual-naive") && said.contains("a derivative inside of a program"), "{said}");
}

/// What came of gradients of a random term.
#[derive(Default)]
struct Counts {
    ran: u64,
    nonzero: u64,
    long: u64,
    singular: u64,
}

/// Compares the gradients of a random term with forward mode's, where the naive algorithm ends in time.
fn compared(seed: u64, language: Language) -> Counts {
    let mut counts = Counts::default();
    let Some((mut program, f, args, primal, mut rng)) = applied(seed, seed.is_multiple_of(2), language)
    else {
        return counts;
    };
    let text = pullback_lambda::print::print(&program);
    let made = all().map(|stage| {
        let id = stage.id;
        let made = (stage.vjp)(&mut program, f);
        let made = made.unwrap_or_else(|e| panic!("{id}, {seed}, {language:?}: {e}\n{text}"));
        (id, dense_vjp(&mut program, f, made))
    });
    let made: Vec<_> = made.collect();
    let expected = by_dual_numbers(&mut program, f);
    assert_eq!(pullback_lambda::check::check(&program), Ok(()), "{seed}, {language:?}\n{text}");
    let args: Vec<Value> = args.into_iter().chain([like(&mut rng, &primal)]).collect();
    let outcome = run(&program, expected, args.clone(), &Options::default());
    let expected = outcome.unwrap_or_else(|e| panic!("{seed}: {e}")).result;
    for (id, found) in made {
        let options = Options { work_limit: limit(id), ..Options::default() };
        let found = match run(&program, found, args.clone(), &options) {
            Ok(outcome) => outcome.result,
            Err(e) if e.kind == pullback_base::RuntimeErrorKind::Limit && EXPONENTIAL.contains(&id) => {
                counts.long += 1;
                continue;
            }
            Err(e) => panic!("{id}, {seed}, {language:?}: {e}\n{text}"),
        };
        counts.ran += 1;
        if let Value::Tuple(parts) = &expected {
            counts.nonzero += u64::from(parts[1].floats().iter().any(|x| *x != 0.0));
        }
        // A zero times a partial derivative where there is none; forward mode drops it.
        let without = found.floats().iter().any(|x| x.is_nan()) && text.contains("atan2");
        counts.singular += u64::from(without);
        assert!(
            near(&expected, &found, 1e-11) || without,
            "{id}, {seed}, {language:?}: {found:?} instead of {expected:?}\n{text}"
        );
    }
    counts
}

/// Random terms of three languages.
#[test]
fn gradients_of_random_terms_are_those_of_forward_mode() {
    let mut seeds = draws("dual numbers", (30, 120), 4);
    let languages = [Language::Wide, Language::Functions, Language::Arrays];
    let terms = seeds.by_ref().flat_map(|seed| languages.map(|language| (seed, language)));
    let all_counts = on_all_processors(terms, |(seed, language)| compared(seed, language));
    let count = seeds.drawn();
    let sum = |of: fn(&Counts) -> u64| all_counts.iter().map(of).sum::<u64>();
    let (ran, nonzero) = (sum(|c| c.ran), sum(|c| c.nonzero));
    let (long, singular) = (sum(|c| c.long), sum(|c| c.singular));
    assert!(
        ran > 2 * count * all().count() as u64 && nonzero * 6 > ran && long * 20 < ran,
        "{ran} {nonzero} {long}"
    );
    assert!(singular * 50 < ran, "{singular}");
}

/// The program that is bad for this algorithm (POPL'23, 5.4): every value is used twice, so each level doubles the steps; the derivative of doubling `n` times is
/// `2^n`. Fast CHAD's steps grow by a constant.
#[test]
fn shared_values_double_the_steps() {
    let steps = |n: usize, algorithm: &str| {
        let mut text = "entry f (x0: f64): f64 =".to_string();
        for k in 1..=n {
            text += &format!(" let x{k} = x{0} + x{0}", k - 1);
        }
        text += &format!(" in x{n}");
        let (found, steps) = gradient(&text, algorithm, &[Value::f64(1.0)]).unwrap_or_else(|e| panic!("{e}"));
        let power = f64::from(1u32 << n);
        assert_eq!(found, [Value::f64(power), Value::f64(power)], "{algorithm}");
        steps as f64
    };
    let naive: Vec<f64> = [6, 8, 10, 12].into_iter().map(|n| steps(n, a_naive::ID)).collect();
    for pair in naive.windows(2) {
        // Two levels more.
        assert!((3.5..4.2).contains(&(pair[1] / pair[0])), "{naive:?}");
    }
    let fast: Vec<f64> = [6, 8, 10, 12].into_iter().map(|n| steps(n, "chad-accumulating")).collect();
    assert!(fast[3] < 2.2 * fast[0], "{fast:?}");
}

/// The problems of the benchmark: gradients of Fast CHAD by the stages that cost what they should, and by delta terms with sharing. Those that are
/// refused have derivatives inside.
#[test]
fn problems_have_the_gradients_of_fast_chad() {
    let mut taken = 0;
    for problem in PROBLEMS {
        for stage in all().filter(|stage| !EXPONENTIAL.contains(&stage.id) && stage.id != b_staged::ID) {
            let made = match price(problem, 8, stage.id) {
                Ok(made) => made,
                Err(d) => {
                    assert!(d.message.contains("a derivative inside of a program"), "{}", d.message);
                    assert!(["particle", "saddle"].contains(&problem.name), "{}", problem.name);
                    continue;
                }
            };
            taken += 1;
            let [found, expected] = &made.results;
            assert_eq!(found.len(), expected.len(), "{}", problem.name);
            for (found, expected) in found.iter().zip(expected) {
                let (id, name) = (stage.id, problem.name);
                assert!(near(expected, found, 1e-10), "{id}, {name}: {found:?} instead of {expected:?}");
            }
        }
    }
    assert!(taken >= 8 * 14, "{taken}");
}

/// Tapes compiled: they need no effects, so that their programs are lowered like others. A third of them are compiled by LLVM, another third every day.
#[test]
fn tapes_are_compiled() {
    let (mut compiled, step) = (0, number("STEP", 3) as usize);
    let share = share(step);
    for (k, problem) in PROBLEMS.iter().enumerate() {
        let machine_code = (k % step == share).then_some(Backend::Llvm);
        let gradients = match Gradients::of(problem, f_taping::ID) {
            Ok(gradients) => gradients,
            Err(d) if d.message.contains("a derivative inside of a program") => continue,
            Err(d) => panic!("{}: {}", problem.name, d.message),
        };
        for backend in [Backend::Interp, Backend::Vm].into_iter().chain(machine_code) {
            if backend == Backend::Llvm && Llvm::find().is_err() {
                continue;
            }
            let made = gradients.priced(8, backend, 1, 0);
            compiled += 1;
            let [found, expected] = &made.results;
            for (found, expected) in found.iter().zip(expected) {
                assert!(near(expected, found, 1e-10), "{}, {backend:?}: {found:?}", problem.name);
            }
        }
    }
    assert!(compiled >= 2 * 14, "{compiled}");
}

/// Random programs that fork and join: all algorithms agree with forward mode, the parallel one with its tasks in any order.
#[test]
fn forks_and_joins_have_the_gradients_of_forward_mode() {
    let mut seeds = draws("forks and joins", (40, 150), 3);
    let (mut ran, mut nonzero, mut forks) = (0, 0, 0);
    for seed in seeds.by_ref() {
        let (text, mut args) = fork_join::program(seed, 4 + (seed % 20) as usize);
        let mut program =
            pullback_lambda::read::read(&text, None).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let f = program.funs.ids().next_back().expect("a function");
        let made = all().map(|stage| {
            let made = (stage.vjp)(&mut program, f).unwrap_or_else(|e| panic!("{}: {e}\n{text}", stage.id));
            (stage.id, dense_vjp(&mut program, f, made))
        });
        let made: Vec<_> = made.collect();
        let expected = by_dual_numbers(&mut program, f);
        assert_eq!(pullback_lambda::check::check(&program), Ok(()), "{text}");
        args.push(Value::f64(1.0));
        forks += text.matches("par(").count();
        let expected = run(&program, expected, args.clone(), &Options::default());
        let expected = expected.unwrap_or_else(|e| panic!("{e}\n{text}")).result;
        nonzero += u64::from(expected.floats().iter().skip(1).any(|x| *x != 0.0));
        for (id, found) in made {
            let seeds: &[Option<u64>] =
                if id == g_parallel::ID { &[None, Some(1), Some(2), Some(3)] } else { &[None] };
            for schedule_seed in seeds {
                let options =
                    Options { work_limit: limit(id), schedule_seed: *schedule_seed, ..Options::default() };
                match run(&program, found, args.clone(), &options) {
                    Ok(out) => {
                        let close = near(&expected, &out.result, 1e-11);
                        assert!(close, "{id}, {seed}: {:?} instead of {expected:?}\n{text}", out.result);
                        ran += 1;
                    }
                    Err(e) => {
                        let slow = e.kind == pullback_base::RuntimeErrorKind::Limit;
                        assert!(slow && EXPONENTIAL.contains(&id), "{id}, {seed}: {e}\n{text}");
                    }
                }
            }
        }
    }
    let count = seeds.drawn();
    assert!(ran > 14 * count && nonzero * 2 > count && forks as u64 > count, "{ran} {nonzero} {forks}");
}
