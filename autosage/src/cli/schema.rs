//! The schema of a run's answers: read, and refused where nothing can be held to it.

use super::failure::Failure;
use anyhow::{Context, bail};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use verify::Schema;

/// The most that a schema may be, in bytes: it stands in every request.
const MOST: u64 = 64 << 10;

/// Reads the schema in the file that was typed, if one was.
pub fn read(typed: Option<&Path>) -> Result<Option<Value>, Failure> {
    let read = |path| schema(path).with_context(|| format!("reading the schema {} (--output-schema)", path.display()));
    typed.map(read).transpose().map_err(Failure::Usage)
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let mut text = String::new();
    File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        bail!("it has more than 64 KiB, and it would stand in every request: make it smaller");
    }
    let value = serde_json::from_str(&text).context("it is not JSON")?;
    Ok(Schema::new(value)?.value().clone())
}
