//! What commands may use up: resource limits of each process, and the number of processes of an environment.

use crate::spec::Limits;
use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Limits this process and what it starts.
pub(crate) fn apply(limits: &Limits) -> io::Result<()> {
    for (resource, most) in [
        (Resource::Nproc, limits.processes),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Core, 0),
    ] {
        lower(resource, most)?;
    }
    Ok(())
}

fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let smaller = |value: Option<u64>| Some(value.map_or(most, |value| value.min(most)));
    Ok(setrlimit(resource, Rlimit { current: smaller(now.current), maximum: smaller(now.maximum) })?)
}

/// Limits the processes of this process's own pid namespace, through a writable `/proc`. The resource limit does not count
/// processes of the machine's root, this does. Kernels before 6.14 know one such number for the whole machine: nothing is
/// done there.
pub(crate) fn cap_namespace(limits: &Limits, proc: BorrowedFd<'_>) -> io::Result<()> {
    /// Ids below this one are given out once only, to the first processes.
    const RESERVED: u64 = 300;
    if kernel() < (6, 14) {
        return Ok(());
    }
    let file = rustix::fs::openat(proc, "sys/kernel/pid_max", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, (limits.processes + RESERVED).to_string().as_bytes())?;
    Ok(())
}

/// The running kernel's version, as far as it can be read.
fn kernel() -> (u32, u32) {
    let name = rustix::system::uname();
    let mut numbers = name.release().to_str().unwrap_or("").split(['.', '-']).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
