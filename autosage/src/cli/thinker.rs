//! Who thinks in a session: the model that was asked for, those to fall back on, and the key for each.

use super::args::ModelArgs;
use super::config::Config;
use super::failure::Failure;
use super::home::Home;
use super::prose::grouped;
use crate::Parts;
use anyhow::Context;
use engine::Progress;
use model::catalog::{self, Overrides};
use model::{Access, Gate, KeyForm, KeyUse, Masks, Model, Provider, Recorded, Recorder, RetryBudget};
use std::path::Path;
use std::sync::Arc;
use trace::{Limits, ModelSpec, RunId, Secrets};

/// Who thinks in a session, and who must hear how calls ended.
pub struct Thinker {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Those that are asked in this order where the one before is not to be had.
    pub fallback: Vec<Arc<dyn Model>>,
    /// A recorded conversation that must not diverge.
    pub recorded: Option<Arc<Recorded>>,
    /// A recording that is being made.
    pub recorder: Option<Arc<Recorder>>,
}

impl Thinker {
    /// The specs of all of them, in order.
    pub fn specs(&self) -> impl Iterator<Item = &ModelSpec> {
        std::iter::once(&self.model).chain(&self.fallback).map(|model| model.spec())
    }

    /// The specs of those to fall back on.
    pub fn fallback(&self) -> Vec<ModelSpec> {
        self.specs().skip(1).cloned().collect()
    }

    /// What a person is told of windows that are not known.
    pub fn unknown_windows(&self) -> String {
        let unknown = self.specs().filter(|spec| spec.context.is_none() && !is_recorded(&spec.id));
        let told = |spec: &ModelSpec| {
            let way_out = if spec.id == self.model.spec().id { "--context N" } else { "models.toml beside your configuration" };
            let (id, window) = (&spec.id, grouped(spec.window()));
            format!("the window of {id} is not known: {window} tokens are assumed; {way_out} says otherwise\n")
        };
        unknown.map(told).collect()
    }

    /// A budget in money cannot be kept for a model whose price is not known.
    pub fn refuse_unpriced(&self, limits: &Limits) -> Result<(), Failure> {
        let Some(spec) = self.unpriced().filter(|_| limits.nano_usd.is_some()) else { return Ok(()) };
        let way_out = match (is_recorded(&spec.id), spec.id == self.model.spec().id) {
            (true, _) => "a recording has the price of the model that was recorded, or none: leave --max-usd out",
            (false, true) => "add --price IN,OUT (dollars for a million tokens)",
            (false, false) => "say in models.toml what it costs, beside your configuration, or leave it out of `fallback`",
        };
        let id = &spec.id;
        Err(Failure::usage(format!("a budget in dollars cannot be kept: no price is known for `{id}`; {way_out}")))
    }

    /// The first model whose price is not known.
    pub fn unpriced(&self) -> Option<&ModelSpec> {
        self.specs().find(|spec| spec.price.is_none())
    }

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

fn is_recorded(id: &str) -> bool {
    id.starts_with(RECORDED)
}

/// How the id of a recorded model begins.
const RECORDED: &str = "recorded/";

/// The models that were asked for; those of the run `before`, where it goes on and nothing else was asked for.
pub fn thinker(args: &ModelArgs, config: &Config, parts: &Parts, before: Option<&Progress>) -> Result<Thinker, Failure> {
    let spec_before = before.and_then(Progress::model);
    let Some(id) = args.model.as_deref().or(spec_before.map(|spec| spec.id.as_str())).or(config.model.as_deref()) else {
        return Err(no_model());
    };
    if let Some(file) = id.strip_prefix(RECORDED) {
        return played(id, file, args, before);
    }
    if args.fallback.iter().any(|other| other == id) {
        let text = format!("--fallback {id} names the model that is asked anyway: name another one, or leave it out");
        return Err(Failure::usage(text));
    }
    // Whatever this process asks of an account, waits together.
    let gate = Gate::default();
    let first = live(id, args, config, parts, spec_before.filter(|spec| spec.id == id))?.usable()?;
    // A run that goes on has those that are left of its list.
    let (typed, left) = (&args.fallback, before.map(Progress::fallback));
    let configured = || left.map_or(config.fallback.clone(), |left| left.iter().map(|spec| spec.id.clone()).collect());
    let ids = if typed.is_empty() { configured() } else { typed.clone() };
    let mut fallback: Vec<Candidate> = Vec::new();
    for id in ids.iter().filter(|id| **id != first.spec.id) {
        let same = left.and_then(|left| left.iter().find(|spec| spec.id == *id));
        if !fallback.iter().any(|other| other.spec.id == *id) {
            let candidate = further(id, &first, config, parts, same).and_then(Candidate::usable);
            let why = |failure: Failure| Failure::usage(format!("{failure} (`fallback` or --fallback names it)"));
            fallback.push(candidate.map_err(why)?);
        }
    }
    let usual = RetryBudget::default();
    let (wall, reply) = (config.retry_time.unwrap_or(usual.wall), config.reply_time.unwrap_or(usual.reply));
    let retry = RetryBudget { wall, reply, ..usual };
    let connect =
        |Candidate { spec, access, .. }: Candidate| model::connect(spec, Access { gate: gate.clone(), retry, ..access });
    let (first, fallback) = (connect(first), fallback.into_iter().map(connect));
    match &args.record {
        None => {
            Ok(Thinker { model: Arc::from(first), fallback: fallback.map(Arc::from).collect(), recorded: None, recorder: None })
        }
        Some(path) => {
            let recorder = Recorder::create(first, fallback.collect(), path);
            let recorder = recorder.with_context(|| format!("making the recording {}", path.display()));
            let recorder = Arc::new(recorder.map_err(Failure::Usage)?);
            Ok(Thinker { model: recorder.clone(), fallback: recorder.fallback(), recorded: None, recorder: Some(recorder) })
        }
    }
}

/// The models of the recording that `id` names by its `file`.
fn played(id: &str, file: &str, args: &ModelArgs, before: Option<&Progress>) -> Result<Thinker, Failure> {
    if args.record.is_some() {
        return Err(Failure::usage("what is played from a recording is not recorded again: leave --record out"));
    }
    if !args.fallback.is_empty() {
        return Err(Failure::usage("a recording has the models that it was made with: leave --fallback out"));
    }
    // A run that fell back goes on with a later one of them.
    let numbered = file.rsplit_once('#').filter(|(_, number)| number.parse::<usize>().is_ok() && !Path::new(file).exists());
    let (file, first) = numbered.map_or((file, id), |(file, _)| (file, &id[..RECORDED.len() + file.len()]));
    let recorded = match first {
        super::demo::MODEL => model::recorded::parse(super::demo::CONVERSATION),
        _ => model::recorded::load(Path::new(file)),
    };
    let recorded = recorded.map_err(|error| Failure::Usage(error.into()))?;
    let recorded = Arc::new(recorded.from(before.map_or(0, Progress::replies) as usize));
    let mut models: Vec<Arc<dyn Model>> = vec![recorded.clone()];
    models.extend(recorded.fallback());
    let at = models.iter().position(|model| model.spec().id == id).unwrap_or_default();
    let mut left = models.into_iter().skip(at);
    let model = left.next().unwrap_or_else(|| recorded.clone());
    Ok(Thinker { model, fallback: left.collect(), recorded: Some(recorded), recorder: None })
}

/// A model, and what it takes to ask it.
pub struct Candidate {
    /// The model.
    pub spec: ModelSpec,
    /// The variable of its key.
    pub key_var: String,
    /// How it stands about the key.
    pub key: KeyState,
    /// What it is asked with.
    pub access: Access,
}

/// How it stands about the key of a model.
pub enum KeyState {
    /// It is known.
    Known,
    /// It is not known, and may not be needed.
    NotNeeded,
    /// It is not known or not sent there, and why.
    Refused(String),
}

impl Candidate {
    /// `named` is the variable of the key, where it is not the provider's `own`.
    fn new(
        spec: ModelSpec,
        named: Option<&str>,
        own: &str,
        provider: &Provider,
        key: Result<Option<String>, Failure>,
    ) -> Candidate {
        let (state, key) = match key {
            Ok(Some(key)) => (KeyState::Known, Some(key)),
            Ok(None) => (KeyState::NotNeeded, None),
            Err(failure) => (KeyState::Refused(failure.to_string()), None),
        };
        let key_var = named.unwrap_or(own).to_owned();
        let form = if Some(key_var.as_str()) == provider.token_var { KeyForm::Bearer } else { KeyForm::Own };
        let access = Access { key, form, key_var: Some(key_var.clone()), ..Access::default() };
        Candidate { spec, key_var, key: state, access }
    }

    /// It can be asked.
    fn usable(self) -> Result<Candidate, Failure> {
        match &self.key {
            KeyState::Refused(why) => Err(Failure::usage(why)),
            KeyState::Known | KeyState::NotNeeded => Ok(self),
        }
    }
}

/// The model called `id`, with what was typed and configured for it.
pub fn candidate(id: &str, args: &ModelArgs, config: &Config, parts: &Parts) -> Result<Candidate, Failure> {
    match is_recorded(id) {
        true => Err(Failure::usage(format!("`{id}` is a recording: there is no server behind it"))),
        false => live(id, args, config, parts, None),
    }
}

/// The same; `same` is the model as the run that goes on has it.
fn live(id: &str, args: &ModelArgs, config: &Config, parts: &Parts, same: Option<&ModelSpec>) -> Result<Candidate, Failure> {
    let provider = catalog::provider_of(id).map_err(|error| Failure::Usage(error.into()))?;
    let configured = config.base_url.as_deref().filter(|_| config.model.as_deref() == Some(id) || provider.base_url.is_none());
    let named = provider.base_url_var.and_then(|name| parts.variable(name));
    let typed = args.base_url.as_deref();
    let overrides = Overrides {
        base_url: typed.or(named).or(configured).or(same.and_then(|spec| spec.base_url.as_deref())).map(str::to_owned),
        price: args.price.or(same.and_then(|spec| spec.price)),
        context: args.context.or(same.and_then(|spec| spec.context)),
        max_output: args.max_output.or(same.map(|spec| spec.max_output)),
    };
    let spec = config.catalog.find(id, &overrides).map_err(|error| Failure::Usage(error.into()))?;
    let key_var = args.key_env.as_deref().or(config.key_env.as_deref());
    let named_by = if typed.or(named).or(configured).is_some() { NamedBy::Person } else { NamedBy::Record };
    let key = key(key_var, provider, &spec, named_by, parts);
    Ok(Candidate::new(spec, key_var, own_variable(provider, parts), provider, key))
}

/// A model to fall back on: at the address and with the key of the `first` one where it is of the same provider, else with
/// its provider's usual ones.
pub fn further(
    id: &str,
    first: &Candidate,
    config: &Config,
    parts: &Parts,
    same: Option<&ModelSpec>,
) -> Result<Candidate, Failure> {
    if is_recorded(id) {
        return Err(Failure::usage(format!(
            "`{id}` cannot be fallen back on: a recording answers nothing but what it was asked"
        )));
    }
    let provider = catalog::provider_of(id).map_err(|error| Failure::Usage(error.into()))?;
    let is_neighbour = provider.name == first.spec.provider;
    let named = provider.base_url_var.and_then(|name| parts.variable(name));
    let base_url = match is_neighbour {
        true => first.spec.base_url.as_deref(),
        false => named.or(same.and_then(|spec| spec.base_url.as_deref())),
    };
    let overrides = Overrides {
        base_url: base_url.map(str::to_owned),
        price: same.and_then(|spec| spec.price),
        context: same.and_then(|spec| spec.context),
        max_output: same.map(|spec| spec.max_output),
    };
    let spec = config.catalog.find(id, &overrides).map_err(|error| Failure::Usage(error.into()))?;
    let (key_var, key) = match is_neighbour {
        true => (Some(first.key_var.as_str()), Ok(first.access.key.clone())),
        false => {
            let named_by = if named.is_some() { NamedBy::Person } else { NamedBy::Record };
            (None, key(None, provider, &spec, named_by, parts))
        }
    };
    Ok(Candidate::new(spec, key_var, own_variable(provider, parts), provider, key))
}

/// The variable of a provider's key: that of its token where only that is set.
pub fn own_variable(provider: &Provider, parts: &Parts) -> &'static str {
    let token = provider.token_var.filter(|token| parts.variable(token).is_some());
    token.filter(|_| parts.variable(provider.key_var).is_none()).unwrap_or(provider.key_var)
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
    let own = own_variable(provider, parts);
    let name = named.unwrap_or(own);
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
    let key = parts.variable(own).filter(|_| is_own).map(str::to_owned);
    match (&key, provider.key, is_own) {
        (None, KeyUse::Required, true) => Err(Failure::usage(format!(
            "`{}` needs a key: set {}, or choose another model with --model",
            spec.id, provider.key_var
        ))),
        (None, KeyUse::Required, false) => Err(Failure::usage(format!(
            "{} is not sent to {address}: name the variable that holds the key for it with --key-env, or set {}",
            provider.key_var,
            provider.base_url_var.unwrap_or("another address")
        ))),
        _ => Ok(key),
    }
}

/// What is said where no model is named.
pub fn no_model() -> Failure {
    let keys: Vec<String> = catalog::providers()
        .iter()
        .filter_map(|Provider { name, key_var, form, key, base_url, .. }| match (key, base_url) {
            (KeyUse::Required, Some(_)) => Some(format!("  --model {name}/NAME with {key_var} set")),
            (KeyUse::Required, None) => Some(format!("  --model {name}/NAME --base-url {form} with {key_var} set")),
            (KeyUse::Optional, Some(_)) => Some(format!("  --model {name}/NAME for a server on this machine")),
            // Said last.
            (KeyUse::Optional, None) => None,
        })
        .collect();
    Failure::usage(format!(
        "no model is configured. Name one with --model, or as `model = \"provider/name\"` in the configuration:\n{}\n  \
         --model openai-compatible/NAME --base-url http://HOST:PORT/v1 for any other server that speaks OpenAI's chat\n\
         Without any, `autosage demo` shows a recorded agent at real work.",
        keys.join("\n")
    ))
}
