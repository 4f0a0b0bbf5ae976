//! The walls inside a repository: what git would run or believe later, outside, cannot be written by a command.
//!
//! Covered are the repository at the workspace's root, its linked worktrees and its submodules. Their folders are mount
//! points of their own, so they cannot be renamed; `hooks`, `config`, gitfiles and what in the workspace links in
//! `hooks` lead to or the configuration names as hooks or further configuration are read-only; a `commondir` or `config.worktree`, which would make git look for
//! these elsewhere, cannot be made. What a commit writes stays writable. Other repositories in the workspace, also ones that
//! a command makes or adds as a submodule, are not covered: a person's own git should not be run in them unseen. Neither is
//! a file that the configuration includes and that does not exist yet.

use crate::gitconfig::{quoted, values};
use crate::layout::{Access, Layout};
use crate::placeholder::{self, Placeholder};
use crate::root::{Root, Step, StepError};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Submodules or worktrees that are looked at, and how deep their folders may lie. Where there are more, all are read-only.
const MOST_MODULES: usize = 256;
const DEEPEST: usize = 8;

/// What guarding a repository led to.
#[derive(Default)]
pub(crate) struct Guarded {
    /// Folders outside the workspace that may be written: a worktree's git folders.
    pub written: Vec<PathBuf>,
    /// What has to be taken away again at the end.
    pub placeholders: Vec<Placeholder>,
}

/// Guards the repository of the workspace.
pub(crate) fn guard(root: &Root, layout: &Layout) -> Result<Guarded, StepError> {
    if let Some((name, mail)) = &layout.identity {
        let text = format!("[user]\n\tname = {}\n\temail = {}\n", quoted(name), quoted(mail));
        let path = layout.home.join(".gitconfig");
        root.write_new(&path, &text).or_else(missing_is_fine).step(|| format!("writing {}", path.display()))?;
    }
    let git = layout.workspace.join(".git");
    let mut guard = Guard { root, layout, held: BTreeSet::new(), guarded: Guarded::default() };
    guard.workspace(&git).step(|| format!("guarding {}", git.display()))?;
    Ok(guard.guarded)
}

/// A missing or unwritable place for a convenience is no reason to have no environment.
fn missing_is_fine(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EROFS | libc::ENOENT | libc::EACCES | libc::ELOOP) => Ok(()),
        _ => Err(error),
    }
}

/// What stands at a path.
enum Shape {
    Folder(OwnedFd),
    File(OwnedFd),
    /// Nothing, or something that cannot be a repository; a symbolic link is not followed.
    Other,
}

fn shape(root: &Root, path: &Path) -> io::Result<Shape> {
    let found = match root.find(path) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Shape::Other),
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return Ok(Shape::Other),
        Err(e) => return Err(e),
    };
    Ok(match FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) {
        FileType::Directory => Shape::Folder(found),
        FileType::RegularFile => Shape::File(found),
        _ => Shape::Other,
    })
}

/// The guarding of one workspace's repository.
struct Guard<'a> {
    root: &'a Root,
    layout: &'a Layout,
    /// Folders that are mount points of their own already.
    held: BTreeSet<PathBuf>,
    guarded: Guarded,
}

impl Guard<'_> {
    fn workspace(&mut self, git: &Path) -> io::Result<()> {
        match shape(self.root, git)? {
            Shape::Folder(_) => {
                self.hold(git)?;
                self.folder(git)?;
            }
            Shape::File(found) => {
                self.root.pin(&found, Access::Read)?;
                self.bring_outside(git)?;
            }
            Shape::Other => return Ok(()),
        }
        let declared = self.root.read(&self.layout.workspace.join(".gitmodules")).unwrap_or_default();
        let paths = values(&declared, "submodule", "path");
        for path in paths.iter().map(Path::new).filter(|path| plain(path)).take(MOST_MODULES) {
            self.submodule(&self.layout.workspace.join(path))?;
        }
        Ok(())
    }

    /// Whether a path lies below what is guarded: the workspace, or the git folder that was brought in.
    fn top(&self, path: &Path) -> Option<&Path> {
        let tops = self.guarded.written.iter().chain([&self.layout.workspace]);
        tops.map(PathBuf::as_path).find(|top| *top != path && path.starts_with(top))
    }

    /// Makes a folder and those that lead to it mount points of their own: one in a folder that is none could be renamed
    /// with it. Tells whether the whole way exists, without symbolic links.
    fn hold(&mut self, folder: &Path) -> io::Result<bool> {
        let Some(top) = self.top(folder).map(Path::to_owned) else { return Ok(self.is_top(folder)) };
        let mut way: Vec<&Path> = folder.ancestors().take_while(|above| *above != top).collect();
        while let Some(above) = way.pop() {
            if !self.held.contains(above) {
                let Shape::Folder(found) = shape(self.root, above)? else { return Ok(false) };
                self.root.pin(&found, Access::Write)?;
                self.held.insert(above.to_owned());
            }
        }
        Ok(true)
    }

    fn is_top(&self, path: &Path) -> bool {
        path == self.layout.workspace || self.guarded.written.iter().any(|top| top == path)
    }

    /// Makes a path read-only for good, if it exists.
    fn lock(&mut self, path: &Path) -> io::Result<()> {
        if path.parent().is_some_and(|parent| matches!(self.hold(parent), Ok(true)))
            && let Shape::Folder(found) | Shape::File(found) = shape(self.root, path)?
        {
            self.root.pin(&found, Access::Read)?;
        }
        Ok(())
    }

    /// Makes what git runs or believes in a git folder read-only.
    fn folder(&mut self, git: &Path) -> io::Result<()> {
        // Where there is no such folder, one is made: what does not exist cannot be guarded.
        let hooks = match self.root.folder(&git.join("hooks")) {
            Ok(hooks) => hooks,
            // A read-only repository guards itself.
            Err(e) if e.raw_os_error() == Some(libc::EROFS) => return Ok(()),
            Err(e) => return Err(e),
        };
        self.root.pin(&hooks, Access::Read)?;
        self.linked(&git.join("hooks"))?;
        for name in names(self.root, &git.join("hooks")).into_iter().take(MOST_MODULES) {
            self.linked(&git.join("hooks").join(name))?;
        }
        self.put(&git.join("commondir"), placeholder::HERE)?;
        self.files(git)?;
        let worktrees = git.join("worktrees");
        self.hold(&worktrees)?;
        let names = names(self.root, &worktrees);
        if names.len() > MOST_MODULES {
            self.lock(&worktrees)?;
        } else {
            for worktree in names.into_iter().map(|name| worktrees.join(name)) {
                if self.hold(&worktree)? {
                    self.files(&worktree)?;
                    self.modules(&worktree.join("modules"))?;
                }
            }
        }
        self.modules(&git.join("modules"))?;
        Ok(())
    }

    fn put(&mut self, path: &Path, text: &'static str) -> io::Result<()> {
        self.guarded.placeholders.extend(Placeholder::put(self.root, path, text)?);
        Ok(())
    }

    /// Makes the files of a git folder read-only that say where and how git works, and what they name.
    fn files(&mut self, git: &Path) -> io::Result<()> {
        self.put(&git.join("config.worktree"), placeholder::NOTHING)?;
        for name in ["config", "config.worktree", "commondir", "gitdir"] {
            if let Shape::File(found) = shape(self.root, &git.join(name))? {
                self.root.pin(&found, Access::Read)?;
            }
        }
        // Hooks are looked for from the working tree; that of a linked worktree's common folder is the workspace.
        let tree = self.worktree(git).or_else(|| git.parent().map(Path::to_owned));
        for tree in tree.into_iter().chain([self.layout.workspace.clone()]).collect::<BTreeSet<_>>() {
            self.named(&git.join("config"), &tree, DEEPEST)?;
            self.named(&git.join("config.worktree"), &tree, DEEPEST)?;
        }
        Ok(())
    }

    /// Makes what a link leads to read-only, if it lies in the workspace: hooks are often links to files under version control.
    fn linked(&mut self, link: &Path) -> io::Result<()> {
        let (Some(found), Some(folder)) = (self.root.find(link)?, link.parent()) else { return Ok(()) };
        let Ok(text) = rustix::fs::readlinkat(found, "", Vec::new()) else { return Ok(()) };
        let target = normal(&folder.join(OsStr::from_bytes(text.as_bytes())));
        if self.top(&target).is_some() && !folder.starts_with(&target) { self.lock(&target) } else { Ok(()) }
    }

    /// Makes what of the workspace a configuration names as hooks, or as configuration to include, read-only.
    fn named(&mut self, config: &Path, tree: &Path, depth: usize) -> io::Result<()> {
        let (Some(text), Some(base)) = (self.root.read(config), config.parent()) else { return Ok(()) };
        let includes = values(&text, "include", "path").into_iter().chain(values(&text, "includeIf", "path"));
        let includes: Vec<PathBuf> = includes.map(|path| self.resolved(base, &path)).collect();
        for hooks in values(&text, "core", "hooksPath") {
            let hooks = self.resolved(tree, &hooks);
            // What holds the repository has to stay writable.
            if self.top(&hooks).is_some() && !config.starts_with(&hooks) && !tree.starts_with(&hooks) {
                // As with the usual folder: one that is missing is made. Where it cannot be made it cannot be a command's.
                let _made = self.root.folder(&hooks);
                self.lock(&hooks)?;
            }
        }
        for include in includes {
            if self.top(&include).is_some() && depth > 0 {
                self.lock(&include)?;
                self.named(&include, tree, depth - 1)?;
            }
        }
        Ok(())
    }

    /// The path that a configuration names.
    fn resolved(&self, base: &Path, path: &str) -> PathBuf {
        normal(&path.strip_prefix("~/").map_or_else(|| base.join(path), |path| self.layout.home.join(path)))
    }

    /// The working tree that a git folder's configuration names.
    fn worktree(&self, git: &Path) -> Option<PathBuf> {
        let text = self.root.read(&git.join("config"))?;
        values(&text, "core", "worktree").pop().map(|path| normal(&git.join(path)))
    }

    /// Guards the git folders of submodules, and their working trees.
    fn modules(&mut self, modules: &Path) -> io::Result<()> {
        if !self.hold(modules)? {
            return Ok(());
        }
        let Some(found) = module_folders(self.root, modules) else { return self.lock(modules) };
        for (folder, kind) in found {
            if self.hold(&folder)? && kind == ModuleFolder::Repository {
                self.folder(&folder)?;
                if let Some(tree) = self.worktree(&folder) {
                    self.submodule(&tree)?;
                }
            }
        }
        Ok(())
    }

    /// Guards a submodule's working tree and its gitfile (or, in old ones, its git folder): another repository in its place
    /// would be looked into by a `git status` above it.
    fn submodule(&mut self, tree: &Path) -> io::Result<()> {
        if self.top(tree).is_none() || self.held.contains(&tree.join(".git")) || !self.hold(tree)? {
            return Ok(());
        }
        let git = tree.join(".git");
        match shape(self.root, &git)? {
            Shape::Folder(_) => {
                self.hold(&git)?;
                self.folder(&git)
            }
            Shape::File(found) => {
                self.held.insert(git);
                self.root.pin(&found, Access::Read)
            }
            Shape::Other => Ok(()),
        }
    }

    /// Brings in the git folder outside the workspace that a gitfile names, if that folder names the workspace in turn: a
    /// gitfile in a downloaded archive must not open some other repository of the person.
    fn bring_outside(&mut self, gitfile: &Path) -> io::Result<()> {
        let workspace = &self.layout.workspace;
        let Some(target) = self.root.read(gitfile).and_then(|text| named(&text, "gitdir:", workspace)) else {
            return Ok(());
        };
        let Ok(folder) = target.canonicalize() else { return Ok(()) };
        let back = read_outside(&folder.join("gitdir")).and_then(|text| named(&text, "", &folder));
        let worktree = read_outside(&folder.join("config")).unwrap_or_default();
        let worktree = values(&worktree, "core", "worktree").pop().map(|path| folder.join(path));
        let names_us =
            |path: Option<PathBuf>, us: &Path| path.and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == us);
        if !names_us(back, gitfile) && !names_us(worktree, workspace) {
            return Ok(());
        }
        let common = read_outside(&folder.join("commondir")).and_then(|text| named(&text, "", &folder));
        let repository = common.and_then(|path| path.canonicalize().ok()).unwrap_or_else(|| folder.clone());
        if !repository.join("HEAD").is_file() || workspace.starts_with(&repository) || !folder.starts_with(&repository) {
            return Ok(());
        }
        if self.layout.is_read_only() {
            return self.root.bring(&repository, Access::Read);
        }
        self.root.bring(&repository, Access::Write)?;
        self.guarded.written.push(repository.clone());
        self.folder(&repository)
    }
}

/// Reads a small file of the host. Whatever is no plain file is left alone: what a command made there may never end, or
/// never begin.
fn read_outside(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(64 * 1024).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What a folder below `.git/modules` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModuleFolder {
    /// The git folder of a submodule.
    Repository,
    /// A part of a submodule's name, with more below it.
    Between,
}

/// The folders from `.git/modules` on, parents first: a submodule's name may have several parts. Nothing if they are too
/// many or lie too deep to be looked at.
fn module_folders(root: &Root, top: &Path) -> Option<Vec<(PathBuf, ModuleFolder)>> {
    let mut found = Vec::new();
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for name in names(root, &folder) {
            if found.len() >= MOST_MODULES || depth >= DEEPEST {
                return None;
            }
            let inner = folder.join(name);
            if matches!(shape(root, &inner.join("HEAD")), Ok(Shape::File(_))) {
                found.push((inner, ModuleFolder::Repository));
            } else if matches!(shape(root, &inner), Ok(Shape::Folder(_))) {
                open.push((inner.clone(), depth + 1));
                found.push((inner, ModuleFolder::Between));
            }
        }
    }
    Some(found)
}

/// The names in a folder of the new root.
fn names(root: &Root, folder: &Path) -> Vec<String> {
    let Ok(Some(found)) = root.find(folder) else { return Vec::new() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&found, ".", flags, Mode::empty()).and_then(rustix::fs::Dir::new);
    let Ok(folder) = opened else { return Vec::new() };
    let names = folder.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name != "." && name != "..").collect()
}

/// The path that a file of one line names, relative to `base`.
fn named(text: &str, prefix: &str, base: &Path) -> Option<PathBuf> {
    let path = text.strip_prefix(prefix)?.trim();
    (!path.is_empty() && !path.contains('\n')).then(|| base.join(path))
}

/// A path without the `.` and `..` in it, by its words alone.
fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain
}

/// Whether a path stays below where it starts.
fn plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gitfile_names_one_path() {
        let named = |text| named(text, "gitdir:", Path::new("/w"));
        assert_eq!(named("gitdir: ../m/.git/modules/x\n"), Some("/w/../m/.git/modules/x".into()));
        assert_eq!(named("gitdir: \n"), None);
        assert_eq!(named("something else"), None);
    }
}
