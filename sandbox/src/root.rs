//! Composes the root folder of a native environment out of mounts: nothing is copied, and what is not listed does not exist.
//!
//! Runs in the new init, in its own user and mount namespaces. Paths inside the new root are opened below it and without
//! following symbolic links: the private home and the workspace hold what earlier commands left.

use crate::git::{self, Guarded};
use crate::layout::{Access, Layout, Links, Place};
use crate::mounts::{READ, Shape, WRITE, attach, attributes, exactly, filesystem, layered, make, shape_of, tree, tree_of};
use crate::{parts, sys};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, UnmountFlags};
use std::io;
use std::path::{Path, PathBuf};

/// A step that failed, and how.
#[derive(Debug)]
pub(crate) struct StepError {
    pub step: String,
    pub error: io::Error,
}

/// Names the step that an error belongs to.
pub(crate) trait Step<T> {
    fn step(self, name: impl FnOnce() -> String) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, name: impl FnOnce() -> String) -> Result<T, StepError> {
        self.map_err(|error| StepError { step: name(), error: error.into() })
    }
}

/// Composes the root of `layout` from what was begun, and makes it this process's root.
pub(crate) fn compose(mut root: Root, layout: &Layout) -> Result<Guarded, StepError> {
    root.private = vec![layout.home.clone(), layout.tmp.clone()];
    root.shown = layout.places.iter().map(|place| place.target.clone()).filter(|path| !root.private.contains(path)).collect();
    let mut trees = Vec::new();
    for place in &layout.places {
        trees.push(opened(place).step(|| format!("opening {}", place.source.display()))?);
    }
    for (path, text) in &layout.links {
        root.link(path, text).step(|| format!("linking {}", path.display()))?;
    }
    for (number, (place, tree)) in layout.places.iter().zip(&trees).enumerate() {
        root.show(place, tree, layout, number).step(|| format!("mounting {}", place.target.display()))?;
    }
    root.folder(Path::new("/dev")).and_then(|point| attach(&root.dev, &point)).step(|| "mounting /dev".to_owned())?;
    for path in ["/run", "/var/lib", "/var/log", "/var/cache"] {
        root.folder(Path::new(path)).step(|| format!("making {path}"))?;
    }
    for (path, text) in [("/var/tmp", "/tmp"), ("/var/run", "/run")] {
        match root.link(Path::new(path), Path::new(text)) {
            // A place lies there or below, the workspace perhaps.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked.step(|| format!("linking {path}"))?,
        }
    }
    root.mask(&layout.masks)?;
    let guarded = git::guard(&root, layout)?;
    crate::limits::cap_namespace(&layout.limits, root.proc.as_fd()).step(|| "limiting processes".to_owned())?;
    root.show_proc().step(|| "mounting /proc".to_owned())?;
    root.enter().step(|| "entering the new root".to_owned())?;
    Ok(guarded)
}

/// A detached copy of what a place shows.
fn opened(place: &Place) -> io::Result<OwnedFd> {
    match place.links {
        Links::Followed => tree(CWD, &place.source, attributes(place.access)),
        Links::Refused => tree_of(&exactly(&place.source)?, attributes(place.access)),
    }
}

/// Makes a root of almost nothing, to learn whether it can be done here.
pub(crate) fn rehearse() -> Result<(), StepError> {
    let root = Root::begin()?;
    let usr = tree(CWD, Path::new("/usr"), READ).step(|| "opening /usr".to_owned())?;
    root.folder(Path::new("/usr")).and_then(|point| attach(&usr, &point)).step(|| "mounting /usr".to_owned())?;
    root.show_proc().step(|| "mounting /proc".to_owned())?;
    root.enter().step(|| "pivot_root".to_owned())
}

/// Mounts a `/proc` that shows this process's pid namespace over the one that is there. Read-only: most of what it lets
/// root write belongs to the whole machine. Those of `masks` that lie in it are replaced by nothing: they are here, where
/// commands look, and not in the `/proc` below, without the whole of which the kernel would not allow this one.
pub(crate) fn mount_proc(masks: &[PathBuf]) -> io::Result<()> {
    let proc = filesystem("proc", &[], READ | libc::MOUNT_ATTR_NOEXEC)?;
    rustix::mount::move_mount(&proc, "", CWD, "/proc", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    for path in masks.iter().filter(|path| path.starts_with("/proc")) {
        let nothing = tree(CWD, &parts::empty_file(), 0)?;
        match rustix::mount::move_mount(&nothing, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// The new root before it is entered.
pub(crate) struct Root {
    top: OwnedFd,
    /// An empty folder and an empty file, read-only, of which copies are mounted over what must not be seen.
    nothing: (OwnedFd, OwnedFd),
    /// The mount that becomes `/dev`.
    dev: OwnedFd,
    /// The mount that becomes `/proc`, attached nowhere and writable yet.
    proc: OwnedFd,
    /// Folders in the new root that only this run uses.
    private: Vec<PathBuf>,
    /// What the host shows, also below those.
    shown: Vec<PathBuf>,
}

impl Root {
    /// Begins with what every root has, whatever is shown in it.
    pub(crate) fn begin() -> Result<Root, StepError> {
        sys::make_mounts_private().step(|| "making mounts private".to_owned())?;
        let top = parts::top().step(|| "attaching the new root".to_owned())?;
        let folder = parts::folder(&top).step(|| "making the new root".to_owned())?;
        let nothing = parts::nothing(&folder).step(|| "making what hides things".to_owned())?;
        let dev = parts::devices(&folder).step(|| "making /dev".to_owned())?;
        let proc = filesystem("proc", &[], WRITE | libc::MOUNT_ATTR_NOEXEC).step(|| "making /proc".to_owned())?;
        Ok(Root { top, nothing, dev, proc, private: Vec::new(), shown: Vec::new() })
    }

    /// Opens an existing path of the new root, or nothing; a symbolic link in it is an error (`ELOOP`).
    pub(crate) fn find(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&self.top, relative(path), OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads a small file of the new root, if there is one.
    pub(crate) fn read(&self, path: &Path) -> Option<String> {
        use std::io::Read;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = std::fs::File::from(openat2(&self.top, relative(path), flags, Mode::empty(), resolve).ok()?);
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        file.take(64 * 1024).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Opens a folder of the new root, making it where it is missing.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        self.point(path, Shape::Folder)
    }

    /// Opens a mount point, making it where it is missing. In the folders of the run, which hold what earlier commands
    /// left, whatever stands in its way is removed: a link must not lead a mount elsewhere, nor keep one from being made.
    fn point(&self, path: &Path, shape: Shape) -> io::Result<OwnedFd> {
        let below = |folders: &[PathBuf]| folders.iter().any(|folder| path != folder && path.starts_with(folder));
        let own = below(&self.private) && !below(&self.shown);
        match self.find(path) {
            Ok(Some(found)) if !own || shape_of(&found)? == shape => return Ok(found),
            Ok(_) => {}
            Err(e) if own && e.raw_os_error() == Some(libc::ELOOP) => {}
            Err(e) => return Err(e),
        }
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("/") => self.folder(parent)?,
            _ => self.top.try_clone()?,
        };
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut made = make(&parent, name, shape);
        if own && shape == Shape::Folder && made == Err(Errno::EXIST) {
            rustix::fs::unlinkat(&parent, name, AtFlags::empty())?;
            made = make(&parent, name, shape);
        }
        match made {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        self.find(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn link(&self, path: &Path, text: &Path) -> io::Result<()> {
        if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("/")) {
            self.folder(parent)?;
        }
        Ok(rustix::fs::symlinkat(text, &self.top, relative(path))?)
    }

    fn show(&self, place: &Place, tree: &OwnedFd, layout: &Layout, number: usize) -> io::Result<()> {
        let point = self.point(&place.target, shape_of(tree)?)?;
        match place.access {
            Access::Read | Access::Write => attach(tree, &point),
            Access::Cache => match self.cache(tree, layout, number) {
                Ok(layered) => attach(&layered, &point),
                Err(_) => attach(tree, &point),
            },
        }
    }

    /// A writable layer over `tree` that lives in the private home and is used by this environment only.
    fn cache(&self, tree: &OwnedFd, layout: &Layout, number: usize) -> io::Result<OwnedFd> {
        let mut serial = [0u8; 8];
        rustix::rand::getrandom(&mut serial, rustix::rand::GetRandomFlags::empty())?;
        let base = layout.home.join(format!(".cache/autosage/{number}-{:016x}", u64::from_ne_bytes(serial)));
        let (upper, work) = (self.folder(&base.join("upper"))?, self.folder(&base.join("work"))?);
        layered(tree, &upper, &work)
    }

    /// Shows the processes of this namespace. Read-only: see [`mount_proc`].
    fn show_proc(&self) -> io::Result<()> {
        sys::restrict_mount(self.proc.as_fd(), READ)?;
        attach(&self.proc, &self.folder(Path::new("/proc"))?)
    }

    /// Puts nothing in the place of every path that exists.
    fn mask(&self, paths: &[PathBuf]) -> Result<(), StepError> {
        for path in paths {
            self.mask_one(path).step(|| format!("hiding {}", path.display()))?;
        }
        Ok(())
    }

    fn mask_one(&self, path: &Path) -> io::Result<()> {
        let (folder, file) = &self.nothing;
        let point = match self.find(path) {
            Ok(Some(point)) => point,
            Ok(None) => return Ok(()),
            // A link: what it names is shown only where that is a place of its own.
            Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return Ok(()),
            Err(e) => return Err(e),
        };
        match FileType::from_raw_mode(rustix::fs::fstat(&point)?.st_mode) {
            FileType::Directory => attach(&tree_of(folder, 0)?, &point),
            FileType::Symlink => Ok(()),
            _ => attach(&tree_of(file, 0)?, &point),
        }
    }

    /// Makes a path a mount point of its own, so that it can be neither renamed nor removed, with what access is given.
    pub(crate) fn pin(&self, found: &OwnedFd, access: Access) -> io::Result<()> {
        attach(&tree_of(found, attributes(access))?, found)
    }

    /// Shows a folder of the host at its own path.
    pub(crate) fn bring(&self, path: &Path, access: Access) -> io::Result<()> {
        attach(&tree(CWD, path, attributes(access))?, &self.folder(path)?)
    }

    /// Opens a plain file for reading and writing, making it where it is missing.
    pub(crate) fn open_or_make(&self, path: &Path) -> io::Result<std::fs::File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat2(&self.top, relative(path), flags, Mode::from_raw_mode(0o644), resolve)?.into())
    }

    /// Writes a small new file; leaves one that is there alone.
    pub(crate) fn write_new(&self, path: &Path, text: &str) -> io::Result<()> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match openat2(&self.top, relative(path), flags, Mode::from_raw_mode(0o644), resolve) {
            Ok(fd) => io::Write::write_all(&mut std::fs::File::from(fd), text.as_bytes()),
            Err(Errno::EXIST) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn enter(self) -> io::Result<()> {
        rustix::process::fchdir(&self.top)?;
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        sys::seal_root()?;
        rustix::process::chdir("/")?;
        Ok(())
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
