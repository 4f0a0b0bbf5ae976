//! A prompt, and how many tokens it may have.

use crate::picture::SentPicture;
use crate::wire::without_nul;
use serde_json::Value;
use std::borrow::Cow;
use trace::{CallId, Said, Status, ToolSpec};

/// All that a model is to see. Prompts of a run only grow at the end of `messages`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prompt<'a> {
    /// The instructions; no message is sent for empty ones.
    pub system: &'a str,
    /// The tools, in the order in which they are shown.
    pub tools: &'a [ToolSpec],
    /// The schema that the answer is to fit; a model that can be held to it is.
    pub schema: Option<&'a Value>,
    /// The conversation.
    pub messages: &'a [Message],
    /// The most tokens that the reply may have.
    pub max_output: u64,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The task, a person's message, or harness words at the tail.
    User(Vec<SentPart>),
    /// What the model said before.
    Reply {
        /// Its parts in order. Calls and cut calls among them are not sent from here.
        parts: Vec<Said>,
        /// Its whole calls in order, under our ids.
        calls: Vec<SentCall>,
    },
    /// What came of a call: one for each, in call order.
    Result {
        /// The call.
        id: CallId,
        /// How it ended.
        status: Status,
        /// What the model is to see of it.
        content: Vec<SentPart>,
    },
}

impl Message {
    /// The message as it may be sent anywhere: with U+FFFD for each NUL in its words and in the arguments of its calls. What is
    /// kept opaque stays as it came, for it may be signed.
    pub(crate) fn without_nul(&self) -> Cow<'_, Message> {
        let has_nul = |text: &String| text.contains('\0');
        let is_clean = match self {
            Message::User(content) | Message::Result { content, .. } => {
                !content.iter().any(|part| matches!(part, SentPart::Text(text) if has_nul(text)))
            }
            Message::Reply { parts, calls } => {
                let said = |part: &Said| matches!(part, Said::Text { text } | Said::Reasoning { text } if has_nul(text));
                !parts.iter().any(said) && calls.iter().all(|call| matches!(without_nul(&call.arguments), Cow::Borrowed(_)))
            }
        };
        if is_clean {
            return Cow::Borrowed(self);
        }
        let mend = |text: &mut String| *text = text.replace('\0', "\u{fffd}");
        let mut message = self.clone();
        match &mut message {
            Message::User(content) | Message::Result { content, .. } => content.iter_mut().for_each(|part| match part {
                SentPart::Text(text) => mend(text),
                SentPart::Picture(_) => {}
            }),
            Message::Reply { parts, calls } => {
                parts.iter_mut().for_each(|part| match part {
                    Said::Text { text } | Said::Reasoning { text } => mend(text),
                    Said::Call { .. } | Said::Cut { .. } | Said::Opaque { .. } => {}
                });
                calls.iter_mut().for_each(|call| call.arguments = without_nul(&call.arguments).into_owned());
            }
        }
        Cow::Owned(message)
    }
}

/// A piece of a message as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentPart {
    /// Words.
    Text(String),
    /// A picture.
    Picture(SentPicture),
}

impl SentPart {
    /// A part of words.
    pub fn text(text: impl Into<String>) -> SentPart {
        SentPart::Text(text.into())
    }
}

/// The words of `parts`, joined by line ends; pictures are left out.
pub fn text_of(parts: &[SentPart]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        SentPart::Text(text) => Some(text.as_str()),
        SentPart::Picture(_) => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

/// Whether all of `parts` are words.
pub(crate) fn is_words(parts: &[SentPart]) -> bool {
    parts.iter().all(|part| matches!(part, SentPart::Text(_)))
}

/// A call as it is sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCall {
    /// Our id.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, sent as they stand here (so `{}` where the model's own were no JSON).
    pub arguments: String,
}

/// An estimate of the tokens of `text` on the safe side, for reserves and for servers that report no usage: a token for
/// every three bytes, rounded up. English and code have four to five bytes a token, most other scripts about three;
/// only long stretches of digits or random characters have fewer.
pub fn estimate_tokens(text: &str) -> u64 {
    tokens_of(text.len())
}

/// The same for as many `bytes` of text.
pub(crate) fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(3)
}
