//! Agents that go in a circle, on every wire and through the real binary (bug case I3).

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::Wire;
use crate::wires::play;
use serde_json::{Value, json};
use trace::Status;

fn script_of(commands: impl IntoIterator<Item = String>) -> String {
    let call = |command: String| json!({"calls": [{"name": "bash", "arguments": {"command": command}}]});
    json!(commands.into_iter().map(call).collect::<Vec<Value>>()).to_string()
}

#[test]
fn i3_a_call_that_comes_to_the_same_ten_times_is_warned_of_once_and_then_stopped() {
    let answers = script_of((0..10).map(|_| "cat notes.txt".to_owned()));
    for wire in Wire::ALL {
        let played = play("i3", wire, &answers, &["--json"]);
        assert_eq!(played.called.code, 1, "{}", played.called.err);
        let last: Value = serde_json::from_str(played.called.out.lines().last().unwrap()).unwrap();
        let reason = "9 calls in a row brought nothing new, bash {\"command\":\"cat notes.txt\"} the same 10 times";
        assert_eq!((&last["outcome"], &last["reason"]), (&json!("failed"), &json!(reason)), "{last}");
        let bodies = played.server.bodies();
        assert_eq!((bodies.len(), played.observed().len()), (10, 10), "no request follows the stop");
        let warned: Vec<usize> = bodies.iter().map(|body| body.matches("You go in a circle").count()).collect();
        assert_eq!(warned, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
        every_body_extends_the_one_before(&bodies);
    }
}

#[test]
fn i3_a_batch_of_forty_different_calls_is_not_accused() {
    // A reply for each; all in one reply; eight replies of five.
    let made = |numbers: std::ops::Range<usize>| {
        let call = |n| json!({"name": "bash", "arguments": {"command": format!("touch made-{n}")}});
        json!({"calls": numbers.map(call).collect::<Vec<Value>>()})
    };
    let batches = |size: usize| (0..40).step_by(size).map(|first| made(first..first + size)).collect::<Vec<Value>>();
    for wire in Wire::ALL {
        for size in [1, 40, 5] {
            let played = play(&format!("i3-batch-{size}"), wire, &json!(batches(size)).to_string(), &[]);
            played.done();
            assert_eq!((played.server.bodies().len(), played.observed().len()), (40 / size + 1, 40), "{wire:?}");
            assert!(played.observed().iter().all(|observed| observed.status == Status::Ok), "{wire:?}");
            assert!((0..40).all(|n| played.place.work().join(format!("made-{n}")).exists()), "{wire:?}");
            assert!(played.server.bodies().iter().all(|body| !body.contains("You go in a circle")), "{wire:?}: {size}");
        }
    }
}
