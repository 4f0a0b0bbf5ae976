//! Where a run begins, and where a later session goes on with it.

use crate::engine::{Engine, EngineError, Run};
use crate::harness::{Harness, fill};
use crate::progress::Progress;
use crate::project;
use std::collections::BTreeMap;
use tools::Toolbox;
use trace::{
    Delivered, Delivery, Event, Facts, Grant, Granted, Limits, ModelSpec, Program, ProjectFile, Record, RunId, Started, Task,
    Terms, What,
};

/// What a new run is told to do, and within which limits.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The run's name.
    pub run: RunId,
    /// What is asked.
    pub task: Task,
    /// What may be spent.
    pub limits: Limits,
    /// How many claims the checks judge.
    pub max_claims: u32,
    /// The rights beyond the workspace.
    pub grant: Grant,
    /// How more of them are had.
    pub terms: Terms,
    /// The JSON Schema that answers are to fit, where they are to be JSON. The engine's toolbox is told of it too, so that
    /// `submit` takes such an answer: `let toolbox = toolbox.answering(&schema);`.
    pub output_schema: Option<serde_json::Value>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// What the binary knows of the surroundings of a run; the engine adds what it reads in the workspace.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Facts, captured once. `git` is filled in from the workspace.
    pub facts: Facts,
    /// The person's own instructions.
    pub project: Vec<ProjectFile>,
    /// The program.
    pub program: Program,
}

/// Begins a run: reads the project's instructions inside the walls, and writes down all that its prompts are made of.
///
/// # Errors
/// Where the toolbox takes other answers than the assignment says, the walls cannot be raised, or the disk refuses.
pub async fn start(
    engine: &Engine<'_>,
    record: Record,
    harness: Harness,
    assignment: Assignment,
    surroundings: Surroundings,
) -> Result<Run, EngineError> {
    agree(engine.toolbox, &assignment)?;
    // Kept first: the contents go to the disk while the walls are raised.
    let kept = harness.keep(record.blobs())?;
    let environment = engine.environments.agent(&assignment.grant).await?;
    let found = project::look(&environment, &assignment.task.workspace, record.secrets()).await;
    let mut facts = surroundings.facts;
    facts.git = found.git;
    let started = Started {
        run: assignment.run,
        task: assignment.task,
        harness: kept,
        tools: engine.toolbox.specs().to_vec(),
        project: surroundings.project.into_iter().chain(found.files).collect(),
        unread: found.unread,
        facts,
        model: engine.model.spec().clone(),
        fallback: engine.fallback.iter().map(|model| model.spec().clone()).collect(),
        limits: assignment.limits,
        max_claims: assignment.max_claims,
        grant: assignment.grant,
        terms: assignment.terms,
        program: surroundings.program,
        output_schema: assignment.output_schema,
        labels: assignment.labels,
    };
    let contents = record.blobs().contents();
    let mut run = Run::new(record, Progress::new(harness, contents));
    run.note(None, What::Started(Box::new(started)))?;
    Ok(run)
}

/// Whether the toolbox takes the answers that the assignment asks for.
fn agree(toolbox: &Toolbox, assignment: &Assignment) -> Result<(), EngineError> {
    if toolbox.answer_schema() == assignment.output_schema.as_ref() { Ok(()) } else { Err(EngineError::OtherAnswer) }
}

/// Folds the events of a run that is owned again. Nothing is written.
///
/// # Errors
/// Where its harness cannot be read from the record.
pub fn reopen(record: Record, events: &[Event]) -> Result<Run, EngineError> {
    let Some(What::Started(started)) = events.first().map(|event| &event.what) else {
        return Err(EngineError::NoStart(record.folder().to_owned()));
    };
    let harness = Harness::from_record(&started.harness, record.blobs())?;
    let progress = Progress::of(harness, record.blobs().contents(), events);
    Ok(Run::new(record, progress))
}

/// What is otherwise in a new session. What is absent stays as it was.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Limits that a person raised; the default raises none.
    pub limits: Limits,
    /// Rights beyond those of before; the default adds none.
    pub grant: Grant,
    /// The model that is asked.
    pub model: Option<ModelSpec>,
    /// The models that are asked in this order where the one before is not to be had.
    pub fallback: Option<Vec<ModelSpec>>,
    /// The kind of walls.
    pub backend: Option<String>,
    /// How more rights are had.
    pub terms: Option<Terms>,
}

impl Run {
    /// Goes on in a new session: writes down what a person granted, and tells the agent of that and that its processes are gone.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn go_on(&mut self, changes: Changes) -> Result<(), EngineError> {
        let Changes { limits, grant, .. } = changes;
        let rights = grant.to_string();
        if limits != Limits::default() || !grant.is_empty() {
            self.note(None, What::Granted(Granted { limits, grant }))?;
        }
        let notes = self.progress().harness().notes();
        let granted = (!rights.is_empty()).then(|| fill(&notes.granted, &[("rights", &rights)]));
        let walls = changes.backend.as_ref().map(|backend| fill(&notes.other_walls, &[("backend", backend)]));
        let lost = self.progress().has_lost_its_end().then(|| notes.lost.clone());
        let was_read_only = self.progress().terms().read_only;
        let access = changes.terms.as_ref().and_then(|terms| match (was_read_only, terms.read_only) {
            (false, true) => Some(notes.read_only.clone()),
            (true, false) => Some(notes.writable.clone()),
            (true, true) | (false, false) => None,
        });
        let text =
            [Some(notes.session.clone()), lost, walls, granted, access].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let (model, terms) = (changes.model.map(Box::new), changes.terms.map(Box::new));
        let what = Delivery::Session { text, model, backend: changes.backend, terms, fallback: changes.fallback };
        self.note(None, What::Delivered(Delivered { name: String::new(), what })).map(|_| ())
    }

    /// Takes in what the person says next.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn hear(&mut self, parts: Vec<trace::Part>) -> Result<(), EngineError> {
        let what = Delivery::Message { parts };
        self.note(None, What::Delivered(Delivered { name: String::new(), what })).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_toolbox_that_takes_other_answers_is_refused() {
        let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
        let assignment = |output_schema: Option<&Value>| Assignment {
            run: "test".parse().unwrap(),
            task: Task { parts: vec![trace::Part::text("Count.")], workspace: "/".into(), checks: Vec::new() },
            limits: Limits::default(),
            max_claims: 1,
            grant: Grant::default(),
            terms: Terms::default(),
            output_schema: output_schema.cloned(),
            labels: BTreeMap::new(),
        };
        let harness = Harness::embedded().unwrap();
        let toolbox = || tools::builtin(&|name| harness.tool(name)).unwrap();
        for (toolbox, asked, fits) in [
            (toolbox(), None, true),
            (toolbox(), Some(&schema), false),
            (toolbox().answering(&schema), None, false),
            (toolbox().answering(&schema), Some(&schema), true),
            (toolbox().answering(&json!({"type": "array"})), Some(&schema), false),
        ] {
            assert_eq!(agree(&toolbox, &assignment(asked)).is_ok(), fits, "{asked:?}");
        }
    }
}
