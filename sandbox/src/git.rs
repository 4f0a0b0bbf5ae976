//! The walls inside a repository: what git would run or believe later, outside, cannot be written by a command.
//!
//! Covered are the repository at the workspace's root and its submodules. Its folder is a mount point of its own, so it
//! cannot be renamed; `hooks`, `config` and gitfiles are read-only. What a commit writes stays writable.

use crate::layout::{Access, Layout};
use crate::root::{Root, Step, StepError};
use rustix::fd::OwnedFd;
use rustix::fs::FileType;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Submodules that are looked at, and how deep their folders may lie.
const MOST_MODULES: usize = 256;
const DEEPEST: usize = 8;

/// Guards the repository of the workspace. Returns folders outside of it that may be written (a worktree's git folder).
pub(crate) fn guard(root: &Root, layout: &Layout) -> Result<Vec<PathBuf>, StepError> {
    if let Some((name, mail)) = &layout.identity {
        let text = format!("[user]\n\tname = {}\n\temail = {}\n", quoted(name), quoted(mail));
        let path = layout.home.join(".gitconfig");
        root.write_new(&path, &text).or_else(missing_is_fine).step(|| format!("writing {}", path.display()))?;
    }
    let mut written = Vec::new();
    let git = layout.workspace.join(".git");
    let step = || format!("guarding {}", git.display());
    match shape(root, &git).step(step)? {
        Shape::Folder(found) => {
            root.pin(&found, Access::Write).step(step)?;
            guard_folder(root, &git).step(step)?;
            guard_modules(root, &layout.workspace, &git).step(step)?;
        }
        Shape::File(found) => {
            root.pin(&found, Access::Read).step(step)?;
            written = bring_outside(root, layout, &git).step(step)?;
        }
        Shape::Other => {}
    }
    Ok(written)
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

/// Makes what git runs or believes in a git folder read-only.
fn guard_folder(root: &Root, git: &Path) -> io::Result<()> {
    // Where there is no such folder, one is made: what does not exist cannot be guarded.
    let hooks = match root.folder(&git.join("hooks")) {
        Ok(hooks) => hooks,
        // A read-only repository guards itself.
        Err(e) if e.raw_os_error() == Some(libc::EROFS) => return Ok(()),
        Err(e) => return Err(e),
    };
    root.pin(&hooks, Access::Read)?;
    for name in ["config", "config.worktree", "commondir", "gitdir"] {
        if let Shape::File(found) = shape(root, &git.join(name))? {
            root.pin(&found, Access::Read)?;
        }
    }
    Ok(())
}

/// Guards the git folders of submodules, and the gitfiles (or, of old ones, the git folders) in their working trees.
fn guard_modules(root: &Root, workspace: &Path, git: &Path) -> io::Result<()> {
    for folder in module_folders(root, &git.join("modules")) {
        guard_folder(root, &folder)?;
    }
    let declared = root.read(&workspace.join(".gitmodules")).unwrap_or_default();
    let paths = values(&declared, "submodule", "path");
    for path in paths.iter().map(Path::new).filter(|path| plain(path)).take(MOST_MODULES) {
        let inner = workspace.join(path).join(".git");
        match shape(root, &inner)? {
            Shape::Folder(found) => {
                root.pin(&found, Access::Write)?;
                guard_folder(root, &inner)?;
            }
            Shape::File(found) => root.pin(&found, Access::Read)?,
            Shape::Other => {}
        }
    }
    Ok(())
}

/// The git folders below `.git/modules`: a submodule's name may have several parts, and modules have modules.
fn module_folders(root: &Root, top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for name in root_names(root, &folder) {
            if found.len() >= MOST_MODULES || depth >= DEEPEST {
                return found;
            }
            let inner = folder.join(name);
            if matches!(shape(root, &inner.join("HEAD")), Ok(Shape::File(_))) {
                open.push((inner.join("modules"), depth + 1));
                found.push(inner);
            } else if matches!(shape(root, &inner), Ok(Shape::Folder(_))) {
                open.push((inner, depth + 1));
            }
        }
    }
    found
}

fn root_names(root: &Root, folder: &Path) -> Vec<String> {
    let Ok(Some(found)) = root.find(folder) else { return Vec::new() };
    let Ok(folder) = rustix::fs::Dir::read_from(&found).or_else(|_| {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::openat(&found, ".", flags, rustix::fs::Mode::empty()).and_then(rustix::fs::Dir::new)
    }) else {
        return Vec::new();
    };
    let names = folder.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name != "." && name != "..").collect()
}

/// Brings in the git folder outside the workspace that a gitfile names, if that folder names the workspace in turn: a
/// gitfile in a downloaded archive must not open some other repository of the person.
fn bring_outside(root: &Root, layout: &Layout, gitfile: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(target) = root.read(gitfile).and_then(|text| named(&text, "gitdir:", &layout.workspace)) else {
        return Ok(Vec::new());
    };
    let Ok(folder) = target.canonicalize() else { return Ok(Vec::new()) };
    let back = std::fs::read_to_string(folder.join("gitdir")).ok().and_then(|text| named(&text, "", &folder));
    let worktree = std::fs::read_to_string(folder.join("config")).unwrap_or_default();
    let worktree = values(&worktree, "core", "worktree").pop().map(|path| folder.join(path));
    let names_us =
        |path: Option<PathBuf>, us: &Path| path.and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == us);
    if !names_us(back, gitfile) && !names_us(worktree, &layout.workspace) {
        return Ok(Vec::new());
    }
    let common = std::fs::read_to_string(folder.join("commondir")).ok().and_then(|text| named(&text, "", &folder));
    let common = common.and_then(|path| path.canonicalize().ok());
    let mut brought = Vec::new();
    for path in common.into_iter().chain([folder]) {
        if brought.iter().any(|above| path.starts_with(above)) {
            guard_folder(root, &path)?;
        } else if path.join("HEAD").is_file() && !layout.workspace.starts_with(&path) {
            root.bring(&path, Access::Write)?;
            guard_folder(root, &path)?;
            brought.push(path);
        }
    }
    Ok(brought)
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

/// The name and address that the person's own git configuration gives, nothing else of it.
pub(crate) fn identity(home: &Path) -> Option<(String, String)> {
    [".gitconfig", ".config/git/config"].iter().find_map(|path| {
        let text = std::fs::read_to_string(home.join(path)).ok()?;
        Some((values(&text, "user", "name").pop()?, values(&text, "user", "email").pop()?))
    })
}

/// The values of a key in the sections of a name (whatever their subsection) of a git configuration.
fn values(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split([' ', '\t', ']', '"']).next().unwrap_or_default();
            inside = name.eq_ignore_ascii_case(section);
        } else if inside
            && let Some((name, value)) = line.split_once('=')
            && name.trim().eq_ignore_ascii_case(key)
        {
            found.push(unquoted(value.trim()));
        }
    }
    found
}

/// A value without its quotes, escapes and comment.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => plain.extend(letters.next()),
            '#' | ';' if !quoted => break,
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn values_are_found_in_their_section_only() {
        let text =
            "[user]\n\tname = \"A \\\"B\\\" C\" ; who\n[other]\nname = no\n[submodule \"x y\"]\n\tpath = vendor/x # here\n";
        expect![[r#"["A \"B\" C"]"#]].assert_eq(&format!("{:?}", values(text, "user", "name")));
        expect![[r#"["vendor/x"]"#]].assert_eq(&format!("{:?}", values(text, "submodule", "path")));
    }

    #[test]
    fn quoting_is_undone_by_unquoting() {
        for name in ["plain", "a \"b\" \\c; #d"] {
            assert_eq!(unquoted(&quoted(name)), name);
        }
    }

    #[test]
    fn a_gitfile_names_one_path() {
        let named = |text| named(text, "gitdir:", Path::new("/w"));
        assert_eq!(named("gitdir: ../m/.git/modules/x\n"), Some("/w/../m/.git/modules/x".into()));
        assert_eq!(named("gitdir: \n"), None);
        assert_eq!(named("something else"), None);
    }
}
