//! `cargo xtask bench`: what a run costs beside the model, measured with the release build against a scripted one.
//!
//! A measurement, never a test: figures depend on the machine and on what else it does. Runs begin one after another; each
//! figure is the median of them all.

mod mock;
mod once;
mod walls;

use anyhow::{Context, bail};
use once::{Figures, Setting};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use walls::Walls;

/// How much to measure.
pub struct Wish {
    runs: usize,
    turns: usize,
    json: Option<PathBuf>,
}

impl Wish {
    pub fn parse(words: &[&str]) -> anyhow::Result<Wish> {
        let mut wish = Wish { runs: 5, turns: 50, json: None };
        for pair in words.chunks(2) {
            match *pair {
                ["--runs", number] => wish.runs = number.parse()?,
                ["--turns", number] => wish.turns = number.parse()?,
                ["--json", file] => wish.json = Some(file.into()),
                _ => bail!("bench [--runs N] [--turns N] [--json FILE], not `{}`", pair.join(" ")),
            }
        }
        if wish.runs == 0 || wish.turns < 2 {
            bail!("at least one run of two turns");
        }
        Ok(wish)
    }
}

/// What `--json` writes.
#[derive(Serialize)]
struct Report {
    turns: usize,
    median: Figures,
    runs: Vec<Figures>,
    /// The first run of a new build on a new machine; not among the others.
    fresh: Figures,
    walls: Walls,
}

pub fn run(root: &Path, wish: &Wish) -> anyhow::Result<ExitCode> {
    let target = build()?;
    let setting = Setting {
        program: target.join("release/autosage"),
        mock: root.join("bench/mock_llm.py"),
        folder: target.join("bench"),
        turns: wish.turns,
    };
    once::clear(&setting)?;
    let fresh = once::measure(&setting)?;
    let runs = (0..wish.runs).map(|_| once::measure(&setting)).collect::<anyhow::Result<Vec<_>>>()?;
    let report = Report { turns: wish.turns, median: Figures::median(&runs), runs, fresh, walls: walls::measure(&target)? };
    print!("{}", table(&report));
    if let Some(file) = &wish.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(file, text).with_context(|| format!("{}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds what is measured; answers with the folder of what was built.
fn build() -> anyhow::Result<PathBuf> {
    // One call, so that both are built from the same artefacts.
    let wanted = ["--package", "autosage", "--bin", "autosage", "--package", "autosage-sandbox", "--example", "cost"];
    let built = crate::cargo().args(["build", "--release"]).args(wanted).status().context("cargo")?;
    if !built.success() {
        bail!("the release build failed");
    }
    let metadata = crate::cargo().args(["metadata", "--no-deps", "--format-version=1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names the target directory")?.into())
}

/// A line a figure: what was measured, and what it is meant to stay under on a quiet machine with two cores.
fn table(report: &Report) -> String {
    let Report { median, walls, fresh, .. } = report;
    let rows = [
        ("first request after the start", format!("{:.1} ms", median.first_request_ms), "50 ms"),
        ("the same, nothing kept yet", format!("{:.1} ms", fresh.first_request_ms), ""),
        ("own time a turn", format!("{:.2} ms", median.turn_ms), "7 ms"),
        ("processor time in all", format!("{:.2} s", median.cpu_s), "0.5 s"),
        ("largest process", format!("{:.1} MB", median.peak_mb), "40 MB"),
        ("first request's body", format!("{} bytes", median.first_body_bytes), "5000 bytes"),
        ("growth a turn", format!("{} bytes", median.growth_bytes), "250 bytes"),
        ("environment ready", format!("{:.2} ms", walls.environment_ms), "3 ms"),
        ("a bare fork and exec", format!("{:.2} ms", walls.bare_ms), ""),
        ("a command above fork and exec", format!("{:.2} ms", walls.command_ms - walls.bare_ms), "1.5 ms"),
    ];
    let mut text = format!("median of {} runs of {} turns\n\n", report.runs.len(), report.turns);
    text += &format!("| {:<32} | {:>12} | {:>10} |\n|{:-<34}|{:->13}:|{:->11}:|\n", "figure", "measured", "goal", "", "", "");
    for (figure, measured, goal) in rows {
        text += &format!("| {figure:<32} | {measured:>12} | {goal:>10} |\n");
    }
    let broken: Vec<&str> = report.runs.iter().flat_map(|run| &run.broken).map(String::as_str).collect();
    text += "\n";
    text += &if broken.is_empty() { "every request extends the last\n".to_owned() } else { format!("{}\n", broken.join("\n")) };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn figures(first_request_ms: f64, broken: &[&str]) -> Figures {
        let broken = broken.iter().map(|text| (*text).to_owned()).collect();
        Figures { first_request_ms, turn_ms: 2.0, cpu_s: 0.2, peak_mb: 9.5, first_body_bytes: 4000, growth_bytes: 240, broken }
    }

    #[test]
    fn figures_make_a_table() {
        let runs = vec![figures(9.0, &[]), figures(1.0, &["turn 3: prefix_ok is false"]), figures(3.0, &[])];
        let walls = Walls { environment_ms: 1.5, command_ms: 1.6, bare_ms: 0.9 };
        expect![[r#"
            median of 3 runs of 50 turns

            | figure                           |     measured |       goal |
            |----------------------------------|-------------:|-----------:|
            | first request after the start    |       3.0 ms |      50 ms |
            | the same, nothing kept yet       |      12.0 ms |            |
            | own time a turn                  |      2.00 ms |       7 ms |
            | processor time in all            |       0.20 s |      0.5 s |
            | largest process                  |       9.5 MB |      40 MB |
            | first request's body             |   4000 bytes | 5000 bytes |
            | growth a turn                    |    240 bytes |  250 bytes |
            | environment ready                |      1.50 ms |       3 ms |
            | a bare fork and exec             |      0.90 ms |            |
            | a command above fork and exec    |      0.70 ms |     1.5 ms |

            turn 3: prefix_ok is false
        "#]]
        .assert_eq(&table(&Report { turns: 50, median: Figures::median(&runs), runs, fresh: figures(12.0, &[]), walls }));
    }

    #[test]
    fn a_wish_is_understood() {
        let wish = Wish::parse(&["--turns", "5", "--runs", "2"]).unwrap();
        assert_eq!((wish.turns, wish.runs), (5, 2));
        assert!(Wish::parse(&["--turns"]).is_err());
        assert!(Wish::parse(&["--runs", "0"]).is_err());
    }
}
