//! Checks files and prints the types of their definitions.
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut sources = pullback_base::SourceMap::new();
        let prelude = sources.add("prelude.fut", pullback_syntax::prelude::PRELUDE);
        let (prelude, a) = pullback_syntax::parser::parse(prelude, pullback_syntax::prelude::PRELUDE);
        let file = sources.add(&path, &text);
        let (user, b) = pullback_syntax::parser::parse(file, &text);
        let (program, c) = pullback_front::check_program(&prelude, &user);
        for d in a.iter().chain(&b).chain(&c) {
            eprintln!("{}", d.render(&sources));
        }
        for d in program.defs.iter().filter(|d| !d.prelude || path.contains("prelude")) {
            let flags = format!(
                "{}{}",
                if d.recursive { " rec" } else { "" },
                if d.fun.needs_checks { " checks" } else { "" }
            );
            eprintln!("{} : {}{flags}", d.name, pullback_front::type_text(&d.ty));
        }
    }
}
