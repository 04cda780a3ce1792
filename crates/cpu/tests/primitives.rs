//! Every primitive of the table at every type, at special and random arguments: compiled code gives the bits of the table's
//! evaluation (any NaN for a NaN).

#![allow(unsafe_code, reason = "compiled code is called with words")]

mod common;

use common::*;
use pullback_cpu::Options;
use pullback_kernel::{Function, Ins, Order, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Every valid primitive.
fn primitives() -> Vec<Prim> {
    let operations = Op::ALL.iter().flat_map(|op| Scalar::ALL.map(|s| Prim::Op(*op, s)));
    let conversions = Scalar::ALL.iter().flat_map(|from| Scalar::ALL.map(|to| Prim::Convert(*from, to)));
    operations.chain(conversions).filter(|p| p.is_valid()).collect()
}

/// `name(x, y, ..) = prim(x, y, ..)` for single values, with the values coming from memory and going there.
fn apply(prim: Prim) -> Function {
    let params: Vec<Ty> = prim.params().iter().map(|s| Ty::Scalar(*s)).collect();
    function(&prim.name(), &params, |regs, p| {
        let to = regs.add(Ty::Scalar(prim.result()));
        (vec![to], vec![Ins::Prim { to, prim, args: p.iter().map(|r| (*r).into()).collect() }])
    })
}

/// `name(x, y, .., out, n)`: the same for each element of arrays, so that vector instructions are used where there are some.
fn map(prim: Prim) -> Function {
    let mut params = vec![PTR; prim.arity() + 1];
    params.push(I64);
    function(&format!("map.{}", prim.name()), &params, |regs, p| {
        let i = regs.add(I64);
        let args: Vec<_> = prim.params().iter().map(|s| regs.add(Ty::Scalar(*s))).collect();
        let to = regs.add(Ty::Scalar(prim.result()));
        let mut body: Vec<Ins> = args
            .iter()
            .zip(p)
            .map(|(a, from)| Ins::Load { to: *a, pointer: (*from).into(), index: i.into() })
            .collect();
        body.push(Ins::Prim { to, prim, args: args.iter().map(|a| (*a).into()).collect() });
        let out = p[prim.arity()];
        body.push(Ins::Store {
            pointer: out.into(),
            index: i.into(),
            value: to.into(),
            ty: Ty::Scalar(prim.result()),
        });
        let n = p[prim.arity() + 1];
        (vec![], vec![Ins::For { i, from: int(0), to: n.into(), body, order: Order::Given }])
    })
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Arguments at which something special may happen, and some random ones.
fn samples(s: Scalar, random: &mut Random) -> Vec<ScalarValue> {
    let mut out = Vec::new();
    match s {
        Scalar::Bool => return vec![ScalarValue::Bool(false), ScalarValue::Bool(true)],
        Scalar::F32 | Scalar::F64 => {
            let numbers = [
                0.0,
                0.5,
                1.0,
                1.5,
                2.0,
                2.5,
                3.0,
                7.25,
                100.0,
                127.5,
                255.9,
                1e-300,
                5e-324,
                1e-40,
                1e10,
                1e20,
                1e300,
                2147483648.0,
                (1u64 << 63) as f64,
                (1u128 << 64) as f64,
                4294967296.0,
                65536.0,
                f64::INFINITY,
                f64::MAX,
                f64::MIN_POSITIVE,
            ];
            out.extend(numbers.iter().flat_map(|x| [s.from_f64(*x), s.from_f64(-*x)]));
            out.push(s.from_f64(f64::NAN));
            for _ in 0..12 {
                let unit = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
                out.push(s.from_f64(8.0 * unit - 4.0));
            }
            for _ in 0..6 {
                let bits = random.next();
                out.push(match s {
                    Scalar::F32 => ScalarValue::F32(f32::from_bits(bits as u32)),
                    _ => ScalarValue::F64(f64::from_bits(bits)),
                });
            }
        }
        _ => {
            let bits = 8 * s.bytes() as u32;
            let lowest = i64::MIN >> (64 - bits);
            out.extend([0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 65, 100].map(|x| s.from_i64(x)));
            out.extend([-1, -2, -3, -7, -64].map(|x| s.from_i64(x)));
            out.extend([lowest, lowest + 1, -(lowest + 1), -(lowest + 1) - 1].map(|x| s.from_i64(x)));
            for _ in 0..8 {
                out.push(s.from_i64(random.next() as i64));
                out.push(s.from_i64((random.next() % 200) as i64 - 100));
            }
        }
    }
    out
}

/// All tuples of samples for a primitive that have a value, with it. Three arguments only occur with a condition.
fn cases(prim: Prim, random: &mut Random) -> Vec<(Vec<ScalarValue>, ScalarValue)> {
    let mut tuples: Vec<Vec<ScalarValue>> = vec![vec![]];
    for s in prim.params() {
        let values = samples(s, random);
        tuples = tuples
            .iter()
            .flat_map(|t| values.iter().map(|v| t.iter().copied().chain([*v]).collect()))
            .collect();
        // All pairs, and many of the triples with a condition.
        let step = tuples.len() / 8000 + 1;
        tuples = tuples.into_iter().step_by(step).collect();
    }
    // Integer division by zero and negative exponents have no value and never come here.
    tuples.into_iter().filter_map(|t| Some((t.clone(), prim.eval(&t).ok()?))).collect()
}

/// Equal bits, or both NaN.
fn agree(x: ScalarValue, y: ScalarValue) -> bool {
    let is_nan = |x: ScalarValue| x.scalar().is_float() && x.as_f64().is_nan();
    x == y || (x.scalar() == y.scalar() && is_nan(x) && is_nan(y))
}

/// A scalar as a word, written apart from the code under test.
fn to_word(x: ScalarValue) -> u64 {
    match x {
        ScalarValue::F32(x) => u64::from(x.to_bits()),
        ScalarValue::F64(x) => x.to_bits(),
        ScalarValue::I8(x) => i64::from(x) as u64,
        ScalarValue::I16(x) => i64::from(x) as u64,
        ScalarValue::I32(x) => i64::from(x) as u64,
        ScalarValue::I64(x) => x as u64,
        ScalarValue::U8(x) => u64::from(x),
        ScalarValue::U16(x) => u64::from(x),
        ScalarValue::U32(x) => u64::from(x),
        ScalarValue::U64(x) => x,
        ScalarValue::Bool(x) => u64::from(x),
    }
}

fn from_word(s: Scalar, word: u64) -> ScalarValue {
    match s {
        Scalar::F32 => ScalarValue::F32(f32::from_bits(word as u32)),
        Scalar::F64 => ScalarValue::F64(f64::from_bits(word)),
        Scalar::U64 => ScalarValue::U64(word),
        _ => s.from_i64(word as i64),
    }
}

#[test]
fn single_values_have_the_bits_of_the_table() {
    let primitives = primitives();
    assert!(primitives.len() > 300, "{}", primitives.len());
    let module = module(primitives.iter().map(|p| apply(*p)));
    for executable in executables(&module, &Options::default()) {
        let mut session = executable.session();
        let mut random = Random(1);
        for prim in &primitives {
            let f = executable.function(&prim.name()).expect("it is there");
            for (args, expected) in cases(*prim, &mut random) {
                let words: Vec<u64> = args.iter().map(|x| to_word(*x)).collect();
                let mut out = [0];
                // SAFETY: scalars of the right types.
                unsafe { session.call_words(f, &words, &mut out, None) }.expect("no error");
                let found = from_word(prim.result(), out[0]);
                let compiler = executable.compiler();
                assert!(agree(found, expected), "{prim} {args:?}: {found}, not {expected} ({compiler:?})");
                let again = to_word(found);
                assert_eq!(out[0], again, "{prim} {args:?}: the word is not extended");
            }
        }
    }
}

#[test]
fn elements_of_arrays_have_the_bits_of_the_table() {
    let primitives = primitives();
    let module = module(primitives.iter().map(|p| map(*p)));
    for executable in executables(&module, &Options::default()) {
        let mut session = executable.session();
        let mut random = Random(2);
        for prim in &primitives {
            let f = executable.function(&format!("map.{}", prim.name())).expect("it is there");
            let cases = cases(*prim, &mut random);
            let bytes = |x: ScalarValue| to_word(x).to_le_bytes()[..x.scalar().bytes()].to_vec();
            let mut columns: Vec<Vec<u8>> = (0..prim.arity())
                .map(|k| cases.iter().flat_map(|(args, _)| bytes(args[k])).collect())
                .collect();
            let size = prim.result().bytes();
            columns.push(vec![0xAA; cases.len() * size]);
            // Aligned for every type.
            let mut aligned: Vec<Vec<u64>> = columns
                .iter()
                .map(|c| {
                    c.chunks(8)
                        .map(|b| {
                            let mut word = [0; 8];
                            word[..b.len()].copy_from_slice(b);
                            u64::from_le_bytes(word)
                        })
                        .collect()
                })
                .collect();
            let mut words: Vec<u64> =
                aligned.iter_mut().map(|c| c.as_mut_ptr().expose_provenance() as u64).collect();
            words.push(cases.len() as u64);
            // SAFETY: arrays of so many elements of the right types.
            unsafe { session.call_words(f, &words, &mut [], None) }.expect("no error");
            let out: Vec<u8> = aligned[prim.arity()].iter().flat_map(|w| w.to_le_bytes()).collect();
            for (i, (args, expected)) in cases.iter().enumerate() {
                let mut word = [0; 8];
                word[..size].copy_from_slice(&out[i * size..][..size]);
                let found = from_word(prim.result(), u64::from_le_bytes(word));
                let compiler = executable.compiler();
                assert!(agree(found, *expected), "{prim} {args:?}: {found}, not {expected} ({compiler:?})");
            }
        }
    }
}
