//! One cheap request, to learn what works.

use crate::support::{Play, Server, Stepped, WIRES};
use model::{Access, CHECK_OUTPUT, Checked, check};
use std::time::Duration;
use trace::{Clock, ModelSpec};

fn run(spec: ModelSpec, clock: &dyn Clock) -> Checked {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(check(spec, Access::default(), clock))
}

#[test]
fn a_whole_answer_is_told_from_a_stream_and_words_from_a_call() {
    for wire in WIRES {
        let whole = if wire.provider == "gemini" { "array" } else { "whole" };
        let server = Server::start([wire.file("text"), wire.file(whole)]);
        let (streamed, whole) =
            (run(wire.spec(&server.base_url), &Stepped::default()), run(wire.spec(&server.base_url), &Stepped::default()));
        assert!(streamed.wrong.is_none() && streamed.streamed && !whole.streamed, "{wire:?}: {streamed:?} {whole:?}");
        assert!(!streamed.called && streamed.usage.is_some());
        let request = &server.requests()[0];
        assert!(request.contains("ready") && request.contains(&CHECK_OUTPUT.to_string()), "{request}");
    }
}

#[test]
fn d4_a_check_has_a_deadline_of_its_own_and_asks_once() {
    for wire in WIRES {
        let (server, clock) = (Server::start([Play::Stall(Vec::new())]), Stepped::default());
        clock.be_late();
        let checked = run(wire.spec(&server.base_url), &clock);
        let wrong = checked.wrong.unwrap().message;
        assert!(wrong.contains("no whole answer came within 60 seconds"), "{wrong}");
        assert_eq!(clock.limits(), [Duration::from_secs(60)]);
        assert_eq!(clock.pauses(), []);
        let busy = Play::Bytes(b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n".to_vec());
        let (server, clock) = (Server::start([busy]), Stepped::default());
        let checked = run(wire.spec(&server.base_url), &clock);
        assert_eq!((checked.status, server.requests().len(), clock.pauses().len()), (Some(503), 1, 0));
    }
}
