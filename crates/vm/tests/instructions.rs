//! Every instruction on scalars, and every primitive of the table: what every executor of kernel IR must do.

use crate::common;

macro_rules! conformance {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            pullback_testkit::conformance::$name(&common::make);
        }
    )* };
}

conformance! {
    a_loop_adds_the_elements_of_a_vector
    a_loop_of_no_iterations_does_nothing_and_bounds_are_read_before_it
    nested_loops_multiply_matrices
    while_and_if_count_the_steps_of_collatz
    memory_holds_elements_of_every_type
    memory_holds_pointers
    allocations_are_aligned_and_do_not_overlap_until_they_are_released
    a_release_keeps_accesses_in_order
    too_much_memory_is_a_limit
    a_failure_says_what_its_message_says
    a_failure_in_a_called_function_stops_its_callers
    functions_call_themselves_up_to_a_limit
    calls_that_have_ended_are_not_open
    a_call_can_be_cancelled_and_its_session_be_used_again
    an_executable_is_called_from_many_threads
    arguments_in_another_order_are_refused
    single_values_have_the_bits_of_the_table
    quotients_by_constants_have_the_bits_of_the_table
    elements_of_arrays_have_the_bits_of_the_table
}

#[test]
fn lanes_have_the_bits_of_the_table() {
    pullback_testkit::conformance::lanes_have_the_bits_of_the_table(&common::make, &[1, 7, 64, 512]);
}

#[test]
fn random_functions_of_lanes_do_what_the_reference_executor_does() {
    pullback_testkit::conformance::random_functions_of_lanes_do_what_the_reference_executor_does(
        &common::make,
        &[8, 48, 512],
        &|w| vec![0, 1, 7, 8, 9, w - 1, w, w + 1, 63, 64, 65, 2 * w + 5],
        12,
    );
}

#[test]
fn what_a_loop_reads_is_not_dropped() {
    common::what_a_loop_reads_is_not_dropped(&common::make);
}

#[test]
fn lanes_are_read_before_their_memory_changes() {
    common::lanes_are_read_before_their_memory_changes(&common::make);
}

#[test]
fn a_fold_leaves_out_what_its_mask_leaves_out() {
    common::a_fold_leaves_out_what_its_mask_leaves_out(&common::make);
}
