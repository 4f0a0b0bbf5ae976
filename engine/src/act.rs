//! Act: the one place through which every call of a tool passes, from the word that it begins to its observation.

use crate::engine::{Engine, EngineError, Run};
use crate::harness::fill;
use crate::progress::{OpenCall, Progress};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;
use tools::Room;
use trace::secrets::Author;
use trace::{Called, Digest, Millis, Observed, Secrets, Seq, Status, ToolCall, What};

/// A call's arguments, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arguments {
    /// They fit the tool's schema.
    Usable(serde_json::Value),
    /// There is no such tool, or they do not fit: what the agent is told.
    Refused(String),
}

/// Serves calls side by side (they are neighbours that leave the world as it is, or a single one) and writes down what
/// came of each, in call order. Where an interrupt or the end of the time comes first, what has ended is written down and
/// the rest is left open.
pub(crate) async fn serve(engine: &Engine<'_>, run: &mut Run, calls: &[OpenCall]) -> Result<(), EngineError> {
    let mut begun = Vec::new();
    for call in calls {
        let arguments = read_arguments(engine, run.progress(), call);
        let seq = run.note(Some(call.reply), What::Called(called(run.progress(), call, &arguments)))?.seq;
        begun.push((seq, call, arguments));
    }
    if begun.iter().any(|(_, call, arguments)| changes_world(run.progress(), call, arguments)) {
        run.sync()?;
    }
    // Made once, before calls that are served side by side each make one; why it cannot be made is told by each.
    if begun.len() > 1 {
        let _ = engine.environments.agent().await;
    }
    let mut observed: Vec<Option<Observed>> = vec![None; begun.len()];
    let (seen, left) = (&*run, run.progress().ledger().left().time_ms);
    let mut serving: FuturesUnordered<_> = begun
        .iter()
        .enumerate()
        .map(|(index, (seq, call, arguments))| async move { (index, answer(engine, seen, *seq, call, arguments).await) })
        .collect();
    let time_is_over = time_is_over(engine, left);
    tokio::pin!(time_is_over);
    loop {
        tokio::select! {
            biased;
            next = serving.next() => match next {
                Some((index, answer)) => observed[index] = Some(answer),
                None => break,
            },
            () = engine.interrupt.raised() => break,
            () = &mut time_is_over => break,
        }
    }
    drop(serving);
    for ((seq, ..), observed) in begun.iter().zip(observed) {
        if let Some(observed) = observed {
            run.note(Some(*seq), What::Observed(observed))?;
        }
    }
    Ok(())
}

/// Closes calls that are not served any more: what one that had begun did is unknown, and none is begun a second time.
pub(crate) fn settle(engine: &Engine<'_>, run: &mut Run, calls: &[OpenCall]) -> Result<(), EngineError> {
    for call in calls {
        let notes = run.progress().harness().notes();
        let (seq, note) = match call.called {
            Some(seq) => (seq, notes.interrupted.clone()),
            None => {
                let note = if run.progress().is_in_doubt() { &notes.interrupted } else { &notes.not_started };
                let (arguments, note) = (read_arguments(engine, run.progress(), call), note.clone());
                (run.note(Some(call.reply), What::Called(called(run.progress(), call, &arguments)))?.seq, note)
            }
        };
        run.note(Some(seq), What::Observed(Observed::words(call.id.clone(), Status::Interrupted, note)))?;
    }
    Ok(())
}

/// What is written down before a call is served.
pub(crate) fn called(progress: &Progress, call: &OpenCall, arguments: &Arguments) -> Called {
    let tool = progress.tools().iter().find(|tool| tool.name == call.tool);
    let digest = |bytes: serde_json::Result<Vec<u8>>| bytes.ok().map(|bytes| Digest::of(&bytes));
    Called {
        id: call.id.clone(),
        provider_id: call.provider_id.clone(),
        tool: call.tool.clone(),
        tool_digest: tool.and_then(|tool| digest(serde_json::to_vec(tool))),
        raw: call.raw.clone(),
        arguments: match arguments {
            Arguments::Usable(value) => Some(value.clone()),
            Arguments::Refused(_) => None,
        },
        grant: progress.started().and_then(|started| digest(serde_json::to_vec(&started.grant))),
    }
}

/// Reads a call's arguments against the schema of the tool that it names.
pub(crate) fn read_arguments(engine: &Engine<'_>, progress: &Progress, call: &OpenCall) -> Arguments {
    let notes = progress.harness().notes();
    if !progress.tools().iter().any(|tool| tool.name == call.tool) {
        let tools: Vec<&str> = progress.tools().iter().map(|tool| tool.name.as_str()).collect();
        return Arguments::Refused(fill(&notes.no_tool, &[("name", &call.tool), ("tools", &tools.join(", "))]));
    }
    let refused = |why: &str| Arguments::Refused(fill(&notes.bad_arguments, &[("why", why)]));
    // A tool without arguments may be called with no text at all.
    let raw = if call.raw.trim().is_empty() { "{}" } else { &call.raw };
    match serde_json::from_str(raw) {
        Err(error) => refused(&format!("the arguments are not JSON: {error}")),
        Ok(value) => match engine.toolbox.check(&call.tool, &value) {
            Ok(()) => Arguments::Usable(value),
            Err(why) => refused(&why),
        },
    }
}

/// Whether the intent must be on the disk before the call is served.
fn changes_world(progress: &Progress, call: &OpenCall, arguments: &Arguments) -> bool {
    let leaves_it = |tool: &&trace::ToolSpec| tool.name == call.tool && tool.read_only;
    matches!(arguments, Arguments::Usable(_)) && call.same_as.is_none() && !progress.tools().iter().any(|tool| leaves_it(&tool))
}

/// What comes of one call.
async fn answer(engine: &Engine<'_>, run: &Run, at: Seq, call: &OpenCall, arguments: &Arguments) -> Observed {
    let began = engine.clock.elapsed();
    let mut observed = match (arguments, &call.same_as) {
        (Arguments::Refused(why), _) => Observed::words(call.id.clone(), Status::Failed, why),
        (Arguments::Usable(_), Some(first)) => repeat(run.progress(), call, first),
        (Arguments::Usable(value), None) => {
            let call = ToolCall { id: call.id.clone(), name: call.tool.clone(), arguments: value.clone() };
            ask_tool(engine, run, at, &call).await
        }
    };
    observed.took_ms = engine.clock.elapsed().saturating_sub(began);
    observed
}

/// The answer to a call that the model sent twice in one reply: the first one's, word for word.
fn repeat(progress: &Progress, call: &OpenCall, first: &trace::CallId) -> Observed {
    let (status, content) =
        progress.result(first).map_or((Status::Failed, Vec::new()), |(status, parts)| (status, parts.to_vec()));
    Observed { content, same_as: Some(first.clone()), ..Observed::words(call.id.clone(), status, "") }
}

async fn ask_tool(engine: &Engine<'_>, run: &Run, at: Seq, call: &ToolCall) -> Observed {
    let progress = run.progress();
    let environment = match engine.environments.agent().await {
        Ok(environment) => environment,
        Err(error) => return Observed::words(call.id.clone(), Status::Unavailable, error.to_string()),
    };
    let secrets = run.record().secrets();
    let cwd = progress.cwd().unwrap_or(Path::new("/"));
    let room = Room {
        environment: &environment,
        blobs: run.record().blobs(),
        caps: &engine.caps(progress),
        cwd: &meant(cwd, secrets),
        shell: progress.shell(),
        seen: &|path| progress.seen(&secrets.hide(path)).cloned(),
        output: &|seq| progress.output(seq),
        secrets,
        left_ms: progress.ledger().left().time_ms,
        at,
    };
    let observed = engine.toolbox.serve(call, &room).await;
    if observed.status == Status::Unavailable {
        engine.environments.forget();
    }
    observed
}

/// The directory of the last command; where it holds a secret that this session does not have, there is no such folder, and
/// the agent is told so by its next command.
fn meant<'a>(cwd: &'a Path, secrets: &Secrets) -> Cow<'a, Path> {
    let back = cwd.to_str().and_then(|cwd| secrets.put_back(cwd, Author::Agent).ok());
    match back {
        Some(Cow::Owned(back)) => Cow::Owned(back.into()),
        Some(Cow::Borrowed(_)) | None => Cow::Borrowed(cwd),
    }
}

/// Ends when the run's time is over; never, where it has no limit.
pub(crate) async fn time_is_over(engine: &Engine<'_>, left: Option<Millis>) {
    match left {
        // Heard a little late rather than early, so that the clock has reached the limit when it is judged.
        Some(millis) => engine.clock.limit(Duration::from_millis(millis.saturating_add(2))).await,
        None => std::future::pending().await,
    }
}
