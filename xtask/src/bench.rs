//! `cargo xtask bench`: what a run costs beside the model, measured with the release build against a scripted one.
//!
//! A measurement, never a test: figures depend on the machine and on what else it does. What is to be compared is measured
//! in turn, so that a noisy minute meets all alike; each figure is the median of its runs.

mod folds;
mod long;
mod machine;
mod mock;
mod once;
mod record;
mod table;
mod walls;

use anyhow::{Context, bail};
use folds::Folds;
use long::Long;
use mock::Usage;
use once::{Figures, Setting};
use record::Lengths;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use walls::Walls;

/// A window in which nothing is folded, and one in which a long run is folded again and again, in tokens.
const LARGE: u64 = 1_000_000;
const SMALL: u64 = 32_768;

/// At most so many runs with folds on each wire: they are long.
const FOLDING_RUNS: usize = 3;

/// How much to measure.
pub struct Wish {
    runs: usize,
    turns: usize,
    long: usize,
    folding: usize,
    json: Option<PathBuf>,
}

impl Wish {
    pub fn parse(words: &[&str]) -> anyhow::Result<Wish> {
        let mut wish = Wish { runs: 5, turns: 50, long: 1000, folding: 2000, json: None };
        for pair in words.chunks(2) {
            match *pair {
                ["--runs", number] => wish.runs = number.parse()?,
                ["--turns", number] => wish.turns = number.parse()?,
                ["--long", number] => wish.long = number.parse()?,
                ["--folding", number] => wish.folding = number.parse()?,
                ["--json", file] => wish.json = Some(file.into()),
                _ => bail!("bench [--runs N] [--turns N] [--long N] [--folding N] [--json FILE], not `{}`", pair.join(" ")),
            }
        }
        if wish.runs == 0 || wish.turns < 2 || wish.long < 50 || wish.folding < 500 {
            bail!("at least one run of two turns, a long one of 50, and one of 500 that folds");
        }
        Ok(wish)
    }
}

/// A wire of the scripted server, and how the program is told to speak it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    OpenaiChat,
    Anthropic,
    Responses,
    Gemini,
}

impl Wire {
    const ALL: [Wire; 4] = [Wire::OpenaiChat, Wire::Anthropic, Wire::Responses, Wire::Gemini];
}

/// What a record is safe from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    Process,
    Power,
}

/// One way to run.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Way {
    pub wire: Wire,
    pub durability: Durability,
}

impl Way {
    /// The ways that are compared; the first is the one that goals are set for.
    const ALL: [Way; 5] = [
        Way { wire: Wire::OpenaiChat, durability: Durability::Process },
        Way { wire: Wire::Anthropic, durability: Durability::Process },
        Way { wire: Wire::Responses, durability: Durability::Process },
        Way { wire: Wire::Gemini, durability: Durability::Process },
        Way { wire: Wire::OpenaiChat, durability: Durability::Power },
    ];
}

/// All figures of one way.
#[derive(Serialize)]
struct Measured {
    way: Way,
    median: Figures,
    runs: Vec<Figures>,
}

/// What `--json` writes.
#[derive(Serialize)]
struct Report {
    turns: usize,
    ways: Vec<Measured>,
    /// The first run of a new build on a new machine; not among the others.
    fresh: Figures,
    /// One long run for each wire.
    long: Vec<Long>,
    /// Runs on each wire in a small window.
    folds: Vec<Folds>,
    /// One `fdatasync` after a small append, in milliseconds.
    fdatasync_ms: f64,
    walls: Walls,
    lengths: Lengths,
}

pub fn run(root: &Path, wish: &Wish) -> anyhow::Result<ExitCode> {
    let target = build()?;
    let setting = |way, turns| Setting {
        program: target.join("release/autosage"),
        mock: root.join("bench/mock_llm.py"),
        folder: target.join("bench"),
        turns,
        context: LARGE,
        usage: Usage::Fixed,
        way,
    };
    once::clear(&setting(Way::ALL[0], wish.turns))?;
    let fresh = once::measure(&setting(Way::ALL[0], wish.turns))?;
    let mut ways: Vec<Vec<Figures>> = Way::ALL.iter().map(|_| Vec::new()).collect();
    for number in 1..=wish.runs {
        eprintln!("run {number} of {}, each way", wish.runs);
        for (way, runs) in Way::ALL.iter().zip(&mut ways) {
            runs.push(once::measure(&setting(*way, wish.turns))?);
        }
    }
    let measured = |(way, runs): (&Way, Vec<Figures>)| Measured { way: *way, median: Figures::median(&runs), runs };
    eprintln!("{} turns, each wire", wish.long);
    let long = |wire: &Wire| long::measure(&setting(Way { wire: *wire, durability: Durability::Process }, wish.long));
    eprintln!("{} turns in a window of {SMALL} tokens, each wire, {} times", wish.folding, wish.runs.min(FOLDING_RUNS));
    let folding = |wire: &Wire| {
        let way = Way { wire: *wire, durability: Durability::Process };
        folds::measure(
            &Setting { context: SMALL, usage: Usage::Cached, ..setting(way, wish.folding) },
            wish.runs.min(FOLDING_RUNS),
        )
    };
    let report = Report {
        turns: wish.turns,
        ways: Way::ALL.iter().zip(ways).map(measured).collect(),
        fresh,
        long: Wire::ALL.iter().map(long).collect::<anyhow::Result<_>>()?,
        folds: Wire::ALL.iter().map(folding).collect::<anyhow::Result<_>>()?,
        fdatasync_ms: machine::fdatasync_ms(&target)?,
        walls: walls::measure(&target)?,
        lengths: record::measure(&target)?,
    };
    print!("{}", table::table(&report));
    if let Some(file) = &wish.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(file, text).with_context(|| format!("{}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds what is measured; answers with the folder of what was built.
fn build() -> anyhow::Result<PathBuf> {
    // One call, so that all are built from the same artefacts.
    let wanted = ["--package", "autosage", "--package", "autosage-sandbox", "--package", "autosage-engine"];
    let built = ["--bin", "autosage", "--example", "cost", "--example", "long_record"];
    let built = crate::cargo().args(["build", "--release"]).args(wanted).args(built).status().context("cargo")?;
    if !built.success() {
        bail!("the release build failed");
    }
    let metadata = crate::cargo().args(["metadata", "--no-deps", "--format-version=1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names the target directory")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_understood() {
        let wish = Wish::parse(&["--turns", "5", "--runs", "2", "--long", "100"]).unwrap();
        assert_eq!((wish.turns, wish.runs, wish.long), (5, 2, 100));
        assert!(Wish::parse(&["--turns"]).is_err());
        assert!(Wish::parse(&["--runs", "0"]).is_err());
    }
}
