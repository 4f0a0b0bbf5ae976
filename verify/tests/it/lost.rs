//! A sandbox that is lost in the middle of a check.

use crate::room::{CAPS, check, environment};
use trace::Verdict;

/// A running process.
struct Process {
    pid: i32,
    parent: i32,
    /// Its command line.
    line: String,
}

/// All processes of the machine, as far as they can be seen.
fn processes() -> Vec<Process> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let process = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let line = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).ok()?).replace('\0', " ");
        Some(Process { pid, parent, line })
    };
    pids.filter_map(process).collect()
}

/// Waits until a process has this command line, and kills the sandbox of this program that it runs in.
async fn lose_the_sandbox_of(line: &str) {
    let here = i32::try_from(std::process::id()).unwrap();
    let mut all = processes();
    while !all.iter().any(|process| process.line.trim() == line) {
        tokio::task::yield_now().await;
        all = processes();
    }
    let mut process = all.iter().find(|process| process.line.trim() == line).unwrap();
    while process.parent != here {
        process = all.iter().find(|above| above.pid == process.parent).unwrap();
    }
    rustix::process::kill_process(rustix::process::Pid::from_raw(process.pid).unwrap(), rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_lost_sandbox_judges_nothing() {
    let folders = tempfile::tempdir().unwrap();
    let Some(environment) = environment(&folders).await else { return };
    let checks = [check("true", 60_000), check("sleep 71242", 600_000), check("true", 60_000)];
    let secrets = trace::Secrets::of_nothing();
    let judging = verify::verify(&checks, &environment, CAPS, &secrets);
    let ((verdict, results), ()) = tokio::join!(judging, lose_the_sandbox_of("sleep 71242"));
    let Verdict::Unjudged { reason } = verdict else { panic!("{verdict:?}") };
    assert!(reason.contains("the sandbox is gone"), "{reason}");
    assert_eq!(results.iter().map(|result| result.passed).collect::<Vec<_>>(), [true]);
}
