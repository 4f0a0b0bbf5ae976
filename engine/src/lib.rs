//! The agent loop: decide, do, write down.
//!
//! A run is a pure decision repeated over a record. [`Progress`] is the fold of a run's events, [`decide`] says what comes
//! next, and [`run`] does it and writes down what happened. Nothing else is state: a crash, a later session and a second
//! question are all the same, events that are folded and gone on from.

mod act;
mod approval;
mod claim;
mod decide;
mod engine;
mod environments;
mod fold;
mod harness;
mod interrupt;
mod ledger;
mod outside;
mod progress;
pub mod project;
mod prompt;
mod run;
mod scan;
mod start;
mod think;

pub use approval::{Question, Questions, Standing, ruling, standing};
pub use decide::{Act, Claiming, Next, decide};
pub use engine::{Engine, EngineError, Run};
pub use environments::Environments;
pub use fold::reply_room;
pub use harness::{Caps, FoldSettings, Harness, HarnessError, LoopSettings, Loops, Notes, fill};
pub use interrupt::Interrupt;
pub use ledger::{Ledger, Left};
pub use progress::{Claim, OpenCall, Pairs, Progress, Streak};
pub use prompt::{RULES, Request};
pub use run::run;
pub use start::{Assignment, Changes, Surroundings, reopen, start};
