//! From what was typed and configured to the parts that a run works with.

use super::args::{self, BudgetArgs, Right};
use super::config::{self, Config};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::session::FollowUp;
use crate::Parts;
use anyhow::{Context, anyhow};
use engine::Harness;
use sandbox::EnvironmentSpec;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace::{Approve, Grant, Limits, Terms};

/// The time that a check may take, in milliseconds: as much as a command that asks for the most.
pub const CHECK_MS: u64 = 60 * 60 * 1000;

/// What may be spent: what was typed, else what is configured.
pub fn limits(args: &BudgetArgs, config: &Config) -> Limits {
    let (configured, typed) = (config.budget, typed_limits(args));
    Limits {
        turns: typed.turns.or(configured.turns),
        tokens: typed.tokens.or(configured.tokens),
        nano_usd: typed.nano_usd.or(configured.nano_usd),
        time_ms: typed.time_ms.or(configured.time_ms),
    }
}

/// What may be spent where nobody says otherwise.
pub fn usual(harness: &Harness) -> Limits {
    let usual = harness.settings().budget;
    Limits { turns: Some(usual.turns), time_ms: Some(usual.minutes * 60_000), ..Limits::default() }
}

/// What was typed of limits.
pub fn typed_limits(args: &BudgetArgs) -> Limits {
    Limits { turns: args.max_turns, tokens: args.max_tokens, nano_usd: args.max_usd, time_ms: args.max_time.map(millis) }
}

/// Whole milliseconds.
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The folder to work in: absolute, without links.
pub fn workspace(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = named.unwrap_or(Path::new("."));
    let found = std::fs::canonicalize(folder).with_context(|| format!("opening the workspace {}", folder.display()));
    let found = found.map_err(Failure::Usage)?;
    if found.is_dir() { Ok(found) } else { Err(Failure::usage(format!("the workspace {} is not a folder", found.display()))) }
}

/// The rights beyond the workspace: what is configured, and what was typed of rights and of variables. Paths must be there.
pub fn grant(typed: &[Right], secrets: &[String], config: &config::Rights) -> Result<Grant, Failure> {
    let absolute = |path: &PathBuf| {
        let found = std::fs::canonicalize(path)
            .with_context(|| format!("granting {} (--grant or `grant` in a configuration)", path.display()));
        found.map_err(Failure::Usage)
    };
    let mut grant = Grant { network: config.network == Some(true), secrets: config.secrets.clone(), ..Grant::default() };
    grant.secrets.extend(secrets.iter().filter(|name| !config.secrets.contains(name)).cloned());
    for path in &config.read {
        grant.read.push(absolute(path)?);
    }
    for path in &config.write {
        grant.write.push(absolute(path)?);
    }
    for right in typed {
        match right {
            Right::Read(path) => grant.read.push(absolute(path)?),
            Right::Write(path) => grant.write.push(absolute(path)?),
            Right::Network => grant.network = true,
        }
    }
    Ok(grant)
}

/// The terms of a session: what was typed, else those of the session `before` that need nobody, else what is configured.
/// `rules` always hold in the workspace. Without a person who sees a question, asking is denying.
pub fn terms(
    typed: Option<args::Approve>,
    before: Option<&Terms>,
    config: &Config,
    rules: Option<&Grant>,
    follow_up: FollowUp,
) -> Result<Terms, Failure> {
    let (typed, rules) = (typed.map(Approve::from), rules.cloned().unwrap_or_default());
    let lasting = before.map(|terms| terms.approve).filter(|approve| matches!(approve, Approve::Auto | Approve::Wait));
    let wanted = typed.or(lasting).or(config.approve.map(Approve::from)).unwrap_or(Approve::Ask);
    let allow = match (typed, wanted) {
        (Some(Approve::Deny), _) => Grant::default(),
        (_, Approve::Auto) => rules.with(&ceiling(config)?),
        _ => rules,
    };
    let approve = match (wanted, follow_up) {
        (Approve::Ask, FollowUp::None) => Approve::Deny,
        (approve, _) => approve,
    };
    Ok(Terms { approve, allow, read_only: before.is_some_and(|terms| terms.read_only) })
}

/// What the configuration allows without a question.
fn ceiling(config: &Config) -> Result<Grant, Failure> {
    let absolute = |path: &PathBuf| {
        let found = std::fs::canonicalize(path).with_context(|| format!("allowing to write {}", path.display()));
        found.map_err(Failure::Usage)
    };
    let write = config.allow.write.iter().map(absolute).collect::<Result<_, _>>()?;
    Ok(Grant { write, network: config.allow.network, ..Grant::default() })
}

/// What can be done with the workspace on these terms.
pub fn access(terms: &Terms) -> sandbox::Access {
    if terms.read_only { sandbox::Access::Read } else { sandbox::Access::Write }
}

/// Refuses to promise that a workspace is only read where that cannot be kept.
pub fn refuse_unkept(terms: &Terms, kind: sandbox::Kind, grant: &Grant) -> Result<(), Failure> {
    match (terms.read_only, kind, grant.write.first()) {
        (true, sandbox::Kind::Host, _) => {
            Err(Failure::usage("--read-only needs walls, and --sandbox host has none: leave one of them out"))
        }
        (true, _, Some(path)) => {
            let path = path.display();
            Err(Failure::usage(format!("{path} may be written, and --read-only writes nothing: leave out one of the two")))
        }
        _ => Ok(()),
    }
}

/// What the environments of a session are made from: over `workspace`, with a private home and `/tmp` below `session`.
pub fn environment_spec(
    workspace: &Path,
    access: sandbox::Access,
    session: &Path,
    home: &Home,
    parts: &Parts,
) -> EnvironmentSpec {
    EnvironmentSpec {
        workspace: workspace.to_owned(),
        access,
        // Each environment has its own.
        grant: Grant::default(),
        home: session.join("home"),
        tmp: session.join("tmp"),
        // Whoever can write the person's configuration has all rights in the next run.
        hidden: std::iter::once(home.folder().to_owned()).chain(config::usual_folder(parts)).collect(),
        user_home: parts.variable("HOME").map(PathBuf::from),
        limits: sandbox::Limits::default(),
        names: sandbox::Names::default(),
    }
}

/// The harness that was asked for.
pub fn harness(named: Option<&Path>) -> Result<Harness, Failure> {
    let loaded = match named {
        None => Harness::embedded(),
        Some(folder) => Harness::load(folder),
    };
    loaded.map_err(|error| Failure::Usage(error.into()))
}

/// Writes the embedded harness into `dir`.
pub fn export_harness(dir: &Path, parts: &Parts) -> Result<u8, Failure> {
    let harness = harness(None)?;
    let failed = |error: std::io::Error| Failure::Infrastructure(anyhow!("writing the harness into {}: {error}", dir.display()));
    if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::usage(format!("{} is not empty: name a new folder for the harness", dir.display())));
    }
    for (path, bytes) in harness.files() {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(dir)).map_err(failed)?;
        std::fs::write(&path, bytes).map_err(failed)?;
    }
    let text = format!(
        "{} files in {}. Change them and use them with --harness {}\n",
        harness.files().len(),
        dir.display(),
        dir.display()
    );
    print(&parts.out, &text);
    Ok(0)
}
