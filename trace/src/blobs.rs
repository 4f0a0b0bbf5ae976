//! The large contents of a run, kept by their digest.

use crate::Digest;
use crate::durability::Syncing;
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder `blobs/` of a run. Writing the same content twice keeps it once.
#[derive(Debug)]
pub struct Blobs {
    folder: PathBuf,
    /// Puts each content on the disk, before the event that names it is written; absent where nothing is synced.
    syncing: Option<Arc<Syncing>>,
    drafts: Cell<u64>,
}

impl Blobs {
    pub(crate) fn new(run: &Path, syncing: Option<Arc<Syncing>>) -> Blobs {
        Blobs { folder: folder(run), syncing, drafts: Cell::default() }
    }

    /// Keeps `bytes`.
    ///
    /// # Errors
    /// Where the disk does not take them; nothing half written keeps the name.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        // Also where a file of that name is there: a session that died may not have synced it, so what it holds is not sure.
        let (mut file, draft) = self.draft()?;
        file.write_all(bytes)?;
        self.adopt(&draft, digest)?;
        Ok(digest)
    }

    /// A new file to write a content of unknown length into; [`Blobs::adopt`] gives it its name.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn draft(&self) -> io::Result<(File, PathBuf)> {
        let count = self.drafts.replace(self.drafts.get() + 1);
        for attempt in 0u32.. {
            let path = self.folder.join(format!(".draft-{}-{count}-{attempt}", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => return opened.map(|file| (file, path)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Keeps the draft at `path`, whose content has the digest `digest`.
    ///
    /// # Errors
    /// Where it cannot be renamed.
    pub fn adopt(&self, path: &Path, digest: Digest) -> io::Result<()> {
        fs::rename(path, self.path(&digest))?;
        if let Some(syncing) = &self.syncing {
            syncing.blob(self.path(&digest));
        }
        Ok(())
    }

    /// The content of `digest`, proven against it.
    ///
    /// # Errors
    /// Where it is missing, or other bytes stand under its name.
    pub fn get(&self, digest: &Digest) -> io::Result<Vec<u8>> {
        proven(&self.path(digest), digest)
    }

    /// The same contents for whoever only reads them.
    pub fn contents(&self) -> Contents {
        Contents(Some(self.folder.clone()))
    }

    /// Where the content of `digest` lies.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }
}

/// The contents of a run, to be read by their digest and nothing else. What a digest names never changes, so whoever holds
/// this and digests holds values; what is not there is told as such. By default nothing is there.
#[derive(Clone, Debug, Default)]
pub struct Contents(Option<PathBuf>);

impl Contents {
    /// The content of `digest`, proven against it.
    ///
    /// # Errors
    /// Where it is missing, or other bytes stand under its name.
    pub fn get(&self, digest: &Digest) -> io::Result<Vec<u8>> {
        match &self.0 {
            Some(folder) => proven(&folder.join(digest.to_string()), digest),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn proven(path: &Path, digest: &Digest) -> io::Result<Vec<u8>> {
    let bytes =
        fs::read(path).map_err(|error| io::Error::new(error.kind(), format!("reading the blob {}: {error}", path.display())))?;
    if Digest::of(&bytes) == *digest {
        Ok(bytes)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("the blob {} does not fit its name", path.display())))
    }
}

/// Where the blobs of the run in the folder `run` lie.
pub(crate) fn folder(run: &Path) -> PathBuf {
    run.join("blobs")
}
