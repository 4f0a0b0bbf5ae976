//! Autosage as a library.
