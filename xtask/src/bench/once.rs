//! One measured run: the program as a person would start it, from its first instruction to its end.

use super::mock::{Mock, Request};
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is run, and where.
pub struct Setting {
    pub program: PathBuf,
    pub mock: PathBuf,
    /// Workspace, home and logs of all runs, left for a look at the last one.
    pub folder: PathBuf,
    pub turns: usize,
}

/// What one run cost.
#[derive(Serialize)]
pub struct Figures {
    /// From the start of the process until its first request was read.
    pub first_request_ms: f64,
    /// Between the end of a reply and the next request, the command included: the median of the run's turns.
    pub turn_ms: f64,
    /// User and system time of the process and of all that it waited for.
    pub cpu_s: f64,
    /// Resident memory of the largest process, at its peak.
    pub peak_mb: f64,
    pub first_body_bytes: u64,
    /// By which a request's body is longer than the one before, on the average.
    pub growth_bytes: u64,
    /// Requests that do not extend the one before.
    pub broken: Vec<String>,
}

impl Figures {
    /// Each figure's own median.
    pub fn median(runs: &[Figures]) -> Figures {
        let middle = |of: fn(&Figures) -> f64| median(runs.iter().map(of));
        Figures {
            first_request_ms: middle(|run| run.first_request_ms),
            turn_ms: middle(|run| run.turn_ms),
            cpu_s: middle(|run| run.cpu_s),
            peak_mb: middle(|run| run.peak_mb),
            first_body_bytes: middle(|run| run.first_body_bytes as f64) as u64,
            growth_bytes: middle(|run| run.growth_bytes as f64) as u64,
            broken: runs.iter().flat_map(|run| run.broken.clone()).collect(),
        }
    }
}

/// Makes the folders of the runs anew, with nothing kept from before.
pub fn clear(setting: &Setting) -> anyhow::Result<()> {
    if setting.folder.exists() {
        std::fs::remove_dir_all(&setting.folder)?;
    }
    for name in ["workspace", "home"] {
        std::fs::create_dir_all(setting.folder.join(name))?;
    }
    Ok(())
}

/// Runs once, over what earlier runs kept.
pub fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    let Setting { program, folder, .. } = setting;
    let mock = Mock::start(&setting.mock, setting.turns, folder.join("requests.jsonl"))?;
    let mut command = Command::new(program);
    command.args([
        "--config",
        "none",
        "run",
        "go",
        "--model",
        "openai-compatible/mock",
        "--approve",
        "auto",
        "--json",
        "--base-url",
    ]);
    command.arg(format!("http://127.0.0.1:{}/v1", mock.port)).arg("--workspace").arg(folder.join("workspace"));
    command.env("AUTOSAGE_HOME", folder.join("home")).stdin(Stdio::null());
    command.stdout(std::fs::File::create(folder.join("events.jsonl"))?);
    let started = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let child = command.spawn().with_context(|| format!("{}", program.display()))?;
    let ended = wait(child)?;
    if ended.status != 0 {
        bail!("{} ended with wait status {:#x}; see {}", program.display(), ended.status, folder.display());
    }
    figures(started, &mock.requests()?, setting.turns, &ended)
}

fn figures(started: Duration, requests: &[Request], turns: usize, ended: &Ended) -> anyhow::Result<Figures> {
    if requests.len() != turns + 1 || requests.iter().any(|request| request.status != 200) {
        bail!("{} requests instead of {}, or one that was refused", requests.len(), turns + 1);
    }
    let (first, last) = (&requests[0], &requests[turns]);
    let gaps = requests.windows(2).map(|pair| (pair[1].t - pair[0].t) * 1e3 - pair[0].mock_ms);
    let broken = requests
        .iter()
        .zip(1..)
        .flat_map(|(request, turn)| request.broken().map(move |what| format!("turn {turn}: {what} is false")));
    Ok(Figures {
        first_request_ms: (first.t - started.as_secs_f64()) * 1e3,
        turn_ms: median(gaps),
        cpu_s: ended.cpu.as_secs_f64(),
        peak_mb: ended.peak_kib as f64 * 1024.0 / 1e6,
        first_body_bytes: first.bytes,
        growth_bytes: (last.bytes - first.bytes) / turns as u64,
        broken: broken.collect(),
    })
}

/// The middle value; of an even number, the upper of the two in the middle. Zero of none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// What the kernel says of a process that ended.
struct Ended {
    status: i32,
    cpu: Duration,
    peak_kib: u64,
}

/// Waits for a child as `wait4` does: the standard library does not tell what a child used.
fn wait(child: Child) -> anyhow::Result<Ended> {
    let mut status = 0;
    // SAFETY: all zeros is a valid value of this plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the types that the call fills.
    let waited = unsafe { libc::wait4(child.id().try_into()?, &mut status, 0, &mut usage) };
    if waited < 0 {
        return Err(std::io::Error::last_os_error()).context("wait4");
    }
    let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, of.tv_usec as u32 * 1000);
    Ok(Ended { status, cpu: time(usage.ru_utime) + time(usage.ru_stime), peak_kib: usage.ru_maxrss as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(t: f64, bytes: u64) -> Request {
        let line = format!(
            r#"{{"t": {t}, "mock_ms": 4, "bytes": {bytes}, "status": 200, "main": true, "prefix_ok": {}}}"#,
            bytes != 300
        );
        serde_json::from_str(&line).unwrap()
    }

    const ENDED: Ended = Ended { status: 0, cpu: Duration::from_millis(250), peak_kib: 1000 };

    #[test]
    fn figures_come_from_the_log() {
        let requests = [request(100.5, 100), request(100.51, 300), request(100.518, 400)];
        let figures = figures(Duration::from_millis(100_480), &requests, 2, &ENDED).unwrap();
        assert_eq!(figures.first_request_ms.round(), 20.0);
        assert_eq!(figures.turn_ms.round(), 6.0);
        assert_eq!((figures.first_body_bytes, figures.growth_bytes), (100, 150));
        assert_eq!((figures.cpu_s, figures.peak_mb), (0.25, 1.024));
        assert_eq!(figures.broken, ["turn 2: prefix_ok is false"]);
    }

    #[test]
    fn a_run_that_went_wrong_gives_no_figures() {
        assert!(figures(Duration::ZERO, &[request(1.0, 1)], 1, &ENDED).is_err());
    }

    #[test]
    fn a_child_is_waited_for() {
        let child = Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert_eq!(libc::WEXITSTATUS(wait(child).unwrap().status), 3);
    }
}
