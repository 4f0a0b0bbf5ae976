//! Runs a command with only the rights it was granted.

pub mod capture;
