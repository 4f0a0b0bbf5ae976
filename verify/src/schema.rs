//! The form that an answer must have: a JSON Schema, and whether words fit it.

mod ways;

use jsonschema::Validator;
use serde_json::Value;
use std::fmt;
use tokio::sync::oneshot;

/// The stack of the thread that judges, in bytes: references may lead from one to the next a thousand times.
const STACK: usize = 64 << 20;

/// The most that is told of what does not fit.
const MOST_TOLD: usize = 8;
/// So many references are followed to see where an answer does not fit.
const FOLLOWED: u64 = 20_000;

/// A JSON Schema that answers are held to.
pub struct Schema {
    value: Value,
    validator: Validator,
    /// What tells where an answer does not fit, and counts the ways.
    counted: Option<Validator>,
}

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is no JSON object.
    #[error("a schema is a JSON object, such as {{\"type\": \"object\"}}")]
    NoObject,
    /// A reference leads to somewhere else than its own definitions. The schema is also told as that of an argument, where it
    /// stands deeper, and definitions are all that is taken along.
    #[error("the reference `{0}` leads elsewhere than to `#/$defs/…` of the schema: put what it means there")]
    Reference(String),
    /// A keyword in it makes references lead to what is not known beforehand.
    #[error("`{0}` is not taken in a schema (an `$id` only at its top): refer by `$ref` to `#/$defs/…`")]
    Keyword(String),
    /// It is not valid.
    #[error("{at}: {why}")]
    Invalid {
        /// Where in it, such as `/properties/count/type`; `the schema` for its top.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// What judges by it did not come to an end.
    #[error("holding an answer to it failed: {0}")]
    Failed(String),
}

impl Schema {
    /// The schema that `value` is, by the draft that it names, else by 2020-12.
    ///
    /// # Errors
    /// Where answers cannot be held to it.
    pub fn new(value: Value) -> Result<Schema, SchemaError> {
        if !value.is_object() {
            return Err(SchemaError::NoObject);
        }
        let mut references = Vec::new();
        ways::references(&value, true, &mut references)?;
        if let Some(elsewhere) = references.iter().find(|reference| !leads_to_definitions(reference)) {
            return Err(SchemaError::Reference(elsewhere.clone()));
        }
        let invalid = |at: String, why: String| SchemaError::Invalid { at: top(at, "the schema"), why };
        let validator =
            jsonschema::validator_for(&value).map_err(|error| invalid(error.instance_path().to_string(), error.to_string()))?;
        let counted = ways::counted(&value, &references);
        Ok(Schema { value, validator, counted })
    }

    /// The schema itself.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What does not fit in `answer`, which is to be JSON and nothing else; `None` where it fits.
    pub fn misfit(&self, answer: &str) -> Option<String> {
        let answer: Value = match serde_json::from_str(answer) {
            Ok(answer) => answer,
            Err(error) => return Some(format!("it is not JSON: {error}")),
        };
        if self.validator.is_valid(&answer) {
            return None;
        }
        // Whether it fits is asked once of each definition for each place in the answer; where not, in each way that leads there.
        let counted = self.counted.as_ref();
        let told = counted.and_then(|counted| ways::within(FOLLOWED, || misfits(counted, &answer)));
        let told = told.filter(|told| !told.is_empty() && !told.contains(ways::COUNTED));
        Some(told.unwrap_or_else(|| "it does not fit the schema; where, cannot be told in few words".to_owned()))
    }
}

/// What does not fit in `answer`, and where.
fn misfits(validator: &Validator, answer: &Value) -> String {
    let told =
        |error: jsonschema::ValidationError<'_>| format!("{}: {error}", top(error.instance_path().to_string(), "the answer"));
    let mut misfits: Vec<String> = validator.iter_errors(answer).take(MOST_TOLD + 1).map(told).collect();
    if misfits.len() > MOST_TOLD {
        misfits[MOST_TOLD] = "and more".to_owned();
    }
    misfits.join("\n")
}

/// What does not fit in `answer` where it is held to `schema`; `None` where it fits. That is found out on a thread of its own,
/// for there are schemas and answers with which it takes longer than anybody waits. Such a thread cannot be stopped: who waits
/// no longer drops the future, and the thread ends by itself or with the program, which it does not hold up.
///
/// # Errors
/// Where answers cannot be held to the schema.
pub async fn misfit(schema: Value, answer: String) -> Result<Option<String>, SchemaError> {
    let (tell, told) = oneshot::channel();
    let judge = move || {
        // Nobody may wait any more.
        let _ = tell.send(Schema::new(schema).map(|schema| schema.misfit(&answer)));
    };
    let begun = std::thread::Builder::new().name("schema".to_owned()).stack_size(STACK).spawn(judge);
    begun.map_err(|error| SchemaError::Failed(format!("a thread for it cannot be started: {error}")))?;
    told.await.unwrap_or_else(|_| Err(SchemaError::Failed("its thread broke off".to_owned())))
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Schema({})", self.value)
    }
}

/// The JSON in what a model said, for some put it into a fence: as it stands, without what is around it.
pub fn json_in(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    // Behind the fence stands what is in it.
    let inside = fenced.and_then(|text| text.split_once('\n')).filter(|(language, _)| !language.contains(['{', '[', '"']));
    inside.map_or(text, |(_, json)| json.trim())
}

fn top(path: String, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { path }
}

fn leads_to_definitions(reference: &str) -> bool {
    ["#/$defs/", "#/definitions/"].iter().any(|place| reference.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn refused(schema: Value, expected: Expect) {
        expected.assert_eq(&Schema::new(schema).unwrap_err().to_string());
    }

    #[test]
    fn a_schema_that_cannot_be_used_says_why() {
        refused(json!(true), expect![[r#"a schema is a JSON object, such as {"type": "object"}"#]]);
        refused(
            json!({"type": "objekt"}),
            expect![[r#"/type: "objekt" is not valid under any of the schemas listed in the 'anyOf' keyword"#]],
        );
        refused(
            json!({"properties": {"a": {"minimum": "1"}}}),
            expect![[r#"/properties/a/minimum: "1" is not of type "number""#]],
        );
        refused(
            json!({"properties": {"a": {"$ref": "#"}}}),
            expect!["the reference `#` leads elsewhere than to `#/$defs/…` of the schema: put what it means there"],
        );
        refused(
            json!({"items": {"$ref": "https://example.org/a.json"}}),
            expect![
                "the reference `https://example.org/a.json` leads elsewhere than to `#/$defs/…` of the schema: put what it means there"
            ],
        );
        refused(json!({"items": {"$ref": "#/$defs/missing"}}), expect!["the schema: Pointer '/$defs/missing' does not exist"]);
        for keyword in [json!({"$dynamicRef": "#a"}), json!({"$recursiveRef": "#"}), json!({"$id": "http://x/r"})] {
            let told = Schema::new(json!({"$id": "http://x/", "$defs": {"a": keyword}})).unwrap_err().to_string();
            assert!(told.contains("is not taken in a schema"), "{told}");
        }
        refused(json!({"type": "string", "pattern": "("}), expect![[r#"/pattern: "(" is not a "regex""#]]);
    }

    fn check(answer: &str, expected: Expect) {
        let schema = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}}},
            "required": ["name"],
            "additionalProperties": false,
            "$defs": {"tag": {"enum": ["a", "b"]}},
        });
        expected.assert_eq(&Schema::new(schema).unwrap().misfit(answer).unwrap_or_else(|| "fits".to_owned()));
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        check(r#"{"name": "x", "tags": ["a", "b"]}"#, expect!["fits"]);
        check("It is x.", expect!["it is not JSON: expected value at line 1 column 1"]);
        check(r#"{"name": "x"} and more"#, expect!["it is not JSON: trailing characters at line 1 column 15"]);
        check(
            r#"{"tags": ["a", "c"], "more": 1}"#,
            expect![[r#"
            /tags/1: "c" is not one of "a" or "b"
            the answer: Additional properties are not allowed ('more' was unexpected)
            the answer: "name" is a required property"#]],
        );
        check(r#"[]"#, expect![[r#"the answer: [] is not of type "object""#]]);
        check(
            r#"{"name": "x", "tags": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}"#,
            expect![[r#"
            /tags/0: 1 is not one of "a" or "b"
            /tags/1: 2 is not one of "a" or "b"
            /tags/2: 3 is not one of "a" or "b"
            /tags/3: 4 is not one of "a" or "b"
            /tags/4: 5 is not one of "a" or "b"
            /tags/5: 6 is not one of "a" or "b"
            /tags/6: 7 is not one of "a" or "b"
            /tags/7: 8 is not one of "a" or "b"
            and more"#]],
        );
    }

    #[test]
    fn of_ways_without_end_some_are_followed() {
        // Every level is read in both ways, and the innermost fits neither: 2^60 ways.
        let level =
            |name: &str| json!({"type": "object", "properties": {"x": {"$ref": format!("#/$defs/{name}")}}, "required": ["x"]});
        let both = [level("a"), level("b%20b")];
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": both}, "b b": {"anyOf": both}}});
        let nested = |levels: usize| "{\"x\":".repeat(levels) + "1" + &"}".repeat(levels);
        let held = |schema: &Value, answer: &str, expected: Expect| {
            let misfit = Schema::new(schema.clone()).unwrap().misfit(answer);
            expected.assert_eq(&misfit.unwrap_or_else(|| "fits".to_owned()));
        };
        held(&schema, &nested(60), expect!["it does not fit the schema; where, cannot be told in few words"]);
        held(
            &schema,
            &nested(1),
            expect![[r#"the answer: {"x":1} is not valid under any of the schemas listed in the 'anyOf' keyword"#]],
        );
        // What is long and has one way is followed to its end.
        let row = json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}});
        held(&row, &format!("[{}1]", "1,".repeat(50_000)), expect!["fits"]);
    }

    #[test]
    fn what_is_data_in_a_schema_stays_as_it_is() {
        let data = json!({"$ref": "elsewhere"});
        let schema = json!({
            "properties": {
                "x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a/const"}, "z": {"enum": [data], "default": data},
                "const": {"type": "integer"},
            },
            "$defs": {"a": {"const": {"type": "string"}}},
            "examples": [data],
        });
        let misfit = |answer: &str| Schema::new(schema.clone()).unwrap().misfit(answer);
        assert_eq!(misfit(r#"{"x": {"type": "string"}, "y": "a", "z": {"$ref": "elsewhere"}, "const": 1}"#), None);
        let counted = misfit(r#"{"x": {"type": "string", "autosage-counted": true}}"#);
        assert_eq!(counted.as_deref(), Some("it does not fit the schema; where, cannot be told in few words"));
        assert!(misfit(r#"{"const": "a"}"#).is_some());
        // A reference to what is no schema but takes anything.
        let row = json!({"$ref": "#/$defs/a/dependentRequired", "$defs": {"a": {"dependentRequired": {}}}});
        assert_eq!(Schema::new(row).unwrap().misfit("1"), None);
    }

    #[test]
    fn a_schema_of_long_ways_is_followed_to_their_end() {
        let schema = |last: Value| {
            let step = |at: usize| (format!("a{at}"), json!({"$ref": format!("#/$defs/a{}", at + 1)}));
            let mut definitions: serde_json::Map<String, Value> = (0..2_000).map(step).collect();
            definitions.insert("a2000".to_owned(), last);
            json!({"$ref": "#/$defs/a0", "$defs": definitions})
        };
        let judged = |last: Value| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(misfit(schema(last), "{}".to_owned())).unwrap()
        };
        assert_eq!(judged(json!({"type": "object"})), None);
        assert!(judged(json!({"type": "string"})).is_some());
        // In a circle.
        assert_eq!(judged(json!({"$ref": "#/$defs/a0"})), None);
    }

    #[test]
    fn what_stands_around_json_is_left_out() {
        for (text, json) in [
            (" {\"a\": 1}\n", "{\"a\": 1}"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("```\n[1]\n```\n", "[1]"),
            ("```{\"a\":\n1}```", "```{\"a\":\n1}```"),
            ("Here it is: {}", "Here it is: {}"),
            ("``````", "``````"),
            ("```", "```"),
        ] {
            assert_eq!(json_in(text), json);
        }
    }
}
