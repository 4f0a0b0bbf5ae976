//! Keeps a whole output beside the record, while it is not known yet whether anyone will need it.
//!
//! A short output is held in memory; a longer one goes to a draft of the run's blobs. Beyond a limit its first half stays
//! where it is and the second half becomes a ring, so that disk and memory are bounded whatever comes.

use blake3::Hasher;
use sandbox::capture::grouped;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use trace::{Blobs, Digest};

/// The most bytes of an output that are kept.
pub const MOST: u64 = 64 << 20;

/// An output on its way to a blob.
pub struct Spill<'a> {
    blobs: &'a Blobs,
    /// Bytes that are held in memory before a draft is made.
    holds: usize,
    /// The most bytes that are kept; even.
    most: u64,
    held: Vec<u8>,
    draft: Option<Draft>,
    total: u64,
    /// Of everything, as long as everything is kept.
    hasher: Hasher,
    /// Of the first half.
    first_half: Option<Hasher>,
    failed: Option<io::Error>,
}

struct Draft {
    file: File,
    path: PathBuf,
}

/// A kept output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its content.
    pub digest: Digest,
    /// Bytes of its middle that are missing in it.
    pub missing: u64,
}

impl<'a> Spill<'a> {
    /// Nothing yet. Up to `holds` bytes are held in memory, up to `most` are kept.
    pub fn new(blobs: &'a Blobs, holds: usize, most: u64) -> Spill<'a> {
        let (hasher, held) = (Hasher::new(), Vec::new());
        Spill { blobs, holds, most, held, draft: None, total: 0, hasher, first_half: None, failed: None }
    }

    /// Takes the next bytes. What goes wrong is told at the end: the command itself goes on.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.take(bytes)
        {
            self.failed = Some(error);
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.draft.is_none() {
            if self.held.len() + bytes.len() <= self.holds {
                self.held.extend_from_slice(bytes);
                return Ok(());
            }
            let (file, path) = self.blobs.draft()?;
            self.draft = Some(Draft { file, path });
            let held = std::mem::take(&mut self.held);
            self.write(&held)?;
        }
        self.write(bytes)
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let half = self.most / 2;
        let Some(draft) = &self.draft else { return Ok(()) };
        while !bytes.is_empty() {
            // The place of byte N is N in the first half, and within the second half it goes round.
            let place = if self.total < half { self.total } else { half + (self.total - half) % half };
            let end = if self.total < half { half } else { self.most };
            let fits = bytes.len().min(usize::try_from(end - place).unwrap_or(usize::MAX));
            let (now, later) = bytes.split_at(fits);
            draft.file.write_all_at(now, place)?;
            if self.total < self.most {
                self.hasher.update(now);
            }
            self.total += fits as u64;
            if self.total == half {
                self.first_half = Some(self.hasher.clone());
            }
            bytes = later;
        }
        Ok(())
    }

    /// Makes a blob of it.
    ///
    /// # Errors
    /// Where the disk does not take it.
    pub fn keep(mut self) -> io::Result<Kept> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(draft) = self.draft.take() else {
            return Ok(Kept { digest: self.blobs.put(&self.held)?, missing: 0 });
        };
        let missing = self.total.saturating_sub(self.most);
        let digest = match self.first_half.take() {
            Some(hasher) if missing > 0 => {
                let whole = self.straightened(&draft, hasher, missing);
                fs::remove_file(&draft.path)?;
                whole?
            }
            _ => {
                let digest = Digest::from(self.hasher.finalize());
                self.blobs.adopt(&draft.path, digest)?;
                digest
            }
        };
        Ok(Kept { digest, missing })
    }

    /// First half, a word about what is missing, and the ring from its oldest byte on.
    fn straightened(&self, draft: &Draft, mut hasher: Hasher, missing: u64) -> io::Result<Digest> {
        let half = self.most / 2;
        let (mut whole, path) = self.blobs.draft()?;
        let written = (|| {
            let mut from = &draft.file;
            from.rewind()?;
            io::copy(&mut from.take(half), &mut whole)?;
            let word = format!("\n[… {} bytes are missing here: they were not kept …]\n", grouped(missing));
            hasher.update(word.as_bytes());
            whole.write_all(word.as_bytes())?;
            let oldest = half + (self.total - half) % half;
            for (start, end) in [(oldest, self.most), (half, oldest)] {
                from.seek(io::SeekFrom::Start(start))?;
                let mut part = from.take(end - start);
                let mut chunk = vec![0; 1 << 16];
                loop {
                    let read = part.read(&mut chunk)?;
                    if read == 0 {
                        break;
                    }
                    hasher.update(&chunk[..read]);
                    whole.write_all(&chunk[..read])?;
                }
            }
            let digest = Digest::from(hasher.finalize());
            self.blobs.adopt(&path, digest)?;
            Ok(digest)
        })();
        if written.is_err() {
            // The first error is the one to tell.
            let _ = fs::remove_file(&path);
        }
        written
    }
}

impl Drop for Spill<'_> {
    /// What was not kept was not needed.
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            // What cannot be removed now is swept when the run is opened again.
            let _ = fs::remove_file(draft.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn files(run: &std::path::Path) -> usize {
        fs::read_dir(run.join("blobs")).unwrap().count()
    }

    fn folder() -> tempfile::TempDir {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir(run.path().join("blobs")).unwrap();
        run
    }

    #[test]
    fn a_short_output_touches_no_disk_until_it_is_kept() {
        let run = folder();
        let blobs = trace::blobs(run.path());
        let mut spill = Spill::new(&blobs, 8, MOST);
        spill.push(b"12345678");
        assert_eq!(files(run.path()), 0);
        let kept = spill.keep().unwrap();
        assert_eq!(blobs.get(&kept.digest).unwrap(), b"12345678");
    }

    #[test]
    fn what_is_not_kept_leaves_nothing() {
        let run = folder();
        let blobs = trace::blobs(run.path());
        let mut spill = Spill::new(&blobs, 8, MOST);
        spill.push(b"123456789");
        assert_eq!(files(run.path()), 1);
        drop(spill);
        assert_eq!(files(run.path()), 0);
    }

    proptest! {
        #[test]
        fn beginning_and_end_are_kept(length in 0usize..200, chunks in prop::collection::vec(1usize..50, 0..20), holds in 0usize..40) {
            const MOST: usize = 64;
            let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n).unwrap()).collect();
            let run = folder();
            let blobs = trace::blobs(run.path());
            let mut spill = Spill::new(&blobs, holds, MOST as u64);
            let mut rest = &bytes[..];
            for chunk in chunks {
                let (now, later) = rest.split_at(chunk.min(rest.len()));
                spill.push(now);
                rest = later;
            }
            spill.push(rest);
            let kept = spill.keep().unwrap();
            let content = blobs.get(&kept.digest).unwrap();
            if length <= MOST {
                prop_assert_eq!((content, kept.missing), (bytes, 0));
            } else {
                let word = format!("\n[… {} bytes are missing here: they were not kept …]\n", length - MOST);
                prop_assert_eq!(content, [&bytes[..MOST / 2], word.as_bytes(), &bytes[length - MOST / 2..]].concat());
            }
            prop_assert_eq!(files(run.path()), 1);
        }
    }
}
