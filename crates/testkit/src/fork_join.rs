//! Random programs that fork and join, as text of lambda: forks in forks, one after the other, in branches and in loops; values from before a fork are used on both sides, values
//! of one fork on both sides of the next.

use crate::rng::Rng;
use pullback_core::Value;

/// A program with the function `f (x: f64, y: f64): f64`, and arguments. `size`: about how many operations.
pub fn program(seed: u64, size: usize) -> (String, Vec<Value>) {
    let mut maker = Maker { rng: Rng::new(seed), next: 0, vars: vec!["x".into(), "y".into()] };
    let body = maker.expression(size);
    let number = |rng: &mut Rng| Value::f64((rng.below(31) as f64 - 15.0) / 8.0);
    let args = vec![number(&mut maker.rng), number(&mut maker.rng)];
    (format!("def f (x: f64, y: f64): f64 = {body}"), args)
}

struct Maker {
    rng: Rng,
    next: usize,
    /// Numbers in scope.
    vars: Vec<String>,
}

impl Maker {
    fn var(&mut self) -> String {
        // The last ones more often.
        let n = self.vars.len();
        let k = if self.rng.chance(0.5) { n - 1 - self.rng.below(n.min(3)) } else { self.rng.below(n) };
        self.vars[k].clone()
    }
    fn fresh(&mut self, letter: char) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }
    /// A part with what is in scope now.
    fn part(&mut self, size: usize) -> String {
        let before = self.vars.len();
        let text = self.expression(size);
        self.vars.truncate(before);
        text
    }
    fn expression(&mut self, size: usize) -> String {
        let mut text = String::new();
        let mut left = size;
        while left > 0 {
            let v = self.fresh('v');
            let value = match self.rng.below(10) {
                0..=3 => {
                    left -= 1;
                    self.operation()
                }
                4..=7 if left > 1 => {
                    let ways = 2 + self.rng.below(2);
                    let part = (left / 3).min(left - 1) / 2 + 1;
                    let parts: Vec<String> = (0..ways).map(|_| self.part(part - 1)).collect();
                    left -= part.min(left);
                    let p = self.fresh('p');
                    text += &format!("let {p} = par({}) in ", parts.join(", "));
                    let last = format!("mul.f64(0.5f64, {p}.{})", ways - 1);
                    format!("add.f64({p}.0, {last})")
                }
                8 if left > 2 => {
                    let part = left / 3;
                    let (a, b, c) = (self.var(), self.part(part), self.part(part));
                    left -= part.max(1);
                    format!("(if lt.f64({a}, 0.25f64) then {b} else {c})")
                }
                9 if left > 2 => {
                    let part = left / 3;
                    let (state, i, first) = (self.fresh('s'), self.fresh('i'), self.var());
                    self.vars.push(state.clone());
                    let body = self.part(part);
                    self.vars.pop();
                    left -= part.max(1);
                    format!("(loop {state} = {first} for {i} < 2i64 do {body})")
                }
                _ => {
                    left -= 1;
                    self.operation()
                }
            };
            text += &format!("let {v} = {value} in ");
            self.vars.push(v);
        }
        text + &self.var()
    }
    fn operation(&mut self) -> String {
        let (a, b) = (self.var(), self.var());
        match self.rng.below(5) {
            0 => format!("add.f64({a}, {b})"),
            1 => format!("sub.f64({a}, mul.f64({b}, 0.75f64))"),
            2 => format!("sin.f64(mul.f64({a}, {b}))"),
            3 => format!("neg.f64({a})"),
            _ => format!(
                "(let t = add.f64({a}, {b}) in mul.f64({a}, div.f64(1.0f64, add.f64(mul.f64(t, t), 2.0f64))))"
            ),
        }
    }
}
