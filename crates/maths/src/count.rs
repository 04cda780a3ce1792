//! Lanes that hold nothing: an emitter that counts the operations it is asked for.
//!
//! It shows that a function can be written out without any number at hand, and what it costs.

use std::cell::Cell;

use crate::function::{Function, apply};
use crate::lanes::Lanes;

/// How many operations of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Additions, subtractions, multiplications, fused ones, roundings.
    pub arithmetic: usize,
    /// Divisions and square roots.
    pub divisions: usize,
    /// Comparisons, selections, operations on bits and truth values.
    pub bits: usize,
    /// Elements of tables.
    pub tables: usize,
    /// All operations of the part for rare arguments.
    pub rare: usize,
}

/// The counter.
#[derive(Default, Debug)]
struct Counter {
    counts: Cell<Counts>,
    is_rare: Cell<bool>,
}

impl Counter {
    fn count(&self, kind: impl FnOnce(&mut Counts) -> &mut usize) {
        let mut counts = self.counts.get();
        *if self.is_rare.get() { &mut counts.rare } else { kind(&mut counts) } += 1;
        self.counts.set(counts);
    }

    fn arithmetic(&self) {
        self.count(|c| &mut c.arithmetic);
    }

    fn division(&self) {
        self.count(|c| &mut c.divisions);
    }

    fn bit(&self) {
        self.count(|c| &mut c.bits);
    }
}

/// The operations of a function.
pub fn operations(function: Function) -> Counts {
    let counter = Counter::default();
    let args = [(); 2];
    let result = apply(&counter, function, &args[..function.facts().arity]);
    assert!(result.is_some(), "as many arguments as the arity");
    counter.counts.get()
}

/// Methods that count and give nothing.
macro_rules! counted {
    ($($kind:ident: $($name:ident)+, $args:tt;)*) => {
        $(counted!(@each $kind, $args, $($name)+);)*
    };
    (@each $kind:ident, $args:tt, $($name:ident)+) => {
        $(counted!(@one $kind, $args, $name);)+
    };
    (@one $kind:ident, ($($x:ident),*), $name:ident) => {
        fn $name(&self, $($x: ()),*) {
            self.$kind();
        }
    };
}

/// Constants and sign changes are free: they become part of another operation.
impl Lanes for Counter {
    type F = ();
    type I = ();
    type M = ();

    counted! {
        arithmetic: add sub mul, (_x, _y);
        arithmetic: fma, (_x, _y, _z);
        arithmetic: round, (_x);
        division: div, (_x, _y);
        division: sqrt, (_x);
        bit: lt le eq both either int_add int_sub int_and int_xor, (_x, _y);
        bit: not, (_x);
        bit: select, (_m, _x, _y);
    }

    fn float(&self, _x: f64) {}
    fn int(&self, _x: i64) {}
    fn neg(&self, _x: ()) {}
    fn abs(&self, _x: ()) {}
    fn bits(&self, _x: ()) {}
    fn float_of_bits(&self, _x: ()) {}
    fn any_bit(&self, _x: (), _mask: i64) {
        self.bit();
    }
    fn shift_left(&self, _x: (), _by: u32) {
        self.bit();
    }
    fn shift_right(&self, _x: (), _by: u32) {
        self.bit();
    }
    fn table(&self, _table: &'static [f64], _index: ()) {
        self.count(|c| &mut c.tables);
    }
    fn rarely<const N: usize>(&self, _m: (), usual: [(); N], unusual: impl FnOnce() -> [(); N]) -> [(); N] {
        let outside = self.is_rare.replace(true);
        unusual();
        self.is_rare.set(outside);
        usual
    }
}
