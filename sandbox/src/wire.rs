//! What engine, zygote, init, job-init and worker say to each other, and how: one JSON message a datagram, descriptors beside it.

use crate::layout::Layout;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// To the zygote.
#[derive(Serialize, Deserialize)]
pub(crate) enum ToZygote {
    /// Make an environment. With one descriptor: init's end of the control socket.
    Environment(Box<Layout>),
}

/// To a new init, on a socket that it shares with the zygote. The end of that socket means that it is not needed.
#[derive(Serialize, Deserialize)]
pub(crate) enum ToNew {
    /// It has a user in its namespace, and can begin with what does not depend on the layout.
    Mapped,
    /// What to be. With one descriptor: init's end of the control socket.
    Environment(Box<Layout>),
}

/// From the zygote and its new init, in any order, on the control socket.
#[derive(Serialize, Deserialize)]
pub(crate) enum FromInit {
    /// Init exists. With one descriptor: init's pidfd.
    Born,
    /// Init is ready for jobs.
    Ready,
    /// There will be no environment.
    Failed {
        /// What was attempted.
        step: String,
        /// What came of it.
        error: String,
    },
}

/// To init, on the control socket. Init never answers there: every request brings the descriptor to answer on.
#[derive(Serialize, Deserialize)]
pub(crate) enum ToInit {
    /// Do some work. With descriptors: the job's socket, its output, and what [`Work`] names.
    Job(Box<Job>),
    /// Go on reading what a job prints. With one descriptor: the reading end of its output.
    Keep(u64),
    /// Tell what a job printed since. With two descriptors: a file to write it to, a pipe to close when it is there.
    Printed(u64),
}

/// Some work inside an environment.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    /// Its number in the environment.
    pub id: u64,
    /// What is to be done.
    pub work: Work,
    /// Where; `None` is the workspace.
    pub cwd: Option<String>,
    /// All environment variables.
    pub variables: Vec<(String, String)>,
}

/// The two kinds of work.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    /// A shell. With descriptors: prelude, script, state.
    Shell,
    /// One of the program's own operations. With one descriptor: the request.
    Op(String),
}

/// To a job-init, on the job's socket. The end of that socket means: kill everything.
#[derive(Serialize, Deserialize)]
pub(crate) enum ToJob {
    /// Tell what is still running, as `Vec<Left>`. With one descriptor: a pipe for the answer.
    List,
    /// End a process and what it started. With one descriptor: a pipe for the answer, a `HowStopped`.
    Stop {
        /// Its id as job-init sees it.
        pid: i32,
        /// When it started, in ticks since boot: ids are used again.
        start: u64,
    },
    /// End everything. With one descriptor: a pipe for the command lines, as `Vec<String>`.
    Kill,
}

/// From init and job-init, in any order, on the job's socket.
#[derive(Serialize, Deserialize)]
pub(crate) enum FromJob {
    /// Job-init exists. With one descriptor: its pidfd, readable when all of the job is dead.
    Born,
    /// The job could not be started.
    Failed {
        /// What the system said.
        error: String,
        /// Whether that is for too many processes.
        full: bool,
    },
    /// The shell or operation itself ended.
    Exited {
        /// Its exit code, if it ended by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Whether processes that it started are still there.
        left: bool,
    },
}

impl FromJob {
    /// That a job could not be started for this reason.
    pub fn failed(error: &io::Error) -> FromJob {
        FromJob::Failed { error: error.to_string(), full: error.raw_os_error() == Some(libc::EAGAIN) }
    }
}

/// A process that a command left behind: the top of what is running, with all below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    /// Its id as job-init sees it.
    pub pid: i32,
    /// When it started, in ticks since boot.
    pub start: u64,
    /// Its command line.
    pub command: String,
    /// Its age in seconds.
    pub age_s: u64,
}

/// Messages up to this size travel in the datagram itself, larger ones in a memory file.
const INLINE: usize = 24 * 1024;
/// The most descriptors in one message.
const MOST_FDS: usize = 8;

/// A pair of connected sockets that keep message boundaries.
pub(crate) fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// A file in memory that holds `bytes`, its position at the start.
pub(crate) fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = match rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag; some later ones insist on it.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?,
        other => other?,
    };
    let file = std::fs::File::from(file);
    file.write_all_at(bytes, 0)?;
    Ok(file.into())
}

/// Sends one message.
pub(crate) fn send<T: Serialize>(socket: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() <= INLINE {
        return send_bytes(socket, &text, fds);
    }
    let file = memory_file("message", &text)?;
    let mut all = fds.to_vec();
    all.push(file.as_fd());
    send_bytes(socket, b"@", &all)
}

fn send_bytes(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::io::retry_on_intr(|| rustix::net::sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one message with its descriptors; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0u8; INLINE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    let received = match received {
        Ok(received) => received,
        Err(Errno::CONNRESET) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            fds.extend(some);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message between sandbox processes was cut"));
    }
    bytes.truncate(received.bytes);
    if bytes == b"@" {
        let file = fds.pop().ok_or(io::ErrorKind::InvalidData)?;
        bytes = contents(file, u64::MAX)?;
    }
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

/// What a file in memory holds, up to `most` bytes.
pub(crate) fn contents(file: OwnedFd, most: u64) -> io::Result<Vec<u8>> {
    let file = std::fs::File::from(file);
    let size = file.metadata()?.len().min(most);
    let mut bytes = vec![0u8; usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
