//! What a person types at a terminal while an agent works: it is seen, it arrives, and the terminal is given back.

use crate::support::server::{Answer, Server, bash, call};
use crate::support::terminal::Screen;
use crate::support::{Place, until};
use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use trace::{Delivery, What, text_of};

/// A command that lasts until the test says so.
const SLOW: &str = "until [ -e go ]; do sleep 0.02; done; echo went";

const WORDS: &str = "please mend the second file too, the one that nobody has looked at yet: 日本語.txt";

/// A run at a terminal of `columns`, by which the model does `answers`.
struct Stage {
    place: Place,
    server: Server,
    screen: Screen,
}

impl Stage {
    fn new(name: &str, columns: u16, answers: Vec<Answer>) -> Stage {
        let (place, server) = (Place::new(name), Server::start(answers));
        let work = place.work().display().to_string();
        let screen = Screen::open(&place, columns, &[&["run", "Mend it"], &place.arguments(&server, &work)[..]].concat());
        Stage { place, server, screen }
    }

    /// Lets the slow command end.
    fn go(&self) {
        self.place.write("go", "");
    }

    /// The messages that were delivered.
    fn messages(&self) -> Vec<String> {
        let words = |what| match what {
            What::Delivered(delivered) => match delivered.what {
                Delivery::Message { parts } => Some(text_of(&parts)),
                Delivery::Interrupt | Delivery::Approval { .. } | Delivery::Session { .. } => None,
            },
            _ => None,
        };
        self.place.events().into_iter().filter_map(|event| words(event.what)).collect()
    }
}

fn plan() -> Answer {
    let steps = [("Look around", "done"), ("Wait for it", "doing"), ("Say so", "pending")];
    call("plan", json!({"items": steps.map(|(text, status)| json!({"text": text, "status": status}))}))
}

/// Words that are typed below a plan that stands, while a command lasts.
fn typed_below_a_plan(columns: u16, typed: &str, story: Expect) {
    let mut stage = Stage::new(&format!("typing-{columns}"), columns, vec![plan(), bash(SLOW)]);
    stage.screen.until("$ until [ -e go ]");
    assert!(stage.screen.is_taken() && stage.screen.marks_pasted());
    // In the middle of a character, and with a slip.
    let (begin, rest) = WORDS.as_bytes().split_at(WORDS.find('本').unwrap() + 1);
    stage.screen.bytes(begin);
    stage.screen.bytes(&[&rest[..2], b"x\x7f\x1b[D", &rest[2..]].concat());
    stage.screen.until(&format!("\n{typed}\n"));
    // It stands while the line above it moves.
    for frame in ['•', '●', '·'] {
        let text = stage.screen.until(&format!("\n{frame} $ until"));
        assert!(text.ends_with(&format!("\n{typed}\n")), "{text}");
    }
    stage.screen.keys("\r");
    let text = stage.screen.until("waits its turn\n");
    assert!(!text.contains(&format!("\n{typed}\n")), "{text}");
    stage.screen.keys("half of the next");
    stage.go();
    // What is not sent yet is not lost with the turn.
    stage.screen.until("· unpriced · ");
    stage.screen.until("\n\n› half of the next\n");
    stage.screen.keys("\x15/quit\r");
    let (code, text) = stage.screen.end();
    assert_eq!(code, Some(0), "{text}");
    let from = text.find("Mend it\n").unwrap();
    story.assert_eq(&text[from..text.rfind("done · ").unwrap()]);
    assert_eq!(stage.messages(), [WORDS]);
    assert!(stage.server.bodies().iter().any(|body| body.contains(WORDS)));
    assert!(!stage.screen.is_taken() && !stage.screen.marks_pasted());
}

#[test]
fn words_are_seen_while_a_command_runs_and_leave_nothing_behind() {
    typed_below_a_plan(
        120,
        &format!("› {WORDS}"),
        expect![[r#"
        Mend it

        $ until [ -e go ]; do sleep 0.02; done; echo went
          went

        › please mend the second file too, the one that nobody has looked at yet: 日本語.txt

        Done.

        ✓ Look around
        › Wait for it
        · Say so

    "#]],
    );
}

#[test]
fn words_that_are_longer_than_a_line_are_seen_by_their_end() {
    typed_below_a_plan(
        60,
        "› …e too, the one that nobody has looked at yet: 日本語.txt",
        expect![[r#"
        Mend it

        $ until [ -e go ]; do sleep 0.02; done; echo went
          went

        › please mend the second file too, the one that nobody has
        › looked at yet: 日本語.txt

        Done.

        ✓ Look around
        › Wait for it
        · Say so

    "#]],
    );
}

#[test]
fn what_is_pasted_is_one_message() {
    let mut stage = Stage::new("typing-paste", 80, vec![bash(SLOW)]);
    stage.screen.until("$ until [ -e go ]");
    // As terminals mark it, and as those do that mark nothing.
    stage.screen.keys("see: \x1b[200~one\r\ttwo\x1b[201~");
    stage.screen.until("\n› see: one↵    two\n");
    stage.screen.keys("\r");
    stage.screen.until("\n› see: one↵    two · waits its turn\n");
    stage.screen.keys("three\rfour\r");
    stage.screen.until("\n› three↵four · waits its turn\n");
    stage.go();
    stage.screen.until("done ·");
    stage.screen.until("\n\n›\n");
    // The end of the input ends a session that rests.
    stage.screen.keys("\x04");
    assert_eq!(stage.screen.end().0, Some(0));
    assert_eq!(stage.messages(), ["see: one\n\ttwo", "three\nfour"]);
}

#[test]
fn words_that_were_begun_before_a_question_do_not_answer_it() {
    let asks = call("bash", json!({"command": "touch made", "network": true, "why": "to look"}));
    let mut stage = Stage::new("typing-question", 80, vec![bash(SLOW), asks]);
    stage.screen.until("$ until [ -e go ]");
    stage.screen.keys("once");
    stage.screen.until("\n› once\n");
    stage.go();
    stage.screen.until("say what to do instead\n  › once\n");
    stage.screen.keys("\r");
    until(|| (stage.messages() == ["once"]).then_some(()));
    stage.screen.until("\n  once, run (until the run ends), no, or say what to do instead\n  ›\n");
    stage.screen.keys("hm\r");
    stage.screen.until("\n  not understood: hm\n");
    stage.screen.keys("no\r");
    let text = stage.screen.until("done ·");
    assert!(text.contains("\n  why, the agent says: to look\n› once\n\n  not understood: hm\n"), "{text}");
    assert!(text.contains("\n  answered: no (terminal)\n"), "{text}");
    stage.screen.until("\n\n›\n");
    stage.screen.keys("/quit\r");
    assert_eq!(stage.screen.end().0, Some(0));
    assert!(!stage.place.work().join("made").exists());
    assert_eq!(stage.messages(), ["once"]);
}

#[test]
fn a_stopped_program_leaves_the_terminal_to_the_shell_and_goes_on_as_it_was() {
    let mut stage = Stage::new("typing-stop", 80, vec![plan(), bash(SLOW)]);
    stage.screen.until("$ until [ -e go ]");
    stage.screen.keys("half");
    stage.screen.until("\n› half\n");
    stage.screen.signal(Signal::TSTP);
    stage.screen.until_stopped();
    let text = stage.screen.text();
    assert!(!text.contains("half") && !text.contains("Wait for it"), "{text}");
    assert!(!stage.screen.is_taken() && !stage.screen.marks_pasted());
    stage.screen.signal(Signal::CONT);
    let text = stage.screen.until("\n› half\n");
    assert_eq!(text.matches("Wait for it").count(), 1, "{text}");
    until(|| stage.screen.is_taken().then_some(()));
    stage.screen.keys(" and half\r");
    stage.screen.until("\n› half and half · waits its turn\n");
    stage.go();
    stage.screen.until("done ·");
    stage.screen.keys("\r");
    assert_eq!(stage.screen.end().0, Some(0));
    assert_eq!(stage.messages(), ["half and half"]);
}

/// The terminal after a program that ended by what `ends` it, while words stand below a plan.
fn given_back(name: &str, ends: impl FnOnce(&mut Stage)) -> (Option<i32>, String) {
    let mut stage = Stage::new(name, 80, vec![plan(), bash(SLOW)]);
    stage.screen.until("$ until [ -e go ]");
    stage.screen.keys("half");
    stage.screen.until("\n› half\n");
    assert!(stage.screen.is_taken());
    ends(&mut stage);
    let (code, text) = stage.screen.end();
    assert!(!stage.screen.is_taken() && !stage.screen.marks_pasted(), "{text}");
    assert!(!text.contains("half"), "{text}");
    (code, text)
}

#[test]
fn the_terminal_is_given_back_after_an_error() {
    let (code, text) = given_back("typing-error", |stage| {
        let inbox = stage.place.run_folder().join("inbox");
        let _ = fs::remove_dir_all(&inbox);
        fs::write(&inbox, "").unwrap();
        stage.screen.keys("\r");
    });
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("keeping what was typed"), "{text}");
}

#[test]
fn the_terminal_is_given_back_by_the_signal_that_ends_a_session_at_rest() {
    let (code, text) = given_back("typing-rest", |stage| {
        stage.screen.signal(Signal::INT);
        stage.screen.until("\n\n› half\n");
        stage.screen.signal_until_end(Signal::TERM);
    });
    assert!(code == Some(130) && text.contains("go on with: "), "{code:?} {text}");
}

#[test]
fn the_terminal_is_given_back_by_a_signal_that_ends_the_program_at_once() {
    // More than a terminal holds, and nobody reads it: the thread of the run stands in the writing of the story.
    let long = Answer { text: Some("word ".repeat(50_000)), ..Answer::default() };
    let mut stage = Stage::new("typing-at-once", 80, vec![long]);
    until(|| (stage.screen.unread() > 2_000).then_some(()));
    assert!(stage.screen.is_taken());
    stage.screen.signal_until_end(Signal::INT);
    assert!(!stage.screen.is_taken());
    let (code, text) = stage.screen.end();
    assert!(code == Some(130) && !text.contains("go on with: "), "{code:?} {text}");
}

#[test]
fn the_terminal_is_given_back_when_the_program_is_quit() {
    let (code, text) = given_back("typing-quit", |stage| stage.screen.signal(Signal::QUIT));
    assert_eq!(code, None, "the signal ended it: {text}");
}
