//! Finite maps; computations with mutable arrays.

use super::machine::{Machine, checked_size};
use super::value::{Cells, Collector, Entries, IoAct, Node, Num, Val, items, wrong};
use crate::core::arrays::out_of_bounds;
use crate::core::compile::deep;
use crate::core::machine::{Res, internal};
use crate::core::soac::log2;
use pullback_lambda::{Exp, Term, Type};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

impl Machine<'_> {
    /// The value of a map operation or of a computation.
    pub(super) fn effect(&mut self, t: &Term) -> Res<Val> {
        self.step(1)?;
        match t.exp() {
            Exp::MapEmpty(_) => Ok(Val::Map(Rc::new(Entries { items: BTreeMap::new() }))),
            Exp::MapInsert { combine, map, key, value } => {
                let combine = self.eval(combine)?;
                let mut map = self.map_value(map)?;
                let key = self.i64(key)?;
                let value = self.eval(value)?;
                self.step(log2(map.items.len() + 1))?;
                let old = map.items.get(&key).cloned();
                let value = match old {
                    Some(old) => {
                        let partial = self.apply(&combine, old)?;
                        self.apply(&partial, value)?
                    }
                    None => value,
                };
                Rc::make_mut(&mut map).items.insert(key, value);
                Ok(Val::Map(map))
            }
            Exp::MapLookup(map, key) => {
                let map = self.map_value(map)?;
                let key = self.i64(key)?;
                self.step(log2(map.items.len() + 1))?;
                self.option(map.items.get(&key).map(|v| vec![v.clone()]))
            }
            Exp::MapPopMax(map) => {
                let mut map = self.map_value(map)?;
                self.step(log2(map.items.len() + 1))?;
                let last = Rc::make_mut(&mut map).items.pop_last();
                self.option(last.map(|(key, value)| vec![Val::i64(key), value, Val::Map(map)]))
            }
            Exp::IoReturn(x) => self.io(IoAct::Return, &[x]),
            Exp::IoBind(m, k) => self.io(IoAct::Bind, &[m, k]),
            Exp::IoRun(m) => {
                let m = self.eval(m)?;
                self.perform_io(m)
            }
            Exp::IoPar(ms) => self.io(IoAct::Par, &ms.iter().collect::<Vec<_>>()),
            Exp::MutNew(n, v) => self.io(IoAct::New, &[n, v]),
            Exp::MutGet(a, i) => self.io(IoAct::Get, &[a, i]),
            Exp::MutSet(a, i, v) => self.io(IoAct::Set, &[a, i, v]),
            Exp::MutModify(a, i, f) => self.io(IoAct::Modify, &[a, i, f]),
            Exp::MutPush(a, v) => self.io(IoAct::Push, &[a, v]),
            Exp::MutSize(a) => self.io(IoAct::Size, &[a]),
            Exp::MutFreeze(a) => match a.ty() {
                Type::MutArray(elem) => self.io(IoAct::Freeze(Rc::new(Type::clone(elem))), &[a]),
                other => Err(internal(format!("freeze of {other}"))),
            },
            _ => Err(internal("not an effect")),
        }
    }
    fn io(&mut self, act: IoAct, operands: &[&Term]) -> Res<Val> {
        let items = operands.iter().map(|t| self.eval(t)).collect::<Res<Vec<_>>>()?;
        Ok(Val::Io(act, Node::new(&self.meter, items)?))
    }
    fn map_value(&mut self, t: &Term) -> Res<Rc<Entries>> {
        match self.eval(t)? {
            Val::Map(map) => Ok(map),
            other => Err(wrong("a map", &other)),
        }
    }
    /// `#none | #some payload`.
    fn option(&self, payload: Option<Vec<Val>>) -> Res<Val> {
        let k = usize::from(payload.is_some());
        Ok(Val::Sum(k, Node::new(&self.meter, payload.unwrap_or_default())?))
    }

    /// Runs a computation with mutable arrays.
    fn perform_io(&mut self, computation: Val) -> Res<Val> {
        let mut computation = computation;
        loop {
            self.step(1)?;
            let Val::Io(act, node) = computation else { return Err(wrong("a computation", &computation)) };
            match act {
                IoAct::Return => return first(items(node)),
                IoAct::Bind => {
                    let mut both = items(node);
                    let rest = both.pop().ok_or_else(|| internal("a computation has no rest"))?;
                    let x = first(both)?;
                    let x = deep(|| self.perform_io(x))?;
                    computation = self.apply_last(rest, x)?;
                }
                IoAct::Par => {
                    let items = self
                        .in_parallel(node.items.len(), |m, i| deep(|| m.perform_io(node.items[i].clone())))?;
                    return self.tuple(items);
                }
                IoAct::Plus => {
                    let (a, b) = (node.item(0)?.clone(), node.item(1)?.clone());
                    let a = deep(|| self.perform_io(a))?;
                    let b = deep(|| self.perform_io(b))?;
                    return self.plus(a, b);
                }
                IoAct::New
                | IoAct::Get
                | IoAct::Set
                | IoAct::Modify
                | IoAct::Push
                | IoAct::Size
                | IoAct::Freeze(_) => return self.cell_action(&act, &node),
            }
        }
    }
    fn cell_action(&mut self, act: &IoAct, node: &Node) -> Res<Val> {
        let number = |i: usize| match node.item(i)? {
            Val::Num(Num::I64(x)) => Ok(*x),
            other => Err(wrong("an i64", other)),
        };
        if let IoAct::New = act {
            let n = checked_size(number(0)?)?;
            let _charge = self.meter.charge(16 * n as u128)?;
            self.tick(n as u64)?;
            let items = RefCell::new(vec![node.item(1)?.clone(); n]);
            return Ok(Val::Mut(Rc::new(Cells { items })));
        }
        let cells = match node.item(0)? {
            Val::Mut(cells) => cells.clone(),
            other => return Err(wrong("a mutable array", other)),
        };
        let position = || {
            let (i, n) = (number(1)?, cells.items.borrow().len());
            if i < 0 || i as u64 >= n as u64 { Err(out_of_bounds(&[i], &[n])) } else { Ok(i as usize) }
        };
        match act {
            IoAct::Get => {
                let i = position()?;
                Ok(cells.items.borrow()[i].clone())
            }
            IoAct::Set => {
                let i = position()?;
                let old = std::mem::replace(&mut cells.items.borrow_mut()[i], node.item(2)?.clone());
                drop(old);
                self.unit()
            }
            IoAct::Modify => {
                let i = position()?;
                let old = cells.items.borrow()[i].clone();
                let new = self.apply(node.item(2)?, old.clone())?;
                cells.items.borrow_mut()[i] = new;
                Ok(old)
            }
            IoAct::Push => {
                let _charge = self.meter.charge(16)?;
                cells.items.borrow_mut().push(node.item(1)?.clone());
                Ok(Val::i64(cells.items.borrow().len() as i64 - 1))
            }
            IoAct::Size => Ok(Val::i64(cells.items.borrow().len() as i64)),
            IoAct::Freeze(elem) => {
                let items = cells.items.borrow().clone();
                self.tick(items.len() as u64)?;
                let mut out = Collector::new(&self.meter, elem, Some(items.len()))?;
                for item in items {
                    let touched = out.push(item)?;
                    self.tick(touched)?;
                }
                out.finish().map(Val::Arr)
            }
            IoAct::New | IoAct::Return | IoAct::Bind | IoAct::Par | IoAct::Plus => {
                Err(internal("not an operation on cells"))
            }
        }
    }
}

/// The first operand.
fn first(items: Vec<Val>) -> Res<Val> {
    items.into_iter().next().ok_or_else(|| internal("a computation lacks an operand"))
}
