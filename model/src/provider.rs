//! Providers as rows of data: where they are, which variables they want, and what their servers take.

use crate::wire::Wire;

/// A provider of models, and what its requests must look like.
#[derive(Debug)]
pub struct Provider {
    /// The name before the slash of a model id.
    pub name: &'static str,
    /// The wire that it speaks.
    pub(crate) wire: Wire,
    /// Its address, if it has a usual one, as people name it: with the version (`/v1`) where that is usual; without a slash
    /// at the end.
    pub base_url: Option<&'static str>,
    /// The variable that names another address. Nothing here reads it.
    pub base_url_var: Option<&'static str>,
    /// The variable that holds the key. Nothing here reads it.
    pub key_var: &'static str,
    /// Whether it answers without a key.
    pub key: KeyUse,
    /// The provider whose rows in the table of models it has: its own name, where it is not another way to the same models.
    pub(crate) models: &'static str,
    /// The field that limits the output; of OpenAI's chat, as the next one.
    pub(crate) max_tokens_field: &'static str,
    /// The field in which reasoning goes back.
    pub(crate) reasoning: ReasoningField,
}

/// Whether a provider answers without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It does not.
    Required,
    /// It may: a server of one's own.
    Optional,
}

/// How reasoning goes back to the server that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningField {
    /// Not at all: the server keeps or ignores it.
    Never,
    /// In this field, whichever it came in.
    Named(&'static str),
    /// In the field in which it came.
    AsItCame,
}

impl Provider {
    /// Whether `base_url` lies on the provider's own host, so that its key may be sent there.
    pub fn is_at(&self, base_url: &str) -> bool {
        let place = |url: &str| reqwest::Url::parse(url).ok().map(|url| url.origin());
        self.base_url.and_then(place).is_some_and(|own| Some(own) == place(base_url))
    }
}

/// The row for a server that nothing is known about.
const COMPATIBLE: Provider = Provider {
    name: "openai-compatible",
    wire: Wire::OpenAiChat,
    base_url: None,
    base_url_var: None,
    key_var: "AUTOSAGE_API_KEY",
    key: KeyUse::Optional,
    models: "openai-compatible",
    max_tokens_field: "max_tokens",
    reasoning: ReasoningField::AsItCame,
};

/// OpenAI's models on Chat Completions. What is said here of that wire also goes for the records of runs which asked
/// `openai/NAME` on it.
const OPENAI_CHAT: Provider = Provider {
    name: "openai-chat",
    base_url: Some("https://api.openai.com/v1"),
    base_url_var: Some("OPENAI_BASE_URL"),
    key_var: "OPENAI_API_KEY",
    key: KeyUse::Required,
    models: "openai",
    max_tokens_field: "max_completion_tokens",
    reasoning: ReasoningField::Never,
    ..COMPATIBLE
};

/// Every provider that works.
pub(crate) const PROVIDERS: &[Provider] = &[
    Provider { name: "openai", wire: Wire::OpenAiResponses, ..OPENAI_CHAT },
    OPENAI_CHAT,
    Provider {
        name: "anthropic",
        models: "anthropic",
        wire: Wire::AnthropicMessages,
        base_url: Some("https://api.anthropic.com"),
        base_url_var: Some("ANTHROPIC_BASE_URL"),
        key_var: "ANTHROPIC_API_KEY",
        key: KeyUse::Required,
        ..COMPATIBLE
    },
    Provider {
        name: "gemini",
        wire: Wire::Gemini,
        models: "gemini",
        base_url: Some("https://generativelanguage.googleapis.com"),
        base_url_var: Some("GOOGLE_GEMINI_BASE_URL"),
        key_var: "GEMINI_API_KEY",
        key: KeyUse::Required,
        ..COMPATIBLE
    },
    COMPATIBLE,
    Provider {
        name: "openrouter",
        models: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        base_url_var: Some("OPENROUTER_BASE_URL"),
        key_var: "OPENROUTER_API_KEY",
        key: KeyUse::Required,
        reasoning: ReasoningField::Named("reasoning"),
        ..COMPATIBLE
    },
    Provider {
        name: "ollama",
        models: "ollama",
        base_url: Some("http://127.0.0.1:11434/v1"),
        base_url_var: Some("OLLAMA_BASE_URL"),
        key_var: "OLLAMA_API_KEY",
        reasoning: ReasoningField::Named("reasoning"),
        ..COMPATIBLE
    },
    Provider {
        name: "vllm",
        models: "vllm",
        base_url: Some("http://127.0.0.1:8000/v1"),
        base_url_var: Some("VLLM_BASE_URL"),
        key_var: "VLLM_API_KEY",
        ..COMPATIBLE
    },
    Provider {
        name: "llamacpp",
        models: "llamacpp",
        base_url: Some("http://127.0.0.1:8080/v1"),
        base_url_var: Some("LLAMACPP_BASE_URL"),
        key_var: "LLAMA_API_KEY",
        reasoning: ReasoningField::Named("reasoning_content"),
        ..COMPATIBLE
    },
];

/// The row called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|row| row.name == name)
}

/// The row called `name`; for a name from elsewhere (a recording, a later version) the one that suits any server.
pub(crate) fn row(name: &str) -> &'static Provider {
    find(name).unwrap_or(&COMPATIBLE)
}
