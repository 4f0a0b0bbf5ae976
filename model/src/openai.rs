//! What the two wires of OpenAI share: the header of the key, and what errors of OpenAI and of compatible servers mean.

use crate::picture::takes_none;
use crate::retry;
use crate::trouble::{Kind, Trouble, plain};
use crate::wire::Header;
use serde_json::Value;
use std::time::Duration;

/// Words by which servers say that a prompt is too long: OpenAI, vLLM, llama.cpp, Ollama, and what OpenRouter passes on.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "maximum model length",
    "max_model_len",
    "context window",
    "available context size",
    "exceeds the context length",
    "exceeds maximum context",
    "exceeded max context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "exceeds the maximum number of tokens",
];
/// Words by which providers decline content.
const DECLINED: &[&str] =
    &["content_filter", "content_policy", "content management policy", "usage policy", "cyber_policy", "was flagged"];
/// Words for an account without credit.
const UNPAID: &[&str] = &["insufficient_quota", "insufficient_balance", "insufficient balance", "billing_hard_limit"];
/// Words for a reply of which the server could make nothing, as of a call that fits no tool; the request was good. Groq's
/// (console.groq.com/docs/tool-use, github.com/groq/groq-typescript/issues/28, github.com/pydantic/pydantic-ai/issues/4354).
const OF_NO_USE: &[&str] = &["tool_use_failed", "json_validate_failed", "failed_generation"];
/// Codes of errors that the same request would meet again.
const WRONG: &[&str] = &["invalid_", "authentication", "permission", "not_found", "unsupported_"];

/// The headers of a request.
pub(crate) fn headers(key: Option<&str>) -> Vec<Header> {
    key.map(|key| Header { name: "authorization", value: format!("Bearer {key}"), secret: true }).into_iter().collect()
}

/// What an HTTP status of 300 or more means. `told` is the wait that its headers ask for.
pub(crate) fn refusal(status: u16, told: Option<Duration>, body: &[u8]) -> Trouble {
    let text = String::from_utf8_lossy(body);
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let value = value.get(0).unwrap_or(&value);
    let words = match value {
        Value::Null => Words { message: plain(&text), ..Words::default() },
        value => Words::of(value.get("error").filter(|error| !error.is_null()).unwrap_or(value)),
    };
    judge(Some(status), told, words)
}

/// What an error object inside a stream, or as the body of a status 200, means.
pub(crate) fn in_stream(error: &Value) -> Trouble {
    let words = Words::of(error);
    judge(words.status, None, words)
}

/// What an error says of itself.
#[derive(Default)]
struct Words {
    status: Option<u16>,
    code: String,
    message: String,
}

impl Words {
    fn of(error: &Value) -> Words {
        let text = |field: &str| error[field].as_str().unwrap_or_default();
        let message = [error.as_str().unwrap_or_default(), text("message"), text("detail"), text("error")];
        let message = message.into_iter().find(|words| !words.is_empty()).map_or_else(|| plain(&error.to_string()), plain);
        // OpenRouter wraps what the provider behind it said.
        let behind = error["metadata"]["raw"].as_str().map(|raw| format!(" ({})", plain(raw))).unwrap_or_default();
        let status = error["code"].as_u64().or(error["status"].as_u64()).and_then(|code| u16::try_from(code).ok());
        Words { status, code: format!("{} {}", text("code"), text("type")), message: message + &behind }
    }
}

fn judge(status: Option<u16>, told: Option<Duration>, words: Words) -> Trouble {
    let all = format!("{} {}", words.code, words.message).to_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| all.contains(word));
    let limited = all.contains("rate_limit") || all.contains("rate limit");
    let kind = match status {
        _ if says(UNPAID) => Kind::Rejected,
        Some(401 | 402 | 404) => Kind::Rejected,
        // One request alone is beyond the limit of a minute: no wait makes it fit.
        Some(413 | 429) if limited && all.contains("request too large") => Kind::Rejected,
        Some(429) => Kind::Passing,
        None | Some(400..500) if says(OF_NO_USE) => Kind::Void,
        _ if takes_none(&words.message) => Kind::Rejected,
        _ if says(TOO_LONG) => Kind::ContextFull,
        Some(413) => Kind::ContextFull,
        _ if says(DECLINED) => Kind::Refused,
        Some(408 | 409 | 425 | 500..) => Kind::Passing,
        Some(_) => Kind::Rejected,
        None if !limited && WRONG.iter().any(|word| words.code.contains(word)) => Kind::Rejected,
        None => Kind::Passing,
    };
    let told = told.or_else(|| retry::told_in_words(&words.message));
    Trouble { kind, message: words.message, told }
}
