//! Folding: a history that outgrows the model's window is made shorter, once and for all, by rules and without a model.
//!
//! First old outputs are shortened; where that is not enough, a stretch of the history is replaced by an account of it. The
//! task, the first rounds and the latest ones stay. What goes from the prompt stays in the record, and can be read.

mod account;
mod plan;

use crate::progress::Progress;
use crate::prompt::GOOD_OUTPUT;
pub(crate) use account::Account;
use sandbox::capture::grouped;
use trace::{FaultClass, Folded, ModelSpec};

/// So often in a row a history is folded because a server finds it too long, and then no more.
const REFUSALS: u32 = 2;
/// A reply has this part of the window, where the model may say as much.
const REPLY_SHARE: u64 = 4;

/// Whether the next request fits the model's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It does.
    Fits,
    /// It does, once the history is folded.
    Fold(Box<Folded>),
    /// It does not, and folding does not help any more: why, in words.
    Full(String),
}

/// Tokens of a `window` that are kept for a reply of `model`.
pub fn reply_room(model: &ModelSpec, window: u64) -> u64 {
    model.max_output.min(window / REPLY_SHARE)
}

/// Whether the next request fits, with room for its reply.
pub(crate) fn fit(progress: &Progress) -> Fit {
    let Some(model) = progress.model() else { return Fit::Fits };
    let (size, window) = (progress.size(), progress.window());
    let room = |window: u64| reply_room(model, window);
    let fault = progress.fault().filter(|fault| fault.class == FaultClass::ContextFull);
    let refused = fault.is_some();
    if size.saturating_add(room(window)) <= window && !refused {
        return Fit::Fits;
    }
    let full = |why: &str| {
        let what = match fault {
            // What a server said is a sentence, and this one goes on.
            Some(fault) => fault.message.trim_end().trim_end_matches('.').to_owned(),
            None => {
                let [size, kept, window] = [size, room(window), window].map(grouped);
                let kept = format!("{kept} more are kept for the reply");
                format!("about {size} tokens are to be sent, {kept}, and the window has {window}")
            }
        };
        Fit::Full(format!("{what}; {why}"))
    };
    let holds_short_reply = |window: u64| size.saturating_add(room(window).min(GOOD_OUTPUT)) <= window && !refused;
    // No turn ends for what was counted alone: where it would fit by the estimate, the server may say so itself.
    let may_fit = progress.estimate().saturating_add(room(model.window())) <= model.window() && !refused;
    if progress.refusals() > REFUSALS {
        return full("the history was folded twice for it");
    }
    if progress.folds_in_vain() {
        // A request that goes out all the same makes the history longer, so this comes to its end without a fold.
        if holds_short_reply(window) || may_fit {
            return Fit::Fits;
        }
        return full("it was folded twice, and nothing new was learned or done between and since");
    }
    match plan::plan(progress, window, window - room(window)) {
        Some(folded) => Fit::Fold(Box::new(folded)),
        // What was refused once may be tried again in another turn of the user, where nothing else is left.
        None if holds_short_reply(model.window()) || may_fit => Fit::Fits,
        None => full("nothing of the history can be folded"),
    }
}
