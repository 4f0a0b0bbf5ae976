//! Why a command could not be carried out, and the exit code that says so.

use std::fmt;

/// A command that could not be carried out.
#[derive(Debug)]
pub enum Failure {
    /// What was typed or configured is wrong: exit code 2.
    Usage(anyhow::Error),
    /// What was asked about does not hold: exit code 1.
    Unsuccessful(anyhow::Error),
    /// Something that we stand on is not there: exit code 4.
    Infrastructure(anyhow::Error),
}

impl Failure {
    /// Something that was typed or configured is wrong.
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure::Usage(anyhow::Error::msg(text.into()))
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Unsuccessful(_) => 1,
            Failure::Infrastructure(_) => 4,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(error) | Failure::Unsuccessful(error) | Failure::Infrastructure(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<engine::EngineError> for Failure {
    fn from(error: engine::EngineError) -> Failure {
        match error {
            engine::EngineError::Harness(_) => Failure::Usage(error.into()),
            engine::EngineError::Record(_)
            | engine::EngineError::Folder(_)
            | engine::EngineError::Sandbox(_)
            | engine::EngineError::NoStart(_) => Failure::Infrastructure(error.into()),
        }
    }
}

impl From<trace::RecordError> for Failure {
    fn from(error: trace::RecordError) -> Failure {
        match error {
            trace::RecordError::Disk { .. } => {
                Failure::Infrastructure(anyhow::anyhow!("{error}; runs are kept under AUTOSAGE_HOME"))
            }
            error => Failure::Infrastructure(error.into()),
        }
    }
}

impl From<sandbox::SandboxError> for Failure {
    fn from(error: sandbox::SandboxError) -> Failure {
        Failure::Infrastructure(error.into())
    }
}
