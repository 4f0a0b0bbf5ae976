//! Answers that have a form, on every wire and through the real binary.

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::{Server, Wire};
use crate::support::{Called, Place, script};
use serde_json::{Value, json};
use trace::{Event, Verdict, What};

/// A run whose answer is to be `{"count": …}`.
struct Counted {
    place: Place,
    server: Server,
    called: Called,
}

/// The model on `wire` that is held to a schema; on Chat Completions that is OpenAI's own.
fn model(wire: Wire, base_url: &str) -> Vec<&str> {
    let mut args = wire.arguments(base_url);
    if wire == Wire::Chat {
        args[1] = "openai-chat/scripted";
        args.extend(["--key-env", "TEST_KEY"]);
    }
    args
}

fn schema() -> Value {
    let count = json!({"count": {"type": "integer", "minimum": 0}});
    json!({"type": "object", "properties": count, "required": ["count"], "additionalProperties": false})
}

fn counted(name: &str, wire: Wire, answers: Value, more: &[&str]) -> Counted {
    let answers = script(&answers.to_string());
    let faults = answers.iter().filter(|answer| answer.is_fault()).count();
    let (place, server) = (Place::new(&format!("{name}-{wire:?}")), Server::start(answers));
    let file = place.home().with_file_name("schema.json");
    std::fs::write(&file, schema().to_string()).unwrap();
    let (work, file) = (place.work().display().to_string(), file.display().to_string());
    let mut args = vec!["run", "how many?", "--output-schema", &file, "--workspace", &work, "--config", "none"];
    args.extend(model(wire, &server.base_url));
    args.extend(more);
    let called = place.start(&args);
    assert_eq!(server.faults(), faults, "every fault of the script was served: {called:?}");
    Counted { place, server, called }
}

impl Counted {
    fn verdicts(&self) -> Vec<(Verdict, Option<String>)> {
        let verdict = |event: &Event| match &event.what {
            What::Verified(verified) => Some((verified.verdict.clone(), verified.misfit.clone())),
            _ => None,
        };
        self.place.events().iter().filter_map(verdict).collect()
    }
}

/// The schema as a request holds the model to it.
fn held_to(wire: Wire, body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap();
    let place = match wire {
        Wire::Chat => "/response_format/json_schema/schema",
        Wire::Responses => "/text/format/schema",
        Wire::Messages => "/output_config/format/schema",
        Wire::Gemini => "/generationConfig/responseJsonSchema",
    };
    body.pointer(place).cloned().unwrap_or_default()
}

#[test]
fn an_answer_that_does_not_fit_goes_back_and_one_that_fits_is_all_of_standard_output() {
    let answers = || {
        json!([
            {"text": "There are 3."},
            {"calls": [{"name": "submit", "arguments": {"answer": {"count": "3"}}}]},
            {"text": "{\"count\": -1}"},
            {"text": "```json\n{\"count\": 3}\n```"},
        ])
    };
    for wire in Wire::ALL {
        let run = counted("fits", wire, answers(), &[]);
        assert_eq!((run.called.code, run.called.out.as_str()), (0, "{\"count\": 3}\n"), "{}", run.called.err);
        let misfits: Vec<Option<String>> = run.verdicts().into_iter().map(|(_, misfit)| misfit).collect();
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(
            misfits,
            [
                told("it is not JSON: expected value at line 1 column 1"),
                told("/count: \"3\" is not of type \"integer\""),
                told("/count: -1 is less than the minimum of 0"),
                None,
            ],
        );
        let bodies = run.server.bodies();
        assert_eq!(bodies.len(), 4);
        every_body_extends_the_one_before(&bodies);
        for (body, words) in bodies[1..].iter().zip(["expected value", "is not of type", "less than the minimum"]) {
            assert!(body.contains(words) && body.contains("claims left"), "{body}");
        }
        for body in &bodies {
            let held = held_to(wire, body);
            assert_eq!(held["required"], json!(["count"]), "{wire:?}: {body}");
            // Anthropic refuses what narrows a number; that we see to ourselves.
            assert_eq!(held["properties"]["count"].get("minimum").is_none(), wire == Wire::Messages, "{body}");
        }
        let Some(What::Started(started)) = run.place.events().first().map(|event| event.what.clone()) else { panic!() };
        assert_eq!(started.output_schema, Some(schema()));
        for event in run.place.events().iter().filter(|event| matches!(event.what, What::Asked(_))) {
            let shown = run.place.start(&["show", "--last", "--prompt", &event.seq.to_string()]);
            assert_eq!(shown.code, 0, "{}", shown.err);
        }
    }
}

#[test]
fn a_later_session_holds_answers_to_the_same_schema() {
    for wire in Wire::ALL {
        let submit = json!([{"calls": [{"name": "submit", "arguments": {"answer": "{\"count\": 2}"}}]}]);
        let run = counted("later", wire, submit, &[]);
        assert_eq!((run.called.code, run.called.out.as_str()), (0, "{\"count\": 2}\n"), "{}", run.called.err);
        run.server.restart(script(r#"[{"text": "4"}, {"calls": [{"name": "submit", "arguments": {"answer": {"count": 4}}}]}]"#));
        let mut args = vec!["resume", "--last", "-m", "and now?", "--config", "none"];
        args.extend(model(wire, &run.server.base_url));
        let resumed = run.place.start(&args);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "{\"count\":4}\n"), "{}", resumed.err);
        assert!(run.server.bodies().iter().all(|body| !held_to(wire, body).is_null()));
    }
}

#[test]
fn answers_that_never_fit_end_the_run_and_are_not_told_as_answers() {
    for wire in Wire::ALL {
        let run = counted("never", wire, json!([{"text": "many"}, {"text": "very many"}]), &["--max-claims", "2"]);
        assert_eq!((run.called.code, run.called.out.as_str()), (1, ""), "{}", run.called.err);
        assert!(run.called.err.contains("the answer still does not fit its schema after the last claim"), "{}", run.called.err);
        assert!(run.verdicts().iter().all(|(verdict, misfit)| *verdict == Verdict::Fail && misfit.is_some()));
        let refused = counted("refused", wire, json!([{"text": "I", "finish": "content_filter"}]), &["--json"]);
        let last: Value = serde_json::from_str(refused.called.out.lines().last().unwrap()).unwrap();
        assert_eq!((refused.called.code, &last["outcome"]), (1, &"refused".into()), "{last}");
    }
}

#[test]
fn an_answer_that_fits_is_judged_by_the_checks_too() {
    let answers = json!([
        {"text": "{\"count\": 1}"},
        {"calls": [{"name": "bash", "arguments": {"command": "touch made"}}]},
        {"text": "{\"count\": 1}"},
    ]);
    let run = counted("checked", Wire::Chat, answers, &["--check", "test -e made"]);
    assert_eq!((run.called.code, run.called.out.as_str()), (0, "{\"count\": 1}\n"), "{}", run.called.err);
    let verdicts: Vec<Verdict> = run.verdicts().into_iter().map(|(verdict, _)| verdict).collect();
    assert_eq!(verdicts, [Verdict::Fail, Verdict::Pass]);
}

#[test]
fn a_server_that_nobody_knows_is_told_the_schema_in_words_only() {
    let place = Place::new("in-words");
    let server = Server::start(script(r#"[{"text": "{\"count\": 3}"}]"#));
    let file = place.home().with_file_name("schema.json");
    std::fs::write(&file, schema().to_string()).unwrap();
    let (work, file) = (place.work().display().to_string(), file.display().to_string());
    let mut args = vec!["run", "how many?", "--output-schema", &file];
    args.extend(place.arguments(&server, &work));
    let called = place.start(&args);
    assert_eq!((called.code, called.out.as_str()), (0, "{\"count\": 3}\n"), "{}", called.err);
    let body: Value = serde_json::from_str(&server.bodies()[0]).unwrap();
    assert_eq!(body.get("response_format"), None);
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("JSON that fits this schema") && system.contains(&schema().to_string()), "{system}");
    let tools = body["tools"].as_array().unwrap();
    let submit = tools.iter().find(|tool| tool["function"]["name"] == "submit").unwrap();
    assert_eq!(submit["function"]["parameters"]["properties"]["answer"]["properties"], schema()["properties"]);
    // Without the flag nothing of it is there.
    let mut args = vec!["run", "how many?"];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    let plain = server.bodies().pop().unwrap();
    assert!(!plain.contains("schema"), "{plain}");
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_before_anything_begins() {
    let (place, server) = (Place::new("bad-schema"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let cases = [
        ("{", "it is not JSON"),
        ("[]", "a schema is a JSON object"),
        (r#"{"type": "objekt"}"#, "/type: "),
        (r##"{"properties": {"a": {"$ref": "#"}}}"##, "the reference `#` leads elsewhere"),
    ];
    for (text, words) in cases {
        let file = place.home().with_file_name("schema.json");
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let mut args = vec!["run", "how many?", "--output-schema", &file];
        args.extend(place.arguments(&server, &work));
        let called = place.start(&args);
        assert_eq!(called.code, 2, "{text}: {}", called.err);
        assert!(called.err.contains("schema.json (--output-schema)") && called.err.contains(words), "{text}: {}", called.err);
    }
    assert!(server.bodies().is_empty());
}
