//! The rows of the table of features of CHAD.

use crate::checklist::{Row, row};

const GROWTH_C7: &str = "crates/testkit/tests/chad_growth.rs::nested_functions_double_with_each_level";

/// In the order of the chapters.
pub(crate) const ROWS: &[Row] = &[
    row(
        "types of primal values and cotangents, first order",
        "every random case is of random types; what is made is well typed",
        &[":the_steps_give_the_same_gradients"],
    ),
    row(
        "let, variables, pairs, projections, unit, literals",
        "golden costs and gradients by hand",
        &[":golden_costs"],
    ),
    row(
        "alternatives and case",
        "only the arm that is taken costs; cotangents of another alternative never meet",
        &[":golden_costs", ":the_cost_theorem"],
    ),
    row(
        "sign, primitives of numbers and of integers",
        "gradients are those of dual numbers; discrete primitives contribute nothing",
        &[
            ":gradients_are_those_of_dual_numbers",
            ":the_rules_of_the_figure_cost_less",
            ":derivatives_of_primitives_are_cheap",
        ],
    ),
    row(
        "one-hot values, zeros, addition",
        "commutative monoids; zeros have potential one",
        &[":additions_cost_the_potential_that_they_take_away"],
    ),
    row(
        "value and gradient in one",
        "linear in the cotangent; a run adds to its initial cells",
        &[":backpropagators_are_linear", ":computations_run_one_after_the_other_and_commute"],
    ),
    row(
        "functions as values, plain",
        "the example of chapter 5; random terms with functions",
        &[
            "crates/testkit/tests/chad_growth.rs::functions_that_capture",
            ":functions_as_values_have_the_same_gradients",
        ],
    ),
    row("cotangents belong to values", "checked of every result", &[":the_cost_theorem"]),
    row(
        "sparse products",
        "an addition costs what it takes away; sparse and dense give the same",
        &[":additions_cost_the_potential_that_they_take_away", ":the_steps_give_the_same_gradients"],
    ),
    row(
        "environments as maps, unions",
        "half a step per leaf and doubling on balanced trees",
        &["crates/testkit/tests/chad_growth.rs::unions_cost_a_logarithm"],
    ),
    row(
        "return, bind, one, scope, run",
        "the lemmas of the proof with costs; computations commute",
        &[":computations_run_one_after_the_other_and_commute", ":additions_to_a_cell"],
    ),
    row(
        "the rules of Fig. 6.6",
        "all steps agree; the cost of each node is that of one call of its backpropagator",
        &[":the_steps_give_the_same_gradients", ":the_cost_theorem"],
    ),
    row(
        "a growable mutable environment",
        "the same results; no logarithm, also with scopes inside of each other",
        &[
            ":implementations_of_the_monad_agree",
            "crates/testkit/tests/chad_growth.rs::maps_cost_a_logarithm_and_cells_do_not",
        ],
    ),
    row(
        "amortisation",
        "an equality on random cotangents",
        &[":additions_cost_the_potential_that_they_take_away"],
    ),
    row(
        "the cost theorem",
        "both statements with the constants of the thesis, the exact weight of every construct, the ratio below 23",
        &[":the_cost_theorem", ":the_bound_holds_for_every_construct"],
    ),
    row("the interpreter that counts", "the table of golden costs", &[":golden_costs"]),
    row("the value is that of the term", "the same bits", &[":the_cost_theorem"]),
    row(
        "arrays: build, index, fold",
        "every rule and random terms against dual numbers, in several orders; the work stays in proportion, also of folds in folds",
        &[
            "crates/testkit/tests/chad_arrays.rs::gradients_are_those_of_dual_numbers",
            "crates/testkit/tests/chad_arrays.rs::gradients_of_random_terms_are_those_of_dual_numbers",
            "crates/testkit/tests/chad_arrays.rs::work_stays_in_proportion",
        ],
    ),
    row(
        "bags, collect, scatter",
        "a commutative monoid up to the order; values at one place are added; exact costs",
        &["crates/interp/tests/lambda_vocabulary.rs::bags_of_values_at_positions"],
    ),
    row(
        "the tree of a fold",
        "operators that do not commute, empty arrays, random bracketings; both sides of a node at once",
        &[
            "crates/testkit/tests/chad_arrays.rs::gradients_are_those_of_dual_numbers",
            "crates/testkit/tests/chad_arrays.rs::the_tree_of_a_reduction_is_walked_in_parallel",
        ],
    ),
    row(
        "gather, bags that are arrays",
        "less than half of the steps; the same gradients",
        &["crates/testkit/tests/chad_arrays.rs::gathers_make_one_bag"],
    ),
    row(
        "computations in parallel",
        "any order gives the same; the span grows by the same amount with each doubling",
        &[
            "crates/interp/tests/lambda_vocabulary.rs::computations_in_parallel",
            "crates/testkit/tests/chad_arrays.rs::parallel_uses_of_one_variable_have_logarithmic_span",
        ],
    ),
    row(
        "cells in parallel",
        "compiled, threads share the maps whose elements add to one cell: nothing is lost, from an empty cell on",
        &[
            "crates/testkit/tests/chad_lowered.rs::what_threads_add_to_one_cell_is_all_there",
            "crates/testkit/tests/chad_lowered.rs::problems_have_the_gradients_of_fast_chad_when_lowered",
        ],
    ),
    row(
        "closure conversion",
        "functions that take and return functions; random terms",
        &[
            "crates/testkit/tests/chad_growth.rs::functions_that_capture_as_closures",
            ":functions_as_values_have_the_same_gradients",
        ],
    ),
    row(
        "CHAD of closed functions",
        "linear where the plain algorithm doubles with every level",
        &[GROWTH_C7],
    ),
    row(
        "defunctionalisation",
        "every function is an alternative of a finite sum; equal results",
        &[":functions_as_values_have_the_same_gradients"],
    ),
    row(
        "laws of products, sums and functions",
        "a value taken apart and put together, bound, and handed through a function: equal values and gradients",
        &[":laws_of_products_sums_and_functions"],
    ),
    row("backpropagators are linear", "sums and zero", &[":backpropagators_are_linear"]),
    row(
        "cotangents are moved, not copied",
        "the direct style has no copies, by its types",
        &[":the_cost_theorem"],
    ),
    row(
        "dense arrays for practice",
        "Fast CHAD has them (chapter 7); bags are its oracle on the problems of the suite, interpreted and compiled",
        &[
            "crates/testkit/tests/chad_arrays.rs::problems_have_the_gradients_of_fast_chad",
            "crates/testkit/tests/chad_lowered.rs::problems_have_the_gradients_of_fast_chad_when_lowered",
        ],
    ),
    row(
        "first-order output is a program like any other",
        "random derivatives by every algorithm compute the same before and after all passes, on the vm and as machine code",
        &["crates/testkit/tests/chad_lowered.rs::random_derivatives_compute_the_same_when_lowered"],
    ),
    row(
        "errors are found",
        "22 wrong rules by values, 5 that waste work by the exact cost; each shrunk to a term of at most 16 nodes",
        &[
            "crates/testkit/tests/chad_mutants.rs::every_wrong_rule_is_found",
            "crates/testkit/tests/chad_mutants.rs::waste_is_found_by_the_exact_cost_and_by_nothing_else",
        ],
    ),
];
