//! What vendors want beyond the wire that they speak, or take less of. Each rule says where it was read.

use super::{Checked, list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// The fields of a reply in which reasoning goes back to the one or the other.
const REASONING: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_details"];

pub(super) fn check(provider: &str, model: &str, body: &Value) -> Checked {
    match provider {
        "openai" => {
            openai(model, body)?;
            pictures(body, 500)
        }
        "openai-chat" => {
            openai_chat(body)?;
            pictures(body, 500)
        }
        "azure" => azure(body),
        "anthropic" => anthropic(model, body),
        "minimax" => minimax(body),
        "mistral" => mistral(body),
        "deepseek" => deepseek(body),
        "kimi" => kimi(body),
        "glm" => no_json_schema(body),
        "groq" => groq(body),
        // "Supported image file types: jpg/jpeg or png" (docs.x.ai/developers/model-capabilities/images/understanding).
        "xai" => kinds(body, &["png", "jpeg"]),
        // "Failed to load image or audio file" of WebP, which its decoder does not know (github.com/cline/cline issue 8977).
        "llamacpp" => kinds(body, &["png", "jpeg", "gif"]),
        // "The LM Studio server supports JPEG, PNG, and WebP" (lmstudio.ai/docs/python/llm-prediction/image-input).
        "lmstudio" => kinds(body, &["png", "jpeg", "webp"]),
        // Nothing is known that they want beyond the wire.
        "gemini" | "openrouter" | "qwen" | "openai-compatible" | "ollama" | "vllm" => Ok(()),
        other => Err(format!("no rules are known for the provider {other}: say in this file what it wants")),
    }
}

/// "Encrypted content is not supported with this model" of models that do not reason, as GPT-4's do not
/// (github.com/openai/openai-agents-python, issues). 500 pictures: developers.openai.com/api/docs/guides/images-vision.
fn openai(model: &str, body: &Value) -> Checked {
    let asks = body.get("include").is_some() || body.get("reasoning").is_some();
    if asks && model.starts_with("gpt-4") { Err(format!("reasoning is asked of {model}, which has none")) } else { Ok(()) }
}

/// "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."; and
/// "Additional properties are not allowed" for fields of a message that are not in the reference
/// (developers.openai.com/api/reference/resources/chat).
fn openai_chat(body: &Value) -> Checked {
    absent(body, "max_tokens")?;
    no_reasoning(body)
}

/// The limits of Azure name 50 pictures for GPT-4o and GPT-4.1 and nothing for others
/// (learn.microsoft.com/azure/ai-services/openai/quotas-limits); what a deployment is, its name does not say.
fn azure(body: &Value) -> Checked {
    pictures(body, 50)
}

/// 100 pictures a request, 600 where the window is longer than 200,000 tokens (platform.claude.com/docs/en/build-with-claude/
/// vision).
fn anthropic(model: &str, body: &Value) -> Checked {
    let is_short = ["claude-3", "claude-haiku-4"].iter().any(|short| model.starts_with(short));
    pictures(body, if is_short { 100 } else { 600 })
}

/// The parameters that the compatible interface names (platform.minimax.io/docs/api-reference/text-anthropic-api).
fn minimax(body: &Value) -> Checked {
    absent(body, "output_config")
}

/// The order of roles and the ids are those of mistral-common's validator (github.com/mistralai/mistral-common), which the
/// service answers with status 400: "Unexpected role 'user' after role 'tool'" (code 3230, github.com/avante-corp/avante.nvim
/// issue 2562), "Tool call id was c2_0 but must be a-z, A-Z, 0-9, with a length of 9". Fields that the reference does not have
/// are refused with status 422 (docs.mistral.ai/api, avante.nvim issue 2347). 8 pictures: github.com/earendil-works/pi pull
/// request 120.
fn mistral(body: &Value) -> Checked {
    absent(body, "stream_options")?;
    absent(body, "max_completion_tokens")?;
    no_reasoning(body)?;
    let mut before = "";
    for message in messages(body)? {
        let role = text(&message["role"], "a role")?;
        if (before, role) == ("tool", "user") {
            return Err("Unexpected role 'user' after role 'tool'".to_owned());
        }
        before = role;
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]);
        for id in calls.chain(message.get("tool_call_id")) {
            let id = text(id, "the id of a call")?;
            if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9"));
            }
        }
    }
    pictures(body, 8)
}

/// Thinking is on unless it is turned off, and "if the model performed a tool call, the intermediate assistant's
/// reasoning_content must be passed back" (api-docs.deepseek.com/guides/thinking_mode); an empty one counts as none
/// (github.com/charmbracelet/crush issue 2696). The output's limit is `max_tokens`, an answer's form `text` or `json_object`
/// (api-docs.deepseek.com/api/create-chat-completion).
fn deepseek(body: &Value) -> Checked {
    absent(body, "max_completion_tokens")?;
    no_json_schema(body)?;
    thought_of(body)
}

/// "thinking is enabled but reasoning_content is missing in assistant tool call message", also of an empty one
/// (github.com/earendil-works/pi pull request 4178); "text content is empty" of a part without words
/// (github.com/BerriAI/litellm issue 42186); "not a valid moonshot flavored json schema" of parameters in which a property
/// has no type, or one beside `anyOf`, or `items` that are no schema (github.com/MoonshotAI/kimi-cli pull request 2030,
/// github.com/vercel/ai pull request 18921).
fn kimi(body: &Value) -> Checked {
    thought_of(body)?;
    for message in messages(body)? {
        let mut parts = message["content"].as_array().into_iter().flatten();
        if parts.any(|part| part["text"] == "") {
            return Err("text content is empty".to_owned());
        }
    }
    for tool in body.get("tools").map(|tools| list(tools, "tools")).transpose()?.unwrap_or_default() {
        flavored(&tool["function"]["parameters"], "root")?;
    }
    Ok(())
}

/// A schema as Moonshot reads it.
fn flavored(schema: &Value, path: &str) -> Checked {
    let wrong = |why: &str| Err(format!("not a valid moonshot flavored json schema: at path '{path}': {why}"));
    let Some(keywords) = schema.as_object() else { return wrong("a schema is an object") };
    let choices = keywords.get("anyOf").and_then(Value::as_array);
    match (keywords.contains_key("type"), choices.is_some(), keywords.contains_key("$ref")) {
        (true, true, _) => return wrong("when using anyOf, type should be defined in anyOf items"),
        (false, false, false) => return wrong("type is not defined"),
        _ => {}
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    let names: BTreeSet<&str> = properties.into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
    let required = keywords.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(name) = required.filter_map(Value::as_str).find(|name| !names.contains(name)) {
        return wrong(&format!("`{name}` is required and no property"));
    }
    for (name, schema) in properties.into_iter().flatten() {
        flavored(schema, &format!("{path}.properties.{name}"))?;
    }
    for schema in choices.into_iter().flatten() {
        flavored(schema, &format!("{path}.anyOf"))?;
    }
    keywords.get("items").map_or(Ok(()), |items| flavored(items, &format!("{path}.items")))
}

/// "property 'reasoning_content' is unsupported", and so of `reasoning` (github.com/janhq/jan issue 8136,
/// github.com/karthink/gptel issue 774); "json mode cannot be combined with tool/function calling" (github.com/vercel/ai pull
/// request 16540); "Too many images provided. This model supports up to 3 images".
fn groq(body: &Value) -> Checked {
    no_reasoning(body)?;
    if body.get("response_format").is_some() && body.get("tools").is_some() {
        return Err("json mode cannot be combined with tool/function calling".to_owned());
    }
    pictures(body, 3)
}

/// The pictures on OpenAI's chat are of these kinds.
fn kinds(body: &Value, known: &[&str]) -> Checked {
    let is_known = |url: &&str| known.iter().any(|kind| url.starts_with(&format!("data:image/{kind};")));
    let strange = addresses(body).into_iter().find(|url| !is_known(url));
    strange.map_or(Ok(()), |url| Err(format!("a picture that is none of {known:?}: {url:.24}")))
}

/// Every reply with calls has what was thought before them.
fn thought_of(body: &Value) -> Checked {
    for message in messages(body)?.iter().filter(|message| message.get("tool_calls").is_some()) {
        if message["reasoning_content"].as_str().is_none_or(str::is_empty) {
            return Err("reasoning_content is missing in assistant tool call message".to_owned());
        }
    }
    Ok(())
}

/// The form of an answer is `text` or `json_object` (docs.z.ai/api-reference/llm/chat-completion, and DeepSeek's reference).
fn no_json_schema(body: &Value) -> Checked {
    match body.get("response_format").map(|form| &form["type"]) {
        Some(kind) if kind == "json_schema" => Err("this response_format type is unavailable".to_owned()),
        _ => Ok(()),
    }
}

fn no_reasoning(body: &Value) -> Checked {
    let mut fields =
        messages(body)?.iter().flat_map(|message| REASONING.into_iter().filter(|field| message.get(field).is_some()));
    fields.next().map_or(Ok(()), |field| Err(format!("property '{field}' is unsupported")))
}

fn absent(body: &Value, field: &str) -> Checked {
    if body.get(field).is_some() { Err(format!("`{field}` is unsupported")) } else { Ok(()) }
}

fn messages(body: &Value) -> Checked<&[Value]> {
    list(&body["messages"], "messages")
}

fn pictures(body: &Value, most: usize) -> Checked {
    let count = held(body, &|value| matches!(value["type"].as_str(), Some("image_url" | "input_image" | "image"))).len();
    if count > most { Err(format!("{count} pictures, and {most} are the most")) } else { Ok(()) }
}

/// The addresses of pictures on OpenAI's chat.
fn addresses(body: &Value) -> Vec<&str> {
    let pictures = held(body, &|value| value["type"] == "image_url");
    pictures.into_iter().filter_map(|picture| picture["image_url"]["url"].as_str()).collect()
}

/// All in `value` that is `wanted`, at whatever depth; what a call holds is anything.
fn held<'a>(value: &'a Value, wanted: &dyn Fn(&Value) -> bool) -> Vec<&'a Value> {
    let below = match value {
        Value::Object(block) if block.get("type").is_some_and(|kind| kind == "tool_use") => Vec::new(),
        Value::Array(all) => all.iter().flat_map(|value| held(value, wanted)).collect(),
        Value::Object(all) => all.values().flat_map(|value| held(value, wanted)).collect(),
        _ => Vec::new(),
    };
    wanted(value).then_some(value).into_iter().chain(below).collect()
}
