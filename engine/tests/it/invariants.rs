//! Whatever models answer and whenever processes die: requests extend one another, every call is answered exactly once,
//! and no request is sent whose reserve does not fit. The world below is made of random choices; the decision is real.

mod models;
mod world;

use crate::strict;
use engine::{Act, Claiming, Next, OpenCall, Standing, decide, standing};
use model::{Prompt, catalog, render};
pub use models::spec;
use models::{SIGNED, signature};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};
use trace::{
    Answer, ApprovalAsked, Delivered, Delivery, Event, Finished, Grant, Limits, Method, ModelSpec, NanoUsd, Outcome, Status, What,
};
use world::{WISH, World};

impl World {
    /// A call has no more rights than somebody gave it.
    fn judge_rights(&self, call: &OpenCall) -> Result<(), TestCaseError> {
        let progress = &self.story.progress;
        let by_terms = progress.terms().allow.network.then_some(Answer::Once);
        let said = self.said.get(&call.id).copied().or(self.for_the_run.then_some(Answer::Run)).or(by_terms);
        let may = matches!(said, Some(Answer::Once | Answer::Run));
        match standing(progress, call) {
            Standing::Denied(_) if call.is_surplus => {}
            other if call.is_surplus => prop_assert!(false, "one too many is {other:?}"),
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
        self.hear(16);
        match decide(&self.story.progress) {
            Next::Think(request) => {
                prop_assert!(!self.story.progress.is_interrupted(), "the turn goes on, though it was to end");
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
                self.last_body = None;
                self.note(at, What::Switched(to));
                prop_assert_eq!(self.story.progress.fallback().len() + 1, left, "nobody is fallen back on twice");
                self.hear(8);
            }
            Next::Fold(folded) => {
                self.fold(*folded)?;
                self.hear(8);
            }
            Next::Act(Act::Serve(calls)) => {
                prop_assert!(!self.story.progress.is_interrupted(), "a call is served, though the turn was to end");
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
                    self.hear(8);
                    let is_dropped = self.story.progress.is_interrupted() && self.choices.below(2) == 1;
                    if !is_dropped {
                        let status = [Status::Ok, Status::Failed, Status::TimedOut][self.choices.below(3)];
                        self.observe(seq, call, if call.is_surplus { Status::Denied } else { status });
                    }
                }
                self.hear(8);
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
            Next::Verify(claiming) => {
                let is_surplus = matches!(&claiming, Claiming::Submit(call) if call.is_surplus);
                prop_assert!(!is_surplus, "a claim that is one call too many is judged");
                self.verify(&claiming);
            }
            Next::Finish(outcome) => {
                let is_interrupted = self.story.progress.is_interrupted();
                prop_assert!(!is_interrupted || outcome == Outcome::Interrupted, "the turn was to end, and not so: {outcome:?}");
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
                1 => self.interrupt(),
                _ => self.answer(),
            },
        }
        Ok(true)
    }

    /// Invariants 4 and 5 on the bytes of a request.
    fn judge(&mut self, request: &engine::Request) -> Result<(), TestCaseError> {
        let messages = |body: &str| {
            let starts = ["\"messages\":[", "\"input\":[", "\"contents\":["];
            let ends =
                ["],\"max_tokens\":", "],\"max_completion_tokens\":", "],\"max_output_tokens\":", "],\"generationConfig\":"];
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
            _ if ["for the server refused it", "you are sent no such"].iter().any(|words| request.body.contains(words)) => {}
            _ => prop_assert_eq!(&request.body, &anew, "what was extended is not what is rendered anew"),
        }
        let most = model.max_images.unwrap_or(u64::MAX);
        prop_assert!(request.body.matches("iVBORw0KGgo").count() as u64 <= most, "more pictures than {most}");
        let crowded = request.body.matches("no longer shown, for a request holds").count();
        if crowded > std::mem::replace(&mut self.crowded, crowded) {
            self.last_body = None;
        }
        if let Some(before) = &self.last_body {
            prop_assert!(now.starts_with(before), "not extended:\n{before}\n{now}");
        }
        self.last_body = Some(now);
        for words in &self.words {
            prop_assert!(request.body.contains(words) || self.account.contains(words), "{words} is lost");
        }
        let most = progress.model().unwrap().window().max(1_500);
        let fits = [progress.size(), progress.estimate()].into_iter().any(|size| size + request.asked.max_output <= most);
        prop_assert!(fits, "it does not fit");
        let (signed, own) = (request.body.match_indices(SIGNED), signature(model));
        for (at, _) in signed {
            prop_assert!(request.body[at..].starts_with(&own), "what another model signed is sent to {}", model.id);
        }
        let ModelSpec { wire, provider, name, .. } = model;
        let asked = strict::Asked { wire, provider, model: Some(name), body: &request.body };
        if let Err(broken) = strict::check(asked) {
            prop_assert!(false, "{}: {broken}:\n{}", model.id, request.body);
        }
        self.asked.insert(provider.clone());
        Ok(())
    }

    /// Invariant 5 on the record: every call is begun once, and observed once, after it was begun. Of a reply no more calls
    /// come to anything than are served.
    fn judge_record(&self) -> Result<(), TestCaseError> {
        let most = self.story.progress.harness().settings().max_calls.get();
        let mut served = BTreeMap::new();
        let mut open = BTreeMap::new();
        let mut begun = BTreeSet::new();
        for event in &self.story.events {
            match &event.what {
                What::Called(called) => {
                    prop_assert!(begun.insert(called.id.clone()), "{} was begun twice", called.id);
                    open.insert(called.id.clone(), event.seq);
                }
                What::Observed(observed) => {
                    if matches!(observed.status, Status::Ok | Status::Failed | Status::TimedOut) {
                        let (reply, _) = observed.id.as_str().rsplit_once('_').unwrap();
                        let of_the_reply = served.entry(reply).or_insert(0);
                        *of_the_reply += 1;
                        prop_assert!(*of_the_reply <= most, "more than {most} calls of a reply are served");
                    }
                    prop_assert_eq!(open.remove(&observed.id), event.cause, "observed without being begun, or twice");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

const SIDE_BY_SIDE: &str = "calls side by side";
const TOO_MANY: &str = "a call too many";
const INTERRUPT: &str = "an interrupt";
const SHORTENED: &str = "outputs shortened";
const ACCOUNT: &str = "rounds folded into an account";
const SWITCH: &str = "a switch";
const ALL: &str = "all of these in one";

/// Which of the things that are hard together a record holds.
fn held(events: &[Event]) -> BTreeSet<&'static str> {
    let mut held = BTreeSet::new();
    // How many calls were begun together, how many of them are not observed yet, and what happened last.
    let (mut batch, mut open, mut last) = (0, 0, None::<&What>);
    for event in events {
        match &event.what {
            What::Called(_) => {
                batch = if open == 0 { 1 } else { batch + 1 };
                open += 1;
                held.extend((batch > 1).then_some(SIDE_BY_SIDE));
            }
            What::Observed(observed) => {
                open -= 1;
                held.extend((observed.status == Status::Denied && observed.id.as_str().ends_with("_2")).then_some(TOO_MANY));
            }
            What::Folded(folded) => _ = held.insert(if folded.method == Method::Shorten { SHORTENED } else { ACCOUNT }),
            What::Switched(_) => _ = held.insert(SWITCH),
            What::Delivered(Delivered { what: Delivery::Interrupt, .. }) => {
                held.insert(INTERRUPT);
                held.extend(match last {
                    _ if batch > 1 && open == batch => Some("one before any call is observed"),
                    _ if batch > 1 && open > 0 => Some("one between observations"),
                    Some(What::Observed(_)) if batch > 1 => Some("one after the last observation"),
                    Some(What::Replied(_)) => Some("one after a reply"),
                    Some(What::Folded(_)) => Some("one after a fold"),
                    Some(What::Switched(_)) => Some("one after a switch"),
                    _ => None,
                });
            }
            _ => {}
        }
        last = Some(&event.what);
    }
    held
}

/// What a history is made of: random choices, and the limits of the run.
fn histories() -> impl Strategy<Value = (Vec<u8>, Limits)> {
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    let money = prop::option::of((20_000u64..600_000).prop_map(NanoUsd));
    let limits = (prop::option::of(1u64..30), prop::option::of(2_000u64..60_000), money)
        .prop_map(|(turns, tokens, nano_usd)| Limits { turns, tokens, nano_usd, time_ms: None });
    (bytes, limits)
}

/// Plays a history to its end, and judges each step of it.
fn played(bytes: Vec<u8>, limits: Limits) -> Result<World, TestCaseError> {
    let mut world = World::new(limits, bytes);
    let mut steps = 0;
    while world.step()? {
        steps += 1;
        prop_assert!(world.judged <= 2, "more claims are judged than are allowed");
        prop_assert!(steps < 5_000, "the run does not end");
    }
    world.judge_record()?;
    let (ledger, spent) = (world.story.progress.ledger(), world.story.progress.ledger().spent_tokens());
    prop_assert!(limits.turns.is_none_or(|most| ledger.turns <= most));
    prop_assert!(limits.tokens.is_none_or(|most| spent <= most), "{spent} tokens of {:?}", limits.tokens);
    prop_assert!(limits.nano_usd.is_none_or(|most| ledger.cost <= most), "{} of {:?}", ledger.cost, limits.nano_usd);
    prop_assert_eq!(ledger.turns, world.sent);
    Ok(world)
}

/// A change of the choices must not empty the histories that are judged.
#[test]
fn the_histories_hold_what_they_are_made_for() {
    let mut runner = TestRunner::deterministic();
    let mut counts = BTreeMap::new();
    let mut providers: BTreeMap<_, usize> = catalog::providers().iter().map(|row| (row.name.to_owned(), 0)).collect();
    for _ in 0..200 {
        let (bytes, limits) = histories().new_tree(&mut runner).unwrap().current();
        let world = played(bytes, limits).unwrap();
        world.asked.into_iter().for_each(|provider| *providers.entry(provider).or_default() += 1);
        let held = held(&world.story.events);
        let all = [SIDE_BY_SIDE, INTERRUPT, SHORTENED, ACCOUNT, SWITCH].iter().all(|what| held.contains(what));
        held.into_iter().chain(all.then_some(ALL)).for_each(|what| *counts.entry(what).or_insert(0) += 1);
    }
    // About half of what was counted when this was written.
    for (what, least) in [
        (SIDE_BY_SIDE, 40),
        (TOO_MANY, 15),
        (INTERRUPT, 75),
        ("one after a reply", 25),
        ("one before any call is observed", 4),
        ("one between observations", 4),
        ("one after the last observation", 4),
        ("one after a fold", 12),
        ("one after a switch", 5),
        (SHORTENED, 35),
        (ACCOUNT, 40),
        (SWITCH, 45),
        (ALL, 5),
    ] {
        assert!(counts.get(what).is_some_and(|count| *count >= least), "{what}: {least} of 200 at least, {counts:#?}");
    }
    assert!(providers.values().all(|count| *count >= 5), "five of 200 at least: {providers:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_history_keeps_the_invariants((bytes, limits) in histories()) {
        played(bytes, limits)?;
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
