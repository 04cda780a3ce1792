//! Expressions without what is in their bodies: for copies of which only a part is wanted.

use crate::ir::{Body, Exp, Lam, Loop, LoopForm, Soac};

impl Exp {
    /// The same expression with bodies that have neither statements nor results.
    pub fn shell(&self) -> Exp {
        let lam = |lam: &Lam| Lam { params: lam.params.clone(), body: Body::default() };
        match self {
            Exp::Match(a, arms) => Exp::Match(*a, arms.iter().map(lam).collect()),
            Exp::If(c, ..) => Exp::If(*c, Body::default(), Body::default()),
            Exp::Loop(Loop { params, form, body: _, collect, attrs }) => {
                let form = match form {
                    LoopForm::For { .. } => form.clone(),
                    LoopForm::While(_) => LoopForm::While(Body::default()),
                };
                let (params, attrs) = (params.clone(), attrs.clone());
                Exp::Loop(Loop { params, form, body: Body::default(), collect: *collect, attrs })
            }
            Exp::Soac(soac) => Exp::Soac(soac.shell()),
            Exp::WithAcc(inits, l) => Exp::WithAcc(inits.clone(), lam(l)),
            Exp::Vjp { lam: l, args, cotangents, seeds, algorithm } => Exp::Vjp {
                lam: lam(l),
                args: args.clone(),
                cotangents: cotangents.clone(),
                seeds: *seeds,
                algorithm: algorithm.clone(),
            },
            Exp::Jvp { lam: l, args, tangents, seeds, algorithm } => Exp::Jvp {
                lam: lam(l),
                args: args.clone(),
                tangents: tangents.clone(),
                seeds: *seeds,
                algorithm: algorithm.clone(),
            },
            Exp::Custom { primal, rule, args, tape } => {
                Exp::Custom { primal: lam(primal), rule: lam(rule), args: args.clone(), tape: *tape }
            }
            Exp::Marked(mark, _) => Exp::Marked(*mark, Body::default()),
            Exp::Par(bodies) => Exp::Par(vec![Body::default(); bodies.len()]),
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => self.clone(),
        }
    }
}

impl Soac {
    fn shell(&self) -> Soac {
        let empty = |lam: &Lam| Lam { params: lam.params.clone(), body: Body::default() };
        match self {
            Soac::Map { width, lam, arrays } => {
                Soac::Map { width: *width, lam: empty(lam), arrays: arrays.clone() }
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative } => Soac::Reduce {
                width: *width,
                lam: empty(lam),
                neutral: neutral.clone(),
                arrays: arrays.clone(),
                commutative: *commutative,
            },
            Soac::Scan { width, lam, neutral, arrays } => Soac::Scan {
                width: *width,
                lam: empty(lam),
                neutral: neutral.clone(),
                arrays: arrays.clone(),
            },
            Soac::Fused { form, width, pre, lam, neutral, arrays } => Soac::Fused {
                form: *form,
                width: *width,
                pre: empty(pre),
                lam: empty(lam),
                neutral: neutral.clone(),
                arrays: arrays.clone(),
            },
            Soac::Hist { width, lam, neutral, dst, indices, values } => Soac::Hist {
                width: *width,
                lam: empty(lam),
                neutral: neutral.clone(),
                dst: dst.clone(),
                indices: *indices,
                values: values.clone(),
            },
            Soac::Scatter { .. } => self.clone(),
        }
    }
}
