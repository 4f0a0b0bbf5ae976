//! OpenAI Responses, with nothing stored.

use super::{Checked, Open, answer, arguments, at_least, data_url, is, list, name, object, schema, text};
use serde_json::Value;

pub(super) fn check(body: &Value) -> Checked {
    let optional = [
        "include",
        "prompt_cache_key",
        "reasoning",
        "parallel_tool_calls",
        "instructions",
        "text",
        "tools",
        "max_output_tokens",
        "stream",
    ];
    let fields = object(body, "the request", &["model", "input", "store"], &optional)?;
    text(&body["model"], "the model")?;
    is(&body["store"], false, "store")?;
    if let Some(include) = fields.get("include") {
        is(include, vec!["reasoning.encrypted_content"], "include")?;
    }
    if let Some(key) = fields.get("prompt_cache_key") {
        name(key, "the key of the cache")?;
    }
    if let Some(most) = fields.get("max_output_tokens") {
        at_least(most, 16, "max_output_tokens")?;
    }
    if let Some(reasoning) = fields.get("reasoning") {
        object(reasoning, "reasoning", &["effort"], &["summary"])?;
    }
    if let Some(form) = fields.get("text") {
        object(form, "text", &["format"], &[])?;
        object(&form["format"], "the answer's form", &["type", "name", "schema"], &["strict", "description"])?;
        is(&form["format"]["type"], "json_schema", "the type of the answer's form")?;
        answer(&form["format"])?;
    }
    if let Some(tools) = fields.get("tools") {
        list(tools, "tools")?.iter().try_for_each(tool)?;
    }
    let mut open = Open::default();
    // Reasoning that what it led to has to follow, and who spoke last.
    let (mut reasoning, mut last) = (None, "");
    for item in list(&body["input"], "input")? {
        let kind = text(&item["type"], "the type of an item")?;
        last = match (kind, item["role"].as_str()) {
            ("message", Some("user")) => {
                open.closed("a user message")?;
                object(item, "a user message", &["type", "role", "content"], &[])?;
                content(&item["content"], "input_text")?;
                "user"
            }
            ("message", Some("assistant")) => {
                open.closed("an assistant message")?;
                let fields = object(item, "an assistant message", &["type", "role", "content"], &["phase"])?;
                if fields.get("phase").is_some_and(|phase| phase != "commentary" && phase != "final_answer") {
                    return Err(format!("the phase {}", item["phase"]));
                }
                content(&item["content"], "output_text")?;
                reasoning = None;
                "assistant"
            }
            ("reasoning", None) => {
                // "Unknown parameter: 'input[1].status'" (github.com/BerriAI/litellm/issues/13420).
                let fields = object(item, "reasoning", &["type", "id", "summary", "encrypted_content"], &["content"])?;
                if !item["summary"].is_array() {
                    return Err(format!("the summary of reasoning is no list: {}", item["summary"]));
                }
                fields.get("content").map_or(Ok(()), |content| list(content, "the content of reasoning").map(|_| ()))?;
                let id = text(&item["id"], "the id of reasoning")?;
                // Without its content it would be looked up in what was not stored.
                text(&item["encrypted_content"], "the content of reasoning")?;
                reasoning = Some(id);
                "assistant"
            }
            ("function_call", None) => {
                object(item, "a call", &["type", "call_id", "name", "arguments"], &[])?;
                name(&item["name"], "the name of a call")?;
                arguments(&item["arguments"])?;
                open.call(name(&item["call_id"], "the id of a call")?)?;
                reasoning = None;
                "assistant"
            }
            ("function_call_output", None) => {
                object(item, "a result", &["type", "call_id", "output"], &[])?;
                if !item["output"].is_string() {
                    content(&item["output"], "input_text")?;
                }
                open.result(name(&item["call_id"], "the id of a result")?)?;
                "tool"
            }
            other => return Err(format!("an item of the type {other:?}")),
        };
        if let (Some(id), "user" | "tool") = (reasoning, last) {
            return Err(format!("the reasoning `{id}` without its required following item"));
        }
    }
    open.closed("the end")?;
    if matches!(last, "user" | "tool") { Ok(()) } else { Err(format!("the last item is of the {last}")) }
}

fn content(value: &Value, kind: &str) -> Checked {
    for part in list(value, "the content of a message")? {
        if kind == "input_text" && part["type"] == "input_image" {
            object(part, "a picture", &["type", "image_url"], &["detail"])?;
            data_url(&part["image_url"])?;
            continue;
        }
        object(part, "a part of a message", &["type", "text"], &[])?;
        is(&part["type"], kind, "the type of a part")?;
        text(&part["text"], "a part of a message")?;
    }
    Ok(())
}

fn tool(tool: &Value) -> Checked {
    object(tool, "a tool", &["type", "name", "description", "parameters", "strict"], &[])?;
    is(&tool["type"], "function", "the type of a tool")?;
    name(&tool["name"], "the name of a tool")?;
    schema(&tool["parameters"])
}
