//! A conversation recorded and played again.

use crate::support::Stepped;
use model::recorded::{self, Pace, RecordingError};
use model::{Ask, Heard, Masks, Model, Purse, Recorded, Recorder, ScriptedModel, Step};
use serde_json::json;
use std::sync::Mutex;
use std::time::Duration;
use trace::{FaultClass, Replied, Said, Stop};

const BODY: &str = r#"{"model":"m","tools":[{"type":"function","function":{"name":"bash"}}],"messages":[]}"#;

fn ask(model: &dyn Model) -> Replied {
    ask_with(model, BODY)
}

fn ask_with(model: &dyn Model, body: &str) -> Replied {
    let ask = Ask { body, purse: Purse::default(), heard: &|_| (), clock: &Stepped::default() };
    futures_util::FutureExt::now_or_never(model.ask(ask)).expect("nothing here waits for anything")
}

fn script() -> ScriptedModel {
    ScriptedModel::new([
        Step::reasoning("Look first.").then_call("bash", json!({"command": "ls"})),
        Step::call("bash", json!({"command": "cargo test"})),
        Step::text("All done.").then(Said::Opaque { wire: "openai-chat".to_owned(), json: json!({"reasoning_in": "reasoning"}) }),
    ])
}

/// A recording of the script, with the exit codes 0 and 1; and its replies.
fn recording() -> (tempfile::TempDir, std::path::PathBuf, Vec<Replied>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let recorder = Recorder::create(Box::new(script()), Vec::new(), &path).unwrap();
    let mut replies = vec![ask(&recorder)];
    recorder.observed(Some(0)).unwrap();
    replies.push(ask(&recorder));
    recorder.observed(Some(1)).unwrap();
    replies.push(ask(&recorder));
    (folder, path, replies)
}

/// A clock on which no wait ends.
struct Halted;

impl trace::Clock for Halted {
    fn now(&self) -> trace::Timestamp {
        trace::Timestamp::from_unix_millis(0)
    }
    fn elapsed(&self) -> trace::Millis {
        0
    }
    fn pause(&self, _: Duration) -> trace::Pause {
        Box::pin(std::future::pending())
    }
    fn limit(&self, _: Duration) -> trace::Pause {
        Box::pin(std::future::pending())
    }
}

fn fault(replied: &Replied) -> &str {
    match &replied.stop {
        Stop::Error(fault) if fault.class == FaultClass::Rejected => &fault.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_says_the_same_again() {
    let (_folder, path, replies) = recording();
    let recorded = recorded::load(&path).unwrap();
    assert_eq!(recorded.len(), 3);
    assert_eq!(recorded.spec().id, format!("recorded/{}", path.display()));
    assert_eq!((ask(&recorded), ask(&recorded), ask(&recorded)), (replies[0].clone(), replies[1].clone(), replies[2].clone()));
    assert!(fault(&ask(&recorded)).contains("ends after 3 replies"));
}

#[test]
fn a_resumed_run_goes_on_where_it_was() {
    let (_folder, path, replies) = recording();
    let recorded = recorded::load(&path).unwrap().from(1);
    // What the run before it left open is observed before the first request: it is not compared.
    recorded.observed(Some(7));
    assert_eq!(ask(&recorded), replies[1]);
    recorded.observed(Some(1));
    assert_eq!(ask(&recorded), replies[2]);
}

#[test]
fn another_exit_code_ends_it() {
    let (_folder, path, _) = recording();
    let recorded = recorded::load(&path).unwrap();
    ask(&recorded);
    recorded.observed(None);
    ask(&recorded);
    recorded.observed(Some(0));
    let replied = ask(&recorded);
    assert!(
        fault(&replied).starts_with("call 1 of reply 2 ended with exit code 0, in the recording with 1"),
        "{}",
        fault(&replied)
    );
}

#[test]
fn a_tool_that_the_run_lacks_ends_it() {
    let (_folder, path, _) = recording();
    let loose = std::fs::read_to_string(&path).unwrap().replace("\"strict\":true", "\"strict\":false");
    let replied = ask_with(&recorded::parse(&loose).unwrap(), r#"{"tools":[]}"#);
    assert!(fault(&replied).contains("`bash`, a tool that this run does not have"), "{}", fault(&replied));
}

/// The prompts of a run in `place`, named `run`; `seen` is what its first call gave.
fn prompts(place: &str, run: &str, seen: &str) -> [String; 2] {
    let begun = BODY.replace("\"messages\":[", &format!("\"messages\":[\"{place}/a of {run}\""));
    let grown = begun.replace("\"]}", &format!("\",\"{seen}\"]}}"));
    [begun, grown]
}

#[test]
fn a_strict_recording_is_played_to_the_same_prompts_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let masks = |place: &str, run: &str| Masks::new([("workspace", place.to_owned()), ("run", run.to_owned())]);
    let recorder = Recorder::create(Box::new(script()), Vec::new(), &path).unwrap();
    recorder.mask(masks("/there", "r-1"));
    let replies = prompts("/there", "r-1", "seen").map(|prompt| ask_with(&recorder, &prompt));

    let play = |recorded: Recorded, [first, second]: [String; 2]| {
        recorded.mask(masks("/here", "r-2"));
        [ask_with(&recorded, &first).parts, ask_with(&recorded, &second).parts]
    };
    let said = replies.clone().map(|replied| replied.parts);
    let load = || recorded::load(&path).unwrap();
    assert_eq!(play(load(), prompts("/here", "r-2", "seen")), said, "places and names are no difference");

    let told = |recorded: Recorded, prompts: &[String]| {
        recorded.mask(masks("/here", "r-2"));
        let replies: Vec<Replied> = prompts.iter().map(|prompt| ask_with(&recorded, prompt)).collect();
        fault(replies.last().unwrap()).to_owned()
    };
    let other = told(load(), &prompts("/here", "r-2", "seen otherwise"));
    assert!(other.contains("the prompt for reply 2 is not the recorded one (125 bytes, 115 recorded)"), "{other}");
    assert!(other.contains("in what came with and after reply 1, from byte 106 on: ,\"seen otherwise\"]}"), "{other}");
    assert!(other.contains("\"strict\":false"), "{other}");
    let [first, second] = prompts("/elsewhere", "r-2", "seen");
    let head = told(load(), std::slice::from_ref(&first));
    assert!(head.contains("for reply 1 ") && head.contains("its instructions, its tools or the task"), "{head}");
    let stays = told(load(), &[first, second]);
    assert!(stays.contains("for reply 1 "), "{stays}");
    let resumed = told(load().from(1), &[BODY.to_owned()]);
    assert!(resumed.contains("somewhere up to reply 1"), "{resumed}");

    let text = std::fs::read_to_string(&path).unwrap();
    let loose = text.replace("\"strict\":true", "\"strict\":false");
    assert_eq!(play(recorded::parse(&loose).unwrap(), prompts("/elsewhere", "r-2", "seen otherwise")), said);
    // The first version: no digests, and nothing that says strict.
    let old: String = text.lines().filter(|line| !line.starts_with("{\"asked\"")).map(|line| format!("{line}\n")).collect();
    let old = old.replace("\"autosage_recording\":2,\"strict\":true", "\"autosage_recording\":1");
    assert_eq!(play(recorded::parse(&old).unwrap(), prompts("/elsewhere", "r-2", "seen otherwise")), said);
}

#[test]
fn a_recording_is_never_overwritten() {
    let (_folder, path, _) = recording();
    assert_eq!(Recorder::create(Box::new(script()), Vec::new(), &path).err().unwrap().kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn every_reply_is_in_the_file_before_it_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let recorder = Recorder::create(Box::new(script()), Vec::new(), &path).unwrap();
    for count in 1..=3 {
        ask(&recorder);
        assert_eq!(recorded::load(&path).unwrap().len(), count);
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let refused = |text: &str| recorded::parse(text).unwrap_err();
    assert!(matches!(refused(""), RecordingError::Empty));
    assert!(matches!(refused("{}"), RecordingError::Format { line: 1, .. }));
    let (_folder, path, _) = recording();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(matches!(refused(&text.replacen(":2,", ":3,", 1)), RecordingError::Version(3)));
    assert!(matches!(refused(&text[..text.len() - 5]), RecordingError::Format { line: 9, .. }));
    assert!(matches!(recorded::load("/nowhere/at/all".as_ref()), Err(RecordingError::Io { .. })));
}

#[test]
fn it_may_be_played_at_the_pace_of_the_model() {
    let (_folder, path, _) = recording();
    let text = std::fs::read_to_string(path).unwrap().replace("\"total_ms\":0", "\"total_ms\":9000");
    let play = |recorded: Recorded| {
        let (clock, heard) = (Stepped::default(), Mutex::new(Vec::new()));
        let listen = |word: Heard<'_>| heard.lock().unwrap().push(format!("{word:?}"));
        let ask = Ask { body: BODY, purse: Purse::default(), heard: &listen, clock: &clock };
        futures_util::FutureExt::now_or_never(recorded.ask(ask)).unwrap();
        (clock.pauses(), heard.into_inner().unwrap())
    };
    let words = [r#"Reasoning("Look ")"#, r#"Reasoning("first.")"#, r#"Call { name: "bash" }"#, "Arguments { bytes: 16 }"];
    let words = words.map(str::to_owned).to_vec();
    assert_eq!(play(recorded::parse(&text).unwrap()), (vec![], words.clone()));
    let paced = recorded::parse(&text).unwrap().paced(Pace::AtMost(Duration::from_millis(600)));
    assert_eq!(play(paced), (vec![Duration::from_millis(150); 4], words));
}

#[test]
fn a_reply_that_was_broken_off_is_said_again() {
    let (_folder, path, replies) = recording();
    let text = std::fs::read_to_string(path).unwrap().replace("\"total_ms\":0", "\"total_ms\":9000");
    let recorded = recorded::parse(&text).unwrap().paced(Pace::AtMost(Duration::from_millis(600)));
    let asked = Ask { body: BODY, purse: Purse::default(), heard: &|_| (), clock: &Halted };
    assert!(futures_util::FutureExt::now_or_never(recorded.ask(asked)).is_none(), "it was to be broken off");
    assert_eq!(ask(&recorded).parts, replies[0].parts);
}

#[test]
fn a_script_is_the_same_each_time_and_ends_with_a_fault() {
    let replies = |model: ScriptedModel| (0..4).map(|_| ask(&model)).collect::<Vec<_>>();
    let all = replies(script());
    assert_eq!(all, replies(script()));
    assert_eq!(all[1..3], replies(script().from(1))[..2]);
    let stops = all.iter().map(|replied| &replied.stop).collect::<Vec<_>>();
    assert!(matches!(stops[..], [Stop::Calls, Stop::Calls, Stop::End, Stop::Error(_)]), "{stops:?}");
    assert!(fault(&all[3]).contains("ends after 3 replies"));
}
