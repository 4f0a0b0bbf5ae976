//! What is asked of the sandbox and what it answers: kinds, specs, commands, exits, errors.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trace::Grant;

/// How strong the walls are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Namespaces, a composed root, Landlock and seccomp.
    #[default]
    Native,
    /// Landlock and seccomp only: what a container without privileges allows. Weaker in that names and sizes of files
    /// outside can be seen, git's hooks and configuration in the workspace can be written, there is no loopback, and
    /// before Linux 7.1 no local socket but a pair.
    Reduced,
    /// No walls. Processes are still owned: what a command starts ends with the environment.
    Host,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Native => "native",
            Kind::Reduced => "reduced",
            Kind::Host => "host",
        })
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;
    fn from_str(text: &str) -> Result<Kind, UnknownKind> {
        match text {
            "native" => Ok(Kind::Native),
            "reduced" => Ok(Kind::Reduced),
            "host" => Ok(Kind::Host),
            _ => Err(UnknownKind(text.to_owned())),
        }
    }
}

/// A word that names no kind of sandbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kind of sandbox: native, reduced or host is expected")]
pub struct UnknownKind(pub String);

/// The program that is started as the sandbox's own process. Its `main` begins with [`crate::enter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// This very program.
    Current,
    /// Another one.
    Path(PathBuf),
}

/// What an environment is made from. All paths are absolute and UTF-8.
#[derive(Clone, Debug)]
pub struct EnvironmentSpec {
    /// The folder to work in, seen and written at its own path.
    pub workspace: PathBuf,
    /// What can be done with the workspace. [`Kind::Host`] has no way to keep it from being written.
    pub access: Access,
    /// Rights beyond the workspace. Paths are those that links lead to: one that is a link by now is refused.
    pub grant: Grant,
    /// A folder of the run that commands have as their private home. Must exist.
    pub home: PathBuf,
    /// A folder of the run that commands have as `/tmp`. Must exist.
    pub tmp: PathBuf,
    /// What is never visible, whatever else is granted: `$AUTOSAGE_HOME` and the like.
    pub hidden: Vec<PathBuf>,
    /// The person's home: toolchains that live there (the list is data) can be read, nothing else.
    pub user_home: Option<PathBuf>,
    /// What commands may use up.
    pub limits: Limits,
    /// Where children get their names: environments that share this never give one name twice.
    pub names: Names,
}

/// What can be done with a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It is read and written.
    #[default]
    Write,
    /// It is read.
    Read,
}

/// The names of children: `c1`, `c2` …, each given once. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<AtomicU64>);

impl Names {
    /// The number of the next name.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What the commands of an environment may use up. Not applied by [`Kind::Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads at once. For a root engine this holds by the environment's pid namespace or a cgroup only.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of memory of all processes together, where a cgroup could be made; `None` is no limit.
    pub memory_bytes: Option<u64>,
}

impl Default for Limits {
    /// Wide enough for a large build, finite for a runaway one.
    fn default() -> Limits {
        Limits { processes: 4096, open_files: 65_536, file_bytes: 64 << 30, memory_bytes: None }
    }
}

/// A script for a fresh `bash`.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its text. NUL bytes are left out, as `bash` itself would.
    pub script: String,
    /// Where it starts; `None` is the workspace. A folder that is gone is said on its output, and the workspace is used.
    pub cwd: Option<PathBuf>,
    /// What an earlier command left (see [`Exit::shell`]), restored before the script runs.
    pub shell: Option<BTreeMap<String, Option<String>>>,
    /// After this time all that it started is killed.
    pub timeout: Duration,
    /// Variables beside those of the environment; they win over those, and `shell` wins over them.
    pub env: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if its shell ended by itself.
    pub code: Option<i32>,
    /// The signal that ended its shell.
    pub signal: Option<i32>,
    /// Whether its time was over; all that it started is dead then.
    pub timed_out: bool,
    /// The directory that its shell left; `None` where that could not be learned (`exec`, an own EXIT trap, a kill).
    pub cwd: Option<String>,
    /// Exported variables that differ from those of a fresh environment (`None` is unset), and functions under
    /// `name()` with their text; `None` where that could not be learned or is above 256 kB. What is too large is left out and
    /// said at the end of the output.
    pub shell: Option<BTreeMap<String, Option<String>>>,
    /// The command lines of what was killed when its time was over.
    pub killed: Vec<String>,
}

/// How a child ended that was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stopped {
    /// It went when asked to (TERM).
    Ended,
    /// It had to be killed.
    Killed,
    /// It had ended before.
    Gone,
}

/// What a child printed since its command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The last of it, at most 1 MiB. Children of one command share one stream.
    pub bytes: Vec<u8>,
    /// How many bytes before that are no longer kept.
    pub dropped: u64,
}

/// Why the sandbox cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program that should be the sandbox does not know how to be one.
    #[error(
        "this program cannot start a sandbox of its own: `enter` is not the first statement of its `main`; call it there, or name an autosage binary as the program"
    )]
    NotEntered,
    /// The sandbox's own process could not be started.
    #[error("starting {} as the sandbox's process: {source}", .program.display())]
    Start {
        /// What was started.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No environment is made from this.
    #[error("{} cannot be {role}: {reason}", .path.display())]
    Refused {
        /// The path in question.
        path: PathBuf,
        /// What it was to be: "the workspace", "granted" and so on.
        role: &'static str,
        /// Why it cannot be.
        reason: String,
    },
    /// The environment could not be made.
    #[error("making a {kind} environment: {step}: {error}{}", way_out(*kind))]
    Environment {
        /// The kind of sandbox.
        kind: Kind,
        /// The step that failed.
        step: String,
        /// What the system said.
        error: String,
    },
    /// The environment's processes are gone.
    #[error("the sandbox is gone: its process ended while it was needed")]
    Lost,
    /// No child has this name.
    #[error("there is no child called `{0}`")]
    NoChild(String),
    /// Talking to the sandbox's processes failed.
    #[error("talking to the sandbox's processes: {0}")]
    Io(#[from] io::Error),
}

/// What to do where an environment of this kind cannot be made.
fn way_out(kind: Kind) -> &'static str {
    match kind {
        Kind::Native => "; `autosage doctor` says what this machine allows, `--sandbox reduced` needs less",
        Kind::Reduced => "; `autosage doctor` says what this machine allows, `--sandbox host` needs nothing and protects nothing",
        Kind::Host => "",
    }
}

/// Why an operation inside gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The program has no such operation.
    #[error("the sandbox has no operation `{0}`")]
    Unknown(String),
    /// Its time was over.
    #[error("the operation `{0}` did not end in time")]
    TimedOut(String),
    /// It ended without an answer: killed, or a defect.
    #[error("the operation `{op}` broke off: {reason}")]
    Broke {
        /// The operation.
        op: String,
        /// What is known.
        reason: String,
    },
    /// Its answer is larger than 64 MiB.
    #[error("the answer of the operation `{0}` is larger than 64 MiB")]
    TooLarge(String),
    /// The sandbox itself failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}
