//! Programs as several texts: compiled on any number of threads, kept together.

#![allow(unsafe_code, reason = "compiled code is called with words")]

use crate::common::{F64, I64, PTR, executables, first, function, int, module, of_floats};
use pullback_cpu::{Executable, Options};
use pullback_kernel::{Ins, Module, Order};
use pullback_llvm::pieces::Limits;
use pullback_llvm::{Level, Llvm, emit_several, text};
use pullback_prim::Op;
use pullback_testkit::conformance::float;
use std::num::NonZeroUsize;

/// `f(n, a)`: the sum of `s = s * k + a[i]` over all elements, for `k` in 2, 3, 4.
fn sums() -> Module {
    let f = function("f", &[I64, PTR], |regs, p| {
        let s = regs.add(F64);
        let mut code = vec![Ins::Set { to: s, value: float(0.0) }];
        for k in [2.0, 3.0, 4.0] {
            let (i, x) = (regs.add(I64), regs.add(F64));
            let body = vec![
                Ins::Load { to: x, pointer: p[1].into(), index: i.into() },
                of_floats(s, Op::Mul, s, float(k)),
                of_floats(s, Op::Add, s, x),
            ];
            code.push(Ins::For { i, from: int(0), to: p[0].into(), body, order: Order::Given });
        }
        (vec![s], code)
    });
    module([f])
}

/// Each loop in a text of its own, and the function.
fn options() -> text::Options {
    text::Options { pieces: Limits { text: 1, ..Limits::SMALL }, ..text::Options::default() }
}

/// The result of a call with some elements.
fn value(executable: &Executable, xs: &[f64]) -> f64 {
    let mut found = [0];
    let args = [xs.len() as u64, xs.as_ptr().addr() as u64];
    // SAFETY: the function takes a number of elements and the elements, and gives a float.
    let done = unsafe { executable.session().call_words(first(), &args, &mut found, None) };
    done.expect("nothing stops it");
    f64::from_bits(found[0])
}

fn expected(xs: &[f64]) -> f64 {
    [2.0, 3.0, 4.0].iter().fold(0.0, |s, k| xs.iter().fold(s, |s, x| s * k + x))
}

#[test]
fn several_texts_do_what_one_does() {
    let options = Options { text: options(), ..Options::default() };
    let xs = [1.0, 5.0, -2.0, 3.0, 0.5];
    for executable in executables(&sums(), options) {
        for n in 0..=xs.len() {
            assert_eq!(value(&executable, &xs[..n]), expected(&xs[..n]), "{:?}", executable.compiler());
        }
    }
}

#[test]
fn objects_are_the_same_on_any_number_of_threads() {
    let Ok(llvm) = Llvm::find() else {
        eprintln!("skipped: no libLLVM was found");
        return;
    };
    let texts = emit_several(&sums(), &options()).texts;
    assert_eq!(texts.len(), 4);
    let compiled = |threads: usize| {
        let threads = NonZeroUsize::new(threads).expect("some");
        llvm.compile_all(&texts, Level::O3, threads).expect("it compiles")
    };
    let one = compiled(1);
    let each: Vec<Vec<u8>> = texts.iter().map(|t| llvm.compile(t, Level::O3).expect("it compiles")).collect();
    assert_eq!(one, each);
    assert!([2, 3, 9].into_iter().all(|threads| compiled(threads) == one));
}

#[test]
fn an_error_in_any_text_is_one() {
    let Ok(llvm) = Llvm::find() else { return };
    let mut texts = emit_several(&sums(), &options()).texts;
    texts[2] += "this is no text of LLVM";
    for threads in [1, 4] {
        let threads = NonZeroUsize::new(threads).expect("some");
        let made = llvm.compile_all(&texts, Level::O3, threads);
        assert!(made.is_err_and(|e| e.message.contains("the IR was not read")));
    }
}

#[test]
fn the_objects_of_a_program_are_kept_together() {
    let folder = std::env::temp_dir().join(format!("pullback-pieces-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let options = Options { text: options(), cache: Some(folder.clone()), ..Options::default() };
    let xs = [1.0, 2.0, 3.0];
    let mut made = 0;
    for was_kept in [false, true] {
        for executable in executables(&sums(), options.clone()) {
            assert_eq!(executable.was_kept(), was_kept, "{:?}", executable.compiler());
            assert_eq!(value(&executable, &xs), expected(&xs));
            made += usize::from(!was_kept);
        }
    }
    let files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert_eq!(files, made);
    let _ = std::fs::remove_dir_all(&folder);
}
