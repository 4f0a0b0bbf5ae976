//! Secrets in the strings of JSON: the choke point of the record, and of whatever else is written as JSON.

use super::Secrets;
use serde_json::Value;

/// Whether opaque parts, which go back to the wire that made them as they came, may stand in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// Elements of `parts` with the type `opaque` are left as they are.
    Exempt,
    /// There are none.
    Absent,
}

impl Secrets {
    /// The JSON text `json` with a placeholder for each secret in its strings; `None` where it holds none.
    ///
    /// # Errors
    /// Where it is not JSON.
    pub fn hide_json(&self, json: &str, opaque: Opaque) -> serde_json::Result<Option<Value>> {
        // Every form in which a string can stand in JSON is looked for, so most lines are through with one search.
        if !self.finder().may_hold(json.as_bytes()) {
            return Ok(None);
        }
        let mut value = serde_json::from_str(json)?;
        Ok(self.hide_value(&mut value, opaque).then_some(value))
    }

    /// Hides secrets in all strings of `value`, keys included; says whether there were any.
    fn hide_value(&self, value: &mut Value, opaque: Opaque) -> bool {
        match value {
            Value::String(text) => self.hide_string(text),
            Value::Array(items) => self.hide_all(items.iter_mut(), opaque),
            Value::Object(fields) => {
                let mut any = false;
                for (name, field) in fields.iter_mut() {
                    any |= match (name.as_str(), field) {
                        ("parts", Value::Array(parts)) if opaque == Opaque::Exempt => {
                            self.hide_all(parts.iter_mut().filter(|part| part["type"] != "opaque"), opaque)
                        }
                        // What a model wrote as arguments is JSON itself, and its strings are what the call means.
                        ("arguments" | "raw", Value::String(text)) => self.hide_arguments(text),
                        (_, field) => self.hide_value(field, opaque),
                    };
                }
                let renamed: Vec<(String, String)> = fields
                    .keys()
                    .filter_map(|name| {
                        let mut hidden = name.clone();
                        self.hide_string(&mut hidden).then(|| (name.clone(), hidden))
                    })
                    .collect();
                for (name, hidden) in renamed {
                    any = true;
                    if let Some(field) = fields.remove(&name) {
                        fields.insert(hidden, field);
                    }
                }
                any
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn hide_all<'a>(&self, values: impl Iterator<Item = &'a mut Value>, opaque: Opaque) -> bool {
        values.map(|value| self.hide_value(value, opaque)).filter(|any| *any).count() > 0
    }

    fn hide_string(&self, text: &mut String) -> bool {
        match self.hide(text) {
            std::borrow::Cow::Owned(hidden) if hidden != *text => {
                *text = hidden;
                true
            }
            _ => false,
        }
    }

    fn hide_arguments(&self, text: &mut String) -> bool {
        match serde_json::from_str::<Value>(text) {
            Ok(mut arguments @ (Value::Object(_) | Value::Array(_))) => {
                let any = self.hide_value(&mut arguments, Opaque::Absent);
                if any {
                    *text = arguments.to_string();
                }
                any
            }
            _ => self.hide_string(text),
        }
    }
}
