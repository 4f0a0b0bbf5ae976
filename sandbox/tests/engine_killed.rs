//! What happens to the processes of an environment when the engine is killed: nothing of them is left.
//!
//! This test is its own engine: it starts itself again, lets that run commands, and kills it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "it/support/processes.rs"]
mod processes;

use processes::{LONG, is_running, mark, until};
use sandbox::{Command, Environment, Kind, Limits, Plan, Program, Sandbox};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use trace::Grant;

#[allow(clippy::print_stdout, reason = "a test without harness says itself what it did")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let [_, word, kind, mark] = arguments.as_slice()
        && word == "engine"
    {
        return runtime.block_on(engine(kind.parse().unwrap(), mark));
    }
    for kind in [Kind::Native, Kind::Reduced, Kind::Host] {
        runtime.block_on(killed(kind));
        println!("{kind}: nothing is left of an engine that was killed");
    }
}

/// Leaves a child, and runs a command with children in sessions of their own, until it is killed.
async fn engine(kind: Kind, mark: &str) {
    let top = tempfile::tempdir().unwrap();
    let folder = |name: &str| std::fs::create_dir(top.path().join(name)).map(|()| top.path().join(name)).unwrap();
    let (workspace, home, tmp) = (folder("workspace"), folder("home"), folder("tmp"));
    let plan =
        Plan { workspace, grant: Grant::default(), home, tmp, hidden: Vec::new(), user_home: None, limits: Limits::default() };
    let sandbox = Sandbox::start(kind, Program::Path(env!("CARGO_BIN_EXE_walls").into())).unwrap();
    let environment = sandbox.environment(&plan).await.unwrap();
    run(&environment, &format!("nohup sleep {mark} &")).await;
    let text = format!("setsid bash -c \"trap '' TERM HUP; (setsid sleep {mark} &); sleep {mark}\" & echo ready; sleep {mark}");
    run(&environment, &text).await;
}

async fn run(environment: &Environment, text: &str) {
    let command = Command { script: text.to_owned(), cwd: None, shell: None, timeout: LONG, env: Vec::new() };
    #[allow(clippy::print_stdout, reason = "this is how the test learns that it runs")]
    let sink = &mut |bytes: &[u8]| print!("{}", String::from_utf8_lossy(bytes));
    environment.run(&command, sink).await.unwrap();
}

async fn killed(kind: Kind) {
    let mark = mark();
    #[allow(clippy::disallowed_methods, reason = "the engine of this test has to be a process of its own")]
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let mut engine = command.args(["engine", &kind.to_string(), &mark]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(engine.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let sleeps = format!("sleep {mark}");
    until(async || is_running(&sleeps)).await;
    engine.kill().unwrap();
    engine.wait().unwrap();
    // Its processes see the end of their sockets and go.
    until(async || !is_running(&mark)).await;
}
