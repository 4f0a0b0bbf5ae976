//! Pictures in a story: shown below their lines, and told of where a server would not take them.

use super::{Look, OUTPUT_LINES, Story};
use crate::cli::inline::Inline;
use trace::{Event, Fault, FaultClass, Part, Replied, Stop, What};

/// What a server said of the last request, where it refused it.
#[derive(Debug, Default)]
pub(super) struct Refusal(Option<String>);

impl Refusal {
    /// Takes in one more event. Answers with what the server said, where the same turn asks once more: only what was perhaps
    /// refused for its new pictures is made again, without them.
    pub fn fold(&mut self, event: &Event) -> Option<String> {
        match &event.what {
            What::Asked(_) => return self.0.take(),
            What::Replied(Replied {
                stop: Stop::Error(Fault { class: FaultClass::Rejected, message, .. }), attempts, ..
            }) => {
                let last = attempts.last().and_then(|last| last.error.as_ref());
                self.0 = Some(last.unwrap_or(message).clone());
            }
            What::Replied(_) | What::Switched(_) | What::Finished(_) => self.0 = None,
            What::Started(_) | What::Delivered(_) | What::ApprovalAsked(_) | What::Called(_) | What::Observed(_) => {}
            What::Verified(_) | What::Folded(_) | What::Granted(_) | What::Recovered(_) | What::Unknown { .. } => {}
        }
        None
    }
}

impl Story {
    /// From here on pictures are shown so.
    pub fn show_pictures(&mut self, inline: Option<Inline>) {
        self.inline = inline;
    }

    /// The pictures among `parts`, below the lines that name them.
    pub(super) fn pictures(&self, parts: &[Part]) -> String {
        self.inline.as_ref().map(|inline| inline.shown(parts)).unwrap_or_default()
    }

    /// That a request is made again without its new pictures, for a server said `why`.
    pub(super) fn without_pictures(&self, why: &str) -> String {
        let told = format!("the model's server refused the request, which is made again without its new pictures: {why}");
        self.paint(Look::Bad, &self.prose(&told, OUTPUT_LINES, "! "))
    }
}
