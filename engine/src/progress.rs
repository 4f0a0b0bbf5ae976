//! What a run's events add up to. The fold is all the state there is: whoever folds the same events decides the same.

mod answers;
mod calls;
mod conversation;
mod fallback;
mod history;
mod pairs;
mod pictures;
mod size;
mod turn;

use crate::approval::Rights;
use crate::fold::Account;
use crate::harness::{Harness, fill};
use crate::ledger::Ledger;
use crate::scan::is_call_as_text;
use crate::{claim, prompt};
pub use calls::OpenCall;
pub(crate) use calls::{MOST_SENT, sent_name};
use conversation::Conversation;
pub(crate) use history::{History, shortened};
use model::Transcript;
pub use pairs::{Pairs, Streak};
use pictures::Pictures;
use size::Size;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use trace::{
    Called, Contents, Delivered, Delivery, Digest, Event, Fault, FaultClass, FileSeen, Finished, Folded, Method, ModelSpec,
    Observed, Outcome, Part, Recovered, Replied, RunId, Said, Seq, Started, Status, Stop, Verdict, Verified, What,
};
pub use turn::Claim;
use turn::Turn;
use verify::json_in;

/// Where the whole output of a call is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// In a blob.
    Blob(Digest),
    /// In the event that tells the agent of it: this one, which may be a message of the person.
    Told(Seq),
    /// Nowhere: it is the account of what happened from the first of these events up to, and without, the second.
    Account(Seq, Seq),
}

/// What a run's events add up to.
#[derive(Clone, Debug)]
pub struct Progress {
    harness: Harness,
    started: Option<Box<Started>>,
    /// The run's name now: a run that goes on as a new one has another than it started with.
    run: Option<RunId>,
    /// Whether its record lost what came after the last event, and the agent was not told yet.
    lost_its_end: bool,
    /// Whether a line was damaged while calls were open: it may have said that one of them began.
    in_doubt: bool,
    system: String,
    model: Option<ModelSpec>,
    /// The models that are left to fall back on.
    fallback: Vec<ModelSpec>,
    backend: Option<String>,
    conversation: Conversation,
    size: Size,
    account: Account,
    /// How often the history was folded.
    epoch: u32,
    ledger: Ledger,
    rights: Rights,
    /// The agent's last words to the person since a message came.
    answer: Option<String>,
    turn: Turn,
    delivered: BTreeSet<String>,
    cwd: Option<PathBuf>,
    shell: Option<BTreeMap<String, Option<String>>>,
    seen: BTreeMap<String, FileSeen>,
    outputs: BTreeMap<Seq, Output>,
    pairs: Pairs,
    plan: tools::Plan,
    /// Whether the last command left processes behind.
    left_running: bool,
    replies: u64,
    next: Seq,
}

impl Progress {
    /// Nothing has happened yet. The harness gives the words that the fold puts into the prompt; `contents` are those of the
    /// run, for what events only name.
    pub fn new(harness: Harness, contents: Contents) -> Progress {
        let conversation = Conversation::new(Pictures::new(contents, harness.notes()));
        Progress {
            harness,
            started: None,
            run: None,
            lost_its_end: false,
            in_doubt: false,
            system: String::new(),
            model: None,
            fallback: Vec::new(),
            backend: None,
            conversation,
            size: Size::default(),
            account: Account::default(),
            epoch: 0,
            ledger: Ledger::default(),
            rights: Rights::default(),
            answer: None,
            turn: Turn::default(),
            delivered: BTreeSet::new(),
            cwd: None,
            shell: None,
            seen: BTreeMap::new(),
            outputs: BTreeMap::new(),
            pairs: Pairs::default(),
            plan: tools::Plan::default(),
            left_running: false,
            replies: 0,
            next: Seq(0),
        }
    }

    /// What `events` add up to.
    pub fn of<'a>(harness: Harness, contents: Contents, events: impl IntoIterator<Item = &'a Event>) -> Progress {
        let mut progress = Progress::new(harness, contents);
        events.into_iter().for_each(|event| progress.fold(event));
        progress
    }

    /// Takes in one more event.
    pub fn fold(&mut self, event: &Event) {
        self.next = event.seq.next();
        self.ledger.fold(event);
        self.rights.fold(event);
        if !self.is_surplus(event) {
            self.account.fold(event);
        }
        match &event.what {
            What::Started(started) => self.start(event.seq, started),
            What::Delivered(delivered) => self.deliver(event.seq, delivered),
            What::Asked(_) => self.ask(),
            What::Replied(replied) => self.reply(event.seq, replied),
            What::Switched(switched) => self.switch(switched),
            What::Called(called) => self.call(event.seq, called),
            What::Observed(observed) => self.observe(event.seq, event.cause, observed),
            What::Folded(folded) => self.fold_history(event.seq, folded),
            What::Verified(verified) => self.verify(verified),
            What::Finished(finished) => self.finish(finished),
            What::Recovered(recovered) => self.recover(recovered),
            What::ApprovalAsked(_) | What::Granted(_) | What::Unknown { .. } => {}
        }
        self.conversation.write();
        if self.conversation.thin() {
            self.begin_transcript();
            self.conversation.write();
        }
    }

    /// Whether it tells that a call begins which is not served, being one too many.
    fn is_surplus(&self, event: &Event) -> bool {
        let What::Called(called) = &event.what else { return false };
        self.conversation.calls().iter().any(|call| call.id == called.id && call.is_surplus)
    }

    fn recover(&mut self, recovered: &Recovered) {
        self.in_doubt = self.conversation.has_open_calls();
        if recovered.run.is_some() {
            self.run.clone_from(&recovered.run);
            self.lost_its_end = true;
        }
    }

    /// The history is another from here on, and what the agent saw before it may well look at again.
    fn fold_history(&mut self, seq: Seq, folded: &Folded) {
        let next_reply = |last: Seq| self.history().rounds.iter().map(|round| round.reply).find(|reply| *reply > last);
        let output = match &folded.method {
            Method::Shorten => None,
            Method::Ledger { whole: Some(whole), .. } => Some(Output::Blob(*whole)),
            Method::Ledger { first, last, .. } => Some(Output::Account(*first, next_reply(*last).unwrap_or(seq))),
        };
        if !self.conversation.fold(folded, self.harness.notes()) {
            return;
        }
        self.epoch = folded.epoch;
        self.turn.fault = None;
        self.turn.fold(self.pairs.different());
        self.pairs.begin();
        self.outputs.extend(output.map(|output| (seq, output)));
        self.begin_transcript();
    }

    fn start(&mut self, seq: Seq, started: &Started) {
        self.system = prompt::system(&self.harness, started);
        self.backend = Some(started.facts.backend.clone());
        self.hear(seq, &started.task.parts);
        self.cwd = Some(started.task.workspace.clone());
        self.rights.start(started);
        self.run = Some(started.run.clone());
        self.started = Some(Box::new(started.clone()));
        self.fallback.clone_from(&started.fallback);
        self.change_model(&started.model);
    }

    fn deliver(&mut self, seq: Seq, delivered: &Delivered) {
        if !delivered.name.is_empty() {
            self.delivered.insert(delivered.name.clone());
        }
        match &delivered.what {
            Delivery::Message { parts } => {
                self.reopen();
                self.answer = None;
                self.hear(seq, parts);
            }
            Delivery::Interrupt => self.turn.interrupted = true,
            // What is allowed by it is for the rights to say.
            Delivery::Approval { .. } => {}
            Delivery::Session { text, model, backend, fallback, terms: _ } => {
                // A run that is done has nothing to go on with until a message comes.
                if self.turn.outcome != Some(Outcome::Done) {
                    self.reopen();
                }
                self.left_running = false;
                self.lost_its_end = false;
                self.conversation.tell(&[Part::text(text)]);
                if let Some(fallback) = fallback {
                    self.fallback.clone_from(fallback);
                }
                if let Some(model) = model {
                    self.change_model(model);
                }
                if backend.is_some() {
                    self.backend.clone_from(backend);
                }
            }
        }
    }

    /// The person says this. What it names can be read again, once it stands in no prompt any more.
    fn hear(&mut self, seq: Seq, parts: &[Part]) {
        if trace::blobs_of(parts).next().is_some() {
            self.outputs.insert(seq, Output::Told(seq));
        }
        self.conversation.hear(seq, parts);
    }

    /// The turn of the user begins anew: what ended the last one no longer holds.
    fn reopen(&mut self) {
        // Who declined a reply would decline all that follows on it.
        if let Some((reply, Fault { class: FaultClass::Refused, .. })) = self.turn.fault
            && self.conversation.forget(reply)
        {
            self.begin_transcript();
        }
        self.turn = Turn::default();
        self.pairs.begin();
    }

    fn ask(&mut self) {
        self.size.ask(self.conversation.transcript().map_or(0, Transcript::tokens));
        self.conversation.ask();
        self.turn.claim = None;
        self.turn.fault = None;
    }

    fn reply(&mut self, seq: Seq, replied: &Replied) {
        self.replies += u64::from(!was_broken_off(&replied.stop));
        self.size.reply(replied);
        self.turn.reply(&replied.stop);
        let stop_is_refusal = match &replied.stop {
            Stop::Error(fault) => {
                if is_against_thoughts(fault) && self.conversation.drop_thoughts() {
                    self.begin_transcript();
                    return;
                }
                if is_against_content(fault) {
                    let goes_on = self.conversation.refuse();
                    self.begin_transcript();
                    if goes_on {
                        return;
                    }
                }
                self.turn.fault = Some((seq, fault.clone()));
                return;
            }
            Stop::Refused => true,
            Stop::End | Stop::Calls | Stop::Length => false,
        };
        self.give_up_calls();
        self.conversation.reply(seq, &replied.parts, self.harness.settings().max_calls.get());
        let unsent = self.conversation.unsent();
        if unsent > 0 {
            let note = fill(&self.harness.notes().unsent_calls, &[("calls", &unsent.to_string())]);
            self.conversation.tell(&[Part::text(note)]);
        }
        let text = said(&replied.parts);
        if !text.trim().is_empty() {
            self.answer = Some(text.clone());
        }
        if stop_is_refusal {
            let message = if text.trim().is_empty() { "the provider declines this content".to_owned() } else { text };
            self.turn.fault = Some((seq, Fault { class: FaultClass::Refused, status: None, request_id: None, message }));
        } else if let Some(note) = self.cut_note(replied) {
            self.conversation.tell(&[Part::text(note)]);
        } else if !self.conversation.calls().is_empty() {
            self.turn.nudged = false;
        } else if is_call_as_text(&text, self.tools().iter().map(|tool| tool.name.as_str())) {
            self.turn.talks_only = self.turn.nudged;
            self.turn.nudged = true;
            self.conversation.tell(&[Part::text(&self.harness.notes().text_call)]);
        } else {
            let answer = if self.output_schema().is_some() { json_in(&text).to_owned() } else { text };
            self.answer = Some(answer.clone()).filter(|answer| !answer.trim().is_empty()).or(self.answer.take());
            self.turn.claim = Some(Claim { at: seq, answer, by: None, verdict: None, misfits: false });
        }
    }

    /// What the agent is told where the length limit cut its reply.
    fn cut_note(&self, replied: &Replied) -> Option<String> {
        let notes = self.harness.notes();
        let cut = replied.parts.iter().find_map(|part| match part {
            Said::Cut { name, .. } => Some(fill(&notes.cut_call, &[("name", name)])),
            Said::Text { .. } | Said::Reasoning { .. } | Said::Opaque { .. } | Said::Call { .. } => None,
        });
        cut.or_else(|| (replied.stop == Stop::Length && self.conversation.calls().is_empty()).then(|| notes.cut_text.clone()))
    }

    fn call(&mut self, seq: Seq, called: &Called) {
        let Some(is_surplus) = self.conversation.call(seq, called).map(|call| call.is_surplus) else { return };
        // What follows a claim that was judged for good, in the same reply, is only closed.
        if !is_surplus
            && !self.is_judged()
            && let (Some(arguments), "submit") = (&called.arguments, called.tool.as_str())
        {
            let answer = match self.output_schema() {
                Some(_) => claim::submitted(&called.raw),
                None => arguments.get("answer").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned(),
            };
            self.answer = Some(answer.clone());
            self.turn.claim = Some(Claim { at: seq, answer, by: Some(called.id.clone()), verdict: None, misfits: false });
        }
    }

    fn observe(&mut self, seq: Seq, call: Option<Seq>, observed: &Observed) {
        let Some(closed) = self.conversation.observe(&observed.id, observed.status, &observed.content) else { return };
        // Each of many calls that are denied for being too many may well be sent again, and denied again.
        if !closed.is_surplus {
            self.pairs.add(closed, observed);
        }
        if observed.status == Status::Ok
            && let Some(plan) = tools::plan(&closed.tool, &closed.raw)
        {
            self.plan = plan;
        }
        self.in_doubt &= self.conversation.has_open_calls();
        if let Some(cwd) = &observed.cwd {
            self.cwd = Some(cwd.into());
        }
        if observed.shell.is_some() {
            self.shell.clone_from(&observed.shell);
        }
        for file in &observed.files {
            self.seen.insert(file.path.clone(), file.clone());
        }
        if observed.exit_code.is_some() || !observed.children.is_empty() {
            self.left_running = !observed.children.is_empty();
        }
        if let Some(call) = call {
            self.outputs.insert(call, observed.blob.map_or(Output::Told(seq), Output::Blob));
        }
        if observed.status == Status::Unavailable {
            self.turn.lost = Some(trace::text_of(&observed.content));
        }
        if let Some(claim) = self.turn.claim.as_mut().filter(|claim| claim.by.as_ref() == Some(&observed.id)) {
            match observed.status {
                // Without checks there is no verdict event: the observation of `submit` is the verdict.
                Status::Ok => claim.verdict = Some(Verdict::Pass),
                Status::Failed if claim.verdict.is_some() => {}
                Status::Failed | Status::Denied | Status::TimedOut | Status::Interrupted | Status::Unavailable => {
                    self.turn.claim = None
                }
            }
        }
        if !self.conversation.has_open_calls() {
            self.warn_of_circle();
        }
    }

    /// Calls that are still open when the next reply comes have an unknown outcome. No record of ours holds such a reply; but
    /// whatever a record holds, what is sent must be valid.
    fn give_up_calls(&mut self) {
        if self.conversation.has_open_calls() {
            self.conversation.give_up_calls(&self.harness.notes().interrupted);
            self.in_doubt = false;
            self.warn_of_circle();
        }
    }

    fn verify(&mut self, verified: &Verified) {
        self.turn.claims += 1;
        let (left, checks_are_none) = (self.claims_left(), self.checks().is_empty());
        let Some(claim) = &mut self.turn.claim else { return };
        claim.verdict = Some(verified.verdict.clone());
        claim.misfits = verified.misfit.is_some();
        // Without checks nothing was ended for them.
        let were_run = !checks_are_none && verified.misfit.is_none();
        let notes = self.harness.notes();
        // What a call of `submit` is told of a failure is its observation.
        let note = match verified.verdict {
            Verdict::Fail => claim.by.is_none().then(|| claim::failure(notes, verified, left)),
            Verdict::Pass | Verdict::Unjudged { .. } => (were_run && self.left_running).then(|| notes.ended.clone()),
        };
        self.left_running &= !were_run;
        if let Some(note) = note {
            self.conversation.tell(&[Part::text(note)]);
        }
    }

    fn finish(&mut self, finished: &Finished) {
        self.turn.outcome = Some(finished.outcome.clone());
    }
}

/// Whether we stopped the request ourselves.
fn was_broken_off(stop: &Stop) -> bool {
    matches!(stop, Stop::Error(Fault { class: FaultClass::Interrupted, .. }))
}

/// Whether a server refused a request for what it holds: it may be a picture that it cannot read.
fn is_against_content(fault: &Fault) -> bool {
    let is_of_status = matches!(fault.status, Some(400 | 415 | 422));
    fault.class == FaultClass::Rejected && (is_of_status || model::takes_none(&fault.message))
}

/// Whether a server refused a request for what the model itself had thought before: a key of another organisation cannot read
/// what is encrypted, and a gateway may have changed what is signed.
fn is_against_thoughts(fault: &Fault) -> bool {
    is_against_content(fault) && model::names_thoughts(&fault.message)
}

/// The words for the person among `parts`.
fn said(parts: &[Said]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Said::Text { text } => Some(text.as_str()),
        Said::Reasoning { .. } | Said::Opaque { .. } | Said::Call { .. } | Said::Cut { .. } => None,
    });
    words.collect()
}
