//! Rules for reading and writing parts of arrays and for operations on shapes.
//!
//! Source: T. Smeding, PhD thesis, figure 7.8, extended by `with`, slices and shape operations. All of them are linear;
//! each rule is the transpose.

use super::cotangent::Cotangent;
use super::desc::Desc;
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use pullback_core::{Atom, Exp, Lam, SliceDim, Soac, Stm, Type, Var, View};
use pullback_prim::Op;

impl<'p> Reverse<'p> {
    /// `a_bar += f(y_bar)` leaf by leaf, with `y_bar` dense; or by name, where nobody here pays for that.
    pub(crate) fn dense_map(
        &mut self,
        stm: &Stm,
        a: Atom,
        c: &Cotangent,
        env: &mut Env,
        f: impl Fn(Atom) -> Exp,
    ) -> Result<(), Unsupported> {
        if !self.is_active(a) {
            return Ok(());
        }
        if self.goes_by_name(env, stm.pat[0], c) {
            return self.contribute_by_name(env, stm.pat[0], c.clone());
        }
        let d = self.dense_of(stm.pat[0].into(), c);
        let atoms = d.atoms.iter().map(|&x| self.b.emit(f(x), "x_bar")).collect();
        let desc = self.stored_of(a);
        self.contribute(env, a, Cotangent::new(desc, atoms));
        Ok(())
    }

    /// If only single elements of `y` have cotangents: the same for `a`, at other indices.
    pub(crate) fn move_entries(
        &mut self,
        a: Atom,
        c: &Cotangent,
        env: &mut Env,
        mut f: impl FnMut(&mut Self, Atom) -> Atom,
    ) -> bool {
        let Some(parts) = c.hot_parts() else { return false };
        if !parts.dense.is_absent() {
            return false;
        }
        let len = self.size(a, &[], 0);
        for e in parts.entries {
            let mut index = f(self, e.index);
            if e.maybe {
                let nowhere = self.b.op2(Op::Lt, e.index, Atom::i64(0));
                index = self.b.select(nowhere, Atom::i64(-1), index);
            }
            self.contribute(env, a, Cotangent::hot(len, index, e.maybe, e.payload));
        }
        true
    }

    pub(crate) fn reverse(
        &mut self,
        stm: &Stm,
        a: Atom,
        c: &Cotangent,
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let last = |s: &mut Self, i: Atom| {
            let n = s.size(a, &[], 0);
            let below = s.b.op2(Op::Sub, n, Atom::i64(1));
            s.b.op2(Op::Sub, below, i)
        };
        if self.move_entries(a, c, env, last) {
            return Ok(());
        }
        self.dense_map(stm, a, c, env, Exp::Reverse)
    }

    pub(crate) fn slice(
        &mut self,
        stm: &Stm,
        a: Atom,
        slice: SliceDim,
        c: &Cotangent,
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        if !self.is_active(a) {
            return Ok(());
        }
        let moved = self.move_entries(a, c, env, |s, i| {
            let offset = s.b.op2(Op::Mul, i, slice.stride);
            s.b.op2(Op::Add, slice.start, offset)
        });
        if moved {
            return Ok(());
        }
        if self.goes_by_name(env, stm.pat[0], c) || !self.stands_for(env, stm.pat[0]).1.is_empty() {
            return self.contribute_by_name(env, stm.pat[0], c.clone());
        }
        let d = self.dense_of(stm.pat[0].into(), c);
        self.add_part(a, &View::Slice(slice), &d, env);
        Ok(())
    }

    /// `view(a)_bar += d`: into the open accumulator, or in place into the dense cotangent.
    fn add_part(&mut self, a: Atom, view: &View, d: &Cotangent, env: &mut Env) {
        let Some(v) = a.var() else { return };
        let open = env.accs.get(&v).cloned();
        let add = |s: &mut Self, accs: &[Atom]| {
            for (&acc, &x) in accs.iter().zip(&d.atoms) {
                let part = s.b.emit(Exp::AccView(acc, view.clone()), "acc");
                s.b.emit(Exp::AccAdd(part, Vec::new(), x), "done");
            }
        };
        if let Some(accs) = open {
            return add(self, &accs);
        }
        let before = self.take(env, v);
        let base = self.dense_of(a, &before);
        let params: Vec<Var> =
            base.desc.types().into_iter().map(|t| self.b.fresh(Type::acc(t), "acc")).collect();
        let accs: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
        self.b.open();
        add(self, &accs);
        let body = self.b.close(Vec::new());
        let out = self.b.emit_all(Exp::WithAcc(base.atoms, Lam { params, body }), "x_bar");
        self.contribute(env, a, Cotangent::new(base.desc, out.into_iter().map(Atom::Var).collect()));
    }

    pub(crate) fn update(&mut self, stm: &Stm, a: Atom, ix: &[Atom], v: Atom, c: &Cotangent, env: &mut Env) {
        if self.update_entries(a, ix, v, c, env) {
            return;
        }
        let d = self.dense_of(stm.pat[0].into(), c);
        let part = self.owned_element(&d, ix);
        let zero = self.dense_of(v, &Cotangent::absent());
        self.contribute(env, v, part);
        // An integer or boolean value that is written may stand beside active ones only in sums; then `zero` has
        // the stored representation as well.
        if self.is_active(a) {
            let pairs = d.atoms.iter().zip(&zero.atoms);
            let atoms = pairs.map(|(&x, &z)| self.b.emit(Exp::Update(x, ix.to_vec(), z), "x_bar")).collect();
            self.contribute(env, a, Cotangent::new(d.desc, atoms));
        }
    }

    /// The element at these indices, a copy if it is an array: a view would keep the whole array in use, and then the
    /// write that follows would copy all of it.
    fn owned_element(&mut self, d: &Cotangent, ix: &[Atom]) -> Cotangent {
        let Some((&last, outer)) = ix.split_last() else { return d.clone() };
        let part = self.element(d, outer);
        let Some(item) = part.desc.element().cloned() else { return part };
        if item.element().is_none() {
            return self.element(d, ix);
        }
        let only = self.b.emit(Exp::ArrayLit(Type::I64, vec![last]), "ix");
        let mut atoms = Vec::new();
        for &array in &part.atoms {
            let copy = self.b.emit(Exp::Gather(array, only), "x_bar");
            atoms.push(self.b.index(copy, &[Atom::i64(0)]));
        }
        Cotangent::new(item, atoms)
    }

    /// The indices of a slice.
    fn slice_indices(&mut self, slice: SliceDim) -> Atom {
        let is = self.b.emit(Exp::Iota(slice.len), "is");
        let out = self.b.map(slice.len, &[is], |b, i| {
            let offset = b.op2(Op::Mul, i[0].into(), slice.stride);
            vec![b.op2(Op::Add, slice.start, offset)]
        });
        out[0].into()
    }

    /// Scalars and a few hot entries: stays a few hot entries.
    fn update_entries(&mut self, a: Atom, ix: &[Atom], v: Atom, c: &Cotangent, env: &mut Env) -> bool {
        let ([ix], Some(parts)) = (ix, c.hot_parts()) else { return false };
        let scalar = |d: &Desc| matches!(d, Desc::Real(_));
        if !parts.dense.is_absent() || !parts.entries.iter().all(|e| scalar(&e.payload.desc)) {
            return false;
        }
        for e in parts.entries {
            let hit = self.b.op2(Op::Eq, e.index, *ix);
            let x = e.payload.atoms[0];
            let zero = Atom::Const(self.b.scalar(x).zero());
            let mine = self.b.select(hit, x, zero);
            self.contribute(env, v, Cotangent::new(e.payload.desc.clone(), vec![mine]));
            let other = self.b.select(hit, Atom::i64(-1), e.index);
            self.contribute(env, a, Cotangent::hot(parts.len, other, true, e.payload));
        }
        true
    }

    pub(crate) fn update_slice(
        &mut self,
        stm: &Stm,
        a: Atom,
        slice: SliceDim,
        v: Atom,
        c: &Cotangent,
        env: &mut Env,
    ) {
        let d = self.dense_of(stm.pat[0].into(), c);
        if self.is_active(v) {
            // Gathered, not sliced: as in `owned_element`.
            let indices = self.slice_indices(slice);
            let part = d.atoms.iter().map(|&x| self.b.emit(Exp::Gather(x, indices), "x_bar")).collect();
            self.contribute(env, v, Cotangent::new(d.desc.clone(), part));
        }
        if self.is_active(a) {
            let zero = self.dense_of(v, &Cotangent::absent());
            let pairs = d.atoms.iter().zip(&zero.atoms);
            let atoms = pairs.map(|(&x, &z)| self.b.emit(Exp::UpdateSlice(x, slice, z), "x_bar")).collect();
            self.contribute(env, a, Cotangent::new(d.desc, atoms));
        }
    }

    pub(crate) fn concat(&mut self, stm: &Stm, arrays: &[Atom], c: &Cotangent, env: &mut Env) {
        let d = self.dense_of(stm.pat[0].into(), c);
        let mut start = Atom::i64(0);
        for &a in arrays {
            let len = self.size(a, &[], 0);
            if self.is_active(a) {
                let slice = SliceDim { start, len, stride: Atom::i64(1) };
                let part = d.atoms.iter().map(|&x| self.b.emit(Exp::Slice(x, slice), "x_bar")).collect();
                self.contribute(env, a, Cotangent::new(d.desc.clone(), part));
            }
            start = self.b.op2(Op::Add, start, len);
        }
    }

    pub(crate) fn replicate(&mut self, stm: &Stm, shape: &[Atom], x: Atom, c: &Cotangent, env: &mut Env) {
        if !self.is_active(x) {
            return;
        }
        let d = self.dense_of(stm.pat[0].into(), c);
        let desc = self.stored_of(x);
        let zero = self.dense_of(x, &Cotangent::absent());
        let mut atoms = Vec::new();
        for (&array, &zero) in d.atoms.iter().zip(&zero.atoms) {
            let mut width = Atom::i64(1);
            for &n in shape {
                width = self.b.op2(Op::Mul, width, n);
            }
            let flat = Exp::Reshape { shape: vec![width], from: shape.len(), array };
            let array = if shape.len() == 1 { array } else { self.b.emit(flat, "x_bar") };
            atoms.push(self.sum(width, array, zero));
        }
        self.contribute(env, x, Cotangent::new(desc, atoms));
    }

    /// The sum of the elements of an array of cotangents.
    pub(crate) fn sum(&mut self, width: Atom, array: Atom, zero: Atom) -> Atom {
        let elem = self.b.elem(array);
        if elem.scalar().is_some() {
            return self.b.sum(width, array);
        }
        let lam = self.b.lam(&[elem.clone(), elem], "x_bar", |b, p| {
            vec![b.emit(Exp::Plus(p[0].into(), p[1].into()), "x_bar")]
        });
        let reduce = Soac::Reduce { width, lam, neutral: vec![zero], arrays: vec![array], commutative: true };
        self.b.emit(Exp::Soac(reduce), "x_bar")
    }
}
