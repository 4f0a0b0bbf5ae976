//! A run whose record is damaged goes on as a new one, from the good lines before the damage.

use crate::read::TRACE;
use crate::record::refuse_unknown;
use crate::{
    AgentPath, Clock, Condition, Damage, Digest, Durability, Event, Observer, Reading, Record, RecordError, Recovered, RunId,
    What,
};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// The events until the record is whole: a process that dies before leaves no run that could be taken for one.
const DRAFT: &str = ".trace-draft";

impl Record {
    /// Makes the folder `run` (which must not exist) with a record that goes on, as the run `id`, from where the one in the
    /// folder `damaged` is damaged: its good lines as they stand, seals included, then a `Recovered` event that names the new
    /// run and keeps, as a blob, all that stood behind. Returns the record, its events, and the blobs that the good lines
    /// name and that are missing or damaged. The old folder is left as it is.
    ///
    /// # Errors
    /// Where the old record is not damaged in its middle, has no good line, is of a later version, or belongs to a process;
    /// or where the disk refuses.
    pub fn anew(
        damaged: &Path,
        run: &Path,
        id: RunId,
        durability: Durability,
        clock: Arc<dyn Clock>,
        observer: Observer,
    ) -> Result<(Record, Vec<Event>, Vec<Digest>), RecordError> {
        let path = damaged.join(TRACE);
        let disk = |error| RecordError::Disk { attempt: "reading", path: path.clone(), error };
        if let Some(owner) = crate::owner(damaged).map_err(disk)? {
            return Err(RecordError::Owned { run: damaged.to_owned(), owner });
        }
        let (mut events, reading) = Reading::all(damaged).map_err(disk)?;
        let (line, damage) = match reading.condition().clone() {
            Condition::Intact | Condition::Torn { .. } => return Err(RecordError::Sound { path }),
            Condition::Damaged { line, damage: damage @ (Damage::Version(_) | Damage::Foreign(_)), .. } => {
                return Err(RecordError::Damaged { path, line, damage });
            }
            Condition::Damaged { .. } if events.is_empty() => return Err(RecordError::Nothing { path }),
            Condition::Damaged { line, damage, .. } => (line, damage),
        };
        refuse_unknown(&events, &path)?;
        let mut record = Record::create_in(run, DRAFT, durability, clock, observer)?;
        let copied = || -> Result<Vec<Digest>, RecordError> {
            let missing = copy_blobs(damaged, &events, &record)?;
            let mut old = File::open(&path).map_err(disk)?;
            let good = io::copy(&mut (&mut old).take(reading.good_bytes()), &mut record.trace);
            good.map_err(|error| record.disk("copying the good lines to", error))?;
            let mut rest = Vec::new();
            old.seek(SeekFrom::Start(reading.good_bytes())).and_then(|_| old.read_to_end(&mut rest)).map_err(disk)?;
            let blob = record.blobs().put(&rest).map_err(|error| record.disk("keeping what is damaged for", error))?;
            (record.chain, record.length, _) = reading.into_parts();
            record.before = events.last().map_or(0, |event| event.ms);
            let (bytes, reason) = (rest.len() as u64, format!("line {line}: {damage}"));
            let recovered = Recovered { blob, bytes, reason, run: Some(id) };
            events.push(record.append(&AgentPath::root(), None, What::Recovered(recovered))?);
            fs::rename(run.join(DRAFT), run.join(TRACE)).map_err(|error| record.disk("naming", error))?;
            Ok(missing)
        };
        match copied() {
            Ok(missing) => Ok((record, events, missing)),
            Err(error) => {
                // What cannot be removed is a folder without a record, which is no run.
                let _ = fs::remove_dir_all(run);
                Err(error)
            }
        }
    }
}

/// Copies the blobs that `events` name; returns those that are missing or damaged.
fn copy_blobs(from: &Path, events: &[Event], to: &Record) -> Result<Vec<Digest>, RecordError> {
    let named: BTreeSet<Digest> = events.iter().flat_map(|event| event.what.blobs()).collect();
    let (old, mut missing) = (crate::blobs(from), Vec::new());
    for digest in named {
        match old.get(&digest) {
            Ok(bytes) => {
                to.blobs().put(&bytes).map_err(|error| to.disk("copying blobs for", error))?;
            }
            Err(_) => missing.push(digest),
        }
    }
    Ok(missing)
}
