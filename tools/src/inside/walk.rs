//! The files below a folder, in order of name, without following links: what `search` and `find` go through.

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, Walk, WalkBuilder};
use std::path::Path;

/// Which files count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Which {
    /// Those of the project: what its ignore files name is left out, and so is `.git`.
    Projects,
    /// Whatever is there, but for what `.git` holds.
    All,
}

/// All entries below `root`, itself first.
pub fn walk(root: &Path, which: Which) -> Walk {
    let ignored = which == Which::Projects;
    let mut walk = WalkBuilder::new(root);
    // `.git` is no text of the project; other hidden files are.
    walk.standard_filters(ignored).hidden(false).require_git(false).git_global(false);
    walk.filter_entry(|entry| entry.file_name() != ".git").sort_by_file_name(Ord::cmp).build()
}

/// Whether it is a file with content. A link that was asked for itself is followed; those that are met on the way are not.
pub fn is_file(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Some(kind) if kind.is_symlink() && entry.depth() == 0 => entry.path().is_file(),
        Some(kind) => kind.is_file(),
        None => false,
    }
}

/// What fits `glob`, as an ignore file would say it: a name anywhere, a path from `root` where it has a slash, `!` for all
/// but these. Everything, without one.
pub fn globs(root: &Path, glob: Option<&str>) -> Result<Override, ignore::Error> {
    let mut globs = OverrideBuilder::new(root);
    if let Some(glob) = glob {
        globs.add(glob)?;
    }
    globs.build()
}
