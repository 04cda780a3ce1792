//! Every primitive of the table at every type, on scalars and on lanes of all widths; four and eight are those that are used.

use crate::common;

use crate::common::each;

each! {
    single_values_have_the_bits_of_the_table
    quotients_by_constants_have_the_bits_of_the_table
    elements_of_arrays_have_the_bits_of_the_table
}

#[test]
fn lanes_have_the_bits_of_the_table() {
    common::conformance::lanes_have_the_bits_of_the_table(&common::make, &[2, 16, 4, 8]);
}
