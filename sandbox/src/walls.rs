//! The walls that a process puts on itself before it becomes a command: limits, capabilities, Landlock, seccomp.

use crate::filter::{self, Sockets};
use crate::layout::{Access, Layout, Links};
use crate::mounts::exactly;
use crate::root::{Step, StepError};
use crate::spec::{Kind, Limits};
use crate::sys;
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;
use std::path::{Path, PathBuf};

/// The newest Landlock that this code knows; older kernels give what they have.
const NEWEST: ABI = ABI::V9;
/// The first Landlock that keeps a command from abstract sockets that it did not make.
const GUARDS_ABSTRACT_SOCKETS: u32 = 6;
/// The first Landlock under which sockets in the file system are reached only where the rules say so.
const GUARDS_SOCKETS: u32 = 9;
/// Devices that any command may use.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx"];
/// What a root engine's commands keep: rights over the owner and mode of files that they can reach anyway, without which
/// `tar`, `npm` and package builds fail as root, and work in a folder that belongs to someone else is impossible. Not among
/// them is FSETID: without it the kernel lets nobody make a program that runs with a group they are not in.
const KEPT: CapabilitySet = CapabilitySet::CHOWN.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::FOWNER);

/// Everything of the walls that can be made once for an environment.
pub(crate) struct Walls {
    limits: Limits,
    ruleset: Option<OwnedFd>,
    filter: Vec<libc::sock_filter>,
    /// The highest capability that this kernel knows.
    last_capability: u32,
}

impl Walls {
    /// Prepares the walls of an environment, from inside it; `None` is none at all.
    pub fn prepare(layout: &Layout, further: &[PathBuf]) -> Result<Option<Walls>, StepError> {
        let landlock = sys::landlock_version();
        let (ruleset, sockets) = match layout.kind {
            Kind::Host => return Ok(None),
            Kind::Native => {
                let local = !layout.network || landlock >= GUARDS_ABSTRACT_SOCKETS;
                (native_rules(layout, further), Sockets { internet: true, local })
            }
            Kind::Reduced if landlock == 0 => {
                let missing = io::Error::new(io::ErrorKind::Unsupported, "this kernel has no Landlock");
                return Err(missing).step(|| "looking for Landlock".to_owned());
            }
            Kind::Reduced => (reduced_rules(layout), Sockets { internet: layout.network, local: landlock >= GUARDS_SOCKETS }),
        };
        let ruleset = ruleset.map_err(io::Error::other).step(|| "making the Landlock rules".to_owned())?;
        let last = std::fs::read_to_string("/proc/sys/kernel/cap_last_cap").ok().and_then(|text| text.trim().parse().ok());
        Ok(Some(Walls {
            limits: layout.limits,
            ruleset: Option::from(ruleset),
            filter: filter::program(sockets),
            last_capability: last.unwrap_or(63),
        }))
    }

    /// The descriptor that [`Walls::raise`] needs to be open.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.ruleset.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Confines this process and all that it starts, for good.
    pub fn raise(&self) -> Result<(), StepError> {
        crate::limits::apply(&self.limits).step(|| "limiting resources".to_owned())?;
        rustix::thread::set_no_new_privs(true).step(|| "giving up privileges".to_owned())?;
        self.drop_capabilities().step(|| "dropping capabilities".to_owned())?;
        if let Some(ruleset) = &self.ruleset {
            sys::landlock_restrict(ruleset.as_fd()).step(|| "applying the Landlock rules".to_owned())?;
        }
        sys::install_filter(&self.filter).step(|| "installing the seccomp filter".to_owned())
    }

    fn drop_capabilities(&self) -> io::Result<()> {
        let now = rustix::thread::capabilities(None)?;
        let kept = if rustix::process::geteuid().is_root() { KEPT & now.permitted } else { CapabilitySet::empty() };
        for number in 0..=self.last_capability.min(63) {
            let one = CapabilitySet::from_bits_retain(1 << number);
            if !kept.contains(one) {
                match rustix::thread::remove_capability_from_bounding_set(one) {
                    // Without the right to change the bounding set there is nothing to bound: nothing can be gained.
                    Ok(()) | Err(rustix::io::Errno::PERM) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        Ok(rustix::thread::set_capabilities(None, sets)?)
    }
}

type Rules = Result<RulesetCreated, landlock::RulesetError>;

fn ruleset() -> Rules {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Rules {
    let Ok(found) = PathFd::new(path) else { return Ok(rules) };
    allow_found(rules, found, access)
}

fn allow_found(rules: RulesetCreated, found: impl AsFd, access: BitFlags<AccessFs>) -> Rules {
    let is_folder = rustix::fs::fstat(found.as_fd())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory);
    let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(found, access))
}

/// The composed root shows only what may be read, so all of it can be; writes go where they belong.
fn native_rules(layout: &Layout, further: &[PathBuf]) -> Rules {
    let mut rules = allow(ruleset()?, Path::new("/"), AccessFs::from_read(NEWEST))?;
    let places = layout.places.iter().filter(|place| place.access != Access::Read).map(|place| place.target.as_path());
    for path in places.chain(further.iter().map(PathBuf::as_path)).chain([Path::new("/dev")]) {
        rules = allow(rules, path, AccessFs::from_all(NEWEST))?;
    }
    Ok(rules)
}

/// Without a root of its own, an environment is what the rules show of the host's.
fn reduced_rules(layout: &Layout) -> Rules {
    let (read, all) = (AccessFs::from_read(NEWEST), AccessFs::from_all(NEWEST));
    let mut rules = allow(ruleset()?, Path::new("/proc"), AccessFs::ReadFile | AccessFs::ReadDir)?;
    for device in DEVICES.iter().chain(&["/dev/shm"]) {
        rules = allow(rules, Path::new(device), all)?;
    }
    for place in &layout.places {
        rules = match place.access {
            Access::Write if place.links == Links::Refused => match exactly(&place.target) {
                Ok(found) => allow_found(rules, found, all)?,
                Err(_) => rules,
            },
            Access::Write => allow(rules, &place.target, all)?,
            Access::Read | Access::Cache => allow_around(rules, &place.target, &layout.masks, read)?,
        };
    }
    Ok(rules)
}

/// Allows `path` without what is masked in it: rules can only add, so a folder with something masked is allowed by its
/// entries, and for itself only to be listed.
fn allow_around(mut rules: RulesetCreated, path: &Path, masks: &[PathBuf], access: BitFlags<AccessFs>) -> Rules {
    if masks.iter().any(|mask| mask == path) {
        return Ok(rules);
    }
    if !masks.iter().any(|mask| mask.starts_with(path)) {
        return allow(rules, path, access);
    }
    rules = allow(rules, path, AccessFs::ReadDir.into())?;
    let Ok(entries) = std::fs::read_dir(path) else { return Ok(rules) };
    // A link opens nothing: what it names is allowed only as a place of its own.
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())) {
        rules = allow_around(rules, &entry.path(), masks, access)?;
    }
    Ok(rules)
}
