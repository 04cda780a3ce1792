//! The generated blocks of the book are what Pullback writes today.

use pullback_testkit::book::regenerate;

#[test]
fn pages_of_the_book_are_up_to_date() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book");
    let mut generated = 0;
    for page in std::fs::read_dir(folder).expect("the book").flatten().map(|e| e.path()) {
        if page.extension().is_none_or(|e| e != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).expect("a page");
        generated += text.matches("```text explain").count();
        let again = regenerate(&text).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(again == text, "{} is out of date: run `cargo xtask book`\n{again}", page.display());
    }
    assert!(generated >= 3, "the worked examples are gone");
}

#[test]
fn a_page_without_generated_blocks_stays_as_it_is() {
    let page = "# A\n\n```futhark\nentry main (x: f64) : f64 = x\n```\n\n```text\nfree text\n```\nend\n";
    assert_eq!(regenerate(page), Ok(page.to_string()));
}

#[test]
fn blocks_that_ask_for_something_else_are_errors() {
    let page = |block: &str| {
        let program = "```futhark\nentry main [n] (a: [n]f64): f64 = f64.sum (map (\\x -> x * x) a)\n```\n";
        regenerate(&format!("{program}\n```text {block}\n```\n"))
    };
    assert!(page("explain bulk reverse").is_ok_and(|text| text.contains("cotangent of a")));
    assert!(page("explain bulk tape").is_err_and(|why| why.contains("`tape`")));
    assert!(page("explain nobody").is_err_and(|why| why.contains("`nobody`")));
}
