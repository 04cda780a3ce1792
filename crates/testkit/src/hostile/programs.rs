//! Random programs about sizes: chains of shape operations, as source text, and arguments for them.
//!
//! A program is a chain of statements, each a row of [`FORMS`] with its holes filled by what came before. Sizes are arguments, numbers,
//! lengths, and sums and products of them. Where types would say that sizes agree, a function that forgets them lets programs be
//! written whose sizes do not: an array with no name for its size fits everywhere, until it runs.

use crate::rng::Rng;
use pullback_core::Value;

/// What an array is bound by, and read through, when its sizes are to have no names.
const FORGET: &str = "\
def u1 [n] (x: [n]f64) : []f64 = if true then x else x[0:0]
def u2 [n][m] (x: [n][m]f64) : [][]f64 = if true then x else transpose x
def u3 [n][m][k] (x: [n][m][k]f64) : [][][]f64 = if true then x else transpose (map transpose x)
def ui [n] (x: [n]i64) : []i64 = if true then x else x[0:0]
type opt = #none | #some ([]f64)
";

/// The parameters, in the order of [`Program::args`].
const HEAD: &str =
    "[k][p][q][r] (xs: [k]f64) (mat: [p][q]f64) (is: [r]i64) (w: f64) (a: i64) (b: i64) (c: i64) (d: i64)";

/// The statements: the rank of what they make, and how. Holes: `{0}` a number, `{1}` `{2}` `{3}` an array of that rank, `{i}` an array of
/// indices, `{s}` a size, `{t}` a few.
const FORMS: &[(usize, &str)] = &[
    // Arrays from sizes.
    (1, "replicate {s} {0}"),
    (2, "replicate {s} {1}"),
    (3, "replicate {s} {2}"),
    (2, "replicate {s} (replicate {s} {0})"),
    (3, "replicate {s} (replicate {s} (replicate {s} {0}))"),
    (1, "map f64.i64 (iota {s})"),
    (1, "tabulate {s} (\\i -> f64.i64 i * {0})"),
    (2, "tabulate_2d {s} {s} (\\i j -> f64.i64 (i - j))"),
    (3, "tabulate_3d {s} {s} {s} (\\i j l -> f64.i64 (i + j * l))"),
    (1, "map f64.i64 ({s}..<{s})"),
    (1, "map f64.i64 ({s}..{s}...{s})"),
    // The same elements in another shape.
    (1, "flatten {2}"),
    (2, "flatten {3}"),
    (1, "flatten_3d {3}"),
    (1, "flatten (replicate {s} {1})"),
    (1, "flatten (replicate {s} (replicate {s} {0}))"),
    (2, "unflatten ({1} :> [{s*s}]f64)"),
    (3, "unflatten ({2} :> [{s*s}][q]f64)"),
    (2, "map (\\r -> f64.sum (flatten r)) {3} |> replicate {s}"),
    (2, "transpose {2}"),
    (3, "transpose {3}"),
    (3, "map transpose {3}"),
    (2, "map flatten {3}"),
    (1, "{1} :> [{s}]f64"),
    (2, "{2} :> [{s}][{s}]f64"),
    // Parts, and whole arrays moved.
    (1, "{1} ++ {1}"),
    (1, "{1} ++ {1} ++ {1}"),
    (2, "{2} ++ {2}"),
    (2, "{2} ++ [{1}] ++ {2}"),
    (3, "{3} ++ {3}"),
    (1, "replicate {s} {0} ++ replicate {s} {0} ++ map (+ 1) (replicate {s} {0})"),
    (1, "map (* 2) (map f64.i64 (iota {s})) ++ map (+ 1) {1} ++ map (+ 1) {1}"),
    (1, "{1}[{s}:{s}]"),
    (1, "{1}[{t}:]"),
    (1, "{1}[:{s}]"),
    (1, "{1}[{s}:{s}:{s}]"),
    (1, "{1}[::{s}]"),
    (2, "{2}[{s}:{s}]"),
    (2, "{2}[:, {t}:{s}]"),
    (1, "{2}[:, {s}]"),
    (1, "{2}[{t}]"),
    (1, "take {s} {1}"),
    (2, "drop {t} {2}"),
    (1, "(split {t} {1}).1"),
    (1, "rotate {s} {1}"),
    (2, "rotate {s} {2}"),
    (1, "reverse {1}"),
    (2, "map reverse {2}"),
    (1, "map (\\i -> {1}[i]) {i}"),
    (2, "map (\\i -> {2}[i]) {i}"),
    (0, "{1}[{s}]"),
    (0, "{2}[{t}, {s}]"),
    // Literals and functions of rows.
    (2, "[{1}, {1}]"),
    (3, "[{2}, {2}]"),
    (1, "map (\\r -> f64.sum r) {2}"),
    (2, "map (\\r -> r[0:{s}]) {2}"),
    (2, "map (\\r -> filter (> {0}) r) {2}"),
    (2, "map (\\r -> r ++ {1}) {2}"),
    (2, "map (\\x -> replicate {s} x) {1}"),
    (3, "map (\\r -> replicate {s} r) {2}"),
    (2, "map (\\i -> map f64.i64 (iota i)) {i}"),
    (2, "map (\\i -> replicate (i * {s}) {0}) {i}"),
    (3, "map (\\i -> replicate i (replicate ({s} - i) {0})) {i}"),
    (1, "map (\\x -> f64.sum (replicate {s} x)) {1}"),
    (1, "map (\\x -> f64.sum (flatten (replicate {s} (replicate {t} x)))) {1}"),
    (1, "map (\\i -> (replicate {s} {0})[i]) {i}"),
    (1, "map2 (*) {1} {1}"),
    (2, "map2 (\\u v -> map2 (+) u v) {2} {2}"),
    (2, "map2 (\\u x -> map (* x) u) {2} {1}"),
    (1, "map (\\(x, y) -> x - y) (zip {1} {1})"),
    (1, "(unzip (zip {1} {1})).1"),
    (2, "(unzip (zip {2} {2})).0"),
    // Choices of elements, writes.
    (1, "filter (> {0}) {1}"),
    (2, "filter (\\r -> f64.sum r > {0}) {2}"),
    (1, "(partition (> {0}) {1}).1"),
    (1, "copy {1} with [{s}] = {0}"),
    (2, "copy {2} with [{t}] = {1}"),
    (2, "copy {2} with [{t}, {s}] = {0}"),
    (3, "copy {3} with [{t}] = {2}"),
    (1, "copy {1} with [{t}:{s}] = {1}"),
    (2, "copy {2} with [{t}:{s}] = {2}"),
    (2, "copy {2} with [:, {t}] = {1}"),
    (1, "scatter (copy {1}) {i} {1}"),
    (2, "scatter (copy {2}) {i} {2}"),
    (3, "scatter (copy {3}) {i} {3}"),
    (2, "scatter (replicate {s} {1}) {i} {2}"),
    (2, "scatter (copy {2}) [{t}] [{1}]"),
    (2, "(unzip (scatter (zip (copy {2}) (copy {2})) {i} (zip {2} {2}))).1"),
    (1, "reduce_by_index (copy {1}) (+) 0 {i} {1}"),
    (2, "reduce_by_index (copy {2}) (map2 (+)) (replicate {s} 0) {i} {2}"),
    (2, "reduce_by_index (copy {2}) (\\u v -> map2 (+) u v) (u1 {1}) {i} {2}"),
    (2, "reduce_by_index (copy {2}) (\\u v -> v) {1} {i} {2}"),
    (2, "reduce_by_index (copy {2}) (\\u v -> u ++ v) {1} {i} {2}"),
    (2, "reduce_by_index (copy {2}) (\\u v -> u1 v[0:{t}]) {1} {i} {2}"),
    (3, "reduce_by_index (copy {3}) (\\u v -> map2 (map2 (*)) u v) {2} {i} {3}"),
    (
        2,
        "(unzip (reduce_by_index (zip (copy {2}) (copy {2})) (\\(u, x) (v, y) -> (map2 (+) u v, y)) ({1}, {1}) {i} (zip {2} {2}))).0",
    ),
    (2, "hist (\\u v -> map2 f64.max u v) {1} {s} {i} {2}"),
    // Reductions and scans of rows.
    (0, "f64.sum {1}"),
    (0, "f64.sum (flatten {2})"),
    (0, "f64.maximum (flatten (replicate {s} {1}))"),
    (1, "scan (+) 0 {1}"),
    (1, "reduce (map2 (+)) (replicate {s} 0) {2}"),
    (1, "reduce (\\u v -> u1 (u ++ v)) (take 0 {1}) {2}"),
    (2, "scan (map2 (+)) (map (\\_ -> 0) {1}) {2}"),
    (2, "scan (\\u v -> u1 (u ++ v)) {1} {2}"),
    (2, "reduce (map2 (map2 (+))) (map (map (\\_ -> 0)) {2}) {3}"),
    // Control.
    (1, "loop v = {1} for i < {t} do u1 (v ++ {1})"),
    (1, "loop v = {1} for i < {t} do copy v with [i] = {0}"),
    (1, "loop v = {1} for i < {t} do u1 v[1:]"),
    (2, "loop m = {2} for i < {t} do copy m with [i] = {1}"),
    (2, "loop m = {2} for i < {t} do u2 (transpose m)"),
    (2, "loop m = {2} for i < {t} do scatter (copy m) {i} {2}"),
    (1, "(loop (u, v) = ({1}, {1}) for i < {t} do (v, u)).0"),
    (1, "(loop (v, i) = ({1}, 0) while i < {t} do (u1 (v ++ {1}), i + 1)).0"),
    (0, "loop x = {0} for i < {s} do x + 1"),
    (0, "loop x = {0} for i < {t} do x + f64.sum (replicate (i * {s}) {0})"),
    (1, "if {0} > 1 then {1} else {1}"),
    (2, "if {0} > 1 then {2} else {2}"),
    (1, "if {0} > 1 then replicate {s} {0} else {1}"),
    (1, "match ((if {0} > 1 then #some {1} else #none) : opt) case #some v -> v case #none -> {1}"),
];

/// Sizes at which arithmetic of 32 and 64 bits begins again, and those beside them.
const HOSTILE: [i64; 18] = [
    0,
    -1,
    i64::MIN,
    1 << 31,
    (1 << 31) - 1,
    1 << 32,
    (1 << 32) + 1,
    1 << 59,
    1 << 60,
    (1 << 60) + 1,
    1 << 61,
    1 << 62,
    (1 << 62) + 1,
    3 << 61,
    i64::MAX / 3 + 1,
    i64::MAX - 1,
    i64::MAX,
    -(1 << 32),
];

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    lines: Vec<Line>,
    /// Variables with their ranks: what the result is made of.
    results: Vec<(String, usize)>,
    /// Whether the result is the last variable itself, and not a number made of all.
    whole: bool,
    /// Arguments for several runs.
    pub args: Vec<Vec<Value>>,
}

/// `let .. = ..`
#[derive(Clone, Debug)]
struct Line {
    defines: Vec<String>,
    text: String,
}

impl Program {
    /// The source text.
    pub fn text(&self) -> String {
        let (result, ty) = if self.whole { self.last() } else { (self.digest(), "f64".to_string()) };
        let mut needed: Vec<&Line> = Vec::new();
        let mut open = result.clone();
        for line in self.lines.iter().rev() {
            if line.defines.iter().any(|name| mentions(&open, name)) {
                open = format!("{open} {}", line.text);
                needed.push(line);
            }
        }
        let lines: String = needed.iter().rev().map(|l| format!("  {}\n", l.text)).collect();
        let comes_in = if needed.is_empty() { "" } else { "  in " };
        format!("{FORGET}entry main {HEAD} : {ty} =\n{lines}{comes_in}{result}\n")
    }
    /// Whether the result is one number, which can be differentiated.
    pub fn has_gradient(&self) -> bool {
        !self.whole
    }
    /// Smaller programs about the same: each variable by itself.
    pub fn parts(&self) -> Vec<Program> {
        let alone = |k: usize| Program { results: vec![self.results[k].clone()], ..self.clone() };
        (0..self.results.len()).map(alone).collect()
    }
    fn last(&self) -> (String, String) {
        let (name, rank) = &self.results[self.results.len() - 1];
        (name.clone(), format!("{}f64", "[]".repeat(*rank)))
    }
    /// A number that depends on all elements and sizes of the variables.
    fn digest(&self) -> String {
        let of = |(k, (v, rank)): (usize, &(String, usize))| {
            let number = match (rank, k % 2) {
                (0, _) => return v.clone(),
                (1, _) => format!("f64.sum {v}"),
                (2, 0) => format!("f64.sum (flatten {v}) + f64.i64 (length (transpose {v}))"),
                (2, _) => format!("f64.sum (map f64.sum {v}) + f64.i64 (length (transpose {v}))"),
                (_, 0) => format!("f64.sum (map (\\m -> f64.sum (map f64.sum m)) {v})"),
                (_, _) => format!("f64.sum (flatten_3d {v}) + f64.i64 (length (transpose {v}))"),
            };
            format!("{number} + f64.i64 (length {v})")
        };
        self.results.iter().enumerate().map(of).collect::<Vec<_>>().join(" + ")
    }
}

/// Whether a name stands in a text.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut draw = Draw {
        random: Rng::new(seed ^ 0x5157),
        lines: Vec::new(),
        arrays: vec![("w".into(), 0), ("xs".into(), 1), ("mat".into(), 2)],
        sizes: ["a", "b", "c", "d", "k", "p", "q", "r"].map(String::from).to_vec(),
        taken: Vec::new(),
        alike: false,
    };
    let (given, count) = (draw.arrays.len(), draw.random.range(1, 5));
    while draw.arrays.len() < given + count {
        draw.statement();
    }
    let args = vec![draw.args(0.0), draw.args(0.3), draw.args(0.7)];
    let whole = draw.random.chance(0.25);
    Program { lines: draw.lines, results: draw.arrays.split_off(given), whole, args }
}

/// A program being drawn.
struct Draw {
    random: Rng,
    lines: Vec<Line>,
    /// Variables with their ranks.
    arrays: Vec<(String, usize)>,
    /// Variables that are sizes.
    sizes: Vec<String>,
    /// The arrays of the statement that is being drawn, with their ranks; and whether they are to be alike, where there are several.
    taken: Vec<(String, usize)>,
    alike: bool,
}

impl Draw {
    fn statement(&mut self) {
        let (rank, form) = *self.random.choose(FORMS);
        let Some(text) = self.filled(form) else { return };
        let name = format!("v{}", self.lines.len());
        let mut defines = vec![name.clone()];
        let bound = if rank == 0 || self.random.chance(0.5) {
            name.clone()
        } else {
            let sizes: Vec<String> = (0..rank).map(|d| format!("{name}_{d}")).collect();
            let brackets: String = sizes.iter().map(|s| format!("[{s}]")).collect();
            self.sizes.extend(sizes.iter().cloned());
            defines.extend(sizes);
            format!("{brackets} ({name}: {brackets}f64)")
        };
        self.lines.push(Line { defines, text: format!("let {bound} = {text}") });
        self.arrays.push((name, rank));
    }
    /// A form with its holes filled; nothing if there is no array for one.
    fn filled(&mut self, form: &str) -> Option<String> {
        self.taken.clear();
        self.alike = self.random.chance(0.6);
        let mut out = String::new();
        let mut rest = form;
        while let Some((before, after)) = rest.split_once('{') {
            let (hole, after) = after.split_once('}')?;
            out += before;
            out += &match hole {
                "s" => self.size(),
                "s*s" => format!("{} * {}", self.size(), self.size()),
                "t" => self.few(),
                "i" => self.indices(),
                rank => self.array(rank.parse().ok()?)?,
            };
            rest = after;
        }
        Some(out + rest)
    }
    fn array(&mut self, rank: usize) -> Option<String> {
        let fits: Vec<&String> = self.arrays.iter().filter(|(_, r)| *r == rank).map(|(v, _)| v).collect();
        if fits.is_empty() {
            return None;
        }
        // What was made last more often.
        let k = self.random.below(fits.len()).max(self.random.below(fits.len()));
        let mut v = fits[k].clone();
        match self.taken.iter().rev().find(|(_, r)| *r >= rank) {
            Some((before, r)) if self.alike && *r == rank => v.clone_from(before),
            Some((before, r)) if self.alike && rank > 0 && *r == rank + 1 => {
                return Some(format!("(u{rank} {before}[0])"));
            }
            _ => {}
        }
        self.taken.push((v.clone(), rank));
        Some(if rank == 0 || self.random.chance(0.2) { v } else { format!("(u{rank} {v})") })
    }
    fn indices(&mut self) -> String {
        if self.alike
            && let Some((v, _)) = self.taken.iter().find(|(_, r)| *r > 0)
        {
            return format!("(ui (map (% 3) (iota (length {v}))))");
        }
        match self.random.below(4) {
            0 => format!("(ui (iota {}))", self.size()),
            1 => "(ui (map (% 3) is))".into(),
            _ => "(ui is)".into(),
        }
    }
    fn few(&mut self) -> String {
        if self.random.chance(0.8) { self.random.below(4).to_string() } else { self.size() }
    }
    /// A size: a name or a number.
    fn size(&mut self) -> String {
        let known = self.random.choose(&self.sizes).clone();
        let arrays: Vec<&String> = self.arrays.iter().filter(|(_, r)| *r > 0).map(|(v, _)| v).collect();
        let length = format!("length {}", self.random.choose(&arrays));
        let other = self.random.choose(&self.sizes).clone();
        let text = match self.random.weighted(&[60.0, 12.0, 3.0, 5.0, 5.0, 4.0, 3.0, 3.0, 5.0]) {
            0 => return known,
            1 => return self.random.below(5).to_string(),
            2 => {
                let n = *self.random.choose(&HOSTILE);
                // (As a difference, since a minus sign may be taken as an operator.)
                if n >= 0 { format!("{n}") } else { format!("({} - {})", n + i64::MAX, i64::MAX) }
            }
            3 => length,
            4 => format!("{known} * {other}"),
            5 => format!("{known} + {other}"),
            6 => format!("{known} - {other}"),
            7 => format!("{known} / 2"),
            _ => format!("i64.min 3 (i64.max 0 {known})"),
        };
        let name = format!("s{}", self.lines.len());
        self.lines.push(Line { defines: vec![name.clone()], text: format!("let {name} = {text}") });
        self.sizes.push(name.clone());
        name
    }

    /// Arguments; with this probability each size is hostile.
    fn args(&mut self, hostility: f64) -> Vec<Value> {
        let (k, p, q, r) =
            (self.random.below(9), self.random.below(5), self.random.below(5), self.random.below(5));
        let floats = |n: usize| (0..n).map(|i| (i as f64 + 1.0) / 4.0).collect::<Vec<f64>>();
        let (xs, mat) = (floats(k), floats(p * q));
        let is: Vec<i64> = (0..r).map(|_| self.index(hostility / 4.0)).collect();
        let mut sizes = [(); 4].map(|()| self.index(hostility));
        if self.random.chance(0.5) {
            (sizes[0], sizes[1]) = self.factors(k as i64, hostility);
        }
        let mut out = vec![Value::f64s(&xs), Value::f64_array(&[p, q], &mat), Value::i64s(&is)];
        out.push(Value::f64(self.random.below(4) as f64));
        out.extend(sizes.map(Value::i64));
        out
    }
    fn index(&mut self, hostility: f64) -> i64 {
        if self.random.chance(hostility) {
            *self.random.choose(&HOSTILE)
        } else {
            self.random.below(4) as i64
        }
    }
    /// Two numbers whose product is this one; if they are hostile, in arithmetic that begins again at 2^64.
    fn factors(&mut self, product: i64, hostility: f64) -> (i64, i64) {
        if self.random.chance(hostility) {
            if self.random.chance(0.5) {
                // 2^shift divides what is added.
                let shift = self.random.range(1, 62);
                let other = 1i64 << shift;
                if product % other == 0 {
                    return (product / other + (1 << (64 - shift).min(62)), other);
                }
            }
            // An odd number has an inverse.
            let odd = 2 * self.random.below(9) as i64 + 3;
            let inverse = (0..6).fold(odd, |x, _| x.wrapping_mul(2i64.wrapping_sub(odd.wrapping_mul(x))));
            return (product.wrapping_mul(inverse), odd);
        }
        let divisors: Vec<i64> = (1..=product.max(1)).filter(|d| product % d == 0).collect();
        let d = *self.random.choose(&divisors);
        (product / d, d)
    }
}

/// Pieces of text that programs of all forms have: what stands between the first two holes of each.
pub fn parts_of_forms() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(_, form)| {
        let mut pieces = form.split(['{', '}']).step_by(2);
        pieces.find(|piece| piece.trim().len() > 2).unwrap_or_default()
    })
}
