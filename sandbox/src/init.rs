//! Init: the first process of an environment. Makes its root, starts jobs, keeps what they print after they ended.
//!
//! It ends with the control socket, and with it everything in the environment.

use crate::git::Guarded;
use crate::layout::Layout;
use crate::placeholder::Placeholder;
use crate::root::{self, Root, Step, StepError};
use crate::spare::Spare;
use crate::spec::Kind;
use crate::walls::Walls;
use crate::wire::{self, FromInit, FromJob, Job, ToInit, ToNew};
use crate::zygote::Net;
use crate::{Ops, job, processes, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;

/// The most bytes that are kept of what one job prints after its end.
const MOST_PRINTED: usize = 1 << 20;
/// Of jobs that have nothing running any more, so many are still remembered.
const REMEMBERED: usize = 16;

/// Runs in the fresh fork that is to be an init. It prepares what it can and waits until the zygote says on `socket` what
/// it is to be.
pub(crate) fn begin(namespaces: Option<Net>, socket: OwnedFd, ops: Ops) -> ! {
    let prepared = prepare(namespaces, &socket);
    let Ok(Some((ToNew::Environment(layout), fds))) = wire::receive(&socket) else { sys::exit(0) };
    let Some(control) = fds.into_iter().next() else { sys::exit(1) };
    drop(socket);
    let (walls, placeholders, signals) = match prepared.and_then(|(root, signals)| make(&layout, root, signals)) {
        Ok(made) => made,
        Err(e) => {
            // The engine may be gone; then there is nobody to tell.
            let _ = wire::send(&control, &FromInit::Failed { step: e.step, error: e.error.to_string() }, &[]);
            sys::exit(1)
        }
    };
    if wire::send(&control, &FromInit::Ready, &[]).is_err() {
        sys::exit(1)
    }
    let setting = job::Setting { layout: &layout, walls: walls.as_ref(), ops };
    Init { setting, placeholders, control, signals, jobs: Vec::new(), next: Next::Missing, printed: BTreeMap::new() }.serve()
}

/// What depends on no layout: in namespaces, the beginning of a root. Also the signals that init listens to.
fn prepare(namespaces: Option<Net>, socket: &OwnedFd) -> Result<(Option<Root>, OwnedFd), StepError> {
    sys::close_all_but(&[socket.as_raw_fd()]);
    let kind = if namespaces.is_some() { Kind::Native } else { Kind::Host };
    job::become_supervisor(kind).step(|| "tying the environment to the sandbox's process".to_owned())?;
    let root = namespaces.map(|net| {
        let Ok(Some((ToNew::Mapped, _))) = wire::receive(socket) else { sys::exit(0) };
        rustix::system::sethostname(b"sandbox").step(|| "naming the environment".to_owned())?;
        if net == Net::Own {
            sys::loopback_up().step(|| "bringing loopback up".to_owned())?;
        }
        Root::begin()
    });
    let signals = sys::signals(&[Signal::CHILD, Signal::TERM]).step(|| "listening to signals".to_owned())?;
    Ok((root.transpose()?, signals))
}

type Made = (Option<Walls>, Vec<Placeholder>, OwnedFd);

fn make(layout: &Layout, root: Option<Root>, signals: OwnedFd) -> Result<Made, StepError> {
    let guarded = match root {
        Some(root) => root::compose(root, layout)?,
        None => Guarded::default(),
    };
    let walls = Walls::prepare(layout, &guarded.written)?;
    Ok((walls, guarded.placeholders, signals))
}

/// What waits for the next job, where making it takes long.
enum Next {
    Missing,
    Waiting(Spare),
    /// It could not be forked; not tried again before something has ended.
    Refused,
}

struct Init<'a> {
    setting: job::Setting<'a>,
    placeholders: Vec<Placeholder>,
    control: OwnedFd,
    signals: OwnedFd,
    jobs: Vec<Pid>,
    next: Next,
    printed: BTreeMap<u64, Ring>,
}

impl Init<'_> {
    fn serve(mut self) -> ! {
        loop {
            let mut fds = vec![PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(self.printed.values().filter_map(|ring| ring.pipe.as_ref()).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            match poll(&mut fds, self.patience().as_ref()) {
                Ok(0) => {
                    self.next = Spare::fork(&self.setting).map_or(Next::Refused, Next::Waiting);
                    continue;
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => self.end(),
            }
            let asked = !fds[0].revents().is_empty();
            while let Some(signal) = sys::next_signal(&self.signals) {
                if signal == Signal::TERM {
                    self.end();
                }
                self.reap();
            }
            self.printed.values_mut().for_each(Ring::fill);
            if asked {
                match wire::receive::<ToInit>(&self.control) {
                    Ok(Some((message, fds))) => self.answer(message, fds),
                    Ok(None) | Err(_) => self.end(),
                }
            }
        }
    }

    /// How long nothing may happen before a spare is forked, if one is missing: a command that runs is not to be disturbed
    /// in its first moments.
    fn patience(&self) -> Option<Timespec> {
        const MOMENT_NS: i64 = 1_000_000;
        let missing = matches!(self.next, Next::Missing) && self.setting.layout.kind == Kind::Native;
        missing.then_some(Timespec { tv_sec: 0, tv_nsec: if self.jobs.is_empty() { 0 } else { MOMENT_NS } })
    }

    fn end(&mut self) -> ! {
        match self.setting.layout.kind {
            Kind::Native => processes::kill_namespace(),
            Kind::Reduced | Kind::Host => processes::kill_all(),
        }
        for placeholder in self.placeholders.drain(..) {
            // One that stays changes nothing for git, and the next environment takes it away.
            let _ = placeholder.take_away();
        }
        sys::exit(0)
    }

    fn reap(&mut self) {
        let (ended, _) = processes::reap();
        let before = self.jobs.len();
        let has_ended = |pid: Pid| ended.iter().any(|(gone, _)| *gone == pid);
        self.jobs.retain(|pid| !has_ended(*pid));
        match &self.next {
            Next::Waiting(spare) if !has_ended(spare.pid) => {}
            Next::Waiting(_) | Next::Missing | Next::Refused => self.next = Next::Missing,
        }
        if self.setting.layout.kind != Kind::Native && self.jobs.len() < before {
            processes::kill_orphans(&self.jobs);
        }
    }

    fn answer(&mut self, message: ToInit, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        match (message, fds.next()) {
            (ToInit::Job(job), Some(socket)) => {
                self.start(&job, &socket, &fds.as_slice().iter().map(AsFd::as_fd).collect::<Vec<_>>())
            }
            (ToInit::Keep(id), Some(pipe)) => self.keep(id, pipe),
            (ToInit::Printed(id), Some(file)) => {
                let ring = self.printed.get(&id);
                let (dropped, bytes) = ring.map_or((0, [].as_slice()), Ring::told);
                let file = std::fs::File::from(file);
                // Whoever asked finds a short file if this fails; the pipe beside it closes when this returns.
                let _ = file.write_all_at(&dropped.to_le_bytes(), 0).and_then(|()| file.write_all_at(bytes, 8));
            }
            (_, None) => {}
        }
    }

    fn start(&mut self, job: &Job, socket: &OwnedFd, fds: &[BorrowedFd<'_>]) {
        let given = match std::mem::replace(&mut self.next, Next::Missing) {
            Next::Waiting(spare) => spare.give(job, socket, fds).ok(),
            Next::Missing | Next::Refused => None,
        };
        let begun = given.map_or_else(|| Spare::fork(&self.setting)?.give(job, socket, fds), Ok);
        let told = match begun {
            Ok(pid) => {
                self.jobs.push(pid);
                born(socket, &FromJob::Born, pid)
            }
            Err(e) => wire::send(socket, &FromJob::failed(&e), &[]),
        };
        // The engine may have given the job up; then job-init sees that its socket is closed.
        let _ = told;
    }

    fn keep(&mut self, id: u64, pipe: OwnedFd) {
        if rustix::io::ioctl_fionbio(&pipe, true).is_ok() {
            self.printed.insert(id, Ring { pipe: Some(pipe), bytes: Vec::new(), dropped: 0 });
        }
        let ended: Vec<u64> = self.printed.iter().filter(|(_, ring)| ring.pipe.is_none()).map(|(id, _)| *id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(REMEMBERED)) {
            self.printed.remove(id);
        }
    }
}

/// Tells the engine that a process exists, with its pidfd.
pub(crate) fn born<T: serde::Serialize>(socket: &OwnedFd, message: &T, pid: Pid) -> io::Result<()> {
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    wire::send(socket, message, &[pidfd.as_fd()])
}

/// The last bytes that came out of a pipe.
struct Ring {
    /// The reading end, until the other side is closed.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    dropped: u64,
}

impl Ring {
    /// Takes what is in the pipe now, a bounded amount of it.
    fn fill(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        let mut some = [0u8; 16 * 1024];
        match rustix::io::read(pipe, &mut some) {
            Ok(0) => self.pipe = None,
            Ok(n) => {
                self.bytes.extend_from_slice(&some[..n]);
                // Cut when twice as long as is kept, so that a byte is moved at most once.
                if self.bytes.len() >= 2 * MOST_PRINTED {
                    let over = self.bytes.len() - MOST_PRINTED;
                    self.bytes.drain(..over);
                    self.dropped += over as u64;
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.pipe = None,
        }
    }

    /// What is told of it, and how many bytes before that are not.
    fn told(&self) -> (u64, &[u8]) {
        let over = self.bytes.len().saturating_sub(MOST_PRINTED);
        (self.dropped + over as u64, &self.bytes[over..])
    }
}
