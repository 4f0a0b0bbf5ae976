//! `autosage show --verify`: whether every line and every blob of a record is what it was; and what is said of one that is
//! not.

use super::failure::Failure;
use super::print;
use super::show::event_line;
use super::summary::{Read, State};
use crate::Parts;
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::Path;
use trace::{Condition, Damage, Digest, Event};

/// Whether every line and every blob is what it was.
pub fn verify(folder: &Path, parts: &Parts) -> Result<u8, Failure> {
    let read = Read::new(folder).with_context(|| format!("reading the run {}", folder.display()));
    let read = read.map_err(Failure::Infrastructure)?;
    let mut wrong = damage(&read, parts);
    if read.events.is_empty() && wrong.is_empty() {
        wrong = "the record has no events: it was never begun, or it was emptied\n".to_owned();
    }
    let blobs = trace::blobs(folder);
    let mut named: BTreeMap<Digest, &Event> = BTreeMap::new();
    for event in &read.events {
        event.what.blobs().into_iter().for_each(|digest| {
            named.entry(digest).or_insert(event);
        });
    }
    for (digest, event) in &named {
        if let Err(error) = blobs.get(digest) {
            wrong.push_str(&format!("event {} ({}) says less than it did: {error}\n", event.seq, event.what.kind()));
        }
    }
    if wrong.is_empty() {
        let digest = read.digest().map(|digest| digest.to_string()).unwrap_or_default();
        print(&parts.out, &format!("intact: {} events, {} blobs, digest {digest}\n", read.events.len(), named.len()));
        return Ok(0);
    }
    print(&parts.out, &format!("not intact: {} events are good\n{wrong}", read.events.len()));
    Ok(1)
}

/// What is said of a record whose lines are damaged: both neighbours, what is wrong between them, and what can be done.
/// Empty for one that is intact, or whose end is being written at this moment.
pub fn damage(read: &Read, parts: &Parts) -> String {
    let id = read.folder.file_name().unwrap_or_default().to_string_lossy();
    let before = match read.events.last() {
        Some(event) => format!("line {}: {}", read.events.len(), event_line(event)),
        None => "there is no good line before\n".to_owned(),
    };
    match read.condition() {
        Condition::Intact => String::new(),
        Condition::Torn { .. } if matches!(read.state(), State::Running | State::Waiting) => String::new(),
        Condition::Torn { bytes, damage } => {
            format!("the last {bytes} bytes are no event: {damage}; `{} resume {id}` puts them aside\n", parts.name)
        }
        Condition::Damaged { line, damage, next } => {
            let behind = match next {
                Some(next) if next.line == *line => format!("line {line} all the same says: {}", event_line(&next.event)),
                Some(next) => format!("line {} reads as an event again: {}", next.line, event_line(&next.event)),
                None => "no line behind it reads as an event of this version\n".to_owned(),
            };
            let way_out = match damage {
                Damage::Version(_) | Damage::Foreign(_) => "go on with the version that wrote it\n".to_owned(),
                _ if read.events.is_empty() => "nothing is left to go on from\n".to_owned(),
                _ => format!("go on from line {} as a new run: {} resume {id} --as-new\n", line - 1, parts.name),
            };
            format!("the record is damaged here:\n{before}line {line}: {damage}\n{behind}{way_out}")
        }
    }
}
