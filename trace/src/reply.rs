//! What a model answered, as it is recorded.

use crate::{Cost, Digest, Exhausted, Millis, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// One part of a reply, in the order in which the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Said {
    /// Words for the person.
    Text {
        /// The words.
        text: String,
    },
    /// Words that the model thought; sent back to servers that want it.
    Reasoning {
        /// The words.
        text: String,
    },
    /// Something that only its own wire understands (a signature, an encrypted item) and that is sent back as it came.
    Opaque {
        /// The wire that made it and may send it back.
        wire: String,
        /// The thing itself.
        json: serde_json::Value,
    },
    /// A whole call of a tool.
    Call {
        /// The provider's id; may be empty or repeated.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as the model wrote them; may not be JSON.
        arguments: String,
    },
    /// A call that the length limit or the end of the stream cut off: never run, never answered.
    Cut {
        /// The tool's name, as far as it came.
        name: String,
        /// The arguments, as far as they came.
        raw: String,
    },
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    End,
    /// It called tools.
    Calls,
    /// It reached the limit of its output.
    Length,
    /// The provider declines this content.
    Refused,
    /// There is no usable answer. Nothing of such a reply enters a prompt.
    Error(Fault),
}

/// Why there is no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What kind of trouble it is; decides what the run does.
    pub class: FaultClass,
    /// The HTTP status, if one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What went wrong, in words: ours, with the provider's.
    pub message: String,
}

/// The kinds of trouble with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// The prompt is longer than the model's window.
    ContextFull,
    /// The provider declines this content.
    Refused,
    /// The key, the model's name, the address or the request itself is wrong: asking again would not help.
    Rejected,
    /// Retries did not help: the server is overloaded, broken or out of reach.
    Unavailable,
    /// The provider asks for a wait longer than the retry budget.
    Paused {
        /// When to come back.
        until: Timestamp,
    },
    /// We stopped the request ourselves: a person interrupted, or the run's time was over.
    Interrupted,
    /// The next attempt would not have fitted what is left of the budget.
    Budget {
        /// The limit that it did not fit.
        which: Exhausted,
    },
}

/// One request of an `Asked`: the first, or a retry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The HTTP status, if one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Milliseconds that were waited before this attempt.
    #[serde(default)]
    pub wait_ms: Millis,
    /// What it used, as far as is known: zero where the provider refused before its first byte.
    #[serde(default)]
    pub usage: Usage,
    /// What was wrong with it; absent on the one that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How long the last attempt took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Milliseconds from the request to the first token; absent where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<Millis>,
    /// Milliseconds from the first attempt to the end, waits included.
    pub total_ms: Millis,
}

/// A model's answer to one `Asked`, also when it is no usable one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replied {
    /// What it said, in order; empty when `stop` is an error.
    pub parts: Vec<Said>,
    /// Why it stopped.
    pub stop: Stop,
    /// Tokens of all attempts together.
    pub usage: Usage,
    /// Whether `usage` is our estimate, because the server did not tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What it cost.
    pub cost: Cost,
    /// The model that the server says has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long it took.
    pub timing: Timing,
    /// Every request that was made for it.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// The raw stream, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Digest>,
    /// Whether secrets in it were hidden: it is not what the model said, and trains nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}
