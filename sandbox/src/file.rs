//! What can be done with files inside an environment: read, write, list. Each runs in a worker behind the walls of a
//! command, so that the kernel decides what a path may reach, links and all.
//!
//! A program puts [`OPS`] into its own table and calls the async functions here; relative paths start at the workspace.

use crate::{CallError, Environment, Op};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace::Digest;

/// The operations of this module, for a program's table.
pub const OPS: [(&str, Op); 3] = [("read", read_op), ("write", write_op), ("list", list_op)];

/// Files above this size, in bytes, have no digest and are read in pieces only.
pub const LARGEST_WHOLE: u64 = 48 << 20;

/// Asks for a file's bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Read {
    /// The file.
    pub path: String,
    /// Where to start, in bytes.
    pub offset: u64,
    /// The most bytes wanted; never more than [`LARGEST_WHOLE`] are given.
    pub most: u64,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Its path, absolute and without links. Bytes that are not UTF-8 stand as `\xNN`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The digest of all of it; `None` above [`LARGEST_WHOLE`].
    pub digest: Option<Digest>,
    /// The bytes that were asked for.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// Asks for a file to be written as a whole. Missing folders are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write {
    /// The file. A link is followed; one that leads nowhere is refused.
    pub path: String,
    /// What has to be there.
    pub expected: Expected,
    /// What will be there.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// What has to be at a path before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// It does not matter.
    Anything,
    /// Nothing.
    Nothing,
    /// A file of this digest.
    Same(Digest),
}

/// A file was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its path, absolute and without links.
    pub path: String,
    /// The digest of what it holds now.
    pub digest: Digest,
    /// Whether there was nothing before.
    pub created: bool,
}

/// Asks for the names in a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct List {
    /// The folder.
    pub path: String,
    /// The most names wanted.
    pub most: usize,
}

/// The names in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Its path, absolute and without links.
    pub path: String,
    /// What is in it, by name.
    pub entries: Vec<Entry>,
    /// How many names there are in all.
    pub total: usize,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name. Bytes that are not UTF-8 stand as `\xNN`.
    pub name: String,
    /// What it is.
    pub sort: Sort,
    /// Its size in bytes.
    pub size: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, socket or pipe.
    Other,
}

/// Why a file was not read or written: an answer for whoever asked, not a failure of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// There is nothing, or nothing that may be seen.
    #[error("{0} does not exist")]
    Missing(String),
    /// A symbolic link that leads to nothing.
    #[error("{0} is a symbolic link that leads to nothing here")]
    Dangling(String),
    /// A folder where a file was expected.
    #[error("{0} is a folder")]
    Folder(String),
    /// A device, socket or pipe, or no folder where one was expected.
    #[error("{0} is not a {1}")]
    NotA(String, String),
    /// Something is there that should not be.
    #[error("{0} exists already")]
    Exists(String),
    /// It is not what was expected.
    #[error("{0} has changed")]
    Changed(String),
    /// It is not allowed.
    #[error("{0}: {1}")]
    Denied(String, String),
    /// Anything else that the system said.
    #[error("{0}: {1}")]
    Failed(String, String),
}

/// Reads a file of an environment.
pub async fn read(environment: &Environment, ask: &Read, timeout: Duration) -> Result<Result<Content, Refusal>, CallError> {
    let answer = environment.call("read", &joined(ask, &[]), timeout).await?;
    let (content, bytes) = parted::<Result<Content, Refusal>>(&answer).map_err(|e| broke("read", e))?;
    Ok(content.map(|content| Content { bytes: bytes.to_vec(), ..content }))
}

/// Writes a file of an environment: all of it or nothing.
pub async fn write(environment: &Environment, ask: &Write, timeout: Duration) -> Result<Result<Written, Refusal>, CallError> {
    let answer = environment.call("write", &joined(ask, &ask.bytes), timeout).await?;
    Ok(parted(&answer).map_err(|e| broke("write", e))?.0)
}

/// Lists a folder of an environment.
pub async fn list(environment: &Environment, ask: &List, timeout: Duration) -> Result<Result<Listing, Refusal>, CallError> {
    let answer = environment.call("list", &joined(ask, &[]), timeout).await?;
    Ok(parted(&answer).map_err(|e| broke("list", e))?.0)
}

fn broke(op: &str, error: serde_json::Error) -> CallError {
    CallError::Broke { op: op.to_owned(), reason: format!("its answer is not understood: {error}") }
}

/// A line of JSON and the bytes after it: what these operations take and give.
fn joined<T: Serialize>(head: &T, body: &[u8]) -> Vec<u8> {
    let mut all = serde_json::to_vec(head).expect("plain structs of texts and numbers always become JSON");
    all.push(b'\n');
    all.extend_from_slice(body);
    all
}

fn parted<T: DeserializeOwned>(all: &[u8]) -> Result<(T, &[u8]), serde_json::Error> {
    let end = all.iter().position(|byte| *byte == b'\n').unwrap_or(all.len());
    let head = serde_json::from_slice(&all[..end])?;
    Ok((head, all.get(end + 1..).unwrap_or_default()))
}

/// A name as text.
fn shown(name: &OsStr) -> String {
    name.as_bytes().utf8_chunks().fold(String::new(), |mut text, chunk| {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
        text
    })
}

fn read_op(request: &[u8]) -> Vec<u8> {
    let answer = parted::<Read>(request).map_err(unreadable).and_then(|(ask, _)| do_read(&ask));
    let bytes = answer.as_ref().map(|content| content.bytes.clone()).unwrap_or_default();
    joined(&answer, &bytes)
}

fn write_op(request: &[u8]) -> Vec<u8> {
    let answer = parted::<Write>(request).map_err(unreadable);
    joined(&answer.and_then(|(ask, bytes)| do_write(&Write { bytes: bytes.to_vec(), ..ask })), &[])
}

fn list_op(request: &[u8]) -> Vec<u8> {
    joined(&parted::<List>(request).map_err(unreadable).and_then(|(ask, _)| do_list(&ask)), &[])
}

fn unreadable(error: serde_json::Error) -> Refusal {
    Refusal::Failed("request".to_owned(), error.to_string())
}

fn refusal(path: &str, error: &io::Error) -> Refusal {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => Refusal::Missing(path),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Refusal::Denied(path, error.to_string()),
        io::ErrorKind::IsADirectory => Refusal::Folder(path),
        io::ErrorKind::NotADirectory => Refusal::NotA(path, "folder".to_owned()),
        _ => Refusal::Failed(path, error.to_string()),
    }
}

fn do_read(ask: &Read) -> Result<Content, Refusal> {
    let fail = |error: io::Error| refusal(&ask.path, &error);
    let path = resolved(&ask.path)?;
    // A pipe or device must not make the worker wait; it is refused below.
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).map_err(fail)?;
    let size = regular(&ask.path, &file.metadata().map_err(fail)?)?;
    let most = usize::try_from(ask.most.min(LARGEST_WHOLE)).unwrap_or(usize::MAX);
    let (digest, bytes) = if size <= LARGEST_WHOLE {
        let mut whole = Vec::new();
        file.take(LARGEST_WHOLE).read_to_end(&mut whole).map_err(fail)?;
        let start = usize::try_from(ask.offset).unwrap_or(usize::MAX).min(whole.len());
        let end = start.saturating_add(most).min(whole.len());
        (Some(Digest::of(&whole)), whole[start..end].to_vec())
    } else {
        let mut piece = Vec::new();
        file.seek(SeekFrom::Start(ask.offset)).map_err(fail)?;
        file.take(most as u64).read_to_end(&mut piece).map_err(fail)?;
        (None, piece)
    };
    Ok(Content { path: shown(path.as_os_str()), size, digest, bytes })
}

/// The size of a regular file; anything else is refused.
fn regular(path: &str, metadata: &Metadata) -> Result<u64, Refusal> {
    if metadata.is_dir() {
        Err(Refusal::Folder(path.to_owned()))
    } else if metadata.is_file() {
        Ok(metadata.len())
    } else {
        Err(Refusal::NotA(path.to_owned(), "file".to_owned()))
    }
}

/// The path of something that exists, without links.
fn resolved(path: &str) -> Result<PathBuf, Refusal> {
    Path::new(path).canonicalize().map_err(|error| {
        let dangling = error.kind() == io::ErrorKind::NotFound && Path::new(path).is_symlink();
        if dangling { Refusal::Dangling(path.to_owned()) } else { refusal(path, &error) }
    })
}

fn do_write(ask: &Write) -> Result<Written, Refusal> {
    let fail = |error: io::Error| refusal(&ask.path, &error);
    let (path, before) = match resolved(&ask.path) {
        Ok(path) => {
            let metadata = path.metadata().map_err(fail)?;
            regular(&ask.path, &metadata)?;
            (path, Some(metadata))
        }
        Err(Refusal::Missing(_)) => (new_path(&ask.path)?, None),
        Err(other) => return Err(other),
    };
    match (ask.expected, &before) {
        (Expected::Anything, _) | (Expected::Nothing, None) => {}
        (Expected::Nothing, Some(_)) => return Err(Refusal::Exists(ask.path.clone())),
        (Expected::Same(_), None) => return Err(Refusal::Missing(ask.path.clone())),
        (Expected::Same(digest), Some(_)) => {
            if Digest::of(&std::fs::read(&path).map_err(fail)?) != digest {
                return Err(Refusal::Changed(ask.path.clone()));
            }
        }
    }
    match &before {
        Some(before) => change(&path, &ask.bytes, before).map_err(fail)?,
        None => replace(&path, &ask.bytes, None).map_err(fail)?,
    }
    Ok(Written { path: shown(path.as_os_str()), digest: Digest::of(&ask.bytes), created: before.is_none() })
}

/// Gives a file that is there, and was as `before` says, a new content: for operations of a program's own table. Nobody ever
/// sees half of it where the file can be replaced as a whole.
///
/// # Errors
/// Where neither the folder nor the file may be written, or the disk is full.
pub fn change(path: &Path, bytes: &[u8], before: &Metadata) -> io::Result<()> {
    // Another name of the file, or its owner, would be lost with a new file in its place.
    if before.nlink() > 1 || before.uid() != rustix::process::geteuid().as_raw() {
        return overwrite(path, bytes);
    }
    match replace(path, bytes, Some(before.permissions().mode() & 0o777)) {
        // A mount point cannot be replaced, nor anything in a folder that may not be written.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EBUSY | libc::EACCES | libc::EPERM | libc::EROFS)) => {
            overwrite(path, bytes)
        }
        other => other,
    }
}

/// The path of a file that does not exist yet, without links; its folder is made.
fn new_path(path: &str) -> Result<PathBuf, Refusal> {
    let fail = |error: io::Error| refusal(path, &error);
    let name = Path::new(path).file_name().ok_or_else(|| Refusal::NotA(path.to_owned(), "file".to_owned()))?;
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    Ok(folder.canonicalize().map_err(fail)?.join(name))
}

fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes)
}

/// Puts a new file in the place of whatever is there, so that nobody ever sees half of it.
fn replace(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().chars().take(100).collect::<String>()).unwrap_or_default();
    let mut serial = [0u8; 6];
    rustix::rand::getrandom(&mut serial, rustix::rand::GetRandomFlags::empty())?;
    let serial: String = serial.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = path.with_file_name(format!(".{name}.{serial}"));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
    let done = fill(&mut file, bytes, mode).and_then(|()| std::fs::rename(&draft, path));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&draft);
    }
    done
}

fn fill(file: &mut File, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    file.write_all(bytes)?;
    match mode {
        Some(mode) => file.set_permissions(std::fs::Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

fn do_list(ask: &List) -> Result<Listing, Refusal> {
    let fail = |error: io::Error| refusal(&ask.path, &error);
    let path = resolved(&ask.path)?;
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // What vanished meanwhile is not there.
        let Ok(metadata) = entry.metadata() else { continue };
        let sort = match metadata.file_type() {
            sort if sort.is_file() => Sort::File,
            sort if sort.is_dir() => Sort::Folder,
            sort if sort.is_symlink() => Sort::Link,
            _ => Sort::Other,
        };
        entries.push(Entry { name: shown(&entry.file_name()), sort, size: metadata.len() });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let total = entries.len();
    entries.truncate(ask.most);
    Ok(Listing { path: shown(path.as_os_str()), entries, total })
}
