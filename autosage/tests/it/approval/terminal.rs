//! A person who is asked at a terminal, and what the question looks like there.

use super::{Stage, outside, writes};
use crate::support::server::{Answer, call};
use crate::support::terminal::Typed;
use serde_json::json;
use std::fs;

#[test]
fn a_person_at_a_terminal_is_asked_and_may_say_it_in_a_word_or_in_words() {
    let out = outside("approval-tty");
    let touch = |name: &str| writes(&out, &format!("touch {}/{name}", out.display()));
    let stage = Stage::new("approval-tty", vec![touch("one"), touch("two"), touch("three"), touch("four")]);
    let args = stage.args(&[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let prompt = "or say what to do instead › ";
    let answers: [Typed<'_>; 6] = [
        (prompt, &|| "o\n"),
        (prompt, &|| "hm\n"),
        (prompt, &|| "put it elsewhere\n"),
        (prompt, &|| "run\n"),
        ("Done.", &|| ""),
        ("› ", &|| "/quit\n"),
    ];
    let called = stage.place.at_terminal(&args, &[], &answers);
    assert_eq!(called.code, 0, "{}", called.out);
    let question = format!(
        "? bash asks for more rights\n  - write {}\n  $ touch {}/one\n  why, the agent says: the result belongs there\n",
        out.display(),
        out.display()
    );
    assert!(called.out.contains(&question), "{}", called.out);
    assert!(!called.out.contains("always"), "the workspace is not trusted, so nothing can be kept: {}", called.out);
    let made = |name: &str| out.join(name).exists();
    assert_eq!(["one", "two", "three", "four"].map(made), [true, false, true, true]);
    let by = || Some("terminal".to_owned());
    assert_eq!(stage.approved_by(), [by(), None, by(), None]);
    assert!(stage.server.bodies()[2].contains("put it elsewhere"));
}

#[test]
fn always_is_offered_in_a_trusted_workspace_and_holds_in_later_runs_there() {
    let out = outside("approval-always");
    let touch = |name: &str| writes(&out, &format!("touch {}/{name}", out.display()));
    let done = || Answer { text: Some("Done.".into()), ..Answer::default() };
    let stage =
        Stage::new("approval-always", vec![touch("one"), done(), touch("two"), done(), touch("three"), done(), touch("four")]);
    let work = stage.place.work().display().to_string();
    assert_eq!(stage.place.start(&["trust", &work, "--yes", "--config", "none"]).code, 0);
    let args = stage.args(&[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let answers: [Typed<'_>; 2] =
        [("always (in this workspace), no, or say what to do instead › ", &|| "always\n"), ("\n› ", &|| "/quit\n")];
    let called = stage.place.at_terminal(&args, &[], &answers);
    assert_eq!(called.code, 0, "{}", called.out);
    assert_eq!(stage.run(&[]).code, 0);
    assert_eq!(stage.approved_by(), [Some("auto".to_owned())], "without a question, and without a terminal");
    assert_eq!(stage.run(&["--approve", "deny"]).code, 0);
    assert_eq!(stage.place.start(&["trust", &work, "--revoke"]).code, 0);
    assert_eq!(stage.run(&[]).code, 0);
    assert_eq!(["one", "two", "three", "four"].map(|name| out.join(name).exists()), [true, true, false, false]);
}

#[test]
fn a_question_that_stands_is_asked_again_in_the_next_session() {
    let out = outside("approval-again");
    let stage = Stage::new("approval-again", vec![writes(&out, &format!("touch {}/made", out.display()))]);
    let mut child = stage.begin(&stage.args(&["--approve", "wait"]));
    stage.until_it_asks();
    child.kill().unwrap();
    child.wait().unwrap();
    let answers: [Typed<'_>; 2] = [("or say what to do instead › ", &|| "y\n"), ("\n› ", &|| "/quit\n")];
    let called = stage.place.at_terminal(&["resume", "--last", "--config", "none", "--approve", "ask"], &[], &answers);
    assert_eq!(called.code, 0, "{}", called.out);
    assert!(called.out.contains("? bash asks for more rights"), "{}", called.out);
    assert!(out.join("made").exists());
}

#[test]
fn a_question_cannot_be_made_to_look_like_another() {
    let out = outside("approval-shown");
    let odd = out.join("a\n  - write /elsewhere");
    let why = "x\n  - write /elsewhere\n  once, run (until the run ends), no, or say what to do instead › once";
    let stage = Stage::new("approval-shown", vec![call("bash", json!({"command": "ls", "write": [odd], "why": why}))]);
    fs::create_dir_all(&odd).unwrap();
    let mut child = stage.begin(&stage.args(&["--approve", "wait"]));
    stage.until_it_asks();
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = stage.place.start(&["show", &stage.id()]).out;
    let begin = |words: &str| shown.lines().filter(|line| line.trim_start().starts_with(words)).count();
    assert_eq!(
        (begin("? bash asks"), begin("- "), begin("once, run"), begin("why, the agent says: x - write")),
        (1, 1, 0, 1),
        "{shown}"
    );
}
