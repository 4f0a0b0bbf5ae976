//! What the sandbox costs alone: `sandbox/examples/cost.rs`, which measures from the inside and prints its figures.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// Medians, in milliseconds.
#[derive(Serialize, Deserialize)]
pub struct Walls {
    /// Until a new environment can run its first command.
    pub environment_ms: f64,
    /// A command in an environment that is there already.
    pub command_ms: f64,
    /// The same command as a plain fork and exec.
    pub bare_ms: f64,
}

pub fn measure(target: &Path) -> anyhow::Result<Walls> {
    let program = target.join("release/examples/cost");
    let output = Command::new(&program).output().with_context(|| format!("{}", program.display()))?;
    if !output.status.success() {
        bail!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
