//! The environments of a session: the agent's own, made at its first use, and a fresh one for the checks.

use sandbox::{Environment, Plan, Sandbox, SandboxError};
use std::cell::RefCell;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

/// Makes the environments of one session, all after one plan.
pub struct Environments<'a> {
    sandbox: &'a Sandbox,
    plan: Plan,
    open: RefCell<Option<Rc<Environment>>>,
}

impl<'a> Environments<'a> {
    /// Environments of `sandbox` after `plan`; none is made yet.
    pub fn new(sandbox: &'a Sandbox, plan: Plan) -> Environments<'a> {
        Environments { sandbox, plan, open: RefCell::new(None) }
    }

    /// The agent's environment.
    ///
    /// # Errors
    /// Where it is not there yet and cannot be made.
    pub async fn agent(&self) -> Result<Rc<Environment>, SandboxError> {
        if let Some(open) = self.open.borrow().as_ref() {
            return Ok(Rc::clone(open));
        }
        let made = Rc::new(self.sandbox.environment(&self.plan).await?);
        Ok(Rc::clone(self.open.borrow_mut().get_or_insert(made)))
    }

    /// A fresh environment for the checks, after the agent's own is closed and everything in it has ended. Its home and its
    /// `/tmp` are empty ones of its own: what an agent leaves in its home must not steer its judge.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub async fn fresh(&self) -> Result<Environment, SandboxError> {
        self.close().await;
        let plan = Plan { home: emptied(&self.plan.home)?, tmp: emptied(&self.plan.tmp)?, ..self.plan.clone() };
        self.sandbox.environment(&plan).await
    }

    /// The agent's environment is gone; the next use makes a new one.
    pub(crate) fn forget(&self) {
        self.open.borrow_mut().take();
    }

    /// Ends everything that runs in the agent's environment. The next use makes a new one.
    pub async fn close(&self) {
        let open = self.open.borrow_mut().take();
        if let Some(environment) = open.and_then(Rc::into_inner) {
            environment.close().await;
        }
    }
}

/// An empty folder for the checks, beside the agent's own.
fn emptied(agents: &Path) -> io::Result<PathBuf> {
    let mut name = agents.file_name().unwrap_or_default().to_owned();
    name.push("-of-checks");
    let folder = agents.with_file_name(name);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}
