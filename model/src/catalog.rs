//! From `provider/name` to all that requests depend on: the provider's row, and what `data/models.toml` knows.

mod known;

pub use known::{KEYS, Known, TableError};

use crate::provider::{self, PROVIDERS, Provider};
use crate::wire::Wire;
use std::fmt;
use std::sync::LazyLock;
use trace::{Digest, ModelSpec, Price};

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

/// What is known about models.
#[derive(Clone, PartialEq, Eq)]
pub struct Catalog {
    models: Vec<Known>,
    /// Of all that it was read from.
    digest: Digest,
}

/// What is built in, with where it was read.
const MODELS: &str = include_str!("../data/models.toml");

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| {
    let rows = known::parse(MODELS).expect("a test reads the embedded table");
    Catalog { models: rows.into_iter().map(|(_, known)| known).collect(), digest: Digest::of(MODELS.as_bytes()) }
});

impl fmt::Debug for Catalog {
    /// Without its rows, which are many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").finish_non_exhaustive()
    }
}

impl Default for Catalog {
    /// What is built in.
    fn default() -> Catalog {
        BUILT_IN.clone()
    }
}

impl Catalog {
    /// The same with the rows of `text` (of the form of the table that is built in), which go before those that are there
    /// already, key by key. `place` says where a row was read that does not say so itself.
    ///
    /// # Errors
    /// Where it is not of that form, or a price is only half there.
    pub fn with(mut self, text: &str, place: &str) -> Result<Catalog, TableError> {
        let mut seen: Vec<(String, usize)> = Vec::new();
        for (offset, mut row) in known::parse(text)? {
            let wrong = |told: String| TableError::at(text, offset, told);
            if let Some((_, first)) = seen.iter().find(|(id, _)| *id == row.to_string()) {
                return Err(wrong(format!("{row} has a row in line {first} already: write one row of both")));
            }
            seen.push((row.to_string(), wrong(String::new()).line));
            if row.name.is_empty() {
                return Err(wrong(format!("a row of {} has an empty name: `name` is what requests carry", row.provider)));
            }
            if let (Some(output), Some(context)) = (row.max_output, row.context)
                && output > context
            {
                return Err(wrong(format!(
                    "{row} has a `max_output` of {output}, which is more than its `context` of {context}"
                )));
            }
            row.source.get_or_insert_with(|| place.to_owned());
            let at = self.models.iter().position(|other| (&other.provider, &other.name) == (&row.provider, &row.name));
            let row = match at {
                Some(at) => row.over(&self.models[at]),
                None => row,
            };
            if row.has_half_a_price() {
                return Err(wrong(format!("{row} has only half a price: both `input` and `output` are needed")));
            }
            match at {
                Some(at) => self.models[at] = row,
                None => self.models.push(row),
            }
        }
        self.digest = Digest::of_two(self.digest.to_string().as_bytes(), text.as_bytes());
        Ok(self)
    }

    /// All of them, in the order of the table.
    pub fn models(&self) -> &[Known] {
        &self.models
    }

    /// What is known about the model called `id`.
    pub fn known(&self, id: &str) -> Option<&Known> {
        let row = provider_of(id).ok()?;
        self.row(row.models, &id[row.name.len() + 1..])
    }

    /// The row of a model; the name may carry the date of a snapshot at its end (`-2026-03-05`, `-20260305`).
    fn row(&self, provider: &str, name: &str) -> Option<&Known> {
        let row = |name: &str| self.models.iter().find(|row| row.provider == provider && row.name == name);
        row(name).or_else(|| row(without_date(name)?))
    }

    /// The model called `id` (`provider/name`; the name may hold slashes). Overrides go before what is known. An unknown
    /// maximum output is [`UNKNOWN_MAX_OUTPUT`]; an unknown window or price stays unknown.
    pub fn find(&self, id: &str, overrides: &Overrides) -> Result<ModelSpec, CatalogError> {
        let row = provider_of(id)?;
        let name = &id[row.name.len() + 1..];
        let base_url = overrides
            .base_url
            .as_deref()
            .or(row.base_url)
            .ok_or_else(|| CatalogError::NeedsBaseUrl { id: id.to_owned(), form: row.form })?;
        let base_url = checked(base_url)?;
        let known = self.row(row.models, name);
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
            max_images: known.and_then(|model| model.max_images).or(row.max_images),
            large_images: known.and_then(|model| model.large_images).or(row.large_images),
            structured: known.and_then(|model| model.structured),
            table: known.map(|_| self.digest),
        })
    }
}

/// The model called `id`, with what is built in: see [`Catalog::find`].
pub fn find(id: &str, overrides: &Overrides) -> Result<ModelSpec, CatalogError> {
    BUILT_IN.find(id, overrides)
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

/// Every provider whose models can be asked.
pub fn providers() -> &'static [Provider] {
    PROVIDERS
}

/// Prices as a person writes them: dollars for a million tokens of input and of output, `1.25,10`. Cached input counts as
/// input, for what a cache costs there is unknown.
pub fn price(text: &str) -> Result<Price, String> {
    let wrong =
        |why: &str| format!("`{text}` {why}: dollars for a million tokens of input and output are expected, such as 1.25,10");
    let (input, output) = text.split_once(',').ok_or_else(|| wrong("is no price"))?;
    let nano = |text: &str| nano(text.trim()).map_err(wrong);
    let (input, output) = (nano(input)?, nano(output)?);
    Ok(Price { input, cached: input, cache_write: input, output, long: None })
}

/// Nano-dollars a token from dollars a million tokens: the same number with three more decimals. An error says what the text
/// is instead of a price.
fn nano(dollars: &str) -> Result<u64, &'static str> {
    let (whole, part) = dollars.split_once('.').unwrap_or((dollars, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return Err("is no price");
    }
    let part = part.trim_end_matches('0');
    if part.len() > 3 {
        return Err("is too fine a price (three digits behind the point are kept: 0.001 is the least)");
    }
    format!("{whole}{part:0<3}").parse().map_err(|_| "is too high a price (18446744073709551 is the most)")
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
    fn every_row_says_where_it_was_read_and_stands_once() {
        for known in &BUILT_IN.models {
            assert!(known.source.as_ref().is_some_and(|source| !source.is_empty()), "{known}");
            let read = known.read.as_deref().unwrap();
            assert_eq!(without_date(&format!("-{read}")), Some(""), "{known}: {read}");
            assert!(!known.has_half_a_price(), "{known}");
            let same = |other: &&Known| (&other.provider, &other.name) == (&known.provider, &known.name);
            assert_eq!(BUILT_IN.models.iter().filter(same).count(), 1, "{known}");
        }
    }
}
