//! The integration tests of the crate, as one program: each file is a module.

#![allow(
    clippy::duplicate_mod,
    reason = "tests add their own functions to types of a shared file, each to its copy"
)]

mod accesses;
mod accumulators;
mod blocks;
mod borders;
mod bounds;
mod common;
mod contractions;
mod copies;
mod filled;
mod fingerprints;
mod ghosts;
mod give_back;
mod in_place;
mod interchanged;
mod jam;
mod joined;
mod loaded;
mod lowering;
mod order;
mod parts;
mod passes;
mod plan;
mod proved;
mod reading;
mod rows;
mod rules;
mod schedules;
mod small;
mod stored;
mod sums;
mod tampered;
mod tampered_accesses;
mod tampered_memory;
mod tampered_order;
mod turns;
mod values;
mod verified;
mod verify_cost;
mod work;
