//! Programs that speak the GradBench protocol, as processes.

use anyhow::{Context, Result, bail};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// At least so many runs at a time: the first one writes to new memory, which can take ten times as long.
const RUNS: u32 = 4;

/// A running tool.
#[derive(Debug)]
pub(crate) struct Tool {
    /// What it is called in tables.
    pub(crate) name: String,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// Problems, each with the series of sizes that it was last defined for.
    defined: BTreeMap<String, String>,
    messages: u64,
}

/// What a tool answered to an evaluation.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The result.
    pub(crate) output: Json,
    /// Seconds of each run.
    pub(crate) runs: Vec<f64>,
    /// Seconds of everything else that the tool reports.
    pub(crate) before: f64,
}

impl Tool {
    /// Starts a command, which a shell takes apart.
    pub(crate) fn start(name: &str, command: &str) -> Result<Tool> {
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{command}`"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take().context("the tool has no output")?);
        let from = BufReader::new(from);
        let mut tool =
            Tool { name: name.to_string(), child, to, from, defined: BTreeMap::new(), messages: 0 };
        tool.ask(json!({"kind": "start"}))?;
        Ok(tool)
    }

    fn ask(&mut self, message: Json) -> Result<Json> {
        self.ask_with(message, "")
    }

    /// Sends an object with a number of its own, and with more fields, which are text: `,"name":value` for each.
    fn ask_with(&mut self, mut message: Json, more: &str) -> Result<Json> {
        message["id"] = json!(self.messages);
        self.messages += 1;
        let to = self.to.as_mut().context("the tool has ended")?;
        let text = message.to_string();
        let open = text.strip_suffix('}').context("a message is an object")?;
        let sent = writeln!(to, "{open}{more}}}").and_then(|()| to.flush());
        let mut line = String::new();
        sent.and_then(|()| self.from.read_line(&mut line)).with_context(|| format!("{} ended", self.name))?;
        if line.is_empty() {
            bail!("{} ended without an answer", self.name);
        }
        let reply: Json =
            serde_json::from_str(&line).with_context(|| format!("{} answers no JSON", self.name))?;
        if reply["id"] != message["id"] {
            bail!("{} answers message {}, not {}", self.name, reply["id"], message["id"]);
        }
        Ok(reply)
    }

    /// Seconds that a problem took to define for a series of sizes; none if it was before. Errors: the tool does not have it.
    pub(crate) fn define(&mut self, problem: &str, series: &str) -> Result<Option<f64>> {
        if self.defined.get(problem).is_some_and(|of| of == series) {
            return Ok(None);
        }
        let reply = self.ask(json!({"kind": "define", "module": problem}))?;
        if reply["success"] != json!(true) {
            bail!("{}: {problem}: {}", self.name, reply["error"].as_str().unwrap_or("is not defined"));
        }
        self.defined.insert(problem.to_string(), series.to_string());
        Ok(Some(times(&reply, |_| true).iter().sum()))
    }

    /// Runs a function of a defined problem on an input, which is text: making it from numbers takes long. Errors: what the tool says.
    pub(crate) fn evaluate(
        &mut self,
        problem: &str,
        function: &str,
        input: &str,
        seconds: f64,
    ) -> Result<Answer> {
        let runs = format!(r#""min_runs":{RUNS},"min_seconds":{seconds}"#);
        let input = match input.strip_suffix('}') {
            // An object with fields.
            Some(fields) if fields.len() > 1 => format!(r#","input":{fields},{runs}}}"#),
            Some(_) => format!(r#","input":{{{runs}}}"#),
            None => format!(r#","input":{input}"#),
        };
        let message = json!({"kind": "evaluate", "module": problem, "function": function});
        let mut reply = self.ask_with(message, &input)?;
        if reply["success"] != json!(true) {
            bail!("{}", reply["error"].as_str().unwrap_or("it failed"));
        }
        let runs = times(&reply, |name| name == "evaluate");
        if runs.is_empty() {
            bail!("no time is reported");
        }
        let before = times(&reply, |name| name != "evaluate").iter().sum();
        Ok(Answer { output: reply["output"].take(), runs, before })
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // The end of its input is the end of a tool.
        self.to = None;
        self.child.wait().ok();
    }
}

fn times(reply: &Json, wanted: impl Fn(&str) -> bool) -> Vec<f64> {
    let all = reply["timings"].as_array().into_iter().flatten();
    let named = all.filter(|t| t["name"].as_str().is_some_and(&wanted));
    named.filter_map(|t| t["nanoseconds"].as_f64()).map(|ns| ns / 1e9).collect()
}

/// All numbers of a value, in the order of its fields' names.
pub(crate) fn numbers(json: &Json) -> Vec<f64> {
    match json {
        Json::Number(n) => vec![n.as_f64().unwrap_or(f64::NAN)],
        Json::Array(items) => items.iter().flat_map(numbers).collect(),
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|f| f.0);
            fields.into_iter().flat_map(|(_, j)| numbers(j)).collect()
        }
        Json::Null | Json::Bool(_) | Json::String(_) => vec![f64::NAN],
    }
}

/// The largest difference of two results, relative to the largest number of the first; infinite if they have other numbers of numbers.
pub(crate) fn difference(a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let scale = a.iter().fold(0.0_f64, |m, x| m.max(x.abs())).max(f64::MIN_POSITIVE);
    let off = a.iter().zip(b).map(|(x, y)| if x == y { 0.0 } else { (x - y).abs() / scale });
    off.fold(0.0, |m, x| if x.is_nan() { f64::INFINITY } else { m.max(x) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_to_the_largest_number() {
        assert_eq!(difference(&[1.0, 4.0], &[1.5, 4.0]), 0.125);
        assert_eq!(difference(&[0.0], &[0.0]), 0.0);
        assert_eq!(difference(&[1.0], &[1.0, 2.0]), f64::INFINITY);
        assert_eq!(difference(&[1.0], &[f64::NAN]), f64::INFINITY);
        assert_eq!(numbers(&json!({"b": [1, [2.5]], "a": 3})), [3.0, 1.0, 2.5]);
    }

    #[test]
    #[cfg(unix)]
    fn a_tool_is_asked_line_by_line() {
        // A tool of its own: it answers every message with the same result.
        let times = r#"[{"name":"prepare","nanoseconds":5},{"name":"evaluate","nanoseconds":2000},{"name":"evaluate","nanoseconds":1000}]"#;
        let reply = format!(r#"{{"id":$i,"success":true,"output":[1,2],"timings":{times}}}"#);
        let reply = reply.replace('"', "\\\"");
        let script = format!("sh -c 'i=0; while read line; do echo \"{reply}\"; i=$((i+1)); done'");
        let mut tool = Tool::start("echo", &script).expect("it starts");
        assert!(tool.define("lse", "").expect("it is defined").is_some());
        assert!(tool.define("lse", "").expect("it is defined").is_none());
        assert!(tool.define("lse", "n").expect("it is defined again").is_some());
        let answer = tool.evaluate("lse", "primal", r#"{"x":[0.5]}"#, 0.0).expect("it answers");
        assert_eq!(answer.runs, [2e-6, 1e-6]);
        assert_eq!(answer.output, json!([1, 2]));
        // A tool that answers with what it is told.
        let script = r#"sh -c 'read line; echo "{\"id\":0}"; read line; echo "{\"id\":1,\"success\":true,\"output\":$line,\"timings\":[{\"name\":\"evaluate\",\"nanoseconds\":1}]}"'"#;
        for (input, sent) in [
            ("2.5", json!(2.5)),
            ("{}", json!({"min_runs": 4, "min_seconds": 0.25})),
            (r#"{"x":{}}"#, json!({"x": {}, "min_runs": 4, "min_seconds": 0.25})),
        ] {
            let mut tool = Tool::start("mirror", script).expect("it starts");
            let answer = tool.evaluate("lse", "primal", input, 0.25).expect("it answers");
            let message =
                json!({"id": 1, "kind": "evaluate", "module": "lse", "function": "primal", "input": sent});
            assert_eq!(answer.output, message);
        }
        let gone = Tool::start("nothing", "true").map(|_| ());
        assert!(gone.is_err(), "it ends without an answer");
    }
}
