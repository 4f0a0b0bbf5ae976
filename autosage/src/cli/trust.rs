//! What a person has decided of a workspace: which of its files are trusted, and what approvals always hold there.
//! `autosage trust` shows what the files ask for, and asks.

mod asks;
mod store;

pub use asks::rights;
pub use store::Decision;

use super::args::TrustArgs;
use super::config::{self, Config, Standing};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::project::{self, Project};
use super::prose::clean;
use super::wiring;
use crate::{Parts, Person};
use anyhow::Context;
use std::io::BufRead;
use std::path::Path;
use store::Store;
use trace::Grant;

/// What was decided of `workspace`, an absolute path without links.
pub fn decision(home: &Home, workspace: &Path) -> Result<Option<Decision>, Failure> {
    Store::of(home).read(workspace)
}

/// Keeps `grant` as rights that always hold in `workspace` from now on, beside those that are kept already.
///
/// # Errors
/// A workspace that is not trusted keeps no rules: `autosage trust` comes first.
pub fn allow(home: &Home, workspace: &Path, grant: &Grant) -> Result<(), Failure> {
    Store::of(home).change(workspace, |decision| {
        let mut decision = decision.ok_or_else(|| {
            Failure::usage(format!("{} keeps no rules: it is not trusted, see `autosage trust`", workspace.display()))
        })?;
        store::add(&mut decision.rules, grant);
        Ok(Some(decision))
    })
}

/// `autosage trust`.
pub fn trust(args: &TrustArgs, person: &Config, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let workspace = wiring::workspace(args.dir.as_deref())?;
    let shown = clean(&workspace.display().to_string());
    if args.revoke {
        Store::of(home).forget(&workspace)?;
        print(&parts.out, &format!("{shown} is trusted no longer, and its rules are forgotten.\n"));
        return Ok(0);
    }
    let project = project::read_anyhow(&workspace, person.sandbox, home, parts)?;
    let decision = decision(home, &workspace)?;
    let standing = project.standing(decision.as_ref());
    let rules = decision.map(|decision| decision.rules).unwrap_or_default();
    let usual = wiring::usual(&wiring::harness(None)?);
    let wanted = asks::asked(&project, person, parts, usual);
    print(&parts.out, &format!("{shown}\n{wanted}{}{}\n", asks::kept(&rules), told(standing)));
    if args.show || standing == Standing::Trusted {
        return Ok(0);
    }
    refuse_unsound(&project, parts)?;
    if !args.yes && !agreed(parts)? {
        print(&parts.out, "Nothing was changed.\n");
        return Ok(1);
    }
    // What is kept are the digests of the bytes that were shown, whatever lies there by now.
    let files = project.digests().ok_or_else(|| Failure::usage("a file that cannot be read cannot be trusted"))?;
    Store::of(home).change(&workspace, |decision| {
        Ok(Some(Decision { files, rules: decision.map(|decision| decision.rules).unwrap_or_default() }))
    })?;
    print(&parts.out, "Trusted, until one of these files changes.\n");
    Ok(0)
}

/// How the person stands to a project's files, in a sentence.
pub fn told(standing: Standing) -> &'static str {
    match standing {
        Standing::Trusted => "You trust this project as it is.",
        Standing::Changed => "This project's files have changed since you trusted them, so it is not trusted now.",
        Standing::Untrusted => "You have not trusted this project.",
    }
}

/// Files that would be refused once they count are refused before.
fn refuse_unsound(project: &Project, parts: &Parts) -> Result<(), Failure> {
    for (name, text) in &project.files {
        match text {
            Err(reason) => return Err(Failure::usage(format!("{name} cannot be trusted: {}", clean(reason)))),
            Ok(text) if *name == project::SERVERS => {
                asks::servers(text).map_err(|error| Failure::usage(format!("{name} cannot be trusted: {error}")))?;
            }
            Ok(_) => {
                let (said, problems) = project.settings(parts);
                config::refuse(name, &problems)?;
                project::refuse_linked(&said, parts)?;
            }
        }
    }
    Ok(())
}

/// Asks at a terminal.
fn agreed(parts: &Parts) -> Result<bool, Failure> {
    if parts.person == Person::Absent {
        return Err(Failure::usage("nobody can be asked here: say --yes to trust what was shown"));
    }
    print(&parts.err, "Trust this? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer").map_err(Failure::Infrastructure)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
