//! The tools behind real walls.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bash;
mod bench;
mod capped;
mod files;
mod find;
mod lost;
mod search;
mod secrets;
