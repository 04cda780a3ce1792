//! Forward mode on second-order array operations: the dual operator.
//!
//! Source: as [`super`]. The rules are those of the header there; operators of reduce, scan and hist become operators on
//! pairs of primal and tangent, which are associative whenever the operator is.

use super::Forward;
use crate::contract::Unsupported;
use crate::regularity::is_smooth;
use crate::tangent::unit;
use pullback_core::{Atom, Exp, Lam, Soac, Var};

/// The tag of the rule for an operation.
pub(super) fn rule_tag(soac: &Soac) -> &'static str {
    match soac {
        Soac::Map { .. } => "forward.map",
        Soac::Reduce { .. } => "forward.reduce",
        Soac::Scan { .. } => "forward.scan",
        Soac::Fused { .. } => "forward.fused",
        Soac::Hist { .. } => "forward.hist",
        Soac::Scatter { .. } => "forward.scatter",
    }
}

impl Forward<'_> {
    pub(super) fn soac(&mut self, pat: &[Var], soac: &Soac) -> Result<(), Unsupported> {
        match soac {
            // [forward.map] D[map f as] = map (D f) as as_dots
            Soac::Map { width, lam, arrays } => {
                let mut params = lam.params.clone();
                let mut arrays = arrays.clone();
                for (&p, &a) in lam.params.iter().zip(&arrays.clone()) {
                    if let Some(a_dot) = self.dot(a) {
                        params.push(self.tangent_of(p)?);
                        arrays.push(a_dot);
                    }
                }
                let body = self.branch(&lam.body, pat)?;
                self.bind(pat, Exp::Soac(Soac::Map { width: *width, lam: Lam { params, body }, arrays }))
            }
            // [forward.reduce] reduce with the dual operator
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                let smooth = is_smooth(&lam.body);
                let Some((lam, neutral)) = self.dual_operator(lam, neutral)? else {
                    self.b.emit_to(pat.to_vec(), Exp::Soac(soac.clone()));
                    return Ok(());
                };
                let arrays = self.with_dots(arrays);
                // Which of two equal elements wins depends on the order: at a kink duals do not commute.
                let commutative = *commutative && smooth;
                self.bind_all(pat, Soac::Reduce { width: *width, lam, neutral, arrays, commutative })
            }
            // [forward.scan] scan with the dual operator
            Soac::Scan { width, lam, neutral, arrays } => {
                let Some((lam, neutral)) = self.dual_operator(lam, neutral)? else {
                    self.b.emit_to(pat.to_vec(), Exp::Soac(soac.clone()));
                    return Ok(());
                };
                let arrays = self.with_dots(arrays);
                self.bind_all(pat, Soac::Scan { width: *width, lam, neutral, arrays })
            }
            // [forward.fused] taken apart before: the rules are those of map, reduce and scan
            Soac::Fused { .. } => {
                let span = self.b.program.vars[pat[0]].origin.span;
                self.unsupported(
                    "a fused operation in a called function",
                    "differentiate before the pass `fuse`",
                    span,
                )
            }
            // [forward.hist] hist with the dual operator
            Soac::Hist { width, lam, neutral, dst, indices, values } => {
                let Some((lam, neutral)) = self.dual_operator(lam, neutral)? else {
                    self.b.emit_to(pat.to_vec(), Exp::Soac(soac.clone()));
                    return Ok(());
                };
                let dst = self.with_dots(dst);
                let values = self.with_dots(values);
                self.bind_all(pat, Soac::Hist { width: *width, lam, neutral, dst, indices: *indices, values })
            }
            // [forward.scatter] the same writes of tangents: the same write wins
            Soac::Scatter { width, dst, indices, values } => {
                self.b.emit_to(pat.to_vec(), Exp::Soac(soac.clone()));
                if self.is_active(pat[0]) {
                    let dst = self.dot_or_unit(*dst);
                    let values = self.dot_or_unit(*values);
                    let y_dot = self.tangent_of(pat[0])?;
                    let exp = Soac::Scatter { width: *width, dst, indices: *indices, values };
                    self.b.emit_to(vec![y_dot], Exp::Soac(exp));
                }
                Ok(())
            }
        }
    }

    /// The operator on `(components, tangents of the active components)`, left then right, and its neutral element.
    /// `None` if no component is active.
    fn dual_operator(
        &mut self,
        lam: &Lam,
        neutral: &[Atom],
    ) -> Result<Option<(Lam, Vec<Atom>)>, Unsupported> {
        let k = neutral.len();
        let (left, right) = lam.params.split_at(k);
        if !lam.params.iter().any(|&p| self.is_active(p)) {
            return Ok(None);
        }
        let left_dots = self.tangents_of(left)?;
        let right_dots = self.tangents_of(right)?;
        let params = [left, &left_dots, right, &right_dots].concat();
        // Activity marks all components of an operator together, so the results that are active match the parameters.
        let body = self.branch(&lam.body, left)?;
        let mut new_neutral = neutral.to_vec();
        for (&p, &e) in left.iter().zip(neutral) {
            if self.is_active(p) {
                let dot = self.dense_dot(e);
                new_neutral.push(dot.unwrap_or_else(|| unit(&mut self.b)));
            }
        }
        Ok(Some((Lam { params, body }, new_neutral)))
    }
    /// The arrays followed by the tangents of those that have floats.
    fn with_dots(&mut self, arrays: &[Atom]) -> Vec<Atom> {
        let dots = self.dense_dots(arrays);
        arrays.iter().copied().chain(dots).collect()
    }
    /// Binds all components with floats to tangents, also those that activity found inactive.
    fn bind_all(&mut self, pat: &[Var], soac: Soac) -> Result<(), Unsupported> {
        for &y in pat {
            if self.b.program.is_active(&self.b.program.vars[y].ty) {
                self.active.insert(y);
            }
        }
        self.bind(pat, Exp::Soac(soac))
    }
}
