//! Programs with random damage that the front end still accepts: elaboration and lowering take each of them, or say
//! what they do not support; they never find the typed program broken.

use pullback_base::{Code, Severity, SourceMap};

const PROGRAMS: [&str; 4] = [
    "type shape = #circle f64 | #box {w: f64, h: f64} | #nothing
     def area (s: shape) = match s case #circle r -> r * r case #box b -> b.w * b.h case #nothing -> 0
     def total [n] (xs: [n]shape) = f64.sum (map area xs)
     def swap 'a 'b (p: (a, b)) : (b, a) = (p.1, p.0)
     def inside (x: i32) = let same y = y in (same x, same (x > 1), (swap (same 2, x)).0)
     entry main (x: f64) = (total [#circle x, #nothing, #box {h = x, w = 2}], inside 3)",
    "def dot [n] (xs: [n]f64) (ys: [n]f64) = f64.sum (map2 (*) xs ys)
     def mul [n][m][p] (a: [n][m]f64) (b: [m][p]f64) = map (\\r -> map (dot r) (transpose b)) a
     def grow [n] (xs: [n]i32) = loop ys = xs for i < 3i32 do if i > 1 then ys ++ ys else ys[1:]
     def put [n] (xs: *[n]f64) (i: i64) = let xs[i] = 1 let xs[i + 1] = xs[i] in xs
     entry main [n] (a: [n][n]f64) (k: i64) = (mul a a, grow [1, 2, 3], put (map (* 2) a[0]) k, length (filter (> 0) a[1]))",
    "def power x n = if n == 0i32 then 1 else x * power x (n - 1)
     def sums [l][d] (xs: [l * 2][d]f64) = map (\\p -> p[0, 0] - p[1, 0]) (unflatten xs)
     def steps (x: f64) = (loop (y, k) = (x, 0i32) while k < 4 do ((y + x / y) / 2, k + 1)).0
     entry main [n] (x: f64) (xs: [n][3]f64) =
       let f (a, b) = steps a * f64.sum b + f64.i32 (power 2 3)
       let (y, (da, db)) = vjp2 f (x, xs[0]) 1
       in (y, da, db, jvp steps x 1, sums (sized (n / 2 * 2) xs))",
    "def hist_of [n] (k: i64) (is: [n]i64) = reduce_by_index (replicate k 0) (+) 0 is (replicate n 1i32)
     def prefix [n] (xs: [n](f64, i32)) = scan (\\(a, i) (b, j) -> (a + b, i32.max i j)) (0, i32.lowest) xs
     def op = (>-> (+ 1)) f64.sqrt
     entry main [n] (xs: [n]f64) =
       let is = map (\\x -> i64.f64 x % 5) xs
       in (hist_of 5 is, unzip (prefix (zip xs (map i32.i64 is))), map op xs, scatter (copy xs) is xs, rotate 1 (reverse is))",
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn words(text: &str) -> Vec<String> {
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

/// Words that may stand in the same places: numbers, names, operators.
fn class(word: &str) -> Option<u8> {
    let first = word.chars().next()?;
    match first {
        '0'..='9' => Some(0),
        'a'..='z' if !["def", "let", "in", "if", "then", "else", "entry", "loop", "type"].contains(&word) => {
            Some(1)
        }
        '+' | '*' | '-' | '/' | '%' | '>' => Some(2),
        _ => None,
    }
}

/// The program with one or two words replaced by others of their class.
fn damage(text: &str, random: &mut Random) -> String {
    let mut words = words(text);
    for changes in 0.. {
        if changes > 1 + random.below(3) && words.concat() != text {
            break;
        }
        let at = random.below(words.len());
        let from = random.below(words.len());
        if class(&words[at]).is_some() && class(&words[at]) == class(&words[from]) {
            words[at] = words[from].clone();
        }
    }
    words.concat()
}

/// What the front end says about a program.
fn refusal(text: &str) -> String {
    let mut sources = SourceMap::new();
    let prelude_file = sources.add(pullback_syntax::PRELUDE_NAME, pullback_syntax::PRELUDE);
    let file = sources.add("test.fut", text);
    let (prelude, _) = pullback_syntax::parse(prelude_file, pullback_syntax::PRELUDE);
    let (user, mut diagnostics) = pullback_syntax::parse(file, text);
    diagnostics.extend(pullback_front::check_program(&prelude, &user).1);
    diagnostics.iter().map(|d| d.render(&sources)).collect()
}

/// Whether the front end accepts the program; panics if a later pass finds it broken.
fn accepted(text: &str) -> bool {
    let mut sources = SourceMap::new();
    let prelude_file = sources.add(pullback_syntax::PRELUDE_NAME, pullback_syntax::PRELUDE);
    let file = sources.add("test.fut", text);
    let (prelude, _) = pullback_syntax::parse(prelude_file, pullback_syntax::PRELUDE);
    let (user, mut diagnostics) = pullback_syntax::parse(file, text);
    let (typed, more) = pullback_front::check_program(&prelude, &user);
    diagnostics.extend(more);
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return false;
    }
    let broken = |pass: &str, ds: &[pullback_base::Diagnostic]| {
        for d in ds {
            assert!(d.code != Code::Internal, "{pass}: {}\n{text}", d.render(&sources));
        }
    };
    match pullback_elab::elaborate(&typed) {
        Err(ds) => broken("elaborate", &ds),
        Ok(lambda) => {
            if let Err(ds) = pullback_lambda::check::check(&lambda) {
                panic!("lambda: {}\n{text}", ds.iter().map(|d| d.render(&sources)).collect::<String>());
            }
            match pullback_elab::lower(&lambda) {
                Err(ds) => broken("lower", &ds),
                Ok(core) => {
                    let checked = pullback_core::check::check(&core, pullback_core::check::Rules::SURFACE);
                    assert!(checked.is_ok(), "core: {}\n{text}", checked.expect_err("wrong core"));
                }
            }
        }
    }
    true
}

#[test]
fn what_the_front_end_accepts_the_later_passes_take() {
    for text in PROGRAMS {
        assert!(accepted(text), "{text}\n{}", refusal(text));
    }
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let rounds = std::env::var("ELAB_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let kept = (0..rounds).filter(|i| accepted(&damage(PROGRAMS[i % PROGRAMS.len()], &mut random))).count();
    assert!(kept > rounds / 40, "{kept} of {rounds} accepted");
}
