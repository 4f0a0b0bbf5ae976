//! What a long record costs: `engine/examples/long_record.rs`, which writes, folds and reopens it and prints its figures,
//! and `autosage show` over one.

use super::once::median;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Events of a long record, of one that is a tenth of it, and of the one that is shown.
const EVENTS: [usize; 2] = [10_000, 100_000];
const SHOWN: usize = 10_000;
const SHOWS: usize = 5;

/// The figures of records of several lengths.
#[derive(Serialize)]
pub struct Lengths {
    pub records: Vec<Length>,
    /// `autosage show` of a record of [`SHOWN`] events, from its start to its end.
    pub show_ms: f64,
}

/// What a record of one length costs.
#[derive(Serialize, Deserialize)]
pub struct Length {
    pub events: usize,
    /// Bytes of all lines.
    pub bytes: u64,
    /// All appends, each event folded as it comes.
    pub append_ms: f64,
    /// Opening the record again as its owner and folding its events.
    pub reopen_ms: f64,
    /// Resident memory after that, at its peak, in a process of its own.
    pub reopen_peak_mb: f64,
}

pub fn measure(target: &Path) -> anyhow::Result<Lengths> {
    let home = target.join("bench/long-home");
    let records = EVENTS.iter().map(|events| length(target, &home, *events)).collect::<anyhow::Result<_>>()?;
    length(target, &home, SHOWN)?;
    let shows = (0..SHOWS).map(|_| show(target, &home)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Lengths { records, show_ms: median(shows.into_iter()) })
}

/// Writes a record of `events` events as the only run of `home`, and opens it again in a process of its own.
fn length(target: &Path, home: &Path, events: usize) -> anyhow::Result<Length> {
    if home.exists() {
        std::fs::remove_dir_all(home)?;
    }
    let program = target.join("release/examples/long_record");
    let call = |act: &str| -> anyhow::Result<serde_json::Value> {
        let output = Command::new(&program).arg(act).arg(home).arg(events.to_string()).output();
        let output = output.with_context(|| format!("{}", program.display()))?;
        if !output.status.success() {
            bail!("{} {act}: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let (mut written, reopened) = (call("write")?, call("reopen")?);
    if let (Some(written), serde_json::Value::Object(reopened)) = (written.as_object_mut(), reopened) {
        written.extend(reopened);
    }
    Ok(serde_json::from_value(written)?)
}

/// Shows the only run of `home`.
fn show(target: &Path, home: &Path) -> anyhow::Result<f64> {
    let mut command = Command::new(target.join("release/autosage"));
    command.args(["--config", "none", "show", "--last"]).env("AUTOSAGE_HOME", home).stdout(Stdio::null());
    let since = Instant::now();
    let status = command.status()?;
    if !status.success() {
        bail!("`autosage show` of a record of {SHOWN} events: {status}");
    }
    Ok(since.elapsed().as_secs_f64() * 1e3)
}
