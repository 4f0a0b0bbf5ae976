//! The machine's key: what placeholders are made with, so that they tell nothing to who does not have it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What keys of runs are derived for; a change of this text changes every placeholder.
const CONTEXT: &str = "autosage 2026-11-29 placeholders of one run";

/// 32 random bytes that a machine keeps for itself.
#[derive(Clone)]
pub struct MachineKey([u8; 32]);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The disk refused.
    #[error("{attempt} the machine's key {}: {error}", path.display())]
    Disk {
        /// What was attempted.
        attempt: &'static str,
        /// The key's file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What lies there is no key.
    #[error("{} is not the 32 bytes of a key: remove it, and a new one is made; placeholders of earlier runs then stand for nothing", .0.display())]
    NoKey(PathBuf),
    /// No random numbers.
    #[error("making a key: the system has no random numbers: {0}")]
    Random(String),
}

impl MachineKey {
    /// The key that lies in the folder `home` as `key`, made there at its first use. Whoever comes at once gets the same.
    ///
    /// # Errors
    /// Where it cannot be read or made.
    pub fn kept(home: &Path) -> Result<MachineKey, KeyError> {
        let path = home.join("key");
        let disk = |attempt, error| KeyError::Disk { attempt, path: path.clone(), error };
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened.map_err(|error| disk("opening", error)).and_then(|file| read(file, &path)),
        }
        let key = MachineKey::random()?;
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(|error| disk("making the folder for", error))?;
        let name = getrandom::u64().map_err(|error| KeyError::Random(error.to_string()))?;
        let draft = home.join(format!(".key-{name:016x}"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).and_then(|mut file| {
            file.write_all(&key.0)?;
            file.sync_all()
        });
        // A hard link, unlike a rename, refuses a name that is taken: the first one wins, and all read what it wrote.
        let linked = made.and_then(|()| std::fs::hard_link(&draft, &path));
        let removed = std::fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(disk("making", error)),
            _ => removed.map_err(|error| disk("making", error))?,
        }
        File::open(&path).map_err(|error| disk("opening", error)).and_then(|file| read(file, &path))
    }

    /// A key of this moment.
    ///
    /// # Errors
    /// Where the system has no random numbers.
    pub fn random() -> Result<MachineKey, KeyError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| KeyError::Random(error.to_string()))?;
        Ok(MachineKey(key))
    }

    /// This very key.
    pub fn fixed(key: [u8; 32]) -> MachineKey {
        MachineKey(key)
    }

    /// The key of one run.
    pub(super) fn of(&self, run: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.0).update(run.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

fn read(mut file: File, path: &Path) -> Result<MachineKey, KeyError> {
    let mut key = Vec::new();
    let read = (&mut file).take(33).read_to_end(&mut key);
    read.map_err(|error| KeyError::Disk { attempt: "reading", path: path.to_owned(), error })?;
    key.try_into().map(MachineKey).map_err(|_| KeyError::NoKey(path.to_owned()))
}
