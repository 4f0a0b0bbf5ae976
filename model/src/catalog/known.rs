//! What is known about a model: a row of the table that is built in, or of a person's own, which has the same form.

use super::nano;
use crate::provider::PROVIDERS;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use std::fmt;
use trace::{LargeImages, LongPrice, Price};

/// A row of a table. What it does not say is not known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The provider, by the name that its ways to these models share (`openai`, also for `openai-chat`).
    #[serde(deserialize_with = "provider")]
    pub provider: String,
    /// The name that requests carry.
    pub name: String,
    /// The window in tokens.
    #[serde(default, deserialize_with = "positive")]
    pub context: Option<u64>,
    /// The most tokens of a reply.
    #[serde(default, deserialize_with = "positive")]
    pub max_output: Option<u64>,
    /// The reasoning effort that requests ask for.
    pub effort: Option<String>,
    /// The same on Chat Completions.
    pub chat_effort: Option<String>,
    /// Whether it reasons.
    pub reasons: Option<bool>,
    /// Whether it sees pictures.
    pub images: Option<bool>,
    /// The most pictures of a request.
    #[serde(default, deserialize_with = "positive")]
    pub max_images: Option<u64>,
    /// The most where one of them is large.
    #[serde(default, deserialize_with = "large_images")]
    pub large_images: Option<LargeImages>,
    /// Whether it can be held to a schema in its answer.
    pub structured: Option<bool>,
    input: Option<Dollars>,
    cached: Option<Dollars>,
    cache_write: Option<Dollars>,
    output: Option<Dollars>,
    long: Option<Long>,
    /// Where it was read.
    pub source: Option<String>,
    /// The day to which that vouches for it.
    pub read: Option<String>,
}

/// What all tokens of a request with a longer prompt cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    above: u64,
    input: Dollars,
    cached: Option<Dollars>,
    cache_write: Option<Dollars>,
    output: Dollars,
}

/// The keys of a row of a table, of its `long` and of its `large_images`.
pub const KEYS: [&str; 20] = [
    "provider",
    "name",
    "context",
    "max_output",
    "effort",
    "chat_effort",
    "reasons",
    "images",
    "max_images",
    "large_images",
    "structured",
    "input",
    "cached",
    "cache_write",
    "output",
    "long",
    "above",
    "most",
    "source",
    "read",
];

/// Dollars for a million tokens, as they are written; kept in nano-dollars a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dollars(u64);

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Dollars, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Dollars;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text with the dollars for a million tokens, such as \"1.25\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Dollars, E> {
                let wrong =
                    |why| E::custom(format!("`{text}` {why}: dollars for a million tokens are expected, such as \"1.25\""));
                nano(text).map(Dollars).map_err(wrong)
            }
        }
        from.deserialize_str(Text)
    }
}

/// A number that is not zero.
fn positive<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    std::num::NonZeroU64::deserialize(deserializer).map(|number| Some(number.get()))
}

/// The provider of a row must be one whose models have rows.
fn provider<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let known = || PROVIDERS.iter().map(|row| row.models);
    if known().any(|models| models == name) {
        return Ok(name);
    }
    let row = PROVIDERS.iter().find(|row| row.name == name).map(|row| row.models.to_owned());
    let meant = row.or_else(|| near(&name, known())).map(|meant| format!(": did you mean \"{meant}\"?")).unwrap_or_default();
    Err(serde::de::Error::custom(format!("no models are kept under the provider \"{name}\"{meant}")))
}

/// The same as a record has it, but without a key that is not known: a record may have one that a later version wrote.
fn large_images<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LargeImages>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Large {
        above: u32,
        most: u64,
    }
    Large::deserialize(from).map(|Large { above, most }| Some(LargeImages { above, most }))
}

impl Known {
    /// The prices, where there are any; a missing price of the cache is that of input.
    pub fn price(&self) -> Option<Price> {
        let (input, output) = (self.input?.0, self.output?.0);
        let or_input = |price: Option<Dollars>| price.map_or(input, |price| price.0);
        let long = self.long.map(|long| {
            let or_input = |price: Option<Dollars>| price.map_or(long.input.0, |price| price.0);
            let (cached, cache_write) = (or_input(long.cached), or_input(long.cache_write));
            LongPrice { above: long.above, input: long.input.0, cached, cache_write, output: long.output.0 }
        });
        Some(Price { input, cached: or_input(self.cached), cache_write: or_input(self.cache_write), output, long })
    }

    /// Whether it says of one price what must be said of two.
    pub(super) fn has_half_a_price(&self) -> bool {
        self.input.is_some() != self.output.is_some()
            || (self.input.is_none() && (self.cached.is_some() || self.cache_write.is_some() || self.long.is_some()))
    }

    /// What this row says, and where it says nothing, what `below` does.
    pub(super) fn over(self, below: &Known) -> Known {
        Known {
            context: self.context.or(below.context),
            max_output: self.max_output.or(below.max_output),
            effort: self.effort.or_else(|| below.effort.clone()),
            chat_effort: self.chat_effort.or_else(|| below.chat_effort.clone()),
            reasons: self.reasons.or(below.reasons),
            images: self.images.or(below.images),
            max_images: self.max_images.or(below.max_images),
            large_images: self.large_images.or(below.large_images),
            structured: self.structured.or(below.structured),
            input: self.input.or(below.input),
            cached: self.cached.or(below.cached),
            cache_write: self.cache_write.or(below.cache_write),
            output: self.output.or(below.output),
            long: self.long.or(below.long),
            source: [self.source, below.source.clone()].into_iter().flatten().reduce(|own, below| format!("{own}; {below}")),
            read: self.read.or_else(|| below.read.clone()),
            ..self
        }
    }
}

/// What is wrong in a table of a person's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {text}")]
pub struct TableError {
    /// The line, counted from one.
    pub line: usize,
    /// The column in characters, counted from one.
    pub column: usize,
    /// What it is.
    pub text: String,
}

impl TableError {
    pub(super) fn at(file: &str, offset: usize, text: String) -> TableError {
        let before = &file[..file.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        TableError { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, text }
    }
}

/// The rows of a file, each with the place where it begins.
pub(super) fn parse(text: &str) -> Result<Vec<(usize, Known)>, TableError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        model: Vec<toml::Spanned<Known>>,
    }
    let file: File = toml::from_str(text).map_err(|error| wrong(text, &error))?;
    Ok(file.model.into_iter().map(|row| (row.span().start, row.into_inner())).collect())
}

fn wrong(text: &str, error: &toml::de::Error) -> TableError {
    let span = error.span().unwrap_or_default();
    let key = text.get(span.clone()).unwrap_or_default().trim_matches(['[', ']', '"']);
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let is_unknown = error.message().starts_with("unknown field") && is_key;
    let told = match near(key, KEYS.into_iter().chain(["model"])).filter(|_| is_unknown) {
        Some(meant) => format!("unknown key `{key}`: did you mean `{meant}`?"),
        None => error.message().lines().collect::<Vec<_>>().join(" "),
    };
    TableError::at(text, span.start, told)
}

/// The one of `known` that was perhaps meant by `word`.
fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let distance = |name: &str| {
        let distance = strsim::osa_distance(&word.to_lowercase().replace('-', "_"), name);
        (distance <= word.chars().count().max(name.len()) / 3).then_some(distance)
    };
    known.into_iter().filter_map(|name| Some((distance(name)?, name))).min().map(|(_, name)| name.to_owned())
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}
