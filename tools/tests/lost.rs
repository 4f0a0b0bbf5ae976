//! A sandbox that is lost in the middle of a command. A test binary of its own: it looks for its own child processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::json;
use support::Bench;
use trace::{Status, text_of};

/// The processes with this parent, or with this in their command line.
fn processes(fits: impl Fn(i32, &str) -> bool) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let shown = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((parent, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    pids.filter(|pid| shown(pid).is_some_and(|(parent, line)| fits(parent, &line))).collect()
}

#[tokio::test]
async fn a_lost_sandbox_is_unavailable_for_every_tool() {
    let bench = Bench::new().await;
    let here = i32::try_from(std::process::id()).unwrap();
    let lose = async {
        while processes(|_, line| line == "sleep 71243 ").is_empty() {
            tokio::task::yield_now().await;
        }
        let [zygote] = processes(|parent, _| parent == here)[..] else { panic!("one child is expected") };
        rustix::process::kill_process(rustix::process::Pid::from_raw(zygote).unwrap(), rustix::process::Signal::KILL).unwrap();
    };
    let (lost, ()) = tokio::join!(bench.call("bash", json!({"command": "sleep 71243"})), lose);
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
