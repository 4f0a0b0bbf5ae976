//! What a person sees of a run: plans, changes of files, and what calls them back to the terminal.

use crate::support::Place;
use crate::support::server::{Answer, Server, call};
use crate::support::terminal::Typed;
use expect_test::expect;
use serde_json::{Value, json};
use std::fs;

fn plan(stages: [&str; 2]) -> Value {
    let steps = ["Read the notes", "Mend the second line"].into_iter().zip(stages);
    json!({"items": steps.map(|(text, status)| json!({"text": text, "status": status})).collect::<Vec<_>>()})
}

fn run<'a>(place: &'a Place, server: &'a Server, work: &'a str) -> Vec<&'a str> {
    [vec!["run", "Mend the notes"], place.arguments(server, work)].concat()
}

/// The story without its head and its last lines, in which times stand.
fn story(text: &str) -> String {
    let from = text.find("Mend the notes\n").unwrap();
    text[from..text.rfind("done · ").unwrap()].to_owned()
}

#[test]
fn plans_and_changes_are_told_in_logs_as_in_show() {
    let server = Server::start(vec![
        call("plan", plan(["doing", "pending"])),
        call("read", json!({"path": "notes.txt"})),
        call("plan", plan(["done", "doing"])),
        call("edit", json!({"path": "notes.txt", "old": "one\ntwo\nthree", "new": "one\nTWO\nthree"})),
        call("write", json!({"path": "test.sh", "content": "set -e\ngrep -q TWO notes.txt\n"})),
        call("write", json!({"path": "test.sh", "content": "set -e\ngrep -q TWO notes.txt\necho passed\n"})),
        call("find", json!({"glob": "*.sh"})),
        call("plan", plan(["done", "done"])),
    ]);
    let place = Place::new("seen");
    place.write("notes.txt", "one\ntwo\nthree\nfour\n");
    let work = place.work().display().to_string();
    let called = place.start(&run(&place, &server, &work));
    assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
    expect![[r#"
        Mend the notes

        plan · 0 of 2 steps done · Read the notes

        read notes.txt
          1    one
          2    two
          3    three
          4    four

        plan · 1 of 2 steps done · Mend the second line

        edited notes.txt: line 2
            one
          - two
          + TWO
            three

        made test.sh (2 lines)
          + set -e
          + grep -q TWO notes.txt

        replaced test.sh (3 lines)
            set -e
            grep -q TWO notes.txt
          + echo passed

        find *.sh
          test.sh

        plan · 2 of 2 steps done

        Done.

        ✓ Read the notes
        ✓ Mend the second line

    "#]]
    .assert_eq(&story(&called.err));
    let shown = place.start(&["show", "--last"]);
    assert_eq!(story(&shown.out), story(&called.err), "a record tells the same");
}

#[test]
fn nothing_of_a_model_reaches_a_terminal_raw() {
    let bad = "a\u{1b}]2;gone\u{7}\u{9b}2J\u{202e}b";
    let server = Server::start(vec![
        call("plan", json!({"items": [{"text": bad, "status": "doing"}]})),
        call("write", json!({"path": "a.txt", "content": bad})),
        call("edit", json!({"path": "a.txt", "old": bad, "new": format!("{bad}{bad}")})),
        call("find", json!({"glob": bad})),
        call("find", json!({"glob": "*.txt", "path": bad})),
        call("plan", json!({"items": bad})),
    ]);
    let place = Place::new("seen-raw");
    let work = place.work().display().to_string();
    let called = place.at_terminal(&run(&place, &server, &work), &[("TERM", "xterm-256color")], &[("\n› ", &|| "/quit\n")]);
    assert_eq!(called.code, 0, "{}", called.out);
    let shown = place.start(&["show", "--last"]);
    for text in [&called.out, &called.err, &shown.out] {
        // Our own: colours, and the line below the story; the title holds the task.
        assert!(!text.contains("\u{1b}]2;gone") && !text.contains(['\u{9b}', '\u{202e}']), "{text:?}");
    }
    assert!(!shown.out.contains(|c: char| c.is_control() && c != '\n'), "{:?}", shown.out);
    assert!(shown.out.contains("a\u{fffd}]2;gone"), "{}", shown.out);
}

/// What a person at a terminal hears and reads of a run that asks, with `variables` and a configuration.
fn called_back(name: &str, variables: &[(&str, &str)], config: &str) -> String {
    let server = Server::start(vec![call("bash", json!({"command": "true", "network": true, "why": "to look"}))]);
    let place = Place::new(name);
    let work = place.work().display().to_string();
    let path = place.home().with_file_name("config.toml");
    fs::write(&path, config).unwrap();
    let file = path.display().to_string();
    let args = run(&place, &server, &work).into_iter().map(|arg| if arg == "none" { &file } else { arg }).collect::<Vec<_>>();
    let answers: [Typed<'_>; 2] = [("or say what to do instead", &|| "no\n"), ("\n› ", &|| "/quit\n")];
    let called = place.at_terminal(&args, variables, &answers);
    assert_eq!(called.code, 0, "{}", called.out);
    called.out
}

#[test]
fn a_question_rings_and_the_title_tells_of_the_run_until_it_ends() {
    let out = called_back("rings", &[("TERM", "xterm")], "");
    let titles: Vec<&str> = out.split("\u{1b}]2;").skip(1).map(|rest| rest.split('\u{1b}').next().unwrap()).collect();
    assert_eq!(titles, ["● Mend the notes", "? Mend the notes", "● Mend the notes", "✓ Mend the notes", ""], "{out:?}");
    assert_eq!(out.matches('\u{7}').count(), 1, "the question rings, and the end of so short a turn does not: {out:?}");
    let (aside, back) = (out.find("\u{1b}[22;2t").unwrap(), out.rfind("\u{1b}[23;2t").unwrap());
    assert!(aside < back && out.matches("\u{1b}[22;2t").count() == 1);
}

#[test]
fn nothing_rings_where_it_is_not_wanted() {
    let cases = [
        ("no-colour", vec![("TERM", "xterm"), ("NO_COLOR", "1")], ""),
        ("dumb", vec![("TERM", "dumb")], ""),
        ("no-bell", vec![("TERM", "xterm")], "bell = false\n"),
    ];
    for (name, variables, config) in cases {
        let out = called_back(name, &variables, config);
        assert!(!out.contains('\u{7}') && !out.contains("\u{1b}]"), "{name}: {out:?}");
    }
}

#[test]
fn calls_that_are_denied_in_the_same_words_are_told_once_and_a_claim_among_them_once() {
    let flood = || {
        let mut calls: Vec<Value> =
            (0..54).map(|n| call("bash", json!({"command": format!("echo {n}")})).calls.remove(0)).collect();
        calls.push(call("submit", json!({"answer": "The notes are mended."})).calls.remove(0));
        calls.push(call("bash", json!({"command": "echo after"})).calls.remove(0));
        Answer { calls, ..Answer::default() }
    };
    let told = |columns: u16| {
        let (place, server) = (Place::new(&format!("denied-{columns}")), Server::start(vec![flood()]));
        let work = place.work().display().to_string();
        let live = place.at_terminal_of(columns, &run(&place, &server, &work), &[], &[("\n› ", &|| "/quit\n")]);
        assert_eq!(live.code, 0, "{}", live.out);
        let shown = place.at_terminal_of(columns, &["show", "--last"], &[], &[]);
        let from = |text: &str| text[text.find("$ echo 49\n").unwrap()..text.rfind("done · ").unwrap()].to_owned();
        assert_eq!(from(&live.out), from(&shown.out));
        assert!(from(&shown.out).lines().all(|line| line.chars().count() <= columns.into()), "{}", shown.out);
        let events = place.start(&["show", "--last", "--events"]).out;
        assert_eq!((events.matches(" denied · ").count(), events.matches(" ok · ").count()), (6, 50), "nothing is left out");
        from(&live.out)
    };
    expect![[r#"
        $ echo 49
          49

        $ echo 50
          Not run: of the calls of one reply the first 50 are
          served. Send this one again if it is still needed.
          denied

        … 3 more calls, denied in the same words

        submit
        The notes are mended.

          Not accepted: this reply makes more calls than the 50 that
          are served. See to the others, then claim again.
          denied

        $ echo after
          Not run: of the calls of one reply the first 50 are
          served. Send this one again if it is still needed.
          denied

        Done.

    "#]]
    .assert_eq(&told(60));
    expect![[r#"
        $ echo 49
          49

        $ echo 50
          Not run: of the calls of one reply the first 50 are served. Send this one again if it is still
          needed.
          denied

        … 3 more calls, denied in the same words

        submit
        The notes are mended.

          Not accepted: this reply makes more calls than the 50 that are served. See to the others, then
          claim again.
          denied

        $ echo after
          Not run: of the calls of one reply the first 50 are served. Send this one again if it is still
          needed.
          denied

        Done.

    "#]]
    .assert_eq(&told(120));
}

#[test]
fn what_ends_a_turn_stands_by_itself_and_says_what_is_not_known() {
    let refused = Answer { status: Some(400), error: Some("no such field".to_owned()), ..Answer::default() };
    let busy = Answer { status: Some(503), error: Some("busy".to_owned()), ..Answer::default() };
    let (place, server) = (Place::new("ends"), Server::start(vec![busy, refused]));
    let work = place.work().display().to_string();
    let called = place.start(&run(&place, &server, &work));
    assert_eq!((called.code, server.faults()), (4, 2), "{}", called.err);
    let waited = called.err.find("waiting 1 s to ask openai-compatible/scripted: 503: busy\n\ninfrastructure · 1 turn · ");
    let words = called.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(waited.is_some() && words.contains("The same request would be refused again"), "{}", called.err);
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    let shown = place.start(&["show", "--last"]).out;
    assert!(shown.contains("\na new session goes on\n\n› on\n\nDone.\n\ndone · "), "{shown}");
    // Nothing was asked, and what it would have cost is not known.
    let poor = place.start(&[&run(&place, &server, &work)[..], &["--max-tokens", "1500"]].concat());
    assert_eq!(poor.code, 3, "{}", poor.err);
    let told = "budget · 0 turns · 0 tokens · unpriced · ";
    assert!(poor.err.contains(told) && poor.err.contains("0 of 1,500 tokens are used"), "{}", poor.err);
    assert!(place.start(&["runs"]).out.lines().next().unwrap().contains("unpriced"));
}
