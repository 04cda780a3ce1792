//! The grammar of small programs with loops, and all its terms of a size.
//!
//! ```text
//! program ::= loop states for i < n do lets; s := sin (s + read); next            (in a frame)
//! a, b    ::= name                          an input (x, w), a state, what a `let` or an inner loop binds
//!           | rows[i mod 4] | cols[.., i mod 4] | wide[i ..]                      parts of inputs
//!           | fixed | replicate n 0.3        arrays that do not depend on the inputs, made before the loop or here
//!           | m[i mod 4] | the i-th window of m, flat                             parts of a matrix
//!           | match o of #some u -> u | #none -> a
//!           | if c then a else b
//!           | map (\e -> sin (e + s)) a     an array that is made
//!           | a with [i mod n] = s
//!           | a[::-1]                       a slice of all of it
//!           | loop u = a for j < t do b     b may mention u
//! m       ::= name | rows | cols, transposed | the matrix of flat
//!           | if c then m else m | map (map (\e -> sin (e + s))) m | m with [i mod 4, i mod n] = s | m with [i mod 4] = a
//!           | loop u = m for j < t do m
//! o       ::= name | #some a | #none | if c then o else o | loop u = o for j < t do o
//! c       ::= i is even | i = n / 2 | s < 0.5
//! t       ::= 2 | i mod 2
//! read    ::= a[i mod n] | the sum of a map of one lane that reads a there | the sum of a gather of it
//!           | such a map, if the counter is even | the sum of a
//!           | such a map times the sum of the sines of the last name in scope, if the counter is even
//!           | such a map in a map of one lane that overwrites the element first, if the counter is even (in random programs)
//! frame   ::= for | while | the loop of t iterations in one of n | in a map of three lanes
//!           | a function that calls itself instead, last, before it reads an element of what it gets back (once or in a map of
//!             three lanes), before it also overwrites an element of that and returns it backwards, or before it returns one of
//!             the arrays that it gets back for all of its sort
//!           | two such functions that call each other
//! ```
//!
//! In random programs, two lets one after the other that choose by the same condition may be one branch with two results, and two that
//! overwrite may be one histogram of two arrays. `a with [..] = s` may overwrite a slice of one element, scatter it, or add it by a histogram.
//!
//! All vectors have n elements, all matrices four rows of n. The size of a program is the number of its terms, conditions and reads
//! not counted. A name is a number: the position in the list of what is in scope of its sort, outermost first.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sort {
    /// n floats.
    Vector,
    /// Four rows of n floats.
    Matrix,
    /// A vector, or none.
    Option,
}

/// The sorts.
pub const SORTS: [Sort; 3] = [Sort::Vector, Sort::Matrix, Sort::Option];

/// A term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    /// What is in scope of a sort at this position.
    Name(Sort, usize),
    /// A row of an input.
    Row,
    /// A column of an input.
    Column,
    /// Part of a longer input.
    Slice,
    /// Numbers that do not depend on the inputs, made once.
    Fixed,
    /// Such numbers, made here.
    New,
    /// A row of a matrix.
    RowOf(Arc<Expr>),
    /// n elements of a matrix, whose rows follow each other.
    Window(Arc<Expr>),
    /// What is in an option, or else the other.
    Get(Arc<Expr>, Arc<Expr>),
    /// An input.
    Rows,
    /// An input, transposed.
    Cols,
    /// An input, in rows.
    Flat,
    /// With one row overwritten.
    WithRow(Arc<Expr>, Arc<Expr>),
    /// An option with a vector.
    Some(Arc<Expr>),
    /// An option without.
    None,
    /// One of two.
    If(Cond, Arc<Expr>, Arc<Expr>),
    /// New numbers.
    Map(Arc<Expr>),
    /// With one element overwritten.
    With(Arc<Expr>),
    /// A slice of all of it, backwards.
    Back(Arc<Expr>),
    /// The last state of a loop: its first state, and the next one.
    Loop(Trips, Arc<Expr>, Arc<Expr>),
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cond {
    /// The counter is even.
    Even,
    /// The counter is half of the iterations.
    Once,
    /// The sum so far is small.
    Small,
}

/// How often an inner loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trips {
    /// Twice.
    Two,
    /// Once if the counter is odd, else not at all.
    Odd,
}

/// How an iteration looks at a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Read {
    /// One element.
    Element,
    /// One element, from inside a map of one lane.
    Lane,
    /// One element, gathered.
    Gather,
    /// As `Lane`, if the counter is even.
    Chosen,
    /// As `Chosen`, times the sum of the sines of the last vector in scope.
    Beside,
    /// As `Lane`, from inside a map of one lane that overwrites the element first, if the counter is even.
    Written,
    /// All elements.
    Sum,
}

/// What is around the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frame {
    /// Nothing; the loop counts.
    For,
    /// Nothing; the loop has a condition.
    While,
    /// A loop of n iterations; the loop itself is short, and its states start anew.
    Nested(Trips),
    /// A map.
    Lanes,
    /// A function that calls itself instead of a loop.
    Calls(Calls),
}

/// What a function does with what it gets back from itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Calls {
    /// Returns it.
    Last,
    /// Reads an element of each vector.
    Inner,
    /// As `Inner`; the function is called in a map.
    Lanes,
    /// As `Inner`; there are two functions that call each other.
    Mutual,
    /// As `Inner`, and overwrites an element of each array, which it returns backwards.
    Writes,
    /// As `Inner`, and returns the first array of each sort for all of that sort.
    Same,
}

/// All of them.
pub const CALLS: [Calls; 6] =
    [Calls::Last, Calls::Inner, Calls::Lanes, Calls::Mutual, Calls::Writes, Calls::Same];

/// What states start as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Start {
    /// Different inputs.
    Inputs,
    /// All the same input.
    Same,
    /// Different inputs; all states are one product.
    Product,
    /// Vectors as the array that does not depend on the inputs.
    Fixed,
}

/// By what an array is overwritten, at one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Writes {
    /// An element.
    Element,
    /// A slice of one element; of a matrix, of one row.
    Slice,
    /// A scatter of as much.
    Scatter,
    /// A histogram of as much.
    Histogram,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// What is around the loop.
    pub frame: Frame,
    /// What the states start as.
    pub start: Start,
    /// The sorts of the states.
    pub states: Vec<Sort>,
    /// Vectors with names of their own, in every iteration.
    pub lets: Vec<Arc<Expr>>,
    /// Whether two lets one after the other that choose by the same condition are one branch, and two that overwrite one histogram.
    pub joined: bool,
    /// How arrays are overwritten.
    pub writes: Writes,
    /// How the iteration reads, and what.
    pub read: (Read, Arc<Expr>),
    /// The next states.
    pub next: Vec<Arc<Expr>>,
}

impl Term {
    /// All its lets, what is read, and the next states.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Expr>> {
        self.lets.iter().chain(&self.next).chain([&self.read.1])
    }
}

/// How many names of each sort are in scope.
pub type Names = [usize; 3];

/// The inputs that have names: `x` and `w`.
pub const INPUTS: Names = [2, 0, 0];

const CONDS: [Cond; 3] = [Cond::Even, Cond::Once, Cond::Small];
const TRIPS: [Trips; 2] = [Trips::Two, Trips::Odd];

/// The scope with one more name.
pub fn with_name(mut names: Names, sort: Sort) -> Names {
    names[sort as usize] += 1;
    names
}

type Terms = Arc<[Arc<Expr>]>;

/// Tables of terms that are asked for again.
#[derive(Debug, Default)]
pub struct Tables {
    known: BTreeMap<(Sort, usize, Names), Terms>,
}

impl Tables {
    /// All terms of a sort and size with so many names in scope.
    pub fn of(&mut self, sort: Sort, size: usize, names: Names) -> Terms {
        if size == 0 {
            return Arc::from([]);
        }
        if let Some(known) = self.known.get(&(sort, size, names)) {
            return known.clone();
        }
        let mut out: Vec<Expr> = Vec::new();
        if size == 1 {
            out.extend((0..names[sort as usize]).map(|k| Expr::Name(sort, k)));
            out.extend(match sort {
                Sort::Vector => vec![Expr::Row, Expr::Column, Expr::Slice, Expr::Fixed, Expr::New],
                Sort::Matrix => vec![Expr::Rows, Expr::Cols, Expr::Flat],
                Sort::Option => vec![Expr::None],
            });
        }
        self.alone(sort, size, names, &mut out);
        for left in 1..size.saturating_sub(1) {
            self.pairs(sort, (left, size - 1 - left), names, &mut out);
        }
        let out: Terms = out.into_iter().map(Arc::new).collect();
        self.known.insert((sort, size, names), out.clone());
        out
    }
    /// Terms with one part.
    fn alone(&mut self, sort: Sort, size: usize, names: Names, out: &mut Vec<Expr>) {
        if sort != Sort::Option {
            for a in self.of(sort, size - 1, names).iter() {
                out.push(Expr::Map(a.clone()));
                out.push(Expr::With(a.clone()));
                out.push(Expr::Back(a.clone()));
            }
        }
        match sort {
            // Matrices that are inputs have vectors of their own.
            Sort::Vector if names[Sort::Matrix as usize] > 0 || size > 2 => {
                for m in self.of(Sort::Matrix, size - 1, names).iter() {
                    out.push(Expr::RowOf(m.clone()));
                    out.push(Expr::Window(m.clone()));
                }
            }
            Sort::Option => {
                out.extend(self.of(Sort::Vector, size - 1, names).iter().map(|a| Expr::Some(a.clone())));
            }
            Sort::Vector | Sort::Matrix => {}
        }
    }
    /// Terms with two parts of these sizes.
    fn pairs(&mut self, sort: Sort, (left, right): (usize, usize), names: Names, out: &mut Vec<Expr>) {
        let (a, b) = (self.of(sort, left, names), self.of(sort, right, names));
        let inner = self.of(sort, right, with_name(names, sort));
        for a in a.iter() {
            for b in b.iter().filter(|b| *b != a) {
                out.extend(CONDS.map(|c| Expr::If(c, a.clone(), b.clone())));
            }
            for b in inner.iter() {
                out.extend(TRIPS.map(|t| Expr::Loop(t, a.clone(), b.clone())));
            }
        }
        let vectors = self.of(Sort::Vector, right, names);
        match sort {
            Sort::Vector if names[Sort::Option as usize] > 0 => {
                for o in self.of(Sort::Option, left, names).iter() {
                    out.extend(vectors.iter().map(|a| Expr::Get(o.clone(), a.clone())));
                }
            }
            Sort::Matrix => {
                for m in a.iter() {
                    out.extend(vectors.iter().map(|a| Expr::WithRow(m.clone(), a.clone())));
                }
            }
            Sort::Vector | Sort::Option => {}
        }
    }
}

/// The sorts of the states of programs, with the largest size of a program relative to the others.
const STATES: [(&[Sort], usize); 6] = [
    (&[], 0),
    (&[Sort::Vector], 0),
    (&[Sort::Vector, Sort::Vector], 0),
    (&[Sort::Matrix], 1),
    (&[Sort::Option], 1),
    (&[Sort::Matrix, Sort::Vector], 1),
];

/// Calls `f` with every program of at most `largest` terms in its lets, its read and its next states (one less if not all states are
/// vectors); in a fixed order.
pub fn for_each_program(largest: usize, f: &mut dyn FnMut(Term)) {
    let mut tables = Tables::default();
    let frames = [
        Frame::For,
        Frame::While,
        Frame::Nested(Trips::Two),
        Frame::Nested(Trips::Odd),
        Frame::Lanes,
        Frame::Calls(Calls::Last),
        Frame::Calls(Calls::Inner),
        Frame::Calls(Calls::Lanes),
        Frame::Calls(Calls::Mutual),
        Frame::Calls(Calls::Writes),
        Frame::Calls(Calls::Same),
    ];
    for size in 1..=largest {
        for (states, less) in STATES {
            if size + less > largest {
                continue;
            }
            for lets in 0..=1 {
                for frame in frames {
                    let twice = states.iter().enumerate().any(|(k, sort)| states[..k].contains(sort));
                    if frame == Frame::Calls(Calls::Same) && !twice {
                        continue;
                    }
                    // Without states other ways to repeat are nothing new.
                    if states.is_empty() && !matches!(frame, Frame::For | Frame::Lanes) {
                        continue;
                    }
                    let starts: &[Start] = match states {
                        [Sort::Vector, Sort::Vector] => &[Start::Inputs, Start::Same, Start::Product],
                        [Sort::Vector] => &[Start::Inputs, Start::Fixed],
                        _ => &[Start::Inputs],
                    };
                    for &start in starts {
                        if start == Start::Product && matches!(frame, Frame::While | Frame::Nested(_)) {
                            continue;
                        }
                        for sizes in splits(size, lets + 1 + states.len()) {
                            each_of(&mut tables, (frame, start), (states, lets), &sizes, f);
                        }
                    }
                }
            }
        }
    }
}

/// The ways to write `size` as a sum of so many positive numbers.
fn splits(size: usize, parts: usize) -> Vec<Vec<usize>> {
    if parts == 1 {
        return if size > 0 { vec![vec![size]] } else { Vec::new() };
    }
    let mut out = Vec::new();
    for first in 1..size {
        for mut rest in splits(size - first, parts - 1) {
            rest.insert(0, first);
            out.push(rest);
        }
    }
    out
}

/// Every program with parts of these sizes: lets, then what is read, then the next states.
fn each_of(
    tables: &mut Tables,
    (frame, start): (Frame, Start),
    (states, lets): (&[Sort], usize),
    sizes: &[usize],
    f: &mut dyn FnMut(Term),
) {
    let mut names = states.iter().fold(INPUTS, |names, sort| with_name(names, *sort));
    let first_let = names[0];
    let mut columns: Vec<Terms> = Vec::new();
    for (k, size) in sizes.iter().enumerate() {
        let sort = if k <= lets { Sort::Vector } else { states[k - lets - 1] };
        columns.push(tables.of(sort, *size, names));
        if k < lets {
            names = with_name(names, Sort::Vector);
        }
    }
    if columns.iter().any(|c| c.is_empty()) {
        return;
    }
    let mut at = vec![0; columns.len()];
    loop {
        let here: Vec<Arc<Expr>> = columns.iter().zip(&at).map(|(c, k)| c[*k].clone()).collect();
        // What a `let` binds is used: otherwise the program is a smaller one.
        let used = (0..lets)
            .all(|k| here[k + 1..].iter().any(|a| mentions(a, &Expr::Name(Sort::Vector, first_let + k))));
        if used {
            // Who makes an array may as well look at all of it.
            let is_made = matches!(*here[lets], Expr::Map(_));
            let reads: &[Read] = if is_made {
                &[Read::Element, Read::Sum]
            } else {
                &[Read::Element, Read::Lane, Read::Gather, Read::Chosen, Read::Beside]
            };
            for &read in reads {
                f(Term {
                    frame,
                    start,
                    states: states.to_vec(),
                    lets: here[..lets].to_vec(),
                    joined: false,
                    writes: Writes::Element,
                    read: (read, here[lets].clone()),
                    next: here[lets + 1..].to_vec(),
                });
            }
        }
        let Some(k) = (0..at.len()).rev().find(|k| at[*k] + 1 < columns[*k].len()) else { return };
        at[k] += 1;
        at[k + 1..].iter_mut().for_each(|k| *k = 0);
    }
}

impl Expr {
    /// Whether it or one of its parts is such.
    pub fn any(&self, found: &dyn Fn(&Expr) -> bool) -> bool {
        found(self) || self.parts().into_iter().any(|a| a.any(found))
    }
    /// Its parts.
    pub fn parts(&self) -> Vec<&Arc<Expr>> {
        match self {
            Expr::Name(..)
            | Expr::Row
            | Expr::Column
            | Expr::Slice
            | Expr::Fixed
            | Expr::New
            | Expr::Rows
            | Expr::Cols
            | Expr::Flat
            | Expr::None => Vec::new(),
            Expr::RowOf(a)
            | Expr::Window(a)
            | Expr::Some(a)
            | Expr::Map(a)
            | Expr::With(a)
            | Expr::Back(a) => vec![a],
            Expr::Get(a, b) | Expr::WithRow(a, b) | Expr::If(_, a, b) | Expr::Loop(_, a, b) => vec![a, b],
        }
    }
}

/// Whether a term uses a name.
pub fn mentions(a: &Expr, name: &Expr) -> bool {
    a == name || a.parts().into_iter().any(|a| mentions(a, name))
}
