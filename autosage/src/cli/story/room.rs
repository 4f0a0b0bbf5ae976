//! How much of a window is left for the history, said once where it is little.

use super::{Look, Story};
use crate::cli::prose::grouped;
use trace::{Asked, Seq};

impl Story {
    /// What is said of the first request of a run where it takes more than half of the window, with room for its reply.
    pub(super) fn little_room(&self, asked: &Asked) -> String {
        let (window, reply) = self.window;
        let input = asked.reserved_tokens.saturating_sub(asked.max_output);
        if asked.upto != Seq(0) || input.saturating_add(reply).saturating_mul(2) <= window {
            return String::new();
        }
        let (window, input, reply) = (grouped(window), grouped(input), grouped(reply));
        let told = format!(
            "the window is small: of {window} tokens {input} are sent at first and {reply} kept for a reply, so the history is \
             folded often; --context or another --model gives it more"
        );
        self.paint(Look::Dim, &self.prose(&told, usize::MAX, ""))
    }
}
