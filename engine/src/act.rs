//! Act: the one place through which every call of a tool passes, from the word that it begins to its observation.

use crate::approval::{self, Standing};
use crate::engine::{Engine, EngineError, Run};
use crate::harness::fill;
use crate::progress::{OpenCall, Output, Progress, sent_name};
use futures_util::stream::{FuturesUnordered, StreamExt};
use sandbox::{Environment, SandboxError};
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tools::{Lasting, Room};
use trace::secrets::Author;
use trace::{
    ApprovalAsked, Called, Delivered, Delivery, Digest, Grant, Millis, Observed, Part, Reading, Secrets, Seq, Status, ToolCall,
    What,
};

/// A call's arguments, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arguments {
    /// They fit the tool's schema.
    Usable(serde_json::Value),
    /// There is no such tool, or they do not fit: what the agent is told.
    Refused(String),
}

/// A call that is written down as begun.
struct Begun<'a> {
    at: Seq,
    call: &'a OpenCall,
    arguments: Arguments,
    standing: Standing,
}

/// Serves calls side by side (they are neighbours that leave the world as it is, or a single one), each with the rights
/// that it has.
pub(crate) async fn serve(engine: &Engine<'_>, run: &mut Run, calls: &[OpenCall]) -> Result<(), EngineError> {
    let standings = calls.iter().map(|call| approval::standing(run.progress(), call)).collect();
    perform(engine, run, calls, standings).await
}

/// Sees what the wish of a call leads to, and asks for it. Where nobody is to be asked, the call is served, or denied.
pub(crate) async fn ask(engine: &Engine<'_>, run: &mut Run, call: &OpenCall) -> Result<(), EngineError> {
    let standing = match approval::standing(run.progress(), call) {
        Standing::Wished(wish) => match engine.environments.resolve(&wish.wants) {
            Ok(wants) => match approval::ruling(run.progress(), &wants) {
                Standing::Asks(wants) => {
                    let (id, tool, raw) = (call.id.clone(), call.tool.clone(), call.raw.clone());
                    let asked = ApprovalAsked { id, tool, raw, wants, why: wish.why };
                    return run.note(Some(call.reply), What::ApprovalAsked(asked)).map(|_| ());
                }
                ruled => ruled,
            },
            Err(error) => Standing::Denied(fill(&run.progress().harness().notes().bad_arguments, &[("why", &error.to_string())])),
        },
        other => other,
    };
    perform(engine, run, std::slice::from_ref(call), vec![standing]).await
}

/// Serves calls, and writes down what came of each, in call order. Where an interrupt or the end of the time comes first,
/// what has ended is written down and the rest is left open.
async fn perform(engine: &Engine<'_>, run: &mut Run, calls: &[OpenCall], standings: Vec<Standing>) -> Result<(), EngineError> {
    let mut begun = Vec::new();
    for (call, standing) in calls.iter().zip(standings) {
        let arguments = read_arguments(engine, run.progress(), call);
        let at = run.note(Some(call.reply), What::Called(called(run.progress(), call, &arguments, &standing)))?.seq;
        begun.push(Begun { at, call, arguments, standing });
    }
    if begun.iter().any(|begun| changes_world(run.progress(), begun)) {
        run.sync()?;
    }
    // Made once, before calls that are served side by side each make one; why it cannot be made is told by each.
    if begun.len() > 1 {
        let _ = engine.environments.agent(run.progress().grant()).await;
    }
    let mut observed: Vec<Option<Observed>> = vec![None; begun.len()];
    let (seen, left) = (&*run, run.progress().ledger().left().time_ms);
    let serving = begun.iter().enumerate().map(|(index, begun)| async move { (index, answer(engine, seen, begun).await) });
    let mut serving: FuturesUnordered<_> = serving.collect();
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
    for (begun, observed) in begun.iter().zip(observed) {
        if let Some(observed) = observed {
            run.note(Some(begun.at), What::Observed(observed))?;
        }
    }
    Ok(())
}

/// Closes calls that are not served any more: what one that had begun did is unknown, and none is begun a second time.
pub(crate) fn settle(engine: &Engine<'_>, run: &mut Run, calls: &[OpenCall]) -> Result<(), EngineError> {
    for call in calls {
        let progress = run.progress();
        let notes = progress.harness().notes();
        let (status, note) = match approval::standing(progress, call) {
            // Whenever it was begun, it did nothing.
            Standing::Denied(why) if call.is_surplus => (Status::Denied, why),
            _ if call.called.is_some() || progress.is_in_doubt() => (Status::Interrupted, notes.interrupted.clone()),
            _ => (Status::Interrupted, notes.not_started.clone()),
        };
        let seq = match call.called {
            Some(seq) => seq,
            None => {
                let arguments = read_arguments(engine, progress, call);
                run.note(Some(call.reply), What::Called(called(run.progress(), call, &arguments, &Standing::Held)))?.seq
            }
        };
        run.note(Some(seq), What::Observed(Observed::words(call.id.clone(), status, note)))?;
    }
    Ok(())
}

/// What is written down before a call is served.
pub(crate) fn called(progress: &Progress, call: &OpenCall, arguments: &Arguments, standing: &Standing) -> Called {
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
        grant: digest(serde_json::to_vec(&granted(progress, standing))),
        approved_by: match standing {
            Standing::Allowed { by, .. } => Some(by.clone()),
            _ => None,
        },
    }
}

/// Reads a call's arguments against the schema of the tool that it names.
pub(crate) fn read_arguments(engine: &Engine<'_>, progress: &Progress, call: &OpenCall) -> Arguments {
    let notes = progress.harness().notes();
    if !progress.tools().iter().any(|tool| tool.name == call.tool) {
        let tools: Vec<&str> = progress.tools().iter().map(|tool| tool.name.as_str()).collect();
        return Arguments::Refused(fill(&notes.no_tool, &[("name", &sent_name(&call.tool)), ("tools", &tools.join(", "))]));
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

/// What a call may do beyond its workspace.
fn granted(progress: &Progress, standing: &Standing) -> Grant {
    match standing {
        Standing::Allowed { wants, .. } => progress.grant().with(wants),
        Standing::Held | Standing::Wished(_) | Standing::Asks(_) | Standing::Pending(_) | Standing::Denied(_) => {
            progress.grant().clone()
        }
    }
}

/// Whether the intent must be on the disk before the call is served.
fn changes_world(progress: &Progress, begun: &Begun<'_>) -> bool {
    let leaves_it = progress.tools().iter().any(|tool| tool.name == begun.call.tool && tool.read_only);
    let is_served =
        matches!((&begun.arguments, &begun.standing), (Arguments::Usable(_), Standing::Held | Standing::Allowed { .. }));
    is_served && begun.call.same_as.is_none() && !leaves_it
}

/// What comes of one call.
async fn answer(engine: &Engine<'_>, run: &Run, begun: &Begun<'_>) -> Observed {
    let (call, began) = (begun.call, engine.clock.elapsed());
    let mut observed = match (&begun.arguments, &begun.standing, &call.same_as) {
        (_, Standing::Denied(why), _) => Observed::words(call.id.clone(), Status::Denied, why),
        (Arguments::Refused(why), ..) => Observed::words(call.id.clone(), Status::Failed, why),
        (Arguments::Usable(_), _, Some(first)) => repeat(run.progress(), call, first),
        (Arguments::Usable(value), standing, None) => {
            let call = ToolCall { id: call.id.clone(), name: call.tool.clone(), arguments: value.clone() };
            ask_tool(engine, run, begun.at, &call, &granted(run.progress(), standing)).await
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

/// Asks the tool: outright, where it needs no environment; in the agent's, where that has the rights; else in one of the
/// call's own that ends with it.
async fn ask_tool(engine: &Engine<'_>, run: &Run, at: Seq, call: &ToolCall, grant: &Grant) -> Observed {
    if let Some(observed) = engine.toolbox.outright(call) {
        return observed;
    }
    let usual = grant == run.progress().grant();
    let made = match usual {
        true => engine.environments.agent(grant).await,
        false => engine.environments.once(grant).await.map(Rc::new),
    };
    let environment = match made {
        Ok(environment) => environment,
        // What was agreed on is no longer there.
        Err(error @ SandboxError::Refused { .. }) if !usual => {
            return Observed::words(call.id.clone(), Status::Failed, error.to_string());
        }
        Err(error) => return Observed::words(call.id.clone(), Status::Unavailable, error.to_string()),
    };
    let lasting = if usual { Lasting::Session } else { Lasting::Call };
    let observed = serve_in(engine, run, at, call, &environment, lasting).await;
    if observed.status == Status::Unavailable {
        engine.environments.forget();
    }
    if let (Lasting::Call, Some(own)) = (lasting, Rc::into_inner(environment)) {
        own.close().await;
    }
    observed
}

async fn serve_in(
    engine: &Engine<'_>,
    run: &Run,
    at: Seq,
    call: &ToolCall,
    environment: &Environment,
    lasting: Lasting,
) -> Observed {
    let (progress, secrets) = (run.progress(), run.record().secrets());
    let others = engine.environments.beside(environment);
    let cwd = progress.cwd().unwrap_or(Path::new("/"));
    let room = Room {
        environment,
        lasting,
        beside: &others.iter().map(Rc::as_ref).collect::<Vec<_>>(),
        blobs: run.record().blobs(),
        caps: &engine.caps(progress),
        cwd: &meant(cwd, secrets),
        shell: progress.shell(),
        seen: &|path| progress.seen(&secrets.hide(path)).cloned(),
        output: &|seq| output(run, seq),
        secrets,
        left_ms: progress.ledger().left().time_ms,
        at,
    };
    engine.toolbox.serve(call, &room).await
}

/// The whole output of the call at `seq`: what it printed, or what the agent was told; of a fold, all of its account;
/// of a message with pictures, what the person said.
fn output(run: &Run, seq: Seq) -> io::Result<Option<tools::Output>> {
    let event = match run.progress().output(seq) {
        None => return Ok(None),
        Some(Output::Blob(digest)) => return Ok(Some(tools::Output::Blob(digest))),
        Some(Output::Account(..)) => {
            let told = run.progress().told(seq).map(|account| tools::Output::Told(vec![Part::text(account)]));
            return Ok(told);
        }
        Some(Output::Told(event)) => Reading::one(run.record().folder(), event)?,
    };
    match event.map(|event| event.what) {
        Some(What::Observed(observed)) => Ok(Some(tools::Output::Told(observed.content))),
        Some(What::Started(started)) => Ok(Some(tools::Output::Told(started.task.parts))),
        Some(What::Delivered(Delivered { what: Delivery::Message { parts }, .. })) => Ok(Some(tools::Output::Told(parts))),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "its line in the record is damaged")),
    }
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
