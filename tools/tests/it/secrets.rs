//! Secrets in files and outputs: hidden before anything is cut, put back where the agent writes.

use crate::bench::Bench;
use expect_test::{Expect, expect};
use serde_json::json;

const TOKEN: &str = "0123456789-ABCDEFGHIJ";

async fn bench() -> Option<Bench> {
    let bench = Bench::new().await?;
    bench.secrets.grant("TOKEN", TOKEN).unwrap();
    bench.secrets.know_own("OPENAI_API_KEY", "key-of-the-engine");
    Some(bench)
}

/// What is told, with placeholders cut to their kind.
fn short(text: &str) -> String {
    let mut pieces = text.split("<secret:");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| format!("{all}<{}", piece.replacen(&piece[piece.find(':').unwrap()..][..9], "", 1)))
}

fn private_key(line_end: &str) -> String {
    let line = "MIIEfakefakefakefakefakefakefakefakefakefakefakefakefakefakefake";
    ["-----BEGIN PRIVATE KEY-----", line, line, "fake==", "-----END PRIVATE KEY-----"].join(line_end)
}

fn nothing_of(secret: &str, text: &str) {
    for piece in secret.as_bytes().windows(8) {
        let piece = std::str::from_utf8(piece).unwrap();
        assert!(!text.contains(piece), "{piece} in {text}");
    }
}

#[tokio::test]
async fn a_long_line_is_cut_after_its_secrets_are_hidden() {
    let Some(bench) = bench().await else { return };
    // The window of `read` ends after 2,000 bytes of a line, that of `search` begins 100 bytes before a match.
    for at in (1970..2005).chain(4890..4925).step_by(4) {
        bench.put("long.txt", format!("{}{TOKEN}{} needle\n", "x".repeat(at), "y".repeat(5000 - at)));
        nothing_of(TOKEN, &bench.told("read", json!({"path": "long.txt"})).await);
        nothing_of(TOKEN, &bench.told("search", json!({"pattern": "needle"})).await);
    }
}

#[tokio::test]
async fn lines_keep_their_numbers() {
    let Some(bench) = bench().await else { return };
    bench.put("key.pem", format!("first\n{}\nlast {TOKEN}\n", private_key("\n")));
    let check = |told: String, expected: Expect| expected.assert_eq(&short(&told));
    check(
        bench.told("read", json!({"path": "key.pem"})).await,
        expect![[r#"
        ok: 1	first
        2	<private-key>
        7	last <TOKEN>"#]],
    );
    check(
        bench.told("read", json!({"path": "key.pem", "offset": 4})).await,
        expect![[r#"
        ok: 2	<private-key>
        7	last <TOKEN>
        [lines 4 to 7, the last]"#]],
    );
    check(
        bench.told("read", json!({"path": "key.pem", "offset": 7})).await,
        expect![[r#"
        ok: 7	last <TOKEN>
        [lines 7 to 7, the last]"#]],
    );
    check(
        bench.told("search", json!({"pattern": "last|fake==|0123", "context": 1})).await,
        expect![[r#"
        ok: key.pem
        4- <private-key>
        5: <private-key>
        6- <private-key>
        7: last <TOKEN>"#]],
    );
}

#[tokio::test]
async fn what_is_written_with_a_placeholder_holds_the_value() {
    let Some(bench) = bench().await else { return };
    let crlf = format!("a = {TOKEN}\r\n{}\r\nb = 1\r\n", private_key("\r\n"));
    bench.put("crlf.txt", &crlf);
    let shown = bench.told("read", json!({"path": "crlf.txt"})).await;
    let place = |kind: &str| {
        let at = shown.find(&format!("<secret:{kind}:")).unwrap();
        shown[at..=at + shown[at..].find('>').unwrap()].to_owned()
    };
    let (token, key) = (place("TOKEN"), place("private-key"));
    let told = bench
        .told("edit", json!({"path": "crlf.txt", "old": format!("{key}\nb = 1"), "new": format!("{key}\nb = {token}")}))
        .await;
    assert_eq!(told, "ok: edited crlf.txt: line 7");
    assert_eq!(bench.get("crlf.txt"), crlf.replace("b = 1", &format!("b = {TOKEN}")));
    let told = bench.told("write", json!({"path": format!("{token}.txt"), "content": format!("{token}{token}")})).await;
    assert_eq!(told, format!("ok: made {token}.txt (1 line)"));
    assert_eq!(bench.get(&format!("{TOKEN}.txt")), format!("{TOKEN}{TOKEN}"));
    // A passage that fits only without its white space is shown as it is then.
    bench.put("loose.txt", format!("if x:\n    y = {TOKEN}\n"));
    bench.told("read", json!({"path": "loose.txt"})).await;
    let told =
        bench.told("edit", json!({"path": "loose.txt", "old": format!("y  =  {token}"), "new": format!("z = {token}")})).await;
    assert!(told.contains("z = <secret:TOKEN:"), "{told}");
    nothing_of(TOKEN, &told);
}

#[tokio::test]
async fn a_key_of_the_engines_own_is_neither_written_nor_run_nor_restored() {
    let Some(bench) = bench().await else { return };
    bench.put(".env", "KEY=key-of-the-engine\n");
    let shown = bench.told("read", json!({"path": ".env"})).await;
    let own = &shown[shown.find("<secret:").unwrap()..];
    for (name, arguments) in [
        ("write", json!({"path": "x", "content": own})),
        ("write", json!({"path": own, "content": "x"})),
        ("edit", json!({"path": ".env", "old": own, "new": "x"})),
        ("bash", json!({"command": format!("echo {own} > x")})),
    ] {
        let told = bench.told(name, arguments).await;
        assert!(told.starts_with("denied: <secret:OPENAI_API_KEY:"), "{told}");
    }
    let told = bench.told("bash", json!({"command": ". ./.env; export KEY; ls -A"})).await;
    assert_eq!(told, "ok: .env\n");
    let told = bench.told("bash", json!({"command": "echo ${KEY-unset}"})).await;
    assert!(told.starts_with("ok: unset\n[KEY is not restored: <secret:OPENAI_API_KEY:"), "{told}");
}

#[tokio::test]
async fn what_a_child_prints_later_is_hidden_also_where_its_beginning_is_gone() {
    let Some(bench) = bench().await else { return };
    let flood = "(read go <go; for n in {1..20000}; do echo \"line $n: $TOKEN and $TOKEN\"; done; echo the end; echo done >done; sleep 300) & echo begun";
    bench.told("bash", json!({"command": format!("mkfifo go done; {flood}")})).await;
    bench.told("bash", json!({"command": "echo go > go"})).await;
    for offset in [1, 1, 5000, 5000] {
        nothing_of(TOKEN, &bench.told("read", json!({"path": "output:c1", "offset": offset})).await);
    }
    bench.told("bash", json!({"command": "read done <done"})).await;
    let told = bench.told("read", json!({"path": "output:c1", "limit": 3})).await;
    assert!(told.starts_with("ok: [before that, ") && told.contains("not kept]\n1\tline "), "{told}");
    nothing_of(TOKEN, &told);
}
