//! The scripted model of the benches, `bench/mock_llm.py`: it serves each fault that is asked of it, and its log judges every
//! request by the rules of its wire.

use super::server::Wire;
use super::{Place, skip};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A running server; it ends with this value.
pub struct Mock {
    process: Child,
    port: u16,
    log: PathBuf,
}

/// A request of an agent, as the server saw it. What it has nothing to judge by is absent.
#[derive(Debug, Deserialize)]
pub struct Request {
    api: String,
    /// The fault that was served.
    pub fault: Option<String>,
    /// The messages extend those of the request before.
    prefix_ok: Option<bool>,
    /// System text and tools are as before.
    head_ok: Option<bool>,
    /// Each call has exactly one result, in its place.
    results_ok: Option<bool>,
    /// The reasoning of the last reply came back.
    reasoning_returned: Option<bool>,
    /// What was wrong.
    why: Option<String>,
}

/// Starts the script with these arguments; none, and the test is skipped, where there is no Python.
#[allow(clippy::disallowed_methods, reason = "a test of the binary starts its server")]
fn script(args: &[&str]) -> Option<Child> {
    let mut command = std::process::Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/mock_llm.py")).args(args).stdout(Stdio::piped());
    let process = command.spawn().ok();
    if process.is_none() {
        skip("python3");
    }
    process
}

/// Every fault that the script knows, as its help lists them; none, and the test is skipped, where there is no Python.
pub fn faults() -> Option<Vec<String>> {
    let help = String::from_utf8(script(&["--help"])?.wait_with_output().unwrap().stdout).unwrap();
    let (_, list) = help.split_once("\nfaults (").unwrap_or_else(|| panic!("no list of faults in {help}"));
    Some(list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

impl Mock {
    /// Starts it with these options, its log at `place`; none, and the test is skipped, where there is no Python.
    pub fn start(place: &Place, options: &[&str]) -> Option<Mock> {
        let log = place.home().with_file_name("mock.log");
        let its_own = ["--port", "0", "--log", log.to_str().unwrap()];
        let mut process = script(&[&its_own, options].concat())?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok());
        Some(Mock { process, port: port.unwrap_or_else(|| panic!("not ready: {line}")), log })
    }

    /// Its address for a model that speaks `wire`.
    pub fn base_url(&self, wire: Wire) -> String {
        let version = if matches!(wire, Wire::Chat | Wire::Responses) { "/v1" } else { "" };
        format!("http://127.0.0.1:{}{version}", self.port)
    }

    /// The requests that came on `wire`, in order.
    pub fn requests(&self, wire: Wire) -> Vec<Request> {
        let api = match wire {
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Messages => "messages",
            Wire::Gemini => "gemini",
        };
        let log = std::fs::read_to_string(&self.log).unwrap();
        let requests = log.lines().map(|line| serde_json::from_str::<Request>(line).unwrap());
        requests.filter(|request| request.api == api).collect()
    }

    /// The faults that were served on `wire`, in order.
    pub fn served(&self, wire: Wire) -> Vec<String> {
        self.requests(wire).into_iter().filter_map(|request| request.fault).collect()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Request {
    /// What the server judged to be wrong with it.
    pub fn wrong(&self) -> Option<String> {
        let checks = [self.prefix_ok, self.head_ok, self.results_ok, self.reasoning_returned];
        checks.contains(&Some(false)).then(|| self.why.clone().unwrap_or_else(|| format!("{checks:?}")))
    }
}
