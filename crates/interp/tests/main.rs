//! The integration tests of the crate, as one program: each file is a module.

mod builders;
mod chapter_programs;
mod constructs;
mod dual;
mod gmm_reverse;
mod lambda_cases;
mod lambda_programs;
mod lambda_vocabulary;
