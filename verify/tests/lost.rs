//! A sandbox that is lost in the middle of a check. A test binary of its own: it looks for its own child processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{CAPS, check, environment};
use trace::Verdict;

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
async fn a_lost_sandbox_judges_nothing() {
    let folders = tempfile::tempdir().unwrap();
    let environment = environment(&folders).await;
    let here = i32::try_from(std::process::id()).unwrap();
    let checks = [check("true", 60_000), check("sleep 71242", 600_000), check("true", 60_000)];
    let lose = async {
        while processes(|_, line| line == "sleep 71242 ").is_empty() {
            tokio::task::yield_now().await;
        }
        let [zygote] = processes(|parent, _| parent == here)[..] else { panic!("one child is expected") };
        rustix::process::kill_process(rustix::process::Pid::from_raw(zygote).unwrap(), rustix::process::Signal::KILL).unwrap();
    };
    let ((verdict, results), ()) = tokio::join!(verify::verify(&checks, &environment, CAPS), lose);
    let Verdict::Unjudged { reason } = verdict else { panic!("{verdict:?}") };
    assert!(reason.contains("the sandbox is gone"), "{reason}");
    assert_eq!(results.iter().map(|result| result.passed).collect::<Vec<_>>(), [true]);
}
