//! The engine's side: starting the zygote, making environments, running commands and operations in them.

use crate::children::Children;
use crate::layout::Layout;
use crate::running::{self, End, Running};
use crate::spec::{CallError, Command, EnvironmentSpec, Exit, Kind, Printed, Program, SandboxError, Stopped};
use crate::wire::{self, FromInit, Job, ToInit, ToZygote, Work};
use crate::{shell, work, zygote};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use trace::Child;

/// The most bytes that an operation may answer.
const MOST_ANSWERED: usize = 64 << 20;
/// How long the end of init may take to show.
const MOMENT: Duration = Duration::from_millis(200);
/// How long a probe may take.
const PROBE: Duration = Duration::from_secs(10);

/// The walls: one process from which environments are made. One of it is enough for a program.
pub struct Sandbox {
    kind: Kind,
    zygote: Arc<Zygote>,
}

/// The zygote's process, which ends with its socket.
struct Zygote {
    socket: Option<OwnedFd>,
    child: std::process::Child,
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.socket = None;
        // It ends at the end of its socket; a failure to learn of it changes nothing.
        let _ = self.child.wait();
    }
}

impl Sandbox {
    /// Starts the sandbox's own process, and does not wait for it.
    pub fn start(kind: Kind, program: Program) -> Result<Sandbox, SandboxError> {
        let (near, far) = wire::sockets()?;
        let (program, mut command) = command(program, zygote::NAME)?;
        command.arg(kind.to_string()).stdin(far).stdout(Stdio::null());
        let child = command.spawn().map_err(|source| SandboxError::Start { program, source })?;
        Ok(Sandbox { kind, zygote: Arc::new(Zygote { socket: Some(near), child }) })
    }

    /// How strong the walls are.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes an environment. It ends, and everything in it, when it is closed or dropped, and with this process.
    pub async fn environment(&self, spec: &EnvironmentSpec) -> Result<Environment, SandboxError> {
        let layout = Layout::of(self.kind, spec)?;
        let (near, far) = wire::sockets()?;
        let request = ToZygote::Environment(Box::new(layout.clone()));
        let socket = self.zygote.socket.as_ref().ok_or(SandboxError::Lost)?;
        wire::send(socket, &request, &[far.as_fd()]).map_err(lost_if_gone)?;
        drop(far);
        let control = running::waited(near)?;
        let (mut life, mut ready) = (None, false);
        while life.is_none() || !ready {
            match running::next::<FromInit>(&control).await? {
                Some((FromInit::Born, fds)) => life = fds.into_iter().next().map(running::life).transpose()?,
                Some((FromInit::Ready, _)) => ready = true,
                Some((FromInit::Failed { step, error }, _)) => {
                    return Err(SandboxError::Environment { kind: self.kind, step, error });
                }
                None => return Err(SandboxError::Lost),
            }
        }
        let life = life.ok_or(SandboxError::Lost)?;
        let (zygote, children) = (Arc::clone(&self.zygote), Children::new(spec.names.clone()));
        Ok(Environment { layout, control, life, children, last_job: AtomicU64::new(0), _zygote: zygote })
    }
}

/// How to start a program under another name, with nothing of this process but its standard descriptors.
pub(crate) fn command(program: Program, name: &str) -> Result<(PathBuf, std::process::Command), SandboxError> {
    let program = match program {
        Program::Current if crate::entered() => PathBuf::from("/proc/self/exe"),
        Program::Current => return Err(SandboxError::NotEntered),
        Program::Path(path) => path,
    };
    #[allow(clippy::disallowed_methods, reason = "this is the crate that starts processes, and this the place")]
    let mut command = std::process::Command::new(&program);
    // Ctrl-C at a terminal is a signal to the engine's whole process group; what becomes of the sandbox is the engine's to say.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.arg0(name).env_clear().current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    Ok((program, command))
}

/// A place in which commands run with the rights of one grant.
///
/// Its methods may be called side by side. Dropping the future of a command kills what the command started.
pub struct Environment {
    layout: Layout,
    control: AsyncFd<OwnedFd>,
    life: AsyncFd<OwnedFd>,
    children: Children,
    last_job: AtomicU64,
    /// Keeps the zygote, and so this environment, alive.
    _zygote: Arc<Zygote>,
}

impl Environment {
    /// The workspace's path, without symbolic links: where commands start and see it.
    pub fn workspace(&self) -> &Path {
        &self.layout.workspace
    }

    /// The private home as commands see it.
    pub fn home(&self) -> &Path {
        &self.layout.home
    }

    /// The variables that a fresh command has.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.layout.variables
    }

    /// Runs a script in a fresh `bash`. Its output, both streams in order, goes to `sink` as it comes. Returns when the
    /// shell itself has ended and what was in the pipe then is read; children that it left go on (see [`Self::children`]).
    pub async fn run(&self, command: &Command, sink: &mut dyn FnMut(&[u8])) -> Result<Exit, SandboxError> {
        let shell = shell::prepare(command, &self.layout.variables)?;
        let cwd = command.cwd.as_ref().map(|path| path.to_string_lossy().into_owned());
        let job = Job { id: self.next_job(), work: Work::Shell, cwd, variables: shell.variables.clone() };
        let id = job.id;
        let mut running = self.begin(job, &[shell.prelude.as_fd(), shell.script.as_fd(), shell.state.as_fd()]).await?;
        let sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()> = &mut |bytes| {
            sink(bytes);
            ControlFlow::Continue(())
        };
        let (code, signal, left) = match running.watch(command.timeout, sink).await? {
            End::Exited { code, signal, left } => (code, signal, left),
            End::TimedOut | End::Enough => {
                let killed = running.kill(sink).await?;
                let killed = killed.iter().map(|line| crate::children::readable(line, &command.script)).collect();
                return Ok(Exit { timed_out: true, killed, ..Exit::default() });
            }
            End::Full => {
                // The agent's own doing and mending, so it is said where the agent looks.
                let _continue = sink(b"autosage: too many processes are running here; stop some of them first\n");
                return Ok(Exit { code: Some(work::FULL), ..Exit::default() });
            }
            End::Vanished if self.is_alive().await => return Ok(Exit { signal: Some(libc::SIGKILL), ..Exit::default() }),
            End::Vanished => return Err(SandboxError::Lost),
            End::Failed(error) => return Err(self.broken(error)),
        };
        let state = shell.left();
        let _continue = sink(state.notice().as_bytes());
        if left {
            let (socket, output) = running.into_left();
            self.children.keep(id, &command.script, socket);
            self.send(&ToInit::Keep(id), &[output.as_fd()]).await?;
        }
        Ok(Exit { code, signal, timed_out: false, cwd: state.cwd, shell: state.shell, killed: Vec::new() })
    }

    /// Runs one operation of the program's table inside, with the walls and limits of a command: `request` in, bytes out.
    pub async fn call(&self, op: &str, request: &[u8], timeout: Duration) -> Result<Vec<u8>, CallError> {
        let file = wire::memory_file("request", request).map_err(SandboxError::Io)?;
        let job = Job { id: self.next_job(), work: Work::Op(op.to_owned()), cwd: None, variables: Vec::new() };
        let mut running = self.begin(job, &[file.as_fd()]).await?;
        let mut answer = Vec::new();
        let mut sink = |bytes: &[u8]| {
            answer.extend_from_slice(bytes);
            if answer.len() > MOST_ANSWERED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let end = running.watch(timeout, &mut sink).await?;
        let broke = |reason: String| CallError::Broke { op: op.to_owned(), reason };
        match end {
            End::Exited { code: Some(0), .. } => Ok(answer),
            End::Exited { code: Some(work::NO_SUCH_OP), .. } => Err(CallError::Unknown(op.to_owned())),
            End::Exited { code: Some(work::PANICKED), .. } => Err(broke(String::from_utf8_lossy(&answer).into_owned())),
            End::Exited { code, signal, .. } => Err(broke(match (code, signal) {
                (_, Some(signal)) => format!("it was killed by signal {signal}"),
                (code, None) => format!("it ended with code {}", code.unwrap_or_default()),
            })),
            End::TimedOut => Err(CallError::TimedOut(op.to_owned())),
            End::Enough => Err(CallError::TooLarge(op.to_owned())),
            End::Full => Err(broke("too many processes are running in the environment".to_owned())),
            End::Vanished if self.is_alive().await => Err(broke("it was killed".to_owned())),
            End::Vanished => Err(SandboxError::Lost.into()),
            End::Failed(error) => Err(self.broken(error).into()),
        }
    }

    /// What ended commands left running, oldest name first. A name is given once and never used again.
    pub async fn children(&self) -> Result<Vec<Child>, SandboxError> {
        self.children.list().await
    }

    /// Ends a child and what it started: TERM, and KILL if that is not enough.
    pub async fn stop(&self, name: &str) -> Result<Stopped, SandboxError> {
        self.children.stop(name).await
    }

    /// What a child's command printed since it ended, also after the child did.
    pub async fn child_output(&self, name: &str) -> Result<Printed, SandboxError> {
        let job = self.children.job_of(name)?;
        let file = wire::memory_file("printed", b"")?;
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        self.send(&ToInit::Printed(job), &[file.as_fd(), write.as_fd()]).await?;
        drop(write);
        running::read_to_end(read).await?;
        let bytes = wire::contents(file, u64::MAX)?;
        let (dropped, bytes) = bytes.split_first_chunk::<8>().ok_or(SandboxError::Lost)?;
        Ok(Printed { bytes: bytes.to_vec(), dropped: u64::from_le_bytes(*dropped) })
    }

    /// Whether the environment can still start a shell: what tells a failed command from a lost sandbox. One that is full
    /// of children can, as soon as some are stopped.
    pub async fn probe(&self) -> bool {
        let command = Command { script: ":".to_owned(), cwd: None, shell: None, timeout: PROBE, env: Vec::new() };
        matches!(self.run(&command, &mut |_| {}).await, Ok(Exit { code: Some(0 | work::FULL), .. }))
    }

    /// Ends everything in the environment; all of it is dead when this returns.
    pub async fn close(self) {
        // Neither can fail in a way that leaves something running: the other side is gone already then.
        let _ = rustix::net::shutdown(self.control.get_ref(), rustix::net::Shutdown::Both);
        let _ = running::dead(&self.life).await;
    }

    fn next_job(&self) -> u64 {
        self.last_job.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn begin(&self, job: Job, fds: &[BorrowedFd<'_>]) -> Result<Running, SandboxError> {
        let (running, far) = Running::new()?;
        let mut all = vec![far.socket.as_fd(), far.output.as_fd()];
        all.extend(fds);
        self.send(&ToInit::Job(Box::new(job)), &all).await?;
        Ok(running)
    }

    async fn send(&self, message: &ToInit, fds: &[BorrowedFd<'_>]) -> Result<(), SandboxError> {
        self.control.async_io(Interest::WRITABLE, |socket| wire::send(socket, message, fds)).await.map_err(lost_if_gone)
    }

    /// Whether init is there. Asked when a job vanished: if init did too, that shows a moment later.
    async fn is_alive(&self) -> bool {
        tokio::time::timeout(MOMENT, self.life.readable()).await.is_err()
    }

    fn broken(&self, error: String) -> SandboxError {
        SandboxError::Environment { kind: self.layout.kind, step: "starting a command".to_owned(), error }
    }
}

fn lost_if_gone(error: io::Error) -> SandboxError {
    if running::is_gone(&error) { SandboxError::Lost } else { SandboxError::Io(error) }
}
