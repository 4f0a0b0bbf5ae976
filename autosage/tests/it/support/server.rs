//! A scripted model server on loopback: it speaks every wire, answers from a list, and keeps every body it received. Each of
//! them must be one that the provider would accept.

mod accepted;
mod replies;

use super::Place;
use accepted::Asked;
use replies::response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// What the model thinks before it says anything.
    pub thought: Option<String>,
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
    /// Why it has no answer any more: no provider would accept what it was sent, or that and the script did not fit each other.
    broken: Mutex<Option<String>>,
}

/// A running server. It takes no more connections once it is dropped: the tests of a program share its open files. A test
/// fails there, if nowhere before, whose requests no provider would accept, or did not fit the script.
pub struct Server {
    /// Its address, with the version: that of the usual provider of whichever wire.
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
        let broken = self.served.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = broken.as_ref().filter(|_| !std::thread::panicking()) {
            panic!("the server was sent what it cannot answer: {why}");
        }
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
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| serve(&stream, &served))) {
                        let why = panic.downcast::<String>().map_or_else(|_| "see above".to_owned(), |why| *why);
                        served.broken.lock().unwrap().get_or_insert(why);
                    }
                });
            }
        });
        server
    }

    /// Its address as `provider`, whose rules requests have to keep then.
    pub fn base_url_of(&self, provider: &str) -> String {
        format!("http://{}/{provider}/v1", self.address)
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

/// Answers what comes on `stream`, which stays open behind a panic until it is known.
fn serve(stream: &TcpStream, served: &Served) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(Received { place, body, key }) = request(&mut reader) {
        served.bodies.lock().unwrap().push(body.clone());
        served.keys.lock().unwrap().push(key);
        let is_broken = served.broken.lock().unwrap().is_some();
        if !is_broken {
            place.accept(&body);
        }
        let wire = place.wire;
        let done = || Answer { text: Some("Done.".into()), ..Answer::default() };
        let next = if is_broken { Some(broken()) } else { served.script.lock().unwrap().pop_front() };
        let answer = next.unwrap_or_else(done).to(&body);
        if answer.is_fault() {
            *served.faults.lock().unwrap() += 1;
        }
        let (head, payload) = response(wire, &answer);
        let whole = if answer.hang && answer.cut_at.is_none() { 0 } else { payload.len() };
        let cut = answer.cut_at.unwrap_or(whole).min(whole);
        if let Some(Endless { piece, at_once }) = &answer.endless {
            let head = if answer.cut_at.is_some() { head.replace("content-length", "x-length") } else { String::new() };
            let first = [head.as_bytes(), &payload.as_bytes()[..answer.cut_at.unwrap_or(0).min(payload.len())]].concat();
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

/// A request.
struct Received {
    place: Asked,
    body: String,
    key: Option<String>,
}

/// The next request; `None` at the end of the connection.
fn request(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let (mut length, mut key) = (0, None);
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let place = Asked::at(first.split(' ').nth(1).unwrap_or_default());
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
    Some(Received { place, body: String::from_utf8(body).ok()?, key })
}

#[test]
#[should_panic(expected = "the server was sent what it cannot answer: nothing between \"never\" and \"said\"")]
fn a_test_fails_where_a_request_does_not_hold_what_the_script_looks_for() {
    let find = Some(["never", "said"].map(str::to_owned));
    let (place, server) = (Place::new("not-found"), Server::start(vec![Answer { find, ..bash("echo {found}") }]));
    let work = place.work().display().to_string();
    let called = place.start(&[vec!["run", "go"], place.arguments(&server, &work)].concat());
    assert!(called.code == 4 && called.err.contains("broken"), "{called:?}");
}

#[test]
#[should_panic(
    expected = "the server was sent what it cannot answer: mistral would refuse it: Unexpected role 'user' after role 'tool'"
)]
fn a_test_fails_where_a_provider_would_refuse_a_request() {
    let server = Server::start(Vec::new());
    let call = json!({"id": "000002000", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "000002000", "content": "done"},
        {"role": "user", "content": "more"}
    ]);
    let body = json!({"model": "m", "messages": messages}).to_string();
    let head = format!("POST /mistral/v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    let answer = || {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all([&*head, &*body].concat().as_bytes()).unwrap();
        let mut answer = [0; 12];
        let length = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    assert_eq!([answer(), answer()], ["", "HTTP/1.1 400"], "whoever asks again is told at once");
}
