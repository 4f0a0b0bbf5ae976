//! `autosage runs prune`: removes old runs, and what dead sessions left behind.

use super::args::PruneArgs;
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::prose::{clean, counted, cut_to, size};
use super::summary::{State, Summary, bytes_below};
use super::view::look;
use super::wiring::millis;
use crate::{Parts, Person};
use anyhow::Context;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use trace::RecordError;

/// A run that is to go.
struct Going {
    folder: PathBuf,
    summary: Summary,
}

/// What a dead session left in a run that stays, or an import that was broken off among the runs.
struct Leftover {
    /// The folder whose lock says whether somebody still works there.
    owner: PathBuf,
    path: PathBuf,
    bytes: u64,
}

/// A folder without a record is no run; it may be the beginning of one until it is so old.
const HOUR_MS: u64 = 3_600_000;

/// Removes runs, after a question.
pub fn prune(args: &PruneArgs, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let mut runs = Vec::new();
    for (id, folder) in home.runs()? {
        match Summary::glance(&folder, &parts.name) {
            Ok(summary) => runs.push(Going { folder, summary }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => print(&parts.err, &format!("autosage: {id} cannot be read and is left alone: {error}\n")),
        }
    }
    let leftovers = leftovers(home, &runs, parts).context("looking for what dead sessions left");
    let leftovers = leftovers.map_err(Failure::Infrastructure)?;
    let going = chosen(args, runs, parts);
    if going.is_empty() && leftovers.is_empty() {
        let hint = if args.is_choice() { "" } else { "; runs are chosen by --older-than, --keep and --size" };
        print(&parts.err, &format!("nothing is to be removed{hint}\n"));
        return Ok(0);
    }
    let freed = going.iter().map(|run| run.summary.bytes).chain(leftovers.iter().map(|left| left.bytes)).sum();
    let (_, width) = look(parts);
    for Going { summary: Summary { run, state, bytes, task, .. }, .. } in &going {
        let head = format!("{run}  {:<11}  {:>8}  ", state.word(), size(*bytes));
        let task = cut_to(&clean(task.lines().next().unwrap_or_default()), width.saturating_sub(head.len()).max(20));
        print(&parts.out, &format!("{head}{task}\n"));
    }
    for left in &leftovers {
        let path = left.path.strip_prefix(home.runs_folder()).unwrap_or(&left.path);
        print(&parts.out, &format!("{}  left behind  {:>8}\n", path.display(), size(left.bytes)));
    }
    let (runs, left) = (counted(going.len() as u64, "run"), counted(leftovers.len() as u64, "leftover"));
    let what = format!("{runs} and {left}, {}", size(freed));
    if !args.yes && !agreed(&what, parts) {
        print(&parts.err, &format!("nothing was removed; --yes removes {what}\n"));
        return Ok(0);
    }
    let mut freed = 0;
    for Going { folder, summary } in &going {
        freed += gone(folder, folder, summary.bytes, parts)?;
    }
    for Leftover { owner, path, bytes } in &leftovers {
        freed += gone(owner, path, *bytes, parts)?;
    }
    print(&parts.err, &format!("{} freed\n", size(freed)));
    Ok(0)
}

/// The runs that go: those that ended (with `--all` also those that were broken off or are damaged, never one that somebody
/// works on), the oldest first, as far as every condition that was given says so.
fn chosen(args: &PruneArgs, newest_first: Vec<Going>, parts: &Parts) -> Vec<Going> {
    if !args.is_choice() {
        return Vec::new();
    }
    let now = parts.clock.now();
    let mut total: u64 = newest_first.iter().map(|run| run.summary.bytes).sum();
    let mut going = Vec::new();
    for (index, run) in newest_first.into_iter().enumerate().rev() {
        let may_go = match run.summary.state {
            State::Ended => true,
            State::Interrupted | State::Damaged => args.all,
            State::Running | State::Waiting | State::Asking => false,
        };
        let is_old = |age| run.summary.last.is_none_or(|last| last.plus(millis(age)) < now);
        let many = args.keep.is_none_or(|keep| index >= keep);
        let large = args.size.is_none_or(|most| total > most);
        if may_go && args.older_than.is_none_or(is_old) && many && large {
            total -= run.summary.bytes;
            going.push(run);
        }
    }
    going
}

/// What processes that died left behind: a session's private home, half written files, imports and removals that were broken
/// off, folders in which no record was begun.
fn leftovers(home: &Home, runs: &[Going], parts: &Parts) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    let mut add = |owner: &Path, path: PathBuf| -> io::Result<()> {
        if trace::owner(owner)?.is_none() {
            let bytes = if path.is_dir() { bytes_below(&path)? } else { fs::symlink_metadata(&path)?.len() };
            found.push(Leftover { owner: owner.to_owned(), path, bytes });
        }
        Ok(())
    };
    for run in runs {
        for inner in ["", "blobs", "inbox"] {
            for path in names(&run.folder.join(inner))? {
                let is_draft = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                if is_draft || (inner.is_empty() && path.ends_with("session")) {
                    add(&run.folder, path)?;
                }
            }
        }
    }
    for path in names(&home.runs_folder())? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let begun = || -> io::Result<bool> {
            let since = fs::metadata(&path)?.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(millis(since).saturating_add(HOUR_MS) > u64::try_from(parts.clock.now().unix_millis()).unwrap_or_default())
        };
        let is_empty = name.parse::<trace::RunId>().is_ok() && path.is_dir() && !path.join("trace.jsonl").exists();
        if name.starts_with(".import-") || name.starts_with(".gone-") || (is_empty && !begun()?) {
            add(&path.clone(), path)?;
        }
    }
    Ok(found)
}

fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Removes `path` while the lock in `owner` is held, so that nobody begins to work there. Returns the bytes that were freed;
/// none, where somebody does already.
fn gone(owner: &Path, path: &Path, bytes: u64, parts: &Parts) -> Result<u64, Failure> {
    let held = match trace::hold(owner, parts.clock.as_ref()) {
        Ok(held) => held,
        Err(RecordError::Owned { owner, .. }) => {
            print(&parts.err, &format!("{} stays: process {} works on it\n", path.display(), owner.pid));
            return Ok(0);
        }
        Err(error) => return Err(error.into()),
    };
    let removed = || -> io::Result<()> {
        if !path.is_dir() {
            return fs::remove_file(path);
        }
        if path != owner {
            return fs::remove_dir_all(path);
        }
        // Under another name first, so that no half of a run is ever found under its own.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = path.with_file_name(format!(".gone-{}", name.trim_start_matches(".gone-")));
        fs::rename(path, &aside)?;
        fs::remove_dir_all(&aside)
    };
    let removed = removed().with_context(|| format!("removing {}", path.display())).map_err(Failure::Infrastructure);
    drop(held);
    removed.map(|()| bytes)
}

/// Whether a person at a terminal says yes.
fn agreed(what: &str, parts: &Parts) -> bool {
    if parts.person == Person::Absent {
        return false;
    }
    print(&parts.err, &format!("remove {what}? [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
