//! What a run may spend and what it spent: turns, tokens, money, active time. Integers only.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};

/// Money in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// The sum, held at the largest value.
    pub fn saturating_add(self, other: NanoUsd) -> NanoUsd {
        NanoUsd(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for NanoUsd {
    /// Dollars with four decimals, more where the amount is smaller than that.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        match nanos {
            1..100_000 if dollars == 0 => write!(f, "${dollars}.{nanos:09}"),
            _ => write!(f, "${dollars}.{:04}", nanos / 100_000),
        }
    }
}

/// The most that a run may spend; `None` is no limit. A turn is one request to think, whatever its retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Requests to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tokens of all kinds, input and output, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<NanoUsd>,
    /// Active milliseconds: pauses between sessions do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// Tokens as the provider counted them (or as we estimated them, see `Replied::estimated`).
/// `input` is the whole prompt; `cached` and `cache_write` are the parts of it that were read from or written to a cache;
/// `output` is all that the model made; `reasoning` is the part of it that was reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the whole prompt.
    pub input: u64,
    /// Of `input`: read from a cache.
    #[serde(default)]
    pub cached: u64,
    /// Of `input`: written to a cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Tokens made by the model, reasoning included.
    pub output: u64,
    /// Of `output`: reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

/// Prices in nano-dollars a token (so 3 dollars a million tokens is 3,000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// A token of the prompt that no cache served.
    pub input: u64,
    /// A token that was read from a cache.
    pub cached: u64,
    /// A token that was written to a cache.
    pub cache_write: u64,
    /// A token of output.
    pub output: u64,
    /// What long prompts cost instead, where they cost something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// The prices of a request whose prompt is longer than `above` tokens: all its tokens cost these, those of output too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongPrice {
    /// The longest prompt that still has the ordinary price.
    pub above: u64,
    /// As in [`Price`].
    pub input: u64,
    /// As in [`Price`].
    pub cached: u64,
    /// As in [`Price`].
    pub cache_write: u64,
    /// As in [`Price`].
    pub output: u64,
}

impl Price {
    /// What one request of this usage costs.
    pub fn of(&self, usage: &Usage) -> NanoUsd {
        let LongPrice { input, cached: read, cache_write, output, .. } = match self.long {
            Some(long) if usage.input > long.above => long,
            _ => {
                LongPrice { above: 0, input: self.input, cached: self.cached, cache_write: self.cache_write, output: self.output }
            }
        };
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_write.min(usage.input - cached);
        let plain = usage.input - cached - written;
        let parts = [(plain, input), (cached, read), (written, cache_write), (usage.output, output)];
        NanoUsd(parts.iter().fold(0u64, |sum, (tokens, price)| sum.saturating_add(tokens.saturating_mul(*price))))
    }
}

/// What something cost: an amount, or the plain statement that no price is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Nano-dollars.
    NanoUsd(NanoUsd),
    /// No price is known for the model.
    Unpriced,
}

impl Cost {
    /// The amount, if there is one.
    pub fn amount(self) -> Option<NanoUsd> {
        match self {
            Cost::NanoUsd(amount) => Some(amount),
            Cost::Unpriced => None,
        }
    }
}
