//! Think: one request, written down before it is sent, and its answer, whatever it is.

use crate::act::time_is_over;
use crate::engine::{Engine, EngineError, Run};
use crate::prompt::Request;
use model::{Ask, Heard, Purse};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use trace::secrets::Stream;
use trace::{Attempt, Cost, Fault, FaultClass, ModelSpec, NanoUsd, Replied, Secrets, Stop, Timing, Usage, What};

/// Asks the model and writes down what it answered.
pub(crate) async fn think(engine: &Engine<'_>, run: &mut Run, request: Request) -> Result<(), EngineError> {
    let model = engine.model(run.progress())?;
    let left = run.progress().ledger().left();
    let input = request.asked.reserved_tokens.saturating_sub(request.asked.max_output);
    let purse = Purse {
        tokens: left.tokens,
        nano_usd: left.nano_usd,
        reserve_tokens: request.asked.reserved_tokens,
        input_tokens: Some(input),
        reserve_nano_usd: request.asked.reserved_nano_usd,
        time_ms: left.time_ms,
    };
    let asked = run.note(None, What::Asked(request.asked))?;
    // What came before is synced while the model thinks.
    run.begin_sync()?;
    let began = engine.clock.elapsed();
    let (bytes, pause_ends) = (AtomicU64::new(0), AtomicI64::new(i64::MIN));
    let failed = Mutex::new(Vec::new());
    let told = Told::new(run.record().secrets(), engine.heard);
    let heard = |heard: Heard<'_>| {
        bytes.fetch_add(heard.bytes() as u64, Ordering::Relaxed);
        match heard {
            Heard::Failed(attempt) => {
                bytes.store(0, Ordering::Relaxed);
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(attempt.clone());
            }
            Heard::Waiting { until, .. } => pause_ends.store(until.unix_millis(), Ordering::Relaxed),
            Heard::Text(_) | Heard::Reasoning(_) | Heard::Call { .. } | Heard::Arguments { .. } => {}
        }
        told.hear(heard);
    };
    let stopped = |why: &str| {
        let mut attempts = failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Between two attempts no server works for us.
        if engine.clock.now().unix_millis() >= pause_ends.load(Ordering::Relaxed) {
            let usage = Usage { input, output: bytes.load(Ordering::Relaxed).div_ceil(3), ..Usage::default() };
            attempts.push(Attempt { usage, error: Some(why.to_owned()), ..Attempt::default() });
        }
        stopped(model.spec(), attempts, engine.clock.elapsed().saturating_sub(began), why)
    };
    let replied = tokio::select! {
        biased;
        replied = model.ask(Ask { body: &request.body, purse, heard: &heard, clock: engine.clock }) => replied,
        () = engine.interrupt.raised() => stopped("the request was stopped by an interrupt"),
        () = time_is_over(engine, left.time_ms) => stopped("the request was stopped because the run's time is over"),
    };
    run.note(Some(asked.seq), What::Replied(replied)).map(|_| ())
}

/// Hands on what is heard, without secrets.
struct Told<'a> {
    secrets: &'a Secrets,
    /// The words that are coming, and whether they are thought.
    words: Mutex<Option<(bool, Stream)>>,
    heard: &'a (dyn Fn(Heard<'_>) + Send + Sync),
}

impl<'a> Told<'a> {
    fn new(secrets: &'a Secrets, heard: &'a (dyn Fn(Heard<'_>) + Send + Sync)) -> Told<'a> {
        Told { secrets, words: Mutex::new(None), heard }
    }

    fn hear(&self, heard: Heard<'_>) {
        let mut coming = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let (words, thought) = match heard {
            Heard::Text(words) => (words, false),
            Heard::Reasoning(words) => (words, true),
            // What it used is told by the reply.
            Heard::Failed(_) => {
                *coming = None;
                return;
            }
            // What is held of words before this is part of the reply, which is told next.
            Heard::Call { name } => {
                *coming = None;
                return (self.heard)(Heard::Call { name: &self.secrets.hide(name) });
            }
            Heard::Arguments { bytes } => return (self.heard)(Heard::Arguments { bytes }),
            Heard::Waiting { until, reason } => {
                *coming = None;
                return (self.heard)(Heard::Waiting { until, reason: &self.secrets.hide(reason) });
            }
        };
        if coming.as_ref().is_none_or(|(before, _)| *before != thought) {
            *coming = Some((thought, self.secrets.stream()));
        }
        let Some((_, stream)) = coming.as_mut() else { return };
        stream.push(words.as_bytes(), &mut |piece| match thought {
            true => (self.heard)(Heard::Reasoning(&piece.text())),
            false => (self.heard)(Heard::Text(&piece.text())),
        });
    }
}

/// The answer to a request that we stopped ourselves, after these `attempts`. The server will charge for what it did in the
/// last one until then, so that is estimated: the input, and what was heard.
fn stopped(spec: &ModelSpec, attempts: Vec<Attempt>, total_ms: u64, why: &str) -> Replied {
    let fault = Fault { class: FaultClass::Interrupted, status: None, request_id: None, message: why.to_owned() };
    let (mut usage, mut spent) = (Usage::default(), NanoUsd(0));
    for attempt in &attempts {
        usage += attempt.usage;
        spent = spent.saturating_add(spec.price.map_or(NanoUsd(0), |price| price.of(&attempt.usage)));
    }
    Replied {
        parts: Vec::new(),
        stop: Stop::Error(fault),
        usage,
        estimated: true,
        cost: spec.price.map_or(Cost::Unpriced, |_| Cost::NanoUsd(spent)),
        served: None,
        request_id: None,
        timing: Timing { first_token_ms: None, total_ms },
        attempts,
        raw: None,
        redacted: false,
    }
}
