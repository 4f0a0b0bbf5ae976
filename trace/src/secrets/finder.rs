//! What is looked for, as one automaton: values that are known, in every form in which text can hold them, and the prefixes
//! of shapes.

use super::runs::Runs;
use super::shapes::{Judged, SHAPES, Shape, Text};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// From so many bytes of patterns on the fast automaton would take tens of megabytes.
const LARGE: usize = 64 << 10;

/// A known value and what may be done with it.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Known {
    /// The word for it in a placeholder.
    pub kind: String,
    pub value: String,
    pub whose: Whose,
}

/// Whose a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) enum Whose {
    /// It was met in the run, or granted to it: its placeholder stands for it.
    Runs,
    /// It is a key of the engine's own: its placeholder stands for nothing that an agent can have.
    Engines,
}

/// What one pattern of the automaton is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// A form of the known value at this place.
    Known(usize),
    /// The prefix of a shape.
    Prefix(&'static Shape),
}

/// How much will be searched: an automaton that is made in a moment, or one that searches several times as fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// One operation.
    Short,
    /// A session.
    Long,
}

/// The automaton and what its patterns mean.
pub(super) struct Finder {
    /// Made at its first use: what only writes needs none.
    automaton: OnceLock<AhoCorasick>,
    life: Life,
    patterns: Vec<(Vec<u8>, Pattern)>,
    pub known: Vec<Known>,
    /// Bytes of the longest pattern.
    pub longest: usize,
    /// The patterns that begin with each byte.
    beginning: Vec<Vec<usize>>,
}

impl Finder {
    pub fn new(known: Vec<Known>, life: Life) -> Finder {
        let mut patterns: Vec<(Vec<u8>, Pattern)> = Vec::new();
        for (place, one) in known.iter().enumerate() {
            patterns.extend(forms(&one.value).into_iter().map(|form| (form.into_bytes(), Pattern::Known(place))));
        }
        patterns.extend(SHAPES.iter().map(|shape| (shape.prefix.as_bytes().to_vec(), Pattern::Prefix(shape))));
        let longest = patterns.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or_default();
        let mut beginning = vec![Vec::new(); 256];
        for (place, (bytes, _)) in patterns.iter().enumerate() {
            beginning[usize::from(bytes[0])].push(place);
        }
        Finder { automaton: OnceLock::new(), life, patterns, known, longest, beginning }
    }

    /// The same with other known values.
    pub fn with(&self, known: Vec<Known>) -> Finder {
        Finder::new(known, self.life)
    }

    fn automaton(&self) -> &AhoCorasick {
        self.automaton.get_or_init(|| {
            let bytes: usize = self.patterns.iter().map(|(bytes, _)| bytes.len()).sum();
            let kind = match self.life {
                Life::Long if bytes < LARGE => AhoCorasickKind::DFA,
                Life::Long | Life::Short => AhoCorasickKind::ContiguousNFA,
            };
            let builder = AhoCorasick::builder().match_kind(MatchKind::Standard).kind(Some(kind)).clone();
            let built = builder.build(self.patterns.iter().map(|(bytes, _)| bytes));
            built.expect("some hundred short patterns are fewer than an automaton can hold")
        })
    }

    /// Every place where a pattern stands, those that overlap included: start, end, which.
    pub fn places<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, usize, Pattern)> + 'a {
        let found = self.automaton().find_overlapping_iter(text);
        found.map(|found| (found.start(), found.end(), self.patterns[found.pattern().as_usize()].1))
    }

    /// Whether the text may hold a secret; never no where it does.
    pub fn may_hold(&self, text: &[u8]) -> bool {
        let mut runs = Runs::default();
        self.places(text).any(|(start, _, pattern)| match pattern {
            Pattern::Known(_) => true,
            Pattern::Prefix(shape) => shape.judge(text, start, Text::Ended, &mut runs) != Judged::Nothing,
        })
    }

    /// Where the first pattern begins of which the text holds only the beginning, from `from` on; the text's length if none
    /// does.
    pub fn begun(&self, text: &[u8], from: usize) -> usize {
        let first = from.max((text.len() + 1).saturating_sub(self.longest));
        let is_begun = |at: &usize| {
            let rest = &text[*at..];
            self.beginning[usize::from(rest[0])].iter().any(|place| {
                let pattern = &self.patterns[*place].0;
                pattern.len() > rest.len() && pattern.starts_with(rest)
            })
        };
        (first..text.len()).find(is_begun).unwrap_or(text.len())
    }
}

/// The forms in which text can hold `value`: as it is, escaped for JSON up to three times over (arguments of a call are JSON
/// in a JSON line, and may hold JSON), with `/` escaped as some do, and percent-encoded with digits of either case.
fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.to_owned()]);
    let mut escaped = vec![value.to_owned()];
    for _ in 0..3 {
        escaped = escaped.iter().flat_map(|text| [json_escaped(text), json_escaped(text).replace('/', "\\/")]).collect();
        escaped.sort();
        escaped.dedup();
        forms.extend(escaped.iter().cloned());
    }
    forms.insert(percent_encoded(value, |byte| format!("%{byte:02X}")));
    forms.insert(percent_encoded(value, |byte| format!("%{byte:02x}")));
    forms
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// All but the unreserved characters of RFC 3986 as `encoded` writes them.
fn percent_encoded(text: &str, encoded: impl Fn(u8) -> String) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => encoded(byte),
    };
    text.bytes().map(one).collect()
}
