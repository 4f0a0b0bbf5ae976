//! `autosage models`: what is known about models, what a run would use, and whether it works.

mod list;

use super::args::{CheckArgs, ModelArgs, ModelsArgs, ModelsCommand, PlaceArgs, ShowModelArgs};
use super::config::Config;
use super::failure::Failure;
use super::finding::{self, Finding, State};
use super::print;
use super::prose::{clean, grouped, length, wrapped};
use super::session::runtime;
use super::thinker::{self, Candidate, KeyState};
use super::view::room;
use crate::Parts;
use model::Checked;
use serde::Serialize;
use trace::{Cost, FaultClass, ModelSpec, Price};

/// Lists, shows or checks models. The exit code of a check is 4 where anything does not work.
pub fn models(args: ModelsArgs, config: &Config, parts: &Parts) -> Result<u8, Failure> {
    match args.command.unwrap_or(ModelsCommand::List(args.list)) {
        ModelsCommand::List(args) => Ok(list::list(&args, config, parts)),
        ModelsCommand::Show(args) => show(&args, config, parts),
        ModelsCommand::Check(args) => check(&args, config, parts),
    }
}

/// Dollars for a million tokens, from nano-dollars a token.
fn dollars(nano: u64) -> String {
    let text = format!("{}.{:03}", nano / 1000, nano % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What was typed of a place, as a run would have it typed.
fn typed(place: &PlaceArgs) -> ModelArgs {
    ModelArgs { base_url: place.base_url.clone(), key_env: place.key_env.clone(), ..ModelArgs::default() }
}

/// All that a run would use, in one object.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    spec: &'a ModelSpec,
    window: u64,
    key_var: &'a str,
    key: bool,
    source: Option<&'a str>,
    read: Option<&'a str>,
}

fn show(args: &ShowModelArgs, config: &Config, parts: &Parts) -> Result<u8, Failure> {
    let id = args.model.as_deref().or(config.model.as_deref()).ok_or_else(thinker::no_model)?;
    let Candidate { spec, key_var, key, .. } = thinker::candidate(id, &typed(&args.place), config, parts)?;
    let known = config.catalog.known(id);
    let (source, read) =
        known.map_or((None, None), |known| (known.source.as_deref().map(clean), known.read.as_deref().map(clean)));
    if args.json {
        let (source, read) = (source.as_deref(), read.as_deref());
        let shown =
            Shown { window: spec.window(), key_var: &key_var, key: matches!(key, KeyState::Known), source, read, spec: &spec };
        print(&parts.out, &(serde_json::to_string(&shown).unwrap_or_default() + "\n"));
        return Ok(0);
    }
    let or_unknown = |said: Option<bool>| match said {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not known",
    };
    let window = match spec.context {
        Some(window) => format!("{} tokens", grouped(window)),
        None => format!("not known: {} tokens are assumed; --context N says otherwise", grouped(spec.window())),
    };
    let price = spec.price.map_or("not known: --price IN,OUT says what it costs".to_owned(), |price| told_price(&price));
    let key = match &key {
        KeyState::Known => format!("{key_var}, which is set"),
        KeyState::NotNeeded => format!("{key_var}, which is not set and may not be needed"),
        KeyState::Refused(why) => why.clone(),
    };
    let effort = spec.effort.as_deref().unwrap_or("left to the server");
    let read = match (source, read) {
        (Some(source), Some(read)) => format!("{source} ({read})"),
        (Some(source), None) => source,
        (None, _) => "nowhere: nothing is known about it, and it is sent as it is".to_owned(),
    };
    let lines = [
        ("wire", spec.wire.clone()),
        ("address", spec.base_url.clone().unwrap_or_default()),
        ("key", key),
        ("window", window),
        ("most output", format!("{} tokens", grouped(spec.max_output))),
        ("price", price),
        ("effort", effort.to_owned()),
        ("reasons", or_unknown(spec.reasons).to_owned()),
        ("sees pictures", or_unknown(spec.images).to_owned()),
        ("pictures at once", pictures_at_once(&spec)),
        ("keeps to a schema", or_unknown(spec.structured).to_owned()),
        ("read in", read),
    ];
    let told = |(name, said): &(&str, String)| two_columns(name, &clean(said), room(parts));
    print(&parts.out, &format!("{}\n{}", clean(&spec.id), lines.iter().map(told).collect::<String>()));
    Ok(0)
}

/// A name and what is said of it, in a column of its own or, where there is little room, below it.
fn two_columns(name: &str, said: &str, width: Option<usize>) -> String {
    const NAMES: usize = 21;
    const SOME_WORDS: usize = 30;
    let (first, margin) = match width {
        Some(width) if width < NAMES + SOME_WORDS => (format!("  {name}\n"), 4),
        _ => (String::new(), NAMES),
    };
    let mut name = if first.is_empty() { format!("  {name}") } else { String::new() };
    let lines = wrapped(said, width.map_or(usize::MAX, |width| width.saturating_sub(margin).max(1)));
    let line = |line: String| format!("{:<margin$}{line}\n", std::mem::take(&mut name));
    first + &lines.into_iter().map(line).collect::<String>()
}

fn pictures_at_once(spec: &ModelSpec) -> String {
    let most = spec.max_images.map_or("no limit is known".to_owned(), |most| format!("{} at most", grouped(most)));
    let large = spec.large_images.map(|large| {
        let (most, above) = (grouped(large.most), grouped(u64::from(large.above)));
        format!(", {most} where one is larger than {above} pixels at a side")
    });
    most + &large.unwrap_or_default()
}

fn told_price(price: &Price) -> String {
    let of = |input, cached, cache_write, output| {
        let [input, cached, cache_write, output] = [input, cached, cache_write, output].map(dollars);
        format!("${input} in, ${cached} from a cache, ${cache_write} written to one, ${output} out")
    };
    let usual = of(price.input, price.cached, price.cache_write, price.output);
    let long = price.long.map(|long| {
        let above = grouped(long.above);
        format!("; with more than {above} tokens of prompt {}", of(long.input, long.cached, long.cache_write, long.output))
    });
    format!("{usual}, for a million tokens{}", long.unwrap_or_default())
}

fn check(args: &CheckArgs, config: &Config, parts: &Parts) -> Result<u8, Failure> {
    let (configured, typed) = (config.model.as_ref().filter(|_| args.models.is_empty()), typed(&args.place));
    let mut candidates = Vec::new();
    for id in args.models.iter().chain(configured) {
        candidates.push(thinker::candidate(id, &typed, config, parts)?);
    }
    for id in config.fallback.iter().filter(|id| configured.is_some_and(|first| first != *id)) {
        candidates.push(thinker::further(id, &candidates[0], config, parts, None)?);
    }
    if candidates.is_empty() {
        return Err(thinker::no_model());
    }
    let runtime = runtime()?;
    let mut is_sound = true;
    for Candidate { spec, key_var, key, access } in candidates {
        let id = spec.id.clone();
        let findings = match key {
            KeyState::Refused(why) => vec![Finding { name: "key".into(), state: State::Bad, detail: why, fix: None }],
            KeyState::Known | KeyState::NotNeeded => {
                let key = if access.key.is_some() { Some(key_var.as_str()) } else { None };
                findings(&runtime.block_on(model::check(spec, access, parts.clock.as_ref())), key)
            }
        };
        is_sound &= finding::is_sound(&findings);
        print(&parts.out, &format!("{}\n{}", clean(&id), finding::text(&findings)));
    }
    Ok(if is_sound { 0 } else { 4 })
}

/// What a check found, a line each. `key` is the variable of the key that was sent.
fn findings(checked: &Checked, key: Option<&str>) -> Vec<Finding> {
    let finding = |name: &str, state, detail: String| Finding { name: name.to_owned(), state, detail, fix: None };
    let good = |name: &str, detail: String| finding(name, State::Good, detail);
    let cost = match checked.cost {
        Cost::NanoUsd(cost) => cost.to_string(),
        Cost::Unpriced => "no price is known".to_owned(),
    };
    let Some(status) = checked.status else {
        let why = checked.wrong.as_ref().map(|wrong| wrong.message.clone()).unwrap_or_default();
        return vec![finding("server", State::Bad, why)];
    };
    let mut all = vec![good("server", format!("{} answered with status {status}", checked.url))];
    if let Some(wrong) = &checked.wrong {
        let name = match (status, wrong.class) {
            (401 | 403, _) => "key",
            (400, FaultClass::Rejected) if wrong.message.contains("API key") => "key",
            (402 | 429, _) => "account",
            (404, _) => "model",
            (200 | 500.., _) => "answer",
            _ => "request",
        };
        all.push(finding(name, State::Bad, wrong.message.clone()));
        all.push(good("cost", cost));
        return all;
    }
    all.push(match key {
        Some(name) => good("key", format!("the one in {name} is taken")),
        None => finding("key", State::Missing, "none was sent, and none was wanted".to_owned()),
    });
    all.push(good(
        "model",
        format!("it answers{}", checked.served.as_ref().map(|name| format!(", as {name}")).unwrap_or_default()),
    ));
    let (first, total) = (checked.first_token_ms.map_or("?".to_owned(), length), length(checked.total_ms));
    all.push(match checked.streamed {
        true => good("stream", format!("the first word came after {first}, the last after {total}")),
        false => finding("stream", State::Missing, format!("the answer came as a whole, after {total}: nothing is seen before")),
    });
    all.push(match checked.called {
        true => good("tools", "it called the tool that was offered".to_owned()),
        false => {
            let told = "it did not call the tool that was offered, and an agent works by calls: try another model";
            finding("tools", State::Bad, told.to_owned())
        }
    });
    all.push(match checked.usage {
        Some(usage) => good("usage", format!("{} tokens in, {} out", grouped(usage.input), grouped(usage.output))),
        None => finding("usage", State::Missing, "the server does not tell it, so budgets go by estimate".to_owned()),
    });
    all.push(good("cost", cost));
    all
}
