//! Runs a command with only the rights it was granted.
//!
//! The engine's own process never runs a command and opens no file of a workspace. It starts a **zygote**: the same program
//! again, with one thread and nothing of the engine in it. From that, each environment's **init** is forked into namespaces
//! of its own, composes a root folder out of mounts, and forks a small **job-init** for each command, which starts the
//! command behind Landlock and one seccomp filter. A command is a fork, not a new sandbox, and what the next environment and
//! the next command begin with is forked before they are asked for. A command is complete when its shell ends; a timeout or a
//! dropped future kills its whole namespace; and when the engine ends, however it ends, each of these processes sees the end
//! of its socket and everything below it dies.
//!
//! File tools are performed inside too: [`Environment::call`] runs one function of the program's own table ([`Ops`]) in a
//! fork behind the same walls. A program that wants environments makes [`enter`] the first statement of its `main`.
//!
//! Start reading at [`Sandbox`] and [`Environment`], then `zygote`, `init`, `spare`, `job` and `work`, in the order of their
//! forks; `layout` says what an environment consists of, `root`, `git`, `walls` and `filter` are the walls.

#[cfg(not(target_os = "linux"))]
compile_error!("the sandbox is made of Linux's namespaces, Landlock and seccomp; use a Linux container or virtual machine");

pub mod capture;
mod cgroup;
mod children;
mod declarations;
mod environment;
pub mod file;
mod filter;
mod git;
mod gitconfig;
mod init;
mod job;
mod layout;
mod limits;
mod mounts;
mod parts;
mod placeholder;
mod places;
mod probe;
mod processes;
mod root;
mod running;
mod shell;
mod spare;
mod spec;
mod sys;
mod walls;
mod wire;
mod work;
mod zygote;

pub use children::READABLE;
pub use environment::{Environment, Sandbox};
pub use probe::{Probe, apparmor_profile, probe_native, probe_with};
pub use spec::{
    Access, CallError, Command, EnvironmentSpec, Exit, Kind, Limits, Names, Printed, Program, SandboxError, Stopped, UnknownKind,
};

use std::sync::atomic::{AtomicBool, Ordering};

/// What can be done inside an environment by name: plain functions, run in a forked worker with the walls of a command.
pub type Ops = &'static [(&'static str, Op)];

/// One operation: a request's bytes in, an answer's bytes out. It may panic; the caller is told.
pub type Op = fn(&[u8]) -> Vec<u8>;

static ENTERED: AtomicBool = AtomicBool::new(false);

/// The first statement of `main` in a program that starts a sandbox. Returns at once, unless this process was started to be
/// the sandbox's own; then it never returns.
pub fn enter(ops: Ops) {
    ENTERED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == zygote::NAME => zygote::serve(arguments.next(), ops),
        Some(name) if name == probe::NAME => probe::serve(),
        _ => {}
    }
}

fn entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}
