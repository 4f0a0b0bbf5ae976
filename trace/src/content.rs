//! What people, models and tools say to one another: lists of parts, so that pictures and files fit from the first day.

use crate::Digest;
use serde::{Deserialize, Serialize};

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture, kept as a blob of the run.
    Image {
        /// The picture's bytes.
        blob: Digest,
        /// Its kind, such as `image/png`.
        media_type: String,
    },
    /// Another file, kept as a blob of the run.
    File {
        /// The file's bytes.
        blob: Digest,
        /// Its name, for people and models.
        name: String,
        /// Its kind, such as `application/pdf`.
        media_type: String,
    },
}

impl Part {
    /// A part of words.
    pub fn text(text: impl Into<String>) -> Part {
        Part::Text { text: text.into() }
    }
}

/// The words of `parts`, joined by line ends; media are left out.
pub fn text_of(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } | Part::File { .. } => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
