//! Calls of tools and what came of them.

use crate::{CallId, Digest, Millis, Part};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A call that the agent made, as a tool receives it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Our name of the call.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, valid against the tool's schema.
    pub arguments: serde_json::Value,
}

/// The record's word that a call is about to be served: written before its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// Our name of the call.
    pub id: CallId,
    /// The provider's id.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The digest of the tool's definition; absent where there is no such tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_digest: Option<Digest>,
    /// The arguments as the model wrote them.
    pub raw: String,
    /// The arguments as JSON; absent where they are not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// The digest of the grant under which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Digest>,
    /// Who allowed it more than the run's grant: `auto` for the ceiling, else through what the answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what was asked.
    Ok,
    /// It did not: a wrong argument, an exit code, a missing file.
    Failed,
    /// It was not allowed.
    Denied,
    /// Its time was over; what it had started was killed.
    TimedOut,
    /// The run was stopped while it went on; what it did before is unknown.
    Interrupted,
    /// The sandbox is gone (after a probe): the run ends.
    Unavailable,
}

impl Status {
    /// One word, as in the record.
    pub fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Denied => "denied",
            Status::TimedOut => "timed_out",
            Status::Interrupted => "interrupted",
            Status::Unavailable => "unavailable",
        }
    }
}

/// How much of a file an agent has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// All of it.
    Whole,
    /// Some lines of it.
    Part,
    /// It wrote it, and so knows all of it.
    Written,
}

/// A file that a call showed to the agent or wrote for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSeen {
    /// Its absolute path, as the tool resolved it. Bytes that are not UTF-8 stand as `\xNN`.
    pub path: String,
    /// The digest of the whole file at that moment.
    pub digest: Digest,
    /// How much of it the agent knows.
    pub sight: Sight,
}

/// A process that a command left behind in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its name for the agent: `c1`, `c2` …, never used twice in a session.
    pub name: String,
    /// Its command line, cut to a readable length.
    pub command: String,
    /// Seconds since it started.
    pub age_s: u64,
}

/// What came of a call. Exactly one follows every `Called`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The call.
    pub id: CallId,
    /// How it ended.
    pub status: Status,
    /// What the agent is told.
    pub content: Vec<Part>,
    /// The exit code of a command that ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Bytes of output before anything was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether `content` leaves out some of the output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The whole output (at most 64 MiB, then its middle is missing), where `content` is not the whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<Digest>,
    /// Milliseconds that it took.
    pub took_ms: Millis,
    /// The directory that a command left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The exported variables (against those of a fresh environment; `null` is unset) and functions that a command left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<BTreeMap<String, Option<String>>>,
    /// The files that it showed or wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSeen>,
    /// The processes that go on in the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Child>,
    /// The call of the same reply whose answer this repeats, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<CallId>,
}

impl Observed {
    /// An observation that is words and nothing else.
    pub fn words(id: CallId, status: Status, text: impl Into<String>) -> Observed {
        Observed {
            id,
            status,
            content: vec![Part::text(text)],
            exit_code: None,
            signal: None,
            bytes: None,
            truncated: false,
            blob: None,
            took_ms: 0,
            cwd: None,
            shell: None,
            files: Vec::new(),
            children: Vec::new(),
            same_as: None,
        }
    }
}
