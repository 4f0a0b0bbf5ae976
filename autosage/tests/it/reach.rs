//! Nothing that a server says takes a run out of a person's hands: a signal ends the turn, another one the program, and a reply
//! that has no end of its own is given one.

use crate::support::server::{Answer, Endless, Server, Wire, bash, call};
use crate::support::{Place, on_every_wire, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use trace::What;

/// Heads of answers that say that the answer is yet to come.
const EARLY_HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n";

fn endless(piece: &str, at_once: Option<usize>) -> Answer {
    Answer { endless: Some(Endless { piece: piece.to_owned(), at_once }), ..Answer::default() }
}

/// Starts a run at `server` that writes its events into a pipe.
fn begin(place: &Place, server: &Server, more: &[&str]) -> Child {
    let work = place.work().display().to_string();
    let arguments = [&["run", "go", "--json"], &place.arguments(server, &work)[..], more].concat();
    place.command(&arguments).stdout(Stdio::piped()).spawn().unwrap()
}

/// The events that come until the program ends as one that was interrupted.
fn rest(child: &mut Child) -> Vec<Value> {
    let code = until(|| child.try_wait().unwrap()).code();
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(code, Some(130), "{told}");
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["kind"].as_str()).collect()
}

/// The names of a program's threads.
fn threads(child: &Child) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok()).collect()
}

/// The run that was stopped is well.
fn goes_on(place: &Place) {
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
}

#[test]
fn heads_without_end_are_stopped_by_one_signal() {
    let (place, server) = (Place::new("heads"), Server::start(vec![endless(EARLY_HINTS, None)]));
    let mut child = begin(&place, &server, &[]);
    until(|| (server.repeated() > 20).then_some(()));
    assert_eq!(server.faults(), 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let events = rest(&mut child);
    assert_eq!(kinds(&events), ["Started", "Asked", "Replied", "Delivered", "Finished"]);
    goes_on(&place);
}

#[test]
fn two_signals_at_once_are_one_wish() {
    // As `timeout` sends them, to the program and to its group; of two kinds, so that they are not one already.
    let (place, server) = (Place::new("at-once"), Server::start(vec![endless(EARLY_HINTS, None)]));
    let mut child = begin(&place, &server, &[]);
    until(|| (server.repeated() > 20).then_some(()));
    for signal in [Signal::TERM, Signal::INT] {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let events = rest(&mut child);
    assert_eq!(kinds(&events), ["Started", "Asked", "Replied", "Delivered", "Finished"]);
    goes_on(&place);
}

#[test]
fn what_attempts_cost_before_an_interrupt_is_not_forgotten() {
    let broken = Answer { text: Some("half of it".into()), cut_at: Some(120), ..Answer::default() };
    let silent = Answer { text: Some("half of it".into()), cut_at: Some(120), hang: true, ..Answer::default() };
    let (place, server) = (Place::new("charged"), Server::start(vec![broken.clone(), broken, silent]));
    let mut child = begin(&place, &server, &["--price", "1,1"]);
    until(|| (server.faults() == 3).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let events = rest(&mut child);
    assert_eq!(kinds(&events), ["Started", "Asked", "Replied", "Delivered", "Finished"]);
    let replied = &events[2];
    let inputs: Vec<u64> =
        replied["attempts"].as_array().unwrap().iter().map(|one| one["usage"]["input"].as_u64().unwrap()).collect();
    assert!(inputs.len() == 3 && inputs.iter().all(|input| *input > 500), "{replied}");
    assert_eq!(replied["usage"]["input"].as_u64(), Some(inputs.iter().sum()));
    assert!(replied["cost"]["nano_usd"].as_u64().unwrap() >= 1_000 * inputs.iter().sum::<u64>(), "{replied}");
}

#[test]
fn the_arguments_of_a_call_that_an_interrupt_stops_are_in_the_estimate() {
    for wire in Wire::ALL {
        let long = call("write", json!({"path": "long.txt", "content": "word ".repeat(20_000)}));
        let alive = format!(": {}\n\n", "alive ".repeat(80));
        let endless = Some(Endless { piece: alive, at_once: Some(1_000) });
        let open = Answer { no_end: true, cut_at: Some(usize::MAX), endless, ..long };
        let (place, server) = (Place::new("arguments"), Server::start(vec![open]));
        let work = place.work().display().to_string();
        let arguments = place.arguments_on(wire, &server, &work);
        let mut child = place.command(&[&["run", "go", "--json", "--price", "1,1"], &arguments[..]].concat());
        let mut child = child.env("TEST_KEY", "key").stdout(Stdio::piped()).spawn().unwrap();
        // More than a connection holds that nobody reads: what came before was read.
        until(|| (server.repeated() > 24).then_some(()));
        assert_eq!(server.faults(), 1);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let events = rest(&mut child);
        let output = events[2]["usage"]["output"].as_u64().unwrap();
        assert!((33_000..34_000).contains(&output), "{wire:?}: {output}");
    }
}

#[test]
fn a_second_signal_ends_a_program_that_can_hear_nothing() {
    // More than a pipe holds, and nobody reads it: the thread of the run stands in the writing of a line.
    let long = Answer { text: Some("x".repeat(256 << 10)), ..Answer::default() };
    let (place, server) = (Place::new("unread"), Server::start(vec![long]));
    let mut child = begin(&place, &server, &[]);
    let mut out = child.stdout.take().unwrap();
    let waiting = |out: &ChildStdout| rustix::io::ioctl_fionread(out).unwrap();
    until(|| (waiting(&out) > 32 << 10).then_some(()));
    // The first is the wish that the turn ends; until it was heard, a second one is the same.
    let ended = until(|| {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.try_wait().unwrap()
    });
    assert_eq!(ended.code(), Some(130));
    let mut told = Vec::new();
    out.read_to_end(&mut told).unwrap();
    assert!(told.len() < 256 << 10 && !told.ends_with(b"\n"), "it stood in the middle of a line");
    goes_on(&place);
}

#[test]
fn a_schema_that_keeps_its_judge_busy_is_stopped_by_one_signal() {
    // What comes twice is looked for wherever it may begin, in each of the strings.
    let schema = json!({"type": "array", "items": {"type": "string", "pattern": "^(a+)+\\1b$"}});
    let answer = json!(vec!["a".repeat(60); 600]).to_string();
    let (place, server) =
        (Place::new("busy"), Server::start(vec![Answer { text: Some(answer), ..Answer::default() }, bash("true")]));
    let file = place.home().with_file_name("schema.json");
    std::fs::write(&file, schema.to_string()).unwrap();
    let mut child = begin(&place, &server, &["--output-schema", &file.display().to_string()]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let replied = out.by_ref().lines().map_while(Result::ok).find(|line| line.contains("\"kind\":\"Replied\""));
    assert!(replied.is_some_and(|line| line.contains("aaaa")), "the answer came");
    until(|| threads(&child).contains(&"schema\n".to_owned()).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.stdout = Some(out.into_inner());
    let events = rest(&mut child);
    assert_eq!(kinds(&events), ["Verified", "Delivered", "Finished"]);
    assert_eq!(events[0]["verdict"], json!({"unjudged": {"reason": "interrupted"}}), "{}", events[0]);
}

#[test]
fn a_reply_without_end_is_a_stream_that_broke() {
    let word = format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": "and "}, "finish_reason": null}]}));
    let comments = Wire::ALL.map(|wire| (wire, ": PROCESSING\n\n"));
    std::thread::scope(|scope| {
        for (at, (wire, piece)) in comments.into_iter().chain([(Wire::Chat, word.as_str())]).enumerate() {
            scope.spawn(move || {
                let drips = Answer { cut_at: Some(0), ..endless(piece, Some(1)) };
                let (place, server) = (Place::new(&format!("drips-{at}")), Server::start(vec![drips]));
                let config = place.home().with_file_name("config.toml");
                std::fs::write(&config, "reply_time = \"1s\"\n").unwrap();
                let (work, config) = (place.work().display().to_string(), config.display().to_string());
                let options = ["--workspace", &work, "--config", &config, "--max-time", "60s"];
                let called = place.start(&[&["run", "go"], &wire.arguments(&server.base_url)[..], &options].concat());
                assert!(server.faults() == 1 && server.repeated() > 1, "{wire:?}: it was served");
                assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{wire:?}: {}", called.err);
                let events = place.events();
                let attempts = events.iter().find_map(|event| match &event.what {
                    What::Replied(replied) => Some(replied.attempts.iter().map(|attempt| attempt.error.as_deref()).collect()),
                    _ => None,
                });
                let late = "the reply had no end after 1 second (reply_time in the configuration)";
                assert_eq!(attempts, Some(vec![Some(late), None]), "{wire:?}");
            });
        }
    });
}

#[test]
fn an_error_that_drips_ends_with_the_runs_time() {
    on_every_wire(|wire| {
        // No status with which it would be asked again, and one.
        for status in [400, 503] {
            let drips =
                Answer { status: Some(status), error: Some("out of order".into()), cut_at: Some(20), ..endless(" ", Some(1)) };
            let (place, server) = (Place::new(&format!("error-drips-{status}-{wire:?}")), Server::start(vec![drips]));
            let work = place.work().display().to_string();
            let arguments = place.arguments_on(wire, &server, &work);
            let called = place.start(&[&["run", "go", "--json", "--max-time", "1500ms"], &arguments[..]].concat());
            assert!(server.faults() == 1 && server.repeated() > 1, "{wire:?}: it was served");
            let last: Value = serde_json::from_str(called.out.lines().last().unwrap()).unwrap();
            let told = (called.code, &last["outcome"], &last["which"]);
            assert_eq!(told, (3, &"budget".into(), &"time".into()), "{wire:?}, {status}: {last}");
        }
    });
}

#[test]
fn a_reply_of_nothing_has_an_end() {
    // Faster than any limit of time: white space, and a page that goes on and on.
    for (piece, words) in [(" ", "longer than 64 MiB"), ("<p>", "the answer is a web page")] {
        let nothing = Answer { cut_at: Some(0), ..endless(&piece.repeat(64), None) };
        let (place, server) = (Place::new("nothing"), Server::start(vec![nothing]));
        let work = place.work().display().to_string();
        let called = place.start(&[&["run", "go", "--max-time", "60s"], &place.arguments(&server, &work)[..]].concat());
        assert_eq!(server.faults(), 1);
        assert!(called.code == 4 && called.err.contains(words), "{called:?}");
    }
}
