//! Which processes a supervisor owns: everything below it, read from `/proc`.

use crate::sys;
use crate::wire::Left;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::collections::HashMap;

/// The longest command line that is told, in characters.
const LONGEST: usize = 200;

/// A running process as `/proc` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub pid: Pid,
    pub parent: i32,
    /// When it started, in ticks since boot.
    pub start: u64,
    name: String,
}

/// All processes below this one, parents before children. Zombies are not running and are left out.
pub(crate) fn descendants() -> Vec<Process> {
    below(rustix::process::getpid().as_raw_nonzero().get())
}

/// All processes below `top`.
pub(crate) fn below(top: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(process) = pid.and_then(read) {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![top];
    while let Some(parent) = open.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            open.push(process.pid.as_raw_nonzero().get());
            found.push(process);
        }
    }
    found
}

/// One process, unless it is gone or a zombie.
pub(crate) fn read(pid: Pid) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some(Process { pid, parent: fields.get(1)?.parse().ok()?, start: fields.get(19)?.parse().ok()?, name })
}

impl Process {
    /// Its command line on one line, or its name in brackets.
    pub fn command(&self) -> String {
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.pid.as_raw_nonzero())).unwrap_or_default();
        let words = String::from_utf8_lossy(&bytes);
        let words = words.trim_end_matches('\0').replace(['\0', '\n', '\r', '\t'], " ");
        match words.trim() {
            "" => format!("[{}]", self.name),
            words => words.chars().take(LONGEST).collect(),
        }
    }

    /// What is told about it.
    pub fn told(&self) -> Left {
        let now = std::fs::read_to_string("/proc/uptime").ok();
        let now = now.and_then(|text| text.split(['.', ' ']).next().and_then(|seconds| seconds.parse::<u64>().ok())).unwrap_or(0);
        Left {
            pid: self.pid.as_raw_nonzero().get(),
            start: self.start,
            command: self.command(),
            age_s: now.saturating_sub(self.start / sys::ticks_per_second()),
        }
    }

    /// Whether it has not ended yet (its id may be another's by now).
    pub fn is_running(&self) -> bool {
        read(self.pid).is_some_and(|now| now.start == self.start)
    }

    /// Sends it a signal; one that ended meanwhile needs none.
    pub fn signal(&self, signal: Signal) {
        // A process that ended needs no signal; one that may not be signalled is killed by the end of its namespace.
        let _ = rustix::process::kill_process(self.pid, signal);
    }
}

/// Kills all processes below this one until there is none left. This process adopts what is orphaned below it, so where it
/// has no child there is nothing, and no list of all processes has to be read.
pub(crate) fn kill_all() {
    while let (_, true) = reap() {
        let running = descendants();
        if running.is_empty() {
            return;
        }
        // First stopped, then killed: what is stopped cannot fork away from the list.
        for signal in [Signal::STOP, Signal::KILL] {
            running.iter().for_each(|process| process.signal(signal));
        }
        std::thread::yield_now();
    }
}

/// Kills all other processes of the pid namespace whose first process this is, and waits for their end.
pub(crate) fn kill_namespace() {
    sys::kill_all_others();
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
}

/// Kills every child that is not among those `kept`, with all below it: what an ended supervisor left to this process.
pub(crate) fn kill_orphans(kept: &[Pid]) {
    let here = rustix::process::getpid().as_raw_nonzero().get();
    let mut open: Vec<i32> = Vec::new();
    for process in descendants() {
        let orphan = process.parent == here && !kept.contains(&process.pid);
        if orphan || open.contains(&process.parent) {
            open.push(process.pid.as_raw_nonzero().get());
            process.signal(Signal::KILL);
        }
    }
}

/// Takes the end of every child that has ended; tells also whether there are others.
pub(crate) fn reap() -> (Vec<(Pid, WaitStatus)>, bool) {
    let mut ended = Vec::new();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(end)) => ended.push(end),
            Ok(None) => return (ended, true),
            Err(_) => return (ended, false),
        }
    }
}
