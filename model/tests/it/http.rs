//! The HTTP model against a server that plays raw answers.

mod retries;

use crate::support::{CHAT, GEMINI, MESSAGES, Play, RESPONSES, Server, Stepped, WIRES, Wire};
use model::{Access, Ask, Heard, Message, Model, Prompt, Purse, SentPart, SentPicture, connect, render};
use std::sync::Mutex;
use std::time::Duration;
use trace::{Cost, Exhausted, Fault, FaultClass, NanoUsd, Replied, Said, Stop, Usage};

const BODY: &str = r#"{"model":"test","stream":true,"messages":[]}"#;
const KEY: &str = "sk-very-secret";

/// What came of one request.
struct Asked {
    replied: Replied,
    heard: Vec<String>,
    pauses: Vec<Duration>,
    server: Server,
}

impl Asked {
    fn fault(&self) -> &Fault {
        match &self.replied.stop {
            Stop::Error(fault) => fault,
            other => panic!("an error was expected, not {other:?}"),
        }
    }

    fn text(&self) -> &str {
        match self.replied.parts.as_slice() {
            [Said::Text { text }] => text,
            other => panic!("one text was expected, not {other:?}"),
        }
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Asks a server that plays `plays`, and sees to it that each of them was asked for.
fn ask(wire: Wire, plays: Vec<Play>) -> Asked {
    ask_with(wire, Purse::default(), plays)
}

fn ask_with(wire: Wire, purse: Purse, plays: Vec<Play>) -> Asked {
    ask_about(wire, BODY, purse, plays)
}

fn ask_about(wire: Wire, body: &str, purse: Purse, plays: Vec<Play>) -> Asked {
    let (count, server, clock) = (plays.len(), Server::start(plays), Stepped::default());
    let mut spec = wire.spec(&server.base_url);
    spec.price = model::catalog::price("1,10").ok();
    let model = connect(spec, Access { key: Some(KEY.to_owned()), ..Access::default() });
    let (replied, heard) = asked_about(&*model, body, purse, &clock);
    assert_eq!(server.requests().len(), count, "requests");
    Asked { replied, heard, pauses: clock.pauses(), server }
}

fn asked(model: &dyn Model, purse: Purse, clock: &Stepped) -> (Replied, Vec<String>) {
    asked_about(model, BODY, purse, clock)
}

fn asked_about(model: &dyn Model, body: &str, purse: Purse, clock: &Stepped) -> (Replied, Vec<String>) {
    let heard = Mutex::new(Vec::new());
    let listen = |word: Heard<'_>| heard.lock().unwrap().push(format!("{word:?}"));
    let replied = run(model.ask(Ask { body, purse, heard: &listen, clock }));
    (replied, heard.into_inner().unwrap())
}

fn secs(lengths: &[Duration]) -> Vec<f64> {
    lengths.iter().map(Duration::as_secs_f64).collect()
}

/// The files `names` of a wire, played one after another.
fn files(wire: Wire, names: &[&str]) -> Vec<Play> {
    names.iter().map(|name| wire.file(name)).collect()
}

#[test]
fn a_reply_is_read_and_the_request_is_what_was_given() {
    for wire in WIRES {
        let asked = ask(wire, files(wire, &["text"]));
        assert_eq!(asked.text(), "Hello, wörld 😀");
        let Replied { stop, usage, estimated, cost, served, request_id, attempts, .. } = &asked.replied;
        assert_eq!((stop, *estimated, attempts.len()), (&Stop::End, false, 1));
        let cache_write = if wire == MESSAGES { 26 } else { 0 };
        let reasoning = if [RESPONSES, GEMINI].contains(&wire) { 8 } else { 0 };
        assert_eq!(*usage, Usage { input: 100, cached: 64, cache_write, output: 20, reasoning });
        assert_eq!(*cost, Cost::NanoUsd(NanoUsd(100 * 1000 + 20 * 10_000)));
        assert_eq!((served.as_deref(), request_id.as_deref()), (Some("served-1"), Some("req_1")));
        assert_eq!(asked.heard, [r#"Text("Hello")"#, r#"Text(", wörld 😀")"#]);
        let request = &asked.server.requests()[0];
        assert!(request.starts_with(&format!("POST /v1{} HTTP/1.1\r\n", wire.path)), "{request}");
        let (header, before) = wire.key;
        assert!(request.contains(&format!("{header}: {before}{KEY}\r\n")), "{request}");
        assert_eq!(request.contains("anthropic-version: 2023-06-01\r\n"), wire == MESSAGES, "{request}");
        assert!(request.ends_with(&format!("\r\n\r\n{BODY}")), "{request}");
    }
}

#[test]
fn the_address_may_be_named_with_the_version_or_without() {
    let server = Server::start(files(MESSAGES, &["text", "text", "text"]));
    let host = server.base_url.trim_end_matches("/v1");
    for base_url in [host.to_owned(), format!("{host}/"), format!("{host}/v1")] {
        asked(&*connect(MESSAGES.spec(&base_url), Access::default()), Purse::default(), &Stepped::default());
    }
    let requests = server.requests();
    assert!(requests.len() == 3 && requests.iter().all(|request| request.starts_with("POST /v1/messages ")), "{requests:?}");
}

#[test]
fn without_a_key_none_is_sent() {
    for wire in WIRES {
        let (server, clock) = (Server::start(files(wire, &["text"])), Stepped::default());
        asked(&*connect(wire.spec(&server.base_url), Access::default()), Purse::default(), &clock);
        assert!(!server.requests()[0].to_lowercase().contains(wire.key.0));
    }
}

#[test]
fn it_may_come_in_pieces_of_any_size() {
    let chat = [("text", 1), ("call", 1), ("parallel", 3), ("reasoning_openrouter", 7), ("crlf", 2), ("whole", 5)];
    let messages = [("text", 1), ("call", 1), ("parallel", 3), ("interleaved", 7), ("crlf", 2), ("whole", 5)];
    let gemini = [("text", 1), ("call", 1), ("parallel", 3), ("thought", 7), ("lf", 2), ("array", 5)];
    let responses = [("text", 1), ("call", 1), ("parallel", 3), ("interleaved", 7), ("crlf", 2), ("whole", 5)];
    for (wire, list) in [(CHAT, chat), (RESPONSES, responses), (MESSAGES, messages), (GEMINI, gemini)] {
        for (name, size) in list {
            let whole = ask(wire, files(wire, &[name])).replied;
            let pieces = ask(wire, vec![Play::Pieces(wire.corpus(name), size)]).replied;
            assert_eq!((whole.parts, whole.stop, whole.usage), (pieces.parts, pieces.stop, pieces.usage), "{name}");
        }
    }
}

#[test]
fn a_connection_serves_many_requests() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let reply = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let server = Server::start([Play::Keep(reply.clone().into_bytes()), Play::Keep(reply.into_bytes())]);
    let (model, clock) = (connect(CHAT.spec(&server.base_url), Access::default()), Stepped::default());
    run(async {
        for _ in 0..2 {
            let ask = Ask { body: BODY, purse: Purse::default(), heard: &|_| (), clock: &clock };
            assert_eq!(model.ask(ask).await.stop, Stop::End);
        }
    });
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[test]
fn what_would_fail_again_is_not_asked_again() {
    let chat = [
        ("400", "Unrecognized request argument"),
        ("400_responses_only", "--model openai/test"),
        ("401", "Check the key in AUTOSAGE_API_KEY"),
        ("402", "credit"),
        ("403", "Check the key"),
        ("404", "ends in /v1"),
        ("413_rate_limit", "Limit 6000"),
        ("429_quota", "use another key"),
        ("page", "web page"),
        ("whole_stranger", "Not Found"),
        ("error_invalid_in_stream", "Unknown field"),
    ];
    let messages = [
        ("400", "max_tokens: 300000"),
        ("400_credit", "credit balance"),
        ("400_limits", "2026-12-01"),
        ("401", "Check the key in ANTHROPIC_API_KEY"),
        ("402", "credit"),
        ("403", "Check the key"),
        ("404", "the host alone"),
        ("page", "web page"),
        ("whole_stranger", "Not Found"),
        ("error_invalid", "Invalid `signature`"),
    ];
    let responses = [
        ("400", "Unknown parameter"),
        ("400_encrypted", "--model openai-chat/test"),
        ("401", "Check the key in OPENAI_API_KEY"),
        ("402", "credit"),
        ("403", "Check the key"),
        ("404", "ends in /v1"),
        ("413_rate_limit", "Limit 6000"),
        ("429_quota", "use another key"),
        ("page", "web page"),
        ("whole_stranger", "Not Found"),
        ("error_invalid", "Unknown field"),
        ("failed_invalid", "not valid"),
    ];
    let gemini = [
        ("400", "Unknown name"),
        ("400_key", "Check the key in GEMINI_API_KEY"),
        ("400_signature", "thought_signature"),
        ("400_location", "location"),
        ("401", "Check the key in GEMINI_API_KEY"),
        ("403", "Check the key"),
        ("404", "the host alone"),
        ("404_array", "models/nope is not found"),
        ("429_day", "the quota of a day, renewed at midnight Pacific time"),
        ("429_none", "use another key"),
        ("missing_signature", "a signature"),
        ("page", "web page"),
        ("whole_stranger", "Not Found"),
        ("error_invalid", "invalid argument"),
    ];
    let all = chat.map(|case| (CHAT, case)).into_iter().chain(messages.map(|case| (MESSAGES, case)));
    let all = all.chain(responses.map(|case| (RESPONSES, case))).chain(gemini.map(|case| (GEMINI, case)));
    for (wire, (name, advice)) in all {
        let asked = ask(wire, files(wire, &[name]));
        let Fault { class, message, .. } = asked.fault();
        assert_eq!(*class, FaultClass::Rejected, "{name}");
        assert!(message.contains(advice), "{name}: {message}");
        assert!(message.contains(&format!("{}{}", asked.server.base_url, wire.path)), "{name}: {message}");
        assert!(!message.contains(KEY), "{name}: {message}");
        assert_eq!(asked.replied.parts, [], "{name}");
    }
}

#[test]
fn pictures_that_a_model_refuses_can_be_kept_from_it() {
    let picture =
        SentPart::Picture(SentPicture::of(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0").unwrap());
    let (shown, named) = (vec![picture, SentPart::text("look")], vec![SentPart::text(r#"no "type":"image" is here"#)]);
    for wire in WIRES {
        let told = |parts: &[SentPart], words: &str| {
            let messages = [Message::User(parts.to_vec())];
            let prompt = Prompt { system: "", tools: &[], messages: &messages, max_output: 100, schema: None };
            let body = render(&wire.spec("http://127.0.0.1/v1"), &prompt);
            let error = format!(r#"{{"error":{{"message":"{words}"}}}}"#);
            let answer = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{error}", error.len());
            let asked = ask_about(wire, &body, Purse::default(), vec![Play::Bytes(answer.into_bytes())]);
            let Fault { class, message, .. } = asked.fault();
            assert_eq!(*class, FaultClass::Rejected);
            assert!(message.contains(&format!("400: {words}. ")), "{message}");
            let way_out = format!(r#"provider = "{}", name = "test", images = false"#, wire.provider);
            let again = "The same request would be refused again";
            assert!(message.contains(&way_out) != message.contains(again), "there is one advice: {message}");
            message.contains(&way_out)
        };
        let unsupported = "This API revision is not supported for provisioned deployments";
        assert!(told(&shown, "Could not process image"), "{wire:?}");
        assert!(told(&shown, "`image_url` is not a content type of this model"), "{wire:?}");
        assert!(!told(&named, "Could not process image"), "{wire:?}");
        assert!(!told(&shown, unsupported) && !told(&named, unsupported), "{wire:?}");
    }
}

#[test]
fn a_prompt_that_is_too_long_and_content_that_is_declined_are_told_apart() {
    let chat = ["openai", "vllm", "vllm_newer", "llamacpp", "ollama", "openrouter"].map(|server| format!("400_context_{server}"));
    let chat: Vec<&str> = chat.iter().map(String::as_str).chain(["413", "error_context_in_stream"]).collect();
    let messages = vec!["400_context", "400_context_output", "413", "error_context"];
    let responses = vec!["400_context", "413", "failed_context"];
    let gemini = vec!["400_context", "413", "error_context"];
    for (wire, full) in [(CHAT, chat), (RESPONSES, responses), (MESSAGES, messages), (GEMINI, gemini)] {
        for name in full {
            assert_eq!(ask(wire, files(wire, &[name])).fault().class, FaultClass::ContextFull, "{name}");
        }
    }
    let others = [(RESPONSES, "400_policy"), (RESPONSES, "failed_policy"), (GEMINI, "blocked"), (GEMINI, "blocked_with_words")];
    for (wire, name) in [(CHAT, "400_policy"), (CHAT, "403_moderation"), (MESSAGES, "400_policy")].into_iter().chain(others) {
        assert_eq!(ask(wire, files(wire, &[name])).fault().class, FaultClass::Refused, "{name}");
    }
    let declined = [(CHAT, "declined"), (CHAT, "content_filter"), (MESSAGES, "refusal"), (MESSAGES, "refusal_at_once")];
    let gemini = ["safety", "recitation", "prohibited_content", "blocklist", "spii", "language"];
    let gemini = gemini.map(|reason| (GEMINI, format!("finish_{reason}")));
    let gemini = gemini.iter().map(|(wire, name)| (*wire, name.as_str())).chain([(GEMINI, "declined_at_once")]);
    let responses = [(RESPONSES, "declined"), (RESPONSES, "content_filter")];
    for (wire, name) in declined.into_iter().chain(responses).chain(gemini) {
        assert_eq!(ask(wire, files(wire, &[name])).replied.stop, Stop::Refused, "{name}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    for wire in WIRES {
        let asked = ask(wire, files(wire, &["302"]));
        let Fault { class, message, .. } = asked.fault();
        assert_eq!(*class, FaultClass::Rejected);
        assert!(message.contains("https://elsewhere.example") && !message.contains("secret"), "{message}");
    }
}

#[test]
fn a_request_that_does_not_fit_is_not_sent() {
    let purse = Purse { tokens: Some(499), reserve_tokens: 500, ..Purse::default() };
    let asked = ask_with(CHAT, purse, vec![]);
    assert_eq!((asked.fault().class, asked.replied.attempts.len()), (FaultClass::Budget { which: Exhausted::Tokens }, 0));
}

#[test]
fn a_stream_that_stands_still_is_given_up() {
    for wire in WIRES {
        let (server, clock) = (Server::start([Play::Stall(wire.corpus("cut_clean"))]), Stepped::default());
        let model = connect(wire.spec(&server.base_url), Access { retry: no_retries(), ..Access::default() });
        let listen = |word: Heard<'_>| {
            if let Heard::Call { .. } = word {
                clock.be_late();
            }
        };
        let replied = run(model.ask(Ask { body: BODY, purse: Purse::default(), heard: &listen, clock: &clock }));
        let Stop::Error(Fault { class, message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
        assert_eq!(class, FaultClass::Unavailable);
        assert!(message.contains("stood still for 5 minutes"), "{message}");
        assert!(replied.estimated && replied.usage.output > 0);
        server.wait_until_left();
    }
}

#[test]
fn an_answer_that_does_not_begin_is_given_up() {
    let (server, clock) = (Server::start([Play::Stall(Vec::new())]), Stepped::default());
    clock.be_late();
    let model = connect(CHAT.spec(&server.base_url), Access { retry: no_retries(), ..Access::default() });
    let (replied, _) = asked(&*model, Purse::default(), &clock);
    let Stop::Error(Fault { class, message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert_eq!(class, FaultClass::Unavailable);
    assert!(message.contains("did not begin"), "{message}");
    let (replied, _) = asked(&*model, Purse { time_ms: Some(5), ..Purse::default() }, &clock);
    assert!(matches!(replied.stop, Stop::Error(Fault { class: FaultClass::Interrupted, .. })), "{:?}", replied.stop);
}

#[test]
fn a_reply_that_has_its_end_is_whole_even_if_the_connection_then_breaks() {
    let asked = ask(CHAT, vec![CHAT.file("cut_after_finish")]);
    assert_eq!(asked.text(), "Hi.");
    assert!(asked.replied.estimated);
}

#[test]
fn what_a_server_says_after_the_end_is_given_a_time_as_a_whole() {
    let server = Server::start([Play::Pieces(CHAT.corpus("text"), 1)]);
    let clock = Stepped::default();
    let (replied, _) = asked(&*connect(CHAT.spec(&server.base_url), Access::default()), Purse::default(), &clock);
    assert_eq!(replied.stop, Stop::End);
    let set = |seconds| clock.limits().into_iter().filter(|limit| *limit == Duration::from_secs(seconds)).count();
    // However the pieces come.
    assert_eq!((set(10), set(1)), (1, 1));
    // So is the whole reply; the head has the same time as the first piece that may hold a word.
    assert_eq!(set(60 * 60), 1);
    assert!(set(10 * 60) >= 2, "{:?}", clock.limits());
}

#[test]
fn what_a_server_says_of_a_refusal_is_given_a_time_as_a_whole() {
    let body = r#"{"error":{"message":"no such field"}}"#;
    let answer = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server = Server::start([Play::Pieces(answer.into_bytes(), 1)]);
    let clock = Stepped::default();
    let (replied, _) = asked(&*connect(CHAT.spec(&server.base_url), Access::default()), Purse::default(), &clock);
    let Stop::Error(Fault { message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert!(message.contains("no such field"), "{message}");
    // However the pieces come: the head's time, and the body's.
    assert_eq!(clock.limits(), [10 * 60, 2 * 60].map(Duration::from_secs));
}

#[test]
fn dropping_the_request_ends_it() {
    let (server, clock) = (Server::start([Play::Stall(CHAT.corpus("cut_clean"))]), Stepped::default());
    let model = connect(CHAT.spec(&server.base_url), Access::default());
    run(async {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let listen = move |_: Heard<'_>| tell.send(()).unwrap();
        let request = model.ask(Ask { body: BODY, purse: Purse::default(), heard: &listen, clock: &clock });
        tokio::select! {
            replied = request => panic!("{replied:?}"),
            _ = told.recv() => {}
        }
    });
    server.wait_until_left();
}

/// Asks until `server` has sent 8 MiB of what never ends, and says how often others had their turn meanwhile.
fn turns_beside(server: &Server, clock: &Stepped) -> usize {
    let model = connect(CHAT.spec(&server.base_url), Access::default());
    let turns = async {
        let mut turns = 0;
        while server.repeated() < 128 {
            tokio::task::yield_now().await;
            turns += 1;
        }
        turns
    };
    let turns = run(async {
        tokio::select! {
            replied = model.ask(Ask { body: BODY, purse: Purse::default(), heard: &|_| (), clock }) => panic!("{replied:?}"),
            turns = turns => turns,
        }
    });
    server.wait_until_left();
    turns
}

#[test]
fn what_a_server_sends_without_end_keeps_nobody_else_waiting() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    for (first, again) in [(&b""[..], &b"HTTP/1.1 103 \r\n\r\n"[..]), (head, b": wait for it\n\n")] {
        let server = Server::start([Play::Endless(first.to_vec(), again.repeat((64 << 10) / again.len()))]);
        let turns = turns_beside(&server, &Stepped::default());
        assert!(turns > 1_000, "{turns} beside {:?}", String::from_utf8_lossy(again));
    }
}

fn no_retries() -> model::RetryBudget {
    model::RetryBudget { wall: Duration::ZERO, first_contact: Duration::ZERO, void_replies: 0, ..Default::default() }
}
