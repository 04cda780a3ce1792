//! Words and memory of the reference executor.
//!
//! Memory has a clock, which goes on by one with each element that is written. Each element knows when it was written last: its *version*. A
//! pointer may know for which variable it is read, and when that had its value ([`Seen`]): what was written later is not shown through it. Each
//! float has a fingerprint ([`Fingerprint`]).
//!
//! Cost: constant per element.

use super::fingerprint::Fingerprint;
use crate::ir::Ty;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_prim::ScalarValue;

pub(super) fn wrong(what: impl Into<String>) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Internal, what)
}

/// What a register or a cell of memory holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// A scalar.
    Scalar(ScalarValue),
    /// A pointer.
    Pointer(Pointer),
}

/// A word with the fingerprint of what it was computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printed {
    pub(super) word: Word,
    pub(super) print: Fingerprint,
}

impl Word {
    /// That of a constant.
    pub(super) fn printed(self) -> Printed {
        let print = match self {
            Word::Scalar(x) => Fingerprint::of(x),
            Word::Pointer(_) => Fingerprint::default(),
        };
        Printed { word: self, print }
    }
    /// That of an argument, which is told from others by its place.
    pub(super) fn given(self, place: [u64; 2]) -> Printed {
        let print = match self {
            Word::Scalar(x) => Fingerprint::of_argument(x, place),
            Word::Pointer(_) => Fingerprint::default(),
        };
        Printed { word: self, print }
    }
}

/// A pointer: a piece of memory and a position in it, in elements. Piece 0 is nowhere. A pointer to memory that was given back is noticed,
/// whatever has been made there since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Which piece.
    pub piece: usize,
    /// How many pieces had been made when it was.
    pub made: usize,
    /// Which element.
    pub at: i64,
    /// What is read through it; `None`: what is there.
    pub seen: Option<Seen>,
}

/// A variable as it was at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number of its name ([`crate::Ghosts::names`]).
    pub name: u32,
    /// What was written until then it shows.
    pub time: u64,
}

impl Pointer {
    /// Points nowhere.
    pub const NULL: Pointer = Pointer { piece: 0, made: 0, at: 0, seen: None };
}

/// Elements of one type; `None` has not been written.
#[derive(Debug)]
struct Piece {
    /// How many had been made before it.
    made: usize,
    ty: Ty,
    cells: Vec<Option<Printed>>,
    /// When each was written last; 0: before all others.
    versions: Vec<u64>,
}

/// What is said of an element that was written since the variable had its value for which it is read.
pub(crate) const WRITTEN_OVER: &str = "a variable is read that was written over";

/// Memory.
#[derive(Debug)]
pub struct Memory {
    pieces: Vec<Piece>,
    /// How many pieces have been made.
    made: usize,
    cells: usize,
    limit: usize,
    /// How many elements have been written.
    pub(super) clock: u64,
    /// The names that [`Seen`] speaks of.
    pub(super) names: Vec<String>,
}

impl Memory {
    /// Memory with room for so many elements.
    pub fn new(limit: usize) -> Memory {
        let nowhere = Piece { made: 0, ty: Ty::BOOL, cells: Vec::new(), versions: Vec::new() };
        Memory { pieces: vec![nowhere], made: 1, cells: 0, limit, clock: 0, names: Vec::new() }
    }
    fn push(&mut self, ty: Ty, cells: Vec<Option<Printed>>) -> Pointer {
        let pointer = Pointer { piece: self.pieces.len(), made: self.made, at: 0, seen: None };
        self.cells += cells.len();
        self.pieces.push(Piece { made: self.made, ty, versions: vec![0; cells.len()], cells });
        self.made += 1;
        pointer
    }
    /// The piece that a pointer points to, if it is still there.
    fn piece(&self, p: Pointer) -> Option<&Piece> {
        self.pieces.get(p.piece).filter(|piece| piece.made == p.made)
    }
    /// What is wrong with a use of memory at a place that is not there.
    fn nowhere(&self, what: &str, p: Pointer, index: i64) -> RuntimeError {
        let is_gone = p.piece != Pointer::NULL.piece && self.piece(p).is_none();
        let how = if is_gone { "of memory that was given back" } else { "outside memory" };
        wrong(format!("{what} {how}: {p:?} + {index}"))
    }
    fn piece_mut(&mut self, p: Pointer) -> Option<&mut Piece> {
        self.pieces.get_mut(p.piece).filter(|piece| piece.made == p.made)
    }
    /// A new piece that holds these elements.
    pub fn put(&mut self, ty: Ty, elements: Vec<Word>) -> Pointer {
        let piece = self.made as u64;
        let given = |(k, word): (usize, Word)| Some(word.given([piece, k as u64]));
        self.push(ty, elements.into_iter().enumerate().map(given).collect())
    }
    /// How many pieces there are.
    pub(super) fn height(&self) -> usize {
        self.pieces.len()
    }
    /// An element. Errors: no such element, one that was never written, or one that was written since the variable had its value for which it is read.
    pub fn get(&self, p: Pointer, index: i64) -> Result<Word, RuntimeError> {
        Ok(self.printed(p, index)?.word)
    }
    /// The fingerprint of an element. Errors: as those of [`Memory::get`].
    pub fn fingerprint(&self, p: Pointer, index: i64) -> Result<Fingerprint, RuntimeError> {
        Ok(self.printed(p, index)?.print)
    }
    pub(super) fn printed(&self, p: Pointer, index: i64) -> Result<Printed, RuntimeError> {
        self.compare(p, index)?;
        let at = usize::try_from(p.at + index).ok();
        let cell = self.piece(p).and_then(|piece| piece.cells.get(at?));
        match cell {
            Some(Some(printed)) => Ok(*printed),
            Some(None) => Err(wrong("a load of memory that was never written")),
            None => Err(self.nowhere("a load", p, index)),
        }
    }
    /// Errors: the element was written since the variable had its value for which it is read.
    pub(super) fn compare(&self, p: Pointer, index: i64) -> Result<(), RuntimeError> {
        let Some(Seen { name, time }) = p.seen else { return Ok(()) };
        let at = usize::try_from(p.at + index).ok();
        let version = self.piece(p).and_then(|piece| piece.versions.get(at?).copied());
        if version.is_none_or(|version| version <= time) {
            return Ok(());
        }
        let name = self.names.get(name as usize).map_or("", String::as_str);
        Err(wrong(format!("{WRITTEN_OVER}: element {} of {name}", p.at + index)))
    }
    pub(super) fn set(&mut self, p: Pointer, index: i64, ty: Ty, value: Printed) -> Result<(), RuntimeError> {
        let at = usize::try_from(p.at + index).ok();
        if self.piece(p).is_none() {
            return Err(self.nowhere("a store", p, index));
        }
        self.clock += 1;
        let clock = self.clock;
        let Some(Piece { ty: of, cells, versions, .. }) = self.piece_mut(p) else {
            return Err(wrong("a store outside memory"));
        };
        if *of != ty {
            return Err(wrong(format!("a store of type {ty:?} to memory of type {of:?}")));
        }
        match at.and_then(|at| cells.get_mut(at).zip(versions.get_mut(at))) {
            Some((cell, version)) => {
                *cell = Some(value);
                *version = clock;
                Ok(())
            }
            None => Err(wrong(format!("a store outside memory: {p:?} + {index} of {}", cells.len()))),
        }
    }
    /// Copies an element. One that was never written stays so.
    pub(super) fn copy(
        &mut self,
        to: Pointer,
        from: Pointer,
        index: i64,
        ty: Ty,
    ) -> Result<(), RuntimeError> {
        let at = usize::try_from(from.at + index).ok();
        if let Some(None) = self.piece(from).and_then(|piece| piece.cells.get(at?)) {
            let at = usize::try_from(to.at + index).ok();
            let cell = self.piece_mut(to).and_then(|piece| piece.cells.get_mut(at?));
            return match cell {
                Some(cell) => {
                    *cell = None;
                    Ok(())
                }
                None => Err(self.nowhere("a copy", to, index)),
            };
        }
        let value = self.printed(from, index)?;
        self.set(to, index, ty, value)
    }
    pub(super) fn alloc(&mut self, ty: Ty, count: i64) -> Result<Pointer, RuntimeError> {
        let count = usize::try_from(count).map_err(|_| wrong("a negative number of elements"))?;
        if count > self.limit.saturating_sub(self.cells) {
            let message = format!("{count} more elements do not fit into memory");
            return Err(RuntimeError::new(RuntimeErrorKind::Limit, message));
        }
        Ok(self.push(ty, vec![None; count]))
    }
    pub(super) fn release(&mut self, height: usize) -> Result<(), RuntimeError> {
        if height > self.pieces.len() {
            return Err(wrong("memory is given back that was given back before"));
        }
        for piece in self.pieces.drain(height..) {
            self.cells -= piece.cells.len();
        }
        Ok(())
    }
}
