//! What a configuration file says. The person's is `$XDG_CONFIG_HOME/autosage/config.toml`; a project's is `autosage.toml` in
//! its workspace and has the same keys.

mod file;
mod keys;
mod merge;
mod section;
mod value;

pub use keys::{Origin, parse};
pub use merge::{Merged, Standing, Usual, merge};
pub use section::Problem;

use super::args::Approve;
use super::failure::Failure;
use super::prose::clean;
use crate::Parts;
use anyhow::{Context, anyhow};
use model::catalog::Catalog;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace::{Limits, ProjectFile};

/// What is settled once instead of being typed. Flags go before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The model, as provider/name.
    pub model: Option<String>,
    /// The models that a project's file may choose; a key of the person's alone.
    pub models: Vec<String>,
    /// The models that are asked in this order where the one before is not to be had.
    pub fallback: Vec<String>,
    /// The server's address.
    pub base_url: Option<String>,
    /// The variable that holds the key for that address.
    pub key_env: Option<String>,
    /// What becomes of a call that wants more rights than are granted.
    pub approve: Option<Approve>,
    /// What `approve = "auto"` allows; a key of the person's alone.
    pub allow: Ceiling,
    /// The walls.
    pub sandbox: Option<sandbox::Kind>,
    /// Commands that must succeed before work is accepted.
    pub checks: Vec<String>,
    /// What may be spent.
    pub budget: Limits,
    /// Rights beyond the workspace.
    pub grant: Rights,
    /// Whether a run may ring and title the window, at a terminal; a key of the person's alone.
    pub bell: Option<bool>,
    /// The most that one reply may take, from its head to its end; a key of the person's alone.
    pub reply_time: Option<Duration>,
    /// How long a model is asked again before it counts as not to be had; a key of the person's alone.
    pub retry_time: Option<Duration>,
    /// MCP servers by name, as they are written. They are not used yet.
    pub mcp: BTreeMap<String, String>,
    /// The person's own instructions for every run, from AGENTS.md beside the file.
    pub instructions: Vec<ProjectFile>,
    /// What is known about models: what is built in, and before it what models.toml beside the file says.
    pub catalog: Catalog,
}

/// Rights beyond the workspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rights {
    /// Absolute paths that may be read.
    pub read: Vec<PathBuf>,
    /// Absolute paths that may be read and written.
    pub write: Vec<PathBuf>,
    /// Whether the network can be reached; `false` is a no, and absent is neither.
    pub network: Option<bool>,
    /// Variables whose values commands may have.
    pub secrets: Vec<String>,
}

/// Rights that a call may have beyond the grant without a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceiling {
    /// Absolute paths that may be written.
    pub write: Vec<PathBuf>,
    /// Whether the network can be reached.
    pub network: bool,
}

/// The most of a person's own instructions that is read, in bytes.
const MAX_INSTRUCTIONS: usize = 64 * 1024;

impl Config {
    /// Reads the person's: `named` (`none` reads nothing), else the usual file, which may be missing.
    pub fn load(named: Option<&str>, parts: &Parts) -> Result<Config, Failure> {
        let Some(path) = path(named, parts) else { return Ok(Config::default()) };
        let way_out = if named.is_some() { " (--config FILE names another, and --config none reads none)" } else { "" };
        let told = || format!("reading the configuration {}{way_out}", path.display());
        let mut config = match file::settings(&path).with_context(told).map_err(Failure::Usage)? {
            None if named.is_some() => return Err(Failure::Usage(anyhow!("there is no such file").context(told()))),
            None => Config::default(),
            Some(text) => {
                let user_home = parts.variable("HOME").map(Path::new);
                let folder = path.parent().unwrap_or(Path::new(""));
                let (config, problems) = parse(&text, &Origin::Person { folder, user_home });
                refuse(&path.display().to_string(), &problems)?;
                config
            }
        };
        if let Some(folder) = path.parent() {
            config.instructions = instructions(&folder.join("AGENTS.md"))?;
            config.catalog = models(&folder.join("models.toml"))?;
        }
        Ok(config)
    }
}

/// Where the person's configuration is looked for; `None` where there is no such place, or none is wanted.
pub fn path(named: Option<&str>, parts: &Parts) -> Option<PathBuf> {
    match named {
        Some("none") => None,
        Some(path) => Some(std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))),
        None => usual_folder(parts).map(|folder| folder.join("config.toml")),
    }
}

/// `$XDG_CONFIG_HOME/autosage`, else `~/.config/autosage`.
pub fn usual_folder(parts: &Parts) -> Option<PathBuf> {
    let config = parts.xdg_folder("XDG_CONFIG_HOME").map(Path::to_owned);
    let config = config.or_else(|| parts.variable("HOME").map(|home| Path::new(home).join(".config")));
    config.map(|config| config.join("autosage"))
}

/// A file that counts must be sound: all that is wrong in `file` is told at once.
pub fn refuse(file: &str, problems: &[Problem]) -> Result<(), Failure> {
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = problems.iter().map(|problem| clean(&format!("{file}:{problem}"))).collect();
    Err(Failure::Usage(anyhow!("the configuration cannot be used:\n  {}", lines.join("\n  "))))
}

/// What is known about models, with the person's own table, if there is one.
fn models(path: &Path) -> Result<Catalog, Failure> {
    let place = path.display().to_string();
    let text = file::settings(path).with_context(|| format!("reading the table of models {place}"));
    match text.map_err(Failure::Usage)? {
        None => Ok(Catalog::default()),
        Some(text) => {
            let read = Catalog::default().with(&text, &place);
            read.map_err(|error| Failure::usage(clean(&format!("the table of models cannot be used: {place}:{error}"))))
        }
    }
}

/// The person's own instructions, if there are any.
fn instructions(path: &Path) -> Result<Vec<ProjectFile>, Failure> {
    let bytes = file::start(path, MAX_INSTRUCTIONS as u64 + 1);
    let bytes = bytes.with_context(|| format!("reading your instructions {}", path.display())).map_err(Failure::Usage)?;
    let told = |mut bytes: Vec<u8>| {
        if bytes.len() > MAX_INSTRUCTIONS {
            // Whole lines: half a secret could not be told from other text.
            bytes.truncate(MAX_INSTRUCTIONS);
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        }
        ProjectFile { path: path.display().to_string(), text: String::from_utf8_lossy(&bytes).into_owned() }
    };
    Ok(bytes.map(told).into_iter().collect())
}
