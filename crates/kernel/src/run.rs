//! The reference executor of kernel IR: slow, and careful.
//!
//! It checks what compiled code assumes: every load and store is inside memory that was allocated and not yet released, memory
//! is written before it is read, and elements have one type. A violation is an `Internal` error. It is the oracle for
//! executors, and shows whether the lowering or an executor is wrong.

use crate::ir::{Block, FunctionId, Ins, Module, Operand, Reg, Ty};
use pullback_base::index::Index;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_prim::{PrimError, Scalar, ScalarValue};

/// What a register or a cell of memory holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// A scalar.
    Scalar(ScalarValue),
    /// A pointer.
    Pointer(Pointer),
}

/// A pointer: a piece of memory and a position in it, in elements. Piece 0 is nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Which piece.
    pub piece: usize,
    /// Which element.
    pub at: i64,
}

impl Pointer {
    /// Points nowhere.
    pub const NULL: Pointer = Pointer { piece: 0, at: 0 };
}

/// Elements of one type; `None` has not been written.
type Piece = (Ty, Vec<Option<Word>>);

/// Memory.
#[derive(Debug)]
pub struct Memory {
    pieces: Vec<Piece>,
    cells: usize,
    limit: usize,
}

impl Memory {
    /// Memory with room for so many elements.
    pub fn new(limit: usize) -> Memory {
        Memory { pieces: vec![(Ty::BOOL, Vec::new())], cells: 0, limit }
    }
    /// A new piece that holds these elements.
    pub fn put(&mut self, ty: Ty, elements: Vec<Word>) -> Pointer {
        self.cells += elements.len();
        self.pieces.push((ty, elements.into_iter().map(Some).collect()));
        Pointer { piece: self.pieces.len() - 1, at: 0 }
    }
    /// An element. Errors: no such element, or one that was never written.
    pub fn get(&self, p: Pointer, index: i64) -> Result<Word, RuntimeError> {
        let at = usize::try_from(p.at + index).ok();
        let cell = self.pieces.get(p.piece).and_then(|(_, cells)| cells.get(at?));
        match cell {
            Some(Some(word)) => Ok(*word),
            Some(None) => Err(wrong("a load of memory that was never written")),
            None => Err(wrong(format!("a load outside memory: {p:?} + {index}"))),
        }
    }
    fn set(&mut self, p: Pointer, index: i64, ty: Ty, value: Word) -> Result<(), RuntimeError> {
        let at = usize::try_from(p.at + index).ok();
        let Some((of, cells)) = self.pieces.get_mut(p.piece) else {
            return Err(wrong(format!("a store outside memory: {p:?}")));
        };
        if *of != ty {
            return Err(wrong(format!("a store of type {ty:?} to memory of type {of:?}")));
        }
        match at.and_then(|at| cells.get_mut(at)) {
            Some(cell) => {
                *cell = Some(value);
                Ok(())
            }
            None => Err(wrong(format!("a store outside memory: {p:?} + {index} of {}", cells.len()))),
        }
    }
    fn alloc(&mut self, ty: Ty, count: i64) -> Result<Pointer, RuntimeError> {
        let count = usize::try_from(count).map_err(|_| wrong("a negative number of elements"))?;
        if count > self.limit.saturating_sub(self.cells) {
            let message = format!("{count} more elements do not fit into memory");
            return Err(RuntimeError::new(RuntimeErrorKind::Limit, message));
        }
        self.cells += count;
        self.pieces.push((ty, vec![None; count]));
        Ok(Pointer { piece: self.pieces.len() - 1, at: 0 })
    }
    fn release(&mut self, height: usize) {
        for (_, cells) in self.pieces.drain(height..) {
            self.cells -= cells.len();
        }
    }
}

fn wrong(what: impl Into<String>) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Internal, what)
}

/// Runs a function. `steps`: how many instructions it may take. Errors: those of the program, `Limit` and `Internal`.
pub fn run(
    module: &Module,
    function: FunctionId,
    args: &[Word],
    memory: &mut Memory,
    steps: u64,
) -> Result<Vec<Word>, RuntimeError> {
    let mut machine = Machine { module, memory, steps, depth: 0 };
    machine.call(function, args)
}

struct Machine<'a> {
    module: &'a Module,
    memory: &'a mut Memory,
    steps: u64,
    depth: usize,
}

type Regs = Vec<Option<Word>>;
type Res<T> = Result<T, RuntimeError>;

impl Machine<'_> {
    fn call(&mut self, id: FunctionId, args: &[Word]) -> Res<Vec<Word>> {
        let f = &self.module.functions[id];
        if self.depth >= 10_000 {
            return Err(RuntimeError::new(RuntimeErrorKind::Limit, "too many open calls"));
        }
        let mut regs: Regs = vec![None; f.regs.len()];
        for (p, a) in f.params.iter().zip(args) {
            regs[p.index()] = Some(*a);
        }
        self.depth += 1;
        self.block(&f.body, &mut regs, id)?;
        self.depth -= 1;
        f.results.iter().map(|r| self.value(&regs, Operand::Reg(*r))).collect()
    }
    fn value(&self, regs: &Regs, a: Operand) -> Res<Word> {
        match a {
            Operand::Reg(r) => regs[r.index()].ok_or_else(|| wrong(format!("register {r:?} is not set"))),
            Operand::Const(c) => Ok(Word::Scalar(c)),
            Operand::Null => Ok(Word::Pointer(Pointer::NULL)),
        }
    }
    fn scalar(&self, regs: &Regs, a: Operand) -> Res<ScalarValue> {
        match self.value(regs, a)? {
            Word::Scalar(x) => Ok(x),
            Word::Pointer(_) => Err(wrong("a pointer where a scalar is needed")),
        }
    }
    fn i64(&self, regs: &Regs, a: Operand) -> Res<i64> {
        let x = self.scalar(regs, a)?;
        if x.scalar() == Scalar::I64 { Ok(x.as_i64()) } else { Err(wrong("an index that is no i64")) }
    }
    fn pointer(&self, regs: &Regs, a: Operand) -> Res<Pointer> {
        match self.value(regs, a)? {
            Word::Pointer(p) => Ok(p),
            Word::Scalar(_) => Err(wrong("a scalar where a pointer is needed")),
        }
    }
    fn set(&self, regs: &mut Regs, id: FunctionId, to: Reg, value: Word) -> Res<()> {
        let ty = self.module.functions[id].regs[to].ty;
        let fits = match (value, ty) {
            (Word::Scalar(x), Ty::Scalar(s)) => x.scalar() == s,
            (Word::Pointer(_), Ty::Pointer) => true,
            _ => false,
        };
        if !fits {
            return Err(wrong(format!("{value:?} does not fit a register of type {ty:?}")));
        }
        regs[to.index()] = Some(value);
        Ok(())
    }
    fn block(&mut self, block: &Block, regs: &mut Regs, id: FunctionId) -> Res<()> {
        for ins in block {
            self.ins(ins, regs, id).map_err(|mut e| {
                let leaf =
                    !matches!(ins, Ins::For { .. } | Ins::While { .. } | Ins::If { .. } | Ins::Call { .. });
                if e.kind == RuntimeErrorKind::Internal && leaf {
                    e.message = format!("{} in {ins:?} of {}", e.message, self.module.functions[id].name);
                }
                e
            })?;
        }
        Ok(())
    }
    fn ins(&mut self, ins: &Ins, regs: &mut Regs, id: FunctionId) -> Res<()> {
        if self.steps == 0 {
            return Err(RuntimeError::new(RuntimeErrorKind::Limit, "too many steps"));
        }
        self.steps -= 1;
        match ins {
            Ins::Set { to, value } => {
                let value = self.value(regs, *value)?;
                self.set(regs, id, *to, value)?;
            }
            Ins::Prim { to, prim, args } => {
                let args = args.iter().map(|a| self.scalar(regs, *a)).collect::<Res<Vec<_>>>()?;
                let value = match prim.eval(&args) {
                    Ok(value) => value,
                    Err(e @ (PrimError::DivisionByZero | PrimError::NegativeExponent)) => {
                        return Err(wrong(format!("{e:?} was not checked before")));
                    }
                    Err(e) => return Err(wrong(format!("{}: {e:?}", prim.name()))),
                };
                self.set(regs, id, *to, Word::Scalar(value))?;
            }
            Ins::Load { to, pointer, index } => {
                let value = self.memory.get(self.pointer(regs, *pointer)?, self.i64(regs, *index)?)?;
                self.set(regs, id, *to, value)?;
            }
            Ins::Store { pointer, index, value, ty } => {
                let (p, i) = (self.pointer(regs, *pointer)?, self.i64(regs, *index)?);
                let value = self.value(regs, *value)?;
                self.memory.set(p, i, *ty, value)?;
            }
            Ins::Offset { to, pointer, index, ty: _ } => {
                let (p, i) = (self.pointer(regs, *pointer)?, self.i64(regs, *index)?);
                let moved = Pointer { piece: p.piece, at: p.at.wrapping_add(i) };
                self.set(regs, id, *to, Word::Pointer(moved))?;
            }
            Ins::Alloc { to, count, ty } => {
                let p = self.memory.alloc(*ty, self.i64(regs, *count)?)?;
                self.set(regs, id, *to, Word::Pointer(p))?;
            }
            Ins::Mark { to } => {
                let height = Pointer { piece: self.memory.pieces.len(), at: 0 };
                self.set(regs, id, *to, Word::Pointer(height))?;
            }
            Ins::Release { mark } => {
                let height = self.pointer(regs, *mark)?.piece;
                self.memory.release(height);
            }
            Ins::Fill { pointer, count, value, ty } => {
                let (p, n) = (self.pointer(regs, *pointer)?, self.i64(regs, *count)?);
                let value = self.value(regs, *value)?;
                for i in 0..n {
                    self.memory.set(p, i, *ty, value)?;
                }
            }
            Ins::Copy { to, from, count, ty } => {
                let (to, from) = (self.pointer(regs, *to)?, self.pointer(regs, *from)?);
                let n = self.i64(regs, *count)?;
                if to.piece == from.piece && n > 0 && (to.at - from.at).abs() < n {
                    return Err(wrong("a copy of memory onto itself"));
                }
                for i in 0..n {
                    let value = self.memory.get(from, i)?;
                    self.memory.set(to, i, *ty, value)?;
                }
            }
            Ins::For { i, from, to, body } => {
                let (from, to) = (self.i64(regs, *from)?, self.i64(regs, *to)?);
                for k in from..to {
                    self.set(regs, id, *i, Word::Scalar(ScalarValue::I64(k)))?;
                    self.block(body, regs, id)?;
                }
            }
            Ins::While { condition, test, body } => loop {
                self.block(condition, regs, id)?;
                if !self.scalar(regs, *test)?.is_true() {
                    break;
                }
                self.block(body, regs, id)?;
            },
            Ins::If { condition, then, otherwise } => {
                let taken = if self.scalar(regs, *condition)?.is_true() { then } else { otherwise };
                self.block(taken, regs, id)?;
            }
            Ins::Fail { condition, message, values } => {
                if self.scalar(regs, *condition)?.is_true() {
                    let values = values.iter().map(|v| self.i64(regs, *v)).collect::<Res<Vec<_>>>()?;
                    let message = &self.module.messages[*message];
                    let error = RuntimeError::new(message.kind.clone(), message.render(&values));
                    return Err(error.at(message.span));
                }
            }
            Ins::Call { to, function, args } => {
                let args = args.iter().map(|a| self.value(regs, *a)).collect::<Res<Vec<_>>>()?;
                let results = self.call(*function, &args)?;
                for (to, value) in to.iter().zip(results) {
                    self.set(regs, id, *to, value)?;
                }
            }
        }
        Ok(())
    }
}
