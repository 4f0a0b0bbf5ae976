//! The request body: first what stays, then what grows, last what a small budget changes.

use super::WIRE;
use crate::prompt::{is_words, text_of};
use crate::schema::{self, Form};
use crate::wire::json;
use crate::{Message, SentCall, SentPart};
use serde::Serialize;
use serde_json::Value;
use trace::{Digest, ModelSpec, Said, ToolSpec};

/// The body as far as it is written: everything up to the last item.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    text: String,
    /// Whether an item stands in it.
    begun: bool,
}

impl Writing {
    pub(crate) fn new(spec: &ModelSpec, system: &str, tools: &[ToolSpec], form: Option<&Form>) -> Writing {
        let tools: Vec<Tool<'_>> = tools.iter().map(tool).collect();
        let head = Head {
            model: &spec.name,
            stream: true,
            store: false,
            // A model that does not reason refuses to be asked for it.
            include: (spec.reasons != Some(false)).then_some(["reasoning.encrypted_content"]),
            prompt_cache_key: cache_key(system, &tools),
            reasoning: spec.effort.as_deref().map(|effort| Reasoning { effort }),
            text: form.map(TextForm::of),
            parallel_tool_calls: (!tools.is_empty()).then_some(true),
            instructions: Some(system).filter(|system| !system.is_empty()),
            tools,
        };
        let mut text = json(&head);
        text.pop();
        text.push_str(",\"input\":[");
        Writing { text, begun: false }
    }

    pub(crate) fn push(&mut self, message: &Message) {
        match message {
            Message::User(parts) => {
                let content: Vec<Piece<'_>> = parts.iter().map(piece).collect();
                self.append(&Item::Message { role: "user", phase: None, content: &content });
            }
            Message::Reply { parts, calls } => self.reply(parts, calls),
            Message::Result { id, status: _, content } => {
                self.append(&Item::FunctionCallOutput { call_id: id.as_str(), output: output(content) });
            }
        }
    }

    /// What the model said, item by item. Reasoning is refused unless what it led to stands behind it, so what led to
    /// nothing that is sent (a call that was cut off) is left out.
    fn reply(&mut self, parts: &[Said], calls: &[SentCall]) {
        let mut calls = calls.iter();
        let (mut waiting, mut phase) = (Vec::new(), None);
        for part in parts {
            match part {
                Said::Opaque { wire, json } if wire == WIRE => match json["type"].as_str() {
                    Some("reasoning") => waiting.extend(reasoning(json)),
                    Some("message") => phase = json["phase"].as_str(),
                    _ => {}
                },
                Said::Text { text } if !text.is_empty() => {
                    waiting.drain(..).for_each(|item| self.append(&item));
                    let content = [Piece::OutputText { text }];
                    self.append(&Item::Message { role: "assistant", phase: phase.take(), content: &content });
                }
                Said::Call { .. } => {
                    let Some(SentCall { id, name, arguments }) = calls.next() else { continue };
                    waiting.drain(..).for_each(|item| self.append(&item));
                    self.append(&Item::FunctionCall { call_id: id.as_str(), name, arguments });
                }
                Said::Text { .. } | Said::Reasoning { .. } | Said::Opaque { .. } | Said::Cut { .. } => {}
            }
        }
        for SentCall { id, name, arguments } in calls {
            self.append(&Item::FunctionCall { call_id: id.as_str(), name, arguments });
        }
    }

    fn append(&mut self, item: &impl Serialize) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
        self.text.push_str(&json(item));
    }

    /// Bytes that are written.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn body(&self, max_output: u64) -> String {
        let tail = format!("],\"max_output_tokens\":{max_output}}}");
        [&*self.text, &tail].concat()
    }
}

/// What requests with one beginning have in common, so that they meet the cache which holds it: a digest of that
/// beginning, which says nothing of it.
fn cache_key(system: &str, tools: &[Tool<'_>]) -> String {
    Digest::of_two(system.as_bytes(), json(&tools).as_bytes()).to_string()[..32].to_owned()
}

/// Reasoning as it is taken back: of what came with it, a state, an empty content and fields of another's making are refused
/// (github.com/BerriAI/litellm/issues/13420). `None` where it does not hold what it is made of, but only the name of what
/// a server might have stored.
fn reasoning(item: &Value) -> Option<Item<'_>> {
    let list = |field: &str| item[field].as_array().map_or(&[][..], Vec::as_slice);
    let (content, encrypted_content) = (list("content"), item["encrypted_content"].as_str());
    let id = item["id"].as_str().filter(|id| !id.is_empty());
    let whole = encrypted_content.is_some() || !content.is_empty();
    whole.then(|| Item::Reasoning { id, summary: list("summary"), content, encrypted_content })
}

/// The fields before the items, in the order in which they are sent.
#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    prompt_cache_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct TextForm<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

impl TextForm<'_> {
    fn of(form: &Form) -> TextForm<'_> {
        TextForm { format: Format { r#type: "json_schema", name: schema::NAME, schema: &form.schema, strict: form.strict } }
    }
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas have no optional fields.
    strict: bool,
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, parameters, read_only: _ } = spec;
    Tool { r#type: "function", name, description, parameters, strict: false }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: &'a [Piece<'a>],
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        summary: &'a [Value],
        #[serde(skip_serializing_if = "<[Value]>::is_empty")]
        content: &'a [Value],
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String, detail: &'static str },
    OutputText { text: &'a str },
}

/// What came of a call: words where it is nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Words(String),
    Parts(Vec<Piece<'a>>),
}

fn output(parts: &[SentPart]) -> Output<'_> {
    if is_words(parts) { Output::Words(text_of(parts)) } else { Output::Parts(parts.iter().map(piece).collect()) }
}

fn piece(part: &SentPart) -> Piece<'_> {
    match part {
        SentPart::Text(text) => Piece::InputText { text },
        SentPart::Picture(picture) => Piece::InputImage { image_url: picture.data_url(), detail: "high" },
    }
}
