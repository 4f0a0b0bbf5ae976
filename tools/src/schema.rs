//! Whether arguments fit the schema of a built-in tool, said so that the next call can be right.
//!
//! The schemas use a handful of keywords: objects of texts (any, or some), whole numbers within bounds, booleans and lists.
//! Null stands for an optional argument that is left out, as models do; `30.0` is a whole number, as in JSON Schema.

use serde_json::Value;

/// What is wrong with `arguments`, or nothing.
pub fn mismatch(schema: &Value, arguments: &Value) -> Option<String> {
    let Value::Object(given) = arguments else {
        return Some(format!("the arguments are {}, not an object", cut(arguments)));
    };
    let fields = &schema["properties"];
    let wrong = given.iter().find_map(|(name, value)| match fields.get(name) {
        None => Some(format!("there is no argument `{name}`")),
        Some(_) if value.is_null() && !is_required(schema, name) => None,
        Some(field) if fits(field, value) => None,
        Some(field) => Some(format!("`{name}` is {}; expected: {}", cut(value), kind(field))),
    });
    let missing = || {
        let all = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.into_iter().find(|name| !given.contains_key(*name)).map(|name| format!("`{name}` is missing"))
    };
    wrong.or_else(missing)
}

/// `parameters` of `submit`, where the answer is JSON that fits `schema`: its definitions stand at the top, where references
/// look for them.
pub fn answering(parameters: &Value, schema: &Value) -> Value {
    let mut parameters = parameters.clone();
    let mut answer = schema.clone();
    let words = parameters["properties"]["answer"]["description"].take();
    if let Value::Object(keywords) = &mut answer {
        ["$schema", "$id"].iter().for_each(|name| drop(keywords.remove(*name)));
        for name in ["$defs", "definitions"] {
            if let Some(definitions) = keywords.remove(name) {
                parameters[name] = definitions;
            }
        }
        if !words.is_null() {
            keywords.entry("description").or_insert(words);
        }
    }
    parameters["properties"]["answer"] = answer;
    parameters
}

/// The arguments in one line: `{"path": text, "limit"?: whole number from 1}`.
pub fn signature(schema: &Value) -> String {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, field): (&String, &Value)| {
        format!("\"{name}\"{}: {}", if is_required(schema, name) { "" } else { "?" }, kind(field))
    };
    format!("{{{}}}", fields.map(field).collect::<Vec<_>>().join(", "))
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

fn fits(field: &Value, value: &Value) -> bool {
    match field["type"].as_str() {
        Some("string") => value.is_string() && field["enum"].as_array().is_none_or(|words| words.contains(value)),
        Some("boolean") => value.is_boolean(),
        Some("object") => mismatch(field, value).is_none(),
        Some("array") => value.as_array().is_some_and(|items| items.iter().all(|item| fits(&field["items"], item))),
        _ => whole(value).is_some_and(|number| {
            let bound = |name: &str| field[name].as_u64();
            bound("minimum").is_none_or(|least| number >= least) && bound("maximum").is_none_or(|most| number <= most)
        }),
    }
}

/// A whole number that is not negative.
pub fn whole(value: &Value) -> Option<u64> {
    let from_float = |number: f64| {
        let sound = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
        sound.then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(from_float))
}

fn kind(field: &Value) -> String {
    match field["type"].as_str() {
        Some("string") => match field["enum"].as_array().map(Vec::as_slice) {
            Some([first @ .., last]) => {
                let first: Vec<String> = first.iter().map(Value::to_string).collect();
                format!("{} or {last}", first.join(", "))
            }
            Some([]) | None => "text".to_owned(),
        },
        Some("object") => signature(field),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => format!("[{}, …]", kind(&field["items"])),
        _ => {
            let bound = |word: &str, name: &str| field[name].as_u64().map_or(String::new(), |number| format!(" {word} {number}"));
            format!("whole number{}{}", bound("from", "minimum"), bound("to", "maximum"))
        }
    }
}

/// A value, short enough to be repeated.
fn cut(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    if text.len() <= MOST { text } else { format!("{}…", &text[..text.floor_char_boundary(MOST)]) }
}
