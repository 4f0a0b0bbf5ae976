//! `search` behind real walls: what is found, what is skipped, and where it ends.

use crate::bench::Bench;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use trace::{Status, text_of};

async fn check(bench: &Bench, arguments: Value, expected: Expect) {
    expected.assert_eq(&bench.told("search", arguments).await);
}

async fn bench() -> Option<Bench> {
    let bench = Bench::new().await?;
    bench.put("src/a.rs", "fn one() {}\nfn two() {}\n// end\n");
    bench.put("src/b.txt", "one more\r\n");
    bench.put(".github/ci.yml", "one: two\n");
    bench.put(".git/config", "one\n");
    bench.put(".gitignore", "target/\n*.log\n");
    bench.put("target/out.rs", "fn one() {}\n");
    bench.put("x.log", "one\n");
    bench.put("binary", b"one\0one\n");
    Some(bench)
}

#[tokio::test]
async fn matches_stand_under_their_files() {
    let Some(bench) = bench().await else { return };
    check(
        &bench,
        json!({"pattern": "one"}),
        expect![[r#"
            ok: .github/ci.yml
            1: one: two
            src/a.rs
            1: fn one() {}
            src/b.txt
            1: one more"#]],
    )
    .await;
    check(
        &bench,
        json!({"pattern": r"^fn (one|two)\(", "glob": "*.rs", "context": 1}),
        expect![[r#"
        ok: src/a.rs
        1: fn one() {}
        2: fn two() {}
        3- // end"#]],
    )
    .await;
    check(
        &bench,
        json!({"pattern": "one", "glob": "!*.rs", "path": "src"}),
        expect![[r#"
            ok: src/b.txt
            1: one more"#]],
    )
    .await;
    check(
        &bench,
        json!({"pattern": "more$", "path": "src/b.txt"}),
        expect![[r#"
        ok: src/b.txt
        1: one more"#]],
    )
    .await;
    check(&bench, json!({"pattern": "nowhere to be found"}), expect!["ok: [no line matches]"]).await;
    check(
        &bench,
        json!({"pattern": "one", "path": "target"}),
        expect![[r#"
            ok: target/out.rs
            1: fn one() {}"#]],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_searched_for_is_said() {
    let Some(bench) = bench().await else { return };
    check(
        &bench,
        json!({"pattern": "("}),
        expect![[r#"
        failed: `pattern`: regex parse error:
            (?:()
            ^
        error: unclosed group"#]],
    )
    .await;
    check(&bench, json!({"pattern": "x", "path": "missing"}), expect!["failed: missing: there is no such file or folder here"])
        .await;
    check(
        &bench,
        json!({"pattern": "x", "glob": "[a"}),
        expect!["failed: `glob`: error parsing glob '[a': unclosed character class; missing ']'"],
    )
    .await;
}

#[tokio::test]
async fn the_search_ends_at_its_limit_and_cuts_long_lines() {
    let Some(bench) = bench().await else { return };
    bench.put("many", "hit\n".repeat(500));
    check(
        &bench,
        json!({"pattern": "hit", "limit": 2}),
        expect![[r#"
            ok: many
            1: hit
            2: hit
            [2 matching lines in 1 file so far; there are more]"#]],
    )
    .await;
    bench.put("long", format!("{}hit{}\n", "é".repeat(3000), "x".repeat(3000)));
    let told = bench.told("search", json!({"pattern": "hit", "path": "long"})).await;
    assert!(told.contains("1: …é") && told.contains("éhitx") && told.ends_with("x…") && told.len() < 500, "{told}");
}

#[tokio::test]
async fn paths_are_relative_to_the_current_directory() {
    let Some(bench) = bench().await else { return };
    bench.call("bash", json!({"command": "cd src"})).await;
    check(
        &bench,
        json!({"pattern": "two"}),
        expect![[r#"
            ok: a.rs
            2: fn two() {}"#]],
    )
    .await;
    check(
        &bench,
        json!({"pattern": "two", "path": "../.github"}),
        expect![[r#"
            ok: ../.github/ci.yml
            1: one: two"#]],
    )
    .await;
}

#[tokio::test]
async fn of_a_big_folder_the_ignored_part_is_not_entered() {
    let Some(bench) = bench().await else { return };
    bench.put("one-more", "needle\n");
    let made = "mkdir target/big && cd target/big && seq -f f%g 5000 | xargs touch && echo needle >f1 && chmod 0 . && cd ../..";
    let made = bench.call("bash", json!({ "command": made })).await;
    assert_eq!(made.status, Status::Ok, "{made:?}");
    // Were the folder entered, it would be counted as unreadable for an unprivileged user, and its match shown to root.
    check(
        &bench,
        json!({"pattern": "needle"}),
        expect![[r#"
            ok: one-more
            1: needle"#]],
    )
    .await;
    bench.call("bash", json!({"command": "chmod 700 target/big"})).await;
    let found = bench.call("search", json!({"pattern": "needle", "path": "target/big"})).await;
    assert!(text_of(&found.content).contains("target/big/f1\n1: needle"), "{found:?}");
}
