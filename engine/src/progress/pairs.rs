//! Which calls came to what: whether a call brought anything new, to the run and to what the agent does just now.

use super::{OpenCall, Progress};
use crate::harness::fill;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use trace::{Digest, Observed, Part};

/// The most characters of a call that are shown to a person or an agent.
const SHOWN: usize = 80;

/// The pairs of a call (tool and arguments) and its result (status, content, whole output) that a run has seen.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    run: BTreeSet<Digest>,
    /// Those since [`Pairs::begin`], and how often each came.
    turn: BTreeMap<Digest, u32>,
    is_new: bool,
    streak: Streak,
}

/// Calls in a row that brought nothing new in this turn of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streak {
    /// How many.
    pub calls: u32,
    /// The one among them that came to the same result most often in this turn: its tool and arguments, cut to be shown.
    pub call: String,
    /// How often it did.
    pub times: u32,
    /// How many they were when the agent was told, if it was.
    pub told: Option<u32>,
}

impl Pairs {
    /// How many different pairs the run has seen: as long as it grows, the run learns or does something.
    pub fn different(&self) -> usize {
        self.run.len()
    }

    /// Whether the last pair was the first of its kind in the run.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The calls in a row, up to the last, that brought nothing new in this turn of the user.
    pub fn streak(&self) -> &Streak {
        &self.streak
    }

    /// From here on a call is compared only with those that follow. For a turn of the user, and where the agent is no longer
    /// shown what it saw, so that it may ask for it again.
    pub(super) fn begin(&mut self) {
        self.turn.clear();
        self.streak = Streak::default();
    }

    /// One more call and what came of it.
    pub(super) fn add(&mut self, call: &OpenCall, observed: &Observed) {
        let pair = pair(call, observed);
        self.is_new = self.run.insert(pair);
        let times = self.turn.entry(pair).or_default();
        *times += 1;
        if *times == 1 {
            self.streak = Streak::default();
            return;
        }
        self.streak.calls += 1;
        if *times >= self.streak.times {
            self.streak.times = *times;
            self.streak.call = shown(call);
        }
    }
}

impl Progress {
    /// Warns an agent, once its calls are closed, that they go in a circle: once in a streak.
    pub(super) fn warn_of_circle(&mut self) {
        let loops = self.harness.settings().loops;
        let streak = &mut self.pairs.streak;
        if streak.told.is_some() || streak.calls < loops.warn.get() {
            return;
        }
        streak.told = Some(streak.calls);
        let left = loops.stop.get().saturating_sub(streak.calls).max(1);
        let numbers = [streak.calls, streak.times, left].map(|number| number.to_string());
        let words = [("calls", &*numbers[0]), ("call", &streak.call), ("times", &numbers[1]), ("left", &numbers[2])];
        let note = fill(&self.harness.notes().circle, &words);
        self.conversation.tell(&[Part::text(note)]);
    }

    /// What the agent goes on repeating though it was warned, once that is enough to end the turn.
    pub fn circle(&self) -> Option<&Streak> {
        let streak = self.pairs.streak();
        let was_told = streak.told.is_some_and(|told| streak.calls > told);
        (was_told && streak.calls >= self.harness.settings().loops.stop.get()).then_some(streak)
    }
}

/// Names a call and what the agent is told of it, without what varies from one time to the next and means nothing.
fn pair(call: &OpenCall, observed: &Observed) -> Digest {
    let raw = unnumbered(&call.raw, "\"output:");
    let arguments = serde_json::from_str::<serde_json::Value>(&raw).ok();
    let arguments = arguments.map_or(raw, |arguments| arguments.to_string().into());
    let mut text = format!("{}\0{arguments}\0{}\0{:?}", call.tool, observed.status.word(), observed.blob);
    for part in &observed.content {
        text.push('\0');
        match part {
            Part::Text { text: words } => text.extend(words.split_inclusive('\n').map(unvaried)),
            Part::Image { blob, .. } | Part::File { blob, .. } => text.push_str(&blob.to_string()),
        }
    }
    Digest::of(text.as_bytes())
}

/// A line of an observation. Those in brackets are our own: where the whole output is, and how long a process runs.
fn unvaried(line: &str) -> Cow<'_, str> {
    if !line.starts_with('[') {
        return line.into();
    }
    match line.rsplit_once(" (") {
        Some((running, _)) if line.starts_with("[still running: ") => running.into(),
        _ => unnumbered(line, "output:"),
    }
}

/// `text` without the number that follows each `name`, as it does where a kept output is named.
fn unnumbered<'t>(text: &'t str, name: &str) -> Cow<'t, str> {
    let mut pieces = text.split(name);
    let first = pieces.next().unwrap_or_default();
    if first.len() == text.len() {
        return text.into();
    }
    let rest = pieces.flat_map(|piece| [name, piece.trim_start_matches(|c: char| c.is_ascii_digit())]);
    Cow::Owned(first.to_owned() + &rest.collect::<String>())
}

/// The call in one line.
fn shown(call: &OpenCall) -> String {
    let line = format!("{} {}", call.tool, call.raw.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
