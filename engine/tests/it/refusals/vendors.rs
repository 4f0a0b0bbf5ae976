//! What vendors want beyond their wires: each rule accepts what we write for them, and refuses it once it is broken.

use crate::invariants::spec;
use crate::story::{gif_picture, schema};
use crate::strict::{self, Asked};
use expect_test::{Expect, expect};
use model::{Message, Prompt, SentCall, SentPart, SentPicture, catalog, render};
use serde_json::{Value, json};
use trace::{CallId, Said, Seq, Status, ToolSpec};

/// A conversation with a reply that calls twice, their results, one of which is a picture, and more words of the user.
fn conversation() -> Vec<Message> {
    let call = |id: &str| Said::Call { id: id.to_owned(), name: "bash".to_owned(), arguments: "{}".to_owned() };
    let sent = |index| SentCall { id: CallId::new(Seq(2), index), name: "bash".to_owned(), arguments: "{}".to_owned() };
    let result = |index, content| Message::Result { id: CallId::new(Seq(2), index), status: Status::Ok, content };
    let picture = || SentPart::Picture(SentPicture::of(&crate::story::png()).unwrap());
    vec![
        Message::User(vec![SentPart::text("go"), picture()]),
        Message::Reply { parts: vec![call("x"), call("y")], calls: vec![sent(0), sent(1)] },
        result(0, vec![SentPart::text("r0"), picture()]),
        result(1, vec![SentPart::text("r1")]),
        Message::User(vec![SentPart::text("more")]),
    ]
}

fn body(id: &str, messages: &[Message]) -> Value {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    let tools = [ToolSpec { name: "bash".to_owned(), description: "Runs.".to_owned(), parameters, read_only: false }];
    let prompt = Prompt { system: "Be brief.", tools: &tools, messages, max_output: 100, schema: Some(&schema()) };
    serde_json::from_str(&render(&spec(id), &prompt)).unwrap()
}

fn check(id: &str, body: &Value) -> Result<(), String> {
    let spec = spec(id);
    strict::check(Asked { wire: &spec.wire, provider: &spec.provider, model: Some(&spec.name), body: &body.to_string() })
}

/// The verdict on the request to `id` after `change`, without which it is accepted.
fn say(id: &str, change: impl FnOnce(&mut Value), expected: Expect) {
    let mut body = body(id, &conversation());
    assert_eq!(check(id, &body), Ok(()), "{id}: {body}");
    change(&mut body);
    expected.assert_eq(&check(id, &body).expect_err("a rule that this breaks"));
}

/// Where the first message of `role` stands.
fn first<'a>(body: &'a mut Value, role: &str) -> &'a mut Value {
    body["messages"].as_array_mut().unwrap().iter_mut().find(|message| message["role"] == role).unwrap()
}

/// Puts the last part at `place`, a picture, there `count` times more.
fn repeat_picture(body: &mut Value, place: &str, count: usize) {
    let parts = body.pointer_mut(place).unwrap().as_array_mut().unwrap();
    let mut picture = parts.last().unwrap().clone();
    picture.as_object_mut().unwrap().remove("cache_control");
    parts.extend(std::iter::repeat_n(picture, count));
}

#[test]
fn what_is_written_for_a_vendor_is_accepted() {
    for row in catalog::providers() {
        let id = format!("{}/m", row.name);
        let body = body(&id, &conversation());
        assert_eq!(check(&id, &body), Ok(()), "{id}: {body}");
    }
}

#[test]
fn a_wire_a_provider_or_a_model_that_nobody_named_is_refused() {
    let asked = body("vllm/m", &conversation()).to_string();
    let check = |provider, model| strict::check(Asked { wire: "openai-chat", provider, model: Some(model), body: &asked });
    let other = strict::check(Asked { wire: "morse", provider: "vllm", model: None, body: &asked });
    expect!["no rules are known for the wire morse"].assert_eq(&other.unwrap_err());
    expect!["no rules are known for the provider nobody: say in this file what it wants"]
        .assert_eq(&check("nobody", "m").unwrap_err());
    expect![[r#"the model is "m", not "another""#]].assert_eq(&check("vllm", "another").unwrap_err());
}

#[test]
fn openai_has_a_limit_of_its_own_and_takes_no_reasoning_back() {
    let rename = |body: &mut Value, from: &str, to: &str| {
        let value = body.as_object_mut().unwrap().remove(from).unwrap();
        body[to] = value;
    };
    say("openai-chat/m", |body| rename(body, "max_completion_tokens", "max_tokens"), expect!["`max_tokens` is unsupported"]);
    say(
        "openai-chat/m",
        |body| first(body, "assistant")["reasoning"] = "hm".into(),
        expect!["property 'reasoning' is unsupported"],
    );
    say("openai-chat/m", |body| repeat_picture(body, "/messages/1/content", 500), expect!["502 pictures, and 500 are the most"]);
    say("openai/m", |body| repeat_picture(body, "/input/0/content", 500), expect!["502 pictures, and 500 are the most"]);
    say(
        "openai/gpt-4.1",
        |body| body["include"] = json!(["reasoning.encrypted_content"]),
        expect!["reasoning is asked of gpt-4.1, which has none"],
    );
    say("azure/m", |body| repeat_picture(body, "/input/0/content", 49), expect!["51 pictures, and 50 are the most"]);
    say(
        "mistral/m",
        |body| rename(body, "max_tokens", "max_completion_tokens"),
        expect!["`max_completion_tokens` is unsupported"],
    );
    say(
        "deepseek/m",
        |body| rename(body, "max_tokens", "max_completion_tokens"),
        expect!["`max_completion_tokens` is unsupported"],
    );
}

#[test]
fn the_messages_wire_is_not_the_same_for_all() {
    let place = "/messages/0/content";
    say("anthropic/claude-haiku-4-5", |body| repeat_picture(body, place, 99), expect!["101 pictures, and 100 are the most"]);
    say("anthropic/claude-opus-5", |body| repeat_picture(body, place, 599), expect!["601 pictures, and 600 are the most"]);
    say(
        "anthropic/claude-opus-5",
        |body| body["thinking"]["type"] = "enabled".into(),
        expect![[r#"the type of thinking is "enabled", not "adaptive""#]],
    );
    say("minimax/m", |body| body["output_config"] = json!({"effort": "high"}), expect!["`output_config` is unsupported"]);
}

#[test]
fn mistral_has_an_order_of_roles_and_ids_of_its_own() {
    let order = |body: &mut Value| {
        let messages = body["messages"].as_array_mut().unwrap();
        let bridge = messages.iter().rposition(|message| message["role"] == "assistant").unwrap();
        messages.remove(bridge);
    };
    say("mistral/m", order, expect!["Unexpected role 'user' after role 'tool'"]);
    // A long id in both places, which other servers take.
    let long = |body: &mut Value| *body = serde_json::from_str(&body.to_string().replace("000002000", "c2_0")).unwrap();
    say("mistral/m", long, expect!["Tool call id was c2_0 but must be a-z, A-Z, 0-9, with a length of 9"]);
    let usage = json!({"include_usage": true});
    say("mistral/m", |body| body["stream_options"] = usage, expect!["`stream_options` is unsupported"]);
    say(
        "mistral/m",
        |body| first(body, "assistant")["reasoning_content"] = "hm".into(),
        expect!["property 'reasoning_content' is unsupported"],
    );
    say("mistral/m", |body| repeat_picture(body, "/messages/1/content", 7), expect!["9 pictures, and 8 are the most"]);
}

#[test]
fn a_call_goes_back_with_what_was_thought_before_it() {
    for id in ["deepseek/m", "kimi/m"] {
        let missing = || expect!["reasoning_content is missing in assistant tool call message"];
        say(id, |body| first(body, "assistant")["reasoning_content"] = "".into(), missing());
        let gone = |body: &mut Value| {
            first(body, "assistant").as_object_mut().unwrap().remove("reasoning_content");
        };
        say(id, gone, missing());
    }
}

#[test]
fn a_form_of_the_answer_is_sent_only_where_it_is_taken() {
    let form = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema(), "strict": true}});
    for id in ["deepseek/m", "glm/m"] {
        let unavailable = expect!["this response_format type is unavailable"];
        say(id, |body| body["response_format"] = form.clone(), unavailable);
    }
    let combined = expect!["json mode cannot be combined with tool/function calling"];
    say("groq/m", |body| body["response_format"] = form, combined);
    let json_too = |body: &mut Value| body["generationConfig"]["responseMimeType"] = "application/json".into();
    for id in ["gemini/gemini-2.5-flash", "gemini/models/gemini-2.5-pro"] {
        say(id, json_too, expect!["function calling with a response mime type is unsupported"]);
    }
}

#[test]
fn gemini_wants_signatures_whatever_it_is_asked_to_think_and_once_took_only_words_as_results() {
    let call = |body: &mut Value| {
        body["contents"][1]["parts"][0].as_object_mut().unwrap().remove("thoughtSignature").unwrap();
    };
    for id in ["gemini/gemini-3.5-flash", "gemini/models/gemini-3-pro-preview", "gemini/unheard-of"] {
        say(id, call, expect!["a first call without a thought signature"]);
    }
    let picture = |body: &mut Value| {
        let picture = body["contents"][0]["parts"][1].clone();
        body["contents"][2]["parts"][0]["functionResponse"]["parts"] = json!([picture]);
    };
    say("gemini/gemini-2.5-flash", picture, expect!["a picture in a result for gemini-2.5-flash"]);
}

#[test]
fn kimi_reads_schemas_and_parts_in_its_own_way() {
    let flavored =
        |parameters: Value, expected| say("kimi/m", |body| body["tools"][0]["function"]["parameters"] = parameters, expected);
    let of = |property: Value| json!({"type": "object", "properties": {"a": property}});
    flavored(
        of(json!({"enum": ["x"]})),
        expect!["not a valid moonshot flavored json schema: at path 'root.properties.a': type is not defined"],
    );
    flavored(
        of(json!({"type": "string", "anyOf": [{"type": "string"}]})),
        expect![
            "not a valid moonshot flavored json schema: at path 'root.properties.a': when using anyOf, type should be defined in anyOf items"
        ],
    );
    flavored(
        of(json!({"anyOf": [{"minLength": 1}]})),
        expect!["not a valid moonshot flavored json schema: at path 'root.properties.a.anyOf': type is not defined"],
    );
    flavored(
        of(json!({"type": "array", "items": false})),
        expect!["not a valid moonshot flavored json schema: at path 'root.properties.a.items': a schema is an object"],
    );
    flavored(
        json!({"type": "object", "properties": {}, "required": ["b"]}),
        expect!["not a valid moonshot flavored json schema: at path 'root': `b` is required and no property"],
    );
    say("kimi/m", |body| body["messages"][1]["content"][0]["text"] = "".into(), expect!["text content is empty"]);
}

#[test]
fn a_vendor_may_take_fewer_pictures_and_kinds_of_them() {
    say("groq/m", |body| repeat_picture(body, "/messages/1/content", 2), expect!["4 pictures, and 3 are the most"]);
    say("groq/m", |body| first(body, "assistant")["reasoning"] = "hm".into(), expect!["property 'reasoning' is unsupported"]);
    let of = |kind: &'static str| {
        move |body: &mut Value| *body = serde_json::from_str(&body.to_string().replace("image/png", kind)).unwrap()
    };
    say("xai/m", of("image/gif"), expect![[r#"a picture that is none of ["png", "jpeg"]: data:image/gif;base64,iV"#]]);
    say(
        "lmstudio/m",
        of("image/gif"),
        expect![[r#"a picture that is none of ["png", "jpeg", "webp"]: data:image/gif;base64,iV"#]],
    );
    say(
        "llamacpp/m",
        of("image/webp"),
        expect![[r#"a picture that is none of ["png", "jpeg", "gif"]: data:image/webp;base64,i"#]],
    );
    let trace::Part::Image { picture, .. } = gif_picture() else { unreachable!() };
    let taken = |id: &str| model::takes(&spec(id), &picture.media_type);
    assert!(taken("vllm/m") && !taken("xai/m"));
}
