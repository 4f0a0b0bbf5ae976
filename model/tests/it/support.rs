//! A server that plays raw bytes, and a clock that is stepped: what the tests of this crate stand on.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trace::{Clock, Millis, ModelSpec, Pause, Timestamp};

/// What the server does with one request.
pub enum Play {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes, this many at a time, and closes.
    Pieces(Vec<u8>, usize),
    /// Sends these bytes and waits for the next request on the same connection.
    Keep(Vec<u8>),
    /// Sends these bytes and then nothing, until the client leaves.
    Stall(Vec<u8>),
    /// Sends the first bytes, and then the second again and again, until the client leaves.
    Endless(Vec<u8>, Vec<u8>),
}

/// A wire: a provider that speaks it, where its requests go below the test's base URL, the header that holds the key, and
/// the folder of its corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    pub provider: &'static str,
    pub path: &'static str,
    pub key: (&'static str, &'static str),
    folder: &'static str,
}

/// OpenAI's chat.
pub const CHAT: Wire =
    Wire { provider: "openai-compatible", path: "/chat/completions", key: ("authorization", "Bearer "), folder: "openai_chat" };

/// OpenAI Responses.
pub const RESPONSES: Wire =
    Wire { provider: "openai", path: "/responses", key: ("authorization", "Bearer "), folder: "openai_responses" };

/// Anthropic's Messages.
pub const MESSAGES: Wire =
    Wire { provider: "anthropic", path: "/messages", key: ("x-api-key", ""), folder: "anthropic_messages" };

/// Gemini's generateContent.
pub const GEMINI: Wire = Wire {
    provider: "gemini",
    path: "/models/test:streamGenerateContent?alt=sse",
    key: ("x-goog-api-key", ""),
    folder: "gemini",
};

/// Every wire.
pub const WIRES: [Wire; 4] = [CHAT, RESPONSES, MESSAGES, GEMINI];

impl Wire {
    /// The bytes of a file of the corpus.
    pub fn corpus(self, name: &str) -> Vec<u8> {
        let path = format!("{}/corpus/{}/{name}.http", env!("CARGO_MANIFEST_DIR"), self.folder);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A file of the corpus, whole.
    pub fn file(self, name: &str) -> Play {
        Play::Bytes(self.corpus(name))
    }

    /// The spec of a model at `base_url`.
    pub fn spec(self, base_url: &str) -> ModelSpec {
        let overrides = model::catalog::Overrides { base_url: Some(base_url.to_owned()), ..Default::default() };
        model::catalog::find(&format!("{}/test", self.provider), &overrides).unwrap()
    }
}

/// A server on a free port of this machine. It plays its list, an entry a request, and keeps what it received.
pub struct Server {
    pub base_url: String,
    seen: Arc<Mutex<Seen>>,
    gone: Receiver<()>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    connections: usize,
    served: usize,
    repeated: usize,
}

impl Server {
    pub fn start(plays: impl IntoIterator<Item = Play>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (tell, gone) = channel();
        let (log, mut plays) = (seen.clone(), plays.into_iter().collect::<VecDeque<_>>());
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                log.lock().unwrap().connections += 1;
                while let Some(request) = request(&mut stream) {
                    log.lock().unwrap().requests.push(request);
                    let Some(play) = plays.pop_front() else { return };
                    let keep = matches!(play, Play::Keep(_));
                    serve(&mut stream, play, &tell, &log);
                    log.lock().unwrap().served += 1;
                    if !keep {
                        break;
                    }
                }
            }
        });
        Server { base_url, seen, gone }
    }

    /// The requests that came, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// How often what never ends was taken.
    pub fn repeated(&self) -> usize {
        self.seen.lock().unwrap().repeated
    }

    /// Waits until the client has left a reply that has no end.
    pub fn wait_until_left(&self) {
        self.gone.recv().unwrap();
    }
}

fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text.into_owned());
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

fn serve(stream: &mut TcpStream, play: Play, gone: &Sender<()>, seen: &Mutex<Seen>) {
    match play {
        Play::Bytes(bytes) | Play::Keep(bytes) => stream.write_all(&bytes).unwrap(),
        Play::Pieces(bytes, size) => {
            stream.set_nodelay(true).unwrap();
            bytes.chunks(size).for_each(|piece| stream.write_all(piece).unwrap());
        }
        Play::Stall(bytes) => {
            stream.write_all(&bytes).unwrap();
            let mut rest = [0; 64];
            while !matches!(stream.read(&mut rest), Ok(0) | Err(_)) {}
            gone.send(()).ok();
        }
        Play::Endless(first, again) => {
            stream.write_all(&first).unwrap();
            while stream.write_all(&again).is_ok() {
                seen.lock().unwrap().repeated += 1;
            }
            gone.send(()).ok();
        }
    }
}

/// A clock whose pauses pass at once and are kept. Its limits never end, until `be_late` was called: then those that are
/// set afterwards end at once, after what they limit was tried.
#[derive(Default)]
pub struct Stepped {
    elapsed: AtomicU64,
    late: AtomicBool,
    pauses: Mutex<Vec<Duration>>,
    limits: Mutex<Vec<Duration>>,
}

impl Stepped {
    pub fn be_late(&self) {
        self.late.store(true, Ordering::SeqCst);
    }

    /// The limits that were set so far.
    pub fn limits(&self) -> Vec<Duration> {
        self.limits.lock().unwrap().clone()
    }

    /// The pauses so far.
    pub fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().unwrap().clone()
    }
}

impl Clock for Stepped {
    fn now(&self) -> Timestamp {
        // 2026-11-29T12:00:00Z
        Timestamp::from_unix_millis(1_795_953_600_000).plus(self.elapsed())
    }

    fn elapsed(&self) -> Millis {
        self.elapsed.load(Ordering::SeqCst)
    }

    fn pause(&self, length: Duration) -> Pause {
        self.elapsed.fetch_add(length.as_millis() as u64, Ordering::SeqCst);
        self.pauses.lock().unwrap().push(length);
        Box::pin(std::future::ready(()))
    }

    fn limit(&self, length: Duration) -> Pause {
        self.limits.lock().unwrap().push(length);
        if self.late.load(Ordering::SeqCst) { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }
}
