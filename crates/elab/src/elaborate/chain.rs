//! Long chains of `else if`.
//!
//! A chain is nested as deeply as it is long, and each pass of the compiler costs the depth of every statement. A long one is made flat: the
//! number of the first condition that holds is found by halves, and then the arm of that number, by halves too. No arm is there twice, and
//! no condition is asked that the program would not ask. A run costs two comparisons more for each doubling of the length.

use super::Elaborator;
use pullback_front::typed::{self, ExpKind};
use pullback_lambda::Term;
use pullback_prim::{Op, ScalarValue};
use std::ops::Range;

/// The fewest conditions of a long chain.
const LONG: usize = 32;
/// The most conditions that stay nested where their number is found.
const NESTED: usize = 4;

impl<'s> Elaborator<'s, '_> {
    /// A choice, with all that follow it in its `else`.
    pub(super) fn if_exp(&mut self, first: &'s typed::Exp) -> Term {
        let (mut conditions, mut arms, mut last) = (Vec::new(), Vec::new(), first);
        while let ExpKind::If(c, yes, no) = &last.kind {
            conditions.push(&**c);
            arms.push(&**yes);
            last = no;
        }
        if conditions.len() < LONG {
            return self.if_here(first);
        }
        let found = self.first_true(&conditions, 0..conditions.len());
        let mut wraps = Vec::new();
        let case = self.named(found, "case", &mut wraps);
        let keys: Vec<ScalarValue> = (-1..conditions.len() as i64).map(ScalarValue::I64).collect();
        let body = self.halves(case, &keys, 0..keys.len(), &mut |e, k| match k.checked_sub(1) {
            Some(k) => e.exp(arms[k]),
            None => e.exp(last),
        });
        self.close(wraps, body)
    }

    fn if_here(&mut self, e: &'s typed::Exp) -> Term {
        let ExpKind::If(c, yes, no) = &e.kind else { return self.exp(e) };
        let c = self.exp(c);
        let yes = self.exp(yes);
        let no = self.exp(no);
        self.b.if_(c, yes, no)
    }

    /// The number of the first of these conditions that holds, or -1.
    fn first_true(&mut self, conditions: &[&'s typed::Exp], range: Range<usize>) -> Term {
        if range.len() <= NESTED {
            let asked: Vec<(Term, usize)> = range.map(|k| (self.exp(conditions[k]), k)).collect();
            let none = self.b.i64(-1);
            return asked.into_iter().rev().fold(none, |rest, (condition, k)| {
                let this = self.b.i64(k as i64);
                self.b.if_(condition, this, rest)
            });
        }
        let middle = range.start + range.len() / 2;
        let early = self.first_true(conditions, range.start..middle);
        let mut wraps = Vec::new();
        let early = self.named(early, "case", &mut wraps);
        let (value, zero) = (self.b.var(early), self.b.i64(0));
        let is_early = self.b.op2(Op::Le, zero, value);
        let value = self.b.var(early);
        let late = self.first_true(conditions, middle..range.end);
        let body = self.b.if_(is_early, value, late);
        self.close(wraps, body)
    }
}
