//! The rules of the house that no compiler checks. STYLE.md gives the reasons; each rule is a pure function of texts.

mod crates;
mod engine;
mod pages;
mod rust;
mod source;

use anyhow::{Context, bail};
use source::Source;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

/// What git tracks: path from the root, and text. A file that is not text is there with an empty one.
type Tree = BTreeMap<String, String>;

/// One place where a rule does not hold.
struct Violation {
    path: String,
    line: usize,
    rule: &'static str,
    /// What to do about it.
    advice: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}

/// `cargo xtask tidy`.
pub fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let violations = check(&tracked(root)?);
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => println!("tidy"),
        n => println!("{n} to mend"),
    }
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tracked(root: &Path) -> anyhow::Result<Tree> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.context("`git ls-files`: install git (apt-get install -y git)")?;
    if !listed.status.success() {
        bail!("`git ls-files` in {}: {}", root.display(), String::from_utf8_lossy(&listed.stderr).trim());
    }
    let mut tree = Tree::new();
    for path in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        match std::fs::read(root.join(path)) {
            Ok(bytes) => tree.insert(path.to_owned(), String::from_utf8(bytes).unwrap_or_default()),
            // Removed or being moved, and not committed yet.
            Err(_) => continue,
        };
    }
    Ok(tree)
}

fn check(tree: &Tree) -> Vec<Violation> {
    let sources = sources(tree);
    let mut violations = Vec::new();
    for source in &sources {
        violations.extend(rust::check(source));
        violations.extend(engine::check(source));
    }
    violations.extend(engine::all_there(tree));
    violations.extend(crates::check(tree));
    violations.extend(pages::check(tree));
    violations
}

/// The Rust files, each knowing what in it is of tests only.
fn sources(tree: &Tree) -> Vec<Source> {
    let rust = tree.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut sources: Vec<Source> = rust.map(|(path, text)| Source::new(path, text)).collect();
    let of_tests: Vec<String> =
        sources.iter().flat_map(|source| source.test_modules.iter().map(|name| module(&source.path, name))).collect();
    for source in &mut sources {
        if of_tests.iter().any(|module| source.path == format!("{module}.rs") || source.path.starts_with(&format!("{module}/"))) {
            source.is_all_tests();
        }
    }
    sources
}

/// Where the module `name` of the file at `path` is, without `.rs`.
fn module(path: &str, name: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or((".", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{name}"),
        _ => format!("{}/{name}", path.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rule says about one file, a line each.
    pub fn said(violations: impl IntoIterator<Item = Violation>) -> String {
        violations.into_iter().map(|violation| format!("{violation}\n")).collect()
    }

    #[test]
    fn the_repository_is_tidy() {
        let root = crate::root();
        if !root.join(".git").exists() {
            println!("skipped: no git repository");
            return;
        }
        let violations = said(check(&tracked(root).unwrap()));
        assert!(violations.is_empty(), "\n{violations}");
    }

    #[test]
    fn modules_of_tests_are_found_in_their_files() {
        assert_eq!(module("model/src/lib.rs", "faults"), "model/src/faults");
        assert_eq!(module("model/src/wire.rs", "faults"), "model/src/wire/faults");
        assert_eq!(module("model/src/wire/mod.rs", "faults"), "model/src/wire/faults");
        let tree: Tree = [("a/src/lib.rs", "#[cfg(test)]\nmod faults;"), ("a/src/faults.rs", "fn a() {}")]
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        assert!(sources(&tree)[0].in_tests(0), "{}", sources(&tree)[0].path);
    }
}
