//! One measured run: the program as a person would start it, from its first instruction to its end.

use super::mock::{Mock, Request, Usage};
use super::{Durability, Way, Wire};
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
    /// The window that the program is told that the model has, in tokens.
    pub context: u64,
    pub usage: Usage,
    pub way: Way,
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

/// A run that came to its end, as the server and the kernel saw it.
pub struct Played {
    /// When the process was started, since 1970.
    started: Duration,
    pub requests: Vec<Request>,
    pub ended: Ended,
}

/// Runs once, over what earlier runs kept.
pub fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    Ok(figures(&played(setting)?))
}

/// Runs once; fails where the run did not ask as often as it should.
pub fn played(setting: &Setting) -> anyhow::Result<Played> {
    let Setting { program, folder, turns, context, usage, way, .. } = setting;
    let mock = Mock::start(&setting.mock, *turns, *usage, folder.join("requests.jsonl"))?;
    let mut command = Command::new(program);
    let durability = match way.durability {
        Durability::Process => "process",
        Durability::Power => "power",
    };
    command.args(["--config", "none", "run", "go", "--json", "--durability", durability, "--workspace"]);
    command.arg(folder.join("workspace")).args(["--max-turns", &(turns + 1).to_string()]);
    command.args(["--context", &context.to_string()]);
    let address = format!("http://127.0.0.1:{}", mock.port);
    let key = "of-the-scripted-server";
    match way.wire {
        Wire::OpenaiChat => command.args(["--model", "openai-compatible/mock", "--base-url", &format!("{address}/v1")]),
        Wire::Anthropic => command
            .args(["--model", "anthropic/mock"])
            .envs([("ANTHROPIC_BASE_URL", address.as_str()), ("ANTHROPIC_API_KEY", key)]),
        Wire::Responses => command
            .args(["--model", "openai/mock"])
            .envs([("OPENAI_BASE_URL", format!("{address}/v1").as_str()), ("OPENAI_API_KEY", key)]),
        Wire::Gemini => {
            command.args(["--model", "gemini/mock"]).envs([("GOOGLE_GEMINI_BASE_URL", address.as_str()), ("GEMINI_API_KEY", key)])
        }
    };
    command.env("AUTOSAGE_HOME", folder.join("home")).stdin(Stdio::null());
    command.stdout(std::fs::File::create(folder.join("events.jsonl"))?);
    let started = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let child = command.spawn().with_context(|| format!("{}", program.display()))?;
    let ended = wait(child)?;
    if ended.status != 0 {
        bail!("{} ended with wait status {:#x}; see {}", program.display(), ended.status, folder.display());
    }
    let played = Played { started, requests: mock.requests()?, ended };
    whole(&played.requests, *turns)?;
    Ok(played)
}

/// Whether there is a request for every turn and one for the end, all of them answered.
fn whole(requests: &[Request], turns: usize) -> anyhow::Result<()> {
    if requests.len() != turns + 1 || requests.iter().any(|request| request.status != 200) {
        bail!("{} requests instead of {}, or one that was refused", requests.len(), turns + 1);
    }
    Ok(())
}

/// Our own time between each two requests, in milliseconds: what passed, less what the server took.
pub fn gaps(requests: &[Request]) -> Vec<f64> {
    requests.windows(2).map(|pair| (pair[1].t - pair[0].t) * 1e3 - pair[0].mock_ms).collect()
}

fn figures(Played { started, requests, ended }: &Played) -> Figures {
    let (first, last) = (&requests[0], &requests[requests.len() - 1]);
    let broken = requests
        .iter()
        .zip(1..)
        .flat_map(|(request, turn)| request.broken().map(move |what| format!("turn {turn}: {what} is false")));
    Figures {
        first_request_ms: (first.t - started.as_secs_f64()) * 1e3,
        turn_ms: median(gaps(requests).into_iter()),
        cpu_s: ended.cpu.as_secs_f64(),
        peak_mb: ended.peak_mb(),
        first_body_bytes: first.bytes,
        growth_bytes: (last.bytes - first.bytes) / (requests.len() as u64 - 1),
        broken: broken.collect(),
    }
}

/// The middle value; of an even number, the upper of the two in the middle. Zero of none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// What the kernel says of a process that ended.
pub struct Ended {
    status: i32,
    pub cpu: Duration,
    peak_kib: u64,
}

impl Ended {
    /// Resident memory of the largest process, at its peak, in millions of bytes.
    pub fn peak_mb(&self) -> f64 {
        self.peak_kib as f64 * 1024.0 / 1e6
    }
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
        let requests = vec![request(100.5, 100), request(100.51, 300), request(100.518, 400)];
        let figures = figures(&Played { started: Duration::from_millis(100_480), requests, ended: ENDED });
        assert_eq!(figures.first_request_ms.round(), 20.0);
        assert_eq!(figures.turn_ms.round(), 6.0);
        assert_eq!((figures.first_body_bytes, figures.growth_bytes), (100, 150));
        assert_eq!((figures.cpu_s, figures.peak_mb), (0.25, 1.024));
        assert_eq!(figures.broken, ["turn 2: prefix_ok is false"]);
    }

    #[test]
    fn a_run_that_went_wrong_gives_no_figures() {
        assert!(whole(&[request(1.0, 1)], 1).is_err());
        assert!(whole(&[request(1.0, 1), request(2.0, 2)], 1).is_ok());
    }

    #[test]
    fn a_child_is_waited_for() {
        let child = Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert_eq!(libc::WEXITSTATUS(wait(child).unwrap().status), 3);
    }
}
