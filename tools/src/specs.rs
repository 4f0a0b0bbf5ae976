//! What a model is told of the built-in tools: their schemas from code, every word from the harness.

use crate::arguments::Builtin;
use serde::Deserialize;
use std::collections::BTreeMap;
use trace::ToolSpec;

/// Why the texts of a harness do not describe the built-in tools.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// A `tool.toml` is not what it must be.
    #[error("tools/{tool}/tool.toml: {error}")]
    Text {
        /// The tool.
        tool: &'static str,
        /// What is wrong.
        #[source]
        error: toml::de::Error,
    },
    /// A `tool.toml` describes something that the tool does not take.
    #[error("tools/{tool}/tool.toml describes `{parameter}`, but {tool} takes only: {known}")]
    Parameter {
        /// The tool.
        tool: &'static str,
        /// What it describes.
        parameter: String,
        /// What there is.
        known: String,
    },
    /// A tool is named that the harness does not describe.
    #[error("the harness turns on the tool `{name}`, but describes only: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The tools that there are.
        known: String,
    },
}

/// The content of a `tool.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    description: String,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

/// The definition of `tool`, with the words of its `tool.toml`.
pub fn spec(tool: Builtin, text: &str) -> Result<ToolSpec, ToolsError> {
    let text: Text = toml::from_str(text).map_err(|error| ToolsError::Text { tool: tool.name(), error })?;
    let mut parameters = tool.schema();
    for (name, words) in text.parameters {
        match parameters["properties"].get_mut(&name) {
            Some(property) => property["description"] = words.into(),
            None => {
                let known = parameters["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned());
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(ToolsError::Parameter { tool: tool.name(), parameter: name, known });
            }
        }
    }
    Ok(ToolSpec { name: tool.name().to_owned(), description: text.description, parameters, read_only: tool.is_read_only() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn words_stand_beside_the_schema() {
        let spec = spec(Builtin::Submit, "description = 'Done.'\n[parameters]\nanswer = 'Words.'").unwrap();
        expect![[r#"{"name":"submit","description":"Done.","parameters":{"properties":{"answer":{"description":"Words.","type":"string"}},"required":["answer"],"type":"object"}}"#]].assert_eq(&serde_json::to_string(&spec).unwrap());
    }

    #[test]
    fn words_for_nothing_are_refused() {
        let said = |text: &str| spec(Builtin::Read, text).unwrap_err().to_string();
        expect!["tools/read/tool.toml describes `of`, but read takes only: limit, offset, path"]
            .assert_eq(&said("description = ''\n[parameters]\nof = 'x'"));
        expect![[r#"
            tools/read/tool.toml: TOML parse error at line 1, column 1
              |
            1 | descriptoin = ''
              | ^^^^^^^^^^^
            unknown field `descriptoin`, expected `description` or `parameters`
        "#]]
        .assert_eq(&said("descriptoin = ''"));
    }
}
