//! A temporary workspace, an environment over it, and an agent that calls tools there and remembers what it has seen.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use sandbox::{Environment, Kind, Limits, Plan, Program, Sandbox};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;
use tools::{Caps, Room, Toolbox};
use trace::{Blobs, CallId, Digest, FileSeen, Grant, Observed, Seq, ToolCall, text_of};

/// A workspace with an environment, and what the record would tell about an agent in it.
pub struct Bench {
    folders: TempDir,
    pub environment: Environment,
    pub blobs: Blobs,
    pub caps: Caps,
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
    outputs: BTreeMap<Seq, Digest>,
}

/// The toolbox with the words of the default harness.
pub fn toolbox() -> Toolbox {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/default/tools");
    tools::builtin(&|name| std::fs::read_to_string(format!("{folder}/{name}/tool.toml")).ok()).unwrap()
}

impl Bench {
    pub async fn new() -> Bench {
        Bench::with(Grant::default()).await
    }

    pub async fn with(grant: Grant) -> Bench {
        Bench::of(Kind::Native, grant).await
    }

    pub async fn of(kind: Kind, grant: Grant) -> Bench {
        let folders = tempfile::tempdir().unwrap();
        let top = folders.path().canonicalize().unwrap();
        for name in ["workspace", "outside", "run/home", "run/tmp", "run/blobs"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        let plan = Plan {
            workspace: top.join("workspace"),
            grant,
            home: top.join("run/home"),
            tmp: top.join("run/tmp"),
            hidden: vec![top.join("run")],
            user_home: None,
            limits: Limits::default(),
        };
        let program = Program::Path(env!("CARGO_BIN_EXE_tool-walls").into());
        let environment = Sandbox::start(kind, program).unwrap().environment(&plan).await.unwrap();
        let blobs = trace::blobs(&top.join("run"));
        let (caps, agent) = (Caps::default(), RefCell::default());
        Bench { folders, environment, blobs, caps, left_ms: None, toolbox: toolbox(), agent }
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
            blobs: &self.blobs,
            caps: &self.caps,
            cwd: &cwd,
            shell: shell.as_ref(),
            seen: &|path| self.agent.borrow().seen.get(path).cloned(),
            output: &|at| self.agent.borrow().outputs.get(&at).copied(),
            left_ms: self.left_ms,
            at,
        };
        let call = ToolCall { id: CallId::new(at, 0), name: name.to_owned(), arguments };
        let observed = self.toolbox.serve(&call, &room).await;
        let mut agent = self.agent.borrow_mut();
        agent.cwd = observed.cwd.as_ref().map(PathBuf::from).or_else(|| agent.cwd.take());
        agent.shell = observed.shell.clone().or_else(|| agent.shell.take());
        agent.seen.extend(observed.files.iter().map(|file| (file.path.clone(), file.clone())));
        agent.outputs.extend(observed.blob.map(|blob| (at, blob)));
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

/// Whether a process with this in its command line exists anywhere on the machine.
pub fn is_running(marker: &str) -> bool {
    let lines =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(marker))
}
