//! Reading a record without owning it: whole, or following its end while another process writes.

use crate::line::Chain;
use crate::{Damage, Digest, Event};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The file of events within a run's folder.
pub(crate) const TRACE: &str = "trace.jsonl";

/// What state the bytes of a record are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Every line is whole and chained.
    Intact,
    /// The end is damaged and no event follows: the owner's next session puts the bytes aside and goes on.
    Torn {
        /// How many bytes are bad.
        bytes: u64,
        /// What is wrong with them.
        damage: Damage,
    },
    /// A line is damaged and events follow it, or it is of a later version: the run can be read up to there, and not be
    /// continued.
    Damaged {
        /// The number of the line, counted from 1.
        line: u64,
        /// What is wrong with it.
        damage: Damage,
    },
}

/// A record that is read from its start. [`Reading::more`] returns what came since.
#[derive(Debug)]
pub struct Reading {
    file: File,
    chain: Chain,
    /// Bytes that were read as whole, good lines.
    good: u64,
    condition: Condition,
}

impl Reading {
    /// Opens the record in the folder `run`; nothing is read yet.
    ///
    /// # Errors
    /// Where there is no record, or it cannot be opened.
    pub fn open(run: &Path) -> io::Result<Reading> {
        let file = File::open(run.join(TRACE))?;
        Ok(Reading { file, chain: Chain::default(), good: 0, condition: Condition::Intact })
    }

    /// All events of the record in the folder `run`, and the reading that stands at its end.
    ///
    /// # Errors
    /// Where there is no record, or it cannot be read. Damage is no error: see [`Reading::condition`].
    pub fn all(run: &Path) -> io::Result<(Vec<Event>, Reading)> {
        let mut reading = Reading::open(run)?;
        let events = reading.more(|_, _| ())?;
        Ok((events, reading))
    }

    /// The events that were appended since the last call, each also shown to `line` with its bytes as they stand.
    /// A line whose end is not written yet is left for the next call; until then the condition says `Torn`.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn more(&mut self, mut line: impl FnMut(&Event, &str)) -> io::Result<Vec<Event>> {
        if matches!(self.condition, Condition::Damaged { .. }) {
            return Ok(Vec::new());
        }
        self.condition = Condition::Intact;
        self.file.seek(SeekFrom::Start(self.good))?;
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        let mut events = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.condition = Condition::Torn { bytes: rest.len() as u64, damage: Damage::Torn };
                break;
            };
            match self.chain.read(&rest[..end]) {
                Ok(event) => {
                    line(&event, std::str::from_utf8(&rest[..end]).unwrap_or_default());
                    events.push(event);
                }
                Err(damage) => {
                    self.condition = self.judge(rest, damage);
                    break;
                }
            }
            self.good += end as u64 + 1;
            rest = &rest[end + 1..];
        }
        Ok(events)
    }

    /// Whether the bad line at the start of `rest` is the end of the record or has events behind it.
    fn judge(&self, rest: &[u8], damage: Damage) -> Condition {
        let behind = rest.split(|byte| *byte == b'\n').skip(1);
        let event_follows = behind.into_iter().any(|line| crate::line::version(line).is_some());
        match event_follows || matches!(damage, Damage::Version(_) | Damage::Foreign(_)) {
            true => Condition::Damaged { line: self.chain.next.0 + 1, damage },
            false => Condition::Torn { bytes: rest.len() as u64, damage },
        }
    }

    /// The state of the bytes, as far as they were read.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The seal of the last good line, which vouches for all lines before it.
    pub fn digest(&self) -> Option<Digest> {
        self.chain.sum
    }

    pub(crate) fn into_parts(self) -> (Chain, u64, Condition) {
        (self.chain, self.good, self.condition)
    }
}
