//! What the chunks of a reply say, or a whole reply at once.
//!
//! A reply is a list of parts. Texts come in pieces, calls come whole. There is no closing event: a reply is whole once a
//! chunk gives the reason for which it ended.

use super::{On, Signature, WIRE, faults};
use crate::Heard;
use crate::trouble::{Kind, Trouble, plain};
use crate::wire::{self, Answer, Phase, usable};
use serde_json::Value;
use trace::{Said, Stop, Usage};

/// The most parts that a reply may have.
const MOST_PARTS: usize = 100_000;
/// The most calls that it may make.
const MOST_CALLS: usize = 1000;

/// Reasons by which a provider declines content.
const DECLINED: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// A reply as far as it came.
#[derive(Default)]
pub(crate) struct Draft {
    pieces: Vec<Piece>,
    calls: usize,
    finish: Option<String>,
    finish_words: Option<String>,
    /// Whether the reply came whole, so that nothing follows.
    whole: bool,
    usage: Option<Usage>,
    served: Option<String>,
    id: Option<String>,
    trouble: Option<Trouble>,
}

/// A part, or those pieces of a text that belong together.
struct Piece {
    on: On,
    /// The words, or the arguments of a call.
    text: String,
    /// Of a call: its name and the provider's id, which may be missing.
    name: String,
    id: String,
    signature: Option<String>,
}

impl wire::Draft for Draft {
    fn event(&mut self, data: &str, heard: &dyn Fn(Heard<'_>)) {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" || self.trouble.is_some() {
            return;
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.take_chunk(&chunk, heard),
            Err(_) => self.give_up(Kind::Passing, "an event of the stream is not JSON"),
        }
    }

    fn whole(&mut self, reply: &Value, heard: &dyn Fn(Heard<'_>)) {
        let known = ["candidates", "promptFeedback", "usageMetadata", "error"];
        if !known.iter().any(|field| reply.get(field).is_some()) {
            return self.give_up(Kind::Rejected, &format!("the answer is not a reply: {}", plain(&reply.to_string())));
        }
        self.take_chunk(reply, heard);
        self.whole = true;
    }

    fn fail(&mut self, trouble: Trouble) {
        self.trouble.get_or_insert(trouble);
    }

    fn phase(&self) -> Phase {
        match (&self.trouble, &self.finish) {
            (Some(_), _) => Phase::Done,
            (None, Some(_)) => Phase::Stopped,
            (None, None) => Phase::Open,
        }
    }

    fn close(self: Box<Self>) -> (Result<Answer, Trouble>, Option<Usage>) {
        // Every chunk counts up to itself: only the last one counts all.
        let counted =
            self.whole || self.finish.is_some() || self.trouble.as_ref().is_some_and(|trouble| trouble.kind == Kind::Refused);
        let usage = self.usage.filter(|_| counted);
        (self.answer(), usage)
    }
}

impl Draft {
    fn give_up(&mut self, kind: Kind, message: &str) {
        self.trouble.get_or_insert_with(|| Trouble::new(kind, message));
    }

    fn take_chunk(&mut self, chunk: &Value, heard: &dyn Fn(Heard<'_>)) {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            self.trouble.get_or_insert(faults::in_stream(error));
            return;
        }
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.usage = usage(&chunk["usageMetadata"]).or(self.usage);
        self.served = self.served.take().or_else(|| text(&chunk["modelVersion"]));
        self.id = self.id.take().or_else(|| text(&chunk["responseId"]));
        if let Some(reason) = text(&chunk["promptFeedback"]["blockReason"]) {
            let words = text(&chunk["promptFeedback"]["blockReasonMessage"]).map(|words| format!(": {words}"));
            let message = plain(&format!("the prompt was blocked ({reason}){}", words.unwrap_or_default()));
            return self.give_up(Kind::Refused, &message);
        }
        let first = |candidate: &&Value| candidate["index"].as_u64().unwrap_or(0) == 0;
        let Some(candidate) = chunk["candidates"].as_array().and_then(|all| all.iter().find(first)) else { return };
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.take_part(part, heard);
        }
        let reason = text(&candidate["finishReason"]).filter(|reason| reason != "FINISH_REASON_UNSPECIFIED");
        self.finish = reason.or(self.finish.take());
        self.finish_words = text(&candidate["finishMessage"]).or(self.finish_words.take());
    }

    fn take_part(&mut self, part: &Value, heard: &dyn Fn(Heard<'_>)) {
        let signature = part["thoughtSignature"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            return self.take_call(call, signature, heard);
        }
        let on = if part["thought"] == true { On::Thought } else { On::Text };
        let text = part["text"].as_str().unwrap_or_default();
        if text.is_empty() && signature.is_none() {
            return;
        }
        // A part with a signature is not put together with others.
        match self.pieces.last_mut() {
            Some(last) if last.on == on && last.signature.is_none() && signature.is_none() => last.text.push_str(text),
            _ => {
                self.add(Piece { on, text: text.to_owned(), name: String::new(), id: String::new(), signature });
            }
        }
        match on {
            _ if text.is_empty() => {}
            On::Thought => heard(Heard::Reasoning(text)),
            On::Text | On::Call => heard(Heard::Text(text)),
        }
    }

    fn take_call(&mut self, call: &Value, signature: Option<String>, heard: &dyn Fn(Heard<'_>)) {
        let text = |field: &str| call[field].as_str().unwrap_or_default().to_owned();
        let arguments = match &call["args"] {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            whole => whole.to_string(),
        };
        self.calls += 1;
        if self.calls > MOST_CALLS {
            return self.give_up(Kind::Void, "the reply makes more than 1,000 calls");
        }
        let name = text("name");
        heard(Heard::Call { name: &name });
        heard(Heard::Arguments { bytes: arguments.len() });
        self.add(Piece { on: On::Call, text: arguments, name, id: text("id"), signature });
    }

    fn add(&mut self, piece: Piece) {
        if self.pieces.len() >= MOST_PARTS {
            return self.give_up(Kind::Void, "the reply has more than 100,000 parts");
        }
        self.pieces.push(piece);
    }

    /// What it comes to.
    fn answer(mut self) -> Result<Answer, Trouble> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        let cut = match self.finish.as_deref() {
            None if self.whole => return Err(Trouble::new(Kind::Passing, "the reply does not say why it ended")),
            None => return Err(Trouble::new(Kind::Passing, "the stream ended before the reply did")),
            Some("STOP") => None,
            Some("MAX_TOKENS") => Some(Stop::Length),
            Some(reason) if DECLINED.contains(&reason) => Some(Stop::Refused),
            Some("MISSING_THOUGHT_SIGNATURE") => {
                return Err(Trouble::new(Kind::Rejected, "the API misses a signature of what the model thought before"));
            }
            // The model failed at it, for example with a call that cannot be read: it may do better another time.
            Some(reason) => {
                let words = self.finish_words.as_deref().map(|words| format!(": {words}")).unwrap_or_default();
                return Err(Trouble::new(Kind::Void, plain(&format!("the reply is of no use ({reason}){words}"))));
            }
        };
        let last = self.pieces.len().wrapping_sub(1);
        let mut parts = Vec::new();
        for (place, piece) in self.pieces.into_iter().enumerate() {
            // Calls come whole even where the limit cut them: the last one of such a reply is not to be trusted.
            piece.say(cut.is_some() && place == last, &mut parts);
        }
        let calls = parts.iter().any(|part| matches!(part, Said::Call { .. }));
        usable(parts, cut.unwrap_or(if calls { Stop::Calls } else { Stop::End }), self.served, self.id)
    }
}

impl Piece {
    /// Adds what it says to `parts`; a call that was `cut` is none.
    fn say(self, cut: bool, parts: &mut Vec<Said>) {
        let Piece { on, text, name, id, signature } = self;
        if let Some(signature) = signature.filter(|_| !(cut && on == On::Call)) {
            let kept = Signature { on, signature };
            let json = serde_json::to_value(&kept).expect("a name and a string always serialise");
            parts.push(Said::Opaque { wire: WIRE.to_owned(), json });
        }
        match on {
            On::Text | On::Thought if text.is_empty() => {}
            On::Text => parts.push(Said::Text { text }),
            On::Thought => parts.push(Said::Reasoning { text }),
            On::Call if cut => parts.push(Said::Cut { name, raw: text }),
            On::Call => parts.push(Said::Call { id, name, arguments: text }),
        }
    }
}

/// Tokens as the API counted them; `None` where it says nothing, or nothing but zeros.
fn usage(fields: &Value) -> Option<Usage> {
    let count = |field: &str| fields[field].as_u64().unwrap_or(0);
    fields["promptTokenCount"].as_u64()?;
    let input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    let reasoning = count("thoughtsTokenCount");
    let output = count("candidatesTokenCount").saturating_add(reasoning);
    let cached = count("cachedContentTokenCount");
    (input.saturating_add(output) > 0).then_some(Usage { input, cached, cache_write: 0, output, reasoning })
}
