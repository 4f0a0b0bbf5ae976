//! Verify: a claim goes to the checks, which see the workspace and not the conversation.

use crate::act::{Arguments, called, read_arguments, time_is_over};
use crate::approval::Standing;
use crate::decide::Claiming;
use crate::engine::{Engine, EngineError, Run};
use crate::harness::{Notes, fill};
use crate::progress::{OpenCall, Progress};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;
use trace::{CheckResult, Observed, Seq, Status, Verdict, Verified, What};

/// How long it may take to hold an answer to its schema.
const FORM: Duration = Duration::from_secs(30);

/// Lets the checks judge a claim, and answers the call of `submit` that made it, if one did.
pub(crate) async fn verify(engine: &Engine<'_>, run: &mut Run, claiming: Claiming) -> Result<(), EngineError> {
    match claiming {
        Claiming::Reply(claim) => judge(engine, run, claim.at).await.map(|_| ()),
        Claiming::Submit(call) => submit(engine, run, &call).await,
    }
}

async fn submit(engine: &Engine<'_>, run: &mut Run, call: &OpenCall) -> Result<(), EngineError> {
    let arguments = read_arguments(engine, run.progress(), call);
    let seq = run.note(Some(call.reply), What::Called(called(run.progress(), call, &arguments, &Standing::Held)))?.seq;
    let observed = match arguments {
        Arguments::Refused(why) => Observed::words(call.id.clone(), Status::Failed, why),
        Arguments::Usable(_) => match judge(engine, run, seq).await? {
            None => Observed::words(call.id.clone(), Status::Ok, &run.progress().harness().notes().accepted),
            Some(verified) => observation(run, call, &verified),
        },
    };
    run.note(Some(seq), What::Observed(observed)).map(|_| ())
}

/// Holds the answer to the run's schema, runs the checks, and writes down the verdict; `None` where the run has neither.
async fn judge(engine: &Engine<'_>, run: &mut Run, claim: Seq) -> Result<Option<Verified>, EngineError> {
    let checks = run.progress().checks().to_vec();
    match form(engine, run.progress()).await {
        Some(verified) if verified.verdict != Verdict::Pass || checks.is_empty() => {
            let event = run.note(Some(claim), What::Verified(verified))?;
            let What::Verified(verified) = event.what else { return Ok(None) };
            return Ok(Some(verified));
        }
        None if checks.is_empty() => return Ok(None),
        Some(_) | None => {}
    }
    let caps = run.progress().harness().settings().caps;
    let caps = sandbox::capture::Caps { head: caps.head_bytes, tail: caps.tail_bytes };
    run.sync()?;
    let (left, grant) = (run.progress().ledger().left().time_ms, run.progress().grant().clone());
    let unjudged = |reason: &str| (Verdict::Unjudged { reason: reason.to_owned() }, Vec::new());
    let began = engine.clock.elapsed();
    let judged = async {
        let environment = engine.environments.fresh(&grant).await?;
        let judged = verify::verify(&checks, &environment, caps, run.record().secrets()).await;
        environment.close().await;
        Ok::<_, sandbox::SandboxError>(judged)
    };
    let (verdict, results) = tokio::select! {
        judged = judged => judged.unwrap_or_else(|error| unjudged(&error.to_string())),
        () = engine.interrupt.raised() => unjudged("interrupted"),
        () = time_is_over(engine, left) => unjudged("the run's time was over"),
    };
    let took_ms = engine.clock.elapsed().saturating_sub(began);
    let verified = Verified { verdict, checks: results, misfit: None, took_ms };
    run.note(Some(claim), What::Verified(verified.clone()))?;
    Ok(Some(verified))
}

/// Whether the answer of the claim that stands fits the run's schema; `None` where the run has none.
async fn form(engine: &Engine<'_>, progress: &Progress) -> Option<Verified> {
    let schema = progress.output_schema()?.clone();
    let answer = progress.claim().map(|claim| claim.answer.clone()).unwrap_or_default();
    let unjudged = |reason: String| (Verdict::Unjudged { reason }, None);
    let began = engine.clock.elapsed();
    let (verdict, misfit) = tokio::select! {
        biased;
        judged = verify::misfit(schema, answer) => match judged {
            Ok(None) => (Verdict::Pass, None),
            Ok(misfit) => (Verdict::Fail, misfit),
            Err(error) => unjudged(format!("the run's schema cannot be used: {error}")),
        },
        () = engine.interrupt.raised() => unjudged("interrupted".to_owned()),
        () = time_is_over(engine, progress.ledger().left().time_ms) => unjudged("the run's time was over".to_owned()),
        () = engine.clock.limit(FORM) => {
            unjudged(format!("holding the answer to the run's schema took over {} s: make it simpler", FORM.as_secs()))
        }
    };
    let took_ms = engine.clock.elapsed().saturating_sub(began);
    Some(Verified { verdict, checks: Vec::new(), misfit, took_ms })
}

/// The answer in a call of `submit` whose answers are JSON: as it stands in the call, or what stands in its text, for some
/// models write JSON as a text.
pub(crate) fn submitted(raw: &str) -> String {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        answer: &'a RawValue,
    }
    let Ok(Arguments { answer }) = serde_json::from_str(raw) else { return String::new() };
    let inside = serde_json::from_str::<String>(answer.get()).ok();
    let inside = inside.filter(|text| matches!(serde_json::from_str(text), Ok(Value::Object(_) | Value::Array(_))));
    inside.unwrap_or_else(|| answer.get().to_owned())
}

/// What the call of `submit` is told of the verdict.
fn observation(run: &Run, call: &OpenCall, verified: &Verified) -> Observed {
    let notes = run.progress().harness().notes();
    match &verified.verdict {
        Verdict::Pass => Observed::words(call.id.clone(), Status::Ok, &notes.accepted),
        Verdict::Fail => Observed::words(call.id.clone(), Status::Failed, failure(notes, verified, run.progress().claims_left())),
        Verdict::Unjudged { reason } => Observed::words(call.id.clone(), Status::Failed, reason),
    }
}

/// What an agent is told of an answer that does not fit, or of checks that failed.
pub(crate) fn failure(notes: &Notes, verified: &Verified, left: u32) -> String {
    if let Some(misfit) = &verified.misfit {
        return fill(&notes.misfit, &[("why", misfit), ("left", &left.to_string())]);
    }
    let failed: Vec<&CheckResult> = verified.checks.iter().filter(|check| !check.passed).collect();
    let results: Vec<String> = failed
        .iter()
        .map(|check| {
            let ending = match (check.exit_code, check.timed_out) {
                (_, true) => "timed out".to_owned(),
                (Some(code), false) => format!("exit code {code}"),
                (None, false) => "ended by a signal".to_owned(),
            };
            let words = [("command", check.command.as_str()), ("output", check.output.trim_end()), ("ending", &ending)];
            fill(&notes.check_result, &words)
        })
        .collect();
    let (number, total, left) = (failed.len().to_string(), verified.checks.len().to_string(), left.to_string());
    let words = [("failed", number.as_str()), ("total", &total), ("left", &left), ("results", &results.join("\n\n"))];
    fill(&notes.checks_failed, &words)
}

#[cfg(test)]
mod tests {
    use super::submitted;

    #[test]
    fn an_answer_is_taken_as_it_stands() {
        for (raw, answer) in [
            (r#"{"answer": {"b": 1.0, "a": 2}}"#, r#"{"b": 1.0, "a": 2}"#),
            (r#"{"answer": "{\"b\": 1}"}"#, r#"{"b": 1}"#),
            (r#"{"answer": "12"}"#, r#""12""#),
            (r#"{"answer": null}"#, "null"),
            (r#"{}"#, ""),
        ] {
            assert_eq!(submitted(raw), answer);
        }
    }
}
