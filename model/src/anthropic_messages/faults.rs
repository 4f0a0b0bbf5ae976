//! What the errors of the Messages API mean.

use crate::picture::takes_none;
use crate::retry;
use crate::trouble::{Kind, Trouble, plain};
use serde_json::Value;
use std::time::Duration;
use trace::Timestamp;

/// Words by which the API and servers that speak it say that a prompt, or it and the output asked for, is too long.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "exceed context limit",
    "input is too long",
    "context window",
    "maximum context length",
    "exceeds the context length",
    "request_too_large",
];
/// Words by which content is declined.
const DECLINED: &[&str] = &["content filtering policy", "usage policy"];
/// Words for an account without credit, or with a limit of its own.
const UNPAID: &[&str] = &["billing_error", "credit balance", "api usage limits"];
/// Types of errors that another attempt may not meet.
const PASSING: &[&str] = &["overloaded_error", "rate_limit_error", "api_error", "timeout_error", "conflict_error"];

/// What an HTTP status other than 200 means. `told` is the wait that its headers ask for.
pub(crate) fn refusal(status: u16, told: Option<Duration>, body: &[u8]) -> Trouble {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => {
            let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(&value);
            judge(Some(status), told, kind_of(error), message_of(error))
        }
        Err(_) => judge(Some(status), told, "", plain(&text)),
    }
}

/// What an error inside a stream, or as the body of a status 200, means.
pub(super) fn in_stream(error: &Value) -> Trouble {
    judge(None, None, kind_of(error), message_of(error))
}

fn kind_of(error: &Value) -> &str {
    error["type"].as_str().unwrap_or_default()
}

fn message_of(error: &Value) -> String {
    let words = [error.as_str(), error["message"].as_str(), error["detail"].as_str()];
    let words = words.into_iter().flatten().find(|words| !words.is_empty());
    words.map_or_else(|| plain(&error.to_string()), plain)
}

fn judge(status: Option<u16>, told: Option<Duration>, name: &str, message: String) -> Trouble {
    let all = format!("{name} {message}").to_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| all.contains(word));
    let kind = match status {
        _ if says(UNPAID) => Kind::Rejected,
        Some(401..=404) => Kind::Rejected,
        Some(429) => Kind::Passing,
        _ if takes_none(&message) => Kind::Rejected,
        _ if says(TOO_LONG) => Kind::ContextFull,
        Some(413) => Kind::ContextFull,
        _ if says(DECLINED) => Kind::Refused,
        Some(408 | 409 | 425 | 500..) => Kind::Passing,
        _ if PASSING.contains(&name) => Kind::Passing,
        // An error of a stream that is of no known type ends it, and no more is known of it.
        None if !name.ends_with("_error") => Kind::Passing,
        Some(_) | None => Kind::Rejected,
    };
    let told = told.or_else(|| retry::told_in_words(&message));
    Trouble { kind, message, told }
}

/// The wait that headers ask for: `retry-after`, or else until the last of the limits that are used up is reset.
pub(crate) fn told<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    retry::told_in_headers(&header, now).or_else(|| {
        let reset = |limit: &str| {
            let field = |name: &str| header(&format!("anthropic-ratelimit-{limit}-{name}"));
            field("remaining").filter(|left| left.trim() == "0")?;
            u64::try_from(retry::moment(field("reset")?)?.saturating_sub(now.unix_millis())).ok()
        };
        let waits = ["requests", "tokens", "input-tokens", "output-tokens"].into_iter().filter_map(reset);
        waits.max().map(Duration::from_millis)
    })
}
