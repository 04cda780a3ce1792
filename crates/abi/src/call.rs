//! Calls with values of core.

#![allow(unsafe_code, reason = "results are read from memory; see the block")]

use crate::values::{Arguments, Room, from_words, width};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{Type, Value};
use pullback_kernel::Function;

/// Results and cost of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The results of the function.
    pub results: Vec<Value>,
    /// The most bytes of the workspace that were in use at one time. Arguments are not in it.
    pub peak_bytes: u64,
}

/// Calls a function with values: `call` is given the words of the arguments, sets those of the results, and gives the memory
/// that values may take then.
///
/// # Errors
/// Those of `call`, `Limit` for results for which there is no room, and `Internal` for arguments of wrong types.
///
/// # Safety
/// `call` sets the words as the function says, and what they point to is neither changed nor given back by its end.
pub unsafe fn with_values(
    function: &Function,
    args: &[(&Type, &Value)],
    results: &[Type],
    call: impl FnOnce(&[u64], &mut [u64]) -> Result<Room, RuntimeError>,
) -> Result<Vec<Value>, RuntimeError> {
    let mut given = Arguments::default();
    for (ty, value) in args {
        given.push(ty, value)?;
    }
    let mut count = 0;
    for ty in results {
        count += width(ty)?;
    }
    if (given.words.len(), count) != (function.params.len(), function.results.len()) {
        let message = format!("function {} is called with other types than it has", function.name);
        return Err(RuntimeError::new(RuntimeErrorKind::Internal, message));
    }
    let mut words = vec![0; count];
    let mut room = call(&given.words, &mut words)?;
    let mut rest = words.as_slice();
    let mut values = Vec::with_capacity(results.len());
    for ty in results {
        // SAFETY: the words are those of a value of this type; by the condition what they point to is as it was left.
        values.push(unsafe { from_words(ty, &mut rest, &mut room)? });
    }
    Ok(values)
}
