//! Two runs of one program with one key: what the provider asks of the one, the other keeps to. They share a `Gate`; each
//! `Access::default()` has one of its own. The server here asks the first request to wait for a second.
//!
//! ```text
//! cargo run --example shared_limits
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use autosage::RealClock;
use autosage::model::catalog::{self, Overrides};
use autosage::model::{Access, Ask, Gate, Heard, Message, Model, Prompt, Purse, SentPart, connect, render};
use std::io::{Read, Write};
use std::net::TcpListener;
use tokio::sync::Notify;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = server()?;
    let gate = Gate::default();
    let model = || -> Result<Box<dyn Model>, Box<dyn std::error::Error>> {
        let place = Overrides { base_url: Some(address.clone()), ..Overrides::default() };
        let access = Access { gate: gate.clone(), ..Access::default() };
        Ok(connect(catalog::find("openai-compatible/any", &place)?, access))
    };
    let (first, second, held) = (model()?, model()?, Notify::new());
    let told = |name: &'static str, held: Option<&Notify>, word: Heard<'_>| {
        if let Heard::Waiting { reason, .. } = word {
            println!("{name} waits: {reason}");
            held.inspect(|held| held.notify_one());
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let one = async {
            asked(&*first, &|word| told("the first", Some(&held), word)).await;
        };
        let other = async {
            held.notified().await;
            asked(&*second, &|word| told("the second", None, word)).await;
        };
        tokio::join!(one, other);
    });
    Ok(())
}

/// Asks `model` anything.
async fn asked(model: &dyn Model, heard: &(dyn Fn(Heard<'_>) + Send + Sync)) {
    let messages = [Message::User(vec![SentPart::text("Are you there?")])];
    let body = render(model.spec(), &Prompt { system: "", tools: &[], messages: &messages, max_output: 100, schema: None });
    let clock = RealClock::new();
    let replied = model.ask(Ask { body: &body, purse: Purse::default(), heard, clock: &clock }).await;
    println!("answered after {} request{}", replied.attempts.len(), if replied.attempts.len() == 1 { "" } else { "s" });
}

/// A server that refuses its first request for a second, and answers all others.
fn server() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}/v1", listener.local_addr()?);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let (mut stream, mut request) = (stream, Vec::new());
            let mut piece = [0; 4096];
            // A request here is one object of JSON, so it ends with a brace.
            while !request.ends_with(b"}") {
                match stream.read(&mut piece) {
                    Ok(count @ 1..) => request.extend_from_slice(&piece[..count]),
                    _ => break,
                }
            }
            let reply = r#"{"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}"#;
            let (head, body) = match number {
                0 => ("429 Too Many Requests\r\nretry-after: 1", r#"{"error": {"message": "Slow down"}}"#),
                _ => ("200 OK", reply),
            };
            let length = body.len();
            let sent = write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
            if sent.is_err() {
                break;
            }
        }
    });
    Ok(address)
}
