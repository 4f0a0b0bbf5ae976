//! What a long record costs: written and folded, or opened again and folded. Prints its figures as JSON for
//! `cargo xtask bench`; build it with `--release`.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that measures: it prints and asks the time")]

use engine::{Harness, Progress};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace::{AgentPath, CallId, Clock, Digest, Durability, Event, Millis, Pause, Record, Seq, Timestamp, What};

const RUN: &str = "20261129-174007-abcdef";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [act, home, events] = args.as_slice() else { return Err("write|reopen HOME EVENTS".into()) };
    let run = Path::new(home).join("runs").join(RUN);
    let figures = match act.as_str() {
        "write" => write(&run, events.parse()?)?,
        "reopen" => reopen(&run)?,
        _ => return Err("write or reopen".into()),
    };
    println!("{figures}");
    Ok(())
}

/// A record of `events` events, four a turn, each folded as it is written.
fn write(run: &Path, events: u64) -> Result<Value, Box<dyn Error>> {
    let mut record = Record::create(run, Durability::Process, Arc::new(Stopped), Box::new(|_, _, _| ()))?;
    let harness = Harness::embedded()?;
    let started = started(&harness.keep(record.blobs())?)?;
    let mut progress = Progress::new(harness, record.blobs().contents());
    let since = Instant::now();
    let mut note = |cause, what| -> Result<Event, Box<dyn Error>> {
        let event = record.append(&AgentPath::root(), cause, what)?;
        progress.fold(&event);
        Ok(event)
    };
    note(None, started)?;
    for turn in 1..=events / 4 {
        let asked = note(None, asked(turn)?)?.seq;
        let replied = note(Some(asked), replied(turn)?)?.seq;
        let called = note(Some(replied), called(replied, turn)?)?.seq;
        note(Some(called), observed(replied, turn)?)?;
    }
    record.sync()?;
    let bytes = std::fs::metadata(run.join("trace.jsonl"))?.len();
    Ok(json!({"events": events, "bytes": bytes, "append_ms": since.elapsed().as_secs_f64() * 1e3}))
}

/// The record, opened as its owner and folded.
fn reopen(run: &Path) -> Result<Value, Box<dyn Error>> {
    let since = Instant::now();
    let (record, events) = Record::open(run, Durability::Process, Arc::new(Stopped), Box::new(|_, _, _| ()))?;
    let run = engine::reopen(record, &events)?;
    let reopen_ms = since.elapsed().as_secs_f64() * 1e3;
    assert!(run.progress().messages().len() > events.len() / 4, "the fold holds every turn");
    Ok(json!({"reopen_ms": reopen_ms, "reopen_peak_mb": peak_mb()?}))
}

/// Resident memory of this process at its peak, in millions of bytes.
fn peak_mb() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("/proc/self/status names no VmHWM")?;
    Ok(peak.trim().trim_end_matches(" kB").trim().parse::<f64>()? * 1024.0 / 1e6)
}

fn started(harness: &trace::HarnessRef) -> serde_json::Result<What> {
    let tool = json!({"name": "bash", "description": "Runs a command.", "parameters": {"type": "object"}, "read_only": false});
    let model = json!({
        "id": "openai-compatible/m", "name": "m", "wire": "openai-chat", "provider": "openai-compatible", "max_output": 8192,
    });
    let started = json!({
        "run": RUN, "task": {"parts": [{"type": "text", "text": "go"}], "workspace": "/tmp"}, "harness": harness,
        "tools": [tool], "model": model, "limits": {}, "max_claims": 5, "facts": {"date": "2026-11-29", "os": "linux", "backend": "native"},
        "program": {"version": "0"}, "project": [], "grant": {},
    });
    serde_json::from_value(started).map(What::Started)
}

fn asked(turn: u64) -> serde_json::Result<What> {
    let prompt = Digest::of(&turn.to_le_bytes());
    let asked = json!({
        "model": "openai-compatible/m", "max_output": 8192, "prompt": prompt, "bytes": 4000 + 208 * turn, "upto": turn,
        "rules": 1, "reserved_tokens": 9000, "reserved_nano_usd": null,
    });
    serde_json::from_value(asked).map(What::Asked)
}

fn replied(turn: u64) -> serde_json::Result<What> {
    let call = json!({"type": "call", "id": format!("call_{turn}"), "name": "bash", "arguments": format!("{{\"command\": \"echo {turn}\"}}")});
    let replied = json!({
        "parts": [call], "stop": "calls", "usage": {"input": 1000 + 50 * turn, "output": 20}, "estimated": false, "cost": "unpriced",
        "timing": {"first_token_ms": 2, "total_ms": 3}, "attempts": [{"status": 200, "wait_ms": 0, "usage": {"input": 1000, "output": 20}}],
    });
    serde_json::from_value(replied).map(What::Replied)
}

fn called(reply: Seq, turn: u64) -> serde_json::Result<What> {
    let command = json!({"command": format!("echo {turn}")});
    let called = json!({
        "id": CallId::new(reply, 0), "provider_id": format!("call_{turn}"), "tool": "bash", "raw": command.to_string(), "arguments": command,
    });
    serde_json::from_value(called).map(What::Called)
}

fn observed(reply: Seq, turn: u64) -> serde_json::Result<What> {
    let observed = json!({
        "id": CallId::new(reply, 0), "status": "ok", "content": [{"type": "text", "text": format!("{turn}\n")}], "exit_code": 0,
        "bytes": 5, "took_ms": 3,
    });
    serde_json::from_value(observed).map(What::Observed)
}

/// A clock that stands: what is measured is not measured by it.
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_795_974_007_123)
    }

    fn elapsed(&self) -> Millis {
        0
    }

    fn pause(&self, _: Duration) -> Pause {
        Box::pin(std::future::ready(()))
    }

    fn limit(&self, _: Duration) -> Pause {
        Box::pin(std::future::pending())
    }
}
