//! A sandbox that is lost in the middle of a command.

use crate::bench::{Bench, lose_the_sandbox_of};
use serde_json::json;
use trace::{Status, text_of};

#[tokio::test]
async fn a_lost_sandbox_is_unavailable_for_every_tool() {
    let Some(bench) = Bench::new().await else { return };
    let command = bench.call("bash", json!({"command": "sleep 71243"}));
    let (lost, ()) = tokio::join!(command, lose_the_sandbox_of("sleep 71243"));
    assert_eq!(lost.status, Status::Unavailable, "{lost:?}");
    assert!(text_of(&lost.content).contains("the sandbox is gone"), "{lost:?}");
    for (tool, arguments) in [
        ("bash", json!({"command": "true"})),
        ("read", json!({"path": "a"})),
        ("write", json!({"path": "a", "content": ""})),
        ("edit", json!({"path": "a", "old": "a", "new": "b"})),
        ("search", json!({"pattern": "a"})),
    ] {
        let observed = bench.call(tool, arguments).await;
        assert_eq!(observed.status, Status::Unavailable, "{tool}: {observed:?}");
    }
}
