//! The zygote: this program again, with one thread and nothing of the engine in it, from which every environment is forked.
//!
//! It ends with its socket, that is with the engine, and every init ends with it.

use crate::cgroup::Cgroup;
use crate::layout::Layout;
use crate::plan::Kind;
use crate::wire::{self, FromInit, ToZygote};
use crate::{Ops, init, job, processes, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::io;

/// The name under which a program is started to be the zygote; its socket is standard input.
pub(crate) const NAME: &str = "autosage-zygote";

/// Serves the socket that is this process's standard input; never returns.
pub(crate) fn serve(ops: Ops) -> ! {
    let Ok((socket, signals)) = prepare() else { sys::exit(1) };
    let mut zygote = Zygote { socket, signals, ops, inits: Vec::new() };
    loop {
        let mut fds = [PollFd::new(&zygote.socket, PollFlags::IN), PollFd::new(&zygote.signals, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => job::end(Kind::Host),
        }
        let asked = !fds[0].revents().is_empty();
        while sys::next_signal(&zygote.signals).is_some() {
            zygote.reap();
        }
        if asked {
            match wire::receive::<ToZygote>(&zygote.socket) {
                Ok(Some((ToZygote::Environment(layout), fds))) => zygote.create(&layout, fds),
                Ok(None) | Err(_) => zygote.end(),
            }
        }
    }
}

fn prepare() -> io::Result<(OwnedFd, OwnedFd)> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok((socket, sys::signals(&[Signal::CHILD])?))
}

struct Zygote {
    socket: OwnedFd,
    signals: OwnedFd,
    ops: Ops,
    /// The inits that run, each with its control group where one could be made.
    inits: Vec<(Pid, Option<Cgroup>)>,
}

impl Zygote {
    /// Ends after the inits, which see the end of their own sockets and clean up; what takes too long is killed.
    fn end(mut self) -> ! {
        let patience = Timespec { tv_sec: 2, tv_nsec: 0 };
        while !self.inits.is_empty() {
            match poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&patience)) {
                Ok(1) | Err(Errno::INTR) => {}
                _ => break,
            }
            while sys::next_signal(&self.signals).is_some() {}
            self.reap();
        }
        job::end(Kind::Host)
    }

    fn reap(&mut self) {
        let (ended, _) = processes::reap();
        let before = self.inits.len();
        self.inits.retain(|(pid, _)| !ended.iter().any(|(gone, _)| gone == pid));
        if self.inits.len() < before {
            processes::kill_orphans(&self.inits.iter().map(|(pid, _)| *pid).collect::<Vec<_>>());
        }
    }

    fn create(&mut self, layout: &Layout, fds: Vec<OwnedFd>) {
        let Some(control) = fds.into_iter().next() else { return };
        if let Err((step, error)) = self.fork(layout, &control) {
            // The engine may have given the environment up.
            let _ = wire::send(&control, &FromInit::Failed { step: step.to_owned(), error: error.to_string() }, &[]);
        }
    }

    fn fork(&mut self, layout: &Layout, control: &OwnedFd) -> Result<(), (&'static str, io::Error)> {
        let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (go, gone) = pipe.map_err(|e| ("making a pipe", e.into()))?;
        let fork = match layout.kind {
            Kind::Native => sys::fork_into(namespaces(if layout.network { Net::Host } else { Net::Own })),
            Kind::Reduced | Kind::Host => sys::fork(),
        };
        match fork.map_err(|e| ("making namespaces", e))? {
            sys::Fork::Child => match control.try_clone() {
                Ok(control) => init::begin(layout, control, go, self.ops),
                Err(_) => sys::exit(1),
            },
            sys::Fork::Parent(pid) => {
                // Most machines give none; then limits hold per process.
                let group = if layout.kind == Kind::Host { None } else { Cgroup::around(pid, &layout.limits).ok() };
                self.inits.push((pid, group));
                // Without the word to go, the child ends by itself when `gone` closes.
                if layout.kind == Kind::Native {
                    map_users(pid).map_err(|e| ("mapping users into the namespace", e))?;
                }
                init::born(control, &FromInit::Born, pid).map_err(|e| ("telling the engine", e))?;
                rustix::io::write(&gone, b"!").map_err(|e| ("starting init", e.into()))?;
                Ok(())
            }
        }
    }
}

/// Whose network an environment has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Net {
    /// One of its own, with nothing but loopback.
    Own,
    /// The host's.
    Host,
}

/// The namespaces of an environment.
pub(crate) fn namespaces(net: Net) -> i32 {
    let own = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    match net {
        Net::Host => own,
        Net::Own => own | libc::CLONE_NEWNET,
    }
}

/// Maps users of a new namespace: root maps every user it has, so that owners stay what they are; others map themselves.
pub(crate) fn map_users(pid: Pid) -> io::Result<()> {
    let file = |name: &str| format!("/proc/{}/{name}", pid.as_raw_nonzero());
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (users, groups) = if user.is_root() {
        (same("/proc/self/uid_map")?, same("/proc/self/gid_map")?)
    } else {
        std::fs::write(file("setgroups"), "deny")?;
        (format!("{0} {0} 1", user.as_raw()), format!("{0} {0} 1", group.as_raw()))
    };
    std::fs::write(file("uid_map"), users)?;
    std::fs::write(file("gid_map"), groups)
}

/// A map of every id of this namespace to itself.
fn same(map: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(map)?;
    let ranges = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (first, count) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    });
    Ok(ranges.collect())
}
