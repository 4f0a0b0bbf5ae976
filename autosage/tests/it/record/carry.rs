//! Runs that leave as one file, come from elsewhere, or are removed.

use super::{elsewhere, id, run, there};
use crate::support::server::{Server, bash};
use crate::support::{Place, SteppedClock, files};
use std::fs;
use std::path::Path;

#[test]
fn a_run_is_exported_as_one_file_that_opens_elsewhere_and_goes_on_there() {
    let (place, server) = (Place::new("export"), Server::start(vec![bash("seq 100000")]));
    assert_eq!(run(&place, &server, &["--grant", "network"]).code, 0);
    let id = id(&place);
    assert_eq!(place.start(&["send", &id, "and then?"]).code, 0);
    let (file, again) = (place.home().with_file_name("run.tar.gz"), place.home().with_file_name("again.tar.gz"));
    let (path, second) = (file.display().to_string(), again.display().to_string());
    let exported = place.start(&["runs", "export", &id, &path]);
    assert!(exported.code == 0 && exported.err.contains("blobs in"), "{exported:?}");
    assert_eq!(place.start(&["runs", "export", &id, &second]).code, 0);
    assert_eq!(fs::read(&file).unwrap(), fs::read(&again).unwrap(), "the same record gives the same bytes");
    let taken = place.start(&["runs", "export", &id, &path]);
    assert!(taken.code == 2 && taken.err.contains("is there already"), "{taken:?}");

    let imported = there(&place, &["runs", "import", &path]);
    assert!(imported.code == 0 && imported.err.contains("is imported"), "{imported:?}");
    let (old, new) = (place.run_folder(), elsewhere(&place).join("runs").join(&id));
    let kept = |folder: &Path| {
        let mut kept = files(folder);
        kept.retain(|(path, _)| !["lock", "imported"].iter().any(|name| path == Path::new(name)));
        kept
    };
    assert!(kept(&old) == kept(&new), "everything is there as it was");
    let mode = |path: &Path| std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777;
    assert_eq!([mode(&new), mode(&new.join("trace.jsonl"))], [0o700, 0o600]);
    assert_eq!(there(&place, &["show", &id]).out, place.start(&["show", &id]).out);
    assert!(there(&place, &["show", &id, "--verify"]).out.starts_with("intact"));
    assert_eq!(there(&place, &["show", &id, "--prompt", "1"]).out.trim_end(), server.bodies()[0]);
    let known = there(&place, &["runs", "import", &path]);
    assert!(known.code == 0 && known.err.contains("here already, with the same content"), "{known:?}");

    // Another place to work in, another server, other rights: that is for a person to say.
    let asked = server.bodies().len();
    let refused = there(&place, &["resume", &id, "--config", "none"]);
    let (work, address) = (format!("work in {}", place.work().display()), format!(" at {}", server.base_url));
    for words in [work.as_str(), &address, "reach the network", "--as-recorded"] {
        assert!(refused.code == 2 && refused.err.contains(words), "no {words:?} in {}", refused.err);
    }
    assert_eq!(server.bodies().len(), asked);
    let resumed = there(&place, &["resume", &id, "--config", "none", "--as-recorded"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Done.\n"), "{}", resumed.err);
    assert_ne!(there(&place, &["resume", &id, "--config", "none", "-m", "more"]).code, 2, "it was said once");
    assert!(server.bodies().pop().unwrap().contains("and then?"), "what waited in the inbox came along");
    let parted = there(&place, &["runs", "import", &path]);
    assert!(parted.code == 2 && parted.err.contains("with another content"), "{parted:?}");
    // What is left of the work is nothing but runs.
    let names = fs::read_dir(elsewhere(&place).join("runs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), [id.as_str()]);
    let beside = fs::read_dir(file.parent().unwrap())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(beside.count(), 0, "no half archive is left");
}

#[test]
fn where_its_workspace_is_not_a_run_is_imported_and_says_so() {
    let (place, server) = (Place::new("import-bare"), Server::start(Vec::new()));
    let gone = place.home().with_file_name("gone");
    fs::create_dir(&gone).unwrap();
    let mut args = vec!["run", "go"];
    let work = gone.display().to_string();
    args.extend(place.arguments(&server, &work));
    assert_eq!(place.start(&args).code, 0);
    fs::remove_dir_all(&gone).unwrap();
    let file = place.home().with_file_name("run.tar.gz").display().to_string();
    assert_eq!(place.start(&["runs", "export", &id(&place), &file]).code, 0);
    let imported = there(&place, &["runs", "import", &file]);
    assert!(imported.code == 0 && imported.err.contains("is not here"), "{imported:?}");
    let resumed = there(&place, &["resume", "--last", "--config", "none", "-m", "on"]);
    assert!(resumed.code == 2 && resumed.err.contains(&work), "{resumed:?}");
}

#[test]
fn runs_are_pruned_by_what_was_said_and_never_without_a_yes() {
    let (place, server) = (Place::new("prune"), Server::start(Vec::new()));
    let more = ["--sandbox", "host", "--durability", "process"];
    for _ in 0..3 {
        assert_eq!(run(&place, &server, &more).code, 0);
    }
    // One was broken off, and left what a session leaves that was killed.
    let broken = place.run_folder();
    let path = broken.join("trace.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&path, &text[..last]).unwrap();
    fs::create_dir_all(broken.join("session/home")).unwrap();
    fs::write(broken.join("session/home/left"), "left").unwrap();
    fs::write(broken.join("blobs/.draft-1-0-0"), "half").unwrap();
    let runs = || fs::read_dir(place.home().join("runs")).unwrap().count();
    let prune = |args: &[&str]| place.start(&[&["runs", "prune"], args].concat());

    let asked = prune(&["--keep", "0"]);
    assert!(asked.code == 0 && asked.err.contains("nothing was removed; --yes removes 2 runs and 2 leftovers"), "{asked:?}");
    assert_eq!((asked.out.lines().count(), runs()), (4, 3));
    for kept in [&["--keep", "3"][..], &["--older-than", "1d"], &["--size", "1G"], &["--keep", "0", "--older-than", "1d"]] {
        let nothing = prune(&[kept, &["--yes"]].concat());
        assert_eq!((nothing.code, runs()), (0, 3), "{nothing:?}");
        assert!(!broken.join("session").exists() && !broken.join("blobs/.draft-1-0-0").exists(), "what was left behind goes");
    }
    let question = "remove 1 run and 0 leftovers";
    let no = place.at_terminal(&["runs", "prune", "--keep", "2"], &[], &[(question, &|| "n\n")]);
    assert!(no.out.contains("nothing was removed") && runs() == 3, "{no:?}");
    let yes = place.at_terminal(&["runs", "prune", "--keep", "2"], &[], &[(question, &|| "y\n")]);
    assert!(yes.code == 0 && yes.out.contains("freed"), "{yes:?}");
    assert_eq!(runs(), 2);
    assert_eq!(prune(&["--size", "0", "--yes"]).code, 0);
    assert_eq!((runs(), broken.exists()), (1, true), "what was broken off stays until it is said");
    let held = trace::hold(&broken, &SteppedClock::new()).unwrap();
    assert_eq!(prune(&["--keep", "0", "--all", "--yes"]).code, 0);
    assert!(broken.exists(), "nothing is taken from who works on it");
    drop(held);
    assert_eq!(prune(&["--keep", "0", "--all", "--yes"]).code, 0);
    assert_eq!(runs(), 0);
    let nothing = prune(&[]);
    assert!(nothing.code == 0 && nothing.err.contains("--older-than"), "{nothing:?}");
}
