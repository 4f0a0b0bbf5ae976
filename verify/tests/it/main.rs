//! Checks behind real walls.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checks;
mod lost;
mod room;
