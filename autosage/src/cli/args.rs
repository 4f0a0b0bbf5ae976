//! What can be typed: commands, flags, and how their values are read.

mod answer;
mod model;
mod models;
mod pictures;
mod values;

pub use answer::AnswerArgs;
pub use model::ModelArgs;
pub use models::{CheckArgs, ListArgs, ModelsArgs, ModelsCommand, PlaceArgs, ShowModelArgs};
pub use pictures::PictureArgs;
pub use values::{Right, duration, usd};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use trace::{Durability, NanoUsd};
use values::{age, answer, bytes, right};

/// An engine for agents.
///
/// Give an agent a task; it works in a folder, inside walls, on a record from which everything can be rebuilt.
#[derive(Debug, Parser)]
#[command(name = "autosage", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "First time here? `autosage demo` needs no key and no server.\n\n\
    Keys come from the providers' usual variables, such as ANTHROPIC_API_KEY. Everything that is kept lies under $AUTOSAGE_HOME \
    (default: ~/.local/share/autosage).\n\n\
    Exit codes: 0 done, 1 ended without success, 2 usage or configuration, 3 budget exhausted, 4 infrastructure, 130 interrupted.")]
pub struct Line {
    /// The person's configuration, or `none`. Default: $XDG_CONFIG_HOME/autosage/config.toml, if it is there.
    #[arg(long, global = true, value_name = "FILE|none")]
    pub config: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give an agent a task and watch it work.
    ///
    /// At a terminal the run stays open for a follow-up; what is typed meanwhile waits its turn. Elsewhere stdout carries
    /// the final answer only, and progress goes to stderr.
    #[command(override_usage = "autosage run [OPTIONS] <TASK|-|-f FILE>")]
    #[command(after_help = "Examples:\n  autosage run \"make the tests pass\" --check \"cargo test\"\n  \
        autosage run -f task.md --workspace ../site --max-usd 0.50\n  \
        autosage run \"tidy the README\" --model anthropic/claude-opus-5-5\n  \
        autosage run \"tidy the README\" --model ollama/qwen3-coder")]
    Run(RunArgs),
    /// Go on with a run: after an interrupt, a crash or a limit, or with a further message.
    Resume(ResumeArgs),
    /// Say something to a run while it works, or answer its question; its owner takes it in between two steps.
    #[command(after_help = "Examples:\n  autosage send RUN \"leave the tests alone\"\n  \
        autosage send RUN --answer 12=once\n  autosage send RUN --answer 12=no \"use the mirror in the workspace\"")]
    Send(SendArgs),
    /// List the runs, newest first; prune, export and import them.
    Runs(RunsArgs),
    /// Show a run: its story, its events, its cost, a request, or whether its record is intact.
    Show(ShowArgs),
    /// What is known about models, what a run would use, and whether it works.
    ///
    /// A file models.toml beside your configuration goes before what is built in, key by key; it has the same form:
    /// [[model]] with provider and name, and any of context, max_output, effort, chat_effort, reasons, images, max_images,
    /// large_images = { above, most }, structured, input, cached, cache_write, output, long = { above, input, cached,
    /// cache_write, output }, source, read. Prices are texts: dollars for a million tokens.
    #[command(after_help = "Examples:\n  autosage models openai\n  autosage models show anthropic/claude-opus-5-5\n  \
        autosage models check                       # the configured one\n  \
        autosage models check ollama/qwen3-coder --base-url http://127.0.0.1:11434/v1")]
    Models(ModelsArgs),
    /// Trust what a project's own files ask for, after a look at it.
    ///
    /// A project says in autosage.toml what a run in it should be like. Untrusted, it may only narrow: add checks, lower the
    /// budget, choose a model that your configuration lists as one of `models`. Addresses, keys, walls, approval and rights
    /// count once you have trusted the file, and no longer when it changes. The same goes for .mcp.json, which is not used yet.
    #[command(after_help = "Examples:\n  autosage trust            # shows what is asked for, and asks you\n  \
        autosage trust ../site --show\n  autosage trust --revoke   # forgets the trust, and what you approved for always")]
    Trust(TrustArgs),
    /// The text and settings that shape the agent.
    #[command(subcommand)]
    Harness(HarnessCommand),
    /// Say what works on this machine, and how to mend what does not.
    Doctor,
    /// Watch a recorded agent mend a real defect: no key, no server, no root.
    Demo(DemoArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// What may be spent.
#[derive(Debug, Default, Args)]
pub struct BudgetArgs {
    /// The most requests to think; one that is made again counts in tokens and money alone [a new run's: 200].
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u64>,
    /// The most tokens, input and output together.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// The most money, in dollars.
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub max_usd: Option<NanoUsd>,
    /// The most active time, such as 90s, 30m or 2h [a new run's: 2h].
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub max_time: Option<Duration>,
}

/// How a run is shown.
#[derive(Debug, Default, Args)]
pub struct ViewArgs {
    /// Print the record's events to stdout, one JSON object a line, and nothing else.
    #[arg(long)]
    pub json: bool,
}

/// What standard output carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The record's lines, and nothing else.
    Lines,
    /// The answer; the story goes to standard error.
    Answer,
}

impl ViewArgs {
    /// What standard output carries.
    pub fn output(&self) -> Output {
        if self.json { Output::Lines } else { Output::Answer }
    }
}

/// What becomes of a call that wants more rights than are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approve {
    /// Nobody is asked: what the configuration lists under [allow] is allowed, the rest is denied.
    Auto,
    /// You are asked, here at the terminal; without one it is denied.
    Ask,
    /// The run waits until it is answered with `autosage send RUN --answer`.
    Wait,
    /// It is denied.
    Deny,
}

impl From<Approve> for trace::Approve {
    fn from(approve: Approve) -> trace::Approve {
        match approve {
            Approve::Auto => trace::Approve::Auto,
            Approve::Ask => trace::Approve::Ask,
            Approve::Wait => trace::Approve::Wait,
            Approve::Deny => trace::Approve::Deny,
        }
    }
}

/// `autosage run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task; `-` reads it from standard input.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub task: Option<String>,
    /// Read the task from a file.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// The folder to work in [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub budget: BudgetArgs,
    /// A command that must succeed before the work is accepted; may be repeated.
    #[arg(long, value_name = "CMD")]
    pub check: Vec<String>,
    /// How often failed checks go back to the agent before the run has failed [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_claims: Option<u32>,
    /// A variable of yours that commands have and nothing else learns: it stands as a placeholder in the record, in what the
    /// model is sent and in what is shown; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    /// A right beyond the workspace: read=PATH, write=PATH or network; may be repeated.
    #[arg(long, value_name = "RIGHT", value_parser = right)]
    pub grant: Vec<Right>,
    /// The walls: native, reduced (containers without namespaces) or host (none).
    #[arg(long, value_name = "KIND")]
    pub sandbox: Option<sandbox::Kind>,
    /// What becomes of a call that wants more rights than are granted [default: ask].
    #[arg(long, value_enum, value_name = "HOW")]
    pub approve: Option<Approve>,
    /// Only read the workspace: for a plan, or a question.
    #[arg(long)]
    pub read_only: bool,
    /// Another harness than the embedded one; see `autosage harness export`.
    #[arg(long, value_name = "DIR")]
    pub harness: Option<PathBuf>,
    /// What the record survives: `process`, the end of the program, or `power`, a power cut too [default: power].
    #[arg(long, value_name = "WHAT")]
    pub durability: Option<Durability>,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Whether a workspace is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReadOnly {
    /// It is.
    Yes,
    /// It is written too.
    No,
}

/// `autosage resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub which: Which,
    /// Say something to the agent first.
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Go on as a new run from the last good line of a record that is damaged behind it; the old run stays as it is.
    #[arg(long)]
    pub as_new: bool,
    /// Go on with an imported run as its record says: where it works, whom it asks, what its commands may.
    #[arg(long)]
    pub as_recorded: bool,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub budget: BudgetArgs,
    /// A further variable of yours that commands have and nothing else learns; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    /// A further right beyond the workspace: read=PATH, write=PATH or network; may be repeated.
    #[arg(long, value_name = "RIGHT", value_parser = right)]
    pub grant: Vec<Right>,
    /// The walls, where they are to be others than before.
    #[arg(long, value_name = "KIND")]
    pub sandbox: Option<sandbox::Kind>,
    /// What becomes of a call that wants more rights than are granted [default: as before if that was auto or wait, else ask].
    #[arg(long, value_enum, value_name = "HOW")]
    pub approve: Option<Approve>,
    /// Only read the workspace from here on; `--read-only=no` lets it be written again.
    #[arg(long, value_enum, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes")]
    pub read_only: Option<ReadOnly>,
    /// What the record survives from here on: `process`, the end of the program, or `power`, a power cut too
    /// [default: power].
    #[arg(long, value_name = "WHAT")]
    pub durability: Option<Durability>,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// Which run.
#[derive(Debug, Args)]
pub struct Which {
    /// The run; the start of its name is enough where it is unique.
    #[arg(value_name = "RUN|--last", required_unless_present = "last", conflicts_with = "last")]
    pub run: Option<String>,
    /// The newest run.
    #[arg(long)]
    pub last: bool,
}

/// `autosage send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The run; the start of its name is enough where it is unique.
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What to say; `-` reads it from standard input.
    #[arg(required_unless_present = "answer")]
    pub text: Option<String>,
    /// Answer the question that event SEQ asks: once (this call may), run (every call of the run may), no.
    #[arg(long, value_name = "SEQ=once|run|no", value_parser = answer)]
    pub answer: Option<(u64, trace::Answer)>,
}

/// `autosage runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// What to do with them; they are listed where nothing is said.
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

/// What can be done with runs besides listing them.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Remove old runs, and what dead sessions left behind; shows what would go and asks first.
    ///
    /// A run goes where every condition that is given says so, the oldest first. Never one that somebody works on.
    #[command(after_help = "Examples:\n  autosage runs prune --older-than 30d --keep 50\n  \
        autosage runs prune --size 2G --yes")]
    Prune(PruneArgs),
    /// Write a run into one file that opens elsewhere and can be verified there.
    ///
    /// It holds the record, its blobs and what waits in its inbox. A run may be worked on meanwhile: it is written up to its
    /// last whole event.
    Export(ExportArgs),
    /// Read a run from a file that `export` wrote; nothing is taken that does not verify.
    Import(ImportArgs),
}

/// `autosage runs prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Runs whose last event is older than this, such as 12h, 30d or 8w.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<Duration>,
    /// Runs beyond the newest N.
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// As many as must go for the rest to take no more than this, such as 500M or 2G.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub size: Option<u64>,
    /// Also runs that were broken off or are damaged.
    #[arg(long)]
    pub all: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

impl PruneArgs {
    /// Whether any condition chooses runs.
    pub fn is_choice(&self) -> bool {
        self.older_than.is_some() || self.keep.is_some() || self.size.is_some()
    }
}

/// `autosage runs export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run; the start of its name is enough where it is unique.
    pub run: String,
    /// The file, which must not exist; `-` is standard output [default: RUN.tar.gz].
    pub file: Option<PathBuf>,
}

/// `autosage runs import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file; `-` is standard input.
    pub file: PathBuf,
}

/// `autosage show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub which: Which,
    /// What to show.
    #[command(flatten)]
    pub what: ShowWhat,
}

/// One of these; the run's story where none is given.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ShowWhat {
    /// One line for each event.
    #[arg(long)]
    pub events: bool,
    /// What each request used and cost.
    #[arg(long)]
    pub cost: bool,
    /// The story, and what is yet to come.
    #[arg(long)]
    pub follow: bool,
    /// The run as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Whether every line and every blob of the record is intact.
    #[arg(long)]
    pub verify: bool,
    /// The request at event SEQ, or that of the reply at SEQ: rebuilt from the events, proven against its digest, printed.
    #[arg(long, value_name = "SEQ")]
    pub prompt: Option<u64>,
}

/// `autosage trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// The workspace [default: the current folder].
    pub dir: Option<PathBuf>,
    /// Only show what the files ask for, and whether they are trusted.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    pub show: bool,
    /// Forget the trust, and what was approved for always.
    #[arg(long, conflicts_with = "yes")]
    pub revoke: bool,
    /// Trust without being asked.
    #[arg(long)]
    pub yes: bool,
}

/// `autosage harness`.
#[derive(Debug, Subcommand)]
pub enum HarnessCommand {
    /// Write the embedded harness into a folder, to be changed and used with --harness.
    Export {
        /// The folder; it must be empty or not exist.
        dir: PathBuf,
    },
}

/// `autosage demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The walls: native, reduced or host [default: the best that this machine allows].
    #[arg(long, value_name = "KIND")]
    pub sandbox: Option<sandbox::Kind>,
    #[command(flatten)]
    pub view: ViewArgs,
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        <Line as clap::CommandFactory>::command().debug_assert();
    }
}
