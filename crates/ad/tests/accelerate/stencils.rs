//! Stencils: in the language they are a `generate` that reads neighbours. Expected numbers are calculated by hand.

use super::build::*;
use super::gradients::expect;

/// A stencil: each element with its neighbours, where the index of a neighbour outside is clamped, mirrored, wrapped, or has a number of its own.
#[test]
fn stencils_have_derivatives_with_every_boundary() {
    let b = Draft::default();
    // The index of a neighbour; none where it is outside.
    type Boundary = fn(E, &E) -> E;
    let within = |f: Boundary| {
        b.program(vector(real()), |a| {
            let weighted = |i: &E, o: i64, w: f64| at1(a, &f(i.get(0) + n(o), &size(a, 0))) * r(w);
            let sums = b.generate(&shape(a), |i| {
                let three = weighted(&i, -1, 1.0) + weighted(&i, 0, 10.0) + weighted(&i, 1, 100.0);
                three * to_real(&(i.get(0) + n(1)))
            });
            sum(&sums)
        })
    };
    let clamped: Boundary = |i, m| i.max(&n(0)).min(&(m.clone() - n(1)));
    let mirrored: Boundary = |i, m| {
        let last = m.clone() - n(1);
        cond(
            &i.lt(&n(0)),
            &(n(0) - i.clone()),
            &cond(&last.lt(&i), &(last.clone() + last.clone() - i.clone()), &i),
        )
    };
    let wrapped: Boundary = |i, m| (i + m.clone()).rem(m);
    let xs = [1.0, 2.0, 3.0];
    // The weight of a_j: 10 (j + 1), 100 j from the element before, j + 2 from the element after; and what the boundary adds.
    let inner = [12.0, 123.0, 230.0];
    let boundaries =
        [(clamped, [1.0, 0.0, 300.0]), (mirrored, [0.0, 301.0, 0.0]), (wrapped, [300.0, 0.0, 1.0])];
    for (f, border) in boundaries {
        let slope: Vec<f64> = (0..3).map(|j| inner[j] + border[j]).collect();
        let value = slope.iter().zip(xs).map(|(w, x)| w * x).sum();
        expect(&within(f), &[reals(&xs)], value, &slope, 1e-12);
    }
    // Outside of the array there is the number 7: nothing is read.
    let constant = b.program(vector(real()), |a| {
        let neighbour = |i: &E, o: i64| {
            let k = i.get(0) + n(o);
            let inside = n(-1).lt(&k).and(&k.lt(&size(a, 0)));
            cond(&inside, &at1(a, &k), &r(7.0))
        };
        sum(&b.generate(&shape(a), |i| {
            (neighbour(&i, -1) + neighbour(&i, 1) * r(100.0)) * to_real(&(i.get(0) + n(1)))
        }))
    });
    let slope = [2.0, 103.0, 200.0];
    let value = 2.0 + 206.0 + 600.0 + 7.0 + 2100.0;
    expect(&constant, &[reals(&xs)], value, &slope, 1e-12);
}
