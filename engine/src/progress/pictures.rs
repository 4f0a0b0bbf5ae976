//! Pictures on their way from events to the model: read by their digests, and told in words to a model that is sent none.

use crate::harness::{Notes, fill};
use model::{Message, SentPart, SentPicture};
use std::borrow::Cow;
use trace::{Contents, ModelSpec, Part};

/// How parts of events become parts of messages.
#[derive(Clone, Debug)]
pub(super) struct Pictures {
    contents: Contents,
    /// What is told instead of a picture that the record has lost.
    lost: String,
    /// What is told instead of a picture that the model is not sent.
    unseen: String,
    /// A file that is no picture.
    file: String,
    model: Option<ModelSpec>,
}

impl Pictures {
    pub fn new(contents: Contents, notes: &Notes) -> Pictures {
        let (lost, unseen, file) = (notes.lost_picture.clone(), notes.unseen_picture.clone(), notes.file.clone());
        Pictures { contents, lost, unseen, file, model: None }
    }

    /// This model is sent messages from here on.
    pub fn fit(&mut self, model: &ModelSpec) {
        self.model = Some(model.clone());
    }

    /// `parts` with the pictures that they name.
    pub fn sent(&self, parts: &[Part]) -> Vec<SentPart> {
        let sent = |part: &Part| match part {
            Part::Text { text } => SentPart::text(text),
            Part::Image { blob, picture } => {
                let read = self.contents.get(blob).ok().and_then(|bytes| SentPicture::of(&bytes).ok());
                let lost = || SentPart::Text(fill(&self.lost, &[("picture", &picture.to_string())]));
                read.map_or_else(lost, SentPart::Picture)
            }
            Part::File { name, media_type, .. } => SentPart::Text(fill(&self.file, &[("name", name), ("type", media_type)])),
        };
        parts.iter().map(sent).collect()
    }

    /// `message` with words for each picture that the model is not sent.
    pub fn fitting<'a>(&self, message: &'a Message) -> Cow<'a, Message> {
        let (Message::User(parts) | Message::Result { content: parts, .. }) = message else { return Cow::Borrowed(message) };
        if parts.iter().all(|part| self.is_sent(part)) {
            return Cow::Borrowed(message);
        }
        let fitting: Vec<SentPart> = parts.iter().map(|part| self.told(part)).collect();
        Cow::Owned(match message {
            Message::User(_) => Message::User(fitting),
            Message::Result { id, status, .. } => Message::Result { id: id.clone(), status: *status, content: fitting },
            Message::Reply { .. } => message.clone(),
        })
    }

    fn is_sent(&self, part: &SentPart) -> bool {
        match (part, &self.model) {
            (SentPart::Picture(sent), Some(model)) => model::takes(model, &sent.picture().media_type),
            (SentPart::Picture(_), None) | (SentPart::Text(_), _) => true,
        }
    }

    fn told(&self, part: &SentPart) -> SentPart {
        match part {
            SentPart::Picture(sent) if !self.is_sent(part) => {
                SentPart::Text(fill(&self.unseen, &[("picture", &sent.picture().to_string())]))
            }
            SentPart::Picture(_) | SentPart::Text(_) => part.clone(),
        }
    }
}
