//! Histories that outgrow the window, on every wire and through the real binary.

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::{Answer, Server, Wire, bash, call};
use crate::support::{Called, Place, on_every_wire};
use serde_json::{Value, json};
use trace::{Event, Fault, FaultClass, Folded, Method, Outcome, Stop, What, text_of};

/// What came of a run in a small window.
struct Played {
    place: Place,
    server: Server,
    called: Called,
    events: Vec<Event>,
}

/// Runs the binary against `answers` with a model of such a window.
fn play(name: &str, wire: Wire, window: u64, answers: Vec<Answer>) -> Played {
    play_at(Place::new(&format!("{name}-{wire:?}")), wire, window, answers)
}

/// The same at a place that holds something already.
fn play_at(place: Place, wire: Wire, window: u64, answers: Vec<Answer>) -> Played {
    let faults = answers.iter().filter(|answer| answer.is_fault()).count();
    let server = Server::start(answers);
    let (work, window) = (place.work().display().to_string(), window.to_string());
    let mut args = vec!["run", "go", "--context", &window, "--max-turns", "1000", "--durability", "process"];
    args.extend(place.arguments_on(wire, &server, &work));
    let called = place.start(&args);
    assert_eq!(server.faults(), faults, "every fault of the script was served: {called:?}");
    let events = place.events();
    Played { place, server, called, events }
}

impl Played {
    fn folds(&self) -> Vec<&Folded> {
        self.events.iter().filter_map(|event| if let What::Folded(folded) = &event.what { Some(folded) } else { None }).collect()
    }

    fn outcome(&self) -> &Outcome {
        let Some(What::Finished(finished)) = self.events.last().map(|event| &event.what) else { panic!("no end") };
        &finished.outcome
    }

    fn done(&self) {
        assert_eq!((self.called.code, self.called.out.as_str()), (0, "Done.\n"), "{}", self.called.err);
    }

    /// Each body extends the one before, but where the history was folded between them; each is what the record gives.
    fn is_proven(&self) {
        let epochs = self.events.iter().filter_map(|event| match &event.what {
            What::Asked(asked) => Some((event.seq, asked.epoch)),
            _ => None,
        });
        let all: Vec<((trace::Seq, u32), String)> = epochs.zip(self.server.bodies()).collect();
        for together in all.chunk_by(|one, next| one.0.1 == next.0.1) {
            every_body_extends_the_one_before(&together.iter().map(|(_, body)| body.clone()).collect::<Vec<_>>());
        }
        // The first after each fold, and the last.
        let firsts = all.chunk_by(|one, next| one.0.1 == next.0.1).map(|together| &together[0]);
        for ((seq, _), body) in firsts.chain(all.last()) {
            let shown = self.place.start(&["show", "--last", "--prompt", &seq.to_string()]);
            assert!(shown.out.trim_end_matches('\n') == body, "the request at event {seq}: {}", shown.err);
        }
    }
}

/// A command that prints about as many bytes, each time others.
fn flood(number: usize, bytes: usize) -> Answer {
    bash(&format!("yes 'line of {number}' | head -c {bytes}"))
}

/// The name of a call and the same of a result, in the order of the body.
pub fn calls_and_results(wire: Wire, body: &str) -> (Vec<String>, Vec<String>) {
    let body: Value = serde_json::from_str(body).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let messages = body["messages"].as_array().or(body["input"].as_array()).or(body["contents"].as_array()).unwrap();
    for message in messages {
        match wire {
            Wire::Chat => {
                calls.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| text(&call["id"])));
                results.extend((message["role"] == "tool").then(|| text(&message["tool_call_id"])));
            }
            Wire::Responses => {
                calls.extend((message["type"] == "function_call").then(|| text(&message["call_id"])));
                results.extend((message["type"] == "function_call_output").then(|| text(&message["call_id"])));
            }
            Wire::Messages => {
                for block in message["content"].as_array().unwrap() {
                    calls.extend((block["type"] == "tool_use").then(|| text(&block["id"])));
                    results.extend((block["type"] == "tool_result").then(|| text(&block["tool_use_id"])));
                }
            }
            Wire::Gemini => {
                for part in message["parts"].as_array().unwrap() {
                    calls.extend(part.get("functionCall").map(|call| text(&call["name"]) + &text(&call["id"])));
                    results.extend(part.get("functionResponse").map(|call| text(&call["name"]) + &text(&call["id"])));
                }
            }
        }
    }
    (calls, results)
}

#[test]
fn b1_a_fold_leaves_no_call_without_its_result_and_no_result_without_its_call() {
    for wire in Wire::ALL {
        // Two calls a turn, so that a cut between their results would show.
        let two = |number: usize| Answer {
            calls: [flood(2 * number, 900), flood(2 * number + 1, 900)].iter().flat_map(|one| one.calls.clone()).collect(),
            ..Answer::default()
        };
        let played = play("b1-fold", wire, 3_000, (0..30).map(two).collect());
        played.done();
        let folds = played.folds();
        assert!(folds.iter().any(|fold| matches!(fold.method, Method::Ledger { .. })), "{folds:?}");
        for body in played.server.bodies() {
            let (calls, results) = calls_and_results(wire, &body);
            assert!(calls == results, "each call has its one result, in order: {calls:?} {results:?}");
        }
        played.is_proven();
    }
}

#[test]
fn b1_what_a_child_prints_after_a_fold_took_its_call_is_no_second_result() {
    // It prints into a file and to nobody, from before the first fold until after the last one.
    let child = "(until test -e go; do sleep 0.02; done; until test -e end; do echo on; echo on >> log; sleep 0.02; done; \
                 word=$((7400 + 19)); echo it ends with $word; echo it ends with $word >> log; touch ended) & seq 1 600";
    on_every_wire(|wire| {
        let mut answers =
            vec![flood(1, 100), flood(2, 100), bash(child), bash("touch go; until test -s log; do sleep 0.02; done")];
        answers.extend((5..25).map(|number| flood(number, 1_500)));
        answers.push(bash("touch end; until test -e ended; do sleep 0.02; done; tail -n 1 log"));
        answers.push(call("search", json!({"pattern": "ends with", "path": "log"})));
        let played = play("b1-child", wire, 3_000, answers);
        played.done();
        let called = |event: &&Event| matches!(&event.what, What::Called(called) if called.raw.contains("seq 1 600"));
        let [begun] = played.events.iter().filter(called).collect::<Vec<_>>()[..] else { panic!("it is begun once") };
        // It was shortened first, and then it went, with the whole of its round.
        let folds = played.folds();
        assert!(folds.iter().any(|fold| fold.method == Method::Shorten && fold.shortened.contains(&begun.seq)), "{folds:?}");
        let took =
            |fold: &&&Folded| matches!(fold.method, Method::Ledger { first, last, .. } if first < begun.seq && begun.seq < last);
        let Some(fold) = folds.iter().find(took) else { panic!("no account took it: {folds:?}") };
        // It was running then, and printing; what it printed is found.
        let observed: Vec<&Event> = played.events.iter().filter(|event| matches!(event.what, What::Observed(_))).collect();
        let observed_of = |event: &&Event| match &event.what {
            What::Observed(observed) => (observed.children.len(), text_of(&observed.content)),
            _ => (0, String::new()),
        };
        let behind = observed.iter().find(|event| event.seq > fold.upto).unwrap();
        assert_eq!(observed_of(behind).0, 1, "{behind:?}");
        let [.., printed, found] = &observed[..] else { panic!("{observed:?}") };
        assert!(observed_of(printed).1.starts_with("it ends with 7419\n"), "{printed:?}");
        assert!(observed_of(found).1.contains("it ends with 7419"), "{found:?}");
        // Nothing was added to what it had said, and each call that is sent has its one result.
        assert_eq!(observed.iter().filter(|event| event.cause == Some(begun.seq)).count(), 1);
        assert_eq!(observed.len(), 26);
        let bodies = played.server.bodies();
        for body in &bodies {
            let (calls, results) = calls_and_results(wire, body);
            assert!(calls == results, "each call has its one result, in order: {calls:?} {results:?}");
        }
        let tells: Vec<bool> = bodies[24..].iter().map(|body| body.contains("7419")).collect();
        assert_eq!(tells, [false, true, true], "what it prints is told to who looks");
        played.is_proven();
    });
}

#[test]
fn b4_a_server_that_finds_a_history_too_long_teaches_the_window_and_its_words_enter_no_prompt() {
    let too_long = || Answer {
        status: Some(400),
        error: Some("prompt is too long: 9 tokens > 8 maximum, context_length_exceeded".into()),
        ..Answer::default()
    };
    for wire in Wire::ALL {
        let floods = (0..10).map(|number| flood(number, 3_000));
        let played = play("b4-fold", wire, 1_000_000, floods.clone().chain([too_long(), flood(11, 100)]).collect());
        played.done();
        let [fold] = played.folds()[..] else { panic!("{:?}", played.folds()) };
        assert!(fold.after <= fold.before / 2, "half of what was refused: {fold:?}");
        assert!(!played.server.bodies().concat().contains("too long"));
        played.is_proven();
        // Refused again and again: folded twice, and then the end, which says what helps.
        let played = play("b4-end", wire, 1_000_000, floods.chain([too_long(), too_long(), too_long()]).collect());
        let Outcome::ContextFull { reason } = played.outcome() else { panic!("{:?}", played.outcome()) };
        assert!(played.called.code == 1 && reason.contains("--context"), "{reason}");
        assert!(played.folds().len() <= 2, "{:?}", played.folds());
        let refused = |event: &&Event| matches!(&event.what, What::Replied(replied) if matches!(replied.stop, Stop::Error(Fault { class: FaultClass::ContextFull, .. })));
        assert_eq!(played.events.iter().filter(refused).count(), played.folds().len() + 1);
    }
}

#[test]
fn b5_one_huge_result_fits_a_small_window_and_stays_readable() {
    for wire in Wire::ALL {
        let answers = vec![bash("seq 1 4000000"), call("read", json!({"path": "output:3", "offset": 2_000_000, "limit": 1}))];
        let played = play("b5-fold", wire, 4_500, answers);
        played.done();
        let [fold] = played.folds()[..] else { panic!("{:?}", played.folds()) };
        assert!(fold.method == Method::Shorten && fold.shortened == [trace::Seq(3)], "{fold:?}");
        let last = played.server.bodies().pop().unwrap();
        assert!(last.len() < 9_000 && last.contains("2000000"), "{} bytes", last.len());
        played.is_proven();
    }
}

#[test]
fn b6_an_agent_that_reads_again_what_it_forgot_is_stopped_with_the_reason() {
    let place = Place::new("b6");
    let files = ["a", "b", "c", "d", "e"];
    files.iter().for_each(|file| place.write(file, &format!("what {file} says\n").repeat(1_300)));
    let answers = files.iter().cycle().take(40).map(|file| call("read", json!({"path": file}))).collect();
    let server = Server::start(answers);
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--context", "4000"];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    let events = place.events();
    let Some(What::Finished(finished)) = events.last().map(|event| &event.what) else { panic!("no end") };
    let Outcome::ContextFull { reason } = &finished.outcome else { panic!("{:?}: {}", finished.outcome, called.err) };
    assert!(called.code == 1 && reason.contains("nothing new") && reason.contains("--context"), "{reason}");
    assert_eq!(called.err.matches("the window is small: of 4,000 tokens ").count(), 1, "{}", called.err);
    assert!(server.bodies().len() < 25, "{} requests", server.bodies().len());
}

#[test]
fn b7_a_fold_leaves_instructions_and_tools_as_they_are() {
    for wire in Wire::ALL {
        let played = play("b7-fold", wire, 3_000, (0..40).map(|number| flood(number, 1_000)).collect());
        played.done();
        assert!(played.folds().len() > 1, "{:?}", played.folds());
        let head = |body: &String| {
            let body: Value = serde_json::from_str(body).unwrap();
            (body["tools"].clone(), body["system"].clone(), body["instructions"].clone(), body["systemInstruction"].clone())
        };
        let bodies = played.server.bodies();
        assert!(bodies.iter().all(|body| head(body) == head(&bodies[0])));
    }
}

#[test]
fn a_fact_from_turn_12_is_found_again_at_turn_600_through_the_account() {
    let read = |path: &str, find: [&str; 2], limit: u64| Answer {
        find: Some(find.map(str::to_owned)),
        ..call("read", json!({"path": path, "limit": limit}))
    };
    on_every_wire(|wire| {
        // No command says it, and the file that held it is gone: from turn 13 on it stands in one output alone.
        let mut answers: Vec<Answer> = (1..=600)
            .map(|turn| match turn {
                12 => bash("cat notes.txt"),
                13 => bash("rm notes.txt"),
                turn => bash(&format!("echo turn {turn}")),
            })
            .collect();
        answers.push(read("output:{found}", ["All of it can be read as output:", " "], 20));
        answers.push(read("output:{found}", ["cat notes.txt (exit code 0, output:", ")"], 20));
        answers.push(Answer {
            find: Some(["the code is ", "\\"].map(str::to_owned)),
            text: Some("It is {found}.".into()),
            ..Answer::default()
        });
        let place = Place::new(&format!("turn-12-{wire:?}"));
        place.write("notes.txt", "the code is 7419\n");
        let played = play_at(place, wire, 6_000, answers);
        assert_eq!((played.called.code, played.called.out.as_str()), (0, "It is 7419.\n"), "{}", played.called.err);
        let bodies = played.server.bodies();
        let tells: Vec<bool> = bodies[600..].iter().map(|body| body.contains("7419")).collect();
        assert_eq!(tells, [false, false, true], "neither what was folded nor its account tells it, but the output");
        // Where it came from: the last call read the output of event 47, and that is what the twelfth turn was told.
        let said = |event: &Event| match &event.what {
            What::Called(called) => called.raw.clone(),
            What::Observed(observed) => text_of(&observed.content),
            _ => String::new(),
        };
        let calls: Vec<&Event> = played.events.iter().filter(|event| matches!(event.what, What::Called(_))).collect();
        assert!(said(calls[602 - 1]).contains("\"output:47\""), "{}", said(calls[601]));
        assert_eq!(calls[12 - 1].seq, trace::Seq(47));
        assert_eq!(said(&played.events[48]), "the code is 7419\n");
        assert!(played.place.start(&["show", "--last", "--verify"]).code == 0);
        played.is_proven();
    });
}
