//! Judges a claim by the work, never by the reasoning that led to it.
//!
//! A claim is judged by commands: [`verify`] runs each check in an environment that is given for this and nothing else,
//! with no process, variable or directory of the agent in it. It sees neither the conversation nor the claim's words. A
//! check that fails, takes too long or cannot be found is the work's failure; a sandbox that is lost is the judge's own
//! trouble, and the claim stays unjudged.
//!
//! An answer that must have a form is held to its [`Schema`].

mod schema;

use sandbox::capture::{Caps, Capture, Ending};
use sandbox::{Command, Environment, Exit, SandboxError};
use std::time::Duration;
use trace::secrets::Author;
use trace::{Check, CheckResult, Secrets, Verdict};

pub use schema::{Schema, SchemaError, json_in, misfit};

/// Runs `checks` one after the other in `environment`, a fresh one, and says what they make of the work together. Of the
/// output of each, as much is kept as `caps` says, without `secrets`. They have the variables that were granted.
///
/// All checks are run, also after one failed, so that an agent learns everything at once. Where the sandbox is lost, or a
/// secret that a person wrote into a check is not to be had any more, the results of the checks before that are returned
/// beside the verdict.
pub async fn verify(checks: &[Check], environment: &Environment, caps: Caps, secrets: &Secrets) -> (Verdict, Vec<CheckResult>) {
    let mut results = Vec::with_capacity(checks.len());
    for check in checks {
        let script = match secrets.put_back(&check.command, Author::Person) {
            Ok(script) => script.into_owned(),
            Err(_) => return (Verdict::Unjudged { reason: without_its_secret(check) }, results),
        };
        match run(check, script, environment, caps, secrets).await {
            Ok(result) => results.push(result),
            // The environment may be well and only this command impossible, such as one whose text is too long.
            Err(error) if environment.probe().await => results.push(impossible(check, &error)),
            Err(error) => return (Verdict::Unjudged { reason: error.to_string() }, results),
        }
    }
    (verdict(&results), results)
}

/// What check results come to.
fn verdict(results: &[CheckResult]) -> Verdict {
    if results.iter().all(|result| result.passed) { Verdict::Pass } else { Verdict::Fail }
}

async fn run(
    check: &Check,
    script: String,
    environment: &Environment,
    caps: Caps,
    secrets: &Secrets,
) -> Result<CheckResult, SandboxError> {
    let timeout = Duration::from_millis(check.timeout_ms);
    let command = Command { script, cwd: None, shell: None, timeout, env: secrets.variables() };
    let mut capture = Capture::new(caps, secrets);
    let exit = environment.run(&command, &mut |bytes| capture.push(bytes, &mut |_| {})).await?;
    let ending = if exit.code.is_some() { Ending::Whole } else { Ending::Cut };
    Ok(result(check, &exit, capture.finish(ending, &mut |_| {}).text("")))
}

/// What an ended check says: it passed only if it ended by itself, in time, with exit code 0.
fn result(check: &Check, exit: &Exit, output: String) -> CheckResult {
    CheckResult {
        command: check.command.clone(),
        passed: exit.code == Some(0) && exit.signal.is_none() && !exit.timed_out,
        exit_code: exit.code,
        timed_out: exit.timed_out,
        output,
    }
}

/// What a person can do about a check that was written with a secret, in a session that never saw it.
fn without_its_secret(check: &Check) -> String {
    let command = &check.command;
    format!(
        "the check `{command}` was written with a secret that this session has not met: let it use a variable, given by --secret"
    )
}

fn impossible(check: &Check, error: &SandboxError) -> CheckResult {
    CheckResult { command: check.command.clone(), passed: false, exit_code: None, timed_out: false, output: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check() -> Check {
        Check { command: "true".to_owned(), timeout_ms: 1000 }
    }

    proptest! {
        #[test]
        fn only_exit_code_0_in_time_passes(code in prop::option::of(-1i32..256), signal in prop::option::of(1i32..32), timed_out in any::<bool>()) {
            let result = result(&check(), &Exit { code, signal, timed_out, ..Exit::default() }, String::new());
            prop_assert_eq!(result.passed, (code, signal, timed_out) == (Some(0), None, false));
        }

        #[test]
        fn one_failure_fails_the_claim(passed in prop::collection::vec(any::<bool>(), 0..6)) {
            let exit = |passed: &bool| Exit { code: Some(i32::from(!passed)), ..Exit::default() };
            let results: Vec<CheckResult> = passed.iter().map(|passed| result(&check(), &exit(passed), String::new())).collect();
            let expected = if passed.contains(&false) { Verdict::Fail } else { Verdict::Pass };
            prop_assert_eq!(verdict(&results), expected);
        }
    }
}
