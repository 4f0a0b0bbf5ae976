//! What runs inside the walls: a shell, or one of the program's own operations. The last code of ours before either.

use crate::job::Setting;
use crate::shell::{ARGUMENT, PRELUDE_FD, SCRIPT_FD, STATE_FD};
use crate::wire::{self, Job, Work};
use crate::{Op, sys};
use rustix::fd::{AsFd, OwnedFd};
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

/// Does the job's work in this fresh fork. `fds` are the output and what the work names.
pub(crate) fn perform(setting: &Setting<'_>, job: &Job, fds: Vec<OwnedFd>) -> ! {
    let mut fds = fds.into_iter();
    let result = match (&job.work, fds.next(), fds.next(), fds.next(), fds.next()) {
        (Work::Shell, Some(output), Some(prelude), Some(script), Some(state)) => {
            prepare(setting, job, &output, Errors::WithOutput)
                .and_then(|()| shell(setting, job, [(prelude, PRELUDE_FD), (script, SCRIPT_FD), (state, STATE_FD)]))
        }
        (Work::Op(name), Some(output), Some(request), None, None) => {
            prepare(setting, job, &output, Errors::Nowhere).and_then(|()| operation(setting, name, output, request))
        }
        _ => Err((CANNOT_RUN, io::Error::from(io::ErrorKind::InvalidInput))),
    };
    let Err((code, error)) = result;
    complain(&format!("autosage: the sandbox cannot run this: {error}"));
    sys::exit(code)
}

/// Where standard error goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    WithOutput,
    Nowhere,
}

type Never = std::convert::Infallible;
type Failed = (i32, io::Error);

/// Gives the process its standard descriptors, session, folder and walls.
fn prepare(setting: &Setting<'_>, job: &Job, output: &OwnedFd, errors: Errors) -> Result<(), Failed> {
    let cannot = |error: io::Error| (CANNOT_RUN, error);
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|e| cannot(e.into()))?;
    sys::place_fd(output.as_fd(), 1).map_err(cannot)?;
    sys::place_fd(if errors == Errors::WithOutput { output.as_fd() } else { null.as_fd() }, 2).map_err(cannot)?;
    sys::place_fd(null.as_fd(), 0).map_err(cannot)?;
    sys::reset_signals();
    rustix::process::setsid().map_err(|e| cannot(e.into()))?;
    let workspace = &setting.layout.workspace;
    if let Some(cwd) = &job.cwd
        && let Err(e) = rustix::process::chdir(cwd.as_str())
    {
        complain(&format!("bash: cd: {cwd}: {}; now in {}", io::Error::from(e), workspace.display()));
        rustix::process::chdir(workspace).map_err(|e| cannot(e.into()))?;
    } else if job.cwd.is_none() {
        rustix::process::chdir(workspace).map_err(|e| cannot(e.into()))?;
    }
    match setting.walls {
        Some(walls) => walls.raise().map_err(|e| cannot(io::Error::new(e.error.kind(), format!("{}: {}", e.step, e.error)))),
        None => Ok(()),
    }
}

fn shell(setting: &Setting<'_>, job: &Job, fds: [(OwnedFd, i32); 3]) -> Result<Never, Failed> {
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
