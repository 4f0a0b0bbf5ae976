//! The decision: what comes next, from what has happened and from nothing else.

use crate::approval::{self, Standing};
use crate::fold::{Fit, fit};
use crate::progress::{Claim, OpenCall, Progress, Streak};
use crate::prompt::{Refusal, Request};
use trace::{Exhausted, Fault, FaultClass, Folded, Outcome, Seq, Switched, Unavailable, Verdict};

/// What comes next in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Ask the model.
    Think(Box<Request>),
    /// Ask another model from here on.
    Switch {
        /// The reply that had no usable answer; `None` where no reply is the reason, but what is to be sent next.
        at: Option<Seq>,
        /// Who is asked, and why.
        to: Switched,
    },
    /// Make the history shorter, so that it fits the model's window again.
    Fold(Box<Folded>),
    /// Serve calls.
    Act(Act),
    /// Nothing, until something comes from outside: a message where the turn has ended, an answer where a call waits for one.
    Wait,
    /// Let the checks judge a claim.
    Verify(Claiming),
    /// End the turn of the user.
    Finish(Outcome),
}

/// How calls are served.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// These calls, side by side: neighbours that leave the world as it is, or a single one.
    Serve(Vec<OpenCall>),
    /// This call wants more than is granted: see what its wish leads to, and ask.
    Ask(OpenCall),
    /// No call is served any more: each that is open is told that the run was stopped.
    Settle(Vec<OpenCall>),
}

/// A claim on its way to the checks.
#[derive(Clone, Debug, PartialEq)]
pub enum Claiming {
    /// The words of a reply without calls.
    Reply(Claim),
    /// A call of `submit`, served after all others of its reply.
    Submit(OpenCall),
}

/// What comes next. Pure: no clock, no environment, no file, no random number.
pub fn decide(progress: &Progress) -> Next {
    if progress.outcome().is_some() {
        return Next::Wait;
    }
    if let Some(next) = open_calls(progress) {
        return next;
    }
    if progress.is_interrupted() {
        return Next::Finish(Outcome::Interrupted);
    }
    if let Some(reason) = progress.lost() {
        return Next::Finish(Outcome::Infrastructure { what: Unavailable::Sandbox, reason: reason.to_owned() });
    }
    if let Some(next) = switch(progress) {
        return next;
    }
    if let Some(outcome) = progress.fault().and_then(|fault| fault_outcome(fault, progress)) {
        return Next::Finish(outcome);
    }
    if progress.talks_only() {
        let reason = "the model writes its calls as text, so nothing is run; try another".to_owned();
        return Next::Finish(Outcome::Failed { reason });
    }
    if let Some(next) = progress.claim().and_then(|claim| judge(claim, progress)) {
        return next;
    }
    if let Some(streak) = progress.circle() {
        let Streak { calls, call, times, .. } = streak;
        let reason = format!("{calls} calls in a row brought nothing new, {call} the same {times} times");
        return Next::Finish(Outcome::Failed { reason });
    }
    if let Some(which) = progress.ledger().exhausted() {
        return Next::Finish(budget(which, progress));
    }
    match fit(progress) {
        Fit::Fits => {}
        Fit::Fold(folded) => return Next::Fold(folded),
        Fit::Full(why) => return widen(progress, why),
    }
    match Request::next(progress) {
        Ok(request) => Next::Think(Box::new(request)),
        Err(Refusal::Budget(which)) => Next::Finish(budget(which, progress)),
        Err(Refusal::NotStarted) => Next::Wait,
    }
}

/// What to do about calls without observation, if there are any.
fn open_calls(progress: &Progress) -> Option<Next> {
    let open: Vec<&OpenCall> = progress.open_calls().collect();
    let first = *open.first()?;
    let time_is_over = progress.ledger().exhausted() == Some(Exhausted::Time);
    // A call that was begun and has no observation belongs to a session that died: it is not begun a second time. Nor is
    // one whose beginning a damaged line may have told.
    let died = progress.is_in_doubt() || open.iter().any(|call| call.called.is_some());
    // Nor are calls served that stand in a reply which the provider declined: then there is a fault beside them.
    let ends = progress.is_interrupted() || time_is_over || progress.lost().is_some() || progress.fault().is_some();
    if died || ends {
        return Some(Next::Act(Act::Settle(open.into_iter().cloned().collect())));
    }
    let is_read_only =
        |call: &OpenCall| call.same_as.is_none() && progress.tools().iter().any(|tool| tool.name == call.tool && tool.read_only);
    // The repetition of a claim repeats its answer, and so waits for it.
    let waits = |first: &trace::CallId| progress.result(first).is_none();
    let submit = |call: &&OpenCall| call.tool == "submit" && !call.is_surplus && call.same_as.as_ref().is_none_or(waits);
    let served: Vec<&OpenCall> = open.iter().copied().filter(|call| !submit(call)).collect();
    let Some(head) = served.first() else {
        return Some(match progress.is_judged() {
            true => Next::Act(Act::Settle(open.into_iter().cloned().collect())),
            false => Next::Verify(Claiming::Submit(first.clone())),
        });
    };
    match approval::standing(progress, head) {
        Standing::Pending(_) => return Some(Next::Wait),
        Standing::Wished(_) | Standing::Asks(_) => return Some(Next::Act(Act::Ask((*head).clone()))),
        Standing::Held | Standing::Allowed { .. } | Standing::Denied(_) => {}
    }
    let batch = match is_read_only(head) {
        true => served.iter().take_while(|call| is_read_only(call)).map(|call| (*call).clone()).collect(),
        false => vec![(*head).clone()],
    };
    Some(Next::Act(Act::Serve(batch)))
}

/// What a claim leads to: the checks, the end, or (after a failure) nothing, so that the agent goes on.
fn judge(claim: &Claim, progress: &Progress) -> Option<Next> {
    let time_is_over = progress.ledger().exhausted() == Some(Exhausted::Time);
    match &claim.verdict {
        None if claim.by.is_none() && !progress.is_held_to_something() => Some(Next::Finish(Outcome::Done)),
        None | Some(Verdict::Unjudged { .. }) if time_is_over => Some(Next::Finish(budget(Exhausted::Time, progress))),
        None => Some(Next::Verify(Claiming::Reply(claim.clone()))),
        Some(Verdict::Pass) => Some(Next::Finish(Outcome::Done)),
        Some(Verdict::Fail) if progress.claims_left() > 0 => None,
        Some(Verdict::Fail) => {
            let what = if claim.misfits { "the answer still does not fit its schema" } else { "the checks still fail" };
            Some(Next::Finish(Outcome::Failed { reason: format!("{what} after the last claim") }))
        }
        Some(Verdict::Unjudged { reason }) => {
            Some(Next::Finish(Outcome::Infrastructure { what: Unavailable::Check, reason: reason.clone() }))
        }
    }
}

/// The model to fall back on, where the one that was asked is not to be had and another one is left.
fn switch(progress: &Progress) -> Option<Next> {
    let (at, fault, model) = (progress.fault_at(), progress.fault()?, progress.fallback().first()?);
    let to = Switched { model: Box::new(model.clone()), why: fault.message.clone() };
    is_not_to_be_had(fault).then_some(Next::Switch { at, to })
}

/// What comes where the window is full and folding does not help any more: the first model that is left and has a larger
/// window, or the end.
fn widen(progress: &Progress, why: String) -> Next {
    let larger = progress.fallback().iter().find(|model| model.window() > progress.window());
    let Some(model) = larger else {
        let reason = format!("{why}; go on with a larger window (--context) or another model (--model)");
        return Next::Finish(Outcome::ContextFull { reason });
    };
    Next::Switch { at: progress.fault_at(), to: Switched { model: Box::new(model.clone()), why } }
}

/// Whether a fault says that this model cannot be asked, now or with this account, and nothing against what it is asked.
fn is_not_to_be_had(fault: &Fault) -> bool {
    match fault.class {
        FaultClass::Unavailable | FaultClass::Paused { .. } => true,
        // The key, the account's credit or limit, the model's name: another model has others of them.
        FaultClass::Rejected => matches!(fault.status, Some(401..=404 | 429)),
        FaultClass::ContextFull | FaultClass::Refused | FaultClass::Interrupted | FaultClass::Budget { .. } => false,
    }
}

/// How a request without usable answer ends the turn; `None` where the run goes on.
fn fault_outcome(fault: &Fault, progress: &Progress) -> Option<Outcome> {
    let reason = fault.message.clone();
    match fault.class {
        // Whether it can be folded is seen where the next request is.
        FaultClass::ContextFull => None,
        FaultClass::Refused => Some(Outcome::Refused { reason }),
        FaultClass::Rejected | FaultClass::Unavailable => Some(Outcome::Infrastructure { what: Unavailable::Model, reason }),
        FaultClass::Paused { until } => Some(Outcome::Paused { until, reason }),
        FaultClass::Budget { which } => Some(Outcome::Budget { which, reason }),
        // We stopped it ourselves: the interrupt or the time says how the turn ends.
        FaultClass::Interrupted => progress.ledger().exhausted().map(|which| budget(which, progress)),
    }
}

fn budget(which: Exhausted, progress: &Progress) -> Outcome {
    Outcome::Budget { which, reason: progress.ledger().reason(which) }
}
