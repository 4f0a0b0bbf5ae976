//! A record at a glance: its first event and its last ones, however long it is. For lists, which must not read whole records.

use crate::line::Chain;
use crate::read::TRACE;
use crate::{Condition, Event, Reading, What};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// A record up to this many bytes is read whole.
const SHORT: u64 = 256 << 10;
/// Of a longer one at most this many bytes are read from its end.
const MOST: u64 = 4 << 20;

/// The two ends of a record.
#[derive(Debug)]
pub struct Glance {
    /// Its first event.
    pub first: Option<Event>,
    /// Its last events, in order: back to the end of a turn, if there is one within reach.
    pub last: Vec<Event>,
    /// Whether `last` is all of them.
    pub extent: Extent,
    /// The state of what was read. Damage between the two ends is not seen.
    pub condition: Condition,
    /// Bytes of the file of events.
    pub bytes: u64,
}

/// How much of a record was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Its two ends.
    Ends,
}

impl Glance {
    /// Looks at the record in the folder `run`.
    ///
    /// # Errors
    /// Where there is no record, or it cannot be read.
    pub fn at(run: &Path) -> io::Result<Glance> {
        let bytes = File::open(run.join(TRACE))?.metadata()?.len();
        for span in [SHORT, 4 * SHORT, MOST].into_iter().take_while(|span| *span < bytes) {
            if let Some((last, condition)) = tail(run, bytes - span)?
                && (span == MOST || last.iter().any(|event| matches!(event.what, What::Finished(_))))
            {
                return Ok(Glance { first: first(run)?, last, extent: Extent::Ends, condition, bytes });
            }
        }
        let (last, reading) = Reading::all(run)?;
        let condition = reading.condition().clone();
        Ok(Glance { first: last.first().cloned(), last, extent: Extent::Whole, condition, bytes })
    }
}

/// The first event of a record.
fn first(run: &Path) -> io::Result<Option<Event>> {
    let mut line = Vec::new();
    BufReader::new(File::open(run.join(TRACE))?).read_until(b'\n', &mut line)?;
    Ok(line.strip_suffix(b"\n").and_then(|line| Chain::default().read(line).ok()))
}

/// The events behind the byte `start`, and the state of the bytes there. `None` where no line can be made out.
fn tail(run: &Path, start: u64) -> io::Result<Option<(Vec<Event>, Condition)>> {
    let Some((event, mut reading)) = Reading::from_within(run, start)? else { return Ok(None) };
    let mut events = vec![event];
    events.extend(reading.more(|_, _| ())?);
    Ok(Some((events, reading.condition().clone())))
}
