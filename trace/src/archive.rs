//! A run as one file, to be kept or opened elsewhere: a gzipped tar (ustar) of `<run>/blobs/…`, `<run>/inbox/…` and
//! `<run>/trace.jsonl`, in this order and each sorted, without times and owners. The same record gives the same bytes.

use crate::read::TRACE;
use crate::{Clock, Condition, Digest, Event, Reading, RunId, What, inbox};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of an archive's content, and of each kind of file in it: no run comes near, and nobody's disk is filled.
const MOST: u64 = 16 << 30;
const MOST_TRACE: u64 = 4 << 30;
const MOST_BLOB: u64 = 1 << 30;
const MOST_LETTER: u64 = 16 << 20;
/// The most files of an archive.
/// A file in the folder of a run that was imported, until a person has said that it may go on.
const IMPORTED: &str = "imported";
const MOST_FILES: usize = 500_000;

/// Why a run could not be exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
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
    /// The record is not what it was, so it would prove nothing elsewhere.
    #[error("{} is not intact ({why}), so no archive is made of it; `autosage show RUN --verify` tells all", run.display())]
    NotIntact {
        /// The run's folder.
        run: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The archive cannot be read, or holds what no export writes.
    #[error("this is no archive of a run: {0}")]
    Refused(String),
    /// Another record stands under the run's name.
    #[error("the run {run} is here already with another content, in {}; nothing was changed", folder.display())]
    Taken {
        /// The run.
        run: RunId,
        /// Its folder.
        folder: PathBuf,
    },
}

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The run.
    pub run: RunId,
    /// How many events.
    pub events: usize,
    /// How many blobs.
    pub blobs: usize,
    /// Bytes at the record's end that are no event and were left out.
    pub left_out: u64,
}

/// What came of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The run was not here before.
    New(Archived),
    /// The same record is here already.
    Known(Archived),
}

/// The name of the run that `events` are of: the one it started with, or the one under which it went on as a new one.
pub fn run_of(events: &[Event]) -> Option<&RunId> {
    let renamed = events.iter().rev().find_map(|event| match &event.what {
        What::Recovered(recovered) => recovered.run.as_ref(),
        _ => None,
    });
    renamed.or(match &events.first()?.what {
        What::Started(started) => Some(&started.run),
        _ => None,
    })
}

/// Writes the run in the folder `run` into `to`, up to its last whole line; it may be worked on meanwhile.
///
/// # Errors
/// Where its middle, or a blob that it names, is damaged; or where reading or writing fails. What was written by then is no
/// archive.
pub fn export(run: &Path, to: impl Write) -> Result<Archived, ArchiveError> {
    let disk = |attempt, path: &Path, error| ArchiveError::Disk { attempt, path: path.to_owned(), error };
    let broken = |why: String| ArchiveError::NotIntact { run: run.to_owned(), why };
    let path = run.join(TRACE);
    let (events, reading) = Reading::all(run).map_err(|error| disk("reading", &path, error))?;
    let left_out = match reading.condition() {
        Condition::Intact => 0,
        Condition::Torn { bytes, .. } => *bytes,
        Condition::Damaged { line, damage, .. } => return Err(broken(format!("line {line}: {damage}"))),
    };
    let name = run_of(&events).ok_or_else(|| broken("it does not begin with `Started`".to_owned()))?.clone();
    let named: BTreeSet<Digest> = events.iter().flat_map(|event| event.what.blobs()).collect();
    let blobs = crate::blobs(run);
    let blob = |digest: &Digest| blobs.get(digest).map_err(|error| broken(error.to_string()));
    // Before anything is written, for what went to standard output cannot be taken back.
    named.iter().try_for_each(|digest| blob(digest).map(|_| ()))?;
    let write = |error| disk("writing the archive of", run, error);
    let mut archive = tar::Builder::new(GzBuilder::new().write(to, Compression::default()));
    for digest in &named {
        let bytes = blob(digest)?;
        add(&mut archive, &format!("{name}/blobs/{digest}"), bytes.len() as u64, bytes.as_slice()).map_err(write)?;
    }
    let delivered = delivered(&events);
    let letters = inbox::undelivered(run, &delivered).map_err(|error| disk("reading the inbox of", run, error))?;
    for (letter, bytes) in letters.iter().filter(|(letter, _)| is_letter(letter)) {
        add(&mut archive, &format!("{name}/inbox/{letter}"), bytes.len() as u64, bytes.as_slice()).map_err(write)?;
    }
    let good = reading.good_bytes();
    let lines = File::open(&path).map_err(|error| disk("reading", &path, error))?.take(good);
    add(&mut archive, &format!("{name}/{TRACE}"), good, lines).map_err(write)?;
    archive.into_inner().and_then(|gzip| gzip.finish()?.flush()).map_err(write)?;
    Ok(Archived { run: name, events: events.len(), blobs: named.len(), left_out })
}

fn add(archive: &mut tar::Builder<impl Write>, name: &str, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(0);
    header.set_cksum();
    archive.append(&header, content)
}

fn delivered(events: &[Event]) -> BTreeSet<String> {
    let names = events.iter().filter_map(|event| match &event.what {
        What::Delivered(delivered) if !delivered.name.is_empty() => Some(delivered.name.clone()),
        _ => None,
    });
    names.collect()
}

/// Whether `name` may be that of a letter: what we give, and nothing that could lead elsewhere.
fn is_letter(name: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b":.-_".contains(&byte);
    (1..=100).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(sound)
}

/// Reads an archive and puts its run into the folder `runs`, whole or not at all, under its own name.
///
/// # Errors
/// Where the archive holds anything but what [`export`] writes, where its record or a blob does not verify, where another
/// record stands under its name, or where the disk refuses.
pub fn import(from: impl Read, runs: &Path, clock: &dyn Clock) -> Result<Imported, ArchiveError> {
    let disk = |attempt, path: &Path, error| ArchiveError::Disk { attempt, path: path.to_owned(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(runs).map_err(|error| disk("making", runs, error))?;
    let staging = Staging::make(runs, clock)?;
    let name = staging.unpack(from)?;
    let archived = staging.verify(&name)?;
    let folder = runs.join(name.as_str());
    if folder.exists() {
        let (_, here) = Reading::all(&folder).map_err(|error| disk("reading", &folder, error))?;
        let (_, ours) = Reading::all(&staging.folder).map_err(|error| disk("reading", &staging.folder, error))?;
        return match here.digest() == ours.digest() {
            true => Ok(Imported::Known(archived)),
            false => Err(ArchiveError::Taken { run: name, folder }),
        };
    }
    let marked = OpenOptions::new().write(true).create_new(true).mode(0o600).open(staging.folder.join(IMPORTED));
    marked.map_err(|error| disk("marking", &staging.folder, error))?;
    let synced = File::open(&staging.folder).and_then(|opened| Ok(syncfs(opened)?));
    synced.map_err(|error| disk("syncing", &staging.folder, error))?;
    match renameat_with(CWD, &staging.folder, CWD, &folder, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => return Err(ArchiveError::Taken { run: name, folder }),
        Err(error) => return Err(disk("naming", &folder, error.into())),
    }
    File::open(runs).and_then(|runs| runs.sync_all()).map_err(|error| disk("syncing", runs, error))?;
    Ok(Imported::New(archived))
}

/// Whether the run in the folder `run` was imported and nobody has vouched for it: what its record says of a place to work
/// in, of a model's address and of rights was said elsewhere.
pub fn is_imported(run: &Path) -> bool {
    run.join(IMPORTED).symlink_metadata().is_ok()
}

/// Takes an imported run for one of this machine's own from now on.
///
/// # Errors
/// Where the disk refuses.
pub fn vouch(run: &Path) -> io::Result<()> {
    match fs::remove_file(run.join(IMPORTED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Where an archive is unpacked before it is known to be sound; it goes with this, unless it was given a name.
struct Staging {
    folder: PathBuf,
    /// Held, so that nobody takes it for what a dead process left.
    _lock: File,
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is removed when runs are next pruned.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Staging {
    fn make(runs: &Path, clock: &dyn Clock) -> Result<Staging, ArchiveError> {
        let random = getrandom::u64().map_err(|error| ArchiveError::Refused(format!("no random name can be made: {error}")))?;
        let folder = runs.join(format!(".import-{random:016x}"));
        let disk = |error| ArchiveError::Disk { attempt: "making", path: folder.clone(), error };
        let mut private = DirBuilder::new();
        private.mode(0o700).create(&folder).map_err(disk)?;
        private.create(folder.join("blobs")).and_then(|()| private.create(folder.join("inbox"))).map_err(disk)?;
        let lock = crate::lock::own(&folder, clock).map_err(|error| disk(io::Error::other(error)))?;
        Ok(Staging { folder, _lock: lock })
    }

    /// Writes every file of the archive; returns the name of its run.
    fn unpack(&self, from: impl Read) -> Result<RunId, ArchiveError> {
        let unreadable = |error: io::Error| ArchiveError::Refused(format!("reading it: {error}"));
        let mut from = BufReader::new(from);
        let is_gzip = from.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
        let plain: Box<dyn Read + '_> = if is_gzip { Box::new(GzDecoder::new(from)) } else { Box::new(from) };
        let mut archive = tar::Archive::new(plain.take(MOST));
        let (mut run, mut seen) = (None, BTreeSet::new());
        // Raw: names come from where they are checked, and from no header that speaks for the next one.
        for entry in archive.entries().map_err(unreadable)?.raw(true) {
            let mut entry = entry.map_err(unreadable)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let refused = |why: &str| ArchiveError::Refused(format!("`{}`: {why}", name.escape_debug()));
            if entry.header().entry_type() != tar::EntryType::Regular {
                return Err(refused("it is no plain file"));
            }
            let (id, place) = Place::of(&name).ok_or_else(|| refused("no such file belongs to a run"))?;
            if *run.get_or_insert_with(|| id.clone()) != id {
                return Err(refused("it is of another run than the file before"));
            }
            if !seen.insert(name.clone()) || seen.len() > MOST_FILES {
                return Err(refused("it is there twice, or there are too many files"));
            }
            if entry.header().size().map_err(unreadable)? > place.most() {
                return Err(refused("it is larger than such a file can be"));
            }
            let digest = self.write(&place, &mut entry).map_err(|error| ArchiveError::Refused(format!("`{name}`: {error}")))?;
            if let Place::Blob(named) = place
                && digest != named
            {
                return Err(refused("its content does not fit its name"));
            }
        }
        run.ok_or_else(|| ArchiveError::Refused("it holds no file".to_owned()))
    }

    fn write(&self, place: &Place, content: &mut impl Read) -> io::Result<Digest> {
        let path = match place {
            Place::Trace => self.folder.join(TRACE),
            Place::Blob(digest) => self.folder.join("blobs").join(digest.to_string()),
            Place::Letter(name) => self.folder.join("inbox").join(name),
        };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 64 << 10]);
        loop {
            match content.read(&mut buffer)? {
                0 => return Ok(hasher.finalize().into()),
                read => {
                    hasher.update(&buffer[..read]);
                    file.write_all(&buffer[..read])?;
                }
            }
        }
    }

    /// Whether what was unpacked is the whole of an intact run, and nothing else.
    fn verify(&self, name: &RunId) -> Result<Archived, ArchiveError> {
        let refused = |why: String| Err(ArchiveError::Refused(why));
        let (events, reading) = match Reading::all(&self.folder) {
            Ok(read) => read,
            Err(error) => return refused(format!("its events cannot be read: {error}")),
        };
        match reading.condition() {
            Condition::Intact => {}
            Condition::Torn { bytes, damage } => return refused(format!("its last {bytes} bytes are no event: {damage}")),
            Condition::Damaged { line, damage, .. } => return refused(format!("its line {line} is damaged: {damage}")),
        }
        if run_of(&events) != Some(name) {
            return refused(format!("its record is not that of the run {name}"));
        }
        let named: BTreeSet<String> =
            events.iter().flat_map(|event| event.what.blobs()).map(|digest| digest.to_string()).collect();
        let read = |error| ArchiveError::Disk { attempt: "reading", path: self.folder.clone(), error };
        let entries = fs::read_dir(self.folder.join("blobs")).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let kept: BTreeSet<String> =
            entries.map_err(read)?.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if let Some(other) = named.symmetric_difference(&kept).next() {
            return refused(format!("the blob {other} is missing, or no event names it"));
        }
        let letters = inbox::waiting(&self.folder, &BTreeSet::new()).map_err(read)?;
        if let Some((path, why)) = letters.unreadable.first() {
            return refused(format!("{} is no letter: {why}", path.display()));
        }
        Ok(Archived { run: name.clone(), events: events.len(), blobs: named.len(), left_out: 0 })
    }
}

/// The closed list of what an archive may hold.
enum Place {
    Trace,
    Blob(Digest),
    Letter(String),
}

impl Place {
    fn of(name: &str) -> Option<(RunId, Place)> {
        let (run, rest) = name.split_once('/')?;
        let place = match rest.split_once('/') {
            None if rest == TRACE => Place::Trace,
            Some(("blobs", digest)) => Place::Blob(digest.parse().ok()?),
            Some(("inbox", letter)) if is_letter(letter) => Place::Letter(letter.to_owned()),
            _ => return None,
        };
        Some((run.parse().ok()?, place))
    }

    fn most(&self) -> u64 {
        match self {
            Place::Trace => MOST_TRACE,
            Place::Blob(_) => MOST_BLOB,
            Place::Letter(_) => MOST_LETTER,
        }
    }
}
