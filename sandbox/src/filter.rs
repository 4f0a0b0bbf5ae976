//! The one seccomp filter of every command: what no command needs and what would widen a wall, refused by call number.
//!
//! Made by hand, because two refusals are needed in one program: `EPERM` for what is denied and `ENOSYS` where a caller
//! should fall back to an older call that can be judged by its arguments. The numbers are searched by halves: whenever a
//! filter is installed the kernel runs it once for every call there is, to learn which need no filter.

use libc::{BPF_ABS, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, sock_filter};
use std::collections::BTreeMap;

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "the sandbox knows the system calls of Linux on x86-64 and aarch64 only; use a container or virtual machine of these"
);

/// Numbers from here on are those of x32 on x86-64; no call of aarch64 is so high.
const X32: u32 = 0x4000_0000;
const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;
/// `fchmodat2`, newer than the libc crate's list on some targets.
const SYS_FCHMODAT2: c_long = 452;

/// Denied whatever the arguments.
const DENIED: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Said not to exist: their arguments lie in memory, where a filter cannot see them, or they go around it.
const ABSENT: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Which sockets a filter leaves. Socket pairs are always left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sockets {
    /// Those of the internet: refused where no network namespace cuts them off.
    pub internet: bool,
    /// Those of this machine: refused where nothing else keeps the host's away.
    pub local: bool,
}

/// What becomes of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// `EPERM`.
    Denied,
    /// `ENOSYS`.
    Absent,
    /// `EPERM` if one of these holds for the argument at the index.
    DeniedIf(u32, Vec<Test>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// Any of these bits is set.
    Any(u32),
    /// It is this number.
    Is(u32),
}

/// The calls that do not simply pass, by number.
fn fates(sockets: Sockets) -> BTreeMap<u32, Fate> {
    let mut fates = BTreeMap::new();
    let mut set = |call: c_long, fate: Fate| drop(fates.insert(call as u32, fate));
    for call in DENIED {
        set(*call, Fate::Denied);
    }
    for call in ABSENT {
        set(*call, Fate::Absent);
    }
    set(libc::SYS_clone, Fate::DeniedIf(0, vec![Test::Any(NAMESPACES)]));
    // Both put words into a terminal as if its user had typed them.
    set(libc::SYS_ioctl, Fate::DeniedIf(1, vec![Test::Is(libc::TIOCSTI as u32), Test::Is(libc::TIOCLINUX as u32)]));
    // A set-user-id program made here would have its effect outside. Set-group-id is left, for folders are shared by it;
    // for groups that the user is not in the kernel refuses it, as no command has the capability FSETID.
    let modes =
        [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_mknodat, 2), (libc::SYS_openat, 3)];
    #[cfg(target_arch = "x86_64")]
    let older = [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1), (libc::SYS_open, 2)];
    #[cfg(not(target_arch = "x86_64"))]
    let older: [(c_long, u32); 0] = [];
    for (call, argument) in modes.into_iter().chain(older) {
        set(call, Fate::DeniedIf(argument, vec![Test::Any(libc::S_ISUID)]));
    }
    let always = [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_XDP, libc::AF_TIPC, libc::AF_RDS, libc::AF_BLUETOOTH];
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let mut families = always.to_vec();
    if !sockets.internet {
        families.extend(internet);
    }
    if !sockets.local {
        families.push(libc::AF_UNIX);
    }
    set(libc::SYS_socket, Fate::DeniedIf(0, families.into_iter().map(|family| Test::Is(family as u32)).collect()));
    fates
}

fn instruction(code: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

fn load(offset: u32) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

fn answer(action: u32, errno: i32) -> sock_filter {
    instruction(BPF_RET | BPF_K, action | errno as u32, 0, 0)
}

fn denied() -> sock_filter {
    answer(libc::SECCOMP_RET_ERRNO, libc::EPERM)
}

fn absent() -> sock_filter {
    answer(libc::SECCOMP_RET_ERRNO, libc::ENOSYS)
}

fn allowed() -> sock_filter {
    answer(libc::SECCOMP_RET_ALLOW, 0)
}

/// What is done when the loaded number is known to be `call` or one that passes.
fn leaf(call: u32, fate: &Fate) -> Vec<sock_filter> {
    let body = match fate {
        Fate::Denied => vec![denied()],
        Fate::Absent => vec![absent()],
        Fate::DeniedIf(argument, tests) => {
            // The low half of the argument: the machines that are supported are little-endian.
            let reload = load(16 + 8 * argument);
            let mut body = vec![reload];
            for test in tests {
                match test {
                    Test::Is(value) => body.extend([instruction(BPF_JMP | BPF_JEQ | BPF_K, *value, 0, 1), denied()]),
                    Test::Any(bits) => body.extend([instruction(BPF_JMP | BPF_JSET | BPF_K, *bits, 0, 1), denied()]),
                }
            }
            body.push(allowed());
            body
        }
    };
    let mut all = vec![instruction(BPF_JMP | BPF_JEQ | BPF_K, call, 1, 0), allowed()];
    all.extend(body);
    all
}

/// A search by halves among the calls, each half ending in an answer.
fn search(fates: &[(u32, Fate)]) -> Vec<sock_filter> {
    match fates {
        [] => vec![allowed()],
        [(call, fate)] => leaf(*call, fate),
        _ => {
            let (low, high) = fates.split_at(fates.len() / 2);
            let (first, below) = (high[0].0, search(low));
            // A far jump over the lower half: the near ones reach 255 instructions only.
            let mut all = vec![
                instruction(BPF_JMP | BPF_JGE | BPF_K, first, 0, 1),
                instruction(BPF_JMP | BPF_JA, below.len() as u32, 0, 0),
            ];
            all.extend(below);
            all.extend(search(high));
            all
        }
    }
}

/// The filter's instructions.
pub(crate) fn program(sockets: Sockets) -> Vec<sock_filter> {
    // Offsets in `struct seccomp_data`.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    let mut program = vec![
        load(ARCHITECTURE),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH, 1, 0),
        absent(),
        load(NUMBER),
        instruction(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
        absent(),
    ];
    program.extend(search(&fates(sockets).into_iter().collect::<Vec<_>>()));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter says to a call: runs its instructions.
    fn verdict(sockets: Sockets, number: c_long, arguments: [u64; 6], architecture: u32) -> u32 {
        let mut words = vec![number as u32, architecture, 0, 0];
        words.extend(arguments.iter().flat_map(|a| [*a as u32, (*a >> 32) as u32]));
        let (program, mut at, mut value) = (program(sockets), 0, 0u32);
        loop {
            let step = program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => value = words[step.k as usize / 4],
                code if code == BPF_JMP | BPF_JA => at += step.k as usize,
                code if code == BPF_JMP | BPF_JSET | BPF_K => at += jump(value & step.k != 0),
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += jump(value == step.k),
                code if code == BPF_JMP | BPF_JGE | BPF_K => at += jump(value >= step.k),
                code if code == BPF_RET | BPF_K => return step.k,
                other => panic!("instruction {other}"),
            }
        }
    }

    const ALL: Sockets = Sockets { internet: true, local: true };
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const PERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const NOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    fn usual(number: c_long, arguments: [u64; 6]) -> u32 {
        verdict(ALL, number, arguments, AUDIT_ARCH)
    }

    #[test]
    fn what_widens_a_wall_is_denied() {
        for call in DENIED {
            assert_eq!(usual(*call, [0; 6]), PERM, "call {call}");
        }
        for call in ABSENT {
            assert_eq!(usual(*call, [0; 6]), NOSYS, "call {call}");
        }
    }

    #[test]
    fn every_other_call_passes() {
        let fates = fates(ALL);
        for call in (0..600).filter(|call| !fates.contains_key(call)) {
            assert_eq!(usual(call.into(), [u64::MAX; 6]), ALLOW, "call {call}");
        }
    }

    #[test]
    fn arguments_decide() {
        assert_eq!(usual(libc::SYS_clone, [libc::CLONE_NEWUSER as u64 | libc::SIGCHLD as u64, 0, 0, 0, 0, 0]), PERM);
        assert_eq!(usual(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(usual(libc::SYS_fchmodat, [0, 0, 0o4755, 0, 0, 0]), PERM);
        assert_eq!(usual(libc::SYS_fchmodat, [0, 0, 0o755, 0, 0, 0]), ALLOW);
        assert_eq!(usual(libc::SYS_ioctl, [0, libc::TIOCSTI, 0, 0, 0, 0]), PERM);
        assert_eq!(usual(libc::SYS_ioctl, [0, libc::TCGETS, 0, 0, 0, 0]), ALLOW);
        assert_eq!(usual(libc::SYS_ptrace, [0; 6]), ALLOW);
        assert_eq!(usual(libc::SYS_read, [0; 6]), ALLOW);
    }

    #[test]
    fn sockets_are_left_as_asked() {
        let socket = |sockets, family: i32| verdict(sockets, libc::SYS_socket, [family as u64, 0, 0, 0, 0, 0], AUDIT_ARCH);
        assert_eq!(socket(ALL, libc::AF_INET), ALLOW);
        assert_eq!(socket(ALL, libc::AF_VSOCK), PERM);
        assert_eq!(socket(Sockets { internet: false, local: true }, libc::AF_INET6), PERM);
        assert_eq!(socket(Sockets { internet: false, local: true }, libc::AF_UNIX), ALLOW);
        assert_eq!(socket(Sockets { internet: true, local: false }, libc::AF_UNIX), PERM);
    }

    #[test]
    fn calls_of_other_architectures_do_not_exist() {
        assert_eq!(verdict(ALL, libc::SYS_read, [0; 6], 0x4000_0003), NOSYS);
        assert_eq!(usual(libc::SYS_read + c_long::from(X32), [0; 6]), NOSYS);
    }
}
