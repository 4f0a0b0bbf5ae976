//! Which calls bring something new, and what comes of those that bring nothing: a warning, then the end of the turn.

use crate::story::Story;
use engine::{Next, decide};
use expect_test::{Expect, expect};
use model::Message;
use trace::{Limits, Observed, Said, Status, Stop, What};

/// A run in which calls come to results, each `call => result`, all in replies of their own.
fn story(calls: &[&str]) -> Story {
    calls.iter().fold(Story::begin(Limits::default(), Vec::new()), |story, call| came(story, call))
}

fn came(story: Story, call: &str) -> Story {
    let (call, result) = call.split_once(" => ").unwrap();
    let mut story = story.called(&[call]).began(0);
    let open = story.progress.open_calls().next().unwrap().clone();
    let observed = Observed { took_ms: story.events.len() as u64, ..Observed::words(open.id, Status::Ok, result) };
    story.note(open.called, What::Observed(observed));
    story
}

fn check(story: &Story, expected: Expect) {
    let pairs = story.progress.pairs();
    let streak = pairs.streak();
    let last = if pairs.is_new() { "new" } else { "seen" };
    let most = if streak.calls > 0 { format!(", {} {} times", streak.call, streak.times) } else { String::new() };
    expected.assert_eq(&format!("{} different, the last {last}; {} without news{most}", pairs.different(), streak.calls));
}

#[test]
fn a_call_that_comes_to_the_same_is_seen() {
    check(&story(&[]), expect!["0 different, the last seen; 0 without news"]);
    check(&story(&["bash {\"a\":1} => x"]), expect!["1 different, the last new; 0 without news"]);
    check(&story(&["bash {\"a\":1} => x", "bash {\"a\":1} => y"]), expect!["2 different, the last new; 0 without news"]);
    check(&story(&["bash {\"a\":1} => x", "read {\"a\":1} => x"]), expect!["2 different, the last new; 0 without news"]);
    let twice = story(&["bash {\"a\":1,\"b\":2} => x", "bash { \"b\": 2, \"a\": 1 } => x"]);
    check(&twice, expect![[r#"1 different, the last seen; 1 without news, bash { "b": 2, "a": 1 } 2 times"#]]);
}

#[test]
fn what_varies_and_means_nothing_makes_nothing_new() {
    let seen = |one: &str, other: &str, expected: Expect| check(&story(&[one, other]), expected);
    seen(
        "bash {} => a\n[… 9 bytes left out; whole output: read output:7 …]\nz",
        "bash {} => a\n[… 9 bytes left out; whole output: read output:12 …]\nz",
        expect!["1 different, the last seen; 1 without news, bash {} 2 times"],
    );
    seen(
        "read {\"path\":\"output:7\"} => a",
        "read {\"path\":\"output:12\"} => a",
        expect![[r#"1 different, the last seen; 1 without news, read {"path":"output:12"} 2 times"#]],
    );
    seen(
        "bash {} => ok\n[still running: c1 make (all) (3 s)]",
        "bash {} => ok\n[still running: c1 make (all) (70 s)]",
        expect!["1 different, the last seen; 1 without news, bash {} 2 times"],
    );
    // What a command itself prints always counts.
    seen("bash {} => output:7", "bash {} => output:8", expect!["2 different, the last new; 0 without news"]);
    seen("bash {} => step (3 s)", "bash {} => step (4 s)", expect!["2 different, the last new; 0 without news"]);
}

#[test]
fn cycles_are_streaks_and_anything_new_ends_one() {
    let cycle = ["bash {} => a", "read {} => b", "bash {} => a", "read {} => b", "bash {} => a"];
    let story = story(&cycle);
    check(&story, expect!["2 different, the last seen; 3 without news, bash {} 3 times"]);
    let story = came(story, "bash {} => c");
    check(&story, expect!["3 different, the last new; 0 without news"]);
    let story = came(story, "bash {} => c");
    check(&story, expect!["3 different, the last seen; 1 without news, bash {} 2 times"]);
}

#[test]
fn a_turn_of_the_user_begins_without_a_past_and_the_run_keeps_its_own() {
    let story = story(&["bash {} => a", "bash {} => a"]).said("done").message("and now?");
    check(&story, expect!["1 different, the last seen; 0 without news"]);
    let story = came(story, "bash {} => a");
    check(&story, expect!["1 different, the last seen; 0 without news"]);
    check(&came(story, "bash {} => a"), expect!["1 different, the last seen; 1 without news, bash {} 2 times"]);
}

/// What follows each call: `.` for the next request, `!` for one that warns, then how the turn ends.
fn course(calls: impl IntoIterator<Item = String>) -> String {
    replies(calls.into_iter().map(|call| vec![call]))
}

/// The same for replies of several calls.
fn replies(replies: impl IntoIterator<Item = Vec<String>>) -> String {
    let (mut story, mut said) = (Story::begin(Limits::default(), Vec::new()), String::new());
    for reply in replies {
        let halves: Vec<(&str, &str)> = reply.iter().map(|call| call.split_once(" => ").unwrap()).collect();
        // Ids differ, so that none is the repetition of another.
        let calls = halves.iter().enumerate().map(|(index, (call, _))| {
            let (name, arguments) = call.split_once(' ').unwrap();
            Said::Call { id: index.to_string(), name: name.to_owned(), arguments: arguments.to_owned() }
        });
        story = story.replied(calls.collect(), Stop::Calls);
        for (index, (_, result)) in halves.iter().enumerate() {
            story = story.began(index);
            let open = story.progress.open_calls().next().unwrap().clone();
            story.note(open.called, What::Observed(Observed::words(open.id, Status::Ok, *result)));
        }
        match decide(&story.progress) {
            Next::Think(_) => said.push(if is_warned(&story) { '!' } else { '.' }),
            Next::Finish(outcome) => return format!("{said} {}: {}", outcome.word(), outcome.reason().unwrap_or_default()),
            other => panic!("{other:?}"),
        }
    }
    said
}

fn is_warned(story: &Story) -> bool {
    matches!(story.progress.messages().last(), Some(Message::User(parts)) if model::text_of(parts).starts_with("You go in a circle"))
}

fn again(calls: &[&str], times: usize) -> Vec<String> {
    calls.iter().cycle().take(calls.len() * times).map(|call| (*call).to_owned()).collect()
}

#[test]
fn i3_the_same_call_and_result_ten_times_are_warned_of_and_stopped() {
    expect![[r#"....!.... failed: 9 calls in a row brought nothing new, bash {"command":"ls"} the same 10 times"#]]
        .assert_eq(&course(again(&["bash {\"command\":\"ls\"} => a b c"], 20)));
}

#[test]
fn i3_a_cycle_is_a_loop_too() {
    expect!["....."].assert_eq(&course(
        again(&["bash {\"a\":1} => x", "read {\"b\":2} => y"], 2).into_iter().chain(again(&["read {} => z"], 1)),
    ));
    expect![[r#".....!.... failed: 9 calls in a row brought nothing new, bash {"a":1} the same 6 times"#]]
        .assert_eq(&course(again(&["bash {\"a\":1} => x", "read {\"b\":2} => y"], 20)));
    expect![[r#"......!.... failed: 9 calls in a row brought nothing new, read {"c":3} the same 4 times"#]]
        .assert_eq(&course(again(&["bash {\"a\":1} => x", "read {\"b\":2} => y", "read {\"c\":3} => z"], 20)));
}

#[test]
fn i3_calls_of_one_reply_count_each_and_a_stop_follows_a_warning_that_could_be_read() {
    let reply = |calls: usize| again(&["read {} => a"], calls);
    expect!["..!. failed: 9 calls in a row brought nothing new, read {} the same 10 times"].assert_eq(&replies([
        reply(2),
        reply(2),
        reply(3),
        reply(2),
        reply(1),
        reply(1),
    ]));
    expect!["! failed: 20 calls in a row brought nothing new, read {} the same 21 times"]
        .assert_eq(&replies([reply(20), reply(1)]));
}

#[test]
fn i3_honest_work_is_not_accused() {
    let numbered = |count: usize, call: &dyn Fn(usize) -> String| (0..count).map(call).collect::<Vec<_>>();
    let quiet = |calls: Vec<String>| {
        let count = calls.len();
        assert_eq!(course(calls), ".".repeat(count));
    };
    // A batch of different calls, all to the same end.
    quiet(numbered(40, &|n| format!("bash {{\"command\":\"touch {n}\"}} => [no output]")));
    // Polling of something that goes on.
    quiet(numbered(40, &|n| format!("bash {{\"command\":\"tail log\"}} => step {n}")));
    // One failing test between edits.
    let test = "bash {\"command\":\"make test\"} => FAILED\n[exit code 1]".to_owned();
    quiet(numbered(40, &|n| if n % 2 == 0 { test.clone() } else { format!("edit {{\"new\":\"{n}\"}} => edited a.c: line 3") }));
    // Two files looked at in turn, while something else is new.
    let calls = |n: usize| match n % 3 {
        0 => "read {\"path\":\"a\"} => a".to_owned(),
        1 => "read {\"path\":\"b\"} => b".to_owned(),
        _ => format!("bash {{\"n\":{n}}} => ok"),
    };
    quiet(numbered(60, &calls));
}

#[test]
fn i3_a_message_begins_anew_and_a_streak_is_warned_of_once() {
    let repeated = |story, times| (0..times).fold(story, |story, _| came(story, "bash {} => a"));
    let warnings = |story: &Story| {
        let told = |message: &&Message| matches!(message, Message::User(parts) if model::text_of(parts).contains("in a circle"));
        story.progress.messages().iter().filter(told).count()
    };
    let story = repeated(story(&[]), 9);
    assert_eq!(warnings(&story), 1);
    let story = repeated(story.message("go on"), 9);
    assert!(matches!(decide(&story.progress), Next::Think(_)));
    assert_eq!(warnings(&story), 2);
    // Something new ends a streak, so the next is another.
    let story = repeated(came(story, "bash {} => news"), 9);
    assert_eq!(warnings(&story), 3);
    assert!(matches!(decide(&story.progress), Next::Finish(_)));
}
