//! Whatever models answer and whenever processes die: requests extend one another, every call is answered exactly once,
//! and no request is sent whose reserve does not fit. The world below is made of random choices; the decision is real.

use crate::story::{Story, check, pictures, replied, schema, started};
use crate::strict;
use engine::{Act, Claiming, Next, OpenCall, Questions, Standing, decide, standing};
use model::{Message, Prompt, render};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use trace::{
    Answer, ApprovalAsked, Approve, CallId, Called, CheckResult, Delivered, Delivery, Digest, Fault, FaultClass, Finished,
    Folded, Grant, Limits, ModelSpec, NanoUsd, Observed, Outcome, Part, Recovered, Replied, Said, Seq, Started, Status, Stop,
    Switched, Terms, Usage, Verdict, Verified, What,
};

const NAMES: [&str; 4] = ["bash", "read", "submit", "nothing"];
const IDS: [&str; 3] = ["", "a", "b"];
const ARGUMENTS: [&str; 4] = ["{\"path\":\"x\"}", "{\"command\":\"ls\"}", "{\"cut", WISH];
const WISH: &str = "{\"command\":\"ls\",\"network\":true,\"why\":\"to look\"}";

/// Random choices, one after another; zeros once they are used up.
struct Choices {
    bytes: Vec<u8>,
    at: usize,
}

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % bound
    }

    fn is_used_up(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

/// The wires, as far as these invariants show on them.
#[derive(Clone, Copy)]
enum Wire {
    Chat,
    Responses,
    Messages,
    Gemini,
}

impl Wire {
    const ALL: [Wire; 4] = [Wire::Chat, Wire::Responses, Wire::Messages, Wire::Gemini];

    fn of(spec: &ModelSpec) -> Wire {
        Wire::ALL.into_iter().find(|wire| wire.model("").wire == spec.wire).unwrap()
    }

    fn model(self, name: &str) -> ModelSpec {
        let (wire, provider) = match self {
            Wire::Chat => ("openai-chat", "openai-compatible"),
            Wire::Responses => ("openai-responses", "openai"),
            Wire::Messages => ("anthropic-messages", "anthropic"),
            Wire::Gemini => ("gemini", "gemini"),
        };
        let id = format!("{provider}/{name}");
        ModelSpec { id, wire: wire.into(), provider: provider.into(), name: name.into(), ..crate::story::model() }
    }

    /// What only the wire itself understands.
    fn thought(self) -> Said {
        let (wire, json) = match self {
            Wire::Chat => ("openai-chat", json!({"reasoning_in": "reasoning"})),
            Wire::Responses => {
                let json = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"});
                ("openai-responses", json)
            }
            Wire::Messages => ("anthropic-messages", json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"})),
            Wire::Gemini => ("gemini", json!({"on": "call", "thoughtSignature": "c2ln"})),
        };
        Said::Opaque { wire: wire.to_owned(), json }
    }
}

/// A run whose every step is a random choice.
struct World {
    story: Story,
    wire: Wire,
    last_body: Option<String>,
    choices: Choices,
    /// How many requests were sent.
    sent: u64,
    /// What was answered to each question that was open.
    said: BTreeMap<CallId, Answer>,
    /// Whether the network was allowed for the run.
    for_the_run: bool,
    /// How many claims the checks judged in this turn of the user.
    judged: u32,
    /// What persons said.
    words: Vec<String>,
    /// All that the account tells which stands.
    account: String,
    folds: u32,
}

impl World {
    fn new(limits: Limits, bytes: Vec<u8>) -> World {
        let mut choices = Choices { bytes, at: 0 };
        let checks = (0..choices.below(2)).map(|_| check()).collect();
        let wire = Wire::ALL[choices.below(4)];
        let fallback = (0..choices.below(3)).map(|place| Wire::ALL[choices.below(4)].model(&format!("f{place}"))).collect();
        let approve = [Approve::Ask, Approve::Wait, Approve::Auto, Approve::Deny][choices.below(4)];
        let allow = Grant { network: choices.below(2) == 1, ..Grant::default() };
        let terms = Terms { approve, allow, read_only: false };
        let context = [None, Some(1_500), Some(2_500), Some(6_000)][choices.below(4)];
        let model = ModelSpec { context, ..wire.model("m") };
        let output_schema = (choices.below(2) == 1).then(schema);
        let story = Story::of(Started { terms, model, fallback, output_schema, ..started(limits, checks) });
        let (said, words, account, folds) = (BTreeMap::new(), Vec::new(), String::new(), 0);
        World { story, wire, said, for_the_run: false, last_body: None, choices, sent: 0, judged: 0, words, account, folds }
    }

    fn note(&mut self, cause: Option<Seq>, what: What) -> Seq {
        self.story.note(cause, what)
    }

    /// The process dies, and a later session goes on, perhaps with another model.
    fn die(&mut self) {
        self.judged = 0;
        let text = "new session".to_owned();
        let images = [None, Some(false)][self.choices.below(2)];
        let (other, changes) = (Wire::ALL[self.choices.below(4)], self.choices.below(3) == 1);
        let model = changes.then(|| Box::new(ModelSpec { images, ..other.model("gemini-2-another") }));
        if let Some(model) = &model {
            self.change(model);
        }
        self.note(
            None,
            What::Delivered(Delivered {
                name: String::new(),
                what: Delivery::Session { text, model, backend: None, terms: None, fallback: None },
            }),
        );
    }

    /// Another model is asked, which is sent everything anew in its own form.
    fn change(&mut self, model: &ModelSpec) {
        (self.wire, self.last_body) = (Wire::of(model), None);
    }

    fn message(&mut self) {
        self.judged = 0;
        let words = format!("and now number {}?", self.words.len());
        let mut parts = vec![Part::text(&words)];
        parts.extend(self.picture());
        let what = Delivery::Message { parts };
        self.words.push(words);
        self.note(None, What::Delivered(Delivered { name: String::new(), what }));
    }

    fn parts(&mut self) -> Vec<Said> {
        let mut parts = Vec::new();
        if self.choices.below(3) == 0 {
            let (text, times) = [("done", 1), ("<tool_call>", 1), ("thinking. ", 2), ("thinking. ", 300)][self.choices.below(4)];
            parts.push(Said::Text { text: text.repeat(times) });
        }
        if self.choices.below(3) == 1 {
            parts.push(Said::Reasoning { text: "hm".into() });
            parts.push(self.wire.thought());
        }
        for _ in 0..self.choices.below(4) {
            let (id, name) = (IDS[self.choices.below(3)].to_owned(), NAMES[self.choices.below(4)].to_owned());
            let arguments = ARGUMENTS[self.choices.below(4)].to_owned();
            parts.push(Said::Call { id, name, arguments });
        }
        if self.choices.below(8) == 0 {
            parts.push(Said::Cut { name: "bash".into(), raw: "{\"comm".into() });
        }
        if parts.is_empty() {
            parts.push(Said::Text { text: "done".into() });
        }
        parts
    }

    fn replied(&mut self, input: u64, max_output: u64) -> Replied {
        let (parts, stop) = match self.choices.below(12) {
            0 => {
                let classes = [FaultClass::Unavailable, FaultClass::ContextFull, FaultClass::Interrupted, FaultClass::Rejected];
                let class = classes[self.choices.below(4)];
                let status = (class == FaultClass::Rejected).then_some(400);
                if status.is_some() {
                    // Pictures may be told in words from here on, or no longer.
                    self.last_body = None;
                }
                (Vec::new(), Stop::Error(Fault { class, status, request_id: None, message: "trouble".into() }))
            }
            1 => (self.parts(), Stop::Length),
            2 => (self.parts(), Stop::Refused),
            _ => (self.parts(), Stop::End),
        };
        let output = self.choices.below(256) as u64 * max_output / 255;
        // Servers count fewer tokens than are estimated, and some nearly none.
        let input = input / [1, 1, 2, 100][self.choices.below(4)];
        replied(parts, stop, Usage { input, output, ..Usage::default() })
    }

    fn call(&mut self, call: &OpenCall) -> (Seq, Called) {
        let arguments = serde_json::from_str(&call.raw).ok();
        let called = Called {
            id: call.id.clone(),
            provider_id: call.provider_id.clone(),
            tool: call.tool.clone(),
            tool_digest: None,
            raw: call.raw.clone(),
            arguments,
            grant: None,
            approved_by: None,
        };
        (self.note(Some(call.reply), What::Called(called.clone())), called)
    }

    /// Now and then a picture, or one whose bytes are lost.
    fn picture(&mut self) -> Option<Part> {
        pictures().get(self.choices.below(8)).cloned()
    }

    fn observe(&mut self, seq: Seq, call: &OpenCall, status: Status) {
        let words = "seen \"this\"\n".repeat([1, 1, 20, 200, 600][self.choices.below(5)]);
        let mut observed = Observed::words(call.id.clone(), status, words);
        observed.content.extend(self.picture());
        self.note(Some(seq), What::Observed(observed));
    }

    /// The history is folded: what stays is what stood there, but for an account and outputs that are shorter.
    fn fold(&mut self, folded: Folded) -> Result<(), TestCaseError> {
        let kept = |messages: &[Message]| -> Vec<Message> {
            let replies = messages.iter().filter(|message| matches!(message, Message::Reply { .. }));
            replies.cloned().collect()
        };
        let (before, size) = (kept(self.story.progress.messages()), self.story.progress.size());
        let after = folded.after;
        prop_assert!(after < size, "{size} tokens are folded to {after}");
        let at = self.note(None, What::Folded(folded));
        if let Some(account) = self.story.progress.told(at) {
            self.account = account;
        }
        self.last_body = None;
        self.folds += 1;
        let progress = &self.story.progress;
        prop_assert_eq!(progress.size(), after, "the size is what was planned");
        let mut rest = before.iter();
        for reply in kept(progress.messages()) {
            prop_assert!(rest.any(|before| *before == reply), "a reply is not as it was, or not in its place");
        }
        prop_assert!(matches!(decide(progress), Next::Think(_) | Next::Finish(_)), "one fold is enough");
        let is_account =
            |message: &&Message| matches!(message, Message::User(parts) if model::text_of(parts).contains("folded away"));
        prop_assert!(progress.messages().iter().filter(is_account).count() <= 1, "one account tells all");
        Ok(())
    }

    /// Somebody answers a question, perhaps one that is not open.
    fn answer(&mut self) {
        let open = |story: &Story| {
            let mut questions = Questions::default();
            story.events.iter().for_each(|event| questions.fold(event));
            questions.open().map(|(seq, question)| (seq, question.asked.id.clone()))
        };
        let (open, answer) = (open(&self.story), [Answer::Once, Answer::Run, Answer::No][self.choices.below(3)]);
        let aside = Seq(self.choices.below(self.story.events.len()) as u64);
        let asked = match (&open, self.choices.below(4)) {
            (Some((seq, _)), 1..) => *seq,
            _ => aside,
        };
        if let Some((_, call)) = open.filter(|(seq, _)| *seq == asked) {
            self.said.insert(call, answer);
            self.for_the_run |= answer == Answer::Run;
        }
        let what = Delivery::Approval { asked, answer, by: "test".into() };
        self.note(None, What::Delivered(Delivered { name: String::new(), what }));
    }

    /// A call has no more rights than somebody gave it.
    fn judge_rights(&self, call: &OpenCall) -> Result<(), TestCaseError> {
        let progress = &self.story.progress;
        let by_terms = progress.terms().allow.network.then_some(Answer::Once);
        let said = self.said.get(&call.id).copied().or(self.for_the_run.then_some(Answer::Run)).or(by_terms);
        let may = matches!(said, Some(Answer::Once | Answer::Run));
        match standing(progress, call) {
            Standing::Held => prop_assert!(call.raw != WISH || call.same_as.is_some() || call.tool != "bash" || self.for_the_run),
            Standing::Allowed { wants, .. } => prop_assert!(may && wants.network, "allowed by nobody"),
            Standing::Denied(_) => prop_assert!(!may, "denied though it was allowed"),
            other => prop_assert!(false, "served while {other:?}"),
        }
        prop_assert_eq!(progress.grant().network, self.for_the_run, "an answer for one call widens no other");
        Ok(())
    }

    /// One step. Returns false once the run rests.
    fn step(&mut self) -> Result<bool, TestCaseError> {
        if self.choices.below(16) == 0 && !self.choices.is_used_up() {
            self.message();
        }
        match decide(&self.story.progress) {
            Next::Think(request) => {
                self.judge(&request)?;
                let left = self.story.progress.ledger().left();
                prop_assert!(left.tokens.is_none_or(|left| request.asked.reserved_tokens <= left), "tokens beyond the budget");
                let money = request.asked.reserved_nano_usd.unwrap_or_default();
                prop_assert!(left.nano_usd.is_none_or(|left| money <= left), "money beyond the budget");
                self.sent += 1;
                let (input, output) = (request.asked.reserved_tokens - request.asked.max_output, request.asked.max_output);
                let asked = self.note(None, What::Asked(request.asked));
                if self.choices.below(10) == 1 {
                    self.die();
                } else {
                    let replied = self.replied(input, output);
                    self.note(Some(asked), What::Replied(replied));
                }
            }
            Next::Switch { at, to } => {
                let left = self.story.progress.fallback().len();
                let window = self.story.progress.window();
                prop_assert!(at.is_some() || to.model.window() > window, "a full window is left for one that is no larger");
                self.change(&to.model);
                self.note(at, What::Switched(to));
                prop_assert_eq!(self.story.progress.fallback().len() + 1, left, "nobody is fallen back on twice");
            }
            Next::Fold(folded) => self.fold(*folded)?,
            Next::Act(Act::Serve(calls)) => {
                prop_assert!(self.story.progress.fault().is_none(), "a call of a declined reply is served");
                calls.iter().try_for_each(|call| self.judge_rights(call))?;
                let dies = if self.choices.below(6) == 1 { self.choices.below(2 * calls.len()) } else { usize::MAX };
                let mut begun = Vec::new();
                for (index, call) in calls.iter().enumerate() {
                    if index == dies {
                        self.die();
                        return Ok(true);
                    }
                    begun.push(self.call(call).0);
                }
                for (index, (seq, call)) in begun.into_iter().zip(&calls).enumerate() {
                    if index + calls.len() == dies {
                        self.die();
                        return Ok(true);
                    }
                    let status = [Status::Ok, Status::Failed, Status::TimedOut][self.choices.below(3)];
                    self.observe(seq, call, status);
                }
            }
            Next::Act(Act::Ask(call)) => {
                let wants = Grant { network: true, ..Grant::default() };
                if let Standing::Asks(wants) = engine::ruling(&self.story.progress, &wants) {
                    let (tool, raw, why) = (call.tool.clone(), call.raw.clone(), "to look".to_owned());
                    let asked = ApprovalAsked { id: call.id.clone(), tool, raw, wants, why };
                    self.note(Some(call.reply), What::ApprovalAsked(asked));
                } else {
                    let (seq, _) = self.call(&call);
                    self.observe(seq, &call, Status::Denied);
                }
            }
            Next::Act(Act::Settle(calls)) => {
                for call in &calls {
                    let seq = match call.called {
                        Some(seq) => seq,
                        None => self.call(call).0,
                    };
                    self.observe(seq, call, Status::Interrupted);
                }
            }
            Next::Verify(claiming) => self.verify(&claiming),
            Next::Finish(outcome) => {
                let ledger = self.story.progress.ledger();
                let finished = Finished {
                    run: "test".parse().unwrap(),
                    outcome,
                    answer: None,
                    usage: ledger.usage,
                    cost_nano_usd: ledger.cost(),
                    turns: ledger.turns,
                    active_ms: ledger.active_ms,
                };
                self.note(None, What::Finished(finished));
            }
            Next::Wait if self.choices.is_used_up() => return Ok(false),
            Next::Wait if self.story.progress.outcome().is_some() => self.message(),
            // Somebody is asked.
            Next::Wait => match self.choices.below(6) {
                0 => self.die(),
                1 => _ = self.note(None, What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt })),
                _ => self.answer(),
            },
        }
        Ok(true)
    }

    fn verify(&mut self, claiming: &Claiming) {
        let (cause, call) = match claiming {
            Claiming::Reply(claim) => (claim.at, None),
            Claiming::Submit(call) => {
                let (seq, called) = self.call(call);
                if called.arguments.is_none() {
                    return self.observe(seq, call, Status::Failed);
                }
                (seq, Some(call))
            }
        };
        let passed = self.choices.below(2) == 0;
        let is_held = self.story.progress.output_schema().is_some() || !self.story.progress.checks().is_empty();
        if is_held {
            let misfit = (!passed && self.choices.below(2) == 1).then(|| "the answer: it is not JSON".to_owned());
            let check =
                CheckResult { command: "true".into(), passed, exit_code: Some(1), timed_out: false, output: String::new() };
            let verdict = if passed { Verdict::Pass } else { Verdict::Fail };
            self.judged += 1;
            self.note(Some(cause), What::Verified(Verified { verdict, checks: vec![check], misfit, took_ms: 1 }));
        }
        if let Some(call) = call {
            let accepted = passed || !is_held;
            self.observe(cause, call, if accepted { Status::Ok } else { Status::Failed });
        }
    }

    /// Any event in any place: what a damaged record, a foreign one or a forged one may hold.
    fn garble(&mut self) {
        let id = CallId::new(Seq(self.choices.below(24) as u64), self.choices.below(3));
        let cause = [None, Some(Seq(self.choices.below(24) as u64))][self.choices.below(2)];
        let status = [Status::Ok, Status::Failed, Status::Unavailable][self.choices.below(3)];
        let what = match self.choices.below(16) {
            0 => return self.message(),
            13 => return self.answer(),
            1 => return self.die(),
            2 => What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt }),
            3 | 4 => {
                let replied = self.replied(100, 100);
                What::Replied(replied)
            }
            5 | 6 => {
                let raw = ARGUMENTS[self.choices.below(3)].to_owned();
                let (tool, arguments) = (NAMES[self.choices.below(4)].to_owned(), serde_json::from_str(&raw).ok());
                What::Called(Called { id, tool, raw, arguments, ..crate::story::called() })
            }
            7..=9 => What::Observed(Observed::words(id, status, "seen")),
            10 => What::Verified(Verified {
                verdict: [Verdict::Pass, Verdict::Fail][self.choices.below(2)].clone(),
                checks: Vec::new(),
                misfit: None,
                took_ms: 1,
            }),
            11 => {
                let run = [None, Some("anew".parse().unwrap())][self.choices.below(2)].clone();
                What::Recovered(Recovered { blob: Digest::of(b""), bytes: 1, reason: "torn".into(), run })
            }
            14 => {
                let model = Wire::ALL[self.choices.below(4)].model("garbled");
                self.change(&model);
                What::Switched(Switched { model: Box::new(model), why: "trouble".into() })
            }
            12 => What::Unknown { kind: "Dreamt".into(), ignorable: true },
            _ => What::Finished(Finished {
                run: "test".parse().unwrap(),
                outcome: [Outcome::Done, Outcome::Interrupted][self.choices.below(2)].clone(),
                answer: None,
                usage: Usage::default(),
                cost_nano_usd: None,
                turns: 0,
                active_ms: 0,
            }),
        };
        self.note(cause, what);
    }

    /// Invariants 4 and 5 on the bytes of a request.
    fn judge(&mut self, request: &engine::Request) -> Result<(), TestCaseError> {
        let messages = |body: &str| {
            let starts = ["\"messages\":[", "\"input\":[", "\"contents\":["];
            let ends = ["],\"max_tokens\":", "],\"max_output_tokens\":", "],\"generationConfig\":"];
            let start = starts.into_iter().find_map(|start| body.find(start)).unwrap();
            let end = ends.into_iter().find_map(|end| body.rfind(end)).unwrap();
            body[start..end].replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        let now = messages(&request.body);
        let progress = &self.story.progress;
        let (system, tools, all) = (progress.system(), progress.tools(), progress.messages());
        let prompt =
            Prompt { system, tools, messages: all, max_output: request.asked.max_output, schema: progress.output_schema() };
        let model = progress.model().unwrap();
        let anew = render(model, &prompt);
        match model.images {
            Some(false) => prop_assert!(!request.body.contains("iVBORw0KGgo"), "a picture for a model that sees none"),
            _ if request.body.contains("for the server refused it") => {}
            _ => prop_assert_eq!(&request.body, &anew, "what was extended is not what is rendered anew"),
        }
        if let Some(before) = &self.last_body {
            prop_assert!(now.starts_with(before), "not extended:\n{before}\n{now}");
        }
        self.last_body = Some(now);
        for words in &self.words {
            prop_assert!(request.body.contains(words) || self.account.contains(words), "{words} is lost");
        }
        let most = progress.model().unwrap().window();
        prop_assert!(progress.size() + request.asked.max_output <= most.max(1_500), "it does not fit");
        if let Err(broken) = strict::check(&progress.model().unwrap().wire, &request.body) {
            prop_assert!(false, "{broken}:\n{}", request.body);
        }
        Ok(())
    }

    /// Invariant 5 on the record: every call is begun once, and observed once, after it was begun.
    fn judge_record(&self) -> Result<(), TestCaseError> {
        let mut open = BTreeMap::new();
        let mut begun = std::collections::BTreeSet::new();
        for event in &self.story.events {
            match &event.what {
                What::Called(called) => {
                    prop_assert!(begun.insert(called.id.clone()), "{} was begun twice", called.id);
                    open.insert(called.id.clone(), event.seq);
                }
                What::Observed(observed) => {
                    prop_assert_eq!(open.remove(&observed.id), event.cause, "observed without being begun, or twice");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_history_keeps_the_invariants(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        tokens in prop::option::of(2_000u64..60_000),
        money in prop::option::of(20_000u64..600_000),
        turns in prop::option::of(1u64..30),
    ) {
        let limits = Limits { turns, tokens, nano_usd: money.map(NanoUsd), time_ms: None };
        let mut world = World::new(limits, bytes);
        let mut steps = 0;
        while world.step()? {
            steps += 1;
            prop_assert!(world.judged <= 2, "more claims are judged than are allowed");
            prop_assert!(steps < 5_000, "the run does not end");
        }
        world.judge_record()?;
        let ledger = world.story.progress.ledger();
        prop_assert!(turns.is_none_or(|most| ledger.turns <= most));
        prop_assert!(tokens.is_none_or(|most| ledger.spent_tokens() <= most), "{} tokens of {tokens:?}", ledger.spent_tokens());
        prop_assert!(money.is_none_or(|most| ledger.cost.0 <= most), "{} of {money:?}", ledger.cost);
        prop_assert_eq!(ledger.turns, world.sent);
    }

    /// Duplicate observations, orphans, replies between a call and its observation: the fold takes any order of any events,
    /// and whatever is sent from there on is valid.
    #[test]
    fn b3_repair_is_total_on_any_input(garbage in 1usize..60, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let limits = Limits { turns: Some(100), ..Limits::default() };
        let mut world = World::new(limits, bytes);
        (0..garbage).for_each(|_| world.garble());
        world.message();
        let mut steps = 0;
        while world.step()? {
            steps += 1;
            prop_assert!(steps < 5_000, "the run does not end");
        }
    }
}
