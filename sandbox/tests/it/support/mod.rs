//! A temporary workspace with an environment over it, for the integration tests.

mod processes;

pub use processes::{LONG, is_running, mark, present, until};

use sandbox::{Command, Environment, EnvironmentSpec, Exit, Kind, Limits, Program, Sandbox, SandboxError};
use std::path::PathBuf;
use tempfile::TempDir;
use trace::Grant;

/// The program that these tests start as the sandbox.
pub fn program() -> Program {
    Program::Path(env!("CARGO_BIN_EXE_walls").into())
}

/// Folders of a run as the engine makes them: workspace, private home, temporary files, and what is never shown.
pub struct Folders {
    pub top: TempDir,
}

impl Folders {
    pub fn new() -> Folders {
        Folders::within(tempfile::tempdir().unwrap())
    }

    pub fn within(top: TempDir) -> Folders {
        let folders = Folders { top };
        for name in ["workspace", "run/home", "run/tmp", "other-run"] {
            std::fs::create_dir_all(folders.path(name)).unwrap();
        }
        folders
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub fn spec(&self, grant: Grant) -> EnvironmentSpec {
        EnvironmentSpec {
            workspace: self.workspace(),
            grant,
            home: self.path("run/home"),
            tmp: self.path("run/tmp"),
            hidden: vec![self.path("run"), self.path("other-run")],
            user_home: None,
            limits: Limits::default(),
            access: sandbox::Access::Write,
            names: sandbox::Names::default(),
        }
    }

    pub async fn environment(&self, kind: Kind) -> Result<Environment, SandboxError> {
        self.granted(kind, Grant::default()).await
    }

    pub async fn granted(&self, kind: Kind, grant: Grant) -> Result<Environment, SandboxError> {
        Sandbox::start(kind, program())?.environment(&self.spec(grant)).await
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

pub fn script(text: &str) -> Command {
    Command { script: text.to_owned(), cwd: None, shell: None, timeout: LONG, env: Vec::new() }
}

/// What a command did, as one text.
pub struct Ran {
    pub output: String,
    pub exit: Exit,
}

impl Ran {
    /// Its exit code and output, for snapshots.
    pub fn told(&self) -> String {
        let end = match (self.exit.code, self.exit.signal) {
            (Some(code), _) => format!("exit {code}"),
            (_, Some(signal)) => format!("signal {signal}"),
            _ if self.exit.timed_out => "timed out".to_owned(),
            _ => "no end".to_owned(),
        };
        format!("{}{end}\n", self.output)
    }

    pub fn succeeded(&self) -> bool {
        self.exit.code == Some(0)
    }
}

pub async fn run_command(environment: &Environment, command: &Command) -> Ran {
    let mut bytes = Vec::new();
    let exit = environment.run(command, &mut |some| bytes.extend_from_slice(some)).await.unwrap();
    Ran { output: String::from_utf8_lossy(&bytes).into_owned(), exit }
}

pub async fn run(environment: &Environment, text: &str) -> Ran {
    run_command(environment, &script(text)).await
}
