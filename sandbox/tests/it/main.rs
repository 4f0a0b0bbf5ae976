//! The sandbox from outside, as one program: environments, commands and file operations in every kind, and ways out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod escapes;
mod files;
mod git;
mod probes;
mod shell;
mod support;
mod wider;
