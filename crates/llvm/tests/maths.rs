//! Compiled functions give the bits of the portable ones. Skipped, with a line that says so, where LLVM is not found.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use crate::loader;
#[path = "../../maths/tests/reference/points.rs"]
mod points;

use std::collections::BTreeSet;

use loader::Llvm;
use points::{Random, point};
use pullback_llvm::maths::{definition, module, name};
use pullback_llvm::{Machine, Precision, Shape};
use pullback_maths::portable::One;
use pullback_maths::{Function, apply, apply_single};

/// Vectors per function and shape.
const VECTORS: usize = 200;

const SPECIAL: &[f64] =
    &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, -1e-310, f64::MAX, 1.0, -1.0];

/// All functions in one module, each with an entry that takes addresses.
fn text(shape: Shape) -> String {
    let definitions: Vec<_> =
        Function::ALL.iter().map(|f| definition(*f, shape, "alwaysinline nounwind readnone")).collect();
    let mut text = module(&definitions);
    let scalar = if shape.precision == Precision::Single { "float" } else { "double" };
    let ty = if shape.lanes == 1 { scalar.to_owned() } else { format!("<{} x {scalar}>", shape.lanes) };
    for function in Function::ALL {
        let name = name(*function, shape);
        let args = if function.facts().arity == 1 { format!("{ty} %a") } else { format!("{ty} %a, {ty} %b") };
        text += &format!(
            "define void @run_{name}(ptr %x, ptr %y, ptr %z) {{
  %a = load {ty}, ptr %x, align 4
  %b = load {ty}, ptr %y, align 4
  %r = call {ty} @{name}({args})
  store {ty} %r, ptr %z, align 4
  ret void
}}\n"
        );
    }
    text
}

/// The arguments of a vector: mostly points of the accuracy test, some special ones.
fn arguments(function: Function, lanes: usize, random: &mut Random) -> Vec<[f64; 2]> {
    let special = |random: &mut Random| SPECIAL[random.bits() as usize % SPECIAL.len()];
    let one = |random: &mut Random| {
        if random.bits().is_multiple_of(9) {
            return [special(random), special(random)];
        }
        let args = point(function, random);
        [args[0], args.get(1).copied().unwrap_or(0.0)]
    };
    (0..lanes).map(|_| one(random)).collect()
}

fn compare(llvm: &Llvm, shape: Shape) {
    let code = llvm.compile(&text(shape)).expect("text that LLVM reads");
    for function in Function::ALL.iter().copied() {
        let entry = format!("run_{}", name(function, shape));
        let arity = function.facts().arity;
        let mut random = Random(99);
        for _ in 0..VECTORS {
            let args = arguments(function, shape.lanes, &mut random);
            match shape.precision {
                Precision::Double => {
                    let (x, y): (Vec<_>, Vec<_>) = args.iter().map(|a| (a[0], a[1])).unzip();
                    let mut results = vec![0.0; shape.lanes];
                    code.call(&entry, &x, &y, &mut results);
                    for (a, result) in args.iter().zip(results) {
                        let expected = apply(&One, function, &a[..arity]).expect("the arity");
                        let same =
                            result.to_bits() == expected.to_bits() || result.is_nan() && expected.is_nan();
                        assert!(same, "{entry} {a:?}: {result:?}, not {expected:?}");
                    }
                }
                Precision::Single => {
                    let (x, y): (Vec<_>, Vec<_>) = args.iter().map(|a| (a[0] as f32, a[1] as f32)).unzip();
                    let mut results = vec![0.0; shape.lanes];
                    code.call(&entry, &x, &y, &mut results);
                    for (i, result) in results.into_iter().enumerate() {
                        let a = [x[i], y[i]];
                        let expected = apply_single(&One, function, &a[..arity]).expect("the arity");
                        let same =
                            result.to_bits() == expected.to_bits() || result.is_nan() && expected.is_nan();
                        assert!(same, "{entry} {a:?}: {result:?}, not {expected:?}");
                    }
                }
            }
        }
    }
}

/// Whether the test can run here: there is LLVM, and this is its machine.
fn with_llvm(test: impl FnOnce(&Llvm)) {
    match Llvm::open() {
        Some(llvm) if cfg!(target_arch = "x86_64") => test(&llvm),
        _ => println!("skipped: no libLLVM for this machine"),
    }
}

#[test]
fn scalar_code_gives_the_bits_of_the_portable_functions() {
    with_llvm(|llvm| {
        compare(llvm, Shape { precision: Precision::Double, lanes: 1, machine: Machine::Generic });
    });
}

#[test]
fn four_lanes_give_the_bits_of_the_portable_functions() {
    with_llvm(|llvm| {
        compare(llvm, Shape { precision: Precision::Double, lanes: 4, machine: Machine::Generic });
    });
}

#[test]
fn eight_lanes_with_avx512_give_the_bits_of_the_portable_functions() {
    with_llvm(|llvm| {
        let features = llvm.features();
        if ["+avx512f", "+avx512dq"].iter().all(|f| features.split(',').any(|g| g == *f)) {
            compare(llvm, Shape { precision: Precision::Double, lanes: 8, machine: Machine::Avx512 });
        } else {
            println!("skipped: no AVX-512");
        }
    });
}

#[test]
fn single_precision_gives_the_bits_of_the_portable_functions() {
    with_llvm(|llvm| {
        compare(llvm, Shape { precision: Precision::Single, lanes: 8, machine: Machine::Generic });
    });
}

#[test]
fn wrong_text_is_an_error() {
    with_llvm(|llvm| {
        let message = llvm.compile("define void @f() { nonsense }").err();
        assert!(message.is_some_and(|m| m.contains("nonsense") || m.contains("expected")));
    });
}

#[test]
fn equal_inputs_give_equal_text() {
    for machine in [Machine::Generic, Machine::Avx512] {
        let shape = Shape { precision: Precision::Double, lanes: 8, machine };
        assert_eq!(text(shape), text(shape));
        assert!(
            text(shape).contains("define internal <8 x double> @pb_exp_f64x8(<8 x double> %a0) alwaysinline")
        );
        assert_eq!(text(shape).contains("vpermi2var"), machine == Machine::Avx512);
    }
}

/// The algorithms need exact rounding: no line may allow LLVM to change it.
#[test]
fn no_line_has_a_fast_math_flag() {
    let text = text(Shape { precision: Precision::Double, lanes: 4, machine: Machine::Generic });
    for flag in ["fast", "reassoc", "contract", "nnan", "ninf", "nsz", "arcp", "afn"] {
        assert!(!text.split_whitespace().any(|word| word == flag), "{flag}");
    }
}

/// Also where there is no LLVM: every name is defined once, and before it is used (in an incoming edge of a `phi` too).
#[test]
fn names_are_defined_once_and_before_they_are_used() {
    for machine in [Machine::Generic, Machine::Avx512] {
        for lanes in [1, 8] {
            let shape = Shape { precision: Precision::Double, lanes, machine };
            for function in Function::ALL {
                let definition = definition(*function, shape, "");
                let mut defined = BTreeSet::new();
                for line in definition.text.lines() {
                    let (target, value) = line.split_once(" = ").unwrap_or(("", line));
                    let words = value.split(|c: char| !(c.is_alphanumeric() || c == '%'));
                    for name in words.filter(|w| w.starts_with("%v")) {
                        assert!(defined.contains(name), "{}: {line}", definition.name);
                    }
                    let is_new = target.is_empty() || defined.insert(target.trim().to_owned());
                    assert!(is_new, "{}: {line}", definition.name);
                }
                assert!(!defined.is_empty(), "{}", definition.name);
            }
        }
    }
}
