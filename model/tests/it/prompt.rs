//! The bytes of requests.

mod any;
mod gemini;
mod messages;
mod responses;

use expect_test::{Expect, expect};
use model::{Message, Prompt, SentCall, SentPart, SentPicture, Transcript, catalog, render};
use serde_json::json;
use trace::{CallId, ModelSpec, Said, Seq, Status, ToolSpec};

fn spec(id: &str) -> ModelSpec {
    let overrides = catalog::Overrides { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..Default::default() };
    catalog::find(id, &overrides).unwrap()
}

/// The head of a PNG, which is as much of it as anybody reads here.
fn picture() -> SentPart {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";
    SentPart::Picture(SentPicture::of(head).unwrap())
}

/// A call that is answered with words and a picture, beside one that is answered with a picture alone and failed.
fn seen() -> Vec<Message> {
    let ids = [0, 1].map(|index| CallId::new(Seq(2), index));
    let call = |id: &CallId| SentCall { id: id.clone(), name: "read".to_owned(), arguments: "{}".to_owned() };
    let said = || Said::Call { id: String::new(), name: "read".to_owned(), arguments: "{}".to_owned() };
    let [first, second] = ids.clone();
    vec![
        Message::User(vec![picture(), SentPart::text("What is it?")]),
        Message::Reply { parts: vec![said(), said()], calls: ids.iter().map(call).collect() },
        Message::Result { id: first, status: Status::Ok, content: vec![SentPart::text("[a picture]"), picture()] },
        Message::Result { id: second, status: Status::Failed, content: vec![picture()] },
        Message::User(vec![SentPart::text("Go on.")]),
    ]
}

#[test]
fn a_picture_in_a_result_stands_where_the_wire_takes_it() {
    let say = |id: &str, expected: Expect| {
        let body = render(&spec(id), &Prompt { system: "", tools: &[], messages: &seen(), max_output: 10, schema: None });
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let messages = body["messages"].as_array().or(body["input"].as_array()).or(body["contents"].as_array()).unwrap();
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        expected.assert_eq(&lines.replace("iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=", "PNG"));
    };
    say(
        "openai-compatible/m",
        expect![[r#"
        {"content":[{"image_url":{"detail":"high","url":"data:image/png;base64,PNG"},"type":"image_url"},{"text":"What is it?","type":"text"}],"role":"user"}
        {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"c2_0","type":"function"},{"function":{"arguments":"{}","name":"read"},"id":"c2_1","type":"function"}]}
        {"content":"[a picture]","role":"tool","tool_call_id":"c2_0"}
        {"content":"","role":"tool","tool_call_id":"c2_1"}
        {"content":[{"text":"Shown by c2_0:","type":"text"},{"image_url":{"detail":"high","url":"data:image/png;base64,PNG"},"type":"image_url"}],"role":"user"}
        {"content":[{"text":"Shown by c2_1:","type":"text"},{"image_url":{"detail":"high","url":"data:image/png;base64,PNG"},"type":"image_url"}],"role":"user"}
        {"content":"Go on.","role":"user"}
    "#]],
    );
    say(
        "openai/gpt-6-sol",
        expect![[r#"
        {"content":[{"detail":"high","image_url":"data:image/png;base64,PNG","type":"input_image"},{"text":"What is it?","type":"input_text"}],"role":"user","type":"message"}
        {"arguments":"{}","call_id":"c2_0","name":"read","type":"function_call"}
        {"arguments":"{}","call_id":"c2_1","name":"read","type":"function_call"}
        {"call_id":"c2_0","output":[{"text":"[a picture]","type":"input_text"},{"detail":"high","image_url":"data:image/png;base64,PNG","type":"input_image"}],"type":"function_call_output"}
        {"call_id":"c2_1","output":[{"detail":"high","image_url":"data:image/png;base64,PNG","type":"input_image"}],"type":"function_call_output"}
        {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#]],
    );
    say(
        "anthropic/claude-opus-5",
        expect![[r#"
        {"content":[{"source":{"data":"PNG","media_type":"image/png","type":"base64"},"type":"image"},{"cache_control":{"type":"ephemeral"},"text":"What is it?","type":"text"}],"role":"user"}
        {"content":[{"id":"c2_0","input":{},"name":"read","type":"tool_use"},{"id":"c2_1","input":{},"name":"read","type":"tool_use"}],"role":"assistant"}
        {"content":[{"content":[{"text":"[a picture]","type":"text"},{"source":{"data":"PNG","media_type":"image/png","type":"base64"},"type":"image"}],"tool_use_id":"c2_0","type":"tool_result"},{"content":[{"source":{"data":"PNG","media_type":"image/png","type":"base64"},"type":"image"}],"tool_use_id":"c2_1","type":"tool_result"}],"role":"user"}
        {"content":[{"cache_control":{"type":"ephemeral"},"text":"Go on.","type":"text"}],"role":"user"}
    "#]],
    );
    say(
        "gemini/gemini-3-pro",
        expect![[r#"
            {"parts":[{"inlineData":{"data":"PNG","mimeType":"image/png"}},{"text":"What is it?"}],"role":"user"}
            {"parts":[{"functionCall":{"args":{},"name":"read"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"args":{},"name":"read"}}],"role":"model"}
            {"parts":[{"functionResponse":{"name":"read","parts":[{"inlineData":{"data":"PNG","mimeType":"image/png"}}],"response":{"output":"[a picture]"}}},{"functionResponse":{"name":"read","parts":[{"inlineData":{"data":"PNG","mimeType":"image/png"}}],"response":{"error":""}}}],"role":"user"}
            {"parts":[{"text":"Go on."}],"role":"user"}
        "#]],
    );
    say(
        "gemini/gemini-2.5-pro",
        expect![[r#"
        {"parts":[{"inlineData":{"data":"PNG","mimeType":"image/png"}},{"text":"What is it?"}],"role":"user"}
        {"parts":[{"functionCall":{"args":{},"name":"read"}},{"functionCall":{"args":{},"name":"read"}}],"role":"model"}
        {"parts":[{"functionResponse":{"name":"read","response":{"output":"[a picture]"}}},{"functionResponse":{"name":"read","response":{"error":""}}}],"role":"user"}
        {"parts":[{"text":"Shown by read:"},{"inlineData":{"data":"PNG","mimeType":"image/png"}},{"text":"Shown by read:"},{"inlineData":{"data":"PNG","mimeType":"image/png"}}],"role":"user"}
        {"parts":[{"text":"Go on."}],"role":"user"}
    "#]],
    );
}

#[test]
fn the_form_of_the_answer_stands_where_each_wire_has_it() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let say = |id: &str, expected: Expect| {
        let messages = [Message::User(vec![SentPart::text("How many?")])];
        let tools = tools();
        let prompt = Prompt { system: "", tools: &tools, messages: &messages, max_output: 10, schema: None };
        let without = render(&spec(id), &prompt);
        let with = render(&spec(id), &Prompt { schema: Some(&schema), ..prompt });
        // What stands in the one and not in the other.
        let same = with.bytes().zip(without.bytes()).take_while(|(one, other)| one == other).count();
        let rest = with.len() - without.len();
        assert_eq!(with[same + rest..], without[same..], "one thing is added");
        expected.assert_eq(&with[same..same + rest]);
    };
    say(
        "openai-chat/gpt-6-sol",
        expect![[
            r#"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},"strict":true}},""#
        ]],
    );
    say(
        "openai/gpt-6-sol",
        expect![[
            r#"text":{"format":{"type":"json_schema","name":"answer","schema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},"strict":true}},""#
        ]],
    );
    say(
        "anthropic/claude-opus-5",
        expect![[
            r#","format":{"type":"json_schema","schema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}}"#
        ]],
    );
    say(
        "gemini/gemini-3-pro",
        expect![[
            r#"responseMimeType":"application/json","responseJsonSchema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},""#
        ]],
    );
    // Those are told in words only: nobody knows the server, or the API refuses it beside tools.
    say("openai-compatible/m", expect![""]);
    say("gemini/gemini-2.5-pro", expect![""]);
}

#[test]
fn a_picture_counts_as_a_number_of_tokens_that_its_size_does_not_change() {
    let large = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0"[..], &[7; 1 << 20]].concat();
    for id in
        ["openai-compatible/m", "openai/gpt-6-sol", "anthropic/claude-opus-5", "gemini/gemini-3-pro", "gemini/gemini-2.5-pro"]
    {
        let tokens = |part: SentPart| {
            let mut transcript = Transcript::new(&spec(id), "", &[], None);
            transcript.push(&Message::User(vec![SentPart::text("What is it?"), part]));
            transcript.tokens()
        };
        let small = tokens(picture());
        assert!((5_000..5_300).contains(&small), "{id}: {small}");
        assert_eq!(tokens(SentPart::Picture(SentPicture::of(&large).unwrap())), small, "{id}");
    }
}

/// A call of the reply at event 2, as it is sent back.
fn sent(index: usize, arguments: &str) -> SentCall {
    SentCall { id: CallId::new(Seq(2), index), name: "bash".to_owned(), arguments: arguments.to_owned() }
}

/// What came of it.
fn result(index: usize, status: Status, text: &str) -> Message {
    Message::Result { id: CallId::new(Seq(2), index), status, content: vec![SentPart::text(text)] }
}

fn conversation() -> Vec<Message> {
    vec![
        Message::User(vec![SentPart::text("Mend \"it\".\n"), picture()]),
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
            calls: vec![sent(0, "{\"command\":\"ls\"}"), sent(1, "{}")],
        },
        result(0, Status::Ok, "a.rs"),
        result(1, Status::Failed, "the arguments are not JSON"),
        Message::Reply { parts: vec![Said::Reasoning { text: "Only thought.".to_owned() }], calls: vec![] },
        Message::Reply { parts: vec![Said::Text { text: "Done.".to_owned() }], calls: vec![] },
        Message::User(vec![SentPart::text("Go on.")]),
    ]
}

fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    vec![ToolSpec { name: "bash".to_owned(), description: "Runs a command.".to_owned(), parameters, read_only: false }]
}

/// The body for `id`, a message a line.
fn check(id: &str, messages: &[Message], expected: Expect) {
    let (spec, tools) = (spec(id), tools());
    let body = render(&spec, &Prompt { system: "Be brief.", tools: &tools, messages, max_output: spec.max_output, schema: None });
    expected.assert_eq(
        &body
            .replace("\"messages\":[", "\"messages\":[\n")
            .replace("},{\"role\"", "},\n{\"role\"")
            .replace("\"input\":[", "\"input\":[\n")
            .replace("},{\"type\"", "},\n{\"type\"")
            .replace("\"contents\":[", "\"contents\":[\n"),
    );
}

#[test]
fn an_unknown_server_gets_back_what_it_sent() {
    check(
        "openai-compatible/some/model",
        &conversation(),
        expect![[r#"
            {"model":"some/model","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"Mend \"it\".\n"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=","detail":"high"}}]},
            {"role":"assistant","content":null,"reasoning":"Look first.","reasoning_details":[{"signature":"c2ln"}],"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2_1","type":"function","function":{"name":"bash","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c2_0","content":"a.rs"},
            {"role":"tool","tool_call_id":"c2_1","content":"the arguments are not JSON"},
            {"role":"assistant","content":"Done."},
            {"role":"user","content":"Go on."}],"max_tokens":8192}"#]],
    );
}

#[test]
fn blank_words_beside_calls_are_not_sent() {
    let call = || Said::Call { id: String::new(), name: "bash".to_owned(), arguments: "{}".to_owned() };
    let parts = vec![Said::Text { text: "\n\n".to_owned() }, call()];
    check(
        "openai-compatible/some/model",
        &[Message::Reply { parts, calls: vec![sent(0, "{}")] }, result(0, Status::Ok, "a.rs")],
        expect![[r#"
            {"model":"some/model","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c2_0","content":"a.rs"}],"max_tokens":8192}"#]],
    );
}

#[test]
fn a_nul_that_was_said_is_not_sent_on_any_wire() {
    let arguments = r#"{"command":"echo \u0000x \\u0000"}"#;
    let call = || Said::Call { id: String::new(), name: "bash".to_owned(), arguments: arguments.to_owned() };
    let words = ["task", "thought", "words", "result"].map(|word| format!("{word}\0."));
    let [task, thought, said, seen] = words.clone();
    let messages = [
        Message::User(vec![SentPart::Text(task), picture()]),
        Message::Reply {
            parts: vec![Said::Reasoning { text: thought }, Said::Text { text: said }, call()],
            calls: vec![sent(0, arguments)],
        },
        result(0, Status::Ok, &seen),
    ];
    for id in ["openai-compatible/m", "openai/gpt-6-sol", "anthropic/claude-opus-5", "gemini/gemini-3-pro"] {
        let body = render(&spec(id), &Prompt { system: "", tools: &[], messages: &messages, max_output: 10, schema: None });
        let read: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert!(!read.to_string().replace(r"\\", "").contains(r"\u0000"), "{id}: {body}");
        for word in words.iter().filter(|word| !word.starts_with("thought") || id == "openai-compatible/m") {
            assert!(body.contains(&word.replace('\0', "\u{fffd}")), "{id}: {word:?} in {body}");
        }
        let arguments = match id {
            "openai-compatible/m" => read["messages"][1]["tool_calls"][0]["function"]["arguments"].as_str(),
            "openai/gpt-6-sol" => read["input"][2]["arguments"].as_str(),
            _ => None,
        };
        let arguments = arguments.map(|text| serde_json::from_str(text).unwrap());
        let arguments = arguments.unwrap_or_else(|| match id {
            "anthropic/claude-opus-5" => read["messages"][1]["content"][1]["input"].clone(),
            _ => read["contents"][1]["parts"][1]["functionCall"]["args"].clone(),
        });
        assert_eq!(arguments, json!({"command": "echo \u{fffd}x \\u0000"}), "{id}");
    }
}

#[test]
fn openai_s_chat_has_a_field_of_its_own_for_the_limit_and_gets_no_reasoning() {
    check(
        "openai-chat/gpt-6-sol",
        &conversation()[..2],
        expect![[r#"
            {"model":"gpt-6-sol","stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"none","tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
            {"role":"system","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"Mend \"it\".\n"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=","detail":"high"}}]},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c2_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2_1","type":"function","function":{"name":"bash","arguments":"{}"}}]}],"max_completion_tokens":128000}"#]],
    );
}

#[test]
fn a_row_says_what_a_server_refuses() {
    check(
        "mistral/m",
        &conversation()[1..4],
        expect![[r#"
        {"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}}],"messages":[
        {"role":"system","content":"Be brief."},
        {"role":"assistant","content":null,"tool_calls":[{"id":"000002000","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"000002001","type":"function","function":{"name":"bash","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"000002000","content":"a.rs"},
        {"role":"tool","tool_call_id":"000002001","content":"the arguments are not JSON"}],"max_tokens":8192}"#]],
    );
    let far = |seq, index| Message::Reply {
        parts: vec![Said::Call { id: String::new(), name: "bash".to_owned(), arguments: String::new() }],
        calls: vec![SentCall { id: CallId::new(Seq(seq), index), name: "bash".to_owned(), arguments: "{}".to_owned() }],
    };
    let ids = |messages: &[Message]| {
        let body = render(&spec("mistral/m"), &Prompt { system: "", tools: &[], messages, max_output: 10, schema: None });
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let ids = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["tool_calls"][0]["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let ids = ids(&[far(36, 7), far(36u64.pow(6) - 1, 999), far(36u64.pow(6), 0), far(1, 1000)]);
    assert_eq!(ids[..2], ["000010007", "zzzzzz999"]);
    assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{ids:?}");
}

#[test]
fn a_word_of_the_model_stands_between_results_and_a_user_where_a_row_says_so() {
    let roles = |id: &str, messages: &[Message]| {
        let body = render(&spec(id), &Prompt { system: "", tools: &[], messages, max_output: 10, schema: None });
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let messages = body["messages"].as_array().unwrap().iter();
        messages.map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let words = |results: usize| [&conversation()[1..2 + results], &[Message::User(vec![SentPart::text("Stop.")])]].concat();
    expect!["assistant tool tool assistant user"].assert_eq(&roles("mistral/m", &words(2)));
    expect!["assistant tool tool user"].assert_eq(&roles("vllm/m", &words(2)));
    // Before the pictures of results, and not once more behind them.
    expect!["user assistant tool tool assistant user user user"].assert_eq(&roles("mistral/m", &seen()));
    expect!["user assistant tool tool assistant user user"].assert_eq(&roles("mistral/m", &seen()[..4]));
    // A reply of which nothing is sent is no word of the model.
    let nothing = Message::Reply { parts: vec![Said::Reasoning { text: "hm".into() }], calls: Vec::new() };
    let mut messages = words(2);
    messages.insert(3, nothing);
    expect!["assistant tool tool assistant user"].assert_eq(&roles("mistral/m", &messages));
}

#[test]
fn a_schema_is_not_sent_beside_tools_where_a_row_says_so() {
    let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let sent = |id: &str, tools: &[ToolSpec]| {
        let spec = ModelSpec { structured: Some(true), ..spec(id) };
        let messages = [Message::User(vec![SentPart::text("go")])];
        let prompt = Prompt { system: "", tools, messages: &messages, max_output: 10, schema: Some(&schema) };
        render(&spec, &prompt).contains("response_format")
    };
    assert!(sent("groq/m", &[]) && !sent("groq/m", &tools()) && sent("vllm/m", &tools()));
}

/// What was recorded before `openai/NAME` changed its wire is rendered as it was sent.
#[test]
fn the_wire_in_a_record_counts() {
    let new = spec("openai/gpt-4.1");
    let old = ModelSpec { wire: "openai-chat".to_owned(), ..new.clone() };
    let chat = spec("openai-chat/gpt-4.1");
    let body = |spec| {
        render(spec, &Prompt { system: "Be brief.", tools: &tools(), messages: &conversation(), max_output: 10, schema: None })
    };
    assert_eq!(body(&old), body(&chat));
    assert_ne!(body(&new), body(&chat));
}

#[test]
fn a_reply_that_was_not_thought_about_has_a_stand_in_where_reasoning_is_needed() {
    let call = SentCall { id: CallId::new(Seq(7), 0), name: "bash".into(), arguments: "{}".into() };
    let said = Said::Call { id: "a".into(), name: "bash".into(), arguments: "{}".into() };
    let body = |id: &str, thought: &[Said]| {
        let messages = [Message::Reply { parts: [thought, std::slice::from_ref(&said)].concat(), calls: vec![call.clone()] }];
        render(&spec(id), &Prompt { system: "", tools: &[], messages: &messages, max_output: 10, schema: None })
    };
    for id in ["deepseek/m", "kimi/m"] {
        // Another for each reply: models take to words that they see everywhere.
        assert!(body(id, &[]).contains(r#""reasoning_content":"c7_0""#), "{}", body(id, &[]));
        let thought = body(id, &[Said::Reasoning { text: "hm".into() }]);
        assert!(thought.contains(r#""reasoning_content":"hm""#), "{thought}");
    }
    assert!(!body("llamacpp/m", &[]).contains("reasoning_content"));
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
    let body = render(&spec("vllm/m"), &Prompt { system: "", tools: &[], messages: &[], max_output: 10, schema: None });
    expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[],"max_tokens":10}"#]]
        .assert_eq(&body);
}
