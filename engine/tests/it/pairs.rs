//! Which calls bring something new.

use crate::story::Story;
use expect_test::{Expect, expect};
use trace::{Limits, Observed, Status, What};

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
