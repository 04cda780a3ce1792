//! Every instruction of kernel IR, in modules written by hand. Expected values are calculated by hand or in Rust.

#![allow(unsafe_code, reason = "compiled code is called with words")]

use crate::common::*;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_cpu::{Executable, Options, Workspaces};
use pullback_kernel::{Ins, Module};

/// Calls the function `f` of a module.
fn call(executable: &Executable, args: &[u64], results: usize) -> Result<Vec<u64>, RuntimeError> {
    let f = executable.function("f").expect("it is there");
    let mut out = vec![0; results];
    // SAFETY: every test gives arguments of the types of its function.
    unsafe { executable.session().call_words(f, args, &mut out, None) }.map(|()| out)
}

each! {
    a_loop_adds_the_elements_of_a_vector
    a_loop_of_no_iterations_does_nothing_and_bounds_are_read_before_it
    nested_loops_multiply_matrices
    while_and_if_count_the_steps_of_collatz
    memory_holds_elements_of_every_type
    memory_holds_pointers
    allocations_are_aligned_and_do_not_overlap_until_they_are_released
    a_release_keeps_accesses_in_order
    too_much_memory_is_a_limit
    a_failure_says_what_its_message_says
    a_failure_in_a_called_function_stops_its_callers
    functions_call_themselves_up_to_a_limit
    calls_that_have_ended_are_not_open
    a_call_can_be_cancelled_and_its_session_be_used_again
    an_executable_is_called_from_many_threads
    arguments_in_another_order_are_refused
}

/// LLVM may order accesses to different allocations as it likes, but not across a fence.
#[test]
fn a_release_is_a_fence() {
    let text = pullback_llvm::emit(&conformance::released_and_reused(), &Options::default().text).text;
    assert_eq!(text.matches("fence syncscope(\"singlethread\") seq_cst").count(), 2);
    assert!(text.contains("!noalias"), "{text}");
}

#[test]
fn any_name_can_be_the_name_of_a_function_or_a_register() {
    let mut f = function("f \"x\\y\" €\n%0", &[I64], |_, p| (vec![p[0]], vec![]));
    f.regs[f.params[0]].hint = "x \"é".to_string();
    let name = f.name.clone();
    // A name that LLVM knows.
    let g = function("memcpy", &[PTR, PTR, I64], |_, p| (vec![p[2]], vec![]));
    for executable in executables(&module([f, g]), Options::default()) {
        let f = executable.function(&name).expect("it is there");
        let mut out = [0];
        // SAFETY: the argument is a number.
        unsafe { executable.session().call_words(f, &[42], &mut out, None) }.expect("no error");
        assert_eq!(out, [42]);
    }
}

#[test]
fn a_library_that_is_none_is_an_error_with_its_path() {
    let library = std::env::temp_dir().join("no such library.so");
    let options = Options { library: Some(library.clone()), ..Options::default() };
    let error = Executable::new(&checked(), &options).expect_err("there is no library");
    assert_eq!(error.library, Some(library));
    assert!(error.to_string().contains("no such library.so"), "{error}");
}

#[test]
fn a_module_is_compiled_once_if_objects_are_kept() {
    let folder = std::env::temp_dir().join(format!("pullback-objects-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let options = Options { cache: Some(folder.clone()), ..Options::default() };
    let values = |executable: &Executable| call(executable, &[2, 3], 1);
    for executable in executables(&checked(), options.clone()) {
        assert!(!executable.was_kept(), "{:?}", executable.compiler());
        assert_eq!(values(&executable), Ok(vec![4]));
    }
    for executable in executables(&checked(), options.clone()) {
        assert!(executable.was_kept(), "{:?}", executable.compiler());
        assert_eq!(values(&executable), Ok(vec![4]));
    }
    let _ = std::fs::remove_dir_all(&folder);
    // A folder that cannot be one.
    let file = std::env::current_exe().expect("a file");
    let options = Options { cache: Some(file), ..Options::default() };
    for executable in executables(&checked(), options.clone()) {
        assert!(!executable.was_kept());
        assert_eq!(values(&executable), Ok(vec![4]));
    }
}

#[test]
fn memory_that_is_refused_has_its_place_in_the_source() {
    let mut module = checked_allocation();
    let (f, register) = (first(), module.functions[first()].params[0]);
    let mut sources = pullback_base::SourceMap::new();
    let span = pullback_base::Span::new(sources.add("place.fut", "iota n"), 0, 6);
    let to: pullback_kernel::Reg = pullback_base::index::Index::new(1);
    module.functions[f].regs[to].facts.place = Some(span);
    assert_ne!(register, pullback_base::index::Index::new(1), "the allocation has register 1");
    for executable in executables(&module, Options::default()) {
        let mut session = executable.session_within(1 << 20);
        // SAFETY: the function takes a number and gives one.
        let mut run = |n: u64| unsafe { session.call_words(f, &[n], &mut [0], None) };
        assert_eq!(run(1 << 17), Ok(()));
        let e = run((1 << 17) + 1).expect_err("too much");
        assert_eq!((e.kind, e.span), (RuntimeErrorKind::Limit, Some(span)));
        assert!(run(1 << 17).is_ok(), "the session goes on");
        drop(session);
        assert_eq!(executable.kept_bytes(), 1 << 20, "the workspace is kept");
        // A larger one is made where it is asked for.
        let mut session = executable.session_within(16 << 30);
        // SAFETY: as above. The memory is not touched.
        unsafe { session.call_words(f, &[3 << 30 >> 3], &mut [0], None) }.expect("there is room");
    }
}

#[test]
fn pages_that_one_function_has_used_serve_another() {
    let Some(library) = libraries().first().cloned() else { return };
    let (module, f) = (checked_allocation(), first());
    let options = Options { library: Some(library), ..Options::default() };
    let made = |options: &Options| Executable::new(&module, options).expect("it compiles");
    let (one, other) = (made(&options), made(&options));
    // SAFETY: the function takes a number and gives one.
    unsafe { one.session().call_words(f, &[1 << 17], &mut [0], None) }.expect("there is room");
    assert_eq!(other.kept_bytes(), 1 << 20);
    let session = other.session();
    assert_eq!((one.kept_bytes(), other.kept_bytes()), (0, 0), "a workspace has one user");
    drop(session);
    assert_eq!((one.kept_bytes(), other.kept_bytes()), (1 << 20, 1 << 20));
    let apart = Options { workspaces: Workspaces::default(), ..options };
    assert_eq!(made(&apart).kept_bytes(), 0, "a store of its own");
}

/// Asks for some numbers.
fn checked_allocation() -> Module {
    module([function("f", &[I64], |regs, p| {
        let a = regs.add(PTR);
        (vec![p[0]], vec![Ins::Alloc { to: a, count: p[0].into(), ty: F64 }])
    })])
}
