//! What a person does with the command line besides running tasks: grants, recordings, harnesses, configuration, showing.

use crate::support::server::{Answer, Server, Wire, bash};
use crate::support::{Called, Place, until};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use trace::{What, text_of};

/// A run of the real binary with one command in it; returns what became of it and what the command's observation said.
fn observe(place: &Place, command: &str, more: &[&str]) -> (Called, String) {
    let server = Server::start(vec![bash(command)]);
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    args.extend(more);
    let called = place.start(&args);
    let said = place.events().iter().rev().find_map(|event| match &event.what {
        What::Observed(observed) => Some(text_of(&observed.content)),
        _ => None,
    });
    (called, said.unwrap())
}

#[test]
fn rights_beyond_the_workspace_are_granted_by_name() {
    let place = Place::new("grants");
    let outside = place.home().with_file_name("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("note.txt"), "treasure\n").unwrap();
    let path = outside.display().to_string();
    let (read, write) = (format!("read={path}"), format!("write={path}"));
    let look = format!("cat {path}/note.txt");
    let change = format!("echo changed > {path}/note.txt");
    assert!(!observe(&place, &look, &[]).1.contains("treasure"));
    assert!(observe(&place, &look, &["--grant", &read]).1.contains("treasure"));
    observe(&place, &change, &["--grant", &read]);
    assert_eq!(fs::read_to_string(outside.join("note.txt")).unwrap(), "treasure\n");
    observe(&place, &change, &["--grant", &write]);
    assert_eq!(fs::read_to_string(outside.join("note.txt")).unwrap(), "changed\n");

    let elsewhere = Server::start(Vec::new());
    let port = elsewhere.base_url.trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    assert!(!observe(&place, &connect, &[]).1.contains("connected"));
    assert!(observe(&place, &connect, &["--grant", "network"]).1.contains("connected"));
}

#[test]
fn a_full_disk_behind_standard_output_is_no_success() {
    let place = Place::new("full-output");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["models", "list", "--config", "none"]).stdout(full).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && told.contains("writing to standard output: No space left"), "{told}");
}

#[test]
fn a_command_sees_nothing_of_the_engines_environment_and_home() {
    let place = Place::new("environment");
    let server = Server::start(vec![bash(&format!("env; ls -la {} ~", place.home().display()))]);
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let output = place.command(&args).env("OPENAI_API_KEY", "sk-not-for-agents").output().unwrap();
    assert!(output.status.success());
    let events = place.events();
    let Some(What::Observed(observed)) = events.iter().map(|event| &event.what).find(|what| matches!(what, What::Observed(_)))
    else {
        panic!("nothing was observed")
    };
    let said = text_of(&observed.content);
    assert!(said.contains("HOME="), "{said}");
    assert!(!said.contains("sk-not-for-agents") && !said.contains("AUTOSAGE_HOME") && !said.contains("trace.jsonl"), "{said}");
    assert!(!fs::read_to_string(place.run_folder().join("trace.jsonl")).unwrap().contains("sk-not-for-agents"));
}

#[test]
fn a_recording_is_played_again_and_told_from_the_run_that_left_it() {
    let (place, server) = (Place::new("recording"), Server::start(vec![bash("cat input.txt")]));
    place.write("input.txt", "here\n");
    let (work, file) = (place.work().display().to_string(), place.home().with_file_name("talk.jsonl").display().to_string());
    let mut args = vec!["run", "go", "--record", &file];
    args.extend(place.arguments(&server, &work));
    let live = place.start(&args);
    assert_eq!((live.code, live.out.as_str()), (0, "Done.\n"), "{}", live.err);
    let asked = server.bodies().len();

    let model = format!("recorded/{file}");
    let replay = ["run", "go", "--model", &model, "--workspace", &work, "--config", "none"];
    let played = place.start(&replay);
    assert_eq!((played.code, played.out.as_str()), (0, "Done.\n"), "{}", played.err);
    assert_eq!(server.bodies().len(), asked, "no server is asked");

    fs::remove_file(place.work().join("input.txt")).unwrap();
    let parted = place.start(&replay);
    assert!(parted.code == 4 && parted.err.contains("have parted"), "{parted:?}");
}

#[test]
fn a_recording_is_played_elsewhere_but_not_to_another_prompt() {
    for wire in Wire::ALL {
        let (place, server) = (Place::new(&format!("strict-{wire:?}")), Server::start(vec![bash("cat input.txt; pwd; echo ~")]));
        place.write("input.txt", "here\n");
        let (work, file) = (place.work().display().to_string(), place.home().with_file_name("talk.jsonl").display().to_string());
        let mut args = vec!["run", "go", "--record", &file];
        args.extend(place.arguments_on(wire, &server, &work));
        let live = place.start(&args);
        assert_eq!((live.code, live.out.as_str()), (0, "Done.\n"), "{}", live.err);

        let other = Place::new(&format!("strict-elsewhere-{wire:?}"));
        other.write("input.txt", "here\n");
        let (work, model) = (other.work().display().to_string(), format!("recorded/{file}"));
        let replay = ["run", "go", "--model", &model, "--workspace", &work, "--config", "none"];
        let played = other.start(&replay);
        assert_eq!((played.code, played.out.as_str()), (0, "Done.\n"), "another workspace, home and run: {}", played.err);

        other.write("input.txt", "there\n");
        let parted = other.start(&replay);
        assert!(parted.code == 4 && parted.err.contains("the prompt for reply 2 is not the recorded one"), "{parted:?}");
        other.write("AGENTS.md", "Whistle.\n");
        let parted = other.start(&replay);
        assert!(parted.code == 4 && parted.err.contains("the prompt for reply 1 is not the recorded one"), "{parted:?}");
        // To whoever wants that, it is played all the same.
        assert!(parted.err.contains("\"strict\":false"), "{}", parted.err);
        let strict = fs::read_to_string(&file).unwrap();
        fs::write(&file, strict.replace("\"strict\":true", "\"strict\":false")).unwrap();
        assert_eq!(other.start(&replay).code, 0);
    }
}

#[test]
fn a_harness_is_exported_changed_and_used() {
    let (place, server) = (Place::new("harness"), Server::start(Vec::new()));
    let (work, dir) = (place.work().display().to_string(), place.home().with_file_name("own").display().to_string());
    let exported = place.start(&["harness", "export", &dir]);
    assert!(exported.code == 0 && exported.out.contains("--harness"), "{exported:?}");
    assert_eq!(place.start(&["harness", "export", &dir]).code, 2, "nothing is written over");
    let system = format!("{dir}/instructions/system.md");
    fs::write(&system, fs::read_to_string(&system).unwrap() + "\nSpeak like a sailor.\n").unwrap();
    let mut args = vec!["run", "go", "--harness", &dir];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    assert!(server.bodies()[0].contains("Speak like a sailor."));
    // The record holds the harness, so the folder is not needed to prove or to go on.
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(place.start(&["show", "--last", "--prompt", "1"]).out.trim_end(), server.bodies()[0]);
    let broken = place.start(&args);
    assert!(broken.code == 2 && broken.err.contains("own"), "{broken:?}");
}

#[test]
fn the_configuration_settles_what_is_not_typed() {
    let (place, server) = (Place::new("config"), Server::start(Vec::new()));
    let (work, folder) = (place.work().display().to_string(), place.home().with_file_name("conf"));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.toml").display().to_string();
    let text = format!(
        "model = \"openai-compatible/m\"\nbase_url = \"{}\"\nchecks = [\"true\"]\n[budget]\nturns = 7\n",
        server.base_url
    );
    fs::write(&file, &text).unwrap();
    fs::write(folder.join("AGENTS.md"), "Always whistle.\n").unwrap();
    let args = ["run", "go", "--workspace", &work, "--config", &file];
    let called = place.start(&args);
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(server.bodies()[0].contains("Always whistle."));
    let events = place.events();
    let What::Started(started) = &events[0].what else { panic!("no start") };
    assert_eq!((started.limits.turns, started.task.checks.len()), (Some(7), 1));
    fs::write(&file, format!("modle = \"x\"\n{text}")).unwrap();
    let called = place.start(&args);
    let told = format!("{file}:1:1: unknown key `modle`: did you mean `model`?");
    assert!(called.code == 2 && called.err.contains(&told), "{called:?}");
}

#[test]
fn a_configuration_that_is_a_pipe_is_refused_and_not_waited_for() {
    let place = Place::new("config-pipe");
    let (folder, work) = (place.home().with_file_name("conf"), place.work().display().to_string());
    fs::create_dir_all(&folder).unwrap();
    let config = folder.join("config.toml");
    for name in ["config.toml", "models.toml", "AGENTS.md"] {
        let file = folder.join(name);
        let _ = fs::remove_file(&config);
        fs::write(&config, "").unwrap();
        let _ = fs::remove_file(&file);
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let args = ["run", "go", "--workspace", &work, "--config", config.to_str().unwrap()];
        let mut child = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
        // Opened for writing without waiting: only while somebody waits to read from it.
        let is_waited_for = || {
            let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
            rustix::fs::open(&file, flags, rustix::fs::Mode::empty()).is_ok()
        };
        until(|| (is_waited_for() || child.try_wait().unwrap().is_some()).then_some(()));
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let (file_named, why) = (file.display().to_string(), ": it is not a regular file: one is expected there, or nothing");
        assert!(output.status.code() == Some(2) && told.contains(&file_named) && told.contains(why), "{told}");
        fs::remove_file(&file).unwrap();
    }
    for (named, why) in [("/dev/null", "it is not a regular file"), ("/no/such/file", "there is no such file")] {
        let called = place.start(&["run", "go", "--workspace", &work, "--config", named]);
        assert!(called.code == 2 && called.err.contains("--config none") && called.err.contains(why), "{called:?}");
    }
}

#[test]
fn a_run_is_shown_as_story_events_and_bill() {
    let place = Place::new("show");
    let (called, _) = observe(&place, "echo hello; exit 3", &["--price", "1,2"]);
    assert_eq!(called.code, 0, "{}", called.err);
    let show = |what: &[&str]| {
        let called = place.start(&[&["show", "--last"], what].concat());
        assert_eq!(called.code, 0, "{called:?}");
        called.out
    };
    let story = show(&[]);
    assert!(story.contains("$ echo hello; exit 3\n  hello\n  exit code 3 ·"), "{story}");
    assert!(story.contains(" tokens · "), "nothing was estimated: {story}");
    assert_eq!(show(&["--follow"]), story, "nobody owns the run, so there is nothing to wait for");
    assert_eq!(show(&["--events"]).lines().count(), place.events().len());
    let bill = show(&["--cost"]);
    // Twice 100 tokens in at 1 dollar a million, and 10 out at 2.
    assert!(bill.lines().any(|line| line.starts_with("total") && line.ends_with("$0.0002")), "{bill}");
    // The bill has the numbers of replies.
    let told: Vec<&str> = bill
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok().and(line.split_whitespace().next()))
        .collect();
    assert_eq!(told, ["2", "6"], "{bill}");
    assert_eq!([show(&["--prompt", "2"]), show(&["--prompt", "6"])], [show(&["--prompt", "1"]), show(&["--prompt", "5"])]);
    let wrong = place.start(&["show", "--last", "--prompt", "0"]);
    assert!(wrong.code == 2 && wrong.err.contains("the requests of this run are: 1, 5"), "{wrong:?}");
    let completions = place.start(&["completions", "bash"]);
    assert!(completions.code == 0 && completions.out.contains("autosage"), "{}", completions.err);
}

#[test]
fn a_hanging_request_is_stopped_by_a_signal_and_charged_by_estimate() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        Wire::ALL.into_iter().for_each(|wire| stopped_by(signal, wire));
    }
}

fn stopped_by(signal: rustix::process::Signal, wire: Wire) {
    let hang = Answer { hang: true, ..Answer::default() };
    let (place, server) = (Place::new("hang"), Server::start(vec![hang]));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--json"];
    args.extend(place.arguments_on(wire, &server, &work));
    let mut child = place.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"kind\":\"Asked\"") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "it ended before it asked");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let kinds: Vec<String> =
        rest.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].to_string()).collect();
    assert_eq!(kinds, ["\"Replied\"", "\"Delivered\"", "\"Finished\""]);
    let story = place.start(&["show", "--last"]).out;
    assert!(story.contains(" tokens (estimated) · "), "what no provider counted is said: {story}");
}

#[test]
fn a_workspace_that_holds_what_must_be_hidden_is_refused() {
    let (place, server) = (Place::new("refused"), Server::start(Vec::new()));
    let above = place.home().parent().unwrap().display().to_string();
    fs::create_dir_all(place.home()).unwrap();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &above));
    let called = place.start(&args);
    assert_eq!(called.code, 2, "{}", called.err);
    assert!(called.err.contains("cannot be the workspace"), "{}", called.err);
    assert!(fs::read_dir(place.home().join("runs")).unwrap().next().is_none(), "a run that never began leaves nothing behind");
}

#[test]
fn a_key_goes_to_its_own_host_and_nowhere_else() {
    let (place, server) = (Place::new("keys"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let run = |model: &str, more: &[&str], variables: &[(&str, &str)]| {
        let args = ["run", "go", "--model", model, "--workspace", &work, "--config", "none"];
        place.command(&[&args, more].concat()).envs(variables.iter().copied()).output().unwrap()
    };
    let url = server.base_url.as_str();
    // OpenAI's key is not sent to an address that was typed …
    let refused = run("openai/gpt-5", &["--base-url", url], &[("OPENAI_API_KEY", "sk-secret")]);
    assert_eq!((refused.status.code(), server.keys().len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("OPENAI_API_KEY is not sent to"));
    // … unless its own variable names the address, or the key is named for it.
    let own = [("OPENAI_API_KEY", "sk-secret"), ("OPENAI_BASE_URL", url)];
    assert_eq!(run("openai/gpt-5", &[], &own).status.code(), Some(0));
    assert_eq!(run("openai-compatible/m", &["--base-url", url], &own[..1]).status.code(), Some(0));
    let named = ["--base-url", url, "--key-env", "OTHER"];
    assert_eq!(run("openai-compatible/m", &named, &[("OTHER", "other")]).status.code(), Some(0));
    assert_eq!(run("openai-compatible/m", &named, &[]).status.code(), Some(2), "a key that was named has to be there");
    let keys: Vec<Option<String>> = server.keys();
    let keys: Vec<Option<&str>> = keys.iter().map(Option::as_deref).collect();
    assert_eq!(keys, [Some("Bearer sk-secret"), None, Some("Bearer other")]);
}

#[test]
fn a_token_stands_for_a_key_where_there_is_none() {
    let (place, server) = (Place::new("token"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let run = |variables: &[(&str, &str)]| {
        let args = ["run", "go", "--model", "anthropic/m", "--workspace", &work, "--config", "none"];
        let output = place.command(&args).env("ANTHROPIC_BASE_URL", &server.base_url).envs(variables.iter().copied()).output();
        assert_eq!(output.unwrap().status.code(), Some(0));
    };
    run(&[("ANTHROPIC_AUTH_TOKEN", "of-mine")]);
    run(&[("ANTHROPIC_AUTH_TOKEN", "of-mine"), ("ANTHROPIC_API_KEY", "sk-ant-key")]);
    assert_eq!(server.keys(), [Some("Bearer of-mine".to_owned()), Some("sk-ant-key".to_owned())]);
    let record = fs::read_to_string(place.run_folder().join("trace.jsonl")).unwrap();
    assert!(!record.contains("of-mine") && !record.contains("sk-ant-key"));
}

#[test]
fn a_recorded_conversation_goes_on_at_its_place_after_a_resume() {
    let (place, server) = (Place::new("recorded-resume"), Server::start(vec![bash("echo one"), bash("echo two")]));
    let (work, file) = (place.work().display().to_string(), place.home().with_file_name("talk.jsonl").display().to_string());
    let mut args = vec!["run", "go", "--record", &file];
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    // A later session is told that it is one, so its prompt is another.
    let strict = fs::read_to_string(&file).unwrap();
    fs::write(&file, strict.replace("\"strict\":true", "\"strict\":false")).unwrap();
    let model = format!("recorded/{file}");
    let begun = place.start(&["run", "go", "--model", &model, "--workspace", &work, "--config", "none", "--max-turns", "1"]);
    assert_eq!(begun.code, 3, "{}", begun.err);
    let resumed = place.start(&["resume", "--last", "--config", "none", "--max-turns", "9"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
    let called: Vec<String> = place
        .events()
        .iter()
        .filter_map(|event| if let What::Called(called) = &event.what { Some(called.raw.clone()) } else { None })
        .collect();
    assert_eq!(called, [r#"{"command":"echo one"}"#, r#"{"command":"echo two"}"#]);
}

#[test]
fn a_command_that_keeps_nothing_needs_no_place_to_keep_it() {
    let place = Place::new("homeless");
    let homeless = |args: &[&str]| {
        let output = place.command(args).env_remove("HOME").env_remove("AUTOSAGE_HOME").output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(homeless(&["completions", "bash"]).0, 0);
    let (code, out, _) = homeless(&["doctor"]);
    assert!(code == 1 && out.contains("WRONG   home: ") && out.contains("set AUTOSAGE_HOME to a folder"), "{out}");
    let (code, _, err) = homeless(&["runs"]);
    assert!(code == 2 && err.contains("set AUTOSAGE_HOME to a folder"), "{err}");
}

#[test]
fn a_file_that_is_no_archive_is_refused_by_its_name() {
    let place = Place::new("no-archive");
    place.write("notes.tar.gz", "what is this?");
    let path = place.work().join("notes.tar.gz").display().to_string();
    let refused = place.start(&["runs", "import", &path]);
    let told = format!("autosage: importing {path}: this is no archive of a run: ");
    assert!(refused.code == 2 && refused.err.starts_with(&told), "{refused:?}");
    assert_eq!(fs::read_dir(place.home().join("runs")).unwrap().count(), 0, "nothing is left of it");
}

#[test]
fn a_folder_of_the_xdg_standard_that_is_not_absolute_is_ignored() {
    let place = Place::new("xdg");
    let (work, person) = (place.work(), place.home().with_file_name("person"));
    let broken = work.join("near/autosage/config.toml");
    fs::create_dir_all(broken.parent().unwrap()).unwrap();
    fs::write(&broken, "modle = 1\n").unwrap();
    let doctor = |folder: &std::path::Path| {
        let mut command = place.command(&["doctor"]);
        command.current_dir(&work).env_remove("AUTOSAGE_HOME").env("XDG_CONFIG_HOME", folder).env("XDG_DATA_HOME", folder);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let told = doctor("near".as_ref());
    for path in [".config/autosage/config.toml", ".local/share/autosage"].map(|path| person.join(path)) {
        assert!(told.contains(&path.display().to_string()), "{told}");
    }
    assert!(!told.contains("near"), "{told}");
    let told = doctor(&work.join("near"));
    assert!(told.contains(&broken.display().to_string()) && told.contains("unknown key `modle`"), "{told}");
}
