//! The demo through the real binary: what it tells, what it leaves, and that it does so in every kind of walls.

mod picture;

use crate::support::{Called, Place, skip};
use expect_test::expect_file;
use std::fs;
use std::path::PathBuf;
use trace::{Verdict, What};

/// Plays the demo with its temporary folder inside `place`.
fn demo(place: &Place, args: &[&str]) -> Called {
    let output = place.command(&[&["demo"], args].concat()).env("TMPDIR", place.work()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Called { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// The workspace that a demo has left.
fn left(place: &Place) -> PathBuf {
    let mut folders: Vec<PathBuf> = fs::read_dir(place.work()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0).join("hours")
}

/// Plays the demo in `kind` and checks all that holds in any walls.
fn holds_in(kind: &str) -> (Place, Called) {
    let place = Place::new(&format!("demo-{kind}"));
    let called = demo(&place, &["--sandbox", kind]);
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(called.err.contains("recorded") && called.err.contains(&format!("sandbox {kind}")), "{}", called.err);

    let events = place.events();
    let turns = events.iter().filter(|event| matches!(event.what, What::Asked(_))).count();
    assert!(turns >= 8, "only {turns} turns");
    let verdicts: Vec<&Verdict> = events
        .iter()
        .filter_map(|event| if let What::Verified(verified) = &event.what { Some(&verified.verdict) } else { None })
        .collect();
    assert_eq!(verdicts, [&Verdict::Fail, &Verdict::Pass]);

    let report = left(&place).join("report.sh");
    #[allow(clippy::disallowed_methods, reason = "a test looks at what the demo has mended")]
    let output = std::process::Command::new("sh").arg(&report).arg(report.with_file_name("hours.csv")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\ntotal 82:08\n"), "{output:?}");
    (place, called)
}

#[test]
fn in_native_walls_it_tells_a_story_and_its_run_is_kept() {
    let (place, called) = holds_in("native");
    let run = place.run_folder().file_name().unwrap().to_string_lossy().into_owned();
    // What a shell says of a number is the shell's own.
    let shells_own = called.err.lines().find(|line| line.contains("report.sh: ")).unwrap().to_owned();
    let masked = [
        (shells_own.as_str(), "  (what the shell says of 08)"),
        (&left(&place).display().to_string(), "WORKSPACE"),
        (crate::support::PROGRAM, "autosage"),
        (&run, "RUN"),
    ];
    let story = masked.iter().fold(called.err.clone(), |text, (own, mask)| text.replace(own, mask));
    let story: String = story.lines().map(|line| format!("{}\n", without_time(line))).collect();
    expect_file!["demo.txt"].assert_eq(&story);
    let Some(What::Finished(finished)) = place.events().pop().map(|event| event.what) else { panic!("it has not finished") };
    assert_eq!(called.out, format!("{}\n", finished.answer.unwrap()));

    let runs = place.start(&["runs"]);
    assert!(runs.code == 0 && runs.out.contains(&run) && runs.out.contains("done"), "{runs:?}");
    let proof = place.start(&["show", "--last", "--verify"]);
    assert!(proof.code == 0 && proof.out.starts_with("intact"), "{proof:?}");
}

/// `line` without the time that the run took, which is the last thing that it says of itself.
fn without_time(line: &str) -> &str {
    if line.starts_with("done · ") { line.rsplit_once(" · ").unwrap().0 } else { line }
}

#[test]
fn in_reduced_walls_it_works_and_says_that_they_are() {
    let (_, called) = holds_in("reduced");
    assert!(called.err.contains("sandbox reduced: no namespaces"), "{}", called.err);
}

#[test]
fn where_namespaces_are_refused_it_says_so_and_goes_on_in_reduced_walls() {
    // In a namespace of its own a user may set how many there can be in it: none.
    const REFUSED: &str = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" demo";
    if !namespaces() {
        return;
    }
    let place = Place::new("demo-refused");
    let mut command = place.command(&[]);
    let variables: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command = unshare(&["sh", "-c", REFUSED, crate::support::PROGRAM]);
    let output = command.env_clear().envs(variables).env("TMPDIR", place.work()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("The sandbox `native` does not work here"), "{told}");
    let Some(What::Started(started)) = place.events().into_iter().next().map(|event| event.what) else { panic!("no start") };
    assert_eq!(started.facts.backend, "reduced");
}

/// `command` as the root of a new user namespace.
#[allow(clippy::disallowed_methods, reason = "a test takes something away from the program that it starts")]
fn unshare(command: &[&str]) -> std::process::Command {
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--user", "--map-root-user"]).args(command);
    unshare
}

/// Whether a test can make namespaces. Where it cannot, the test says so and ends, unless `AUTOSAGE_REQUIRE` names them.
pub fn namespaces() -> bool {
    let made = unshare(&["true"]).status().is_ok_and(|status| status.success());
    if !made {
        skip("namespaces");
    }
    made
}

#[test]
fn without_walls_it_works_and_says_so_loudly() {
    let (_, called) = holds_in("host");
    assert!(called.err.contains("NO WALLS"), "{}", called.err);
}

#[test]
fn as_an_event_stream_it_is_the_record_and_nothing_else() {
    let place = Place::new("demo-json");
    let called = demo(&place, &["--json"]);
    assert_eq!((called.code, called.err.as_str()), (0, ""));
    assert_eq!(called.out, fs::read_to_string(place.run_folder().join("trace.jsonl")).unwrap());
}

#[test]
fn a_run_that_leaves_the_recording_ends_with_a_message() {
    let place = Place::new("demo-resumed");
    assert_eq!(demo(&place, &[]).code, 0);
    let called = place.start(&["resume", "--last", "-m", "And November?"]);
    assert_eq!(called.code, 4, "{called:?}");
    assert!(called.err.contains("the recording ends after 11 replies"), "{}", called.err);
}
