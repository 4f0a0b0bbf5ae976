//! One turn of the user: what begins anew with the next.

use trace::{CallId, Fault, Outcome, Seq, Verdict};

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
}
