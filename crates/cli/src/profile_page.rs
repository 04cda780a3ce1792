//! A profile as an HTML page that needs nothing else: a flame picture, what is advised, and a table.

use crate::profile::{Shown, bytes, time};
use pullback_driver::profile::{Row, sweep};

/// The width of the picture, the height of a row of it, and the width of a letter.
const WIDTH: f64 = 1120.0;
const HEIGHT: f64 = 26.0;
const LETTER: f64 = 7.5;

/// Rectangles of less width are left out.
const THIN: f64 = 0.3;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;color:#222;max-width:1140px;margin:2em auto;padding:0 1em}
h1{font-size:1.4em;margin-bottom:.2em}h2{font-size:1.1em;margin-top:1.6em}p{margin:.3em 0}
svg{width:100%;height:auto;border:1px solid #ddd;background:#fafafa;margin-top:.6em}svg text{font:12px ui-monospace,monospace;fill:#111;pointer-events:none}
.key span{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em;vertical-align:-.1em}
table{border-collapse:collapse;font-size:13px;width:100%}th{text-align:left;border-bottom:2px solid #999}td,th{padding:.2em .7em .2em 0;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}td{border-bottom:1px solid #eee}code{font:12px ui-monospace,monospace;word-break:break-word}";

/// The page.
pub(crate) fn page(shown: &Shown<'_>) -> String {
    let title = format!("Profile of {}", escape(&shown.what));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    out += &format!("<p>{}</p>\n<p>{}.</p>\n", escape(&shown.head()), escape(&shown.honesty()));
    out += &picture(shown);
    if !shown.advice.is_empty() {
        out += "<h2>Advice</h2>\n<ul>\n";
        for a in &shown.advice {
            out += &format!("<li>{}</li>\n", with_code(&shown.advised(a)));
        }
        out += "</ul>\n";
    }
    out += &table(shown);
    out + "</body>\n</html>\n"
}

/// The colour of a sweep.
fn colour(row: &Row) -> &'static str {
    match sweep(&row.slot) {
        _ if row.slot.parent.is_none() => "#d9d9d9",
        "reverse" => "#f2a65a",
        "both" => "#c7a0d8",
        _ => "#8fb8de",
    }
}

/// Every construct below the one that it is in, as wide as its time.
fn picture(shown: &Shown<'_>) -> String {
    let rows = &shown.profile.rows;
    let mut boxes = String::new();
    let mut deepest = 0;
    // Row, where it begins, and how many are around it.
    let mut todo = vec![(0, 0.0, 0)];
    let scale = WIDTH / rows[0].seconds.max(f64::MIN_POSITIVE);
    while let Some((k, x, depth)) = todo.pop() {
        let width = (rows[k].seconds * scale).min(WIDTH - x);
        if width < THIN {
            continue;
        }
        deepest = deepest.max(depth);
        boxes += &rectangle(shown, &rows[k], (x, depth as f64 * HEIGHT, width));
        let mut at = x;
        for (j, inner) in rows.iter().enumerate().skip(k + 1).filter(|(_, r)| r.slot.parent == Some(k)) {
            todo.push((j, at, depth + 1));
            at += inner.seconds * scale;
        }
    }
    let height = (deepest + 1) as f64 * HEIGHT;
    let key = [("#8fb8de", "primal"), ("#f2a65a", "reverse"), ("#c7a0d8", "both, fused")];
    let key: String =
        key.iter().map(|(c, name)| format!("<span style=\"background:{c}\"></span>{name}")).collect();
    format!(
        "<p class=\"key\">Each box is as wide as its time, below what it is in; what is free below a box is its own.{key}</p>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"flame picture\">\n{boxes}</svg>\n"
    )
}

fn rectangle(shown: &Shown<'_>, row: &Row, (x, y, width): (f64, f64, f64)) -> String {
    let place = shown.place(row).unwrap_or_default();
    let line = place.rsplit(':').nth(1).unwrap_or("");
    let label = match row.slot.parent {
        None => format!("{} {}", shown.what, time(row.seconds)),
        Some(_) => format!("{} {line}: {}", Shown::construct(row), shown.source(row)),
    };
    let room = ((width - 8.0) / LETTER).max(0.0) as usize;
    let text: String = match label.chars().count() {
        n if n <= room => label,
        _ if room >= 4 => label.chars().take(room - 1).chain(['…']).collect(),
        _ => String::new(),
    };
    let title = format!(
        "{} ({}) {place}\n{}\n{} of {}, {:.1} % its own; {} runs; {}",
        Shown::construct(row),
        sweep(&row.slot),
        shown.source(row),
        time(row.seconds),
        time(shown.profile.rows[0].seconds),
        100.0 * shown.profile.share(row),
        row.count,
        bytes(row.bytes)
    );
    format!(
        "<g><title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{HEIGHT}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.7\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>\n",
        escape(&title),
        colour(row),
        x + 4.0,
        y + 17.0,
        escape(&text)
    )
}

fn table(shown: &Shown<'_>) -> String {
    let mut out = "<h2>Constructs</h2>\n<table>\n<tr><th class=\"n\">share</th><th class=\"n\">time</th><th class=\"n\">with inner</th><th class=\"n\">runs</th><th class=\"n\">bytes</th><th class=\"n\">tapes</th><th>sweep</th><th>construct</th><th>place</th><th>source</th></tr>\n".to_string();
    for r in shown.sorted() {
        let numbers = [
            format!("{:.1} %", 100.0 * shown.profile.share(r)),
            time(r.own_seconds),
            time(r.seconds),
            r.count.to_string(),
            some(r.bytes),
            some(r.tape_bytes),
        ];
        let numbers: String = numbers.iter().map(|n| format!("<td class=\"n\">{n}</td>")).collect();
        let how = shown.how(r);
        let how = if how.is_empty() { how } else { format!(" ({how})") };
        let also = shown.also(r);
        let also = if also.is_empty() { String::new() } else { format!(", with {}", also.join(", ")) };
        out += &format!(
            "<tr>{numbers}<td>{}</td><td>{}{how}</td><td>{}{}</td><td><code>{}</code></td></tr>\n",
            sweep(&r.slot),
            escape(Shown::construct(r)),
            escape(&shown.place(r).unwrap_or_default()),
            escape(&also),
            escape(&shown.source(r))
        );
    }
    out + "</table>\n"
}

/// Bytes, if there are any.
fn some(n: u64) -> String {
    if n == 0 { String::new() } else { bytes(n) }
}

/// Text where what is between backquotes is code.
fn with_code(text: &str) -> String {
    let piece = |(k, piece): (usize, &str)| {
        let piece = escape(piece);
        if k % 2 == 1 { format!("<code>{piece}</code>") } else { piece }
    };
    text.split('`').enumerate().map(piece).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
