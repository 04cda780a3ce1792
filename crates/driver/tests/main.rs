//! The integration tests of the crate, as one program: each file is a module.

mod cancel;
mod functions;
mod imports;
mod log_sum_exp;
mod malformed;
mod memory;
mod native;
mod on_lambda;
mod profile;
mod repeat;
mod sizes;
