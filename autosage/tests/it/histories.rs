//! What a conversation must stay through limits, sessions and floods, on every wire and through the real binary.

use crate::support::server::{Server, Wire};
use crate::support::{Place, on_every_wire, script};
use crate::wires::play;
use serde_json::{Value, json};
use trace::{Observed, Outcome, What};

/// Goes on with the newest run of `place` at `server`.
fn go_on(place: &Place, wire: Wire, server: &Server, more: &[&str]) -> i32 {
    let mut args = vec!["resume", "--last", "--config", "none"];
    args.extend(wire.arguments(&server.base_url));
    args.extend(more);
    place.start(&args).code
}

/// The name and the words of each tool that a request offers.
fn tools(body: &str) -> Value {
    serde_json::from_str::<Value>(body).unwrap()["tools"].clone()
}

#[test]
fn b1_what_a_child_prints_after_its_call_is_no_second_result() {
    let answers = r#"[
        {"calls": [{"name": "bash", "arguments": {"command": "(until test -e go; do sleep 0.02; done; echo late; touch said) & echo early"}}]},
        {"calls": [{"name": "bash", "arguments": {"command": "touch go; until test -e said; do sleep 0.02; done; echo after"}}]}
    ]"#;
    for wire in Wire::ALL {
        let played = play("b1", wire, answers, &[]);
        played.done();
        assert!(played.seen()[0].starts_with("early\n[still running: c1"), "{:?}", played.seen());
        assert_eq!(played.seen()[1].lines().next(), Some("after"), "{:?}", played.seen());
        assert_eq!(go_on(&played.place, wire, &played.server, &["-m", "and now?"]), 0);
        assert_eq!(played.is_paired(wire), 2, "one result for each call, in a later session too");
    }
}

#[test]
fn b4_a_history_that_is_too_long_ends_the_run_and_the_words_of_the_error_enter_no_prompt() {
    let too_long = r#"[{"status": 400, "error": "prompt is too long: 9 tokens > 8 maximum, context_length_exceeded"}]"#;
    for wire in Wire::ALL {
        let played = play("b4", wire, too_long, &[]);
        assert_eq!((played.called.code, played.server.bodies().len()), (1, 1), "it is not sent again: {}", played.called.err);
        let Some(What::Finished(finished)) = played.events.last().map(|event| &event.what) else { panic!("no end") };
        assert!(matches!(finished.outcome, Outcome::ContextFull { .. }), "{:?}", finished.outcome);
        assert_eq!(go_on(&played.place, wire, &played.server, &["-m", "be brief"]), 0);
        let last = played.server.bodies().pop().unwrap();
        assert!(last.contains("be brief") && !last.contains("too long"), "{last}");
    }
}

#[test]
fn b5_a_flood_is_capped_where_it_is_captured_also_within_one_line() {
    on_every_wire(|wire| {
        // Capped before any wire is spoken: one of them takes the whole flood, and the others what is enough to be one.
        let (lines, line) = if wire == Wire::Chat { (30_000_000, 8_000_000) } else { (1_000_000, 500_000) };
        let answers = json!([
            {"calls": [{"name": "bash", "arguments": {"command": format!("yes | head -c {lines}")}}]},
            {"calls": [{"name": "bash", "arguments": {"command": format!("head -c {line} /dev/zero | tr '\\0' 'é'")}}]}
        ]);
        let played = play("b5", wire, &answers.to_string(), &[]);
        played.done();
        let sizes: Vec<Option<u64>> = played.observed().iter().map(|observed| observed.bytes).collect();
        assert_eq!(sizes, [Some(lines), Some(line)]);
        assert!(played.observed().iter().all(|observed: &&Observed| observed.truncated && observed.blob.is_some()));
        assert!(played.server.bodies().last().unwrap().len() < 40_000, "what is sent stays small");
        assert_eq!(played.is_paired(wire), 2);
    });
}

#[test]
fn b7_a_later_session_offers_the_tools_of_the_first() {
    for wire in Wire::ALL {
        let played = play("b7", wire, r#"[{"calls": [{"name": "bash", "arguments": {"command": "true"}}]}]"#, &[]);
        played.done();
        assert_eq!(go_on(&played.place, wire, &played.server, &["-m", "and now?"]), 0);
        let bodies = played.server.bodies();
        assert!(!tools(&bodies[0]).as_array().unwrap().is_empty());
        assert!(bodies.iter().all(|body| tools(body) == tools(&bodies[0])), "{bodies:?}");
    }
}

#[test]
fn b10_a_retry_takes_tokens_and_no_turn() {
    for wire in Wire::ALL {
        let answers = r#"[{"status": 500, "error": "trouble"}, {"text": "half", "no_end": true}]"#;
        let played = play("b10", wire, answers, &["--max-turns", "1"]);
        played.done();
        let [replied] = played.replied()[..] else { panic!("one request was expected") };
        let used: Vec<u64> = replied.attempts.iter().map(|attempt| attempt.usage.total()).collect();
        assert_eq!(used.len(), 3, "{used:?}");
        assert!(used[0] == 0 && used[1] > 0 && used[2] > 0, "what was begun is paid, what was refused is not: {used:?}");
        assert_eq!(replied.usage.total(), used.iter().sum::<u64>());
        let Some(What::Finished(finished)) = played.events.last().map(|event| &event.what) else { panic!("no end") };
        assert_eq!(finished.turns, 1);
        let refused = go_on(&played.place, wire, &played.server, &["-m", "more"]);
        assert_eq!(refused, 3, "the one turn is used");
    }
}

#[test]
fn b10_a_retry_that_does_not_fit_the_tokens_is_not_made() {
    for wire in Wire::ALL {
        let (place, server) = (Place::new(&format!("b10-tokens-{wire:?}")), Server::start(Vec::new()));
        let work = place.work().display().to_string();
        let mut args = vec!["run", "go"];
        args.extend(place.arguments_on(wire, &server, &work));
        assert_eq!(place.start(&args).code, 0);
        // A token is estimated for every three bytes: enough for one such request, and not for two.
        let tokens = (server.bodies()[0].len() / 2).to_string();
        server.restart(script(r#"[{"text": "half", "no_end": true}]"#));
        let mut args = vec!["run", "go", "--max-tokens", &tokens];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&args);
        assert_eq!((called.code, server.bodies().len(), server.faults()), (3, 1, 1), "{}", called.err);
    }
}
