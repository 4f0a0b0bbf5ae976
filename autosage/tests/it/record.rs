//! A record that survives what happens to disks and processes, through the real binary: damage, a full or read-only disk,
//! second owners, many runs at once.

mod carry;

use crate::folding::calls_and_results;
use crate::support::server::{Answer, Server, Wire, bash, call};
use crate::support::{Called, Place, SteppedClock, files, on_every_wire, until};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use trace::{Condition, Reading, What};

/// A run of the real binary against `answers`.
fn run(place: &Place, server: &Server, more: &[&str]) -> Called {
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(server, &work));
    args.extend(more);
    place.start(&args)
}

fn id(place: &Place) -> String {
    place.run_folder().file_name().unwrap().to_str().unwrap().to_owned()
}

fn resume(place: &Place, more: &[&str]) -> Called {
    place.start(&[&["resume", "--last", "--config", "none"], more].concat())
}

/// The folder of a second machine's home.
fn elsewhere(place: &Place) -> std::path::PathBuf {
    place.home().with_file_name("elsewhere")
}

/// The real binary with the second home.
fn there(place: &Place, args: &[&str]) -> Called {
    let output = place.command(args).env("AUTOSAGE_HOME", elsewhere(place)).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Called { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// Every line of the run is whole and chained, and every blob is there.
fn verifies(place: &Place) {
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 0 && proof.out.starts_with("intact"), "{proof:?}");
}

#[test]
fn f1_torn_line_at_any_byte_is_put_aside_and_nothing_is_welded() {
    let (place, server) = (Place::new("f1-torn"), Server::start(vec![bash("echo größer")]));
    assert_eq!(run(&place, &server, &[]).code, 0);
    let path = place.run_folder().join("trace.jsonl");
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let whole_lines = place.events().len() - 1;
    // Each place in the line is read by the library; the binary goes on from some of them.
    for end in last + 1..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let (events, reading) = Reading::all(&place.run_folder()).unwrap();
        assert_eq!(events.len(), whole_lines);
        assert!(matches!(reading.condition(), Condition::Torn { .. }), "{end}: {:?}", reading.condition());
    }
    for end in [last + 1, last + 100, whole.len() - 1] {
        fs::write(&path, &whole[..end]).unwrap();
        let shown = place.start(&["show", "--last"]);
        assert!(shown.code == 0 && shown.err.contains("puts them aside"), "{shown:?}");
        let resumed = resume(&place, &["-m", "on"]);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        verifies(&place);
        let now = fs::read(&path).unwrap();
        assert!(now.starts_with(&whole[..last]), "every line that was whole is there");
        let recovered = place.events().into_iter().find_map(|event| match event.what {
            What::Recovered(recovered) => Some(recovered),
            _ => None,
        });
        let kept = trace::blobs(&place.run_folder()).get(&recovered.unwrap().blob).unwrap();
        assert_eq!(kept, &whole[last..end]);
    }
}

#[test]
fn f1_welded_lines_leave_a_run_that_is_shown_with_both_neighbours_and_goes_on_as_a_new_one() {
    let (place, server) =
        (Place::new("f1-welded"), Server::start(vec![bash("echo one >> counter"), bash("echo two >> counter")]));
    assert_eq!(run(&place, &server, &[]).code, 0);
    let (old, path) = (id(&place), place.run_folder().join("trace.jsonl"));
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // The observation of the first command and the request behind it stand on one line.
    let welded = [lines[..4].concat(), lines[4].trim_end().to_owned(), lines[5..].concat()].concat();
    fs::write(&path, &welded).unwrap();

    let shown = place.start(&["show", "--last"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let told = ["line 4: ", "line 5: the line is not an event", "line 6 reads as an event again: ", "Replied", "--as-new"];
    assert!(told.iter().all(|words| shown.err.contains(words)), "{}", shown.err);
    let events = place.start(&["show", "--last", "--events"]);
    assert!(events.code == 0 && events.out.lines().count() == 4 && events.err.contains("line 6"), "{events:?}");
    let followed = place.start(&["show", "--last", "--follow"]);
    assert!(followed.code == 0 && followed.err == shown.err, "{followed:?}");
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 1 && proof.out.contains("line 6 reads as an event again: "), "{proof:?}");
    let listed = place.start(&["runs"]);
    assert!(listed.code == 0 && listed.out.contains("damaged"), "{listed:?}");
    let refused = resume(&place, &["-m", "on"]);
    assert!(refused.code == 4 && refused.err.contains("--as-new"), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), welded, "nothing was written");

    let anew = place.start(&["resume", &old, "--config", "none", "--as-new", "--json"]);
    assert_eq!(anew.code, 0, "{anew:?}");
    let new = id(&place);
    assert_ne!(new, old);
    let last: Value = serde_json::from_str(anew.out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["run"]), (&"Finished".into(), &new.as_str().into()), "the run says its own name");
    verifies(&place);
    let story = place.start(&["show", &new]).out;
    assert!(story.contains(&format!("run {new} goes on from here")), "{story}");
    let told = server.bodies().pop().unwrap();
    assert!(told.contains("damaged and is lost") && told.contains("its outcome is unknown"), "{told}");
    assert_eq!(place.read("counter"), "one\ntwo\n", "nothing was begun a second time");
    assert_eq!(fs::read_to_string(&path).unwrap(), welded, "the old run is left as it is");
    let sound = place.start(&["resume", &new, "--config", "none", "--as-new", "-m", "on"]);
    assert!(sound.code == 2 && sound.err.contains("is not damaged"), "{sound:?}");
}

#[test]
fn f1_full_disk_after_any_amount_leaves_whole_lines_and_a_run_that_goes_on() {
    // No file may grow beyond some KiB, as on a disk that is full.
    for kib in [8, 9, 11, 13] {
        let commands = (10..22).map(|n| bash(&format!("echo {}", n.to_string().repeat(20)))).collect();
        let (place, server) = (Place::new(&format!("f1-full-{kib}")), Server::start(commands));
        let work = place.work().display().to_string();
        let mut args = vec!["run", "go"];
        args.extend(place.arguments(&server, &work));
        let limited = place.limited(kib, &args);
        assert_eq!(limited.code, 4, "{limited:?}");
        assert!(limited.err.contains("trace.jsonl") && limited.err.contains("AUTOSAGE_HOME"), "{}", limited.err);
        verifies(&place);
        let before = fs::read(place.run_folder().join("trace.jsonl")).unwrap();
        assert!(before.ends_with(b"\n") && before.len() <= kib as usize * 1024, "{kib}: {} bytes", before.len());
        // Still full: nothing is welded to what is there.
        let work = place.work().display().to_string();
        let still = place.limited(kib, &["resume", "--last", "--config", "none"]);
        assert_eq!(still.code, 4, "{work}: {still:?}");
        let resumed = resume(&place, &[]);
        assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
        assert!(fs::read(place.run_folder().join("trace.jsonl")).unwrap().starts_with(&before));
        verifies(&place);
    }
}

#[test]
fn f1_two_processes_cannot_append_to_one_record() {
    // The command of the first waits, so that the second comes meanwhile; each reply holds 200 KB.
    let long = "x".repeat(200_000);
    let wait = Answer { text: Some(long.clone()), ..bash("echo begun > begun; while ! test -e go; do sleep 0.02; done") };
    let (place, server) = (Place::new("f1-two"), Server::start(vec![wait, Answer { text: Some(long), ..bash("true") }]));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    args.extend(["--context", "1000000"]);
    let first = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until(|| place.work().join("begun").exists().then_some(()));
    for more in [&[][..], &["--as-new"], &["-m", "also"]] {
        let second = resume(&place, more);
        assert_eq!(second.code, 4, "{second:?}");
        assert!(second.err.contains(&format!("process {}", first.id())), "the first is named: {}", second.err);
    }
    fs::write(place.work().join("go"), "").unwrap();
    assert!(first.wait_with_output().unwrap().status.success());
    verifies(&place);
    assert!(fs::metadata(place.run_folder().join("trace.jsonl")).unwrap().len() > 400_000);
}

#[test]
fn f2_a_second_owner_is_refused_with_the_pid_of_the_first_whatever_the_lock_says() {
    let (place, server) =
        (Place::new("f2"), Server::start(vec![bash("echo begun > begun; while ! test -e go; do sleep 0.02; done")]));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let first = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| place.work().join("begun").exists().then_some(()));
    let before = place.events().len();
    let second = resume(&place, &["-m", "on"]);
    assert!(second.code == 4 && second.err.contains(&format!("process {}", first.id())), "{second:?}");
    assert_eq!(place.events().len(), before);
    let waiting = place.start(&["runs", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&waiting.out).unwrap()["state"], "running");
    fs::write(place.work().join("go"), "").unwrap();
    assert!(first.wait_with_output().unwrap().status.success());

    // A lock that is missing, says nothing, or leads elsewhere.
    let (lock, elsewhere) = (place.run_folder().join("lock"), place.home().join("precious"));
    fs::remove_file(&lock).unwrap();
    assert_eq!(place.start(&["show", "--last", "--verify"]).code, 0);
    assert_eq!(resume(&place, &["-m", "on"]).code, 0);
    fs::write(&lock, "\0\0foreign").unwrap();
    assert_eq!(resume(&place, &["-m", "on"]).code, 0);
    fs::write(&elsewhere, "precious").unwrap();
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    let refused = resume(&place, &["-m", "on"]);
    assert!(refused.code == 4 && refused.err.contains("lock"), "{refused:?}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious", "a link in place of the lock is not written through");
}

#[test]
fn fifty_runs_at_once_in_one_home_lose_no_line() {
    let (place, server) = (Place::new("fifty"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go", "--json", "--sandbox", "host", "--durability", "process"];
    args.extend(place.arguments(&server, &work));
    let children: Vec<_> =
        (0..50).map(|_| place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()).collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let mut told: Vec<String> = outputs.into_iter().map(|output| String::from_utf8(output.stdout).unwrap()).collect();
    let mut written = Vec::new();
    for entry in fs::read_dir(place.home().join("runs")).unwrap() {
        let folder = entry.unwrap().path();
        let (events, reading) = Reading::all(&folder).unwrap();
        assert_eq!((reading.condition(), events.last().unwrap().what.kind()), (&Condition::Intact, "Finished"));
        written.push(fs::read_to_string(folder.join("trace.jsonl")).unwrap());
    }
    told.sort();
    written.sort();
    assert_eq!(written.len(), 50);
    assert!(told == written, "what was told is what was written");
    let listed = place.start(&["runs", "--json"]);
    assert_eq!(listed.out.lines().filter(|line| line.contains("\"outcome\":\"done\"")).count(), 50);
}

#[test]
fn a_damaged_blob_is_named_with_the_event_that_says_less_for_it() {
    let (place, server) = (Place::new("blob"), Server::start(vec![bash("seq 100000")]));
    assert_eq!(run(&place, &server, &[]).code, 0);
    let events = place.events();
    let (seq, at, blob) = events
        .iter()
        .find_map(|event| match &event.what {
            What::Observed(observed) => Some((event.seq, event.cause?, observed.blob?)),
            _ => None,
        })
        .unwrap();
    let path = trace::blobs(&place.run_folder()).path(&blob);
    let mut bytes = fs::read(&path).unwrap();
    bytes[5] ^= 1;
    fs::write(&path, bytes).unwrap();
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 1 && proof.out.contains(&format!("event {seq} (Observed)")), "{proof:?}");
    assert!(proof.out.contains(&blob.to_string()), "{proof:?}");
    let exported = place.start(&["runs", "export", &id(&place), "-"]);
    assert!(exported.code == 1 && exported.err.contains("is not intact"), "{}", exported.err);
    // What was written of it is in the record and goes on; only the whole output is gone, and the agent is told.
    server.restart(vec![call("read", json!({"path": format!("output:{at}")}))]);
    assert_eq!(resume(&place, &["-m", "on"]).code, 0);
    let told = server.bodies().pop().unwrap();
    assert!(told.contains("the kept output cannot be read: it is damaged"), "{}", &told[told.len() - 600..]);
}

#[test]
fn f5_a_list_reads_no_whole_records_and_what_is_kept_twice_is_kept_once() {
    let (place, server) = (Place::new("f5"), Server::start(vec![bash("seq 100000"), bash("seq 100000")]));
    assert_eq!(run(&place, &server, &[]).code, 0);
    let outputs: Vec<_> = place
        .events()
        .iter()
        .filter_map(|event| if let What::Observed(observed) = &event.what { observed.blob } else { None })
        .collect();
    assert!(outputs.len() == 2 && outputs[0] == outputs[1], "{outputs:?}");
    let blobs = fs::read_dir(place.run_folder().join("blobs")).unwrap().count();
    let named = place.events().iter().flat_map(|event| event.what.blobs()).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(blobs, named, "each content lies there once, and nothing else");
    let listed: Value = serde_json::from_str(&place.start(&["runs", "--json"]).out).unwrap();
    let bytes: usize = files(&place.run_folder()).iter().map(|(_, content)| content.len()).sum();
    assert_eq!(listed["bytes"], bytes);
}

/// The number of lines before the first event of `kind`, and it among them.
fn up_to(place: &Place, kind: &str) -> usize {
    place.events().iter().position(|event| event.what.kind() == kind).unwrap() + 1
}

/// Plays a run on `wire` at `server`, and cuts its record off behind the first event of the kind `end`.
fn run_up_to(end: &str, place: &Place, wire: Wire, server: &Server) {
    let work = place.work().display().to_string();
    let called = place.start(&[vec!["run", "go"], place.arguments_on(wire, server, &work)].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    let path = place.run_folder().join("trace.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: String = text.split_inclusive('\n').take(up_to(place, end)).collect();
    fs::write(&path, lines).unwrap();
}

/// Says "hi" to that run, and returns what the server was sent then; each of its calls has its one result.
fn say_hi(place: &Place, wire: Wire, server: &Server) -> String {
    let hi = [vec!["resume", "--last", "--config", "none", "-m", "hi"], wire.arguments(&server.base_url)].concat();
    let resumed = place.start(&hi);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
    let body = server.bodies().pop().unwrap();
    let (calls, results) = calls_and_results(wire, &body);
    assert!(calls.len() == 1 && calls == results, "{calls:?} {results:?}");
    body
}

#[test]
fn b2_a_record_that_ends_with_a_call_is_gone_on_with() {
    on_every_wire(|wire| {
        for (kind, told) in [("Replied", "ran"), ("Called", "its outcome is unknown")] {
            let place = Place::new(&format!("b2-{kind}-{wire:?}"));
            let server = Server::start(vec![bash("echo ran | tee -a counter")]);
            run_up_to(kind, &place, wire, &server);
            fs::remove_file(place.work().join("counter")).unwrap();
            let body = say_hi(&place, wire, &server);
            assert!(body.contains(told) && body.contains("\"hi\""), "{kind}: {body}");
            // What had begun is not begun again; what had not, is begun once.
            let counter = fs::read_to_string(place.work().join("counter")).unwrap_or_default();
            assert_eq!(counter, if kind == "Called" { "" } else { "ran\n" });
            verifies(&place);
        }
    });
}

#[test]
fn b3_duplicate_and_orphan_observations_are_passed_over_first_wins() {
    on_every_wire(|wire| {
        // Right behind the first one, and when the turn has ended.
        for end in ["Observed", "Finished"] {
            b3(end, wire);
        }
    });
}

fn b3(end: &str, wire: Wire) {
    let (place, server) = (Place::new(&format!("b3-{end}-{wire:?}")), Server::start(vec![bash("echo first")]));
    run_up_to(end, &place, wire, &server);
    let id = place
        .events()
        .iter()
        .find_map(|event| if let What::Observed(observed) = &event.what { Some(observed.id.clone()) } else { None })
        .unwrap();
    let clock = std::sync::Arc::new(SteppedClock::new());
    let (mut record, _) =
        trace::Record::open(&place.run_folder(), trace::Durability::Process, clock, Box::new(|_, _, _| ())).unwrap();
    let words = |id, words: &str| What::Observed(trace::Observed::words(id, trace::Status::Ok, words));
    for what in [words(id, "second"), words(trace::CallId::new(trace::Seq(99), 0), "orphan")] {
        record.append(&trace::AgentPath::root(), None, what).unwrap();
    }
    drop(record);
    let body = say_hi(&place, wire, &server);
    assert!(body.contains("first") && !body.contains("second") && !body.contains("orphan"), "{body}");
    assert_eq!(place.start(&["show", "--last"]).code, 0);
}

#[test]
fn f6_what_was_done_until_a_kill_is_whole_and_exported() {
    // The step at which the signals come: as random as the run's own name, and printed.
    let seed = std::process::id();
    for round in 0..6u32 {
        let step = (seed.wrapping_mul(2_654_435_761).wrapping_add(round * 40_503) >> 7) % 14 + 1;
        let commands = (0..4).map(|at| bash(&format!("echo {at}"))).collect();
        let (place, server) = (Place::new(&format!("f6-{round}")), Server::start(commands));
        let work = place.work().display().to_string();
        let mut args = vec!["run", "go", "--json"];
        args.extend(place.arguments(&server, &work));
        let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut told = Vec::new();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        while told.len() < step as usize {
            told.push(lines.next().unwrap_or_else(|| panic!("it ended before step {step}")).unwrap());
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
        // What follows the first signal, or the end: then the second one, which nobody hears.
        told.extend(lines.next().map(Result::unwrap));
        child.kill().unwrap();
        child.wait().unwrap();
        told.extend(lines.map(Result::unwrap));
        println!("killed after step {step} and {} lines", told.len());
        let (events, reading) = Reading::all(&place.run_folder()).unwrap();
        assert_eq!(reading.condition(), &Condition::Intact, "step {step}");
        let text = fs::read_to_string(place.run_folder().join("trace.jsonl")).unwrap();
        assert!(told.iter().zip(text.lines()).all(|(told, line)| told == line) && told.len() <= events.len(), "step {step}");
        verifies(&place);
        let file = place.home().with_file_name("run.tar.gz").display().to_string();
        let exported = place.start(&["runs", "export", &id(&place), &file]);
        assert_eq!(exported.code, 0, "{exported:?}");
        assert_eq!(there(&place, &["runs", "import", &file]).code, 0);
        assert!(there(&place, &["show", "--last", "--verify"]).out.starts_with("intact"));
        let resumed = resume(&place, &["-m", "on"]);
        assert_eq!(resumed.code, 0, "{}", resumed.err);
    }
}

#[test]
fn c6_a_standard_input_that_never_ends_is_not_waited_for() {
    let (place, server) = (Place::new("c6"), Server::start(Vec::new()));
    let work = place.work().display().to_string();
    let mut args = vec!["run", "go"];
    args.extend(place.arguments(&server, &work));
    let mut child = place.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Held open, and nothing is ever written to it.
    let open = child.stdin.take();
    assert!(child.wait().unwrap().success());
    drop(open);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test of the binary starts the binary")]
fn on_a_disk_that_is_only_read_a_run_is_shown_and_not_gone_on_with() {
    let (place, server) = (Place::new("read-only"), Server::start(Vec::new()));
    assert_eq!(run(&place, &server, &[]).code, 0);
    let home = place.home().display().to_string();
    let mounted = |args: &[&str]| {
        let script = "mount --bind \"$H\" \"$H\" && mount -o remount,bind,ro \"$H\" && exec \"$@\"";
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "bash", "-c", script, "bash", crate::support::PROGRAM]).args(args);
        let output = command.env("H", &home).env("AUTOSAGE_HOME", &home).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Called { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    };
    if !crate::demo::namespaces() {
        return;
    }
    for args in [&["show", "--last"][..], &["show", "--last", "--events"], &["show", "--last", "--verify"], &["runs"]] {
        let (here, there) = (place.start(args), mounted(args));
        assert_eq!((there.code, &there.out), (0, &here.out), "{args:?}: {}", there.err);
    }
    let exported = mounted(&["runs", "export", &id(&place), &place.home().with_file_name("run.tar.gz").display().to_string()]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let work = place.work().display().to_string();
    let mut fresh = vec!["run", "go"];
    fresh.extend(place.arguments(&server, &work));
    for args in [&["resume", "--last", "--config", "none", "-m", "on"][..], &fresh] {
        let refused = mounted(args);
        assert!(refused.code == 4 && refused.err.contains("Read-only file system"), "{refused:?}");
    }
}
