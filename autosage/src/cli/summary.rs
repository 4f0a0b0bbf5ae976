//! A run in one object: what `runs` and `show` say of it.

use super::story::answer_line;
use engine::{Ledger, Questions};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trace::{
    Condition, Digest, Event, Extent, Finished, Glance, Grant, NanoUsd, Reading, Seq, Started, Timestamp, Verified, What, text_of,
};

/// What state a run is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process works on it.
    Running,
    /// A process holds it and waits for a person.
    Waiting,
    /// A process holds it, and a call waits for an answer.
    Asking,
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
            State::Asking => "asking",
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
    /// Requests to think; `null` where a list does not read so far back.
    pub turns: Option<u64>,
    /// Money; `null` where any request was unpriced.
    pub cost_nano_usd: Option<NanoUsd>,
    /// Bytes of everything in its folder.
    pub bytes: u64,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When its last event was written.
    pub last: Option<Timestamp>,
    /// Where it works.
    pub workspace: Option<PathBuf>,
    /// The question that waits for an answer, whether or not a process holds the run.
    pub question: Option<Open>,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Open {
    /// The event that asks.
    pub asked: Seq,
    /// What is wanted.
    pub wants: Grant,
    /// The same in words.
    pub words: String,
    /// Why, in the agent's words.
    pub why: String,
    /// What is typed to answer.
    pub answer: String,
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

impl Summary {
    /// What a list says of the run in `folder`, from the two ends of its record: damage between them is not seen.
    /// `program` is what a person types to call this one.
    pub fn glance(folder: &Path, program: &str) -> io::Result<Summary> {
        let owned = trace::owner(folder)?.is_some();
        let glance = Glance::at(folder)?;
        let started = glance.first.as_ref().and_then(started);
        // What came before is in the end of the turn before, and that is within reach or unknown.
        let counted = match glance.extent {
            Extent::Whole => Some((Ledger::default(), 0)),
            Extent::Ends => glance.last.iter().enumerate().find_map(|(at, event)| match &event.what {
                What::Finished(finished) => Some((Ledger::so_far(finished), at + 1)),
                _ => None,
            }),
        };
        let ledger = counted.map(|(mut ledger, from)| {
            glance.last[from..].iter().for_each(|event| ledger.fold(event));
            ledger
        });
        // A question that waits is among the last events, for nothing goes on behind it.
        let questions = questions(&glance.last);
        let state = State::of(&glance.condition, owned, glance.last.last(), &questions);
        Ok(Summary {
            run: name(folder),
            state,
            outcome: glance.last.iter().rev().find_map(finished).filter(|_| state.rests()).map(|end| end.outcome.word()),
            task: started.map(|started| text_of(&started.task.parts)).unwrap_or_default(),
            turns: ledger.as_ref().map(|ledger| ledger.turns),
            cost_nano_usd: ledger.and_then(|ledger| ledger.cost()),
            bytes: bytes_below(folder)?,
            started: glance.first.as_ref().map(|event| event.at),
            last: glance.last.last().map(|event| event.at),
            workspace: started.map(|started| started.task.workspace.clone()),
            question: Open::of(&questions, folder, program),
        })
    }
}

impl Open {
    fn of(questions: &Questions, folder: &Path, program: &str) -> Option<Open> {
        let (asked, question) = questions.open()?;
        let (wants, why) = (question.asked.wants.clone(), question.asked.why.clone());
        Some(Open { asked, words: wants.to_string(), wants, why, answer: answer_line(program, &name(folder), asked) })
    }
}

fn questions(events: &[Event]) -> Questions {
    let mut questions = Questions::default();
    events.iter().for_each(|event| questions.fold(event));
    questions
}

impl State {
    fn of(condition: &Condition, owned: bool, last: Option<&Event>, questions: &Questions) -> State {
        match (condition, owned, last.and_then(finished)) {
            (Condition::Damaged { .. }, ..) => State::Damaged,
            (_, true, None) if questions.open().is_some() => State::Asking,
            (_, true, None) => State::Running,
            (_, true, Some(_)) => State::Waiting,
            (_, false, Some(_)) => State::Ended,
            (_, false, None) => State::Interrupted,
        }
    }

    /// Whether the last turn has ended, as far as can be read.
    fn rests(self) -> bool {
        matches!(self, State::Ended | State::Waiting | State::Damaged)
    }
}

fn started(event: &Event) -> Option<&Started> {
    if let What::Started(started) = &event.what { Some(started) } else { None }
}

fn finished(event: &Event) -> Option<&Finished> {
    if let What::Finished(finished) = &event.what { Some(finished) } else { None }
}

fn name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Bytes of all files below `folder`; what goes while it is looked at counts nothing.
pub fn bytes_below(folder: &Path) -> io::Result<u64> {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let mut bytes = 0;
    let entries = match fs::read_dir(folder) {
        Err(error) if gone(&error) => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Ok(found) if found.is_dir() => bytes += bytes_below(&entry.path())?,
            Ok(found) => bytes += found.len(),
            Err(error) if gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// A run that was read.
pub struct Read {
    /// Its events.
    pub events: Vec<Event>,
    /// Its folder.
    pub folder: PathBuf,
    ledger: Ledger,
    questions: Questions,
    state: State,
    condition: Condition,
    digest: Option<Digest>,
}

impl Read {
    /// Reads the run in `folder`.
    pub fn new(folder: &Path) -> io::Result<Read> {
        let owned = trace::owner(folder)?.is_some();
        let (events, reading) = Reading::all(folder)?;
        let mut ledger = Ledger::default();
        let questions = questions(&events);
        events.iter().for_each(|event| ledger.fold(event));
        let condition = reading.condition().clone();
        let state = State::of(&condition, owned, events.last(), &questions);
        Ok(Read { events, folder: folder.to_owned(), ledger, questions, state, condition, digest: reading.digest() })
    }

    /// Its first event.
    pub fn started(&self) -> Option<&Started> {
        self.events.first().and_then(started)
    }

    /// The end of its last turn.
    pub fn finished(&self) -> Option<&Finished> {
        self.events.iter().rev().find_map(finished)
    }

    /// The model that was asked last.
    fn model(&self) -> Option<String> {
        let asked = self.events.iter().rev().find_map(|event| match &event.what {
            What::Asked(asked) => Some(asked.model.clone()),
            _ => None,
        });
        asked.or_else(|| self.started().map(|started| started.model.id.clone()))
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The seal of its last good line.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// The state of its lines.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The run in one object; `program` is what a person types to call this one.
    fn summary(&self, program: &str) -> io::Result<Summary> {
        let started = self.started();
        Ok(Summary {
            run: name(&self.folder),
            state: self.state,
            // A turn that came later and has not ended has no outcome yet.
            outcome: self.finished().filter(|_| self.state.rests()).map(|finished| finished.outcome.word()),
            task: started.map(|started| text_of(&started.task.parts)).unwrap_or_default(),
            turns: Some(self.ledger.turns),
            bytes: bytes_below(&self.folder)?,
            cost_nano_usd: self.ledger.cost(),
            started: self.events.first().map(|event| event.at),
            last: self.events.last().map(|event| event.at),
            workspace: started.map(|started| started.task.workspace.clone()),
            question: Open::of(&self.questions, &self.folder, program),
        })
    }

    /// The run in one object, with more of it.
    pub fn details(&self, program: &str) -> io::Result<Details> {
        let mut agents: Vec<String> = self.events.iter().map(|event| event.agent.to_string()).collect();
        agents.sort();
        agents.dedup();
        let checks = self
            .events
            .iter()
            .rev()
            .find_map(|event| if let What::Verified(verified) = &event.what { Some(verified.clone()) } else { None });
        Ok(Details {
            summary: self.summary(program)?,
            model: self.model(),
            agents,
            usage: self.ledger.usage,
            checks,
            answer: self.finished().filter(|_| self.state.rests()).and_then(|finished| finished.answer.clone()),
            active_ms: self.ledger.active_ms,
            events: self.events.len() as u64,
            digest: self.digest,
        })
    }
}
