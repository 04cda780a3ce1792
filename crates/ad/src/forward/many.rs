//! Forward mode along many tangents at once: the tangent of a float is an array with one float per direction.
//!
//! Source: as [`super`]; the idea of tangents that are vectors ("vector forward mode") is in A. Griewank and A. Walther,
//!   Evaluating Derivatives, 2nd edition, section 3.2.
//! Types: `T_k(f) = [k]f` for floats; everything else as in the header of [`super`], so `T_k([]t) = []T_k(t)`.
//! Rules: the rules there, which never look inside the tangent of a float, but for primitives:
//!   `D[p(xs)] = map (\xs_dot -> Σ ∂ᵢp(xs) · xᵢ_dot) xs_dots`, with the partials outside of the map.
//! Guarantee: every primal statement and every partial derivative runs once, whatever `k` is. Tangents are given and
//!   returned stacked (`Type::stacked`): the direction is the outer dimension there, the inner one in `T_k`.

use super::{Forward, run};
use crate::contract::Unsupported;
use crate::many::map_stacked;
use crate::tangent::{Slope, emit_product, is_zero, partial_for, unit, zero_like};
use pullback_base::index::IdMap;
use pullback_core::types::Variant;
use pullback_core::{Atom, Builder, Exp, Lam, Program, Stm, Type, Var, rename};
use pullback_prim::{Op, Partial, Prim, Product};

/// `\xs x_dots -> ys y_dots` with `seeds` tangents for each, stacked; see [`crate::contract::Many`].
pub(super) fn jvp_many(
    program: &mut Program,
    lam: &Lam,
    wanted: &[bool],
    seeds: Atom,
) -> Result<Lam, Unsupported> {
    let inner = run(program, lam, wanted, Some(seeds))?;
    let (xs, x_dots) = inner.params.split_at(lam.params.len());
    let ys = &inner.body.result[..lam.body.result.len()];
    let mut b = Builder::new(program);
    let active: Vec<Var> = {
        let wanted = xs.iter().zip(wanted).filter(|(_, w)| **w).map(|(x, _)| *x);
        wanted.filter(|&x| b.program.is_active(&b.program.vars[x].ty)).collect()
    };
    let mut params = xs.to_vec();
    let mut subst: IdMap<Var, Atom> = IdMap::new();
    b.open();
    for (&x, &x_dot) in active.iter().zip(x_dots) {
        let ty = b.ty(x.into());
        let stacked = match b.program.cotangent(&ty) {
            Ok(Some(t)) => t.stacked(),
            Ok(None) | Err(_) => Type::unit(),
        };
        let stack = b.fresh(stacked, "x_dots");
        params.push(stack);
        subst.insert(x_dot, pack(&mut b, seeds, x.into(), stack.into()));
    }
    let mut body = inner.body.clone();
    rename::substitute_body(&mut body, &subst);
    body.stms.into_iter().for_each(|s| b.emit_stm(s));
    let mut result = ys.to_vec();
    let floats: Vec<Atom> = ys.iter().copied().filter(|&y| b.program.is_active(&b.ty(y))).collect();
    for (&y, &dots) in floats.iter().zip(&body.result[ys.len()..]) {
        result.push(unpack(&mut b, seeds, y, dots));
    }
    let body = b.close(result);
    Ok(Lam { params, body })
}

/// `T_k(t)` from the cotangent type of `t`.
pub(super) fn batched(ty: &Type) -> Type {
    match ty {
        Type::Scalar(_) => Type::array(ty.clone()),
        Type::Array(t) => Type::array(batched(t)),
        Type::Tuple(ts) => Type::Tuple(ts.iter().map(batched).collect()),
        Type::Sum(vs) => {
            let fields = |v: &Variant| v.fields.iter().map(batched).collect();
            Type::Sum(vs.iter().map(|v| Variant { name: v.name.clone(), fields: fields(v) }).collect())
        }
        Type::Named(_) | Type::Acc(_) => ty.clone(),
    }
}

/// The cotangent type of a type that holds floats.
fn tangent(b: &Builder<'_>, ty: &Type) -> Type {
    match b.program.cotangent(ty) {
        Ok(Some(t)) => t,
        Ok(None) | Err(_) => Type::unit(),
    }
}

/// Zero of type `T(type of x)`, or of `T_k` of it, with the shape of `x`; `None`: discrete.
pub(super) fn zero(b: &mut Builder<'_>, seeds: Option<Atom>, x: Atom) -> Option<Atom> {
    let Some(k) = seeds else { return zero_like(b, x) };
    let ty = b.ty(x);
    let target = batched(&b.program.cotangent(&ty).ok()??);
    Some(match &ty {
        Type::Scalar(s) => b.emit(Exp::Replicate(vec![k], Atom::Const(s.zero())), "zeros"),
        Type::Tuple(items) => {
            let mut zeros = Vec::new();
            for i in 0..items.len() {
                let part = b.emit(Exp::Proj(x, i), "part");
                let zero = zero(b, seeds, part);
                zeros.push(zero.unwrap_or_else(|| unit(b)));
            }
            b.emit(Exp::Tuple(zeros), "zero")
        }
        Type::Array(_) => {
            let mut shape = b.shape(x);
            let element = match ty.base() {
                Type::Scalar(s) => {
                    shape.push(k);
                    Atom::Const(s.zero())
                }
                _ => b.emit(Exp::Inject(target.base().clone(), 0, Vec::new()), "zero"),
            };
            b.emit(Exp::Replicate(shape, element), "zeros")
        }
        Type::Sum(_) | Type::Named(_) => b.emit(Exp::Inject(target, 0, Vec::new()), "zero"),
        Type::Acc(_) => return None,
    })
}

impl Forward<'_> {
    /// The tangents of a primitive along `k` directions.
    pub(super) fn prim_many(
        &mut self,
        stm: &Stm,
        prim: Prim,
        args: &[Atom],
        k: Atom,
    ) -> Result<(), Unsupported> {
        let y = stm.pat[0];
        self.linear(stm, |this| {
            if let Prim::Convert(_, to) = prim {
                let x_dot = this.dot(args[0])?;
                let dots = this.b.map(k, &[x_dot], |b, t| vec![b.convert(t[0].into(), to)]);
                return Some(Exp::Atom(dots[0].into()));
            }
            let s = prim.result();
            let mut terms: Vec<(Scale, Atom)> = Vec::new();
            let partials = prim.partials()?;
            for (i, &x) in args.iter().enumerate().take(partials.len()) {
                let partial = partial_for(prim, partials, args, i);
                let Some(x_dot) = this.dot(x).filter(|_| !is_zero(partial)) else { continue };
                let slope = Slope::new(this.b.program, (prim, s), (i, partial), args, y.into());
                terms.push((Scale::new(&mut this.b, slope), x_dot));
            }
            match terms[..] {
                [] => Some(Exp::Replicate(vec![k], Atom::Const(s.zero()))),
                [(Scale::One, x_dot)] => Some(Exp::Atom(x_dot)),
                _ => {
                    let dots: Vec<Atom> = terms.iter().map(|t| t.1).collect();
                    let sums = this.b.map(k, &dots, |b, parts| {
                        let scaled: Vec<Atom> =
                            terms.iter().zip(parts).map(|(t, &part)| t.0.times(b, part.into())).collect();
                        let sum = scaled.into_iter().reduce(|sum, t| b.op2(Op::Add, sum, t));
                        vec![sum.unwrap_or(Atom::Const(s.zero()))]
                    });
                    Some(Exp::Atom(sums[0].into()))
                }
            }
        })
    }
}

/// A partial derivative, already computed.
enum Scale {
    Zero,
    One,
    MinusOne,
    By(Product, Atom),
    /// Of two, by a condition.
    Chosen(Atom, Box<(Scale, Scale)>),
}

impl Scale {
    fn new(b: &mut Builder<'_>, slope: Slope<'_>) -> Scale {
        match slope.partial {
            Partial::Const(0.0) => Scale::Zero,
            Partial::Const(1.0) => Scale::One,
            Partial::Const(-1.0) => Scale::MinusOne,
            Partial::Op(Op::Select, [condition, p, q]) => {
                let condition = slope.of(condition).emit(b);
                let both = (Scale::new(b, slope.of(p)), Scale::new(b, slope.of(q)));
                Scale::Chosen(condition, Box::new(both))
            }
            Partial::Arg(_) | Partial::Result | Partial::Const(_) | Partial::Op(..) => {
                Scale::By(slope.product, slope.emit(b))
            }
        }
    }
    /// Emits the product with a tangent, as [`crate::tangent::emit_scaled`] does.
    fn times(&self, b: &mut Builder<'_>, x: Atom) -> Atom {
        match self {
            Scale::Zero => Atom::Const(b.scalar(x).zero()),
            Scale::One => x,
            Scale::MinusOne => b.op1(Op::Neg, x),
            Scale::By(product, d) => emit_product(b, *product, *d, x),
            Scale::Chosen(condition, both) => {
                let (p, q) = (both.0.times(b, x), both.1.times(b, x));
                b.select(*condition, p, q)
            }
        }
    }
}

/// The permutation that moves the outermost of `rank + 1` dimensions inside, and its inverse.
fn inwards(rank: usize) -> Vec<usize> {
    (1..=rank).chain([0]).collect()
}
fn outwards(rank: usize) -> Vec<usize> {
    std::iter::once(rank).chain(0..rank).collect()
}

/// `T_k` of the value `x` from a stack of its tangents.
fn pack(b: &mut Builder<'_>, k: Atom, x: Atom, stack: Atom) -> Atom {
    let ty = b.ty(x);
    let target = batched(&tangent(b, &ty));
    match &ty {
        Type::Tuple(items) => {
            let parts = items.iter().enumerate().map(|(i, t)| {
                if !b.program.is_active(t) {
                    return unit(b);
                }
                let (x, stack) = (b.emit(Exp::Proj(x, i), "part"), b.emit(Exp::Proj(stack, i), "part"));
                pack(b, k, x, stack)
            });
            let parts = parts.collect();
            b.emit(Exp::Tuple(parts), "x_dot")
        }
        Type::Array(_) => {
            let stack = shaped(b, k, x, stack);
            if ty.base().scalar().is_some() {
                return b.emit(Exp::Rearrange(inwards(ty.rank()), stack), "x_dot");
            }
            let rows = b.emit(Exp::Rearrange(vec![1, 0], stack), "rows");
            let n = b.size(x, 0);
            b.map(n, &[x, rows], |b, row| vec![pack(b, k, row[0].into(), row[1].into())])[0].into()
        }
        Type::Sum(_) | Type::Named(_) => b.match_(x, |b, alternative, fields| {
            let mut parts = Vec::new();
            for (i, &field) in fields.iter().enumerate() {
                let field_type = b.ty(field.into());
                if !b.program.is_active(&field_type) {
                    parts.push(unit(b));
                    continue;
                }
                let column = map_stacked(b, k, &[stack], |b, seed| {
                    let part = b.match_(seed[0], |b, of, payload| {
                        vec![if of == alternative + 1 {
                            payload[i].into()
                        } else {
                            zero_like(b, field.into()).unwrap_or(field.into())
                        }]
                    });
                    vec![part[0].into()]
                });
                parts.push(pack(b, k, field.into(), column[0]));
            }
            vec![b.emit(Exp::Inject(target.clone(), alternative + 1, parts), "x_dot")]
        })[0]
            .into(),
        Type::Scalar(_) | Type::Acc(_) => stack,
    }
}

/// The stack, with the inner shape of `x` also if there is no direction.
fn shaped(b: &mut Builder<'_>, k: Atom, x: Atom, stack: Atom) -> Atom {
    let none = b.op2(Op::Eq, k, Atom::i64(0));
    let base = b.ty(stack).base().clone();
    let stack = b.if_(
        none,
        |b| {
            let element = match &base {
                Type::Scalar(s) => Atom::Const(s.zero()),
                sum => b.emit(Exp::Inject(sum.clone(), 0, Vec::new()), "zero"),
            };
            let shape = std::iter::once(k).chain(b.shape(x)).collect();
            vec![b.emit(Exp::Replicate(shape, element), "none")]
        },
        |_| vec![stack],
    );
    stack[0].into()
}

/// A stack of tangents from `T_k` of the value `y`. An array without elements may have lost its inner sizes on the way,
/// the number of directions among them; those of `y` and `k` are given back.
fn unpack(b: &mut Builder<'_>, k: Atom, y: Atom, dots: Atom) -> Atom {
    let ty = &b.ty(y);
    match ty {
        Type::Scalar(_) | Type::Acc(_) => dots,
        Type::Tuple(items) => {
            let parts = items.iter().enumerate().map(|(i, t)| {
                if !b.program.is_active(t) {
                    return unit(b);
                }
                let (y, dots) = (b.emit(Exp::Proj(y, i), "part"), b.emit(Exp::Proj(dots, i), "part"));
                unpack(b, k, y, dots)
            });
            let parts = parts.collect();
            b.emit(Exp::Tuple(parts), "y_dots")
        }
        Type::Array(_) if ty.base().scalar().is_some() => {
            let mut shape = b.shape(y);
            shape.push(k);
            let from = shape.len();
            let dots = b.emit(Exp::Reshape { shape, from, array: dots }, "y_dots");
            b.emit(Exp::Rearrange(outwards(ty.rank()), dots), "y_dots")
        }
        Type::Array(_) | Type::Sum(_) | Type::Named(_) => {
            let is = b.emit(Exp::Iota(k), "is");
            b.map(k, &[is], |b, i| vec![extract(b, ty, dots, i[0].into())])[0].into()
        }
    }
}

/// The tangent along direction `i` from `T_k` of a value of type `ty`.
fn extract(b: &mut Builder<'_>, ty: &Type, dots: Atom, i: Atom) -> Atom {
    let part = |b: &mut Builder<'_>, t: &Type, dots: Atom| {
        if b.program.is_active(t) { extract(b, t, dots, i) } else { unit(b) }
    };
    match ty {
        Type::Scalar(_) | Type::Acc(_) => b.index(dots, &[i]),
        Type::Tuple(items) => {
            let parts = items.iter().enumerate().map(|(j, t)| {
                let dots = b.emit(Exp::Proj(dots, j), "part");
                part(b, t, dots)
            });
            let parts = parts.collect();
            b.emit(Exp::Tuple(parts), "y_dot")
        }
        // Element by element, because an array without elements need not say how many directions there are.
        Type::Array(element) => {
            let n = b.size(dots, 0);
            b.map(n, &[dots], |b, row| vec![extract(b, element, row[0].into(), i)])[0].into()
        }
        Type::Sum(_) | Type::Named(_) => {
            let target = tangent(b, ty);
            let variants: Vec<Variant> = b.program.variants(ty).map(<[Variant]>::to_vec).unwrap_or_default();
            b.match_(dots, |b, of, payload| {
                let fields = of.checked_sub(1).map_or(&[][..], |j| &variants[j].fields[..]);
                let parts = fields.iter().zip(payload).map(|(t, &dots)| part(b, t, dots.into())).collect();
                vec![b.emit(Exp::Inject(target.clone(), of, parts), "y_dot")]
            })[0]
                .into()
        }
    }
}
