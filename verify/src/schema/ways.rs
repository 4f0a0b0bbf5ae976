//! How many references of a schema are followed to tell where an answer does not fit: a few definitions that refer to one
//! another can be read in more ways than anybody has time or memory for.

use super::SchemaError;
use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::Value;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A keyword of ours, which fits everything, and counts how often it is met.
pub const COUNTED: &str = "autosage-counted";

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

/// Keywords whose values are data and no schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Keywords whose values give schemas names.
const NAMES: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// References that lead elsewhere at each place that they are followed from.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// Puts every `$ref` of `schema`, which may be the `top` of all, into `found`.
///
/// # Errors
/// Where a keyword makes references lead to what is not known beforehand.
pub fn references(schema: &Value, top: bool, found: &mut Vec<String>) -> Result<(), SchemaError> {
    match schema {
        Value::Array(all) => all.iter().try_for_each(|schema| references(schema, false, found)),
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => found.push(reference.clone()),
                    // Below it, `#` is another place.
                    ("$id", Value::String(_)) if !top => return Err(SchemaError::Keyword(keyword.clone())),
                    (dynamic, _) if DYNAMIC.contains(&dynamic) => return Err(SchemaError::Keyword(keyword.clone())),
                    (data, _) if DATA.contains(&data) => {}
                    (names, Value::Object(named)) if NAMES.contains(&names) => {
                        named.values().try_for_each(|schema| references(schema, false, found))?;
                    }
                    (_, value) => references(value, false, found)?,
                }
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// What tells where an answer does not fit `schema` and counts each time that one of its `references` is followed; `None` where
/// one leads to what is no schema but for that, and in a program that ends where it would unwind.
pub fn counted(schema: &Value, references: &[String]) -> Option<Validator> {
    if cfg!(panic = "abort") && !references.is_empty() {
        return None;
    }
    let mut schema = schema.clone();
    for reference in references {
        let pointer = percent_encoding::percent_decode_str(reference.trim_start_matches('#')).decode_utf8_lossy();
        // A boolean schema leads no further.
        if let Some(Value::Object(target)) = schema.pointer_mut(&pointer) {
            target.insert(COUNTED.to_owned(), Value::Bool(true));
        }
    }
    jsonschema::options().with_keyword(COUNTED, |_, _, _| Ok(Box::new(Counted))).build(&schema).ok()
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
