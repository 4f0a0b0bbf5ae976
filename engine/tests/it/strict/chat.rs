//! OpenAI Chat Completions.

use super::{Checked, Open, answer, arguments, at_least, data_url, is, list, name, object, schema, text, words};
use serde_json::Value;

/// "Expected an array with maximum length 128" (`array_above_max_length`, github.com/pydantic/pydantic-ai/issues/1105).
const MOST_CALLS: usize = 128;

pub(super) fn check(body: &Value) -> Checked {
    let limits = ["max_tokens", "max_completion_tokens"];
    let optional = ["stream", "stream_options", "reasoning_effort", "response_format", "tools", limits[0], limits[1]];
    let fields = object(body, "the request", &["model", "messages"], &optional)?;
    text(&body["model"], "the model")?;
    for limit in limits.into_iter().filter(|limit| fields.contains_key(*limit)) {
        at_least(&body[limit], 1, limit)?;
    }
    if limits.into_iter().all(|limit| fields.contains_key(limit)) {
        return Err("two limits of the output".to_owned());
    }
    if let Some(form) = fields.get("response_format") {
        object(form, "response_format", &["type", "json_schema"], &[])?;
        is(&form["type"], "json_schema", "the type of the answer's form")?;
        object(&form["json_schema"], "json_schema", &["name", "schema"], &["strict", "description"])?;
        answer(&form["json_schema"])?;
    }
    if let Some(tools) = fields.get("tools") {
        list(tools, "tools")?.iter().try_for_each(tool)?;
    }
    let (mut open, mut last) = (Open::default(), "");
    for (place, message) in list(&body["messages"], "messages")?.iter().enumerate() {
        last = text(&message["role"], "a role")?;
        match last {
            "system" => {
                object(message, "a system message", &["role", "content"], &[])?;
                at_least(&(u64::from(place == 0)).into(), 1, "the first place, of a system message")?;
                text(&message["content"], "the instructions")?;
            }
            "user" => {
                open.closed("a user message")?;
                object(message, "a user message", &["role", "content"], &[])?;
                user(&message["content"])?;
            }
            "assistant" => {
                open.closed("an assistant message")?;
                assistant(message, &mut open)?;
            }
            "tool" => {
                object(message, "a tool message", &["role", "tool_call_id", "content"], &[])?;
                text(&message["content"], "a result")?;
                open.result(name(&message["tool_call_id"], "the id of a result")?)?;
            }
            other => return Err(format!("the role `{other}`")),
        }
    }
    open.closed("the end")?;
    if matches!(last, "user" | "tool") { Ok(()) } else { Err(format!("the last message is of the role {last}")) }
}

/// Words, or a list of words and pictures.
fn user(content: &Value) -> Checked {
    if content.is_string() {
        return Ok(());
    }
    for part in list(content, "a user message")? {
        match text(&part["type"], "the type of a part")? {
            "text" => {
                object(part, "a part of a message", &["type", "text"], &[])?;
                text(&part["text"], "a part of a message")?;
            }
            "image_url" => {
                object(part, "a picture", &["type", "image_url"], &[])?;
                object(&part["image_url"], "a picture", &["url"], &["detail"])?;
                data_url(&part["image_url"]["url"])?;
            }
            other => return Err(format!("a part of the type `{other}`")),
        }
    }
    Ok(())
}

fn assistant(message: &Value, open: &mut Open) -> Checked {
    let thought = ["reasoning", "reasoning_content", "reasoning_details"];
    let optional = ["tool_calls", thought[0], thought[1], thought[2]];
    let fields = object(message, "an assistant message", &["role", "content"], &optional)?;
    let Some(calls) = fields.get("tool_calls") else { return words(&message["content"], "a reply without calls").map(|_| ()) };
    // "text content blocks must contain non-whitespace text", of Claude behind gateways.
    if !message["content"].is_null() {
        words(&message["content"], "a reply")?;
    }
    let calls = list(calls, "tool_calls")?;
    if calls.len() > MOST_CALLS {
        return Err(format!("{} calls in one message", calls.len()));
    }
    for call in calls {
        object(call, "a call", &["id", "type", "function"], &[])?;
        is(&call["type"], "function", "the type of a call")?;
        object(&call["function"], "a called function", &["name", "arguments"], &[])?;
        name(&call["function"]["name"], "the name of a call")?;
        arguments(&call["function"]["arguments"])?;
        open.call(name(&call["id"], "the id of a call")?)?;
    }
    Ok(())
}

fn tool(tool: &Value) -> Checked {
    object(tool, "a tool", &["type", "function"], &[])?;
    is(&tool["type"], "function", "the type of a tool")?;
    object(&tool["function"], "a function", &["name", "description", "parameters"], &["strict"])?;
    name(&tool["function"]["name"], "the name of a tool")?;
    schema(&tool["function"]["parameters"])
}
