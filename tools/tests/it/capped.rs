//! Whatever a call is about, what the agent sees of it has a limit.

use crate::bench::Bench;
use serde_json::{Value, json};
use trace::{Status, text_of};

/// The status, and the bytes that the agent is shown.
async fn shown(bench: &Bench, tool: &str, arguments: Value) -> (Status, usize, String) {
    let observed = bench.call(tool, arguments).await;
    let text = text_of(&observed.content);
    (observed.status, text.len(), text)
}

#[tokio::test]
async fn lines_around_a_match_count_too() {
    let Some(bench) = Bench::new().await else { return };
    let lines = format!("{}\n", "nothing ".repeat(60)).repeat(20_000);
    bench.put("a.txt", format!("{lines}here\n{lines}"));
    for context in [30_000, u64::MAX] {
        let (status, length, text) = shown(&bench, "search", json!({"pattern": "here", "context": context})).await;
        assert_eq!(status, Status::Ok, "{text}");
        assert!(length <= bench.caps.read_bytes + 1000, "{length} bytes");
        assert!(text.contains("\n20001: here\n") && text.contains("there are more]"), "{text}");
    }
}

#[tokio::test]
async fn many_edited_places_are_not_all_listed() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("a.txt", "x\n".repeat(10_000));
    bench.call("read", json!({"path": "a.txt"})).await;
    let (status, length, text) = shown(&bench, "edit", json!({"path": "a.txt", "old": "x", "new": "y", "all": true})).await;
    assert_eq!((status, bench.get("a.txt")), (Status::Ok, "y\n".repeat(10_000)));
    assert!(length < 500 && text.contains("in 10000 places: lines 1, 2, 3,"), "{length} bytes");
}

#[tokio::test]
async fn many_processes_are_not_all_named() {
    let Some(bench) = Bench::new().await else { return };
    let command = "for _ in {1..60}; do sleep 1000 & done";
    let (status, length, text) = shown(&bench, "bash", json!({"command": command})).await;
    assert_eq!(status, Status::Ok);
    assert!(text.contains("still running: c1 ") && text.contains("more are running"), "{text}");
    assert!(length < 2_000, "{length} bytes");
}
