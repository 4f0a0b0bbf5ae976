//! Commands: how they end, what they print, what they cannot wait for, and that nothing of them is left.

use crate::support::{Folders, LONG, is_running, mark, run, run_command, script, until};
use expect_test::expect;
use sandbox::{Command, Kind, SandboxError, Stopped};
use std::time::Duration;

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
        expect![[r#"
            signal 15
        "#]]
        .assert_eq(&run(&environment, "kill -TERM $$").await.told());
        expect![[r#"
            one
            bash: eval: line 2: syntax error near unexpected token `fi'
            bash: eval: line 2: `fi'
            exit 2
        "#]]
        .assert_eq(&run(&environment, "echo one\nfi\n").await.told());
        environment.close().await;
    }
}

#[tokio::test]
async fn a_workspace_may_lie_where_an_environment_has_a_link() {
    for kind in KINDS {
        let folders = Folders::within(tempfile::tempdir_in("/var/tmp").unwrap());
        let environment = folders.environment(kind).await.unwrap();
        assert!(run(&environment, "echo here >file").await.succeeded());
        assert_eq!(std::fs::read_to_string(folders.path("workspace/file")).unwrap(), "here\n");
    }
}

#[tokio::test]
async fn a_command_cannot_wait_for_a_person() {
    for kind in KINDS {
        let folders = Folders::new();
        let environment = folders.environment(kind).await.unwrap();
        let told = run(&environment, "cat; python3 -c 'input()' 2>/dev/null; read x </dev/tty; echo $?; [ -t 0 ]").await.told();
        expect![[r#"
            bash: line 1: /dev/tty: No such device or address
            1
            exit 1
        "#]]
        .assert_eq(&told);
    }
}

#[tokio::test]
async fn a_grandchild_that_ends_first_delays_nothing() {
    for kind in KINDS {
        let folders = Folders::new();
        let environment = folders.environment(kind).await.unwrap();
        // The shell ends only after its orphan did: when it sees that the orphan's id is free.
        let text = "o=$( (true >/dev/null & echo $!) ); while [ -e /proc/$o ]; do :; done; echo done";
        assert_eq!(run(&environment, text).await.told(), "done\nexit 0\n");
    }
}

#[tokio::test]
async fn a_command_sees_no_variable_of_the_engine() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let mut command = script("env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo $HOME $TMPDIR $PWD $CI $GIVEN");
    command.env = vec![("GIVEN".to_owned(), "by the caller".to_owned())];
    let told = run_command(&environment, &command).await.told();
    expect![[r#"
        CI DEBIAN_FRONTEND GIT_EDITOR GIT_PAGER GIT_TERMINAL_PROMPT GIVEN HOME LC_CTYPE LOGNAME PAGER PATH PWD SHELL SHLVL TERM TMPDIR USER _ npm_config_yes 
        /home/agent /tmp WORKSPACE 1 by the caller
        exit 0
    "#]]
    .assert_eq(&told.replace(folders.workspace().to_str().unwrap(), "WORKSPACE"));
}

#[tokio::test]
async fn bytes_pass_as_they_are() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let mut bytes = Vec::new();
    environment.run(&script(r"printf 'a\377\376\0b'"), &mut |some| bytes.extend_from_slice(some)).await.unwrap();
    assert_eq!(bytes, b"a\xff\xfe\0b");
}

#[tokio::test]
async fn the_script_is_neither_argument_nor_variable() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let ran = run(&environment, "cat /proc/$$/cmdline /proc/$$/environ | tr '\\0' '\\n' | grep -c 'secret-word'").await;
    assert_eq!(ran.told(), "0\nexit 1\n");
}

#[tokio::test]
async fn a_large_output_streams_through() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    run(&environment, "echo warm").await;
    let before = resident_kb();
    let mut bytes = 0u64;
    let exit = environment.run(&script("head -c 200000000 /dev/zero"), &mut |some| bytes += some.len() as u64).await.unwrap();
    assert_eq!((exit.code, bytes), (Some(0), 200_000_000));
    assert!(resident_kb() < before + 32 * 1024, "{before} kB before, {} kB after", resident_kb());
}

/// The memory that this process uses now.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_timeout_kills_all_that_was_started() {
    for kind in KINDS {
        let (folders, mark) = (Folders::new(), mark());
        let environment = folders.environment(kind).await.unwrap();
        let text = format!(
            "trap '' TERM\n(trap '' TERM; sleep {mark}) &\nsetsid bash -c 'trap \"\" TERM; sleep {mark} & wait' &\necho on\nwait\nwait"
        );
        let ran = run_command(&environment, &Command { timeout: Duration::from_secs(1), ..script(&text) }).await;
        assert_eq!(ran.told(), "on\ntimed out\n");
        assert!(ran.exit.killed.iter().any(|line| line.starts_with("sleep")), "{:?}", ran.exit.killed);
        assert!(!is_running(&mark), "{kind}");
        assert_eq!(run(&environment, "echo next").await.told(), "next\nexit 0\n");
    }
}

#[tokio::test]
async fn a_dropped_command_is_killed() {
    for kind in KINDS {
        let (folders, mark) = (Folders::new(), mark());
        let environment = folders.environment(kind).await.unwrap();
        let command = script(&format!("setsid sleep {mark} &\nsleep {mark}"));
        let ran = async { environment.run(&command, &mut |_| {}).await.map(|exit| panic!("it ended: {exit:?}")) };
        tokio::select! {
            ended = ran => drop(ended),
            () = until(async || is_running(&mark)) => {}
        }
        until(async || !is_running(&mark)).await;
        assert!(environment.probe().await);
    }
}

#[tokio::test]
async fn closing_ends_what_left_its_session() {
    for kind in KINDS {
        let (folders, mark) = (Folders::new(), mark());
        let environment = folders.environment(kind).await.unwrap();
        let text = format!("setsid sleep {mark} & (setsid bash -c 'trap \"\" TERM HUP; sleep {mark}' & ) ; nohup sleep {mark} &");
        assert!(run(&environment, &text).await.succeeded());
        until(async || is_running(&mark)).await;
        environment.close().await;
        assert!(!is_running(&mark), "{kind}");
    }
}

#[tokio::test]
async fn a_child_outlives_its_command_and_is_stopped_by_name() {
    for kind in KINDS {
        let (folders, mark) = (Folders::new(), mark());
        let environment = folders.environment(kind).await.unwrap();
        assert!(environment.children().await.unwrap().is_empty());
        // Completion is the shell's end, whoever holds its output.
        assert_eq!(run(&environment, &format!("sleep {mark} & echo started")).await.told(), "started\nexit 0\n");
        until(async || is_running(&mark)).await;
        let names = async || environment.children().await.unwrap().into_iter().map(|child| (child.name, child.command));
        assert_eq!(names().await.collect::<Vec<_>>(), [("c1".to_owned(), format!("sleep {mark}"))]);
        run(&environment, "(trap '' TERM; touch armed; while :; do sleep 1; done) & echo other").await;
        until(async || folders.path("workspace/armed").exists()).await;
        let commands: Vec<_> = names().await.collect();
        assert_eq!(commands[1].1, "bash: (trap '' TERM; touch armed; while :; do sleep 1; done) & echo other");

        assert_eq!(environment.stop("c1").await.unwrap(), Stopped::Ended);
        assert!(!is_running(&mark));
        assert_eq!(environment.stop("c1").await.unwrap(), Stopped::Gone);
        assert_eq!(names().await.map(|(name, _)| name).collect::<Vec<_>>(), ["c2"]);
        assert_eq!(environment.stop("c2").await.unwrap(), Stopped::Killed);
        assert!(names().await.next().is_none());
        for name in ["c3", "c0", "x", ""] {
            assert!(matches!(environment.stop(name).await, Err(SandboxError::NoChild(_))), "{name}");
        }
    }
}

#[tokio::test]
async fn what_a_child_prints_later_can_be_read_also_after_its_end() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    // The child goes on when the file is there, so that all of its words come after the command's end.
    let waits = "(until [ -e go ]; do sleep 0.01; done; head -c 3000000 /dev/zero; echo last words) & echo first";
    assert_eq!(run(&environment, waits).await.told(), "first\nexit 0\n");
    until(async || environment.children().await.unwrap().len() == 1).await;
    assert_eq!(environment.child_output("c1").await.unwrap().bytes, b"");
    folders.write("workspace/go", "");
    until(async || environment.child_output("c1").await.unwrap().bytes.ends_with(b"last words\n")).await;
    let printed = environment.child_output("c1").await.unwrap();
    assert_eq!(printed.bytes.len(), 1 << 20);
    until(async || environment.children().await.unwrap().is_empty()).await;
    assert!(environment.child_output("c1").await.unwrap().bytes.ends_with(b"last words\n"));
}

#[tokio::test]
async fn a_child_that_prints_for_ever_delays_nothing() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let ran = run(&environment, "yes & echo started").await;
    assert!(ran.succeeded() && ran.output.contains("started"));
    until(async || environment.children().await.unwrap()[0].command == "yes").await;
}

#[tokio::test]
async fn commands_run_side_by_side() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    // Each waits for the other.
    let (one, two) = tokio::join!(
        run(&environment, "touch one; until [ -e two ]; do sleep 0.01; done; echo one"),
        run(&environment, "touch two; until [ -e one ]; do sleep 0.01; done; echo two"),
    );
    assert_eq!((one.told().as_str(), two.told().as_str()), ("one\nexit 0\n", "two\nexit 0\n"));
}

#[tokio::test]
async fn processes_and_files_are_limited() {
    let folders = Folders::new();
    let mut spec = folders.spec(trace::Grant::default());
    (spec.limits.processes, spec.limits.file_bytes) = (40, 1000);
    let environment = sandbox::Sandbox::start(Kind::Native, crate::support::program()).unwrap().environment(&spec).await.unwrap();
    assert!(!run(&environment, "head -c 2000 /dev/zero >file").await.succeeded());
    assert_eq!(std::fs::metadata(folders.path("workspace/file")).unwrap().len(), 1000);

    let fork = "while (defined(my $p = fork)) { unless ($p) { sleep 1000; exit } } print qq($!\\n)";
    if !crate::support::present("perl") {
        return;
    }
    assert_eq!(run(&environment, &format!("perl -e '{fork}'")).await.told(), "Resource temporarily unavailable\nexit 0\n");
    // Commands of the machine's root are counted by their namespace, in which the next command has to start as well; only
    // the one that was prepared before is there already.
    if rustix::process::geteuid().is_root() {
        let mut told = run(&environment, "echo prepared").await.told();
        if told == "prepared\nexit 0\n" {
            told = run(&environment, "echo not run").await.told();
        }
        assert_eq!(told, "autosage: too many processes are running here; stop some of them first\nexit 126\n");
    }
    // Full is not lost: the same words as for any command, and stopping helps.
    assert!(environment.probe().await);
    while let Some(child) = environment.children().await.unwrap().first() {
        environment.stop(&child.name).await.unwrap();
    }
    assert_eq!(run(&environment, "echo again").await.told(), "again\nexit 0\n");
}

#[tokio::test]
async fn a_lost_sandbox_is_told_from_a_failed_command() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Host).await.unwrap();
    assert!(environment.probe().await);
    // On the host a command can kill its own sandbox: its supervisor, and init above that.
    let text = "sup=$PPID; init=$(cut -d' ' -f4 /proc/$sup/stat); kill -KILL $init $sup; sleep 1000";
    let lost = environment.run(&Command { timeout: LONG, ..script(text) }, &mut |_| {}).await;
    assert!(matches!(lost, Err(SandboxError::Lost)), "{lost:?}");
    assert!(!environment.probe().await);
}
