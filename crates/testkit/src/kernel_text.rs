//! Kernel text: modules from everywhere, which are printed and read again.

use pullback_core::{FunId, Program};
use pullback_kernel::profile::instrument;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::{Module, lower, lower_with_parts, lower_with_sites, print_whole, read};

/// A function as kernel IR: lowered in three ways, scheduled in three, and with clocks. Nothing if it has no kernel IR.
pub fn modules(program: &Program, fun: FunId) -> Vec<(&'static str, Module)> {
    let free = Model { block: 0.0, lane: 0.0, apart: 0.01, registers: 8, tiles: [1.0; 4], near: Some(0) };
    let in_parts = |lanes: usize, model: Model| Options {
        most: 4 * lanes,
        grain: Some(2.0),
        ..Options::new(lanes, model)
    };
    let lowered = lower(program, fun).ok();
    let clocks = lowered.as_ref().map(|(module, id)| instrument(module, *id).module);
    let plain = lowered.map(|(module, _)| module);
    let parts = lower_with_parts(program, fun, 2).ok().map(|(module, _)| module);
    let sites = lower_with_sites(program, fun).ok().map(|(module, _)| module);
    let scheduled = |module: &Option<Module>, options: &Options| {
        let mut module = module.clone()?;
        schedule(&mut module, options);
        Some(module)
    };
    let all = [
        ("in small lanes and parts", scheduled(&parts, &in_parts(2, free))),
        ("for a machine", scheduled(&sites, &in_parts(8, Model::machine(8)))),
        ("for an interpreter", scheduled(&plain, &Options::new(512, Model::interpreter()))),
        ("lowered", plain),
        ("lowered in small parts", parts),
        ("lowered with sites", sites),
        ("lowered with clocks", clocks),
    ];
    all.into_iter().filter_map(|(how, module)| Some((how, module?))).collect()
}

/// Prints a module and reads the text: an equal module, with an equal text.
///
/// # Errors
/// What is wrong, with the text.
pub fn round_trip(module: &Module) -> Result<(), String> {
    let text = print_whole(module);
    let again = read(&text).map_err(|e| format!("{e}\n{text}"))?;
    let printed = print_whole(&again);
    if printed != text {
        return Err(format!("another text:\n{text}\nfrom its module:\n{printed}"));
    }
    if again == *module { Ok(()) } else { Err(format!("another module has the same text:\n{text}")) }
}

/// The same for all modules of a function; how many there are.
///
/// # Errors
/// Of the first module that has one.
pub fn round_trips(program: &Program, fun: FunId) -> Result<usize, String> {
    let modules = modules(program, fun);
    for (how, module) in &modules {
        round_trip(module).map_err(|e| format!("{how}: {e}"))?;
    }
    Ok(modules.len())
}
