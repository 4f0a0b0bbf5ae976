//! What it says of a history that it was folded: enough to fold it the same way again.

use crate::{Digest, Seq};
use serde::{Deserialize, Serialize};

/// The history had outgrown the model's window and was made shorter, once. From here on it is only extended again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    /// How often the history was folded by now.
    pub epoch: u32,
    /// The last event that the history contained.
    pub upto: Seq,
    /// Tokens of the next request as it would have been, as far as they can be known.
    pub before: u64,
    /// Tokens of the next request as it now is.
    pub after: u64,
    /// The calls whose outputs are shown as their beginning and their end from here on. Each stands whole in the observation
    /// of its call, or in the blob that this names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<Seq>,
    /// Bytes of each such output that are shown from its start.
    #[serde(default)]
    pub head_bytes: usize,
    /// Bytes from its end.
    #[serde(default)]
    pub tail_bytes: usize,
    /// How.
    #[serde(flatten)]
    pub method: Method,
}

/// How a history is folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Method {
    /// Outputs are shortened, and nothing else.
    Shorten,
    /// A stretch of it is replaced by an account of what happened in it.
    Ledger {
        /// The first reply that the account tells of, those of an account before it included, whose place it takes.
        first: Seq,
        /// The last one; all that stands between the two and up to the next reply is replaced as well. Where no reply follows,
        /// what was said last stays.
        last: Seq,
        /// How many replies it replaces that no account did before.
        replies: u64,
        /// The account as the agent is shown it.
        text: String,
        /// All of the account, in records of before. Now it is made anew from the events when it is read: a copy in each fold
        /// of all that happened before would grow with the square of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Digest>,
    },
}
