//! Hides secrets in a text that comes in pieces, cut at any byte.
//!
//! Bytes are let through once it is decided that they belong to no secret: what may be the beginning of one is held, at most
//! the longest known value, the longest token, or a piece of a private key. So the pieces change nothing.

use super::Secrets;
use super::finder::{Finder, Pattern, Whose};
use super::runs::Runs;
use super::shapes::{Judged, LOOK_BACK, PIECE, Shape, Text, judge_more};
use std::fmt;
use std::sync::Arc;

/// What comes out of a [`Stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes as they came.
    Plain(&'a [u8]),
    /// A secret.
    Hidden {
        /// What stands for it.
        placeholder: &'a str,
        /// Line ends within it.
        line_ends: u64,
        /// Its length in bytes.
        bytes: usize,
    },
}

/// A text on its way, from which secrets are taken out.
pub struct Stream {
    secrets: Secrets,
    finder: Arc<Finder>,
    /// What is held, and before it, let through already, what a prefix must see before it.
    held: Vec<u8>,
    /// How much of `held` was let through.
    passed: usize,
    /// How much of `held` was searched.
    searched: usize,
    /// In order of the ends of their prefixes.
    begun: Vec<Begun>,
    runs: Runs,
    /// Found and not passed yet, in order of start.
    found: Vec<Found>,
}

/// The beginning of what may be a secret.
#[derive(Clone, Copy)]
struct Begun {
    start: usize,
    shape: &'static Shape,
    /// Whether a piece of it was found already.
    goes_on: bool,
}

#[derive(Clone, Copy)]
struct Found {
    start: usize,
    end: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Known(usize),
    Shape(&'static Shape),
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({} bytes held)", self.held.len() - self.passed)
    }
}

impl Stream {
    pub(super) fn new(secrets: Secrets, finder: Arc<Finder>) -> Stream {
        let (held, begun, found) = (Vec::new(), Vec::new(), Vec::new());
        Stream { secrets, finder, held, passed: 0, searched: 0, begun, runs: Runs::default(), found }
    }

    /// Takes the next bytes; what is decided goes to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn FnMut(Piece<'_>)) {
        self.held.extend_from_slice(bytes);
        self.work(Text::GoesOn, out);
    }

    /// The text is at its end.
    pub fn finish(mut self, out: &mut dyn FnMut(Piece<'_>)) {
        self.work(Text::Ended, out);
    }

    /// The text was cut off at its end: what may be the beginning of a secret is left out.
    pub fn finish_cut(mut self, out: &mut dyn FnMut(Piece<'_>)) {
        self.work(Text::GoesOn, out);
    }

    fn work(&mut self, end: Text, out: &mut dyn FnMut(Piece<'_>)) {
        self.search();
        self.judge(end);
        let undecided = match end {
            Text::Ended => self.held.len(),
            Text::GoesOn => {
                let shapes = self.begun.iter().map(|begun| begun.start).min().unwrap_or(self.held.len());
                self.finder.begun(&self.held, self.passed).min(shapes)
            }
        };
        self.pass(undecided, out);
        self.forget();
    }

    /// Finds what ends in the bytes that are new.
    fn search(&mut self) {
        let from = self.searched.saturating_sub(self.finder.longest);
        for (start, end, pattern) in self.finder.places(&self.held[from..]) {
            let (start, end) = (start + from, end + from);
            if end <= self.searched {
                continue;
            }
            match pattern {
                Pattern::Known(place) => self.found.push(Found { start, end, what: What::Known(place) }),
                Pattern::Prefix(shape) if shape.may_follow(&self.held[..start]) => {
                    self.begun.push(Begun { start, shape, goes_on: false });
                }
                Pattern::Prefix(_) => {}
            }
        }
        self.searched = self.held.len();
    }

    fn judge(&mut self, end: Text) {
        for mut one in std::mem::take(&mut self.begun) {
            loop {
                let judged = match one.goes_on {
                    true => judge_more(&self.held[one.start..], end),
                    false => one.shape.judge(&self.held, one.start, end, &mut self.runs),
                };
                let found = |bytes: usize| Found { start: one.start, end: one.start + bytes, what: What::Shape(one.shape) };
                match judged {
                    Judged::Secret(bytes) => self.found.push(found(bytes)),
                    Judged::Piece => {
                        self.found.push(found(PIECE));
                        one = Begun { start: one.start + PIECE, goes_on: true, ..one };
                        continue;
                    }
                    Judged::Open => self.begun.push(one),
                    Judged::Nothing => {}
                }
                break;
            }
        }
        sort(&mut self.found);
    }

    /// Lets through all that stands before `undecided`, with a placeholder for each secret. Secrets that overlap are one.
    fn pass(&mut self, undecided: usize, out: &mut dyn FnMut(Piece<'_>)) {
        let mut found = std::mem::take(&mut self.found).into_iter().peekable();
        while let Some(first) = found.next_if(|found| found.start < undecided) {
            let mut all = vec![first];
            let mut end = first.end;
            while let Some(next) = found.next_if(|next| next.start < end) {
                end = end.max(next.end);
                all.push(next);
            }
            self.plain(first.start, out);
            self.found = self.hide_all(all, end, undecided, out);
            if !self.found.is_empty() {
                // What begins later may still make it longer.
                self.found.extend(found);
                return;
            }
        }
        self.found = found.collect();
        self.plain(undecided, out);
    }

    /// A placeholder for each piece of `all`, which overlap up to `end`. Those that are not decided yet come back.
    fn hide_all(&mut self, mut all: Vec<Found>, end: usize, undecided: usize, out: &mut dyn FnMut(Piece<'_>)) -> Vec<Found> {
        while let Some(first) = all.first().copied() {
            let piece = first.start + PIECE;
            let cut = if end > piece { self.character_start(piece) } else { end };
            if cut > undecided {
                return all;
            }
            self.hide(first, cut, &all, out);
            self.passed = cut;
            all.retain_mut(|found| {
                found.start = found.start.max(cut);
                found.end > found.start
            });
            sort(&mut all);
        }
        all
    }

    /// The start of the character at `at`, so that a long secret is not cut within one.
    fn character_start(&self, at: usize) -> usize {
        let is_inside = |at: &usize| self.held.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
        (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(at)).unwrap_or(at)
    }

    fn plain(&mut self, until: usize, out: &mut dyn FnMut(Piece<'_>)) {
        if until > self.passed {
            out(Piece::Plain(&self.held[self.passed..until]));
            self.passed = until;
        }
    }

    /// A placeholder for what begins with `first` and ends at `end`. With a key of the engine's own in it, it is one.
    fn hide(&self, first: Found, end: usize, all: &[Found], out: &mut dyn FnMut(Piece<'_>)) {
        let value = &self.held[first.start..end];
        let kind = match first.what {
            What::Known(place) => self.finder.known[place].kind.as_str(),
            What::Shape(shape) => shape.kind,
        };
        let is_engines = |found: &Found| {
            found.start < end && matches!(found.what, What::Known(place) if self.finder.known[place].whose == Whose::Engines)
        };
        let whose = if all.iter().any(is_engines) { Whose::Engines } else { Whose::Runs };
        let placeholder = self.secrets.placeholder(kind, value, whose);
        let line_ends = value.iter().filter(|byte| **byte == b'\n').count() as u64;
        out(Piece::Hidden { placeholder: &placeholder, line_ends, bytes: value.len() });
    }

    /// Drops what was let through and is not needed to judge what follows.
    fn forget(&mut self) {
        let gone = self.passed.saturating_sub(LOOK_BACK);
        self.held.drain(..gone);
        self.passed -= gone;
        self.searched -= gone;
        self.runs.forget(gone);
        self.begun.iter_mut().for_each(|begun| begun.start -= gone);
        for found in &mut self.found {
            found.start -= gone;
            found.end -= gone;
        }
    }
}

/// Of two that begin at one place the one that says more comes first and names it: a known value, the longer prefix.
fn sort(found: &mut [Found]) {
    let rank = |found: &Found| match found.what {
        What::Known(_) => usize::MAX,
        What::Shape(shape) => shape.prefix.len(),
    };
    found.sort_by_key(|found| (found.start, std::cmp::Reverse(rank(found))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_looked_at_once_for_each_class_however_many_prefixes_stand_before_it() {
        for text in ["ghs_", "ya29.-", "glpat-", "xoxb-", "ghs_ghs_ghs_........", "github_pat_ghp_"].map(|one| one.repeat(5000)) {
            for piece in [text.len(), 100] {
                let secrets = Secrets::of_nothing();
                let (mut stream, mut shown) = (secrets.stream(), Vec::new());
                let mut out = |piece: Piece<'_>| shown.extend_from_slice(piece.shown());
                text.as_bytes().chunks(piece).for_each(|bytes| stream.push(bytes, &mut out));
                assert!(stream.runs.looked > text.len() / 4, "{}", stream.runs.looked);
                assert!(stream.runs.looked <= 4 * text.len(), "{} of {}", stream.runs.looked, text.len());
                stream.finish(&mut out);
                assert_eq!(shown, secrets.hide(&text).as_bytes());
            }
        }
    }
}
