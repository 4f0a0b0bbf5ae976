//! What is asked for again, when, and how often.

use super::{ask, ask_with, asked, files, run, secs};
use crate::support::{CHAT, GEMINI, MESSAGES, RESPONSES, Server, Stepped, WIRES, Wire};
use model::{Access, Ask, Purse, connect};
use std::time::Duration;
use trace::{Exhausted, Fault, FaultClass, NanoUsd, Stop, Usage};

/// Of a wire: what is refused before its first byte and may pass, what breaks on its way, and what of the latter tells its
/// usage all the same.
fn passing(wire: Wire) -> (&'static [&'static str], &'static [&'static str], &'static [&'static str]) {
    if wire == CHAT {
        let refused = &["408", "409", "425", "429_plain", "500", "502", "503", "503_html", "504", "529"];
        let broken = &[
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
        return (refused, broken, &["finish_error"]);
    }
    if wire == GEMINI {
        let refused = &["408", "409", "429_plain", "499", "500", "502", "503", "503_html", "504", "529"];
        let broken = &[
            "cut_clean",
            "cut_chunked",
            "cut_in_a_call",
            "error_in_stream",
            "error_unknown",
            "array_cut",
            "array_error",
            "array_without_end",
            "whole_error",
            "whole_without_reason",
            "not_json",
            "nothing",
            "whole_cut",
        ];
        return (refused, broken, &["whole_without_reason"]);
    }
    if wire == RESPONSES {
        let refused = &["408", "409", "425", "429_plain", "500", "502", "503", "503_html", "504", "529"];
        let broken = &[
            "cut_clean",
            "cut_chunked",
            "cut_before_the_end",
            "failed",
            "cancelled",
            "incomplete_otherwise",
            "error_event",
            "error_nested",
            "error_bare",
            "error_whole",
            "whole_failed",
            "whole_queued",
            "not_json",
            "nothing",
            "whole_cut",
        ];
        return (refused, broken, &["cancelled", "incomplete_otherwise"]);
    }
    let refused = &["408", "409", "429_plain", "500", "502", "503", "503_html", "504", "529"];
    let broken = &[
        "cut_clean",
        "cut_chunked",
        "error_overloaded",
        "error_first",
        "error_api",
        "error_unknown",
        "no_message_stop",
        "no_block_stop",
        "stray_piece",
        "not_json",
        "nothing",
        "whole_cut",
        "whole_error",
    ];
    (refused, broken, &["no_message_stop", "no_block_stop"])
}

#[test]
fn passing_trouble_is_asked_again() {
    for wire in WIRES {
        let (refused, broken, told) = passing(wire);
        for name in refused.iter().chain(broken) {
            let asked = ask(wire, files(wire, &[name, "text"]));
            assert_eq!(asked.text(), "Hello, wörld 😀", "{name}");
            let [first, second] = asked.replied.attempts.as_slice() else { panic!("{name}: two attempts were expected") };
            assert!(first.error.is_some() && second.error.is_none(), "{name}");
            let is_broken = broken.contains(name);
            assert_eq!(first.status.unwrap().to_string(), if is_broken { "200" } else { &name[..3] }, "{name}");
            assert_eq!(first.usage.input > 0, is_broken, "{name}: only what was refused before its first byte is free");
            assert_eq!(asked.replied.estimated, is_broken && !told.contains(name), "{name}");
            assert_eq!(second.wait_ms, asked.pauses[0].as_millis() as u64, "{name}");
            assert!(matches!(secs(&asked.pauses)[..], [wait] if (0.375..=0.5).contains(&wait)), "{name}: {:?}", asked.pauses);
            assert!(asked.heard.iter().any(|word| word.starts_with("Waiting")), "{name}");
        }
    }
}

#[test]
fn a_wait_that_the_provider_asks_for_is_kept() {
    let common = [("429_seconds", 17.0), ("429_date", 21.0), ("429_words", 17.252), ("error_rate_limit", 17.252)];
    let own = [(MESSAGES, ("429_reset", 33.0)), (RESPONSES, ("failed_rate_limit", 17.252)), (GEMINI, ("429_retry_info", 21.5))];
    let all = WIRES.into_iter().flat_map(|wire| common.map(|case| (wire, case))).chain(own);
    for (wire, (name, wait)) in all {
        let asked = ask(wire, files(wire, &[name, "text"]));
        assert_eq!(secs(&asked.pauses), [wait], "{name}");
    }
}

#[test]
fn a_longer_wait_than_the_budget_pauses_the_run() {
    for wire in WIRES {
        let asked = ask(wire, files(wire, &["429_long"]));
        let FaultClass::Paused { until } = asked.fault().class else { panic!("{:?}", asked.fault()) };
        assert_eq!(until.to_string(), "2026-11-29T19:12:00.000Z");
        assert!(asked.fault().message.contains("resume"), "{}", asked.fault().message);
        assert_eq!(asked.pauses, []);
    }
}

#[test]
fn a_void_reply_is_paid_for_and_asked_for_twice_more() {
    let chat = ["empty", "blank", "reasoning_alone", "length_reasoning"];
    let messages = ["empty", "blank", "thinking_alone", "length_thinking"];
    // Replies that the model failed at are paid for as well.
    let gemini = ["empty", "blank", "thought_alone", "length_thought", "malformed_call", "unexpected_call", "finish_other"];
    let all = [(CHAT, &chat[..]), (RESPONSES, &chat), (MESSAGES, &messages), (GEMINI, &gemini)];
    for (wire, names) in all {
        for name in names {
            let asked = ask(wire, files(wire, &[name, name, name]));
            assert_eq!(asked.fault().class, FaultClass::Unavailable, "{name}");
            assert_eq!(asked.replied.usage.total(), 3 * 120, "{name}");
            assert!(!asked.replied.estimated, "{name}");
        }
    }
}

#[test]
fn retries_end_with_their_budget() {
    let plays = |_| CHAT.file("500");
    let (server, clock) = (Server::start((0..200).map(plays)), Stepped::default());
    let (replied, _) = asked(&*connect(CHAT.spec(&server.base_url), Access::default()), Purse::default(), &clock);
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
        let (server, clock) =
            (Server::start([CHAT.file("500"), CHAT.file("500"), CHAT.file("500"), CHAT.file("text")]), Stepped::default());
        let model = connect(CHAT.spec(&server.base_url), Access::default());
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
    let model = connect(CHAT.spec(&format!("http://{free}/v1")), Access::default());
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
    assert_eq!(ask_with(CHAT, purse, vec![CHAT.file("empty"), CHAT.file("text")]).replied.stop, Stop::End);
    let purse = Purse { tokens: Some(600), ..purse };
    let asked = ask_with(CHAT, purse, vec![CHAT.file("empty")]);
    assert_eq!(asked.fault().class, FaultClass::Budget { which: Exhausted::Tokens });
    assert_eq!((asked.replied.usage.total(), asked.replied.attempts.len()), (120, 1));

    let purse = Purse { nano_usd: Some(NanoUsd(500_000)), reserve_nano_usd: Some(NanoUsd(300_000)), ..Purse::default() };
    assert_eq!(ask_with(CHAT, purse, vec![CHAT.file("empty")]).fault().class, FaultClass::Budget { which: Exhausted::Money });
    let purse = Purse { time_ms: Some(16_000), ..Purse::default() };
    assert_eq!(
        ask_with(CHAT, purse, vec![CHAT.file("429_seconds")]).fault().class,
        FaultClass::Budget { which: Exhausted::Time }
    );
}
