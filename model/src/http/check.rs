//! One cheap request, to learn what works: is the server there, does it take the key, does the model call a tool.

use super::{Access, connected};
use crate::retry::{After, Retries};
use crate::trouble::{Kind, Trouble};
use crate::wire::Answer;
use crate::{Ask, Message, Model, Prompt, Purse, RetryBudget, SentPart, render};
use serde_json::json;
use std::time::Duration;
use trace::{Clock, Cost, Digest, FaultClass, Millis, ModelSpec, NanoUsd, Said, ToolSpec, Usage};

/// How long the whole answer may take.
pub const CHECK_TIME: Duration = Duration::from_secs(60);

/// The most tokens of the answer: room for a model that thinks first.
pub const CHECK_OUTPUT: u64 = 1024;

/// The tool that is offered.
const TOOL: &str = "ready";

/// What a check found out.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Where it asked.
    pub url: String,
    /// The HTTP status, if one came.
    pub status: Option<u16>,
    /// What was wrong and what to do about it; absent where there was an answer.
    pub wrong: Option<Wrong>,
    /// Whether the answer came event by event.
    pub streamed: bool,
    /// Whether the model called the tool that was offered.
    pub called: bool,
    /// What the server says that it used; absent where it did not say.
    pub usage: Option<Usage>,
    /// What it cost, by the server's word or by estimate.
    pub cost: Cost,
    /// The model that the server says has answered.
    pub served: Option<String>,
    /// Milliseconds from the request to the first word.
    pub first_token_ms: Option<Millis>,
    /// Milliseconds from the request to the end.
    pub total_ms: Millis,
}

/// Why there was no answer.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What kind of trouble it is.
    pub class: FaultClass,
    /// What happened, and what to do next.
    pub message: String,
}

/// Asks the model that `spec` names once, and no second time, for a call of a tool: at most [`CHECK_OUTPUT`] tokens, within
/// [`CHECK_TIME`].
pub async fn check(spec: ModelSpec, access: Access, clock: &dyn Clock) -> Checked {
    let none = RetryBudget { wall: Duration::ZERO, first_contact: Duration::ZERO, void_replies: 0, ..access.retry };
    let http = connected(spec, Access { retry: none, ..access });
    let body = body(http.spec());
    let begun = clock.elapsed();
    let deadline = begun.saturating_add(crate::retry::millis(CHECK_TIME));
    let ask = Ask { body: &body, purse: Purse::default(), heard: &|_| {}, clock };
    let attempted = http.attempt(&ask, Some(deadline)).await;
    let total_ms = clock.elapsed().saturating_sub(begun);
    let cost = http.spec.price.map_or(Cost::Unpriced, |price| Cost::NanoUsd(price.of(&attempted.usage)));
    let (mut called, mut served, mut wrong) = (false, None, None);
    match &attempted.result {
        Ok(Answer { parts, served: name, .. }) => {
            called = parts.iter().any(|part| matches!(part, Said::Call { name, .. } if name == TOOL));
            served.clone_from(name);
        }
        Err(trouble) => {
            let class = match Retries::new(none).after(trouble, clock.now(), clock.elapsed(), true, &Digest::of(b"")) {
                After::Wait(_) => FaultClass::Unavailable,
                After::Stop(class) => class,
            };
            let late = Trouble::new(Kind::TimeOver, format!("no whole answer came within {} seconds", CHECK_TIME.as_secs()));
            let trouble = if trouble.kind == Kind::TimeOver { &late } else { trouble };
            let advice = match class {
                FaultClass::Unavailable if trouble.kind != Kind::Unreachable => " Try again later.".to_owned(),
                FaultClass::Paused { until } => format!(" The provider asks to wait until {until}."),
                _ => http.advice(class, &body, &attempted, trouble),
            };
            wrong = Some(Wrong { class, message: http.told(&attempted, trouble) + &advice });
        }
    }
    Checked {
        url: http.url(),
        status: attempted.status,
        wrong,
        streamed: attempted.streamed,
        called,
        usage: (!attempted.estimated).then_some(attempted.usage),
        cost: if attempted.usage == Usage::default() { Cost::NanoUsd(NanoUsd(0)) } else { cost },
        served,
        first_token_ms: attempted.first_token_ms,
        total_ms,
    }
}

/// The request, in the form of the model's wire.
fn body(spec: &ModelSpec) -> String {
    let parameters = json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]});
    let tool = ToolSpec { name: TOOL.into(), description: "Says that tools can be called.".into(), parameters, read_only: true };
    let messages = [Message::User(vec![SentPart::text(format!("Call the tool `{TOOL}` with the word `yes`."))])];
    let prompt =
        Prompt { system: "", tools: &[tool], messages: &messages, max_output: spec.max_output.min(CHECK_OUTPUT), schema: None };
    render(spec, &prompt)
}
