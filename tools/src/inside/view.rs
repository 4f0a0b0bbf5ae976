//! Shows a file or a folder, and tells the digest of a file.

use super::{digest, words};
use crate::names;
use crate::window::{Long, Part, Shown, Window};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use trace::{Digest, LARGEST_PICTURE, Picture, PictureError, Secrets};

/// The operation's name.
pub const NAME: &str = "view";
/// A file with a NUL byte among so many is not text.
const SNIFFED: usize = 8192;

/// What is to be shown.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The file or folder.
    pub path: String,
    /// Which part of it.
    pub part: Part,
}

/// What is there.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// A text.
    Text {
        /// The path without links.
        path: String,
        /// The digest of the whole file.
        digest: Digest,
        /// The part that was asked for.
        shown: Shown,
    },
    /// A picture that can be sent to a model.
    Picture {
        /// The path without links.
        path: String,
        /// The digest of the whole file.
        digest: Digest,
        /// All of it, in base64.
        base64: String,
    },
    /// A file that is neither text nor such a picture.
    Binary {
        /// The path without links.
        path: String,
        /// The digest of the whole file.
        digest: Digest,
        /// Bytes of it.
        bytes: u64,
        /// Why it is no picture, where it begins as one.
        picture: Option<String>,
    },
    /// A folder: one line for each entry, in order of name.
    Folder {
        /// The part that was asked for.
        shown: Vec<String>,
        /// The number of the first entry after those that are shown, from 1.
        next: u64,
        /// Entries in all.
        total: u64,
    },
    /// It cannot be shown.
    Refused(String),
}

/// Shows it, without secrets.
pub fn view(request: Request, secrets: &Secrets) -> Answer {
    look(&names::meant(&request.path), request.part, secrets).unwrap_or_else(|error| Answer::Refused(words(&error)))
}

fn look(path: &Path, part: Part, secrets: &Secrets) -> io::Result<Answer> {
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if metadata.is_dir() {
        return folder(&path, part);
    }
    if !metadata.is_file() {
        return Ok(Answer::Refused("this is neither a file nor a folder".to_owned()));
    }
    let mut file = File::open(&path)?;
    let mut hasher = blake3::Hasher::new();
    let mut window = Window::new(part, Long::Cut);
    let mut hiding = secrets.stream();
    let mut kept = Vec::with_capacity(SNIFFED);
    let mut bytes = 0;
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => &chunk[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes += read.len() as u64;
        hasher.update(read);
        hiding.push(read, &mut |piece| window.take(piece));
        kept.extend_from_slice(&read[..read.len().min(most(&kept, read).saturating_sub(kept.len()))]);
    }
    hiding.finish(&mut |piece| window.take(piece));
    let (path, digest) = (names::shown(&path), digest(&hasher));
    if !kept[..kept.len().min(SNIFFED)].contains(&0) {
        return Ok(Answer::Text { path, digest, shown: window.finish() });
    }
    let picture = Picture::begins(&kept).then(|| picture(&kept, bytes, secrets));
    Ok(match picture {
        Some(Ok(())) => Answer::Picture { path, digest, base64: STANDARD.encode(&kept) },
        Some(Err(why)) => Answer::Binary { path, digest, bytes, picture: Some(why) },
        None => Answer::Binary { path, digest, bytes, picture: None },
    })
}

/// How much of a file is kept, of which `kept` is and `next` comes: of a picture as much as may be sent.
fn most(kept: &[u8], next: &[u8]) -> usize {
    let first = if kept.is_empty() { next } else { kept };
    if Picture::begins(first) { LARGEST_PICTURE as usize } else { SNIFFED }
}

/// Whether what is kept of a file of `bytes` bytes is a picture that may be shown. Nothing is hidden in one, so it holds no
/// secret.
fn picture(kept: &[u8], bytes: u64, secrets: &Secrets) -> Result<(), String> {
    if bytes > LARGEST_PICTURE {
        return Err(PictureError::TooLarge { bytes }.to_string());
    }
    Picture::of(kept).map_err(|error| error.to_string())?;
    if secrets.places(kept).is_empty() { Ok(()) } else { Err("this picture holds a secret".to_owned()) }
}

fn folder(path: &Path, part: Part) -> io::Result<Answer> {
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let from = usize::try_from(part.from.max(1)).unwrap_or(usize::MAX);
    let mut shown = Vec::new();
    let mut bytes = 0;
    for entry in entries.iter().skip(from - 1).take(part.lines) {
        let line = described(entry);
        bytes += line.len() + 1;
        if bytes > part.bytes && !shown.is_empty() {
            break;
        }
        shown.push(line);
    }
    let next = part.from.max(1) + shown.len() as u64;
    Ok(Answer::Folder { shown, next, total: entries.len() as u64 })
}

/// `name/`, `name -> target`, or `name` and its size.
fn described(entry: &fs::DirEntry) -> String {
    let name = names::shown(Path::new(&entry.file_name()));
    // An entry that is gone meanwhile, or cannot be asked, still has its name.
    let Ok(metadata) = entry.metadata() else { return name };
    if metadata.is_dir() {
        format!("{name}/")
    } else if let Ok(target) = fs::read_link(entry.path()) {
        format!("{name} -> {}", names::shown(&target))
    } else if metadata.is_file() {
        format!("{name}  {}", names::counted(metadata.len(), "byte"))
    } else {
        format!("{name}  (not a file)")
    }
}
