//! The decision and the fold, tested from outside.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod approvals;
mod decisions;
mod folding;
mod invariants;
mod pairs;
mod pictures;
mod refusals;
mod story;
mod strict;
