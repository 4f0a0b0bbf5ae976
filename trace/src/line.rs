//! One line of the record: how an event becomes bytes, and how bytes become an event again.
//!
//! A line is `{"v":…,"seq":…,"at":…,"ms":…,"agent":…,"cause":…,"kind":…, the kind's own fields, "sum":"…"}`. `sum` is the
//! BLAKE3 of the previous line's `sum` (64 characters; nothing for the first line) followed by this line's bytes before
//! `,"sum":`. So one field seals the line and chains it to all before it.

use crate::event::{EnvelopeIn, EnvelopeOut};
use crate::{Digest, Event, Seq, What};
use std::fmt;

/// The version of the format that is written. Every later version reads it.
pub const VERSION: u32 = 1;

/// What follows the sealed bytes, up to the digest.
const SUM_FIELD: &str = ",\"sum\":\"";
/// Length of the whole seal: the field, 64 digits, quote and brace.
const SEAL_BYTES: usize = SUM_FIELD.len() + 64 + 2;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It has no line end: the write did not finish.
    Torn,
    /// It is not an event: what the parser said.
    Unreadable(String),
    /// Its seal does not fit its bytes and the line before.
    Seal,
    /// It is not the event that should come next.
    Order {
        /// The place that it claims.
        found: Seq,
        /// The place that was next.
        expected: Seq,
    },
    /// It was written by a later version.
    Version(u32),
    /// Its seal fits, so it is what was written, but it says something that this version does not know.
    Foreign(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Torn => f.write_str("the line was not written to its end"),
            Damage::Unreadable(why) => write!(f, "the line is not an event: {why}"),
            Damage::Seal => f.write_str("the line's seal does not fit its bytes and the line before"),
            Damage::Order { found, expected } => write!(f, "the line is event {found}, expected was event {expected}"),
            Damage::Version(v) => write!(f, "the line has version {v}, this program reads versions up to {VERSION}"),
            Damage::Foreign(why) => write!(f, "the line is sound, but of a later version than this program: {why}"),
        }
    }
}

/// The version of a line, whatever else is in it; `None` where it is no line of a record.
pub(crate) fn version(line: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        v: u32,
    }
    serde_json::from_slice(line).ok().map(|Versioned { v }| v)
}

/// What a line says and how it is sealed, where it reads as an event; whether it is what was written is not looked at.
pub(crate) fn unproven(line: &[u8]) -> Option<(Event, Digest)> {
    let text = std::str::from_utf8(line).ok()?;
    let EnvelopeIn { v, seq, at, ms, agent, cause, kind, sum } = serde_json::from_str(text).ok()?;
    let what = What::from_json(&kind, text).ok().filter(|_| v <= VERSION)?;
    Some((Event { seq, at, ms, agent, cause, what }, sum))
}

/// Where a chain of lines stands: what the next line must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub next: Seq,
    pub sum: Option<Digest>,
}

impl Chain {
    /// The seal of `body` as the next line.
    fn seal(&self, body: &[u8]) -> Digest {
        match &self.sum {
            Some(previous) => Digest::of_two(previous.to_string().as_bytes(), body),
            None => Digest::of(body),
        }
    }

    /// Writes `event` as the next line (without its line end) and moves on. `None` for a kind that is never written.
    pub fn write(&mut self, event: &Event) -> Option<serde_json::Result<String>> {
        let payload = match event.what.to_json()? {
            Ok(payload) => payload,
            Err(error) => return Some(Err(error)),
        };
        let envelope = EnvelopeOut {
            v: VERSION,
            seq: event.seq,
            at: event.at,
            ms: event.ms,
            agent: &event.agent,
            cause: event.cause,
            kind: event.what.kind(),
        };
        let mut line = match serde_json::to_string(&envelope) {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        line.pop();
        if payload != "{}" {
            line.push(',');
            line.push_str(&payload[1..payload.len() - 1]);
        }
        let sum = self.seal(line.as_bytes());
        line.push_str(SUM_FIELD);
        line.push_str(&sum.to_string());
        line.push_str("\"}");
        *self = Chain { next: event.seq.next(), sum: Some(sum) };
        Some(Ok(line))
    }

    /// Reads `line` (without its line end) as the next one and moves on.
    pub fn read(&mut self, line: &[u8]) -> Result<Event, Damage> {
        let text = std::str::from_utf8(line).map_err(|error| Damage::Unreadable(error.to_string()))?;
        let envelope: EnvelopeIn = serde_json::from_str(text).map_err(|error| match version(line) {
            Some(v) if v > VERSION => Damage::Version(v),
            _ => Damage::Unreadable(error.to_string()),
        })?;
        if envelope.v > VERSION {
            return Err(Damage::Version(envelope.v));
        }
        if envelope.seq != self.next {
            return Err(Damage::Order { found: envelope.seq, expected: self.next });
        }
        // The seal is the last field, so all that it covers stands before a tail of fixed length.
        let body = line.len().checked_sub(SEAL_BYTES).map(|end| &line[..end]).ok_or(Damage::Seal)?;
        if self.seal(body) != envelope.sum || !line[body.len()..].starts_with(SUM_FIELD.as_bytes()) {
            return Err(Damage::Seal);
        }
        let what = What::from_json(&envelope.kind, text).map_err(|error| Damage::Foreign(error.to_string()))?;
        *self = Chain { next: envelope.seq.next(), sum: Some(envelope.sum) };
        Ok(Event { seq: envelope.seq, at: envelope.at, ms: envelope.ms, agent: envelope.agent, cause: envelope.cause, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentPath, Delivered, Delivery, Part, Timestamp};
    use expect_test::expect;
    use proptest::prelude::*;

    fn message(seq: u64, text: &str) -> Event {
        Event {
            seq: Seq(seq),
            at: Timestamp::from_unix_millis(1_795_974_007_123),
            ms: 5,
            agent: AgentPath::root(),
            cause: None,
            what: What::Delivered(Delivered { name: "m1".to_owned(), what: Delivery::Message { parts: vec![Part::text(text)] } }),
        }
    }

    fn lines(texts: &[String]) -> Vec<String> {
        let mut chain = Chain::default();
        let events = texts.iter().enumerate().map(|(at, text)| message(at as u64, text));
        events.map(|event| chain.write(&event).unwrap().unwrap()).collect()
    }

    #[test]
    fn a_line_reads_as_it_was_written() {
        let line = &lines(&["hello".to_owned()])[0];
        expect![[r#"{"v":1,"seq":0,"at":"2026-11-29T17:40:07.123Z","ms":5,"agent":"0","kind":"Delivered","name":"m1","delivery":"message","parts":[{"type":"text","text":"hello"}],"sum":"6e0213cdfdd73ab007904dfce52fdacdc82e3f7f6f93834608b0aa9d56e0eade"}"#]]
            .assert_eq(line);
        assert_eq!(Chain::default().read(line.as_bytes()), Ok(message(0, "hello")));
    }

    #[test]
    fn an_unknown_kind_is_passed_over_and_a_later_version_is_named() {
        let seal = |body: &str| format!("{body},\"sum\":\"{}\"}}", Digest::of(body.as_bytes()));
        let body = r#"{"v":1,"seq":0,"at":"2026-11-29T17:40:07.123Z","ms":5,"agent":"0","kind":"Dreamt","of":"sheep""#;
        let event = Chain::default().read(seal(body).as_bytes()).unwrap();
        assert_eq!(event.what, What::Unknown { kind: "Dreamt".to_owned(), ignorable: false });
        let later = body.replace("\"v\":1", "\"v\":2");
        assert_eq!(Chain::default().read(seal(&later).as_bytes()), Err(Damage::Version(2)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Invariant 3: whatever byte of a record is changed, reading stops at that line or before.
        #[test]
        fn a_changed_byte_is_found(texts in prop::collection::vec(".{0,20}", 1..5), at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let lines = lines(&texts);
            let mut bytes: Vec<u8> = lines.join("\n").into_bytes();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            let mut chain = Chain::default();
            let good = bytes.split(|byte| *byte == b'\n').map_while(|line| chain.read(line).ok()).count();
            let changed = lines.iter().scan(0, |end, line| { *end += line.len() + 1; Some(*end) }).filter(|end| *end <= at).count();
            prop_assert!(good <= changed);
        }

        /// Lines survive any text.
        #[test]
        fn every_text_survives(text in any::<String>()) {
            let line = &lines(std::slice::from_ref(&text))[0];
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(Chain::default().read(line.as_bytes()), Ok(message(0, &text)));
        }
    }
}
