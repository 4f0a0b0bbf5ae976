//! Whom a request is for, and whether that provider would accept it.

use super::Wire;
use crate::support::strict;

/// Whom a request is for, as its address says it.
pub(super) struct Asked {
    pub wire: Wire,
    provider: String,
    /// Where the address says it too.
    model: Option<String>,
}

impl Asked {
    /// That of a request to `path`: `/v1/…`, or `/PROVIDER/v1/…`.
    pub fn at(path: &str) -> Asked {
        let (provider, rest) = path.split_once("/v1/").unwrap_or_else(|| panic!("a request to {path}"));
        let gemini = rest.strip_prefix("models/").and_then(|rest| rest.strip_suffix(":streamGenerateContent?alt=sse"));
        let (wire, usual) = match (rest, gemini) {
            ("chat/completions", _) => (Wire::Chat, "openai-compatible"),
            ("responses", _) => (Wire::Responses, "openai"),
            ("messages", _) => (Wire::Messages, "anthropic"),
            (_, Some(_)) => (Wire::Gemini, "gemini"),
            _ => panic!("a request to {path}"),
        };
        let provider = provider.strip_prefix('/').unwrap_or(usual).to_owned();
        Asked { wire, provider, model: gemini.map(str::to_owned) }
    }

    /// Fails where the provider would not accept `body`.
    pub fn accept(&self, body: &str) {
        let wire = match self.wire {
            Wire::Chat => "openai-chat",
            Wire::Responses => "openai-responses",
            Wire::Messages => "anthropic-messages",
            Wire::Gemini => "gemini",
        };
        let asked = strict::Asked { wire, provider: &self.provider, model: self.model.as_deref(), body };
        if let Err(rule) = strict::check(asked) {
            panic!("{} would refuse it: {rule}: {body}", self.provider);
        }
    }
}
