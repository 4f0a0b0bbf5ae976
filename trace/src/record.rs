//! The record of a run in the hands of its one owner: append, keep blobs, sync.

use crate::blobs::{self, Blobs};
use crate::durability::Syncing;
use crate::line::Chain;
use crate::lock::own;
use crate::read::TRACE;
use crate::{
    AgentPath, Clock, Condition, Damage, Digest, Durability, Event, Millis, Owner, Reading, Recovered, Secrets, Seq, What,
};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sees every event twice, with its line as it stands in the file (without the line end).
pub type Observer = Box<dyn FnMut(Moment, &Event, &str)>;

/// When an observer sees an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before its line is written.
    Before,
    /// Right after; the end of a turn only once it is on the disk, where the record survives a power cut.
    Written,
}

/// Why a record could not be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The disk refused.
    #[error("{attempt} {}: {error}", path.display())]
    Disk {
        /// What was attempted.
        attempt: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another process owns the run.
    #[error("run {} belongs to process {} on {} since {}; send it a message with `autosage send`, or end it first", run.display(), owner.pid, owner.host, owner.since)]
    Owned {
        /// The run's folder.
        run: PathBuf,
        /// Who has it.
        owner: Owner,
    },
    /// A line in the middle is damaged: the run can be read, and be continued only as a new one.
    #[error("{} is damaged at line {line}: {damage}; it can be shown, and be continued only as a new run ({})", path.display(), way_out(damage))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// Nothing in the middle is damaged, so the run goes on as it is.
    #[error("{} is not damaged in its middle; go on with it as it is (`autosage resume` without --as-new)", path.display())]
    Sound {
        /// The file.
        path: PathBuf,
    },
    /// Not even the first event is left.
    #[error("{} is damaged from its start, so there is nothing to go on from; begin a new run", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
    },
    /// The run holds events of a later version that may not be passed over.
    #[error("{} holds `{kind}`, which this version does not know; continue it with the version that wrote it", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The kind.
        kind: String,
    },
}

/// What a person can do about a damaged line.
fn way_out(damage: &Damage) -> &'static str {
    match damage {
        Damage::Version(_) | Damage::Foreign(_) => "with the version of this program that wrote it",
        Damage::Torn | Damage::Unreadable(_) | Damage::Seal | Damage::Order { .. } => "`autosage resume RUN --as-new`",
    }
}

/// A run's record, owned. Dropping it gives the run free.
pub struct Record {
    pub(crate) folder: PathBuf,
    pub(crate) trace: File,
    /// Bytes of whole lines; a write that failed half way is cut back to here.
    pub(crate) length: u64,
    pub(crate) chain: Chain,
    /// The lock is held as long as this file is open.
    _lock: File,
    /// Half a line stands behind the good ones, because the disk refused both to write its end and to cut it off.
    ragged: bool,
    blobs: Blobs,
    /// Absent where nothing is synced.
    syncing: Option<Arc<Syncing>>,
    clock: Arc<dyn Clock>,
    /// Active milliseconds before this session, less the clock's reading at its start.
    pub(crate) before: Millis,
    began: Millis,
    observer: Observer,
    secrets: Secrets,
}

impl Record {
    /// Makes the folder `run` (which must not exist) with an empty record, and owns it.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn create(run: &Path, durability: Durability, clock: Arc<dyn Clock>, observer: Observer) -> Result<Record, RecordError> {
        Record::create_in(run, TRACE, durability, clock, observer)
    }

    /// The same, with the events in the file `file`.
    pub(crate) fn create_in(
        run: &Path,
        file: &str,
        durability: Durability,
        clock: Arc<dyn Clock>,
        observer: Observer,
    ) -> Result<Record, RecordError> {
        let disk = |attempt, error| RecordError::Disk { attempt, path: run.to_owned(), error };
        let mut folder = DirBuilder::new();
        folder.mode(0o700);
        let new_names = new_names(run);
        if let Some(parent) = run.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| disk("making the folder for", error))?;
        }
        folder.create(run).map_err(|error| disk("making the folder", error))?;
        for inner in ["blobs", "inbox"] {
            folder.create(run.join(inner)).map_err(|error| disk("making folders in", error))?;
        }
        let lock = own(run, clock.as_ref())?;
        let path = run.join(file);
        let trace = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let trace = trace.map_err(|error| RecordError::Disk { attempt: "making", path, error })?;
        Record::new(run, trace, lock, durability, new_names, clock, observer)
    }

    /// Owns the run in the folder `run` and reads it. A damaged end is put aside first and told by a `Recovered` event.
    ///
    /// # Errors
    /// Where another process owns it, where its middle is damaged, where it holds events that may not be passed over, or
    /// where the disk refuses.
    pub fn open(
        run: &Path,
        durability: Durability,
        clock: Arc<dyn Clock>,
        observer: Observer,
    ) -> Result<(Record, Vec<Event>), RecordError> {
        let path = run.join(TRACE);
        let disk = |attempt, error| RecordError::Disk { attempt, path: path.clone(), error };
        let trace = OpenOptions::new().read(true).write(true).open(&path).map_err(|error| disk("opening", error))?;
        let lock = own(run, clock.as_ref())?;
        sweep_drafts(run).map_err(|error| RecordError::Disk { attempt: "tidying", path: run.join("blobs"), error })?;
        let (mut events, reading) = Reading::all(run).map_err(|error| disk("reading", error))?;
        refuse_unknown(&events, &path)?;
        let mut record = Record::new(run, trace, lock, durability, Vec::new(), clock, observer)?;
        let (chain, good, condition) = reading.into_parts();
        record.chain = chain;
        record.length = good;
        record.before = events.last().map_or(0, |event| event.ms);
        match condition {
            Condition::Intact => {}
            Condition::Damaged { line, damage, .. } => return Err(RecordError::Damaged { path, line, damage }),
            Condition::Torn { bytes, damage } => events.push(record.put_aside(bytes, &damage)?),
        }
        Ok((record, events))
    }

    fn new(
        run: &Path,
        trace: File,
        lock: File,
        durability: Durability,
        new_names: Vec<PathBuf>,
        clock: Arc<dyn Clock>,
        observer: Observer,
    ) -> Result<Record, RecordError> {
        let syncing = match durability {
            Durability::Process => None,
            Durability::Power => {
                let disk = |error| RecordError::Disk { attempt: "opening", path: run.join(TRACE), error };
                Some(Arc::new(Syncing::new(trace.try_clone().map_err(disk)?, &blobs::folder(run), new_names)))
            }
        };
        let (folder, blobs, began) = (run.to_owned(), Blobs::new(run, syncing.clone()), clock.elapsed());
        let (length, chain, ragged, before) = (0, Chain::default(), false, 0);
        let secrets = Secrets::of_nothing();
        Ok(Record { folder, trace, length, chain, _lock: lock, ragged, blobs, syncing, clock, before, began, observer, secrets })
    }

    /// The same record, which hides what `secrets` knows. Without it, it hides what its shape gives away.
    pub fn hiding(self, secrets: Secrets) -> Record {
        Record { secrets, ..self }
    }

    /// What is hidden in it.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Moves the bad bytes behind the good lines into a blob and says so.
    fn put_aside(&mut self, bytes: u64, damage: &Damage) -> Result<Event, RecordError> {
        let mut bad = Vec::new();
        let read = self.trace.seek(SeekFrom::Start(self.length)).and_then(|_| self.trace.read_to_end(&mut bad));
        read.map_err(|error| self.disk("reading the damaged end of", error))?;
        let blob = self.blobs.put(&bad).map_err(|error| self.disk("keeping the damaged end of", error))?;
        self.wait_for_blobs()?;
        self.trace.set_len(self.length).map_err(|error| self.disk("cutting the damaged end of", error))?;
        self.append(&AgentPath::root(), None, What::Recovered(Recovered { blob, bytes, reason: damage.to_string(), run: None }))
    }

    /// Writes one event, with a placeholder for each secret in it, and returns it as it was written. It is in the file, though
    /// perhaps not yet on the disk, when this returns; see [`Record::sync`]. The contents that it names are on the disk
    /// before it is written (the first event's are before the first sync returns), and so is the whole record before the end
    /// of a turn is shown to anybody.
    ///
    /// # Errors
    /// Where the disk refuses, now or when something was synced meanwhile: the file then ends with the last whole line.
    pub fn append(&mut self, agent: &AgentPath, cause: Option<Seq>, what: What) -> Result<Event, RecordError> {
        let (at, ms) = (self.clock.now(), self.active_ms());
        let mut event = Event { seq: self.chain.next, at, ms, agent: agent.clone(), cause, what };
        let (mut chain, mut line) = self.line(&event)?;
        let hidden = event.what.hidden(&self.secrets, &line);
        if let Some(what) = hidden.map_err(|error| self.disk("hiding a secret in an event of", error.into()))? {
            event.what = what;
            (chain, line) = self.line(&event)?;
        }
        (self.observer)(Moment::Before, &event, &line);
        // A run's first event names its whole harness, which goes to the disk while the model first thinks: nothing that it
        // tells of has been done yet.
        if event.seq > Seq(0) && !event.what.blobs().is_empty() {
            self.wait_for_blobs()?;
        }
        line.push('\n');
        self.write(line.as_bytes()).map_err(|error| self.disk("writing an event to", error))?;
        self.chain = chain;
        if matches!(event.what, What::Finished(_)) {
            self.sync()?;
        }
        (self.observer)(Moment::Written, &event, line.trim_end_matches('\n'));
        Ok(event)
    }

    /// The next line, without its end, and where the chain stands behind it.
    fn line(&self, event: &Event) -> Result<(Chain, String), RecordError> {
        let mut chain = self.chain;
        let line = chain.write(event).unwrap_or_else(|| Err(serde::ser::Error::custom("an unknown kind is never written")));
        Ok((chain, line.map_err(|error| self.disk("writing an event to", error.into()))?))
    }

    /// Writes a line behind the good ones, whole or not at all.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if let Some(syncing) = &self.syncing {
            syncing.check()?;
        }
        if self.ragged {
            self.trace.set_len(self.length)?;
            self.ragged = false;
        }
        if let Err(error) = self.trace.write_all_at(line, self.length) {
            // Half a line would be put aside at the next opening; cutting it now keeps readers from seeing it at all.
            self.ragged = self.trace.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Lets everything that was written go to the disk, and does not wait for it.
    ///
    /// # Errors
    /// Where the disk has refused before.
    pub fn begin_sync(&mut self) -> Result<(), RecordError> {
        let Some(syncing) = &self.syncing else { return Ok(()) };
        syncing.trace();
        syncing.check().map_err(|error| self.disk("syncing", error))
    }

    /// Returns when everything that was written is on the disk, blobs first; at once, where only the end of the process is to
    /// be survived. Stands before a call that can change the world.
    ///
    /// # Errors
    /// Where the disk refuses. Then nobody knows what is on it, so nothing more is written in this session.
    pub fn sync(&mut self) -> Result<(), RecordError> {
        let Some(syncing) = &self.syncing else { return Ok(()) };
        let wish = syncing.trace();
        syncing.wait(wish).map_err(|error| self.disk("syncing", error))
    }

    pub(crate) fn wait_for_blobs(&self) -> Result<(), RecordError> {
        let Some(syncing) = &self.syncing else { return Ok(()) };
        syncing.wait_for_blobs().map_err(|error| self.disk("syncing the blobs of", error))
    }

    /// Active milliseconds of the run until now.
    pub fn active_ms(&self) -> Millis {
        self.before.saturating_add(self.clock.elapsed().saturating_sub(self.began))
    }

    /// Nothing was done for the last `idle` milliseconds but waiting for a person: they are no active time.
    pub fn rested(&mut self, idle: Millis) {
        self.began = self.began.saturating_add(idle);
    }

    /// The run's large contents.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The seal of the last line.
    pub fn digest(&self) -> Option<Digest> {
        self.chain.sum
    }

    pub(crate) fn disk(&self, attempt: &'static str, error: io::Error) -> RecordError {
        RecordError::Disk { attempt, path: self.folder.join(TRACE), error }
    }
}

/// The blobs of the run in the folder `run`, for readers.
pub fn blobs(run: &Path) -> Blobs {
    Blobs::new(run, None)
}

/// The folders in which names will be new when the folder `run` and what is missing above it are made.
fn new_names(run: &Path) -> Vec<PathBuf> {
    let missing = run.ancestors().take_while(|folder| !folder.exists());
    missing.flat_map(|folder| [Some(folder), folder.parent()]).flatten().map(Path::to_owned).collect()
}

/// What a later version meant by an event that may not be passed over is not guessed.
pub(crate) fn refuse_unknown(events: &[Event], path: &Path) -> Result<(), RecordError> {
    let unknown = events.iter().find_map(|event| match &event.what {
        What::Unknown { kind, ignorable: false } => Some(kind.clone()),
        _ => None,
    });
    unknown.map_or(Ok(()), |kind| Err(RecordError::Unknown { path: path.to_owned(), kind }))
}

/// Removes what a process that died left half written.
fn sweep_drafts(run: &Path) -> io::Result<()> {
    for entry in fs::read_dir(run.join("blobs"))? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".draft-") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delivered, Delivery, Pause, Timestamp};
    use std::time::Duration;

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_millis(0)
        }
        fn elapsed(&self) -> Millis {
            0
        }
        fn pause(&self, _: Duration) -> Pause {
            Box::pin(std::future::ready(()))
        }
        fn limit(&self, _: Duration) -> Pause {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn an_append_that_a_full_disk_refuses_leaves_no_gap() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let mut record = Record::create(&run, Durability::Power, Arc::new(Still), Box::new(|_, _, _| ())).unwrap();
        let append = |record: &mut Record| {
            let what = What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt });
            record.append(&AgentPath::root(), None, what)
        };
        append(&mut record).unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let whole = std::mem::replace(&mut record.trace, full);
        assert!(matches!(append(&mut record), Err(RecordError::Disk { attempt: "writing an event to", .. })));
        record.trace = whole;
        assert_eq!(append(&mut record).unwrap().seq, Seq(1));
        let (events, reading) = Reading::all(&run).unwrap();
        assert_eq!((events.len(), reading.condition()), (2, &Condition::Intact));
    }

    #[test]
    fn a_sync_that_failed_ends_the_session_at_the_next_append() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let mut record = Record::create(&run, Durability::Power, Arc::new(Still), Box::new(|_, _, _| ())).unwrap();
        let interrupt = || What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt });
        record.append(&AgentPath::root(), None, interrupt()).unwrap();
        let syncing = record.syncing.clone().unwrap();
        syncing.blob(home.path().join("nowhere"));
        assert!(syncing.wait_for_blobs().is_err());
        for _ in 0..2 {
            assert!(matches!(record.append(&AgentPath::root(), None, interrupt()), Err(RecordError::Disk { .. })));
        }
        assert!(record.sync().is_err() && record.begin_sync().is_err());
        assert_eq!(Reading::all(&run).unwrap().0.len(), 1, "nothing was written behind what may not be there");
    }

    #[test]
    fn the_end_of_a_turn_is_on_the_disk_before_it_is_told() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let syncing: Arc<std::sync::OnceLock<Arc<Syncing>>> = Arc::default();
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (seen, kept) = (syncing.clone(), told.clone());
        let observer = move |moment, event: &Event, _: &str| {
            if moment == Moment::Written {
                let rests = seen.get().is_some_and(|syncing| syncing.rests());
                kept.lock().unwrap().push((event.what.kind().to_owned(), rests));
            }
        };
        let mut record = Record::create(&run, Durability::Power, Arc::new(Still), Box::new(observer)).unwrap();
        syncing.set(record.syncing.clone().unwrap()).unwrap();
        let finished = crate::Finished {
            run: "run".parse().unwrap(),
            outcome: crate::Outcome::Done,
            answer: None,
            usage: crate::Usage::default(),
            cost_nano_usd: None,
            turns: 0,
            active_ms: 0,
        };
        record.append(&AgentPath::root(), None, What::Finished(finished)).unwrap();
        assert_eq!(*told.lock().unwrap(), [("Finished".to_owned(), true)]);
    }

    #[test]
    fn what_survives_a_process_only_is_never_synced() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let mut record = Record::create(&run, Durability::Process, Arc::new(Still), Box::new(|_, _, _| ())).unwrap();
        record.blobs().put(b"content").unwrap();
        record.sync().unwrap();
        assert!(record.syncing.is_none());
    }
}
