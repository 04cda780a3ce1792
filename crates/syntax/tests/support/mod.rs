//! A compact rendering of trees, so that tests can state a tree on one line.

use pullback_base::SourceMap;
use pullback_syntax::ast::*;
use pullback_syntax::parse;

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn name(q: &QualName) -> String {
    let mut out = String::new();
    for m in &q.qualifiers {
        out += m.text.as_str();
        out += ".";
    }
    out + q.name.text.as_str()
}

pub(crate) fn literal(l: &Literal) -> String {
    let suffix = |s: &Option<Suffix>| s.map_or("", Suffix::as_str).to_string();
    match l {
        Literal::Int(v, s) => format!("{v}{}", suffix(s)),
        Literal::Float(v, s) => format!("{v:?}{}", suffix(s)),
        Literal::Bool(b) => format!("{b}"),
        Literal::Char(c) => format!("'{}'", *c as char),
        Literal::String(t) => format!("{:?}", String::from_utf8_lossy(t)),
    }
}

pub(crate) fn size(s: &SizeExpr) -> String {
    match s {
        SizeExpr::Any(_) => "[]".into(),
        SizeExpr::Exp(e) => format!("[{}]", expr(e)),
    }
}

pub(crate) fn ty(t: &Type) -> String {
    match &t.kind {
        TypeKind::Named(n) => name(n),
        TypeKind::Apply(n, args) => format!(
            "({} {})",
            name(n),
            list(args, |a| match a {
                TypeArgument::Size(s) => size(s),
                TypeArgument::Type(t) => ty(t),
            })
        ),
        TypeKind::Array(s, t) => format!("{}{}", size(s), ty(t)),
        TypeKind::Tuple(ts) => format!("(tuple {})", list(ts, ty)),
        TypeKind::Record(fs) => format!("{{{}}}", list(fs, |(n, t)| format!("{}:{}", n.text, ty(t)))),
        TypeKind::Function { param, from, to } => {
            let label = param.as_ref().map_or(String::new(), |p| format!("{}:", p.text));
            format!("(-> {label}{} {})", ty(from), ty(to))
        }
        TypeKind::Sum(tags) => {
            format!("(sum {})", list(tags, |(n, ts)| format!("(#{} {})", n.text, list(ts, ty))))
        }
        TypeKind::Unique(t) => format!("*{}", ty(t)),
        TypeKind::Exists(ns, t) => format!("(? {} {})", list(ns, |n| n.text.to_string()), ty(t)),
        TypeKind::Error => "ERROR".into(),
    }
}

pub(crate) fn pattern(p: &Pattern) -> String {
    match &p.kind {
        PatternKind::Wildcard => "_".into(),
        PatternKind::Name(n) => n.text.to_string(),
        PatternKind::Tuple(ps) => format!("(tuple {})", list(ps, pattern)),
        PatternKind::Record(fs) => format!(
            "{{{}}}",
            list(fs, |(n, p)| format!(
                "{}{}",
                n.text,
                p.as_ref().map_or(String::new(), |p| format!("={}", pattern(p)))
            ))
        ),
        PatternKind::Ascription(p, t) => format!("(: {} {})", pattern(p), ty(t)),
        PatternKind::Constructor(n, ps) => format!("(#{} {})", n.text, list(ps, pattern)),
        PatternKind::Literal(l) => literal(l),
        PatternKind::NegatedLiteral(l) => format!("-{}", literal(l)),
        PatternKind::Attributed(a, p) => format!("(attr {} {})", attribute(a), pattern(p)),
        PatternKind::Error => "ERROR".into(),
    }
}

fn attribute(a: &Attribute) -> String {
    let inner = list(&a.arguments, |a| match a {
        AttributeArgument::Int(v, _) => v.to_string(),
        AttributeArgument::Nested(n) => attribute(n),
    });
    if inner.is_empty() { a.name.text.to_string() } else { format!("{}({inner})", a.name.text) }
}

fn dim(d: &DimIndex) -> String {
    let part = |e: &Option<Expr>| e.as_ref().map_or(String::new(), expr);
    match d {
        DimIndex::Fix(e) => expr(e),
        DimIndex::Slice { from, to, stride, .. } => {
            format!("{}:{}:{}", part(from), part(to), part(stride))
        }
    }
}

fn names(ns: &[Name]) -> String {
    list(ns, |n| n.text.to_string())
}

pub(crate) fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Literal(l) => literal(l),
        ExprKind::Var(n) => name(n),
        ExprKind::Apply(f, args) => format!("({} {})", expr(f), list(args, expr)),
        ExprKind::Binary(o, a, b) => format!("({} {} {})", name(&o.name), expr(a), expr(b)),
        ExprKind::Negate(e) => format!("(neg {})", expr(e)),
        ExprKind::Not(e) => format!("(not {})", expr(e)),
        ExprKind::LeftSection(e, o) => format!("(left {} {})", expr(e), name(&o.name)),
        ExprKind::RightSection(o, e) => format!("(right {} {})", name(&o.name), expr(e)),
        ExprKind::ProjectSection(ns) => format!("(.{})", names(ns)),
        ExprKind::IndexSection(ds) => format!("(.[{}])", list(ds, dim)),
        ExprKind::Lambda { params, return_type, body } => {
            let of = return_type.as_ref().map_or(String::new(), |t| format!(":{} ", ty(t)));
            format!("(\\{} {of}-> {})", list(params, pattern), expr(body))
        }
        ExprKind::Let(bs, body) => {
            let binding = |b: &LetBinding| match &b.kind {
                LetKind::Pattern { sizes, pattern: p, value } => {
                    let sizes = list(sizes, |n| format!("[{}] ", n.text));
                    format!("{sizes}{} = {};", pattern(p), expr(value))
                }
                LetKind::Function { name, type_params, params, return_type, body } => {
                    let of = return_type.as_ref().map_or(String::new(), |t| format!(" : {}", ty(t)));
                    format!(
                        "{}{} {}{of} = {};",
                        name.text,
                        type_parameters(type_params),
                        list(params, pattern),
                        expr(body)
                    )
                }
                LetKind::Update { name, indices, value } => {
                    format!("{}[{}] = {};", name.text, list(indices, dim), expr(value))
                }
            };
            format!("(let {} {})", list(bs, binding), expr(body))
        }
        ExprKind::If(c, a, b) => format!("(if {} {} {})", expr(c), expr(a), expr(b)),
        ExprKind::Match(e, cases) => format!(
            "(match {} {})",
            expr(e),
            list(cases, |c| format!("({} -> {})", pattern(&c.pattern), expr(&c.body)))
        ),
        ExprKind::Loop { sizes, pattern: p, initial, form, body } => {
            let sizes = list(sizes, |n| format!("[{}] ", n.text));
            let initial = initial.as_ref().map_or(String::new(), |e| format!(" = {}", expr(e)));
            let form = match form {
                LoopForm::For(n, e) => format!("for {} < {}", n.text, expr(e)),
                LoopForm::ForIn(p, e) => format!("for {} in {}", pattern(p), expr(e)),
                LoopForm::While(e) => format!("while {}", expr(e)),
            };
            format!("(loop {sizes}{}{initial} {form} do {})", pattern(p), expr(body))
        }
        ExprKind::Range { start, second, end, kind } => {
            let second = second.as_ref().map_or(String::new(), |e| format!("..{}", expr(e)));
            let sign = match kind {
                RangeEnd::Inclusive => "...",
                RangeEnd::UpToExclusive => "..<",
                RangeEnd::DownToExclusive => "..>",
            };
            format!("(range {}{second}{sign}{})", expr(start), expr(end))
        }
        ExprKind::Array(es) => format!("[{}]", list(es, expr)),
        ExprKind::Tuple(es) => format!("(tuple {})", list(es, expr)),
        ExprKind::Record(fs) => format!(
            "{{{}}}",
            list(fs, |f| format!(
                "{}{}",
                f.name.text,
                f.value.as_ref().map_or(String::new(), |e| format!("={}", expr(e)))
            ))
        ),
        ExprKind::Project(e, n) => format!("(. {} {})", expr(e), n.text),
        ExprKind::UpdateField(e, path, v) => {
            format!("(with {} .{} {})", expr(e), names(path), expr(v))
        }
        ExprKind::UpdateIndex(e, ds, v) => {
            format!("(with {} [{}] {})", expr(e), list(ds, dim), expr(v))
        }
        ExprKind::Index(e, ds) => format!("(index {} {})", expr(e), list(ds, dim)),
        ExprKind::Constructor(n, es) => format!("(#{} {})", n.text, list(es, expr)),
        ExprKind::Ascription(e, t) => format!("(: {} {})", expr(e), ty(t)),
        ExprKind::Coercion(e, t) => format!("(:> {} {})", expr(e), ty(t)),
        ExprKind::Assert(c, e) => format!("(assert {} {})", expr(c), expr(e)),
        ExprKind::Attributed(a, e) => format!("(attr {} {})", attribute(a), expr(e)),
        ExprKind::Error => "ERROR".into(),
    }
}

fn type_parameters(ps: &[TypeParam]) -> String {
    ps.iter()
        .map(|p| match p {
            TypeParam::Size(n) => format!(" [{}]", n.text),
            TypeParam::Type(n, Liftedness::Unlifted) => format!(" '{}", n.text),
            TypeParam::Type(n, Liftedness::SizeLifted) => format!(" '~{}", n.text),
            TypeParam::Type(n, Liftedness::Lifted) => format!(" '^{}", n.text),
        })
        .collect()
}

pub(crate) fn declaration(d: &Declaration) -> String {
    match d {
        Declaration::Value(v) => {
            let attributes: String = v.attributes.iter().map(|a| format!("#[{}] ", attribute(a))).collect();
            let kind = if v.kind == ValueKind::Entry { "entry" } else { "def" };
            let of = v.return_type.as_ref().map_or(String::new(), |t| format!(" : {}", ty(t)));
            format!(
                "{attributes}{kind} {}{} {}{of} = {}",
                v.name.text,
                type_parameters(&v.type_params),
                list(&v.params, pattern),
                expr(&v.body)
            )
        }
        Declaration::Type(t) => {
            format!("type {}{} = {}", t.name.text, type_parameters(&t.params), ty(&t.definition))
        }
    }
}

/// Parses a text that must be right.
pub(crate) fn program(text: &str) -> Vec<String> {
    let mut sources = SourceMap::new();
    let file = sources.add("test.fut", text);
    let (program, diagnostics) = parse(file, text);
    let shown: Vec<String> = diagnostics.iter().map(|d| d.render(&sources)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    program.declarations.iter().map(declaration).collect()
}

/// The tree of an expression that must be right.
pub(crate) fn expression(text: &str) -> String {
    let whole = program(&format!("def it = {text}"));
    assert_eq!(whole.len(), 1, "{whole:?}");
    whole[0].strip_prefix("def it  = ").expect("the definition made here").to_string()
}
