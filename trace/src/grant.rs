//! The rights that commands and file tools of a run have beyond their workspace.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What an environment may do besides reading and writing its workspace, its private home and `/tmp`.
/// Absolute paths only. The default grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Paths outside the workspace that may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Paths outside the workspace that may be read and written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Whether the host's network can be reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Names of the person's variables that commands have. Their values are never recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}
