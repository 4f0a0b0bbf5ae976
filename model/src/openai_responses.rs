//! The wire of OpenAI Responses: what a request looks like (`write`) and how a streamed or whole reply is read (`read`, `items`).
//! Nothing outside knows a field of it.
//!
//! Nothing is stored at the provider: every request carries the whole conversation, and reasoning comes and goes
//! encrypted. Source of the formats: developers.openai.com/api/reference/resources/responses and the types of
//! github.com/openai/openai-python (`src/openai/types/responses`).

mod items;
mod read;
mod write;

pub(crate) use read::Draft;
pub(crate) use write::Writing;

use serde_json::Value;
use std::borrow::Cow;

/// The wire's name in records.
pub(crate) const WIRE: &str = "openai-responses";
/// What stands in a request with a picture.
pub(crate) const PICTURE: &str = r#""type":"input_image""#;

/// Where requests go, below the base URL.
pub(crate) const PATH: &str = "/responses";

/// A request without the key of its cache.
pub(crate) fn without_key(body: &str) -> Cow<'_, str> {
    let key = body.split_once(r#""prompt_cache_key":""#).and_then(|(before, rest)| Some((before, rest.split_once(r#"","#)?.1)));
    key.map_or(body.into(), |(before, after)| format!("{before}{after}").into())
}

/// The names of the tools that a request offers.
pub(crate) fn tool_names(body: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let names = request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}
