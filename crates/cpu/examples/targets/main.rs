//! Kernels written by hand as LLVM IR, in variants: what a generator should reach, and what each choice costs. The answers are in
//! `docs/decisions/0012-lanes.md`.
//!
//! `cargo run --release -p pullback-cpu --example targets -- [gmm|ba|kmeans|lstm|stencil|logreg|lse|rates ..]`; with `SHOW` in the
//! environment the assembly is printed. Each is one thread, the least of many runs; sizes are known at run time only, and
//! multiples of the largest number of lanes.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints a table and stops at what is wrong"
)]

mod ba;
mod gmm;
mod kmeans;
mod lane;
mod logreg;
mod lse;
mod lstm;
mod rates;
mod run;
mod stencil;
mod text;
#[path = "../../tests/common/workload.rs"]
mod workload;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let tables: [(&str, fn()); 8] = [
        ("rates", rates::table),
        ("gmm", gmm::table),
        ("ba", ba::table),
        ("kmeans", kmeans::table),
        ("lstm", lstm::table),
        ("stencil", stencil::table),
        ("logreg", logreg::table),
        ("lse", lse::table),
    ];
    for (name, table) in tables {
        if names.is_empty() || names.iter().any(|n| n == name) {
            table();
        }
    }
}
