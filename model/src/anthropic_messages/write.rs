//! The request body: first what stays, then what grows, last what a small budget changes.
//!
//! Marks say how far a cache may keep the prompt, at most four a request: the tools, the instructions, the end of the
//! request before this one, and the end of this one. The last two move on, so they are put in where a body is made; they
//! aside, each body extends the one before.

use super::WIRE;
use crate::prompt::{is_words, text_of};
use crate::schema::Form;
use crate::wire::json;
use crate::{Message, SentCall, SentPart};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;
use trace::{ModelSpec, Said, Status, ToolSpec};

/// What is put into a block to mark it, before its closing brace.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The body as far as it is written: everything up to the last message.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    text: String,
    /// Whether a message stands in it.
    begun: bool,
    /// Whether the last message holds results and may get more of them.
    open: bool,
    /// The closing brace of the last block that is no reply's: where a request ends.
    end: Option<usize>,
    /// The same before the last reply: where the request ended that it answers.
    end_before: Option<usize>,
}

impl Writing {
    pub(crate) fn new(spec: &ModelSpec, system: &str, tools: &[ToolSpec], form: Option<&Form>) -> Writing {
        let last = tools.len().wrapping_sub(1);
        let head = Head {
            model: &spec.name,
            stream: true,
            // Models that take an effort are those that decide themselves how much to think.
            thinking: spec.effort.as_ref().map(|_| Thinking { r#type: "adaptive", display: "summarized" }),
            output_config: (spec.effort.is_some() || form.is_some())
                .then(|| OutputConfig { effort: spec.effort.as_deref(), format: form.map(Format::of) }),
            system: (!system.is_empty()).then_some([Text { cache_control: Some(CACHED), ..Text::of(system) }]),
            tools: tools.iter().enumerate().map(|(place, spec)| tool(spec, (place == last).then_some(CACHED))).collect(),
        };
        let mut text = json(&head);
        text.pop();
        text.push_str(",\"messages\":[");
        Writing { text, begun: false, open: false, end: None, end_before: None }
    }

    pub(crate) fn push(&mut self, message: &Message) {
        match message {
            Message::Result { id, status, content } => {
                // An error that is not all words is refused.
                let is_error = (*status != Status::Ok && is_words(content)).then_some(true);
                let content = self::content(content);
                self.result(&json(&ToolResult { r#type: "tool_result", tool_use_id: id.as_str(), content, is_error }));
            }
            Message::User(parts) => {
                self.close();
                let blocks: Vec<String> = parts.iter().filter_map(block).map(|block| json(&block)).collect();
                if !blocks.is_empty() {
                    self.message("user", &blocks);
                    self.end = Some(self.text.len() - "}]}".len());
                }
            }
            Message::Reply { parts, calls } => {
                self.close();
                let blocks = said(parts, calls);
                if !blocks.is_empty() {
                    self.end_before = self.end;
                    self.message("assistant", &blocks);
                }
            }
        }
    }

    /// Results of one reply stand in one message.
    fn result(&mut self, block: &str) {
        if self.open {
            self.text.push(',');
        } else {
            self.separate();
            self.text.push_str(r#"{"role":"user","content":["#);
            self.open = true;
        }
        self.text.push_str(block);
        self.end = Some(self.text.len() - "}".len());
    }

    fn close(&mut self) {
        if self.open {
            self.text.push_str("]}");
            self.open = false;
        }
    }

    fn message(&mut self, role: &str, blocks: &[String]) {
        self.separate();
        self.text.push_str(&format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(",")));
    }

    fn separate(&mut self) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
    }

    /// Bytes that are written.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn body(&self, max_output: u64) -> String {
        let end_before = self.end_before.filter(|before| Some(*before) != self.end);
        let mut body = String::with_capacity(self.text.len() + 128);
        let mut from = 0;
        for end in [end_before, self.end].into_iter().flatten() {
            body.push_str(&self.text[from..end]);
            body.push_str(MARK);
            from = end;
        }
        body.push_str(&self.text[from..]);
        if self.open {
            body.push_str("]}");
        }
        body.push_str(&format!("],\"max_tokens\":{max_output}}}"));
        body
    }
}

/// The fields before the messages, in the order in which they are sent.
#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Text<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

/// The words of thinking come back as a summary, for people; what the model itself gets back is the signature.
#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    display: &'static str,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

impl Format<'_> {
    fn of(form: &Form) -> Format<'_> {
        Format { r#type: "json_schema", schema: &form.schema }
    }
}

/// How far a cache may keep the prompt.
#[derive(Serialize)]
struct Mark {
    r#type: &'static str,
}

/// The same as `MARK`, in what is serialised.
const CACHED: Mark = Mark { r#type: "ephemeral" };

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

fn tool(spec: &ToolSpec, cache_control: Option<Mark>) -> Tool<'_> {
    Tool { name: &spec.name, description: &spec.description, input_schema: &spec.parameters, cache_control }
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

impl Text<'_> {
    fn of(text: &str) -> Text<'_> {
        Text { r#type: "text", text, cache_control: None }
    }
}

#[derive(Serialize)]
struct ToolResult<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
}

/// The blocks of a reply in the order in which they came, as far as they may be sent back: no blank text, no call that was
/// cut off, no thinking without a signature, and none at the end, which then led to nothing (the API refuses all four). Blank
/// text between two blocks of thinking goes back: without it they count as modified.
fn said(parts: &[Said], calls: &[SentCall]) -> Vec<String> {
    let (mut calls, mut blocks, mut length) = (calls.iter(), Vec::new(), 0);
    // Blank text right after thinking.
    let mut between: Vec<&str> = Vec::new();
    for part in parts {
        match part {
            Said::Text { text } if text.trim().is_empty() => {
                if !text.is_empty() && blocks.len() > length {
                    between.push(text);
                }
                continue;
            }
            Said::Text { text } => blocks.push(json(&Text::of(text))),
            Said::Call { .. } => blocks.extend(calls.next().map(call)),
            Said::Opaque { wire, json: block } if wire == WIRE && !is_unsigned(block) => {
                blocks.extend(between.drain(..).map(|text| json(&Text::of(text))));
                blocks.push(json(block));
                continue;
            }
            Said::Opaque { .. } | Said::Reasoning { .. } | Said::Cut { .. } => continue,
        }
        between.clear();
        length = blocks.len();
    }
    blocks.truncate(length);
    blocks.extend(calls.map(call));
    blocks
}

/// Thinking whose signature did not come, as from a server that only speaks like Anthropic's.
fn is_unsigned(block: &Value) -> bool {
    block["type"] == "thinking" && block["signature"].as_str().is_none_or(str::is_empty)
}

fn call(call: &SentCall) -> String {
    // The API takes an object and nothing else.
    let is_object = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&call.arguments).is_ok();
    let input = if is_object { &*call.arguments } else { "{}" };
    format!(r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#, json(&call.id.as_str()), json(&call.name))
}

/// What came of a call: words where it is nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Words(String),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Text(Text<'a>),
    Image { r#type: &'static str, source: Source<'a> },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// A part as a block; `None` for blank words, which the API refuses.
fn block(part: &SentPart) -> Option<Block<'_>> {
    match part {
        SentPart::Text(text) => (!text.trim().is_empty()).then(|| Block::Text(Text::of(text))),
        SentPart::Picture(picture) => {
            let source = Source { r#type: "base64", media_type: &picture.picture().media_type, data: picture.base64() };
            Some(Block::Image { r#type: "image", source })
        }
    }
}

fn content(parts: &[SentPart]) -> Content<'_> {
    if is_words(parts) { Content::Words(text_of(parts)) } else { Content::Blocks(parts.iter().filter_map(block).collect()) }
}
