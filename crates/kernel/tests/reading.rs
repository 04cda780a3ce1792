//! Kernel text: what is printed is read again, kernels written by hand compute what they should, and other texts are refused.

use pullback_base::index::{Index, IndexVec};
use pullback_base::{FileId, RuntimeErrorKind, Span};
use pullback_kernel::run::{Memory, Options, Pointer, Word, run};
use pullback_kernel::verify::Fallback;
use pullback_kernel::{
    Fold, Function, FunctionId, Ins, Message, MessageId, Module, Operand, Order, RegInfo, Text, Ty, print,
    print_whole, read,
};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::conformance::{self, Executables, Make, Setup};
use pullback_testkit::draws::{draws, some_of};
use pullback_testkit::kernel_text::{modules, round_trip, round_trips};
use pullback_testkit::kernels::{of_repository, runs_of_seed};
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::rng::Rng;
use pullback_testkit::{number, on_all_processors};
use std::sync::atomic::{AtomicUsize, Ordering};

// What is printed is read again.

#[test]
fn programs_of_the_repository_are_read_as_they_were_printed() {
    // Some of them every day; `STEP=1` takes all.
    let (some, step) = some_of(of_repository(), 8);
    let counts = on_all_processors(some, |item| {
        round_trips(&item.program, item.fun).unwrap_or_else(|e| panic!("{}, {e}", item.what))
    });
    let (programs, modules) = (counts.iter().filter(|n| **n > 0).count(), counts.iter().sum::<usize>());
    eprintln!("{modules} modules of {programs} functions");
    assert!(programs > 800 / step && modules > 5000 / step, "{modules} modules of {programs} functions");
}

#[test]
fn problems_are_read_as_they_were_printed() {
    let counts = on_all_processors(PROBLEMS, |problem| {
        let trip = |f: &pullback_driver::Ready| {
            round_trips(&f.program, f.fun).unwrap_or_else(|e| panic!("{}, {e}", problem.name))
        };
        problem.ready().iter().map(trip).sum::<usize>()
    });
    assert!(counts.iter().filter(|n| **n > 0).count() * 5 > PROBLEMS.len() * 4, "{counts:?}");
}

#[test]
fn random_programs_are_read_as_they_were_printed() {
    let mut seeds = draws("kernel text", (20, 64), 4);
    let counts = on_all_processors(&mut seeds, |seed| {
        let runs = runs_of_seed(seed);
        let (mut modules_of_seed, mut seen) = (0, [false; DETAILS.len()]);
        for run in runs.iter() {
            for (how, module) in modules(&run.program, run.fun) {
                round_trip(&module).unwrap_or_else(|e| panic!("{}, {how}: {e}", run.what));
                let text = print_whole(&module);
                seen.iter_mut().zip(DETAILS).for_each(|(seen, detail)| *seen |= text.contains(detail));
                modules_of_seed += 1;
            }
        }
        (modules_of_seed, seen)
    });
    let modules: u64 = counts.iter().map(|(n, _)| n).sum();
    let often = DETAILS.map(|detail| {
        let k = DETAILS.iter().position(|d| *d == detail);
        (detail, counts.iter().filter(|(_, seen)| k.is_some_and(|k| seen[k])).count())
    });
    eprintln!("{modules} modules; seeds with details: {often:?}");
    assert!(modules > 10 * seeds.drawn(), "too few modules: {modules}");
    assert!(often.iter().all(|(_, n)| *n > 0), "{often:?}");
}

/// Details of texts that random programs have.
const DETAILS: [&str; 11] = [
    " room ",
    " in any order folding (",
    " of lanes ",
    " neutral ",
    " where ",
    "#[tape",
    " for \"map\" ",
    ": OutOfBounds index ",
    "chunks 0 .. ",
    " lanes i_",
    "while {",
];

/// Modules that executors are tried with: every instruction, every primitive, random ones in lanes.
#[test]
fn modules_for_executors_are_read_as_they_were_printed() {
    fn make<'m>(module: &'m Module, _: Setup) -> Executables<'m> {
        TRIPS.fetch_add(1, Ordering::Relaxed);
        round_trip(module).unwrap_or_else(|e| panic!("{e}"));
        Box::new(std::iter::empty())
    }
    static TRIPS: AtomicUsize = AtomicUsize::new(0);
    let all: [fn(Make<'_>); 19] = [
        conformance::a_loop_adds_the_elements_of_a_vector,
        conformance::a_loop_of_no_iterations_does_nothing_and_bounds_are_read_before_it,
        conformance::nested_loops_multiply_matrices,
        conformance::while_and_if_count_the_steps_of_collatz,
        conformance::memory_holds_elements_of_every_type,
        conformance::memory_holds_pointers,
        conformance::allocations_are_aligned_and_do_not_overlap_until_they_are_released,
        conformance::a_release_keeps_accesses_in_order,
        conformance::too_much_memory_is_a_limit,
        conformance::a_failure_says_what_its_message_says,
        conformance::a_failure_in_a_called_function_stops_its_callers,
        conformance::functions_call_themselves_up_to_a_limit,
        conformance::calls_that_have_ended_are_not_open,
        conformance::a_call_can_be_cancelled_and_its_session_be_used_again,
        conformance::an_executable_is_called_from_many_threads,
        conformance::arguments_in_another_order_are_refused,
        conformance::single_values_have_the_bits_of_the_table,
        conformance::quotients_by_constants_have_the_bits_of_the_table,
        conformance::elements_of_arrays_have_the_bits_of_the_table,
    ];
    all.iter().for_each(|test| test(&make));
    conformance::lanes_have_the_bits_of_the_table(&make, &[1, 7, 64]);
    conformance::random_functions_of_lanes_do_what_the_reference_executor_does(
        &make,
        &[8, 48],
        &|w| vec![0, 1, w + 1],
        12,
    );
    assert!(TRIPS.load(Ordering::Relaxed) >= all.len());
}

/// What no program has: odd names, numbers that are none, all kinds of constants, texts and folds.
fn odd() -> Module {
    let mut regs = IndexVec::new();
    let mut reg = |ty: Ty, hint: &str| regs.push(RegInfo::new(ty, hint));
    let constants: Vec<ScalarValue> = vec![
        f64::from_bits(0xfff8_0000_0000_0001).into(),
        f64::from_bits(0x7ff0_0000_0000_0001).into(),
        f32::from_bits(0xffc0_0000).into(),
        f64::NAN.into(),
        f32::NAN.into(),
        (-0.0f64).into(),
        (-0.0f32).into(),
        f64::NEG_INFINITY.into(),
        f32::INFINITY.into(),
        f64::MIN_POSITIVE.into(),
        5e-324f64.into(),
        f64::MAX.into(),
        1e-45f32.into(),
        0.1f32.into(),
        i8::MIN.into(),
        i16::MIN.into(),
        i32::MIN.into(),
        i64::MIN.into(),
        u8::MAX.into(),
        u16::MAX.into(),
        u32::MAX.into(),
        u64::MAX.into(),
        true.into(),
        false.into(),
    ];
    let hints = ["", "a.b", "x_1", "_", "1st", "ä", "\"\\\n\t\u{1}", "function", "it's", "a b", "for", "'"];
    let mut body: Vec<Ins> = Vec::new();
    for (k, c) in constants.into_iter().enumerate() {
        let to = reg(Ty::Scalar(c.scalar()), hints[k % hints.len()]);
        body.push(Ins::Set { to, value: Operand::Const(c) });
    }
    // Never mentioned, and read before it is set.
    reg(Ty::Lanes(Scalar::U8, 4), "unused");
    let early = reg(Ty::Pointer, "early");
    let [a, b, c, d, i] = ["a", "b", "c", "d", "i"].map(|hint| reg(Ty::I64, hint));
    body.push(Ins::Release { mark: early.into() });
    body.push(Ins::Mark { to: early });
    body.push(Ins::Store { pointer: Operand::Null, index: a.into(), value: Operand::i64(-1), ty: Ty::I64 });
    let fold = |out: Vec<Operand>| Fold {
        state: vec![a, b],
        neutral: vec![Operand::i64(0), d.into()],
        combine: vec![Ins::Set { to: c, value: d.into() }],
        left: vec![c],
        right: vec![d],
        out,
    };
    body.push(Ins::For {
        i,
        from: a.into(),
        to: b.into(),
        body: Vec::new(),
        order: Order::Any(vec![fold(vec![c.into()]), fold(Vec::new())]),
    });
    let add = Prim::Op(Op::Add, Scalar::F64);
    body.push(Ins::FoldLanes {
        to: a,
        prim: add,
        neutral: (-0.0).into(),
        from: b.into(),
        mask: Some(c.into()),
    });
    body.push(Ins::Fail {
        condition: Operand::bool(true),
        message: MessageId::new(1),
        values: vec![a.into()],
    });
    let (first, second) = (FunctionId::new(0), FunctionId::new(1));
    body.push(Ins::Call { to: Vec::new(), function: second, args: Vec::new() });
    body.push(Ins::Chunks { count: a.into(), function: first, args: vec![b.into()] });
    let texts = [
        Text::Plain("a \"quoted\" {}\n\\".to_string()),
        Text::Index(2),
        Text::Shapes("zip".to_string(), 1),
        Text::Slice,
        Text::Reshape(3),
    ];
    let span = Span::new(FileId::new(3), 5, 12);
    let message = |(k, text): (usize, Text)| Message {
        kind: RuntimeErrorKind::OutOfBounds,
        text,
        span: (k % 2 == 0).then_some(span),
    };
    let function = |name: &str, body: Vec<Ins>| Function {
        name: name.to_string(),
        params: vec![early, early],
        results: vec![a, early, a],
        regs: regs.clone(),
        body,
    };
    Module {
        functions: [function("function", body), function("", Vec::new())].into_iter().collect(),
        messages: texts.into_iter().enumerate().map(message).collect(),
        lanes: 16,
        calls: [(second, (first, span)), (first, (first, span))].into_iter().collect(),
        fallbacks: Fallback::ALL.to_vec(),
    }
}

#[test]
fn odd_modules_are_read_as_they_were_printed() {
    round_trip(&odd()).expect("an equal module");
    round_trip(&Module::default()).expect("an empty module");
}

// Kernels written by hand.

fn f64s(memory: &mut Memory, xs: &[f64]) -> Word {
    let words = xs.iter().map(|x| Word::Scalar((*x).into())).collect();
    Word::Pointer(memory.put(Ty::Scalar(Scalar::F64), words))
}

/// What the first function of a kernel gives, whatever the order of its loops; the memory after it.
fn result(text: &str, args: &dyn Fn(&mut Memory) -> Vec<Word>) -> (Result<Vec<Word>, String>, Memory) {
    let module = read(text).unwrap_or_else(|e| panic!("{e}"));
    round_trip(&module).expect("an equal module");
    let [forwards, backwards] = [false, true].map(|backwards| {
        let mut memory = Memory::new(1 << 16);
        let args = args(&mut memory);
        let options = Options { steps: 100_000, backwards };
        (run(&module, FunctionId::new(0), &args, &mut memory, options).map_err(|e| e.to_string()), memory)
    });
    assert_eq!(forwards.0, backwards.0);
    forwards
}

fn int(x: i64) -> Word {
    Word::Scalar(x.into())
}
fn float(x: f64) -> Word {
    Word::Scalar(x.into())
}

#[test]
fn a_sum_in_any_order() {
    let text = include_str!("sum.kernel");
    // 1 + 2 + 4 + 8 and nothing.
    let (found, _) = result(text, &|m| vec![f64s(m, &[1.0, 2.0, 4.0, 8.0]), int(4)]);
    assert_eq!(found, Ok(vec![float(15.0)]));
    let (found, _) = result(text, &|m| vec![f64s(m, &[]), int(0)]);
    assert_eq!(found, Ok(vec![float(0.0)]));
}

#[test]
fn a_product_in_lanes() {
    // 1 * 2 + 2 * 3 + .. + 6 * 7, in lanes 0 to 3, and lanes 0 and 1: 2 + 6 + 12 + 20 + 30 + 42.
    let (xs, ys) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let (found, _) = result(include_str!("dot.kernel"), &|m| vec![f64s(m, &xs), f64s(m, &ys), int(6)]);
    assert_eq!(found, Ok(vec![float(112.0)]));
}

#[test]
fn a_loop_that_ends_by_itself() {
    // 27 takes 111 steps to 1.
    let text = include_str!("collatz.kernel");
    assert_eq!(result(text, &|_| vec![int(27)]).0, Ok(vec![int(111)]));
    assert_eq!(result(text, &|_| vec![int(1)]).0, Ok(vec![int(0)]));
}

#[test]
fn a_function_that_calls_itself() {
    // 5! = 120 and 5 calls are open below the first.
    let text = include_str!("factorial.kernel");
    assert_eq!(result(text, &|_| vec![int(5)]).0, Ok(vec![int(120), int(5)]));
    let said = result(text, &|_| vec![int(-3)]).0.expect_err("it stops");
    assert!(said.contains("no factorial of -3"), "{said}");
}

#[test]
fn a_workspace() {
    // Seven elements of 3, of which the second becomes 4, and the third 3 + 2 + 1/4. The first three together, and the row of two
    // that begins at the second.
    let (found, _) = result(include_str!("workspace.kernel"), &|_| vec![int(7)]);
    assert_eq!(found, Ok(vec![float(12.25), float(9.25)]));
}

#[test]
fn parts_of_a_loop() {
    // Squares, and the number of the part where the call is: 0, 1, 4, 9.
    let (found, memory) = result(include_str!("squares.kernel"), &|m| vec![f64s(m, &[-1.0; 4]), int(4)]);
    assert_eq!(found, Ok(vec![]));
    let p = Pointer { piece: 1, made: 1, ..Pointer::NULL };
    let squares: Vec<_> = (0..4).map(|k| memory.get(p, k)).collect();
    assert_eq!(squares, [0.0, 1.0, 4.0, 9.0].map(|x| Ok(float(x))));
}

// Other texts.

#[test]
fn other_texts_are_refused_with_the_place() {
    let inside = |ins: &str| format!("function f(x_0: f64, p_1: pointer) -> () {{\n  {ins}\n}}\n");
    let all = [
        ("functio f() -> () {}", "1:1: expected a message, found `functio`"),
        ("function f() -> () {", "1:21: expected an instruction, found the end of the text"),
        ("function f() -> () {}\nfunction f() -> () {}", "2:10: there are two functions named \"f\""),
        ("function f(x_1: f64) -> () {}", "1:28: this function has register 1, but not 0"),
        ("function f(x_0) -> () {}", "1:12: register 0 has no type so far"),
        ("function f(x_0: f64, y_0: f64) -> () {}", "1:22: register 0 has a type already"),
        ("function f(x_00: f64) -> () {}", "1:12: expected a register, found `x_00`"),
        ("function f(x_4294967295: f64) -> () {}", "1:12: expected a register, found `x_4294967295`"),
        ("function f(x_0: f65) -> () {}", "1:17: expected a scalar type, found `f65`"),
        ("message_1: Limit plain \"\"", "1:1: the next message is message_0"),
        ("message_0: Luck plain \"\"", "1:12: there is no kind of messages \"Luck\""),
        ("message_0: Limit plain \"\\x\"", "1:24: this string holds an unknown escape sequence"),
        ("message_0: Limit plain \"", "1:24: this string has no end"),
        ("lanes -1", "1:7: expected a count, found `-1`"),
        ("function f() -> () {} ?", "1:23: the character '?' has no meaning in kernel text"),
        (&inside("y_0 = 1.0f64"), "2:3: register 0 is named \"x\", not \"y\""),
        (&inside("x_0 = 1.0"), "2:9: expected a constant, found `1.0`"),
        (&inside("x_0 = 300u8"), "2:9: expected a constant, found `300u8`"),
        (&inside("x_0 = 1e999f64"), "2:9: expected a constant, found `1e999f64`"),
        (&inside("x_0 = f32.bits(0x100000000)"), "2:18: expected the bits of an f32, found `0x100000000`"),
        (&inside("x_0 = adds.f64(x_0)"), "2:9: expected a primitive, found `adds.f64`"),
        (&inside("x_0 = and.f64(x_0, x_0)"), "2:9: expected a primitive, found `and.f64`"),
        (&inside("x_0, x_0 = x_0"), "2:14: expected `call`, found `x_0`"),
        (&inside("x_0 = call g()"), "2:14: there is no function named \"g\""),
        (&inside("fail if true: message_0 ()"), "2:17: there is no message_0"),
        (&inside("p_1[0i64] = x_0"), "2:13: expected `:`, found `=`"),
        (&inside("fill p_1[1 .. 2i64]: f64 = x_0"), "2:12: expected `0`, found `1`"),
        (&inside("for i_2: i64 from 0i64 to 1i64 in order {}"), "2:37: expected `any`, found `order`"),
        (&inside("y_2: f64 #[for \"nothing\" primal] = x_0"), "2:18: there is no construct \"nothing\""),
    ];
    for (text, expected) in all {
        let found = read(text).map(|m| print(&m)).map_err(|e| e.to_string());
        assert_eq!(found, Err(expected.to_string()), "{text}");
    }
}

#[test]
fn deep_texts_are_refused() {
    let text = |depth: usize| {
        format!("function f() -> () {{ {} {} }}", "if true {".repeat(depth), "}".repeat(depth))
    };
    // The body is a block itself.
    round_trip(&read(&text(pullback_kernel::MAX_DEPTH - 1)).expect("a module")).expect("an equal module");
    for depth in [pullback_kernel::MAX_DEPTH, 100_000] {
        let said = read(&text(depth)).expect_err("it is too deep").to_string();
        assert!(said.contains("blocks nest more than"), "{said}");
    }
}

/// Printed modules of a few programs.
fn printed() -> Vec<String> {
    let of_problem = |name: &str| {
        let problem = PROBLEMS.iter().find(|p| p.name == name).expect(name);
        let [_, gradient] = problem.ready();
        modules(&gradient.program, gradient.fun).into_iter().map(|(_, module)| print_whole(&module))
    };
    let by_hand = [include_str!("dot.kernel"), include_str!("sum.kernel"), include_str!("workspace.kernel")];
    let mut out: Vec<String> = by_hand.map(str::to_string).to_vec();
    out.push(print_whole(&odd()));
    out.extend(of_problem("hello").chain(of_problem("lse")));
    out
}

/// No text makes the reader panic; what it reads is a module that is read as it was printed.
fn assert_read_or_refused(text: &str) -> bool {
    match read(text) {
        Ok(module) => round_trip(&module).map_or_else(|e| panic!("{e}\n{text}"), |()| true),
        Err(e) => {
            assert!(e.line <= text.lines().count() + 1 && !e.message.is_empty());
            false
        }
    }
}

#[test]
fn parts_of_texts_are_read_or_refused() {
    for text in printed() {
        let step = 1 + text.len() / 400;
        let ends = text.char_indices().map(|(k, _)| k).step_by(step);
        ends.for_each(|k| {
            assert_read_or_refused(&text[..k]);
            assert_read_or_refused(&text[k..]);
        });
    }
}

#[test]
fn changed_texts_are_read_or_refused() {
    let mut rng = Rng::new(number("SEED", 0));
    let mut below = |n: usize| (rng.next_u64() % n as u64) as usize;
    let (mut read, mut all) = (0, 0);
    for text in printed() {
        for _ in 0..number("CHANGES", 300) {
            let mut bytes = text.as_bytes().to_vec();
            let at = below(bytes.len());
            let with = bytes[below(bytes.len())];
            match below(4) {
                0 => bytes[at] = below(256) as u8,
                1 => bytes[at] = with,
                2 => bytes.insert(at, with),
                _ => {
                    bytes.remove(at);
                }
            }
            read += usize::from(assert_read_or_refused(&String::from_utf8_lossy(&bytes)));
            all += 1;
        }
    }
    eprintln!("{read} of {all} are read");
    assert!(read > 0 && 2 * read < all, "{read} of {all} are read");
}
