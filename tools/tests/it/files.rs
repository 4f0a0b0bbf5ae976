//! `read`, `write` and `edit` behind real walls: what is shown, what is changed, and what is refused with which words.

use crate::bench::Bench;
use expect_test::{Expect, expect};
use sandbox::Kind;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use trace::{Grant, Part, Sight, Status};

async fn check(bench: &Bench, name: &str, arguments: Value, expected: Expect) {
    expected.assert_eq(&bench.told(name, arguments).await);
}

#[tokio::test]
async fn a_file_is_shown_with_numbers_in_parts() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("a.txt", "one\ntwo\nthree\n");
    check(
        &bench,
        "read",
        json!({"path": "a.txt"}),
        expect![[r#"
        ok: 1	one
        2	two
        3	three"#]],
    )
    .await;
    check(
        &bench,
        "read",
        json!({"path": "a.txt", "offset": 2, "limit": 1}),
        expect![[r#"
        ok: 2	two
        [lines 2 to 2 of 3; go on with offset 3]"#]],
    )
    .await;
    check(
        &bench,
        "read",
        json!({"path": "a.txt", "offset": 3}),
        expect![[r#"
        ok: 3	three
        [lines 3 to 3, the last]"#]],
    )
    .await;
    check(&bench, "read", json!({"path": "a.txt", "offset": 9}), expect!["ok: [there are only 3 lines]"]).await;
    bench.put("crlf.txt", "one\r\ntwo");
    check(
        &bench,
        "read",
        json!({"path": "./crlf.txt"}),
        expect![[r#"
        ok: 1	one
        2	two
        [line ends are \r\n; write and edit keep them]
        [no line end after the last line]"#]],
    )
    .await;
    bench.put("empty", "");
    check(&bench, "read", json!({"path": "empty"}), expect!["ok: [empty file]"]).await;
    bench.put("latin", b"caf\xe9\n");
    check(
        &bench,
        "read",
        json!({"path": "latin"}),
        expect![[r#"
            ok: 1	caf\xe9
            [not UTF-8: 1 byte shown as \xNN]"#]],
    )
    .await;
    bench.put("image", b"\x89PNG\0\0");
    check(&bench, "read", json!({"path": "image"}), expect!["ok: [binary file, 6 bytes]"]).await;
    check(&bench, "read", json!({"path": "nothing"}), expect!["failed: nothing: there is no such file or folder here"]).await;
    check(&bench, "read", json!({"path": "/etc/shadow"}), expect!["ok: [empty file]"]).await;
    let whole = bench.call("read", json!({"path": "a.txt"})).await;
    assert_eq!((whole.files[0].sight, whole.truncated), (Sight::Whole, false));
    assert_eq!(whole.files[0].path, bench.path("a.txt").to_str().unwrap());
    let part = bench.call("read", json!({"path": "a.txt", "limit": 1})).await;
    assert_eq!((part.files[0].sight, part.truncated), (Sight::Part, true));
}

#[tokio::test]
async fn a_picture_is_shown_as_one() {
    let Some(bench) = Bench::new().await else { return };
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";
    // Whatever its name says.
    bench.put("notes.txt", [&png[..], &[7; 100_000]].concat());
    check(&bench, "read", json!({"path": "notes.txt"}), expect!["ok: [picture 640×480 png, 101 kB]"]).await;
    let shown = bench.call("read", json!({"path": "notes.txt"})).await;
    let [_, Part::Image { blob, picture }] = &shown.content[..] else { panic!("{:?}", shown.content) };
    assert_eq!((picture.width, picture.height, picture.bytes), (640, 480, 100_029));
    assert_eq!(bench.blobs.get(blob).unwrap(), std::fs::read(bench.path("notes.txt")).unwrap());
    assert_eq!((shown.files[0].digest, shown.files[0].sight), (*blob, Sight::Part));
    bench.put("cut.png", &png[..12]);
    check(
        &bench,
        "read",
        json!({"path": "cut.png"}),
        expect!["ok: [binary file, 12 bytes: this PNG picture is damaged: it does not say how large it is]"],
    )
    .await;
    bench.put("large.png", [&png[..], &[0; 4_000_000]].concat());
    check(
        &bench,
        "read",
        json!({"path": "large.png"}),
        expect!["ok: [binary file, 4,000,029 bytes: make it smaller: 3932160 bytes are the most, and this picture has 4000029]"],
    )
    .await;
    bench.secrets.grant("TOKEN", "a-secret-value-0123").unwrap();
    bench.put("told.png", [&png[..], b"a-secret-value-0123"].concat());
    check(&bench, "read", json!({"path": "told.png"}), expect!["ok: [binary file, 48 bytes: this picture holds a secret]"]).await;
}

#[tokio::test]
async fn a_folder_is_listed() {
    let Some(bench) = Bench::new().await else { return };
    check(&bench, "read", json!({"path": "."}), expect!["ok: [empty folder]"]).await;
    bench.put("sub/x", "");
    bench.put("b", "1234");
    symlink("b", bench.path("link")).unwrap();
    check(
        &bench,
        "read",
        json!({"path": ""}),
        expect![[r#"
        ok: b  4 bytes
        link -> b
        sub/"#]],
    )
    .await;
    check(
        &bench,
        "read",
        json!({"path": ".", "offset": 2, "limit": 1}),
        expect![[r#"
        ok: link -> b
        [1 more; go on with offset 3]"#]],
    )
    .await;
}

#[tokio::test]
async fn names_that_are_no_text_can_be_given_back() {
    let Some(bench) = Bench::new().await else { return };
    bench.call("bash", json!({"command": r"printf 'in\n' > $'a\xff\nb'; printf 'x\n' > 'lit\x41'"})).await;
    check(
        &bench,
        "read",
        json!({"path": "."}),
        expect![[r#"
        ok: a\xff\x0ab  3 bytes
        lit\x5cx41  2 bytes"#]],
    )
    .await;
    check(&bench, "read", json!({"path": r"a\xff\x0ab"}), expect!["ok: 1	in"]).await;
    check(
        &bench,
        "edit",
        json!({"path": r"a\xff\x0ab", "old": "in", "new": "out"}),
        expect![[r#"ok: edited a\xff\x0ab: line 1"#]],
    )
    .await;
    check(
        &bench,
        "search",
        json!({"pattern": "out|x"}),
        expect![[r#"
            ok: a\xff\x0ab
            1: out
            lit\x5cx41
            1: x"#]],
    )
    .await;
    check(&bench, "read", json!({"path": r"lit\x5cx41"}), expect!["ok: 1	x"]).await;
}

#[tokio::test]
async fn a_new_file_needs_no_sight_and_an_old_one_does() {
    let Some(bench) = Bench::new().await else { return };
    check(&bench, "write", json!({"path": "new/deep/file", "content": "a\nb\n"}), expect!["ok: made new/deep/file (2 lines)"])
        .await;
    assert_eq!(bench.get("new/deep/file"), "a\nb\n");
    check(&bench, "write", json!({"path": "new/deep/file", "content": "c"}), expect!["ok: replaced new/deep/file (1 line)"])
        .await;
    bench.put("old", "1\n2\n3\n");
    check(
        &bench,
        "write",
        json!({"path": "old", "content": "x"}),
        expect!["failed: old: you have not read it: read it, then replace it"],
    )
    .await;
    check(
        &bench,
        "edit",
        json!({"path": "old", "old": "2", "new": "x"}),
        expect!["failed: old: you have not read it: read it, then edit it"],
    )
    .await;
    bench.call("read", json!({"path": "old", "limit": 1})).await;
    check(
        &bench,
        "write",
        json!({"path": "old", "content": "x"}),
        expect!["failed: old: you have not seen all of it: edit it, or remove it first"],
    )
    .await;
    check(&bench, "edit", json!({"path": "old", "old": "2", "new": "two"}), expect!["ok: edited old: line 2"]).await;
    check(
        &bench,
        "write",
        json!({"path": "old", "content": "x"}),
        expect!["failed: old: you have not seen all of it: edit it, or remove it first"],
    )
    .await;
    bench.call("read", json!({"path": "old"})).await;
    check(&bench, "write", json!({"path": "old", "content": "x"}), expect!["ok: replaced old (1 line)"]).await;
    assert_eq!(bench.get("old"), "x");
    check(&bench, "write", json!({"path": ".", "content": "x"}), expect!["failed: .: this is a folder"]).await;
    check(
        &bench,
        "write",
        json!({"path": "old/under", "content": "x"}),
        expect!["failed: old/under: a part of the path is not a folder"],
    )
    .await;
    check(
        &bench,
        "edit",
        json!({"path": "missing", "old": "a", "new": "b"}),
        expect!["failed: missing: there is no such file; write makes one"],
    )
    .await;
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_left_alone() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("f", "1\n2\n");
    bench.call("read", json!({"path": "f"})).await;
    bench.put("f", "1\n2\nby a person\n");
    check(
        &bench,
        "edit",
        json!({"path": "f", "old": "1", "new": "one"}),
        expect!["failed: f: it changed since you saw it: read it again, then edit it"],
    )
    .await;
    check(
        &bench,
        "write",
        json!({"path": "f", "content": "all new"}),
        expect!["failed: f: it changed since you saw it: read it again, then replace it"],
    )
    .await;
    assert_eq!(bench.get("f"), "1\n2\nby a person\n");
    bench.call("read", json!({"path": "f"})).await;
    check(&bench, "edit", json!({"path": "f", "old": "1", "new": "one"}), expect!["ok: edited f: line 1"]).await;
    check(&bench, "edit", json!({"path": "f", "old": "2", "new": "two"}), expect!["ok: edited f: line 2"]).await;
    assert_eq!(bench.get("f"), "one\ntwo\nby a person\n");
    std::fs::remove_file(bench.path("f")).unwrap();
    check(&bench, "write", json!({"path": "f", "content": "again\n"}), expect!["ok: made f (1 line)"]).await;
}

#[tokio::test]
async fn an_edit_says_what_it_did() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("f", "a\nb\na\n  if x:\n    y()\n");
    bench.call("read", json!({"path": "f"})).await;
    check(
        &bench,
        "edit",
        json!({"path": "f", "old": "a", "new": "c"}),
        expect!["failed: f: `old` is there 2 times, at lines 1, 3: add lines around it, or set all"],
    )
    .await;
    check(
        &bench,
        "edit",
        json!({"path": "f", "old": "a", "new": "c\nd", "all": true}),
        expect!["ok: edited f in 2 places: lines 1-2, 4-5"],
    )
    .await;
    check(
        &bench,
        "edit",
        json!({"path": "f", "old": "if x:\n  y()\n", "new": "if x:\n  z()\n  y()\n"}),
        expect![[r#"
            ok: edited f: lines 7-8
            [`old` fits only if whitespace is ignored; it now reads]
            7	    z()
            8	    y()"#]],
    )
    .await;
    check(
        &bench,
        "edit",
        json!({"path": "f", "old": "nothing like it", "new": ""}),
        expect!["failed: f: `old` is not in the file: read the file again"],
    )
    .await;
    assert_eq!(bench.get("f"), "c\nd\nb\nc\nd\n  if x:\n    z()\n    y()\n");
}

#[tokio::test]
async fn line_ends_modes_and_bytes_are_kept() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("f", "a\r\nb\r\n");
    std::fs::set_permissions(bench.path("f"), std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.call("read", json!({"path": "f"})).await;
    check(&bench, "edit", json!({"path": "f", "old": "b\n", "new": "b\nc\n"}), expect!["ok: edited f: lines 3-4"]).await;
    assert_eq!(bench.get("f"), "a\r\nb\r\nc\r\n");
    check(
        &bench,
        "write",
        json!({"path": "f", "content": "x\ny\n"}),
        expect![[r#"ok: replaced f (2 lines; line ends stay \r\n)"#]],
    )
    .await;
    assert_eq!(bench.get("f"), "x\r\ny\r\n");
    assert_eq!(std::fs::metadata(bench.path("f")).unwrap().permissions().mode() & 0o777, 0o755);
    bench.put("latin", b"caf\xe9\n");
    bench.call("read", json!({"path": "latin"})).await;
    check(
        &bench,
        "edit",
        json!({"path": "latin", "old": "caf", "new": "x"}),
        expect!["failed: latin: byte 3 is not UTF-8: change it with bash"],
    )
    .await;
    bench.put("image", b"\x89PNG\0\0");
    bench.call("read", json!({"path": "image"})).await;
    check(
        &bench,
        "write",
        json!({"path": "image", "content": "x"}),
        expect!["failed: image: you have not seen all of it: edit it, or remove it first"],
    )
    .await;
    assert_eq!(std::fs::read_dir(bench.path(".")).unwrap().count(), 3, "a draft was left behind");
}

#[tokio::test]
async fn links_lead_no_further_than_the_walls() {
    for kind in [Kind::Native, Kind::Reduced] {
        let Some(bench) = Bench::of(kind, Grant::default()).await else { continue };
        std::fs::write(bench.outside("secret"), "secret\n").unwrap();
        symlink(bench.outside(""), bench.path("out")).unwrap();
        symlink(bench.outside("secret"), bench.path("f")).unwrap();
        symlink(bench.outside("new"), bench.path("dangling")).unwrap();
        for path in ["out/secret", "f", "../outside/secret"] {
            let read = bench.call("read", json!({ "path": path })).await;
            assert_eq!((read.status, read.files), (Status::Failed, vec![]), "{kind} {path}");
        }
        for path in ["out/new", "dangling", "f"] {
            let written = bench.call("write", json!({"path": path, "content": "x"})).await;
            assert_eq!(written.status, Status::Failed, "{kind} {path}");
        }
        assert_eq!(std::fs::read_to_string(bench.outside("secret")).unwrap(), "secret\n");
        assert!(!bench.outside("new").exists());
    }
}

#[tokio::test]
async fn links_within_the_walls_are_followed() {
    let Some(bench) = Bench::new().await else { return };
    bench.put("real/f", "a\n");
    symlink("real", bench.path("link")).unwrap();
    bench.call("read", json!({"path": "link/f"})).await;
    check(&bench, "edit", json!({"path": "real/f", "old": "a", "new": "b"}), expect!["ok: edited real/f: line 1"]).await;
    check(&bench, "edit", json!({"path": "link/f", "old": "b", "new": "c"}), expect!["ok: edited link/f: line 1"]).await;
    symlink("nowhere", bench.path("dangling")).unwrap();
    check(
        &bench,
        "write",
        json!({"path": "dangling", "content": "x"}),
        expect!["failed: dangling: this is a link to nowhere, which is not there"],
    )
    .await;
    assert!(bench.path("link").is_symlink());
}

#[tokio::test]
async fn a_grant_widens_what_can_be_written() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().canonicalize().unwrap().join("granted.txt");
    std::fs::write(&file, "a\n").unwrap();
    let grant = Grant { write: vec![file.clone()], ..Grant::default() };
    let Some(bench) = Bench::with(grant).await else { return };
    bench.call("read", json!({ "path": file })).await;
    let edited = bench.call("edit", json!({"path": file, "old": "a", "new": "b"})).await;
    assert_eq!(edited.status, Status::Ok, "{edited:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "b\n");
}
