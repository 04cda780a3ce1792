//! The integration tests of the crate, as one program: each file is a module.

mod buffers;
mod values;
mod views;
mod workspaces;
