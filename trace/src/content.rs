//! What people, models and tools say to one another: lists of parts, so that pictures and files fit from the first day.

use crate::{Digest, Picture};
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
        /// What they are.
        #[serde(flatten)]
        picture: Picture,
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

    /// The content that it names; what it says is only all there with that.
    pub fn blob(&self) -> Option<Digest> {
        match self {
            Part::Text { .. } => None,
            Part::Image { blob, .. } | Part::File { blob, .. } => Some(*blob),
        }
    }
}

/// The contents that `parts` name.
pub fn blobs_of(parts: &[Part]) -> impl Iterator<Item = Digest> {
    parts.iter().filter_map(Part::blob)
}

/// The words of `parts`, joined by line ends; media are left out.
pub fn text_of(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } | Part::File { .. } => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_picture_is_named_and_not_held() {
        let picture = Picture { media_type: "image/png".to_owned(), width: 640, height: 480, bytes: 12_000 };
        let part = Part::Image { blob: Digest::of(b"x"), picture };
        let line = serde_json::to_string(&part).unwrap();
        expect![[r#"{"type":"image","blob":"3ae7d805f6789a6402acb70ad4096a85a56bf6804eaf25c0493ac697548d30b5","media_type":"image/png","width":640,"height":480,"bytes":12000}"#]].assert_eq(&line);
        assert_eq!(serde_json::from_str::<Part>(&line).unwrap(), part);
        assert_eq!(blobs_of(&[Part::text("x"), part]).collect::<Vec<_>>(), [Digest::of(b"x")]);
    }
}
