//! From `provider/name` to all that requests depend on: the provider's row, and what `data/models.toml` knows.

use crate::provider::{self, PROVIDERS, Provider};
use crate::wire::Wire;
use serde::Deserialize;
use std::sync::LazyLock;
use trace::{Digest, LongPrice, ModelSpec, Price};

/// The most output that a model is asked for when nothing is known about it, in tokens.
pub const UNKNOWN_MAX_OUTPUT: u64 = 8192;

/// What a person knows better than the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Another address, such as `http://host:port/v1`.
    pub base_url: Option<String>,
    /// The prices.
    pub price: Option<Price>,
    /// The window in tokens.
    pub context: Option<u64>,
    /// The most tokens of a reply.
    pub max_output: Option<u64>,
}

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// It is not `provider/name`.
    #[error("`{0}` is not a model: `provider/name` is expected, such as openai/NAME or ollama/NAME (providers: {known})", known = known())]
    NoProvider(String),
    /// No provider has this name.
    #[error("there is no provider `{0}`; there are: {known}. Any other server that speaks OpenAI's chat is openai-compatible/NAME with --base-url", known = known())]
    UnknownProvider(String),
    /// The provider has no address of its own.
    #[error("`{id}` needs an address: --base-url {form}")]
    NeedsBaseUrl {
        /// The model.
        id: String,
        /// What such an address looks like.
        form: &'static str,
    },
    /// The address is none.
    #[error("`{url}` cannot be a base URL: {why}")]
    BadBaseUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

fn known() -> String {
    PROVIDERS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

/// The model called `id` (`provider/name`; the name may hold slashes). Overrides go before what the catalog knows. An
/// unknown maximum output is [`UNKNOWN_MAX_OUTPUT`]; an unknown window or price stays unknown.
pub fn find(id: &str, overrides: &Overrides) -> Result<ModelSpec, CatalogError> {
    let row = provider_of(id)?;
    let name = &id[row.name.len() + 1..];
    let base_url = overrides
        .base_url
        .as_deref()
        .or(row.base_url)
        .ok_or_else(|| CatalogError::NeedsBaseUrl { id: id.to_owned(), form: row.form })?;
    let base_url = checked(base_url)?;
    let known = TABLE.model(row.models, name);
    let effort = known.and_then(|model| match row.wire {
        Wire::OpenAiChat => model.chat_effort.clone(),
        Wire::OpenAiResponses | Wire::AnthropicMessages | Wire::Gemini => model.effort.clone(),
    });
    Ok(ModelSpec {
        id: id.to_owned(),
        name: name.to_owned(),
        wire: row.wire.name().to_owned(),
        provider: row.name.to_owned(),
        base_url: Some(base_url),
        max_output: overrides.max_output.or(known.and_then(|model| model.max_output)).unwrap_or(UNKNOWN_MAX_OUTPUT),
        context: overrides.context.or(known.and_then(|model| model.context)),
        price: overrides.price.or(known.and_then(Known::price)),
        effort,
        reasons: known.and_then(|model| model.reasons),
        images: known.and_then(|model| model.images),
        structured: known.and_then(|model| model.structured),
        table: known.map(|_| Digest::of(MODELS.as_bytes())),
    })
}

/// The provider of the model called `id`: where it is, and which variables it wants.
pub fn provider_of(id: &str) -> Result<&'static Provider, CatalogError> {
    let (name, model) = id.split_once('/').ok_or_else(|| CatalogError::NoProvider(id.to_owned()))?;
    match provider::find(name) {
        _ if model.is_empty() => Err(CatalogError::NoProvider(id.to_owned())),
        Some(row) => Ok(row),
        None => Err(CatalogError::UnknownProvider(name.to_owned())),
    }
}

/// The model called `id` by the name under which it is asked on the wire called `wire`, if its provider speaks that too:
/// `openai/NAME` on `openai-chat` is `openai-chat/NAME`.
pub fn on_wire(id: &str, wire: &str) -> Option<String> {
    let row = provider_of(id).ok()?;
    let other = PROVIDERS.iter().find(|other| other.models == row.models && other.wire.name() == wire)?;
    Some(format!("{}{}", other.name, &id[row.name.len()..]))
}

/// Every provider whose models can be asked.
pub fn providers() -> &'static [Provider] {
    PROVIDERS
}

/// Prices as a person writes them: dollars for a million tokens of input and of output, `1.25,10`. Cached input counts as
/// input, for what a cache costs there is unknown.
pub fn price(text: &str) -> Result<Price, String> {
    let wrong =
        || format!("`{text}` is not a price: dollars for a million tokens of input and output are expected, such as 1.25,10");
    let (input, output) = text.split_once(',').ok_or_else(wrong)?;
    let (input, output) = (nano(input.trim()).ok_or_else(wrong)?, nano(output.trim()).ok_or_else(wrong)?);
    Ok(Price { input, cached: input, cache_write: input, output, long: None })
}

/// Nano-dollars a token from dollars a million tokens: the same number with three more decimals.
fn nano(dollars: &str) -> Option<u64> {
    let (whole, part) = dollars.split_once('.').unwrap_or((dollars, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 3 || !digits(whole) || !digits(part) {
        return None;
    }
    format!("{whole}{part:0<3}").parse().ok()
}

fn checked(base_url: &str) -> Result<String, CatalogError> {
    // A password must not be repeated in the message.
    let shown = || base_url.rsplit('@').next().unwrap_or_default().split(['?', '#']).next().unwrap_or_default().to_owned();
    let wrong = |why: &str| CatalogError::BadBaseUrl { url: shown(), why: why.to_owned() };
    let url = reqwest::Url::parse(base_url).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it may hold no user, password, query or fragment; a key is given by a variable"));
    }
    Ok(base_url.trim_end_matches('/').to_owned())
}

/// What is known about models, with where it was read.
const MODELS: &str = include_str!("../data/models.toml");

static TABLE: LazyLock<Table> = LazyLock::new(|| toml::from_str(MODELS).expect("a test reads the embedded table"));

#[derive(Deserialize)]
struct Table {
    model: Vec<Known>,
}

/// A row of the table; its source and date are for people.
#[derive(Deserialize)]
struct Known {
    provider: String,
    name: String,
    context: Option<u64>,
    max_output: Option<u64>,
    effort: Option<String>,
    chat_effort: Option<String>,
    reasons: Option<bool>,
    images: Option<bool>,
    structured: Option<bool>,
    #[serde(flatten)]
    price: Option<Dollars>,
    long: Option<Long>,
}

/// Dollars for a million tokens; a missing price of the cache is that of input.
#[derive(Deserialize)]
struct Dollars {
    input: String,
    cached: Option<String>,
    cache_write: Option<String>,
    output: String,
}

/// What all tokens of a request with a longer prompt cost.
#[derive(Deserialize)]
struct Long {
    above: u64,
    #[serde(flatten)]
    price: Dollars,
}

impl Table {
    /// The row of a model; the name may carry the date of a snapshot at its end (`-2026-03-05`, `-20260305`).
    fn model(&self, provider: &str, name: &str) -> Option<&Known> {
        let row = |name: &str| self.model.iter().find(|row| row.provider == provider && row.name == name);
        row(name).or_else(|| row(without_date(name)?))
    }
}

impl Known {
    fn price(&self) -> Option<Price> {
        let price = self.price.as_ref()?.price()?;
        let long = match &self.long {
            None => None,
            Some(long) => {
                let Price { input, cached, cache_write, output, .. } = long.price.price()?;
                Some(LongPrice { above: long.above, input, cached, cache_write, output })
            }
        };
        Some(Price { long, ..price })
    }
}

impl Dollars {
    fn price(&self) -> Option<Price> {
        let (input, output) = (nano(&self.input)?, nano(&self.output)?);
        let or_input = |text: &Option<String>| text.as_deref().map_or(Some(input), nano);
        Some(Price { input, cached: or_input(&self.cached)?, cache_write: or_input(&self.cache_write)?, output, long: None })
    }
}

/// A name without the date of a snapshot, in either form.
fn without_date(name: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let long = |(place, byte): (usize, u8)| if matches!(place, 0 | 5 | 8) { byte == b'-' } else { byte.is_ascii_digit() };
    let split = |length: usize| name.split_at_checked(name.len().checked_sub(length)?);
    let dashed = split("-2026-01-31".len()).filter(|(_, date)| date.bytes().enumerate().all(long));
    let plain = || split("-20260131".len()).filter(|(_, date)| date.strip_prefix('-').is_some_and(digits));
    dashed.or_else(plain).map(|(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_where_it_was_read_and_has_no_other_fields() {
        let fields = [
            "provider",
            "name",
            "context",
            "max_output",
            "effort",
            "chat_effort",
            "reasons",
            "images",
            "structured",
            "input",
            "cached",
            "cache_write",
            "output",
            "long",
            "source",
            "read",
        ];
        let table: toml::Table = toml::from_str(MODELS).unwrap();
        let rows = table["model"].as_array().unwrap();
        assert_eq!(rows.len(), TABLE.model.len());
        for (row, known) in rows.iter().zip(&TABLE.model) {
            let row = row.as_table().unwrap();
            row.keys().for_each(|field| assert!(fields.contains(&field.as_str()), "{}: {field}", known.name));
            assert!(!row["source"].as_str().unwrap().is_empty());
            let read = row["read"].as_str().unwrap();
            assert_eq!(without_date(&format!("-{read}")), Some(""), "{}: {read}", known.name);
            assert_eq!(known.price().is_some(), row.contains_key("input"), "{}", known.name);
            assert_eq!(known.price().and_then(|price| price.long).is_some(), row.contains_key("long"), "{}", known.name);
            let same = TABLE.model.iter().filter(|other| (&other.provider, &other.name) == (&known.provider, &known.name));
            assert_eq!(same.count(), 1, "{}", known.name);
        }
    }
}
