//! Expressions: dispatch, scalars, products, sums, control flow.

use super::arrays::Collector;
use super::code::{Arg, Compound, FormCode, LoopCode, Simple};
use super::machine::{Machine, Res, fail, internal, wrong};
use super::num::{Domain, Num};
use super::plus::added;
use super::shapes::Known;
use super::value::{Node, Val};
use pullback_base::RuntimeErrorKind;
use pullback_prim::Prim;

impl<D: Domain> Machine<'_, D> {
    /// An expression with one result.
    #[inline]
    pub(crate) fn simple(&mut self, exp: &Simple) -> Res<Val<D>> {
        match exp {
            Simple::Atom(a) => Ok(self.take(*a)),
            Simple::Prim1(prim, x) => {
                let args = [self.num(*x)?];
                self.prim(*prim, &args)
            }
            Simple::Prim2(prim, x, y) => {
                let args = [self.num(*x)?, self.num(*y)?];
                self.prim(*prim, &args)
            }
            Simple::PrimN(prim, args) => {
                let args = args.iter().map(|&a| self.num(a)).collect::<Res<Vec<_>>>()?;
                self.prim(*prim, &args)
            }
            Simple::Index(a, ix) => self.index(*a, ix),
            Simple::Size(a, dim) => {
                let shape = &self.array(*a)?.shape;
                let n = shape.get(*dim).copied();
                self.release(*a);
                n.map(|n| Val::Num(Num::I64(n as i64))).ok_or_else(|| internal("no such dimension"))
            }
            Simple::Update(a, ix, v) => self.update(*a, ix, *v),
            Simple::AccAdd(acc, ix, v) => self.acc_add(*acc, ix, *v),
            Simple::Plus(a, b) => {
                let (a, b) = (self.take(*a), self.take(*b));
                self.tick(added(&a, &b))?;
                self.plus(a, b)
            }
            Simple::Tuple(items) => self.tuple(items),
            Simple::Proj(a, i) => self.proj(*a, *i),
            Simple::Inject(k, items) => {
                let items = self.take_all(items);
                Ok(Val::Sum(*k, Node::new(&self.meter, items)?))
            }
            Simple::StopGradient(a) => {
                let value = self.take(*a);
                D::stop_gradient(self, value)
            }
            Simple::Assert(c, message, values) => {
                if self.bool(*c)? {
                    Ok(Val::Unit)
                } else if !values.is_empty() {
                    let values =
                        values.iter().map(|&v| Ok(self.i64(v)?.to_string())).collect::<Res<Vec<_>>>()?;
                    if message.as_str().contains("{}") {
                        let message = values.iter().fold(message.to_string(), |m, v| m.replacen("{}", v, 1));
                        return Err(fail(RuntimeErrorKind::AssertFailed, message));
                    }
                    let message = format!("{message}: sizes {} differ", values.join(" and "));
                    Err(fail(RuntimeErrorKind::ShapeMismatch, message))
                } else {
                    Err(fail(RuntimeErrorKind::AssertFailed, format!("assertion failed: {message}")))
                }
            }
            Simple::Check(check, args) => self.check(*check, args),
            Simple::ArrayLit(elem, items) => self.array_lit(*elem, items),
            Simple::Slice(a, s) => self.slice(*a, s),
            Simple::UpdateSlice(a, s, v) => self.update_slice(*a, s, *v),
            Simple::Gather(a, ix) => self.gather(*a, *ix),
            Simple::Iota(n) => self.iota(*n),
            Simple::Replicate(elem, shape, a) => self.replicate(*elem, shape, *a),
            Simple::Rearrange(perm, a) => self.rearrange(perm, *a),
            Simple::Reshape(shape, from, a) => self.reshape(shape, *from, *a),
            Simple::Concat(arrays) => self.concat(arrays),
            Simple::Reverse(a) => self.reverse(*a),
            Simple::Rotate(a, k) => self.rotate(*a, *k),
            Simple::Scatter { width, dst, indices, values } => self.scatter(*width, *dst, *indices, *values),
            Simple::AccView(acc, view) => self.acc_view(*acc, view),
        }
    }

    #[inline]
    pub(super) fn prim(&mut self, prim: Prim, args: &[Num<D>]) -> Res<Val<D>> {
        self.counts.flops += prim.cost();
        match D::prim(&mut self.state, prim, args, self.operators > 0) {
            Ok(x) => Ok(Val::Num(x)),
            Err(e) => Err(self.prim_error(prim, args, e)),
        }
    }
    fn tuple(&mut self, items: &[Arg]) -> Res<Val<D>> {
        if items.is_empty() {
            return Ok(Val::Unit);
        }
        let items = self.take_all(items);
        Ok(Val::Tuple(Node::new(&self.meter, items)?))
    }
    fn proj(&mut self, a: Arg, i: usize) -> Res<Val<D>> {
        let missing = || internal("no such component");
        match self.take(a) {
            // Owned: the other components die, this one stays unshared.
            Val::Tuple(node) => match std::rc::Rc::try_unwrap(node) {
                Ok(mut node) => {
                    let mut items = std::mem::take(&mut node.items);
                    if i < items.len() { Ok(items.swap_remove(i)) } else { Err(missing()) }
                }
                Err(node) => node.items.get(i).cloned().ok_or_else(missing),
            },
            other => Err(wrong("a product", &other)),
        }
    }

    /// An expression with bodies; its results end up on the stack.
    pub(crate) fn compound(&mut self, exp: &Compound) -> Res<()> {
        match exp {
            Compound::Match(x, arms) => match self.take(*x) {
                Val::Sum(k, node) => {
                    let Some(arm) = arms.get(k) else {
                        return Err(internal(format!("a match has no arm for alternative {k}")));
                    };
                    if node.items.len() != arm.params.len() {
                        return Err(internal("a payload of another size than its arm"));
                    }
                    self.stack.extend(Node::into_items(node));
                    self.apply(arm)
                }
                other => Err(wrong("a sum", &other)),
            },
            Compound::If(c, then, otherwise) => {
                let body = if self.bool(*c)? { then } else { otherwise };
                self.body(body)
            }
            Compound::Loop(l) => self.loop_(l),
            Compound::Call(fun, args) => {
                for &a in args {
                    let value = self.take(a);
                    self.stack.push(value);
                }
                self.call(*fun)
            }
            Compound::Map { width, lam, arrays, elems } => self.map(*width, lam, arrays, elems),
            Compound::Reduce { width, lam, neutral, arrays, commutative } => {
                self.reduce(*width, lam, neutral, arrays, *commutative)
            }
            Compound::Scan { width, lam, neutral, arrays, elems } => {
                self.scan(*width, lam, neutral, arrays, elems)
            }
            Compound::Fused(fused) => self.fused(fused),
            Compound::Hist(hist) => self.hist(hist),
            Compound::WithAcc(inits, lam) => self.with_acc(inits, lam),
            Compound::Diff(diff) => D::differentiate(self, diff),
            Compound::Apply(lam, args) => {
                for &a in args {
                    let value = self.take(a);
                    self.stack.push(value);
                }
                self.apply(lam)
            }
            Compound::Body(body) => self.body(body),
            Compound::Par(bodies) => self.par(bodies),
        }
    }

    fn par(&mut self, bodies: &[super::code::BodyCode]) -> Res<()> {
        let mut fork = self.fork();
        if let Some(schedule) = &mut self.schedule {
            let order = schedule.order(bodies.len());
            let bottom = self.stack.len();
            let mut results: Vec<Vec<Val<D>>> = vec![Vec::new(); bodies.len()];
            for k in order {
                self.body(&bodies[k])?;
                results[k] = self.stack.split_off(bottom);
                self.join(&mut fork);
            }
            self.stack.extend(results.into_iter().flatten());
        } else {
            for body in bodies {
                self.body(body)?;
                self.join(&mut fork);
            }
        }
        self.joined(fork);
        Ok(())
    }

    fn loop_(&mut self, l: &LoopCode) -> Res<()> {
        for &a in &l.init {
            let value = self.take(a);
            self.stack.push(value);
        }
        self.bind(&l.params)?;
        let mut collectors: Vec<Collector<D>> = Vec::new();
        let mut done: usize = 0;
        match &l.form {
            FormCode::For { i, n, scalar } => {
                let n = self.num(*n)?.primal().as_i64();
                let n = usize::try_from(n).unwrap_or(0);
                for &elem in &l.collect {
                    collectors.push(Collector::new(&self.meter, elem, Some(n)));
                }
                while done < n {
                    self.tick(1)?;
                    self.counts.span += 1;
                    self.set(*i, scalar.from_i64(done as i64).into());
                    self.iteration(l, &mut collectors)?;
                    done += 1;
                }
            }
            FormCode::While(condition) => {
                for &elem in &l.collect {
                    collectors.push(Collector::new(&self.meter, elem, None));
                }
                loop {
                    self.tick(1)?;
                    self.counts.span += 1;
                    self.body(condition)?;
                    match self.pop()? {
                        Val::Num(Num::Bool(true)) => {}
                        Val::Num(Num::Bool(false)) => break,
                        other => return Err(wrong("a truth value", &other)),
                    }
                    self.iteration(l, &mut collectors)?;
                    done += 1;
                }
            }
        }
        if done == 0 && l.collect.iter().any(|e| e.rank > 0) {
            let mut slots = l.params.to_vec();
            let mut known: Vec<Known> = slots.iter().map(|&s| self.known(s)).collect();
            if let FormCode::For { i, .. } = l.form {
                slots.push(i);
                known.push(Known::Scalar(None));
            }
            let results = self.guess(&slots, &known, &l.body);
            for (collector, known) in collectors.iter_mut().zip(results.iter().skip(l.params.len())) {
                collector.expect(known)?;
            }
        }
        for &p in &l.params {
            let value = self.take(Arg::Move(p));
            self.stack.push(value);
        }
        for collector in collectors {
            self.stack.push(collector.finish(done)?);
        }
        if matches!(l.form, FormCode::While(_)) && !l.collect.is_empty() {
            self.stack.push(Val::Num(Num::I64(done as i64)));
        }
        Ok(())
    }

    /// What is known about the first state of a loop: the sizes of arrays.
    fn known(&self, slot: super::code::Slot) -> Known {
        match self.slot(slot) {
            Val::Num(_) => Known::Scalar(None),
            Val::Arr(a) => Known::array(&a.shape),
            Val::Unit | Val::Tuple(_) | Val::Sum(..) | Val::Acc(_) | Val::Gone => Known::Nothing,
        }
    }

    #[inline]
    fn iteration(&mut self, l: &LoopCode, collectors: &mut [Collector<D>]) -> Res<()> {
        self.body(&l.body)?;
        for collector in collectors.iter_mut().rev() {
            let value = self.pop()?;
            let touched = collector.push(value)?;
            self.tick(touched)?;
        }
        self.bind(&l.params)
    }
}
