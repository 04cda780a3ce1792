//! `price [SMALL LARGE]`: how long gradients of the problems take by Efficient CHAD on arrays, lowered, and by Fast CHAD, on one thread.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [small, large] = sizes[..] else {
        eprintln!("give two sizes: price 100 1000");
        std::process::exit(2);
    };
    print!("{}", pullback_testkit::chad::price::times([small, large]));
}
