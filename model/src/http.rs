//! The model that speaks HTTP: one request, and further ones where that can help.

mod attempt;
mod check;
mod client;
mod gate;

pub use check::{CHECK_OUTPUT, CHECK_TIME, Checked, Wrong, check};
pub use gate::Gate;

use crate::picture::takes_none;
use crate::retry::{After, Retries, millis};
use crate::trouble::{Kind, Trouble};
use crate::wire::{Answer, Wire};
use crate::{Ask, Heard, KeyForm, Model, RetryBudget, provider};
use attempt::Attempted;
use client::Lazy;
use futures_util::future::BoxFuture;
use gate::Account;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trace::{Attempt, Cost, Digest, Exhausted, Fault, FaultClass, Millis, ModelSpec, NanoUsd, Replied, Stop, Timing, Usage};

/// What a model needs besides its spec.
#[derive(Clone, Default)]
pub struct Access {
    /// The key, sent to the host of the spec's address and nowhere else.
    pub key: Option<String>,
    /// How the key is sent.
    pub form: KeyForm,
    /// The variable that a person keeps the key in, where it is not the provider's own; for messages.
    pub key_var: Option<String>,
    /// How much trouble a request puts up with.
    pub retry: RetryBudget,
    /// Where waits are kept that a provider asks for. Models with clones of one gate wait together, as far as they ask one
    /// host with one key. [`Access::default`] makes a new one: a program whose runs share their limits makes one [`Gate`] and
    /// gives each model a clone of it.
    pub gate: Gate,
}

impl fmt::Debug for Access {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref().map(|_| "<key>");
        f.debug_struct("Access")
            .field("key", &key)
            .field("key_var", &self.key_var)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// The model that `spec` names, asked over HTTP. Nothing is set up before the first request: a plain `http` address never
/// loads certificates, an `https` one does at its first request. Connections live on a thread that is begun then and ends with
/// the model, so no server keeps the caller's busy. Redirects are not followed and the environment's proxies
/// are not used; certificates are the system's (`SSL_CERT_FILE` and `SSL_CERT_DIR` count, as everywhere).
pub fn connect(spec: ModelSpec, access: Access) -> Box<dyn Model> {
    Box::new(connected(spec, access))
}

fn connected(spec: ModelSpec, access: Access) -> Http {
    let account = Account::of(spec.base_url.as_deref().unwrap_or_default(), access.key.as_deref());
    Http { spec, access, account, client: Lazy::default(), met: AtomicBool::new(false) }
}

struct Http {
    spec: ModelSpec,
    access: Access,
    account: Account,
    client: Lazy,
    /// Whether the server has ever answered.
    met: AtomicBool,
}

impl Model for Http {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(self.answer(ask))
    }
}

impl Http {
    async fn answer(&self, ask: Ask<'_>) -> Replied {
        let begun = ask.clock.elapsed();
        let deadline = ask.purse.time_ms.map(|left| begun.saturating_add(left));
        let mut retries = Retries::new(self.access.retry);
        let mut sum = Sum::default();
        let mut wait = Duration::ZERO;
        loop {
            if let Some((which, words)) = ask.purse.refuses(&sum.usage, sum.spent) {
                return self.fault(sum, FaultClass::Budget { which }, None, words, ask.clock.elapsed() - begun);
            }
            match self.wait_with_the_others(&ask, deadline).await {
                Ok(waited) => wait += waited,
                Err((class, words)) => return self.fault(sum, class, None, words, ask.clock.elapsed() - begun),
            }
            let attempted = self.attempt(&ask, deadline).await;
            sum.add(&self.spec, &attempted, wait);
            let trouble = match &attempted.result {
                Ok(_) => return self.reply(sum, attempted, ask.clock.elapsed() - begun),
                Err(trouble) => trouble.clone(),
            };
            if let Some(attempt) = sum.attempts.last() {
                (ask.heard)(Heard::Failed(attempt));
            }
            let (now, elapsed) = (ask.clock.now(), ask.clock.elapsed());
            let seed = Digest::of(ask.body.as_bytes());
            let class = match retries.after(&trouble, now, elapsed, self.met.load(Ordering::Relaxed), &seed) {
                After::Wait(length) if deadline.is_none_or(|end| elapsed.saturating_add(millis(length)) < end) => {
                    let until = now.plus(millis(length));
                    if trouble.told.is_some() {
                        self.access.gate.hold(&self.account, until);
                    }
                    let said = labelled(attempted.status, &trouble.message);
                    let reason = if trouble.kind == Kind::Unreachable { format!("{}: {said}", self.place()) } else { said };
                    (ask.heard)(Heard::Waiting { until, reason: &reason });
                    ask.clock.pause(length).await;
                    wait = length;
                    continue;
                }
                After::Wait(_) => FaultClass::Budget { which: Exhausted::Time },
                After::Stop(class) => {
                    if let FaultClass::Paused { until } = class {
                        self.access.gate.close(&self.account, &self.spec.name, until);
                    }
                    class
                }
            };
            let message = self.explain(class, ask.body, &attempted, &trouble);
            return self.fault(sum, class, Some(attempted), message, ask.clock.elapsed() - begun);
        }
    }

    /// Waits as long as another request of this account was told to, and says how long that was.
    async fn wait_with_the_others(&self, ask: &Ask<'_>, deadline: Option<Millis>) -> Result<Duration, (FaultClass, String)> {
        let mut waited = Duration::ZERO;
        loop {
            let (now, elapsed) = (ask.clock.now(), ask.clock.elapsed());
            let Some(until) = self.access.gate.until(&self.account, &self.spec.name, now) else { return Ok(waited) };
            let length = Duration::from_millis(until.unix_millis().abs_diff(now.unix_millis()));
            let reason = "another request was asked to wait";
            let told =
                |advice: &str| format!("`{}` at {} was not asked: {reason} until {until}.{advice}", self.spec.name, self.url());
            if waited.saturating_add(length) > self.access.retry.wall {
                return Err((FaultClass::Paused { until }, told(" Resume the run then; only a new process asks before.")));
            }
            if deadline.is_some_and(|end| elapsed.saturating_add(millis(length)) >= end) {
                return Err((
                    FaultClass::Budget { which: Exhausted::Time },
                    told(" The run's active time does not last until then."),
                ));
            }
            (ask.heard)(Heard::Waiting { until, reason });
            ask.clock.pause(length).await;
            waited += length;
        }
    }

    fn reply(&self, sum: Sum, attempted: Attempted, total_ms: u64) -> Replied {
        let cost = sum.cost(&self.spec);
        let Attempted { result, request_id, first_token_ms, .. } = attempted;
        let Answer { parts, stop, served, id, .. } = result.expect("only a usable answer is made a reply of");
        Replied {
            parts,
            stop,
            usage: sum.usage,
            estimated: sum.estimated,
            cost,
            served: served.as_deref().and_then(named),
            request_id: request_id.or(id.as_deref().and_then(named)),
            timing: Timing { first_token_ms, total_ms },
            attempts: sum.attempts,
            raw: None,
            redacted: false,
        }
    }

    fn fault(&self, sum: Sum, class: FaultClass, last: Option<Attempted>, message: String, total_ms: u64) -> Replied {
        let (status, request_id) = last.map_or((None, None), |last| (last.status, last.request_id));
        Replied {
            parts: Vec::new(),
            stop: Stop::Error(Fault { class, status, request_id: request_id.clone(), message }),
            usage: sum.usage,
            estimated: sum.estimated,
            cost: sum.cost(&self.spec),
            served: None,
            request_id,
            timing: Timing { first_token_ms: None, total_ms },
            attempts: sum.attempts,
            raw: None,
            redacted: false,
        }
    }

    /// What was attempted, what came of it, and what to do next.
    fn explain(&self, class: FaultClass, body: &str, attempted: &Attempted, trouble: &Trouble) -> String {
        self.told(attempted, trouble) + &self.advice(class, body, attempted, trouble)
    }

    /// What was attempted, and what came of it.
    fn told(&self, attempted: &Attempted, trouble: &Trouble) -> String {
        let said = labelled(attempted.status, &trouble.message);
        format!("asked `{}` at {}: {}.", self.spec.name, self.url(), said.trim_end_matches('.'))
    }

    /// What a person can do about it, where a run ends with it.
    fn advice(&self, class: FaultClass, body: &str, attempted: &Attempted, trouble: &Trouble) -> String {
        let row = provider::row(&self.spec.provider);
        let key_var = self.access.key_var.as_deref().unwrap_or(row.key_var);
        match (class, attempted.status) {
            (FaultClass::Rejected, Some(401 | 403)) if self.access.key.is_none() => {
                format!(" No key was sent: set {key_var}.")
            }
            // Google refuses a wrong key with status 400.
            (FaultClass::Rejected, Some(400)) if trouble.message.contains("API key") => format!(" Check the key in {key_var}."),
            (FaultClass::Rejected, Some(401 | 403)) => format!(" Check the key in {key_var} and what it may use."),
            (FaultClass::Rejected, Some(404)) if !takes_none(&trouble.message) => {
                let usual = Wire::of(&self.spec).usual_base();
                format!(" Check the model's name, `{}`, and the base URL ({usual}).", self.spec.name)
            }
            (FaultClass::Rejected, _) if trouble.message.contains("/v1/responses") => {
                format!(" OpenAI's own wire takes tools with this model: --model openai/{}", self.spec.name)
            }
            (FaultClass::Rejected, _) if trouble.message.contains("Encrypted content is not supported") => {
                format!(" This model does not reason: --model openai-chat/{}", self.spec.name)
            }
            (FaultClass::Rejected, _) if Wire::of(&self.spec).holds_pictures(body) && is_about_pictures(&trouble.message) => {
                let (provider, name) = (row.models, &self.spec.name);
                format!(
                    " Where `{name}` takes none or not this one, a models.toml beside your configuration keeps it from them \
                     ([[model]] with provider = \"{provider}\", name = \"{name}\", images = false): resume the run then."
                )
            }
            (FaultClass::Rejected, Some(402 | 429)) => {
                " The account's credit or limit does not allow it: raise it, or use another key.".to_owned()
            }
            (FaultClass::Rejected, Some(400..=499)) => {
                " The same request would be refused again: mend what the server names, or ask another model (--model).".to_owned()
            }
            (FaultClass::ContextFull, _) => {
                " The conversation, or the output asked for (--max-output), does not fit the model's window.".to_owned()
            }
            (FaultClass::Unavailable, _) if trouble.kind == Kind::Unreachable => {
                " Is the server running there? Check the base URL.".to_owned()
            }
            (FaultClass::Unavailable, _) => " Asking again did not help: resume the run later.".to_owned(),
            (FaultClass::Paused { until }, _) => format!(" The provider asks to wait until {until}: resume the run then."),
            (FaultClass::Budget { .. }, _) => " The run's active time does not last for another attempt.".to_owned(),
            (FaultClass::Rejected | FaultClass::Refused | FaultClass::Interrupted, _) => String::new(),
        }
    }

    /// The server's host and port, as far as the address names them.
    fn place(&self) -> String {
        let base_url = self.spec.base_url.as_deref().unwrap_or_default();
        reqwest::Url::parse(base_url).map_or_else(|_| base_url.to_owned(), |url| url.authority().to_owned())
    }

    /// The address of requests; never holds a key.
    fn url(&self) -> String {
        Wire::of(&self.spec).url(self.spec.base_url.as_deref().unwrap_or_default(), &self.spec.name)
    }
}

/// Whether a provider's words are about pictures in a request.
fn is_about_pictures(message: &str) -> bool {
    let message = message.to_lowercase();
    let mut words = message.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| matches!(word, "image" | "images" | "imageurl" | "picture" | "pictures" | "multimodal" | "vision"))
}

/// A name that a server gives to what it does, as it is kept; one that is longer than any is none.
fn named(name: &str) -> Option<String> {
    (name.len() <= 256).then(|| name.to_owned())
}

/// A provider's words with the status that they came with.
fn labelled(status: Option<u16>, message: &str) -> String {
    match status {
        None | Some(200) => message.to_owned(),
        Some(status) => format!("{status}: {message}"),
    }
}

/// What the attempts of one request come to.
#[derive(Default)]
struct Sum {
    usage: Usage,
    spent: NanoUsd,
    estimated: bool,
    attempts: Vec<Attempt>,
}

impl Sum {
    fn add(&mut self, spec: &ModelSpec, attempted: &Attempted, wait: Duration) {
        self.usage += attempted.usage;
        self.spent = self.spent.saturating_add(spec.price.map_or(NanoUsd(0), |price| price.of(&attempted.usage)));
        self.estimated |= attempted.estimated;
        self.attempts.push(Attempt {
            status: attempted.status,
            wait_ms: millis(wait),
            usage: attempted.usage,
            error: attempted.result.as_ref().err().map(|trouble| trouble.message.clone()),
        });
    }

    fn cost(&self, spec: &ModelSpec) -> Cost {
        spec.price.map_or(Cost::Unpriced, |_| Cost::NanoUsd(self.spent))
    }
}
