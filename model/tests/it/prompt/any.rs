//! What holds for any conversation.

use super::{picture, spec, tools};
use model::{Message, Prompt, SentCall, SentPart, Transcript, render};
use proptest::prelude::*;
use trace::{CallId, ModelSpec, Said, Seq, Status};

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        ".*".prop_map(|text| Said::Text { text }),
        ".*".prop_map(|text| Said::Reasoning { text }),
        ".*".prop_map(|raw| Said::Cut { name: "bash".to_owned(), raw }),
    ]
}

fn part() -> impl Strategy<Value = SentPart> {
    prop_oneof![4 => ".*".prop_map(SentPart::text), 1 => Just(()).prop_map(|()| picture())]
}

fn message() -> impl Strategy<Value = Message> {
    let call = (0usize..9, ".*").prop_map(|(index, arguments)| SentCall {
        id: CallId::new(Seq(1), index),
        name: "bash".to_owned(),
        arguments,
    });
    prop_oneof![
        proptest::collection::vec(part(), 0..3).prop_map(Message::User),
        (proptest::collection::vec(said(), 0..4), proptest::collection::vec(call, 0..3))
            .prop_map(|(parts, calls)| Message::Reply { parts, calls }),
        proptest::collection::vec(part(), 0..3).prop_map(|content| Message::Result {
            id: CallId::new(Seq(1), 0),
            status: Status::Ok,
            content
        }),
    ]
}

/// The bodies of all beginnings of `messages`, without the marks of a cache.
fn bodies(spec: &ModelSpec, system: &str, messages: &[Message]) -> Vec<String> {
    let tools = tools();
    let mut transcript = Transcript::new(spec, system, &tools, None);
    let mut bodies = Vec::new();
    for count in 0..=messages.len() {
        let max_output = 100 - count as u64;
        let prompt = Prompt { system, tools: &tools, messages: &messages[..count], max_output, schema: None };
        let body = transcript.body(max_output);
        assert_eq!(body, render(spec, &prompt), "what was extended is not what is rendered anew");
        bodies.push(body.replace(r#","cache_control":{"type":"ephemeral"}"#, ""));
        messages.get(count).into_iter().for_each(|message| transcript.push(message));
    }
    bodies
}

proptest! {
    #[test]
    fn a_body_extends_those_before_it(messages in proptest::collection::vec(message(), 0..8), system in ".*", id in 0usize..6) {
        let ids = ["openai-compatible/m", "openai/gpt-4.1", "openai-chat/gpt-4.1", "ollama/m", "anthropic/claude-opus-5", "gemini/gemini-2.5-pro"];
        let bodies = bodies(&spec(ids[id]), &system, &messages);
        let whole = bodies.last().unwrap();
        let read: serde_json::Value = serde_json::from_str(whole).unwrap();
        // An item of its own for each text and call, where there are no messages that hold them.
        // Pictures in results follow in a message of their own.
        let most = if !read["input"].is_array() { 2 * messages.len() + 1 } else { 7 * messages.len() };
        prop_assert!(read["messages"].as_array().or(read["input"].as_array()).or(read["contents"].as_array()).unwrap().len() <= most);
        for (count, earlier) in bodies.iter().enumerate() {
            // The results of one reply, which come together, are one message there, or are followed by their pictures.
            let amid = messages[..count].last().into_iter().chain(messages.get(count));
            if !ids[id].starts_with("openai/") && amid.filter(|message| matches!(message, Message::Result { .. })).count() == 2 {
                continue;
            }
            // A content of Gemini's may get more parts.
            let end = earlier.rfind(r#"]}],"generationConfig""#).or(earlier.rfind(']')).unwrap();
            prop_assert!(whole.starts_with(&earlier[..end]), "{} does not extend {}", whole, earlier);
        }
    }

    #[test]
    fn what_the_messages_wire_sends_is_what_its_api_takes(messages in proptest::collection::vec(message(), 0..8)) {
        let spec = spec("anthropic/claude-opus-5");
        let body = render(&spec, &Prompt { system: "s", tools: &tools(), messages: &messages, max_output: 1, schema: None });
        let marks = body.matches(r#""cache_control":{"type":"ephemeral"}"#).count();
        prop_assert!(marks <= 4, "{} marks", marks);
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        for message in body["messages"].as_array().unwrap() {
            let content = message["content"].as_array().unwrap();
            prop_assert!(!content.is_empty());
            for block in content {
                match block["type"].as_str().unwrap() {
                    "text" => prop_assert!(!block["text"].as_str().unwrap().trim().is_empty()),
                    "image" => prop_assert!(block["source"]["data"].is_string()),
                    "tool_use" => prop_assert!(block["input"].is_object()),
                    "tool_result" => prop_assert_eq!(&message["role"], "user"),
                    other => prop_assert!(false, "{}", other),
                }
            }
        }
    }
}
