//! What is said when a call stops: the same words whatever the executor.

use pullback_base::{RuntimeError, RuntimeErrorKind};

fn limit(message: String) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Limit, message)
}

/// The workspace has no room for `count` more elements of `size` bytes; `in_use` of its `all` bytes are taken.
pub fn out_of_memory(count: u64, size: u64, in_use: usize, all: usize) -> RuntimeError {
    let bytes = u128::from(count) * u128::from(size);
    limit(format!("out of memory: {bytes} more bytes are needed, {in_use} are in use, the limit is {all}"))
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
