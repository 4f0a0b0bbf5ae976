//! What each provider accepts, as strictly as its published schema and error messages say it: a request is read as the
//! server would read it, and the first rule that it breaks is named.
//!
//! No server is needed for this, and none is so strict in all of it; what passes here is valid for the wire whatever else
//! the server thinks of it. Sources: developers.openai.com/api/reference (chat, responses), platform.claude.com/docs/en/api/
//! messages, ai.google.dev/api/generate-content and …/gemini-api/docs/thought-signatures, and the messages of refusals that
//! users reported. Vendors that speak a wire of others have rules of their own on top of it, each with its source.
//!
//! The tests of the engine hold every request of their random histories to this, and the server of the program's tests
//! every body that it receives; so it knows nothing of either.

mod chat;
mod gemini;
mod messages;
mod responses;
mod vendors;

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A request, and whom it is for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The wire, by its name in records.
    pub wire: &'a str,
    /// The provider, by its name in model ids.
    pub provider: &'a str,
    /// The name of the model, where it is known beside what the body says.
    pub model: Option<&'a str>,
    pub body: &'a str,
}

/// Whether the provider accepts the request, or the rule that it breaks.
pub fn check(asked: Asked<'_>) -> Result<(), String> {
    let body: Value = serde_json::from_str(asked.body).map_err(|error| format!("not JSON: {error}"))?;
    let model = asked.model.or(body["model"].as_str()).unwrap_or_default();
    without_nul(&body)?;
    match asked.wire {
        "openai-chat" => chat::check(&body)?,
        "openai-responses" => responses::check(&body)?,
        "anthropic-messages" => messages::check(&body)?,
        "gemini" => gemini::check(model, &body)?,
        other => return Err(format!("no rules are known for the wire {other}")),
    }
    // Gemini's stands in the address.
    if asked.wire != "gemini" {
        is(&body["model"], model, "the model")?;
    }
    vendors::check(asked.provider, model, &body)
}

type Checked<T = ()> = Result<T, String>;

/// No text holds a NUL, nor do arguments that are one: some servers end a prompt there in silence
/// (github.com/ggml-org/llama.cpp/issues/25543).
fn without_nul(value: &Value) -> Checked {
    match value {
        Value::String(text) if text.contains('\0') => Err(format!("a NUL in {text:?}")),
        Value::Array(values) => values.iter().try_for_each(without_nul),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let inner = (name == "arguments").then(|| serde_json::from_str(value.as_str()?).ok()).flatten();
            without_nul(&Value::String(name.clone())).and_then(|()| without_nul(&inner.unwrap_or_else(|| value.clone())))
        }),
        _ => Ok(()),
    }
}

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
