//! Rules for scan.
//!
//! Source: Schenck et al., IFL 2023 (prefix sums); every other operator as the loop that the scan means.

use super::config::Mutation;
use super::ct::Ct;
use super::operator::{Kind, applied, kinds};
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::{Atom, Builder, Exp, Lam, Soac, Stm};
use pullback_prim::Op;

impl<'p> Reverse<'p> {
    #[allow(clippy::too_many_arguments, reason = "the parts of one construct")]
    pub(crate) fn scan(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        neutral: &[Atom],
        arrays: &[Atom],
        cts: Vec<Ct>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.scan", stm);
        let sums = kinds(lam).iter().all(|&k| k == Kind::Add)
            && !neutral.iter().any(|&a| self.is_active(a))
            && !self.touches(&stm.exp);
        if !sums {
            let (lam, neutral, arrays) = (lam.clone(), neutral.to_vec(), arrays.to_vec());
            return self.rewrite(stm, cts, env, |b| scan_loop(b, width, &lam, &neutral, &arrays));
        }
        for (k, (&y, c)) in stm.pat.iter().zip(&cts).enumerate() {
            if c.is_absent() || !self.is_active(arrays[k]) {
                continue;
            }
            let d = self.dense_of(y.into(), c);
            let mut atoms = Vec::new();
            for &x in &d.atoms {
                let operator = self.addition(x);
                let forgotten = self.mutant(Mutation::ScanNotReversed);
                let x = if forgotten { x } else { self.b.emit(Exp::Reverse(x), "x_bar") };
                let zero = self.dense_of(neutral[k], &Ct::absent()).atoms;
                let sums = self.scan_of(operator, width, &zero, &[x])[0];
                atoms.push(if forgotten { sums } else { self.b.emit(Exp::Reverse(sums), "x_bar") });
            }
            self.contribute(env, arrays[k], Ct::new(d.desc, atoms));
        }
        Ok(vec![stm.clone()])
    }

    /// The operator that adds elements of an array of cotangents.
    pub(crate) fn addition(&mut self, array: Atom) -> Lam {
        let elem = self.b.elem(array);
        let scalar = elem.scalar().is_some();
        self.b.lam(&[elem.clone(), elem], "x_bar", |b, p| {
            let (x, y) = (p[0].into(), p[1].into());
            vec![if scalar { b.op2(Op::Add, x, y) } else { b.emit(Exp::Plus(x, y), "x_bar") }]
        })
    }

    /// Emits a scan with a copy of the operator.
    pub(crate) fn scan_of(&mut self, lam: Lam, width: Atom, neutral: &[Atom], arrays: &[Atom]) -> Vec<Atom> {
        let lam = copy_lam(self.b.program, &lam, &Subst::new());
        let scan = Soac::Scan { width, lam, neutral: neutral.to_vec(), arrays: arrays.to_vec() };
        self.b.emit_all(Exp::Soac(scan), "partial").into_iter().map(Atom::Var).collect()
    }
}

/// The scan as a loop that stacks its state.
fn scan_loop(b: &mut Builder<'_>, width: Atom, lam: &Lam, neutral: &[Atom], arrays: &[Atom]) -> Vec<Atom> {
    let out = b.for_loop(width, neutral, |b, i, state| {
        let elements: Vec<Atom> = arrays.iter().map(|&a| b.index(a, &[i.into()])).collect();
        let args: Vec<Atom> = state.iter().map(|&v| v.into()).chain(elements).collect();
        let next = applied(b, lam, &args);
        next.iter().chain(&next).copied().collect()
    });
    out.into_iter().skip(neutral.len()).map(Atom::Var).collect()
}
