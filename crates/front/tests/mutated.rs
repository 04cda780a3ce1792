//! Example programs with random damage: never a panic, always a diagnostic with a span, or a finished tree.

use crate::common::check;
use pullback_base::Severity;

const PROGRAMS: [&str; 4] = [
    include_str!("../../../examples/gmm.fut"),
    include_str!("../../../examples/hand.fut"),
    include_str!("../../../examples/det.fut"),
    "type list = #nil | #cons f64 list
     type pair 'a [n] = {fst: [n]a, snd: ?[k].[k]a}
     def total (l: list) : f64 = match l case #nil -> 0 case #cons x rest -> x + total rest
     def grow [n] (xs: [n]i32) = loop ys = xs for _i < 3i32 do ys ++ ys
     def inside (x: i32) = let swap 'a 'b (p: (a, b)) : (b, a) = (p.1, p.0) in swap (x, 1.5)
     def get (r: {a: i32, b: [3]f64}) = (r with a = 2).b[1:] with [0] = 1
     def f (p: #a i32 | #b bool) = match p case #a 1 -> 2 case #a n -> n case #b _ -> 3
     def g [n] (xs: [n * 2]f64) : [n][2]f64 = unflatten xs |> map (map (+1))
     entry main (n: i64) = vjp (\\x -> f64.sum (map (* x) (map f64.i64 (iota n)))) 2 1",
];

/// A generator of numbers that is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Words and marks of a text, spaces included, so that they can be put together again.
fn pieces(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = false;
    for c in text.chars() {
        let letter = c.is_alphanumeric() || c == '_';
        match out.last_mut() {
            Some(last) if letter && word => last.push(c),
            _ => out.push(c.to_string()),
        }
        word = letter;
    }
    out
}

fn damage(text: &str, random: &mut Random) -> String {
    let mut pieces = pieces(text);
    for _ in 0..=random.below(3) {
        let at = random.below(pieces.len());
        let other = pieces[random.below(pieces.len())].clone();
        match random.below(4) {
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, other),
            _ => pieces[at] = other,
        }
    }
    pieces.concat()
}

#[test]
fn damaged_programs_give_diagnostics_not_panics() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let rounds = std::env::var("FRONT_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let (mut right, mut wrong) = (0, 0);
    for round in 0..rounds {
        let text = damage(PROGRAMS[round % PROGRAMS.len()], &mut random);
        let checked = check(&text);
        for d in &checked.diagnostics {
            assert!(d.span.is_some(), "no span: {}\n{text}", d.message);
            assert!(!d.hints.is_empty() || !d.labels.is_empty(), "no hint: {}\n{text}", d.message);
        }
        if checked.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            wrong += 1;
        } else {
            right += 1;
            assert!(!format!("{:?}", checked.program).contains("kind: Error"), "{text}");
            // Nothing is left open.
            assert!(!format!("{:?}", checked.program).contains("Meta(MetaId"), "{text}");
        }
    }
    // Damage in comments and of spaces leaves programs right.
    assert!(right > rounds / 20 && wrong > rounds / 3, "{right} right, {wrong} wrong of {rounds}");
}
