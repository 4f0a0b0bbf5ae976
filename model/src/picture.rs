//! Pictures as models are sent them, and which model takes which.

use crate::prompt::{Message, SentPart};
use crate::provider;
use crate::wire::Wire;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use trace::{Digest, ModelSpec, Picture, PictureError};

/// Tokens that a picture counts as, whatever its size: Anthropic takes at most 4,784 (platform.claude.com/docs/en/
/// build-with-claude/vision), OpenAI 2,500 patches at the detail that we ask for and up to 1.62 tokens a patch
/// (developers.openai.com/api/docs/guides/images-vision), Gemini 1,120 (ai.google.dev/gemini-api/docs/media-resolution).
pub(crate) const PICTURE_TOKENS: u64 = 5_000;

/// A picture that is sent: its bytes in base64, as every wire takes them. Clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPicture {
    picture: Picture,
    digest: Digest,
    base64: Arc<str>,
}

impl SentPicture {
    /// The picture that `bytes` are.
    ///
    /// # Errors
    /// Where they are none that can be sent.
    pub fn of(bytes: &[u8]) -> Result<SentPicture, PictureError> {
        Ok(SentPicture { picture: Picture::of(bytes)?, digest: Digest::of(bytes), base64: STANDARD.encode(bytes).into() })
    }

    /// What it is.
    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// The digest of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its bytes in base64.
    pub(crate) fn base64(&self) -> &str {
        &self.base64
    }

    /// It as an address that holds it.
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.picture.media_type, self.base64)
    }
}

/// Whether the model that `spec` names is sent pictures of a kind, such as `image/png`. Where nobody knows, it is tried.
pub fn takes(spec: &ModelSpec, media_type: &str) -> bool {
    let of_row = provider::row(&spec.provider).picture_kinds;
    let is_known = Wire::of(spec).pictures().contains(&media_type) && of_row.is_none_or(|kinds| kinds.contains(&media_type));
    spec.images != Some(false) && is_known
}

/// Words of servers that take no pictures, with statuses that tell something else: llama.cpp without a projector and Ollama
/// with 500 (github.com/ggml-org/llama.cpp/issues/12947, 13566 and 15377, github.com/valentinfrlch/ha-llmvision/issues/691),
/// OpenRouter with 404 (github.com/NousResearch/hermes-agent/pull/23411).
const TAKES_NONE: &[&str] = &[
    "image input is not supported",
    "unsupported content part type: \"image_url\"",
    "missing data required for image input",
    "no endpoints found that support image",
];

/// Whether a server says with these words that it takes no pictures, whatever its status tells.
pub fn takes_none(message: &str) -> bool {
    let message = message.to_lowercase();
    TAKES_NONE.iter().any(|words| message.contains(words))
}

/// How many pictures `message` holds, and how many bytes of base64 they are.
pub(crate) fn weight(message: &Message) -> (u64, usize) {
    let parts = match message {
        Message::User(parts) | Message::Result { content: parts, .. } => parts.as_slice(),
        Message::Reply { .. } => &[],
    };
    let pictures = parts.iter().filter_map(|part| match part {
        SentPart::Picture(picture) => Some(picture.base64().len()),
        SentPart::Text(_) => None,
    });
    pictures.fold((0, 0), |(count, bytes), more| (count + 1, bytes + more))
}
