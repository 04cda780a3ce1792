//! Loops in any order: what they claim is shown for the code that the compiler makes, and wrong claims are not.
//!
//! The files of `order/` are small functions, right ones and wrong ones. Their first line is what is expected: how many claims are shown, and why others are not.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use crate::common::claims::{File, files};
use crate::common::compiled;
use pullback_kernel::verify::order::{Claims, Reason, look};
use pullback_kernel::{Ins, Module, Order, lower, print, read, size, walk};
use pullback_testkit::draws::draws;
use pullback_testkit::kernels::{Item, of_repository, of_seed};
use pullback_testkit::on_all_processors;
use std::collections::BTreeMap;

// --- small functions ---

#[test]
fn small_functions_claim_what_they_say() {
    let (mut right, mut wrong) = (0, BTreeMap::new());
    for File { path, module, expected } in files("order") {
        let claims = look(&module);
        let reasons = claims.open.iter().map(|open| format!("{:?}", open.reason)).collect();
        assert_eq!((claims.shown.len(), reasons), expected, "{path}: {:#?}", claims.open);
        right += usize::from(claims.open.is_empty());
        claims.open.iter().for_each(|open| *wrong.entry(open.reason).or_insert(0) += 1);
    }
    assert!(right > 15 && wrong.len() == 5, "{right} are right; {wrong:?}");
}

#[test]
fn what_is_not_shown_is_told() {
    let module = read(include_str!("order/wrong_next_element.kernel")).expect("a text");
    let claims = look(&module);
    let [open] = &claims.open[..] else { panic!("{claims:?}") };
    let text = "function f, loop of i_3 in any order: in memory of a_1 \
                x_5 = load(a_1, next_4) and store(a_1, i_3, x_5) may meet";
    assert_eq!(open.to_string(), text);
    assert_eq!(open.path, ["i_3 = for in any order(0i64, last_2)"]);
}

// --- programs ---

/// What was looked at.
#[derive(Default)]
struct Seen {
    modules: usize,
    /// Loops in any order.
    loops: usize,
    shown: usize,
    open: BTreeMap<Reason, Vec<String>>,
}

impl Seen {
    fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Seen {
        let mut seen = Seen::default();
        for item in items {
            let Some((module, _)) = item.lowered() else { continue };
            let claims = look(&module);
            seen.modules += 1;
            seen.loops += loops(&module);
            seen.shown += claims.shown.len();
            for open in claims.open {
                seen.open.entry(open.reason).or_default().push(format!("{}: {open}", item.what));
            }
        }
        seen
    }
    fn and(mut self, other: Seen) -> Seen {
        self.modules += other.modules;
        self.loops += other.loops;
        self.shown += other.shown;
        for (reason, open) in other.open {
            self.open.entry(reason).or_default().extend(open);
        }
        self
    }
    /// All together: at most one claim of 200 is not shown. Each of these is printed.
    fn check(all: Vec<Seen>) -> Seen {
        let seen = all.into_iter().fold(Seen::default(), Seen::and);
        let open: usize = seen.open.values().map(Vec::len).sum();
        println!(
            "{} modules with {} loops in any order: {} claims are shown, {open} are not",
            seen.modules, seen.loops, seen.shown
        );
        for (reason, open) in &seen.open {
            println!("{reason:?}: {}", open.len());
            open.iter().for_each(|text| println!("    {text}"));
        }
        assert!(200 * open <= seen.shown + open, "{open} claims are not shown");
        seen
    }
}

fn loops(module: &Module) -> usize {
    let mut count = 0;
    for f in module.functions.iter() {
        let is_any = |ins: &Ins| matches!(ins, Ins::For { order: Order::Any(_), .. });
        walk(&f.body, &mut |ins| count += usize::from(is_any(ins)));
    }
    count
}

#[test]
fn orders_of_programs_of_the_repository_are_shown() {
    let seen = Seen::check(on_all_processors(of_repository(), |item| Seen::of([item])));
    assert!(seen.modules > 900 && seen.shown > 4_000, "{} claims of {} modules", seen.shown, seen.modules);
    // Memory of the caller is not told apart; nothing else is left.
    let left: Vec<&Reason> = seen.open.keys().filter(|reason| **reason != Reason::Caller).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn orders_of_random_programs_are_shown() {
    let mut seeds = draws("order", (15, 60), 5);
    let all = on_all_processors(&mut seeds, |seed| Seen::of(&of_seed(seed)));
    let seen = Seen::check(all);
    assert!(seen.shown > 20 * seeds.drawn() as usize, "{} claims", seen.shown);
}

// --- what the lowering decides ---

/// The claims of a program, of which not one is open; in its code there is an `in any order` at least.
fn all_shown(text: &str) -> Claims {
    let (program, f) = compiled(text);
    let (module, _) = lower(&program, f).expect("native");
    let claims = look(&module);
    assert!(claims.open.is_empty(), "{}\n{}", claims.open[0], print(&module));
    claims
}

#[test]
fn bins_of_another_operation_than_addition_are_filled_in_order() {
    all_shown(
        "entry main [n] (is: [n]i64) (xs: [n]f64) : [8]f64 =
           reduce_by_index (replicate 8 1.0) (*) 1.0 is xs",
    );
}

#[test]
fn scattered_elements_are_written_in_order() {
    all_shown("entry main [n] (is: [n]i64) (xs: [n]f64) : [8]f64 = scatter (replicate 8 0.0) is xs");
}

#[test]
fn steps_whose_states_are_in_places_that_change_go_in_order() {
    let claims = all_shown(
        "entry main [n] (xs: [n]f64) (k: i64) : [n]f64 =
           loop ys = copy xs for _i < k do tabulate n (\\i -> ys[n - 1 - i] + ys[i])",
    );
    assert!(!claims.shown.is_empty());
}

#[test]
fn reductions_that_are_no_sums_stay_in_order_outside_of_maps() {
    let claims = all_shown(
        "entry main [n][m][k] (a: [k][n]f64) (b: [k][m]f64) : [n][m]f64 =
           map (\\x -> map (\\y -> reduce_comm f64.max f64.lowest (map2 (*) x y)) (transpose b)) (transpose a)",
    );
    assert!(!claims.shown.is_empty());
}

#[test]
fn elements_that_others_read_are_not_overwritten() {
    let claims = all_shown(
        "entry main [n] (xs: [n]f64) : [n]f64 =
           let ys = map (\\x -> x * x) xs in tabulate n (\\i -> ys[i] + ys[n - 1 - i])",
    );
    assert!(!claims.shown.is_empty());
    let claims = all_shown(
        "entry main [n] (xs: [n]f64) : [n]f64 =
           let ys = map (\\x -> x * x) xs in map2 (\\y i -> y + ys[n - 1 - i]) ys (iota n)",
    );
    assert!(!claims.shown.is_empty());
}

// --- cost ---

/// Kernel text whose registers are numbered as they come.
#[derive(Default)]
struct Text {
    text: String,
    next: usize,
}

impl Text {
    /// A line with a new register in place of `%`; its number.
    fn make(&mut self, line: &str) -> usize {
        self.text += &line.replace('%', &self.next.to_string());
        self.text.push('\n');
        self.next += 1;
        self.next - 1
    }
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }
    fn begin() -> Text {
        let mut text = Text::default();
        text.line("message_0: AssertFailed plain \"no\"");
        text.line("function f(n_0: i64, m_1: i64) -> () {");
        text.next = 2;
        text
    }
}

/// Loops one after the other: each makes an array of the one before.
fn loops_in_a_row(count: usize) -> String {
    let mut t = Text::begin();
    let mut from = t.make("a_%: pointer = alloc n_0 f64");
    for _ in 0..count {
        let to = t.make("a_%: pointer = alloc n_0 f64");
        let i = t.make("for i_%: i64 from 0i64 to n_0 in any order {");
        let x = t.make(&format!("x_%: f64 = a_{from}[i_{i}]"));
        t.line(&format!("a_{to}[i_{i}]: f64 = x_{x}\n}}"));
        from = to;
    }
    t.text + "}"
}

/// Loops inside of one: each writes a part of its row.
fn loops_in_a_loop(count: usize) -> String {
    let mut t = Text::begin();
    let row = t.make(&format!("row_%: i64 = mul.i64({count}i64, m_1)"));
    let all = t.make(&format!("all_%: i64 = mul.i64(n_0, row_{row})"));
    let a = t.make(&format!("a_%: pointer = alloc all_{all} f64"));
    let i = t.make("for i_%: i64 from 0i64 to n_0 in any order {");
    let start = t.make(&format!("start_%: i64 = mul.i64(i_{i}, row_{row})"));
    for k in 0..count {
        let skip = t.make(&format!("skip_%: i64 = mul.i64({k}i64, m_1)"));
        let at = t.make(&format!("at_%: i64 = add.i64(start_{start}, skip_{skip})"));
        let j = t.make("for j_%: i64 from 0i64 to m_1 {");
        let place = t.make(&format!("place_%: i64 = add.i64(at_{at}, j_{j})"));
        t.line(&format!("a_{a}[place_{place}]: f64 = 1.0f64\n}}"));
    }
    t.text + "}\n}"
}

/// Indices in one loop, about each of which the program is asked.
fn checks_in_a_loop(count: usize) -> String {
    let mut t = Text::begin();
    let all = t.make("all_%: i64 = mul.i64(n_0, m_1)");
    let a = t.make(&format!("a_%: pointer = alloc all_{all} f64"));
    let places = t.make("p_%: pointer = alloc n_0 i64");
    let i = t.make("for i_%: i64 from 0i64 to n_0 in any order {");
    let start = t.make(&format!("start_%: i64 = mul.i64(i_{i}, m_1)"));
    for _ in 0..count {
        let k = t.make(&format!("k_%: i64 = p_{places}[i_{i}]"));
        let below = t.make(&format!("below_%: bool = lt.i64(k_{k}, 0i64)"));
        let above = t.make(&format!("above_%: bool = le.i64(m_1, k_{k})"));
        let outside = t.make(&format!("outside_%: bool = or.bool(below_{below}, above_{above})"));
        t.line(&format!("fail if outside_{outside}: message_0 ()"));
        let at = t.make(&format!("at_%: i64 = add.i64(start_{start}, k_{k})"));
        t.line(&format!("a_{a}[at_{at}]: f64 = 1.0f64"));
    }
    t.text + "}\n}"
}

/// Texts of a shape, as long as one likes.
type Family = (&'static str, fn(usize) -> String);

fn instructions(module: &Module) -> usize {
    module.functions.iter().map(|f| size(&f.body)).sum()
}

#[test]
fn work_grows_with_the_code() {
    let families: [Family; 3] = [
        ("loops in a row", loops_in_a_row),
        ("loops in a loop", loops_in_a_loop),
        ("checks in a loop", checks_in_a_loop),
    ];
    for (name, family) in families {
        let code = |count: usize| read(&family(count)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let each = instructions(&code(100)) / 100;
        let [short, long] = [1_000, 30_000].map(|length| {
            let module = code(length / each);
            let claims = look(&module);
            assert!(claims.open.is_empty() && !claims.shown.is_empty(), "{name}: {:?}", claims.open.first());
            (instructions(&module), claims.work as f64 / instructions(&module) as f64)
        });
        println!("{name}: {short:.1?} and {long:.1?} instructions and work for each");
        assert!(long.1 <= 1.5 * short.1, "{name}: {short:?}, {long:?}");
    }
}
