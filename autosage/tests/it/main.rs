//! The end-to-end tests of the program and the library, in one program.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod agents;
mod approval;
mod commands;
mod contract;
mod crash;
mod demo;
mod durability;
mod examples;
mod fallback;
mod faults;
mod folding;
mod histories;
mod loops;
mod many;
mod models;
mod pictures;
mod reach;
mod record;
mod refused;
mod scenarios;
mod secrets;
mod seen;
mod structured;
mod support;
mod trust;
mod typing;
mod vendors;
mod walls;
mod wires;
