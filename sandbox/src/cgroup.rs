//! A control group per environment, where the machine lets this user make one: a limit on all of its processes together.
//!
//! Looked for in version 2 only. A group with processes in it can have no groups below it, so the new one is made beside
//! the engine's own, which works below a delegated unit (systemd's user sessions, `Delegate=yes`) and as root.

use crate::spec::Limits;
use rustix::process::Pid;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MOUNT: &str = "/sys/fs/cgroup";

/// The group of an environment; the folder goes when this is dropped, which has to be after its processes.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes a group with these limits and puts a process into it, if that is allowed here.
    pub fn around(pid: Pid, limits: &Limits) -> io::Result<Cgroup> {
        let own = own()?;
        let above = own.parent().filter(|above| above.starts_with(MOUNT)).unwrap_or(&own);
        let folder = above.join(format!("autosage-{}", pid.as_raw_nonzero()));
        std::fs::create_dir(&folder)?;
        let group = Cgroup(folder);
        group.set("pids.max", &limits.processes.to_string())?;
        if let Some(bytes) = limits.memory_bytes {
            group.set("memory.max", &bytes.to_string())?;
        }
        group.set("cgroup.procs", &pid.as_raw_nonzero().to_string())?;
        Ok(group)
    }

    /// Only writes what the kernel made: a missing file is a controller that is not there.
    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.0.join(name))?.write_all(value.as_bytes())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // An empty group that stays costs nothing, and there is nobody to tell.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The folder of the group that this process is in.
fn own() -> io::Result<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::")).ok_or(io::ErrorKind::NotFound)?;
    let folder = Path::new(MOUNT).join(path.trim_start_matches('/'));
    if folder.join("cgroup.controllers").exists() { Ok(folder) } else { Err(io::ErrorKind::NotFound.into()) }
}
