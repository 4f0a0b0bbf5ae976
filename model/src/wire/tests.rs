//! Each wire over its corpus: every file read, cut and split in every way.

use super::{Answer, Phase, Reading, Wire};
use crate::Heard;
use crate::trouble::Trouble;
use expect_test::expect_file;
use proptest::prelude::*;
use std::fmt::Write;
use std::sync::Mutex;
use trace::{Said, Timestamp, Usage};

/// Each wire, the folder of its corpus, and what ends its replies: a body without any of these is not whole.
const WIRES: &[(Wire, &str, &[&str])] = &[
    (Wire::OpenAiChat, "openai_chat", &["\"finish_reason\":\"", "[DONE]"]),
    (Wire::OpenAiResponses, "openai_responses", &["\"type\":\"response.completed\"", "\"type\":\"response.incomplete\""]),
    (Wire::AnthropicMessages, "anthropic_messages", &["\"message_stop\""]),
    (Wire::Gemini, "gemini", &["\"finishReason\":"]),
];

/// A raw answer of the corpus.
struct Raw {
    wire: Wire,
    name: String,
    status: u16,
    head: String,
    body: Vec<u8>,
}

fn corpora() -> Vec<Raw> {
    WIRES.iter().flat_map(|(wire, folder, _)| corpus(*wire, folder)).collect()
}

fn corpus(wire: Wire, folder: &str) -> Vec<Raw> {
    let folder = format!("{}/corpus/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "http")).collect();
    files.sort();
    let raw = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let body = if head.contains("chunked") { unchunked(&bytes[end + 4..]) } else { bytes[end + 4..].to_vec() };
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Raw { wire, name, status: head[9..12].parse().unwrap(), head, body }
    };
    files.iter().map(raw).collect()
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    body
}

/// The outcome, and all that was heard on the way, a line for each kind of thing in a row.
fn read<'a>(wire: Wire, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Result<Answer, Trouble>, Option<Usage>, Vec<String>) {
    let heard = Mutex::new(Vec::<String>::new());
    let listen = |word: Heard<'_>| {
        let mut heard = heard.lock().unwrap();
        let (kind, text) = match word {
            Heard::Text(text) => ("text ", text),
            Heard::Reasoning(text) => ("thought ", text),
            Heard::Call { name } => ("call ", name),
            Heard::Arguments { bytes } => {
                let before = heard.pop_if(|last| last.starts_with("arguments "));
                let before = before.map_or(0, |line| line["arguments ".len()..].parse().unwrap());
                return heard.push(format!("arguments {}", before + bytes));
            }
            Heard::Failed(_) | Heard::Waiting { .. } => unreachable!("a body knows no attempts and no waits"),
        };
        match heard.last_mut() {
            Some(last) if last.starts_with(kind) && kind != "call " => last.push_str(text),
            _ => heard.push(format!("{kind}{text}")),
        }
    };
    let mut reading = Reading::new(wire);
    for piece in pieces {
        reading.push(piece, &listen);
    }
    let (outcome, usage) = reading.finish(&listen);
    (outcome, usage, heard.into_inner().unwrap())
}

fn calls(outcome: &Result<Answer, Trouble>) -> Vec<Said> {
    let parts = outcome.iter().flat_map(|answer| answer.parts.clone());
    parts.filter(|part| matches!(part, Said::Call { .. })).collect()
}

#[test]
fn what_each_file_means() {
    for (wire, folder, _) in WIRES {
        let meaning: String = corpus(*wire, folder).iter().map(meaning).collect();
        expect_file![format!("../../corpus/{folder}/meaning.txt")].assert_eq(&meaning);
    }
}

fn meaning(Raw { wire, name, status, head, body }: &Raw) -> String {
    let mut out = format!("{name}\n");
    let mut line = |text: String| writeln!(out, "    {text}").unwrap();
    let trouble = |Trouble { kind, message, told }: &Trouble| {
        let told = told.map(|told| format!(" (told {told:?})")).unwrap_or_default();
        format!("{kind:?}{told}: {message}")
    };
    if *status != 200 {
        let header = |wanted: &str| head.lines().find_map(|line| line.strip_prefix(wanted)?.strip_prefix(": "));
        let told = wire.told(header, Timestamp::from_unix_millis(0));
        line(trouble(&wire.refusal(*status, told, body)));
        return out;
    }
    let (outcome, usage, heard) = read(*wire, [body.as_slice()]);
    let usage = usage.map_or("unknown".to_owned(), |usage| serde_json::to_string(&usage).unwrap());
    line(format!("heard {heard:?}"));
    match outcome {
        Ok(Answer { parts, stop, served: _, id: _ }) => {
            parts.iter().for_each(|part| line(serde_json::to_string(part).unwrap()));
            line(format!("{stop:?}, usage {usage}"));
        }
        Err(failed) => line(format!("{}; usage {usage}", trouble(&failed))),
    }
    out
}

#[test]
fn a_body_may_be_split_at_any_byte() {
    for Raw { wire, name, body, .. } in corpora() {
        let whole = read(wire, [body.as_slice()]);
        for at in 0..=body.len() {
            let (a, b) = body.split_at(at);
            assert_eq!(read(wire, [a, b]), whole, "{name} split at byte {at}");
        }
        assert_eq!(read(wire, body.chunks(1)), whole, "{name} byte by byte");
    }
}

#[test]
fn a_body_that_is_cut_gives_no_call_that_the_whole_does_not() {
    for (wire, folder, ends) in WIRES {
        for Raw { name, body, .. } in corpus(*wire, folder) {
            let whole = calls(&read(*wire, [body.as_slice()]).0);
            for end in 0..body.len() {
                let (outcome, ..) = read(*wire, [&body[..end]]);
                let text = String::from_utf8_lossy(&body[..end]);
                let ended = ends.iter().any(|mark| text.contains(mark)) || text.ends_with('}');
                assert!(ended || outcome.is_err(), "{name} cut at byte {end} counts as whole");
                let some = calls(&outcome);
                assert!(some.is_empty() || some == whole, "{name} cut at byte {end} gives {some:?}");
            }
        }
    }
}

#[test]
fn the_phase_tells_how_long_to_wait() {
    use Phase::{Done, Open, Stopped};
    let phases = |wire, folder| -> Vec<Phase> {
        let bytes = corpus(wire, folder).into_iter().find(|raw| raw.name == "text").unwrap().body;
        let text = String::from_utf8(bytes).unwrap();
        let mut reading = Reading::new(wire);
        let phase = |event: &str| {
            reading.push(event.as_bytes(), &|_| ());
            reading.phase()
        };
        text.replace("\r\n", "\n").split_inclusive("\n\n").map(phase).collect()
    };
    assert_eq!(phases(Wire::OpenAiChat, "openai_chat"), [Open, Open, Open, Stopped, Stopped, Done]);
    assert_eq!(phases(Wire::OpenAiResponses, "openai_responses"), [[Open; 9].as_slice(), &[Done]].concat());
    assert_eq!(phases(Wire::Gemini, "gemini"), [Open, Open, Stopped]);
    let messages = phases(Wire::AnthropicMessages, "anthropic_messages");
    assert_eq!(messages, [Open, Open, Open, Open, Open, Open, Stopped, Done]);
}

proptest! {
    #[test]
    fn a_body_may_come_in_any_pieces(file in any::<proptest::sample::Index>(), cuts in proptest::collection::vec(1usize..200, 1..40)) {
        let corpora = corpora();
        let Raw { wire, name, body, .. } = file.get(&corpora);
        let (mut rest, mut pieces) = (body.as_slice(), Vec::new());
        for cut in &cuts {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(read(*wire, pieces), read(*wire, [body.as_slice()]), "{}", name);
    }

    #[test]
    fn nothing_that_a_server_sends_is_a_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        for (wire, ..) in WIRES {
            read(*wire, [body.as_slice()]).0.ok();
            wire.refusal(500, None, &body);
        }
    }

    #[test]
    fn nor_a_file_with_damaged_bytes(file in any::<proptest::sample::Index>(), damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)) {
        let corpora = corpora();
        let Raw { wire, body, .. } = file.get(&corpora);
        let mut body = body.clone();
        prop_assume!(!body.is_empty());
        for (place, byte) in damage {
            let place = place.index(body.len());
            body[place] = byte;
        }
        read(*wire, [body.as_slice()]).0.ok();
        wire.refusal(400, None, &body);
    }
}

/// Reads `chunks` as the events of a stream.
fn events(wire: Wire, chunks: impl Iterator<Item = String>) -> (Result<Answer, Trouble>, Option<Usage>) {
    let pieces: Vec<String> = chunks.map(|chunk| format!("data: {chunk}\n\n")).collect();
    let (outcome, usage, _) = read(wire, pieces.iter().map(String::as_bytes));
    (outcome, usage)
}

#[test]
fn a_reply_without_end_is_given_up() {
    let listen = |_: Heard<'_>| ();
    let mut reading = Reading::new(Wire::AnthropicMessages);
    reading.push(b": alive\n", &listen);
    assert_eq!(reading.phase(), Phase::Open);
    reading.push(&vec![b':'; 128 << 20], &listen);
    assert_eq!(reading.phase(), Phase::Done);
    assert!(reading.finish(&listen).0.unwrap_err().message.contains("longer than 128 MiB"));
}

#[test]
fn a_reply_of_a_thousand_calls_is_enough() {
    let chat = |index| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"id":"a"}}]}}}}]}}"#);
    let (outcome, _) = events(Wire::OpenAiChat, (0..=1000).map(chat));
    assert!(outcome.unwrap_err().message.contains("more than 1,000 calls"));
    let (outcome, _) = events(Wire::OpenAiChat, (0..1000).map(chat).chain(["[DONE]".to_owned()]));
    assert_eq!(calls(&outcome).len(), 1000);

    let item = |index| {
        let item = r#"{"type":"function_call","call_id":"a","name":"b","arguments":"{}"}"#;
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let (outcome, _) = events(Wire::OpenAiResponses, (0..=1000).map(item));
    assert!(outcome.unwrap_err().message.contains("more than 1,000 items"));
    let end = [r#"{"type":"response.completed","response":{"status":"completed"}}"#.to_owned()];
    let (outcome, _) = events(Wire::OpenAiResponses, (0..1000).map(item).chain(end));
    assert_eq!(calls(&outcome).len(), 1000);

    // Of one that comes whole, nothing is left out in silence either.
    let output = vec![serde_json::json!({"type": "function_call", "call_id": "a", "name": "b", "arguments": "{}"}); 1001];
    let whole = |items: &[serde_json::Value]| serde_json::json!({"status": "completed", "output": items}).to_string();
    let (outcome, ..) = read(Wire::OpenAiResponses, [whole(&output).as_bytes()]);
    assert!(outcome.unwrap_err().message.contains("more than 1,000 items"));
    let (outcome, ..) = read(Wire::OpenAiResponses, [whole(&output[..1000]).as_bytes()]);
    assert_eq!(calls(&outcome).len(), 1000);

    let part = |_| r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"b"}}]}}]}"#.to_owned();
    let (outcome, _) = events(Wire::Gemini, (0..=1000).map(part));
    assert!(outcome.unwrap_err().message.contains("more than 1,000 calls"));
    let end = [r#"{"candidates":[{"finishReason":"STOP"}]}"#.to_owned()];
    let (outcome, _) = events(Wire::Gemini, (0..1000).map(part).chain(end));
    assert_eq!(calls(&outcome).len(), 1000);

    let block = |index| {
        let fields = format!(r#""index":{index},"content_block":{{"type":"tool_use","id":"a","name":"b","input":{{}}}}"#);
        let (start, stop) = ("content_block_start", "content_block_stop");
        [format!(r#"{{"type":"{start}",{fields}}}"#), format!(r#"{{"type":"{stop}","index":{index}}}"#)]
    };
    let (outcome, _) = events(Wire::AnthropicMessages, (0..=1000).flat_map(block));
    assert!(outcome.unwrap_err().message.contains("more than 1,000 blocks"));
    let end = [r#"{"type":"message_stop"}"#.to_owned()];
    let (outcome, _) = events(Wire::AnthropicMessages, (0..1000).flat_map(block).chain(end));
    assert_eq!(calls(&outcome).len(), 1000);
}

#[test]
fn a_usage_beyond_all_numbers_is_held_at_the_largest() {
    let chat = format!(r#"{{"usage":{{"prompt_tokens":{0},"completion_tokens":{0}}}}}"#, u64::MAX);
    let counts = format!(r#"{{"input_tokens":{0},"cache_read_input_tokens":{0},"output_tokens":{0}}}"#, u64::MAX);
    let messages = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{counts}}}"#);
    let counts = format!(r#"{{"input_tokens":{0},"output_tokens":{0}}}"#, u64::MAX);
    let responses = format!(r#"{{"type":"response.completed","response":{{"status":"completed","usage":{counts}}}}}"#);
    let counts = format!(r#"{{"promptTokenCount":{0},"thoughtsTokenCount":{0},"candidatesTokenCount":{0}}}"#, u64::MAX);
    let gemini = format!(r#"{{"candidates":[{{"finishReason":"STOP"}}],"usageMetadata":{counts}}}"#);
    let openai = [(Wire::OpenAiChat, chat), (Wire::OpenAiResponses, responses)];
    for (wire, usage) in openai.into_iter().chain([(Wire::AnthropicMessages, messages), (Wire::Gemini, gemini)]) {
        assert_eq!(events(wire, [usage].into_iter()).1.map(|usage| usage.total()), Some(u64::MAX));
    }
}
