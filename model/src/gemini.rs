//! The wire of Gemini's generateContent: what a request looks like (`write`), how a streamed or whole reply is read
//! (`read`), and what its errors mean (`faults`). Nothing outside knows a field of it.
//!
//! Source of the formats: ai.google.dev/api/generate-content, …/gemini-api/docs/function-calling, …/thought-signatures and
//! …/rate-limits, and github.com/googleapis/python-genai (`google/genai/types.py`).

mod faults;
mod read;
mod write;

pub(crate) use faults::refusal;
pub(crate) use read::Draft;
pub(crate) use write::Writing;

use crate::wire::Header;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

/// The wire's name in records.
pub(crate) const WIRE: &str = "gemini";
/// What stands in a request with a picture.
pub(crate) const PICTURE: &str = r#""inlineData":{"#;

/// Where requests to the model called `name` go. The variable `GOOGLE_GEMINI_BASE_URL` usually names the host alone; an
/// address with the version is taken as well.
pub(crate) fn url(base: &str, name: &str) -> String {
    let base = base.trim_end_matches('/');
    let version = if base.ends_with("/v1beta") || base.ends_with("/v1") { "" } else { "/v1beta" };
    // A tuned model says itself what it is.
    let folder = if name.contains('/') { "" } else { "models/" };
    format!("{base}{version}/{folder}{}:streamGenerateContent?alt=sse", escaped(name))
}

/// A name as it may stand in a path.
fn escaped(name: &str) -> String {
    let mut path = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' | b'@' => path.push(char::from(byte)),
            _ => write!(path, "%{byte:02X}").expect("a string takes whatever is written"),
        }
    }
    path
}

/// The headers of a request.
pub(crate) fn headers(key: Option<&str>) -> Vec<Header> {
    key.map(|key| Header { name: "x-goog-api-key", value: key.to_owned(), secret: true }).into_iter().collect()
}

/// What this wire keeps in `Said::Opaque`, in front of the part that it came on: the signature of a thought, which goes
/// back on that part and on no other.
#[derive(Serialize, Deserialize)]
struct Signature {
    /// The kind of the part.
    on: On,
    #[serde(rename = "thoughtSignature")]
    signature: String,
}

/// The kind of part that a signature came on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum On {
    /// Words; perhaps none.
    Text,
    /// Words that the model thought.
    Thought,
    /// A call.
    Call,
}

/// The names of the tools that a request offers.
pub(crate) fn tool_names(body: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let tools = request["tools"].as_array().into_iter().flatten();
    let functions = tools.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    functions.filter_map(|function| function["name"].as_str()).map(str::to_owned).collect()
}
