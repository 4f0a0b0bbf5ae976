//! The record tested from outside: what is written, damaged, reopened, exported and imported.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod archive;
mod record;
mod support;
