//! A scripted model server on loopback: it speaks every wire, answers from a list, and keeps every body it received.

use super::Place;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The wires. A request is answered on the one that it came on, which its path tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's chat.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Gemini's generateContent.
    Gemini,
}

impl Wire {
    /// Every wire.
    pub const ALL: [Wire; 4] = [Wire::Chat, Wire::Responses, Wire::Messages, Wire::Gemini];

    /// The model to ask at the server behind `base_url`, as arguments of the program.
    pub fn arguments(self, base_url: &str) -> Vec<&str> {
        match self {
            Wire::Chat => vec!["--model", "openai-compatible/scripted", "--base-url", base_url],
            Wire::Responses => vec!["--model", "openai/scripted", "--base-url", base_url, "--key-env", "TEST_KEY"],
            Wire::Messages => vec!["--model", "anthropic/scripted", "--base-url", base_url, "--key-env", "TEST_KEY"],
            Wire::Gemini => vec!["--model", "gemini/scripted", "--base-url", base_url, "--key-env", "TEST_KEY"],
        }
    }
}

/// One answer of the script, on whichever wire.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Words.
    pub text: Option<String>,
    /// Calls, each `{name, arguments, id?}`; arguments that are a string are sent as they are.
    #[serde(default)]
    pub calls: Vec<Value>,
    /// An HTTP status other than 200, with `error` as its words.
    pub status: Option<u16>,
    /// The words of an error.
    pub error: Option<String>,
    /// The value of Retry-After.
    pub retry_after: Option<String>,
    /// The value of Date: what the server's own clock says.
    pub date: Option<String>,
    /// The reason for which the model stopped, where it is not the usual one: `length` or `content_filter`.
    pub finish: Option<String>,
    /// Where the stream breaks off, in bytes.
    pub cut_at: Option<usize>,
    /// Whether the answer, or what follows `cut_at` of it, never comes.
    #[serde(default)]
    pub hang: bool,
    /// What is sent again and again, as long as the client takes it: instead of the answer, or behind its first `cut_at` bytes.
    pub endless: Option<Endless>,
    /// Whether the error comes inside a stream, after a first word.
    #[serde(default)]
    pub in_stream: bool,
    /// Whether the stream has no closing event.
    #[serde(default)]
    pub no_end: bool,
    /// `{found}` in the words and arguments stands for what the request has between these two, where it has that last.
    pub find: Option<[String; 2]>,
}

/// What never ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endless {
    /// The bytes.
    pub piece: String,
    /// How often they are sent at once, before the server rests for a hundredth of a second. Without it, it never rests.
    pub at_once: Option<usize>,
}

impl Answer {
    /// The same answer, to the request with this body.
    fn to(self, body: &str) -> Answer {
        let Some([before, after]) = &self.find else { return self };
        let found = body.rsplit_once(before.as_str()).and_then(|(_, rest)| rest.split_once(after.as_str()));
        let (found, _) = found.unwrap_or_else(|| panic!("nothing between {before:?} and {after:?} in {body}"));
        let filled = |text: &str| text.replace("{found}", found);
        let calls = self.calls.iter().map(|call| serde_json::from_str(&filled(&call.to_string())).unwrap()).collect();
        Answer { text: self.text.as_deref().map(filled), calls, ..self }
    }

    /// Whether it is no good answer.
    pub fn is_fault(&self) -> bool {
        self.status.is_some() || self.cut_at.is_some() || self.hang || self.no_end || self.endless.is_some()
    }
}

/// A reply that calls a tool.
pub fn call(name: &str, arguments: Value) -> Answer {
    Answer { calls: vec![json!({"name": name, "arguments": arguments})], ..Answer::default() }
}

/// A reply that runs a command.
pub fn bash(command: &str) -> Answer {
    call("bash", json!({"command": command}))
}

/// What a server was asked, and what it has to say.
#[derive(Default)]
struct Served {
    bodies: Mutex<Vec<String>>,
    keys: Mutex<Vec<Option<String>>>,
    faults: Mutex<usize>,
    repeated: Mutex<usize>,
    script: Mutex<VecDeque<Answer>>,
    /// Whether it has no answer any more, for a request and the script did not fit each other.
    is_broken: AtomicBool,
}

/// A running server. It takes no more connections once it is dropped: the tests of a program share its open files. A test
/// whose requests and script did not fit each other fails there, if nowhere before.
pub struct Server {
    /// Its address, with the version.
    pub base_url: String,
    served: Arc<Served>,
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // So that its thread wakes up and sees it.
        let _ = TcpStream::connect(self.address);
        let is_broken = self.served.is_broken.load(Ordering::SeqCst);
        assert!(!is_broken || std::thread::panicking(), "a request and the script of the server did not fit each other");
    }
}

impl Server {
    /// Serves `script` from its start again, at the same address, as if nothing had been asked yet.
    pub fn restart(&self, script: Vec<Answer>) {
        self.served.bodies.lock().unwrap().clear();
        self.served.keys.lock().unwrap().clear();
        *self.served.faults.lock().unwrap() = 0;
        *self.served.repeated.lock().unwrap() = 0;
        *self.served.script.lock().unwrap() = VecDeque::from(script);
    }

    /// Serves `script`, then "Done." for ever.
    pub fn start(script: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let base_url = format!("http://{address}/v1");
        let server = Server {
            base_url,
            served: Arc::new(Served { script: Mutex::new(VecDeque::from(script)), ..Served::default() }),
            address,
            is_over: Arc::default(),
        };
        let is_over = server.is_over.clone();
        let served = server.served.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten().take_while(|_| !is_over.load(Ordering::SeqCst)) {
                let served = served.clone();
                std::thread::spawn(move || {
                    if catch_unwind(AssertUnwindSafe(|| serve(stream, &served))).is_err() {
                        served.is_broken.store(true, Ordering::SeqCst);
                    }
                });
            }
        });
        server
    }

    /// Every body that was received, in order.
    pub fn bodies(&self) -> Vec<String> {
        self.served.bodies.lock().unwrap().clone()
    }

    /// The key that came with each of them.
    pub fn keys(&self) -> Vec<Option<String>> {
        self.served.keys.lock().unwrap().clone()
    }

    /// How often what never ends was sent.
    pub fn repeated(&self) -> usize {
        *self.served.repeated.lock().unwrap()
    }

    /// How many answers were served that were no good ones.
    pub fn faults(&self) -> usize {
        *self.served.faults.lock().unwrap()
    }
}

fn serve(stream: TcpStream, served: &Served) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((wire, body, key)) = request(&mut reader) {
        served.bodies.lock().unwrap().push(body.clone());
        served.keys.lock().unwrap().push(key);
        let done = || Answer { text: Some("Done.".into()), ..Answer::default() };
        let next =
            if served.is_broken.load(Ordering::SeqCst) { Some(broken()) } else { served.script.lock().unwrap().pop_front() };
        let answer = next.unwrap_or_else(done).to(&body);
        if answer.is_fault() {
            *served.faults.lock().unwrap() += 1;
        }
        let (head, payload) = response(wire, &answer);
        let whole = if answer.hang && answer.cut_at.is_none() { 0 } else { payload.len() };
        let cut = answer.cut_at.unwrap_or(whole).min(whole);
        if let Some(Endless { piece, at_once }) = &answer.endless {
            let head = if answer.cut_at.is_some() { head.replace("content-length", "x-length") } else { String::new() };
            let first = [head.as_bytes(), &payload.as_bytes()[..answer.cut_at.unwrap_or(0)]].concat();
            let pieces = piece.repeat(at_once.unwrap_or(4096));
            stream.set_read_timeout(Some(std::time::Duration::from_millis(10))).unwrap();
            let mut sent = stream.write_all(&first);
            while sent.is_ok() {
                *served.repeated.lock().unwrap() += 1;
                sent = stream.write_all(pieces.as_bytes());
                if at_once.is_some() {
                    // What it waits for is that the client goes away.
                    let _ = reader.read(&mut [0]);
                }
            }
            return;
        }
        if answer.hang {
            // Held open until the client goes away.
            let held = if cut > 0 { [head.as_bytes(), &payload.as_bytes()[..cut]].concat() } else { Vec::new() };
            let _ = stream.write_all(&held);
            let _ = reader.read(&mut [0]);
            return;
        }
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&payload.as_bytes()[..cut]));
        if sent.is_err() || cut < payload.len() {
            return;
        }
    }
}

/// What ends a run at once.
fn broken() -> Answer {
    Answer { status: Some(400), error: Some("this server is broken".into()), ..Answer::default() }
}

/// The wire of the next request, its body and its key; `None` at the end of the connection.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(Wire, String, Option<String>)> {
    let (mut length, mut key) = (0, None);
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let wire = match first.split(' ').nth(1) {
        Some("/v1/chat/completions") => Wire::Chat,
        Some("/v1/responses") => Wire::Responses,
        Some("/v1/messages") => Wire::Messages,
        Some("/v1/models/scripted:streamGenerateContent?alt=sse") => Wire::Gemini,
        other => panic!("a request to {other:?}"),
    };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(':') {
            None if line.trim_end().is_empty() => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => key = Some(value.trim().to_owned()),
            Some((name, value)) if name.eq_ignore_ascii_case("x-goog-api-key") => key = Some(value.trim().to_owned()),
            Some((name, value)) if name.eq_ignore_ascii_case("x-api-key") => key = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((wire, String::from_utf8(body).ok()?, key))
}

fn response(wire: Wire, answer: &Answer) -> (String, String) {
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
        chunk(part(json!({"functionCall": function})));
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
    if !text.is_empty() {
        let item = |content: Value| json!({"type": "message", "id": "m", "role": "assistant", "content": content});
        event("response.output_item.added", json!({"output_index": 0, "item": item(json!([]))}));
        event("response.output_text.delta", json!({"output_index": 0, "content_index": 0, "delta": text}));
        let content = json!([{"type": "output_text", "text": text}]);
        event("response.output_item.done", json!({"output_index": 0, "item": item(content)}));
        index = 1;
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
    if !text.is_empty() {
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}));
        event(json!({"type": "content_block_stop", "index": 0}));
        index = 1;
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

#[test]
#[should_panic(expected = "a request and the script of the server did not fit each other")]
fn a_test_fails_where_a_request_does_not_hold_what_the_script_looks_for() {
    let find = Some(["never", "said"].map(str::to_owned));
    let (place, server) = (Place::new("not-found"), Server::start(vec![Answer { find, ..bash("echo {found}") }]));
    let work = place.work().display().to_string();
    let called = place.start(&[vec!["run", "go"], place.arguments(&server, &work)].concat());
    assert!(called.code == 4 && called.err.contains("broken"), "{called:?}");
}
