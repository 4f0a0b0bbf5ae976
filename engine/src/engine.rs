//! The parts that a run works with, and the run itself: its record and what that adds up to.

use crate::environments::Environments;
use crate::harness::HarnessError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use model::{Heard, Model};
use tools::Toolbox;
use trace::{AgentPath, Clock, Event, Millis, Record, RecordError, Seq, What};

/// Why we cannot go on. What an agent does wrong is never among this: it is an observation or a verdict.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The record cannot be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The inbox or a blob of the run cannot be read.
    #[error("reading the run's folder: {0}")]
    Folder(#[from] std::io::Error),
    /// The harness cannot be used.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The walls cannot be raised.
    #[error(transparent)]
    Sandbox(#[from] sandbox::SandboxError),
    /// The run asks a model that the engine does not have.
    #[error("the run asks `{0}`, and that is not among the engine's models: give it, or tell the run of another one")]
    NoModel(String),
    /// The toolbox takes other answers than the run is to give.
    #[error("the run's `output_schema` and its toolbox disagree: where there is a schema, give `toolbox.answering(&schema)`")]
    OtherAnswer,
    /// The record does not begin as a run does.
    #[error("the record in {0} does not begin with `Started`, so there is nothing to go on from")]
    NoStart(std::path::PathBuf),
}

/// What a run works with. All of it is borrowed: the engine owns nothing.
pub struct Engine<'a> {
    /// Who thinks.
    pub model: &'a dyn Model,
    /// Who thinks in this order where the one before is not to be had. Each is known by the id of its spec.
    pub fallback: &'a [&'a dyn Model],
    /// What the agent can do.
    pub toolbox: &'a Toolbox,
    /// Where it does it.
    pub environments: &'a Environments<'a>,
    /// Where time comes from.
    pub clock: &'a dyn Clock,
    /// The wish that the turn ends.
    pub interrupt: &'a Interrupt,
    /// Told of words as they come, for a live view only.
    pub heard: &'a (dyn Fn(Heard<'_>) + Send + Sync),
}

/// A run in the hands of its owner: the record, and what its events add up to.
pub struct Run {
    record: Record,
    progress: Progress,
}

impl Run {
    pub(crate) fn new(record: Record, progress: Progress) -> Run {
        Run { record, progress }
    }

    /// What the events add up to.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Writes down what happened, and takes it in.
    pub(crate) fn note(&mut self, cause: Option<Seq>, what: What) -> Result<Event, EngineError> {
        let event = self.record.append(&AgentPath::root(), cause, what)?;
        self.progress.fold(&event);
        Ok(event)
    }

    /// Nothing was done for `idle` milliseconds but waiting for a person.
    pub fn rested(&mut self, idle: Millis) {
        self.record.rested(idle);
    }

    /// Lets all that is written go to the disk while the run goes on.
    pub(crate) fn begin_sync(&mut self) -> Result<(), EngineError> {
        Ok(self.record.begin_sync()?)
    }

    /// Returns when all that is written is on the disk.
    pub(crate) fn sync(&mut self) -> Result<(), EngineError> {
        Ok(self.record.sync()?)
    }
}

impl Engine<'_> {
    /// The model that `progress` asks.
    pub(crate) fn model(&self, progress: &Progress) -> Result<&dyn Model, EngineError> {
        let id = progress.model().map_or("", |spec| &spec.id);
        let mut all = std::iter::once(self.model).chain(self.fallback.iter().copied());
        all.find(|model| model.spec().id == id).ok_or_else(|| EngineError::NoModel(id.to_owned()))
    }

    /// How much of an output the agent of `progress` sees.
    pub(crate) fn caps(&self, progress: &Progress) -> tools::Caps {
        let caps = progress.harness().settings().caps;
        tools::Caps {
            head_bytes: caps.head_bytes,
            tail_bytes: caps.tail_bytes,
            read_lines: caps.read_lines,
            read_bytes: caps.read_bytes,
        }
    }
}
