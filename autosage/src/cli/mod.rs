//! The command line: arguments, configuration, wiring, terminal. `main` is all that the program calls.

mod args;
mod bill;
mod build;
mod carry;
mod config;
mod demo;
mod doctor;
mod failure;
mod finding;
mod home;
mod hunk;
mod inline;
mod models;
mod pictures;
mod plan;
mod project;
mod proof;
mod prose;
mod prune;
mod reply;
mod resume;
mod run;
mod runs;
mod schema;
mod secrets;
mod send;
mod session;
mod show;
mod signals;
mod story;
mod summary;
mod thinker;
mod trust;
mod typed;
mod view;
mod wiring;
mod written;

use crate::Parts;
use args::{Command, HarnessCommand, Line};
use clap::{CommandFactory, Parser};
use config::Config;
use failure::Failure;
use home::Home;
use prose::harmless;
use std::ffi::OsString;
use std::process::ExitCode;
use trace::Secrets;

/// Reads the command line, does what it says, and returns the exit code: 0 done, 1 ended without success, 2 usage or
/// configuration, 3 budget exhausted, 4 infrastructure, 130 interrupted.
pub fn main(args: impl IntoIterator<Item = OsString>, mut parts: Parts) -> ExitCode {
    // Whatever is said, also of what was typed wrongly, is said without the keys of this machine.
    let shown = Secrets::of_nothing();
    secrets::know_own(&shown, None, &parts);
    let trouble = written::Trouble::default();
    let out = trouble.watching(&parts.out);
    (parts.out, parts.err) = (secrets::hiding(&out, &shown), secrets::hiding(&parts.err, &shown));
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            let printer = if error.use_stderr() { &parts.err } else { &parts.out };
            print(printer, &error.render().to_string());
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let obeyed = obey(line, &mut parts).and_then(|code| match trouble.told().filter(|_| code == 0) {
        None => Ok(code),
        Some(trouble) => Err(Failure::Infrastructure(anyhow::anyhow!("writing to standard output: {trouble}"))),
    });
    match obeyed {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print(&parts.err, &format!("autosage: {}\n", harmless(&failure.to_string())));
            ExitCode::from(failure.code())
        }
    }
}

fn obey(line: Line, parts: &mut Parts) -> Result<u8, Failure> {
    let home = Home::find(parts);
    let config = || Config::load(line.config.as_deref(), parts);
    match line.command {
        Command::Run(args) => run::run(args, &config()?, &home?, parts),
        Command::Resume(args) => resume::resume(args, &config()?, &home?, parts),
        Command::Send(args) => send::send(&args, &config()?, &home?, parts),
        Command::Runs(args) => runs::runs(&args, &home?, parts),
        Command::Show(args) => show::show(&args, &home?, parts),
        Command::Models(args) => models::models(args, &config()?, parts),
        Command::Trust(args) => trust::trust(&args, &config()?, &home?, parts),
        Command::Harness(HarnessCommand::Export { dir }) => wiring::export_harness(&dir, parts),
        Command::Doctor => doctor::doctor(line.config.as_deref(), &config(), &home, parts),
        Command::Demo(args) => demo::demo(&args, &home?, parts),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Line::command(), "autosage", &mut text);
            print(&parts.out, &String::from_utf8_lossy(&text));
            Ok(0)
        }
    }
}

/// Prints `text`. A reader that went away (`autosage runs | head`) is no trouble of ours, so nothing is said of it.
fn print(printer: &crate::Printer, text: &str) {
    let mut printer = printer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _ = printer.write_all(text.as_bytes()).and_then(|()| printer.flush());
}
