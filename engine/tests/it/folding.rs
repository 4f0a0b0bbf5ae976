//! What is folded, when, and what stays.

use crate::story::{Story, model, started};
use engine::{Next, decide};
use expect_test::{Expect, expect};
use model::Message;
use trace::{FaultClass, Folded, Limits, Method, ModelSpec, Outcome, Said, Seq, Started, Status, Stop, Usage, What};

/// A run with a model of such a window, of which a reply may have 1,000 tokens or a quarter.
fn begin(window: u64) -> Story {
    let model = ModelSpec { context: Some(window), ..model() };
    Story::of(Started { model, ..started(Limits::default(), Vec::new()) })
}

/// A round: a command, and `bytes` of what it printed.
fn round(story: Story, command: &str, bytes: usize) -> Story {
    let output = format!("{command}: a line of it\n").repeat(bytes / 20);
    story.called(&[&format!("bash {{\"command\":\"{command}\"}}")]).began(0).told(0, Status::Ok, &output)
}

fn plan(story: &Story) -> Folded {
    match decide(&story.progress) {
        Next::Fold(folded) => *folded,
        Next::Think(_) => panic!("it fits, with {} tokens", story.progress.size()),
        other => panic!("{other:?}"),
    }
}

fn fold(mut story: Story) -> Story {
    let folded = plan(&story);
    story.note(None, What::Folded(folded));
    story
}

/// The conversation in few words.
fn say(story: &Story, expected: Expect) {
    let cut = |text: String| match text.len() {
        0..400 => text,
        bytes => format!("{bytes} bytes"),
    };
    let line = |message: &Message| match message {
        Message::User(parts) => format!("user: {}\n", model::text_of(parts)),
        Message::Reply { calls, .. } => {
            format!("reply: {}\n", calls.iter().map(|call| call.arguments.as_str()).collect::<Vec<_>>().join(" "))
        }
        Message::Result { content, .. } => format!("result: {}\n", cut(model::text_of(content))),
    };
    expected.assert_eq(&story.progress.messages().iter().map(line).collect::<String>());
}

#[test]
fn old_outputs_are_shortened_first_and_no_more_than_have_to_be() {
    let story = (0..16).fold(begin(32_000), |story, number| round(story, &format!("c{number}"), 5_000));
    assert!(matches!(decide(&story.progress), Next::Think(_)));
    let story = (16..19).fold(story, |story, number| round(story, &format!("c{number}"), 5_000));
    let folded = plan(&story);
    assert!(folded.method == Method::Shorten && folded.after <= 16_000 && folded.before > 31_000, "{folded:?}");
    say(
        &fold(story),
        expect![[r#"
            user: do it
            reply: {"command":"c0"}
            result: 4250 bytes
            reply: {"command":"c1"}
            result: 4250 bytes
            reply: {"command":"c2"}
            result: 842 bytes
            reply: {"command":"c3"}
            result: 843 bytes
            reply: {"command":"c4"}
            result: 843 bytes
            reply: {"command":"c5"}
            result: 843 bytes
            reply: {"command":"c6"}
            result: 843 bytes
            reply: {"command":"c7"}
            result: 843 bytes
            reply: {"command":"c8"}
            result: 843 bytes
            reply: {"command":"c9"}
            result: 843 bytes
            reply: {"command":"c10"}
            result: 853 bytes
            reply: {"command":"c11"}
            result: 853 bytes
            reply: {"command":"c12"}
            result: 853 bytes
            reply: {"command":"c13"}
            result: 853 bytes
            reply: {"command":"c14"}
            result: 853 bytes
            reply: {"command":"c15"}
            result: 4500 bytes
            reply: {"command":"c16"}
            result: 4500 bytes
            reply: {"command":"c17"}
            result: 4500 bytes
            reply: {"command":"c18"}
            result: 4500 bytes
        "#]],
    );
}

#[test]
fn where_that_is_not_enough_an_account_stands_in_the_place_of_old_rounds() {
    let story = (0..30).fold(begin(2_500), |story, number| match number {
        7 => round(story.message("look at the third as well"), "c7", 20),
        9 => story.called(&["bash {\"command\":\"curl x\"}"]).began(0).told(0, Status::Denied, "no"),
        _ => round(story, &format!("c{number}"), 20),
    });
    let folded = plan(&story);
    assert!(folded.after <= 1_250, "{folded:?}");
    let story = fold(story);
    let later = (30..60).fold(Story { progress: story.progress.clone(), events: story.events.clone() }, |story, number| {
        round(story, &format!("c{number}"), 20)
    });
    let folded = plan(&later);
    let Method::Ledger { first: Seq(7), ref text, .. } = folded.method else { panic!("{folded:?}") };
    assert!(text.contains("look at the third") && text.contains("older lines are left out"), "{text}");
    let accounts = |story: &Story| {
        let is_account =
            |message: &&Message| matches!(message, Message::User(parts) if model::text_of(parts).contains("folded away"));
        story.progress.messages().iter().filter(is_account).count()
    };
    assert_eq!(accounts(&fold(later)), 1, "a new account takes the place of the one before");
    say(
        &story,
        expect![[r#"
        user: do it
        reply: {"command":"c0"}
        result: c0: a line of it

        reply: {"command":"c1"}
        result: c1: a line of it

        user: What stood here was folded away to make room. This account of it is made from the record, not by you or the person. All of it can be read as output:92 (its lines with offset and limit), and so can what each call below was told.

        The person said:
        - look at the third as well
        What was called, in this order, and how it ended:
        - c2 (ok, output:8)
        - c3 (ok, output:11)
        - c4 (ok, output:14)
        - c5 (ok, output:17)
        - c6 (ok, output:20)
        - c7 (ok, output:24)
        - c8 (ok, output:27)
        - c10 (ok, output:33)
        - c11 (ok, output:36)
        - c12 (ok, output:39)
        - c13 (ok, output:42)
        - c14 (ok, output:45)
        - c15 (ok, output:48)
        - c16 (ok, output:51)
        - c17 (ok, output:54)
        - c18 (ok, output:57)
        - c19 (ok, output:60)
        - c20 (ok, output:63)
        - c21 (ok, output:66)
        - c22 (ok, output:69)
        - c23 (ok, output:72)
        - c24 (ok, output:75)
        - c25 (ok, output:78)
        - c26 (ok, output:81)
        - c27 (ok, output:84)
        What was refused, and checks that failed:
        - curl x (denied, output:30)
        reply: {"command":"c28"}
        result: c28: a line of it

        reply: {"command":"c29"}
        result: c29: a line of it

    "#]],
    );
}

#[test]
fn b5_one_result_that_is_too_large_is_shortened_wherever_it_stands() {
    let story = round(begin(4_000), "flood", 12_000);
    let folded = plan(&story);
    assert!(folded.method == Method::Shorten && folded.shortened.len() == 1, "{folded:?}");
    assert!(matches!(decide(&fold(story).progress), Next::Think(_)));
}

#[test]
fn b5_a_message_longer_than_the_window_does_not_end_the_turns_after_it() {
    let long = "a line of a long message\n".repeat(1_000);
    let story = round(begin(4_000), "c0", 20).said("done").message(&long);
    let Next::Finish(Outcome::ContextFull { reason }) = decide(&story.progress) else { panic!("it fits") };
    assert!(reason.contains("1,000 more are kept for the reply"), "{reason}");
    let story = fold(story.message("only its first line"));
    assert!(matches!(decide(&story.progress), Next::Think(_)));
    let Some(Message::User(last)) = story.progress.messages().last() else { panic!("the last message is the person's") };
    assert_eq!(model::text_of(last), "only its first line");
    let account = story.progress.messages().iter().find_map(|message| match message {
        Message::User(parts) => Some(model::text_of(parts)).filter(|text| text.contains("folded away")),
        Message::Reply { .. } | Message::Result { .. } => None,
    });
    let account = account.unwrap();
    assert!(account.contains("a line of a long message") && account.len() < 4_000, "{account}");
}

#[test]
fn b5_very_many_small_results_of_one_reply_are_folded() {
    let calls: Vec<String> = (0..200).map(|number| format!("bash {{\"command\":\"c{number}\"}}")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let all = |story: Story| (0..200).fold(story, |story, index| story.began(index).told(index, Status::Ok, &"x".repeat(900)));
    let story = fold(all(begin(20_000).called(&calls)));
    assert!(matches!(decide(&story.progress), Next::Think(_)));
    assert!(story.progress.messages().iter().all(|message| !matches!(message, Message::Result { .. })));
}

#[test]
fn b4_a_count_that_cannot_be_true_ends_no_turn() {
    let replied = |input| {
        let call = Said::Call { id: "x".into(), name: "bash".into(), arguments: "{}".into() };
        crate::story::replied(vec![call], Stop::Calls, Usage { input, output: 10, ..Usage::default() })
    };
    for input in [40_000, 1_000_000_000] {
        let mut story = Story::begin(Limits::default(), Vec::new());
        let Next::Think(request) = decide(&story.progress) else { panic!("it fits") };
        story.note(None, What::Asked(request.asked));
        story.note(None, What::Replied(replied(input)));
        let story = story.began(0).observed(0, Status::Ok);
        assert!(matches!(decide(&story.progress), Next::Think(_)), "{input}");
    }
}

#[test]
fn b6_two_folds_without_anything_new_are_the_last() {
    let read = |story: Story, file: &str| round(story, &format!("cat {file}"), 6_000);
    let mut story = begin(8_000);
    let mut files = ["a", "b", "c", "d", "e"].iter().cycle();
    let (mut reads, mut folds) = (0, 0);
    let reason = loop {
        match decide(&story.progress) {
            Next::Think(_) => (story, reads) = (read(story, files.next().unwrap()), reads + 1),
            Next::Fold(_) => (story, folds) = (fold(story), folds + 1),
            Next::Finish(Outcome::ContextFull { reason }) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert!((6..15).contains(&reads) && folds < reads, "{reads} reads, {folds} folds");
    assert!(reason.contains("it was folded twice, and nothing new was learned or done between and since"), "{reason}");
    let story = story.message("go on with a alone");
    assert!(matches!(decide(&story.progress), Next::Fold(_)), "a person may want it all the same");
}

#[test]
fn b6_folds_in_vain_end_a_run_only_where_not_even_a_short_reply_fits() {
    let begin = || {
        let model = ModelSpec { context: Some(8_000), max_output: 2_000, ..model() };
        Story::of(Started { model, ..started(Limits::default(), Vec::new()) })
    };
    let mut story = begin();
    let mut files = ["a", "b", "c", "d", "e"].iter().cycle();
    let (mut folds, mut short) = (0, 0);
    loop {
        match decide(&story.progress) {
            Next::Think(request) => {
                assert!(request.asked.max_output >= 1_000, "{}", request.asked.max_output);
                assert!(story.progress.size() + request.asked.max_output <= 8_000, "it fits");
                short += u32::from(request.asked.max_output < 2_000);
                story = round(story, &format!("cat {}", files.next().unwrap()), if short > 0 { 600 } else { 3_000 });
            }
            Next::Fold(_) => (story, folds) = (fold(story), folds + 1),
            Next::Finish(Outcome::ContextFull { .. }) => break,
            other => panic!("{other:?}"),
        }
        assert!(folds < 20 && short < 20, "it goes on for ever");
    }
    assert!(short > 0, "a short reply was tried after {folds} folds");
    assert!(story.progress.size() + 1_024 > 8_000, "{}", story.progress.size());
}

#[test]
fn b6_what_was_forgotten_may_be_looked_at_once_more() {
    let read = |story: Story, file: &str| match decide(&story.progress) {
        Next::Fold(_) => round(fold(story), &format!("cat {file}"), 10_500),
        Next::Think(_) => round(story, &format!("cat {file}"), 10_500),
        other => panic!("{file}: {other:?}"),
    };
    // Of three files two fit.
    let story = ["a", "b", "c", "a"].into_iter().fold(begin(9_000), read);
    assert!(story.progress.epoch() > 0);
    let story = round(fold(story), "sed -i s/one/other/ a", 20);
    assert!(matches!(decide(&story.progress), Next::Think(_)));
}

#[test]
fn a_size_that_was_refused_is_the_window_from_then_on() {
    let story = (0..10).fold(begin(100_000), |story, number| round(story, &format!("c{number}"), 2_000));
    let mut story = story;
    for _ in 0..2 {
        let Next::Think(request) = decide(&story.progress) else { panic!("it fits, as far as is known") };
        story.note(None, What::Asked(request.asked));
        let size = story.progress.size();
        story = story.fault(FaultClass::ContextFull);
        let folded = plan(&story);
        assert!(folded.before == size && folded.after <= size / 2, "{folded:?}");
        story.note(None, What::Folded(folded));
        assert_eq!(story.progress.window(), size);
    }
    let Next::Think(request) = decide(&story.progress) else { panic!("it was folded") };
    story.note(None, What::Asked(request.asked));
    let Next::Finish(Outcome::ContextFull { reason }) = decide(&story.fault(FaultClass::ContextFull).progress) else {
        panic!("twice is enough");
    };
    expect!["trouble; the history was folded twice for it; go on with a larger window (--context) or another model (--model)"]
        .assert_eq(&reason);
}

#[test]
fn where_nothing_can_be_folded_a_short_reply_is_better_than_none() {
    let model = ModelSpec { context: Some(16_000), max_output: 4_000, ..model() };
    let story = Story::of(Started { model, ..started(Limits::default(), Vec::new()) }).message(&"words ".repeat(6_500));
    let Next::Think(request) = decide(&story.progress) else { panic!("{:?}", decide(&story.progress)) };
    assert!((1_024..4_000).contains(&request.asked.max_output), "{}", request.asked.max_output);
    let Next::Finish(outcome) = decide(&story.message(&"words ".repeat(1_500)).progress) else { panic!("it does not fit") };
    expect!["about 16,516 tokens are to be sent, 4,000 more are kept for the reply, and the window has 16,000; nothing of the history can be folded; go on with a larger window (--context) or another model (--model)"].assert_eq(outcome.reason().unwrap());
}

#[test]
fn where_the_first_rounds_go_the_account_behind_them_is_told_again() {
    let long = format!("bash {{\"command\":\"c0 {}\"}}", "x".repeat(8_000));
    let mut story = begin(8_000).called(&[&long]).began(0).told(0, Status::Ok, "done");
    let mut number = 1;
    while !matches!(decide(&story.progress), Next::Fold(_)) {
        story = round(story, &format!("c{number}"), 20);
        number += 1;
    }
    let mut story = (0..8).fold(fold(story), |story, more| round(story, &format!("c{}", number + more), 20));
    // For a smaller window it would be enough that the first round goes, with what stands behind the account.
    let smaller = ModelSpec { id: "another/m".into(), context: Some(4_500), ..model() };
    story.note(None, What::Switched(trace::Switched { model: Box::new(smaller), why: "it is gone".into() }));
    let at = story.progress.next_seq();
    let story = fold(story);
    let told = story.progress.told(at).unwrap();
    let calls = |message: &Message| match message {
        Message::Reply { calls, .. } => calls.iter().map(|call| call.arguments.clone()).collect(),
        Message::User(_) | Message::Result { .. } => String::new(),
    };
    let shown: String = story.progress.messages().iter().map(calls).collect();
    assert!(told.contains("- c0 xxx") && shown.contains(&format!("\"c{}\"", number + 7)), "{told}");
    for command in (1..number + 8).map(|number| format!("c{number}")) {
        let (is_shown, is_told) = (shown.contains(&format!("\"{command}\"")), told.contains(&format!("- {command} ")));
        assert!(is_shown != is_told, "{command} is shown: {is_shown}, told: {is_told}\n{told}");
    }
}

#[test]
fn another_model_is_folded_for_whatever_the_one_before_was_folded_for() {
    let story = (0..30).fold(begin(8_000), |story, number| match decide(&story.progress) {
        Next::Fold(_) => round(fold(story), &format!("c{number}"), 1_000),
        _ => round(story, &format!("c{number}"), 1_000),
    });
    let mut story = story;
    while !matches!(decide(&story.progress), Next::Fold(_)) {
        story = round(story, "more", 1_000);
    }
    // Since the fold the agent only looked at what it had seen.
    let story = round(fold(story), "more", 1_000);
    let mut story = story.fault(FaultClass::Unavailable);
    let smaller = ModelSpec { id: "another/m".into(), provider: "another".into(), context: Some(3_000), ..model() };
    story.note(None, What::Switched(trace::Switched { model: Box::new(smaller), why: "it is gone".into() }));
    let folded = plan(&story);
    assert!(folded.after <= 1_500, "{folded:?}");
}

#[test]
fn a_long_plan_leaves_half_of_an_account_to_what_happened() {
    let item = |number: usize| format!(r#"{{"text":"step {number} {}","status":"pending"}}"#, "x".repeat(180));
    let items: Vec<String> = (0..50).map(item).collect();
    let plan = format!(r#"plan {{"items":[{}]}}"#, items.join(","));
    let mut story = begin(16_000).called(&[&plan]).began(0).told(0, Status::Ok, "noted");
    let account = loop {
        let at = story.progress.next_seq();
        story = match decide(&story.progress) {
            Next::Fold(_) => fold(story),
            _ => round(story, &format!("c{at}"), 60),
        };
        if story.progress.told(at).is_some() {
            break story.progress.messages().iter().find_map(|message| match message {
                Message::User(parts) => Some(model::text_of(parts)).filter(|text| text.contains("step 49")),
                Message::Reply { .. } | Message::Result { .. } => None,
            });
        }
    };
    let account = account.expect("the account tells the end of the plan");
    let lines = |end: &str| account.lines().filter(|line| line.ends_with(end)).map(|line| line.len() + 1).sum::<usize>();
    let most = 16_000 / 10 * 3;
    let (plan, whole) = (lines(" (to do)"), account.len());
    assert!((most / 3..=most / 2).contains(&plan), "{plan} of {most} bytes\n{account}");
    assert!((most * 9 / 10..=most + 500).contains(&whole), "{whole} of {most} bytes\n{account}");
}
