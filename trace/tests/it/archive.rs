//! A run as one file: what an export holds, and what an import refuses.

use crate::support::{Still, message};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use trace::{AgentPath, ArchiveError, CallId, Digest, Durability, Imported, Observed, Reading, Record, Seq, Status, What, inbox};

/// A run with a blob and a letter; the blob's digest.
fn make(run: &Path, text: &str) -> Digest {
    let mut record = Record::create(run, Durability::Process, Arc::new(Still), Box::new(|_, _, _| ())).unwrap();
    let started = serde_json::json!({
        "run": "run-1", "task": {"parts": [], "workspace": "/w"}, "tools": [], "limits": {}, "max_claims": 1,
        "harness": {"name": "default", "digest": Digest::of(b""), "files": {}},
        "facts": {"date": "2026-11-29", "os": "linux", "backend": "native"}, "program": {"version": "0"},
        "model": {"id": "m", "name": "m", "wire": "w", "provider": "p", "max_output": 1}
    });
    record.append(&AgentPath::root(), None, What::Started(serde_json::from_value(started).unwrap())).unwrap();
    let blob = record.blobs().put(text.as_bytes()).unwrap();
    let observed = Observed { blob: Some(blob), ..Observed::words(CallId::new(Seq(0), 0), Status::Ok, text) };
    record.append(&AgentPath::root(), None, What::Observed(observed)).unwrap();
    inbox::leave(run, "a", &message("waiting")).unwrap();
    blob
}

fn export(run: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace::export(run, &mut bytes).unwrap();
    bytes
}

/// One entry of an archive: its name, its kind, its content.
type Entry = (String, tar::EntryType, Vec<u8>);

fn entries(archive: &[u8]) -> Vec<Entry> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entry = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let (name, kind) = (entry.path().unwrap().display().to_string(), entry.header().entry_type());
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        (name, kind, content)
    };
    archive.entries().unwrap().map(entry).collect()
}

/// An archive of `entries`, whose names are taken as they are.
fn pack(entries: &[Entry]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o777);
        if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        archive.append(&header, content.as_slice()).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Why an import of `archive` into an empty home is refused; nothing may be left of it.
fn refused(home: &Path, archive: &[u8]) -> String {
    let runs = home.join("runs");
    let Err(ArchiveError::Refused(why)) = trace::import(archive, &runs, &Still) else { panic!("it was taken") };
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 0, "nothing is left: {why}");
    why
}

#[test]
fn what_is_exported_is_imported_byte_for_byte() {
    let home = tempfile::tempdir().unwrap();
    let (run, runs) = (home.path().join("run-1"), home.path().join("runs"));
    let blob = make(&run, "output");
    fs::write(run.join("blobs").join(Digest::of(b"unnamed").to_string()), "unnamed").unwrap();
    fs::write(run.join("inbox/note"), "no letter").unwrap();
    let archive = export(&run);
    assert_eq!(archive, export(&run));
    let names: Vec<String> = entries(&archive).into_iter().map(|(name, ..)| name).collect();
    assert_eq!((&names[0], &names[2], names.len()), (&format!("run-1/blobs/{blob}"), &"run-1/trace.jsonl".to_owned(), 3));
    assert!(matches!(trace::import(archive.as_slice(), &runs, &Still), Ok(Imported::New(archived)) if archived.events == 2));
    let there = runs.join("run-1");
    assert_eq!(fs::read(there.join("trace.jsonl")).unwrap(), fs::read(run.join("trace.jsonl")).unwrap());
    assert_eq!(trace::blobs(&there).get(&blob).unwrap(), b"output");
    assert_eq!(inbox::waiting(&there, &Default::default()).unwrap().fresh[0].1, message("waiting"));
    assert!(matches!(trace::import(archive.as_slice(), &runs, &Still), Ok(Imported::Known(_))));
    let another = home.path().join("another");
    make(&another, "another output");
    let taken = trace::import(export(&another).as_slice(), &runs, &Still);
    assert!(matches!(taken, Err(ArchiveError::Taken { .. })), "{taken:?}");
    assert_eq!(Reading::all(&there).unwrap().1.digest(), Reading::all(&run).unwrap().1.digest());
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 1);
}

#[test]
fn a_run_is_exported_up_to_its_last_whole_line_and_not_where_it_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run-1");
    let blob = make(&run, "output");
    let text = fs::read_to_string(run.join("trace.jsonl")).unwrap();
    fs::write(run.join("trace.jsonl"), format!("{text}{{\"v\":1,")).unwrap();
    let mut bytes = Vec::new();
    assert_eq!(trace::export(&run, &mut bytes).unwrap().left_out, 7);
    assert_eq!(entries(&bytes)[2].2, text.as_bytes());
    fs::write(run.join("trace.jsonl"), text.replacen("default", "tluafed", 1)).unwrap();
    assert!(matches!(trace::export(&run, std::io::sink()), Err(ArchiveError::NotIntact { .. })));
    fs::write(run.join("trace.jsonl"), &text).unwrap();
    fs::write(run.join("blobs").join(blob.to_string()), "outpux").unwrap();
    let mut nothing = Vec::new();
    assert!(matches!(trace::export(&run, &mut nothing), Err(ArchiveError::NotIntact { .. })));
    assert!(nothing.is_empty(), "nothing is written of what is not intact");
}

#[test]
fn a_hostile_archive_is_refused_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run-1");
    let blob = make(&run, "output");
    let good = entries(&export(&run));
    let file = tar::EntryType::Regular;
    let with = |entry: (&str, tar::EntryType, &[u8])| {
        let mut all = good.clone();
        all.push((entry.0.to_owned(), entry.1, entry.2.to_vec()));
        pack(&all)
    };
    assert!(trace::import(pack(&good).as_slice(), &home.path().join("plain"), &Still).is_ok(), "a plain tar is read too");
    let places = [
        "../evil",
        "/etc/evil",
        "run-1/../../evil",
        "run-1",
        "run-1/",
        "run-1/lock",
        "run-1/session/home/.bashrc",
        "run-1/blobs/x",
        "run-1/inbox/.hidden",
        "run-1/inbox/a/b",
        "run-1/inbox/..",
        "trace.jsonl",
        "RUN/trace.jsonl",
        "./run-1/trace.jsonl",
    ];
    for place in places {
        let why = refused(home.path(), &with((place, file, b"x")));
        assert!(why.contains("no such file belongs to a run"), "{place}: {why}");
    }
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Fifo,
        tar::EntryType::Char,
        tar::EntryType::Block,
        tar::EntryType::Directory,
        tar::EntryType::GNULongName,
        tar::EntryType::XHeader,
        tar::EntryType::XGlobalHeader,
        tar::EntryType::GNUSparse,
    ] {
        let why = refused(home.path(), &with(("run-1/inbox/a", kind, b"")));
        assert!(why.contains("it is no plain file"), "{kind:?}: {why}");
    }
    let other = Digest::of(b"other").to_string();
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("twice", with(("run-1/trace.jsonl", file, b"")), "it is there twice"),
        ("another run's", with(("run-2/inbox/a", file, b"{}")), "it is of another run"),
        ("a blob with other content", with((&format!("run-1/blobs/{other}"), file, b"else")), "does not fit its name"),
        ("a blob that no event names", with((&format!("run-1/blobs/{other}"), file, b"other")), "or no event names it"),
        ("no letter", with(("run-1/inbox/a", file, b"not json")), "is no letter"),
        ("nothing", pack(&[]), "it holds no file"),
        ("no archive", b"what is this? ".repeat(100), "reading it"),
        ("half a gzip", export(&run)[..200].to_vec(), "`run-1/"),
    ];
    for (name, archive, words) in cases {
        let why = refused(home.path(), &archive);
        assert!(why.contains(words), "{name}: {why}");
    }
    let missing: Vec<Entry> = good.iter().filter(|entry| !entry.0.ends_with(&blob.to_string())).cloned().collect();
    assert!(refused(home.path(), &pack(&missing)).contains("is missing"));
    let text = String::from_utf8(good[2].2.clone()).unwrap();
    for (changed, words) in [
        (text.replacen("default", "tluafed", 1), "line 1 is damaged"),
        (text[..text.len() - 9].to_owned(), "are no event"),
        (text.lines().nth(1).unwrap().to_owned() + "\n", "are no event"),
        (String::new(), "is not that of the run"),
    ] {
        let mut all = good.clone();
        all[2].2 = changed.into_bytes();
        let why = refused(home.path(), &pack(&all));
        assert!(why.contains(words), "{words}: {why}");
    }
    let renamed: Vec<Entry> =
        good.iter().map(|(name, kind, bytes)| (name.replace("run-1", "run-9"), *kind, bytes.clone())).collect();
    assert!(refused(home.path(), &pack(&renamed)).contains("is not that of the run run-9"));
    // A size that no such file has is refused before a byte of it is read.
    let mut header = tar::Header::new_ustar();
    header.set_path("run-1/inbox/a").unwrap();
    header.set_entry_type(file);
    header.set_size(1 << 40);
    header.set_cksum();
    assert!(refused(home.path(), header.as_bytes()).contains("larger than such a file can be"));
}
