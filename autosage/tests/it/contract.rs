//! The contract of the command line, through the real binary: events on stdout, outcomes, exit codes, signals.

use crate::support::server::{Answer, Server, bash};
use crate::support::{Called, Place, script};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

fn lines(called: &Called) -> Vec<Value> {
    called.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs the binary with `--json` against `answers` and returns the last event, which must be `Finished`.
fn finished(name: &str, answers: &str, more: &[&str]) -> (Value, i32) {
    let answers = script(answers);
    let faults = answers.iter().filter(|answer| answer.is_fault()).count();
    let (place, server) = (Place::new(name), Server::start(answers));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--json", "--approve", "auto"];
    args.extend(place.arguments(&server, &work));
    args.extend(more);
    let called = place.start(&args);
    assert_eq!(server.faults(), faults, "every fault of the script was served: {called:?}");
    let last = lines(&called).pop().unwrap_or_else(|| panic!("no event: {called:?}"));
    assert_eq!(last["kind"], "Finished", "{called:?}");
    (last, called.code)
}

const FOREVER: &str = r#"[
  {"calls": [{"name": "bash", "arguments": {"command": "echo 1"}}]}, {"calls": [{"name": "bash", "arguments": {"command": "echo 2"}}]},
  {"calls": [{"name": "bash", "arguments": {"command": "echo 3"}}]}, {"calls": [{"name": "bash", "arguments": {"command": "echo 4"}}]}
]"#;

#[test]
fn stdout_is_the_record_line_by_line_and_ends_with_the_outcome() {
    let (place, server) = (Place::new("json"), Server::start(script(FOREVER)));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--json", "--approve", "auto", "--sandbox", "native"];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    assert_eq!(called.code, 0, "{}", called.err);
    assert_eq!(called.out, std::fs::read_to_string(place.run_folder().join("trace.jsonl")).unwrap());
    let last = lines(&called).pop().unwrap();
    assert_eq!((&last["kind"], &last["outcome"], &last["answer"]), (&"Finished".into(), &"done".into(), &"Done.".into()));
    assert_eq!(last["cost_nano_usd"], Value::Null);
    assert_eq!(last["usage"]["input"], 500);
    assert_eq!(last["run"].as_str().unwrap(), place.run_folder().file_name().unwrap().to_str().unwrap());

    let listed = place.start(&["runs", "--json"]);
    let listed = &lines(&listed)[0];
    assert_eq!((&listed["state"], &listed["outcome"], &listed["turns"]), (&"ended".into(), &"done".into(), &5.into()));
    let shown = place.start(&["show", "--last", "--json"]);
    let shown = &lines(&shown)[0];
    assert_eq!((&shown["agents"], &shown["digest"]), (&serde_json::json!(["0"]), &last["sum"]));
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 0 && proof.out.starts_with("intact"), "{proof:?}");
}

#[test]
fn what_lies_among_the_runs_and_is_none_is_not_the_newest_and_not_intact() {
    let (place, server) = (Place::new("among"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    let runs = place.home().join("runs");
    std::fs::write(runs.join("x-file"), "").unwrap();
    std::fs::create_dir(runs.join("x-folder")).unwrap();
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 0 && proof.out.starts_with("intact"), "{proof:?}");
    std::fs::write(runs.join("x-folder/trace.jsonl"), "").unwrap();
    let proof = place.start(&["show", "x-folder", "--verify"]);
    assert!(proof.code == 1 && proof.out.contains("has no events"), "{proof:?}");
    let silent = place.start(&["resume", "--last", "-m", " "]);
    assert!(silent.code == 2 && silent.err.contains("the message is empty"), "{silent:?}");
}

#[test]
fn a_changed_record_is_not_intact() {
    let (place, server) = (Place::new("tampered"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
    let path = place.run_folder().join("trace.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("Done.", "Gone.", 1)).unwrap();
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 1 && proof.out.starts_with("not intact"), "{proof:?}");
    let listed = place.start(&["runs", "--json"]);
    assert_eq!(lines(&listed)[0]["state"], "damaged");
    assert_eq!(place.start(&["resume", "--last", "-m", "on"]).code, 4);
}

#[test]
fn usage_errors_print_no_event() {
    let place = Place::new("usage");
    let work = place.work().display().to_string();
    let at = ["--workspace", &work, "--json", "--config", "none"];
    let server = ["--model", "openai-compatible/m", "--base-url", "http://127.0.0.1:9/v1"];
    let cases: [(&[&str], &str); 14] = [
        (&["run", "go"], "autosage demo"),
        (&["run", "go", "--model", "nobody/x"], "there is no provider `nobody`"),
        (&["run", "go", "--model", "openai-compatible/m"], "--base-url"),
        (&["run", "go", "--model", "openai/gpt-5"], "OPENAI_API_KEY"),
        (&["run", " ", server[0], server[1], server[2], server[3]], "the task is empty"),
        (&["run", "go", "--max-usd", "1", server[0], server[1], server[2], server[3]], "--price"),
        (&["run", "go", "--max-time", "soon", server[0], server[1], server[2], server[3]], "length of time"),
        (&["run", "go", "--grant", "all", server[0], server[1], server[2], server[3]], "read=PATH"),
        (&["run", "go", "--check", " ", server[0], server[1], server[2], server[3]], "a check is empty"),
        (&["run", "go", "--max-output", "0", server[0], server[1], server[2], server[3]], "is not in 1.."),
        (&["run", "go", "--context", "0", server[0], server[1], server[2], server[3]], "is not in 1.."),
        (&["run", "go", "--model", "recorded/demo", "--record", "again"], "is not recorded again"),
        (&["run", "go", "--model", "recorded/demo", "--max-usd", "1"], "leave --max-usd out"),
        (&["run", "go", "--harness", "nowhere"], "os error 2)\n"),
    ];
    for (args, words) in cases {
        let called = place.start(&[args, &at].concat());
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{args:?} {}", called.err);
        assert!(called.err.contains(words), "{args:?}: no {words:?} in\n{}", called.err);
    }
    assert!(!place.home().join("runs").exists(), "a usage error leaves no run");
}

#[test]
fn budgets_end_a_run_with_exit_code_3() {
    let cases: [(&str, &[&str], &str); 3] = [
        ("turns", &["--max-turns", "2"], "turns"),
        ("tokens", &["--max-tokens", "2000"], "tokens"),
        ("money", &["--max-usd", "0.0046", "--price", "1,10"], "money"),
    ];
    for (name, flags, which) in cases {
        let (last, code) = finished(name, FOREVER, flags);
        assert_eq!((code, &last["outcome"], &last["which"]), (3, &"budget".into(), &which.into()), "{last}");
    }
    let hang = r#"[{"calls": [{"name": "bash", "arguments": {"command": "sleep 300"}}]}]"#;
    let (last, code) = finished("time", hang, &["--max-time", "1500ms"]);
    assert_eq!((code, &last["outcome"], &last["which"]), (3, &"budget".into(), &"time".into()), "{last}");
    let (last, code) = finished("time-of-a-check", "[]", &["--max-time", "1500ms", "--check", "sleep 300"]);
    assert_eq!((code, &last["outcome"], &last["which"]), (3, &"budget".into(), &"time".into()), "{last}");
}

#[test]
fn checks_that_go_on_failing_end_a_run_with_exit_code_1() {
    let (last, code) = finished("failing", "[]", &["--check", "echo broken; exit 7", "--max-claims", "2"]);
    assert_eq!((code, &last["outcome"], &last["turns"]), (1, &"failed".into(), &2.into()), "{last}");
    let (last, code) = finished("failing-budget", "[]", &["--check", "false", "--max-turns", "1"]);
    assert_eq!((code, &last["outcome"]), (3, &"budget".into()), "{last}");
}

/// A pipe in the workspace: who writes to it is known to run, and who reads to its end knows that all writers are gone.
fn pipe(place: &Place) -> std::path::PathBuf {
    let path = place.work().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    path
}

/// A command that says that it has begun, counts how often it was, and then never ends.
const ENDLESS: &str = r#"[{"calls": [{"name": "bash", "arguments": {"command": "exec 9>pipe; echo begun >> counter; setsid sleep 300 & echo begun >&9; sleep 300"}}]}, {"text": "I see."}]"#;

#[test]
fn ctrl_c_ends_the_turn_and_leaves_a_run_that_goes_on() {
    let (place, server) = (Place::new("ctrl-c"), Server::start(script(ENDLESS)));
    let (work, path) = (place.work().display().to_string(), pipe(&place));
    let mut args = vec!["run", "go", "--json"];
    args.extend(place.arguments(&server, &work));
    let child = place.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(File::open(&path).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    reader.read_to_string(&mut line).unwrap();
    assert_eq!(output.status.code(), Some(130));
    let out = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["outcome"]), (&"Finished".into(), &"interrupted".into()));
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "stop"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "I see.\n"), "{}", resumed.err);
    assert_eq!(place.read("counter"), "begun\n", "nothing was begun a second time");
}

#[test]
fn f3_kill_9_in_a_command_leaves_no_process_and_nothing_is_begun_twice() {
    let (place, server) = (Place::new("kill-9"), Server::start(script(ENDLESS)));
    let (work, path) = (place.work().display().to_string(), pipe(&place));
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(File::open(&path).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // The end of the pipe comes when its last writer is gone, the one in a session of its own included.
    reader.read_to_string(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    assert_eq!(lines(&place.start(&["runs", "--json"]))[0]["state"], "interrupted");
    for told in [place.start(&["show", "--last"]).out, place.start(&["show", "--last", "--follow"]).out] {
        assert!(told.ends_with("  begun, and not answered yet\n"), "what it was at when it died is shown: {told}");
    }

    let resumed = place.start(&["resume", "--last", "--config", "none"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "I see.\n"), "{}", resumed.err);
    assert_eq!(place.read("counter"), "begun\n", "nothing was begun a second time");
    let told = server.bodies().pop().unwrap();
    assert!(told.contains("its outcome is unknown"), "{told}");
    assert_eq!(place.start(&["show", "--last", "--verify"]).code, 0);
}

#[test]
fn a_message_that_is_sent_to_a_running_run_is_taken_in_once() {
    let answers =
        r#"[{"calls": [{"name": "bash", "arguments": {"command": "echo begun > pipe; read line < back"}}]}, {"text": "Yes."}]"#;
    let (place, server) = (Place::new("send"), Server::start(script(answers)));
    let (work, path) = (place.work().display().to_string(), pipe(&place));
    let back = place.work().join("back");
    rustix::fs::mknodat(rustix::fs::CWD, &back, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    File::open(&path).unwrap().read_to_string(&mut line).unwrap();
    let id = place.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    let second = place.start(&["resume", &id, "--config", "none"]);
    assert!(second.code == 4 && second.err.contains(&child.id().to_string()), "a second owner is refused: {second:?}");
    assert_eq!(place.start(&["send", &id, "also say yes"]).code, 0);
    drop(File::options().write(true).custom_flags(0).open(&back).unwrap());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Yes.\n");
    let told: Vec<bool> = server.bodies().iter().map(|body| body.contains("also say yes")).collect();
    assert_eq!(told, [false, true]);
    let events = place.events();
    let said =
        events.iter().filter(|event| matches!(&event.what, trace::What::Delivered(delivered) if !delivered.name.is_empty()));
    assert_eq!(said.count(), 1);
}

#[test]
fn messages_are_taken_in_as_they_were_sent() {
    let (place, server) = (Place::new("order"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    let id = place.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    let sent: Vec<String> = (0..6).map(|number| format!("message {number}")).collect();
    for text in &sent {
        assert_eq!(place.start(&["send", &id, text]).code, 0);
    }
    assert_eq!(place.start(&["resume", &id, "--config", "none"]).code, 0);
    let heard = place.events().into_iter().filter_map(|event| match event.what {
        trace::What::Delivered(trace::Delivered { what: trace::Delivery::Message { parts }, .. }) => Some(trace::text_of(&parts)),
        _ => None,
    });
    assert_eq!(heard.collect::<Vec<_>>(), sent);
}

#[test]
fn a_child_that_outlives_its_command_is_named_and_stopped_by_name() {
    let answers = vec![
        bash("sleep 300 & echo started"),
        bash("echo next"),
        Answer {
            calls: vec![serde_json::json!({"name": "bash", "arguments": {"command": "echo stopping", "stop": ["c1"]}})],
            ..Answer::default()
        },
        bash("echo last"),
    ];
    let (place, server) = (Place::new("child"), Server::start(answers));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    assert_eq!(called.code, 0, "{}", called.err);
    let names: Vec<Vec<String>> = place
        .events()
        .iter()
        .filter_map(|event| match &event.what {
            trace::What::Observed(observed) => Some(observed.children.iter().map(|child| child.name.clone()).collect()),
            _ => None,
        })
        .collect();
    assert_eq!(names, [vec!["c1".to_owned()], vec!["c1".to_owned()], vec![], vec![]]);
}

#[test]
fn a_server_that_is_not_there_is_named_with_what_to_do() {
    let place = Place::new("nobody");
    let work = place.work().display().to_string();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let called = place.start(&[
        "run",
        "go",
        "--model",
        "openai-compatible/m",
        "--base-url",
        &url,
        "--workspace",
        &work,
        "--config",
        "none",
    ]);
    assert_eq!(called.code, 4, "{}", called.err);
    assert!(called.err.contains(&url), "{}", called.err);
}

#[test]
fn a_disk_that_refuses_ends_the_run_with_a_line_that_says_so() {
    let (place, server) = (Place::new("full-disk"), Server::start(script(FOREVER)));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--json"];
    args.extend(place.arguments(&server, &work));
    // No file may grow beyond some KiB, as on a disk that is full.
    let limited = place.limited(11, &args);
    assert_eq!(limited.code, 4, "{limited:?}");
    let last = lines(&limited).pop().unwrap();
    assert_eq!((&last["kind"], &last["recorded"]), (&"Finished".into(), &false.into()), "{last}");
    assert_eq!((&last["outcome"], &last["what"]), (&"infrastructure".into(), &"store".into()), "{last}");
    // What was written is whole, and the run goes on where there is room again.
    assert_eq!(place.start(&["show", "--last", "--verify"]).code, 0);
    let resumed = place.start(&["resume", "--last", "--config", "none"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
}

#[test]
fn ctrl_c_at_a_terminal_reaches_the_engine_and_not_its_sandbox() {
    let answers = r#"[{"text": "Done."}]"#;
    let (place, server) = (Place::new("group"), Server::start(script(answers)));
    let (work, path) = (place.work().display().to_string(), pipe(&place));
    let mut args = vec!["run", "go", "--json", "--check", "echo begun >pipe; sleep 300"];
    args.extend(place.arguments(&server, &work));
    let mut command = place.command(&args);
    // A terminal signals the whole group of the program in front.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(File::open(&path).unwrap()).read_line(&mut line).unwrap();
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let verdict = place.events().iter().find_map(|event| match &event.what {
        trace::What::Verified(verified) => Some(verified.verdict.clone()),
        _ => None,
    });
    assert_eq!(verdict, Some(trace::Verdict::Unjudged { reason: "interrupted".to_owned() }));
}

#[test]
fn what_an_agent_leaves_in_its_home_does_not_steer_its_judge() {
    let plant = "echo planted >~/.profile; echo planted >/tmp/planted; touch ~/planted";
    let (place, server) = (Place::new("judge"), Server::start(vec![bash(plant)]));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--check", "ls -A ~ /tmp; test ! -e ~/planted && test ! -e /tmp/planted"];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    assert_eq!(called.code, 0, "{}", called.err);
}

#[test]
fn a_record_cannot_take_the_walls_away_or_a_key() {
    let (place, server) = (Place::new("forged"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--sandbox", "host"];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert!(resumed.code == 2 && resumed.err.contains("--sandbox host"), "{resumed:?}");
    let again = ["resume", "--last", "--config", "none", "-m", "on", "--sandbox", "native"];
    let output = place.command(&again).env("AUTOSAGE_API_KEY", "secret").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--base-url"));
    assert_eq!(place.start(&again).code, 0);
    assert!(server.keys().iter().all(Option::is_none));
}

#[test]
fn what_lies_in_the_inbox_and_is_no_message_is_named() {
    let (place, server) = (Place::new("letters"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    assert!(called.code == 0 && !called.err.contains("is not taken in"), "{called:?}");
    std::fs::write(place.run_folder().join("inbox/note"), "no message").unwrap();
    let resumed = place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert!(resumed.code == 0 && resumed.err.contains("inbox/note is not taken in"), "{resumed:?}");
}
