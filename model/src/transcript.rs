//! A prompt that is serialised once and then only extended.

use crate::picture::{PICTURE_TOKENS, weight};
use crate::wire::Wire;
use crate::{Message, Prompt, anthropic_messages, gemini, openai_chat, openai_responses, prompt, schema};
use serde_json::Value;
use trace::{ModelSpec, ToolSpec};

/// More bytes than a body has besides what is written: its end, and the marks for a cache.
const END_BYTES: usize = 128;

/// The bytes of a conversation as one model is sent them: instructions and tools at the head, then message after message.
/// What stands is never touched again, so a turn costs as much as it adds, and a body only its copy.
#[derive(Clone, Debug)]
pub struct Transcript {
    writing: Writing,
    /// How many pictures stand in it.
    pictures: u64,
    /// How many bytes of it they are.
    picture_bytes: usize,
}

/// The same, as each wire writes it.
#[derive(Clone, Debug)]
enum Writing {
    OpenAiChat(openai_chat::Writing),
    OpenAiResponses(openai_responses::Writing),
    AnthropicMessages(anthropic_messages::Writing),
    Gemini(gemini::Writing),
}

impl Transcript {
    /// The head of every request to the model that `spec` names; no instructions are sent for an empty `system`. A model that
    /// can be held to the `schema` of an answer is.
    pub fn new(spec: &ModelSpec, system: &str, tools: &[ToolSpec], schema: Option<&Value>) -> Transcript {
        let form = schema::form(spec, schema);
        let form = form.as_ref();
        let writing = match Wire::of(spec) {
            Wire::OpenAiChat => Writing::OpenAiChat(openai_chat::Writing::new(spec, system, tools, form)),
            Wire::OpenAiResponses => Writing::OpenAiResponses(openai_responses::Writing::new(spec, system, tools, form)),
            Wire::AnthropicMessages => Writing::AnthropicMessages(anthropic_messages::Writing::new(spec, system, tools, form)),
            Wire::Gemini => Writing::Gemini(gemini::Writing::new(spec, system, tools, form)),
        };
        Transcript { writing, pictures: 0, picture_bytes: 0 }
    }

    /// The conversation goes on with `message`, which is final.
    pub fn push(&mut self, message: &Message) {
        let message = &*message.without_nul();
        let (pictures, bytes) = weight(message);
        self.pictures += pictures;
        self.picture_bytes += bytes;
        match &mut self.writing {
            Writing::OpenAiChat(writing) => writing.push(message),
            Writing::OpenAiResponses(writing) => writing.push(message),
            Writing::AnthropicMessages(writing) => writing.push(message),
            Writing::Gemini(writing) => writing.push(message),
        }
    }

    /// An estimate of the tokens of a request with all that is written, on the safe side. A picture counts as a fixed number
    /// of them, whatever its size.
    pub fn tokens(&self) -> u64 {
        let written = match &self.writing {
            Writing::OpenAiChat(writing) => writing.bytes(),
            Writing::OpenAiResponses(writing) => writing.bytes(),
            Writing::AnthropicMessages(writing) => writing.bytes(),
            Writing::Gemini(writing) => writing.bytes(),
        };
        prompt::tokens_of((written + END_BYTES).saturating_sub(self.picture_bytes)) + self.pictures * PICTURE_TOKENS
    }

    /// The body of the request that asks for a reply of at most `max_output` tokens.
    pub fn body(&self, max_output: u64) -> String {
        match &self.writing {
            Writing::OpenAiChat(writing) => writing.body(max_output),
            Writing::OpenAiResponses(writing) => writing.body(max_output),
            Writing::AnthropicMessages(writing) => writing.body(max_output),
            Writing::Gemini(writing) => writing.body(max_output),
        }
    }
}

/// The request body for `prompt`, byte for byte: the same for the same values, on every machine.
///
/// Where a prompt extends another, its messages extend the other's, and all that stands before them is the same: the
/// earlier body up to the end of its last message is a prefix of the later one, as long as `spec`, `system`, `tools` and
/// `schema` stay the same, and but for marks that tell a cache how far to keep it. Only the limit of the output stands after the
/// messages.
pub fn render(spec: &ModelSpec, prompt: &Prompt<'_>) -> String {
    let mut transcript = Transcript::new(spec, prompt.system, prompt.tools, prompt.schema);
    prompt.messages.iter().for_each(|message| transcript.push(message));
    transcript.body(prompt.max_output)
}
