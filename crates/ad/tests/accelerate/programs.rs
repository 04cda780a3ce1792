//! Programs in the language itself, with the values and gradients of a prototype, in all variants.
//!
//! The numbers are `accelerate_goldens.json` in `shared/data` beside the repository. Without that file a test says how many programs it leaves out.

use super::build::*;
use super::catalogue::{ONE, TWO, one, two};
use super::directed::DIRECTED;
use super::gradients::*;
use pullback_ad::accelerate::language::Program;
use serde_json::Value as Json;
use std::path::Path;

const TOLERANCE: f64 = 1e-9;

/// Reads the expected numbers. NaN becomes null, which JSON has.
fn goldens() -> Option<Json> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/accelerate_goldens.json");
    let text = std::fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text.replace("NaN", "null")).expect("JSON"))
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().expect("numbers").iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

/// The numbers of constants in the programs: they are those of the file.
const CONSTANTS: &[(&str, &[f64])] = &[
    ("slice_2", &[7.0, 12.0]),
    ("backpermute_1", &[5.0]),
    ("backpermute_2", &[5.0]),
    ("neural", &[3.0, 2.0]),
];

/// All programs by name.
pub(super) fn all() -> Vec<(&'static str, Program)> {
    let of_one = ONE.iter().chain(DIRECTED).map(|(name, body)| (*name, one(*body)));
    of_one.chain(TWO.iter().map(|(name, body)| (*name, two(*body)))).collect()
}

#[test]
fn programs_have_the_values_and_gradients_of_the_prototype() {
    let programs = all();
    let Some(goldens) = goldens() else {
        return eprintln!(
            "skipped: no expected numbers are found, {} programs are not compared",
            programs.len()
        );
    };
    for (name, constants) in CONSTANTS {
        assert_eq!(numbers(&goldens["inputs"]["ints"][name]), *constants);
    }
    let mut wrong = Vec::new();
    for (name, program) in &programs {
        for (input, vector) in [("a", "a"), ("-a", "neg_a")] {
            let expected = &goldens["tests"][name][input];
            let Some(gradients) = expected["grad"].as_array() else { panic!("{name}: no expected numbers") };
            let gradient = gradients.iter().map(numbers).collect::<Vec<_>>().concat();
            let vectors = [vector, "b"].into_iter().take(leaves(program.param.ty()));
            let args: Vec<_> = vectors.map(|v| reals(&numbers(&goldens["inputs"][v]))).collect();
            let value = expected["value"].as_f64().unwrap_or(f64::NAN);
            wrong.extend(
                differs(program, &args, value, &gradient, TOLERANCE)
                    .map(|why| format!("{name} at {input}: {why}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Empty vectors, where the program is defined at them: the value is zero, one, or what the text says, and there is no gradient.
#[test]
fn programs_of_empty_vectors() {
    let none = [
        "acond_cond1",
        "aindex_map_1",
        "aindex_only",
        "backpermute",
        "fold1",
        "logsumexp",
        "neural",
        "replicate",
    ];
    let other = ["slice_2", "tuple2", "tuple3", "x_backperm_dup", "x_fold1", "x_fold_2d", "x_slice_all"];
    let is_defined = |name: &str| !none.iter().chain(&other).any(|start| name.starts_with(start));
    let of_empty = |name: &str| match name {
        "fold_1" | "x_fold_first" => Some(1.0),
        "acond_3a" | "acond_3b" | "a_ignore_argument" => Some(42.0),
        "fold_2" => Some(3.0),
        "x_fold_xyplus" => Some(0.5),
        "x_only_untaken" => Some(2.0),
        "tuple1" => Some(5.0),
        "x_index_arg_acond" => None,
        _ => Some(0.0),
    };
    let mut count = 0;
    for (name, program) in all().into_iter().filter(|(name, _)| is_defined(name)) {
        let Some(value) = of_empty(name) else { continue };
        let args = vec![reals(&[]); leaves(program.param.ty())];
        if let Some(why) = differs(&program, &args, value, &[], TOLERANCE) {
            panic!("{name}: {why}");
        }
        count += 1;
    }
    assert!(count > 45, "{count}");
}
