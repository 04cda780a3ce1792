//! Source files, spans and symbols.

use std::fmt;
use std::sync::Arc;

/// A name. Cheap to clone; compared by text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// The symbol with this text.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl From<&str> for Symbol {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
impl From<String> for Symbol {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

crate::index_type! {
    /// A file of a [`SourceMap`].
    pub struct FileId
}

/// A range of bytes of one file: `start <= end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }
    /// The smallest span that holds both (of the same file; else `self`).
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// The texts that spans point into.
#[derive(Clone, Default, Debug)]
pub struct SourceMap {
    files: crate::index::IndexVec<FileId, (String, Arc<str>)>,
}

impl SourceMap {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a file under a display name.
    pub fn add(&mut self, name: &str, text: &str) -> FileId {
        self.files.push((name.to_string(), Arc::from(text)))
    }
    /// The files, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        self.files.ids()
    }
    /// The display name of a file.
    pub fn name(&self, file: FileId) -> &str {
        &self.files[file].0
    }
    /// The text of a file.
    pub fn text(&self, file: FileId) -> &str {
        &self.files[file].1
    }
    /// The text under a span.
    pub fn snippet(&self, span: Span) -> &str {
        self.text(span.file).get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// Line and column (both from 1, column in characters) of a byte position.
    pub fn line_column(&self, file: FileId, byte: u32) -> (usize, usize) {
        let text = self.text(file);
        let mut end = (byte as usize).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        (line, column)
    }
    /// `name:line:column` of the start of a span.
    pub fn position(&self, span: Span) -> String {
        let (line, column) = self.line_column(span.file, span.start);
        format!("{}:{line}:{column}", self.name(span.file))
    }
}
