//! What is said when a call stops: the same words whatever the executor.

use crate::values::Room;
use pullback_base::{RuntimeError, RuntimeErrorKind};

fn limit(message: String) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Limit, message)
}

/// The workspace has no room for `count` more elements of `size` bytes.
pub fn out_of_memory(count: u64, size: u64, room: &Room) -> RuntimeError {
    no_room(u128::from(count) * u128::from(size), room)
}

/// There is no room for so many more bytes. The wording is that of the interpreter.
pub(crate) fn no_room(bytes: u128, room: &Room) -> RuntimeError {
    let (in_use, most) = (room.in_use, room.limit);
    limit(format!("out of memory: {bytes} more bytes are needed, {in_use} are in use, the limit is {most}"))
}

/// More than so many calls of recursive functions would be open.
pub fn too_many_calls(most: u64, function: &str) -> RuntimeError {
    limit(format!("more than {most} calls are open (in {function})"))
}

/// So many open calls fill the memory for them.
pub fn stack_full(calls: u64, function: &str) -> RuntimeError {
    limit(format!("the stack is full: {calls} calls are open (in {function})"))
}

/// Somebody cancelled the call.
pub fn cancelled() -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Cancelled, "cancelled")
}
