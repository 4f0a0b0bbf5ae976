//! The scenario folders, each played through the program's own `main`: what a person typed, what the model said, and what
//! must stand in the record. `UPDATE_EXPECT=1` writes the expectations anew.
//!
//! A folder holds `scenario.toml` (`about`, and `[[step]]`s with `args`, `exit` and perhaps `env` and `stdout`), `model.json` (the
//! answers of a scripted server, in order), `workspace/` (if the work begins with files) and `record.txt` (what happened).
//! `$WORK` in an argument is the workspace; the model and the configuration are named by the test.

use crate::support::server::{Server, Wire};
use crate::support::{CountedIds, Place, SteppedClock, files, on_every_wire, script};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use trace::{Delivery, Event, Method, Part, Said, Stop, What};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    about: String,
    step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    args: Vec<String>,
    /// Variables of the person, beside their home.
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    exit: i32,
    stdout: Option<String>,
    stderr_has: Option<String>,
}

/// Plays the scenario in `folder` and returns the record's folder as files, and its events.
fn play(folder: &Path, place: &Place, server: &Server, wire: Wire) -> (Vec<(PathBuf, Vec<u8>)>, Vec<Event>) {
    let scenario: Scenario = toml::from_str(&fs::read_to_string(folder.join("scenario.toml")).unwrap()).unwrap();
    assert!(!scenario.about.is_empty(), "{} says what it is about", folder.display());
    let workspace = folder.join("workspace");
    let begins_with = if workspace.is_dir() { files(&workspace) } else { Vec::new() };
    for (path, bytes) in begins_with {
        let path = place.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let answers = script(&fs::read_to_string(folder.join("model.json")).unwrap());
    let faults = answers.iter().filter(|answer| answer.is_fault()).count();
    server.restart(answers);
    let (clock, ids) = (Arc::new(SteppedClock::new()), Arc::new(CountedIds(AtomicU64::new(0))));
    let work = place.work().display().to_string();
    for step in &scenario.step {
        let mut args: Vec<String> = step.args.iter().map(|arg| arg.replace("$WORK", &work)).collect();
        args.extend(["--config".to_owned(), "none".to_owned()]);
        if matches!(args[0].as_str(), "run" | "resume") {
            args.extend(wire.arguments(&server.base_url).into_iter().map(str::to_owned));
        }
        if args[0] == "run" {
            args.extend(["--workspace".to_owned(), work.clone()]);
        }
        let called = place.call_with(&clock, &ids, &args.iter().map(String::as_str).collect::<Vec<_>>(), &step.env);
        assert_eq!(called.code, step.exit, "{args:?}\n{}\n{}", called.out, called.err);
        if let Some(stdout) = &step.stdout {
            assert_eq!(called.out.replace(&work, "$WORK"), *stdout, "{args:?}");
        }
        if let Some(words) = &step.stderr_has {
            assert!(called.err.contains(words), "{args:?}: no {words:?} in\n{}", called.err);
        }
    }
    assert_eq!(server.faults(), faults, "every fault of the script was served");
    let events = place.events();
    let bodies = server.bodies();
    // From one fold to the next; what was folded between them is not extended.
    let mut epochs = every_body_is_rebuilt(server, &events, place).into_iter().peekable();
    let mut left = bodies.as_slice();
    while let Some(epoch) = epochs.next() {
        let mut length = 1;
        while epochs.next_if_eq(&epoch).is_some() {
            length += 1;
        }
        let (together, rest) = left.split_at(length);
        every_body_extends_the_one_before(together);
        left = rest;
    }
    let run = place.run_folder();
    let kept = files(&run).into_iter().filter(|(path, _)| path != Path::new("lock")).collect();
    (kept, events)
}

/// Invariant 4: every body that the server received is the one that the events give, byte for byte.
/// Answers with how often the history had been folded before each of them.
fn every_body_is_rebuilt(server: &Server, events: &[Event], place: &Place) -> Vec<u32> {
    let (bodies, mut epochs) = (server.bodies(), Vec::new());
    let mut sent = bodies.iter().peekable();
    for event in events {
        let What::Asked(asked) = &event.what else { continue };
        let (clock, ids) = (Arc::new(SteppedClock::new()), Arc::new(CountedIds(AtomicU64::new(0))));
        let shown = place.call(&clock, &ids, &["show", "--last", "--prompt", &event.seq.to_string()]);
        assert_eq!(shown.code, 0, "{}", shown.err);
        let rebuilt = shown.out.trim_end_matches('\n');
        assert_eq!(sent.next().map(String::as_str), Some(rebuilt), "the request at event {}", event.seq);
        epochs.push(asked.epoch);
        // A retry sends the same bytes again.
        while sent.next_if(|body| body.as_str() == rebuilt).is_some() {
            epochs.push(asked.epoch);
        }
    }
    assert_eq!(sent.next(), None, "a body that no event asks for");
    epochs
}

/// Invariant 4, and what a cache lives on (bug case B9): a request is the one before and more, but for the marks of a
/// cache; and each offers the tools, for no request is made aside (bug case D4).
pub fn every_body_extends_the_one_before(bodies: &[String]) {
    let grown = |body: &String| {
        let body = body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let ends =
            [r#"],"max_tokens":"#, r#"],"max_completion_tokens":"#, r#"],"max_output_tokens":"#, r#"],"generationConfig":"#];
        let end = ends.into_iter().find_map(|end| body.rfind(end)).unwrap();
        body[..end].to_owned()
    };
    let bodies: Vec<String> = bodies.iter().map(grown).collect();
    for pair in bodies.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "not extended:\n{}\n{}", pair[0], pair[1]);
    }
    assert!(bodies.iter().all(|body| body.contains(r#""tools":[{"#)), "a request without tools");
}

/// The record as a reader needs it: what happened, without times, digests and places.
fn projection(events: &[Event], work: &Path) -> String {
    let mut text = String::new();
    for event in events {
        let cause = event.cause.map(|cause| format!(" <- {cause}")).unwrap_or_default();
        let what = match &event.what {
            What::Started(started) => format!("{} | tools {}", told(&started.task.parts), started.tools.len()),
            What::Delivered(delivered) => match &delivered.what {
                Delivery::Message { parts } => format!("message: {}", told(parts)),
                Delivery::Interrupt => "interrupt".to_owned(),
                Delivery::Approval { asked, answer, by } => format!("answer to {asked}: {answer} by {by}"),
                Delivery::Session { .. } => "session".to_owned(),
            },
            What::Asked(asked) => format!("upto {} | most {}", asked.upto, asked.max_output),
            What::Replied(replied) => replied_line(replied),
            What::Folded(folded) => {
                let calls = folded.shortened.iter().map(|call| format!("\nshortened: {call}")).collect::<String>();
                let account = match &folded.method {
                    Method::Shorten => String::new(),
                    Method::Ledger { first, last, text, .. } => format!("\n{first} to {last} become: {text}"),
                };
                format!("time {}{calls}{account}", folded.epoch)
            }
            What::Switched(switched) => format!("to {}: {}", switched.model.id, switched.why),
            What::ApprovalAsked(asked) => format!("{} {} wants {}: {}", asked.id, asked.tool, asked.wants, asked.why),
            What::Called(called) => {
                let by = called.approved_by.as_ref().map(|by| format!(" | approved by {by}")).unwrap_or_default();
                format!("{} {} {}{by}", called.id, called.tool, called.raw)
            }
            What::Observed(observed) => {
                let exit = observed.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
                let same = observed.same_as.as_ref().map(|first| format!(" same as {first}")).unwrap_or_default();
                format!("{} {}{exit}{same}\n{}", observed.id, observed.status.word(), told(&observed.content))
            }
            What::Verified(verified) => {
                let checks: Vec<String> = verified
                    .checks
                    .iter()
                    .map(|check| format!("\n{} {} {}", check.passed, check.command, check.output))
                    .collect();
                format!("{:?}{}", verified.verdict, checks.concat())
            }
            What::Granted(granted) => format!("{:?} {}", granted.limits, granted.grant),
            What::Recovered(recovered) => recovered.reason.clone(),
            What::Finished(finished) => format!("{} | turns {} | {:?}", finished.outcome.word(), finished.turns, finished.answer),
            What::Unknown { kind, .. } => kind.clone(),
        };
        let what = short(what.trim_end());
        writeln!(text, "{:>3} {}{cause}  {what}", event.seq.0, event.what.kind()).unwrap();
    }
    text.replace(&work.display().to_string(), "$WORK")
}

/// What `parts` say, and which contents they name.
fn told(parts: &[Part]) -> String {
    let line = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { blob, picture } => format!("<{picture}, {}>", blob.short()),
        Part::File { blob, name, .. } => format!("<{name}, {}>", blob.short()),
    };
    parts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The first lines of `text`, each behind a margin and cut where it is very long.
fn short(text: &str) -> String {
    const LINES: usize = 14;
    let cut = |line: &str| match line.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = text.lines().take(LINES).map(cut).collect();
    let left_out = text.lines().count().saturating_sub(LINES);
    if left_out > 0 {
        lines.push(format!("… {left_out} more lines"));
    }
    lines.join("\n      | ")
}

fn replied_line(replied: &trace::Replied) -> String {
    let parts: Vec<String> = replied
        .parts
        .iter()
        .map(|part| match part {
            Said::Text { text } => format!("text {text:?}"),
            Said::Reasoning { text } => format!("reasoning {text:?}"),
            Said::Opaque { wire, .. } => format!("opaque of {wire}"),
            Said::Call { id, name, .. } => format!("call {id:?} {name}"),
            Said::Cut { name, raw } => format!("cut {name} {raw:?}"),
        })
        .collect();
    let stop = match &replied.stop {
        Stop::Error(fault) => format!("error {:?}", fault.class),
        stop => format!("{stop:?}").to_lowercase(),
    };
    format!("{stop} | {} | attempts {}", parts.join(", "), replied.attempts.len())
}

#[test]
fn scenarios_give_the_expected_record() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut folders: Vec<PathBuf> = fs::read_dir(scenarios).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join("scenario.toml").is_file());
    folders.sort();
    assert!(!folders.is_empty());
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        // What happens does not depend on the wire.
        for wire in Wire::ALL {
            println!("scenario {name} on {wire:?}");
            let place = Place::new(&name);
            let (_, events) = play(&folder, &place, &Server::start(Vec::new()), wire);
            let actual = projection(&events, &place.work());
            expect_test::expect_file![folder.join("record.txt")].assert_eq(&actual);
        }
    }
}

#[test]
fn two_runs_of_one_scenario_give_the_same_bytes() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    on_every_wire(|wire| {
        let server = Server::start(Vec::new());
        for name in ["second-question", "check-fails-once", "reads-side-by-side", "folded-history"] {
            let play_once = || {
                let place = Place::new(&format!("twice-{name}-{wire:?}"));
                play(&scenarios.join(name), &place, &server, wire).0
            };
            let (first, second) = (play_once(), play_once());
            let paths = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
            assert_eq!(paths(&first), paths(&second), "{name} on {wire:?}");
            for (first, second) in first.iter().zip(&second) {
                assert!(first == second, "{name} on {wire:?}: {} differs", first.0.display());
            }
        }
    });
}
