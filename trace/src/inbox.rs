//! What others leave for the owner of a run: files that appear whole, and are taken in once.

use crate::Delivery;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What an inbox file holds.
#[derive(Serialize, Deserialize)]
struct Letter {
    v: u32,
    #[serde(flatten)]
    what: Delivery,
}

/// Leaves `what` for the owner of the run in the folder `run`, under a name that sorts by `stamp` (such as the time), then
/// by the order of this process's letters, and is never given again. Returns the name.
///
/// # Errors
/// Where the disk refuses; nothing half written is ever seen.
pub fn leave(run: &Path, stamp: &str, what: &Delivery) -> io::Result<String> {
    /// Letters that this process has left: those of one stamp are delivered in this order.
    static LEFT: AtomicU32 = AtomicU32::new(0);
    let folder = run.join("inbox");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let letter = serde_json::to_vec(&LetterOut { v: crate::VERSION, what })?;
    // The name must differ also from those that were delivered and removed: a delivered name is never delivered again.
    let random = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
    let name = format!("{stamp}-{:06}-{random:08x}", LEFT.fetch_add(1, Ordering::Relaxed));
    let draft = folder.join(format!(".{name}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&letter)?;
    file.sync_data()?;
    // A hard link, unlike a rename, refuses a name that is taken.
    let linked = fs::hard_link(&draft, folder.join(&name));
    fs::remove_file(&draft)?;
    linked.map(|()| name)
}

#[derive(Serialize)]
struct LetterOut<'a> {
    v: u32,
    #[serde(flatten)]
    what: &'a Delivery,
}

/// The files of the inbox.
#[derive(Debug)]
pub struct Letters {
    /// What can be delivered, in order of name.
    pub fresh: Vec<(String, Delivery)>,
    /// Files that are no deliveries, with the reason; they are left where they are.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// The letters in the inbox of the run in the folder `run` that are not among the names in `delivered`, as they lie there, in
/// order of name. Nothing is removed: this is for who does not own the run.
pub(crate) fn undelivered(run: &Path, delivered: &BTreeSet<String>) -> io::Result<Vec<(String, Vec<u8>)>> {
    let entries = match fs::read_dir(run.join("inbox")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut letters = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || delivered.contains(&name) {
            continue;
        }
        match fs::read(entry.path()) {
            // Its owner has taken it in meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(bytes) if serde_json::from_slice::<Letter>(&bytes).is_ok() => letters.push((name, bytes)),
            Ok(_) => {}
        }
    }
    letters.sort();
    Ok(letters)
}

/// What waits in the inbox of the run in the folder `run` and is not among the names in `delivered`. Files of delivered
/// names are removed: their event is written, so they are no longer needed.
///
/// # Errors
/// Where the folder cannot be read.
pub fn waiting(run: &Path, delivered: &BTreeSet<String>) -> io::Result<Letters> {
    let mut letters = Letters { fresh: Vec::new(), unreadable: Vec::new() };
    // Copies of a run may lack its empty folders.
    let entries = match fs::read_dir(run.join("inbox")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(letters),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if delivered.contains(&name) {
            fs::remove_file(entry.path())?;
            continue;
        }
        match fs::read(entry.path())
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice::<Letter>(&bytes).map_err(|error| error.to_string()))
        {
            Ok(letter) if letter.v <= crate::VERSION => match letter.what {
                // It says on what terms calls are served, and with which model and walls.
                Delivery::Session { .. } => {
                    letters.unreadable.push((entry.path(), "only the owner of a run says that a session goes on".to_owned()));
                }
                what @ (Delivery::Message { .. } | Delivery::Interrupt | Delivery::Approval { .. }) => {
                    letters.fresh.push((name, what));
                }
            },
            Ok(letter) => letters.unreadable.push((entry.path(), format!("it has version {}", letter.v))),
            Err(reason) => letters.unreadable.push((entry.path(), reason)),
        }
    }
    letters.fresh.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Approve, Grant, Seq, Terms};

    #[test]
    fn what_only_the_owner_of_a_run_can_say_is_not_taken_from_a_letter() {
        let run = tempfile::tempdir().unwrap();
        let terms = Terms { approve: Approve::Auto, allow: Grant { network: true, ..Grant::default() }, read_only: false };
        let session =
            Delivery::Session { text: "go on".into(), model: None, fallback: None, backend: None, terms: Some(Box::new(terms)) };
        let answer = Delivery::Approval { asked: Seq(3), answer: Answer::Once, by: "send".into() };
        leave(run.path(), "a", &session).unwrap();
        leave(run.path(), "b", &answer).unwrap();
        let letters = waiting(run.path(), &BTreeSet::new()).unwrap();
        assert_eq!(letters.fresh.into_iter().map(|(_, what)| what).collect::<Vec<_>>(), [answer]);
        let [(_, why)] = letters.unreadable.as_slice() else { panic!("{:?}", letters.unreadable) };
        assert_eq!(why, "only the owner of a run says that a session goes on");
    }
}
