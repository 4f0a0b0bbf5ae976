//! What can be typed of `autosage models`.

use clap::{Args, Subcommand};

/// `autosage models`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsArgs {
    /// What to do; the models are listed where nothing is said.
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// What can be done with models.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List what is known about models: window, most output, prices, and whether there is a key.
    List(ListArgs),
    /// Show all that a run with a model would use, and where it was read.
    Show(ShowModelArgs),
    /// Send one cheap request to each, and say what works: the server, the key, the model, its calls.
    ///
    /// It offers one tool and asks for a call of it, with at most 1,024 tokens of answer, within a minute, and does not ask
    /// twice. What it cost is said.
    Check(CheckArgs),
}

/// Which models are listed.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those with this in their name or their provider's.
    pub text: Option<String>,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// Where a server is.
#[derive(Debug, Default, Args)]
pub struct PlaceArgs {
    /// The server's address, with its version where that is usual: http://HOST:PORT/v1.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The variable that holds the key [default: the provider's own; AUTOSAGE_API_KEY for openai-compatible].
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
}

/// `autosage models show`.
#[derive(Debug, Args)]
pub struct ShowModelArgs {
    /// The model [default: the configured one].
    #[arg(value_name = "PROVIDER/NAME")]
    pub model: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `autosage models check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The models [default: the configured one, and those to fall back on].
    #[arg(value_name = "PROVIDER/NAME")]
    pub models: Vec<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}
