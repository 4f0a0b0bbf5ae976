//! Nothing that a server says takes a run out of a person's hands: a signal ends the turn, another one the program.

use crate::support::server::{Answer, Endless, Server};
use crate::support::{Place, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::process::{Child, ChildStdout, Stdio};

/// Heads of answers that say that the answer is yet to come.
const EARLY_HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n";

fn endless(piece: &str, at_once: Option<usize>) -> Answer {
    Answer { endless: Some(Endless { piece: piece.to_owned(), at_once }), ..Answer::default() }
}

/// Starts a run at `server` that writes its events into a pipe.
fn begin(place: &Place, server: &Server) -> Child {
    let work = place.work().display().to_string();
    let arguments = [&["run", "go", "--json"], &place.arguments(server, &work)[..]].concat();
    place.command(&arguments).stdout(Stdio::piped()).spawn().unwrap()
}

/// The exit code of a program that is to end.
fn ended(child: &mut Child) -> Option<i32> {
    until(|| child.try_wait().unwrap()).code()
}

#[test]
fn heads_without_end_are_stopped_by_one_signal() {
    let (place, server) = (Place::new("heads"), Server::start(vec![endless(EARLY_HINTS, None)]));
    let mut child = begin(&place, &server);
    until(|| (server.repeated() > 20).then_some(()));
    assert_eq!(server.faults(), 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let code = ended(&mut child);
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(code, Some(130), "{told}");
    let events: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["Started", "Asked", "Replied", "Delivered", "Finished"]);
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
}

#[test]
fn a_second_signal_ends_a_program_that_can_hear_nothing() {
    // More than a pipe holds, and nobody reads it: the thread of the run stands in the writing of a line.
    let long = Answer { text: Some("x".repeat(256 << 10)), ..Answer::default() };
    let (place, server) = (Place::new("unread"), Server::start(vec![long]));
    let mut child = begin(&place, &server);
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
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
}
