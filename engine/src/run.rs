//! A run, told in one page: decide what comes next, do it, write down what happened.

use crate::act::{ask, serve, settle};
use crate::claim::verify;
use crate::decide::{Act, Next, decide};
use crate::engine::{Engine, EngineError, Run};
use crate::outside::{take_in, wait};
use crate::think::think;
use trace::{Finished, Outcome, What};

/// Goes on with a run until the turn of the user has ended, and says how.
///
/// # Errors
/// Where *we* cannot go on: the record cannot be written. Everything else that can go wrong is an observation, a verdict
/// or an outcome.
pub async fn run(engine: &Engine<'_>, run: &mut Run) -> Result<Outcome, EngineError> {
    loop {
        take_in(engine, run)?;
        match decide(run.progress()) {
            Next::Think(request) => think(engine, run, *request).await?,
            Next::Switch { at, to } => run.note(at, What::Switched(to)).map(|_| ())?,
            Next::Fold(folded) => run.note(None, What::Folded(*folded)).map(|_| ())?,
            Next::Act(Act::Serve(calls)) => serve(engine, run, &calls).await?,
            Next::Act(Act::Ask(call)) => ask(engine, run, &call).await?,
            Next::Act(Act::Settle(calls)) => settle(engine, run, &calls)?,
            Next::Verify(claim) => verify(engine, run, claim).await?,
            Next::Finish(outcome) => finish(run, outcome)?,
            Next::Wait => match run.progress().outcome() {
                Some(outcome) => return Ok(outcome.clone()),
                None => wait(engine, run).await?,
            },
        }
    }
}

/// Ends the turn of the user. A later message reopens the run.
fn finish(run: &mut Run, outcome: Outcome) -> Result<(), EngineError> {
    let Some(name) = run.progress().run() else {
        return Err(EngineError::NoStart(run.record().folder().to_owned()));
    };
    let ledger = run.progress().ledger();
    let finished = Finished {
        run: name.clone(),
        outcome,
        answer: run.progress().answer().map(str::to_owned),
        usage: ledger.usage,
        cost_nano_usd: ledger.cost(),
        turns: ledger.turns,
        active_ms: run.record().active_ms(),
    };
    run.note(None, What::Finished(finished)).map(|_| ())
}
