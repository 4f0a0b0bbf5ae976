//! What must be hidden, what must not, and that no piece of a value comes through.

mod shaped;

use super::*;
use crate::secrets::Opaque;
use expect_test::{Expect, expect};
use proptest::prelude::*;

const OWN: &str = "own-key-0123456789";
const TRICKY: &str = "pa\"ss\\wo/rd\n+é";

fn secrets() -> Secrets {
    let secrets = Secrets::of_run(&MachineKey::fixed([7; 32]), &"run-1".parse().unwrap());
    secrets.know_own("OPENAI_API_KEY", OWN);
    secrets.grant("DB_PASSWORD", TRICKY).unwrap();
    secrets
}

/// The text with placeholders cut to their kind.
fn kinds(text: &str) -> String {
    let hidden = secrets().hide(text).into_owned();
    let mut short = String::new();
    let mut done = 0;
    for (place, _) in placeholders(&hidden) {
        short.push_str(&hidden[done..place.end - 10]);
        short.push('>');
        done = place.end;
    }
    short + &hidden[done..]
}

/// A token's letters: no word, no order, many of them.
fn letters(count: usize) -> String {
    "Xq7Rk2ZpL9vTn4WbYd6Hs3Gf8Jc5Mt1Ne0Ua".chars().cycle().take(count).collect()
}

fn key(lines: usize) -> String {
    let line = letters(64);
    format!("-----BEGIN RSA PRIVATE KEY-----\n{}abcd/+12==\n-----END RSA PRIVATE KEY-----", format!("{line}\n").repeat(lines))
}

#[test]
fn a_known_value_is_hidden_in_every_form() {
    let check = |text: &str, expected: Expect| expected.assert_eq(&kinds(text));
    let json = |text: &str| serde_json::Value::from(text).to_string();
    check(&format!("x{OWN}y"), expect!["x<secret:OPENAI_API_KEY>y"]);
    check(&format!("x{TRICKY}y"), expect!["x<secret:DB_PASSWORD>y"]);
    check(&json(TRICKY), expect![[r#""<secret:DB_PASSWORD>""#]]);
    check(&json(&json(TRICKY)), expect![[r#""\"<secret:DB_PASSWORD>\"""#]]);
    check(&json(&json(&json(TRICKY))), expect![[r#""\"\\\"<secret:DB_PASSWORD>\\\"\"""#]]);
    check(&json(TRICKY).replace('/', "\\/"), expect![[r#""<secret:DB_PASSWORD>""#]]);
    check(
        "?p=pa%22ss%5Cwo%2Frd%0A%2B%C3%A9&x=pa%22ss%5cwo%2frd%0a%2b%c3%a9",
        expect!["?p=<secret:DB_PASSWORD>&x=<secret:DB_PASSWORD>"],
    );
}

#[test]
fn a_part_of_a_value_of_several_lines_is_hidden_by_its_long_lines() {
    let secrets = secrets();
    let (first, second) = ("first line of a value 0123456", "and its second one, 89abcdef");
    let value = format!("-----BEGIN OF SOMETHING-----\n{first}\r\n\t{second}\nshort\n");
    secrets.grant("SEVERAL", &value).unwrap();
    let hidden = secrets.hide(&format!("2:\t{second};")).into_owned();
    assert!(hidden.starts_with("2:\t<secret:SEVERAL:") && hidden.ends_with(">;"), "{hidden}");
    assert_eq!(secrets.put_back(&hidden, Author::Agent).unwrap(), format!("2:\t{second};"));
    assert_eq!(secrets.places(value.as_bytes()).len(), 1, "the whole is one");
    for text in ["short", "-----BEGIN OF SOMETHING-----"] {
        assert_eq!(secrets.hide(text), text);
    }
    secrets.know_own("MISTRAL_API_KEY", &format!("{OWN}\nanother line of it, 0123456789"));
    let hidden = secrets.hide("another line of it, 0123456789").into_owned();
    assert!(matches!(secrets.put_back(&hidden, Author::Agent), Err(Withheld::Engines(_))), "{hidden}");
}

#[test]
fn a_part_of_a_private_key_is_hidden_once_the_key_was_met() {
    let lines = [letters(64), letters(70)[6..].to_owned(), letters(64).to_lowercase()];
    let whole = format!("-----BEGIN PRIVATE KEY-----\n{}\nabcd==\n-----END PRIVATE KEY-----\n", lines.join("\n"));
    let part = lines[1..].join("\n");
    let written = serde_json::Value::from(whole.clone()).to_string();
    for met in [&whole, &written, &serde_json::Value::from(written.clone()).to_string()] {
        let engine = secrets();
        assert_eq!(engine.hide(&part), part, "nothing tells what it is");
        let worker = Secrets::of_request(engine.for_request());
        assert!(worker.hide(met).contains("<secret:private-key:"));
        engine.meet(worker.met());
        for secrets in [&engine, &worker] {
            let hidden = secrets.hide(&part).into_owned();
            assert!(lines.iter().all(|line| !hidden.contains(line.as_str())), "{hidden}");
            assert_eq!(placeholders(&hidden).count(), 2, "{hidden}");
            assert_eq!(secrets.put_back(&hidden, Author::Agent).unwrap(), part);
            assert_eq!(secrets.places(whole.as_bytes()).len(), 1, "the whole is one");
        }
    }
}

#[test]
fn a_key_of_one_long_line_is_known_by_its_pieces() {
    let secrets = secrets();
    let line = letters(36) + &letters(300).to_uppercase() + &letters(36).to_lowercase();
    secrets.hide(&format!("-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----"));
    let hidden = secrets.hide(&line).into_owned();
    assert_eq!(secrets.places(line.as_bytes()).iter().map(|(place, _)| place.len()).sum::<usize>(), line.len(), "{hidden}");
    assert_eq!(secrets.put_back(&hidden, Author::Agent).unwrap(), line);
}

#[test]
fn lines_of_many_keys_are_remembered_up_to_a_number() {
    let secrets = secrets();
    let line = |number: usize| format!("{number:064}");
    for key in 0..200 {
        let lines: Vec<String> = (0..10).map(|at| line(key * 10 + at)).collect();
        secrets.hide(&format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", lines.join("\n")));
    }
    assert_eq!(secrets.finder().known.len(), MOST_KNOWN);
    assert!(secrets.hide(&line(7)).starts_with("<secret:private-key:"));
}

#[test]
fn a_placeholder_stands_for_the_very_bytes() {
    let secrets = secrets();
    let token = format!("ghp_{}", letters(36));
    for text in [format!("a {token} b"), TRICKY.to_owned(), serde_json::Value::from(TRICKY).to_string(), key(5)] {
        let hidden = secrets.hide(&text).into_owned();
        assert_ne!(hidden, text);
        assert_eq!(secrets.hide(&hidden), hidden, "what is hidden holds no secret");
        assert_eq!(secrets.put_back(&hidden, Author::Agent).unwrap(), text);
    }
}

#[test]
fn a_key_of_the_engines_own_is_not_put_back() {
    let check = |text: &str, author: Author, expected: Expect| {
        let secrets = secrets();
        let hidden = secrets.hide(text).into_owned();
        expected.assert_eq(&match secrets.put_back(&hidden, author) {
            Ok(text) => format!("put back: {text}"),
            Err(withheld) => withheld.to_string(),
        });
    };
    check(
        OWN,
        Author::Agent,
        expect![
            "<secret:OPENAI_API_KEY:3fe99166> is a key of the engine's own and is not given out: leave it where it is, and change only what is around it"
        ],
    );
    check(OWN, Author::Person, expect!["put back: own-key-0123456789"]);
    check(
        "<secret:github-token:0123abcd>",
        Author::Agent,
        expect![[
            r#"secret not available: this session has met no value of <secret:github-token:0123abcd>. Read it again where it lies and copy what stands for it; a text that only looks like this can be made with printf"#
        ]],
    );
    check(
        "<secret:x:0123abc> <secret::0123abcd> <secret:x:0123ABCD> <secret:x y:0123abcd>",
        Author::Agent,
        expect!["put back: <secret:x:0123abc> <secret::0123abcd> <secret:x:0123ABCD> <secret:x y:0123abcd>"],
    );
}

#[test]
fn a_value_that_becomes_known_is_hidden_from_then_on_and_a_granted_one_is_the_runs() {
    let secrets = secrets();
    assert_eq!(secrets.hide("later-value-1"), "later-value-1");
    secrets.grant("LATER", "later-value-1").unwrap();
    assert!(secrets.hide("later-value-1").starts_with("<secret:LATER:"));
    assert_eq!(secrets.variables().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["DB_PASSWORD", "LATER"]);
    let hidden = secrets.hide(OWN).into_owned();
    secrets.grant("MINE", OWN).unwrap();
    assert_eq!(secrets.put_back(&hidden, Author::Agent).unwrap(), OWN);
    let short = secrets.grant("PIN", "1234567").unwrap_err().to_string();
    expect!["the value of PIN has fewer than 8 bytes: so short a value cannot be kept out of texts"].assert_eq(&short);
    secrets.know_own("OLLAMA_API_KEY", "x");
    assert_eq!(secrets.hide("x"), "x");
}

#[test]
fn runs_and_machines_have_placeholders_of_their_own() {
    let hidden = |key: u8, run: &str| {
        let secrets = Secrets::of_run(&MachineKey::fixed([key; 32]), &run.parse().unwrap());
        secrets.hide(&format!("ghp_{}", letters(36))).into_owned()
    };
    assert_eq!(hidden(1, "a"), hidden(1, "a"));
    assert_ne!(hidden(1, "a"), hidden(1, "b"));
    assert_ne!(hidden(1, "a"), hidden(2, "a"));
}

#[test]
fn a_worker_hides_as_its_engine_does_and_tells_what_it_met() {
    let engine = secrets();
    let token = format!("ghp_{}", letters(36));
    let request = serde_json::to_string(&engine.for_request()).unwrap();
    let worker = Secrets::of_request(serde_json::from_str(&request).unwrap());
    let hidden = worker.hide(&format!("{OWN} {token}")).into_owned();
    let answer = serde_json::to_string(&worker.met()).unwrap();
    assert_eq!(
        engine.put_back(&hidden[hidden.len() - 32..], Author::Agent).unwrap_err().to_string().split(':').next(),
        Some("secret not available")
    );
    engine.meet(serde_json::from_str(&answer).unwrap());
    let (own, met) = hidden.split_once(' ').unwrap();
    assert_eq!(engine.put_back(met, Author::Agent).unwrap(), token);
    assert!(matches!(engine.put_back(own, Author::Agent), Err(Withheld::Engines(_))));
}

#[test]
fn what_was_cut_off_ends_before_a_secret_begins() {
    let secrets = secrets();
    for cut in 1..OWN.len() {
        assert_eq!(secrets.hide_cut(&format!("run {}", &OWN[..cut])), "run ");
    }
    assert_eq!(secrets.hide_cut(&format!("token ghp_{}", letters(10))), "token ");
    assert_eq!(secrets.hide_cut("a whole line\n"), "a whole line\n");
}

#[test]
fn nothing_shows_a_value_by_its_debug_form() {
    let secrets = secrets();
    let text = format!("{secrets:?} {:?}", secrets.met());
    assert!(!text.contains("own-key") && !text.contains("pa\"ss"), "{text}");
}

#[test]
fn json_is_hidden_in_its_strings() {
    let secrets = secrets();
    let check = |json: serde_json::Value, opaque: Opaque, expected: Expect| {
        let hidden = secrets.hide_json(&json.to_string(), opaque).unwrap();
        expected.assert_eq(&hidden.map_or("nothing".to_owned(), |value| value.to_string()));
    };
    let arguments = serde_json::json!({"content": TRICKY}).to_string();
    check(
        serde_json::json!({"raw": arguments, "arguments": {"content": TRICKY}}),
        Opaque::Absent,
        expect![[
            r#"{"arguments":{"content":"<secret:DB_PASSWORD:bfecdaa2>"},"raw":"{\"content\":\"<secret:DB_PASSWORD:bfecdaa2>\"}"}"#
        ]],
    );
    check(
        serde_json::json!({"raw": format!("{{\"broken\": {OWN}")}),
        Opaque::Absent,
        expect![[r#"{"raw":"{\"broken\": <secret:OPENAI_API_KEY:3fe99166>"}"#]],
    );
    check(
        serde_json::json!({OWN: 1, "b": ["é", 2, null]}),
        Opaque::Absent,
        expect![[r#"{"<secret:OPENAI_API_KEY:3fe99166>":1,"b":["é",2,null]}"#]],
    );
    check(serde_json::json!({"text": "nothing", "parts": []}), Opaque::Absent, expect!["nothing"]);
    let parts = serde_json::json!({"parts": [{"type": "opaque", "json": OWN}, {"type": "text", "text": OWN}]});
    check(
        parts.clone(),
        Opaque::Exempt,
        expect![[
            r#"{"parts":[{"json":"own-key-0123456789","type":"opaque"},{"text":"<secret:OPENAI_API_KEY:3fe99166>","type":"text"}]}"#
        ]],
    );
    check(
        parts,
        Opaque::Absent,
        expect![[
            r#"{"parts":[{"json":"<secret:OPENAI_API_KEY:3fe99166>","type":"opaque"},{"text":"<secret:OPENAI_API_KEY:3fe99166>","type":"text"}]}"#
        ]],
    );
}

#[test]
fn fifty_first_uses_agree_on_one_key() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("deep/home");
    let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
        let uses: Vec<_> = (0..50).map(|_| scope.spawn(|| MachineKey::kept(&folder).unwrap().of("run"))).collect();
        uses.into_iter().map(|used| used.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["key"]);
    assert_eq!(std::fs::metadata(folder.join("key")).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(folder.join("key"), "short").unwrap();
    assert!(matches!(MachineKey::kept(&folder), Err(KeyError::NoKey(_))));
}

/// Texts with secrets planted in them, and the secrets.
fn planted() -> impl Strategy<Value = (String, Vec<String>)> {
    let filler = prop_oneof![
        3 => "[a-z0-9 _=:\"/\\\\\n-]{0,20}",
        1 => prop::sample::select(vec!["sk-", "gh", "ghp_", "own-key", "own-key-01234567", "AKI", "pa\"s", "-----", "-----BEGIN ", "<secret:", "glpat-x", "é"])
            .prop_map(str::to_owned),
    ];
    // A letter before some of these would make them a part of a word.
    let secret = prop_oneof![
        Just(OWN.to_owned()),
        Just(TRICKY.to_owned()),
        (36usize..60).prop_map(|count| format!("ghp_{}", letters(count))),
        (20usize..60).prop_map(|count| format!("\u{0}sk-{}", letters(count))),
        Just("\u{0}AKIAIOSFODNN7EXAMPLE\u{0}".to_owned()),
        (1usize..6).prop_map(|lines| format!("{}\n", key(lines))),
        // Two values that share some bytes.
        Just(format!("{OWN}{OWN}")),
    ];
    prop::collection::vec((filler, prop::option::of(secret)), 1..8).prop_map(|pieces| {
        let mut text = String::new();
        let mut values = Vec::new();
        for (filler, secret) in pieces {
            text.push_str(&filler);
            if let Some(secret) = secret {
                // A run of letters goes on where more of them follow.
                text.push_str(&format!("{secret}\u{0}"));
                values.push(secret.trim_matches('\u{0}').trim_end().to_owned());
            }
        }
        (text, values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn pieces_change_nothing((text, _) in planted(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let secrets = secrets();
        let bytes = text.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let hidden = |pieces: Vec<&[u8]>| {
            let (mut stream, mut hidden) = (secrets.stream(), Vec::new());
            for piece in pieces {
                stream.push(piece, &mut |piece| hidden.extend_from_slice(piece.shown()));
            }
            stream.finish(&mut |piece| hidden.extend_from_slice(piece.shown()));
            hidden
        };
        let whole = hidden(vec![bytes]);
        prop_assert_eq!(&hidden(at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()), &whole);
        prop_assert_eq!(&hidden(bytes.chunks(1).collect()), &whole);
        prop_assert_eq!(secrets.hide(&text).into_owned().into_bytes(), whole);
    }

    #[test]
    fn no_piece_of_a_value_comes_through((text, values) in planted()) {
        let secrets = secrets();
        let hidden = secrets.hide(&text).into_owned();
        for value in values {
            for piece in value.as_bytes().windows(8) {
                let there = hidden.as_bytes().windows(8).any(|window| window == piece);
                // What was no secret where it stood is let through.
                let elsewhere = text.replace(&value, "").as_bytes().windows(8).any(|window| window == piece);
                prop_assert!(!there || elsewhere, "{:?} in {hidden:?} of {text:?}", String::from_utf8_lossy(piece));
            }
        }
        prop_assert_eq!(secrets.put_back(&hidden, Author::Person).map(|text| text.into_owned()), Ok(text));
    }

    #[test]
    fn what_is_held_is_bounded(letter in "[a-zA-Z=-]", prefix in prop::sample::select(vec!["", "ghp_", "sk-", "-----BEGIN PRIVATE KEY-----\n"])) {
        let secrets = secrets();
        let (mut stream, mut passed) = (secrets.stream(), 0);
        let mut taken = prefix.len();
        stream.push(prefix.as_bytes(), &mut |_| {});
        for _ in 0..40 {
            stream.push(letter.repeat(8192).as_bytes(), &mut |piece| passed += match piece { Piece::Plain(bytes) => bytes.len(), Piece::Hidden { bytes, .. } => bytes });
            taken += 8192;
            prop_assert!(taken - passed <= shapes::PIECE + 8192 + 4096, "{} held", taken - passed);
        }
    }
}
