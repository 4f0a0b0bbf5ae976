//! `autosage resume`: a run goes on.

use super::args::{ReadOnly, ResumeArgs};
use super::config::{Config, Rights, Usual};
use super::failure::Failure;
use super::home::Home;
use super::pictures::Pictures;
use super::project::{self, Settled};
use super::prose::clean;
use super::reply::Rules;
use super::secrets;
use super::session::{FollowUp, Session, observer, runtime, warn_of_weak_walls};
use super::summary::Read;
use super::thinker::thinker;
use super::trust;
use super::view::View;
use super::wiring;
use crate::Parts;
use anyhow::{Context, anyhow};
use engine::{Changes, Harness, Progress};
use std::path::{Path, PathBuf};
use trace::{Condition, Delivery, Event, Limits, Outcome, Record, RecordError, Started};

/// Goes on with a run.
pub fn resume(args: ResumeArgs, person: &Config, home: &Home, parts: &mut Parts) -> Result<u8, Failure> {
    if args.message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty"));
    }
    if args.message.is_none() && !args.pictures.image.is_empty() {
        return Err(Failure::usage("a picture goes with a message: say with -m TEXT what is to be seen in it"));
    }
    let pictures = Pictures::read(&args.pictures.image)?;
    let folder = home.which(&args.which)?;
    let read =
        Read::new(&folder).with_context(|| format!("reading the run {}", folder.display())).map_err(Failure::Infrastructure)?;
    if let (Condition::Damaged { line, damage, .. }, false) = (read.condition(), args.as_new) {
        let path = folder.join("trace.jsonl");
        return Err(RecordError::Damaged { path, line: *line, damage: damage.clone() }.into());
    }
    let Some(started) = read.started() else {
        let error = anyhow!("{} does not begin with `Started`, so there is nothing to go on from", folder.display());
        return Err(Failure::Infrastructure(error));
    };
    let harness =
        Harness::from_record(&started.harness, &trace::blobs(&folder)).map_err(|error| Failure::Infrastructure(error.into()))?;
    let progress = Progress::of(harness.clone(), trace::blobs(&folder).contents(), &read.events);
    let waits = trace::inbox::waiting(&folder, progress.delivered()).is_ok_and(|letters| !letters.fresh.is_empty());
    secrets::check_typed(&args.secret, parts)?;
    let limits = wiring::typed_limits(&args.budget);
    let follow_up = FollowUp::fitting(parts, args.view.output());
    let nothing_new = args.message.is_none() && !waits && limits == Limits::default();
    if progress.outcome() == Some(&Outcome::Done) && nothing_new && follow_up == FollowUp::None {
        return Err(Failure::usage("this run is done; say what comes next with -m TEXT"));
    }
    let (kind, other_kind) = walls_of(&progress, args.sandbox)?;
    let workspace = started.task.workspace.clone();
    if !workspace.is_dir() {
        let place = clean(&workspace.display().to_string());
        return Err(Failure::usage(format!("the run's workspace {place} is not here: go on with it where that is")));
    }
    if trace::is_imported(&folder) && !args.as_recorded {
        return Err(Failure::usage(recorded_elsewhere(started, &progress, &folder)));
    }
    let Settled { config, rules, walls } =
        project::settle(person, &workspace, Usual { kind, limits: wiring::usual(&harness) }, home, parts)?;
    let thinker = thinker(&args.model, &config, parts, Some(&progress))?;
    pictures.refuse_unseen(thinker.model.spec())?;
    let standing = progress.ledger().limits;
    thinker.refuse_unpriced(&Limits { nano_usd: limits.nano_usd.or(standing.nano_usd), ..Limits::default() })?;
    let run = started.run.clone();
    let secrets = secrets::of_run(&run, args.model.key_env.as_deref().or(config.key_env.as_deref()), home, parts)?;
    let granted = progress.grant().lacks(&wiring::grant(&args.grant, &args.secret, &Rights::default())?);
    let grant = progress.grant().with(&granted);
    let missing = secrets::grant(&secrets, &grant.secrets, parts)?;
    thinker.hide(&secrets);
    let spec = thinker.model.spec();
    let other = (Some(spec) != progress.model()).then(|| spec.clone());
    let fallback = Some(thinker.fallback()).filter(|fallback| fallback.as_slice() != progress.fallback());
    let before = progress.terms();
    let mut terms = wiring::terms(args.approve, Some(before), &config, rules.as_ref(), follow_up)?;
    terms.read_only = args.read_only.map_or(before.read_only, |read_only| read_only == ReadOnly::Yes);
    wiring::refuse_unkept(&terms, kind, &grant)?;
    let (access, rules) = (wiring::access(&terms), Rules::of(rules.as_ref()));
    let other_terms = (terms != *before).then_some(terms);
    let view = View::new(args.view.output(), parts).ringing(config.bell);
    thinker.mask(&started.run, &started.facts.date, &workspace, home, parts);
    let observer = observer(&view, &thinker, parts);
    warn_of_weak_walls(kind, &view);
    view.say(&thinker.unknown_windows());
    let output_schema = started.output_schema.clone();
    // What was read before the run was owned may be of a long one, and is read again.
    drop((progress, read));
    let (folder, record, events) = own(&args, folder, home, parts, observer, &view)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let record = record.hiding(secrets);
    view.remind(&events);
    view.say(&secrets::told_missing(&missing));
    let shown = view.clone();
    let session =
        Session { parts, home, folder, thinker, harness, output_schema, kind, walls, workspace, access, rules, view, follow_up };
    let ended = runtime()?.block_on(session.hold(async |_, _| {
        let said = args.message.as_deref().map(|message| pictures.before(message, &record)).transpose()?;
        let mut run = engine::reopen(record, &events)?;
        drop(events);
        run.go_on(Changes { limits, grant: granted, model: other, fallback, backend: other_kind, terms: other_terms })?;
        if let Some(said) = said {
            run.hear(said)?;
        }
        Ok(run)
    }));
    if let Err(failure) = &ended {
        shown.end_unrecorded(&name, failure);
    }
    ended
}

/// The walls of this session, and their name where they are others than before.
fn walls_of(progress: &Progress, typed: Option<sandbox::Kind>) -> Result<(sandbox::Kind, Option<String>), Failure> {
    let before: Option<sandbox::Kind> = progress.backend().and_then(|backend| backend.parse().ok());
    if before == Some(sandbox::Kind::Host) && typed.is_none() {
        // No record takes the walls away: that is for a person to say, each time.
        return Err(Failure::usage("this run had no walls: say --sandbox host to go on so, or --sandbox native"));
    }
    let kind = typed.or(before).unwrap_or_default();
    Ok((kind, (Some(kind) != before).then(|| kind.to_string())))
}

/// Takes the run in the folder into this process's hands, or makes the new one that goes on from a damaged one.
fn own(
    args: &ResumeArgs,
    folder: PathBuf,
    home: &Home,
    parts: &Parts,
    observer: trace::Observer,
    view: &View,
) -> Result<(PathBuf, Record, Vec<Event>), Failure> {
    let (durability, clock) = (args.durability.unwrap_or_default(), parts.clock.clone());
    if !args.as_new {
        let (record, events) = Record::open(&folder, durability, clock, observer)?;
        let vouched = trace::vouch(&folder).with_context(|| format!("taking over the imported run {}", folder.display()));
        vouched.map_err(Failure::Infrastructure)?;
        return Ok((folder, record, events));
    }
    let id = parts.ids.run(parts.clock.now());
    let new = home.run(&id);
    let (record, events, missing) = Record::anew(&folder, &new, id.clone(), durability, clock, observer)?;
    view.say(&format!("run {id} goes on from {}, event {}\n", folder.display(), events.len().saturating_sub(2)));
    if !missing.is_empty() {
        view.say(&format!("{} blobs of it are missing or damaged: what they held cannot be read again\n", missing.len()));
    }
    Ok((new, record, events))
}

/// What an imported run would be given by its record, for a person to say yes to.
fn recorded_elsewhere(started: &Started, progress: &Progress, folder: &Path) -> String {
    let asks = progress.model().into_iter().chain(progress.fallback()).map(|model| {
        let at = model.base_url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
        format!("send all that the agent says and sees to {}{at}", model.id)
    });
    let works = format!("work in {}", started.task.workspace.display());
    let checks = progress.checks().iter().map(|check| format!("run this check, inside the walls: {}", check.command));
    let letters = trace::inbox::waiting(folder, progress.delivered()).map_or_else(|_| Vec::new(), |letters| letters.fresh);
    let answers = letters.iter().filter_map(|(_, what)| match what {
        Delivery::Approval { asked, answer, .. } => Some(format!("take `{answer}` for the answer to question {asked}")),
        Delivery::Message { .. } | Delivery::Interrupt | Delivery::Session { .. } => None,
    });
    let all = std::iter::once(works).chain(asks).chain(trust::rights(progress.grant())).chain(checks).chain(answers);
    let lines: String = all.map(|line| format!("\n  {}", clean(&line))).collect();
    format!(
        "this run was imported, and its record says where it works, whom it asks and what its commands may:{lines}\n\
         say --as-recorded to go on with it so"
    )
}
