//! The environments of a session: one for each grant that the agent works under, made at its first use, and a fresh one for
//! the checks. All of the agent's share its private home and `/tmp`; processes of one are out of reach from the other.

use sandbox::{Environment, EnvironmentSpec, Sandbox, SandboxError};
use std::cell::RefCell;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};
use trace::Grant;

/// Makes the environments of one session, all from one spec but for the grant.
pub struct Environments<'a> {
    sandbox: &'a Sandbox,
    spec: EnvironmentSpec,
    open: RefCell<Vec<(Grant, Rc<Environment>)>>,
}

impl<'a> Environments<'a> {
    /// Environments of `sandbox` from `spec`; none is made yet.
    pub fn new(sandbox: &'a Sandbox, spec: EnvironmentSpec) -> Environments<'a> {
        Environments { sandbox, spec, open: RefCell::default() }
    }

    /// The agent's environment under `grant`.
    ///
    /// # Errors
    /// Where it is not there yet and cannot be made.
    pub async fn agent(&self, grant: &Grant) -> Result<Rc<Environment>, SandboxError> {
        if let Some(open) = self.found(grant) {
            return Ok(open);
        }
        let made = Rc::new(self.once(grant).await?);
        // Whoever asked for it at the same time may have been quicker.
        Ok(self.found(grant).unwrap_or_else(|| {
            self.open.borrow_mut().push((grant.clone(), Rc::clone(&made)));
            made
        }))
    }

    /// An environment under `grant` for one call, beside the agent's own.
    ///
    /// # Errors
    /// Where it cannot be made; `Refused` where a granted path is no longer what it was.
    pub(crate) async fn once(&self, grant: &Grant) -> Result<Environment, SandboxError> {
        self.sandbox.environment(&EnvironmentSpec { grant: grant.clone(), ..self.spec.clone() }).await
    }

    /// The agent's environments but `this`.
    pub(crate) fn beside(&self, this: &Environment) -> Vec<Rc<Environment>> {
        let is_other = |open: &&Rc<Environment>| !std::ptr::eq(Rc::as_ptr(open), this);
        self.open.borrow().iter().map(|(_, open)| open).filter(is_other).cloned().collect()
    }

    /// What `wants` leads to on this machine.
    ///
    /// # Errors
    /// Where a path is not there, or shows what no call may have.
    pub(crate) fn resolve(&self, wants: &Grant) -> Result<Grant, SandboxError> {
        self.spec.resolve(wants)
    }

    /// A fresh environment under `grant` for the checks, after all of the agent's are closed and everything in them has
    /// ended. Its home and its `/tmp` are empty ones of its own: what an agent leaves in its home must not steer its judge.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub async fn fresh(&self, grant: &Grant) -> Result<Environment, SandboxError> {
        self.close().await;
        let (home, tmp) = (emptied(&self.spec.home)?, emptied(&self.spec.tmp)?);
        self.sandbox.environment(&EnvironmentSpec { home, tmp, grant: grant.clone(), ..self.spec.clone() }).await
    }

    /// The agent's environments are gone; the next use makes new ones.
    pub(crate) fn forget(&self) {
        self.open.borrow_mut().clear();
    }

    /// Ends everything that runs in the agent's environments. The next use makes new ones.
    pub async fn close(&self) {
        let open = self.open.take();
        for environment in open.into_iter().filter_map(|(_, open)| Rc::into_inner(open)) {
            environment.close().await;
        }
    }

    fn found(&self, grant: &Grant) -> Option<Rc<Environment>> {
        self.open.borrow().iter().find(|(of, _)| of == grant).map(|(_, open)| Rc::clone(open))
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
