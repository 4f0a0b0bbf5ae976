//! Autosage as a library: what a Rust program needs to run agents, gathered from the crates below.
//!
//! A program that runs agents calls [`sandbox::enter`] with [`tools::OPS`] as the first statement of its `main`, makes a
//! [`sandbox::Sandbox`], a [`model::Model`] and a [`tools::Toolbox`], begins a run with [`engine::start`] and goes on with
//! it with [`engine::run`]. A single question whose answer is a value of its own type it asks with [`ask()`]. `examples/` shows each main use in a page.

pub use {engine, model, sandbox, tools, trace, verify};

#[cfg(feature = "ask")]
mod ask;
#[cfg(feature = "cli")]
pub mod cli;
mod parts;

#[cfg(feature = "ask")]
pub use ask::{AskError, ask};
pub use parts::{Parts, Person, Printer, RandomIds, RealClock};
