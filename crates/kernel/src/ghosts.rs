//! What the lowering says of values: which variable lies where from here on, and for which one is read.
//!
//! Place in the pipeline: beside lowered code, for whoever checks that no variable is read after it was written over. An event is a [`crate::Ins::Set`] of a pointer to a
//! register of its own. No executor and no pass has to know events, and code without them is the code that [`crate::lower`] makes.
//!
//! Events are a specification. They follow from the program: a variable is bound where its statement is done, and read where a
//! statement mentions it. No rule about owners and lifetimes has a say in them.

use crate::ir::{FunctionId, Operand, Reg};
use pullback_base::index::IdMap;
use std::collections::BTreeMap;

/// Sizes and strides, in elements.
pub type Dimensions = Vec<(Operand, Operand)>;

/// An event, of the pointer that its register is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Ghost {
    /// From here on elements of a variable are what is shown through the pointer: those of the variable that it is read for; of memory that
    /// is nobody's, what is there now.
    Bind {
        /// The number of the name in [`Ghosts::names`].
        name: u32,
        /// Sizes and strides of an array, in elements; `None`: it is a record.
        shape: Option<Dimensions>,
    },
    /// From here on the pointer is read for the variable that this register was bound for.
    Read {
        /// A register of a [`Ghost::Bind`].
        of: Reg,
    },
    /// What the pointer shows is used as it is now, without a load: all elements of an array of this shape.
    Check {
        /// Sizes and strides, in elements.
        shape: Dimensions,
    },
    /// From here on the memory is nobody's: a value has been made there, which has no name yet, or is being made.
    Own,
}

/// The events of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ghosts {
    pub(crate) events: BTreeMap<FunctionId, IdMap<Reg, Ghost>>,
    /// What variables are called, each pointer of each by itself, with their functions.
    pub names: Vec<String>,
}

impl Ghosts {
    /// Adds an event of a register.
    pub fn add(&mut self, function: FunctionId, register: Reg, ghost: Ghost) {
        self.events.entry(function).or_default().insert(register, ghost);
    }
    /// The event that a register is for.
    pub fn of(&self, function: FunctionId, register: Reg) -> Option<&Ghost> {
        self.events.get(&function)?.get(&register)
    }
}
