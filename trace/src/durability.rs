//! How much a record survives, and the thread that puts it on the disk.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// What a record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, whatever ends it: what was written is in the system's memory. Nothing is synced.
    Process,
    /// A power cut too: what a call that can change the world stands on is on the disk before the call begins, and a turn of
    /// the user is on the disk before its end is told.
    #[default]
    Power,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Process => "process",
            Durability::Power => "power",
        })
    }
}

impl FromStr for Durability {
    type Err = UnknownDurability;
    fn from_str(text: &str) -> Result<Durability, UnknownDurability> {
        match text {
            "process" => Ok(Durability::Process),
            "power" => Ok(Durability::Power),
            _ => Err(UnknownDurability(text.to_owned())),
        }
    }
}

/// A word that names no durability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is nothing that a record can survive: expected process or power")]
pub struct UnknownDurability(String);

/// The thread of one record: it syncs what it was asked to, in the order blobs, record, names of new folders, while the run
/// goes on. It begins with the first wish and ends, its work done, when this is dropped.
#[derive(Debug)]
pub(crate) struct Syncing {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    trace: File,
    blobs: PathBuf,
    work: Mutex<Work>,
    changed: Condvar,
}

/// What is asked of the thread, and how far it is.
#[derive(Debug, Default)]
struct Work {
    /// Contents that were kept and are not on the disk yet.
    blobs: Vec<PathBuf>,
    /// The wish that waits for the last of them.
    last_blob: u64,
    /// Whether the record's lines are to be synced.
    trace: bool,
    /// Folders with new names in them: a file that is synced can be lost with its name.
    new_names: Vec<PathBuf>,
    /// How many wishes there were, and how many of them are fulfilled.
    asked: u64,
    done: u64,
    /// What the disk refused. After that nobody knows what is on it, so nothing is tried again.
    refused: Option<Refusal>,
    ends: bool,
}

/// An I/O error that can be told more than once.
#[derive(Clone, Debug)]
struct Refusal {
    code: Option<i32>,
    kind: io::ErrorKind,
    words: String,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { code: error.raw_os_error(), kind: error.kind(), words: error.to_string() }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> io::Error {
        match refusal.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(refusal.kind, refusal.words),
        }
    }
}

impl Syncing {
    /// For the record in `trace`, whose blobs lie in `blobs`. `new_names` are folders with names that are not on the disk.
    pub fn new(trace: File, blobs: &Path, new_names: Vec<PathBuf>) -> Syncing {
        let work = Mutex::new(Work { new_names, ..Work::default() });
        let shared = Shared { trace, blobs: blobs.to_owned(), work, changed: Condvar::new() };
        Syncing { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// The content at `path` was kept: it goes to the disk now.
    pub fn blob(&self, path: PathBuf) {
        self.ask(|work| {
            work.blobs.push(path);
            work.last_blob = work.asked;
        });
    }

    /// The lines that were written so far go to the disk, the blobs first. Returns the wish, for [`Syncing::wait`].
    pub fn trace(&self) -> u64 {
        self.ask(|work| work.trace = true)
    }

    /// Returns when every blob that was kept is on the disk.
    pub fn wait_for_blobs(&self) -> io::Result<()> {
        let last = self.shared.lock().last_blob;
        self.wait(last)
    }

    /// Returns when `wish` is fulfilled.
    pub fn wait(&self, wish: u64) -> io::Result<()> {
        let mut work = self.shared.lock();
        while work.done < wish && work.refused.is_none() {
            work = self.shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        work.refused.clone().map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    /// What the disk refused, if it did.
    pub fn check(&self) -> io::Result<()> {
        self.wait(0)
    }

    /// Whether something was asked, and all of it is done.
    #[cfg(test)]
    pub fn rests(&self) -> bool {
        let work = self.shared.lock();
        work.asked > 0 && work.done == work.asked && work.refused.is_none()
    }

    fn ask(&self, wish: impl FnOnce(&mut Work)) -> u64 {
        let mut work = self.shared.lock();
        work.asked += 1;
        wish(&mut work);
        let asked = work.asked;
        self.shared.changed.notify_all();
        drop(work);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = self.shared.clone();
            match thread::Builder::new().name("record".to_owned()).spawn(move || shared.go()) {
                Ok(begun) => *thread = Some(begun),
                Err(error) => self.shared.lock().refused = Some(error.into()),
            }
        }
        asked
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It cannot panic; and if it did, there is nobody left to be told.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: everything that was asked until now is done as one, until nothing more can come.
    fn go(&self) {
        loop {
            let mut work = self.lock();
            while work.done == work.asked && !work.ends {
                work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
            }
            if work.done == work.asked {
                return;
            }
            let (asked, blobs, trace) = (work.asked, std::mem::take(&mut work.blobs), std::mem::take(&mut work.trace));
            let new_names = if trace { std::mem::take(&mut work.new_names) } else { Vec::new() };
            drop(work);
            let synced = self.sync(&blobs, trace, &new_names);
            let mut work = self.lock();
            work.done = asked;
            work.refused = synced.err().map(Refusal::from);
            self.changed.notify_all();
            if work.refused.is_some() {
                return;
            }
        }
    }

    fn sync(&self, blobs: &[PathBuf], trace: bool, new_names: &[PathBuf]) -> io::Result<()> {
        blobs.iter().try_for_each(|path| File::open(path)?.sync_data())?;
        if !blobs.is_empty() {
            File::open(&self.blobs)?.sync_all()?;
        }
        if trace {
            self.trace.sync_data()?;
        }
        new_names.iter().try_for_each(|folder| File::open(folder)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_wish_is_fulfilled_before_its_wait_ends() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trace"), "line\n").unwrap();
        fs::write(folder.path().join("blob"), "content").unwrap();
        let syncing = Syncing::new(File::open(folder.path().join("trace")).unwrap(), folder.path(), vec![folder.path().into()]);
        syncing.wait_for_blobs().unwrap();
        assert!(syncing.thread.lock().unwrap().is_none(), "nobody asked for anything yet");
        syncing.blob(folder.path().join("blob"));
        let wish = syncing.trace();
        syncing.wait(wish).unwrap();
        let work = syncing.shared.lock();
        assert!(work.done == 2 && work.blobs.is_empty() && work.new_names.is_empty() && !work.trace, "{work:?}");
    }

    #[test]
    fn what_the_disk_refused_is_told_every_time_and_nothing_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trace"), "line\n").unwrap();
        let syncing = Syncing::new(File::open(folder.path().join("trace")).unwrap(), folder.path(), Vec::new());
        syncing.blob(folder.path().join("nowhere"));
        assert_eq!(syncing.wait_for_blobs().unwrap_err().kind(), io::ErrorKind::NotFound);
        let wish = syncing.trace();
        assert_eq!(syncing.wait(wish).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(syncing.check().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_thread_ends_with_its_owner_and_its_work() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trace"), "line\n").unwrap();
        let syncing = Syncing::new(File::open(folder.path().join("trace")).unwrap(), folder.path(), Vec::new());
        syncing.trace();
        let shared = syncing.shared.clone();
        drop(syncing);
        let work = shared.lock();
        assert_eq!((work.asked, work.done, Arc::strong_count(&shared)), (1, 1, 1));
    }
}
