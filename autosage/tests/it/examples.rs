//! The examples of the library run and say what their text promises.

use crate::support::{PROGRAM, Place};
use std::path::Path;

/// Runs an example, which cargo has built beside the program.
#[allow(clippy::disallowed_methods, reason = "a test of a program starts the program")]
fn example(name: &str, args: &[&str]) -> String {
    let path = Path::new(PROGRAM).parent().unwrap().join("examples").join(name);
    let output = std::process::Command::new(&path).args(args).output();
    let output =
        output.unwrap_or_else(|error| panic!("{}: {error}; `cargo test` builds examples, `--test` does not", path.display()));
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_task_is_done_and_a_second_question_answered() {
    let out = example("task", &[]);
    assert!(out.contains("done: There are three files.\n") && out.ends_with("done: Three, as you asked.\n"), "{out}");
}

#[test]
fn a_model_of_ones_own_answers() {
    let out = example("own_model", &[]);
    assert!(out.ends_with("says: [Text { text: \"hello\" }]\n"), "{out}");
}

#[test]
fn a_typed_question_has_a_typed_answer() {
    assert_eq!(example("ask", &[]), "2 people at 15:00\n");
}

#[test]
fn what_a_provider_asks_of_one_run_another_keeps_to() {
    let out = example("shared_limits", &[]);
    let lines = ["the first waits: 429: Slow down", "the second waits: another request was asked to wait"];
    assert_eq!(out.lines().take(2).collect::<Vec<_>>(), lines, "{out}");
    let mut answers: Vec<&str> = out.lines().skip(2).collect();
    answers.sort_unstable();
    assert_eq!(answers, ["answered after 1 request", "answered after 2 requests"], "{out}");
}

#[test]
fn a_record_is_read_without_owning_it() {
    let (place, server) = (Place::new("example"), crate::support::server::Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    let out = example("read_a_record", &[&place.run_folder().display().to_string()]);
    assert!(out.contains("3 done") && out.contains("intact, 4 events"), "{out}");
}
