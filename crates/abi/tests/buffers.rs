//! Arguments in memory become words, and words become results in memory.

#![allow(unsafe_code, reason = "words are those of values that are alive")]

use pullback_abi::internals::{copy_past_caches, without_gaps};
use pullback_abi::{Argument, Copies, Place, Slot, take_results};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::Type;

fn set_words(slots: &[Slot], args: &[Argument<'_>], words: &mut [u64]) -> Result<(), RuntimeError> {
    pullback_abi::set_words(slots, args, words, (&mut Copies::default(), 0))
}

fn slots(types: &[Type]) -> Vec<Slot> {
    types.iter().map(|t| Slot::of(t).expect("a slot")).collect()
}

fn in_order(count: u32, f: &(dyn Fn(u32) + Sync)) {
    (0..count).for_each(f);
}

#[test]
fn arguments_become_words_and_words_become_results() {
    let types = [Type::F32, Type::array_of_rank(Type::F64, 2), Type::BOOL];
    let slots = slots(&types);
    let numbers: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let args = [Argument::scalar(1.5f32), Argument::array(&numbers, &[2, 3]), Argument::scalar(true)];
    let mut words = [0; 7];
    set_words(&slots, &args, &mut words).expect("right");
    assert_eq!(words[0], u64::from(1.5f32.to_bits()));
    assert_eq!((&words[2..6], words[6]), (&[2, 3, 3, 1][..], 1));
    // The transposition: other sizes, and columns for rows.
    words[2..6].copy_from_slice(&[3, 2, 1, 3]);
    let (mut x, mut ys, mut shape, mut is) = (0f32, [0f64; 7], [0; 2], false);
    let mut places = [Place::scalar(&mut x), Place::array(&mut ys, &mut shape), Place::scalar(&mut is)];
    // SAFETY: the words are those of values that are alive.
    unsafe { take_results(&slots, &words, &mut places, &in_order) }.expect("right");
    assert_eq!((x, shape, is), (1.5, [3, 2], true));
    assert_eq!(ys, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0, 0.0]);
}

/// The six numbers as 2 by 3, transposed, with every second column, backwards, a column, one number seen as four, no rows, one.
#[test]
fn arguments_in_another_order_are_copied() {
    let numbers: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let read = |start: usize, shape: &[usize], strides: &[isize], limit: u64| {
        let slots = [Slot::of(&Type::array_of_rank(Type::F64, shape.len())).expect("a slot")];
        let (mut words, mut copies) = (vec![0; 1 + 2 * shape.len()], Copies::default());
        let arg = Argument::strided(&numbers, start, shape, strides);
        pullback_abi::set_words(&slots, &[arg], &mut words, (&mut copies, limit))?;
        let count = shape.iter().product();
        let from = std::ptr::with_exposed_provenance::<f64>(words[0] as usize);
        // SAFETY: so many numbers are there in order, as the function has seen to.
        let found = unsafe { std::slice::from_raw_parts(from, count) }.to_vec();
        let here = std::ptr::eq(from, &raw const numbers[start]);
        Ok::<_, RuntimeError>((found, here, words[1 + shape.len()..].to_vec()))
    };
    let (two_rows, transposed) = (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(read(0, &[2, 3], &[3, 1], 0), Ok((two_rows, true, vec![3, 1])));
    assert_eq!(read(0, &[3, 2], &[1, 3], 48), Ok((transposed, false, vec![2, 1])));
    assert_eq!(read(0, &[2, 2], &[3, 2], 48), Ok((vec![1.0, 3.0, 4.0, 6.0], false, vec![2, 1])));
    assert_eq!(read(5, &[3], &[-2], 48), Ok((vec![6.0, 4.0, 2.0], false, vec![1])));
    assert_eq!(read(1, &[2], &[3], 48), Ok((vec![2.0, 5.0], false, vec![1])));
    assert_eq!(read(2, &[2, 2], &[0, 0], 48), Ok((vec![3.0; 4], false, vec![2, 1])));
    assert_eq!(read(1, &[2, 1, 2], &[2, 99, 1], 0), Ok((vec![2.0, 3.0, 4.0, 5.0], true, vec![2, 2, 1])));
    assert_eq!(read(5, &[1, 1], &[70, -8], 0), Ok((vec![6.0], true, vec![1, 1])));
    assert!(read(0, &[0, 1 << 62, 4], &[7, 7, 7], 0).is_ok_and(|(found, ..)| found.is_empty()));
    let refused = |start, shape: &[usize], strides: &[isize]| {
        let e = read(start, shape, strides, 1 << 20).expect_err("refused");
        (e.kind, e.message)
    };
    let (kind, text) = refused(1, &[2, 3], &[3, 1]);
    assert_eq!(kind, RuntimeErrorKind::ShapeMismatch);
    assert!(text.contains("argument 0 has 6 elements") && text.contains("start 1"), "{text}");
    assert_eq!(refused(0, &[2], &[-1]).0, RuntimeErrorKind::ShapeMismatch);
    assert_eq!(refused(6, &[1], &[1]).0, RuntimeErrorKind::ShapeMismatch);
    assert_eq!(refused(0, &[2, 3], &[1]).0, RuntimeErrorKind::ShapeMismatch);
    assert_eq!(refused(0, &[1 << 62, 4], &[0, 0]).0, RuntimeErrorKind::Limit);
    assert_eq!(refused(0, &[usize::MAX, 3], &[isize::MIN, 1]).0, RuntimeErrorKind::ShapeMismatch);
    let text = read(0, &[3, 2], &[1, 3], 47).expect_err("too much").message;
    assert_eq!(text, "out of memory: 48 more bytes are needed, 0 are in use, the limit is 47");
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let slots = slots(&[Type::I64, Type::array(Type::F64)]);
    let numbers = [1.0, 2.0];
    let mut words = [0; 4];
    let mut refused = |args: &[Argument<'_>]| set_words(&slots, args, &mut words).expect_err("wrong").message;
    assert_eq!(refused(&[Argument::scalar(1i64)]), "1 arguments are given, the function has 2");
    let text = refused(&[Argument::scalar(1i64), Argument::scalar(1.0)]);
    assert_eq!(text, "argument 1 is []f64, not f64");
    let text = refused(&[Argument::scalar(1i64), Argument::array(&numbers, &[3])]);
    assert_eq!(text, "argument 1 has 2 elements, and the sizes [3]");
    let most = [usize::MAX, usize::MAX];
    let text = refused(&[Argument::scalar(1i64), Argument::array(&numbers, &most)]);
    assert_eq!(text, "argument 1 is []f64, not [][]f64");
    let args = [Argument::scalar(7i64), Argument::array(&numbers, &[2])];
    set_words(&slots, &args, &mut words).expect("right");
    let (mut x, mut ys, mut shape) = (0i64, [0f64; 1], [9]);
    let mut places = [Place::scalar(&mut x), Place::array(&mut ys, &mut shape)];
    // SAFETY: the words are those of values that are alive.
    let e = unsafe { take_results(&slots, &words, &mut places, &in_order) }.expect_err("too small");
    assert_eq!(e.message, "result 1 has the sizes [2], its place has room for 1");
    assert_eq!((x, shape), (0, [9]));
}

/// Large results are copied in parts, by whoever takes them; arrays without gaps whatever their rank, others as they are.
#[test]
fn large_results_are_copied_in_parts() {
    let (rows, columns) = (700, 301);
    let numbers: Vec<f64> = (0..rows * columns).map(|k| k as f64).collect();
    let slots = slots(&[Type::array_of_rank(Type::F64, 2)]);
    let mut words = [0; 5];
    set_words(&slots, &[Argument::array(&numbers, &[rows, columns])], &mut words).expect("right");
    let taken = |words: &[u64]| {
        let parts = std::cell::Cell::new(0);
        let (mut out, mut shape) = (vec![0f64; rows * columns], [0; 2]);
        let backwards = |count: u32, f: &(dyn Fn(u32) + Sync)| {
            parts.set(count);
            std::thread::scope(|s| (0..count).rev().for_each(|k| drop(s.spawn(move || f(k)))));
        };
        let mut places = [Place::array(&mut out, &mut shape)];
        // SAFETY: the words are those of values that are alive.
        unsafe { take_results(&slots, words, &mut places, &backwards) }.expect("right");
        (out, shape, parts.get())
    };
    assert_eq!(taken(&words), (numbers.clone(), [rows, columns], 6));
    words[1..5].copy_from_slice(&[columns as u64, rows as u64, 1, columns as u64]);
    let (turned, shape, parts) = taken(&words);
    assert_eq!((shape, parts), ([columns, rows], 0));
    assert!((0..rows * columns).all(|k| turned[k] == numbers[k % rows * columns + k / rows]));
}

#[test]
fn bytes_are_copied_past_caches_wherever_they_begin() {
    let from: Vec<u8> = (0..200).collect();
    for (first, begin, count) in [(0, 0, 200), (1, 3, 150), (7, 5, 16), (0, 9, 7), (3, 15, 17), (2, 1, 0)] {
        let mut to = vec![255u8; 260];
        // SAFETY: so many bytes are there, in two vectors.
        unsafe { copy_past_caches(from[first..].as_ptr(), to[begin..].as_mut_ptr(), count) };
        assert_eq!(to[begin..begin + count], from[first..first + count]);
        assert!(to[..begin].iter().chain(&to[begin + count..]).all(|x| *x == 255));
    }
}

#[test]
fn dimensions_without_gaps_are_one() {
    let merged = |shape: &[u64], strides: &[u64]| {
        let d = without_gaps(shape, strides).expect("few dimensions");
        (d.sizes[..d.rank].to_vec(), d.strides[..d.rank].to_vec())
    };
    assert_eq!(merged(&[2, 3, 4], &[12, 4, 1]), (vec![24], vec![1]));
    assert_eq!(merged(&[2, 3, 4], &[24, 4, 1]), (vec![2, 12], vec![24, 1]));
    assert_eq!(merged(&[2, 3], &[1, 2]), (vec![2, 3], vec![1, 2]));
    assert_eq!(merged(&[5, 3], &[6, 2]), (vec![15], vec![2]));
    assert_eq!(merged(&[7], &[1]), (vec![7], vec![1]));
    assert_eq!(merged(&[3, 4], &[0, 0]), (vec![12], vec![0]));
    assert_eq!(merged(&[1, 2, 1, 3], &[9, 3, 70, 1]), (vec![6], vec![1]));
    assert_eq!(merged(&[1, 1], &[9, 70]), (vec![1], vec![1]));
    assert!(without_gaps(&[2; 9], &[2, 3, 4, 5, 6, 7, 8, 9, 10]).is_none());
}
