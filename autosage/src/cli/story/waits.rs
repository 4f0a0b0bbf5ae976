//! A wait of the request that goes on, in one line: how long, whom it is for, and why.

use super::Story;
use crate::cli::prose::{clean, cut_to, length};
use trace::{Clock, Millis, Timestamp};

impl Story {
    /// A wait that begins. It is not told again with the answer of its request.
    pub fn wait(&mut self, left: Millis, reason: &str) -> String {
        self.waits_told = true;
        self.is_amid = true;
        format!("{}\n", self.waiting(left, reason, 0))
    }

    /// The wait that has so much `left`, behind so much of the line that is `taken`.
    pub fn waiting(&self, left: Millis, reason: &str, taken: usize) -> String {
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("waiting {} to ask {}: {reason}", whole_seconds(left), self.asked);
        cut_to(&clean(&line), self.width.saturating_sub(taken))
    }
}

/// How long it is until `until`.
pub fn left(until: Timestamp, clock: &dyn Clock) -> Millis {
    u64::try_from(until.unix_millis().saturating_sub(clock.now().unix_millis())).unwrap_or(0)
}

/// The seconds that are begun, for tenths of them are soon gone.
fn whole_seconds(millis: Millis) -> String {
    match millis.div_ceil(1000) {
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds => length(seconds * 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::story::Colour;

    #[test]
    fn a_wait_is_one_line_that_says_how_long_and_for_whom() {
        let mut story = Story::new(Colour::Off, 80, "autosage");
        story.asked = "anthropic/claude-sonnet-5-5".to_owned();
        assert_eq!(story.wait(11_250, "529: Overloaded"), "waiting 12 s to ask anthropic/claude-sonnet-5-5: 529: Overloaded\n");
        assert_eq!(story.wait(1, "no\x1b[2J"), "waiting 1 s to ask anthropic/claude-sonnet-5-5: no\u{fffd}[2J\n");
        let long = story.wait(185_000, &"so much to say\n".repeat(20));
        assert!(long.starts_with("waiting 3 min 5 s to ask anthropic/claude-sonnet-5-5: so much to say so"), "{long}");
        assert_eq!((long.chars().count(), long.lines().count()), (81, 1), "{long}");
    }
}
