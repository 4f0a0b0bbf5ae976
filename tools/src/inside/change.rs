//! Writes and edits files, each only while it is still what the agent has seen.

use super::words;
use crate::edit::{self, How, Occurrences};
use crate::names;
use crate::window::{Ends, Long, Part, Window};
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trace::{Digest, Secrets};

/// The name of the operation [`write`].
pub const WRITE: &str = "write_seen";
/// The name of the operation [`edit`].
pub const EDIT: &str = "edit_seen";
/// The largest file that is changed, in bytes.
const LARGEST: u64 = 64 << 20;
/// The most lines of an edited place that are shown.
const SHOWN: usize = 40;

/// A new content for a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Writing {
    /// The file.
    pub path: String,
    /// All that it is to hold.
    pub content: String,
    /// What it holds now, as far as the agent knows; `None`: there is no such file.
    pub expect: Option<Digest>,
}

/// A passage of a file and what comes in its place.
#[derive(Debug, Serialize, Deserialize)]
pub struct Editing {
    /// The file.
    pub path: String,
    /// The passage.
    pub old: String,
    /// What comes in its place.
    pub new: String,
    /// Whether every occurrence is meant.
    pub all: bool,
    /// What it holds now, as far as the agent knows.
    pub expect: Option<Digest>,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer<Done> {
    /// The file was changed.
    Done(Done),
    /// The file is not what was expected; nothing was changed.
    Differs {
        /// The path without links.
        path: String,
        /// The digest of what it holds.
        digest: Digest,
    },
    /// It cannot be done; nothing was changed.
    Refused(String),
}

/// A file that was written.
#[derive(Debug, Serialize, Deserialize)]
pub struct Written {
    /// The path without links.
    pub path: String,
    /// The digest of what it holds now.
    pub digest: Digest,
    /// Whether there was none before.
    pub made: bool,
    /// Lines that it has now.
    pub lines: u64,
    /// Whether its `\r\n` line ends were kept although the content had others.
    pub kept_crlf: bool,
}

/// A file that was edited.
#[derive(Debug, Serialize, Deserialize)]
pub struct Edited {
    /// The path without links.
    pub path: String,
    /// The digest of what it holds now.
    pub digest: Digest,
    /// Of each place the first and the last changed line, from 1.
    pub lines: Vec<(usize, usize)>,
    /// How the passage was found.
    pub how: How,
    /// What the first place now reads, with line numbers.
    pub now: String,
}

/// Why a change was not made.
enum Stop {
    Differs { path: PathBuf, digest: Digest },
    Refused(String),
    Error(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Error(error)
    }
}

fn refuse(why: impl Into<String>) -> Stop {
    Stop::Refused(why.into())
}

fn answer<Done>(result: Result<Done, Stop>) -> Answer<Done> {
    match result {
        Ok(done) => Answer::Done(done),
        Err(Stop::Differs { path, digest }) => Answer::Differs { path: names::shown(&path), digest },
        Err(Stop::Refused(why)) => Answer::Refused(why),
        Err(Stop::Error(error)) => Answer::Refused(words(&error)),
    }
}

/// Gives a file a new content. Folders on the way are made.
pub fn write(request: Writing) -> Answer<Written> {
    answer(write_file(&request))
}

/// Replaces a passage of a file.
pub fn edit(request: Editing, secrets: &Secrets) -> Answer<Edited> {
    answer(edit_file(&request, secrets))
}

fn write_file(request: &Writing) -> Result<Written, Stop> {
    let path = names::meant(&request.path);
    let (path, content, before) = match Before::load(&path, request.expect)? {
        Some(before) => (before.path.clone(), before.with_its_ends(&request.content), Some(before)),
        None => (path, request.content.clone(), None),
    };
    match &before {
        Some(before) => before.replace(content.as_bytes())?,
        None => make(&path, content.as_bytes())?,
    }
    // A new file's path may lead through links too.
    let path = fs::canonicalize(&path)?;
    let lines = content.split_terminator('\n').count() as u64;
    let kept_crlf = content.len() != request.content.len();
    let digest = Digest::of(content.as_bytes());
    Ok(Written { path: names::shown(&path), digest, made: before.is_none(), lines, kept_crlf })
}

fn edit_file(request: &Editing, secrets: &Secrets) -> Result<Edited, Stop> {
    let Some(before) = Before::load(&names::meant(&request.path), request.expect)? else {
        return Err(refuse("there is no such file; write makes one"));
    };
    let text = std::str::from_utf8(&before.bytes)
        .map_err(|error| refuse(format!("byte {} is not UTF-8: change it with bash", error.valid_up_to())))?;
    let occurrences = if request.all { Occurrences::All } else { Occurrences::One };
    let edited = edit::edit(text, &request.old, &request.new, occurrences).map_err(|refusal| refuse(refusal.to_string()))?;
    before.replace(edited.text.as_bytes())?;
    let (first, last) = edited.lines.first().copied().unwrap_or((1, 1));
    let part = Part { from: first as u64, lines: (last - first + 1).min(SHOWN), bytes: usize::MAX };
    let mut window = Window::new(part, Long::Cut);
    let mut hiding = secrets.stream();
    hiding.push(edited.text.as_bytes(), &mut |piece| window.take(piece));
    hiding.finish(&mut |piece| window.take(piece));
    let digest = Digest::of(edited.text.as_bytes());
    let path = names::shown(&before.path);
    Ok(Edited { path, digest, lines: edited.lines, how: edited.how, now: window.finish().text })
}

/// A file as it is before a change.
struct Before {
    /// Without links.
    path: PathBuf,
    bytes: Vec<u8>,
    metadata: Metadata,
}

impl Before {
    /// The file at `path`, if there is one, and if it is what is expected.
    fn load(path: &Path, expect: Option<Digest>) -> Result<Option<Before>, Stop> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::read_link(path) {
                    Ok(target) => Err(refuse(format!("this is a link to {}, which is not there", names::shown(&target)))),
                    Err(_) => Ok(None),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let metadata = fs::metadata(&path)?;
        if metadata.is_dir() {
            return Err(refuse("this is a folder"));
        }
        if !metadata.is_file() {
            return Err(refuse("this is not a file"));
        }
        if metadata.len() > LARGEST {
            return Err(refuse("this file is larger than 64 MiB: change it with bash"));
        }
        let bytes = fs::read(&path)?;
        let digest = Digest::of(&bytes);
        if expect != Some(digest) {
            return Err(Stop::Differs { path, digest });
        }
        Ok(Some(Before { path, bytes, metadata }))
    }

    /// `content`, with `\r\n` where all line ends of the file are such and all of `content` are not.
    fn with_its_ends(&self, content: &str) -> String {
        let mut window = Window::new(Part { from: u64::MAX, lines: 1, bytes: 0 }, Long::Cut);
        window.push(&self.bytes);
        match window.finish().ends {
            Ends::Crlf if !content.contains("\r\n") => content.replace('\n', "\r\n"),
            Ends::Crlf | Ends::Lf | Ends::Mixed => content.to_owned(),
        }
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        sandbox::file::change(&self.path, bytes, &self.metadata)
    }
}

/// Makes a file that must not be there yet.
fn make(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(refuse("a file was made there at this very moment: read it first"));
        }
        opened => opened?,
    };
    file.write_all(bytes).map_err(|error| {
        // What is there is not what was asked for, and nobody has it yet.
        let _ = fs::remove_file(path);
        Stop::from(error)
    })
}
