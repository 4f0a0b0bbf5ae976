//! Which build of the program a record was made by: the digest of its file.

use super::home::Home;
use crate::Parts;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use trace::Digest;

/// A digest that was taken before, and the file that it was taken of.
#[derive(PartialEq, Serialize, Deserialize)]
struct Known {
    file: Identity,
    digest: Digest,
}

/// What changes when a file's content does.
#[derive(PartialEq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// The digest of the program's file. It is kept under `$AUTOSAGE_HOME`, so that a start does not read the whole program.
/// `None` where the parts name no file, or it cannot be read: a record is worth as much without it.
pub fn digest(home: &Home, parts: &Parts) -> Option<Digest> {
    let program = parts.build.as_deref()?;
    let file = identity(program)?;
    let kept = home.folder().join("build.json");
    let known = std::fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice::<Known>(&bytes).ok());
    if let Some(known) = known.filter(|known| known.file == file) {
        return Some(known.digest);
    }
    let digest = Digest::of(&std::fs::read(program).ok()?);
    // Where it cannot be kept it is taken again the next time.
    let _ = serde_json::to_vec(&Known { file, digest }).map(|bytes| keep(&kept, &bytes));
    Some(digest)
}

fn identity(program: &Path) -> Option<Identity> {
    let found = std::fs::metadata(program).ok()?;
    let modified = (found.mtime(), found.mtime_nsec());
    Some(Identity { device: found.dev(), inode: found.ino(), size: found.len(), modified })
}

/// Written beside and renamed, so that two programs that start at once never read half of it.
fn keep(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(path))?;
    std::fs::write(&draft, bytes)?;
    std::fs::rename(&draft, path)
}
