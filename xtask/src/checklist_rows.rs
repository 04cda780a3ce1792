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
        "exact code of two let chains and the loop in place; empty tape of the second",
        &[],
    ),
    row(
        "accumulator paths",
        "an index into a part of an array is one accumulation at its place",
        &["crates/ad/tests/structure.rs::an_index_inside_a_map_is_one_accumulation"],
    ),
    row(
        "sum of cotangents of different form",
        "random descriptors: the sum has the value of the dense sum; joins hold either side",
        &[
            "crates/ad/src/fast_chad/ct_tests.rs::sums_and_joins_of_random_cotangents_have_the_value_of_dense_ones",
        ],
    ),
    row(
        "static sparsity",
        "no option and no branch in the reverse of straight-line code",
        &["crates/ad/tests/structure.rs::straight_line_code_opens_no_accumulator"],
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
        "no accumulator in straight-line code, one per array and map",
        &[
            "crates/ad/tests/structure.rs::straight_line_code_opens_no_accumulator",
            "crates/ad/tests/structure.rs::an_index_inside_a_map_is_one_accumulation",
        ],
    ),
    row(
        "reuse of scopes, takeover of values",
        "sibling and nested maps flat; zeros counted",
        &[
            "crates/ad/tests/fast_chad_growth.rs::the_families_are_flat",
            ":second_derivatives_through_chosen_accumulators",
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
        &[":reductions", "suite/reduce/products.md"],
    ),
    row(
        "reduce with any closed operator",
        "matrix products, affine maps, log-add-exp",
        &[":a_reduction_with_a_tuple_operator", "suite/reduce/general.md"],
    ),
    row("reduce by tree replay", "operators with free variables; folds inside operators flat", &[]),
    row("invertible operators", "sums of pairwise products; the inverse law", &[]),
    row("vectorised operators", "equal to the interchange by hand", &[]),
    row(
        "scan",
        "+, Jacobians, lifted, sequential: all agree",
        &[":scans", "suite/scan/prefix-sums.md", "suite/scan/prefix-products.md"],
    ),
    row(
        "index, slice, gather",
        "duplicates add; negative stride; only the primal checks bounds",
        &[
            ":slices_and_shapes",
            ":gathers_literals_and_element_wise_updates",
            "suite/index/gather.md",
            "suite/index/slices.md",
        ],
    ),
    row(
        "update",
        "the overwritten element gets zero; scalars only on the tape",
        &[":updates_of_rows", "suite/with/updates.md"],
    ),
    row(
        "scatter",
        "out of range ignored; only the winner of duplicates gets a derivative",
        &[":histograms_and_scatters", "suite/histogram/scatter.md"],
    ),
    row(
        "reduce_by_index",
        "+, min, max, *, any operator; empty bins, ties, several zeros",
        &[":histograms_and_scatters", "suite/histogram/reduce-by-index.md"],
    ),
    row(
        "shape operations, permutations",
        "dot-product identity at ranks 1 to 4; sort with ties",
        &[":slices_and_shapes", "suite/shape/permutations.md"],
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
    row("minimal tapes", "lists of saved names, by hand", &[]),
    row("checkpointing", "same gradients, counted runs and peak tape for every attribute", &[]),
    row(
        "while",
        "zero iterations, data-dependent trip counts, in maps, bounds",
        &[":while_loops_count_for_themselves", "suite/loops/while.md"],
    ),
    row(
        "recompute",
        "values not on the tape; accumulations not repeated",
        &[":marks_calls_par_and_stop_gradient"],
    ),
    row("store or recompute by a cut", "the cut equals brute force on small graphs", &[]),
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
        ],
    ),
    row(
        "custom derivatives",
        "the rule replaces; with a tape; captured active variables refused",
        &[":a_rule_of_ones_own"],
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
        "abs, ties, sqrt 0, pow 0",
        &["suite/kinks/conventions.md", "crates/prim/tests/derivatives.rs"],
    ),
    row("many seeds", "equal to stacked vjps; the tape computed once", &[]),
    row("accumulators become reductions and maps", "matmul, random affine nests, no false positive", &[]),
    row("histograms, guards", "data-dependent indices; many collisions", &[]),
    row("stencils, loops", "gather form with boundaries; one product after the loop", &[]),
    row(
        "bound on zeros",
        "zeros made are paid for by primal steps and inputs",
        &["crates/ad/tests/structure.rs::a_sparsely_read_matrix_costs_its_size_only_if_it_is_an_input"],
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
        "conditional aliases flat; equal with the feature off; second order",
        &[
            "crates/ad/tests/fast_chad_growth.rs::the_families_are_flat",
            ":second_derivatives_through_chosen_accumulators",
        ],
    ),
    row("large arrays in branches", "tape bytes of what was taken", &[]),
    row("first-order recursion", "a forward and a reverse function with a tape of calls", &[]),
    row(
        "library functions",
        "log-sum-exp: the gradient is exact, no index of the maximum stored",
        &["suite/problems/log-sum-exp.md"],
    ),
];
