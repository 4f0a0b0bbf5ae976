//! How far letters of a class go, remembered: many prefixes may stand in one run of them, and each byte is looked at once.

use std::ops::Range;

/// What may follow a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letters {
    /// `A-Z 0-9`
    Upper,
    /// `a-z A-Z 0-9`
    Alnum,
    /// Those of base64 in URLs: `a-z A-Z 0-9 - _`
    Url,
    /// The same, and dots between them.
    Dotted,
}

impl Letters {
    fn hold(self, byte: u8) -> bool {
        match self {
            Letters::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Letters::Alnum => byte.is_ascii_alphanumeric(),
            Letters::Url => byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_',
            Letters::Dotted => Letters::Url.hold(byte) || byte == b'.',
        }
    }
}

/// The last run of each class in a text that is gone through from front to back.
#[derive(Default)]
pub(super) struct Runs {
    last: [Run; 4],
    /// Bytes that were looked at.
    #[cfg(test)]
    pub looked: usize,
}

/// Letters of one class, one behind the other.
#[derive(Default)]
pub(super) struct Run {
    place: Range<usize>,
    digit: Option<usize>,
    dots: Vec<Range<usize>>,
}

impl Runs {
    /// The run of `letters` in which `at` lies.
    pub fn at(&mut self, letters: Letters, text: &[u8], at: usize) -> &Run {
        let run = &mut self.last[letters as usize];
        if at < run.place.start || at > run.place.end {
            *run = Run { place: at..at, ..Run::default() };
        }
        let more = text[run.place.end..].iter().take_while(|byte| letters.hold(**byte));
        for byte in more {
            run.take(*byte);
            #[cfg(test)]
            {
                self.looked += 1;
            }
        }
        run
    }

    /// The text's first `gone` bytes are dropped.
    pub fn forget(&mut self, gone: usize) {
        for run in &mut self.last {
            let moved = |place: &Range<usize>| place.start.saturating_sub(gone)..place.end.saturating_sub(gone);
            if run.place.end < gone {
                *run = Run::default();
                continue;
            }
            run.place = moved(&run.place);
            run.digit = run.digit.and_then(|digit| digit.checked_sub(gone));
            run.dots.retain(|dots| dots.end > gone);
            run.dots.iter_mut().for_each(|dots| *dots = moved(dots));
        }
    }
}

impl Run {
    fn take(&mut self, byte: u8) {
        let at = self.place.end;
        self.place.end += 1;
        match (byte, self.dots.last_mut()) {
            (b'0'..=b'9', _) => self.digit = Some(at),
            (b'.', Some(dots)) if dots.end == at => dots.end += 1,
            (b'.', _) => self.dots.push(at..at + 1),
            _ => {}
        }
    }

    /// Where it ends.
    pub fn end(&self) -> usize {
        self.place.end
    }

    /// Whether it has a digit at `start` or behind.
    pub fn has_digit(&self, start: usize) -> bool {
        self.digit.is_some_and(|digit| digit >= start)
    }

    /// How many dots stand right before `end`, none of them before `start`.
    pub fn dots(&self, start: usize, end: usize) -> usize {
        let before = self.dots.partition_point(|dots| dots.start < end);
        match self.dots[..before].last() {
            Some(dots) if dots.end >= end => end - dots.start.max(start).min(end),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_from_any_place_in_it_and_after_its_front_is_dropped() {
        let text = b"  a1.b..c;d..";
        let mut runs = Runs::default();
        let run = runs.at(Letters::Dotted, text, 2);
        assert_eq!((run.end(), run.has_digit(3), run.has_digit(4)), (9, true, false));
        assert_eq!((run.dots(2, 8), run.dots(7, 8), run.dots(2, 7), run.dots(2, 9), run.dots(2, 5)), (2, 1, 1, 0, 1));
        assert_eq!(runs.at(Letters::Upper, text, 3).end(), 4);
        runs.forget(4);
        let run = runs.at(Letters::Dotted, &text[4..], 1);
        assert_eq!((run.end(), run.has_digit(0), run.dots(0, 4), run.dots(0, 1)), (5, false, 2, 1));
        assert_eq!(runs.looked, 7 + 1);
        let run = runs.at(Letters::Dotted, &text[4..], 6);
        assert_eq!((run.end(), run.dots(6, 9)), (9, 2));
    }
}
