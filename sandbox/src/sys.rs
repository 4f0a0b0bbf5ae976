//! The system calls that `rustix` has no safe form for, each wrapped once.

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::{Pid, Signal};
use std::ffi::{CStr, c_int, c_ulong};
use std::io;
use std::mem::size_of;

/// What a fork returns on either side.
pub(crate) enum Fork {
    /// In the new process.
    Child,
    /// In the old one: the new one's id.
    Parent(Pid),
}

fn forked(result: libc::c_long) -> io::Result<Fork> {
    match result {
        0 => Ok(Fork::Child),
        n if n < 0 => Err(io::Error::last_os_error()),
        n => Ok(Fork::Parent(Pid::from_raw(n as i32).ok_or(io::ErrorKind::InvalidData)?)),
    }
}

/// Forks. The caller has one thread only, so the child may go on with all of the program.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the zygote, init and job-init are single-threaded, so no lock can be held by a thread that the child lacks.
    forked(unsafe { libc::fork() }.into())
}

/// Forks into new namespaces (`CLONE_NEW*`). By the old call, as `clone3` is refused by common container filters.
pub(crate) fn fork_into(namespaces: c_int) -> io::Result<Fork> {
    let flags = namespaces | libc::SIGCHLD;
    // SAFETY: as for `fork`; a null stack makes `clone` behave like fork, and the other arguments are unused without their flags.
    // The order of arguments differs between architectures, but all after the flags are zero.
    forked(unsafe { libc::syscall(libc::SYS_clone, flags as c_ulong, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) })
}

/// Ends this process at once, without destructors.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Kills all other processes of the pid namespace whose first process this is. Does nothing in any other process: there it
/// would mean every process of the machine.
pub(crate) fn kill_all_others() {
    if rustix::process::getpid().is_init() {
        // SAFETY: no memory is involved. The only error is that there are no others.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Attributes that `mount_setattr` sets on a mount.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

fn mount_setattr(dir: RawFd, path: &CStr, flags: c_int, attr: &MountAttr) -> io::Result<()> {
    // SAFETY: the path is a C string and `attr` is a live struct of the size that is passed.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, dir, path.as_ptr(), flags, attr as *const MountAttr, size_of::<MountAttr>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets `MOUNT_ATTR_*` flags on a mount and on those below it.
pub(crate) fn restrict_mount(mount: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    let attr = MountAttr { set, clear: 0, propagation: 0, userns: 0 };
    mount_setattr(mount.as_raw_fd(), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, &attr)
}

/// Keeps what is mounted from here on out of every other mount namespace.
pub(crate) fn make_mounts_private() -> io::Result<()> {
    let attr = MountAttr { set: 0, clear: 0, propagation: libc::MS_PRIVATE, userns: 0 };
    mount_setattr(libc::AT_FDCWD, c"/", libc::AT_RECURSIVE, &attr)
}

/// Makes the root folder's own mount read-only (not those below it).
pub(crate) fn seal_root() -> io::Result<()> {
    let attr = MountAttr { set: libc::MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, userns: 0 };
    mount_setattr(libc::AT_FDCWD, c"/", 0, &attr)
}

/// Blocks the signals and returns a descriptor that becomes readable when one of them is pending.
pub(crate) fn signals(wanted: &[Signal]) -> io::Result<OwnedFd> {
    // SAFETY: an all-zero `sigset_t` is valid, and each call gets pointers to it while it lives.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in wanted {
            libc::sigaddset(&mut set, signal.as_raw());
        }
        if libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// Takes one pending signal from a descriptor of [`signals`].
pub(crate) fn next_signal(signals: &OwnedFd) -> Option<Signal> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(signals, &mut bytes) {
        Ok(n) if n == bytes.len() => {
            let number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            Signal::from_named_raw(number as i32)
        }
        _ => None,
    }
}

/// Gives every signal its default effect and blocks none: what a program expects at its start.
pub(crate) fn reset_signals() {
    // SAFETY: only default dispositions and an empty mask are set; the pointers live through the calls.
    unsafe {
        for signal in 1..=31 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// Makes `fd` be descriptor number `to`, also in programs that are executed.
pub(crate) fn place_fd(fd: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: plain descriptor calls; `to` is a number that this process keeps for this purpose.
    let result = unsafe { if fd.as_raw_fd() == to { libc::fcntl(to, libc::F_SETFD, 0) } else { libc::dup2(fd.as_raw_fd(), to) } };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Marks all descriptors from `first` on to be closed when a program is executed.
pub(crate) fn close_on_exec_from(first: RawFd) {
    close_range(first as u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int);
}

/// Closes all descriptors from `first` on. Whoever owns one of them must never use it again.
pub(crate) fn close_from(first: RawFd) {
    close_range(first as u32, u32::MAX, 0);
}

/// Closes all descriptors but the standard ones and those in `keep`.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| *fd as u32).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep {
        if fd > first {
            close_range(first, fd - 1, 0);
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX, 0);
}

fn close_range(first: u32, last: u32, flags: c_int) {
    // SAFETY: used only in fresh forks, whose inherited descriptors nobody uses after this.
    if first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0 {
        return;
    }
    // Filters of older containers refuse the call.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| (first..=last).contains(&(*fd as u32))) {
        // SAFETY: as above; the one that listed the folder is closed already, for which the calls just fail.
        unsafe {
            match flags {
                0 => libc::close(fd),
                _ => libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC),
            }
        };
    }
}

/// # Safety
/// `fd` is an error (negative, with `errno` set) or an open descriptor that nobody else owns.
unsafe fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: by this function's own contract.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// Executes a program; returns only when that failed.
pub(crate) fn execute(path: &CStr, arguments: &[&CStr], variables: &[std::ffi::CString]) -> io::Error {
    let argv: Vec<*const libc::c_char> = arguments.iter().map(|a| a.as_ptr()).chain([std::ptr::null()]).collect();
    let envp: Vec<*const libc::c_char> = variables.iter().map(|v| v.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: both arrays end with null and their strings live until the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    io::Error::last_os_error()
}

/// Confines this process by a Landlock ruleset.
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor and flags, no memory.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The Landlock version of this kernel, 0 where there is none.
pub(crate) fn landlock_version() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with a null attribute of size 0 and this flag the call only returns a number.
    let result = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    u32::try_from(result).unwrap_or(0)
}

/// Installs a seccomp filter for this process and what it starts. Needs `no_new_privs`.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions from a slice of that length and writes nothing.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program as *const libc::sock_fprog) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether this kernel can ask another process about a system call.
pub(crate) fn has_user_notification() -> bool {
    let action: u32 = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads one number that lives through the call.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &action as *const u32) == 0 }
}

/// Brings the loopback device of this network namespace up.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: an all-zero `ifreq` is valid; the call reads it while it lives.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Clock ticks a second, as `/proc/PID/stat` counts start times.
pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: a query without memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}
