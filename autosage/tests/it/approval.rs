//! Wider rights, through the real binary: asked for, answered here or elsewhere, kept over a crash, and never more than was
//! said.

mod terminal;

use crate::support::server::{Answer, Server, bash, call};
use crate::support::{Called, Place, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use trace::{ApprovalAsked, Observed, Status, What, text_of};

/// A place with a folder outside the workspace.
struct Stage {
    place: Place,
    server: Server,
    outside: PathBuf,
}

impl Stage {
    fn new(name: &str, answers: Vec<Answer>) -> Stage {
        let place = Place::new(name);
        let outside = place.home().with_file_name("outside");
        fs::create_dir_all(&outside).unwrap();
        Stage { place, server: Server::start(answers), outside }
    }

    /// The arguments of a run with these more.
    fn args(&self, more: &[&str]) -> Vec<String> {
        let work = self.place.work().display().to_string();
        let mut args = vec!["run", "go"];
        args.extend(self.place.arguments(&self.server, &work));
        args.extend(more);
        args.into_iter().map(str::to_owned).collect()
    }

    fn run(&self, more: &[&str]) -> Called {
        let args = self.args(more);
        self.place.start(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn begin(&self, args: &[String]) -> Child {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until the run asks, and returns the event.
    fn until_it_asks(&self) -> (u64, ApprovalAsked) {
        until(|| {
            let run = fs::read_dir(self.place.home().join("runs")).ok()?.next()?.ok()?.path();
            let (events, _) = trace::Reading::all(&run).ok()?;
            events.iter().find_map(|event| match &event.what {
                What::ApprovalAsked(asked) => Some((event.seq.0, asked.clone())),
                _ => None,
            })
        })
    }

    fn id(&self) -> String {
        self.place.run_folder().file_name().unwrap().to_str().unwrap().to_owned()
    }

    fn observed(&self) -> Vec<Observed> {
        let observed = |what| if let What::Observed(observed) = what { Some(observed) } else { None };
        self.place.events().into_iter().filter_map(|event| observed(event.what)).collect()
    }

    /// What each call was told, with its status.
    fn told(&self) -> Vec<String> {
        let line = |observed: &Observed| format!("{}: {}", observed.status.word(), text_of(&observed.content).trim_end());
        let outside = self.outside.display().to_string();
        self.observed().iter().map(|observed| line(observed).replace(&outside, "$OUT")).collect()
    }

    fn approved_by(&self) -> Vec<Option<String>> {
        let by = |what| if let What::Called(called) = what { Some(called.approved_by) } else { None };
        self.place.events().into_iter().filter_map(|event| by(event.what)).collect()
    }

    /// A configuration of the person's, and the arguments that name it.
    fn config(&self, text: &str) -> String {
        let path = self.place.home().with_file_name("config.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn runs(&self) -> Value {
        serde_json::from_str(self.place.start(&["runs", "--json"]).out.lines().next().unwrap()).unwrap()
    }
}

/// A command that wants to write below the folder outside.
fn writes(outside: &Path, command: &str) -> Answer {
    call("bash", json!({"command": command, "write": [outside], "why": "the result belongs there"}))
}

fn outside(name: &str) -> PathBuf {
    std::env::temp_dir().canonicalize().unwrap().join(format!("autosage-test-{}-{name}/outside", std::process::id()))
}

/// A command that counts how often it was begun.
const COUNT: &str = "echo begun >>counter; echo there >";

#[test]
fn an_approval_is_answered_through_the_inbox_after_kill_9() {
    for when in ["before", "after"] {
        let name = format!("approval-{when}");
        let out = outside(&name);
        let stage = Stage::new(&name, vec![writes(&out, &format!("{COUNT}{}/made", out.display()))]);
        let mut child = stage.begin(&stage.args(&["--approve", "wait"]));
        let (seq, asked) = stage.until_it_asks();
        assert_eq!((asked.wants.write.as_slice(), asked.why.as_str()), ([out.clone()].as_slice(), "the result belongs there"));
        let (id, line) = (stage.id(), format!("--answer {seq}=once|run|no"));
        let listed = stage.runs();
        assert_eq!(listed["state"], "asking", "{listed}");
        assert_eq!((&listed["question"]["asked"], &listed["question"]["wants"]["write"]), (&json!(seq), &json!([out])));
        assert!(listed["question"]["answer"].as_str().unwrap().ends_with(&format!("send {id} {line}")), "{listed}");
        for told in [stage.place.start(&["runs"]).out, stage.place.start(&["show", &id]).out] {
            assert!(told.contains(&line), "{told}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stage.runs()["state"], "interrupted");
        assert_eq!(stage.runs()["question"]["asked"], seq, "the question stands");
        assert!(!stage.place.work().join("counter").exists(), "nothing runs without an answer");

        let send = |answer: &str| stage.place.start(&["send", &id, "--answer", answer]);
        let no_such = send("1=once");
        assert!(no_such.code == 2 && no_such.err.contains(&format!("event 1 is no question; {id} waits for an answer to {seq}")));
        assert_eq!(send(&format!("{seq}=perhaps")).code, 2);
        let resume = ["resume", &id, "--config", "none"].map(str::to_owned);
        let resumed = match when {
            "before" => {
                assert_eq!(send(&format!("{seq}=once")).code, 0);
                let again = send(&format!("{seq}=no"));
                assert!(again.code == 2 && again.err.contains("was answered already: once lies in the inbox"), "{again:?}");
                stage.begin(&resume)
            }
            _ => {
                let resumed = stage.begin(&resume);
                until(|| (stage.runs()["state"] == "asking").then_some(()));
                assert_eq!(send(&format!("{seq}=once")).code, 0);
                resumed
            }
        };
        let output = resumed.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read_to_string(out.join("made")).unwrap(), "there\n");
        assert_eq!(stage.place.read("counter"), "begun\n", "it ran once");
        assert_eq!(stage.approved_by(), [Some("send".to_owned())]);
        let kinds: Vec<String> = stage.place.events().iter().map(|event| event.what.kind().to_owned()).collect();
        let order: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| *kind != "Asked").collect();
        let expected =
            ["Started", "Replied", "ApprovalAsked", "Delivered", "Delivered", "Called", "Observed", "Replied", "Finished"];
        assert_eq!(order, expected);
        let late = send(&format!("{seq}=no"));
        assert!(late.code == 2 && late.err.contains("was answered already: once, by send"), "{late:?}");
        assert_eq!(stage.place.start(&["show", &id, "--verify"]).code, 0);
    }
}

#[test]
fn f3_a_widened_call_that_was_begun_is_not_begun_again() {
    let out = outside("approval-begun");
    let stage = Stage::new("approval-begun", vec![writes(&out, "echo begun >>counter; sleep 300")]);
    let mut child = stage.begin(&stage.args(&["--approve", "wait"]));
    let (seq, _) = stage.until_it_asks();
    assert_eq!(stage.place.start(&["send", &stage.id(), "--answer", &format!("{seq}=run")]).code, 0);
    // A file that is there may still be empty.
    until(|| fs::read_to_string(stage.place.work().join("counter")).is_ok_and(|text| text == "begun\n").then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = stage.place.start(&["resume", "--last", "--config", "none"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(stage.place.read("counter"), "begun\n");
    assert!(stage.told()[0].starts_with("interrupted: Interrupted; its outcome is unknown."), "{:?}", stage.told());
}

#[test]
fn an_interrupt_at_a_question_ends_the_turn_and_the_question() {
    let out = outside("approval-interrupt");
    let stage = Stage::new("approval-interrupt", vec![writes(&out, "touch ran")]);
    let child = stage.begin(&stage.args(&["--approve", "wait"]));
    let (seq, _) = stage.until_it_asks();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let late = stage.place.start(&["send", &stage.id(), "--answer", &format!("{seq}=once")]);
    assert!(late.code == 2 && late.err.contains("is over: its call was ended without an answer"), "{late:?}");
    assert_eq!(stage.place.start(&["resume", "--last", "--config", "none"]).code, 0);
    assert!(!stage.place.work().join("ran").exists());
}

#[test]
fn a_no_is_told_with_the_words_that_came_with_it() {
    let out = outside("approval-no");
    let stage = Stage::new("approval-no", vec![writes(&out, "touch ran")]);
    let child = stage.begin(&stage.args(&["--approve", "wait"]));
    let (seq, _) = stage.until_it_asks();
    let sent = stage.place.start(&["send", &stage.id(), "--answer", &format!("{seq}=no"), "put it into the workspace"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(!stage.place.work().join("ran").exists());
    assert_eq!(
        stage.told(),
        ["denied: Not run: the person said no to writing $OUT. Do without it, or say why nothing else will do."]
    );
    assert!(stage.server.bodies()[1].contains("put it into the workspace"));
}

#[test]
fn auto_allows_what_the_ceiling_lists_and_nothing_else() {
    let out = outside("approval-auto");
    let below = out.join("below");
    let answers = vec![
        writes(&below, &format!("echo there >{}/made", below.display())),
        writes(&out, &format!("touch {}/ran", out.display())),
        call("bash", json!({"command": "touch ran", "network": true, "why": "to look"})),
        bash(&format!("touch {}/later", below.display())),
    ];
    let stage = Stage::new("approval-auto", answers);
    fs::create_dir(&below).unwrap();
    let config = stage.config(&format!("approve = \"auto\"\n[allow]\nwrite = [{:?}]\n", below.display()));
    let mut args = stage.args(&[]);
    let at = args.iter().position(|arg| arg == "none").unwrap();
    args[at] = config;
    let output = stage.begin(&args).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(below.join("made")).unwrap(), "there\n");
    assert_eq!(stage.approved_by(), [Some("auto".to_owned()), None, None, None]);
    let told = stage.told();
    assert!(told[1].starts_with("denied: Not run: writing $OUT is not granted"), "{told:?}");
    assert!(told[2].contains("--grant network"), "{told:?}");
    // What it touches last is in its private `/tmp`.
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&below).unwrap().count(), 1, "it was allowed for one call");
    assert!(!stage.place.work().join("ran").exists());
}

#[test]
fn a_widened_call_is_beside_the_others_and_its_children_end_with_it() {
    let out = outside("approval-children");
    let answers = vec![
        bash("export KEPT=yes; cd sub; sleep 301 & echo home >~/x; echo tmp >/tmp/x"),
        writes(
            &out,
            &format!("pwd; echo $KEPT $(cat ~/x /tmp/x); sleep 70930 & cd ..; export NEXT=on; touch {}/made", out.display()),
        ),
        call("bash", json!({"command": "until test -e go; do sleep 0.02; done; pwd; echo $KEPT $NEXT", "stop": ["c1"]})),
    ];
    let stage = Stage::new("approval-children", answers);
    stage.place.write("sub/file", "");
    let mut child = stage.begin(&stage.args(&["--approve", "wait"]));
    let (seq, _) = stage.until_it_asks();
    assert_eq!(stage.place.start(&["send", &stage.id(), "--answer", &format!("{seq}=once")]).code, 0);
    // While the last call waits, the widened one is over, and so is what it left running.
    until(|| (stage.observed().len() == 2).then_some(()));
    until(|| (!is_running("sleep 70930")).then_some(()));
    stage.place.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let work = stage.place.work().display().to_string();
    let told: Vec<String> = stage.told().iter().map(|told| told.replace(&work, "$WORK")).collect();
    let expected = [
        "ok: [now in $WORK/sub]\n[still running: c1 sleep 301 (0 s)]",
        "ok: $WORK/sub\nyes home tmp\n[now in $WORK]\n[ended with this call: sleep 70930]\n[still running: c1 sleep 301 (0 s)]",
        "ok: $WORK\nyes on\n[c1 was stopped]",
    ];
    assert_eq!(told.iter().map(|told| ageless(told)).collect::<Vec<_>>(), expected.map(ageless));
    let children: Vec<usize> = stage.observed().iter().map(|observed| observed.children.len()).collect();
    assert_eq!(children, [1, 1, 0]);
    assert!(out.join("made").exists());
}

/// Whether a process on this machine has this command line.
fn is_running(line: &str) -> bool {
    let commands = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ")).any(|found| found.trim() == line)
}

/// A text without what a process is called and how long it has been running: a shell may not have become its command yet.
fn ageless(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(": ") {
        Some(("[still running", named)) => format!("[still running: {}]", named.split(' ').next().unwrap_or_default()),
        Some(("[ended with this call", _)) => "[ended with this call]".to_owned(),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_answer_for_the_run_serves_all_that_follows_also_in_later_sessions() {
    let out = outside("approval-run");
    let (made, noted) = (out.join("made"), out.join("noted"));
    let answers = vec![
        bash("sleep 301 &"),
        writes(&out, "sleep 302 &"),
        call("write", json!({"path": noted, "content": "by a file tool\n"})),
        call("bash", json!({"command": "true", "stop": ["c1"]})),
        Answer { text: Some("Half.".into()), ..Answer::default() },
        bash(&format!("echo later >{}", made.display())),
    ];
    let stage = Stage::new("approval-run", answers);
    let mut child = stage.begin(&stage.args(&["--approve", "wait"]));
    let (seq, _) = stage.until_it_asks();
    assert_eq!(stage.place.start(&["send", &stage.id(), "--answer", &format!("{seq}=run")]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&noted).unwrap(), "by a file tool\n");
    let names: Vec<Vec<String>> =
        stage.observed().iter().map(|observed| observed.children.iter().map(|child| child.name.clone()).collect()).collect();
    assert_eq!(names, [vec!["c1"], vec!["c1", "c2"], vec![], vec!["c2"]], "one name for one process");
    let resumed = stage.place.start(&["resume", "--last", "--config", "none", "-m", "on"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(fs::read_to_string(&made).unwrap(), "later\n");
    assert_eq!(stage.approved_by().iter().filter(|by| by.is_some()).count(), 1);
}

#[test]
fn what_cannot_be_granted_is_not_asked() {
    let out = outside("approval-refused");
    let secret = out.with_file_name("home");
    let wishes = [json!("/"), json!(out.with_file_name("person")), json!(secret), json!(out.join("missing")), json!("/dev/null")];
    let answers =
        wishes.iter().map(|path| call("bash", json!({"command": "touch ran", "write": [path], "why": "to try"}))).collect();
    let stage = Stage::new("approval-refused", answers);
    fs::create_dir_all(out.with_file_name("person")).unwrap();
    let called = stage.run(&["--approve", "wait"]);
    assert_eq!(called.code, 0, "{called:?}");
    let told = stage.told();
    for (told, words) in
        told.iter().zip(["whole file system", "home folder", "never shown", "No such file", "belongs to the kernel"])
    {
        assert!(told.starts_with("denied: Nothing was run: ") && told.contains(words), "no {words:?} in {told}");
    }
    assert_eq!(told.len(), 5);
    assert!(!stage.place.events().iter().any(|event| matches!(event.what, What::ApprovalAsked(_))));
    assert!(!stage.place.work().join("ran").exists());
}

#[test]
fn a_link_is_asked_for_as_what_it_leads_to_and_not_followed_elsewhere_later() {
    let out = outside("approval-link");
    let stage = Stage::new("approval-link", vec![writes(Path::new("way/in"), "echo changed >way/in/file")]);
    let (shown, other) = (stage.outside.join("shown"), stage.outside.join("other"));
    for folder in [&shown, &other] {
        fs::create_dir(folder).unwrap();
        fs::create_dir(folder.join("in")).unwrap();
    }
    symlink(&shown, stage.place.work().join("way")).unwrap();
    let child = stage.begin(&stage.args(&["--approve", "wait"]));
    let (seq, asked) = stage.until_it_asks();
    assert_eq!(asked.wants.write, [out.join("shown/in")], "the person is shown where the link leads");
    // Between question and answer what was shown is exchanged for a link to something else.
    fs::rename(&shown, stage.outside.join("away")).unwrap();
    symlink(&other, &shown).unwrap();
    assert_eq!(stage.place.start(&["send", &stage.id(), "--answer", &format!("{seq}=once")]).code, 0);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let told = stage.told();
    assert!(told[0].starts_with("failed: ") && told[0].contains("a link leads from it to"), "{told:?}");
    assert!(!other.join("in/file").exists());
}

#[test]
fn a_run_that_only_reads_is_lifted_by_the_person() {
    let stage = Stage::new(
        "read-only",
        vec![
            bash("echo new >file || echo tmp >/tmp/x && cat /tmp/x"),
            call("write", json!({"path": "file", "content": "new"})),
            call("bash", json!({"command": "touch file", "write": ["."], "why": "to write"})),
            Answer { text: Some("The plan.".into()), ..Answer::default() },
            bash("echo new >file"),
        ],
    );
    let host = stage.run(&["--read-only", "--sandbox", "host"]);
    assert!(host.code == 2 && host.err.contains("--read-only needs walls"), "{host:?}");
    let grant = format!("write={}", stage.outside.display());
    let both = stage.run(&["--read-only", "--grant", &grant]);
    assert!(both.code == 2 && both.err.contains("--read-only writes nothing"), "{both:?}");
    assert_eq!(stage.server.bodies().len(), 0);
    let planned = stage.run(&["--read-only", "--approve", "wait"]);
    assert_eq!((planned.code, planned.out.as_str()), (0, "The plan.\n"), "{planned:?}");
    let told = stage.told();
    assert!(told[0].contains("Read-only file system") && told[0].ends_with("tmp"), "{told:?}");
    assert!(told[1].starts_with("failed: ") && told[1].contains("only be read"), "{told:?}");
    assert!(told[2].starts_with("denied: ") && told[2].contains("--read-only=no"), "{told:?}");
    assert_eq!(fs::read_dir(stage.place.work()).unwrap().count(), 0);
    assert!(stage.server.bodies()[0].contains("The workspace can be read and not written"));
    let resumed = stage.place.start(&["resume", "--last", "--config", "none", "-m", "do it", "--read-only=no"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(stage.place.read("file"), "new\n");
    assert!(stage.server.bodies()[4].contains("The workspace can be written now."));
    assert_eq!(stage.observed().last().map(|observed| observed.status), Some(Status::Ok));
}

#[test]
fn what_was_denied_is_granted_to_a_later_session_which_tells_the_agent() {
    let out = outside("granted-later");
    let command = format!("{COUNT}{}/made", out.display());
    let answers = [
        writes(&out, &command),
        Answer { text: Some("It is not granted.".to_owned()), ..Answer::default() },
        bash(&command),
        call("read", json!({"path": out.join("made")})),
    ];
    let stage = Stage::new("granted-later", answers.into());
    assert_eq!(stage.run(&[]).code, 0);
    let flag = format!("write={}", out.display());
    let resumed = [["resume", "--last", "--config", "none", "-m", "now", "--grant"].as_slice(), &[flag.as_str()]].concat();
    let resumed = stage.place.start(&resumed);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    let told = stage.told();
    assert!(told[0].starts_with("denied:") && told[0].contains("--grant write=$OUT"), "{told:?}");
    assert_eq!((told[1].as_str(), told[2].contains("there")), ("ok: [no output]", true), "{told:?}");
    assert_eq!(stage.place.read("counter"), "begun\n");
    let body = stage.server.bodies().pop().unwrap();
    assert!(body.contains(&format!("Beyond the workspace, commands have writing {}", out.display())), "{body}");
    let missing = stage.place.start(&["resume", "--last", "--config", "none", "-m", "on", "--grant", "read=/not/there"]);
    assert_eq!(missing.code, 2, "{}", missing.err);
}
