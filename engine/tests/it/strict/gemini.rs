//! Gemini's generateContent.
//!
//! From 3 on, a turn's step whose first call has no signature is refused: "Function call is missing a thought_signature"
//! (ai.google.dev/gemini-api/docs/thought-signatures), whatever the request says of thinking. Up to 2.5, calls and answers in JSON exclude each other: "Function
//! calling with a response mime type: 'application/json' is unsupported", and a result is words (ai.google.dev/gemini-api/
//! docs/function-calling).

use super::{Checked, at_least, is, list, name, object, picture, schema, text, words};
use serde_json::Value;

const FORM: [&str; 3] = ["thinkingConfig", "responseMimeType", "responseJsonSchema"];

pub(super) fn check(model: &str, body: &Value) -> Checked {
    let short = model.strip_prefix("models/").unwrap_or(model);
    let is_old = short.starts_with("gemini-1") || short.starts_with("gemini-2");
    let fields = object(body, "the request", &["contents"], &["systemInstruction", "tools", "generationConfig"])?;
    if let Some(system) = fields.get("systemInstruction") {
        object(system, "systemInstruction", &["parts"], &[])?;
        for part in list(&system["parts"], "the parts of the instructions")? {
            object(part, "instructions", &["text"], &[])?;
            words(&part["text"], "instructions")?;
        }
    }
    for tool in fields.get("tools").map(|tools| list(tools, "tools")).transpose()?.unwrap_or_default() {
        object(tool, "a tool", &["functionDeclarations"], &[])?;
        list(&tool["functionDeclarations"], "functionDeclarations")?.iter().try_for_each(function)?;
    }
    if let Some(config) = fields.get("generationConfig") {
        let config = object(config, "generationConfig", &["maxOutputTokens"], &FORM)?;
        at_least(&config["maxOutputTokens"], 1, "maxOutputTokens")?;
        if let Some(form) = config.get("responseJsonSchema") {
            is(config.get("responseMimeType").unwrap_or(&Value::Null), "application/json", "the kind of the answer")?;
            schema(form)?;
        }
        if is_old && config.contains_key("responseMimeType") && fields.contains_key("tools") {
            return Err("function calling with a response mime type is unsupported".to_owned());
        }
        if let Some(thinking) = config.get("thinkingConfig") {
            object(thinking, "thinkingConfig", &["includeThoughts"], &["thinkingLevel"])?;
        }
    }
    // The calls of the content before, by id and name.
    let mut waiting: Vec<(Option<&str>, &str)> = Vec::new();
    let mut last = "";
    for content in list(&body["contents"], "contents")? {
        object(content, "a content", &["role", "parts"], &[])?;
        let parts = list(&content["parts"], "the parts of a content")?;
        let role = text(&content["role"], "a role")?;
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for part in parts {
            match (role, kind(part)?) {
                ("user", "text") => {
                    object(part, "words of the user", &["text"], &[])?;
                    words(&part["text"], "words of the user")?;
                }
                ("user", "inlineData") => picture_of(part)?,
                ("user", "functionResponse") => {
                    results.push(result(part)?);
                    if is_old && part["functionResponse"].get("parts").is_some() {
                        return Err(format!("a picture in a result for {model}"));
                    }
                }
                ("model", "text") => said(part)?,
                ("model", "functionCall") => {
                    if !is_old && calls.is_empty() && part.get("thoughtSignature").is_none() {
                        return Err("a first call without a thought signature".to_owned());
                    }
                    calls.push(call(part)?);
                }
                (role, kind) => return Err(format!("a part of the kind {kind} in a content of the role {role}")),
            }
        }
        if results != waiting {
            return Err(format!("the results {results:?} after the calls {waiting:?}"));
        }
        if !results.is_empty() && results.len() != parts.len() {
            return Err("words among the results".to_owned());
        }
        if last.is_empty() && role != "user" {
            return Err("the first content is not the user's".to_owned());
        }
        if !calls.is_empty() && last != "user" {
            return Err("calls that do not come immediately after a user turn or a function response turn".to_owned());
        }
        let ids: Vec<&str> = calls.iter().filter_map(|(id, _)| *id).collect();
        if (1..ids.len()).any(|place| ids[..place].contains(&ids[place])) {
            return Err(format!("two calls with one id: {ids:?}"));
        }
        waiting = calls;
        last = role;
    }
    is(&last.into(), "user", "the role of the last content")?;
    if waiting.is_empty() { Ok(()) } else { Err(format!("the calls {waiting:?} have no results")) }
}

fn function(function: &Value) -> Checked {
    let fields = object(function, "a function", &["name", "description"], &["parametersJsonSchema"])?;
    name(&function["name"], "the name of a function")?;
    fields.get("parametersJsonSchema").map_or(Ok(()), schema)
}

/// The one thing that a part holds.
fn kind(part: &Value) -> Checked<&'static str> {
    let kinds = ["text", "functionCall", "functionResponse", "inlineData"];
    let mut held = kinds.into_iter().filter(|kind| part.get(kind).is_some());
    match (held.next(), held.next()) {
        (Some(kind), None) => Ok(kind),
        _ => Err(format!("a part that does not hold one thing: {part}")),
    }
}

fn said(part: &Value) -> Checked {
    let fields = object(part, "words", &["text"], &["thought", "thoughtSignature"])?;
    match fields.get("thoughtSignature") {
        Some(signature) => words(signature, "a signature").map(|_| ()),
        None => words(&part["text"], "words without a signature").map(|_| ()),
    }
}

fn call(part: &Value) -> Checked<(Option<&str>, &str)> {
    let fields = object(part, "a call", &["functionCall"], &["thoughtSignature"])?;
    if let Some(signature) = fields.get("thoughtSignature") {
        words(signature, "a signature")?;
    }
    let call = object(&part["functionCall"], "a called function", &["name", "args"], &["id"])?;
    if !call["args"].is_object() {
        return Err(format!("arguments that are no object: {}", call["args"]));
    }
    Ok((call.get("id").map(|id| words(id, "the id of a call")).transpose()?, name(&call["name"], "the name of a call")?))
}

fn picture_of(part: &Value) -> Checked {
    object(part, "a picture", &["inlineData"], &[])?;
    let data = object(&part["inlineData"], "inlineData", &["mimeType", "data"], &[])?;
    picture(&data["mimeType"], text(&data["data"], "the bytes of a picture")?, &["image/png", "image/jpeg", "image/webp"])
}

fn result(part: &Value) -> Checked<(Option<&str>, &str)> {
    object(part, "a result", &["functionResponse"], &[])?;
    let result = object(&part["functionResponse"], "the response of a function", &["name", "response"], &["id", "parts"])?;
    object(&result["response"], "a response", &[], &["output", "error"])?;
    result.get("parts").map_or(Ok(()), |parts| list(parts, "the parts of a result")?.iter().try_for_each(picture_of))?;
    Ok((result.get("id").map(|id| words(id, "the id of a result")).transpose()?, name(&result["name"], "the name of a result")?))
}
