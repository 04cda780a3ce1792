//! Core to kernel IR.
//!
//! Every array is pointers, sizes and strides ([`rep`]); indexing, slicing, transposing and reversing are arithmetic on
//! them. What makes elements writes them where they will stay: the result of an inner operation goes straight into the
//! array of the outer one. Updates are in place where nobody else will look ([`owners`]); other arrays are made in a workspace
//! that each iteration gives back.
//!
//! Assumes a checked program without derivatives. Guarantees the values of the reference interpreter, bit for bit where the
//! executor's primitives are those of the table, and its messages.
//!
//! Not native: recursive values as arguments and results of the whole program, which the language does not have either.

mod acc;
mod aliasing;
mod arrays;
mod bounds;
mod branch;
mod checks;
mod combine;
mod concat;
mod double_buffering;
mod gather;
mod ghosts;
mod give_back;
mod interchange;
mod loops;
mod memory;
mod parts;
mod plus;
mod proved;
mod rep;
mod shape_inference;
mod site;
mod sizes;
mod state;
mod stm;
mod symmetric;

use crate::ghosts::Ghosts;
use crate::ir::{
    Block, Function, FunctionId, Ins, Message, MessageId, Module, Operand, Order, Reg, RegInfo, Site, Text,
    Ty,
};
use aliasing::{Owners, Roots};
use ghosts::Notes;
use proved::Economy;
pub use proved::{Fault, proved};
use pullback_base::index::{IdMap, IdSet, Index, IndexVec};
use pullback_base::{RuntimeErrorKind, Span};
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::traverse::reachable_functions;
use pullback_core::{Atom, Body, Exp, FunId, Lam, Program, Type, TypeId, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use rep::{ArrayRep, Rep, words};
pub(crate) use site::CONSTRUCTS;
use site::site;
use std::collections::BTreeMap;

/// A program that executors of kernel IR cannot run.
#[derive(Clone, Debug, PartialEq)]
pub struct NotNative {
    /// The rule: what native programs do not have.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
    /// Where.
    pub span: Option<Span>,
}

impl NotNative {
    fn new(rule: &'static str, found: impl Into<String>) -> Box<NotNative> {
        Box::new(NotNative { rule, found: found.into(), span: None })
    }
    /// Whether the fault is the compiler's: the verifier has an alarm on what the program becomes.
    pub fn is_internal(&self) -> bool {
        self.rule == proved::RULE
    }
}

impl std::fmt::Display for NotNative {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "native programs have no {}: {}", self.rule, self.found)
    }
}
impl std::error::Error for NotNative {}

pub(crate) use bounds::{NEAR, is_near, truth};
pub(crate) use loops::with_mark;

type Res<T> = Result<T, Box<NotNative>>;

/// Lowers a function and what it calls.
///
/// Errors: [`NotNative`]; one that [is internal](NotNative::is_internal) if the verifier has an alarm on the code. Builds without debug assertions
/// make other code first ([`Module::fallbacks`]). Cost: linear in the program, times its nesting depth.
pub fn lower(program: &Program, entry: FunId) -> Result<(Module, FunctionId), Box<NotNative>> {
    lower_with_parts(program, entry, PART)
}

/// The fewest elements of a part of a reduction that keeps its order.
const PART: i64 = 64;

/// The same; reductions that keep their order are done in parts of at least so many elements (more than none).
pub fn lower_with_parts(
    program: &Program,
    entry: FunId,
    part: i64,
) -> Result<(Module, FunctionId), Box<NotNative>> {
    lower_all(program, entry, (part, Noted::Nothing))
}

/// [`lower`] before the verifier has been asked: to look whether the code is known already. To be run only if it is, or else after [`prove`].
///
/// Errors: [`NotNative`].
pub fn lower_unproved(program: &Program, entry: FunId) -> Result<(Module, FunctionId), Box<NotNative>> {
    let (made, id) = lower_once(program, entry, (PART, Noted::Nothing), Economy::Full)?;
    Ok((made.module, id))
}

/// What [`lower`] gives, if this is what [`lower_unproved`] gave. Errors: an alarm, as for [`lower`].
pub fn prove(
    program: &Program,
    entry: FunId,
    made: (Module, FunctionId),
) -> Result<(Module, FunctionId), Box<NotNative>> {
    prove_as(program, entry, (PART, Noted::Nothing), made)
}

/// [`lower`] without updates in place, and without giving memory back before the end: how a program is lowered on whose code the
/// verifier has an alarm otherwise.
pub fn lower_plainly(program: &Program, entry: FunId) -> Result<(Module, FunctionId), Box<NotNative>> {
    let (made, id) = lower_once(program, entry, (PART, Noted::Nothing), Economy::Plain)?;
    Ok((made.module, id))
}

/// [`lower`], where the module knows for which statement each register was made ([`Facts::site`](crate::Facts::site)).
pub fn lower_with_sites(program: &Program, entry: FunId) -> Result<(Module, FunctionId), Box<NotNative>> {
    lower_all(program, entry, (PART, Noted::Sites))
}

/// [`lower_with_parts`], with what the code says of values. Without the events it is the code that is verified there.
///
/// Errors: [`NotNative`]; nothing is verified. Cost: that of the lowering, and a few instructions for each variable of a statement.
pub fn lower_with_ghosts(
    program: &Program,
    entry: FunId,
    part: i64,
) -> Result<(Module, FunctionId, Ghosts), Box<NotNative>> {
    let (made, id) = lower_once(program, entry, (part, Noted::Ghosts), Economy::Full)?;
    Ok((made.module, id, made.ghosts.unwrap_or_default()))
}

/// What is noted of registers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noted {
    Nothing,
    Sites,
    /// What values are, and when they are read.
    Ghosts,
}

/// What the lowering makes.
#[derive(Default)]
struct Made {
    module: Module,
    /// Recursive types of which values are added, and the functions that do it.
    plus: Vec<(TypeId, FunctionId)>,
    /// What is said of values, if it was asked for.
    ghosts: Option<Ghosts>,
}

/// Verified code.
fn lower_all(
    program: &Program,
    entry: FunId,
    how: (i64, Noted),
) -> Result<(Module, FunctionId), Box<NotNative>> {
    let (made, id) = lower_once(program, entry, how, Economy::Full)?;
    prove_as(program, entry, how, (made.module, id))
}

fn prove_as(
    program: &Program,
    entry: FunId,
    how: (i64, Noted),
    made: (Module, FunctionId),
) -> Result<(Module, FunctionId), Box<NotNative>> {
    let fault = if cfg!(debug_assertions) { Fault::Stops } else { Fault::LowersAgain };
    let plainly = || lower_once(program, entry, how, Economy::Plain).map(|(made, id)| (made.module, id));
    proved(fault, made, plainly)
}

fn lower_once(
    program: &Program,
    entry: FunId,
    (part, noted): (i64, Noted),
    economy: Economy,
) -> Res<(Made, FunctionId)> {
    let ghosts = (noted == Noted::Ghosts).then(Ghosts::default);
    let mut made = Made { ghosts, ..Made::default() };
    let interface = program.funs[entry].params.iter().map(|p| &program.vars[*p].ty);
    if interface.chain(&program.funs[entry].results).any(Type::is_recursive) {
        return Err(NotNative::new(
            "recursive values as arguments and results",
            "a recursive type in the interface",
        ));
    }
    let reachable: Vec<FunId> = reachable_functions(program, [entry]).into_iter().collect();
    let functions: IdMap<FunId, FunctionId> =
        reachable.iter().enumerate().map(|(k, f)| (*f, FunctionId::new(k))).collect();
    let all = All { program, functions: &functions, part: part.max(1), noted, economy };
    for f in &reachable {
        let called = if *f == entry { Called::FromOutside } else { Called::Inside };
        let function = function(all, (*f, called), &mut made)?;
        made.module.functions.push(function);
    }
    // A function that adds may ask for another one.
    let mut done = 0;
    while let Some((id, function)) = made.plus.get(done).copied() {
        let shapes = shapes(program, &[], &Body::default());
        let function = Lower::new(all, function, shapes, &mut made).plus_function(id)?;
        made.module.functions.push(function);
        done += 1;
    }
    Ok((made, functions[&entry]))
}

/// Who calls a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Called {
    Inside,
    /// Users, with words of their own making.
    FromOutside,
}

/// What functions of a module have in common.
#[derive(Clone, Copy)]
struct All<'p> {
    program: &'p Program,
    functions: &'p IdMap<FunId, FunctionId>,
    part: i64,
    noted: Noted,
    economy: Economy,
}

fn function(all: All<'_>, (id, called): (FunId, Called), made: &mut Made) -> Res<Function> {
    let program = all.program;
    let fun = &program.funs[id];
    let mut s = Lower::new(all, all.functions[&id], shapes(program, &fun.params, &fun.body), made);
    let mut params = Vec::new();
    for p in &fun.params {
        let ty = program.vars[*p].ty.clone();
        let hint = program.vars[*p].hint.to_string();
        let regs: Vec<Reg> = words(program, &ty)?.into_iter().map(|t| s.reg(t, &hint)).collect();
        let operands: Vec<Operand> = regs.iter().map(|r| Operand::Reg(*r)).collect();
        s.note_arrays(&ty, &operands, 0)?;
        let value = s.unflatten(&ty, &mut operands.into_iter())?;
        if called == Called::FromOutside {
            s.check_strides(&ty, &mut regs.iter().map(|r| Operand::Reg(*r)))?;
        }
        params.extend(regs);
        let roots = s.owners.foreign();
        s.bind(*p, value, roots);
    }
    s.body(&fun.body)?;
    let mut results = Vec::new();
    for (a, ty) in fun.body.result.iter().zip(&fun.results) {
        // What has no memory yet gets it here.
        if let Atom::Var(v) = a {
            s.span = program.vars[*v].origin.span;
        }
        let value = s.atom(*a);
        let operands = s.flatten(&value, ty)?;
        let before = results.len();
        for (operand, ty) in operands.into_iter().zip(words(program, ty)?) {
            let to = s.reg(ty, "result");
            s.emit(Ins::Set { to, value: operand });
            results.push(to);
        }
        let words: Vec<Operand> = results[before..].iter().map(|r| Operand::Reg(*r)).collect();
        s.note_arrays(ty, &words, 0)?;
    }
    let mut body = s.blocks.pop().unwrap_or_default();
    if all.economy == Economy::Plain {
        proved::keep_memory(&mut body);
        return Ok(Function { name: fun.name.to_string(), params, results, regs: s.regs, body });
    }
    // What was added to accumulators of the caller may point to memory of this function.
    if !s.added.values().any(|points| *points) {
        let events = s.notes.as_ref().map(Notes::registers).unwrap_or_default();
        body = give_back::give_back(body, &params, &events, &mut s.regs);
    }
    debug_assert!(!loops::leaves_memory_in_any_order(&body), "{}", fun.name);
    let body = bounds::narrow(body, &results, &mut s.regs);
    Ok(Function { name: fun.name.to_string(), params, results, regs: s.regs, body })
}

/// A function being lowered.
struct Lower<'p> {
    program: &'p Program,
    functions: &'p IdMap<FunId, FunctionId>,
    /// The function being lowered.
    id: FunctionId,
    /// The fewest elements of a part of a reduction.
    part: i64,
    messages: &'p mut IndexVec<MessageId, Message>,
    calls: &'p mut BTreeMap<FunctionId, (FunctionId, Span)>,
    /// Whether it is noted which statement registers are for, and that statement.
    noted: Noted,
    /// Recursive types of which values are added, and the functions that do it.
    plus: &'p mut Vec<(TypeId, FunctionId)>,
    /// What is said of values, if it was asked for.
    notes: Option<Notes<'p>>,
    site: Option<Site>,
    shapes: Shapes,
    regs: IndexVec<Reg, RegInfo>,
    /// Open blocks, the innermost last.
    blocks: Vec<Block>,
    env: IdMap<Var, Rep>,
    owners: Owners,
    /// Where a variable's array should be made.
    wanted: IdMap<Var, ArrayRep>,
    /// Numbers that were computed before their place in their body.
    early: IdSet<Var>,
    /// Pointers into memory that the iterations of a loop use in turn.
    in_turn: IdSet<Reg>,
    /// Arrays that maps make, with the operand that each is to be written over.
    heirs: IdMap<Var, Var>,
    /// Scalars that are at least 0 and below a size.
    below: IdMap<Var, Dim>,
    /// Scalars that are one less than a size.
    last: IdMap<Var, Dim>,
    /// Conditions that are `a == b`.
    comparisons: IdMap<Var, (Atom, Atom)>,
    /// Sizes that an assertion before this place has found equal: the first is called the second.
    equal: Vec<(Dim, Dim)>,
    /// Of which arrays the elements can be counted in the open blocks.
    counted: Vec<sizes::Count>,
    /// Parts of accumulators that are set apart, to be added when the body ends in which they were made.
    deferred: Vec<acc::Deferred>,
    /// The accumulators to which values with alternatives are added, and whether those point to memory.
    added: BTreeMap<aliasing::Root, bool>,
    span: Option<Span>,
}

/// A value and the memory that it may lie in.
#[derive(Clone, Debug)]
struct Val {
    rep: Rep,
    roots: Roots,
}

/// The memory that some values may lie in.
fn roots(values: &[Val]) -> Roots {
    values.iter().flat_map(|v| v.roots.iter().copied()).collect()
}

impl<'p> Lower<'p> {
    fn new(all: All<'p>, id: FunctionId, shapes: Shapes, made: &'p mut Made) -> Lower<'p> {
        let Made { module, plus, ghosts } = made;
        Lower {
            program: all.program,
            functions: all.functions,
            part: all.part,
            id,
            messages: &mut module.messages,
            calls: &mut module.calls,
            noted: all.noted,
            plus,
            notes: ghosts.as_mut().map(|ghosts| Notes::new(ghosts, id)),
            site: None,
            shapes,
            regs: IndexVec::new(),
            blocks: vec![Vec::new()],
            env: IdMap::new(),
            owners: Owners::new(all.economy),
            wanted: IdMap::new(),
            early: IdSet::new(),
            in_turn: IdSet::new(),
            heirs: IdMap::new(),
            below: IdMap::new(),
            last: IdMap::new(),
            deferred: Vec::new(),
            counted: Vec::new(),
            added: BTreeMap::new(),
            comparisons: IdMap::new(),
            equal: Vec::new(),
            span: None,
        }
    }

    // --- instructions ---

    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        let reg = self.regs.push(RegInfo::new(ty, hint));
        self.regs[reg].facts.site = self.site.map(Box::new);
        reg
    }
    fn emit(&mut self, ins: Ins) {
        self.blocks.last_mut().expect("an open block").push(ins);
    }
    /// Asks for memory.
    fn alloc(&mut self, count: Operand, ty: Ty, hint: &str) -> Reg {
        let to = self.reg(Ty::Pointer, hint);
        self.regs[to].facts.place = self.span;
        self.emit(Ins::Alloc { to, count, ty });
        to
    }
    /// What `f` emits, as a block of its own.
    fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<(Block, T)> {
        self.continued(Vec::new(), f)
    }
    /// The same behind a block: what is known of arrays in it ends with it.
    fn continued<T>(&mut self, block: Block, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<(Block, T)> {
        let counted = self.counted.len();
        self.blocks.push(block);
        let out = f(self);
        let block = self.blocks.pop().unwrap_or_default();
        self.counted.truncate(counted);
        Ok((block, out?))
    }
    /// A new register set to the operand.
    fn variable(&mut self, ty: Ty, hint: &str, value: Operand) -> Reg {
        let to = self.reg(ty, hint);
        self.emit(Ins::Set { to, value });
        to
    }
    /// A primitive; computed now if its arguments are constants, or its condition is.
    fn prim(&mut self, prim: Prim, args: Vec<Operand>, hint: &str) -> Operand {
        let constants: Option<Vec<ScalarValue>> = args
            .iter()
            .map(|a| match a {
                Operand::Const(c) => Some(*c),
                Operand::Reg(_) | Operand::Null => None,
            })
            .collect();
        if let Some(Ok(value)) = constants.map(|c| prim.eval(&c)) {
            return Operand::Const(value);
        }
        if let (Prim::Op(Op::Select, _), Operand::Const(c)) = (prim, args[0]) {
            return args[if c.is_true() { 1 } else { 2 }];
        }
        let to = self.reg(Ty::Scalar(prim.result()), hint);
        self.emit(Ins::Prim { to, prim, args });
        to.into()
    }
    fn op(&mut self, op: Op, scalar: Scalar, args: &[Operand]) -> Operand {
        self.prim(Prim::Op(op, scalar), args.to_vec(), "t")
    }
    fn add(&mut self, a: Operand, b: Operand) -> Operand {
        match (a.as_i64(), b.as_i64()) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.op(Op::Add, Scalar::I64, &[a, b]),
        }
    }
    fn sub(&mut self, a: Operand, b: Operand) -> Operand {
        if b.as_i64() == Some(0) { a } else { self.op(Op::Sub, Scalar::I64, &[a, b]) }
    }
    fn mul(&mut self, a: Operand, b: Operand) -> Operand {
        match (a.as_i64(), b.as_i64()) {
            (Some(0), _) | (_, Some(0)) => Operand::i64(0),
            (Some(1), _) => b,
            (_, Some(1)) => a,
            _ => self.op(Op::Mul, Scalar::I64, &[a, b]),
        }
    }
    fn both(&mut self, a: Operand, b: Operand) -> Operand {
        match (a, b) {
            (Operand::Const(ScalarValue::Bool(true)), x) | (x, Operand::Const(ScalarValue::Bool(true))) => x,
            _ => self.op(Op::And, Scalar::Bool, &[a, b]),
        }
    }
    fn either(&mut self, a: Operand, b: Operand) -> Operand {
        match (a, b) {
            (Operand::Const(ScalarValue::Bool(false)), x) | (x, Operand::Const(ScalarValue::Bool(false))) => {
                x
            }
            _ => self.op(Op::Or, Scalar::Bool, &[a, b]),
        }
    }
    fn not(&mut self, a: Operand) -> Operand {
        self.op(Op::Not, Scalar::Bool, &[a])
    }
    fn product(&mut self, sizes: &[Operand]) -> Operand {
        sizes.iter().fold(Operand::i64(1), |n, m| self.mul(n, *m))
    }
    /// Stops the program if the condition holds.
    fn fail(&mut self, condition: Operand, kind: RuntimeErrorKind, text: Text, values: Vec<Operand>) {
        if condition == Operand::bool(false) {
            return;
        }
        // Equal messages are one, so that copies of code that differ in nothing else are equal.
        let new = Message { kind, text, span: self.span };
        let known = self.messages.iter_enumerated().find(|(_, known)| **known == new).map(|(id, _)| id);
        let message = known.unwrap_or_else(|| self.messages.push(new));
        self.emit(Ins::Fail { condition, message, values });
    }
    /// A loop from 0 up to `n`; the block gets the counter. The order is that of the source where iterations leave memory behind.
    fn count(&mut self, n: Operand, order: Order, f: impl FnOnce(&mut Self, Operand) -> Res<()>) -> Res<()> {
        let i = self.reg(Ty::I64, "i");
        let (body, ()) = self.block(|s| f(s, i.into()))?;
        let order = if loops::allocates(&body) { Order::Given } else { order };
        self.emit(Ins::For { i, from: Operand::i64(0), to: n, body, order });
        Ok(())
    }

    // --- names ---

    fn bind(&mut self, v: Var, rep: Rep, roots: Roots) {
        self.note_counted(&rep);
        self.env.insert(v, rep);
        self.owners.bind(v, roots);
        self.note_bound(v);
    }
    fn bind_val(&mut self, v: Var, mut val: Val) {
        // What was made where a loop asked for its next state is no memory of its own.
        if let Rep::Array(array) = &val.rep
            && array.pointers().any(|pointer| self.in_turn.contains(&pointer))
        {
            val.roots.extend(self.owners.state());
        }
        if let (Rep::Array(array), true) = (&val.rep, self.program.vars[v].origin.is_tape()) {
            array.pointers().for_each(|pointer| self.regs[pointer].facts.tape = true);
        }
        self.bind(v, val.rep, val.roots);
    }
    fn ty(&self, v: Var) -> &'p Type {
        &self.program.vars[v].ty
    }
    fn atom_type(&self, a: Atom) -> Type {
        self.program.atom_type(a)
    }
    /// What an atom is, to be read by the next instructions.
    fn atom(&mut self, a: Atom) -> Rep {
        if let Atom::Var(v) = a {
            self.note_read(v);
        }
        self.rep(a)
    }
    /// The same, if its elements are not read: for what is known of its form.
    fn rep(&self, a: Atom) -> Rep {
        match a {
            Atom::Const(c) => Rep::Scalar(Operand::Const(c)),
            Atom::Var(v) => self.env[&v].clone(),
        }
    }
    fn val(&mut self, a: Atom) -> Val {
        Val { rep: self.atom(a), roots: self.owners.of(a.var()) }
    }
    fn scalar(&self, a: Atom) -> Operand {
        match self.rep(a) {
            Rep::Scalar(x) => x,
            rep => panic!("expected a scalar, found {rep:?}"),
        }
    }
    fn array(&mut self, a: Atom) -> ArrayRep {
        if let Atom::Var(v) = a {
            self.note_read(v);
        }
        self.form(a)
    }
    /// The same array, if its elements are not read.
    fn form(&self, a: Atom) -> ArrayRep {
        match self.rep(a) {
            Rep::Array(x) => x,
            rep => panic!("expected an array, found {rep:?}"),
        }
    }
    fn scalars(&self, atoms: &[Atom]) -> Vec<Operand> {
        atoms.iter().map(|a| self.scalar(*a)).collect()
    }
    /// The operand of a size, if what it is named after is in scope.
    fn resolve(&mut self, d: Dim) -> Option<Operand> {
        match d {
            // Less than none: nothing with this size is made.
            Dim::Const(n) => Some(Operand::i64(n.max(0))),
            Dim::Unknown => None,
            Dim::Size(v, k) => match self.env.get(&v)? {
                Rep::Array(a) => a.dims.get(k).copied(),
                Rep::Acc(a) => a.array.dims.get(k).copied(),
                Rep::Sum(_, alternatives) => match &alternatives.first()?[..] {
                    [Rep::Array(inside)] if alternatives.len() == 1 => inside.dims.get(k).copied(),
                    _ => None,
                },
                Rep::Scalar(_) | Rep::Tuple(_) | Rep::Record(..) => None,
            },
            Dim::Value(v) => match self.env.get(&v)? {
                // A count of iterations may be negative; the array then has no elements.
                Rep::Scalar(_) => {
                    let x = self.as_i64(v.into());
                    Some(self.op(Op::Max, Scalar::I64, &[x, Operand::i64(0)]))
                }
                _ => None,
            },
        }
    }
    /// The name of a size after the assertions that were made before this place.
    fn called(&self, d: Dim) -> Dim {
        let next = |d: Dim| self.equal.iter().find(|(from, _)| *from == d).map(|(_, to)| *to);
        std::iter::successors(Some(d), |d| next(*d)).last().unwrap_or(d)
    }
    /// Two sizes are equal from here to the end of the body.
    fn note_equal(&mut self, a: Atom, b: Atom) {
        let (a, b) = (self.called(self.shapes.name(a)), self.called(self.shapes.name(b)));
        if a != b {
            // A constant is no name for another constant: the program has stopped.
            match (a, b) {
                (Dim::Const(_), Dim::Const(_)) => {}
                (Dim::Const(_), _) => self.equal.push((b, a)),
                _ => self.equal.push((a, b)),
            }
        }
    }
    /// The sizes of an array variable, if all are known here.
    fn known_sizes(&mut self, dims: &[Dim]) -> Option<Vec<Operand>> {
        dims.iter().map(|d| self.resolve(*d)).collect()
    }

    // --- bodies ---

    /// Lowers the statements; the results can be read afterwards.
    fn body(&mut self, body: &Body) -> Res<()> {
        self.owners.open(body);
        let (deferred, equal) = (self.deferred.len(), self.equal.len());
        let mut wholes = concat::wholes(body);
        let numbers = concat::Numbers::of(body, &wholes);
        for (k, stm) in body.stms.iter().enumerate() {
            self.owners.at(k);
            let outer = self.span;
            self.span = stm.pat.first().and_then(|v| self.program.vars[*v].origin.span).or(outer);
            let around = self.site;
            if self.noted == Noted::Sites {
                self.site = Some(site(self.program, stm, self.span));
            }
            let done = if stm.pat.first().is_some_and(|v| self.early.remove(v)) {
                Ok(())
            } else {
                self.want_in_wholes(&mut wholes, stm, &numbers).and_then(|()| self.stm(stm, &wholes))
            };
            self.site = around;
            if let Err(mut e) = done {
                e.span = e.span.or(self.span);
                return Err(e);
            }
            self.span = outer;
        }
        // Of a view that the body gives, others may still add to what was set apart: it is added when the body around ends.
        let leaves = |a: &Atom| a.var().is_some_and(|v| self.ty(v).is_acc());
        if !body.result.iter().any(leaves) {
            self.add_deferred(deferred)?;
        }
        self.equal.truncate(equal);
        self.owners.close();
        Ok(())
    }
    /// Lowers a body and reads its results.
    fn results(&mut self, body: &Body) -> Res<Vec<Val>> {
        self.body(body)?;
        Ok(body.result.iter().map(|a| self.whole(*a)).collect())
    }
    /// Lowers something that must not write over this memory.
    fn holding<T>(&mut self, needed: Roots, lower: impl FnOnce(&mut Self) -> T) -> T {
        self.owners.hold(needed);
        let out = lower(self);
        self.owners.let_go();
        out
    }
    /// Lowers the body of a lambda with these arguments.
    fn apply(&mut self, lam: &Lam, args: Vec<Val>) -> Res<Vec<Val>> {
        for (p, arg) in lam.params.iter().zip(args) {
            self.bind_val(*p, arg);
        }
        self.results(&lam.body)
    }
    /// Asks that an array result of a body be made at this place, or the array of which it is another name.
    fn want(&mut self, body: &Body, result: Atom, place: ArrayRep) {
        let Atom::Var(v) = result else { return };
        let Some(stm) = body.stms.iter().find(|s| s.pat.contains(&v)) else { return };
        match &stm.exp {
            Exp::Atom(a) => self.want(body, *a, place),
            Exp::Reshape { shape, from, array } if *from == shape.len() && self.has_sizes(*array, shape) => {
                self.want(body, *array, place);
            }
            // What is added to lies where it was made, if it is not needed any more as it was.
            Exp::WithAcc(inits, _)
                if let Some(init) = stm.pat.iter().position(|p| *p == v).and_then(|k| inits.get(k))
                    && init.var().is_some_and(|v| body.stms.iter().any(|s| s.pat.contains(&v))) =>
            {
                self.want(body, *init, place);
            }
            _ => {
                self.wanted.insert(v, place);
            }
        }
    }
}
