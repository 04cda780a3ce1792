//! Growth of cost: families of programs, one per naive mistake, measured by the step counter of the interpreter.
//!
//! Source: Fast CHAD specification, section 4.3 (counter-examples CE1 to CE12), and the families of the house plan.
//! A family is a function from a size to a program. It is flat under an algorithm if the ratio of the work of the
//! derivative to the work of the program does not grow: `ratio(2n) / ratio(n) <= 1.1`.

use crate::properties::{Case, Reverse, reverse_program};
use pullback_core::{Atom, Builder, Exp, Program, Soac, Type, Value, Var};
use pullback_interp::core::{Compiled, Options};
use pullback_prim::Op;

/// A family of programs.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// The mistake that makes it grow.
    pub exposes: &'static str,
    /// The program of a size.
    pub program: fn(usize) -> Case,
    /// Whether the didactic one-hot rule for indexing grows on it.
    pub grows_one_hot: bool,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

/// All families.
pub const FAMILIES: &[Family] = &[
    family("CE1 let chain", "environment vectors that are copied per statement", let_chain, false),
    family("CE2 alias chain", "a new cotangent array per name of an array", alias_chain, true),
    family("CE3 map that reads twice", "an array of zeros per index", map_index, true),
    family("CE4 branches in a row", "a scope per branch", branches, true),
    family("CE5 in-place loop", "the whole carried array on the tape", in_place, true),
    family("CE6 nested maps", "a row of zeros per element", nested_index, true),
    family("CE7 loop with a branch", "a scope per iteration", loop_branch, true),
    family("CE9 one element used", "a dense cotangent for one hot entry", one_used, false),
    family("CE11 map in a loop", "an accumulator opened per iteration", map_in_loop, true),
    family("CE12 sibling maps", "an accumulator opened per sibling", sibling_maps, true),
    family(
        "CE15 loop in an operator",
        "partial results combined that the program never combines",
        powers,
        false,
    ),
    family("dot", "nothing: the plain case", dot, false),
    family("matrix product", "accumulation into the whole matrix per element", matmul, true),
    family("scan", "a quadratic reverse of prefixes", scan, false),
    family("gather", "an array of zeros per index", gather, false),
    family("histogram", "a search through the bins per element", histogram, false),
    family("histogram of products", "a search through the bins per element", histogram_of_products, false),
    family("histogram in general", "a sequential search per bin", histogram_in_general, false),
    family("few writes in a loop", "zeros for all cells per iteration", few_writes, false),
    family("rows by index", "a row of zeros per element", rows_by_index, false),
    family("captured array", "a copy of a captured array per iteration", captured, true),
    family("long loop", "a tape that grows with what is not needed", long_loop, false),
    family("wide tuple", "a zero tuple per projection", wide_tuple, false),
    family("large sum", "a zero payload per alternative", large_sum, false),
];

const fn family(
    name: &'static str,
    exposes: &'static str,
    program: fn(usize) -> Case,
    grows_one_hot: bool,
) -> Family {
    Family { name, exposes, program, grows_one_hot }
}

/// Work of the derivative over work of the program, at a size. `Err`: unsupported or stopped, in words.
pub fn ratio(family: &Family, n: usize, reverse: Reverse<'_>) -> Result<f64, String> {
    let case = (family.program)(n);
    let (program, id) = reverse_program(&case, reverse).map_err(|e| e.to_string())?;
    let primal = Compiled::new(&case.program).run(case.main, &case.args, &Options::default());
    let primal = primal.map_err(|e| e.to_string())?;
    let mut args = case.args.clone();
    args.push(Value::f64(1.0));
    let derivative =
        Compiled::new(&program).run(id, &args, &Options::default()).map_err(|e| e.to_string())?;
    Ok(derivative.counts.work as f64 / primal.counts.work as f64)
}

/// Ratios at `8, 16, .., largest`.
pub fn ratios(family: &Family, largest: usize, reverse: Reverse<'_>) -> Result<Vec<f64>, String> {
    let sizes = std::iter::successors(Some(8), |n| Some(2 * n)).take_while(|n| *n <= largest);
    sizes.map(|n| ratio(family, n, reverse)).collect()
}

/// Whether the last doublings stay within the factor 1.1. The first sizes are dominated by what is done once.
pub fn is_flat(ratios: &[f64]) -> bool {
    let last = ratios.len().saturating_sub(3);
    ratios[last..].windows(2).all(|w| w[1] <= 1.1 * w[0])
}

fn case(
    params: &[(&str, Type)],
    args: Vec<Value>,
    build: impl FnOnce(&mut Builder<'_>, &[Var]) -> Atom,
) -> Case {
    let mut program = Program::default();
    let main = Builder::function(&mut program, "main", params, vec![Type::F64], |b, p| vec![build(b, p)]);
    Case { program, main, args, growing: Vec::new(), seed: 1, smooth: true, empties: false }
}

fn vector() -> Type {
    Type::array(Type::F64)
}

fn values(n: usize) -> Value {
    // No two equal, none large: products of many stay finite.
    Value::f64s(&(0..n).map(|i| 1.0 + 0.1 * ((i * 7 % 11) as f64 - 5.0) / 5.0).collect::<Vec<_>>())
}

fn n_of(n: usize) -> Atom {
    Atom::i64(n as i64)
}

fn let_chain(n: usize) -> Case {
    case(&[("x", Type::F64)], vec![Value::f64(1.0)], |b, p| {
        (0..n).fold(p[0].into(), |x, _| b.op2(Op::Add, x, x))
    })
}

fn alias_chain(n: usize) -> Case {
    case(&[("a", vector())], vec![values(n)], |b, p| {
        let mut a: Atom = p[0].into();
        let mut product = Atom::f64(1.0);
        for k in 0..n {
            a = b.emit(Exp::Atom(a), "a");
            let x = b.index(a, &[n_of(k)]);
            product = b.op2(Op::Mul, product, x);
        }
        product
    })
}

fn map_index(n: usize) -> Case {
    case(&[("a", vector())], vec![values(n)], |b, p| {
        let is = b.emit(Exp::Iota(n_of(n)), "is");
        let squares = b.map(n_of(n), &[is], |b, i| {
            let x = b.index(p[0].into(), &[i[0].into()]);
            let y = b.index(p[0].into(), &[i[0].into()]);
            vec![b.op2(Op::Mul, x, y)]
        });
        b.sum(n_of(n), squares[0].into())
    })
}

fn branches(n: usize) -> Case {
    let params = [("a", vector()), ("x", Type::F64)];
    case(&params, vec![values(n), Value::f64(0.1)], |b, p| {
        let mut t: Atom = p[1].into();
        for k in 0..n {
            let c = b.op2(Op::Lt, t, Atom::f64(0.5));
            let out = b.if_(
                c,
                |b| {
                    let x = b.index(p[0].into(), &[n_of(k)]);
                    let y = b.op2(Op::Add, x, t);
                    vec![b.op1(Op::Sin, y)]
                },
                |b| vec![b.op2(Op::Mul, t, Atom::f64(0.5))],
            );
            t = out[0].into();
        }
        t
    })
}

fn in_place(n: usize) -> Case {
    case(&[("a", vector())], vec![values(n + 1)], |b, p| {
        // The loop works on an array of its own: a write to the argument would copy it.
        let own = b.map(n_of(n + 1), &[p[0].into()], |b, x| vec![b.op1(Op::Sin, x[0].into())]);
        let out = b.for_loop(n_of(n), &[own[0].into()], |b, i, xs| {
            let x = b.index(xs[0].into(), &[i.into()]);
            let y = b.op1(Op::Sin, x);
            let next = b.op2(Op::Add, i.into(), Atom::i64(1));
            vec![b.emit(Exp::Update(xs[0].into(), vec![next], y), "xs")]
        });
        b.index(out[0].into(), &[n_of(n)])
    })
}

/// Horner's rule as a reduction of (value, count): the operator runs a loop of as many steps as its right side counts.
fn powers(n: usize) -> Case {
    case(&[("a", vector())], vec![values(n)], |b, p| {
        let ones = b.emit(Exp::Replicate(vec![n_of(n)], Atom::i64(1)), "ones");
        let types = [Type::F64, Type::I64, Type::F64, Type::I64];
        let lam = b.lam(&types, "x", |b, x| {
            let scaled = b.for_loop(x[3].into(), &[x[0].into()], |b, _, s| {
                vec![b.op2(Op::Mul, s[0].into(), Atom::f64(0.9))]
            });
            let sum = b.op2(Op::Add, scaled[0].into(), x[2].into());
            vec![sum, b.op2(Op::Add, x[1].into(), x[3].into())]
        });
        let soac = Soac::Reduce {
            width: n_of(n),
            lam,
            neutral: vec![Atom::f64(0.0), Atom::i64(0)],
            arrays: vec![p[0].into(), ones],
            commutative: false,
        };
        b.emit_all(Exp::Soac(soac), "value")[0].into()
    })
}

fn side(n: usize) -> usize {
    ((n as f64).sqrt() as usize).max(2)
}

fn nested_index(n: usize) -> Case {
    let m = side(n * n / 4);
    let flat: Vec<f64> = (0..m * m).map(|i| 0.5 + (i % 7) as f64 * 0.1).collect();
    let params = [("a", Type::array(vector()))];
    case(&params, vec![Value::f64_array(&[m, m], &flat)], |b, p| {
        let is = b.emit(Exp::Iota(n_of(m)), "is");
        let sums = b.map(n_of(m), &[is], |b, i| {
            let row = b.index(p[0].into(), &[i[0].into()]);
            let squares = b.map(n_of(m), &[is], |b, j| {
                let x = b.index(row, &[j[0].into()]);
                vec![b.op2(Op::Mul, x, x)]
            });
            vec![b.sum(n_of(m), squares[0].into())]
        });
        b.sum(n_of(m), sums[0].into())
    })
}

fn loop_branch(n: usize) -> Case {
    let params = [("a", vector()), ("x", Type::F64)];
    case(&params, vec![values(n), Value::f64(0.4)], |b, p| {
        let out = b.for_loop(n_of(n), &[p[1].into()], |b, i, s| {
            let c = b.op2(Op::Lt, s[0].into(), Atom::f64(0.3));
            let r = b.if_(
                c,
                |b| {
                    let x = b.index(p[0].into(), &[i.into()]);
                    vec![b.op2(Op::Mul, x, s[0].into())]
                },
                |b| vec![b.op1(Op::Sin, s[0].into())],
            );
            let shrunk = b.op2(Op::Mul, r[0].into(), Atom::f64(0.9));
            vec![b.op2(Op::Add, shrunk, Atom::f64(0.01))]
        });
        out[0].into()
    })
}

fn one_used(n: usize) -> Case {
    let params = [("a", vector()), ("x", Type::F64)];
    case(&params, vec![values(n), Value::f64(0.5)], |b, p| {
        let ys = b.map(n_of(n), &[p[0].into()], |b, a| {
            let t = b.op2(Op::Mul, a[0].into(), p[1].into());
            vec![b.op1(Op::Sin, t)]
        });
        b.index(ys[0].into(), &[Atom::i64(0)])
    })
}

fn map_in_loop(n: usize) -> Case {
    let params = [("a", vector()), ("x", Type::F64)];
    case(&params, vec![values(n), Value::f64(0.4)], |b, p| {
        let one = b.emit(Exp::Iota(Atom::i64(1)), "one");
        let out = b.for_loop(n_of(n), &[p[1].into()], |b, i, s| {
            let ys = b.map(Atom::i64(1), &[one], |b, _| {
                let x = b.index(p[0].into(), &[i.into()]);
                vec![b.op2(Op::Mul, x, s[0].into())]
            });
            let sum = b.sum(Atom::i64(1), ys[0].into());
            vec![b.op1(Op::Sin, sum)]
        });
        out[0].into()
    })
}

fn sibling_maps(n: usize) -> Case {
    case(&[("a", vector())], vec![values(n)], |b, p| {
        let one = b.emit(Exp::Iota(Atom::i64(1)), "one");
        let mut product = Atom::f64(1.0);
        for _ in 0..n {
            let ys = b.map(Atom::i64(1), &[one], |b, k| {
                let x = b.index(p[0].into(), &[k[0].into()]);
                vec![b.op2(Op::Mul, x, x)]
            });
            let sum = b.sum(Atom::i64(1), ys[0].into());
            product = b.op2(Op::Mul, product, sum);
        }
        product
    })
}

fn dot(n: usize) -> Case {
    case(&[("a", vector()), ("b", vector())], vec![values(n), values(n)], |b, p| {
        let ys = b
            .map(n_of(n), &[p[0].into(), p[1].into()], |b, x| vec![b.op2(Op::Mul, x[0].into(), x[1].into())]);
        b.sum(n_of(n), ys[0].into())
    })
}

fn matmul(n: usize) -> Case {
    let m = side(n).max(2);
    let flat: Vec<f64> = (0..m * m).map(|i| 0.5 + (i % 5) as f64 * 0.1).collect();
    let matrix = Type::array(vector());
    let args = vec![Value::f64_array(&[m, m], &flat), Value::f64_array(&[m, m], &flat)];
    case(&[("a", matrix.clone()), ("b", matrix)], args, |b, p| {
        let is = b.emit(Exp::Iota(n_of(m)), "is");
        let sums = b.map(n_of(m), &[is], |b, i| {
            let row = b.map(n_of(m), &[is], |b, j| {
                let products = b.map(n_of(m), &[is], |b, k| {
                    let x = b.index(p[0].into(), &[i[0].into(), k[0].into()]);
                    let y = b.index(p[1].into(), &[k[0].into(), j[0].into()]);
                    vec![b.op2(Op::Mul, x, y)]
                });
                let entry = b.sum(n_of(m), products[0].into());
                vec![b.op2(Op::Mul, entry, entry)]
            });
            vec![b.sum(n_of(m), row[0].into())]
        });
        b.sum(n_of(m), sums[0].into())
    })
}

fn scan(n: usize) -> Case {
    case(&[("a", vector())], vec![values(n)], |b, p| {
        let lam = b.lam(&[Type::F64, Type::F64], "x", |b, x| vec![b.op2(Op::Mul, x[0].into(), x[1].into())]);
        let soac =
            Soac::Scan { width: n_of(n), lam, neutral: vec![Atom::f64(1.0)], arrays: vec![p[0].into()] };
        let ys = b.emit(Exp::Soac(soac), "ys");
        b.sum(n_of(n), ys)
    })
}

fn indices(n: usize, into: usize) -> Value {
    Value::i64s(&(0..n).map(|i| (i * 5 % into) as i64).collect::<Vec<_>>())
}

fn gather(n: usize) -> Case {
    let params = [("a", vector()), ("is", Type::array(Type::I64))];
    case(&params, vec![values(n), indices(n, n)], |b, p| {
        let xs = b.emit(Exp::Gather(p[0].into(), p[1].into()), "xs");
        let ys = b.map(n_of(n), &[xs], |b, x| vec![b.op2(Op::Mul, x[0].into(), x[0].into())]);
        b.sum(n_of(n), ys[0].into())
    })
}

fn histogram(n: usize) -> Case {
    let bins = n / 2;
    let params = [("a", vector()), ("is", Type::array(Type::I64))];
    case(&params, vec![values(n), indices(n, bins)], |b, p| {
        let dst = b.emit(Exp::Replicate(vec![n_of(bins)], Atom::f64(0.0)), "dst");
        let lam = b.lam(&[Type::F64, Type::F64], "x", |b, x| vec![b.op2(Op::Add, x[0].into(), x[1].into())]);
        let soac = Soac::Hist {
            width: n_of(n),
            lam,
            neutral: vec![Atom::f64(0.0)],
            dst: vec![dst],
            indices: p[1].into(),
            values: vec![p[0].into()],
        };
        let h = b.emit(Exp::Soac(soac), "h");
        let ys = b.map(n_of(bins), &[h], |b, x| vec![b.op2(Op::Mul, x[0].into(), x[0].into())]);
        b.sum(n_of(bins), ys[0].into())
    })
}

fn histogram_of(
    n: usize,
    bins: usize,
    neutral: f64,
    op: impl FnOnce(&mut Builder<'_>, Atom, Atom) -> Atom,
) -> Case {
    let params = [("a", vector()), ("is", Type::array(Type::I64))];
    case(&params, vec![values(n), indices(n, bins)], |b, p| {
        let dst = b.emit(Exp::Replicate(vec![n_of(bins)], Atom::f64(1.5)), "dst");
        let lam = b.lam(&[Type::F64, Type::F64], "x", |b, x| vec![op(b, x[0].into(), x[1].into())]);
        let (indices, values) = (p[1].into(), vec![p[0].into()]);
        let soac = Soac::Hist {
            width: n_of(n),
            lam,
            neutral: vec![Atom::f64(neutral)],
            dst: vec![dst],
            indices,
            values,
        };
        let h = b.emit(Exp::Soac(soac), "h");
        b.sum(n_of(bins), h)
    })
}

fn histogram_of_products(n: usize) -> Case {
    histogram_of(n, n / 2, 1.0, |b, x, y| b.op2(Op::Mul, x, y))
}

/// As many bins for all sizes: the work of sorting grows with the logarithm of their number.
fn histogram_in_general(n: usize) -> Case {
    histogram_of(n, 8, 0.0, |b, x, y| {
        let product = b.op2(Op::Mul, x, y);
        let part = b.op2(Op::Mul, product, Atom::f64(0.01));
        let sum = b.op2(Op::Add, x, y);
        b.op2(Op::Add, sum, part)
    })
}

/// Every iteration writes one element of a carried array of size n: by a scatter and by a maximum.
fn few_writes(n: usize) -> Case {
    let params = [("a", vector()), ("is", Type::array(Type::I64))];
    case(&params, vec![values(n), indices(n, n)], |b, p| {
        let out = b.for_loop(n_of(n), &[p[0].into()], |b, i, state| {
            let at = b.index(p[1].into(), &[i.into()]);
            let indices = b.emit(Exp::ArrayLit(Type::I64, vec![at]), "at");
            let x = b.index(state[0].into(), &[at]);
            let x = b.op1(Op::Sin, x);
            let values = b.emit(Exp::ArrayLit(Type::F64, vec![x]), "xs");
            let width = Atom::i64(1);
            let scattered = Soac::Scatter { width, dst: state[0].into(), indices, values };
            let scattered = b.emit(Exp::Soac(scattered), "s");
            let lam =
                b.lam(&[Type::F64, Type::F64], "x", |b, x| vec![b.op2(Op::Max, x[0].into(), x[1].into())]);
            let (neutral, dst, values) = (vec![Atom::f64(f64::NEG_INFINITY)], vec![scattered], vec![values]);
            vec![b.emit(Exp::Soac(Soac::Hist { width, lam, neutral, dst, indices, values }), "h")]
        });
        b.sum(n_of(n), out[0].into())
    })
}

/// Rows of four added to rows by index, and scattered.
fn rows_by_index(n: usize) -> Case {
    let params = [("a", vector()), ("is", Type::array(Type::I64))];
    case(&params, vec![values(4 * n), indices(n, n / 2)], |b, p| {
        let (four, half) = (Atom::i64(4), n_of(n / 2));
        let rows = Exp::Reshape { shape: vec![n_of(n), four], from: 1, array: p[0].into() };
        let rows = b.emit(rows, "rows");
        let dst = b.emit(Exp::Replicate(vec![half, four], Atom::f64(0.5)), "dst");
        let (width, indices) = (n_of(n), p[1].into());
        let dst = b.emit(Exp::Soac(Soac::Scatter { width, dst, indices, values: rows }), "s");
        let row = || Type::array(Type::F64);
        let lam = b.lam(&[row(), row()], "x", |b, x| {
            let sums = b.map(four, &[x[0].into(), x[1].into()], |b, x| {
                vec![b.op2(Op::Add, x[0].into(), x[1].into())]
            });
            vec![sums[0].into()]
        });
        let zero = b.emit(Exp::Replicate(vec![four], Atom::f64(0.0)), "zero");
        let (neutral, dst, values) = (vec![zero], vec![dst], vec![rows]);
        let sums = b.emit(Exp::Soac(Soac::Hist { width, lam, neutral, dst, indices, values }), "h");
        let count = n_of(n / 2 * 4);
        let flat = b.emit(Exp::Reshape { shape: vec![count], from: 2, array: sums }, "flat");
        b.sum(count, flat)
    })
}

fn captured(n: usize) -> Case {
    // Every iteration reads two elements of an array of size n made by the program.
    case(&[("a", vector())], vec![values(n)], |b, p| {
        let c = b.map(n_of(n), &[p[0].into()], |b, x| vec![b.op1(Op::Sin, x[0].into())]);
        let is = b.emit(Exp::Iota(n_of(n)), "is");
        let ys = b.map(n_of(n), &[is], |b, i| {
            let x = b.index(c[0].into(), &[i[0].into()]);
            let first = b.index(c[0].into(), &[Atom::i64(0)]);
            vec![b.op2(Op::Mul, x, first)]
        });
        b.sum(n_of(n), ys[0].into())
    })
}

fn long_loop(n: usize) -> Case {
    case(&[("x", Type::F64)], vec![Value::f64(0.5)], |b, p| {
        let out = b.for_loop(n_of(n), &[p[0].into()], |b, _, s| {
            let sin = b.op1(Op::Sin, s[0].into());
            vec![b.op2(Op::Mul, sin, s[0].into())]
        });
        out[0].into()
    })
}

/// `n` uses of the first component of a tuple of `n` components.
fn wide_tuple(n: usize) -> Case {
    case(&[("x", Type::F64)], vec![Value::f64(0.5)], |b, p| {
        let parts: Vec<Atom> = (0..n).map(|_| b.op1(Op::Sin, p[0].into())).collect();
        let tuple = b.emit(Exp::Tuple(parts), "t");
        let mut sum = Atom::f64(0.0);
        for k in 0..n {
            let x = b.emit(Exp::Proj(tuple, k % 3), "x");
            let y = b.op1(Op::Sin, x);
            sum = b.op2(Op::Add, sum, y);
        }
        sum
    })
}

/// A loop over `n` values of a sum of eight alternatives.
fn large_sum(n: usize) -> Case {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let sum_type = Type::sum(NAMES.iter().enumerate().map(|(k, name)| (*name, vec![Type::F64; 1 + k % 2])));
    case(&[("x", Type::F64)], vec![Value::f64(0.5)], |b, p| {
        let out = b.for_loop(n_of(n), &[p[0].into()], |b, i, s| {
            let even = b.op2(Op::Mod, i.into(), Atom::i64(2));
            let c = b.op2(Op::Eq, even, Atom::i64(0));
            let x: Atom = s[0].into();
            let v = b.if_(
                c,
                |b| vec![b.emit(Exp::Inject(sum_type.clone(), 2, vec![x]), "v")],
                |b| vec![b.emit(Exp::Inject(sum_type.clone(), 5, vec![x, x]), "v")],
            );
            let r = b.match_(v[0].into(), |b, _, fields| {
                let total =
                    fields.iter().skip(1).fold(Atom::from(fields[0]), |t, f| b.op2(Op::Mul, t, (*f).into()));
                vec![b.op1(Op::Sin, total)]
            });
            vec![r[0].into()]
        });
        out[0].into()
    })
}
