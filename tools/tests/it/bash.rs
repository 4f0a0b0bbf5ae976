//! `bash` behind real walls: what it shows, what it carries over, what it kills, what goes on.

use crate::bench::{Bench, is_running};
use expect_test::{Expect, expect};
use serde_json::json;
use trace::{Status, text_of};

async fn check(bench: &Bench, command: &str, expected: Expect) {
    expected.assert_eq(&bench.told("bash", json!({ "command": command })).await);
}

#[tokio::test]
async fn output_and_ending_are_told() {
    let Some(bench) = Bench::new().await else { return };
    check(
        &bench,
        "echo out; echo err >&2",
        expect![[r#"
        ok: out
        err
    "#]],
    )
    .await;
    check(&bench, "true", expect!["ok: [no output]"]).await;
    check(
        &bench,
        "echo no; exit 3",
        expect![[r#"
        failed: no
        [exit code 3]"#]],
    )
    .await;
    check(&bench, "kill -9 $$", expect!["failed: [killed by signal 9]"]).await;
    check(
        &bench,
        "nosuchcommand",
        expect![[r#"
        failed: bash: line 1: nosuchcommand: command not found
        [exit code 127]"#]],
    )
    .await;
    check(
        &bench,
        "if",
        expect![[r#"
        failed: bash: eval: line 2: syntax error: unexpected end of file
        [exit code 2]"#]],
    )
    .await;
    let observed = bench.call("bash", json!({"command": "printf abc; exit 2"})).await;
    assert_eq!((observed.status, observed.exit_code, observed.bytes), (Status::Failed, Some(2), Some(3)));
}

#[tokio::test]
async fn directory_variables_and_functions_carry_over() {
    let Some(bench) = Bench::new().await else { return };
    check(
        &bench,
        "mkdir -p a/b && cd a/b && export X='1 2' && f() { echo \"f $X\"; }",
        expect!["ok: [now in TOP/workspace/a/b]"],
    )
    .await;
    check(
        &bench,
        "pwd; f",
        expect![[r#"
        ok: TOP/workspace/a/b
        f 1 2
    "#]],
    )
    .await;
    expect!["ok: made here (1 line)"].assert_eq(&bench.told("write", json!({"path": "here", "content": "x\n"})).await);
    assert_eq!(bench.get("a/b/here"), "x\n");
    let unchanged = bench.call("bash", json!({"command": "true"})).await;
    assert_eq!((unchanged.cwd, unchanged.shell), (None, None));
}

#[tokio::test]
async fn nothing_waits_for_input() {
    let Some(bench) = Bench::new().await else { return };
    check(
        &bench,
        "cat; echo read",
        expect![[r#"
        ok: read
    "#]],
    )
    .await;
    check(
        &bench,
        "read x </dev/tty",
        expect![[r#"
        failed: bash: line 1: /dev/tty: No such device or address
        [exit code 1]"#]],
    )
    .await;
}

#[tokio::test]
async fn a_background_child_holds_nothing_up_is_named_and_stopped() {
    let Some(bench) = Bench::new().await else { return };
    for command in
        ["sleep 71237 & echo started", "setsid sleep 71237 & echo started", "(yes >/dev/null; sleep 71237) & echo started"]
    {
        let observed = bench.call("bash", json!({ "command": command })).await;
        let text = text_of(&observed.content);
        assert!(text.starts_with("started\n[still running: c"), "{text}");
        let [child] = &observed.children[..] else { panic!("{text}") };
        let listed = bench.call("bash", json!({"command": "true"})).await;
        assert_eq!(listed.children.len(), 1, "{listed:?}");
        let stopped = bench.call("bash", json!({"stop": [child.name]})).await;
        assert_eq!(stopped.children, []);
        assert!(text_of(&stopped.content).starts_with(&format!("[{} was ", child.name)), "{stopped:?}");
        assert!(!is_running("sleep 71237"));
    }
    expect!["failed: [there is no child called `c9`]"]
        .assert_eq(&bench.told("bash", json!({"command": "", "stop": ["c9"]})).await);
    expect!["failed: there is no `command`"].assert_eq(&bench.told("bash", json!({"command": " "})).await);
}

#[tokio::test]
async fn what_a_child_goes_on_to_print_can_be_read() {
    let Some(bench) = Bench::new().await else { return };
    let observed =
        bench.call("bash", json!({"command": "mkfifo gate; (read x <gate; printf 'one\\rtwo\\n'; read x <gate) &"})).await;
    assert_eq!(observed.children.len(), 1, "{observed:?}");
    bench.call("bash", json!({"command": "echo >gate"})).await;
    let mut text = String::new();
    while !text.contains("two") {
        text = bench.told("read", json!({"path": "output:c1"})).await;
    }
    expect![[r#"
        ok: 1	two
    "#]]
    .assert_eq(&text);
    expect!["failed: there is no child called `c7`"].assert_eq(&bench.told("read", json!({"path": "output:c7"})).await);
}

#[tokio::test]
async fn a_timeout_kills_all_of_it_and_says_what() {
    let Some(bench) = Bench::new().await else { return };
    let told = bench
        .told(
            "bash",
            json!({"command": "bash -c 'trap \"\" TERM; echo begun; sleep 71238 & setsid sleep 71239 & wait'", "timeout": 1}),
        )
        .await;
    assert!(told.starts_with("timed_out: begun\n[timed out after 1 s; killed: "), "{told}");
    assert!(told.contains("sleep 71238") && told.contains("sleep 71239"), "{told}");
    assert!(!is_running("sleep 7123"));
}

#[tokio::test]
async fn a_command_has_no_more_time_than_the_run() {
    let Some(mut bench) = Bench::new().await else { return };
    bench.left_ms = Some(300);
    check(&bench, "sleep 71240", expect!["timed_out: [timed out after 0.3 s; killed: bash: sleep 71240; sleep 71240]"]).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_and_the_whole_is_kept() {
    let Some(bench) = Bench::new().await else { return };
    check(
        &bench,
        r"printf 'a\377\376b\0c\033[1mbold\033[0m 10%%\r20%%\n'",
        expect![[r#"
            ok: 20%
            [not text: 3 bytes shown as \xNN]"#]],
    )
    .await;
    let observed = bench.call("bash", json!({"command": r"printf 'a\377b'"})).await;
    assert_eq!(bench.blobs.get(&observed.blob.unwrap()).unwrap(), b"a\xffb");
    assert!(!observed.truncated);
}

#[tokio::test]
async fn of_a_huge_output_the_ends_are_shown_and_the_rest_can_be_read() {
    let Some(bench) = Bench::new().await else { return };
    let at = bench.next_at();
    let observed = bench.call("bash", json!({"command": "seq 1 4000000"})).await;
    let text = text_of(&observed.content);
    let bytes = 30_888_896u64;
    assert_eq!((observed.bytes, observed.truncated, observed.status), (Some(bytes), true, Status::Ok));
    assert!(text.len() < 12_200 && text.starts_with("1\n2\n") && text.ends_with("\n3999999\n4000000\n"), "{}", text.len());
    assert!(text.contains(&format!("[… 30,876,896 bytes left out; whole output: read output:{at} …]")), "{}", &text[5990..6100]);
    assert_eq!(bench.blobs.get(&observed.blob.unwrap()).unwrap().len() as u64, bytes);
    let page = json!({"path": format!("output:{at}"), "offset": 2_000_000, "limit": 2});
    expect![[r#"
        ok: 2000000	2000000
        2000001	2000001
        [lines 2000000 to 2000001 of 4000000; go on with offset 2000002]"#]]
    .assert_eq(&bench.told("read", page).await);
}

#[tokio::test]
async fn what_was_shown_whole_can_be_read_again_as_well() {
    let Some(bench) = Bench::new().await else { return };
    let at = bench.next_at();
    bench.call("bash", json!({"command": "echo one; echo two; false"})).await;
    expect![[r#"
        ok: 2	two
        3	[exit code 1]
        [lines 2 to 3, the last]"#]]
    .assert_eq(&bench.told("read", json!({"path": format!("output:{at}"), "offset": 2})).await);
    let none = json!({"path": "output:99"});
    expect!["failed: no output is kept as output:99"].assert_eq(&bench.told("read", none).await);
}

#[tokio::test]
async fn one_line_of_eight_megabytes_is_cut_and_all_of_it_can_be_reached() {
    let Some(bench) = Bench::new().await else { return };
    let at = bench.next_at();
    let observed = bench.call("bash", json!({"command": "head -c 8000000 /dev/zero | tr '\\0' x; printf END"})).await;
    let text = text_of(&observed.content);
    assert!(text.len() < 12_200 && text.ends_with("xxxEND"), "{}", text.len());
    assert!(text.contains("[… 7,988,003 bytes left out;"));
    let last = bench.told("read", json!({"path": format!("output:{at}"), "offset": 4001})).await;
    expect![[r#"
        ok: 4001	END
        [lines 4001 to 4001, the last]"#]]
    .assert_eq(&last);
}

#[tokio::test]
async fn of_more_than_64_mib_the_middle_is_missing_and_that_is_said() {
    let Some(bench) = Bench::new().await else { return };
    let observed = bench.call("bash", json!({"command": "head -c 80000000 /dev/zero | tr '\\0' y; echo; echo last"})).await;
    let text = text_of(&observed.content);
    let missing = "12,891,142";
    assert!(text.contains(&format!("shows it without {missing} in its middle …]")), "{}", &text[5990..6200]);
    let blob = bench.blobs.get(&observed.blob.unwrap()).unwrap();
    let word = format!("[… {missing} bytes are missing here");
    assert!(blob.len() < (64 << 20) + 200 && blob.ends_with(b"y\nlast\n"));
    assert!(blob[32 << 20..(32 << 20) + 60].windows(word.len()).any(|part| part == word.as_bytes()));
}

#[tokio::test]
async fn a_directory_that_is_gone_stops_nobody() {
    let Some(bench) = Bench::new().await else { return };
    bench.call("bash", json!({"command": "mkdir gone; cd gone"})).await;
    check(&bench, "rmdir ../gone", expect!["ok: [no output]"]).await;
    check(
        &bench,
        "pwd",
        expect![[r#"
        ok: bash: cd: TOP/workspace/gone: No such file or directory (os error 2); now in TOP/workspace
        TOP/workspace
        [now in TOP/workspace]"#]],
    )
    .await;
}
