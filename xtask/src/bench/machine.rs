//! What the machine's own disk takes to keep a line: the measure beside which `power` is read.

use super::once::median;
use anyhow::Context;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const APPENDS: usize = 200;

/// The median of an `fdatasync` after an append of one line, in milliseconds, on the disk where the runs were.
pub fn fdatasync_ms(target: &Path) -> anyhow::Result<f64> {
    let path = target.join("bench/appended");
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let mut file = opened.with_context(|| format!("{}", path.display()))?;
    let line = [b'x'; 600];
    let mut append = || -> std::io::Result<f64> {
        file.write_all(&line)?;
        let since = Instant::now();
        file.sync_data()?;
        Ok(since.elapsed().as_secs_f64() * 1e3)
    };
    let times = (0..APPENDS).map(|_| append()).collect::<Result<Vec<_>, _>>()?;
    std::fs::remove_file(&path)?;
    Ok(median(times.into_iter()))
}
