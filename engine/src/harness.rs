//! The harness: the folder of text and settings that shapes an agent. Immutable once loaded, named by its digest.

mod notes;
mod settings;

use crate::progress::MOST_SENT;
pub use notes::{Notes, fill};
use serde::Deserialize;
pub use settings::{Caps, FoldSettings, LoopSettings, Loops};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use trace::{Blobs, Digest, HarnessRef};

/// The files of the default harness, as they stand in `harness/default/`.
macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../harness/default/", $path)))),*]
    };
}

const DEFAULT: &[(&str, &[u8])] = embedded![
    "harness.toml",
    "instructions/system.md",
    "loop.toml",
    "notes.toml",
    "tools/bash/tool.toml",
    "tools/edit/tool.toml",
    "tools/find/tool.toml",
    "tools/plan/tool.toml",
    "tools/read/tool.toml",
    "tools/search/tool.toml",
    "tools/submit/tool.toml",
    "tools/write/tool.toml",
];

/// How far the loop goes.
const LOOP: &str = "loop.toml";
/// What the engine tells an agent.
const NOTES: &str = "notes.toml";
/// The most that one file of a harness may hold, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Why a harness cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A file cannot be read.
    #[error("reading the harness file {path}: {error}")]
    Read {
        /// Which file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file is missing, or does not say what it must.
    #[error("the harness file {path}: {why}")]
    Content {
        /// Which file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// A loaded harness.
#[derive(Clone, Debug)]
pub struct Harness {
    name: String,
    digest: Digest,
    files: BTreeMap<String, Vec<u8>>,
    settings: LoopSettings,
    notes: Notes,
    system: String,
}

/// `harness.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    name: String,
}

impl Harness {
    /// The harness that is embedded in the program.
    ///
    /// # Errors
    /// None in a program that passed its tests: the embedded files are loaded as any others are.
    pub fn embedded() -> Result<Harness, HarnessError> {
        Harness::from_files(DEFAULT.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect())
    }

    /// The harness in the folder `folder`.
    ///
    /// # Errors
    /// Where a file cannot be read, is too large, or does not say what it must.
    pub fn load(folder: &Path) -> Result<Harness, HarnessError> {
        let mut files = BTreeMap::new();
        read_folder(folder, "", &mut files)?;
        Harness::from_files(files)
    }

    /// The harness that a record names, from the record's own blobs.
    ///
    /// # Errors
    /// Where a blob is missing, or a file does not say what it must.
    pub fn from_record(named: &HarnessRef, blobs: &Blobs) -> Result<Harness, HarnessError> {
        let read = |(path, digest): (&String, &Digest)| match blobs.get(digest) {
            Ok(bytes) => Ok((path.clone(), bytes)),
            Err(error) => Err(HarnessError::Read { path: path.clone(), error }),
        };
        let files: BTreeMap<String, Vec<u8>> = named.files.iter().map(read).collect::<Result<_, _>>()?;
        let notes = recorded_notes(&files)?;
        Harness::with_notes(files, notes)
    }

    fn from_files(files: BTreeMap<String, Vec<u8>>) -> Result<Harness, HarnessError> {
        let notes = parse(&files, NOTES)?;
        Harness::with_notes(files, notes)
    }

    fn with_notes(files: BTreeMap<String, Vec<u8>>, notes: Notes) -> Result<Harness, HarnessError> {
        let manifest: Manifest = parse(&files, "harness.toml")?;
        let settings: LoopSettings = parse(&files, LOOP)?;
        if settings.max_calls.get() > MOST_SENT {
            let why = format!("`max_calls` is {}, and no more than {MOST_SENT} results of a reply are sent", settings.max_calls);
            return Err(HarnessError::Content { path: LOOP.to_owned(), why });
        }
        let system = text(&files, "instructions/system.md")?.to_owned();
        let tree: String = files.iter().map(|(path, bytes)| format!("{path}\0{}\n", Digest::of(bytes))).collect();
        Ok(Harness { name: manifest.name, digest: Digest::of(tree.as_bytes()), files, settings, notes, system })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its files: path within the harness, and content.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// The settings of the loop.
    pub fn settings(&self) -> &LoopSettings {
        &self.settings
    }

    /// What the engine tells an agent.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The instructions that every prompt begins with.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// What the harness says of a tool: its `tool.toml`.
    pub fn tool(&self, name: &str) -> Option<String> {
        text(&self.files, &format!("tools/{name}/tool.toml")).ok().map(str::to_owned)
    }

    /// Keeps every file as a blob of a run, and names them.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn keep(&self, blobs: &Blobs) -> std::io::Result<HarnessRef> {
        let keep = |(path, bytes): (&String, &Vec<u8>)| blobs.put(bytes).map(|digest| (path.clone(), digest));
        let files = self.files.iter().map(keep).collect::<Result<_, _>>()?;
        Ok(HarnessRef { name: self.name.clone(), digest: self.digest, files })
    }
}

fn text<'a>(files: &'a BTreeMap<String, Vec<u8>>, path: &str) -> Result<&'a str, HarnessError> {
    let wrong = |why: &str| HarnessError::Content { path: path.to_owned(), why: why.to_owned() };
    let bytes = files.get(path).ok_or_else(|| wrong("it is missing"))?;
    std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))
}

fn parse<T: for<'de> Deserialize<'de>>(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<T, HarnessError> {
    let text = text(files, path)?;
    toml::from_str(text).map_err(|error| HarnessError::Content { path: path.to_owned(), why: error.to_string() })
}

/// The notes of a record's harness. For what an earlier version had no words for, they are the program's own.
fn recorded_notes(files: &BTreeMap<String, Vec<u8>>) -> Result<Notes, HarnessError> {
    let own = DEFAULT.iter().filter(|(path, _)| *path == NOTES).map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
    let mut notes: toml::Table = parse(&own.collect(), NOTES)?;
    notes.extend(parse::<toml::Table>(files, NOTES)?);
    notes.try_into().map_err(|error: toml::de::Error| HarnessError::Content { path: NOTES.to_owned(), why: error.to_string() })
}

/// Reads every regular file below `folder`, under its path from there with `/`. Hidden files and links are passed over.
fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), HarnessError> {
    let failed = |error| HarnessError::Read { path: folder.display().to_string(), error };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.metadata().map_err(failed)?;
        if name.starts_with('.') {
            continue;
        } else if kind.is_dir() {
            read_folder(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && kind.len() > MAX_FILE {
            return Err(HarnessError::Content { path, why: format!("it has more than {MAX_FILE} bytes") });
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).map_err(|error| HarnessError::Read { path: path.clone(), error })?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_harness_is_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/default");
        let (embedded, loaded) = (Harness::embedded().unwrap(), Harness::load(&folder).unwrap());
        assert_eq!(embedded.files().keys().collect::<Vec<_>>(), loaded.files().keys().collect::<Vec<_>>());
        assert_eq!(embedded.digest(), loaded.digest());
    }

    #[test]
    fn words_are_filled_in_once() {
        assert_eq!(fill("{a} and {b} {c", &[("a", "{b}"), ("b", "2")]), "{b} and 2 {c");
    }

    #[test]
    fn a_missing_note_is_named() {
        let mut files = Harness::embedded().unwrap().files().clone();
        files.insert("notes.toml".to_owned(), b"text_call = \"x\"".to_vec());
        let error = Harness::from_files(files).unwrap_err().to_string();
        assert!(error.starts_with("the harness file notes.toml:") && error.contains("missing field `cut_call`"), "{error}");
    }

    #[test]
    fn a_harness_of_before_has_the_usual_loops_and_none_may_be_zero() {
        let with = |text: &str| {
            let mut files = Harness::embedded().unwrap().files().clone();
            let before = String::from_utf8(files["loop.toml"].clone()).unwrap();
            let (head, rest) = before.split_once("[loops]").unwrap();
            let (_, tail) = rest.split_once("[budget]").unwrap();
            files.insert("loop.toml".to_owned(), format!("{head}{text}[budget]{tail}").into_bytes());
            Harness::from_files(files)
        };
        let numbers = |harness: &Harness| (harness.settings().loops.warn.get(), harness.settings().loops.stop.get());
        let usual = numbers(&Harness::embedded().unwrap());
        assert_eq!((numbers(&with("").unwrap()), usual), (usual, (4, 9)));
        assert_eq!(numbers(&with("[loops]\nwarn = 2\nstop = 3\n").unwrap()), (2, 3));
        let error = with("[loops]\nwarn = 0\nstop = 3\n").unwrap_err().to_string();
        assert!(error.starts_with("the harness file loop.toml:") && error.contains("nonzero"), "{error}");
    }

    #[test]
    fn a_harness_of_before_serves_as_many_calls_of_a_reply_as_the_usual_one() {
        let with = |line: &str| {
            let mut files = Harness::embedded().unwrap().files().clone();
            let text = String::from_utf8(files["loop.toml"].clone()).unwrap();
            files.insert("loop.toml".to_owned(), text.replace("max_calls = 50\n", line).into_bytes());
            Harness::from_files(files).map(|harness| harness.settings().max_calls.get())
        };
        assert_eq!((with("").unwrap(), with("max_calls = 3\n").unwrap()), (50, 3));
        for (line, why) in [("max_calls = 0\n", "nonzero"), ("max_calls = 129\n", "`max_calls` is 129, and no more than 128")] {
            let error = with(line).unwrap_err().to_string();
            assert!(error.starts_with("the harness file loop.toml:") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_record_without_later_words_is_read_with_the_programs_own() {
        let mut files = Harness::embedded().unwrap().files().clone();
        files.insert(NOTES.to_owned(), b"accepted = \"Taken.\"".to_vec());
        let (notes, own) = (recorded_notes(&files).unwrap(), Harness::embedded().unwrap());
        assert_eq!((notes.accepted.as_str(), &notes.denied), ("Taken.", &own.notes().denied));
    }
}
