//! The record of a run in the hands of its one owner: append, keep blobs, sync.

use crate::blobs::Blobs;
use crate::line::Chain;
use crate::read::TRACE;
use crate::{AgentPath, Clock, Condition, Damage, Digest, Event, Millis, Reading, Recovered, Secrets, Seq, What};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sees every event right after it was written, with its line as it stands in the file (without the line end).
pub type Observer = Box<dyn FnMut(&Event, &str)>;

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
    /// A line in the middle is damaged: the run can be read and not be continued.
    #[error("{} is damaged at line {line}: {damage}; it can be shown and not be continued", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong.
        damage: Damage,
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

/// The process that owns a run, as it stands in the run's `lock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// When it took the run.
    pub since: String,
}

/// A run's record, owned. Dropping it gives the run free.
pub struct Record {
    folder: PathBuf,
    trace: File,
    /// Bytes of whole lines; a write that failed half way is cut back to here.
    length: u64,
    chain: Chain,
    /// The lock is held as long as this file is open.
    _lock: File,
    blobs: Blobs,
    /// Folders with new names in them that are not on the disk yet: a file that is synced can be lost with its name.
    new_names: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    /// Active milliseconds before this session, less the clock's reading at its start.
    before: Millis,
    began: Millis,
    observer: Observer,
    secrets: Secrets,
}

impl Record {
    /// Makes the folder `run` (which must not exist) with an empty record, and owns it.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn create(run: &Path, clock: Arc<dyn Clock>, observer: Observer) -> Result<Record, RecordError> {
        let disk = |attempt, error| RecordError::Disk { attempt, path: run.to_owned(), error };
        let mut folder = DirBuilder::new();
        folder.mode(0o700);
        if let Some(parent) = run.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| disk("making the folder for", error))?;
        }
        folder.create(run).map_err(|error| disk("making the folder", error))?;
        for inner in ["blobs", "inbox"] {
            folder.create(run.join(inner)).map_err(|error| disk("making folders in", error))?;
        }
        let lock = own(run, clock.as_ref())?;
        let path = run.join(TRACE);
        let trace = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let trace = trace.map_err(|error| RecordError::Disk { attempt: "making", path, error })?;
        let mut record = Record::new(run, trace, lock, clock, observer);
        record.new_names = [Some(run), run.parent()].into_iter().flatten().map(Path::to_owned).collect();
        Ok(record)
    }

    /// Owns the run in the folder `run` and reads it. A damaged end is put aside first and told by a `Recovered` event.
    ///
    /// # Errors
    /// Where another process owns it, where its middle is damaged, where it holds events that may not be passed over, or
    /// where the disk refuses.
    pub fn open(run: &Path, clock: Arc<dyn Clock>, observer: Observer) -> Result<(Record, Vec<Event>), RecordError> {
        let path = run.join(TRACE);
        let disk = |attempt, error| RecordError::Disk { attempt, path: path.clone(), error };
        let trace = OpenOptions::new().read(true).write(true).open(&path).map_err(|error| disk("opening", error))?;
        let lock = own(run, clock.as_ref())?;
        sweep_drafts(run).map_err(|error| RecordError::Disk { attempt: "tidying", path: run.join("blobs"), error })?;
        let (mut events, reading) = Reading::all(run).map_err(|error| disk("reading", error))?;
        for event in &events {
            if let What::Unknown { kind, ignorable: false } = &event.what {
                return Err(RecordError::Unknown { path, kind: kind.clone() });
            }
        }
        let mut record = Record::new(run, trace, lock, clock, observer);
        let (chain, good, condition) = reading.into_parts();
        record.chain = chain;
        record.length = good;
        record.before = events.last().map_or(0, |event| event.ms);
        match condition {
            Condition::Intact => {}
            Condition::Damaged { line, damage } => return Err(RecordError::Damaged { path, line, damage }),
            Condition::Torn { bytes, damage } => events.push(record.put_aside(bytes, &damage)?),
        }
        Ok((record, events))
    }

    fn new(run: &Path, trace: File, lock: File, clock: Arc<dyn Clock>, observer: Observer) -> Record {
        let (blobs, began) = (Blobs::new(run), clock.elapsed());
        let folder = run.to_owned();
        let (length, chain, new_names, before) = (0, Chain::default(), Vec::new(), 0);
        let secrets = Secrets::of_nothing();
        Record { folder, trace, length, chain, _lock: lock, blobs, new_names, clock, before, began, observer, secrets }
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
        self.blobs.sync().map_err(|error| self.disk("keeping the damaged end of", error))?;
        self.trace.set_len(self.length).map_err(|error| self.disk("cutting the damaged end of", error))?;
        self.append(&AgentPath::root(), None, What::Recovered(Recovered { blob, bytes, reason: damage.to_string() }))
    }

    /// Writes one event, with a placeholder for each secret in it, and returns it as it was written. It is in the file, though
    /// perhaps not yet on the disk, when this returns; see [`Record::sync`].
    ///
    /// # Errors
    /// Where the disk refuses: the file then ends with the last whole line, as before.
    pub fn append(&mut self, agent: &AgentPath, cause: Option<Seq>, what: What) -> Result<Event, RecordError> {
        let (at, ms) = (self.clock.now(), self.active_ms());
        let mut event = Event { seq: self.chain.next, at, ms, agent: agent.clone(), cause, what };
        let before = self.chain;
        let mut line = self.line(&event)?;
        let hidden = event.what.hidden(&self.secrets, &line);
        if let Some(what) = hidden.map_err(|error| self.disk("hiding a secret in an event of", error.into()))? {
            self.chain = before;
            event.what = what;
            line = self.line(&event)?;
        }
        line.push('\n');
        if let Err(error) = self.trace.write_all_at(line.as_bytes(), self.length) {
            self.chain = before;
            // A torn line would be recovered at the next opening; cutting it now keeps readers from seeing it at all.
            let cut = self.trace.set_len(self.length);
            return Err(self.disk("writing an event to", cut.err().unwrap_or(error)));
        }
        self.length += line.len() as u64;
        (self.observer)(&event, line.trim_end_matches('\n'));
        Ok(event)
    }

    /// The next line, without its end.
    fn line(&mut self, event: &Event) -> Result<String, RecordError> {
        let line = self.chain.write(event).unwrap_or_else(|| Err(serde::ser::Error::custom("an unknown kind is never written")));
        line.map_err(|error| self.disk("writing an event to", error.into()))
    }

    /// Returns when everything that was written is on the disk, blobs first. Stands before a call that can change the world.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn sync(&mut self) -> Result<(), RecordError> {
        let synced = self.blobs.sync().and_then(|()| self.trace.sync_data());
        let named = synced.and_then(|()| self.new_names.iter().try_for_each(|folder| File::open(folder)?.sync_all()));
        named.map_err(|error| self.disk("syncing", error))?;
        self.new_names.clear();
        Ok(())
    }

    /// Active milliseconds of the run until now.
    pub fn active_ms(&self) -> Millis {
        self.before.saturating_add(self.clock.elapsed().saturating_sub(self.began))
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

    fn disk(&self, attempt: &'static str, error: io::Error) -> RecordError {
        RecordError::Disk { attempt, path: self.folder.join(TRACE), error }
    }
}

/// Takes the run's lock and writes down who has it.
fn own(run: &Path, clock: &dyn Clock) -> Result<File, RecordError> {
    let path = run.join("lock");
    let disk = |attempt, error| RecordError::Disk { attempt, path: path.clone(), error };
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut lock = open.map_err(|error| disk("opening", error))?;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(disk("locking", error.into())),
        }
        // Whoever only looks for the owner holds the lock too, shared and for a moment.
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(RecordError::Owned { run: run.to_owned(), owner: read_owner(&mut lock) });
            }
            Err(error) => return Err(disk("locking", error.into())),
        }
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let owner = Owner { pid: std::process::id(), host, since: clock.now().to_string() };
    let text = serde_json::to_string(&owner).map_err(|error| disk("writing", error.into()))?;
    let written = lock.set_len(0).and_then(|()| lock.write_all(text.as_bytes()));
    written.map_err(|error| disk("writing", error))?;
    Ok(lock)
}

/// Who owns the run in the folder `run` at this moment; `None` if nobody does.
///
/// # Errors
/// Where the lock cannot be looked at.
pub fn owner(run: &Path) -> io::Result<Option<Owner>> {
    let mut lock = match File::open(run.join("lock")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => Ok(Some(read_owner(&mut lock))),
        Err(error) => Err(error.into()),
    }
}

/// What the lock says; an owner that has not written it down yet is told as unknown.
fn read_owner(lock: &mut File) -> Owner {
    let mut text = String::new();
    let unknown = || Owner { pid: 0, host: "an unknown machine".to_owned(), since: "a moment ago".to_owned() };
    match lock.seek(SeekFrom::Start(0)).and_then(|_| lock.read_to_string(&mut text)) {
        Ok(_) => serde_json::from_str(&text).unwrap_or_else(|_| unknown()),
        Err(_) => unknown(),
    }
}

/// The blobs of the run in the folder `run`, for readers.
pub fn blobs(run: &Path) -> Blobs {
    Blobs::new(run)
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
        let mut record = Record::create(&run, Arc::new(Still), Box::new(|_, _| ())).unwrap();
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
}
