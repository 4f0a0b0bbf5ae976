//! Finds files by name, in order of name.

use super::walk::{Which, globs, walk};
use crate::names;
use serde::{Deserialize, Serialize};
use trace::Secrets;

/// The operation's name.
pub const NAME: &str = "find";

/// Which files to find, and where.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// What their names or paths are like.
    pub glob: String,
    /// A file or folder.
    pub root: String,
    /// The agent's directory: paths below it are shown relative to it.
    pub cwd: String,
    /// Whether what is ignored counts.
    pub which: Which,
    /// The most files that are named.
    pub limit: usize,
    /// The most bytes of names, the last aside.
    pub bytes: usize,
}

/// What was found.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Files.
    Found(Found),
    /// The request cannot be served.
    Refused(String),
}

/// Files, by their paths.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// Their paths, a line each; of a link, its own.
    pub text: String,
    /// How many there are in all.
    pub files: usize,
    /// How many of them are not named.
    pub more: usize,
    /// Folders that could not be read.
    pub unread: usize,
    /// The first of them, and why.
    pub why_unread: Option<String>,
}

/// Finds files, and names them without secrets.
pub fn find(request: Request, secrets: &Secrets) -> Answer {
    let (root, cwd) = (names::meant(&request.root), names::meant(&request.cwd));
    if let Err(error) = std::fs::symlink_metadata(&root) {
        return Answer::Refused(format!("{}: {}", names::brief(&cwd, &request.root), super::words(&error)));
    }
    let globs = match globs(&root, Some(&request.glob)) {
        Ok(globs) => globs,
        Err(error) => return Answer::Refused(format!("`glob`: {error}")),
    };
    let mut found = Found::default();
    for entry in walk(&root, request.which) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                found.unread += 1;
                found.why_unread.get_or_insert(error.to_string());
                continue;
            }
        };
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir()) || (entry.depth() == 0 && entry.path().is_dir());
        if is_folder || globs.matched(entry.path(), false).is_ignore() {
            continue;
        }
        found.files += 1;
        if found.files > request.limit || found.text.len() >= request.bytes {
            found.more += 1;
        } else {
            found.text.push_str(&secrets.hide(&names::brief(&cwd, &names::shown(entry.path()))));
            found.text.push('\n');
        }
    }
    Answer::Found(found)
}
