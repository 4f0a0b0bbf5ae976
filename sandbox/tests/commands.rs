//! Commands: how they end, what they print, what they cannot wait for, and that nothing of them is left.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use expect_test::expect;
use sandbox::Kind;
use support::{Folders, run};

const KINDS: [Kind; 3] = [Kind::Native, Kind::Reduced, Kind::Host];

#[tokio::test]
async fn exit_codes_and_output_come_as_they_are() {
    for kind in KINDS {
        let folders = Folders::new();
        let environment = folders.environment(kind).await.unwrap();
        let told = run(&environment, "echo out; echo err >&2; echo out again; nosuchcommand; exit 3").await.told();
        expect![[r#"
            out
            err
            out again
            bash: line 1: nosuchcommand: command not found
            exit 3
        "#]]
        .assert_eq(&told);
        environment.close().await;
    }
}
