//! The scripted model, `bench/mock_llm.py`: starting it, and what its log tells of a run.

use anyhow::{Context, bail};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What the server says that a cache has served of a request.
#[derive(Clone, Copy)]
pub enum Usage {
    /// Nine tenths.
    Fixed,
    /// What it was sent before.
    Cached,
}

/// A running server; it ends with this value.
pub struct Mock {
    process: Child,
    pub port: u16,
    log: PathBuf,
}

impl Mock {
    /// Calls `bash` with `echo 1`, `echo 2`, … `turns` times, then answers.
    pub fn start(script: &Path, turns: usize, usage: Usage, log: PathBuf) -> anyhow::Result<Mock> {
        let mut command = Command::new("python3");
        let usage = match usage {
            Usage::Fixed => "fixed",
            Usage::Cached => "cached",
        };
        command.arg(script).args(["--port", "0", "--turns", &turns.to_string(), "--usage", usage, "--log"]).arg(&log);
        let mut process = command.stdout(Stdio::piped()).spawn().context("python3: apt-get install -y python3")?;
        let stdout = process.stdout.take().expect("stdout is a pipe");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(port) = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok()) else {
            bail!("the scripted model said `{}` instead of `ready PORT`", line.trim());
        };
        Ok(Mock { process, port, log })
    }

    pub fn requests(&self) -> anyhow::Result<Vec<Request>> {
        let log = std::fs::read_to_string(&self.log).with_context(|| format!("{}", self.log.display()))?;
        requests(&log)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One request of an agent, as the server saw it. What it has nothing to judge by is absent.
#[derive(Deserialize)]
pub struct Request {
    /// When it was read whole, in seconds since 1970.
    pub t: f64,
    /// How long the server worked on it.
    pub mock_ms: f64,
    pub bytes: u64,
    pub status: u16,
    main: bool,
    prefix_ok: Option<bool>,
    head_ok: Option<bool>,
    results_ok: Option<bool>,
}

impl Request {
    /// What was wrong with it.
    pub fn broken(&self) -> impl Iterator<Item = &'static str> {
        let judged = [("prefix_ok", self.prefix_ok), ("head_ok", self.head_ok), ("results_ok", self.results_ok)];
        judged.into_iter().filter(|(_, ok)| *ok == Some(false)).map(|(name, _)| name)
    }
}

fn requests(log: &str) -> anyhow::Result<Vec<Request>> {
    let all = log.lines().map(serde_json::from_str).collect::<Result<Vec<Request>, _>>()?;
    Ok(all.into_iter().filter(|request| request.main).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read() {
        let log = r#"
{"n": 1, "t": 10.5, "mock_ms": 0, "bytes": 10, "status": 200, "main": false}
{"n": 2, "t": 11.5, "mock_ms": 2.5, "bytes": 4000, "status": 200, "main": true, "prefix_ok": null, "head_ok": null, "results_ok": null}
{"n": 3, "t": 12.5, "mock_ms": 2.5, "bytes": 4200, "status": 200, "main": true, "prefix_ok": false, "head_ok": true, "results_ok": false}
"#;
        let requests = requests(log.trim()).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].broken().count(), 0);
        assert_eq!(requests[1].broken().collect::<Vec<_>>(), ["prefix_ok", "results_ok"]);
    }
}
