//! The rows of the table of features.

use crate::checklist::{Row, row};

/// In the order of the algorithm's notes.
pub(crate) const ROWS: &[Row] = &[
    row(
        "forward and reverse sweep split",
        "reverse code reads saved names and seeds only; checked after every derivative",
        &[
            ":scalars_and_products",
            ":a_gradient_by_hand",
            "crates/ad/tests/structure.rs::what_does_not_depend_on_an_input_has_no_reverse_code",
        ],
    ),
    row(
        "worked examples",
        "the code of two lets, a map and the loop in place, by hand; the book shows them",
        &[
            "crates/ad/tests/tapes.rs::the_code_of_two_lets",
            "crates/ad/tests/tapes.rs::the_code_of_a_map_that_reads_an_array",
            "crates/ad/tests/tapes.rs::the_code_of_an_array_filled_in_place",
            "crates/testkit/tests/book.rs::pages_of_the_book_are_up_to_date",
        ],
    ),
    row(
        "accumulator paths",
        "an index into a part of an array is one accumulation at its place",
        &["crates/ad/tests/structure.rs::an_index_inside_a_map_is_one_accumulation"],
    ),
    row(
        "sum of cotangents of different form",
        "random descriptors: the sum has the value of the dense sum; joins hold either side",
        &["crates/ad/tests/cotangents.rs::sums_and_joins_of_random_cotangents_have_the_value_of_dense_ones"],
    ),
    row(
        "static sparsity",
        "no option, no branch and no loop in the reverse of random straight-line programs; the sum of cotangents keeps what is optional",
        &[
            "crates/ad/tests/structure.rs::straight_line_code_opens_no_accumulator",
            "crates/ad/tests/structure.rs::straight_line_code_has_no_branches_backwards",
            "crates/ad/tests/descriptors.rs::a_possibly_absent_array_is_not_the_lattice_join",
        ],
    ),
    row(
        "multi-hot arrays, nested indices",
        "ratios flat over alias chains, branches, nested indices",
        &[
            "crates/ad/tests/fast_chad_growth.rs::the_families_are_flat",
            "crates/testkit/tests/growth.rs::production_rules_are_flat_on_every_family",
        ],
    ),
    row(
        "selective accumulation",
        "no accumulator in straight-line code, one per array and map; the same gradients with everything accumulated",
        &[
            "crates/ad/tests/structure.rs::straight_line_code_opens_no_accumulator",
            "crates/ad/tests/structure.rs::an_index_inside_a_map_is_one_accumulation",
            "crates/ad/tests/structure.rs::free_scalars_are_summed_or_accumulated",
        ],
    ),
    row(
        "reuse of scopes, takeover of values",
        "sibling and nested maps flat; zeros counted",
        &[
            "crates/ad/tests/fast_chad_growth.rs::the_families_are_flat",
            ":second_derivatives_through_chosen_accumulators",
            "crates/ad/tests/fast_chad_growth.rs::zeros_are_paid_for_by_steps_and_inputs",
            "crates/ad/tests/exceptions.rs::views_of_accumulators_are_what_makes_a_choice_of_arrays_cheap",
        ],
    ),
    row(
        "match and if, tapes with holes",
        "only the taken arm runs; slots of the other arms are holes",
        &[
            ":branches_join_hot_entries",
            ":sums_with_payload",
            ":sums_as_arguments_and_results",
            "suite/sums/match.md",
        ],
    ),
    row(
        "map",
        "several inputs and results, free variables, width 0 and 1",
        &[
            ":maps_with_free_variables_and_several_results",
            ":nested_maps_over_matrices",
            "suite/map/several.md",
            "suite/shape/empty.md",
        ],
    ),
    row(
        "sparse map",
        "the reverse touches the elements hit; code size guarded",
        &[
            ":the_sparse_map_touches_the_winner",
            "crates/ad/tests/fast_chad_growth.rs::one_element_of_a_map_costs_next_to_nothing",
            "crates/ad/tests/structure.rs::code_is_linear_in_nested_maps_of_which_single_elements_are_used",
        ],
    ),
    row(
        "reduce with +, *, min, max",
        "zeros, ties, empty, neutral element wins",
        &[
            ":reductions",
            "suite/reduce/products.md",
            "suite/reduce/choices.md",
            "crates/ad/tests/fast_chad_folds.rs::every_reduce_rule_is_right_for_every_operator",
        ],
    ),
    row(
        "reduce with any closed operator",
        "matrix products, affine maps, log-add-exp",
        &[
            ":a_reduction_with_a_tuple_operator",
            "suite/reduce/general.md",
            "crates/ad/tests/fast_chad_folds.rs::every_reduce_rule_is_right_for_every_operator",
            "crates/ad/tests/fast_chad_folds.rs::parallel_rules_keep_the_depth_logarithmic",
        ],
    ),
    row(
        "reduce by tree replay",
        "operators with free variables; folds inside operators flat",
        &[
            "suite/reduce/free-variables.md",
            "crates/ad/tests/fast_chad_folds.rs::blocks_agree_with_prefixes",
            "crates/ad/tests/fast_chad_folds.rs::a_loop_inside_an_operator_makes_two_scans_grow",
        ],
    ),
    row("invertible operators", "sums of pairwise products; the inverse law", &["suite/reduce/own-rule.md"]),
    row(
        "vectorised operators",
        "equal to the interchange by hand",
        &["suite/reduce/rows.md", "suite/histogram/rows.md"],
    ),
    row(
        "scan",
        "+, Jacobians, lifted, sequential: all agree",
        &[
            ":scans",
            "suite/scan/prefix-sums.md",
            "suite/scan/prefix-products.md",
            "crates/ad/tests/fast_chad_folds.rs::every_scan_rule_is_right_for_every_operator",
            "crates/ad/tests/fast_chad_folds.rs::lifted_operators_are_associative",
            "suite/scan/operators.md",
        ],
    ),
    row(
        "index, slice, gather",
        "duplicates add; negative stride; only the primal checks bounds",
        &[
            ":slices_and_shapes",
            ":gathers_literals_and_element_wise_updates",
            "suite/index/gather.md",
            "suite/index/slices.md",
            "crates/ad/tests/fast_chad_indexed.rs::gathers_of_scalars_and_rows",
            "crates/ad/tests/fast_chad_indexed.rs::a_gather_by_hand",
        ],
    ),
    row(
        "update",
        "the overwritten element gets zero; scalars only on the tape",
        &[
            ":updates_of_rows",
            "suite/with/updates.md",
            "crates/ad/tests/fast_chad_indexed.rs::indexed_writes_in_loops_of_few_and_many_elements",
            "crates/ad/tests/tapes.rs::save_lists_hold_what_the_reverse_sweep_reads",
        ],
    ),
    row(
        "scatter",
        "out of range ignored; only the winner of duplicates gets a derivative",
        &[
            ":histograms_and_scatters",
            "suite/histogram/scatter.md",
            "crates/ad/tests/fast_chad_indexed.rs::scatters_of_rows",
            "crates/ad/tests/fast_chad_indexed.rs::scatters_by_indices_that_differ",
        ],
    ),
    row(
        "reduce_by_index",
        "+, min, max, *, any operator; empty bins, ties, several zeros",
        &[
            ":histograms_and_scatters",
            "suite/histogram/reduce-by-index.md",
            "crates/ad/tests/fast_chad_indexed.rs::minimum_and_maximum_of_bins",
            "crates/ad/tests/fast_chad_indexed.rs::products_with_no_one_and_two_zeros",
            "crates/ad/tests/fast_chad_indexed.rs::histograms_in_general",
            "suite/histogram/operators.md",
        ],
    ),
    row(
        "shape operations, permutations",
        "dot-product identity at ranks 1 to 4; sorting with ties and NaN, filter and partition",
        &[
            ":slices_and_shapes",
            "suite/shape/permutations.md",
            "suite/sort/sorting.md",
            "suite/sort/selections.md",
            "crates/testkit/tests/sorting.rs::sorting_agrees_with_the_standard_library",
            "crates/testkit/tests/sorting.rs::the_cotangent_is_permuted_back",
            "crates/testkit/tests/sorting.rs::gradients_cost_a_constant_factor",
        ],
    ),
    row(
        "for",
        "zero iterations; state of any type; free scalars and arrays; nested",
        &[
            ":loops_with_scalars_and_free_variables",
            ":loops_with_arrays_updated_in_place",
            ":maps_and_branches_inside_loops",
            "suite/loops/for.md",
        ],
    ),
    row(
        "minimal tapes",
        "lists of the values stored, by hand; sums store nothing, nothing is stored that nobody reads",
        &[
            "crates/ad/tests/tapes.rs::save_lists_hold_what_the_reverse_sweep_reads",
            "crates/ad/tests/tapes.rs::gradients_with_these_tapes_are_right",
        ],
    ),
    row(
        "checkpointing",
        "same gradients, counted runs and peak tape for every attribute",
        &[
            "crates/ad/tests/fast_chad_checkpoint.rs::scalars_under_every_attribute",
            "crates/ad/tests/fast_chad_checkpoint.rs::the_closed_form_of_the_schedule_is_the_recurrence",
            "crates/ad/tests/fast_chad_checkpoint.rs::binomial_checkpointing_runs_what_the_recurrence_says",
            "crates/ad/tests/fast_chad_checkpoint.rs::each_level_of_a_nest_runs_the_body_once_more",
            "crates/ad/tests/fast_chad_checkpoint.rs::memory_is_bounded_as_the_policies_say",
            "crates/ad/tests/fast_chad_checkpoint.rs::a_limit_that_is_too_small_says_how_much_is_needed",
            "suite/loops/memory.md",
            "crates/cli/tests/limits.rs::a_limit_that_is_large_enough_changes_nothing",
            "crates/cli/tests/limits.rs::under_a_smaller_limit_iterations_run_again",
            "crates/cli/tests/limits.rs::a_limit_that_is_too_small_says_what_is_needed",
        ],
    ),
    row(
        "while",
        "zero iterations, data-dependent trip counts, in maps, bounds",
        &[
            ":while_loops_count_for_themselves",
            "suite/loops/while.md",
            "crates/ad/tests/fast_chad_checkpoint.rs::while_loops_under_every_attribute",
            "crates/ad/tests/fast_chad_checkpoint.rs::a_bound_is_checked",
        ],
    ),
    row(
        "recompute",
        "values not on the tape; accumulations not repeated",
        &[":marks_calls_par_and_stop_gradient"],
    ),
    row(
        "store or recompute by a cut",
        "the cut is as cheap as the best of all choices on small graphs; chains of exponentials are stored, of products not",
        &[
            "crates/ad/tests/cut.rs::the_cut_is_as_cheap_as_the_best_of_all_choices",
            "crates/ad/tests/cut.rs::of_equal_costs_running_again_wins",
            "crates/ad/tests/tapes.rs::the_cut_keeps_what_is_dear_to_make_again",
        ],
    ),
    row(
        "accumulators in the source, vjp of vjp",
        "an absent index reads zero; Hessians symmetric",
        &[
            ":accumulators_in_the_source",
            ":second_derivatives_of_maps_and_reductions",
            ":second_derivatives_of_matrix_products",
        ],
    ),
    row(
        "mixed nesting",
        "Hessian-vector products equal in all orders; no perturbation confusion",
        &[
            "suite/nested-ad/perturbation-confusion.md",
            "suite/nested-ad/gradients.md",
            "crates/testkit/tests/benchmarks/nested.rs::particle",
            "crates/testkit/src/nested.rs",
        ],
    ),
    row(
        "custom derivatives",
        "the rule replaces; with a tape; captured active variables refused",
        &[
            ":a_rule_of_ones_own",
            "suite/custom/rules.md",
            "crates/ad/tests/unsupported.rs::rules_that_capture_what_is_differentiated",
        ],
    ),
    row(
        "mixed precision",
        "the cotangent has its primal's precision; integers give no code",
        &[
            ":mixed_precision",
            "crates/ad/tests/structure.rs::what_does_not_depend_on_an_input_has_no_reverse_code",
        ],
    ),
    row(
        "conventions at kinks",
        "abs, ties, sqrt 0, pow 0; zero times infinity",
        &[
            "suite/kinks/conventions.md",
            "crates/prim/tests/derivatives.rs",
            "crates/prim/tests/kinks.rs::the_table_keeps_what_the_book_promises",
            "suite/kinks/zero-times-infinity.md",
            "suite/kinks/no-kinks.md",
            "crates/testkit/tests/partials/mod.rs::what_is_not_taken_spoils_nothing",
            "crates/testkit/tests/partials/mod.rs::ties_are_shared_by_primitives_and_decided_by_operators",
            "crates/testkit/tests/partials/mod.rs::a_zero_in_front_of_a_finite_slope_is_a_factor_in_every_order",
            "crates/cli/tests/commands.rs::zero_times_infinity_is_nan_only_where_it_is_asked_for",
            "crates/cli/tests/limits.rs::the_first_operation_that_is_not_finite_in_an_example_is_shown",
            "crates/cli/tests/matrices.rs::the_first_operation_that_is_not_finite_is_shown",
        ],
    ),
    row(
        "many seeds",
        "equal to stacked vjps; the tape computed once",
        &[
            "crates/ad/tests/many.rs::the_primal_runs_once_however_many_seeds_there_are",
            "crates/ad/tests/many.rs::the_tape_of_a_loop_is_made_once_and_read_for_every_seed",
            "crates/ad/tests/many.rs::stacked_cotangents_are_rows_of_the_jacobian",
            "suite/nested-ad/many-directions.md",
        ],
    ),
    row(
        "accumulators become reductions and maps",
        "matmul, random affine nests, no false positive",
        &[
            "crates/opt/tests/accumulators.rs::random_nests_keep_their_sums",
            "crates/opt/tests/injective.rs::what_is_called_injective_is",
            "crates/testkit/tests/accumulators.rs::the_reverse_of_a_matrix_product_is_two_matrix_products",
            "crates/testkit/tests/accumulators.rs::blocks_of_a_jacobian_are_results_of_a_map",
            "crates/testkit/tests/accumulators.rs::a_linear_function_is_applied_once_to_a_sum",
            "crates/testkit/tests/accumulators.rs::no_accumulation_is_left_in_maps_and_loops",
            "crates/testkit/tests/steps.rs::elimination_of_accumulators_costs_little",
            "crates/opt/tests/accumulators.rs::elimination_costs_little",
            "crates/opt/tests/passes.rs::accumulators",
        ],
    ),
    row(
        "histograms, guards",
        "data-dependent indices; many collisions",
        &[
            "crates/testkit/tests/accumulators.rs::data_dependent_indices_become_one_histogram",
            "crates/testkit/tests/accumulators.rs::segments_of_a_dimension_are_sums_of_rows",
            "crates/testkit/tests/accumulators.rs::a_read_is_not_taken_out_of_a_sum_without_points",
            "crates/opt/tests/accumulators.rs::random_nests_keep_their_sums",
            "crates/opt/tests/segments.rs::random_segments_keep_their_sums",
        ],
    ),
    row(
        "stencils, loops",
        "gather form with boundaries; one product after the loop; sums at one place are states, at others stacks",
        &[
            "crates/testkit/tests/accumulators.rs::rank_one_updates_of_a_loop_are_one_product_after_it",
            "crates/opt/tests/accumulators.rs::random_nests_with_loops_keep_their_sums",
            "crates/testkit/tests/accumulators.rs::a_loop_that_does_not_run_leaves_no_sum",
        ],
    ),
    row(
        "bound on zeros",
        "zeros made are paid for by primal steps and inputs, also where recursive functions overwrite what they are given",
        &[
            "crates/ad/tests/structure.rs::a_sparsely_read_matrix_costs_its_size_only_if_it_is_an_input",
            "crates/ad/tests/fast_chad_growth.rs::zeros_are_paid_for_by_steps_and_inputs",
            "crates/ad/tests/exceptions.rs::a_new_or_chosen_array_in_a_small_map_costs_a_constant",
            "crates/ad/tests/exceptions.rs::the_same_array_without_the_map_costs_a_constant",
            "crates/ad/tests/exceptions.rs::functions_that_overwrite_what_they_are_given_or_hand_on_a_name_cost_a_constant",
        ],
    ),
    row(
        "locations of carried arrays",
        "loops over names flat, and not with the feature off; second order; all small programs of a grammar and random larger ones",
        &[
            "crates/ad/tests/locations.rs",
            "crates/testkit/tests/growth.rs::small_loop_programs_are_flat",
            "crates/testkit/tests/growth.rs::larger_random_loop_programs_are_flat",
            "crates/testkit/tests/growth.rs::the_search_finds_growth",
            "suite/loops/names.md",
        ],
    ),
    row(
        "locations that functions return",
        "recursion over names flat, and not with the feature off; second order; a grammar of small recursive programs",
        &[
            "crates/ad/tests/locations_functions.rs",
            "crates/testkit/tests/growth.rs::small_recursive_programs_are_flat",
            "suite/loops/names.md",
        ],
    ),
    row(
        "complexity",
        "ratios flat as programs and data grow; the didactic rule grows",
        &[
            "crates/ad/tests/fast_chad_growth.rs::the_families_are_flat",
            "crates/ad/tests/fast_chad_growth.rs::the_one_hot_variant_grows",
            "crates/testkit/tests/growth.rs::the_one_hot_rule_grows",
            "crates/testkit/tests/steps.rs::a_gradient_costs_a_small_constant_times_the_objective",
        ],
    ),
    row(
        "code size",
        "linear in the program, one column per level for what is stored",
        &[
            "crates/ad/tests/structure.rs::code_is_linear_in_nested_branches_that_read_an_array",
            "crates/ad/tests/structure.rs::code_is_linear_in_branches_in_a_row",
            "crates/ad/tests/structure.rs::code_is_linear_in_nested_loops_and_maps",
        ],
    ),
    row(
        "safety of writes in place",
        "the same results with every value kept and every write made to a copy",
        &[
            "crates/testkit/src/properties/in_place.rs::in_place",
            "crates/interp/tests/constructs.rs::without_writes_in_place_every_write_copies",
        ],
    ),
    row(
        "activity",
        "no accumulator, no tape, no code for inactive paths",
        &["crates/ad/tests/structure.rs::what_does_not_depend_on_an_input_has_no_reverse_code"],
    ),
    row(
        "benchmarks",
        "values of other programs to 1e-10; steps of gradients",
        &["crates/testkit/tests/benchmarks.rs", "crates/testkit/tests/steps.rs"],
    ),
    row(
        "views and selection of accumulators",
        "conditional aliases flat, and not with the feature off; equal with it off; second order",
        &[
            "crates/ad/tests/fast_chad_growth.rs::the_families_are_flat",
            ":second_derivatives_through_chosen_accumulators",
            "crates/ad/tests/exceptions.rs::views_of_accumulators_are_what_makes_a_choice_of_arrays_cheap",
        ],
    ),
    row(
        "large arrays in branches",
        "bytes on the tape: an array for each time the branch is taken",
        &[
            "crates/ad/tests/branch_tapes.rs::an_array_that_the_loop_changes_in_place",
            "crates/ad/tests/branch_tapes.rs::an_array_that_each_iteration_makes",
            "crates/ad/tests/branch_tapes.rs::an_array_of_the_function_of_a_map",
            "crates/ad/tests/branch_tapes.rs::an_array_that_two_nested_branches_read",
            "crates/ad/tests/branch_tapes.rs::what_an_arm_makes_itself",
            "crates/ad/tests/fast_chad_growth.rs::memory_follows_the_branches_taken",
        ],
    ),
    row(
        "first-order recursion",
        "a forward and a reverse function with a tape of calls",
        &[
            "crates/ad/tests/fast_chad_calls.rs::a_power",
            "crates/ad/tests/fast_chad_calls.rs::mutual_recursion_with_results_that_nobody_uses",
            "crates/ad/tests/fast_chad_calls.rs::the_work_ratio_of_recursive_functions_is_flat",
            "crates/ad/tests/fast_chad_calls.rs::code_stays_linear_in_the_program",
            "crates/ad/tests/fast_chad_calls.rs::trees",
            "suite/recursion/gradients.md",
        ],
    ),
    row(
        "library functions",
        "log-sum-exp: the gradient is exact, no index of the maximum stored",
        &[
            "suite/problems/log-sum-exp.md",
            "crates/driver/tests/log_sum_exp.rs::a_stopped_maximum_changes_no_gradient_and_needs_no_position",
        ],
    ),
    row(
        "what is refused",
        "every refusal has a place, advice and a test",
        &["crates/ad/tests/unsupported.rs::every_refusal_is_tested"],
    ),
];
