//! The rows of the tables of bulk dual numbers: features, and the claims and programs of the thesis' chapter 4.

use crate::checklist::{Row, row};

const TYPES: &str = "crates/ad/tests/bulk/core.rs::terms_without_a_type_are_refused";
const EVALUATED: &str = "crates/ad/tests/bulk/core.rs::operations_by_hand";
const TOTAL: &str = "crates/ad/tests/bulk/core.rs::nothing_stops_outside_of_arrays";
const STATIC: &str = "crates/ad/tests/bulk/core.rs::sizes_are_polynomials_over_those_of_inputs";
const KEPT: &str = "crates/ad/tests/bulk/bot.rs::guarded_rules_keep_values_also_outside_of_arrays";
const KEPT_INSIDE: &str =
    "crates/ad/tests/bulk/bot.rs::printed_and_repaired_rules_keep_values_inside_of_arrays";
const APPLIED: &str = "crates/ad/tests/bulk/bot.rs::every_rule_is_applied";
const WITNESSES: &str = "crates/ad/tests/bulk/bot.rs::each_unsound_rule_has_a_witness";
const QUADRATIC: &str =
    "crates/ad/tests/bulk/bot.rs::a_product_of_matrices_is_quadratic_by_the_printed_rules_only";
const DOUBLING: &str =
    "crates/ad/tests/bulk/bot.rs::index_expressions_of_a_chain_double_by_the_printed_rules_only";
const LINEAR: &str =
    "crates/ad/tests/bulk/arrays.rs::the_gradient_of_a_product_of_matrices_is_linear_by_repaired_rules";
const PER_OPERATION: &str = "crates/ad/tests/bulk/arrays.rs::nodes_are_of_array_operations";
const ONE_HOT: &str = "crates/ad/tests/bulk/arrays.rs::indices_outside_of_build_are_quadratic";
const WRITTEN_OUT: &str =
    "crates/ad/tests/bulk/costs.rs::a_dot_product_that_is_written_out_is_quadratic_backwards_only";
const ZEROS: &str =
    "crates/ad/tests/bulk/arrays.rs::zeros_stop_at_infinite_slopes_unless_they_are_multiplied";
const OUTSIDE: &str = "crates/ad/tests/bulk/arrays.rs::reads_outside_have_no_gradient";
const RANDOM: &str = "crates/ad/tests/bulk/arrays.rs::gradients_of_random_programs_agree";
const TRANSPOSES: &str = "crates/ad/tests/bulk/arrays.rs::tangents_and_cotangents_are_transposes";
const BULK: &str = "crates/ad/tests/bulk/arrays.rs::bulk_programs";
const OPERATIONS: &str = ":linear_operations_and_their_transposes";
const CHAIN: &str = "crates/ad/tests/bulk/scalar.rs::sharing_makes_a_chain_of_doublings_linear";
const ONCE: &str = "crates/ad/tests/bulk/scalar.rs::sharing_visits_each_node_once";
const SCALAR_DOT: &str = "crates/ad/tests/bulk/scalar.rs::a_dot_product_has_nodes_for_each_number";
const EVALUATORS: &str = "crates/ad/tests/bulk/scalar.rs::evaluators_agree_with_differences";
const DIRECTIONS: &str = "crates/ad/tests/bulk/scalar.rs::directions_are_evaluated_one_by_one";
const NAMES: &str = "crates/ad/tests/bulk/symbolic.rs::cotangents_that_are_used_twice_have_names";
const TEXT: &str = "crates/ad/tests/bulk/symbolic.rs::gradients_of_the_text";
const SERVES: &str = "crates/ad/tests/bulk/symbolic.rs::one_program_serves_all_arguments";
const TAPE: &str = "crates/ad/tests/bulk/symbolic.rs::the_program_is_the_tape";
const CONSTANT: &str = "crates/ad/tests/bulk/symbolic.rs::gradients_cost_a_constant_times_the_program";
const AGAIN: &str = "crates/ad/tests/bulk/symbolic.rs::gradients_are_differentiated_again";
const MANY_HOT: &str =
    "crates/ad/tests/bulk/symbolic.rs::one_index_of_an_operation_makes_an_array_for_each_operand";
const STAGED_LOOPS: &str = "crates/ad/tests/bulk/staged.rs::loops_of_rust_are_part_of_the_text";
const STAGED_SHARE: &str = "crates/ad/tests/bulk/staged.rs::what_is_shared_is_made_once";
const SOAK: &str = "crates/testkit/tests/bulk.rs::bulk_dual_numbers_are_right_or_refuse";

/// In the order of the chapter.
pub(crate) const ROWS: &[Row] = &[
    row(
        "types with shapes (4.2.1)",
        "each typing rule refuses a term that breaks it; sizes are compared as polynomials; programs are closed",
        &[
            TYPES,
            "crates/ad/tests/bulk/core.rs::sizes_are_compared_as_polynomials",
            "crates/ad/tests/bulk/core.rs::programs_are_checked",
            "crates/ad/tests/bulk/core.rs::arguments_are_checked",
        ],
    ),
    row(
        "evaluation (4.2.2)",
        "each operation by hand, and the examples of the text",
        &[EVALUATED, "crates/ad/tests/bulk/core.rs::the_examples_of_the_text"],
    ),
    row("no operation stops (4.4.2)", "reads outside are zero, writes outside are dropped", &[TOTAL]),
    row(
        "sizes of zero",
        "in the fragment and in programs of the language",
        &[
            "crates/ad/tests/bulk/core.rs::sizes_may_be_zero",
            "crates/ad/tests/bulk/from_core.rs::arrays_without_elements",
            "crates/ad/tests/bulk/from_core.rs::the_sum_of_no_rows",
        ],
    ),
    row(
        "`build1` of each form (Fig. 4.10)",
        "each rule by hand; types and values stay on random programs, and all rules are applied there",
        &[
            "crates/ad/tests/bulk/rules.rs::build1_of_each_form",
            KEPT,
            KEPT_INSIDE,
            APPLIED,
            "crates/ad/tests/bulk/bot.rs::no_rule_changes_a_type",
        ],
    ),
    row(
        "`index` of each form (Fig. 4.11)",
        "each rule by hand; the same on random programs",
        &["crates/ad/tests/bulk/rules.rs::index_of_each_form", KEPT, KEPT_INSIDE, APPLIED],
    ),
    row(
        "`build1` of `index` (Fig. 4.12)",
        "each rule by hand, and the rules that are ours",
        &[
            "crates/ad/tests/bulk/rules.rs::build1_of_index",
            "crates/ad/tests/bulk/rules.rs::rules_of_ours",
            "crates/ad/tests/bulk/bot.rs::small_programs_become_what_the_text_says",
        ],
    ),
    row(
        "normal form (Theorem 2)",
        "random programs have it, by all three sets of rules; each rule leaves less to do",
        &[KEPT, KEPT_INSIDE, "crates/ad/tests/bulk/bot.rs::what_is_left_to_do_gets_less"],
    ),
    row(
        "ranges of indices",
        "guards that a range shows are left out; unguarded rules have a witness each",
        &["crates/ad/tests/bulk/bot.rs::guards_that_sizes_show_are_left_out", WITNESSES, OUTSIDE],
    ),
    row("repairs of costs (B8', I12')", "counted elements and nodes", &[QUADRATIC, LINEAR, DOUBLING]),
    row("identity gathers and scatters (4.6.1)", "none is in the self-convolution's gradient", &[TEXT]),
    row(
        "scalar dual numbers with sharing (4.1)",
        "five evaluators agree with each other and with differences",
        &[CHAIN, ONCE, EVALUATORS],
    ),
    row(
        "index functions have no derivative (4.5.3)",
        "numbers in an index make no node",
        &["crates/ad/tests/bulk/arrays.rs::index_functions_are_not_differentiated"],
    ),
    row(
        "dual arrays (Figs. 4.15, 4.16)",
        "each primitive and random programs against differences and scalar dual numbers",
        &[":every_primitive_has_the_slope_of_differences", RANDOM],
    ),
    row(
        "conditionals by selection (4.5.3)",
        "in `build1`, at indices from arrays, and where the other alternative is infinite",
        &[
            "crates/ad/tests/bulk/arrays.rs::a_conditional_in_build",
            "crates/ad/tests/bulk/arrays.rs::indices_from_arrays",
            ZEROS,
            "crates/ad/tests/bulk/from_core.rs::what_is_not_chosen_spoils_nothing",
        ],
    ),
    row(
        "evaluation of delta terms (Fig. 4.18)",
        "each operation and its transpose",
        &[OPERATIONS, TRANSPOSES],
    ),
    row("order of identities (4.1.5)", "identities go down in each random program", &[RANDOM]),
    row(
        "inputs without derivatives (4.1.7)",
        "integers are inputs and have no cotangents",
        &[BULK, "crates/ad/tests/bulk/from_core.rs::constants_and_several_results"],
    ),
    row(
        "primal and delta apart (4.6.1, 4.6.6)",
        "E1 to E4 are checked of random programs: identities, factors, indices and inputs of the delta term; the symbolic pass has the operations of the tape",
        &["crates/ad/tests/bulk/symbolic.rs::primal_and_delta_are_apart", TAPE],
    ),
    row("symbolic reverse pass (Fig. 4.20)", "a name for each cotangent that is used twice", &[NAMES, TAPE]),
    row(
        "names instead of shared terms (Fig. 4.21)",
        "bindings are closed and in order; the gradients of the text",
        &[NAMES, TEXT],
    ),
    row(
        "a gradient is made once (Fig. 4.22)",
        "one program for all arguments, cotangents and sizes; others are refused",
        &[SERVES, "crates/ad/tests/bulk/translated.rs::one_function_serves_all_sizes"],
    ),
    row(
        "cotangents of arrays, Jacobians (4.10.1)",
        "rows in reverse are columns forwards",
        &[
            ":a_jacobian_by_rows_and_by_columns",
            TRANSPOSES,
            "crates/cli/tests/matrices.rs::matrices_by_bulk_dual_numbers",
        ],
    ),
    row(
        "staging: what is used twice is shared (4.10.2, 4.10.3)",
        "loops of Rust are part of the text; an array that is read three times is made once with `share`, three times without",
        &[STAGED_LOOPS, STAGED_SHARE],
    ),
    row(
        "one text in four algebras (4.10.3, 4.10.4)",
        "values, term, tape and derivative of random programs agree; dual arrays over dual arrays are second derivatives",
        &[
            "crates/ad/tests/bulk/staged.rs::random_programs_mean_the_same_in_all_algebras",
            "crates/ad/tests/bulk/staged.rs::index_functions_read_arrays_of_the_program",
            "crates/ad/tests/bulk/staged.rs::dual_arrays_over_dual_arrays_give_second_derivatives",
        ],
    ),
    row(
        "no sharing inside of `let` (4.10.3.2)",
        "a binding is made at once, so there is no term of it; what the body of `build1` shares stays in it",
        &["crates/ad/tests/bulk/staged.rs::mistakes_are_refused_before_anything_runs"],
    ),
    row(
        "delta terms at run time, from the language",
        "a node for each number or for each array; the gradients of the symbolic pass on random programs",
        &[
            "crates/ad/tests/bulk/interpreted.rs::nodes_are_of_numbers_or_of_arrays",
            "crates/ad/tests/bulk/interpreted.rs::random_functions_have_the_gradients_of_the_symbolic_pass",
            "crates/testkit/tests/bulk.rs::delta_terms_at_run_time_have_the_cotangents_of_the_symbolic_pass",
        ],
    ),
    row("size of delta terms (4.3)", "the same number of nodes for each size", &[PER_OPERATION]),
    row(
        "cost of derivatives",
        "backwards and forwards a constant times the program as sizes grow, in the fragment and in the language; backwards a dot product that is written out is quadratic, exactly",
        &[
            CONSTANT,
            "crates/ad/tests/bulk/costs.rs::tangents_cost_a_constant_times_the_program",
            "crates/ad/tests/bulk/costs.rs::tangents_of_random_programs_cost_a_constant_times_the_program",
            "crates/ad/tests/bulk/costs.rs::tangents_of_doublings_are_linear",
            "crates/ad/tests/bulk/costs.rs::a_dot_product_is_linear_in_both_directions",
            WRITTEN_OUT,
            "crates/ad/tests/bulk/from_core.rs::work_grows_as_that_of_the_function",
            "crates/ad/tests/bulk/extrema.rs::work_of_a_mixture_grows_as_that_of_the_function",
        ],
    ),
    row(
        "folds with closed functions (4.7, optional)",
        "loops, scans and reductions with one state; also in maps, nested, and differentiated again; random folds in all tests of random programs",
        &[
            "crates/ad/tests/bulk/loops.rs::a_polynomial",
            "crates/ad/tests/bulk/loops.rs::loops_have_the_derivatives_of_dual_numbers",
            "crates/ad/tests/bulk/loops.rs::work_of_loops_grows_as_that_of_the_function",
            "crates/ad/tests/bulk/refused.rs::what_has_no_form_is_refused_with_its_place",
        ],
    ),
    row(
        "higher derivatives (optional)",
        "gradients are programs, and are differentiated again; forward mode over them, and they over it and over themselves, by hand",
        &[
            AGAIN,
            "crates/ad/tests/bulk/from_core.rs::derivatives_are_differentiated_again",
            "crates/ad/tests/bulk/taken.rs::second_derivatives_in_three_ways",
        ],
    ),
    row(
        "functions of the language",
        "random functions against Fast CHAD and forward mode, or refused; each step is shown",
        &[
            SOAK,
            "crates/ad/tests/bulk/from_core.rs::random_functions_have_the_gradients_of_fast_chad",
            ":steps_of_the_self_convolution",
        ],
    ),
    row(
        "reductions by minimum and maximum (ours)",
        "the first of equal elements gets the cotangent; of pairs that are compared, what stands beside it as well",
        &[
            "crates/ad/tests/bulk/taken.rs::the_place_of_the_largest_element",
            "crates/ad/tests/bulk/taken.rs::what_stands_beside_the_best_elements",
            "crates/ad/tests/bulk/extrema.rs::the_first_of_equal_elements_is_chosen",
            "crates/ad/tests/bulk/extrema.rs::the_initial_element_may_win",
            "crates/ad/tests/bulk/extrema.rs::rows_without_a_largest_element",
            "crates/ad/tests/bulk/extrema.rs::places_of_largest_elements_are_known_again",
        ],
    ),
    row(
        "arguments and results that are products (ours)",
        "components without derivative are unit in a cotangent; by hand, as Fast CHAD and forward mode have it",
        &["crates/ad/tests/bulk/taken.rs::arguments_and_results_that_are_products"],
    ),
    row(
        "scatters, histograms by minimum and maximum (ours)",
        "the last of several rows, the first of equal numbers gets the cotangent; by hand, as Fast CHAD and forward mode have it, and against differences; the work is linear",
        &[
            "crates/ad/tests/bulk/sent.rs::scatters",
            "crates/ad/tests/bulk/sent.rs::scatters_of_rows",
            "crates/ad/tests/bulk/sent.rs::scatters_of_integers_in_maps",
            "crates/ad/tests/bulk/sent.rs::histograms_by_extrema",
            "crates/ad/tests/bulk/sent.rs::histograms_of_several_components",
            "crates/ad/tests/bulk/sent.rs::what_is_sent_has_the_derivatives_of_other_ways",
            "crates/ad/tests/bulk/sent.rs::work_of_what_is_sent_grows_as_that_of_the_function",
            "crates/ad/tests/bulk/core.rs::places_of_extrema_of_what_is_sent",
            "crates/ad/tests/bulk/delayed.rs::places_of_what_is_sent_are_histograms",
        ],
    ),
    row(
        "histograms by sum, slices, concatenation, updates (ours)",
        "they are taken, and cotangents go back to where elements came from; nothing outside has one",
        &[
            "crates/ad/tests/bulk/taken.rs::histograms_by_sum",
            "crates/ad/tests/bulk/taken.rs::histograms_of_rows",
            "crates/ad/tests/bulk/taken.rs::slices_and_concatenations",
            "crates/ad/tests/bulk/taken.rs::updates_of_elements_and_slices",
        ],
    ),
    row(
        "arrays that are made only where they have to be (ours)",
        "what may be outside is read behind its condition only; the rules of delayed arrays by the core that they leave",
        &[
            "crates/ad/tests/bulk/delayed.rs::sums_behind_a_condition_stay_there",
            "crates/ad/tests/bulk/delayed.rs::copies_of_sums_behind_a_condition_stay_there",
            "crates/ad/tests/bulk/delayed.rs::conditions_that_say_more_than_one_place",
            "crates/ad/tests/bulk/delayed.rs::one_element_of_each_row_is_sent",
        ],
    ),
];

/// Claims of the chapter, then programs that show them.
pub(crate) const CLAIMS: &[Row] = &[
    row(
        "C1: a gradient costs a constant times the program (4.1.6)",
        "visits of scalar programs; elements of array programs",
        &[CHAIN, CONSTANT],
    ),
    row(
        "C2: evaluation by vectors costs a factor; by scaled terms it needs sharing (4.1.4)",
        "visits of all evaluators",
        &[DIRECTIONS, CHAIN],
    ),
    row("C3: each shared node is visited once (4.1.6)", "visits by hand", &[ONCE]),
    row("C4: arrays of dual numbers have 5n nodes for a dot product (4.3.1)", "exactly", &[SCALAR_DOT]),
    row("C5: nodes are of array operations (4.3.5)", "12 for a dot product of each size", &[PER_OPERATION]),
    row(
        "C6: indices that are not in `build1` make one-hot arrays (4.3.4)",
        "quadratic, exactly",
        &[ONE_HOT, WRITTEN_OUT],
    ),
    row(
        "C7: not more one-hot arrays than occurrences of `index` (4.4.1)",
        "false as printed: I5 copies an index to each operand, so one `index` of a sum of three arrays makes three of them. A loop that is written out has an occurrence for each iteration, so the claim limits nothing there.",
        &[MANY_HOT, ":a_loop_that_is_written_out_makes_an_array_for_each_iteration"],
    ),
    row(
        "C8: the transformation keeps time, not memory (4.4.1)",
        "time is kept with B8' and I12' only; all scatters of a loop become one array",
        &[QUADRATIC, DOUBLING, ":all_scatters_of_a_loop_are_one_array"],
    ),
    row(
        "C9: the shape of a delta term is at hand (4.5.4)",
        "each node holds its type; allocations of the reverse pass are linear in the length of a chain of transpositions that are all read",
        &["crates/ad/tests/allocations.rs::shapes_of_delta_terms_are_not_computed_again"],
    ),
    row(
        "C10: without sharing the symbolic pass doubles terms (4.6.2)",
        "nodes of a chain of doublings",
        &[NAMES],
    ),
    row(
        "C11: a gradient program has nothing of the algorithm left (4.6)",
        "its work is at most that of the tape",
        &[SERVES],
    ),
    row(
        "C12: the size is that of the program with calls written out (4.4.2)",
        "bindings of a chain of calls, exactly",
        &[":calls_cost_what_their_bodies_cost"],
    ),
    row(
        "T1: a chain of doublings",
        "33 nodes, 49 visits, 131,071 without sharing",
        &[CHAIN, "crates/ad/tests/bulk/arrays.rs::doublings_are_linear"],
    ),
    row(
        "T2: the program of Fig. 4.4",
        "15 nodes of identities 1 to 6; the input and the term of exp are evaluated three times without sharing, once with it; 14 and 17 visits; the derivative",
        &[ONCE, "crates/ad/tests/bulk/arrays.rs::scalar_programs"],
    ),
    row(
        "T3: a dot product",
        "5n nodes beside 2n inputs, n + 1 shared; as arrays 12 nodes with 2 inputs and 4 shared, 12 visits and 11n + 1 elements",
        &[SCALAR_DOT, PER_OPERATION],
    ),
    row(
        "T4: a sum that is written out",
        "239, 879, 3,359, 13,119 elements; 81, 161, 321, 641 with `build1`",
        &[ONE_HOT],
    ),
    row(
        "T5: a product of matrices",
        "779, 2,349, 7,889 elements as printed; 375, 745, 1,485 repaired",
        &[QUADRATIC, LINEAR],
    ),
    row(
        "T6: a chain of reshapes and transpositions",
        "11, 27, 59, 123, 251, 507 nodes as printed; 21, 46, 71, 96, 121, 146 repaired. The notes count 39, 94, .., 1,666 and 61, 112, .., 316. Their printed 26 * 2^d + 3 d - 16 has a part that does not double. All of an index does, step by step, so they count something beside it.",
        &[DOUBLING],
    ),
    row(
        "T7: an array twice, by a conditional",
        "the gradient 10, 12, .., 28",
        &[
            "crates/ad/tests/bulk/arrays.rs::a_conditional_in_build",
            "crates/ad/tests/bulk/bot.rs::a_conditional_reads_in_both_branches",
        ],
    ),
    row(
        "T8: the self-convolution",
        "11 nodes, 12 visits; its steps",
        &[PER_OPERATION, TEXT, ":steps_of_the_self_convolution"],
    ),
    row("T9: doublings in the symbolic pass", "a binding for each", &[NAMES]),
    row(
        "T10: a scatter in `build1`",
        "the value 17",
        &["crates/ad/tests/bulk/arrays.rs::a_scatter_in_build"],
    ),
    row("T11: a histogram", "an index outside is dropped", &[BULK]),
    row("T12: reads outside", "no gradient; rule I9 as printed has one", &[OUTSIDE]),
    row("T13: zero times infinity", "not a number if zeros are multiplied; else right", &[ZEROS]),
    row(
        "T14: an array that is read three times",
        "made once",
        &["crates/ad/tests/bulk/symbolic.rs::what_has_a_name_is_made_once"],
    ),
    row("T15: operations and their transposes", "equal to the bit on whole numbers", &[OPERATIONS]),
    row("T16: sizes are static", "an operation like `filter` has no type", &[STATIC]),
    row("T17: made once, run often", "the same as the tape", &[SERVES]),
    row(
        "examples of the notes: convolution, softmax, nests of `build1`",
        "values and gradients",
        &[
            BULK,
            "crates/ad/tests/bulk/arrays.rs::a_convolution_reads_outside",
            OUTSIDE,
            ":nests_of_build1_that_are_indexed",
        ],
    ),
];
