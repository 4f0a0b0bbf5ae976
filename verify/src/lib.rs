//! Judges a claim by the work, never by the reasoning that led to it.
