//! What a run starts from: everything that its prompts are made of, captured once.

use crate::{Digest, Grant, Limits, Part, Price, RunId, Terms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is asked, and where the work lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The request.
    pub parts: Vec<Part>,
    /// The folder to work in; absolute.
    pub workspace: PathBuf,
    /// What must hold at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// A command that must succeed before a claim is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The command, for `bash`.
    pub command: String,
    /// Milliseconds that it may take.
    pub timeout_ms: u64,
}

/// What one check said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub command: String,
    /// Whether it passed: exit code 0 within its time.
    pub passed: bool,
    /// Its exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// What it printed, capped as an observation is.
    pub output: String,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it: harness text.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: serde_json::Value,
    /// Whether it leaves the world as it was, so that neighbours may be served side by side.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// The harness of a run: its name, its digest, and each of its files as a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarnessRef {
    /// Its name.
    pub name: String,
    /// The digest of the tree: of the lines `path NUL digest LF` in order of path.
    pub digest: Digest,
    /// Its files: path within the harness, and content.
    pub files: BTreeMap<String, Digest>,
}

/// Instructions that were found in the workspace or the person's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFile {
    /// Where it was found.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// Instructions that are there and were not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Where they lie.
    pub path: String,
    /// Why they were not read, for a person.
    pub reason: String,
}

/// Facts about the surroundings, captured once so that no prompt contains a clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The day at the start, as `2026-11-29`.
    pub date: String,
    /// The operating system, such as `linux x86_64`.
    pub os: String,
    /// The commit and branch of the workspace's repository, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// The kind of walls: `native`, `reduced` or `host`.
    pub backend: String,
}

/// The model that a run asks, with all that its requests depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// `provider/name`, as the person wrote it.
    pub id: String,
    /// The name that requests carry.
    pub name: String,
    /// The wire that it speaks, such as `openai-chat`.
    pub wire: String,
    /// The row of provider data that requests follow (which fields a server wants), such as `openai` or `ollama`.
    pub provider: String,
    /// The address, without key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The most tokens that a reply may have.
    pub max_output: u64,
    /// The window in tokens, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The prices, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The reasoning effort that requests ask for; absent where that is left to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Whether the model reasons; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<bool>,
    /// Whether it sees pictures; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// The most pictures of a request; absent where no limit is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_images: Option<u64>,
    /// The most where one of them is large; absent where that makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_images: Option<LargeImages>,
    /// Whether it can be held to a schema in its answer; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<bool>,
    /// The digest of the table that prices and windows were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Digest>,
}

/// How many pictures a request may hold where one of them is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeImages {
    /// A picture is large that has more pixels than this at its longer side.
    pub above: u32,
    /// The most pictures.
    pub most: u64,
}

/// The window of a model about which nothing is known, in tokens: small enough for any that works with tools.
pub const UNKNOWN_WINDOW: u64 = 32_768;

impl ModelSpec {
    /// The window in tokens: what is known of it, else [`UNKNOWN_WINDOW`].
    pub fn window(&self) -> u64 {
        self.context.unwrap_or(UNKNOWN_WINDOW)
    }

    /// The most pictures of a request whose largest has so many pixels at its longer side; `None` where no limit is known.
    pub fn most_images(&self, pixels: u32) -> Option<u64> {
        let large = self.large_images.filter(|large| pixels > large.above).map(|large| large.most);
        [self.max_images, large].into_iter().flatten().min()
    }
}

/// The program that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The digest of its binary, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Digest>,
}

/// The first event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: Task,
    /// The harness.
    pub harness: HarnessRef,
    /// The tools that the agent sees, as it sees them.
    pub tools: Vec<ToolSpec>,
    /// Project instructions, as read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project: Vec<ProjectFile>,
    /// Project instructions that could not be read; no prompt says anything of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// The surroundings.
    pub facts: Facts,
    /// The model.
    pub model: ModelSpec,
    /// The models that are asked in this order where the one before is not to be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<ModelSpec>,
    /// The budget.
    pub limits: Limits,
    /// How many claims the checks judge before the run fails.
    pub max_claims: u32,
    /// The rights beyond the workspace.
    #[serde(default)]
    pub grant: Grant,
    /// The terms of the first session.
    #[serde(default)]
    pub terms: Terms,
    /// The program.
    pub program: Program,
    /// The JSON Schema that the run's answers fit, where they are to be JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// Free labels (case, candidate, split, seed, rollout).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
