//! One turn of the user: what begins anew with the next.

use trace::{CallId, Fault, FaultClass, Outcome, Seq, Stop, Verdict};

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
    /// Whether it was its form that did not fit.
    pub misfits: bool,
}

/// What belongs to one turn of the user and begins anew with the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    pub claim: Option<Claim>,
    /// How many claims the checks have judged.
    pub claims: u32,
    /// Whether the agent was told that it wrote a call as text and has made none since.
    pub nudged: bool,
    /// Whether it did so again all the same.
    pub talks_only: bool,
    pub interrupted: bool,
    /// Why the last request has no usable answer, and the reply that says so.
    pub fault: Option<(Seq, Fault)>,
    /// Why the sandbox is gone.
    pub lost: Option<String>,
    pub outcome: Option<Outcome>,
    /// How many requests in a row were refused because they were too long.
    pub refusals: u32,
    /// How many different pairs of call and result the run had seen when the history was folded last.
    pub folded_at: Option<usize>,
    /// Whether a usable reply came since.
    pub went_on: bool,
    /// How many folds in a row found no other pair than the fold before.
    pub in_vain: u32,
}

impl Turn {
    /// The history was folded when the run had seen so many different pairs.
    pub fn fold(&mut self, different: usize) {
        if self.folded_at != Some(different) {
            self.in_vain = 0;
        } else if self.went_on {
            self.in_vain += 1;
        }
        self.folded_at = Some(different);
        self.went_on = false;
    }

    /// Another window holds from here on: what did not help for the one before may help for this one.
    pub fn meet_window(&mut self) {
        self.refusals = 0;
        self.folded_at = None;
        self.in_vain = 0;
    }

    /// A request was answered.
    pub fn reply(&mut self, stop: &Stop) {
        match stop {
            Stop::Error(Fault { class: FaultClass::ContextFull, .. }) => self.refusals += 1,
            Stop::Error(_) => {}
            Stop::End | Stop::Calls | Stop::Length | Stop::Refused => {
                self.refusals = 0;
                self.went_on = true;
            }
        }
    }
}
