//! The text of the prelude, and what of it a program needs.

use std::collections::BTreeMap;

/// The prelude, a program of the language. It is parsed and checked before the user's program.
pub const PRELUDE: &str = include_str!("../../../lib/prelude.fut");

/// The name under which the prelude stands in a source map.
pub const PRELUDE_NAME: &str = "prelude.fut";

/// The prelude with blanks in place of the definitions that programs of these texts cannot reach. What is left stands where it
/// stood.
///
/// Every word of a text may be a name. `sort` may also be the member of a scalar module (`f64.sort`), which is `f64_sort` here.
/// What is not named by a word, such as operators, is always left.
pub fn prelude_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let definitions = definitions();
    let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut work: Vec<usize> = Vec::new();
    for (k, text) in definitions.iter().enumerate() {
        match words(text.strip_prefix(DEFINITION).unwrap_or_default().split(' ').next().unwrap_or_default())
            .next()
        {
            Some(name) => {
                let member = name.split_once('_').map(|(_, member)| member);
                [name].into_iter().chain(member).for_each(|n| named.entry(n).or_default().push(k));
            }
            None => work.push(k),
        }
    }
    let reached = |text: &'t str, work: &mut Vec<usize>| {
        work.extend(words(text).filter_map(|word| named.get(word)).flatten());
    };
    texts.into_iter().for_each(|text| reached(text, &mut work));
    let mut kept = vec![false; definitions.len()];
    while let Some(k) = work.pop() {
        if !std::mem::replace(&mut kept[k], true) {
            let code = definitions[k].lines().filter_map(|line| line.split("--").next());
            code.for_each(|line| reached(line, &mut work));
        }
    }
    let blank = |c: char| if c == '\n' { "\n".to_string() } else { " ".repeat(c.len_utf8()) };
    let texts = definitions.iter().zip(kept);
    texts
        .map(|(text, kept)| if kept { (*text).to_string() } else { text.chars().map(blank).collect() })
        .collect()
}

/// What a definition begins with, at the beginning of a line.
const DEFINITION: &str = "def ";

/// The prelude in parts: what is before the first definition, then each definition with what follows it.
fn definitions() -> Vec<&'static str> {
    let mut rest = PRELUDE;
    let mut out = Vec::new();
    let end = format!("\n{DEFINITION}");
    while let Some(at) = rest.find(&end) {
        let (part, others) = rest.split_at(at + 1);
        out.push(part);
        rest = others;
    }
    out.push(rest);
    out
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\'')).filter(|w| !w.is_empty())
}
