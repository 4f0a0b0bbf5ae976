//! A conversation that was recorded, played again: the model's words from the file, everything else for real.
//!
//! The file is JSON lines: first `{"autosage_recording": 1, "spec": …}`, then in the order of the run `{"replied": …}` for
//! each reply and `{"observed": {"exit": …}}` for each call that was served. A [`Recorder`](crate::Recorder) writes it.

use crate::wire::Wire;
use crate::{Ask, Heard, Model};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use trace::{Attempt, Fault, FaultClass, ModelSpec, Replied, Said, Stop, Timing};

/// The version of the format.
pub(crate) const VERSION: u32 = 1;

/// The first line of a recording.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub autosage_recording: u32,
    pub spec: ModelSpec,
}

/// Each further line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Replied(Box<Replied>),
    Observed(Seen),
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
    #[error("the recording has version {0}, and this program reads version {VERSION}: update autosage")]
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
/// a call of a tool that the run does not have, or a command with another exit code.
#[derive(Debug)]
pub struct Recorded {
    spec: ModelSpec,
    turns: Vec<(Replied, Vec<Seen>)>,
    pace: Pace,
    place: Mutex<Place>,
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
}

/// Reads the recording at `path`.
pub fn load(path: &Path) -> Result<Recorded, RecordingError> {
    let text = std::fs::read_to_string(path).map_err(|error| RecordingError::Io { path: path.display().to_string(), error })?;
    let mut recorded = parse(&text)?;
    recorded.spec.id = format!("recorded/{}", path.display());
    Ok(recorded)
}

/// Reads the recording that is `text`. The model's id becomes `recorded/` and the recorded model's name.
pub fn parse(text: &str) -> Result<Recorded, RecordingError> {
    let at = |line: usize| move |error| RecordingError::Format { line: line + 1, error };
    let mut lines = text.lines().enumerate();
    let (_, head) = lines.next().ok_or(RecordingError::Empty)?;
    let head: Head = serde_json::from_str(head).map_err(at(0))?;
    if head.autosage_recording != VERSION {
        return Err(RecordingError::Version(head.autosage_recording));
    }
    let mut turns: Vec<(Replied, Vec<Seen>)> = Vec::new();
    for (number, line) in lines {
        match serde_json::from_str(line).map_err(at(number))? {
            Line::Replied(replied) => turns.push((*replied, Vec::new())),
            Line::Observed(seen) => turns.last_mut().into_iter().for_each(|(_, all)| all.push(seen)),
        }
    }
    let spec = ModelSpec { id: format!("recorded/{}", head.spec.name), base_url: None, ..head.spec };
    Ok(Recorded { spec, turns, pace: Pace::AtOnce, place: Mutex::default() })
}

impl Recorded {
    /// The same, but the next answer is the reply at `position`: the number of replies that a resumed run has.
    pub fn from(self, position: usize) -> Recorded {
        Recorded { place: Mutex::new(Place { next: position, ..Place::default() }), ..self }
    }

    /// The same, played at `pace`.
    pub fn paced(self, pace: Pace) -> Recorded {
        Recorded { pace, ..self }
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
        let recorded = place.next.checked_sub(1).and_then(|last| self.turns.get(last)?.1.get(seen)?.exit);
        if let (Some(then), Some(now)) = (recorded, exit)
            && then != now
        {
            let call = format!("call {} of reply {}", seen + 1, place.next);
            place.left.get_or_insert(format!("{call} ended with exit code {now}, in the recording with {then}"));
        }
    }

    /// The next reply, or how the run has left the recording.
    fn next(&self, body: &str) -> Result<&Replied, String> {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let position = place.next;
        if let Some(left) = &place.left {
            return Err(left.clone());
        }
        let (replied, _) =
            self.turns.get(position).ok_or_else(|| format!("the recording ends after {} replies", self.turns.len()))?;
        let tools = Wire::of(&self.spec).tool_names(body);
        let unknown = replied.parts.iter().find_map(|part| match part {
            Said::Call { name, .. } if !tools.contains(name) => Some(name),
            _ => None,
        });
        match unknown {
            Some(name) => {
                Err(format!("reply {} of the recording calls `{name}`, a tool that this run does not have", position + 1))
            }
            None => Ok(replied),
        }
    }

    async fn play(&self, ask: Ask<'_>) -> Replied {
        let replied = match self.next(ask.body) {
            Ok(replied) => replied.clone(),
            Err(why) => return left(&self.spec, why),
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
        Box::pin(self.play(ask))
    }
}

/// What is heard of a part, word by word.
fn beats(part: &Said) -> Vec<Heard<'_>> {
    match part {
        Said::Text { text } => text.split_inclusive(' ').map(Heard::Text).collect(),
        Said::Reasoning { text } => text.split_inclusive(' ').map(Heard::Reasoning).collect(),
        Said::Call { name, .. } => vec![Heard::Call { name }],
        Said::Cut { .. } | Said::Opaque { .. } => Vec::new(),
    }
}

/// The end of a run that has left the recording.
fn left(spec: &ModelSpec, why: String) -> Replied {
    let message = format!("{why}: the run and `{}` have parted here. Record anew (--record FILE), or use a live model.", spec.id);
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
