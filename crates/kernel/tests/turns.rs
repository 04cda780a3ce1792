//! States of loops that are what others were one or several iterations ago: they are not copied, and states that change places
//! are copied before they are overwritten.

#[path = "common/scheduled.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod scheduled;

use crate::common::compiled;
use crate::common::counted::{copies, inside};
use crate::common::results;
use pullback_core::Value;
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::{Ins, lower, print};
use scheduled::numbers;

/// A loop over some states of `n` numbers: their next values, and how many arrays an iteration copies (in the loop; if there is
/// no array to copy, in the lowered code).
struct Case {
    states: &'static [&'static str],
    next: &'static str,
    copies: usize,
}

/// `new` reads all its operands at several places, so that it is made in memory of its own.
const CASES: &[Case] = &[
    Case { states: &["u", "v"], next: "(new u v, u)", copies: 0 },
    Case { states: &["v", "u"], next: "(u, new u v)", copies: 0 },
    Case { states: &["u", "v", "w"], next: "(new u w, u, v)", copies: 0 },
    Case { states: &["w", "u", "v"], next: "(v, new w v, u)", copies: 0 },
    Case { states: &["u", "v", "a", "b"], next: "(new u b, u, new a v, a)", copies: 0 },
    // The second one that follows the same state has memory of its own.
    Case { states: &["u", "v", "w"], next: "(new v w, u, u)", copies: 1 },
    // What a state was is written over in the iteration in which it is needed last.
    Case { states: &["u", "v"], next: "let t = v with [i % n] = 2.5 in (new u t, u)", copies: 0 },
    Case { states: &["u", "v"], next: "let t = copy u with [i % n] = 2.5 in (new t v, u)", copies: 1 },
    // Nothing is made anew: each is copied once, and one of a circle out of the way.
    Case { states: &["u", "v"], next: "(v, u)", copies: 3 },
    Case { states: &["u", "v", "w"], next: "(v, w, u)", copies: 4 },
    Case { states: &["u", "v", "w"], next: "(v, w, copy w with [i % n] = 1.5)", copies: 4 },
    Case { states: &["u", "v"], next: "(map (* 0.5) v, u)", copies: 0 },
    // What goes out of the way is copied by a loop, element by element.
    Case { states: &["u", "v"], next: "(reverse v, u)", copies: 2 },
    // Each may be what either was: both go out of the way.
    Case {
        states: &["u", "v"],
        next: "(if i % 2 == 0 then u else v, if i % 3 == 0 then v else u)",
        copies: 4,
    },
];

impl Case {
    /// `size`: the sizes are this number, else a parameter.
    fn text(&self, size: Option<i64>) -> String {
        let states = self.states.join(", ");
        let size = size.map_or("n".to_string(), |n| format!("{n}"));
        let sizes = if size == "n" { "[n]" } else { "" };
        let params: String = self.states.iter().map(|s| format!(" ({s}: [{size}]f64)")).collect();
        let types: Vec<String> = self.states.iter().map(|_| format!("[{size}]f64")).collect();
        format!(
            "def new [n] (a: [n]f64) (b: [n]f64) : [n]f64 =
               map (\\i -> a[(i + 1) % n] - b[i / 2] + 0.25 * a[i]) (iota n)
             entry main {sizes} (steps: i64){params} : ({}) =
               let n = length {}
               in loop ({states}) for i < steps do {}",
            types.join(", "),
            self.states[0],
            self.next
        )
    }
    fn args(&self, n: usize, steps: i64) -> Vec<Value> {
        let state = |k: usize| Value::f64s(&numbers(n * (k + 1))[n * k..]);
        std::iter::once(Value::i64(steps)).chain((0..self.states.len()).map(state)).collect()
    }
}

#[test]
fn states_of_before_have_the_values_of_the_interpreter() {
    for case in CASES {
        for (size, n) in [(None, 1), (None, 5), (None, 70), (Some(5), 5), (Some(70), 70)] {
            let text = case.text(size);
            let program = compiled(&text);
            for steps in 0..8 {
                let args = case.args(n, steps);
                let expected = Compiled::new(&program.0).run(program.1, &args, &Options::default());
                let expected = expected.expect("it runs").results;
                for (part, lanes) in [(64, 0), (64, 2), (1, 8)] {
                    let found = results(&program, &args, part, lanes);
                    assert_eq!(found, expected, "{steps} steps, {lanes} lanes: {text}");
                }
            }
        }
    }
}

#[test]
fn states_of_before_are_not_copied() {
    for case in CASES {
        let text = case.text(None);
        let (program, f) = compiled(&text);
        let (module, id) = lower(&program, f).expect("native");
        // The states of the loop begin as copies of the arguments.
        let f = &module.functions[id];
        let steps = f.body.iter().find_map(|ins| match ins {
            Ins::For { i, body, .. } if f.regs[*i].hint == "i" => Some(body),
            _ => None,
        });
        let found = inside(steps.expect("a loop"), copies);
        assert_eq!(found, case.copies, "{text}\n{}", print(&module));
    }
}
