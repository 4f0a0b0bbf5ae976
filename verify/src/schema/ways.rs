//! How many references of a schema are followed to tell where an answer does not fit: a few definitions that refer to one
//! another can be read in more ways than anybody has time or memory for.

use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::Value;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A keyword of ours, which fits everything, and counts how often it is met.
const COUNTED: &str = "autosage-counted";

thread_local! {
    /// How many more references are followed on this thread: all, where nothing is counted.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// What unwinds where no more of them are followed.
struct Spent;

/// The keyword.
struct Counted;

impl Keyword<'_> for Counted {
    fn validate(&self, _: &Value) -> Result<(), ValidationError<'static>> {
        count();
        Ok(())
    }

    fn is_valid(&self, _: &Value) -> bool {
        count();
        true
    }
}

fn count() {
    match LEFT.get().checked_sub(1) {
        Some(left) => LEFT.set(left),
        // It is no fault of the program, so nothing is printed of it.
        None => resume_unwind(Box::new(Spent)),
    }
}

/// What holds answers to `schema` and counts each time that one of its `references` is followed.
pub fn counted(schema: &Value, references: &[String]) -> Result<Validator, ValidationError<'static>> {
    let mut schema = schema.clone();
    for reference in references {
        let pointer = percent_encoding::percent_decode_str(reference.trim_start_matches('#')).decode_utf8_lossy();
        // One that leads nowhere is found where the schema is read.
        if let Some(Value::Object(target)) = schema.pointer_mut(&pointer) {
            target.insert(COUNTED.to_owned(), Value::Bool(true));
        }
    }
    jsonschema::options().with_keyword(COUNTED, |_, _, _| Ok(Box::new(Counted))).build(&schema)
}

/// What `judge` says; `None` where it would follow more than so many references.
pub fn within<T>(references: u64, judge: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(references);
    let judged = catch_unwind(AssertUnwindSafe(judge));
    LEFT.set(u64::MAX);
    match judged {
        Ok(said) => Some(said),
        Err(spent) if spent.is::<Spent>() => None,
        Err(panic) => resume_unwind(panic),
    }
}
