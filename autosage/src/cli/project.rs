//! The files with which a project speaks to the engine: they are read inside the walls, and what of them counts is the
//! person's to decide.

use super::config::{self, Config, Origin, Problem, Standing, Usual};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::prose::clean;
use super::session::{SessionFolder, runtime};
use super::trust::{self, Decision};
use super::wiring;
use crate::Parts;
use anyhow::anyhow;
use sandbox::{Kind, Sandbox};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use trace::{Digest, Grant};

/// The settings of a project.
pub const SETTINGS: &str = "autosage.toml";
/// Servers of tools, in the format that several programs share.
pub const SERVERS: &str = ".mcp.json";
/// All files that trust is about.
const FILES: [&str; 2] = [SETTINGS, SERVERS];

/// Those files of one workspace as they were read, once: what is shown, compared and used are these bytes.
pub struct Project {
    workspace: PathBuf,
    /// What each of those that are there holds, or why it is not read.
    pub files: BTreeMap<&'static str, Result<String, String>>,
    /// The walls behind which they were read, where they were.
    walls: Option<Sandbox>,
}

/// What counts for a run in a workspace.
pub struct Settled {
    /// The person's configuration and what the project may add to it.
    pub config: Config,
    /// Rights that the person has approved for always; absent where the project is not trusted, and so keeps none.
    pub rules: Option<Grant>,
    /// Walls that are raised already, for the session to go on with.
    pub walls: Option<Sandbox>,
}

impl Project {
    /// Reads the files of `workspace`, behind walls of the kind `kind` and without any grant. Where none of them is there,
    /// nothing is started.
    pub fn read(workspace: &Path, kind: Kind, home: &Home, parts: &Parts) -> Result<Project, Failure> {
        let (workspace, named) = (workspace.to_owned(), names(workspace));
        if named.is_empty() {
            return Ok(Project { workspace, files: BTreeMap::new(), walls: None });
        }
        let walls = Sandbox::start(kind, parts.program.clone())?;
        let files = inside(&walls, &named, &workspace, home, parts)?;
        Ok(Project { workspace, files, walls: Some(walls) })
    }

    /// Files that are there and cannot be read.
    fn unread(workspace: &Path, reason: &str) -> Project {
        let files = names(workspace).into_iter().map(|name| (name, Err(reason.to_owned()))).collect();
        Project { workspace: workspace.to_owned(), files, walls: None }
    }

    /// What a trust in the files as they are is about; `None` where one of them cannot be read.
    pub fn digests(&self) -> Option<BTreeMap<String, Digest>> {
        let digest = |(name, text): (&&str, &Result<String, String>)| {
            Some(((*name).to_owned(), Digest::of(text.as_ref().ok()?.as_bytes())))
        };
        self.files.iter().map(digest).collect()
    }

    /// How the person stands to the files as they are.
    pub fn standing(&self, decision: Option<&Decision>) -> Standing {
        match decision {
            None => Standing::Untrusted,
            Some(decision) if self.digests().as_ref() == Some(&decision.files) => Standing::Trusted,
            Some(_) => Standing::Changed,
        }
    }

    /// What the settings say, and what is wrong with them.
    pub fn settings(&self, parts: &Parts) -> (Config, Vec<Problem>) {
        let origin = Origin::Project { folder: &self.workspace, user_home: parts.variable("HOME").map(Path::new) };
        match self.files.get(SETTINGS) {
            Some(Ok(text)) => config::parse(text, &origin),
            Some(Err(_)) | None => (Config::default(), Vec::new()),
        }
    }
}

/// What is wrong with the paths that the settings `said` want: what a person trusts is what is written there, and a link can
/// be laid anew without a change of the file. A path that is not there is told where it would be granted.
pub fn linked(said: &Config, parts: &Parts) -> Vec<String> {
    let home = parts.variable("HOME").map(Path::new);
    let one = |path: &PathBuf| {
        let found = path.canonicalize().ok()?;
        let below = home.and_then(|home| Some(home.canonicalize().ok()?.join(path.strip_prefix(home).ok()?)));
        let meant = plain(below.as_deref().unwrap_or(path));
        let told =
            || format!("`grant`: a link leads from {} to {}; name that, or leave it out", meant.display(), found.display());
        (found != meant).then(told)
    };
    said.grant.read.iter().chain(&said.grant.write).filter_map(one).collect()
}

/// Settings with such a path do not count.
pub fn refuse_linked(said: &Config, parts: &Parts) -> Result<(), Failure> {
    match linked(said, parts).as_slice() {
        [] => Ok(()),
        wrong => Err(Failure::usage(clean(&format!("{SETTINGS} cannot be used: {}", wrong.join("; "))))),
    }
}

/// An absolute path by its words alone: without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// Which of the files are there. A look at a name opens nothing, follows nothing and waits for nothing.
fn names(workspace: &Path) -> Vec<&'static str> {
    FILES.into_iter().filter(|name| workspace.join(name).symlink_metadata().is_ok()).collect()
}

/// What counts in `workspace`: the person's configuration, and of the project's what it may say. What does not count is told,
/// in a line. The files are read behind walls of the usual kind.
pub fn settle(person: &Config, workspace: &Path, usual: Usual, home: &Home, parts: &Parts) -> Result<Settled, Failure> {
    let decision = trust::decision(home, workspace)?;
    let project = match Project::read(workspace, usual.kind, home, parts) {
        // Where the walls cannot be raised the run itself says so, in its own way.
        Err(Failure::Infrastructure(error)) => Project::unread(workspace, &format!("{error:#}")),
        read => read?,
    };
    let standing = project.standing(decision.as_ref());
    let (said, problems) = project.settings(parts);
    if standing == Standing::Trusted {
        config::refuse(&workspace.join(SETTINGS).display().to_string(), &problems)?;
        refuse_linked(&said, parts)?;
    }
    let merged = config::merge(person, &said, standing, usual);
    for line in told(&project, standing, &merged, &problems) {
        print(&parts.err, &format!("autosage: {}\n", clean(&line)));
    }
    let rules = decision.filter(|_| standing == Standing::Trusted).map(|decision| decision.rules);
    Ok(Settled { config: merged.config, rules, walls: project.walls })
}

/// What a person is told of a project's files: a line for those that are not trusted, and one for each other thing.
fn told(project: &Project, standing: Standing, merged: &config::Merged, problems: &[Problem]) -> Vec<String> {
    let unread = project.files.iter().filter_map(|(name, text)| Some(format!("{name} is not read: {}", text.as_ref().err()?)));
    let mut lines: Vec<String> = unread.collect();
    let ignored = match merged.left_out.as_slice() {
        [] => String::new(),
        keys => format!(": {} not used", named(keys)),
    };
    match standing {
        Standing::Untrusted if !ignored.is_empty() => {
            lines.push(format!("you have not trusted this project{ignored}; `autosage trust` shows what it asks for"));
        }
        Standing::Changed => lines.push(format!(
            "this project's files have changed since you trusted them{ignored}; `autosage trust` shows what they ask for"
        )),
        Standing::Trusted | Standing::Untrusted => {}
    }
    lines.extend(problems.iter().map(|problem| format!("ignored: {SETTINGS}:{problem}")));
    if project.files.contains_key(SERVERS) {
        lines.push(format!("{SERVERS} is not used yet: servers of tools come with a later version"));
    }
    lines.extend(merged.notes.iter().cloned());
    lines
}

/// "`a`, `b` and `c` are", "`a` is".
fn named(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => format!("{last} is"),
        Some((last, rest)) => format!("{} and {last} are", rest.join(", ")),
        None => String::new(),
    }
}

/// Reads the files that are there in an environment that is made for it: no grant, and nothing in it that runs.
fn inside(
    walls: &Sandbox,
    names: &[&'static str],
    workspace: &Path,
    home: &Home,
    parts: &Parts,
) -> Result<BTreeMap<&'static str, Result<String, String>>, Failure> {
    let rooms = SessionFolder::make(home.folder().join(format!("look-{}", std::process::id())))?;
    let spec = wiring::environment_spec(workspace, sandbox::Access::Write, rooms.path(), home, parts);
    runtime()?.block_on(async {
        let environment = walls.environment(&spec).await?;
        let mut files = BTreeMap::new();
        for name in names {
            let text = match engine::project::read(&environment, workspace, name).await {
                Ok(Some(content)) if content.size > engine::project::MOST => {
                    Err(format!("it has {} bytes, and a project's file has at most {}", content.size, engine::project::MOST))
                }
                Ok(Some(content)) => String::from_utf8(content.bytes).map_err(|error| format!("it is not UTF-8: {error}")),
                // It went away meanwhile.
                Ok(None) => continue,
                Err(reason) => Err(reason),
            };
            files.insert(*name, text);
        }
        Ok(files)
    })
}

/// The walls behind which files are read where no run says which: the person's, else the strongest that this machine allows.
pub fn read_anyhow(workspace: &Path, person: Option<Kind>, home: &Home, parts: &Parts) -> Result<Project, Failure> {
    let kinds = person.map_or_else(|| vec![Kind::Native, Kind::Reduced], |kind| vec![kind]);
    let mut last = Failure::Infrastructure(anyhow!("no walls to read behind"));
    for kind in kinds {
        match Project::read(workspace, kind, home, parts) {
            Err(Failure::Infrastructure(error)) => last = Failure::Infrastructure(error),
            other => return other,
        }
    }
    Err(last)
}
