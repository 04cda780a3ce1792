//! Histograms and scatters of core in the language: `permute` over the counters of the nest, too.
//!
//! Rules, inside of a nest with the indices `is`; `k` is an index of the operation, `places` and `values` its arrays over the axes and its elements:
//! ```text
//! hist f dst ks xs      permute f dst (\(is, i, row). let k = places ! (is, i) in (k is inside, (is, k, row))) values
//! hist, of rows by an operator on elements      the same of the elements
//! scatter dst ks xs     let last = permute max (-1) (the same) (\i. i) in \k. cond (0 <= last[k]) xs[last[k], ..] dst[k, ..]
//! ```
//!
//! An index that is outside goes nowhere. Of several elements that a scatter sends to one place the last one stays.

use super::forms::{Result, both, integer};
use super::sizes::Size;
use super::soacs::on_elements;
use super::{FromCore, Part, arr};
use crate::accelerate::language::{AVar, Arr, ArrForm, Exp, Fun, Ty, made};
use crate::accelerate::zeros::lambda;
use pullback_core::{Atom, Lam, Stm};
use pullback_prim::{Op, Scalar};

impl FromCore<'_> {
    // [accelerate.hist]
    pub(super) fn histogram(
        &mut self,
        stm: &Stm,
        (n, lam): (Size, &Lam),
        (target, places, values): (&[Atom], Atom, &[Atom]),
    ) -> Result<Vec<Part>> {
        let dims = self.dims_of(stm.pat[0])?;
        for v in &stm.pat[1..] {
            if self.dims_of(*v)? != dims {
                return self.refuse("a histogram of arrays of different sizes");
            }
        }
        let Some(lam) = on_elements(lam, dims.len() - 1) else {
            return self.refuse("a histogram of arrays whose operator is not one on their elements");
        };
        let (target, values) = (self.each_part(target)?, self.each_part(values)?);
        let of_values: Vec<Size> = [std::slice::from_ref(&n), &dims[1..]].concat();
        let values = self.packed(&of_values, &values)?;
        let target = self.packed(&dims, &target)?;
        let Some(f) = self.operator(lam, &values)? else {
            return self.refuse("a histogram whose operator reads what changes between iterations");
        };
        let to = self.place_of(places, n, &dims)?;
        let sent = self.sent(f, (target, &dims), to, values);
        let sent = self.components(sent, stm.pat.len());
        Ok(sent.into_iter().map(|a| Part::Array(self.own(a))).collect())
    }

    // [accelerate.scatter]
    pub(super) fn scatter(
        &mut self,
        stm: &Stm,
        n: Size,
        (target, places, values): (Atom, Atom, Atom),
    ) -> Result<Vec<Part>> {
        let dims = self.dims_of(stm.pat[0])?;
        let (target, values) = (self.part(target)?, self.part(values)?);
        let outer = &dims[..1];
        let numbers = self.array_of(std::slice::from_ref(&n), "number", |_, i| Ok(i[0].clone()))?.array;
        let nothing = self.array_of(outer, "nothing", |_, _| Ok(Exp::i64(-1)))?.array;
        let pair = Ty::Tuple(vec![Ty::Scalar(Scalar::I64); 2]);
        let later = lambda(&mut self.names, "p", pair, |_, p| integer(Op::Max, &p.proj(0), &p.proj(1)));
        let to = self.place_of(places, n, outer)?;
        let last = self.sent(later, (nothing, outer), to, numbers);
        let last = self.own(last);
        let part = self.generate(stm.pat[0], |this, j| {
            let i = this.element(&last, &j[..1])?;
            let i = this.bind("last", i);
            let at: Vec<Exp> = [std::slice::from_ref(&i), &j[1..]].concat();
            let (new, old) = (this.element_of(&values, &at)?, this.element_of(&target, j)?);
            Ok(made(Exp::cond(integer(Op::Le, &Exp::i64(0), &i), new, old)))
        })?;
        Ok(vec![part])
    }

    /// Arrays of these sizes as one array of tuples, over the axes, too.
    fn packed(&mut self, dims: &[Size], parts: &[Part]) -> Result<AVar> {
        let view = self.array_of(dims, "elements", |this, j| {
            Ok(Exp::packed(parts.iter().map(|p| this.element_of(p, j)).collect::<Result<_>>()?))
        })?;
        Ok(view.array)
    }

    /// Where the element at an index goes, in a target of these sizes.
    fn place_of(&mut self, places: Atom, n: Size, dims: &[Size]) -> Result<Fun> {
        let places = self.part(places)?;
        let places = self.array_of(&[n], "place", |this, i| this.element_of(&places, i))?.array;
        let axes = self.nests[self.top()].axes.len();
        let size = self.size_exp(&dims[0]);
        let param = self.names.fresh("i", Ty::index(axes + dims.len()));
        let at: Vec<Exp> = (0..axes + dims.len()).map(|k| Exp::var(&param).proj(k)).collect();
        let k = self.names.fresh("k", Ty::Scalar(Scalar::I64));
        let place = Exp::var(&k);
        let inside = both(integer(Op::Le, &Exp::i64(0), &place), integer(Op::Lt, &place, &size));
        let to = [&at[..axes], &[place], &at[axes + 1..]].concat();
        let read = made(Exp::index(&places, Exp::tuple(at[..=axes].to_vec())));
        let body = made(Exp::lets(vec![(k, read)], Exp::tuple(vec![inside, Exp::tuple(to)])));
        Ok(Fun { param, body })
    }

    fn sent(&mut self, f: Fun, (target, dims): (AVar, &[Size]), to: Fun, values: AVar) -> AVar {
        let u = ArrForm::Permute(f, Arr::var(&target), to, Arr::var(&values));
        let axes = self.nests[self.top()].axes.iter().map(|a| a.size.clone());
        let dims = axes.chain(dims.iter().cloned()).collect();
        self.let_("sent", arr(u), dims)
    }
}
