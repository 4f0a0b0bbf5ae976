//! The form of an answer as providers can enforce it: which models are asked to, and the copy of the schema that is sent.
//!
//! What a provider enforces helps a model along; whether an answer fits is for whoever asked to say. So a copy leaves out
//! what a wire refuses, and where too little would be left, or nobody knows the server, nothing is sent.
//!
//! Sources: developers.openai.com/api/docs/guides/structured-outputs, platform.claude.com/docs/en/build-with-claude/
//! structured-outputs, ai.google.dev/gemini-api/docs/structured-output.

use crate::provider::{self, Schemas};
use crate::wire::Wire;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use trace::ModelSpec;

/// What an answer is called where a wire wants a name.
pub(crate) const NAME: &str = "answer";

/// The words of the formats that every provider knows. Others are notes for people.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "uuid", "ipv4", "ipv6"];

/// What narrows a value and is refused by Anthropic; its own clients leave the same out.
const NARROWING: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// All that may stand in a schema that OpenAI enforces strictly.
const STRICT: [&str; 22] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

/// All that may stand in a schema that Anthropic enforces.
const ANTHROPIC: [&str; 16] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "format",
];

/// A schema as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    pub schema: Value,
    /// Whether it says all that strict enforcement wants.
    pub strict: bool,
}

/// The form in which the model that `spec` names is asked for an answer; `None` where it is asked for in words only.
pub(crate) fn form(spec: &ModelSpec, schema: Option<&Value>) -> Option<Form> {
    let wire = Wire::of(spec);
    let is_enforced = spec.structured.unwrap_or(provider::row(&spec.provider).schemas == Schemas::Enforced);
    let schema = schema.filter(|schema| is_enforced && schema["type"] == "object")?;
    let left_out: &[&str] = if wire == Wire::AnthropicMessages { &NARROWING } else { &[] };
    let schema = copy(schema, left_out);
    let strict = match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses => {
            holds_only(&schema, &STRICT) && objects(&schema).into_iter().all(|object| is_closed(object) && all_required(object))
        }
        Wire::AnthropicMessages => {
            holds_only(&schema, &ANTHROPIC) && objects(&schema).into_iter().all(is_closed) && !is_recursive(&schema)
        }
        Wire::Gemini => true,
    };
    // Only OpenAI's wires take a schema that is not enforced to the letter.
    let is_sent = strict || matches!(wire, Wire::OpenAiChat | Wire::OpenAiResponses);
    is_sent.then_some(Form { schema, strict })
}

/// `schema` without `left_out`, the name of its draft, and formats that are notes.
fn copy(schema: &Value, left_out: &[&str]) -> Value {
    each(schema, &|name, value| match name {
        "$schema" | "$id" | "$comment" | "examples" => false,
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        name => !left_out.contains(&name),
    })
}

/// `schema` with those keywords, in it and in all below it, that `keep` keeps.
fn each(schema: &Value, keep: &dyn Fn(&str, &Value) -> bool) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let below = |name: &str, value: &Value| match (name, value) {
        ("properties" | "$defs" | "definitions", Value::Object(named)) => {
            Value::Object(named.iter().map(|(name, schema)| (name.clone(), each(schema, keep))).collect())
        }
        ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
            Value::Array(all.iter().map(|schema| each(schema, keep)).collect())
        }
        ("items" | "additionalProperties" | "not", schema) => each(schema, keep),
        (_, value) => value.clone(),
    };
    let kept = keywords.iter().filter(|(name, value)| keep(name, value));
    Value::Object(kept.map(|(name, value)| (name.clone(), below(name, value))).collect())
}

/// `schema` and every schema in it that is an object.
fn all(schema: &Value) -> Vec<&Map<String, Value>> {
    let Value::Object(keywords) = schema else { return Vec::new() };
    let below = keywords.iter().flat_map(|(name, value)| match (name.as_str(), value) {
        ("properties" | "$defs" | "definitions", Value::Object(named)) => named.values().flat_map(all).collect(),
        ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(some)) => some.iter().flat_map(all).collect(),
        ("items" | "additionalProperties" | "not", schema) => all(schema),
        _ => Vec::new(),
    });
    std::iter::once(keywords).chain(below).collect()
}

fn holds_only(schema: &Value, known: &[&str]) -> bool {
    all(schema).iter().all(|keywords| keywords.keys().all(|name| known.contains(&name.as_str())))
}

/// The schemas of objects in it.
fn objects(schema: &Value) -> Vec<&Map<String, Value>> {
    let is_object = |keywords: &&Map<String, Value>| {
        let types = keywords.get("type");
        let named =
            types.is_some_and(|types| types == "object" || types.as_array().is_some_and(|all| all.contains(&"object".into())));
        named || keywords.contains_key("properties")
    };
    all(schema).into_iter().filter(is_object).collect()
}

fn is_closed(object: &Map<String, Value>) -> bool {
    object.get("additionalProperties") == Some(&Value::Bool(false))
}

fn all_required(object: &Map<String, Value>) -> bool {
    let required: BTreeSet<&str> =
        object.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut names = object.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    names.all(|name| required.contains(name.as_str()))
}

/// Whether a definition leads back to itself. Each is followed once, however many lead to it.
fn is_recursive(schema: &Value) -> bool {
    fn leads<'a>(schema: &'a Value, from: &'a Value, path: &mut Vec<&'a str>, followed: &mut BTreeSet<&'a str>) -> bool {
        all(from).into_iter().filter_map(|keywords| keywords.get("$ref")?.as_str()).any(|reference| {
            if path.contains(&reference) {
                return true;
            }
            let Some(target) = reference.strip_prefix('#').and_then(|pointer| schema.pointer(pointer)) else { return false };
            if !followed.insert(reference) {
                return false;
            }
            path.push(reference);
            let again = leads(schema, target, path, followed);
            path.pop();
            again
        })
    }
    leads(schema, schema, &mut Vec::new(), &mut BTreeSet::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{self, Overrides};
    use expect_test::{Expect, expect};
    use serde_json::json;

    const MODELS: [&str; 6] = [
        "openai/gpt-6-sol",
        "openai-chat/gpt-6-sol",
        "openai-compatible/m",
        "anthropic/claude-opus-5-5",
        "minimax/m",
        "gemini/gemini-4-argon",
    ];

    fn check(schema: Value, expected: Expect) {
        let say = |id: &str| {
            let overrides = Overrides { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..Overrides::default() };
            let spec = catalog::find(id, &overrides).unwrap();
            let form = match form(&spec, Some(&schema)) {
                None => "in words".to_owned(),
                Some(Form { schema, strict }) => format!("{}{schema}", if strict { "strict " } else { "" }),
            };
            format!("{id}: {form}\n")
        };
        expected.assert_eq(&MODELS.map(say).concat());
    }

    #[test]
    fn each_provider_gets_what_it_enforces() {
        // All that strict enforcement wants, and a note for people.
        check(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["n"],
                "properties": {"n": {"type": "integer", "format": "uint32", "minimum": 0}}, "additionalProperties": false,
            }),
            expect![[r#"
                openai/gpt-6-sol: strict {"additionalProperties":false,"properties":{"n":{"minimum":0,"type":"integer"}},"required":["n"],"type":"object"}
                openai-chat/gpt-6-sol: strict {"additionalProperties":false,"properties":{"n":{"minimum":0,"type":"integer"}},"required":["n"],"type":"object"}
                openai-compatible/m: in words
                anthropic/claude-opus-5-5: strict {"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}
                minimax/m: in words
                gemini/gemini-4-argon: strict {"additionalProperties":false,"properties":{"n":{"minimum":0,"type":"integer"}},"required":["n"],"type":"object"}
            "#]],
        );
        // A field that may be left out.
        check(
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}),
            expect![[r#"
            openai/gpt-6-sol: {"additionalProperties":false,"properties":{"n":{"type":"integer"}},"type":"object"}
            openai-chat/gpt-6-sol: {"additionalProperties":false,"properties":{"n":{"type":"integer"}},"type":"object"}
            openai-compatible/m: in words
            anthropic/claude-opus-5-5: strict {"additionalProperties":false,"properties":{"n":{"type":"integer"}},"type":"object"}
            minimax/m: in words
            gemini/gemini-4-argon: strict {"additionalProperties":false,"properties":{"n":{"type":"integer"}},"type":"object"}
        "#]],
        );
        // An object below that is open.
        check(
            json!({
                "type": "object", "required": ["a"], "additionalProperties": false,
                "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}},
            }),
            expect![[r#"
                openai/gpt-6-sol: {"additionalProperties":false,"properties":{"a":{"items":{"properties":{},"type":"object"},"type":"array"}},"required":["a"],"type":"object"}
                openai-chat/gpt-6-sol: {"additionalProperties":false,"properties":{"a":{"items":{"properties":{},"type":"object"},"type":"array"}},"required":["a"],"type":"object"}
                openai-compatible/m: in words
                anthropic/claude-opus-5-5: in words
                minimax/m: in words
                gemini/gemini-4-argon: strict {"additionalProperties":false,"properties":{"a":{"items":{"properties":{},"type":"object"},"type":"array"}},"required":["a"],"type":"object"}
            "#]],
        );
        // A tree.
        check(
            json!({
                "type": "object", "required": ["tree"], "additionalProperties": false,
                "properties": {"tree": {"$ref": "#/$defs/tree"}},
                "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            }),
            expect![[r##"
                openai/gpt-6-sol: strict {"$defs":{"tree":{"items":{"$ref":"#/$defs/tree"},"type":"array"}},"additionalProperties":false,"properties":{"tree":{"$ref":"#/$defs/tree"}},"required":["tree"],"type":"object"}
                openai-chat/gpt-6-sol: strict {"$defs":{"tree":{"items":{"$ref":"#/$defs/tree"},"type":"array"}},"additionalProperties":false,"properties":{"tree":{"$ref":"#/$defs/tree"}},"required":["tree"],"type":"object"}
                openai-compatible/m: in words
                anthropic/claude-opus-5-5: in words
                minimax/m: in words
                gemini/gemini-4-argon: strict {"$defs":{"tree":{"items":{"$ref":"#/$defs/tree"},"type":"array"}},"additionalProperties":false,"properties":{"tree":{"$ref":"#/$defs/tree"}},"required":["tree"],"type":"object"}
            "##]],
        );
        check(
            json!({"type": "array"}),
            expect![[r#"
            openai/gpt-6-sol: in words
            openai-chat/gpt-6-sol: in words
            openai-compatible/m: in words
            anthropic/claude-opus-5-5: in words
            minimax/m: in words
            gemini/gemini-4-argon: in words
        "#]],
        );
    }

    #[test]
    fn how_many_items_there_are_is_enforced_by_openai() {
        let spec = catalog::find("openai/gpt-6-sol", &Overrides::default()).unwrap();
        let items = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3});
        let schema = json!({"type": "object", "properties": {"n": items}, "required": ["n"], "additionalProperties": false});
        assert_eq!(form(&spec, Some(&schema)), Some(Form { schema, strict: true }));
    }

    #[test]
    fn definitions_that_share_others_are_looked_at_once() {
        let shares = |at: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            (format!("d{at}"), json!({"anyOf": [next, next]}))
        };
        let definitions = |last: Value| {
            let mut all: Map<String, Value> = (0..64).map(shares).collect();
            all.insert("d64".to_owned(), last);
            json!({"type": "object", "properties": {"d": {"$ref": "#/$defs/d0"}}, "$defs": all})
        };
        assert!(!is_recursive(&definitions(json!({"type": "string"}))));
        assert!(is_recursive(&definitions(json!({"items": {"$ref": "#/$defs/d0"}}))));
    }

    #[test]
    fn what_a_row_says_goes_before_what_is_usual() {
        let spec = |structured, id| ModelSpec { structured, ..catalog::find(id, &Overrides::default()).unwrap() };
        let schema = json!({"type": "object", "additionalProperties": false});
        assert!(form(&spec(Some(false), "openai/gpt-6-sol"), Some(&schema)).is_none());
        assert!(form(&spec(Some(true), "ollama/m"), Some(&schema)).is_some());
        assert!(form(&spec(None, "ollama/m"), Some(&schema)).is_none());
        assert!(form(&spec(None, "openai/gpt-6-sol"), None).is_none());
    }
}
