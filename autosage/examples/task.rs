//! Gives an agent a task and prints what it answered: the smallest whole program that runs agents.
//!
//! ```text
//! cargo run --example task
//! ```
//! The model is a script, so that this runs without a server; `own_model.rs` shows how to put another in its place.

#![allow(clippy::print_stdout, reason = "an example prints")]

use autosage::engine::{self, Engine, Environments, Harness, Interrupt};
use autosage::model::{ScriptedModel, Step};
use autosage::sandbox::{self, EnvironmentSpec, Kind, Program, Sandbox};
use autosage::tools;
use autosage::trace::{Clock, Durability, Event, Facts, Grant, Ids, Limits, Moment, Part, Record, Task};
use autosage::{RandomIds, RealClock};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    // The sandbox re-executes this program; nothing may stand before this line.
    sandbox::enter(tools::OPS);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(go())
}

async fn go() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("autosage-example-{}", std::process::id()));
    let (work, session) = (folder.join("work"), folder.join("session"));
    for needed in [&work, &session.join("home"), &session.join("tmp")] {
        std::fs::create_dir_all(needed)?;
    }

    // Who thinks.
    let model = ScriptedModel::new([
        Step::text("I count them.").then_call("bash", serde_json::json!({"command": "touch a b c; ls | wc -l"})),
        Step::text("There are three files."),
        Step::text("Three, as you asked."),
    ]);
    // What the agent can do, in whose words, and behind which walls.
    let harness = Harness::embedded()?;
    let toolbox = tools::builtin(&|name| harness.tool(name))?;
    let sandbox = Sandbox::start(Kind::Native, Program::Current)?;
    let spec = EnvironmentSpec {
        workspace: work.canonicalize()?,
        grant: Grant::default(),
        home: session.join("home"),
        tmp: session.join("tmp"),
        hidden: Vec::new(),
        user_home: None,
        limits: sandbox::Limits::default(),
        access: sandbox::Access::Write,
        names: sandbox::Names::default(),
    };
    let environments = Environments::new(&sandbox, spec);
    let (clock, interrupt) = (Arc::new(RealClock::new()), Interrupt::default());
    let engine = Engine {
        model: &model,
        // Who is asked where that one is not to be had: none.
        fallback: &[],
        toolbox: &toolbox,
        environments: &environments,
        clock: clock.as_ref(),
        interrupt: &interrupt,
        heard: &|_| {},
    };

    // What is asked, and where it is written down.
    let assignment = engine::Assignment {
        run: RandomIds.run(clock.now()),
        task: Task {
            parts: vec![Part::text("Make three files and count them.")],
            workspace: work.canonicalize()?,
            checks: Vec::new(),
        },
        limits: Limits { turns: Some(10), ..Limits::default() },
        max_claims: 3,
        grant: Grant::default(),
        terms: trace::Terms::default(),
        output_schema: None,
        labels: Default::default(),
    };
    let surroundings = engine::Surroundings {
        facts: Facts { date: clock.now().date(), os: "linux".to_owned(), git: None, backend: "native".to_owned() },
        ..Default::default()
    };
    let watch = |moment: Moment, event: &Event, _: &str| match moment {
        Moment::Before => {}
        Moment::Written => println!("{} {}", event.seq, event.what.kind()),
    };
    let record = Record::create(&folder.join("run"), Durability::Power, clock.clone(), Box::new(watch))?;
    let mut run = engine::start(&engine, record, harness.clone(), assignment, surroundings).await?;

    let outcome = engine::run(&engine, &mut run).await?;
    println!("{}: {}", outcome.word(), run.progress().answer().unwrap_or_default());

    // A run is a conversation: a message reopens it, with the same history and the same record.
    run.hear(vec![Part::text("And how many did I ask for?")])?;
    let outcome = engine::run(&engine, &mut run).await?;
    println!("{}: {}", outcome.word(), run.progress().answer().unwrap_or_default());

    environments.close().await;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
