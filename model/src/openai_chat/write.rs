//! The request body.

use super::{Kept, WIRE};
use crate::provider::{self, ReasoningField};
use crate::{Message, Prompt, SentCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace::{ModelSpec, Part, Said, ToolSpec};

/// See [`crate::render`].
pub(crate) fn render(spec: &ModelSpec, prompt: &Prompt<'_>) -> String {
    let row = provider::row(&spec.provider);
    let system = Some(prompt.system).filter(|text| !text.is_empty()).map(|text| Turn::System { content: text });
    let turns = prompt.messages.iter().filter_map(|message| turn(message, row.reasoning));
    let limit = |field| (row.max_tokens_field == field).then_some(prompt.max_output);
    let request = Request {
        model: &spec.name,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        reasoning_effort: spec.effort.as_deref(),
        tools: prompt.tools.iter().map(tool).collect(),
        messages: system.into_iter().chain(turns).collect(),
        max_completion_tokens: limit("max_completion_tokens"),
        max_tokens: limit("max_tokens"),
    };
    serde_json::to_string(&request).expect("strings, numbers and JSON values always serialise")
}

/// The fields in the order in which they are sent: first what stays, then what grows, last what a small budget changes.
#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
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
        content: String,
    },
    Assistant {
        content: Option<String>,
        #[serde(flatten)]
        thought: Thought,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
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
    id: &'a str,
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
fn turn(message: &Message, field: ReasoningField) -> Option<Turn<'_>> {
    match message {
        Message::User(parts) => Some(Turn::User { content: words(parts) }),
        Message::Result { id, status: _, content } => Some(Turn::Tool { tool_call_id: id.as_str(), content: words(content) }),
        Message::Reply { parts, calls } => {
            let text: String =
                parts.iter().filter_map(|part| if let Said::Text { text } = part { Some(&**text) } else { None }).collect();
            let content = Some(text).filter(|text| !text.is_empty());
            if content.is_none() && calls.is_empty() {
                return None;
            }
            Some(Turn::Assistant { content, thought: thought(parts, field), tool_calls: calls.iter().map(call).collect() })
        }
    }
}

fn call(call: &SentCall) -> Call<'_> {
    let function = CallFunction { name: &call.name, arguments: &call.arguments };
    Call { id: call.id.as_str(), r#type: "function", function }
}

fn thought(parts: &[Said], field: ReasoningField) -> Thought {
    let kept = parts.iter().find_map(|part| match part {
        Said::Opaque { wire, json } if wire == WIRE => Kept::deserialize(json).ok(),
        _ => None,
    });
    let (came_in, reasoning_details) = kept.map_or((None, None), |kept| (kept.reasoning_in, kept.reasoning_details));
    let field = match field {
        ReasoningField::Never => return Thought::default(),
        ReasoningField::Named(field) => field,
        ReasoningField::AsItCame => came_in.as_deref().unwrap_or("reasoning_content"),
    };
    let text: String =
        parts.iter().filter_map(|part| if let Said::Reasoning { text } = part { Some(&**text) } else { None }).collect();
    let text = Some(text).filter(|text| !text.is_empty());
    match field {
        "reasoning" => Thought { reasoning: text, reasoning_details, ..Thought::default() },
        _ => Thought { reasoning_content: text, reasoning_details, ..Thought::default() },
    }
}

/// The words of a message. What is not words is named as left out, so that nobody takes it for sent.
fn words(parts: &[Part]) -> String {
    let piece = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { .. } => "[image not sent: this wire has no images yet]".to_owned(),
        Part::File { name, .. } => format!("[file {name} not sent: this wire has no files yet]"),
    };
    parts.iter().map(piece).collect::<Vec<_>>().join("\n")
}
