//! Mounts as descriptors, made, copied and restricted before they are attached anywhere; and what they are attached to.

use crate::layout::Access;
use crate::sys;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Attributes of what can be read only, and of what can be written.
pub(crate) const READ: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
pub(crate) const WRITE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

pub(crate) fn attributes(access: Access) -> u64 {
    match access {
        Access::Write => WRITE,
        Access::Read | Access::Cache => READ,
    }
}

/// A detached copy of the mounts at and below `path`.
pub(crate) fn tree(dir: BorrowedFd<'_>, path: &Path, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = rustix::mount::open_tree(dir, path, flags)?;
    if attributes != 0 {
        sys::restrict_mount(tree.as_fd(), attributes)?;
    }
    Ok(tree)
}

/// Opens what lies at `path` of the host, if no link is on the way there.
pub(crate) fn exactly(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// A detached copy of what was found at a path.
pub(crate) fn tree_of(found: &OwnedFd, attributes: u64) -> io::Result<OwnedFd> {
    tree(found.as_fd(), Path::new(""), attributes)
}

/// A new file system, mounted nowhere yet.
pub(crate) fn filesystem(name: &str, options: &[(&str, &str)], attributes: u64) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(&context, *key, *value)?;
    }
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, attributes)
}

/// A writable layer, `upper`, over `lower`, with the empty folder `work` for the kernel's own use.
pub(crate) fn layered(lower: &OwnedFd, upper: &OwnedFd, work: &OwnedFd) -> io::Result<OwnedFd> {
    let path = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, fd) in [("lowerdir", lower), ("upperdir", upper), ("workdir", work)] {
        rustix::mount::fsconfig_set_string(&context, key, path(fd))?;
    }
    rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
    rustix::mount::fsconfig_set_flag(&context, "volatile")?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, WRITE)
}

fn mounted(context: &OwnedFd, attributes: u64) -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::from_bits_retain(attributes as u32);
    Ok(rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Attaches a detached tree at a mount point; moves one that is attached.
pub(crate) fn attach(tree: &OwnedFd, point: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree, "", point, "", flags)?)
}

/// What a mount point has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Folder,
    File,
}

pub(crate) fn shape_of(found: &OwnedFd) -> io::Result<Shape> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode);
    Ok(if kind == FileType::Directory { Shape::Folder } else { Shape::File })
}

pub(crate) fn make(parent: &OwnedFd, name: &OsStr, shape: Shape) -> rustix::io::Result<()> {
    match shape {
        Shape::Folder => rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)),
        Shape::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644)).map(drop)
        }
    }
}
