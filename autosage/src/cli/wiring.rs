//! From what was typed and configured to the parts that a run works with.

use super::args::{self, BudgetArgs, ModelArgs, Right};
use super::config::{self, Config};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::session::FollowUp;
use crate::Parts;
use anyhow::{Context, anyhow};
use engine::Harness;
use model::catalog::{self, Overrides};
use model::{Access, Masks, Model, Provider, Recorded, Recorder};
use sandbox::Plan;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trace::{Approve, Grant, Limits, ModelSpec, RunId, Secrets, Terms};

/// The time that a check may take, in milliseconds: as much as a command that asks for the most.
pub const CHECK_MS: u64 = 60 * 60 * 1000;

/// Who thinks in a session, and who must hear how calls ended.
pub struct Thinker {
    /// The model.
    pub model: Arc<dyn Model>,
    /// A recorded conversation that must not diverge.
    pub recorded: Option<Arc<Recorded>>,
    /// A recording that is being made.
    pub recorder: Option<Arc<Recorder>>,
}

impl Thinker {
    /// Tells a recording, played or made, what differs between runs and does not make a prompt another one.
    pub fn mask(&self, run: &RunId, date: &str, workspace: &Path, home: &Home, parts: &Parts) {
        let path = |path: &Path| path.display().to_string();
        let masks = Masks::new([
            ("workspace", path(workspace)),
            ("autosage-home", path(home.folder())),
            ("home", parts.variable("HOME").unwrap_or_default().to_owned()),
            ("run", run.to_string()),
            ("date", date.to_owned()),
        ]);
        self.recorded.iter().for_each(|recorded| recorded.mask(masks.clone()));
        self.recorder.iter().for_each(|recorder| recorder.mask(masks.clone()));
    }

    /// Keeps `secrets` out of a recording that is made.
    pub fn hide(&self, secrets: &Secrets) {
        if let Some(recorder) = &self.recorder {
            recorder.hide(secrets);
        }
    }
}

/// The model that was asked for, of a run that has had `replies` answers so far. `before` is the model of the run, where
/// there is one already.
pub fn thinker(
    args: &ModelArgs,
    config: &Config,
    parts: &Parts,
    before: Option<&ModelSpec>,
    replies: u64,
) -> Result<Thinker, Failure> {
    let Some(id) = args.model.as_deref().or(before.map(|spec| spec.id.as_str())).or(config.model.as_deref()) else {
        return Err(no_model());
    };
    let usage = |error: anyhow::Error| Failure::Usage(error);
    if let Some(file) = id.strip_prefix("recorded/") {
        if args.record.is_some() {
            return Err(Failure::usage("what is played from a recording is not recorded again: leave --record out"));
        }
        let recorded = match id {
            super::demo::MODEL => model::recorded::parse(super::demo::CONVERSATION),
            _ => model::recorded::load(Path::new(file)),
        };
        let recorded = recorded.map_err(|error| usage(error.into()))?;
        let recorded = Arc::new(recorded.from(replies as usize));
        return Ok(Thinker { model: recorded.clone(), recorded: Some(recorded), recorder: None });
    }
    let provider = catalog::provider_of(id).map_err(|error| usage(error.into()))?;
    let same = before.filter(|spec| spec.id == id);
    let configured = config.base_url.as_deref().filter(|_| config.model.as_deref() == Some(id) || provider.base_url.is_none());
    let named = provider.base_url_var.and_then(|name| parts.variable(name));
    let typed = args.base_url.as_deref();
    let base_url = typed.or(named).or(configured).or(same.and_then(|spec| spec.base_url.as_deref())).map(str::to_owned);
    let overrides = Overrides {
        base_url,
        price: args.price.or(same.and_then(|spec| spec.price)),
        context: args.context.or(same.and_then(|spec| spec.context)),
        max_output: args.max_output.or(same.map(|spec| spec.max_output)),
    };
    let spec = config.catalog.find(id, &overrides).map_err(|error| usage(error.into()))?;
    let key_var = args.key_env.as_deref().or(config.key_env.as_deref());
    let named_by = if typed.or(named).or(configured).is_some() { NamedBy::Person } else { NamedBy::Record };
    let key = key(key_var, provider, &spec, named_by, parts)?;
    let connected = model::connect(spec, Access { key, key_var: key_var.map(str::to_owned), ..Access::default() });
    match &args.record {
        None => Ok(Thinker { model: Arc::from(connected), recorded: None, recorder: None }),
        Some(path) => {
            let recorder = Recorder::create(connected, path).with_context(|| format!("making the recording {}", path.display()));
            let recorder = Arc::new(recorder.map_err(usage)?);
            Ok(Thinker { model: recorder.clone(), recorded: None, recorder: Some(recorder) })
        }
    }
}

/// Who named a server's address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    /// The person: typed, configured or in a variable; or it is the provider's usual one.
    Person,
    /// The record of the run that goes on.
    Record,
}

/// The key that goes to the model's server. A provider's own key goes to its own host, or to the one that its own
/// `*_BASE_URL` names; to any other address goes only what `--key-env` names. None goes where only a record leads.
fn key(
    named: Option<&str>,
    provider: &Provider,
    spec: &ModelSpec,
    named_by: NamedBy,
    parts: &Parts,
) -> Result<Option<String>, Failure> {
    let address = spec.base_url.as_deref().unwrap_or_default();
    let only_recorded = named_by == NamedBy::Record && !provider.is_at(address);
    let name = named.unwrap_or(provider.key_var);
    if only_recorded && parts.variable(name).is_some() {
        let text =
            format!("the key in {name} is not sent to {address}, which only the run's record names: type it with --base-url");
        return Err(Failure::usage(text));
    }
    if let Some(name) = named {
        let key = parts.variable(name).ok_or_else(|| {
            Failure::usage(format!("the key is to be in the variable {name} (--key-env or `key_env`), which is not set"))
        })?;
        return Ok(Some(key.to_owned()));
    }
    let by_variable = provider.base_url_var.and_then(|name| parts.variable(name));
    let is_own = provider.base_url.is_none()
        || provider.is_at(address)
        || by_variable.is_some_and(|named| named.trim_end_matches('/') == address);
    let key = parts.variable(provider.key_var).filter(|_| is_own).map(str::to_owned);
    match (&key, provider.key, is_own) {
        (None, model::KeyUse::Required, true) => Err(Failure::usage(format!(
            "`{}` needs a key: set {}, or choose another model with --model",
            spec.id, provider.key_var
        ))),
        (None, model::KeyUse::Required, false) => Err(Failure::usage(format!(
            "{} is not sent to {address}: name the variable that holds the key for it with --key-env, or set {}",
            provider.key_var,
            provider.base_url_var.unwrap_or("another address")
        ))),
        _ => Ok(key),
    }
}

fn no_model() -> Failure {
    let keys: Vec<String> = catalog::providers()
        .iter()
        .filter(|provider| provider.base_url.is_some())
        .map(|provider| match provider.key {
            model::KeyUse::Required => format!("  --model {}/NAME with {} set", provider.name, provider.key_var),
            model::KeyUse::Optional => format!("  --model {}/NAME for a server on this machine", provider.name),
        })
        .collect();
    Failure::usage(format!(
        "no model is configured. Name one with --model, or as `model = \"provider/name\"` in the configuration:\n{}\n  \
         --model openai-compatible/NAME --base-url http://HOST:PORT/v1 for any other server that speaks OpenAI's chat\n\
         Without any, `autosage demo` shows a recorded agent at real work.",
        keys.join("\n")
    ))
}

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

/// A budget in money cannot be kept for a model whose price is not known.
pub fn refuse_unpriced(limits: &Limits, spec: &ModelSpec) -> Result<(), Failure> {
    if limits.nano_usd.is_some() && spec.price.is_none() {
        let way_out = match spec.id.starts_with("recorded/") {
            true => "a recording has the price of the model that was recorded, or none: leave --max-usd out",
            false => "add --price IN,OUT (dollars for a million tokens)",
        };
        return Err(Failure::usage(format!(
            "a budget in dollars cannot be kept: no price is known for `{}`; {way_out}",
            spec.id
        )));
    }
    Ok(())
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

/// The environments of a session: over `workspace`, with a private home and `/tmp` below `session`.
pub fn plan(workspace: &Path, access: sandbox::Access, session: &Path, home: &Home, parts: &Parts) -> Plan {
    Plan {
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
