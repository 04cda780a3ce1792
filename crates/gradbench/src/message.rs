//! What comes in a line, and what is answered.

use serde_json::Value as Json;
use std::fmt::Write;
use std::time::Duration;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// What the answer repeats.
    pub id: Json,
    /// What is to be done.
    pub kind: Kind,
}

/// What a message wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The tool's name.
    Start,
    /// A problem to be made ready.
    Define {
        /// Its name.
        module: String,
    },
    /// A function to be run.
    Evaluate {
        /// The problem's name.
        module: String,
        /// The function's name.
        function: String,
        /// What it is run on.
        input: Json,
    },
    /// Nothing that this tool knows or needs to.
    Other,
}

impl Message {
    /// Reads a line. Errors: no JSON object, or one without what its kind needs; with the message's id, if it has one.
    pub fn read(line: &[u8]) -> Result<Message, (Json, String)> {
        let json: Json = serde_json::from_slice(line)
            .map_err(|e| (first_id(line), format!("the message is not JSON: {e}")))?;
        let Json::Object(mut fields) = json else {
            return Err((Json::Null, "the message is not a JSON object".to_string()));
        };
        let id = fields.remove("id").unwrap_or_default();
        let mut text = |name: &str| match fields.remove(name) {
            Some(Json::String(text)) => Ok(text),
            _ => Err((id.clone(), format!("the message has no text `{name}`"))),
        };
        let kind = match text("kind")?.as_str() {
            "start" => Kind::Start,
            "define" => Kind::Define { module: text("module")? },
            "evaluate" => {
                let (module, function) = (text("module")?, text("function")?);
                let input = fields.remove("input");
                let input = input.ok_or_else(|| (id.clone(), "the message has no `input`".to_string()))?;
                Kind::Evaluate { module, function, input }
            }
            _ => Kind::Other,
        };
        Ok(Message { id, kind })
    }
}

/// The id of a message that is no JSON further on, where it comes first: somebody waits for an answer with it.
fn first_id(line: &[u8]) -> Json {
    let rest = ["{", "\"id\"", ":"]
        .into_iter()
        .try_fold(line, |rest, what| rest.trim_ascii_start().strip_prefix(what.as_bytes()));
    let first = |rest: &[u8]| serde_json::Deserializer::from_slice(rest).into_iter().next()?.ok();
    rest.and_then(first).unwrap_or_default()
}

/// How often a function is run: at least so often, and at least so many seconds together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// `min_runs`.
    pub least: u64,
    /// `min_seconds`.
    pub seconds: f64,
}

impl Runs {
    /// From the fields of an input; one run where they are missing. Errors: fields of another kind.
    pub fn of(input: &Json) -> Result<Runs, String> {
        let field = |name: &str| input.get(name).filter(|f| !f.is_null());
        let least = field("min_runs").map_or(Ok(1), |n| {
            n.as_u64().filter(|n| *n >= 1).ok_or_else(|| format!("min_runs is {n}, not a positive integer"))
        })?;
        let seconds = field("min_seconds").map_or(Ok(0.0), |s| {
            s.as_f64()
                .filter(|s| *s >= 0.0)
                .ok_or_else(|| format!("min_seconds is {s}, not a number of seconds"))
        })?;
        Ok(Runs { least, seconds })
    }
    /// Whether these runs are enough.
    pub fn are_met_by(&self, runs: &[Duration], total: Duration) -> bool {
        runs.len() as u64 >= self.least && total.as_secs_f64() >= self.seconds
    }
}

/// A time with what it was spent on: `evaluate` for a run of the function.
pub type Timing = (&'static str, Duration);

/// An answer without results.
pub fn answer(id: &Json) -> String {
    format!("{{\"id\":{id}}}")
}

/// The answer to `start`.
pub fn name(id: &Json, tool: &str) -> String {
    format!("{{\"id\":{id},\"tool\":{}}}", Json::from(tool))
}

/// The answer of something done; `output`: its result as JSON.
pub fn success(id: &Json, output: Option<&Json>, timings: &[Timing]) -> String {
    let mut out = format!("{{\"id\":{id},\"success\":true");
    if let Some(output) = output {
        // Writing to a text does not fail.
        write!(out, ",\"output\":{output}").ok();
    }
    out.push_str(",\"timings\":[");
    for (k, (name, time)) in timings.iter().enumerate() {
        let comma = if k == 0 { "" } else { "," };
        write!(out, "{comma}{{\"name\":\"{name}\",\"nanoseconds\":{}}}", time.as_nanos()).ok();
    }
    out.push_str("]}");
    out
}

/// The answer where something failed, and why.
pub fn failure(id: &Json, error: &str) -> String {
    format!("{{\"id\":{id},\"success\":false,\"error\":{}}}", Json::from(error))
}
