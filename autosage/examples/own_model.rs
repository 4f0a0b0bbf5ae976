//! A model of one's own: anything that turns the bytes of a request into a reply. This one answers with the last word of
//! the person, and is asked directly; `task.rs` shows a whole run.
//!
//! ```text
//! cargo run --example own_model
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use autosage::RealClock;
use autosage::model::{Ask, Heard, Message, Model, Prompt, Purse, ScriptedModel, SentPart, render};
use autosage::trace::{Cost, ModelSpec, Replied, Said, Stop, Timing, Usage};
use futures_util::future::BoxFuture;

/// Repeats the last word.
struct Echo(ModelSpec);

impl Model for Echo {
    fn spec(&self) -> &ModelSpec {
        &self.0
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(async move {
            // The body is the request of the wire that the spec names: here OpenAI's chat.
            let body: serde_json::Value = serde_json::from_str(ask.body).unwrap_or_default();
            let words = body["messages"].as_array().and_then(|all| all.last()).and_then(|last| last["content"].as_str());
            let text = words.and_then(|words| words.split_whitespace().last()).unwrap_or("nothing").to_owned();
            (ask.heard)(Heard::Text(&text));
            Replied {
                parts: vec![Said::Text { text }],
                stop: Stop::End,
                usage: Usage { input: ask.body.len() as u64 / 4, output: 1, ..Usage::default() },
                estimated: true,
                cost: Cost::Unpriced,
                served: None,
                request_id: None,
                timing: Timing::default(),
                attempts: Vec::new(),
                raw: None,
                redacted: false,
            }
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = ModelSpec { id: "echo/last-word".into(), name: "last-word".into(), ..ScriptedModel::new([]).spec().clone() };
    let model = Echo(spec);
    let messages = [Message::User(vec![SentPart::text("Say hello")])];
    let prompt = Prompt { system: "", tools: &[], messages: &messages, max_output: 100, schema: None };
    let body = render(model.spec(), &prompt);
    println!("asks: {body}");
    let ask = Ask { body: &body, purse: Purse::default(), heard: &|_| {}, clock: &RealClock::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let replied = runtime.block_on(model.ask(ask));
    println!("says: {:?}", replied.parts);
    Ok(())
}
