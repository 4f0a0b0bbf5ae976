//! Where a call is served: the environment, what the record tells about the agent, and how an operation inside is asked.

use crate::inside;
use sandbox::{CallError, Environment, Printed, SandboxError, Stopped};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;
use trace::secrets::{Author, Withheld};
use trace::{Blobs, Child, Digest, FileSeen, Millis, Part, Secrets, Seq, Status};

/// Milliseconds that looking, writing, editing or searching may take.
const INSIDE: Millis = 60_000;

/// How much of an output an agent sees; the harness has the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bytes from the start of a command's output.
    pub head_bytes: usize,
    /// Bytes from its end.
    pub tail_bytes: usize,
    /// Lines of a file that one `read` shows.
    pub read_lines: usize,
    /// Bytes that one `read` or `search` shows, the last line aside.
    pub read_bytes: usize,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { head_bytes: 6_000, tail_bytes: 6_000, read_lines: 1_000, read_bytes: 24_000 }
    }
}

/// The whole output of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A blob holds it.
    Blob(Digest),
    /// It is what the agent was told.
    Told(Vec<Part>),
}

/// How long an environment lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// As long as the session, or until checks.
    Session,
    /// It was made for one call, and what the call leaves running ends with it.
    Call,
}

/// All that a tool may use to answer a call.
pub struct Room<'a> {
    /// Where commands and operations run.
    pub environment: &'a Environment,
    /// How long that lasts.
    pub lasting: Lasting,
    /// The run's other environments: what runs there can be seen and stopped as well.
    pub beside: &'a [&'a Environment],
    /// Where whole outputs are kept.
    pub blobs: &'a Blobs,
    /// How much is shown.
    pub caps: &'a Caps,
    /// The agent's current directory; absolute.
    pub cwd: &'a Path,
    /// What the last command left: exported variables and functions.
    pub shell: Option<&'a BTreeMap<String, Option<String>>>,
    /// What the agent saw last of the file with this path.
    pub seen: &'a dyn Fn(&str) -> Option<FileSeen>,
    /// The whole output of the call at a place of the record.
    pub output: &'a dyn Fn(Seq) -> io::Result<Option<Output>>,
    /// What is hidden from the agent, and put back in what it writes.
    pub secrets: &'a Secrets,
    /// Milliseconds that the run may still take.
    pub left_ms: Option<Millis>,
    /// The place of the record by which this call's output will be asked for.
    pub at: Seq,
}

/// Why a tool could not do what it was asked to: the status and the words of its observation.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub status: Status,
    pub words: String,
}

impl Trouble {
    /// What was asked for cannot be done.
    pub fn failed(words: impl Into<String>) -> Trouble {
        Trouble { status: Status::Failed, words: words.into() }
    }
}

impl Room<'_> {
    /// What the agent wrote, with the value for each placeholder.
    pub(crate) fn meant<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, Trouble> {
        self.secrets.put_back(text, Author::Agent).map_err(|withheld| {
            let status = match withheld {
                Withheld::Unknown(_) => Status::Failed,
                Withheld::Engines(_) => Status::Denied,
            };
            Trouble { status, words: withheld.to_string() }
        })
    }

    /// The time for something that may take `ms`, but not longer than the run.
    pub(crate) fn time(&self, ms: Millis) -> Duration {
        Duration::from_millis(self.left_ms.map_or(ms, |left| ms.min(left)))
    }

    /// Has an operation performed inside.
    pub(crate) async fn ask<Q: Serialize, A: DeserializeOwned>(&self, op: &str, request: &Q) -> Result<A, Trouble> {
        let request = inside::Question { ask: request, hide: self.secrets.for_request() };
        let request = serde_json::to_vec(&request).map_err(|error| Trouble::failed(error.to_string()))?;
        let time = self.time(INSIDE);
        match self.environment.call(op, &request, time).await {
            Ok(answer) => {
                let answer = serde_json::from_slice::<inside::Told<A>>(&answer);
                let answer = answer.map_err(|error| Trouble::failed(format!("{op}: {error}")))?;
                self.secrets.meet(answer.met);
                Ok(answer.answer)
            }
            Err(CallError::TimedOut(_)) => {
                let words = format!("this took longer than {} s and was ended; ask for less", time.as_secs());
                Err(Trouble { status: Status::TimedOut, words })
            }
            Err(CallError::Sandbox(error)) => Err(self.trouble(&error).await),
            Err(error @ (CallError::Unknown(_) | CallError::Broke { .. } | CallError::TooLarge(_))) => {
                Err(self.trouble(&error).await)
            }
        }
    }

    /// What an error of the sandbox means: the sandbox is gone only if it cannot start a shell any more.
    pub(crate) async fn trouble(&self, error: &dyn std::error::Error) -> Trouble {
        let status = if self.environment.probe().await { Status::Failed } else { Status::Unavailable };
        Trouble { status, words: error.to_string() }
    }

    /// Ends a child, wherever it runs.
    pub(crate) async fn stop(&self, name: &str) -> Result<Stopped, Trouble> {
        let mut stopped = self.environment.stop(name).await;
        for other in self.beside {
            if matches!(stopped, Err(SandboxError::NoChild(_))) {
                stopped = other.stop(name).await;
            }
        }
        match stopped {
            Err(error) => Err(self.child_trouble(error).await),
            Ok(stopped) => Ok(stopped),
        }
    }

    /// What a child printed since its command ended, wherever it runs.
    pub(crate) async fn child_output(&self, name: &str) -> Result<Printed, Trouble> {
        let mut printed = self.environment.child_output(name).await;
        for other in self.beside {
            if matches!(printed, Err(SandboxError::NoChild(_))) {
                printed = other.child_output(name).await;
            }
        }
        match printed {
            Err(error) => Err(self.child_trouble(error).await),
            Ok(printed) => Ok(printed),
        }
    }

    /// What goes on in the other environments. One that is gone has nothing running.
    pub(crate) async fn children_beside(&self) -> Vec<Child> {
        let mut children = Vec::new();
        for other in self.beside {
            children.extend(other.children().await.unwrap_or_default());
        }
        children
    }

    /// What an error means that is about a child, which may simply not be there.
    async fn child_trouble(&self, error: SandboxError) -> Trouble {
        match error {
            SandboxError::NoChild(_) => Trouble::failed(error.to_string()),
            other => self.trouble(&other).await,
        }
    }
}
