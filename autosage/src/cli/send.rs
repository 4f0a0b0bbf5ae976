//! `autosage send`: a message for a run, or the answer to its question.

use super::args::SendArgs;
use super::config::Config;
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::secrets;
use crate::Parts;
use anyhow::{Context, anyhow};
use engine::Questions;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use trace::{Delivery, Part, Seq, What};

/// Leaves a message, or an answer, for the owner of a run.
pub fn send(args: &SendArgs, config: &Config, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let folder = home.named(&args.run)?;
    let id = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut letters = Vec::new();
    let mut is_hidden = false;
    if let Some(text) = &args.text {
        let spoken = spoken(text)?;
        let run = id.parse().with_context(|| format!("reading the name of the run {id}")).map_err(Failure::Usage)?;
        let hidden = secrets::of_run(&run, config.key_env.as_deref(), home, parts)?.hide(spoken.trim()).into_owned();
        is_hidden = hidden != spoken.trim();
        letters.push(Delivery::Message { parts: vec![Part::text(hidden)] });
    }
    if let Some((asked, answer)) = args.answer {
        let asked = Seq(asked);
        answerable(&folder, asked)?;
        // Behind the words that go with it: they must be there when it is taken in.
        letters.push(Delivery::Approval { asked, answer, by: "send".to_owned() });
    }
    let failed = |error: std::io::Error| Failure::Infrastructure(anyhow!("leaving a message for {}: {error}", folder.display()));
    for what in &letters {
        // To the millisecond: messages are taken in as they were sent, also where each had a process of its own.
        trace::inbox::leave(&folder, &parts.clock.now().to_string(), what).map_err(failed)?;
    }
    if is_hidden {
        let told = "a secret in the message was left out: what lies in a run's folder holds none; give it with --secret NAME at `run` or `resume`\n";
        print(&parts.err, told);
    }
    let told = match trace::owner(&folder).map_err(failed)? {
        Some(owner) => format!("left for {id}; process {} takes it in at its next step\n", owner.pid),
        None => format!("left for {id}; nobody works on it now: {} resume {id}\n", parts.name),
    };
    print(&parts.err, &told);
    Ok(0)
}

/// What is to be said, read from standard input where that is asked for.
fn spoken(text: &str) -> Result<String, Failure> {
    let mut spoken = text.to_owned();
    if text == "-" {
        spoken.clear();
        let read = std::io::stdin().read_to_string(&mut spoken).context("reading the message from standard input");
        read.map_err(Failure::Usage)?;
    }
    if spoken.trim().is_empty() { Err(Failure::usage("the message is empty")) } else { Ok(spoken) }
}

/// Refuses an answer that would change nothing.
fn answerable(folder: &Path, asked: Seq) -> Result<(), Failure> {
    let id = folder.file_name().unwrap_or_default().to_string_lossy();
    let failed = |error: std::io::Error| Failure::Infrastructure(anyhow!("reading the run {}: {error}", folder.display()));
    let (events, _) = trace::Reading::all(folder).map_err(failed)?;
    let mut questions = Questions::default();
    events.iter().for_each(|event| questions.fold(event));
    let open = || match questions.open() {
        Some((seq, _)) => format!("{id} waits for an answer to {seq}"),
        None => format!("{id} waits for no answer"),
    };
    let Some(question) = questions.get(asked) else {
        return Err(Failure::usage(format!("event {asked} is no question; {}", open())));
    };
    if let Some((answer, by)) = &question.answer {
        return Err(Failure::usage(format!("question {asked} was answered already: {answer}, by {by}; {}", open())));
    }
    if question.is_over {
        return Err(Failure::usage(format!("question {asked} is over: its call was ended without an answer; {}", open())));
    }
    let delivered =
        events.iter().filter_map(|event| if let What::Delivered(it) = &event.what { Some(it.name.clone()) } else { None });
    let waiting = trace::inbox::waiting(folder, &BTreeSet::new()).map_err(failed)?;
    let delivered: BTreeSet<String> = delivered.collect();
    let is_fresh = |name: &String| !delivered.contains(name);
    let left = waiting.fresh.iter().filter(|(name, _)| is_fresh(name)).find_map(|(_, what)| match what {
        Delivery::Approval { asked: of, answer, .. } if *of == asked => Some(answer),
        _ => None,
    });
    match left {
        Some(answer) => Err(Failure::usage(format!("question {asked} was answered already: {answer} lies in the inbox of {id}"))),
        None => Ok(()),
    }
}
