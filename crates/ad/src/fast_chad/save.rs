//! Save lists: what the forward pass keeps for the reverse pass.
//!
//! Source: T. Smeding, PhD thesis, section 7.3 (`D0S`), with the save list computed instead of constructed: the names
//! that the reverse code mentions, after dead code is gone, and that the forward body binds. So no value is stored
//! twice and nothing is stored that nobody reads.
//!
//! Values that are neither scalars nor sums are stored in a box (a sum with one alternative): arrays bound in different
//! iterations may have different shapes, and boxing shares them instead of copying.

use super::reverse::Reverse;
use pullback_base::index::IdMap;
use pullback_core::{Atom, Body, Exp, Lam, Stm, Type, TypeId, Var};

fn boxed(ty: &Type) -> Option<Type> {
    match ty {
        Type::Scalar(_) | Type::Sum(_) | Type::Named(_) => None,
        Type::Tuple(_) | Type::Array(_) | Type::Acc(_) => Some(Type::sum([("tape", vec![ty.clone()])])),
    }
}

impl<'p> Reverse<'p> {
    /// The type of a tape's elements for a variable.
    pub(crate) fn tape_type(&self, v: Var) -> Type {
        let ty = &self.b.program.vars[v].ty;
        boxed(ty).unwrap_or_else(|| ty.clone())
    }
    /// What is emitted by `f` is marked as a tape, so that its memory can be measured.
    pub(crate) fn as_tape<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let of = self.b.origin.rule.and_then(|(_, of)| of);
        let before = self.b.origin.rule.replace(("fast_chad.tape", of));
        let out = f(self);
        self.b.origin.rule = before;
        out
    }
    /// A variable for a tape.
    pub(crate) fn tape(&mut self, ty: Type) -> Var {
        self.as_tape(|s| s.b.fresh(ty, "tape"))
    }
    /// What is stored of a value: in a box unless it is a scalar or a sum.
    pub(crate) fn store(&mut self, a: Atom) -> Atom {
        match boxed(&self.b.ty(a)) {
            None => a,
            Some(ty) => self.as_tape(|s| s.b.emit(Exp::Inject(ty, 0, vec![a]), "tape")),
        }
    }
    /// Emits forward statements; returns what is stored of these variables.
    ///
    /// Of a part of another array a copy is stored, made at once: the part itself would keep the whole in use, and a later
    /// write in place would copy all of it. Reverse code that reads a whole array does at least as much work.
    pub(crate) fn emit_saving(&mut self, forward: &[Stm], saves: &[Var]) -> Vec<Atom> {
        let mut values: IdMap<Var, Atom> = saves.iter().map(|&v| (v, v.into())).collect();
        for stm in forward {
            self.b.emit_stm(stm.clone());
            let part =
                matches!(stm.exp, Exp::Index(..) | Exp::Slice(..) | Exp::Reshape { .. } | Exp::Atom(_));
            let (true, [v]) = (part, &stm.pat[..]) else { continue };
            if values.contains_key(v) && self.b.program.vars[*v].ty.rank() > 0 {
                values.insert(*v, self.owned_copy(*v));
            }
        }
        let stored = saves.iter().map(|v| match boxed(&self.b.program.vars[*v].ty) {
            None => values[v],
            Some(ty) => self.as_tape(|s| s.b.emit(Exp::Inject(ty, 0, vec![values[v]]), "tape")),
        });
        stored.collect()
    }
    /// A copy of an array that is a part of another one. What is no array is returned as it is.
    pub(crate) fn owned_copy(&mut self, v: Var) -> Atom {
        if self.b.program.vars[v].ty.rank() == 0 {
            return v.into();
        }
        let n = self.b.size(v.into(), 0);
        let is = self.b.emit(Exp::Iota(n), "is");
        self.b.emit(Exp::Gather(v.into(), is), "copy")
    }
    /// Binds a variable again to what was stored.
    pub(crate) fn load(&mut self, v: Var, stored: Atom) {
        let ty = self.b.program.vars[v].ty.clone();
        let exp = match boxed(&ty) {
            None => Exp::Atom(stored),
            Some(_) => {
                let inside = self.b.fresh(ty, "tape");
                let body = Body { stms: Vec::new(), result: vec![inside.into()] };
                Exp::Match(stored, vec![Lam { params: vec![inside], body }])
            }
        };
        self.b.emit_to(vec![v], exp);
    }
    /// Binds a variable again to what an iteration stored.
    pub(crate) fn load_element(&mut self, v: Var, tape: Var, index: Atom) {
        let element = Exp::Index(tape.into(), vec![index]);
        if boxed(&self.b.program.vars[v].ty).is_none() {
            return self.b.emit_to(vec![v], element);
        }
        let stored = self.b.emit(element, "tape");
        self.load(v, stored);
    }
    /// Some value of a type, for the branch that was not taken. Nobody reads it.
    pub(crate) fn placeholder(&mut self, ty: &Type) -> Atom {
        self.some_value(ty, &mut Vec::new()).unwrap_or_else(|| crate::tangent::unit(&mut self.b))
    }
    /// `None`: every value of the type contains one of a type in `open` (types whose value is being made).
    fn some_value(&mut self, ty: &Type, open: &mut Vec<TypeId>) -> Option<Atom> {
        Some(match ty {
            Type::Scalar(s) => Atom::Const(s.zero()),
            Type::Tuple(items) => {
                let items: Option<Vec<Atom>> = items.iter().map(|t| self.some_value(t, open)).collect();
                self.b.emit(Exp::Tuple(items?), "hole")
            }
            Type::Array(item) => self.b.emit(Exp::ArrayLit((**item).clone(), Vec::new()), "hole"),
            Type::Sum(_) => return self.some_alternative(ty, open),
            Type::Named(id) => {
                if open.contains(id) {
                    return None;
                }
                open.push(*id);
                let value = self.some_alternative(ty, open);
                open.pop();
                return value;
            }
            Type::Acc(_) => return None,
        })
    }
    fn some_alternative(&mut self, ty: &Type, open: &mut Vec<TypeId>) -> Option<Atom> {
        let variants = self.b.program.variants(ty).unwrap_or_default().to_vec();
        for (k, variant) in variants.iter().enumerate() {
            let fields: Option<Vec<Atom>> = variant.fields.iter().map(|t| self.some_value(t, open)).collect();
            if let Some(fields) = fields {
                return Some(self.b.emit(Exp::Inject(ty.clone(), k, fields), "hole"));
            }
        }
        None
    }
}
