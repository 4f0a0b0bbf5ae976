//! What a server refuses of the conversation itself, on every wire: thoughts, and replies that the provider declined.

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::Wire;
use crate::support::{on_every, on_every_wire};
use crate::wires::play;
use serde_json::json;

#[test]
fn thoughts_that_a_server_refuses_end_no_run() {
    let refused = [
        (Wire::Chat, "property 'reasoning_content' is unsupported"),
        (Wire::Responses, "The encrypted content c2ln... could not be verified."),
        (Wire::Messages, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (Wire::Gemini, "Function call is missing a thought_signature in functionCall parts."),
    ];
    on_every(&refused, |(wire, words)| {
        let call = json!({"name": "bash", "arguments": {"command": "echo once >> ran"}});
        let answers = json!([{"thought": "let me see", "calls": [call]}, {"status": 400, "error": words}]);
        let played = play("thoughts", wire, &answers.to_string(), &[]);
        played.done();
        let bodies = played.server.bodies();
        let holds = |body: &String| body.contains("c2lnbmVk") || body.contains("let me see");
        assert_eq!(bodies.iter().map(holds).collect::<Vec<_>>(), [false, true, false], "{wire:?}");
        assert_eq!((played.place.read("ran").as_str(), played.is_paired(wire)), ("once\n", 1));
    });
}

#[test]
fn what_a_provider_declined_stands_in_no_later_request() {
    let answers = json!([{"text": "I would rather", "finish": "content_filter"}]).to_string();
    on_every_wire(|wire| {
        let played = play("declined", wire, &answers, &[]);
        assert_eq!(played.called.code, 1, "{:?}", played.called);
        let more =
            [vec!["resume", "--last", "--config", "none", "-m", "something else"], wire.arguments(&played.server.base_url)]
                .concat();
        let resumed = played.place.start(&more);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        let last = played.server.bodies().pop().unwrap();
        assert!(last.contains("something else") && !last.contains("I would rather"), "{last}");
        every_body_extends_the_one_before(&played.server.bodies());
    });
}
