//! What a person has decided of a workspace: which of its files are trusted, and what approvals always hold there.

mod store;

use super::failure::Failure;
use super::home::Home;
use std::path::Path;
use store::Store;
use trace::Grant;

/// The rights that always hold in `workspace`; none where nothing of it was ever trusted.
pub fn rules(home: &Home, workspace: &Path) -> Result<Grant, Failure> {
    Ok(Store::of(home).read(workspace)?.map(|decision| decision.rules).unwrap_or_default())
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
