//! Counts what a program of tests says, skipped ones apart.
//!
//! The standard test runner knows no skipping. By the convention of this project (STYLE.md) a test that misses something
//! prints `skipped: no X` and returns; with `--show-output` that line stands in the block of its test.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Tally {
    /// As the runner counts: with those that were skipped.
    ok: usize,
    pub failed: usize,
    skipped: usize,
    /// Component and number of tests that missed it.
    pub missing: BTreeMap<String, usize>,
    /// Whether the runner said how it went.
    has_result: bool,
    block: Block,
}

/// Where in the output we are.
#[derive(Default)]
enum Block {
    /// Not in the output of one test.
    #[default]
    Outside,
    /// Output of a test that passed, and what it said to miss so far.
    Passed(BTreeSet<String>),
    /// From the runner's word `failures:` to the end.
    Failures,
}

impl Tally {
    /// All tests that were found, skipped ones included.
    pub fn all(&self) -> usize {
        self.ok + self.failed
    }

    /// Whether the part about failed tests is still to come.
    pub fn is_before_failures(&self) -> bool {
        !matches!(self.block, Block::Failures)
    }

    /// The program has ended. One without the standard runner is a test by itself; one that fails has a failed test, also
    /// when it could not say so.
    pub fn end(&mut self, success: bool) {
        if !success {
            self.failed = self.failed.max(1);
        } else if !self.has_result {
            self.ok += 1;
        }
    }

    pub fn add(&mut self, other: Tally) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.skipped += other.skipped;
        for (component, tests) in other.missing {
            *self.missing.entry(component).or_default() += tests;
        }
    }

    /// The next line of the output, without its end.
    pub fn read(&mut self, line: &str) {
        if line == "failures:" {
            self.block = Block::Failures;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.ok += count(counts, "passed");
            self.failed += count(counts, "failed");
            self.has_result = true;
            self.block = Block::Outside;
        } else if line.starts_with("---- ") && line.ends_with(" ----") && self.is_before_failures() {
            self.block = Block::Passed(BTreeSet::new());
        } else if let (Some(component), Block::Passed(said)) = (line.strip_prefix("skipped: no "), &mut self.block) {
            if said.is_empty() {
                self.skipped += 1;
            }
            if said.insert(component.to_owned()) {
                *self.missing.entry(component.to_owned()).or_default() += 1;
            }
        }
    }
}

/// The number before `word` in `ok. 3 passed; 0 failed; …`.
fn count(counts: &str, word: &str) -> usize {
    let mut words = counts.split([' ', ';']).collect::<Vec<_>>().into_iter().rev().skip_while(|&next| next != word);
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.pad(&format!("{} passed, {} failed, {} skipped", self.ok - self.skipped, self.failed, self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(output: &str) -> Tally {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.read(line));
        tally
    }

    const MIXED: &str = "
running 4 tests
test a ... ok
test b ... ok
test c ... FAILED
test d ... ok

successes:

---- a stdout ----
skipped: no git
skipped: no git
skipped: no python3

---- d stdout ----
hello

successes:
    a
    b
    d

failures:

---- c stdout ----
skipped: no git
thread 'c' panicked

failures:
    c

test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s
";

    #[test]
    fn a_test_is_skipped_once_whatever_it_misses() {
        let tally = tally(MIXED);
        assert_eq!(tally.to_string(), "2 passed, 1 failed, 1 skipped");
        assert_eq!(tally.missing, BTreeMap::from([("git".to_owned(), 1), ("python3".to_owned(), 1)]));
        assert_eq!(tally.all(), 4);
    }

    #[test]
    fn a_program_without_the_runner_is_one_test() {
        let ended = |output: &str, success| {
            let mut tally = tally(output);
            tally.end(success);
            tally.to_string()
        };
        assert_eq!(ended("hello", true), "1 passed, 0 failed, 0 skipped");
        assert_eq!(ended("hello", false), "0 passed, 1 failed, 0 skipped");
        assert_eq!(ended("test result: ok. 0 passed; 0 failed; 0 ignored", true), "0 passed, 0 failed, 0 skipped");
        assert_eq!(ended(MIXED, false), "2 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn tallies_add_up() {
        let mut sum = tally(MIXED);
        sum.add(tally("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s"));
        sum.add(tally(MIXED));
        assert_eq!(sum.to_string(), "16 passed, 2 failed, 2 skipped");
        assert_eq!(sum.missing["git"], 2);
    }
}
