//! What ended commands left running: names for it, and questions to the job-inits that hold it.

use crate::running::ask;
use crate::shell::ARGUMENT;
use crate::spec::{Names, SandboxError, Stopped};
use crate::wire::{Left, ToJob};
use rustix::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::unix::AsyncFd;
use trace::Child;

/// The longest piece of a script that stands for its shell, in characters. A command line of a child that is as long may have
/// been cut.
pub const READABLE: usize = 120;

/// The children of an environment.
pub(crate) struct Children {
    names: Names,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Jobs whose command ended while something that it started was running.
    jobs: Vec<Arc<Job>>,
    /// All children that were ever told.
    named: Vec<Named>,
}

struct Job {
    id: u64,
    script: String,
    socket: AsyncFd<OwnedFd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Named {
    /// The number in its name.
    number: u64,
    job: u64,
    pid: i32,
    start: u64,
}

impl Children {
    /// None yet; they get their names from `names`.
    pub fn new(names: Names) -> Children {
        Children { names, state: Mutex::default() }
    }

    /// Remembers a job whose command has ended.
    pub fn keep(&self, id: u64, script: &str, socket: AsyncFd<OwnedFd>) {
        self.state().jobs.push(Arc::new(Job { id, script: script.to_owned(), socket }));
    }

    /// What is running.
    pub async fn list(&self) -> Result<Vec<Child>, SandboxError> {
        let jobs = self.state().jobs.clone();
        let mut children = Vec::new();
        for job in jobs {
            match ask::<Vec<Left>>(&job.socket, &ToJob::List).await? {
                Some(left) => children.extend(left.into_iter().map(|left| self.named(&job, left))),
                None => self.state().jobs.retain(|known| known.id != job.id),
            }
        }
        children.sort_by_key(|(number, _)| *number);
        Ok(children.into_iter().map(|(_, child)| child).collect())
    }

    /// Ends the child of that name, with what it started.
    pub async fn stop(&self, name: &str) -> Result<Stopped, SandboxError> {
        let named = self.find(name)?;
        let job = self.state().jobs.iter().find(|job| job.id == named.job).cloned();
        let Some(job) = job else { return Ok(Stopped::Gone) };
        let stopped = ask(&job.socket, &ToJob::Stop { pid: named.pid, start: named.start }).await?;
        Ok(stopped.unwrap_or(Stopped::Gone))
    }

    /// The job that a child belongs to.
    pub fn job_of(&self, name: &str) -> Result<u64, SandboxError> {
        Ok(self.find(name)?.job)
    }

    fn find(&self, name: &str) -> Result<Named, SandboxError> {
        let number = name.strip_prefix('c').and_then(|digits| digits.parse::<u64>().ok());
        let found = number.and_then(|number| self.state().named.iter().find(|named| named.number == number).copied());
        found.ok_or_else(|| SandboxError::NoChild(name.to_owned()))
    }

    /// Gives a process its name, the same as before if it had one.
    fn named(&self, job: &Job, left: Left) -> (u64, Child) {
        let mut state = self.state();
        let is_it = |known: &&Named| (known.job, known.pid, known.start) == (job.id, left.pid, left.start);
        let known = state.named.iter().find(is_it).map(|known| known.number);
        let number = known.unwrap_or_else(|| {
            let number = self.names.next();
            state.named.push(Named { number, job: job.id, pid: left.pid, start: left.start });
            number
        });
        (number, Child { name: format!("c{number}"), command: readable(&left.command, &job.script), age_s: left.age_s })
    }

    /// Held for a moment only, never across a wait.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command line as a person would write it: a part of the script's own shell shows the script's first line.
pub(crate) fn readable(command: &str, script: &str) -> String {
    if !command.contains(ARGUMENT) {
        return command.to_owned();
    }
    let line = script.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    format!("bash: {}", line.chars().take(READABLE).collect::<String>())
}
