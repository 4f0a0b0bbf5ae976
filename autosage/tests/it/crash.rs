//! The crash matrix: the process dies before and after each append of a run, and goes on at a later session.
//!
//! The program that dies is this test's own: it calls the program's `main` with an observer that raises SIGKILL at the
//! append that it was told. What goes on with the run is the real binary. The world counts: each command writes down that
//! it began, so that one that was begun twice is seen.

use crate::support::server::{self, Server};
use crate::support::{PROGRAM, Place};
use autosage::Parts;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use trace::{Answer, CallId, Condition, Delivered, Delivery, Event, Moment, Reading, Status, What};

/// The variable in which the child is told its part.
const PART: &str = "AUTOSAGE_TEST_CRASH";
/// The name of the test, by which it starts itself as the child.
const NAME: &str = "crash::a_run_that_dies_at_any_append_goes_on_and_begins_nothing_twice";

/// What the child is told.
#[derive(Serialize, Deserialize)]
struct Part {
    args: Vec<String>,
    /// The event at whose append it dies.
    at: u64,
    /// Whether before its line is written, or after.
    before: bool,
}

/// How the record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Before the line of the event is written.
    Before,
    /// Right after.
    After,
    /// Right after, and only half of the line has reached the disk.
    Torn,
}

/// What each command writes down when it begins.
const WORDS: [&str; 3] = ["child", "second", "wide"];

/// In the command line of whatever the scenario starts, so that it is found if it is left.
fn marker(place: &Place) -> String {
    format!("autosage-crash-{}", place.home().parent().unwrap().file_name().unwrap().to_string_lossy())
}

/// Reads side by side, a command with a background child, a change alone, one that must be allowed, a claim with a check.
fn script(place: &Place) -> Vec<server::Answer> {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let calls = |calls: Vec<Value>| server::Answer { calls, ..server::Answer::default() };
    let child = format!("echo child >> counter; (exec -a {} sleep 300) & echo started", marker(place));
    vec![
        calls(vec![call("read", json!({"path": "a.txt"})), call("read", json!({"path": "b.txt"}))]),
        calls(vec![call("bash", json!({"command": child})), call("bash", json!({"command": "echo second >> counter"}))]),
        calls(vec![call("bash", json!({"command": "echo wide >> counter", "network": true, "why": "to look it up"}))]),
        calls(vec![call("submit", json!({"answer": "Counted."}))]),
        server::Answer { text: Some("And more.".into()), ..server::Answer::default() },
    ]
}

/// The child: the program with an observer that raises SIGKILL.
#[allow(clippy::disallowed_methods, reason = "a test reads its own variable")]
fn play_the_part(part: &str) {
    let Part { args, at, before } = serde_json::from_str(part).unwrap();
    let moment = if before { Moment::Before } else { Moment::Written };
    let mut parts = Parts::real();
    parts.program = sandbox::Program::Path(PROGRAM.into());
    parts.build = None;
    parts.observer = Some(Box::new(move |now, event: &Event, _| {
        if now == moment && event.seq.0 == at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }));
    let args = std::iter::once("autosage".to_owned()).chain(args).map(OsString::from);
    autosage::cli::main(args, parts);
}

/// Runs the program with `args` until it dies at the append that `part` names.
#[allow(clippy::disallowed_methods, reason = "a test starts itself as the program that dies")]
fn die(place: &Place, args: Vec<String>, at: u64, side: Side) {
    let part = serde_json::to_string(&Part { args, at, before: side == Side::Before }).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([NAME, "--exact", "--nocapture"])
        .env_clear()
        .envs([("AUTOSAGE_HOME", place.home()), ("HOME", place.home().with_file_name("person"))])
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), (PART, &part)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let ended = until_it_ends(place, &mut child);
    assert_eq!(ended.signal(), Some(9), "it died where it was to, at event {at}, {side:?}");
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

fn run_args(place: &Place, server: &Server) -> Vec<String> {
    let work = place.work().display().to_string();
    let mut args = owned(&["run", "count", "--check", "echo check >> checks", "--approve", "wait"]);
    args.extend(owned(&place.arguments(server, &work)));
    args
}

const FOLLOW_UP: [&str; 8] = ["resume", "--last", "--config", "none", "--approve", "wait", "-m", "and more"];

/// Runs a program to its end; whatever it asks meanwhile is allowed once, as `send` would.
fn until_it_ends(place: &Place, command: &mut Command) -> ExitStatus {
    let mut child = command.spawn().unwrap();
    let mut answered = BTreeSet::new();
    loop {
        if let Some(ended) = child.try_wait().unwrap() {
            return ended;
        }
        // Looked at before the events: an answer that is in neither was not left yet, also by the process before.
        let is_answered = has_letters(place);
        for event in events(place) {
            match &event.what {
                What::Delivered(Delivered { what: Delivery::Approval { asked, .. }, .. }) => {
                    answered.insert(*asked);
                }
                What::ApprovalAsked(_) if !is_answered && answered.insert(event.seq) => {
                    let what = Delivery::Approval { asked: event.seq, answer: Answer::Once, by: "test".into() };
                    trace::inbox::leave(&place.run_folder(), "a", &what).unwrap();
                }
                _ => {}
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The folder of the run, once there is one.
fn folder(place: &Place) -> Option<PathBuf> {
    let mut runs = fs::read_dir(place.home().join("runs")).ok()?;
    Some(runs.next()?.unwrap().path())
}

/// What the run's record holds by now, if there is one.
fn events(place: &Place) -> Vec<Event> {
    folder(place).and_then(|run| Reading::all(&run).ok()).map_or(Vec::new(), |(events, _)| events)
}

/// Whether something lies in the run's inbox.
fn has_letters(place: &Place) -> bool {
    folder(place).and_then(|run| fs::read_dir(run.join("inbox")).ok()).is_some_and(|mut letters| letters.next().is_some())
}

/// The real binary; returns its exit code and what it said.
fn start(place: &Place, args: &[String]) -> (Option<i32>, String) {
    let log = place.home().with_file_name("log");
    let mut command = place.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
    command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
    let ended = until_it_ends(place, &mut command);
    (ended.code(), fs::read_to_string(log).unwrap())
}

/// A place with the files that the scenario reads, and its server.
fn begin(name: &str) -> (Place, Server) {
    let (place, server) = (Place::new(&format!("crash-{name}")), Server::start(Vec::new()));
    place.write("a.txt", "a\n");
    place.write("b.txt", "b\n");
    server.restart(script(&place));
    (place, server)
}

/// Processes with `marker` in their command line.
fn left(marker: &str) -> Vec<String> {
    let commands = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    // The commands of the run itself name the marker too; the child alone begins with it.
    commands.filter(|command| command.starts_with(marker)).collect()
}

/// Processes of a run whose owner was killed end by themselves, and soon.
fn until_nothing_is_left(marker: &str) {
    let gone = (0..1000).any(|_| {
        let is_gone = left(marker).is_empty();
        if !is_gone {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        is_gone
    });
    assert!(gone, "left: {:?}", left(marker));
}

/// The run dies at event `at`, in its first turn or in the follow-up, and goes on.
fn crash(at: u64, side: Side, first_turn: u64) {
    let (place, server) = begin(&format!("{at}-{side:?}"));
    let run = run_args(&place, &server);
    if at < first_turn {
        die(&place, run, at, side);
    } else {
        assert_eq!(start(&place, &run).0, Some(0));
        die(&place, owned(&FOLLOW_UP), at, side);
    }
    until_nothing_is_left(&marker(&place));
    let path = place.run_folder().join("trace.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "no half line");
    if side == Side::Torn {
        let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(last + (bytes.len() - last) / 2);
        fs::write(&path, &bytes).unwrap();
        bytes.truncate(last);
    }
    let (before, _) = Reading::all(&place.run_folder()).unwrap();
    assert_eq!(before.len() as u64, if side == Side::After { at + 1 } else { at });
    let counted = |word: &str| fs::read_to_string(place.work().join("counter")).unwrap_or_default().matches(word).count();
    let begun = WORDS.map(counted);

    let replies = before.iter().filter(|event| matches!(event.what, What::Replied(_))).count();
    server.restart(script(&place).split_off(replies));
    let (code, told) = start(&place, &owned(&FOLLOW_UP));
    if before.is_empty() {
        assert_eq!(code, Some(4), "there is nothing to go on from: {told}");
        return;
    }
    assert_eq!(code, Some(0), "{at} {side:?}: {told}");
    assert!(fs::read(&path).unwrap().starts_with(&bytes), "every line that was whole is there");
    let (after, reading) = Reading::all(&place.run_folder()).unwrap();
    assert_eq!((reading.condition(), after.last().unwrap().what.kind()), (&Condition::Intact, "Finished"));
    let blobs = trace::blobs(&place.run_folder());
    after.iter().flat_map(|event| event.what.blobs()).for_each(|digest| assert!(blobs.get(&digest).is_ok()));

    let statuses = each_call_has_one_observation(&after);
    for (index, word) in WORDS.into_iter().enumerate() {
        let commands = |events: &[Event]| -> Vec<CallId> {
            let called =
                events.iter().filter_map(|event| if let What::Called(called) = &event.what { Some(called) } else { None });
            called.filter(|called| called.raw.contains(&format!("echo {word} >>"))).map(|called| called.id.clone()).collect()
        };
        let observed = |id: &CallId| before.iter().any(|event| matches!(&event.what, What::Observed(seen) if seen.id == *id));
        let Some(id) = commands(&after).into_iter().next() else { panic!("{at} {side:?}: `{word}` is told of") };
        match (commands(&before).first(), begun[index]) {
            (Some(id), times) if observed(id) => assert_eq!((times, counted(word)), (1, 1)),
            (Some(id), times) => {
                assert_eq!((statuses[id], counted(word)), (Status::Interrupted, times), "{at} {side:?}: its outcome is unknown");
            }
            (None, 0) if statuses[&id] == Status::Ok => assert_eq!(counted(word), 1),
            // The line that said that it began is torn, or the turn was ended before it began.
            (None, times) => assert_eq!((statuses[&id], counted(word)), (Status::Interrupted, times), "{at} {side:?}"),
        }
        assert!(counted(word) <= 1, "{at} {side:?}: `{word}` was begun twice");
    }
    until_nothing_is_left(&marker(&place));
}

fn each_call_has_one_observation(events: &[Event]) -> BTreeMap<CallId, Status> {
    let (mut called, mut statuses) = (Vec::new(), BTreeMap::new());
    for event in events {
        match &event.what {
            What::Called(call) => called.push(call.id.clone()),
            What::Observed(seen) => assert_eq!(statuses.insert(seen.id.clone(), seen.status), None, "{} twice", seen.id),
            _ => {}
        }
    }
    called.sort();
    assert_eq!(called, statuses.keys().cloned().collect::<Vec<_>>());
    statuses
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads its own variable")]
fn a_run_that_dies_at_any_append_goes_on_and_begins_nothing_twice() {
    if let Ok(part) = std::env::var(PART) {
        return play_the_part(&part);
    }
    // Undisturbed, once: how many appends there are to die at.
    let (place, server) = begin("whole");
    let (code, told) = start(&place, &run_args(&place, &server));
    assert_eq!(code, Some(0), "{told}");
    let first_turn = place.events().len() as u64;
    assert_eq!(start(&place, &owned(&FOLLOW_UP)).0, Some(0));
    let events = place.events();
    let kinds: Vec<&str> = events.iter().map(|event| event.what.kind()).collect();
    for kind in ["ApprovalAsked", "Called", "Observed", "Verified", "Delivered", "Finished"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let cases = (0..events.len() as u64).flat_map(|at| [Side::Before, Side::After, Side::Torn].map(|side| (at, side)));
    let cases = Mutex::new(cases.collect::<Vec<_>>());
    let next = || cases.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((at, side)) = next() {
                    crash(at, side, first_turn);
                }
            });
        }
    });
}

#[test]
fn a_run_that_dies_at_a_fold_goes_on_and_is_folded_once() {
    let floods = || (0..8).map(|number| server::bash(&format!("yes {number} | head -c 2500"))).collect::<Vec<_>>();
    let run = |place: &Place, server: &Server| {
        let work = place.work().display().to_string();
        [owned(&["run", "go", "--context", "3500"]), owned(&place.arguments(server, &work))].concat()
    };
    let is_fold = |event: &&Event| matches!(event.what, What::Folded(_));
    let (place, server) = (Place::new("crash-fold"), Server::start(floods()));
    assert_eq!(start(&place, &run(&place, &server)).0, Some(0));
    let at = place.events().iter().find(is_fold).expect("the window is small").seq;
    for side in [Side::Before, Side::After, Side::Torn] {
        let (place, server) = (Place::new(&format!("crash-fold-{side:?}")), Server::start(floods()));
        die(&place, run(&place, &server), at.0, side);
        if side == Side::Torn {
            let path = place.run_folder().join("trace.jsonl");
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
        }
        let (before, _) = Reading::all(&place.run_folder()).unwrap();
        assert_eq!(before.iter().filter(is_fold).count(), usize::from(side == Side::After));
        let replies = before.iter().filter(|event| matches!(event.what, What::Replied(_))).count();
        server.restart(floods().split_off(replies));
        let (code, told) = start(&place, &owned(&FOLLOW_UP));
        assert_eq!(code, Some(0), "{side:?}: {told}");
        let (after, reading) = Reading::all(&place.run_folder()).unwrap();
        assert_eq!(*reading.condition(), Condition::Intact);
        let epochs: Vec<u32> = after
            .iter()
            .filter_map(|event| if let What::Folded(folded) = &event.what { Some(folded.epoch) } else { None })
            .collect();
        assert_eq!(epochs, (1..=epochs.len() as u32).collect::<Vec<_>>(), "{side:?}");
        each_call_has_one_observation(&after);
        for event in after.iter().filter(|event| event.seq > at && matches!(event.what, What::Asked(_))) {
            let shown = place.start(&["show", "--last", "--prompt", &event.seq.to_string()]);
            assert_eq!(shown.code, 0, "{side:?}: {}", shown.err);
        }
    }
}
