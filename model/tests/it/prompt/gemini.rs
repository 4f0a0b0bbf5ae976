//! What Gemini is sent of its own.

use super::{check, conversation, spec};
use expect_test::expect;
use model::{Message, Prompt, SentCall, SentPart, render};
use serde_json::json;
use trace::{CallId, ModelSpec, Said, Seq, Status};

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
            {"role":"model","parts":[{"text":"So.","thoughtSignature":"Zm91cg=="},{"functionCall":{"name":"bash","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},
            {"role":"user","parts":[{"functionResponse":{"name":"bash","response":{"output":"b.rs"}}}]}],"generationConfig":{"maxOutputTokens":8192}}"#]],
    );
}

#[test]
fn a_gemini_that_reasons_is_asked_for_its_thoughts() {
    let spec = ModelSpec { effort: Some("low".to_owned()), reasons: Some(true), ..spec("gemini/unheard-of") };
    let body = render(&spec, &Prompt { system: "", tools: &[], messages: &[], max_output: 10, schema: None });
    expect![[r#"{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"low"},"maxOutputTokens":10}}"#]].assert_eq(&body);
}

const STAND_IN: &str = r#""thoughtSignature":"skip_thought_signature_validator""#;

/// The body for `model` after a reply of these parts, of which two are calls.
fn after(model: &str, parts: Vec<Said>) -> String {
    let call = |at| SentCall { id: CallId::new(Seq(1), at), name: "bash".into(), arguments: "{}".into() };
    let messages = [Message::Reply { parts, calls: vec![call(0), call(1)] }];
    render(&spec(model), &Prompt { system: "", tools: &[], messages: &messages, max_output: 10, schema: None })
}

fn call(id: &str) -> Said {
    Said::Call { id: id.into(), name: "bash".into(), arguments: "{}".into() }
}

#[test]
fn a_first_call_without_a_signature_gets_a_stand_in_whatever_is_known_about_the_model() {
    for model in ["gemini/unheard-of", "gemini/gemini-3-pro-preview", "gemini/gemini-4-argon", "gemini/models/gemini-3-pro"] {
        let foreign = after(model, vec![call("a"), call("b")]);
        assert_eq!(foreign.matches(STAND_IN).count(), 1, "{foreign}");
        assert!(foreign.find(STAND_IN) < foreign.find(r#""id":"b""#), "on the first call: {foreign}");
    }
    for older in ["gemini/gemini-2.5-pro", "gemini/models/gemini-2.5-pro"] {
        let body = after(older, vec![call("a"), call("b")]);
        assert!(!body.contains("thoughtSignature"), "{body}");
    }
}

#[test]
fn whether_a_reply_needs_a_stand_in_is_told_by_its_first_call() {
    let signed = |on: &str| Said::Opaque { wire: "gemini".into(), json: json!({"on": on, "thoughtSignature": "c2ln"}) };
    let thought = Said::Reasoning { text: "Hm.".into() };
    let of_a_thought = after("gemini/unheard-of", vec![signed("thought"), thought, call("a"), call("b")]);
    assert_eq!(of_a_thought.matches("c2ln").count(), 1, "what was signed keeps its signature: {of_a_thought}");
    assert_eq!(of_a_thought.matches(STAND_IN).count(), 1, "{of_a_thought}");
    let of_the_second = after("gemini/unheard-of", vec![call("a"), signed("call"), call("b")]);
    assert!(of_the_second.find(STAND_IN).unwrap() < of_the_second.find("c2ln").unwrap(), "{of_the_second}");
    let of_the_first = after("gemini/unheard-of", vec![signed("call"), call("a"), call("b")]);
    assert!(!of_the_first.contains(STAND_IN), "{of_the_first}");
}

#[test]
fn a_name_with_its_folder_is_of_the_generation_of_the_name() {
    let tools = super::tools();
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let body = |model: &str| {
        let schema = Some(&schema);
        render(&spec(model), &Prompt { system: "", tools: &tools, messages: &[], max_output: 10, schema })
    };
    assert!(!body("gemini/models/gemini-2.5-pro").contains("responseMimeType"));
    assert!(body("gemini/models/gemini-3-pro").contains("responseMimeType"));
}
