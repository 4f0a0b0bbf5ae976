//! Prompt to reply, whatever the provider.
//!
//! A [`Transcript`] holds the bytes of a conversation and is only ever extended; its body is that of a request ([`render`]
//! gives the same for a whole [`Prompt`]). A [`Model`] is asked with these bytes, and what comes back is a `trace::Replied`, also when it is no usable answer.
//! [`catalog::find`] turns `provider/name` into a `trace::ModelSpec`, [`connect`] a spec into a model that speaks HTTP.
//! [`ScriptedModel`] and [`Recorded`] answer without a server; a [`Recorder`] writes down what any other model answers.
//!
//! What a wire looks like is known to its own module only (`openai_chat`, `openai_responses`,
//! `anthropic_messages`, `gemini`), behind the seam `wire`. Nothing here reads the environment: keys and addresses are
//! values, and proxies that the environment names are not used.

mod anthropic_messages;
mod ask;
pub mod catalog;
mod gemini;
mod http;
mod masks;
mod openai;
mod openai_chat;
mod openai_responses;
mod picture;
mod prompt;
mod provider;
pub mod recorded;
mod recorder;
mod retry;
mod schema;
mod scripted;
mod sse;
mod thoughts;
mod transcript;
mod trouble;
mod wire;

pub use ask::{Ask, Heard, Model, Purse};
pub use http::{Access, CHECK_OUTPUT, CHECK_TIME, Checked, Gate, Wrong, check, connect};
pub use masks::Masks;
pub use picture::{SentPicture, takes, takes_none};
pub use prompt::{Message, Prompt, SentCall, SentPart, estimate_tokens, text_of};
pub use provider::{KeyForm, KeyUse, Provider};
pub use recorded::Recorded;
pub use recorder::Recorder;
pub use retry::RetryBudget;
pub use scripted::{ScriptedModel, Step};
pub use thoughts::names_thoughts;
pub use transcript::{Transcript, render};
