//! Pictures on their way from events to the model: read by their digests, and told in words to a model that is sent none.

use crate::harness::{Notes, fill};
use model::{Message, SentPart, SentPicture};
use std::borrow::Cow;
use std::collections::BTreeMap;
use trace::{Contents, Digest, ModelSpec, Part, Seq};

/// How the model that is asked received a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reception {
    /// It stands in the next request.
    Written,
    /// It stood in a request, and no usable reply came since.
    Asked,
    /// A usable reply followed.
    Accepted,
    /// The request that held it was refused, and perhaps for it.
    Suspected,
    /// Without it the request was answered.
    Refused,
}

/// How parts of events become parts of messages.
#[derive(Clone, Debug)]
pub(super) struct Pictures {
    contents: Contents,
    /// What is told instead of a picture that the record has lost.
    lost: String,
    /// What is told instead of a picture that the model is not sent.
    unseen: String,
    /// What is told instead of a picture that was refused.
    refused: String,
    /// What is told instead of a picture that is one too many.
    crowded: String,
    /// A file that is no picture.
    file: String,
    model: Option<ModelSpec>,
    /// By the digests of their bytes.
    receptions: BTreeMap<Digest, Reception>,
    /// Where each of them can be read again.
    places: BTreeMap<Digest, Seq>,
    /// How many pictures the model is sent.
    sent: u64,
    /// Pixels of the largest of them, at its longer side.
    pixels: u32,
}

impl Pictures {
    pub fn new(contents: Contents, notes: &Notes) -> Pictures {
        let (lost, unseen) = (notes.lost_picture.clone(), notes.unseen_picture.clone());
        let (refused, crowded) = (notes.refused_picture.clone(), notes.crowded_picture.clone());
        let (file, receptions, places) = (notes.file.clone(), BTreeMap::new(), BTreeMap::new());
        Pictures { contents, lost, unseen, refused, crowded, file, model: None, receptions, places, sent: 0, pixels: 0 }
    }

    /// This model is sent all messages from here on, anew. Another one may take what the one before refused.
    pub fn fit(&mut self, model: &ModelSpec) {
        let is_same = self.model.as_ref() == Some(model);
        self.receptions.retain(|_, reception| is_same && !matches!(reception, Reception::Written | Reception::Asked));
        self.model = Some(model.clone());
        (self.sent, self.pixels) = (0, 0);
    }

    /// The pictures among `parts` can be read again as the output at `seq`.
    pub fn place(&mut self, seq: Seq, parts: &[Part]) {
        for blob in trace::blobs_of(parts) {
            self.places.entry(blob).or_insert(seq);
        }
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
        if !pictures(message).any(|sent| self.note(sent).is_some()) {
            return Cow::Borrowed(message);
        }
        let fitting: Vec<SentPart> = parts.iter().map(|part| self.told(part)).collect();
        Cow::Owned(match message {
            Message::User(_) => Message::User(fitting),
            Message::Result { id, status, .. } => Message::Result { id: id.clone(), status: *status, content: fitting },
            Message::Reply { .. } => message.clone(),
        })
    }

    /// This message, as the model is sent it, stands in the next request.
    pub fn write(&mut self, message: &Message) {
        for sent in pictures(message) {
            self.receptions.entry(sent.digest()).or_insert(Reception::Written);
            self.sent += 1;
            self.pixels = self.pixels.max(longer_side(sent));
        }
    }

    /// Whether the model is sent more pictures than a request to it may hold.
    pub fn are_too_many(&self) -> bool {
        self.most(self.pixels).is_some_and(|most| self.sent > most)
    }

    /// The most pictures of a request whose largest has so many pixels at its longer side.
    fn most(&self, pixels: u32) -> Option<u64> {
        self.model.as_ref().and_then(|model| model.most_images(pixels))
    }

    /// Puts words in the place of the oldest pictures that the model is sent. As many stay as are half of what a request may
    /// hold, so that the next ones extend the prompt for a while; and, up to all of what it may hold, those in the messages
    /// from `new` on, for the model has not seen them yet.
    pub fn thin(&self, messages: &mut [Message], new: usize) {
        let is_sent = |sent: &&SentPicture| self.note(sent).is_none();
        let sides =
            |messages: &[Message]| -> Vec<u32> { messages.iter().flat_map(pictures).filter(is_sent).map(longer_side).collect() };
        let (all, unseen) = (sides(messages), sides(&messages[new..]).len() as u64);
        let fits = |kept: &[u32]| {
            let most = self.most(kept.iter().copied().max().unwrap_or_default());
            most.is_none_or(|most| kept.len() as u64 <= most.div_ceil(2).max(unseen.min(most)))
        };
        let mut gone = (0..all.len()).find(|gone| fits(&all[*gone..])).unwrap_or(all.len());
        let most = self.most(self.pixels).unwrap_or_default().to_string();
        for part in messages.iter_mut().filter_map(parts_of).flatten() {
            let SentPart::Picture(sent) = &*part else { continue };
            if gone > 0 && is_sent(&sent) {
                gone -= 1;
                let at = self.places.get(&sent.digest()).copied().unwrap_or_default();
                let words = [("picture", &*sent.picture().to_string()), ("most", &most), ("at", &at.to_string())];
                *part = SentPart::Text(fill(&self.crowded, &words));
            }
        }
    }

    /// A request goes out with all that was written.
    pub fn ask(&mut self) {
        self.shift(Reception::Written, Reception::Asked);
    }

    /// The model read the request.
    pub fn accept(&mut self) {
        self.shift(Reception::Asked, Reception::Accepted);
        self.shift(Reception::Suspected, Reception::Refused);
    }

    /// The request was refused for what it holds. Answers with whether that may be for its pictures; if it held none that
    /// was not accepted before, those that were suspected have been cleared. Then the transcript has to begin anew.
    pub fn refuse(&mut self) -> bool {
        let are_suspected = self.shift(Reception::Asked, Reception::Suspected);
        if !are_suspected {
            self.receptions.retain(|_, reception| *reception != Reception::Suspected);
        }
        are_suspected
    }

    /// Gives every picture that was received as `from` the reception `to`. Answers with whether there was one.
    fn shift(&mut self, from: Reception, to: Reception) -> bool {
        let shifted = self.receptions.values_mut().filter(|reception| **reception == from).map(|reception| *reception = to);
        shifted.count() > 0
    }

    /// What is told instead of a picture, if it is not sent.
    fn note(&self, sent: &SentPicture) -> Option<&str> {
        match self.receptions.get(&sent.digest()) {
            Some(Reception::Suspected | Reception::Refused) => Some(&self.refused),
            Some(Reception::Written | Reception::Asked | Reception::Accepted) | None => {
                let is_taken = self.model.as_ref().is_none_or(|model| model::takes(model, &sent.picture().media_type));
                (!is_taken).then_some(self.unseen.as_str())
            }
        }
    }

    fn told(&self, part: &SentPart) -> SentPart {
        match part {
            SentPart::Picture(sent) => self
                .note(sent)
                .map_or_else(|| part.clone(), |note| SentPart::Text(fill(note, &[("picture", &sent.picture().to_string())]))),
            SentPart::Text(_) => part.clone(),
        }
    }
}

fn longer_side(sent: &SentPicture) -> u32 {
    sent.picture().width.max(sent.picture().height)
}

/// What `message` is made of, if it can hold pictures.
fn parts_of(message: &mut Message) -> Option<&mut Vec<SentPart>> {
    match message {
        Message::User(parts) | Message::Result { content: parts, .. } => Some(parts),
        Message::Reply { .. } => None,
    }
}

/// The pictures of `message`.
fn pictures(message: &Message) -> impl Iterator<Item = &SentPicture> {
    let parts = match message {
        Message::User(parts) | Message::Result { content: parts, .. } => parts.as_slice(),
        Message::Reply { .. } => &[],
    };
    parts.iter().filter_map(|part| match part {
        SentPart::Picture(sent) => Some(sent),
        SentPart::Text(_) => None,
    })
}
