//! A typed question: one request, whose answer is a value of the caller's own type.

use crate::RealClock;
use engine::{Harness, HarnessError, fill};
use model::{Ask, Message, Model, Prompt, Purse, SentPart, render};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use trace::{Fault, Replied, Said, Stop};
use verify::{Schema, SchemaError, json_in};

/// Why there is no answer of the type that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Answers cannot be held to the type.
    #[error("the schema of `{type_name}` cannot be used: {error}")]
    Schema {
        /// The type.
        type_name: &'static str,
        /// What is wrong with its schema.
        #[source]
        error: SchemaError,
    },
    /// The words for the model cannot be read.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The request has no usable answer; its class says whether to try again.
    #[error("the model did not answer: {}", .0.message)]
    Fault(Fault),
    /// The provider declines the question or the answer.
    #[error("the provider declines this: {0}")]
    Refused(String),
    /// The answer reached the length limit of the model's spec.
    #[error("the answer was cut off at {max_output} tokens: give the spec a larger `max_output`, or ask for less")]
    Cut {
        /// The limit.
        max_output: u64,
    },
    /// The answer did not fit, and did not after that was told either.
    #[error("the answer does not fit: {why}")]
    Misfit {
        /// The last answer.
        answer: String,
        /// What does not fit.
        why: String,
    },
}

/// Asks `model` a question whose answer is a `T`.
///
/// The model is held to the schema of `T` by its wire's own mechanism where it has one, and told of it in words. Every answer
/// is validated; one that does not fit is sent back once, with what is wrong. Fields that `T` does not have are not allowed,
/// also where reading it would pass over them: that is what providers enforce. A type that holds itself is asked for as a
/// field of another one.
///
/// It costs at most two requests, each with at most the `max_output` of the model's spec. To hold it to a budget, or to know
/// what it used (also where there is no answer), give it a [`Model`] of your own around the real one: that sets
/// [`Ask::purse`] and reads `usage` and `cost` of each [`Replied`].
///
/// # Errors
/// Where there is no such answer; nothing is spent where the schema of `T` cannot be used.
pub async fn ask<T: DeserializeOwned + JsonSchema>(model: &dyn Model, question: &str) -> Result<T, AskError> {
    let harness = Harness::embedded()?;
    let schema = schema_of::<T>()?;
    let system = fill(&harness.notes().ask, &[("schema", &schema.value().to_string())]);
    let mut messages = vec![Message::User(vec![SentPart::text(question)])];
    let first = once(model, &system, &messages, &schema).await?;
    let (answer, why) = match read(&first, &schema) {
        Ok(value) => return Ok(value),
        Err(misfit) => misfit,
    };
    messages.push(Message::Reply { parts: vec![Said::Text { text: answer }], calls: Vec::new() });
    messages.push(Message::User(vec![SentPart::Text(fill(&harness.notes().ask_misfit, &[("why", &why)]))]));
    let second = once(model, &system, &messages, &schema).await?;
    read(&second, &schema).map_err(|(answer, why)| AskError::Misfit { answer, why })
}

/// The schema of `T`, with all of its objects closed.
fn schema_of<T: JsonSchema>() -> Result<Schema, AskError> {
    let mut value = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    close(&mut value);
    Schema::new(value).map_err(|error| AskError::Schema { type_name: std::any::type_name::<T>(), error })
}

/// Closes every object in a schema that says which fields it has, unless it says that there may be more.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            if keywords.get("properties").is_some_and(Value::is_object) && keywords.get("type").is_some_and(|t| t == "object") {
                keywords.entry("additionalProperties").or_insert(false.into());
            }
            keywords.values_mut().for_each(close);
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One request; what the model says to it.
async fn once(model: &dyn Model, system: &str, messages: &[Message], schema: &Schema) -> Result<String, AskError> {
    let max_output = model.spec().max_output;
    let prompt = Prompt { system, tools: &[], messages, max_output, schema: Some(schema.value()) };
    let body = render(model.spec(), &prompt);
    let (clock, heard) = (RealClock::new(), |_: model::Heard<'_>| {});
    let replied = model.ask(Ask { body: &body, purse: Purse::default(), heard: &heard, clock: &clock }).await;
    let text = said(&replied);
    match replied.stop {
        Stop::End | Stop::Calls => Ok(text),
        Stop::Length => Err(AskError::Cut { max_output }),
        Stop::Refused => Err(AskError::Refused(text)),
        Stop::Error(fault) => Err(AskError::Fault(fault)),
    }
}

fn said(replied: &Replied) -> String {
    let words = replied.parts.iter().filter_map(|part| match part {
        Said::Text { text } => Some(text.as_str()),
        Said::Reasoning { .. } | Said::Opaque { .. } | Said::Call { .. } | Said::Cut { .. } => None,
    });
    words.collect()
}

/// The value in an answer, or the answer and what does not fit.
fn read<T: DeserializeOwned>(answer: &str, schema: &Schema) -> Result<T, (String, String)> {
    let json = json_in(answer);
    let read = match schema.misfit(json) {
        Some(why) => Err(why),
        None => serde_json::from_str(json).map_err(|error| error.to_string()),
    };
    read.map_err(|why| (answer.to_owned(), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::BoxFuture;
    use model::{ScriptedModel, Step};
    use serde::Deserialize;
    use std::sync::Mutex;
    use trace::{FaultClass, ModelSpec};

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Count {
        /// How many there are.
        count: u8,
    }

    /// A script, and the requests that it got.
    struct Asked(ScriptedModel, Mutex<Vec<String>>);

    impl Model for Asked {
        fn spec(&self) -> &ModelSpec {
            self.0.spec()
        }

        fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
            self.1.lock().unwrap().push(ask.body.to_owned());
            self.0.ask(ask)
        }
    }

    fn asked(steps: Vec<Step>) -> (Result<Count, AskError>, Vec<Value>) {
        let plain = ScriptedModel::new([]).spec().clone();
        let spec = ModelSpec { structured: Some(true), wire: "openai-chat".into(), ..plain };
        let model = Asked(ScriptedModel::new(steps).with_spec(spec), Mutex::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(ask(&model, "How many?"));
        let bodies = model.1.into_inner().unwrap();
        (answer, bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect())
    }

    #[test]
    fn an_answer_that_fits_is_a_value_and_takes_one_request() {
        let (answer, bodies) = asked(vec![Step::text("{\"count\": 3}")]);
        assert_eq!((answer.unwrap(), bodies.len()), (Count { count: 3 }, 1));
        let form = &bodies[0]["response_format"]["json_schema"];
        assert_eq!((&form["strict"], &form["schema"]["required"]), (&true.into(), &serde_json::json!(["count"])));
        assert!(bodies[0]["messages"][0]["content"].as_str().unwrap().contains("How many there are."));
    }

    #[test]
    fn one_that_does_not_fit_is_sent_back_once() {
        let (answer, bodies) = asked(vec![Step::text("Three."), Step::text("```json\n{\"count\": 3}\n```")]);
        assert_eq!((answer.unwrap(), bodies.len()), (Count { count: 3 }, 2));
        let told = bodies[1]["messages"].as_array().unwrap();
        assert_eq!((told.len(), &told[2]["content"]), (4, &"Three.".into()));
        assert!(told[3]["content"].as_str().unwrap().contains("it is not JSON"), "{told:?}");
        let (answer, bodies) = asked(vec![Step::text("{\"count\": 300}"), Step::text("{\"count\": 3, \"of\": 1}")]);
        let said = answer.unwrap_err().to_string();
        assert!(said.starts_with("the answer does not fit:") && said.contains("'of' was unexpected"), "{said}");
        assert_eq!(bodies.len(), 2);
    }

    #[test]
    fn what_is_no_answer_has_a_type_of_its_own() {
        let (refused, _) = asked(vec![Step::text("No.").stopped(Stop::Refused)]);
        assert!(matches!(refused, Err(AskError::Refused(words)) if words == "No."));
        let (cut, _) = asked(vec![Step::text("{\"count\"").stopped(Stop::Length)]);
        assert!(matches!(cut, Err(AskError::Cut { .. })));
        let (fault, bodies) = asked(vec![Step::fault(FaultClass::Unavailable, "overloaded")]);
        assert!(matches!(fault, Err(AskError::Fault(fault)) if fault.class == FaultClass::Unavailable));
        assert_eq!(bodies.len(), 1, "the model itself asks again where that can help");
    }

    #[derive(Deserialize, JsonSchema)]
    struct Tree {
        branches: Vec<Tree>,
    }

    #[test]
    fn a_type_that_holds_itself_is_refused_before_anything_is_asked() {
        let model = ScriptedModel::new([]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let branches = runtime.block_on(ask::<Tree>(&model, "?")).map(|tree| tree.branches.len());
        assert!(matches!(branches, Err(AskError::Schema { .. })), "{branches:?}");
    }
}
