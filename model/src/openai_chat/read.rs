//! The answer's body: read as it comes, judged only at its end.

use super::calls::{Added, Calls};
use super::{Kept, WIRE, faults};
use crate::Heard;
use crate::sse::Events;
use crate::trouble::{Kind, Trouble};
use serde_json::Value;
use trace::{Said, Stop, Usage};

/// The most bytes that a whole reply may have.
const MOST: usize = 64 << 20;
/// The same of a streamed one, in which every token stands in some 300 bytes.
const MOST_STREAMED: usize = 128 << 20;
/// The most calls that a reply may make.
const MOST_CALLS: usize = 1000;

/// A usable reply.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub parts: Vec<Said>,
    pub stop: Stop,
    pub served: Option<String>,
    pub id: Option<String>,
}

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The model is at it.
    Open,
    /// The model has stopped; the usage may still come.
    Stopped,
    /// Nothing more will come.
    Done,
}

/// Reads one body: a stream of events, or one JSON object from servers that do not stream.
pub(crate) struct Reading {
    form: Form,
    /// Bytes that came.
    length: usize,
    draft: Draft,
}

enum Form {
    /// Nothing but white space came so far.
    Unknown,
    Events(Events),
    Whole(Vec<u8>),
    /// A web page.
    Page,
}

impl Reading {
    pub(crate) fn new() -> Reading {
        Reading { form: Form::Unknown, length: 0, draft: Draft::default() }
    }

    /// Takes the next bytes; `heard` is told of the words in them.
    pub(crate) fn push(&mut self, mut bytes: &[u8], heard: &dyn Fn(Heard<'_>)) {
        if let Form::Unknown = self.form {
            bytes = bytes.trim_ascii_start();
            self.form = match bytes.first() {
                None => return,
                Some(b'{') => Form::Whole(Vec::new()),
                Some(b'<') => Form::Page,
                Some(_) => Form::Events(Events::default()),
            };
        }
        self.length = self.length.saturating_add(bytes.len());
        match &mut self.form {
            Form::Unknown | Form::Page => {}
            Form::Whole(_) if self.length > MOST => self.draft.fail(Kind::Rejected, "the reply is longer than 64 MiB"),
            Form::Events(_) if self.length > MOST_STREAMED => self.draft.fail(Kind::Rejected, "the reply is longer than 128 MiB"),
            Form::Whole(body) => body.extend_from_slice(bytes),
            Form::Events(events) => {
                let draft = &mut self.draft;
                if let Err(error) = events.push(bytes, |data| draft.take(data, heard)) {
                    draft.fail(Kind::Rejected, &error.to_string());
                }
            }
        }
    }

    /// How far it has come.
    pub(crate) fn phase(&self) -> Phase {
        match (&self.draft.trouble, self.draft.done, &self.draft.finish) {
            (Some(_), _, _) | (None, true, _) => Phase::Done,
            (None, false, Some(_)) => Phase::Stopped,
            (None, false, None) => Phase::Open,
        }
    }

    /// The words, reasoning and arguments that came so far, in bytes.
    pub(crate) fn heard_bytes(&self) -> usize {
        self.draft.bytes
    }

    /// The end of the body, good or not: whether the reply is whole is told by the body itself. The usage is what the
    /// server told, also of a reply that is of no use.
    pub(crate) fn finish(self, heard: &dyn Fn(Heard<'_>)) -> (Result<Answer, Trouble>, Option<Usage>) {
        let mut draft = self.draft;
        match self.form {
            Form::Unknown => {}
            Form::Page => draft
                .fail(Kind::Rejected, "the answer is a web page, not a reply: is the base URL right? (it usually ends in /v1)"),
            Form::Events(events) => events.finish(|data| draft.take(data, heard)),
            Form::Whole(body) => {
                let text = String::from_utf8_lossy(&body);
                if let Ok(value) = serde_json::from_str::<Value>(&text) {
                    draft.take_value(&value, heard);
                    draft.done = true;
                    if value.get("choices").is_none() {
                        draft.fail(Kind::Rejected, &format!("the answer is not a reply: {}", faults::plain(&text)));
                    }
                }
            }
        }
        let usage = draft.usage;
        (draft.close(), usage)
    }
}

/// A reply as far as it came.
#[derive(Default)]
struct Draft {
    pieces: Vec<Piece>,
    calls: Calls,
    details: Vec<Value>,
    reasoning_in: Option<&'static str>,
    declined: bool,
    finish: Option<String>,
    done: bool,
    usage: Option<Usage>,
    served: Option<String>,
    id: Option<String>,
    bytes: usize,
    trouble: Option<Trouble>,
}

enum Piece {
    Text(String),
    Reasoning(String),
    Call(usize),
}

impl Draft {
    fn fail(&mut self, kind: Kind, message: &str) {
        self.trouble.get_or_insert_with(|| Trouble::new(kind, message));
    }

    /// Takes the data of one event. What comes after trouble or after the end is not heard.
    fn take(&mut self, data: &str, heard: &dyn Fn(Heard<'_>)) {
        let data = data.trim();
        if data.is_empty() || self.done || self.trouble.is_some() {
            return;
        }
        if data == "[DONE]" {
            self.done = true;
            return;
        }
        match serde_json::from_str(data) {
            Ok(value) => self.take_value(&value, heard),
            Err(_) => self.fail(Kind::Passing, "an event of the stream is not JSON"),
        }
    }

    fn take_value(&mut self, chunk: &Value, heard: &dyn Fn(Heard<'_>)) {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            self.trouble.get_or_insert(faults::in_stream(error));
            return;
        }
        self.usage = usage(&chunk["usage"]).or(self.usage);
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.served = self.served.take().or_else(|| text(&chunk["model"]));
        self.id = self.id.take().or_else(|| text(&chunk["id"]));
        let first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        let Some(choice) = chunk["choices"].as_array().and_then(|all| all.iter().find(first)) else { return };
        let said = if choice["message"].is_object() { &choice["message"] } else { &choice["delta"] };
        self.take_said(said, heard);
        self.finish = text(&choice["finish_reason"]).or(self.finish.take());
    }

    fn take_said(&mut self, said: &Value, heard: &dyn Fn(Heard<'_>)) {
        let words = |field: &str| said[field].as_str().filter(|text| !text.is_empty());
        // Some servers send reasoning in both fields at once.
        if let Some(text) = words("reasoning_content") {
            self.add_reasoning(text, None, heard);
        } else if let Some(text) = words("reasoning") {
            self.add_reasoning(text, Some("reasoning"), heard);
        }
        self.details.extend(said["reasoning_details"].as_array().into_iter().flatten().cloned());
        if let Some(text) = words("content") {
            self.add_text(text, heard);
        }
        if let Some(text) = words("refusal") {
            self.declined = true;
            self.add_text(text, heard);
        }
        for piece in said["tool_calls"].as_array().into_iter().flatten() {
            self.bytes += piece["function"]["arguments"].as_str().map_or(0, str::len);
            if let Added::New(place) = self.calls.add(piece) {
                if place >= MOST_CALLS {
                    return self.fail(Kind::Rejected, "the reply makes more than 1,000 calls");
                }
                self.pieces.push(Piece::Call(place));
                heard(Heard::Call { name: &self.calls.get(place).name });
            }
        }
    }

    fn add_text(&mut self, text: &str, heard: &dyn Fn(Heard<'_>)) {
        self.bytes += text.len();
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
        heard(Heard::Text(text));
    }

    fn add_reasoning(&mut self, text: &str, field: Option<&'static str>, heard: &dyn Fn(Heard<'_>)) {
        self.bytes += text.len();
        self.reasoning_in = field;
        match self.pieces.last_mut() {
            Some(Piece::Reasoning(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Reasoning(text.to_owned())),
        }
        heard(Heard::Reasoning(text));
    }

    /// What it comes to.
    fn close(mut self) -> Result<Answer, Trouble> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        let finish = self.finish.as_deref();
        if finish.is_none() && !self.done {
            return Err(Trouble::new(Kind::Passing, "the stream ended before the reply did"));
        }
        let cut = match finish {
            Some("error" | "abort") => return Err(Trouble::new(Kind::Passing, "the server broke off the reply")),
            Some("content_filter" | "refusal") => Some(Stop::Refused),
            _ if self.declined => Some(Stop::Refused),
            Some("length" | "max_tokens") => Some(Stop::Length),
            _ => None,
        };
        let parts = self.parts(cut.is_some());
        let calls = parts.iter().any(|part| matches!(part, Said::Call { .. }));
        let stop = cut.unwrap_or(if calls { Stop::Calls } else { Stop::End });
        let says = |part: &Said| match part {
            Said::Text { text } => !text.trim().is_empty(),
            Said::Call { .. } | Said::Cut { .. } => true,
            Said::Reasoning { .. } | Said::Opaque { .. } => false,
        };
        if stop != Stop::Refused && !parts.iter().any(says) {
            let message = match stop {
                Stop::Length => "the reply reached the limit of its output before a word or a call (--max-output raises it)",
                _ => "the reply holds neither words nor a call",
            };
            return Err(Trouble::new(Kind::Void, message));
        }
        Ok(Answer { parts, stop, served: self.served, id: self.id })
    }

    fn parts(&mut self, cut: bool) -> Vec<Said> {
        let calls = &self.calls;
        let part = |piece| match piece {
            Piece::Text(text) => Said::Text { text },
            Piece::Reasoning(text) => Said::Reasoning { text },
            Piece::Call(place) => {
                let call = calls.get(place);
                let (name, arguments) = (call.name.clone(), call.arguments.clone());
                if cut && calls.is_cut(place) {
                    Said::Cut { name, raw: arguments }
                } else {
                    Said::Call { id: call.id.clone(), name, arguments }
                }
            }
        };
        let mut parts: Vec<Said> = std::mem::take(&mut self.pieces).into_iter().map(part).collect();
        let details = merged(std::mem::take(&mut self.details));
        if self.reasoning_in.is_some() || details.is_some() {
            let kept = Kept { reasoning_in: self.reasoning_in.map(str::to_owned), reasoning_details: details };
            let json = serde_json::to_value(&kept).expect("a string and JSON values always serialise");
            parts.push(Said::Opaque { wire: WIRE.to_owned(), json });
        }
        parts
    }
}

/// Items of `reasoning_details`, those that came in pieces (neighbours of one type and index) put together.
fn merged(items: Vec<Value>) -> Option<Vec<Value>> {
    let mut list: Vec<Value> = Vec::new();
    for item in items {
        match list.last_mut() {
            Some(last) if item["index"].is_u64() && last["type"] == item["type"] && last["index"] == item["index"] => {
                let (Some(last), Value::Object(item)) = (last.as_object_mut(), item) else { continue };
                for (field, value) in item {
                    match (last.get_mut(&field), value) {
                        (Some(Value::String(before)), Value::String(more)) if matches!(&*field, "text" | "summary" | "data") => {
                            before.push_str(&more);
                        }
                        (_, Value::Null) => {}
                        (_, value) => drop(last.insert(field, value)),
                    }
                }
            }
            _ => list.push(item),
        }
    }
    (!list.is_empty()).then_some(list)
}

/// Tokens as the server counted them; `None` where it says nothing, or nothing but zeros.
fn usage(fields: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().or_else(|| value.as_f64().map(|count| count as u64));
    let input = count(&fields["prompt_tokens"])?;
    let output = count(&fields["completion_tokens"]).unwrap_or(0);
    let of_input = &fields["prompt_tokens_details"];
    let cached = count(&of_input["cached_tokens"]).or_else(|| count(&fields["prompt_cache_hit_tokens"])).unwrap_or(0);
    let cache_write = count(&of_input["cache_write_tokens"]).unwrap_or(0);
    let reasoning = count(&fields["completion_tokens_details"]["reasoning_tokens"]).unwrap_or(0);
    (input.saturating_add(output) > 0).then_some(Usage { input, cached, cache_write, output, reasoning })
}
