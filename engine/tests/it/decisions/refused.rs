//! What a server refuses of the conversation itself: thoughts, and replies that the provider declined.

use super::{after, begin, say};
use crate::story::Story;
use engine::{Next, decide};
use expect_test::expect;
use serde_json::json;
use trace::{Fault, FaultClass, Said, Status, Stop};

#[test]
fn thoughts_that_a_server_refuses_are_left_out_and_the_request_is_made_again() {
    let thought = || {
        let json = json!({"reasoning_in": "reasoning_content", "reasoning_details": [{"data": "c2ln"}]});
        vec![
            Said::Reasoning { text: "let me see".into() },
            Said::Opaque { wire: "openai-chat".into(), json },
            Said::Text { text: "I look.".into() },
        ]
    };
    let refuse = |story: Story, message: &str| {
        let fault = Fault { class: FaultClass::Rejected, status: Some(400), request_id: None, message: message.into() };
        story.replied(Vec::new(), Stop::Error(fault))
    };
    let sent = |story: &Story| match decide(&story.progress) {
        Next::Think(request) => request.body.contains("let me see"),
        next => panic!("{}", say(&next)),
    };
    let story = begin().replied(thought(), Stop::End).message("and now?");
    assert!(sent(&story));
    for words in [
        "The encrypted content gAAA could not be verified.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Function call is missing a thought_signature in functionCall parts.",
        "property 'reasoning_content' is unsupported",
    ] {
        let again = refuse(story.clone(), words);
        assert!(!sent(&again), "{words}");
        // What is refused without any is refused for something else; and they do not come back.
        let ends = refuse(again, words);
        assert!(say(&decide(&ends.progress)).starts_with("finish infrastructure"), "{words}");
        assert!(!sent(&ends.session()));
    }
    after(&refuse(story, "no"), expect!["finish infrastructure: no"]);
}

#[test]
fn a_reply_that_the_provider_declined_stands_in_no_later_prompt() {
    let half = Said::Text { text: "Half a word".into() };
    let call = Said::Call { id: String::new(), name: "bash".into(), arguments: "{}".into() };
    let story = begin().said("Hello.").message("carry on").replied(vec![half, call], Stop::Refused);
    let story = story.began(0).observed(0, Status::Interrupted);
    after(&story, expect!["finish refused: Half a word"]);
    let story = story.message("something else");
    let Next::Think(request) = decide(&story.progress) else { panic!("{}", say(&decide(&story.progress))) };
    let places = ["Hello.", "carry on", "something else"].map(|words| request.body.find(words).unwrap());
    assert!(places.is_sorted(), "{}", request.body);
    let blank = begin().replied(vec![Said::Text { text: " \n".into() }], Stop::Refused);
    after(&blank, expect!["finish refused: the provider declines this content"]);
    assert!(!request.body.contains("Half a word") && !request.body.contains("tool_calls"), "{}", request.body);
}
