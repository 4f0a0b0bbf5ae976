//! The walls inside a repository: what git would run or believe later, outside, cannot be written by a command.
//!
//! Covered are the repository at the workspace's root and its submodules. Its folder is a mount point of its own, so it
//! cannot be renamed; `hooks`, `config` and gitfiles are read-only; a `commondir`, which would make git look for these
//! elsewhere, cannot be made. What a commit writes stays writable. Repositories that lie deeper, also ones that a command
//! makes, are not covered: a person's own git should not be run in them unseen.

use crate::gitconfig::{quoted, values};
use crate::layout::{Access, Layout};
use crate::placeholder::Placeholder;
use crate::root::{Root, Step, StepError};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Submodules that are looked at, and how deep their folders may lie.
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
    let mut guarded = Guarded::default();
    let git = layout.workspace.join(".git");
    let step = || format!("guarding {}", git.display());
    match shape(root, &git).step(step)? {
        Shape::Folder(found) => {
            root.pin(&found, Access::Write).step(step)?;
            guarded.folder(root, &git).step(step)?;
            guarded.modules(root, &layout.workspace, &git).step(step)?;
        }
        Shape::File(found) => {
            root.pin(&found, Access::Read).step(step)?;
            guarded.bring_outside(root, layout, &git).step(step)?;
        }
        Shape::Other => {}
    }
    Ok(guarded)
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

impl Guarded {
    /// Makes what git runs or believes in a git folder read-only.
    fn folder(&mut self, root: &Root, git: &Path) -> io::Result<()> {
        // Where there is no such folder, one is made: what does not exist cannot be guarded.
        let hooks = match root.folder(&git.join("hooks")) {
            Ok(hooks) => hooks,
            // A read-only repository guards itself.
            Err(e) if e.raw_os_error() == Some(libc::EROFS) => return Ok(()),
            Err(e) => return Err(e),
        };
        root.pin(&hooks, Access::Read)?;
        self.placeholders.extend(Placeholder::put(root, &git.join("commondir"))?);
        pin_files(root, git)?;
        let worktrees = git.join("worktrees");
        for name in names(root, &worktrees) {
            pin_files(root, &worktrees.join(name))?;
        }
        Ok(())
    }

    /// Guards the git folders of submodules, and the gitfiles (or, of old ones, the git folders) in their working trees.
    fn modules(&mut self, root: &Root, workspace: &Path, git: &Path) -> io::Result<()> {
        for (folder, kind) in module_folders(root, &git.join("modules")) {
            if let Shape::Folder(found) = shape(root, &folder)? {
                root.pin(&found, Access::Write)?;
            }
            if kind == ModuleFolder::Repository {
                self.folder(root, &folder)?;
            }
        }
        let declared = root.read(&workspace.join(".gitmodules")).unwrap_or_default();
        let paths = values(&declared, "submodule", "path");
        for path in paths.iter().map(Path::new).filter(|path| plain(path)).take(MOST_MODULES) {
            let inner = workspace.join(path).join(".git");
            match shape(root, &inner)? {
                Shape::Folder(found) => {
                    root.pin(&found, Access::Write)?;
                    self.folder(root, &inner)?;
                }
                Shape::File(found) => root.pin(&found, Access::Read)?,
                Shape::Other => {}
            }
        }
        Ok(())
    }

    /// Brings in the git folder outside the workspace that a gitfile names, if that folder names the workspace in turn: a
    /// gitfile in a downloaded archive must not open some other repository of the person.
    fn bring_outside(&mut self, root: &Root, layout: &Layout, gitfile: &Path) -> io::Result<()> {
        let Some(target) = root.read(gitfile).and_then(|text| named(&text, "gitdir:", &layout.workspace)) else {
            return Ok(());
        };
        let Ok(folder) = target.canonicalize() else { return Ok(()) };
        let back = std::fs::read_to_string(folder.join("gitdir")).ok().and_then(|text| named(&text, "", &folder));
        let worktree = std::fs::read_to_string(folder.join("config")).unwrap_or_default();
        let worktree = values(&worktree, "core", "worktree").pop().map(|path| folder.join(path));
        let names_us =
            |path: Option<PathBuf>, us: &Path| path.and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == us);
        if !names_us(back, gitfile) && !names_us(worktree, &layout.workspace) {
            return Ok(());
        }
        let common = std::fs::read_to_string(folder.join("commondir")).ok().and_then(|text| named(&text, "", &folder));
        let repository = common.and_then(|path| path.canonicalize().ok()).unwrap_or_else(|| folder.clone());
        if !repository.join("HEAD").is_file() || layout.workspace.starts_with(&repository) || !folder.starts_with(&repository) {
            return Ok(());
        }
        root.bring(&repository, Access::Write)?;
        self.folder(root, &repository)?;
        self.written.push(repository);
        Ok(())
    }
}

/// Makes the files of a git folder read-only that say where and how git works.
fn pin_files(root: &Root, git: &Path) -> io::Result<()> {
    for name in ["config", "config.worktree", "commondir", "gitdir"] {
        if let Shape::File(found) = shape(root, &git.join(name))? {
            root.pin(&found, Access::Read)?;
        }
    }
    Ok(())
}

/// What a folder below `.git/modules` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModuleFolder {
    /// The git folder of a submodule.
    Repository,
    /// A part of a submodule's name, with more below it.
    Between,
}

/// The folders from `.git/modules` on, parents first: a submodule's name may have several parts, and modules have modules.
fn module_folders(root: &Root, top: &Path) -> Vec<(PathBuf, ModuleFolder)> {
    let mut found = vec![(top.to_owned(), ModuleFolder::Between)];
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for name in names(root, &folder) {
            if found.len() >= MOST_MODULES || depth >= DEEPEST {
                return found;
            }
            let inner = folder.join(name);
            if matches!(shape(root, &inner.join("HEAD")), Ok(Shape::File(_))) {
                let modules = inner.join("modules");
                found.extend([(inner, ModuleFolder::Repository), (modules.clone(), ModuleFolder::Between)]);
                open.push((modules, depth + 1));
            } else if matches!(shape(root, &inner), Ok(Shape::Folder(_))) {
                open.push((inner.clone(), depth + 1));
                found.push((inner, ModuleFolder::Between));
            }
        }
    }
    found
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
