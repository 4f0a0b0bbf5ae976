//! What every root has, whatever is shown in it: made before there is a layout.

use crate::mounts::{READ, Shape, WRITE, attach, filesystem, make, tree, tree_of};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::MoveMountFlags;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Where the new root keeps what is mounted elsewhere, or copies of it.
const PARTS: &str = ".parts";
/// In it, an empty file.
const FILE: &str = "file";
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Attaches an empty file system over the root folder. Absolute paths go on leading into what is below it.
pub(crate) fn top() -> io::Result<OwnedFd> {
    let top = filesystem("tmpfs", &[("mode", "755"), ("size", "1m")], WRITE)?;
    rustix::mount::move_mount(&top, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(top)
}

/// The folder for what the functions below make.
pub(crate) fn folder(top: &OwnedFd) -> io::Result<OwnedFd> {
    entry(top, PARTS, Shape::Folder)
}

/// Where the empty file of [`nothing`] lies once the new root is entered.
pub(crate) fn empty_file() -> PathBuf {
    Path::new("/").join(PARTS).join(FILE)
}

/// A new entry in a folder of ours, to mount something on.
fn entry(parent: &OwnedFd, name: &str, shape: Shape) -> io::Result<OwnedFd> {
    make(parent, OsStr::new(name), shape)?;
    Ok(rustix::fs::openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// An empty folder and an empty file that cannot be written. Attached over themselves: what is attached nowhere is taken
/// apart when its descriptor is closed, and each time the kernel waits for that.
pub(crate) fn nothing(folder: &OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let read_only = |name, shape| {
        let point = entry(folder, name, shape)?;
        let tree = tree_of(&point, READ)?;
        attach(&tree, &point)?;
        Ok::<_, io::Error>(tree)
    };
    Ok((read_only("folder", Shape::Folder)?, read_only(FILE, Shape::File)?))
}

/// What is to be `/dev`, attached elsewhere for the time being.
pub(crate) fn devices(folder: &OwnedFd) -> io::Result<OwnedFd> {
    let noexec = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
    let dev = filesystem("tmpfs", &[("mode", "755"), ("size", "64k")], noexec)?;
    attach(&dev, &entry(folder, "dev", Shape::Folder)?)?;
    for name in DEVICES {
        let device = tree(CWD, &Path::new("/dev").join(name), 0)?;
        attach(&device, &entry(&dev, name, Shape::File)?)?;
    }
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ];
    for (name, text) in links {
        rustix::fs::symlinkat(text, &dev, name)?;
    }
    let shm = filesystem("tmpfs", &[("mode", "1777")], WRITE)?;
    attach(&shm, &entry(&dev, "shm", Shape::Folder)?)?;
    let pts = filesystem("devpts", &[("ptmxmode", "666"), ("mode", "620")], noexec)?;
    attach(&pts, &entry(&dev, "pts", Shape::Folder)?)?;
    Ok(dev)
}
