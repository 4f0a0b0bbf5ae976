//! Where decisions about workspaces are kept: a file for each under `$AUTOSAGE_HOME/trust`, which no command inside the walls
//! can see. Its name is the digest of the workspace's path, so no path leads elsewhere.

use crate::cli::failure::Failure;
use crate::cli::home::Home;
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use trace::{Digest, Grant};

/// The version of the format that is written here.
const VERSION: u32 = 1;

/// What a person has decided of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The files that were shown and trusted, by name. A file that was not there is not among them.
    pub files: BTreeMap<String, Digest>,
    /// Rights that are approved there without a question.
    #[serde(default)]
    pub rules: Grant,
}

/// A decision as it lies on the disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    v: u32,
    workspace: PathBuf,
    #[serde(flatten)]
    decision: Decision,
}

/// Only the version of a file, which says whether the rest can be understood.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// All decisions.
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Those under `home`. Nothing is made yet.
    pub fn of(home: &Home) -> Store {
        Store { folder: home.folder().join("trust") }
    }

    /// What was decided of `workspace`, an absolute path without links.
    pub fn read(&self, workspace: &Path) -> Result<Option<Decision>, Failure> {
        let path = self.path(workspace);
        let told = || format!("reading what is trusted of {} from {}", workspace.display(), path.display());
        let bytes = match fs::read(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            read => read.with_context(told).map_err(Failure::Infrastructure)?,
        };
        understood(&bytes, workspace)
            .map(Some)
            .map_err(|reason| Failure::Infrastructure(anyhow!("{}: {reason}; `autosage trust --revoke` forgets it", told())))
    }

    /// Decides anew of `workspace`; `None` forgets it. Whoever changes decisions at the same time waits.
    pub fn change(
        &self,
        workspace: &Path,
        decide: impl FnOnce(Option<Decision>) -> Result<Option<Decision>, Failure>,
    ) -> Result<(), Failure> {
        let _lock = self.lock()?;
        match decide(self.read(workspace)?)? {
            Some(decision) => self.write(workspace, decision),
            None => self.remove(workspace),
        }
    }

    /// Forgets what was decided of `workspace`, also where it cannot be read.
    pub fn forget(&self, workspace: &Path) -> Result<(), Failure> {
        let _lock = self.lock()?;
        self.remove(workspace)
    }

    fn remove(&self, workspace: &Path) -> Result<(), Failure> {
        let path = self.path(workspace);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| format!("removing {}", path.display())).map_err(Failure::Infrastructure),
        }
    }

    /// Written beside, synced and renamed, so that nobody ever reads half of it.
    fn write(&self, workspace: &Path, decision: Decision) -> Result<(), Failure> {
        let (path, draft) = (self.path(workspace), self.folder.join("draft"));
        let kept = Kept { v: VERSION, workspace: workspace.to_owned(), decision };
        let written = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(&serde_json::to_vec_pretty(&kept)?)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        written().with_context(|| format!("writing {}", path.display())).map_err(Failure::Infrastructure)
    }

    /// Held while decisions change. It goes with the file, and with the process.
    fn lock(&self) -> Result<File, Failure> {
        let locked = || -> io::Result<File> {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.folder.join("lock"))?;
            lock.lock()?;
            Ok(lock)
        };
        locked()
            .with_context(|| format!("opening {} (set AUTOSAGE_HOME to a folder that can be written)", self.folder.display()))
            .map_err(Failure::Infrastructure)
    }

    fn path(&self, workspace: &Path) -> PathBuf {
        self.folder.join(format!("{}.json", Digest::of(workspace.as_os_str().as_encoded_bytes())))
    }
}

/// The decision in `bytes`, or why there is none to be read.
fn understood(bytes: &[u8], workspace: &Path) -> Result<Decision, String> {
    let damaged = |error: serde_json::Error| format!("it is damaged ({error})");
    let Version { v } = serde_json::from_slice(bytes).map_err(damaged)?;
    if v > VERSION {
        return Err(format!("a later version of autosage wrote it (format {v}, this one reads {VERSION})"));
    }
    let kept: Kept = serde_json::from_slice(bytes).map_err(damaged)?;
    if kept.workspace != workspace {
        return Err(format!("it is about {}", kept.workspace.display()));
    }
    Ok(kept.decision)
}

/// Adds to `rules` what `grant` has and they have not.
pub fn add(rules: &mut Grant, grant: &Grant) {
    let Grant { read, write, network, secrets } = grant;
    for (all, more) in [(&mut rules.read, read), (&mut rules.write, write)] {
        let new: Vec<PathBuf> = more.iter().filter(|path| !all.contains(path)).cloned().collect();
        all.extend(new);
    }
    rules.network |= network;
    let new: Vec<String> = secrets.iter().filter(|name| !rules.secrets.contains(name)).cloned().collect();
    rules.secrets.extend(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: folder.path().join("home/trust") };
        (folder, store)
    }

    fn decision() -> Decision {
        let files = BTreeMap::from([("autosage.toml".to_owned(), Digest::of(b"model"))]);
        Decision { files, rules: Grant { network: true, ..Grant::default() } }
    }

    #[test]
    fn a_decision_is_kept_changed_and_forgotten() {
        let (_folder, store) = store();
        let work = Path::new("/work");
        assert_eq!(store.read(work).unwrap(), None);
        store.change(work, |before| Ok(before.or(Some(decision())))).unwrap();
        assert_eq!(store.read(work).unwrap(), Some(decision()));
        assert_eq!(store.read(Path::new("/work/")).unwrap(), None, "another spelling is another workspace");
        store.change(work, |before| Ok(before.map(|before| Decision { rules: Grant::default(), ..before }))).unwrap();
        assert_eq!(store.read(work).unwrap().unwrap().rules, Grant::default());
        store.forget(work).unwrap();
        store.forget(work).unwrap();
        assert_eq!(store.read(work).unwrap(), None);
    }

    #[test]
    fn h2_no_name_of_a_workspace_leads_out_of_the_store() {
        let (folder, store) = store();
        let names = ["../../x", "/tmp/secret", "a/../../b", "C:\\x", "", "/", ".", "/a\nb", "/a\0b"];
        for name in names {
            store.change(Path::new(name), |_| Ok(Some(decision()))).unwrap();
            assert_eq!(store.read(Path::new(name)).unwrap(), Some(decision()), "{name:?}");
        }
        let kept: Vec<_> = fs::read_dir(&store.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(kept.len(), names.len() + 1, "one file for each, and the lock: {kept:?}");
        assert!(kept.iter().all(|path| path.metadata().unwrap().permissions().mode() & 0o777 == 0o600), "{kept:?}");
        let above: Vec<_> = fs::read_dir(folder.path().join("home")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(above, ["trust"]);
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_a_way_out() {
        let (_folder, store) = store();
        let work = Path::new("/work");
        store.change(work, |_| Ok(Some(decision()))).unwrap();
        let text = fs::read_to_string(store.path(work)).unwrap();
        for (text, words) in [
            (
                text.replace("\"v\": 1", "\"v\": 2, \"more\": {}"),
                "a later version of autosage wrote it (format 2, this one reads 1)",
            ),
            (text[..text.len() / 2].to_owned(), "damaged"),
            (text.replace("/work", "/other"), "it is about /other"),
        ] {
            fs::write(store.path(work), text).unwrap();
            for told in [store.read(work).unwrap_err(), store.change(work, |_| Ok(None)).unwrap_err()] {
                let told = told.to_string();
                assert!(told.contains(words) && told.contains("autosage trust --revoke"), "{told}");
            }
        }
        store.forget(work).unwrap();
        assert_eq!(store.read(work).unwrap(), None);
    }

    #[test]
    fn rules_that_are_added_at_once_are_all_kept() {
        let (_folder, store) = store();
        let work = Path::new("/work");
        store.change(work, |_| Ok(Some(Decision::default()))).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    let grant = Grant { read: vec![format!("/{number}").into()], ..Grant::default() };
                    store.change(work, |decision| {
                        let mut decision = decision.unwrap();
                        add(&mut decision.rules, &grant);
                        add(&mut decision.rules, &grant);
                        Ok(Some(decision))
                    })
                });
            }
        });
        let mut kept = store.read(work).unwrap().unwrap().rules.read;
        kept.sort();
        assert_eq!(kept, (0..8).map(|number| PathBuf::from(format!("/{number}"))).collect::<Vec<_>>());
    }
}
