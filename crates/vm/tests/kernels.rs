//! Kernels do as many lanes as they are told, and no more, also in place.

#![allow(unsafe_code, reason = "kernels are called with registers that are large enough")]

use pullback_prim::{Op, Prim, Scalar};
use pullback_vm::Machine;
use pullback_vm::internals::{
    CHUNK, Side, Sums, Taken, accumulate, exact, function, identity, load, store, two,
};
use std::ptr::null;

/// Around one chunk, two of them, and their halves.
const COUNTS: [usize; 12] = [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40];
const ROOM: usize = 40usize.next_multiple_of(CHUNK);

fn machines() -> impl Iterator<Item = Machine> {
    Machine::ALL.into_iter().filter(|m| m.is_there())
}

fn numbers(from: f64) -> Vec<f64> {
    (0..ROOM).map(|l| from + l as f64).collect()
}

const LANES: Side = Side::Lanes;

#[test]
fn operations_do_so_many_lanes() {
    for machine in machines() {
        for n in COUNTS {
            let (x, y) = (numbers(1.0), numbers(0.5));
            let sum = exact(Prim::Op(Op::Add, Scalar::F64), &[LANES, LANES], machine).expect("it is exact");
            let mut to = vec![-1.0; ROOM];
            // SAFETY: all registers have room for whole chunks.
            unsafe { sum(n, to.as_mut_ptr().cast(), x.as_ptr().cast(), y.as_ptr().cast(), null()) };
            // 1 + l + 0.5 + l
            let expected: Vec<f64> =
                (0..ROOM).map(|l| if l < n { 1.5 + 2.0 * l as f64 } else { -1.0 }).collect();
            assert_eq!(to, expected, "{machine:?} {n}");
            // In place.
            let mut to = numbers(1.0);
            // SAFETY: as above; the result may lie where an argument does.
            unsafe { sum(n, to.as_mut_ptr().cast(), to.as_ptr().cast(), to.as_ptr().cast(), null()) };
            let expected: Vec<f64> =
                (0..ROOM).map(|l| (1.0 + l as f64) * if l < n { 2.0 } else { 1.0 }).collect();
            assert_eq!(to, expected, "{machine:?} {n}");
        }
    }
}

#[test]
fn truth_values_and_words_of_every_size_are_kept_apart() {
    for machine in machines() {
        for n in COUNTS {
            let x = numbers(0.0);
            let less = exact(Prim::Op(Op::Lt, Scalar::F64), &[LANES, Side::Scalar], machine).expect("exact");
            let mut to = vec![9u8; ROOM];
            let limit = 20.0f64;
            // SAFETY: all registers have room for whole chunks; the limit is a word.
            unsafe {
                less(n, to.as_mut_ptr(), x.as_ptr().cast(), std::ptr::from_ref(&limit).cast(), null());
            }
            let expected: Vec<u8> = (0..ROOM).map(|l| if l < n { u8::from(l < 20) } else { 9 }).collect();
            assert_eq!(to, expected, "{machine:?} {n}");
            for s in [Scalar::U8, Scalar::I16, Scalar::F32, Scalar::I64] {
                // Aligned for elements of every size.
                let mut words = vec![0u64; ROOM];
                let word = 0x0101_0101_0101_0101u64;
                let fill = identity(s, Side::Scalar, machine);
                // SAFETY: as above.
                unsafe {
                    fill(n, words.as_mut_ptr().cast(), std::ptr::from_ref(&word).cast(), null(), null());
                }
                let to: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                assert!(to[..n * s.bytes()].iter().all(|b| *b == 1), "{machine:?} {n} {s}");
                assert!(to[n * s.bytes()..].iter().all(|b| *b == 0), "{machine:?} {n} {s}");
            }
        }
    }
}

#[test]
fn functions_do_so_many_lanes_and_give_the_same_bits_everywhere() {
    for n in COUNTS {
        let x: Vec<f64> = numbers(-3.0).iter().map(|x| 0.37 * x).collect();
        let mut all = machines().map(|machine| {
            let exp = function(Op::Exp, Scalar::F64, &[LANES], machine).expect("there is one");
            let mut to = vec![-1.0; ROOM];
            // SAFETY: both registers have room for whole chunks.
            unsafe { exp(n, to.as_mut_ptr().cast(), x.as_ptr().cast(), null(), null()) };
            to
        });
        let first = all.next().expect("one is always there");
        for (l, y) in first.iter().enumerate() {
            // The standard library and our own function err by at most two units in the last place each.
            let near = (y - x[l].exp()).abs() <= 4.0 * f64::EPSILON * y;
            assert!(if l < n { near } else { *y == -1.0 }, "{n} lanes, {l}: {y}");
        }
        assert!(all.all(|other| other == first), "{n}");
    }
}

#[test]
fn memory_is_touched_where_lanes_are_meant() {
    let indices: Vec<i64> = (0..ROOM as i64).map(|l| (l * 7) % 40).collect();
    let mask: Vec<u8> = (0..ROOM).map(|l| u8::from(l % 3 != 0)).collect();
    for (machine, n) in machines().flat_map(|m| COUNTS.map(|n| (m, n))) {
        let mut memory: Vec<f64> = (0..80).map(f64::from).collect();
        let mut register = vec![-1.0; ROOM];
        // SAFETY: the places of the lanes that are meant are inside; the others are not accessed.
        unsafe {
            let (r, m) = (register.as_mut_ptr().cast::<u8>(), memory.as_mut_ptr().cast::<u8>());
            load(Scalar::F64, machine)(n, r, m, indices.as_ptr(), 1, mask.as_ptr());
        }
        for (l, x) in register.iter().enumerate() {
            let there = l < n && mask[l] != 0;
            assert_eq!(*x, if there { (indices[l] + l as i64) as f64 } else { -1.0 }, "{n} lanes, {l}");
        }
        let mut register = numbers(100.0);
        // SAFETY: as above.
        unsafe {
            let (r, m) = (register.as_mut_ptr().cast::<u8>(), memory.as_mut_ptr().cast::<u8>());
            store(Scalar::F64, machine)(n, r, m, null(), 2, null());
            // All lanes to one place, one after the other.
            let add = accumulate(Scalar::F64, Sums::InOrder, Machine::Portable).expect("numbers");
            add(n, r, m.add(8), null(), 0, null());
        }
        let sum: f64 = 1.0 + (0..n).map(|l| 100.0 + l as f64).sum::<f64>();
        for (k, x) in memory.iter().enumerate() {
            let stored = k % 2 == 0 && k / 2 < n;
            let expected = if stored { 100.0 + (k / 2) as f64 } else { k as f64 };
            assert_eq!(*x, if k == 1 { sum } else { expected }, "{n} lanes, {k}");
        }
    }
}

/// Whole numbers, so that sums are exact in every order.
#[test]
fn lanes_are_added_to_one_element_or_to_neighbours() {
    let kinds = machines().flat_map(|m| [Sums::InOrder, Sums::Together].map(|s| (m, s)));
    for (machine, sums) in kinds {
        let add = accumulate(Scalar::F64, sums, machine).expect("numbers");
        for n in COUNTS {
            let mut register = numbers(100.0);
            let (mut one, mut many) = (numbers(1.0), numbers(1.0));
            // SAFETY: there is room for all lanes.
            unsafe {
                add(n, register.as_mut_ptr().cast(), one.as_mut_ptr().cast(), null(), 0, null());
                add(n, register.as_mut_ptr().cast(), many.as_mut_ptr().cast(), null(), 1, null());
            }
            // 100 + 101 + .. + (99 + n)
            let sum = (100 * n + n * n.saturating_sub(1) / 2) as f64;
            let expected = |l: usize| 1.0 + l as f64 + if l == 0 { sum } else { 0.0 };
            assert_eq!(one, (0..ROOM).map(expected).collect::<Vec<_>>(), "{machine:?} {sums:?} {n}");
            let expected = |l: usize| 1.0 + l as f64 + if l < n { 100.0 + l as f64 } else { 0.0 };
            assert_eq!(many, (0..ROOM).map(expected).collect::<Vec<_>>(), "{machine:?} {sums:?} {n}");
        }
    }
}

/// Neighbours under a mask, of every size of elements; what the mask leaves out may be nowhere.
#[test]
fn a_mask_leaves_neighbours_as_they_are() {
    let mask: Vec<u8> = (0..ROOM).map(|l| u8::from(l % 3 != 0 && l != 7)).collect();
    for machine in machines() {
        for n in COUNTS {
            for s in [Scalar::U8, Scalar::I16, Scalar::F32, Scalar::I64] {
                let bytes = s.bytes();
                let last = (0..n).rev().find(|l| mask[*l] != 0);
                // No more memory than the lanes need that are meant: at the end of aligned words.
                let size = last.map_or(0, |l| l + 1) * bytes;
                let start = size.next_multiple_of(8) - size;
                let from: Vec<u8> = (0..start).map(|_| 0).chain((0..size).map(|k| k as u8)).collect();
                let mut memory: Vec<u64> =
                    from.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
                let mut to = vec![u64::from_le_bytes([0xEE; 8]); memory.len()];
                let mut words = vec![u64::MAX; ROOM];
                // SAFETY: the register and the mask have room for whole chunks, the memory for what is meant.
                unsafe {
                    let r = words.as_mut_ptr().cast::<u8>();
                    let place = |words: &mut Vec<u64>| words.as_mut_ptr().cast::<u8>().add(start);
                    load(s, machine)(n, r, place(&mut memory), null(), 1, mask.as_ptr());
                    store(s, machine)(n, r, place(&mut to), null(), 1, mask.as_ptr());
                }
                let stored: Vec<u8> = to.iter().flat_map(|w| w.to_le_bytes()).skip(start).collect();
                let register: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                for (k, x) in register.iter().enumerate() {
                    let meant = k / bytes < n && mask.get(k / bytes).is_some_and(|m| *m != 0);
                    assert_eq!(*x, if meant { k as u8 } else { 0xFF }, "{machine:?} {s} {n} {k}");
                }
                for (k, x) in stored.iter().enumerate() {
                    let meant = mask[k / bytes] != 0;
                    assert_eq!(*x, if meant { k as u8 } else { 0xEE }, "{machine:?} {s} {n} {k}");
                }
            }
        }
    }
}

/// Each pair of operations gives the bits of the one after the other, for each kind of arguments.
#[test]
fn pairs_do_one_operation_after_the_other() {
    let of = |op: Op, x: f64, y: f64| match op {
        Op::Add => x + y,
        Op::Sub => x - y,
        _ => x * y,
    };
    let (x, y, z) = (numbers(0.1), numbers(-7.3), numbers(0.7));
    let at = |side: Side, values: &[f64], l: usize| values[if side == LANES { l } else { 0 }];
    let sides = [[LANES, LANES], [LANES, Side::Scalar], [Side::Scalar, LANES]];
    let takes = [
        Taken::First(LANES),
        Taken::First(Side::Scalar),
        Taken::Second(LANES),
        Taken::Second(Side::Scalar),
        Taken::Both,
    ];
    let mut found = 0;
    for machine in machines() {
        for (first, second) in
            [Op::Add, Op::Sub, Op::Mul].into_iter().flat_map(|f| [Op::Add, Op::Sub, Op::Mul].map(|s| (f, s)))
        {
            for (sides, taken) in sides.into_iter().flat_map(|s| takes.map(|t| (s, t))) {
                let Some(kernel) = two((first, sides), (second, taken), machine) else {
                    assert_eq!((second, taken), (Op::Sub, Taken::Both), "all others are there");
                    continue;
                };
                found += 1;
                for n in COUNTS {
                    let mut to = vec![-1.0f64; ROOM];
                    // SAFETY: all registers have room for whole chunks, their first elements are words.
                    unsafe {
                        let [x, y, z] = [&x, &y, &z].map(|v| v.as_ptr().cast::<u8>());
                        kernel(n, to.as_mut_ptr().cast(), x, y, z);
                    }
                    for (l, found) in to.iter().copied().enumerate() {
                        let t = of(first, at(sides[0], &x, l), at(sides[1], &y, l));
                        let expected = match taken {
                            _ if l >= n => -1.0f64,
                            Taken::First(side) => of(second, t, at(side, &z, l)),
                            Taken::Second(side) => of(second, at(side, &z, l), t),
                            Taken::Both => of(second, t, t),
                        };
                        assert_eq!(
                            found.to_bits(),
                            expected.to_bits(),
                            "{machine:?} {first:?} {second:?} {n} {l}"
                        );
                    }
                }
            }
        }
    }
    assert!(found > 0);
}
