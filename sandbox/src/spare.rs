//! A job-init with its worker, forked before there is a job for them: what a command has to wait for is then only its own
//! program.

use crate::spec::Kind;
use crate::wire::{self, Job};
use crate::{job, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::Pid;
use std::io;

/// Two processes that wait for a job. Dropping this lets them end.
pub(crate) struct Spare {
    /// The job-init.
    pub pid: Pid,
    supervisor: OwnedFd,
    worker: OwnedFd,
}

/// The sockets on which a job-init and its worker wait.
pub(crate) struct Waiting {
    pub supervisor: OwnedFd,
    pub worker: OwnedFd,
}

impl Spare {
    /// Forks them from init.
    pub fn fork(setting: &job::Setting<'_>) -> io::Result<Spare> {
        let (supervisor, waiting_supervisor) = wire::sockets()?;
        let (worker, waiting_worker) = wire::sockets()?;
        let waiting = Waiting { supervisor: waiting_supervisor, worker: waiting_worker };
        let fork = match setting.layout.kind {
            Kind::Native => sys::fork_into(libc::CLONE_NEWPID | libc::CLONE_NEWNS),
            Kind::Reduced | Kind::Host => sys::fork(),
        };
        match fork? {
            sys::Fork::Child => job::supervise(setting, waiting),
            sys::Fork::Parent(pid) => Ok(Spare { pid, supervisor, worker }),
        }
    }

    /// Gives them their job. `socket` is the job's, `fds` are what its work needs.
    pub fn give(self, job: &Job, socket: &OwnedFd, fds: &[BorrowedFd<'_>]) -> io::Result<Pid> {
        // The worker first: a supervisor that has its socket watches what the worker makes of it.
        wire::send(&self.worker, job, fds)?;
        wire::send(&self.supervisor, &(), &[socket.as_fd()])?;
        Ok(self.pid)
    }
}
