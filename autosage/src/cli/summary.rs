//! A run in one object: what `runs` and `show` say of it.

use engine::Ledger;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use trace::{Condition, Digest, Event, Finished, NanoUsd, Reading, Started, Timestamp, Verified, What, text_of};

/// What state a run is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process works on it.
    Running,
    /// A process holds it and waits for a person.
    Waiting,
    /// Its last turn ended, and nobody holds it.
    Ended,
    /// The process that worked on it is gone.
    Interrupted,
    /// A line in its middle is damaged: it can be read up to there.
    Damaged,
}

impl State {
    /// One word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Waiting => "waiting",
            State::Ended => "ended",
            State::Interrupted => "interrupted",
            State::Damaged => "damaged",
        }
    }
}

/// A run in one object.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Its name.
    pub run: String,
    /// Its state.
    pub state: State,
    /// How its last turn ended, if one did.
    pub outcome: Option<&'static str>,
    /// What was asked first.
    pub task: String,
    /// Requests to think.
    pub turns: u64,
    /// Money; `null` where any request was unpriced.
    pub cost_nano_usd: Option<NanoUsd>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// Where it works.
    pub workspace: Option<PathBuf>,
}

/// The same, and more, for one run.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    #[serde(flatten)]
    summary: Summary,
    model: Option<String>,
    /// The paths of its agents.
    agents: Vec<String>,
    usage: trace::Usage,
    /// What the checks said last.
    checks: Option<Verified>,
    answer: Option<String>,
    active_ms: u64,
    events: u64,
    /// The seal of the last event.
    digest: Option<Digest>,
}

/// A run that was read.
pub struct Read {
    /// Its events.
    pub events: Vec<Event>,
    /// Its folder.
    pub folder: PathBuf,
    ledger: Ledger,
    state: State,
    digest: Option<Digest>,
}

impl Read {
    /// Reads the run in `folder`.
    pub fn new(folder: &Path) -> io::Result<Read> {
        let owned = trace::owner(folder)?.is_some();
        let (events, reading) = Reading::all(folder)?;
        let mut ledger = Ledger::default();
        events.iter().for_each(|event| ledger.fold(event));
        let has_ended = matches!(events.last().map(|event| &event.what), Some(What::Finished(_)));
        let state = match (reading.condition(), owned, has_ended) {
            (Condition::Damaged { .. }, ..) => State::Damaged,
            (_, true, false) => State::Running,
            (_, true, true) => State::Waiting,
            (_, false, true) => State::Ended,
            (_, false, false) => State::Interrupted,
        };
        Ok(Read { events, folder: folder.to_owned(), ledger, state, digest: reading.digest() })
    }

    /// Its first event.
    pub fn started(&self) -> Option<&Started> {
        match self.events.first().map(|event| &event.what) {
            Some(What::Started(started)) => Some(started),
            _ => None,
        }
    }

    /// The end of its last turn.
    pub fn finished(&self) -> Option<&Finished> {
        self.events.iter().rev().find_map(|event| if let What::Finished(finished) = &event.what { Some(finished) } else { None })
    }

    /// The model that was asked last.
    fn model(&self) -> Option<String> {
        let asked = self.events.iter().rev().find_map(|event| match &event.what {
            What::Asked(asked) => Some(asked.model.clone()),
            _ => None,
        });
        asked.or_else(|| self.started().map(|started| started.model.id.clone()))
    }

    /// Whether its last turn has ended.
    fn rests(&self) -> bool {
        matches!(self.state, State::Ended | State::Waiting | State::Damaged)
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The run in one object.
    pub fn summary(&self) -> Summary {
        let started = self.started();
        Summary {
            run: self.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            state: self.state,
            // A turn that came later and has not ended has no outcome yet.
            outcome: self.finished().filter(|_| self.rests()).map(|finished| finished.outcome.word()),
            task: started.map(|started| text_of(&started.task.parts)).unwrap_or_default(),
            turns: self.ledger.turns,
            cost_nano_usd: self.ledger.cost(),
            started: self.events.first().map(|event| event.at),
            workspace: started.map(|started| started.task.workspace.clone()),
        }
    }

    /// The run in one object, with more of it.
    pub fn details(&self) -> Details {
        let mut agents: Vec<String> = self.events.iter().map(|event| event.agent.to_string()).collect();
        agents.sort();
        agents.dedup();
        let checks = self
            .events
            .iter()
            .rev()
            .find_map(|event| if let What::Verified(verified) = &event.what { Some(verified.clone()) } else { None });
        Details {
            summary: self.summary(),
            model: self.model(),
            agents,
            usage: self.ledger.usage,
            checks,
            answer: self.finished().filter(|_| self.rests()).and_then(|finished| finished.answer.clone()),
            active_ms: self.ledger.active_ms,
            events: self.events.len() as u64,
            digest: self.digest,
        }
    }
}
