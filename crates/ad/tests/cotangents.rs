//! Cotangents of random descriptors: their sum has the value of the dense sum, and a join holds either side.

use pullback_ad::fast_chad::Config;
use pullback_ad::internals::{
    Alternative, Cotangent, Desc, Entry, Reverse, array, choice, coerce, join, maybe, optional, pack, plus,
    product,
};
use pullback_base::Symbol;
use pullback_core::check::{Rules, check};
use pullback_core::print::print;
use pullback_core::{Array, Atom, Buffer, Builder, Exp, Fun, Program, Type, Value};
use pullback_interp::core::Options;
use pullback_prim::Scalar;
use std::sync::Arc;

struct Numbers(u64);
impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn float(&mut self) -> f64 {
        self.next() as f64 / f64::from(1u32 << 30) - 1.0
    }
}

fn random_type(r: &mut Numbers, depth: u32) -> Type {
    match if depth == 0 { 0 } else { r.below(6) } {
        1 => Type::tuple(vec![random_type(r, depth - 1), random_type(r, depth - 1)]),
        2 => Type::sum([
            ("left", vec![random_type(r, depth - 1)]),
            ("right", vec![Type::F64, random_type(r, depth - 1)]),
        ]),
        3 => Type::array(Type::F64),
        4 => Type::array(Type::array(Type::F64)),
        5 => Type::array(Type::sum([("left", vec![Type::F64]), ("right", vec![])])),
        _ => Type::F64,
    }
}

fn random_value(r: &mut Numbers, ty: &Type) -> Value {
    match ty {
        Type::Tuple(items) => Value::Tuple(items.iter().map(|t| random_value(r, t)).collect()),
        Type::Sum(variants) => {
            let k = r.below(variants.len() as u64) as usize;
            Value::Sum(k, Arc::new(variants[k].fields.iter().map(|t| random_value(r, t)).collect()))
        }
        Type::Array(item) => match &**item {
            Type::Array(_) => Value::f64_array(&[3, 2], &[0.5; 6]),
            Type::Scalar(_) => Value::f64_array(&[3], &[0.5; 3]),
            item => {
                let mut data = Buffer::with_capacity(None, 3);
                for _ in 0..3 {
                    data.push(random_value(r, item));
                }
                Value::Array(Array::new(vec![3], data))
            }
        },
        _ => Value::f64(0.5),
    }
}

/// Some descriptor of cotangents of this type.
fn random_desc(r: &mut Numbers, ty: &Type) -> Desc {
    if r.one_in(4) { Desc::Absent } else { present(r, ty) }
}

fn present(r: &mut Numbers, ty: &Type) -> Desc {
    match ty {
        Type::Tuple(items) => product(items.iter().map(|t| random_desc(r, t)).collect()),
        Type::Sum(variants) => choice(
            variants
                .iter()
                .map(|v| Alternative {
                    name: v.name.clone(),
                    fields: v.fields.iter().map(|t| optional(&random_desc(r, t))).collect(),
                })
                .collect(),
        ),
        Type::Array(item) => {
            let whole = |r: &mut Numbers| {
                let dense = array(full(item));
                if r.one_in(3) { maybe(dense) } else { dense }
            };
            if r.one_in(2) {
                return whole(r);
            }
            let dense = if r.one_in(2) { Desc::Absent } else { whole(r) };
            let entry = |r: &mut Numbers| Entry { maybe: r.one_in(2), payload: present(r, item) };
            let entries: Vec<Entry> = (0..1 + r.below(2)).map(|_| entry(r)).collect();
            let entries: Vec<Entry> = entries.into_iter().filter(|e| !e.payload.is_absent()).collect();
            if entries.is_empty() { dense } else { Desc::Hot { dense: Box::new(dense), entries } }
        }
        _ => Desc::Real(Scalar::F64),
    }
}

/// The dense descriptor of an element.
fn full(ty: &Type) -> Desc {
    match ty {
        Type::Array(item) => array(full(item)),
        Type::Sum(variants) => choice(
            variants
                .iter()
                .map(|v| Alternative { name: v.name.clone(), fields: v.fields.iter().map(full).collect() })
                .collect(),
        ),
        _ => Desc::Real(Scalar::F64),
    }
}

/// A random cotangent of the descriptor, at a value of the type.
fn random_atoms(r: &mut Numbers, b: &mut Builder<'_>, desc: &Desc, ty: &Type, x: &Value) -> Vec<Atom> {
    match (desc, ty, x) {
        (Desc::Absent, ..) => Vec::new(),
        (Desc::Real(_), ..) => vec![Atom::f64(r.float())],
        (Desc::Product(items), Type::Tuple(types), Value::Tuple(values)) => {
            let parts = items.iter().zip(types.iter()).zip(values.iter());
            parts.flat_map(|((d, t), v)| random_atoms(r, b, d, t, v)).collect()
        }
        (Desc::Choice(alternatives), Type::Sum(variants), Value::Sum(k, values)) => {
            let sum = desc.types().swap_remove(0);
            if r.one_in(4) {
                return vec![b.emit(Exp::Inject(sum, 0, Vec::new()), "none")];
            }
            let parts = alternatives[*k].fields.iter().zip(&variants[*k].fields).zip(values.iter());
            let mut fields = Vec::new();
            for ((d, t), v) in parts {
                let atoms = random_atoms(r, b, d, t, v);
                fields.push(pack(b, &Cotangent::new(d.clone(), atoms)));
            }
            vec![b.emit(Exp::Inject(sum, k + 1, fields), "x_bar")]
        }
        (Desc::Maybe(item), ..) => {
            let sum = desc.types().swap_remove(0);
            if r.one_in(2) {
                return vec![b.emit(Exp::Inject(sum, 0, Vec::new()), "none")];
            }
            let atoms = random_atoms(r, b, item, ty, x);
            vec![b.emit(Exp::Inject(sum, 1, atoms), "some")]
        }
        (Desc::Array(item), Type::Array(elem), Value::Array(a)) => {
            let rows: Vec<Vec<Atom>> =
                (0..a.shape[0]).map(|i| random_atoms(r, b, item, elem, &a.at(&[i]))).collect();
            let types = item.types();
            let column = |k: usize| rows.iter().map(|row| row[k]).collect::<Vec<Atom>>();
            (0..types.len()).map(|k| b.emit(Exp::ArrayLit(types[k].clone(), column(k)), "x_bar")).collect()
        }
        (Desc::Hot { dense, entries }, Type::Array(elem), Value::Array(a)) => {
            let n = a.shape[0];
            let mut atoms = vec![Atom::i64(n as i64)];
            atoms.extend(random_atoms(r, b, dense, ty, x));
            for e in entries {
                let i = r.below(n as u64) as usize;
                let nowhere = e.maybe && r.one_in(2);
                atoms.push(Atom::i64(if nowhere { -1 } else { i as i64 }));
                atoms.extend(random_atoms(r, b, &e.payload, elem, &a.at(&[i])));
            }
            atoms
        }
        (desc, ty, x) => panic!("{desc:?} of {x:?}: {ty:?}"),
    }
}

fn is_zero(x: &Value) -> bool {
    match x {
        Value::Scalar(s) => s.as_f64() == 0.0,
        Value::Tuple(items) => items.iter().all(is_zero),
        Value::Array(a) => a.elements().all(|v| is_zero(&v)),
        Value::Sum(0, _) => true,
        Value::Sum(_, items) => items.iter().all(is_zero),
        Value::Acc(_) => false,
    }
}

/// Equal as cotangents: `#none` is zero.
fn same(x: &Value, y: &Value) -> bool {
    match (x, y) {
        (Value::Scalar(a), Value::Scalar(b)) => (a.as_f64() - b.as_f64()).abs() < 1e-12,
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Array(a), Value::Array(b)) => {
            a.shape == b.shape && a.elements().zip(b.elements()).all(|(a, b)| same(&a, &b))
        }
        (Value::Sum(0, _), y) => is_zero(y),
        (x, Value::Sum(0, _)) => is_zero(x),
        (Value::Sum(j, a), Value::Sum(k, b)) => j == k && a.iter().zip(b.iter()).all(|(a, b)| same(a, b)),
        _ => false,
    }
}

#[test]
fn sums_and_joins_of_random_cotangents_have_the_value_of_dense_ones() {
    let mut forms = [0usize; 3];
    for seed in 0..3_000u64 {
        let mut r = Numbers(seed * 7919 + 1);
        let ty = random_type(&mut r, 2);
        let x = random_value(&mut r, &ty);
        let (s, t) = (random_desc(&mut r, &ty), random_desc(&mut r, &ty));
        let mut program = Program::default();
        let mut rev = Reverse::new(&mut program, Config::default());
        let param = rev.b.fresh(ty.clone(), "x");
        rev.active.insert(param);
        rev.b.open();
        let (xs, ys) =
            (random_atoms(&mut r, &mut rev.b, &s, &ty, &x), random_atoms(&mut r, &mut rev.b, &t, &ty, &x));
        let (c, d) = (Cotangent::new(s.clone(), xs), Cotangent::new(t.clone(), ys));
        let total = plus(&mut rev.b, c.clone(), d.clone());
        let meet = join(&s, &t);
        forms[0] += usize::from(matches!(total.desc, Desc::Hot { .. }));
        forms[1] += usize::from(matches!(total.desc, Desc::Choice(_)));
        forms[2] += usize::from(matches!(meet, Desc::Maybe(_)));
        let mut results = Vec::new();
        for c in [&total, &c, &d] {
            results.push(rev.value(&ty, c, param.into()));
        }
        let dense = rev.b.emit(Exp::Plus(results[1], results[2]), "dense");
        results.push(dense);
        for c in [&c, &d] {
            let wide = Cotangent::new(meet.clone(), coerce(&mut rev.b, c, &meet));
            results.push(rev.value(&ty, &wide, param.into()));
        }
        let body = rev.b.close(results);
        let mut stms = rev.flush_all(&[param]);
        stms.extend(body.stms);
        let body = pullback_core::Body { stms, result: body.result };
        let types = program.body_types(&body);
        let fun = Fun { name: Symbol::new("main"), params: vec![param], body, results: types, entry: None };
        let f = program.funs.push(fun);
        if let Err(e) = check(&program, Rules::NO_AD) {
            panic!("seed {seed}: {}\n{}", e.to_diagnostic().message, print(&program));
        }
        let out = pullback_interp::core::run(&program, f, vec![x], &Options::default());
        let out = out.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&program))).results;
        let shown = || format!("seed {seed}\n{s:?}\n{t:?}\n{}\n{out:#?}", print(&program));
        assert!(same(&out[0], &out[3]), "the sum: {}", shown());
        assert!(same(&out[1], &out[4]), "the join of the left side: {}", shown());
        assert!(same(&out[2], &out[5]), "the join of the right side: {}", shown());
    }
    assert!(forms.iter().all(|&n| n > 100), "too few interesting descriptors: {forms:?}");
}
