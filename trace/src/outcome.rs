//! How a turn of the user ended.

use crate::{Millis, NanoUsd, RunId, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// How it ended. A later message reopens the run; readers take the last outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent claims that it is done, and every check passed.
    Done,
    /// Checks still fail after the last allowed claim.
    Failed {
        /// The checks that fail.
        reason: String,
    },
    /// The history no longer fits the model's window.
    ContextFull {
        /// The provider's words.
        reason: String,
    },
    /// The provider declines this content.
    Refused {
        /// The provider's words.
        reason: String,
    },
    /// A limit was reached.
    Budget {
        /// Which one.
        which: Exhausted,
        /// What was spent against what, and which flag raises it.
        reason: String,
    },
    /// Something that the run stands on is gone.
    Infrastructure {
        /// Which part.
        what: Unavailable,
        /// What was attempted, on what, and what to do next.
        reason: String,
    },
    /// The provider asks for a longer wait than a run makes.
    Paused {
        /// When it may go on.
        until: Timestamp,
        /// The provider's words.
        reason: String,
    },
    /// A person or a signal ended it.
    Interrupted,
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// Requests to think.
    Turns,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Active time.
    Time,
}

/// A part that a run stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unavailable {
    /// The model: its server, its name or its key.
    Model,
    /// The walls around commands.
    Sandbox,
    /// The disk that holds the record.
    Store,
    /// A check could not be run at all.
    Check,
}

impl Outcome {
    /// The exit code of the program: 0 done, 1 without success, 3 budget, 4 infrastructure, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Failed { .. } | Outcome::ContextFull { .. } | Outcome::Refused { .. } => 1,
            Outcome::Budget { .. } => 3,
            Outcome::Infrastructure { .. } | Outcome::Paused { .. } => 4,
            Outcome::Interrupted => 130,
        }
    }

    /// One word, as in the record.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed { .. } => "failed",
            Outcome::ContextFull { .. } => "context_full",
            Outcome::Refused { .. } => "refused",
            Outcome::Budget { .. } => "budget",
            Outcome::Infrastructure { .. } => "infrastructure",
            Outcome::Paused { .. } => "paused",
            Outcome::Interrupted => "interrupted",
        }
    }

    /// The words that explain it, if there are any.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Done | Outcome::Interrupted => None,
            Outcome::Failed { reason }
            | Outcome::ContextFull { reason }
            | Outcome::Refused { reason }
            | Outcome::Budget { reason, .. }
            | Outcome::Infrastructure { reason, .. }
            | Outcome::Paused { reason, .. } => Some(reason),
        }
    }
}

/// The end of a turn of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The run, so that this line alone says where to look.
    pub run: RunId,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The agent's last answer, if it gave one.
    pub answer: Option<String>,
    /// Tokens of the whole run so far.
    pub usage: Usage,
    /// Money of the whole run so far; `None` where any request was unpriced.
    pub cost_nano_usd: Option<NanoUsd>,
    /// Requests to think, of the whole run so far.
    pub turns: u64,
    /// Active milliseconds of the whole run so far.
    pub active_ms: Millis,
}
