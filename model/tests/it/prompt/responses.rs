//! What OpenAI Responses is sent of its own.

use super::{check, conversation, spec, tools};
use expect_test::expect;
use model::{Message, Prompt, render};
use serde_json::json;
use trace::{ModelSpec, Said, ToolSpec};

/// What OpenAI said on its own wire, and what it is told after it.
fn responses() -> Vec<Message> {
    let opaque = |json| Said::Opaque { wire: "openai-responses".to_owned(), json };
    let reasoning = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "c2VjcmV0"});
    let [task, mut reply, results @ ..] = <[Message; 7]>::try_from(conversation()).unwrap();
    if let Message::Reply { parts, calls } = &mut reply {
        let call = |name: &str| Said::Call { id: String::new(), name: name.to_owned(), arguments: "not sent".to_owned() };
        *parts = vec![
            Said::Reasoning { text: "Look first.".to_owned() },
            opaque(reasoning("rs_1")),
            opaque(json!({"type": "message", "phase": "commentary"})),
            Said::Text { text: "I look.".to_owned() },
            call("bash"),
            opaque(json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": null})),
            opaque(
                json!({"type": "reasoning", "id": "rs_3", "summary": [], "encrypted_content": "c2VjcmV0", "status": null, "content": null, "internal": {"a": 1}}),
            ),
            opaque(json!({"type": "reasoning", "id": "rs_4", "content": [{"type": "reasoning_text", "text": "Hm."}]})),
            call("bash"),
            opaque(reasoning("rs_5")),
            Said::Cut { name: "bash".to_owned(), raw: "{\"comm".to_owned() },
            Said::Opaque { wire: "another".to_owned(), json: reasoning("x") },
        ];
        calls[1].name = "read".to_owned();
    }
    [vec![task, reply], results.to_vec()].concat()
}

#[test]
fn reasoning_goes_back_before_what_it_led_to_with_no_field_that_would_be_refused() {
    check(
        "openai/gpt-6-sol",
        &responses(),
        expect![[r#"
            {"model":"gpt-6-sol","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"66627a3036be44a044d6a117fb3b2f2c","parallel_tool_calls":true,"instructions":"Be brief.","tools":[{"type":"function","name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"},"strict":false}],"input":[
            {"type":"message","role":"user","content":[{"type":"input_text","text":"Mend \"it\".\n"},
            {"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=","detail":"high"}]},
            {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VjcmV0"},
            {"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},
            {"type":"function_call","call_id":"c2_0","name":"bash","arguments":"{\"command\":\"ls\"}"},
            {"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"c2VjcmV0"},
            {"type":"reasoning","id":"rs_4","summary":[],"content":[{"text":"Hm.","type":"reasoning_text"}]},
            {"type":"function_call","call_id":"c2_1","name":"read","arguments":"{}"},
            {"type":"function_call_output","call_id":"c2_0","output":"a.rs"},
            {"type":"function_call_output","call_id":"c2_1","output":"the arguments are not JSON"},
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]},
            {"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}],"max_output_tokens":128000}"#]],
    );
}

#[test]
fn a_model_that_does_not_reason_is_not_asked_for_it_and_an_effort_is_passed_on() {
    check(
        "openai/gpt-4.1",
        &[],
        expect![[r#"
        {"model":"gpt-4.1","stream":true,"store":false,"prompt_cache_key":"66627a3036be44a044d6a117fb3b2f2c","parallel_tool_calls":true,"instructions":"Be brief.","tools":[{"type":"function","name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"},"strict":false}],"input":[
        ],"max_output_tokens":8192}"#]],
    );
    let spec = ModelSpec { effort: Some("low".to_owned()), ..spec("openai/unheard-of") };
    let body = render(&spec, &Prompt { system: "", tools: &[], messages: &[], max_output: 10, schema: None });
    expect![[r#"{"model":"unheard-of","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"d53d18c23212ea7b6300594bb89bce60","reasoning":{"effort":"low"},"input":[],"max_output_tokens":10}"#]].assert_eq(&body);
}

#[test]
fn the_key_of_the_cache_is_that_of_the_beginning() {
    let key = |system: &str, tools: &[ToolSpec], messages: &[Message]| {
        let body = render(&spec("openai/gpt-5"), &Prompt { system, tools, messages, max_output: 10, schema: None });
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        body["prompt_cache_key"].as_str().unwrap().to_owned()
    };
    let one = key("Be brief.", &tools(), &[]);
    assert_eq!(one.len(), 32);
    assert_eq!(one, key("Be brief.", &tools(), &responses()));
    assert_ne!(one, key("Be long.", &tools(), &[]));
    assert_ne!(one, key("Be brief.", &[], &[]));
}
