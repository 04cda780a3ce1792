//! The rows of the table of reverse AD for Accelerate: features of the MSc thesis, and the tests that show them.

use crate::checklist::{Row, row};

const TYPES: &str = "crates/ad/tests/accelerate/judgement.rs::array_terms_without_a_type_are_refused";
const BOUND: &str = "crates/ad/tests/accelerate/judgement.rs::programs_bind_what_they_read";
const PROGRAMS: &str =
    "crates/ad/tests/accelerate/programs.rs::programs_have_the_values_and_gradients_of_the_prototype";
const FUTHARK: &str =
    "crates/testkit/tests/accelerate.rs::programs_have_the_values_and_gradients_of_the_prototype";
const FORWARD: &str = "crates/testkit/tests/accelerate.rs::reverse_mode_is_forward_mode_at_random_inputs";
const FUNCTIONS: &str = "crates/testkit/tests/accelerate.rs::reverse_ad_for_accelerate_is_right_or_refuses";
const RANDOM: &str =
    "crates/ad/tests/accelerate/laws.rs::gradients_of_random_programs_are_those_of_dual_numbers";
const EXPRESSIONS: &str = "crates/ad/tests/accelerate/lowering.rs::expressions_by_hand";
const BRANCHES: &str =
    "crates/ad/tests/accelerate/lowering.rs::of_a_conditional_only_one_alternative_is_evaluated";
const FOLDS: &str = "crates/ad/tests/accelerate/lowering.rs::folds_with_any_associative_operator";
const SCANS: &str = "crates/ad/tests/accelerate/lowering.rs::scans_of_inner_sizes_0_1_2";
const PERMUTES: &str = "crates/ad/tests/accelerate/lowering.rs::permutations_of_many_to_one";
const SLICES: &str = "crates/ad/tests/accelerate/lowering.rs::replicate_and_slice_are_those_of_the_text";
const W3: &str = "crates/ad/tests/accelerate/worked.rs::w3_a_function_in_two";
const W4: &str = "crates/ad/tests/accelerate/worked.rs::w4_the_trace_of_the_dual_phase";
const W5: &str = "crates/ad/tests/accelerate/worked.rs::w5_both_branches";
const SHAPE_W5: &str = "crates/ad/tests/accelerate/worked.rs::w5_the_shape_of_both_phases";
const E2: &str = "crates/ad/tests/accelerate/errata.rs::e2_the_rule_of_folds";
const E3: &str = "crates/ad/tests/accelerate/errata.rs::e3_the_adjoint_of_an_index_is_stored";
const HISTOGRAMS: &str =
    "crates/ad/tests/accelerate/histograms.rs::histograms_by_every_operator_are_right_at_all_sizes";
const PLAIN: &str = "crates/ad/tests/accelerate/collect.rs::plain_functions_have_no_loop";
const NAMED: &str = "crates/ad/tests/accelerate/translated.rs::refusals_name_the_construct";
const COUNTED: &str = "crates/ad/tests/accelerate/counts.rs::permutations_are_of_gathers_and_reads";
const PADDED: &str =
    "crates/ad/tests/accelerate/counts.rs::contributions_of_the_full_shape_are_added_as_they_are";
const UNUSED: &str = "crates/ad/tests/accelerate/counts.rs::what_is_not_used_has_no_adjoint";
const LABELS: &str =
    "crates/ad/tests/accelerate/laws.rs::each_node_has_a_label_of_its_own_and_a_let_that_of_its_body";
const GROWTH: &str = "crates/ad/tests/accelerate/growth.rs::the_ratio_does_not_grow_with_the_data";
const NESTS: &str = "crates/ad/tests/accelerate/translated.rs::nested_parallelism_is_flattened";
const AGAIN: &str = "crates/ad/tests/accelerate/translated.rs::derivatives_are_differentiated_again";
const RECOMPUTED: &str = "crates/ad/tests/accelerate/counts.rs::recomputing_runs_the_function_twice";
const CHAIN: &str = "crates/ad/tests/accelerate/sharing.rs::a_chain_is_one_map";

const JOINED: &str =
    "crates/testkit/tests/accelerate_experiments.rs::array_operations_of_a_gradient_are_joined";

const INNER: &str =
    "crates/testkit/tests/accelerate_experiments.rs::inner_results_take_memory_only_where_they_are_stored";

/// In the order of our notes; numbers are sections of the thesis.
pub(crate) const ROWS: &[Row] = &[
    row(
        "scalar types, continuous and discrete (3.1)",
        "the gradient by what is discrete is zero; nodes of it have no adjoint",
        &["crates/ad/tests/accelerate/counts.rs::what_is_discrete_has_no_adjoint", PROGRAMS],
    ),
    row(
        "index and shape types of any rank (3.1)",
        "ranks 0 to 3",
        &["crates/ad/tests/accelerate/lowering.rs::maps_and_generations_of_every_rank"],
    ),
    row(
        "type checker (3.1)",
        "each typing rule refuses a term that breaks it; outputs are checked on all programs",
        &["crates/ad/tests/accelerate/judgement.rs::expressions_without_a_type_are_refused", TYPES, RANDOM],
    ),
    row(
        "nested parallelism (2.3.2)",
        "no expression holds what is parallel; functions of core are flattened, the second kind too, which the text refuses",
        &[BOUND, NESTS],
    ),
    row(
        "sharing by let (3.1)",
        "a value that is used twice is evaluated once",
        &["crates/ad/tests/accelerate/sharing.rs::a_binding_that_is_used_twice_is_evaluated_once"],
    ),
    row(
        "`map`, `generate`, `zipWith` (3.1)",
        "by hand; of unequal sizes the smaller one",
        &[
            "crates/ad/tests/accelerate/lowering.rs::zip_with_takes_the_smaller_size_of_each_dimension",
            PROGRAMS,
        ],
    ),
    row(
        "`reshape` (3.1)",
        "row-major, with the dynamic check",
        &["crates/ad/tests/accelerate/lowering.rs::reshape_keeps_the_row_major_order"],
    ),
    row("`replicate` with any slice (3.1)", "the example of the text", &[SLICES]),
    row("`slice` (3.1)", "the example of the text", &[SLICES]),
    row(
        "`sum`, `foldl` (3.1)",
        "associative operators that do not commute, first values that are not neutral, empty rows",
        &["crates/ad/tests/accelerate/lowering.rs::sums_of_every_rank", FOLDS],
    ),
    row(
        "`fold1`",
        "an empty row stops the program",
        &["crates/ad/tests/accelerate/lowering.rs::fold1_of_an_empty_row_stops"],
    ),
    row("`scanl`, `scanr` (3.1)", "inner sizes 0, 1, 2", &[SCANS]),
    row(
        "`permute` (3.1)",
        "many to one, a predicate that is false, a place outside",
        &[PERMUTES, "crates/ad/tests/accelerate/lowering.rs::a_permutation_out_of_its_target_stops"],
    ),
    row(
        "`backpermute` (3.1)",
        "by hand",
        &["crates/ad/tests/accelerate/lowering.rs::backpermute_reads_where_its_function_says"],
    ),
    row("conditionals run one branch (3.1)", "the other one would be out of bounds", &[BRANCHES]),
    row("`index`, `shape` in expressions (3.1)", "by hand", &[EXPRESSIONS]),
    row(
        "the interface (3.2)",
        "any argument and result; free variables are constants; the value is returned too",
        &[
            "crates/ad/tests/accelerate/counts.rs::arrays_that_do_not_vary_get_nothing",
            "crates/ad/tests/accelerate/translated.rs::sizes_of_inner_bodies_and_several_results",
        ],
    ),
    row(
        "gradients of expressions (App. C.2)",
        "a function of numbers is one of arrays of rank 0; in a map it is a nest",
        &["crates/ad/tests/accelerate/worked.rs::h_of_two_numbers"],
    ),
    row(
        "labels (3.4.2)",
        "the example of the text; each node its own, a let that of its body",
        &["crates/ad/tests/accelerate/laws.rs::labels_of_the_example_of_the_text", LABELS],
    ),
    row(
        "primal and dual lambda (3.4.1)",
        "the example of the text, its values and types",
        &[W3, "crates/ad/tests/accelerate/worked.rs::w3_temporaries"],
    ),
    row("primal phase of arrays (3.4.3)", "the value is that of the program", &[RANDOM, FUNCTIONS]),
    row(
        "primal phase of `acond` (3.4.3)",
        "empty temporaries of the branch that is not taken",
        &[SHAPE_W5, W5],
    ),
    row("dual recipe, contribution map (3.4.4)", "the trace of the example", &[W4]),
    row(
        "sums of contributions (3.4.4)",
        "padded only where shapes may differ",
        &[
            PADDED,
            "crates/ad/tests/accelerate/counts.rs::tuples_are_summed_by_components_only_where_they_differ",
        ],
    ),
    row(
        "zeros and empty arrays (3.4.3, 3.4.4)",
        "a zero of bool is false, and has to be",
        &["crates/ad/tests/accelerate/errata.rs::what_is_not_read_is_false"],
    ),
    row("duals of variables and tuples (Table 2)", "programs tuple1 to tuple4", &[PROGRAMS]),
    row(
        "duals of `reshape`, `replicate`, `slice` (Table 2)",
        "E1: the index as printed is the inverse one",
        &[
            "crates/ad/tests/accelerate/errata.rs::e1_the_index_of_replicate",
            "crates/ad/tests/accelerate/counts.rs::replicate_is_summed_over_what_was_inserted",
        ],
    ),
    row(
        "duals of `map`, `zipWith`, `generate` (Table 2)",
        "their form, and values",
        &["crates/ad/tests/accelerate/worked.rs::w1_the_shape_of_the_dual_phase", PROGRAMS],
    ),
    row(
        "dual of `sum` (Table 2)",
        "it fuses with what takes it",
        &["crates/ad/tests/accelerate/worked.rs::w1_the_sum_of_products", CHAIN],
    ),
    row(
        "dual of `foldl` (Table 2)",
        "E2, E2b and E5: the rule as printed is wrong",
        &[E2, "crates/ad/tests/accelerate/errata.rs::e5_the_contribution_of_a_fold_has_no_type"],
    ),
    row("dual of `fold1`", "goldens, of one and two dimensions", &[PROGRAMS]),
    row(
        "folds that the text refuses (3.2.1): ours",
        "functions that read an array that varies, elements of any type: by loops; other ones have none",
        &[
            "crates/ad/tests/accelerate/collect.rs::folds_whose_functions_read_what_varies",
            "crates/ad/tests/accelerate/collect.rs::folds_of_tuples_in_tuples",
            PLAIN,
        ],
    ),
    row(
        "scans and `permute` as input (3.2.1): ours",
        "`scanl`, `scanr`, `scanl1` and `permute` of any function",
        &[
            "crates/ad/tests/accelerate/collect.rs::scans_have_derivatives",
            "crates/ad/tests/accelerate/collect.rs::scans_from_the_right_keep_the_order",
            "crates/ad/tests/accelerate/collect.rs::scans_whose_functions_read_what_varies",
            "crates/ad/tests/accelerate/errata.rs::a_scan_without_a_first_value_has_a_derivative",
            HISTOGRAMS,
        ],
    ),
    row("dual of `backpermute` (Table 2)", "one `permute (+)`", &[COUNTED]),
    row(
        "reads in scalar functions (3.3.2, 3.4.4)",
        "one `permute (+)` for each read",
        &["crates/ad/tests/accelerate/worked.rs::w2_an_array_that_is_read", COUNTED],
    ),
    row(
        "reads of the argument, of bound arrays, of components (3.4.4, 4.2.3)",
        "two components of one tuple",
        &[
            "crates/ad/tests/accelerate/errata.rs::components_of_one_tuple_are_read",
            "crates/ad/tests/accelerate/worked.rs::w4_an_array_that_is_bound_and_read",
        ],
    ),
    row("dual of `alet`: the body first (3.4.4)", "an array that nothing uses has no adjoint", &[UNUSED, W4]),
    row(
        "dual of `acond` (3.4.4)",
        "both branches; restored in order",
        &[W5, "crates/ad/tests/accelerate/errata.rs::p2_what_branches_store_is_restored_in_order"],
    ),
    row(
        "the gradient (3.4.5)",
        "zeros of the right shape where the argument is ignored",
        &[PROGRAMS, "crates/ad/tests/accelerate/programs.rs::programs_of_empty_vectors"],
    ),
    row(
        "expressions, all rows (3.5)",
        "each construct in random programs",
        &["crates/ad/tests/accelerate/laws.rs::random_programs_have_all_constructs", RANDOM],
    ),
    row("the adjoint of a read is stored (3.5.2)", "E3", &[E3]),
    row(
        "derivatives of primitives (3.5.2)",
        "those of the table of all algorithms; ties of `max`",
        &[
            "crates/ad/tests/accelerate/errata.rs::ties_of_the_maximum",
            "crates/ad/tests/accelerate/errata.rs::zero_adjoints_stop_unless_products_are_plain",
        ],
    ),
    row("rounding breaks the flow (3.2)", "program nonfloat_lam", &[PROGRAMS]),
    row(
        "stored or computed again (5.3.1)",
        "equal gradients in all variants, in all programs and random ones; memory of mixtures and of a function with inner results",
        &[
            RECOMPUTED,
            "crates/ad/tests/accelerate/worked.rs::w4_recomputed",
            "crates/ad/tests/accelerate/worked.rs::checkpoints_are_not_computed_again",
            "crates/testkit/tests/accelerate_experiments.rs::mixtures_take_less_memory_where_values_are_computed_again",
            RANDOM,
            INNER,
        ],
    ),
    row(
        "fusion after AD (3.3.1)",
        "a chain of combinators is one map; the gradient of Fig. 2 is one array operation, that of a mixture is fewer than the 282 of the text",
        &[CHAIN, JOINED],
    ),
    row(
        "optimise before AD (6.1): ours",
        "functions of maps and zips are joined if work is not repeated; values to the last bit, gradients of random programs",
        &[
            "crates/ad/tests/accelerate/fuse.rs::maps_in_arguments_of_zips_are_part_of_the_zip",
            "crates/ad/tests/accelerate/fuse.rs::what_is_used_twice_stays",
            "crates/ad/tests/accelerate/fuse.rs::fused_random_programs_have_the_same_values_and_gradients",
        ],
    ),
    row(
        "dead code (3.4.6)",
        "temporaries that nothing reads, adjoints that nothing takes",
        &[
            "crates/ad/tests/accelerate/counts.rs::the_dual_lambda_adds_and_multiplies_what_is_needed",
            "crates/ad/tests/accelerate/counts.rs::zeros_are_not_bound",
            UNUSED,
        ],
    ),
    row(
        "constant cost (2.1)",
        "steps of gradient over steps of program, as sizes grow",
        &[
            GROWTH,
            "crates/ad/tests/accelerate/growth.rs::uses_of_an_array_add_up",
            "crates/ad/tests/accelerate/growth.rs::conditions_hand_out_what_they_store",
        ],
    ),
    row("all executors agree (4.3.2)", "90 programs on interpreter, vm and machine code", &[FUTHARK]),
    row("forward mode as oracle (4.3)", "at random inputs of sizes 0 to 20", &[FORWARD]),
    row("differences as oracle (4.3.2)", "", &[]),
    row("random inputs with restrictions (4.3.1)", "seeded, restrictions by construction", &[FORWARD]),
    row(
        "Gaussian mixtures, both forms (5.1)",
        "values and gradients of a prototype and of ADBench, in all variants; single precision",
        &[
            "crates/testkit/tests/accelerate_experiments.rs::gaussian_mixtures_have_the_values_and_gradients_of_the_notes",
            "crates/testkit/tests/accelerate_experiments.rs::gaussian_mixtures_of_single_precision",
            "crates/testkit/tests/accelerate_experiments.rs::gaussian_mixtures_have_the_gradients_of_adbench",
        ],
    ),
    row(
        "bundle adjustment in rows (5.1)",
        "rows of a prototype, one without a rotation; the picture of the text (Fig. 4)",
        &[
            "crates/testkit/tests/accelerate_experiments.rs::rows_of_bundle_adjustment_are_those_of_the_notes",
            "crates/testkit/tests/accelerate_experiments.rs::the_pattern_of_the_jacobian_is_that_of_the_picture",
        ],
    ),
    row(
        "benchmark driver (5.2)",
        "limits of calls, time and memory; the suite twice; the page is made from the result file",
        &[
            "crates/bench/src/accelerate/mod.rs::what_exceeds_a_limit_is_not_run",
            "crates/bench/src/accelerate/child.rs::calls_end_at_their_limit",
            "crates/bench/src/accelerate/page.rs::ratios_of_two_turns_are_counted_in_bins",
            "crates/bench/src/accelerate/page.rs::the_page_is_that_of_the_results",
        ],
    ),
    row(
        "four versions (5.3.1)",
        "times and memory of both variants on one thread and all (`accelerate-experiments.md`)",
        &["crates/bench/src/accelerate/cases.rs::versions_are_both_variants_on_one_thread_and_all"],
    ),
    row(
        "loops (6.1): ours",
        "`collectl` and `collectr`, the states of loops over rows: any state of scalars, arrays that are read by index; work is linear",
        &[
            "crates/ad/tests/accelerate/collect.rs::states_from_both_ends",
            "crates/ad/tests/accelerate/collect.rs::states_are_any_values",
            "crates/ad/tests/accelerate/collect.rs::steps_read_arrays",
            GROWTH,
        ],
    ),
    row(
        "loops of arrays (6.1): ours",
        "`iterate`: states that are tuples of arrays; steps are any terms, loops too",
        &[
            "crates/ad/tests/accelerate/collect.rs::states_of_arrays",
            "crates/ad/tests/accelerate/collect.rs::steps_of_arrays_are_any_terms",
        ],
    ),
    row(
        "scans and permutations as input (6.1): ours",
        "`permute` and histograms by any operator, with zeros, ties and places outside; scatters; scans by any operator",
        &[
            "crates/ad/tests/accelerate/permutes.rs::a_permutation_as_input",
            "crates/ad/tests/accelerate/permutes.rs::a_histogram_gives_each_element_the_adjoint_of_its_place",
            "crates/ad/tests/accelerate/permutes.rs::a_scatter_gives_the_last_element_the_adjoint_of_its_place",
            "crates/ad/tests/accelerate/permutes.rs::a_histogram_of_products_counts_no_zeros",
            "crates/ad/tests/accelerate/permutes.rs::a_histogram_of_extrema_gives_the_adjoint_to_the_winner",
            "crates/ad/tests/accelerate/permutes.rs::a_histogram_by_any_operator",
            "crates/ad/tests/accelerate/permutes.rs::a_permutation_of_any_rank_whose_function_reads",
            "crates/ad/tests/accelerate/permutes.rs::derivatives_of_histograms_are_differentiated_again",
            "crates/ad/tests/accelerate/histograms.rs::histograms_with_ties_and_zeros_are_right",
            HISTOGRAMS,
        ],
    ),
    row(
        "stencils (6.1): ours",
        "neighbours are read by index: clamped, mirrored, wrapped, or with a number of their own",
        &["crates/ad/tests/accelerate/stencils.rs::stencils_have_derivatives_with_every_boundary"],
    ),
    row(
        "index functions with an inverse (6.1): ours",
        "transposed, reversed and shifted: no array is added up in memory",
        &[
            "crates/ad/tests/accelerate/sharing.rs::a_permutation_to_all_places_is_a_map",
            "crates/ad/tests/accelerate/sharing.rs::permutations_that_move_are_turned_around",
        ],
    ),
    row("custom derivatives (6.1)", "refused with construct and place", &[NAMED]),
    row(
        "programs of core, nests flattened (ours)",
        "values, gradients, sizes that bodies compute, branches of arrays of different sizes",
        &[
            NESTS,
            FUNCTIONS,
            "crates/ad/tests/accelerate/translated.rs::branches_of_arrays_of_different_sizes",
            "crates/ad/tests/accelerate/translated.rs::nothing_is_read_where_a_nest_is_empty",
        ],
    ),
    row(
        "loops of core (ours)",
        "states of numbers, in nests and branches, loops that collect; operators that read what changes; loops of arrays, in nests too; `while` loops outside of nests",
        &[
            "crates/ad/tests/accelerate/loops.rs::a_loop_in_a_nest",
            "crates/ad/tests/accelerate/loops.rs::states_of_several_types_say_where_arrays_are_read",
            "crates/ad/tests/accelerate/loops.rs::loops_that_collect",
            "crates/ad/tests/accelerate/loops.rs::loops_of_arrays_in_a_nest",
            "crates/ad/tests/accelerate/loops.rs::while_loops_run_once_to_be_counted",
            "crates/ad/tests/accelerate/loops_compared.rs::loops_of_arrays_and_while_loops_are_right_at_all_sizes",
            "crates/ad/tests/accelerate/loops.rs::operators_that_read_what_changes",
            "crates/ad/tests/accelerate/loops.rs::loops_of_arrays",
            "crates/ad/tests/accelerate/loops.rs::array_operations_on_a_state",
            "crates/ad/tests/accelerate/loops.rs::other_loops_are_refused",
        ],
    ),
    row(
        "products as arguments and results (ours)",
        "nested, with components that have no adjoint; arrays of products are refused",
        &[
            "crates/ad/tests/accelerate/products.rs::products_are_arguments_and_results",
            "crates/ad/tests/accelerate/products.rs::products_are_right_at_all_sizes",
            "crates/ad/tests/accelerate/products.rs::products_that_do_not_vary",
            "crates/ad/tests/accelerate/products.rs::arrays_of_products_are_refused",
        ],
    ),
    row("derivatives of derivatives (ours)", "by Fast CHAD, and by the algorithm itself", &[AGAIN]),
    row(
        "folds of tuples, and by the larger one (ours)",
        "by hand",
        &[
            "crates/ad/tests/accelerate/errata.rs::a_fold_of_pairs_has_a_derivative",
            "crates/ad/tests/accelerate/errata.rs::a_fold_by_the_larger_one_is_an_element",
        ],
    ),
];
