//! `autosage demo`: a recorded model, and everything else for real.

use super::args::DemoArgs;
use super::failure::Failure;
use super::home::Home;
use super::pictures::Pictures;
use super::prose::wrapped;
use super::reply::Rules;
use super::run::{NewRun, begin};
use super::session::{FollowUp, runtime};
use super::thinker::Thinker;
use super::view::View;
use super::wiring;
use crate::{Parts, Person};
use anyhow::Context;
use model::recorded::Pace;
use sandbox::{Kind, Sandbox};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trace::{Check, Durability, Grant, Limits, Terms};

/// The workspace, as a stranger would find it.
const WORKSPACE: &[(&str, &str)] = &[
    ("README.md", include_str!("../../demo/workspace/README.md")),
    ("hours.csv", include_str!("../../demo/workspace/hours.csv")),
    ("report.sh", include_str!("../../demo/workspace/report.sh")),
];

/// What a capable model said when it was given this task, turn by turn. It answered through a relay that counts no tokens,
/// so those are estimates (characters / 4, marked so), and the pauses were set for watching. It is not strict, for in what
/// it sees each shell has words of its own, and the walls differ between machines.
pub const CONVERSATION: &str = include_str!("../../demo/conversation.jsonl");

/// The id of the recorded model, by which a demo's run goes on.
pub const MODEL: &str = "recorded/demo";

/// What is asked.
const TASK: &str =
    "`sh report.sh hours.csv` stops with an error. Find out why and mend report.sh, for this month and for the next.";

/// What payroll has counted by hand. The agent first sees it when it has claimed a wrong total.
const CHECK: &str = "t=$(sh report.sh hours.csv | tail -n 1); echo \"$t; payroll: 82:08\"; test \"$t\" = \"total 82:08\"";

/// No reply takes longer than this, so that the whole is over in ten seconds.
const SLOWEST: Duration = Duration::from_millis(1200);

/// The columns of what is told beside the story.
const TOLD: usize = 100;

/// Runs the demo.
pub fn demo(args: &DemoArgs, home: &Home, parts: &mut Parts) -> Result<u8, Failure> {
    let view = View::new(args.view.output(), parts);
    view.say("The model's words are recorded. All else happens here and now: the files, the commands, the walls\n");
    view.say("around them, the edits and the check.\n\n");
    let scratch = Scratch::make(parts)?;
    let kind = match args.sandbox {
        Some(kind) => kind,
        None => runtime()?.block_on(best(&scratch.0, home, parts, &view))?,
    };
    let pace = if parts.person == Person::AtTerminal { Pace::AtMost(SLOWEST) } else { Pace::AtOnce };
    let recorded = model::recorded::parse(CONVERSATION).map_err(|error| Failure::Infrastructure(error.into()))?;
    let recorded = Arc::new(recorded.paced(pace));
    let harness = wiring::harness(None)?;
    let order = NewRun {
        task: TASK.to_owned(),
        pictures: Pictures::default(),
        output_schema: None,
        workspace: scratch.0.join("hours"),
        thinker: Thinker { model: recorded.clone(), fallback: Vec::new(), recorded: Some(recorded), recorder: None },
        key_env: None,
        grant: Grant::default(),
        terms: Terms::default(),
        rules: Rules::None,
        limits: Limits { turns: Some(harness.settings().budget.turns), ..Limits::default() },
        checks: vec![Check { command: CHECK.to_owned(), timeout_ms: 60_000 }],
        max_claims: harness.settings().max_claims,
        harness,
        kind,
        walls: None,
        instructions: Vec::new(),
        durability: Durability::default(),
        follow_up: FollowUp::None,
        view: view.clone(),
    };
    let code = begin(order, home, parts)?;
    view.say(&farewell(&parts.name, &scratch.0.join("hours")));
    Ok(code)
}

/// What a person may want to do next, to be typed as it stands; `name` is what the program is called by.
fn farewell(name: &str, workspace: &Path) -> String {
    let workspace = workspace.display();
    format!(
        r#"
Look at what is left:
  cat {workspace}/report.sh
  {name} show --last             # the story again
  {name} show --last --events    # what it is told from
  {name} show --last --verify    # the proof that nothing is missing

With a model of your own, behind a key or on this machine:
  export OPENAI_API_KEY=…
  {name} run "make the tests pass" --model openai/gpt-6-sol
  {name} run "make the tests pass" --model ollama/qwen3-coder
"#
    )
}

/// A temporary folder with the workspace in it. It stays, so that a person can look at what was done.
struct Scratch(PathBuf);

impl Scratch {
    fn make(parts: &Parts) -> Result<Scratch, Failure> {
        let temporary = parts.variable("TMPDIR").map_or(Path::new("/tmp"), Path::new);
        let folder = temporary.join(format!("autosage-demo-{}", parts.ids.run(parts.clock.now())));
        let written = || -> std::io::Result<PathBuf> {
            let mut private = DirBuilder::new();
            private.mode(0o700).create(&folder)?;
            private.create(folder.join("hours"))?;
            for (name, text) in WORKSPACE {
                std::fs::write(folder.join("hours").join(name), text)?;
            }
            // The walls want the folder's own path, without links.
            folder.canonicalize()
        };
        let folder = written().with_context(|| format!("laying out the demo in {}", folder.display()));
        Ok(Scratch(folder.map_err(Failure::Infrastructure)?))
    }
}

/// The strongest walls that this machine allows, tried and not guessed.
async fn best(scratch: &Path, home: &Home, parts: &Parts, view: &View) -> Result<Kind, Failure> {
    for kind in [Kind::Native, Kind::Reduced] {
        match works(kind, scratch, home, parts).await {
            Ok(()) => return Ok(kind),
            Err(error) => {
                let told = format!("The sandbox `{kind}` does not work here, so a weaker one is tried: {error:#}");
                view.say(&format!("{}\n\n", wrapped(&told, TOLD).join("\n")));
            }
        }
    }
    // What stands in its way, if anything does, is told by the run itself.
    Ok(Kind::Host)
}

async fn works(kind: Kind, scratch: &Path, home: &Home, parts: &Parts) -> anyhow::Result<()> {
    let session = scratch.join("probe");
    std::fs::create_dir_all(session.join("home"))?;
    std::fs::create_dir_all(session.join("tmp"))?;
    let sandbox = Sandbox::start(kind, parts.program.clone())?;
    let spec = wiring::environment_spec(&scratch.join("hours"), sandbox::Access::Write, &session, home, parts);
    let tried = sandbox.environment(&spec).await;
    if let Ok(environment) = tried {
        let sound = environment.probe().await;
        environment.close().await;
        std::fs::remove_dir_all(&session)?;
        anyhow::ensure!(sound, "no command can be started in it");
        return Ok(());
    }
    std::fs::remove_dir_all(&session)?;
    tried.map(|_| ()).map_err(Into::into)
}
