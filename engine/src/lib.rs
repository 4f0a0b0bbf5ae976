//! The agent loop: decide, do, write down.
