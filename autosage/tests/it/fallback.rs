//! A model that is not to be had, and the one that is fallen back on: from each wire to each other, through the real binary.

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::{Answer, Server, Wire, bash};
use crate::support::{Called, CountedIds, Place, SteppedClock, files, on_every_wire};
use expect_test::expect;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use trace::{Event, What};

/// A model of `wire` at `server`, which its provider's own variables name.
fn named(wire: Wire, server: &Server) -> (&'static str, Vec<(String, String)>) {
    let (model, address, key) = match wire {
        Wire::Chat => ("vllm/scripted", "VLLM_BASE_URL", "VLLM_API_KEY"),
        Wire::Responses => ("openai/scripted", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        Wire::Messages => ("anthropic/scripted", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        Wire::Gemini => ("gemini/scripted", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
    };
    (model, vec![(address.to_owned(), server.base_url.clone()), (key.to_owned(), format!("key-of-{model}"))])
}

/// A limit that is not waited out.
fn used_up() -> Answer {
    Answer { status: Some(429), error: Some("the day's limit".into()), retry_after: Some("86400".into()), ..Answer::default() }
}

/// Two models on two servers, the second of which is to be fallen back on.
struct Two {
    place: Place,
    servers: [Server; 2],
    models: [&'static str; 2],
    variables: Vec<(String, String)>,
}

impl Two {
    fn new(name: &str, wires: [Wire; 2], scripts: [Vec<Answer>; 2]) -> Two {
        let servers = scripts.map(Server::start);
        let [first, second] = [named(wires[0], &servers[0]), named(wires[1], &servers[1])];
        let place = Place::new(&format!("fallback-{name}-{:?}-{:?}", wires[0], wires[1]));
        Two { place, servers, models: [first.0, second.0], variables: [first.1, second.1].concat() }
    }

    fn start(&self, args: &[&str]) -> Called {
        let variables: Vec<(&str, &str)> = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let output = self.place.command(args).envs(variables).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Called { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn run(&self, more: &[&str]) -> Called {
        let work = self.place.work().display().to_string();
        let args =
            ["run", "go", "--config", "none", "--workspace", &work, "--model", self.models[0], "--fallback", self.models[1]];
        self.start(&[&args, more].concat())
    }

    /// Every body that either server received is the one that the events give, byte for byte.
    fn every_body_is_rebuilt(&self) {
        let mut bodies = self.servers.each_ref().map(|server| server.bodies().into_iter());
        for event in self.place.events() {
            let What::Asked(asked) = &event.what else { continue };
            let shown = self.start(&["show", "--last", "--prompt", &event.seq.to_string()]);
            let which = self.models.iter().position(|model| *model == asked.model).unwrap();
            assert_eq!(Some(shown.out.trim_end_matches('\n')), bodies[which].next().as_deref(), "{}", shown.err);
        }
    }
}

fn switches(events: &[Event]) -> Vec<String> {
    let switches = events.iter().filter_map(|event| match &event.what {
        What::Switched(switched) => Some(format!("{} after {:?}", switched.model.id, event.cause.map(|cause| cause.0))),
        _ => None,
    });
    switches.collect()
}

#[test]
fn a_run_falls_back_from_each_wire_to_each_other_and_stays_there() {
    for from in Wire::ALL {
        for to in Wire::ALL.into_iter().filter(|to| *to != from) {
            let two = Two::new("stays", [from, to], [vec![bash("echo one >> ran"), used_up()], vec![bash("echo two >> ran")]]);
            let called = two.run(&[]);
            assert_eq!(two.servers[0].faults(), 1, "the limit was served: {called:?}");
            assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
            assert_eq!(two.place.read("ran"), "one\ntwo\n");
            let window =
                format!("the window of {} is not known: 32,768 tokens are assumed; --context N says otherwise\n", two.models[0]);
            assert_eq!(called.err.matches(&window).count(), 1, "{}", called.err);
            assert!(!called.err.contains("the window is small"), "{}", called.err);
            for words in ["falls back on", "! now asks"] {
                assert!(called.err.contains(&format!("{words} {}", two.models[1])), "{}", called.err);
            }
            assert!(two.servers[1].bodies()[0].contains("echo one"), "the conversation is told anew");
            assert!(two.servers[1].keys().iter().flatten().all(|key| key.ends_with(two.models[1])), "each has its own key");
            let events = two.place.events();
            assert_eq!(switches(&events), [format!("{} after Some(6)", two.models[1])]);

            let resumed = two.start(&["resume", "--last", "--config", "none", "-m", "and now?"]);
            assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
            assert_eq!((two.servers[0].bodies().len(), two.servers[1].bodies().len()), (2, 3), "it sticks");
            every_body_extends_the_one_before(&two.servers[1].bodies());
            two.every_body_is_rebuilt();
            let shown = two.start(&["show", "--last", "--json"]);
            assert!(shown.out.contains(&format!("\"model\":\"{}\"", two.models[1])), "{}", shown.out);
        }
    }
}

#[test]
fn a_server_that_stays_overloaded_is_left_and_two_runs_give_the_same_bytes() {
    for (from, to) in [
        (Wire::Chat, Wire::Messages),
        (Wire::Messages, Wire::Responses),
        (Wire::Responses, Wire::Gemini),
        (Wire::Gemini, Wire::Chat),
    ] {
        let overloaded = || Answer { status: Some(529), error: Some("Overloaded".into()), ..Answer::default() };
        let scripts = || [[vec![bash("echo one")], (0..99).map(|_| overloaded()).collect()].concat(), vec![bash("echo two")]];
        let two = Two::new("overloaded", [from, to], scripts());
        let play = || -> Vec<(PathBuf, Vec<u8>)> {
            let _ = std::fs::remove_dir_all(two.place.home());
            two.servers.iter().zip(scripts()).for_each(|(server, script)| server.restart(script));
            let (clock, ids) = (Arc::new(SteppedClock::new()), Arc::new(CountedIds(AtomicU64::new(0))));
            let variables: BTreeMap<String, String> = two.variables.iter().cloned().collect();
            let work = two.place.work().display().to_string();
            let args = ["run", "go", "--config", "none", "--workspace", &work, "--model", two.models[0]];
            let called = two.place.call_with(&clock, &ids, &[&args[..], &["--fallback", two.models[1]]].concat(), &variables);
            assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
            assert!(two.servers[0].faults() > 10, "retries were spent first: {}", two.servers[0].faults());
            assert_eq!(switches(&two.place.events()).len(), 1);
            files(&two.place.run_folder()).into_iter().filter(|(path, _)| path != Path::new("lock")).collect()
        };
        assert_eq!(play(), play());
    }
}

#[test]
fn how_long_an_overloaded_model_is_asked_again_is_for_a_person_to_say() {
    let overloaded = || Answer { status: Some(529), error: Some("Overloaded".into()), ..Answer::default() };
    let script = || [(0..99).map(|_| overloaded()).collect(), Vec::new()];
    let two = Two::new("retry-time", [Wire::Chat, Wire::Messages], script());
    let config = two.place.home().with_file_name("config.toml");
    let work = two.place.work().display().to_string();
    let refused = |text: &str| {
        let _ = std::fs::remove_dir_all(two.place.home());
        std::fs::write(&config, text).unwrap();
        two.servers.iter().zip(script()).for_each(|(server, script)| server.restart(script));
        let (clock, ids) = (Arc::new(SteppedClock::new()), Arc::new(CountedIds(AtomicU64::new(0))));
        let variables: BTreeMap<String, String> = two.variables.iter().cloned().collect();
        let config = config.display().to_string();
        let args = ["run", "go", "--config", &config, "--workspace", &work, "--model", two.models[0]];
        let called = two.place.call_with(&clock, &ids, &[&args[..], &["--fallback", two.models[1]]].concat(), &variables);
        assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
        assert!(called.err.contains("waiting 1 s to ask vllm/scripted: 529: Overloaded\n"), "{}", called.err);
        two.servers[0].faults()
    };
    // Half a second, one, and what is left is shorter than two.
    assert_eq!(refused("retry_time = \"2s\"\n"), 3);
    let usual = refused("");
    assert!(usual > 10 && refused("retry_time = \"15m\"\n") == usual, "fifteen minutes: {usual} requests");
}

#[test]
fn a_server_that_is_not_there_is_named_while_it_is_waited_for() {
    let place = Place::new("fallback-not-there");
    let (work, config) = (place.work().display().to_string(), place.home().with_file_name("config.toml"));
    std::fs::write(&config, "retry_time = \"1s\"\n").unwrap();
    let config = config.display().to_string();
    let address = "http://127.0.0.1:1/v1";
    let args = ["run", "go", "--config", &config, "--workspace", &work, "--model", "vllm/m", "--base-url", address];
    let called = place.start(&args);
    assert_eq!(called.code, 4, "{called:?}");
    let waits: Vec<&str> = called.err.lines().filter(|line| line.starts_with("waiting ")).collect();
    assert!(waits.len() == 1 && waits[0].starts_with("waiting 1 s to ask vllm/m: 127.0.0.1:1: "), "{}", called.err);
    assert!(called.err.contains("asked `m` at http://127.0.0.1:1/v1"), "{}", called.err);
}

#[test]
fn a_window_that_is_full_is_left_for_a_larger_one() {
    let task = "look at this line\n".repeat(700);
    let words = "now asks anthropic/scripted instead: about ";
    // By what is known of the window: nobody is asked in vain.
    let two = Two::new("full", [Wire::Chat, Wire::Messages], [Vec::new(), vec![bash("echo two >> ran")]]);
    let run = |two: &Two, more: &[&str]| {
        let work = two.place.work().display().to_string();
        let args =
            ["run", &task, "--config", "none", "--workspace", &work, "--model", two.models[0], "--fallback", two.models[1]];
        two.start(&[&args, more].concat())
    };
    let called = run(&two, &["--context", "4000"]);
    assert_eq!((called.code, two.servers[0].bodies().len(), two.place.read("ran").as_str()), (0, 0, "two\n"), "{called:?}");
    assert!(called.err.contains(words) && called.err.contains("and the window has 4,000"), "{}", called.err);
    assert!(!called.err.contains("--context N says otherwise\n! "), "nobody has to do anything: {}", called.err);
    assert_eq!(switches(&two.place.events()), ["anthropic/scripted after None"]);
    let events = two.start(&["show", "--last", "--events"]).out;
    assert!(events.contains("Switched        to anthropic/scripted: about "), "{events}");
    let shown = two.start(&["show", "--last"]).out;
    assert!(shown.contains(words), "{shown}");
    let resumed = two.start(&["resume", "--last", "--config", "none", "-m", "and now?"]);
    assert_eq!((resumed.code, two.servers[0].bodies().len(), two.servers[1].bodies().len()), (0, 0, 3), "it sticks: {resumed:?}");
    two.every_body_is_rebuilt();

    // By what the server says.
    let too_long = Answer {
        status: Some(400),
        error: Some("This model's maximum context length is 8 tokens, context_length_exceeded".into()),
        ..Answer::default()
    };
    let two = Two::new("too-long", [Wire::Chat, Wire::Messages], [vec![too_long], Vec::new()]);
    let called = run(&two, &["--context", "30000"]);
    assert_eq!((called.code, two.servers[0].faults(), two.servers[1].bodies().len()), (0, 1, 1), "{called:?}");
    assert_eq!(switches(&two.place.events()), ["anthropic/scripted after Some(2)"]);
    two.every_body_is_rebuilt();
    let shown = two.start(&["show", "--last"]).out;
    assert!(shown.contains("now asks anthropic/scripted instead: ") && shown.contains("maximum context length"), "{shown}");
}

#[test]
fn the_bill_tells_what_each_model_cost() {
    let two = Two::new("bill", [Wire::Chat, Wire::Messages], [vec![bash("echo one"), used_up()], vec![bash("echo two")]]);
    assert_eq!(two.run(&["--price", "1,2"]).code, 0);
    assert_eq!(two.servers[0].faults(), 1);
    let bill = two.start(&["show", "--last", "--cost"]).out;
    assert!(bill.lines().all(|line| line.len() <= 80), "{bill}");
    // Without the times, which stand in the columns between.
    let rows = bill.lines().map(|line| match line.contains('/') {
        true => line.to_owned(),
        false => [&line[..39], &line[47..]].concat(),
    });
    expect![[r#"
        event  input  cached  output  reasoning  cost
        vllm/scripted
            2    100      90      10          0  $0.0001
            6      0       0       0          0  $0.0000
        anthropic/scripted
            9    100      90      10          0  unpriced
           13    100      90      10          0  unpriced
        total    300     270      30          0  $0.0001 +
        vllm/scripted: 2 requests, 100 tokens in, 10 out, $0.0001
        anthropic/scripted: 2 requests, 200 tokens in, 20 out, unpriced
        + what is unpriced comes on top: its prot known
    "#]]
    .assert_eq(&rows.map(|row| row + "\n").collect::<String>());
    let story = two.start(&["show", "--last"]).out;
    assert!(story.contains(" · $0.0001 + unpriced · "), "{story}");
    let later = two.start(&["resume", "--last", "--config", "none", "-m", "And?"]).err;
    assert!(later.contains(" · $0.0001 + unpriced · "), "{later}");
    let one = Two::new("bill", [Wire::Chat, Wire::Messages], [Vec::new(), Vec::new()]);
    assert_eq!(one.run(&[]).code, 0);
    let bill = one.start(&["show", "--last", "--cost"]).out;
    assert!(bill.lines().count() == 3 && !bill.contains("vllm"), "{bill}");
}

#[test]
fn a_list_that_is_used_up_ends_the_run_as_it_would_without_one() {
    let two = Two::new("used-up", [Wire::Messages, Wire::Gemini], [vec![used_up()], vec![used_up()]]);
    let called = two.run(&["--json"]);
    assert_eq!((called.code, two.servers[0].faults(), two.servers[1].faults()), (4, 1, 1), "{called:?}");
    let last = called.out.lines().last().unwrap();
    assert!(last.contains(r#""outcome":"paused""#), "{last}");
    assert!(called.out.lines().any(|line| line.contains(r#""kind":"Switched""#) && line.contains("gemini/scripted")));
    // A later session asks the one that was asked last.
    let resumed = two.start(&["resume", "--last", "--config", "none"]);
    assert_eq!((resumed.code, two.servers[0].bodies().len(), two.servers[1].bodies().len()), (0, 1, 2), "{resumed:?}");
}

#[test]
fn d5_a_limit_that_one_request_learnt_is_kept_by_the_next_of_its_account() {
    // The same model on its other wire is not asked in vain; another model may have a limit of its own.
    for (other, asked, exit) in [("openai-chat/scripted", 1, 4), ("openai-chat/another", 2, 0)] {
        let (place, server) = (Place::new("fallback-d5"), Server::start(vec![used_up()]));
        let work = place.work().display().to_string();
        let args = ["run", "go", "--config", "none", "--workspace", &work, "--model", "openai/scripted", "--fallback", other];
        let account = [("OPENAI_BASE_URL", server.base_url.as_str()), ("OPENAI_API_KEY", "ours")];
        let output = place.command(&args).envs(account).output().unwrap();
        assert_eq!(server.faults(), 1, "the limit was served: {output:?}");
        assert_eq!(switches(&place.events()), [format!("{other} after Some(2)")]);
        assert_eq!((server.bodies().len(), output.status.code()), (asked, Some(exit)), "{other}: {output:?}");
    }
}

#[test]
fn a_list_may_be_typed_for_a_run_that_goes_on() {
    let two = Two::new("typed-later", [Wire::Gemini, Wire::Responses], [vec![used_up(), used_up()], Vec::new()]);
    let work = two.place.work().display().to_string();
    let begun = two.start(&["run", "go", "--config", "none", "--workspace", &work, "--model", two.models[0]]);
    assert_eq!((begun.code, two.servers[1].bodies().len()), (4, 0), "{}", begun.err);
    let resumed = two.start(&["resume", "--last", "--config", "none", "--fallback", two.models[1]]);
    assert_eq!((resumed.code, two.servers[0].faults(), two.servers[1].bodies().len()), (0, 2, 1), "{}", resumed.err);
    two.every_body_is_rebuilt();
}

#[test]
fn what_a_model_is_asked_wrongly_is_not_asked_of_another() {
    for (status, servers) in [(400, (1, 0)), (401, (1, 1)), (404, (1, 1))] {
        let refused = Answer { status: Some(status), error: Some("no".into()), ..Answer::default() };
        let two = Two::new("refused", [Wire::Chat, Wire::Responses], [vec![refused], Vec::new()]);
        let called = two.run(&[]);
        assert_eq!(two.servers[0].faults(), 1);
        assert_eq!((two.servers[0].bodies().len(), two.servers[1].bodies().len()), servers, "{status}");
        assert_eq!(called.code, if servers.1 == 0 { 4 } else { 0 }, "{}", called.err);
    }
}

#[test]
fn a_list_without_its_key_or_with_a_wrong_name_is_refused_before_anything_begins() {
    let two = Two::new("keys", [Wire::Chat, Wire::Chat], [Vec::new(), Vec::new()]);
    for (model, words) in [
        ("anthropic/claude-opus-5-5", "`anthropic/claude-opus-5-5` needs a key: set ANTHROPIC_API_KEY"),
        ("openai-compatible/m", "`openai-compatible/m` needs an address"),
        ("nobody/m", "there is no provider `nobody`"),
        ("recorded/talk.jsonl", "cannot be fallen back on"),
    ] {
        let work = two.place.work().display().to_string();
        let args = ["run", "go", "--config", "none", "--workspace", &work, "--model", two.models[0], "--fallback", model];
        let refused = two.start(&args);
        assert!(refused.code == 2 && refused.err.contains(words), "{}", refused.err);
        assert!(refused.err.contains("(`fallback` or --fallback names it)"), "{}", refused.err);
    }
    // Both are of one name here.
    let same = two.run(&["--fallback", "ollama/m"]);
    assert!(same.code == 2 && same.err.contains("--fallback vllm/scripted names the model that is asked anyway"), "{}", same.err);
    assert!(!two.place.home().join("runs").exists(), "nothing began");
    // What it costs has to be known where money is the limit.
    let work = two.place.work().display().to_string();
    let args = ["run", "go", "--config", "none", "--workspace", &work, "--model", two.models[0], "--fallback", "ollama/m"];
    let refused = two.start(&[&args[..], &["--price", "1,2", "--max-usd", "1"]].concat());
    assert!(refused.code == 2 && refused.err.contains("no price is known for `ollama/m`; say in models.toml"), "{}", refused.err);
}

#[test]
fn a_recording_holds_the_models_that_were_fallen_back_on() {
    let two =
        Two::new("recorded", [Wire::Responses, Wire::Messages], [vec![bash("echo one"), used_up()], vec![bash("echo two")]]);
    let file = two.place.home().with_file_name("talk.jsonl").display().to_string();
    assert_eq!(two.run(&["--record", &file]).code, 0);
    let asked = (two.servers[0].bodies().len(), two.servers[1].bodies().len());

    let elsewhere = Place::new("fallback-played");
    let (work, model) = (elsewhere.work().display().to_string(), format!("recorded/{file}"));
    let played = elsewhere.start(&["run", "go", "--model", &model, "--workspace", &work, "--config", "none"]);
    assert_eq!((played.code, played.out.as_str()), (0, "Done.\n"), "{}", played.err);
    assert_eq!(switches(&elsewhere.events()), [format!("{model}#1 after Some(6)")]);
    assert_eq!((two.servers[0].bodies().len(), two.servers[1].bodies().len()), asked, "no server is asked");
    // It goes on with the one that was asked last, and finds its end there.
    let ended = elsewhere.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert!(ended.code == 4 && ended.err.contains("the recording ends after 4 replies"), "{}", ended.err);
}

#[test]
fn a_reply_of_too_many_calls_is_asked_for_twice_more_and_then_fallen_back_from() {
    let flood = || Answer { calls: vec![bash("echo on >> ran").calls.remove(0); 1001], ..Answer::default() };
    on_every_wire(|wire| {
        let to = if wire == Wire::Messages { Wire::Gemini } else { Wire::Messages };
        let two = Two::new("flood", [wire, to], [vec![flood(), flood(), flood()], Vec::new()]);
        let called = two.run(&[]);
        assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
        assert_eq!((two.servers[0].bodies().len(), two.servers[1].bodies().len()), (3, 1), "{wire:?}");
        assert!(!two.place.work().join("ran").exists(), "{wire:?}: none of them was begun");
        let shown = two.start(&["show", "--last"]).out;
        assert_eq!(shown.matches("the model's server: the reply ").count(), 2, "{wire:?}: {shown}");
        assert!(shown.contains("more than 1,000"), "{wire:?}: {shown}");
        // One that is no flood is taken.
        let two = Two::new("flood-once", [wire, to], [vec![flood()], Vec::new()]);
        let called = two.run(&[]);
        assert_eq!((called.code, two.servers[0].bodies().len(), two.servers[1].bodies().len()), (0, 2, 0), "{called:?}");
    });
}
