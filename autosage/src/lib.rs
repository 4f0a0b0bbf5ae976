//! Autosage as a library: what a Rust program needs to run agents, gathered from the crates below.
//!
//! A program that runs agents calls [`sandbox::enter`] with [`tools::OPS`] as the first statement of its `main`, makes a
//! [`sandbox::Sandbox`], a [`model::Model`] and a [`tools::Toolbox`], begins a run with [`engine::start`] and goes on with
//! it with [`engine::run`]. `examples/` shows each main use in a page.

pub use {engine, model, sandbox, tools, trace, verify};

#[cfg(feature = "cli")]
pub mod cli;
mod parts;

pub use parts::{Parts, Person, Printer, RandomIds, RealClock};
