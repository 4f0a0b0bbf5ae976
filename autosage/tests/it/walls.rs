//! What an agent cannot get past, through the real binary and all tools: links, git, names of commands, and a sandbox that dies.

use crate::support::server::{Answer, Server, bash, call};
use crate::support::{Called, Place, files, until};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;
use trace::{Observed, Status, What, text_of};

/// A run of the real binary in which these calls are made; each with more arguments for the program.
fn run(place: &Place, answers: Vec<Answer>, more: &[&str]) -> (Called, Vec<Observed>, usize) {
    let server = Server::start(answers);
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    args.extend(more);
    let called = place.start(&args);
    let observed = |what| if let What::Observed(observed) = what { Some(observed) } else { None };
    (called, place.events().into_iter().filter_map(|event| observed(event.what)).collect(), server.bodies().len())
}

fn told(observed: &[Observed]) -> Vec<String> {
    observed.iter().map(|observed| format!("{}: {}", observed.status.word(), text_of(&observed.content).trim_end())).collect()
}

fn beside(place: &Place, name: &str) -> PathBuf {
    place.home().with_file_name(name)
}

#[test]
fn h3_links_in_a_workspace_lead_no_tool_out_of_it() {
    let place = Place::new("h3-links");
    let (outside, person) = (beside(&place, "outside"), beside(&place, "person"));
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(person.join(".ssh")).unwrap();
    fs::write(outside.join("v"), "treasure\n").unwrap();
    fs::write(person.join(".ssh/id"), "treasure of a key\n").unwrap();
    let link = |name: &str, to: PathBuf| symlink(to, place.work().join(name)).unwrap();
    link("out", outside.clone());
    link("f", outside.join("v"));
    link("d", outside.join("new"));
    link("key", person.join(".ssh/id"));
    link("up", "../outside/v".into());
    fs::create_dir(place.work().join("deep")).unwrap();
    symlink("../../outside", place.work().join("deep/out")).unwrap();
    let before = files(&outside);

    let mut answers: Vec<Answer> =
        ["f", "out/v", "key", "up", "deep/out/v", "d"].iter().map(|path| call("read", json!({"path": path}))).collect();
    answers.extend(
        ["f", "out/v", "out/new", "d", "key", "deep/out/new"]
            .map(|path| call("write", json!({"path": path, "content": "changed"}))),
    );
    answers.extend(["f", "out/v", "key"].map(|path| call("edit", json!({"path": path, "old": "treasure", "new": "changed"}))));
    answers.push(call("search", json!({"pattern": "treasure"})));
    answers.push(call("search", json!({"pattern": "treasure", "path": "out"})));
    answers.push(bash("cat f out/v key up deep/out/v; echo changed >f; echo changed >d; echo changed >out/new; ln -f f hard; cp -L f copy; tar -chf - . | grep -a treasure; true"));
    let calls = answers.len();
    let (called, observed, _) = run(&place, answers, &[]);
    assert_eq!(called.code, 0, "{called:?}");
    assert_eq!(observed.len(), calls);
    let told = told(&observed);
    assert!(told.iter().all(|told| !told.contains("treasure of") && !told.contains("treasure\n")), "{told:#?}");
    for told in told.iter().take(calls - 3) {
        assert!(told.starts_with("failed: "), "{told}");
    }
    assert_eq!(files(&outside), before, "what lies outside is as it was");
    assert_eq!(fs::read_to_string(person.join(".ssh/id")).unwrap(), "treasure of a key\n");
}

#[test]
fn h3_links_that_stay_inside_or_lead_to_what_is_granted_work() {
    let place = Place::new("h3-inside");
    let (readable, writable) = (beside(&place, "readable"), beside(&place, "writable"));
    for folder in [&readable, &writable] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("v"), "treasure\n").unwrap();
    }
    place.write("real/file", "inside\n");
    for (name, to) in [("link", PathBuf::from("real")), ("r", readable.clone()), ("w", writable.clone())] {
        symlink(to, place.work().join(name)).unwrap();
    }
    let answers = vec![
        call("read", json!({"path": "link/file"})),
        call("edit", json!({"path": "link/file", "old": "inside", "new": "changed"})),
        call("read", json!({"path": "r/v"})),
        call("edit", json!({"path": "r/v", "old": "treasure", "new": "changed"})),
        call("read", json!({"path": "w/v"})),
        call("edit", json!({"path": "w/v", "old": "treasure", "new": "changed"})),
        bash("cat link/file r/v w/v"),
    ];
    let (read, write) = (format!("read={}", readable.display()), format!("write={}", writable.display()));
    let (called, observed, _) = run(&place, answers, &["--grant", &read, "--grant", &write]);
    assert_eq!(called.code, 0, "{called:?}");
    let status: Vec<&str> = observed.iter().map(|observed| observed.status.word()).collect();
    assert_eq!(status, ["ok", "ok", "ok", "failed", "ok", "ok", "ok"], "{:?}", told(&observed));
    assert_eq!(text_of(&observed[6].content).trim_end(), "changed\ntreasure\nchanged");
    assert_eq!(place.read("real/file"), "changed\n");
}

#[test]
fn h4_git_at_the_root_runs_nothing_that_an_agent_planted() {
    let place = Place::new("h4-git");
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    place.write(".git/config", "[core]\n\trepositoryformatversion = 0\n");
    fs::create_dir_all(place.work().join(".git/objects")).unwrap();
    fs::create_dir_all(place.work().join(".git/refs")).unwrap();
    place.write("vendor/sub/.git/HEAD", "ref: refs/heads/main\n");
    let attack = "for file in .git/hooks/pre-commit .git/config .git/commondir .git/config.worktree; do echo planted >$file && echo got $file; done; \
                  printf '[core]\\n\\tfsmonitor = touch planted\\n' >>.git/config; mv .git away; rm -rf .git/hooks; echo 'gitdir: /tmp/x' >.git; \
                  mkdir -p vendor/sub/.git/hooks && echo planted >vendor/sub/.git/hooks/pre-commit && echo got deeper";
    // What lies in the workspace is written with the workspace's rights, also where a call says that it wants to.
    let wish = call(
        "bash",
        json!({"command": "echo planted >.git/hooks/pre-commit && echo got it", "write": [".git/hooks"], "why": "to commit"}),
    );
    let answers = vec![
        bash(attack),
        call("write", json!({"path": ".git/hooks/pre-commit", "content": "planted"})),
        call("edit", json!({"path": ".git/config", "old": "[core]", "new": "[core]\n\tfsmonitor = touch planted"})),
        wish,
    ];
    let (called, observed, _) = run(&place, answers, &["--approve", "wait"]);
    assert_eq!(called.code, 0, "{called:?}");
    let told = told(&observed);
    // Repositories that lie deeper are not guarded yet, as the README says.
    assert!(told[0].contains("got deeper") && told[0].matches("got ").count() == 1, "{}", told[0]);
    assert!(told[1..].iter().all(|told| told.starts_with("failed: ")), "{told:#?}");
    assert_eq!(place.read(".git/config"), "[core]\n\trepositoryformatversion = 0\n");
    assert!(!place.work().join(".git/hooks/pre-commit").exists());
    assert!(!place.events().iter().any(|event| matches!(event.what, What::ApprovalAsked(_))));
}

#[test]
fn h4_who_wants_out_is_asked_about_each_time() {
    let place = Place::new("h4-asked");
    let out = beside(&place, "outside");
    fs::create_dir_all(&out).unwrap();
    let wish = || call("bash", json!({"command": format!("touch {}/ran", out.display()), "write": [out], "why": "to try"}));
    let server = Server::start(vec![wish(), wish(), wish()]);
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--approve", "wait"];
    args.extend(place.arguments(&server, &work));
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for times in 1..=3 {
        let (run, seq) = until(|| {
            let run = fs::read_dir(place.home().join("runs")).ok()?.next()?.ok()?.path();
            let (events, _) = trace::Reading::all(&run).ok()?;
            let asked: Vec<u64> =
                events.iter().filter(|event| matches!(event.what, What::ApprovalAsked(_))).map(|event| event.seq.0).collect();
            (asked.len() == times).then(|| (run, asked[times - 1]))
        });
        let id = run.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(place.start(&["send", &id, "--answer", &format!("{seq}=no")]).code, 0);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!out.join("ran").exists());
}

#[test]
fn h5_the_name_of_a_command_gives_it_no_rights() {
    let place = Place::new("h5-names");
    let out = beside(&place, "outside");
    fs::create_dir_all(&out).unwrap();
    let renamed = format!(
        "cp \"$(command -v touch)\" git-foo; PATH=$PWD:$PATH git foo {0}/one; cp \"$(command -v bash)\" cargo; \
         ./cargo -c 'touch {0}/two'; exec -a git ./cargo -c 'touch {0}/three'",
        out.display()
    );
    // One command was allowed the network: another that reads the same has it no more than any other.
    let reach = "exec 3<>/dev/tcp/127.0.0.1/PORT && echo connected";
    let elsewhere = Server::start(Vec::new());
    let port = elsewhere.base_url.trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    let reach = reach.replace("PORT", &port);
    let config = beside(&place, "config.toml");
    fs::write(&config, "approve = \"auto\"\nallow.network = true\n").unwrap();
    let widened = call("bash", json!({"command": reach, "network": true, "why": "to reach it"}));
    let server = Server::start(vec![bash(&renamed), widened, bash(&reach)]);
    let (work, config) = (place.work().display().to_string(), config.display().to_string());
    let model = ["--model", "openai-compatible/scripted", "--base-url", &server.base_url];
    let called = place.start(&[&["run", "go", "--workspace", &work, "--config", &config], model.as_slice()].concat());
    assert_eq!(called.code, 0, "{called:?}");
    let observed = |what| if let What::Observed(observed) = what { Some(text_of(&observed.content)) } else { None };
    let told: Vec<String> = place.events().into_iter().filter_map(|event| observed(event.what)).collect();
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "{told:?}");
    assert_eq!([told[1].contains("connected"), told[2].contains("connected")], [true, false], "{told:?}");
}

/// A running process: its id, its parent's, its command line.
fn processes() -> Vec<(i32, i32, String)> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let process = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent, String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).ok()?).replace('\0', " ")))
    };
    pids.filter_map(process).collect()
}

/// Runs a command that sleeps, kills the process that stands `above` levels over its shell's parent, and returns what came.
fn killed_from_outside(name: &str, seconds: &str, above: usize) -> (i32, Vec<Observed>, usize, Vec<String>) {
    let place = Place::new(name);
    let server = Server::start(vec![bash(&format!("sleep {seconds}; true")), bash("echo next")]);
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--sandbox", "native"];
    args.extend(place.arguments(&server, &work));
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let line = format!("sleep {seconds}");
    let victim = until(|| {
        let all = processes();
        let mut at = all.iter().find(|(_, _, found)| found.trim() == line)?;
        // The shell, its job-init, the environment's init.
        for _ in 0..2 + above {
            at = all.iter().find(|(pid, ..)| *pid == at.1)?;
        }
        Some(at.0)
    });
    rustix::process::kill_process(rustix::process::Pid::from_raw(victim).unwrap(), rustix::process::Signal::KILL).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    let (mut observed, mut ends) = (Vec::new(), Vec::new());
    for event in place.events() {
        match event.what {
            What::Observed(it) => observed.push(it),
            What::Finished(it) => ends.push(format!("{} {}", it.outcome.word(), it.outcome.reason().unwrap_or_default())),
            _ => {}
        }
    }
    (code, observed, server.bodies().len(), ends)
}

#[test]
fn c11_a_sandbox_that_dies_ends_the_run_before_another_request() {
    let (code, observed, asked, ends) = killed_from_outside("c11-init", "70911", 1);
    assert_eq!((code, asked), (4, 1), "{ends:?}");
    assert_eq!(observed.iter().map(|it| it.status).collect::<Vec<_>>(), [Status::Unavailable]);
    assert_eq!(ends, ["infrastructure the sandbox is gone: its process ended while it was needed"]);
}

#[test]
fn c11_a_command_that_dies_in_a_sound_sandbox_only_fails() {
    let (code, observed, asked, ends) = killed_from_outside("c11-job", "70912", 0);
    assert_eq!((code, asked), (0, 3), "{ends:?}");
    assert_eq!(observed.iter().map(|it| it.status).collect::<Vec<_>>(), [Status::Failed, Status::Ok]);
    assert!(text_of(&observed[0].content).contains("signal 9"), "{observed:?}");
}
