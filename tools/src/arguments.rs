//! What the built-in tools take: the arguments as types, and the same as JSON Schemas without a word of prose.

use crate::plan::Plan;
use crate::schema;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::{Value, json};

/// Seconds that a command may take unless its call says otherwise.
pub const TIMEOUT: u64 = 120;
/// Seconds that a command may take at most.
const LONGEST: u64 = 3600;

/// The built-in tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Runs a command.
    Bash,
    /// Shows a file, a folder or a kept output.
    Read,
    /// Makes or replaces a file.
    Write,
    /// Changes a passage of a file.
    Edit,
    /// Searches files.
    Search,
    /// Finds files by name.
    Find,
    /// Keeps the list of what the agent is about to do.
    Plan,
    /// Claims that the task is done.
    Submit,
}

impl Builtin {
    /// All of them, in the order in which a model sees them.
    pub const ALL: [Builtin; 8] = [
        Builtin::Bash,
        Builtin::Read,
        Builtin::Write,
        Builtin::Edit,
        Builtin::Search,
        Builtin::Find,
        Builtin::Plan,
        Builtin::Submit,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Bash => "bash",
            Builtin::Read => "read",
            Builtin::Write => "write",
            Builtin::Edit => "edit",
            Builtin::Search => "search",
            Builtin::Find => "find",
            Builtin::Plan => "plan",
            Builtin::Submit => "submit",
        }
    }

    /// Whether it leaves the world as it was.
    pub fn is_read_only(self) -> bool {
        match self {
            Builtin::Read | Builtin::Search | Builtin::Find | Builtin::Plan => true,
            Builtin::Bash | Builtin::Write | Builtin::Edit | Builtin::Submit => false,
        }
    }

    /// The schema of its arguments. That there are no others is not said, to keep requests short: a call with another one is
    /// answered with what the tool takes.
    pub fn schema(self) -> Value {
        let text = || json!({"type": "string"});
        let count = || json!({"type": "integer", "minimum": 1});
        let (properties, required) = match self {
            Builtin::Bash => {
                let timeout = json!({"type": "integer", "minimum": 1, "maximum": LONGEST});
                let names = json!({"type": "array", "items": text()});
                let wider = json!({"type": "boolean"});
                // A call may only stop something.
                let fields = json!({
                    "command": text(), "timeout": timeout, "stop": names, "network": wider, "write": names, "why": text(),
                });
                (fields, json!([]))
            }
            Builtin::Read => (json!({"path": text(), "offset": count(), "limit": count()}), json!(["path"])),
            Builtin::Write => (json!({"path": text(), "content": text()}), json!(["path", "content"])),
            Builtin::Edit => {
                let all = json!({"type": "boolean"});
                (json!({"path": text(), "old": text(), "new": text(), "all": all}), json!(["path", "old", "new"]))
            }
            Builtin::Search => {
                let context = json!({"type": "integer", "minimum": 0});
                let more = json!({"pattern": text(), "path": text(), "glob": text(), "context": context, "limit": count()});
                (more, json!(["pattern"]))
            }
            Builtin::Find => (json!({"glob": text(), "path": text(), "all": {"type": "boolean"}}), json!(["glob"])),
            Builtin::Plan => {
                let stages = json!({"type": "string", "enum": ["pending", "doing", "done"]});
                let step =
                    json!({"type": "object", "properties": {"text": text(), "status": stages}, "required": ["text", "status"]});
                (json!({"items": {"type": "array", "items": step}}), json!(["items"]))
            }
            Builtin::Submit => (json!({"answer": text()}), json!(["answer"])),
        };
        let mut schema = json!({"type": "object", "properties": properties});
        // Some servers refuse an empty list.
        if required != json!([]) {
            schema["required"] = required;
        }
        schema
    }

    /// The arguments of a call of it.
    ///
    /// # Errors
    /// Where they are not as the schema says, in words for the agent: what is wrong, and what is expected.
    pub fn parse(self, arguments: &Value) -> Result<Arguments, String> {
        let schema = self.schema();
        let parsed = match schema::mismatch(&schema, arguments) {
            Some(why) => Err(why),
            None => self.typed(arguments).map_err(|error| error.to_string()),
        };
        let parsed = parsed.and_then(Arguments::checked);
        parsed.map_err(|why| format!("{why}. {} takes {}", self.name(), schema::signature(&schema)))
    }

    fn typed(self, arguments: &Value) -> serde_json::Result<Arguments> {
        match self {
            Builtin::Bash => Bash::deserialize(arguments).map(Arguments::Bash),
            Builtin::Read => Read::deserialize(arguments).map(Arguments::Read),
            Builtin::Write => Write::deserialize(arguments).map(Arguments::Write),
            Builtin::Edit => Edit::deserialize(arguments).map(Arguments::Edit),
            Builtin::Search => Search::deserialize(arguments).map(Arguments::Search),
            Builtin::Find => Find::deserialize(arguments).map(Arguments::Find),
            Builtin::Plan => Plan::deserialize(arguments).map(Arguments::Plan),
            Builtin::Submit => Ok(Arguments::Submit),
        }
    }
}

/// The arguments of a call.
#[derive(Debug)]
pub enum Arguments {
    /// Of `bash`.
    Bash(Bash),
    /// Of `read`.
    Read(Read),
    /// Of `write`.
    Write(Write),
    /// Of `edit`.
    Edit(Edit),
    /// Of `search`.
    Search(Search),
    /// Of `find`.
    Find(Find),
    /// Of `plan`.
    Plan(Plan),
    /// Of `submit`, which whoever judges claims reads.
    Submit,
}

impl Arguments {
    /// These, unless they want more than is granted and do not say why, or are a plan that nobody could follow.
    fn checked(self) -> Result<Arguments, String> {
        match self {
            Arguments::Bash(bash) if bash.wants_more() && bash.why.trim().is_empty() => {
                Err("`why` is missing: whoever is asked for more rights must know what for".to_owned())
            }
            Arguments::Plan(plan) => plan.checked().map(Arguments::Plan),
            other => Ok(other),
        }
    }
}

/// Arguments of `bash`.
#[derive(Debug, serde::Deserialize)]
pub struct Bash {
    /// For bash.
    #[serde(default, deserialize_with = "or_default")]
    pub command: String,
    /// Seconds.
    #[serde(default, deserialize_with = "whole")]
    pub timeout: Option<u64>,
    /// Names of processes to stop first.
    #[serde(default, deserialize_with = "or_default")]
    pub stop: Vec<String>,
    /// Whether the host's network is wanted.
    #[serde(default, deserialize_with = "or_default")]
    pub network: bool,
    /// Files and folders that it wants to write.
    #[serde(default, deserialize_with = "or_default")]
    pub write: Vec<String>,
    /// Why it wants them.
    #[serde(default, deserialize_with = "or_default")]
    pub why: String,
}

impl Bash {
    /// Whether rights are wanted that may lie beyond the grant.
    pub fn wants_more(&self) -> bool {
        self.network || !self.write.is_empty()
    }
}

/// Arguments of `read`.
#[derive(Debug, serde::Deserialize)]
pub struct Read {
    /// A file, a folder or `output:…`.
    pub path: String,
    /// The first line, from 1.
    #[serde(default, deserialize_with = "whole")]
    pub offset: Option<u64>,
    /// The most lines.
    #[serde(default, deserialize_with = "whole")]
    pub limit: Option<u64>,
}

/// Arguments of `write`.
#[derive(Debug, serde::Deserialize)]
pub struct Write {
    /// The file.
    pub path: String,
    /// All of its content.
    pub content: String,
}

/// Arguments of `edit`.
#[derive(Debug, serde::Deserialize)]
pub struct Edit {
    /// The file.
    pub path: String,
    /// The passage.
    pub old: String,
    /// What comes in its place.
    pub new: String,
    /// Whether every occurrence is meant.
    #[serde(default, deserialize_with = "or_default")]
    pub all: bool,
}

/// Arguments of `search`.
#[derive(Debug, serde::Deserialize)]
pub struct Search {
    /// A regular expression.
    pub pattern: String,
    /// A file or a folder.
    #[serde(default)]
    pub path: Option<String>,
    /// Which files.
    #[serde(default)]
    pub glob: Option<String>,
    /// Lines around each match.
    #[serde(default, deserialize_with = "whole")]
    pub context: Option<u64>,
    /// The most matching lines.
    #[serde(default, deserialize_with = "whole")]
    pub limit: Option<u64>,
}

/// Arguments of `find`.
#[derive(Debug, serde::Deserialize)]
pub struct Find {
    /// What names or paths are like.
    pub glob: String,
    /// A file or a folder.
    #[serde(default)]
    pub path: Option<String>,
    /// Whether what is ignored counts too.
    #[serde(default, deserialize_with = "or_default")]
    pub all: bool,
}

/// A value that may be given as null, as models do for what they leave out.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    value.map(|value| schema::whole(&value).ok_or_else(|| D::Error::custom("a whole number is expected"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(tool: Builtin, arguments: Value, expected: Expect) {
        let said = match tool.parse(&arguments) {
            Ok(parsed) => format!("{parsed:?}"),
            Err(why) => why,
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn good_arguments_are_typed() {
        check(
            Builtin::Bash,
            json!({"command": "ls"}),
            expect![[r#"Bash(Bash { command: "ls", timeout: None, stop: [], network: false, write: [], why: "" })"#]],
        );
        check(
            Builtin::Bash,
            json!({"command": "", "timeout": 30.0, "stop": ["c1"]}),
            expect![[r#"Bash(Bash { command: "", timeout: Some(30), stop: ["c1"], network: false, write: [], why: "" })"#]],
        );
        check(
            Builtin::Bash,
            json!({"command": "", "timeout": null, "stop": null}),
            expect![[r#"Bash(Bash { command: "", timeout: None, stop: [], network: false, write: [], why: "" })"#]],
        );
        check(
            Builtin::Edit,
            json!({"path": "a", "old": "b", "new": "", "all": true}),
            expect![[r#"Edit(Edit { path: "a", old: "b", new: "", all: true })"#]],
        );
        check(
            Builtin::Search,
            json!({"pattern": "b", "context": 0, "glob": null}),
            expect![[r#"Search(Search { pattern: "b", path: None, glob: None, context: Some(0), limit: None })"#]],
        );
    }

    #[test]
    fn bad_arguments_say_what_is_expected() {
        check(
            Builtin::Bash,
            json!({"cmd": "ls"}),
            expect![[
                r#"there is no argument `cmd`. bash takes {"command"?: text, "network"?: true or false, "stop"?: [text, …], "timeout"?: whole number from 1 to 3600, "why"?: text, "write"?: [text, …]}"#
            ]],
        );
        check(
            Builtin::Bash,
            json!({"command": "ls", "timeout": 0}),
            expect![[
                r#"`timeout` is 0; expected: whole number from 1 to 3600. bash takes {"command"?: text, "network"?: true or false, "stop"?: [text, …], "timeout"?: whole number from 1 to 3600, "why"?: text, "write"?: [text, …]}"#
            ]],
        );
        check(
            Builtin::Bash,
            json!({"command": "ls", "timeout": "30"}),
            expect![[
                r#"`timeout` is "30"; expected: whole number from 1 to 3600. bash takes {"command"?: text, "network"?: true or false, "stop"?: [text, …], "timeout"?: whole number from 1 to 3600, "why"?: text, "write"?: [text, …]}"#
            ]],
        );
        check(
            Builtin::Bash,
            json!({"command": "ls", "stop": "c1"}),
            expect![[
                r#"`stop` is "c1"; expected: [text, …]. bash takes {"command"?: text, "network"?: true or false, "stop"?: [text, …], "timeout"?: whole number from 1 to 3600, "why"?: text, "write"?: [text, …]}"#
            ]],
        );
        check(
            Builtin::Read,
            json!({"path": "a", "offset": 0}),
            expect![[
                r#"`offset` is 0; expected: whole number from 1. read takes {"limit"?: whole number from 1, "offset"?: whole number from 1, "path": text}"#
            ]],
        );
        check(
            Builtin::Read,
            json!({"path": "a", "offset": -3}),
            expect![[
                r#"`offset` is -3; expected: whole number from 1. read takes {"limit"?: whole number from 1, "offset"?: whole number from 1, "path": text}"#
            ]],
        );
        check(
            Builtin::Read,
            json!({"path": "a", "limit": 1.5}),
            expect![[
                r#"`limit` is 1.5; expected: whole number from 1. read takes {"limit"?: whole number from 1, "offset"?: whole number from 1, "path": text}"#
            ]],
        );
        check(
            Builtin::Read,
            json!({"path": null}),
            expect![[
                r#"`path` is null; expected: text. read takes {"limit"?: whole number from 1, "offset"?: whole number from 1, "path": text}"#
            ]],
        );
        check(
            Builtin::Edit,
            json!({"path": "a", "old": 3, "new": "b".repeat(99)}),
            expect![[
                r#"`old` is 3; expected: text. edit takes {"all"?: true or false, "new": text, "old": text, "path": text}"#
            ]],
        );
        check(
            Builtin::Write,
            json!({"path": "a"}),
            expect![[r#"`content` is missing. write takes {"content": text, "path": text}"#]],
        );
        check(
            Builtin::Submit,
            json!("done"),
            expect![[r#"the arguments are "done", not an object. submit takes {"answer": text}"#]],
        );
        check(
            Builtin::Submit,
            json!(["done"]),
            expect![[r#"the arguments are ["done"], not an object. submit takes {"answer": text}"#]],
        );
    }
}
