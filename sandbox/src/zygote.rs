//! The zygote: this program again, with one thread and nothing of the engine in it, from which every environment is forked.
//!
//! It ends with its socket, that is with the engine, and every init ends with it.

use crate::cgroup::Cgroup;
use crate::layout::Layout;
use crate::spec::Kind;
use crate::wire::{self, FromInit, ToNew, ToZygote};
use crate::{Ops, init, job, processes, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs::File;
use std::io;

/// The name under which a program is started to be the zygote; its socket is standard input.
pub(crate) const NAME: &str = "autosage-zygote";

/// Serves the socket that is this process's standard input, with environments of the kind that is its argument; never
/// returns.
pub(crate) fn serve(kind: Option<OsString>, ops: Ops) -> ! {
    let Some(kind) = kind.and_then(|kind| kind.to_str()?.parse().ok()) else { sys::exit(1) };
    let Ok((socket, signals)) = prepare() else { sys::exit(1) };
    let mounts = File::open("/proc/self/mountinfo").ok();
    let mut zygote = Zygote { kind, socket, signals, mounts, ops, inits: Vec::new(), next: Next::Unwanted };
    if kind == Kind::Native {
        zygote.fork_ahead();
    }
    zygote.serve()
}

fn prepare() -> io::Result<(OwnedFd, OwnedFd)> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok((socket, sys::signals(&[Signal::CHILD])?))
}

struct Zygote {
    kind: Kind,
    socket: OwnedFd,
    signals: OwnedFd,
    /// Readable with priority when the machine's mounts have changed.
    mounts: Option<File>,
    ops: Ops,
    /// The inits that have their layout, each with its control group where one could be made.
    inits: Vec<(Pid, Option<Cgroup>)>,
    next: Next,
}

/// An init that has none yet. Dropping this lets it end.
struct New {
    pid: Pid,
    socket: OwnedFd,
}

/// What waits for the next layout: an init in namespaces of its own, which take long to make.
enum Next {
    /// Forking one when it is asked for is quick, or is refused here.
    Unwanted,
    Missing,
    Waiting(New),
}

type Failed = (&'static str, io::Error);

impl Zygote {
    fn serve(mut self) -> ! {
        loop {
            let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(self.mounts.as_ref().map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
            // An environment that was just made is not to be disturbed in its first moments.
            let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            match poll(&mut fds, matches!(self.next, Next::Missing).then_some(&moment)) {
                Ok(0) => {
                    self.fork_ahead();
                    continue;
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => job::end(self.kind),
            }
            let asked = !fds[0].revents().is_empty();
            let remounted = fds.get(2).is_some_and(|mounts| !mounts.revents().is_empty());
            while sys::next_signal(&self.signals).is_some() {
                self.reap();
            }
            if remounted && matches!(self.next, Next::Waiting(_)) {
                // It has a copy of the mounts that were.
                self.next = Next::Missing;
            }
            if asked {
                match wire::receive::<ToZygote>(&self.socket) {
                    Ok(Some((ToZygote::Environment(layout), fds))) => self.environment(layout, fds),
                    Ok(None) | Err(_) => self.end(),
                }
            }
        }
    }

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
        job::end(self.kind)
    }

    fn reap(&mut self) {
        let (ended, _) = processes::reap();
        let has_ended = |pid: Pid| ended.iter().any(|(gone, _)| *gone == pid);
        if matches!(&self.next, Next::Waiting(new) if has_ended(new.pid)) {
            self.next = Next::Missing;
        }
        let before = self.inits.len();
        self.inits.retain(|(pid, _)| !has_ended(*pid));
        // What a native init leaves is dead with its namespace.
        if self.kind != Kind::Native && self.inits.len() < before {
            processes::kill_orphans(&self.inits.iter().map(|(pid, _)| *pid).collect::<Vec<_>>());
        }
    }

    fn environment(&mut self, layout: Box<Layout>, fds: Vec<OwnedFd>) {
        let Some(control) = fds.into_iter().next() else { return };
        if let Err((step, error)) = self.create(layout, &control) {
            // The engine may have given the environment up.
            let _ = wire::send(&control, &FromInit::Failed { step: step.to_owned(), error: error.to_string() }, &[]);
        }
    }

    fn create(&mut self, layout: Box<Layout>, control: &OwnedFd) -> Result<(), Failed> {
        let namespaces = match self.kind {
            Kind::Native => Some(if layout.network { Net::Host } else { Net::Own }),
            Kind::Reduced | Kind::Host => None,
        };
        let new = match std::mem::replace(&mut self.next, Next::Missing) {
            Next::Waiting(new) if namespaces == Some(Net::Own) => new,
            next => {
                self.next = next;
                self.fork(namespaces)?
            }
        };
        // Before it can start anything. Most machines give none; then limits hold per process.
        let group = if self.kind == Kind::Host { None } else { Cgroup::around(new.pid, &layout.limits).ok() };
        self.inits.push((new.pid, group));
        wire::send(&new.socket, &ToNew::Environment(layout), &[control.as_fd()]).map_err(|e| ("starting init", e))?;
        init::born(control, &FromInit::Born, new.pid).map_err(|e| ("telling the engine", e))
    }

    fn fork_ahead(&mut self) {
        // What is refused now is tried again when it is needed, and then somebody is there to be told.
        self.next = self.fork(Some(Net::Own)).map_or(Next::Unwanted, Next::Waiting);
    }

    fn fork(&self, namespaces: Option<Net>) -> Result<New, Failed> {
        let (socket, waiting) = wire::sockets().map_err(|e| ("making sockets", e))?;
        let fork = match namespaces {
            Some(net) => sys::fork_into(flags(net)),
            None => sys::fork(),
        };
        match fork.map_err(|e| ("making namespaces", e))? {
            sys::Fork::Child => init::begin(namespaces, waiting, self.ops),
            sys::Fork::Parent(pid) => {
                if namespaces.is_some() {
                    map_users(pid).map_err(|e| ("mapping users into the namespace", e))?;
                    wire::send(&socket, &ToNew::Mapped, &[]).map_err(|e| ("starting init", e))?;
                }
                Ok(New { pid, socket })
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
pub(crate) fn flags(net: Net) -> i32 {
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
