//! The bytes of requests.

use expect_test::{Expect, expect};
use model::{Message, Prompt, SentCall, catalog, render};
use proptest::prelude::*;
use serde_json::json;
use trace::{CallId, Digest, ModelSpec, Part, Said, Seq, Status, ToolSpec};

fn spec(id: &str) -> ModelSpec {
    let overrides = catalog::Overrides { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..Default::default() };
    catalog::find(id, &overrides).unwrap()
}

fn conversation() -> Vec<Message> {
    let call = |index: usize, arguments: &str| SentCall {
        id: CallId::new(Seq(2), index),
        name: "bash".to_owned(),
        arguments: arguments.to_owned(),
    };
    let result =
        |index, status, text: &str| Message::Result { id: CallId::new(Seq(2), index), status, content: vec![Part::text(text)] };
    let blob = Digest::of(b"");
    vec![
        Message::User(vec![Part::text("Mend \"it\".\n"), Part::Image { blob, media_type: "image/png".to_owned() }]),
        Message::Reply {
            parts: vec![
                Said::Reasoning { text: "Look first.".to_owned() },
                Said::Call { id: "theirs".to_owned(), name: "bash".to_owned(), arguments: "{\"command\":\"ls\"}".to_owned() },
                Said::Cut { name: "bash".to_owned(), raw: "{\"comm".to_owned() },
                Said::Opaque {
                    wire: "openai-chat".to_owned(),
                    json: json!({"reasoning_in": "reasoning", "reasoning_details": [{"signature": "c2ln"}]}),
                },
                Said::Opaque { wire: "another".to_owned(), json: json!({"x": 1}) },
            ],
            calls: vec![call(0, "{\"command\":\"ls\"}"), call(1, "{}")],
        },
        result(0, Status::Ok, "a.rs"),
        result(1, Status::Failed, "the arguments are not JSON"),
        Message::Reply { parts: vec![Said::Reasoning { text: "Only thought.".to_owned() }], calls: vec![] },
        Message::Reply { parts: vec![Said::Text { text: "Done.".to_owned() }], calls: vec![] },
        Message::User(vec![Part::text("Go on.")]),
    ]
}

fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    vec![ToolSpec { name: "bash".to_owned(), description: "Runs a command.".to_owned(), parameters, read_only: false }]
}

/// The body for `id`, a message a line.
fn check(id: &str, messages: &[Message], expected: Expect) {
    let (spec, tools) = (spec(id), tools());
    let body = render(&spec, &Prompt { system: "Be brief.", tools: &tools, messages, max_output: spec.max_output });
    expected.assert_eq(&body.replace("\"messages\":[", "\"messages\":[\n").replace("},{\"role\"", "},\n{\"role\""));
}

#[test]
fn an_unknown_server_gets_back_what_it_sent() {
    check(
        "openai-compatible/some/model",
        &conversation(),
        expect![[r#"
            {"model":"some/model","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"user","content":"Mend \"it\".\n\n[image not sent: this wire has no images yet]"},
            {"role":"assistant","content":null,"reasoning":"Look first.","reasoning_details":[{"signature":"c2ln"}],"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2_1","type":"function","function":{"name":"bash","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c2_0","content":"a.rs"},
            {"role":"tool","tool_call_id":"c2_1","content":"the arguments are not JSON"},
            {"role":"assistant","content":"Done."},
            {"role":"user","content":"Go on."}],"max_tokens":8192}"#]],
    );
}

#[test]
fn openai_has_a_field_of_its_own_for_the_limit_and_gets_no_reasoning() {
    check(
        "openai/gpt-6-sol",
        &conversation()[..2],
        expect![[r#"
            {"model":"gpt-6-sol","stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"none","tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"user","content":"Mend \"it\".\n\n[image not sent: this wire has no images yet]"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2_1","type":"function","function":{"name":"bash","arguments":"{}"}}]}],"max_completion_tokens":128000}"#]],
    );
}

#[test]
fn a_row_says_where_reasoning_goes() {
    check(
        "llamacpp/m",
        &conversation()[1..2],
        expect![[r#"
            {"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"assistant","content":null,"reasoning_content":"Look first.","reasoning_details":[{"signature":"c2ln"}],"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2_1","type":"function","function":{"name":"bash","arguments":"{}"}}]}],"max_tokens":8192}"#]],
    );
    check(
        "ollama/m",
        &conversation()[1..2],
        expect![[r#"
            {"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"assistant","content":null,"reasoning":"Look first.","reasoning_details":[{"signature":"c2ln"}],"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2_1","type":"function","function":{"name":"bash","arguments":"{}"}}]}],"max_tokens":8192}"#]],
    );
}

#[test]
fn empty_instructions_and_no_tools_are_not_sent() {
    let body = render(&spec("vllm/m"), &Prompt { system: "", tools: &[], messages: &[], max_output: 10 });
    expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[],"max_tokens":10}"#]]
        .assert_eq(&body);
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        ".*".prop_map(|text| Said::Text { text }),
        ".*".prop_map(|text| Said::Reasoning { text }),
        ".*".prop_map(|raw| Said::Cut { name: "bash".to_owned(), raw }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let call = (0usize..9, ".*").prop_map(|(index, arguments)| SentCall {
        id: CallId::new(Seq(1), index),
        name: "bash".to_owned(),
        arguments,
    });
    prop_oneof![
        proptest::collection::vec(".*".prop_map(Part::text), 0..3).prop_map(Message::User),
        (proptest::collection::vec(said(), 0..4), proptest::collection::vec(call, 0..3))
            .prop_map(|(parts, calls)| Message::Reply { parts, calls }),
        (".*").prop_map(|text| Message::Result {
            id: CallId::new(Seq(1), 0),
            status: Status::Ok,
            content: vec![Part::text(text)]
        }),
    ]
}

proptest! {
    #[test]
    fn a_body_extends_those_before_it(messages in proptest::collection::vec(message(), 0..8), system in ".*", id in 0usize..4) {
        let spec = spec(["openai-compatible/m", "openai/gpt-4.1", "openrouter/a/b", "ollama/m"][id]);
        let tools = tools();
        let body = |count: usize| render(&spec, &Prompt { system: &system, tools: &tools, messages: &messages[..count], max_output: 100 - count as u64 });
        let whole = body(messages.len());
        let read: serde_json::Value = serde_json::from_str(&whole).unwrap();
        prop_assert!(read["messages"].as_array().unwrap().len() <= messages.len() + 1);
        for count in 0..messages.len() {
            let earlier = body(count);
            let extends = whole.starts_with(&earlier[..earlier.rfind(']').unwrap()]);
            prop_assert!(extends, "{} does not extend {}", whole, earlier);
        }
    }
}
