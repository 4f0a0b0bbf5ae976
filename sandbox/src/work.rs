//! What runs inside the walls: a shell, or one of the program's own operations. The last code of ours before either.

use crate::job::Setting;
use crate::shell::{ARGUMENT, PRELUDE_FD, SCRIPT_FD, STATE_FD};
use crate::walls::Walls;
use crate::wire::{self, Job, Work};
use crate::{Op, sys};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exit codes of work that was not begun: for too many processes, behind walls that could not be raised, without `bash`.
pub(crate) const FULL: i32 = 126;
const CANNOT_RUN: i32 = 125;
const NOT_FOUND: i32 = 127;
/// The exit code of an operation that panicked, as Rust programs have it; its output is the message then.
pub(crate) const PANICKED: i32 = 101;
/// The exit code of an operation that the program does not have.
pub(crate) const NO_SUCH_OP: i32 = 100;

/// Runs in the fresh fork that is to do a job's work: goes behind the walls, waits for the job on `socket`, does it.
pub(crate) fn perform(setting: &Setting<'_>, socket: &OwnedFd) -> ! {
    let keep: Vec<RawFd> = [socket.as_raw_fd()].into_iter().chain(setting.walls.and_then(Walls::descriptor)).collect();
    sys::close_all_but(&keep);
    let prepared = prepare(setting);
    let Ok(Some((job, fds))) = wire::receive::<Job>(socket) else { sys::exit(CANNOT_RUN) };
    let mut fds = fds.into_iter();
    let result = match (&job.work, fds.next(), fds.next(), fds.next(), fds.next()) {
        (Work::Shell, Some(output), Some(prelude), Some(script), Some(state)) => [1, 2]
            .iter()
            .try_for_each(|number| sys::place_fd(output.as_fd(), *number))
            .and(prepared)
            .map_err(|e| (CANNOT_RUN, e))
            .and_then(|()| shell(setting, &job, [(prelude, PRELUDE_FD), (script, SCRIPT_FD), (state, STATE_FD)])),
        (Work::Op(name), Some(output), Some(request), None, None) => sys::place_fd(output.as_fd(), 1)
            .and(prepared)
            .map_err(|e| (CANNOT_RUN, e))
            .and_then(|()| operation(setting, name, output, request)),
        _ => Err((CANNOT_RUN, io::Error::from(io::ErrorKind::InvalidInput))),
    };
    let Err((code, error)) = result;
    complain(&format!("autosage: the sandbox cannot run this: {error}"));
    sys::exit(code)
}

type Never = std::convert::Infallible;
type Failed = (i32, io::Error);

/// Gives the process what does not depend on the job: a session, no input, the workspace as its folder, walls.
fn prepare(setting: &Setting<'_>) -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    [0, 1, 2].iter().try_for_each(|number| sys::place_fd(null.as_fd(), *number))?;
    sys::reset_signals();
    rustix::process::setsid()?;
    rustix::process::chdir(&setting.layout.workspace)?;
    match setting.walls {
        Some(walls) => walls.raise().map_err(|e| io::Error::new(e.error.kind(), format!("{}: {}", e.step, e.error))),
        None => Ok(()),
    }
}

fn shell(setting: &Setting<'_>, job: &Job, fds: [(OwnedFd, i32); 3]) -> Result<Never, Failed> {
    if let Some(cwd) = &job.cwd
        && let Err(e) = rustix::process::chdir(cwd.as_str())
    {
        complain(&format!("bash: cd: {cwd}: {}; now in {}", io::Error::from(e), setting.layout.workspace.display()));
    }
    sys::close_on_exec_from(3);
    for (fd, number) in &fds {
        sys::place_fd(fd.as_fd(), *number).map_err(|e| (CANNOT_RUN, e))?;
    }
    let variables: Vec<CString> =
        job.variables.iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect();
    let invalid = |e: std::ffi::NulError| (CANNOT_RUN, io::Error::from(e));
    let path = CString::new(setting.layout.shell.as_os_str().as_bytes()).map_err(invalid)?;
    let text = CString::new(ARGUMENT).map_err(invalid)?;
    let error = sys::execute(&path, &[c"bash", c"--noprofile", c"--norc", c"-c", &text], &variables);
    Err((NOT_FOUND, error))
}

fn operation(setting: &Setting<'_>, name: &str, output: OwnedFd, request: OwnedFd) -> Result<Never, Failed> {
    let request = wire::contents(request, u64::MAX).map_err(|e| (CANNOT_RUN, e))?;
    drop(output);
    sys::close_from(3);
    let Some((_, op)) = setting.ops.iter().find(|(known, _)| *known == name) else { sys::exit(NO_SUCH_OP) };
    let (code, answer) = guarded(*op, &request);
    io::stdout().write_all(&answer).and_then(|()| io::stdout().flush()).map_err(|e| (CANNOT_RUN, e))?;
    sys::exit(code)
}

/// Runs an operation; its panic becomes an exit code and a message.
fn guarded(op: Op, request: &[u8]) -> (i32, Vec<u8>) {
    match catch_unwind(AssertUnwindSafe(|| op(request))) {
        Ok(answer) => (0, answer),
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().map(|words| words.to_string());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
            (PANICKED, words.unwrap_or_else(|| "a panic without a message".to_owned()).into_bytes())
        }
    }
}

/// Says something on the command's own output. If that is closed there is nobody to say it to.
fn complain(words: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("{words}\n").as_bytes());
}
