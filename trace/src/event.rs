//! The closed list of what can happen in a run.

use crate::secrets::{Opaque, Secrets};
use crate::{
    AgentPath, Answer, ApprovalAsked, Called, CheckResult, Digest, Finished, Folded, Grant, Limits, Method, Millis, ModelSpec,
    NanoUsd, Observed, Part, Replied, RunId, Seq, Started, Terms, Timestamp, blobs_of,
};
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its place in the run.
    pub seq: Seq,
    /// When, by the wall.
    pub at: Timestamp,
    /// When, in active milliseconds of the run: pauses between sessions do not count.
    pub ms: Millis,
    /// Whose event it is.
    pub agent: AgentPath,
    /// The event that it answers; an observation's is its call.
    pub cause: Option<Seq>,
    /// What happened.
    pub what: What,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($payload:ty)),* $(,)?) => {
        /// What happened. The record writes the name of the variant as `kind`, and the payload's fields beside it.
        #[derive(Clone, Debug, PartialEq)]
        pub enum What {
            $($(#[$doc])* $kind($payload),)*
            /// A kind that this version does not know. Readers pass over it.
            Unknown {
                /// Its name.
                kind: String,
                /// Whether a run that holds it may be continued all the same.
                ignorable: bool,
            },
        }

        impl What {
            /// The name of the kind, as in the record.
            pub fn kind(&self) -> &str {
                match self {
                    $(What::$kind(_) => stringify!($kind),)*
                    What::Unknown { kind, .. } => kind,
                }
            }

            /// The payload as a JSON object; `None` for a kind that this version does not know and so never writes.
            pub(crate) fn to_json(&self) -> Option<serde_json::Result<String>> {
                match self {
                    $(What::$kind(payload) => Some(serde_json::to_string(payload)),)*
                    What::Unknown { .. } => None,
                }
            }

            /// The same event with a placeholder for each secret in it; `None` where it holds none. `line` is it as JSON.
            pub(crate) fn hidden(&self, secrets: &Secrets, line: &str) -> serde_json::Result<Option<What>> {
                let opaque = if matches!(self, What::Replied(_)) { Opaque::Exempt } else { Opaque::Absent };
                let Some(mut value) = secrets.hide_json(line, opaque)? else { return Ok(None) };
                if opaque == Opaque::Exempt {
                    value["redacted"] = true.into();
                }
                What::from_json(self.kind(), &value.to_string()).map(Some)
            }

            /// Reads the payload of `kind` out of a whole line; fields of the envelope are passed over.
            pub(crate) fn from_json(kind: &str, line: &str) -> serde_json::Result<What> {
                #[derive(Deserialize)]
                struct Mark {
                    #[serde(default)]
                    ignorable: bool,
                }
                match kind {
                    $(stringify!($kind) => serde_json::from_str(line).map(What::$kind),)*
                    other => serde_json::from_str(line)
                        .map(|Mark { ignorable }| What::Unknown { kind: other.to_owned(), ignorable }),
                }
            }
        }
    };
}

kinds! {
    /// The run began.
    Started(Box<Started>),
    /// Something from outside came in: a message, an interrupt, a new session.
    Delivered(Delivered),
    /// The model was asked to think.
    Asked(Asked),
    /// The model answered, or there is no usable answer.
    Replied(Replied),
    /// Another model is asked from here on, because the one before is not to be had, or its window is full. Its cause is the
    /// reply that had no usable answer; it has none where no reply is the reason, but a history that fits no more.
    Switched(Switched),
    /// A call wants more than is granted, and somebody is asked.
    ApprovalAsked(ApprovalAsked),
    /// A call is about to be served.
    Called(Called),
    /// What came of a call.
    Observed(Observed),
    /// The checks judged a claim.
    Verified(Verified),
    /// The history was made shorter, so that it fits the model's window again.
    Folded(Folded),
    /// A person raised the limits.
    Granted(Granted),
    /// The end of the record was damaged, and the run goes on from the last good line.
    Recovered(Recovered),
    /// A turn of the user ended.
    Finished(Finished),
}

impl What {
    /// The contents that it names, which must be there for it to say all that it says.
    pub fn blobs(&self) -> Vec<Digest> {
        match self {
            What::Started(started) => started.harness.files.values().copied().chain(blobs_of(&started.task.parts)).collect(),
            What::Delivered(Delivered { what: Delivery::Message { parts }, .. }) => blobs_of(parts).collect(),
            What::Replied(replied) => replied.raw.into_iter().collect(),
            What::Observed(observed) => observed.blob.into_iter().chain(blobs_of(&observed.content)).collect(),
            What::Recovered(recovered) => vec![recovered.blob],
            What::Folded(Folded { method: Method::Ledger { whole, .. }, .. }) => whole.iter().copied().collect(),
            What::Folded(Folded { method: Method::Shorten, .. }) => Vec::new(),
            What::Delivered(_) | What::Asked(_) | What::Called(_) | What::Verified(_) | What::Granted(_) => Vec::new(),
            What::Switched(_) | What::ApprovalAsked(_) | What::Finished(_) | What::Unknown { .. } => Vec::new(),
        }
    }
}

/// Something from outside, drained from the inbox or told by the engine itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The inbox file's name, so that nothing is delivered twice; empty where the engine itself tells.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What came.
    #[serde(flatten)]
    pub what: Delivery,
}

/// What can come from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "delivery", rename_all = "snake_case")]
pub enum Delivery {
    /// A person says something.
    Message {
        /// What is said.
        parts: Vec<Part>,
    },
    /// A person or a signal ends the turn.
    Interrupt,
    /// Somebody answers a question. One that is not open is not answered again: then this changes nothing.
    Approval {
        /// The event that asked.
        asked: Seq,
        /// The answer.
        answer: Answer,
        /// Through what it came: `terminal`, `send`.
        by: String,
    },
    /// A later session owns the run: processes are gone, directory and exported variables are restored.
    Session {
        /// The harness's words for the agent.
        text: String,
        /// The model that this session asks, where it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Box<ModelSpec>>,
        /// The kind of walls of this session, where it is another one than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
        /// The terms of this session, where they are others than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terms: Option<Box<Terms>>,
        /// The models that are asked in this order where the one before is not to be had, where they are others than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<Vec<ModelSpec>>,
    },
}

/// A request to think. Its answer is the next `Replied` of the same agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The model's id.
    pub model: String,
    /// The most tokens that the reply may have; a parameter of the request.
    pub max_output: u64,
    /// The digest of the request's body, byte for byte.
    pub prompt: Digest,
    /// Bytes of the body.
    pub bytes: u64,
    /// The last event that the prompt contains.
    pub upto: Seq,
    /// How often the history was folded before.
    #[serde(default)]
    pub epoch: u32,
    /// The version of the rules by which the prompt was built.
    pub rules: u32,
    /// Tokens that were reserved: the estimate of the input, and the whole output.
    pub reserved_tokens: u64,
    /// Money that was reserved; `None` where the model is unpriced.
    pub reserved_nano_usd: Option<NanoUsd>,
}

/// Another model takes over. It stays so, in later sessions too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// The model that is asked from here on: the first of those that were left to fall back on, or, where a window was full,
    /// the first of them that has a larger one. Those that were passed over are still left.
    pub model: Box<ModelSpec>,
    /// Why the one before is asked no more, in words: those of the reply that had no usable answer, or why nothing makes the
    /// history fit.
    pub why: String,
}

/// What the checks said about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// The verdict.
    pub verdict: Verdict,
    /// What each check said.
    pub checks: Vec<CheckResult>,
    /// What of the answer does not fit the run's schema, where something does not; then no check was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfit: Option<String>,
    /// Milliseconds that it took.
    pub took_ms: Millis,
}

/// What a judge says of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The work holds.
    Pass,
    /// It does not.
    Fail,
    /// The judge itself was in trouble: neither success nor failure.
    Unjudged {
        /// What trouble.
        reason: String,
    },
}

/// What a person grants beyond what was granted before; each limit that is there replaces the old one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The limits that now hold.
    pub limits: Limits,
    /// The rights that commands have besides those of before.
    #[serde(default, skip_serializing_if = "Grant::is_empty")]
    pub grant: Grant,
}

/// Bad bytes at the end of the record, kept aside; or, where `run` is there, all that stood behind a damaged line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// The bytes.
    pub blob: Digest,
    /// How many there were.
    pub bytes: u64,
    /// What was wrong with them.
    pub reason: String,
    /// The run that goes on from here, where it is a new one: what stands before is the old run's, line by line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// The fields that every line has before those of its kind, for writing.
#[derive(Serialize)]
pub(crate) struct EnvelopeOut<'a> {
    pub v: u32,
    pub seq: Seq,
    pub at: Timestamp,
    pub ms: Millis,
    pub agent: &'a AgentPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Seq>,
    pub kind: &'a str,
}

/// The same, for reading; `sum` is the last field of the line.
#[derive(Deserialize)]
pub(crate) struct EnvelopeIn {
    pub v: u32,
    pub seq: Seq,
    pub at: Timestamp,
    pub ms: Millis,
    pub agent: AgentPath,
    #[serde(default)]
    pub cause: Option<Seq>,
    pub kind: String,
    pub sum: Digest,
}
