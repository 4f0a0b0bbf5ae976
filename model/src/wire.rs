//! The wires: what requests look like and how their answers are read, a module for each. Whoever sends, records or plays
//! knows this page and no field of any wire.

mod escapes;
mod reading;
#[cfg(test)]
mod tests;

pub(crate) use escapes::without_nul;
pub(crate) use reading::{Answer, Draft, Phase, Reading, usable};

use crate::provider::KeyForm;
use crate::trouble::Trouble;
use crate::{anthropic_messages, gemini, openai, openai_chat, openai_responses, provider, retry};
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;
use trace::{ModelSpec, Timestamp};

/// A wire that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI Chat Completions, as OpenAI and every compatible server speak it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    AnthropicMessages,
    /// Gemini's generateContent.
    Gemini,
}

/// Every wire.
const WIRES: [Wire; 4] = [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::AnthropicMessages, Wire::Gemini];

/// What is sent, as JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and JSON values always serialise")
}

/// A header of a request.
pub(crate) struct Header {
    pub name: &'static str,
    pub value: String,
    /// Whether it holds the key.
    pub secret: bool,
}

impl Wire {
    /// The wire of the model that `spec` names, which may be another than its provider's row has by now; that of the row
    /// for a name from a later version.
    pub(crate) fn of(spec: &ModelSpec) -> Wire {
        WIRES.into_iter().find(|wire| wire.name() == spec.wire).unwrap_or(provider::row(&spec.provider).wire)
    }

    /// Its name in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Wire::OpenAiChat => openai_chat::WIRE,
            Wire::OpenAiResponses => openai_responses::WIRE,
            Wire::AnthropicMessages => anthropic_messages::WIRE,
            Wire::Gemini => gemini::WIRE,
        }
    }

    /// Where requests to the model called `name` go, from the base URL.
    pub(crate) fn url(self, base: &str, name: &str) -> String {
        match self {
            Wire::OpenAiChat => format!("{}{}", base.trim_end_matches('/'), openai_chat::PATH),
            Wire::OpenAiResponses => format!("{}{}", base.trim_end_matches('/'), openai_responses::PATH),
            Wire::AnthropicMessages => anthropic_messages::url(base),
            Wire::Gemini => gemini::url(base, name),
        }
    }

    /// How a base URL usually ends, to be said where it may be wrong.
    pub(crate) fn usual_base(self) -> &'static str {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => "it usually ends in /v1",
            Wire::AnthropicMessages | Wire::Gemini => "it usually is the host alone",
        }
    }

    /// The headers of a request beyond those of every JSON request.
    pub(crate) fn headers(self, key: Option<&str>, form: KeyForm) -> Vec<Header> {
        match (self, form) {
            (_, KeyForm::Bearer) => {
                let mut headers = self.headers(None, KeyForm::Own);
                headers.extend(openai::headers(key));
                headers
            }
            (Wire::OpenAiChat | Wire::OpenAiResponses, KeyForm::Own) => openai::headers(key),
            (Wire::AnthropicMessages, KeyForm::Own) => anthropic_messages::headers(key),
            (Wire::Gemini, KeyForm::Own) => gemini::headers(key),
        }
    }

    /// The header that names an answer for the provider's support. Google sends none of its own; its replies name themselves.
    pub(crate) fn request_id(self) -> &'static str {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Gemini => "x-request-id",
            Wire::AnthropicMessages => "request-id",
        }
    }

    /// The wait that the headers of an answer ask for.
    pub(crate) fn told<'a>(self, header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Gemini => retry::told_in_headers(header, now),
            Wire::AnthropicMessages => anthropic_messages::told(header, now),
        }
    }

    /// What an HTTP status other than 200 means. `told` is the wait that its headers ask for.
    pub(crate) fn refusal(self, status: u16, told: Option<Duration>, body: &[u8]) -> Trouble {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => openai::refusal(status, told, body),
            Wire::AnthropicMessages => anthropic_messages::refusal(status, told, body),
            Wire::Gemini => gemini::refusal(status, told, body),
        }
    }

    /// The kinds of pictures that it takes (platform.claude.com/docs/en/build-with-claude/vision, developers.openai.com/api/
    /// docs/guides/images-vision, ai.google.dev/gemini-api/docs/image-understanding).
    pub(crate) fn pictures(self) -> &'static [&'static str] {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses | Wire::AnthropicMessages => {
                &["image/png", "image/jpeg", "image/gif", "image/webp"]
            }
            Wire::Gemini => &["image/png", "image/jpeg", "image/webp"],
        }
    }

    /// Whether a request holds pictures.
    pub(crate) fn holds_pictures(self, body: &str) -> bool {
        // In a text its quotes would stand escaped.
        let mark = match self {
            Wire::OpenAiChat => openai_chat::PICTURE,
            Wire::OpenAiResponses => openai_responses::PICTURE,
            Wire::AnthropicMessages => anthropic_messages::PICTURE,
            Wire::Gemini => gemini::PICTURE,
        };
        body.contains(mark)
    }

    /// A request without the key of a cache, which is made of all that stands before the conversation: where that is masked
    /// to be compared with another run's, the key is not to give it away.
    pub(crate) fn without_key(self, body: &str) -> Cow<'_, str> {
        match self {
            Wire::OpenAiResponses => openai_responses::without_key(body),
            Wire::OpenAiChat | Wire::AnthropicMessages | Wire::Gemini => body.into(),
        }
    }

    /// The names of the tools that a request offers.
    pub(crate) fn tool_names(self, body: &str) -> Vec<String> {
        match self {
            Wire::OpenAiChat => openai_chat::tool_names(body),
            Wire::OpenAiResponses => openai_responses::tool_names(body),
            Wire::AnthropicMessages => anthropic_messages::tool_names(body),
            Wire::Gemini => gemini::tool_names(body),
        }
    }

    /// A reply of which nothing came yet.
    fn draft(self) -> Box<dyn Draft> {
        match self {
            Wire::OpenAiChat => Box::new(openai_chat::Draft::default()),
            Wire::OpenAiResponses => Box::new(openai_responses::Draft::default()),
            Wire::AnthropicMessages => Box::new(anthropic_messages::Draft::default()),
            Wire::Gemini => Box::new(gemini::Draft::default()),
        }
    }
}
