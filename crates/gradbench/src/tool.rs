//! Who answers: one line for each line.

use crate::message::{self, Kind, Message};
use crate::module::Module;
use pullback_driver::Settings;
use pullback_interp::core::Options;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The tool's name in the suite.
const NAME: &str = "pullback";

/// What has been defined so far.
#[derive(Debug)]
pub struct Tool<'o> {
    settings: Settings,
    options: Options<'o>,
    programs: BTreeMap<String, String>,
    modules: BTreeMap<String, Module>,
}

impl<'o> Tool<'o> {
    /// A tool for the problems of the suite that compiles and runs like this.
    pub fn new(settings: Settings, options: Options<'o>) -> Tool<'o> {
        Tool { settings, options, programs: BTreeMap::new(), modules: BTreeMap::new() }
    }

    /// The same tool for more modules: names, each with the path of a program. Such a name hides a problem of the suite.
    pub fn with_programs(self, programs: impl IntoIterator<Item = (String, String)>) -> Tool<'o> {
        Tool { programs: programs.into_iter().collect(), ..self }
    }

    /// Answers every line until there are no more, or nobody reads.
    ///
    /// Errors: those of reading and writing, but for a reader that has gone, which is an end as any other.
    pub fn serve(&mut self, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            if !line.trim_ascii().is_empty() {
                let reply = self.reply(&line);
                let written = writeln!(output, "{reply}").and_then(|()| output.flush());
                match written {
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    other => other?,
                }
            }
            // A line of a large problem is not kept in memory during a small one.
            line = Vec::new();
        }
        Ok(())
    }

    /// The answer to a line.
    pub fn reply(&mut self, line: &[u8]) -> String {
        let (id, kind) = match Message::read(line) {
            Ok(Message { id, kind }) => (id, kind),
            Err((id, error)) => return message::failure(&id, &error),
        };
        // A bug in the compiler fails one message, and not the run.
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(&id, kind)));
        answer.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            message::failure(&id, &format!("a bug in pullback: {text}"))
        })
    }

    fn answer(&mut self, id: &Json, kind: Kind) -> String {
        match kind {
            Kind::Start => message::name(id, NAME),
            Kind::Other => message::answer(id),
            Kind::Define { module } => {
                let start = Instant::now();
                let settings = self.settings.clone();
                let compiled = match self.programs.get(&module) {
                    Some(path) => Module::of_file(path, settings),
                    None => Module::compile(&module, settings),
                };
                match compiled {
                    Ok(compiled) => {
                        self.modules.insert(module, compiled);
                        message::success(id, None, &[("compile", start.elapsed())])
                    }
                    Err(e) => message::failure(id, &e),
                }
            }
            Kind::Evaluate { module, function, input } => {
                let Some(defined) = self.modules.get(&module) else {
                    return message::failure(id, &format!("module {module} not defined"));
                };
                match defined.evaluate(&function, input, &self.options) {
                    Ok(e) => message::success(id, Some(&e.output), &e.timings),
                    Err(e) => message::failure(id, &e),
                }
            }
        }
    }
}
