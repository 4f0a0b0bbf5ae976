//! The request body: first what stays, then what grows, last what a small budget changes.

use super::{Kept, WIRE};
use crate::prompt::{is_words, text_of};
use crate::provider::{self, AfterResults, CallIds, Provider, ReasoningField, Schemas, UsageInStream};
use crate::schema::{self, Form};
use crate::wire::json;
use crate::{Message, SentCall, SentPart, SentPicture};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use trace::{CallId, ModelSpec, Said, ToolSpec};

/// The body as far as it is written: everything up to the last message.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    text: String,
    /// Whether a message stands in it.
    begun: bool,
    /// Pictures in the results of the last reply: a result is words here, so they follow in a message of their own once all
    /// results stand, as a list of parts.
    held: String,
    /// Whether the last message is a result.
    ends_in_result: bool,
    row: &'static Provider,
}

/// What stands between results and a user's message where only the model may speak after results. It cannot be empty.
const BRIDGE: &str = "I see.";

impl Writing {
    pub(crate) fn new(spec: &ModelSpec, system: &str, tools: &[ToolSpec], form: Option<&Form>) -> Writing {
        let row = provider::row(&spec.provider);
        let form = form.filter(|_| tools.is_empty() || row.schemas != Schemas::NeverWithTools);
        let head = Head {
            model: &spec.name,
            stream: true,
            stream_options: (row.usage == UsageInStream::Asked).then_some(StreamOptions { include_usage: true }),
            reasoning_effort: spec.effort.as_deref(),
            response_format: form.map(ResponseFormat::of),
            tools: tools.iter().map(tool).collect(),
        };
        let mut text = json(&head);
        text.pop();
        text.push_str(",\"messages\":[");
        let mut writing = Writing { text, begun: false, held: String::new(), ends_in_result: false, row };
        if !system.is_empty() {
            writing.append(&Turn::System { content: system });
        }
        writing
    }

    pub(crate) fn push(&mut self, message: &Message) {
        match message {
            Message::Result { id, content, .. } => self.hold(id, content),
            Message::User(_) | Message::Reply { .. } if !self.held.is_empty() => {
                self.text.push_str(&std::mem::take(&mut self.held));
                self.ends_in_result = false;
            }
            Message::User(_) | Message::Reply { .. } => {}
        }
        let Some(turn) = turn(message, self.row) else { return };
        if matches!(turn, Turn::User { .. }) && self.needs_bridge() {
            self.append(&bridge());
        }
        self.ends_in_result = matches!(turn, Turn::Tool { .. });
        self.append(&turn);
    }

    /// Whether a word of the model has to stand before what a user says next.
    fn needs_bridge(&self) -> bool {
        self.ends_in_result && self.row.after_results == AfterResults::Model
    }

    fn append(&mut self, turn: &Turn<'_>) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
        self.text.push_str(&json(turn));
    }

    /// Keeps the pictures of a result for after the last one.
    fn hold(&mut self, id: &CallId, content: &[SentPart]) {
        if is_words(content) {
            return;
        }
        let of = format!("Shown by {}:", call_id(id, self.row.call_ids));
        let pictures = content.iter().filter(|part| matches!(part, SentPart::Picture(_))).map(piece);
        let parts = std::iter::once(Piece::Text { text: &of }).chain(pictures).collect();
        if self.held.is_empty() && self.row.after_results == AfterResults::Model {
            self.held.push(',');
            self.held.push_str(&json(&bridge()));
        }
        self.held.push(',');
        self.held.push_str(&json(&Turn::User { content: Content::Parts(parts) }));
    }

    /// Bytes that are written.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.held.len()
    }

    pub(crate) fn body(&self, max_output: u64) -> String {
        let tail = format!("],\"{}\":{max_output}}}", self.row.max_tokens_field);
        [&*self.text, &self.held, &tail].concat()
    }
}

/// The fields before the messages, in the order in which they are sent.
#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

impl ResponseFormat<'_> {
    fn of(form: &Form) -> ResponseFormat<'_> {
        let json_schema = JsonSchema { name: schema::NAME, schema: &form.schema, strict: form.strict };
        ResponseFormat { r#type: "json_schema", json_schema }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Turn<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(flatten)]
        thought: Thought,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

/// What a user says: words where it is nothing else, as every server takes it.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Words(String),
    Parts(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
    detail: &'static str,
}

impl ImageUrl {
    fn of(picture: &SentPicture) -> ImageUrl {
        ImageUrl { url: picture.data_url(), detail: "high" }
    }
}

/// Reasoning on its way back.
#[derive(Default, Serialize)]
struct Thought {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Vec<Value>>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let function = ToolFunction { name: &spec.name, description: &spec.description, parameters: &spec.parameters };
    Tool { r#type: "function", function }
}

/// A message as it is sent; `None` for a reply of which nothing is sent (only reasoning, or a call that was cut off).
fn turn<'a>(message: &'a Message, row: &Provider) -> Option<Turn<'a>> {
    match message {
        Message::User(parts) => Some(Turn::User { content: content(parts) }),
        Message::Result { id, status: _, content } => {
            Some(Turn::Tool { tool_call_id: call_id(id, row.call_ids), content: text_of(content) })
        }
        Message::Reply { parts, calls } => {
            let text: String =
                parts.iter().filter_map(|part| if let Said::Text { text } = part { Some(&**text) } else { None }).collect();
            // Claude behind a gateway refuses words that are blank.
            let content = Some(text).filter(|text| !text.trim().is_empty());
            if content.is_none() && calls.is_empty() {
                return None;
            }
            let tool_calls = calls.iter().map(|sent| call(sent, row.call_ids)).collect();
            Some(Turn::Assistant { content, thought: thought(parts, calls, row.reasoning), tool_calls })
        }
    }
}

fn bridge() -> Turn<'static> {
    Turn::Assistant { content: Some(BRIDGE.to_owned()), thought: Thought::default(), tool_calls: Vec::new() }
}

fn call(call: &SentCall, ids: CallIds) -> Call<'_> {
    let function = CallFunction { name: &call.name, arguments: &call.arguments };
    Call { id: call_id(&call.id, ids), r#type: "function", function }
}

fn call_id(id: &CallId, ids: CallIds) -> Cow<'_, str> {
    match ids {
        CallIds::Ours => id.as_str().into(),
        CallIds::Nine => nine(id.as_str()).into(),
    }
}

/// `c12_0` in nine digits: six of the reply and three of the call, the former in base 36 where it needs that. What cannot be
/// written so (after two thousand million events, or a thousand calls) becomes nine digits of a digest.
fn nine(id: &str) -> String {
    let numbers = id.strip_prefix('c').and_then(|id| id.split_once('_'));
    let numbers = numbers.and_then(|(reply, call)| Some((reply.parse::<u64>().ok()?, call.parse::<u64>().ok()?)));
    match numbers {
        Some((reply, call)) if reply < 36u64.pow(6) && call < 1000 => {
            let digit = |place: u32| (reply / 36u64.pow(place) % 36) as u32;
            let letters = (0..6).rev().filter_map(|place| char::from_digit(digit(place), 36));
            letters.chain(format!("{call:03}").chars()).collect()
        }
        _ => trace::Digest::of(id.as_bytes()).to_string()[..9].to_owned(),
    }
}

fn thought(parts: &[Said], calls: &[SentCall], field: ReasoningField) -> Thought {
    let kept = parts.iter().find_map(|part| match part {
        Said::Opaque { wire, json } if wire == WIRE => Kept::deserialize(json).ok(),
        _ => None,
    });
    let (came_in, reasoning_details) = kept.map_or((None, None), |kept| (kept.reasoning_in, kept.reasoning_details));
    let name = match field {
        ReasoningField::Never => return Thought::default(),
        ReasoningField::Named(name) | ReasoningField::Needed(name) => name,
        ReasoningField::AsItCame => came_in.as_deref().unwrap_or("reasoning_content"),
    };
    let text: String =
        parts.iter().filter_map(|part| if let Said::Reasoning { text } = part { Some(&**text) } else { None }).collect();
    let text = match field {
        ReasoningField::Needed(_) if text.is_empty() => Some(stand_in(calls)),
        _ => Some(text).filter(|text| !text.is_empty()),
    };
    match name {
        "reasoning" => Thought { reasoning: text, reasoning_details, ..Thought::default() },
        _ => Thought { reasoning_content: text, reasoning_details, ..Thought::default() },
    }
}

/// What stands for the reasoning of a reply that has none, because another model made it: some words, and other ones for
/// each reply.
fn stand_in(calls: &[SentCall]) -> String {
    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    if ids.is_empty() { " ".to_owned() } else { ids.join(" ") }
}

fn content(parts: &[SentPart]) -> Content<'_> {
    if is_words(parts) { Content::Words(text_of(parts)) } else { Content::Parts(parts.iter().map(piece).collect()) }
}

fn piece(part: &SentPart) -> Piece<'_> {
    match part {
        SentPart::Text(text) => Piece::Text { text },
        SentPart::Picture(picture) => Piece::ImageUrl { image_url: ImageUrl::of(picture) },
    }
}
