//! What waits for the disk, through the real binary and a disk that refuses at one moment: a library that is loaded before
//! the system's own answers the sync of a record whose last line is a `Called`.

use crate::support::server::{Answer, Server, bash, call};
use crate::support::{Place, skip};
use serde_json::json;
use std::path::PathBuf;

/// Refuses to sync a file that ends with the word that a call is about to be served, and syncs any other.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd) {
    static char bytes[1 << 16];
    struct stat at;
    if (fstat(fd, &at) == 0 && at.st_size > 1) {
        size_t most = at.st_size < sizeof bytes ? at.st_size : sizeof bytes;
        ssize_t got = pread(fd, bytes, most, at.st_size - most);
        char *line = got > 1 ? memrchr(bytes, '\n', got - 1) : 0;
        char *last = line ? line + 1 : bytes;
        if (got > 1 && memmem(last, bytes + got - last, "\"kind\":\"Called\"", 15)) {
            errno = EIO;
            return -1;
        }
    }
    return syscall(SYS_fdatasync, fd);
}
"#;

/// The library; `None`, said aloud, where nothing here compiles C.
#[allow(clippy::disallowed_methods, reason = "a test compiles what it loads")]
fn shim(place: &Place) -> Option<PathBuf> {
    let (source, library) = (place.home().with_file_name("shim.c"), place.home().with_file_name("shim.so"));
    std::fs::write(&source, SHIM).unwrap();
    let compiled = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    match compiled {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip("gcc");
            None
        }
        compiled => {
            assert!(compiled.unwrap().success());
            Some(library)
        }
    }
}

/// The exit code of a run that makes one call and answers, over that disk, and what it said.
fn run(name: &str, call: Answer, durability: &str) -> Option<(i32, String, Place)> {
    let (place, server) = (Place::new(name), Server::start(vec![call]));
    let library = shim(&place)?;
    place.write("seen", "here\n");
    let work = place.work().display().to_string();
    let args = [vec!["run", "go", "--durability", durability], place.arguments(&server, &work)].concat();
    let output = place.command(&args).env("LD_PRELOAD", library).output().unwrap();
    Some((output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap(), place))
}

#[test]
fn a_call_that_can_change_the_world_is_not_begun_before_its_intent_is_on_the_disk() {
    let call = || bash("echo begun >>counter");
    let Some((code, said, place)) = run("synced", call(), "power") else { return };
    assert_eq!((code, said.contains("Input/output error")), (4, true), "{said}");
    assert!(!place.work().join("counter").exists(), "nothing was begun");
    // Where only the end of the program is to be survived, nothing waits for the disk.
    let Some((code, said, place)) = run("unsynced", call(), "process") else { return };
    assert_eq!((code, place.read("counter").as_str()), (0, "begun\n"), "{said}");
}

#[test]
fn a_call_that_only_reads_waits_for_no_disk() {
    let call = call("read", json!({"path": "seen"}));
    let Some((code, said, _)) = run("read-unsynced", call, "power") else { return };
    assert_eq!(code, 0, "{said}");
}
