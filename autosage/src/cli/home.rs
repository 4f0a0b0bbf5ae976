//! `$AUTOSAGE_HOME`: where everything is that the program keeps.

use super::args::Which;
use super::failure::Failure;
use crate::Parts;
use anyhow::{Context, anyhow};
use std::fs;
use std::path::{Path, PathBuf};
use trace::RunId;

/// The folder of everything that is kept.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// `$AUTOSAGE_HOME`, else `$XDG_DATA_HOME/autosage`, else `~/.local/share/autosage`. Nothing is made yet.
    pub fn find(parts: &Parts) -> Result<Home, Failure> {
        let named = parts.variable("AUTOSAGE_HOME").map(PathBuf::from);
        let data = || parts.xdg_folder("XDG_DATA_HOME").map(|data| data.join("autosage"));
        let usual = || parts.variable("HOME").map(|home| Path::new(home).join(".local/share/autosage"));
        let folder = named.or_else(data).or_else(usual);
        let folder = folder.ok_or_else(|| Failure::usage("there is no place to keep runs in: set AUTOSAGE_HOME to a folder"))?;
        let folder = std::path::absolute(&folder).with_context(|| format!("reading the path {}", folder.display()));
        Ok(Home { folder: folder.map_err(Failure::Usage)? })
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of all runs.
    pub fn runs_folder(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// The folder of the run `id`.
    pub fn run(&self, id: &RunId) -> PathBuf {
        self.runs_folder().join(id.as_str())
    }

    /// The folders of all runs, newest first.
    pub fn runs(&self) -> Result<Vec<(RunId, PathBuf)>, Failure> {
        let folder = self.runs_folder();
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.with_context(|| format!("reading {}", folder.display())).map_err(Failure::Infrastructure)?,
        };
        let named = |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()));
        let mut runs: Vec<(RunId, PathBuf)> = entries.filter_map(|entry| named(entry.ok()?)).collect();
        runs.sort_by(|a, b| b.0.cmp(&a.0));
        Ok(runs)
    }

    /// The run that was meant.
    pub fn which(&self, which: &Which) -> Result<PathBuf, Failure> {
        match &which.run {
            Some(name) => self.named(name),
            None => {
                let mut runs = self.runs()?.into_iter().map(|(_, path)| path);
                let newest = runs.find(|path| path.join("trace.jsonl").is_file());
                newest.ok_or_else(|| Failure::usage(format!("there are no runs in {}", self.folder.display())))
            }
        }
    }

    /// The run whose name begins with `start`.
    pub fn named(&self, start: &str) -> Result<PathBuf, Failure> {
        let runs = self.runs()?;
        let mut found = runs.iter().filter(|(id, _)| id.as_str().starts_with(start));
        match (found.next(), found.next()) {
            _ if start.is_empty() => Err(Failure::usage("a run's name is expected; `autosage runs` lists them")),
            (Some((id, path)), _) if id.as_str() == start => Ok(path.clone()),
            (Some((_, path)), None) => Ok(path.clone()),
            (None, _) => {
                let error = anyhow!("there is no run `{start}` in {}; `autosage runs` lists them", self.folder.display());
                Err(Failure::Usage(error))
            }
            (Some((first, _)), Some((second, _))) => {
                Err(Failure::usage(format!("`{start}` is not unique: {first} and {second} begin so")))
            }
        }
    }
}
