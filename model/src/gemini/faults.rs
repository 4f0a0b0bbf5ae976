//! What the errors of the Gemini API mean.

use crate::retry;
use crate::trouble::{Kind, Trouble, plain};
use serde_json::Value;
use std::time::Duration;

/// Words by which the API, and servers that speak it, say that a prompt is too long.
const TOO_LONG: &[&str] = &[
    "exceeds the maximum number of tokens",
    "token count exceeds",
    "context window",
    "context length",
    "context_length",
    "prompt is too long",
    "input is too long",
];

/// What an HTTP status other than 200 means. `told` is the wait that its headers ask for.
pub(crate) fn refusal(status: u16, told: Option<Duration>, body: &[u8]) -> Trouble {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        // An endpoint that streams an array sends its errors in one.
        Ok(value) => judge(Some(status), told, error_in(value.get(0).unwrap_or(&value))),
        Err(_) => judge(Some(status), told, &Value::String(plain(&text))),
    }
}

/// What an error inside a stream, or as the body of a status 200, means.
pub(super) fn in_stream(error: &Value) -> Trouble {
    let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    judge(status, None, error)
}

fn error_in(value: &Value) -> &Value {
    value.get("error").filter(|error| !error.is_null()).unwrap_or(value)
}

fn judge(status: Option<u16>, told: Option<Duration>, error: &Value) -> Trouble {
    let words = [error.as_str(), error["message"].as_str()];
    let words = words.into_iter().flatten().find(|words| !words.is_empty());
    let mut message = words.map_or_else(|| plain(&error.to_string()), plain);
    let all = message.to_lowercase();
    let daily = quotas(error).any(|quota| quota.contains("PerDay"));
    let kind = match status {
        // Asking again within the day, or without any quota at all, would be refused again.
        Some(429) if daily || all.contains("limit: 0,") => Kind::Rejected,
        Some(429) => Kind::Passing,
        _ if TOO_LONG.iter().any(|word| all.contains(word)) => Kind::ContextFull,
        Some(413) => Kind::ContextFull,
        Some(408 | 409 | 425 | 499 | 500..) | None => Kind::Passing,
        Some(_) => Kind::Rejected,
    };
    if daily {
        message = format!("{} (the quota of a day, renewed at midnight Pacific time)", message.trim_end_matches('.'));
    }
    let told = told.or_else(|| delay(error)).or_else(|| retry::told_in_words(&message));
    Trouble { kind, message, told }
}

/// The details of an error that are of the type `name`.
fn details<'a>(error: &'a Value, name: &'static str) -> impl Iterator<Item = &'a Value> {
    let all = error["details"].as_array().into_iter().flatten();
    all.filter(move |detail| detail["@type"].as_str().is_some_and(|kind| kind.ends_with(name)))
}

/// The quotas that were used up.
fn quotas(error: &Value) -> impl Iterator<Item = &str> {
    let violations = details(error, "google.rpc.QuotaFailure").flat_map(|detail| detail["violations"].as_array());
    violations.flatten().filter_map(|violation| violation["quotaId"].as_str())
}

/// The wait that the details ask for, such as `36s`.
fn delay(error: &Value) -> Option<Duration> {
    let seconds = details(error, "google.rpc.RetryInfo").find_map(|detail| detail["retryDelay"].as_str()?.strip_suffix('s'))?;
    retry::seconds(seconds.parse().ok()?)
}
