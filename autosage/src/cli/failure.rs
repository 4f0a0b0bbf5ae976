//! Why a command could not be carried out, and the exit code that says so.

use std::fmt;
use trace::Unavailable;

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

    /// The part that is not there, where the failure is one of infrastructure.
    pub fn unavailable(&self) -> Option<Unavailable> {
        match self {
            Failure::Usage(_) | Failure::Unsuccessful(_) => None,
            Failure::Infrastructure(error) if error.is::<sandbox::SandboxError>() => Some(Unavailable::Sandbox),
            Failure::Infrastructure(_) => Some(Unavailable::Store),
        }
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
            Failure::Usage(error) | Failure::Unsuccessful(error) | Failure::Infrastructure(error) => f.write_str(&told(error)),
        }
    }
}

/// An error with its causes, each once: some errors of the libraries name their cause in their own words.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        before if before.contains(&cause) => told,
        _ => format!("{told}: {cause}"),
    })
}

impl From<engine::EngineError> for Failure {
    fn from(error: engine::EngineError) -> Failure {
        match error {
            engine::EngineError::Harness(_) | engine::EngineError::NoModel(_) => Failure::Usage(error.into()),
            engine::EngineError::Sandbox(error) => error.into(),
            engine::EngineError::Record(error) => error.into(),
            engine::EngineError::Folder(_) | engine::EngineError::NoStart(_) | engine::EngineError::OtherAnswer => {
                Failure::Infrastructure(error.into())
            }
        }
    }
}

impl From<trace::RecordError> for Failure {
    fn from(error: trace::RecordError) -> Failure {
        match error {
            trace::RecordError::Disk { .. } => {
                Failure::Infrastructure(anyhow::anyhow!("{error}; runs are kept under AUTOSAGE_HOME"))
            }
            trace::RecordError::Sound { .. } => Failure::Usage(error.into()),
            error => Failure::Infrastructure(error.into()),
        }
    }
}

impl From<sandbox::SandboxError> for Failure {
    fn from(error: sandbox::SandboxError) -> Failure {
        match error {
            // Another folder is to be named.
            sandbox::SandboxError::Refused { .. } => Failure::Usage(error.into()),
            error => Failure::Infrastructure(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let own_words = anyhow::Error::from(trace::RecordError::Disk { attempt: "opening", path: "a".into(), error: cause() });
        assert_eq!(Failure::Infrastructure(own_words).to_string(), "opening a: entity not found");
        let added = Err::<(), _>(cause()).context("reading b").unwrap_err();
        assert_eq!(Failure::Usage(added).to_string(), "reading b: entity not found");
    }
}
