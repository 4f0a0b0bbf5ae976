//! The tools that a model may call, and the one function that answers a call.

use crate::arguments::{Arguments, Builtin};
use crate::room::{Room, Trouble};
use crate::specs::{ToolsError, spec};
use crate::{bash, files, find, outputs, schema, search};
use serde_json::Value;
use trace::{Observed, Status, ToolCall, ToolSpec};

/// The tools that a model may call.
#[derive(Clone, Debug)]
pub struct Toolbox {
    specs: Vec<ToolSpec>,
    tools: Vec<Builtin>,
    /// The schema of what `submit` takes as its answer, where that is JSON and not words.
    answer: Option<Value>,
}

/// The built-in tools that `texts` describes: `texts("bash")` is the content of the harness's `tools/bash/tool.toml`.
///
/// # Errors
/// Where a text is no TOML, or describes an argument that there is not.
pub fn builtin(texts: &dyn Fn(&str) -> Option<String>) -> Result<Toolbox, ToolsError> {
    let mut toolbox = Toolbox { specs: Vec::new(), tools: Vec::new(), answer: None };
    for tool in Builtin::ALL {
        if let Some(text) = texts(tool.name()) {
            toolbox.specs.push(spec(tool, &text)?);
            toolbox.tools.push(tool);
        }
    }
    Ok(toolbox)
}

impl Toolbox {
    /// Those of its tools that are named, in that order.
    ///
    /// # Errors
    /// Where a name is that of no tool in it.
    pub fn only(self, names: &[String]) -> Result<Toolbox, ToolsError> {
        let place = |name: &String| {
            let known = || self.specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ");
            let found = self.specs.iter().position(|spec| spec.name == *name);
            found.ok_or_else(|| ToolsError::Unknown { name: name.clone(), known: known() })
        };
        let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let specs = places.iter().map(|&at| self.specs[at].clone()).collect();
        Ok(Toolbox { specs, tools: places.iter().map(|&at| self.tools[at]).collect(), answer: self.answer })
    }

    /// The same tools, but the answer that `submit` takes is JSON, which `schema` tells the model of. Whether an answer fits it
    /// is not asked here: one that does not is a claim that fails.
    pub fn answering(mut self, schema: &Value) -> Toolbox {
        self.answer = Some(schema.clone());
        for spec in self.specs.iter_mut().filter(|spec| spec.name == Builtin::Submit.name()) {
            spec.parameters = schema::answering(&spec.parameters, schema);
        }
        self
    }

    /// The schema that it was made [`answering`](Toolbox::answering) to.
    pub fn answer_schema(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// What a model is told of them.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Whether `arguments` are what the tool `name` takes.
    ///
    /// # Errors
    /// Where they are not, or there is no such tool: words for the agent that say what is wrong and what is expected.
    pub fn check(&self, name: &str, arguments: &Value) -> Result<(), String> {
        self.parse(name, arguments).map(|_| ())
    }

    /// What comes of a call that needs no environment; nothing where it does, or is not usable.
    pub fn outright(&self, call: &ToolCall) -> Option<Observed> {
        match self.parse(&call.name, &call.arguments) {
            Ok(Arguments::Plan(plan)) => Some(Observed::words(call.id.clone(), Status::Ok, plan.told())),
            _ => None,
        }
    }

    /// Does what `call` asks for and tells what came of it; `took_ms` is the caller's to fill.
    ///
    /// `submit` is answered by whoever judges claims; here it is refused.
    pub async fn serve(&self, call: &ToolCall, room: &Room<'_>) -> Observed {
        let mut observed = Observed { content: Vec::new(), ..Observed::words(call.id.clone(), Status::Ok, "") };
        let served = match self.parse(&call.name, &call.arguments) {
            Err(why) => Err(Trouble::failed(why)),
            Ok(Arguments::Bash(arguments)) => bash::serve(&arguments, room, &mut observed).await,
            Ok(Arguments::Read(arguments)) => match arguments.path.strip_prefix("output:") {
                Some(name) => outputs::read(name, &arguments, room, &mut observed).await,
                None => files::read(&arguments, room, &mut observed).await,
            },
            Ok(Arguments::Write(arguments)) => files::write(arguments, room, &mut observed).await,
            Ok(Arguments::Edit(arguments)) => files::edit(arguments, room, &mut observed).await,
            Ok(Arguments::Search(arguments)) => search::serve(arguments, room, &mut observed).await,
            Ok(Arguments::Find(arguments)) => find::serve(arguments, room, &mut observed).await,
            Ok(Arguments::Plan(plan)) => Ok(plan.told()),
            Ok(Arguments::Submit) => Err(Trouble::failed("a claim is judged when all other calls are served")),
        };
        match served {
            Ok(words) => observed.content.insert(0, trace::Part::text(words)),
            Err(trouble) => {
                observed.status = trouble.status;
                observed.content = vec![trace::Part::text(trouble.words)];
            }
        }
        observed
    }

    fn parse(&self, name: &str, arguments: &Value) -> Result<Arguments, String> {
        match self.tools.iter().find(|tool| tool.name() == name) {
            // Whether the answer fits the run's schema is judged as a claim is.
            Some(Builtin::Submit) if self.answer.is_some() => match arguments.get("answer") {
                Some(_) => Ok(Arguments::Submit),
                None => Err("`answer` is missing. submit takes {\"answer\": what its schema says}".to_owned()),
            },
            Some(tool) => tool.parse(arguments),
            None => Err(format!("there is no tool `{name}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn default_harness() -> Toolbox {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/default/tools");
        builtin(&|name| std::fs::read_to_string(format!("{folder}/{name}/tool.toml")).ok()).unwrap()
    }

    #[test]
    fn the_default_definitions_are_small_and_in_order() {
        let toolbox = default_harness();
        let names: Vec<&str> = toolbox.specs().iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["bash", "read", "write", "edit", "search", "find", "plan", "submit"]);
        let bytes = serde_json::to_string(toolbox.specs()).unwrap().len();
        assert!(bytes < 3500, "{bytes} bytes of every first request");
    }

    #[test]
    fn tools_that_the_harness_turns_off_are_not_there() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let toolbox = default_harness().only(&names(&["submit", "read"])).unwrap();
        assert_eq!(toolbox.specs().iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["submit", "read"]);
        expect!["there is no tool `bash`"].assert_eq(&toolbox.check("bash", &json!({"command": "ls"})).unwrap_err());
        let unknown = default_harness().only(&names(&["reed"])).unwrap_err().to_string();
        expect!["the harness turns on the tool `reed`, but describes only: bash, read, write, edit, search, find, plan, submit"]
            .assert_eq(&unknown);
    }

    #[test]
    fn the_answer_of_a_run_with_a_schema_is_json() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array", "items": {"$ref": "#/$defs/n"},
            "$defs": {"n": {"type": "integer"}},
        });
        let plain = default_harness();
        assert_eq!(plain.answer_schema(), None);
        let toolbox = plain.answering(&schema);
        assert_eq!(toolbox.answer_schema(), Some(&schema));
        let submit = toolbox.specs().iter().find(|spec| spec.name == "submit").unwrap();
        expect![[r##"{"$defs":{"n":{"type":"integer"}},"properties":{"answer":{"description":"What the person is told.","items":{"$ref":"#/$defs/n"},"type":"array"}},"required":["answer"],"type":"object"}"##]].assert_eq(&submit.parameters.to_string());
        toolbox.check("submit", &json!({"answer": ["whatever"]})).unwrap();
        expect![[r#"`answer` is missing. submit takes {"answer": what its schema says}"#]]
            .assert_eq(&toolbox.check("submit", &json!({"result": 1})).unwrap_err());
    }

    #[test]
    fn what_is_accepted_is_what_the_definition_says() {
        let toolbox = default_harness();
        for spec in toolbox.specs() {
            let fields = spec.parameters["properties"].as_object().unwrap();
            let sample = |field: &Value| match field["type"].as_str().unwrap() {
                "string" => json!("text"),
                "boolean" => json!(true),
                "array" if field["items"]["type"] == "object" => json!([{"text": "look", "status": "done"}]),
                "array" => json!(["text"]),
                _ => json!(1),
            };
            let all: Value = fields.iter().map(|(name, field)| (name.clone(), sample(field))).collect();
            toolbox.check(&spec.name, &all).unwrap();
            for name in fields.keys() {
                let mut without = all.clone();
                without.as_object_mut().unwrap().remove(name);
                let required = spec.parameters["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
                // What wants more rights has to say why; a schema that says so is refused by some servers.
                let required = required || name == "why";
                assert_eq!(toolbox.check(&spec.name, &without).is_err(), required, "{} without {name}", spec.name);
            }
        }
    }
}
