//! A temporary workspace, an environment over it, and an agent that calls tools there and remembers what it has seen.

use sandbox::{Environment, EnvironmentSpec, Kind, Limits, Program, Sandbox, SandboxError};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;
use tools::{Caps, Output, Room, Toolbox};
use trace::{Blobs, CallId, FileSeen, Grant, Observed, Secrets, Seq, ToolCall, text_of};

/// A workspace with an environment, and what the record would tell about an agent in it.
pub struct Bench {
    folders: TempDir,
    pub environment: Environment,
    pub blobs: Blobs,
    pub caps: Caps,
    pub secrets: Secrets,
    pub left_ms: Option<u64>,
    toolbox: Toolbox,
    agent: RefCell<Agent>,
}

#[derive(Default)]
struct Agent {
    calls: u64,
    cwd: Option<PathBuf>,
    shell: Option<BTreeMap<String, Option<String>>>,
    seen: BTreeMap<String, FileSeen>,
    outputs: BTreeMap<Seq, Output>,
}

/// The toolbox with the words of the default harness.
pub fn toolbox() -> Toolbox {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/default/tools");
    tools::builtin(&|name| std::fs::read_to_string(format!("{folder}/{name}/tool.toml")).ok()).unwrap()
}

impl Bench {
    /// A bench behind native walls; `None`, and the test is skipped, where this machine has none.
    pub async fn new() -> Option<Bench> {
        Bench::with(Grant::default()).await
    }

    pub async fn with(grant: Grant) -> Option<Bench> {
        Bench::of(Kind::Native, grant).await
    }

    pub async fn of(kind: Kind, grant: Grant) -> Option<Bench> {
        let folders = tempfile::tempdir().unwrap();
        let top = folders.path().canonicalize().unwrap();
        for name in ["workspace", "outside", "run/home", "run/tmp", "run/blobs"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        let spec = EnvironmentSpec {
            workspace: top.join("workspace"),
            grant,
            home: top.join("run/home"),
            tmp: top.join("run/tmp"),
            hidden: vec![top.join("run")],
            user_home: None,
            limits: Limits::default(),
            access: sandbox::Access::Write,
            names: sandbox::Names::default(),
        };
        let program = Program::Path(env!("CARGO_BIN_EXE_tool-walls").into());
        let environment = match Sandbox::start(kind, program).unwrap().environment(&spec).await {
            Ok(environment) => environment,
            Err(SandboxError::Environment { .. }) => {
                skip(if kind == Kind::Native { "namespaces" } else { "landlock" });
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let blobs = trace::blobs(&top.join("run"));
        let (caps, agent) = (Caps::default(), RefCell::default());
        Some(Bench {
            folders,
            environment,
            blobs,
            caps,
            secrets: Secrets::of_nothing(),
            left_ms: None,
            toolbox: toolbox(),
            agent,
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folders.path().canonicalize().unwrap().join("workspace").join(name)
    }

    pub fn outside(&self, name: &str) -> PathBuf {
        self.path("../outside").canonicalize().unwrap().join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn get(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// The record's place that the next call will have.
    pub fn next_at(&self) -> u64 {
        self.agent.borrow().calls + 1
    }

    /// Calls a tool and keeps what the record would keep.
    pub async fn call(&self, name: &str, arguments: Value) -> Observed {
        let (at, cwd, shell) = {
            let mut agent = self.agent.borrow_mut();
            agent.calls += 1;
            (Seq(agent.calls), agent.cwd.clone().unwrap_or_else(|| self.path("")), agent.shell.clone())
        };
        // `path("")` ends in a slash.
        let cwd: PathBuf = cwd.components().collect();
        let room = Room {
            environment: &self.environment,
            lasting: tools::Lasting::Session,
            beside: &[],
            blobs: &self.blobs,
            caps: &self.caps,
            cwd: &cwd,
            shell: shell.as_ref(),
            seen: &|path| self.agent.borrow().seen.get(path).cloned(),
            output: &|at| Ok(self.agent.borrow().outputs.get(&at).cloned()),
            secrets: &self.secrets,
            left_ms: self.left_ms,
            at,
        };
        let call = ToolCall { id: CallId::new(at, 0), name: name.to_owned(), arguments };
        let observed = self.toolbox.serve(&call, &room).await;
        let mut agent = self.agent.borrow_mut();
        agent.cwd = observed.cwd.as_ref().map(PathBuf::from).or_else(|| agent.cwd.take());
        agent.shell = observed.shell.clone().or_else(|| agent.shell.take());
        agent.seen.extend(observed.files.iter().map(|file| (file.path.clone(), file.clone())));
        let told = || Output::Told(observed.content.clone());
        agent.outputs.insert(at, observed.blob.map_or_else(told, Output::Blob));
        observed
    }

    /// Calls a tool; its status and words, with the folders of this test masked.
    pub async fn told(&self, name: &str, arguments: Value) -> String {
        let observed = self.call(name, arguments).await;
        let top = self.path("..").canonicalize().unwrap();
        let text = text_of(&observed.content).replace(top.to_str().unwrap(), "TOP");
        format!("{}: {text}", observed.status.word())
    }
}

/// Says that a test is skipped for want of `component`; fails where `AUTOSAGE_REQUIRE` names it.
fn skip(component: &str) {
    #[allow(clippy::disallowed_methods, reason = "the variable is the interface of the test runner")]
    let required = std::env::var("AUTOSAGE_REQUIRE").unwrap_or_default();
    assert!(!required.split([',', ' ']).any(|name| name == component), "{component} is required and missing");
    #[allow(clippy::print_stdout, reason = "what was not tested has to be seen")]
    {
        println!("skipped: no {component}");
    }
}

/// A running process.
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// Its command line.
    pub line: String,
}

/// All processes of the machine, as far as they can be seen.
pub fn processes() -> Vec<Process> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let process = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let line = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).ok()?).replace('\0', " ");
        Some(Process { pid, parent, line })
    };
    pids.filter_map(process).collect()
}

/// Waits until a process has this command line, and kills the sandbox of this program that it runs in.
pub async fn lose_the_sandbox_of(line: &str) {
    let here = i32::try_from(std::process::id()).unwrap();
    let mut all = processes();
    while !all.iter().any(|process| process.line.trim() == line) {
        tokio::task::yield_now().await;
        all = processes();
    }
    let mut process = all.iter().find(|process| process.line.trim() == line).unwrap();
    while process.parent != here {
        process = all.iter().find(|above| above.pid == process.parent).unwrap();
    }
    rustix::process::kill_process(rustix::process::Pid::from_raw(process.pid).unwrap(), rustix::process::Signal::KILL).unwrap();
}

/// Whether a process with this in its command line exists anywhere on the machine.
pub fn is_running(marker: &str) -> bool {
    processes().iter().any(|process| process.line.contains(marker))
}
