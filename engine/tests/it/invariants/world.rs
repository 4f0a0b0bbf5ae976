//! A run whose every step is a random choice: what models answer, what persons say, when processes die.

use super::models::{chosen, thought};
use crate::story::{Story, check, frugal, gif_picture, pictures, replied, schema, started};
use engine::{Claiming, Harness, Next, OpenCall, Questions, decide};
use model::Message;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use trace::{
    Answer, Approve, CallId, Called, CheckResult, Delivered, Delivery, Digest, Fault, FaultClass, Finished, Folded, Grant,
    Limits, ModelSpec, Observed, Outcome, Part, Recovered, Replied, Said, Seq, Started, Status, Stop, Switched, Terms, Usage,
    Verdict, Verified, What,
};

/// Neighbouring calls of `read` are served side by side.
const NAMES: [&str; 6] = ["bash", "read", "read", "read", "submit", UNKNOWN[0]];
/// What is the name of no tool, and mostly of none that a provider takes.
const UNKNOWN: [&str; 4] =
    ["nothing", "bash.run now!", "", "a_name_that_is_longer_than_the_sixty_four_letters_that_any_provider_takes_at_most"];
const IDS: [&str; 3] = ["", "a", "b"];
const ARGUMENTS: [&str; 4] = ["{\"path\":\"x\\u0000\"}", "{\"command\":\"ls\"}", "{\"cut", WISH];
pub const WISH: &str = "{\"command\":\"ls\",\"network\":true,\"why\":\"to look\"}";

/// Random choices, one after another; zeros once they are used up.
pub struct Choices {
    bytes: Vec<u8>,
    at: usize,
}

impl Choices {
    pub fn below(&mut self, bound: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % bound
    }

    pub fn is_used_up(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

/// A run whose every step is a random choice.
pub struct World {
    pub story: Story,
    pub last_body: Option<String>,
    /// How many pictures words stand for because a request holds no more.
    pub crowded: usize,
    pub choices: Choices,
    /// The providers that requests were sent to.
    pub asked: BTreeSet<String>,
    /// How many requests were sent.
    pub sent: u64,
    /// What was answered to each question that was open.
    pub said: BTreeMap<CallId, Answer>,
    /// Whether the network was allowed for the run.
    pub for_the_run: bool,
    /// How many claims the checks judged in this turn of the user.
    pub judged: u32,
    /// What persons said.
    pub words: Vec<String>,
    /// All that the account tells which stands.
    pub account: String,
}

impl World {
    pub fn new(limits: Limits, bytes: Vec<u8>) -> World {
        let mut choices = Choices { bytes, at: 0 };
        let checks = (0..choices.below(2)).map(|_| check()).collect();
        let model = chosen(|bound| choices.below(bound));
        let fallback = (0..choices.below(3)).map(|_| chosen(|bound| choices.below(bound)));
        let mut ids = BTreeSet::from([model.id.clone()]);
        let fallback = fallback.filter(|other| ids.insert(other.id.clone())).collect();
        let approve = [Approve::Ask, Approve::Wait, Approve::Auto, Approve::Deny][choices.below(4)];
        let allow = Grant { network: choices.below(2) == 1, ..Grant::default() };
        let terms = Terms { approve, allow, read_only: false };
        let context = [None, Some(1_500), Some(2_500), Some(6_000)][choices.below(4)];
        let max_images = [model.max_images, Some(1), Some(2), Some(3)][choices.below(4)];
        let model = ModelSpec { context, max_images, ..model };
        let output_schema = (choices.below(2) == 1).then(schema);
        let harness = if choices.below(2) == 1 { frugal() } else { Harness::embedded().unwrap() };
        let story = Story::with(harness, Started { terms, model, fallback, output_schema, ..started(limits, checks) });
        let (said, words, account) = (BTreeMap::new(), Vec::new(), String::new());
        let asked = BTreeSet::new();
        World { story, asked, said, for_the_run: false, last_body: None, crowded: 0, choices, sent: 0, judged: 0, words, account }
    }

    pub fn note(&mut self, cause: Option<Seq>, what: What) -> Seq {
        self.story.note(cause, what)
    }

    /// The process dies, and a later session goes on, perhaps with another model.
    pub fn die(&mut self) {
        self.judged = 0;
        let text = "new session".to_owned();
        let (sees, crowds) = (self.choices.below(2) == 0, self.choices.below(2) == 1);
        let (other, changes) = (self.model(), self.choices.below(3) == 1);
        let images = if sees { other.images } else { Some(false) };
        let max_images = if crowds { Some(1) } else { other.max_images };
        let model = changes.then(|| Box::new(ModelSpec { images, max_images, ..other }));
        if model.is_some() {
            self.last_body = None;
        }
        self.note(
            None,
            What::Delivered(Delivered {
                name: String::new(),
                what: Delivery::Session { text, model, backend: None, terms: None, fallback: None },
            }),
        );
    }

    /// A model that is asked or could be.
    fn model(&mut self) -> ModelSpec {
        chosen(|bound| self.choices.below(bound))
    }

    pub fn message(&mut self) {
        self.judged = 0;
        let words = format!("and now number {}?", self.words.len());
        let mut parts = vec![Part::text(&words)];
        parts.extend(self.picture());
        let what = Delivery::Message { parts };
        self.words.push(words);
        self.note(None, What::Delivered(Delivered { name: String::new(), what }));
    }

    pub fn interrupt(&mut self) {
        self.note(None, What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt }));
    }

    /// Now and then, once in `seldom`, somebody says something, and as often somebody ends the turn.
    pub fn hear(&mut self, seldom: usize) {
        match self.choices.below(seldom) {
            1 => self.message(),
            2 => self.interrupt(),
            _ => {}
        }
    }

    /// The name of a tool.
    fn name(&mut self) -> String {
        let name = NAMES[self.choices.below(NAMES.len())];
        if name == UNKNOWN[0] { UNKNOWN[self.choices.below(UNKNOWN.len())].to_owned() } else { name.to_owned() }
    }

    pub fn parts(&mut self) -> Vec<Said> {
        let mut parts = Vec::new();
        if self.choices.below(3) == 0 {
            let texts = [("done", 1), ("<tool_call>", 1), ("thinking. ", 2), ("thinking. ", 300), ("\n", 2), ("a\0b", 1)];
            let (text, times) = texts[self.choices.below(texts.len())];
            parts.push(Said::Text { text: text.repeat(times) });
        }
        if self.choices.below(3) == 1 {
            parts.push(Said::Reasoning { text: "hm".into() });
            parts.push(thought(self.story.progress.model().unwrap()));
            if self.choices.below(3) == 1 {
                parts.push(Said::Text { text: "\n\n".into() });
                parts.push(thought(self.story.progress.model().unwrap()));
            }
        }
        for _ in 0..self.choices.below(4) {
            let (id, name) = (IDS[self.choices.below(3)].to_owned(), self.name());
            let arguments = ARGUMENTS[self.choices.below(4)].to_owned();
            // Now and then there are more than one message may hold.
            let times = if name == UNKNOWN[1] { 131 } else { 1 };
            parts.extend(std::iter::repeat_n(Said::Call { id, name, arguments }, times));
        }
        if self.choices.below(8) == 0 {
            parts.push(Said::Cut { name: "bash".into(), raw: "{\"comm".into() });
        }
        // No wire takes a reply for one that says nothing.
        let says = |part: &Said| match part {
            Said::Text { text } => !text.trim().is_empty(),
            Said::Call { .. } | Said::Cut { .. } => true,
            Said::Reasoning { .. } | Said::Opaque { .. } => false,
        };
        if !parts.iter().any(says) {
            parts.push(Said::Text { text: "done".into() });
        }
        parts
    }

    pub fn replied(&mut self, input: u64, max_output: u64) -> Replied {
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
        // Servers count fewer tokens than are estimated, some nearly none, and some those of something else; no budget holds
        // against these.
        let left = self.story.progress.ledger().left();
        let most = if left.tokens.is_some() || left.nano_usd.is_some() { 10 } else { 400 };
        let input = input * [10, 10, 5, 0, most][self.choices.below(5)] / 10;
        replied(parts, stop, Usage { input, output, ..Usage::default() })
    }

    pub fn call(&mut self, call: &OpenCall) -> (Seq, Called) {
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

    /// Now and then a picture, one of a kind that is not taken everywhere, or one whose bytes are lost.
    pub fn picture(&mut self) -> Option<Part> {
        pictures().into_iter().chain([gif_picture()]).nth(self.choices.below(10))
    }

    pub fn observe(&mut self, seq: Seq, call: &OpenCall, status: Status) {
        let words = "seen \"this\"\n".repeat([1, 1, 20, 200, 600][self.choices.below(5)]);
        let mut observed = Observed::words(call.id.clone(), status, words);
        observed.content.extend(self.picture());
        self.note(Some(seq), What::Observed(observed));
    }

    /// The history is folded: what stays is what stood there, but for an account and outputs that are shorter.
    pub fn fold(&mut self, folded: Folded) -> Result<(), TestCaseError> {
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
    pub fn answer(&mut self) {
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

    pub fn verify(&mut self, claiming: &Claiming) {
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
    pub fn garble(&mut self) {
        let id = CallId::new(Seq(self.choices.below(24) as u64), self.choices.below(3));
        let cause = [None, Some(Seq(self.choices.below(24) as u64))][self.choices.below(2)];
        let status = [Status::Ok, Status::Failed, Status::Unavailable][self.choices.below(3)];
        let what = match self.choices.below(16) {
            0 => return self.message(),
            13 => return self.answer(),
            1 => return self.die(),
            2 => return self.interrupt(),
            3 | 4 => {
                let replied = self.replied(100, 100);
                What::Replied(replied)
            }
            5 | 6 => {
                let raw = ARGUMENTS[self.choices.below(3)].to_owned();
                let (tool, arguments) = (self.name(), serde_json::from_str(&raw).ok());
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
                let model = self.model();
                self.last_body = None;
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
}
