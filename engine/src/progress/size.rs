//! How many tokens a request has: what a server counted last, and an estimate of what came since.

use trace::{Fault, FaultClass, Replied, Stop};

/// A server that counts fewer tokens than this part of the estimate (one for twelve bytes) has not counted all of them.
const LEAST_PART: u64 = 4;
/// One that counts more than so many times the estimate (one for each byte) has counted something else: the tokens of a cache
/// twice, or of all requests so far.
const MOST_TIMES: u64 = 3;

/// What is known of the size of requests to one model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// The estimate of the request that is open or was answered last.
    asked: u64,
    /// What a server counted, and what had been estimated for the same request.
    counted: Option<(u64, u64)>,
    /// The smallest size that was refused as too long.
    refused: Option<u64>,
}

impl Size {
    /// A request goes out that is estimated at so many tokens.
    pub fn ask(&mut self, estimate: u64) {
        self.asked = estimate;
    }

    /// Its answer came.
    pub fn reply(&mut self, replied: &Replied) {
        match &replied.stop {
            Stop::Error(Fault { class: FaultClass::ContextFull, .. }) => {
                let size = Some(self.of(self.asked)).filter(|size| *size > 0);
                self.refused = [self.refused, size].into_iter().flatten().min();
            }
            Stop::Error(_) => {}
            Stop::End | Stop::Calls | Stop::Length | Stop::Refused => {
                // Of several attempts only the last was answered.
                let usage = replied.attempts.last().map_or(replied.usage, |last| last.usage);
                let counted = usage.input.clamp(self.asked / LEAST_PART, self.asked.saturating_mul(MOST_TIMES));
                self.counted = (!replied.estimated && self.asked > 0).then_some((counted, self.asked));
            }
        }
    }

    /// The tokens of a request that is estimated at `estimate`. What came since the last count is taken as estimated; where
    /// less is sent than was counted, it has its share of the count.
    pub fn of(&self, estimate: u64) -> u64 {
        match self.counted {
            None => estimate,
            Some((counted, then)) if estimate >= then => counted.saturating_add(estimate - then),
            Some((counted, then)) => {
                u64::try_from((u128::from(counted) * u128::from(estimate)).div_ceil(u128::from(then))).unwrap_or(u64::MAX)
            }
        }
    }

    /// The smallest size that was refused as too long.
    pub fn refused(&self) -> Option<u64> {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{Cost, Timing, Usage};

    fn replied(stop: Stop, input: u64, estimated: bool) -> Replied {
        let usage = Usage { input, ..Usage::default() };
        let timing = Timing { first_token_ms: None, total_ms: 1 };
        let (served, request_id, raw) = (None, None, None);
        let attempts = Vec::new();
        Replied {
            parts: Vec::new(),
            stop,
            usage,
            estimated,
            cost: Cost::Unpriced,
            served,
            request_id,
            timing,
            attempts,
            raw,
            redacted: false,
        }
    }

    #[test]
    fn what_was_counted_is_the_measure_for_more_and_for_less() {
        let mut size = Size::default();
        assert_eq!(size.of(900), 900, "nothing was counted yet");
        size.ask(1_000);
        size.reply(&replied(Stop::End, 700, false));
        assert_eq!([1_000, 1_100, 500].map(|estimate| size.of(estimate)), [700, 800, 350]);
        size.ask(1_100);
        size.reply(&replied(Stop::End, 0, true));
        assert_eq!(size.of(1_100), 1_100, "an estimate counts nothing");
    }

    #[test]
    fn a_count_that_leaves_out_what_was_cached_is_not_believed() {
        let mut size = Size::default();
        size.ask(1_000);
        size.reply(&replied(Stop::Calls, 3, false));
        assert_eq!(size.of(1_000), 250);
    }

    #[test]
    fn a_count_of_something_else_is_not_believed() {
        let mut size = Size::default();
        size.ask(1_000);
        size.reply(&replied(Stop::Calls, 1_000_000_000, false));
        assert_eq!(size.of(1_100), 3_100);
    }

    #[test]
    fn the_smallest_refused_size_is_kept() {
        let full =
            || Stop::Error(Fault { class: FaultClass::ContextFull, status: None, request_id: None, message: String::new() });
        let mut size = Size::default();
        for asked in [1_000, 600, 800] {
            size.ask(asked);
            size.reply(&replied(full(), 0, false));
        }
        assert_eq!(size.refused(), Some(600));
    }
}
