//! Lanes with operators, for straight lines of arithmetic.

use crate::text::{Text, V};
use pullback_maths::Function;
use std::cell::RefCell;

/// The lines go to the text, each result has a name.
#[derive(Clone)]
pub(crate) struct Lane<'a> {
    text: &'a RefCell<Text>,
    pub(crate) name: V,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(text: &'a RefCell<Text>, name: V) -> Lane<'a> {
        Lane { text, name }
    }
    fn make(&self, f: impl FnOnce(&mut Text) -> V) -> Lane<'a> {
        Lane { text: self.text, name: f(&mut self.text.borrow_mut()) }
    }
    pub(crate) fn constant(&self, x: f64) -> Lane<'a> {
        self.make(|t| t.constant(x))
    }
    pub(crate) fn call(&self, function: Function) -> Lane<'a> {
        self.make(|t| t.call(function, &self.name))
    }
    pub(crate) fn sqrt(&self) -> Lane<'a> {
        self.make(|t| t.intrinsic("sqrt", &self.name))
    }
    /// This where the mask holds, else the other.
    pub(crate) fn or(&self, mask: &str, other: &Lane<'a>) -> Lane<'a> {
        self.make(|t| t.select(mask, &self.name, &other.name))
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<'a> std::ops::$trait<&Lane<'a>> for &Lane<'a> {
            type Output = Lane<'a>;
            fn $method(self, other: &Lane<'a>) -> Lane<'a> {
                self.make(|t| t.$method(&self.name, &other.name))
            }
        }
        impl<'a> std::ops::$trait<&Lane<'a>> for Lane<'a> {
            type Output = Lane<'a>;
            fn $method(self, other: &Lane<'a>) -> Lane<'a> {
                (&self).$method(other)
            }
        }
        impl<'a> std::ops::$trait<Lane<'a>> for &Lane<'a> {
            type Output = Lane<'a>;
            fn $method(self, other: Lane<'a>) -> Lane<'a> {
                self.$method(&other)
            }
        }
        impl<'a> std::ops::$trait<Lane<'a>> for Lane<'a> {
            type Output = Lane<'a>;
            fn $method(self, other: Lane<'a>) -> Lane<'a> {
                (&self).$method(&other)
            }
        }
    };
}
operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);
impl<'a> std::ops::Neg for &Lane<'a> {
    type Output = Lane<'a>;
    fn neg(self) -> Lane<'a> {
        self.make(|t| t.neg(&self.name))
    }
}
impl<'a> std::ops::Neg for Lane<'a> {
    type Output = Lane<'a>;
    fn neg(self) -> Lane<'a> {
        -&self
    }
}
