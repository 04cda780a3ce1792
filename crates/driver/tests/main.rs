//! The integration tests of the crate, as one program: each file is a module.

mod available;
mod cancel;
mod clocks;
mod files;
mod functions;
mod imports;
mod log_sum_exp;
mod malformed;
mod memory;
mod native;
mod npy;
mod on_lambda;
mod paths;
mod profile;
mod repeat;
mod sizes;
mod values;
mod values_json;
mod values_text;
mod versions;
