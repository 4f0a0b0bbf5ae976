//! The wire of Anthropic's Messages API: what a request looks like (`write`), how a streamed or whole reply is read
//! (`read`), and what its errors mean (`faults`). Nothing outside knows a field of it.
//!
//! Source of the formats: platform.claude.com/docs/en/api/messages, …/build-with-claude/streaming, …/prompt-caching,
//! …/thinking, …/effort and …/preserved-thinking.

mod faults;
mod read;
mod write;

pub(crate) use faults::{refusal, told};
pub(crate) use read::Draft;
pub(crate) use write::Writing;

use crate::wire::Header;
use serde_json::Value;

/// The wire's name in records.
pub(crate) const WIRE: &str = "anthropic-messages";
/// What stands in a request with a picture.
pub(crate) const PICTURE: &str = r#""type":"image""#;

/// The version of the API that is spoken.
const VERSION: &str = "2023-06-01";

/// Where requests go. The variable `ANTHROPIC_BASE_URL` usually names the host alone; an address with the version is
/// taken as well.
pub(crate) fn url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
}

/// The headers of a request.
pub(crate) fn headers(key: Option<&str>) -> Vec<Header> {
    let version = Header { name: "anthropic-version", value: VERSION.to_owned(), secret: false };
    let key = key.map(|key| Header { name: "x-api-key", value: key.to_owned(), secret: true });
    [Some(version), key].into_iter().flatten().collect()
}

/// The names of the tools that a request offers.
pub(crate) fn tool_names(body: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let names = request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}
