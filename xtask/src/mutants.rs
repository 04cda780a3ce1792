//! Deliberate errors: patches of the sources, each with the test that must notice it. They are built in a scratch copy, so no
//! rule of the compiler holds code for them.
//!
//! A patch begins with lines of text before its diff: `finds: COMMAND`, a command that fails because of it (words `NAME=VALUE`
//! before the first other word are its environment), one line or several, and `why: TEXT`, the fault that programs have with it.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// A deliberate error.
struct Mutant {
    name: String,
    path: PathBuf,
    /// All must fail.
    finds: Vec<Find>,
}

/// A command that must fail.
struct Find {
    environment: Vec<(String, String)>,
    words: Vec<String>,
}

/// The values of the lines of a patch's header with this name.
fn fields<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let header = text.lines().take_while(|line| !line.starts_with("diff --git") && !line.starts_with("--- "));
    header
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .collect()
}

fn read(path: &Path) -> Result<Mutant> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if fields(&text, "why").is_empty() {
        bail!("mutants/{name}.patch has no line `why: TEXT`");
    }
    let finds: Vec<Find> = fields(&text, "finds").into_iter().map(find).collect();
    if finds.is_empty() {
        bail!("mutants/{name}.patch has no line `finds: COMMAND`");
    }
    if finds.iter().any(|find| !find.words.starts_with(&["cargo".into(), "test".into()])) {
        bail!("mutants/{name}.patch: the command is `cargo test ..`, so that it can be built before it runs");
    }
    Ok(Mutant { name, path: path.to_path_buf(), finds })
}

/// A command as it is written.
fn find(text: &str) -> Find {
    let mut words = text.split_whitespace().peekable();
    let mut environment = Vec::new();
    while let Some((key, value)) = words.peek().and_then(|word| word.split_once('=')) {
        environment.push((key.to_string(), value.to_string()));
        words.next();
    }
    Find { environment, words: words.map(str::to_string).collect() }
}

/// The patches whose names have one of the words; all, if there are no words. In the order of their names.
fn list(root: &Path, words: &[&str]) -> Result<Vec<Mutant>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root.join("mutants"))?.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "patch"));
    paths.sort();
    let mutants: Vec<Mutant> = paths.iter().map(|path| read(path)).collect::<Result<_>>()?;
    Ok(mutants.into_iter().filter(|m| words.is_empty() || words.iter().any(|w| m.name.contains(w))).collect())
}

/// `git apply` in a folder. The paths of a patch are those of the folder, although a repository may be around it.
fn apply(folder: &Path, words: &[&str], path: &Path) -> Result<Output> {
    let mut command = Command::new("git");
    command.arg("apply").args(words).arg(path).current_dir(folder).stdin(Stdio::null());
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    command.output().context("git does not run")
}

/// What is wrong with the patches: a header that lacks a line, sources to which a patch does not apply. Without git only
/// headers are looked at.
pub(crate) fn broken(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mutants = match list(root, &[]) {
        Ok(mutants) => mutants,
        Err(error) => {
            broken.push(error.to_string());
            return Ok(());
        }
    };
    for mutant in mutants {
        let Ok(output) = apply(root, &["--check"], &mutant.path) else { return Ok(()) };
        if !output.status.success() {
            broken.push(format!("mutants/{}.patch does not apply: write it anew", mutant.name));
        }
    }
    Ok(())
}

/// Runs the tests of the patches: each must fail.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let root = root.canonicalize()?;
    let mutants = list(&root, words)?;
    if mutants.is_empty() {
        bail!("no deliberate error has a name with `{}`", words.join("` or `"));
    }
    let copy = scratch(&root)?;
    let mut alive = Vec::new();
    for (k, mutant) in mutants.iter().enumerate() {
        eprintln!("[{} of {}] {}", k + 1, mutants.len(), mutant.name);
        let start = Instant::now();
        let verdict = try_one(&copy, mutant)?;
        eprintln!("    {verdict}, {} s", start.elapsed().as_secs());
        if verdict != FOUND {
            alive.push(format!("{}: {verdict}", mutant.name));
        }
    }
    if !alive.is_empty() {
        bail!("{} of {} deliberate errors are not found:\n{}", alive.len(), mutants.len(), alive.join("\n"));
    }
    eprintln!("all {} deliberate errors are found", mutants.len());
    Ok(())
}

const FOUND: &str = "found";

/// A copy of the files that git knows, in which programs are built apart from those of the tree. Files that are the same keep
/// their times, so that little is built anew.
fn scratch(root: &Path) -> Result<PathBuf> {
    let copy = root.join("target").join("mutants");
    fs::create_dir_all(&copy)?;
    let files = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .context("git does not run")?;
    for file in String::from_utf8(files.stdout)?.split_terminator('\0') {
        let (from, to) = (root.join(file), copy.join(file));
        let Ok(new) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        fs::create_dir_all(to.parent().unwrap_or(&copy))?;
        fs::write(&to, new)?;
    }
    Ok(copy)
}

/// What became of a deliberate error. The copy is as before afterwards.
fn try_one(copy: &Path, mutant: &Mutant) -> Result<&'static str> {
    if !apply(copy, &[], &mutant.path)?.status.success() {
        return Ok("does not apply");
    }
    let verdict = mutant
        .finds
        .iter()
        .try_fold(FOUND, |verdict, find| if verdict == FOUND { test(copy, find) } else { Ok(verdict) });
    if !apply(copy, &["--reverse"], &mutant.path)?.status.success() {
        bail!("{} cannot be taken back: remove target/mutants", mutant.name);
    }
    verdict
}

fn test(copy: &Path, find: &Find) -> Result<&'static str> {
    let run = |words: &[&str]| {
        let mut command = Command::new(&find.words[0]);
        command.args(&find.words[1..2]).args(words);
        command.envs(find.environment.iter().map(|(k, v)| (k, v))).current_dir(copy);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().context("cargo does not run")
    };
    let all: Vec<&str> = find.words[2..].iter().map(String::as_str).collect();
    let built = all.split(|word| *word == "--").next().unwrap_or_default();
    let mut build = vec!["--no-run"];
    // The words after the targets choose tests, which are not built apart.
    build.extend(built);
    if !run(&build)?.success() {
        return Ok("does not build");
    }
    Ok(if run(&all)?.success() { "NOT FOUND" } else { FOUND })
}
