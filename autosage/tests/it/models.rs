//! `autosage models`: what is known, what a run would use, and whether it works.

use crate::support::server::{Answer, Server, Wire};
use crate::support::{Called, PROGRAM, Place};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The scripted server of `bench`, which serves every fault that is known of providers.
struct Mock {
    process: Child,
    base_url: String,
    log: PathBuf,
}

impl Mock {
    /// A server that answers with a call of the tool that is offered, after `fault`; `None` where there is no Python.
    #[allow(clippy::disallowed_methods, reason = "a test against a server starts it")]
    #[allow(clippy::print_stdout, reason = "a skip says so")]
    fn start(place: &Place, fault: Option<&str>) -> Option<Mock> {
        let (script, log) = (place.work().join("script.json"), place.work().join("log.jsonl"));
        let answer = json!([{"calls": [{"name": "ready", "arguments": {"word": "yes"}}], "fault": fault}]);
        fs::write(&script, answer.to_string()).unwrap();
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/mock_llm.py")).args(["--port", "0", "--script"]).arg(&script);
        let mut process = match command.arg("--log").arg(&log).stdout(Stdio::piped()).spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("skipped: no python3");
                return None;
            }
            process => process.unwrap(),
        };
        let mut ready = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let port = ready.strip_prefix("ready ").unwrap().trim();
        Some(Mock { process, base_url: format!("http://127.0.0.1:{port}/v1"), log })
    }

    /// The faults that were served, of all requests; the log is written behind the answer.
    fn until_served(&self) -> Vec<Value> {
        for _ in 0..1_000 {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            if log.ends_with('\n') {
                return log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["fault"].clone()).collect();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server keeps no log");
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn check(place: &Place, wire: Wire, base_url: &str) -> Called {
    let model = wire.arguments("")[1];
    place.start(&["models", "check", model, "--base-url", base_url, "--key-env", "TEST_KEY", "--config", "none"])
}

#[test]
fn a_model_that_works_is_said_to_with_all_that_was_tried() {
    for wire in Wire::ALL {
        let place = Place::new(&format!("models-works-{wire:?}"));
        let Some(mock) = Mock::start(&place, None) else { return };
        let called = check(&place, wire, &mock.base_url);
        assert_eq!((called.code, mock.until_served().len()), (0, 1), "{called:?}");
        for line in [
            "ok      server: http://127.0.0.1:",
            "ok      key: the one in TEST_KEY is taken",
            "ok      model: it answers",
            "ok      stream: the first word came after ",
            "ok      tools: it called the tool that was offered",
            "ok      usage: ",
            "ok      cost: no price is known",
        ] {
            assert!(called.out.contains(line), "{wire:?}: no `{line}` in\n{}", called.out);
        }
    }
}

#[test]
fn what_does_not_work_is_named_once_and_with_what_to_do_next() {
    let cases = [
        ("401", "key", "Check the key in TEST_KEY and what it may use."),
        ("404", "model", "Check the model's name, `scripted`, and the base URL"),
        ("429", "account", "Slow down."),
        ("500", "answer", "The server had an error. The provider asks to wait until"),
        ("html", "answer", "an HTML page"),
        ("empty", "answer", "the reply holds neither words nor a call"),
    ];
    for wire in Wire::ALL {
        for (fault, name, words) in cases {
            let place = Place::new(&format!("models-{fault}-{wire:?}"));
            let Some(mock) = Mock::start(&place, Some(fault)) else { return };
            let called = check(&place, wire, &mock.base_url);
            assert_eq!(mock.until_served(), [Value::from(fault)], "asked once, and the fault was served: {called:?}");
            assert_eq!(called.code, 4, "{called:?}");
            assert_eq!(called.out.matches("WRONG   ").count(), 1, "{}", called.out);
            let wrong = called.out.lines().find(|line| line.starts_with("WRONG")).unwrap();
            assert!(wrong.starts_with(&format!("WRONG   {name}: asked `scripted` at http://127.0.0.1:")), "{wire:?}: {wrong}");
            assert!(wrong.contains(words), "{wire:?} {fault}: {wrong}");
        }
    }
}

#[test]
fn a_model_that_calls_nothing_a_server_that_is_not_there_and_a_key_that_is_missing_are_wrong() {
    let (place, server) =
        (Place::new("models-wrong"), Server::start(vec![Answer { text: Some("Yes.".into()), ..Answer::default() }]));
    let talks = check(&place, Wire::Messages, &server.base_url);
    assert!(talks.code == 4 && talks.out.contains("WRONG   tools: it did not call the tool"), "{talks:?}");
    assert!(server.bodies()[0].contains("\"max_tokens\":1024"), "{}", server.bodies()[0]);
    let gone = check(&place, Wire::Chat, "http://127.0.0.1:1/v1");
    assert!(
        gone.code == 4 && gone.out.contains("WRONG   server: asked `scripted`") && gone.out.contains("Is the server running"),
        "{gone:?}"
    );
    // The others are checked all the same.
    let both = place.start(&["models", "check", "anthropic/x", "vllm/x", "--config", "none"]);
    assert!(
        both.code == 4 && both.out.contains("set ANTHROPIC_API_KEY") && both.out.contains("vllm/x\nWRONG   server"),
        "{both:?}"
    );
    let none = place.start(&["models", "check", "--config", "none"]);
    assert!(none.code == 2 && none.err.contains("no model is configured"), "{none:?}");
    for provider in model::catalog::providers() {
        let line = none.err.lines().find(|line| line.contains(&format!("--model {}/NAME", provider.name)));
        let line = line.unwrap_or_else(|| panic!("{} is left out: {}", provider.name, none.err));
        let (needs_key, needs_address) = (provider.key == model::KeyUse::Required, provider.base_url.is_none());
        assert_eq!(line.contains(&format!("with {} set", provider.key_var)), needs_key, "{line}");
        assert_eq!(line.contains("--base-url http"), needs_address, "{line}");
    }
    let recorded = place.start(&["models", "check", "recorded/x", "--config", "none"]);
    assert!(recorded.code == 2 && recorded.err.contains("is a recording"), "{recorded:?}");
}

#[test]
fn the_configured_models_are_checked_and_a_table_of_ones_own_counts() {
    let (place, server) = (Place::new("models-config"), Server::start(Vec::new()));
    let folder = place.home().with_file_name("conf");
    fs::create_dir_all(&folder).unwrap();
    let config = folder.join("config.toml").display().to_string();
    let text =
        format!("model = \"openai-compatible/a\"\nfallback = [\"openai-compatible/b\"]\nbase_url = \"{}\"\n", server.base_url);
    fs::write(&config, text).unwrap();
    let table = "[[model]]\nprovider = \"openai-compatible\"\nname = \"a\"\ncontext = 50000\ninput = \"1\"\noutput = \"2\"\n";
    fs::write(folder.join("models.toml"), table).unwrap();
    let checked = place.start(&["models", "check", "--config", &config]);
    assert_eq!((checked.code, server.bodies().len()), (4, 2), "it has words for both and calls nothing: {checked:?}");
    assert!(checked.out.contains("openai-compatible/a\n") && checked.out.contains("openai-compatible/b\n"), "{}", checked.out);
    // A hundred tokens in at 1 dollar a million, and ten out at 2.
    assert!(checked.out.contains("cost: $0.0001") && checked.out.contains("cost: no price is known"), "{}", checked.out);

    let listed = place.start(&["models", "COMPATIBLE/a", "--config", &config]);
    let line = listed.out.lines().nth(1).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["openai-compatible/a", "50,000", "?", "1", "1", "2", "?", "there"]);
    let json = place.start(&["models", "list", "openai-compatible", "--json", "--config", &config]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["context"], &json["source"]), (&json!(50000), &json!(folder.join("models.toml").display().to_string())));
    let shown = place.start(&["models", "show", "--config", &config]);
    for line in ["wire               openai-chat", "window             50,000 tokens", "price              $1 in", "models.toml"]
    {
        assert!(shown.out.contains(line), "no `{line}` in\n{}", shown.out);
    }
    let unknown = place.start(&["models", "show", "openai-compatible/b", "--config", &config]);
    assert!(unknown.out.contains("not known: 32,768 tokens are assumed; --context N says otherwise"), "{}", unknown.out);

    // A run is told of the window, and its record names the table.
    let work = place.work().display().to_string();
    let run = place.start(&["run", "go", "--workspace", &work, "--config", &config]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.contains(
            "the window of openai-compatible/b is not known: 32,768 tokens are assumed; models.toml beside your configuration"
        ),
        "{}",
        run.err
    );
    assert!(!run.err.contains("window of openai-compatible/a"), "{}", run.err);
    let trace::What::Started(started) = &place.events()[0].what else { panic!("no start") };
    assert!(started.model.table.is_some() && started.fallback[0].table.is_none());

    fs::write(folder.join("models.toml"), "[[model]]\nprovider = \"openai-compatible\"\nname = \"a\"\ncontxt = 5\n").unwrap();
    let wrong = place.start(&["run", "go", "--workspace", &work, "--config", &config]);
    assert!(
        wrong.code == 2 && wrong.err.contains("models.toml:4:1: unknown key `contxt`: did you mean `context`?"),
        "{}",
        wrong.err
    );
}

#[test]
fn the_keys_of_a_table_are_told_whole_in_the_help_and_in_the_example() {
    let help = Place::new("models-keys").start(&["models", "--help"]).out;
    for text in [help.as_str(), include_str!("../../../docs/config.toml")] {
        let (_, told) = text.split_once("[[model]] with provider and name, and any of").unwrap();
        let (told, _) = told.split_once('.').unwrap();
        let told: BTreeSet<&str> =
            told.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|word| !word.is_empty()).collect();
        let keys = model::catalog::KEYS.into_iter().filter(|key| !["provider", "name"].contains(key)).collect();
        assert_eq!(told, keys);
    }
}

#[test]
fn a_narrow_terminal_breaks_no_words_and_no_numbers() {
    let place = Place::new("narrow");
    let server = Server::start(Vec::new());
    let work = place.work().display().to_string();
    let task = "a task that is longer than a narrow terminal is wide, and is cut";
    assert_eq!(place.start(&[&["run", task], &place.arguments(&server, &work)[..]].concat()).code, 0);
    let show = ["models", "show", "anthropic/claude-opus-5-5"];
    for columns in [40, 60, 80, 100] {
        let told = |args: &[&str]| {
            let out = place.at_terminal_of(columns, args, &[], &[]).out;
            assert!(out.lines().all(|line| line.chars().count() <= columns.into()), "{columns}: {out}");
            out
        };
        let words = |out: &str| out.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (list, piped) = (words(&told(&["models", "list", "gpt-6"])), place.start(&["models", "list", "gpt-6"]));
        let known = words(&format!("{}{} yes no ", piped.out, piped.err));
        // The path of the program, which it tells to be typed, may be longer than a line.
        assert!(list.iter().all(|word| known.contains(word) || PROGRAM.contains(word)), "{columns}: {list:?}");
        assert!(["window", "$", "key", "openai/gpt-6-sol"].iter().all(|word| list.iter().any(|other| other == word)), "{list:?}");
        assert_eq!(words(&told(&show)).concat(), words(&place.start(&show).out).concat(), "nothing is left out");
        let runs = told(&["runs"]);
        let runs = words(&runs).join(" ");
        assert!(runs.contains(" done 1 turn ") && runs.contains("a task that is"), "{columns}: {runs}");
        assert!(columns < 60 || runs.contains(" unpriced "), "{columns}: {runs}");
    }
    let piped = place.start(&["runs"]).out;
    assert!(piped.contains(task) && piped.lines().count() == 1, "what is no terminal is not cut: {piped}");
}
