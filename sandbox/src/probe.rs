//! What this machine allows, step by step: each step is really done, in a process of its own, for what is refused is often
//! refused late. AppArmor, for one, lets `clone` make a user namespace and refuses what follows in it.

use crate::spec::{Program, SandboxError};
use crate::{cgroup, environment, filter, root, sys, zygote};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::Path;

/// The name under which a program is started to probe the machine; it answers on standard output.
pub(crate) const NAME: &str = "autosage-probe";

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// What it is, in a word or two.
    pub name: String,
    /// Whether it works here.
    pub ok: bool,
    /// Whether the native sandbox needs it.
    pub required: bool,
    /// What was found.
    pub detail: String,
    /// What to do where it does not work, as text of one or more lines.
    pub fix: Option<String>,
}

/// Tries what the native sandbox needs, with this program as the sandbox's process.
pub fn probe_native() -> Vec<Probe> {
    probe_with(Program::Current)
}

/// Tries what the native sandbox needs, with `program` as the sandbox's process.
pub fn probe_with(program: Program) -> Vec<Probe> {
    answered(program).unwrap_or_else(|e| {
        let detail = e.to_string();
        vec![Probe { name: "sandbox process".to_owned(), ok: false, required: true, detail, fix: None }]
    })
}

fn answered(program: Program) -> Result<Vec<Probe>, SandboxError> {
    let (program, mut command) = environment::command(program, NAME)?;
    let output = command.output().map_err(|source| SandboxError::Start { program, source })?;
    Ok(serde_json::from_slice(&output.stdout).map_err(io::Error::from)?)
}

/// Runs in the process that was started to probe; never returns.
pub(crate) fn serve() -> ! {
    let probes = [bash(), namespaces(), landlock(), seccomp(), notification(), cgroups()];
    let done = serde_json::to_writer(io::stdout(), &probes).map_err(io::Error::from).and_then(|()| io::stdout().flush());
    sys::exit(if done.is_ok() { 0 } else { 1 })
}

fn probe(name: &str, result: Result<String, String>, fix: impl FnOnce() -> Option<String>) -> Probe {
    let (ok, detail) = match result {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    Probe { name: name.to_owned(), ok, required: true, detail, fix: if ok { None } else { fix() } }
}

fn bash() -> Probe {
    let found = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists());
    let result = found.map(str::to_owned).ok_or_else(|| "there is no bash".to_owned());
    probe("bash", result, || Some("apt-get install -y bash".to_owned()))
}

/// User namespace, mounts and a new root, as an environment makes them.
fn namespaces() -> Probe {
    let result = in_new_namespaces(|| root::rehearse().map_err(|e| format!("{}: {}", e.step, e.error)));
    let works = "user, mount, pid, network, ipc and uts namespaces, uid_map, mounts and pivot_root work".to_owned();
    probe("namespaces", result.map(|()| works), || Some(namespace_fix()))
}

/// Runs a step in a process in namespaces like those of an environment.
fn in_new_namespaces(step: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let said = |what: &str, error: io::Error| format!("{what}: {error}");
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| said("making a pipe", e.into()));
    let ((go, gone), (answer, told)) = (pipe()?, pipe()?);
    match sys::fork_into(zygote::flags(zygote::Net::Own)).map_err(|e| said("making namespaces", e))? {
        sys::Fork::Child => {
            drop(gone);
            let mut byte = [0];
            let answer = match rustix::io::read(&go, &mut byte) {
                Ok(1) => step().err().unwrap_or_else(|| "ok".to_owned()),
                _ => "it was not told to go on".to_owned(),
            };
            // A lost answer is read as an empty one, which is no success.
            let _ = rustix::io::write(&told, answer.as_bytes());
            sys::exit(0)
        }
        sys::Fork::Parent(pid) => {
            drop(told);
            zygote::map_users(pid).map_err(|e| said("writing uid_map", e))?;
            rustix::io::write(&gone, b"!").map_err(|e| said("going on", e.into()))?;
            let mut text = String::new();
            std::fs::File::from(answer).read_to_string(&mut text).map_err(|e| said("listening", e))?;
            // It has answered and exits; it is a child of this process, which ends soon too.
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            if text == "ok" { Ok(()) } else { Err(text) }
        }
    }
}

/// What most likely keeps namespaces from working here, and what to do about it.
fn namespace_fix() -> String {
    let number = |path: &str| std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<i64>().ok());
    if number("/proc/sys/user/max_user_namespaces") == Some(0) {
        return "user namespaces are switched off: sudo sysctl -w user.max_user_namespaces=15000".to_owned();
    }
    if number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return "user namespaces are switched off: sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned();
    }
    if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_else(|_| "/usr/local/bin/autosage".into());
        return format!(
            "AppArmor restricts user namespaces to named programs. Write this as /etc/apparmor.d/autosage:\n\n{}\nthen: sudo apparmor_parser -r /etc/apparmor.d/autosage",
            apparmor_profile(&program)
        );
    }
    "in a container without privileges this is usual: use `--sandbox reduced`".to_owned()
}

/// The AppArmor profile that lets a program make user namespaces and restricts nothing else.
pub fn apparmor_profile(program: &Path) -> String {
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile autosage {} flags=(unconfined) {{\n  userns,\n  include if exists <local/autosage>\n}}\n",
        program.display()
    )
}

fn landlock() -> Probe {
    let result = match sys::landlock_version() {
        0 => Err("this kernel has no Landlock, or it is not switched on".to_owned()),
        version @ 1..6 => Ok(format!("version {version}; from version 6 on it also keeps signals and abstract sockets in")),
        version => Ok(format!("version {version}")),
    };
    let fix = "boot with `lsm=landlock,…` (kernel 5.13 or later); `reduced` needs it, `native` holds without it, one wall fewer";
    Probe { required: false, ..probe("Landlock", result, || Some(fix.to_owned())) }
}

fn seccomp() -> Probe {
    let raise = || {
        rustix::thread::set_no_new_privs(true)?;
        sys::install_filter(&filter::program(filter::Sockets { internet: true, local: true }))
    };
    // This process is one that nobody needs afterwards, and the filter leaves it what it still does.
    let result = raise().map(|()| "filters can be installed".to_owned()).map_err(|e| e.to_string());
    probe("seccomp", result, || Some("a kernel with CONFIG_SECCOMP_FILTER is needed".to_owned()))
}

fn notification() -> Probe {
    let result =
        if sys::has_user_notification() { Ok("the kernel has it".to_owned()) } else { Err("the kernel lacks it".to_owned()) };
    let fix = || Some("nothing is needed now; recording changes for undo will be slower".to_owned());
    Probe { required: false, ..probe("seccomp notification", result, fix) }
}

fn cgroups() -> Probe {
    let fix = || {
        Some("limits hold per process; start in a systemd user session (or with Delegate=yes) to limit all together".to_owned())
    };
    Probe { required: false, ..probe("control groups", make_cgroup(), fix) }
}

/// Makes a group around a child that waits until its pipe is closed.
fn make_cgroup() -> Result<String, String> {
    let (go, gone) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| e.to_string())?;
    match sys::fork().map_err(|e| e.to_string())? {
        sys::Fork::Child => {
            drop(gone);
            let _ended = rustix::io::read(&go, &mut [0]);
            sys::exit(0)
        }
        sys::Fork::Parent(pid) => {
            let group = cgroup::Cgroup::around(pid, &crate::Limits::default());
            drop(gone);
            let _ended = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            match group {
                Ok(_removed) => Ok("version 2, this user may make groups".to_owned()),
                Err(e) => Err(format!("no group can be made: {e}")),
            }
        }
    }
}
