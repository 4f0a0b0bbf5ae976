//! `find` behind real walls: what is found, what is skipped, and where it ends.

use crate::bench::Bench;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

async fn check(bench: &Bench, arguments: Value, expected: Expect) {
    expected.assert_eq(&bench.told("find", arguments).await);
}

async fn bench() -> Option<Bench> {
    let bench = Bench::new().await?;
    for name in ["src/a.rs", "src/deep/b.rs", "src/deep/c.txt", "b.rs", ".github/ci.yml", ".git/config", "target/out.rs", "x.log"]
    {
        bench.put(name, "");
    }
    bench.put(".gitignore", "target/\n*.log\n");
    Some(bench)
}

#[tokio::test]
async fn a_glob_is_a_name_or_a_path() {
    let Some(bench) = bench().await else { return };
    check(
        &bench,
        json!({"glob": "*.rs"}),
        expect![[r#"
        ok: b.rs
        src/a.rs
        src/deep/b.rs"#]],
    )
    .await;
    check(&bench, json!({"glob": "src/*.rs"}), expect!["ok: src/a.rs"]).await;
    check(
        &bench,
        json!({"glob": "**/deep/*", "path": "src"}),
        expect![[r#"
        ok: src/deep/b.rs
        src/deep/c.txt"#]],
    )
    .await;
    check(&bench, json!({"glob": "!*.rs", "path": "src"}), expect!["ok: src/deep/c.txt"]).await;
    check(&bench, json!({"glob": "b.rs", "path": "src/deep/b.rs"}), expect!["ok: src/deep/b.rs"]).await;
    check(&bench, json!({"glob": "*.py"}), expect!["ok: [no file fits]"]).await;
    check(&bench, json!({"glob": "*", "path": "missing"}), expect!["failed: missing: there is no such file or folder here"])
        .await;
    check(
        &bench,
        json!({"glob": "a{"}),
        expect!["failed: `glob`: error parsing glob 'a{': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"],
    )
    .await;
}

#[tokio::test]
async fn what_is_ignored_is_found_when_asked_for_and_git_never() {
    let Some(bench) = bench().await else { return };
    check(
        &bench,
        json!({"glob": "*"}),
        expect![[r#"
        ok: .github/ci.yml
        .gitignore
        b.rs
        src/a.rs
        src/deep/b.rs
        src/deep/c.txt"#]],
    )
    .await;
    check(
        &bench,
        json!({"glob": "*", "all": true}),
        expect![[r#"
        ok: .github/ci.yml
        .gitignore
        b.rs
        src/a.rs
        src/deep/b.rs
        src/deep/c.txt
        target/out.rs
        x.log"#]],
    )
    .await;
}

#[tokio::test]
async fn links_are_named_and_not_followed() {
    let Some(bench) = bench().await else { return };
    std::fs::write(bench.outside("secret.rs"), "").unwrap();
    std::os::unix::fs::symlink(bench.outside(""), bench.path("src/out")).unwrap();
    std::os::unix::fs::symlink("a.rs", bench.path("src/link.rs")).unwrap();
    check(
        &bench,
        json!({"glob": "*", "path": "src"}),
        expect![[r#"
        ok: src/a.rs
        src/deep/b.rs
        src/deep/c.txt
        src/link.rs
        src/out"#]],
    )
    .await;
    // Where a link leads that is asked for itself is for the walls to say.
    check(&bench, json!({"glob": "*", "path": "src/out"}), expect![[r#"
        ok: [no file fits]
        [1 folder could not be read; the first: TOP/workspace/src/out: IO error for operation on TOP/workspace/src/out: No such file or directory (os error 2)]"#]]).await;
}

#[tokio::test]
async fn only_so_many_are_named_and_the_rest_is_counted() {
    let Some(bench) = Bench::new().await else { return };
    (0..1234).for_each(|n| bench.put(&format!("{n:04}"), ""));
    let told = bench.told("find", json!({"glob": "*"})).await;
    expect!["[1,034 more of 1,234 files; ask for a narrower glob or path]"].assert_eq(told.lines().last().unwrap());
    expect!["201"].assert_eq(&told.lines().count().to_string());
    let many = bench.call("find", json!({"glob": "*"})).await;
    assert!(many.truncated);
}

#[tokio::test]
async fn any_name_is_shown_so_that_it_can_be_asked_for() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("a\nb\x1b.txt", "");
    check(&bench, json!({"glob": "*.txt"}), expect![[r#"ok: a\x0ab\x1b.txt"#]]).await;
}
