//! A temporary workspace with an environment over it, for the integration tests.

use sandbox::capture::Caps;
use sandbox::{Environment, EnvironmentSpec, Kind, Limits, Program, Sandbox, SandboxError};
use tempfile::TempDir;
use trace::{Check, Grant};

pub const CAPS: Caps = Caps { head: 100, tail: 100 };

/// An environment over the workspace; `None`, and the test is skipped, where this machine has no walls for it.
pub async fn environment(folders: &TempDir) -> Option<Environment> {
    let top = folders.path().canonicalize().unwrap();
    for name in ["workspace", "run/home", "run/tmp"] {
        std::fs::create_dir_all(top.join(name)).unwrap();
    }
    let spec = EnvironmentSpec {
        workspace: top.join("workspace"),
        grant: Grant::default(),
        home: top.join("run/home"),
        tmp: top.join("run/tmp"),
        hidden: vec![top.join("run")],
        user_home: None,
        limits: Limits::default(),
        access: sandbox::Access::Write,
        names: sandbox::Names::default(),
    };
    let program = Program::Path(env!("CARGO_BIN_EXE_verify-walls").into());
    match Sandbox::start(Kind::Native, program).unwrap().environment(&spec).await {
        Ok(environment) => Some(environment),
        Err(SandboxError::Environment { .. }) => {
            skip("namespaces");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn check(command: &str, timeout_ms: u64) -> Check {
    Check { command: command.to_owned(), timeout_ms }
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
