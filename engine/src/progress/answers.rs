//! What the rest of the engine, and whoever watches a run, asks of the fold.

use super::{Claim, History, OpenCall, Output, Pairs, Progress};
use crate::approval::Rights;
use crate::fold::Account;
use crate::harness::Harness;
use crate::ledger::Ledger;
use model::{Message, Transcript};
use std::collections::{BTreeMap, BTreeSet};
use trace::{
    CallId, Check, Fault, FileSeen, Grant, ModelSpec, Outcome, Part, RunId, Seq, Started, Status, Terms, ToolSpec,
    UNKNOWN_WINDOW, Verdict,
};

impl Progress {
    /// The harness that the run started with.
    pub fn harness(&self) -> &Harness {
        &self.harness
    }

    /// What the run started from; absent before its first event.
    pub fn started(&self) -> Option<&Started> {
        self.started.as_deref()
    }

    /// The run's name; absent before its first event.
    pub fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// Whether the record lost what came after its last event, and the agent was not told yet: the workspace may be ahead.
    pub fn has_lost_its_end(&self) -> bool {
        self.lost_its_end
    }

    /// Whether a damaged line may have said that one of the open calls began.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// The instructions that every prompt begins with.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The model that is asked now.
    pub fn model(&self) -> Option<&ModelSpec> {
        self.model.as_ref()
    }

    /// The kind of walls of the last session.
    pub fn backend(&self) -> Option<&str> {
        self.backend.as_deref()
    }

    /// The tools as the agent sees them: fixed when it starts.
    pub fn tools(&self) -> &[ToolSpec] {
        self.started.as_ref().map_or(&[], |started| &started.tools)
    }

    /// Whether claims are judged at all.
    pub(crate) fn is_held_to_something(&self) -> bool {
        !self.checks().is_empty() || self.output_schema().is_some()
    }

    /// The schema that answers are to fit, if they are to fit one.
    pub fn output_schema(&self) -> Option<&serde_json::Value> {
        self.started.as_ref().and_then(|started| started.output_schema.as_ref())
    }

    /// What the call `id` of the last reply came to, once it has an observation.
    pub fn result(&self, id: &CallId) -> Option<(Status, &[Part])> {
        let result = self.conversation.calls().iter().find(|call| call.id == *id)?.result.as_ref();
        result.map(|(status, content)| (*status, content.as_slice()))
    }

    /// The conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.conversation.history().messages
    }

    /// What stands before the conversation in every request.
    pub(crate) fn head(&self) -> Option<&Transcript> {
        self.conversation.head()
    }

    /// The tokens that each message adds to a request.
    pub(crate) fn weights(&self) -> &[u64] {
        self.conversation.weights()
    }

    /// Adds `message` to a transcript, as the model is sent it.
    pub(crate) fn push(&self, transcript: &mut Transcript, message: &Message) {
        self.conversation.push(transcript, message);
    }

    /// The messages, and the rounds that they form.
    pub(crate) fn history(&self) -> &History {
        self.conversation.history()
    }

    /// What an account of the history tells.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// How often the history was folded.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Tokens of the next request, its reply aside, as far as they can be known.
    pub fn size(&self) -> u64 {
        self.size_of(self.estimate())
    }

    /// The same as it is estimated, whatever servers counted.
    pub fn estimate(&self) -> u64 {
        self.transcript().map_or(0, Transcript::tokens)
    }

    /// Tokens of a request that is estimated at `estimate`.
    pub(crate) fn size_of(&self, estimate: u64) -> u64 {
        self.size.of(estimate)
    }

    /// Tokens that a request and its reply may have: the model's window, or less, where less was refused.
    pub fn window(&self) -> u64 {
        let window = self.model.as_ref().map_or(UNKNOWN_WINDOW, ModelSpec::window);
        self.size.refused().map_or(window, |refused| refused.min(window))
    }

    /// How many requests in a row were refused because they were too long.
    pub(crate) fn refusals(&self) -> u32 {
        self.turn.refusals
    }

    /// Whether the agent, since the last fold but one in this turn of the user, did nothing that it had not done before.
    pub(crate) fn folds_in_vain(&self) -> bool {
        self.turn.in_vain > 0 && self.turn.went_on && self.turn.folded_at == Some(self.pairs.different())
    }

    /// The conversation up to its last final message, as the model is sent it.
    pub(crate) fn transcript(&self) -> Option<&Transcript> {
        self.conversation.transcript()
    }

    /// The calls of the last reply that have no observation yet, in order.
    pub fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.conversation.open_calls()
    }

    /// The budget.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What is granted now: at the start, and by answers for the run.
    pub fn grant(&self) -> &Grant {
        &self.rights.grant
    }

    /// The terms of the last session.
    pub fn terms(&self) -> &Terms {
        &self.rights.terms
    }

    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// The claim that stands, if one does.
    pub fn claim(&self) -> Option<&Claim> {
        self.turn.claim.as_ref()
    }

    /// Whether the claim that stands was judged for good: the turn ends with it.
    pub fn is_judged(&self) -> bool {
        match self.turn.claim.as_ref().and_then(|claim| claim.verdict.as_ref()) {
            Some(Verdict::Pass | Verdict::Unjudged { .. }) => true,
            Some(Verdict::Fail) => self.claims_left() == 0,
            None => false,
        }
    }

    /// How many more claims the checks judge.
    pub fn claims_left(&self) -> u32 {
        self.started.as_ref().map_or(0, |started| started.max_claims).saturating_sub(self.turn.claims)
    }

    /// The checks that judge a claim.
    pub fn checks(&self) -> &[Check] {
        self.started.as_ref().map_or(&[], |started| &started.task.checks)
    }

    /// The agent's last words to the person.
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// Whether the agent goes on writing its calls as text, though it was told that nothing is run so.
    pub fn talks_only(&self) -> bool {
        self.turn.talks_only
    }

    /// Whether the turn is to end because someone asked for it.
    pub fn is_interrupted(&self) -> bool {
        self.turn.interrupted
    }

    /// Why the last request has no usable answer.
    pub fn fault(&self) -> Option<&Fault> {
        self.turn.fault.as_ref().map(|(_, fault)| fault)
    }

    /// The reply that says so.
    pub(crate) fn fault_at(&self) -> Option<Seq> {
        self.turn.fault.as_ref().map(|(at, _)| *at)
    }

    /// Why the sandbox is gone.
    pub fn lost(&self) -> Option<&str> {
        self.turn.lost.as_deref()
    }

    /// How the turn of the user ended; absent while it goes on.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.turn.outcome.as_ref()
    }

    /// The inbox files that were taken in.
    pub fn delivered(&self) -> &BTreeSet<String> {
        &self.delivered
    }

    /// The directory that the last command left.
    pub fn cwd(&self) -> Option<&std::path::Path> {
        self.cwd.as_deref()
    }

    /// The variables and functions that the last command left.
    pub fn shell(&self) -> Option<&BTreeMap<String, Option<String>>> {
        self.shell.as_ref()
    }

    /// What the agent last saw of the file at `path`.
    pub fn seen(&self, path: &str) -> Option<&FileSeen> {
        self.seen.get(path)
    }

    /// Where the whole output of the call at `call` is kept, or of the account that the fold at `call` made.
    pub(crate) fn output(&self, call: Seq) -> Option<Output> {
        self.outputs.get(&call).copied()
    }

    /// All of the account that the fold at `fold` made, with the plan as it stands now; `None` where there is none.
    pub fn told(&self, fold: Seq) -> Option<String> {
        let Output::Account(first, end) = self.output(fold)? else { return None };
        Some(self.account.between(first, end, &self.plan, self.harness.notes()).whole())
    }

    /// Which calls came to what, and since when nothing new did.
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// What the agent is about to do, by its own list.
    pub fn plan(&self) -> &tools::Plan {
        &self.plan
    }

    /// How many answers came, usable or not, but for those that we broke off: the position of a recorded conversation.
    pub fn replies(&self) -> u64 {
        self.replies
    }

    /// The place of the next event.
    pub fn next_seq(&self) -> Seq {
        self.next
    }
}
