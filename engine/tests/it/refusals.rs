//! Each rule of the strict checker refuses a request that breaks it.

mod vendors;

use crate::strict::{self, Asked};
use expect_test::{Expect, expect};
use model::{Message, Prompt, SentCall, SentPart, SentPicture, render};
use serde_json::json;
use trace::{CallId, ModelSpec, Said, Seq, Status, ToolSpec};

/// Whether `wire` accepts the request for the model of every story, whoever speaks it.
fn check(wire: &str, body: &str) -> Result<(), String> {
    let (_, provider) = WIRES.into_iter().find(|(name, _)| *name == wire).unwrap();
    strict::check(Asked { wire, provider, model: Some("m"), body })
}

const WIRES: [(&str, &str); 4] = [
    ("openai-chat", "openai-compatible"),
    ("openai-responses", "openai"),
    ("anthropic-messages", "anthropic"),
    ("gemini", "gemini"),
];

/// A conversation with a thought, two calls and their results.
fn conversation(wire: &str) -> Vec<Message> {
    let thought = match wire {
        "openai-responses" => json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA"}),
        "anthropic-messages" => json!({"type": "thinking", "thinking": "hm", "signature": "eA"}),
        _ => json!({"on": "call", "thoughtSignature": "eA"}),
    };
    let call = |id: &str| Said::Call { id: id.to_owned(), name: "bash".to_owned(), arguments: "{}".to_owned() };
    let sent = |index| SentCall { id: CallId::new(Seq(2), index), name: "bash".to_owned(), arguments: "{}".to_owned() };
    let result = |index, content| Message::Result { id: CallId::new(Seq(2), index), status: Status::Ok, content };
    let picture = || SentPart::Picture(SentPicture::of(&crate::story::png()).unwrap());
    let parts = vec![Said::Opaque { wire: wire.to_owned(), json: thought }, call("x"), call("y")];
    let reply = Message::Reply { parts, calls: vec![sent(0), sent(1)] };
    vec![
        Message::User(vec![SentPart::text("go"), picture()]),
        reply,
        result(0, vec![SentPart::text("r0")]),
        result(1, vec![SentPart::text("r1"), picture()]),
    ]
}

fn body(wire: &str, provider: &str, messages: &[Message]) -> String {
    let spec = ModelSpec { wire: wire.to_owned(), provider: provider.to_owned(), ..crate::story::model() };
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    let tools = [ToolSpec { name: "bash".to_owned(), description: "Runs.".to_owned(), parameters, read_only: false }];
    render(&spec, &Prompt { system: "Be brief.", tools: &tools, messages, max_output: 100, schema: None })
}

#[test]
fn what_a_wire_writes_is_accepted() {
    for (wire, provider) in WIRES {
        let body = body(wire, provider, &conversation(wire));
        assert_eq!(check(wire, &body), Ok(()), "{body}");
    }
}

/// The verdict on each wire's request after `change`.
fn say(change: impl Fn(&str, String) -> String, expected: Expect) {
    let verdict = |(wire, provider): (&str, &str)| {
        let good = body(wire, provider, &conversation(wire));
        let bad = change(wire, good.clone());
        assert_ne!(good, bad, "nothing was changed on {wire}");
        format!("{wire}: {}\n", check(wire, &bad).expect_err("a rule that this breaks"))
    };
    expected.assert_eq(&WIRES.map(verdict).concat());
}

/// The request for some of the messages.
fn only(wire: &str, places: &[usize]) -> String {
    let all = conversation(wire);
    let (_, provider) = WIRES.into_iter().find(|(name, _)| *name == wire).unwrap();
    body(wire, provider, &places.iter().map(|place| all[*place].clone()).collect::<Vec<_>>())
}

#[test]
fn a_call_without_its_result_is_refused() {
    say(
        |wire, _| only(wire, &[0, 1, 2]),
        expect![[r#"
        openai-chat: `c2_1` has no result before the end
        openai-responses: `c2_1` has no result before the end
        anthropic-messages: `c2_1` has no result before the end of the message that must hold all results
        gemini: the results [(Some("x"), "bash")] after the calls [(Some("x"), "bash"), (Some("y"), "bash")]
    "#]],
    );
    say(
        |wire, _| only(wire, &[0, 1]),
        expect![[r#"
        openai-chat: `c2_0` has no result before the end
        openai-responses: `c2_0` has no result before the end
        anthropic-messages: `c2_0` has no result before the end
        gemini: the role of the last content is "model", not "user"
    "#]],
    );
}

#[test]
fn results_come_in_the_order_of_their_calls() {
    say(
        |wire, body| match wire {
            "gemini" => body.replacen(r#""id":"x""#, r#""id":"y""#, 1),
            _ => only(wire, &[0, 1, 3, 2]),
        },
        expect![[r#"
            openai-chat: a result for `c2_1` where the one for `c2_0` is due
            openai-responses: a result for `c2_1` where the one for `c2_0` is due
            anthropic-messages: a result for `c2_1` where the one for `c2_0` is due
            gemini: two calls with one id: ["y", "y"]
        "#]],
    );
}

#[test]
fn a_result_comes_once_and_for_a_call() {
    say(
        |wire, body| {
            if wire == "gemini" {
                body.replacen(r#""name":"bash","response""#, r#""name":"cat","response""#, 1)
            } else {
                only(wire, &[0, 1, 2, 2, 3])
            }
        },
        expect![[r#"
            openai-chat: a result for `c2_0` where the one for `c2_1` is due
            openai-responses: a result for `c2_0` where the one for `c2_1` is due
            anthropic-messages: a result for `c2_0` where the one for `c2_1` is due
            gemini: the results [(Some("x"), "cat"), (Some("y"), "bash")] after the calls [(Some("x"), "bash"), (Some("y"), "bash")]
        "#]],
    );
    say(
        |_, body| body.replacen(r#""go""#, r#""go","x":1"#, 1),
        expect![[r#"
            openai-chat: a part of a message has the unknown field `x`
            openai-responses: a part of a message has the unknown field `x`
            anthropic-messages: words of the user has the unknown field `x`
            gemini: words of the user has the unknown field `x`
        "#]],
    );
}

#[test]
fn unknown_fields_blank_words_and_wrong_arguments_are_refused() {
    say(
        |_, body| body.replacen('{', r#"{"surprise":1,"#, 1),
        expect![[r#"
        openai-chat: the request has the unknown field `surprise`
        openai-responses: the request has the unknown field `surprise`
        anthropic-messages: the request has the unknown field `surprise`
        gemini: the request has the unknown field `surprise`
    "#]],
    );
    say(
        |wire, body| match wire {
            "openai-chat" | "openai-responses" => body.replacen(r#""arguments":"{}""#, r#""arguments":"{""#, 1),
            "anthropic-messages" => body.replacen(r#""input":{}"#, r#""input":"{}""#, 1),
            _ => body.replacen(r#""args":{}"#, r#""args":[]"#, 1),
        },
        expect![[r#"
            openai-chat: the arguments of a call are no object: {
            openai-responses: the arguments of a call are no object: {
            anthropic-messages: the input of a call is no object: "{}"
            gemini: arguments that are no object: []
        "#]],
    );
}

#[test]
fn a_nul_in_words_or_arguments_is_refused() {
    say(
        |_, body| body.replacen(r#""go""#, r#""g\u0000""#, 1),
        expect![[r#"
        openai-chat: a NUL in "g\0"
        openai-responses: a NUL in "g\0"
        anthropic-messages: a NUL in "g\0"
        gemini: a NUL in "g\0"
    "#]],
    );
    say(
        |wire, body| match wire {
            "openai-chat" | "openai-responses" => body.replacen(r#""arguments":"{}""#, r#""arguments":"{\"a\":\"\\u0000\"}""#, 1),
            "anthropic-messages" => body.replacen(r#""input":{}"#, r#""input":{"a":"\u0000"}"#, 1),
            _ => body.replacen(r#""args":{}"#, r#""args":{"a":"\u0000"}"#, 1),
        },
        expect![[r#"
            openai-chat: a NUL in "\0"
            openai-responses: a NUL in "\0"
            anthropic-messages: a NUL in "\0"
            gemini: a NUL in "\0"
        "#]],
    );
}

#[test]
fn blank_words_beside_calls_are_refused_on_chat() {
    let good = only("openai-chat", &[0, 1, 2, 3]);
    let bad = good.replace(r#""content":null"#, r#""content":"\n\n""#);
    assert_ne!(good, bad);
    expect!["a reply is blank"].assert_eq(&check("openai-chat", &bad).unwrap_err());
}

#[test]
fn the_form_of_an_answer_is_closed() {
    let answering = |wire: &str, provider: &str| {
        let spec =
            ModelSpec { wire: wire.to_owned(), provider: provider.to_owned(), structured: Some(true), ..crate::story::model() };
        let (schema, messages) = (crate::story::schema(), conversation(wire));
        let prompt = Prompt { system: "", tools: &[], messages: &messages, max_output: 100, schema: Some(&schema) };
        render(&spec, &prompt)
    };
    for (wire, provider) in WIRES {
        let good = answering(wire, provider);
        assert!(good.contains(r#""count":{"type":"integer"}"#), "{good}");
        assert_eq!(check(wire, &good), Ok(()), "{good}");
    }
    let verdict = |wire: &str, provider: &str, from: &str, to: &str| {
        let good = answering(wire, provider);
        assert!(good.contains(from), "{good}");
        check(wire, &good.replace(from, to)).unwrap_err()
    };
    let (closed, open) = (r#""additionalProperties":false"#, r#""additionalProperties":true"#);
    expect!["additionalProperties of a strict object is true, not false"].assert_eq(&verdict(
        "openai-chat",
        "openai-compatible",
        closed,
        open,
    ));
    expect!["a strict object that may leave out `count`"].assert_eq(&verdict(
        "openai-responses",
        "openai",
        r#""required":["count"]"#,
        r#""required":["a"]"#,
    ));
    expect!["additionalProperties of an object is true, not false"].assert_eq(&verdict(
        "anthropic-messages",
        "anthropic",
        closed,
        open,
    ));
    expect![[r#"the kind of the answer is "text/plain", not "application/json""#]].assert_eq(&verdict(
        "gemini",
        "gemini",
        "application/json",
        "text/plain",
    ));
}

#[test]
fn a_picture_is_base64_of_a_known_kind() {
    say(
        |_, body| body.replacen("iVBORw0KGgo", "iVBORw0KGg", 1),
        expect![[r#"
        openai-chat: a picture that is not base64
        openai-responses: a picture that is not base64
        anthropic-messages: a picture that is not base64
        gemini: a picture that is not base64
    "#]],
    );
    say(
        |_, body| body.replacen("image/png", "image/bmp", 1),
        expect![[r#"
        openai-chat: a picture of the kind image/bmp
        openai-responses: a picture of the kind image/bmp
        anthropic-messages: a picture of the kind image/bmp
        gemini: a picture of the kind image/bmp
    "#]],
    );
    say(
        |wire, body| match wire {
            "openai-chat" | "openai-responses" => body.replacen(r#","detail":"high""#, r#","size":"high""#, 1),
            "anthropic-messages" => body.replacen(r#""type":"base64""#, r#""type":"url""#, 1),
            _ => body.replacen(r#""inlineData""#, r#""fileData""#, 1),
        },
        expect![[r#"
            openai-chat: a picture has the unknown field `size`
            openai-responses: a picture has the unknown field `size`
            anthropic-messages: the type of a source is "url", not "base64"
            gemini: a part that does not hold one thing: {"fileData":{"data":"iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=","mimeType":"image/png"}}
        "#]],
    );
    let failed =
        only("anthropic-messages", &[0, 1, 2, 3]).replace(r#""tool_use_id":"c2_1""#, r#""is_error":true,"tool_use_id":"c2_1""#);
    expect!["all content must be type text if is_error is true"].assert_eq(&check("anthropic-messages", &failed).unwrap_err());
}

#[test]
fn a_thought_stands_in_its_place() {
    let responses = body("openai-responses", "openai", &conversation("openai-responses"));
    let (before, rest) = responses.split_once(r#"{"type":"reasoning""#).unwrap();
    let (thought, after) = rest.split_once("},").unwrap();
    let (calls, tail) = after.split_once(r#",{"type":"function_call_output""#).unwrap();
    let late = format!(r#"{before}{calls},{{"type":"reasoning"{thought}}},{{"type":"function_call_output"{tail}"#);
    expect!["the reasoning `rs_1` without its required following item"].assert_eq(&check("openai-responses", &late).unwrap_err());
    let gone = responses.replace(r#""encrypted_content":"eA""#, r#""encrypted_content":null"#);
    expect!["the content of reasoning is no text: null"].assert_eq(&check("openai-responses", &gone).unwrap_err());
    let with =
        |field: &str| check("openai-responses", &responses.replace(r#","summary":[]"#, &format!(r#","summary":[],{field}"#)));
    expect!["reasoning has the unknown field `status`"].assert_eq(&with(r#""status":null"#).unwrap_err());
    expect!["the content of reasoning is no list: null"].assert_eq(&with(r#""content":null"#).unwrap_err());
    let messages = only("anthropic-messages", &[0, 1, 2, 3]).replace(r#""signature":"eA""#, r#""signature":"""#);
    expect!["the signature of thinking is blank"].assert_eq(&check("anthropic-messages", &messages).unwrap_err());
    let gemini = only("gemini", &[0, 1, 2, 3]).replace("eA", "");
    expect!["a signature is blank"].assert_eq(&check("gemini", &gemini).unwrap_err());
}

#[test]
fn blank_words_of_a_reply_stand_between_thinking_alone() {
    let body = only("anthropic-messages", &[0, 1, 2, 3]);
    let thinking = r#"{"signature":"eA","thinking":"hm","type":"thinking"}"#;
    let verdict = |text: &str, after: &str| {
        let blocks = format!(r#"{thinking},{{"type":"text","text":"{text}"}},{after}"#);
        let changed = body.replacen(&format!("{thinking},"), &blocks, 1);
        assert_ne!(changed, body);
        check("anthropic-messages", &changed)
    };
    assert_eq!(verdict(r"\n\n", &format!("{thinking},")), Ok(()));
    expect!["words is blank"].assert_eq(&verdict("", &format!("{thinking},")).unwrap_err());
    expect!["words is blank"].assert_eq(&verdict(r"\n\n", "").unwrap_err());
}
