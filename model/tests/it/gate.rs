//! Waits that a provider asks for, kept by everything that asks it.

use crate::support::{CHAT, MESSAGES, Play, Server, WIRES};
use model::{Access, Ask, Gate, Heard, Model, Purse, RetryBudget, connect};
use std::sync::Mutex;
use std::task::Waker;
use std::time::Duration;
use trace::{Clock, Exhausted, FaultClass, Millis, ModelSpec, Pause, Replied, Stop, Timestamp};

/// A clock that stands still until it is moved, and whose pauses end when it has come so far.
#[derive(Clone, Default)]
struct Moved(std::sync::Arc<Mutex<(Millis, Vec<Waker>)>>);

impl Moved {
    fn on(&self, millis: Millis) {
        let mut state = self.0.lock().unwrap();
        state.0 += millis;
        state.1.drain(..).for_each(Waker::wake);
    }
}

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_795_953_600_000).plus(self.elapsed())
    }
    fn elapsed(&self) -> Millis {
        self.0.lock().unwrap().0
    }
    fn pause(&self, length: Duration) -> Pause {
        let (clock, end) = (self.clone(), self.elapsed() + length.as_millis() as u64);
        Box::pin(std::future::poll_fn(move |context| {
            let mut state = clock.0.lock().unwrap();
            if state.0 >= end {
                return std::task::Poll::Ready(());
            }
            state.1.push(context.waker().clone());
            std::task::Poll::Pending
        }))
    }
    fn limit(&self, _: Duration) -> Pause {
        Box::pin(std::future::pending())
    }
}

/// An answer that asks to wait five seconds.
fn slow_down() -> Play {
    let body = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let head = format!("HTTP/1.1 429 Too Many Requests\r\nretry-after: 5\r\ncontent-length: {}\r\n\r\n", body.len());
    Play::Bytes((head + body).into_bytes())
}

/// What one model hears.
#[derive(Default)]
struct Ears(Mutex<Vec<String>>);

impl Ears {
    fn hear(&self, heard: Heard<'_>) {
        if let Heard::Waiting { until, reason } = heard {
            self.0.lock().unwrap().push(format!("{until}: {reason}"));
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Returns once something was heard.
    async fn until_told(&self) {
        while self.all().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

async fn ask(model: &dyn Model, purse: Purse, ears: &Ears, clock: &Moved) -> Replied {
    model.ask(Ask { body: "{}", purse, heard: &|heard| ears.hear(heard), clock }).await
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn is_good(replied: &Replied) -> bool {
    !matches!(replied.stop, Stop::Error(_))
}

#[test]
fn d5_one_request_that_is_told_to_wait_holds_back_all_others_of_its_account() {
    for wire in WIRES {
        let server = Server::start([slow_down(), wire.file("text"), wire.file("text"), wire.file("text")]);
        let gate = Gate::default();
        let model = |key: &str| {
            connect(wire.spec(&server.base_url), Access { key: Some(key.into()), gate: gate.clone(), ..Access::default() })
        };
        let (one, two, stranger) = (model("ours"), model("ours"), model("another"));
        let (clock, purse) = (Moved::default(), Purse::default());
        let (ears_one, ears_two, ears_three) = (Ears::default(), Ears::default(), Ears::default());
        run(async {
            let mut first = std::pin::pin!(ask(&*one, purse, &ears_one, &clock));
            let mut second = std::pin::pin!(ask(&*two, purse, &ears_two, &clock));
            tokio::select! {
                biased;
                _ = &mut first => panic!("nobody told the first one to go on"),
                () = ears_one.until_told() => {}
            }
            tokio::select! {
                biased;
                _ = &mut second => panic!("the second one did not wait"),
                () = ears_two.until_told() => {}
            }
            assert_eq!(server.requests().len(), 1, "the second one has not asked");
            // Another account is not held back.
            assert!(is_good(&ask(&*stranger, purse, &ears_three, &clock).await));
            assert_eq!((server.requests().len(), ears_three.all().len()), (2, 0));
            clock.on(4_999);
            tokio::task::yield_now().await;
            assert_eq!(server.requests().len(), 2);
            clock.on(1);
            let (first, second) = tokio::join!(first, second);
            assert!(is_good(&first) && is_good(&second));
            assert_eq!((first.attempts.len(), first.attempts[1].wait_ms), (2, 5_000));
            assert_eq!((second.attempts.len(), second.attempts[0].wait_ms), (1, 5_000), "it was never refused itself");
        });
        assert_eq!(server.requests().len(), 4);
        let until = "2026-11-29T12:00:05.000Z";
        assert_eq!(ears_two.all(), [format!("{until}: another request was asked to wait")]);
        assert!(ears_one.all()[0].starts_with(until), "{:?}", ears_one.all());
    }
}

#[test]
fn who_cannot_wait_so_long_does_not_ask() {
    let server = Server::start([slow_down(), CHAT.file("text")]);
    let gate = Gate::default();
    let access = || Access { gate: gate.clone(), ..Access::default() };
    let (one, two) = (connect(CHAT.spec(&server.base_url), access()), connect(CHAT.spec(&server.base_url), access()));
    let impatient = RetryBudget { wall: Duration::from_secs(1), ..RetryBudget::default() };
    let three = connect(CHAT.spec(&server.base_url), Access { retry: impatient, ..access() });
    let (clock, ears) = (Moved::default(), Ears::default());
    run(async {
        let mut first = std::pin::pin!(ask(&*one, Purse::default(), &ears, &clock));
        tokio::select! {
            biased;
            _ = &mut first => panic!("nobody told the first one to go on"),
            () = ears.until_told() => {}
        }
        let class = |replied: Replied| if let Stop::Error(fault) = replied.stop { Some(fault.class) } else { None };
        let short = Purse { time_ms: Some(3_000), ..Purse::default() };
        let late = class(ask(&*two, short, &Ears::default(), &clock).await);
        assert_eq!(late, Some(FaultClass::Budget { which: Exhausted::Time }));
        let paused = class(ask(&*three, Purse::default(), &Ears::default(), &clock).await);
        assert_eq!(paused, Some(FaultClass::Paused { until: clock.now().plus(5_000) }));
        assert_eq!(server.requests().len(), 1);
        clock.on(5_000);
        assert!(is_good(&first.await));
    });
}

#[test]
fn a_wait_that_ends_the_run_is_kept_by_whoever_asks_the_same_model() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"tomorrow"}}"#;
    let head = format!("HTTP/1.1 429 Too Many Requests\r\nretry-after: 86400\r\ncontent-length: {}\r\n\r\n", body.len());
    let server = Server::start([Play::Bytes((head + body).into_bytes()), MESSAGES.file("text"), MESSAGES.file("text")]);
    let access = Access::default();
    let (clock, ears) = (Moved::default(), Ears::default());
    run(async {
        let model = |name: &str| {
            let spec = ModelSpec { name: name.to_owned(), ..MESSAGES.spec(&server.base_url) };
            connect(spec, access.clone())
        };
        let tomorrow = FaultClass::Paused { until: clock.now().plus(86_400_000) };
        for asked in ["The provider asks to wait until", "was not asked: another request was asked to wait until"] {
            let paused = ask(&*model("one"), Purse::default(), &ears, &clock).await;
            let Stop::Error(fault) = &paused.stop else { panic!("{paused:?}") };
            assert!(fault.class == tomorrow && fault.message.contains(asked), "{fault:?}");
            assert_eq!(server.requests().len(), 1, "it is asked once");
        }
        // It may have a limit of its own.
        assert!(is_good(&ask(&*model("another"), Purse::default(), &ears, &clock).await));
        clock.on(86_400_000);
        assert!(is_good(&ask(&*model("one"), Purse::default(), &ears, &clock).await));
    });
    assert_eq!((server.requests().len(), ears.all().len()), (3, 0));
}
