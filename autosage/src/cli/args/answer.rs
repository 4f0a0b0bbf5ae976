//! `--output-schema`: the form of a run's answers.

use clap::Args;
use std::path::PathBuf;

/// What answers are to be.
#[derive(Debug, Default, Args)]
pub struct AnswerArgs {
    /// A JSON Schema that the answer fits: standard output is this JSON and nothing else. An answer that does not fit goes
    /// back to the agent as failed checks do.
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
}
