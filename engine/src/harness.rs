//! The harness: the folder of text and settings that shapes an agent. Immutable once loaded, named by its digest.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
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

/// `loop.toml`: how far the loop goes, and how much of an output an agent sees.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopSettings {
    /// The tools that are on, in the order in which a model sees them.
    pub tools: Vec<String>,
    /// How many claims the checks judge before the run has failed.
    pub max_claims: u32,
    /// What a run may spend unless the person says otherwise.
    pub budget: StepBudget,
    /// How much of an output an agent sees.
    pub caps: Caps,
    /// When calls that bring nothing new are a loop. Harnesses of before have no word for it.
    #[serde(default)]
    pub loops: Loops,
    /// What a fold keeps. Harnesses of before have no word for it.
    #[serde(default)]
    pub fold: FoldSettings,
}

/// When calls in a row that bring nothing new are a loop: each is one, with its arguments and its result, that this turn of
/// the user has seen before.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loops {
    /// So many, and the agent is warned.
    pub warn: NonZeroU32,
    /// So many, once it was warned, and the turn ends.
    pub stop: NonZeroU32,
}

impl Default for Loops {
    fn default() -> Loops {
        let [warn, stop] = [4, 9].map(|calls| NonZeroU32::new(calls).expect("neither is zero"));
        Loops { warn, stop }
    }
}

/// What a fold keeps of a history that outgrows the model's window.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldSettings {
    /// Rounds (a reply with what came of it) at the start that stay as they are, if that can be.
    pub first_rounds: usize,
    /// Rounds at the end whose outputs stay as they are, if that can be.
    pub last_rounds: usize,
    /// Bytes of an output that is short enough to stay whole.
    pub output_bytes: usize,
    /// Bytes from the start of a longer one that stay.
    pub head_bytes: usize,
    /// Bytes from its end.
    pub tail_bytes: usize,
    /// An account of what is gone has at most one of so many parts of the window, and the words of the person as many more.
    pub account_share: NonZeroU64,
}

impl Default for FoldSettings {
    fn default() -> FoldSettings {
        let account_share = NonZeroU64::new(10).expect("ten is not zero");
        FoldSettings { first_rounds: 2, last_rounds: 4, output_bytes: 1200, head_bytes: 400, tail_bytes: 400, account_share }
    }
}

/// The default budget.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepBudget {
    /// Requests to think.
    pub turns: u64,
    /// Minutes of active time.
    pub minutes: u64,
}

/// How much of an output an agent sees.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Bytes from the start of a command's output.
    pub head_bytes: usize,
    /// Bytes from its end.
    pub tail_bytes: usize,
    /// Lines of a file that one `read` shows.
    pub read_lines: usize,
    /// Bytes of a file that one `read` shows.
    pub read_bytes: usize,
}

macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// `notes.toml`: what the engine tells an agent besides the observations of its tools.
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Notes {
            $($(#[$doc])* pub $name: String,)*
        }
    };
}

notes! {
    /// A call was written as text.
    text_call,
    /// A call was cut off by the length limit: `{name}`.
    cut_call,
    /// A reply without calls was cut off by the length limit.
    cut_text,
    /// Calls in a row brought nothing new: `{calls}`, `{call}` of them came to the same `{times}` times, `{left}` are left.
    circle,
    /// In the place of the middle of an old output: `{at}`.
    shortened,
    /// In the place of a stretch of the history: `{at}`, `{account}`.
    account,
    /// Above what the person said.
    account_said,
    /// Above the files that were read.
    account_read,
    /// Above the files that were changed.
    account_changed,
    /// Above the calls.
    account_ran,
    /// Above what was refused, and the checks that failed.
    account_refused,
    /// Above the plan.
    account_plan,
    /// A step of it: `{text}`, `{stage}`.
    account_step,
    /// A message of the person: `{words}`.
    account_words,
    /// A file: `{path}`, `{hash}`, `{at}`.
    account_file,
    /// A call or a check: `{call}`, `{ending}`, `{at}`.
    account_call,
    /// In the place of the middle of a long message of the person.
    account_cut,
    /// Below an account that is not shown whole: `{lines}`.
    account_left_out,
    /// The claim holds.
    accepted,
    /// The claim does not hold: `{failed}`, `{total}`, `{left}`, `{results}`.
    checks_failed,
    /// The claim holds, and the checks ended processes that the agent had left.
    ended,
    /// What one check said: `{command}`, `{output}`, `{ending}`.
    check_result,
    /// A later session goes on with the run.
    session,
    /// The record was damaged, and what came after its last good line is lost.
    lost,
    /// A later session has other walls: `{backend}`.
    other_walls,
    /// What the person granted beyond the workspace: `{rights}`.
    granted,
    /// The workspace can only be read.
    read_only,
    /// The workspace can be written again.
    writable,
    /// A call wanted more than is granted, and nobody is asked: `{wants}`, `{flags}`.
    denied,
    /// A call wanted to write where the workspace is only read: `{wants}`.
    denied_read_only,
    /// A person said no: `{wants}`.
    refused,
    /// A call was going on when the run stopped.
    interrupted,
    /// A call had not begun when the run stopped.
    not_started,
    /// An unknown tool was called: `{name}`, `{tools}`.
    no_tool,
    /// A call's arguments were not usable: `{why}`.
    bad_arguments,
    /// Above the project's own instructions: `{path}`.
    project_file,
    /// The form of the answer: `{schema}`.
    output_schema,
    /// The claim's answer does not have that form: `{why}`, `{left}`.
    misfit,
    /// A question of a program, whose answer has a form: `{schema}`.
    ask,
    /// The answer to it does not have that form: `{why}`.
    ask_misfit,
    /// A picture that the model is not sent: `{picture}`.
    unseen_picture,
    /// A picture that was refused with the request that held it: `{picture}`.
    refused_picture,
    /// A picture that is one too many for a request: `{picture}`, `{most}`, `{at}`.
    crowded_picture,
    /// A picture whose bytes the record has lost: `{picture}`.
    lost_picture,
    /// A file that is no picture: `{name}`, `{type}`.
    file,
    /// The surroundings, captured at the start: `{os}`, `{date}`, `{workspace}`, `{git}`, `{backend}`.
    facts,
}

/// `template` with each `{name}` of `words` replaced; a word's own braces are left alone.
pub fn fill(template: &str, words: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        let word = rest[open + 1..].find('}').and_then(|close| {
            let name = &rest[open + 1..open + 1 + close];
            words.iter().find(|(word, _)| *word == name).map(|(_, value)| (close, *value))
        });
        match word {
            Some((close, value)) => {
                text.push_str(value);
                rest = &rest[open + close + 2..];
            }
            None => {
                text.push('{');
                rest = &rest[open + 1..];
            }
        }
    }
    text + rest
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
        let settings = parse(&files, "loop.toml")?;
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
    fn a_record_without_later_words_is_read_with_the_programs_own() {
        let mut files = Harness::embedded().unwrap().files().clone();
        files.insert(NOTES.to_owned(), b"accepted = \"Taken.\"".to_vec());
        let (notes, own) = (recorded_notes(&files).unwrap(), Harness::embedded().unwrap());
        assert_eq!((notes.accepted.as_str(), &notes.denied), ("Taken.", &own.notes().denied));
    }
}
