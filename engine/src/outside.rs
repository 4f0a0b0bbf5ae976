//! What comes from outside: taken in between two decisions, and waited for where nothing else can be done.

use crate::engine::{Engine, EngineError, Run};
use std::time::Duration;
use trace::{Delivered, Delivery, What, inbox};

/// How often the inbox is looked into while a run waits for it.
const LOOK: Duration = Duration::from_millis(100);

/// Takes in what came from outside since the last decision.
pub(crate) fn take_in(engine: &Engine<'_>, run: &mut Run) -> Result<(), EngineError> {
    for (name, what) in inbox::waiting(run.record().folder(), run.progress().delivered())?.fresh {
        run.note(None, What::Delivered(Delivered { name, what }))?;
    }
    if engine.interrupt.take() {
        run.note(None, What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt }))?;
    }
    Ok(())
}

/// Returns when something is there to be taken in. The time until then is no active time of the run.
pub(crate) async fn wait(engine: &Engine<'_>, run: &mut Run) -> Result<(), EngineError> {
    if run.progress().started().is_none() {
        return Err(EngineError::NoStart(run.record().folder().to_owned()));
    }
    let began = engine.clock.elapsed();
    while inbox::waiting(run.record().folder(), run.progress().delivered())?.fresh.is_empty() {
        tokio::select! {
            biased;
            () = engine.interrupt.raised() => break,
            () = engine.clock.pause(LOOK) => {}
        }
    }
    run.rested(engine.clock.elapsed().saturating_sub(began));
    Ok(())
}
