//! A conversation that was recorded, played again: the model's words from the file, everything else for real.
//!
//! The file is JSON lines: first `{"autosage_recording": 2, "strict": true, "spec": …}`, then in the order of the run
//! `{"asked": {"prompt": …, "bytes": …}}` and `{"replied": …}` for each reply, and `{"observed": {"exit": …}}` for each call
//! that was served. Where there were models to fall back on, the first line holds their specs as `fallback`, and what one of
//! them was asked says which: `"model": 1` is the first of them. A [`Recorder`](crate::Recorder) writes it. `prompt` is the
//! digest of the request's body with what differs between runs and means nothing taken out ([`Masks`]). A strict recording
//! is played only to the same prompts: whoever plays it to others (another harness) writes `"strict": false`. Version 1 has
//! neither `strict` nor `asked`.

use crate::wire::Wire;
use crate::{Ask, Heard, Masks, Model};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use trace::{Attempt, Digest, Fault, FaultClass, ModelSpec, Replied, Said, Stop, Timing};

/// The version of the format.
pub(crate) const VERSION: u32 = 2;

/// The first line of a recording.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub autosage_recording: u32,
    #[serde(default)]
    pub strict: bool,
    pub spec: ModelSpec,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<ModelSpec>,
}

/// Each further line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Asked(Prompt),
    Replied(Box<Replied>),
    Observed(Seen),
}

/// What a reply answers: the digest of the request, masked, and its length; and which of the models was asked: the first
/// is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prompt {
    pub prompt: Digest,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "is_first")]
    pub model: usize,
}

fn is_first(model: &usize) -> bool {
    *model == 0
}

impl Prompt {
    pub(crate) fn of(masked: &str, model: usize) -> Prompt {
        Prompt { prompt: Digest::of(masked.as_bytes()), bytes: masked.len() as u64, model }
    }
}

/// What was seen of a served call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The exit code, if the tool has such a thing.
    pub exit: Option<i32>,
}

/// Why a recording cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("the recording {path} cannot be read: {error}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is no recording.
    #[error("line {line} of the recording is not what it should be: {error}")]
    Format {
        /// Counted from 1.
        line: usize,
        /// Why.
        error: serde_json::Error,
    },
    /// It was written by a later version.
    #[error("the recording has version {0}, and this program reads versions up to {VERSION}: update autosage")]
    Version(u32),
    /// It has no first line.
    #[error("the recording is empty")]
    Empty,
}

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as it goes.
    AtOnce,
    /// As it was, but no reply slower than this.
    AtMost(Duration),
}

/// A model that repeats what a recorded one said, by position. It ends with a fault where the run has left the recording:
/// a call of a tool that the run does not have, a command with another exit code, or, if it is strict, another prompt.
#[derive(Debug)]
pub struct Recorded {
    spec: ModelSpec,
    fallback: Vec<ModelSpec>,
    strict: bool,
    turns: Vec<Turn>,
    pace: Pace,
    place: Mutex<Place>,
}

/// A recorded reply, what it answers (if that was written down), and what was seen of its calls.
#[derive(Debug)]
struct Turn {
    asked: Option<Prompt>,
    replied: Replied,
    seen: Vec<Seen>,
}

/// Where the run is in the recording.
#[derive(Debug, Default)]
struct Place {
    /// The next reply.
    next: usize,
    /// How many calls of the last reply were observed; `None` before the first reply of this process.
    seen: Option<usize>,
    /// How the run left the recording.
    left: Option<String>,
    /// What differs between runs.
    masks: Masks,
    /// The last prompt that was the recorded one, masked.
    same: String,
}

/// Reads the recording at `path`.
pub fn load(path: &Path) -> Result<Recorded, RecordingError> {
    let text = std::fs::read_to_string(path).map_err(|error| RecordingError::Io { path: path.display().to_string(), error })?;
    Ok(parse(&text)?.called(&format!("recorded/{}", path.display())))
}

/// Reads the recording that is `text`. The model's id becomes `recorded/` and the recorded model's name; those of the models
/// to fall back on are the same with `#1`, `#2` … behind it.
pub fn parse(text: &str) -> Result<Recorded, RecordingError> {
    let at = |line: usize| move |error| RecordingError::Format { line: line + 1, error };
    let mut lines = text.lines().enumerate();
    let (_, head) = lines.next().ok_or(RecordingError::Empty)?;
    let head: Head = serde_json::from_str(head).map_err(at(0))?;
    if !(1..=VERSION).contains(&head.autosage_recording) {
        return Err(RecordingError::Version(head.autosage_recording));
    }
    let (mut turns, mut asked): (Vec<Turn>, _) = (Vec::new(), None);
    for (number, line) in lines {
        match serde_json::from_str(line).map_err(at(number))? {
            Line::Asked(prompt) => asked = Some(prompt),
            Line::Replied(replied) => turns.push(Turn { asked: asked.take(), replied: *replied, seen: Vec::new() }),
            Line::Observed(seen) => turns.last_mut().into_iter().for_each(|turn| turn.seen.push(seen)),
        }
    }
    let id = format!("recorded/{}", head.spec.name);
    let Head { spec, fallback, strict, .. } = head;
    let recorded = Recorded { spec, fallback, strict, turns, pace: Pace::AtOnce, place: Mutex::default() };
    Ok(recorded.called(&id))
}

impl Recorded {
    /// The same, but its models are called by `id`. Nobody is asked at an address.
    fn called(mut self, id: &str) -> Recorded {
        let rename = |spec: &mut ModelSpec, id: String| (spec.id, spec.base_url) = (id, None);
        rename(&mut self.spec, id.to_owned());
        self.fallback.iter_mut().enumerate().for_each(|(at, spec)| rename(spec, format!("{id}#{}", at + 1)));
        self
    }

    /// The models to fall back on that were recorded with the first one. They share its place in the recording.
    pub fn fallback(self: &Arc<Recorded>) -> Vec<Arc<dyn Model>> {
        let of = |at: usize| Arc::new(Further { recorded: self.clone(), which: at + 1 }) as Arc<dyn Model>;
        (0..self.fallback.len()).map(of).collect()
    }

    /// The spec of the model `which`, the first of which is 0.
    fn spec_of(&self, which: usize) -> &ModelSpec {
        which.checked_sub(1).and_then(|at| self.fallback.get(at)).unwrap_or(&self.spec)
    }

    /// The same, but the next answer is the reply at `position`: the number of replies that a resumed run has.
    pub fn from(self, position: usize) -> Recorded {
        Recorded { place: Mutex::new(Place { next: position, ..Place::default() }), ..self }
    }

    /// The same, played at `pace`.
    pub fn paced(self, pace: Pace) -> Recorded {
        Recorded { pace, ..self }
    }

    /// What differs between runs and does not make a prompt another one; to be said before the first request.
    pub fn mask(&self, masks: Masks) {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).masks = masks;
    }

    /// How many replies it holds.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// To be told of each observation of this run in order, with the exit code if there is one. Where both the recording
    /// and the run have a code and they differ, the next request ends with a message that says so.
    pub fn observed(&self, exit: Option<i32>) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = place.seen else { return };
        place.seen = Some(seen + 1);
        let recorded = place.next.checked_sub(1).and_then(|last| self.turns.get(last)?.seen.get(seen)?.exit);
        if let (Some(then), Some(now)) = (recorded, exit)
            && then != now
        {
            let call = format!("call {} of reply {}", seen + 1, place.next);
            place.left.get_or_insert(format!("{call} ended with exit code {now}, in the recording with {then}"));
        }
    }

    /// The next reply, or how the run has left the recording.
    fn next(&self, body: &str, which: usize) -> Result<&Replied, Left> {
        let wire = Wire::of(self.spec_of(which));
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let position = place.next;
        if let Some(left) = &place.left {
            return Err(Left::By(left.clone()));
        }
        let ended = || Left::By(format!("the recording ends after {} replies", self.turns.len()));
        let Turn { asked, replied, .. } = self.turns.get(position).ok_or_else(ended)?;
        if let Some(asked) = asked.filter(|asked| asked.model != which) {
            let (number, then, now) = (position + 1, &self.spec_of(asked.model).name, &self.spec_of(which).name);
            return Err(Left::By(format!("reply {number} of the recording is `{then}`'s, and the run asks `{now}`")));
        }
        if let Some(asked) = asked.filter(|_| self.strict) {
            let masked = place.masks.hide(&wire.without_key(body));
            if Prompt::of(&masked, which) != asked {
                return Err(Left::Prompt(differs(position, &place.same, &masked, asked.bytes)));
            }
            place.same = masked;
        }
        let tools = wire.tool_names(body);
        let unknown = replied.parts.iter().find_map(|part| match part {
            Said::Call { name, .. } if !tools.contains(name) => Some(name),
            _ => None,
        });
        match unknown {
            Some(name) => {
                let number = position + 1;
                Err(Left::By(format!("reply {number} of the recording calls `{name}`, a tool that this run does not have")))
            }
            None => Ok(replied),
        }
    }

    async fn play(&self, ask: Ask<'_>, which: usize) -> Replied {
        let replied = match self.next(ask.body, which) {
            Ok(replied) => replied.clone(),
            Err(why) => return left(self.spec_of(which), why),
        };
        let pause = match self.pace {
            Pace::AtOnce => Duration::ZERO,
            Pace::AtMost(most) => Duration::from_millis(replied.timing.total_ms).min(most),
        };
        let beats: Vec<Heard<'_>> = replied.parts.iter().flat_map(beats).collect();
        for beat in &beats {
            if !pause.is_zero() {
                ask.clock.pause(pause / u32::try_from(beats.len()).unwrap_or(u32::MAX)).await;
            }
            (ask.heard)(*beat);
        }
        // Only now: a reply that is broken off has not been said, and comes again.
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.next += 1;
        place.seen = Some(0);
        replied
    }
}

impl Model for Recorded {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(self.play(ask, 0))
    }
}

/// A recorded model that was fallen back on.
struct Further {
    recorded: Arc<Recorded>,
    which: usize,
}

impl Model for Further {
    fn spec(&self) -> &ModelSpec {
        self.recorded.spec_of(self.which)
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(self.recorded.play(ask, self.which))
    }
}

/// What is heard of a part, word by word.
fn beats(part: &Said) -> Vec<Heard<'_>> {
    match part {
        Said::Text { text } => text.split_inclusive(' ').map(Heard::Text).collect(),
        Said::Reasoning { text } => text.split_inclusive(' ').map(Heard::Reasoning).collect(),
        Said::Call { name, arguments, .. } => {
            vec![Heard::Call { name }, Heard::Arguments { bytes: arguments.len() }]
        }
        Said::Cut { .. } | Said::Opaque { .. } => Vec::new(),
    }
}

/// How a run has left the recording.
enum Left {
    /// By what it did.
    By(String),
    /// By what it asked.
    Prompt(String),
}

/// Where a prompt differs from the recorded one, as far as digests tell: behind `same`, the last that was the same.
fn differs(position: usize, same: &str, masked: &str, recorded: u64) -> String {
    let at = same.bytes().zip(masked.bytes()).take_while(|(a, b)| a == b).count();
    let at = (0..=at).rev().find(|at| masked.is_char_boundary(*at)).unwrap_or_default();
    let place = match (position, at) {
        (0, _) => "in its instructions, its tools or the task".to_owned(),
        (_, 0) => format!("somewhere up to reply {position}"),
        _ => {
            let begins: String = masked[at..].chars().take(200).collect();
            format!("in what came with and after reply {position}, from byte {at} on: {begins}")
        }
    };
    let (number, bytes) = (position + 1, masked.len());
    format!("the prompt for reply {number} is not the recorded one ({bytes} bytes, {recorded} recorded); it differs {place}")
}

/// The end of a run that has left the recording.
fn left(spec: &ModelSpec, left: Left) -> Replied {
    let (why, besides) = match left {
        Left::By(why) => (why, ""),
        Left::Prompt(why) => (why, " To play it to other prompts all the same, write \"strict\":false into its first line."),
    };
    let message =
        format!("{why}: the run and `{}` have parted here. Record anew (--record FILE), or use a live model.{besides}", spec.id);
    let attempt = Attempt { error: Some(message.clone()), ..Attempt::default() };
    Replied {
        parts: Vec::new(),
        stop: Stop::Error(Fault { class: FaultClass::Rejected, status: None, request_id: None, message }),
        usage: trace::Usage::default(),
        estimated: false,
        cost: spec.price.map_or(trace::Cost::Unpriced, |_| trace::Cost::NanoUsd(trace::NanoUsd::default())),
        served: None,
        request_id: None,
        timing: Timing::default(),
        attempts: vec![attempt],
        raw: None,
        redacted: false,
    }
}
