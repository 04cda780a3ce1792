//! Random programs of the grammar, larger than those that can be enumerated.

use super::terms::{
    CALLS, Cond, Expr, Frame, INPUTS, Names, Read, SORTS, Sort, Start, Term, Trips, Writes, with_name,
};
use crate::rng::Rng;
use std::sync::Arc;

/// The program of a seed.
pub fn draw(seed: u64) -> Term {
    let mut rng = Rng::new(seed ^ 0x10CA_7105);
    let frame = match rng.weighted(&[3.0, 1.0, 2.0, 1.0, 1.0]) {
        0 => Frame::For,
        1 => Frame::While,
        2 => Frame::Nested(trips(&mut rng)),
        3 => Frame::Lanes,
        _ => Frame::Calls(*rng.choose(&CALLS)),
    };
    let mut states: Vec<Sort> = (0..rng.weighted(&[0.5, 3.0, 3.0, 1.5])).map(|_| sort(&mut rng)).collect();
    states.sort_unstable();
    let vectors = states.len() > 1 && states.iter().all(|s| *s == Sort::Vector);
    let start = match rng.below(5) {
        0 => Start::Same,
        4 => Start::Fixed,
        1 if vectors && !matches!(frame, Frame::While | Frame::Calls(_)) => Start::Product,
        _ => Start::Inputs,
    };
    let mut names = states.iter().fold(INPUTS, |names, sort| with_name(names, *sort));
    let mut lets = Vec::new();
    for _ in 0..rng.weighted(&[1.0, 1.0, 0.7, 0.4]) {
        let fuel = rng.range(1, 5);
        lets.push(expr(&mut rng, Sort::Vector, fuel, names));
        names = with_name(names, Sort::Vector);
    }
    let joined = rng.chance(0.3);
    if joined && rng.chance(0.4) {
        for _ in 0..2 {
            let fuel = rng.range(1, 3);
            lets.push(Arc::new(Expr::With(expr(&mut rng, Sort::Vector, fuel, names))));
        }
        names = with_name(with_name(names, Sort::Vector), Sort::Vector);
    } else if joined {
        let c = cond(&mut rng);
        for _ in 0..2 {
            let mut arm = || {
                let fuel = rng.range(1, 3);
                expr(&mut rng, Sort::Vector, fuel, names)
            };
            lets.push(Arc::new(Expr::If(c, arm(), arm())));
        }
        names = with_name(with_name(names, Sort::Vector), Sort::Vector);
    }
    // A new array, one that may be it, and a branch that reads both.
    if rng.chance(0.15) {
        let made = Arc::new(Expr::Name(Sort::Vector, names[0]));
        lets.push(Arc::new(Expr::Map(expr(&mut rng, Sort::Vector, 2, names))));
        let other = expr(&mut rng, Sort::Vector, 2, names);
        lets.push(Arc::new(Expr::If(cond(&mut rng), made, other)));
        names = with_name(with_name(names, Sort::Vector), Sort::Vector);
    }
    let beside = lets.len() > 1 && matches!(&*lets[lets.len() - 2], Expr::Map(_)) && rng.chance(0.7);
    let fuel = rng.range(1, 4);
    let read = (
        *rng.choose(&[Read::Element, Read::Lane, Read::Gather, Read::Chosen, Read::Beside, Read::Written]),
        expr(&mut rng, Sort::Vector, fuel, names),
    );
    let read = match beside {
        true => (Read::Beside, Arc::new(Expr::Name(Sort::Vector, names[0] - 2))),
        false => read,
    };
    let next = states
        .iter()
        .map(|sort| {
            let fuel = rng.range(1, 6);
            expr(&mut rng, *sort, fuel, names)
        })
        .collect();
    // Numbers of its own: what else is drawn does not depend on it.
    let mut other = Rng::new(seed ^ 0x0077_1275);
    let writes = match other.weighted(&[7.0, 1.0, 1.0, 1.0]) {
        0 => Writes::Element,
        1 => Writes::Slice,
        2 => Writes::Scatter,
        _ => Writes::Histogram,
    };
    Term { frame, start, states, lets, joined, writes, read, next }
}

/// The program of a seed with a function that calls itself.
pub fn draw_recursive(seed: u64) -> Term {
    let mut term = draw(seed);
    if !matches!(term.frame, Frame::Calls(_)) {
        term.frame = Frame::Calls(*Rng::new(seed ^ 0x0CA1_1ED5).choose(&CALLS));
        // Its states are arguments, each for itself.
        if term.start == Start::Product {
            term.start = Start::Inputs;
        }
    }
    term
}

fn cond(rng: &mut Rng) -> Cond {
    *rng.choose(&[Cond::Even, Cond::Once, Cond::Small])
}
fn trips(rng: &mut Rng) -> Trips {
    *rng.choose(&[Trips::Two, Trips::Odd])
}
fn sort(rng: &mut Rng) -> Sort {
    SORTS[rng.weighted(&[4.0, 1.0, 1.0])]
}

/// A term of a sort of about so many terms.
fn expr(rng: &mut Rng, sort: Sort, fuel: usize, names: Names) -> Arc<Expr> {
    let known = names[sort as usize];
    if fuel < 2 {
        if known > 0 && rng.chance(0.75) {
            // What was bound last is most probably not used yet.
            let k = if rng.chance(0.3) { known - 1 } else { rng.below(known) };
            return Arc::new(Expr::Name(sort, k));
        }
        return Arc::new(match sort {
            Sort::Vector => {
                rng.choose(&[Expr::Row, Expr::Column, Expr::Slice, Expr::Fixed, Expr::New]).clone()
            }
            Sort::Matrix => rng.choose(&[Expr::Rows, Expr::Cols, Expr::Flat]).clone(),
            Sort::Option => {
                let some = Expr::Some(expr(rng, Sort::Vector, 1, names));
                if rng.chance(0.7) { some } else { Expr::None }
            }
        });
    }
    let left = rng.range(1, (fuel - 1).max(1));
    let right = (fuel - 1).saturating_sub(left).max(1);
    let one = fuel - 1;
    Arc::new(match (sort, rng.weighted(&[4.0, 1.5, 1.5, 1.5, 1.5, 0.7])) {
        (_, 0) => {
            let c = cond(rng);
            Expr::If(c, expr(rng, sort, left, names), expr(rng, sort, right, names))
        }
        (_, 1) => {
            let inner = with_name(names, sort);
            Expr::Loop(trips(rng), expr(rng, sort, left, names), expr(rng, sort, right, inner))
        }
        (Sort::Option, _) => Expr::Some(expr(rng, Sort::Vector, one, names)),
        (_, 2) => Expr::Map(expr(rng, sort, one, names)),
        (_, 3) => Expr::With(expr(rng, sort, one, names)),
        (_, 5) => Expr::Back(expr(rng, sort, one, names)),
        (Sort::Matrix, _) => {
            Expr::WithRow(expr(rng, sort, left, names), expr(rng, Sort::Vector, right, names))
        }
        (Sort::Vector, _) => match rng.below(3) {
            0 => Expr::RowOf(expr(rng, Sort::Matrix, one, names)),
            1 => Expr::Window(expr(rng, Sort::Matrix, one, names)),
            _ => Expr::Get(expr(rng, Sort::Option, left, names), expr(rng, sort, right, names)),
        },
    })
}
