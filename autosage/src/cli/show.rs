//! `autosage show`: a run as a story, as events, as a bill, as one object, or as a proof.

use super::args::ShowArgs;
use super::bill::bill;
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::proof;
use super::prose::{grouped, length};
use super::story::Story;
use super::summary::Read;
use super::view::{look, pictures};
use crate::Parts;
use anyhow::{Context, anyhow};
use engine::{Harness, Progress, Request};
use std::path::Path;
use std::time::Duration;
use trace::{Asked, Digest, Event, Reading, Seq, What};

/// Shows a run.
pub fn show(args: &ShowArgs, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let folder = home.which(&args.which)?;
    let read =
        || Read::new(&folder).with_context(|| format!("reading the run {}", folder.display())).map_err(Failure::Infrastructure);
    let what = &args.what;
    if what.follow {
        return follow(&folder, parts);
    } else if what.verify {
        return proof::verify(&folder, parts);
    }
    let read = read()?;
    let text = if what.events {
        read.events.iter().map(event_line).collect()
    } else if what.cost {
        bill(&read.events, look(parts).1)
    } else if what.json {
        let details = read.details(&parts.name).with_context(|| format!("reading the run {}", folder.display()));
        let json = serde_json::to_string(&details.map_err(Failure::Infrastructure)?)
            .map_err(|error| Failure::Infrastructure(error.into()))?;
        format!("{json}\n")
    } else if let Some(seq) = what.prompt {
        prompt(&read.events, Seq(seq), &folder)?
    } else {
        story(&read, &folder, parts)
    };
    print(&parts.out, &text);
    if !what.json {
        print(&parts.err, &proof::damage(&read, parts));
    }
    Ok(0)
}

fn story(read: &Read, folder: &Path, parts: &Parts) -> String {
    let (colour, width) = look(parts);
    let mut story = Story::new(colour, width, &parts.name);
    story.show_pictures(pictures(folder, parts));
    let told: String = read.events.iter().map(|event| story.tell(event)).collect();
    told + &story.left_open()
}

/// Tells the story and goes on telling until the run rests and nobody owns it.
fn follow(folder: &Path, parts: &Parts) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| Failure::Infrastructure(anyhow!("reading the run {}: {error}", folder.display()));
    let (colour, width) = look(parts);
    let mut story = Story::new(colour, width, &parts.name);
    story.show_pictures(pictures(folder, parts));
    let mut reading = Reading::open(folder).map_err(failed)?;
    let runtime = super::session::runtime()?;
    // The question whose answer was told of.
    let mut told = None;
    loop {
        // Asked before reading, so that nothing is written between the last reading and the end.
        let owned = trace::owner(folder).map_err(failed)?.is_some();
        for event in reading.more(|_, _| ()).map_err(failed)? {
            print(&parts.out, &story.tell(&event));
        }
        let asked = story.question().map(|(seq, _)| seq);
        if asked != told && owned {
            print(&parts.out, &story.how_to_answer());
        }
        told = asked;
        if !owned {
            print(&parts.out, &story.left_open());
            print(&parts.err, &proof::damage(&Read::new(folder).map_err(failed)?, parts));
            return Ok(0);
        }
        runtime.block_on(async { parts.clock.pause(Duration::from_millis(100)).await });
    }
}

/// One line for an event, for `grep`.
pub fn event_line(event: &Event) -> String {
    let cause = event.cause.map(|cause| format!(" ← {cause}")).unwrap_or_default();
    let what = match &event.what {
        What::Started(started) => format!("{} · {} · harness {}", started.run, started.model.id, started.harness.digest.short()),
        What::Delivered(delivered) => match &delivered.what {
            trace::Delivery::Message { parts } => format!("message: {}", one_line(&super::prose::told(parts))),
            trace::Delivery::Interrupt => "interrupt".to_owned(),
            trace::Delivery::Approval { asked, answer, by } => format!("answer to {asked}: {answer}, by {by}"),
            trace::Delivery::Session { .. } => "session".to_owned(),
        },
        What::Asked(asked) => format!("{} · {} bytes · prompt {}", asked.model, grouped(asked.bytes), asked.prompt.short()),
        What::Replied(replied) => {
            let stop = match &replied.stop {
                trace::Stop::End => "end".to_owned(),
                trace::Stop::Calls => "calls".to_owned(),
                trace::Stop::Length => "length".to_owned(),
                trace::Stop::Refused => "refused".to_owned(),
                trace::Stop::Error(fault) => format!("error: {}", one_line(&fault.message)),
            };
            format!("{stop} · {} in, {} out", grouped(replied.usage.input), grouped(replied.usage.output))
        }
        What::Switched(switched) => format!("to {}: {}", switched.model.id, one_line(&switched.why)),
        What::ApprovalAsked(asked) => format!("{} wants {}, because: {}", asked.id, asked.wants, one_line(&asked.why)),
        What::Called(called) => {
            format!("{} {}", called.id, one_line(&super::story::headline(&called.tool, called.arguments.as_ref(), &called.raw)))
        }
        What::Observed(observed) => {
            format!(
                "{} {} · {} · {}",
                observed.id,
                observed.status.word(),
                length(observed.took_ms),
                one_line(&trace::text_of(&observed.content))
            )
        }
        What::Folded(folded) => super::story::folding(folded),
        What::Verified(verified) if verified.misfit.is_some() => "the answer does not fit its schema".to_owned(),
        What::Verified(verified) => {
            let passed = verified.checks.iter().filter(|check| check.passed).count();
            format!("{passed} of {} checks passed", verified.checks.len())
        }
        What::Granted(granted) if granted.grant.is_empty() => format!("{:?}", granted.limits),
        What::Granted(granted) => granted.grant.to_string(),
        What::Recovered(recovered) => format!("{} bytes put aside: {}", recovered.bytes, recovered.reason),
        What::Finished(finished) => finished.outcome.word().to_owned(),
        What::Unknown { .. } => "(unknown to this version)".to_owned(),
    };
    let line = format!("{:>5}  {}  {:<14}{cause}  {what}", event.seq.0, event.at, event.what.kind());
    // Every name in a record may come from elsewhere.
    format!("{}\n", super::prose::clean(&line))
}

fn one_line(text: &str) -> String {
    super::prose::cut_to(&super::prose::clean(&text.replace('\n', " ")), 120)
}

/// So many requests of a run are named where there is none at a number; of more, the first three and the last three.
const NAMED_REQUESTS: usize = 8;

fn named_requests(asked: &[Seq]) -> String {
    let list = |asked: &[Seq]| asked.iter().map(Seq::to_string).collect::<Vec<_>>().join(", ");
    match asked {
        [] => "none".to_owned(),
        few if few.len() <= NAMED_REQUESTS => list(few),
        many => format!("{}, … {} ({} of them)", list(&many[..3]), list(&many[many.len() - 3..]), grouped(many.len() as u64)),
    }
}

/// The request at `seq`, or the one that the reply at `seq` answers, rebuilt from the events before it and proven against the
/// digest that was written down.
fn prompt(events: &[Event], seq: Seq, folder: &Path) -> Result<String, Failure> {
    let at = |seq: Seq| events.iter().find(|event| event.seq == seq);
    // The bill names replies.
    let answered = at(seq).filter(|event| matches!(event.what, What::Replied(_))).and_then(|event| event.cause);
    let requests = events.iter().filter(|event| matches!(event.what, What::Asked(_)));
    let asked: Option<&Asked> =
        at(answered.unwrap_or(seq)).and_then(|event| if let What::Asked(asked) = &event.what { Some(asked) } else { None });
    let Some(asked) = asked else {
        let asked: Vec<Seq> = requests.map(|event| event.seq).collect();
        let named = named_requests(&asked);
        return Err(Failure::usage(format!("event {seq} is no request and no reply; the requests of this run are: {named}")));
    };
    let Some(What::Started(started)) = events.first().map(|event| &event.what) else {
        return Err(Failure::Infrastructure(anyhow!("the record does not begin with `Started`")));
    };
    let blobs = trace::blobs(folder);
    let harness = Harness::from_record(&started.harness, &blobs).map_err(|error| Failure::Infrastructure(error.into()))?;
    let progress = Progress::of(harness, blobs.contents(), events.iter().take_while(|event| event.seq <= asked.upto));
    let body = Request::body(&progress, asked.max_output).unwrap_or_default();
    let digest = Digest::of(body.as_bytes());
    if digest != asked.prompt {
        return Err(Failure::Unsuccessful(anyhow!(
            "the request at event {seq} was {}, and the events give {}: prompt rules {} then, {} now",
            asked.prompt.short(),
            digest.short(),
            asked.rules,
            engine::RULES
        )));
    }
    Ok(format!("{body}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_requests_a_few_are_named() {
        let named = |count: u64| named_requests(&(0..count).map(|number| Seq(4 * number + 1)).collect::<Vec<_>>());
        assert_eq!(named(0), "none");
        assert_eq!(named(8), "1, 5, 9, 13, 17, 21, 25, 29");
        assert_eq!(named(1301), "1, 5, 9, … 5193, 5197, 5201 (1,301 of them)");
    }
}
