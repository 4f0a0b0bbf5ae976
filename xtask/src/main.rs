//! Chores of the project: `cargo xtask tidy`, `cargo xtask test`, `cargo xtask bench`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a tool for developers: it prints, starts cargo and the tests, and measures time"
)]

mod bench;
mod test;
mod tidy;

use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Chores of the project.

cargo xtask tidy                 the rules of the house that no compiler checks
cargo xtask test [-p PACKAGE]... [--built FILE] [FILTER]
                                 builds and runs all tests; says what could not be tested, and why
                                 --built: run what `cargo test --no-run --message-format=json >FILE` built
cargo xtask bench [--runs N] [--turns N] [--long N] [--json FILE]
                                 our own time, memory and bytes per turn, against a scripted model;
                                 on both wires, in a long run, and what a long record costs";

fn main() -> ExitCode {
    chore().unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

/// Does the chore that was asked for.
fn chore() -> anyhow::Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.split_first() {
        Some((&"tidy", [])) => tidy::run(root()),
        Some((&"test", rest)) => test::run(&test::Wish::parse(rest)?),
        Some((&"bench", rest)) => bench::run(root(), &bench::Wish::parse(rest)?),
        Some((&("help" | "--help" | "-h"), _)) => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

/// Cargo at the root of the repository, without what `cargo run` told this process about itself: build scripts look at
/// some of that, and would run again.
fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root());
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    cargo
}
