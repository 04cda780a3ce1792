//! The files of a program: the one that is given, and those that it imports, directly or through others.
//!
//! `import "lib/distances"` in `models/fit.fut` is `models/lib/distances.fut` (Futhark reference, "Referring to other files").
//! A file is read and checked once, however many others import it.

use pullback_base::{Code, Diagnostic, SourceMap};
use pullback_syntax::ast;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Gives the text of a file, or says why there is none.
pub type Reader<'r> = dyn FnMut(&Path) -> Result<String, String> + 'r;

/// What a path of an import ends with.
const ENDING: &str = "fut";

/// A file with the positions of the files that it imports.
pub(crate) struct Source {
    pub(crate) program: ast::Program,
    pub(crate) imports: Vec<usize>,
}

/// Reads files of this machine.
pub fn from_disk(path: &Path) -> Result<String, String> {
    // A device or a pipe may have no end.
    match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => Err("it is not a file".to_string()),
        Ok(_) => std::fs::read_to_string(path).map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Parses a text and everything that it imports. The files come in an order in which each is after those that it imports.
pub(crate) fn load(
    sources: &mut SourceMap,
    (name, text): (&str, &str),
    read: &mut Reader<'_>,
) -> (Vec<Source>, Vec<Diagnostic>) {
    let mut loader =
        Loader { sources, read, known: BTreeMap::new(), files: Vec::new(), diagnostics: Vec::new() };
    loader.file(normal(Path::new(name)), name, text);
    (loader.files, loader.diagnostics)
}

struct Loader<'a, 'r> {
    sources: &'a mut SourceMap,
    read: &'a mut Reader<'r>,
    /// The positions of files; none for those that are not done yet.
    known: BTreeMap<PathBuf, Option<usize>>,
    files: Vec<Source>,
    diagnostics: Vec<Diagnostic>,
}

impl Loader<'_, '_> {
    fn file(&mut self, path: PathBuf, name: &str, text: &str) -> usize {
        self.known.insert(path.clone(), None);
        let file = self.sources.add(name, text);
        let (program, wrong) = pullback_syntax::parse(file, text);
        self.diagnostics.extend(wrong);
        let imports = program.imports.iter().filter_map(|i| self.import(&path, i)).collect();
        self.files.push(Source { program, imports });
        let position = self.files.len() - 1;
        self.known.insert(path, Some(position));
        position
    }

    fn import(&mut self, from: &Path, import: &ast::Import) -> Option<usize> {
        let folder = from.parent().unwrap_or(Path::new(""));
        let mut path = folder.join(&import.path).into_os_string();
        path.push(".");
        path.push(ENDING);
        let path = normal(Path::new(&path));
        match self.known.get(&path) {
            Some(Some(position)) => return Some(*position),
            Some(None) => {
                let message = format!("{} imports itself, directly or through others", path.display());
                let d = Diagnostic::error(Code::Import, import.span, message);
                self.diagnostics.push(d.hint("put what both files need into a third one"));
                return None;
            }
            None => {}
        }
        match (self.read)(&path) {
            Ok(text) => {
                let name = path.display().to_string();
                Some(self.file(path, &name, &text))
            }
            Err(why) => {
                let message = format!("cannot read {}: {why}", path.display());
                self.diagnostics.push(Diagnostic::error(Code::Import, import.span, message));
                None
            }
        }
    }
}

/// The path without `.` and, as far as that can be told without looking, `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match (part, out.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                out.pop();
            }
            _ => out.push(part),
        }
    }
    out
}
