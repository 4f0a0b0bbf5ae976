//! Calls in a row that were denied in the same words: the first is told whole, and of the others how many they are.

use super::calls::claimed;
use super::{Look, Story};
use crate::cli::prose::counted;
use trace::{Event, Status, What, text_of};

/// Those that stand last.
#[derive(Debug, Default)]
pub(super) struct Denied {
    /// What they were denied with.
    words: Option<String>,
    more: u64,
}

impl Denied {
    /// How many there are beyond the first.
    pub(super) fn more(&self) -> u64 {
        self.more
    }

    /// One more event. Answers with how many were beyond the first of those that end with it.
    pub(super) fn fold(&mut self, event: &Event) -> u64 {
        let words = match &event.what {
            // It says nothing before its observation.
            What::Called(called) if claimed(called).is_none() => return 0,
            What::Observed(observed) if observed.status == Status::Denied => Some(text_of(&observed.content)),
            _ => None,
        };
        if words.is_some() && words == self.words {
            self.more += 1;
            return 0;
        }
        self.words = words;
        std::mem::take(&mut self.more)
    }
}

impl Story {
    pub(super) fn more_denied(&self, more: u64) -> String {
        match more {
            0 => String::new(),
            _ => self.paint(Look::Bad, &format!("… {}, denied in the same words\n\n", counted(more, "more call"))),
        }
    }
}
