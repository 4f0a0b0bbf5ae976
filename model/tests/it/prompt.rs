//! The bytes of requests.

use expect_test::{Expect, expect};
use model::{Message, Prompt, SentCall, SentPart, SentPicture, Transcript, catalog, render};
use proptest::prelude::*;
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
        {"parts":[{"functionCall":{"args":{},"name":"read"}},{"functionCall":{"args":{},"name":"read"}}],"role":"model"}
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

fn conversation() -> Vec<Message> {
    let call = |index: usize, arguments: &str| SentCall {
        id: CallId::new(Seq(2), index),
        name: "bash".to_owned(),
        arguments: arguments.to_owned(),
    };
    let result = |index, status, text: &str| Message::Result {
        id: CallId::new(Seq(2), index),
        status,
        content: vec![SentPart::text(text)],
    };
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
            calls: vec![call(0, "{\"command\":\"ls\"}"), call(1, "{}")],
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
            opaque(reasoning("rs_3")),
            call("bash"),
            opaque(reasoning("rs_4")),
            Said::Cut { name: "bash".to_owned(), raw: "{\"comm".to_owned() },
            Said::Opaque { wire: "another".to_owned(), json: reasoning("x") },
        ];
        calls[1].name = "read".to_owned();
    }
    [vec![task, reply], results.to_vec()].concat()
}

#[test]
fn reasoning_goes_back_as_it_came_before_what_it_led_to() {
    check(
        "openai/gpt-6-sol",
        &responses(),
        expect![[r#"
            {"model":"gpt-6-sol","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"66627a3036be44a044d6a117fb3b2f2c","parallel_tool_calls":true,"instructions":"Be brief.","tools":[{"type":"function","name":"bash","description":"Runs a command.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"},"strict":false}],"input":[
            {"type":"message","role":"user","content":[{"type":"input_text","text":"Mend \"it\".\n"},
            {"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=","detail":"high"}]},{"encrypted_content":"c2VjcmV0","id":"rs_1","summary":[],"type":"reasoning"},
            {"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},
            {"type":"function_call","call_id":"c2_0","name":"bash","arguments":"{\"command\":\"ls\"}"},{"encrypted_content":"c2VjcmV0","id":"rs_3","summary":[],"type":"reasoning"},
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

/// What Gemini said on its own wire, and what it is told after it.
fn gemini() -> Vec<Message> {
    let signed =
        |on: &str, text: &str| Said::Opaque { wire: "gemini".to_owned(), json: json!({"on": on, "thoughtSignature": text}) };
    let call = |id: &str| Said::Call { id: id.to_owned(), name: "bash".to_owned(), arguments: "not sent".to_owned() };
    let [task, mut reply, results @ ..] = <[Message; 7]>::try_from(conversation()).unwrap();
    if let Message::Reply { parts, calls } = &mut reply {
        *parts = vec![
            Said::Reasoning { text: "Look first.".to_owned() },
            signed("thought", "b25l"),
            Said::Reasoning { text: "And then?".to_owned() },
            Said::Text { text: "I look.".to_owned() },
            signed("call", "dHdv"),
            call("fc_1"),
            call("fc_1"),
            Said::Cut { name: "bash".to_owned(), raw: "{\"comm".to_owned() },
            signed("text", "dGhyZWU="),
        ];
        calls[1].name = "read".to_owned();
    }
    let later = Message::Reply {
        parts: vec![
            signed("text", "Zm91cg=="),
            Said::Text { text: "So.".to_owned() },
            call(""),
            Said::Opaque { wire: "another".to_owned(), json: json!({"on": "text", "thoughtSignature": "x"}) },
        ],
        calls: vec![SentCall { id: CallId::new(Seq(9), 0), name: "bash".to_owned(), arguments: "no object".to_owned() }],
    };
    let result = Message::Result { id: CallId::new(Seq(9), 0), status: Status::Ok, content: vec![SentPart::text("b.rs")] };
    [vec![task, reply], results.to_vec(), vec![later, result]].concat()
}

#[test]
fn a_signature_goes_back_on_the_part_that_it_came_on() {
    check(
        "gemini/unheard-of",
        &gemini(),
        expect![[r#"
            {"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"bash","description":"Runs a command.","parametersJsonSchema":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}}]}],"contents":[
            {"role":"user","parts":[{"text":"Mend \"it\".\n"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA="}}]},
            {"role":"model","parts":[{"text":"And then?","thought":true,"thoughtSignature":"b25l"},{"text":"I look."},{"functionCall":{"id":"fc_1","name":"bash","args":{"command":"ls"}},"thoughtSignature":"dHdv"},{"functionCall":{"id":"c2_1","name":"read","args":{}}},{"text":"","thoughtSignature":"dGhyZWU="}]},
            {"role":"user","parts":[{"functionResponse":{"id":"fc_1","name":"bash","response":{"output":"a.rs"}}},{"functionResponse":{"id":"c2_1","name":"read","response":{"error":"the arguments are not JSON"}}}]},
            {"role":"model","parts":[{"text":"Done."}]},
            {"role":"user","parts":[{"text":"Go on."}]},
            {"role":"model","parts":[{"text":"So.","thoughtSignature":"Zm91cg=="},{"functionCall":{"name":"bash","args":{}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"bash","response":{"output":"b.rs"}}}]}],"generationConfig":{"maxOutputTokens":8192}}"#]],
    );
}

#[test]
fn a_gemini_that_reasons_is_asked_for_its_thoughts() {
    let spec = ModelSpec { effort: Some("low".to_owned()), reasons: Some(true), ..spec("gemini/unheard-of") };
    let body = render(&spec, &Prompt { system: "", tools: &[], messages: &[], max_output: 10, schema: None });
    expect![[r#"{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"low"},"maxOutputTokens":10}}"#]].assert_eq(&body);
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
fn a_call_that_another_model_made_is_sent_unsigned_to_models_that_want_signatures() {
    let call = |at| SentCall { id: CallId::new(Seq(1), at), name: "bash".into(), arguments: "{}".into() };
    let said = |id: &str| Said::Call { id: id.into(), name: "bash".into(), arguments: "{}".into() };
    let calls = vec![call(0), call(1)];
    let signed = Said::Opaque { wire: "gemini".into(), json: json!({"on": "call", "thoughtSignature": "c2ln"}) };
    let body = |reasons, parts: Vec<Said>| {
        let spec = ModelSpec { reasons, ..spec("gemini/unheard-of") };
        let messages = [Message::Reply { parts, calls: calls.clone() }];
        render(&spec, &Prompt { system: "", tools: &[], messages: &messages, max_output: 10, schema: None })
    };
    let stand_in = r#""thoughtSignature":"skip_thought_signature_validator""#;
    let foreign = body(Some(true), vec![said("a"), said("b")]);
    assert_eq!(foreign.matches(stand_in).count(), 1, "{foreign}");
    assert!(foreign.find(stand_in) < foreign.find(r#""id":"b""#), "on the first call: {foreign}");
    for other in [body(None, vec![said("a"), said("b")]), body(Some(true), vec![signed, said("a"), said("b")])] {
        assert!(!other.contains("skip_thought"), "{other}");
    }
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

/// A reply with all that the Messages wire knows: thinking before, between and after calls.
fn thoughtful() -> Vec<Message> {
    let kept = |json| Said::Opaque { wire: "anthropic-messages".to_owned(), json };
    let thinking = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let call = |arguments: &str| Said::Call { id: "toolu".to_owned(), name: "bash".to_owned(), arguments: arguments.to_owned() };
    let sent = |index, arguments: &str| SentCall {
        id: CallId::new(Seq(2), index),
        name: "bash".to_owned(),
        arguments: arguments.to_owned(),
    };
    let result = |index, status, text: &str| Message::Result {
        id: CallId::new(Seq(2), index),
        status,
        content: vec![SentPart::text(text)],
    };
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

#[test]
fn empty_instructions_and_no_tools_are_not_sent() {
    let body = render(&spec("vllm/m"), &Prompt { system: "", tools: &[], messages: &[], max_output: 10, schema: None });
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
