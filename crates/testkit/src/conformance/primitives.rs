//! Every primitive of the table at every type, at special and random arguments, on scalars and on lanes: an executor gives
//! the bits of the table's evaluation, or of the portable function where there is one (any NaN for a NaN). How far those are
//! from the table is tested with them.

use super::*;
use pullback_kernel::Order;
use pullback_maths::portable::One;

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

/// The same with lanes.
fn map_lanes(prim: Prim, lanes: usize) -> Function {
    let mut params = vec![PTR; prim.arity() + 1];
    params.push(I64);
    function(&format!("map.{}", prim.name()), &params, |regs, p| {
        let i = regs.add(I64);
        let args: Vec<_> = prim.params().iter().map(|s| regs.add(Ty::Lanes(*s, lanes))).collect();
        let to = regs.add(Ty::Lanes(prim.result(), lanes));
        let mut body: Vec<Ins> = args
            .iter()
            .zip(p)
            .map(|(a, from)| Ins::LoadLanes {
                to: *a,
                pointer: (*from).into(),
                index: i.into(),
                stride: int(1),
                mask: None,
            })
            .collect();
        body.push(Ins::Prim { to, prim, args: args.iter().map(|a| (*a).into()).collect() });
        body.push(Ins::StoreLanes {
            pointer: p[prim.arity()].into(),
            index: i.into(),
            stride: int(1),
            value: to.into(),
            ty: Ty::Scalar(prim.result()),
            mask: None,
        });
        let n = p[prim.arity() + 1];
        (vec![], vec![Ins::Lanes { i, from: int(0), to: n.into(), lanes, body }])
    })
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

/// The value of a primitive as compiled code is to give it; `None` if it has none.
fn expected(prim: Prim, args: &[ScalarValue], functions: Functions) -> Option<ScalarValue> {
    let of_table = prim.eval(args).ok()?;
    let Prim::Op(op, s) = prim else { return Some(of_table) };
    let own = pullback_maths::Function::of_op(op).filter(|_| s.is_float() && functions == Functions::Own);
    let Some(own) = own else { return Some(of_table) };
    let wide: Vec<f64> = args.iter().map(|x| x.as_f64()).collect();
    if s == Scalar::F64 {
        return pullback_maths::apply(&One, own, &wide).map(ScalarValue::F64);
    }
    let single: Vec<f32> = wide.iter().map(|x| *x as f32).collect();
    pullback_maths::apply_single(&One, own, &single).map(ScalarValue::F32)
}

/// All tuples of samples for a primitive that have a value, with it. Three arguments only occur with a condition.
fn cases(prim: Prim, functions: Functions, random: &mut Random) -> Vec<(Vec<ScalarValue>, ScalarValue)> {
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
    tuples.into_iter().filter_map(|t| Some((t.clone(), expected(prim, &t, functions)?))).collect()
}

/// As its name says.
pub fn single_values_have_the_bits_of_the_table(make: Make<'_>) {
    let primitives = primitives();
    assert!(primitives.len() > 300, "{}", primitives.len());
    let module = module(primitives.iter().map(|p| apply(*p)));
    for (executable, functions) in both(make, &module) {
        let mut session = executable.session();
        let mut random = Random(1);
        for prim in &primitives {
            let f = executable.function(&prim.name()).expect("it is there");
            for (args, expected) in cases(*prim, functions, &mut random) {
                let words: Vec<u64> = args.iter().map(|x| to_word(*x)).collect();
                let mut out = [0];
                // SAFETY: scalars of the right types.
                unsafe { session.call(f, &words, &mut out, None) }.expect("no error");
                let found = from_word(prim.result(), out[0]);
                assert!(
                    agree(found, expected),
                    "{prim} {args:?}: {found}, not {expected} ({})",
                    executable.name()
                );
                let again = to_word(found);
                assert_eq!(out[0], again, "{prim} {args:?}: the word is not extended");
            }
        }
    }
}

/// Divisions by constants: one result for each divisor.
pub fn quotients_by_constants_have_the_bits_of_the_table(make: Make<'_>) {
    let integers = Scalar::ALL.into_iter().filter(|s| s.is_integer());
    let divisions = integers.flat_map(|s| [Op::Div, Op::Mod, Op::Quot, Op::Rem].map(|op| Prim::Op(op, s)));
    let divisions: Vec<Prim> = divisions.collect();
    let divisors = |s: Scalar| {
        let lowest = i64::MIN >> (64 - 8 * s.bytes() as u32);
        let numbers = [1, 2, 3, 7, 64, 100, -1, -2, -7, lowest, lowest + 1, -(lowest + 1)];
        numbers.map(|x| s.from_i64(x))
    };
    let module = module(divisions.iter().map(|prim| {
        let s = prim.result();
        function(&prim.name(), &[Ty::Scalar(s)], |regs, p| {
            let by = |y: ScalarValue| {
                let to = regs.add(Ty::Scalar(s));
                (to, Ins::Prim { to, prim: *prim, args: vec![p[0].into(), Operand::Const(y)] })
            };
            divisors(s).map(by).into_iter().unzip()
        })
    }));
    for executable in make(&module, Setup::default()) {
        let mut session = executable.session();
        let mut random = Random(3);
        for prim in &divisions {
            let f = executable.function(&prim.name()).expect("it is there");
            let s = prim.result();
            for x in samples(s, &mut random) {
                let mut out = divisors(s).map(|_| 0);
                // SAFETY: a scalar of the right type, and a word for each result.
                unsafe { session.call(f, &[to_word(x)], &mut out, None) }.expect("no error");
                for (y, word) in divisors(s).into_iter().zip(out) {
                    let (found, expected) = (from_word(s, word), prim.eval(&[x, y]).expect("it has a value"));
                    assert!(
                        agree(found, expected),
                        "{prim} {x} {y}: {found}, not {expected} ({})",
                        executable.name()
                    );
                }
            }
        }
    }
}

/// As its name says.
pub fn elements_of_arrays_have_the_bits_of_the_table(make: Make<'_>) {
    let module = module(primitives().iter().map(|p| map(*p)));
    for functions in [Functions::Own, Functions::Table] {
        check_elements(make, &module, functions, if functions == Functions::Own { usize::MAX } else { 1 });
    }
}

/// The same for lanes; of the last width all executables, of the others the first one.
pub fn lanes_have_the_bits_of_the_table(make: Make<'_>, widths: &[usize]) {
    for (k, lanes) in widths.iter().rev().enumerate() {
        let mut module = module(primitives().iter().map(|p| map_lanes(*p, *lanes)));
        module.lanes = *lanes;
        check_elements(make, &module, Functions::Own, if k == 0 { usize::MAX } else { 1 });
        if k < 2 {
            check_elements(make, &module, Functions::Table, 1);
        }
    }
}

/// Executables with both kinds of functions.
fn both<'m>(
    make: Make<'m>,
    module: &'m Module,
) -> impl Iterator<Item = (Box<dyn Executable>, Functions)> + 'm {
    [Functions::Own, Functions::Table].into_iter().flat_map(move |functions| {
        make(module, Setup { functions, ..Setup::default() }).map(move |e| (e, functions))
    })
}

/// Compares functions on arrays for all primitives, with so many executables.
fn check_elements(make: Make<'_>, module: &Module, functions: Functions, most: usize) {
    for executable in make(module, Setup { functions, ..Setup::default() }).take(most) {
        let mut session = executable.session();
        let mut random = Random(2);
        for prim in &primitives() {
            let f = executable.function(&format!("map.{}", prim.name())).expect("it is there");
            let cases = cases(*prim, functions, &mut random);
            let bytes = |x: ScalarValue| to_word(x).to_le_bytes()[..x.scalar().bytes()].to_vec();
            let mut columns: Vec<Vec<u8>> = (0..prim.arity())
                .map(|k| cases.iter().flat_map(|(args, _)| bytes(args[k])).collect())
                .collect();
            let size = prim.result().bytes();
            // What is behind the results must stay as it is.
            let behind = 64;
            columns.push(vec![0xAA; cases.len() * size + behind]);
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
            unsafe { session.call(f, &words, &mut [], None) }.expect("no error");
            let out: Vec<u8> = aligned[prim.arity()].iter().flat_map(|w| w.to_le_bytes()).collect();
            let after = &out[cases.len() * size..][..behind];
            assert!(after.iter().all(|b| *b == 0xAA), "{prim}: more than the results is written: {after:?}");
            for (i, (args, expected)) in cases.iter().enumerate() {
                let mut word = [0; 8];
                word[..size].copy_from_slice(&out[i * size..][..size]);
                let found = from_word(prim.result(), u64::from_le_bytes(word));
                assert!(
                    agree(found, *expected),
                    "{prim} {args:?}: {found}, not {expected} ({})",
                    executable.name()
                );
            }
        }
    }
}
