//! Pictures on every wire and through the real binary: what a server receives of them, and what is refused before that.

use crate::scenarios::every_body_extends_the_one_before;
use crate::support::server::{Answer, Server, Wire, bash, call};
use crate::support::{Place, script};
use serde_json::Value;
use trace::{Event, Folded, Method, Part, What};

/// A PNG of 16×9 pixels, and the same in base64.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x09\x08\x06\0\0\0";
const BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAJCAYAAAA=";

/// The places of a request at which the picture stands, as paths into its JSON.
fn places(body: &str) -> Vec<String> {
    fn look(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains(BASE64) => found.push(path.to_owned()),
            Value::Array(all) => {
                all.iter().enumerate().for_each(|(place, value)| look(value, &format!("{path}/{place}"), found));
            }
            Value::Object(all) => all.iter().for_each(|(name, value)| look(value, &format!("{path}/{name}"), found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    look(&serde_json::from_str(body).unwrap(), "", &mut found);
    found
}

fn put(place: &Place, name: &str, bytes: &[u8]) -> String {
    let path = place.work().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn a_picture_of_the_task_and_one_that_is_read_reach_the_server() {
    let read = r#"[{"calls": [{"name": "read", "arguments": {"path": "shape"}}]}]"#;
    for wire in Wire::ALL {
        let (place, server) = (Place::new(&format!("pictures-{wire:?}")), Server::start(script(read)));
        let (shape, work) = (put(&place, "shape", PNG), place.work().display().to_string());
        let mut args = vec!["run", "what is it?", "--image", &shape];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&args);
        assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
        assert!(called.err.contains("[picture 16×9 png, 29 bytes]"), "{}", called.err);
        let bodies = server.bodies();
        let expected: [&[&str]; 2] = match wire {
            Wire::Chat => [&["/messages/1/content/0/image_url/url"], &["/messages/4/content/1/image_url/url"]],
            Wire::Responses => [&["/input/0/content/0/image_url"], &["/input/2/output/1/image_url"]],
            Wire::Messages => [&["/messages/0/content/0/source/data"], &["/messages/2/content/0/content/1/source/data"]],
            Wire::Gemini => {
                [&["/contents/0/parts/0/inlineData/data"], &["/contents/2/parts/0/functionResponse/parts/0/inlineData/data"]]
            }
        };
        assert_eq!(places(&bodies[0]), expected[0], "{wire:?}");
        assert_eq!(places(&bodies[1]), expected.concat(), "{wire:?}");
        // The record names both and holds neither.
        let trace = std::fs::read_to_string(place.run_folder().join("trace.jsonl")).unwrap();
        assert!(!trace.contains("iVBOR"), "{trace}");
        let asked = place.events().iter().filter(|event| matches!(event.what, What::Asked(_))).map(|event| event.seq).next_back();
        let seq = asked.unwrap().to_string();
        let shown = place.start(&["show", "--last", "--prompt", &seq]);
        assert_eq!((shown.code, shown.out.trim_end()), (0, bodies[1].as_str()), "{}", shown.err);
    }
}

#[test]
fn a_picture_whose_bytes_are_lost_is_told_as_lost() {
    for wire in Wire::ALL {
        let (place, server) = (Place::new(&format!("lost-picture-{wire:?}")), Server::start(Vec::new()));
        let (shape, work) = (put(&place, "shape.png", PNG), place.work().display().to_string());
        let mut args = vec!["run", "what is it?", "--image", &shape];
        args.extend(place.arguments_on(wire, &server, &work));
        assert_eq!(place.start(&args).code, 0);
        let events = place.events();
        let Some(What::Started(started)) = events.first().map(|event| &event.what) else { panic!("no beginning") };
        let Some(Part::Image { blob, .. }) = started.task.parts.first() else { panic!("no picture") };
        std::fs::remove_file(place.run_folder().join("blobs").join(blob.to_string())).unwrap();
        let mut args = vec!["resume", "--last", "-m", "and now?", "--config", "none"];
        args.extend(wire.arguments(&server.base_url));
        let called = place.start(&args);
        assert_eq!(called.code, 0, "{}", called.err);
        let last = server.bodies().pop().unwrap();
        assert!(places(&last).is_empty() && last.contains("[picture 16×9 png, 29 bytes: its bytes are lost]"), "{last}");
    }
}

#[test]
fn a_picture_that_the_server_refuses_is_told_in_words_and_the_run_goes_on() {
    let script_of = r#"[
        {"calls": [{"name": "read", "arguments": {"path": "shape"}}]},
        {"status": 400, "error": "Could not process image"}
    ]"#;
    let told = "[picture 16×9 png, 29 bytes: not shown, for the server refused it]";
    for wire in Wire::ALL {
        let (place, server) = (Place::new(&format!("refused-picture-{wire:?}")), Server::start(script(script_of)));
        put(&place, "shape", PNG);
        let work = place.work().display().to_string();
        let mut args = vec!["run", "what is it?"];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&args);
        assert_eq!(server.faults(), 1);
        assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{wire:?}: {}", called.err);
        let line =
            "the model's server refused the request, which is made again without its new pictures: Could not process image";
        let plain = |told: &str| told.replace("\n! ", " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(plain(&called.err).matches(line).count(), 1, "{wire:?}: {}", called.err);
        let story = place.start(&["show", "--last"]).out;
        assert_eq!(plain(&story).matches(line).count(), 1, "{wire:?}: {story}");
        let mut args = vec!["resume", "--last", "-m", "and now?", "--config", "none"];
        args.extend(wire.arguments(&server.base_url));
        let called = place.start(&args);
        assert_eq!(called.code, 0, "{wire:?}: {}", called.err);
        let seen: Vec<_> = server.bodies().iter().map(|body| (places(body).len(), body.contains(told))).collect();
        assert_eq!(seen, [(0, false), (1, false), (0, true), (0, true)], "{wire:?}");
        let asked = place.events().iter().filter(|event| matches!(event.what, What::Asked(_))).map(|event| event.seq).nth(2);
        let shown = place.start(&["show", "--last", "--prompt", &asked.unwrap().to_string()]);
        assert_eq!((shown.code, shown.out.trim_end()), (0, server.bodies()[2].as_str()), "{}", shown.err);
    }
}

#[test]
fn a_picture_of_a_message_that_was_folded_away_is_shown_again() {
    let (place, server) = (Place::new("folded-picture"), Server::start(Vec::new()));
    let (shape, work) = (put(&place, "shape.png", PNG), place.work().display().to_string());
    let floods = |number: usize| Answer {
        calls: (0..8).flat_map(|call| bash(&format!("yes 'line of {number}.{call}' | head -c 1100")).calls).collect(),
        ..Answer::default()
    };
    let more = ["--context", "12000", "--max-turns", "100", "--durability", "process"];
    server.restart((0..2).map(floods).collect());
    let mut args = vec!["run", "go"];
    args.extend(more.into_iter().chain(place.arguments(&server, &work)));
    assert_eq!(place.start(&args).code, 0);
    let find = Some(["[picture 16×9 png, 29 bytes, output:".to_owned(), "]".to_owned()]);
    let read = Answer { find, ..call("read", serde_json::json!({"path": "output:{found}"})) };
    server.restart((2..14).map(floods).chain([read]).collect());
    let mut args = vec!["resume", "--last", "-m", "look at this", "--image", &shape, "--config", "none"];
    args.extend(more.into_iter().chain(Wire::Chat.arguments(&server.base_url)));
    let called = place.start(&args);
    assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
    let is_fold = |event: &Event| matches!(&event.what, What::Folded(Folded { method: Method::Ledger { .. }, .. }));
    assert!(place.events().iter().any(is_fold));
    let seen: Vec<usize> = server.bodies().iter().map(|body| places(body).len()).collect();
    assert_eq!(seen.first(), Some(&1), "it stood there");
    assert_eq!(seen[seen.len() - 2..], [0, 1], "it went, and is there again");
}

#[test]
fn the_oldest_pictures_are_words_where_a_request_holds_no_more() {
    let (place, server) = (Place::new("crowded"), Server::start(Vec::new()));
    let count = |body: &str| body.matches("iVBORw0KGgo").count();
    let files: Vec<String> =
        (0..9).map(|number| put(&place, &format!("shape{number}.png"), &[PNG, &[number]].concat())).collect();
    let read = |number: usize| call("read", serde_json::json!({"path": format!("shape{number}.png")}));
    let find = Some(["read output:".to_owned(), " shows it again".to_owned()]);
    let again = Answer { find, ..call("read", serde_json::json!({"path": "output:{found}"})) };
    server.restart((0..9).map(read).chain([again]).collect());
    let (work, groq) =
        (place.work().display().to_string(), ["--model", "groq/scripted", "--key-env", "TEST_KEY", "--config", "none"]);
    let base_url = server.base_url_of("groq");
    let mut args = vec!["run", "what are they?", "--base-url", &base_url, "--workspace", &work, "--context", "200000"];
    args.extend(groq);
    let called = place.start(&args);
    assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{}", called.err);
    let bodies = server.bodies();
    let seen: Vec<usize> = bodies.iter().map(|body| count(body)).collect();
    assert_eq!(seen, [0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 2], "Groq takes three");
    for together in bodies.chunk_by(|one, next| count(one) < count(next)) {
        every_body_extends_the_one_before(together);
    }
    // Words stand for all but the last and the one that was read again: the eighth, as the latest that words stood for.
    let last = bodies.last().unwrap();
    assert_eq!(last.matches("no longer shown, for a request holds 3 pictures at most").count(), 8, "{last}");
    let asked = place.events().into_iter().filter(|event| matches!(event.what, What::Asked(_)));
    for (event, body) in asked.zip(&bodies) {
        let shown = place.start(&["show", "--last", "--prompt", &event.seq.to_string()]);
        assert!(shown.out.trim_end() == body, "the request at event {}: {}", event.seq, shown.err);
    }
    let mut args = vec!["run", "what are they?", "--base-url", &base_url, "--workspace", &work];
    args.extend(files[..4].iter().flat_map(|file| ["--image", file]).chain(groq));
    let called = place.start(&args);
    assert_eq!(called.code, 2, "{}", called.err);
    assert!(called.err.contains("`groq/scripted` takes 3 of these 4 pictures at once: give fewer --image"), "{}", called.err);
    let shown = place.start(&["models", "show", "anthropic/claude-haiku-4-5", "--config", "none"]);
    let line = "pictures at once   100 at most, 20 where one is larger than 2,000 pixels at a side";
    assert!(shown.out.contains(line), "{}", shown.out);
}

/// In the words of llama.cpp, Ollama and OpenRouter: github.com/ggml-org/llama.cpp/issues/15377 and 12947,
/// github.com/valentinfrlch/ha-llmvision/issues/691, github.com/NousResearch/hermes-agent/pull/23411.
#[test]
fn a_server_that_takes_no_pictures_says_so_with_any_status() {
    let cases = [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (500, "Failed to parse messages: Unsupported content part type: \"image_url\"; messages = []"),
        (500, "Failed to create new sequence: failed to process inputs: this model is missing data required for image input"),
        (404, "No endpoints found that support image input"),
    ];
    for (wire, (status, error)) in [Wire::Chat, Wire::Responses].into_iter().flat_map(|wire| cases.map(|case| (wire, case))) {
        let answers = serde_json::json!([
            {"calls": [{"name": "read", "arguments": {"path": "shape"}}]},
            {"status": status, "error": error}
        ]);
        let (place, server) = (Place::new(&format!("no-eyes-{wire:?}")), Server::start(script(&answers.to_string())));
        put(&place, "shape", PNG);
        let work = place.work().display().to_string();
        let mut args = vec!["run", "what is it?"];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&args);
        assert_eq!(server.faults(), 1);
        assert_eq!((called.code, called.out.as_str()), (0, "Done.\n"), "{error}: {}", called.err);
        let seen: Vec<_> = server.bodies().iter().map(|body| places(body).len()).collect();
        assert_eq!(seen, [0, 1, 0], "{error}: it is asked once with the picture and once without");
    }
}

#[test]
fn what_is_no_picture_for_the_model_is_refused_before_anything_begins() {
    let (place, server) = (Place::new("no-picture"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let gif = put(&place, "shape.gif", b"GIF89a\x10\0\x09\0\0\0\0");
    let large = put(&place, "large.png", &[PNG, &[0; 4_000_000]].concat());
    let words = put(&place, "words.png", b"words");
    let secret = put(&place, "secret.png", &[PNG, b"ghp_0123456789abcdefghijklmnopqrstuvwxyz"].concat());
    let missing = place.work().join("missing.png").display().to_string();
    let cases = [
        (&gif, Wire::Gemini, "takes no image/gif, so it would not see"),
        (&large, Wire::Chat, "make it smaller: 3932160 bytes are the most, and this picture has 4000029"),
        (&words, Wire::Chat, "words.png (--image): this is no picture in PNG, JPEG, GIF or WebP"),
        (&secret, Wire::Chat, "secret.png holds a secret: leave it out"),
        (&missing, Wire::Chat, "reading the picture"),
    ];
    for (path, wire, words) in cases {
        let mut args = vec!["run", "what is it?", "--image", path];
        args.extend(place.arguments_on(wire, &server, &work));
        let called = place.start(&args);
        assert_eq!(called.code, 2, "{path}: {}", called.err);
        assert!(called.err.contains(words), "{path}: {}", called.err);
    }
    assert!(server.bodies().is_empty());
    assert!(std::fs::read_dir(place.home().join("runs")).map_or(true, |mut runs| runs.next().is_none()), "no run is left");
}

#[test]
fn what_helps_a_picture_that_is_too_large_is_seen_at_a_terminal_of_80_columns() {
    let read = r#"[{"calls": [{"name": "read", "arguments": {"path": "large.png"}}]}]"#;
    let (place, server) = (Place::new("pictures-large"), Server::start(script(read)));
    put(&place, "large.png", &[PNG, &[0; 4_000_000]].concat());
    let work = place.work().display().to_string();
    let mut args = vec!["run", "what is it?"];
    args.extend(place.arguments(&server, &work));
    let called = place.at_terminal(&args, &[("TERM", "xterm")], &[("\n› ", &|| "/quit\n")]);
    let line = called.out.lines().find(|line| line.contains("[binary file, 4,000,029 bytes: ")).unwrap();
    assert!(line.contains(": make it smaller: 3932160 bytes are the most") && line.contains('…'), "{line}");
}

#[test]
fn a_terminal_that_can_is_shown_the_picture_and_another_its_line() {
    let read = r#"[{"calls": [{"name": "read", "arguments": {"path": "shape"}}]}]"#;
    let line = "[picture 16×9 png, 29 bytes]";
    let escape = format!("\u{1b}_Ga=T,f=100,q=2,r=1,m=0;{BASE64}\u{1b}\\");
    let cases = [
        ("kitty", vec![("TERM", "xterm-kitty")], 2),
        ("plain", vec![("TERM", "xterm")], 0),
        ("tmux", vec![("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux")], 0),
        ("no-colour", vec![("TERM", "xterm-kitty"), ("NO_COLOR", "1")], 0),
    ];
    for (name, variables, shown) in cases {
        let (place, server) = (Place::new(&format!("pictures-{name}")), Server::start(script(read)));
        let (shape, work) = (put(&place, "shape", PNG), place.work().display().to_string());
        let mut args = vec!["run", "what is it?", "--image", &shape];
        args.extend(place.arguments(&server, &work));
        let called = place.at_terminal(&args, &variables, &[("\n› ", &|| "/quit\n")]);
        assert_eq!(called.code, 0, "{}", called.out);
        assert_eq!(
            (called.out.matches(line).count(), called.out.matches(&escape).count()),
            (2, shown),
            "{name}: {:?}",
            called.out
        );
        let again = place.at_terminal(&["show", "--last"], &variables, &[]);
        assert_eq!((again.out.matches(line).count(), again.out.matches(&escape).count()), (2, shown), "{name}: {:?}", again.out);
        // Where nothing is a terminal, the line stands alone.
        assert!(!place.start(&["show", "--last"]).out.contains('\u{1b}'));
    }
}
