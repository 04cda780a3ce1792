//! The rows of the table of features of dual-numbers reverse AD, in the language and in Rust.

use crate::checklist::{Row, row};

const GROWTH_CALLS: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::later_stages_call_each_backpropagator_once";
const GROWTH_PATHS: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::the_naive_stage_calls_backpropagators_once_per_path";
const GROWTH_TOUCHED: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::what_is_touched_of_whole_cotangents";
const GROWTH_DEEP: &str = "crates/testkit/tests/dual_numbers_growth.rs::deep_arguments_cost_their_depth_until_only_numbers_are_kept";
const GROWTH_CONSTANT: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::the_last_stages_cost_a_constant_per_operation";
const GROWTH_IDENTITIES: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::identities_are_those_of_operations_that_matter";
const GROWTH_IGNORED: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::what_is_ignored_and_what_is_handed_out";
const GROWTH_TREES: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::delta_terms_are_trees_until_sharing_is_seen";
const GROWTH_FORKS: &str =
    "crates/testkit/tests/dual_numbers_growth.rs::forks_are_parallel_forwards_and_back";
const GROWTH_LONG: &str = "crates/testkit/tests/dual_numbers_growth.rs::long_programs_need_no_deep_stack";
const MUTANTS: &str = "crates/testkit/tests/dual_numbers_mutants.rs::every_wrong_rule_is_found";
const TEXTS: &str = "crates/testkit/tests/dual_numbers_texts.rs::programs_of_the_thesis_and_the_slides";
const FORMS: &str = "crates/testkit/tests/dual_numbers_texts.rs::closed_forms_of_the_reference_test_suite";
const FORKS: &str = ":forks_and_joins_have_the_gradients_of_forward_mode";
const RANDOM: &str = ":gradients_of_random_terms_are_those_of_forward_mode";
const WRITTEN: &str = ":constructs_keep_their_structure";

/// In the order of the chapters.
pub(crate) const ROWS: &[Row] = &[
    row(
        "source terms and their types",
        "what is made of random terms is well typed; what has no rule is named",
        &[RANDOM, ":what_has_no_rule_is_named", "crates/lambda/tests/checker.rs::linear_bodies_are_linear"],
    ),
    row("naive: types and terms", "random terms of three languages against forward mode", &[RANDOM]),
    row(
        "numbers into and out of products, sums and arrays",
        "arguments and results of every shape that is no function",
        &[WRITTEN, "crates/testkit/tests/dual_numbers_texts.rs::alternatives_as_arguments_and_results"],
    ),
    row(
        "value and pullback",
        "rows of Jacobians; in Rust pullbacks that are called again, linear in the cotangent",
        &[TEXTS, "crates/dual/tests/reverse.rs::pullbacks_are_linear_and_can_be_called_again"],
    ),
    row("staged: identities and calls", "each backpropagator once", &[GROWTH_CALLS]),
    row("linear factoring", "calls of one function are one call at the sum", &[GROWTH_CALLS, MUTANTS]),
    row("order of resolution", "the highest identity first; another order or range is found", &[MUTANTS]),
    row(
        "Cayley transform",
        "zeros and sums touch nothing; what is left is the depth of an argument",
        &[GROWTH_TOUCHED, GROWTH_DEEP],
    ),
    row("maps of numbers", "a logarithm per operation", &[GROWTH_CONSTANT]),
    row(
        "mutable arrays",
        "nothing of whole cotangents is touched; a constant per operation",
        &[GROWTH_TOUCHED, GROWTH_CONSTANT],
    ),
    row(
        "owned state instead of effects",
        "the tape in the language is threaded as a value and read by loops over arrays that are written in place, so that it compiles; backpropagators over owned arrays are not made",
        &[":tapes_are_compiled"],
    ),
    row("one array", "contributions collect arguments and operations in one array", &[GROWTH_CONSTANT]),
    row(
        "contributions as data",
        "identities are operations, constants and arguments; shared, not copied",
        &[GROWTH_IDENTITIES, GROWTH_LONG],
    ),
    row(
        "taping",
        "no rows for constants; compiled on every executor",
        &[GROWTH_CONSTANT, ":tapes_are_compiled"],
    ),
    row("forward mode", "the oracle of random terms and of forks", &[RANDOM, FORKS]),
    row(
        "many directions at once",
        "columns and rows of Jacobians",
        &[
            "crates/ad/tests/many.rs::stacked_tangents_are_columns_of_the_jacobian_also_at_maps_reductions_and_updates",
        ],
    ),
    row(
        "paths of a graph",
        "calls of the naive stage are the paths: 2^n, and Fibonacci numbers",
        &[GROWTH_PATHS],
    ),
    row(
        "delta terms",
        "all evaluators agree; trees and graphs have the sizes of the text; the slides' term, binding by binding",
        &[
            GROWTH_TREES,
            "crates/testkit/tests/dual_numbers_texts.rs::the_delta_term_of_the_slides",
            "crates/testkit/tests/dual_numbers_texts.rs::rows_of_the_slides_rotation",
        ],
    ),
    row(
        "recursion",
        "loops, recursive and mutually recursive functions",
        &[WRITTEN, "crates/testkit/tests/dual_numbers_texts.rs::mutual_recursion"],
    ),
    row(
        "sums",
        "a cotangent of another alternative is an error",
        &[
            "crates/testkit/tests/dual_numbers_texts.rs::alternatives_as_arguments_and_results",
            "crates/dual/tests/shapes.rs::other_shapes_are_errors",
        ],
    ),
    row("conditions", "both sides of a branch", &[TEXTS, FORMS]),
    row("what only conditions need", "makes no identities", &[GROWTH_IDENTITIES]),
    row(
        "data types",
        "recursive sums inside of programs; in Rust types of any shape",
        &[RANDOM, "crates/dual/tests/values.rs::a_gradient_has_the_shape_of_the_value"],
    ),
    row("integers", "pass through; they have no cotangents", &[":programs_of_the_texts", WRITTEN]),
    row(
        "functions as values",
        "captured numbers, partial application, composition, random terms with functions",
        &[FORMS, RANDOM],
    ),
    row(
        "parallel pair",
        "small, large and random",
        &[FORMS, "crates/testkit/tests/dual_numbers_texts.rs::walks_in_parallel", FORKS],
    ),
    row(
        "order of jobs",
        "tasks in any order have the same gradients; in Rust on real threads",
        &[FORKS, "crates/dual/tests/parallel.rs::random_forks_have_the_gradients_of_forward_mode"],
    ),
    row("history", "one job and three for every fork", &[GROWTH_FORKS]),
    row("parallel resolution", "the span is that of the program", &[GROWTH_FORKS]),
    row(
        "forks at the start, empty jobs",
        "also branches that are the result",
        &[FORKS, "crates/dual/tests/parallel.rs::forks_at_the_start_and_branches_that_are_the_result"],
    ),
    row(
        "forks in forks and one after the other",
        "a thousand in turn",
        &[GROWTH_LONG, "crates/dual/tests/parallel.rs::many_forks_one_after_another"],
    ),
    row(
        "more than two terms in parallel",
        "halves; in Rust parallel iterators",
        &[FORKS, "crates/dual/tests/parallel.rs::a_million_contributions_to_one_number_are_all_counted"],
    ),
    row(
        "contributions at the same time",
        "none is lost",
        &[
            "crates/dual/tests/parallel.rs::no_contribution_is_lost_where_branches_meet",
            "crates/dual/tests/model.rs::no_contribution_of_parallel_branches_is_lost",
        ],
    ),
    row(
        "the same bits on any number of threads",
        "sums of branches have a fixed order",
        &["crates/dual/tests/parallel.rs::random_forks_have_the_gradients_of_forward_mode"],
    ),
    row("forward pass", "a constant per operation", &[GROWTH_IDENTITIES, GROWTH_CONSTANT]),
    row(
        "complexity by counting",
        "formulas of the texts, exactly; stages fail what their successors pass",
        &[GROWTH_PATHS, GROWTH_CALLS, GROWTH_TOUCHED, GROWTH_DEEP, GROWTH_CONSTANT, GROWTH_TREES],
    ),
    row(
        "benchmarks",
        "rotation by hand; times are in `dual-rust.md`",
        &["crates/dual/tests/reverse.rs::rotation_has_the_jacobian_derived_by_hand"],
    ),
    row(
        "another tape",
        "the language and Rust agree; libraries of the field are in the benchmark",
        &["crates/pullback/tests/dual.rs::rust_and_the_language_give_the_same_gradient"],
    ),
    row(
        "array operations",
        "scans, histograms, scatters, data movement against the production mode",
        &[WRITTEN],
    ),
    row("array functions", "also with operators that do not commute", &[WRITTEN, RANDOM]),
    row(
        "derivatives of array functions",
        "production mode: every rule of every fold",
        &[
            "crates/ad/tests/fast_chad_folds.rs::every_reduce_rule_is_right_for_every_operator",
            "crates/ad/tests/fast_chad_folds.rs::every_scan_rule_is_right_for_every_operator",
        ],
    ),
    row(
        "fusion",
        "passes of the compiler",
        &["crates/testkit/tests/passes.rs::passes_are_done_after_one_run_and_cost_nothing_on_problems"],
    ),
    row("arrays of products", "products of arrays in core", &["suite/records/fields.md"]),
    row(
        "work and span",
        "counted by the interpreters",
        &[GROWTH_FORKS, "crates/ad/tests/fast_chad_folds.rs::parallel_rules_keep_the_depth_logarithmic"],
    ),
    row(
        "Jacobians, Hessians",
        "all nestings agree",
        &[TEXTS, "crates/dual/tests/reverse.rs::second_derivatives_agree_in_all_nestings"],
    ),
    row(
        "higher order",
        "third derivatives by nesting",
        &["crates/dual/tests/reverse.rs::third_derivatives_by_nesting"],
    ),
    row(
        "derivatives of one's own",
        "in both modes; in the language by the production mode",
        &["crates/dual/tests/reverse.rs::custom_derivatives_are_used_in_both_modes", "suite/custom/rules.md"],
    ),
    row(
        "checkpoints",
        "keep no rows",
        &[
            "crates/dual/tests/reverse.rs::checkpoints_keep_no_rows",
            "crates/ad/tests/fast_chad_checkpoint.rs::binomial_checkpointing_runs_what_the_recurrence_says",
        ],
    ),
    row(
        "sparsity",
        "one element of a map costs next to nothing in production mode; no colouring here",
        &["crates/ad/tests/fast_chad_growth.rs::one_element_of_a_map_costs_next_to_nothing"],
    ),
    row(
        "constants and dead code",
        "no rows for constants, no work for what is not used",
        &["crates/dual/tests/reverse.rs::constants_make_no_rows", GROWTH_IGNORED],
    ),
    row(
        "tapes used again",
        "no allocation the second time",
        &["crates/dual/tests/memory.rs::memory_is_used_again_and_given_back"],
    ),
    row(
        "rows of many parents",
        "sums and products of many numbers are one row",
        &["crates/dual/tests/reverse.rs::rows_of_many_parents_equal_loops"],
    ),
    row(
        "kinks",
        "the values are documented",
        &[
            "crates/dual/tests/reverse.rs::kinks_are_those_of_the_language",
            "crates/dual/tests/kinks.rs::sums_that_are_smooth_have_the_smooth_gradient",
            "suite/kinks/conventions.md",
        ],
    ),
    row(
        "zeros at steep places in Rust",
        "a zero tangent or cotangent stops, in both modes and the four mixes of them; finite partial derivatives lose nothing",
        &[
            "crates/dual/tests/zeros.rs::what_does_not_depend_on_a_number_leaves_its_derivatives_alone",
            "crates/dual/tests/zeros.rs::what_counts_by_zero_has_no_part_in_the_gradient",
            "crates/dual/tests/zeros.rs::nothing_is_lost_where_partial_derivatives_are_finite",
        ],
    ),
    row("the value beside the derivative", "equals that of the program", &[RANDOM, TEXTS]),
    row(
        "memory",
        "given back; a limit is an error",
        &[
            "crates/dual/tests/memory.rs::memory_is_used_again_and_given_back",
            "crates/dual/tests/reverse.rs::limits_are_errors",
            "crates/dual/tests/limits.rs::tapes_and_what_checkpoints_run_again_stay_within_the_limit",
        ],
    ),
    row(
        "long programs",
        "a hundred thousand operations in the language, a million rows in Rust, without a deep stack",
        &[GROWTH_LONG, "crates/dual/tests/reverse.rs::a_million_rows_are_dropped_without_recursion"],
    ),
    row(
        "zero times infinity",
        "a zero cotangent stops at partial derivatives that are not finite",
        &[
            "suite/kinks/zero-times-infinity.md",
            "crates/testkit/tests/partials/mod.rs::what_is_not_taken_spoils_nothing",
        ],
    ),
    row(
        "what is not offered",
        "derivatives inside of a program are refused by these algorithms",
        &[":what_has_no_rule_is_named"],
    ),
    row(
        "mistakes of the texts",
        "what is printed for `eval_2` of a scaled term is not what is right; ends of resolution",
        &[
            "crates/testkit/tests/dual_numbers_growth.rs::scaling_leaves_alone_what_was_collected_before",
            MUTANTS,
        ],
    ),
];
