//! The wire of OpenAI Chat Completions, as OpenAI and every compatible server speak it: what a request looks like
//! (`write`) and how a streamed or whole reply is read (`read`, `calls`).
//! Nothing outside knows a field of it.

mod calls;
mod read;
mod write;

pub(crate) use read::Draft;
pub(crate) use write::Writing;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The wire's name in records.
pub(crate) const WIRE: &str = "openai-chat";
/// What stands in a request with a picture.
pub(crate) const PICTURE: &str = r#""type":"image_url""#;

/// Where requests go, below the base URL.
pub(crate) const PATH: &str = "/chat/completions";

/// What this wire keeps in `Said::Opaque`, to send it back as it came.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The field in which reasoning came, where it was not `reasoning_content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning_in: Option<String>,
    /// OpenRouter's list of reasoning items, some of them signed or encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Vec<Value>>,
}

/// The names of the tools that a request offers.
pub(crate) fn tool_names(body: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let names = request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str());
    names.map(str::to_owned).collect()
}
