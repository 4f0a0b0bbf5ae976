//! The large contents of a run, kept by their digest.

use crate::Digest;
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The folder `blobs/` of a run. Writing the same content twice keeps it once.
#[derive(Debug)]
pub struct Blobs {
    folder: PathBuf,
    /// Written, and not yet synced: the record syncs them before the events that name them.
    unsynced: RefCell<Vec<PathBuf>>,
}

impl Blobs {
    pub(crate) fn new(run: &Path) -> Blobs {
        Blobs { folder: run.join("blobs"), unsynced: RefCell::default() }
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
        let count = self.unsynced.borrow().len();
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
        self.unsynced.borrow_mut().push(self.path(&digest));
        Ok(())
    }

    /// The content of `digest`, proven against it.
    ///
    /// # Errors
    /// Where it is missing, or other bytes stand under its name.
    pub fn get(&self, digest: &Digest) -> io::Result<Vec<u8>> {
        let path = self.path(digest);
        let bytes = fs::read(&path)
            .map_err(|error| io::Error::new(error.kind(), format!("reading the blob {}: {error}", path.display())))?;
        if Digest::of(&bytes) == *digest {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("the blob {} does not fit its name", path.display())))
        }
    }

    /// Where the content of `digest` lies.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// Puts every content that was written since the last call on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let written = self.unsynced.take();
        written.iter().try_for_each(|path| File::open(path)?.sync_data())?;
        if written.is_empty() { Ok(()) } else { File::open(&self.folder)?.sync_all() }
    }
}
