//! The engine's side of one job: its socket, its output, and the certainty that it is dead.

use crate::spec::SandboxError;
use crate::wire::{self, FromJob, ToJob};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Bytes that are read from a job's output at once.
const CHUNK: usize = 64 * 1024;
/// How long a supervisor may take to end what it supervises: it may have been stopped where no wall protects it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that is read of what is in the pipe when a shell has ended: a child may go on filling it for ever.
const MOST_DRAINED: usize = 1 << 20;

fn registered(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` keeps its one descriptor open until it is dropped, which is after the registration.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// A socket that the runtime waits for.
pub(crate) fn waited(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    registered(socket, Interest::READABLE | Interest::WRITABLE)
}

fn read_end(pipe: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    registered(pipe, Interest::READABLE)
}

/// A pidfd, readable once its process (and, of a namespace's first process, all others in it) is dead.
pub(crate) fn life(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    registered(pidfd, Interest::READABLE)
}

/// Waits until a process that was told to end is dead; one that does not listen is killed.
pub(crate) async fn dead(life: &AsyncFd<OwnedFd>) -> io::Result<()> {
    if tokio::time::timeout(PATIENCE, life.readable()).await.is_err() {
        match rustix::process::pidfd_send_signal(life.get_ref(), Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(e) => return Err(e.into()),
        }
        let _dead = life.readable().await?;
    }
    Ok(())
}

/// The next message on a socket; `None` when the other side is gone.
pub(crate) async fn next<T: DeserializeOwned>(socket: &AsyncFd<OwnedFd>) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    socket.async_io(Interest::READABLE, |socket| wire::receive(socket)).await
}

/// How a job ended, or that it did not in time.
pub(crate) enum End {
    /// The shell or operation ended.
    Exited { code: Option<i32>, signal: Option<i32>, left: bool },
    /// Its time was over.
    TimedOut,
    /// Whoever takes the output wants no more.
    Enough,
    /// Its supervisor ended without a word.
    Vanished,
    /// It could not be started, for this reason.
    Failed(String),
    /// It could not be started, for too many processes are running already.
    Full,
}

/// A job that goes on. Dropping it kills all of it.
pub(crate) struct Running {
    pub socket: AsyncFd<OwnedFd>,
    output: AsyncFd<OwnedFd>,
    life: Option<AsyncFd<OwnedFd>>,
}

/// The ends of a job that init gets.
pub(crate) struct FarEnds {
    pub socket: OwnedFd,
    pub output: OwnedFd,
}

impl Running {
    /// The ends of a new job.
    pub fn new() -> io::Result<(Running, FarEnds)> {
        let (near, far) = wire::sockets()?;
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let running = Running { socket: waited(near)?, output: read_end(read)?, life: None };
        Ok((running, FarEnds { socket: far, output: write }))
    }

    /// Waits for the job's end and hands its output on meanwhile.
    pub async fn watch(
        &mut self,
        timeout: Duration,
        sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<End, SandboxError> {
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let mut chunk = vec![0u8; CHUNK];
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                message = next::<FromJob>(&self.socket) => match message? {
                    Some((FromJob::Born, fds)) => self.born(fds)?,
                    Some((FromJob::Failed { full: true, .. }, _)) => return Ok(End::Full),
                    Some((FromJob::Failed { error, full: false }, _)) => return Ok(End::Failed(error)),
                    Some((FromJob::Exited { code, signal, left }, _)) => {
                        return Ok(match self.drain(&mut chunk, sink)? {
                            ControlFlow::Continue(()) => End::Exited { code, signal, left },
                            ControlFlow::Break(()) => End::Enough,
                        });
                    }
                    None => {
                        let _wanted = self.drain(&mut chunk, sink)?;
                        return Ok(End::Vanished);
                    }
                },
                () = &mut deadline => return Ok(End::TimedOut),
                read = self.output.async_io(Interest::READABLE, |pipe| Ok(rustix::io::read(pipe, &mut chunk)?)), if open => match read? {
                    0 => open = false,
                    n => if sink(&chunk[..n]).is_break() { return Ok(End::Enough) },
                },
            }
        }
    }

    fn born(&mut self, fds: Vec<OwnedFd>) -> io::Result<()> {
        self.life = fds.into_iter().next().map(life).transpose()?;
        Ok(())
    }

    /// Takes what is in the pipe now, without waiting for more.
    pub fn drain(
        &self,
        chunk: &mut [u8],
        sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SandboxError> {
        let mut taken = 0;
        while taken < MOST_DRAINED {
            match rustix::io::read(self.output.get_ref(), &mut *chunk) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(n) => {
                    taken += n;
                    if sink(&chunk[..n]).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(SandboxError::Io(e.into())),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends all of the job and returns once it is dead, with the command lines of what was running.
    pub async fn kill(&mut self, sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<Vec<String>, SandboxError> {
        let commands = match tokio::time::timeout(PATIENCE, self.ask_to_die()).await {
            Ok(commands) => commands?,
            Err(_) => Vec::new(),
        };
        if let Some(life) = &self.life {
            dead(life).await?;
        }
        // Nothing more is written now; a refusal of the sink changes nothing.
        let _wanted = self.drain(&mut vec![0u8; CHUNK], sink)?;
        Ok(commands)
    }

    async fn ask_to_die(&mut self) -> io::Result<Vec<String>> {
        let commands = ask(&self.socket, &ToJob::Kill).await?.unwrap_or_default();
        // What is still said on the socket is of no interest, but the pidfd may be among it.
        while let Some((message, fds)) = next::<FromJob>(&self.socket).await? {
            if matches!(message, FromJob::Born) {
                self.born(fds)?;
            }
        }
        Ok(commands)
    }

    /// What stays when only children are left: the socket that holds them, and the output that they go on writing.
    pub fn into_left(self) -> (AsyncFd<OwnedFd>, OwnedFd) {
        (self.socket, self.output.into_inner())
    }
}

/// Asks a job-init something; `None` if it is gone.
pub(crate) async fn ask<T: DeserializeOwned>(socket: &AsyncFd<OwnedFd>, question: &ToJob) -> io::Result<Option<T>> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let sent = socket.async_io(Interest::WRITABLE, |socket| wire::send(socket, question, &[write.as_fd()])).await;
    drop(write);
    match sent {
        Ok(()) => {}
        Err(e) if is_gone(&e) => return Ok(None),
        Err(e) => return Err(e),
    }
    let bytes = read_to_end(read).await?;
    if bytes.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&bytes)?)) }
}

/// Reads a pipe until its other end is closed.
pub(crate) async fn read_to_end(pipe: OwnedFd) -> io::Result<Vec<u8>> {
    let pipe = read_end(pipe)?;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0u8; CHUNK]);
    loop {
        match pipe.async_io(Interest::READABLE, |pipe| Ok(rustix::io::read(pipe, &mut chunk)?)).await? {
            0 => return Ok(bytes),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Whether an error means that the other side of a socket is gone.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected)
}
