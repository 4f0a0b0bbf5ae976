//! What the events of a reply say, or a whole reply at once.

use super::calls::{Added, Calls};
use super::{Kept, WIRE};
use crate::Heard;
use crate::openai;
use crate::trouble::{Kind, Trouble, plain};
use crate::wire::{self, Answer, Phase, usable};
use serde_json::Value;
use trace::{Said, Stop, Usage};

/// The most calls that a reply may make.
const MOST_CALLS: usize = 1000;

/// A reply as far as it came.
#[derive(Default)]
pub(crate) struct Draft {
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
    trouble: Option<Trouble>,
}

enum Piece {
    Text(String),
    Reasoning(String),
    Call(usize),
}

impl wire::Draft for Draft {
    fn event(&mut self, data: &str, heard: &dyn Fn(Heard<'_>)) {
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
            Err(_) => self.give_up(Kind::Passing, "an event of the stream is not JSON"),
        }
    }

    fn whole(&mut self, reply: &Value, heard: &dyn Fn(Heard<'_>)) {
        self.take_value(reply, heard);
        self.done = true;
        if reply.get("choices").is_none() {
            self.give_up(Kind::Rejected, &format!("the answer is not a reply: {}", plain(&reply.to_string())));
        }
    }

    fn fail(&mut self, trouble: Trouble) {
        self.trouble.get_or_insert(trouble);
    }

    fn phase(&self) -> Phase {
        match (&self.trouble, self.done, &self.finish) {
            (Some(_), _, _) | (None, true, _) => Phase::Done,
            (None, false, Some(_)) => Phase::Stopped,
            (None, false, None) => Phase::Open,
        }
    }

    fn close(self: Box<Self>) -> (Result<Answer, Trouble>, Option<Usage>) {
        let usage = self.usage;
        (self.answer(), usage)
    }
}

impl Draft {
    fn give_up(&mut self, kind: Kind, message: &str) {
        self.trouble.get_or_insert_with(|| Trouble::new(kind, message));
    }

    fn take_value(&mut self, chunk: &Value, heard: &dyn Fn(Heard<'_>)) {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            self.trouble.get_or_insert(openai::in_stream(error));
            return;
        }
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.served = self.served.take().or_else(|| text(&chunk["model"]));
        self.id = self.id.take().or_else(|| text(&chunk["id"]));
        let first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        let choice = chunk["choices"].as_array().and_then(|all| all.iter().find(first));
        // Kimi puts the usage into the choice (github.com/earendil-works/pi/pull/2016).
        let in_choice = || usage(&choice?["usage"]);
        self.usage = usage(&chunk["usage"]).or_else(in_choice).or(self.usage);
        let Some(choice) = choice else { return };
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
        // Mistral's models that think send a list of parts.
        for part in said["content"].as_array().into_iter().flatten() {
            let thought = part["thinking"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            thought.filter(|text| !text.is_empty()).for_each(|text| self.add_reasoning(text, None, heard));
            if let Some(text) = part["text"].as_str().filter(|text| !text.is_empty()) {
                self.add_text(text, heard);
            }
        }
        if let Some(text) = words("refusal") {
            self.declined = true;
            self.add_text(text, heard);
        }
        for piece in said["tool_calls"].as_array().into_iter().flatten() {
            let Added { new, bytes } = self.calls.add(piece);
            if let Some(place) = new {
                if place >= MOST_CALLS {
                    return self.give_up(Kind::Void, "the reply makes more than 1,000 calls");
                }
                self.pieces.push(Piece::Call(place));
                heard(Heard::Call { name: &self.calls.get(place).name });
            }
            heard(Heard::Arguments { bytes });
        }
    }

    fn add_text(&mut self, text: &str, heard: &dyn Fn(Heard<'_>)) {
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
        heard(Heard::Text(text));
    }

    fn add_reasoning(&mut self, text: &str, field: Option<&'static str>, heard: &dyn Fn(Heard<'_>)) {
        self.reasoning_in = field;
        match self.pieces.last_mut() {
            Some(Piece::Reasoning(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Reasoning(text.to_owned())),
        }
        heard(Heard::Reasoning(text));
    }

    /// What it comes to.
    fn answer(mut self) -> Result<Answer, Trouble> {
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
        usable(parts, cut.unwrap_or(if calls { Stop::Calls } else { Stop::End }), self.served, self.id)
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
    // OpenAI's, DeepSeek's, Kimi's.
    let cached = [&of_input["cached_tokens"], &fields["prompt_cache_hit_tokens"], &fields["cached_tokens"]];
    let cached = cached.into_iter().find_map(count).unwrap_or(0);
    let cache_write = count(&of_input["cache_write_tokens"]).unwrap_or(0);
    let reasoning = count(&fields["completion_tokens_details"]["reasoning_tokens"]).unwrap_or(0);
    // xAI counts reasoning beside the completion (docs.x.ai, github.com/vercel/ai/pull/12425).
    let with_reasoning = output.saturating_add(reasoning);
    let beside = reasoning > output || count(&fields["total_tokens"]) == Some(input.saturating_add(with_reasoning));
    let output = if beside { with_reasoning } else { output };
    (input.saturating_add(output) > 0).then_some(Usage { input, cached, cache_write, output, reasoning })
}
