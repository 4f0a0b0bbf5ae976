//! From the spec of an environment to what it consists of: the same list is mounted by `native` and turned into rules by `reduced`.

use crate::places::{self, OnPath, Sort};
use crate::spec::{self, EnvironmentSpec, Kind, Limits, SandboxError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use trace::Grant;

/// Where `bash` may lie, in the order in which it is looked for.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"];
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What a path is to be that is asked for beyond the workspace.
const GRANTED: &str = "granted";
/// Where the private home is mounted when the person's home is not known.
const HOMELESS: &str = "/home/agent";

/// What an environment consists of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Layout {
    pub kind: Kind,
    /// The workspace, canonical.
    pub workspace: PathBuf,
    /// The private home as commands see it.
    pub home: PathBuf,
    /// Where temporary files go, as commands see it.
    pub tmp: PathBuf,
    /// The path of `bash`.
    pub shell: PathBuf,
    /// Whether the host's network is used.
    pub network: bool,
    pub limits: Limits,
    /// What is shown, in the order of mounting.
    pub places: Vec<Place>,
    /// Paths, as commands see them, that are replaced by nothing.
    pub masks: Vec<PathBuf>,
    /// Symbolic links in the root folder: where, and to what.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The person's name and address for commits.
    pub identity: Option<(String, String)>,
    /// All variables of a fresh environment.
    pub variables: BTreeMap<String, String>,
}

/// A file or folder that commands can see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Where it lies on the host.
    pub source: PathBuf,
    /// Where commands see it (only `native` can show it elsewhere).
    pub target: PathBuf,
    pub access: Access,
    pub links: Links,
}

/// Whether links on the way to a place are followed when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Links {
    Followed,
    /// What was resolved and agreed on must not have become a link since.
    Refused,
}

/// What can be done with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    Read,
    Write,
    /// Read, with a throw-away layer for writes.
    Cache,
}

impl Layout {
    /// Works out what an environment made from `spec` consists of, or why there is none.
    pub fn of(kind: Kind, spec: &EnvironmentSpec) -> Result<Layout, SandboxError> {
        let hidden = spec.hidden_paths();
        let user_home = spec.user_home.as_deref().and_then(|path| path.canonicalize().ok()).filter(|path| path != Path::new("/"));
        if kind == Kind::Host && spec.access == spec::Access::Read {
            let reason = "the sandbox `host` has no walls to keep it from being written".to_owned();
            return Err(SandboxError::Refused { path: spec.workspace.clone(), role: "read only", reason });
        }
        let workspace = workspace(&spec.workspace, user_home.as_deref(), &hidden)?;
        let shell = SHELLS.iter().map(PathBuf::from).find(|path| path.exists()).ok_or_else(|| SandboxError::Environment {
            kind,
            step: "looking for bash".to_owned(),
            error: format!("none of {} exists; install the package `bash`", SHELLS.join(", ")),
        })?;
        let folder = |path: &Path, role| canonical(path, role);
        let (own_home, own_tmp) = (folder(&spec.home, "the private home")?, folder(&spec.tmp, "the folder for temporary files")?);
        let shared_tmp = PathBuf::from("/tmp");
        let (home, tmp) = match kind {
            Kind::Native => (user_home.clone().unwrap_or_else(|| HOMELESS.into()), shared_tmp),
            Kind::Reduced => (own_home.clone(), own_tmp.clone()),
            Kind::Host => (user_home.clone().unwrap_or_else(|| own_home.clone()), shared_tmp),
        };

        let mut layout = Layout {
            kind,
            workspace: workspace.clone(),
            home: home.clone(),
            tmp: tmp.clone(),
            shell,
            network: spec.grant.network || kind == Kind::Host,
            limits: spec.limits,
            places: Vec::new(),
            masks: Vec::new(),
            links: Vec::new(),
            identity: user_home.as_deref().and_then(crate::gitconfig::identity),
            variables: BTreeMap::new(),
        };
        layout.add_system();
        layout.add(own_home, home, Access::Write);
        layout.add(own_tmp, tmp, Access::Write);
        let shows_too_much = |path: &Path| path.starts_with("/tmp");
        let is_read = spec.access == spec::Access::Read;
        // Rules can only add: what lies in a folder that may be written may be written.
        if kind == Kind::Reduced && !hidden.iter().any(|path| shows_too_much(path)) && !(is_read && shows_too_much(&workspace)) {
            layout.add("/tmp".into(), "/tmp".into(), Access::Write);
        }
        let found = user_home.as_deref().map(|home| layout.add_toolchains(home)).unwrap_or_default();
        for (paths, access) in [(&spec.grant.read, Access::Read), (&spec.grant.write, Access::Write)] {
            for path in paths {
                layout.add_exactly(granted(path, &hidden)?, access);
            }
        }
        layout.add_exactly(workspace, if is_read { Access::Read } else { Access::Write });
        layout.hide(&hidden)?;
        layout.variables = variables(&layout, found, user_home.as_deref());
        // What lies deeper is mounted later; of two at the same depth the later one wins.
        layout.places.sort_by_key(|place| place.target.components().count());
        Ok(layout)
    }

    /// Whether the workspace can only be read.
    pub fn is_read_only(&self) -> bool {
        self.places.iter().any(|place| place.target == self.workspace && place.access == Access::Read)
    }

    fn add(&mut self, source: PathBuf, target: PathBuf, access: Access) {
        self.places.push(Place { source, target, access, links: Links::Followed });
    }

    /// Adds what a person named, at its own path.
    fn add_exactly(&mut self, path: PathBuf, access: Access) {
        self.places.push(Place { source: path.clone(), target: path, access, links: Links::Refused });
    }

    fn add_system(&mut self) {
        for entry in places::entries() {
            let path = PathBuf::from(entry.path);
            match entry.sort {
                Sort::System if self.places.iter().any(|place| path.starts_with(&place.target)) => {}
                Sort::System => match std::fs::read_link(&path) {
                    Ok(text) => self.links.push((path, text)),
                    Err(_) if path.exists() => self.add(path.clone(), path, Access::Read),
                    Err(_) => {}
                },
                // What the kernel tells only root needs no hiding from others.
                Sort::Mask if path.starts_with("/proc") && !rustix::process::geteuid().is_root() => {}
                Sort::Mask => self.masks.extend(matching(&path)),
                Sort::Read | Sort::Cache => {}
            }
        }
        if self.network
            && let Ok(names) = std::fs::canonicalize("/etc/resolv.conf")
            && !names.starts_with("/etc")
        {
            self.add(names.clone(), names, Access::Read);
        }
    }

    /// Adds the toolchains of the person; returns the folders for `PATH` and the variables that name toolchains.
    fn add_toolchains(&mut self, user_home: &Path) -> Toolchains {
        let mut found = Toolchains::default();
        let mut shown: Vec<PathBuf> = Vec::new();
        for entry in places::entries() {
            let access = match entry.sort {
                Sort::Read => Access::Read,
                Sort::Cache => Access::Cache,
                Sort::System | Sort::Mask => continue,
            };
            let Some(path) = newest(user_home, entry.path) else { continue };
            if entry.on_path == OnPath::Yes {
                found.path.push(path.display().to_string());
            }
            if let Some(name) = entry.variable {
                found.variables.push((name, path.display().to_string()));
            }
            if self.kind != Kind::Host && !shown.iter().any(|above| path.starts_with(above)) {
                shown.push(path.clone());
                self.add(path.clone(), path, access);
            }
        }
        found
    }

    /// Makes sure that no place shows one of the `hidden` paths. Nothing can stand before what is not there yet, so what was
    /// granted must not reach where it will lie.
    fn hide(&mut self, hidden: &[PathBuf]) -> Result<(), SandboxError> {
        let mut masks = Vec::new();
        for place in &self.places {
            let is_granted = place.links == Links::Refused && self.kind != Kind::Host;
            for path in hidden.iter().filter(|path| is_granted || path.exists()) {
                let Ok(below) = path.strip_prefix(&place.source) else { continue };
                if below.as_os_str().is_empty() || self.kind == Kind::Reduced || !path.exists() {
                    let reason = format!("it would show {}, which is never shown", path.display());
                    return Err(SandboxError::Refused { path: place.source.clone(), role: "granted", reason });
                }
                masks.push(place.target.join(below));
            }
        }
        self.masks.extend(masks);
        Ok(())
    }
}

/// What was found of the person's toolchains.
#[derive(Default)]
struct Toolchains {
    path: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

fn variables(layout: &Layout, toolchains: Toolchains, user_home: Option<&Path>) -> BTreeMap<String, String> {
    let user = user_name().unwrap_or_else(|| "agent".to_owned());
    let mut path = toolchains.path;
    let system = places::entries().filter(|entry| entry.sort == Sort::System && entry.on_path == OnPath::Yes);
    path.extend(system.filter(|entry| Path::new(entry.path).is_dir()).map(|entry| entry.path.to_owned()));
    path.push(SYSTEM_PATH.to_owned());
    let fixed = [
        ("CI", "1"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("GIT_EDITOR", "true"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // Not `LANG`, which makes every program load a dozen files that say the same as the C locale.
        ("LC_CTYPE", "C.UTF-8"),
        ("PAGER", "cat"),
        ("TERM", "dumb"),
        ("npm_config_yes", "true"),
    ];
    let mut all: BTreeMap<String, String> = fixed.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    if user_home != Some(layout.home.as_path()) {
        all.extend(toolchains.variables.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    all.insert("PATH".to_owned(), path.join(":"));
    all.insert("HOME".to_owned(), layout.home.display().to_string());
    all.insert("TMPDIR".to_owned(), layout.tmp.display().to_string());
    all.insert("SHELL".to_owned(), layout.shell.display().to_string());
    all.insert("USER".to_owned(), user.clone());
    all.insert("LOGNAME".to_owned(), user);
    all
}

/// The name of the user that runs this process, by `/etc/passwd`.
fn user_name() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let list = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = list.lines().find(|line| line.split(':').nth(2) == Some(id.as_str()))?;
    line.split(':').next().map(str::to_owned)
}

fn canonical(path: &Path, role: &'static str) -> Result<PathBuf, SandboxError> {
    let refuse = |reason: String| SandboxError::Refused { path: path.to_owned(), role, reason };
    if !path.is_absolute() {
        return Err(refuse("its path is not absolute".to_owned()));
    }
    let path = path.canonicalize().map_err(|e| refuse(e.to_string()))?;
    if path.to_str().is_none() {
        return Err(refuse("its path is not UTF-8".to_owned()));
    }
    Ok(path)
}

/// A path that was granted, as it was when it was.
fn granted(path: &Path, hidden: &[PathBuf]) -> Result<PathBuf, SandboxError> {
    let found = canonical(path, GRANTED)?;
    if found != path {
        let reason = format!("a link leads from it to {}; that would have to be granted", found.display());
        return Err(SandboxError::Refused { path: path.to_owned(), role: GRANTED, reason });
    }
    refuse_kernel_and_secrets(&found, GRANTED, hidden)?;
    Ok(found)
}

impl EnvironmentSpec {
    /// What `wants` leads to on this machine: each path absolute, below `~` the person's home, and without links.
    ///
    /// # Errors
    /// `Refused` where a path is not there, is neither a file nor a folder, or shows what no call may have: the whole file
    /// system, the kernel's folders, the person's home as a whole, what is hidden.
    pub fn resolve(&self, wants: &Grant) -> Result<Grant, SandboxError> {
        let hidden = self.hidden_paths();
        let home = self.user_home.as_deref().and_then(|path| path.canonicalize().ok());
        let resolve = |path: &PathBuf| {
            let refuse = |reason: String| SandboxError::Refused { path: path.clone(), role: GRANTED, reason };
            let absolute = match (path.strip_prefix("~"), &home) {
                (Ok(below), Some(home)) => home.join(below),
                _ => path.clone(),
            };
            let found = canonical(&absolute, GRANTED)?;
            refuse_kernel_and_secrets(&found, GRANTED, &hidden)?;
            if home.as_deref().is_some_and(|home| home.starts_with(&found)) {
                return Err(refuse("it is or contains the person's home folder; ask for something below it".to_owned()));
            }
            if let Some(secret) = hidden.iter().find(|secret| secret.starts_with(&found)) {
                return Err(refuse(format!("it contains {}, which is never shown", secret.display())));
            }
            match found.metadata() {
                Ok(kind) if kind.is_file() || kind.is_dir() => Ok(found),
                Ok(_) => Err(refuse("it is neither a file nor a folder".to_owned())),
                Err(error) => Err(refuse(error.to_string())),
            }
        };
        let all = |paths: &[PathBuf]| paths.iter().map(resolve).collect::<Result<Vec<_>, _>>();
        Ok(Grant { read: all(&wants.read)?, write: all(&wants.write)?, ..wants.clone() })
    }

    fn hidden_paths(&self) -> Vec<PathBuf> {
        self.hidden.iter().map(|path| without_links(path)).collect()
    }
}

/// Where `path` lies or would lie once it is made.
fn without_links(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there.map(|(above, found)| (found, path.strip_prefix(above))) {
        Some((found, Ok(below))) => found.components().chain(below.components()).collect(),
        Some((_, Err(_))) | None => path.to_owned(),
    }
}

fn workspace(path: &Path, user_home: Option<&Path>, hidden: &[PathBuf]) -> Result<PathBuf, SandboxError> {
    const ROLE: &str = "the workspace";
    let found = canonical(path, ROLE)?;
    let refuse = |reason: String| Err(SandboxError::Refused { path: path.to_owned(), role: ROLE, reason });
    if !found.is_dir() {
        return refuse("it is not a folder".to_owned());
    }
    refuse_kernel_and_secrets(&found, ROLE, hidden)?;
    if user_home.is_some_and(|home| home.starts_with(&found)) {
        return refuse("it is or contains your home folder; choose a folder below it".to_owned());
    }
    if let Some(secret) = hidden.iter().find(|secret| secret.starts_with(&found)) {
        return refuse(format!("it is or contains {}, which is never shown", secret.display()));
    }
    Ok(found)
}

/// Refuses what must not be shown to any command, wherever it is named.
fn refuse_kernel_and_secrets(path: &Path, role: &'static str, hidden: &[PathBuf]) -> Result<(), SandboxError> {
    let refuse = |reason: String| Err(SandboxError::Refused { path: path.to_owned(), role, reason });
    if path == Path::new("/") {
        return refuse("it is the whole file system; choose a folder of its own".to_owned());
    }
    if ["/proc", "/sys", "/dev"].iter().any(|system| path.starts_with(system)) {
        return refuse("it belongs to the kernel".to_owned());
    }
    match hidden.iter().find(|secret| path.starts_with(secret)) {
        Some(secret) => refuse(format!("it lies in {}, which is never shown", secret.display())),
        None => Ok(()),
    }
}

/// What a mask stands for: itself, or with a `*` at its end all names in its folder that begin so.
fn matching(mask: &Path) -> Vec<PathBuf> {
    let Some(start) = mask.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_suffix('*')) else {
        return if mask.symlink_metadata().is_ok() { vec![mask.to_owned()] } else { Vec::new() };
    };
    let Some(Ok(entries)) = mask.parent().map(std::fs::read_dir) else { return Vec::new() };
    let names = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(start)));
    names.map(|entry| entry.path()).collect()
}

/// The existing path below `home` that `path` stands for; a `*` as a part of it is the newest version.
fn newest(home: &Path, path: &str) -> Option<PathBuf> {
    let mut found = home.to_owned();
    for part in path.split('/') {
        if part == "*" {
            let entries = std::fs::read_dir(&found).ok()?;
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            found.push(names.max_by_key(|name| version(name))?);
        } else {
            found.push(part);
        }
    }
    found.exists().then_some(found)
}

/// The numbers in a name, for comparing versions.
fn version(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(version("v20.11.0") > version("v9.9.9"));
    }

    #[test]
    fn a_workspace_that_shows_too_much_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, below, secret) = (root.join("home"), root.join("home/project"), root.join("secret"));
        for path in [&below, &secret] {
            std::fs::create_dir_all(path).unwrap();
        }
        let hidden = [secret.clone()];
        let reason = |path: &Path| workspace(path, Some(&home), &hidden).unwrap_err().to_string();
        assert!(reason(Path::new("/")).contains("whole file system"));
        assert!(reason(&home).contains("home folder"));
        assert!(reason(&root).contains("home folder"));
        assert!(reason(&secret).contains("never shown"));
        assert!(reason(Path::new("/proc/sys")).contains("kernel"));
        assert!(reason(Path::new("relative")).contains("absolute"));
        assert_eq!(workspace(&below, Some(&home), &hidden).unwrap(), below);
    }

    #[test]
    fn what_is_hidden_before_it_is_there_is_known_by_where_it_would_lie() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/config")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let hidden = [without_links(&root.join("link/config/autosage"))];
        assert_eq!(hidden, [root.join("real/config/autosage")]);
        let why = workspace(&root.join("real/config"), None, &hidden).unwrap_err().to_string();
        assert!(why.contains("never shown"), "{why}");
        assert_eq!(without_links(Path::new("/no/such/place")), Path::new("/no/such/place"));
    }
}
