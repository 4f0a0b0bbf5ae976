//! The request body: first what stays, then what grows, last what a small budget changes.

use super::{On, Signature, WIRE};
use crate::prompt::text_of;
use crate::schema::Form;
use crate::wire::json;
use crate::{Message, SentCall, SentPart};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use trace::{CallId, ModelSpec, Said, Status, ToolSpec};

/// What the API takes for the signature of a call that has none, such as one that another model made
/// (ai.google.dev/gemini-api/docs/thought-signatures).
const UNSIGNED: &str = "skip_thought_signature_validator";

/// The body as far as it is written: everything up to the last content.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    text: String,
    /// Whether a content stands in it.
    begun: bool,
    /// The last content, while it may get more parts.
    open: Option<Open>,
    /// The calls of the last reply, to name them in their results.
    calls: Vec<Named>,
    /// The ids of calls that were sent so far.
    ids: BTreeSet<String>,
    /// The beginning of `generationConfig`: what stays of it.
    config: String,
    generation: Generation,
    /// Pictures in results for a model whose results are words: they follow in a content of their own, as parts.
    held: Vec<String>,
}

/// What a model of the family takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    /// Up to 2.5: a result is words.
    Two,
    /// From 3 on, as whose we take every name that says nothing else: pictures stand in results
    /// (ai.google.dev/gemini-api/docs/function-calling, multimodal function responses), and the first call of each reply
    /// has a signature.
    Three,
}

impl Generation {
    fn of(name: &str) -> Generation {
        let name = name.strip_prefix("models/").unwrap_or(name);
        let is_older = ["gemini-1", "gemini-2"].iter().any(|older| name.starts_with(older));
        if is_older { Generation::Two } else { Generation::Three }
    }
}

/// A content that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Results of one reply stand in one content: the API wants as many results after a reply as it made calls.
    Results,
    /// Replies without anything between them stand in one content: the API wants calls right after a user's content.
    Replies,
}

/// A call under the names that it is sent by.
#[derive(Clone, Debug)]
struct Named {
    ours: CallId,
    /// Absent where the model gave none: results then belong to calls by order and name.
    id: Option<String>,
    name: String,
}

impl Writing {
    pub(crate) fn new(spec: &ModelSpec, system: &str, tools: &[ToolSpec], form: Option<&Form>) -> Writing {
        let head = Head {
            system_instruction: (!system.is_empty()).then_some(Instruction { parts: [Words { text: system }] }),
            tools: (!tools.is_empty()).then(|| [Tools { function_declarations: tools.iter().map(tool).collect() }]),
        };
        let mut text = json(&head);
        text.pop();
        text.push_str(if text.len() > 1 { ",\"contents\":[" } else { "\"contents\":[" });
        let thinking = match (spec.reasons, spec.effort.as_deref()) {
            (Some(true), level) => Some(Thinking { include_thoughts: true, thinking_level: level }),
            (Some(false) | None, _) => None,
        };
        let generation = Generation::of(&spec.name);
        // Up to 2.5: "Function calling with a response mime type: 'application/json' is unsupported".
        let form = form.filter(|_| generation == Generation::Three || tools.is_empty());
        let mut config = json(&Config {
            thinking_config: thinking,
            response_mime_type: form.map(|_| "application/json"),
            response_json_schema: form.map(|form| &form.schema),
        });
        config.pop();
        if config.len() > 1 {
            config.push(',');
        }
        Writing { text, begun: false, open: None, calls: Vec::new(), ids: BTreeSet::new(), config, generation, held: Vec::new() }
    }

    pub(crate) fn push(&mut self, message: &Message) {
        match message {
            Message::User(parts) => {
                let parts: Vec<String> = parts.iter().filter_map(piece).collect();
                self.close();
                if !parts.is_empty() {
                    self.begin("user");
                    self.text.push_str(&parts.join(","));
                    self.text.push_str("]}");
                }
            }
            Message::Reply { parts, calls } => {
                let parts = self.said(parts, calls);
                if !parts.is_empty() {
                    self.go_on(Open::Replies, "model");
                    self.text.push_str(&parts.join(","));
                }
            }
            Message::Result { id, status, content } => self.result(id, *status, content),
        }
    }

    /// What came of a call of the last reply; anything else would be refused.
    fn result(&mut self, ours: &CallId, status: Status, content: &[SentPart]) {
        let Some(Named { id, name, .. }) = self.calls.iter().find(|call| call.ours == *ours).cloned() else { return };
        self.go_on(Open::Results, "user");
        let words = text_of(content);
        let pictures: Vec<Inline<'_>> = content.iter().filter_map(picture).collect();
        let response = match status {
            Status::Ok => Response::Output(words),
            Status::Failed | Status::Denied | Status::TimedOut | Status::Interrupted | Status::Unavailable => {
                Response::Error(words)
            }
        };
        let parts = match self.generation {
            Generation::Three => pictures,
            Generation::Two => {
                if !pictures.is_empty() {
                    self.held.push(json(&Words { text: &format!("Shown by {name}:") }));
                    self.held.extend(pictures.iter().map(json));
                }
                Vec::new()
            }
        };
        let result = FunctionResponse { id: id.as_deref(), name: &name, response, parts };
        self.text.push_str(&json(&Reply::FunctionResponse(result)));
    }

    /// The parts of a reply in the order in which they came, each with the signature that it came with.
    fn said(&mut self, parts: &[Said], calls: &[SentCall]) -> Vec<String> {
        self.calls.clear();
        let (mut calls, mut sent) = (calls.iter(), Vec::new());
        let mut signature: Option<Signature> = None;
        // For the first call, whether it needs it or not.
        let mut stand_in = (self.generation == Generation::Three).then(|| UNSIGNED.to_owned());
        for part in parts {
            let (on, text) = match part {
                Said::Opaque { wire, json } if wire == WIRE => {
                    sent.extend(alone(signature.take()));
                    signature = Signature::deserialize(json).ok();
                    continue;
                }
                Said::Text { text } => (On::Text, text.as_str()),
                Said::Reasoning { text } => (On::Thought, text.as_str()),
                Said::Call { .. } => (On::Call, ""),
                Said::Opaque { .. } | Said::Cut { .. } => continue,
            };
            let own = match signature.take_if(|signature| signature.on == on) {
                Some(signature) => Some(signature.signature),
                None => {
                    sent.extend(alone(signature.take()));
                    None
                }
            };
            match part {
                Said::Call { id, .. } => {
                    let stand_in = stand_in.take();
                    sent.extend(calls.next().map(|call| self.call(call, id, own.or(stand_in))));
                }
                // What was thought is not sent back, only its signatures are.
                Said::Reasoning { .. } if own.is_none() => {}
                _ if text.trim().is_empty() && own.is_none() => {}
                _ => sent.push(json(&Signed { text, thought: on == On::Thought, thought_signature: own })),
            }
        }
        sent.extend(alone(signature));
        sent.extend(calls.map(|call| self.call(call, "", stand_in.take())));
        sent
    }

    /// A call. The model's id goes back with it, unless an earlier call had the same: then ours tells them apart.
    fn call(&mut self, call: &SentCall, id: &str, thought_signature: Option<String>) -> String {
        let id = match id {
            "" => None,
            id if self.ids.insert(id.to_owned()) => Some(id.to_owned()),
            _ => Some(call.id.as_str().to_owned()),
        };
        self.calls.push(Named { ours: call.id.clone(), id: id.clone(), name: call.name.clone() });
        // The API takes an object and nothing else.
        let is_object = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&call.arguments).is_ok();
        let args = if is_object { call.arguments.trim() } else { "{}" };
        let args = RawValue::from_string(args.to_owned()).expect("what was read as JSON is JSON");
        let function_call = FunctionCall { id, name: &call.name, args };
        json(&Calling { function_call, thought_signature })
    }

    /// A further part of an open content, or the first of a new one.
    fn go_on(&mut self, kind: Open, role: &str) {
        if self.open == Some(kind) {
            self.text.push(',');
            return;
        }
        self.close();
        self.begin(role);
        self.open = Some(kind);
    }

    fn close(&mut self) {
        let end = self.end();
        self.text.push_str(&end);
        self.open = None;
        self.held.clear();
    }

    /// What ends the content that is open, with the pictures that were held for after it.
    fn end(&self) -> String {
        match (self.open, self.held.is_empty()) {
            (None, _) => String::new(),
            (Some(_), true) => "]}".to_owned(),
            (Some(_), false) => format!(r#"]}},{{"role":"user","parts":[{}]}}"#, self.held.join(",")),
        }
    }

    fn begin(&mut self, role: &str) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
        self.text.push_str(&format!(r#"{{"role":"{role}","parts":["#));
    }

    /// Bytes that are written.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.end().len()
    }

    pub(crate) fn body(&self, max_output: u64) -> String {
        let tail = format!("],\"generationConfig\":{}\"maxOutputTokens\":{max_output}}}}}", self.config);
        [&*self.text, &self.end(), &tail].concat()
    }
}

/// A signature that came on a text without words.
fn alone(signature: Option<Signature>) -> Option<String> {
    let Signature { signature, .. } = signature.filter(|signature| signature.on == On::Text)?;
    Some(json(&Signed { text: "", thought: false, thought_signature: Some(signature) }))
}

/// The fields before the contents, in the order in which they are sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Words<'a>; 1],
}

#[derive(Serialize)]
struct Words<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    /// JSON Schema as it is; the older `parameters` takes only some of its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<&'a Value>,
}

fn tool(spec: &ToolSpec) -> Function<'_> {
    let ToolSpec { name, description, parameters, read_only: _ } = spec;
    // A tool without parameters has no schema of them.
    let some = parameters["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    Function { name, description, parameters_json_schema: some.then_some(parameters) }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Thinking<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking<'a> {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Signed<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Calling<'a> {
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: &'a str,
    args: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Reply<'a> {
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Response,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Inline<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    inline_data: Blob<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

fn picture(part: &SentPart) -> Option<Inline<'_>> {
    match part {
        SentPart::Text(_) => None,
        SentPart::Picture(picture) => {
            Some(Inline { inline_data: Blob { mime_type: &picture.picture().media_type, data: picture.base64() } })
        }
    }
}

/// A part of a user's content; `None` for blank words, which the API refuses.
fn piece(part: &SentPart) -> Option<String> {
    match part {
        SentPart::Text(text) => (!text.trim().is_empty()).then(|| json(&Words { text })),
        SentPart::Picture(_) => picture(part).map(|picture| json(&picture)),
    }
}
