//! What each provider accepts, as strictly as its published schema and error messages say it: a request is read as the
//! server would read it, and the first rule that it breaks is named.
//!
//! No server is needed for this, and none is so strict in all of it; what passes here is valid for the wire whatever else
//! the server thinks of it. Sources: developers.openai.com/api/reference (chat, responses), platform.claude.com/docs/en/api/
//! messages, ai.google.dev/api/generate-content and …/gemini-api/docs/thought-signatures, and the messages of refusals that
//! users reported.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Whether the wire called `wire` accepts `body`, or the rule that it breaks.
pub fn check(wire: &str, body: &str) -> Result<(), String> {
    let body: Value = serde_json::from_str(body).map_err(|error| format!("not JSON: {error}"))?;
    match wire {
        "openai-chat" => chat::check(&body),
        "openai-responses" => responses::check(&body),
        "anthropic-messages" => messages::check(&body),
        "gemini" => gemini::check(&body),
        other => Err(format!("no rules are known for the wire {other}")),
    }
}

type Checked<T = ()> = Result<T, String>;

/// An object with all of `required`, perhaps some of `optional`, and nothing else.
fn object<'a>(value: &'a Value, what: &str, required: &[&str], optional: &[&str]) -> Checked<&'a Map<String, Value>> {
    let object = value.as_object().ok_or_else(|| format!("{what} is no object: {value}"))?;
    if let Some(missing) = required.iter().find(|field| !object.contains_key(**field)) {
        return Err(format!("{what} has no `{missing}`: {value}"));
    }
    match object.keys().find(|field| !required.contains(&field.as_str()) && !optional.contains(&field.as_str())) {
        Some(unknown) => Err(format!("{what} has the unknown field `{unknown}`")),
        None => Ok(object),
    }
}

fn list<'a>(value: &'a Value, what: &str) -> Checked<&'a [Value]> {
    let list = value.as_array().ok_or_else(|| format!("{what} is no list: {value}"))?;
    if list.is_empty() { Err(format!("{what} is empty")) } else { Ok(list) }
}

fn text<'a>(value: &'a Value, what: &str) -> Checked<&'a str> {
    value.as_str().ok_or_else(|| format!("{what} is no text: {value}"))
}

fn words<'a>(value: &'a Value, what: &str) -> Checked<&'a str> {
    let text = text(value, what)?;
    if text.trim().is_empty() { Err(format!("{what} is blank")) } else { Ok(text) }
}

fn is(value: &Value, wanted: impl Into<Value>, what: &str) -> Checked {
    let wanted = wanted.into();
    if *value == wanted { Ok(()) } else { Err(format!("{what} is {value}, not {wanted}")) }
}

fn at_least(value: &Value, least: u64, what: &str) -> Checked {
    match value.as_u64() {
        Some(count) if count >= least => Ok(()),
        _ => Err(format!("{what} is {value}, and {least} is the least")),
    }
}

/// A name of a tool, or an id: letters, digits, `_` and `-`, at most 64.
fn name<'a>(value: &'a Value, what: &str) -> Checked<&'a str> {
    let name = text(value, what)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let valid = (1..=64).contains(&name.len()) && name.bytes().all(fits);
    if valid { Ok(name) } else { Err(format!("{what} is `{name}`")) }
}

/// Bytes in base64 of one of the kinds of picture that the wire takes.
fn picture(media_type: &Value, data: &str, kinds: &[&str]) -> Checked {
    let kind = text(media_type, "the kind of a picture")?;
    if !kinds.contains(&kind) {
        return Err(format!("a picture of the kind {kind}"));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let valid = !data.is_empty() && data.len().is_multiple_of(4) && data.bytes().all(fits);
    if valid { Ok(()) } else { Err("a picture that is not base64".to_owned()) }
}

/// The kinds of picture that are known everywhere but at Google.
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A picture as an address that holds it.
fn data_url(url: &Value) -> Checked {
    let url = text(url, "the address of a picture")?;
    let (kind, data) =
        url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")).ok_or("a picture that is elsewhere")?;
    picture(&kind.into(), data, &KINDS)
}

/// Arguments as text: an object, as every server that parses them wants.
fn arguments(value: &Value) -> Checked {
    let text = text(value, "the arguments of a call")?;
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => Ok(()),
        _ => Err(format!("the arguments of a call are no object: {text}")),
    }
}

fn schema(value: &Value) -> Checked {
    let schema = value.as_object().ok_or("the schema of a tool is no object")?;
    is(schema.get("type").unwrap_or(&Value::Null), "object", "the type of a tool's schema")
}

/// The form of an answer, as both of OpenAI's wires take it: strictly, all is closed and nothing may be left out.
fn answer(form: &Value) -> Checked {
    name(&form["name"], "the name of the answer")?;
    schema(&form["schema"])?;
    if form["strict"] == true {
        is(&form["schema"]["additionalProperties"], false, "additionalProperties of a strict object")?;
        let required = list(&form["schema"]["required"], "what a strict object requires")?;
        let mut names = form["schema"]["properties"].as_object().into_iter().flat_map(|all| all.keys());
        if let Some(name) = names.find(|name| !required.iter().any(|one| one == name.as_str())) {
            return Err(format!("a strict object that may leave out `{name}`"));
        }
    }
    Ok(())
}

/// Calls that wait for their results, in order.
#[derive(Default)]
struct Open {
    waiting: Vec<String>,
    /// Every id that was used in this conversation.
    used: BTreeSet<String>,
}

impl Open {
    fn call(&mut self, id: &str) -> Checked {
        if !self.used.insert(id.to_owned()) {
            return Err(format!("the id `{id}` names two calls"));
        }
        self.waiting.push(id.to_owned());
        Ok(())
    }

    fn result(&mut self, id: &str) -> Checked {
        match self.waiting.first() {
            Some(next) if next == id => drop(self.waiting.remove(0)),
            Some(next) => return Err(format!("a result for `{id}` where the one for `{next}` is due")),
            None => return Err(format!("a result for `{id}`, which no call waits for")),
        }
        Ok(())
    }

    /// Nothing but results may come while calls wait.
    fn closed(&self, before: &str) -> Checked {
        match self.waiting.first() {
            Some(id) => Err(format!("`{id}` has no result before {before}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use expect_test::{Expect, expect};
    use model::{Message, Prompt, SentCall, SentPart, SentPicture, render};
    use serde_json::json;
    use trace::{CallId, ModelSpec, Said, Seq, Status, ToolSpec};

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
    fn the_form_of_an_answer_is_closed() {
        let answering = |wire: &str, provider: &str| {
            let spec = ModelSpec {
                wire: wire.to_owned(),
                provider: provider.to_owned(),
                structured: Some(true),
                ..crate::story::model()
            };
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
        let failed = only("anthropic-messages", &[0, 1, 2, 3])
            .replace(r#""tool_use_id":"c2_1""#, r#""is_error":true,"tool_use_id":"c2_1""#);
        expect!["all content must be type text if is_error is true"]
            .assert_eq(&check("anthropic-messages", &failed).unwrap_err());
    }

    #[test]
    fn a_thought_stands_in_its_place() {
        let responses = body("openai-responses", "openai", &conversation("openai-responses"));
        let (before, rest) = responses.split_once(r#"{"encrypted_content""#).unwrap();
        let (thought, after) = rest.split_once("},").unwrap();
        let (calls, tail) = after.split_once(r#",{"type":"function_call_output""#).unwrap();
        let late = format!(r#"{before}{calls},{{"encrypted_content"{thought}}},{{"type":"function_call_output"{tail}"#);
        expect!["the reasoning `rs_1` without its required following item"]
            .assert_eq(&check("openai-responses", &late).unwrap_err());
        let gone = responses.replace(r#""encrypted_content":"eA""#, r#""encrypted_content":null"#);
        expect!["the content of reasoning is no text: null"].assert_eq(&check("openai-responses", &gone).unwrap_err());
        let messages = only("anthropic-messages", &[0, 1, 2, 3]).replace(r#""signature":"eA""#, r#""signature":"""#);
        expect!["the signature of thinking is blank"].assert_eq(&check("anthropic-messages", &messages).unwrap_err());
        let gemini = only("gemini", &[0, 1, 2, 3]).replace("eA", "");
        expect!["a signature is blank"].assert_eq(&check("gemini", &gemini).unwrap_err());
    }
}
