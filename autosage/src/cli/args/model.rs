//! Whom to ask: the flags of a model, for a new run as for one that goes on.

use clap::Args;
use std::path::PathBuf;
use trace::Price;

/// What to ask, and whom.
#[derive(Debug, Default, Args)]
pub struct ModelArgs {
    /// The model, as provider/name; `recorded/FILE` replays a recorded conversation.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub model: Option<String>,
    /// A model to fall back on where the one before is not to be had: overloaded, out of reach, or refused to this account;
    /// or where its window is full and this one has a larger. One that is overloaded is asked again first, for 15 minutes
    /// (`retry_time` in the configuration). May be repeated, in order.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub fallback: Vec<String>,
    /// The server's address, with its version where that is usual: http://HOST:PORT/v1.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The variable that holds the key [default: the provider's own; AUTOSAGE_API_KEY for openai-compatible].
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Dollars for a million tokens of input and of output, for a model without a known price.
    #[arg(long, value_name = "IN,OUT", value_parser = ::model::catalog::price)]
    pub price: Option<Price>,
    /// The model's window in tokens, where it is not known.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub context: Option<u64>,
    /// The most tokens of a reply [default: the model's own, else 8192].
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_output: Option<u64>,
    /// Also write the model's replies to FILE, to be replayed with --model recorded/FILE. A replay ends where a prompt is
    /// another one than was recorded, unless the file's first line says "strict":false.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}
