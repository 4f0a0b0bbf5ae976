//! The HTTP model against a server that plays raw answers.

use crate::support::{Play, Server, Stepped, corpus, file, spec};
use model::{Access, Ask, Heard, Model, Purse, connect};
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
fn ask(plays: Vec<Play>) -> Asked {
    ask_with(Purse::default(), plays)
}

fn ask_with(purse: Purse, plays: Vec<Play>) -> Asked {
    let (count, server, clock) = (plays.len(), Server::start(plays), Stepped::default());
    let mut spec = spec(&server.base_url);
    spec.price = model::catalog::price("1,10").ok();
    let model = connect(spec, Access { key: Some(KEY.to_owned()), ..Access::default() });
    let (replied, heard) = asked(&*model, purse, &clock);
    assert_eq!(server.requests().len(), count, "requests");
    Asked { replied, heard, pauses: clock.pauses(), server }
}

fn asked(model: &dyn Model, purse: Purse, clock: &Stepped) -> (Replied, Vec<String>) {
    let heard = Mutex::new(Vec::new());
    let listen = |word: Heard<'_>| heard.lock().unwrap().push(format!("{word:?}"));
    let replied = run(model.ask(Ask { body: BODY, purse, heard: &listen, clock }));
    (replied, heard.into_inner().unwrap())
}

fn secs(lengths: &[Duration]) -> Vec<f64> {
    lengths.iter().map(Duration::as_secs_f64).collect()
}

#[test]
fn a_reply_is_read_and_the_request_is_what_was_given() {
    let asked = ask(vec![file("text")]);
    assert_eq!(asked.text(), "Hello, wörld 😀");
    let Replied { stop, usage, estimated, cost, served, request_id, attempts, .. } = &asked.replied;
    assert_eq!((stop, *estimated, attempts.len()), (&Stop::End, false, 1));
    assert_eq!(*usage, Usage { input: 100, cached: 64, output: 20, ..Usage::default() });
    assert_eq!(*cost, Cost::NanoUsd(NanoUsd(100 * 1000 + 20 * 10_000)));
    assert_eq!((served.as_deref(), request_id.as_deref()), (Some("served-1"), Some("req_1")));
    assert_eq!(asked.heard, [r#"Text("Hello")"#, r#"Text(", wörld 😀")"#]);
    let request = &asked.server.requests()[0];
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {KEY}\r\n")), "{request}");
    assert!(request.ends_with(&format!("\r\n\r\n{BODY}")), "{request}");
}

#[test]
fn without_a_key_none_is_sent() {
    let (server, clock) = (Server::start([file("text")]), Stepped::default());
    asked(&*connect(spec(&server.base_url), Access::default()), Purse::default(), &clock);
    assert!(!server.requests()[0].to_lowercase().contains("authorization"));
}

#[test]
fn it_may_come_in_pieces_of_any_size() {
    for (name, size) in [("text", 1), ("call", 1), ("parallel", 3), ("reasoning_openrouter", 7), ("crlf", 2), ("whole", 5)] {
        let whole = ask(vec![file(name)]).replied;
        let pieces = ask(vec![Play::Pieces(corpus(name), size)]).replied;
        assert_eq!((whole.parts, whole.stop, whole.usage), (pieces.parts, pieces.stop, pieces.usage), "{name}");
    }
}

#[test]
fn a_connection_serves_many_requests() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let reply = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let server = Server::start([Play::Keep(reply.clone().into_bytes()), Play::Keep(reply.into_bytes())]);
    let (model, clock) = (connect(spec(&server.base_url), Access::default()), Stepped::default());
    run(async {
        for _ in 0..2 {
            let ask = Ask { body: BODY, purse: Purse::default(), heard: &|_| (), clock: &clock };
            assert_eq!(model.ask(ask).await.stop, Stop::End);
        }
    });
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[test]
fn passing_trouble_is_asked_again() {
    let refused = ["408", "409", "425", "429_plain", "500", "502", "503", "503_html", "504", "529"];
    let broken = [
        "cut_clean",
        "cut_chunked",
        "error_in_stream",
        "error_openrouter",
        "error_whole",
        "finish_error",
        "not_json",
        "nothing",
        "whole_cut",
    ];
    for name in refused.into_iter().chain(broken) {
        let asked = ask(vec![file(name), file("text")]);
        assert_eq!(asked.text(), "Hello, wörld 😀", "{name}");
        let [first, second] = asked.replied.attempts.as_slice() else { panic!("{name}: two attempts were expected") };
        assert!(first.error.is_some() && second.error.is_none(), "{name}");
        assert_eq!(first.status.unwrap().to_string(), if refused.contains(&name) { &name[..3] } else { "200" }, "{name}");
        assert_eq!(first.usage.input > 0, broken.contains(&name), "{name}: only what was refused before its first byte is free");
        // Only this one of the broken replies tells its usage.
        assert_eq!(asked.replied.estimated, broken.contains(&name) && name != "finish_error", "{name}");
        assert_eq!(second.wait_ms, asked.pauses[0].as_millis() as u64, "{name}");
        assert!(matches!(secs(&asked.pauses)[..], [wait] if (0.375..=0.5).contains(&wait)), "{name}: {:?}", asked.pauses);
        assert!(asked.heard.iter().any(|word| word.starts_with("Waiting")), "{name}");
    }
}

#[test]
fn a_wait_that_the_provider_asks_for_is_kept() {
    for (name, wait) in [("429_seconds", 17.0), ("429_date", 21.0), ("429_words", 17.252), ("error_rate_limit", 17.252)] {
        let asked = ask(vec![file(name), file("text")]);
        assert_eq!(secs(&asked.pauses), [wait], "{name}");
    }
}

#[test]
fn a_longer_wait_than_the_budget_pauses_the_run() {
    let asked = ask(vec![file("429_long")]);
    let FaultClass::Paused { until } = asked.fault().class else { panic!("{:?}", asked.fault()) };
    assert_eq!(until.to_string(), "2026-11-29T19:12:00.000Z");
    assert!(asked.fault().message.contains("resume"), "{}", asked.fault().message);
    assert_eq!(asked.pauses, []);
}

#[test]
fn what_would_fail_again_is_not_asked_again() {
    let words = [
        ("400", "Unrecognized request argument"),
        ("400_responses_only", "Responses API"),
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
    for (name, advice) in words {
        let asked = ask(vec![file(name)]);
        let Fault { class, message, .. } = asked.fault();
        assert_eq!(*class, FaultClass::Rejected, "{name}");
        assert!(message.contains(advice), "{name}: {message}");
        assert!(message.contains(&format!("{}/chat/completions", asked.server.base_url)), "{name}: {message}");
        assert!(!message.contains(KEY), "{name}: {message}");
        assert_eq!(asked.replied.parts, [], "{name}");
    }
}

#[test]
fn a_prompt_that_is_too_long_and_content_that_is_declined_are_told_apart() {
    let full = ["openai", "vllm", "vllm_newer", "llamacpp", "ollama", "openrouter"].map(|server| format!("400_context_{server}"));
    for name in full.iter().map(String::as_str).chain(["413", "error_context_in_stream"]) {
        assert_eq!(ask(vec![file(name)]).fault().class, FaultClass::ContextFull, "{name}");
    }
    for name in ["400_policy", "403_moderation"] {
        assert_eq!(ask(vec![file(name)]).fault().class, FaultClass::Refused, "{name}");
    }
    for name in ["declined", "content_filter"] {
        assert_eq!(ask(vec![file(name)]).replied.stop, Stop::Refused, "{name}");
    }
}

#[test]
fn a_void_reply_is_paid_for_and_asked_for_twice_more() {
    for name in ["empty", "blank", "reasoning_alone", "length_reasoning"] {
        let asked = ask(vec![file(name), file(name), file(name)]);
        assert_eq!(asked.fault().class, FaultClass::Unavailable, "{name}");
        assert_eq!(asked.replied.usage.total(), 3 * 120, "{name}");
        assert!(!asked.replied.estimated, "{name}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let asked = ask(vec![file("302")]);
    let Fault { class, message, .. } = asked.fault();
    assert_eq!(*class, FaultClass::Rejected);
    assert!(message.contains("https://elsewhere.example") && !message.contains("secret"), "{message}");
}

#[test]
fn retries_end_with_their_budget() {
    let plays = |_| file("500");
    let (server, clock) = (Server::start((0..200).map(plays)), Stepped::default());
    let (replied, _) = asked(&*connect(spec(&server.base_url), Access::default()), Purse::default(), &clock);
    let Stop::Error(Fault { class, status, request_id, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert_eq!((class, status, request_id.as_deref()), (FaultClass::Unavailable, Some(500), Some("req_9")));
    let waited = clock.pauses().iter().sum::<Duration>();
    assert!((Duration::from_secs(14 * 60)..=Duration::from_secs(15 * 60)).contains(&waited), "{waited:?}");
    assert!(clock.pauses().iter().all(|wait| *wait <= Duration::from_secs(60)));
    assert_eq!(replied.attempts.len(), clock.pauses().len() + 1);
}

#[test]
fn waits_differ_between_requests_and_only_between_them() {
    let waits = |body: &str| {
        let (server, clock) = (Server::start([file("500"), file("500"), file("500"), file("text")]), Stepped::default());
        let model = connect(spec(&server.base_url), Access::default());
        run(model.ask(Ask { body, purse: Purse::default(), heard: &|_| (), clock: &clock }));
        assert_eq!(server.requests().len(), 4);
        clock.pauses()
    };
    assert_eq!(waits("{}"), waits("{}"));
    assert_ne!(waits("{}"), waits("{ }"));
}

#[test]
fn where_nothing_answers_it_gives_up_soon_and_says_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let clock = Stepped::default();
    let model = connect(spec(&format!("http://{free}/v1")), Access::default());
    let (replied, _) = asked(&*model, Purse::default(), &clock);
    let Stop::Error(Fault { class, message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert_eq!(class, FaultClass::Unavailable);
    assert!(message.contains(&free.to_string()) && message.contains("Is the server running there?"), "{message}");
    assert!(clock.pauses().iter().sum::<Duration>() <= Duration::from_secs(10));
    assert_eq!(replied.usage, Usage::default());
}

#[test]
fn an_attempt_is_made_only_if_it_still_fits_the_budget() {
    let purse = Purse { tokens: Some(1000), reserve_tokens: 500, ..Purse::default() };
    assert_eq!(ask_with(purse, vec![file("empty"), file("text")]).replied.stop, Stop::End);
    let purse = Purse { tokens: Some(600), ..purse };
    let asked = ask_with(purse, vec![file("empty")]);
    assert_eq!(asked.fault().class, FaultClass::Budget { which: Exhausted::Tokens });
    assert_eq!((asked.replied.usage.total(), asked.replied.attempts.len()), (120, 1));

    let purse = Purse { nano_usd: Some(NanoUsd(500_000)), reserve_nano_usd: Some(NanoUsd(300_000)), ..Purse::default() };
    assert_eq!(ask_with(purse, vec![file("empty")]).fault().class, FaultClass::Budget { which: Exhausted::Money });
    let purse = Purse { time_ms: Some(16_000), ..Purse::default() };
    assert_eq!(ask_with(purse, vec![file("429_seconds")]).fault().class, FaultClass::Budget { which: Exhausted::Time });
}

#[test]
fn a_request_that_does_not_fit_is_not_sent() {
    let purse = Purse { tokens: Some(499), reserve_tokens: 500, ..Purse::default() };
    let asked = ask_with(purse, vec![]);
    assert_eq!((asked.fault().class, asked.replied.attempts.len()), (FaultClass::Budget { which: Exhausted::Tokens }, 0));
}

#[test]
fn a_stream_that_stands_still_is_given_up() {
    let (server, clock) = (Server::start([Play::Stall(corpus("cut_clean"))]), Stepped::default());
    let model = connect(spec(&server.base_url), Access { retry: no_retries(), ..Access::default() });
    let listen = |word: Heard<'_>| {
        if let Heard::Call { .. } = word {
            clock.be_late();
        }
    };
    let replied = run(model.ask(Ask { body: BODY, purse: Purse::default(), heard: &listen, clock: &clock }));
    let Stop::Error(Fault { class, message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert_eq!(class, FaultClass::Unavailable);
    assert!(message.contains("stood still"), "{message}");
    assert!(replied.estimated && replied.usage.output > 0);
    server.wait_until_left();
}

#[test]
fn an_answer_that_does_not_begin_is_given_up() {
    let (server, clock) = (Server::start([Play::Stall(Vec::new())]), Stepped::default());
    clock.be_late();
    let model = connect(spec(&server.base_url), Access { retry: no_retries(), ..Access::default() });
    let (replied, _) = asked(&*model, Purse::default(), &clock);
    let Stop::Error(Fault { class, message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert_eq!(class, FaultClass::Unavailable);
    assert!(message.contains("did not begin"), "{message}");
    let (replied, _) = asked(&*model, Purse { time_ms: Some(5), ..Purse::default() }, &clock);
    assert!(matches!(replied.stop, Stop::Error(Fault { class: FaultClass::Interrupted, .. })), "{:?}", replied.stop);
}

#[test]
fn a_reply_that_has_its_end_is_whole_even_if_the_connection_then_breaks() {
    let asked = ask(vec![file("cut_after_finish")]);
    assert_eq!(asked.text(), "Hi.");
    assert!(asked.replied.estimated);
}

#[test]
fn what_a_server_says_after_the_end_is_given_a_time_as_a_whole() {
    let server = Server::start([Play::Pieces(corpus("text"), 1)]);
    let clock = Stepped::default();
    let (replied, _) = asked(&*connect(spec(&server.base_url), Access::default()), Purse::default(), &clock);
    assert_eq!(replied.stop, Stop::End);
    let set = |seconds| clock.limits().into_iter().filter(|limit| *limit == Duration::from_secs(seconds)).count();
    // However the pieces come.
    assert_eq!((set(10), set(1)), (1, 1));
}

#[test]
fn dropping_the_request_ends_it() {
    let (server, clock) = (Server::start([Play::Stall(corpus("cut_clean"))]), Stepped::default());
    let model = connect(spec(&server.base_url), Access::default());
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

fn no_retries() -> model::RetryBudget {
    model::RetryBudget { wall: Duration::ZERO, first_contact: Duration::ZERO, void_replies: 0 }
}
