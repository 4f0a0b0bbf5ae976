//! The crate from outside, as one program: a test binary for each file would link the HTTP client each time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod catalog;
mod check;
mod gate;
mod http;
mod prompt;
mod recorded;
mod support;
mod tls;
