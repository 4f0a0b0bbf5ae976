//! `autosage run`: a new run.

use super::args::RunArgs;
use super::build;
use super::config::{Config, Usual};
use super::failure::Failure;
use super::home::Home;
use super::pictures::Pictures;
use super::print;
use super::project::{self, Settled};
use super::reply::Rules;
use super::schema;
use super::secrets;
use super::session::{FollowUp, Session, observer, runtime, warn_of_weak_walls};
use super::thinker::{Thinker, thinker};
use super::view::View;
use super::wiring;
use crate::Parts;
use anyhow::Context;
use engine::{Assignment, Harness, Surroundings};
use sandbox::Sandbox;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use trace::{Check, Durability, Facts, Grant, Limits, Program, ProjectFile, Record, Task, Terms};

/// The most that a task may be, in bytes.
const MAX_TASK: u64 = 1 << 20;

/// All that a new run is made from.
pub struct NewRun {
    /// What is asked.
    pub task: String,
    /// What goes with it.
    pub pictures: Pictures,
    /// Where the work lies.
    pub workspace: PathBuf,
    /// Who thinks.
    pub thinker: Thinker,
    /// The variable that holds its key, where that is not its usual one.
    pub key_env: Option<String>,
    /// What shapes the agent.
    pub harness: Harness,
    /// The rights beyond the workspace.
    pub grant: Grant,
    /// How more of them are had.
    pub terms: Terms,
    /// Whether an answer can be kept for always.
    pub rules: Rules,
    /// What may be spent.
    pub limits: Limits,
    /// What must hold at the end.
    pub checks: Vec<Check>,
    /// How many claims the checks judge.
    pub max_claims: u32,
    /// The walls.
    pub kind: sandbox::Kind,
    /// Those, where they are raised already.
    pub walls: Option<Sandbox>,
    /// What answers are to fit.
    pub output_schema: Option<serde_json::Value>,
    /// The person's own instructions.
    pub instructions: Vec<ProjectFile>,
    /// What its record survives.
    pub durability: Durability,
    /// Whether it stays open.
    pub follow_up: FollowUp,
    /// What is seen of it.
    pub view: View,
}

/// Reads what was typed and configured, and begins a run.
pub fn run(args: RunArgs, person: &Config, home: &Home, parts: &mut Parts) -> Result<u8, Failure> {
    let harness = wiring::harness(args.harness.as_deref())?;
    let workspace = wiring::workspace(args.workspace.as_deref())?;
    let usual = wiring::usual(&harness);
    let wanted = Usual { kind: args.sandbox.or(person.sandbox).unwrap_or_default(), limits: usual };
    let Settled { config, rules, walls } = project::settle(person, &workspace, wanted, home, parts)?;
    let kind = args.sandbox.or(config.sandbox).unwrap_or_default();
    let thinker = thinker(&args.model, &config, parts, None)?;
    let mut asked = wiring::limits(&args.budget, &config);
    let only_untrusted = rules.is_none() && args.budget.max_usd.or(person.budget.nano_usd).is_none();
    if let Some(spec) = thinker.unpriced().filter(|_| only_untrusted)
        && asked.nano_usd.take().is_some()
    {
        // A stranger does not decide that a run does not start.
        print(&parts.err, &format!("autosage: the project's `budget.usd` is not used: no price is known for `{}`\n", spec.id));
    }
    thinker.refuse_unpriced(&asked)?;
    let pictures = Pictures::read(&args.pictures.image)?;
    pictures.refuse_unseen(thinker.model.spec())?;
    let output_schema = schema::read(args.answer.output_schema.as_deref())?;
    let commands = if args.check.is_empty() { config.checks.clone() } else { args.check.clone() };
    // A blank command succeeds, so it would accept anything.
    if commands.iter().any(|command| command.trim().is_empty()) {
        return Err(Failure::usage("a check is empty: say which command must succeed"));
    }
    secrets::check_typed(&args.secret, parts)?;
    let grant = wiring::grant(&args.grant, &args.secret, &config.grant)?;
    let follow_up = FollowUp::fitting(parts, args.view.output());
    let terms = wiring::terms(args.approve, None, &config, rules.as_ref(), follow_up)?;
    let terms = Terms { read_only: args.read_only, ..terms };
    wiring::refuse_unkept(&terms, kind, &grant)?;
    let order = NewRun {
        task: task(&args)?,
        pictures,
        output_schema,
        workspace,
        thinker,
        key_env: args.model.key_env.clone().or(config.key_env.clone()),
        grant,
        terms,
        rules: Rules::of(rules.as_ref()),
        limits: Limits { turns: asked.turns.or(usual.turns), time_ms: asked.time_ms.or(usual.time_ms), ..asked },
        checks: commands.into_iter().map(|command| Check { command, timeout_ms: wiring::CHECK_MS }).collect(),
        max_claims: args.max_claims.unwrap_or(harness.settings().max_claims),
        harness,
        kind,
        walls,
        instructions: config.instructions.clone(),
        durability: args.durability.unwrap_or_default(),
        follow_up,
        view: View::new(args.view.output(), parts).ringing(config.bell),
    };
    begin(order, home, parts)
}

/// Begins a run and goes on with it until it rests. Returns the exit code.
pub fn begin(order: NewRun, home: &Home, parts: &mut Parts) -> Result<u8, Failure> {
    let NewRun { task: text, pictures, workspace, thinker, harness, grant, terms, limits, checks, max_claims, .. } = order;
    let NewRun { kind, walls, rules, instructions, durability, follow_up, view, key_env, output_schema, .. } = order;
    let now = parts.clock.now();
    let run = parts.ids.run(now);
    let secrets = secrets::of_run(&run, key_env.as_deref(), home, parts)?;
    let missing = secrets::grant(&secrets, &grant.secrets, parts)?;
    secrets::refuse_in(&harness, &secrets)?;
    thinker.hide(&secrets);
    view.say(&secrets::told_missing(&missing));
    let (folder, name) = (home.run(&run), run.to_string());
    thinker.mask(&run, &now.date(), &workspace, home, parts);
    let task = Task { parts: Vec::new(), workspace: workspace.clone(), checks };
    let access = wiring::access(&terms);
    let schema = output_schema.clone();
    let mut assignment =
        Assignment { run, task, limits, max_claims, grant, terms, output_schema: schema, labels: BTreeMap::new() };
    let surroundings = Surroundings {
        facts: Facts { date: now.date(), os: parts.os.clone(), git: None, backend: kind.to_string() },
        project: instructions,
        program: Program { version: env!("CARGO_PKG_VERSION").to_owned(), build: build::digest(home, parts) },
    };
    warn_of_weak_walls(kind, &view);
    view.say(&thinker.unknown_windows());
    let observer = observer(&view, &thinker, parts);
    let (clock, shown) = (parts.clock.clone(), view.clone());
    let session = Session {
        parts,
        home,
        folder: folder.clone(),
        thinker,
        harness,
        output_schema,
        kind,
        walls,
        workspace,
        access,
        rules,
        view,
        follow_up,
    };
    let ended = Record::create(&folder, durability, clock, observer).map_err(Failure::from).and_then(|record| {
        let record = record.hiding(secrets);
        assignment.task.parts = pictures.before(&text, &record)?;
        runtime()?.block_on(
            session.hold(async |engine, harness| Ok(engine::start(engine, record, harness, assignment, surroundings).await?)),
        )
    });
    if let Err(failure) = &ended {
        forget_unstarted(&folder);
        shown.end_unrecorded(&name, failure);
    }
    ended
}

/// A run that never began leaves nothing behind.
fn forget_unstarted(folder: &Path) {
    if std::fs::metadata(folder.join("trace.jsonl")).map_or(true, |trace| trace.len() == 0) {
        // What cannot be removed is an empty run in the list, and no more than that.
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// The task's words, from the command line, a file, or standard input where that is asked for.
fn task(args: &RunArgs) -> Result<String, Failure> {
    let read = |mut from: Box<dyn Read>, what: &str| {
        let mut text = String::new();
        from.by_ref()
            .take(MAX_TASK + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("reading the task from {what}"))
            .map(|_| text)
    };
    let text = match (&args.task, &args.file) {
        (Some(dash), _) if dash == "-" => read(Box::new(std::io::stdin()), "standard input"),
        (Some(task), _) => Ok(task.clone()),
        (None, Some(path)) => {
            let opened = std::fs::File::open(path).with_context(|| format!("opening the task {}", path.display()));
            opened.and_then(|file| read(Box::new(file), &path.display().to_string()))
        }
        (None, None) => Ok(String::new()),
    };
    let text = text.map_err(Failure::Usage)?;
    match text.trim() {
        "" => Err(Failure::usage("the task is empty: say what is to be done")),
        task if task.len() as u64 > MAX_TASK => {
            Err(Failure::usage("the task has more than 1 MiB: put it into a file of the workspace"))
        }
        task => Ok(task.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_without_events_is_forgotten() {
        let folder = std::env::temp_dir().join(format!("autosage-unstarted-{}", std::process::id()));
        for (trace, stays) in [(None, false), (Some(""), false), (Some("{}\n"), true)] {
            std::fs::create_dir_all(folder.join("blobs")).unwrap();
            if let Some(trace) = trace {
                std::fs::write(folder.join("trace.jsonl"), trace).unwrap();
            }
            forget_unstarted(&folder);
            assert_eq!(folder.exists(), stays, "{trace:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
