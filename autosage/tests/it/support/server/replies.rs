//! What a scripted answer looks like on each wire.

use super::{Answer, Wire};
use serde_json::{Value, json};

/// What signs a thought, or is one that only the model can read.
const SIGNED: &str = "c2lnbmVk";

/// The head and the body of `answer` on `wire`.
pub(super) fn response(wire: Wire, answer: &Answer) -> (String, String) {
    let words = answer.error.as_deref().unwrap_or("trouble");
    let told = [("retry-after", &answer.retry_after), ("date", &answer.date)];
    let told = told.map(|(name, value)| value.as_ref().map(|value| format!("{name}: {value}\r\n")).unwrap_or_default()).concat();
    if let Some(status) = answer.status.filter(|_| !answer.in_stream) {
        let body = error(wire, status, words).to_string();
        let head = format!(
            "HTTP/1.1 {status} Trouble\r\ncontent-type: application/json\r\n{told}content-length: {}\r\n\r\n",
            body.len()
        );
        return (head, body);
    }
    let body: String = match wire {
        Wire::Chat => chat(answer),
        Wire::Responses => responses(answer),
        Wire::Messages => messages(answer),
        Wire::Gemini => gemini(answer),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", body.len());
    (head, body)
}

/// An error as each provider writes it.
fn error(wire: Wire, status: u16, words: &str) -> Value {
    match wire {
        Wire::Chat | Wire::Responses => json!({"error": {"message": words, "type": "error", "code": null}}),
        Wire::Gemini => json!({"error": {"code": status, "message": words, "status": "TROUBLE"}}),
        Wire::Messages => {
            let kind = match status {
                401 => "authentication_error",
                404 => "not_found_error",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req"})
        }
    }
}

/// The arguments of a call as text.
fn arguments(call: &Value) -> String {
    match &call["arguments"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn id(index: usize, call: &Value) -> String {
    call["id"].as_str().map_or_else(|| format!("call_{index}"), str::to_owned)
}

fn chat(answer: &Answer) -> String {
    let mut body = String::new();
    let mut chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        body.push_str(&format!("data: {}\n\n", json!({"id": "r", "model": "scripted", "choices": [choice]})));
    };
    if let Some(thought) = &answer.thought {
        chunk(json!({"role": "assistant", "reasoning_content": thought}), None);
    }
    if let Some(text) = &answer.text {
        chunk(json!({"role": "assistant", "content": text}), None);
    }
    if let Some(status) = answer.status {
        chunk(json!({"role": "assistant", "content": "Let me"}), None);
        let error = error(Wire::Chat, status, answer.error.as_deref().unwrap_or("trouble"));
        return body + &format!("data: {error}\n\n");
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let function = json!({"name": call["name"], "arguments": arguments(call)});
        chunk(json!({"tool_calls": [{"index": index, "id": id(index, call), "type": "function", "function": function}]}), None);
    }
    if answer.no_end {
        return body;
    }
    let usual = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    chunk(json!({}), Some(answer.finish.as_deref().unwrap_or(usual)));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 90}});
    body + &format!("data: {}\n\ndata: [DONE]\n\n", json!({"id": "r", "model": "scripted", "choices": [], "usage": usage}))
}

fn gemini(answer: &Answer) -> String {
    let mut body = String::new();
    let mut chunk = |fields: Value| body.push_str(&format!("data: {fields}\r\n\r\n"));
    let usage =
        json!({"promptTokenCount": 100, "cachedContentTokenCount": 90, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let part = |part: Value| {
        let content = json!({"role": "model", "parts": [part]});
        json!({"candidates": [{"index": 0, "content": content}], "usageMetadata": usage, "modelVersion": "scripted"})
    };
    let text = answer.text.as_deref().or(answer.status.map(|_| "Let me")).unwrap_or_default();
    if let Some(thought) = &answer.thought {
        chunk(part(json!({"text": thought, "thought": true})));
    }
    if !text.is_empty() {
        chunk(part(json!({"text": text})));
    }
    if let Some(status) = answer.status {
        chunk(error(Wire::Gemini, status, answer.error.as_deref().unwrap_or("trouble")));
        return body;
    }
    for (place, call) in answer.calls.iter().enumerate() {
        // An empty id is none; arguments are an object, where they are JSON.
        let args = match &call["arguments"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or(call["arguments"].clone()),
            other => other.clone(),
        };
        let mut function = json!({"name": call["name"], "args": args});
        let id = id(place, call);
        if !id.is_empty() {
            function["id"] = id.into();
        }
        let mut call = json!({"functionCall": function});
        if answer.thought.is_some() && place == 0 {
            call["thoughtSignature"] = SIGNED.into();
        }
        chunk(part(call));
    }
    if answer.no_end {
        return body;
    }
    let reason = match answer.finish.as_deref() {
        Some("length") => "MAX_TOKENS",
        Some("content_filter") => "SAFETY",
        Some(other) => panic!("no reason to stop: {other}"),
        None => "STOP",
    };
    chunk(json!({"candidates": [{"index": 0, "finishReason": reason}], "usageMetadata": usage}));
    body
}

fn responses(answer: &Answer) -> String {
    let mut body = String::new();
    let mut event = |kind: &str, mut fields: Value| {
        fields["type"] = kind.into();
        body.push_str(&format!("event: {kind}\ndata: {fields}\n\n"));
    };
    let head = json!({"id": "r", "object": "response", "model": "scripted", "output": []});
    let response = |status: &str, more: Value| {
        let mut response = head.clone();
        response["status"] = status.into();
        more.as_object().unwrap().iter().for_each(|(name, value)| response[name] = value.clone());
        json!({"response": response})
    };
    event("response.created", response("in_progress", json!({"usage": null})));
    let text = answer.text.as_deref().or(answer.status.map(|_| "Let me")).unwrap_or_default();
    let mut index = 0;
    if let Some(thought) = &answer.thought {
        let summary = json!([{"type": "summary_text", "text": thought}]);
        let item = json!({"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": SIGNED});
        event("response.output_item.done", json!({"output_index": index, "item": item}));
        index += 1;
    }
    if !text.is_empty() {
        let item = |content: Value| json!({"type": "message", "id": "m", "role": "assistant", "content": content});
        event("response.output_item.added", json!({"output_index": index, "item": item(json!([]))}));
        event("response.output_text.delta", json!({"output_index": index, "content_index": 0, "delta": text}));
        let content = json!([{"type": "output_text", "text": text}]);
        event("response.output_item.done", json!({"output_index": index, "item": item(content)}));
        index += 1;
    }
    if let Some(status) = answer.status {
        let code = if status == 429 { "rate_limit_exceeded" } else { "server_error" };
        let error = json!({"code": code, "message": answer.error.as_deref().unwrap_or("trouble")});
        event("response.failed", response("failed", json!({"error": error})));
        return body;
    }
    let cut = answer.finish.as_deref() == Some("length");
    for (place, call) in answer.calls.iter().enumerate() {
        let item = |arguments: &str, status: &str| {
            let (id, name) = (id(place, call), &call["name"]);
            json!({"type": "function_call", "id": "f", "call_id": id, "name": name, "arguments": arguments, "status": status})
        };
        let whole = arguments(call);
        event("response.output_item.added", json!({"output_index": index, "item": item("", "in_progress")}));
        event("response.function_call_arguments.delta", json!({"output_index": index, "delta": whole}));
        let status = if cut { "incomplete" } else { "completed" };
        event("response.output_item.done", json!({"output_index": index, "item": item(&whole, status)}));
        index += 1;
    }
    if answer.no_end {
        return body;
    }
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 10});
    let reason = match answer.finish.as_deref() {
        Some("length") => "max_output_tokens",
        Some("content_filter") => "content_filter",
        Some(other) => panic!("no reason to stop: {other}"),
        None => {
            event("response.completed", response("completed", json!({"usage": usage})));
            return body;
        }
    };
    let more = json!({"usage": usage, "incomplete_details": {"reason": reason}});
    event("response.incomplete", response("incomplete", more));
    body
}

fn messages(answer: &Answer) -> String {
    let mut body = String::new();
    let mut event = |fields: Value| {
        let name = fields["type"].as_str().unwrap_or_default().to_owned();
        body.push_str(&format!("event: {name}\ndata: {fields}\n\n"));
    };
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0, "output_tokens": 1});
    let message = json!({"id": "r", "type": "message", "role": "assistant", "model": "scripted", "content": [], "usage": usage});
    event(json!({"type": "message_start", "message": message}));
    let text = answer.text.as_deref().or(answer.status.map(|_| "Let me")).unwrap_or_default();
    let mut index = 0;
    if let Some(thought) = &answer.thought {
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        );
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thought}}));
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": SIGNED}}));
        event(json!({"type": "content_block_stop", "index": 0}));
        index += 1;
    }
    if !text.is_empty() {
        event(json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}));
        event(json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}));
        event(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    }
    if let Some(status) = answer.status {
        event(error(Wire::Messages, status, answer.error.as_deref().unwrap_or("trouble")));
        return body;
    }
    for (place, call) in answer.calls.iter().enumerate() {
        let block = json!({"type": "tool_use", "id": id(place, call), "name": call["name"], "input": {}});
        event(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = json!({"type": "input_json_delta", "partial_json": arguments(call)});
        event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        event(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    }
    if answer.no_end {
        return body;
    }
    let reason = match answer.finish.as_deref() {
        Some("length") => "max_tokens",
        Some("content_filter") => "refusal",
        Some(other) => panic!("no reason to stop: {other}"),
        None if answer.calls.is_empty() => "end_turn",
        None => "tool_use",
    };
    event(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 10}}));
    event(json!({"type": "message_stop"}));
    body
}
