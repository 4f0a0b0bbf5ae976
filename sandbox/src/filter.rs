//! The one seccomp filter of every command: what no command needs and what would widen a wall, refused by call number.
//!
//! Made by hand, because two refusals are needed in one program: `EPERM` for what is denied and `ENOSYS` where a caller
//! should fall back to an older call that can be judged by its arguments.

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, sock_filter};

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

/// Which sockets a filter leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Local and internet ones; the network namespace decides what they reach.
    Usual,
    /// No internet: there is no network namespace that would cut it off.
    NoInternet,
    /// Neither internet nor local ones (socket pairs excepted): nothing else keeps the host's sockets away.
    None,
}

/// A denial that depends on an argument.
struct Rule {
    call: c_long,
    argument: u32,
    test: Test,
}

enum Test {
    /// Any of these bits is set.
    Any(u32),
    /// It is this number.
    Is(u32),
}

fn rules(sockets: Sockets) -> Vec<Rule> {
    let mut rules = vec![
        Rule { call: libc::SYS_clone, argument: 0, test: Test::Any(NAMESPACES) },
        Rule { call: libc::SYS_ioctl, argument: 1, test: Test::Is(libc::TIOCSTI as u32) },
        Rule { call: libc::SYS_ioctl, argument: 1, test: Test::Is(libc::TIOCLINUX as u32) },
    ];
    // A set-user-id program made here would have its effect outside. Set-group-id is left: folders are shared by it.
    let modes =
        [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_mknodat, 2), (libc::SYS_openat, 3)];
    #[cfg(target_arch = "x86_64")]
    let older = [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1), (libc::SYS_open, 2)];
    #[cfg(not(target_arch = "x86_64"))]
    let older: [(c_long, u32); 0] = [];
    for (call, argument) in modes.into_iter().chain(older) {
        rules.push(Rule { call, argument, test: Test::Any(libc::S_ISUID) });
    }
    let always = [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_XDP, libc::AF_TIPC, libc::AF_RDS, libc::AF_BLUETOOTH];
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let mut families = always.to_vec();
    match sockets {
        Sockets::Usual => {}
        Sockets::NoInternet => families.extend(internet),
        Sockets::None => families.extend(internet.into_iter().chain([libc::AF_UNIX])),
    }
    for family in families {
        rules.push(Rule { call: libc::SYS_socket, argument: 0, test: Test::Is(family as u32) });
    }
    rules
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

/// Goes on with the next instruction if the loaded number is `value`, else leaves out as many as are said.
fn only_if(value: u32, else_skip: u8) -> sock_filter {
    instruction(BPF_JMP | BPF_JEQ | BPF_K, value, 0, else_skip)
}

/// The filter's instructions.
pub(crate) fn program(sockets: Sockets) -> Vec<sock_filter> {
    // Offsets in `struct seccomp_data`: number, architecture, and the low half of each argument (both are little-endian).
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    let argument = |index: u32| 16 + 8 * index;
    let denied = answer(libc::SECCOMP_RET_ERRNO, libc::EPERM);
    let absent = answer(libc::SECCOMP_RET_ERRNO, libc::ENOSYS);

    let mut program = vec![
        load(ARCHITECTURE),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH, 1, 0),
        absent,
        load(NUMBER),
        instruction(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
        absent,
    ];
    for call in DENIED {
        program.extend([only_if(*call as u32, 1), denied]);
    }
    for call in ABSENT {
        program.extend([only_if(*call as u32, 1), absent]);
    }
    for rule in rules(sockets) {
        let test = match rule.test {
            Test::Is(value) => vec![only_if(value, 1)],
            Test::Any(bits) => vec![
                instruction(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0),
                // The bits are the ones that must not be there: nothing left means nothing to deny.
                instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
            ],
        };
        let body = test.len() as u8 + 3;
        program.push(only_if(rule.call as u32, body));
        program.push(load(argument(rule.argument)));
        program.extend(test);
        program.push(denied);
        program.push(load(NUMBER));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW, 0));
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
                code if code == BPF_ALU | BPF_AND | BPF_K => value &= step.k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += jump(value == step.k),
                code if code == BPF_JMP | BPF_JGE | BPF_K => at += jump(value >= step.k),
                code if code == BPF_RET | BPF_K => return step.k,
                other => panic!("instruction {other}"),
            }
        }
    }

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const PERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const NOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    fn usual(number: c_long, arguments: [u64; 6]) -> u32 {
        verdict(Sockets::Usual, number, arguments, AUDIT_ARCH)
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
        assert_eq!(socket(Sockets::Usual, libc::AF_INET), ALLOW);
        assert_eq!(socket(Sockets::Usual, libc::AF_VSOCK), PERM);
        assert_eq!(socket(Sockets::NoInternet, libc::AF_INET6), PERM);
        assert_eq!(socket(Sockets::NoInternet, libc::AF_UNIX), ALLOW);
        assert_eq!(socket(Sockets::None, libc::AF_UNIX), PERM);
    }

    #[test]
    fn calls_of_other_architectures_do_not_exist() {
        assert_eq!(verdict(Sockets::Usual, libc::SYS_read, [0; 6], 0x4000_0003), NOSYS);
        assert_eq!(usual(libc::SYS_read + c_long::from(X32), [0; 6]), NOSYS);
    }
}
