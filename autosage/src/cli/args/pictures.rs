//! `--image`: pictures that go with a task or a message.

use clap::Args;
use std::path::PathBuf;

/// Pictures for the agent to see.
#[derive(Debug, Default, Args)]
pub struct PictureArgs {
    /// A picture for the agent to see: PNG, JPEG, GIF or WebP, 3.9 MB at most; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
}
