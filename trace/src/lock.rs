//! Who owns a run: the lock that one process holds, and everybody may look at.

use crate::{Clock, RecordError};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A lock is written to, so a link in its place must lead nowhere.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;

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

/// A run that is held and not worked on: nobody else can own it until this is dropped.
#[derive(Debug)]
pub struct Held {
    /// The lock is held as long as this file is open.
    _lock: File,
}

/// Holds the run in the folder `run`, so that nobody begins to work on it.
///
/// # Errors
/// Where another process owns it, or the disk refuses.
pub fn hold(run: &Path, clock: &dyn Clock) -> Result<Held, RecordError> {
    own(run, clock).map(|lock| Held { _lock: lock })
}

/// Takes the run's lock and writes down who has it.
pub(crate) fn own(run: &Path, clock: &dyn Clock) -> Result<File, RecordError> {
    let path = run.join("lock");
    let disk = |attempt, error| RecordError::Disk { attempt, path: path.clone(), error };
    let open =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK).open(&path);
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
