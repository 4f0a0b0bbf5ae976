//! A temporary workspace with an environment over it, for the integration tests.

use sandbox::capture::Caps;
use sandbox::{Environment, Kind, Limits, Plan, Program, Sandbox};
use tempfile::TempDir;
use trace::{Check, Grant};

pub const CAPS: Caps = Caps { head: 100, tail: 100 };

pub async fn environment(folders: &TempDir) -> Environment {
    let top = folders.path().canonicalize().unwrap();
    for name in ["workspace", "run/home", "run/tmp"] {
        std::fs::create_dir_all(top.join(name)).unwrap();
    }
    let plan = Plan {
        workspace: top.join("workspace"),
        grant: Grant::default(),
        home: top.join("run/home"),
        tmp: top.join("run/tmp"),
        hidden: vec![top.join("run")],
        user_home: None,
        limits: Limits::default(),
    };
    let program = Program::Path(env!("CARGO_BIN_EXE_verify-walls").into());
    Sandbox::start(Kind::Native, program).unwrap().environment(&plan).await.unwrap()
}

pub fn check(command: &str, timeout_ms: u64) -> Check {
    Check { command: command.to_owned(), timeout_ms }
}
