//! `price SMALL LARGE [ALGORITHM]`: how long gradients of the problems take by an algorithm on lambda, lowered (Efficient CHAD on arrays, if none is named), and by Fast CHAD, on
//! one thread.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

use pullback_ad::on_lambda::find;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<usize> = words.iter().take(2).filter_map(|a| a.parse().ok()).collect();
    let name = words.get(2).map_or(pullback_ad::chad::d_arrays::ID, String::as_str);
    let ([small, large], Some(algorithm)) = (&sizes[..], find(name)) else {
        eprintln!(
            "give two sizes, and the name of an algorithm on lambda if you like: price 100 1000 dual-taping"
        );
        std::process::exit(2);
    };
    print!("{}", pullback_testkit::chad::price::times([*small, *large], algorithm.id));
}
