//! `cargo xtask test`: builds and runs all tests of the workspace, and says what could not be tested here, and why.
//!
//! It starts the test programs itself: so it sees a skip that a passing test prints, and can run as another user what was
//! built before.

mod components;
mod programs;
mod tally;

use anyhow::{Context, bail};
use programs::Program;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use tally::Tally;

/// The variable that names components whose absence is a failure, separated by commas, or `all`.
const REQUIRE: &str = "AUTOSAGE_REQUIRE";

/// What is to be tested.
#[derive(Default)]
pub struct Wish {
    /// Folders of crates; none means all, and the examples in the documentation.
    packages: Vec<String>,
    /// The messages of a `cargo test --no-run --message-format=json` that built everything already.
    built: Option<PathBuf>,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

impl Wish {
    pub fn parse(words: &[&str]) -> anyhow::Result<Wish> {
        let mut wish = Wish::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "-p" => wish.packages.push(words.next().context("-p PACKAGE")?.trim_start_matches("autosage-").to_owned()),
                "--built" => wish.built = Some(words.next().context("--built FILE")?.into()),
                _ if word.starts_with('-') || wish.filter.is_some() => {
                    bail!("test [-p PACKAGE]... [--built FILE] [FILTER], not `{word}`")
                }
                filter => wish.filter = Some(filter.to_owned()),
            }
        }
        Ok(wish)
    }

    fn wants(&self, program: &Program) -> bool {
        self.packages.is_empty() || self.packages.contains(&program.package)
    }
}

pub fn run(wish: &Wish) -> anyhow::Result<ExitCode> {
    let messages = match &wish.built {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?,
        None => build()?,
    };
    let mut tally = Tally::default();
    for program in programs::listed(&messages)?.iter().filter(|program| wish.wants(program)) {
        let mut command = Command::new(&program.path);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        tally.add(start(command.args(&wish.filter).arg("--show-output"), &program.to_string())?);
    }
    if wish.built.is_none() && wish.packages.is_empty() {
        let mut command = crate::cargo();
        command.args(["test", "--quiet", "--workspace", "--doc", "--"]);
        tally.add(start(command.args(&wish.filter).arg("--show-output"), "documentation")?);
    }
    Ok(conclude(&tally))
}

fn build() -> anyhow::Result<String> {
    let mut cargo = crate::cargo();
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = cargo.stderr(Stdio::inherit()).output().context("cargo")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs one program of tests. What passes makes one line; what fails is shown without what passes.
fn start(command: &mut Command, label: &str) -> anyhow::Result<Tally> {
    let since = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().with_context(|| label.to_owned())?;
    let stdout = child.stdout.take().expect("stdout is a pipe");
    let (mut tally, mut shown) = (Tally::default(), String::new());
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if line.contains("has been running for over") {
            println!("{label}: {line}");
        }
        if line == "failures:" && tally.is_before_failures() {
            shown.clear();
        }
        tally.read(&line);
        shown.push_str(&line);
        shown.push('\n');
    }
    let status = child.wait()?;
    tally.end(status.success());
    if !status.success() {
        println!("{shown}{label}: {status}");
    }
    if tally.all() > 0 {
        println!("{label:<36} {tally:<44} {:6.1} s", since.elapsed().as_secs_f64());
    }
    Ok(tally)
}

fn conclude(tally: &Tally) -> ExitCode {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let mut lacking = false;
    for (component, tests) in &tally.missing {
        let needed = components::is_required(&required, component);
        let verdict = if needed { format!(", which {REQUIRE} asks for") } else { String::new() };
        println!("no {component}: {tests} not run{verdict} ({})", components::remedy(component));
        lacking |= needed;
    }
    println!("{tally}");
    if tally.failed == 0 && tally.all() > 0 && !lacking { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_understood() {
        let wish = Wish::parse(&["-p", "autosage-sandbox", "-p", "autosage", "--built", "built.json", "escape"]).unwrap();
        assert_eq!(wish.packages, ["sandbox", "autosage"]);
        assert_eq!(wish.built.unwrap(), PathBuf::from("built.json"));
        assert_eq!(wish.filter.unwrap(), "escape");
        assert!(Wish::parse(&["--fast"]).is_err());
        assert!(Wish::parse(&["-p"]).is_err());
    }
}
