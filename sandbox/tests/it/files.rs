//! File operations: contained by the walls, whole or not at all, honest about what is there.

use crate::support::{Folders, LONG};
use expect_test::expect;
use sandbox::file::{self, Content, Expected, List, Read, Refusal, Write, Written};
use sandbox::{CallError, Environment, Kind};
use std::os::unix::fs::{PermissionsExt, symlink};
use trace::Digest;

const KINDS: [Kind; 3] = [Kind::Native, Kind::Reduced, Kind::Host];

async fn read(environment: &Environment, path: &str) -> Result<Content, Refusal> {
    let ask = Read { path: path.to_owned(), offset: 0, most: u64::MAX };
    file::read(environment, &ask, LONG).await.unwrap()
}

async fn write(environment: &Environment, path: &str, expected: Expected, text: &str) -> Result<Written, Refusal> {
    let ask = Write { path: path.to_owned(), expected, bytes: text.as_bytes().to_vec() };
    file::write(environment, &ask, LONG).await.unwrap()
}

#[tokio::test]
async fn a_file_is_read_and_written_as_bytes() {
    for kind in KINDS {
        let folders = Folders::new();
        std::fs::write(folders.path("workspace/raw"), [0, 255, b'\n', 10]).unwrap();
        let environment = folders.environment(kind).await.unwrap();
        let content = read(&environment, "raw").await.unwrap();
        assert_eq!(content.bytes, [0, 255, 10, 10]);
        assert_eq!(content.digest, Some(Digest::of(&content.bytes)));
        assert_eq!(content.path, folders.path("workspace/raw").display().to_string());
        let written = write(&environment, "new/deep/file", Expected::Nothing, "one\n").await.unwrap();
        assert!(written.created);
        assert_eq!(std::fs::read_to_string(folders.path("workspace/new/deep/file")).unwrap(), "one\n");
        let piece = file::read(&environment, &Read { path: "new/deep/file".into(), offset: 1, most: 2 }, LONG).await.unwrap();
        assert_eq!(piece.unwrap().bytes, b"ne");
    }
}

#[tokio::test]
async fn a_file_that_is_not_as_expected_is_not_written() {
    let folders = Folders::new();
    let path = folders.write("workspace/f", "old");
    let environment = folders.environment(Kind::Native).await.unwrap();
    let refused = write(&environment, "f", Expected::Nothing, "x").await.unwrap_err();
    assert_eq!(refused, Refusal::Exists("f".into()));
    let refused = write(&environment, "f", Expected::Same(Digest::of(b"other")), "x").await.unwrap_err();
    assert_eq!(refused, Refusal::Changed("f".into()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    write(&environment, "f", Expected::Same(Digest::of(b"old")), "new").await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

#[tokio::test]
async fn mode_and_other_names_of_a_file_are_kept() {
    let folders = Folders::new();
    let tool = folders.write("workspace/tool", "#!/bin/sh\n");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o750)).unwrap();
    let linked = folders.write("workspace/linked", "a");
    std::fs::hard_link(&linked, folders.path("workspace/other-name")).unwrap();
    let environment = folders.environment(Kind::Native).await.unwrap();
    write(&environment, "tool", Expected::Anything, "#!/bin/bash\n").await.unwrap();
    write(&environment, "linked", Expected::Anything, "b").await.unwrap();
    assert_eq!(std::fs::metadata(&tool).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(std::fs::read_to_string(folders.path("workspace/other-name")).unwrap(), "b");
    let names: Vec<_> = std::fs::read_dir(folders.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "no draft is left: {names:?}");
}

#[tokio::test]
async fn what_is_no_file_is_refused_without_waiting() {
    let folders = Folders::new();
    folders.write("workspace/folder/inner", "");
    let pipe = folders.path("workspace/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    symlink("nowhere", folders.path("workspace/dangling")).unwrap();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let mut told = Vec::new();
    for path in ["missing", "folder", "pipe", "dangling", "folder/inner/below"] {
        told.push(read(&environment, path).await.unwrap_err().to_string());
    }
    for path in ["folder", "pipe", "dangling"] {
        told.push(write(&environment, path, Expected::Anything, "x").await.unwrap_err().to_string());
    }
    expect![[r#"
        missing does not exist
        folder is a folder
        pipe is not a file
        dangling is a symbolic link that leads to nothing here
        folder/inner/below is not a folder
        folder is a folder
        pipe is not a file
        dangling is a symbolic link that leads to nothing here"#]]
    .assert_eq(&told.join("\n"));
}

#[tokio::test]
async fn a_folder_is_listed_by_name_and_cut() {
    let folders = Folders::new();
    for name in ["b", "a", "c/d"] {
        folders.write(&format!("workspace/{name}"), "12");
    }
    let environment = folders.environment(Kind::Native).await.unwrap();
    let listing = file::list(&environment, &List { path: ".".into(), most: 2 }, LONG).await.unwrap().unwrap();
    assert_eq!(listing.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((listing.total, listing.entries[0].size), (3, 2));
}

#[tokio::test]
async fn an_operation_that_does_not_exist_is_named() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let error = environment.call("fly", b"", LONG).await.unwrap_err();
    assert!(matches!(error, CallError::Unknown(name) if name == "fly"));
}
