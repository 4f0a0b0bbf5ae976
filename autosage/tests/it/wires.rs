//! What servers do wrong, on every wire and through the real binary. Each test first asserts that the fault was served.

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::{Answer, Server, Wire, call};
use crate::support::{Called, Place, on_every_wire, script};
use serde_json::{Value, json};
use trace::{Digest, Event, Observed, Replied, Said, Status, What, text_of};

/// What came of a run.
pub struct Played {
    pub place: Place,
    pub server: Server,
    pub called: Called,
    pub events: Vec<Event>,
}

/// Runs the binary against `answers`, a JSON list, and sees to it that each of them was asked for and every fault served.
pub fn play(name: &str, wire: Wire, answers: &str, more: &[&str]) -> Played {
    let answers = script(answers);
    let (count, faults) = (answers.len(), answers.iter().filter(|answer| answer.is_fault()).count());
    let (place, server) = (Place::new(&format!("{name}-{wire:?}")), Server::start(answers));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments_on(wire, &server, &work));
    args.extend(more);
    let called = place.start(&args);
    assert_eq!(server.faults(), faults, "every fault of the script was served: {called:?}");
    assert!(server.bodies().len() >= count, "the whole script was played: {called:?}");
    let events = place.events();
    Played { place, server, called, events }
}

/// Calls with their arguments, and results with their words, each by id.
struct Sent {
    calls: Vec<(String, Value)>,
    results: Vec<(String, String)>,
}

impl Played {
    pub fn observed(&self) -> Vec<&Observed> {
        self.events
            .iter()
            .filter_map(|event| if let What::Observed(observed) = &event.what { Some(observed) } else { None })
            .collect()
    }

    pub fn replied(&self) -> Vec<&Replied> {
        self.events
            .iter()
            .filter_map(|event| if let What::Replied(replied) = &event.what { Some(replied) } else { None })
            .collect()
    }

    /// What the agent saw of each call.
    pub fn seen(&self) -> Vec<String> {
        self.observed().iter().map(|observed| text_of(&observed.content)).collect()
    }

    pub fn done(&self) {
        assert_eq!((self.called.code, self.called.out.as_str()), (0, "Done.\n"), "{}", self.called.err);
    }

    /// The calls of the last request and their results, as the server received them.
    fn sent(&self, wire: Wire) -> Sent {
        let body: Value = serde_json::from_str(self.server.bodies().last().unwrap()).unwrap();
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        for message in body["messages"].as_array().or(body["input"].as_array()).or(body["contents"].as_array()).unwrap() {
            match wire {
                Wire::Gemini => {
                    for part in message["parts"].as_array().unwrap() {
                        let name = |of: &Value| format!("{} {}", text(&of["name"]), of["id"].as_str().unwrap_or_default());
                        if let Some(call) = part.get("functionCall") {
                            calls.push((name(call), call["args"].clone()));
                        } else if let Some(result) = part.get("functionResponse") {
                            let words = result["response"].get("output").unwrap_or(&result["response"]["error"]);
                            results.push((name(result), text(words)));
                        }
                    }
                }
                Wire::Responses => match message["type"].as_str().unwrap() {
                    "function_call" => {
                        let arguments = serde_json::from_str(message["arguments"].as_str().unwrap()).unwrap();
                        calls.push((text(&message["call_id"]), arguments));
                    }
                    "function_call_output" => results.push((text(&message["call_id"]), text(&message["output"]))),
                    _ => {}
                },
                Wire::Chat => {
                    for call in message["tool_calls"].as_array().into_iter().flatten() {
                        let arguments = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                        calls.push((text(&call["id"]), arguments));
                    }
                    if message["role"] == "tool" {
                        results.push((text(&message["tool_call_id"]), text(&message["content"])));
                    }
                }
                Wire::Messages => {
                    for block in message["content"].as_array().unwrap() {
                        match block["type"].as_str().unwrap() {
                            "tool_use" => calls.push((text(&block["id"]), block["input"].clone())),
                            "tool_result" => results.push((text(&block["tool_use_id"]), text(&block["content"]))),
                            _ => {}
                        }
                    }
                }
            }
        }
        Sent { calls, results }
    }

    /// Each call that was sent back has one result, in its order.
    pub fn is_paired(&self, wire: Wire) -> usize {
        let Sent { calls, results } = self.sent(wire);
        let ids: Vec<&String> = calls.iter().map(|call| &call.0).collect();
        assert_eq!(ids, results.iter().map(|result| &result.0).collect::<Vec<_>>());
        if wire == Wire::Gemini {
            // Where calls have no ids, results belong to them by order and name.
            return ids.len();
        }
        let mut different = ids.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), ids.len(), "ids are used once");
        ids.len()
    }
}

#[test]
fn a1_a_call_that_the_limit_cut_is_not_run() {
    let answers = r#"[{"calls": [{"name": "bash", "arguments": "{\"command\": \"touch made\", \"timeo"}], "finish": "length"}]"#;
    for wire in Wire::ALL {
        let played = play("a1", wire, answers, &[]);
        played.done();
        let cut = Said::Cut { name: "bash".to_owned(), raw: "{\"command\": \"touch made\", \"timeo".to_owned() };
        assert_eq!(played.replied()[0].parts, [cut]);
        assert!(!played.place.work().join("made").exists());
        assert_eq!((played.observed().len(), played.is_paired(wire)), (0, 0));
        assert!(played.server.bodies()[1].contains("length limit"), "the agent is told: {}", played.server.bodies()[1]);
    }
}

#[test]
fn a1_no_arguments_are_whole_arguments() {
    for wire in Wire::ALL {
        let played = play("a1-empty", wire, r#"[{"calls": [{"name": "submit", "arguments": ""}]}]"#, &[]);
        assert!(played.replied().iter().all(|replied| !replied.parts.iter().any(|part| matches!(part, Said::Cut { .. }))));
        assert_eq!(played.observed().len(), 1);
    }
}

#[test]
fn a2_a_stream_without_its_end_is_asked_for_again_and_leaves_nothing() {
    let call = r#"{"name": "write", "arguments": "{\"path\": \"a.txt\", \"content\": \"hel"}"#;
    let whole = r#"{"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "hello"}}]}"#;
    for wire in Wire::ALL {
        // Once the connection ends well and only the closing event is missing, once it breaks.
        for (name, fault) in [("a2", r#""no_end": true"#), ("a2-broken", r#""cut_at": 420"#)] {
            let played = play(name, wire, &format!(r#"[{{"calls": [{call}], {fault}}}, {whole}]"#), &[]);
            played.done();
            assert_eq!(played.place.read("a.txt"), "hello");
            assert_eq!((played.observed().len(), played.replied()[0].attempts.len()), (1, 2));
            assert_eq!(played.is_paired(wire), 1, "what broke is not in the history");
            let bodies = played.server.bodies();
            assert_eq!(bodies[0], bodies[1], "the same is asked again");
        }
    }
}

#[test]
fn a4_calls_of_one_reply_with_one_id_are_each_answered() {
    let calls = |second: &str| {
        format!(
            r#"[{{"calls": [{{"id": "dup", "name": "bash", "arguments": {{"command": "echo a >> ran; echo a"}}}}, {{"id": "dup", "name": "bash", "arguments": {{"command": "echo {second} >> ran; echo {second}"}}}}]}}]"#
        )
    };
    for wire in Wire::ALL {
        let played = play("a4", wire, &calls("b"), &[]);
        played.done();
        assert_eq!((played.place.read("ran").as_str(), played.is_paired(wire)), ("a\nb\n", 2));
        // The same bytes again are the same call: answered from the first.
        let played = play("a4-same", wire, &calls("a"), &[]);
        played.done();
        assert_eq!((played.place.read("ran").as_str(), played.is_paired(wire)), ("a\n", 2));
        let seen = played.sent(wire).results;
        assert_eq!(seen[0].1, seen[1].1);
    }
}

#[test]
fn a5_an_id_that_comes_again_in_a_later_round_is_a_new_call() {
    let round = |word: &str| {
        format!(r#"{{"calls": [{{"id": "bash:0", "name": "bash", "arguments": {{"command": "echo {word} >> ran"}}}}]}}"#)
    };
    let answers = format!("[{}, {}, {}]", round("one"), round("two"), round("two"));
    for wire in Wire::ALL {
        let played = play("a5", wire, &answers, &[]);
        played.done();
        assert_eq!((played.place.read("ran").as_str(), played.is_paired(wire)), ("one\ntwo\ntwo\n", 3));
    }
}

#[test]
fn a6_calls_without_id_are_each_answered() {
    let answers = r#"[{"calls": [{"id": "", "name": "bash", "arguments": {"command": "echo a"}}, {"id": "", "name": "bash", "arguments": {"command": "echo b"}}]}]"#;
    for wire in Wire::ALL {
        let played = play("a6", wire, answers, &[]);
        played.done();
        assert_eq!(played.is_paired(wire), 2);
        let seen = played.seen();
        assert!(seen[0].starts_with('a') && seen[1].starts_with('b'), "{seen:?}");
    }
}

#[test]
fn a7_a_call_that_fails_takes_no_other_with_it() {
    let answers = r#"[{"calls": [
        {"id": "1", "name": "bash", "arguments": {"command": "echo a"}},
        {"id": "2", "name": "nothing", "arguments": {}},
        {"id": "3", "name": "bash", "arguments": "{\"command\": \"ec"},
        {"id": "4", "name": "bash", "arguments": {"command": "exit 3"}},
        {"id": "5", "name": "read", "arguments": {"path": "missing"}},
        {"id": "6", "name": "bash", "arguments": {"command": "sleep 0.2; echo c"}}]}]"#;
    use Status::{Failed, Ok};
    for wire in Wire::ALL {
        let played = play("a7", wire, answers, &[]);
        played.done();
        let statuses: Vec<Status> = played.observed().iter().map(|observed| observed.status).collect();
        assert_eq!(statuses, [Ok, Failed, Failed, Failed, Failed, Ok]);
        assert_eq!(played.is_paired(wire), 6);
        assert_eq!(played.sent(wire).calls[2].1, json!({}), "arguments that are not JSON are not sent back");
        if wire == Wire::Messages {
            let body: Value = serde_json::from_str(played.server.bodies().last().unwrap()).unwrap();
            let results = body["messages"][2]["content"].as_array().unwrap();
            let failed: Vec<bool> = results.iter().map(|result| result["is_error"] == true).collect();
            assert_eq!(failed, [false, true, true, true, true, false], "results stand in one message");
        }
    }
}

#[test]
fn a8_a_call_written_as_text_is_no_claim() {
    let text = "<tool_call><function=bash><parameter=command>touch made</parameter></function></tool_call>";
    for wire in Wire::ALL {
        let played = play("a8", wire, &json!([{"text": text}]).to_string(), &[]);
        played.done();
        assert!(!played.place.work().join("made").exists());
        let played = play("a8-again", wire, &json!([{"text": text}, {"text": text}]).to_string(), &["--json"]);
        assert_eq!(played.called.code, 1, "{played:?}", played = played.called);
        assert!(played.called.out.contains("writes its calls as text"), "{}", played.called.out);
    }
}

/// The waits of the first request, in milliseconds.
fn waits(played: &Played) -> Vec<u64> {
    played.replied()[0].attempts.iter().skip(1).map(|attempt| attempt.wait_ms).collect()
}

#[test]
fn d1_a_wait_that_a_server_asks_for_is_kept_wherever_it_is_said() {
    // The last server's clock is years behind: only by that clock is there anything to wait for, and our own wait would be
    // half a second at most.
    let dates = r#""date": "Sun, 29 Nov 2020 12:00:00 GMT", "retry_after": "Sun, 29 Nov 2020 12:00:01 GMT""#;
    let date = format!(r#"{{"status": 429, "error": "slow down", {dates}}}"#);
    let faults = [
        ("header", r#"{"status": 429, "error": "slow down", "retry_after": "0.6"}"#, 600),
        ("words", r#"{"status": 429, "error": "Please try again in 0.7s."}"#, 700),
        ("stream", r#"{"status": 429, "error": "Rate limit reached. Please try again in 0.8s.", "in_stream": true}"#, 800),
        ("overload", r#"{"status": 529, "error": "Overloaded", "retry_after": "0.9"}"#, 900),
        ("date", &date, 1_000),
    ];
    on_every_wire(|wire| {
        for (name, fault, wait) in faults {
            let played = play(&format!("d1-{name}"), wire, &format!("[{fault}]"), &[]);
            played.done();
            assert_eq!(waits(&played), [wait], "{name}");
        }
    });
}

#[test]
fn d3_a_limit_without_header_is_waited_out_and_a_long_one_pauses_the_run() {
    for wire in Wire::ALL {
        let played = play("d3", wire, r#"[{"status": 429, "error": "slow down"}, {"status": 503, "error": "busy"}]"#, &[]);
        played.done();
        assert_eq!(played.replied()[0].attempts.len(), 3);
        let long = r#"[{"calls": [{"name": "bash", "arguments": {"command": "echo kept > kept"}}]}, {"status": 429, "error": "Try again in 7h12m0s."}]"#;
        let played = play("d3-long", wire, long, &["--json"]);
        let last: Value = serde_json::from_str(played.called.out.lines().last().unwrap()).unwrap();
        assert_eq!((played.called.code, &last["outcome"]), (4, &"paused".into()), "{last}");
        assert!(last["until"].is_string(), "{last}");
        // The run goes on where it was.
        let mut resume = vec!["resume", "--last", "--config", "none"];
        resume.extend(wire.arguments(&played.server.base_url));
        let resumed = played.place.start(&resume);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        assert_eq!(played.place.read("kept"), "kept\n");
        every_body_extends_the_one_before(&played.server.bodies());
    }
}

#[test]
fn what_a_server_refuses_has_an_outcome_of_its_own() {
    let cases = [
        ("key", r#"[{"status": 401, "error": "bad key"}]"#, "infrastructure", 4),
        ("name", r#"[{"status": 404, "error": "no such model"}]"#, "infrastructure", 4),
        ("window", r#"[{"status": 400, "error": "This model's maximum context length is 4096 tokens"}]"#, "context_full", 1),
        ("content", r#"[{"text": "I", "finish": "content_filter"}]"#, "refused", 1),
        ("quota", r#"[{"status": 429, "error": "come back tomorrow", "retry_after": "86400"}]"#, "paused", 4),
    ];
    for wire in Wire::ALL {
        for (name, answers, outcome, exit) in cases {
            let played = play(name, wire, answers, &["--json"]);
            let last: Value = serde_json::from_str(played.called.out.lines().last().unwrap()).unwrap();
            assert_eq!((played.called.code, &last["outcome"]), (exit, &outcome.into()), "{last}");
            match outcome {
                "infrastructure" => assert_eq!(last["what"], "model"),
                "paused" => assert!(last["until"].is_string()),
                _ => {}
            }
        }
    }
}

#[test]
fn a_stream_that_stands_still_ends_with_the_runs_time() {
    for wire in Wire::ALL {
        let answers = r#"[{"text": "Let me see, this may take", "hang": true, "cut_at": 150}]"#;
        let played = play("stall", wire, answers, &["--json", "--max-time", "1500ms"]);
        let last: Value = serde_json::from_str(played.called.out.lines().last().unwrap()).unwrap();
        assert_eq!((played.called.code, &last["outcome"], &last["which"]), (3, &"budget".into(), &"time".into()), "{last}");
        let [replied] = played.replied()[..] else { panic!("one request was expected") };
        assert!(replied.estimated && replied.usage.input > 0, "what was sent is charged by estimate: {replied:?}");
    }
}

#[test]
fn b9_each_request_extends_the_one_before() {
    let step =
        |command: &str| Answer { calls: vec![json!({"name": "bash", "arguments": {"command": command}})], ..Answer::default() };
    for wire in Wire::ALL {
        let commands = ["date +%s%N", "echo $RANDOM", "ps; pwd", "sleep 0.1; date"];
        let (place, server) = (Place::new(&format!("b9-{wire:?}")), Server::start(commands.map(step).to_vec()));
        let work = place.work().display().to_string();
        let mut args = vec!["run", "go", "--check", "true"];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&args);
        assert_eq!(called.code, 0, "{}", called.err);
        let mut resume = vec!["resume", "--last", "--config", "none", "-m", "and now?"];
        resume.extend(wire.arguments(&server.base_url));
        assert_eq!(place.start(&resume).code, 0);
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 6);
        every_body_extends_the_one_before(&bodies);
        for body in &bodies {
            let marks = body.matches(r#""cache_control":{"type":"ephemeral"}"#).count();
            assert!(if wire == Wire::Messages { (1..=4).contains(&marks) } else { marks == 0 }, "{marks} marks");
        }
    }
}

/// Where others make requests aside, for a title, a summary or a look for loops: a long run that plans, goes in a circle, is
/// folded, checked and held to a schema. Whatever is asked beyond its own requests gets no answer.
#[test]
fn d4_no_request_is_made_aside_so_that_none_can_block_the_run() {
    let step = |command: String| call("bash", json!({"command": command}));
    let flood = |n: usize| {
        let calls = (0..8).flat_map(|call| step(format!("yes 'line of {n}.{call}' | head -c 1100")).calls);
        Answer { calls: calls.collect(), ..Answer::default() }
    };
    let plan = call("plan", json!({"items": [{"text": "count", "status": "doing"}]}));
    let steps = (0..30).map(|n| step(format!("echo {n}"))).chain((0..10).map(flood));
    let circle = (0..6).map(|_| step("cat notes.txt".to_owned()));
    let answer = Answer { text: Some(r#"{"counted": 40}"#.to_owned()), ..Answer::default() };
    let own: Vec<Answer> = [plan].into_iter().chain(steps).chain(circle).chain([answer]).collect();
    let schema = json!({"type": "object", "properties": {"counted": {"type": "integer"}}, "required": ["counted"]});
    on_every_wire(|wire| {
        let script = own.iter().cloned().chain((0..9).map(|_| Answer { hang: true, ..Answer::default() }));
        let (place, server) = (Place::new(&format!("d4-{wire:?}")), Server::start(script.collect()));
        let (work, file) = (place.work().display().to_string(), place.home().with_file_name("schema.json"));
        std::fs::write(&file, schema.to_string()).unwrap();
        let file = file.display().to_string();
        let mut args = vec!["run", "count", "--check", "true", "--output-schema", &file, "--context", "12000"];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&[&args[..], &["--max-time", "120s"]].concat());
        assert_eq!((called.code, called.out.trim_end()), (0, r#"{"counted": 40}"#), "{wire:?}: {}", called.err);
        let (bodies, events) = (server.bodies(), place.events());
        let asked: Vec<Digest> = events.iter().filter_map(asked).collect();
        assert_eq!((server.faults(), bodies.len()), (0, own.len()), "{wire:?}: nothing more was asked");
        assert_eq!(
            bodies.iter().map(|body| Digest::of(body.as_bytes())).collect::<Vec<_>>(),
            asked,
            "{wire:?}: each is an event"
        );
        assert!(events.iter().any(|event| matches!(event.what, What::Folded(_))), "{wire:?}: it was folded");
        assert!(bodies.iter().any(|body| body.contains("You go in a circle")), "{wire:?}: it was warned");
    });
}

fn asked(event: &Event) -> Option<Digest> {
    if let What::Asked(asked) = &event.what { Some(asked.prompt) } else { None }
}

#[test]
fn a_run_goes_on_on_another_wire() {
    for (wire, other) in [
        (Wire::Chat, Wire::Messages),
        (Wire::Messages, Wire::Responses),
        (Wire::Responses, Wire::Gemini),
        (Wire::Gemini, Wire::Chat),
    ] {
        let played = play("other-wire", wire, r#"[{"calls": [{"name": "bash", "arguments": {"command": "echo one"}}]}]"#, &[]);
        played.done();
        let mut resume = vec!["resume", "--last", "--config", "none", "-m", "on"];
        resume.extend(other.arguments(&played.server.base_url));
        let resumed = played.place.start(&resume);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        assert_eq!(played.is_paired(other), 1, "all that was said and done before is told");
    }
}

/// `openai/NAME` was on Chat Completions before it was on Responses: a run from then goes on on either.
#[test]
fn a_run_of_openai_s_chat_goes_on() {
    let (place, server) = (Place::new("openai-chat"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let address = ["--base-url", &server.base_url, "--key-env", "TEST_KEY", "--config", "none"];
    let begun = [&["run", "go", "--model", "openai-chat/scripted", "--workspace", &work], &address[..]].concat();
    assert_eq!(place.start(&begun).code, 0);
    let on = |model| place.start(&[&["resume", "--last", "-m", "on", "--model", model], &address[..]].concat());
    let resumed = on("openai-chat/scripted");
    assert_eq!((resumed.code, server.bodies().len()), (0, 2), "{}", resumed.err);
    every_body_extends_the_one_before(&server.bodies());
    assert_eq!((on("openai/scripted").code, server.bodies().len()), (0, 3));
    assert!(server.bodies()[2].contains("\"input\":["), "{}", server.bodies()[2]);
}

#[test]
fn an_unknown_model_is_sent_as_it_is_and_called_unpriced() {
    for wire in Wire::ALL {
        let played = play("unpriced", wire, "[]", &["--json"]);
        let last: Value = serde_json::from_str(played.called.out.lines().last().unwrap()).unwrap();
        assert_eq!((played.called.code, &last["cost_nano_usd"]), (0, &Value::Null), "{last}");
        // Gemini's name stands in the address, without which the server would not have answered.
        let named = wire == Wire::Gemini || played.server.bodies()[0].contains(r#""model":"scripted""#);
        assert!(named, "{}", played.server.bodies()[0]);
        assert!(played.replied().iter().all(|replied| replied.cost == trace::Cost::Unpriced));
        let budget = played.place.start(&["show", "--last", "--cost"]);
        assert!(budget.out.contains("unpriced"), "{}", budget.out);
    }
}

#[test]
fn a_recording_is_played_in_another_folder() {
    for wire in Wire::ALL {
        let (place, server) = (Place::new(&format!("recording-{wire:?}")), Server::start(vec![echo("one")]));
        let (work, file) = (place.work().display().to_string(), place.home().with_file_name("talk.jsonl").display().to_string());
        let mut args = vec!["run", "go", "--record", &file];
        args.extend(place.arguments_on(wire, &server, &work));
        assert_eq!(place.start(&args).code, 0);
        let elsewhere = Place::new(&format!("recording-elsewhere-{wire:?}"));
        let (model, work) = (format!("recorded/{file}"), elsewhere.work().display().to_string());
        let played = elsewhere.start(&["run", "go", "--model", &model, "--workspace", &work, "--config", "none"]);
        assert_eq!((played.code, played.out.as_str()), (0, "Done.\n"), "{}", played.err);
    }
}

fn echo(word: &str) -> Answer {
    Answer { calls: vec![json!({"name": "bash", "arguments": {"command": format!("echo {word}")}})], ..Answer::default() }
}
