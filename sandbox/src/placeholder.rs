//! A file that stands where a command must not put one of its own: `commondir` and `config.worktree` in a git folder.
//!
//! Git looks for configuration and hooks where `commondir` says, and may take configuration from `config.worktree`. One that
//! names its own folder, or says nothing, changes nothing for git; while it is there, read-only, no other can be made. It is put when an environment begins and taken away when the
//! last environment over it ends; one that stays behind after a kill is taken away by the next.

use crate::root::Root;
use rustix::fs::{FlockOperation, flock, fstat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What `commondir` says: git's common folder is this one.
pub(crate) const HERE: &str = ".\n";
/// What a configuration says that says nothing.
pub(crate) const NOTHING: &str = "# Here while a sandbox is open, so that nothing else can be.\n";

/// A file that was put, and that every environment over it holds a shared lock on.
pub(crate) struct Placeholder {
    path: PathBuf,
    file: File,
}

impl Placeholder {
    /// Puts the file, unless one is there that is not ours: then it only has to be guarded.
    pub fn put(root: &Root, path: &Path, text: &'static str) -> io::Result<Option<Placeholder>> {
        loop {
            let mut file = match root.open_or_make(path) {
                Ok(file) => file,
                // Where nothing can be made, commands cannot make anything either, or what is there is no plain file.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EROFS | libc::EACCES | libc::ELOOP | libc::EISDIR)) => {
                    return Ok(None);
                }
                Err(e) => return Err(e),
            };
            flock(&file, FlockOperation::LockShared)?;
            if !same(root, path, &file)? {
                // Another environment took it away while we waited for the lock.
                continue;
            }
            if !file.metadata()?.is_file() {
                return Ok(None);
            }
            let mut there = Vec::new();
            (&file).take(128).read_to_end(&mut there)?;
            if there.is_empty() {
                file.write_all(text.as_bytes())?;
            } else if there != text.as_bytes() {
                return Ok(None);
            }
            return Ok(Some(Placeholder { path: path.to_owned(), file }));
        }
    }

    /// Takes the file away, unless another environment needs it. Nothing may be running in this environment any more.
    pub fn take_away(self) -> io::Result<()> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        std::fs::remove_file(&self.path)
    }
}

/// Whether `path` still leads to `file`.
fn same(root: &Root, path: &Path, file: &File) -> io::Result<bool> {
    let Some(found) = root.find(path)? else { return Ok(false) };
    let (there, here) = (fstat(found)?, fstat(file)?);
    Ok((there.st_dev, there.st_ino) == (here.st_dev, here.st_ino))
}
