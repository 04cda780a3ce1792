//! Who may write in place.
//!
//! A *root* is memory that was made at one place. A variable has the roots that its elements may lie in. An array may be
//! overwritten if all its roots were made in the same iteration of the same loops as the write (the same *frame*), and no
//! variable with one of these roots is used afterwards. Anything else is copied first. Where several bodies belong to one
//! statement, what is needed after one of them is *held* while that one is lowered.

use super::proved::Economy;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Body, Var};
use std::collections::BTreeSet;

/// Memory made at one place.
pub(super) type Root = usize;
/// Roots that a value may lie in.
pub(super) type Roots = BTreeSet<Root>;

#[derive(Debug, Default)]
struct RootInfo {
    frame: usize,
    /// Whether it is ours: not an argument, not shared with code that we do not see.
    owned: bool,
    /// Whether the next iteration uses the same memory for something else.
    reused: bool,
    sharing: Vec<Var>,
}

#[derive(Debug)]
struct BodyUses {
    frame: usize,
    /// See [`last_uses`].
    last: IdMap<Var, usize>,
    at: usize,
}

/// What is known about owners at a point of the program.
#[derive(Debug, Default)]
pub(super) struct Owners {
    roots: IdMap<Var, Roots>,
    info: Vec<RootInfo>,
    frame: usize,
    frames: usize,
    /// The frames around the present one.
    outer: Vec<usize>,
    bodies: Vec<BodyUses>,
    /// Memory that is needed after the present bodies, whatever they say.
    held: Vec<Roots>,
    /// Nothing is written over.
    is_plain: bool,
}

impl Owners {
    pub(super) fn new(economy: Economy) -> Owners {
        Owners { is_plain: economy == Economy::Plain, ..Owners::default() }
    }
    /// Memory that is made here.
    pub(super) fn fresh(&mut self) -> Roots {
        self.root(true, false)
    }
    /// Memory of somebody else.
    pub(super) fn foreign(&mut self) -> Roots {
        self.root(false, false)
    }
    /// Memory for the state of a loop, made before it; seen from its body.
    pub(super) fn state(&mut self) -> Roots {
        self.root(true, true)
    }
    fn root(&mut self, owned: bool, reused: bool) -> Roots {
        self.info.push(RootInfo { frame: self.frame, owned, reused, sharing: Vec::new() });
        Roots::from([self.info.len() - 1])
    }
    /// Something that is not known here points to this memory from here on: nothing may write over it.
    pub(super) fn keep(&mut self, roots: &Roots) {
        roots.iter().for_each(|r| self.info[*r].owned = false);
    }
    pub(super) fn bind(&mut self, v: Var, roots: Roots) {
        for r in &roots {
            self.info[*r].sharing.push(v);
        }
        self.roots.insert(v, roots);
    }
    pub(super) fn of(&self, v: Option<Var>) -> Roots {
        v.and_then(|v| self.roots.get(&v)).cloned().unwrap_or_default()
    }
    /// Whether some of this memory will be used for something else while the value may still be needed.
    pub(super) fn is_reused(&self, roots: &Roots) -> bool {
        roots.iter().any(|r| self.info[*r].reused)
    }
    /// Whether no loop of the function is around this place.
    pub(super) fn is_outermost(&self) -> bool {
        self.outer.is_empty()
    }
    /// A new iteration of a loop: what was made before it may not be overwritten in it.
    pub(super) fn enter(&mut self) {
        self.frames += 1;
        self.outer.push(std::mem::replace(&mut self.frame, self.frames));
    }
    /// The end of the loop entered last.
    pub(super) fn leave(&mut self) {
        self.frame = self.outer.pop().unwrap_or_default();
    }
    pub(super) fn open(&mut self, body: &Body) {
        self.bodies.push(BodyUses { frame: self.frame, last: last_uses(body), at: 0 });
    }
    pub(super) fn at(&mut self, k: usize) {
        if let Some(body) = self.bodies.last_mut() {
            body.at = k;
        }
    }
    pub(super) fn close(&mut self) {
        self.bodies.pop();
    }
    /// Nothing may write over this memory until it is let go.
    pub(super) fn hold(&mut self, roots: Roots) {
        self.held.push(roots);
    }
    /// Lets go what was held last.
    pub(super) fn let_go(&mut self) {
        self.held.pop();
    }
    fn is_live(&self, v: Var) -> bool {
        let here = self.bodies.iter().rev().take_while(|b| b.frame == self.frame);
        here.into_iter().any(|b| b.last.get(&v).is_some_and(|last| *last > b.at))
    }
    /// Whether the array in this variable may be overwritten by the present statement, which also reads `others`.
    pub(super) fn may_write(&self, v: Var, others: &IdSet<Var>) -> bool {
        let Some(roots) = self.roots.get(&v) else { return false };
        let free = |w: &Var| !self.is_live(*w) && (*w == v || !others.contains(w));
        !self.is_plain
            && !roots.is_empty()
            && free(&v)
            && !others.contains(&v)
            && roots.iter().all(|r| {
                let info = &self.info[*r];
                let held = self.held.iter().any(|held| held.contains(r));
                info.owned && info.frame == self.frame && !held && info.sharing.iter().all(free)
            })
    }
}

/// The last statement that mentions a variable; results come after all statements.
pub(super) fn last_uses(body: &Body) -> IdMap<Var, usize> {
    let mut last = IdMap::new();
    for (k, stm) in body.stms.iter().enumerate() {
        last.extend(free_vars_exp(&stm.exp).into_iter().map(|v| (v, k)));
    }
    last.extend(body.result.iter().filter_map(|a| a.var()).map(|v| (v, usize::MAX)));
    last
}
