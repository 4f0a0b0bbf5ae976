//! Replies that make very many calls, and calls of tools that no provider would take the name of (bug cases A7, B2, I3).

use crate::support::on_every_wire;
use crate::support::server::Wire;
use crate::wires::{Played, play};
use serde_json::{Value, json};
use std::fs;
use std::ops::RangeInclusive;
use trace::{Status, What};

const DENIED: &str = "Not run: of the calls of one reply the first 50 are served. Send this one again if it is still needed.";
const CLAIM: &str = "Not accepted: this reply makes more calls than the 50 that are served. See to the others, then claim again.";

fn call(number: u32) -> Value {
    json!({"id": format!("n{number}"), "name": "bash", "arguments": {"command": format!("echo {number} >> ran")}})
}

fn calls(numbers: RangeInclusive<u32>) -> Vec<Value> {
    numbers.map(call).collect()
}

fn submit() -> Value {
    json!({"id": "done", "name": "submit", "arguments": {"answer": "all of it"}})
}

/// What `call` leaves in the workspace.
fn lines(numbers: RangeInclusive<u32>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

fn statuses(played: &Played) -> Vec<Status> {
    played.observed().iter().map(|observed| observed.status).collect()
}

#[test]
fn a7_calls_beyond_fifty_are_denied_one_by_one() {
    let unusable = [
        json!({"id": "bad", "name": "bash", "arguments": "{\"command\": \"ec"}),
        json!({"id": "none", "name": "nothing", "arguments": {}}),
    ];
    let first = [calls(1..=52), unusable.to_vec()].concat();
    let answers = json!([{"calls": first}, {"calls": calls(51..=52)}]).to_string();
    on_every_wire(|wire| {
        let played = play("a7-cap", wire, &answers, &[]);
        played.done();
        assert_eq!(played.place.read("ran"), lines(1..=52), "each was served once, and the rest when it was sent again");
        assert_eq!(statuses(&played), [vec![Status::Ok; 50], vec![Status::Denied; 4], vec![Status::Ok; 2]].concat());
        assert!(played.seen()[50..54].iter().all(|seen| seen == DENIED));
        assert_eq!(played.is_paired(wire), 56, "each has its own result, in call order");
    });
}

#[test]
fn a7_a_reply_of_more_calls_than_a_message_may_hold_ends_no_run() {
    let answers = json!([{"text": "All at once.", "calls": calls(1..=200)}]).to_string();
    on_every_wire(|wire| {
        let played = play("a7-many", wire, &answers, &[]);
        played.done();
        assert_eq!((played.place.read("ran"), played.observed().len()), (lines(1..=50), 200));
        // The server looks at each body: OpenAI's chat takes no message with more.
        assert_eq!(played.is_paired(wire), 128);
        let last = played.server.bodies().pop().unwrap();
        assert_eq!(last.matches("72 more calls of your reply, not shown here, were not run either.").count(), 1, "{last}");
    });
}

#[test]
fn a7_a_claim_beside_calls_that_were_denied_is_not_accepted() {
    let first = [vec![submit()], calls(1..=55)].concat();
    let answers = json!([{"calls": first}, {"calls": calls(50..=55)}]).to_string();
    on_every_wire(|wire| {
        let played = play("a7-claim", wire, &answers, &[]);
        played.done();
        assert_eq!((played.seen()[0].as_str(), played.place.read("ran")), (CLAIM, lines(1..=55)));
        assert!(!played.called.out.contains("all of it"));
    });
}

#[test]
fn i3_calls_that_are_denied_twice_for_being_too_many_are_no_circle() {
    let listed = |id: &str| json!({"calls": [{"id": id, "name": "bash", "arguments": {"command": "ls"}}]});
    let answers =
        json!([listed("l1"), {"calls": calls(1..=110)}, {"calls": calls(51..=110)}, {"calls": calls(101..=110)}]).to_string();
    on_every_wire(|wire| {
        let played = play("i3-denied", wire, &answers, &["--context", "200000"]);
        played.done();
        assert_eq!(played.place.read("ran"), lines(1..=110));
        assert!(played.server.bodies().iter().all(|body| !body.contains("You go in a circle")));
    });
}

#[test]
fn b2_a_denial_that_the_end_of_the_process_kept_from_being_told_is_told_as_a_denial() {
    let answers = json!([{"calls": calls(1..=53)}]).to_string();
    on_every_wire(|wire| {
        let played = play("b2-denial", wire, &answers, &[]);
        played.done();
        // The record ends with the second denied call: it was begun, and its observation is not there.
        let denied = |what: &What| matches!(what, What::Called(called) if called.id.as_str().ends_with("_51"));
        let good = played.events.iter().position(|event| denied(&event.what)).unwrap() + 1;
        let path = played.place.run_folder().join("trace.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.split_inclusive('\n').take(good).collect::<String>()).unwrap();
        let resume = [vec!["resume", "--last", "--config", "none"], wire.arguments(&played.server.base_url)].concat();
        let resumed = played.place.start(&resume);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        assert_eq!(played.place.read("ran"), lines(1..=50));
        let told = played.place.events().into_iter().filter_map(|event| match event.what {
            What::Observed(observed) => Some((observed.status, trace::text_of(&observed.content))),
            _ => None,
        });
        let told: Vec<_> = told.skip(50).collect();
        assert_eq!(told, vec![(Status::Denied, DENIED.to_owned()); 3]);
    });
}

#[test]
fn b2_a_name_that_no_provider_takes_does_not_end_a_run() {
    let long = "name_".repeat(60);
    let named = |name: &str| json!({"id": format!("of {}", name.len()), "name": name, "arguments": {}});
    let answers = json!([{"calls": [named("bash.run now!"), named(&long), named("löschen"), call(1)]}]).to_string();
    on_every_wire(|wire| {
        let played = play("b2-name", wire, &answers, &[]);
        played.done();
        use Status::{Failed, Ok};
        assert_eq!((statuses(&played), played.is_paired(wire)), (vec![Failed, Failed, Failed, Ok], 4));
        assert!(played.seen()[0].starts_with("There is no tool named bash_run_now_. The tools are: "), "{:?}", played.seen());
        let last = played.server.bodies().pop().unwrap();
        assert!(!last.contains("run now!") && !last.contains(&long), "{last}");
        // A later session sends it so too.
        let more = [vec!["resume", "--last", "--config", "none", "-m", "and?"], wire.arguments(&played.server.base_url)].concat();
        let resumed = played.place.start(&more);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        if wire == Wire::Chat {
            assert!(played.server.bodies().pop().unwrap().contains("bash_run_now_"));
        }
    });
}

#[test]
fn b6_an_account_tells_what_was_done_and_not_what_was_denied_for_being_too_many() {
    let read = json!({"id": "r", "name": "read", "arguments": {"path": "ran"}});
    let long = |id: &str| json!({"id": id, "name": "bash", "arguments": {"command": format!("echo {id}; seq 800")}});
    let later = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|id| json!({"calls": [long(id)]}));
    let answers =
        [vec![json!({"calls": [call(0)]}), json!({"calls": [read]}), json!({"calls": calls(1..=400)})], later.to_vec()].concat();
    on_every_wire(|wire| {
        let played = play("b6-many", wire, &json!(answers).to_string(), &["--context", "6000"]);
        played.done();
        let last = played.server.bodies().pop().unwrap();
        let account = last.split("What stood here was folded away").nth(1).unwrap_or_else(|| panic!("no account: {last}"));
        assert!(account.contains("echo 50 >> ran") && !account.contains("(denied"), "{account}");
    });
}
