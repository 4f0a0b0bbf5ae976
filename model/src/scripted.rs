//! A model that answers from a list, for tests, scenarios and programs that try out an agent without a provider.

use crate::wire::Wire;
use crate::{Ask, Heard, Model, estimate_tokens};
use futures_util::future::{BoxFuture, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::{Attempt, Cost, Fault, FaultClass, ModelSpec, Replied, Said, Stop, Timing, Usage};

/// One reply of a [`ScriptedModel`]: parts in order, and why it stops.
///
/// ```
/// use model::Step;
/// let step = Step::reasoning("Look first.").then_call("bash", serde_json::json!({"command": "ls"}));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    parts: Vec<Said>,
    stop: Option<Stop>,
}

impl Step {
    /// A reply of words.
    pub fn text(text: &str) -> Step {
        Step::parts(Vec::new()).then_text(text)
    }

    /// A reply that begins with reasoning.
    pub fn reasoning(text: &str) -> Step {
        Step::parts(vec![Said::Reasoning { text: text.to_owned() }])
    }

    /// A reply with a call.
    pub fn call(name: &str, arguments: serde_json::Value) -> Step {
        Step::parts(Vec::new()).then_call(name, arguments)
    }

    /// A reply of any parts.
    pub fn parts(parts: Vec<Said>) -> Step {
        Step { parts, stop: None }
    }

    /// No usable answer.
    pub fn fault(class: FaultClass, message: &str) -> Step {
        let fault = Fault { class, status: None, request_id: None, message: message.to_owned() };
        Step { parts: Vec::new(), stop: Some(Stop::Error(fault)) }
    }

    /// The same with words after what is there.
    pub fn then_text(self, text: &str) -> Step {
        self.then(Said::Text { text: text.to_owned() })
    }

    /// The same with a call after what is there; the provider's ids count up from `call_1` in each reply.
    pub fn then_call(self, name: &str, arguments: serde_json::Value) -> Step {
        let calls = self.parts.iter().filter(|part| matches!(part, Said::Call { .. })).count();
        self.then(Said::Call { id: format!("call_{}", calls + 1), name: name.to_owned(), arguments: arguments.to_string() })
    }

    /// The same with one more part.
    pub fn then(mut self, part: Said) -> Step {
        self.parts.push(part);
        self
    }

    /// The same with another reason to stop than its parts suggest.
    pub fn stopped(mut self, stop: Stop) -> Step {
        self.stop = Some(stop);
        self
    }
}

/// Answers each request with the next step of a list. Usage is counted from the bytes of the body and the reply, so that
/// the same conversation always has the same record.
#[derive(Debug)]
pub struct ScriptedModel {
    spec: ModelSpec,
    steps: Vec<Step>,
    next: AtomicUsize,
}

impl ScriptedModel {
    /// The model that answers with `steps`; its spec is named `scripted/model`, without price, and speaks OpenAI's chat.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> ScriptedModel {
        let spec = ModelSpec {
            id: "scripted/model".to_owned(),
            name: "model".to_owned(),
            wire: Wire::OpenAiChat.name().to_owned(),
            provider: "scripted".to_owned(),
            base_url: None,
            max_output: 8192,
            context: None,
            price: None,
            effort: None,
            reasons: None,
            images: None,
            max_images: None,
            large_images: None,
            structured: None,
            table: None,
        };
        ScriptedModel { spec, steps: steps.into_iter().collect(), next: AtomicUsize::new(0) }
    }

    /// The same under another spec.
    pub fn with_spec(mut self, spec: ModelSpec) -> ScriptedModel {
        self.spec = spec;
        self
    }

    /// The same, but the next answer is the step at `position`: the number of replies that a resumed run has.
    pub fn from(self, position: usize) -> ScriptedModel {
        ScriptedModel { next: AtomicUsize::new(position), ..self }
    }

    fn reply(&self, ask: &Ask<'_>) -> Replied {
        let position = self.next.fetch_add(1, Ordering::Relaxed);
        let beyond = || Step::fault(FaultClass::Rejected, &format!("the script ends after {} replies", self.steps.len()));
        let Step { parts, stop } = self.steps.get(position).cloned().unwrap_or_else(beyond);
        tell(&parts, ask.heard);
        let calls = parts.iter().any(|part| matches!(part, Said::Call { .. }));
        let stop = stop.unwrap_or(if calls { Stop::Calls } else { Stop::End });
        let (usage, error) = match &stop {
            Stop::Error(fault) => (Usage::default(), Some(fault.message.clone())),
            _ => (usage(ask, &parts), None),
        };
        Replied {
            parts,
            stop,
            usage,
            estimated: false,
            cost: self.spec.price.map_or(Cost::Unpriced, |price| Cost::NanoUsd(price.of(&usage))),
            served: None,
            request_id: None,
            timing: Timing::default(),
            attempts: vec![Attempt { status: None, wait_ms: 0, usage, error }],
            raw: None,
            redacted: false,
        }
    }
}

impl Model for ScriptedModel {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(ready(self.reply(&ask)))
    }
}

/// Lets the words of a reply be heard, a part at a time.
fn tell(parts: &[Said], heard: &dyn Fn(Heard<'_>)) {
    for part in parts {
        match part {
            Said::Text { text } => heard(Heard::Text(text)),
            Said::Reasoning { text } => heard(Heard::Reasoning(text)),
            Said::Call { name, arguments, .. } => {
                heard(Heard::Call { name });
                heard(Heard::Arguments { bytes: arguments.len() });
            }
            Said::Cut { .. } | Said::Opaque { .. } => {}
        }
    }
}

fn usage(ask: &Ask<'_>, parts: &[Said]) -> Usage {
    let tokens = |part: &Said| match part {
        Said::Text { text } => (estimate_tokens(text), 0),
        Said::Reasoning { text } => (0, estimate_tokens(text)),
        Said::Call { name, arguments, .. } => (estimate_tokens(name) + estimate_tokens(arguments), 0),
        Said::Cut { name, raw } => (estimate_tokens(name) + estimate_tokens(raw), 0),
        Said::Opaque { .. } => (0, 0),
    };
    let (said, thought) = parts.iter().map(tokens).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    Usage { input: ask.input(), output: said + thought, reasoning: thought, ..Usage::default() }
}
