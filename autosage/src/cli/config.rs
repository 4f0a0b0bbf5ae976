//! The person's configuration: `$XDG_CONFIG_HOME/autosage/config.toml`.

use super::args;
use super::failure::Failure;
use crate::Parts;
use anyhow::{Context, anyhow};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use trace::{Limits, ProjectFile};

/// What a person may settle once instead of typing it. Flags go before it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The model, as provider/name.
    pub model: Option<String>,
    /// The server's address.
    pub base_url: Option<String>,
    /// The variable that holds the key of an openai-compatible server.
    pub key_env: Option<String>,
    /// The walls.
    pub sandbox: Option<sandbox::Kind>,
    /// Commands that must succeed before work is accepted.
    #[serde(default)]
    pub checks: Vec<String>,
    /// What may be spent.
    #[serde(default)]
    pub budget: Budget,
    /// Rights beyond the workspace.
    #[serde(default)]
    pub grant: Rights,
    /// The person's own instructions for every run, from AGENTS.md beside the file.
    #[serde(skip)]
    pub instructions: Vec<ProjectFile>,
}

/// What may be spent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    turns: Option<u64>,
    tokens: Option<u64>,
    usd: Option<Usd>,
    time: Option<String>,
}

/// An amount of dollars, as a number or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Usd {
    Text(String),
    Whole(u64),
    Decimal(f64),
}

impl Usd {
    /// As it is typed on the command line.
    fn text(&self) -> String {
        match self {
            Usd::Text(text) => text.clone(),
            Usd::Whole(number) => number.to_string(),
            Usd::Decimal(number) => number.to_string(),
        }
    }
}

/// Rights beyond the workspace.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rights {
    /// Paths that may be read.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Paths that may be read and written.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// Whether the network can be reached.
    #[serde(default)]
    pub network: bool,
}

/// The most of a person's own instructions that is read, in bytes.
const MAX_INSTRUCTIONS: usize = 64 * 1024;

impl Config {
    /// Reads `named` (`none` reads nothing), else the usual file, which may be missing.
    pub fn load(named: Option<&str>, parts: &Parts) -> Result<Config, Failure> {
        let (path, may_miss) = match named {
            Some("none") => return Ok(Config::default()),
            Some(path) => (PathBuf::from(path), false),
            None => match usual_folder(parts) {
                Some(folder) => (folder.join("config.toml"), true),
                None => return Ok(Config::default()),
            },
        };
        let mut config: Config = match std::fs::read_to_string(&path) {
            Err(error) if may_miss && error.kind() == std::io::ErrorKind::NotFound => Config::default(),
            read => {
                let text = read.with_context(|| format!("reading the configuration {}", path.display()));
                toml::from_str(&text.map_err(Failure::Usage)?)
                    .map_err(|error| Failure::Usage(anyhow!("the configuration {}: {error}", path.display())))?
            }
        };
        if let Some(folder) = path.parent() {
            config.instructions = instructions(&folder.join("AGENTS.md"))?;
        }
        Ok(config)
    }

    /// The limits that it sets.
    pub fn limits(&self) -> Result<Limits, Failure> {
        let wrong = |key: &str, why: String| Failure::usage(format!("the configuration's budget.{key}: {why}"));
        let usd = self.budget.usd.as_ref().map(|usd| args::usd(&usd.text())).transpose().map_err(|why| wrong("usd", why))?;
        let time = self.budget.time.as_deref().map(args::duration).transpose().map_err(|why| wrong("time", why))?;
        Ok(Limits {
            turns: self.budget.turns,
            tokens: self.budget.tokens,
            nano_usd: usd,
            time_ms: time.map(super::wiring::millis),
        })
    }
}

/// `$XDG_CONFIG_HOME/autosage`, else `~/.config/autosage`.
pub fn usual_folder(parts: &Parts) -> Option<PathBuf> {
    let config = parts.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| parts.variable("HOME").map(|home| Path::new(home).join(".config")));
    config.map(|config| config.join("autosage"))
}

/// The person's own instructions, if there are any.
fn instructions(path: &Path) -> Result<Vec<ProjectFile>, Failure> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => {
            let mut bytes = read.with_context(|| format!("reading {}", path.display())).map_err(Failure::Usage)?;
            bytes.truncate(MAX_INSTRUCTIONS);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(vec![ProjectFile { path: path.display().to_string(), text }])
        }
    }
}
