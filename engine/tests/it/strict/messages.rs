//! Anthropic's Messages.

use super::{Checked, KINDS, Open, at_least, is, list, name, object, picture, schema, text, words};
use serde_json::Value;

/// The most marks that a request may have for the cache.
const MOST_MARKS: usize = 4;

pub(super) fn check(body: &Value) -> Checked {
    let optional = ["stream", "thinking", "output_config", "system", "tools"];
    let fields = object(body, "the request", &["model", "max_tokens", "messages"], &optional)?;
    text(&body["model"], "the model")?;
    at_least(&body["max_tokens"], 1, "max_tokens")?;
    if let Some(config) = fields.get("output_config") {
        let config = object(config, "output_config", &[], &["effort", "format"])?;
        if let Some(form) = config.get("format") {
            object(form, "the answer's form", &["type", "schema"], &[])?;
            is(&form["type"], "json_schema", "the type of the answer's form")?;
            schema(&form["schema"])?;
            is(&form["schema"]["additionalProperties"], false, "additionalProperties of an object")?;
        }
    }
    if let Some(thinking) = fields.get("thinking") {
        object(thinking, "thinking", &["type"], &["display"])?;
        is(&thinking["type"], "adaptive", "the type of thinking")?;
    }
    let mut marks = 0;
    for block in fields.get("system").map(|system| list(system, "system")).transpose()?.unwrap_or_default() {
        is(&block["type"], "text", "the type of instructions")?;
        object(block, "instructions", &["type", "text"], &["cache_control"])?;
        words(&block["text"], "instructions")?;
        marks += mark(block)?;
    }
    for tool in fields.get("tools").map(|tools| list(tools, "tools")).transpose()?.unwrap_or_default() {
        object(tool, "a tool", &["name", "description", "input_schema"], &["cache_control"])?;
        name(&tool["name"], "the name of a tool")?;
        schema(&tool["input_schema"])?;
        marks += mark(tool)?;
    }
    let mut open = Open::default();
    let mut last = "";
    for (place, message) in list(&body["messages"], "messages")?.iter().enumerate() {
        object(message, "a message", &["role", "content"], &[])?;
        let blocks = list(&message["content"], "the content of a message")?;
        let role = text(&message["role"], "a role")?;
        match role {
            "user" => user(blocks, &mut open, &mut marks)?,
            "assistant" if place == 0 => return Err("the first message is the assistant's".to_owned()),
            "assistant" => {
                open.closed("an assistant message")?;
                assistant(blocks, &mut open)?;
            }
            other => return Err(format!("the role `{other}`")),
        }
        last = role;
    }
    open.closed("the end")?;
    is(&last.into(), "user", "the role of the last message")?;
    if marks > MOST_MARKS { Err(format!("{marks} marks for the cache, and {MOST_MARKS} are the most")) } else { Ok(()) }
}

fn mark(block: &Value) -> Checked<usize> {
    let Some(mark) = block.get("cache_control") else { return Ok(0) };
    object(mark, "a mark for the cache", &["type"], &["ttl"])?;
    is(&mark["type"], "ephemeral", "the type of a mark")?;
    Ok(1)
}

/// Results come first and answer all calls of the message before.
fn user(blocks: &[Value], open: &mut Open, marks: &mut usize) -> Checked {
    for block in blocks {
        *marks += mark(block)?;
        match text(&block["type"], "the type of a block")? {
            "tool_result" => {
                object(block, "a result", &["type", "tool_use_id", "content"], &["is_error", "cache_control"])?;
                result(block)?;
                open.result(name(&block["tool_use_id"], "the id of a result")?)?;
            }
            "text" => {
                open.closed("words of the user")?;
                object(block, "words of the user", &["type", "text"], &["cache_control"])?;
                words(&block["text"], "words of the user")?;
            }
            "image" => {
                open.closed("a picture of the user")?;
                image(block)?;
            }
            other => return Err(format!("a user's block of the type `{other}`")),
        }
    }
    open.closed("the end of the message that must hold all results")
}

/// Words, or a list of words and pictures, which an error may not have.
fn result(block: &Value) -> Checked {
    if block["content"].is_string() {
        return Ok(());
    }
    for part in list(&block["content"], "a result")? {
        match text(&part["type"], "the type of a block")? {
            "text" => {
                object(part, "words of a result", &["type", "text"], &[])?;
                words(&part["text"], "words of a result")?;
            }
            "image" if block["is_error"] == true => return Err("all content must be type text if is_error is true".to_owned()),
            "image" => image(part)?,
            other => return Err(format!("a block of the type `{other}` in a result")),
        }
    }
    Ok(())
}

fn image(block: &Value) -> Checked {
    object(block, "a picture", &["type", "source"], &["cache_control"])?;
    let source = object(&block["source"], "the source of a picture", &["type", "media_type", "data"], &[])?;
    is(&source["type"], "base64", "the type of a source")?;
    picture(&source["media_type"], text(&source["data"], "the bytes of a picture")?, &KINDS)
}

/// Blank text may stand between two blocks of thinking alone, which without it count as modified: "thinking blocks in the
/// latest assistant message cannot be modified".
fn assistant(blocks: &[Value], open: &mut Open) -> Checked {
    let thinks = |place: Option<usize>| {
        let block = place.and_then(|place| blocks.get(place));
        block.is_some_and(|block| block["type"] == "thinking" || block["type"] == "redacted_thinking")
    };
    for (place, block) in blocks.iter().enumerate() {
        if block.get("cache_control").is_some() {
            return Err("a mark for the cache on what the assistant said".to_owned());
        }
        match text(&block["type"], "the type of a block")? {
            "text" => {
                object(block, "words", &["type", "text"], &[])?;
                let is_between = thinks(place.checked_sub(1)) && thinks(Some(place + 1));
                if !is_between || block["text"] == "" {
                    words(&block["text"], "words")?;
                }
            }
            "tool_use" => {
                object(block, "a call", &["type", "id", "name", "input"], &[])?;
                name(&block["name"], "the name of a call")?;
                object(&block["input"], "the input of a call", &[], &keys(&block["input"]))?;
                open.call(name(&block["id"], "the id of a call")?)?;
            }
            kind @ ("thinking" | "redacted_thinking") => {
                if place + 1 == blocks.len() {
                    return Err("the last block of a reply is thinking".to_owned());
                }
                match kind {
                    "thinking" => {
                        object(block, "thinking", &["type", "thinking", "signature"], &[])?;
                        words(&block["signature"], "the signature of thinking")?;
                    }
                    _ => {
                        object(block, "redacted thinking", &["type", "data"], &[])?;
                        words(&block["data"], "redacted thinking")?;
                    }
                }
            }
            other => return Err(format!("a block of the type `{other}`")),
        }
    }
    Ok(())
}

/// The fields of an object whose fields are anyone's.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flat_map(|object| object.keys()).map(String::as_str).collect()
}
