//! The record on a real disk: torn ends, two owners, letters that are taken in once.

use crate::support::{Still, message};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use trace::secrets::MachineKey;
use trace::{
    AgentPath, Condition, Cost, Damage, Delivered, Durability, Event, Observed, Reading, Record, RecordError, Replied, Said,
    Secrets, Seq, Status, Stop, Timing, Usage, What, inbox,
};

fn said(text: &str) -> What {
    What::Delivered(Delivered { name: String::new(), what: message(text) })
}

fn create(run: &Path) -> Record {
    Record::create(run, Durability::Process, Arc::new(Still), Box::new(|_, _, _| ())).unwrap()
}

fn open(run: &Path) -> Result<(Record, Vec<Event>), RecordError> {
    Record::open(run, Durability::Process, Arc::new(Still), Box::new(|_, _, _| ()))
}

fn write(run: &Path, texts: &[&str]) {
    let mut record = create(run);
    for text in texts {
        record.append(&AgentPath::root(), None, said(text)).unwrap();
    }
    record.sync().unwrap();
}

#[test]
fn an_end_torn_at_any_byte_is_put_aside_and_the_run_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let whole = home.path().join("whole");
    write(&whole, &["one", "two", "three: größer"]);
    let bytes = fs::read(whole.join("trace.jsonl")).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in last + 1..bytes.len() {
        let run = home.path().join(format!("torn-{end}"));
        write(&run, &[]);
        fs::write(run.join("trace.jsonl"), &bytes[..end]).unwrap();
        let (_, reading) = Reading::all(&run).unwrap();
        assert_eq!(reading.condition(), &Condition::Torn { bytes: (end - last) as u64, damage: Damage::Torn });
        let (mut record, events) = open(&run).unwrap();
        assert_eq!(events.len(), 3, "two whole events and the word of the recovery");
        let What::Recovered(recovered) = &events[2].what else { panic!("{:?}", events[2]) };
        assert_eq!(record.blobs().get(&recovered.blob).unwrap(), &bytes[last..end]);
        record.append(&AgentPath::root(), None, said("four")).unwrap();
        let (events, reading) = Reading::all(&run).unwrap();
        assert_eq!((events.len(), reading.condition()), (4, &Condition::Intact));
    }
}

/// What a disk can leave behind the last good line, and no event follows.
#[test]
fn one_event_is_read_by_its_place_and_proven() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    write(&run, &["one", "two", "three"]);
    let (events, _) = Reading::all(&run).unwrap();
    for event in &events {
        assert_eq!(Reading::one(&run, event.seq).unwrap().as_ref(), Some(event));
    }
    assert_eq!(Reading::one(&run, Seq(3)).unwrap(), None, "there are three");
    assert_eq!(Reading::one(&run, Seq(90)).unwrap(), None);
    let trace = run.join("trace.jsonl");
    let changed = fs::read_to_string(&trace).unwrap().replace("two", "six");
    fs::write(&trace, changed).unwrap();
    assert_eq!(Reading::one(&run, Seq(1)).unwrap(), None, "it is not what was written");
}

#[test]
fn every_shape_of_a_damaged_end_is_put_aside_and_the_run_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let whole = home.path().join("whole");
    write(&whole, &["one", "two", "three: größer"]);
    let text = fs::read_to_string(whole.join("trace.jsonl")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let good = lines[..2].concat().into_bytes();
    let cut_in_a_letter = lines[2].find('ö').unwrap() + 1;
    let later = "{\"v\":1,\"seq\":9";
    let shapes: Vec<(&str, Vec<u8>)> = vec![
        ("a letter cut in its middle", lines[2].as_bytes()[..cut_in_a_letter].to_vec()),
        ("a letter cut in its middle, and a line end", [&lines[2].as_bytes()[..cut_in_a_letter], b"\n"].concat()),
        ("a whole line without its end", lines[2].trim_end().as_bytes().to_vec()),
        ("two lines in one", [lines[2].trim_end(), lines[2]].concat().into_bytes()),
        ("half a line and a whole one in one", [&lines[2][..20], lines[2]].concat().into_bytes()),
        ("half a line, a line end, and half a line", [&lines[2][..20], "\n", later].concat().into_bytes()),
        ("zeros", vec![0; 4096]),
        ("zeros and a line end", [vec![0; 100], b"\n".to_vec()].concat()),
        ("half a line and zeros", [lines[2].as_bytes()[..30].to_vec(), vec![0; 4096 - 30]].concat()),
        ("a whole line with a wrong seal", lines[2].replace("three", "eerht").into_bytes()),
        ("a line that stands there already", lines[1].as_bytes().to_vec()),
        ("empty lines", b"\n\n\n".to_vec()),
    ];
    for (name, bad) in shapes {
        let run = home.path().join(name);
        write(&run, &[]);
        fs::write(run.join("trace.jsonl"), [good.as_slice(), &bad].concat()).unwrap();
        let (_, reading) = Reading::all(&run).unwrap();
        let Condition::Torn { bytes, .. } = reading.condition() else { panic!("{name}: {:?}", reading.condition()) };
        assert_eq!((*bytes, reading.good_bytes()), (bad.len() as u64, good.len() as u64), "{name}");
        let (mut record, events) = open(&run).unwrap();
        assert_eq!(events.len(), 3, "{name}");
        let What::Recovered(recovered) = &events[2].what else { panic!("{name}: {:?}", events[2]) };
        assert_eq!((record.blobs().get(&recovered.blob).unwrap(), recovered.bytes), (bad.clone(), bad.len() as u64), "{name}");
        record.append(&AgentPath::root(), None, said("four")).unwrap();
        drop(record);
        let now = fs::read(run.join("trace.jsonl")).unwrap();
        assert!(now.starts_with(&good) && now.ends_with(b"\n"), "{name}");
        let (events, reading) = Reading::all(&run).unwrap();
        assert_eq!((events.len(), reading.condition()), (4, &Condition::Intact), "{name}");
    }
}

#[test]
fn a_damaged_run_goes_on_as_a_new_one_with_its_good_lines_and_what_was_behind() {
    let home = tempfile::tempdir().unwrap();
    let (old, new) = (home.path().join("old"), home.path().join("new"));
    let mut record = create(&old);
    let blob = record.blobs().put(b"the whole output").unwrap();
    let observed = Observed { blob: Some(blob), ..Observed::words(trace::CallId::new(trace::Seq(0), 0), Status::Ok, "the") };
    record.append(&AgentPath::root(), None, said("one")).unwrap();
    record.append(&AgentPath::root(), None, What::Observed(observed)).unwrap();
    for text in ["two", "three"] {
        record.append(&AgentPath::root(), None, said(text)).unwrap();
    }
    let anew = |from: &Path| {
        let id = "new".parse().unwrap();
        Record::anew(from, &new, id, Durability::Power, Arc::new(Still), Box::new(|_, _, _| ()))
    };
    assert!(matches!(anew(&old), Err(RecordError::Owned { .. })), "its owner may go on with it");
    drop(record);
    assert!(matches!(anew(&old), Err(RecordError::Sound { .. })) && !new.exists());
    let text = fs::read_to_string(old.join("trace.jsonl")).unwrap();
    let damaged = text.replace("two", "tow");
    fs::write(old.join("trace.jsonl"), &damaged).unwrap();
    let (mut record, events, missing) = anew(&old).unwrap();
    assert!(missing.is_empty() && events.len() == 3, "{missing:?} {events:?}");
    let What::Recovered(recovered) = &events[2].what else { panic!("{:?}", events[2]) };
    let good = text.find("{\"v\":1,\"seq\":2").unwrap();
    assert_eq!(record.blobs().get(&recovered.blob).unwrap(), &damaged.as_bytes()[good..]);
    assert_eq!((recovered.run.as_ref().unwrap().as_str(), recovered.bytes), ("new", (text.len() - good) as u64));
    assert_eq!(record.blobs().get(&blob).unwrap(), b"the whole output");
    record.append(&AgentPath::root(), None, said("four")).unwrap();
    drop(record);
    assert!(fs::read_to_string(new.join("trace.jsonl")).unwrap().starts_with(&text[..good]), "what was good stands as it was");
    assert_eq!((Reading::all(&new).unwrap().1.condition(), open(&new).unwrap().1.len()), (&Condition::Intact, 4));
    assert_eq!(fs::read_to_string(old.join("trace.jsonl")).unwrap(), damaged, "the old run is left as it is");
}

#[test]
fn where_no_good_line_is_left_or_a_later_version_wrote_nothing_goes_on_as_new() {
    let home = tempfile::tempdir().unwrap();
    let (run, new) = (home.path().join("run"), home.path().join("new"));
    write(&run, &["one", "two"]);
    let text = fs::read_to_string(run.join("trace.jsonl")).unwrap();
    let anew = |text: String| {
        fs::write(run.join("trace.jsonl"), text).unwrap();
        let id = "new".parse().unwrap();
        Record::anew(&run, &new, id, Durability::Power, Arc::new(Still), Box::new(|_, _, _| ())).map(|_| ())
    };
    assert!(matches!(anew(text.replacen("one", "eno", 1)), Err(RecordError::Nothing { .. })));
    let later = anew(text.clone() + "{\"v\":2,\"event\":{}}\n" + &text);
    assert!(matches!(later, Err(RecordError::Damaged { line: 3, damage: Damage::Version(2), .. })), "{later:?}");
    assert!(!new.exists());
}

#[test]
fn a_long_record_is_seen_at_its_two_ends() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let mut record = create(&run);
    let long = "x".repeat(1000);
    for _ in 0..600 {
        record.append(&AgentPath::root(), None, said(&long)).unwrap();
    }
    let finished = trace::Finished {
        run: "run".parse().unwrap(),
        outcome: trace::Outcome::Done,
        answer: None,
        usage: Usage::default(),
        cost_nano_usd: None,
        turns: 7,
        active_ms: 0,
    };
    let end = record.append(&AgentPath::root(), None, What::Finished(finished)).unwrap();
    drop(record);
    let glance = trace::Glance::at(&run).unwrap();
    assert_eq!((glance.extent, &glance.condition), (trace::Extent::Ends, &Condition::Intact));
    assert_eq!((glance.first.map(|event| event.seq), glance.last.last()), (Some(trace::Seq(0)), Some(&end)));
    assert!((200..300).contains(&glance.last.len()), "{} of 601 events were read", glance.last.len());
    let text = fs::read_to_string(run.join("trace.jsonl")).unwrap();
    fs::write(run.join("trace.jsonl"), &text[..text.len() - 3]).unwrap();
    let glance = trace::Glance::at(&run).unwrap();
    assert!(matches!(glance.condition, Condition::Torn { damage: Damage::Torn, .. }), "{:?}", glance.condition);
    // Where no end of a turn is within reach, more is read, and of a short record all.
    assert_eq!((glance.extent, glance.last.len()), (trace::Extent::Whole, 600));
}

#[test]
fn damage_in_the_middle_is_named_and_the_run_is_not_continued() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    write(&run, &["one", "two", "three"]);
    let text = fs::read_to_string(run.join("trace.jsonl")).unwrap();
    fs::write(run.join("trace.jsonl"), text.replace("two", "tow")).unwrap();
    let (events, reading) = Reading::all(&run).unwrap();
    let Condition::Damaged { line: 2, damage: Damage::Seal, next: Some(next) } = reading.condition() else {
        panic!("{:?}", reading.condition())
    };
    assert_eq!((events.len(), next.line, &next.event.what), (1, 3, &said("three")));
    assert!(matches!(open(&run), Err(RecordError::Damaged { line: 2, .. })));
    assert_eq!(fs::read_to_string(run.join("trace.jsonl")).unwrap(), text.replace("two", "tow"), "nothing was written");
}

#[test]
fn a_second_owner_is_refused_with_the_pid_of_the_first() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let record = create(&run);
    assert_eq!(trace::owner(&run).unwrap().unwrap().pid, std::process::id());
    let Err(RecordError::Owned { owner, .. }) = open(&run) else { panic!("two owners") };
    assert_eq!(owner.pid, std::process::id());
    drop(record);
    assert_eq!(trace::owner(&run).unwrap(), None);
    open(&run).unwrap();
}

#[test]
fn a_reader_follows_the_end_without_the_lock() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let mut record = create(&run);
    let mut reading = Reading::open(&run).unwrap();
    assert!(reading.more(|_, _| ()).unwrap().is_empty());
    let event = record.append(&AgentPath::root(), None, said("one")).unwrap();
    let mut lines = Vec::new();
    assert_eq!(reading.more(|_, line| lines.push(line.to_owned())).unwrap(), [event]);
    assert_eq!(format!("{}\n", lines[0]), fs::read_to_string(run.join("trace.jsonl")).unwrap());
    assert_eq!(reading.digest(), record.digest());
}

#[test]
fn letters_are_taken_in_once_and_in_order() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let _record = create(&run);
    let first = inbox::leave(&run, "a", &message("one")).unwrap();
    let second = inbox::leave(&run, "a", &message("two")).unwrap();
    fs::write(run.join("inbox/b"), "no letter").unwrap();
    let letters = inbox::waiting(&run, &BTreeSet::new()).unwrap();
    assert_eq!(letters.fresh, [(first.clone(), message("one")), (second.clone(), message("two"))]);
    assert_eq!(letters.unreadable.len(), 1);
    let letters = inbox::waiting(&run, &BTreeSet::from([first.clone()])).unwrap();
    assert_eq!(letters.fresh, [(second, message("two"))]);
    assert!(!run.join("inbox").join(first).exists(), "a delivered letter is removed");
}

#[test]
fn what_is_kept_by_digest_is_proven_when_it_is_read() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let record = create(&run);
    let digest = record.blobs().put(b"content").unwrap();
    assert_eq!(record.blobs().put(b"content").unwrap(), digest);
    assert_eq!(record.blobs().get(&digest).unwrap(), b"content");
    fs::write(record.blobs().path(&digest), b"another").unwrap();
    assert!(record.blobs().get(&digest).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Invariant 3: whatever is appended in however many sessions is read back whole, gapless and chained.
    #[test]
    fn sessions_append_to_one_chain(sessions in prop::collection::vec(prop::collection::vec(".{0,40}", 0..4), 1..4)) {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        drop(create(&run));
        for texts in &sessions {
            let (mut record, _) = open(&run).unwrap();
            for text in texts {
                record.append(&AgentPath::root(), None, said(text)).unwrap();
            }
        }
        let (events, reading) = Reading::all(&run).unwrap();
        prop_assert_eq!(reading.condition(), &Condition::Intact);
        let read: Vec<&What> = events.iter().map(|event| &event.what).collect();
        let written: Vec<What> = sessions.iter().flatten().map(|text| said(text)).collect();
        prop_assert_eq!(read, written.iter().collect::<Vec<_>>());
        prop_assert!(events.iter().enumerate().all(|(at, event)| event.seq.0 == at as u64));
    }
}

#[test]
fn a_letter_is_delivered_though_one_before_it_at_the_same_moment_was_removed() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let _record = create(&run);
    let first = inbox::leave(&run, "a", &message("one")).unwrap();
    let delivered = BTreeSet::from([first]);
    inbox::waiting(&run, &delivered).unwrap();
    let second = inbox::leave(&run, "a", &message("two")).unwrap();
    assert_eq!(inbox::waiting(&run, &delivered).unwrap().fresh, [(second, message("two"))]);
}

#[test]
fn letters_of_one_moment_keep_their_order() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let _record = create(&run);
    let left: Vec<String> = (0..12).map(|number| inbox::leave(&run, "a", &message(&number.to_string())).unwrap()).collect();
    let fresh = inbox::waiting(&run, &BTreeSet::new()).unwrap().fresh;
    assert_eq!(fresh.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), left);
}

#[test]
fn whoever_looks_for_the_owner_keeps_nobody_from_becoming_it() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    drop(create(&run));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    trace::owner(&run).unwrap();
                }
            });
        }
        let refused = (0..100).find_map(|_| open(&run).err());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(refused.is_none(), "{refused:?}");
    });
}

#[test]
fn what_a_later_version_wrote_is_not_taken_for_a_torn_end() {
    let home = tempfile::tempdir().unwrap();
    let seal = |body: &str| format!("{body},\"sum\":\"{}\"}}\n", trace::Digest::of(body.as_bytes()));
    let known = r#"{"v":1,"seq":0,"at":"2026-11-29T17:40:07.123Z","ms":5,"agent":"0","kind":"Delivered","delivery":"dream""#;
    for (name, text) in [("envelope", "{\"v\":2,\"event\":{}}\n".to_owned()), ("payload", seal(known))] {
        let run = home.path().join(name);
        drop(create(&run));
        fs::write(run.join("trace.jsonl"), &text).unwrap();
        assert!(matches!(open(&run), Err(RecordError::Damaged { line: 1, .. })), "{name}");
        assert_eq!(fs::read_to_string(run.join("trace.jsonl")).unwrap(), text, "nothing was written");
    }
}

#[test]
fn a_damaged_content_is_mended_when_it_is_kept_again() {
    let home = tempfile::tempdir().unwrap();
    let record = create(&home.path().join("run"));
    let digest = record.blobs().put(b"content").unwrap();
    fs::write(record.blobs().path(&digest), b"").unwrap();
    record.blobs().put(b"content").unwrap();
    assert_eq!(record.blobs().get(&digest).unwrap(), b"content");
}

#[test]
fn what_a_dead_session_left_half_written_goes_when_the_run_is_opened() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let (_, draft) = create(&run).blobs().draft().unwrap();
    assert!(draft.exists());
    open(&run).unwrap();
    assert!(!draft.exists());
}

#[test]
fn no_secret_enters_a_record_and_the_event_comes_back_as_it_was_written() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let secrets = Secrets::of_run(&MachineKey::fixed([1; 32]), &"run".parse().unwrap());
    secrets.know_own("OPENAI_API_KEY", "key-of-the-engine");
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let mut record = create(&run).hiding(secrets);
    let mut append = |what: What| record.append(&AgentPath::root(), None, what).unwrap();
    let plain = append(said("no secret"));
    let message = append(said(&format!("{token} and \"key-of-the-engine\"")));
    let shell = BTreeMap::from([("TOKEN".to_owned(), Some(token.to_owned())), ("GONE".to_owned(), None)]);
    let observed = Observed { shell: Some(shell), ..Observed::words(trace::CallId::new(trace::Seq(1), 0), Status::Ok, token) };
    let observed = append(What::Observed(observed));
    let replied = |text: &str| {
        let opaque = Said::Opaque { wire: "w".to_owned(), json: "key-of-the-engine".into() };
        let arguments = serde_json::json!({"command": format!("echo {token}")}).to_string();
        let call = Said::Call { id: "1".to_owned(), name: "bash".to_owned(), arguments };
        let parts = vec![Said::Text { text: text.to_owned() }, opaque];
        What::Replied(Replied {
            parts: if text.is_empty() { parts } else { parts.into_iter().chain([call]).collect() },
            stop: Stop::Calls,
            usage: Usage::default(),
            estimated: false,
            cost: Cost::Unpriced,
            served: None,
            request_id: None,
            timing: Timing::default(),
            attempts: Vec::new(),
            raw: None,
            redacted: false,
        })
    };
    let exempt = append(replied(""));
    let redacted = append(replied("I see."));
    let is_redacted = |event: &Event| matches!(&event.what, What::Replied(replied) if replied.redacted);
    assert!(!is_redacted(&exempt) && is_redacted(&redacted));
    let (events, reading) = Reading::all(&run).unwrap();
    assert_eq!((events, reading.condition()), (vec![plain, message, observed, exempt, redacted], &Condition::Intact));
    let text = fs::read_to_string(run.join("trace.jsonl")).unwrap();
    assert!(!text.contains(token));
    // Twice: in the parts that go back to their wire as they came.
    assert_eq!(text.matches("key-of-the-engine").count(), 2);
    assert_eq!(text.matches("<secret:github-token:").count(), 4);
}
