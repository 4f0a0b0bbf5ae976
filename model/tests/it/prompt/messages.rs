//! What Anthropic's Messages is sent of its own.

use super::{check, result, sent, spec, tools};
use expect_test::expect;
use model::{Message, Prompt, SentPart, render};
use serde_json::json;
use trace::{Said, Status};

/// A reply with all that the Messages wire knows: thinking before, between and after calls.
fn thoughtful() -> Vec<Message> {
    let kept = |json| Said::Opaque { wire: "anthropic-messages".to_owned(), json };
    let thinking = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let call = |arguments: &str| Said::Call { id: "toolu".to_owned(), name: "bash".to_owned(), arguments: arguments.to_owned() };
    vec![
        Message::User(vec![SentPart::text("Mend \"it\"."), SentPart::text(" \n")]),
        Message::Reply {
            parts: vec![
                Said::Reasoning { text: "Look first.".to_owned() },
                kept(thinking("Look first.", "c2ln")),
                kept(json!({"type": "redacted_thinking", "data": "ZGF0YQ"})),
                Said::Text { text: "\n".to_owned() },
                Said::Text { text: "I look.".to_owned() },
                call("{\"command\": \"ls\"}"),
                kept(thinking("", "dHdv")),
                call("{\"cut"),
                kept(thinking("And", "")),
                Said::Cut { name: "bash".to_owned(), raw: "{\"comm".to_owned() },
                Said::Opaque { wire: "another".to_owned(), json: json!({"x": 1}) },
            ],
            calls: vec![sent(0, "{\"command\": \"ls\"}"), sent(1, "[1]")],
        },
        result(0, Status::Ok, "a.rs"),
        result(1, Status::Failed, "the arguments are not JSON"),
        Message::User(vec![SentPart::text("Your last call was cut off.")]),
        Message::Reply { parts: vec![kept(thinking("Only thought.", "c2ln"))], calls: vec![] },
        Message::Reply { parts: vec![Said::Text { text: "Done.".to_owned() }], calls: vec![] },
        Message::User(vec![SentPart::text("Go on.")]),
    ]
}

#[test]
fn the_messages_wire_keeps_the_order_of_thinking_words_and_calls() {
    check(
        "anthropic/claude-opus-5-5",
        &thoughtful(),
        expect![[r#"
            {"model":"claude-opus-5-5","stream":true,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"},"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"bash","description":"Runs a command.","input_schema":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages":[
            {"role":"user","content":[{"type":"text","text":"Mend \"it\"."}]},
            {"role":"assistant","content":[{"signature":"c2ln","thinking":"Look first.","type":"thinking"},{"data":"ZGF0YQ","type":"redacted_thinking"},
            {"type":"text","text":"I look."},
            {"type":"tool_use","id":"c2_0","name":"bash","input":{"command": "ls"}},{"signature":"dHdv","thinking":"","type":"thinking"},
            {"type":"tool_use","id":"c2_1","name":"bash","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c2_0","content":"a.rs"},
            {"type":"tool_result","tool_use_id":"c2_1","content":"the arguments are not JSON","is_error":true}]},
            {"role":"user","content":[{"type":"text","text":"Your last call was cut off.","cache_control":{"type":"ephemeral"}}]},
            {"role":"assistant","content":[{"type":"text","text":"Done."}]},
            {"role":"user","content":[{"type":"text","text":"Go on.","cache_control":{"type":"ephemeral"}}]}],"max_tokens":128000}"#]],
    );
}

#[test]
fn marks_tell_a_cache_where_this_request_ends_and_where_the_one_before_did() {
    let messages = thoughtful();
    let (spec, tools) = (spec("anthropic/test"), tools());
    let marked = |count| {
        let body = render(
            &spec,
            &Prompt { system: "Be brief.", tools: &tools, messages: &messages[..count], max_output: 9, schema: None },
        );
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let mut marked: Vec<String> = Vec::new();
        for field in ["tools", "system"] {
            let with_mark = body[field].as_array().unwrap().iter().filter(|block| block["cache_control"]["type"] == "ephemeral");
            marked.extend(with_mark.map(|_| field.to_owned()));
        }
        for (place, message) in body["messages"].as_array().unwrap().iter().enumerate() {
            for (block, fields) in message["content"].as_array().unwrap().iter().enumerate() {
                if fields["cache_control"]["type"] == "ephemeral" {
                    marked.push(format!("{place}.{block}"));
                }
            }
        }
        marked.join(" ")
    };
    // The task; its results; what was said besides; the next question.
    assert_eq!(marked(1), "tools system 0.0");
    assert_eq!(marked(4), "tools system 0.0 2.1");
    assert_eq!(marked(5), "tools system 0.0 3.0");
    assert_eq!(marked(8), "tools system 3.0 5.0");
}

#[test]
fn a_model_without_effort_is_not_asked_to_think_and_nothing_empty_is_sent() {
    let body = render(
        &spec("anthropic/claude-haiku-4-5"),
        &Prompt { system: "", tools: &[], messages: &[], max_output: 10, schema: None },
    );
    expect![[r#"{"model":"claude-haiku-4-5","stream":true,"messages":[],"max_tokens":10}"#]].assert_eq(&body);
}

/// The blocks of a reply of these parts and one call.
fn sent_back(parts: Vec<Said>) -> serde_json::Value {
    let messages = [Message::User(vec![SentPart::text("Go.")]), Message::Reply { parts, calls: vec![sent(0, "{}")] }];
    let spec = spec("anthropic/claude-opus-5-5");
    let body = render(&spec, &Prompt { system: "", tools: &[], messages: &messages, max_output: 10, schema: None });
    serde_json::from_str::<serde_json::Value>(&body).unwrap()["messages"][1]["content"].take()
}

/// The kinds of the blocks, and the texts of those that have one.
fn kinds(parts: Vec<Said>) -> String {
    let blocks = sent_back(parts);
    let kind = |block: &serde_json::Value| match block["text"].as_str() {
        Some(text) => format!("{text:?}"),
        None => block["type"].as_str().unwrap().to_owned(),
    };
    blocks.as_array().unwrap().iter().map(kind).collect::<Vec<_>>().join(" ")
}

fn thinking(signature: &str) -> Said {
    let json = json!({"type": "thinking", "thinking": "hm", "signature": signature});
    Said::Opaque { wire: "anthropic-messages".to_owned(), json }
}

fn text(text: &str) -> Said {
    Said::Text { text: text.to_owned() }
}

fn call() -> Said {
    Said::Call { id: "toolu".to_owned(), name: "bash".to_owned(), arguments: "{}".to_owned() }
}

#[test]
fn blank_text_goes_back_where_thinking_stands_on_both_sides() {
    let summary = || Said::Reasoning { text: "hm".to_owned() };
    let parts = vec![summary(), thinking("a"), text("\n\n"), summary(), thinking("b"), call()];
    assert_eq!(kinds(parts), r#"thinking "\n\n" thinking tool_use"#);
    assert_eq!(kinds(vec![thinking("a"), text(""), thinking("b"), call()]), "thinking thinking tool_use");
    assert_eq!(kinds(vec![thinking("a"), text("\n\n"), call()]), "thinking tool_use");
    assert_eq!(
        kinds(vec![text("\n"), thinking("a"), text(" "), text("Look."), thinking("b"), call()]),
        r#"thinking "Look." thinking tool_use"#
    );
    assert_eq!(kinds(vec![call(), thinking("a"), text("\n\n"), thinking("b")]), "tool_use");
    assert_eq!(kinds(vec![text("\n\n"), call()]), "tool_use");
}

#[test]
fn thinking_without_a_signature_stays_out() {
    let blocks = sent_back(vec![thinking("a"), thinking(""), call()]);
    assert_eq!(blocks.as_array().unwrap().len(), 2, "{blocks}");
    assert_eq!(blocks[0]["signature"], "a");
    let never_signed =
        Said::Opaque { wire: "anthropic-messages".to_owned(), json: json!({"type": "thinking", "thinking": "hm"}) };
    assert_eq!(kinds(vec![never_signed, text("Look."), call()]), r#""Look." tool_use"#);
    assert_eq!(kinds(vec![thinking("a"), text("\n\n"), thinking(""), call()]), "thinking tool_use");
}
