//! Passes of scheduling, one by one: kernel text in, kernel text out.
//!
//! Each file of `passes/` is a case: what it shows, in comments; lines with what it is run with; a module; `// becomes`; and the text of the module
//! after the pass. Its name begins with the pass that it is a case of. The lines are
//!
//! - `// pass: NAME`, or several names, `A, B`, of passes that run one after the other;
//! - `// options: lanes=8 most=8 grain=2 tiles=2 far`, any of them. `tiles`: so few rows, columns and products of a contraction are put in tiles. `far`:
//!   no memory is near, so that short loops are treated as long ones are;
//! - `// sizes: _ 100`: what the arguments are expected to be;
//! - `// run: 5 [1.0 2.0]`: arguments of the first function, whole numbers, floats and arrays of floats. There may be several.
//!
//! With `BLESS=1` the texts are written anew, to be read before they are committed.
//!
//! Both modules keep the rules of kernel IR. For each run the results, and what the arrays hold at the end, are the same numbers with the same
//! fingerprints, from whichever end loops in any order begin; or both stop with the same message of the program.

use pullback_base::index::IndexVec;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_kernel::run::{Fingerprint, Memory, Options, Pointer, Word, run_with_fingerprints};
use pullback_kernel::schedule::{self, Model, PIPELINE};
use pullback_kernel::verify::verify;
use pullback_kernel::{FunctionId, Module, Ty, print_whole, read};
use pullback_prim::{Scalar, ScalarValue};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What stands between the two texts.
const BECOMES: &str = "// becomes\n";

/// A file.
struct Case<'a> {
    name: String,
    /// The text before [`BECOMES`], with its comments.
    before: &'a str,
}

/// An argument of a run.
#[derive(Clone, Debug)]
enum Argument {
    Word(ScalarValue),
    Floats(Vec<f64>),
}

impl Case<'_> {
    /// The values of the lines that begin with this word.
    fn lines(&self, word: &str) -> impl Iterator<Item = &str> {
        self.before.lines().filter_map(move |l| l.strip_prefix("// ")?.strip_prefix(word)?.strip_prefix(": "))
    }
    /// The rows of its passes in the table, and the name of the one that it is a case of.
    fn rows(&self) -> (Vec<usize>, &'static str) {
        let names: Vec<&str> = self.lines("pass").flat_map(|names| names.split(", ")).collect();
        let row = |name: &&str| PIPELINE.iter().position(|row| row.step.name == *name);
        let row = |name: &&str| row(name).unwrap_or_else(|| panic!("{}: no pass {name}", self.name));
        let rows: Vec<usize> = names.iter().map(row).collect();
        let mut steps = rows.iter().map(|row| PIPELINE[*row].step.name);
        let of = steps.find(|name| self.name.starts_with(name));
        (rows, of.unwrap_or_else(|| panic!("{}: a case of another pass than {names:?}", self.name)))
    }
    fn options(&self) -> schedule::Options {
        let mut options = schedule::Options::new(4, Model::machine(4));
        for word in self.lines("options").flat_map(str::split_whitespace) {
            match word.split_once('=') {
                Some(("lanes", n)) => {
                    options.lanes = n.parse().expect("lanes");
                    options.most = options.lanes;
                }
                Some(("most", n)) => options.most = n.parse().expect("lanes"),
                Some(("grain", n)) => options.grain = Some(n.parse().expect("a grain")),
                Some(("tiles", n)) => options.model.tiles = [n.parse().expect("a size"); 4],
                None if word == "far" => options.model.near = Some(0),
                _ => panic!("{}: no option {word}", self.name),
            }
        }
        let sizes = self.lines("sizes").flat_map(str::split_whitespace).map(|n| n.parse().ok());
        options.sizes = vec![(first(), sizes.collect())];
        options
    }
    fn runs(&self) -> Vec<Vec<Argument>> {
        self.lines("run").map(arguments).collect()
    }
    fn module(&self, text: &str) -> Module {
        let module = read(text).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let alarms = verify(&module).alarms;
        assert!(alarms.is_empty(), "{}: {}", self.name, alarms[0]);
        module
    }
    /// The text after these passes.
    fn made(&self, rows: &[usize]) -> String {
        let given = self.module(self.before);
        let mut made = given.clone();
        schedule::only(&mut made, &self.options(), rows);
        let text = print_whole(&made);
        assert_eq!(self.module(&text), made, "{}", self.name);
        for arguments in self.runs() {
            let before = results(&given, &arguments, false);
            // (Which of several messages it is, the order of iterations decides.)
            for backwards in [false].into_iter().chain(before.is_ok().then_some(true)) {
                let after = results(&made, &arguments, backwards);
                assert_eq!(before, after, "{}, {arguments:?}, {backwards}\n{text}", self.name);
            }
        }
        format!("{}\n", text.trim_end())
    }
}

fn first() -> FunctionId {
    let mut ids: IndexVec<FunctionId, ()> = IndexVec::new();
    ids.push(())
}

fn arguments(line: &str) -> Vec<Argument> {
    let spaced = line.replace('[', " [ ").replace(']', " ] ");
    let (mut out, mut row) = (Vec::new(), None);
    for word in spaced.split_whitespace() {
        let float = || word.parse().unwrap_or_else(|_| panic!("no number: {word}"));
        match (word, &mut row) {
            ("[", _) => row = Some(Vec::new()),
            ("]", _) => out.extend(row.take().map(Argument::Floats)),
            (_, Some(row)) => row.push(float()),
            (_, None) => out.push(Argument::Word(match word.parse() {
                Ok(n) => ScalarValue::I64(n),
                Err(_) => ScalarValue::F64(float()),
            })),
        }
    }
    out
}

/// A word and what it was computed from.
type Printed = (Word, Fingerprint);

/// What a run gives, and what the arrays of its arguments hold then; or why it stops. `backwards`: loops in any order begin at their ends.
fn results(
    module: &Module,
    arguments: &[Argument],
    backwards: bool,
) -> Result<(Vec<Printed>, Vec<Vec<Printed>>), String> {
    let mut memory = Memory::new(1 << 20);
    let mut arrays: Vec<(Pointer, usize)> = Vec::new();
    let words: Vec<Word> = arguments
        .iter()
        .map(|a| match a {
            Argument::Word(word) => Word::Scalar(*word),
            Argument::Floats(row) => {
                let elements = row.iter().map(|x| Word::Scalar(ScalarValue::F64(*x))).collect();
                let pointer = memory.put(Ty::Scalar(Scalar::F64), elements);
                arrays.push((pointer, row.len()));
                Word::Pointer(pointer)
            }
        })
        .collect();
    let options = Options { steps: 1_000_000, backwards };
    let stopped = |e: RuntimeError| {
        assert_ne!(e.kind, RuntimeErrorKind::Internal, "{}", e.message);
        e.message
    };
    let given = run_with_fingerprints(module, first(), &words, &mut memory, options).map_err(stopped)?;
    let held = |&(pointer, count): &(Pointer, usize)| {
        let element = |i| Ok((memory.get(pointer, i)?, memory.fingerprint(pointer, i)?));
        let all: Result<_, RuntimeError> = (0..count as i64).map(element).collect();
        all.expect("an argument")
    };
    Ok((given, arrays.iter().map(held).collect()))
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("a file").path()).collect();
    files.sort();
    files
}

/// Examines a case, or writes its text anew; the pass that it is a case of.
fn examine(path: &Path, bless: bool) -> &'static str {
    let text = std::fs::read_to_string(path).expect("a text");
    let (before, after) = text.split_once(BECOMES).unwrap_or((&text, ""));
    let case = Case { name: name_of(path), before };
    let (rows, of) = case.rows();
    let made = case.made(&rows);
    if bless {
        std::fs::write(path, format!("{}{BECOMES}{made}", case.before)).expect("a file");
    } else if made != after {
        let lines = made.lines().zip(after.lines()).take_while(|(a, b)| a == b).count();
        panic!(
            "{}: another text, from line {} after `{}` on. BLESS=1 writes it anew. It is now:\n{made}",
            case.name,
            lines + 1,
            BECOMES.trim_end()
        );
    }
    of
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a name").display().to_string()
}

#[test]
fn each_pass_makes_of_a_text_what_its_cases_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let (mut passes, mut failed) = (BTreeSet::new(), Vec::new());
    for path in files() {
        // The executor and the verifier know no names of cases: what they say stands above this list.
        match std::panic::catch_unwind(|| examine(&path, bless)) {
            Ok(of) => drop(passes.insert(of)),
            Err(_) => failed.push(name_of(&path)),
        }
    }
    assert!(failed.is_empty(), "cases that fail: {}", failed.join(", "));
    let without: Vec<&str> =
        PIPELINE.iter().map(|row| row.step.name).filter(|name| !passes.contains(name)).collect();
    assert!(without.is_empty(), "passes without a case: {without:?}");
}
