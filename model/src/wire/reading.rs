//! The answer's body: read as it comes, judged only at its end. What its events say is for the wire's draft.

use super::Wire;
use super::escapes::without_halves;
use crate::Heard;
use crate::sse::Events;
use crate::trouble::{Kind, Trouble};
use serde_json::Value;
use std::cell::Cell;
use trace::{Said, Stop, Usage};

/// The most bytes that a whole reply may have.
const MOST: usize = 64 << 20;
/// The same of a streamed one, in which every token stands in some 300 bytes.
const MOST_STREAMED: usize = 128 << 20;

/// A usable reply.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub parts: Vec<Said>,
    pub stop: Stop,
    pub served: Option<String>,
    pub id: Option<String>,
}

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The model is at it.
    Open,
    /// The model has stopped; the rest of the stream, such as the usage, may still come.
    Stopped,
    /// Nothing more will come.
    Done,
}

/// A reply as far as it came, as one wire understands it.
pub(crate) trait Draft: Send {
    /// Takes the data of one event. What comes after trouble or after the end is not heard.
    fn event(&mut self, data: &str, heard: &dyn Fn(Heard<'_>));
    /// Takes a whole reply, from a server that does not stream.
    fn whole(&mut self, reply: &Value, heard: &dyn Fn(Heard<'_>));
    /// Gives the reply up, unless it was before.
    fn fail(&mut self, trouble: Trouble);
    /// How far it has come.
    fn phase(&self) -> Phase;
    /// What it comes to, and the usage that the server told, also of a reply that is of no use.
    fn close(self: Box<Self>) -> (Result<Answer, Trouble>, Option<Usage>);
}

/// Reads one body: a stream of events, or one JSON object or array from servers that do not stream, or not so.
pub(crate) struct Reading {
    wire: Wire,
    form: Form,
    /// Bytes that came.
    length: usize,
    /// Those of them that were heard: words, reasoning and arguments.
    heard: usize,
    draft: Box<dyn Draft>,
}

enum Form {
    /// Nothing but white space came so far.
    Unknown,
    Events(Events),
    Whole(Vec<u8>),
    /// A web page.
    Page,
}

impl Reading {
    pub(crate) fn new(wire: Wire) -> Reading {
        Reading { wire, form: Form::Unknown, length: 0, heard: 0, draft: wire.draft() }
    }

    /// Takes the next bytes; `heard` is told of the words in them.
    pub(crate) fn push(&mut self, mut bytes: &[u8], heard: &dyn Fn(Heard<'_>)) {
        let count = Cell::new(self.heard);
        let heard = &|word: Heard<'_>| {
            count.set(count.get() + word.bytes());
            heard(word);
        };
        self.length = self.length.saturating_add(bytes.len());
        if let Form::Unknown = self.form {
            bytes = bytes.trim_ascii_start();
            self.form = match bytes.first() {
                None => Form::Unknown,
                // An array holds the events of a stream, where a server sends it so.
                Some(b'{' | b'[') => Form::Whole(Vec::new()),
                Some(b'<') => Form::Page,
                Some(_) => Form::Events(Events::default()),
            };
        }
        let too_long = |words: &str| Trouble::new(Kind::Rejected, words);
        match &mut self.form {
            Form::Page => {
                let usual = self.wire.usual_base();
                let words = format!("the answer is a web page, not a reply: is the base URL right? ({usual})");
                self.draft.fail(Trouble::new(Kind::Rejected, words));
            }
            Form::Unknown | Form::Whole(_) if self.length > MOST => self.draft.fail(too_long("the reply is longer than 64 MiB")),
            Form::Events(_) if self.length > MOST_STREAMED => self.draft.fail(too_long("the reply is longer than 128 MiB")),
            Form::Unknown => {}
            Form::Whole(body) => body.extend_from_slice(bytes),
            Form::Events(events) => {
                let draft = &mut self.draft;
                if let Err(error) = events.push(bytes, |data| draft.event(&without_halves(data), heard)) {
                    draft.fail(too_long(&error.to_string()));
                }
            }
        }
        self.heard = count.get();
    }

    /// Whether it comes event by event, and not as one whole.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.form, Form::Events(_))
    }

    /// How far it has come.
    pub(crate) fn phase(&self) -> Phase {
        self.draft.phase()
    }

    /// The words, reasoning and arguments that came so far, in bytes.
    pub(crate) fn heard_bytes(&self) -> usize {
        self.heard
    }

    /// The end of the body, good or not: whether the reply is whole is told by the body itself. The usage is what the
    /// server told, also of a reply that is of no use.
    pub(crate) fn finish(self, heard: &dyn Fn(Heard<'_>)) -> (Result<Answer, Trouble>, Option<Usage>) {
        let Reading { form, mut draft, .. } = self;
        match form {
            Form::Unknown | Form::Page => {}
            Form::Events(events) => events.finish(|data| draft.event(&without_halves(data), heard)),
            Form::Whole(body) => match serde_json::from_str(&without_halves(&String::from_utf8_lossy(&body))) {
                Ok(Value::Array(events)) => events.iter().for_each(|event| draft.event(&event.to_string(), heard)),
                Ok(reply) => draft.whole(&reply, heard),
                Err(_) => {}
            },
        }
        draft.close()
    }
}

/// The reply of these parts, if it says anything: words, a call, or a part of one. A refusal needs no words.
pub(crate) fn usable(parts: Vec<Said>, stop: Stop, served: Option<String>, id: Option<String>) -> Result<Answer, Trouble> {
    let says = |part: &Said| match part {
        Said::Text { text } => !text.trim().is_empty(),
        Said::Call { .. } | Said::Cut { .. } => true,
        Said::Reasoning { .. } | Said::Opaque { .. } => false,
    };
    if stop != Stop::Refused && !parts.iter().any(says) {
        let message = match stop {
            Stop::Length => "the reply reached the limit of its output before a word or a call (--max-output raises it)",
            _ => "the reply holds neither words nor a call",
        };
        return Err(Trouble::new(Kind::Void, message));
    }
    Ok(Answer { parts, stop, served, id })
}
