//! `steps`: the table of what gradients cost, as Markdown.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use pullback_testkit::steps::{SIZE, table};
use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    print!("{}", table(&root, SIZE));
}
