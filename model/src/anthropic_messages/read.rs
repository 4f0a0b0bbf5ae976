//! What the events of a reply say, or a whole reply at once.

use super::{WIRE, faults};
use crate::Heard;
use crate::trouble::{Kind, Trouble, plain};
use crate::wire::{self, Answer, Phase, usable};
use serde_json::{Map, Value};
use trace::{Said, Stop, Usage};

/// The most blocks that a reply may have.
const MOST_BLOCKS: usize = 1000;

/// A reply as far as it came.
#[derive(Default)]
pub(crate) struct Draft {
    blocks: Vec<Block>,
    finish: Option<String>,
    /// The provider's words for why it declines (platform.claude.com/docs/test-and-evaluate/strengthen-guardrails/
    /// handle-streaming-refusals).
    explanation: Option<String>,
    /// Whether the reply came whole, not as a stream: then nothing tells a call that was cut from one that was not.
    at_once: bool,
    done: bool,
    usage: Counts,
    served: Option<String>,
    id: Option<String>,
    trouble: Option<Trouble>,
}

/// A content block as far as it came.
struct Block {
    index: u64,
    said: Content,
    /// Whether its end came.
    closed: bool,
}

enum Content {
    Text(String),
    /// Thinking, its words and its signature among the fields, as it goes back.
    Thought(Map<String, Value>),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// Something else that goes back as it came: thinking that is not to be read, and what later versions add.
    Kept(Value),
}

/// Tokens as the server counted them; of each count the last one that is not zero.
#[derive(Default)]
struct Counts {
    input: u64,
    read: u64,
    written: u64,
    output: u64,
    /// Whether the count of the whole reply came.
    is_final: bool,
}

impl wire::Draft for Draft {
    fn event(&mut self, data: &str, heard: &dyn Fn(Heard<'_>)) {
        let data = data.trim();
        if data.is_empty() || self.done || self.trouble.is_some() {
            return;
        }
        match serde_json::from_str(data) {
            Ok(event) => self.take(&event, heard),
            Err(_) => self.give_up(Kind::Passing, "an event of the stream is not JSON"),
        }
    }

    fn whole(&mut self, reply: &Value, heard: &dyn Fn(Heard<'_>)) {
        self.at_once = true;
        if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
            return self.fail(faults::in_stream(error));
        }
        let Some(content) = reply["content"].as_array() else {
            return self.give_up(Kind::Rejected, &format!("the answer is not a reply: {}", plain(&reply.to_string())));
        };
        self.head(reply);
        for (index, block) in (0..).zip(content) {
            self.start(index, block, heard);
            self.stop(index);
        }
        self.end(reply, heard);
        self.done = true;
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
        let usage = self.usage.told();
        (self.answer(), usage)
    }
}

impl Draft {
    fn give_up(&mut self, kind: Kind, message: &str) {
        self.trouble.get_or_insert_with(|| Trouble::new(kind, message));
    }

    fn take(&mut self, event: &Value, heard: &dyn Fn(Heard<'_>)) {
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.head(&event["message"]),
            "content_block_start" => self.start(index, &event["content_block"], heard),
            "content_block_delta" => self.delta(index, &event["delta"], heard),
            "content_block_stop" => self.stop(index),
            "message_delta" => {
                self.end(&event["delta"], heard);
                self.usage.add(&event["usage"]);
            }
            "message_stop" => self.done = true,
            "error" => {
                self.trouble.get_or_insert_with(|| faults::in_stream(&event["error"]));
            }
            // Signs of life, and what later versions add.
            _ => {}
        }
    }

    fn head(&mut self, message: &Value) {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.served = text(&message["model"]);
        self.id = text(&message["id"]);
        self.usage.add(&message["usage"]);
    }

    fn end(&mut self, fields: &Value, heard: &dyn Fn(Heard<'_>)) {
        let Some(reason) = fields["stop_reason"].as_str() else { return };
        self.finish = Some(reason.to_owned());
        self.usage.is_final = true;
        let words = fields["stop_details"]["explanation"].as_str().filter(|words| !words.trim().is_empty());
        if let (Some(words), "refusal", None) = (words, reason, &self.explanation) {
            let has_words = self.blocks.iter().any(|block| matches!(&block.said, Content::Text(text) if !text.trim().is_empty()));
            let words = if has_words { format!("\n\n{words}") } else { words.to_owned() };
            heard(Heard::Text(&words));
            self.explanation = Some(words);
        }
    }

    fn start(&mut self, index: u64, block: &Value, heard: &dyn Fn(Heard<'_>)) {
        if self.blocks.len() >= MOST_BLOCKS {
            return self.give_up(Kind::Void, "the reply has more than 1,000 blocks");
        }
        let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        let said = match (block["type"].as_str().unwrap_or_default(), block) {
            ("text", _) => Content::Text(text("text")),
            ("thinking", Value::Object(fields)) => Content::Thought(fields.clone()),
            ("tool_use", _) => {
                let arguments = match &block["input"] {
                    Value::Object(fields) if fields.is_empty() => String::new(),
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    whole => whole.to_string(),
                };
                Content::Call { id: text("id"), name: text("name"), arguments }
            }
            _ => Content::Kept(block.clone()),
        };
        match &said {
            Content::Text(text) if !text.is_empty() => heard(Heard::Text(text)),
            Content::Thought(fields) => match fields.get("thinking").and_then(Value::as_str) {
                Some(text) if !text.is_empty() => heard(Heard::Reasoning(text)),
                _ => {}
            },
            Content::Call { name, arguments, .. } => {
                heard(Heard::Call { name });
                heard(Heard::Arguments { bytes: arguments.len() });
            }
            Content::Text(_) | Content::Kept(_) => {}
        }
        self.blocks.push(Block { index, said, closed: false });
    }

    fn delta(&mut self, index: u64, delta: &Value, heard: &dyn Fn(Heard<'_>)) {
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index && !block.closed) else {
            return self.give_up(Kind::Passing, "a piece of the stream belongs to no block");
        };
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        match (delta["type"].as_str().unwrap_or_default(), &mut block.said) {
            ("text_delta", Content::Text(before)) => {
                before.push_str(text("text"));
                heard(Heard::Text(text("text")));
            }
            ("thinking_delta", Content::Thought(fields)) => {
                append(fields, "thinking", text("thinking"));
                heard(Heard::Reasoning(text("thinking")));
            }
            ("signature_delta", Content::Thought(fields)) => append(fields, "signature", text("signature")),
            ("input_json_delta", Content::Call { arguments, .. }) => {
                arguments.push_str(text("partial_json"));
                heard(Heard::Arguments { bytes: text("partial_json").len() });
            }
            // What is not known cannot be put together, so the block does not go back.
            (_, said @ Content::Kept(_)) => *said = Content::Kept(Value::Null),
            // Citations, and what later versions add to the words.
            _ => {}
        }
    }

    fn stop(&mut self, index: u64) {
        if let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) {
            block.closed = true;
        }
    }

    /// What it comes to.
    fn answer(mut self) -> Result<Answer, Trouble> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        if !self.done {
            return Err(Trouble::new(Kind::Passing, "the stream ended before the reply did"));
        }
        let cut = match self.finish.as_deref() {
            Some("refusal") => Some(Stop::Refused),
            // The server broke off where it could go on: that is no claim to be done.
            Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => Some(Stop::Length),
            _ => None,
        };
        if cut.is_none() && self.blocks.iter().any(|block| !block.closed) {
            return Err(Trouble::new(Kind::Passing, "the stream ended before a block of the reply did"));
        }
        let (last, at_once) = (self.blocks.len().saturating_sub(1), self.at_once);
        let said = |(place, block): (usize, Block)| {
            let may_be_cut = cut.is_some() && (!block.closed || place == last);
            parts(block.said, may_be_cut, at_once)
        };
        let explanation = self.explanation.map(|text| Said::Text { text });
        let parts: Vec<Said> = self.blocks.into_iter().enumerate().flat_map(said).chain(explanation).collect();
        let calls = parts.iter().any(|part| matches!(part, Said::Call { .. }));
        usable(parts, cut.unwrap_or(if calls { Stop::Calls } else { Stop::End }), self.served, self.id)
    }
}

/// What is kept of a block. A call that was cut in a whole reply looks like one that was not.
fn parts(said: Content, may_be_cut: bool, at_once: bool) -> Vec<Said> {
    let kept = |json: Value| Said::Opaque { wire: WIRE.to_owned(), json };
    match said {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => vec![Said::Text { text }],
        Content::Thought(fields) => {
            let text = fields.get("thinking").and_then(Value::as_str).filter(|text| !text.is_empty());
            let words = text.map(|text| Said::Reasoning { text: text.to_owned() });
            words.into_iter().chain([kept(Value::Object(fields))]).collect()
        }
        Content::Call { name, arguments, .. } if may_be_cut && (at_once || !is_whole(&arguments)) => {
            vec![Said::Cut { name, raw: arguments }]
        }
        // A call without a piece of arguments has none.
        Content::Call { id, name, arguments } if arguments.is_empty() => {
            vec![Said::Call { id, name, arguments: "{}".to_owned() }]
        }
        Content::Call { id, name, arguments } => vec![Said::Call { id, name, arguments }],
        Content::Kept(Value::Null) => Vec::new(),
        Content::Kept(json) => vec![kept(json)],
    }
}

/// Whether arguments are JSON from the first to the last byte.
fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

fn append(fields: &mut Map<String, Value>, field: &str, more: &str) {
    match fields.get_mut(field) {
        Some(Value::String(before)) => before.push_str(more),
        _ => drop(fields.insert(field.to_owned(), more.into())),
    }
}

impl Counts {
    fn add(&mut self, fields: &Value) {
        let told = |field: &str, count: &mut u64| {
            if let Some(last) = fields[field].as_u64().filter(|last| *last > 0) {
                *count = last;
            }
        };
        told("input_tokens", &mut self.input);
        told("cache_read_input_tokens", &mut self.read);
        told("cache_creation_input_tokens", &mut self.written);
        told("output_tokens", &mut self.output);
    }

    /// The usage of the whole reply; `None` where it did not come, or is nothing but zeros. The API counts what was read
    /// from a cache or written to one beside the input, not in it.
    fn told(&self) -> Option<Usage> {
        let input = self.input.saturating_add(self.read).saturating_add(self.written);
        let usage = Usage { input, cached: self.read, cache_write: self.written, output: self.output, reasoning: 0 };
        (self.is_final && usage.total() > 0).then_some(usage)
    }
}
