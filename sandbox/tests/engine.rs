//! What needs an engine that is a process of its own: it is killed, and nothing is left; it mounts, and commands see it.
//!
//! This test is its own engine: it starts itself again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "it/support/processes.rs"]
mod processes;

use processes::{LONG, is_running, mark, present, until};
use rustix::mount::{MountFlags, UnmountFlags};
use sandbox::{Command, Environment, EnvironmentSpec, Kind, Limits, Program, Sandbox};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use tempfile::TempDir;
use trace::Grant;

#[allow(clippy::print_stdout, reason = "a test without harness says itself what it did")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match words.as_slice() {
        ["engine", kind, mark] => return runtime.block_on(engine(kind.parse().unwrap(), mark)),
        ["mounting"] => return runtime.block_on(mounting()),
        _ => {}
    }
    for kind in [Kind::Native, Kind::Reduced, Kind::Host] {
        runtime.block_on(killed(kind));
        println!("{kind}: nothing is left of an engine that was killed");
    }
    if present("unshare") {
        mounted();
        println!("what is mounted after the start is seen by the next environment");
    }
}

fn spec(top: &TempDir) -> EnvironmentSpec {
    let folder = |name: &str| std::fs::create_dir(top.path().join(name)).map(|()| top.path().join(name)).unwrap();
    let (workspace, home, tmp) = (folder("workspace"), folder("home"), folder("tmp"));
    EnvironmentSpec {
        workspace,
        grant: Grant::default(),
        home,
        tmp,
        hidden: Vec::new(),
        user_home: None,
        limits: Limits::default(),
        access: sandbox::Access::Write,
        names: sandbox::Names::default(),
    }
}

fn start(kind: Kind) -> Sandbox {
    Sandbox::start(kind, Program::Path(env!("CARGO_BIN_EXE_walls").into())).unwrap()
}

/// This program again.
fn again(program: &str, arguments: &[&str]) -> std::process::Command {
    #[allow(clippy::disallowed_methods, reason = "the engine of this test has to be a process of its own")]
    let mut command = std::process::Command::new(program);
    command.args(arguments).stdout(Stdio::piped());
    command
}

fn this_program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// Leaves a child, and runs a command with children in sessions of their own, until it is killed.
async fn engine(kind: Kind, mark: &str) {
    let top = tempfile::tempdir().unwrap();
    let environment = start(kind).environment(&spec(&top)).await.unwrap();
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
    let mut engine = again(&this_program(), &["engine", &kind.to_string(), &mark]).spawn().unwrap();
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

/// Mounts something over its workspace when the sandbox has begun an environment ahead of time, and then asks for one.
async fn mounting() {
    let top = tempfile::tempdir().unwrap();
    let spec = spec(&top);
    let sandbox = start(Kind::Native);
    until(async || children(std::process::id()).into_iter().any(|zygote| !children(zygote).is_empty())).await;
    rustix::mount::mount("none", &spec.workspace, "tmpfs", MountFlags::empty(), None).unwrap();
    std::fs::write(spec.workspace.join("mounted"), "seen\n").unwrap();
    run(&sandbox.environment(&spec).await.unwrap(), "cat mounted").await;
    rustix::mount::unmount(&spec.workspace, UnmountFlags::DETACH).unwrap();
}

fn mounted() {
    let output = again("unshare", &["--map-root-user", "--mount", &this_program(), "mounting"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "seen\n");
}

/// The processes that a process of one thread started.
fn children(process: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}
