//! Reading a record without owning it: whole, or following its end while another process writes.

use crate::line::{Chain, unproven, version};
use crate::{Damage, Digest, Event, Seq};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

/// The file of events within a run's folder.
pub(crate) const TRACE: &str = "trace.jsonl";

/// What state the bytes of a record are in.
#[derive(Clone, Debug, PartialEq)]
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
    /// A line is damaged and events follow it, or it is of a later version: the run can be read up to there, and be
    /// continued only as a new one.
    Damaged {
        /// The number of the line, counted from 1; all before it are good.
        line: u64,
        /// What is wrong with it.
        damage: Damage,
        /// The first line from there on that reads as an event again.
        next: Option<Box<Neighbour>>,
    },
}

/// A line behind a damaged one. It reads as an event; that it is what was written cannot be proven.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its number, counted from 1.
    pub line: u64,
    /// What it says.
    pub event: Event,
}

/// A record that is read from its start. [`Reading::more`] returns what came since.
#[derive(Debug)]
pub struct Reading {
    file: File,
    chain: Chain,
    /// Where the whole, good lines end that were read, in bytes.
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

    /// The record in the folder `run` from the first whole line behind `start` on, with that line's event, whose chain is
    /// not proven. `None` where no such line reads as an event.
    pub(crate) fn from_within(run: &Path, start: u64) -> io::Result<Option<(Event, Reading)>> {
        let file = File::open(run.join(TRACE))?;
        let mut lines = lines(&file, start)?;
        let (mut cut, mut line) = (Vec::new(), Vec::new());
        let good = start + (lines.read_until(b'\n', &mut cut)? + lines.read_until(b'\n', &mut line)?) as u64;
        let Some((event, sum)) = line.strip_suffix(b"\n").and_then(unproven) else { return Ok(None) };
        let chain = Chain { next: event.seq.next(), sum: Some(sum) };
        Ok(Some((event, Reading { file, chain, good, condition: Condition::Intact })))
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

    /// The one event at `seq` of the record in the folder `run`, proven against the line before it; `None` where no good line
    /// stands there.
    ///
    /// # Errors
    /// Where the record cannot be read.
    pub fn one(run: &Path, seq: Seq) -> io::Result<Option<Event>> {
        let file = File::open(run.join(TRACE))?;
        let mut lines = lines(&file, 0)?;
        // Events have no gaps: their number is that of their line.
        for _ in 1..seq.0 {
            if lines.skip_until(b'\n')? == 0 {
                return Ok(None);
            }
        }
        let (mut before, mut line) = (Vec::new(), Vec::new());
        let mut chain = Chain::default();
        if seq > Seq(0) {
            lines.read_until(b'\n', &mut before)?;
            let Some((event, sum)) = before.strip_suffix(b"\n").and_then(unproven) else { return Ok(None) };
            chain = Chain { next: event.seq.next(), sum: Some(sum) };
        }
        lines.read_until(b'\n', &mut line)?;
        let whole = line.strip_suffix(b"\n").filter(|_| chain.next == seq);
        Ok(whole.and_then(|whole| chain.read(whole).ok()))
    }

    /// The events that were appended since the last call, each also shown to `line` with its bytes as they stand.
    /// A line whose end is not written yet is left for the next call; until then the condition says `Torn`.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn more(&mut self, mut line: impl FnMut(&Event, &str)) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        if matches!(self.condition, Condition::Damaged { .. }) {
            return Ok(events);
        }
        self.condition = Condition::Intact;
        let mut lines = lines(&self.file, self.good)?;
        let mut bytes = Vec::new();
        while lines.read_until(b'\n', &mut bytes)? > 0 {
            let Some(whole) = bytes.strip_suffix(b"\n") else {
                self.condition = Condition::Torn { bytes: bytes.len() as u64, damage: Damage::Torn };
                break;
            };
            match self.chain.read(whole) {
                Ok(event) => {
                    line(&event, std::str::from_utf8(whole).unwrap_or_default());
                    events.push(event);
                }
                Err(damage) => {
                    self.condition = judge(&mut lines, whole, self.chain.next.0 + 1, damage)?;
                    break;
                }
            }
            self.good += bytes.len() as u64;
            bytes.clear();
        }
        Ok(events)
    }

    /// The state of the bytes, as far as they were read.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The seal of the last good line, which vouches for all lines before it.
    pub fn digest(&self) -> Option<Digest> {
        self.chain.sum
    }

    /// Where the good lines end, in bytes of the file of events.
    pub fn good_bytes(&self) -> u64 {
        self.good
    }

    pub(crate) fn into_parts(self) -> (Chain, u64, Condition) {
        (self.chain, self.good, self.condition)
    }
}

/// The bytes of `file` from `start` on.
fn lines(mut file: &File, start: u64) -> io::Result<BufReader<&File>> {
    file.seek(SeekFrom::Start(start))?;
    Ok(BufReader::with_capacity(64 << 10, file))
}

/// Whether the bad line `bad`, which is number `line`, is the end of the record or has events behind it.
fn judge(behind: &mut impl BufRead, bad: &[u8], line: u64, damage: Damage) -> io::Result<Condition> {
    let neighbour = |line, bytes: &[u8]| unproven(bytes).map(|(event, _)| Box::new(Neighbour { line, event }));
    // A line in the wrong place says all the same what it says.
    let mut next = if matches!(damage, Damage::Order { .. }) { neighbour(line, bad) } else { None };
    let mut event_follows = false;
    let (mut bytes, mut number, mut text) = (bad.len() as u64 + 1, line, Vec::new());
    while !(event_follows && next.is_some()) && behind.read_until(b'\n', &mut text)? > 0 {
        (bytes, number) = (bytes + text.len() as u64, number + 1);
        let whole = text.strip_suffix(b"\n").unwrap_or(&text);
        event_follows |= version(whole).is_some();
        next = next.or_else(|| neighbour(number, whole));
        text.clear();
    }
    Ok(match event_follows || matches!(damage, Damage::Version(_) | Damage::Foreign(_)) {
        true => Condition::Damaged { line, damage, next },
        false => Condition::Torn { bytes, damage },
    })
}
