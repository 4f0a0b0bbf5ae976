//! What must be hidden on this machine: the keys of providers that its variables hold, and the variables that a person grants.

use super::failure::Failure;
use super::home::Home;
use crate::{Parts, Printer};
use anyhow::anyhow;
use engine::Harness;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use trace::secrets::MachineKey;
use trace::{RunId, Secrets};

/// Knows the keys of all providers, and those that `key_envs` name.
pub fn know_own<'a>(secrets: &Secrets, key_envs: impl IntoIterator<Item = &'a str>, parts: &Parts) {
    let usual = model::catalog::providers().iter().flat_map(|provider| [Some(provider.key_var), provider.token_var]).flatten();
    for name in usual.chain(key_envs) {
        if let Some(key) = parts.variable(name) {
            secrets.know_own(name, key);
        }
    }
}

/// The secrets of a run, with the placeholders that it has in every session on this machine.
pub fn of_run<'a>(
    run: &RunId,
    key_envs: impl IntoIterator<Item = &'a str>,
    home: &Home,
    parts: &Parts,
) -> Result<Secrets, Failure> {
    let kept = || MachineKey::kept(home.folder()).map_err(|error| Failure::Infrastructure(error.into()));
    let key = parts.key.clone().map_or_else(kept, Ok)?;
    let secrets = Secrets::of_run(&key, run);
    know_own(&secrets, key_envs, parts);
    Ok(secrets)
}

/// What was typed for `--secret` names variables that are set.
pub fn check_typed(names: &[String], parts: &Parts) -> Result<(), Failure> {
    for name in names {
        let is_name =
            !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || !is_name {
            // What was typed may be the value itself.
            return Err(Failure::usage("--secret takes the name of a variable, such as GITHUB_TOKEN, and never its value"));
        }
        if parts.variable(name).is_none() {
            return Err(Failure::usage(format!("--secret {name}: the variable {name} is not set to a text")));
        }
    }
    Ok(())
}

/// Gives the run the variables `names`; returns those that are not set.
pub fn grant(secrets: &Secrets, names: &[String], parts: &Parts) -> Result<Vec<String>, Failure> {
    let mut missing = Vec::new();
    for name in names {
        match parts.variable(name) {
            Some(value) => secrets.grant(name, value).map_err(|error| Failure::usage(format!("--secret {name}: {error}")))?,
            None => missing.push(name.clone()),
        }
    }
    Ok(missing)
}

/// What a person is told of granted variables that this session does not have.
pub fn told_missing(missing: &[String]) -> String {
    let line = |name: &String| {
        format!("secret not available: {name} is not set, so commands go without it, and where it was written it is not hidden\n")
    };
    missing.iter().map(line).collect()
}

/// A harness is kept with every run and sent to the model: it must hold no secret.
pub fn refuse_in(harness: &Harness, secrets: &Secrets) -> Result<(), Failure> {
    for (path, bytes) in harness.files() {
        if let Some((_, placeholder)) = secrets.places(bytes).into_iter().next() {
            let kind = placeholder.trim_start_matches("<secret:").split(':').next().unwrap_or_default();
            return Err(Failure::Usage(anyhow!(
                "the harness file {path} holds a secret ({kind}), and would be sent and kept with it: take it out"
            )));
        }
    }
    Ok(())
}

/// Output that shows no secret.
pub fn hiding(inner: &Printer, secrets: &Secrets) -> Printer {
    Arc::new(Mutex::new(Hiding { inner: inner.clone(), secrets: secrets.clone() }))
}

struct Hiding {
    inner: Printer,
    secrets: Secrets,
}

impl Write for Hiding {
    /// Each text is printed as one, so no secret is cut between two.
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match std::str::from_utf8(text) {
            Ok(shown) => inner.write_all(self.secrets.hide(shown).as_bytes())?,
            Err(_) => inner.write_all(self.secrets.hide(&String::from_utf8_lossy(text)).as_bytes())?,
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
