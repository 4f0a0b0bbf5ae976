//! What it means to ask a model: the body, what may be spent on it, and who hears the words as they come.

use crate::estimate_tokens;
use futures_util::future::BoxFuture;
use trace::{Attempt, Clock, Exhausted, ModelSpec, NanoUsd, Replied, Timestamp, Usage};

/// Something that answers prompts.
pub trait Model: Send + Sync {
    /// What is asked here, and what its requests depend on.
    fn spec(&self) -> &ModelSpec;

    /// Sends one request, again where that can help, and returns what came of it. There is no `Err`: a request without
    /// a usable answer is a `Replied` without parts whose `stop` is `Stop::Error`. Dropping the future ends the request.
    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied>;
}

/// One request to think.
pub struct Ask<'a> {
    /// The bytes to send, as [`render`](crate::render) made them.
    pub body: &'a str,
    /// What may be spent on it.
    pub purse: Purse,
    /// Told of words and waits as they come. For a live view only: what counts is the reply.
    pub heard: &'a (dyn Fn(Heard<'_>) + Send + Sync),
    /// Where time comes from.
    pub clock: &'a dyn Clock,
}

impl Ask<'_> {
    /// The tokens that the input has where the server does not say so. A picture's bytes would count far too much.
    pub(crate) fn input(&self) -> u64 {
        estimate_tokens(self.body).min(self.purse.input_tokens.unwrap_or(u64::MAX))
    }
}

/// What is left of a budget before a request, and what each attempt of it may cost at most. `None` is no limit.
///
/// Each attempt reserves anew: it is made only if what the attempts before it used and one more reserve still fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purse {
    /// Tokens that are left.
    pub tokens: Option<u64>,
    /// Money that is left.
    pub nano_usd: Option<NanoUsd>,
    /// Tokens that an attempt may use: the estimate of its input and the most output.
    pub reserve_tokens: u64,
    /// Those of them that the input is estimated to have; `None` where nobody estimated it.
    pub input_tokens: Option<u64>,
    /// Money that an attempt may cost; `None` where no price is known.
    pub reserve_nano_usd: Option<NanoUsd>,
    /// Active milliseconds that are left.
    pub time_ms: Option<u64>,
}

impl Purse {
    /// Which limit another attempt does not fit after `used` tokens and `spent` money, and why; `None` if it fits.
    pub(crate) fn refuses(&self, used: &Usage, spent: NanoUsd) -> Option<(Exhausted, String)> {
        let (used, reserve) = (used.total(), self.reserve_tokens);
        if let Some(left) = self.tokens.filter(|left| used.saturating_add(reserve) > *left) {
            let words = format!("{left} tokens were left; {used} are used by earlier attempts, {reserve} more may be needed");
            return Some((Exhausted::Tokens, words));
        }
        let reserve = self.reserve_nano_usd.unwrap_or_default();
        let left = self.nano_usd.filter(|left| spent.saturating_add(reserve) > *left)?;
        let words = format!("{left} were left; {spent} are used by earlier attempts, {reserve} more may be needed");
        Some((Exhausted::Money, words))
    }
}

/// What can be heard while a model answers: every byte of words, reasoning and arguments, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// Words for the person.
    Text(&'a str),
    /// Words that the model thinks.
    Reasoning(&'a str),
    /// The model begins a call.
    Call {
        /// The tool's name.
        name: &'a str,
    },
    /// A piece of the call's arguments came. How much is told, and not what: half of a secret could not be hidden.
    Arguments {
        /// Its length.
        bytes: usize,
    },
    /// The attempt failed, and the words heard so far are void: what it used, and why. Another one may follow.
    Failed(&'a Attempt),
    /// The next attempt is made later.
    Waiting {
        /// When it is made.
        until: Timestamp,
        /// What was wrong.
        reason: &'a str,
    },
}

impl Heard<'_> {
    /// How much of the reply it is, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Heard::Text(words) | Heard::Reasoning(words) => words.len(),
            Heard::Arguments { bytes } => *bytes,
            Heard::Call { .. } | Heard::Failed(_) | Heard::Waiting { .. } => 0,
        }
    }
}
