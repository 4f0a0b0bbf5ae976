//! A scripted model server on loopback: it speaks OpenAI's chat, answers from a list, and keeps every body it received.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One answer of the script.
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
    /// The reason for which the model stopped, where it is not the usual one.
    pub finish: Option<String>,
    /// Where the stream breaks off, in bytes.
    pub cut_at: Option<usize>,
    /// Whether the answer never comes.
    #[serde(default)]
    pub hang: bool,
}

impl Answer {
    /// Whether it is no good answer.
    pub fn is_fault(&self) -> bool {
        self.status.is_some() || self.cut_at.is_some() || self.hang
    }
}

/// A running server. It ends with the test's process.
pub struct Server {
    /// Its address, with the version.
    pub base_url: String,
    bodies: Arc<Mutex<Vec<String>>>,
    keys: Arc<Mutex<Vec<Option<String>>>>,
    faults: Arc<Mutex<usize>>,
    script: Arc<Mutex<VecDeque<Answer>>>,
}

impl Server {
    /// Serves `script` from its start again, at the same address, as if nothing had been asked yet.
    pub fn restart(&self, script: Vec<Answer>) {
        self.bodies.lock().unwrap().clear();
        self.keys.lock().unwrap().clear();
        *self.faults.lock().unwrap() = 0;
        *self.script.lock().unwrap() = VecDeque::from(script);
    }

    /// Serves `script`, then "Done." for ever.
    pub fn start(script: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let server = Server {
            base_url,
            bodies: Arc::default(),
            keys: Arc::default(),
            faults: Arc::default(),
            script: Arc::new(Mutex::new(VecDeque::from(script))),
        };
        let (bodies, keys, faults, script) =
            (server.bodies.clone(), server.keys.clone(), server.faults.clone(), server.script.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (bodies, keys, faults, script) = (bodies.clone(), keys.clone(), faults.clone(), script.clone());
                std::thread::spawn(move || serve(stream, &bodies, &keys, &faults, &script));
            }
        });
        server
    }

    /// Every body that was received, in order.
    pub fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    /// The key that came with each of them.
    pub fn keys(&self) -> Vec<Option<String>> {
        self.keys.lock().unwrap().clone()
    }

    /// How many answers were served that were no good ones.
    pub fn faults(&self) -> usize {
        *self.faults.lock().unwrap()
    }
}

fn serve(
    stream: TcpStream,
    bodies: &Mutex<Vec<String>>,
    keys: &Mutex<Vec<Option<String>>>,
    faults: &Mutex<usize>,
    script: &Mutex<VecDeque<Answer>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((body, key)) = request(&mut reader) {
        bodies.lock().unwrap().push(body);
        keys.lock().unwrap().push(key);
        let done = || Answer { text: Some("Done.".into()), ..Answer::default() };
        let answer = script.lock().unwrap().pop_front().unwrap_or_else(done);
        if answer.is_fault() {
            *faults.lock().unwrap() += 1;
        }
        if answer.hang {
            // Held open until the client goes away.
            let _ = reader.read(&mut [0]);
            return;
        }
        let (head, payload) = response(&answer);
        let cut = answer.cut_at.unwrap_or(payload.len()).min(payload.len());
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&payload.as_bytes()[..cut]));
        if sent.is_err() || cut < payload.len() {
            return;
        }
    }
}

/// The body of the next request and its key; `None` at the end of the connection.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Option<String>)> {
    let (mut length, mut key) = (0, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(':') {
            None if line.trim_end().is_empty() => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => key = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((String::from_utf8(body).ok()?, key))
}

fn response(answer: &Answer) -> (String, String) {
    if let Some(status) = answer.status {
        let words = answer.error.as_deref().unwrap_or("trouble");
        let body = json!({"error": {"message": words, "type": "error", "code": null}}).to_string();
        let retry = answer.retry_after.as_ref().map(|value| format!("retry-after: {value}\r\n")).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status} Trouble\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\n\r\n",
            body.len()
        );
        return (head, body);
    }
    let mut body = String::new();
    let mut chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        body.push_str(&format!("data: {}\n\n", json!({"id": "r", "model": "scripted", "choices": [choice]})));
    };
    if let Some(text) = &answer.text {
        chunk(json!({"role": "assistant", "content": text}), None);
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let arguments = match &call["arguments"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let id = call["id"].as_str().map_or_else(|| format!("call_{index}"), str::to_owned);
        let function = json!({"name": call["name"], "arguments": arguments});
        chunk(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}), None);
    }
    let usual = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    chunk(json!({}), Some(answer.finish.as_deref().unwrap_or(usual)));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 90}});
    body.push_str(&format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({"id": "r", "model": "scripted", "choices": [], "usage": usage})
    ));
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", body.len());
    (head, body)
}
