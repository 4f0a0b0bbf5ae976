//! What a run's events add up to. The fold is all the state there is: whoever folds the same events decides the same.

mod answers;
mod pairs;

use crate::approval::Rights;
use crate::harness::{Harness, fill};
use crate::ledger::Ledger;
use crate::scan::is_call_as_text;
use crate::{claim, prompt};
use model::{Message, SentCall, Transcript};
pub use pairs::{Pairs, Streak};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use trace::{
    CallId, Called, Delivered, Delivery, Digest, Event, Fault, FaultClass, FileSeen, Finished, ModelSpec, Observed, Outcome,
    Part, Recovered, Replied, RunId, Said, Seq, Started, Status, Stop, Verdict, Verified, What,
};

/// A whole call of the last reply.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// Our name of it.
    pub id: CallId,
    /// The reply that makes it.
    pub reply: Seq,
    /// The provider's id.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub raw: String,
    /// An earlier call of the same reply with the same provider's id and bytes, whose answer this one repeats.
    pub same_as: Option<CallId>,
    /// Where it was written down that it is about to be served.
    pub called: Option<Seq>,
    /// What came of it, once its observation is written.
    pub result: Option<(Status, Vec<Part>)>,
}

/// The agent's word that it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The event that makes it: a reply, or a call of `submit`.
    pub at: Seq,
    /// Its words.
    pub answer: String,
    /// The call that makes it, if it is one.
    pub by: Option<CallId>,
    /// What the checks said, once they did.
    pub verdict: Option<Verdict>,
}

/// What belongs to one turn of the user and begins anew with the next.
#[derive(Clone, Debug, Default)]
struct Turn {
    claim: Option<Claim>,
    /// How many claims the checks have judged.
    claims: u32,
    /// Whether the agent was told that it wrote a call as text and has made none since.
    nudged: bool,
    /// Whether it did so again all the same.
    talks_only: bool,
    interrupted: bool,
    fault: Option<Fault>,
    /// Why the sandbox is gone.
    lost: Option<String>,
    outcome: Option<Outcome>,
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
    backend: Option<String>,
    messages: Vec<Message>,
    /// The final ones among `messages`, as the model is sent them.
    transcript: Option<Transcript>,
    /// How many of `messages` stand in `transcript`.
    written: usize,
    /// Messages that came while calls were open; they stand after the observations.
    held: Vec<Message>,
    calls: Vec<OpenCall>,
    /// The reply that `calls` belong to, and its place in `messages`.
    reply_at: usize,
    ledger: Ledger,
    rights: Rights,
    /// The agent's last words to the person since a message came.
    answer: Option<String>,
    turn: Turn,
    delivered: BTreeSet<String>,
    cwd: Option<PathBuf>,
    shell: Option<BTreeMap<String, Option<String>>>,
    seen: BTreeMap<String, FileSeen>,
    outputs: BTreeMap<Seq, Digest>,
    pairs: Pairs,
    /// Whether the last command left processes behind.
    left_running: bool,
    replies: u64,
    next: Seq,
}

impl Progress {
    /// Nothing has happened yet. The harness gives the words that the fold puts into the prompt.
    pub fn new(harness: Harness) -> Progress {
        Progress {
            harness,
            started: None,
            run: None,
            lost_its_end: false,
            in_doubt: false,
            system: String::new(),
            model: None,
            backend: None,
            messages: Vec::new(),
            transcript: None,
            written: 0,
            held: Vec::new(),
            calls: Vec::new(),
            reply_at: 0,
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
            left_running: false,
            replies: 0,
            next: Seq(0),
        }
    }

    /// What `events` add up to.
    pub fn of<'a>(harness: Harness, events: impl IntoIterator<Item = &'a Event>) -> Progress {
        let mut progress = Progress::new(harness);
        events.into_iter().for_each(|event| progress.fold(event));
        progress
    }

    /// Takes in one more event.
    pub fn fold(&mut self, event: &Event) {
        self.next = event.seq.next();
        self.ledger.fold(event);
        self.rights.fold(event);
        match &event.what {
            What::Started(started) => self.start(started),
            What::Delivered(delivered) => self.deliver(delivered),
            What::Asked(_) => self.ask(),
            What::Replied(replied) => self.reply(event.seq, replied),
            What::Called(called) => self.call(event.seq, called),
            What::Observed(observed) => self.observe(event.cause, observed),
            What::Verified(verified) => self.verify(verified),
            What::Finished(finished) => self.finish(finished),
            What::Recovered(recovered) => self.recover(recovered),
            What::ApprovalAsked(_) | What::Granted(_) | What::Unknown { .. } => {}
        }
        self.write();
    }

    fn recover(&mut self, recovered: &Recovered) {
        let calls_are_open = self.open_calls().next().is_some();
        self.in_doubt = calls_are_open;
        if recovered.run.is_some() {
            self.run.clone_from(&recovered.run);
            self.lost_its_end = true;
        }
    }

    /// Extends the transcript by what is final: a reply is so once its calls are closed.
    fn write(&mut self) {
        if self.open_calls().next().is_some() {
            return;
        }
        let Some(transcript) = &mut self.transcript else { return };
        self.messages[self.written..].iter().for_each(|message| transcript.push(message));
        self.written = self.messages.len();
    }

    /// Another model is asked from here on: it is sent all of the conversation in its own form.
    fn change_model(&mut self, model: &ModelSpec) {
        self.transcript = Some(Transcript::new(model, &self.system, self.tools()));
        self.written = 0;
        self.model = Some(model.clone());
    }

    fn start(&mut self, started: &Started) {
        self.system = prompt::system(&self.harness, started);
        self.backend = Some(started.facts.backend.clone());
        self.messages.push(Message::User(started.task.parts.clone()));
        self.cwd = Some(started.task.workspace.clone());
        self.rights.start(started);
        self.run = Some(started.run.clone());
        self.started = Some(Box::new(started.clone()));
        self.change_model(&started.model);
    }

    fn deliver(&mut self, delivered: &Delivered) {
        if !delivered.name.is_empty() {
            self.delivered.insert(delivered.name.clone());
        }
        match &delivered.what {
            Delivery::Message { parts } => {
                self.reopen();
                self.answer = None;
                self.tell(Message::User(parts.clone()));
            }
            Delivery::Interrupt => self.turn.interrupted = true,
            // What is allowed by it is for the rights to say.
            Delivery::Approval { .. } => {}
            Delivery::Session { text, model, backend, .. } => {
                // A run that is done has nothing to go on with until a message comes.
                if self.turn.outcome != Some(Outcome::Done) {
                    self.reopen();
                }
                self.left_running = false;
                self.lost_its_end = false;
                self.tell(Message::User(vec![Part::text(text)]));
                if let Some(model) = model {
                    self.change_model(model);
                }
                if backend.is_some() {
                    self.backend.clone_from(backend);
                }
            }
        }
    }

    /// The turn of the user begins anew: what ended the last one no longer holds.
    fn reopen(&mut self) {
        self.turn = Turn::default();
        self.pairs.begin();
    }

    /// Puts `message` at the tail of the prompt, behind the observations of calls that are still open.
    fn tell(&mut self, message: Message) {
        let calls_are_open = self.open_calls().next().is_some();
        if calls_are_open { self.held.push(message) } else { self.messages.push(message) }
    }

    fn ask(&mut self) {
        self.turn.claim = None;
        self.turn.fault = None;
    }

    fn reply(&mut self, seq: Seq, replied: &Replied) {
        self.replies += u64::from(!was_broken_off(&replied.stop));
        let stop_is_refusal = match &replied.stop {
            Stop::Error(fault) => {
                self.turn.fault = Some(fault.clone());
                return;
            }
            Stop::Refused => true,
            Stop::End | Stop::Calls | Stop::Length => false,
        };
        self.give_up_calls();
        self.calls = calls_of(seq, &replied.parts);
        self.reply_at = self.messages.len();
        let sent = |call: &OpenCall| SentCall { id: call.id.clone(), name: call.tool.clone(), arguments: call.raw.clone() };
        self.messages.push(Message::Reply { parts: replied.parts.clone(), calls: self.calls.iter().map(sent).collect() });
        let text = said(&replied.parts);
        if !text.trim().is_empty() {
            self.answer = Some(text.clone());
        }
        if stop_is_refusal {
            let message = if text.is_empty() { "the provider declines this content".to_owned() } else { text };
            self.turn.fault = Some(Fault { class: FaultClass::Refused, status: None, request_id: None, message });
        } else if let Some(note) = self.cut_note(replied) {
            self.tell(Message::User(vec![Part::text(note)]));
        } else if !self.calls.is_empty() {
            self.turn.nudged = false;
        } else if is_call_as_text(&text, self.tools().iter().map(|tool| tool.name.as_str())) {
            self.turn.talks_only = self.turn.nudged;
            self.turn.nudged = true;
            self.messages.push(Message::User(vec![Part::text(&self.harness.notes().text_call)]));
        } else {
            self.turn.claim = Some(Claim { at: seq, answer: text, by: None, verdict: None });
        }
    }

    /// What the agent is told where the length limit cut its reply.
    fn cut_note(&self, replied: &Replied) -> Option<String> {
        let notes = self.harness.notes();
        let cut = replied.parts.iter().find_map(|part| match part {
            Said::Cut { name, .. } => Some(fill(&notes.cut_call, &[("name", name)])),
            Said::Text { .. } | Said::Reasoning { .. } | Said::Opaque { .. } | Said::Call { .. } => None,
        });
        cut.or_else(|| (replied.stop == Stop::Length && self.calls.is_empty()).then(|| notes.cut_text.clone()))
    }

    fn call(&mut self, seq: Seq, called: &Called) {
        let is_new = |call: &OpenCall| call.id == called.id && call.called.is_none() && call.result.is_none();
        let Some(index) = self.calls.iter().position(is_new) else { return };
        self.calls[index].called = Some(seq);
        // Later requests carry `{}` for arguments that were not usable, so that no server chokes on them.
        if called.arguments.is_none()
            && let Some(Message::Reply { calls, .. }) = self.messages.get_mut(self.reply_at)
        {
            calls[index].arguments = "{}".to_owned();
        }
        // What follows a claim that was judged for good, in the same reply, is only closed.
        if !self.is_judged()
            && let (Some(arguments), "submit") = (&called.arguments, called.tool.as_str())
        {
            let answer = arguments.get("answer").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            self.answer = Some(answer.clone());
            self.turn.claim = Some(Claim { at: seq, answer, by: Some(called.id.clone()), verdict: None });
        }
    }

    fn observe(&mut self, call: Option<Seq>, observed: &Observed) {
        let Some(open) = self.calls.iter_mut().find(|call| call.id == observed.id && call.result.is_none()) else { return };
        open.result = Some((observed.status, observed.content.clone()));
        self.pairs.add(open, observed);
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
        if let (Some(call), Some(blob)) = (call, observed.blob) {
            self.outputs.insert(call, blob);
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
        if self.open_calls().next().is_none() {
            self.close_calls();
        }
    }

    /// Calls that are still open when the next reply comes have an unknown outcome. No record of ours holds such a reply; but
    /// whatever a record holds, what is sent must be valid.
    fn give_up_calls(&mut self) {
        if self.open_calls().next().is_none() {
            return;
        }
        let note = Part::text(&self.harness.notes().interrupted);
        for call in self.calls.iter_mut().filter(|call| call.result.is_none()) {
            call.result = Some((Status::Interrupted, vec![note.clone()]));
        }
        self.close_calls();
    }

    /// The results enter the prompt together and in call order, for `submit` is served last wherever it stands.
    fn close_calls(&mut self) {
        self.in_doubt = false;
        if let Some(Message::Reply { calls, .. }) = self.messages.get_mut(self.reply_at) {
            // Whatever the record says of them: no server takes arguments that are no object.
            calls.iter_mut().filter(|call| !is_object(&call.arguments)).for_each(|call| call.arguments = "{}".to_owned());
        }
        let result = |call: &OpenCall| {
            let (status, content) = call.result.clone()?;
            Some(Message::Result { id: call.id.clone(), status, content })
        };
        self.messages.extend(self.calls.iter().filter_map(result));
        self.messages.append(&mut self.held);
        self.warn_of_circle();
    }

    fn verify(&mut self, verified: &Verified) {
        self.turn.claims += 1;
        let left = self.claims_left();
        let Some(claim) = &mut self.turn.claim else { return };
        claim.verdict = Some(verified.verdict.clone());
        let notes = self.harness.notes();
        // What a call of `submit` is told of a failure is its observation.
        let note = match verified.verdict {
            Verdict::Fail => claim.by.is_none().then(|| claim::failure(notes, verified, left)),
            Verdict::Pass | Verdict::Unjudged { .. } => self.left_running.then(|| notes.ended.clone()),
        };
        self.left_running = false;
        if let Some(note) = note {
            self.tell(Message::User(vec![Part::text(note)]));
        }
    }

    fn finish(&mut self, finished: &Finished) {
        self.turn.outcome = Some(finished.outcome.clone());
    }
}

fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok()
}

/// Whether we stopped the request ourselves.
fn was_broken_off(stop: &Stop) -> bool {
    matches!(stop, Stop::Error(Fault { class: FaultClass::Interrupted, .. }))
}

/// The whole calls among `parts`, under our own ids.
fn calls_of(reply: Seq, parts: &[Said]) -> Vec<OpenCall> {
    let mut calls: Vec<OpenCall> = Vec::new();
    for part in parts {
        let Said::Call { id, name, arguments } = part else { continue };
        let twin =
            calls.iter().find(|call| !id.is_empty() && call.provider_id == *id && call.tool == *name && call.raw == *arguments);
        let same_as = twin.map(|twin| twin.same_as.clone().unwrap_or_else(|| twin.id.clone()));
        calls.push(OpenCall {
            id: CallId::new(reply, calls.len()),
            reply,
            provider_id: id.clone(),
            tool: name.clone(),
            raw: arguments.clone(),
            same_as,
            called: None,
            result: None,
        });
    }
    calls
}

/// The words for the person among `parts`.
fn said(parts: &[Said]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Said::Text { text } => Some(text.as_str()),
        Said::Reasoning { .. } | Said::Opaque { .. } | Said::Call { .. } | Said::Cut { .. } => None,
    });
    words.collect()
}
