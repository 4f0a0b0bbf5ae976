//! Job-init: supervises one piece of work, from before its first process until its last is gone.
//!
//! In a native environment it is the first process of a pid namespace, so its end is the end of everything in it.
//! Elsewhere it adopts what loses its parent and kills all of it before it ends. It says at once when the shell itself
//! ended, and stays while something that the shell started is running.

use crate::layout::Layout;
use crate::processes::{self, Process};
use crate::spare::Waiting;
use crate::spec::{Kind, Stopped};
use crate::walls::Walls;
use crate::wire::{self, FromJob, ToJob};
use crate::{Ops, sys, work};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::process::{Pid, Signal, WaitStatus};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io;

/// How long a process that was asked to end (TERM) may take before it is killed, in milliseconds.
const GRACE_MS: i64 = 300;
/// The most processes that are told at once: the answer has to fit a pipe.
const MOST_TOLD: usize = 100;

/// What all work of an environment shares.
pub(crate) struct Setting<'a> {
    pub layout: &'a Layout,
    pub walls: Option<&'a Walls>,
    pub ops: Ops,
}

/// Runs in the fresh fork that is to be a job-init. It prepares what it can and waits until there is a job.
pub(crate) fn supervise(setting: &Setting<'_>, waiting: Waiting) -> ! {
    let prepared = prepare(setting, &waiting);
    let Ok(Some(((), fds))) = wire::receive(&waiting.supervisor) else { sys::exit(1) };
    let Some(socket) = fds.into_iter().next() else { sys::exit(1) };
    // What failed ahead of time, for want of processes perhaps, may work now.
    match prepared.or_else(|_| prepare(setting, &waiting)) {
        Ok((signals, worker)) => {
            drop(waiting);
            // A child's end wakes the supervisor as a message does; then there is none to wait for.
            if rustix::io::ioctl_fionbio(&socket, true).is_err() {
                end(setting.layout.kind);
            }
            Supervisor { kind: setting.layout.kind, socket, signals, worker: Some(worker) }.serve()
        }
        Err(e) => {
            // The engine may be gone; then there is nobody to tell.
            let _ = wire::send(&socket, &FromJob::failed(&e), &[]);
            sys::exit(1)
        }
    }
}

fn prepare(setting: &Setting<'_>, waiting: &Waiting) -> io::Result<(OwnedFd, Pid)> {
    let ruleset = setting.walls.and_then(Walls::descriptor);
    let keep: Vec<RawFd> = [waiting.supervisor.as_raw_fd(), waiting.worker.as_raw_fd()].into_iter().chain(ruleset).collect();
    sys::close_all_but(&keep);
    become_supervisor(setting.layout.kind)?;
    if setting.layout.kind == Kind::Native {
        crate::root::mount_proc(&setting.layout.masks)?;
    }
    let signals = sys::signals(&[Signal::CHILD, Signal::TERM])?;
    match sys::fork()? {
        sys::Fork::Child => work::perform(setting, &waiting.worker),
        sys::Fork::Parent(worker) => Ok((signals, worker)),
    }
}

/// Ties this process to its parent and, where no namespace does it, whatever is orphaned below it to itself.
pub(crate) fn become_supervisor(kind: Kind) -> io::Result<()> {
    let at_death = match kind {
        Kind::Native => Signal::KILL,
        Kind::Reduced | Kind::Host => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            Signal::TERM
        }
    };
    Ok(rustix::process::set_parent_process_death_signal(Some(at_death))?)
}

/// Ends this process and everything below it.
pub(crate) fn end(kind: Kind) -> ! {
    if kind != Kind::Native {
        processes::kill_all();
    }
    sys::exit(0)
}

struct Supervisor {
    kind: Kind,
    socket: OwnedFd,
    signals: OwnedFd,
    /// The shell or operation, until it ends.
    worker: Option<Pid>,
}

/// Whether something below a supervisor is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Something,
    Nothing,
}

impl Supervisor {
    fn serve(mut self) -> ! {
        loop {
            let below = self.wait(None);
            if below == Below::Nothing && self.worker.is_none() {
                sys::exit(0);
            }
            match wire::receive::<ToJob>(&self.socket) {
                Ok(Some((message, fds))) => self.answer(message, fds),
                Ok(None) => end(self.kind),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => end(self.kind),
            }
        }
    }

    /// Waits until there is a message or a child ended, at most until `deadline` (milliseconds of the monotonic clock).
    /// Ends everything when the engine is gone or this process is told to.
    fn wait(&mut self, deadline: Option<i64>) -> Below {
        let timeout = deadline.map(|at| {
            let ms = (at - now_ms()).max(0);
            Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }
        });
        let socket = if deadline.is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = [PollFd::new(&self.socket, socket), PollFd::new(&self.signals, PollFlags::IN)];
        // An interrupted or failed wait is followed by looking, as any other.
        let _ = poll(&mut fds, timeout.as_ref());
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            end(self.kind);
        }
        while let Some(signal) = sys::next_signal(&self.signals) {
            if signal == Signal::TERM {
                end(self.kind);
            }
        }
        self.reap()
    }

    fn reap(&mut self) -> Below {
        let (ended, below) = processes::reap();
        let below = if below { Below::Something } else { Below::Nothing };
        if let Some((_, status)) = ended.into_iter().find(|(pid, _)| Some(*pid) == self.worker) {
            self.worker = None;
            let (code, signal) = outcome(status);
            // The engine may be gone; the next wait sees it.
            let _ = wire::send(&self.socket, &FromJob::Exited { code, signal, left: below == Below::Something }, &[]);
        }
        below
    }

    fn answer(&mut self, message: ToJob, fds: Vec<OwnedFd>) {
        let Some(reply) = fds.into_iter().next() else { return };
        match message {
            ToJob::List => {
                let here = rustix::process::getpid().as_raw_nonzero().get();
                let tops = processes::descendants().into_iter().filter(|process| process.parent == here);
                say(reply, &tops.take(MOST_TOLD).map(|process| process.told()).collect::<Vec<_>>());
            }
            ToJob::Stop { pid, start } => {
                let stopped = self.stop(pid, start);
                say(reply, &stopped);
            }
            ToJob::Kill => {
                let running = processes::descendants();
                let commands: Vec<String> = running.iter().take(MOST_TOLD).map(Process::command).collect();
                say(reply, &commands);
                self.terminate(&running);
                end(self.kind)
            }
        }
    }

    /// Ends a process and all below it.
    fn stop(&mut self, pid: i32, start: u64) -> Stopped {
        let Some(top) = Pid::from_raw(pid).and_then(processes::read).filter(|process| process.start == start) else {
            return Stopped::Gone;
        };
        let mut tree = vec![top];
        tree.extend(processes::below(pid));
        if self.terminate(&tree) {
            return Stopped::Ended;
        }
        tree.iter().filter(|process| process.is_running()).for_each(|process| process.signal(Signal::KILL));
        self.settle(&tree);
        Stopped::Killed
    }

    /// Asks processes to end and waits a little; tells whether all of them did.
    fn terminate(&mut self, tree: &[Process]) -> bool {
        for process in tree {
            process.signal(Signal::TERM);
            // A stopped process takes the signal only once it goes on.
            process.signal(Signal::CONT);
        }
        self.settle(tree)
    }

    fn settle(&mut self, tree: &[Process]) -> bool {
        /// A grandchild's end is not ours to wait for, so it is looked at this often.
        const LOOK_MS: i64 = 5;
        let deadline = now_ms() + GRACE_MS;
        loop {
            if !tree.iter().any(Process::is_running) {
                return true;
            }
            let now = now_ms();
            if now >= deadline {
                return false;
            }
            self.wait(Some((now + LOOK_MS).min(deadline)));
        }
    }
}

/// Milliseconds of the monotonic clock.
fn now_ms() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

fn outcome(status: WaitStatus) -> (Option<i32>, Option<i32>) {
    (status.exit_status(), status.terminating_signal())
}

/// Answers on a pipe. Nobody may be listening any more, which is the listener's matter.
fn say<T: Serialize>(reply: OwnedFd, answer: &T) {
    let _ = serde_json::to_writer(std::fs::File::from(reply), answer);
}
